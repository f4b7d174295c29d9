/**
 * Objects of the collected heap as JavaScript sees them: one frozen, empty object without prototype per address while anyone in
 * JavaScript has it (JavaScript API, "Exported GC Objects"). Such an object is a root: what it stands for lives at least as long, and
 * is let go when the JavaScript engine reports that the object is gone.
 *
 * Invariant: an address stays a root until that report, which never comes while JavaScript is on the stack; so the word of an
 * argument or a result stays good on its way between JavaScript and the slots.
 */

export class HeapReferences {
  readonly #byAddress = new Map<number, WeakRef<object>>();
  readonly #holders = new WeakMap<object, number>();
  readonly #gone: FinalizationRegistry<number>;

  constructor() {
    this.#gone = new FinalizationRegistry((address) => {
      // It may have another by now.
      if (this.#byAddress.get(address)?.deref() === undefined) this.#byAddress.delete(address);
    });
  }

  /** The object for the reference `address`. */
  objectAt(address: number): object {
    const known = this.#byAddress.get(address)?.deref();
    if (known !== undefined) return known;
    const made = Object.freeze(Object.create(null) as object);
    this.#byAddress.set(address, new WeakRef(made));
    this.#holders.set(made, address);
    this.#gone.register(made, address);
    return made;
  }

  /** The reference that `value` stands for, if it is such an object. */
  addressOf(value: unknown): number | undefined {
    return typeof value === "object" && value !== null ? this.#holders.get(value) : undefined;
  }

  /** Addresses that JavaScript holds. */
  addresses(): Iterable<number> {
    return this.#byAddress.keys();
  }

  /** How many there are. */
  get size(): number {
    return this.#byAddress.size;
  }
}
