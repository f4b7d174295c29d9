/**
 * The string memory of one JavaScript realm (string_layout.ts): the table of host handles that machine code reads, and
 * the arena for text. In: values as handles.ts assigns and frees their numbers, and strings whose text machine code
 * requests repeatedly. Out: strings that machine code has created.
 *
 * Invariant: the entry of a free number is zero, and no two entries share a text slot.
 */
import { Bug } from "../../base/errors.ts";
import { REF_TAG, REF_TAG_MASK } from "../../abi/gc_layout.ts";
import { type Host, PROT } from "../../host/host.ts";
import {
  MAX_NATIVE_HANDLES,
  NO_STRING,
  ORIGIN_OFFSET,
  SHORTAGE,
  SINGLE_UNITS,
  STRING_CONTROL,
  STRING_ENTRY,
  textClassOf,
  textSlotBytes,
} from "../../abi/string_layout.ts";
import { NativeRegion } from "../memory/native_region.ts";
import { charCodeOf, textOfUnits } from "./string_methods.ts";

/** Table capacities in entries: all possible numbers, or as many as the address space allows. */
const CAPACITIES = [2 ** 29, 2 ** 26, 2 ** 23];
/** The number of entries initially visible to JavaScript. */
const FIRST_ENTRIES = 4096;
/** Initial and maximum size of the arena in bytes. */
const FIRST_ARENA = 2 ** 22;
const MAX_ARENA = 2 ** 26;
/** Maximum length in units of a string whose text is copied. */
const MAX_UNITS = 2 ** 23;
/**
 * Strings up to this length are copied when they enter the table: machine code requests most of them, and a request
 * costs more than the copy.
 */
const COPIED_AT_ONCE = 32;
/**
 * A text is copied once its requests times this number reach its length, so that copying costs at most as much as the
 * requests did.
 */
const UNITS_PER_USE = 64;
/** Maximum number of arguments per call of String.fromCharCode. */
const CHUNK = 4096;
/** Size in bytes of the start of the arena whose pages stay committed when it is cleared. */
const RETAINED_ARENA = 2 ** 22;

/**
 * Reserves address space for a string table, zero-filled, with protection `prot`. Returns its address and its capacity
 * in entries.
 */
export function reserveEntries(host: Host, prot: number): { address: number; capacity: number } {
  for (const capacity of CAPACITIES) {
    try {
      return { address: host.reserve(capacity * STRING_ENTRY.SIZE, prot), capacity };
    } catch (error) {
      if (!(error instanceof RangeError) || capacity === CAPACITIES.at(-1)) throw error;
    }
  }
  throw new Bug("No reservation was tried");
}

/** The table of host handles that machine code reads, and the arena for text. */
export class StringMemory {
  readonly #host: Host;
  readonly #capacity: number;
  readonly #control: NativeRegion;
  readonly #words: Uint32Array;
  readonly #arenaAddress: number;
  #table: NativeRegion;
  #arena: NativeRegion;
  #units: Uint16Array;
  /** The ranges of handle numbers owned by machine code, and their total size. */
  readonly ranges: { first: number; count: number }[] = [];
  #handleCount = 0;
  /** Whether the last sweep freed hardly anything and no more handles can be added. */
  #crowded = false;
  #marks: NativeRegion | undefined;
  /** Runs the `sweep` function of the machine code (string_code.ts). */
  sweepNative: () => void = () => {};

  constructor(host: Host) {
    this.#host = host;
    const { address, capacity } = reserveEntries(host, PROT.READ | PROT.WRITE);
    this.#capacity = capacity;
    this.#table = new NativeRegion(host, address, FIRST_ENTRIES * STRING_ENTRY.SIZE);
    this.#table.u32[STRING_ENTRY.LENGTH >> 2] = NO_STRING;
    this.#arenaAddress = host.reserve(MAX_ARENA, PROT.READ | PROT.WRITE);
    this.#arena = new NativeRegion(host, this.#arenaAddress, FIRST_ARENA);
    this.#units = new Uint16Array(this.#arena.buffer);
    const controlBytes = Math.ceil(STRING_CONTROL.SIZE / host.pageSize) * host.pageSize;
    this.#control = new NativeRegion(host, host.reserve(controlBytes, PROT.READ | PROT.WRITE), STRING_CONTROL.SIZE);
    this.#words = this.#control.u32;
    this.#control.setWord(STRING_CONTROL.ORIGIN, this.origin);
    this.#control.setWord(STRING_CONTROL.TOP, this.#arenaAddress);
    this.#control.setWord(STRING_CONTROL.END, this.#arenaAddress + FIRST_ARENA);
    const handles = host.reserve(MAX_NATIVE_HANDLES * 4, PROT.READ | PROT.WRITE);
    this.#control.setWord(STRING_CONTROL.HANDLES, handles);
    this.#control.setWord(STRING_CONTROL.HANDLES_TOP, handles);
  }

  /** The value of STRINGS.ORIGIN in VM contexts. */
  get origin(): number {
    return this.#table.address + ORIGIN_OFFSET;
  }

  /** The address of the control area. */
  get control(): number {
    return this.#control.address;
  }

  /** Extends the table to number `id`. Throws RangeError if that exceeds its capacity. */
  #reach(id: number): void {
    const bytes = (id + 1) * STRING_ENTRY.SIZE;
    if (bytes <= this.#table.size) return;
    if (id >= this.#capacity) throw new RangeError("Out of address space: too many host references");
    const size = Math.min(Math.max(bytes, this.#table.size * 2), this.#capacity * STRING_ENTRY.SIZE);
    this.#table = new NativeRegion(this.#host, this.#table.address, size);
  }

  /** Initializes the entry of number `id`, which now refers to `value`. */
  enter(id: number, value: unknown): void {
    if ((id + 1) * STRING_ENTRY.SIZE > this.#table.size) this.#reach(id);
    const length = id * 4 + (STRING_ENTRY.LENGTH >> 2);
    if (typeof value !== "string") {
      this.#table.u32[length] = NO_STRING;
      return;
    }
    this.#table.u32[length] = value.length + 1;
    if (value.length <= COPIED_AT_ONCE) this.request(id << 3, value, 1);
  }

  /** The length in units of the string with reference `word`; NaN if it is not a string. */
  lengthOf(word: number): number {
    if ((word & REF_TAG_MASK) !== REF_TAG.HOST) return NaN;
    const stored = this.#table.u32[(word >>> 3) * 4 + (STRING_ENTRY.LENGTH >> 2)];
    return stored === NO_STRING ? NaN : stored - 1;
  }

  /** Whether the text of the string with reference `word` is in the arena. */
  has(word: number): boolean {
    const { u32 } = this.#table;
    const at = (word >>> 3) * 4;
    return u32[at + (STRING_ENTRY.READABLE >> 2)] + 1 === u32[at + (STRING_ENTRY.LENGTH >> 2)];
  }

  /** Clears the entry of number `id`, which is now free. */
  leave(id: number): void {
    this.#dropText(id);
    const { u32 } = this.#table;
    u32[id * 4] = 0;
    u32[id * 4 + (STRING_ENTRY.LENGTH >> 2)] = 0;
  }

  /** The string that machine code created under number `id`; undefined if there is none. */
  textAt(id: number): string | undefined {
    const { u32 } = this.#table;
    if (u32[id * 4 + (STRING_ENTRY.LENGTH >> 2)] === 0) return undefined;
    const count = u32[id * 4 + (STRING_ENTRY.READABLE >> 2)];
    const from = this.#slotOf(id) >> 1;
    let text = "";
    for (let at = 0; at < count; at += CHUNK) {
      const chunk = this.#units.subarray(from + at, from + Math.min(at + CHUNK, count));
      text += textOfUnits(chunk);
    }
    return text;
  }

  /**
   * Counts a request of weight `uses` for the text of `value`, whose reference is `word` and whose text is not in the
   * arena; copies the text once the copy is worth its cost. Returns whether the text is in the arena.
   */
  request(word: number, value: string, uses: number): boolean {
    const id = word >>> 3;
    const { u32 } = this.#table;
    if (value.length === 0) return true;
    if (value.length > MAX_UNITS) return false;
    const used = u32[id * 4] + uses;
    if (used * UNITS_PER_USE < value.length) {
      u32[id * 4] = used;
      return false;
    }
    const address = this.#takeSlot(textClassOf(value.length));
    if (address === 0) {
      this.#words[STRING_CONTROL.SHORTAGE >> 2] |= SHORTAGE.TEXT;
      return false;
    }
    const units = this.#units;
    const from = (address - this.#arenaAddress) >> 1;
    for (let k = 0; k < value.length; k++) units[from + k] = charCodeOf(value, k);
    this.#table.setWord(id * STRING_ENTRY.SIZE, address);
    u32[id * 4 + (STRING_ENTRY.READABLE >> 2)] = value.length;
    return true;
  }

  /** Assigns the `count` numbers from `first` on to machine code; their references have the low bits `tag`. */
  assign(first: number, count: number, tag: number): void {
    this.#reach(first + count - 1);
    this.ranges.push({ first, count });
    this.#handleCount += count;
    const end = this.#control.word(STRING_CONTROL.HANDLES_TOP);
    const words = new Uint32Array(this.#host.view(end, count * 4));
    // In descending order, because machine code pops the last one first.
    for (let k = 0; k < count; k++) words[k] = (first + count - 1 - k) * 8 + tag;
    this.#control.setWord(STRING_CONTROL.HANDLES_TOP, end + count * 4);
    this.#crowded = false;
  }

  /**
   * The number of handles to add for machine code, given that it should have at least `least` and that the table has
   * `used` numbers. Called after a sweep; resets the recorded shortages.
   */
  handlesToAdd(least: number, used: number): number {
    const free = this.#freeHandles;
    const most = Math.min(this.#handleCount, MAX_NATIVE_HANDLES - this.#handleCount, this.#capacity - used);
    const more = free * 2 < this.#handleCount || this.#handleCount < least ? Math.max(0, most) : 0;
    this.#crowded = more === 0 && free * 8 < this.#handleCount;
    this.#words[STRING_CONTROL.SHORTAGE >> 2] = 0;
    return more;
  }

  get #freeHandles(): number {
    return (this.#control.word(STRING_CONTROL.HANDLES_TOP) - this.#control.word(STRING_CONTROL.HANDLES)) / 4;
  }

  /**
   * Whether machine code has used enough of its handles, or run out of a resource, for a sweep of them to pay. Other
   * handles are swept far more often.
   */
  get isSweepDue(): boolean {
    return this.#shortage !== 0 || this.#freeHandles * 2 < this.#handleCount;
  }

  /** Frees the numbers of machine code whose byte in `marks` is 0. */
  sweep(marks: Uint8Array): void {
    for (const { first, count } of this.ranges) {
      if (this.#marks === undefined || this.#marks.size < count) this.#marks = this.#makeMarks(count);
      this.#marks.u8.set(marks.subarray(first, first + count));
      this.#control.setWord(STRING_CONTROL.SWEPT, (first << 3 >>> 0) + REF_TAG.HOST);
      this.#control.setWord(STRING_CONTROL.SWEPT_MARKS, this.#marks.address);
      this.#control.u32[STRING_CONTROL.SWEPT_COUNT >> 2] = count;
      this.sweepNative();
    }
  }

  #makeMarks(count: number): NativeRegion {
    const { pageSize } = this.#host;
    if (this.#marks !== undefined) {
      this.#host.release(this.#marks.address, Math.ceil(this.#marks.size / pageSize) * pageSize);
    }
    const bytes = Math.ceil(count / pageSize) * pageSize;
    return new NativeRegion(this.#host, this.#host.reserve(bytes, PROT.READ | PROT.WRITE), bytes);
  }

  /** Sets the handle of the empty string, which machine code never creates. */
  setEmpty(word: number): void {
    this.#control.u32[STRING_CONTROL.EMPTY >> 2] = word;
  }

  /** The references that the control area holds: the empty string and the cached strings of one unit. */
  *roots(): Iterable<number> {
    const { u32 } = this.#control;
    yield u32[STRING_CONTROL.EMPTY >> 2];
    const from = STRING_CONTROL.SINGLES >> 2;
    for (const word of u32.subarray(from, from + SINGLE_UNITS)) if (word !== 0) yield word;
  }

  /** Whether some text did not fit into the arena. */
  get lacksSpace(): boolean {
    return (this.#shortage & SHORTAGE.TEXT) !== 0;
  }

  /** Whether a resource has run out and a sweep may provide more: space in the arena, or handles. */
  get full(): boolean {
    const shortage = this.#shortage;
    return shortage !== 0 && (shortage !== SHORTAGE.HANDLES || !this.#crowded);
  }

  get #shortage(): number {
    return this.#words[STRING_CONTROL.SHORTAGE >> 2];
  }

  /** Whether machine code can create a string now. */
  get ready(): boolean {
    return !this.lacksSpace && this.#freeHandles > 0;
  }

  /** Doubles the arena, unless it has its maximum size. Returns whether it grew. */
  grow(): boolean {
    const size = this.#arena.size * 2;
    if (size > MAX_ARENA) return false;
    this.#arena = new NativeRegion(this.#host, this.#arenaAddress, size);
    this.#units = new Uint16Array(this.#arena.buffer);
    this.#control.setWord(STRING_CONTROL.END, this.#arenaAddress + size);
    return true;
  }

  /** Removes all text of entries below `count`, which JavaScript holds too, and empties the arena. */
  clear(count: number): void {
    const { u32 } = this.#table;
    for (let id = 1; id < count; id++) {
      if (u32[id * 4 + (STRING_ENTRY.READABLE >> 2)] === 0) continue;
      u32.fill(0, id * 4, id * 4 + (STRING_ENTRY.LENGTH >> 2));
    }
    this.#control.u32.fill(0, STRING_CONTROL.FREE >> 2, STRING_CONTROL.SINGLES >> 2);
    const used = this.#control.word(STRING_CONTROL.TOP) - this.#arenaAddress;
    this.#control.setWord(STRING_CONTROL.TOP, this.#arenaAddress);
    if (used > RETAINED_ARENA) {
      const { pageSize } = this.#host;
      const bytes = Math.ceil((used - RETAINED_ARENA) / pageSize) * pageSize;
      this.#host.replace(this.#arenaAddress + RETAINED_ARENA, bytes, PROT.READ | PROT.WRITE);
    }
  }

  /** The offset in the arena of the text of number `id`, which must have one. */
  #slotOf(id: number): number {
    return this.#table.word(id * STRING_ENTRY.SIZE) - this.#arenaAddress;
  }

  #dropText(id: number): void {
    const { u32 } = this.#table;
    const readable = id * 4 + (STRING_ENTRY.READABLE >> 2);
    const units = u32[readable];
    if (units === 0) return;
    const slot = this.#slotOf(id);
    const cell = STRING_CONTROL.FREE + textClassOf(units) * 8;
    this.#arena.u32[slot >> 2] = this.#control.u32[cell >> 2];
    this.#arena.u32[(slot >> 2) + 1] = this.#control.u32[(cell >> 2) + 1];
    this.#control.setWord(cell, this.#arenaAddress + slot);
    u32[id * 4] = 0;
    u32[id * 4 + 1] = 0;
    u32[readable] = 0;
  }

  /** Allocates a text slot of class `k`. Returns its address, 0 if the arena is full. */
  #takeSlot(k: number): number {
    const cell = STRING_CONTROL.FREE + k * 8;
    const free = this.#control.word(cell);
    if (free !== 0) {
      this.#control.setWord(cell, this.#arena.word(free - this.#arenaAddress));
      return free;
    }
    const top = this.#control.word(STRING_CONTROL.TOP);
    const end = top + textSlotBytes(k);
    if (end > this.#control.word(STRING_CONTROL.END)) return 0;
    this.#control.setWord(STRING_CONTROL.TOP, end);
    return top;
  }
}
