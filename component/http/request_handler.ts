/**
 * A component that answers requests of a server, and the instances that it does so with. In: a pool of instances, and
 * limits. Out: an instance for each request. Invariants: as many requests are handled at once, and as many wait, as the
 * limits say; an instance handles one request at a time, and has the state after instantiation unless it may be reused.
 */
import type { Context, InstancePool } from "@waft/engine";
import { type ComponentInstance, isIdle } from "../component.ts";
import type { Preview1 } from "../wasi/preview1.ts";

/** Limits of the requests of one component. */
export interface HandlerLimits {
  /** The maximum number of requests that are handled at once. */
  readonly concurrent: number;
  /** The maximum number of requests in the queue; further ones get status 503. */
  readonly waiting: number;
}

/** Options of a handler. */
export interface HandlerOptions {
  /** The name of the component for reports, where a server has several. */
  readonly name?: string;
  readonly pool: InstancePool<ComponentInstance>;
  readonly preview1: Preview1;
  readonly limits: HandlerLimits;
  /** The limits of one request. */
  readonly context: () => Context;
  /** The number of requests that an instance handles before it is reset; 1 by default. */
  readonly maxReuse?: number;
}

/** A component that answers requests. */
export class RequestHandler {
  readonly name: string | undefined;
  readonly preview1: Preview1;
  readonly context: () => Context;
  readonly #pool: InstancePool<ComponentInstance>;
  readonly #limits: HandlerLimits;
  readonly #maxReuse: number;
  readonly #waiting: (() => void)[] = [];
  /** Instances that have handled requests and may handle more. */
  readonly #warm: ComponentInstance[] = [];
  readonly #uses = new WeakMap<ComponentInstance, number>();
  #active = 0;

  constructor({ name, pool, preview1, limits, context, maxReuse = 1 }: HandlerOptions) {
    this.name = name;
    this.#pool = pool;
    this.preview1 = preview1;
    this.#limits = limits;
    this.context = context;
    this.#maxReuse = maxReuse;
  }

  /** Instances without a request. */
  get idle(): number {
    return this.#pool.idle + this.#warm.length;
  }

  /** Instances with a request. */
  get taken(): number {
    return this.#pool.taken - this.#warm.length;
  }

  /** Calls `start` now or later, once the request may be handled. Returns false if too many wait. */
  admit(start: () => void): boolean {
    if (this.#active < this.#limits.concurrent) start();
    else if (this.#waiting.length < this.#limits.waiting) this.#waiting.push(start);
    else return false;
    return true;
  }

  /** Counts a request as handled until the returned function is called, which starts one that waits. */
  begin(): () => void {
    this.#active++;
    return () => {
      this.#active--;
      this.#waiting.shift()?.();
    };
  }

  /** An instance for one request. Throws the errors of instantiation. */
  take(): ComponentInstance {
    return this.#warm.pop() ?? this.#pool.take();
  }

  /** Takes an instance back: it is reused if it has answered a request and may have another, and otherwise reset. */
  put(instance: ComponentInstance, hasAnswered: boolean): void {
    const uses = (this.#uses.get(instance) ?? 0) + 1;
    if (hasAnswered && uses < this.#maxReuse && isIdle(instance)) {
      this.#uses.set(instance, uses);
      this.#warm.push(instance);
      return;
    }
    this.#uses.delete(instance);
    try {
      this.#pool.put(instance);
    } catch {
      // The pool has closed it and makes another.
    }
  }

  /** Closes all idle instances, and from now on every other one when its request has ended. */
  close(): void {
    this.#pool.close();
    for (const instance of this.#warm.splice(0)) this.#pool.put(instance);
  }
}
