/** The kinds of entries in the table of a component instance (Canonical ABI: Resource State, Waitable State). */
import { trap } from "../abi/traps.ts";
import type { ResourceId } from "../model/types.ts";
import type { ComponentInstance } from "./component_instance.ts";
import type { Task, Thread } from "./task.ts";

export type Entry = ResourceHandle | Waitable | WaitableSet | ErrorContext;

/** A resource type of one instantiation, compared by identity. */
export class RuntimeResource implements ResourceId {
  readonly origin: ResourceId["origin"];
  /** The name under which it is exported, for messages and its class. */
  name: string;
  /** The instance that implements it; undefined for a resource of the host. */
  readonly owner: ComponentInstance | undefined;
  /** Destroys a resource, called from `caller`. */
  destroy: ((rep: number, caller: ComponentInstance | undefined) => void) | undefined = undefined;
  /** The class that represents it in JavaScript (link/host_resources.ts). */
  hostClass: unknown = undefined;

  constructor(name: string, owner: ComponentInstance | undefined) {
    this.origin = owner === undefined ? "imported" : "defined";
    this.name = name;
    this.owner = owner;
  }
}

export class ResourceHandle {
  readonly resource: RuntimeResource;
  readonly rep: number;
  readonly own: boolean;
  /** The task whose end a borrowed handle must not outlive. */
  readonly scope: Task | undefined;
  lends = 0;

  constructor(resource: RuntimeResource, rep: number, own: boolean, scope?: Task) {
    this.resource = resource;
    this.rep = rep;
    this.own = own;
    this.scope = scope;
  }
}

export class ErrorContext {
  /** The bytes of the host that it counts; messages are short. */
  readonly hostBytes: number = 2048;
  readonly message: unknown;

  constructor(message: unknown) {
    this.message = message;
  }
}

/** Codes of events. */
export const EVENT = {
  NONE: 0,
  SUBTASK: 1,
  STREAM_READ: 2,
  STREAM_WRITE: 3,
  FUTURE_READ: 4,
  FUTURE_WRITE: 5,
  TASK_CANCELLED: 6,
} as const;

export type Event = readonly [code: number, index: number, payload: number];

/** Anything that a task can wait for. */
export class Waitable {
  #pending: (() => Event) | undefined;
  set: WaitableSet | undefined;
  hasSyncWaiter = false;

  setPending(event: () => Event): void {
    this.#pending = event;
  }

  get hasPending(): boolean {
    return this.#pending !== undefined;
  }

  takePending(): Event {
    const event = this.#pending!;
    this.#pending = undefined;
    return event();
  }

  /** Blocks the running thread until there is an event, then continues with `then`. */
  waitForPending<T>(thread: Thread, then: () => T): T {
    this.hasSyncWaiter = true;
    return thread.waitInCore(() => this.hasPending, false, () => {
      this.hasSyncWaiter = false;
      return then();
    });
  }

  join(set: WaitableSet | undefined): void {
    this.set?.elements.delete(this);
    this.set = set;
    set?.elements.add(this);
  }

  drop(): void {
    this.join(undefined);
  }

  /** The instance ends without having dropped it. */
  abandon(): void {}
}

export class WaitableSet {
  readonly elements: Set<Waitable> = new Set();
  waiting = 0;

  get hasPending(): boolean {
    for (const waitable of this.elements) if (waitable.hasPending) return true;
    return false;
  }

  takePending(): Event {
    for (const waitable of this.elements) {
      if (!waitable.hasPending) continue;
      // The set is fair: a waitable that had its turn goes to the end.
      this.elements.delete(waitable);
      this.elements.add(waitable);
      return waitable.takePending();
    }
    return [EVENT.NONE, 0, 0];
  }

  drop(): void {
    if (this.elements.size > 0) trap("cannot drop waitable set with waitables in it");
    if (this.waiting > 0) trap("cannot drop waitable set while a task waits for it");
  }
}

export const SUBTASK = {
  STARTING: 0,
  STARTED: 1,
  RETURNED: 2,
  CANCELLED_BEFORE_STARTED: 3,
  CANCELLED_BEFORE_RETURNED: 4,
} as const;

/** A call of an import in progress, seen from the caller. */
export class Subtask extends Waitable {
  /** The bytes of the host that it counts, with the callee's task. */
  readonly hostBytes: number = 1024;
  state: number = SUBTASK.STARTING;
  onCancel: ((caller: ComponentInstance) => void) | undefined;
  lenders: ResourceHandle[] | undefined = [];
  cancellationRequested = false;
  flatResults: readonly (number | bigint)[] = [];

  get resolved(): boolean {
    return this.state >= SUBTASK.RETURNED;
  }

  addLender(handle: ResourceHandle): void {
    handle.lends++;
    this.lenders!.push(handle);
  }

  resolve(state: number, flatResults: readonly (number | bigint)[]): void {
    this.state = state;
    this.flatResults = flatResults;
  }

  deliverResolve(): void {
    for (const handle of this.lenders!) handle.lends--;
    this.lenders = undefined;
  }

  get resolveDelivered(): boolean {
    return this.lenders === undefined;
  }

  override drop(): void {
    if (!this.resolveDelivered) trap("cannot drop a subtask which has not yet resolved");
    super.drop();
  }
}
