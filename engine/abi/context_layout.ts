/**
 * Memory shared by machine code and the runtime: the VM context of an instance, function records and the thread state.
 * Offsets are in bytes and every field is little-endian. This file is the only definition of these layouts.
 *
 * A VM context belongs to one instance on one thread. The context register points at it while the instance's code runs:
 *
 *     header          thread, stack limit, type ids, …            fixed, CONTEXT.*
 *     memories        { base, byte length } each, at least one    copies that the runtime updates in every importer
 *     tables          { base, length } each                       the same
 *     globals         16 bytes each: the value, or a pointer to the cell of an imported mutable global
 *     imports         a function record each
 *     functions       a function record per defined function
 *     typeIds         u32 canonical type id per type index
 *     tags            u64 identity per tag index; equal only for the same tag instance
 *     sharedLengths   only if a memory is shared: u64 per memory index, the address of the word with its current
 *                     byte length. The length in `memories` is then a lower bound, because a shared memory never
 *                     shrinks; only an access beyond it loads the current length
 *     strings         only if string builtins are imported (string_layout.ts): the ORIGIN of a string table, u64
 *                     (STRINGS.ORIGIN), and a function record per builtin, through which code calls the imported
 *                     ones. Both change once the runtime has machine code for the builtins
 *
 * A non-null funcref is the address of a function record (RECORD); a null funcref is 0. Table elements are references
 * (gc_layout.ts), 8 bytes each.
 */
import { STRING_BUILTIN_NAMES } from "./string_layout.ts";

/** Header of the VM context. */
export const CONTEXT = {
  /** Address of the thread state. */
  THREAD: 0,
  /** Lowest stack pointer allowed after a function's frame is set up (stack-fence). */
  STACK_LIMIT: 8,
  /** Address of the stub that ends execution with a trap; see THREAD.TRAP_CODE. */
  TRAP_EXIT: 16,
  /** Address of the thread's buffer for arguments and results beyond the registers: 16 bytes each. */
  OVERFLOW: 24,
  /** Address of the allocation cells of the thread's garbage-collected heap (gc_layout.ts: CELLS). */
  HEAP: 32,
  /** Address of the poll page (code_arena.ts), for code that cannot address it relative to the program counter. */
  POLL: 40,
  /** Instance number, i32; the runtime finds the instance of a parked context by it. */
  INSTANCE: 48,
  /** 1 if the instance's code keeps the thread's fuel in a register while it runs (THREAD.FUEL), otherwise 0; i32. */
  METERED: 52,
  /** Address of the stub that a tail call into another instance installs as its return address; see TAIL_FRAME. */
  TAIL_RETURN: 56,
  /** Size of the header. */
  SIZE: 64,
} as const;

/**
 * The frame that a tail call into another instance pushes, in ascending order: the stub's address, to which the callee
 * returns, and the VM context that the stub restores; the caller's stack follows. The whole process has one such stub,
 * so a callee that makes such a call itself recognizes the existing frame and pushes none. The stack depth stays
 * constant.
 */
export const TAIL_FRAME = { RETURN: 0, CONTEXT: 8, SIZE: 16 } as const;

/** A function record. */
export const RECORD = {
  /**
   * Address of the code, which expects CONTEXT in the context register and the record's address in the record register.
   */
  CODE: 0,
  /** The VM context of the code. */
  CONTEXT: 8,
  /** Canonical type id, u32; never 0. */
  TYPE_ID: 16,
  /** For a host function: its index in the runtime's host-function table, u32; otherwise 0. */
  HOST: 20,
  /** The runtime's handle for the JavaScript function object of this record, u32. */
  HANDLE: 24,
  /** Number of the instance in whose VM context the record is, u32; of an import, the importing instance. */
  OWNER: 28,
  SIZE: 32,
} as const;

/** A memory in the VM context: base address and length in bytes (u64). */
export const MEMORY = { BASE: 0, LENGTH: 8, SIZE: 16 } as const;
/**
 * Size in bytes of the reservation of a guarded memory, from its base on: 4 GiB for the index, 4 GiB for the offset,
 * and the widest access.
 */
export const GUARD_RESERVATION: number = 2 ** 33 + 0x10000;
/** Size of an entry of `sharedLengths`. */
export const SHARED_LENGTH_SIZE = 8;
/** A table in the VM context: base address of its elements and length in elements (u64). */
export const TABLE = { BASE: 0, LENGTH: 8, SIZE: 16 } as const;
export const GLOBAL_SIZE = 16;
export const TAG_SIZE = 8;
/** The string section of a VM context, present if the module imports string builtins; see STRING_BUILTINS. */
export const STRINGS = { ORIGIN: 0, RECORDS: 32, SIZE: 32 + STRING_BUILTIN_NAMES.length * 32 } as const;

/**
 * The thread state: one per thread (JavaScript realm), at a fixed address for the thread's lifetime. The process stubs
 * `call` and `resume` (ProcessStubs) take its address and return a STATUS code.
 */
export const THREAD = {
  /** Host stack pointer while guest code runs. */
  HOST_SP: 0,
  /** Guest stack pointer while the host runs: the point to resume at, or the top of an empty stack. */
  GUEST_SP: 8,
  /** Trap code of the last trap (traps.ts), u32. */
  TRAP_CODE: 16,
  /** Status of the last return to the host, u32 (STATUS). */
  STATUS: 20,
  /** Program counter of the last trap: a return address inside the trapping function, or the faulting instruction. */
  TRAP_PC: 24,
  /** Guest stack pointer at the last trap, where the stack walk starts. */
  TRAP_SP: 32,
  /** For a new call: the code address and the context. */
  CALL_CODE: 40,
  CALL_CONTEXT: 48,
  /**
   * While parked: index of the requested host function (RECORD.HOST) or builtin (abi/builtins.ts), u32, and the parked
   * context.
   */
  PARK_INDEX: 56,
  /** Stack budget of the next callee in abstract units, i32; deterministic code only (translate/deterministic.ts). */
  DEPTH_LEFT: 60,
  PARK_CONTEXT: 64,
  /** Lowest usable address of the current guest stack, and the end of its guard range, for the fault handler. */
  STACK_LOW: 72,
  STACK_HIGH: 80,
  /** Address of the faulting access, written by the fault handler; 0 for traps raised by an instruction sequence. */
  FAULT_ADDRESS: 88,
  /**
   * Address of the entry thunk of a new call: it loads arguments from SLOTS, calls CALL_CODE and stores the results.
   */
  CALL_THUNK: 96,
  /** Address of the callee's function record in a new call; host thunks expect it in the record register. */
  CALL_RECORD: 104,
  /** Tag identity of the most recently caught exception. Its payload is in the overflow buffer, 16 bytes per value. */
  CAUGHT_TAG: 112,
  /**
   * Remaining fuel, i64; without a limit, more than any program can use. Code that charges fuel keeps it in a register:
   * every exit from such code stores it here and every entry loads it.
   */
  FUEL: 120,
  /**
   * Address of the hash table for native unwinding (UNWIND_ENTRY), 0 if it does not exist; its number of entries minus
   * one, u32.
   */
  UNWIND: 128,
  UNWIND_MASK: 136,
  /**
   * 1 if machine code performed the last unwinding and the runtime has not yet recorded the caught exception, otherwise
   * 0; u32.
   */
  CAUGHT_NATIVELY: 140,
  /**
   * Valid if CAUGHT_NATIVELY is 1: the exnref of the caught exception, 0 if it has none, and the address of its record
   * (EXCEPTION_RECORD).
   */
  CAUGHT_WORD: 144,
  CAUGHT_RECORD: 152,
  /** The next free exception record for machine code, and the end of the records. */
  NEXT_RECORD: 160,
  LAST_RECORD: 168,
  /** The VM context of the code that trapped last. */
  TRAP_CONTEXT: 176,
  /**
   * The depth at which code calls the builtin check_stack, negative, in activations, i32; 0 for none. Code with the
   * stack rule `logged` only, which counts down from 0 in DEPTH_LEFT.
   */
  DEPTH_STOP: 184,
  /**
   * Argument and result slots of calls in both directions: 16 bytes each (i32 in the low 4 bytes, …, v128 in all 16).
   */
  SLOTS: 192,
  SLOT_SIZE: 16,
  /**
   * Number of slots, at least the maximum number of parameters or results of a function (implementation limit 1000, as
   * in V8).
   */
  SLOT_COUNT: 1024,
  /** The overflow buffer (CONTEXT.OVERFLOW) follows the slots. */
  OVERFLOW: 192 + 1024 * 16,
  SIZE: 192 + 1024 * 16 * 2,
} as const;

/**
 * A call site in the hash table for native unwinding: its return address (0: free entry), the distance in bytes from
 * above the return address to the next return address (−1: only the runtime can unwind further), and the offset of the
 * landing pad from the return address (0: none). UNWIND_HASH selects the entry.
 */
export const UNWIND_ENTRY = { RETURN: 0, FRAME: 8, LANDING: 12, SIZE: 16, SHIFT: 4 } as const;
/**
 * Open addressing with linear probing: the probe for `address` starts at (address × FACTOR mod 2³²) >>> SHIFT, modulo
 * the table size.
 */
export const UNWIND_HASH = { FACTOR: 0x1e3779b1, SHIFT: 7 } as const;

/**
 * The record that machine code writes for an exception with an exnref: the exnref, the tag identity and up to four
 * values.
 */
export const EXCEPTION_RECORD = { WORD: 0, TAG: 8, PAYLOAD: 16, VALUES: 4, SIZE: 16 + 4 * 16 } as const;

/** Low bits of tag identities. */
export const TAG_BITS = {
  /** Machine code may unwind exceptions with this tag; never set for the tag of JavaScript exceptions. */
  NATIVE: 1,
  /** A record can hold the payload: at most four values, none of them a reference. */
  RECORDED: 2,
  SHIFT: 2,
} as const;

/** Status codes that the process stubs `call` and `resume` return. */
export const STATUS = { DONE: 0, HOST: 1, TRAP: 2, BUILTIN: 3, POLL: 4 } as const;

/**
 * The frame of a parked call, from GUEST_SP upwards: GUEST_SP at the start of the activation, the VM context of the
 * parked code, the resume address (a call site with frame size 0), and then the frame of the parked code. To continue
 * elsewhere, such as at an exception handler, the runtime writes such a frame.
 */
export const PARKED = { ENTRY_SP: 0, CONTEXT: 8, RESUME: 16, FRAME: 24 } as const;

/** The argument of `resume` with the numbers of handlers: those with labels, and above this bit those of switches. */
export const SWITCH_HANDLERS_SHIFT = 16;

/** The module properties that determine the layout of its VM contexts: counts per index space. */
export interface ContextShape {
  memories: number;
  tables: number;
  globals: number;
  importedFuncs: number;
  definedFuncs: number;
  types: number;
  tags?: number;
  /** Whether any memory is shared. */
  shared?: boolean;
  /** Whether string builtins are imported. */
  strings?: boolean;
}

/** Offsets of the variable part of a VM context. */
export interface ContextLayout extends ContextShape {
  memoriesOffset: number;
  tablesOffset: number;
  globalsOffset: number;
  importsOffset: number;
  functionsOffset: number;
  typeIdsOffset: number;
  tagsOffset: number;
  sharedLengthsOffset: number;
  stringsOffset: number;
  size: number;
  /**
   * Tables whose contents the code assumes from the module's segments (translate/table_facts.ts); nothing else may
   * write to them.
   */
  knownTables?: readonly number[];
}

/** Computes the layout of a VM context. */
export function layoutContext(shape: ContextShape): ContextLayout {
  const memoriesOffset = CONTEXT.SIZE;
  const tablesOffset = memoriesOffset + Math.max(shape.memories, 1) * MEMORY.SIZE;
  const globalsOffset = tablesOffset + shape.tables * TABLE.SIZE;
  const importsOffset = globalsOffset + shape.globals * GLOBAL_SIZE;
  const functionsOffset = importsOffset + shape.importedFuncs * RECORD.SIZE;
  const typeIdsOffset = functionsOffset + shape.definedFuncs * RECORD.SIZE;
  const tagsOffset = (typeIdsOffset + shape.types * 4 + 7) & ~7;
  const sharedLengthsOffset = tagsOffset + (shape.tags ?? 0) * TAG_SIZE;
  const lengthsEnd = sharedLengthsOffset + (shape.shared === true ? shape.memories * SHARED_LENGTH_SIZE : 0);
  // The distance from the import records is a multiple of the record size, so that code calls builtins as imports.
  const stringsOffset = importsOffset + Math.ceil((lengthsEnd - importsOffset) / RECORD.SIZE) * RECORD.SIZE;
  const size = ((shape.strings === true ? stringsOffset + STRINGS.SIZE : lengthsEnd) + 15) & ~15;
  return {
    ...shape,
    memoriesOffset,
    tablesOffset,
    globalsOffset,
    importsOffset,
    functionsOffset,
    typeIdsOffset,
    tagsOffset,
    sharedLengthsOffset,
    stringsOffset,
    size,
  };
}

/**
 * Words after the process stubs that give the fault handler its code range, landing pad and previous handlers
 * (ProcessStubs.faultWords): byte offsets of addresses.
 */
export const FAULT_WORDS = { START: 0, END: 8, LANDING: 16, OLD_HANDLERS: 24, SIZE: 32 } as const;

/**
 * Byte offsets of the previous handlers of the fault signals, in memory that the host can write while other threads
 * fault.
 */
export const OLD_HANDLERS = { SEGV: 0, BUS: 8, FPE: 16, SIZE: 24 } as const;
