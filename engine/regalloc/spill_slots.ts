/**
 * Stack slots for the values that the linear scan put into memory: one per value, for its whole life, assigned in order
 * of definition. A value prefers the slot of the value it is passed to (its affinity), so that loop-carried and merged
 * values stay in place. Slots of references, of 4, 8 and 16 bytes are never mixed, so moves may treat them as distinct
 * locations. References have the lowest `refSlotCount` cells; the collector, which scans stacks conservatively, does
 * not rely on it.
 */
import { grown } from "../base/columns.ts";
import { type f64, lowWord } from "../base/numbers.ts";
import { TY, TY_BYTES } from "../ir/types.ts";
import type { Allocation } from "../codegen/allocation.ts";
import type { AllocatorOptions } from "./allocator_options.ts";
import type { Liveness } from "./liveness.ts";
import type { VCode } from "../codegen/vcode.ts";

const CLASS_REF = 0, CLASS_8 = 1, CLASS_16 = 2, CLASS_4 = 3, CLASSES = 4;
const HOPS = 3;
/** The number of intervals that are compared to see whether a slot is free. */
const STEPS = 200;
/** Factor by which a position is packed with a register or slot, all of which are smaller. */
const KEY: f64 = 0x200000;

/** A key that orders by position; `low` is a register or a slot. */
function pack(position: number, low: number): f64 {
  return position * KEY + low;
}

function positionOf(key: f64): number {
  return lowWord(key / KEY);
}

function lowOf(key: f64): number {
  return lowWord(key - Math.floor(key / KEY) * KEY);
}

export class SpillSlots {
  /** Location of the slot per virtual register (Allocation: < 0), 0 for none. */
  location: Int32Array = new Int32Array(0);

  /** Per virtual register: number of its slot within its class, plus one; the slot that sources of its affinity got. */
  #slot: Int32Array = new Int32Array(0);
  #wanted: Int32Array = new Int32Array(0);
  #order: Float64Array = new Float64Array(64);
  /**
   * Per class: end of the life of each slot's value, slots that may be free, and a heap of the busy ones by their ends.
   */
  readonly #ends: number[][] = [[], [], [], []];
  readonly #free: number[][] = [[], [], [], []];
  /** Values of each slot: the one that came last, and per virtual register the one before. */
  readonly #first: number[][] = [[], [], [], []];
  #next: Int32Array = new Int32Array(0);
  readonly #busy: Heap[] = [new Heap(), new Heap(), new Heap(), new Heap()];
  /** Class of values of 4 bytes: their own, or that of 8. */
  #class4 = CLASS_8;

  #classOf(ty: number): number {
    if (ty === TY.REF) return CLASS_REF;
    return TY_BYTES[ty] === 16 ? CLASS_16 : TY_BYTES[ty] === 4 ? this.#class4 : CLASS_8;
  }

  /**
   * Assigns a slot to each of the first `n` virtual registers of `slotted` that cannot be rematerialized. `halves`:
   * whether slots may have 4 bytes.
   */
  assign(
    v: VCode,
    live: Liveness,
    slotted: Int32Array,
    n: number,
    halves: boolean,
    options: AllocatorOptions,
    out: Allocation,
  ): void {
    this.#class4 = halves && options.compactSlots ? CLASS_4 : CLASS_8;
    const vregs = v.vregCount;
    if (vregs > this.location.length) {
      this.location = new Int32Array(vregs * 2);
      this.#slot = new Int32Array(vregs * 2);
      this.#wanted = new Int32Array(vregs * 2);
      this.#next = new Int32Array(vregs * 2);
    }
    this.location.fill(0, 0, vregs);
    out.slotCount = 0;
    out.refSlotCount = 0;
    if (n === 0) return;
    this.#slot.fill(0, 0, vregs);
    this.#wanted.fill(0, 0, vregs);
    for (let c = 0; c < CLASSES; c++) {
      this.#ends[c].length = 0;
      this.#first[c].length = 0;
      this.#free[c].length = 0;
      this.#busy[c].size = 0;
    }
    const values = this.#sortByStart(v, live, slotted, n), order = this.#order;
    for (let j = 0; j < values; j++) this.#place(v, live, lowOf(order[j]), options);
    this.#number(v, values, out);
    if (out.halfCount > 0) options.counts.compactSlots++;
  }

  /** Puts the values into #order, as start × KEY + register, and returns their number. */
  #sortByStart(v: VCode, live: Liveness, slotted: Int32Array, n: number): number {
    if (n > this.#order.length) this.#order = new Float64Array(n * 2);
    const order = this.#order;
    let values = 0, sorted = true, before: f64 = 0;
    for (let j = 0; j < n; j++) {
      const x = slotted[j];
      if (v.vregRemat[x] !== 0) continue;
      const key = pack(live.intervalFrom[live.intervalHead[x]], x);
      if (key < before) sorted = false;
      before = key;
      order[values++] = key;
    }
    if (!sorted) order.subarray(0, values).sort();
    return values;
  }

  #place(v: VCode, live: Liveness, x: number, options: AllocatorOptions): void {
    const c = this.#classOf(v.vregTy[x]), ends = this.#ends[c], busy = this.#busy[c], free = this.#free[c];
    const from = live.intervalFrom[live.intervalHead[x]];
    let last = live.intervalHead[x];
    while (live.intervalNext[last] !== 0) last = live.intervalNext[last];
    const to = live.intervalTo[last];
    while (busy.size > 0 && busy.firstEnd() <= from) {
      const end = busy.firstEnd(), slot = busy.removeFirst();
      // The slot stays busy if an affinity has extended its life meanwhile.
      if (ends[slot] === end) free.push(slot);
    }
    let slot = options.sharedSlots ? this.#preferred(v, live, x, c, from) : -1;
    if (slot >= 0) options.counts.sharedSlots++;
    while (slot < 0 && free.length > 0) {
      const candidate = free.pop()!;
      if (ends[candidate] <= from) slot = candidate;
    }
    if (slot < 0) {
      slot = ends.push(0) - 1;
      this.#first[c].push(0);
    }
    if (ends[slot] < to) {
      ends[slot] = to;
      busy.add(to, slot);
    }
    this.#slot[x] = slot + 1;
    this.#next[x] = this.#first[c][slot];
    this.#first[c][slot] = x;
    const a = live.affinity[x];
    // Slots are numbered within their class: a reference made from an integer cannot share the integer's slot.
    if (a !== 0 && this.#wanted[a] === 0 && this.#classOf(v.vregTy[a]) === c) this.#wanted[a] = slot + 1;
  }

  /**
   * The slot of a value that x is passed to or comes from, if x never lives at the same time as the slot's values; −1
   * none.
   */
  #preferred(v: VCode, live: Liveness, x: number, c: number, from: number): number {
    if (this.#wanted[x] !== 0 && this.#isFree(live, x, c, this.#wanted[x] - 1, from)) return this.#wanted[x] - 1;
    let hops = 0;
    for (let a = live.affinity[x]; a !== 0 && hops < HOPS; a = live.affinity[a], hops++) {
      if (this.#classOf(v.vregTy[a]) !== c) continue;
      const slot = this.#slot[a] !== 0 ? this.#slot[a] : this.#wanted[a];
      if (slot !== 0 && this.#isFree(live, x, c, slot - 1, from)) return slot - 1;
    }
    return -1;
  }

  /**
   * Whether a slot is free wherever x lives, holes in the lives of the slot's values included. Gives up if that takes
   * long to decide.
   */
  #isFree(live: Liveness, x: number, c: number, slot: number, from: number): boolean {
    if (this.#ends[c][slot] <= from) return true;
    const { intervalFrom, intervalTo, intervalNext, intervalHead } = live;
    let steps = STEPS;
    for (let y = this.#first[c][slot]; y !== 0; y = this.#next[y]) {
      let p = intervalHead[x], q = intervalHead[y];
      while (p !== 0 && q !== 0) {
        if (--steps < 0) return false;
        if (intervalTo[p] <= intervalFrom[q]) p = intervalNext[p];
        else if (intervalTo[q] <= intervalFrom[p]) q = intervalNext[q];
        else return false;
      }
    }
    return true;
  }

  /** Turns slots of classes into slots of the frame: references lowest, then the aligned ones, halves last. */
  #number(v: VCode, values: number, out: Allocation): void {
    const refs = this.#ends[CLASS_REF].length, wide = this.#ends[CLASS_16].length;
    const halves = this.#ends[CLASS_4].length;
    const wideBase = (refs + 1) & ~1;
    const base = wide > 0 ? wideBase + 2 * wide : refs;
    out.refSlotCount = refs;
    out.halfFirst = base + this.#ends[CLASS_8].length;
    out.halfCount = (halves + 1) & ~1;
    out.slotCount = out.halfFirst + out.halfCount;
    const first = [0, base, wideBase, out.halfFirst];
    for (let j = 0; j < values; j++) {
      const x = lowOf(this.#order[j]), slot = this.#slot[x] - 1, c = this.#classOf(v.vregTy[x]);
      this.location[x] = -1 - first[c] - (c === CLASS_16 ? 2 * slot : slot);
    }
  }
}

/** A binary heap of slots; the slot whose value ends first is on top. */
class Heap {
  size = 0;
  #keys: Float64Array = new Float64Array(64);

  firstEnd(): number {
    return positionOf(this.#keys[0]);
  }

  add(end: number, slot: number): void {
    if (this.size >= this.#keys.length) this.#keys = grown(this.#keys, this.size * 2);
    const keys = this.#keys, value = pack(end, slot);
    let k = this.size++;
    while (k > 0) {
      const parent = (k - 1) >> 1;
      if (keys[parent] <= value) break;
      keys[k] = keys[parent];
      k = parent;
    }
    keys[k] = value;
  }

  /** Removes the top and returns its slot. */
  removeFirst(): number {
    const keys = this.#keys, slot = lowOf(keys[0]), n = --this.size, value = keys[n];
    let k = 0;
    for (;;) {
      let child = 2 * k + 1;
      if (child >= n) break;
      if (child + 1 < n && keys[child + 1] < keys[child]) child++;
      if (keys[child] >= value) break;
      keys[k] = keys[child];
      k = child;
    }
    keys[k] = value;
    return slot;
  }
}
