/**
 * Stack slots for the values that the linear scan put into memory: one per value, for its whole life, given out in order of
 * definition. A value prefers the slot of the one it is passed to (its affinity), so that what goes around a loop, or into a
 * join, stays where it is. Slots of references, of 8 and of 16 bytes are never mixed: moves may take them for distinct
 * locations, and a collector finds all references in the lowest `refSlotCount` cells of the frame.
 */
import { TY, TY_BYTES } from "../ir/types.ts";
import type { Allocation } from "./allocation.ts";
import type { Liveness } from "./liveness.ts";
import type { VCode } from "./vcode.ts";

const CLASS_REF = 0, CLASS_8 = 1, CLASS_16 = 2, CLASSES = 3;
const HOPS = 3;

function classOf(ty: number): number {
  return ty === TY.REF ? CLASS_REF : TY_BYTES[ty] === 16 ? CLASS_16 : CLASS_8;
}

export class SpillSlots {
  /** Location of the slot per virtual register (Allocation: < 0), 0 for none. */
  location: Int32Array = new Int32Array(0);

  /** Per virtual register: number of its slot within its class, plus one; the slot that sources of its affinity got. */
  #slot: Int32Array = new Int32Array(0);
  #wanted: Int32Array = new Int32Array(0);
  #order: Float64Array = new Float64Array(64);
  /** Per class: end of the life of each slot's value, and a heap of (end, slot) as end × 2²⁰ + slot. */
  readonly #ends: number[][] = [[], [], []];
  readonly #busy: number[][] = [[], [], []];
  readonly #free: number[][] = [[], [], []];

  /** Gives a slot to every virtual register x with needsSlot[x] that cannot be repeated instead. */
  assign(v: VCode, live: Liveness, needsSlot: Uint8Array, out: Allocation): void {
    const vregs = v.vregCount;
    if (vregs > this.location.length) {
      this.location = new Int32Array(vregs * 2);
      this.#slot = new Int32Array(vregs * 2);
      this.#wanted = new Int32Array(vregs * 2);
    }
    this.location.fill(0, 0, vregs);
    this.#slot.fill(0, 0, vregs);
    this.#wanted.fill(0, 0, vregs);
    let n = 0;
    for (let x = 1; x < vregs; x++) {
      if (needsSlot[x] === 0 || v.vregRemat[x] !== 0) continue;
      if (n >= this.#order.length) {
        const next = new Float64Array(n * 2);
        next.set(this.#order);
        this.#order = next;
      }
      this.#order[n++] = live.pieceFrom[live.pieceHead[x]!]! * 0x200000 + x;
    }
    for (let c = 0; c < CLASSES; c++) {
      this.#ends[c]!.length = 0;
      this.#busy[c]!.length = 0;
      this.#free[c]!.length = 0;
    }
    if (n > 0) {
      const order = this.#order.subarray(0, n).sort();
      for (let j = 0; j < n; j++) this.#place(v, live, order[j]! % 0x200000);
    }
    this.#number(v, needsSlot, out);
  }

  #place(v: VCode, live: Liveness, x: number): void {
    const c = classOf(v.vregTy[x]!), ends = this.#ends[c]!, busy = this.#busy[c]!, free = this.#free[c]!;
    const from = live.pieceFrom[live.pieceHead[x]!]!;
    let last = live.pieceHead[x]!;
    while (live.pieceNext[last] !== 0) last = live.pieceNext[last]!;
    const to = live.pieceTo[last]!;
    while (busy.length > 0 && busy[0]! < (from + 1) * 0x100000) {
      const top = busy[0]!, slot = top % 0x100000;
      popHeap(busy);
      // Not if an affinity has extended the slot's life meanwhile.
      if (ends[slot] === (top - slot) / 0x100000) free.push(slot);
    }
    let slot = this.#preferred(v, live, x, c, from);
    while (slot < 0 && free.length > 0) {
      const candidate = free.pop()!;
      if (ends[candidate]! <= from) slot = candidate;
    }
    if (slot < 0) slot = ends.push(0) - 1;
    ends[slot] = to;
    pushHeap(busy, to * 0x100000 + slot);
    this.#slot[x] = slot + 1;
    const a = live.affinity[x]!;
    if (a !== 0 && this.#wanted[a] === 0) this.#wanted[a] = slot + 1;
  }

  /** The slot of a value that x is passed to or comes from, if it is free from `from` on; −1 if there is none. */
  #preferred(v: VCode, live: Liveness, x: number, c: number, from: number): number {
    const ends = this.#ends[c]!;
    if (this.#wanted[x] !== 0 && ends[this.#wanted[x]! - 1]! <= from) return this.#wanted[x]! - 1;
    let hops = 0;
    for (let a = live.affinity[x]!; a !== 0 && hops < HOPS; a = live.affinity[a]!, hops++) {
      if (classOf(v.vregTy[a]!) !== c) continue;
      const slot = this.#slot[a]! !== 0 ? this.#slot[a]! : this.#wanted[a]!;
      if (slot !== 0 && ends[slot - 1]! <= from) return slot - 1;
    }
    return -1;
  }

  /** Turns slots of classes into slots of the frame: references lowest, then the aligned ones. */
  #number(v: VCode, needsSlot: Uint8Array, out: Allocation): void {
    const refs = this.#ends[CLASS_REF]!.length, wide = this.#ends[CLASS_16]!.length;
    const wideBase = (refs + 1) & ~1;
    const base = wide > 0 ? wideBase + 2 * wide : refs;
    out.refSlotCount = refs;
    out.slotCount = base + this.#ends[CLASS_8]!.length;
    for (let x = 1; x < v.vregCount; x++) {
      const slot = this.#slot[x]! - 1;
      if (needsSlot[x] === 0 || slot < 0) continue;
      const c = classOf(v.vregTy[x]!);
      this.location[x] = -1 - (c === CLASS_REF ? slot : c === CLASS_16 ? wideBase + 2 * slot : base + slot);
    }
  }
}

function pushHeap(heap: number[], value: number): void {
  let k = heap.push(value) - 1;
  while (k > 0) {
    const parent = (k - 1) >> 1;
    if (heap[parent]! <= value) break;
    heap[k] = heap[parent]!;
    k = parent;
  }
  heap[k] = value;
}

function popHeap(heap: number[]): void {
  const value = heap.pop()!, n = heap.length;
  if (n === 0) return;
  let k = 0;
  for (;;) {
    let child = 2 * k + 1;
    if (child >= n) break;
    if (child + 1 < n && heap[child + 1]! < heap[child]!) child++;
    if (heap[child]! >= value) break;
    heap[k] = heap[child]!;
    k = child;
  }
  heap[k] = value;
}
