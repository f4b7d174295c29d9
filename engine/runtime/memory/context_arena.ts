/**
 * An allocator for VM contexts: slabs divided into blocks of power-of-two sizes with a free list each, so that tens of
 * thousands of instances need neither a mapping nor a view each. In: a size in bytes. Out: a zeroed block.
 */
import { type Host, PROT } from "../../host/host.ts";
import { NativeRegion } from "./native_region.ts";

const SLAB_BYTES = 1 << 20;
const MIN_BLOCK_BYTES = 64;

/** A block: the region that contains it, its offset in the region, and its address. */
export interface ContextBlock {
  region: NativeRegion;
  offset: number;
  address: number;
  /** Usable size in bytes. */
  size: number;
}

export class ContextArena {
  readonly #host: Host;
  readonly #free = new Map<number, ContextBlock[]>();
  #slab: NativeRegion | undefined;
  #used = 0;
  #deferred: ContextBlock[] | undefined;

  constructor(host: Host) {
    this.#host = host;
  }

  /** Allocates a zeroed block of at least `bytes`. */
  allocate(bytes: number): ContextBlock {
    let size = MIN_BLOCK_BYTES;
    while (size < bytes) size *= 2;
    const reused = this.#free.get(size)?.pop();
    if (reused !== undefined) {
      reused.region.u8.fill(0, reused.offset, reused.offset + size);
      return reused;
    }
    if (size > SLAB_BYTES / 4) return this.#cut(this.#newSlab(size), 0, size);
    if (this.#slab === undefined || this.#used + size > SLAB_BYTES) {
      this.#slab = this.#newSlab(SLAB_BYTES);
      this.#used = 0;
    }
    const block = this.#cut(this.#slab, this.#used, size);
    this.#used += size;
    return block;
  }

  /** Defers releases until `releaseDeferred`: registers of a preempted call may hold addresses of released blocks. */
  deferReleases(): void {
    this.#deferred = [];
  }

  /** Ends the deferral and frees the deferred blocks. */
  releaseDeferred(): void {
    const blocks = this.#deferred!;
    this.#deferred = undefined;
    for (const block of blocks) this.release(block);
  }

  /** Frees a block. Nothing may point into it, unless releases are deferred. */
  release(block: ContextBlock): void {
    if (this.#deferred !== undefined) {
      this.#deferred.push(block);
      return;
    }
    const list = this.#free.get(block.size);
    if (list === undefined) this.#free.set(block.size, [block]);
    else list.push(block);
  }

  #newSlab(size: number): NativeRegion {
    return new NativeRegion(this.#host, this.#host.reserve(size, PROT.READ | PROT.WRITE), size);
  }

  #cut(region: NativeRegion, offset: number, size: number): ContextBlock {
    return { region, offset, address: region.address + offset, size };
  }
}
