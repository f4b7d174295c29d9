/**
 * What the selector says to the emitter beyond instruction rows: operations that expand to several instructions (PSEUDO, numbered
 * after the rows), the packing of VCode's `aux` word, address modes and condition codes.
 *
 *     aux   bits 0-3 address mode · 4-5 scale · 6-11 trap code of the access (0: cannot trap) · 12-16 condition · 17-19 consumer
 *           21-22 size of a pool constant (4 << n bytes) · 23-28 trap code raised when the condition holds (consumer TRAP)
 *           29 lock prefix
 *
 * Operand order of a row in VCode: first the operands of the flag consumer (below), then the row's operands from left to right,
 * where `rw` gives two words (DEF REUSE, then USE REG), a register or slot gives one, and a memory operand gives its address
 * registers (base, then index). Immediates and displacements are in `imm` and `disp`.
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
  "ZERO_EXTEND", // def = reuse of use 1: says that an i32 is used as an i64; no code
  // integer
  "DIV_S", // def rax, use rax, use divisor, temp rdx; imm as the IR's; aux bit 0: 64-bit
  "DIV_U",
  "REM_S", // def rdx, use rax, late use divisor, clobbers rax
  "REM_U",
  "MULHI_U", // def rdx, use rax, use factor, clobbers rax
  "MULHI_S",
  "CLZ_BSR", // def, use; aux bit 0: 64-bit
  "CTZ_BSF",
  "POPCNT_SWAR", // def, late use, temp
  "BOUNDS", // use address; imm = offset, disp = access size, aux bit 0: 64-bit address, bit 1: no operand, disp = constant extent; bits 8…: memory
  // floating point; aux bit 0: f64
  "FMIN", // def, use, use (avx) or def reuse 1, use, use
  "FMAX",
  "FCOPYSIGN",
  "TRUNC_S32", // def general, use vector; aux bit 0: operand is f64, bit 1: saturating
  "TRUNC_U32",
  "TRUNC_S64",
  "TRUNC_U64",
  "CONVERT_U64", // def vector, use general; aux bit 0: result is f64
  // atomic memory; the address is like a row's
  "CMPXCHG", // def rax, use rax, address, use replacement; imm = log2 of the width
  "ATOMIC_LOOP", // def rax, temp, late uses: address, value; imm = IR operation + 256 × log2 of the width
  "ATOMIC_FENCE",
  // control
  "JUMP",
  "SWITCH", // use index, temp; imm = number of edges; aux bit 0: the index is smaller than that
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

/** Address modes: what the r/m operand of a row is. */
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
  /** A constant of the function's pool: disp = low half, imm = high half; of 16 bytes, disp = index of the vector constant. */
  POOL: 7,
  /** A constant of the image (image_constants.ts), disp = its offset there. */
  SHARED: 8,
} as const;

export const AUX_MODE = 15;
export const AUX_SCALE_SHIFT = 4;
export const AUX_TRAP_SHIFT = 6;
export const AUX_CONDITION_SHIFT = 12;
export const AUX_CONSUMER_SHIFT = 17;
export const AUX_POOL_SHIFT = 21;
export const AUX_CODE_SHIFT = 23;
export const AUX_LOCK: number = 1 << 29;

/** What becomes of the flags that a compare sets. */
export const CONSUMER = {
  NONE: 0,
  /** The block ends: edge 0 if the condition holds, else edge 1. */
  BRANCH: 1,
  /** First operand: DEF of an i32 0 or 1. */
  SET: 2,
  /** First operands: DEF REUSE 1, USE value otherwise, USE ANY value if the condition holds; general registers, 32 bits. */
  MOVE32: 3,
  MOVE64: 4,
  /** The same for vector registers: by a branch. */
  MOVE_F32: 5,
  MOVE_F64: 6,
  /** Trap with the code in aux when the condition holds. */
  TRAP: 7,
} as const;

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
