/**
 * From located intervals to an Allocation: the location of every operand, and the moves that carry values from interval
 * to interval, into fixed registers and tied operands, and along edges into block parameters (Wimmer and Franz, §6).
 *
 * All moves in the gap before an instruction, and all on one edge, are simultaneous (parallel_moves.ts orders them).
 * Their sources are locations just before the gap (position 2n − 1) or at the end of the block that the edge leaves. A
 * value is stored to its slot either where its intervals leave a register for the slot, or once after its definition,
 * whichever is estimated to run less often; because of SSA form, the slot stays valid from then on.
 */
import { grown } from "../base/columns.ts";
import type { f64 } from "../base/numbers.ts";
import { Bug } from "../base/errors.ts";
import { TY } from "../ir/types.ts";
import type { Allocation } from "../codegen/allocation.ts";
import type { AllocatorOptions } from "./allocator_options.ts";
import type { BlockFacts } from "./block_facts.ts";
import { DEF_KIND, IN_SLOT, type Liveness } from "./liveness.ts";
import { ParallelMoves } from "./parallel_moves.ts";
import { CONSTRAINT, ROLE, type VCode, VREG_MASK } from "../codegen/vcode.ts";

/** Values of #stored. */
const STORED = 1, STORED_ON_EDGES = 2;

export class Resolver {
  readonly #live: Liveness;
  readonly #facts: BlockFacts;
  readonly #moves = new ParallelMoves();
  #v!: VCode;
  #slots!: Int32Array;
  #options!: AllocatorOptions;
  #out!: Allocation;

  // Pending moves: lists per gap (number of the instruction) and per edge; 0 is none. A move has a source interval or
  // location.
  #gapHead: Int32Array = new Int32Array(0);
  #edgeHead: Int32Array = new Int32Array(0);
  #moveFrom: Int32Array = new Int32Array(256);
  #moveTo: Int32Array = new Int32Array(256);
  #moveVreg: Int32Array = new Int32Array(256);
  #moveTy: Int32Array = new Int32Array(256);
  #moveNext: Int32Array = new Int32Array(256);
  #moveCount = 1;

  /**
   * Per virtual register: 0, or the reason that its slot holds it from its definition on. And parameters yet to store.
   */
  #stored: Uint8Array = new Uint8Array(0);
  #parameters: Int32Array = new Int32Array(64);
  #parameterCount = 0;
  /** Per virtual register, the interval at the current instruction. */
  #cursor: Int32Array = new Int32Array(0);
  /** The intervals of one value, for searching. */
  #list: Int32Array = new Int32Array(64);
  /**
   * Stores that one value would need where its intervals leave registers: gap n as n, edge e as −1 − e; and their
   * sources.
   */
  #storeAt: Int32Array = new Int32Array(64);
  #storeFrom: Int32Array = new Int32Array(64);
  #storeCount = 0;
  #storeCost: f64 = 0;

  constructor(live: Liveness, facts: BlockFacts) {
    this.#live = live;
    this.#facts = facts;
  }

  /** Fills `out`. `slots` is the slot's location per virtual register. */
  run(v: VCode, slots: Int32Array, options: AllocatorOptions, out: Allocation): void {
    this.#v = v;
    this.#slots = slots;
    this.#options = options;
    this.#out = out;
    this.#prepare();
    const live = this.#live;
    for (let x = 1; x < v.vregCount; x++) {
      const head = live.intervalHead[x];
      if (head !== 0 && live.intervalNext[head] !== 0) this.#connectIntervals(x);
    }
    for (let j = 0; j < this.#parameterCount; j++) this.#storeParameter(this.#parameters[j]);
    this.#walkInstructions();
    this.#emitEdges();
    this.#findUnread();
  }

  #prepare(): void {
    const v = this.#v, out = this.#out, numbers = this.#facts.numbers;
    if (numbers > this.#gapHead.length) this.#gapHead = new Int32Array(numbers * 2);
    if (v.edgeCount > this.#edgeHead.length) this.#edgeHead = new Int32Array(v.edgeCount * 2);
    if (v.vregCount > this.#cursor.length) {
      this.#cursor = new Int32Array(v.vregCount * 2);
      this.#stored = new Uint8Array(v.vregCount * 2);
    }
    this.#stored.fill(0, 0, v.vregCount);
    this.#parameterCount = 0;
    this.#gapHead.fill(0, 0, numbers);
    this.#edgeHead.fill(0, 0, v.edgeCount);
    this.#cursor.set(this.#live.intervalHead.subarray(0, v.vregCount));
    this.#moveCount = 1;
    if (v.operandCount > out.location.length) out.location = new Int32Array(v.operandCount * 2);
    if (v.count > out.skip.length) out.skip = new Uint8Array(v.count * 2);
    out.skip.fill(0, 0, v.count);
    if (v.edgeCount >= out.edgeFirst.length) out.edgeFirst = new Int32Array(v.edgeCount * 2);
    out.editCount = 0;
    out.writtenGeneral = 0;
    out.writtenVector = 0;
    this.#moves.beginFunction();
  }

  /** Location of interval p; IN_SLOT for a value that is rematerialized. */
  #locationOf(p: number): number {
    const loc = this.#live.intervalLoc[p];
    if (loc >= 0) return loc;
    const slot = this.#slots[this.#live.intervalVreg[p]];
    return slot < 0 ? slot : IN_SLOT;
  }

  #newMove(from: number, to: number, x: number): number {
    const m = this.#moveCount++;
    if (m >= this.#moveFrom.length) {
      this.#moveFrom = grown(this.#moveFrom, m * 2);
      this.#moveTo = grown(this.#moveTo, m * 2);
      this.#moveVreg = grown(this.#moveVreg, m * 2);
      this.#moveTy = grown(this.#moveTy, m * 2);
      this.#moveNext = grown(this.#moveNext, m * 2);
    }
    this.#moveFrom[m] = from;
    this.#moveTo[m] = to;
    this.#moveVreg[m] = x;
    this.#moveTy[m] = this.#v.vregTy[x];
    return m;
  }

  #moveInGap(n: number, from: number, to: number, x: number): void {
    const m = this.#newMove(from, to, x);
    this.#moveNext[m] = this.#gapHead[n];
    this.#gapHead[n] = m;
  }

  #moveOnEdge(e: number, from: number, to: number, x: number, ty: number = this.#v.vregTy[x]): void {
    const m = this.#newMove(from, to, x);
    this.#moveTy[m] = ty;
    this.#moveNext[m] = this.#edgeHead[e];
    this.#edgeHead[e] = m;
  }

  #wantStore(at: number, from: number, frequency: f64): void {
    const n = this.#storeCount++;
    if (n >= this.#storeAt.length) {
      this.#storeAt = grown(this.#storeAt, n * 2);
      this.#storeFrom = grown(this.#storeFrom, n * 2);
    }
    this.#storeAt[n] = at;
    this.#storeFrom[n] = from;
    this.#storeCost += frequency;
  }

  /** Makes the moves between the intervals of x, which has several. */
  #connectIntervals(x: number): void {
    const live = this.#live, facts = this.#facts;
    let n = 0;
    for (let p = live.intervalHead[x]; p !== 0; p = live.intervalNext[p]) {
      if (n >= this.#list.length) this.#list = grown(this.#list, n * 2);
      this.#list[n++] = p;
    }
    this.#storeCount = 0;
    this.#storeCost = 0;
    for (let j = 0; j < n; j++) {
      if (j > 0) this.#connectInBlock(x, j);
      this.#connectOnEdges(x, j, n);
    }
    if (this.#storeCount === 0) return;
    const slot = this.#slots[x], head = this.#list[0], definition = live.defPos[x];
    const block = facts.blockOf[definition >> 1];
    // Defined in its slot, it needs no store; defined by a block's last instruction, it cannot be stored after it.
    if (live.intervalLoc[head] === IN_SLOT) {
      this.#stored[x] = STORED;
      return;
    }
    const late = this.#options.lateStores && this.#storeCost < facts.frequency[block];
    if (late || (definition | 1) + 1 === facts.start[block + 1]) {
      if (late) this.#options.counts.lateStores++;
      for (let s = 0; s < this.#storeCount; s++) {
        const at = this.#storeAt[s], from = this.#storeFrom[s];
        if (at >= 0) this.#moveInGap(at, from, slot, x);
        else this.#moveOnEdge(-1 - at, from, slot, x);
      }
    } else {
      this.#stored[x] = STORED;
      if (live.defKind[x] === DEF_KIND.PARAM) this.#noteParameter(x);
      else this.#moveInGap((definition >> 1) + 1, live.intervalLoc[head], slot, x);
    }
  }

  #noteParameter(x: number): void {
    const n = this.#parameterCount++;
    if (n >= this.#parameters.length) this.#parameters = grown(this.#parameters, n * 2);
    this.#parameters[n] = x;
  }

  /**
   * Parameter x has to be stored when its block starts. If enough of its arguments are in the same slot already, the
   * others are stored on their edges instead.
   */
  #storeParameter(x: number): void {
    const live = this.#live, facts = this.#facts, v = this.#v, block = facts.blockOf[live.defPos[x] >> 1];
    const end = facts.predFirst[block + 1];
    let cost: f64 = 0;
    for (let j = facts.predFirst[block]; j < end && cost < facts.frequency[block]; j++) {
      const e = facts.pred[j];
      if (this.#isStored(v.pool[v.argStart[e] + live.tiedTo[x]], this.#slots[x])) continue;
      cost += Math.min(facts.frequency[v.edgeFrom[e]], facts.frequency[block]);
    }
    if (cost < facts.frequency[block]) this.#stored[x] = STORED_ON_EDGES;
    else this.#moveInGap((live.defPos[x] >> 1) + 1, live.intervalLoc[live.intervalHead[x]], this.#slots[x], x);
  }

  /** Whether x is always in `slot`, too, once it has been defined. */
  #isStored(x: number, slot: number): boolean {
    return this.#stored[x] !== 0 && this.#slots[x] === slot;
  }

  /** The move from interval j − 1 to interval j of the list, unless they are in different blocks. */
  #connectInBlock(x: number, j: number): void {
    const live = this.#live,
      facts = this.#facts,
      a = this.#list[j - 1],
      b = this.#list[j],
      at = live.intervalFrom[b];
    if (live.intervalTo[a] !== at) return;
    const block = facts.blockOf[at >> 1], start = facts.start[block];
    if (at === start) return;
    const from = live.intervalLoc[a], to = live.intervalLoc[b];
    if (to >= 0) {
      if (from !== to) this.#moveInGap(at >> 1, from >= 0 ? from : this.#locationOf(a), to, x);
      return;
    }
    if (from < 0 || this.#slots[x] === 0) return;
    // From a register to the slot. An interval that was itself loaded from the slot in this block needs no store.
    const before = j >= 2 && live.intervalTo[this.#list[j - 2]] === live.intervalFrom[a] ? this.#list[j - 2] : 0;
    const inBlock = live.intervalFrom[a] > start;
    if (before !== 0 && inBlock && live.intervalLoc[before] === IN_SLOT) return;
    // An interval that begins in the same gap is not there yet when the gap's moves start: its predecessor is.
    const early = (live.intervalFrom[a] | 1) === at && before !== 0;
    this.#wantStore(at >> 1, early ? live.intervalLoc[before] : from, facts.frequency[block]);
  }

  /** Moves on the edges into blocks at whose start x is in interval j of the list. */
  #connectOnEdges(x: number, j: number, n: number): void {
    const live = this.#live, facts = this.#facts, v = this.#v, list = this.#list, start = facts.start;
    const b = list[j], from = live.intervalFrom[b], to = live.intervalTo[b];
    let block = facts.blockOf[from >> 1];
    if (start[block] < from || live.defPos[x] === from) block++;
    if (block >= facts.blockCount || start[block] >= to) return;
    let last = facts.blockOf[(to - 1) >> 1];
    if (start[last] >= to) last--;
    const end = facts.predFirst[last + 1], edgeFrom = v.edgeFrom, pred = facts.pred;
    for (let k = facts.predFirst[block]; k < end; k++) {
      const e = pred[k], pos = start[edgeFrom[e] + 1] - 1;
      if (pos >= from && pos < to) continue;
      const a = this.#intervalAt(pos, j, n);
      if (a === 0 || live.intervalLoc[a] === live.intervalLoc[b]) continue;
      if (live.intervalLoc[b] >= 0) {
        this.#moveOnEdge(e, this.#locationOf(a), live.intervalLoc[b], x);
      } else if (this.#slots[x] !== 0) {
        const frequency = Math.min(facts.frequency[edgeFrom[e]], facts.frequency[v.edgeTo[e]]);
        this.#wantStore(-1 - e, live.intervalLoc[a], frequency);
      }
    }
  }

  /**
   * The interval of the list that covers `pos`, searched for from interval j outwards in doubling steps; 0 if there is
   * none.
   */
  #intervalAt(pos: number, j: number, n: number): number {
    const list = this.#list, intervalFrom = this.#live.intervalFrom;
    let low = j, high = j;
    if (intervalFrom[list[j]] <= pos) {
      for (let step = 1; high < n && intervalFrom[list[high]] <= pos; step *= 2) {
        low = high;
        high += step;
      }
      if (high > n) high = n;
    } else {
      for (let step = 1; low > 0 && intervalFrom[list[low]] > pos; step *= 2) {
        high = low;
        low -= step;
      }
      if (low < 0) low = 0;
    }
    // list[low] starts at or before pos (or is the first), list[high] after it.
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (intervalFrom[list[middle]] <= pos) low = middle;
      else high = middle;
    }
    const p = list[low];
    return intervalFrom[p] <= pos && pos < this.#live.intervalTo[p] ? p : 0;
  }

  /** The interval of x at `pos`; positions come in ascending order. */
  #reach(x: number, pos: number): number {
    const live = this.#live;
    let p = this.#cursor[x];
    while (p !== 0 && live.intervalTo[p] <= pos) p = live.intervalNext[p];
    this.#cursor[x] = p;
    if (p === 0 || live.intervalFrom[p] > pos) {
      throw new Bug(`register allocation: v${x} has no interval at position ${pos}`);
    }
    return p;
  }

  #walkInstructions(): void {
    const v = this.#v, live = this.#live, out = this.#out, location = out.location, gapHead = this.#gapHead;
    const operands = v.operands, firstOperand = v.firstOperand, intervalLoc = live.intervalLoc;
    let general = 0, vector = 0;
    for (let k = 0; k < v.blockCount; k++) {
      const end = k + 1 < v.blockCount ? v.blockFirst[k + 1] : v.count;
      for (let i = v.blockFirst[k], n = i + k + 1; i < end; i++, n++) {
        const first = firstOperand[i], last = firstOperand[i + 1];
        // Results and temporaries; they determine which uses are tied.
        let gaps = false, tied = false;
        for (let o = first; o < last; o++) {
          const word = operands[o], role = (word >>> 21) & 3, constraint = (word >>> 23) & 7;
          if (constraint === CONSTRAINT.FIXED) {
            const r = word >>> 26;
            location[o] = r;
            if (role === ROLE.USE || role === ROLE.LATE_USE) gaps = true;
          } else if (role === ROLE.DEF || role === ROLE.TEMP) {
            location[o] = this.#locationOf(live.intervalHead[word & VREG_MASK]);
            if (constraint === CONSTRAINT.REUSE) tied = gaps = true;
          } else {
            continue;
          }
          const r = location[o];
          if (r >= 32) vector |= 1 << (r - 32);
          else if (r >= 0) general |= 1 << r;
        }
        if (gaps) this.#gapOperands(n, first, last, tied);
        for (let o = first; o < last; o++) {
          const word = operands[o], role = (word >>> 21) & 3;
          if (role === ROLE.DEF || role === ROLE.TEMP || ((word >>> 23) & 7) === CONSTRAINT.FIXED) continue;
          if (tied && role === ROLE.USE && this.#tiedTo(first, last, o) >= 0) continue;
          const loc = intervalLoc[this.#reach(word & VREG_MASK, 2 * n)];
          location[o] = loc >= 0 ? loc : this.#slots[word & VREG_MASK];
        }
        if (gapHead[n] !== 0 || gaps) {
          for (let m = gapHead[n]; m !== 0; m = this.#moveNext[m]) this.#addMove(m);
          this.#moves.resolve(out, 2 * i);
        }
        if (v.clobbers[i] !== 0) {
          general |= v.clobberGeneral[v.clobbers[i]];
          vector |= v.clobberVector[v.clobbers[i]];
        }
      }
      this.#passArguments(k);
    }
    out.writtenGeneral |= general;
    out.writtenVector |= vector;
  }

  /** Moves into fixed registers and tied operands in the gap before instruction number n. */
  #gapOperands(n: number, first: number, last: number, tied: boolean): void {
    const v = this.#v, operands = v.operands, location = this.#out.location;
    for (let o = first; o < last; o++) {
      const word = operands[o], role = (word >>> 21) & 3, x = word & VREG_MASK;
      if (role === ROLE.DEF || role === ROLE.TEMP) continue;
      let to = -1;
      if (((word >>> 23) & 7) === CONSTRAINT.FIXED) {
        to = word >>> 26;
      } else if (tied && role === ROLE.USE) {
        const def = this.#tiedTo(first, last, o);
        if (def < 0) continue;
        to = location[def];
        location[o] = to;
      } else {
        continue;
      }
      if (v.vregRemat[x] !== 0) this.#moves.add(0, v.vregRemat[x], to, v.vregTy[x]);
      else this.#moves.add(this.#locationOf(this.#reach(x, 2 * n - 1)), 0, to, v.vregTy[x]);
    }
  }

  /**
   * The def to which the (not fixed) use operand o is tied, itself or through another use of the same value; −1 none.
   */
  #tiedTo(first: number, last: number, o: number): number {
    const operands = this.#v.operands;
    let same = -1;
    if (((operands[o] >>> 23) & 7) === CONSTRAINT.FIXED) return -1;
    for (let d = first; d < last; d++) {
      const word = operands[d];
      if (((word >>> 21) & 3) !== ROLE.DEF || ((word >>> 23) & 7) !== CONSTRAINT.REUSE) continue;
      const source = first + (word >>> 26);
      if (source === o) return d;
      if (((operands[source] ^ operands[o]) & VREG_MASK) === 0) same = d;
    }
    return same;
  }

  #addMove(m: number): void {
    const x = this.#moveVreg[m], to = this.#moveTo[m];
    this.#moves.add(this.#moveFrom[m], this.#v.vregRemat[x], to, this.#moveTy[m]);
  }

  /** Moves of arguments to parameters on the edges out of block k. */
  #passArguments(k: number): void {
    const v = this.#v, live = this.#live, first = v.succStart[k], last = first + v.succCount[k];
    const pos = this.#facts.start[k + 1] - 1;
    for (let j = first; j < last; j++) {
      const e = v.succ[j], to = v.edgeTo[e], n = v.paramCount[to];
      for (let p = 0; p < n; p++) {
        const a = v.pool[v.argStart[e] + p], param = v.pool[v.paramStart[to] + p];
        const head = live.intervalHead[param];
        if (head === 0) continue;
        // A parameter that is a reference gets one, though its bits may come from an integer (an i31).
        const ty = v.vregTy[param] === TY.REF ? TY.REF : v.vregTy[a];
        const target = this.#locationOf(head),
          from = v.vregRemat[a] !== 0 ? IN_SLOT : this.#locationOf(this.#reach(a, pos));
        if (target >= 0 || !this.#isStored(a, target)) this.#moveOnEdge(e, from, target, a, ty);
        if (this.#stored[param] === STORED_ON_EDGES && !this.#isStored(a, this.#slots[param])) {
          this.#moveOnEdge(e, from, this.#slots[param], a, ty);
        }
      }
    }
  }

  #emitEdges(): void {
    const v = this.#v, out = this.#out, edgeHead = this.#edgeHead, moves = this.#moves;
    for (let e = 0; e < v.edgeCount; e++) {
      out.edgeFirst[e] = out.editCount;
      if (edgeHead[e] === 0) continue;
      for (let m = edgeHead[e]; m !== 0; m = this.#moveNext[m]) this.#addMove(m);
      moves.resolve(out, -1);
    }
    out.edgeFirst[v.edgeCount] = out.editCount;
    for (let k = 0; k < out.editCount; k++) {
      this.#noteWritten(out.editTo[k]);
      if (out.editRemat[k] === -1) this.#noteWritten(out.editFrom[k]);
    }
  }

  #noteWritten(location: number): void {
    if (location >= 32) this.#out.writtenVector |= 1 << (location - 32);
    else if (location >= 0) this.#out.writtenGeneral |= 1 << location;
  }

  /** Finds the rematerializable instructions whose result is not read from its register. */
  #findUnread(): void {
    const v = this.#v, live = this.#live, facts = this.#facts;
    for (let x = 1; x < v.vregCount; x++) {
      const head = live.intervalHead[x], i = v.vregRemat[x] - 1;
      if (i < 0 || head === 0 || live.defKind[x] === DEF_KIND.NONE) continue;
      const next = live.intervalNext[head], definition = live.defPos[x];
      // The first interval must cover only the definition, and must not continue in the next one without a move.
      if (live.intervalTo[head] > (definition | 1) + 1) continue;
      if (
        next !== 0 && live.intervalFrom[next] === live.intervalTo[head] &&
        live.intervalLoc[next] === live.intervalLoc[head]
      ) {
        continue;
      }
      if (live.intervalTo[head] === facts.start[facts.blockOf[definition >> 1] + 1]) continue;
      this.#out.skip[i] = 1;
    }
  }
}
