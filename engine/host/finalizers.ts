/**
 * Callbacks for objects that JavaScript has collected, and weak references to such objects. In: an object, and a value
 * for the callback, which must not refer to the object. Out: the callback's call, once.
 *
 * A FinalizationRegistry calls back when the event loop gets a turn, and a WeakRef keeps its object alive until the
 * current job ends. A synchronous program that makes and drops instances would therefore hold the memory of all of
 * them. As soon as there are a few objects, this file uses native references (systems/native_references.ts) instead,
 * and `finalizeCollected` looks for those that are gone. Where the host has none, everything waits for a turn.
 *
 * Invariant: a callback is called between jobs, or by `finalizeCollected` while no compiled code of the realm is
 * running or parked. Objects that are only reachable through native memory must not be registered: JavaScript's
 * collector does not see them.
 */

/** A weak reference. */
export interface Weak<T extends object> {
  /** The object; undefined once it is collected, which may happen between two calls of one job. */
  deref(): T | undefined;
}

/** The functions for weak references. A reference is a number other than 0. */
export interface NativeReferences {
  /** Makes a reference to an object or a function; 0 if the runtime has no memory for it. */
  make(object: object): number;
  /** The object; nothing (undefined or null) once it is collected. */
  get(reference: number): object | null | undefined;
  /** Frees a reference, which must not be used afterwards. */
  remove(reference: number): void;
  /**
   * Tells JavaScript's collector that memory outside of its heap has grown by `bytes`, or shrunk; it may collect now.
   */
  adjust(bytes: number): void;
}

/** The number of live objects from which native references pay for loading their code (a millisecond). */
const MIN_NATIVE = 32;
/** The minimum number of new objects, and of new bytes outside of the heap, between two searches. */
const MIN_NEW = 16;
const MIN_NEW_BYTES = 1 << 25;

/** The state of this realm. */
const REALM: {
  /** Undefined until they are needed, null where there are none. */
  native: NativeReferences | null | undefined;
  /** The number of registered objects. */
  live: number;
  /** Bytes of memories outside of the heap, and those that the collector has been told. */
  bytes: number;
  reported: number;
  /** Objects and bytes since the last search. */
  added: number;
  addedBytes: number;
  /** Opens the native references. */
  open: () => NativeReferences | undefined;
  /** Whether compiled code is running or parked. */
  isBusy: () => boolean;
} = {
  native: undefined,
  live: 0,
  bytes: 0,
  reported: 0,
  added: 0,
  addedBytes: 0,
  open: () => undefined,
  isBusy: () => false,
};

/** The registrations with native references. */
const SEARCHED = new Set<Registration<object>>();

/** Sets the function that opens the native references of this realm's host. */
export function provideReferences(open: () => NativeReferences | undefined): void {
  REALM.open = open;
}

/** Sets the function that tells whether compiled code of this realm is running or parked. */
export function setBusy(isBusy: () => boolean): void {
  REALM.isBusy = isBusy;
}

/** A registered object. */
export class Registration<T extends object> implements Weak<T> {
  readonly #callback: (held: unknown) => void;
  readonly #held: unknown;
  #native = 0;
  #weak: WeakRef<T> | undefined;
  #isPending = true;

  /** `deref` requires `isReferenced`. `held` must not refer to the object. */
  constructor(object: T, isReferenced: boolean, callback: (held: unknown) => void, held: unknown) {
    this.#callback = callback;
    this.#held = held;
    REALM.live++;
    REALM.added++;
    const native = REALM.live < MIN_NATIVE ? REALM.native : openNative();
    if (native) this.#native = native.make(object);
    if (this.#native !== 0) SEARCHED.add(this as Registration<object>);
    else if (isReferenced) this.#weak = new WeakRef(object);
    GONE.register(object, this as Registration<object>, this);
  }

  deref(): T | undefined {
    if (this.#native !== 0) return REALM.native!.get(this.#native) as T ?? undefined;
    return this.#weak?.deref();
  }

  /** Whether the object has a native reference and is gone. */
  get isFound(): boolean {
    return this.#native !== 0 && this.deref() === undefined;
  }

  /** Forgets the object: the callback will not be called. */
  cancel(): void {
    if (!this.#isPending) return;
    this.#isPending = false;
    REALM.live--;
    GONE.unregister(this);
    this.#weak = undefined;
    if (this.#native === 0) return;
    SEARCHED.delete(this as Registration<object>);
    REALM.native!.remove(this.#native);
    this.#native = 0;
  }

  /** Calls the callback, unless it has been called. */
  finalize(): void {
    if (!this.#isPending) return;
    this.cancel();
    this.#callback(this.#held);
  }
}

const GONE = new FinalizationRegistry<Registration<object>>((registration) => registration.finalize());

function openNative(): NativeReferences | null {
  return REALM.native ??= REALM.open() ?? null;
}

/** Calls a function with a value after the object with which the value was registered is collected. */
export class Finalizers<Held> {
  readonly #callback: (held: unknown) => void;

  constructor(callback: (held: Held) => void) {
    this.#callback = callback as (held: unknown) => void;
  }

  /** Registers `object`. */
  register(object: object, held: Held): Registration<object> {
    return new Registration(object, false, this.#callback, held);
  }

  /** Registers `object`; the result is a weak reference to it. */
  track<T extends object>(object: T, held: Held): Registration<T> {
    return new Registration(object, true, this.#callback, held);
  }
}

const REFERENCES = new WeakMap<object, Weak<object>>();

/** A weak reference to `object`; the same one each time. */
export function weakTo<T extends object>(object: T): Weak<T> {
  let known = REFERENCES.get(object);
  if (known === undefined) REFERENCES.set(object, known = new Registration(object, true, () => {}, undefined));
  return known as Weak<T>;
}

/** Records that memory outside of the heap has grown by `bytes`, or shrunk: the collector counts it as garbage, too. */
export function countBytes(bytes: number): void {
  REALM.bytes += bytes;
  if (bytes > 0) REALM.addedBytes += bytes;
  if (!REALM.native) return;
  const change = Math.max(bytes, -REALM.reported);
  REALM.reported += change;
  if (change !== 0) REALM.native.adjust(change);
}

/**
 * Calls back for the objects that JavaScript has collected, if enough has been added since the last search that it
 * costs little in comparison, or if it `isUrgent`. Returns false where it cannot search: while compiled code is running
 * or parked, and without native references.
 */
export function finalizeCollected(isUrgent = false): boolean {
  if (!REALM.native || REALM.isBusy()) return false;
  const isDue = REALM.added >= Math.max(MIN_NEW, REALM.live / 4) ||
    REALM.addedBytes >= Math.max(MIN_NEW_BYTES, REALM.bytes / 4);
  if (!isDue && !isUrgent) return true;
  REALM.added = 0;
  REALM.addedBytes = 0;
  for (const registration of SEARCHED) if (registration.isFound) registration.finalize();
  return true;
}

/** The bytes of memories outside of the heap. */
export function countedBytes(): number {
  return REALM.bytes;
}
