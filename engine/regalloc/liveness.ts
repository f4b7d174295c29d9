/**
 * Live ranges of a VCode in one reverse pass: per virtual register an ascending list of intervals [from, to) of the
 * position scale (block_facts.ts), an ascending list of uses, the position and kind of its definition, and the register
 * that it should share (its affinity); per physical register the fixed ranges in which an instruction claims it.
 *
 * No fixpoint: values that are live at a loop header are live in the whole loop (Wimmer and Franz, "Linear Scan
 * Register Allocation on SSA Form", 2010). The set of live registers is carried from block to block; targets of forward
 * jumps keep a copy of theirs until the jumps have been passed. If the copies of a huge function grow too large, the
 * pass starts again without them and treats everything between a definition and its last use as live, which is safe.
 *
 * A use that the allocator satisfies by a move in the gap before its instruction (a fixed register, a tied operand) or
 * on an edge keeps its value live only up to that move. It does not keep a rematerializable value (VCode.vregRemat)
 * live at all.
 */
import { grown } from "../base/columns.ts";
import { Bug } from "../base/errors.ts";
import { TY, TY_BANK } from "../ir/types.ts";
import type { BlockFacts } from "./block_facts.ts";
import type { AllocatableRegisters } from "./allocator_options.ts";
import { CONSTRAINT, ROLE, type VCode, VREG_MASK } from "../codegen/vcode.ts";

/** Requirement of a use; bits 0-1 of useInfo. */
export const USE_KIND = { REG: 0, ANY: 1, GAP: 2, EDGE: 3 } as const;
/** Bit of useInfo: the value must stay until the instruction ends. */
export const USE_LATE = 4;
/** useInfo >> USE_HINT_SHIFT is the fixed register that a GAP use moves to, plus one. */
export const USE_HINT_SHIFT = 3;

/** The kind of a register's definition. */
export const DEF_KIND = { NONE: 0, REG: 1, ANY: 2, FIXED: 3, TIED: 4, PARAM: 5, TEMP: 6 } as const;

/** Location of an interval that is in its value's stack slot, or is rematerialized at its uses; registers are ≥ 0. */
export const IN_SLOT = -1;

export class Liveness {
  // Per virtual register.
  intervalHead: Int32Array = new Int32Array(0);
  useHead: Int32Array = new Int32Array(0);
  defPos: Int32Array = new Int32Array(0);
  defKind: Uint8Array = new Uint8Array(0);
  /** Physical register of a FIXED def. */
  defFixed: Uint8Array = new Uint8Array(0);
  /**
   * Virtual register that should have the same physical one: the block parameter that receives it, or the def tied to
   * it.
   */
  affinity: Int32Array = new Int32Array(0);
  /** For a TIED def, the register of the operand it is tied to; for a PARAM, its number in its block. */
  tiedTo: Int32Array = new Int32Array(0);
  /** Physical register of its first use in a fixed one, plus one; 0 none. */
  fixedUse: Uint8Array = new Uint8Array(0);
  #affinityWeight: Float64Array = new Float64Array(0);
  #openTo: Int32Array = new Int32Array(0);
  #livePlace: Int32Array = new Int32Array(0);
  #stamp: Int32Array = new Int32Array(0);

  // Intervals; 0 is none.
  intervalFrom: Int32Array = new Int32Array(1024);
  intervalTo: Int32Array = new Int32Array(1024);
  intervalVreg: Int32Array = new Int32Array(1024);
  /** Next interval of the same virtual register. */
  intervalNext: Int32Array = new Int32Array(1024);
  /** Physical register or IN_SLOT, once allocated. */
  intervalLoc: Int32Array = new Int32Array(1024);
  /** Next interval in the same queue of linear_scan.ts. */
  intervalLink: Int32Array = new Int32Array(1024);
  intervalCount = 1;

  // Uses; 0 is none.
  usePos: Int32Array = new Int32Array(1024);
  useInfo: Int32Array = new Int32Array(1024);
  useNext: Int32Array = new Int32Array(1024);
  useCount = 1;

  // Fixed ranges per physical register, ascending; 0 is none. `fixedTag` is the virtual register that may occupy the
  // register during the range.
  fixedHead: Int32Array = new Int32Array(64);
  fixedFrom: Int32Array = new Int32Array(256);
  fixedTo: Int32Array = new Int32Array(256);
  fixedTag: Int32Array = new Int32Array(256);
  fixedNext: Int32Array = new Int32Array(256);
  fixedCount = 1;
  /** Positions at which every allocatable register is destroyed, descending. */
  clobberAll: Int32Array = new Int32Array(64);
  clobberAllCount = 0;
  /** Per loop header: the estimated share of the loop's iterations in which all registers are destroyed, at most 1. */
  destroyed: Float64Array = new Float64Array(64);

  /** The maximum total number of entries in the copies of live sets. */
  copyLimit: number = 1 << 23;

  #live: Int32Array = new Int32Array(256);
  #liveCount = 0;
  #copies: Int32Array = new Int32Array(1024);
  #copyCount = 0;
  /** Per block: start and length (−1 none) of the copy of its live set. */
  #copyStart: Int32Array = new Int32Array(0);
  #copyLength: Int32Array = new Int32Array(0);

  /** Computes all of it for `v`. */
  compute(v: VCode, facts: BlockFacts, registers: AllocatableRegisters): void {
    if (!this.#pass(v, facts, registers, true)) this.#pass(v, facts, registers, false);
    this.#estimateDestruction(facts);
  }

  #estimateDestruction(facts: BlockFacts): void {
    const blocks = facts.blockCount, loop = facts.loop, chance = facts.chance;
    if (blocks > this.destroyed.length) this.destroyed = new Float64Array(blocks * 2);
    const destroyed = this.destroyed;
    destroyed.fill(0, 0, blocks);
    let before = -1;
    for (let c = 0; c < this.clobberAllCount; c++) {
      const block = facts.blockOf[this.clobberAll[c] >> 1], header = loop[block];
      if (header >= 0 && block !== before) destroyed[header] += chance[block];
      before = block;
    }
    // Inner loops have higher headers: their sums are complete when they are added to the loop around.
    for (let k = blocks - 1; k >= 0; k--) {
      if (loop[k] !== k || destroyed[k] === 0) continue;
      const parent = facts.loopParent[k];
      if (parent >= 0) destroyed[parent] += Math.min(destroyed[k], chance[k]);
      destroyed[k] = Math.min(destroyed[k] / chance[k], 1);
    }
  }

  #reserve(v: VCode): void {
    const vregs = v.vregCount;
    if (vregs > this.intervalHead.length) {
      const size = vregs * 2;
      this.intervalHead = new Int32Array(size);
      this.useHead = new Int32Array(size);
      this.defPos = new Int32Array(size);
      this.defKind = new Uint8Array(size);
      this.defFixed = new Uint8Array(size);
      this.affinity = new Int32Array(size);
      this.tiedTo = new Int32Array(size);
      this.fixedUse = new Uint8Array(size);
      this.#affinityWeight = new Float64Array(size);
      this.#openTo = new Int32Array(size);
      this.#livePlace = new Int32Array(size);
      this.#stamp = new Int32Array(size);
    }
    this.intervalHead.fill(0, 0, vregs);
    this.useHead.fill(0, 0, vregs);
    this.defPos.fill(0, 0, vregs);
    this.defKind.fill(0, 0, vregs);
    this.affinity.fill(0, 0, vregs);
    this.fixedUse.fill(0, 0, vregs);
    this.#affinityWeight.fill(0, 0, vregs);
    this.#openTo.fill(0, 0, vregs);
    this.#livePlace.fill(0, 0, vregs);
    this.#stamp.fill(-1, 0, vregs);
    if (v.blockCount > this.#copyStart.length) {
      this.#copyStart = new Int32Array(v.blockCount * 2);
      this.#copyLength = new Int32Array(v.blockCount * 2);
    }
    this.#copyLength.fill(-1, 0, v.blockCount);
    this.fixedHead.fill(0);
    this.intervalCount = 1;
    this.useCount = 1;
    this.fixedCount = 1;
    this.clobberAllCount = 0;
    this.#liveCount = 0;
    this.#copyCount = 0;
  }

  /** One pass; false if copies of live sets were requested and grew too large. */
  #pass(v: VCode, facts: BlockFacts, registers: AllocatableRegisters, copies: boolean): boolean {
    this.#reserve(v);
    const blocks = v.blockCount, start = facts.start;
    for (let k = blocks - 1; k >= 0; k--) {
      const end = start[k + 1];
      this.#reserveUses(v, k);
      if (copies) this.#enterBlockEnd(v, k, end);
      this.#useEdgeArguments(v, facts, k, end);
      this.#instructions(v, facts, registers, k);
      const first = v.paramStart[k], params = v.paramCount[k];
      for (let j = 0; j < params; j++) {
        const p = v.pool[first + j];
        this.defPos[p] = start[k];
        this.defKind[p] = DEF_KIND.PARAM;
        this.tiedTo[p] = j;
        if (this.#openTo[p] !== 0) this.#close(p, start[k]);
      }
      if (facts.loop[k] === k) this.#extendOverLoop(start[facts.loopEnd[k]]);
      if (copies && this.#isJumpedTo(v, facts, k) && !this.#copyLiveSet(k)) return false;
    }
    if (this.#liveCount > 0) throw new Bug(`register allocation: v${this.#live[0]} is used but never defined`);
    return true;
  }

  /** Makes room for the uses of block k and its edges. */
  #reserveUses(v: VCode, k: number): void {
    const end = k + 1 < v.blockCount ? v.blockFirst[k + 1] : v.count;
    let most = this.useCount + v.firstOperand[end] - v.firstOperand[v.blockFirst[k]];
    const first = v.succStart[k], last = first + v.succCount[k];
    for (let j = first; j < last; j++) most += v.paramCount[v.edgeTo[v.succ[j]]];
    if (most <= this.usePos.length) return;
    this.usePos = grown(this.usePos, most * 2);
    this.useInfo = grown(this.useInfo, most * 2);
    this.useNext = grown(this.useNext, most * 2);
  }

  /** Whether a block other than the one before it jumps to block k forwards. */
  #isJumpedTo(v: VCode, facts: BlockFacts, k: number): boolean {
    const end = facts.predFirst[k + 1];
    for (let j = facts.predFirst[k]; j < end; j++) if (v.edgeFrom[facts.pred[j]] < k - 1) return true;
    return false;
  }

  #copyLiveSet(k: number): boolean {
    const n = this.#liveCount;
    if (this.#copyCount + n > this.copyLimit) return false;
    if (this.#copyCount + n > this.#copies.length) this.#copies = grown(this.#copies, (this.#copyCount + n) * 2);
    const copies = this.#copies, live = this.#live, start = this.#copyCount;
    for (let j = 0; j < n; j++) copies[start + j] = live[j];
    this.#copyStart[k] = start;
    this.#copyLength[k] = n;
    this.#copyCount = start + n;
    return true;
  }

  /** Turns the live set of block k + 1 into the live-out set of block k (except for its edges' arguments). */
  #enterBlockEnd(v: VCode, k: number, end: number): void {
    const first = v.succStart[k], last = first + v.succCount[k], succ = v.succ, edgeTo = v.edgeTo;
    const stamp = this.#stamp, copies = this.#copies;
    let falls = false;
    for (let j = first; j < last; j++) if (edgeTo[succ[j]] === k + 1) falls = true;
    if (!falls && this.#liveCount > 0) {
      for (let j = first; j < last; j++) {
        const to = edgeTo[succ[j]];
        if (to <= k) continue;
        const copy = this.#copyStart[to], n = this.#copyLength[to];
        for (let c = 0; c < n; c++) stamp[copies[copy + c]] = k;
      }
      for (let j = this.#liveCount - 1; j >= 0; j--) {
        const x = this.#live[j];
        if (stamp[x] !== k) this.#close(x, end);
      }
    }
    for (let j = first; j < last; j++) {
      const to = edgeTo[succ[j]];
      if (to <= k + 1) continue;
      const copy = this.#copyStart[to], n = this.#copyLength[to];
      for (let c = 0; c < n; c++) this.#open(copies[copy + c], end);
    }
  }

  #useEdgeArguments(v: VCode, facts: BlockFacts, k: number, end: number): void {
    const first = v.succStart[k], last = first + v.succCount[k];
    for (let j = first; j < last; j++) {
      const e = v.succ[j], to = v.edgeTo[e], n = v.paramCount[to];
      if (n === 0) continue;
      const args = v.argStart[e], params = v.paramStart[to];
      // Passing a value around a loop counts double: the parameter's register is known there already.
      const weight = to <= k ? facts.frequency[k] * 2 : Math.min(facts.frequency[k], facts.frequency[to]);
      for (let p = 0; p < n; p++) {
        const a = v.pool[args + p];
        if (v.vregRemat[a] !== 0) continue;
        this.#open(a, end);
        this.#addUse(a, end - 2, USE_KIND.EDGE | USE_LATE);
        if (weight > this.#affinityWeight[a]) {
          this.#affinityWeight[a] = weight;
          this.affinity[a] = v.pool[params + p];
        }
      }
    }
  }

  #instructions(v: VCode, facts: BlockFacts, registers: AllocatableRegisters, k: number): void {
    const operands = v.operands, firstOperand = v.firstOperand, clobbers = v.clobbers;
    const firstInst = v.blockFirst[k], openTo = this.#openTo, useHead = this.useHead, vregRemat = v.vregRemat;
    const usePos = this.usePos,
      useInfo = this.useInfo,
      useNext = this.useNext,
      defPos = this.defPos,
      defKind = this.defKind;
    let n2 = facts.start[k + 1] - 2;
    for (let i = (n2 >> 1) - k - 1; i >= firstInst; i--, n2 -= 2) {
      const first = firstOperand[i], end = firstOperand[i + 1];
      if (clobbers[i] !== 0) this.#clobber(v, registers, i, n2 + 1);
      let tied = -1, tiedCount = 0, late = false;
      for (let o = first; o < end; o++) {
        const word = operands[o], role = (word >>> 21) & 3;
        if (role === ROLE.USE) continue;
        if (role !== ROLE.DEF) {
          late = true;
          continue;
        }
        const x = word & VREG_MASK, constraint = (word >>> 23) & 7;
        let from = n2 + 1, kind: number = DEF_KIND.REG;
        if (constraint === CONSTRAINT.FIXED) {
          kind = DEF_KIND.FIXED;
          this.defFixed[x] = word >>> 26;
          this.#addFixed(word >>> 26, from, n2 + 2, x);
        } else if (constraint === CONSTRAINT.ANY) {
          kind = DEF_KIND.ANY;
        } else if (constraint === CONSTRAINT.REUSE) {
          kind = DEF_KIND.TIED;
          from = n2;
          tied = first + (word >>> 26);
          tiedCount++;
          const source = operands[tied] & VREG_MASK;
          this.tiedTo[x] = source;
          // Sharing is possible only if the source dies here.
          if (this.#openTo[source] === 0) this.affinity[source] = x;
        }
        defPos[x] = from;
        defKind[x] = kind;
        if (openTo[x] === 0) this.#newInterval(x, from, n2 + 2);
        else this.#close(x, from);
      }
      if (late) this.#lateOperands(v, first, end, n2);
      const tiedSource = tied < 0 ? 0 : operands[tied] & VREG_MASK;
      for (let o = first; o < end; o++) {
        const word = operands[o];
        if (((word >>> 21) & 3) !== ROLE.USE) continue;
        const x = word & VREG_MASK, constraint = (word >>> 23) & 7;
        if (constraint === CONSTRAINT.FIXED) {
          this.#addFixed(word >>> 26, n2, n2 + 1, x);
          this.#gapUse(v, x, n2, ((word >>> 26) + 1) << USE_HINT_SHIFT);
        } else if (tied >= 0 && (x === tiedSource || (tiedCount > 1 && this.#isTied(v, first, end, o)))) {
          this.#gapUse(v, x, n2, 0);
        } else {
          if (openTo[x] <= n2) this.#open(x, n2 + 1);
          const head = useHead[x],
            kind = constraint === CONSTRAINT.ANY && vregRemat[x] === 0 ? USE_KIND.ANY : USE_KIND.REG;
          if (head !== 0 && usePos[head] === n2) {
            this.#addUse(x, n2, kind);
          } else {
            const u = this.useCount++;
            usePos[u] = n2;
            useInfo[u] = kind;
            useNext[u] = head;
            useHead[x] = u;
          }
        }
      }
    }
  }

  /** Whether operand `o` is tied to some def of its instruction. Rare: an instruction with several tied defs. */
  #isTied(v: VCode, first: number, end: number, o: number): boolean {
    for (let d = first; d < end; d++) {
      const word = v.operands[d];
      if (((word >>> 21) & 3) !== ROLE.DEF || ((word >>> 23) & 7) !== CONSTRAINT.REUSE) continue;
      if (((v.operands[first + (word >>> 26)] ^ v.operands[o]) & VREG_MASK) === 0) return true;
    }
    return false;
  }

  /** Temporaries and uses that last until the instruction ends. */
  #lateOperands(v: VCode, first: number, end: number, n2: number): void {
    for (let o = first; o < end; o++) {
      const word = v.operands[o], role = (word >>> 21) & 3, constraint = (word >>> 23) & 7, x = word & VREG_MASK;
      if (role === ROLE.TEMP) {
        if (constraint === CONSTRAINT.FIXED) {
          this.#addFixed(word >>> 26, n2, n2 + 2, 0);
        } else {
          this.defPos[x] = n2;
          this.defKind[x] = DEF_KIND.TEMP;
          this.#newInterval(x, n2, n2 + 2);
        }
      } else if (role === ROLE.LATE_USE) {
        if (constraint === CONSTRAINT.FIXED) {
          this.#addFixed(word >>> 26, n2, n2 + 2, x);
          this.#gapUse(v, x, n2, ((word >>> 26) + 1) << USE_HINT_SHIFT);
        } else {
          const any = constraint === CONSTRAINT.ANY && v.vregRemat[x] === 0;
          this.#open(x, n2 + 2);
          this.#addUse(x, n2, (any ? USE_KIND.ANY : USE_KIND.REG) | USE_LATE);
        }
      }
    }
  }

  #gapUse(v: VCode, x: number, n2: number, hint: number): void {
    if (v.vregRemat[x] !== 0) return;
    this.#open(x, n2);
    this.#addUse(x, n2, USE_KIND.GAP | hint);
    if (hint !== 0) this.fixedUse[x] = hint >> USE_HINT_SHIFT;
  }

  /** Records the registers that instruction i destroys besides its fixed defs. */
  #clobber(v: VCode, registers: AllocatableRegisters, i: number, at: number): void {
    const set = v.clobbers[i];
    let general = v.clobberGeneral[set] & registers.general, vector = v.clobberVector[set] & registers.vector;
    let definedGeneral = 0, definedVector = 0;
    for (let o = v.firstOperand[i]; o < v.firstOperand[i + 1]; o++) {
      const word = v.operands[o];
      if (((word >>> 21) & 3) !== ROLE.DEF || ((word >>> 23) & 7) !== CONSTRAINT.FIXED) continue;
      const r = word >>> 26;
      if (r < 32) definedGeneral |= 1 << r;
      else definedVector |= 1 << (r - 32);
    }
    const allGeneral = ((general | definedGeneral) & registers.general) === registers.general;
    if (allGeneral && ((vector | definedVector) & registers.vector) === registers.vector) {
      if (this.clobberAllCount >= this.clobberAll.length) {
        this.clobberAll = grown(this.clobberAll, this.clobberAllCount * 2);
      }
      this.clobberAll[this.clobberAllCount++] = at;
      return;
    }
    general &= ~definedGeneral;
    vector &= ~definedVector;
    for (; general !== 0; general &= general - 1) {
      this.#addFixed(31 - Math.clz32(general & -general), at, at + 1, 0);
    }
    for (; vector !== 0; vector &= vector - 1) {
      this.#addFixed(63 - Math.clz32(vector & -vector), at, at + 1, 0);
    }
  }

  /** All values live at a loop header are live up to `end`, the end of the loop. */
  #extendOverLoop(end: number): void {
    const live = this.#live, openTo = this.#openTo, intervalHead = this.intervalHead;
    const intervalFrom = this.intervalFrom, intervalTo = this.intervalTo, intervalNext = this.intervalNext;
    for (let j = 0; j < this.#liveCount; j++) {
      const x = live[j];
      let to = openTo[x];
      if (to < end) to = end;
      let p = intervalHead[x];
      while (p !== 0 && intervalFrom[p] <= to) {
        if (intervalTo[p] > to) to = intervalTo[p];
        p = intervalNext[p];
      }
      intervalHead[x] = p;
      openTo[x] = to;
    }
  }

  /** Makes x live, up to `to` at least. */
  #open(x: number, to: number): void {
    const old = this.#openTo[x];
    if (old >= to) return;
    this.#openTo[x] = to;
    if (old !== 0) return;
    const n = this.#liveCount++;
    if (n >= this.#live.length) this.#live = grown(this.#live, n * 2);
    this.#live[n] = x;
    this.#livePlace[x] = n;
  }

  /** Ends the (backward) liveness of x at `from`. */
  #close(x: number, from: number): void {
    const to = this.#openTo[x], head = this.intervalHead[x];
    if (head !== 0 && this.intervalFrom[head] === to) this.intervalFrom[head] = from;
    else this.#newInterval(x, from, to);
    this.#openTo[x] = 0;
    const last = this.#live[--this.#liveCount], place = this.#livePlace[x];
    this.#live[place] = last;
    this.#livePlace[last] = place;
  }

  #newInterval(x: number, from: number, to: number): void {
    const p = this.addInterval(x, from, to);
    this.intervalNext[p] = this.intervalHead[x];
    this.intervalHead[x] = p;
  }

  /** A new interval, not yet in any list. */
  addInterval(x: number, from: number, to: number): number {
    const p = this.intervalCount++;
    if (p >= this.intervalFrom.length) {
      this.intervalFrom = grown(this.intervalFrom, p * 2);
      this.intervalTo = grown(this.intervalTo, p * 2);
      this.intervalVreg = grown(this.intervalVreg, p * 2);
      this.intervalNext = grown(this.intervalNext, p * 2);
      this.intervalLoc = grown(this.intervalLoc, p * 2);
      this.intervalLink = grown(this.intervalLink, p * 2);
    }
    this.intervalFrom[p] = from;
    this.intervalTo[p] = to;
    this.intervalVreg[p] = x;
    return p;
  }

  /** Records a use; several at one instruction become one with all requirements. */
  #addUse(x: number, pos: number, info: number): void {
    const head = this.useHead[x];
    if (head !== 0 && this.usePos[head] === pos) {
      const old = this.useInfo[head], late = (old | info) & USE_LATE;
      const hint = (old >> USE_HINT_SHIFT) !== 0 ? old : info;
      this.useInfo[head] = Math.min(old & 3, info & 3) | late | (hint & (-1 << USE_HINT_SHIFT));
      return;
    }
    const u = this.useCount++;
    this.usePos[u] = pos;
    this.useInfo[u] = info;
    this.useNext[u] = head;
    this.useHead[x] = u;
  }

  #addFixed(register: number, from: number, to: number, tag: number): void {
    const f = this.fixedCount++;
    if (f >= this.fixedFrom.length) {
      this.fixedFrom = grown(this.fixedFrom, f * 2);
      this.fixedTo = grown(this.fixedTo, f * 2);
      this.fixedTag = grown(this.fixedTag, f * 2);
      this.fixedNext = grown(this.fixedNext, f * 2);
    }
    this.fixedFrom[f] = from;
    this.fixedTo[f] = to;
    this.fixedTag[f] = tag;
    this.fixedNext[f] = this.fixedHead[register];
    this.fixedHead[register] = f;
  }
}

/** Whether the type is kept in vector registers. */
export function isVector(ty: number): boolean {
  return TY_BANK[ty] === TY_BANK[TY.F64];
}
