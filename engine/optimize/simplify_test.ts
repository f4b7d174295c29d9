/** Rewrite rules: results over corner-case operands, and the forms that the rules produce. */
import { Statistics } from "../base/statistics.ts";
import { equal, ok } from "node:assert/strict";
import { IrFunction } from "../ir/function.ts";
import { OP, OP_ROWS, type OpName } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { verifyFunction } from "../ir/verify.ts";
import { optimize } from "./passes.ts";
import { observe } from "./testing/model_machine.ts";
import { ALL, becomes } from "./testing/golden_text.ts";

const WORDS = [
  0,
  1,
  2,
  3,
  5,
  6,
  7,
  9,
  10,
  12,
  25,
  31,
  32,
  33,
  63,
  64,
  100,
  125,
  127,
  128,
  255,
  256,
  625,
  641,
  1000,
  3600,
  10000,
  65535,
  65536,
  1000000007,
  0x3fffffff,
  0x40000000,
  0x7ffffffe,
  0x7fffffff,
  -0x80000000,
  -0x7fffffff,
  -1,
  -2,
  -3,
  -7,
  -8,
  -10,
  -128,
  -1000,
  -65536,
];

/** `v2 = op v1 constant` or, with `flip`, `op constant v1`. */
function withConstant(op: number, ty: number, lo: number, hi: number, flip: boolean): IrFunction {
  const f = new IrFunction();
  f.reset(16);
  const compares = op >= OP.EQ && op <= OP.GE_U;
  f.signature = { params: Uint8Array.of(ty), results: Uint8Array.of(compares ? TY.I32 : ty) };
  f.addBlock(0, 0);
  const param = f.append(OP.PARAM, ty, 0, 0, 0, 0);
  const constant = f.append(OP.CONST, ty, 0, 0, ty === TY.I64 ? hi : 0, lo);
  const division = op >= OP.DIV_S && op <= OP.REM_U;
  const value = f.append(
    op,
    compares ? TY.I32 : ty,
    flip ? constant : param,
    flip ? param : constant,
    0,
    division ? 3 : 0,
  );
  const list = f.allocPool(1);
  f.pool[list] = value;
  const end = f.append(OP.RETURN, TY.NONE, list, 1, 0, 0);
  f.sched.set([param, constant, value, end]);
  f.schedCount = 4;
  f.blockEnd[0] = 4;
  f.blockParams[0] = 1;
  return f;
}

const BINARY: OpName[] = [
  "ADD",
  "SUB",
  "MUL",
  "AND",
  "OR",
  "XOR",
  "SHL",
  "SHR_S",
  "SHR_U",
  "ROTL",
  "ROTR",
  "DIV_S",
  "DIV_U",
  "REM_S",
  "REM_U",
  "EQ",
  "NE",
  "LT_S",
  "LT_U",
  "GT_S",
  "GT_U",
  "LE_S",
  "LE_U",
  "GE_S",
  "GE_U",
];

for (const [ty, name] of [[TY.I32, "i32"], [TY.I64, "i64"]] as const) {
  Deno.test(`every ${name} operation with a constant means the same after rewriting`, () => {
    for (const op of BINARY.map((name) => OP[name])) {
      for (const lo of ty === TY.I64 ? WORDS.filter((_, n) => n % 3 === 0) : WORDS) {
        for (const hi of ty === TY.I64 ? [lo >> 31, 7, -0x80000000] : [0]) {
          for (const flip of [false, true]) {
            const before = withConstant(op, ty, lo, hi, flip);
            const after = withConstant(op, ty, lo, hi, flip);
            optimize(after, ALL, new Statistics());
            // All words for divisions, whose multipliers need the most care; a few for the others.
            const step = op >= OP.DIV_S && op <= OP.REM_U ? 1 : 5;
            for (let n = lo & 1; n < WORDS.length; n += step) {
              const x = WORDS[n];
              const arg: [number, number][] = [[x, ty === TY.I64 ? (lo & 1 ? x >> 31 : x ^ lo) : 0]];
              const seen = observe(before, arg, false).seen;
              const now = observe(after, arg, false).seen;
              if (seen !== now) equal(now, seen, `${OP_ROWS[op].name} of ${arg[0]} with ${hi}:${lo}, flip ${flip}`);
            }
            verifyFunction(after);
          }
        }
      }
    }
  });
}

Deno.test("32-bit divisions by constants need no division", () => {
  for (const op of [OP.DIV_S, OP.DIV_U, OP.REM_S, OP.REM_U]) {
    for (const d of WORDS) {
      if (d === 0 || ((op === OP.DIV_S || op === OP.REM_S) && (d === -0x80000000 || d === -1))) continue;
      const f = withConstant(op, TY.I32, d, 0, false);
      optimize(f, ALL, new Statistics());
      for (let s = 0; s < f.schedCount; s++) {
        const o = f.op[f.sched[s]];
        ok(o < OP.DIV_S || o > OP.REM_U, `${OP_ROWS[op].name} by ${d} is still a division`);
      }
    }
  }
});

Deno.test("64-bit divisions by powers of two are shifts", () => {
  becomes(
    `func 0 (i64) -> (i64 i64)
     b0(v1:i64):
       v2:i64 = CONST 1099511627776
       v3:i64 = DIV_U v1 v2
       v4:i64 = REM_U v1 v2
       RETURN (v3 v4)`,
    `b0(v1:i64):
       v5:i64 = CONST 40
       v3:i64 = SHR_U v1 v5
       v8:i64 = CONST 1099511627775
       v4:i64 = AND v1 v8
       RETURN (v3 v4)`,
  );
});

const FORMS: [string, string, string][] = [
  [
    "sums of constants",
    "v3:i32 = CONST 5; v4:i32 = ADD v1 v3; v5:i32 = CONST 7; v6:i32 = ADD v4 v5",
    "v7:i32 = CONST 12; v6:i32 = ADD v1 v7",
  ],
  ["a difference with a constant", "v3:i32 = CONST 5; v6:i32 = SUB v1 v3", "v7:i32 = CONST -5; v6:i32 = ADD v1 v7"],
  ["shifts out and back", "v3:i32 = CONST 24; v4:i32 = SHL v1 v3; v6:i32 = SHR_S v4 v3", "v6:i32 = EXTEND8_S v1"],
  [
    "shifts that clear",
    "v3:i32 = CONST 8; v4:i32 = SHL v1 v3; v6:i32 = SHR_U v4 v3",
    "v7:i32 = CONST 16777215; v6:i32 = AND v1 v7",
  ],
  [
    "a mask of a value that fits",
    "v3:i32 = CONST 24; v4:i32 = SHR_U v1 v3; v5:i32 = CONST 255; v6:i32 = AND v4 v5",
    "v3:i32 = CONST 24; v6:i32 = SHR_U v1 v3",
  ],
  ["the mask of a count", "v3:i32 = CONST 31; v4:i32 = AND v2 v3; v6:i32 = SHL v1 v4", "v6:i32 = SHL v1 v2"],
  ["a negated comparison", "v3:i32 = LT_S v1 v2; v4:i32 = CONST 0; v6:i32 = EQ v3 v4", "v6:i32 = GE_S v1 v2"],
  ["a comparison with true", "v3:i32 = LT_S v1 v2; v4:i32 = CONST 1; v6:i32 = EQ v3 v4", "v6:i32 = LT_S v1 v2"],
  [
    "equality of a sum",
    "v3:i32 = CONST 5; v4:i32 = ADD v1 v3; v5:i32 = CONST 7; v6:i32 = EQ v4 v5",
    "v7:i32 = CONST 2; v6:i32 = EQ v1 v7",
  ],
  ["zero of a difference", "v3:i32 = SUB v1 v2; v4:i32 = CONST 0; v6:i32 = EQ v3 v4", "v6:i32 = EQ v1 v2"],
  ["unsigned below one", "v3:i32 = CONST 1; v6:i32 = LT_U v1 v3", "v7:i32 = CONST 0; v6:i32 = EQ v1 v7"],
  [
    "choice of a truth value",
    "v3:i32 = CONST 1; v4:i32 = CONST 0; v5:i32 = LT_S v1 v2; v6:i32 = SELECT v3 v4 v5",
    "v6:i32 = LT_S v1 v2",
  ],
  ["choice on a negation", "v4:i32 = CONST 0; v5:i32 = EQ v1 v4; v6:i32 = SELECT v1 v2 v5", "v6:i32 = SELECT v2 v1 v1"],
  ["wrapping an extension", "v3:i64 = EXTEND_S v1; v6:i32 = WRAP v3", "RETURN v1"],
  [
    "the low half of a 64-bit sum with a constant",
    "v3:i64 = EXTEND_U v1; v4:i64 = CONST 4294967304; v5:i64 = ADD v3 v4; v6:i32 = WRAP v5",
    "v7:i32 = CONST 8; v6:i32 = ADD v1 v7",
  ],
  [
    "the low half of a 64-bit difference",
    "v3:i64 = EXTEND_U v1; v4:i64 = EXTEND_S v2; v5:i64 = SUB v3 v4; v6:i32 = WRAP v5",
    "v6:i32 = SUB v1 v2",
  ],
  [
    "the low half of a 64-bit sum, one operand of which has no extension",
    "v3:i64 = EXTEND_U v1; v4:i64 = EXTEND_U v2; v5:i64 = MUL v3 v4; v7:i64 = CONST 5; v8:i64 = ADD v5 v7; v6:i32 = WRAP v8",
    "v3:i64 = EXTEND_U v1; v4:i64 = EXTEND_U v2; v5:i64 = MUL v3 v4; v11:i32 = WRAP v5; v12:i32 = CONST 5; v6:i32 = ADD v11 v12",
  ],
  [
    "the low half of a 64-bit product stays",
    "v3:i64 = EXTEND_U v1; v4:i64 = EXTEND_U v2; v5:i64 = MUL v3 v4; v6:i32 = WRAP v5",
    "v3:i64 = EXTEND_U v1; v4:i64 = EXTEND_U v2; v5:i64 = MUL v3 v4; v6:i32 = WRAP v5",
  ],
  [
    "the low half of a mask that fits 32 bits stays",
    "v3:i64 = EXTEND_S v1; v4:i64 = CONST 255; v5:i64 = AND v3 v4; v6:i32 = WRAP v5",
    "v3:i64 = EXTEND_S v1; v4:i64 = CONST 255; v5:i64 = AND v3 v4; v6:i32 = WRAP v5",
  ],
  [
    "the low half of a quotient stays",
    "v3:i64 = EXTEND_U v1; v4:i64 = EXTEND_U v2; v5:i64 = SHR_U v3 v4; v6:i32 = WRAP v5",
    "v3:i64 = EXTEND_U v1; v4:i64 = EXTEND_U v2; v5:i64 = SHR_U v3 v4; v6:i32 = WRAP v5",
  ],
  ["a power of two as factor", "v3:i32 = CONST 8; v6:i32 = MUL v1 v3", "v7:i32 = CONST 3; v6:i32 = SHL v1 v7"],
];

for (const [name, before, after] of FORMS) {
  Deno.test(`rewriting: ${name}`, () => {
    const [body, value] = after === "RETURN v1" ? ["", "v1"] : [after.replaceAll("; ", "\n"), "v6"];
    becomes(
      `func 0 (i32 i32) -> (i32)\nb0(v1:i32 v2:i32):\n${before.replaceAll("; ", "\n")}\nRETURN (v6)`,
      `b0(v1:i32 v2:i32):\n${body}\nRETURN (${value})`,
    );
  });
}

Deno.test("floats: only exact rewrites", () => {
  becomes(
    `func 0 (f64) -> (f64 f64 f64 f64)
     b0(v1:f64):
       v2:f64 = CONST 0x4000000000000000
       v3:f64 = FMUL v1 v2
       v4:f64 = CONST 0x4010000000000000
       v5:f64 = FDIV v1 v4
       v6:f64 = CONST 0x4008000000000000
       v7:f64 = FDIV v1 v6
       v8:f64 = CONST 0x3ff0000000000000
       v9:f64 = FMUL v1 v8
       RETURN (v3 v5 v7 v9)`,
    `b0(v1:f64):
       v3:f64 = FADD v1 v1
       v10:f64 = CONST 0x3fd0000000000000
       v5:f64 = FMUL v1 v10
       v6:f64 = CONST 0x4008000000000000
       v7:f64 = FDIV v1 v6
       v8:f64 = CONST 0x3ff0000000000000
       v9:f64 = FMUL v1 v8
       RETURN (v3 v5 v7 v9)`,
  );
});
