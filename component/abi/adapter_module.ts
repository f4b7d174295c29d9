/**
 * The text of one adapter module: its traps, its functions and its accesses to the memories of the caller and the
 * callee. In: requests of the transfers that share the module. Out: declarations in the text format. Invariants: inside
 * the module every address is an i64, and every access has been checked by `check`, so that an access out of bounds is
 * a trap of the Canonical ABI and not one of the engine; names depend on the order of requests only, so that equal
 * adapters have equal texts.
 */
import { pointerBytes, type PointerType } from "./layout.ts";
import type { StringEncoding } from "../model/canon.ts";

/** The canonical options of one side of a call, as the text of the adapter depends on them. */
export interface SideOptions {
  readonly pointer: PointerType;
  readonly encoding: StringEncoding;
  readonly hasRealloc: boolean;
}

/** The functions and traps of an adapter module. */
export class AdapterModule {
  /** The messages of the traps: `$trap` gets an index. */
  readonly messages: string[] = [];
  readonly #functions: string[] = [];
  readonly #known = new Set<string>();
  #next = 0;

  /** The text of all functions. */
  get functions(): string {
    return this.#functions.join("\n  ");
  }

  /** The number of functions. */
  get size(): number {
    return this.#functions.length;
  }

  /** A new number for a name. */
  fresh(): number {
    return this.#next++;
  }

  /** The name of a function; `body` is its text after the name, which is requested once per name. */
  func(name: string, body: () => string): string {
    if (!this.#known.has(name)) {
      this.#known.add(name);
      this.#functions.push(`(func ${name} ${body()})`);
    }
    return name;
  }

  #message(text: string): number {
    const known = this.messages.indexOf(text);
    return known >= 0 ? known : this.messages.push(text) - 1;
  }

  /** Instructions that trap with `message`. */
  trap(message: string): string {
    return `(call $trap (i32.const ${this.#message(message)})) (unreachable)`;
  }

  /** Instructions that trap if the i32 `condition` is not 0. */
  trapIf(condition: string, message: string): string {
    return `(if ${condition} (then ${this.trap(message)}))`;
  }

  /** Charges the i64 `cost` to the values of the call (GuestMemory.charge). */
  charge(cost: string): string {
    const name = this.func(
      "$charge",
      () =>
        `(param $cost i64) (global.set $left (i64.sub (global.get $left) (local.get $cost))) ${
          this.trapIf("(i64.lt_s (global.get $left) (i64.const 0))", "the values of one call are too large")
        }`,
    );
    return `(call ${name} ${cost})`;
  }

  /** Traps unless the i32 `code` is a Unicode scalar value. */
  checkChar(code: string): string {
    const name = this.func("$check-char", () =>
      `(param $c i32) ${
        this.trapIf(
          `(i32.or (i32.ge_u (local.get $c) (i32.const 0x110000))
      (i32.eq (i32.and (local.get $c) (i32.const 0xfffff800)) (i32.const 0xd800)))`,
          "character is not a Unicode scalar value",
        )
      }`);
    return `(call ${name} ${code})`;
  }

  /** Traps unless the i32 `discriminant` is that of one of `count` cases. */
  checkCase(discriminant: string, count: number): string {
    return this.trapIf(`(i32.ge_u ${discriminant} (i32.const ${count}))`, "discriminant is not that of a case");
  }
}

/** The memory and the options of one side of a call. */
export class AdapterSide {
  readonly module: AdapterModule;
  /** `caller` or `callee`: the suffix of all names. */
  readonly name: string;
  readonly options: SideOptions;
  /** The name of the memory. */
  readonly memory: string;
  /** True once the text uses the memory. */
  usesMemory = false;
  /** True once the text uses `realloc`. */
  usesRealloc = false;

  constructor(module: AdapterModule, name: string, options: SideOptions) {
    this.module = module;
    this.name = name;
    this.options = options;
    this.memory = `$${name}`;
  }

  get pointer(): PointerType {
    return this.options.pointer;
  }

  /** The bytes of a pointer. */
  get pointerBytes(): number {
    return pointerBytes(this.pointer);
  }

  /** An i64 as an address or a flat pointer of this side. */
  out(value: string): string {
    return this.pointer === "i32" ? `(i32.wrap_i64 ${value})` : value;
  }

  /** An address or a flat pointer of this side as an i64. */
  in(value: string): string {
    return this.pointer === "i32" ? `(i64.extend_i32_u ${value})` : value;
  }

  #access(operation: string, base: string, offset: number): string {
    this.usesMemory = true;
    return `${operation} ${this.memory}${offset === 0 ? "" : ` offset=${offset}`} ${this.out(`(local.get ${base})`)}`;
  }

  /** Loads from the address in the local `base`. */
  load(operation: string, base: string, offset: number): string {
    return `(${this.#access(operation, base, offset)})`;
  }

  /** Stores to the address in the local `base`. */
  store(operation: string, base: string, offset: number, value: string): string {
    return `(${this.#access(operation, base, offset)} ${value})`;
  }

  /** A pointer or a length in memory as an i64. */
  loadPointer(base: string, offset: number): string {
    return this.in(this.load(`${this.pointer}.load`, base, offset));
  }

  storePointer(base: string, offset: number, value: string): string {
    return this.store(`${this.pointer}.store`, base, offset, this.out(value));
  }

  /** Traps unless the range of the i64 `bytes` at the i64 `at` is aligned and in bounds. */
  check(at: string, align: number, bytes: string, subject: string): string {
    this.usesMemory = true;
    const { module } = this;
    const bounds = module.func(
      `$in-bounds-${this.name}`,
      () =>
        `(param $p i64) (param $bytes i64) (result i32) (local $size i64)
    (local.set $size (i64.shl ${this.in(`(memory.size ${this.memory})`)} (i64.const 16)))
    (i32.and (i64.le_u (local.get $p) (local.get $size))
      (i64.le_u (local.get $bytes) (i64.sub (local.get $size) (local.get $p))))`,
    );
    const aligned = align === 1 ? "" : module.trapIf(
      `(i32.wrap_i64 (i64.and ${at} (i64.const ${align - 1})))`,
      `${subject} is not aligned`,
    );
    return `${aligned} ${
      module.trapIf(`(i32.eqz (call ${bounds} ${at} ${bytes}))`, `${subject} is out of bounds of the memory`)
    }`;
  }

  /** An expression that calls `realloc` as GuestMemory.reallocate does; all operands are i64. */
  reallocate(old: string, oldBytes: string, align: number, bytes: string): string {
    const { module } = this;
    const name = module.func(`$reallocate-${this.name}-${align}`, () => this.#reallocate(align));
    return `(call ${name} ${old} ${oldBytes} ${bytes})`;
  }

  allocate(align: number, bytes: string): string {
    return this.reallocate("(i64.const 0)", "(i64.const 0)", align, bytes);
  }

  #reallocate(align: number): string {
    const { module } = this;
    const signature = "(param $old i64) (param $old-bytes i64) (param $bytes i64) (result i64)";
    if (!this.options.hasRealloc) return `${signature} ${module.trap("the canonical options have no realloc")}`;
    this.usesRealloc = true;
    const operands = [
      this.out("(local.get $old)"),
      this.out("(local.get $old-bytes)"),
      this.out(`(i64.const ${align})`),
    ];
    const call = `(call $realloc-${this.name} ${operands.join(" ")} ${this.out("(local.get $bytes)")})`;
    return `${signature} (local $p i64)
    ${module.trapIf("(i64.gt_u (local.get $bytes) (i64.const 0xffffffff))", "allocation is too large")}
    ${this.setLeave(false)}
    (local.set $p ${this.in(call)})
    ${this.setLeave(true)}
    ${this.check("(local.get $p)", align, "(local.get $bytes)", "realloc returned a pointer that")}
    (local.get $p)`;
  }

  /** Sets whether the instance may call its imports. */
  setLeave(may: boolean): string {
    return `(i32.store8 $flags (global.get $leave-${this.name}) (i32.const ${may ? 1 : 0}))`;
  }
}

/** Copies the i64 `bytes` at the i64 `source` to the i64 `target`. */
export function copyBytes(from: AdapterSide, to: AdapterSide, target: string, source: string, bytes: string): string {
  from.usesMemory = to.usesMemory = true;
  const count = from.pointer === "i64" && to.pointer === "i64" ? bytes : `(i32.wrap_i64 ${bytes})`;
  return `(memory.copy ${to.memory} ${from.memory} ${to.out(target)} ${from.out(source)} ${count})`;
}
