/**
 * How many realms use a code image. One realm alone needs no count; from the first `share` on there is a shared word, which starts with the
 * one reference of the realm that placed the image. Invariant: 0 is final.
 */
export class ImageReferences {
  count: Int32Array<SharedArrayBuffer> | undefined;
  /** Was the image placed by this realm? */
  readonly own: boolean;

  constructor(own: boolean) {
    this.own = own;
  }

  /** Takes a reference to an image of another realm. Throws an Error when the last one was given back. */
  static hold(buffer: SharedArrayBuffer): ImageReferences {
    const references = new ImageReferences(false);
    const count = references.count = new Int32Array(buffer);
    for (let n = Atomics.load(count, 0);;) {
      if (n <= 0) throw new Error("The shared module is gone: keep it shared until others have it");
      const seen = Atomics.compareExchange(count, 0, n, n + 1);
      if (seen === n) return references;
      n = seen;
    }
  }

  /** The count, made when there is none. */
  share(): SharedArrayBuffer {
    if (this.count === undefined) {
      this.count = new Int32Array(new SharedArrayBuffer(4));
      this.count[0] = 1;
    }
    return this.count.buffer;
  }

  /** Gives the realm's reference back; was it the last? */
  drop(): boolean {
    return this.count === undefined || Atomics.sub(this.count, 0, 1) === 1;
  }
}
