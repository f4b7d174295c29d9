/**
 * The target machine arm64 (Armv8.0), with the same exports as machine_x64.ts.
 *
 * Registers are numbered as in codegen/vcode.ts: 0-31 general, 32-63 vector. Conventions are those of
 * backend_arm64/abi.ts. A macro-instruction changes its destination, the flags, x17 and v31, and x16 where it says so
 * or takes an address or value there. Atomic operations also change x24 and x29, refreshLength x24, and takeConstant
 * x29. `home` is the offset in bytes of a home in the frame, `position` the offset of the wasm instruction in the
 * module. i32 values in registers are always zero-extended.
 *
 *     frame of N bytes, a multiple of 16   [sp + N − 8] return address, [sp + N − 16] padding or the last home,
 *                                          homes from [sp] on
 *
 * Conditional branches reach 1 MiB. In bodies whose code might be longer they skip over an unconditional branch.
 */
import * as code from "./code.ts";
import { emit32 } from "./code.ts";
import { queuePoll, queueTrap } from "./fragments.ts";
import * as cond from "./conditions.ts";
import {
  CANONICAL_F32,
  CANONICAL_F64_HIGH,
  CONTEXT_MEMORIES,
  CONTEXT_METERED,
  CONTEXT_OVERFLOW,
  CONTEXT_STACK_LIMIT,
  CONTEXT_TAIL_RETURN,
  CONTEXT_THREAD,
  MEMORY_LENGTH_FIELD,
  MODE_EXPLICIT_BOUNDS,
  MODE_FUEL,
  MODE_STACK_FENCE,
  RECORD_CODE,
  RECORD_CONTEXT,
  RELOC_FUNCTION,
  RELOC_POLL_PAGE,
  RELOC_STUB,
  STACK_SLACK,
  STUB_ALLOCATE,
  STUB_BUILTIN,
  STUB_TRAP,
  THREAD_FUEL,
  TRAP_INTEGER_DIVIDE_BY_ZERO,
  TRAP_INTEGER_OVERFLOW,
  TRAP_INTERRUPTED,
  TRAP_INVALID_CONVERSION,
  TRAP_MEMORY_OUT_OF_BOUNDS,
  TRAP_STACK_EXHAUSTED,
  TRAP_UNALIGNED_ATOMIC,
} from "./constants.ts";
import * as enc from "./encoding_arm64.ts";
import {
  FIELD26,
  HALF_WORD,
  IMM12_MASK,
  IMM24_END,
  rrc,
  rri,
  rrr,
  rrra,
  SHIFTED_12,
  X17,
  ZERO,
} from "./encoding_arm64.ts";
import * as a64 from "./instructions_arm64.ts";
import { H_MODE } from "./layout.ts";
import { type i32, load32, trailingZeros } from "./memory.ts";
import * as op from "./operations.ts";
import { end, pos } from "./reader.ts";
import { bankOf, F32, F64, I32, I64, V128 } from "./types.ts";

export * from "./vectors_arm64.ts";
export { linkOf, patchBranch, setLink } from "./encoding_arm64.ts";

const X0: i32 = 0;
const X1: i32 = 1;
const X15: i32 = 15;
const X16: i32 = 16;
const X24: i32 = 24;
const FUEL: i32 = 25;
const MEMORY_BASE: i32 = 26;
const MEMORY_LENGTH: i32 = 27;
const CONTEXT: i32 = 28;
const X29: i32 = 29;
const LINK: i32 = 30;
const SP: i32 = 31;
const V31: i32 = 63;
const MAX_I32: i32 = 0x7fffffff;

/** The register of a function record at a call through it. */
export const RECORD_REGISTER: i32 = X15;
/** The general scratch register: it holds no value between two macro-instructions, except where one says so. */
export const SCRATCH: i32 = X16;
export const NO_REGISTER: i32 = -1;
/** The type whose loads and stores move 64 bits. */
export const WIDE: i32 = I64;

/** The scratch register of `bank`. */
export function scratchOf(bank: i32): i32 {
  return bank === 0 ? X16 : V31;
}

/** Eight registers, as a mask. */
const EIGHT: i32 = (1 << 8) - 1;

/** Registers of operands, as a mask: x0-x7 x15, or v0-v7 v16-v23. */
export function temporaries(bank: i32): i32 {
  return bank === 0 ? EIGHT | (1 << X15) : EIGHT | (EIGHT << 16);
}

/** The register for the k-th pinned local of `bank`, or NO_REGISTER: x8-x14 x19-x23, or v8-v15. */
export function pinnedRegister(bank: i32, k: i32): i32 {
  if (bank === 1) return k < 8 ? 40 + k : NO_REGISTER;
  if (k < 7) return 8 + k;
  return k < 12 ? 12 + k : NO_REGISTER;
}

/** The register of parameter number `k` of its bank, or NO_REGISTER for the overflow buffer. */
export function parameterRegister(bank: i32, k: i32): i32 {
  return k < 8 ? (bank << 5) + k : NO_REGISTER;
}

/** The register of result number `k` of its bank, or NO_REGISTER for the overflow buffer. */
export function resultRegister(bank: i32, k: i32): i32 {
  return k < 2 ? (bank << 5) + k : NO_REGISTER;
}

/** Registers that a division or wide product uses besides its operands, as a mask. */
export function divisionRegisters(): i32 {
  return (1 << X0) | (1 << X1);
}

/**
 * Whether an operation can take the constant as an immediate. Constants that no field can encode are loaded into x17.
 */
export function fitsImmediate(low: i32, high: i32, wide: i32): boolean {
  return wide === 0 || high === low >> 31;
}

function isExplicit(): boolean {
  return (load32(H_MODE) & MODE_EXPLICIT_BOUNDS) !== 0;
}

// Frames and sites.

/** The size in bytes of a frame whose homes take `bytes`, the return address included. */
export function frameSize(bytes: i32): i32 {
  return (bytes + 8 + 15) & ~15;
}

/** The distance in bytes from sp to the return address in a frame of `size` bytes. */
export function returnDistance(size: i32): i32 {
  return size - 8;
}

/** The fault handler reports a stack pointer that is lower by this number of bytes. */
const FAULT_FRAME: i32 = 16;

/** Records that the next instruction may fault with `trap`. */
export function faultSite(trap: i32, position: i32): void {
  code.trapSite(trap, FAULT_FRAME, position);
}

// Moves. They preserve the flags.

export function move(wide: i32, d: i32, s: i32): void {
  if (d === s) return;
  if (d < 32) rrr(wide === 0 ? a64.ORR32 : a64.ORR64, d, ZERO, s);
  else rrr(a64.ORR_16B, d, s, s);
}

function scaleOf(type: i32): i32 {
  if (type === V128) return 4;
  return type === I32 || type === F32 ? 2 : 3;
}

function loadOp(type: i32): i32 {
  if (type === F32) return a64.LDR_S_U;
  if (type === F64) return a64.LDR_D_U;
  if (type === V128) return a64.LDR_Q_U;
  return type === I32 ? a64.LDR_W_U : a64.LDR_X_U;
}

function storeOp(type: i32): i32 {
  if (type === F32) return a64.STR_S_U;
  if (type === F64) return a64.STR_D_U;
  if (type === V128) return a64.STR_Q_U;
  return type === I32 ? a64.STR_W_U : a64.STR_X_U;
}

/** d = value of `type` at base + offset. */
export function loadFrom(type: i32, d: i32, base: i32, offset: i32): void {
  enc.access(loadOp(type), scaleOf(type), d, base, offset);
}

export function storeTo(type: i32, s: i32, base: i32, offset: i32): void {
  enc.access(storeOp(type), scaleOf(type), s, base, offset);
}

export function loadHome(type: i32, d: i32, home: i32): void {
  loadFrom(type, d, SP, home);
}

export function storeHome(type: i32, s: i32, home: i32): void {
  storeTo(type, s, SP, home);
}

/** Loads from, or stores to, the VM context. */
export function loadContext(type: i32, d: i32, offset: i32): void {
  loadFrom(type, d, CONTEXT, offset);
}

export function storeContext(type: i32, s: i32, offset: i32): void {
  storeTo(type, s, CONTEXT, offset);
}

/** d = address of `offset` in the VM context. */
export function contextAddress(d: i32, offset: i32): void {
  enc.addConstant(d, CONTEXT, offset);
}

/** d = constant, in a general register. */
export function constant(d: i32, low: i32, high: i32, wide: i32): void {
  enc.constant(d, low, high, wide);
}

/** d = the float with these bits; changes x16. */
export function floatConstant(d: i32, low: i32, high: i32, double: i32): void {
  if (low === 0 && high === 0) {
    zeroVector(d);
    return;
  }
  constant(X16, low, high, double);
  rrr(double === 1 ? a64.FMOV_DX : a64.FMOV_SW, d, X16, 0);
}

export function zeroVector(d: i32): void {
  emit32(a64.MOVI_2D | (d & 31));
}

/** home = constant of a general type or float; changes x16. */
export function storeConstant(wide: i32, low: i32, high: i32, home: i32): void {
  const type = wide === 0 ? I32 : WIDE;
  if (low === 0 && (wide === 0 || high === 0)) {
    storeHome(type, ZERO, home);
    return;
  }
  constant(X16, low, high, wide);
  storeHome(type, X16, home);
}

/** home = the value at another home; changes x16. */
export function moveHome(type: i32, to: i32, from: i32): void {
  const as = type === V128 ? V128 : type === I32 || type === F32 ? I32 : WIDE;
  const scratch = type === V128 ? V31 : X16;
  loadHome(as, scratch, from);
  storeHome(as, scratch, to);
}

// Integers.

/** The form of an instruction for 32 or 64 bits. */
function sized(wide: i32, op32: i32, op64: i32): i32 {
  return wide === 0 ? op32 : op64;
}

function integerOp(operation: i32, wide: i32): i32 {
  switch (operation) {
    case op.ADD:
      return sized(wide, a64.ADD32, a64.ADD64);
    case op.SUB:
      return sized(wide, a64.SUB32, a64.SUB64);
    case op.AND:
      return sized(wide, a64.AND32, a64.AND64);
    case op.OR:
      return sized(wide, a64.ORR32, a64.ORR64);
  }
  return sized(wide, a64.EOR32, a64.EOR64);
}

/** d = a op b */
export function binary(operation: i32, wide: i32, d: i32, a: i32, b: i32): void {
  if (operation === op.MUL) rrra(sized(wide, a64.MADD32, a64.MADD64), d, a, b, ZERO);
  else rrr(integerOp(operation, wide), d, a, b);
}

/** d = a op immediate, which fits */
export function binaryImmediate(operation: i32, wide: i32, d: i32, a: i32, immediate: i32): void {
  if (!binaryField(operation, wide, d, a, immediate)) {
    constant(X17, immediate, immediate >> 31, wide);
    binary(operation, wide, d, a, X17);
  }
}

/** d = a op immediate if an instruction can encode it; returns whether one can. */
function binaryField(operation: i32, wide: i32, d: i32, a: i32, immediate: i32): boolean {
  if (operation === op.ADD || operation === op.SUB) {
    const adds = (operation === op.ADD) === immediate >= 0;
    const size = immediate < 0 ? -immediate : immediate;
    if (!enc.isArithmetic(size)) return false;
    const form = adds ? sized(wide, a64.ADD_I32, a64.ADD_I64) : sized(wide, a64.SUB_I32, a64.SUB_I64);
    rri(form, d, a, enc.arithmeticField(size));
    return true;
  }
  if (operation === op.MUL) {
    if (immediate <= 0 || (immediate & (immediate - 1)) !== 0) return false;
    shiftImmediate(op.SHL, wide, d, a, trailingZeros(immediate));
    return true;
  }
  const field = enc.logicalImmediate(immediate, wide === 0 ? immediate : immediate >> 31);
  if (field < 0) return false;
  const isAnd = operation === op.AND;
  const form = isAnd
    ? sized(wide, a64.AND_I32, a64.AND_I64)
    : operation === op.OR
    ? sized(wide, a64.ORR_I32, a64.ORR_I64)
    : sized(wide, a64.EOR_I32, a64.EOR_I64);
  rri(form, d, a, field);
  return true;
}

/** d = a op the value at `home` */
export function binaryHome(operation: i32, wide: i32, d: i32, a: i32, home: i32): void {
  loadHome(wide === 0 ? I32 : WIDE, X17, home);
  binary(operation, wide, d, a, X17);
}

/** d = a shifted by `count`, which is below the width */
export function shiftImmediate(operation: i32, wide: i32, d: i32, a: i32, count: i32): void {
  if (count === 0) {
    move(wide, d, a);
    return;
  }
  const most = wide === 0 ? 31 : 63;
  if (operation === op.SHL) {
    enc.bits(sized(wide, a64.UBFM32, a64.UBFM64), d, a, -count & most, most - count);
  } else if (operation === op.SHR_U) enc.bits(sized(wide, a64.UBFM32, a64.UBFM64), d, a, count, most);
  else if (operation === op.SHR_S) enc.bits(sized(wide, a64.SBFM32, a64.SBFM64), d, a, count, most);
  else {
    const right = operation === op.ROTR ? count : most + 1 - count;
    rrra(sized(wide, a64.EXTR32, a64.EXTR64), d, a, a, right);
  }
}

/** d = a shifted by b, modulo the width */
export function shift(operation: i32, wide: i32, d: i32, a: i32, b: i32): void {
  switch (operation) {
    case op.SHL:
      rrr(sized(wide, a64.LSLV32, a64.LSLV64), d, a, b);
      return;
    case op.SHR_S:
      rrr(sized(wide, a64.ASRV32, a64.ASRV64), d, a, b);
      return;
    case op.SHR_U:
      rrr(sized(wide, a64.LSRV32, a64.LSRV64), d, a, b);
      return;
    case op.ROTL:
      rrr(sized(wide, a64.SUB32, a64.SUB64), X17, ZERO, b);
      rrr(sized(wide, a64.RORV32, a64.RORV64), d, a, X17);
      return;
  }
  rrr(sized(wide, a64.RORV32, a64.RORV64), d, a, b);
}

/**
 * Computes the quotient or remainder of a and b and returns its register, one of divisionRegisters(). These may hold no
 * values but a and b.
 */
export function divide(operation: i32, wide: i32, a: i32, b: i32, position: i32): i32 {
  compareImmediate(wide, b, 0);
  trapIf(cond.EQ, TRAP_INTEGER_DIVIDE_BY_ZERO, position);
  if (operation === op.DIV_S) {
    // Overflow: b is −1, and subtracting 1 from a overflows.
    compareImmediate(wide, b, -1);
    rrr(sized(wide, a64.CCMP_I32, a64.CCMP_I64), 0, a, 1);
    trapIf(cond.OVERFLOW, TRAP_INTEGER_OVERFLOW, position);
  }
  const isSigned = operation === op.DIV_S || operation === op.REM_S;
  const form = isSigned ? sized(wide, a64.SDIV32, a64.SDIV64) : sized(wide, a64.UDIV32, a64.UDIV64);
  if (operation === op.DIV_S || operation === op.DIV_U) rrr(form, X0, a, b);
  else {
    rrr(form, X17, a, b);
    rrra(sized(wide, a64.MSUB32, a64.MSUB64), X0, X17, b, a);
  }
  return X0;
}

/** The 128-bit sum or difference: (low, high) = (low, high) op (b, c) */
export function wideSum(operation: i32, low: i32, high: i32, b: i32, c: i32): void {
  rrr(operation === op.ADD ? a64.ADDS64 : a64.SUBS64, low, low, b);
  rrr(operation === op.ADD ? a64.ADC64 : a64.SBC64, high, high, c);
}

/** The registers of the two halves of wideProduct. */
export const PRODUCT_LOW: i32 = X0;
export const PRODUCT_HIGH: i32 = X1;

/** The product of a and b, in PRODUCT_LOW and PRODUCT_HIGH; no value but a and b may be in those. */
export function wideProduct(isSigned: i32, a: i32, b: i32): void {
  rrra(a64.MADD64, X17, a, b, ZERO);
  rrr(isSigned !== 0 ? a64.SMULH : a64.UMULH, X1, a, b);
  move(1, X0, X17);
}

/** d = op a */
export function unary(operation: i32, wide: i32, d: i32, a: i32): void {
  switch (operation) {
    case op.CLZ:
      rrr(sized(wide, a64.CLZ32, a64.CLZ64), d, a, 0);
      return;
    case op.CTZ:
      rrr(sized(wide, a64.RBIT32, a64.RBIT64), d, a, 0);
      rrr(sized(wide, a64.CLZ32, a64.CLZ64), d, d, 0);
      return;
    case op.POPCNT:
      rrr(sized(wide, a64.FMOV_SW, a64.FMOV_DX), V31, a, 0);
      rrr(a64.CNT_8B, V31, V31, 0);
      rrr(a64.ADDV_8B, V31, V31, 0);
      rrr(a64.FMOV_WS, d, V31, 0);
      return;
    case op.EXTEND8:
      enc.bits(sized(wide, a64.SBFM32, a64.SBFM64), d, a, 0, 7);
      return;
    case op.EXTEND16:
      enc.bits(sized(wide, a64.SBFM32, a64.SBFM64), d, a, 0, 15);
      return;
    case op.EXTEND32:
      enc.bits(a64.SBFM64, d, a, 0, 31);
      return;
  }
  if (operation === op.WRAP) rrr(a64.ORR32, d, ZERO, a);
  else move(0, d, a);
}

// Comparisons set the flags.

export function compare(wide: i32, a: i32, b: i32): void {
  rrr(sized(wide, a64.SUBS32, a64.SUBS64), ZERO, a, b);
}

export function compareImmediate(wide: i32, a: i32, immediate: i32): void {
  if (enc.isArithmetic(immediate)) {
    rri(sized(wide, a64.SUBS_I32, a64.SUBS_I64), ZERO, a, enc.arithmeticField(immediate));
  } else if (immediate < 0 && enc.isArithmetic(-immediate)) {
    rri(sized(wide, a64.ADDS_I32, a64.ADDS_I64), ZERO, a, enc.arithmeticField(-immediate));
  } else {
    constant(X17, immediate, immediate >> 31, wide);
    compare(wide, a, X17);
  }
}

export function compareHome(wide: i32, a: i32, home: i32): void {
  loadHome(wide === 0 ? I32 : WIDE, X17, home);
  compare(wide, a, X17);
}

/** Compares the bits of `a` that are in `mask`, a run of ones, with 0. */
export function compareBits(a: i32, mask: i32): void {
  rri(a64.ANDS_I32, ZERO, a, enc.logicalImmediate(mask, mask));
}

export function compareFloats(double: i32, a: i32, b: i32): void {
  rrr(double === 1 ? a64.FCMP_D : a64.FCMP_S, 0, a, b);
}

const VS: i32 = 6;

/** The processor's encoding of a condition. */
function hardware(condition: i32): i32 {
  switch (condition) {
    case cond.EQ:
    case cond.FEQ:
      return 0;
    case cond.NE:
    case cond.FNE:
      return 1;
    case cond.GE_U:
      return 2;
    case cond.LT_U:
      return 3;
    case cond.OVERFLOW:
      return VS;
    case cond.NO_OVERFLOW:
      return 7;
    case cond.GT_U:
      return 8;
    case cond.LE_U:
      return 9;
    case cond.GE_S:
    case cond.FGE:
      return 10;
    case cond.LT_S:
    case cond.NOT_FGE:
      return 11;
    case cond.GT_S:
    case cond.FGT:
      return 12;
  }
  return 13;
}

/** d = 1 if the condition holds, else 0 */
export function setCondition(condition: i32, d: i32): void {
  rrc(a64.CSINC32, d, ZERO, ZERO, hardware(condition) ^ 1);
}

/** d = d if the condition holds, else s; general registers */
export function moveUnless(condition: i32, wide: i32, d: i32, s: i32): void {
  rrc(sized(wide, a64.CSEL32, a64.CSEL64), d, d, s, hardware(condition));
}

/** d = d if the condition holds, else s; vector registers */
export function moveVectorUnless(condition: i32, d: i32, s: i32): void {
  const keep = shortBranch(condition);
  move(1, d, s);
  bindShort(keep);
}

// Branches within the body. The address of a branch's word identifies it.

/** Maximum size in bytes of a body whose code is certain to fit the reach of conditional branches and literal loads. */
const NEAR_BODY: i32 = 1 << 14;
export let isFar: boolean = false;

function branchOn(condition: i32): i32 {
  if (isFar) {
    emit32(a64.BCOND | (2 << 5) | (condition ^ 1));
    return jump();
  }
  emit32(a64.BCOND | condition);
  return code.at - 4;
}

/** Bytes of `jump`. */
export const JUMP_BYTES: i32 = 4;

export function jump(): i32 {
  emit32(a64.B);
  return code.at - 4;
}

/** Jumps if the condition holds. */
export function jumpIf(condition: i32): i32 {
  return branchOn(hardware(condition));
}

/** Returns whether a condition needs two branches. */
export function takesTwoBranches(_condition: i32): boolean {
  return false;
}

/** Jumps if the floats compared last are unordered. */
export function jumpIfUnordered(): i32 {
  return branchOn(VS);
}

/** Branches over a few instructions; returns the argument of bindShort. */
export function shortBranch(condition: i32): i32 {
  emit32(a64.BCOND | hardware(condition));
  return code.at - 4;
}

/** The short branch that is taken if the floats compared last are unordered. */
export function shortUnordered(): i32 {
  emit32(a64.BCOND | VS);
  return code.at - 4;
}

/** Binds a short branch here. */
export function bindShort(branch: i32): void {
  enc.patchBranch(branch, code.at);
}

/** Jumps to the `index`-th of the jumps (`jump`) that follow. */
export function jumpAmong(index: i32): void {
  // adr x17, table: three instructions ahead
  emit32(a64.ADR | X17 | (3 << 5));
  rrra(a64.ADD64, X17, X17, index, 2);
  rrr(a64.BR, 0, X17, 0);
}

// Floats.

function precise(double: i32, single: i32, other: i32): i32 {
  return double === 1 ? other : single;
}

function floatOp(operation: i32, double: i32): i32 {
  switch (operation) {
    case op.FADD:
      return precise(double, a64.FADD_S, a64.FADD_D);
    case op.FSUB:
      return precise(double, a64.FSUB_S, a64.FSUB_D);
    case op.FMUL:
      return precise(double, a64.FMUL_S, a64.FMUL_D);
    case op.FDIV:
      return precise(double, a64.FDIV_S, a64.FDIV_D);
    case op.FMIN:
      return precise(double, a64.FMIN_S, a64.FMIN_D);
  }
  return precise(double, a64.FMAX_S, a64.FMAX_D);
}

/** d = a op b */
export function floatBinary(operation: i32, double: i32, d: i32, a: i32, b: i32): void {
  if (operation !== op.FCOPYSIGN) {
    rrr(floatOp(operation, double), d, a, b);
    return;
  }
  // −0 is the sign bit.
  zeroVector(V31);
  rrr(precise(double, a64.FNEG_S, a64.FNEG_D), V31, V31, 0);
  rrr(a64.BSL_16B, V31, b, a);
  move(1, d, V31);
}

/** d = a op the float at `home`, for the four basic operations */
export function floatBinaryHome(operation: i32, double: i32, d: i32, a: i32, home: i32): void {
  loadHome(double === 1 ? F64 : F32, V31, home);
  rrr(floatOp(operation, double), d, a, V31);
}

function floatUnaryOp(operation: i32, double: i32): i32 {
  switch (operation) {
    case op.FABS:
      return precise(double, a64.FABS_S, a64.FABS_D);
    case op.FNEG:
      return precise(double, a64.FNEG_S, a64.FNEG_D);
    case op.FSQRT:
      return precise(double, a64.FSQRT_S, a64.FSQRT_D);
    case op.FCEIL:
      return precise(double, a64.FRINTP_S, a64.FRINTP_D);
    case op.FFLOOR:
      return precise(double, a64.FRINTM_S, a64.FRINTM_D);
    case op.FTRUNC:
      return precise(double, a64.FRINTZ_S, a64.FRINTZ_D);
  }
  return precise(double, a64.FRINTN_S, a64.FRINTN_D);
}

/** d = op a */
export function floatUnary(operation: i32, double: i32, d: i32, a: i32): void {
  rrr(floatUnaryOp(operation, double), d, a, 0);
}

/** d = a, a float of the other width. */
export function convertFloat(toDouble: i32, d: i32, a: i32): void {
  rrr(toDouble === 1 ? a64.FCVT_DS : a64.FCVT_SD, d, a, 0);
}

/** d = the bits of a, which is in the other bank. */
export function reinterpret(wide: i32, d: i32, a: i32): void {
  if (d < 32) rrr(sized(wide, a64.FMOV_WS, a64.FMOV_XD), d, a, 0);
  else rrr(sized(wide, a64.FMOV_SW, a64.FMOV_DX), d, a, 0);
}

/** d = integer a as a float */
export function convertInteger(isSigned: i32, wide: i32, double: i32, d: i32, a: i32): void {
  const single = isSigned === 1 ? sized(wide, a64.SCVTF32_S, a64.SCVTF64_S) : sized(wide, a64.UCVTF32_S, a64.UCVTF64_S);
  const other = isSigned === 1 ? sized(wide, a64.SCVTF32_D, a64.SCVTF64_D) : sized(wide, a64.UCVTF32_D, a64.UCVTF64_D);
  rrr(precise(double, single, other), d, a, 0);
}

/** d = float a truncated to an integer, saturated to its range; 0 for NaN */
export function truncateSaturating(isSigned: i32, wide: i32, double: i32, d: i32, a: i32): void {
  const single = isSigned === 1
    ? sized(wide, a64.FCVTZS32_S, a64.FCVTZS64_S)
    : sized(wide, a64.FCVTZU32_S, a64.FCVTZU64_S);
  const other = isSigned === 1
    ? sized(wide, a64.FCVTZS32_D, a64.FCVTZS64_D)
    : sized(wide, a64.FCVTZU32_D, a64.FCVTZU64_D);
  rrr(precise(double, single, other), d, a, 0);
}

/** Compares float a with a constant: the double with words `high` and `low`, or the single `single`. Changes x16. */
function compareWith(double: i32, a: i32, single: i32, high: i32, low: i32): void {
  if (double === 1) floatConstant(V31, low, high, 1);
  else floatConstant(V31, single, 0, 0);
  compareFloats(double, a, V31);
}

/** −1 as a float and a double, and −2^31 − 1 as a double. */
const MINUS_ONE_F32: i32 = -0x40800000;
const MINUS_ONE_F64_HIGH: i32 = -0x40100000;
const BELOW_I32_HIGH: i32 = -0x3e200000;
const BELOW_I32_LOW: i32 = 0x200000;

/** d = float a truncated to an integer; traps if a is a NaN or the result is out of range. Changes x16. */
export function truncate(isSigned: i32, wide: i32, double: i32, d: i32, a: i32, position: i32): void {
  compareFloats(double, a, a);
  queueTrap(branchOn(VS), TRAP_INVALID_CONVERSION, position);
  // 2^31, 2^32, 2^63 or 2^64 is the smallest float that is too large.
  const bits = (wide === 0 ? 31 : 63) + (isSigned === 1 ? 0 : 1);
  compareWith(double, a, (127 + bits) << 23, (1023 + bits) << 20, 0);
  trapIf(cond.FGE, TRAP_INTEGER_OVERFLOW, position);
  if (isSigned === 0) {
    compareWith(double, a, MINUS_ONE_F32, MINUS_ONE_F64_HIGH, 0);
    trapIf(cond.NOT_FGT, TRAP_INTEGER_OVERFLOW, position);
  } else if (wide === 0 && double === 1) {
    compareWith(1, a, 0, BELOW_I32_HIGH, BELOW_I32_LOW);
    trapIf(cond.NOT_FGT, TRAP_INTEGER_OVERFLOW, position);
  } else {
    const sign: i32 = 1 << 31;
    compareWith(double, a, sign | ((127 + bits) << 23), sign | ((1023 + bits) << 20), 0);
    trapIf(cond.NOT_FGE, TRAP_INTEGER_OVERFLOW, position);
  }
  truncateSaturating(isSigned, wide, double, d, a);
}

/** Traps with `trap` if the condition holds. */
export function trapIf(condition: i32, trap: i32, position: i32): void {
  queueTrap(jumpIf(condition), trap, position);
}

// Memory 0, with its base in x26 and, with explicit bounds, its length in x27.

/** d = a + (low, high); a is not x17 */
function addWide(d: i32, a: i32, low: i32, high: i32): void {
  if (high === 0 && low >= 0 && low < IMM24_END) {
    enc.addConstant(d, a, low);
    return;
  }
  constant(X17, low, high, 1);
  rrr(a64.ADD64, d, a, X17);
}

/**
 * x16 = the end of an access of `width` bytes at address + (low, high), for the comparison with the length that
 * follows; traps if the sum of 64-bit addresses exceeds 2^64.
 */
export function reachEnd(address: i32, low: i32, high: i32, width: i32, is64: boolean, position: i32): void {
  const isSmall = high === 0 && low >= 0 && low <= MAX_I32 - width;
  if (isSmall && !is64) {
    addWide(X16, address, low + width, 0);
    return;
  }
  if (isSmall) constant(X16, low + width, 0, 0);
  else {
    constant(X16, low, high, 1);
    rri(a64.ADDS_I64, X16, X16, width);
    if (is64 && high === -1) trapIf(cond.GE_U, TRAP_MEMORY_OUT_OF_BOUNDS, position);
  }
  rrr(a64.ADDS64, X16, X16, address);
  if (is64) trapIf(cond.GE_U, TRAP_MEMORY_OUT_OF_BOUNDS, position);
}

/**
 * d = address + (low, high), and x16 the last byte of an access of `width` bytes there, for the comparison with the
 * length that follows; traps if a sum of 64-bit addresses exceeds 2^64.
 */
export function reachLast(d: i32, address: i32, low: i32, high: i32, width: i32, is64: boolean, position: i32): void {
  if (!is64 || (low === 0 && high === 0)) addWide(d, address, low, high);
  else {
    constant(X16, low, high, 1);
    rrr(a64.ADDS64, d, X16, address);
    trapIf(cond.GE_U, TRAP_MEMORY_OUT_OF_BOUNDS, position);
  }
  rri(is64 ? a64.ADDS_I64 : a64.ADD_I64, X16, d, width - 1);
  if (is64) trapIf(cond.GE_U, TRAP_MEMORY_OUT_OF_BOUNDS, position);
}

/**
 * The scratch register becomes the index if the last compare found it below its limit, else 0: no branch decides it,
 * and the barrier keeps the processor from predicting it. maskAddress changes register `d` alike, an index or
 * an address.
 */
export function maskIndex(index: i32, wide: i32): void {
  rrc(sized(wide, a64.CSEL32, a64.CSEL64), X16, index, ZERO, hardware(cond.LT_U));
  emit32(a64.CSDB);
}

export function maskAddress(d: i32): void {
  rrc(a64.CSEL64, d, d, ZERO, hardware(cond.LT_U));
  emit32(a64.CSDB);
}

/**
 * Compares x16 with the length of memory 0 in its register; compareContextLength with the length at `offset` in the
 * context.
 */
export function compareLength(): void {
  compare(1, X16, MEMORY_LENGTH);
}

export function compareContextLength(offset: i32): void {
  compareContext(1, X16, offset);
}

/**
 * Out of line, when the end of an access, in x16, exceeds a shared memory's length in the context: stores the current
 * length to the context, compares, and branches on `inside`: the access is in bounds. Returns that branch. `isPinned`:
 * x27 holds the length, too. `length` and `pointer` are offsets in the context. Changes x24.
 */
export function refreshLength(length: i32, pointer: i32, isPinned: boolean, inside: i32): i32 {
  loadContext(WIDE, X24, pointer);
  loadFrom(WIDE, X24, X24, 0);
  storeContext(WIDE, X24, length);
  if (isPinned) move(1, MEMORY_LENGTH, X24);
  compare(1, X16, X24);
  return jumpIf(inside);
}

/** Traps unless start + count ≤ length. Operands are 64 bits wide and below 2^32 unless `is64`. Changes x16. */
export function checkRange(start: i32, count: i32, length: i32, is64: boolean, position: i32): void {
  rrr(a64.ADDS64, X16, start, count);
  if (is64) trapIf(cond.GE_U, TRAP_MEMORY_OUT_OF_BOUNDS, position);
  compare(1, X16, length);
  trapIf(cond.GT_U, TRAP_MEMORY_OUT_OF_BOUNDS, position);
}

/** Traps if (address + offset) & mask is not 0; `offset` is at most 7. Changes x16. */
export function checkAlignment(address: i32, offset: i32, mask: i32, position: i32): void {
  rri(a64.ADD_I32, X16, address, offset);
  compareBits(X16, mask);
  trapIf(cond.NE, TRAP_UNALIGNED_ATOMIC, position);
}

/** d = d + the constant, 64 bits */
export function addOffset(d: i32, low: i32, high: i32): void {
  if (low === 0 && high === 0) return;
  constant(X17, low, high, 1);
  rrr(a64.ADD64, d, d, X17);
}

/** d = d + the 64 bits in the context at `offset` */
export function addContext(d: i32, offset: i32): void {
  loadContext(WIDE, X17, offset);
  rrr(a64.ADD64, d, d, X17);
}

/** d = its low 32 bits */
export function zeroExtend(d: i32): void {
  rrr(a64.ORR32, d, ZERO, d);
}

/** The memory operand of the next access: base, and an index register or, if that is −1, an offset that fits. */
let accessBase: i32 = MEMORY_BASE;
let accessIndex: i32 = 0;
let accessOffset: i32 = 0;

const NO_INDEX: i32 = -1;
/** The maximum offset that all forms of access can encode. */
const MAX_OFFSET: i32 = 255;

function prepare(base: i32, index: i32, offset: i32): void {
  accessBase = base;
  accessIndex = index;
  accessOffset = offset;
}

/** Prepares an access at base + offset. x16 may become part of the operand. */
export function prepareField(base: i32, offset: i32): void {
  if (offset <= MAX_OFFSET) {
    prepare(base, NO_INDEX, offset);
    return;
  }
  enc.addConstant(X16, base, offset);
  prepare(X16, NO_INDEX, 0);
}

/** Prepares an access at base + (index << shift) + offset; x16 becomes part of the operand. */
export function prepareElement(base: i32, index: i32, shift: i32, offset: i32): void {
  rrra(a64.ADD64, X16, base, index, shift);
  prepare(X16, NO_INDEX, offset);
}

/** Prepares an access of memory 0 at address + (low, high). x16 may become part of the operand. */
export function prepareAccess(address: i32, low: i32, high: i32): void {
  if (low === 0 && high === 0) {
    prepare(MEMORY_BASE, address, 0);
    return;
  }
  addWide(X16, address, low, high);
  prepare(MEMORY_BASE, X16, 0);
}

/**
 * Prepares an access at address + (low, high) in the memory whose base is at offset `base` in the context; x16 becomes
 * part of the operand.
 */
export function prepareFarAccess(address: i32, low: i32, high: i32, base: i32): void {
  addWide(X16, address, low, high);
  addContext(X16, base);
  prepare(X16, NO_INDEX, 0);
}

/** Loads the address of the prepared operand into x16: atomic accesses have no other form. */
export function prepareAtomic(): void {
  if (accessIndex !== NO_INDEX) rrr(a64.ADD64, X16, accessBase, accessIndex);
  else move(1, X16, accessBase);
  prepare(X16, NO_INDEX, 0);
}

/** op t, the prepared operand, which has 1 << scale bytes */
export function onOperand(op: i32, scale: i32, t: i32): void {
  if (accessIndex !== NO_INDEX) enc.accessIndexed(op, t, accessBase, accessIndex, 0);
  else enc.access(op, scale, t, accessBase, accessOffset);
}

/** d = 2^width bytes at the prepared operand, as `type` */
export function loadMemory(width: i32, isSigned: i32, type: i32, d: i32): void {
  if (bankOf(type) === 1) {
    onOperand(loadOp(type), scaleOf(type), d);
    return;
  }
  const toWide = type !== I32;
  switch (width) {
    case 0:
      onOperand(isSigned === 0 ? a64.LDRB_U : toWide ? a64.LDRSB_X_U : a64.LDRSB_W_U, 0, d);
      return;
    case 1:
      onOperand(isSigned === 0 ? a64.LDRH_U : toWide ? a64.LDRSH_X_U : a64.LDRSH_W_U, 1, d);
      return;
    case 2:
      onOperand(isSigned !== 0 && toWide ? a64.LDRSW_U : a64.LDR_W_U, 2, d);
      return;
  }
  onOperand(a64.LDR_X_U, 3, d);
}

function storeBytes(width: i32, s: i32): void {
  if (width === 0) onOperand(a64.STRB_U, 0, s);
  else if (width === 1) onOperand(a64.STRH_U, 1, s);
  else if (width === 2) onOperand(a64.STR_W_U, 2, s);
  else onOperand(a64.STR_X_U, 3, s);
}

/** Stores the lowest 2^width bytes of s, of `type`, to the prepared operand. */
export function storeMemory(width: i32, type: i32, s: i32): void {
  if (bankOf(type) === 1) onOperand(storeOp(type), scaleOf(type), s);
  else storeBytes(width, s);
}

/** Loads a constant other than 0 into x29 for storeMemoryConstant; one of 8 bytes is sign-extended. */
export function takeConstant(width: i32, value: i32): void {
  if (value !== 0) constant(X29, value, value >> 31, width === 3 ? 1 : 0);
}

/** Stores the constant of takeConstant, in x29 unless it is 0, to the prepared operand. */
export function storeMemoryConstant(width: i32, value: i32): void {
  storeBytes(width, value === 0 ? ZERO : X29);
}

// Fuel. Modules that charge it keep it in x25.

/**
 * Subtracts a price that patchPrice fills in; returns the address of its words. The flags compare the fuel before it
 * with the price, signed. Changes x16.
 */
export function charge(): i32 {
  const at = code.at;
  emit32(a64.MOVZ32 | X16);
  emit32(a64.MOVK32 | (1 << 21) | X16);
  chargeScratch();
  return at;
}

/** Writes the price of the charge at `at`. */
export function patchPrice(at: i32, price: i32): void {
  code.patch32(at, a64.MOVZ32 | X16 | ((price & HALF_WORD) << 5));
  code.patch32(at + 4, a64.MOVK32 | (1 << 21) | X16 | (((price >> 16) & HALF_WORD) << 5));
}

/** Subtracts the units in x16, with flags as for charge. */
export function chargeScratch(): void {
  rrr(a64.SUBS64, FUEL, FUEL, X16);
}

/** Refunds a charge: `price` units, or −1 for the units in x16. */
export function giveFuelBack(price: i32): void {
  if (price < 0) rrr(a64.ADD64, FUEL, FUEL, X16);
  else addWide(FUEL, FUEL, price, 0);
}

function hasFuel(): boolean {
  return (load32(H_MODE) & MODE_FUEL) !== 0;
}

/**
 * Before a call into another instance: metered code stores its fuel to the thread state; other code loads the fuel
 * register for a callee that may be metered. Changes x16.
 */
function handFuelOver(): void {
  loadContext(WIDE, X16, CONTEXT_THREAD);
  if (hasFuel()) storeTo(WIDE, FUEL, X16, THREAD_FUEL);
  else loadFrom(WIDE, FUEL, X16, THREAD_FUEL);
}

/**
 * After such a call, with the callee's context still in x28: a metered callee leaves the fuel in the register, any
 * other in the thread state. Moves it if this code keeps it in the other place. Changes x16.
 */
function takeFuelBack(): void {
  loadContext(I32, X16, CONTEXT_METERED);
  compareImmediate(0, X16, 0);
  const done = shortBranch(hasFuel() ? cond.NE : cond.EQ);
  loadContext(WIDE, X16, CONTEXT_THREAD);
  if (hasFuel()) loadFrom(WIDE, FUEL, X16, THREAD_FUEL);
  else storeTo(WIDE, FUEL, X16, THREAD_FUEL);
  bindShort(done);
}

// Determinism.

/** d = d, or the positive canonical NaN if it is a NaN; changes x16 */
export function canonicalize(double: i32, d: i32): void {
  compareFloats(double, d, d);
  const isNumber = shortBranch(cond.NO_OVERFLOW);
  floatConstant(d, double === 1 ? 0 : CANONICAL_F32, double === 1 ? CANONICAL_F64_HIGH : 0, double);
  bindShort(isNumber);
}

/** d = 32 bits of the thread state at `offset`; storeThread stores them. Both change x16. */
export function loadThread(d: i32, offset: i32): void {
  loadContext(WIDE, X16, CONTEXT_THREAD);
  loadFrom(I32, d, X16, offset);
}

export function storeThread(s: i32, offset: i32): void {
  loadContext(WIDE, X16, CONTEXT_THREAD);
  storeTo(I32, s, X16, offset);
}

// Atomic operations on the prepared operand, whose address is in x16: loops around an exclusive load, the only
// instruction that may fault, and an exclusive store. x29 is the old value, x24 the new one, x17 the store's outcome.

/** The register that compare-and-exchange uses. */
export const EXCHANGE_REGISTER: i32 = X0;

function loadExclusive(width: i32, d: i32): i32 {
  rrr(a64.LDAXR_B | (width << 30), d, X16, 0);
  return code.at - 4;
}

function storeExclusive(width: i32, s: i32, again: i32): void {
  rrr(a64.STLXR_B | (width << 30), s, X16, X17);
  emit32(a64.CBNZ32 | X17);
  enc.patchBranch(code.at - 4, again);
}

export function loadAtomic(width: i32, _type: i32, d: i32): void {
  rrr(a64.LDAR_B | (width << 30), d, X16, 0);
}

/** Exchanges `s` with the prepared operand. */
export function exchangeMemory(width: i32, s: i32): void {
  storeExclusive(width, s, loadExclusive(width, X29));
  move(1, s, X29);
}

/** Adds `s` to the prepared operand; s = the previous value */
export function addMemory(width: i32, s: i32): void {
  const again = loadExclusive(width, X29);
  rrr(a64.ADD64, X24, X29, s);
  storeExclusive(width, X24, again);
  move(1, s, X29);
}

/**
 * Stores `s` if the exchange register equals the value in memory; otherwise loads that value into the exchange
 * register.
 */
export function compareExchange(width: i32, s: i32): void {
  const again = loadExclusive(width, X29);
  // The low bytes of the expected value, zero-extended (uxtb, uxth).
  if (width < 2) rrr(a64.SUBS_E32 | (width << 13), ZERO, X29, X0);
  else compare(width === 3 ? 1 : 0, X29, X0);
  const differs = shortBranch(cond.NE);
  storeExclusive(width, s, again);
  bindShort(differs);
  move(1, X0, X29);
}

/** operand = operand op s; the exchange register receives the previous value */
export function modifyMemory(operation: i32, width: i32, s: i32, _temporary: i32): void {
  const again = loadExclusive(width, X0);
  binary(operation, 1, X24, X0, s);
  storeExclusive(width, X24, again);
}

/** d = its lowest 2^width bytes */
export function zeroExtendWidth(width: i32, d: i32): void {
  if (width < 2) enc.bits(a64.UBFM32, d, d, 0, width === 0 ? 7 : 15);
}

export function negate(wide: i32, d: i32): void {
  rrr(sized(wide, a64.SUB32, a64.SUB64), d, ZERO, d);
}

/** Orders all accesses before and after. */
export function fence(): void {
  emit32(a64.DMB_ISH);
}

/** Tells the processor that the code spins. */
export function pause(): void {
  emit32(a64.YIELD);
}

// Tail calls.

/** Jumps to defined function `index`. */
export function jumpToFunction(index: i32): void {
  relative(a64.B, RELOC_FUNCTION, index);
}

/** Jumps to the code of the record in the record register, which runs in the current context; changes x16. */
export function jumpToRecord(): void {
  loadFrom(WIDE, X16, X15, RECORD_CODE);
  rrr(a64.BR, 0, X16, 0);
}

/**
 * Jumps to a record of another instance after the frame has been released. This call needs a TAIL_FRAME
 * (abi/context_layout.ts), which restores the caller's context, unless the return address is already that of such a
 * frame. Changes x16.
 */
export function jumpToCrossRecord(): void {
  handFuelOver();
  loadContext(WIDE, X16, CONTEXT_TAIL_RETURN);
  compare(1, LINK, X16);
  const there = shortBranch(cond.EQ);
  enc.pair(a64.STP_PRE, CONTEXT, LINK, SP, -2);
  move(1, LINK, X16);
  bindShort(there);
  loadFrom(WIDE, CONTEXT, X15, RECORD_CONTEXT);
  reloadMemory(true);
  jumpToRecord();
}

// Frames and calls.

/** Addresses in the prologue: of the stack check (0: none), its branch, and the instructions that take the frame. */
let checkAt: i32 = 0;
let checkBranchAt: i32 = 0;
let frameAt: i32 = 0;

/** Begins a function, whose frame size is not known yet. */
export function prologue(): void {
  isFar = end - pos > NEAR_BODY;
  checkAt = 0;
  if ((load32(H_MODE) & MODE_STACK_FENCE) !== 0) {
    checkAt = code.at;
    emit32(a64.NOP);
    emit32(a64.NOP);
    loadContext(WIDE, X16, CONTEXT_STACK_LIMIT);
    compare(1, X17, X16);
    checkBranchAt = jumpIf(cond.LE_U);
  }
  frameAt = code.at;
  takeReturnAddress();
  emit32(a64.NOP);
  emit32(a64.NOP);
}

/** Pushes 16 bytes with the return address in the upper word. */
function takeReturnAddress(): void {
  enc.pair(a64.STP_PRE, ZERO, LINK, SP, -2);
}

/** Writes d = n ± bytes to the two words at `at`; the first is a NOP if the second suffices. */
function patchSum(at: i32, op: i32, d: i32, n: i32, bytes: i32): void {
  const high = bytes >> 12;
  const fields = (d & 31) | (op | 0);
  code.patch32(at, high === 0 ? a64.NOP : fields | ((n & 31) << 5) | ((high | SHIFTED_12) << 10));
  code.patch32(at + 4, fields | ((high === 0 ? n & 31 : d & 31) << 5) | ((bytes & IMM12_MASK) << 10));
}

const PAGE: i32 = 4096;

/**
 * Ends a function: completes the frame size and emits the out-of-line parts of the prologue. Returns the address of the
 * first instruction: a small leaf skips the stack check and uses the slack below the limit.
 */
export function finishFrame(frame: i32, isLeaf: boolean): i32 {
  patchSum(frameAt + 4, a64.SUB_I64, SP, SP, frame - 16);
  if (isLeaf && frame <= STACK_SLACK >> 1) return frameAt;
  if (checkAt !== 0) {
    patchSum(checkAt, a64.SUB_I64, X17, SP, frame);
    enc.patchBranch(checkBranchAt, code.at);
    takeReturnAddress();
    callTrap(TRAP_STACK_EXHAUSTED);
    code.trapSite(TRAP_STACK_EXHAUSTED, 8, 0);
    return frame < PAGE ? checkAt + 4 : checkAt;
  }
  if (frame >= PAGE) touchPages(frame);
  return frameAt;
}

/**
 * Touches every page in descending order, so that the guard page faults before any address beyond it is reached.
 * Changes x16.
 */
function touchPages(frame: i32): void {
  code.patch32(frameAt, a64.B);
  enc.patchBranch(frameAt, code.at);
  for (let page: i32 = PAGE; page <= frame; page += PAGE) {
    code.reserveCode(64);
    enc.addConstant(X16, SP, -page);
    rri(a64.LDR_X_U, ZERO, X16, 0);
  }
  takeReturnAddress();
  enc.patchBranch(jump(), frameAt + 4);
}

/** Releases the frame, whose size is filled in later; returns the address of the words to fill in. */
export function dropFrame(): i32 {
  const at = code.at;
  emit32(a64.NOP);
  emit32(a64.NOP);
  enc.pair(a64.LDP_POST, ZERO, LINK, SP, 2);
  return at;
}

/** Writes the size of the frame for dropFrame. */
export function patchFrame(at: i32, frame: i32): void {
  patchSum(at, a64.ADD_I64, SP, SP, frame - 16);
}

export function returnToCaller(): void {
  rrr(a64.RET, 0, LINK, 0);
}

/** Makes the branch at `address` lead to a target `distance` bytes from it. Returns false if it is too far. */
export function link(address: i32, distance: i32): boolean {
  const REACH: i32 = 1 << 27;
  if (distance < -REACH || distance >= REACH) return false;
  code.patch32(address, (code.wordAt(address) & ~FIELD26) | ((distance >> 2) & FIELD26));
  return true;
}

function relative(op: i32, kind: i32, target: i32): void {
  emit32(op);
  code.relocation(kind, target);
}

/** Calls the stub of trap code `trap`. */
export function callTrap(trap: i32): void {
  relative(a64.BL, RELOC_STUB, STUB_TRAP + trap);
}

/** Calls defined function `index`. */
export function callFunction(index: i32): void {
  relative(a64.BL, RELOC_FUNCTION, index);
}

export function callNative(builtin: i32): void {
  relative(a64.BL, RELOC_STUB, STUB_BUILTIN + builtin);
}

/** x30 = the address two instructions ahead, after the jump that follows */
function returnBehindJump(): void {
  emit32(a64.ADR | LINK | (2 << 5));
}

/** Jumps to a routine that may park. The routine returns to the next instruction. */
export function callParking(builtin: i32): void {
  returnBehindJump();
  relative(a64.B, RELOC_STUB, STUB_BUILTIN + builtin);
}

/** Jumps like callParking to the code of the record in the record register; changes x16. */
export function callHostRecord(): void {
  loadFrom(WIDE, X16, X15, RECORD_CODE);
  returnBehindJump();
  rrr(a64.BR, 0, X16, 0);
}

/** Calls the code of the record in the record register, which runs in the current context; changes x16. */
export function callOwnRecord(): void {
  loadFrom(WIDE, X16, X15, RECORD_CODE);
  rrr(a64.BLR, 0, X16, 0);
}

/**
 * Compares the context of the record in the record register with the current one: EQ if they are the same. Faults for a
 * null record. Changes x16.
 */
export function compareRecordContext(): void {
  loadFrom(WIDE, X16, X15, RECORD_CONTEXT);
  compare(1, X16, CONTEXT);
}

/** Reloads the base of memory 0 from the context, and with `length` its length. */
function reloadMemory(length: boolean): void {
  loadContext(WIDE, MEMORY_BASE, CONTEXT_MEMORIES);
  if (length) loadContext(WIDE, MEMORY_LENGTH, CONTEXT_MEMORIES + MEMORY_LENGTH_FIELD);
}

/**
 * Calls the record in the record register in its context. The current context is saved above the return address.
 * Changes x16.
 */
export function callCrossRecord(): void {
  handFuelOver();
  enc.pair(a64.STP_PRE, CONTEXT, ZERO, SP, -2);
  loadFrom(WIDE, CONTEXT, X15, RECORD_CONTEXT);
  reloadMemory(true);
  callOwnRecord();
}

/** Bytes that callCrossRecord pushes. */
export const CROSS_CALL_BYTES: i32 = 16;
/** Bytes of those that an exception leaves on the stack. */
export const CROSS_LANDING_BYTES: i32 = 8;

/** Releases the CROSS_LANDING_BYTES. */
export function dropCrossLanding(): void {
  rri(a64.ADD_I64, SP, SP, CROSS_LANDING_BYTES);
}

/** Restores context, memory and fuel after callCrossRecord; preserves the result registers. Changes x16. */
export function restoreContext(): void {
  takeFuelBack();
  enc.pair(a64.LDP_POST, CONTEXT, ZERO, SP, 2);
  reloadMemory(isExplicit());
}

/**
 * Calls the routine that allocates an object: x16 contains its size in bytes, then its address. All other registers but
 * x17 and v31 are preserved.
 */
export function callAllocate(): void {
  relative(a64.BL, RELOC_STUB, STUB_ALLOCATE);
}

/** d = the address of the overflow buffer */
export function overflowBuffer(d: i32): void {
  loadContext(WIDE, d, CONTEXT_OVERFLOW);
}

/** Reads the poll page, whose distance from a word near the code is filled in when the code is placed. Changes x16. */
export function poll(position: i32): void {
  if (isFar) {
    emit32(a64.B | 2);
    pollDistance();
    // adr x16, the previous word
    emit32(a64.ADR | X16 | (((1 << 19) - 1) << 5));
  } else {
    emit32(a64.ADR | X16);
    queuePoll(code.at - 4);
  }
  loadAny(a64.LDRSW_U, 2, X17, X16, 0);
  rrr(a64.ADD64, X16, X16, X17);
  faultSite(TRAP_INTERRUPTED, position);
  // The distance is relative to the end of its word.
  loadAny(a64.LDR_W_U, 2, ZERO, X16, 4);
}

function loadAny(op: i32, scale: i32, d: i32, base: i32, offset: i32): void {
  enc.access(op, scale, d, base, offset);
}

/** Emits the word with the distance to the poll page. */
export function pollDistance(): void {
  relative(0, RELOC_POLL_PAGE, 0);
}

/** Reloads the length of memory 0 after a poll, at which the memory may have grown. */
export function afterPoll(): void {
  if (isExplicit()) loadContext(WIDE, MEMORY_LENGTH, CONTEXT_MEMORIES + MEMORY_LENGTH_FIELD);
}

/** Compares a general register with memory at base + offset. */
export function compareMemory(wide: i32, a: i32, base: i32, offset: i32): void {
  loadFrom(wide === 0 ? I32 : WIDE, X17, base, offset);
  compare(wide, a, X17);
}

/** Compares a register with the 32 or 64 bits at `offset` in the context. */
export function compareContext(wide: i32, a: i32, offset: i32): void {
  compareMemory(wide, a, CONTEXT, offset);
}

/** d = 8 bytes at base + 8 × index */
export function loadElement(d: i32, base: i32, index: i32): void {
  enc.accessIndexed(a64.LDR_X_U, d, base, index, 1);
}

export function storeElement(s: i32, base: i32, index: i32): void {
  enc.accessIndexed(a64.STR_X_U, s, base, index, 1);
}

/** Zeroes `count` homes from `home` on; changes x16. */
export function zeroHomes(home: i32, count: i32): void {
  enc.addConstant(X16, SP, home);
  constant(X17, count, 0, 0);
  const again = code.at;
  loadAny(a64.STR_X_U, 3, ZERO, X16, 0);
  rri(a64.ADD_I64, X16, X16, 8);
  rri(a64.SUBS_I64, X17, X17, 1);
  emit32(a64.BCOND | 1);
  enc.patchBranch(code.at - 4, again);
}
