/**
 * The state of memory at a program point, for GVN: a version number per alias class, which changes when the class may
 * have been written, and the most recent accesses, which survive writes beside them.
 *
 * Two loads of one address are equal if the class has the same version at both. Versions: a store bumps its class, a
 * call bumps all but CLASS_CONSTANT; where paths merge, a class keeps its version only if all predecessors agree; at a
 * loop header, the classes that the loop writes get a new one. A function's classes are mapped to at most 32 slots in
 * order of appearance; the remaining classes share the last slot, which is correct and only less precise. A class that
 * first appears after some of the merging paths have no common version for it. CLASS_CONSTANT needs no slot: its
 * version is always 0.
 */
import { grown } from "../base/columns.ts";
import { unsigned } from "../base/numbers.ts";
import type { IrFunction } from "../ir/function.ts";
import { CLASS_CONSTANT, CLASS_SIZES, regionClass } from "../ir/regions.ts";
import { ACCESS_BYTES, FLAG, OP, OP_FLAGS } from "../ir/ops.ts";
import { TY_BYTES } from "../ir/types.ts";
import type { ControlFlow } from "./cfg.ts";

/** Slots of a function, and of one with so many blocks that a wide table of versions would take too much memory. */
const SLOTS = 32, FEW_SLOTS = 4, MANY_BLOCKS = 1 << 15;
const RECENT = 8;
const MEMORY = FLAG.READS | FLAG.WRITES | FLAG.CALLS;
const { LOAD, LOAD32_U, STORE, STORE32 } = OP;

/** Bytes that load or store `i` touches. */
export function accessBytes(f: IrFunction, i: number): number {
  const op = f.op[i];
  const narrow = ACCESS_BYTES[op];
  if (narrow !== 0) return narrow;
  return TY_BYTES[op === STORE ? f.ty[f.b[i]] : f.ty[i]];
}

export class MemoryState {
  /** Number of slots in use. */
  slots = 0;
  /** Current version by slot. */
  readonly version: Int32Array = new Int32Array(SLOTS);
  /** Slot by alias class, plus one. Classes of the last function are cleared by `prepare`. */
  #slotOf: Int32Array = new Int32Array(64);
  readonly #classOf: Int32Array = new Int32Array(SLOTS);
  #shared: Int32Array = new Int32Array(64);
  #sharedCount = 0;
  /** By block: bit s = writes slot s. By header: the same over its loop. */
  #writes: Int32Array = new Int32Array(64);
  #loopWrites: Int32Array = new Int32Array(64);
  /** The maximum number of slots of this function. */
  #limit = SLOTS;
  /** By block × #limit: versions at its end, for as many slots as there were then. */
  #exit: Int32Array = new Int32Array(64 * SLOTS);
  #exitSlots: Int32Array = new Int32Array(64);
  #counter = 0;
  /** Ids of recent loads and stores whose value is still the contents of their address; in no particular order. */
  readonly recent: Int32Array = new Int32Array(RECENT);
  recentCount = 0;
  #recentNext = 0;

  /** Collects the reads and writes of the blocks of `f`. `flow` gives the loops. */
  prepare(f: IrFunction, flow: ControlFlow): void {
    for (let s = 0; s < this.slots; s++) this.#slotOf[this.#classOf[s]] = 0;
    for (let n = 0; n < this.#sharedCount; n++) this.#slotOf[this.#shared[n]] = 0;
    this.#sharedCount = 0;
    this.slots = 0;
    this.recentCount = 0;
    this.#recentNext = 0;
    this.#counter = 1;
    const blocks = f.blockCount;
    if (blocks > this.#writes.length) {
      this.#writes = new Int32Array(blocks * 2);
      this.#loopWrites = new Int32Array(blocks * 2);
      this.#exitSlots = new Int32Array(blocks * 2);
    }
    this.#limit = blocks > MANY_BLOCKS ? FEW_SLOTS : SLOTS;
    if (blocks * this.#limit > this.#exit.length) this.#exit = new Int32Array(blocks * this.#limit * 2);
    if (flow.loopCount > 0) this.#surveyLoops(f, flow);
  }

  /** Collects the writes of loops; only their blocks are scanned. */
  #surveyLoops(f: IrFunction, flow: ControlFlow): void {
    const writes = this.#writes;
    const { op, c, sched, blockStart, blockEnd } = f;
    const { loopOf } = flow;
    const blocks = f.blockCount;
    for (let k = 0; k < blocks; k++) {
      if (loopOf[k] < 0) continue;
      let bits = 0;
      for (let s = blockStart[k], end = blockEnd[k]; s < end; s++) {
        const i = sched[s];
        const o = op[i];
        const flags = OP_FLAGS[o];
        if ((flags & MEMORY) === 0) continue;
        if ((flags & FLAG.CALLS) !== 0 || ((flags & FLAG.WRITES) !== 0 && !isStore(o))) bits = -1;
        else {
          const aliasClass = regionClass(c[i]);
          if ((flags & FLAG.WRITES) !== 0 && aliasClass !== CLASS_CONSTANT) bits |= 1 << this.#slot(aliasClass);
        }
      }
      writes[k] = bits;
    }
    this.#closeLoops(blocks, flow);
  }

  /** The slot of a class other than CLASS_CONSTANT; a new class gets an unused version. */
  #slot(aliasClass: number): number {
    if (aliasClass < this.#slotOf.length) {
      const slot = this.#slotOf[aliasClass];
      if (slot > 0) return slot - 1;
    }
    return this.#newSlot(aliasClass);
  }

  #newSlot(aliasClass: number): number {
    if (aliasClass >= this.#slotOf.length) this.#slotOf = grown(this.#slotOf, aliasClass * 2);
    if (this.slots < this.#limit) {
      this.#classOf[this.slots] = aliasClass;
      this.version[this.slots] = ++this.#counter;
      this.#slotOf[aliasClass] = ++this.slots;
      return this.slots - 1;
    }
    if (this.#sharedCount === this.#shared.length) this.#shared = grown(this.#shared, this.#sharedCount * 2);
    this.#shared[this.#sharedCount++] = aliasClass;
    this.#slotOf[aliasClass] = this.#limit;
    return this.#limit - 1;
  }

  #closeLoops(blocks: number, flow: ControlFlow): void {
    const writes = this.#writes, loopWrites = this.#loopWrites;
    const { loopOf, loopParent, loopEnd } = flow;
    loopWrites.fill(0, 0, blocks);
    for (let k = 0; k < blocks; k++) {
      if (loopOf[k] >= 0) loopWrites[loopOf[k]] = loopWrites[loopOf[k]] | writes[k];
    }
    for (let k = blocks - 1; k >= 0; k--) {
      if (loopEnd[k] > 0 && loopParent[k] >= 0) {
        loopWrites[loopParent[k]] = loopWrites[loopParent[k]] | loopWrites[k];
      }
    }
  }

  /** Whether the loop of header `head` writes `aliasClass`. Valid after `prepare` until blocks are renumbered. */
  loopMayWrite(head: number, aliasClass: number): boolean {
    if (aliasClass === CLASS_CONSTANT) return false;
    const bits = this.#loopWrites[head];
    return bits === -1 || (bits !== 0 && (bits & (1 << this.#slot(aliasClass))) !== 0);
  }

  /** Whether the loop of header `head` calls anything (or writes every class). */
  loopCalls(head: number): boolean {
    return this.#loopWrites[head] === -1;
  }

  /** Sets the state at the entry of block `k` from its live predecessors. */
  enter(f: IrFunction, flow: ControlFlow, k: number): void {
    const { version, slots } = this;
    if (k === 0) {
      this.recentCount = 0;
      return;
    }
    const { predStart, predEdge } = flow;
    const exit = this.#exit, exitSlots = this.#exitSlots;
    const edgeFrom = f.edgeFrom;
    const limit = this.#limit;
    let only = -1;
    let several = false;
    for (let p = predStart[k], end = predStart[k + 1]; p < end; p++) {
      const from = edgeFrom[predEdge[p]];
      if (from < 0 || from >= k) continue;
      const at = from * limit, known = exitSlots[from];
      if (only < 0) {
        only = from;
        // The versions at the end of the preceding block are the current ones.
        if (from === k - 1) continue;
        for (let s = 0; s < known; s++) version[s] = exit[at + s];
        for (let s = known; s < slots; s++) version[s] = ++this.#counter;
      } else if (from !== only) {
        several = true;
        for (let s = 0; s < slots; s++) if (s >= known || version[s] !== exit[at + s]) version[s] = -1;
      }
    }
    const looped = flow.loopEnd[k] > 0 ? this.#loopWrites[k] : 0;
    if (several || only !== k - 1 || looped !== 0) this.recentCount = 0;
    if (!several && looped === 0) return;
    for (let s = 0; s < slots; s++) {
      if (version[s] === -1 || (looped & (1 << s)) !== 0) version[s] = ++this.#counter;
    }
  }

  /** Keeps the state at the end of block `k` for its successors. */
  leave(k: number): void {
    const { version, slots } = this;
    const exit = this.#exit;
    for (let s = 0, at = k * this.#limit; s < slots; s++) exit[at + s] = version[s];
    this.#exitSlots[k] = slots;
  }

  /**
   * A call: all classes but the constant one may have changed. If `sizes` is false, sizes and bases of memories and
   * tables are unchanged.
   */
  call(f: IrFunction, sizes: boolean): void {
    const { version, slots, recent } = this;
    const counter = ++this.#counter;
    const kept = sizes ? -1 : CLASS_SIZES;
    for (let s = 0; s < slots; s++) if (this.#classOf[s] !== kept || s === this.#limit - 1) version[s] = counter;
    let count = 0;
    for (let n = 0; n < this.recentCount; n++) {
      const aliasClass = regionClass(f.c[recent[n]]);
      if (aliasClass === CLASS_CONSTANT || aliasClass === kept) recent[count++] = recent[n];
    }
    this.recentCount = count;
  }

  /**
   * Store `i` writes `bytes` bytes: its class gets a new version, and recent accesses of the class stay known only if
   * they are disjoint (the same base value and offset ranges that do not overlap or wrap: see REGION in
   * ir/function.ts).
   */
  store(f: IrFunction, i: number, bytes: number): void {
    const aliasClass = regionClass(f.c[i]);
    if (aliasClass !== CLASS_CONSTANT) this.version[this.#slot(aliasClass)] = ++this.#counter;
    const { a, c, imm } = f;
    const recent = this.recent;
    const base = a[i], word = c[i], first = unsigned(imm[i]);
    let count = 0;
    for (let n = 0; n < this.recentCount; n++) {
      const r = recent[n];
      if (c[r] === word) {
        const at = unsigned(imm[r]);
        if (a[r] !== base || (at < first + bytes && first < at + accessBytes(f, r))) continue;
      } else if (regionClass(c[r]) === aliasClass) continue;
      recent[count++] = r;
    }
    this.recentCount = count;
    if (this.#recentNext > count) this.#recentNext = 0;
  }

  /** Remembers that the contents at the address of load or store `i` are its value. */
  remember(i: number): void {
    if (this.recentCount < RECENT) {
      this.recent[this.recentCount++] = i;
      return;
    }
    this.recent[this.#recentNext] = i;
    this.#recentNext = (this.#recentNext + 1) % RECENT;
  }

  /** A recent load or store at the same address as access `i` (whatever its width), or 0. */
  find(f: IrFunction, i: number): number {
    const { a, c, imm } = f;
    const recent = this.recent;
    const base = a[i], word = c[i], offset = imm[i];
    for (let n = this.recentCount - 1; n >= 0; n--) {
      const r = recent[n];
      if (a[r] === base && imm[r] === offset && c[r] === word) return r;
    }
    return 0;
  }

  /** The current version of `aliasClass`: part of the key of its loads. */
  versionOf(aliasClass: number): number {
    if (aliasClass === CLASS_CONSTANT) return 0;
    return this.version[this.#slot(aliasClass)];
  }
}

/** Whether `op` is a load. */
export function isLoad(op: number): boolean {
  return op >= LOAD && op <= LOAD32_U;
}

/** Whether `op` is a store. */
export function isStore(op: number): boolean {
  return op >= STORE && op <= STORE32;
}
