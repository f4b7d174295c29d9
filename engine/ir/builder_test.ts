/**
 * Simplification changes no result: random expressions built plainly and through the builder; and each rule does apply.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { Builder } from "./builder.ts";
import { IrFunction } from "./function.ts";
import { interpret, TrapSignal, type World } from "./testing/interpret.ts";
import { FLAG, OP, OP_FLAGS, type OpName } from "./ops.ts";
import { printFunction } from "./print.ts";
import { TY } from "./types.ts";
import { verifyFunction } from "./verify.ts";

const { I32, I64, F64 } = TY;
const VALUES = [
  0n,
  1n,
  2n,
  0xffffffffffffffffn,
  0x80000000n,
  0x8000000000000000n,
  0x7fffffffn,
  0x123456789abcdef0n,
  0xffffff80n,
  255n,
];
const CONSTANTS = [
  0,
  1,
  -1,
  2,
  3,
  4,
  5,
  7,
  8,
  16,
  24,
  31,
  32,
  33,
  48,
  56,
  63,
  255,
  256,
  65535,
  -8,
  0x7fffffff,
  -0x80000000,
];
const BINARY: readonly OpName[] = ["ADD", "SUB", "MUL", "AND", "OR", "XOR", "SHL", "SHR_S", "SHR_U", "ROTL", "ROTR"];
const DIVIDE: readonly OpName[] = ["DIV_S", "DIV_U", "REM_S", "REM_U"];
const COMPARE: readonly OpName[] = ["EQ", "NE", "LT_S", "LT_U", "GT_S", "GT_U", "LE_S", "LE_U", "GE_S", "GE_U"];
const UNARY: readonly OpName[] = ["CLZ", "CTZ", "POPCNT", "EXTEND8_S", "EXTEND16_S"];
const CONTEXT_SIZE = 64;

/** A world with only a context to load from. */
function world(): World {
  const context = new DataView(new ArrayBuffer(CONTEXT_SIZE));
  for (let k = 0; k < CONTEXT_SIZE; k++) context.setUint8(k, k * 37 + 200);
  const none = () => {
    throw new Error("unexpected");
  };
  return {
    contextAddress: 0x1000,
    context,
    steps: 100_000,
    memory0: none,
    memoryLength: none,
    resolve: none,
    call: none,
    callRecord: none,
    callImport: none,
    callBuiltin: none,
  };
}

/** Something to build expressions with: the builder, or plain emission. */
interface Maker {
  constant(ty: number, value: number): number;
  unary(op: number, ty: number, a: number): number;
  binary(op: number, ty: number, a: number, b: number): number;
  divide(op: number, ty: number, a: number, b: number): number;
  select(ty: number, a: number, b: number, c: number): number;
}

function plainMaker(b: Builder): Maker {
  return {
    constant: (ty, value) => b.emit(OP.CONST, ty, 0, 0, ty === I64 ? value >> 31 : 0, value),
    unary: (op, ty, a) => b.emit(op, ty, a, 0, 0, 0),
    binary: (op, ty, x, y) => b.emit(op, ty, x, y, 0, 0),
    divide: (op, ty, x, y) => b.emit(op, ty, x, y, 0, op === OP.DIV_S || op === OP.REM_S ? 3 : 1),
    select: (ty, x, y, c) => b.emit(OP.SELECT, ty, x, y, c, 0),
  };
}

function simplifyingMaker(b: Builder): Maker {
  return {
    constant: (ty, value) => b.constant(ty, value, value >> 31),
    unary: (op, ty, a) => b.unary(op, ty, a),
    binary: (op, ty, x, y) => b.binary(op, ty, x, y),
    divide: (op, ty, x, y) => b.divide(op, ty, x, y),
    select: (ty, x, y, c) => b.select(ty, x, y, c),
  };
}

function generator(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) % below;
  };
}

/** Builds one random expression tree of type `ty`. */
function grow(
  make: Maker,
  b: Builder,
  params: readonly number[],
  ty: number,
  depth: number,
  random: (n: number) => number,
): number {
  const pick = (list: readonly OpName[]) => OP[list[random(list.length)]];
  const inner = (of: number) => grow(make, b, params, of, depth - 1, random);
  const narrow = ty === I32;
  if (depth <= 0) {
    return random(3) === 0
      ? make.constant(ty, CONSTANTS[random(CONSTANTS.length)])
      : params[(narrow ? 0 : 2) + random(2)];
  }
  switch (random(11)) {
    case 0:
      return make.constant(ty, CONSTANTS[random(CONSTANTS.length)]);
    case 1:
      return make.unary(pick(UNARY), ty, inner(ty));
    case 2: {
      if (narrow) return make.unary(OP.WRAP, I32, inner(I64));
      if (random(4) === 0) return make.unary(OP.EXTEND32_S, I64, inner(I64));
      return make.unary(random(2) === 0 ? OP.EXTEND_U : OP.EXTEND_S, I64, inner(I32));
    }
    case 3:
      return make.select(ty, inner(ty), inner(ty), inner(I32));
    case 4:
      return make.divide(pick(DIVIDE), ty, inner(ty), make.constant(ty, CONSTANTS[random(CONSTANTS.length)]));
    case 5:
    case 6: {
      if (!narrow) return make.binary(pick(BINARY), ty, inner(ty), inner(ty));
      const of = random(2) === 0 ? I32 : I64;
      const right = random(2) === 0 ? make.constant(of, random(2)) : inner(of);
      return make.binary(pick(COMPARE), I32, inner(of), right);
    }
    case 7: {
      const loads = [OP.LOAD8_S, OP.LOAD8_U, OP.LOAD16_S, OP.LOAD16_U];
      return b.emit(loads[random(4)], ty, 0, 0, 1, random(CONTEXT_SIZE - 2));
    }
    case 8: {
      // A shift to the left and back by the same count.
      const count = make.constant(ty, CONSTANTS[random(CONSTANTS.length)]);
      return make.binary(random(2) === 0 ? OP.SHR_S : OP.SHR_U, ty, make.binary(OP.SHL, ty, inner(ty), count), count);
    }
    default:
      return make.binary(
        pick(BINARY),
        ty,
        inner(ty),
        random(2) === 0 ? make.constant(ty, CONSTANTS[random(CONSTANTS.length)]) : inner(ty),
      );
  }
}

function buildFunction(seed: number, simplify: boolean): IrFunction {
  const f = new IrFunction();
  f.reset(256);
  f.signature = { params: Uint8Array.of(I32, I32, I64, I64), results: Uint8Array.of(I32, I64) };
  const b = new Builder(f);
  b.reset(f);
  b.openBlock(0, false);
  const params = [I32, I32, I64, I64].map((ty) => b.param(ty));
  const make = simplify ? simplifyingMaker(b) : plainMaker(b);
  const random = generator(seed);
  const results = [I32, I64].map((ty) => grow(make, b, params, ty, 5, random));
  const list = f.allocPool(2);
  results.forEach((value, n) => f.pool[list + n] = value);
  b.emit(OP.RETURN, TY.NONE, list, 2, 0, 0);
  b.closeBlock();
  verifyFunction(f);
  return f;
}

function outcome(f: IrFunction, args: bigint[]): string {
  try {
    return interpret(f, args, world()).join(" ");
  } catch (error) {
    if (error instanceof TrapSignal) return `trap ${error.code}`;
    throw error;
  }
}

Deno.test("simplified expressions have the results and traps of plain ones", () => {
  let smaller = 0;
  for (let seed = 1; seed <= 1500; seed++) {
    const plain = buildFunction(seed, false);
    const simplified = buildFunction(seed, true);
    if (simplified.count < plain.count) smaller++;
    for (let n = 0; n < 6; n++) {
      const value = (k: number) => VALUES[(seed + n * 3 + k * 5) % VALUES.length];
      const args = [value(0) & 0xffffffffn, value(1) & 0xffffffffn, value(2), value(3)];
      equal(outcome(simplified, args), outcome(plain, args), `seed ${seed}, ${args}`);
    }
  }
  ok(smaller > 600, `only ${smaller} functions got smaller`);
});

/** The builder's result for an expression over x (i32), y (i64), z (f64). */
function built(make: (b: Builder, x: number, y: number, z: number) => number): string {
  const f = new IrFunction();
  f.reset(64);
  const b = new Builder(f);
  b.reset(f);
  b.openBlock(0, false);
  const [x, y, z] = [I32, I64, F64].map((ty) => b.param(ty)) as [number, number, number];
  const value = make(b, x, y, z);
  f.signature = { params: Uint8Array.of(I32, I64, F64), results: Uint8Array.of(f.ty[value]) };
  const list = f.allocPool(1);
  f.pool[list] = value;
  b.emit(OP.RETURN, TY.NONE, list, 1, 0, 0);
  b.closeBlock();
  verifyFunction(f);
  return describe(f, value);
}

/** `(ADD x 5)`: the expression of a value, parameters by letter. */
function describe(f: IrFunction, value: number): string {
  const op = f.op[value];
  if (op === OP.PARAM) return "xyz"[f.imm[value]];
  if (op === OP.CONST) {
    return f.ty[value] === I64 && f.c[value] !== f.imm[value] >> 31
      ? `${f.c[value]}:${f.imm[value]}`
      : String(f.imm[value]);
  }
  const name = printFunction(f).match(new RegExp(`v${value}:\\S+ = (\\w+)`))![1];
  const operands = [f.a[value], f.b[value], f.c[value]].filter((v) => v > 0).map((v) => describe(f, v));
  return `(${[name, ...operands].join(" ")}${
    f.imm[value] && (OP_FLAGS[op] & FLAG.TRAPS) !== 0 ? ` #${f.imm[value]}` : ""
  })`;
}

for (
  const [name, make, expected] of [
    ["addition of zero", (b, x) => b.binary(OP.ADD, I32, x, b.i32(0)), "x"],
    ["constants go to the right", (b, x) => b.binary(OP.ADD, I32, b.i32(3), x), "(ADD x 3)"],
    ["sums of constants", (b, x) => b.binary(OP.ADD, I32, b.binary(OP.ADD, I32, x, b.i32(3)), b.i32(4)), "(ADD x 7)"],
    ["subtraction of a constant", (b, x) => b.binary(OP.SUB, I32, x, b.i32(3)), "(ADD x -3)"],
    ["multiplication by a power of two", (b, _x, y) => b.binary(OP.MUL, I64, y, b.i64(0, 4)), "(SHL y 34)"],
    ["multiplication by −1", (b, x) => b.binary(OP.MUL, I32, x, b.i32(-1)), "(SUB 0 x)"],
    ["unsigned division by a power", (b, x) => b.divide(OP.DIV_U, I32, x, b.i32(8)), "(SHR_U x 3)"],
    ["unsigned remainder by a power", (b, x) => b.divide(OP.REM_U, I32, x, b.i32(8)), "(AND x 7)"],
    [
      "signed division by two",
      (b, x) => b.divide(OP.DIV_S, I32, x, b.i32(2)),
      "(SHR_S (ADD x (SHR_U (SHR_S x 31) 31)) 1)",
    ],
    ["division by a constant cannot trap", (b, x) => b.divide(OP.DIV_S, I32, x, b.i32(7)), "(DIV_S x 7)"],
    ["division by −1 can overflow", (b, x) => b.divide(OP.DIV_S, I32, x, b.i32(-1)), "(DIV_S x -1 #2)"],
    ["division by zero traps", (b, x) => b.divide(OP.REM_S, I32, x, b.i32(0)), "(REM_S x 0 #1)"],
    ["a dividend that cannot overflow", (b, x) => b.divide(OP.DIV_S, I32, b.i32(9), x), "(DIV_S 9 x #1)"],
    ["eqz of a comparison", (b, x) => b.eqz(b.binary(OP.LT_S, I32, x, b.i32(9))), "(GE_S x 9)"],
    ["eqz of eqz of eqz", (b, _x, y) => b.eqz(b.eqz(b.eqz(y))), "(EQ y 0)"],
    ["eqz of a float comparison", (b, _x, _y, z) => b.eqz(b.binary(OP.FLT, I32, z, z)), "(EQ (FLT z z) 0)"],
    ["eqz of float equality", (b, _x, _y, z) => b.eqz(b.binary(OP.FEQ, I32, z, z)), "(FNE z z)"],
    ["unsigned comparison with zero", (b, x) => b.binary(OP.GT_U, I32, x, b.i32(0)), "(NE x 0)"],
    ["a constant compared with a value", (b, x) => b.binary(OP.LT_U, I32, b.i32(7), x), "(GT_U x 7)"],
    ["wrap of an extension", (b, x) => b.unary(OP.WRAP, I32, b.unary(OP.EXTEND_U, I64, x)), "x"],
    ["wrap of a masked value", (b, _x, y) => b.unary(OP.WRAP, I32, b.binary(OP.AND, I64, y, b.i64(-1, 0))), "(WRAP y)"],
    [
      "a mask after a shift",
      (b, x) => b.binary(OP.AND, I32, b.binary(OP.SHR_U, I32, x, b.i32(24)), b.i32(255)),
      "(SHR_U x 24)",
    ],
    [
      "a mask of a comparison",
      (b, x) => b.binary(OP.AND, I32, b.binary(OP.EQ, I32, x, b.i32(5)), b.i32(1)),
      "(EQ x 5)",
    ],
    [
      "a mask of an extension",
      (b, x) => b.binary(OP.AND, I64, b.unary(OP.EXTEND_U, I64, x), b.i64(-1, 0)),
      "(EXTEND_U x)",
    ],
    [
      "shifts that extend",
      (b, x) => b.binary(OP.SHR_S, I32, b.binary(OP.SHL, I32, x, b.i32(24)), b.i32(24)),
      "(EXTEND8_S x)",
    ],
    [
      "a select of a boolean",
      (b, x) => b.select(I32, b.i32(0), b.i32(1), b.binary(OP.EQ, I32, x, b.i32(5))),
      "(NE x 5)",
    ],
    ["a select on eqz", (b, x, y) => b.select(I64, y, b.i64(1, 0), b.eqz(x)), "(SELECT 1 y x)"],
    [
      "arithmetic NaN is not folded",
      (b) => b.binary(OP.FADD, F64, b.constant(F64, 1, 0x7ff00000), b.constant(F64, 0, 0)),
      "(FADD 1 0)",
    ],
    ["float constants fold", (b) => b.unary(OP.TRUNC_S, I32, b.constant(F64, 0, 0x40080000)), "3"],
    ["a truncation that traps is kept", (b) => b.unary(OP.TRUNC_S, I32, b.constant(F64, 0, 0x7ff80000)), "(TRUNC_S 0)"],
    [
      "the same value twice",
      (b, x) => b.binary(OP.XOR, I32, b.binary(OP.ADD, I32, x, x), b.binary(OP.ADD, I32, x, x)),
      "0",
    ],
  ] as readonly [string, (b: Builder, x: number, y: number, z: number) => number, string][]
) {
  Deno.test(`builder: ${name}`, () => equal(built(make), expected));
}

Deno.test("builder: conditions lose their comparisons with zero", () => {
  const f = new IrFunction();
  f.reset(64);
  const b = new Builder(f);
  b.reset(f);
  b.openBlock(0, false);
  const x = b.param(I32);
  const eqz = b.pure(OP.EQ, I32, x, b.i32(0), 0, 0);
  const twice = b.pure(OP.EQ, I32, eqz, b.i32(0), 0, 0);
  deepEqual([b.condition(x), b.condition(eqz), b.condition(twice)], [x, -x, x]);
});
