/**
 * From an instruction row and operands to its word. `Assembler` is a growing buffer of words; callers reserve room per
 * instruction, so nothing is checked per word. Operands are register numbers 0-31 and field values as they are encoded.
 */
import { CodeBuffer } from "../codegen/code_buffer.ts";
import { type f64, highWord, lowWord } from "../base/numbers.ts";
import { ConstantPlan, PLAN, planConstant } from "./immediates.ts";
import { ROW_BITS, ROW_C, ROW_I, ROW_I_WIDTH, ROW_K, ROW_S, X } from "./instructions.ts";

/** The word of a row; fields that the row does not have must be 0. */
export function encode(
  row: number,
  d: number,
  n: number,
  m: number,
  a: number,
  i: number,
  s: number,
  c: number,
  k: number,
): number {
  const field = (i & ((1 << ROW_I_WIDTH[row]) - 1)) << ROW_I[row];
  return ROW_BITS[row] | d | (n << 5) | (m << 16) | (a << 10) | field | (s << ROW_S[row]) | (c << ROW_C[row]) |
    (k << ROW_K[row]);
}

/** Encodes instructions at the end of a buffer. */
export class Assembler extends CodeBuffer {
  readonly #plan: ConstantPlan = new ConstantPlan();

  /** row d, n, m */
  rrr(row: number, d: number, n: number, m: number): void {
    this.word(ROW_BITS[row] | d | (n << 5) | (m << 16));
  }

  /** row d, n, m, a */
  rrra(row: number, d: number, n: number, m: number, a: number): void {
    this.word(ROW_BITS[row] | d | (n << 5) | (m << 16) | (a << 10));
  }

  /** row d, n and the fields i and s */
  rri(row: number, d: number, n: number, i: number, s: number): void {
    this.word(encode(row, d, n, 0, 0, i, s, 0, 0));
  }

  /** row d, n, m and the fields i and s */
  rrri(row: number, d: number, n: number, m: number, i: number, s: number): void {
    this.word(encode(row, d, n, m, 0, i, s, 0, 0));
  }

  /** row of a pair: d, a at [n], i × the size of one */
  pair(row: number, d: number, a: number, n: number, i: number): void {
    this.word(encode(row, d, n, 0, a, i, 0, 0, 0));
  }

  /** row d, n, m, condition */
  rrrc(row: number, d: number, n: number, m: number, c: number): void {
    this.word(encode(row, d, n, m, 0, 0, 0, c, 0));
  }

  /** mov d, n */
  move(wide: number, d: number, n: number): void {
    this.rrr(X.ORR32 + wide, d, 31, n);
  }

  /** mov d, value, for a 64-bit value in halves (32-bit: high = 0), in the fewest instructions. */
  constant(d: number, low: number, high: number): void {
    const plan = this.#plan;
    planConstant(plan, low, high);
    if (plan.kind === PLAN.LOGICAL) {
      this.rri(X.ORR_I32 + plan.wide, d, 31, plan.field, 0);
      return;
    }
    const negative = plan.kind === PLAN.NEGATIVE;
    const blank = negative ? 0xffff : 0;
    const move = (negative ? X.MOVN32 : X.MOVZ32) + plan.wide;
    let first = true;
    for (let k = 0; k < plan.parts; k++) {
      const part = ((k < 2 ? low : high) >>> ((k & 1) * 16)) & 0xffff;
      if (part === blank) continue;
      if (first) this.rri(move, d, 0, part ^ blank, k);
      else this.rri(X.MOVK32 + plan.wide, d, 0, part, k);
      first = false;
    }
    if (first) this.rri(move, d, 0, 0, 0);
  }

  /**
   * d = n + value for a value of any size; d and n may be the stack pointer. Changes `scratch` when the value is large.
   */
  addConstant(d: number, n: number, value: f64, scratch: number): void {
    const row = value < 0 ? X.SUB_I64 : X.ADD_I64;
    const size = Math.abs(value), word = lowWord(size);
    if (size < 0x1000) {
      this.rri(row, d, n, word, 0);
    } else if (size < 0x1000000) {
      this.rri(row, d, n, word >>> 12, 1);
      if ((word & 0xfff) !== 0) this.rri(row, d, d, word & 0xfff, 0);
    } else {
      this.constant(scratch, word, highWord(size));
      this.rrri(value < 0 ? X.SUB_E64 : X.ADD_E64, d, n, scratch, 0, 3);
    }
  }
}
