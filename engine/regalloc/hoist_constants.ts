/**
 * Hoists constants out of loops, for architectures whose immediates are short. In: a VCode as selected, where each
 * block materializes its own constants. Out: the same with one register for each constant, defined in front of the
 * outermost loop through which it may be kept.
 *
 * Only loops that keep their registers gain: a loop with a call that clobbers all of them, even on a cold path, is left
 * alone. Hoisted constants stay rematerializable, so a loop that runs out of registers gives them up first. Every
 * definition still dominates its uses, since the block in front of a loop is its only predecessor outside.
 */
import { BLOCK_COLD } from "../ir/function.ts";
import { BlockFacts } from "./block_facts.ts";
import { PSEUDO } from "../codegen/pseudo_ops.ts";
import { CONSTRAINT, operandConstraint, operandRole, operandVreg, ROLE, VCode, VREG_MASK } from "../codegen/vcode.ts";

/** The maximum number of constants that are kept for one place in front of a loop. */
const MAX_KEPT = 12;

/**
 * The cost of materializing the constant of instruction `i`, in instructions; 0: it is not a constant that can be
 * kept.
 */
type ConstantCost = (v: VCode, i: number) => number;

/** Moves constants out of loops, one function at a time. */
export class ConstantHoister {
  readonly #facts = new BlockFacts();
  readonly #old = new VCode();
  /** Per block: the block to which its constants move, −1 if they stay. */
  #place = new Int32Array(64);
  /** Per virtual register: the register that replaces it; 0: itself. */
  #instead = new Int32Array(1024);
  /** Per virtual register: 1 if an instruction uses it without a fixed register. */
  #wanted = new Uint8Array(1024);
  /** Per instruction before the rewrite: its new number. */
  #moved = new Int32Array(1024);
  /**
   * The constants kept: the first instruction that made each, the block it moves to, its virtual register; by that
   * block, in order.
   */
  readonly #keptFrom: number[] = [];
  readonly #keptAt: number[] = [];
  readonly #keptVreg: number[] = [];

  /**
   * Moves the constants of `v`; returns how many instructions left loops. `general` masks the registers that can be
   * allocated.
   */
  run(v: VCode, general: number, cost: ConstantCost): number {
    if (!hasLoopConstants(v, cost)) return 0;
    this.#facts.compute(v);
    if (!this.#findPlaces(v, general)) return 0;
    this.#findWanted(v);
    const gone = this.#choose(v, cost);
    if (gone === 0) return 0;
    this.#rewriteUses(v);
    this.#rebuild(v);
    return gone;
  }

  /** The block in front of the loop with header `h` if it is the only way into it, else −1. */
  #front(v: VCode, h: number): number {
    const { pred, predFirst, loop, loopParent } = this.#facts;
    let found = -1;
    for (let j = predFirst[h]; j < predFirst[h + 1]; j++) {
      const from = v.edgeFrom[pred[j]];
      if (from >= h) continue;
      if (found >= 0) return -1;
      found = from;
    }
    if (found < 0 || loop[found] !== loopParent[h]) return -1;
    // After a call with a landing pad no register holds a value.
    return v.op[v.blockFirst[found + 1] - 1] === PSEUDO.UNWIND ? -1 : found;
  }

  /** Chooses the block to which each block's constants move; returns whether any can move. */
  #findPlaces(v: VCode, general: number): boolean {
    const { loop, loopParent } = this.#facts;
    const n = v.blockCount;
    if (this.#place.length < n) this.#place = new Int32Array(n * 2);
    // First, per header: 1 if the loop contains a call that clobbers all registers.
    this.#place.fill(0, 0, n);
    for (let k = 0; k < n; k++) {
      if (loop[k] < 0 || !destroys(v, k, general)) continue;
      for (let h = loop[k]; h >= 0 && this.#place[h] === 0; h = loopParent[h]) this.#place[h] = 1;
    }
    // Headers come before the blocks of their loops, and outer ones before inner ones.
    let any = false;
    for (let k = 0; k < n; k++) {
      const h = loop[k];
      if (h < 0) this.#place[k] = -1;
      else if (h !== k) this.#place[k] = this.#place[h];
      else if (this.#place[k] !== 0) this.#place[k] = -1;
      else {
        const before = this.#front(v, k);
        this.#place[k] = before >= 0 && this.#place[before] >= 0 ? this.#place[before] : before;
        if (before >= 0) any = true;
      }
    }
    return any;
  }

  #findWanted(v: VCode): void {
    if (this.#wanted.length < v.vregCount) {
      this.#wanted = new Uint8Array(v.vregCount * 2);
      this.#instead = new Int32Array(v.vregCount * 2);
    } else this.#wanted.fill(0, 0, v.vregCount);
    this.#instead.fill(0, 0, v.vregCount);
    for (let o = 0; o < v.operandCount; o++) {
      const word = v.operands[o];
      const role = operandRole(word);
      if ((role === ROLE.USE || role === ROLE.LATE_USE) && operandConstraint(word) !== CONSTRAINT.FIXED) {
        this.#wanted[operandVreg(word)] = 1;
      }
    }
  }

  /**
   * Number of the kept constant equal to that of instruction `i`, of type `ty`, at `at`; −1 if there is none, −2 if the
   * place is full.
   */
  #find(v: VCode, i: number, at: number, ty: number): number {
    let others = 0;
    for (let g = 0; g < this.#keptFrom.length; g++) {
      if (this.#keptAt[g] !== at) continue;
      const j = this.#keptFrom[g];
      if (
        v.op[j] === v.op[i] && v.imm[j] === v.imm[i] && v.disp[j] === v.disp[i] && v.vregTy[this.#keptVreg[g]] === ty
      ) {
        return g;
      }
      others++;
    }
    return others < MAX_KEPT ? -1 : -2;
  }

  /** Decides which constants are kept; returns the number of instructions that they replace. */
  #choose(v: VCode, cost: ConstantCost): number {
    this.#keptFrom.length = 0;
    this.#keptAt.length = 0;
    this.#keptVreg.length = 0;
    let gone = 0;
    for (let k = 0; k < v.blockCount; k++) {
      if (this.#place[k] < 0 || (v.blockFlags[k] & BLOCK_COLD) !== 0) continue;
      for (let i = v.blockFirst[k]; i < v.blockFirst[k + 1]; i++) {
        const words = cost(v, i);
        if (words === 0) continue;
        const vreg = operandVreg(v.operands[v.firstOperand[i]]);
        // One instruction directly into its fixed register costs no more than a move.
        if (words === 1 && this.#wanted[vreg] === 0) continue;
        const ty = v.vregTy[vreg];
        let g = this.#find(v, i, this.#place[k], ty);
        if (g === -2) continue;
        if (g < 0) {
          g = this.#keptFrom.length;
          this.#keptFrom.push(i);
          this.#keptAt.push(this.#place[k]);
          this.#keptVreg.push(v.newVreg(ty));
        }
        this.#instead[vreg] = this.#keptVreg[g];
        gone++;
      }
    }
    return gone;
  }

  #rewriteUses(v: VCode): void {
    const { operands, pool } = v;
    for (let o = 0; o < v.operandCount; o++) {
      const to = this.#instead[operands[o] & VREG_MASK];
      if (to !== 0 && operandRole(operands[o]) !== ROLE.DEF) operands[o] = (operands[o] & ~VREG_MASK) | to;
    }
    for (let p = 0; p < v.poolCount; p++) if (this.#instead[pool[p]] !== 0) pool[p] = this.#instead[pool[p]];
  }

  /** Copies instruction `i` of the old columns to the end of `v`; returns its new number. */
  #copy(v: VCode, i: number): number {
    const to = v.beginInstruction(this.#old.op[i], this.#old.imm[i], this.#old.disp[i], this.#old.aux[i]);
    v.pos[to] = this.#old.pos[i];
    v.site[to] = this.#old.site[i];
    v.clobbers[to] = this.#old.clobbers[i];
    for (let o = this.#old.firstOperand[i]; o < this.#old.firstOperand[i + 1]; o++) v.operand(this.#old.operands[o]);
    v.endInstruction();
    return to;
  }

  /** Swaps the columns of instructions of `v` with the old ones. */
  #swapColumns(v: VCode): void {
    [v.op, this.#old.op] = [this.#old.op, v.op];
    [v.imm, this.#old.imm] = [this.#old.imm, v.imm];
    [v.disp, this.#old.disp] = [this.#old.disp, v.disp];
    [v.aux, this.#old.aux] = [this.#old.aux, v.aux];
    [v.pos, this.#old.pos] = [this.#old.pos, v.pos];
    [v.site, this.#old.site] = [this.#old.site, v.site];
    [v.clobbers, this.#old.clobbers] = [this.#old.clobbers, v.clobbers];
    [v.firstOperand, this.#old.firstOperand] = [this.#old.firstOperand, v.firstOperand];
    [v.operands, this.#old.operands] = [this.#old.operands, v.operands];
  }

  #rebuild(v: VCode): void {
    const total = v.count;
    if (this.#moved.length < total) this.#moved = new Int32Array(total * 2);
    this.#swapColumns(v);
    v.count = 0;
    v.operandCount = 0;
    v.firstOperand[0] = 0;
    for (let k = 0; k < v.blockCount; k++) {
      const first = v.blockFirst[k];
      const last = (k + 1 < v.blockCount ? v.blockFirst[k + 1] : total) - 1;
      v.blockFirst[k] = v.count;
      for (let i = first; i < last; i++) {
        const o = this.#old.firstOperand[i];
        const defines = o < this.#old.firstOperand[i + 1] && operandRole(this.#old.operands[o]) === ROLE.DEF;
        if (!defines || this.#instead[operandVreg(this.#old.operands[o])] === 0) this.#moved[i] = this.#copy(v, i);
      }
      for (let g = 0; g < this.#keptFrom.length; g++) if (this.#keptAt[g] === k) this.#insert(v, g);
      this.#moved[last] = this.#copy(v, last);
    }
    v.blockFirst[v.blockCount] = v.count;
    for (let x = 1; x < v.vregCount; x++) {
      const at = v.vregRemat[x];
      if (at > 0 && (x >= this.#instead.length || this.#instead[x] === 0)) v.vregRemat[x] = this.#moved[at - 1] + 1;
    }
    for (let g = 0; g < this.#keptFrom.length; g++) v.vregRemat[this.#keptVreg[g]] = this.#moved[this.#keptFrom[g]] + 1;
  }

  /** Puts kept constant `g` at the end of `v`. */
  #insert(v: VCode, g: number): void {
    const from = this.#keptFrom[g];
    this.#moved[from] = this.#copy(v, from);
    const o = v.firstOperand[this.#moved[from]];
    v.operands[o] = (v.operands[o] & ~VREG_MASK) | this.#keptVreg[g];
  }
}

function hasLoopConstants(v: VCode, cost: ConstantCost): boolean {
  for (let k = 0; k < v.blockCount; k++) {
    if (v.blockDepth[k] === 0) continue;
    const end = v.blockFirst[k + 1];
    for (let i = v.blockFirst[k]; i < end; i++) if (cost(v, i) > 0) return true;
  }
  return false;
}

/** Whether an instruction of block `k` clobbers all general registers. */
function destroys(v: VCode, k: number, general: number): boolean {
  for (let i = v.blockFirst[k]; i < v.blockFirst[k + 1]; i++) {
    if (v.clobbers[i] !== 0 && (v.clobberGeneral[v.clobbers[i]] & general) === general) return true;
  }
  return false;
}
