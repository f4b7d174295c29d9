/**
 * Objects of the collected heap as JavaScript sees them: one frozen, empty object per address, without a prototype or
 * with that which its descriptor gives, as long as JavaScript references it (JavaScript API, "Exported GC Objects").
 * Such an object is a root: its heap object lives at least as long, and is released when the JavaScript engine reports
 * that the wrapper is gone.
 *
 * Invariant: an address stays a root until that report, which never comes while JavaScript is on the stack; so the word
 * of an argument or a result stays valid between JavaScript and the slots.
 *
 * Objects hold functions, whose instance must live as long. Instances that import from each other keep each other alive
 * anyway (runtime/); instances that share an object through JavaScript do so from then on, which this file tracks by
 * the sharer that gave an object away and the one that received it.
 */

/**
 * An instance, or a group of connected instances: it must live as long as the functions in the objects that it can
 * reach.
 */
export interface Sharer {
  /** Keeps `other` alive as long as itself. */
  keepAlive(other: Sharer): void;
  /** Whether it keeps `other` alive already, as an instance does itself and a table the instances that use it. */
  keepsAlive(other: Sharer): boolean;
  /** Others that it keeps alive until a sweep finds no reference to them (runtime/instance/reference_edges.ts). */
  targets: Set<Sharer> | undefined;
  /** Values that its references lead to and that a sweep has left to it to keep alive. */
  values: Set<object> | undefined;
}

interface Holder {
  readonly address: number;
  /** The sharers that hold the object: they keep each other alive, and this list keeps them. */
  readonly sharers: Sharer[];
}

/** The target of all objects, which has no properties. */
const EMPTY: object = Object.freeze(Object.create(null) as object);

function refuse(): never {
  throw new TypeError("WebAssembly objects are opaque");
}

/** Changes of a wrapper throw even in sloppy code, as in V8; those of a frozen object would be ignored there. */
const LOCKED: ProxyHandler<object> = {
  set: refuse,
  defineProperty: refuse,
  deleteProperty: refuse,
  preventExtensions: refuse,
  setPrototypeOf: () => false,
};

/** The same for a wrapper with a prototype, which may have setters. */
const LOCKED_BUT_SETTERS: ProxyHandler<object> = {
  ...LOCKED,
  set: (target, key, value, receiver) => Reflect.set(target, key, value, receiver) || refuse(),
};

export class HeapReferences {
  readonly #byAddress = new Map<number, WeakRef<object>>();
  readonly #holders = new WeakMap<object, Holder>();
  readonly #gone: FinalizationRegistry<number>;

  constructor() {
    this.#gone = new FinalizationRegistry((address) => {
      // The address may have a new wrapper by now.
      if (this.#byAddress.get(address)?.deref() === undefined) this.#byAddress.delete(address);
    });
  }

  /** Whether there is an object for `address`. */
  has(address: number): boolean {
    return this.#byAddress.get(address)?.deref() !== undefined;
  }

  /** Returns the object of the reference `address`, which `sharer` passed on; a new object has the given prototype. */
  objectAt(address: number, sharer?: Sharer, prototype: object | null = null): object {
    const known = this.#byAddress.get(address)?.deref();
    if (known !== undefined) {
      if (sharer !== undefined) this.lend(known, sharer);
      return known;
    }
    const made = prototype === null
      ? new Proxy(EMPTY, LOCKED)
      : new Proxy(Object.freeze(Object.create(prototype) as object), LOCKED_BUT_SETTERS);
    this.#byAddress.set(address, new WeakRef(made));
    this.#holders.set(made, { address, sharers: sharer === undefined ? [] : [sharer] });
    this.#gone.register(made, address);
    return made;
  }

  /** The reference of `value`, if it is such an object. */
  addressOf(value: unknown): number | undefined {
    return typeof value === "object" && value !== null ? this.#holders.get(value)?.address : undefined;
  }

  /** Records that `sharer` can reach the heap object of `object` from now on. */
  lend(object: object, sharer: Sharer): void {
    const { sharers } = this.#holders.get(object)!;
    if (sharers.includes(sharer)) return;
    const other = sharers[0];
    if (other !== undefined) {
      other.keepAlive(sharer);
      sharer.keepAlive(other);
    }
    sharers.push(sharer);
  }

  /** Addresses that JavaScript holds. */
  addresses(): Iterable<number> {
    return this.#byAddress.keys();
  }

  /** The number of objects. */
  get size(): number {
    return this.#byAddress.size;
  }
}
