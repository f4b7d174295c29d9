/**
 * The vocabulary between selectors and emitters that all backends share, beyond instruction rows: pseudo operations
 * (which expand to several instructions or to none, and are numbered after the rows), consumers of a compare's flags,
 * and the packing of VCode's `aux` word. A backend adds pseudo operations of its own by {@linkcode pseudoOps}.
 *
 *     aux   bits 0-3 address mode · 4-5 scale · 6-11 trap code of the access (0: cannot trap) · 12-16 condition
 *           17-19 consumer · 21-22 the backend's · 23-28 trap code raised when the condition holds (consumer TRAP)
 */

/** First number of the pseudo operations; rows are smaller. */
export const PSEUDO_BASE = 1024;

/** The maximum number of cases of a SWITCH that are compared one after another; more have a jump table. */
export const MAX_COMPARED_CASES = 4;

const SHARED_ROWS = [
  // function boundary and constants
  "ENTRY", // defs: incoming parameters, fixed
  "RETURN", // uses: results, fixed; leaves
  "CONST_I32", // def; imm
  "CONST_I64", // def; imm = low half, disp = high half
  "CONST_F32", // def; imm = bits
  "CONST_F64", // def; imm, disp = bits
  "CONST_V128", // def; imm = index of the vector constant
  "ZERO_EXTEND", // def = reuse of use 1: an i32 used as an i64; emits nothing
  // use address; imm = offset, disp = access size; aux bit 0: 64-bit address, bit 1: no operand, disp = constant
  // extent, bits 8…: memory
  "BOUNDS",
  // def, late use index, use limit; imm = limit if it is a constant, disp = distance; aux bit 0: 64-bit compare, bit 1:
  // 64-bit index, bit 2: constant limit, bits 8…: trap code
  "CHECK_INDEX",
  // control
  "JUMP",
  "SWITCH", // use index, and the backend's own operands; imm = number of edges; aux bit 0: the index is smaller than that
  "TRAP", // imm = code
  "CHARGE", // imm = units of fuel, disp = units owed; aux bit 0: late use of the units instead; bit 1: owes them itself
  "POLL",
  "GC_ALLOC", // def, temps; imm = bytes, disp = size class. Aux bit 0: late use of the bytes instead, and one more temp
  // calls (all between POLL and TAIL_CALL); imm = function, import or builtin; disp = signature id; aux = trap code of
  // a null record
  "CALL",
  "CALL_RECORD", // first use: record, fixed; imm = CALL_OWN if it is known to belong to this instance
  "CALL_IMPORT",
  "CALL_NATIVE",
  "CALL_PARKING",
  "TAIL_CALL",
  "TAIL_CALL_RECORD", // as CALL_RECORD
  "TAIL_CALL_IMPORT",
  "UNWIND", // after a call with a landing: successor 0 is the landing, 1 goes on
  // arithmetic; operands and the rest of aux are the backend's. aux bit 0: 64-bit, or of f64
  "DIV_S", // imm as the IR's
  "DIV_U",
  "REM_S",
  "REM_U",
  "FCOPYSIGN",
  "TRUNC_S32", // def general, use vector
  "TRUNC_U32",
  "TRUNC_S64",
  "TRUNC_U64",
  "ATOMIC_LOOP",
] as const;

type SharedName = (typeof SHARED_ROWS)[number];

/** Numbers of the pseudo operations that all backends have. */
export const PSEUDO: Readonly<Record<SharedName, number>> = Object.freeze(
  Object.fromEntries(SHARED_ROWS.map((name, index) => [name, PSEUDO_BASE + index])) as Record<SharedName, number>,
);

/** The pseudo operations of a backend: numbers of the shared ones and of its `own`. */
export function pseudoOps<Name extends string>(own: readonly Name[]): Readonly<Record<SharedName | Name, number>> {
  const names: readonly (SharedName | Name)[] = [...SHARED_ROWS, ...own];
  const numbers = Object.fromEntries(names.map((name, index) => [name, PSEUDO_BASE + index]));
  return Object.freeze(numbers as Record<SharedName | Name, number>);
}

/** In the aux word of a call, above the trap code: the call has a landing (the block ends in UNWIND). */
export const AUX_LANDING = 1 << 8;

export const AUX_MODE = 15;
export const AUX_SCALE_SHIFT = 4;
export const AUX_TRAP_SHIFT = 6;
export const AUX_CONDITION_SHIFT = 12;
export const AUX_CONSUMER_SHIFT = 17;
export const AUX_CODE_SHIFT = 23;

/** Consumers of the flags that a compare sets, or of a compare-and-branch. */
export const CONSUMER = {
  NONE: 0,
  /** The block ends: edge 0 if the condition holds, else edge 1. */
  BRANCH: 1,
  /** First operand: DEF of an i32 0 or 1. */
  SET: 2,
  /** First operands: DEF and the two values, in the order of the backend's conditional move; 32 bits. */
  MOVE32: 3,
  MOVE64: 4,
  /** The same for vector registers. */
  MOVE_F32: 5,
  MOVE_F64: 6,
  /** Trap with the code in aux when the condition holds. */
  TRAP: 7,
} as const;

/** Consumer of the flags of an instruction with this aux word. */
export function auxConsumer(aux: number): number {
  return (aux >>> AUX_CONSUMER_SHIFT) & 7;
}
