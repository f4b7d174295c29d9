/**
 * Strings that an adapter passes from one memory to another (Canonical ABI: load_string_from_range,
 * store_string_into_range). In: the two sides of a transfer. Out: functions in the text format that check a string, and
 * that copy or transcode a checked one. Invariants: only a string that has been checked is decoded; the calls of
 * `realloc` are those that strings.ts makes for a string of another component.
 */
import type { StringEncoding } from "../model/canon.ts";
import { type AdapterModule, type AdapterSide, copyBytes } from "./adapter_module.ts";
import { MAX_RANGE_BYTES, type PointerType } from "./layout.ts";

/** The forms of code units. */
type Form = "utf8" | "utf16" | "latin1";

const UNIT_BYTES: Readonly<Record<Form, number>> = { utf8: 1, utf16: 2, latin1: 1 };

function tag(pointer: PointerType): string {
  return pointer === "i32" ? "(i64.const 0x80000000)" : "(i64.const 0x8000000000000000)";
}

const get = (name: string): string => `(local.get $${name})`;
const constant = (value: number): string => `(i64.const ${value})`;
const add = (name: string, count: number): string => `(local.set $${name} (i64.add ${get(name)} ${constant(count)}))`;

/** The strings of one direction. */
export class StringTransfer {
  readonly #module: AdapterModule;
  readonly #from: AdapterSide;
  readonly #to: AdapterSide;

  constructor(from: AdapterSide, to: AdapterSide) {
    this.#module = from.module;
    this.#from = from;
    this.#to = to;
  }

  #func(name: string, body: () => string): string {
    return this.#module.func(`$${name}-${this.#from.name}`, body);
  }

  /** Traps unless there is a valid string at the i64 `at` with the i64 `units`, which may be tagged. */
  check(at: string, units: string): string {
    const name = this.#func("check-string", () => {
      const { encoding, pointer } = this.#from.options;
      const signature = "(param $p i64) (param $n i64)";
      if (encoding !== "latin1+utf16") return `${signature} ${this.#checkForm(encoding, 1, 0)}`;
      return `${signature} (if (i64.eqz (i64.and ${get("n")} ${tag(pointer)}))
      (then ${this.#checkForm("latin1", 2, 0)})
      (else (local.set $n (i64.xor ${get("n")} ${tag(pointer)})) ${this.#checkForm("utf16", 2, 2)}))`;
    });
    return `(call ${name} ${at} ${units})`;
  }

  /** Checks the range and the code units of `$n` units at `$p`. `extra` is added to the cost of the value. */
  #checkForm(form: Form, align: number, extra: number): string {
    const bytes = UNIT_BYTES[form];
    const module = this.#module;
    const size = bytes === 1 ? get("n") : `(i64.shl ${get("n")} (i64.const 1))`;
    const most = Math.floor(MAX_RANGE_BYTES / bytes);
    const end = `(i64.add ${get("p")} ${size})`;
    const valid = form === "utf8" ? this.#validUtf8() : this.#validUtf16();
    const message = form === "utf8" ? "string is not valid UTF-8" : "string is not valid UTF-16";
    return `${module.trapIf(`(i64.gt_u ${get("n")} ${constant(most)})`, "string is too long")}
    ${this.#checkRange(Math.max(align, bytes), size)}
    ${form === "latin1" ? "" : module.trapIf(`(i32.eqz (call ${valid} ${get("p")} ${end}))`, message)}
    ${module.charge(`(i64.add (i64.shl ${get("n")} (i64.const 1)) ${constant(extra)})`)}`;
  }

  #checkRange(align: number, size: string): string {
    const odd = align === 1 ? "" : this.#module.trapIf(
      `(i32.wrap_i64 (i64.and ${get("p")} ${constant(align - 1)}))`,
      "string pointer is not aligned",
    );
    return `${odd} ${this.#from.check(get("p"), 1, size, "string")}`;
  }

  #byte(offset: number): string {
    return this.#from.load("i32.load8_u", "$p", offset);
  }

  /** Whether the bytes from `$p` to `$end` are UTF-8; sixteen bytes of ASCII take one step. */
  #validUtf8(): string {
    const next = (count: number) => `${add("p", count)} (br $next)`;
    const fails = (condition: string) => `(if ${condition} (then (return (i32.const 0))))`;
    const follows = (offset: number) =>
      fails(`(i32.ne (i32.and ${this.#byte(offset)} (i32.const 0xc0)) (i32.const 0x80))`);
    const ends = (count: number) => fails(`(i64.gt_u (i64.add ${get("p")} ${constant(count)}) ${get("end")})`);
    const bound = (lead: number, comparison: string, limit: number) =>
      fails(
        `(i32.and (i32.eq ${get("b")} (i32.const ${lead})) (i32.${comparison} ${this.#byte(1)} (i32.const ${limit})))`,
      );
    const words = `(i64.or ${this.#from.load("i64.load", "$p", 0)} ${this.#from.load("i64.load", "$p", 8)})`;
    return this.#func(
      "valid-utf8",
      () =>
        `(param $p i64) (param $end i64) (result i32) (local $b i32)
    (loop $next
      (if (i64.le_u (i64.add ${get("p")} (i64.const 16)) ${get("end")})
        (then (if (i64.eqz (i64.and ${words} (i64.const 0x8080808080808080))) (then ${next(16)}))))
      (if (i64.ge_u ${get("p")} ${get("end")}) (then (return (i32.const 1))))
      (local.set $b ${this.#byte(0)})
      (if (i32.lt_u ${get("b")} (i32.const 0x80)) (then ${next(1)}))
      ${fails(`(i32.lt_u ${get("b")} (i32.const 0xc2))`)}
      (if (i32.lt_u ${get("b")} (i32.const 0xe0)) (then ${ends(2)} ${follows(1)} ${next(2)}))
      (if (i32.lt_u ${get("b")} (i32.const 0xf0)) (then ${ends(3)} ${follows(1)} ${follows(2)}
        ${bound(0xe0, "lt_u", 0xa0)} ${bound(0xed, "ge_u", 0xa0)} ${next(3)}))
      ${fails(`(i32.ge_u ${get("b")} (i32.const 0xf5))`)}
      ${ends(4)} ${follows(1)} ${follows(2)} ${follows(3)}
      ${bound(0xf0, "lt_u", 0x90)} ${bound(0xf4, "ge_u", 0x90)} ${next(4)})
    (unreachable)`,
    );
  }

  /** Whether the code units from `$p` to `$end` are UTF-16; four units of ASCII take one step. */
  #validUtf16(): string {
    const fails = (condition: string) => `(if ${condition} (then (return (i32.const 0))))`;
    const from = this.#from;
    return this.#func(
      "valid-utf16",
      () =>
        `(param $p i64) (param $end i64) (result i32) (local $u i32)
    (loop $next
      (if (i64.le_u (i64.add ${get("p")} (i64.const 8)) ${get("end")})
        (then (if (i64.eqz (i64.and ${from.load("i64.load", "$p", 0)} (i64.const 0xff80ff80ff80ff80)))
          (then ${add("p", 8)} (br $next)))))
      (if (i64.ge_u ${get("p")} ${get("end")}) (then (return (i32.const 1))))
      (local.set $u ${from.load("i32.load16_u", "$p", 0)})
      ${add("p", 2)}
      (br_if $next (i32.ne (i32.and ${get("u")} (i32.const 0xf800)) (i32.const 0xd800)))
      ${fails(`(i32.ge_u ${get("u")} (i32.const 0xdc00))`)}
      ${fails(`(i64.ge_u ${get("p")} ${get("end")})`)}
      ${fails(`(i32.ne (i32.and ${from.load("i32.load16_u", "$p", 0)} (i32.const 0xfc00)) (i32.const 0xdc00))`)}
      ${add("p", 2)} (br $next))
    (unreachable)`,
    );
  }

  /** Stores a checked string; leaves its pointer and its number of units, which may be tagged, on the stack as i64. */
  store(at: string, units: string): string {
    const name = this.#func("store-string", () => {
      const { encoding, pointer } = this.#from.options;
      const signature = "(param $p i64) (param $n i64) (result i64 i64)";
      const call = (form: Form, isTagged: boolean) => `(call ${this.#storer(form, isTagged)} ${get("p")} ${get("n")})`;
      if (encoding !== "latin1+utf16") return `${signature} ${call(encoding, false)}`;
      return `${signature} (if (i64.eqz (i64.and ${get("n")} ${tag(pointer)})) (then (return ${call("latin1", false)})))
    (local.set $n (i64.xor ${get("n")} ${tag(pointer)})) ${call("utf16", true)}`;
    });
    return `(call ${name} ${at} ${units})`;
  }

  #storer(form: Form, isTagged: boolean): string {
    return this.#func(`store-${isTagged ? "tagged" : form}`, () => {
      const { encoding } = this.#to.options;
      return `(param $p i64) (param $n i64) (result i64 i64)
    (local $q i64) (local $i i64) (local $o i64) (local $end i64) (local $bytes i64)
    (local.set $bytes (i64.mul ${get("n")} ${constant(UNIT_BYTES[form])}))
    (local.set $end (i64.add ${get("p")} ${get("bytes")}))
    ${this.#storeForm(form, encoding, isTagged)}`;
    });
  }

  #storeForm(form: Form, to: StringEncoding, isTagged: boolean): string {
    if (form === to) return this.#plain(UNIT_BYTES[form]);
    if (to === "utf8") return this.#growToUtf8(form);
    if (to === "utf16") return form === "utf8" ? this.#shrinkToUtf16() : this.#widen();
    if (form === "latin1") return this.#plain(2);
    return isTagged ? this.#narrowUtf16() : this.#growFromLatin1(form);
  }

  #allocate(align: number, bytes: string): string {
    return `(local.set $q ${this.#to.allocate(align, bytes)})`;
  }

  #reallocate(oldBytes: string, align: number, bytes: string): string {
    return `(local.set $q ${this.#to.reallocate(get("q"), oldBytes, align, bytes)})`;
  }

  #copy(): string {
    return copyBytes(this.#from, this.#to, get("q"), get("p"), get("bytes"));
  }

  /** The code units stay as they are. */
  #plain(align: number): string {
    return `${this.#allocate(align, get("bytes"))} ${this.#copy()} ${get("q")} ${get("n")}`;
  }

  /** Sets `$o` to the end of the output from `$i` to `$end`, recoded to the address `at`. */
  #recode(form: Form, to: Form, from: string, at: string): string {
    return `(local.set $o (call ${this.#recoder(form, to)} ${from} ${get("end")} ${at}))`;
  }

  /** Latin-1 to UTF-16. */
  #widen(): string {
    return `${this.#allocate(2, `(i64.shl ${get("n")} (i64.const 1))`)}
    ${this.#recode("latin1", "utf16", get("p"), get("q"))} ${get("q")} ${get("n")}`;
  }

  /** Shrinks the allocation of `$n` bytes to the output, which ends at `$o`. `$n` becomes the length in bytes. */
  #shrink(align: number): string {
    return `(local.set $bytes (i64.sub ${get("o")} ${get("q")}))
    (if (i64.lt_u ${get("bytes")} ${get("n")}) (then ${this.#reallocate(get("n"), align, get("bytes"))}))`;
  }

  /** store_utf8_to_utf16. */
  #shrinkToUtf16(): string {
    return `(local.set $n (i64.shl ${get("n")} (i64.const 1)))
    ${this.#allocate(2, get("n"))}
    ${this.#recode("utf8", "utf16", get("p"), get("q"))}
    ${this.#shrink(2)} ${get("q")} (i64.shr_u ${get("bytes")} (i64.const 1))`;
  }

  /** Stores the characters up to `limit` at `$q`, one byte each; `$i` and `$o` are the ends of input and output. */
  #prefix(form: Form, limit: number): string {
    return `(call ${this.#narrower(form, limit)} ${get("p")} ${get("end")} ${get("q")}) (local.set $o) (local.set $i)`;
  }

  /** store_string_to_utf8. */
  #growToUtf8(form: Form): string {
    const worst = form === "latin1" ? 2 : 3;
    return `${this.#allocate(1, get("n"))}
    ${this.#prefix(form, 0x7f)}
    (if (i64.eq ${get("i")} ${get("end")}) (then (return ${get("q")} ${get("n")})))
    (local.set $o (i64.sub ${get("o")} ${get("q")}))
    (local.set $bytes (i64.mul ${get("n")} ${constant(worst)}))
    ${this.#reallocate(get("n"), 1, get("bytes"))}
    (local.set $n ${get("bytes")})
    ${this.#recode(form, "utf8", get("i"), `(i64.add ${get("q")} ${get("o")})`)}
    ${this.#shrink(1)} ${get("q")} ${get("bytes")}`;
  }

  /** store_string_to_latin1_or_utf16: Latin-1 until a character does not fit. */
  #growFromLatin1(form: Form): string {
    return `${this.#allocate(2, get("n"))}
    ${this.#prefix(form, 0xff)}
    (if (i64.eq ${get("i")} ${get("end")}) (then ${this.#shrink(2)} (return ${get("q")} ${get("bytes")})))
    (local.set $bytes (i64.shl ${get("n")} (i64.const 1)))
    ${this.#reallocate(get("n"), 2, get("bytes"))}
    (local.set $n ${get("bytes")})
    ${
      form === "utf16"
        ? `${this.#copy()} (local.set $o (i64.add ${get("q")} ${get("bytes")}))`
        : this.#recode(form, "utf16", get("p"), get("q"))
    }
    ${this.#shrink(2)} ${get("q")} ${this.#tagged(`(i64.shr_u ${get("bytes")} (i64.const 1))`)}`;
  }

  #tagged(units: string): string {
    return `(i64.or ${units} ${tag(this.#to.pointer)})`;
  }

  /** store_probably_utf16_to_latin1_or_utf16. */
  #narrowUtf16(): string {
    return `${this.#allocate(2, get("bytes"))} ${this.#copy()}
    (if (i32.eqz (call ${this.#isLatin1()} ${get("p")} ${get("end")}))
      (then (return ${get("q")} ${this.#tagged(get("n"))})))
    ${this.#recode("utf16", "latin1", get("p"), get("q"))}
    ${this.#reallocate(get("bytes"), 1, get("n"))} ${get("q")} ${get("n")}`;
  }

  #isLatin1(): string {
    return this.#func(
      "is-latin1",
      () =>
        `(param $p i64) (param $end i64) (result i32)
    (loop $next
      (if (i64.ge_u ${get("p")} ${get("end")}) (then (return (i32.const 1))))
      (if (i32.gt_u ${this.#from.load("i32.load16_u", "$p", 0)} (i32.const 0xff)) (then (return (i32.const 0))))
      ${add("p", 2)} (br $next))
    (unreachable)`,
    );
  }

  /** Recodes the characters from `$i` to `$end` to `$o`; returns the end of the output. */
  #recoder(form: Form, to: Form): string {
    return this.#func(
      `recode-${form}-${to}`,
      () =>
        `(param $i i64) (param $end i64) (param $o i64) (result i64) (local $c i32)
    (loop $next
      ${this.#eight(form, to, to === "utf8" ? 0x7f : 0xff)}
      (if (i64.lt_u ${get("i")} ${get("end")}) (then ${this.#decode(form)} ${this.#encode(to)} (br $next))))
    ${get("o")}`,
    );
  }

  /** Stores characters up to the first one above `limit`; returns the ends of the input and the output. */
  #narrower(form: Form, limit: number): string {
    return this.#func(
      `narrow-${form}-${limit}`,
      () =>
        `(param $i i64) (param $end i64) (param $o i64) (result i64 i64) (local $c i32) (local $at i64)
    (loop $next
      ${this.#eight(form, "latin1", limit)}
      (local.set $at ${get("i")})
      (if (i64.lt_u ${get("i")} ${get("end")}) (then ${this.#decode(form)}
        (if (i32.le_u ${get("c")} (i32.const ${limit})) (then ${this.#encode("latin1")} (br $next))))))
    ${get("at")} ${get("o")}`,
    );
  }

  /**
   * Recodes eight code units at once and begins again, if they are characters up to `limit` and each has one unit in
   * both forms. The output has room for one unit per unit of the input.
   */
  #eight(form: Form, to: Form, limit: number): string {
    const [from, target] = [this.#from, this.#to];
    const bytes = 8 * UNIT_BYTES[form];
    const word = (offset: number) => from.load("i64.load", "$i", offset);
    const above = form === "utf16"
      ? `(i64.and (i64.or ${word(0)} ${word(8)}) (i64.const ${
        limit > 0x7f ? "0xff00ff00ff00ff00" : "0xff80ff80ff80ff80"
      }))`
      : form === "latin1" && limit > 0x7f
      ? "(i64.const 0)"
      : `(i64.and ${word(0)} (i64.const 0x8080808080808080))`;
    const units = from.load("v128.load", "$i", 0);
    const store = to === "utf16"
      ? target.store("v128.store", "$o", 0, from.load("v128.load8x8_u", "$i", 0))
      : form === "utf16"
      ? target.store("i64.store", "$o", 0, `(i64x2.extract_lane 0 (i8x16.narrow_i16x8_u ${units} ${units}))`)
      : target.store("i64.store", "$o", 0, word(0));
    return `(if (i64.le_u (i64.add ${get("i")} ${constant(bytes)}) ${get("end")})
        (then (if (i64.eqz ${above})
          (then ${store} ${add("i", bytes)} ${add("o", 8 * UNIT_BYTES[to])} (br $next)))))`;
  }

  /** Sets `$c` to the character at `$i`, and `$i` to the next one. */
  #decode(form: Form): string {
    const from = this.#from;
    if (form === "latin1") return `(local.set $c ${from.load("i32.load8_u", "$i", 0)}) ${add("i", 1)}`;
    if (form === "utf16") {
      return `(local.set $c ${from.load("i32.load16_u", "$i", 0)}) ${add("i", 2)}
      (if (i32.eq (i32.and ${get("c")} (i32.const 0xfc00)) (i32.const 0xd800)) (then
        (local.set $c (i32.add (i32.shl ${get("c")} (i32.const 10))
          (i32.sub ${from.load("i32.load16_u", "$i", 0)} (i32.const ${(0xd800 << 10) + 0xdc00 - 0x10000}))))
        ${add("i", 2)}))`;
    }
    const tail = (offset: number, shift: number) =>
      `(i32.shl (i32.and ${from.load("i32.load8_u", "$i", offset)} (i32.const 0x3f)) (i32.const ${shift}))`;
    const lead = (mask: number, shift: number) =>
      `(i32.shl (i32.and ${get("c")} (i32.const ${mask})) (i32.const ${shift}))`;
    const set = (parts: readonly string[]) =>
      `(local.set $c ${parts.reduce((sum, part) => `(i32.or ${sum} ${part})`)}) ${add("i", parts.length)}`;
    return `(local.set $c ${from.load("i32.load8_u", "$i", 0)})
      (if (i32.lt_u ${get("c")} (i32.const 0x80)) (then ${add("i", 1)})
      (else (if (i32.lt_u ${get("c")} (i32.const 0xe0)) (then ${set([lead(0x1f, 6), tail(1, 0)])})
      (else (if (i32.lt_u ${get("c")} (i32.const 0xf0)) (then ${set([lead(0xf, 12), tail(1, 6), tail(2, 0)])})
      (else ${set([lead(7, 18), tail(1, 12), tail(2, 6), tail(3, 0)])}))))))`;
  }

  /** Stores `$c` at `$o`, and sets `$o` to the end. */
  #encode(form: Form): string {
    const to = this.#to;
    const c = get("c");
    if (form === "latin1") return `${to.store("i32.store8", "$o", 0, c)} ${add("o", 1)}`;
    if (form === "utf16") {
      const units = `(i32.or
        (i32.add (i32.shr_u (i32.sub ${c} (i32.const 0x10000)) (i32.const 10)) (i32.const 0xd800))
        (i32.shl (i32.or (i32.and ${c} (i32.const 0x3ff)) (i32.const 0xdc00)) (i32.const 16)))`;
      return `(if (i32.lt_u ${c} (i32.const 0x10000))
        (then ${to.store("i32.store16", "$o", 0, c)} ${add("o", 2)})
        (else ${to.store("i32.store", "$o", 0, units)} ${add("o", 4)}))`;
    }
    const part = (shift: number, mask: number, mark: number) =>
      `(i32.or (i32.and (i32.shr_u ${c} (i32.const ${shift})) (i32.const ${mask})) (i32.const ${mark}))`;
    const store = (parts: readonly string[]) =>
      `${parts.map((value, k) => to.store("i32.store8", "$o", k, value)).join(" ")} ${add("o", parts.length)}`;
    const tail = (shift: number) => part(shift, 0x3f, 0x80);
    return `(if (i32.lt_u ${c} (i32.const 0x80)) (then ${store([c])})
      (else (if (i32.lt_u ${c} (i32.const 0x800)) (then ${store([part(6, 0x1f, 0xc0), tail(0)])})
      (else (if (i32.lt_u ${c} (i32.const 0x10000)) (then ${store([part(12, 0xf, 0xe0), tail(6), tail(0)])})
      (else ${store([part(18, 7, 0xf0), tail(12), tail(6), tail(0)])}))))))`;
  }
}
