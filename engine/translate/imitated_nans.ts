/**
 * NaNs of another processor. In: the operands and the result of a float instruction. Out: a value equal to the result,
 * except that a NaN has the bits that the other processor gives it:
 *
 *     v = FADD x y · SELECT (SELECT quiet(x) (SELECT quiet(y) default (FNE y y)) (FNE x x)) v (FNE v v)
 *
 * The table has a rule for every instruction that may make a NaN. Instructions that move or copy bits (loads, `neg`,
 * `abs`, `copysign`, `pmin`, `pmax`, `select`) are exact on all processors and have none. Roundings and conversions
 * give the quiet form of their operand everywhere.
 *
 * Invariant: the bits do not depend on the NaN that the operation itself has made, so optimizations may exchange its
 * operands.
 */
import { OP } from "../ir/ops.ts";
import { SHAPE, TY } from "../ir/types.ts";
import { opcodeColumn } from "../wasm/opcodes.ts";
import { NAN_CODE } from "./module_facts.ts";
import type { Translation } from "./translation.ts";

const { F32, F64, I32, I64, V128 } = TY;

/** The quiet form of the operand: no processor differs. */
const SAME = 1;
/** The first operand that is a NaN, made quiet; else the default NaN. */
const FIRST = 2;
/** As FIRST, but a signaling NaN precedes a quiet one. */
const SIGNALING = 3;
/** The default NaN. */
const DEFAULT = 4;

/** Rules by name of the instruction without its type: of x64 for scalars and vectors, of arm64. */
// deno-fmt-ignore
const RULES: Readonly<Record<string, readonly [scalar: number, vector: number, arm64: number]>> = {
  add:               [FIRST, FIRST, SIGNALING],
  sub:               [FIRST, FIRST, SIGNALING],
  mul:               [FIRST, FIRST, SIGNALING],
  div:               [FIRST, FIRST, SIGNALING],
  // x64 has no such instructions: emit_float.ts, select_simd.ts and the baseline kernel decide.
  min:               [FIRST, DEFAULT, SIGNALING],
  max:               [FIRST, DEFAULT, SIGNALING],
  relaxed_min:       [FIRST, DEFAULT, SIGNALING],
  relaxed_max:       [FIRST, DEFAULT, SIGNALING],
  sqrt:              [FIRST, FIRST, SIGNALING],
  // a product, then the sum product + c or the difference c − product
  relaxed_madd:      [FIRST, FIRST, SIGNALING],
  relaxed_nmadd:     [FIRST, FIRST, SIGNALING],
  ceil:              [SAME, SAME, SAME],
  floor:             [SAME, SAME, SAME],
  trunc:             [SAME, SAME, SAME],
  nearest:           [SAME, SAME, SAME],
  demote_f64:        [SAME, SAME, SAME],
  demote_f64x2_zero: [SAME, SAME, SAME],
  promote_f32:       [SAME, SAME, SAME],
  promote_low_f32x4: [SAME, SAME, SAME],
};

/** By opcode row: 1 if the instruction may produce a NaN of 32 bits, 2 for one of 64 bits, else 0. */
export const MAKES_NAN: Uint8Array = opcodeColumn(Uint8Array, ({ mnemonic }) => {
  if (rulesOf(mnemonic) === undefined) return 0;
  return mnemonic.startsWith("f64") ? 2 : 1;
});

/** By opcode row: the rule of x64, that of arm64; 0 for instructions without one. */
const X64_RULE: Uint8Array = opcodeColumn(
  Uint8Array,
  ({ mnemonic }) => rulesOf(mnemonic)?.[/x\d\./.test(mnemonic) ? 1 : 0] ?? 0,
);
const ARM64_RULE: Uint8Array = opcodeColumn(Uint8Array, ({ mnemonic }) => rulesOf(mnemonic)?.[2] ?? 0);
/** By opcode row: the number of operands. */
const OPERANDS: Uint8Array = opcodeColumn(Uint8Array, ({ params }) => params?.length ?? 0);

/** By opcode row: 1 if the handler imitates the NaNs of each operation: the row has several. */
const HAS_STEPS: Uint8Array = opcodeColumn(Uint8Array, ({ mnemonic }) => Number(/\.relaxed_n?madd$/.test(mnemonic)));

function rulesOf(mnemonic: string): readonly [scalar: number, vector: number, arm64: number] | undefined {
  const [type, name] = mnemonic.split(".");
  return /^f(32|64)(x\d)?$/.test(type) && Object.hasOwn(RULES, name) ? RULES[name] : undefined;
}

/**
 * The rule by which code with the NaNs `nans` (NAN_CODE) imitates the result of row `id`, which may make a NaN; 0 if
 * the result needs no imitation, or the row's own translation imitates each of its steps.
 */
export function imitationRule(nans: number, id: number): number {
  if (!imitates(nans) || HAS_STEPS[id] === 1) return 0;
  const rule = nans === NAN_CODE.x64 ? X64_RULE[id] : ARM64_RULE[id];
  return rule === SAME ? 0 : rule;
}

function imitates(nans: number): boolean {
  return nans === NAN_CODE.x64 || nans === NAN_CODE.arm64;
}

/** The first operand of row `id`, whose operands are on the stack. */
export function firstOperand(t: Translation, id: number): number {
  return t.stack[t.sp - OPERANDS[id]];
}

/** Replaces the top operand, the result of row `id` on operands of which the first is x and the last y. */
export function imitateResult(t: Translation, rule: number, id: number, x: number, y: number): void {
  t.push(imitated(t, rule, MAKES_NAN[id] === 2, x, y, t.pop()));
}

/** A step of a row of several: `value` is the result of a vector operation on x and y, with lanes of `shape`. */
export function imitatedStep(t: Translation, shape: number, x: number, y: number, value: number): number {
  if (!imitates(t.nans)) return value;
  return imitated(t, t.nans === NAN_CODE.x64 ? FIRST : SIGNALING, shape === SHAPE.F64X2, x, y, value);
}

function imitated(t: Translation, rule: number, isWide: boolean, x: number, y: number, value: number): number {
  const bits = new FloatBits(t, t.f.ty[value] === V128, isWide);
  // arm64's default NaN is positive, and SIGNALING is its rule alone.
  const made = bits.constant(rule === SIGNALING ? QUIET : QUIET | SIGN);
  let nan = made;
  if (rule !== DEFAULT) {
    const quietX = bits.quiet(x);
    const quietY = bits.quiet(y);
    nan = bits.choose(bits.isNaN(x), quietX, bits.choose(bits.isNaN(y), quietY, made));
    if (rule === SIGNALING) {
      // A signaling first operand has precedence already.
      nan = bits.choose(bits.isSignaling(y), bits.choose(bits.isSignaling(x), quietX, quietY), nan);
    }
  }
  return bits.choose(bits.isNaN(value), nan, value);
}

/** The quiet NaN without a payload. */
const QUIET = 1;
const SIGN = 2;

/** The upper half of a NaN of 64 bits, or a NaN of 32 bits. */
function nanWord(isWide: boolean, kind: number): number {
  return (isWide ? 0x7ff80000 : 0x7fc00000) | ((kind & SIGN) === 0 ? 0 : -0x80000000);
}

/** The quiet bit, in the upper half of a NaN of 64 bits. */
function quietWord(isWide: boolean): number {
  return isWide ? 0x00080000 : 0x00400000;
}

/** Operations on the bits of scalars or of lanes; a condition is an i32, or has all bits of a lane. */
class FloatBits {
  readonly #t: Translation;
  readonly #isVector: boolean;
  readonly #isWide: boolean;
  readonly #float: number;
  readonly #integer: number;

  constructor(t: Translation, isVector: boolean, isWide: boolean) {
    this.#t = t;
    this.#isVector = isVector;
    this.#isWide = isWide;
    this.#float = isWide ? F64 : F32;
    this.#integer = isWide ? I64 : I32;
  }

  constant(kind: number): number {
    const word = nanWord(this.#isWide, kind);
    return this.#isVector ? this.#splat(word) : this.#ofUpper(this.#float, word);
  }

  quiet(x: number): number {
    if (this.#isVector) return this.#operation(OP.VOR, x, this.#splat(quietWord(this.#isWide)), 0);
    const { b } = this.#t;
    const bits = b.binary(OP.OR, this.#integer, this.#bitsOf(x), this.#quietBit());
    return b.unary(OP.BITCAST, this.#float, bits);
  }

  isNaN(x: number): number {
    if (this.#isVector) return this.#operation(OP.VFNE, x, x, this.#isWide ? SHAPE.F64X2 : SHAPE.F32X4);
    return this.#t.b.binary(OP.FNE, I32, x, x);
  }

  isSignaling(x: number): number {
    if (this.#isVector) {
      const quiet = this.#operation(OP.VAND, x, this.#splat(quietWord(this.#isWide)), 0);
      const zero = this.#t.vectorConstant(0, 0, 0, 0);
      const isNotQuiet = this.#operation(OP.VEQ, quiet, zero, this.#isWide ? SHAPE.I64X2 : SHAPE.I32X4);
      return this.#operation(OP.VAND, this.isNaN(x), isNotQuiet, 0);
    }
    const { b } = this.#t;
    const isNotQuiet = b.eqz(b.binary(OP.AND, this.#integer, this.#bitsOf(x), this.#quietBit()));
    return b.binary(OP.AND, I32, this.isNaN(x), isNotQuiet);
  }

  choose(condition: number, then: number, otherwise: number): number {
    const { b } = this.#t;
    if (this.#isVector) return b.pure(OP.VBITSELECT, V128, then, otherwise, condition, 0);
    return b.select(this.#float, then, otherwise, condition);
  }

  #bitsOf(x: number): number {
    return this.#t.b.unary(OP.BITCAST, this.#integer, x);
  }

  #quietBit(): number {
    return this.#ofUpper(this.#integer, quietWord(this.#isWide));
  }

  /** A constant of type `ty` with this upper half, or with these bits. */
  #ofUpper(ty: number, word: number): number {
    return this.#isWide ? this.#t.b.constant(ty, 0, word) : this.#t.b.constant(ty, word, 0);
  }

  #operation(op: number, x: number, y: number, shape: number): number {
    return this.#t.b.pure(op, V128, x, y, 0, shape);
  }

  /** Lanes with these bits, or with this upper half. */
  #splat(word: number): number {
    const low = this.#isWide ? 0 : word;
    return this.#t.vectorConstant(low, word, low, word);
  }
}
