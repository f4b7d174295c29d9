/**
 * Pools of instances, which are reset and reused. In: a function that creates an instance. Invariant: an instance in
 * the pool has its initial state, so no state that the instance defines passes from one user to the next.
 */
import { wholeNumber } from "../../base/arguments.ts";

/** The error of a reset of an instance whose objects others may change, or on the length of whose tables they rely. */
export class SharedObjectsError extends Error {}

/** The parts of an instance that a pool uses. */
export interface Poolable {
  /**
   * Restores the state after instantiation. Throws an Error if the instance is not idle, or shares its objects with
   * another one.
   */
  reset(): void;
  /** Closes the instance. */
  close(): void;
}

/** A pool of reusable instances of one module, created by `Module.pool`. */
export class InstancePool<Instance extends Poolable> {
  readonly #make: () => Instance;
  readonly #size: number;
  readonly #idle: Instance[] = [];
  readonly #taken: Set<Instance> = new Set();
  #closed = false;

  /** Creates a pool that holds at most `size` idle instances. */
  constructor(make: () => Instance, size: number) {
    this.#make = make;
    this.#size = wholeNumber(size, "The size of a pool");
  }

  /** The number of idle instances in the pool. */
  get idle(): number {
    return this.#idle.length;
  }

  /** The number of instances in use. */
  get taken(): number {
    return this.#taken.size;
  }

  /**
   * Returns an instance in its state after instantiation: an idle one, or a new one. Throws the errors of
   * instantiation, and an Error if the pool is closed.
   */
  take(): Instance {
    if (this.#closed) throw new Error("The pool is closed");
    const instance = this.#idle.pop() ?? this.#make();
    this.#taken.add(instance);
    return instance;
  }

  /**
   * Returns an instance to the pool: it is reset, or closed if the pool is full or the instance shares objects with
   * another one. Throws TypeError if the instance was not taken from this pool. If it cannot be reset because it is in
   * use or closed, closes it and throws the reason.
   */
  put(instance: Instance): void {
    if (!this.#taken.delete(instance)) throw new TypeError("The instance was not taken from this pool");
    try {
      if (this.#closed || this.#idle.length >= this.#size) return instance.close();
      instance.reset();
      this.#idle.push(instance);
    } catch (error) {
      instance.close();
      if (!(error instanceof SharedObjectsError)) throw error;
    }
  }

  /** Closes the idle instances, and from now on every instance that is returned. */
  close(): void {
    this.#closed = true;
    for (const instance of this.#idle.splice(0)) instance.close();
  }
}
