/**
 * Memory that machine code and the runtime share: the VM context of an instance, function records, the thread state.
 * Offsets in bytes; every field is little-endian. This file is the only place that says where a field is.
 *
 * The VM context belongs to one instance on one thread; the context register points at it while the instance's code runs:
 *
 *     header          thread, stack limit, type ids, …            fixed, CONTEXT.*
 *     memories        { base, byte length } each                  copies, kept up to date by the runtime in every importer
 *     tables          { base, length } each                       the same
 *     globals         16 bytes each: own value, or pointer to the cell for an imported mutable one
 *     imports         a function record each
 *     functions       a function record per defined function whose reference can be taken (all of them, to keep it simple)
 *     typeIds         u32 canonical id per type index
 *     tags            u64 identity per tag index: equal exactly for the same tag instance
 *     sharedLengths   if any memory is shared: per memory index the address of the word that holds its byte length now, u64. The length
 *                     among `memories` is then one that it has had; it never shrinks, so only an access beyond that must look
 *     strings         if builtins for strings are imported (string_layout.ts): ORIGIN of a table, u64 (STRINGS.ORIGIN), and a function record per
 *                     builtin, by which code calls those that it imports. Both change when the runtime has machine code for them
 *
 * A function record is what a funcref points at (and what a null funcref, 0, does not): { code, context, typeId, host }.
 * Table elements are 8 bytes each: the address of a record, a host handle, or 0.
 */
import { STRING_BUILTIN_NAMES } from "./string_layout.ts";

/** Header of the VM context. */
export const CONTEXT = {
  /** Address of the thread state. */
  THREAD: 0,
  /** Lowest stack pointer that a function entry may leave behind (stack-fence). */
  STACK_LIMIT: 8,
  /** Address of the stub that ends execution with a trap: see THREAD.TRAP_CODE. */
  TRAP_EXIT: 16,
  /** Address of the buffer for arguments and results beyond the registers: 8 bytes each (16 for v128), shared by the thread. */
  OVERFLOW: 24,
  /** Address of the allocation cells of the thread's collected heap (gc_layout.ts: CELLS). */
  HEAP: 32,
  /** Address of the poll page (host/code_arena.ts), for code that cannot reach it relative to itself. */
  POLL: 40,
  /** Number of the instance, i32: how the runtime finds it from a parked context. */
  INSTANCE: 48,
  /** 1 if the instance's code keeps the thread's fuel in a register while it runs (THREAD.FUEL), else 0; i32. */
  METERED: 52,
  /** Address of the stub that a tail call into another instance leaves as its return address: see TAIL_FRAME. */
  TAIL_RETURN: 56,
  /** Size of the header. */
  SIZE: 64,
} as const;

/**
 * What a tail call into another instance leaves on the stack, from the lowest address up: the address of the stub (where the callee
 * returns to), the VM context that the stub restores, and then what was there before. The stub belongs to the process, so that
 * a callee that makes such a call itself sees that this frame is there already and needs no other: the stack stays constant.
 */
export const TAIL_FRAME = { RETURN: 0, CONTEXT: 8, SIZE: 16 } as const;

/** A function record. */
export const RECORD = {
  /** Address of the code; it expects the context register to hold CONTEXT below, and the record's address in the record register. */
  CODE: 0,
  /** The VM context the code runs in. */
  CONTEXT: 8,
  /** Canonical type id, u32; never 0. */
  TYPE_ID: 16,
  /** For a host function: its number in the runtime's table of host functions, u32; else 0. */
  HOST: 20,
  /** Handle for the runtime: which JavaScript function object stands for this record, u32. */
  HANDLE: 24,
  /** Number of the last collection that found the record in an object, u32 (gc/). */
  MARK: 28,
  SIZE: 32,
} as const;

/** One memory in the VM context. */
export const MEMORY = { BASE: 0, LENGTH: 8, SIZE: 16 } as const;
/** Size of an entry of `sharedLengths`. */
export const SHARED_LENGTH_SIZE = 8;
/** One table in the VM context: base address of its elements, length in elements (u64). */
export const TABLE = { BASE: 0, LENGTH: 8, SIZE: 16 } as const;
export const GLOBAL_SIZE = 16;
export const TAG_SIZE = 8;
/** What a context has of strings, if its module imports builtins for them: see STRING_BUILTINS. */
export const STRINGS = { ORIGIN: 0, RECORDS: 32, SIZE: 32 + STRING_BUILTIN_NAMES.length * 32 } as const;

/**
 * Thread state: one per thread (JavaScript realm), at a fixed address for its life. `enter` (backend stub) takes its address.
 * Status codes are what `enter` returns.
 */
export const THREAD = {
  /** Host stack pointer while guest code runs. */
  HOST_SP: 0,
  /** Guest stack pointer while the host runs: where to resume, or the top of a fresh stack. */
  GUEST_SP: 8,
  /** Trap code of the last trap (traps.ts), u32. */
  TRAP_CODE: 16,
  /** Status of the last return to the host, u32 (STATUS). */
  STATUS: 20,
  /** Program counter of the last trap: a return address inside the trapping function, or the faulting instruction. */
  TRAP_PC: 24,
  /** Guest stack pointer at the last trap, for the stack walk. */
  TRAP_SP: 32,
  /** For a fresh call: code address and context to call. */
  CALL_CODE: 40,
  CALL_CONTEXT: 48,
  /** While parked: number of the host function or builtin wanted, u32; its context. */
  PARK_INDEX: 56,
  /** Stack left to the next call, in units of wasm, i32: only deterministic code counts (translate/deterministic.ts). */
  DEPTH_LEFT: 60,
  PARK_CONTEXT: 64,
  /** Lowest usable address of the current guest stack, and its guard range end, for the fault handler. */
  STACK_LOW: 72,
  STACK_HIGH: 80,
  /** Address whose access faulted (written by the fault handler; 0 for traps that code raised itself). */
  FAULT_ADDRESS: 88,
  /** Address of the entry thunk of a fresh call (it loads arguments from SLOTS, calls CALL_CODE, stores results). */
  CALL_THUNK: 96,
  /** Address of the record of the function that a fresh call is for: host thunks expect it in the record register. */
  CALL_RECORD: 104,
  /** Identity of the tag of the exception that was caught last; its payload is in the overflow buffer, 16 bytes per value. */
  CAUGHT_TAG: 112,
  /**
   * Fuel left, i64; more than anything can use while nothing limits it. Code that charges fuel keeps it in a register meanwhile: every way
   * out of such code stores it here, and every way in loads it.
   */
  FUEL: 120,
  /** Address of the table by which machine code unwinds (UNWIND_ENTRY), 0 while there is none; its number of entries less one, u32. */
  UNWIND: 128,
  UNWIND_MASK: 136,
  /** 1 if machine code has unwound last, and what was caught is known here only; u32. */
  CAUGHT_NATIVELY: 140,
  /** Then: the exnref of what was caught, 0 while it has none, and the address of its record (EXCEPTION_RECORD). */
  CAUGHT_WORD: 144,
  CAUGHT_RECORD: 152,
  /** The next record for machine code to give away, and the end of the records. */
  NEXT_RECORD: 160,
  LAST_RECORD: 168,
  /** Argument and result slots of calls in and out: 16 bytes each (i32 in the low 4 bytes, …, v128 whole). */
  SLOTS: 192,
  SLOT_SIZE: 16,
  /** Number of slots: the most parameters or results a function may have (implementation limit 1000, as V8's). */
  SLOT_COUNT: 1024,
  /** The overflow buffer (CONTEXT.OVERFLOW) follows the slots. */
  OVERFLOW: 192 + 1024 * 16,
  SIZE: 192 + 1024 * 16 * 2,
} as const;

/**
 * A call site in the hash table by which machine code unwinds: the address it returns to (0: free), the bytes from above the return address
 * to the next one (−1: only the runtime can go on there), and the landing less the address (0: none). Entry number: hashOfSite.
 */
export const UNWIND_ENTRY = { RETURN: 0, FRAME: 8, LANDING: 12, SIZE: 16, SHIFT: 4 } as const;
/** The entry of `address` is the first free one or its own from (address × FACTOR mod 2³² >>> SHIFT) on, modulo the table's size. */
export const UNWIND_HASH = { FACTOR: 0x1e3779b1, SHIFT: 7 } as const;

/** What machine code notes of an exception to which it has given an exnref: that, the tag's identity, and the first four values. */
export const EXCEPTION_RECORD = { WORD: 0, TAG: 8, PAYLOAD: 16, VALUES: 4, SIZE: 16 + 4 * 16 } as const;

/** Low bits of tag identities. */
export const TAG_BITS = {
  /** Machine code may unwind: not what JavaScript threw. */
  NATIVE: 1,
  /** A record holds the payload: at most four values, no references. */
  RECORDED: 2,
  SHIFT: 2,
} as const;

/** What `enter` returns. */
export const STATUS = { DONE: 0, HOST: 1, TRAP: 2, BUILTIN: 3, POLL: 4 } as const;

/**
 * What a parked call leaves on the guest stack, from GUEST_SP up: GUEST_SP as it was when the activation began, the VM context of
 * the parked code, where resume continues (a call site of frame 0), and then the frame of the code there. To continue elsewhere
 * (at the handler of an exception), the runtime writes such a frame itself.
 */
export const PARKED = { ENTRY_SP: 0, CONTEXT: 8, RESUME: 16, FRAME: 24 } as const;

/** What of a module decides the layout of its contexts. */
export interface ContextShape {
  memories: number;
  tables: number;
  globals: number;
  importedFuncs: number;
  definedFuncs: number;
  types: number;
  tags?: number;
  /** Is any memory shared? */
  shared?: boolean;
  /** Are builtins for strings imported? */
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
  /** Tables whose content the code takes for what the module's segments say (translate/table_facts.ts): nothing else may fill them. */
  knownTables?: readonly number[];
}

/** Lays a VM context out. */
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
  // Records of builtins are as many sizes of a record behind those of imports, so that code calls them as such.
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

/** The number under which code calls builtin number `k` for strings, as if it were an import. */
export function stringBuiltinIndex({ stringsOffset, importsOffset }: ContextLayout, k: number): number {
  return (stringsOffset + STRINGS.RECORDS - importsOffset) / RECORD.SIZE + k;
}

/** Words behind the process stubs that tell the fault handler what it serves (ProcessStubs.faultWords): byte offsets of addresses. */
export const FAULT_WORDS = { START: 0, END: 8, LANDING: 16, OLD_HANDLERS: 24, SIZE: 32 } as const;

/** Byte offsets of the previous handlers of the fault signals, in memory that the host can write while other threads fault. */
export const OLD_HANDLERS = { SEGV: 0, BUS: 8, FPE: 16, SIZE: 24 } as const;
