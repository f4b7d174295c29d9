/**
 * Facts as columns of small numbers, one row per location. In: the number of locations. Out: the columns, under the
 * names that they have for numbers and addresses (facts.ts), and under those of other kinds of values. Invariant: all
 * columns are parts of one buffer; nothing is allocated per instruction.
 */

/** Bytes that a location has in all columns. */
const LOCATION_BYTES = 5 * 8 + 3 * 4 + 1;
/** Locations for which facts have room at first. Capacities are multiples of 8, which aligns the columns. */
const FIRST_CAPACITY = 64;

/** Facts about all locations at one point. All columns are parts of one buffer, which is copied at once. */
export class Columns {
  /** Locations in use. */
  count: number;
  capacity: number;
  kind!: Uint8Array;
  id!: Int32Array;
  low!: Float64Array;
  high!: Float64Array;
  name!: Int32Array;
  delta!: Float64Array;
  step!: Float64Array;
  room!: Float64Array;
  of!: Int32Array;
  #all!: Float64Array;

  constructor(count: number, capacity: number = FIRST_CAPACITY) {
    this.count = count;
    this.capacity = capacity;
    this.#allocate();
  }

  #allocate(): void {
    const { capacity } = this;
    const buffer = new ArrayBuffer(capacity * LOCATION_BYTES);
    this.#all = new Float64Array(buffer);
    const numbers = (column: number) => new Float64Array(buffer, column * capacity * 8, capacity);
    const words = (column: number) => new Int32Array(buffer, (5 * 8 + column * 4) * capacity, capacity);
    this.low = numbers(0);
    this.high = numbers(1);
    this.delta = numbers(2);
    this.step = numbers(3);
    this.room = numbers(4);
    this.id = words(0);
    this.name = words(1);
    this.of = words(2);
    this.kind = new Uint8Array(buffer, (5 * 8 + 3 * 4) * capacity, capacity);
  }

  /** Makes room for `count` locations. */
  reserve(count: number): void {
    if (count <= this.capacity) return;
    const { low, high, delta, step, room, id, name, of, kind } = this;
    while (this.capacity < count) this.capacity *= 2;
    this.#allocate();
    this.low.set(low);
    this.high.set(high);
    this.delta.set(delta);
    this.step.set(step);
    this.room.set(room);
    this.id.set(id);
    this.name.set(name);
    this.of.set(of);
    this.kind.set(kind);
  }

  /** Has room for few locations again, and facts about none. */
  shrink(): void {
    if (this.capacity === FIRST_CAPACITY) return;
    this.capacity = FIRST_CAPACITY;
    this.#allocate();
  }

  /** Becomes equal to `from`. */
  copyAll(from: Columns): void {
    const { count } = from;
    this.count = count;
    if (this.capacity === from.capacity) return this.#all.set(from.#all);
    this.reserve(count);
    for (let l = 0; l < count; l++) this.copyFrom(l, from, l);
  }

  /** Location `to` has the value of location `l` of `from`. */
  copyFrom(to: number, from: Columns, l: number): void {
    this.kind[to] = from.kind[l];
    this.id[to] = from.id[l];
    this.low[to] = from.low[l];
    this.high[to] = from.high[l];
    this.name[to] = from.name[l];
    this.delta[to] = from.delta[l];
    this.step[to] = from.step[l];
    this.room[to] = from.room[l];
    this.of[to] = from.of[l];
  }

  /** Of references: the closed heap type (references.ts: machineHeap). */
  get heap(): Int32Array {
    return this.id;
  }

  /** Of references and slots: REFERENCE_FACTS, SLOT_FACTS. */
  get known(): Float64Array {
    return this.low;
  }

  /** Of references: the least length of an array, in elements. */
  get leastLength(): Float64Array {
    return this.high;
  }

  /** Of kinds that name another value (NAMES_ID): its name. */
  get subject(): Int32Array {
    return this.id;
  }

  /** Of memories, tables, cells, tags, expected types: the index in the module. */
  get index(): Int32Array {
    return this.id;
  }

  /** Of lengths: the limit that the length is. */
  get lengthLimit(): Int32Array {
    return this.id;
  }

  /** Of numbers: NUMBER_FACTS. */
  get traits(): Int32Array {
    return this.id;
  }

  /** Of elements and new arrays: the type of the array. */
  get arrayType(): Int32Array {
    return this.id;
  }

  /** Of free slots: the class, or the negated name of a class that was looked up. */
  get slotClass(): Int32Array {
    return this.id;
  }

  /** Of free slots and new arrays: the bytes, if they are constant. */
  get slotBytes(): Float64Array {
    return this.high;
  }

  /** Of tests: the heap type that is tested. */
  get testedHeap(): Float64Array {
    return this.low;
  }

  /** Of tests: 1 if they succeed for null, too. */
  get orNull(): Float64Array {
    return this.room;
  }

  /** Of ancestors: the depth. */
  get depth(): Float64Array {
    return this.low;
  }

  /** Of tag bits: the mask. */
  get tagMask(): Float64Array {
    return this.low;
  }

  /** Of masks: the number of low bytes. */
  get maskBytes(): Float64Array {
    return this.low;
  }

  /** Of jump tables, jumps and distances to the poll page: the offset of table, code or word in the image. */
  get imageOffset(): Int32Array {
    return this.id;
  }

  /** Of jump tables and jumps: the first entry. */
  get firstEntry(): Float64Array {
    return this.low;
  }

  /** Of jump tables and jumps: the last entry. */
  get lastEntry(): Float64Array {
    return this.high;
  }
}
