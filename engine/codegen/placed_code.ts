/**
 * Machine code under construction that may be written to the place of its image, so that it need not be copied. In:
 * memory at that place. Out: MachineCode whose bytes are there. Throws StorageExhausted when they do not fit.
 */
import { MachineCode } from "./machine_code.ts";

/** Memory at the place of an image, into which its code is compiled. */
export interface ImageStorage {
  /** Distance in bytes from the start of the image to the poll page. */
  readonly pollDistance: number;
  /** A view of at least the first `bytes` bytes; undefined if there are not so many. */
  view(bytes: number): Uint8Array | undefined;
}

/** The code exceeds its storage: it must be compiled again, elsewhere. Caught within the compiler. */
export class StorageExhausted extends Error {}

export class PlacedCode extends MachineCode {
  /** The memory of `bytes`, if they are at the place of the image. */
  storage: ImageStorage | undefined;

  override grow(size: number): void {
    if (this.storage !== undefined) this.bytes = viewOf(this.storage, size);
    else super.grow(size);
  }

  /** Moves the image to its place. Throws StorageExhausted. */
  enter(storage: ImageStorage): void {
    const view = viewOf(storage, this.length);
    view.set(this.bytes.subarray(0, this.length));
    this.bytes = view;
    this.storage = storage;
    this.pollDistance = storage.pollDistance;
  }
}

/** The memory at the place of `code`'s image, if its bytes are there. */
export function storageOf(code: MachineCode): ImageStorage | undefined {
  return code instanceof PlacedCode ? code.storage : undefined;
}

function viewOf(storage: ImageStorage, bytes: number): Uint8Array {
  const view = storage.view(bytes);
  if (view === undefined) throw new StorageExhausted("The code does not fit into the memory at its place");
  return view;
}
