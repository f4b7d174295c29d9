/**
 * Numeric expressions. In: the state of a body. Out: instructions.
 */
import { isDivision, isTruncation, NUMERIC_OPS, type NumericOp, saturating, showsNaN } from "../numeric_rows.ts";
import { isFloat, type TypeName } from "../value_types.ts";
import type { Body } from "./body.ts";
import { OP } from "./opcodes.ts";
import { leaf, leafConstant } from "./values.ts";

const NUMBERS: readonly TypeName[] = ["i32", "i64", "f32", "f64"];
export const OPS_BY_RESULT: Readonly<Record<string, readonly NumericOp[]>> = Object.fromEntries(
  NUMBERS.map((type) => [type, NUMERIC_OPS.filter((op) => op.result === type)]),
);
/** Comparisons and tests. */
export const CONDITIONS: readonly NumericOp[] = NUMERIC_OPS.filter((op) => op.code <= 0x66);

/** Operations for in-place updates. */
export const BINARY_OPS: Readonly<Record<string, readonly number[]>> = {
  i32: [0x6a, 0x6a, 0x6b, 0x6c, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78],
  i64: [0x7c, 0x7c, 0x7d, 0x7e, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a],
  f32: [0x92, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97],
  f64: [0xa0, 0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5],
};

export function numeric(b: Body, op: NumericOp, depth: number): void {
  const random = b.random;
  let { code } = op;
  if (isTruncation(code) && !random.chance(5)) {
    if (b.has("nontrapping-float-to-int-conversion")) code = saturating(code);
    else return leaf(b, op.result);
  } else if (code >= 0xfc00 && !b.has("nontrapping-float-to-int-conversion")) return leaf(b, op.result);
  else if (code >= 0xc0 && code < 0xfc00 && !b.has("sign-extension-ops")) return leaf(b, op.result);
  const last = op.params.length - 1;
  op.params.forEach((type, i) => {
    if (i === last && showsNaN(code)) return canonical(b, type, depth - 1);
    if (i === last && isDivision(code)) return divisor(b, type, depth - 1);
    if (i === 1 && !isFloat(type) && random.chance(30)) return leafConstant(b, type);
    b.expression(type, depth - 1);
  });
  b.opcode(code);
}

/** A divisor, usually a constant or odd, so that few divisions trap. */
function divisor(b: Body, type: TypeName, depth: number): void {
  const random = b.random;
  if (random.chance(60)) {
    if (type === "i32") return b.constant(type, random.i32() || 7);
    b.out.byte(0x42).s64(random.i64() || 7n);
    return;
  }
  b.expression(type, depth);
  if (random.chance(95)) {
    b.constant(type, 1);
    b.opcode(type === "i32" ? 0x72 : 0x84);
  }
}

/** A float whose NaNs are canonical. */
export function canonical(b: Body, type: TypeName, depth: number): void {
  const out = b.out;
  b.expression(type, depth);
  const scratch = b.scratch[type] ??= b.newLocal(type, false);
  out.byte(OP.localTee).u32(scratch);
  if (type === "f32") out.byte(0x43).bytes([0, 0, 0xc0, 0x7f]);
  else out.byte(0x44).bytes([0, 0, 0, 0, 0, 0, 0xf8, 0x7f]);
  b.get(scratch);
  b.get(scratch);
  out.byte(type === "f32" ? 0x5b : 0x61).byte(OP.select);
}
