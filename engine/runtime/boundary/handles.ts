/**
 * A handle table: JavaScript values that compiled code refers to by number. One table holds host values (externref, and
 * anyref converted from it), another holds exceptions (exnref). In: a value. Out: a reference, the handle number times
 * 8 plus the table's tag (gc_layout.ts: REF_TAG), so that the kind of every reference is known from its word.
 *
 * Numbers are freed by mark and sweep. The store marks the reachable references, or the garbage collector does so if
 * the program uses the garbage-collected heap.
 *
 * A table keeps its values alive, except those that it was told to hold weakly, because objects of JavaScript that
 * mirror the references hold them (instance/reference_edges.ts). It holds such a value strongly again once it is used.
 *
 * Invariant: a value has one number while it is in the table. Strings are exempt: equal strings are indistinguishable,
 * and a lookup would hash the whole text each time that a program appends a character.
 *
 * With a StringMemory, machine code knows which values are strings, and owns ranges of numbers for the strings that it
 * creates.
 */

import { REF_TAG_MASK } from "../../abi/gc_layout.ts";
import type { StringMemory } from "./string_memory.ts";

/** Calls `mark` for every reachable reference; the table ignores references of other kinds. */
type HandleRoots = (mark: (word: number) => void) => void;

/** The map key of −0, which a Map does not distinguish from 0. */
const NEGATIVE_ZERO = Symbol("-0");

/** Minimum threshold for a sweep: the number of values with identity, as #load counts them. */
const MIN_HANDLES = 1024;
/**
 * Minimum thresholds for a sweep: the number of all values, strings included, without and with string builtins as
 * machine code. They are higher, because programs create thousands of strings, and a sweep may mark a whole heap.
 */
const MIN_WITH_STRINGS = 8192;
const MIN_WITH_NATIVE_STRINGS = 32768;
/** Threshold for a sweep: the total length in UTF-16 units of the strings added since the last sweep. */
const MAX_TEXT = 2 ** 23;
/** A sweep marks the whole heap, so the threshold for strings increases by one per this many bytes of heap. */
const HEAP_BYTES_PER_STRING = 64;
/** The initial number of handles for machine code. */
const FIRST_NATIVE = 16384;
/** Exclusive upper bound of handle numbers: references are 32 bits wide. */
const MAX_HANDLES = 2 ** 29;
/** The table entry of a free number. */
const FREE = Symbol("free");
/** The table entry of a number of machine code that is free, or whose string JavaScript has not read yet. */
const NATIVE = Symbol("native");
/** The table entry of a value that the table holds weakly. */
const WEAK = Symbol("weak");

function keyOf(value: unknown): unknown {
  return Object.is(value, -0) ? NEGATIVE_ZERO : value;
}

/** Whether a value can be held weakly. */
function isHoldable(value: unknown): value is object {
  return typeof value === "object" && value !== null || typeof value === "function";
}

export class HandleTable {
  readonly #tag: number;
  readonly #freed: ((value: unknown) => void) | undefined;
  #values: unknown[] = [undefined];
  #marks: Uint8Array = new Uint8Array(64);
  #free: number[] = [];
  readonly #ids = new Map<unknown, number>();
  /** The number of values that no lookup finds. */
  #entered = 0;
  /** The values held weakly by number, and their numbers. */
  readonly #weak = new Map<number, WeakRef<object>>();
  readonly #weakIds = new WeakMap<object, number>();
  /** The number of values with identity that the last sweep left. */
  #kept = 0;
  #threshold = MIN_HANDLES;
  #thresholdWithStrings = MIN_WITH_STRINGS;
  /** Total length in units of the strings added since the last sweep. */
  #text = 0;
  #strings: StringMemory | undefined;
  #max = MAX_HANDLES;
  /** The count of numbers owned by machine code. */
  #nativeCount = 0;
  /** The numbers of its strings that JavaScript has read. */
  #materialized: number[] = [];

  /** `tag`: the low three bits of the table's references. `freed` is called with each value that a sweep removes. */
  constructor(tag: number, freed?: (value: unknown) => void) {
    this.#tag = tag;
    this.#freed = freed;
  }

  /** The reference to `value`; 0 for null. Throws RangeError if there are too many values. */
  handleOf(value: unknown): number {
    if (value === null) return 0;
    if (typeof value === "string") {
      this.#text += value.length;
      return this.#put(value) * 8 + this.#tag;
    }
    const key = keyOf(value);
    let id = this.#ids.get(key) ?? this.#usedWeakly(value);
    if (id === undefined) {
      id = this.#put(value);
      this.#ids.set(key, id);
    }
    return id * 8 + this.#tag;
  }

  /** The reference to a value that has none yet, and for which `handleOf` is never called: no lookup finds it. */
  enter(value: object): number {
    this.#entered++;
    return this.#put(value) * 8 + this.#tag;
  }

  /** The number of a value that was held weakly and is held strongly now; undefined for any other value. */
  #usedWeakly(value: unknown): number | undefined {
    if (this.#weak.size === 0 || !isHoldable(value)) return undefined;
    const id = this.#weakIds.get(value);
    if (id !== undefined) this.#strengthen(id, value);
    return id;
  }

  #strengthen(id: number, value: object): void {
    this.#values[id] = value;
    this.#ids.set(value, id);
    this.#weak.delete(id);
    this.#weakIds.delete(value);
  }

  /** Uses the value of a number that is held weakly; undefined if it is gone, as is everything that refers to it. */
  #useWeak(id: number): object | undefined {
    const value = this.#weak.get(id)!.deref();
    if (value !== undefined) this.#strengthen(id, value);
    return value;
  }

  /**
   * Holds the value of a reference weakly until it is used. Returns the value; undefined if it cannot be held weakly.
   */
  weaken(word: number): object | undefined {
    const id = (word - this.#tag) / 8;
    const value = this.#values[id];
    if (value === WEAK) return this.#weak.get(id)!.deref();
    // A value that no lookup finds is held strongly.
    if (!isHoldable(value) || !this.#ids.has(value)) return undefined;
    this.#values[id] = WEAK;
    this.#weak.set(id, new WeakRef(value));
    this.#weakIds.set(value, id);
    this.#ids.delete(value);
    return value;
  }

  /** Holds all values strongly. */
  strengthenAll(): void {
    for (const id of [...this.#weak.keys()]) this.#useWeak(id);
  }

  #put(value: unknown): number {
    const id = this.#free.pop() ?? this.#values.length;
    if (id >= this.#max) throw new RangeError("Out of address space: too many host references");
    this.#values[id] = value;
    this.#strings?.enter(id, value);
    return id;
  }

  /**
   * Limits handle numbers to less than `max`, the size of a table in which machine code looks them up. Throws
   * RangeError if a number is already larger.
   */
  limit(max: number): void {
    if (this.#values.length > max) throw new RangeError("Out of address space: too many host references");
    this.#max = Math.min(this.#max, max);
  }

  /** Connects the table to machine code: maintains the string entries of all values from now on. */
  shareStrings(strings: StringMemory): void {
    this.#strings = strings;
    for (let id = 1; id < this.#values.length; id++) if (this.#values[id] !== FREE) strings.enter(id, this.#values[id]);
    this.#thresholdWithStrings = Math.max(this.#thresholdWithStrings, MIN_WITH_NATIVE_STRINGS);
    strings.setEmpty(this.handleOf(""));
    this.#assignNative(strings, FIRST_NATIVE);
  }

  /** Assigns up to `count` numbers to machine code permanently. */
  #assignNative(strings: StringMemory, count: number): void {
    const first = this.#values.length;
    count = Math.min(count, this.#max - first);
    if (count <= 0) return;
    strings.assign(first, count, this.#tag);
    for (let id = first; id < first + count; id++) this.#values[id] = NATIVE;
    this.#nativeCount += count;
  }

  /** Reads the string that machine code created under number `id`; undefined if there is none. */
  #materialize(id: number): string | undefined {
    const text = this.#strings!.textAt(id);
    if (text === undefined) return undefined;
    this.#values[id] = text;
    this.#materialized.push(id);
    return text;
  }

  /** Whether the value is in the table. Always false for strings. */
  has(value: unknown): boolean {
    return this.#ids.has(keyOf(value)) || this.#weak.size > 0 && isHoldable(value) && this.#weakIds.has(value);
  }

  /** The value of a reference. */
  valueOf(word: number): unknown {
    if (word === 0) return null;
    const value = this.#values[word >>> 3];
    return value === NATIVE ? this.#materialize(word >>> 3) : value === WEAK ? this.#useWeak(word >>> 3) : value;
  }

  /** Whether `word` is a reference of this table's kind. */
  owns(word: number): boolean {
    return (word & REF_TAG_MASK) === this.#tag;
  }

  /** The value with number `id`; undefined if the number is free. Does not count as a use. */
  valueAt(id: number): unknown {
    const value = this.#values[id];
    if (value === WEAK) return this.#weak.get(id)!.deref();
    return value === FREE ? undefined : value === NATIVE ? this.#materialize(id) : value;
  }

  /** All values. */
  *values(): Iterable<unknown> {
    for (let id = 1; id < this.#values.length; id++) if (this.#values[id] !== FREE) yield this.valueAt(id);
  }

  /** The number of handles in use, without those of machine code. */
  get size(): number {
    return this.#values.length - 1 - this.#free.length - this.#nativeCount;
  }

  /** Exclusive upper bound of the numbers in use. */
  get count(): number {
    return this.#values.length;
  }

  /** The number of values with identity. */
  get identities(): number {
    return this.#ids.size + this.#weak.size + this.#entered;
  }

  /** The number of values with identity that were added since the last sweep. */
  get added(): number {
    return this.identities - this.#kept;
  }

  /** The number of values with identity, as the threshold counts them: of those that no lookup finds, every eighth. */
  get #load(): number {
    return this.#ids.size + this.#weak.size + (this.#entered >> 3);
  }

  /** Whether a sweep is due. */
  get full(): boolean {
    return this.#load >= this.#threshold || this.size >= this.#thresholdWithStrings || this.#text >= MAX_TEXT ||
      this.#strings?.full === true;
  }

  /** Frees every number that `roots` does not mark. */
  sweep(roots: HandleRoots): void {
    const { count } = this;
    if (this.#marks.length < count) this.#marks = new Uint8Array(count * 2);
    const marks = this.#marks.fill(0);
    roots((word) => {
      if (!this.owns(word)) return;
      const id = (word - this.#tag) / 8;
      if (id < count) marks[id] = 1;
    });
    this.sweepUnmarked(marks);
  }

  /** Sets the mark of a reference if it belongs to this table. */
  keep(marks: Uint8Array, word: number): void {
    if (this.owns(word)) marks[(word - this.#tag) / 8] = 1;
  }

  /** Frees every number whose byte in `marks` is 0. `heapBytes` is the size of the heap that was marked. */
  sweepUnmarked(marks: Uint8Array, heapBytes = 0): void {
    const { count } = this;
    const strings = this.#strings;
    if (strings !== undefined) {
      for (const word of strings.roots()) this.keep(marks, word);
      if (strings.isSweepDue) {
        this.#materialized = this.#materialized.filter((id) => marks[id] !== 0 || this.#dropCopy(id));
        strings.sweep(marks);
      }
    }
    let first = 1;
    for (const range of strings?.ranges ?? []) {
      this.#sweepRange(marks, first, range.first);
      first = range.first + range.count;
    }
    this.#sweepRange(marks, first, count);
    const least = strings === undefined ? MIN_WITH_STRINGS : MIN_WITH_NATIVE_STRINGS;
    const perHeap = heapBytes / HEAP_BYTES_PER_STRING;
    this.#kept = this.identities;
    this.#threshold = Math.max(MIN_HANDLES, this.#load * 2);
    this.#thresholdWithStrings = Math.max(least, this.size * 2, perHeap);
    this.#text = 0;
    if (strings === undefined) return;
    if (strings.lacksSpace) this.#makeRoom(strings);
    const more = strings.handlesToAdd(perHeap, count);
    if (more > 0) this.#assignNative(strings, more);
  }

  /** Frees the unmarked numbers from `first` to `end`, none of which belong to machine code. */
  #sweepRange(marks: Uint8Array, first: number, end: number): void {
    const values = this.#values;
    const free = this.#free;
    const ids = this.#ids;
    const strings = this.#strings;
    for (let id = first; id < end; id++) {
      if (marks[id] !== 0) continue;
      const value = values[id];
      if (value === FREE) continue;
      if (value === WEAK) this.#dropWeak(id);
      else if (typeof value !== "string" && (ids.size === 0 || !ids.delete(keyOf(value)))) this.#entered--;
      values[id] = FREE;
      free.push(id);
      strings?.leave(id);
      this.#freed?.(value);
    }
  }

  #dropWeak(id: number): void {
    const value = this.#weak.get(id)!.deref();
    if (value !== undefined) this.#weakIds.delete(value);
    this.#weak.delete(id);
  }

  /** Drops the JavaScript copy of an unreachable string of machine code. */
  #dropCopy(id: number): false {
    this.#values[id] = NATIVE;
    return false;
  }

  /** Makes space for text after the arena was found full: grows it, or copies all texts to JavaScript and clears it. */
  #makeRoom(strings: StringMemory): void {
    if (strings.grow()) return;
    for (let id = 1; id < this.#values.length; id++) if (this.#values[id] === NATIVE) this.#materialize(id);
    strings.clear(this.#values.length);
  }
}
