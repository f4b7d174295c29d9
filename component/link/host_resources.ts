/**
 * Resources in JavaScript. A resource of the host is any object; a guest knows it by a number. A resource of a
 * component is an object of a class made for its type, whose `Symbol.dispose` destroys it. Invariant: an object that
 * has been passed on as owned, or disposed of, cannot be used again.
 */
import { trap } from "../abi/traps.ts";
import { RuntimeResource } from "../async/entries.ts";
import { type HostQuota, type HostShare, sharesOf } from "../async/host_quota.ts";

/** The bytes that an object of the host counts, without those in its shares. */
const OBJECT_BYTES = 256;

/** The current quota of a store. */
interface QuotaHolder {
  readonly quota: HostQuota;
}

/** An object that a guest has a handle of, and what it counts against. */
interface HostObject {
  readonly object: object;
  readonly quota: HostQuota;
  readonly shares: readonly HostShare[];
}

/**
 * The objects of one resource type of the host, by the numbers that guests know. Each handle has a number of its own,
 * so an object can be given to guests several times. The numbers of handles that have ended are used again. They are
 * indices of an array, not keys of a Map (D144).
 */
class HostObjects {
  readonly #objects: (HostObject | undefined)[] = [undefined];
  readonly #free: number[] = [];
  readonly #store: QuotaHolder;

  /** The objects count against the quota of `store`. */
  constructor(store: QuotaHolder) {
    this.#store = store;
  }

  /** Traps if the object does not fit into the quota. */
  add(object: object): number {
    const { quota } = this.#store;
    quota.take(OBJECT_BYTES);
    const shares = sharesOf(object);
    for (const share of shares) share.hold(quota);
    const rep = this.#free.pop() ?? this.#objects.length;
    this.#objects[rep] = { object, quota, shares };
    return rep;
  }

  #at(rep: number): HostObject {
    const found = this.#objects[rep];
    if (found === undefined) trap(`unknown host object ${rep}`);
    return found;
  }

  get(rep: number): object {
    return this.#at(rep).object;
  }

  /** Ends the use of a number by guests. Returns its object. */
  take(rep: number): object {
    const { object, quota, shares } = this.#at(rep);
    this.#objects[rep] = undefined;
    this.#free.push(rep);
    quota.release(OBJECT_BYTES);
    for (const share of shares) share.leave(quota);
    return object;
  }
}

const HOST_OBJECTS = new WeakMap<RuntimeResource, HostObjects>();

/** The objects of a resource type of the host. */
function hostResource(resource: RuntimeResource): HostObjects {
  return HOST_OBJECTS.get(resource)!;
}

/** Makes a resource type of the host, whose objects are disposed of when a guest of `store` drops them. */
export function makeHostResource(name: string, store: QuotaHolder): RuntimeResource {
  const resource = new RuntimeResource(name, undefined);
  const objects = new HostObjects(store);
  HOST_OBJECTS.set(resource, objects);
  resource.destroy = (rep) => {
    const object = objects.take(rep) as { [Symbol.dispose]?: () => void };
    object[Symbol.dispose]?.();
  };
  return resource;
}

/** Ends a borrow of an object of the host. */
export function releaseBorrow(resource: RuntimeResource, rep: number): void {
  hostResource(resource).take(rep);
}

/** The representation of a guest's resource in its JavaScript object; undefined once it is gone. */
const REPS = new WeakMap<object, Representation>();

interface Representation {
  readonly resource: RuntimeResource;
  readonly rep: number;
  readonly owned: boolean;
  /** That of the store: a reset of the instance ends its resources. */
  readonly era: object | undefined;
}

/** True unless the instance that implements the resource has been reset or closed since. */
function isAlive({ resource, era }: Pick<Representation, "resource" | "era">): boolean {
  return era === resource.owner?.store.era;
}

/** Destroys resources whose objects were collected without having been disposed of. */
const ABANDONED = new FinalizationRegistry<Omit<Representation, "owned">>((representation) => {
  if (!isAlive(representation)) return;
  try {
    representation.resource.destroy?.(representation.rep, undefined);
  } catch {
    // The instance has trapped or is running: the resource ends with it.
  }
});

/** The class whose objects represent resources of a guest. */
export function resourceClass(resource: RuntimeResource): ResourceClass {
  return (resource.hostClass ??= makeClass(resource)) as ResourceClass;
}

export type ResourceClass = { new (...args: unknown[]): object; prototype: object } & Record<string, unknown>;

function makeClass(resource: RuntimeResource): ResourceClass {
  const name = resource.name;
  const made = class {
    constructor() {
      throw new TypeError(`The resource ${name} has no constructor`);
    }
    [Symbol.dispose](): void {
      const entry = REPS.get(this);
      if (entry === undefined) return;
      release(this);
      if (entry.owned && isAlive(entry)) resource.destroy?.(entry.rep, undefined);
    }
  };
  Object.defineProperty(made, "name", { value: name });
  return made as unknown as ResourceClass;
}

function release(object: object): void {
  REPS.delete(object);
  ABANDONED.unregister(object);
}

/** The object for a representation that a guest passes to JavaScript. */
export function objectOf(resource: RuntimeResource, rep: number, owned: boolean): object {
  if (resource.owner === undefined) {
    const objects = hostResource(resource);
    return owned ? objects.take(rep) : objects.get(rep);
  }
  return adopt(Object.create(resourceClass(resource).prototype as object) as object, resource, rep, owned);
}

/** Makes `object` represent a resource of a guest. */
function adopt(object: object, resource: RuntimeResource, rep: number, owned: boolean): object {
  const era = resource.owner?.store.era;
  REPS.set(object, { resource, rep, owned, era });
  if (owned) ABANDONED.register(object, { resource, rep, era }, object);
  return object;
}

/** The representation for an object that JavaScript passes to a guest. */
export function repOf(resource: RuntimeResource, value: unknown, owned: boolean): number {
  if (typeof value !== "object" || value === null) throw new TypeError(`Expected a resource ${resource.name}`);
  if (resource.owner === undefined) return hostResource(resource).add(value);
  const entry = REPS.get(value);
  if (entry === undefined || entry.resource !== resource || !isAlive(entry)) {
    throw new TypeError(`Expected a resource ${resource.name}; it may have been passed on or disposed of`);
  }
  if (!owned) return entry.rep;
  if (!entry.owned) throw new TypeError(`The borrowed resource ${resource.name} cannot be passed on as owned`);
  release(value);
  return entry.rep;
}

/** Undoes repOf: the object can be used as before. */
export function giveBack(resource: RuntimeResource, value: object, rep: number, owned: boolean): void {
  if (resource.owner === undefined) hostResource(resource).take(rep);
  else if (owned) adopt(value, resource, rep, true);
}

/** Takes the representation out of an object made by a constructor, for another object. */
export function moveRep(from: object, to: object): void {
  const entry = REPS.get(from)!;
  release(from);
  adopt(to, entry.resource, entry.rep, entry.owned);
}
