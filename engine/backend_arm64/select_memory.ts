/**
 * Rules for loads, stores and explicit bounds checks, and the address modes they use.
 *
 * Linear memory: without a static offset, the mode is [x26, w, uxtw]. With one, the sum of base and index is computed
 * once per stretch of code (until the next call, which may move the memory) and the offset becomes the displacement,
 * because accesses to the fields of one object share the sum. The static offset is never added to a 32-bit address
 * first, so nothing wraps.
 */
import { lowWord, unsigned } from "../base/numbers.ts";
import { REGION, regionKind } from "../ir/regions.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { TRAP } from "../base/traps.ts";
import { X } from "./instructions.ts";
import { AUX_TRAP_SHIFT, MODE, P } from "./machine_ops.ts";
import type { Arm64Lowering } from "./lowering_context.ts";

/** The register of memory base + address `id`, computed here unless it is available. */
export function memorySum(s: Arm64Lowering, id: number): number {
  if (s.sumRegion[id] === s.region) return s.sumVreg[id];
  const x = s.reg(id);
  const sum = s.v.newVreg(TY.I64);
  s.plain(P.MEMORY_ADDRESS, 0, 0, s.wide(id));
  s.defOf(sum);
  s.use(x);
  s.end();
  s.sumVreg[id] = sum;
  s.sumRegion[id] = s.region;
  return sum;
}

/** Resolves the address of access `id`. */
function resolveAddress(s: Arm64Lowering, id: number): void {
  const kind = regionKind(s.c[id]);
  const address = s.a[id];
  const { op, b, imm } = s;
  s.address.disp = imm[id];
  s.address.trap = 0;
  if (kind === REGION.CONTEXT) {
    s.address.mode = MODE.CONTEXT;
    return;
  }
  if (kind === REGION.MEMORY0) {
    s.address.trap = s.explicit ? 0 : TRAP.MEMORY_OUT_OF_BOUNDS;
    if (op[address] === OP.CONST && (s.wide(address) === 0 || s.c[address] === 0)) {
      const at = unsigned(imm[address]) + unsigned(imm[id]);
      if (at <= 0x7fffffff) {
        s.address.mode = MODE.MEMORY_CONSTANT;
        s.address.disp = lowWord(at);
        return;
      }
    }
    if (imm[id] === 0 && s.sumRegion[address] !== s.region) {
      s.address.base = s.reg(address);
      s.address.mode = s.wide(address) === 1 ? MODE.MEMORY_WIDE : MODE.MEMORY;
    } else {
      s.address.base = memorySum(s, address);
      s.address.mode = MODE.POINTER;
    }
    return;
  }
  s.address.trap = kind === REGION.STRUCT
    ? TRAP.NULL_STRUCTURE
    : op[id] >= OP.LOAD && op[id] <= OP.LOAD32_U
    ? b[id]
    : 0;
  s.address.mode = MODE.POINTER;
  s.address.base = s.reg(address);
}

/** The aux word of the address resolved last. */
function addressAux(s: Arm64Lowering): number {
  return s.address.mode | (s.address.trap << AUX_TRAP_SHIFT);
}

function addressOperands(s: Arm64Lowering): void {
  if (s.address.mode === MODE.MEMORY_CONSTANT || s.address.mode === MODE.CONTEXT) return;
  s.use(s.address.base);
}

/** Row that loads as IR operation `op` with result type `ty` does. */
export function loadRow(op: number, ty: number): number {
  switch (op) {
    case OP.LOAD:
      if (ty === TY.I32) return X.LDR_W_U;
      if (ty === TY.F32) return X.LDR_S_U;
      if (ty === TY.F64) return X.LDR_D_U;
      if (ty === TY.V128) return X.LDR_Q_U;
      return X.LDR_X_U;
    case OP.LOAD8_S:
      return ty === TY.I64 ? X.LDRSB_X_U : X.LDRSB_W_U;
    case OP.LOAD8_U:
      return X.LDRB_U;
    case OP.LOAD16_S:
      return ty === TY.I64 ? X.LDRSH_X_U : X.LDRSH_W_U;
    case OP.LOAD16_U:
      return X.LDRH_U;
    case OP.LOAD32_S:
      return X.LDRSW_U;
  }
  return X.LDR_W_U;
}

/** Row that stores a whole value of type `ty`. */
export function storeRow(ty: number): number {
  switch (ty) {
    case TY.I32:
      return X.STR_W_U;
    case TY.F32:
      return X.STR_S_U;
    case TY.F64:
      return X.STR_D_U;
    case TY.V128:
      return X.STR_Q_U;
  }
  return X.STR_X_U;
}

export function selectLoad(s: Arm64Lowering, id: number): void {
  const row = loadRow(s.op[id], s.ty[id]);
  resolveAddress(s, id);
  s.plain(row, 0, s.address.disp, addressAux(s));
  s.def(id);
  addressOperands(s);
  s.end();
}

export function selectStore(s: Arm64Lowering, id: number): void {
  const value = s.b[id];
  const o = s.op[id];
  const row = o === OP.STORE8
    ? X.STRB_U
    : o === OP.STORE16
    ? X.STRH_U
    : o === OP.STORE32
    ? X.STR_W_U
    : storeRow(s.ty[value]);
  // The register of zeros stores a zero.
  const zero = s.isZero(value);
  const vreg = zero ? 0 : s.reg(value);
  resolveAddress(s, id);
  s.plain(row, zero ? 1 : 0, s.address.disp, addressAux(s));
  if (!zero) s.use(vreg);
  addressOperands(s);
  s.end();
}

/** A load of type `ty` from [base + disp] into vreg `to`. */
export function loadFrom(s: Arm64Lowering, to: number, base: number, disp: number, ty: number): void {
  s.plain(loadRow(OP.LOAD, ty), 0, disp, MODE.POINTER);
  s.defOf(to);
  s.use(base);
  s.end();
}

/** A store of vreg `value` of type `ty` to [base + disp]. */
export function storeTo(s: Arm64Lowering, value: number, base: number, disp: number, ty: number): void {
  s.plain(storeRow(ty), 0, disp, MODE.POINTER);
  s.use(value);
  s.use(base);
  s.end();
}

/** Loads the 64-bit field of the context at `offset` into a new vreg. */
export function loadContext(s: Arm64Lowering, offset: number): number {
  const vreg = s.v.newVreg(TY.I64);
  s.plain(X.LDR_X_U, 0, offset, MODE.CONTEXT);
  s.defOf(vreg);
  s.end();
  return vreg;
}
