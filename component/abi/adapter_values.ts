/**
 * Values that an adapter passes from one component to another (Canonical ABI: Loading, Storing, Flat Lifting, Flat
 * Lowering). In: the two sides of a transfer, types, and names of flat values or addresses. Out: instructions in the
 * text format. A transfer has two passes: `check` traps for every value that cannot be lifted and takes the handles
 * from the table of the source; `copy` allocates and stores. No code of the source runs between the passes, so `copy`
 * sees the values that have been checked.
 *
 * Invariants: both passes visit the handles in the same order; padding is never copied, because the source may keep
 * secrets there.
 */
import type { ValType, VariantCase } from "../model/types.ts";
import { type AdapterModule, type AdapterSide, copyBytes } from "./adapter_module.ts";
import { StringTransfer } from "./adapter_strings.ts";
import {
  casesOf,
  type CoreType,
  discriminantBytes,
  fieldOffsets,
  flagsBytes,
  flatten,
  layoutOf,
  liftCost,
  MAX_RANGE_BYTES,
  payloadOffset,
  type PointerType,
} from "./layout.ts";

type RangeType = Extract<ValType, { kind: "list" | "map" }>;
type VariantType = Extract<ValType, { kind: "variant" | "option" | "result" }>;

/** Numbers: the load and store of the type in memory, and the instructions that bring a flat value into its range. */
const NUMBERS: Readonly<Record<string, readonly [load: string, store: string, normalize: string]>> = {
  s8: ["i32.load8_s", "i32.store8", "i32.extend8_s"],
  u8: ["i32.load8_u", "i32.store8", "i32.const 255 i32.and"],
  s16: ["i32.load16_s", "i32.store16", "i32.extend16_s"],
  u16: ["i32.load16_u", "i32.store16", "i32.const 65535 i32.and"],
  s32: ["i32.load", "i32.store", ""],
  u32: ["i32.load", "i32.store", ""],
  s64: ["i64.load", "i64.store", ""],
  u64: ["i64.load", "i64.store", ""],
  f32: ["i32.load", "i32.store", ""],
  f64: ["i64.load", "i64.store", ""],
  char: ["i32.load", "i32.store", ""],
};

/** Conversions between the joined type of a variant's payload and the type of a case. */
const COERCIONS: Readonly<Record<string, readonly [toCase: string, toJoined: string]>> = {
  "i32 f32": ["f32.reinterpret_i32", "i32.reinterpret_f32"],
  "i64 i32": ["i32.wrap_i64", "i64.extend_i32_u"],
  "i64 f32": ["i32.wrap_i64 f32.reinterpret_i32", "i32.reinterpret_f32 i64.extend_i32_u"],
  "i64 f64": ["f64.reinterpret_i64", "i64.reinterpret_f64"],
};

/** Composite values of more bytes than this are copied by memory.copy. */
const MAX_WORDS_BYTES = 64;

const get = (name: string): string => `(local.get ${name})`;

/** Expressions of the parts of one value that the component lifted: in memory, or flat. */
interface LiftedValue {
  /** The value of `bytes` bytes, zero-extended in memory. */
  bits(bytes: number): string;
  /** Word `k` of a string or list (0: its pointer, 1: its length), as i64. */
  word(k: 0 | 1): string;
}

/** Instructions that set one value of the component to which it is lowered: in memory, or in locals. */
interface LoweredValue {
  bits(bytes: number, value: string): string;
  /** The string or list of pointer `$a` and length `$n`. */
  range(): string;
}

/** Whether an adapter can pass values of `type`: all but channels and error contexts, which belong to tasks. */
export function isTransferable({ kind }: ValType): boolean {
  return kind !== "stream" && kind !== "future" && kind !== "error-context";
}

/** The values of one direction. */
export class ValueTransfer {
  /** The types of the handles: `$lift-N` and `$lower-N` are the functions of `handles[N]`. */
  readonly handles: ValType[] = [];
  readonly #module: AdapterModule;
  readonly #from: AdapterSide;
  readonly #to: AdapterSide;
  readonly #strings: StringTransfer;
  readonly #needsCheck = new Map<ValType, boolean>();
  readonly #names = new Map<ValType, number>();
  readonly #entries = new Map<ValType, ValType>();

  constructor(from: AdapterSide, to: AdapterSide) {
    this.#module = from.module;
    this.#from = from;
    this.#to = to;
    this.#strings = new StringTransfer(from, to);
  }

  /** The name of the function of kind `sort` for `type`. */
  #func(sort: string, type: ValType, body: () => string): string {
    let index = this.#names.get(type);
    if (index === undefined) this.#names.set(type, index = this.#module.fresh());
    return this.#module.func(`$${sort}-${index}`, body);
  }

  #handle(type: ValType): string {
    let index = this.handles.indexOf(type);
    if (index < 0) index = this.handles.push(type) - 1;
    return `${index}-${this.#from.name}`;
  }

  #elementOf(type: RangeType): ValType {
    if (type.kind === "list") return type.element;
    let entry = this.#entries.get(type);
    if (entry === undefined) this.#entries.set(type, entry = { kind: "tuple", types: [type.key, type.value] });
    return entry;
  }

  // Checking

  /** Whether some value of `type` in memory cannot be lifted, or lifting has effects. */
  #checks(type: ValType): boolean {
    let checks = this.#needsCheck.get(type);
    if (checks === undefined) this.#needsCheck.set(type, checks = this.#computeChecks(type));
    return checks;
  }

  #computeChecks(type: ValType): boolean {
    switch (type.kind) {
      case "char":
      case "string":
      case "map":
      case "own":
      case "borrow":
        return true;
      case "list":
        return type.length === undefined || this.#checks(type.element);
      case "record":
        return type.fields.some((field) => this.#checks(field.type));
      case "tuple":
        return type.types.some((part) => this.#checks(part));
      case "enum":
        return hasBadCases(type.names.length);
      case "variant":
      case "option":
      case "result": {
        const cases = casesOf(type);
        return hasBadCases(cases.length) || cases.some((c) => c.type !== undefined && this.#checks(c.type));
      }
      default:
        return false;
    }
  }

  #inMemory(p: string, at: number): LiftedValue {
    const from = this.#from;
    return {
      bits: (bytes) => from.load(loadOf(bytes), p, at),
      word: (k) => from.loadPointer(p, at + k * from.pointerBytes),
    };
  }

  #flatValue(flat: readonly string[]): LiftedValue {
    return { bits: () => flat[0], word: (k) => this.#from.in(flat[k]) };
  }

  /** Instructions that check `value`; undefined for types whose parts are checked one by one. */
  #checkLeaf(type: ValType, value: LiftedValue): string | undefined {
    switch (type.kind) {
      case "char":
        return this.#module.checkChar(value.bits(4));
      case "string":
        return this.#strings.check(value.word(0), value.word(1));
      case "own":
      case "borrow":
        return `(call $lift-${this.#handle(type)} ${value.bits(4)})`;
      case "enum":
        return this.#module.checkCase(value.bits(discriminantBytes(type.names.length)), type.names.length);
      case "map":
        return this.#checkRange(type, value.word(0), value.word(1));
      case "list":
        return type.length === undefined ? this.#checkRange(type, value.word(0), value.word(1)) : undefined;
    }
  }

  /** Instructions that check the value of `type` at the address in the local `p`, plus `at`. */
  check(type: ValType, p: string, at: number): string {
    if (!this.#checks(type)) return "";
    const leaf = this.#checkLeaf(type, this.#inMemory(p, at));
    if (leaf !== undefined) return leaf;
    const name = this.#func("check", type, () => `(param $p i64) ${this.#checkParts(type)}`);
    return `(call ${name} (i64.add ${get(p)} (i64.const ${at})))`;
  }

  #checkParts(type: ValType): string {
    const parts = (types: readonly ValType[]) => {
      const offsets = fieldOffsets(types, this.#from.pointer);
      return types.map((part, k) => this.check(part, "$p", offsets[k])).join(" ");
    };
    switch (type.kind) {
      case "record":
        return parts(type.fields.map((field) => field.type));
      case "tuple":
        return parts(type.types);
      case "list":
        return `(local $end i64) ${this.#checkElements(type.element, `(i64.const ${type.length})`)}`;
      default: {
        const cases = casesOf(type as VariantType);
        const at = payloadOffset(cases, this.#from.pointer);
        return `(local $d i32) (local.set $d ${this.#discriminant(cases.length, "$p", 0)})
    ${hasBadCases(cases.length) ? this.#module.checkCase(get("$d"), cases.length) : ""}
    ${this.#arms(cases, get("$d"), (payload) => this.check(payload, "$p", at))}`;
      }
    }
  }

  /** Checks the elements of a list of `count`, which are in bounds. */
  #checkElements(element: ValType, count: string): string {
    if (!this.#checks(element)) return "";
    const { size } = layoutOf(element, this.#from.pointer);
    return `(local.set $end (i64.add ${get("$p")} (i64.mul ${count} (i64.const ${size}))))
    (loop $next (if (i64.lt_u ${get("$p")} ${get("$end")}) (then
      ${this.check(element, "$p", 0)} (local.set $p (i64.add ${get("$p")} (i64.const ${size}))) (br $next))))`;
  }

  #checkRange(type: RangeType, at: string, count: string): string {
    const element = this.#elementOf(type);
    const { size, align } = layoutOf(element, this.#from.pointer);
    const cost = liftCost(element);
    const module = this.#module;
    const bytes = `(i64.mul ${get("$n")} (i64.const ${size}))`;
    const name = this.#func(
      "check-range",
      type,
      () =>
        `(param $p i64) (param $n i64) (local $end i64)
    ${module.trapIf(tooMany(get("$n"), size), "list is too long")}
    ${module.charge(`(i64.mul ${get("$n")} (i64.const ${cost}))`)}
    ${this.#from.check(get("$p"), align, bytes, "list pointer")}
    ${this.#checkElements(element, get("$n"))}`,
    );
    return `(call ${name} ${at} ${count})`;
  }

  #discriminant(count: number, p: string, at: number): string {
    return this.#from.load(loadOf(discriminantBytes(count)), p, at);
  }

  /** For each case with a payload, the instructions of `arm` if it is the case of the i32 `discriminant`. */
  #arms(
    cases: readonly VariantCase<ValType>[],
    discriminant: string,
    arm: (payload: ValType, index: number) => string,
  ): string {
    return cases.map(({ type }, k) => {
      const body = type === undefined ? "" : arm(type, k);
      return body === "" ? "" : `(if (i32.eq ${discriminant} (i32.const ${k})) (then ${body}))`;
    }).join(" ");
  }

  // Copying

  /** Whether the bytes of `type` are the value: the same on both sides, without padding and without rules. */
  #isPlain(type: ValType): boolean {
    const all = (types: readonly ValType[]) =>
      types.every((part) => this.#isPlain(part)) &&
      types.reduce((sum, part) => sum + layoutOf(part, "i32").size, 0) === layoutOf(type, "i32").size;
    switch (type.kind) {
      case "list":
        return type.length !== undefined && this.#isPlain(type.element);
      case "record":
        return all(type.fields.map((field) => field.type));
      case "tuple":
        return all(type.types);
      case "flags":
        return flagsBytes(type.names.length) * 8 === type.names.length;
      case "enum":
        return true;
      default:
        return NUMBERS[type.kind] !== undefined;
    }
  }

  /** Instructions that copy a checked value; undefined for numbers, and for types whose parts are copied one by one. */
  #copyLeaf(type: ValType, value: LiftedValue, to: LoweredValue): string | undefined {
    switch (type.kind) {
      case "bool":
        return to.bits(1, `(i32.ne ${value.bits(1)} (i32.const 0))`);
      case "flags": {
        const bytes = flagsBytes(type.names.length);
        return to.bits(bytes, `(i32.and ${value.bits(bytes)} (i32.const ${flagsMask(type.names.length)}))`);
      }
      case "enum": {
        const bytes = discriminantBytes(type.names.length);
        return to.bits(bytes, value.bits(bytes));
      }
      case "own":
      case "borrow":
        return to.bits(4, `(call $lower-${this.#handle(type)})`);
      case "string":
        return `${this.#strings.store(value.word(0), value.word(1))} (local.set $n) (local.set $a) ${to.range()}`;
      case "map":
        return this.#copyRangeValue(type, value, to);
      case "list":
        return type.length === undefined ? this.#copyRangeValue(type, value, to) : undefined;
    }
  }

  #copyRangeValue(type: RangeType, value: LiftedValue, to: LoweredValue): string {
    return `(local.set $n ${value.word(1)})
      (local.set $a ${this.#copyRange(type, value.word(0), get("$n"))}) ${to.range()}`;
  }

  /** The value in memory at the address in the local `q`, plus `at`. */
  #toMemory(q: string, at: number): LoweredValue {
    const to = this.#to;
    return {
      bits: (bytes, value) => to.store(storeOf(bytes), q, at, value),
      range: () => `${to.storePointer(q, at, get("$a"))} ${to.storePointer(q, at + to.pointerBytes, get("$n"))}`,
    };
  }

  #toLocals(out: readonly string[]): LoweredValue {
    const set = (k: number, value: string) => `(local.set ${out[k]} ${value})`;
    return {
      bits: (_, value) => set(0, value),
      range: () => `${set(0, this.#to.out(get("$a")))} ${set(1, this.#to.out(get("$n")))}`,
    };
  }

  /**
   * Instructions that copy the checked value of `type` at the address in the local `p`, plus `at`, to the one in the
   * local `q`, plus `to`. They use the locals `$a` and `$n`.
   */
  copy(type: ValType, p: string, at: number, q: string, to: number): string {
    const from = this.#from;
    const number = NUMBERS[type.kind];
    if (number !== undefined) return this.#to.store(number[1], q, to, from.load(number[0], p, at));
    const leaf = this.#copyLeaf(type, this.#inMemory(p, at), this.#toMemory(q, to));
    if (leaf !== undefined) return leaf;
    const { size } = layoutOf(type, from.pointer);
    if (size <= MAX_WORDS_BYTES && this.#isPlain(type)) return this.#copyWords(size, p, at, q, to);
    const name = this.#func(
      "copy",
      type,
      () =>
        `(param $p i64) (param $q i64) (local $a i64) (local $n i64) (local $d i32) (local $end i64)
    ${this.#copyParts(type)}`,
    );
    return `(call ${name} (i64.add ${get(p)} (i64.const ${at})) (i64.add ${get(q)} (i64.const ${to})))`;
  }

  #copyWords(size: number, p: string, at: number, q: string, to: number): string {
    const parts: string[] = [];
    for (let done = 0; done < size;) {
      const bytes = [8, 4, 2, 1].find((word) => word <= size - done)!;
      const word = this.#from.load(bytes === 8 ? "i64.load" : loadOf(bytes), p, at + done);
      parts.push(this.#to.store(bytes === 8 ? "i64.store" : storeOf(bytes), q, to + done, word));
      done += bytes;
    }
    return parts.join(" ");
  }

  #copyParts(type: ValType): string {
    const parts = (types: readonly ValType[]) => {
      const at = fieldOffsets(types, this.#from.pointer);
      const to = fieldOffsets(types, this.#to.pointer);
      return types.map((part, k) => this.copy(part, "$p", at[k], "$q", to[k])).join(" ");
    };
    switch (type.kind) {
      case "record":
        return parts(type.fields.map((field) => field.type));
      case "tuple":
        return parts(type.types);
      case "list":
        return this.#copyElements(type.element, `(i64.const ${type.length})`);
      default: {
        const cases = casesOf(type as VariantType);
        const at = payloadOffset(cases, this.#from.pointer);
        const to = payloadOffset(cases, this.#to.pointer);
        return `(local.set $d ${this.#discriminant(cases.length, "$p", 0)})
    ${this.#to.store(storeOf(discriminantBytes(cases.length)), "$q", 0, get("$d"))}
    ${this.#arms(cases, get("$d"), (payload) => this.copy(payload, "$p", at, "$q", to))}`;
      }
    }
  }

  /** Copies `count` elements from `$p` to `$q`; afterwards the two locals are the ends. */
  #copyElements(element: ValType, count: string): string {
    const { size } = layoutOf(element, this.#from.pointer);
    const { size: target } = layoutOf(element, this.#to.pointer);
    const bytes = `(i64.mul ${count} (i64.const ${size}))`;
    if (this.#isPlain(element)) return copyBytes(this.#from, this.#to, get("$q"), get("$p"), bytes);
    const step = (name: string, by: number) => `(local.set ${name} (i64.add ${get(name)} (i64.const ${by})))`;
    return `(local.set $end (i64.add ${get("$p")} ${bytes}))
    (loop $next (if (i64.lt_u ${get("$p")} ${get("$end")}) (then
      ${this.copy(element, "$p", 0, "$q", 0)} ${step("$p", size)} ${step("$q", target)} (br $next))))`;
  }

  /** An expression that copies a list and returns its new pointer. */
  #copyRange(type: RangeType, at: string, count: string): string {
    const element = this.#elementOf(type);
    const { size, align } = layoutOf(element, this.#to.pointer);
    const grows = size > layoutOf(element, this.#from.pointer).size;
    const name = this.#func(
      "copy-range",
      type,
      () =>
        `(param $p i64) (param $count i64) (result i64)
    (local $q i64) (local $start i64) (local $a i64) (local $n i64) (local $end i64)
    ${grows ? this.#module.trapIf(tooMany(get("$count"), size), "list is too long") : ""}
    (local.set $start ${this.#to.allocate(align, `(i64.mul ${get("$count")} (i64.const ${size}))`)})
    (local.set $q ${get("$start")})
    ${this.#copyElements(element, get("$count"))} ${get("$start")}`,
    );
    return `(call ${name} ${at} ${count})`;
  }

  // Flat values

  /** Instructions that check the value of `type` whose flat form is the expressions `flat`, which have no effects. */
  checkFlat(type: ValType, flat: readonly string[]): string {
    const leaf = this.#checkLeaf(type, this.#flatValue(flat));
    if (leaf !== undefined) return leaf;
    switch (type.kind) {
      case "list":
        return this.checkAllFlat(Array.from({ length: type.length! }, () => type.element), flat);
      case "record":
        return this.checkAllFlat(type.fields.map((field) => field.type), flat);
      case "tuple":
        return this.checkAllFlat(type.types, flat);
      case "variant":
      case "option":
      case "result": {
        const cases = casesOf(type);
        return `${this.#module.checkCase(flat[0], cases.length)} ${
          this.#arms(cases, flat[0], (payload) => this.checkFlat(payload, this.#payload(type, payload, flat)))
        }`;
      }
      default:
        return "";
    }
  }

  /** Checks consecutive values. */
  checkAllFlat(types: readonly ValType[], flat: readonly string[]): string {
    let at = 0;
    return types.map((type) => this.checkFlat(type, flat.slice(at, at += this.#flat(type, "from").length))).join(" ");
  }

  #flat(type: ValType, side: "from" | "to"): CoreType[] {
    return flatten(type, this.#pointer(side))!;
  }

  #pointer(side: "from" | "to"): PointerType {
    return (side === "from" ? this.#from : this.#to).pointer;
  }

  /** Converts the flat values of a payload from the joined flat types of its variant. */
  #payload(type: VariantType, payload: ValType, flat: readonly string[]): string[] {
    const joined = this.#flat(type, "from").slice(1);
    return this.#flat(payload, "from").map((wanted, k) => coerce(joined[k], wanted, 0, flat[k + 1]));
  }

  /** Instructions that copy a checked flat value to the locals `out`; `locals` gets the declarations of temporaries. */
  copyFlat(type: ValType, flat: readonly string[], out: readonly string[], locals: string[]): string {
    const number = NUMBERS[type.kind];
    if (number !== undefined) return `${flat[0]} ${number[2]} (local.set ${out[0]})`;
    const leaf = this.#copyLeaf(type, this.#flatValue(flat), this.#toLocals(out));
    if (leaf !== undefined) return leaf;
    switch (type.kind) {
      case "list":
        return this.copyAllFlat(Array.from({ length: type.length! }, () => type.element), flat, out, locals);
      case "record":
        return this.copyAllFlat(type.fields.map((field) => field.type), flat, out, locals);
      case "tuple":
        return this.copyAllFlat(type.types, flat, out, locals);
      case "variant":
      case "option":
      case "result":
        return `(local.set ${out[0]} ${flat[0]}) ${
          this.#arms(casesOf(type), flat[0], (payload) => this.#copyPayload(type, payload, flat, out, locals))
        }`;
      default:
        throw new Error(`Values of ${type.kind} cannot be transferred`);
    }
  }

  /** Copies consecutive values. */
  copyAllFlat(types: readonly ValType[], flat: readonly string[], out: readonly string[], locals: string[]): string {
    let at = 0;
    return types.map((type) => {
      const start = at;
      at += this.#flat(type, "from").length;
      return this.copyFlat(type, flat.slice(start, at), out.slice(start, at), locals);
    }).join(" ");
  }

  #copyPayload(
    type: VariantType,
    payload: ValType,
    flat: readonly string[],
    out: readonly string[],
    locals: string[],
  ): string {
    const joined = this.#flat(type, "to").slice(1);
    const have = this.#flat(payload, "to");
    const parts = have.map((core, k) => {
      if (core === joined[k]) return out[k + 1];
      const name = `$t${this.#module.fresh()}`;
      locals.push(`(local ${name} ${core})`);
      return name;
    });
    const copy = this.copyFlat(payload, this.#payload(type, payload, flat), parts, locals);
    const results = have.map((core, k) =>
      core === joined[k] ? "" : `(local.set ${out[k + 1]} ${coerce(joined[k], core, 1, get(parts[k]))})`
    );
    return `${copy} ${results.join(" ")}`;
  }
}

function coerce(joined: CoreType, core: CoreType, direction: 0 | 1, value: string): string {
  if (joined === core) return value;
  return COERCIONS[`${joined} ${core}`][direction].split(" ").reduce((inner, name) => `(${name} ${inner})`, value);
}

/** Whether a discriminant of `count` cases can be that of none. */
function hasBadCases(count: number): boolean {
  return count !== 2 ** (8 * discriminantBytes(count));
}

/** A condition: `count` elements of `size` bytes are more than a list may have. */
function tooMany(count: string, size: number): string {
  return `(i64.gt_u ${count} (i64.const ${Math.floor(MAX_RANGE_BYTES / size)}))`;
}

function flagsMask(count: number): number {
  return count === 32 ? -1 : 2 ** count - 1;
}

function loadOf(bytes: number): string {
  return bytes === 4 ? "i32.load" : `i32.load${8 * bytes}_u`;
}

function storeOf(bytes: number): string {
  return bytes === 4 ? "i32.store" : `i32.store${8 * bytes}`;
}
