/**
 * The exceptions of a store's compiled code that the runtime throws, and the one that was caught last. In: exceptions,
 * errors that host functions throw, and the guest thread, whose code is parked. Out: the thread continues at the
 * landing pad of a handler; without one, the exception is thrown to JavaScript.
 */
import { PARKED, THREAD } from "../../abi/context_layout.ts";
import { Bug, isUncatchable, TrapError } from "../../base/errors.ts";
import type { Sharer } from "../../gc/references.ts";
import type { CodeImage } from "../../link/image.ts";
import { Exception, type ExceptionBoundary, leaveGuest } from "../exceptions/exception.ts";
import { unwindToLandingPad } from "../exceptions/unwind.ts";
import type { GuestThread } from "../thread/guest_thread.ts";
import type { TrapErrors } from "./trap_errors.ts";

/** The parts of a store that exceptions pass through. */
interface ThrowingStore extends ExceptionBoundary {
  readonly thread: GuestThread;
  readonly traps: TrapErrors;
  readonly instances: { at(context: number): Sharer | undefined };
  moduleAt(address: number): { readonly image: CodeImage } | undefined;
}

export class CaughtException {
  readonly #store: ThrowingStore;
  /** The most recently caught exception. */
  #exception: Exception | undefined;

  constructor(store: ThrowingStore) {
    this.#store = store;
  }

  /**
   * Throws `exception` in the parked code. When this returns, resuming continues at the handler; if there is none,
   * throws the exception to JavaScript.
   */
  raise(exception: Exception): void {
    const { thread, traps } = this.#store;
    const stack = () => traps.parkedStack().frames;
    // Unwinding drops the computations that the exception leaves.
    const frames = thread.continuations.isInside ? stack() : undefined;
    if (this.#unwind(exception)) return;
    const { outgoing } = exception;
    leaveGuest(outgoing, () => frames ?? stack());
    throw outgoing;
  }

  /** Rethrows the most recently caught exception. */
  rethrow(): void {
    this.raise(this.take());
  }

  /** The most recently caught exception, whether the runtime or machine code caught it. */
  take(): Exception {
    return this.#exception = this.#store.thread.records.take(this.#store) ?? this.#exception!;
  }

  /** Called at a safepoint: no code can read the exception any more. */
  drop(): void {
    this.#exception = undefined;
    this.#store.thread.records.dropCaught();
  }

  /** Visits the references in the payload of the most recently caught exception. */
  visitReferences(visit: (word: number) => void): void {
    this.#exception?.visitReferences(visit);
  }

  /**
   * Whether compiled code handles an error thrown by a host function. Traps and errors marked as uncatchable pass
   * through. Reads no property of the error, which may be a Proxy.
   */
  hasHandler(error: unknown): boolean {
    if (TrapError.is(error) || Bug.is(error) || isUncatchable(error)) return false;
    return this.#unwind(Exception.of(error));
  }

  readonly #imageAt = (address: number): CodeImage | undefined => this.#store.moduleAt(address)?.image;

  #unwind(exception: Exception): boolean {
    const { thread, instances } = this.#store;
    while (!unwindToLandingPad(thread, this.#imageAt)) if (!thread.continuations.unwind()) return false;
    const receiver = instances.at(thread.stack.wordAt(thread.state.word(THREAD.GUEST_SP) + PARKED.CONTEXT));
    const delivered = this.#deliver(exception, receiver);
    if (delivered === undefined) return false;
    this.#exception = delivered;
    // An exception without an exnref receives none here, because no sweep happens here.
    if (thread.code.stubs.unwinds && thread.exceptions.has(delivered)) thread.records.expose(delivered);
    return true;
  }

  /**
   * Gives a landing pad the exception or, if its payload cannot be passed to code any more, the error that says so.
   * Returns which; undefined if there is no room for either.
   */
  #deliver(exception: Exception, receiver: Sharer | undefined): Exception | undefined {
    try {
      exception.deliver(this.#store, receiver);
      return exception;
    } catch (error) {
      const instead = Exception.of(error);
      try {
        instead.deliver(this.#store, receiver);
        return instead;
      } catch {
        return undefined;
      }
    }
  }
}
