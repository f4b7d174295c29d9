/**
 * The hooks by which a recording observes an instance (recording/recorder.ts), and by which a replay substitutes for
 * its host (recording/replay.ts). In: the crossings of one instance between JavaScript and compiled code. Invariant:
 * with a recorder, every entry into the code of the instance and every call of its imports passes through these
 * functions.
 */
import type { ControlContext } from "./call_limits.ts";

/** A function at the boundary between JavaScript and compiled code. */
export type BoundaryFunction = (...args: unknown[]) => unknown;

/** An asynchronous call with a recorder. */
export interface RecordedCall {
  /** Runs `start`, which begins the call, with the arguments as values of the parameters' types. */
  run(args: readonly unknown[], start: (args: readonly unknown[]) => void): void;
  /** The call has returned `value`. */
  done(value: unknown): void;
  /** The call has failed for `reason`; `wasStopped`: the call ended while its code was not running. */
  failed(reason: unknown, wasStopped: boolean): void;
}

/** The recorder of one instance. */
export interface CallRecorder {
  /** Whether the calls of the instance repeat a recording: its code may use all of the thread's stack. */
  readonly isReplay: boolean;
  /**
   * Called once for `instance`, a runtime instance whose imports are linked, with the limits of the instance. Runs
   * `initialize`, which runs its segments.
   */
  begin(instance: unknown, limits: object, initialize: () => void): void;
  /** The function that the instance calls in place of `call`, which it imports as function `index`. */
  hostFunction(index: number, call: BoundaryFunction): BoundaryFunction;
  /** The exported function that JavaScript gets in place of `call`, which calls function `index`. */
  exportedFunction(index: number, call: BoundaryFunction): BoundaryFunction;
  /** The code has exhausted its stack, for which it gets `error`; `path` finds its activations (trap_error.ts). */
  exhausted(error: Error, path: () => readonly number[]): void;
  /**
   * Whether a replay ends at the activations that `path` finds, at most `most` numbers if that is given: because the
   * recorded run has exhausted its stack there.
   */
  isExhaustedAt(path: (most?: number) => readonly number[]): boolean;
  /** The call of function `index` under `context`; undefined if it needs no recording. */
  asynchronousCall(
    index: number,
    context: ControlContext,
    done: (value: unknown) => void,
    failed: (reason: unknown) => void,
  ): RecordedCall | undefined;
}
