/**
 * Groups of instances that can reach each other's state without JavaScript in between: by imported functions, memories, tables and mutable
 * globals. A call that is between two slices was stopped in the middle of anything, so nothing else of its group may run until it
 * goes on; calls that wait in a host function are no obstacle, since the guest expects to be called then.
 *
 * A union-find forest: instances that import nothing get a group only when one is asked for. (Functions that travel as values are
 * not looked into.)
 */

/** A call between two slices: only its identity matters. */
export type Preempted = object;

export class InstanceGroup {
  #parent: InstanceGroup | undefined;
  #preempted: Preempted | undefined;
  #waiting: (() => void)[] = [];

  /** The group that stands for this one. */
  get root(): InstanceGroup {
    // deno-lint-ignore no-this-alias
    let group: InstanceGroup = this;
    while (group.#parent !== undefined) group = group.#parent;
    if (this !== group) this.#parent = group;
    return group;
  }

  /** The call of this group that is between two slices. */
  get preempted(): Preempted | undefined {
    return this.root.#preempted;
  }

  /** Makes two groups one. At most one of them may have a call between slices. */
  join(other: InstanceGroup): void {
    const [a, b] = [this.root, other.root];
    if (a === b) return;
    b.#parent = a;
    a.#preempted ??= b.#preempted;
    a.#waiting.push(...b.#waiting);
    b.#waiting = [];
  }

  /** `call` has stopped between two instructions. */
  preempt(call: Preempted): void {
    this.root.#preempted = call;
  }

  /** `call` goes on, or has ended. */
  unpreempt(call: Preempted): void {
    const { root } = this;
    if (root.#preempted === call) root.#preempted = undefined;
  }

  /** Runs `action` now, or when the call that is between slices no longer is. */
  whenFree(action: () => void): void {
    const { root } = this;
    if (root.#preempted === undefined && root.#waiting.length === 0) action();
    else root.#waiting.push(action);
  }

  /** Lets those go on that wait, until one of them is between slices itself. */
  drain(): void {
    for (;;) {
      const { root } = this;
      if (root.#preempted !== undefined) return;
      const next = root.#waiting.shift();
      if (next === undefined) return;
      next();
    }
  }
}
