/**
 * The builtins of "wasm:js-string" in one JavaScript realm. They start as services of the runtime, like host functions;
 * once they have been called often enough, machine code replaces them (string_code.ts) and falls back to the services
 * for the cases it does not handle. In: instances that import builtins. Out: the function records in their contexts
 * through which their code calls builtins (context_layout.ts: STRINGS).
 *
 * Invariant: both implementations return the same results and raise the same traps; only the speed differs.
 */
import { RECORD, STRINGS, THREAD } from "../../abi/context_layout.ts";
import { OBJECT } from "../../abi/gc_layout.ts";
import { PROT } from "../../host/host.ts";
import {
  MAX_COPIED,
  MAX_JOINED,
  RETRY,
  STRING_BUILTIN_NAMES,
  STRING_BUILTINS,
  STRING_ENTRY,
  STRING_MODULE,
  type StringBuiltin,
} from "../../abi/string_layout.ts";
import { stringImports } from "../../wasm/string_imports.ts";
import type { HostService } from "../boundary/marshal.ts";
import type { GuestThread } from "../thread/guest_thread.ts";
import type { ContextLayout } from "../../abi/context_layout.ts";
import type { ValidModule } from "../../validate/valid_module.ts";
import type { NativeRegion } from "../memory/native_region.ts";
import { reserveEntries, StringMemory } from "../boundary/string_memory.ts";
import {
  charCodeOf,
  codePointOf,
  fromCharCode,
  fromCodePoint,
  substringOf,
  textOfUnits,
} from "../boundary/string_methods.ts";

/** The number of calls whose cost equals that of making the machine code. */
const CALLS_WITHOUT_CODE = 32768;
/** Maximum number of arguments per call of String.fromCharCode. */
const CHUNK = 4096;
/**
 * The weights of requests for a whole text and for the start of a text (StringMemory.request); a request for one unit
 * has weight 1.
 */
const USES_OF_WHOLE = 64;
const USES_OF_START = 16;

/**
 * The values that import "wasm:js-string" `name` if the compile options provide the builtins; they cannot be called.
 */
export const STRING_FUNCTIONS: Readonly<Record<StringBuiltin, () => never>> = Object.fromEntries(
  STRING_BUILTIN_NAMES.map((name) => [name, () => {
    throw new TypeError(`The builtin ${name} can only be imported`);
  }]),
) as Record<StringBuiltin, () => never>;

const NAMES = new Map<unknown, StringBuiltin>(STRING_BUILTIN_NAMES.map((name) => [STRING_FUNCTIONS[name], name]));

/** The builtin that an import value represents. */
export function stringBuiltinOf(value: unknown): StringBuiltin | undefined {
  return NAMES.get(value);
}

const at = (slot: number) => THREAD.SLOTS + slot * THREAD.SLOT_SIZE;

/** The machine code of the builtins: code and context for a function record per name. */
export interface StringCode {
  records: Readonly<Record<StringBuiltin, { code: number; context: number }>>;
  /** Frees handles of machine code; see StringMemory.sweep. */
  sweep: () => void;
  /** The owner of the code, which must stay reachable. */
  owner: unknown;
}

/** The parts of the store that the builtins use. */
interface StringRuntime {
  readonly thread: GuestThread;
  /** Frees unreachable host handles if there are too many. */
  readonly sweeps: { relieve(): void };
  /** Makes the error of a trap that a builtin raises. */
  readonly traps: { inBuiltin(message: string): Error };
}

/** The parts of an importing instance that the builtins use. */
interface StringInstance {
  readonly module: { readonly layout: ContextLayout; readonly valid: ValidModule };
  readonly region: NativeRegion;
  /** The VM context, at `offset` in `region`. */
  readonly block: { readonly offset: number };
  /** The offset in `region` of the function record of function `index`. */
  recordOffset(index: number): number;
}

/** The builtins of one store. */
export class StringBuiltins {
  readonly #store: StringRuntime;
  /** Instantiates the machine code with the control area at address `control` and `services` for the fallbacks. */
  readonly #makeCode: (control: number, services: (name: StringBuiltin) => HostService) => StringCode;
  readonly #services = new Map<StringBuiltin, HostService>();
  /** Instances whose code calls the services until there is machine code. */
  #waiting: WeakRef<StringInstance>[] = [];
  #maxWaiting = 16;
  #calls = 0;
  #memory: StringMemory | undefined;
  /** Memory for the machine code, kept for the next attempt if making the code fails. */
  #spareMemory: StringMemory | undefined;
  #code: StringCode | undefined;
  /** The value of STRINGS.ORIGIN for an empty table; 0 until the table is reserved. */
  #emptyOrigin = 0;

  constructor(
    store: StringRuntime,
    makeCode: (control: number, services: (name: StringBuiltin) => HostService) => StringCode,
  ) {
    this.#store = store;
    this.#makeCode = makeCode;
  }

  /** True once there is machine code. */
  get isOpen(): boolean {
    return this.#code !== undefined;
  }

  /** The service for an import of `name`. */
  service(name: StringBuiltin): HostService {
    let service = this.#services.get(name);
    if (service === undefined) this.#services.set(name, service = this.#makeService(name, false));
    return service;
  }

  /** Initializes the string section of the context of a new instance, whose import records are already filled. */
  link(instance: StringInstance, isBuiltin: (funcIndex: number, name: StringBuiltin) => boolean): void {
    const { region, block, module: { layout, valid } } = instance;
    const imports = stringImports(valid);
    let provided = true;
    STRING_BUILTIN_NAMES.forEach((name, k) => {
      if (imports[k] < 0) return;
      const record = instance.recordOffset(imports[k]);
      const to = block.offset + layout.stringsOffset + STRINGS.RECORDS + k * RECORD.SIZE;
      region.u8.copyWithin(to, record, record + RECORD.SIZE);
      if (!isBuiltin(imports[k], name)) provided = false;
    });
    region.setWord(block.offset + layout.stringsOffset + STRINGS.ORIGIN, this.#emptyTableOrigin());
    if (!provided) return;
    if (this.#code !== undefined) this.#connect(instance, this.#code);
    else this.#wait(instance);
  }

  #wait(instance: StringInstance): void {
    this.#waiting.push(new WeakRef(instance));
    if (this.#waiting.length < this.#maxWaiting) return;
    this.#waiting = this.#waiting.filter((ref) => ref.deref() !== undefined);
    this.#maxWaiting = Math.max(16, this.#waiting.length * 2);
  }

  /** Makes the machine code and installs it in all instances. */
  open(): void {
    if (this.#code !== undefined) return;
    const { thread } = this.#store;
    const memory = this.#spareMemory ??= thread.host.releasingOnError(() => new StringMemory(thread.host));
    const code = this.#makeCode(memory.control, (name) => this.#makeService(name, true));
    memory.sweepNative = code.sweep;
    thread.handles.shareStrings(memory);
    this.#memory = memory;
    this.#code = code;
    for (const ref of this.#waiting) {
      const instance = ref.deref();
      if (instance !== undefined) this.#connect(instance, this.#code);
    }
    this.#waiting = [];
  }

  /** Makes the machine code. Without address space for its tables, the services stay in use. */
  #tryToOpen(): void {
    try {
      this.open();
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
  }

  #emptyTableOrigin(): number {
    if (this.#emptyOrigin !== 0) return this.#emptyOrigin;
    const { host, handles } = this.#store.thread;
    const { address, capacity } = reserveEntries(host, PROT.READ);
    try {
      handles.limit(capacity);
    } catch (error) {
      host.release(address, capacity * STRING_ENTRY.SIZE);
      throw error;
    }
    return this.#emptyOrigin = address;
  }

  #connect(instance: StringInstance, { records }: StringCode): void {
    const { region, block, module: { layout } } = instance;
    const from = block.offset + layout.stringsOffset;
    region.setWord(from + STRINGS.ORIGIN, this.#memory!.origin);
    STRING_BUILTIN_NAMES.forEach((name, k) => {
      const record = from + STRINGS.RECORDS + k * RECORD.SIZE;
      region.setWord(record + RECORD.CODE, records[name].code);
      region.setWord(record + RECORD.CONTEXT, records[name].context);
    });
  }

  /**
   * Creates the service of `name`. If `canRetry`, the service may supply missing text or handles and ask its caller,
   * machine code, to retry.
   */
  #makeService(name: StringBuiltin, canRetry: boolean): HostService {
    const work = this.#works[name];
    const service = () => {
      this.#store.sweeps.relieve();
      if (++this.#calls === CALLS_WITHOUT_CODE) this.#tryToOpen();
      work(canRetry);
      return undefined;
    };
    return Object.assign(service, {
      deliver: () => {},
      label: `"${STRING_MODULE}" "${name}"`,
      takesPromise: STRING_BUILTINS[name].endsWith("s"),
    });
  }

  /** The implementations, with arguments and result in the slots of the thread state. */
  readonly #works: Readonly<Record<StringBuiltin, (canRetry: boolean) => void>> = {
    cast: () => void this.#text(0),
    test: () => this.#returnInt(typeof this.#value(0) === "string" ? 1 : 0),
    length: () => this.#returnInt(this.#text(0).length),
    charCodeAt: () => this.#returnInt(charCodeOf(this.#indexed(), this.#int(1))),
    codePointAt: () => this.#returnInt(codePointOf(this.#indexed(), this.#int(1))!),
    equals: (canRetry) => this.#equals(canRetry),
    compare: (canRetry) => this.#compare(canRetry),
    concat: (canRetry) => this.#concat(canRetry),
    substring: (canRetry) => this.#substring(canRetry),
    fromCharCode: (canRetry) => this.#returnNew(canRetry, () => fromCharCode(this.#int(0))),
    fromCodePoint: (canRetry) => {
      const code = this.#int(0);
      if (code > 0x10ffff) throw this.#store.traps.inBuiltin("invalid code point");
      this.#returnNew(canRetry, () => fromCodePoint(code));
    },
    fromCharCodeArray: (canRetry) => {
      const units = this.#elements(0, this.#int(1), this.#int(2));
      this.#returnNew(canRetry && units.length > 0 && units.length <= MAX_COPIED, () => textOf(units));
    },
    intoCharCodeArray: (canRetry) => this.#intoArray(canRetry),
  };

  #equals(canRetry: boolean): void {
    if (canRetry && this.#hasTexts(2, USES_OF_WHOLE)) return this.#returnInt(RETRY.i32);
    const [a, b] = [this.#value(0), this.#value(1)];
    if (a !== null) this.#text(0);
    if (b !== null) this.#text(1);
    this.#returnInt(a === b ? 1 : 0);
  }

  #compare(canRetry: boolean): void {
    if (canRetry && this.#hasTexts(2, USES_OF_START)) return this.#returnInt(RETRY.i32);
    const [a, b] = [this.#text(0), this.#text(1)];
    this.#returnInt(a === b ? 0 : a < b ? -1 : 1);
  }

  #concat(canRetry: boolean): void {
    const short = canRetry && this.#length(0) + this.#length(1) <= MAX_JOINED;
    this.#returnNew(short && this.#hasTexts(2, USES_OF_WHOLE), () => this.#text(0) + this.#text(1));
  }

  #substring(canRetry: boolean): void {
    const [from, to] = [this.#int(1), this.#int(2)];
    const units = Math.min(to, this.#length(0)) - from;
    const there = canRetry && units <= MAX_JOINED && this.#hasTexts(1, 1 + Math.max(0, units >> 6));
    this.#returnNew(there, () => {
      const text = this.#text(0);
      return from > to || from > text.length ? "" : substringOf(text, from, to);
    });
  }

  #intoArray(canRetry: boolean): void {
    const text = this.#text(0);
    const start = this.#int(2);
    const units = this.#elements(1, start, start + text.length);
    if (canRetry && this.#hasTexts(1, 1 + (text.length >> 7))) return this.#returnInt(RETRY.i32);
    for (let k = 0; k < text.length; k++) units[k] = charCodeOf(text, k);
    this.#returnInt(text.length);
  }

  #value(slot: number): unknown {
    const word = this.#store.thread.state.word(at(slot));
    // References of all kinds other than host values are not strings.
    return word === 0
      ? null
      : this.#store.thread.handles.owns(word)
      ? this.#store.thread.handles.valueOf(word)
      : undefined;
  }

  #text(slot: number): string {
    const value = this.#value(slot);
    if (typeof value !== "string") throw this.#store.traps.inBuiltin("illegal cast");
    return value;
  }

  /** The argument at `slot` as an unsigned integer. */
  #int(slot: number): number {
    return this.#store.thread.state.u32[at(slot) >> 2];
  }

  #returnInt(value: number): void {
    this.#store.thread.state.i32[at(0) >> 2] = value;
  }

  /** The first argument, into which the second is an index. Traps if the index is out of bounds. */
  #indexed(): string {
    const text = this.#text(0);
    if (this.#int(1) >= text.length) throw this.#store.traps.inBuiltin("string index out of bounds");
    this.#hasTexts(1, 1);
    return text;
  }

  /** The length of the string at `slot`; NaN if it is unknown or not a string. */
  #length(slot: number): number {
    return this.#memory?.lengthOf(this.#store.thread.state.word(at(slot))) ?? NaN;
  }

  /** Requests the texts of the first `count` arguments (StringMemory.request). Returns whether all are in the arena. */
  #hasTexts(count: number, uses: number): boolean {
    const { handles, state } = this.#store.thread;
    let there = true;
    for (let slot = 0; slot < count; slot++) {
      if (Number.isNaN(this.#length(slot))) return false;
      const word = state.word(at(slot));
      if (!this.#memory!.has(word)) there = this.#memory!.request(word, handles.valueOf(word) as string, uses) && there;
    }
    return there;
  }

  /** A view of the elements `from` to `to` of the array at `slot`. Traps if the range is out of bounds. */
  #elements(slot: number, from: number, to: number): Uint16Array {
    const { thread } = this.#store;
    const address = thread.state.word(at(slot));
    if (address === 0) throw this.#store.traps.inBuiltin("null array reference");
    const length = new Uint32Array(thread.host.view(address + OBJECT.LENGTH, 4))[0];
    if (from > to || to > length) throw this.#store.traps.inBuiltin("out of bounds array access");
    return from === to
      ? new Uint16Array(0)
      : new Uint16Array(thread.host.view(address + OBJECT.FIELDS + from * 2, (to - from) * 2));
  }

  /** Returns a new string; if `canRetry` and machine code has handles and space now, asks it to make the string. */
  #returnNew(canRetry: boolean, make: () => string): void {
    const { thread } = this.#store;
    if (canRetry && this.#memory?.ready === true) return thread.state.setWord(at(0), RETRY.i64);
    thread.state.setWord(at(0), thread.handles.handleOf(make()));
    if (thread.handles.full) thread.attention.sweepDue = true;
  }
}

/** The string of the given units. */
function textOf(units: Uint16Array): string {
  let text = "";
  for (let from = 0; from < units.length; from += CHUNK) {
    text += textOfUnits(units.subarray(from, from + CHUNK));
  }
  return text;
}
