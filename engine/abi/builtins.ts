/**
 * Runtime routines that compiled code calls (IR: CALL_BUILTIN), as one table. Arguments and results are listed with the IR's
 * types. A routine either has machine code of its own in the image (native) or parks and is run by the runtime in JavaScript
 * (STATUS.BUILTIN with the row's number; arguments and results in the thread's slots). Every routine may trap.
 *
 * Addresses and lengths are i64 (zero-extended for 32-bit memories and tables), so that one row serves both.
 */
import { TY } from "../ir/types.ts";

export interface BuiltinRow {
  readonly name: string;
  readonly params: readonly number[];
  readonly results: readonly number[];
  /** Has machine code of its own in every image; else it parks. */
  readonly native: boolean;
}

const { I32, I64, REF } = TY;

export const BUILTIN_ROWS = [
  // memory index, delta in pages → old size in pages, or −1
  { name: "memory_grow", params: [I32, I64], results: [I64], native: false },
  // destination pointer (after bounds checks), source pointer, byte count; may overlap
  { name: "memory_move", params: [I64, I64, I64], results: [], native: true },
  // destination pointer (after bounds checks), byte value, byte count
  { name: "memory_set", params: [I64, I32, I64], results: [], native: true },
  // memory index, segment, destination, source, count: checks bounds itself
  { name: "memory_init", params: [I32, I32, I64, I64, I64], results: [], native: false },
  { name: "data_drop", params: [I32], results: [], native: false },
  // table index, element, delta → old size, or −1
  { name: "table_grow", params: [I32, REF, I64], results: [I64], native: false },
  // table index, start, element, count
  { name: "table_fill", params: [I32, I64, REF, I64], results: [], native: false },
  // destination table, source table, destination, source, count
  { name: "table_copy", params: [I32, I32, I64, I64, I64], results: [], native: false },
  // table index, segment, destination, source, count
  { name: "table_init", params: [I32, I32, I64, I64, I64], results: [], native: false },
  { name: "elem_drop", params: [I32], results: [], native: false },
  // tag index; the payload is in the overflow buffer. Does not return
  { name: "throw", params: [I32], results: [], native: false },
  // exception or null. Does not return
  { name: "throw_ref", params: [REF], results: [], native: false },
  // throws the exception that was caught last, which nothing has replaced yet. Does not return
  { name: "rethrow", params: [], results: [], native: false },
  // the exception that was caught last, as a reference
  { name: "caught", params: [], results: [REF], native: false },
  // size of an object in bytes, header included (an array's may be absurd) → its address; see gc_layout.ts. May collect
  { name: "gc_allocate", params: [I64], results: [REF], native: false },
  // type index, segment, first byte or element of it, length → a new array
  { name: "array_new_data", params: [I32, I32, I32, I32], results: [REF], native: false },
  { name: "array_new_elem", params: [I32, I32, I32, I32], results: [REF], native: false },
  // type index, segment, array, start (checked), first byte or element of the segment, count
  { name: "array_init_data", params: [I32, I32, REF, I32, I32, I32], results: [], native: false },
  { name: "array_init_elem", params: [I32, I32, REF, I32, I32, I32], results: [], native: false },
  // memory index, address, expected value, nanoseconds (negative: for ever) → 0 woken, 1 the value differs, 2 time is up
  { name: "memory_wait32", params: [I32, I64, I32, I64], results: [I32], native: false },
  { name: "memory_wait64", params: [I32, I64, I64, I64], results: [I32], native: false },
  // memory index, address, most to wake → how many were woken
  { name: "memory_notify", params: [I32, I64, I32], results: [I32], native: false },
] as const satisfies readonly BuiltinRow[];

export type BuiltinName = (typeof BUILTIN_ROWS)[number]["name"];

/** Row numbers by name. */
export const BUILTIN: Readonly<Record<BuiltinName, number>> = Object.freeze(
  Object.fromEntries(BUILTIN_ROWS.map((row, index) => [row.name, index])) as Record<BuiltinName, number>,
);
