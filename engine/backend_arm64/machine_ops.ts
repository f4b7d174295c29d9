/**
 * What the selector says to the emitter beyond instruction rows: operations that expand to several instructions (PSEUDO, numbered
 * after the rows), the packing of VCode's `aux` word, address modes and condition codes.
 *
 *     aux   bits 0-3 address mode · 4-5 scale · 6-11 trap code of the access (0: cannot trap) · 12-15 condition · 17-19 consumer
 *           23-28 trap code raised when the condition holds (consumer TRAP)
 *
 * Operand order of a row in VCode: first the operands of the flag consumer (below), then the row's registers as its text names
 * them; a compare's result register and an address are left out, and the registers of the address come last. `imm` is the
 * row's field i, `disp` its field s; of loads and stores `disp` is the displacement in bytes.
 */

/** First number of the operations below; rows are smaller. */
export const PSEUDO_BASE = 1024;

const PSEUDO_ROWS = [
  // function boundary and constants
  "ENTRY", // defs: incoming parameters, fixed
  "RETURN", // uses: results, fixed; leaves
  "CONST_I32", // def; imm
  "CONST_I64", // def; imm = low half, disp = high half
  "CONST_F32", // def; imm = bits
  "CONST_F64", // def; imm, disp = bits
  "CONST_V128", // def; imm = index of the vector constant
  "CONTEXT_ADDRESS", // def = context + imm
  "MEMORY_ADDRESS", // def = base of memory 0 + use; aux bit 0: the use is 64-bit
  "ADD_CONSTANT", // def = use + disp (signed)
  "ZERO_EXTEND", // def = reuse of use 1: says that an i32 is used as an i64; no code
  // integer; aux bit 0: 64-bit
  "DIV_S", // def, use, use; imm as the IR's
  "DIV_U",
  "REM_S",
  "REM_U",
  "MUL", // def, use, use
  "NOT", // def, use
  "ROTL", // def, use, use
  "CTZ", // def, use
  "POPCNT",
  "BOUNDS", // use address; imm = offset, disp = access size, aux bit 0: 64-bit address, bit 1: no operand, disp = constant extent; bits 8…: memory
  // floating point; aux bit 0: f64
  "FCOPYSIGN", // def reuse 1, use, late use
  "TRUNC_S32", // def general, use vector; aux bit 0: operand is f64
  "TRUNC_U32",
  "TRUNC_S64",
  "TRUNC_U64",
  // control
  "JUMP",
  "SWITCH", // use index; imm = number of edges; aux bit 0: the index is smaller than that
  "TRAP", // imm = code
  "POLL",
  // calls; imm = function, import or builtin; disp = signature id; aux = trap code of a null record
  "CALL",
  "CALL_RECORD", // first use: record, fixed
  "CALL_IMPORT",
  "CALL_NATIVE",
  "CALL_PARKING",
  "TAIL_CALL",
  "TAIL_CALL_RECORD",
  "TAIL_CALL_IMPORT",
  "UNWIND", // after a call with a landing: successor 0 is the landing, 1 goes on
] as const;

/** Numbers of the pseudo operations. */
export const P: Readonly<Record<(typeof PSEUDO_ROWS)[number], number>> = Object.freeze(
  Object.fromEntries(PSEUDO_ROWS.map((name, index) => [name, PSEUDO_BASE + index])) as Record<
    (typeof PSEUDO_ROWS)[number],
    number
  >,
);

/** Names by number − PSEUDO_BASE, for dumps. */
export const PSEUDO_NAMES: readonly string[] = PSEUDO_ROWS;

/** In the aux word of a call, above the trap code: the call has a landing (the block ends in UNWIND). */
export const AUX_LANDING = 1 << 8;

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
  /** [base + index << scale]: two words; the scale is 0 or that of the access. */
  POINTER_INDEX: 6,
} as const;

export const AUX_MODE = 15;
export const AUX_SCALE_SHIFT = 4;
export const AUX_TRAP_SHIFT = 6;
export const AUX_CONDITION_SHIFT = 12;
export const AUX_CONSUMER_SHIFT = 17;
export const AUX_CODE_SHIFT = 23;

/** What becomes of the flags that a compare sets, or of a compare-and-branch. */
export const CONSUMER = {
  NONE: 0,
  /** The block ends: edge 0 if the condition holds, else edge 1. */
  BRANCH: 1,
  /** First operand: DEF of an i32 0 or 1. */
  SET: 2,
  /** First operands: DEF, USE value if the condition holds, USE value otherwise. */
  MOVE32: 3,
  MOVE64: 4,
  MOVE_F32: 5,
  MOVE_F64: 6,
  /** Trap with the code in aux when the condition holds. */
  TRAP: 7,
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
