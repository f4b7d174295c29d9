/**
 * What rows of the opcode table come to: kinds (which function of the compiler takes the instruction) and operations (what the machine is asked
 * for), by number. opcode_table.ts gives every row its kind and operation; the machine file knows operations only.
 */
import type { i32 } from "./memory.ts";

// Kinds.
export const KIND_UNCOVERED: i32 = 0;
export const KIND_BINARY: i32 = 1;
export const KIND_SHIFT: i32 = 2;
export const KIND_DIVIDE: i32 = 3;
export const KIND_COMPARE: i32 = 4;
export const KIND_EQZ: i32 = 5;
export const KIND_UNARY: i32 = 6;
export const KIND_FLOAT_BINARY: i32 = 7;
export const KIND_FLOAT_UNARY: i32 = 8;
export const KIND_FLOAT_COMPARE: i32 = 9;
export const KIND_CONVERT: i32 = 10;
export const KIND_LOAD: i32 = 11;
export const KIND_STORE: i32 = 12;
export const KIND_CONST32: i32 = 13;
export const KIND_CONST64: i32 = 14;
export const KIND_NOP: i32 = 15;
export const KIND_DROP: i32 = 16;
export const KIND_SELECT: i32 = 17;
export const KIND_SELECT_TYPED: i32 = 18;
export const KIND_LOCAL_GET: i32 = 19;
export const KIND_LOCAL_SET: i32 = 20;
export const KIND_LOCAL_TEE: i32 = 21;
export const KIND_GLOBAL_GET: i32 = 22;
export const KIND_GLOBAL_SET: i32 = 23;
export const KIND_UNREACHABLE: i32 = 24;
export const KIND_BLOCK: i32 = 25;
export const KIND_LOOP: i32 = 26;
export const KIND_IF: i32 = 27;
export const KIND_ELSE: i32 = 28;
export const KIND_END: i32 = 29;
export const KIND_BR: i32 = 30;
export const KIND_BR_IF: i32 = 31;
export const KIND_BR_TABLE: i32 = 32;
export const KIND_RETURN: i32 = 33;
export const KIND_CALL: i32 = 34;
export const KIND_CALL_INDIRECT: i32 = 35;
export const KIND_CALL_REF: i32 = 36;
export const KIND_MEMORY_SIZE: i32 = 37;
export const KIND_MEMORY_GROW: i32 = 38;
export const KIND_MEMORY_COPY: i32 = 39;
export const KIND_MEMORY_FILL: i32 = 40;
export const KIND_MEMORY_INIT: i32 = 41;
export const KIND_DATA_DROP: i32 = 42;
export const KIND_TABLE_GET: i32 = 43;
export const KIND_TABLE_SET: i32 = 44;
export const KIND_TABLE_SIZE: i32 = 45;
export const KIND_TABLE_GROW: i32 = 46;
export const KIND_TABLE_FILL: i32 = 47;
export const KIND_TABLE_COPY: i32 = 48;
export const KIND_TABLE_INIT: i32 = 49;
export const KIND_ELEM_DROP: i32 = 50;
export const KIND_REF_NULL: i32 = 51;
export const KIND_REF_IS_NULL: i32 = 52;
export const KIND_REF_FUNC: i32 = 53;
export const KIND_REF_AS_NON_NULL: i32 = 54;
export const KIND_BR_ON_NULL: i32 = 55;
export const KIND_BR_ON_NON_NULL: i32 = 56;
export const KIND_RETURN_CALL: i32 = 57;
export const KIND_RETURN_CALL_INDIRECT: i32 = 58;
export const KIND_RETURN_CALL_REF: i32 = 59;
export const KIND_ATOMIC_LOAD: i32 = 60;
export const KIND_ATOMIC_STORE: i32 = 61;
export const KIND_ATOMIC_MODIFY: i32 = 62;
export const KIND_COMPARE_EXCHANGE: i32 = 63;
export const KIND_WAITING: i32 = 64;
export const KIND_FENCE: i32 = 65;

// Operations of two integers.
export const ADD: i32 = 0;
export const SUB: i32 = 1;
export const MUL: i32 = 2;
export const AND: i32 = 3;
export const OR: i32 = 4;
export const XOR: i32 = 5;
// Shifts.
export const SHL: i32 = 0;
export const SHR_S: i32 = 1;
export const SHR_U: i32 = 2;
export const ROTL: i32 = 3;
export const ROTR: i32 = 4;
// Divisions.
export const DIV_S: i32 = 0;
export const DIV_U: i32 = 1;
export const REM_S: i32 = 2;
export const REM_U: i32 = 3;
// Operations of one integer.
export const CLZ: i32 = 0;
export const CTZ: i32 = 1;
export const POPCNT: i32 = 2;
export const EXTEND8: i32 = 3;
export const EXTEND16: i32 = 4;
export const EXTEND32: i32 = 5;
export const WRAP: i32 = 6;
export const EXTEND_U: i32 = 7;
// Operations of two floats.
export const FADD: i32 = 0;
export const FSUB: i32 = 1;
export const FMUL: i32 = 2;
export const FDIV: i32 = 3;
export const FMIN: i32 = 4;
export const FMAX: i32 = 5;
export const FCOPYSIGN: i32 = 6;
// Operations of one float.
export const FABS: i32 = 0;
export const FNEG: i32 = 1;
export const FSQRT: i32 = 2;
export const FCEIL: i32 = 3;
export const FFLOOR: i32 = 4;
export const FTRUNC: i32 = 5;
export const FNEAREST: i32 = 6;
// Conversions between banks, and between floats.
export const TRUNC_S: i32 = 0;
export const TRUNC_U: i32 = 1;
export const TRUNC_SAT_S: i32 = 2;
export const TRUNC_SAT_U: i32 = 3;
export const CONVERT_S: i32 = 4;
export const CONVERT_U: i32 = 5;
export const DEMOTE: i32 = 6;
export const PROMOTE: i32 = 7;
export const REINTERPRET: i32 = 8;
// Comparisons of floats: the conditions, and 1 << 4 for operands in the other order.
export const SWAPPED: i32 = 16;
// Atomic operations.
export const ATOMIC_ADD: i32 = 0;
export const ATOMIC_SUB: i32 = 1;
export const ATOMIC_AND: i32 = 2;
export const ATOMIC_OR: i32 = 3;
export const ATOMIC_XOR: i32 = 4;
export const ATOMIC_EXCHANGE: i32 = 5;
export const ATOMIC_NOTIFY: i32 = 6;
export const ATOMIC_WAIT32: i32 = 7;
export const ATOMIC_WAIT64: i32 = 8;
