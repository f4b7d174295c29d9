/**
 * Tasks: calls of lifted functions in progress, and their threads (Canonical ABI: Threads, Tasks). A thread that blocks
 * inside core code leaves its frames to the engine (Suspension); one that blocks outside of core code leaves a closure.
 * Both continue at once when they are resumed, so the scheduler below decides every order.
 *
 * Invariant: `Store.current` is the thread whose code runs.
 */
import { startCall, Suspension } from "@waft/engine";
import { leaving } from "../abi/core_exceptions.ts";
import { trap } from "../abi/traps.ts";
import type { CoreValue } from "../abi/generated.ts";
import type { FuncType } from "../model/types.ts";
import type { CallLimits } from "./call_limits.ts";
import { type ComponentInstance, leaveAll, type Store } from "./component_instance.ts";
import { type CoreFunction, HOST_FUNCTIONS } from "./core_function.ts";

type Values = readonly unknown[];
type OnStart = () => Values;
/**
 * Gets the results, or undefined if the task was cancelled, or never ran because the host's arguments could not be
 * lowered: then with the error.
 */
export type OnResolve = (values: Values | undefined, abandoned?: { readonly error: unknown }) => void;
type OnCancel = (caller: ComponentInstance | undefined) => void;
/** A component function: starts a call. */
export type FuncInst = (onStart: OnStart, onResolve: OnResolve, caller: ComponentInstance | undefined) => OnCancel;

export const TASK = { INITIAL: 0, STARTED: 1, PENDING_CANCEL: 2, CANCEL_DELIVERED: 3, RESOLVED: 4 } as const;

/** The canonical options that decide how a task runs. */
interface TaskOptions {
  readonly isAsync: boolean;
  readonly hasCallback: boolean;
}

/** One thread of execution of a task. Core code that it runs, and its frames while it is blocked, belong to it. */
export class Thread {
  /** The bytes of the host that it counts, with its task and its waits. */
  readonly hostBytes: number = 512;
  readonly task: Task;
  /** The values of context.get and context.set. */
  storage: CoreValue[] = [0, 0];
  /** Its index in the instance's table of threads. */
  index = 0;
  cancellable = false;
  #readyFunc: (() => boolean) | undefined;
  #continuation: ((cancelled: boolean) => void) | undefined;

  constructor(task: Task, start?: () => void) {
    this.task = task;
    this.#continuation = start;
  }

  get #store(): Store {
    return this.task.store;
  }

  /** Runs code that has context slots of its own. */
  withFreshStorage<T>(action: () => T): T {
    const { storage } = this;
    this.storage = [0, 0];
    try {
      return action();
    } finally {
      this.storage = storage;
    }
  }

  get ready(): boolean {
    return this.#readyFunc !== undefined && this.#readyFunc();
  }

  get blocked(): boolean {
    return this.#continuation !== undefined;
  }

  /** Whether only another thread can let it continue. */
  get suspended(): boolean {
    return this.blocked && this.#readyFunc === undefined;
  }

  /** Runs `action` as code of this thread, until it blocks or ends. Throws the trap of any code that it ran. */
  run(action: () => void): void {
    this.#runOne(action);
    const store = this.#store;
    for (let next = store.switchTo; next !== undefined; next = store.switchTo) {
      store.switchTo = undefined;
      next.#continue(false);
    }
  }

  #runOne(action: () => void): void {
    const store = this.#store;
    const before = store.current;
    store.current = this;
    try {
      action();
    } catch (error) {
      store.trapped ??= { error: leaving(error) };
    } finally {
      store.current = before;
    }
    if (store.trapped !== undefined) throw store.trapped.error;
  }

  #continue(cancelled: boolean): void {
    this.stopWaiting();
    const continuation = this.#continuation!;
    this.#continuation = undefined;
    this.#runOne(() => continuation(cancelled));
  }

  /** Continues a blocked thread, and the threads that it switches to. */
  resume(cancelled = false): void {
    this.run(() => this.#continue(cancelled));
  }

  /** Makes a suspended thread ready. */
  resumeLater(): void {
    this.#waitFor(() => true);
  }

  /** A waiting thread becomes a suspended one. */
  stopWaiting(): void {
    this.#readyFunc = undefined;
    this.#store.waiting.delete(this);
  }

  #waitFor(ready: () => boolean): void {
    this.#readyFunc = ready;
    this.#store.waiting.add(this);
  }

  /** Calls a core function, which may block, and continues with `then` when it returns. */
  callCore(core: CoreFunction, args: readonly CoreValue[], then: (result: unknown) => void): void {
    if (HOST_FUNCTIONS.has(core)) return then(core(...args));
    const store = this.#store;
    const guarded = (result: unknown) => {
      try {
        then(result);
      } catch (error) {
        store.trapped ??= { error };
      }
    };
    startCall(
      core,
      this.task.limits?.coreContext ?? {},
      args,
      guarded,
      (error) => {
        store.trapped ??= { error: leaving(error) };
        // A deadline passes while nothing runs.
        if (store.current === undefined) store.pumpSoon();
      },
      false,
      this.task.limits?.processorTime,
    );
  }

  /** Blocks until `ready`, outside of core code; continues with `then`. */
  wait(ready: () => boolean, cancellable: boolean, then: (cancelled: boolean) => void): void {
    if (this.task.deliverPendingCancel(cancellable)) return then(true);
    this.#block(ready, cancellable, then);
  }

  #block(
    ready: (() => boolean) | undefined,
    cancellable: boolean,
    continuation: (cancelled: boolean) => void,
  ): void {
    this.#continuation = continuation;
    this.cancellable = cancellable;
    if (ready !== undefined) this.#waitFor(ready);
  }

  /**
   * Blocks until `ready`, inside a core function that called a built-in. Returns the value that the built-in must
   * return to the engine, which is the result of `then`, or a suspension that ends with it.
   */
  waitInCore<T>(ready: () => boolean, cancellable: boolean, then: (cancelled: boolean) => T): T {
    if (this.task.deliverPendingCancel(cancellable)) return then(true);
    return ready() ? then(false) : this.#blockInCore(ready, cancellable, then);
  }

  /** Lets other threads run: `other`, if given, at once. */
  yieldInCore<T>(cancellable: boolean, then: (cancelled: boolean) => T, other?: Thread): T {
    if (this.task.deliverPendingCancel(cancellable)) return then(true);
    return this.#blockInCore(() => true, cancellable, then, other);
  }

  /** Blocks until another thread resumes this one; `other`, if given, continues at once. */
  suspendInCore<T>(cancellable: boolean, then: (cancelled: boolean) => T, other?: Thread): T {
    if (this.task.deliverPendingCancel(cancellable)) return then(true);
    return this.#blockInCore(undefined, cancellable, then, other);
  }

  #blockInCore<T>(
    ready: (() => boolean) | undefined,
    cancellable: boolean,
    then: (cancelled: boolean) => T,
    other?: Thread,
  ): T {
    const suspension = new Suspension();
    this.#store.switchTo = other;
    this.#block(ready, cancellable, (cancelled) => {
      let value: T;
      try {
        value = then(cancelled);
      } catch (error) {
        return suspension.fail(error);
      }
      suspension.resume(value);
    });
    return suspension as unknown as T;
  }
}

export class Task {
  readonly store: Store;
  readonly instance: ComponentInstance;
  readonly type: FuncType;
  readonly options: TaskOptions;
  readonly #onStart: OnStart;
  readonly #onResolve: OnResolve;
  state: number = TASK.INITIAL;
  borrows = 0;
  /** The limits of the call of the host that it belongs to. */
  readonly limits: CallLimits | undefined;
  /** Whether the host awaits the call although its function is synchronous, so that it may wait for the host. */
  readonly mayWait: boolean;
  /** The instances that a waiting synchronous function keeps entered, because it has not finished. */
  #held: readonly ComponentInstance[] | undefined;
  /** Whether the caller is another component. */
  foreign = false;
  /** The options of the lifted function, which task.return must repeat (link/options.ts). */
  lifted: object | undefined = undefined;
  /** The thread that runs the lifted function. */
  readonly thread: Thread = new Thread(this);
  readonly threads: Set<Thread> = new Set();

  constructor(
    instance: ComponentInstance,
    type: FuncType,
    options: TaskOptions,
    onStart: OnStart,
    onResolve: OnResolve,
  ) {
    this.store = instance.store;
    this.instance = instance;
    this.type = type;
    this.options = options;
    this.#onStart = onStart;
    this.#onResolve = onResolve;
    const caller = instance.store.current;
    this.limits = instance.store.limits;
    this.mayWait = caller === undefined ? instance.store.hostAwaits : caller.task.mayWait;
  }

  get needsExclusive(): boolean {
    return !this.options.isAsync || this.options.hasCallback;
  }

  deliverPendingCancel(cancellable: boolean): boolean {
    if (!cancellable || this.state !== TASK.PENDING_CANCEL) return false;
    this.state = TASK.CANCEL_DELIVERED;
    return true;
  }

  /** Enters the instance, as soon as it accepts the task; continues with `then` unless the task is cancelled. */
  enter(then: () => void): void {
    const { instance, thread } = this;
    const proceed = () => {
      if (this.type.async && this.needsExclusive) instance.exclusive = thread;
      this.register(thread);
      then();
    };
    if (!this.type.async) return proceed();
    const hasBackpressure = () =>
      instance.backpressure > 0 || (this.needsExclusive && instance.exclusive !== undefined);
    if (!hasBackpressure() && instance.waitingToEnter === 0) return proceed();
    instance.waitingToEnter++;
    thread.wait(() => !hasBackpressure(), true, (cancelled) => {
      instance.waitingToEnter--;
      if (cancelled) this.cancel();
      else proceed();
    });
  }

  register(thread: Thread): void {
    this.threads.add(thread);
    thread.index = this.instance.threads.add(thread);
  }

  unregister(thread: Thread): void {
    this.threads.delete(thread);
    if (this.threads.size === 0 && this.state !== TASK.RESOLVED) {
      trap("task exited without calling task.return or task.cancel");
    }
    this.instance.threads.remove(thread.index);
  }

  /** True once its thread has ended. */
  get hasExited(): boolean {
    return this.state === TASK.RESOLVED && this.threads.size === 0;
  }

  /** Keeps instances, which the task has entered, until it exits. */
  hold(instances: readonly ComponentInstance[]): void {
    this.#held = instances;
    for (const instance of instances) instance.isHeld = true;
  }

  get holdsInstances(): boolean {
    return this.#held !== undefined;
  }

  #release(): void {
    const held = this.#held;
    if (held === undefined) return;
    this.#held = undefined;
    for (const instance of held) instance.isHeld = false;
    leaveAll(held);
  }

  exit(): void {
    this.unregister(this.thread);
    this.#release();
    if (this.type.async && this.needsExclusive) this.instance.exclusive = undefined;
  }

  start(): Values {
    this.state = TASK.STARTED;
    return this.#onStart();
  }

  /** Ends the task before it calls its core function. */
  abandon(error: unknown): void {
    this.state = TASK.RESOLVED;
    this.exit();
    this.#onResolve(undefined, { error });
  }

  /** Traps unless the task may resolve now. */
  #checkResolve(): void {
    if (this.borrows > 0) trap("borrow handles still remain at the end of the call");
  }

  return(values: Values): void {
    if (this.state === TASK.RESOLVED) trap("task.return or task.cancel called more than once");
    this.#checkResolve();
    this.#onResolve(values);
    this.state = TASK.RESOLVED;
  }

  cancel(): void {
    if (this.state !== TASK.CANCEL_DELIVERED) trap("task.cancel called by a task that has not been cancelled");
    this.#checkResolve();
    this.#onResolve(undefined);
    this.state = TASK.RESOLVED;
  }

  requestCancellation(caller: ComponentInstance | undefined): void {
    const { instance } = this;
    if (this.state === TASK.INITIAL) {
      this.state = TASK.CANCEL_DELIVERED;
      this.thread.resume(true);
      return;
    }
    const held = this.needsExclusive && instance.exclusive !== undefined && instance.exclusive !== this.thread;
    const [candidate] = [...this.threads].filter((thread) =>
      thread.blocked && thread.cancellable && !(held && thread === this.thread)
    );
    if (candidate !== undefined && instance.mayEnterFrom(caller)) {
      this.state = TASK.CANCEL_DELIVERED;
      instance.enterFrom(caller);
      candidate.resume(true);
      instance.leaveTo(caller);
    } else this.state = TASK.PENDING_CANCEL;
  }
}

/** Runs a ready thread of a store; returns false if there is none. */
export function runReady(store: Store): boolean {
  for (const thread of store.waiting) {
    if (!thread.ready) continue;
    const { instance, limits, holdsInstances } = thread.task;
    if (!holdsInstances && instance.enteringSet(undefined).some(({ isHeld }) => isHeld)) continue;
    if (!holdsInstances) instance.enterFrom(undefined);
    const resume = () => thread.resume();
    if (limits === undefined) resume();
    else limits.run(resume);
    if (!holdsInstances) instance.leaveTo(undefined);
    return true;
  }
  return false;
}
