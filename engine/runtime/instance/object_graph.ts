/**
 * The contents of objects, to be restored later. In: references. Out: the objects of the collected heap that are
 * reachable from them, through payloads of exceptions as well, and a copy of their contents. Objects keep their
 * identity, type and length, so restoring the contents needs no memory.
 *
 * Invariant: the references of a copy are roots as long as the copy is used (`visit`). No code runs between the
 * beginning and the end of a copy or a restoration.
 */
import { OBJECT, REF_TAG, REF_TAG_MASK } from "../../abi/gc_layout.ts";
import type { Exception } from "../exceptions/exception.ts";
import { objectShape } from "../boundary/heap_objects.ts";

/** Size of a window, the part of the heap that one view covers. */
const WINDOW_BYTES = 1 << 20;
/** The windows that a store keeps; the collector of JavaScript counts the bytes of each as used. */
const KEPT_WINDOWS = 16;

/** The parts of the store that copies use. */
interface ObjectStore {
  readonly heap: { contains(address: number): boolean };
  readonly thread: { readonly host: { view(address: number, bytes: number): ArrayBuffer } };
  exceptionOf(word: number): Exception | undefined;
}

/**
 * Views of the heap, one per window. They are cached, because each new view counts as external memory and makes the
 * host's collector run earlier: with a reset for each request, that was the greatest cost of a server. A view aliases
 * the memory, so it never holds stale bytes; only bytes of live objects are accessed through it.
 */
class Windows {
  static readonly #ofStores = new WeakMap<ObjectStore, Windows>();
  readonly #view: (address: number, bytes: number) => ArrayBuffer;
  readonly #windows = new Map<number, Uint8Array>();

  /** The windows of a store. */
  static of(store: ObjectStore): Windows {
    let windows = Windows.#ofStores.get(store);
    if (windows === undefined) Windows.#ofStores.set(store, windows = new Windows(store));
    return windows;
  }

  private constructor({ thread: { host } }: ObjectStore) {
    this.#view = (address, bytes) => host.view(address, bytes);
  }

  /** The bytes of an object; `length` bytes from `address` on. */
  bytes(address: number, length: number): Uint8Array {
    const at = address % WINDOW_BYTES;
    if (at + length > WINDOW_BYTES) return new Uint8Array(this.#view(address, length));
    const start = address - at;
    let window = this.#windows.get(start);
    if (window === undefined) {
      if (this.#windows.size >= KEPT_WINDOWS) this.#windows.clear();
      this.#windows.set(start, window = new Uint8Array(this.#view(start, WINDOW_BYTES)));
    }
    return window.subarray(at, at + length);
  }
}

export class ObjectGraph {
  readonly #addresses: Float64Array;
  /** Sizes in bytes without the headers. */
  readonly #sizes: Uint32Array;
  readonly #contents: Uint8Array;
  /** The references to handles and exceptions in the contents. */
  readonly #others: readonly number[];

  private constructor(store: ObjectStore, sizes: ReadonlyMap<number, number>, others: readonly number[]) {
    this.#addresses = Float64Array.from(sizes.keys());
    this.#sizes = Uint32Array.from(sizes.values());
    this.#contents = new Uint8Array(this.#sizes.reduce((sum, size) => sum + size, 0));
    this.#others = others;
    this.#each(store, (object, copy) => copy.set(object));
  }

  /** Copies the objects that are reachable from the references that `roots` visits; undefined if there are none. */
  static copy(store: ObjectStore, roots: (visit: (word: number) => void) => void): ObjectGraph | undefined {
    const windows = Windows.of(store);
    const sizes = new Map<number, number>();
    const others = new Set<number>();
    const pending: number[] = [];
    const visit = (word: number) => {
      if ((word & REF_TAG_MASK) === 0) {
        if (sizes.has(word) || !store.heap.contains(word)) return;
        sizes.set(word, 0);
        pending.push(word);
      } else if ((word & REF_TAG.I31) === 0 && !others.has(word)) {
        others.add(word);
        if ((word & REF_TAG_MASK) === REF_TAG.EXCEPTION) store.exceptionOf(word)?.visitReferences(visit);
      }
    };
    roots(visit);
    for (let address = pending.pop(); address !== undefined; address = pending.pop()) {
      const header = words(windows.bytes(address, OBJECT.FIELDS));
      const { bytes, references } = objectShape(header[OBJECT.TYPE_ID >> 2], header[OBJECT.LENGTH >> 2]);
      sizes.set(address, bytes - OBJECT.FIELDS);
      if (references?.length === 0) continue;
      const fields = words(windows.bytes(address, bytes));
      const follow = (at: number) => visit(fields[at >> 2] + fields[(at >> 2) + 1] * 0x1_0000_0000);
      if (references !== undefined) references.forEach(follow);
      else for (let at: number = OBJECT.FIELDS; at < bytes; at += 8) follow(at);
    }
    return sizes.size === 0 && others.size === 0 ? undefined : new ObjectGraph(store, sizes, [...others]);
  }

  /** Whether it has objects, not only references to handles. */
  get hasObjects(): boolean {
    return this.#addresses.length > 0;
  }

  /** Writes the copied contents back. */
  restore(store: ObjectStore): void {
    this.#each(store, (object, copy) => object.set(copy));
  }

  /** Visits the references to all its objects, and those in the copied contents. */
  visit(visit: (word: number) => void): void {
    for (const address of this.#addresses) visit(address);
    this.#others.forEach(visit);
  }

  #each(store: ObjectStore, use: (object: Uint8Array, copy: Uint8Array) => void): void {
    const windows = Windows.of(store);
    let at = 0;
    this.#addresses.forEach((address, k) => {
      const size = this.#sizes[k];
      use(windows.bytes(address + OBJECT.FIELDS, size), this.#contents.subarray(at, at + size));
      at += size;
    });
  }
}

/** The words of an object, whose address is a multiple of 8. */
function words({ buffer, byteOffset, length }: Uint8Array): Uint32Array {
  return new Uint32Array(buffer, byteOffset, length >> 2);
}
