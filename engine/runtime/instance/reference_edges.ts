/**
 * Edges of JavaScript's object graph that mirror references in memory outside of it: the holder of a reference to a
 * function (an instance, table, global or tag) keeps the function's instance alive, and that of a reference to a value
 * of the host or to an exception keeps the value alive. In: the references to functions that JavaScript gives to a
 * holder, and all references of all holders at each sweep. Out: strong references from the holders' objects, so
 * JavaScript's collector finds cycles by itself.
 *
 * Invariant: as long as a holder, or code that it can call, can read a reference to a function, a path of strong
 * references leads from the holder to the function's instance. If the function itself receives or returns references,
 * a path leads back as well, because a call may leave a reference to any function of one side with the other. Code
 * passes references on only along such paths. Edges are therefore removed only by a sweep that finds all references,
 * and not while calls are suspended or objects may contain references to functions. The same paths lead to values that
 * the tables of handles hold weakly. All values are strong roots as soon as there are objects.
 */
import type { Sharer } from "../../gc/references.ts";
import { type Weak, weakTo } from "../../host/finalizers.ts";
import { canonicalType } from "../../wasm/subtype.ts";
import { isRef } from "../../wasm/types.ts";

/** The minimum number of new edges before a sweep is due. */
const MIN_EDGES = 256;

export class ReferenceEdges {
  /** The holders that have edges. */
  #holders: Weak<Sharer>[] = [];
  /** The edges before the sweep in progress: what they kept alive must be alive when the sweep finds a reference. */
  #previous: (Set<object> | undefined)[] = [];
  #count = 0;
  #limit = MIN_EDGES;
  /** By canonical id of a function type: whether a call passes references. */
  readonly #passing: (boolean | undefined)[] = [];

  /** Whether the number of edges has doubled since the last sweep. */
  get full(): boolean {
    return this.#count >= this.#limit;
  }

  /** Records that `holder` has a reference to a function of `owner` whose canonical type id is `typeId`. */
  connect(holder: Sharer, owner: Sharer, typeId: number): void {
    if (holder === owner) return;
    if (!holder.keepsAlive(owner)) this.#add(holder, owner);
    if (this.#passesReferences(typeId) && !owner.keepsAlive(holder)) this.#add(owner, holder);
  }

  #add(holder: Sharer, target: Sharer): void {
    this.#enter(holder);
    holder.targets ??= new Set();
    if (holder.targets.has(target)) return;
    holder.targets.add(target);
    this.#count++;
  }

  /** Records that `holder` has a reference to `value`, which nothing else may keep alive. */
  hold(holder: Sharer, value: object): void {
    this.#enter(holder);
    holder.values ??= new Set();
    holder.values.add(value);
  }

  #enter(holder: Sharer): void {
    if (holder.targets === undefined && holder.values === undefined) {
      this.#holders.push(weakTo(holder));
    }
  }

  /** Removes the edges to values, which must be strong roots. */
  releaseValues(): void {
    for (const ref of this.#holders) {
      const holder = ref.deref();
      if (holder !== undefined) holder.values = undefined;
    }
    this.#holders = this.#holders.filter((ref) => ref.deref()?.targets !== undefined);
  }

  /** Removes all edges, before a sweep adds those of the references that it finds. */
  clear(): void {
    for (const ref of this.#holders) {
      const holder = ref.deref();
      if (holder === undefined) continue;
      this.#previous.push(holder.targets, holder.values);
      holder.targets = undefined;
      holder.values = undefined;
    }
    this.#holders = [];
    this.#count = 0;
  }

  /** Called at the end of a sweep. */
  settle(): void {
    this.#previous = [];
    this.#limit = Math.max(MIN_EDGES, this.#count * 2);
  }

  #passesReferences(typeId: number): boolean {
    return this.#passing[typeId] ??= passesReferences(typeId);
  }
}

/** A table of handles. */
interface Handles {
  owns(word: number): boolean;
  weaken(word: number): object | undefined;
}

/** The references to handles that a sweep finds, with their holders. */
export class FoundReferences {
  readonly #holders: Sharer[] = [];
  readonly #words: number[] = [];
  /** References that no object of JavaScript mirrors. */
  readonly #others = new Set<number>();

  /** Adds a reference; the number of a handle, or any other word. */
  add(word: number, holder: Sharer | undefined): void {
    if (holder === undefined) this.#others.add(word);
    else {
      this.#holders.push(holder);
      this.#words.push(word);
    }
  }

  /** Leaves it to the holders to keep the values of `handles` alive to which only they refer. */
  leaveToHolders(handles: Handles, edges: ReferenceEdges): void {
    this.#words.forEach((word, k) => {
      if (!handles.owns(word) || this.#others.has(word)) return;
      const value = handles.weaken(word);
      if (value !== undefined) edges.hold(this.#holders[k], value);
    });
  }
}

function passesReferences(typeId: number): boolean {
  const { composite } = canonicalType(typeId);
  return composite.kind === "func" && [...composite.params, ...composite.results].some(isRef);
}
