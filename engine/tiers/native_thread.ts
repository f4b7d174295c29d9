/**
 * The engine's own machine code on a native thread without a JavaScript isolate. In: a function, by addresses, and
 * arguments that are i32. Out: its result, an i32, or that it did not return.
 *
 * The thread starts in the process stub `call`, with a thread state of its own, to which the function's VM context
 * leads meanwhile: traps and faults end there as in any compiled code, as a status, and do not touch the state of this
 * realm's thread. Code that would need JavaScript ends as well.
 *
 * Invariant: while the thread runs, JavaScript neither enters code with the VM context nor frees it, the stack, or the
 * state.
 */
import { CONTEXT, STATUS, THREAD } from "../abi/context_layout.ts";
import { PROT } from "../host/host.ts";
import type { ContextBlock } from "../runtime/memory/context_arena.ts";
import { NativeRegion } from "../runtime/memory/native_region.ts";
import type { GuestThread } from "../runtime/thread/guest_thread.ts";

/** Bytes at the end of a stack for functions without a check, and for a handler of faults on top of them. */
export const NATIVE_SLACK_BYTES: number = 1 << 16;
/** The status in a thread state until the thread ends. */
const RUNNING = -1;

/** A function, its entry thunk, its VM context, and the stack on which it runs. */
interface NativeCall {
  readonly code: number;
  readonly thunk: number;
  readonly context: ContextBlock;
  /** The lowest address of the stack, the initial stack pointer, and the address behind the stack. */
  readonly stack: { readonly low: number; readonly top: number; readonly high: number };
}

/** A call that runs in a native thread. */
export class NativeThread {
  readonly #thread: GuestThread;
  readonly #context: ContextBlock;
  readonly #state: NativeRegion;
  /** The fields of the VM context before the call. */
  readonly #before: readonly (readonly [field: number, value: number])[];
  readonly #join: () => void;

  /** Starts the call. Throws a RangeError without memory, and an Error if the system refuses a thread. */
  constructor(thread: GuestThread, { code, thunk, context, stack }: NativeCall, args: readonly number[]) {
    const { host, callStub } = thread;
    const { region, offset } = context;
    const bytes = Math.ceil(THREAD.SIZE / host.pageSize) * host.pageSize;
    const state = new NativeRegion(host, host.reserve(bytes, PROT.READ | PROT.WRITE), bytes);
    this.#thread = thread;
    this.#context = context;
    this.#state = state;
    this.#before = [CONTEXT.THREAD, CONTEXT.OVERFLOW].map((field) => [field, region.word(offset + field)]);
    state.setWord(THREAD.GUEST_SP, stack.top);
    state.setWord(THREAD.CALL_CODE, code);
    state.setWord(THREAD.CALL_CONTEXT, context.address);
    state.setWord(THREAD.CALL_THUNK, thunk);
    state.setWord(THREAD.STACK_LOW, stack.low);
    state.setWord(THREAD.STACK_HIGH, stack.high);
    for (const [k, arg] of args.entries()) state.i32[(THREAD.SLOTS + k * THREAD.SLOT_SIZE) >> 2] = arg;
    Atomics.store(state.i32, THREAD.STATUS >> 2, RUNNING);
    region.setWord(offset + CONTEXT.THREAD, state.address);
    region.setWord(offset + CONTEXT.OVERFLOW, state.address + THREAD.OVERFLOW);
    try {
      this.#join = host.runWithFaults(callStub, state.address);
    } catch (error) {
      this.#release();
      throw error;
    }
  }

  /** Whether the call has not ended. */
  get isRunning(): boolean {
    return Atomics.load(this.#state.i32, THREAD.STATUS >> 2) === RUNNING;
  }

  /**
   * Waits for the end of the thread and frees what belongs to it; must be called once. Returns the function's result;
   * undefined if it did not return.
   */
  end(): number | undefined {
    this.#join();
    const { i32 } = this.#state;
    const result = i32[THREAD.STATUS >> 2] === STATUS.DONE ? i32[THREAD.SLOTS >> 2] : undefined;
    this.#release();
    return result;
  }

  #release(): void {
    const { region, offset } = this.#context;
    for (const [field, value] of this.#before) region.setWord(offset + field, value);
    this.#thread.host.release(this.#state.address, this.#state.size);
  }
}
