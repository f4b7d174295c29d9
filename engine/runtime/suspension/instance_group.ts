/**
 * Groups of instances that can reach each other's state without JavaScript in between: through imported functions,
 * memories, tables and mutable globals. A preempted call was stopped between two arbitrary instructions, so no other
 * code of its group may run until it resumes. Calls suspended in a host function do not block the group, because the
 * guest expects calls at that point.
 *
 * Groups form a union-find forest. An instance without imports gets a group only on demand. Functions that are passed
 * as values do not join groups.
 */

/** A preempted call; only its identity matters. */
type Preempted = object;

export class InstanceGroup {
  #parent: InstanceGroup | undefined;
  #preempted: Preempted | undefined;
  #waiting: (() => void)[] = [];

  /** The representative of this group. */
  get root(): InstanceGroup {
    // deno-lint-ignore no-this-alias
    let group: InstanceGroup = this;
    while (group.#parent !== undefined) group = group.#parent;
    if (this !== group) this.#parent = group;
    return group;
  }

  /** The preempted call of this group. */
  get preempted(): Preempted | undefined {
    return this.root.#preempted;
  }

  /** Merges two groups, of which at most one may have a preempted call. */
  join(other: InstanceGroup): void {
    const [a, b] = [this.root, other.root];
    if (a === b) return;
    b.#parent = a;
    a.#preempted ??= b.#preempted;
    a.#waiting.push(...b.#waiting);
    b.#waiting = [];
  }

  /** Records that `call` is preempted. */
  preempt(call: Preempted): void {
    this.root.#preempted = call;
  }

  /** Records that `call` has resumed or ended. */
  unpreempt(call: Preempted): void {
    const { root } = this;
    if (root.#preempted === call) root.#preempted = undefined;
  }

  /** Runs `action` now, or once the group's preempted call has resumed or ended. */
  whenFree(action: () => void): void {
    const { root } = this;
    if (root.#preempted === undefined && root.#waiting.length === 0) action();
    else root.#waiting.push(action);
  }

  /**
   * Runs waiting actions in order until one of them is preempted. Throws the first error of an action, which a listener
   * of its call has thrown, after the others.
   */
  drain(): void {
    let failure: { readonly error: unknown } | undefined;
    for (;;) {
      const { root } = this;
      const next = root.#preempted === undefined ? root.#waiting.shift() : undefined;
      if (next === undefined) break;
      try {
        next();
      } catch (error) {
        failure ??= { error };
      }
    }
    if (failure !== undefined) throw failure.error;
  }
}
