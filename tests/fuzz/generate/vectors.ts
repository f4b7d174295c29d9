/**
 * Vector expressions and stores. In: the state of a body. Out: instructions.
 *
 * NaNs from arithmetic are canonicalized before other code uses the vector. Relaxed instructions get operands for which
 * the specification determines the result, so that every engine agrees.
 */
import { EXTRACTIONS, REPLACEMENTS, VECTOR_LOADS, VECTOR_OPS, type VectorOp } from "../vector_rows.ts";
import type { TypeName } from "../value_types.ts";
import type { Body } from "./body.ts";
import { address } from "./memories.ts";
import { canonical } from "./numbers.ts";
import { OP } from "./opcodes.ts";
import { isFloat } from "../value_types.ts";
import { leafConstant } from "./values.ts";

const MAKING = VECTOR_OPS.filter((op) => op.result === "v128");
const TESTING = VECTOR_OPS.filter((op) => op.result === "i32");
const FLOATING: Readonly<Record<string, readonly VectorOp[]>> = {
  f32: VECTOR_OPS.filter((op) => op.lanes === "f32"),
  f64: VECTOR_OPS.filter((op) => op.lanes === "f64"),
};
const UPDATES = MAKING.filter((op) => op.params.join() === "v128,v128" && op.lanes === undefined);

const PREFIX = 0xfd000;

/** A vector from a vector instruction; `load` requests one from memory. */
export function vector(b: Body, depth: number, load = false): void {
  const { random } = b;
  switch (load ? 7 : random.weighted([60, 12, 8, 6, 4, 6, 8])) {
    case 0: {
      const op = random.pick(MAKING);
      if (op.lanes !== undefined) return floating(b, op.lanes, depth);
      operands(b, op, depth);
      b.opcode(op.code);
      return b.mark("simd");
    }
    case 1:
      return shuffle(b, depth);
    case 2: {
      const { code, lanes, type } = random.pick(REPLACEMENTS);
      b.expression("v128", depth - 1);
      if (isFloat(type)) canonical(b, type, depth - 1);
      else b.expression(type, depth - 1);
      b.opcode(PREFIX + code).out.byte(random.below(lanes));
      return b.mark("simd");
    }
    case 3: {
      const type = random.pick(["f32", "f64"] as const);
      canonical(b, type, depth - 1);
      b.opcode(PREFIX + (type === "f32" ? 19 : 20));
      return b.mark("simd");
    }
    case 4:
      return loadLane(b, depth);
    case 5:
      return floating(b, random.pick(["f32", "f64"]), depth);
    case 6:
      return relaxed(b, depth);
    default: {
      if (random.chance(15)) return loadLane(b, depth);
      const { code, align } = random.pick(VECTOR_LOADS);
      const memory = b.memory()!;
      const { offset } = address(b, depth, 1 << align, memory);
      b.access(PREFIX + code, align, offset, memory);
      b.mark("simd");
    }
  }
}

function operands(b: Body, op: VectorOp, depth: number): void {
  op.params.forEach((type, i) => {
    if (i > 0 && b.random.chance(25)) leafConstant(b, type);
    else b.expression(type, depth - 1);
  });
}

/** Nested float arithmetic whose result's NaNs are canonicalized. */
function floating(b: Body, lanes: "f32" | "f64", depth: number): void {
  chain(b, lanes, depth);
  const scratch = b.scratch["v128"] ??= b.newLocal("v128", false);
  b.out.byte(OP.localTee).u32(scratch);
  b.opcode(PREFIX + 12);
  const nan = lanes === "f32" ? [0, 0, 0xc0, 0x7f] : [0, 0, 0, 0, 0, 0, 0xf8, 0x7f];
  for (let i = 0; i < 16; i += nan.length) b.out.bytes(nan);
  b.get(scratch);
  b.get(scratch);
  b.opcode(PREFIX + (lanes === "f32" ? 65 : 71)).opcode(PREFIX + 82);
  b.mark("simd");
}

function chain(b: Body, lanes: "f32" | "f64", depth: number): void {
  const op = b.random.pick(FLOATING[lanes]);
  op.params.forEach((type) => {
    const same = op.code !== PREFIX + 94 && op.code !== PREFIX + 95;
    if (depth > 1 && same && b.random.chance(45)) chain(b, lanes, depth - 1);
    else b.expression(type, depth - 1);
  });
  b.opcode(op.code);
}

/** A shuffle, usually of a shape that compilers recognise. */
function shuffle(b: Body, depth: number): void {
  const { random } = b;
  b.expression("v128", depth - 1);
  if (random.chance(30)) leafConstant(b, "v128");
  else b.expression("v128", depth - 1);
  b.opcode(PREFIX + 13);
  const lanes: number[] = [];
  const width = random.pick([1, 1, 2, 4, 8]);
  const shape = random.below(6);
  const shift = random.below(17);
  const from = random.below(32 / width);
  for (let i = 0; i < 16; i++) {
    const group = Math.floor(i / width);
    const inside = i % width;
    const groups = 16 / width;
    let source: number;
    if (shape === 0) source = i + shift; // a window over both operands
    else if (shape === 1) source = (group % 2 === 0 ? 0 : 16) + Math.floor(group / 2) * width + inside; // interleaved
    else if (shape === 2) source = 8 + (group % 2 === 0 ? 0 : 16) + Math.floor(group / 2) * width + inside;
    else if (shape === 3) source = from * width + inside; // one element in all positions
    else if (shape === 4) source = (groups - 1 - group) * width + inside; // reversed
    else source = random.below(inside === 0 ? 32 / width : 1) * width + inside;
    if (shape === 5 && inside > 0) source = lanes[i - 1] + 1;
    lanes.push(source & 31);
  }
  if (random.chance(15)) lanes[random.below(16)] = random.below(32);
  b.out.bytes(lanes);
  b.mark("simd");
}

function loadLane(b: Body, depth: number): void {
  const memory = b.memory();
  if (memory === undefined) return b.expression("v128", depth - 1);
  const align = b.random.below(4);
  const { offset } = address(b, depth, 1 << align, memory);
  b.expression("v128", depth - 1);
  laneAccess(b, 84 + align, align, offset, memory);
}

/** Writes a lane access, and its marks after the lane immediate. */
function laneAccess(b: Body, code: number, align: number, offset: number | bigint, memory: number): void {
  b.opcode(PREFIX + code);
  if (memory > 0) b.out.u32(align | 0x40).u32(memory);
  else b.out.u32(align);
  b.out.u64(offset).byte(b.random.below(16 >> align));
  b.markMemory(memory);
  b.mark("simd");
}

/** Vectors whose float lanes are small integers, so that products and sums are exact. */
function small(b: Body, lanes: "f32" | "f64", depth: number): void {
  b.expression("v128", depth - 1);
  b.opcode(PREFIX + 12);
  for (let i = 0; i < 4; i++) b.out.bytes([0xff, 0x03, 0, 0]);
  b.opcode(PREFIX + 78); // and
  b.opcode(PREFIX + (lanes === "f32" ? 250 : 254)); // converted
}

/** A vector masked to the bits of `mask`. */
function masked(b: Body, mask: readonly number[], depth: number): void {
  b.expression("v128", depth - 1);
  b.opcode(PREFIX + 12);
  for (let i = 0; i < 16; i++) b.out.byte(mask[i % mask.length]);
  b.opcode(PREFIX + 78);
}

/** A mask of whole lanes from a comparison: `width` 0 … 3. */
function wholeLanes(b: Body, width: number, depth: number): void {
  b.expression("v128", depth - 1);
  b.expression("v128", depth - 1);
  b.opcode(PREFIX + [37, 47, 57, 216][width]); // lt_s
}

function relaxed(b: Body, depth: number): void {
  const { random } = b;
  const kind = random.below(8);
  const float = random.pick(["f32", "f64"] as const);
  const wide = float === "f64" ? 1 : 0;
  switch (kind) {
    case 0: // swizzle: indices 0 … 15 or with the high bit
      b.expression("v128", depth - 1);
      masked(b, random.chance(50) ? [0x0f] : [0x8f], depth);
      b.opcode(PREFIX + 0x100);
      break;
    case 1: { // truncation of values in range
      const unsigned = random.below(2);
      small(b, float, depth);
      b.opcode(PREFIX + 0x101 + wide * 2 + unsigned);
      break;
    }
    case 2: // madd, nmadd
      for (let i = 0; i < 3; i++) small(b, float, depth - 1);
      b.opcode(PREFIX + 0x105 + wide * 2 + random.below(2));
      break;
    case 3: { // laneselect
      const width = random.below(4);
      b.expression("v128", depth - 1);
      b.expression("v128", depth - 1);
      wholeLanes(b, width, depth);
      b.opcode(PREFIX + 0x109 + width);
      break;
    }
    case 4: // min, max without NaNs or zeros of both signs
      small(b, float, depth);
      small(b, float, depth);
      b.opcode(PREFIX + 0x10d + wide * 2 + random.below(2));
      break;
    case 5: // q15mulr without two operands of the minimum value
      b.expression("v128", depth - 1);
      masked(b, [0xff, 0x7f], depth);
      b.opcode(PREFIX + 0x111);
      break;
    default: // dot with 7 bits
      b.expression("v128", depth - 1);
      masked(b, [0x7f], depth);
      if (kind === 6) b.opcode(PREFIX + 0x112);
      else {
        b.expression("v128", depth - 1);
        b.opcode(PREFIX + 0x113);
      }
  }
  b.mark("simd");
}

/** A number from a vector: a lane or a test. */
export function vectorTest(b: Body, type: TypeName, depth: number): void {
  const { random } = b;
  if (type === "i32" && random.chance(45)) {
    b.expression("v128", depth - 1);
    b.opcode(random.pick(TESTING).code);
    return b.mark("simd");
  }
  const { code, lanes } = random.pick(EXTRACTIONS.filter((e) => e.type === type));
  b.expression("v128", depth - 1);
  b.opcode(PREFIX + code).out.byte(random.below(lanes));
  b.mark("simd");
}

/** A store of a vector or of one of its lanes. */
export function vectorStore(b: Body, depth: number): void {
  const memory = b.memory()!;
  if (b.random.chance(70)) {
    const { offset } = address(b, depth, 16, memory);
    b.expression("v128", depth - 1);
    b.access(PREFIX + 11, 4, offset, memory);
    return b.mark("simd");
  }
  const align = b.random.below(4);
  const { offset } = address(b, depth, 1 << align, memory);
  b.expression("v128", depth - 1);
  laneAccess(b, 88 + align, align, offset, memory);
}

/** An in-place update of a local or global vector. */
export function vectorUpdate(b: Body, global: boolean, index: number, depth: number): void {
  b.out.byte(global ? OP.globalGet : OP.localGet).u32(index);
  b.expression("v128", depth - 1);
  b.opcode(b.random.pick(UPDATES).code);
  b.out.byte(global ? OP.globalSet : OP.localSet).u32(index);
  b.mark("simd");
}
