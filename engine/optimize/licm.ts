/**
 * Loop-invariant code motion: computations of a loop on invariant operands move to the block in front of the loop. In:
 * a function and its control flow. Out: the same blocks with another order of instructions.
 *
 * The pass moves pure operations, loads that cannot fault of classes that the loop does not write, and, from the top of
 * a header up to its first effect, operations that may trap: those would run first in any case, so traps keep their
 * order. It does not move operations that selectors fold into their users for free (integer constants, sums with
 * constants, extensions, comparisons), except together with a check or an access that moves and uses them. Nor does it
 * exceed the registers: per loop and bank a budget counts the invariant values that the loop already uses. One sweep in
 * block order moves a value out of as many loops as possible at once, since operands precede users.
 */
import type { IrFunction } from "../ir/function.ts";
import { REGION, regionClass, regionKind } from "../ir/regions.ts";
import { FLAG, OP, OP_FLAGS, OP_HAS_LIST, OP_VALUE_MASK } from "../ir/ops.ts";
import { TY, TY_BANK } from "../ir/types.ts";
import type { ControlFlow } from "./cfg.ts";
import { hasEffect } from "./dead_code.ts";
import { isLoad, type MemoryState } from "./memory_state.ts";

const { PARAM, RESULT, CONST } = OP;

/**
 * The benefit of moving an operation: 0 none, 1 if registers abound, 2 some, 3 much (even if the value must be kept on
 * the stack).
 */
const WORTH: Uint8Array = Uint8Array.from(OP_FLAGS, (flags, op) => {
  if (op === PARAM || op === RESULT || op === OP.UNDEF || op === OP.CONTEXT) return 0;
  if (op >= OP.EQ && op <= OP.GE_U || op >= OP.FEQ && op <= OP.FGE) return 0;
  if (op === OP.EXTEND_U || op === OP.WRAP) return 0;
  if (op >= OP.DIV_S && op <= OP.REM_U || op === OP.FDIV || op === OP.FSQRT) return 3;
  if (op >= OP.CONVERT_S && op <= OP.TRUNC_SAT_U || op === OP.FDEMOTE || op === OP.FPROMOTE) return 3;
  if (op >= OP.FADD && op <= OP.FNEAREST || op === OP.MUL || op === OP.MULHI_S || op === OP.MULHI_U) return 3;
  if (isLoad(op) || op === CONST || op >= OP.VSPLAT && op <= OP.VBITSELECT) return 2;
  if (op === OP.BOUNDS || op === OP.TRAP_IF || op === OP.CHECK_INDEX) return 3;
  return (flags & FLAG.PURE) !== 0 ? 1 : 0;
});

/** Operations that move together with a check or an access: comparisons and address arithmetic. */
const CARRIED: Uint8Array = Uint8Array.from(
  OP_FLAGS,
  (_, op) =>
    op >= OP.EQ && op <= OP.GE_U || op === OP.ADD || op === OP.SHL || op === OP.EXTEND_U || op === OP.BITCAST ? 1 : 0,
);
/** Depth to which operands are followed. */
const CARRIED_DEPTH = 5;

/** Registers of a bank (1 general, 2 vector) that values from outside a loop may take. */
const GENERAL_BUDGET = 10, VECTOR_BUDGET = 12;
/** Registers reserved against values of little benefit. */
const RESERVE = 4;

/**
 * Moves invariants out of loops; `constants`: vector and float constants too. Returns the number of constants moved.
 * `flow` and `memory` (the classes that loops write) must be current.
 */
export function hoistInvariants(f: IrFunction, flow: ControlFlow, memory: MemoryState, constants: boolean): number {
  flow.scratch.ensure(f);
  const pass = new Hoisting(f, flow, memory, constants);
  pass.survey();
  pass.run();
  return pass.constantsMoved;
}

/**
 * Whether only the position of `i` keeps it from trapping. A division whose divisor a branch has shown to be nonzero,
 * and a load through a pointer that was checked, must not run before that branch or check.
 */
function reliesOnPlace(f: IrFunction, i: number): boolean {
  const { op, ty, b, c, imm } = f;
  const o = op[i];
  if (isLoad(o)) return regionKind(c[i]) !== REGION.CONTEXT;
  if (o < OP.DIV_S || o > OP.REM_U) return false;
  const d = b[i];
  if (op[d] !== CONST) return true;
  const zero = imm[d] === 0 && (ty[d] === TY.I32 || c[d] === 0);
  const minusOne = imm[d] === -1 && (ty[d] === TY.I32 || c[d] === -1);
  return zero || minusOne;
}

class Hoisting {
  constantsMoved = 0;
  readonly #f: IrFunction;
  readonly #flow: ControlFlow;
  readonly #memory: MemoryState;
  readonly #constants: boolean;
  /** By value: the block that defines it, or to which it was moved. */
  readonly #home: Int32Array;
  /** By value: the loop that counted it last; later the next value moved to the same block. */
  readonly #link: Int32Array;
  readonly #moved: Uint8Array;
  /** By header: the block in front of the loop, or −1. */
  readonly #front: Int32Array;
  /** By header: the outermost block that is in front of it, going out through loops that have one; −1 for none. */
  readonly #top: Int32Array;
  /** By header: registers left. */
  readonly #general: Int32Array;
  readonly #vector: Int32Array;
  /** By block: first and last value moved to its end. */
  readonly #first: Int32Array;
  readonly #last: Int32Array;
  #any = false;

  constructor(f: IrFunction, flow: ControlFlow, memory: MemoryState, constants: boolean) {
    this.#memory = memory;
    this.#f = f;
    this.#flow = flow;
    this.#constants = constants;
    const { scratch } = flow;
    this.#home = scratch.values;
    this.#link = scratch.values2;
    this.#moved = scratch.marks;
    this.#front = scratch.blocks;
    this.#top = scratch.blocks6;
    this.#general = scratch.blocks2;
    this.#vector = scratch.blocks3;
    this.#first = scratch.blocks4;
    this.#last = scratch.blocks5;
  }

  /** Finds the blocks in front of loops, and how many registers each loop leaves. */
  survey(): void {
    const f = this.#f;
    const { loopOf, loopParent, loopEnd } = this.#flow;
    const { op, ty, a, b, c, sched, pool, blockStart, blockEnd, blockParams } = f;
    const home = this.#home, counted = this.#link;
    const general = this.#general, vector = this.#vector;
    counted.fill(-1, 0, f.count);
    this.#moved.fill(0, 0, f.count);
    // Blocks outside all loops need not be told apart: 0 stands for each of them.
    home.fill(0, 0, f.count);
    for (let k = 0; k < f.blockCount; k++) {
      this.#first[k] = 0;
      if (loopOf[k] >= 0) { for (let s = blockStart[k], end = blockEnd[k]; s < end; s++) home[sched[s]] = k; }
      if (loopEnd[k] === 0) continue;
      const front = this.#flow.front(f, k);
      this.#front[k] = front;
      const parent = loopParent[k];
      this.#top[k] = front >= 0 && parent >= 0 && this.#front[parent] >= 0 ? this.#top[parent] : front;
      general[k] = GENERAL_BUDGET;
      vector[k] = VECTOR_BUDGET;
      for (let s = blockStart[k], end = s + blockParams[k]; s < end; s++) this.#take(k, ty[sched[s]]);
    }
    for (let k = 0; k < f.blockCount; k++) {
      const loop = loopOf[k];
      if (loop < 0) continue;
      for (let s = blockStart[k] + blockParams[k], end = blockEnd[k]; s < end; s++) {
        const i = sched[s];
        const mask = OP_VALUE_MASK[op[i]];
        if (mask & 1) this.#count(a[i], loop);
        if (mask & 2) this.#count(b[i], loop);
        if (mask & 4) this.#count(c[i], loop);
        if (OP_HAS_LIST[op[i]]) { for (let p = a[i], last = p + b[i]; p < last; p++) this.#count(pool[p], loop); }
      }
    }
  }

  /** Counts value `v` once among those that `loop` uses from outside. */
  #count(v: number, loop: number): void {
    if (this.#home[v] >= loop || this.#link[v] === loop || this.#f.op[v] === CONST) return;
    this.#link[v] = loop;
    this.#take(loop, this.#f.ty[v]);
  }

  #take(loop: number, ty: number): void {
    const left = TY_BANK[ty] === 2 ? this.#vector : this.#general;
    left[loop] = left[loop] - 1;
  }

  run(): void {
    const f = this.#f;
    const { op, sched, blockStart, blockEnd, blockParams } = f;
    const { loopOf } = this.#flow;
    for (let k = 0; k < f.blockCount; k++) {
      const loop = loopOf[k];
      if (loop < 0 || this.#front[loop] < 0) continue;
      // Up to the first effect that stays, a header's operations run unconditionally, first of all.
      let clean = loop === k;
      for (let s = blockStart[k] + blockParams[k], end = blockEnd[k] - 1; s < end; s++) {
        const i = sched[s];
        const o = op[i];
        const worth = WORTH[o];
        const effect = hasEffect(f, i) || reliesOnPlace(f, i);
        if (worth > 0 && (!effect || clean) && this.#pays(i, o)) {
          const target = this.#destination(i, o, worth, loop, effect);
          if (target >= 0) {
            this.#move(i, this.#front[target]);
            continue;
          }
        }
        // A poll may trap at any time: an operation that moves above it traps no earlier than it could.
        if (effect && o !== OP.POLL) clean = false;
      }
    }
    if (this.#any) this.#rebuild();
  }

  /** Whether moving `i` pays, registers aside. */
  #pays(i: number, o: number): boolean {
    const { op, ty, b, c, imm } = this.#f;
    if (o === CONST) {
      if (!this.#constants || TY_BANK[ty[i]] !== 2) return false;
      // A zero is cheaper to make than to keep.
      return ty[i] === TY.V128 || imm[i] !== 0 || (ty[i] === TY.F64 && c[i] !== 0);
    }
    if (o === OP.ADD || o === OP.SHL) return op[b[i]] !== CONST;
    return true;
  }

  /**
   * The outermost loop that `i` can leave, starting with `loop`; −1 for none. Takes registers in all loops in between.
   */
  #destination(i: number, o: number, worth: number, loop: number, effect: boolean): number {
    const f = this.#f;
    const { loopParent } = this.#flow;
    const mask = OP_VALUE_MASK[o];
    const load = isLoad(o);
    const carries = load || o === OP.TRAP_IF ? CARRIED_DEPTH : 0;
    // Position of the operands: loops whose header comes after all of them can be left.
    let latest = -1;
    if (mask & 1 && f.a[i] !== 0) latest = this.#blockOf(f.a[i], carries);
    if (mask & 2) latest = Math.max(latest, this.#blockOf(f.b[i], carries));
    if (mask & 4) latest = Math.max(latest, this.#blockOf(f.c[i], carries));
    const bank = TY_BANK[f.ty[i]];
    const left = bank === 2 ? this.#vector : this.#general;
    let target = -1;
    for (let l = loop; l >= 0; l = loopParent[l]) {
      if (this.#front[l] < 0 || latest >= l) break;
      if (load && this.#memory.loopMayWrite(l, regionClass(f.c[i]))) break;
      if (worth < 3 && this.#memory.loopCalls(l)) break;
      if (bank !== 0 && left[l] <= (worth === 1 ? RESERVE : 0)) break;
      target = l;
      if (effect) break;
    }
    // A constant leaves all loops or stays: operations that carry it rely on that.
    if (o === CONST && (target < 0 || this.#front[target] !== this.#blockOf(i))) return -1;
    if (target >= 0 && bank !== 0) {
      for (let l = loop; l >= target; l = loopParent[l]) left[l] = left[l] - 1;
    }
    return target;
  }

  /**
   * The latest block that defines operand `v`: constants are carried along, to the outermost loop's front, and so are,
   * down to a depth of `carries`, computations on invariant operands.
   */
  #blockOf(v: number, carries = 0): number {
    const { op, a, b } = this.#f;
    const home = this.#home[v];
    if (op[v] !== CONST) {
      if (carries === 0 || CARRIED[op[v]] === 0 || this.#flow.loopOf[home] < 0) return home;
      const mask = OP_VALUE_MASK[op[v]];
      const block = this.#blockOf(a[v], carries - 1);
      return mask & 2 ? Math.max(block, this.#blockOf(b[v], carries - 1)) : block;
    }
    const loop = this.#flow.loopOf[home];
    return loop >= 0 && this.#front[loop] >= 0 ? this.#top[loop] : home;
  }

  /** Moves `i` to the end of block `to`, after the constants that it uses. */
  #move(i: number, to: number): void {
    const f = this.#f;
    this.#bringOperands(i, to);
    if (f.op[i] === CONST) this.constantsMoved++;
    this.#append(i, to);
  }

  #bringOperands(i: number, to: number): void {
    const { op, a, b, c } = this.#f;
    const mask = OP_VALUE_MASK[op[i]];
    if (mask & 1) this.#bring(a[i], to);
    if (mask & 2) this.#bring(b[i], to);
    if (mask & 4) this.#bring(c[i], to);
  }

  /**
   * Moves operand `v` of a moved instruction to the end of block `to`: a constant further out; anything else to `to`,
   * with its own operands.
   */
  #bring(v: number, to: number): void {
    if (this.#f.op[v] !== CONST) {
      if (this.#home[v] <= to) return;
      this.#bringOperands(v, to);
      return this.#append(v, to);
    }
    if (this.#moved[v] !== 0) return;
    const block = this.#blockOf(v);
    if (block !== this.#home[v]) this.#append(v, block);
  }

  #append(i: number, to: number): void {
    const first = this.#first, last = this.#last, link = this.#link;
    this.#moved[i] = 1;
    this.#home[i] = to;
    link[i] = 0;
    if (first[to] === 0) first[to] = i;
    else link[last[to]] = i;
    last[to] = i;
    this.#any = true;
  }

  #rebuild(): void {
    const f = this.#f;
    const { sched, blockStart, blockEnd } = f;
    const moved = this.#moved, link = this.#link, order = this.#flow.scratch.order;
    let to = 0;
    for (let k = 0; k < f.blockCount; k++) {
      const start = to;
      const end = blockEnd[k] - 1;
      for (let s = blockStart[k]; s < end; s++) if (moved[sched[s]] === 0) order[to++] = sched[s];
      for (let i = this.#first[k]; i !== 0; i = link[i]) order[to++] = i;
      order[to++] = sched[end];
      blockStart[k] = start;
      blockEnd[k] = to;
    }
    f.sched.set(order.subarray(0, to));
    f.schedCount = to;
  }
}
