/**
 * Copy-on-write memory images: the initial contents of a memory as an in-memory file that instances map privately. An
 * instance pays only for the pages it writes, and restores them by discarding them. In: the active data segments of a
 * module. Out: an image, for a memory with much data whose segments have constant offsets; other memories are
 * initialized by copying, which is cheaper for little data.
 */
import type { Host } from "../../host/host.ts";
import { type MemoryType, pageBytes } from "../../wasm/types.ts";
import type { Range, RangeImage } from "./memory_range.ts";

/** The minimum total size of the segments in bytes for which an image is worth its system calls. */
const MIN_BYTES = 1 << 17;

/** The image of one memory. */
class MemoryImage implements RangeImage {
  readonly #host: Host;
  readonly #file: number;
  readonly #bytes: number;
  /** Free ranges that contain the unmodified image. */
  readonly pool: Range[] = [];

  constructor(host: Host, bytes: Uint8Array) {
    this.#host = host;
    this.#bytes = bytes.length;
    this.#file = host.createImage(bytes);
  }

  /** Maps the image at `address`, writable and private. */
  map(address: number): void {
    this.#host.mapImage(address, this.#bytes, this.#file);
  }

  /** Closes the file and releases the free ranges, which cannot be reused any more. */
  release(): void {
    this.#host.closeImage(this.#file);
    for (const range of this.pool.splice(0)) range.retire();
  }
}

/**
 * The reference of a module to its image. The image is released when this object is unreachable: the image itself may
 * stay reachable from its ranges.
 */
class ImageOwner {
  readonly image: MemoryImage;

  constructor(image: MemoryImage) {
    this.image = image;
    OWNERS.register(this, image);
  }
}

const OWNERS = new FinalizationRegistry<MemoryImage>((image) => image.release());

/** The properties of a module that determine its memory images. */
interface ImageSource {
  readonly valid: { readonly memoryTypes: readonly MemoryType[] };
  /** The data segments; active ones with their memory index and, if it is constant, their offset. */
  readonly datas: readonly {
    readonly active: boolean;
    readonly memory: number;
    readonly at: number | undefined;
    readonly bytes: Uint8Array;
  }[];
}

/**
 * Returns the image of memory `index` of `module`, or undefined if it has none. Never throws: without an image, the
 * segments are copied.
 */
export function memoryImageOf(host: Host, module: ImageSource, index: number): MemoryImage | undefined {
  let known = IMAGES.get(module);
  if (known === undefined) IMAGES.set(module, known = new Map());
  if (!known.has(index)) known.set(index, makeImage(host, module, index));
  return known.get(index)?.image;
}

const IMAGES: WeakMap<ImageSource, Map<number, ImageOwner | undefined>> = new WeakMap();

/**
 * Makes the image. Undefined if the segments are small, fill less than a quarter of it, have variable offsets or are
 * out of bounds, or if the system refuses.
 */
function makeImage(host: Host, module: ImageSource, index: number): ImageOwner | undefined {
  const type = module.valid.memoryTypes[index];
  const room = Number(type.limits.min) * pageBytes(type);
  let total = 0;
  let end = 0;
  for (const { active, memory, at, bytes } of module.datas) {
    if (!active || memory !== index) continue;
    if (at === undefined) return undefined;
    total += bytes.length;
    end = Math.max(end, at + bytes.length);
  }
  if (total < MIN_BYTES || end > room || end > 4 * total) return undefined;
  const image = new Uint8Array(Math.ceil(end / host.pageSize) * host.pageSize);
  for (const { active, memory, at, bytes } of module.datas) {
    if (active && memory === index) image.set(bytes, at);
  }
  try {
    return new ImageOwner(new MemoryImage(host, image));
  } catch {
    return undefined;
  }
}
