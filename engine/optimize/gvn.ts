/**
 * Global value numbering: one sweep over the blocks in dominator-compatible order. It numbers values (equal pure
 * computations become one), folds and rewrites (simplify.ts), reuses loads and forwards stores (memory_state.ts), drops
 * bounds checks that an earlier one covers, and decides branches and traps by dominating conditions. In: a function and
 * its control flow. Out: the function with operands replaced and a new order; decided branches are jumps, and their
 * other edges are cut (blocks.ts compacts).
 *
 * The hash table is never unwound: a candidate counts only if its block dominates the current one, and an equal
 * candidate that does not is replaced (Click, "Global Code Motion / Global Value Numbering", 1995). Chains are searched
 * for at most CHAIN steps, so hostile input cannot make the pass quadratic.
 *
 * Traps keep their order: an operation that may trap is removed only if an equal one dominates it or if it is proven
 * not to trap.
 */
import type { Rewriting } from "./rewriting.ts";
import { BUILTIN } from "../abi/builtins.ts";
import { isBelow, unsigned } from "../base/numbers.ts";
import type { IrFunction } from "../ir/function.ts";
import { boundsBytes, boundsMemory, regionClass } from "../ir/regions.ts";
import { DIVISION_CHECK, FLAG, INVERSE, OP, OP_FLAGS, OP_HAS_LIST, OP_VALUE_MASK, oppositeHint } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { cutEdge } from "./blocks.ts";
import type { ControlFlow } from "./cfg.ts";
import { DominatingConditions } from "./dominating_conditions.ts";
import { accessBytes, isLoad, isStore, MemoryState } from "./memory_state.ts";
import { foldAddress, orderOperands, simplify } from "./simplify.ts";

const { ADD, CONST, PARAM, RESULT, JUMP, BRANCH, SWITCH, TRAP_IF, TRAP, BOUNDS, LOAD, STORE, CALL_BUILTIN, EQ, NE } =
  OP;
const CHAIN = 24;

/** The enabled parts of GVN, by key of the `optimizations` setting. */
export interface GvnOptions {
  /** Fold constants and apply the rewrite rules (key simplify). */
  simplify: boolean;
  /** Forward stored values to loads (key store-forward). */
  storeForward: boolean;
  /** Drop covered bounds checks (key bounds-facts). */
  boundsFacts: boolean;
  /** Know any number of checks, not only the last (key multi-bounds-cert). */
  manyBounds: boolean;
}

/** GVN's treatment of an operation. */
const PURE_LIKE = 1, LOADS = 2, STORES = 3, CALLS = 4, ENDS = 5, TRAP_CHECK = 6, BOUNDS_CHECK = 7, PLAIN = 0;
const TREATMENT: Uint8Array = Uint8Array.from(OP_FLAGS, (flags, op) => {
  if (op === PARAM || op === RESULT) return PLAIN;
  if (op >= OP.DIV_S && op <= OP.REM_U || op === OP.TRUNC_S || op === OP.TRUNC_U) return PURE_LIKE;
  // Its result is the index of accesses, so those of a check that is left out use the mask of the equal one before it.
  if (op === OP.CHECK_INDEX) return PURE_LIKE;
  if (flags & FLAG.PURE) return PURE_LIKE;
  if (isLoad(op)) return LOADS;
  if (isStore(op)) return STORES;
  if (flags & FLAG.ENDS) return ENDS;
  // Any other operation that writes memory (atomic operations, for example) counts as a call.
  if (flags & (FLAG.CALLS | FLAG.WRITES)) return CALLS;
  if (op === TRAP_IF) return TRAP_CHECK;
  return op === BOUNDS ? BOUNDS_CHECK : PLAIN;
});

function hashOf(op: number, ty: number, a: number, b: number, c: number, imm: number): number {
  let h = Math.imul(op + (ty << 8), 0x9e3779b1) ^ Math.imul(a, 0x85ebca6b) ^ Math.imul(b, 0x2c1b3c6d);
  h = h ^ Math.imul(c, 0x297a2d39) ^ Math.imul(imm, 0x165667b1);
  return h ^ (h >>> 15);
}

export class Gvn implements Rewriting {
  f!: IrFunction;
  flow!: ControlFlow;
  readonly memory: MemoryState = new MemoryState();
  readonly facts: DominatingConditions = new DominatingConditions();
  /** The replacement of each value; the value itself if it stays. */
  repl: Int32Array = new Int32Array(1024);
  /** Block of each value's definition. */
  home: Int32Array = new Int32Array(1024);
  simplified = 0;
  /** How many loads got the value of a store. */
  forwarded = 0;
  /** How many checks earlier ones implied, and for how many of them the last check was not enough. */
  covered = 0;
  coveredByMany = 0;
  /** By hashed load or store: version of its class when it was hashed. */
  #version: Int32Array = new Int32Array(1024);
  #next: Int32Array = new Int32Array(1024);
  #buckets: Int32Array = new Int32Array(256);
  #mask = 255;
  /** The new order of instructions. */
  #order: Int32Array = new Int32Array(1024);
  #count = 0;
  /** Number of values for which the columns have room. */
  #limit = 0;
  #block = 0;
  #options!: GvnOptions;
  /** The last store, if no later instruction can observe it or leave before the next store; its index in the order. */
  #pendingStore = 0;
  #pendingAt = 0;
  #holes = false;
  #lastBounds = 0;
  /** Whether an edge was cut. */
  #cut = false;

  /** Numbers the values of `f` and counts what applied. Returns whether edges were cut. */
  run(f: IrFunction, flow: ControlFlow, options: GvnOptions): boolean {
    this.f = f;
    this.flow = flow;
    this.#options = options;
    this.#reserve(f);
    this.#followParams();
    this.memory.prepare(f, flow);
    this.facts.prepare(f, flow, this.#limit);
    this.#count = 0;
    this.#cut = false;
    this.#lastBounds = 0;
    this.simplified = 0;
    this.forwarded = 0;
    this.covered = 0;
    this.coveredByMany = 0;
    this.#sweep();
    f.sched.set(this.#order.subarray(0, this.#count));
    f.schedCount = this.#count;
    return this.#cut;
  }

  #reserve(f: IrFunction): void {
    const before = f.count;
    const limit = before + (before >> 1) + 256;
    f.ensure(limit);
    this.#limit = limit;
    if (limit > this.repl.length) {
      const size = limit + (limit >> 1);
      this.repl = new Int32Array(size);
      this.home = new Int32Array(size);
      this.#version = new Int32Array(size);
      this.#next = new Int32Array(size);
      this.#order = new Int32Array(size);
    }
    const repl = this.repl;
    for (let i = 0; i < before; i++) repl[i] = i;
    let buckets = 256;
    while (buckets < before) buckets *= 2;
    if (buckets > this.#buckets.length) this.#buckets = new Int32Array(buckets);
    else this.#buckets.fill(0, 0, buckets);
    this.#mask = buckets - 1;
  }

  /** Whether there is room for the few new values of one rewrite. */
  get room(): boolean {
    return this.f.count + 40 < this.#limit;
  }

  // Blocks.

  /** One function for blocks and instructions: most blocks are short, so columns are loaded once. */
  #sweep(): void {
    const f = this.f;
    const { op, a, b, c, sched, edgeFrom, blockStart, blockEnd, blockParams } = f;
    const { predStart, predEdge, loopEnd } = this.flow;
    const { memory, facts, repl, home } = this;
    const order = this.#order;
    const blocks = f.blockCount;
    for (let k = 0; k < blocks; k++) {
      const start = blockStart[k], end = blockEnd[k], params = blockParams[k];
      blockStart[k] = this.#count;
      // Live edges from before; the others are back edges or cut.
      let forward = 0, only = -1;
      for (let p = predStart[k], last = predStart[k + 1]; p < last; p++) {
        const e = predEdge[p];
        const from = edgeFrom[e];
        if (from < 0 || from >= k) continue;
        forward++;
        only = e;
      }
      if (forward === 0 && k > 0) {
        this.#abandon(k, sched[end - 1]);
        continue;
      }
      this.#block = k;
      facts.block = k;
      this.#pendingStore = 0;
      if (forward !== 1 || loopEnd[k] !== 0 || edgeFrom[only] !== k - 1) memory.enter(f, this.flow, k);
      if (params > 0) {
        for (let s = start; s < start + params; s++) {
          const i = sched[s];
          home[i] = k;
          order[this.#count++] = i;
          // The value that followParams found may have been replaced since.
          if (repl[i] !== i) repl[i] = repl[repl[i]];
        }
        if (k > 0) this.#replaceParams(k, start, params);
      }
      if (forward === 1) this.#learnFromBranch(only);
      let whole = true;
      for (let s = start + params; s < end && whole; s++) {
        const i = sched[s];
        const o = op[i];
        const mask = OP_VALUE_MASK[o];
        if (mask & 1) a[i] = repl[a[i]];
        if (mask & 2) b[i] = repl[b[i]];
        if (mask & 4) c[i] = repl[c[i]];
        switch (TREATMENT[o]) {
          case PURE_LIKE:
            repl[i] = this.number(i);
            break;
          case LOADS:
            this.#load(i);
            break;
          case STORES:
            this.#store(i);
            break;
          case BOUNDS_CHECK:
            this.#bounds(i);
            break;
          case TRAP_CHECK:
            whole = this.#trapIf(i);
            break;
          case ENDS:
            if (OP_HAS_LIST[o]) this.#replaceList(a[i], b[i]);
            else this.#end(i);
            order[this.#count++] = i;
            break;
          default:
            if (OP_HAS_LIST[o]) this.#replaceList(a[i], b[i]);
            this.#effect(i, o);
            home[i] = k;
            order[this.#count++] = i;
        }
      }
      if (whole) memory.leave(k);
      else this.#cutSuccessors(sched[end - 1]);
      if (this.#holes) this.#closeHoles(blockStart[k]);
      blockEnd[k] = this.#count;
    }
  }

  /** Block `k`, which ends in `last`, is unreachable: its edges are cut, and it keeps no instruction but its end. */
  #abandon(k: number, last: number): void {
    const f = this.f;
    this.#cut = true;
    this.#cutSuccessors(last);
    f.op[last] = TRAP;
    f.blockParams[k] = 0;
    this.#order[this.#count++] = last;
    f.blockEnd[k] = this.#count;
  }

  #cutSuccessors(last: number): void {
    const f = this.f;
    const op = f.op[last];
    if (op === JUMP) cutEdge(f, f.a[last]);
    else if (op === BRANCH) {
      cutEdge(f, f.b[last]);
      cutEdge(f, f.c[last]);
    } else if (op === SWITCH) { for (let e = f.b[last], end = e + f.c[last]; e < end; e++) cutEdge(f, e); }
    this.#cut = true;
  }

  /**
   * Finds parameters that receive one value only, in functions with loops, because back edges come after the parameter.
   * In reverse order: an inner loop's parameter must be resolved before the outer one's can be.
   */
  #followParams(): void {
    const { flow, f, repl } = this;
    if (flow.loopCount === 0) return;
    const { predStart, predEdge } = flow;
    const { blockStart, blockParams, edgeArgs, sched, pool } = f;
    for (let k = f.blockCount - 1; k > 0; k--) {
      const start = blockStart[k];
      for (let n = 0, params = blockParams[k]; n < params; n++) {
        const param = sched[start + n];
        let same = 0;
        for (let p = predStart[k], end = predStart[k + 1]; p < end; p++) {
          let value = pool[edgeArgs[predEdge[p]] + n];
          while (repl[value] !== value) value = repl[value] = repl[repl[value]];
          if (value === param || value === same) continue;
          if (same !== 0) {
            same = 0;
            break;
          }
          same = value;
        }
        if (same !== 0) repl[param] = same;
      }
    }
  }

  /** Replaces the `count` operands at `start` in the pool. */
  #replaceList(start: number, count: number): void {
    const { f: { pool }, repl } = this;
    for (let p = start; p < start + count; p++) pool[p] = repl[pool[p]];
  }

  /** Replaces the parameters of block `k` that receive one value (or themselves) over every live edge by that value. */
  #replaceParams(k: number, start: number, params: number): void {
    const f = this.f;
    const { predStart, predEdge } = this.flow;
    const { edgeFrom, edgeArgs, sched, pool } = f;
    const repl = this.repl;
    for (let n = 0; n < params; n++) {
      const param = sched[start + n];
      let same = 0;
      for (let p = predStart[k], end = predStart[k + 1]; p < end; p++) {
        const e = predEdge[p];
        if (edgeFrom[e] < 0) continue;
        const value = repl[pool[edgeArgs[e] + n]];
        if (value === param || value === same) continue;
        if (same !== 0) {
          same = 0;
          break;
        }
        same = value;
      }
      if (same !== 0) repl[param] = same;
    }
  }

  /**
   * Edge `only` is the only way into a block: if it belongs to a branch, the branch's condition is known in the block.
   */
  #learnFromBranch(only: number): void {
    const f = this.f;
    const from = f.edgeFrom[only];
    const last = this.#order[f.blockEnd[from] - 1];
    const op = f.op[last];
    if (op === BRANCH) this.facts.learnCondition(f.a[last], f.b[last] === only);
    else if (op === SWITCH && only - f.b[last] < f.c[last] - 1 && this.room) {
      this.facts.learnEqual(f.a[last], this.constant(TY.I32, only - f.b[last], 0));
    }
  }

  #closeHoles(start: number): void {
    const order = this.#order;
    let to = start;
    for (let s = start; s < this.#count; s++) if (order[s] !== 0) order[to++] = order[s];
    this.#count = to;
    this.#holes = false;
  }

  // Instructions.

  /** Updates the known facts for an instruction without a rule of its own. */
  #effect(i: number, op: number): void {
    if (TREATMENT[op] === CALLS) {
      const { c } = this.f;
      const keepsSizes = op !== CALL_BUILTIN
        ? op >= OP.ATOMIC_LOAD && op <= OP.PAUSE
        : c[i] === BUILTIN.memory_move || c[i] === BUILTIN.memory_set;
      this.memory.call(this.f, !keepsSizes);
      this.#pendingStore = 0;
    } else if ((OP_FLAGS[op] & (FLAG.READS | FLAG.TRAPS)) !== 0) this.#pendingStore = 0;
  }

  /**
   * Numbers instruction `i`, pure or a division or truncation, whose operands are final: simplifies it, and returns an
   * equal value, or appends it to the order and returns itself.
   */
  number(i: number): number {
    const f = this.f;
    if (this.#options.simplify) {
      const value = simplify(this, i);
      if (value !== i) return value;
    } else orderOperands(f, i, f.op[i]);
    const { op, ty, a, b, c, imm } = f;
    if (op[i] <= OP.GE_U && INVERSE[op[i]] !== 0 && this.room) {
      const truth = this.#decided(INVERSE[op[i]], a[i], b[i]);
      if (truth >= 0) return this.constant(TY.I32, 1 - truth, 0);
    }
    const next = this.#next, home = this.home;
    const { domIn, domSize } = this.flow;
    const o = op[i], t = ty[i], va = a[i], vb = b[i], vc = c[i];
    const division = o >= OP.DIV_S && o <= OP.REM_U;
    const vi = division ? 0 : imm[i];
    const slot = hashOf(o, t, va, vb, vc, vi) & this.#mask;
    const block = this.#block;
    const at = domIn[block];
    const buckets = this.#buckets;
    let previous = 0;
    for (let m = buckets[slot], steps = 0; m !== 0 && steps < CHAIN; m = next[m], steps++) {
      if (
        op[m] === o && a[m] === va && b[m] === vb && c[m] === vc && ty[m] === t && (division || imm[m] === vi)
      ) {
        const offset = at - domIn[home[m]];
        if (offset >= 0 && offset < domSize[home[m]]) return m;
        // Equal but not valid here, and rarely valid again: this value replaces it.
        next[i] = next[m];
        if (previous === 0) buckets[slot] = i;
        else next[previous] = i;
        this.#schedule(i, o);
        return i;
      }
      previous = m;
    }
    next[i] = buckets[slot];
    buckets[slot] = i;
    this.#schedule(i, o);
    return i;
  }

  /** 1 if comparison `o` of `x` and `y` is known to be true here, 0 if it is known to be false, otherwise −1. */
  #decided(o: number, x: number, y: number): number {
    const { op, a, b } = this.f;
    const next = this.#next;
    const slot = hashOf(o, TY.I32, x, y, 0, 0) & this.#mask;
    for (let m = this.#buckets[slot], steps = 0; m !== 0 && steps < CHAIN; m = next[m], steps++) {
      if (op[m] === o && a[m] === x && b[m] === y) return this.facts.truth(m);
    }
    return -1;
  }

  #schedule(i: number, op: number): void {
    this.home[i] = this.#block;
    this.#order[this.#count++] = i;
    if ((OP_FLAGS[op] & FLAG.TRAPS) !== 0) this.#trapped(i, op);
  }

  /**
   * Notes that `i`, a division or truncation that stays, may trap; code after it knows that the divisor is not zero.
   */
  #trapped(i: number, op: number): void {
    const f = this.f;
    if (op >= OP.DIV_S && op <= OP.REM_U) {
      if (f.imm[i] === 0) return;
      if (f.imm[i] & DIVISION_CHECK.ZERO) this.facts.learnNonzero(f.b[i]);
    }
    this.#pendingStore = 0;
  }

  /** Appends, numbers and returns a new pure value for a rewrite; the caller has checked `room`. */
  make(op: number, ty: number, a: number, b = 0, c = 0, imm = 0): number {
    const f = this.f;
    const i = f.append(op, ty, a, b, c, imm);
    this.repl[i] = i;
    const value = this.number(i);
    if (value !== i && i === f.count - 1) f.count--;
    return value;
  }

  /** The constant of an integer or float type with these halves. */
  constant(ty: number, lo: number, hi: number): number {
    return this.make(CONST, ty, 0, 0, hi, lo);
  }

  // Memory.

  /** Replaces load `i` by a known value, rewrites it into a conversion of one, or keeps it. */
  #load(i: number): void {
    const f = this.f;
    const { op, ty, a, b, c, imm } = f;
    foldAddress(this, i);
    const memory = this.memory;
    const o = op[i];
    const r = memory.find(f, i);
    if (r !== 0 && this.#reuse(i, r)) return;
    const version = memory.versionOf(regionClass(c[i]));
    const next = this.#next, versions = this.#version, home = this.home;
    const { domIn, domSize } = this.flow;
    const slot = hashOf(o, ty[i], a[i], 0, c[i], imm[i]) & this.#mask;
    const at = domIn[this.#block];
    for (let m = this.#buckets[slot], steps = 0; m !== 0 && steps < CHAIN; m = next[m], steps++) {
      if (a[m] !== a[i] || imm[m] !== imm[i] || c[m] !== c[i] || versions[m] !== version) continue;
      const stored = op[m] === STORE && o === LOAD && ty[b[m]] === ty[i];
      if (!stored && (op[m] !== o || ty[m] !== ty[i])) continue;
      const offset = at - domIn[home[m]];
      if (offset < 0 || offset >= domSize[home[m]]) continue;
      if (stored) this.forwarded++;
      this.repl[i] = stored ? b[m] : m;
      return;
    }
    versions[i] = version;
    next[i] = this.#buckets[slot];
    this.#buckets[slot] = i;
    this.home[i] = this.#block;
    this.#order[this.#count++] = i;
    this.#pendingStore = 0;
    memory.remember(i);
  }

  /** The recent access `r` was at load `i`'s address: replaces `i` if the accessed value determines the result. */
  #reuse(i: number, r: number): boolean {
    const f = this.f;
    const { op, ty, a, b, c, imm } = f;
    const o = op[i], t = ty[i];
    if (!isStore(op[r])) {
      if (op[r] !== o) return false;
      if (ty[r] === t) {
        this.repl[i] = r;
        return true;
      }
      return o === LOAD && this.#rewriteLoad(i, r, ty[r]);
    }
    const value = b[r];
    const from = ty[value];
    const width = accessBytes(f, i);
    if (width > accessBytes(f, r)) return false;
    if (o === LOAD && op[r] === STORE && t === from) {
      this.forwarded++;
      this.repl[i] = value;
      return true;
    }
    if (width !== accessBytes(f, r)) return false;
    let rewritten = false;
    if (o === LOAD && op[r] === STORE) rewritten = this.#rewriteLoad(i, value, from);
    else if (o === LOAD && t === TY.I32 && op[r] === OP.STORE32) rewritten = this.#become(i, OP.WRAP, value);
    else if (from === t && o === OP.LOAD8_S) rewritten = this.#become(i, OP.EXTEND8_S, value);
    else if (from === t && o === OP.LOAD16_S) rewritten = this.#become(i, OP.EXTEND16_S, value);
    else if (from === TY.I64 && o === OP.LOAD32_S) rewritten = this.#become(i, OP.EXTEND32_S, value);
    else if (from === TY.I32 && o === OP.LOAD32_S) rewritten = this.#become(i, OP.EXTEND_S, value);
    else if (from === TY.I32 && o === OP.LOAD32_U) rewritten = this.#become(i, OP.EXTEND_U, value);
    else if (from === t && this.room && (o === OP.LOAD8_U || o === OP.LOAD16_U)) {
      const ones = this.constant(t, o === OP.LOAD8_U ? 0xff : 0xffff, 0);
      op[i] = OP.AND;
      a[i] = value;
      b[i] = ones;
      c[i] = imm[i] = 0;
      this.repl[i] = this.number(i);
      rewritten = true;
    }
    if (rewritten) this.forwarded++;
    return rewritten;
  }

  /** Rewrites a full load of one type whose contents are known as a value of another type of the same size. */
  #rewriteLoad(i: number, value: number, from: number): boolean {
    const t = this.f.ty[i];
    const pair = (t === TY.I32 && from === TY.F32) || (t === TY.F32 && from === TY.I32) ||
      (t === TY.I64 && from === TY.F64) || (t === TY.F64 && from === TY.I64);
    return pair && this.#become(i, OP.BITCAST, value);
  }

  /** Turns instruction `i` into a unary operation on `value`. */
  #become(i: number, op: number, value: number): boolean {
    const f = this.f;
    f.op[i] = op;
    f.a[i] = value;
    f.b[i] = f.c[i] = f.imm[i] = 0;
    this.repl[i] = this.number(i);
    return true;
  }

  #store(i: number): void {
    const f = this.f;
    const { op, ty, a, b, c, imm } = f;
    foldAddress(this, i);
    const memory = this.memory;
    const o = op[i];
    const bytes = accessBytes(f, i);
    const known = memory.find(f, i);
    if (known !== 0 && accessBytes(f, known) === bytes) {
      // Storing the value that is already there changes nothing, and cannot trap where the preceding access did not.
      const same = isStore(op[known])
        ? op[known] === o && b[known] === b[i]
        : o === STORE && op[known] === LOAD && known === b[i];
      if (same) return;
    }
    const pending = this.#pendingStore;
    if (
      pending !== 0 && a[pending] === a[i] && imm[pending] === imm[i] && c[pending] === c[i] &&
      accessBytes(f, pending) === bytes
    ) {
      // The store before this one was not observed; both trap alike, and the trap would be at the first.
      f.pos[i] = f.pos[pending];
      f.site[i] = f.site[pending];
      this.#order[this.#pendingAt] = 0;
      this.#holes = true;
    }
    memory.store(f, i, bytes);
    this.#pendingStore = i;
    this.#pendingAt = this.#count;
    this.home[i] = this.#block;
    this.#order[this.#count++] = i;
    if (!this.#options.storeForward) return;
    memory.remember(i);
    if (o !== STORE) return;
    const slot = hashOf(LOAD, ty[b[i]], a[i], 0, c[i], imm[i]) & this.#mask;
    this.#version[i] = memory.versionOf(regionClass(c[i]));
    this.#next[i] = this.#buckets[slot];
    this.#buckets[slot] = i;
  }

  // Checks and block ends.

  /**
   * Drops check `i` if earlier checks imply it. For a 64-bit address, the relevant quantity is its distance from the
   * value to which a constant was added: memories are far smaller than 2^63, so two addresses inside one memory are as
   * far apart as their distances, and everything between them is inside as well. A 32-bit address may wrap; foldAddress
   * has moved constants that cannot wrap to the offset.
   */
  #bounds(i: number): void {
    const f = this.f;
    foldAddress(this, i);
    const { op, c, imm } = f;
    const memory = boundsMemory(c[i]);
    const root = this.#rootOf(i);
    const first = this.#distance, end = unsigned(imm[i]) + first + boundsBytes(c[i]);
    const slot = hashOf(BOUNDS, 0, root, 0, memory, 0) & this.#mask;
    if (this.#options.boundsFacts) {
      const next = this.#next, home = this.home;
      const { domIn, domSize } = this.flow;
      const at = domIn[this.#block];
      let below = 0, above = 0;
      for (let m = this.#buckets[slot], steps = 0; m !== 0 && steps < CHAIN; m = next[m], steps++) {
        if (op[m] !== BOUNDS || boundsMemory(c[m]) !== memory || this.#rootOf(m) !== root) continue;
        if (m !== this.#lastBounds && !this.#options.manyBounds) continue;
        const offset = at - domIn[home[m]];
        if (offset < 0 || offset >= domSize[home[m]]) continue;
        if (this.#distance <= first) below = m;
        if (unsigned(imm[m]) + this.#distance + boundsBytes(c[m]) >= end) above = m;
        if (below === 0 || above === 0) continue;
        if (below !== this.#lastBounds || above !== below) this.coveredByMany++;
        this.covered++;
        return;
      }
      next[i] = this.#buckets[slot];
      this.#buckets[slot] = i;
      this.#lastBounds = i;
    }
    this.#pendingStore = 0;
    this.home[i] = this.#block;
    this.#order[this.#count++] = i;
  }

  /**
   * The value from which the address of check `i` has the distance #distance: less than 2^31 bytes, and 0 for a 32-bit
   * address.
   */
  #rootOf(i: number): number {
    const { op, ty, a, b, c, imm } = this.f;
    const address = a[i], added = b[address];
    this.#distance = 0;
    if (op[address] !== OP.ADD || ty[address] !== TY.I64 || op[added] !== CONST) return address;
    if (c[added] !== imm[added] >> 31) return address;
    this.#distance = imm[added];
    return a[address];
  }
  #distance = 0;

  /** Returns false when the trap is certain: the block ends here. */
  #trapIf(i: number): boolean {
    const f = this.f;
    f.a[i] = this.facts.conditionRoot(f.a[i], false);
    const truth = this.facts.truth(f.a[i]);
    if (truth === 0) return true;
    this.#pendingStore = 0;
    this.home[i] = this.#block;
    this.#order[this.#count++] = i;
    if (truth > 0) {
      f.op[i] = TRAP;
      f.a[i] = 0;
      return false;
    }
    this.facts.learnCondition(f.a[i], false);
    return true;
  }

  /** Decides or rewrites block end `i`, and replaces the arguments of its edges. */
  #end(i: number): void {
    const f = this.f;
    if (f.op[i] === BRANCH) this.#branch(i);
    else if (f.op[i] === SWITCH) this.#switch(i);
    const op = f.op[i];
    if (op === JUMP) this.#passArguments(f.a[i]);
    else if (op === BRANCH) {
      this.#passArguments(f.b[i]);
      this.#passArguments(f.c[i]);
      this.#compareNext(i);
    } else if (op === SWITCH) { for (let e = f.b[i], end = e + f.c[i]; e < end; e++) this.#passArguments(e); }
  }

  /**
   * If branch `i` repeats a loop by comparing a parameter of its header with a constant, and adds a constant to the
   * parameter, the sum is compared: the old value need not outlive the new one.
   */
  #compareNext(i: number): void {
    const f = this.f;
    const { op, ty, a, b, c, imm, pool, edgeTo, edgeArgs } = f;
    const test = a[i];
    if ((op[test] !== EQ && op[test] !== NE) || op[b[test]] !== CONST || !this.isLoopParam(a[test])) return;
    const param = a[test], header = this.home[param];
    const edge = edgeTo[b[i]] === header ? b[i] : c[i];
    if (edgeTo[edge] !== header || !this.room) return;
    const next = pool[edgeArgs[edge] + imm[param]];
    if (op[next] !== ADD || a[next] !== param || op[b[next]] !== CONST) return;
    a[i] = this.make(op[test], TY.I32, next, this.make(ADD, ty[next], b[test], b[next]));
  }

  isLoopParam(v: number): boolean {
    return this.f.op[v] === PARAM && this.flow.loopEnd[this.home[v]] !== 0;
  }

  #passArguments(e: number): void {
    const f = this.f;
    const params = f.blockParams[f.edgeTo[e]];
    if (params === 0) return;
    const { pool } = f;
    const repl = this.repl;
    for (let p = f.edgeArgs[e], end = p + params; p < end; p++) pool[p] = repl[pool[p]];
  }

  #branch(i: number): void {
    const f = this.f;
    const { op, a, b, c, imm } = f;
    // A condition that only negates another is skipped: conditionRoot returns its complement.
    const root = this.facts.conditionRoot(a[i], true);
    if (root < 0) {
      a[i] = -root;
      const edge = b[i];
      b[i] = c[i];
      c[i] = edge;
      imm[i] = oppositeHint(imm[i]);
    } else a[i] = root;
    const truth = this.facts.truth(a[i]);
    if (truth < 0) return;
    const taken = truth > 0 ? b[i] : c[i];
    cutEdge(f, truth > 0 ? c[i] : b[i]);
    this.#cut = true;
    op[i] = JUMP;
    a[i] = taken;
    b[i] = c[i] = imm[i] = 0;
  }

  #switch(i: number): void {
    const f = this.f;
    const { op, a, b, c } = f;
    const known = this.facts.constantOf(a[i]);
    const count = c[i];
    if (known === 0 && count > 1) return;
    const value = known === 0 ? 0 : f.imm[known];
    const taken = b[i] + (isBelow(value, count) ? value : count - 1);
    for (let e = b[i], end = e + count; e < end; e++) if (e !== taken) cutEdge(f, e);
    this.#cut = true;
    op[i] = JUMP;
    a[i] = taken;
    b[i] = c[i] = 0;
  }
}
