/**
 * What machine code knows of the strings of one JavaScript realm (string_layout.ts): the table of host handles, and the arena for text. In: values as
 * they get and lose their numbers (handles.ts), and strings whose text machine code asks for again and again. Out: strings that machine code has made.
 *
 * Invariant: an entry is zero while its number is free; text of an entry lies in a slot of its own.
 */
import { Bug } from "../../errors.ts";
import { REF_TAG } from "../../abi/gc_layout.ts";
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

/** Numbers that the table has room for: all that there can be, or what address space there is. */
const CAPACITIES = [2 ** 29, 2 ** 26, 2 ** 23];
/** Entries that JavaScript sees at first. */
const FIRST_ENTRIES = 4096;
/** Bytes of the arena at first, and at most. */
const FIRST_ARENA = 2 ** 22;
const MOST_ARENA = 2 ** 26;
/** Longer strings are not copied. */
const MOST_UNITS = 2 ** 23;
/** Strings up to this length are copied when they come: most are asked for, and being asked takes longer. */
const COPIED_AT_ONCE = 32;
/** How many units may be copied for each time that the text was asked for: what that costs is then no more than asking. */
const UNITS_PER_USE = 64;
/** How many arguments String.fromCharCode is given at once. */
const CHUNK = 4096;
/** Pages that have been written stay when less than so much of the arena was used. */
const KEPT_ARENA = 2 ** 22;

/** Address space for a table, zero and only for reading when `prot` says so; and how many entries it has. */
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

export class StringMemory {
  readonly #host: Host;
  readonly #capacity: number;
  readonly #control: NativeRegion;
  readonly #words: Uint32Array;
  readonly #arenaAddress: number;
  #table: NativeRegion;
  #arena: NativeRegion;
  #units: Uint16Array;
  /** Numbers of machine code, and how many there are. */
  readonly ranges: { first: number; count: number }[] = [];
  #lent = 0;
  /** The last sweep has found next to none, and there can be no more. */
  #crowded = false;
  #marks: NativeRegion | undefined;
  /** Runs the machine code of `sweep` (string_code.ts). */
  sweepLent: () => void = () => {};

  constructor(host: Host) {
    this.#host = host;
    const { address, capacity } = reserveEntries(host, PROT.READ | PROT.WRITE);
    this.#capacity = capacity;
    this.#table = new NativeRegion(host, address, FIRST_ENTRIES * STRING_ENTRY.SIZE);
    this.#table.u32[STRING_ENTRY.LENGTH >> 2] = NO_STRING;
    this.#arenaAddress = host.reserve(MOST_ARENA, PROT.READ | PROT.WRITE);
    this.#arena = new NativeRegion(host, this.#arenaAddress, FIRST_ARENA);
    this.#units = new Uint16Array(this.#arena.buffer);
    const controlBytes = Math.ceil(STRING_CONTROL.SIZE / host.pageSize) * host.pageSize;
    this.#control = new NativeRegion(host, host.reserve(controlBytes, PROT.READ | PROT.WRITE), STRING_CONTROL.SIZE);
    this.#words = this.#control.u32;
    this.#control.setWord(STRING_CONTROL.ORIGIN, this.origin);
    this.#control.setWord(STRING_CONTROL.TOP, this.#arenaAddress);
    this.#control.setWord(STRING_CONTROL.END, this.#arenaAddress + FIRST_ARENA);
    const spare = host.reserve(MAX_NATIVE_HANDLES * 4, PROT.READ | PROT.WRITE);
    this.#control.setWord(STRING_CONTROL.HANDLES, spare);
    this.#control.setWord(STRING_CONTROL.HANDLES_TOP, spare);
  }

  /** For STRINGS.ORIGIN of contexts. */
  get origin(): number {
    return this.#table.address + ORIGIN_OFFSET;
  }

  /** Address of the control area. */
  get control(): number {
    return this.#control.address;
  }

  /** Sees to an entry for number `id`. Throws RangeError when there can be none. */
  #reach(id: number): void {
    const bytes = (id + 1) * STRING_ENTRY.SIZE;
    if (bytes <= this.#table.size) return;
    if (id >= this.#capacity) throw new RangeError("Out of address space: too many references of the host");
    const size = Math.min(Math.max(bytes, this.#table.size * 2), this.#capacity * STRING_ENTRY.SIZE);
    this.#table = new NativeRegion(this.#host, this.#table.address, size);
  }

  /** Number `id` is now that of `value`. */
  enter(id: number, value: unknown): void {
    if ((id + 1) * STRING_ENTRY.SIZE > this.#table.size) this.#reach(id);
    const length = id * 4 + (STRING_ENTRY.LENGTH >> 2);
    if (typeof value !== "string") {
      this.#table.u32[length] = NO_STRING;
      return;
    }
    this.#table.u32[length] = value.length + 1;
    if (value.length <= COPIED_AT_ONCE) this.wanted(id << 3, value, 1);
  }

  /** Length of the string with reference `word`, NaN when it is none. */
  lengthOf(word: number): number {
    if ((word & 7) !== REF_TAG.HOST) return NaN;
    const stored = this.#table.u32[(word >>> 3) * 4 + (STRING_ENTRY.LENGTH >> 2)]!;
    return stored === NO_STRING ? NaN : stored - 1;
  }

  /** Has machine code the text of the string with reference `word`? */
  has(word: number): boolean {
    const { u32 } = this.#table;
    const at = (word >>> 3) * 4;
    return u32[at + (STRING_ENTRY.READABLE >> 2)]! + 1 === u32[at + (STRING_ENTRY.LENGTH >> 2)];
  }

  /** Number `id` is free. */
  leave(id: number): void {
    this.#dropText(id);
    const { u32 } = this.#table;
    u32[id * 4] = 0;
    u32[id * 4 + (STRING_ENTRY.LENGTH >> 2)] = 0;
  }

  /** The string that machine code has made under number `id`; undefined if it has made none. */
  textAt(id: number): string | undefined {
    const { u32 } = this.#table;
    if (u32[id * 4 + (STRING_ENTRY.LENGTH >> 2)] === 0) return undefined;
    const count = u32[id * 4 + (STRING_ENTRY.READABLE >> 2)]!;
    const from = this.#slotOf(id) >> 1;
    let text = "";
    for (let at = 0; at < count; at += CHUNK) {
      const chunk = this.#units.subarray(from + at, from + Math.min(at + CHUNK, count));
      text += Reflect.apply(String.fromCharCode, undefined, chunk) as string;
    }
    return text;
  }

  /** Copies the text of `value`, which has reference `word`, if it has been wanted as often as that costs: `uses` times as for one unit now. Is it there? */
  wanted(word: number, value: string, uses: number): boolean {
    const id = word >>> 3;
    const { u32 } = this.#table;
    if (value.length === 0) return true;
    if (value.length > MOST_UNITS) return false;
    const used = u32[id * 4]! + uses;
    if (used * UNITS_PER_USE < value.length) {
      u32[id * 4] = used;
      return false;
    }
    const address = this.#takeSlot(textClassOf(value.length));
    if (address === 0) {
      this.#words[STRING_CONTROL.SHORTAGE >> 2]! |= SHORTAGE.TEXT;
      return false;
    }
    const units = this.#units;
    const from = (address - this.#arenaAddress) >> 1;
    for (let k = 0; k < value.length; k++) units[from + k] = value.charCodeAt(k);
    this.#table.setWord(id * STRING_ENTRY.SIZE, address);
    u32[id * 4 + (STRING_ENTRY.READABLE >> 2)] = value.length;
    return true;
  }

  /** Gives machine code the `count` numbers from `first` on, whose references have the low bits `tag`. */
  lend(first: number, count: number, tag: number): void {
    this.#reach(first + count - 1);
    this.ranges.push({ first, count });
    this.#lent += count;
    const end = this.#control.word(STRING_CONTROL.HANDLES_TOP);
    const words = new Uint32Array(this.#host.view(end, count * 4));
    // The last is taken first.
    for (let k = 0; k < count; k++) words[k] = (first + count - 1 - k) * 8 + tag;
    this.#control.setWord(STRING_CONTROL.HANDLES_TOP, end + count * 4);
    this.#crowded = false;
  }

  /** How many numbers machine code should get, if it is to have at least `least`, and `used` are in use; asked after a sweep, when nothing is lacking any more. */
  lacking(least: number, used: number): number {
    const spare = this.#spare;
    const most = Math.min(this.#lent, MAX_NATIVE_HANDLES - this.#lent, this.#capacity - used);
    const more = spare * 2 < this.#lent || this.#lent < least ? Math.max(0, most) : 0;
    this.#crowded = more === 0 && spare * 8 < this.#lent;
    this.#words[STRING_CONTROL.SHORTAGE >> 2] = 0;
    return more;
  }

  get #spare(): number {
    return (this.#control.word(STRING_CONTROL.HANDLES_TOP) - this.#control.word(STRING_CONTROL.HANDLES)) / 4;
  }

  /** Has machine code given away so much that its numbers are worth a sweep? Others are swept far more often. */
  get isWorn(): boolean {
    return this.#lacks !== 0 || this.#spare * 2 < this.#lent;
  }

  /** Frees the numbers of machine code whose byte in `marks` is 0. */
  sweep(marks: Uint8Array): void {
    for (const { first, count } of this.ranges) {
      if (this.#marks === undefined || this.#marks.size < count) this.#marks = this.#makeMarks(count);
      this.#marks.u8.set(marks.subarray(first, first + count));
      this.#control.setWord(STRING_CONTROL.SWEPT, (first << 3 >>> 0) + REF_TAG.HOST);
      this.#control.setWord(STRING_CONTROL.SWEPT_MARKS, this.#marks.address);
      this.#control.u32[STRING_CONTROL.SWEPT_COUNT >> 2] = count;
      this.sweepLent();
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

  /** Gives machine code the empty string, which it never makes. */
  setEmpty(word: number): void {
    this.#control.u32[STRING_CONTROL.EMPTY >> 2] = word;
  }

  /** Strings that machine code keeps: the empty one, and those of one unit. */
  *kept(): Iterable<number> {
    const { u32 } = this.#control;
    yield u32[STRING_CONTROL.EMPTY >> 2]!;
    const from = STRING_CONTROL.SINGLES >> 2;
    for (const word of u32.subarray(from, from + SINGLE_UNITS)) if (word !== 0) yield word;
  }

  /** Was there no room for some text? */
  get lacksText(): boolean {
    return (this.#lacks & SHORTAGE.TEXT) !== 0;
  }

  /** Is a sweep wanted: for text, or for handles to give away, where one may find some? */
  get full(): boolean {
    const lacks = this.#lacks;
    return lacks !== 0 && (lacks !== SHORTAGE.HANDLES || !this.#crowded);
  }

  get #lacks(): number {
    return this.#words[STRING_CONTROL.SHORTAGE >> 2]!;
  }

  /** Can machine code make a string now? */
  get ready(): boolean {
    return !this.lacksText && this.#spare > 0;
  }

  /** Makes the arena larger, if it may be. */
  grow(): boolean {
    const size = this.#arena.size * 2;
    if (size > MOST_ARENA) return false;
    this.#arena = new NativeRegion(this.#host, this.#arenaAddress, size);
    this.#units = new Uint16Array(this.#arena.buffer);
    this.#control.setWord(STRING_CONTROL.END, this.#arenaAddress + size);
    return true;
  }

  /** Forgets all text, which JavaScript has; numbers are below `count`. */
  clear(count: number): void {
    const { u32 } = this.#table;
    for (let id = 1; id < count; id++) {
      if (u32[id * 4 + (STRING_ENTRY.READABLE >> 2)] === 0) continue;
      u32.fill(0, id * 4, id * 4 + (STRING_ENTRY.LENGTH >> 2));
    }
    this.#control.u32.fill(0, STRING_CONTROL.FREE >> 2, STRING_CONTROL.SINGLES >> 2);
    const used = this.#control.word(STRING_CONTROL.TOP) - this.#arenaAddress;
    this.#control.setWord(STRING_CONTROL.TOP, this.#arenaAddress);
    if (used > KEPT_ARENA) {
      const { pageSize } = this.#host;
      const bytes = Math.ceil((used - KEPT_ARENA) / pageSize) * pageSize;
      this.#host.replace(this.#arenaAddress + KEPT_ARENA, bytes, PROT.READ | PROT.WRITE);
    }
  }

  /** Offset in the arena of the text of number `id`, which has some. */
  #slotOf(id: number): number {
    return this.#table.word(id * STRING_ENTRY.SIZE) - this.#arenaAddress;
  }

  #dropText(id: number): void {
    const { u32 } = this.#table;
    const readable = id * 4 + (STRING_ENTRY.READABLE >> 2);
    const units = u32[readable]!;
    if (units === 0) return;
    const slot = this.#slotOf(id);
    const cell = STRING_CONTROL.FREE + textClassOf(units) * 8;
    this.#arena.u32[slot >> 2] = this.#control.u32[cell >> 2]!;
    this.#arena.u32[(slot >> 2) + 1] = this.#control.u32[(cell >> 2) + 1]!;
    this.#control.setWord(cell, this.#arenaAddress + slot);
    u32[id * 4] = 0;
    u32[id * 4 + 1] = 0;
    u32[readable] = 0;
  }

  /** Address of a slot of class `k`, 0 when there is none. */
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
