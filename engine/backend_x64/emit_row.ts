/**
 * Emission of instruction rows: reads a VCode instruction's operand locations, fills the row's operand fields and the
 * memory operand, and writes the bytes. Also the allocator's edits (moves, spills, reloads, rematerialized constants),
 * which are rows as well.
 *
 * Only r11 and xmm15 may be changed besides the instruction's results.
 */
import { STUB } from "../codegen/machine_code.ts";
import { TY } from "../ir/types.ts";
import { type Emission, KIND } from "./emission.ts";
import { emitConstant, emitMemory, emitRegister, NO_REGISTER } from "./encoding.ts";
import { instructionRow, needRow } from "./expand_rows.ts";
import {
  ACCESS,
  FIELD,
  MAX_OPERANDS,
  ROW_ACCESSES,
  ROW_COUNT,
  ROW_FIELDS,
  ROW_RM_VECTOR,
  ROW_VEX_TWIN,
  ROW_WIDE,
  X,
} from "./instructions.ts";
import { AUX_LOCK, AUX_MODE, AUX_POOL_SHIFT, AUX_SCALE_SHIFT, AUX_TRAP_SHIFT, MODE, P } from "./machine_ops.ts";
import { CONTEXT_REGISTER, MEMORY_BASE, RSP, SCRATCH, SCRATCH_VECTOR } from "./registers.ts";

/** By row with a register result: 1 if ZF and SF reflect the result, 2 if all flags are those of a test of it. */
const RESULT_FLAGS = new Uint8Array(ROW_COUNT);
for (const row of [X.ADD32_R, X.ADD32_I, X.SUB32_R, X.SUB32_I, X.NEG32]) RESULT_FLAGS.fill(1, row, row + 2);
for (const row of [X.AND32_R, X.AND32_I, X.OR32_R, X.OR32_I, X.XOR32_R, X.XOR32_I]) RESULT_FLAGS.fill(2, row, row + 2);

/** Byte offset of slot location `location` (< 0) from rsp. */
export function slotOffset(e: Emission, location: number): number {
  return e.allocation.slotOffset(-1 - location);
}

/** The VEX form of a row if the CPU has AVX. */
export function vex(e: Emission, row: number): number {
  needRow(row);
  return e.avx ? ROW_VEX_TWIN[row] : row;
}

/** Emits a row on registers only. */
export function rr(e: Emission, row: number, reg: number, rm: number): void {
  emitRegister(e.asm, row, reg, rm, 0, 0, 0);
}

/** Emits a row on a register and an immediate. */
export function ri(e: Emission, row: number, rm: number, imm: number): void {
  emitRegister(e.asm, row, 0, rm, 0, imm, 0);
}

/** Emits a row on a register and [base + disp]. */
export function rm(e: Emission, row: number, reg: number, base: number, disp: number): void {
  emitMemory(e.asm, row, reg, e.asm.based(base, disp));
}

/** Emits a row on a location: register or slot. */
function rl(e: Emission, row: number, reg: number, location: number): void {
  if (location >= 0) emitRegister(e.asm, row, reg, location & 15, 0, 0, 0);
  else emitMemory(e.asm, row, reg, e.asm.based(RSP, slotOffset(e, location)));
}

/** d = a op b on vector registers: the VEX form, or the legacy form when d is a. */
export function vvv(e: Emission, row: number, d: number, a: number, b: number): void {
  if (e.avx) emitRegister(e.asm, vex(e, row), d, b, a, 0, 0);
  else {
    if (d !== a) emitRegister(e.asm, X.MOVAPS, d, a, 0, 0, 0);
    emitRegister(e.asm, row, d, b, 0, 0, 0);
  }
}

/** d = a op (constant at image offset `shared` of the constants). */
export function vvShared(e: Emission, row: number, d: number, a: number, shared: number): void {
  if (!e.avx && d !== a) emitRegister(e.asm, X.MOVAPS, d, a, 0, 0, 0);
  emitMemory(e.asm, vex(e, row), d, e.asm.ripRelative(), 0, e.avx ? a : 0);
  imageMark(e, shared);
}

/** A compare of vector register `a` with a shared constant. */
export function vShared(e: Emission, row: number, a: number, shared: number): void {
  emitMemory(e.asm, vex(e, row), a, e.asm.ripRelative());
  imageMark(e, shared);
}

function imageMark(e: Emission, shared: number): void {
  const at = e.asm.ripAt;
  e.fixupFrom(at, KIND.IMAGE, e.code.stubStart[STUB.CONSTANTS] + shared, e.asm.at - at, 0, 0);
}

/** Emits the row of VCode instruction `i`, whose row operands begin at operand `o` and extend to its last. */
export function emitRow(e: Emission, i: number, row: number, o: number): void {
  const { v, asm, location } = e;
  const aux = v.aux[i];
  const mode = aux & AUX_MODE;
  const imm = v.imm[i];
  let reg = 0;
  let vvvv = 0;
  let rmLocation = 0;
  let base = NO_REGISTER;
  let index = NO_REGISTER;
  let merged = false;
  for (let k = row * MAX_OPERANDS, end = k + MAX_OPERANDS; k < end; k++) {
    const field = ROW_FIELDS[k];
    if (field === FIELD.NONE) break;
    const access = ROW_ACCESSES[k];
    if (field === FIELD.REG || field === FIELD.OPCODE) {
      reg = location[o] & 15;
      o += access === ACCESS.BOTH ? 2 : 1;
    } else if (field === FIELD.VVVV) {
      if (access === ACCESS.MERGED) merged = true;
      else vvvv = location[o++] & 15;
    } else if (field === FIELD.FIXED) o++;
    else if (field === FIELD.RM) {
      if (mode === MODE.REGISTER) {
        rmLocation = location[o];
        o += access === ACCESS.BOTH ? 2 : 1;
      } else if (mode === MODE.MEMORY) index = location[o++] & 15;
      else if (mode === MODE.POINTER) base = location[o++] & 15;
      else if (mode === MODE.POINTER_INDEX) {
        base = location[o++] & 15;
        index = location[o++] & 15;
      } else if (mode === MODE.INDEX) index = location[o++] & 15;
    }
  }
  if (o !== v.firstOperand[i + 1]) {
    throw new Error(`Instruction ${i} does not have the operands of ${instructionRow(row).key}`);
  }
  if (merged) {
    vvvv = mode === MODE.REGISTER && rmLocation >= 0 && ROW_RM_VECTOR[row] !== 0 ? rmLocation & 15 : SCRATCH_VECTOR;
  }
  if (mode === MODE.REGISTER) {
    if (rmLocation >= 0) emitRegister(asm, row, reg, rmLocation & 15, vvvv, imm, 0);
    else emitMemory(asm, row, reg, asm.based(RSP, slotOffset(e, rmLocation)), imm, vvvv);
    if (RESULT_FLAGS[row] !== 0 && rmLocation >= 0) {
      const result = ROW_FIELDS[row * MAX_OPERANDS] === FIELD.REG ? reg : rmLocation & 15;
      e.flagsOf(result, ROW_WIDE[row], RESULT_FLAGS[row] === 2);
    }
    return;
  }
  const disp = v.disp[i];
  if (mode === MODE.POOL || mode === MODE.SHARED) {
    emitMemory(asm, row, reg, asm.ripRelative(), imm, vvvv);
    const at = asm.ripAt;
    if (mode === MODE.SHARED) imageMark(e, disp);
    else {
      const size = 4 << ((aux >>> AUX_POOL_SHIFT) & 3);
      e.fixupFrom(at, KIND.RELATIVE, e.pool(disp, size === 8 ? imm : 0, size), asm.at - at, 0, 0);
    }
    return;
  }
  emitAddressed(e, i, row, reg, vvvv, base, index, imm, 0);
}

/**
 * Emits a row on memory at the address of instruction `i` and its registers `base` and `index`; `cc` is for rows with a
 * condition.
 */
export function emitAddressed(
  e: Emission,
  i: number,
  row: number,
  reg: number,
  vvvv: number,
  base: number,
  index: number,
  imm: number,
  cc: number,
): void {
  const { asm, v } = e;
  const aux = v.aux[i];
  const mode = aux & AUX_MODE;
  const scale = (aux >>> AUX_SCALE_SHIFT) & 3;
  let disp = v.disp[i];
  if (mode === MODE.MEMORY || mode === MODE.MEMORY_CONSTANT) {
    base = MEMORY_BASE;
    if (disp < 0) {
      // An offset of 2 GiB and more does not fit the displacement: rbx + offset first.
      emitConstant(asm, SCRATCH, disp, 0);
      emitRegister(asm, X.ADD64_R, SCRATCH, MEMORY_BASE, 0, 0, 0);
      base = SCRATCH;
      disp = 0;
    }
  } else if (mode === MODE.CONTEXT) base = CONTEXT_REGISTER;
  const code = (aux >>> AUX_TRAP_SHIFT) & 63;
  if (code !== 0) e.trapSite(i, code, e.frame);
  // The prefix is part of the instruction that may fault.
  if ((aux & AUX_LOCK) !== 0) emitRegister(asm, X.LOCK, 0, 0, 0, 0, 0);
  emitMemory(asm, row, reg, asm.indexed(base, index, scale, disp), imm, vvvv, cc);
}

/** LEA: additions of which one operand is the result take the shorter ADD. */
export function emitSum(e: Emission, i: number, row: number, o: number): void {
  const { v, asm, location } = e;
  const aux = v.aux[i];
  const mode = aux & AUX_MODE;
  const wide = row - X.LEA32;
  const disp = v.disp[i];
  const scale = (aux >>> AUX_SCALE_SHIFT) & 3;
  const d = location[o] & 15;
  if (mode === MODE.POINTER) {
    const base = location[o + 1] & 15;
    if (d === base) {
      // Adding 128 takes an immediate of four bytes, subtracting −128 one of one byte.
      if (disp === 128) ri(e, X.SUB32_I + wide, d, -128);
      else ri(e, X.ADD32_I + wide, d, disp);
      e.flagsOf(d, wide, false);
      return;
    }
    if (disp === 0) {
      rr(e, X.MOV32_L + wide, d, base);
      return;
    }
  } else if (mode === MODE.POINTER_INDEX && scale === 0 && disp === 0) {
    const base = location[o + 1] & 15;
    const index = location[o + 2] & 15;
    if (d === base) {
      rr(e, X.ADD32_R + wide, d, index);
      e.flagsOf(d, wide, false);
      return;
    }
    if (d === index) {
      rr(e, X.ADD32_R + wide, d, base);
      e.flagsOf(d, wide, false);
      return;
    }
    if ((base & 7) === 5 && (index & 7) !== 5) {
      // rbp and r13 as a base would need a displacement byte; as an index they do not.
      emitMemory(asm, row, d, asm.indexed(index, base, 0, 0));
      return;
    }
  }
  emitRow(e, i, row, o);
}

/** Loads the constant that instruction `i` (CONST_*, or LEA of the context) defines into register location `to`. */
export function emitRematerialized(e: Emission, i: number, to: number): void {
  const { v, asm } = e;
  const op = v.op[i];
  const d = to & 15;
  const low = v.imm[i];
  const high = v.disp[i];
  if (op === P.CONST_I32 || op === P.CONST_I64) {
    if (low === 0 && (op === P.CONST_I32 || high === 0)) emitRegister(asm, X.XOR32_R, d, d, 0, 0, 0);
    else emitConstant(asm, d, low, op === P.CONST_I32 ? 0 : high);
  } else if (op === P.CONST_F32 || op === P.CONST_F64) {
    const wide = op === P.CONST_F64;
    if (low === 0 && (!wide || high === 0)) vvv(e, X.XORPS, d, d, d);
    else {
      emitMemory(asm, vex(e, wide ? X.MOVSD_L : X.MOVSS_L), d, asm.ripRelative());
      const at = asm.ripAt;
      e.fixupFrom(at, KIND.RELATIVE, e.pool(low, wide ? high : 0, wide ? 8 : 4), asm.at - at, 0, 0);
    }
  } else if (op === P.CONST_V128) {
    emitVectorConstant(e, d, low);
  } else if (op === X.LEA64) {
    emitMemory(asm, X.LEA64, d, asm.based(CONTEXT_REGISTER, high));
  } else {
    throw new Error(`Operation ${op} cannot be rematerialized`);
  }
}

/** Loads vector constant `index`: all zeros and all ones are computed, other constants come from the pool. */
function emitVectorConstant(e: Emission, d: number, index: number): void {
  const { vectors } = e.v;
  const at = index * 4;
  const word = vectors[at];
  const uniform = vectors[at + 1] === word && vectors[at + 2] === word && vectors[at + 3] === word;
  if (uniform && word === 0) vvv(e, X.XORPS, d, d, d);
  else if (uniform && word === -1) vvv(e, X.PCMPEQD, d, d, d);
  else {
    emitMemory(e.asm, vex(e, X.MOVAPS), d, e.asm.ripRelative());
    const patch = e.asm.ripAt;
    e.fixupFrom(patch, KIND.RELATIVE, e.pool(index, 0, 16), e.asm.at - patch, 0, 0);
  }
}

/** Stores the constant that instruction `i` defines to slot `to`, if it fits an immediate. */
function storeConstant(e: Emission, i: number, to: number): boolean {
  const { v } = e;
  const op = v.op[i];
  const low = v.imm[i];
  const wide = op === P.CONST_I64 || op === P.CONST_F64;
  if (!wide && op !== P.CONST_I32 && op !== P.CONST_F32) return false;
  if (wide && v.disp[i] !== low >> 31) return false;
  emitMemory(e.asm, wide ? X.MOV64_SI : X.MOV32_SI, 0, e.asm.based(RSP, slotOffset(e, to)), low);
  return true;
}

/** Moves a value of type `ty` between locations. */
export function emitMove(e: Emission, from: number, to: number, ty: number): void {
  if (from === to) return;
  const vector = ty === TY.F32 || ty === TY.F64 || ty === TY.V128;
  if (from < 0 && to < 0) {
    const scratch = ty === TY.V128 ? 32 + SCRATCH_VECTOR : SCRATCH;
    const via = ty === TY.F32 ? TY.I32 : ty === TY.F64 ? TY.I64 : ty;
    emitMove(e, from, scratch, via);
    emitMove(e, scratch, to, via);
    return;
  }
  if (!vector) {
    const wide = ty === TY.I32 ? 0 : 1;
    if (to < 0) rl(e, X.MOV32_S + wide, from & 15, to);
    else rl(e, X.MOV32_L + wide, to & 15, from);
    return;
  }
  if (from >= 0 && to >= 0) {
    rr(e, vex(e, X.MOVAPS), to & 15, from & 15);
    return;
  }
  if (to < 0) rl(e, vex(e, ty === TY.F32 ? X.MOVSS_S : ty === TY.F64 ? X.MOVSD_S : X.MOVUPS_S), from & 15, to);
  else rl(e, vex(e, ty === TY.F32 ? X.MOVSS_L : ty === TY.F64 ? X.MOVSD_L : X.MOVUPS_L), to & 15, from);
}

/** Exchanges two registers of the same bank. */
function emitSwap(e: Emission, a: number, b: number): void {
  if (a < 32) {
    rr(e, X.XCHG64, a & 15, b & 15);
    return;
  }
  const move = vex(e, X.MOVAPS);
  rr(e, move, SCRATCH_VECTOR, a & 15);
  rr(e, move, a & 15, b & 15);
  rr(e, move, b & 15, SCRATCH_VECTOR);
}

/** Emits edits [first, end) of the allocation. */
export function emitEdits(e: Emission, first: number, end: number): void {
  const { editFrom, editTo, editTy, editRemat } = e.allocation;
  for (let k = first; k < end; k++) {
    e.asm.reserve(64);
    const remat = editRemat[k];
    if (remat > 0) {
      const to = editTo[k];
      if (to >= 0) emitRematerialized(e, remat - 1, to);
      else if (!storeConstant(e, remat - 1, to)) {
        const scratch = editTy[k] === TY.F32 || editTy[k] === TY.F64 || editTy[k] === TY.V128
          ? 32 + SCRATCH_VECTOR
          : SCRATCH;
        emitRematerialized(e, remat - 1, scratch);
        emitMove(e, scratch, to, editTy[k]);
      }
    } else if (remat < 0) emitSwap(e, editFrom[k], editTo[k]);
    else emitMove(e, editFrom[k], editTo[k], editTy[k]);
  }
}
