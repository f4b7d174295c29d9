/**
 * Asynchronous calls. In: an exported function, its arguments and a context. Out: a promise of the results.
 *
 *     begin ──▶ running ──▶ DONE                                                         resolved
 *                  ├──▶ a host function returns a promise: suspended ── settled ──▶ running
 *                  ├──▶ end of a slice, at a poll: preempted ── turn of the event loop ──▶ running
 *                  └──▶ trap, exception, limit                                           rejected
 *
 * The frames of a suspended or preempted call are off the stack (suspended_frames.ts), so any number of calls may be in
 * progress, in any order. A suspended instance may be called again. While a call is preempted, every call that could
 * observe its state waits (instance_group.ts). All limits and the signal apply to the call across its slices.
 *
 * Invariants: an ended call holds no frames, timer, listener or place in its group, regardless of the host's promises.
 * No code of the program runs between saving the frames and leaving to the event loop.
 */
import { STATUS, THREAD } from "../../abi/context_layout.ts";
import { clearTimer, inNextTurn, now, setTimer } from "../../host/clocks.ts";
import { onAbort } from "./abort_listeners.ts";
import { fuelUnits } from "./fuel_units.ts";
import {
  checkBudget,
  checkProcessorTime,
  checkSignal,
  type ControlContext,
  deadlineInWords,
  deadlineTime,
  type LimitedInstance,
  processorTimeInWords,
  requireControl,
  withLimit,
} from "./call_limits.ts";
import { ProcessorAccount } from "./processor_account.ts";
import type { CallHalves, HostService } from "../boundary/marshal.ts";
import { Awaited, Delivery, Suspension, whenSettled } from "../boundary/suspension.ts";
import type { CallRecorder } from "./call_recorder.ts";
import type { SuspendedFrames } from "../thread/guest_stack.ts";
import type { GuestThread } from "../thread/guest_thread.ts";
import type { InstanceGroup } from "./instance_group.ts";
import { discardFrames, restoreFrames, saveFrames } from "../thread/suspended_frames.ts";

/** The maximum delay of a timer in milliseconds. */
const MAX_TIMER_MS = 0x7fffffff;

const FUEL = THREAD.FUEL >> 3;
const DEPTH_LEFT = THREAD.DEPTH_LEFT >> 2;
const PARK_INDEX = THREAD.PARK_INDEX >> 2;
const PARK_CONTEXT = THREAD.PARK_CONTEXT >> 2;

/** The poll at which a call was preempted: the place of the trap if its deadline passes before it continues. */
interface PollPlace {
  pc: number;
  /** Distance in bytes from the stack pointer at the poll to the parked stack pointer. */
  depth: number;
  address: number;
  /** The VM context of the code that polled. */
  context: number;
}

/** The frames of a call, for the finalizer that frees them if the call is collected. */
interface FrameHolder {
  readonly thread: GuestThread;
  frames: SuspendedFrames | undefined;
}

const CALLS = new FinalizationRegistry<FrameHolder>(({ thread, frames }) => {
  if (frames !== undefined) discardFrames(thread, frames);
});

/** Ways to enter a slice. */
const ENTER = {
  /** Begin the call. */
  CALL: 0,
  /** Resume after a preemption. */
  RESUME: 1,
  /** Resume with the value or the rejection reason of the promise. */
  FULFILLED: 2,
  REJECTED: 3,
} as const;

/** The parts of an instance that an asynchronous call uses. */
interface SuspendableInstance extends LimitedInstance {
  readonly module: LimitedInstance["module"] & { readonly countsDepth: boolean };
  readonly closed: boolean;
  /** The VM context. */
  readonly block: { readonly address: number };
  readonly hostServices: readonly HostService[];
  /** The stack budget of its calls in abstract units; for code that counts the depth of calls only. */
  readonly stackUnits: number;
  /** Maps errors to the values that callers receive. */
  readonly outward: ((error: unknown) => unknown) | undefined;
  /** Records its calls, if set. */
  readonly recorder: CallRecorder | undefined;
  /** The group of instances that can reach its state; `maybeGroup` is undefined if no group has been created. */
  readonly group: InstanceGroup;
  readonly maybeGroup: InstanceGroup | undefined;
  /** Throws unless the instance may be called now. */
  enter(): void;
  callHalves(index: number): CallHalves;
}

/**
 * Calls function `index` of `instance` as {@linkcode callAsync} does, but reports the end to `done` or `failed` at the
 * moment at which the guest returns, not in a later microtask. Unless `preempts`, the guest is never preempted: the
 * host decides when each call continues. Throws the errors of an invalid context and the reason of an aborted signal;
 * errors of the arguments' conversion are reported to `failed`, or thrown if the call is recorded.
 */
export function startCall(
  instance: SuspendableInstance,
  index: number,
  context: ControlContext,
  args: readonly unknown[],
  done: (value: unknown) => void,
  failed: (reason: unknown) => void,
  preempts: boolean,
  account?: ProcessorAccount,
): void {
  const halves = instance.callHalves(index);
  const recorded = instance.recorder?.asynchronousCall(index, context, done, failed);
  if (recorded === undefined) {
    new AsyncCall(instance, halves, context, done, failed, preempts, account).start(args);
    return;
  }
  const fail = (reason: unknown) => recorded.failed(reason, call.wasStopped);
  const call = new AsyncCall(instance, halves, context, recorded.done, fail, false, account);
  recorded.run(args, (converted) => call.start(converted));
}

/**
 * Calls function `index` of `instance` under the limits of `context`, as `startCall` does. Returns a promise of the
 * results.
 */
export function callAsync(
  instance: SuspendableInstance,
  index: number,
  context: ControlContext,
  args: readonly unknown[],
  preempts = true,
): Promise<unknown> {
  return new IntrinsicPromise((resolve, reject) => {
    // errors reject the promise
    startCall(instance, index, context, args, resolve, outwardReject(instance, reject), preempts);
  });
}

/** Rejects with the value that callers of `instance` receive in place of the error. */
function outwardReject({ outward }: SuspendableInstance, reject: (reason: unknown) => void): (reason: unknown) => void {
  if (outward === undefined) return reject;
  return (reason) => {
    let mapped: unknown;
    try {
      mapped = outward(reason);
    } catch (error) {
      mapped = error;
    }
    reject(mapped);
  };
}

class AsyncCall {
  readonly #instance: SuspendableInstance;
  readonly #thread: GuestThread;
  readonly #halves: CallHalves;
  readonly #context: ControlContext;
  readonly #resolve: (value: unknown) => void;
  readonly #reject: (reason: unknown) => void;
  /** The deadline as the context gives it, and as a time. */
  readonly #givenDeadline: number | Date | undefined;
  readonly #deadline: number;
  readonly #sliced: boolean;
  /** Remaining fuel; undefined if the context has none. */
  #fuel: bigint | undefined;
  /** Whether the context counts fuel as a number, not as a bigint. */
  readonly #countsNumbers: boolean;
  /** The processor time of the call, or of several calls. */
  #account: ProcessorAccount | undefined;
  #args: readonly unknown[] = NO_ARGUMENTS;
  #done = false;
  #hasSettled = false;
  /**
   * Whether the call has ended while its code was not running: by its deadline, its signal, or the end of its instance.
   */
  wasStopped = false;
  /** The host function whose promise suspends the call, and the value or reason of that promise. */
  #service: HostService | undefined;
  #settled: unknown;
  /** The work on the value of the promise (Delivery). */
  #finish: ((value: unknown) => unknown) | undefined;
  #poll: PollPlace | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #cancelAbort: (() => void) | undefined;
  #holder: FrameHolder | undefined;
  /** The number of waits that have begun: the outcome of an earlier one is ignored. */
  #waits = 0;

  constructor(
    instance: SuspendableInstance,
    halves: CallHalves,
    context: ControlContext,
    resolve: (value: unknown) => void,
    reject: (reason: unknown) => void,
    sliced = true,
    account?: ProcessorAccount,
  ) {
    const { deadline, processorTime, fuel, budget, signal } = context;
    if (budget !== undefined && checkBudget(budget).fuel !== undefined) {
      throw new TypeError("The fuel of a budget limits synchronous calls only: give the call fuel of its own");
    }
    if (signal !== undefined) {
      checkSignal(signal);
      signal.throwIfAborted();
    }
    if (processorTime !== undefined) {
      requireControl(instance, "interruptible", "processorTime");
      checkProcessorTime(processorTime);
    }
    const shared = account ?? budget?.account;
    if (shared !== undefined) requireControl(instance, "interruptible", "processorTime");
    if (processorTime !== undefined && shared !== undefined && account === undefined) {
      throw new TypeError("An asynchronous call has a processorTime of its own or that of a budget, not both");
    }
    this.#account = shared ?? (processorTime === undefined ? undefined : new ProcessorAccount(processorTime));
    if (deadline !== undefined) requireControl(instance, "interruptible", "deadline");
    if (signal !== undefined) requireControl(instance, "interruptible", "signal");
    if (fuel !== undefined) {
      requireControl(instance, "fuel", "fuel");
      this.#fuel = fuelUnits(fuel);
      context.fuel = fuel; // throws now if the context is read-only
    }
    this.#instance = instance;
    this.#thread = instance.store.thread;
    this.#halves = halves;
    this.#context = context;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#countsNumbers = typeof fuel === "number";
    this.#givenDeadline = deadline;
    this.#deadline = Math.min(
      deadline === undefined ? Infinity : deadlineTime(deadline),
      this.#thread.limits.askWork(),
    );
    this.#sliced = sliced && instance.module.settings.interruptible;
  }

  start(args: readonly unknown[]): void {
    const { signal } = this.#context;
    if (signal !== undefined) this.#cancelAbort = onAbort(signal, () => this.#stop(() => signal.reason));
    this.#args = args;
    this.#continueWhenFree(ENTER.CALL);
  }

  /** Continues the call, unless it has ended, once no call of the group is preempted. */
  #continueWhenFree(how: number): void {
    const group = this.#instance.maybeGroup;
    if (group === undefined) this.#continue(how);
    else group.whenFree(() => this.#continue(how));
  }

  #continue(how: number): void {
    if (this.#done) return;
    if (this.#instance.closed) return this.#stop(() => new Error("The instance is closed"));
    if (this.#deadline !== Infinity && this.#deadline <= now()) return this.#expire();
    this.#unpreempt();
    this.#slice(how);
  }

  /** Runs one slice: until the call ends, is suspended, or is preempted. */
  #slice(how: number): void {
    const thread = this.#thread;
    const { limits } = thread;
    const { deadline, processorDeadline, workDeadline } = limits;
    const processorEnd = this.#account?.begin(limits.processorNow()) ?? Infinity;
    const { i32 } = thread.state;
    const depthLeft = i32[DEPTH_LEFT];
    const nested = thread.depth > 0;
    const { suspendableDepth } = thread;
    thread.suspendableDepth = ++thread.depth;
    const outer = thread.continuations.begin();
    let failed = false;
    let ended = false;
    let outcome: unknown;
    const outerFuel = this.#fuel === undefined ? 0n : this.#installFuel(this.#fuel);
    try {
      if (this.#deadline < deadline) limits.deadline = this.#deadline;
      limits.workDeadline = Infinity; // that of the call's own work is part of its deadline
      if (processorEnd < processorDeadline) limits.processorDeadline = processorEnd;
      // A call nested in another cannot yield to the event loop before the outer call ends, so it is not preempted.
      const sliceEnd = this.#sliced && !nested ? now() + thread.sliceMs : Infinity;
      const until = Math.min(sliceEnd, limits.deadline);
      const firstLimit = Math.min(until, limits.nextLimit());
      if (limits.watched > firstLimit) limits.watch(firstLimit);
      if (how !== ENTER.CALL) restoreFrames(thread, this.#holder!.frames!);
      ended = this.#run(how, until, processorEnd);
      if (ended) outcome = this.#halves.finish();
    } catch (error) {
      failed = true;
      outcome = error;
    } finally {
      if (this.#fuel !== undefined) this.#restoreFuel(outerFuel);
      i32[DEPTH_LEFT] = depthLeft;
      limits.deadline = deadline;
      limits.processorDeadline = processorDeadline;
      limits.workDeadline = workDeadline;
      this.#account?.finish(limits.processorNow());
      thread.suspendableDepth = suspendableDepth;
      thread.continuations.end(outer);
      if (--thread.depth === 0) thread.services.atSafepoint();
    }
    if (this.#fuel !== undefined && !this.#done) {
      try {
        this.#context.fuel = this.#countsNumbers ? Number(this.#fuel) : this.#fuel;
      } catch (error) {
        failed = true;
        outcome = error;
      }
    }
    if (failed) this.#end(this.#reject, this.#explain(outcome));
    else if (ended) this.#end(this.#resolve, outcome);
  }

  /** Enters the guest and returns its STATUS. Except with ENTER.CALL, guest code may catch its exceptions. */
  #enter(how: number): number {
    if (how === ENTER.CALL) return this.#begin();
    if (how === ENTER.RESUME) return this.#thread.resume();
    const settled = this.#settled;
    const service = this.#service!;
    const finish = this.#finish;
    this.#settled = undefined;
    this.#service = undefined;
    this.#finish = undefined;
    if (how === ENTER.REJECTED) throw settled;
    service.deliver(finish === undefined ? settled : finish(settled));
    return this.#thread.resume();
  }

  #begin(): number {
    const instance = this.#instance;
    const thread = this.#thread;
    this.#halves.begin(this.#args);
    this.#args = NO_ARGUMENTS;
    if (instance.module.countsDepth) {
      const { i32 } = thread.state;
      i32[DEPTH_LEFT] = Math.min(i32[DEPTH_LEFT], instance.stackUnits);
    }
    return thread.call();
  }

  /** Serves the guest until the call ends (true), or its frames are taken off the stack (false). */
  #run(how: number, until: number, processorEnd: number): boolean {
    const thread = this.#thread;
    const { address } = this.#instance.block;
    const contextLo = address | 0;
    const contextHi = (address / 0x1_0000_0000) | 0;
    const { hostServices } = this.#instance;
    const { continuations, state: { i32 } } = thread;
    let status: number = STATUS.HOST;
    let entered = false;
    for (;;) {
      try {
        if (!entered) {
          // Before the call has begun, no guest frame can handle an error.
          entered = how !== ENTER.CALL;
          status = this.#enter(how);
          entered = true;
        }
        for (;;) {
          if (status === STATUS.DONE) {
            if (!continuations.leave()) return true;
          } else if (status === STATUS.POLL) {
            const time = now();
            const timeIsUp = thread.limits.processorTimeIsUp;
            const isOwn = timeIsUp && thread.limits.processorDeadline === processorEnd;
            // A call that is not sliced cannot be preempted: the deadline of an outer call ends it, too.
            const deadline = this.#sliced ? this.#deadline : thread.limits.deadline;
            if (time >= deadline || isOwn) throw thread.trapAtPoll();
            if (time >= until || timeIsUp) {
              this.#preempt();
              return false;
            }
            thread.continueFromPoll(Math.min(until, thread.limits.nextLimit()));
          } else {
            const usual = status === STATUS.HOST && i32[PARK_CONTEXT] === contextLo &&
              i32[PARK_CONTEXT + 1] === contextHi;
            const service = usual ? hostServices[i32[PARK_INDEX]] : thread.serveOther(status);
            const held = service?.();
            if (held !== undefined && this.#suspend(service!, held)) return false;
            if (this.#done) {
              thread.abandon(); // the host function has aborted the call
              return false;
            }
            if (thread.limits.watched > until) thread.limits.watch(until); // a nested call may have set another deadline
          }
          status = continuations.takeStart() ? thread.call() : thread.resume();
        }
      } catch (error) {
        if (!entered || status === STATUS.TRAP) throw error;
        if (status === STATUS.POLL || !thread.services.hasHandler(error)) {
          thread.abandon();
          throw error;
        }
        status = thread.resume();
      }
    }
  }

  /**
   * Suspends the call until `held`, the result of a host function, is settled. Returns false if the call goes on at
   * once. The program's code runs first, while its exceptions can reach the parked guest.
   */
  #suspend(service: HostService, held: unknown): boolean {
    const early = Suspension.takeEarly(held);
    if (early !== undefined) {
      if (!early.isValue) throw early.settled;
      service.deliver(early.settled);
      return false;
    }
    const delivery = Delivery.parts(held);
    const wait = ++this.#waits;
    whenSettled(
      delivery === undefined ? Awaited.unwrap(held) : delivery.promise,
      (value) => this.#onSettled(wait, value, ENTER.FULFILLED),
      (reason) => this.#onSettled(wait, reason, ENTER.REJECTED),
    );
    if (this.#done) return false;
    try {
      this.#saveFrames();
    } catch (error) {
      this.#waits++;
      throw error;
    }
    this.#service = service;
    this.#finish = delivery?.finish;
    if (this.#deadline !== Infinity && this.#timer === undefined) this.#setTimer();
    return true;
  }

  /** Continues the call after the host's promise has settled. */
  #onSettled(wait: number, settled: unknown, how: number): void {
    if (this.#done || wait !== this.#waits) return;
    this.#waits++;
    this.#settled = settled;
    this.#continueWhenFree(how);
  }

  #saveFrames(): void {
    const holder = this.#holder;
    if (holder !== undefined) holder.frames = saveFrames(this.#thread, holder.frames);
    else {
      this.#holder = { thread: this.#thread, frames: saveFrames(this.#thread, undefined) };
      CALLS.register(this, this.#holder);
    }
  }

  /** Adds the limit that a trap of this call reports. Returns the error. */
  #explain(error: unknown): unknown {
    const deadline = this.#givenDeadline;
    const account = this.#account;
    if (account?.isUsedUp === true) {
      withLimit(error, "interrupted", () => processorTimeInWords(account.milliseconds));
    }
    if (deadline !== undefined) withLimit(error, "interrupted", () => deadlineInWords(deadline));
    return this.#fuel === undefined ? error : withLimit(error, "out-of-fuel", () => "the call's fuel");
  }

  #setTimer(): void {
    const delay = this.#deadline - now();
    this.#timer = setTimer(() => {
      this.#timer = undefined;
      if (now() >= this.#deadline) this.#expire();
      else this.#setTimer();
    }, Math.min(Math.max(0, Math.ceil(delay)), MAX_TIMER_MS));
  }

  /** Preempts the call at the end of its slice, so that the event loop runs before the next one. */
  #preempt(): void {
    const thread = this.#thread;
    const { state } = thread;
    const address = state.word(THREAD.FAULT_ADDRESS);
    const pc = state.word(THREAD.TRAP_PC);
    const sp = state.word(THREAD.TRAP_SP);
    const context = state.word(THREAD.PARK_CONTEXT);
    this.#saveFrames();
    this.#poll = { pc, address, depth: state.word(THREAD.GUEST_SP) - sp, context };
    thread.attention.preempted++;
    thread.preemptions++;
    this.#instance.group.preempt(this);
    inNextTurn(() => {
      try {
        this.#continue(ENTER.RESUME);
      } finally {
        this.#instance.group.drain();
      }
    });
  }

  #unpreempt(): void {
    if (this.#poll === undefined) return;
    this.#poll = undefined;
    this.#thread.attention.preempted--;
    this.#instance.group.unpreempt(this);
  }

  /** Ends the call after its deadline passed while the guest was not running. */
  #expire(): void {
    this.#stop(() => {
      const thread = this.#thread;
      const frames = this.#holder?.frames;
      if (frames === undefined) return thread.services.interruption(false);
      const outer = thread.continuations.begin();
      try {
        restoreFrames(thread, frames);
        if (this.#poll === undefined) return thread.services.interruption(true);
        const { state } = thread;
        const { pc, address, depth, context } = this.#poll;
        const { entry } = thread.continuations;
        state.setWord(THREAD.TRAP_PC, pc);
        state.setWord(THREAD.TRAP_SP, entry - depth);
        state.setWord(THREAD.FAULT_ADDRESS, address);
        state.setWord(THREAD.PARK_CONTEXT, context);
        state.i32[THREAD.STATUS >> 2] = STATUS.POLL;
        return thread.services.trapError();
      } finally {
        if (frames.bytes === 0) thread.abandon();
        thread.continuations.end(outer);
      }
    });
  }

  /** Ends the call from outside while the guest is not running. */
  #stop(reason: () => unknown): void {
    if (this.#done) return;
    this.#done = true;
    this.wasStopped = true;
    let error: unknown;
    try {
      error = reason();
    } catch (problem) {
      error = problem;
    }
    const wasPreempted = this.#poll !== undefined;
    this.#unpreempt();
    this.#end(this.#reject, this.#explain(error));
    if (wasPreempted) this.#instance.group.drain();
  }

  #end(settle: (value: unknown) => void, value: unknown): void {
    if (this.#hasSettled) return;
    this.#hasSettled = true;
    this.#done = true;
    this.#service = undefined;
    this.#settled = undefined;
    this.#args = NO_ARGUMENTS;
    const holder = this.#holder;
    if (holder?.frames !== undefined) {
      discardFrames(this.#thread, holder.frames);
      holder.frames = undefined;
    }
    if (this.#timer !== undefined) clearTimer(this.#timer);
    try {
      this.#cancelAbort?.();
    } catch {
      // The signal is an object of the program, and its listener does nothing from now on.
    }
    settle(value);
  }

  /** Installs the call's fuel in the thread state. Returns the previous amount. */
  #installFuel(fuel: bigint): bigint {
    const { i64 } = this.#thread.state;
    const outer = i64[FUEL];
    i64[FUEL] = fuel < outer ? fuel : outer;
    return outer;
  }

  #restoreFuel(outer: bigint): void {
    const { i64 } = this.#thread.state;
    const fuel = this.#fuel!;
    const used = (fuel < outer ? fuel : outer) - i64[FUEL];
    i64[FUEL] = outer - used;
    this.#fuel = fuel - used;
  }
}

const NO_ARGUMENTS: readonly unknown[] = [];
/** Promise as it is when the engine is loaded. */
const IntrinsicPromise = Promise;
