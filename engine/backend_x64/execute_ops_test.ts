/**
 * Every operation of the IR at every width, compiled and run: operands in registers, as constants on either side and
 * from memory, results as values, conditions of branches, selects and traps. The oracle is ir/testing/interpret.ts.
 */
import { equal } from "node:assert/strict";
import { STATUS } from "../abi/context_layout.ts";
import type { IrFunction } from "../ir/function.ts";
import { interpret, TrapSignal, type World } from "../ir/testing/interpret.ts";
import { OP_ROWS, type OpRow } from "../ir/ops.ts";
import { parseFunction } from "../ir/parse.ts";
import { BASELINE, compileIr, type CompileSettings, MODERN } from "./testing/compile_ir.ts";
import { CAN_RUN, MEMORY_BYTES, NativeProcess } from "./testing/native_process.ts";

const process = CAN_RUN ? new NativeProcess() : undefined;

/** Deterministic random numbers (mulberry32). */
function random(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
}

const INTERESTING: Readonly<Record<string, readonly bigint[]>> = {
  i32: [
    0n,
    1n,
    2n,
    7n,
    8n,
    31n,
    32n,
    33n,
    0x7fn,
    0x80n,
    0xffn,
    0x7fffn,
    0x8000n,
    0xffffn,
    0x7fffffffn,
    0x80000000n,
    0xffffffffn,
    0xfffffff8n,
  ],
  i64: [
    0n,
    1n,
    31n,
    32n,
    63n,
    64n,
    0x80n,
    0xffn,
    0xffffn,
    0x7fffffffn,
    0x80000000n,
    0xffffffffn,
    0x100000000n,
    0x7fffffffffffffffn,
    0x8000000000000000n,
    0xffffffffffffffffn,
    0xffffffff80000000n,
  ],
  f32: [
    0x0n,
    0x80000000n,
    0x3f800000n,
    0xbf800000n,
    0x3f000000n,
    0xbf000000n,
    0x40200000n,
    0x7f800000n,
    0xff800000n,
    0x7fc00000n,
    0xffc12345n,
    0x7fa00001n,
    0x1n,
    0x7f7fffffn,
    0x4f000000n,
    0xcf000000n,
    0xcf000001n,
    0x4f7fffffn,
    0x4f800000n,
    0x5f000000n,
    0xdf000000n,
    0x5f7fffffn,
    0x5f800000n,
    0xbf7fffffn,
  ],
  f64: [
    0x0n,
    0x8000000000000000n,
    0x3ff0000000000000n,
    0xbff0000000000000n,
    0x3fe0000000000000n,
    0xbfefffffffffffffn,
    0x4004000000000000n,
    0x7ff0000000000000n,
    0xfff0000000000000n,
    0x7ff8000000000000n,
    0xfff8000012345678n,
    0x7ff4000000000001n,
    0x1n,
    0x41dfffffffc00000n,
    0x41e0000000000000n,
    0x41dfffffffffffffn,
    0xc1e0000000000000n,
    0xc1e0000000200000n,
    0xc1e00000001fffffn,
    0x41efffffffe00000n,
    0x41f0000000000000n,
    0x43e0000000000000n,
    0xc3e0000000000000n,
    0x43efffffffffffffn,
    0x43f0000000000000n,
  ],
};

const WIDTH: Readonly<Record<string, bigint>> = { i32: 32n, i64: 64n, f32: 32n, f64: 64n };
const BYTES: Readonly<Record<string, number>> = { i32: 4, i64: 8, f32: 4, f64: 8 };
const LETTERS: Readonly<Record<string, string>> = { i: "i32", I: "i64", f: "f32", F: "f64" };

interface Shape {
  row: OpRow;
  /** Types of the operands and the result. */
  from: string;
  to: string;
}

/** The operations under test with their types. */
function shapes(): Shape[] {
  const found: Shape[] = [];
  for (const row of OP_ROWS) {
    const { name } = row;
    const of = (from: string[], to?: string[]) =>
      from.forEach((ty, k) => found.push({ row, from: ty, to: to?.[k] ?? LETTERS[row.result] ?? ty }));
    const integers = ["i32", "i64"];
    const floats = ["f32", "f64"];
    if (
      /^(ADD|SUB|MUL|AND|OR|XOR|SHL|SHR_S|SHR_U|ROTL|ROTR|CLZ|CTZ|POPCNT|DIV_S|DIV_U|REM_S|REM_U|EXTEND8_S|EXTEND16_S)$/
        .test(name)
    ) of(integers);
    else if (/^(EQ|NE|[LG][TE]_[SU])$/.test(name)) of(integers);
    else if (
      /^F(ADD|SUB|MUL|DIV|MIN|MAX|COPYSIGN|ABS|NEG|SQRT|CEIL|FLOOR|TRUNC|NEAREST|EQ|NE|LT|GT|LE|GE)$/.test(name)
    ) of(floats);
    else if (name === "EXTEND32_S" || name === "WRAP") of(["i64"]);
    else if (name === "EXTEND_S" || name === "EXTEND_U") of(["i32"]);
    else if (name === "FDEMOTE") of(["f64"]);
    else if (name === "FPROMOTE") of(["f32"]);
    else if (name.startsWith("CONVERT_")) of(["i32", "i32", "i64", "i64"], ["f32", "f64", "f32", "f64"]);
    else if (name.startsWith("TRUNC_")) of(["f32", "f64", "f32", "f64"], ["i32", "i32", "i64", "i64"]);
    else if (name === "BITCAST") of(["i32", "f32", "i64", "f64"], ["f32", "i32", "f64", "i64"]);
  }
  return found;
}

function constant(ty: string, value: bigint): string {
  return ty.startsWith("f") ? "0x" + value.toString(16) : BigInt.asIntN(Number(WIDTH[ty]), value).toString();
}

/** A variant: the function's text, and which of the two operand values the arguments and the memory take. */
interface Variant {
  f: IrFunction;
  shape: Shape;
  /** Parameter types; the last one may be the address of operand memory. */
  params: string[];
  memoryOperand: number;
}

/** The functions to try for one operation. */
function variants(shape: Shape): Variant[] {
  const { row, from, to } = shape;
  const all: Variant[] = [];
  const binary = row.operands.startsWith("vv");
  const flags = row.name.startsWith("DIV_S") || row.name.startsWith("REM_S")
    ? " zero overflow"
    : row.name.startsWith("DIV_U") || row.name.startsWith("REM_U")
    ? " zero"
    : "";
  const add = (params: string[], result: string, body: string, memoryOperand = -1) => {
    const text = `func 0 (${params.join(" ")}) -> (${result})\nb0(${
      params.map((ty, i) => `v${i + 1}:${ty}`).join(" ")
    }):\n${body}`;
    all.push({ f: parseFunction(text), shape, params, memoryOperand });
  };
  if (!binary) {
    add([from], to, `  v9:${to} = ${row.name} v1\n  RETURN (v9)\n`);
    add(["i32"], to, `  v8:${from} = LOAD memory0[v1+16]\n  v9:${to} = ${row.name} v8\n  RETURN (v9)\n`, 0);
    return all;
  }
  const op = (a: string, b: string) => `  v9:${to} = ${row.name} ${a} ${b}${flags}\n`;
  add([from, from], to, op("v1", "v2") + "  RETURN (v9)\n");
  add([from], to, op("v1", "v1") + "  RETURN (v9)\n");
  add([from, "i32"], to, `  v8:${from} = LOAD memory0[v2+16]\n` + op("v1", "v8") + "  RETURN (v9)\n", 1);
  add([from, "i32"], to, `  v8:${from} = LOAD memory0[v2+16]\n` + op("v8", "v1") + "  RETURN (v9)\n", 1);
  // Both operands live on.
  add([from, from], `${to} ${from} ${from}`, op("v1", "v2") + "  RETURN (v9 v1 v2)\n");
  INTERESTING[from].forEach((value, k) => {
    const other = k % 2 === 0 ? op("v7", "v8") : op("v8", "v7");
    const load = `  v7:${from} = LOAD memory0[v1+16]\n  v8:${from} = CONST ${constant(from, value)}\n`;
    add(["i32"], to, load + other + "  RETURN (v9)\n", 0);
    add([from], to, `  v8:${from} = CONST ${constant(from, value)}\n` + op("v1", "v8") + "  RETURN (v9)\n");
    add([from], to, `  v8:${from} = CONST ${constant(from, value)}\n` + op("v8", "v1") + "  RETURN (v9)\n");
  });
  if (/^(EQ|NE|[LG][TE]_[SU]|F(EQ|NE|LT|GT|LE|GE))$/.test(row.name)) {
    const branch =
      `  BRANCH v9 b1() b2()\nb1():\n  v10:i32 = CONST 11\n  RETURN (v10)\nb2():\n  v11:i32 = CONST 22\n  RETURN (v11)\n`;
    const not = `  v6:i32 = CONST 0\n  v7:i32 = EQ v9 v6\n`;
    const load = `  v8:${from} = LOAD memory0[v2+16]\n`;
    const limit = `  v8:${from} = CONST ${constant(from, INTERESTING[from][4])}\n`;
    add([from, from], "i32", op("v1", "v2") + branch);
    add([from, "i32"], "i32", load + op("v1", "v8") + branch, 1);
    add([from, "i32"], "i32", load + op("v8", "v1") + branch, 1);
    add([from], "i32", limit + op("v1", "v8") + branch);
    add(
      [from, "i32"],
      "i32",
      load + `  v5:${from} = CONST ${constant(from, INTERESTING[from][2])}\n` + op("v8", "v5") + branch,
      1,
    );
    add([from, from], "i32", op("v1", "v2") + not + branch.replace("v9", "v7"));
    add([from, from], "i32", op("v1", "v2") + not + "  RETURN (v7)\n");
    add([from, from], "i32", op("v1", "v2") + "  TRAP_IF v9 INTEGER_OVERFLOW\n  v10:i32 = CONST 5\n  RETURN (v10)\n");
    for (const ty of ["i32", "i64", "f32", "f64"]) {
      add([from, from, ty, ty], ty, op("v1", "v2") + `  v10:${ty} = SELECT v3 v4 v9\n  RETURN (v10)\n`);
    }
    // Twice as a condition and once as a value.
    add(
      [from, from],
      "i32 i32",
      op("v1", "v2") + "  v10:i32 = CONST 3\n  v11:i32 = CONST 4\n  v12:i32 = SELECT v10 v11 v9\n" +
        "  v13:i32 = SELECT v11 v10 v9\n  RETURN (v12 v13)\n",
    );
    add(
      [from, from],
      "i32 i32",
      op("v1", "v2") + "  v10:i32 = CONST 3\n  v11:i32 = CONST 4\n  v12:i32 = SELECT v10 v11 v9\n  RETURN (v12 v9)\n",
    );
  }
  return all;
}

function world(memory: Uint8Array): World {
  const view = new DataView(memory.buffer, memory.byteOffset, memory.length);
  return {
    contextAddress: 0,
    context: new DataView(new ArrayBuffer(64)),
    steps: 1000,
    memory0: () => view,
    memoryLength: () => memory.length,
    resolve: () => undefined,
    call: () => [],
    callRecord: () => [],
    callImport: () => [],
    callBuiltin: () => [],
  };
}

function isNan(ty: string, bits: bigint): boolean {
  return ty === "f32"
    ? (bits & 0x7fffffffn) > 0x7f800000n
    : ty === "f64" && (bits & 0x7fffffffffffffffn) > 0x7ff0000000000000n;
}

/** A NaN that arithmetic may produce: quiet. */
function isQuiet(ty: string, bits: bigint): boolean {
  return (bits & (ty === "f32" ? 0x400000n : 0x8000000000000n)) !== 0n;
}

const EXACT = /^(FABS|FNEG|FCOPYSIGN|BITCAST)$/;

/** Operand pairs: all pairs of few interesting values, and random ones. */
function operandPairs(ty: string, seed: number): [bigint, bigint][] {
  const next = random(seed);
  const some = INTERESTING[ty];
  const pairs: [bigint, bigint][] = some.flatMap((a, i) =>
    [[a, some[(i + seed) % some.length]], [a, a]] as [bigint, bigint][]
  );
  for (let k = 0; k < 10; k++) {
    const wide = () => BigInt.asUintN(Number(WIDTH[ty]), (BigInt(next()) << 32n) | BigInt(next()));
    pairs.push([wide(), wide()]);
    pairs.push([some[next() % some.length], some[next() % some.length]]);
  }
  return pairs;
}

/** Runs every variant of every operation; returns the number of comparisons. */
function runAll(settings: CompileSettings): number {
  const list = shapes().flatMap(variants);
  const instance = (() => {
    const { code, context } = compileIr(list.map((variant) => variant.f), settings);
    return process!.instantiate(code, context);
  })();
  const memory = process!.memory;
  const copy = new Uint8Array(MEMORY_BYTES);
  const copyView = new DataView(copy.buffer);
  const view = new DataView(memory.buffer);
  const w = world(copy);
  let compared = 0;
  list.forEach((variant, index) => {
    const { shape, params } = variant;
    let seed = index;
    for (const [a, b] of operandPairs(shape.from, index)) {
      const address = 8 * (index % 64);
      const args = params.map((ty, i) => {
        if (i === variant.memoryOperand) return BigInt(address);
        if (i < 2 && ty === shape.from) return i === 0 ? a : b;
        return BigInt.asUintN(Number(WIDTH[ty]), BigInt(0x1234567 * (i + 1)) * 0x9e3779b97f4a7c15n);
      });
      if (variant.memoryOperand >= 0) {
        for (const target of [view, copyView]) {
          if (BYTES[shape.from] === 8) target.setBigUint64(address + 16, variant.memoryOperand === 0 ? a : b, true);
          else target.setUint32(address + 16, Number(variant.memoryOperand === 0 ? a : b), true);
        }
      }
      let expected: readonly bigint[] | undefined;
      let trap = 0;
      w.steps = 1000;
      try {
        expected = interpret(variant.f, args, w);
      } catch (error) {
        if (!(error instanceof TrapSignal)) throw error;
        trap = error.code;
      }
      const actual = instance.call(index, args);
      const label = () =>
        `${shape.row.name} ${shape.from}→${shape.to} variant ${index} (${args.map((v) => "0x" + v.toString(16))})`;
      if (expected === undefined) {
        equal(actual.status, STATUS.TRAP, label());
        equal(actual.trap, trap, label());
      } else {
        equal(actual.status, STATUS.DONE, label());
        const types = Array.from(variant.f.signature.results, (ty) => ["", "i32", "i64", "f32", "f64"][ty]);
        expected.forEach((bits, k) => {
          if (
            k === 0 && isNan(types[k], bits) && !EXACT.test(shape.row.name) && /^(F|CONVERT)/.test(shape.row.name) &&
            types[k] === shape.to
          ) {
            equal(isNan(types[k], actual.results[k]) && isQuiet(types[k], actual.results[k]), true, label());
          } else {
            equal(actual.results[k], bits, `${label()} result ${k}`);
          }
        });
      }
      compared++;
      seed++;
    }
  });
  return compared;
}

Deno.test({
  name: "every operation on a CPU with AVX and BMI agrees with the interpreter",
  ignore: !CAN_RUN,
  fn: () => {
    equal(runAll({ cpu: MODERN }) > 10000, true);
  },
});

Deno.test({
  name: "every operation on a CPU with SSE4.1 only agrees with the interpreter",
  ignore: !CAN_RUN,
  fn: () => {
    equal(runAll({ cpu: BASELINE }) > 10000, true);
  },
});

Deno.test({
  name: "every operation with explicit bounds agrees with the interpreter",
  ignore: !CAN_RUN,
  fn: () => {
    equal(runAll({ cpu: MODERN, explicitBounds: true }) > 10000, true);
  },
});
