/**
 * Memory for VM contexts: slabs that are cut into blocks of power-of-two sizes, each with a free list, so that tens of
 * thousands of instances cost neither a mapping nor a view each.
 */
import { type Host, PROT } from "../../host/host.ts";
import { NativeRegion } from "./native_region.ts";

const SLAB_BYTES = 1 << 20;
const SMALLEST = 64;

/** A block: `region` and where it starts in it. */
export interface ContextBlock {
  region: NativeRegion;
  offset: number;
  address: number;
  /** Usable bytes. */
  size: number;
}

export class ContextArena {
  readonly #host: Host;
  readonly #free = new Map<number, ContextBlock[]>();
  #slab: NativeRegion | undefined;
  #used = 0;
  #later: ContextBlock[] | undefined;

  constructor(host: Host) {
    this.#host = host;
  }

  /** A zeroed block of at least `bytes`. */
  allocate(bytes: number): ContextBlock {
    let size = SMALLEST;
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

  /** Keeps blocks that are released from now on as they are: registers of a stopped call may hold their addresses. */
  hold(): void {
    this.#later = [];
  }

  letGo(): void {
    const blocks = this.#later!;
    this.#later = undefined;
    for (const block of blocks) this.release(block);
  }

  /** Takes a block back; nothing may point into it any more. */
  release(block: ContextBlock): void {
    if (this.#later !== undefined) {
      this.#later.push(block);
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
