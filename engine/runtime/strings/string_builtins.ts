/**
 * The builtins of "wasm:js-string" in one JavaScript realm: first as services of the runtime, like host functions; then, when they have been called
 * often enough to be worth it, as machine code (string_code.ts), which leaves to the services what it cannot do. In: instances that were
 * linked with them. Out: what their code calls, in the records of their contexts (context_layout.ts: STRINGS).
 *
 * Invariant: whoever calls a builtin, and whenever, gets the same result or trap; only the time differs.
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

/** So many calls cost as much as making the machine code. */
const CALLS_WITHOUT_CODE = 32768;
/** How many arguments String.fromCharCode is given at once. */
const CHUNK = 4096;
/** How many uses of one unit (StringMemory.wanted) it is worth to be asked for all of a text. */
const USES_OF_WHOLE = 64;
const USES_OF_START = 16;

/** What imports "wasm:js-string" `name` when the options of a compilation provide it. */
export const STRING_FUNCTIONS: Readonly<Record<StringBuiltin, () => never>> = Object.fromEntries(
  STRING_BUILTIN_NAMES.map((name) => [name, () => {
    throw new TypeError(`The builtin ${name} can only be imported`);
  }]),
) as Record<StringBuiltin, () => never>;

const NAMES = new Map<unknown, StringBuiltin>(STRING_BUILTIN_NAMES.map((name) => [STRING_FUNCTIONS[name], name]));

/** The builtin that an import value stands for. */
export function stringBuiltinOf(value: unknown): StringBuiltin | undefined {
  return NAMES.get(value);
}

const at = (slot: number) => THREAD.SLOTS + slot * THREAD.SLOT_SIZE;

/** The machine code of the builtins, by name: a function record each. */
export interface StringCode {
  records: Readonly<Record<StringBuiltin, { code: number; context: number }>>;
  /** Frees handles of machine code: see StringMemory.sweep. */
  sweep: () => void;
  /** What must live as long. */
  kept: unknown;
}

/** What the builtins need of the store. */
export interface StringRuntime {
  readonly thread: GuestThread;
  /** Frees host handles that nothing holds, if there are too many. */
  relieve(): void;
  /** The error of a trap that a builtin raises. */
  trapInBuiltin(message: string): Error;
}

/** What the builtins need of an instance that imports them. */
export interface StringInstance {
  readonly module: { readonly layout: ContextLayout; readonly valid: ValidModule };
  readonly region: NativeRegion;
  /** Its VM context, at `offset` in `region`. */
  readonly block: { readonly offset: number };
  /** Offset in `region` of the record of function `index`. */
  recordOffset(index: number): number;
}

export class StringBuiltins {
  readonly #store: StringRuntime;
  /** Makes the machine code callable, with the control area at address `control` and `services` for what it leaves. */
  readonly #makeCode: (control: number, services: (name: StringBuiltin) => HostService) => StringCode;
  readonly #services = new Map<StringBuiltin, HostService>();
  /** Instances whose code calls the services as long as there is no machine code. */
  #waiting: WeakRef<StringInstance>[] = [];
  #mostWaiting = 16;
  #calls = 0;
  #memory: StringMemory | undefined;
  #code: StringCode | undefined;
  /** STRINGS.ORIGIN of a table that knows nothing. */
  #nothing = 0;

  constructor(
    store: StringRuntime,
    makeCode: (control: number, services: (name: StringBuiltin) => HostService) => StringCode,
  ) {
    this.#store = store;
    this.#makeCode = makeCode;
  }

  /** Is there machine code? */
  get isOpen(): boolean {
    return this.#code !== undefined;
  }

  /** What serves an import of `name`. */
  service(name: StringBuiltin): HostService {
    let service = this.#services.get(name);
    if (service === undefined) this.#services.set(name, service = this.#makeService(name, false));
    return service;
  }

  /** Fills what the context of a new instance has of strings; the records of its imports are there. */
  link(instance: StringInstance, isBuiltin: (funcIndex: number, name: StringBuiltin) => boolean): void {
    const { region, block, module: { layout, valid } } = instance;
    const imports = stringImports(valid);
    let provided = true;
    STRING_BUILTIN_NAMES.forEach((name, k) => {
      if (imports[k]! < 0) return;
      const record = instance.recordOffset(imports[k]!);
      const to = block.offset + layout.stringsOffset + STRINGS.RECORDS + k * RECORD.SIZE;
      region.u8.copyWithin(to, record, record + RECORD.SIZE);
      if (!isBuiltin(imports[k]!, name)) provided = false;
    });
    region.setWord(block.offset + layout.stringsOffset + STRINGS.ORIGIN, this.#originOfNothing());
    if (!provided) return;
    if (this.#code !== undefined) this.#connect(instance, this.#code);
    else this.#wait(instance);
  }

  #wait(instance: StringInstance): void {
    this.#waiting.push(new WeakRef(instance));
    if (this.#waiting.length < this.#mostWaiting) return;
    this.#waiting = this.#waiting.filter((ref) => ref.deref() !== undefined);
    this.#mostWaiting = Math.max(16, this.#waiting.length * 2);
  }

  /** Makes the machine code, and lets everybody use it. */
  open(): void {
    if (this.#code !== undefined) return;
    const { thread } = this.#store;
    const memory = new StringMemory(thread.host);
    const code = this.#makeCode(memory.control, (name) => this.#makeService(name, true));
    memory.sweepLent = code.sweep;
    thread.handles.shareStrings(memory);
    this.#memory = memory;
    this.#code = code;
    for (const ref of this.#waiting) {
      const instance = ref.deref();
      if (instance !== undefined) this.#connect(instance, this.#code);
    }
    this.#waiting = [];
  }

  /** Without address space, everything stays as it is. */
  #tryToOpen(): void {
    try {
      this.open();
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
  }

  #originOfNothing(): number {
    if (this.#nothing !== 0) return this.#nothing;
    const { host, handles } = this.#store.thread;
    const { address, capacity } = reserveEntries(host, PROT.READ);
    try {
      handles.limit(capacity);
    } catch (error) {
      host.release(address, capacity * STRING_ENTRY.SIZE);
      throw error;
    }
    return this.#nothing = address;
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

  /** `again`: may say so to machine code, which can do it once text and handles are there. */
  #makeService(name: StringBuiltin, again: boolean): HostService {
    const work = this.#works[name];
    const service = () => {
      this.#store.relieve();
      if (++this.#calls === CALLS_WITHOUT_CODE) this.#tryToOpen();
      work(again);
      return undefined;
    };
    return Object.assign(service, {
      deliver: () => {},
      label: `"${STRING_MODULE}" "${name}"`,
      takesPromise: STRING_BUILTINS[name].endsWith("s"),
    });
  }

  /** What each does, with arguments and result in the slots of the thread state. */
  readonly #works: Readonly<Record<StringBuiltin, (again: boolean) => void>> = {
    cast: () => void this.#text(0),
    test: () => this.#returnInt(typeof this.#value(0) === "string" ? 1 : 0),
    length: () => this.#returnInt(this.#text(0).length),
    charCodeAt: () => this.#returnInt(this.#indexed().charCodeAt(this.#int(1))),
    codePointAt: () => this.#returnInt(this.#indexed().codePointAt(this.#int(1))!),
    equals: (again) => this.#equals(again),
    compare: (again) => this.#compare(again),
    concat: (again) => this.#concat(again),
    substring: (again) => this.#substring(again),
    fromCharCode: (again) => this.#returnNew(again, () => String.fromCharCode(this.#int(0))),
    fromCodePoint: (again) => {
      const code = this.#int(0);
      if (code > 0x10ffff) throw this.#store.trapInBuiltin("invalid code point");
      this.#returnNew(again, () => String.fromCodePoint(code));
    },
    fromCharCodeArray: (again) => {
      const units = this.#elements(0, this.#int(1), this.#int(2));
      this.#returnNew(again && units.length > 0 && units.length <= MAX_COPIED, () => textOf(units));
    },
    intoCharCodeArray: (again) => this.#intoArray(again),
  };

  #equals(again: boolean): void {
    if (again && this.#areThere(2, USES_OF_WHOLE)) return this.#returnInt(RETRY.i32);
    const [a, b] = [this.#value(0), this.#value(1)];
    if (a !== null) this.#text(0);
    if (b !== null) this.#text(1);
    this.#returnInt(a === b ? 1 : 0);
  }

  #compare(again: boolean): void {
    if (again && this.#areThere(2, USES_OF_START)) return this.#returnInt(RETRY.i32);
    const [a, b] = [this.#text(0), this.#text(1)];
    this.#returnInt(a === b ? 0 : a < b ? -1 : 1);
  }

  #concat(again: boolean): void {
    const short = again && this.#length(0) + this.#length(1) <= MAX_JOINED;
    this.#returnNew(short && this.#areThere(2, USES_OF_WHOLE), () => this.#text(0) + this.#text(1));
  }

  #substring(again: boolean): void {
    const [from, to] = [this.#int(1), this.#int(2)];
    const units = Math.min(to, this.#length(0)) - from;
    const there = again && units <= MAX_JOINED && this.#areThere(1, 1 + Math.max(0, units >> 6));
    this.#returnNew(there, () => {
      const text = this.#text(0);
      return from > to || from > text.length ? "" : text.substring(from, to);
    });
  }

  #intoArray(again: boolean): void {
    const text = this.#text(0);
    const start = this.#int(2);
    const units = this.#elements(1, start, start + text.length);
    if (again && this.#areThere(1, 1 + (text.length >> 7))) return this.#returnInt(RETRY.i32);
    for (let k = 0; k < text.length; k++) units[k] = text.charCodeAt(k);
    this.#returnInt(text.length);
  }

  #value(slot: number): unknown {
    const word = this.#store.thread.state.word(at(slot));
    // Other references than host values are no strings, whatever they are.
    return word === 0
      ? null
      : this.#store.thread.handles.owns(word)
      ? this.#store.thread.handles.valueOf(word)
      : undefined;
  }

  #text(slot: number): string {
    const value = this.#value(slot);
    if (typeof value !== "string") throw this.#store.trapInBuiltin("illegal cast");
    return value;
  }

  /** The argument at `slot`, as an unsigned number. */
  #int(slot: number): number {
    return this.#store.thread.state.u32[at(slot) >> 2]!;
  }

  #returnInt(value: number): void {
    this.#store.thread.state.i32[at(0) >> 2] = value;
  }

  /** The first argument, of which the second is an index. */
  #indexed(): string {
    const text = this.#text(0);
    if (this.#int(1) >= text.length) throw this.#store.trapInBuiltin("string index out of bounds");
    this.#areThere(1, 1);
    return text;
  }

  /** Length of the string at `slot`; NaN when it is none, or nothing is known. */
  #length(slot: number): number {
    return this.#memory?.lengthOf(this.#store.thread.state.word(at(slot))) ?? NaN;
  }

  /** Sees to the text of the first `count` arguments where that pays (StringMemory.wanted). Is it there? */
  #areThere(count: number, uses: number): boolean {
    const { handles, state } = this.#store.thread;
    let there = true;
    for (let slot = 0; slot < count; slot++) {
      if (Number.isNaN(this.#length(slot))) return false;
      const word = state.word(at(slot));
      if (!this.#memory!.has(word)) there = this.#memory!.wanted(word, handles.valueOf(word) as string, uses) && there;
    }
    return there;
  }

  /** The elements `from` to `to` of the array at `slot`, in place. */
  #elements(slot: number, from: number, to: number): Uint16Array {
    const { thread } = this.#store;
    const address = thread.state.word(at(slot));
    if (address === 0) throw this.#store.trapInBuiltin("null array reference");
    const length = new Uint32Array(thread.host.view(address + OBJECT.LENGTH, 4))[0]!;
    if (from > to || to > length) throw this.#store.trapInBuiltin("out of bounds array access");
    return from === to
      ? new Uint16Array(0)
      : new Uint16Array(thread.host.view(address + OBJECT.FIELDS + from * 2, (to - from) * 2));
  }

  /** Returns a new string; `again`: machine code can make it, when it has handles and room. */
  #returnNew(again: boolean, make: () => string): void {
    const { thread } = this.#store;
    if (again && this.#memory?.ready === true) return thread.state.setWord(at(0), RETRY.i64);
    thread.state.setWord(at(0), thread.handles.handleOf(make()));
    if (thread.handles.full) thread.sweepDue = true;
  }
}

/** The string of some units. */
function textOf(units: Uint16Array): string {
  let text = "";
  for (let from = 0; from < units.length; from += CHUNK) {
    text += Reflect.apply(String.fromCharCode, undefined, units.subarray(from, from + CHUNK)) as string;
  }
  return text;
}
