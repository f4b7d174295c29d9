/**
 * Pools of instances: taken, used by one, put back, reset, and taken again. In: how an instance is made. Invariant: what is in the
 * pool is as it was after instantiation, so nothing of one user reaches the next through what the instance defines.
 */
import { wholeNumber } from "../../base/arguments.ts";

/** What a pool needs of an instance. */
export interface Poolable {
  /** Makes it what it was after instantiation. Throws an Error when it is not at rest. */
  reset(): void;
  /** Ends it. */
  close(): void;
}

/** Instances of one module that are used again. Made by `Module.pool`. */
export class InstancePool<Instance extends Poolable> {
  readonly #make: () => Instance;
  readonly #size: number;
  readonly #idle: Instance[] = [];
  readonly #taken: Set<Instance> = new Set();
  #closed = false;

  /** A pool that keeps at most `size` instances that nobody uses. */
  constructor(make: () => Instance, size: number) {
    this.#make = make;
    this.#size = wholeNumber(size, "The size of a pool");
  }

  /** How many instances wait for use. */
  get idle(): number {
    return this.#idle.length;
  }

  /** How many instances are in use. */
  get taken(): number {
    return this.#taken.size;
  }

  /** An instance as it is after instantiation: one that was put back, or a new one. Throws what instantiation throws. */
  take(): Instance {
    if (this.#closed) throw new Error("The pool is closed");
    const instance = this.#idle.pop() ?? this.#make();
    this.#taken.add(instance);
    return instance;
  }

  /**
   * Takes an instance back that `take` gave: it is reset, or closed if there are enough. Throws TypeError for another; when the instance cannot be
   * reset (it is not at rest, or closed), closes it and throws why.
   */
  put(instance: Instance): void {
    if (!this.#taken.delete(instance)) throw new TypeError("The instance was not taken from this pool");
    try {
      if (this.#closed || this.#idle.length >= this.#size) return instance.close();
      instance.reset();
      this.#idle.push(instance);
    } catch (error) {
      instance.close();
      throw error;
    }
  }

  /** Closes the instances that wait, and from now on those that are put back. */
  close(): void {
    this.#closed = true;
    for (const instance of this.#idle.splice(0)) instance.close();
  }
}
