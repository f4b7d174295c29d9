/**
 * The runtime routines that compiled code calls (IR: CALL_BUILTIN), as one table. Parameters and results are IR types.
 * A native routine has machine code in the image. Any other routine parks: compiled code returns STATUS.BUILTIN with
 * the row's number, the runtime runs the routine in JavaScript, and arguments and results pass through the slots of the
 * thread state. Every routine may trap.
 *
 * Addresses and lengths are i64 (zero-extended for 32-bit memories and tables), so that one row serves both index
 * types.
 */
import { TY } from "../ir/types.ts";

export interface BuiltinRow {
  readonly name: string;
  readonly params: readonly number[];
  readonly results: readonly number[];
  /**
   * Whether the routine has machine code in every image; otherwise calling it parks. A native routine calls gc_allocate
   * with NO_BYTES after each PIECE_BYTES.
   */
  readonly native: boolean;
  /** Whether only images with the stack rule `logged` have it. */
  readonly logged?: boolean;
  /** Whether only images of modules that may use stack switching have it. */
  readonly continuations?: boolean;
  /** Whether the shared stub COMPILE calls it, and nothing else does: it has no code of its own. */
  readonly shared?: boolean;
}

/** The number of bytes that a native routine moves at once: about a millisecond of work. */
export const PIECE_BYTES = 1 << 22;

/** The size with which gc_allocate allocates nothing, and only checks the limits of the call. */
export const NO_BYTES = 0;

const { I32, I64, REF } = TY;

export const BUILTIN_ROWS = [
  // memory index, delta in pages → old size in pages, or −1
  { name: "memory_grow", params: [I32, I64], results: [I64], native: false },
  // destination pointer (after bounds checks), source pointer, byte count; may overlap
  { name: "memory_move", params: [I64, I64, I64], results: [], native: true },
  // destination pointer (after bounds checks), byte value, byte count
  { name: "memory_set", params: [I64, I32, I64], results: [], native: true },
  // memory index, segment, destination, source, count; checks its bounds
  { name: "memory_init", params: [I32, I32, I64, I64, I64], results: [], native: false },
  // segment
  { name: "data_drop", params: [I32], results: [], native: false },
  // table index, element, delta → old size, or −1
  { name: "table_grow", params: [I32, REF, I64], results: [I64], native: false },
  // table index, start, element, count
  { name: "table_fill", params: [I32, I64, REF, I64], results: [], native: false },
  // destination table, source table, destination, source, count
  { name: "table_copy", params: [I32, I32, I64, I64, I64], results: [], native: false },
  // table index, segment, destination, source, count
  { name: "table_init", params: [I32, I32, I64, I64, I64], results: [], native: false },
  // segment
  { name: "elem_drop", params: [I32], results: [], native: false },
  // tag index; the payload is in the overflow buffer; does not return
  { name: "throw", params: [I32], results: [], native: false },
  // exception or null; does not return
  { name: "throw_ref", params: [REF], results: [], native: false },
  // rethrows the most recently caught exception, which must still be current; does not return
  { name: "rethrow", params: [], results: [], native: false },
  // → the most recently caught exception, as a reference
  { name: "caught", params: [], results: [REF], native: false },
  // object size in bytes, header included (unchecked for arrays) → its address; see gc_layout.ts; may collect; NO_BYTES
  { name: "gc_allocate", params: [I64], results: [REF], native: false },
  // type index, segment, first byte or element in the segment, length → a new array
  { name: "array_new_data", params: [I32, I32, I32, I32], results: [REF], native: false },
  { name: "array_new_elem", params: [I32, I32, I32, I32], results: [REF], native: false },
  // type index, segment, array, start (checked), first byte or element in the segment, count
  { name: "array_init_data", params: [I32, I32, REF, I32, I32, I32], results: [], native: false },
  { name: "array_init_elem", params: [I32, I32, REF, I32, I32, I32], results: [], native: false },
  // memory index, address, expected value, timeout in ns (negative: none) → 0 woken, 1 not equal, 2 timed out
  { name: "memory_wait32", params: [I32, I64, I32, I64], results: [I32], native: false },
  { name: "memory_wait64", params: [I32, I64, I64, I64], results: [I32], native: false },
  // memory index, address, maximum number of waiters to wake → number of waiters woken
  { name: "memory_notify", params: [I32, I64, I32], results: [I32], native: false },
  // the number of activations is that of THREAD.DEPTH_STOP
  { name: "check_stack", params: [], results: [], native: false, logged: true },
  // index of a defined function without code → the address of its code; the arguments of the function are kept
  { name: "compile_body", params: [I32], results: [I64], native: false, shared: true },
  // function, index of the continuation type → continuation
  { name: "cont_new", params: [REF, I32], results: [REF], native: false, continuations: true },
  // continuation, number of arguments in the overflow buffer → continuation
  { name: "cont_bind", params: [REF, I32], results: [REF], native: false, continuations: true },
  // tag index; payload, then arguments of the resumption, in the overflow buffer
  { name: "suspend", params: [I32], results: [], native: false, continuations: true },
  // continuation, type index, handlers (SWITCH_HANDLERS_SHIFT) → 0: it has ended; n: it has suspended with a tag of the
  // nth handler with a label; in the overflow buffer arguments and tags, then results, or payload and continuation
  { name: "resume", params: [REF, I32, I32], results: [I32], native: false, continuations: true },
  // continuation, type index, tag index, handlers; the same with the payload of an exception for the arguments
  { name: "resume_throw", params: [REF, I32, I32, I32], results: [I32], native: false, continuations: true },
  // continuation, type index, exception or null, handlers; the same
  { name: "resume_throw_ref", params: [REF, I32, REF, I32], results: [I32], native: false, continuations: true },
  // continuation, number of its parameters, tag index; arguments but for the last one in the overflow buffer, where
  // those of the resumption are afterwards
  { name: "switch_to", params: [REF, I32, I32], results: [], native: false, continuations: true },
] as const satisfies readonly BuiltinRow[];

/** Whether images of modules with these settings have a stub for the routine. */
export function isInImage(
  row: BuiltinRow,
  settings: { readonly stack?: string; readonly continuations?: boolean },
): boolean {
  if (row.shared === true) return false;
  if (row.logged === true) return settings.stack === "logged";
  return row.continuations !== true || settings.continuations === true;
}

export type BuiltinName = (typeof BUILTIN_ROWS)[number]["name"];

/** Row numbers by builtin name. */
export const BUILTIN: Readonly<Record<BuiltinName, number>> = Object.freeze(
  Object.fromEntries(BUILTIN_ROWS.map((row, index) => [row.name, index])) as Record<BuiltinName, number>,
);
