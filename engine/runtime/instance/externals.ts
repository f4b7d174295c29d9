/**
 * Tables and globals as JavaScript sees them: wrappers around the runtime's tables and globals that convert values at
 * the boundary; and tags by the names of their types. Invariant: one wrapper per table or global, so that identity is
 * preserved across exports and imports.
 */
import {
  EXTERNREF,
  F32,
  F64,
  FUNCREF,
  type FuncType,
  HEAP,
  I32,
  I64,
  isRef,
  REF_SHORTHANDS,
  refType,
  V128,
  type ValType,
  valTypeName,
} from "../../wasm/types.ts";
import { inWords } from "../../base/arguments.ts";
import { canonicalFuncTypeId } from "../../wasm/subtype.ts";
import { Tag } from "../exceptions/exception.ts";
import { Global } from "./global.ts";
import { Memory } from "../memory/memory.ts";
import type { Store } from "./store.ts";
import { MAX_TABLE_ELEMENTS, Table } from "./table.ts";
import { defaultValue, readValue, type ReferenceBoundary, writeValue } from "../boundary/values.ts";
import { formatAs } from "../../host/inspect.ts";

/** Property key of the runtime's object in a wrapper. */
export const EXTERN: unique symbol = Symbol("waft.extern");

const OBJECTS = new WeakMap<object, ExternTable | ExternGlobal>();

/** The types of tables and globals that a host can name. */
const TYPES: Readonly<Record<string, ValType>> = {
  i32: I32,
  i64: I64,
  f32: F32,
  f64: F64,
  funcref: FUNCREF,
  anyfunc: FUNCREF,
  externref: EXTERNREF,
  anyref: refType(true, HEAP.any),
  eqref: refType(true, HEAP.eq),
  i31ref: refType(true, HEAP.i31),
  structref: refType(true, HEAP.struct),
  arrayref: refType(true, HEAP.array),
};

/** The types of a tag's payload. */
const PAYLOAD_TYPES: Readonly<Record<string, ValType>> = {
  i32: I32,
  i64: I64,
  f32: F32,
  f64: F64,
  v128: V128,
  ...Object.fromEntries([...REF_SHORTHANDS].map(([heap, name]) => [name, refType(true, heap)])),
};

function typeNamed(name: string, types: Readonly<Record<string, ValType>> = TYPES): ValType {
  const type = Object.hasOwn(types, name) ? types[name] : undefined;
  if (type === undefined) {
    throw new TypeError(`Unknown value type "${name}": expected one of ${Object.keys(types).join(", ")}`);
  }
  return type;
}

/** Creates a tag with a payload of the named types. Throws TypeError for an unknown name. */
export function makeTag(store: Store, parameters: readonly string[]): Tag {
  const type: FuncType = {
    kind: "func",
    params: parameters.map((name) => typeNamed(name, PAYLOAD_TYPES)),
    results: [],
  };
  return new Tag(type, canonicalFuncTypeId(type), store);
}

function limits(initial: number, maximum: number | undefined, maxInitial: number, maxMaximum: number) {
  for (const n of maximum === undefined ? [initial] : [initial, maximum]) {
    if (!Number.isInteger(n) || n < 0) throw new TypeError(`A size must be a non-negative integer, not ${inWords(n)}`);
  }
  if (initial > maxInitial) throw new RangeError(`The initial size ${initial} exceeds the limit of ${maxInitial}`);
  if (maximum !== undefined && maximum > maxMaximum) {
    throw new RangeError(`The maximum ${maximum} exceeds the limit of ${maxMaximum}`);
  }
  if (maximum !== undefined && maximum < initial) {
    throw new RangeError(`The maximum ${maximum} is less than the initial size ${initial}`);
  }
  return { address: I32, min: BigInt(initial), ...(maximum === undefined ? {} : { max: BigInt(maximum) }) };
}

/** A table of references. */
export class ExternTable {
  /** @internal */
  readonly [EXTERN]: Table;
  readonly #store: Store;

  private constructor(store: Store, table: Table) {
    this.#store = store;
    this[EXTERN] = table;
    OBJECTS.set(table, this);
  }

  /**
   * The wrapper of a runtime table.
   *
   * @internal
   */
  static of(store: Store, table: Table): ExternTable {
    return (OBJECTS.get(table) as ExternTable | undefined) ?? new ExternTable(store, table);
  }

  /** @internal */
  static make(store: Store, type: string, initial: number, maximum?: number): ExternTable {
    const element = typeNamed(type);
    if (!isRef(element)) throw new TypeError(`${type} is not a reference type`);
    const table = new Table(store.thread.contexts, {
      limits: limits(initial, maximum, MAX_TABLE_ELEMENTS, 0xffffffff),
      element,
    });
    store.sweeps.addHostObject(table);
    return new ExternTable(store, table);
  }

  /** @internal */
  static hostMemory(
    store: Store,
    initial: number,
    maximum: number | undefined,
    guarded: boolean,
    shared: boolean = false,
  ): Memory {
    if (shared && maximum === undefined) throw new TypeError("A shared memory requires a maximum");
    return new Memory(store.thread.host, { limits: limits(initial, maximum, 0x10000, 0x10000), shared }, { guarded });
  }

  /** The number of elements. */
  get length(): number {
    return this[EXTERN].length;
  }

  /** Returns the element at `index`. Throws RangeError if the index is out of bounds. */
  get(index: number): unknown {
    const table = this[EXTERN];
    this.#check(index);
    const value = this.#store.fromWord(table.get(index), table.type.element, table);
    table.watcher?.read(index, value);
    return value;
  }

  /**
   * Sets the element at `index`. Throws RangeError if the index is out of bounds, TypeError if the value does not have
   * the element type.
   */
  set(index: number, value: unknown): void {
    this.#check(index);
    this[EXTERN].set(index, this.#word(value));
    this[EXTERN].watcher?.wrote(index);
  }

  /**
   * Grows the table by `delta` elements with the given value. Returns the previous length. Throws TypeError unless
   * `delta` is a non-negative integer and the value has the element type, RangeError if the table cannot grow that far.
   */
  grow(delta: number, value: unknown = null): number {
    if (!Number.isInteger(delta) || delta < 0) {
      throw new TypeError(`The number of elements to grow by must be a non-negative integer, not ${inWords(delta)}`);
    }
    const old = this[EXTERN].grow(delta, this.#word(value));
    if (old < 0) throw new RangeError(`The table cannot grow by ${delta} elements`);
    for (let k = 0; k < delta; k++) this[EXTERN].watcher?.wrote(old + k);
    return old;
  }

  #word(value: unknown): number {
    const table = this[EXTERN];
    this.#store.sweeps.relieveHost();
    return this.#store.toWord(value, table.type.element, table);
  }

  #check(index: number): void {
    if (!Number.isInteger(index) || index < 0 || index >= this.length) {
      throw new RangeError(`Index ${inWords(index)} is out of bounds: the table has ${this.length} elements`);
    }
  }
}

formatAs(
  ExternTable.prototype,
  (table) => `ExternTable { length: ${table.length}, ${valTypeName(table[EXTERN].type.element)} }`,
);

/** A global variable. */
export class ExternGlobal {
  /** @internal */
  readonly [EXTERN]: Global;
  readonly #store: Store;
  readonly #boundary: ReferenceBoundary;

  private constructor(store: Store, global: Global) {
    this.#store = store;
    this.#boundary = {
      toWord: (value, type) => store.toWord(value, type, global),
      fromWord: (word, type) => store.fromWord(word, type, global),
    };
    this[EXTERN] = global;
    OBJECTS.set(global, this);
  }

  /**
   * The wrapper of a runtime global.
   *
   * @internal
   */
  static of(store: Store, global: Global): ExternGlobal {
    return (OBJECTS.get(global) as ExternGlobal | undefined) ?? new ExternGlobal(store, global);
  }

  /** @internal */
  static make(store: Store, typeName: string, mutable: boolean, value: unknown): ExternGlobal {
    const type = typeNamed(typeName);
    if (typeof mutable !== "boolean") {
      throw new TypeError(`The mutability of a global must be true or false, not ${inWords(mutable)}`);
    }
    if (isRef(type)) store.sweeps.relieveHost();
    const block = store.thread.contexts.allocate(16);
    const initial = value === undefined ? defaultValue(type) : value;
    const global = new Global({ type, mutable }, block.region, block.offset, block);
    const made = new ExternGlobal(store, global);
    writeValue(block.region, block.offset, type, initial, made.#boundary);
    store.sweeps.addHostObject(global);
    return made;
  }

  /** The type in the notation of the text format, prefixed with `mut ` if the global is mutable. */
  get type(): string {
    return `${this[EXTERN].type.mutable ? "mut " : ""}${valTypeName(this[EXTERN].type.type)}`;
  }

  /** The value: a number, a bigint for an i64, or a reference. Reading throws TypeError for a v128. */
  get value(): unknown {
    const { region, offset, type, watcher } = this[EXTERN];
    const value = readValue(region, offset, type.type, this.#boundary);
    watcher?.read(value);
    return value;
  }

  /** Throws TypeError if the global is immutable or the value does not have its type. */
  set value(value: unknown) {
    const { region, offset, type } = this[EXTERN];
    if (isRef(type.type)) this.#store.sweeps.relieveHost();
    if (!type.mutable) throw new TypeError("The global is immutable");
    writeValue(region, offset, type.type, value, this.#boundary);
  }
}

formatAs(ExternGlobal.prototype, ({ type }) => `ExternGlobal { ${type} }`);
