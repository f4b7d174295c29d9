/**
 * The kernel of the baseline tier as machine code. In: its code (baseline/native_code.ts) and the guest thread. Out:
 * the kernel's functions and memory. It needs no compiler and none of the host's WebAssembly, so it is fast from its
 * first instruction.
 *
 * The kernel runs as an intrinsic module does (runtime/intrinsics.ts): with its own VM context and stack, also while
 * other compiled code is parked. Its memory is a reservation with guard pages, and its code never parks. A second
 * kernel runs in a native thread (native_thread.ts), beside the first.
 */
import { CONTEXT, GUARD_RESERVATION, MEMORY } from "../abi/context_layout.ts";
import { fromBase64 } from "../base/base64.ts";
import type { Kernel } from "../baseline/kernel_forms.ts";
import { MODULE, MOVES, OPCODES } from "../baseline/kernel/layout.ts";
import { OPCODE_TABLE } from "../baseline/generated/opcode_table.ts";
import { LAZY_ROUTINE } from "../baseline/generated/routines.ts";
import type { NativeKernel } from "../baseline/native_code.ts";
import type { KernelMemory } from "../baseline/module_tables.ts";
import { Bug } from "../base/errors.ts";
import { type Host, PROT } from "../host/host.ts";
import type { ContextBlock } from "../runtime/memory/context_arena.ts";
import type { GuestThread } from "../runtime/thread/guest_thread.ts";
import { callOnStack } from "./call_on_stack.ts";
import { NATIVE_SLACK_BYTES, NativeThread } from "./native_thread.ts";

/** Not more than Windows commits when it is reserved, as for the compiler's stack. */
const STACK_BYTES = (1 << 18) + NATIVE_SLACK_BYTES;
/** Bytes above the initial stack pointer. */
const TOP_BYTES = 64;
/** Bytes above the stack for arguments that have no register. */
const OVERFLOW_BYTES = 4096;
const PAGE = 0x10000;

/** Memory of the kernel: reserved as a whole, made accessible on demand. */
class NativeMemory implements KernelMemory {
  readonly address: number;
  readonly #host: Host;
  /** The last view from each address, a whole number of pages. */
  readonly #views = new Map<number, Uint8Array<ArrayBuffer>>();
  #size = 0;

  constructor(host: Host) {
    this.#host = host;
    this.address = host.reserve(GUARD_RESERVATION, PROT.NONE);
    this.#grow(MODULE);
    const table = fromBase64(OPCODE_TABLE);
    this.view(0, MOVES).set(table, OPCODES);
  }

  get size(): number {
    return this.#size;
  }

  view(from: number, bytes: number): Uint8Array<ArrayBuffer> {
    this.#grow(from + bytes);
    let view = this.#views.get(from);
    if (view === undefined || view.length < bytes) {
      view = new Uint8Array(this.#host.view(this.address + from, Math.max(PAGE, Math.ceil(bytes / PAGE) * PAGE)));
      this.#views.set(from, view);
    }
    return view.subarray(0, bytes);
  }

  release(): void {
    this.#host.release(this.address, GUARD_RESERVATION);
  }

  #grow(bytes: number): void {
    const size = Math.ceil(bytes / PAGE) * PAGE;
    if (size <= this.#size) return;
    this.#host.protect(this.address + this.#size, size - this.#size, PROT.READ | PROT.WRITE);
    this.#size = size;
  }
}

/** The kernel's code in a thread's arena. */
interface PlacedKernel {
  readonly native: NativeKernel;
  readonly base: number;
  /** The addresses of the routine for lazy bodies and of its code for traps; undefined where there is none. */
  readonly lazy: { readonly routine: number; readonly trap: number } | undefined;
}

/** The routine for lazy bodies, which makes system calls by number; undefined where there is none. */
export function lazyRoutine(
  { arch, system }: Pick<Host, "arch" | "system">,
): { readonly bytes: Uint8Array; readonly trap: number } | undefined {
  const stored: Readonly<Partial<Record<string, typeof LAZY_ROUTINE["x64"]>>> = LAZY_ROUTINE;
  const found = system.hasSystemCalls ? stored[arch] : undefined;
  return found && { bytes: fromBase64(found.code), trap: found.labels.trap };
}

/** Places the kernel's code. Throws an Error if it is damaged. */
function placeKernel({ arena, host }: GuestThread, native: NativeKernel): PlacedKernel {
  const code = fromBase64(native.code);
  if (code.length !== native.codeBytes) throw new Error("The kernel's machine code is damaged");
  const lazy = lazyRoutine(host);
  const bytes = new Uint8Array(code.length + (lazy?.bytes.length ?? 0));
  bytes.set(code);
  if (lazy !== undefined) bytes.set(lazy.bytes, code.length);
  const base = arena.allocate(bytes.length);
  arena.publish(base, bytes);
  const routine = base + code.length;
  return { native, base, lazy: lazy && { routine, trap: routine + lazy.trap } };
}

/** An instance of the placed kernel in a VM context of its own. Throws a RangeError without address space or memory. */
function instantiateKernel(thread: GuestThread, placed: PlacedKernel): Kernel {
  const context = thread.contexts.allocate(placed.native.contextBytes);
  try {
    return thread.host.releasingOnError(() => startKernel(thread, placed, context));
  } catch (error) {
    thread.contexts.release(context);
    throw error;
  }
}

/** A kernel's surroundings: its code, VM context and memory, and the stack pointer of its calls. */
interface KernelFrame {
  readonly thread: GuestThread;
  readonly placed: PlacedKernel;
  readonly context: ContextBlock;
  readonly memory: NativeMemory;
  readonly top: number;
}

/** The same in a given VM context. */
function startKernel(thread: GuestThread, placed: PlacedKernel, context: ContextBlock): Kernel {
  const { host, contexts } = thread;
  const { native, lazy } = placed;
  const memory = new NativeMemory(host);
  const stack = host.reserve(STACK_BYTES + OVERFLOW_BYTES, PROT.READ | PROT.WRITE);
  const frame = { thread, placed, context, memory, top: stack + STACK_BYTES - TOP_BYTES };
  initKernelContext(frame, stack);
  callKernel(frame, native.start, 0, 0);
  return {
    memory,
    compileBodies: (first, count) => callKernel(frame, native.compileBodies, first, count),
    writeBodies: (first, count) => callKernel(frame, native.writeBodies, first, count),
    routine: lazy && {
      ...lazy,
      context: context.address,
      code: placed.base + native.compileNext.start,
      stack: frame.top,
      memory: memory.address,
    },
    compileLazily: (index, offset) => void callKernel(frame, native.compileLazily, index, offset),
    validateBodies: (first, count) => callKernel(frame, native.validateBodies, first, count),
    placeBodies: (first, done) => void callKernel(frame, native.placeBodies, first, done),
    linkBodies: () => void callKernel(frame, native.linkBodies, 0, 0),
    startBodies: (first, count) => startThread(frame, native.writeBodies, [first, count]),
    startValidation: (first, count) => startThread(frame, native.validateBodies, [first, count]),
    callsEnd: () => callKernel(frame, native.callsEnd, 0, 0),
    trapsEnd: () => callKernel(frame, native.trapsEnd, 0, 0),
    relocationsEnd: () => callKernel(frame, native.relocationsEnd, 0, 0),
    release() {
      memory.release();
      host.release(stack, STACK_BYTES + OVERFLOW_BYTES);
      contexts.release(context);
    },
  };
}

/** Fills the VM context of a kernel with its stack, memory and globals. */
function initKernelContext({ thread, placed: { native }, context, memory }: KernelFrame, stack: number): void {
  const { region, offset } = context;
  thread.initContext(region, offset, 0, STACK_BYTES, false);
  region.setWord(offset + CONTEXT.STACK_LIMIT, stack + NATIVE_SLACK_BYTES);
  // In the thread's buffer, arguments of a function that is compiled at its first call may wait.
  region.setWord(offset + CONTEXT.OVERFLOW, stack + STACK_BYTES);
  region.setWord(offset + native.memory + MEMORY.BASE, memory.address);
  region.setWord(offset + native.memory + MEMORY.LENGTH, 2 ** 32);
  for (let k = 0; k < native.globals.length; k += 2) {
    region.i32[(offset + native.globals[k]) >> 2] = native.globals[k + 1];
  }
}

/** Calls a function of a kernel with two arguments, which it may ignore; returns its result. */
function callKernel(frame: KernelFrame, { start, thunk }: NativeKernel["start"], a: number, b: number): number {
  const { thread, placed: { base }, context: { address }, top } = frame;
  return callOnStack(thread, { code: base + start, thunk: base + thunk, context: address, top }, [a, b]);
}

/** Starts a function of a kernel in a thread; see Kernel.startBodies. */
function startThread(
  { thread, placed: { base }, context, top }: KernelFrame,
  { start, thunk }: NativeKernel["start"],
  args: readonly number[],
): () => number {
  const high = top + TOP_BYTES;
  const stack = { low: high - STACK_BYTES, top, high };
  const call = new NativeThread(thread, { code: base + start, thunk: base + thunk, context, stack }, args);
  return () => {
    const result = call.end();
    if (result === undefined) throw new Bug("The baseline compiler trapped in a thread");
    return result;
  };
}

/** Returns a function that makes kernels from machine code; it returns undefined where that is not possible. */
export function nativeKernels(threadOf: () => GuestThread): (native: NativeKernel) => Kernel | undefined {
  let placed: PlacedKernel | undefined;
  return (native) => {
    try {
      const thread = threadOf();
      placed ??= placeKernel(thread, native);
      return instantiateKernel(thread, placed);
    } catch (error) {
      if (error instanceof Bug) throw error;
      return undefined;
    }
  };
}
