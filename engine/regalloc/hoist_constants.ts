/**
 * Takes constants out of loops, for architectures whose instructions have room for few. In: a VCode as selected, where each block makes
 * its own. Out: the same with one register for each constant in front of the outermost loop that it may be kept through.
 *
 * Only who keeps all of its registers for itself gains: loops with calls on their usual way are left alone. What is taken out is as
 * repeatable as before, so that a loop that runs out of registers gives these up first. Every definition still dominates its uses, for
 * the block in front of a loop is the only one that leads there.
 */
import { BLOCK_COLD } from "../ir/function.ts";
import { BlockFacts } from "./block_facts.ts";
import { PSEUDO } from "../codegen/pseudo_ops.ts";
import { CONSTRAINT, operandConstraint, operandRole, operandVreg, ROLE, VCode, VREG_MASK } from "../codegen/vcode.ts";

/** The most constants that are kept for one place in front of a loop. */
const MAX_KEPT = 12;

/** What making the constant of instruction `i` costs, in instructions; 0: the instruction is no constant that could be kept. */
export type ConstantCost = (v: VCode, i: number) => number;

const facts = new BlockFacts();
const old = new VCode();

/** Per block: where its constants go, −1 if they stay. */
let place = new Int32Array(64);
/** Per virtual register: what takes its place; 0: itself. */
let instead = new Int32Array(1024);
/** Per virtual register: 1 if an instruction wants it in no particular register. */
let wanted = new Uint8Array(1024);
/** Per old instruction: its new number. */
let moved = new Int32Array(1024);

/** What is kept: the first instruction that made it, where it goes, its virtual register; by place, in order of blocks. */
const keptFrom: number[] = [];
const keptAt: number[] = [];
const keptVreg: number[] = [];

/** Moves constants; returns how many were taken out of loops. `general` masks the registers that can be allocated. */
export function hoistConstants(v: VCode, general: number, cost: ConstantCost): number {
  if (!hasLoopConstants(v, cost)) return 0;
  facts.compute(v);
  if (!findPlaces(v, general)) return 0;
  findWanted(v);
  const gone = choose(v, cost);
  if (gone === 0) return 0;
  rewriteUses(v);
  rebuild(v);
  return gone;
}

function hasLoopConstants(v: VCode, cost: ConstantCost): boolean {
  for (let k = 0; k < v.blockCount; k++) {
    if (v.blockDepth[k] === 0) continue;
    const end = v.blockFirst[k + 1];
    for (let i = v.blockFirst[k]; i < end; i++) if (cost(v, i) > 0) return true;
  }
  return false;
}

/** The block in front of the loop with header `h` if nothing else leads into it, else −1. */
function front(v: VCode, h: number): number {
  const { pred, predFirst, loop, loopParent } = facts;
  let found = -1;
  for (let j = predFirst[h]; j < predFirst[h + 1]; j++) {
    const from = v.edgeFrom[pred[j]];
    if (from >= h) continue;
    if (found >= 0) return -1;
    found = from;
  }
  if (found < 0 || loop[found] !== loopParent[h]) return -1;
  // Behind a call with a landing nothing may be in a register.
  return v.op[v.blockFirst[found + 1] - 1] === PSEUDO.UNWIND ? -1 : found;
}

/** Does a call destroy all registers in block `k`? */
function destroys(v: VCode, k: number, general: number): boolean {
  for (let i = v.blockFirst[k]; i < v.blockFirst[k + 1]; i++) {
    if (v.clobbers[i] !== 0 && (v.clobberGeneral[v.clobbers[i]] & general) === general) return true;
  }
  return false;
}

/** Finds out where each block's constants go; returns whether any go anywhere. */
function findPlaces(v: VCode, general: number): boolean {
  const { loop, loopParent } = facts;
  const n = v.blockCount;
  if (place.length < n) place = new Int32Array(n * 2);
  // First, per header: 1 if the loop destroys its registers.
  place.fill(0, 0, n);
  for (let k = 0; k < n; k++) {
    if (loop[k] < 0 || !destroys(v, k, general)) continue;
    for (let h = loop[k]; h >= 0 && place[h] === 0; h = loopParent[h]) place[h] = 1;
  }
  // Headers come before the blocks of their loops, and outer ones before inner ones.
  let any = false;
  for (let k = 0; k < n; k++) {
    const h = loop[k];
    if (h < 0) place[k] = -1;
    else if (h !== k) place[k] = place[h];
    else if (place[k] !== 0) place[k] = -1;
    else {
      const before = front(v, k);
      place[k] = before >= 0 && place[before] >= 0 ? place[before] : before;
      any ||= before >= 0;
    }
  }
  return any;
}

function findWanted(v: VCode): void {
  if (wanted.length < v.vregCount) {
    wanted = new Uint8Array(v.vregCount * 2);
    instead = new Int32Array(v.vregCount * 2);
  } else wanted.fill(0, 0, v.vregCount);
  instead.fill(0, 0, v.vregCount);
  for (let o = 0; o < v.operandCount; o++) {
    const word = v.operands[o];
    const role = operandRole(word);
    if ((role === ROLE.USE || role === ROLE.LATE_USE) && operandConstraint(word) !== CONSTRAINT.FIXED) {
      wanted[operandVreg(word)] = 1;
    }
  }
}

/** Number of the kept constant equal to that of instruction `i`, of type `ty`, at `at`; −1 if there is none, −2 if there are too many others. */
function find(v: VCode, i: number, at: number, ty: number): number {
  let others = 0;
  for (let g = 0; g < keptFrom.length; g++) {
    if (keptAt[g] !== at) continue;
    const j = keptFrom[g];
    if (v.op[j] === v.op[i] && v.imm[j] === v.imm[i] && v.disp[j] === v.disp[i] && v.vregTy[keptVreg[g]] === ty) {
      return g;
    }
    others++;
  }
  return others < MAX_KEPT ? -1 : -2;
}

/** Decides what is kept; returns how many instructions that replaces. */
function choose(v: VCode, cost: ConstantCost): number {
  keptFrom.length = 0;
  keptAt.length = 0;
  keptVreg.length = 0;
  let gone = 0;
  for (let k = 0; k < v.blockCount; k++) {
    if (place[k] < 0 || (v.blockFlags[k] & BLOCK_COLD) !== 0) continue;
    for (let i = v.blockFirst[k]; i < v.blockFirst[k + 1]; i++) {
      const words = cost(v, i);
      if (words === 0) continue;
      const vreg = operandVreg(v.operands[v.firstOperand[i]]);
      // One instruction into the very register it is wanted in is no worse than a move.
      if (words === 1 && wanted[vreg] === 0) continue;
      const ty = v.vregTy[vreg];
      let g = find(v, i, place[k], ty);
      if (g === -2) continue;
      if (g < 0) {
        g = keptFrom.length;
        keptFrom.push(i);
        keptAt.push(place[k]);
        keptVreg.push(v.newVreg(ty));
      }
      instead[vreg] = keptVreg[g];
      gone++;
    }
  }
  return gone;
}

function rewriteUses(v: VCode): void {
  const { operands, pool } = v;
  for (let o = 0; o < v.operandCount; o++) {
    const to = instead[operands[o] & VREG_MASK];
    if (to !== 0 && operandRole(operands[o]) !== ROLE.DEF) operands[o] = (operands[o] & ~VREG_MASK) | to;
  }
  for (let p = 0; p < v.poolCount; p++) if (instead[pool[p]] !== 0) pool[p] = instead[pool[p]];
}

/** Copies instruction `i` of `old` to the end of `v`, which is shorter there. */
function copy(v: VCode, i: number): number {
  const to = v.beginInstruction(old.op[i], old.imm[i], old.disp[i], old.aux[i]);
  v.pos[to] = old.pos[i];
  v.site[to] = old.site[i];
  v.clobbers[to] = old.clobbers[i];
  for (let o = old.firstOperand[i]; o < old.firstOperand[i + 1]; o++) v.operand(old.operands[o]);
  v.endInstruction();
  return to;
}

/** Swaps the columns of instructions of `v` with those of `old`. */
function swapColumns(v: VCode): void {
  [v.op, old.op] = [old.op, v.op];
  [v.imm, old.imm] = [old.imm, v.imm];
  [v.disp, old.disp] = [old.disp, v.disp];
  [v.aux, old.aux] = [old.aux, v.aux];
  [v.pos, old.pos] = [old.pos, v.pos];
  [v.site, old.site] = [old.site, v.site];
  [v.clobbers, old.clobbers] = [old.clobbers, v.clobbers];
  [v.firstOperand, old.firstOperand] = [old.firstOperand, v.firstOperand];
  [v.operands, old.operands] = [old.operands, v.operands];
}

function rebuild(v: VCode): void {
  const total = v.count;
  if (moved.length < total) moved = new Int32Array(total * 2);
  swapColumns(v);
  v.count = 0;
  v.operandCount = 0;
  v.firstOperand[0] = 0;
  for (let k = 0; k < v.blockCount; k++) {
    const first = v.blockFirst[k];
    const last = (k + 1 < v.blockCount ? v.blockFirst[k + 1] : total) - 1;
    v.blockFirst[k] = v.count;
    for (let i = first; i < last; i++) {
      const o = old.firstOperand[i];
      const defines = o < old.firstOperand[i + 1] && operandRole(old.operands[o]) === ROLE.DEF;
      if (!defines || instead[operandVreg(old.operands[o])] === 0) moved[i] = copy(v, i);
    }
    for (let g = 0; g < keptFrom.length; g++) if (keptAt[g] === k) insert(v, g);
    moved[last] = copy(v, last);
  }
  v.blockFirst[v.blockCount] = v.count;
  for (let x = 1; x < v.vregCount; x++) {
    const at = v.vregRemat[x];
    if (at > 0 && (x >= instead.length || instead[x] === 0)) v.vregRemat[x] = moved[at - 1] + 1;
  }
  for (let g = 0; g < keptFrom.length; g++) v.vregRemat[keptVreg[g]] = moved[keptFrom[g]] + 1;
}

/** Puts kept constant `g` at the end of `v`. */
function insert(v: VCode, g: number): void {
  const from = keptFrom[g];
  moved[from] = copy(v, from);
  const o = v.firstOperand[moved[from]];
  v.operands[o] = (v.operands[o] & ~VREG_MASK) | keptVreg[g];
}
