/** Every pure operation against the host's own WebAssembly, over pairs of corner cases. */
import { equal, ok } from "node:assert/strict";
import type { OpcodeRow } from "../wasm/opcode_row.ts";
import { OPCODES } from "../wasm/opcodes.ts";
import { EVAL_DONE, EVAL_NAN, evalHi, evalLo, evaluate } from "./eval.ts";
import { OP, type OpName } from "./ops.ts";
import { TRAP_MESSAGES } from "../base/traps.ts";
import { TY } from "./types.ts";

const TYPE_OF: Readonly<Record<string, number>> = { i: TY.I32, I: TY.I64, f: TY.F32, F: TY.F64 };
/** Value type byte, and the opcode that reinterprets an argument's bits as the type (0: none). */
const CODE_OF: Readonly<Record<string, number>> = { i: 0x7f, I: 0x7e, f: 0x7d, F: 0x7c };

const INTS32 = [
  0,
  1,
  2,
  3,
  7,
  8,
  31,
  32,
  33,
  63,
  64,
  0x7f,
  0x80,
  0x8000,
  0x7fffffff,
  -0x80000000,
  -1,
  -2,
  -129,
  12345678,
];
const INTS64 = [
  0n,
  1n,
  2n,
  31n,
  32n,
  33n,
  63n,
  64n,
  0x7fn,
  0x80n,
  0xffffn,
  0x80000000n,
  0xffffffffn,
  0x100000000n,
  0x7fffffffffffffffn,
  -0x8000000000000000n,
  -1n,
  -2n,
  -0x80000000n,
  0x20000000000001n,
  0xfffffffffffff800n,
  0x7fffff4000000001n,
  0x123456789abcdefn,
  0x7fffffbfffffffffn,
  0x8000008000000001n,
];
// deno-fmt-ignore
const FLOATS = [
  0, -0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, 4503599627370497.5, 1e-310, 3.4e38, -3.5e38, 1e300,
  -1e300, Infinity, -Infinity, 2147483647, 2147483648, -2147483648, -2147483649, 4294967295, 4294967296,
  -0.9999999999, 9223372036854774784, 9223372036854775807, -9223372036854775808, 18446744073709549568,
  18446744073709551615, 16777217, 1.17549435e-38, 1.4e-45, 0.1, 3.14159265358979, 8388609.5,
];
const NANS32 = [0x7fc00000, 0xffc00000 | 0, 0x7f800001, 0xffabcdef | 0];
const NANS64 = [0x7ff8000000000000n, -0x8000000000000n, 0x7ff0000000000001n, 0xfffabcdef0123456n];

const BITS = new DataView(new ArrayBuffer(8));
function bitsOf32(value: number): number {
  BITS.setFloat32(0, value);
  return BITS.getInt32(0);
}
function bitsOf64(value: number): bigint {
  BITS.setFloat64(0, value);
  return BITS.getBigInt64(0);
}

/** Corner cases as bit patterns, by type letter. */
const VALUES: Readonly<Record<string, readonly bigint[]>> = {
  i: INTS32.map(BigInt),
  I: INTS64.map((value) => BigInt.asIntN(64, value)),
  f: [...FLOATS.map(bitsOf32), ...NANS32].map(BigInt),
  F: [...FLOATS.map(bitsOf64), ...NANS64.map((value) => BigInt.asIntN(64, value))],
};

/** A module whose function `f` takes the operands' bits as i64s and gives the result's bits as an i64. */
function moduleFor(row: OpcodeRow): WebAssembly.Instance {
  const body = [0];
  [...row.params!].forEach((letter, index) => {
    body.push(0x20, index);
    if (letter !== "I" && letter !== "F") body.push(0xa7); // i32.wrap_i64
    if (letter === "f") body.push(0xbe);
    if (letter === "F") body.push(0xbf);
  });
  if (row.prefix !== 0) body.push(row.prefix);
  body.push(row.code);
  if (row.results === "f") body.push(0xbc);
  if (row.results === "F") body.push(0xbd);
  if (row.results === "i" || row.results === "f") body.push(0xac);
  body.push(0x0b);
  const params = new Array(row.params!.length).fill(0x7e);
  ok(CODE_OF[row.results!]);
  const section = (id: number, content: number[]) => [id, content.length, ...content];
  const bytes = Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, params.length, ...params, 1, 0x7e]),
    ...section(3, [1, 0]),
    ...section(7, [1, 1, 0x66, 0, 0]),
    ...section(10, [1, body.length, ...body]),
  ]);
  return new WebAssembly.Instance(new WebAssembly.Module(bytes));
}

/** The IR operation of a numeric row, divisions included. */
function operationOf(row: OpcodeRow): number | undefined {
  if (row.ir !== undefined && row.params !== undefined && !row.params.includes("v") && !row.params.includes("a")) {
    return OP[row.ir as OpName];
  }
  const division = /^i(32|64)\.(div|rem)_([su])$/.exec(row.mnemonic);
  return division === null ? undefined : OP[`${division[2]}_${division[3]}`.toUpperCase() as OpName];
}

function isNaNBits(letter: string, bits: bigint): boolean {
  if (letter === "f") return (Number(bits) & 0x7fffffff) > 0x7f800000;
  return letter === "F" && (bits & 0x7fffffffffffffffn) > 0x7ff0000000000000n;
}

const ROWS = OPCODES.filter((row) => operationOf(row) !== undefined && row.prefix !== 0xfd && row.prefix !== 0xfe);

Deno.test("the evaluator has a row for every numeric instruction", () => {
  equal(ROWS.length, 134);
});

for (const row of ROWS) {
  Deno.test(`${row.mnemonic} is evaluated as the host does`, () => {
    const op = operationOf(row)!;
    const f = moduleFor(row).exports.f as (...operands: bigint[]) => bigint;
    const [x, y] = row.params!;
    let cases = 0;
    for (const a of VALUES[x]) {
      for (const b of y === undefined ? [0n] : VALUES[y]) {
        let expected: bigint | string;
        try {
          expected = y === undefined ? f(a) : f(a, b);
        } catch (error) {
          expected = (error as Error).message;
        }
        const half = (value: bigint) => Number(BigInt.asIntN(32, value));
        const outcome = evaluate(
          op,
          TYPE_OF[row.results!],
          TYPE_OF[x],
          half(a),
          half(a >> 32n),
          half(b),
          half(b >> 32n),
          3,
        );
        const wide = row.results === "I" || row.results === "F";
        const actual = wide ? (BigInt(evalHi) << 32n) | BigInt(evalLo >>> 0) : BigInt(evalLo);
        const where = `${row.mnemonic} ${a.toString(16)} ${b.toString(16)}`;
        if (typeof expected === "string") {
          ok(outcome > 0, `${where}: ${expected}, not a trap here`);
          if (outcome === 2) ok(expected.endsWith("by zero"), TRAP_MESSAGES[outcome]);
        } else if (outcome === EVAL_NAN) {
          ok(isNaNBits(row.results!, expected) && isNaNBits(row.results!, actual), where);
        } else {
          equal(outcome, EVAL_DONE, where);
          equal(actual, expected, where);
          ok(wide || evalHi === 0, `${where}: high half`);
        }
        cases++;
      }
    }
    ok(cases >= 20);
  });
}
