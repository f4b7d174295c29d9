/**
 * Values without subexpressions: locals, globals, constants, new objects; and the consumption of values. In: the state
 * of a body. Out: instructions.
 */
import type { TypeName } from "../value_types.ts";
import type { Body } from "./body.ts";
import { OP } from "./opcodes.ts";

const NUMBERS: readonly TypeName[] = ["i32", "i64", "f32", "f64"];

/** A value without subexpressions: a local, a global, a constant, a new object. */
export function leaf(b: Body, type: TypeName): void {
  const random = b.random;
  if (random.chance(12)) {
    const globals = b.plan.globals.flatMap((g, i) => b.matches(g.type, type) ? [i] : []);
    if (globals.length > 0) {
      b.out.byte(OP.globalGet).u32(random.pick(globals));
      return;
    }
  }
  const locals = b.readable(type);
  if (locals.length > 0 && random.chance(75)) return b.get(random.pick(locals));
  leafConstant(b, type);
}

export function leafConstant(b: Body, type: TypeName): void {
  const random = b.random;
  switch (type) {
    case "i32":
      b.out.byte(0x41).s32(random.i32());
      return;
    case "i64":
      b.out.byte(0x42).s64(random.i64());
      return;
    case "f32":
      b.out.byte(0x43).f32(random.float(true));
      return;
    case "f64":
      b.out.byte(0x44).f64(random.float(false));
      return;
    case "v128":
      return vectorConstant(b);
    default:
      return b.construct(type, 0);
  }
}

/** A constant vector: zero, ones, equal lanes or anything. */
function vectorConstant(b: Body): void {
  const random = b.random;
  b.opcode(0xfd00c);
  const bytes = new Uint8Array(16);
  switch (random.below(5)) {
    case 0:
      break;
    case 1:
      bytes.fill(255);
      break;
    case 2: {
      const width = random.pick([1, 2, 4, 8]);
      for (let i = 0; i < width; i++) bytes[i] = random.bits();
      for (let i = width; i < 16; i++) bytes[i] = bytes[i - width];
      break;
    }
    case 3: {
      const lanes = new Int32Array(bytes.buffer);
      for (let i = 0; i < 4; i++) lanes[i] = random.i32();
      break;
    }
    default:
      for (let i = 0; i < 16; i++) bytes[i] = random.pick([0, 1, 127, 128, 255, random.bits() & 255]);
  }
  b.out.bytes(bytes);
}

/** Consumes `results` from the stack. */
export function consume(b: Body, results: readonly TypeName[]): void {
  const stack = results.slice();
  while (stack.length > 0) {
    const type = stack.pop()!;
    if (stack.length > 0 && stack[stack.length - 1] === type && NUMBERS.includes(type) && b.random.chance(40)) {
      b.opcode({ i32: 0x6a, i64: 0x7d, f32: 0x92, f64: 0xa1 }[type as "i32"]);
      continue;
    }
    const locals = b.settable(type);
    if (locals.length > 0 && b.random.chance(80)) {
      b.out.byte(OP.localSet).u32(b.random.pick(locals));
    } else b.out.byte(OP.drop);
  }
  b.impure++;
}
