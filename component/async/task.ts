/**
 * Tasks: calls of lifted functions in progress (Canonical ABI: Threads, Tasks). Each task has one thread. A thread that
 * blocks inside core code leaves its frames to the engine (Suspension); one that blocks outside of core code leaves a
 * closure. Both continue at once when they are resumed, so the scheduler below decides every order.
 *
 * Invariant: `Store.current` is the task whose code runs.
 */
import { startCall, Suspension } from "@waft/engine";
import { trap } from "../abi/traps.ts";
import type { CoreValue } from "../abi/generated.ts";
import type { FuncType } from "../model/types.ts";
import type { ComponentInstance, Store } from "./component_instance.ts";

export type Values = readonly unknown[];
export type OnStart = () => Values;
/** Gets the results, or undefined if the task was cancelled. */
export type OnResolve = (values: Values | undefined) => void;
export type OnCancel = (caller: ComponentInstance | undefined) => void;
/** A component function: starts a call. */
export type FuncInst = (onStart: OnStart, onResolve: OnResolve, caller: ComponentInstance | undefined) => OnCancel;

export const TASK = { INITIAL: 0, STARTED: 1, PENDING_CANCEL: 2, CANCEL_DELIVERED: 3, RESOLVED: 4 } as const;

/** A core function as linking has it. */
export type CoreFunction = (...args: CoreValue[]) => unknown;

/** Core functions that are JavaScript functions and not exports of an instance. */
export const HOST_FUNCTIONS: WeakSet<CoreFunction> = new WeakSet();

/** The canonical options that decide how a task runs. */
export interface TaskOptions {
  readonly isAsync: boolean;
  readonly hasCallback: boolean;
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
  /** The values of context.get and context.set. */
  readonly storage: CoreValue[] = [0, 0];
  cancellable = false;
  /** True if the caller is another component. */
  foreign = false;
  /** The options of the lifted function, which task.return must repeat (link/options.ts). */
  lifted: object | undefined = undefined;
  #readyFunc: (() => boolean) | undefined;
  #continuation: ((cancelled: boolean) => void) | undefined;

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
  }

  get needsExclusive(): boolean {
    return !this.options.isAsync || this.options.hasCallback;
  }

  get ready(): boolean {
    return this.#readyFunc !== undefined && this.#readyFunc();
  }

  /** Runs `action` as code of this task, until it blocks or ends. Throws the trap of any code that it ran. */
  run(action: () => void): void {
    const { store } = this;
    const before = store.current;
    store.current = this;
    try {
      action();
    } catch (error) {
      store.trapped ??= { error };
    } finally {
      store.current = before;
    }
    if (store.trapped !== undefined) throw store.trapped.error;
  }

  /** Continues a blocked task. */
  resume(cancelled = false): void {
    if (this.#readyFunc !== undefined) {
      this.#readyFunc = undefined;
      this.store.waiting.delete(this);
    }
    const continuation = this.#continuation!;
    this.#continuation = undefined;
    this.run(() => continuation(cancelled));
  }

  /** Calls a core function, which may block, and continues with `then` when it returns. */
  callCore(core: CoreFunction, args: readonly CoreValue[], then: (result: unknown) => void): void {
    if (HOST_FUNCTIONS.has(core)) return then(core(...args));
    const { store } = this;
    const guarded = (result: unknown) => {
      try {
        then(result);
      } catch (error) {
        store.trapped ??= { error };
      }
    };
    startCall(core, {}, args, guarded, (error) => {
      store.trapped ??= { error };
    });
  }

  /** Blocks until `ready`, outside of core code; continues with `then`. */
  wait(ready: () => boolean, cancellable: boolean, then: (cancelled: boolean) => void): void {
    if (this.deliverPendingCancel(cancellable)) return then(true);
    this.#block(ready, cancellable, then);
  }

  #block(ready: () => boolean, cancellable: boolean, continuation: (cancelled: boolean) => void): void {
    this.#readyFunc = ready;
    this.#continuation = continuation;
    this.cancellable = cancellable;
    this.store.waiting.add(this);
  }

  /**
   * Blocks until `ready`, inside a core function that called a built-in. Returns what the built-in must return to the
   * engine, which is the result of `then`, or a suspension that ends with it.
   */
  waitInCore<T>(ready: () => boolean, cancellable: boolean, then: (cancelled: boolean) => T, mustYield = false): T {
    if (this.deliverPendingCancel(cancellable)) return then(true);
    if (!mustYield && ready()) return then(false);
    const suspension = new Suspension();
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

  deliverPendingCancel(cancellable: boolean): boolean {
    if (!cancellable || this.state !== TASK.PENDING_CANCEL) return false;
    this.state = TASK.CANCEL_DELIVERED;
    return true;
  }

  /** Enters the instance, as soon as it accepts the task; continues with `then` unless the task is cancelled. */
  enter(then: () => void): void {
    const { instance } = this;
    const proceed = () => {
      if (this.type.async && this.needsExclusive) instance.exclusive = this;
      instance.tasks.add(this);
      then();
    };
    if (!this.type.async) return proceed();
    const hasBackpressure = () =>
      instance.backpressure > 0 || (this.needsExclusive && instance.exclusive !== undefined);
    if (!hasBackpressure() && instance.waitingToEnter === 0) return proceed();
    instance.waitingToEnter++;
    this.wait(() => !hasBackpressure(), true, (cancelled) => {
      instance.waitingToEnter--;
      if (cancelled) this.cancel();
      else proceed();
    });
  }

  exit(): void {
    this.instance.tasks.delete(this);
    if (this.state !== TASK.RESOLVED) trap("task exited without calling task.return or task.cancel");
    if (this.type.async && this.needsExclusive) this.instance.exclusive = undefined;
  }

  start(): Values {
    this.state = TASK.STARTED;
    return this.#onStart();
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
      this.resume(true);
      return;
    }
    const held = this.needsExclusive && instance.exclusive !== undefined && instance.exclusive !== this;
    if (this.#continuation !== undefined && this.cancellable && !held && instance.mayEnterFrom(caller)) {
      this.state = TASK.CANCEL_DELIVERED;
      instance.enterFrom(caller);
      this.resume(true);
      instance.leaveTo(caller);
    } else this.state = TASK.PENDING_CANCEL;
  }
}

/** Runs a ready task of a store; returns false if there is none. */
export function runReady(store: Store): boolean {
  for (const task of store.waiting) {
    if (!task.ready) continue;
    task.instance.enterFrom(undefined);
    task.resume();
    task.instance.leaveTo(undefined);
    return true;
  }
  return false;
}
