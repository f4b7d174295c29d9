/**
 * Address modes. `foldAddress` matches the address of a load or store. During folding it claims the arithmetic that the
 * mode computes for free; during selection it leaves mode, base, index, scale and displacement in the X64Lowering.
 *
 * A 32-bit address wraps at 2^32 and the hardware's sum does not, so additions and shifts of i32 addresses are folded
 * only when the value ranges show that no bit is lost. 64-bit sums wrap as the hardware's do.
 */
import { type f64, lowWord, unsigned } from "../base/numbers.ts";
import { upperBound } from "../codegen/folding.ts";
import { REGION, regionKind } from "../ir/regions.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { CONSTRAINT, operandWord, ROLE } from "../codegen/vcode.ts";
import { X } from "./instructions.ts";
import { MODE, P } from "./machine_ops.ts";
import { FOLD, type X64Lowering } from "./lowering_context.ts";
import { TRAP } from "../base/traps.ts";

/** Claims pure value `id` during folding; during selection, returns whether it was claimed. */
function claim(s: X64Lowering, id: number, user: number, marking: boolean): boolean {
  if (!marking) return s.folded[id] === FOLD.ADDRESS;
  if (s.uses[id] !== 1 || s.blockOf[id] !== s.blockOf[user] || s.folded[id] !== FOLD.NO) return false;
  s.folded[id] = FOLD.ADDRESS;
  return true;
}

/** The bounds of a signed displacement. */
const MIN: f64 = -0x80000000;
const MAX: f64 = 0x7fffffff;
const MAX_UNSIGNED: f64 = 0xffffffff;
const ZERO: f64 = 0;

/** Whether a displacement fits the signed 32-bit field. */
function fits(disp: f64): boolean {
  return disp >= MIN && disp <= MAX;
}

/** Matches the address of access `id`: folds its operands, or resolves the source operand. */
export function foldAddress(s: X64Lowering, id: number, marking: boolean): void {
  const kind = regionKind(s.c[id]);
  s.base = 0;
  s.index = 0;
  s.scale = 0;
  s.poolSize = 0;
  s.origin = id;
  s.disp = s.imm[id];
  if (kind === REGION.CONTEXT) {
    s.mode = MODE.CONTEXT;
    s.trap = 0;
  } else if (kind === REGION.MEMORY0) {
    s.trap = s.explicit ? 0 : TRAP.MEMORY_OUT_OF_BOUNDS;
    foldMemoryAddress(s, id, marking);
  } else {
    s.trap = kind === REGION.STRUCT
      ? TRAP.NULL_STRUCTURE
      : s.op[id] >= OP.LOAD && s.op[id] <= OP.LOAD32_U
      ? s.b[id]
      : 0;
    foldPointer(s, id, marking);
  }
}

/** Resolves value `address` as the address of access `id`, folding nothing. */
export function plainAddress(s: X64Lowering, id: number, address: number): void {
  const register = s.reg(address);
  const offset = unsigned(s.imm[id]);
  s.base = register;
  s.index = register;
  s.scale = 0;
  s.poolSize = 0;
  s.origin = id;
  s.disp = s.imm[id];
  if (regionKind(s.c[id]) === REGION.MEMORY0) {
    s.mode = MODE.MEMORY;
    s.trap = s.explicit ? 0 : TRAP.MEMORY_OUT_OF_BOUNDS;
    return;
  }
  s.mode = MODE.POINTER;
  s.trap = regionKind(s.c[id]) === REGION.STRUCT ? TRAP.NULL_STRUCTURE : 0;
  if (offset > MAX) farPointer(s, address, s.imm[id]);
}

function foldMemoryAddress(s: X64Lowering, id: number, marking: boolean): void {
  const { op, a, b, imm, ty } = s;
  let address = a[id];
  let disp = unsigned(s.imm[id]);
  if (op[address] === OP.CONST && (ty[address] === TY.I32 || s.c[address] === 0)) {
    const at = unsigned(imm[address]) + disp;
    if (at <= MAX) {
      s.mode = MODE.MEMORY_CONSTANT;
      s.disp = lowWord(at);
      return;
    }
  }
  s.mode = MODE.MEMORY;
  if (ty[address] === TY.I32) {
    if (op[address] === OP.ADD && op[b[address]] === OP.CONST) {
      const addend = unsigned(imm[b[address]]);
      const safe = upperBound(s, a[address]) + addend <= MAX_UNSIGNED && disp + addend <= MAX;
      if (safe && claim(s, address, id, marking)) {
        disp += addend;
        address = a[address];
      }
    }
    if (op[address] === OP.SHL && op[b[address]] === OP.CONST) {
      const count = imm[b[address]] & 31;
      const safe = count >= 1 && count <= 3 && upperBound(s, a[address]) * unsigned(1 << count) <= MAX_UNSIGNED;
      if (safe && claim(s, address, id, marking)) {
        s.scale = count;
        address = a[address];
      }
    }
  }
  // A 64-bit address has been checked, so its sum wraps as the hardware's does.
  if (ty[address] === TY.I64) {
    if (op[address] === OP.ADD && s.isImmediate(b[address])) {
      const sum = disp + imm[b[address]];
      if (sum >= ZERO && sum <= MAX && claim(s, address, id, marking)) {
        disp = sum;
        address = a[address];
      }
    }
    const scale = scaleOf(s, address);
    if (scale !== 0 && claim(s, address, id, marking)) {
      s.scale = scale;
      address = a[address];
    }
  }
  s.disp = lowWord(disp);
  if (!marking) s.index = s.reg(address);
}

function foldPointer(s: X64Lowering, id: number, marking: boolean): void {
  const { op, a, b, imm } = s;
  let pointer = a[id];
  let disp = unsigned(s.imm[id]);
  s.mode = MODE.POINTER;
  if (op[pointer] === OP.ADD && s.isImmediate(b[pointer]) && fits(disp + imm[b[pointer]]) && disp <= MAX) {
    if (claim(s, pointer, id, marking)) {
      disp += imm[b[pointer]];
      pointer = a[pointer];
    }
  }
  s.disp = lowWord(disp);
  if (disp > MAX) {
    if (!marking) farPointer(s, pointer, s.disp);
    return;
  }
  if (op[pointer] !== OP.ADD || s.isImmediate(b[pointer]) || !claim(s, pointer, id, marking)) {
    if (!marking) s.base = s.reg(pointer);
    return;
  }
  s.mode = MODE.POINTER_INDEX;
  let base = a[pointer];
  let index = b[pointer];
  if (scaleOf(s, index) === 0 && scaleOf(s, base) !== 0) {
    base = b[pointer];
    index = a[pointer];
  }
  const scale = scaleOf(s, index);
  if (scale !== 0 && claim(s, index, pointer, marking)) {
    s.scale = scale;
    index = a[index];
  }
  if (op[index] === OP.EXTEND_U) claim(s, index, pointer, marking);
  if (!marking) {
    s.base = s.reg(base);
    s.index = s.reg(index);
  }
}

/** A static offset beyond the signed 32-bit displacement is added to the pointer first. */
function farPointer(s: X64Lowering, pointer: number, offset: number): void {
  const base = s.reg(pointer);
  const { v } = s;
  const constant = v.newVreg(TY.I64);
  const i = s.plain(P.CONST_I64, offset, 0, 0);
  v.operand(operandWord(constant, ROLE.DEF, CONSTRAINT.REG));
  s.end();
  v.vregRemat[constant] = i + 1;
  const sum = v.newVreg(TY.I64);
  s.plain(X.LEA64, 0, 0, MODE.POINTER_INDEX);
  v.operand(operandWord(sum, ROLE.DEF, CONSTRAINT.REG));
  s.use(base);
  s.use(constant);
  s.end();
  s.base = sum;
  s.disp = 0;
}

/** 1, 2 or 3 if `id` is a shift to the left by that count, else 0. */
function scaleOf(s: X64Lowering, id: number): number {
  if (s.op[id] !== OP.SHL || s.op[s.b[id]] !== OP.CONST) return 0;
  const count = s.imm[s.b[id]];
  return count >= 1 && count <= 3 ? count : 0;
}
