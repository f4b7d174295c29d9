/**
 * The backend contract: one record of data and functions per architecture. A backend is pure: it turns an IrFunction
 * into bytes for given CPU features and options, on any host, and does not depend on WebAssembly modules, the runtime
 * or the operating system.
 */
import type { ContextLayout } from "../abi/context_layout.ts";
import type { IrFunction } from "../ir/function.ts";
import type { OptimizationName, OptimizationSet } from "../settings/optimizations.ts";
import type { Statistics } from "../base/statistics.ts";
import type { ChosenSettings, CodeSettings } from "../settings/code_settings.ts";
import type { Signature } from "../ir/types.ts";
import type { Allocation } from "./allocation.ts";
import type { ListedLine } from "./code_listing.ts";
import type { MachineCode } from "./machine_code.ts";
import type { AllThunkParts } from "./stored_thunks.ts";
import type { VCode } from "./vcode.ts";

/** Properties of a compilation that all functions of the module share. */
export interface CodegenContext extends Partial<ChosenSettings>, Pick<CodeSettings, "explicitBounds"> {
  layout: ContextLayout;
  /**
   * By memory: whether it is shared. If so, BOUNDS traps only after it has brought the context's length up to date
   * (context_layout.ts: sharedLengths). None when absent.
   */
  sharedMemories?: readonly boolean[];
  /** Whether the module may use stack switching. No when absent. */
  continuations?: boolean;
  /** Whether it may use custom descriptors. No when absent. */
  descriptors?: boolean;
  /** Signatures by id, as IR calls name them. */
  signatures: readonly Signature[];
  /** Signature id per defined function. */
  functionSignature: Int32Array;
  optimizations: OptimizationSet;
  statistics: Statistics;
  /** Target-specific CPU feature names that are present: "avx", "bmi2", "lzcnt", "popcnt", … */
  cpu: ReadonlySet<string>;
  /**
   * Compare the stack pointer with CONTEXT.STACK_LIMIT in prologues; else a guard page below the stack catches
   * overflow.
   */
  stackFence: boolean;
}

/**
 * Registers that a key denies to some values of some functions; option_restrictions.ts obeys it. Masks as in
 * RegisterFile.
 */
export interface DeniedRegisters {
  readonly key: OptimizationName;
  /** The state of the key that denies them. */
  readonly when: "on" | "off";
  /** Functions without calls, with calls, or all. */
  readonly functions: "leaf" | "calling" | "all";
  /** All values, or those that live around a loop. */
  readonly values: "all" | "long";
  readonly general: number;
  readonly vector: number;
}

/**
 * Register facts that the allocator needs. Masks: bit r of `general` is register r, bit r of `vector` is register 32 +
 * r.
 */
export interface RegisterFile {
  /** Allocatable registers. */
  readonly general: number;
  readonly vector: number;
  /** Preference order of allocation, physical numbers. */
  readonly generalOrder: readonly number[];
  readonly vectorOrder: readonly number[];
  /** Printable names by physical number (0-63). */
  readonly names: readonly string[];
  /** Whether stack slots may be halves of cells (allocation.ts). No when absent. */
  readonly halfSlots?: boolean;
  /** Registers that keys deny; none when absent. */
  readonly denied?: readonly DeniedRegisters[];
}

/** Machine code that each process has once, entered from the host or by the kernel. Bytes are position-independent. */
export interface ProcessStubs {
  bytes: Uint8Array;
  /** Whether compiled code unwinds by itself where it can (context_layout.ts: UNWIND_ENTRY). */
  unwinds: boolean;
  /** i32 call(thread): begins the call that the thread state's CALL_* fields describe; returns a STATUS. */
  call: number;
  /** i32 resume(thread): continues where the guest parked; returns a STATUS. */
  resume: number;
  /**
   * The address that compiled code jumps to for a trap (CONTEXT.TRAP_EXIT): the code there stores TRAP_* and leaves
   * with STATUS.TRAP.
   */
  trapExit: number;
  /**
   * The return address of the callee of a tail call into another instance (CONTEXT.TAIL_RETURN): the code there
   * restores the context below it and returns.
   */
  tailReturn: number;
  /** void handler(signal, info, ucontext) for SIGSEGV, SIGBUS and SIGFPE; on Windows a vectored exception handler. */
  faultHandler: number;
  /**
   * Offset in `bytes` of the words (FAULT_WORDS) that the host fills: code arena start, code arena end, absolute
   * address of `faultLanding`, and that of the previous handlers (OLD_HANDLERS; 0 and 1 mean the default action).
   */
  faultWords: number;
  /**
   * Code offset of the landing that a fault continues at (leaves with STATUS.TRAP; THREAD.TRAP_* were written by the
   * handler).
   */
  faultLanding: number;
}

/** Selection and emission of one function at a time; owns the columns that are reused from function to function. */
export interface FunctionBackend {
  /** Selects instructions: IrFunction → VCode (which it resets). */
  select(f: IrFunction, v: VCode, context: CodegenContext, code: MachineCode): void;
  /** Appends the function's bytes, call sites, trap sites and relocations. `index` is the defined function's index. */
  emit(v: VCode, allocation: Allocation, context: CodegenContext, code: MachineCode, index: number): void;
}

/** The parts of a backend that every program needs: stubs, thunks and facts about the processor. */
export interface Target {
  readonly name: "x64" | "arm64";
  /** The byte between functions. */
  readonly filler: number;
  /** The key of frames that parts of a function do without. */
  readonly elideKey: OptimizationName;
  /** Registers of functions in a module compiled with or without explicit bounds checks, and fuel. */
  registers(explicitBounds: boolean, fuel?: boolean): RegisterFile;
  /** Appends shared stubs and native builtins; called once, first. */
  emitStubs(context: CodegenContext, code: MachineCode): void;
  /** Appends the entry thunk (host → wasm through the thread's SLOTS) of a signature. */
  emitEntryThunk(signatureId: number, context: CodegenContext, code: MachineCode): void;
  /** Appends the host-call thunk (wasm → host: parks with STATUS.HOST) of a signature. */
  emitHostThunk(signatureId: number, context: CodegenContext, code: MachineCode): void;
  /** Resolves relocations in place once all offsets are known. */
  relocate(code: MachineCode): void;
  /**
   * Overwrites the start of a function at offset `at` of `bytes` with a jump to `distance` bytes from there. Returns
   * false, and writes nothing, if the distance does not fit one instruction.
   */
  writeEntryJump(bytes: Uint8Array, at: number, distance: number): boolean;
  /**
   * Writes the entry of defined function `index` at offset `at` of an image that begins with a page: it jumps to the
   * address in the 8 bytes at offset `slot`, with the index in the register where the stub COMPILE expects it.
   */
  writeLazyEntry(bytes: Uint8Array, at: number, index: number, slot: number): void;
  /** Size in bytes of such an entry. */
  readonly lazyEntryBytes: number;
  /** Where the slots lead at first; absent where only JavaScript compiles lazy bodies. */
  readonly lazyGate?: LazyGate;
  /**
   * On-stack replacement; absent where it is not supported.
   *
   * @see LoopEntryTarget
   */
  readonly loopEntry?: LoopEntryTarget;
  /** Process-wide stubs for `os`, a name as in host/systems/systems.ts. */
  processStubs(os: string): ProcessStubs;
  /**
   * A C function void (i64 first, i64 end) that makes freshly written code visible to instruction fetch; absent where
   * the hardware keeps its caches coherent.
   */
  cacheMaintenance?(): Uint8Array;
}

/** The generator of what `deno task build:stubs` stores (stored_stubs.ts). */
export interface StubGenerator extends
  Pick<
    Target,
    "emitStubs" | "emitEntryThunk" | "emitHostThunk" | "processStubs" | "cacheMaintenance"
  > {
  /** The parts of thunks in images with the properties of `context`. */
  thunkParts(context: CodegenContext): AllThunkParts<Uint8Array>;
}

/** The code through which an image's entries lead to machine code that compiles a body (baseline/lazy_routine.ts). */
export interface LazyGate {
  readonly bytes: number;
  /** Offset in the gate of the code that lets the stub COMPILE do that: LAZY_BLOCK.SLOW. */
  readonly slow: number;
  /** Writes the gate at offset `at`; the block is at offset `block`, and the stub at `stub`. */
  write(code: Uint8Array, at: number, block: number, stub: number): void;
}

/** The entry of a parked baseline function into optimized code (engine/tiers/loop_entries.ts). */
export interface LoopEntryTarget {
  /** Offset from the parked stack pointer of code that has parked at a poll to the address at which it continues. */
  readonly pollResume: number;
  /** Size in bytes of the instruction that reads the poll page. */
  readonly pollBytes: number;
  /**
   * Appends code that continues a baseline function whose frame has `frameBytes`: it calls function `index` of the
   * image with the address of the frame, and returns with its results. The return address of the call is a call site.
   * Returns the offset.
   */
  emit(context: CodegenContext, code: MachineCode, index: number, frameBytes: number): number;
}

/** A target with the parts that only optimized code and tools need. */
export interface OptimizingTarget extends Target {
  /** A new backend for functions, with columns of its own. */
  functionBackend(): FunctionBackend;
  /** Readable listing of bytes, one instruction a line, for goldens and dumps. */
  disassemble(bytes: Uint8Array, start: number, end: number): string;
  /** The lines of that listing with their offsets, for tools. */
  listCode(bytes: Uint8Array, start: number, end: number): readonly ListedLine[];
}
