/**
 * Edges of JavaScript's object graph that mirror references in memory outside of it: the holder of a reference to a
 * function (an instance, table, global or tag) keeps the function's instance alive. In: the references that JavaScript
 * gives to a holder, and all references of all holders at each sweep. Out: strong references between the holders'
 * objects, so JavaScript's collector finds cycles by itself.
 *
 * Invariant: as long as a holder, or code that it can call, can read a reference to a function, a path of strong
 * references leads from the holder to the function's instance. If the function itself receives or returns references,
 * a path leads back as well, because a call may leave a reference to any function of one side with the other. Code
 * passes references on only along such paths. Edges are therefore removed only by a sweep that finds all references,
 * and not while calls are suspended or objects may contain references to functions.
 */
import type { Sharer } from "../../gc/references.ts";
import { canonicalType } from "../../wasm/subtype.ts";
import { isRef } from "../../wasm/types.ts";

/** The minimum number of new edges before a sweep is due. */
const MIN_EDGES = 256;

export class ReferenceEdges {
  /** The holders that have edges. */
  #holders: WeakRef<Sharer>[] = [];
  /** The edges before the sweep in progress: what they kept alive must be alive when the sweep finds a reference. */
  #previous: (Set<Sharer> | undefined)[] = [];
  #count = 0;
  #limit = MIN_EDGES;
  /** By canonical id of a function type: whether a call passes references. */
  readonly #passing: (boolean | undefined)[] = [];

  /** True if the number of edges has doubled since the last sweep. */
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
    if (holder.targets === undefined) {
      holder.targets = new Set();
      this.#holders.push(new WeakRef(holder));
    } else if (holder.targets.has(target)) return;
    holder.targets.add(target);
    this.#count++;
  }

  /** Removes all edges, before a sweep adds those of the references that it finds. */
  clear(): void {
    for (const ref of this.#holders) {
      const holder = ref.deref();
      if (holder === undefined) continue;
      this.#previous.push(holder.targets);
      holder.targets = undefined;
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

function passesReferences(typeId: number): boolean {
  const { composite } = canonicalType(typeId);
  return composite.kind === "func" && [...composite.params, ...composite.results].some(isRef);
}
