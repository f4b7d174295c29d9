/**
 * The reference count of a code image across realms. A single realm needs no count; the first `share` creates a shared
 * word, which starts with the one reference of the realm that placed the image. Invariant: a count of 0 is final.
 */
export class ImageReferences {
  count: Int32Array<SharedArrayBuffer> | undefined;
  /** Whether this realm placed the image. */
  readonly own: boolean;

  constructor(own: boolean) {
    this.own = own;
  }

  /** Takes a reference to an image of another realm. Throws an Error if the last reference has been released. */
  static hold(buffer: SharedArrayBuffer): ImageReferences {
    const references = new ImageReferences(false);
    const count = references.count = new Int32Array(buffer);
    for (let n = Atomics.load(count, 0);;) {
      if (n <= 0) {
        throw new Error("The shared module has been released: keep it shared until other realms have adopted it");
      }
      const seen = Atomics.compareExchange(count, 0, n, n + 1);
      if (seen === n) return references;
      n = seen;
    }
  }

  /** Whether other realms have received the image. */
  get isShared(): boolean {
    return this.count !== undefined || !this.own;
  }

  /** Returns the buffer of the count, created on demand. */
  share(): SharedArrayBuffer {
    if (this.count === undefined) {
      this.count = new Int32Array(new SharedArrayBuffer(4));
      this.count[0] = 1;
    }
    return this.count.buffer;
  }

  /** Releases this realm's reference. Returns whether it was the last one. */
  drop(): boolean {
    return this.count === undefined || Atomics.sub(this.count, 0, 1) === 1;
  }
}
