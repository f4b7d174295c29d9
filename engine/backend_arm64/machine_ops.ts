/**
 * The vocabulary between selector and emitter that is specific to arm64, besides instruction rows and
 * codegen/pseudo_ops.ts: pseudo operations of its own, address modes and condition codes.
 *
 * Operand order of a row in VCode: first the operands of the flag consumer, then the row's registers as its text names
 * them; a compare's result register and an address are left out, and the registers of the address come last. `imm` is
 * the row's field i, `disp` its field s; of loads and stores `disp` is the displacement in bytes.
 *
 * Operands of shared pseudo operations here:
 *
 *     DIV_S       def, use, use; imm as the IR's
 *     FCOPYSIGN   def reuse 1, use, late use
 *     TRUNC_S32   def general, use vector; aux bit 0: operand is f64
 *     ATOMIC_LOOP def, late uses: address, value; imm = number of the operation from ATOMIC_ADD on
 *                 + 256 × log2 of the width
 */
import { pseudoOps } from "../codegen/pseudo_ops.ts";

export {
  AUX_CODE_SHIFT,
  AUX_CONDITION_SHIFT,
  AUX_CONSUMER_SHIFT,
  AUX_LANDING,
  AUX_MODE,
  AUX_TRAP_SHIFT,
  auxConsumer,
  CONSUMER,
  PSEUDO_BASE,
} from "../codegen/pseudo_ops.ts";

/** Numbers of the pseudo operations. */
export const P = pseudoOps([
  // function boundary and constants
  "CONTEXT_ADDRESS", // def = context + imm
  "MEMORY_ADDRESS", // def = base of memory 0 + use; aux bit 0: the use is 64-bit
  "ADD_CONSTANT", // def = use + disp (unsigned)
  // integer; aux bit 0: 64-bit
  "MUL", // def, use, use
  "NOT", // def, use
  "NEGATE", // def, use
  "ROTL", // def, use, use
  "CTZ", // def, use
  "POPCNT",
  // atomic memory without LSE
  "ATOMIC_SWAP", // def, late uses: address, expected, replacement; imm = log2 of the width
]);

/** Address modes of loads and stores. */
export const MODE = {
  /** No address: the row works on registers. */
  NONE: 0,
  /** [x26 + zero-extended index]: one word. */
  MEMORY: 1,
  /** [x26 + 64-bit index]: one word. */
  MEMORY_WIDE: 2,
  /** [x26 + disp], unsigned. */
  MEMORY_CONSTANT: 3,
  /** [x28 + disp] */
  CONTEXT: 4,
  /** [base + disp], unsigned: one word. */
  POINTER: 5,
} as const;

/** Condition codes of the hardware. Inversion is ^ 1. */
export const CC = {
  EQ: 0,
  NE: 1,
  HS: 2,
  LO: 3,
  MI: 4,
  PL: 5,
  VS: 6,
  VC: 7,
  HI: 8,
  LS: 9,
  GE: 10,
  LT: 11,
  GT: 12,
  LE: 13,
} as const;

/** Names for printing. */
export const CC_NAMES = [
  "eq",
  "ne",
  "hs",
  "lo",
  "mi",
  "pl",
  "vs",
  "vc",
  "hi",
  "ls",
  "ge",
  "lt",
  "gt",
  "le",
  "al",
  "nv",
];

/** The condition after exchanging the operands of an integer compare. */
export const CC_SWAPPED: Uint8Array = Uint8Array.of(0, 1, 9, 8, 4, 5, 6, 7, 3, 2, 13, 12, 11, 10);
