/**
 * The errors of a store's traps. In: the state of its guest thread, where compiled code has trapped or is parked. Out:
 * the error, with the guest's frames, the access that failed, and a core dump on demand.
 */
import { GUARD_RESERVATION, STATUS, THREAD } from "../../abi/context_layout.ts";
import { ExhaustionError, TrapError } from "../../base/errors.ts";
import { TRAP, TRAP_MESSAGES } from "../../base/traps.ts";
import type { CompiledModule } from "../code/compiled_module.ts";
import type { CallRecorder } from "../suspension/call_recorder.ts";
import type { GuestThread } from "../thread/guest_thread.ts";
import { type DumpedInstance, writeCoredump } from "../traps/coredump.ts";
import { activationsOf, type GuestStack, parkedStack, type StackDump, trapError } from "../traps/trap_error.ts";

/** A memory, as the errors of accesses describe it. */
interface AccessedMemory {
  readonly base: number;
  readonly byteLength: number;
  /** Whether guard pages follow it. */
  readonly guarded: boolean;
}

/** An instance whose code may trap. */
interface TrappingInstance extends DumpedInstance {
  readonly module: CompiledModule;
  readonly memories: readonly (DumpedInstance["memories"][number] & AccessedMemory)[];
  readonly recorder: CallRecorder | undefined;
}

/** The parts of a store that its errors are made of. */
interface TrappingStore {
  readonly thread: GuestThread;
  readonly instances: { at(context: number): TrappingInstance | undefined };
  moduleAt(address: number): CompiledModule | undefined;
}

export class TrapErrors {
  readonly #store: TrappingStore;
  readonly #moduleAt = (address: number): CompiledModule | undefined => this.#store.moduleAt(address);

  constructor(store: TrappingStore) {
    this.#store = store;
  }

  /** The stack of the parked code. */
  parkedStack(): GuestStack {
    return parkedStack(this.#store.thread, this.#moduleAt);
  }

  /** The error of an interruption, with the frames of parked code if `isParked`. */
  ofInterruption(isParked: boolean): TrapError {
    return new TrapError(TRAP_MESSAGES[TRAP.INTERRUPTED], isParked ? this.parkedStack().frames : []);
  }

  /** The error of the trap that the thread state describes. */
  ofThread(): Error {
    const { thread } = this.#store;
    const error = this.#withAccess(trapError(thread, this.#moduleAt, this.#dump()));
    const recorder = error instanceof ExhaustionError ? this.#current()?.recorder : undefined;
    recorder?.exhausted(error, () => activationsOf(thread, this.#moduleAt, false));
    return error;
  }

  /** The error of a trap raised by a builtin; its frames are those of the code that parked for it. */
  inBuiltin(message: string, Trap: typeof TrapError = TrapError): TrapError {
    const stack = this.parkedStack();
    const dump = this.#dump();
    return new Trap(message, stack.frames, dump === undefined ? undefined : (program) => dump(stack, program));
  }

  /** The error of a trap with the message; its frames are those of the parked code, if compiled code is running. */
  withMessage(message: string): TrapError {
    return this.#store.thread.depth > 0 ? this.inBuiltin(message) : new TrapError(message);
  }

  /** Traps if the parked code of a replay has reached the call at which the recorded run exhausted its stack. */
  checkStack(recorder: CallRecorder | undefined): void {
    const path = (most?: number) => activationsOf(this.#store.thread, this.#moduleAt, true, most);
    if (recorder?.isExhaustedAt(path) === true) {
      throw this.inBuiltin(TRAP_MESSAGES[TRAP.STACK_EXHAUSTED], ExhaustionError);
    }
  }

  /**
   * Adds the address, relative to the memory, and the memory's size to the trap of an access that hit its guard pages.
   */
  #withAccess(error: Error): Error {
    const fault = this.#store.thread.state.word(THREAD.FAULT_ADDRESS);
    if (!(error instanceof TrapError) || error.code !== "memory-out-of-bounds" || fault === 0) return error;
    const memory = this.#memoryAround(fault);
    if (memory === undefined) return error;
    error.access = { address: fault - memory.base, bytes: memory.byteLength };
    error.detail = `address ${error.access.address} of a memory of ${error.access.bytes} bytes`;
    return error;
  }

  /** The guarded memory of the current instance whose reservation contains `address`. */
  #memoryAround(address: number): AccessedMemory | undefined {
    return this.#current()?.memories.find((memory) =>
      memory.guarded && address >= memory.base && address < memory.base + GUARD_RESERVATION
    );
  }

  /** The instance whose code trapped or is parked. */
  #current(): TrappingInstance | undefined {
    const { state } = this.#store.thread;
    const hasTrapped = state.u32[THREAD.STATUS >> 2] === STATUS.TRAP;
    return this.#store.instances.at(state.word(hasTrapped ? THREAD.TRAP_CONTEXT : THREAD.PARK_CONTEXT));
  }

  /** A function that dumps the state of the instance whose code ran; undefined if there is none. */
  #dump(): StackDump | undefined {
    const instance = this.#current();
    if (instance === undefined || instance.module.internal) return undefined;
    return (stack, program) => writeCoredump(stack, instance, program);
  }
}
