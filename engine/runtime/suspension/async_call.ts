/**
 * Calls that do not end at once. In: an exported function, its arguments and a context. Out: a promise of the results.
 *
 *     begin ──▶ running ──▶ DONE                                                         resolved
 *                  ├──▶ a host function returns a promise: suspended ── settled ──▶ running
 *                  ├──▶ end of a slice, at a poll: preempted ── turn of the event loop ──▶ running
 *                  └──▶ trap, exception, deadline, fuel                                  rejected
 *
 * While a call is suspended or preempted its frames are off the stack (suspended_frames.ts), so any number may be in flight, in any
 * order. A suspended instance may be called again; while a call is preempted, everything that could see its state waits
 * (instance_group.ts). Deadline, fuel and signal follow the call through all its slices.
 *
 * Invariant: an ended call holds no frames, no timer, no listener and no claim on its group, whatever the host's promises do.
 */
import { STATUS, THREAD } from "../../abi/context_layout.ts";
import { nodeModule } from "../../host/process.ts";
import { onAbort } from "./abort_listeners.ts";
import {
  checkSignal,
  type ControlContext,
  deadlineTime,
  fuelUnits,
  type LimitedInstance,
  requireControl,
} from "./call_limits.ts";
import type { HostService } from "../boundary/marshal.ts";
import type { GuestThread, SuspendedFrames } from "../thread/guest_thread.ts";
import type { InstanceGroup } from "./instance_group.ts";
import type { CallHalves } from "../boundary/marshal.ts";
import { dropFrames, putFrames, takeFrames } from "../thread/suspended_frames.ts";

/** The longest delay of a timer. */
const MAX_TIMER_MS = 0x7fffffff;

const FUEL = THREAD.FUEL >> 3;
const DEPTH_LEFT = THREAD.DEPTH_LEFT >> 2;
const PARK_INDEX = THREAD.PARK_INDEX >> 2;
const PARK_CONTEXT = THREAD.PARK_CONTEXT >> 2;

/** Where the poll was that a preempted call stopped at, for the trap that may become of it. */
interface PollPlace {
  pc: number;
  /** Bytes between the end of the frames and the stack pointer. */
  depth: number;
  address: number;
}

/** What a collected call leaves: its frames. */
interface Leavings {
  readonly thread: GuestThread;
  frames: SuspendedFrames | undefined;
}

const CALLS = new FinalizationRegistry<Leavings>(({ thread, frames }) => {
  if (frames !== undefined) dropFrames(thread, frames);
});

/** How a slice begins. */
const ENTER = {
  /** The call itself. */
  CALL: 0,
  /** Where it was stopped. */
  AGAIN: 1,
  /** With what the promise has settled to. */
  VALUE: 2,
  REASON: 3,
} as const;

/** What an asynchronous call needs of the instance that it calls. */
export interface SuspendableInstance extends LimitedInstance {
  readonly module: LimitedInstance["module"] & { readonly deterministic: boolean };
  readonly closed: boolean;
  /** Its VM context. */
  readonly block: { readonly address: number };
  readonly hostServices: readonly HostService[];
  /** Stack that its calls may use, in units of wasm; for deterministic code only. */
  readonly stackUnits: number;
  /** What callers get instead of an error. */
  readonly outward: ((error: unknown) => unknown) | undefined;
  /** The instances that can reach its state; `maybeGroup` only if one has been made. */
  readonly group: InstanceGroup;
  readonly maybeGroup: InstanceGroup | undefined;
  /** Throws unless the instance may be called now. */
  enter(): void;
  callHalves(index: number): CallHalves;
}

/** Calls function `index` of `instance` subject to `context`; the promise of its results. */
export function callAsync(
  instance: SuspendableInstance,
  index: number,
  context: ControlContext,
  args: readonly unknown[],
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    new AsyncCall(instance, instance.callHalves(index), context, resolve, reject).start(args); // what this throws rejects
  });
}

class AsyncCall {
  readonly #instance: SuspendableInstance;
  readonly #thread: GuestThread;
  readonly #halves: CallHalves;
  readonly #context: ControlContext;
  readonly #resolve: (value: unknown) => void;
  readonly #reject: (reason: unknown) => void;
  readonly #deadline: number;
  readonly #sliced: boolean;
  /** Fuel left, undefined when the context has none. */
  #fuel: bigint | undefined;
  #args: readonly unknown[] = NO_ARGUMENTS;
  #done = false;
  /** The host function whose promise it waits for, what that has settled to. */
  #service: HostService | undefined;
  #settled: unknown;
  #poll: PollPlace | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #forgetAbort: (() => void) | undefined;
  #left: Leavings | undefined;
  #onValue: ((value: unknown) => void) | undefined;
  #onReason: ((reason: unknown) => void) | undefined;

  constructor(
    instance: SuspendableInstance,
    halves: CallHalves,
    context: ControlContext,
    resolve: (value: unknown) => void,
    reject: (reason: unknown) => void,
  ) {
    const { deadline, fuel, signal } = context;
    if (signal !== undefined) {
      checkSignal(signal);
      signal.throwIfAborted();
    }
    if (deadline !== undefined) requireControl(instance, "interruptible", "deadline");
    if (signal !== undefined) requireControl(instance, "interruptible", "signal");
    if (fuel !== undefined) {
      requireControl(instance, "fuel", "fuel");
      this.#fuel = fuelUnits(fuel);
      context.fuel = fuel; // a context that cannot be written to is an error now, not afterwards
    }
    this.#instance = instance;
    this.#thread = instance.store.thread;
    this.#halves = halves;
    this.#context = context;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#deadline = deadline === undefined ? Infinity : deadlineTime(deadline);
    this.#sliced = instance.module.interruptible && this.#thread.canWatch;
  }

  start(args: readonly unknown[]): void {
    const { signal } = this.#context;
    if (signal !== undefined) this.#forgetAbort = onAbort(signal, () => this.#stop(() => signal.reason));
    this.#args = args;
    this.#whenFree(ENTER.CALL);
  }

  /** Goes on unless the call has ended, once nothing of the group is between slices. */
  #whenFree(how: number): void {
    const group = this.#instance.maybeGroup;
    if (group === undefined) this.#goOn(how);
    else group.whenFree(() => this.#goOn(how));
  }

  #goOn(how: number): void {
    if (this.#done) return;
    if (this.#instance.closed) return this.#stop(() => new Error("The instance is closed"));
    if (this.#deadline !== Infinity && this.#deadline <= performance.now()) return this.#expire();
    this.#unpreempt();
    this.#slice(how);
  }

  /** Lets the guest run until the call ends, or waits. */
  #slice(how: number): void {
    const thread = this.#thread;
    const { deadline } = thread;
    const { i32 } = thread.state;
    const depthLeft = i32[DEPTH_LEFT]!;
    const nested = thread.depth > 0;
    thread.depth++;
    let failed = false;
    let ended = false;
    let outcome: unknown;
    const outerFuel = this.#fuel === undefined ? 0n : this.#lendFuel(this.#fuel);
    try {
      if (this.#deadline < deadline) thread.deadline = this.#deadline;
      // A call that began inside another has the event loop's next turn only after that one has ended.
      const sliceEnd = this.#sliced && !nested ? performance.now() + thread.sliceMs : Infinity;
      const until = Math.min(sliceEnd, thread.deadline);
      if (thread.watched > until) thread.watch(until);
      if (how !== ENTER.CALL) putFrames(thread, this.#left!.frames!);
      ended = this.#run(how, until);
      if (ended) outcome = this.#halves.finish();
    } catch (error) {
      failed = true;
      outcome = error;
    } finally {
      if (this.#fuel !== undefined) this.#takeFuelBack(outerFuel);
      i32[DEPTH_LEFT] = depthLeft;
      thread.deadline = deadline;
      if (--thread.depth === 0) thread.services.atSafepoint();
    }
    if (failed) this.#end(this.#reject, outcome);
    else if (ended) this.#end(this.#resolve, outcome);
  }

  /** Enters the guest: a STATUS. What it throws is for the guest to catch, unless the call has not begun. */
  #enter(how: number): number {
    if (how === ENTER.CALL) return this.#begin();
    if (how === ENTER.AGAIN) return this.#thread.resume();
    const settled = this.#settled;
    const service = this.#service!;
    this.#settled = undefined;
    this.#service = undefined;
    if (how === ENTER.REASON) throw settled;
    service.deliver(settled);
    return this.#thread.resume();
  }

  #begin(): number {
    const instance = this.#instance;
    const thread = this.#thread;
    instance.enter();
    this.#halves.begin(this.#args);
    this.#args = NO_ARGUMENTS;
    if (instance.module.deterministic) {
      const { i32 } = thread.state;
      i32[DEPTH_LEFT] = Math.min(i32[DEPTH_LEFT]!, instance.stackUnits);
    }
    return thread.call();
  }

  /** Serves the guest until the call has ended (true) or its frames have been taken off (false). */
  #run(how: number, until: number): boolean {
    const thread = this.#thread;
    const { address } = this.#instance.block;
    const contextLo = address | 0;
    const contextHi = (address / 0x1_0000_0000) | 0;
    const { hostServices } = this.#instance;
    const { i32 } = thread.state;
    let status: number = STATUS.HOST;
    let entered = false;
    for (;;) {
      try {
        if (!entered) {
          // Only a call that has begun has somebody to catch what goes wrong.
          entered = how !== ENTER.CALL;
          status = this.#enter(how);
          entered = true;
        }
        while (status !== STATUS.DONE) {
          if (status === STATUS.POLL) {
            const now = performance.now();
            if (now >= this.#deadline) throw thread.services.trapError();
            if (now >= until) {
              this.#preempt();
              return false;
            }
            thread.watch(until);
          } else {
            const usual = status === STATUS.HOST && i32[PARK_CONTEXT] === contextLo &&
              i32[PARK_CONTEXT + 1] === contextHi;
            const service = usual ? hostServices[i32[PARK_INDEX]!]! : thread.serveOther(status);
            const promise = service?.();
            if (promise !== undefined) {
              this.#suspend(service!, promise);
              return false;
            }
            if (thread.watched > until) thread.watch(until); // a call inside had a deadline of its own
          }
          status = thread.resume();
        }
        return true;
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

  #suspend(service: HostService, promise: PromiseLike<unknown>): void {
    this.#takeOff();
    this.#service = service;
    if (this.#deadline !== Infinity && this.#timer === undefined) this.#setTimer();
    const onValue = this.#onValue ??= (value) => this.#hear(value, ENTER.VALUE);
    const onReason = this.#onReason ??= (reason) => this.#hear(reason, ENTER.REASON);
    // What is no promise of the language might call back at once, or twice.
    (promise instanceof Promise ? promise : Promise.resolve(promise)).then(onValue, onReason);
  }

  /** The host's promise has settled. */
  #hear(settled: unknown, how: number): void {
    if (this.#done) return;
    this.#settled = settled;
    this.#whenFree(how);
  }

  #takeOff(): void {
    const left = this.#left;
    if (left !== undefined) left.frames = takeFrames(this.#thread, left.frames);
    else {
      this.#left = { thread: this.#thread, frames: takeFrames(this.#thread, undefined) };
      CALLS.register(this, this.#left);
    }
  }

  #setTimer(): void {
    const delay = this.#deadline - performance.now();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (performance.now() >= this.#deadline) this.#expire();
      else this.#setTimer();
    }, Math.min(Math.max(0, Math.ceil(delay)), MAX_TIMER_MS));
  }

  /** The slice is over: the event loop gets a turn. */
  #preempt(): void {
    const thread = this.#thread;
    const { state } = thread;
    const address = state.word(THREAD.FAULT_ADDRESS);
    const pc = state.word(THREAD.TRAP_PC);
    const sp = state.word(THREAD.TRAP_SP);
    this.#takeOff();
    this.#poll = { pc, address, depth: state.word(THREAD.GUEST_SP) - sp };
    thread.preempted++;
    thread.preemptions++;
    this.#instance.group.preempt(this);
    nodeModule("node:timers").setImmediate(() => {
      this.#goOn(ENTER.AGAIN);
      this.#instance.group.drain();
    });
  }

  #unpreempt(): void {
    if (this.#poll === undefined) return;
    this.#poll = undefined;
    this.#thread.preempted--;
    this.#instance.group.unpreempt(this);
  }

  /** The deadline has passed while the guest was not running. */
  #expire(): void {
    this.#stop(() => {
      const thread = this.#thread;
      const frames = this.#left?.frames;
      if (frames === undefined) return thread.services.interruption(false);
      putFrames(thread, frames);
      try {
        if (this.#poll === undefined) return thread.services.interruption(true);
        const { state } = thread;
        const { pc, address, depth } = this.#poll;
        const entry = thread.stack.word(state.word(THREAD.GUEST_SP) - thread.stackLow);
        state.setWord(THREAD.TRAP_PC, pc);
        state.setWord(THREAD.TRAP_SP, entry - depth);
        state.setWord(THREAD.FAULT_ADDRESS, address);
        return thread.services.trapError();
      } finally {
        thread.abandon();
      }
    });
  }

  /** Ends the call from outside while the guest is not running. */
  #stop(reason: () => unknown): void {
    if (this.#done) return;
    this.#done = true;
    let error: unknown;
    try {
      error = reason();
    } catch (problem) {
      error = problem;
    }
    const wasPreempted = this.#poll !== undefined;
    this.#unpreempt();
    this.#end(this.#reject, error);
    if (wasPreempted) this.#instance.group.drain();
  }

  #end(settle: (value: unknown) => void, value: unknown): void {
    this.#done = true;
    this.#service = undefined;
    this.#settled = undefined;
    this.#args = NO_ARGUMENTS;
    const left = this.#left;
    if (left?.frames !== undefined) {
      dropFrames(this.#thread, left.frames);
      left.frames = undefined;
    }
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    this.#forgetAbort?.();
    settle(value);
  }

  /** Puts the call's fuel in place of what there is; returns that. */
  #lendFuel(fuel: bigint): bigint {
    const { i64 } = this.#thread.state;
    const outer = i64[FUEL]!;
    i64[FUEL] = fuel < outer ? fuel : outer;
    return outer;
  }

  #takeFuelBack(outer: bigint): void {
    const { i64 } = this.#thread.state;
    const fuel = this.#fuel!;
    const used = (fuel < outer ? fuel : outer) - i64[FUEL]!;
    i64[FUEL] = outer - used;
    this.#fuel = fuel - used;
    const context = this.#context;
    context.fuel = typeof context.fuel === "number" ? Number(this.#fuel) : this.#fuel;
  }
}

const NO_ARGUMENTS: readonly unknown[] = [];
