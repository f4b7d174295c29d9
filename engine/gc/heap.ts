/**
 * The collected heap of one JavaScript realm: a range of address space divided into blocks of 64 KiB, allocation cells
 * from which compiled code takes slots, and non-moving mark-and-sweep collection (gc_layout.ts, collector_layout.ts).
 * In: sizes of objects from the slow path of allocation, and roots from the store. Out: addresses of zeroed slots;
 * memory of unreachable objects is reused. Instances with a limit or a budget of their own have blocks of their own
 * (heap_owner.ts); all others share the common owner's.
 *
 * A collection happens when as much has been allocated since the last one as was alive then (at least COLLECT_AFTER),
 * when a limit is reached, or on demand; always while no compiled code runs. Sweeping is lazy, one block at a time,
 * when slots are needed. Blocks without live objects become available to any class, and are returned to the system
 * beyond the estimated need of the next round.
 *
 * Invariant: outside a collection, a slot is on a free list, or in a block that waits to be swept and was not marked,
 * or is an object.
 */
import { now } from "../host/clocks.ts";
import { Bug } from "../base/errors.ts";
import { CELLS, MAX_OBJECT_BYTES, MAX_SMALL_BYTES, SIZE_CLASSES, sizeClassOf } from "../abi/gc_layout.ts";
import { type Host, PROT } from "../host/host.ts";
import { BLOCK, BLOCK_BYTES, type COLLECTOR_FUNCTIONS, CONTROL, LARGE, MARKS_SHIFT } from "./collector_layout.ts";
import { type CellArea, type HeapBudget, HeapOwner } from "./heap_owner.ts";
import { HeapReferences } from "./references.ts";
import { TypeTable } from "./type_table.ts";

/** Sizes of the heap's address space, tried in order until the system grants one. */
const RESERVATIONS = [2 ** 34, 2 ** 32, 2 ** 30, 2 ** 28, 2 ** 26];
/**
 * Bytes allocated between two collections, at least. If almost nothing is alive, collections take almost no time, and
 * the heap stays within SMALL_ROUND, which fits into caches.
 */
const COLLECT_AFTER = 32 * 2 ** 20;
const SMALL_ROUND = 8 * 2 ** 20;
/** Blocks that a program may fill before the collector's machine code is made. */
const BLOCKS_WITHOUT_CODE = 24;
/** References that are not objects are small numbers: the heap must be above them. */
const LOWEST_BASE = 2 ** 36;
/** Mark stack that stays committed between collections. */
const KEPT_STACK = 2 ** 20;
/** Words of roots that are passed at a time. */
const ROOT_WORDS = 4096;

/** The collector's machine code: the functions of collector_code.ts. */
export type CollectorCode = Record<(typeof COLLECTOR_FUNCTIONS)[number], () => number>;

/** The store's side of the heap. */
export interface HeapRoots {
  /** Numbers of host handles and of exceptions are below these. */
  handleCounts(): { host: number; exceptions: number };
  /** Visits the words that may be references: those of ranges, and single ones. */
  visit(range: (low: number, high: number) => void, word: (word: number) => void): void;
  /** The references in the payload of exception `number`. */
  visitException(number: number, word: (word: number) => void): void;
  /** Called at the end of marking. Marks are a byte per number. */
  marked(host: Uint8Array, exceptions: Uint8Array): void;
}

/** Statistics of the collector. */
export interface HeapStatistics {
  /** Number of collections. */
  collections: number;
  /** Bytes of all slots that were given to the program to allocate from, ever. */
  allocatedBytes: number;
  /** Live objects of the last collection; only those up to 32 KiB are counted. */
  liveBytes: number;
  /** Number of live objects of the last collection. */
  liveObjects: number;
  /** Bytes of blocks that are in use now. */
  heapBytes: number;
  /** Objects that JavaScript holds. */
  heldByHost: number;
  /** Milliseconds that compiled code had to wait for collections: the last one, the longest, all together. */
  pauses: { last: number; max: number; total: number };
}

/** A condition that the slow path of allocation turns into a trap. */
export class HeapFull extends RangeError {
  override name = "HeapFull";
}

/** State of a block, for taking one. */
const FREE_ZERO = 0;
const FREE = 1;
const USED = 2;

/** Memory of the heap proper, reserved by the first allocation. */
interface Space {
  base: number;
  blockCount: number;
  /** Rows of the table of blocks. */
  rows: Uint32Array;
  states: Uint8Array;
  /** Mark bytes for handles, grown as needed. */
  host: MarkBytes;
  exceptions: MarkBytes;
  rootWords: Uint32Array;
  rootAddress: number;
}

interface MarkBytes {
  address: number;
  queue: number;
  bytes: Uint8Array;
  numbers: Uint32Array;
}

export class Heap {
  readonly types: TypeTable;
  readonly references: HeapReferences = new HeapReferences();
  /** The owner of the objects of all instances without an owner of their own. */
  readonly common: HeapOwner;
  /** All owners. */
  readonly #owners = new Set<HeapOwner>();
  /** For tests: the interval, in allocations, of forced collections; 0: off. If on, every allocation is a slow one. */
  #stress = 0;
  #untilStress = 0;
  readonly #host: Host;
  readonly #roots: HeapRoots;
  readonly #makeCode: (control: number) => CollectorCode;
  readonly #control: number;
  readonly #u32: Uint32Array;
  #space: Space | undefined;
  #code: CollectorCode | undefined;
  /** Blocks that have ever been used: numbers below. */
  #top = 0;
  #usedBlocks = 0;
  /** Free blocks below #top, lowest last; may list some that are used by now. */
  #free: number[] = [];
  /** First block and number of blocks of large objects. */
  readonly #large = new Map<number, number>();
  #searchFrom = 0;
  #collecting = false;
  /** Bytes handed out since the last collection; how many there may be. */
  #allocated = 0;
  #threshold = SMALL_ROUND;
  #collections = 0;
  #total = 0;
  #live = 0;
  readonly #pauses = { last: 0, max: 0, total: 0 };

  /** `makeCode` makes the collector's machine code, given the address of the control area. */
  constructor(host: Host, roots: HeapRoots, makeCode: (control: number) => CollectorCode) {
    this.#host = host;
    this.#roots = roots;
    this.#makeCode = makeCode;
    this.types = new TypeTable(host);
    const bytes = CELLS.SIZE + CONTROL.SIZE;
    const address = host.reserve(Math.ceil(bytes / host.pageSize) * host.pageSize, PROT.READ | PROT.WRITE);
    this.#control = address + CELLS.SIZE;
    this.#u32 = new Uint32Array(host.view(this.#control, CONTROL.SIZE));
    this.common = this.addOwner({ address, words: new Uint32Array(host.view(address, CELLS.SIZE)) });
    setWord(this.#u32, CONTROL.TYPES, this.types.address);
  }

  /** Makes an owner with the zeroed allocation cells `area`; `budget` pays for its blocks. */
  addOwner(area: CellArea, budget?: HeapBudget): HeapOwner {
    const { words } = area;
    const classOf = new Uint8Array(words.buffer, words.byteOffset, CELLS.SIZE);
    for (let number = 0, k = 0; number < SIZE_CLASSES.length; number++) {
      const end = SIZE_CLASSES[number] / 8 + 1;
      classOf.fill(number, CELLS.CLASS_OF + k, CELLS.CLASS_OF + end);
      k = end;
    }
    setWord(words, CELLS.TYPES, this.types.address);
    const owner = new HeapOwner(area, budget);
    this.#owners.add(owner);
    return owner;
  }

  /**
   * Passes the blocks of an owner to the common one, and what they cost back to its budget. No code that allocates from
   * its cells may be running or parked; they are not used any more.
   */
  removeOwner(owner: HeapOwner): void {
    if (owner === this.common || !this.#owners.delete(owner)) return;
    if (owner.count > 0) {
      owner.returnWithheld();
      this.#forget(owner);
      for (const number of owner.blocks) this.#setOwner(this.#space!, number, this.common);
      this.common.count += owner.count;
    }
    owner.keep(0);
  }

  /**
   * Allocates an object of `bytes`, header included, and returns its address. Its memory is zero except for the first
   * eight bytes. May collect. Throws HeapFull if the blocks of `owner` would exceed `limit` bytes, its budget refuses
   * them, or the system has no more memory.
   */
  allocate(bytes: number, limit: number, owner: HeapOwner = this.common): number {
    if (this.#stress > 0 && --this.#untilStress <= 0) this.collect();
    return this.#allocate(bytes, limit, owner);
  }

  /** Allocates as `allocate` does, but never collects: for callers that hold references which are not roots. */
  allocateWithoutCollecting(bytes: number, limit: number, owner: HeapOwner = this.common): number {
    const threshold = this.#threshold;
    this.#threshold = Infinity;
    try {
      return this.#allocate(bytes, limit, owner);
    } finally {
      this.#threshold = threshold;
    }
  }

  #allocate(bytes: number, limit: number, owner: HeapOwner): number {
    const space = this.#space ??= this.#open();
    if (bytes > MAX_SMALL_BYTES) return this.#allocateLarge(space, bytes, limit, owner);
    const number = sizeClassOf(bytes);
    const { withheld } = owner;
    if (withheld[number] !== 0) owner.setFirstFree(number, withheld[number]);
    if (owner.firstFree(number) === 0) this.#refill(space, number, limit, owner);
    const slot = owner.firstFree(number);
    let next: number;
    if (this.#code === undefined) next = word(new Uint32Array(this.#host.view(slot, 8)), 0);
    else {
      this.#select(owner, number);
      this.#code.take();
      next = owner.firstFree(number);
    }
    if (this.#stress > 0) {
      withheld[number] = next;
      next = 0;
    }
    owner.setFirstFree(number, next);
    return slot;
  }

  /** Sets the arguments of the collector's functions for one class of an owner. */
  #select(owner: HeapOwner, number: number): void {
    setWord(this.#u32, CONTROL.CELLS, owner.cells);
    this.#u32[CONTROL.CLASS >> 2] = number;
  }

  /** Forgets the free slots of an owner and its blocks that wait to be swept. */
  #forget(owner: HeapOwner): void {
    if (this.#code !== undefined) {
      this.#select(owner, 0);
      this.#code.begin();
      return;
    }
    for (let number = 0; number < SIZE_CLASSES.length; number++) {
      for (let slot = owner.firstFree(number), next = 0; slot !== 0; slot = next) {
        const link = new Uint32Array(this.#host.view(slot, 8));
        next = word(link, 0);
        link.fill(0);
      }
      owner.setFirstFree(number, 0);
    }
  }

  /** Records the owner of the block `number`. */
  #setOwner({ rows }: Space, number: number, owner: HeapOwner): void {
    setWord(rows, rowOf(number) * 4 + BLOCK.CELLS, owner.cells);
    if (owner !== this.common) owner.blocks.add(number);
  }

  /** Whether anything has been allocated yet. */
  get isOpen(): boolean {
    return this.#space !== undefined;
  }

  /** Whether `address` is in the heap. */
  contains(address: number): boolean {
    const space = this.#space;
    return space !== undefined && address >= space.base && address < space.base + this.#top * BLOCK_BYTES;
  }

  /**
   * Collects before every `interval`th allocation from now on, and lets compiled code allocate by the slow path only; 0
   * ends that.
   */
  stress(interval: number): void {
    this.#returnWithheld();
    this.#stress = this.#untilStress = interval;
    if (interval === 0) return;
    for (const owner of this.#owners) {
      for (let number = 0; number < SIZE_CLASSES.length; number++) {
        owner.withheld[number] = owner.firstFree(number);
        owner.setFirstFree(number, 0);
      }
    }
  }

  get statistics(): HeapStatistics {
    return {
      collections: this.#collections,
      allocatedBytes: this.#total,
      liveBytes: this.#live,
      liveObjects: this.#space === undefined ? 0 : word(this.#u32, CONTROL.LIVE_OBJECTS),
      heapBytes: this.#usedBlocks * BLOCK_BYTES,
      heldByHost: this.references.size,
      pauses: { ...this.#pauses },
    };
  }

  /** Frees all unreachable objects. No compiled code may be running (it may be parked). */
  collect(): void {
    const space = this.#space;
    if (space === undefined) return;
    if (this.#collecting) throw new Bug("A collection within a collection");
    this.#collecting = true;
    const start = now();
    try {
      this.#returnWithheld();
      this.#untilStress = this.#stress;
      this.#collections++;
      this.#mark(space);
      this.#reclaim(space);
    } finally {
      this.#collecting = false;
    }
    const pause = now() - start;
    this.#pauses.last = pause;
    this.#pauses.max = Math.max(this.#pauses.max, pause);
    this.#pauses.total += pause;
  }

  #mark(space: Space): void {
    const code = this.#machine();
    const words = this.#u32;
    for (const owner of this.#owners) this.#forget(owner);
    code.clear();
    const counts = this.#roots.handleCounts();
    this.#prepareMarks(space, counts);
    let filled = 0;
    const flush = () => {
      if (filled > 0) range(space.rootAddress, space.rootAddress + filled * 8);
      filled = 0;
    };
    const range = (low: number, high: number) => {
      setWord(words, CONTROL.LOW, low);
      setWord(words, CONTROL.HIGH, high);
      code.scan();
    };
    const single = (value: number) => {
      setWord(space.rootWords, filled * 8, value);
      if (++filled === ROOT_WORDS) flush();
    };
    this.#roots.visit(range, single);
    for (const address of this.references.addresses()) single(address);
    flush();
    code.drain();
    // Exceptions are JavaScript objects: their references come from there, and may lead to more exceptions.
    for (let count = word(words, CONTROL.EXCEPTION_QUEUED); count > 0; count = word(words, CONTROL.EXCEPTION_QUEUED)) {
      const numbers = space.exceptions.numbers.slice(0, count);
      setWord(words, CONTROL.EXCEPTION_QUEUED, 0);
      for (const number of numbers) this.#roots.visitException(number, single);
      flush();
      code.drain();
    }
    this.#roots.marked(
      space.host.bytes.subarray(0, counts.host),
      space.exceptions.bytes.subarray(0, counts.exceptions),
    );
    const peak = word(words, CONTROL.STACK_PEAK) - word(words, CONTROL.STACK);
    if (peak > KEPT_STACK) {
      const bytes = Math.ceil(peak / this.#host.pageSize) * this.#host.pageSize;
      this.#host.replace(word(words, CONTROL.STACK), bytes, PROT.READ | PROT.WRITE);
    }
    setWord(words, CONTROL.STACK_PEAK, word(words, CONTROL.STACK));
  }

  /** After marking: finds free blocks, and decides when to collect next. */
  #reclaim(space: Space): void {
    const { rows, states } = space;
    this.#select(this.common, 0);
    this.#machine().classify();
    this.#live = word(this.#u32, CONTROL.LIVE_BYTES);
    for (const [first, count] of this.#large) {
      if (rows[rowOf(first) + (BLOCK.LIVE >> 2)] !== 0) {
        this.#live += count * BLOCK_BYTES;
        continue;
      }
      this.#large.delete(first);
      for (let number = first; number < first + count; number++) rows[rowOf(number)] = 0;
      this.#release(space, first, count);
    }
    this.#threshold = Math.max(SMALL_ROUND, Math.min(COLLECT_AFTER, this.#live * 16), this.#live);
    this.#allocated = 0;
    const free: number[] = [];
    this.#usedBlocks = 0;
    for (let number = 0; number < this.#top; number++) {
      if (states[number] === USED) {
        if (rows[rowOf(number)] !== 0) {
          this.#usedBlocks++;
          continue;
        }
        states[number] = FREE;
      }
      free.push(number);
    }
    this.#settleOwners(space);
    this.#releaseSurplus(space, free);
    this.#free = free.reverse();
    this.#searchFrom = 0;
  }

  /** Counts the blocks of each owner again, and the bytes of its live objects. */
  #settleOwners({ rows }: Space): void {
    let count = this.#usedBlocks, live = this.#live;
    for (const owner of this.#owners) {
      if (owner === this.common) continue;
      owner.live = 0;
      for (const number of owner.blocks) {
        const row = rowOf(number), bytes = rows[row];
        if (bytes === 0) owner.blocks.delete(number);
        else owner.live += bytes === LARGE ? BLOCK_BYTES : bytes * rows[row + (BLOCK.LIVE >> 2)];
      }
      owner.keep(owner.blocks.size);
      count -= owner.count;
      live -= owner.live;
    }
    this.common.keep(count);
    this.common.live = live;
  }

  /**
   * Returns pages of free blocks to the system beyond the estimated need of the next round. `free` is in ascending
   * order.
   */
  #releaseSurplus(space: Space, free: readonly number[]): void {
    let k = Math.ceil(this.#threshold / BLOCK_BYTES);
    while (k < free.length) {
      const first = free[k];
      let count = 0;
      while (k < free.length && free[k] === first + count && space.states[first + count] === FREE) {
        count++;
        k++;
      }
      if (count === 0) k++;
      else this.#release(space, first, count);
    }
  }

  /** Returns the pages of free blocks to the system where it agrees; the blocks are then zero. */
  #release(space: Space, first: number, count: number): void {
    try {
      this.#host.replace(space.base + first * BLOCK_BYTES, count * BLOCK_BYTES, PROT.READ | PROT.WRITE);
    } catch {
      return; // the blocks stay free, with their pages
    }
    space.states.fill(FREE_ZERO, first, first + count);
  }

  /** Makes sure that the cell of class `number` has a slot. */
  #refill(space: Space, number: number, limit: number, owner: HeapOwner): void {
    if (this.#allocated >= this.#threshold) this.collect();
    let bytes = this.#sweep(number, owner);
    let isPaid = bytes === 0 && this.#pay(1, limit, owner);
    if (bytes === 0 && !isPaid) {
      this.#collectForRoom(1, limit, owner);
      bytes = this.#sweep(number, owner);
      isPaid = bytes === 0;
      if (isPaid) this.#requireRoom(1, limit, owner);
    }
    if (isPaid && owner.firstFree(number) !== 0) {
      owner.keep(owner.count - 1); // the budget's function has run code that allocates
      return;
    }
    if (isPaid) {
      const block = this.#paidFor(owner, 1, () => this.#takeBlock(space));
      const size = SIZE_CLASSES[number];
      const row = rowOf(block);
      const { rows } = space;
      rows[row + (BLOCK.SLOT_BYTES >> 2)] = size;
      rows[row + (BLOCK.RECIPROCAL >> 2)] = Math.ceil(0x1_0000_0000 / size);
      rows[row + (BLOCK.COUNT >> 2)] = Math.floor(BLOCK_BYTES / size);
      rows[row + (BLOCK.NEXT >> 2)] = owner.words[(CELLS.PENDING >> 2) + number];
      rows[row + (BLOCK.LIVE >> 2)] = 0;
      rows[row + (BLOCK.ZERO >> 2)] = space.states[block] === FREE_ZERO ? 1 : 0;
      this.#setUsed(space, block, 1, owner);
      if (this.#code === undefined && block < BLOCKS_WITHOUT_CODE) {
        rows[row + (BLOCK.ZERO >> 2)] = 0;
        bytes = this.#link(space.base + block * BLOCK_BYTES, number, owner);
      } else {
        this.#machine();
        owner.words[(CELLS.PENDING >> 2) + number] = block + 1;
        bytes = this.#sweep(number, owner);
      }
    }
    this.#count(bytes);
  }

  /**
   * Gives the cell of class `number` the free slots of a block that waits for sweeping; returns their bytes, 0 if there
   * is none.
   */
  #sweep(number: number, owner: HeapOwner): number {
    if (this.#code === undefined) return 0;
    this.#select(owner, number);
    return this.#code.sweep();
  }

  /** Gives the cell of class `number` all slots of the new block at `first`, without the machine code. */
  #link(first: number, number: number, owner: HeapOwner): number {
    const size = SIZE_CLASSES[number];
    const count = Math.floor(BLOCK_BYTES / size);
    const u32 = new Uint32Array(this.#host.view(first, BLOCK_BYTES));
    for (let k = 0; k < count - 1; k++) setWord(u32, k * size, first + (k + 1) * size);
    owner.setFirstFree(number, first);
    return count * size;
  }

  /** The collector's machine code, made on first use: many programs end in less time than that takes. */
  #machine(): CollectorCode {
    return this.#code ??= this.#makeCode(this.#control);
  }

  #allocateLarge(space: Space, bytes: number, limit: number, owner: HeapOwner): number {
    if (bytes > MAX_OBJECT_BYTES) throw new HeapFull("allocation size too large");
    const count = Math.ceil(bytes / BLOCK_BYTES);
    if (this.#allocated + count * BLOCK_BYTES > this.#threshold) this.collect();
    if (!this.#pay(count, limit, owner)) {
      this.#collectForRoom(count, limit, owner);
      this.#requireRoom(count, limit, owner);
    }
    const first = this.#paidFor(owner, count, () => this.#findRun(space, count));
    const { rows, states } = space;
    for (let k = 0; k < count; k++) {
      // The system zeroes a block that was used before.
      if (states[first + k] !== FREE) continue;
      let end = k + 1;
      while (end < count && states[first + end] === FREE) end++;
      this.#release(space, first + k, end - k);
      k = end;
    }
    for (let number = first; number < first + count; number++) {
      rows[rowOf(number) + (BLOCK.SLOT_BYTES >> 2)] = LARGE;
      rows[rowOf(number) + (BLOCK.NEXT >> 2)] = first;
    }
    this.#setUsed(space, first, count, owner);
    this.#large.set(first, count);
    this.#count(count * BLOCK_BYTES);
    return space.base + first * BLOCK_BYTES;
  }

  /** Pays for `count` blocks of `owner`; returns false if its limit or its budget refuses them. */
  #pay(count: number, limit: number, owner: HeapOwner): boolean {
    return !this.#exceeds(count, limit, owner) && owner.pay(count);
  }

  #exceeds(count: number, limit: number, owner: HeapOwner): boolean {
    return (owner.count + count) * BLOCK_BYTES > this.#byteLimit(limit);
  }

  /** The place that `find` finds for `count` blocks that are paid for; gives their price back if there is none. */
  #paidFor(owner: HeapOwner, count: number, find: () => number): number {
    try {
      return find();
    } catch (error) {
      owner.keep(owner.count - count);
      throw error;
    }
  }

  /**
   * Collects because the limit or the budget refuses `count` blocks. Throws HeapFull if less than a 64th is free
   * afterwards: the program would do little but collect from then on. An owner with a small part of a large heap must
   * have freed more, because each collection marks all of it.
   */
  #collectForRoom(count: number, limit: number, owner: HeapOwner): void {
    if (this.#threshold === Infinity) return;
    const isLimit = this.#exceeds(count, limit, owner);
    const bytes = isLimit ? this.#byteLimit(limit) : owner.count * BLOCK_BYTES;
    this.collect();
    const least = Math.max(bytes / 64, Math.min(bytes / 4, this.#live / 64));
    if (owner.live > bytes - least) throw this.#full(isLimit, limit);
  }

  #requireRoom(count: number, limit: number, owner: HeapOwner): void {
    if (!this.#pay(count, limit, owner)) throw this.#full(this.#exceeds(count, limit, owner), limit);
  }

  /** The limit that applies: `limit`, or the size of the address space. */
  #byteLimit(limit: number): number {
    return Math.min(limit, this.#space!.blockCount * BLOCK_BYTES);
  }

  #full(isLimit: boolean, limit: number): HeapFull {
    const reason = isLimit ? `the limit of ${this.#byteLimit(limit)} bytes` : "the budget grants";
    return new HeapFull(`out of memory: objects need more than ${reason}`);
  }

  #count(bytes: number): void {
    this.#allocated += bytes;
    this.#total += bytes;
  }

  #setUsed(space: Space, first: number, count: number, owner: HeapOwner): void {
    space.states.fill(USED, first, first + count);
    for (let number = first; number < first + count; number++) this.#setOwner(space, number, owner);
    this.#usedBlocks += count;
    if (first + count <= this.#top) return;
    this.#top = first + count;
    setWord(this.#u32, CONTROL.USED, this.#top * BLOCK_BYTES);
  }

  /** The number of a free block. */
  #takeBlock(space: Space): number {
    for (let number = this.#free.pop(); number !== undefined; number = this.#free.pop()) {
      if (space.states[number] !== USED) return number;
    }
    if (this.#top === space.blockCount) throw new HeapFull("out of memory: the heap's address space is used up");
    return this.#top;
  }

  /** The first of `count` consecutive free blocks: the next such run after the last one used, else fresh blocks. */
  #findRun(space: Space, count: number): number {
    const { states } = space;
    for (const [from, to] of [[this.#searchFrom, this.#top], [0, this.#searchFrom]] as const) {
      let run = 0;
      for (let number = from; number < to; number++) {
        run = states[number] === USED ? 0 : run + 1;
        if (run === count) {
          this.#searchFrom = number + 1;
          return number + 1 - count;
        }
      }
    }
    let first = this.#top;
    while (first > 0 && states[first - 1] !== USED) first--;
    if (first + count > space.blockCount) {
      throw new HeapFull(`out of memory: no ${count * BLOCK_BYTES} bytes in a row are free`);
    }
    return first;
  }

  /** Puts the slots that stress withholds back into the cells. */
  #returnWithheld(): void {
    for (const owner of this.#owners) owner.returnWithheld();
  }

  /** Provides mark bytes for as many handles as there are, all 0. */
  #prepareMarks(space: Space, counts: { host: number; exceptions: number }): void {
    space.host = this.#clearMarks(space.host, counts.host);
    space.exceptions = this.#clearMarks(space.exceptions, counts.exceptions);
    setWord(this.#u32, CONTROL.HOST_MARKS, space.host.address);
    setWord(this.#u32, CONTROL.HOST_COUNT, counts.host);
    setWord(this.#u32, CONTROL.EXCEPTION_MARKS, space.exceptions.address);
    setWord(this.#u32, CONTROL.EXCEPTION_COUNT, counts.exceptions);
    setWord(this.#u32, CONTROL.EXCEPTION_QUEUE, space.exceptions.queue);
    setWord(this.#u32, CONTROL.EXCEPTION_QUEUED, 0);
  }

  #clearMarks(marks: MarkBytes, count: number): MarkBytes {
    if (count <= marks.bytes.length) {
      marks.bytes.fill(0, 0, count);
      return marks;
    }
    const made = this.#makeMarks(count * 2);
    if (marks.address !== 0) this.#host.release(marks.address, marks.bytes.length * 5);
    return made;
  }

  #makeMarks(count: number): MarkBytes {
    const page = this.#host.pageSize;
    const size = Math.ceil(count / page) * page;
    const address = this.#host.reserve(size * 5, PROT.READ | PROT.WRITE);
    return {
      address,
      queue: address + size,
      bytes: new Uint8Array(this.#host.view(address, size)),
      numbers: new Uint32Array(this.#host.view(address + size, size * 4)),
    };
  }

  /** Reserves the heap's address space. */
  #open(): Space {
    const host = this.#host;
    const reserve = (bytes: number) => host.reserve(bytes, PROT.READ | PROT.WRITE);
    for (const bytes of RESERVATIONS) {
      const taken: [number, number][] = [];
      const take = (size: number) => {
        taken.push([reserve(size), size]);
        return taken.at(-1)![0];
      };
      try {
        const blockCount = bytes / BLOCK_BYTES;
        const unaligned = take(bytes + BLOCK_BYTES);
        const base = Math.ceil(unaligned / BLOCK_BYTES) * BLOCK_BYTES;
        if (base < LOWEST_BASE) throw new RangeError("Out of address space: the heap would be too low");
        const words = this.#u32;
        setWord(words, CONTROL.BASE, base);
        const rowsAddress = take(blockCount * BLOCK.SIZE_OF);
        setWord(words, CONTROL.BLOCKS, rowsAddress);
        setWord(words, CONTROL.MARKS, take(bytes / (1 << MARKS_SHIFT)));
        // In the worst case every object is on the stack; arrays on the second one have at least 4 KiB.
        const stack = take(bytes / 2);
        setWord(words, CONTROL.STACK, stack);
        setWord(words, CONTROL.STACK_PEAK, stack);
        setWord(words, CONTROL.ARRAYS, take(bytes / 256));
        const rootAddress = take(ROOT_WORDS * 8);
        const marks: MarkBytes = {
          address: 0,
          queue: 0,
          bytes: new Uint8Array(0),
          numbers: new Uint32Array(0),
        };
        return {
          base,
          blockCount,
          rows: new Uint32Array(host.view(rowsAddress, blockCount * BLOCK.SIZE_OF)),
          states: new Uint8Array(blockCount),
          host: { ...marks },
          exceptions: { ...marks },
          rootAddress,
          rootWords: new Uint32Array(host.view(rootAddress, ROOT_WORDS * 8)),
        };
      } catch (error) {
        for (const [address, size] of taken) host.release(address, size);
        if (!(error instanceof RangeError) || bytes === RESERVATIONS.at(-1)) throw error;
      }
    }
    throw new Bug("No reservation was tried");
  }
}

/** Index of the first word of a block's row. */
function rowOf(block: number): number {
  return block * (BLOCK.SIZE_OF >> 2);
}

/** Reads and writes 64-bit words below 2^53 at byte offset `at`. */
function word(u32: Uint32Array, at: number): number {
  return u32[at >> 2] + u32[(at >> 2) + 1] * 0x1_0000_0000;
}

function setWord(u32: Uint32Array, at: number, value: number): void {
  u32[at >> 2] = value;
  u32[(at >> 2) + 1] = value / 0x1_0000_0000;
}
