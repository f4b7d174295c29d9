/**
 * Tables and globals as JavaScript sees them: thin objects over the runtime's own that convert values at the boundary. One object per table or
 * global, so that identity holds across exports and imports.
 */
import {
  EXTERNREF,
  F32,
  F64,
  FUNCREF,
  HEAP,
  heapOf,
  I32,
  I64,
  isRef,
  refType,
  type ValType,
  valTypeName,
} from "../../wasm/types.ts";
import { inWords } from "../../base/arguments.ts";
import { topHeap } from "../../wasm/subtype.ts";
import { Global } from "./global.ts";
import { Memory } from "../memory/memory.ts";
import type { Store } from "./store.ts";
import { MAX_TABLE_ELEMENTS, Table } from "./table.ts";
import { defaultValue, readValue, type ReferenceBoundary, writeValue } from "../boundary/values.ts";

/** Key under which an external object holds the runtime's object. */
export const EXTERN: unique symbol = Symbol("waft.extern");

const OBJECTS = new WeakMap<object, ExternTable | ExternGlobal>();

/** Types that a host may name. */
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

function typeNamed(name: string): ValType {
  const type = Object.hasOwn(TYPES, name) ? TYPES[name] : undefined;
  if (type === undefined) throw new TypeError(`"${name}" is not one of ${Object.keys(TYPES).join(", ")}`);
  return type;
}

function limits(initial: number, maximum: number | undefined, most: number, mostMaximum: number) {
  for (const n of maximum === undefined ? [initial] : [initial, maximum]) {
    if (!Number.isInteger(n) || n < 0) throw new TypeError(`A size must be a non-negative integer, not ${inWords(n)}`);
  }
  if (initial > most) throw new RangeError(`Initial size ${initial} is larger than ${most}`);
  if (maximum !== undefined && maximum > mostMaximum) {
    throw new RangeError(`Maximum ${maximum} is larger than ${mostMaximum}`);
  }
  if (maximum !== undefined && maximum < initial) {
    throw new RangeError(`Maximum ${maximum} is less than initial ${initial}`);
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
   * The object of a runtime table.
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
    store.addHostObject(table);
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
    if (shared && maximum === undefined) throw new TypeError("A shared memory needs a maximum");
    return new Memory(store.thread.host, { limits: limits(initial, maximum, 0x10000, 0x10000), shared }, { guarded });
  }

  /** Number of elements. */
  get length(): number {
    return this[EXTERN].length;
  }

  /** The element at `index`. Throws RangeError when there is none. */
  get(index: number): unknown {
    const table = this[EXTERN];
    this.#check(index);
    return this.#store.fromWord(table.get(index), table.type.element, table);
  }

  /** Sets the element at `index`; throws RangeError for an index, TypeError for a value that does not fit. */
  set(index: number, value: unknown): void {
    this.#check(index);
    this[EXTERN].set(index, this.#word(value));
  }

  /** Grows by `delta` elements and returns the old length. Throws RangeError when that cannot be. */
  grow(delta: number, value: unknown = null): number {
    if (!Number.isInteger(delta) || delta < 0) {
      throw new TypeError(`A size must be a non-negative integer, not ${inWords(delta)}`);
    }
    const old = this[EXTERN].grow(delta, this.#word(value));
    if (old < 0) throw new RangeError(`The table cannot grow by ${delta} elements`);
    return old;
  }

  #word(value: unknown): number {
    const table = this[EXTERN];
    const word = this.#store.toWord(value, table.type.element, table);
    if (word !== 0 && topHeap(heapOf(table.type.element)) === HEAP.func) table.keep(this.#store.ownerOfRecord(word));
    return word;
  }

  #check(index: number): void {
    if (!Number.isInteger(index) || index < 0 || index >= this.length) {
      throw new RangeError(`Index ${inWords(index)} is not in a table of ${this.length} elements`);
    }
  }
}

/** A global variable. */
export class ExternGlobal {
  /** @internal */
  readonly [EXTERN]: Global;
  readonly #boundary: ReferenceBoundary;

  private constructor(store: Store, global: Global) {
    this.#boundary = {
      toWord: (value, type) => store.toWord(value, type, global),
      fromWord: (word, type) => store.fromWord(word, type, global),
    };
    this[EXTERN] = global;
    OBJECTS.set(global, this);
  }

  /**
   * The object of a runtime global.
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
      throw new TypeError(`A global is mutable or not: true or false, not ${inWords(mutable)}`);
    }
    const block = store.thread.contexts.allocate(16);
    const initial = value === undefined ? defaultValue(type) : value;
    const global = new Global({ type, mutable }, block.region, block.offset, block);
    const made = new ExternGlobal(store, global);
    writeValue(block.region, block.offset, type, initial, made.#boundary);
    store.addHostObject(global);
    return made;
  }

  /** Its type in the text format's words, `mut` before it if it is mutable. */
  get type(): string {
    return `${this[EXTERN].type.mutable ? "mut " : ""}${valTypeName(this[EXTERN].type.type)}`;
  }

  /** Its value: a number, a bigint for an i64, or a reference. */
  get value(): unknown {
    const { region, offset, type } = this[EXTERN];
    return readValue(region, offset, type.type, this.#boundary);
  }

  /** Throws TypeError when the global is immutable or the value does not fit. */
  set value(value: unknown) {
    const { region, offset, type } = this[EXTERN];
    if (!type.mutable) throw new TypeError("The global is immutable");
    writeValue(region, offset, type.type, value, this.#boundary);
    this[EXTERN].keepOwner(value);
  }
}
