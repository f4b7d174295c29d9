/**
 * Emission of instruction rows: reads a VCode instruction's operand locations, fills the row's fields, and writes the
 * word. Also loads and stores with their address modes, constants, and the allocator's edits (moves, spills, reloads,
 * rematerialized constants).
 *
 * Only x16, x17 and v31 may be changed besides the instruction's results.
 */
import { TY } from "../ir/types.ts";
import type { Emission } from "./emission.ts";
import { emitLiteral, emitVectorConstant, LITERAL_LIMIT } from "./emit_vector.ts";
import { emitAsPair, justStored, rememberAccess } from "./emit_pairs.ts";
import { encode } from "./encoding.ts";
import { constantWords, float32Immediate, float64Immediate } from "./immediates.ts";
import { ROW_REGISTERS, ROW_SCALE, X } from "./instructions.ts";
import { AUX_MODE, AUX_TRAP_SHIFT, MODE, P } from "./machine_ops.ts";
import { CONTEXT_REGISTER, MEMORY_BASE, SCRATCH, SCRATCH_VECTOR, SP, ZERO } from "./registers.ts";

// Options of index registers and extended operands.
const UXTW = 2;
const UXTX = 3;

/** Byte offset of slot location `location` (< 0) from sp. */
function slotOffset(location: number): number {
  return (-1 - location) * 8;
}

/** Emits the row of VCode instruction `i`, whose row operands begin at operand `o`. */
export function emitRow(e: Emission, i: number, row: number, o: number): void {
  const { v, location } = e;
  if ((v.aux[i] & AUX_MODE) !== MODE.NONE) {
    emitAccess(e, i, row, o);
    return;
  }
  const trap = (v.aux[i] >>> AUX_TRAP_SHIFT) & 63;
  if (trap !== 0) e.faultSite(i, trap);
  let word = encode(row, 0, 0, 0, 0, v.imm[i], v.disp[i], 0, 0);
  for (let fields = ROW_REGISTERS[row]; fields !== 0; fields >>= 4) {
    word |= (location[o++] & 31) << FIELD_SHIFTS[fields & 15];
  }
  e.asm.word(word);
}

/** Positions of the register fields by their number in ROW_REGISTERS. */
const FIELD_SHIFTS = Uint8Array.of(0, 0, 5, 16, 10);

/** Row forms of an access, relative to its first. */
const UNSCALED = 1;
const INDEXED = 2;

/**
 * row t, [base + disp] with disp ≥ −256; `row` is of kind …_U. Changes x16 if disp is large. If `trap` is not 0, the
 * access is a trap site of instruction `site`.
 */
export function emitAt(e: Emission, row: number, t: number, base: number, disp: number, site = -1, trap = 0): void {
  const { asm } = e;
  const scale = ROW_SCALE[row];
  if (disp >= 0 && (disp & ((1 << scale) - 1)) === 0 && disp >>> scale < 0x1000) {
    const index = disp >>> scale;
    if (emitAsPair(e, row, t, base, index, trap)) return;
    if (trap !== 0) e.faultSite(site, trap);
    asm.rri(row, t, base, index, 0);
    rememberAccess(e, row, t, base, index, trap);
  } else if (disp >= -256 && disp < 256) {
    if (trap !== 0) e.faultSite(site, trap);
    asm.rri(row + UNSCALED, t, base, disp, 0);
  } else {
    asm.constant(SCRATCH, disp, 0);
    if (base === SP) {
      asm.rrri(X.ADD_E64, SCRATCH, SP, SCRATCH, 0, UXTX);
      base = SCRATCH;
      asm.rri(row, t, base, 0, 0);
      return;
    }
    if (trap !== 0) e.faultSite(site, trap);
    asm.word(encode(row + INDEXED, t, base, SCRATCH, 0, 0, UXTX, 0, 0));
  }
}

/** A load or store by its address mode: the register first, then the address. */
function emitAccess(e: Emission, i: number, row: number, o: number): void {
  const { v, location, asm } = e;
  const aux = v.aux[i];
  const trap = (aux >>> AUX_TRAP_SHIFT) & 63;
  const disp = v.disp[i];
  // A store of zero names no register.
  const t = v.imm[i] === 1 ? ZERO : location[o++] & 31;
  const mode = aux & AUX_MODE;
  switch (mode) {
    case MODE.MEMORY:
    case MODE.MEMORY_WIDE:
      if (trap !== 0) e.faultSite(i, trap);
      asm.word(
        encode(row + INDEXED, t, MEMORY_BASE, location[o] & 31, 0, 0, mode === MODE.MEMORY ? UXTW : UXTX, 0, 0),
      );
      break;
    case MODE.MEMORY_CONSTANT:
      emitAt(e, row, t, MEMORY_BASE, disp, i, trap);
      break;
    case MODE.CONTEXT:
      emitAt(e, row, t, CONTEXT_REGISTER, disp, i, trap);
      break;
    case MODE.POINTER:
      // Displacements are unsigned; one beyond 2^31 is put into a register like any other large one.
      emitPointer(e, row, t, location[o] & 31, disp, i, trap);
      break;
    default:
      throw new Error(`Address mode ${mode} has no emission`);
  }
}

function emitPointer(e: Emission, row: number, t: number, base: number, disp: number, i: number, trap: number): void {
  if (disp >= 0) {
    emitAt(e, row, t, base, disp, i, trap);
    return;
  }
  e.asm.constant(SCRATCH, disp, 0);
  if (trap !== 0) e.faultSite(i, trap);
  e.asm.word(encode(row + INDEXED, t, base, SCRATCH, 0, 0, UXTX, 0, 0));
}

/**
 * Rows of loads and stores of slots by type. An i32 takes the whole register, so that neighbouring slots can be paired.
 */
const LOADS = [0, X.LDR_X_U, X.LDR_X_U, X.LDR_S_U, X.LDR_D_U, X.LDR_Q_U, X.LDR_X_U];
const STORES = [0, X.STR_X_U, X.STR_X_U, X.STR_S_U, X.STR_D_U, X.STR_Q_U, X.STR_X_U];

/** Emits a move of a value of type `ty` between locations (registers ≥ 0, slots < 0). */
export function emitMove(e: Emission, from: number, to: number, ty: number): void {
  if (from === to) return;
  const vector = ty === TY.F32 || ty === TY.F64 || ty === TY.V128;
  if (from >= 0 && to >= 0) {
    emitRegisterMove(e, from, to, ty);
  } else if (from >= 0) {
    emitAt(e, STORES[ty], from & 31, SP, slotOffset(to));
  } else if (to >= 0) {
    emitReload(e, from, to, ty);
  } else if (vector) {
    emitAt(e, LOADS[ty], SCRATCH_VECTOR, SP, slotOffset(from));
    emitAt(e, STORES[ty], SCRATCH_VECTOR, SP, slotOffset(to));
  } else {
    // x16 is busy when a slot is far away: the vector scratch carries the word.
    emitAt(e, X.LDR_D_U, SCRATCH_VECTOR, SP, slotOffset(from));
    emitAt(e, X.STR_D_U, SCRATCH_VECTOR, SP, slotOffset(to));
  }
}

function emitRegisterMove(e: Emission, from: number, to: number, ty: number): void {
  const { asm } = e;
  if (to < 32) asm.move(1, to, from);
  else if (ty === TY.V128) asm.rrr(X.ORR_16B, to & 31, from & 31, from & 31);
  else asm.rrr(X.FMOV_D, to & 31, from & 31, 0);
}

/** Loads a register from slot `from`, or from the register that was just stored there (key store-load-fwd). */
function emitReload(e: Emission, from: number, to: number, ty: number): void {
  const offset = slotOffset(from);
  const known = e.forwards ? justStored(e, STORES[ty], offset >>> ROW_SCALE[STORES[ty]]) : -1;
  if (known < 0) {
    emitAt(e, LOADS[ty], to & 31, SP, offset);
    return;
  }
  e.options.counts.forwardedLoads++;
  if (known !== (to & 31)) emitRegisterMove(e, (to & 32) | known, to, ty);
}

function emitSwap(e: Emission, a: number, b: number): void {
  const { asm } = e;
  if (a < 32) {
    asm.move(1, SCRATCH, a);
    asm.move(1, a, b);
    asm.move(1, b, SCRATCH);
  } else {
    asm.rrr(X.ORR_16B, SCRATCH_VECTOR, a & 31, a & 31);
    asm.rrr(X.ORR_16B, a & 31, b & 31, b & 31);
    asm.rrr(X.ORR_16B, b & 31, SCRATCH_VECTOR, SCRATCH_VECTOR);
  }
}

/** d = f64 (or, with `double` 0, f32) of given bits. */
export function emitFloatConstant(e: Emission, d: number, low: number, high: number, double: number): void {
  const { asm } = e;
  if (low === 0 && high === 0) {
    asm.rrr(X.MOVI_ZERO, d, 0, 0);
    return;
  }
  const field = double === 1 ? float64Immediate(low, high) : float32Immediate(low);
  if (field >= 0) asm.rri(X.FMOV_I_S + double, d, 0, field, 0);
  else if (constantWords(low, high) <= 2 || e.v.count > LITERAL_LIMIT) {
    asm.constant(SCRATCH, low, high);
    asm.rrr(double === 1 ? X.FMOV_DX : X.FMOV_SW, d, SCRATCH, 0);
  } else emitLiteral(e, double === 1 ? X.LDR_LD : X.LDR_LS, d, e.pool(low, high, double === 1 ? 8 : 4));
}

/** Rematerializes instruction `i` into physical register `to`. */
export function emitRematerialized(e: Emission, i: number, to: number): void {
  const { v, asm } = e;
  const d = to & 31;
  switch (v.op[i]) {
    case P.CONST_I32:
      asm.constant(d, v.imm[i], 0);
      break;
    case P.CONST_I64:
      asm.constant(d, v.imm[i], v.disp[i]);
      break;
    case P.CONST_F32:
      emitFloatConstant(e, d, v.imm[i], 0, 0);
      break;
    case P.CONST_F64:
      emitFloatConstant(e, d, v.imm[i], v.disp[i], 1);
      break;
    case P.CONST_V128:
      emitVectorConstant(e, d, v.imm[i]);
      break;
    case P.CONTEXT_ADDRESS:
      asm.addConstant(d, CONTEXT_REGISTER, v.imm[i], SCRATCH);
      break;
    default:
      throw new Error(`Operation ${v.op[i]} cannot be rematerialized`);
  }
}

/** Emits edits [first, end) of the allocation. */
export function emitEdits(e: Emission, first: number, end: number): void {
  const { editFrom, editTo, editTy, editRemat } = e.allocation;
  for (let k = first; k < end; k++) {
    e.asm.reserve(128);
    const remat = editRemat[k];
    const to = editTo[k];
    const ty = editTy[k];
    if (remat > 0) {
      if (to >= 0) emitRematerialized(e, remat - 1, to);
      else {
        const vector = ty === TY.F32 || ty === TY.F64 || ty === TY.V128;
        emitRematerialized(e, remat - 1, vector ? 32 + SCRATCH_VECTOR : SCRATCH);
        if (!vector && slotOffset(to) >= 0x3000) {
          // Storing far away needs x16 itself.
          e.asm.rrr(X.FMOV_DX, SCRATCH_VECTOR, SCRATCH, 0);
          emitAt(e, X.STR_D_U, SCRATCH_VECTOR, SP, slotOffset(to));
        } else emitMove(e, vector ? 32 + SCRATCH_VECTOR : SCRATCH, to, ty);
      }
    } else if (remat < 0) emitSwap(e, editFrom[k], to);
    else emitMove(e, editFrom[k], to, ty);
  }
}
