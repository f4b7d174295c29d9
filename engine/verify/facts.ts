/**
 * The abstract domain of the verifier: facts about the values of locations (registers, stack slots, and a few
 * pseudo-locations) at one point of a function. Facts are columns of small numbers; nothing is allocated per
 * instruction.
 *
 *     kind, id      the kind of the value (VALUE): a number, or an address in a known object
 *     low, high     bounds of the number, or of the distance from the start of the object; high is Infinity if unknown
 *     name, delta   the value (or the distance) equals that of the named value plus delta, as integers without
 *                   wrapping. Locations with one name change together when a branch refines one of them. 0: no name
 *     step          a number is `low` plus a multiple of `step`: 1 if nothing is known, without meaning for a constant
 *     room, of      value + room is at most the length `of` (LIMIT); of < 0: nothing is known
 *
 * A name denotes one value: the result of an instruction, or that of a location at a join. A join that closes a loop
 * renames all locations, so a name never denotes values of two iterations. Lengths of memories and tables never
 * decrease, so room and lower bounds of lengths keep holding.
 *
 * Invariant: a fact that is recorded holds in every execution that reaches the point. Facts are only lost where paths
 * meet.
 */
import { bottomOf } from "../wasm/subtype.ts";
import { HEAP } from "../wasm/types.ts";
import { type Hint, Inductions } from "./inductions.ts";
import { commonHeap, elementBytes } from "./references.ts";

/** Kinds of values. */
export const VALUE = {
  NUMBER: 0,
  /** The VM context of the function's instance. */
  CONTEXT: 1,
  /** The stack; distances are from the stack pointer at the function's entry. */
  STACK: 2,
  /** Memory `id`. */
  MEMORY: 3,
  /** Elements of table `id`. */
  TABLE: 4,
  THREAD: 5,
  OVERFLOW: 6,
  /** The cell of imported global `id`. */
  CELL: 7,
  /**
   * A reference; id: its closed heap type (references.ts: machineHeap); low: REFERENCE_FACTS; high: the least length of
   * an array.
   */
  REFERENCE: 8,
  /** The image. */
  IMAGE: 9,
  /** The context in the record named `id`. */
  RECORD_CONTEXT: 10,
  /** Base and length of memory 0 of that context. */
  RECORD_MEMORY: 11,
  RECORD_LENGTH: 12,
  /** The stub for returns from tail calls. */
  TAIL_RETURN: 13,
  /** The length LIMIT `id`, now or earlier. */
  LENGTH: 14,
  /** The canonical type id of the record named `id`. */
  TYPE_ID: 15,
  /** The canonical id of type `id` of the module. */
  EXPECTED_TYPE: 16,
  /** The word with the current length of shared memory `id`. */
  LENGTH_CELL: 17,
  /** Entries low … high of the jump table at offset `id` of the image; and the address of the code that one names. */
  JUMP_ENTRY: 18,
  JUMP_TARGET: 19,
  /** The lowest stack pointer allowed. */
  STACK_LIMIT: 20,
  /** Allocation cells of the heap, type descriptors, the descriptor of the type of the record named `id`. */
  CELLS: 21,
  DESCRIPTORS: 22,
  DESCRIPTOR: 23,
  /** That type's distance from the start of the descriptors. */
  DESCRIPTOR_OFFSET: 24,
  /** The ancestor at depth `low` of the type of the record named `id`. */
  ANCESTOR: 25,
  /** Address of the complete display of the type of the record named `id`. */
  DISPLAY: 26,
  RETURN_ADDRESS: 27,
  /** The address of one of the jumps low … high in the code at offset `id`, each of Machine.jumpBytes. */
  JUMP_PLACE: 29,
  /** The low byte is 0 or 1; nothing is known of the others. */
  LOW_FLAG: 30,
  /** The low bits, mask `low`, of the reference named `id`. */
  TAG_BITS: 31,
  /** TYPE_KIND of the type of the object named `id`, and the length of the array named `id`. */
  TYPE_KIND: 32,
  ARRAY_LENGTH: 33,
  /**
   * The address at distance `low` = `high` from element x of the array with the name in `of` (elementLimit); id: the
   * type of the array; name, delta: those of x; room: x + room is at most the length.
   */
  ELEMENT: 34,
  /** The identity of the exception that was caught, and that of tag `id` of the module. */
  CAUGHT_TAG: 35,
  TAG: 36,
  /**
   * A slot of the heap without a header, or null; id: its class, or the negated name of a class that was looked up;
   * low: SLOT_FACTS; high: its bytes if they are constant; of, room: its bytes as a product.
   */
  FREE_SLOT: 37,
  /** The link in the free slot named `id`. */
  FREE_LINK: 38,
  /** A slot with array type `id` in its header, but no length. */
  NEW_ARRAY: 39,
  /** The class for the size in of, room; the address of the class's free list; the address of the class of a size. */
  SIZE_CLASS: 40,
  CLASS_CELL: 41,
  SIZE_CELL: 42,
  /**
   * 0, or 1 and the reference named `id` is of heap type `low`, and not null unless `room` is 1; TYPE_FLAG: in the low
   * byte only.
   */
  TYPE_TEST: 43,
  TYPE_FLAG: 44,
  /** The address of the code of the record named `id`. */
  RECORD_CODE: 45,
  /** The distance to the poll page in the word at offset `id` of the image, and the address at it from that word on. */
  POLL_DISTANCE: 46,
  POLL_PLACE: 47,
  /** Zero, or ones in all of the low `low` bytes and zeros above. */
  MASK: 48,
} as const;

/** By kind of value: 1 for the given kinds. */
function flagsOf(kinds: readonly number[]): Uint8Array {
  const flags = new Uint8Array(64);
  for (const kind of kinds) flags[kind] = 1;
  return flags;
}

/** By kind of value: 1 if column `id` is a name. */
const NAMES_ID = flagsOf([
  VALUE.RECORD_CONTEXT,
  VALUE.RECORD_MEMORY,
  VALUE.RECORD_LENGTH,
  VALUE.TYPE_ID,
  VALUE.DESCRIPTOR,
  VALUE.DESCRIPTOR_OFFSET,
  VALUE.ANCESTOR,
  VALUE.DISPLAY,
  VALUE.TAG_BITS,
  VALUE.TYPE_KIND,
  VALUE.ARRAY_LENGTH,
  VALUE.FREE_LINK,
  VALUE.TYPE_TEST,
  VALUE.TYPE_FLAG,
  VALUE.RECORD_CODE,
]);

/** By kind of value: 1 if `low`, `high` and `room` are not bounds; a join keeps them only if they are equal. */
const EXACT_KINDS = flagsOf([
  VALUE.ANCESTOR,
  VALUE.TAG_BITS,
  VALUE.NEW_ARRAY,
  VALUE.SIZE_CLASS,
  VALUE.CLASS_CELL,
  VALUE.SIZE_CELL,
  VALUE.TYPE_FLAG,
  VALUE.MASK,
]);

/**
 * Facts about a reference, in column `low`. OWN: a function of the own instance; OBJECT: null or an address; FRESH: the
 * object was allocated here, so its type is exactly `id`.
 */
export const REFERENCE_FACTS = { NOT_NULL: 1, OWN: 2, OBJECT: 4, FRESH: 8 } as const;
/** Facts about a slot of the heap, in column `low`. */
export const SLOT_FACTS = { NOT_NULL: 1, TAKEN: 2 } as const;
/**
 * Facts about a number, in column `id`. ZERO_OR_ODD: of every odd number, too; ENTRIES: a multiple of
 * Machine.jumpBytes.
 */
export const NUMBER_FACTS = { ODD: 1, ZERO_OR_ODD: 2, ENTRIES: 4 } as const;

/**
 * Lengths: of memory n, in bytes; of table n, in elements and in bytes; of arrays (elementLimit). A number with the
 * limit `productLimit(name, shift)` is the value of that name shifted left, less `room`. UNIT: the distance from the
 * limit of a table in elements to that in bytes. UNMASKED: from a limit to that of numbers which a compare has bounded,
 * but no mask, where masks are required. MASKED: no length, of a number that was masked.
 */
export const LIMIT = {
  MEMORY: 0,
  TABLE: 0x100000,
  TABLE_BYTES: 0x200000,
  UNIT: 0x100000,
  UNMASKED: 0x80000,
  MASKED: 0x17ffff,
  ELEMENTS: 0x300000,
  PRODUCT: 0x40000000,
} as const;
/** Names above this have no limits. */
const MAX_LIMIT_NAME = 1 << 26;

/**
 * The length of the array named `name`. With `shift`, a number with this limit is an index shifted left, and its room
 * counts elements. −1 if the name is too large.
 */
export function elementLimit(name: number, shift: number): number {
  return name > 0 && name < MAX_LIMIT_NAME ? LIMIT.ELEMENTS + name * 8 + shift : -1;
}

/** The limit of the value named `name`, shifted left (LIMIT). −1 if the name is too large. */
export function productLimit(name: number, shift: number): number {
  return name > 0 && name < MAX_LIMIT_NAME ? LIMIT.PRODUCT + name * 8 + shift : -1;
}

/** The name in limit `of`, 0 if it has none. */
export function limitName(of: number): number {
  return of < LIMIT.ELEMENTS ? 0 : (of - (of < LIMIT.PRODUCT ? LIMIT.ELEMENTS : LIMIT.PRODUCT)) >> 3;
}

/** The limit of a number that was masked and had limit `of` before. */
export function maskedLimit(of: number): number {
  if (of < 0) return LIMIT.MASKED;
  const isUnmasked = of < LIMIT.ELEMENTS && (of & (LIMIT.UNIT - 1)) >= LIMIT.UNMASKED && of !== LIMIT.MASKED;
  return isUnmasked ? of - LIMIT.UNMASKED : of;
}

export function limitShift(of: number): number {
  return of < LIMIT.ELEMENTS ? 0 : of & 7;
}

/** Locations that every state has, after the registers. */
export const PLACE = {
  /** Operands of the last compare. */
  LEFT: 16,
  RIGHT: 17,
  /** The result of the load, or the address, that is being evaluated. */
  RESULT: 18,
  ADDRESS: 19,
  /** Lower bounds of the lengths of the first memories and tables, in `low` (lengthPlace). */
  LENGTHS: 20,
  /** 1 if the overflow buffer has the payload of the exception that was caught. */
  PAYLOAD: 28,
  /** The first location that only some architectures have (Machine.firstSlot). */
  MORE: 29,
} as const;
/** Number of memories, and of tables, whose lengths have lower bounds. */
export const KNOWN_LENGTHS: number = (PLACE.PAYLOAD - PLACE.LENGTHS) / 2;

/** The location of the lower bound of length `limit`, 0: none. */
export function lengthPlace(limit: number): number {
  if (limit < KNOWN_LENGTHS) return PLACE.LENGTHS + limit;
  const table = limit - LIMIT.TABLE;
  return table >= 0 && table < KNOWN_LENGTHS ? PLACE.LENGTHS + KNOWN_LENGTHS + table : 0;
}

/** Kinds of values that a compare with a length bounds. */
const HAVE_LIMITS = flagsOf([VALUE.NUMBER, VALUE.MEMORY, VALUE.LENGTH, VALUE.ARRAY_LENGTH]);
/** Kinds of values that are bounded above with the others that have their name. */
const BOUNDED_KINDS = flagsOf([VALUE.NUMBER, VALUE.LENGTH, VALUE.ARRAY_LENGTH]);
/** Kinds of values that always have 32 bits. */
const SHORT_KINDS = flagsOf([
  VALUE.TYPE_ID,
  VALUE.EXPECTED_TYPE,
  VALUE.ANCESTOR,
  VALUE.TAG_BITS,
  VALUE.TYPE_KIND,
  VALUE.ARRAY_LENGTH,
  VALUE.TYPE_TEST,
]);

/** The largest value in 32 bits. */
export const MAX32 = 0xffffffff;
/** Arithmetic above this is not exact in a double. */
export const EXACT = 2 ** 53;

/** Bytes that a location has in all columns. */
const LOCATION_BYTES = 5 * 8 + 3 * 4 + 1;
/** Locations for which facts have room at first. Capacities are multiples of 8, which aligns the columns. */
const FIRST_CAPACITY = 64;

/** Facts about all locations at one point. All columns are parts of one buffer, which is copied at once. */
export class Facts {
  /** Steps are kept; otherwise all are 1. */
  hasSteps = false;
  /** Locations in use. */
  count: number = PLACE.MORE;
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

  constructor(capacity: number = FIRST_CAPACITY) {
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
  copyAll(from: Facts): void {
    const { count } = from;
    this.count = count;
    if (this.capacity === from.capacity) return this.#all.set(from.#all);
    this.reserve(count);
    for (let l = 0; l < count; l++) copyOne(this, l, from, l);
  }

  /** Location `l` has a value of `kind`, named `name` (0: no name), without step and limit. */
  set(l: number, kind: number, id: number, low: number, high: number, name: number): void {
    this.kind[l] = kind;
    this.id[l] = id;
    this.low[l] = low;
    this.high[l] = high;
    this.name[l] = name;
    this.delta[l] = 0;
    this.step[l] = 1;
    this.room[l] = 0;
    this.of[l] = -1;
  }

  /** Location `l` has a number about which only its bounds are known. */
  number(l: number, low: number, high: number, name: number): void {
    this.set(l, VALUE.NUMBER, 0, low, high, name);
  }

  /** Nothing is known about location `l`. */
  forget(l: number): void {
    this.set(l, VALUE.NUMBER, 0, 0, Infinity, 0);
  }

  /** Location `to` has the value of location `from`. */
  copy(to: number, from: number): void {
    copyOne(this, to, this, from);
  }

  isNumber(l: number): boolean {
    return this.kind[l] === VALUE.NUMBER;
  }

  /** The outcome of a test at location `l` is used as a number: the meaning of the test is forgotten. */
  takeNumber(l: number): void {
    if (this.kind[l] !== VALUE.TYPE_TEST) return;
    const delta = this.delta[l];
    this.number(l, 0, 1, this.name[l]);
    this.delta[l] = delta;
  }

  /** Whether the value is known exactly. */
  isConstant(l: number): boolean {
    return this.kind[l] === VALUE.NUMBER && this.low[l] === this.high[l];
  }

  /** Whether the value is below 2^32. */
  isShort(l: number): boolean {
    const kind = this.kind[l];
    if (kind === VALUE.NUMBER || kind === VALUE.LENGTH) return this.high[l] <= MAX32;
    if (kind === VALUE.REFERENCE) return this.id[l] === HEAP.i31;
    return SHORT_KINDS[kind] !== 0;
  }

  /** Whether the location holds the start of object (kind, id). */
  isStart(l: number, kind: number, id: number): boolean {
    return this.kind[l] === kind && this.id[l] === id && this.low[l] === 0 && this.high[l] === 0;
  }

  /** Adds the constant `amount` to the value or distance of location `l`, which does not wrap. */
  shift(l: number, amount: number): void {
    this.low[l] += amount;
    this.high[l] += amount;
    if (this.kind[l] === VALUE.ELEMENT) return;
    if (this.kind[l] === VALUE.NUMBER) this.id[l] = 0;
    this.delta[l] += amount;
    this.moveRoom(l, amount);
  }

  /** The value of location `l` has grown by `amount`; the room of a shifted index counts elements, and is lost. */
  moveRoom(l: number, amount: number): void {
    const of = this.of[l];
    if (of >= LIMIT.ELEMENTS && of < LIMIT.PRODUCT && (of & 7) !== 0 && amount !== 0) this.of[l] = -1;
    this.room[l] -= amount;
  }

  /** The value of location `x`, and of all with its name, is at most `bound`. */
  boundAbove(x: number, bound: number): void {
    const name = this.name[x], delta = this.delta[x];
    if (bound < this.high[x]) this.#lowerTo(x, bound);
    if (name === 0) return;
    for (let l = 0; l < this.count; l++) {
      if (this.name[l] !== name || BOUNDED_KINDS[this.kind[l]] === 0) continue;
      const own = bound + this.delta[l] - delta;
      if (own < this.high[l]) this.#lowerTo(l, own);
    }
  }

  /** The number at location `l` is at most `bound`. */
  #lowerTo(l: number, bound: number): void {
    const { low, step } = this;
    this.high[l] = step[l] === 1 || bound < low[l] ? bound : low[l] + Math.floor((bound - low[l]) / step[l]) * step[l];
  }

  /** The number at location `l` is at least `bound`. */
  #raiseTo(l: number, bound: number): void {
    const { low, step } = this;
    low[l] = step[l] === 1 ? bound : low[l] + Math.ceil((bound - low[l]) / step[l]) * step[l];
  }

  /** The step of the number at location `l`; 0 for a constant. */
  stepOf(l: number): number {
    return this.hasSteps && this.low[l] === this.high[l] ? 0 : this.step[l];
  }

  /** Sets the step of the number at location `l`; 0 for a constant. */
  setStep(l: number, step: number): void {
    this.step[l] = this.hasSteps && step !== 0 ? step : 1;
  }

  /** The value of location `x`, and of all with its name, is at least `bound`. */
  boundBelow(x: number, bound: number): void {
    const name = this.name[x], delta = this.delta[x];
    if (bound > this.low[x]) this.#raiseTo(x, bound);
    if (name === 0) return;
    for (let l = 0; l < this.count; l++) {
      if (this.name[l] !== name || this.kind[l] !== VALUE.NUMBER) continue;
      const own = bound + this.delta[l] - delta;
      if (own > this.low[l]) this.#raiseTo(l, own);
    }
  }

  /** The value of location `x` plus `room` is at most length `limit`; so for all with its name. */
  boundByLength(x: number, room: number, limit: number): void {
    const name = this.name[x], delta = this.delta[x];
    for (let l = 0; l < this.count; l++) {
      if (l !== x && (name === 0 || this.name[l] !== name)) continue;
      if (this.kind[l] === VALUE.ELEMENT && limit === this.of[l]) {
        this.room[l] = Math.max(this.room[l], room + delta - this.delta[l]);
        continue;
      }
      if (HAVE_LIMITS[this.kind[l]] === 0) continue;
      const own = room + delta - this.delta[l];
      if (this.of[l] === limit && this.room[l] >= own) continue;
      this.room[l] = own;
      this.of[l] = limit;
    }
  }
}

/** Location `to` of `into` has the value of location `l` of `from`. */
function copyOne(into: Facts, to: number, from: Facts, l: number): void {
  into.kind[to] = from.kind[l];
  into.id[to] = from.id[l];
  into.low[to] = from.low[l];
  into.high[to] = from.high[l];
  into.name[to] = from.name[l];
  into.delta[to] = from.delta[l];
  into.step[to] = from.step[l];
  into.room[to] = from.room[l];
  into.of[to] = from.of[l];
}

/** The location after `l` that has a name at the heads of blocks: no operand of a compare, address or length. */
function next(l: number): number {
  return l === PLACE.LEFT - 1 ? PLACE.PAYLOAD : l + 1;
}

/** Facts at the heads of blocks. */
export class SavedFacts {
  /** Those of the block that is being saved or joined. */
  #facts = new Facts();
  /** By block; absent until a path reaches it. */
  readonly #blocks: Facts[] = [];
  /** By capacity: facts that are not in use. */
  readonly #free: Map<number, Facts[]> = new Map();
  /** During one join: pairs of a location whose facts refer to a name, and the location that has the name. */
  readonly #referents: number[] = [];
  /** During one join: rows of two names of an array, here and on the path, and its new name (#nameArray). */
  readonly #arrays: number[] = [];
  /** The outcome of #compare. */
  #differing: Int32Array = new Int32Array(64);
  #haveSameNames = true;
  /** Per block: number of locations. */
  count: Int32Array = new Int32Array(64);
  /**
   * Name of the block's first location, as a join names it; the other locations follow, then a second name of each
   * location, then one for the array of which it has an element's address (NAMES_PER_LOCATION).
   */
  nameBase: Int32Array = new Int32Array(64);
  visits: Int32Array = new Int32Array(64);
  /** Bounds that grow in a loop are widened at once, to those of their size: fewer interpretations, weaker facts. */
  isCoarse = false;
  /** The first bound to which numbers are widened then. */
  firstBound = MAX32;
  /** During one join: the edge closes a loop. */
  #isBack = false;
  /** Bounds to which numbers are likely to grow, ascending. */
  thresholds: readonly number[] = [];
  /** The same for numbers at the heads of loops whose inductions are being found, by block. */
  readonly loopThresholds: Map<number, readonly number[]> = new Map();
  /** Inductions of the loops that begin at blocks (inductions.ts), by block. */
  readonly inductions: Map<number, Inductions> = new Map();
  /** Inductions that an earlier interpretation found, by block; undefined while they are being found. */
  hints: ReadonlyMap<number, Hint> | undefined;
  /** Inductions are found or used. */
  followsLoops = false;
  /** The heap type of the function whose record is at a distance in the context; undefined: no record. */
  recordType: (distance: number) => number | undefined = () => undefined;

  reset(blocks: number): void {
    for (const facts of this.#blocks) if (facts !== undefined) this.give(facts);
    if (blocks > this.count.length) {
      this.count = new Int32Array(blocks * 2);
      this.nameBase = new Int32Array(blocks * 2);
      this.visits = new Int32Array(blocks * 2);
    }
    this.inductions.clear();
    this.loopThresholds.clear();
    this.#blocks.length = 0;
    this.#blocks.length = blocks;
    this.visits.fill(0, 0, blocks);
  }

  /** Whether block `k` has been reached. */
  has(k: number): boolean {
    return this.#blocks[k] !== undefined;
  }

  /**
   * Saves the facts of the first path to block `k`, which keeps the object; names are numbered from `nameBase` on.
   * `loop`: the block is the head of a loop, so all locations are renamed.
   */
  save(k: number, facts: Facts, nameBase: number, loop: boolean): void {
    const own = this.#facts = facts;
    this.#blocks[k] = own;
    this.count[k] = facts.count;
    this.nameBase[k] = nameBase;
    // No flags and no address are known at the head of a block.
    for (let place: number = PLACE.LEFT; place <= PLACE.ADDRESS; place++) own.forget(place);
    this.#arrays.length = 0;
    if (loop) this.#rename(k);
    this.#nameAll(k);
    if (!loop || !this.followsLoops) return;
    const inductions = new Inductions(own, facts.count, this.hints?.get(k));
    this.inductions.set(k, inductions);
    inductions.apply();
  }

  /** Facts with room for `capacity` locations; their contents are unspecified. */
  take(capacity: number): Facts {
    return this.#free.get(capacity)?.pop() ?? new Facts(capacity);
  }

  /** Keeps facts that are no longer in use for `take`. */
  give(facts: Facts): void {
    const free = this.#free.get(facts.capacity);
    if (free === undefined) this.#free.set(facts.capacity, [facts]);
    else free.push(facts);
  }

  /** Gives a name to every location of block `k` that has none. */
  #nameAll(k: number): void {
    const { name, delta } = this.#facts;
    const count = this.count[k];
    for (let l = 0; l < count; l = next(l)) {
      if (name[l] !== 0) continue;
      name[l] = this.nameBase[k] + l;
      delta[l] = 0;
    }
  }

  /** Gives up the bounds and the name of the number at location `l` of block `k`, which was saved last. */
  widen(k: number, l: number): void {
    const own = this.#facts;
    if (!own.isNumber(l)) return;
    own.low[l] = 0;
    own.high[l] = this.#coarseBound(k, own.high[l]);
    own.name[l] = this.#ownName(k, l);
    own.delta[l] = 0;
  }

  /**
   * Locations of block `k`, which was saved last, that are known by the name of one that was widened get the name of
   * the first of them: a back edge that writes that one keeps theirs.
   */
  renameWidened(k: number): void {
    const { name } = this.#facts;
    const count = this.count[k], base = this.nameBase[k];
    for (let l = 0; l < count; l = next(l)) {
      const old = name[l], place = old - base;
      if (place >= 0 && place < l && name[place] !== old) this.#moveName(k, old, l);
    }
  }

  /** Locations and facts with the name `old` have that of location `to` of block `k`. */
  #moveName(k: number, old: number, to: number): void {
    const { name, delta, kind, id, of } = this.#facts;
    const count = this.count[k], renamed = this.nameBase[k] + to, distance = delta[to];
    for (let l = 0; l < count; l++) {
      if (name[l] === old) {
        name[l] = renamed;
        delta[l] -= distance;
      }
      if (distance !== 0) continue;
      if (NAMES_ID[kind[l]] !== 0 && id[l] === old) id[l] = renamed;
      if (of[l] < LIMIT.ELEMENTS || limitName(of[l]) !== old) continue;
      of[l] = of[l] < LIMIT.PRODUCT
        ? elementLimit(renamed, limitShift(of[l]))
        : productLimit(renamed, limitShift(of[l]));
      // An element is one of a known array.
      if (of[l] < 0 && kind[l] === VALUE.ELEMENT) this.#loseKind(k, l);
    }
  }

  /** Loads the facts of block `k` into `facts`. */
  load(k: number, facts: Facts): void {
    facts.copyAll(this.#blocks[k]);
  }

  /**
   * Gives every location of block `k` a name of that block: that of the first location with its name. Facts that refer
   * to a name which no location has are lost.
   */
  #rename(k: number): void {
    const { name, delta, kind } = this.#facts;
    const count = this.count[k], base = this.nameBase[k];
    for (let l = 0; l < count; l++) {
      if (NAMES_ID[kind[l]] !== 0) this.#renameId(k, l);
      if (kind[l] === VALUE.FREE_SLOT && this.#facts.id[l] < 0) this.#facts.id[l] = NO_CLASS;
      if (this.#facts.of[l] >= LIMIT.ELEMENTS) this.#renameLimit(k, l);
    }
    for (let l = count - 1; l >= 0; l--) {
      if (name[l] === 0) continue;
      let same = 0;
      while (name[same] !== name[l]) same++;
      name[l] = base + same;
      delta[l] = same === l ? 0 : delta[l] - delta[same];
    }
  }

  /** The block's name for the value named `old`, 0 if no location has it. */
  #newName(k: number, old: number): number {
    const { name, delta } = this.#facts;
    const count = this.count[k];
    let l = 0;
    while (l < count && name[l] !== old) l++;
    return l < count && delta[l] === 0 && old !== 0 ? this.nameBase[k] + l : 0;
  }

  #renameId(k: number, l: number): void {
    const { id, kind } = this.#facts;
    const name = this.#newName(k, id[l]);
    if (name !== 0) id[l] = name;
    else if (SHORT_KINDS[kind[l]] !== 0) this.#facts.number(l, 0, kind[l] === VALUE.TYPE_TEST ? 1 : MAX32, 0);
    else this.#facts.forget(l);
  }

  #renameLimit(k: number, l: number): void {
    const { of, kind } = this.#facts;
    const name = this.#newName(k, limitName(of[l])), shift = limitShift(of[l]);
    if (name !== 0) of[l] = of[l] < LIMIT.PRODUCT ? elementLimit(name, shift) : productLimit(name, shift);
    else if (kind[l] === VALUE.ELEMENT) this.#nameArray(k, l, limitName(of[l]), 0);
    else of[l] = -1;
  }

  /** Whether limit `of` has a name that block `k` has given to an array. */
  #isArrayName(k: number, of: number): boolean {
    const place = limitName(of) - this.nameBase[k] - 2 * this.count[k];
    return place >= 0 && place < this.count[k];
  }

  /**
   * Names the array of the element address at location `l`, a reference to which no location has on both paths: the
   * array is named `own` here and `other` on the path, 0 if there is no other path. Elements with the same two names,
   * and no others, get the same new one: of elements in one array, some may be in another on the path, where the name
   * is the same for the rest. Returns whether the name has changed.
   */
  #nameArray(k: number, l: number, own: number, other: number): boolean {
    const rows = this.#arrays;
    const base = this.nameBase[k] + 2 * this.count[k];
    let name = this.#isArrayName(k, elementLimit(own, 0)) ? own : base + l;
    for (let at = 0; at < rows.length; at += 3) {
      if (rows[at] === own && rows[at + 1] === other) return this.#setArray(k, l, rows[at + 2]);
      if (rows[at + 2] === name) name = base + l;
    }
    for (let at = 0; at < rows.length; at += 3) if (rows[at + 2] === name) return this.#loseKind(k, l);
    rows.push(own, other, name);
    return this.#setArray(k, l, name);
  }

  #setArray(k: number, l: number, name: number): boolean {
    const limit = elementLimit(name, 0);
    if (limit < 0) return this.#loseKind(k, l);
    const changed = this.#facts.of[l] !== limit;
    this.#facts.of[l] = limit;
    return changed;
  }

  /**
   * The values that location `l` refers to on both paths are in one place, which gets a new name; returns false if
   * there is no such place.
   */
  #noteReferent(k: number, l: number, facts: Facts): boolean {
    return this.#notePlace(k, l, this.#facts.id[l], facts, facts.id[l]);
  }

  /** The same for the arrays whose lengths are the limits of location `l` on both paths. */
  #noteLimit(k: number, l: number, facts: Facts): boolean {
    const own = this.#facts.of[l], other = facts.of[l];
    const areArrays = own >= LIMIT.ELEMENTS && own < LIMIT.PRODUCT && other >= LIMIT.ELEMENTS && other < LIMIT.PRODUCT;
    return areArrays && limitShift(own) === limitShift(other) &&
      this.#notePlace(k, l, limitName(own), facts, limitName(other));
  }

  /** Location `l` refers to the value named `old` here, and to that named `other` on the path. */
  #notePlace(k: number, l: number, old: number, facts: Facts, other: number): boolean {
    const { name, delta } = this.#facts;
    const count = Math.min(this.count[k], facts.count);
    if (this.#referents.length >= MAX_REFERENTS) return false;
    for (let place = 0; place < count; place++) {
      if (name[place] !== old || facts.name[place] !== other) continue;
      if (delta[place] !== 0 || facts.delta[place] !== 0) continue;
      this.#referents.push(l, place);
      return true;
    }
    return false;
  }

  /** Facts that refer to a place have its new name; returns whether there are any. */
  #renameReferents(k: number): boolean {
    const { name, delta, kind, id, of } = this.#facts;
    const rows = this.#referents;
    for (let at = 0; at < rows.length; at += 2) {
      const l = rows[at], place = rows[at + 1];
      if (delta[place] !== 0 || name[place] === 0) this.#loseReferent(k, l);
      else if (kind[l] === VALUE.ELEMENT) of[l] = elementLimit(name[place], limitShift(of[l]));
      else id[l] = name[place];
      if (kind[l] === VALUE.ELEMENT && of[l] < 0) this.#loseKind(k, l);
    }
    const any = rows.length > 0;
    rows.length = 0;
    return any;
  }

  /**
   * Nothing is known any more of the value that location `l` refers to; on both paths, the entry has one kind. Only its
   * size stays.
   */
  #loseReferent(k: number, l: number): boolean {
    const kind = this.#facts.kind[l];
    if (SHORT_KINDS[kind] === 0) return this.#loseKind(k, l);
    this.#facts.number(l, 0, kind === VALUE.TYPE_TEST ? 1 : MAX32, this.#ownName(k, l));
    return true;
  }

  /** Whether `own`, a name at the head of block `k`, is that of the value which the path with `facts` names `other`. */
  #isSameName(k: number, own: number, facts: Facts, other: number): boolean {
    const place = own - this.nameBase[k];
    if (place < 0 || place >= this.count[k]) return own === other;
    const { name, delta } = this.#facts;
    return place < facts.count && name[place] === own && delta[place] === 0 && facts.name[place] === other &&
      facts.delta[place] === 0;
  }

  #isSameLimit(k: number, own: number, facts: Facts, other: number): boolean {
    if (own < LIMIT.ELEMENTS || other < LIMIT.ELEMENTS) return own === other;
    const isAlike = own < LIMIT.PRODUCT === other < LIMIT.PRODUCT && limitShift(own) === limitShift(other);
    return isAlike && this.#isSameName(k, limitName(own), facts, limitName(other));
  }

  /** Weakens the facts of block `k` to those that also hold in `facts`; returns whether any was lost. */
  join(k: number, facts: Facts, isBack: boolean): boolean {
    this.visits[k]++;
    this.#isBack = isBack;
    this.#facts = this.#blocks[k];
    let changed = false;
    const count = Math.min(this.count[k], facts.count);
    const inductions = this.inductions.get(k);
    if (isBack) inductions?.turn(facts, count);
    else inductions?.enter(facts, count);
    inductions?.eachLost((l) => {
      this.#loseKind(k, l);
      changed = true;
    });
    const differing = this.#compare(k, facts, count);
    this.#arrays.length = 0;
    // A test for null is found by facts that joining its reference drops.
    for (let d = 0; d < differing; d++) {
      const l = this.#differing[d];
      if (inductions !== undefined || !this.#joinNullTest(k, l, facts)) continue;
      changed = true;
      this.#differing[d] = -1;
    }
    for (let d = 0; d < differing; d++) {
      const l = this.#differing[d];
      if (l < 0) continue;
      // The bounds of a follower come from those of the counter.
      if (inductions?.isFollower(l) !== true && this.#joinLocation(k, l, facts)) changed = true;
    }
    if (inductions?.apply() === true) changed = true;
    if (this.#joinLengths(k, facts)) changed = true;
    for (let l = count; l < this.count[k]; l++) if (this.#loseValue(k, l)) changed = true;
    // A location that lost facts may have lost the name that others are known by.
    if ((changed || !this.#haveSameNames) && this.#joinNames(k, facts, count)) changed = true;
    if (this.#renameReferents(k)) changed = true;
    return changed;
  }

  /**
   * Compares the first `count` locations of block `k` with `facts`: notes those whose facts may not hold, apart from
   * their names, and returns their number; notes whether all names hold.
   */
  #compare(k: number, facts: Facts, count: number): number {
    const { kind, id, low, high, of, step, name } = this.#facts;
    const { kind: kinds, id: ids, low: lows, high: highs } = facts;
    const base = this.nameBase[k], second = base + this.count[k];
    if (count > this.#differing.length) this.#differing = new Int32Array(count * 2);
    const places = this.#differing;
    let differing = 0, haveSameNames = true;
    for (let l = 0; l < count; l = next(l)) {
      const own = kind[l], place = name[l] - l;
      if (place !== base && place !== second && haveSameNames) haveSameNames = this.#isStable(k, l, facts);
      // Values without references to names and limits, whose bounds hold.
      if (own === kinds[l] && of[l] < 0 && id[l] === ids[l] && NAMES_ID[own] === 0) {
        const holds = own === VALUE.NUMBER
          ? lows[l] >= low[l] && highs[l] <= high[l] && step[l] === 1
          : lows[l] === low[l] && highs[l] === high[l];
        if (holds) continue;
      }
      places[differing++] = l;
    }
    this.#haveSameNames = haveSameNames;
    return differing;
  }

  #isKnown(l: number): boolean {
    const f = this.#facts;
    return f.kind[l] !== VALUE.NUMBER || f.high[l] !== Infinity || f.low[l] !== 0 || f.of[l] >= 0;
  }

  #joinLocation(k: number, l: number, facts: Facts): boolean {
    const own = this.#facts;
    const kind = own.kind[l], other = facts.kind[l];
    if (kind === VALUE.REFERENCE || other === VALUE.REFERENCE) return this.#joinReference(k, l, facts);
    if (this.#areRecords(l, facts)) return this.#joinReference(k, l, facts);
    if (kind === VALUE.TYPE_TEST || other === VALUE.TYPE_TEST) return this.#joinTest(k, l, facts);
    if (kind !== other) return this.#joinKinds(k, l, facts);
    if (kind === VALUE.FREE_SLOT) return this.#joinSlot(k, l, facts);
    if (kind === VALUE.NUMBER) return this.#joinNumber(k, l, facts);
    if (EXACT_KINDS[kind] !== 0 && !this.#isSameValue(k, l, facts)) return this.#loseKind(k, l);
    const isNamed = NAMES_ID[kind] !== 0;
    const isSame = isNamed ? this.#isSameName(k, own.id[l], facts, facts.id[l]) : own.id[l] === facts.id[l];
    if (!isSame && !(isNamed && this.#noteReferent(k, l, facts))) return this.#loseReferent(k, l);
    if (kind === VALUE.ELEMENT) return this.#joinElement(k, l, facts);
    let changed = this.#joinBounds(k, l, facts);
    if (this.#joinRoom(k, l, facts)) changed = true;
    return changed;
  }

  /** Whether `low`, `high` and `room` of a value of EXACT_KINDS are equal on both paths. */
  #isSameValue(k: number, l: number, facts: Facts): boolean {
    const own = this.#facts;
    const isSame = own.low[l] === facts.low[l] && own.high[l] === facts.high[l] && own.room[l] === facts.room[l];
    return isSame && this.#isSameLimit(k, own.of[l], facts, facts.of[l]);
  }

  #joinNumber(k: number, l: number, facts: Facts): boolean {
    const own = this.#facts;
    // The bounds of a constant imply facts that the joined number has to state.
    const known = numberFacts(own, l), common = known & numberFacts(facts, l);
    let changed = this.#joinBounds(k, l, facts);
    if (this.#joinRoom(k, l, facts)) changed = true;
    if (known !== common) changed = true;
    if (changed) own.id[l] = common;
    return changed;
  }

  /** A type test, joined with the same test or with the constant 0: the outcome of a test that failed. */
  #joinTest(k: number, l: number, facts: Facts): boolean {
    const own = this.#facts;
    if (isZero(facts, l)) return false;
    const isTest = own.kind[l] === VALUE.TYPE_TEST;
    if (isTest && facts.kind[l] === VALUE.TYPE_TEST) {
      const isSame = this.#isSameName(k, own.id[l], facts, facts.id[l]);
      if (!isSame && !this.#noteReferent(k, l, facts)) return this.#loseReferent(k, l);
      return this.#joinHeap(k, l, facts.low[l], facts.room[l]) || !isSame;
    }
    if (isTest && isOne(facts, l)) {
      const place = namedPlace(own, own.id[l], Math.min(this.count[k], facts.count));
      if (place >= 0 && isNullAt(facts, place)) return this.#joinHeap(k, l, own.low[l], 1);
    }
    if (isZero(own, l)) {
      const place = namedPlace(facts, facts.id[l], Math.min(this.count[k], facts.count));
      if (place >= 0 && this.#makeTest(k, l, place, facts.low[l], facts.room[l])) return true;
    }
    if (!isBit(own, l) || !isBit(facts, l)) return this.#joinKinds(k, l, facts);
    own.number(l, 0, 1, this.#ownName(k, l));
    return true;
  }

  /** A test that succeeds for heap type `heap`, and null with `orNull` = 1, too; returns whether a fact was lost. */
  #joinHeap(k: number, l: number, heap: number, orNull: number): boolean {
    const { low, high, room } = this.#facts;
    const common = low[l] === heap || heap === bottomOf(low[l]) ? low[l] : low[l] === bottomOf(heap) ? heap : undefined;
    if (common === undefined) return this.#loseReferent(k, l);
    const changed = common !== low[l] || orNull > room[l];
    low[l] = high[l] = common;
    room[l] = Math.max(room[l], orNull);
    return changed;
  }

  /** Location `l` becomes the test of the reference in location `place`; returns false if there are too many. */
  #makeTest(k: number, l: number, place: number, heap: number, orNull: number): boolean {
    if (this.#referents.length >= MAX_REFERENTS) return false;
    this.#facts.set(l, VALUE.TYPE_TEST, 0, heap, heap, this.#ownName(k, l));
    this.#facts.room[l] = orNull;
    this.#referents.push(l, place);
    return true;
  }

  /**
   * One path has 1 and a null reference where the other has 0 and one that is not null, or another test of it: the
   * outcome of a test for null. Returns false if there is no such reference.
   */
  #joinNullTest(k: number, l: number, facts: Facts): boolean {
    const own = this.#facts;
    if (isOne(own, l) && facts.kind[l] === VALUE.TYPE_TEST) return this.#joinNullBefore(k, l, facts);
    const isOwn = isOne(own, l) && isZero(facts, l);
    if (!isOwn && !(isZero(own, l) && isOne(facts, l))) return false;
    const nulls = isOwn ? own : facts, others = isOwn ? facts : own;
    const count = Math.min(this.count[k], facts.count);
    for (let place = 0; place < count; place++) {
      if (!isNullAt(nulls, place) || nulls.kind[place] !== VALUE.REFERENCE) continue;
      const isOther = others.kind[place] === VALUE.REFERENCE && (others.low[place] & REFERENCE_FACTS.NOT_NULL) !== 0;
      if (isOther) return this.#makeTest(k, l, place, nulls.id[place], 1);
    }
    return false;
  }

  /** This path has 1, the other the test of a reference that is null here. */
  #joinNullBefore(k: number, l: number, facts: Facts): boolean {
    const place = namedPlace(facts, facts.id[l], Math.min(this.count[k], facts.count));
    return place >= 0 && isNullAt(this.#facts, place) && this.#makeTest(k, l, place, facts.low[l], 1);
  }

  /** Values of different kinds: only their size is known. */
  #joinKinds(k: number, l: number, facts: Facts): boolean {
    return this.#facts.isShort(l) && facts.isShort(l) ? this.#joinShort(k, l) : this.#loseKind(k, l);
  }

  /** Values of different kinds that have 32 bits on both paths. */
  #joinShort(k: number, l: number): boolean {
    const own = this.#facts;
    if (own.isNumber(l) && own.low[l] === 0 && own.high[l] === MAX32 && own.of[l] < 0 && own.id[l] === 0) return false;
    own.number(l, 0, MAX32, this.#ownName(k, l));
    return true;
  }

  /** Slots of the heap: the bytes that both have. */
  #joinSlot(k: number, l: number, facts: Facts): boolean {
    const own = this.#facts;
    const low = own.low[l] & facts.low[l], high = Math.min(own.high[l], facts.high[l]);
    const isSame = own.room[l] === facts.room[l] && this.#isSameLimit(k, own.of[l], facts, facts.of[l]);
    // The class decides only which list the slot may be taken from.
    const id = own.id[l] === facts.id[l] ? own.id[l] : NO_CLASS;
    const of = isSame ? own.of[l] : -1;
    if (own.low[l] === low && own.high[l] === high && own.of[l] === of && own.id[l] === id) return false;
    own.low[l] = low;
    own.high[l] = high;
    own.of[l] = of;
    own.id[l] = id;
    return true;
  }

  /** Element addresses in one array, at distances that differ by whole elements. */
  #joinElement(k: number, l: number, facts: Facts): boolean {
    const own = this.#facts;
    const steps = (facts.low[l] - own.low[l]) / elementBytes(own.id[l]);
    const isAhead = steps === 0 || (Number.isInteger(steps) && steps > 0 && facts.name[l] !== 0);
    if (!isAhead) return this.#loseKind(k, l);
    const isSame = !this.#isArrayName(k, own.of[l]) &&
      (this.#isSameLimit(k, own.of[l], facts, facts.of[l]) || this.#noteLimit(k, l, facts));
    const isRenamed = !isSame && this.#nameArray(k, l, limitName(own.of[l]), limitName(facts.of[l]));
    if (own.kind[l] !== VALUE.ELEMENT) return true;
    if (steps > 0) moveIndex(facts, l, steps);
    if (facts.room[l] >= own.room[l]) return isRenamed;
    const room = facts.room[l];
    // Widening: a room that shrinks in each interpretation of a loop becomes one element, then zero.
    own.room[l] = this.visits[k] <= NARROW_VISITS ? room : room >= 1 ? 1 : room >= 0 ? 0 : -Infinity;
    return true;
  }

  /** The other path has no value at `l`; returns whether a fact was lost, such as that two values are equal. */
  #loseValue(k: number, l: number): boolean {
    const changed = this.#facts.name[l] !== this.#ownName(k, l);
    return this.#loseKind(k, l) || changed;
  }

  #loseKind(k: number, l: number): boolean {
    const changed = this.#isKnown(l);
    this.#facts.forget(l);
    // A number and the distance of an address may have had one name.
    this.#facts.name[l] = this.#ownName(k, l);
    return changed;
  }

  /** A name that no other location has. */
  #ownName(k: number, l: number): number {
    return this.nameBase[k] + this.count[k] + l;
  }

  /** Whether both values are addresses of different records, or one is null. */
  #areRecords(l: number, facts: Facts): boolean {
    const own = this.#facts;
    if (own.kind[l] !== VALUE.CONTEXT && facts.kind[l] !== VALUE.CONTEXT) return false;
    if (own.kind[l] === facts.kind[l] && own.low[l] === facts.low[l] && own.high[l] === facts.high[l]) return false;
    return this.#heapAt(own, l) !== undefined && this.#heapAt(facts, l) !== undefined;
  }

  /** The heap type of the reference at location `l`, which may be the address of a record in the context. */
  #heapAt(facts: Facts, l: number): number | undefined {
    const isRecord = facts.kind[l] === VALUE.CONTEXT && facts.low[l] === facts.high[l];
    return isRecord ? this.recordType(facts.low[l]) : referenceHeap(facts, l);
  }

  /** Null and i31 references are numbers where they are constants, those of imported functions addresses. */
  #joinReference(k: number, l: number, facts: Facts): boolean {
    const own = this.#facts;
    const heap = this.#heapAt(own, l), other = this.#heapAt(facts, l);
    const id = heap === undefined || other === undefined ? undefined : commonHeapOf(heap, other);
    if (id === undefined) return this.#loseKind(k, l);
    const low = referenceFacts(own, l) & referenceFacts(facts, l) & (heap === other ? -1 : ~REFERENCE_FACTS.FRESH);
    const high = Math.min(leastLength(own, l), leastLength(facts, l));
    if (own.kind[l] === VALUE.REFERENCE && own.id[l] === id && own.low[l] === low && own.high[l] === high) return false;
    const isNamed = own.delta[l] === 0 && own.name[l] !== 0;
    own.set(l, VALUE.REFERENCE, id, low, high, isNamed ? own.name[l] : this.#ownName(k, l));
    return true;
  }

  /** Lower bounds of lengths. */
  #joinLengths(k: number, { low }: Facts): boolean {
    const own = this.#facts.low;
    let changed = false;
    for (let place: number = PLACE.LENGTHS; place < PLACE.PAYLOAD; place++) {
      if (low[place] >= own[place]) continue;
      own[place] = this.#widens(k) ? 0 : low[place];
      changed = true;
    }
    return changed;
  }

  #joinBounds(k: number, l: number, facts: Facts): boolean {
    const own = this.#facts;
    let changed = this.#joinStep(l, facts);
    const { step } = own;
    if (facts.low[l] < own.low[l]) {
      const low = facts.low[l];
      own.low[l] = !this.#widens(k) ? low : low >= 0 ? low % step[l] : -Infinity;
      if (own.low[l] === -Infinity) step[l] = 1;
      changed = true;
    }
    if (facts.high[l] > own.high[l]) {
      own.high[l] = this.#widens(k) ? this.#widened(k, l, facts.high[l]) : facts.high[l];
      changed = true;
    }
    return changed;
  }

  /** Whether bounds that still grow at block `k` are widened. With inductions, only at the heads of loops. */
  #widens(k: number): boolean {
    if (this.isCoarse && this.#isBack) return true;
    return this.visits[k] > NARROW_VISITS && (!this.followsLoops || this.inductions.has(k));
  }

  /** The common step of both paths, which is also a step between their lowest values. */
  #joinStep(l: number, facts: Facts): boolean {
    const own = this.#facts;
    if (!this.followsLoops || own.kind[l] !== VALUE.NUMBER) return false;
    const old = own.low[l] === own.high[l] ? 0 : own.step[l];
    if (old === 1) return false;
    const distance = Math.abs(own.low[l] - facts.low[l]);
    const step = distance <= EXACT ? commonDivisor(commonDivisor(old, facts.stepOf(l)), distance) : 1;
    own.step[l] = step === 0 ? 1 : step;
    return step !== old;
  }

  /**
   * The next bound to which a growing bound is widened: a constant of the function's compares, while a loop has been
   * interpreted a few times only.
   */
  #widened(k: number, l: number, high: number): number {
    if (this.isCoarse) return this.#coarseBound(k, high);
    const low = this.#facts.low[l], step = this.#facts.step[l];
    if (this.visits[k] <= THRESHOLD_VISITS) {
      for (const bound of this.thresholds) {
        const whole = low + Math.floor((bound - low) / step) * step;
        if (whole >= high) return whole;
      }
    }
    return high <= 0x7fffffff ? 0x7fffffff : high <= MAX32 ? MAX32 : Infinity;
  }

  #coarseBound(k: number, high: number): number {
    const threshold = this.loopThresholds.get(k)?.find((bound) => bound >= high);
    if (threshold !== undefined) return threshold;
    return high <= this.firstBound ? this.firstBound : high <= MAX32 ? MAX32 : Infinity;
  }

  #joinRoom(k: number, l: number, facts: Facts): boolean {
    const own = this.#facts;
    if (own.of[l] < 0) return false;
    // Only elements have names that the block gives to arrays (#nameArray).
    if (this.#isArrayName(k, own.of[l])) {
      own.of[l] = -1;
      return true;
    }
    if (this.#isSameLimit(k, own.of[l], facts, facts.of[l])) {
      if (own.of[l] >= LIMIT.PRODUCT && facts.room[l] !== own.room[l]) {
        own.of[l] = -1;
        return true;
      }
      if (facts.room[l] >= own.room[l]) return false;
      own.room[l] = facts.room[l];
      // Widening: a room that shrinks in each interpretation of a loop is dropped.
      if (this.visits[k] > NARROW_VISITS) own.of[l] = -1;
      return true;
    }
    own.of[l] = -1;
    return true;
  }

  /**
   * Names that differ between the paths become names of the block. Locations keep one name if the distance between them
   * is the same on both paths.
   */
  #joinNames(k: number, facts: Facts, count: number): boolean {
    const own = this.#facts;
    let groups = 0;
    let changed = false;
    for (let l = 0; l < count; l = next(l)) {
      if (this.#isStable(k, l, facts)) continue;
      const group = this.#groupOf(own.name[l], own.delta[l], facts.name[l], facts.delta[l], groups);
      if (group === groups && groups < MAX_GROUPS) {
        GROUP_PLACE[groups] = l;
        GROUP_OWN[groups] = own.name[l];
        GROUP_OTHER[groups] = facts.name[l];
        GROUP_OWN_DELTA[groups] = own.delta[l];
        GROUP_OTHER_DELTA[groups++] = facts.delta[l];
      }
      own.delta[l] = group < groups ? own.delta[l] - GROUP_OWN_DELTA[group] : 0;
      own.name[l] = this.nameBase[k] + (group < groups ? GROUP_PLACE[group] : l);
      changed = true;
    }
    return changed;
  }

  /** The group of locations at the same distance on both paths, or `groups` for none. */
  #groupOf(own: number, ownDelta: number, other: number, otherDelta: number, groups: number): number {
    if (own === 0 || other === 0) return groups;
    let g = 0;
    while (
      g < groups && (GROUP_OWN[g] !== own || GROUP_OTHER[g] !== other ||
        ownDelta - GROUP_OWN_DELTA[g] !== otherDelta - GROUP_OTHER_DELTA[g])
    ) g++;
    return g;
  }

  /** Whether the name of location `l` holds on the other path, too. */
  #isStable(k: number, l: number, facts: Facts): boolean {
    const own = this.#facts;
    const count = this.count[k];
    const place = own.name[l] - this.nameBase[k];
    if (place === l || place === count + l) return true;
    if (place < 0 || place >= count) return own.name[l] === facts.name[l] && own.delta[l] === facts.delta[l];
    if (own.name[place] !== own.name[l] || facts.name[l] === 0 || place >= facts.count) return false;
    return facts.name[place] === facts.name[l] && facts.delta[l] - facts.delta[place] === own.delta[l];
  }
}

/** Names that a block has for each location (SavedFacts.nameBase). */
export const NAMES_PER_LOCATION = 3;
/** The class of a slot that is not in a known free list. */
export const NO_CLASS = 0x7fffffff;
/** The null reference, of any hierarchy. */
const NULL_HEAP = 0;

/** The heap type of the reference at location `l`; undefined for other values. */
function referenceHeap(facts: Facts, l: number): number | undefined {
  const { kind, id, low, high } = facts;
  if (kind[l] === VALUE.REFERENCE) return id[l];
  if (kind[l] !== VALUE.NUMBER) return undefined;
  if (low[l] === 0 && high[l] === 0) return NULL_HEAP;
  return isInteger31(facts, l) ? HEAP.i31 : undefined;
}

/** Facts about the number at location `l` (NUMBER_FACTS), with those that its bounds imply. */
export function numberFacts({ id, low, high }: Facts, l: number): number {
  const { ODD, ZERO_OR_ODD } = NUMBER_FACTS;
  if (low[l] > 0 && (id[l] & ZERO_OR_ODD) !== 0) return id[l] | ODD;
  if (low[l] !== high[l]) return id[l];
  return id[l] | (low[l] === 0 ? ZERO_OR_ODD : low[l] % 2 === 1 ? ODD | ZERO_OR_ODD : 0);
}

/** Whether the number at location `l` is a reference to an integer, or null. */
function isInteger31(facts: Facts, l: number): boolean {
  return facts.high[l] <= MAX32 && (numberFacts(facts, l) & NUMBER_FACTS.ZERO_OR_ODD) !== 0;
}

/** The address of an element at location `l` is described by the index of one that is `steps` elements further on. */
function moveIndex(facts: Facts, l: number, steps: number): void {
  const bytes = steps * elementBytes(facts.id[l]);
  facts.low[l] -= bytes;
  facts.high[l] -= bytes;
  facts.delta[l] += steps;
  facts.room[l] -= steps;
}

function isZero(facts: Facts, l: number): boolean {
  return facts.isNumber(l) && facts.high[l] === 0;
}

/** Whether the value of location `l` is 0 or 1. */
function isBit(facts: Facts, l: number): boolean {
  return facts.kind[l] === VALUE.TYPE_TEST || (facts.isNumber(l) && facts.low[l] >= 0 && facts.high[l] <= 1);
}

function isOne(facts: Facts, l: number): boolean {
  return facts.isNumber(l) && facts.low[l] === 1 && facts.high[l] === 1;
}

/** Whether the value of location `l` is the null reference. */
function isNullAt(facts: Facts, l: number): boolean {
  const isNull = facts.kind[l] === VALUE.REFERENCE && (facts.low[l] & REFERENCE_FACTS.NOT_NULL) === 0 &&
    facts.id[l] === bottomOf(facts.id[l]);
  return isNull || isZero(facts, l);
}

/** The first of `count` locations whose value has exactly this name, −1 if there is none. */
function namedPlace({ name, delta }: Facts, wanted: number, count: number): number {
  for (let l = 0; l < count; l++) if (name[l] === wanted && delta[l] === 0) return l;
  return -1;
}

function commonHeapOf(x: number, y: number): number | undefined {
  return x === NULL_HEAP ? y : y === NULL_HEAP ? x : commonHeap(x, y);
}

function referenceFacts(facts: Facts, l: number): number {
  const { kind, low, high } = facts;
  if (kind[l] === VALUE.REFERENCE) return low[l];
  if (kind[l] === VALUE.CONTEXT) return REFERENCE_FACTS.NOT_NULL;
  if (high[l] === 0) return REFERENCE_FACTS.OBJECT | REFERENCE_FACTS.OWN;
  return (numberFacts(facts, l) & NUMBER_FACTS.ODD) !== 0 ? REFERENCE_FACTS.NOT_NULL : 0;
}

function leastLength({ kind, high }: Facts, l: number): number {
  if (kind[l] === VALUE.REFERENCE) return high[l];
  return kind[l] === VALUE.NUMBER && high[l] === 0 ? Infinity : 0;
}

/** Location `to` becomes one of the references in `to` and `from`, without a name; false if they are not references. */
export function joinReferences(facts: Facts, to: number, from: number): boolean {
  const x = referenceHeap(facts, to), y = referenceHeap(facts, from);
  const id = x === undefined || y === undefined ? undefined : commonHeapOf(x, y);
  if (id === undefined) return false;
  const low = referenceFacts(facts, to) & referenceFacts(facts, from) & (x === y ? -1 : ~REFERENCE_FACTS.FRESH);
  facts.set(to, VALUE.REFERENCE, id, low, Math.min(leastLength(facts, to), leastLength(facts, from)), 0);
  return true;
}

/** Groups of locations that keep a common name in one join. */
const MAX_GROUPS = 64;
const GROUP_PLACE = new Int32Array(MAX_GROUPS);
const GROUP_OWN = new Int32Array(MAX_GROUPS);
const GROUP_OTHER = new Int32Array(MAX_GROUPS);
const GROUP_OWN_DELTA = new Float64Array(MAX_GROUPS);
const GROUP_OTHER_DELTA = new Float64Array(MAX_GROUPS);

/** Largest length of SavedFacts.#referents, which has two entries per fact. */
const MAX_REFERENTS = 64;
/** Visits of a block after which bounds that still grow are widened. */
const NARROW_VISITS = 3;

/** Visits after which bounds are no longer widened to constants of the function. */
const THRESHOLD_VISITS = 48;

/** The greatest common divisor of whole numbers; 0 is a multiple of all. */
export function commonDivisor(x: number, y: number): number {
  while (y !== 0) [x, y] = [y, x % y];
  return x;
}
