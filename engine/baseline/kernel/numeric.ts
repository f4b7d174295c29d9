/**
 * Numeric instructions in live code. Operands have been checked; they are popped, and a result is pushed. Comparisons
 * stay in the flags if the next instruction consumes them.
 */
import * as cond from "./conditions.ts";
import * as machine from "./machine.ts";
import type { i32 } from "./memory.ts";
import * as operands from "./operands.ts";
import * as op from "./operations.ts";
import { instructionOffset, peekByte } from "./reader.ts";
import { bankOf, F64, I32, I64, isWide } from "./types.ts";

/** Opcode bytes of the instructions that can take their condition from the flags. */
const BR_IF_BYTE: i32 = 0x0d;
const IF_BYTE: i32 = 0x04;
const SELECT_BYTE: i32 = 0x1b;
const EQZ_BYTE: i32 = 0x45;

function isCommutative(operation: i32): boolean {
  return operation !== op.SUB;
}

function hasImmediate(entry: i32, wide: i32): boolean {
  return operands.isConstant(entry) &&
    machine.fitsImmediate(operands.constantLow(entry), operands.constantHigh(entry), wide);
}

export function emitBinary(operation: i32, type: i32): void {
  const wide = isWide(type);
  let b = operands.popEntry();
  let a = operands.popEntry();
  if (isCommutative(operation) && operands.isConstant(a)) {
    const c = a;
    a = b;
    b = c;
  }
  const x = operands.toRegister(a);
  if (hasImmediate(b, wide)) {
    const immediate = operands.constantLow(b);
    const d = operands.destination(0, a, 0);
    machine.binaryImmediate(operation, wide, d, x, immediate);
    operands.pushRegister(type, d);
    return;
  }
  const home = operands.readableHome(b);
  if (home >= 0) {
    const d = operands.destination(0, a, 0);
    machine.binaryHome(operation, wide, d, x, home);
    operands.pushRegister(type, d);
    return;
  }
  const y = operands.toRegister(b);
  const d = operands.destination(0, a, b);
  machine.binary(operation, wide, d, x, y);
  operands.pushRegister(type, d);
}

export function emitShift(operation: i32, type: i32): void {
  const wide = isWide(type);
  const b = operands.popEntry();
  const a = operands.popEntry();
  const x = operands.toRegister(a);
  if (operands.isConstant(b)) {
    const count = operands.constantLow(b) & (wide === 1 ? 63 : 31);
    const d = operands.destination(0, a, 0);
    machine.shiftImmediate(operation, wide, d, x, count);
    operands.pushRegister(type, d);
    return;
  }
  const y = operands.toRegister(b);
  const d = operands.destination(0, a, b);
  machine.shift(operation, wide, d, x, y);
  operands.pushRegister(type, d);
}

export function emitDivision(operation: i32, type: i32): void {
  const b = operands.popEntry();
  const a = operands.popEntry();
  operands.vacate(machine.divisionRegisters());
  const x = operands.toRegister(a);
  const y = operands.toRegister(b);
  // The operands may be in the division registers; no other value is.
  const d = machine.divide(operation, isWide(type), x, y, instructionOffset);
  operands.release(a);
  operands.release(b);
  operands.pushRegister(type, d);
}

/** The sum or difference of two pairs of i64, low halves first. */
export function emitWideSum(operation: i32): void {
  const d = operands.popEntry();
  const c = operands.popEntry();
  const b = operands.popEntry();
  const a = operands.popEntry();
  const z = operands.toRegister(d);
  const y = operands.toRegister(c);
  const high = operands.ownRegisterOf(b);
  const low = operands.ownRegisterOf(a);
  machine.wideSum(operation, low, high, y, z);
  operands.release(d);
  operands.release(c);
  operands.pushRegister(I64, low);
  operands.pushRegister(I64, high);
}

/** The product of two i64 as a pair. */
export function emitWideProduct(isSigned: i32): void {
  const b = operands.popEntry();
  const a = operands.popEntry();
  operands.vacate(machine.divisionRegisters());
  const x = operands.toRegister(a);
  const y = operands.toRegister(b);
  machine.wideProduct(isSigned, x, y);
  operands.release(a);
  operands.release(b);
  operands.pushRegister(I64, machine.PRODUCT_LOW);
  operands.pushRegister(I64, machine.PRODUCT_HIGH);
}

/**
 * Pushes the i32 value of a condition that the flags hold: in the flags if the next instruction consumes it, otherwise
 * in a register.
 */
function pushCondition(condition: i32): void {
  const next = peekByte();
  if (next === BR_IF_BYTE || next === IF_BYTE || next === SELECT_BYTE || next === EQZ_BYTE) {
    operands.pushFlags(condition);
    return;
  }
  const d = operands.destination(0, 0, 0);
  machine.setCondition(condition, d);
  operands.pushRegister(I32, d);
}

export function emitCompare(condition: i32, type: i32): void {
  const wide = isWide(type);
  let test = condition;
  let b = operands.popEntry();
  let a = operands.popEntry();
  if (operands.isConstant(a)) {
    const c = a;
    a = b;
    b = c;
    test = cond.swapped(test);
  }
  const x = operands.toRegister(a);
  const home = operands.readableHome(b);
  if (hasImmediate(b, wide)) machine.compareImmediate(wide, x, operands.constantLow(b));
  else if (home >= 0) machine.compareHome(wide, x, home);
  else machine.compare(wide, x, operands.toRegister(b));
  operands.release(a);
  operands.release(b);
  pushCondition(test);
}

export function emitEqz(type: i32): void {
  const a = operands.popEntry();
  const flags = operands.flagsOf(a);
  if (flags >= 0) {
    pushCondition(cond.opposite(flags));
    return;
  }
  machine.compareImmediate(isWide(type), operands.toRegister(a), 0);
  operands.release(a);
  pushCondition(cond.EQ);
}

/** Compiles an integer operation with an operand of type `type` and a result of type `result`. */
export function emitUnary(operation: i32, type: i32, result: i32): void {
  const a = operands.popEntry();
  const x = operands.toRegister(a);
  const d = operands.destination(0, a, 0);
  machine.unary(operation, isWide(type), d, x);
  operands.pushRegister(result, d);
}

export function emitFloatBinary(operation: i32, type: i32): void {
  const double = type === F64 ? 1 : 0;
  const b = operands.popEntry();
  const a = operands.popEntry();
  const x = operands.toRegister(a);
  const home = operation <= op.FDIV ? operands.readableHome(b) : -1;
  if (home >= 0) {
    const d = operands.destination(1, a, 0);
    machine.floatBinaryHome(operation, double, d, x, home);
    operands.pushRegister(type, d);
    return;
  }
  const y = operands.toRegister(b);
  const d = operands.destination(1, a, b);
  machine.floatBinary(operation, double, d, x, y);
  operands.pushRegister(type, d);
}

export function emitFloatUnary(operation: i32, type: i32): void {
  const a = operands.popEntry();
  const x = operands.toRegister(a);
  const d = operands.destination(1, a, 0);
  machine.floatUnary(operation, type === F64 ? 1 : 0, d, x);
  operands.pushRegister(type, d);
}

export function emitFloatCompare(operation: i32, type: i32): void {
  const b = operands.popEntry();
  const a = operands.popEntry();
  const x = operands.toRegister(a);
  const y = operands.toRegister(b);
  const double = type === F64 ? 1 : 0;
  if ((operation & op.SWAPPED) !== 0) machine.compareFloats(double, y, x);
  else machine.compareFloats(double, x, y);
  operands.release(a);
  operands.release(b);
  pushCondition(operation & ~op.SWAPPED);
}

/** Conversions between banks and between floats. */
export function emitConversion(operation: i32, type: i32, result: i32): void {
  const a = operands.popEntry();
  const x = operands.toRegister(a);
  const d = operands.destination(bankOf(result), a, 0);
  const fromDouble = type === F64 ? 1 : 0;
  const toDouble = result === F64 ? 1 : 0;
  switch (operation) {
    case op.TRUNC_S:
    case op.TRUNC_U:
      machine.truncate(operation === op.TRUNC_S ? 1 : 0, isWide(result), fromDouble, d, x, instructionOffset);
      break;
    case op.TRUNC_SAT_S:
    case op.TRUNC_SAT_U:
      machine.truncateSaturating(operation === op.TRUNC_SAT_S ? 1 : 0, isWide(result), fromDouble, d, x);
      break;
    case op.CONVERT_S:
    case op.CONVERT_U:
      machine.convertInteger(operation === op.CONVERT_S ? 1 : 0, isWide(type), toDouble, d, x);
      break;
    case op.REINTERPRET:
      machine.reinterpret(bankOf(type) === 1 ? isWide(result) : isWide(type), d, x);
      break;
    default:
      machine.convertFloat(toDouble, d, x);
  }
  operands.pushRegister(result, d);
}

/** `select` of operands of `type`. */
export function emitSelect(type: i32): void {
  const c = operands.popEntry();
  const b = operands.popEntry();
  const a = operands.popEntry();
  const bank = bankOf(type);
  let condition = operands.flagsOf(c);
  // The following loads preserve the flags.
  const y = operands.toRegister(b);
  const x = operands.toRegister(a);
  if (condition < 0) {
    machine.compareImmediate(0, operands.toRegister(c), 0);
    condition = cond.NE;
    operands.release(c);
  }
  operands.release(a);
  const d = operands.isTemporary(x) ? x : operands.allocate(bank);
  if (d === x) operands.claim(x);
  machine.move(isWide(type), d, x);
  if (bank === 0) machine.moveUnless(condition, isWide(type), d, y);
  else machine.moveVectorUnless(condition, d, y);
  operands.release(b);
  operands.pushRegister(type, d);
}
