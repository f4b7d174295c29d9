/**
 * The target machine x86-64: registers by role, and macro-instructions of one or a few instructions each. Nothing else
 * in the kernel depends on the processor; machine_arm64.ts has the same exports.
 *
 * Registers are numbered as in codegen/vcode.ts: 0-31 general, 32-63 vector. Conventions are those of
 * backend_x64/abi.ts. A macro-instruction changes its destination, the flags and the scratch registers (r11, xmm15),
 * and nothing else; those that preserve the flags say so. `home` is the offset in bytes of a home in the frame,
 * `position` the offset of the wasm instruction in the module. i32 values in registers are always zero-extended.
 */
import * as code from "./code.ts";
import { emit32, emit8 } from "./code.ts";
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
  RELOC_IMAGE,
  RELOC_POLL_PAGE,
  RELOC_STUB,
  SHARED_ABS32,
  SHARED_ABS64,
  SHARED_F32_2P63,
  SHARED_F32_M2P31,
  SHARED_F32_M2P63,
  SHARED_F64_2P63,
  SHARED_F64_M2P31_1,
  SHARED_F64_M2P63,
  SHARED_SIGN32,
  SHARED_SIGN64,
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
import {
  inOpcode,
  m,
  mi,
  NO_INDEX,
  OPERAND_16,
  plain,
  r,
  rb,
  ri,
  riLong,
  rip,
  rm,
  rmLong,
  rmx,
  rr,
  rrByte,
  vexShift,
} from "./encoding_x64.ts";
import * as x64 from "./instructions_x64.ts";
import { CPU_BMI1, CPU_BMI2, CPU_LZCNT, CPU_POPCNT, H_CONSTANTS, H_CPU, H_MODE } from "./layout.ts";
import { type i32, load32, trailingZeros } from "./memory.ts";
import * as op from "./operations.ts";
import { queueTrap } from "./fragments.ts";
import { bankOf, F32, F64, I32, I64, isWide, V128 } from "./types.ts";

export * from "./vectors_x64.ts";

const RAX: i32 = 0;
const RCX: i32 = 1;
const RDX: i32 = 2;
const RBX: i32 = 3;
const RSP: i32 = 4;
const RSI: i32 = 6;
const RDI: i32 = 7;
const R10: i32 = 10;
const R11: i32 = 11;
const R13: i32 = 13;
const R14: i32 = 14;
const R15: i32 = 15;
const XMM15: i32 = 47;
const MAX_I32: i32 = 0x7fffffff;

/** The register of a function record at a call through it. */
export const RECORD_REGISTER: i32 = R10;
/** The general scratch register: it holds no value between two macro-instructions, except where one says so. */
export const SCRATCH: i32 = R11;
export const NO_REGISTER: i32 = -1;
/** The type whose loads and stores move 64 bits. */
export const WIDE: i32 = I64;

/** The scratch register of `bank`. */
export function scratchOf(bank: i32): i32 {
  return bank === 0 ? R11 : XMM15;
}

const GENERAL_TEMPORARIES: i32 = (1 << RAX) | (1 << RCX) | (1 << RDX) | (1 << RSI) | (1 << RDI) | (1 << R10);

/** Registers of operands, as a mask: rax rcx rdx rsi rdi r10, or xmm0-7. */
export function temporaries(bank: i32): i32 {
  return bank === 0 ? GENERAL_TEMPORARIES : (1 << 8) - 1;
}

/** The register for the k-th pinned local of `bank`, or NO_REGISTER. */
export function pinnedRegister(bank: i32, k: i32): i32 {
  if (bank === 1) return k < 7 ? 40 + k : NO_REGISTER;
  switch (k) {
    case 0:
      return 5;
    case 1:
      return 8;
    case 2:
      return 9;
    case 3:
      return 12;
  }
  // r13 holds the fuel and r14 the length of memory 0 in some modes.
  const first = (load32(H_MODE) & MODE_FUEL) !== 0 ? NO_REGISTER : R13;
  const second = (load32(H_MODE) & MODE_EXPLICIT_BOUNDS) !== 0 ? NO_REGISTER : R14;
  if (k === 4) return first !== NO_REGISTER ? first : second;
  if (k === 5 && first !== NO_REGISTER) return second;
  return NO_REGISTER;
}

/** The register of parameter number `k` of its bank, or NO_REGISTER for the overflow buffer. */
export function parameterRegister(bank: i32, k: i32): i32 {
  if (bank === 1) return k < 8 ? 32 + k : NO_REGISTER;
  switch (k) {
    case 0:
      return RAX;
    case 1:
      return RCX;
    case 2:
      return RDX;
    case 3:
      return 6;
    case 4:
      return 7;
    case 5:
      return 8;
    case 6:
      return 9;
  }
  return NO_REGISTER;
}

/** The register of result number `k` of its bank, or NO_REGISTER for the overflow buffer. */
export function resultRegister(bank: i32, k: i32): i32 {
  if (k > 1) return NO_REGISTER;
  return bank === 1 ? 32 + k : k;
}

/** Registers that a division or wide product uses besides its operands, as a mask. */
export function divisionRegisters(): i32 {
  return (1 << RAX) | (1 << RDX);
}

// Frames and sites.

/** The size in bytes of a frame whose homes take `bytes`, the return address excluded. */
export function frameSize(bytes: i32): i32 {
  return bytes;
}

/** The distance in bytes from rsp to the return address in a frame of `size` bytes. */
export function returnDistance(size: i32): i32 {
  return size;
}

/** Records that the next instruction may fault with `trap`. */
export function faultSite(trap: i32, position: i32): void {
  code.trapSite(trap, 0, position);
}

/** Whether an operation can take the constant as an immediate. */
export function fitsImmediate(low: i32, high: i32, wide: i32): boolean {
  return wide === 0 || high === low >> 31;
}

// Moves. They preserve the flags.

export function move(wide: i32, d: i32, s: i32): void {
  if (d === s) return;
  if (d < 32) rr(x64.MOV_L, wide, d, s);
  else rr(x64.MOVAPS, 0, d, s);
}

function loadOpcode(type: i32): i32 {
  if (type === F32) return x64.MOVSS_L;
  if (type === F64) return x64.MOVSD_L;
  return type === V128 ? x64.MOVUPS_L : x64.MOV_L;
}

function storeOpcode(type: i32): i32 {
  if (type === F32) return x64.MOVSS_S;
  if (type === F64) return x64.MOVSD_S;
  return type === V128 ? x64.MOVUPS_S : x64.MOV_S;
}

function generalWide(type: i32): i32 {
  return bankOf(type) === 1 ? 0 : isWide(type);
}

/** d = value of `type` at base + offset. */
export function loadFrom(type: i32, d: i32, base: i32, offset: i32): void {
  rm(loadOpcode(type), generalWide(type), d, base, offset);
}

export function storeTo(type: i32, s: i32, base: i32, offset: i32): void {
  rm(storeOpcode(type), generalWide(type), s, base, offset);
}

export function loadHome(type: i32, d: i32, home: i32): void {
  loadFrom(type, d, RSP, home);
}

export function storeHome(type: i32, s: i32, home: i32): void {
  storeTo(type, s, RSP, home);
}

/** Loads from, or stores to, the VM context. */
export function loadContext(type: i32, d: i32, offset: i32): void {
  loadFrom(type, d, R15, offset);
}

export function storeContext(type: i32, s: i32, offset: i32): void {
  storeTo(type, s, R15, offset);
}

/** d = address of `offset` in the VM context. */
export function contextAddress(d: i32, offset: i32): void {
  rm(x64.LEA, 1, d, R15, offset);
}

/** d = constant, in a general register. */
export function constant(d: i32, low: i32, high: i32, wide: i32): void {
  if (wide === 0 || high === 0) {
    inOpcode(x64.MOV32_I, 0, d);
    emit32(low);
  } else if (high === low >> 31) {
    riLong(x64.MOV_SI, 1, d, low);
  } else {
    inOpcode(x64.MOVABS, 1, d);
    emit32(low);
    emit32(high);
  }
}

/** d = the float with these bits. */
export function floatConstant(d: i32, low: i32, high: i32, double: i32): void {
  if (low === 0 && high === 0) {
    rr(x64.XORPS, 0, d, d);
    return;
  }
  constant(R11, low, high, double);
  rr(x64.MOVD_X, double, d, R11);
}

export function zeroVector(d: i32): void {
  rr(x64.XORPS, 0, d, d);
}

/** home = constant of a general type or float. */
export function storeConstant(wide: i32, low: i32, high: i32, home: i32): void {
  const short = wide === 0 || high === low >> 31;
  m(x64.MOV_SI, short ? wide : 0, RSP, home);
  emit32(low);
  if (short) return;
  m(x64.MOV_SI, 0, RSP, home + 4);
  emit32(high);
}

/** home = the value at another home. */
export function moveHome(type: i32, to: i32, from: i32): void {
  const scratch = type === V128 ? XMM15 : R11;
  loadHome(type === V128 ? V128 : wideTypeOf(type), scratch, from);
  storeHome(type === V128 ? V128 : wideTypeOf(type), scratch, to);
}

/** The type whose general-register loads move all bits of `type`. */
function wideTypeOf(type: i32): i32 {
  return type === I32 || type === F32 ? I32 : WIDE;
}

// Integers.

function aluOpcode(operation: i32): i32 {
  switch (operation) {
    case op.ADD:
      return x64.ADD_R;
    case op.SUB:
      return x64.SUB_R;
    case op.AND:
      return x64.AND_R;
    case op.OR:
      return x64.OR_R;
    case op.XOR:
      return x64.XOR_R;
  }
  return x64.IMUL_R;
}

function aluImmediate(operation: i32): i32 {
  switch (operation) {
    case op.ADD:
      return x64.ADD_I;
    case op.SUB:
      return x64.SUB_I;
    case op.AND:
      return x64.AND_I;
    case op.OR:
      return x64.OR_I;
  }
  return x64.XOR_I;
}

/** d = a op b */
export function binary(operation: i32, wide: i32, d: i32, a: i32, b: i32): void {
  if (operation === op.ADD && d !== a && d !== b) {
    rmx(x64.LEA, wide, d, a, b, 0, 0, 0);
  } else if (d === b && d !== a) {
    if (operation === op.SUB) {
      move(wide, R11, b);
      move(wide, d, a);
      rr(x64.SUB_R, wide, d, R11);
    } else rr(aluOpcode(operation), wide, d, a);
  } else {
    move(wide, d, a);
    rr(aluOpcode(operation), wide, d, b);
  }
}

/** d = a op immediate, which fits */
export function binaryImmediate(operation: i32, wide: i32, d: i32, a: i32, immediate: i32): void {
  if (operation === op.MUL) {
    multiplyImmediate(wide, d, a, immediate);
  } else if (d !== a && (operation === op.ADD || (operation === op.SUB && immediate !== -2147483648))) {
    rm(x64.LEA, wide, d, a, operation === op.ADD ? immediate : -immediate);
  } else {
    move(wide, d, a);
    ri(aluImmediate(operation), wide, d, immediate);
  }
}

function multiplyImmediate(wide: i32, d: i32, a: i32, immediate: i32): void {
  if (immediate > 0 && (immediate & (immediate - 1)) === 0) {
    shiftImmediate(op.SHL, wide, d, a, trailingZeros(immediate));
    return;
  }
  const short = immediate >= -128 && immediate < 128;
  rr(short ? x64.IMUL_B : x64.IMUL_I, wide, d, a);
  if (short) emit8(immediate);
  else emit32(immediate);
}

/** d = a op the value at `home` */
export function binaryHome(operation: i32, wide: i32, d: i32, a: i32, home: i32): void {
  move(wide, d, a);
  rm(aluOpcode(operation), wide, d, RSP, home);
}

/** The form that shifts by an immediate. */
function shiftOpcode(operation: i32): i32 {
  switch (operation) {
    case op.SHL:
      return x64.SHL_I;
    case op.SHR_S:
      return x64.SAR_I;
    case op.SHR_U:
      return x64.SHR_I;
    case op.ROTL:
      return x64.ROL_I;
  }
  return x64.ROR_I;
}

/** d = a shifted by `count`, which is below the width */
export function shiftImmediate(operation: i32, wide: i32, d: i32, a: i32, count: i32): void {
  move(wide, d, a);
  if (count === 0) return;
  rb(shiftOpcode(operation), wide, d, count);
}

/** d = a shifted by b, modulo the width */
export function shift(operation: i32, wide: i32, d: i32, a: i32, b: i32): void {
  if (operation <= op.SHR_U && (load32(H_CPU) & CPU_BMI2) !== 0) {
    vexShift(operation === op.SHL ? x64.SHLX : operation === op.SHR_S ? x64.SARX : x64.SHRX, wide, d, a, b);
    return;
  }
  // All shifts by cl differ from those by an immediate alike.
  const byCl = shiftOpcode(operation) ^ x64.SHL_I ^ x64.SHL_CL;
  if (b === RCX && d !== RCX) {
    move(wide, d, a);
    r(byCl, wide, d);
  } else if (d === RCX) {
    move(wide, R11, a);
    move(0, RCX, b);
    r(byCl, wide, R11);
    move(wide, RCX, R11);
  } else {
    // b may be d, so the count is moved first.
    move(1, R11, RCX);
    const source = a === RCX ? R11 : a;
    if (d === b) {
      move(0, RCX, b);
      move(wide, d, source);
    } else {
      move(wide, d, source);
      move(0, RCX, b);
    }
    r(byCl, wide, d);
    move(1, RCX, R11);
  }
}

/**
 * Computes the quotient or remainder of a and b and returns its register, one of divisionRegisters(). These may hold no
 * values but a and b. The operands' registers are preserved unless they are among them.
 */
export function divide(operation: i32, wide: i32, a: i32, b: i32, position: i32): i32 {
  move(wide, R11, b);
  rr(x64.TEST_M, wide, R11, R11);
  trapIf(cond.EQ, TRAP_INTEGER_DIVIDE_BY_ZERO, position);
  move(wide, RAX, a);
  if (operation === op.DIV_U || operation === op.REM_U) {
    rr(x64.XOR_R, 0, RDX, RDX);
    r(x64.DIV, wide, R11);
    return operation === op.DIV_U ? RAX : RDX;
  }
  ri(x64.CMP_I, wide, R11, -1);
  const divideAt = shortBranch(cond.NE);
  if (operation === op.DIV_S) {
    // Only the smallest integer overflows when 1 is subtracted; −1 divides all others by negation.
    ri(x64.CMP_I, wide, RAX, 1);
    trapIf(cond.OVERFLOW, TRAP_INTEGER_OVERFLOW, position);
    r(x64.NEG, wide, RAX);
  } else rr(x64.XOR_R, 0, RDX, RDX);
  const done = shortJump();
  bindShort(divideAt);
  plain(x64.CDQ, wide);
  r(x64.IDIV, wide, R11);
  bindShort(done);
  return operation === op.DIV_S ? RAX : RDX;
}

/** The 128-bit sum or difference: (low, high) = (low, high) op (b, c) */
export function wideSum(operation: i32, low: i32, high: i32, b: i32, c: i32): void {
  rr(operation === op.ADD ? x64.ADD_R : x64.SUB_R, 1, low, b);
  rr(operation === op.ADD ? x64.ADC64_R : x64.SBB_R, 1, high, c);
}

/** The registers of the two halves of wideProduct, which are those of a division. */
export const PRODUCT_LOW: i32 = RAX;
export const PRODUCT_HIGH: i32 = RDX;

/** The product of a and b, in PRODUCT_LOW and PRODUCT_HIGH; no value but a and b may be in those. */
export function wideProduct(isSigned: i32, a: i32, b: i32): void {
  move(1, R11, b);
  move(1, RAX, a);
  r(isSigned !== 0 ? x64.IMULH : x64.MUL, 1, R11);
}

/** d = op a */
export function unary(operation: i32, wide: i32, d: i32, a: i32): void {
  const cpu = load32(H_CPU);
  switch (operation) {
    case op.CLZ:
      if ((cpu & CPU_LZCNT) !== 0) rr(x64.LZCNT, wide, d, a);
      else scan(x64.BSR, wide, d, a, wide === 0 ? 63 : 127, wide === 0 ? 31 : 63);
      break;
    case op.CTZ:
      if ((cpu & CPU_BMI1) !== 0) rr(x64.TZCNT, wide, d, a);
      else scan(x64.BSF, wide, d, a, wide === 0 ? 32 : 64, 0);
      break;
    case op.POPCNT:
      if ((cpu & CPU_POPCNT) !== 0) rr(x64.POPCNT, wide, d, a);
      else population(wide, d, a);
      break;
    case op.EXTEND8:
      rrByte(x64.MOVSX_8, wide, d, a);
      break;
    case op.EXTEND16:
      rr(x64.MOVSX_16, wide, d, a);
      break;
    case op.EXTEND32:
      rr(x64.MOVSXD, 1, d, a);
      break;
    case op.WRAP:
      rr(x64.MOV_L, 0, d, a);
      break;
    case op.EXTEND_U:
      move(0, d, a);
      break;
  }
}

/** Masks of every second bit, pair of bits, and group of four; a one in every byte. */
const EVEN_BITS: i32 = 0x55555555;
const EVEN_PAIRS: i32 = 0x33333333;
const LOW_NIBBLES: i32 = 0x0f0f0f0f;
const EVERY_BYTE: i32 = 0x01010101;

/** d = the number of ones in a, by sums of neighbouring groups of bits */
function population(wide: i32, d: i32, a: i32): void {
  // A third register holds the masks; xmm15 keeps its value.
  const mask = d !== RAX && a !== RAX ? RAX : d !== RCX && a !== RCX ? RCX : RDX;
  rr(x64.MOVD_X, 1, XMM15, mask);
  move(wide, R11, a);
  move(wide, d, a);
  r(x64.SHR_1, wide, R11);
  maskBits(wide, mask, EVEN_BITS, R11);
  rr(x64.SUB_R, wide, d, R11);
  move(wide, R11, d);
  rb(x64.SHR_I, wide, R11, 2);
  maskBits(wide, mask, EVEN_PAIRS, R11);
  rr(x64.AND_R, wide, d, mask);
  rr(x64.ADD_R, wide, d, R11);
  move(wide, R11, d);
  rb(x64.SHR_I, wide, R11, 4);
  rr(x64.ADD_R, wide, d, R11);
  maskBits(wide, mask, LOW_NIBBLES, d);
  constant(mask, EVERY_BYTE, EVERY_BYTE, wide);
  rr(x64.IMUL_R, wide, d, mask);
  rb(x64.SHR_I, wide, d, wide === 1 ? 56 : 24);
  rr(x64.MOVD_R, 1, XMM15, mask);
}

/** d = d & word, which is repeated in both halves; changes `mask`, which holds it afterwards */
function maskBits(wide: i32, mask: i32, word: i32, d: i32): void {
  constant(mask, word, word, wide);
  rr(x64.AND_R, wide, d, mask);
}

/** d = (the index of the bit that BSF or BSR finds, or `none` if a is 0) xor `flip` */
function scan(opcode: i32, wide: i32, d: i32, a: i32, none: i32, flip: i32): void {
  constant(R11, none, 0, 0);
  rr(opcode, wide, d, a);
  rr(x64.CMOV | x64.CC_E, wide, d, R11);
  if (flip !== 0) ri(x64.XOR_I, wide, d, flip);
}

// Comparisons set the flags.

export function compare(wide: i32, a: i32, b: i32): void {
  rr(x64.CMP_R, wide, a, b);
}

export function compareImmediate(wide: i32, a: i32, immediate: i32): void {
  if (immediate === 0) rr(x64.TEST_M, wide, a, a);
  else ri(x64.CMP_I, wide, a, immediate);
}

export function compareHome(wide: i32, a: i32, home: i32): void {
  rm(x64.CMP_R, wide, a, RSP, home);
}

/** Compares the bits of `a` that are in `mask` with 0. */
export function compareBits(a: i32, mask: i32): void {
  riLong(x64.TEST_I, 0, a, mask);
}

export function compareFloats(double: i32, a: i32, b: i32): void {
  rr(double === 1 ? x64.UCOMISD : x64.UCOMISS, 0, a, b);
}

/** The processor's encoding of a condition other than FEQ and FNE, which need two. */
function hardware(condition: i32): i32 {
  switch (condition) {
    case cond.EQ:
      return x64.CC_E;
    case cond.NE:
      return x64.CC_NE;
    case cond.LT_S:
      return x64.CC_L;
    case cond.GE_S:
      return x64.CC_GE;
    case cond.LT_U:
    case cond.NOT_FGE:
      return x64.CC_B;
    case cond.GE_U:
    case cond.FGE:
      return x64.CC_AE;
    case cond.GT_S:
      return x64.CC_G;
    case cond.LE_S:
      return x64.CC_LE;
    case cond.GT_U:
    case cond.FGT:
      return x64.CC_A;
    case cond.LE_U:
    case cond.NOT_FGT:
      return x64.CC_BE;
    case cond.OVERFLOW:
      return x64.CC_O;
  }
  return x64.CC_NO;
}

/** d = 1 if the condition holds, else 0 */
export function setCondition(condition: i32, d: i32): void {
  if (condition === cond.FEQ || condition === cond.FNE) {
    const isEqual = condition === cond.FEQ;
    rrByte(x64.SETCC | (isEqual ? x64.CC_NP : x64.CC_P), 0, 0, R11);
    rrByte(x64.SETCC | (isEqual ? x64.CC_E : x64.CC_NE), 0, 0, d);
    rrByte(isEqual ? x64.AND8_R : x64.OR8_R, 0, d, R11);
  } else rrByte(x64.SETCC | hardware(condition), 0, 0, d);
  rrByte(x64.MOVZX_8, 0, d, d);
}

/** d = d if the condition holds, else s; general registers */
export function moveUnless(condition: i32, wide: i32, d: i32, s: i32): void {
  if (condition === cond.FEQ) {
    rr(x64.CMOV | x64.CC_NE, wide, d, s);
    rr(x64.CMOV | x64.CC_P, wide, d, s);
  } else if (condition === cond.FNE) {
    // FNE holds, and d stays, if the operands differ or are unordered: restore d from the scratch register if
    // unordered.
    move(wide, R11, d);
    rr(x64.CMOV | x64.CC_E, wide, d, s);
    rr(x64.CMOV | x64.CC_P, wide, d, R11);
  } else rr(x64.CMOV | hardware(cond.opposite(condition)), wide, d, s);
}

/** d = d if the condition holds, else s; vector registers */
export function moveVectorUnless(condition: i32, d: i32, s: i32): void {
  if (condition === cond.FEQ) {
    const differs = shortBranchOn(x64.CC_NE);
    const keep = shortBranchOn(x64.CC_NP);
    bindShort(differs);
    move(1, d, s);
    bindShort(keep);
  } else if (condition === cond.FNE) {
    const unordered = shortBranchOn(x64.CC_P);
    const differs = shortBranchOn(x64.CC_NE);
    move(1, d, s);
    bindShort(unordered);
    bindShort(differs);
  } else {
    const keep = shortBranch(condition);
    move(1, d, s);
    bindShort(keep);
  }
}

// Branches within the body. A branch returns the address of its displacement; branches to one target form a linked
// list.

/** Jumps on a condition of the processor. */
function branchOn(hardwareCondition: i32): i32 {
  plain(x64.JCC32 | hardwareCondition, 0);
  emit32(0);
  return code.at - 4;
}

/** Bytes of `jump`. */
export const JUMP_BYTES: i32 = 5;

/** Jumps; returns the address of the displacement. */
export function jump(): i32 {
  emit8(x64.JMP32);
  emit32(0);
  return code.at - 4;
}

/** Writes the displacement at `address` so that its branch leads to `target`. */
export function patchBranch(address: i32, target: i32): void {
  code.patch32(address, target - address - 4);
}

/** Links an unbound branch to the one before it in a list, or 0. */
export function setLink(branch: i32, previous: i32): void {
  code.patch32(branch, previous);
}

export function linkOf(branch: i32): i32 {
  return code.wordAt(branch);
}

/**
 * Jumps if the condition holds, which must not be FEQ or FNE (takesTwoBranches); returns the address of the
 * displacement.
 */
export function jumpIf(condition: i32): i32 {
  return branchOn(hardware(condition));
}

/** Returns whether a condition needs two branches. */
export function takesTwoBranches(condition: i32): boolean {
  return condition === cond.FEQ || condition === cond.FNE;
}

/** Jumps if the floats compared last are unordered; returns the address of the displacement. */
export function jumpIfUnordered(): i32 {
  return branchOn(x64.CC_P);
}

/** Branches over at most 127 bytes of code; returns the argument of bindShort. */
export function shortBranch(condition: i32): i32 {
  return shortBranchOn(hardware(condition));
}

function shortBranchOn(hardwareCondition: i32): i32 {
  emit8(x64.JCC8 | hardwareCondition);
  emit8(0);
  return code.at;
}

/** The short branch that is taken if the floats compared last are unordered. */
export function shortUnordered(): i32 {
  return shortBranchOn(x64.CC_P);
}

function shortJump(): i32 {
  emit8(x64.JMP8);
  emit8(0);
  return code.at;
}

/** Binds a short branch here. */
export function bindShort(branch: i32): void {
  code.patchByte(branch - 1, code.at - branch);
}

/** Jumps to the `index`-th of the jumps (`jump`) that follow. Changes `index`'s register. */
export function jumpAmong(index: i32): void {
  rmx(x64.LEA, 1, index, index, index, 2, 0, 0);
  rip(x64.LEA, 1, R11);
  const base = code.at;
  rr(x64.ADD_R, 1, R11, index);
  r(x64.JMP_M, 0, R11);
  code.patch32(base - 4, code.at - base);
}

// Floats.

/** The instruction of one of the four basic operations. */
function scalarOpcode(operation: i32, double: i32): i32 {
  switch (operation) {
    case op.FADD:
      return double === 1 ? x64.ADDSD : x64.ADDSS;
    case op.FSUB:
      return double === 1 ? x64.SUBSD : x64.SUBSS;
    case op.FMUL:
      return double === 1 ? x64.MULSD : x64.MULSS;
  }
  return double === 1 ? x64.DIVSD : x64.DIVSS;
}

/** opcode d, [the shared constant at `offset` (SHARED_…)] */
export function withShared(opcode: i32, d: i32, offset: i32): void {
  rip(opcode, 0, d);
  code.relocation(RELOC_IMAGE, load32(H_CONSTANTS) + offset);
}

/** d = a op b */
export function floatBinary(operation: i32, double: i32, d: i32, a: i32, b: i32): void {
  switch (operation) {
    case op.FMIN:
    case op.FMAX:
      extremum(operation, double, a, b);
      move(1, d, XMM15);
      return;
    case op.FCOPYSIGN:
      move(1, XMM15, b);
      withShared(x64.ANDPS, XMM15, double === 1 ? SHARED_SIGN64 : SHARED_SIGN32);
      move(1, d, a);
      withShared(x64.ANDPS, d, double === 1 ? SHARED_ABS64 : SHARED_ABS32);
      rr(x64.ORPS, 0, d, XMM15);
      return;
  }
  const opcode = scalarOpcode(operation, double);
  if (d === b && d !== a) {
    move(1, XMM15, b);
    move(1, d, a);
    rr(opcode, 0, d, XMM15);
  } else {
    move(1, d, a);
    rr(opcode, 0, d, b);
  }
}

/** d = a op the float at `home`, for the four basic operations */
export function floatBinaryHome(operation: i32, double: i32, d: i32, a: i32, home: i32): void {
  move(1, d, a);
  rm(scalarOpcode(operation, double), 0, d, RSP, home);
}

/**
 * xmm15 = the minimum or maximum of a and b: the hardware's result, unless they are equal (zeros of different sign) or
 * unordered.
 */
function extremum(operation: i32, double: i32, a: i32, b: i32): void {
  move(1, XMM15, a);
  compareFloats(double, XMM15, b);
  const unordered = shortBranchOn(x64.CC_P);
  const equal = shortBranch(cond.EQ);
  if (operation === op.FMIN) rr(double === 1 ? x64.MINSD : x64.MINSS, 0, XMM15, b);
  else rr(double === 1 ? x64.MAXSD : x64.MAXSS, 0, XMM15, b);
  const done = shortJump();
  bindShort(unordered);
  rr(double === 1 ? x64.ADDSD : x64.ADDSS, 0, XMM15, b);
  const done2 = shortJump();
  bindShort(equal);
  rr(operation === op.FMIN ? x64.ORPS : x64.ANDPS, 0, XMM15, b);
  bindShort(done);
  bindShort(done2);
}

/** d = op a */
export function floatUnary(operation: i32, double: i32, d: i32, a: i32): void {
  switch (operation) {
    case op.FABS:
      move(1, d, a);
      withShared(x64.ANDPS, d, double === 1 ? SHARED_ABS64 : SHARED_ABS32);
      break;
    case op.FNEG:
      move(1, d, a);
      withShared(x64.XORPS, d, double === 1 ? SHARED_SIGN64 : SHARED_SIGN32);
      break;
    case op.FSQRT:
      rr(double === 1 ? x64.SQRTSD : x64.SQRTSS, 0, d, a);
      break;
    default:
      rr(double === 1 ? x64.ROUNDSD : x64.ROUNDSS, 0, d, a);
      emit8(8 | (operation === op.FNEAREST ? 0 : operation === op.FFLOOR ? 1 : operation === op.FCEIL ? 2 : 3));
  }
}

/** d = a, a float of the other width. */
export function convertFloat(toDouble: i32, d: i32, a: i32): void {
  rr(toDouble === 1 ? x64.CVTSS2SD : x64.CVTSD2SS, 0, d, a);
}

/** d = the bits of a, which is in the other bank. */
export function reinterpret(wide: i32, d: i32, a: i32): void {
  if (d < 32) rr(x64.MOVD_R, wide, a, d);
  else rr(x64.MOVD_X, wide, d, a);
}

function fromInteger(double: i32, wide: i32, d: i32, a: i32): void {
  rr(x64.XORPS, 0, d, d);
  rr(double === 1 ? x64.CVTSI2SD : x64.CVTSI2SS, wide, d, a);
}

/** d = integer a as a float */
export function convertInteger(isSigned: i32, wide: i32, double: i32, d: i32, a: i32): void {
  if (isSigned === 1 || wide === 0) {
    fromInteger(double, isSigned === 1 ? wide : 1, d, a);
    return;
  }
  rr(x64.TEST_M, 1, a, a);
  const large = shortBranchOn(x64.CC_S);
  fromInteger(double, 1, d, a);
  const done = shortJump();
  // From 2^63 on: converts half of the value, rounded to odd, and doubles the result.
  bindShort(large);
  move(1, R11, a);
  r(x64.SHR_1, 1, R11);
  const even = shortBranch(cond.GE_U);
  ri(x64.OR_I, 1, R11, 1);
  bindShort(even);
  fromInteger(double, 1, d, R11);
  rr(double === 1 ? x64.ADDSD : x64.ADDSS, 0, d, d);
  bindShort(done);
}

function toInteger(double: i32, wide: i32, d: i32, a: i32): void {
  rr(double === 1 ? x64.CVTTSD2SI : x64.CVTTSS2SI, wide, d, a);
}

/** Compares a with the shared constant at `offset`. */
function compareShared(double: i32, a: i32, offset: i32): void {
  withShared(double === 1 ? x64.UCOMISD : x64.UCOMISS, a, offset);
}

/** d = float a truncated to an integer; traps if a is a NaN or the result is out of range */
export function truncate(isSigned: i32, wide: i32, double: i32, d: i32, a: i32, position: i32): void {
  toInteger(double, isSigned === 1 ? wide : 1, d, a);
  if (isSigned === 1) ri(x64.CMP_I, wide, d, 1);
  else if (wide === 0) {
    move(1, R11, d);
    rb(x64.SHR_I, 1, R11, 32);
  } else rr(x64.TEST_M, 1, d, d);
  const fits = isSigned === 1
    ? shortBranch(cond.NO_OVERFLOW)
    : wide === 0
    ? shortBranch(cond.EQ)
    : shortBranchOn(x64.CC_NS);
  compareFloats(double, a, a);
  trapOn(x64.CC_P, TRAP_INVALID_CONVERSION, position);
  if (isSigned === 0) {
    if (wide === 0) {
      rr(x64.CMP_R, 1, R11, R11);
      trapIf(cond.EQ, TRAP_INTEGER_OVERFLOW, position);
    } else {
      upperHalf(double, d, a);
      trapOn(x64.CC_S, TRAP_INTEGER_OVERFLOW, position);
      setTopBit(d);
    }
  } else {
    // The hardware's result is correct for values that truncate to the smallest integer.
    const exact = wide === 0 && double === 1;
    compareShared(
      double,
      a,
      exact ? SHARED_F64_M2P31_1 : wide === 0 ? SHARED_F32_M2P31 : double === 1 ? SHARED_F64_M2P63 : SHARED_F32_M2P63,
    );
    trapIf(exact ? cond.LE_U : cond.LT_U, TRAP_INTEGER_OVERFLOW, position);
    zeroVector(XMM15);
    compareFloats(double, a, XMM15);
    trapIf(cond.GE_U, TRAP_INTEGER_OVERFLOW, position);
  }
  bindShort(fits);
}

/** d = (a − 2^63) as an integer; sets the flags by its sign */
function upperHalf(double: i32, d: i32, a: i32): void {
  move(1, XMM15, a);
  withShared(double === 1 ? x64.SUBSD : x64.SUBSS, XMM15, double === 1 ? SHARED_F64_2P63 : SHARED_F32_2P63);
  toInteger(double, 1, d, XMM15);
  rr(x64.TEST_M, 1, d, d);
}

function setTopBit(d: i32): void {
  rb(x64.BTS_I, 1, d, 63);
}

/** d = float a truncated to an integer, saturated to its range; 0 for NaN */
export function truncateSaturating(isSigned: i32, wide: i32, double: i32, d: i32, a: i32): void {
  toInteger(double, isSigned === 1 ? wide : 1, d, a);
  if (isSigned === 1) ri(x64.CMP_I, wide, d, 1);
  else if (wide === 0) {
    move(1, R11, d);
    rb(x64.SHR_I, 1, R11, 32);
  } else rr(x64.TEST_M, 1, d, d);
  const fits = isSigned === 1
    ? shortBranch(cond.NO_OVERFLOW)
    : wide === 0
    ? shortBranch(cond.EQ)
    : shortBranchOn(x64.CC_NS);
  zeroVector(XMM15);
  compareFloats(double, a, XMM15);
  if (isSigned === 1) {
    const zero = shortBranchOn(x64.CC_P);
    // Negative: the hardware's result, the smallest integer, is the bound.
    const negative = shortBranch(cond.LT_U);
    constant(d, wide === 0 ? MAX_I32 : -1, MAX_I32, wide);
    const done = shortJump();
    bindShort(zero);
    rr(x64.XOR_R, 0, d, d);
    bindShort(done);
    bindShort(negative);
  } else {
    // An unordered comparison sets the flags as for below and equal.
    const zero = shortBranch(cond.LE_U);
    if (wide === 1) {
      upperHalf(double, d, a);
      const largest = shortBranchOn(x64.CC_S);
      setTopBit(d);
      const done = shortJump();
      bindShort(largest);
      constant(d, -1, -1, 1);
      const done2 = shortJump();
      bindShort(zero);
      rr(x64.XOR_R, 0, d, d);
      bindShort(done);
      bindShort(done2);
    } else {
      constant(d, -1, 0, 0);
      const done = shortJump();
      bindShort(zero);
      rr(x64.XOR_R, 0, d, d);
      bindShort(done);
    }
  }
  bindShort(fits);
}

/** Traps with `trap` if the condition holds. */
export function trapIf(condition: i32, trap: i32, position: i32): void {
  queueTrap(jumpIf(condition), trap, position);
}

/** Traps with `trap` if the processor's condition holds. */
function trapOn(hardwareCondition: i32, trap: i32, position: i32): void {
  queueTrap(branchOn(hardwareCondition), trap, position);
}

// Memory 0, with its base in rbx and, with explicit bounds, its length in r14.

/**
 * r11 = the end of an access of `width` bytes at address + (low, high), for the comparison with the length that
 * follows; traps if the sum of 64-bit addresses exceeds 2^64.
 */
export function reachEnd(address: i32, low: i32, high: i32, width: i32, is64: boolean, position: i32): void {
  const isSmall = high === 0 && low >= 0 && low <= MAX_I32 - width;
  if (isSmall && !is64) {
    rm(x64.LEA, 1, R11, address, low + width);
    return;
  }
  if (isSmall) constant(R11, low + width, 0, 0);
  else {
    constant(R11, low, high, 1);
    ri(x64.ADD_I, 1, R11, width);
    if (is64 && high === -1) trapIf(cond.LT_U, TRAP_MEMORY_OUT_OF_BOUNDS, position);
  }
  rr(x64.ADD_R, 1, R11, address);
  if (is64) trapIf(cond.LT_U, TRAP_MEMORY_OUT_OF_BOUNDS, position);
}

/**
 * d = address + (low, high), and r11 the last byte of an access of `width` bytes there, for the comparison with the
 * length that follows; traps if a sum of 64-bit addresses exceeds 2^64.
 */
export function reachLast(d: i32, address: i32, low: i32, high: i32, width: i32, is64: boolean, position: i32): void {
  if (!is64 && low >= 0) rm(x64.LEA, 1, d, address, low);
  else if (low === 0 && high === 0) move(1, d, address);
  else {
    constant(R11, low, high, 1);
    rr(x64.ADD_R, 1, R11, address);
    if (is64) trapIf(cond.LT_U, TRAP_MEMORY_OUT_OF_BOUNDS, position);
    move(1, d, R11);
  }
  if (is64) {
    constant(R11, width - 1, 0, 0);
    rr(x64.ADD_R, 1, R11, d);
    trapIf(cond.LT_U, TRAP_MEMORY_OUT_OF_BOUNDS, position);
  } else rm(x64.LEA, 1, R11, d, width - 1);
}

/**
 * The scratch register becomes the index if the last compare found it below its limit, else 0: no branch decides it.
 * maskAddress changes register `d` alike, an index or an address, and r11.
 */
export function maskIndex(index: i32, wide: i32): void {
  rr(x64.SBB_R, wide, R11, R11);
  rr(x64.AND_R, wide, R11, index);
}

export function maskAddress(d: i32): void {
  rr(x64.SBB_R, 1, R11, R11);
  rr(x64.AND_R, 1, d, R11);
}

/**
 * Compares r11 with the length of memory 0 in its register; compareContextLength with the length at `offset` in the
 * context.
 */
export function compareLength(): void {
  rr(x64.CMP_R, 1, R11, R14);
}

export function compareContextLength(offset: i32): void {
  rm(x64.CMP_R, 1, R11, R15, offset);
}

/**
 * Out of line, when the end of an access, in r11, exceeds a shared memory's length in the context: stores the current
 * length to the context, compares, and branches on `inside`: the access is in bounds. Returns that branch. `isPinned`:
 * r14 holds the length, too. `length` and `pointer` are offsets in the context.
 */
export function refreshLength(length: i32, pointer: i32, isPinned: boolean, inside: i32): i32 {
  // rbx serves as a temporary: the base of memory 0 is reloaded from the context.
  rm(x64.MOV_L, 1, RBX, R15, pointer);
  rm(x64.MOV_L, 1, RBX, RBX, 0);
  rm(x64.MOV_S, 1, RBX, R15, length);
  if (isPinned) rr(x64.MOV_L, 1, R14, RBX);
  rr(x64.CMP_R, 1, R11, RBX);
  rm(x64.MOV_L, 1, RBX, R15, CONTEXT_MEMORIES);
  return jumpIf(inside);
}

/** Traps unless start + count ≤ length. Operands are 64 bits wide and below 2^32 unless `is64`. */
export function checkRange(start: i32, count: i32, length: i32, is64: boolean, position: i32): void {
  if (is64) {
    move(1, R11, start);
    rr(x64.ADD_R, 1, R11, count);
    trapIf(cond.LT_U, TRAP_MEMORY_OUT_OF_BOUNDS, position);
  } else rmx(x64.LEA, 1, R11, start, count, 0, 0, 0);
  rr(x64.CMP_R, 1, R11, length);
  trapIf(cond.GT_U, TRAP_MEMORY_OUT_OF_BOUNDS, position);
}

/** Traps if (address + offset) & mask is not 0. */
export function checkAlignment(address: i32, offset: i32, mask: i32, position: i32): void {
  rm(x64.LEA, 0, R11, address, offset);
  riLong(x64.TEST_I, 0, R11, mask);
  trapIf(cond.NE, TRAP_UNALIGNED_ATOMIC, position);
}

/** d = d + the constant, 64 bits */
export function addOffset(d: i32, low: i32, high: i32): void {
  if (low === 0 && high === 0) return;
  constant(R11, low, high, 1);
  rr(x64.ADD_R, 1, d, R11);
}

/** d = d + the 64 bits in the context at `offset` */
export function addContext(d: i32, offset: i32): void {
  rm(x64.ADD_R, 1, d, R15, offset);
}

/** d = its low 32 bits */
export function zeroExtend(d: i32): void {
  rr(x64.MOV_L, 0, d, d);
}

/** The memory operand of the next access: base, index register or NO_INDEX, log2 of its scale, and displacement. */
export let accessBase: i32 = RBX;
export let accessIndex: i32 = 0;
let accessScale: i32 = 0;
export let accessOffset: i32 = 0;

/** Prepares an access at base + offset. */
export function prepareField(base: i32, offset: i32): void {
  accessBase = base;
  accessIndex = NO_INDEX;
  accessScale = 0;
  accessOffset = offset;
}

/** Prepares an access at base + (index << shift) + offset. */
export function prepareElement(base: i32, index: i32, shift: i32, offset: i32): void {
  const isScaled = shift < 4;
  if (!isScaled) shiftImmediate(op.SHL, 1, R11, index, shift);
  accessBase = base;
  accessIndex = isScaled ? index : R11;
  accessScale = isScaled ? shift : 0;
  accessOffset = offset;
}

/** Prepares an access of memory 0 at address + (low, high). From here to the access, r11 may be part of the operand. */
export function prepareAccess(address: i32, low: i32, high: i32): void {
  accessBase = RBX;
  accessIndex = address;
  accessScale = 0;
  accessOffset = low;
  if (high === 0 && low >= 0) return;
  constant(R11, low, high, 1);
  rr(x64.ADD_R, 1, R11, address);
  accessIndex = R11;
  accessOffset = 0;
}

/**
 * Prepares an access at address + (low, high) in the memory whose base is at offset `base` in the context; r11 is part
 * of the operand.
 */
export function prepareFarAccess(address: i32, low: i32, high: i32, base: i32): void {
  const isSmall = high === 0 && low >= 0;
  accessBase = R11;
  accessIndex = address;
  accessScale = 0;
  accessOffset = isSmall ? low : 0;
  if (isSmall) rm(x64.MOV_L, 1, R11, R15, base);
  else {
    constant(R11, low, high, 1);
    rm(x64.ADD_R, 1, R11, R15, base);
  }
}

/** Prepares an atomic access: nothing to do, since atomic instructions take every form of operand. */
export function prepareAtomic(): void {}

export function loadAtomic(width: i32, type: i32, d: i32): void {
  loadMemory(width, 0, type, d);
}

/** d = 2^width bytes at the prepared operand, as `type` */
export function loadMemory(width: i32, isSigned: i32, type: i32, d: i32): void {
  let opcode: i32 = x64.MOV_L;
  let wide: i32 = 0;
  if (bankOf(type) === 1) opcode = loadOpcode(type);
  else if (width === 3) wide = 1;
  else if (width === 2) {
    wide = isSigned !== 0 && type !== I32 ? 1 : 0;
    if (wide === 1) opcode = x64.MOVSXD;
  } else {
    wide = isSigned !== 0 && type !== I32 ? 1 : 0;
    if (isSigned !== 0) opcode = width === 0 ? x64.MOVSX_8 : x64.MOVSX_16;
    else opcode = width === 0 ? x64.MOVZX_8 : x64.MOVZX_16;
  }
  rmx(opcode, wide, d, accessBase, accessIndex, accessScale, accessOffset, 0);
}

/** Stores the lowest 2^width bytes of s, of `type`, to the prepared operand. */
export function storeMemory(width: i32, type: i32, s: i32): void {
  if (bankOf(type) === 1) rmx(storeOpcode(type), 0, s, accessBase, accessIndex, accessScale, accessOffset, 0);
  else if (width === 0) rmx(x64.MOV8_S, 0, s, accessBase, accessIndex, accessScale, accessOffset, 1);
  else {
    const opcode = width === 1 ? x64.MOV16_S : x64.MOV_S;
    rmx(opcode, width === 3 ? 1 : 0, s, accessBase, accessIndex, accessScale, accessOffset, 0);
  }
}

/** Prepares a constant for storeMemoryConstant: nothing to do, since the storing instruction contains it. */
export function takeConstant(_width: i32, _value: i32): void {}

/** Stores a constant of 2^width bytes to the prepared operand; one of 8 bytes is sign-extended. */
export function storeMemoryConstant(width: i32, value: i32): void {
  const opcode = width === 0 ? x64.MOV8_SI : width === 1 ? x64.MOV16_SI : x64.MOV_SI;
  rmx(opcode, width === 3 ? 1 : 0, 0, accessBase, accessIndex, accessScale, accessOffset, 0);
  emit8(value);
  if (width >= 1) emit8(value >> 8);
  if (width < 2) return;
  emit8(value >> 16);
  emit8(value >> 24);
}

// Fuel. Modules that charge it keep it in r13.

/**
 * Subtracts a price that patchPrice fills in; returns the address of its word. The flags compare the fuel before it
 * with the price, signed.
 */
export function charge(): i32 {
  riLong(x64.SUB_I, 1, R13, 0);
  return code.at - 4;
}

/** Writes the price of the charge at `at`. */
export function patchPrice(at: i32, price: i32): void {
  code.patch32(at, price);
}

/** Subtracts the units in the scratch register, with flags as for charge. */
export function chargeScratch(): void {
  rr(x64.SUB_R, 1, R13, R11);
}

/** Refunds a charge: `price` units, or −1 for the units in the scratch register. */
export function giveFuelBack(price: i32): void {
  if (price < 0) rr(x64.ADD_R, 1, R13, R11);
  else ri(x64.ADD_I, 1, R13, price);
}

function hasFuel(): boolean {
  return (load32(H_MODE) & MODE_FUEL) !== 0;
}

/**
 * Before a call into another instance: metered code stores its fuel to the thread state; other code loads the fuel
 * register for a callee that may be metered.
 */
function handFuelOver(): void {
  rm(x64.MOV_L, 1, R11, R15, CONTEXT_THREAD);
  rm(hasFuel() ? x64.MOV_S : x64.MOV_L, 1, R13, R11, THREAD_FUEL);
}

/**
 * After such a call, with the callee's context still in r15: a metered callee leaves the fuel in the register, any
 * other in the thread state. Moves it if this code keeps it in the other place.
 */
function takeFuelBack(): void {
  mi(x64.CMP_I, 0, R15, CONTEXT_METERED, 0);
  const done = shortBranch(hasFuel() ? cond.NE : cond.EQ);
  rm(x64.MOV_L, 1, R11, R15, CONTEXT_THREAD);
  rm(hasFuel() ? x64.MOV_L : x64.MOV_S, 1, R13, R11, THREAD_FUEL);
  bindShort(done);
}

// Determinism.

/** d = d, or the positive canonical NaN if it is a NaN */
export function canonicalize(double: i32, d: i32): void {
  compareFloats(double, d, d);
  const isNumber = shortBranchOn(x64.CC_NP);
  floatConstant(d, double === 1 ? 0 : CANONICAL_F32, double === 1 ? CANONICAL_F64_HIGH : 0, double);
  bindShort(isNumber);
}

/** d = 32 bits of the thread state at `offset`; storeThread stores them */
export function loadThread(d: i32, offset: i32): void {
  rm(x64.MOV_L, 1, R11, R15, CONTEXT_THREAD);
  rm(x64.MOV_L, 0, d, R11, offset);
}

export function storeThread(s: i32, offset: i32): void {
  rm(x64.MOV_L, 1, R11, R15, CONTEXT_THREAD);
  rm(x64.MOV_S, 0, s, R11, offset);
}

// Atomic operations on the prepared operand.

/** The register that compare-and-exchange uses. */
export const EXCHANGE_REGISTER: i32 = RAX;

/**
 * opcode, the form for bytes or the next one for wider operands, with the prepared operand and `s`; `locked` adds a
 * LOCK prefix
 */
function onMemory(opcode: i32, width: i32, s: i32, locked: boolean): void {
  if (locked) emit8(x64.LOCK);
  const sized = width === 0 ? opcode : width === 1 ? OPERAND_16 | (opcode + 1) : opcode + 1;
  rmx(sized, width === 3 ? 1 : 0, s, accessBase, accessIndex, 0, accessOffset, width === 0 ? 1 : 0);
}

/** Exchanges `s` with the prepared operand. */
export function exchangeMemory(width: i32, s: i32): void {
  onMemory(x64.XCHG8, width, s, false);
}

/** Adds `s` to the prepared operand; s = the previous value */
export function addMemory(width: i32, s: i32): void {
  onMemory(x64.XADD8_M, width, s, true);
}

/**
 * Stores `s` if the exchange register equals the value in memory; otherwise loads that value into the exchange
 * register.
 */
export function compareExchange(width: i32, s: i32): void {
  onMemory(x64.CMPXCHG8_M, width, s, true);
}

/**
 * operand = operand op s, by a compare-and-exchange loop; the exchange register receives the previous value. Only the
 * first access may fault, because memories do not shrink.
 */
export function modifyMemory(operation: i32, width: i32, s: i32, temporary: i32): void {
  loadMemory(width, 0, width === 3 ? WIDE : I32, RAX);
  const again = code.at;
  move(1, temporary, RAX);
  rr(aluOpcode(operation), width === 3 ? 1 : 0, temporary, s);
  compareExchange(width, temporary);
  emit8(x64.JCC8 | x64.CC_NE);
  emit8(again - (code.at + 1));
}

/**
 * d = its lowest 2^width bytes, zero-extended. For 4 bytes, too: a successful compare-and-exchange does not write the
 * exchange register, whose upper half may be set.
 */
export function zeroExtendWidth(width: i32, d: i32): void {
  if (width === 0) rrByte(x64.MOVZX_8, 0, d, d);
  else if (width === 1) rr(x64.MOVZX_16, 0, d, d);
  else if (width === 2) rr(x64.MOV_L, 0, d, d);
}

export function negate(wide: i32, d: i32): void {
  r(x64.NEG, wide, d);
}

/** Orders all accesses before and after: a locked instruction that does not change its operand. */
export function fence(): void {
  emit8(x64.LOCK);
  mi(x64.OR_I, 0, RSP, 0, 0);
}

/** Tells the processor that the code spins. */
export function pause(): void {
  plain(x64.PAUSE, 0);
}

// Tail calls.

/** Jumps to defined function `index`. */
export function jumpToFunction(index: i32): void {
  relative(x64.JMP32, RELOC_FUNCTION, index);
}

/** Jumps to the code of the record in the record register, which runs in the current context. */
export function jumpToRecord(): void {
  m(x64.JMP_M, 0, R10, RECORD_CODE);
}

/**
 * Jumps to a record of another instance after the frame has been released. This call needs a TAIL_FRAME
 * (abi/context_layout.ts), which restores the caller's context, unless the return address is already that of such a
 * frame.
 */
export function jumpToCrossRecord(): void {
  handFuelOver();
  rm(x64.MOV_L, 1, R11, R15, CONTEXT_TAIL_RETURN);
  rm(x64.CMP_R, 1, R11, RSP, 0);
  const there = shortBranch(cond.EQ);
  push(R15);
  push(R11);
  bindShort(there);
  rm(x64.MOV_L, 1, R15, R10, RECORD_CONTEXT);
  reloadMemory(true);
  jumpToRecord();
}

// Frames and calls.

/**
 * Addresses in the prologue: of the word with the frame's size, of the displacement of the stack check (0: none) and
 * its branch, and of the prologue's end.
 */
let frameSizeAt: i32 = 0;
let stackCheckAt: i32 = 0;
let stackBranchAt: i32 = 0;
let prologueEnd: i32 = 0;

/** Begins a function, whose frame size is not known yet. */
export function prologue(): void {
  stackCheckAt = 0;
  if ((load32(H_MODE) & MODE_STACK_FENCE) !== 0) {
    // lea r11, [rsp − frame]; cmp r11, [context + limit]; jbe
    rmLong(x64.LEA, 1, R11, RSP);
    stackCheckAt = code.at - 4;
    rm(x64.CMP_R, 1, R11, R15, CONTEXT_STACK_LIMIT);
    stackBranchAt = jumpIf(cond.LE_U);
  }
  // sub rsp, frame
  riLong(x64.SUB_I, 1, RSP, 0);
  frameSizeAt = code.at - 4;
  prologueEnd = code.at;
}

const PAGE: i32 = 4096;

/**
 * Ends a function: completes the frame size and emits the out-of-line parts of the prologue. Returns the address of the
 * first instruction: a small leaf skips the stack check and uses the slack below the limit.
 */
export function finishFrame(frame: i32, isLeaf: boolean): i32 {
  code.patch32(frameSizeAt, frame);
  if (isLeaf && frame <= STACK_SLACK >> 1) return frameSizeAt - 3;
  if (stackCheckAt !== 0) {
    code.patch32(stackCheckAt, -frame);
    patchBranch(stackBranchAt, code.at);
    callTrap(TRAP_STACK_EXHAUSTED);
    code.trapSite(TRAP_STACK_EXHAUSTED, 0, 0);
  } else if (frame >= PAGE) {
    // Touch every page in descending order, so that the guard page faults before any address beyond it is reached.
    const start = frameSizeAt - 3;
    code.patchByte(start, x64.JMP32);
    patchBranch(start + 1, code.at);
    for (let page: i32 = PAGE; page <= frame; page += PAGE) {
      code.reserveCode(64);
      rm(x64.TEST_M, 0, 0, RSP, -page);
    }
    ri(x64.SUB_I, 1, RSP, frame);
    patchBranch(jump(), prologueEnd);
  }
  return stackCheckAt !== 0 ? stackCheckAt - 4 : frameSizeAt - 3;
}

/** Releases the frame, whose size is filled in later; returns the address of that word. */
export function dropFrame(): i32 {
  riLong(x64.ADD_I, 1, RSP, 0);
  return code.at - 4;
}

/** Writes the size of the frame for dropFrame. */
export function patchFrame(at: i32, frame: i32): void {
  code.patch32(at, frame);
}

export function returnToCaller(): void {
  emit8(x64.RET);
}

/**
 * Makes the displacement at `address` refer to a target `distance` bytes from it. Returns true: all targets are in
 * reach.
 */
export function link(address: i32, distance: i32): boolean {
  code.patch32(address, distance - 4);
  return true;
}

function relative(opcode: i32, kind: i32, target: i32): void {
  emit8(opcode);
  emit32(0);
  code.relocation(kind, target);
}

/** Calls the stub of trap code `trap`. */
export function callTrap(trap: i32): void {
  relative(x64.CALL32, RELOC_STUB, STUB_TRAP + trap);
}

/** Calls defined function `index`. */
export function callFunction(index: i32): void {
  relative(x64.CALL32, RELOC_FUNCTION, index);
}

export function callNative(builtin: i32): void {
  relative(x64.CALL32, RELOC_STUB, STUB_BUILTIN + builtin);
}

/**
 * Jumps to a routine that may park, with a pushed return address that the processor's return stack does not contain.
 * The routine returns to the next instruction.
 */
export function callParking(builtin: i32): void {
  rip(x64.LEA, 1, R11);
  const link = code.at;
  push(R11);
  relative(x64.JMP32, RELOC_STUB, STUB_BUILTIN + builtin);
  code.patch32(link - 4, code.at - link);
}

/** Jumps like callParking to the code of the record in the record register. */
export function callHostRecord(): void {
  rip(x64.LEA, 1, R11);
  const link = code.at;
  push(R11);
  m(x64.JMP_M, 0, R10, RECORD_CODE);
  code.patch32(link - 4, code.at - link);
}

/** Calls the code of the record in the record register, which runs in the current context. */
export function callOwnRecord(): void {
  m(x64.CALL_M, 0, R10, RECORD_CODE);
}

/**
 * Compares the context of the record in the record register with the current one: EQ if they are the same. Faults for a
 * null record.
 */
export function compareRecordContext(): void {
  rm(x64.CMP_R, 1, R15, R10, RECORD_CONTEXT);
}

function push(register: i32): void {
  inOpcode(x64.PUSH, 0, register);
}

function pop(register: i32): void {
  inOpcode(x64.POP, 0, register);
}

/** Reloads the base of memory 0 from the context, and with `length` its length. */
function reloadMemory(length: boolean): void {
  rm(x64.MOV_L, 1, RBX, R15, CONTEXT_MEMORIES);
  if (length) rm(x64.MOV_L, 1, R14, R15, CONTEXT_MEMORIES + MEMORY_LENGTH_FIELD);
}

/** Calls the record in the record register in its context. The current context is saved above the return address. */
export function callCrossRecord(): void {
  handFuelOver();
  push(R15);
  rm(x64.MOV_L, 1, R15, R10, RECORD_CONTEXT);
  reloadMemory(true);
  m(x64.CALL_M, 0, R10, RECORD_CODE);
}

/** Bytes that callCrossRecord pushes, the return address excluded. */
export const CROSS_CALL_BYTES: i32 = 8;
/** Bytes of those that an exception leaves on the stack. */
export const CROSS_LANDING_BYTES: i32 = 0;

/** Releases the CROSS_LANDING_BYTES: nothing to do. */
export function dropCrossLanding(): void {}

/** Restores context, memory and fuel after callCrossRecord; preserves the result registers. */
export function restoreContext(): void {
  takeFuelBack();
  pop(R15);
  reloadMemory((load32(H_MODE) & MODE_EXPLICIT_BOUNDS) !== 0);
}

/**
 * Calls the routine that allocates an object: the scratch register contains its size in bytes, then its address. All
 * other registers are preserved.
 */
export function callAllocate(): void {
  relative(x64.CALL32, RELOC_STUB, STUB_ALLOCATE);
}

/** d = the address of the overflow buffer */
export function overflowBuffer(d: i32): void {
  loadContext(WIDE, d, CONTEXT_OVERFLOW);
}

/** Reads the poll page. */
export function poll(position: i32): void {
  faultSite(TRAP_INTERRUPTED, position);
  rip(x64.MOV_L, 0, R11);
  code.relocation(RELOC_POLL_PAGE, 0);
}

/** Emits the distance to the poll page: nothing to do, since the reading instruction contains it. */
export function pollDistance(): void {}

/** Reloads the length of memory 0 after a poll, at which the memory may have grown. */
export function afterPoll(): void {
  if ((load32(H_MODE) & MODE_EXPLICIT_BOUNDS) !== 0) rm(x64.MOV_L, 1, R14, R15, CONTEXT_MEMORIES + MEMORY_LENGTH_FIELD);
}

/** Compares a general register with memory at base + offset. */
export function compareMemory(wide: i32, a: i32, base: i32, offset: i32): void {
  rm(x64.CMP_R, wide, a, base, offset);
}

/** Compares a register with the 32 or 64 bits at `offset` in the context. */
export function compareContext(wide: i32, a: i32, offset: i32): void {
  rm(x64.CMP_R, wide, a, R15, offset);
}

/** d = 8 bytes at base + 8 × index */
export function loadElement(d: i32, base: i32, index: i32): void {
  rmx(x64.MOV_L, 1, d, base, index, 3, 0, 0);
}

export function storeElement(s: i32, base: i32, index: i32): void {
  rmx(x64.MOV_S, 1, s, base, index, 3, 0, 0);
}

/** Zeroes `count` homes from `home` on; changes rax, rcx and rdi. */
export function zeroHomes(home: i32, count: i32): void {
  rm(x64.LEA, 1, RDI, RSP, home);
  constant(RCX, count, 0, 0);
  rr(x64.XOR_R, 0, RAX, RAX);
  plain(x64.REP_STOSQ, 1);
}
