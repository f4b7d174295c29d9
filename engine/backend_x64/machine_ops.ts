/**
 * The vocabulary between selector and emitter that is specific to x64, besides instruction rows and
 * codegen/pseudo_ops.ts: pseudo operations of its own, address modes and condition codes.
 *
 * Bits 21-22 of the `aux` word are the size of a pool constant (4 << n bytes); bit 29 is a lock prefix.
 *
 * Operand order of a row in VCode: first the operands of the flag consumer, then the row's operands from left to right,
 * where `rw` gives two words (DEF REUSE, then USE REG), a register or slot gives one, and a memory operand gives its
 * address registers (base, then index). Immediates and displacements are in `imm` and `disp`.
 *
 * Operands of shared pseudo operations here:
 *
 *     DIV_S       def rax, use rax, use divisor, temp rdx; imm as the IR's; aux bit 0: 64-bit
 *     REM_S       def rdx, use rax, late use divisor, clobbers rax
 *     TRUNC_S32   def general, use vector; aux bit 0: operand is f64, bit 1: saturating
 *     ATOMIC_LOOP def rax, temp, late uses: address, value; imm = IR operation + 256 × log2 of the width
 */
import { pseudoOps } from "../codegen/pseudo_ops.ts";

export {
  AUX_CODE_SHIFT,
  AUX_CONDITION_SHIFT,
  AUX_CONSUMER_SHIFT,
  AUX_LANDING,
  AUX_MODE,
  AUX_SCALE_SHIFT,
  AUX_TRAP_SHIFT,
  auxConsumer,
  CONSUMER,
  PSEUDO_BASE,
} from "../codegen/pseudo_ops.ts";

/** Numbers of the pseudo operations. */
export const P = pseudoOps([
  // integer
  "MULHI_U", // def rdx, use rax, use factor, clobbers rax
  "MULHI_S",
  "CLZ_BSR", // def, use; aux bit 0: 64-bit
  "CTZ_BSF",
  "POPCNT_SWAR", // def, late use, temp
  // floating point; aux bit 0: f64
  "FMIN", // def, use, use (avx) or def reuse 1, use, use
  "FMAX",
  "CANONICAL_NAN", // def reuse 1, use
  "CONVERT_U64", // def vector, use general; aux bit 0: result is f64
  // A compare whose condition is stored as a byte: address registers, register, second register unless there is an
  // immediate; the address is in aux like a row's, imm the immediate; STORE_CONDITION replaces the consumer and selects
  // the kind of compare
  "STORE_CONDITION",
  // atomic memory; the address is like a row's
  "CMPXCHG", // def rax, use rax, address, use replacement; imm = log2 of the width
  "ATOMIC_FENCE",
]);

/** Kinds of compare of STORE_CONDITION; plus 1 for 64 bits. */
export const STORE_CONDITION = { REGISTERS: 0, IMMEDIATE: 2, ZERO: 4 } as const;

/** Address modes: kinds of r/m operands. */
export const MODE = {
  /** A register or stack slot: one operand word. */
  REGISTER: 0,
  /** [rbx + index << scale + disp]: one word. disp is unsigned 32-bit. */
  MEMORY: 1,
  /** [rbx + disp] */
  MEMORY_CONSTANT: 2,
  /** [r15 + disp] */
  CONTEXT: 3,
  /** [base + disp]: one word. */
  POINTER: 4,
  /** [base + index << scale + disp]: two words. */
  POINTER_INDEX: 5,
  /** [index << scale + disp] without a base: one word (lea only). */
  INDEX: 6,
  /**
   * A constant of the function's pool: disp = low half, imm = high half; of 16 bytes, disp = index of the vector
   * constant.
   */
  POOL: 7,
  /** A constant of the image (image_constants.ts), disp = its offset there. */
  SHARED: 8,
} as const;

export const AUX_POOL_SHIFT = 21;
export const AUX_LOCK: number = 1 << 29;

/** Condition codes of the hardware, and two that need the parity flag too. Inversion is ^ 1. */
export const CC = {
  O: 0,
  NO: 1,
  B: 2,
  AE: 3,
  E: 4,
  NE: 5,
  BE: 6,
  A: 7,
  S: 8,
  NS: 9,
  P: 10,
  NP: 11,
  L: 12,
  GE: 13,
  LE: 14,
  G: 15,
  /** Equal and ordered (after ucomiss). */
  FE: 16,
  /** Unequal or unordered. */
  FNE: 17,
} as const;

/** Names for printing. */
export const CC_NAMES = [
  "o",
  "no",
  "b",
  "ae",
  "e",
  "ne",
  "be",
  "a",
  "s",
  "ns",
  "p",
  "np",
  "l",
  "ge",
  "le",
  "g",
] as const;

/** The condition after exchanging the operands of a compare. */
export const CC_SWAPPED: Uint8Array = Uint8Array.of(0, 1, 7, 6, 4, 5, 3, 2, 8, 9, 10, 11, 15, 14, 13, 12, 16, 17);
