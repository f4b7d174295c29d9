/**
 * The hash table for native unwinding (context_layout.ts: UNWIND_ENTRY): the call sites, by return address, of images
 * in which exceptions are thrown frequently. In: the images that the runtime has unwound through. Out: the table's
 * address in the thread state.
 *
 * Invariant: every entry belongs to a live image. When an image is released the table is dropped, and rebuilt on
 * demand. At least half of the entries are free: the table doubles, so that many images cost linear time.
 */
import { THREAD, UNWIND_ENTRY, UNWIND_HASH } from "../../abi/context_layout.ts";
import { type Host, PROT } from "../../host/host.ts";
import type { CodeImage } from "../../link/image.ts";
import { NativeRegion } from "../memory/native_region.ts";

/** An image enters the table after the runtime has unwound through it once per this many of its call sites. */
const SITES_PER_UNWIND = 4096;
/** Maximum number of call sites in the table, which then has 32 MiB; the runtime handles all others. */
const MAX_SITES = 1 << 20;

export class UnwindTable {
  readonly #host: Host;
  readonly #state: NativeRegion;
  #unwinds = new WeakMap<CodeImage, number>();
  readonly #images = new Set<CodeImage>();
  #sites = 0;
  /** Size of the table in entries, a power of two of at least twice the number of sites. */
  #entries = 0;
  #region: NativeRegion | undefined;

  constructor(host: Host, state: NativeRegion) {
    this.#host = host;
    this.#state = state;
  }

  /** Records that the runtime has unwound through `image`. */
  note(image: CodeImage): void {
    if (this.#images.has(image)) return;
    const unwinds = (this.#unwinds.get(image) ?? 0) + 1;
    this.#unwinds.set(image, unwinds);
    const sites = image.tables.callReturn.length;
    if (unwinds * SITES_PER_UNWIND < sites || this.#sites + sites > MAX_SITES) return;
    this.#images.add(image);
    this.#sites += sites;
    try {
      if (this.#region !== undefined && this.#sites * 2 <= this.#entries) this.#add(image, this.#region);
      else this.#build();
    } catch {
      this.#clear(); // without memory for the table, the runtime unwinds
    }
  }

  /** Drops the table if it contains the image at `base`, which is about to be released. */
  forget(base: number): void {
    if ([...this.#images].some((image) => image.base === base)) this.#clear();
  }

  #clear(): void {
    this.#state.setWord(THREAD.UNWIND, 0);
    this.#unwinds = new WeakMap();
    this.#images.clear();
    this.#sites = 0;
    this.#release();
  }

  #release(): void {
    if (this.#region !== undefined) this.#host.release(this.#region.address, this.#region.size);
    this.#region = undefined;
  }

  #build(): void {
    this.#state.setWord(THREAD.UNWIND, 0);
    this.#release();
    let entries = this.#host.pageSize / UNWIND_ENTRY.SIZE;
    while (entries < this.#sites * 2) entries *= 2;
    this.#entries = entries;
    const bytes = entries * UNWIND_ENTRY.SIZE;
    this.#region = new NativeRegion(this.#host, this.#host.reserve(bytes, PROT.READ | PROT.WRITE), bytes);
    for (const image of this.#images) this.#add(image, this.#region);
    this.#state.u32[THREAD.UNWIND_MASK >> 2] = entries - 1;
    this.#state.setWord(THREAD.UNWIND, this.#region.address);
  }

  #add({ base, tables }: CodeImage, region: NativeRegion): void {
    const { u32, i32 } = region;
    const mask = this.#entries - 1;
    const { callReturn, callFrame, callLanding, callCross } = tables;
    for (let k = 0; k < callReturn.length; k++) {
      const address = base + callReturn[k];
      let at = Math.imul(address | 0, UNWIND_HASH.FACTOR) >>> UNWIND_HASH.SHIFT & mask;
      const word = (entry: number) => (entry * UNWIND_ENTRY.SIZE) >> 2;
      while (u32[word(at)] !== 0 || u32[word(at) + 1] !== 0) at = (at + 1) & mask;
      region.setWord(at * UNWIND_ENTRY.SIZE + UNWIND_ENTRY.RETURN, address);
      // The caller of another instance has another context, which machine code does not restore.
      const cross = callCross[k] === 1;
      i32[word(at) + (UNWIND_ENTRY.FRAME >> 2)] = cross ? -1 : callFrame[k];
      const landing = callLanding[k];
      i32[word(at) + (UNWIND_ENTRY.LANDING >> 2)] = cross || landing < 0 ? 0 : landing - callReturn[k];
    }
  }
}
