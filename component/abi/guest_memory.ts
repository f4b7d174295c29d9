/**
 * The memory of a component as lifting and lowering see it. In: an exported memory and `realloc`. Out: views that are
 * valid until guest code runs, and checked allocations. Invariants: every pointer that `realloc` returns is aligned and
 * in bounds before it is used; the values lifted for one call have a bounded size in JavaScript; lifting them costs
 * fuel; lifting and storing end at the limits of the running call.
 */
import { callIsOver, chargeBytes, interruptedCall } from "@waft/engine/internal/runtime/host_limits";
import type { PointerType } from "./layout.ts";
import { trap } from "./traps.ts";

/**
 * The cost of the values that one call may lift, about their bytes in JavaScript. Pointers of a guest may overlap, so a
 * small memory can describe values that no host can hold.
 */
export const MAX_LIFT_COST: number = 2 ** 30;

/** Values of a lower cost are not charged for; only their ranges are. */
export const CHARGED_COST: number = 1 << 16;

/** The cost of values of one call for which fuel is charged at once, and limits are checked; less is free. */
const PIECE = 1 << 12;

/** The elements of a list that are lifted or stored between two checks, if an element is an object. */
export const ELEMENTS_PER_CHECK: number = 1024;

/** The bytes of a string or of a list of numbers that are copied between two checks. */
export const BYTES_PER_CHECK: number = 1 << 20;

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
  /** The cost of values of this call for which no fuel has been charged yet, less than PIECE. */
  #unpaid = 0;
  /** The cost of values that were worked on since the time was checked, less than PIECE. */
  #unchecked = 0;

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
    this.#unpaid = 0;
  }

  /** Charges for a value to be lifted. Traps if the values of the call are too large. */
  charge(cost: number): void {
    this.#left -= cost;
    if (this.#left < 0) trap("the values of one call are too large");
  }

  /**
   * Charges the fuel of lifting values of `cost`. Throws the trap if the fuel or the time of the running call is used
   * up.
   */
  spend(cost: number): void {
    this.#unpaid += cost;
    if (this.#unpaid < PIECE) return;
    const unpaid = this.#unpaid;
    this.#unpaid = 0;
    chargeBytes(unpaid);
    if (callIsOver()) throw interruptedCall();
  }

  /**
   * Checks the time before work for values of `cost` that costs no fuel, because they were paid for when they were
   * lifted. Throws the trap if the time of the running call is used up.
   */
  checkTime(cost: number): void {
    this.#unchecked += cost;
    if (this.#unchecked < PIECE) return;
    this.#unchecked = 0;
    if (callIsOver()) throw interruptedCall();
  }

  /** A copy of `bytes` bytes at `pointer`, which are in bounds. */
  copy(pointer: number, bytes: number): Uint8Array<ArrayBuffer> {
    if (bytes <= BYTES_PER_CHECK) {
      this.spend(bytes);
      return this.u8.slice(pointer, pointer + bytes) as Uint8Array<ArrayBuffer>;
    }
    const copy = new Uint8Array(bytes);
    for (let at = 0; at < bytes; at += BYTES_PER_CHECK) {
      const part = this.u8.subarray(pointer + at, pointer + Math.min(at + BYTES_PER_CHECK, bytes));
      this.spend(part.length);
      copy.set(part, at);
    }
    return copy;
  }

  /** Stores bytes at `pointer`, where there is room for them. */
  write(bytes: Uint8Array, pointer: number): void {
    for (let at = 0; at < bytes.length; at += BYTES_PER_CHECK) {
      const part = bytes.subarray(at, at + BYTES_PER_CHECK);
      this.checkTime(part.length);
      this.u8.set(part, pointer + at);
    }
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
