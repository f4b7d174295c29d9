/**
 * The share of one instance in the heap, or that of all instances without one of their own. In: an area of allocation
 * cells (abi/gc_layout.ts), and a budget. Out: the blocks that its objects fill, which its limit and its budget bound.
 *
 * Invariant: each block in use belongs to one owner. Its slots are in the cells of that owner, so an object counts for
 * the instance whose code has made it, whoever refers to it.
 */
import { CELLS, SIZE_CLASSES } from "../abi/gc_layout.ts";
import { BLOCK_BYTES } from "./collector_layout.ts";

/** The budget that pays for an owner's blocks (runtime/suspension/budget.ts). */
export interface HeapBudget {
  /** Takes the bytes of a growth; returns false if they are not granted. */
  take(kind: "heap", from: number, to: number): boolean;
  /** Takes bytes back. */
  give(bytes: number): void;
}

/** An instance whose code makes objects. */
export interface HeapUser {
  /** The owner of its objects. */
  readonly heapOwner: HeapOwner;
  /** The limit in bytes of the blocks of the owner when its code allocates. */
  readonly maxHeapBytes: number;
}

/** An area of CELLS.SIZE bytes: its address, and a view of its words. */
export interface CellArea {
  readonly address: number;
  readonly words: Uint32Array;
}

export class HeapOwner {
  /** Address of its allocation cells. */
  readonly cells: number;
  readonly words: Uint32Array;
  /** The numbers of its blocks. Those of the common owner are not listed. */
  readonly blocks: Set<number> = new Set();
  /** The number of its blocks. */
  count = 0;
  /** Bytes of its objects that the last collection found alive; blocks of large objects count whole. */
  live = 0;
  /** By class: first of the free slots that stress withholds from compiled code. */
  readonly withheld: number[] = SIZE_CLASSES.map(() => 0);
  readonly #budget: HeapBudget | undefined;

  constructor({ address, words }: CellArea, budget?: HeapBudget) {
    this.cells = address;
    this.words = words;
    this.#budget = budget;
  }

  /** Adds `count` blocks to its number if its budget grants them; returns whether it does. */
  pay(count: number): boolean {
    const bytes = this.count * BLOCK_BYTES;
    if (this.#budget?.take("heap", bytes, bytes + count * BLOCK_BYTES) === false) return false;
    this.count += count;
    return true;
  }

  /** Sets the number of its blocks after some have become free. */
  keep(count: number): void {
    if (count < this.count) this.#budget?.give((this.count - count) * BLOCK_BYTES);
    this.count = count;
  }

  /** Address of the first free slot of class `number`; 0 if there is none. */
  firstFree(number: number): number {
    const at = (CELLS.FREE >> 2) + number * 2;
    return this.words[at] + this.words[at + 1] * 0x1_0000_0000;
  }

  setFirstFree(number: number, slot: number): void {
    const at = (CELLS.FREE >> 2) + number * 2;
    this.words[at] = slot;
    this.words[at + 1] = slot / 0x1_0000_0000;
  }

  /** Puts the slots that stress withholds back into the cells. */
  returnWithheld(): void {
    this.withheld.forEach((slot, number) => {
      if (slot !== 0) this.setFirstFree(number, slot);
      this.withheld[number] = 0;
    });
  }
}
