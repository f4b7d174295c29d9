/**
 * The memory of a component as lifting and lowering see it. In: an exported memory and `realloc`. Out: views that are
 * valid until guest code runs, and checked allocations. Invariants: every pointer that `realloc` returns is aligned and
 * in bounds before it is used; the values lifted for one call have a bounded size in JavaScript.
 */
import type { PointerType } from "./layout.ts";
import { trap } from "./traps.ts";

/**
 * The cost of the values that one call may lift, about their bytes in JavaScript. Pointers of a guest may overlap, so a
 * small memory can describe values that no host can hold.
 */
export const MAX_LIFT_COST: number = 2 ** 30;

/** Values of fewer bytes are not charged for; only their ranges are. */
export const CHARGED_BYTES: number = 1 << 16;

/** The parts of an engine memory that are used here. */
interface MemorySource {
  readonly buffer: ArrayBuffer;
}

/** `realloc` of a component: old pointer, old size, alignment, new size. */
type Realloc = (old: number, oldBytes: number, align: number, bytes: number) => number;

export class GuestMemory {
  readonly pointer: PointerType;
  u8: Uint8Array = EMPTY;
  view: DataView = new DataView(EMPTY.buffer);
  /** True while `realloc` runs, and after a call of it that ended without a usable allocation. */
  reallocating = false;
  readonly #source: MemorySource | undefined;
  readonly #realloc: Realloc | undefined;
  #buffer: ArrayBuffer | undefined;
  /** The cost that is left to the values being lifted. */
  #left = 0;

  constructor(source: MemorySource | undefined, pointer: PointerType, realloc: Realloc | undefined) {
    this.#source = source;
    this.pointer = pointer;
    this.#realloc = realloc;
  }

  /** Renews the views after guest code has run. */
  refresh(): void {
    if (this.#source === undefined) return;
    const { buffer } = this.#source;
    if (buffer === this.#buffer) return;
    this.#buffer = buffer;
    this.u8 = new Uint8Array(buffer);
    this.view = new DataView(buffer);
  }

  /** Called before the values of a call, or elements of a stream, are lifted. */
  beginLift(): void {
    this.#left = MAX_LIFT_COST;
  }

  /** Charges for a value to be lifted. Traps if the values of the call are too large. */
  charge(cost: number): void {
    this.#left -= cost;
    if (this.#left < 0) trap("the values of one call are too large");
  }

  allocate(align: number, bytes: number): number {
    return this.reallocate(0, 0, align, bytes);
  }

  reallocate(old: number, oldBytes: number, align: number, bytes: number): number {
    if (this.#realloc === undefined) trap("the canonical options have no realloc");
    if (bytes > 0xffff_ffff) trap("allocation is too large");
    this.reallocating = true;
    const pointer = this.#realloc(old, oldBytes, align, bytes);
    this.refresh();
    this.check(pointer, align, bytes, "realloc returned a pointer that");
    this.reallocating = false;
    return pointer;
  }

  /** Traps unless `bytes` bytes at `pointer` are aligned and in bounds. */
  check(pointer: number, align: number, bytes: number, subject: string): void {
    if (pointer % align !== 0) trap(`${subject} is not aligned`);
    if (pointer + bytes > this.u8.length) trap(`${subject} is out of bounds of the memory`);
  }
}

const EMPTY = new Uint8Array(0);
