/**
 * Places in an image where control may go: starts of functions, stubs, call sites, trap sites and polls. In: the tables
 * of the image and the stubs of this build. Out: lookups by offset. Invariant: an offset is found only if the tables
 * name it.
 */
import { STUB } from "../codegen/machine_code.ts";
import type { MachineModule } from "./machine_module.ts";

/** The effect of entering a stub. */
export const STUB_KIND = { NONE: 0, TRAP: 1, ALLOCATE: 2, BUILTIN: 3 } as const;

export class CodeMap {
  readonly #functionAt = new Map<number, number>();
  readonly #stubs = new Map<number, number>();
  readonly #callReturn: Int32Array;
  readonly #callLanding: Int32Array;
  readonly #trapAt: Int32Array;
  readonly #polls: Int32Array;

  constructor({ tables, stubs }: MachineModule) {
    const { functionStart, callReturn, callLanding, trapAt, pollAt } = tables;
    functionStart.forEach((start, f) => {
      if (start >= 0) this.#functionAt.set(start, f);
    });
    stubs.start.forEach((start, number) => {
      if (start >= 0) this.#stubs.set(start, number);
    });
    this.#callReturn = callReturn;
    this.#callLanding = callLanding;
    this.#trapAt = trapAt;
    this.#polls = pollAt.slice().sort();
  }

  /** The defined function that begins at `offset`, or −1. */
  functionAt(offset: number): number {
    return this.#functionAt.get(offset) ?? -1;
  }

  /** The number of the stub that begins at `offset` (STUB), or −1. */
  stubAt(offset: number): number {
    return this.#stubs.get(offset) ?? -1;
  }

  /** Row of the call site that returns to `offset`, or −1. */
  callSite(offset: number): number {
    return search(this.#callReturn, offset);
  }

  /** Calls `action` with the places where calls in [start, end) return, and their landing pads. */
  eachReturn(start: number, end: number, action: (offset: number) => void): void {
    for (let row = firstAfter(this.#callReturn, start); this.#callReturn[row] <= end; row++) {
      action(this.#callReturn[row]);
      if (this.#callLanding[row] >= 0) action(this.#callLanding[row]);
    }
  }

  /** Whether `offset` is listed as a place where a trap begins. */
  isTrapSite(offset: number): boolean {
    return search(this.#trapAt, offset) >= 0;
  }

  /** Whether the word at `offset` is a displacement to the poll page, which placing the image fills in. */
  isPoll(offset: number): boolean {
    return search(this.#polls, offset) >= 0;
  }

  /** The first such word at or behind `offset`; Infinity if there is none. */
  nextPoll(offset: number): number {
    return this.#polls[firstAfter(this.#polls, offset - 1)] ?? Infinity;
  }
}

/** The kind of stub `number`. */
export function stubKind(number: number): number {
  if (number >= STUB.TRAP) return STUB_KIND.TRAP;
  if (number >= STUB.BUILTIN) return STUB_KIND.BUILTIN;
  return number === STUB.ALLOCATE ? STUB_KIND.ALLOCATE : STUB_KIND.NONE;
}

/** Index of the first element of the ascending `column` above `value`. */
function firstAfter(column: Int32Array, value: number): number {
  let low = 0, high = column.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Index of `value` in the ascending `column`, or −1. */
function search(column: Int32Array, value: number): number {
  let low = 0, high = column.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (column[middle] === value) return middle;
    if (column[middle] < value) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}
