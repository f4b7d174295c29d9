/**
 * Tables (specification, 4.2.7): elements are 8-byte words outside the JavaScript heap: the address of a function
 * record, a host handle, or 0 for null. VM contexts hold copies of base and length; a table notifies its `users` when
 * either changes.
 */
import { Finalizers } from "../../host/finalizers.ts";
import type { SizeBudget } from "../memory/memory.ts";
import type { Sharer } from "../../gc/references.ts";
import { topHeap } from "../../wasm/subtype.ts";
import { HEAP, heapOf, type TableType } from "../../wasm/types.ts";
import type { ContextArena, ContextBlock } from "../memory/context_arena.ts";

/** The implementation limit on the number of elements of a table, as in V8. */
export const MAX_TABLE_ELEMENTS = 10_000_000;

/** An owner of copies of a table's base and length. */
export interface TableUser {
  tableMoved(table: Table): void;
  /** The length that its code expects of the table at least. */
  leastLength(table: Table): number;
  /** Whether a call is preempted in code that may hold the base in a register. */
  readonly preempted: boolean;
}

/** The parts of a table that outlive it. */
interface TableHolder {
  readonly arena: ContextArena;
  block: ContextBlock;
  /** The budget that pays for `bytes`. */
  readonly budget: SizeBudget | undefined;
  bytes: number;
}

const BLOCKS = new Finalizers<TableHolder>((holder) => {
  holder.arena.release(holder.block);
  holder.budget?.give(holder.bytes);
});

export class Table {
  /** The type, closed (wasm/subtype.ts). */
  readonly type: TableType;
  readonly users: Set<TableUser> = new Set();
  readonly maxElements: number;
  /** Observes accesses of JavaScript to the elements, for recordings. */
  watcher: { wrote(index: number): void; read(index: number, value: unknown): void } | undefined;
  #length: number;
  readonly #holder: TableHolder;

  /** The table's elements are paid for by `budget`, if given. */
  constructor(
    arena: ContextArena,
    type: TableType,
    maxElements: number = MAX_TABLE_ELEMENTS,
    budget?: SizeBudget,
  ) {
    const { min, max } = type.limits;
    this.type = type;
    this.maxElements = max === undefined || max > BigInt(maxElements) ? maxElements : Number(max);
    if (min > BigInt(maxElements)) {
      throw new RangeError(`Out of memory: a table of ${min} elements exceeds the limit of ${maxElements}`);
    }
    this.#length = Number(min);
    const bytes = this.#length * 8;
    if (budget?.take("table", 0, bytes) === false) {
      throw new RangeError(`Out of memory: the budget refuses a table of ${min} elements`);
    }
    this.#holder = { arena, block: arena.allocate(Math.max(8, bytes)), budget, bytes };
    BLOCKS.register(this, this.#holder);
  }

  keepAlive(other: Sharer): void {
    this.#retained.add(other);
  }

  keepsAlive(other: Sharer): boolean {
    return this.#retained.has(other) || this.users.has(other as TableUser & Sharer);
  }
  readonly #retained: Set<Sharer> = new Set();
  targets: Set<Sharer> | undefined;
  values: Set<object> | undefined;

  /** The instances and others that share its references. */
  sharers(): Iterable<unknown> {
    return [...this.users, ...this.#retained, ...this.targets ?? []];
  }

  get length(): number {
    return this.#length;
  }

  /** The address of element 0. */
  get base(): number {
    return this.#holder.block.address;
  }

  /** The word at `index`, which must be in bounds. */
  get(index: number): number {
    const { region, offset } = this.#holder.block;
    return region.word(offset + index * 8);
  }

  set(index: number, word: number): void {
    const { region, offset } = this.#holder.block;
    region.setWord(offset + index * 8, word);
  }

  /** Marks every non-null element. */
  markReferences(mark: (word: number, holder: Sharer) => void): void {
    for (let i = 0; i < this.#length; i++) {
      const word = this.get(i);
      if (word !== 0) mark(word, this);
    }
  }

  /** Visits the address range of the elements, for the garbage-collected heap; not for tables of functions. */
  visitReferences(range: (low: number, high: number) => void): void {
    if (topHeap(heapOf(this.type.element)) !== HEAP.func) range(this.base, this.base + this.#length * 8);
  }

  fill(start: number, count: number, word: number): void {
    const { region, offset } = this.#holder.block;
    const at = (offset >> 3) + start;
    region.i64.fill(BigInt(word), at, at + count);
  }

  /** Copies elements; the ranges may overlap. */
  copy(start: number, source: Table, from: number, count: number): void {
    const { region, offset } = this.#holder.block;
    const { region: sourceRegion, offset: sourceOffset } = source.#holder.block;
    const first = (sourceOffset >> 3) + from;
    region.i64.set(sourceRegion.i64.subarray(first, first + count), (offset >> 3) + start);
  }

  /** The length that the code of its users expects at least. */
  leastLength(): number {
    let least = 0;
    for (const user of this.users) least = Math.max(least, user.leastLength(this));
    return least;
  }

  /** Restores the initial length, with `word` as all elements. No code of its instances may be running. */
  reset(word: number): void {
    this.#shrink(Number(this.type.limits.min));
    if (word !== 0) return this.fill(0, this.#length, word);
    const { region, offset } = this.#holder.block;
    region.u8.fill(0, offset, offset + this.#length * 8);
  }

  /** Makes `words` the elements. No code of its instances may be running. The table must have at least that length. */
  restore(words: Float64Array): void {
    this.#shrink(words.length);
    words.forEach((word, k) => this.set(k, word));
  }

  #shrink(length: number): void {
    if (length === this.#length) return;
    this.#mayHave(length * 8);
    const { region, offset } = this.#holder.block;
    region.u8.fill(0, offset + length * 8, offset + this.#length * 8);
    this.#length = length;
    for (const user of this.users) user.tableMoved(this);
  }

  /** Grows by `delta` elements with the value `word`. Returns the previous length, or −1 if the table cannot grow. */
  grow(delta: number, word: number): number {
    const old = this.#length;
    const length = old + delta;
    if (length > this.maxElements || !this.#mayHave(length * 8)) return -1;
    // The budget's function may have grown it.
    if (this.#length !== old || !this.#makeRoom(length)) {
      this.#mayHave(this.#length * 8);
      return -1;
    }
    this.#length = length;
    this.fill(old, delta, word);
    for (const user of this.users) user.tableMoved(this);
    return old;
  }

  /** Gives the bytes of a table that no code uses any more back to its budget. */
  releaseBudget(): void {
    this.#mayHave(0);
  }

  /** Asks the budget for a length in bytes; returns whether it is granted. */
  #mayHave(bytes: number): boolean {
    const holder = this.#holder;
    const { budget, bytes: from } = holder;
    if (budget === undefined || bytes === from) return true;
    if (bytes < from) budget.give(from - bytes);
    else if (!budget.take("table", from, bytes)) return false;
    holder.bytes += bytes - from; // the budget's function may have changed it
    return true;
  }

  /** Moves the elements to a block for `length` of them, if needed; returns false if that is not possible. */
  #makeRoom(length: number): boolean {
    const { arena, block } = this.#holder;
    if (length * 8 <= block.size) return true;
    for (const user of this.users) if (user.preempted) return false;
    let next: ContextBlock;
    try {
      next = arena.allocate(length * 8);
    } catch (error) {
      if (error instanceof RangeError) return false;
      throw error;
    }
    next.region.u8.set(block.region.u8.subarray(block.offset, block.offset + this.#length * 8), next.offset);
    this.#holder.block = next;
    arena.release(block);
    return true;
  }
}
