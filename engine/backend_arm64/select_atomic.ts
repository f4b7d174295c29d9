/**
 * Rules for atomic operations. With the feature LSE each is one instruction; without, a loop around an exclusive load
 * and store. Both take their address from one register. Loads and stores are those that keep sequential order (LDAR,
 * STLR).
 *
 * In: an atomic IR operation. Out: rows, or P.ATOMIC_LOOP and P.ATOMIC_SWAP.
 */
import { CONSTRAINT, operandWord, ROLE } from "../codegen/vcode.ts";
import { atomicWidth, REGION, regionKind } from "../ir/regions.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { TRAP } from "../base/traps.ts";
import { X } from "./instructions.ts";
import { AUX_TRAP_SHIFT, P } from "./machine_ops.ts";
import { memorySum } from "./select_memory.ts";
import type { Arm64Lowering } from "./lowering_context.ts";

/** The register of the address `address` of access `id`, its offset added. */
function addressRegister(s: Arm64Lowering, id: number, address: number): number {
  const offset = s.imm[id];
  const base = regionKind(s.c[id]) === REGION.MEMORY0 ? memorySum(s, address) : s.reg(address);
  if (offset === 0) return base;
  const sum = s.v.newVreg(TY.I64);
  s.plain(P.ADD_CONSTANT, 0, offset, 0);
  s.defOf(sum);
  s.use(base);
  s.end();
  return sum;
}

/** The aux word of access `id`: its trap code. */
function trapAux(s: Arm64Lowering, id: number): number {
  const kind = regionKind(s.c[id]);
  const trap = kind === REGION.MEMORY0 && !s.explicit
    ? TRAP.MEMORY_OUT_OF_BOUNDS
    : kind === REGION.STRUCT
    ? TRAP.NULL_STRUCTURE
    : 0;
  return trap << AUX_TRAP_SHIFT;
}

export function selectAtomicLoad(s: Arm64Lowering, id: number): void {
  const base = addressRegister(s, id, s.a[id]);
  s.plain(X.LDAR_B + atomicWidth(s.c[id]), 0, 0, trapAux(s, id));
  s.def(id);
  s.use(base);
  s.end();
}

export function selectAtomicStore(s: Arm64Lowering, id: number): void {
  const value = s.reg(s.b[id]);
  const base = addressRegister(s, id, s.a[id]);
  s.plain(X.STLR_B + atomicWidth(s.c[id]), 0, 0, trapAux(s, id));
  s.use(value);
  s.use(base);
  s.end();
}

// Rows by operation from ATOMIC_ADD on. SUB adds the negated value, AND clears the inverted one.
const LSE_ROWS = [X.LDADDAL_B, X.LDADDAL_B, X.LDCLRAL_B, X.LDSETAL_B, X.LDEORAL_B, X.SWPAL_B];

/** A new register with the operand that the row of ATOMIC_SUB or ATOMIC_AND takes: −value or ~value. */
function complemented(s: Arm64Lowering, value: number, op: number): number {
  const x = s.reg(value);
  const wide = s.wide(value);
  const vreg = s.v.newVreg(s.ty[value]);
  // Both rows take the register of zeros first.
  s.plain(op === OP.ATOMIC_SUB ? P.NEGATE : P.NOT, 0, 0, wide);
  s.defOf(vreg);
  s.use(x);
  s.end();
  return vreg;
}

/** ATOMIC_ADD to ATOMIC_XCHG: all result in the old value. */
export function selectAtomicModify(s: Arm64Lowering, id: number): void {
  const op = s.op[id];
  const width = atomicWidth(s.c[id]);
  if (!s.lse) {
    const value = s.reg(s.b[id]);
    const base = addressRegister(s, id, s.a[id]);
    s.plain(P.ATOMIC_LOOP, (width << 8) | (op - OP.ATOMIC_ADD), 0, trapAux(s, id));
    s.def(id);
    s.lateUse(base);
    s.lateUse(value);
    s.end();
    return;
  }
  const inverts = op === OP.ATOMIC_SUB || op === OP.ATOMIC_AND;
  const value = inverts ? complemented(s, s.b[id], op) : s.reg(s.b[id]);
  const base = addressRegister(s, id, s.a[id]);
  s.plain(LSE_ROWS[op - OP.ATOMIC_ADD] + width, 0, 0, trapAux(s, id));
  // The text of these rows names the value first.
  s.use(value);
  s.def(id);
  s.use(base);
  s.end();
}

export function selectAtomicCompareExchange(s: Arm64Lowering, id: number): void {
  const { v } = s;
  const { pool } = s.f;
  const list = s.a[id];
  const width = atomicWidth(s.c[id]);
  const expected = s.reg(pool[list + 1]);
  const replacement = s.reg(pool[list + 2]);
  const base = addressRegister(s, id, pool[list]);
  if (!s.lse) {
    s.plain(P.ATOMIC_SWAP, width, 0, trapAux(s, id));
    s.def(id);
    s.lateUse(base);
    s.lateUse(expected);
    s.lateUse(replacement);
    s.end();
    return;
  }
  s.plain(X.CASAL_B + width, 0, 0, trapAux(s, id));
  v.operand(operandWord(s.defVreg(id), ROLE.DEF, CONSTRAINT.REUSE, 3));
  s.use(replacement);
  s.use(base);
  s.use(expected);
  s.end();
}

export function selectFence(s: Arm64Lowering, _id: number): void {
  s.plain(X.DMB_ISH, 0, 0, 0);
  s.end();
}

export function selectPause(s: Arm64Lowering, _id: number): void {
  s.plain(X.YIELD, 0, 0, 0);
  s.end();
}
