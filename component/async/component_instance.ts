/**
 * The state of a component instance and of the store that it belongs to (Canonical ABI: Component Instances, Embedding
 * API). Invariant: an instance whose code trapped is never left, so it can never be entered again.
 */
import { clearTimeout, setTimeout } from "node:timers";
import { host, type Instance, type Memory, TrapError } from "@waft/engine";
import { trap } from "../abi/traps.ts";
import type { CallLimits } from "./call_limits.ts";
import { type Entry, ResourceHandle, type RuntimeResource, type Subtask, Waitable } from "./entries.ts";
import { HostQuota } from "./host_quota.ts";
import type { Task, Thread } from "./task.ts";
import { Table } from "./table.ts";
import { Turns } from "./turns.ts";

/** Tasks that run in one turn of the event loop. */
const MAX_STEPS = 10_000;

/** The flags of an instance: offsets of bytes. */
export const FLAG = { ENTER: 0, LEAVE: 1, BYTES: 2 } as const;
const MAX_FLAG_PAGES = 64;

/** The readable end of a stream or future in JavaScript. */
export interface HostEnd {
  readonly isStream: boolean;
  /** Ends it with an error, because the code that writes to it has ended. */
  fail(reason: unknown): void;
}

/** A handle, stream or future that JavaScript passes as an argument. */
interface Passed {
  /** Gives the value back, because a later argument cannot be lowered. */
  undo(): void;
  /** Called when all arguments are lowered. */
  complete?(): void;
}

/** The instances of one instantiation of a root component, and their waiting tasks. */
export class Store {
  #current: Thread | undefined;
  /** The thread that continues when the current one has blocked. */
  switchTo: Thread | undefined = undefined;
  /** Threads that wait for a condition. */
  readonly waiting: Set<Thread> = new Set();
  /** The trap that ended the store's code, until it has reached the host. */
  trapped: { readonly error: unknown } | undefined = undefined;
  /** The call whose arguments are being lifted, which borrows the handles among them. */
  lending: Subtask | undefined = undefined;
  /** The handles of each call of the host whose arguments are being lowered, innermost call last. */
  readonly passing: Passed[][] = [];
  /** The memory of the host that all instances may hold together. */
  quota: HostQuota;
  /** Calls of asynchronous functions of the host that have not ended. */
  hostCalls = 0;
  /** The limits of the call that the host is starting, or whose result it is passing to the component. */
  hostLimits: CallLimits | undefined = undefined;
  /** The turns of the event loop in which the host passes streams on. */
  readonly turns: Turns = new Turns();
  /** Whether the host awaits the call of a synchronous function that it is starting. */
  hostAwaits = false;
  /** Streams and futures that JavaScript reads. */
  readonly hostEnds: Set<HostEnd> = new Set();
  /** Calls without a task in progress. */
  active = 0;
  /** The core instances, adapters excluded. */
  readonly coreInstances: Instance[] = [];
  /** The instances of adapters, which have no state of their own. */
  readonly adapters: Instance[] = [];
  /** Compile the adapters of calls that still go through JavaScript, whose frames cannot be suspended. */
  readonly deferredAdapters: (() => void)[] = [];
  /** The component instances, in order of instantiation. */
  readonly instances: ComponentInstance[] = [];
  /** Changes when the state of all instances ends: objects of resources made before belong to no instance. */
  era: object = {};
  #resettable = false;

  /** Whether some function of the component may block, so that all calls are tasks. */
  readonly usesAsync: boolean;
  /** Whether core code can observe its task (context.get) although nothing blocks. */
  readonly needsTasks: boolean;

  /** Calls of the host that have not ended. */
  readonly calls: Set<{ reject(reason: unknown): void }> = new Set();
  readonly #run: (store: Store) => boolean;
  #pumping = false;
  /** Ready tasks are to run once no component code is on the stack. */
  #pumpDue = false;
  #nextTurn: ReturnType<typeof setTimeout> | undefined;

  /** `run` runs a ready task; it returns false if there is none. `hostBytes` is the limit of the quota. */
  constructor(
    usesAsync: boolean,
    needsTasks: boolean,
    run: (store: Store) => boolean,
    hostBytes: number = Infinity,
  ) {
    this.quota = new HostQuota(hostBytes);
    this.usesAsync = usesAsync;
    this.needsTasks = needsTasks;
    this.#run = run;
  }

  /** The thread whose code runs now. */
  get current(): Thread | undefined {
    return this.#current;
  }

  set current(thread: Thread | undefined) {
    this.#current = thread;
    if (thread !== undefined) this.onThread?.(thread);
    if (thread !== undefined || !this.#pumpDue) return;
    this.#pumpDue = false;
    this.pumpSoon();
  }

  /** Told each thread whose code runs from then on; for debuggers. */
  onThread: ((thread: Thread) => void) | undefined = undefined;
  /** Whether a debugger has stopped a thread, so that no other one runs. */
  #isHeld = false;

  /**
   * Blocks the running thread until `until`, inside a core function that may be suspended, and all other threads with
   * it. Returns the value that the host function must return.
   */
  hold(until: Promise<void>): unknown {
    const thread = this.#current;
    if (thread === undefined) return until;
    this.#isHeld = true;
    this.during(until.finally(() => this.#isHeld = false));
    return thread.waitInCore(() => !this.#isHeld, false, () => undefined);
  }

  /** The limits of the call on whose behalf code of the component or of the host runs now. */
  get limits(): CallLimits | undefined {
    return this.#current === undefined ? this.hostLimits : this.#current.task.limits;
  }

  /** Runs work of the host on behalf of a call with `limits`, which may run code of the component. */
  runFor<T>(limits: CallLimits | undefined, action: () => T): T {
    if (limits === undefined) return action();
    const { hostLimits } = this;
    this.hostLimits = limits;
    try {
      return limits.run(action);
    } finally {
      this.hostLimits = hostLimits;
    }
  }

  /** Runs `action` once the actions before have ended. */
  async inTurn<T>(action: () => Promise<T>): Promise<T> {
    const before = this.#lastTurn;
    const turn = before.then(action);
    this.#lastTurn = turn.then(() => {}, () => {});
    return await turn;
  }
  #lastTurn: Promise<void> = Promise.resolve();

  /** Ends all calls with an error, because a limit of one of them was reached while nothing ran. */
  expire(error: unknown): void {
    this.trapped ??= { error };
    this.pump();
  }

  /**
   * Runs `action` for a call from the host. Once no component code is left on the stack, a recorded trap is cleared:
   * its callers have received it, and the next call must not fail with it.
   */
  enterHost(action: () => void): void {
    const { current } = this;
    this.current = undefined;
    try {
      action();
    } finally {
      this.current = current;
      if (current === undefined) this.trapped = undefined;
    }
  }

  /** Runs ready tasks after the current turn of the event loop. */
  pumpLater(): void {
    if (this.waiting.size > 0) queueMicrotask(() => this.pump());
  }

  /** Counts work of the host as a call in progress until it ends; a failure ends the component. */
  during(work: Promise<unknown>): void {
    this.hostCalls++;
    work.catch((error: unknown) => {
      this.trapped ??= { error };
    }).finally(() => {
      this.hostCalls--;
      this.pump();
    });
  }

  /**
   * Runs ready tasks until none is ready. Calls of the host that can then never end, because nothing else is in
   * progress, are rejected.
   */
  pump(): void {
    if (this.#pumping || this.#isHeld) return;
    // Some functions of runtimes run microtasks before they return; one that queues itself would never let them return.
    this.#pumpDue = this.current !== undefined;
    if (this.#pumpDue) return;
    this.#pumping = true;
    try {
      for (let steps = 0; this.trapped === undefined && this.#run(this);) {
        if (++steps < MAX_STEPS) continue;
        this.#pumpNextTurn();
        return;
      }
    } catch (error) {
      this.trapped ??= { error };
    } finally {
      this.#pumping = false;
    }
    this.#settle();
  }

  /**
   * Continues in the next turn of the event loop. Tasks that no call of the host waits for do not keep the process
   * alive, since such a task may yield forever.
   */
  #pumpNextTurn(): void {
    clearTimeout(this.#nextTurn);
    this.#nextTurn = setTimeout(() => this.pump(), 0);
    if (this.calls.size === 0 && this.hostCalls === 0) this.#nextTurn.unref();
  }

  #settle(): void {
    const { trapped } = this;
    if (trapped === undefined && (this.#waitsForHost || this.calls.size === 0)) return;
    this.trapped = undefined;
    this.#failAll(trapped?.error ?? new TrapError("deadlock: no task can continue"));
  }

  /** Whether JavaScript can let a task continue: by the end of a function, or by reading a stream. */
  get #waitsForHost(): boolean {
    return this.hostCalls > 0 || [...this.hostEnds].some(({ isStream }) => isStream);
  }

  /** Ends everything that waits for the store's code. */
  #failAll(error: unknown): void {
    for (const call of this.calls) call.reject(error);
    this.calls.clear();
    for (const end of this.hostEnds) end.fail(error);
    this.hostEnds.clear();
  }

  /** Runs ready tasks after the current microtask. */
  pumpSoon(): void {
    queueMicrotask(() => this.pump());
  }

  /**
   * Flags of the instances, two bytes each (FLAG). Adapters between components read and write them, so they are in a
   * memory once there is an adapter.
   */
  flags: Uint8Array = new Uint8Array(64);
  #flagsUsed = 0;
  #flagsMemory: Memory | undefined;

  /** Makes room for the flags of an instance, which may be entered and left. */
  addFlags(): number {
    const at = this.#flagsUsed;
    this.#flagsUsed += FLAG.BYTES;
    if (this.#flagsUsed > this.flags.length) {
      if (this.#flagsMemory !== undefined) this.#flagsMemory.grow(1);
      this.#moveFlags(this.#flagsMemory?.buffer ?? new ArrayBuffer(2 * this.flags.length));
    }
    this.flags.fill(1, at, at + FLAG.BYTES);
    return at;
  }

  /** The memory of the flags, for adapters. */
  get flagsMemory(): Memory {
    if (this.#flagsMemory === undefined) {
      this.#flagsMemory = host.memory(1, MAX_FLAG_PAGES);
      this.#moveFlags(this.#flagsMemory.buffer);
    }
    return this.#flagsMemory;
  }

  /** Records the state of the core instances, which `reset` restores. */
  checkpoint(): void {
    for (const instance of this.coreInstances) instance.checkpoint();
    this.#resettable = true;
  }

  /** Whether no call or task is in progress. */
  get isIdle(): boolean {
    return this.active === 0 && this.current === undefined && this.calls.size === 0 && this.hostCalls === 0 &&
      this.hostEnds.size === 0 && this.waiting.size === 0 && this.instances.every(({ threads }) => threads.isEmpty);
  }

  /**
   * Restores the recorded state. Throws an Error if there is none, or a call or a task is in progress. If a core
   * instance cannot be reset, closes all and throws the reason.
   */
  reset(): void {
    if (!this.#resettable) throw new Error("The instance was not instantiated with { resettable: true }");
    if (!this.isIdle) throw new Error("The instance is not idle: a call or a task of it is in progress");
    try {
      for (const instance of this.coreInstances) instance.reset();
    } catch (error) {
      this.close();
      throw error;
    }
    this.#endState();
  }

  /**
   * Closes the core instances, and forgets them: handles of calls that a trap has ended lead to the store until the
   * engine sweeps its references to host values.
   */
  close(): void {
    this.#resettable = false;
    for (const instance of [...this.coreInstances, ...this.adapters]) instance.close();
    this.#failAll(new Error("The instance is closed"));
    this.#endState();
    for (const list of [this.coreInstances, this.adapters, this.deferredAdapters, this.instances]) list.length = 0;
  }

  /** Forgets the handles of all instances; resources of the host that they own are disposed of. */
  #endState(): void {
    this.era = {};
    this.trapped = undefined;
    this.lending = undefined;
    this.switchTo = undefined;
    this.flags.fill(1, 0, this.#flagsUsed);
    const owned = this.instances.flatMap((instance) => instance.forget());
    try {
      destroyAll(owned);
    } finally {
      // Objects that calls which have trapped left behind belong to the state that has ended.
      this.quota = this.quota.fresh();
    }
  }

  #moveFlags(to: ArrayBuffer): void {
    const flags = new Uint8Array(to);
    flags.set(this.flags);
    this.flags = flags;
  }

  /** The running thread. */
  get thread(): Thread {
    const thread = this.current;
    if (thread === undefined) trap("the built-in function requires a task");
    return thread;
  }

  /** The running task. */
  get task(): Task {
    return this.thread.task;
  }
}

/** Destroys every resource, also after one whose end fails. Throws the first error. */
function destroyAll(owned: readonly { readonly resource: RuntimeResource; readonly rep: number }[]): void {
  const errors: unknown[] = [];
  for (const { resource, rep } of owned) {
    try {
      resource.destroy?.(rep, undefined);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

export class ComponentInstance {
  readonly store: Store;
  readonly parent: ComponentInstance | undefined;
  /** The number of instances that this one is in, itself included. */
  readonly depth: number;
  readonly handles: Table<Entry>;
  /** The threads of its tasks that have started and not ended. */
  readonly threads: Table<Thread>;
  /** The index of its flags in those of the store. */
  readonly flags: number;
  backpressure = 0;
  waitingToEnter = 0;
  /** Whether code of it can throw exceptions. */
  throws = false;
  /** True while a synchronous function of it waits for the host. */
  isHeld = false;
  /** The thread that holds the instance exclusively. */
  exclusive: Thread | undefined = undefined;

  constructor(store: Store, parent: ComponentInstance | undefined) {
    this.store = store;
    this.parent = parent;
    this.depth = parent === undefined ? 1 : parent.depth + 1;
    this.handles = new Table(store);
    this.threads = new Table(store);
    this.flags = store.addFlags();
    store.instances.push(this);
  }

  /** Returns to the state without handles and tasks. Returns the handles of resources of the host that it owned. */
  forget(): ResourceHandle[] {
    const owned: ResourceHandle[] = [];
    const waitables: Waitable[] = [];
    if (!this.handles.isEmpty) {
      for (const entry of this.handles) {
        if (entry instanceof ResourceHandle) {
          if (entry.own && entry.resource.owner === undefined) owned.push(entry);
        } else if (entry instanceof Waitable) waitables.push(entry);
      }
    }
    this.handles.clear();
    this.threads.clear();
    for (const waitable of waitables) waitable.abandon();
    this.backpressure = 0;
    this.waitingToEnter = 0;
    this.isHeld = false;
    this.exclusive = undefined;
    return owned;
  }

  get mayEnter(): boolean {
    return this.store.flags[this.flags + FLAG.ENTER] !== 0;
  }

  set mayEnter(may: boolean) {
    this.store.flags[this.flags + FLAG.ENTER] = may ? 1 : 0;
  }

  get mayLeave(): boolean {
    return this.store.flags[this.flags + FLAG.LEAVE] !== 0;
  }

  set mayLeave(may: boolean) {
    this.store.flags[this.flags + FLAG.LEAVE] = may ? 1 : 0;
  }

  /** The instances that a call from `caller` enters: this one and its ancestors, without those of the caller. */
  enteringSet(caller: ComponentInstance | undefined): readonly ComponentInstance[] {
    if (caller === undefined) return this.#withAncestors();
    const inside = new Set(caller.#withAncestors());
    return this.#withAncestors().filter((instance) => !inside.has(instance));
  }

  #withAncestors(): ComponentInstance[] {
    return this.parent === undefined ? [this] : [this, ...this.parent.#withAncestors()];
  }

  mayEnterFrom(caller: ComponentInstance | undefined): boolean {
    return this.enteringSet(caller).every((instance) => instance.mayEnter);
  }

  enterFrom(caller: ComponentInstance | undefined): void {
    enterAll(this.enteringSet(caller));
  }

  leaveTo(caller: ComponentInstance | undefined): void {
    leaveAll(this.enteringSet(caller));
  }

  /** Traps if the instance may not call its imports now. */
  requireLeave(): void {
    if (!this.mayLeave) trap("cannot leave component instance");
  }
}

/** Enters instances; traps if one of them is entered already or has trapped. */
export function enterAll(instances: readonly ComponentInstance[]): void {
  for (const { mayEnter } of instances) if (!mayEnter) trap("cannot enter component instance");
  for (const instance of instances) instance.mayEnter = false;
}

export function leaveAll(instances: readonly ComponentInstance[]): void {
  for (const instance of instances) instance.mayEnter = true;
}
