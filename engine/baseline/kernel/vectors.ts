/**
 * Vector instructions in live code. A result gets a register that differs from those of the operands, unless the
 * machine's instruction overwrites its first operand.
 */
import { reachMemory } from "./accesses.ts";
import * as machine from "./machine.ts";
import { type i32, load8, loadAny32 } from "./memory.ts";
import * as operands from "./operands.ts";
import * as op from "./operations.ts";
import { lane, literal } from "./reader.ts";
import { F32, F64, I32, I64, V128 } from "./types.ts";

/** Compiles an operation with `count` vector operands. */
export function emitVector(operation: i32, shape: i32, count: i32): void {
  if (count === 2 && machine.isTied(operation, shape)) {
    emitTied(operation, shape);
    return;
  }
  const c = count > 2 ? operands.popEntry() : 0;
  const b = count > 1 ? operands.popEntry() : 0;
  const a = operands.popEntry();
  const z = c === 0 ? 0 : operands.toRegister(c);
  const y = b === 0 ? 0 : operands.toRegister(b);
  const x = operands.toRegister(a);
  const d = operands.freshDestination(1, x, y, z);
  const t = operands.allocate(1);
  if (count === 1) machine.vectorUnary(operation, shape, d, x, t);
  else if (count === 2) machine.vectorBinary(operation, shape, d, x, y, t);
  else machine.vectorTernary(operation, shape, d, x, y, z, t);
  if (c !== 0) operands.release(c);
  if (b !== 0) operands.release(b);
  operands.release(a);
  operands.freeRegister(t);
  operands.pushRegister(V128, d);
}

function emitTied(operation: i32, shape: i32): void {
  const b = operands.popEntry();
  const a = operands.popEntry();
  const y = operands.toRegister(b);
  const x = operands.toRegister(a);
  const d = operands.tiedDestination(a, x, y);
  machine.move(1, d, x);
  machine.vectorTied(operation, shape, d, y);
  operands.release(b);
  operands.pushRegister(V128, d);
}

export function emitVectorShift(operation: i32, shape: i32): void {
  const c = operands.popEntry();
  const a = operands.popEntry();
  const count = operands.ownRegisterOf(c);
  const x = operands.toRegister(a);
  const d = operands.freshDestination(1, x, x, x);
  const t = operands.allocate(1);
  machine.vectorShift(operation, shape, d, x, count, t);
  operands.release(c);
  operands.release(a);
  operands.freeRegister(t);
  operands.pushRegister(V128, d);
}

export function emitVectorTest(operation: i32, shape: i32): void {
  const a = operands.popEntry();
  const x = operands.toRegister(a);
  const d = operands.allocate(0);
  const t = operands.allocate(1);
  machine.vectorTest(operation, shape, d, x, t);
  operands.freeRegister(t);
  operands.release(a);
  operands.pushRegister(I32, d);
}

export function emitSplat(shape: i32): void {
  const a = operands.popEntry();
  const x = operands.toRegister(a);
  const d = operands.freshDestination(1, x, x, x);
  machine.splat(shape, d, x);
  operands.release(a);
  operands.pushRegister(V128, d);
}

export function emitExtractLane(shape: i32, isSigned: i32): void {
  const a = operands.popEntry();
  const x = operands.toRegister(a);
  const d = operands.allocate(shape >= op.F32X4 ? 1 : 0);
  machine.extractLane(shape, isSigned, lane, d, x);
  operands.release(a);
  operands.pushRegister(laneType(shape), d);
}

function laneType(shape: i32): i32 {
  if (shape === op.F32X4) return F32;
  if (shape === op.F64X2) return F64;
  return shape === op.I64X2 ? I64 : I32;
}

export function emitReplaceLane(shape: i32): void {
  const b = operands.popEntry();
  const a = operands.popEntry();
  const s = operands.toRegister(b);
  const d = operands.ownRegisterOf(a);
  machine.replaceLane(shape, lane, d, s);
  operands.release(b);
  operands.pushRegister(V128, d);
}

export function emitConstant(): void {
  const d = operands.allocate(1);
  machine.vectorConstant(
    d,
    loadAny32(literal),
    loadAny32(literal + 4),
    loadAny32(literal + 8),
    loadAny32(literal + 12),
  );
  operands.pushRegister(V128, d);
}

/** Four bytes of the shuffle mask for the operand whose bytes begin at `first`; 0x80 selects 0. */
function maskWord(word: i32, first: i32): i32 {
  let mask: i32 = 0;
  for (let k: i32 = 0; k < 4; k++) {
    const from = load8(literal + word * 4 + k) - first;
    mask = mask | ((from >= 0 && from < 16 ? from : 0x80) << (k * 8));
  }
  return mask;
}

function loadMask(d: i32, first: i32): void {
  machine.vectorConstant(d, maskWord(0, first), maskWord(1, first), maskWord(2, first), maskWord(3, first));
}

export function emitShuffle(): void {
  const b = operands.popEntry();
  const a = operands.popEntry();
  const y = operands.toRegister(b);
  const x = operands.toRegister(a);
  const d = operands.freshDestination(1, x, y, y);
  const t = operands.allocate(1);
  loadMask(t, 0);
  machine.shuffleBytes(d, x, y, t);
  loadMask(t, 16);
  machine.shuffleRest(d, t);
  operands.release(b);
  operands.release(a);
  operands.freeRegister(t);
  operands.pushRegister(V128, d);
}

/** Compiles a load of 2^width bytes into a whole vector: extending, splatting or zero-filling. */
export function emitVectorLoad(operation: i32, shape: i32, width: i32): void {
  const address = operands.popEntry();
  const register = operands.toRegister(address);
  const d = operands.destination(1, address, 0);
  reachMemory(register, 1 << width);
  machine.loadVector(operation, shape, d);
  operands.pushRegister(V128, d);
}

export function emitLoadLane(shape: i32, width: i32): void {
  const value = operands.popEntry();
  const address = operands.popEntry();
  const register = operands.toRegister(address);
  const d = operands.ownRegisterOf(value);
  reachMemory(register, 1 << width);
  machine.loadLane(shape, lane, d);
  operands.release(address);
  operands.pushRegister(V128, d);
}

export function emitStoreLane(shape: i32, width: i32): void {
  const value = operands.popEntry();
  const address = operands.popEntry();
  const register = operands.toRegister(address);
  const s = operands.toRegister(value);
  machine.takeLane(shape, lane, s);
  reachMemory(register, 1 << width);
  machine.storeLane(shape, lane, s);
  operands.release(value);
  operands.release(address);
}
