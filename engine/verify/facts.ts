/**
 * The abstract domain of the verifier: facts about the values of locations (registers, stack slots, and a few
 * pseudo-locations) at one point of a function. Facts are columns of small numbers; nothing is allocated per
 * instruction.
 *
 *     kind, id      the kind of the value (VALUE): a number, or an address in a known object
 *     low, high     bounds of the number, or of the distance from the start of the object; high is Infinity if unknown
 *     name, delta   the value (or the distance) equals that of the named value plus delta, as integers without wrapping.
 *                   Locations with one name change together when a branch refines one of them. 0: no name
 *     room, of      value + room is at most the length `of` (LIMIT); of < 0: nothing is known
 *
 * A name denotes one value: the result of an instruction, or that of a location at a join. A join that closes a loop
 * renames all locations, so a name never denotes values of two iterations. Lengths of memories and tables never
 * decrease, so room and lower bounds of lengths keep holding.
 *
 * Invariant: a fact that is recorded holds in every execution that reaches the point. Facts are only lost where paths
 * meet.
 */
import { grown } from "../base/columns.ts";

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
  /** A function record or null; id: 1 + index of the type that was tested, 0: none; low: RECORD_FACTS. */
  RECORD: 8,
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
  /** A number that is JUMP_BYTES times one in low … high, and the address of such a jump in the code at offset `id`. */
  JUMP_OFFSET: 28,
  JUMP_PLACE: 29,
  /** The low byte is 0 or 1; nothing is known of the others. */
  LOW_FLAG: 30,
} as const;

/** 1: column `id` of such values is a name. */
const NAMES_ID = new Uint8Array(32);
for (
  const kind of [
    VALUE.RECORD_CONTEXT,
    VALUE.RECORD_MEMORY,
    VALUE.RECORD_LENGTH,
    VALUE.TYPE_ID,
    VALUE.DESCRIPTOR,
    VALUE.DESCRIPTOR_OFFSET,
    VALUE.ANCESTOR,
    VALUE.DISPLAY,
  ]
) NAMES_ID[kind] = 1;

/** Facts about a record, in column `low`. */
export const RECORD_FACTS = { NOT_NULL: 1, OWN: 2 } as const;

/** Bytes of a jump in a table of jumps. */
export const JUMP_BYTES = 5;

/** Lengths: of memory n, in bytes; of table n, in elements and in bytes. */
export const LIMIT = { MEMORY: 0, TABLE: 0x100000, TABLE_BYTES: 0x200000, UNIT: 0x100000 } as const;

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
  SLOTS: 28,
} as const;
/** Number of memories, and of tables, whose lengths have lower bounds. */
export const KNOWN_LENGTHS: number = (PLACE.SLOTS - PLACE.LENGTHS) / 2;

/** The location of the lower bound of length `limit`, 0: none. */
export function lengthPlace(limit: number): number {
  if (limit < KNOWN_LENGTHS) return PLACE.LENGTHS + limit;
  const table = limit - LIMIT.TABLE;
  return table >= 0 && table < KNOWN_LENGTHS ? PLACE.LENGTHS + KNOWN_LENGTHS + table : 0;
}

/** The largest value in 32 bits. */
export const MAX32 = 0xffffffff;
/** Arithmetic above this is not exact in a double. */
export const EXACT = 2 ** 53;

/** Facts about all locations at one point. */
export class Facts {
  /** Locations in use. */
  count: number = PLACE.SLOTS;
  kind: Uint8Array = new Uint8Array(64);
  id: Int32Array = new Int32Array(64);
  low: Float64Array = new Float64Array(64);
  high: Float64Array = new Float64Array(64);
  name: Int32Array = new Int32Array(64);
  delta: Float64Array = new Float64Array(64);
  room: Float64Array = new Float64Array(64);
  of: Int32Array = new Int32Array(64);

  /** Makes room for `count` locations. */
  reserve(count: number): void {
    if (count <= this.kind.length) return;
    const size = Math.max(count, this.kind.length * 2);
    this.kind = grown(this.kind, size);
    this.id = grown(this.id, size);
    this.low = grown(this.low, size);
    this.high = grown(this.high, size);
    this.name = grown(this.name, size);
    this.delta = grown(this.delta, size);
    this.room = grown(this.room, size);
    this.of = grown(this.of, size);
  }

  /** Location `l` has a value of `kind` with a name of its own. */
  set(l: number, kind: number, id: number, low: number, high: number, name: number): void {
    this.kind[l] = kind;
    this.id[l] = id;
    this.low[l] = low;
    this.high[l] = high;
    this.name[l] = name;
    this.delta[l] = 0;
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
    copyFacts(this, to, this, from, 1);
  }

  isNumber(l: number): boolean {
    return this.kind[l] === VALUE.NUMBER;
  }

  /** Whether the value is known exactly. */
  isConstant(l: number): boolean {
    return this.kind[l] === VALUE.NUMBER && this.low[l] === this.high[l];
  }

  /** Whether the value is below 2^32. */
  isShort(l: number): boolean {
    const kind = this.kind[l];
    if (kind === VALUE.NUMBER || kind === VALUE.LENGTH) return this.high[l] <= MAX32;
    return kind === VALUE.TYPE_ID || kind === VALUE.EXPECTED_TYPE || kind === VALUE.ANCESTOR;
  }

  /** Whether the location holds the start of object (kind, id). */
  isStart(l: number, kind: number, id: number): boolean {
    return this.kind[l] === kind && this.id[l] === id && this.low[l] === 0 && this.high[l] === 0;
  }

  /** Adds the constant `amount` to the value or distance of location `l`, which does not wrap. */
  shift(l: number, amount: number): void {
    this.low[l] += amount;
    this.high[l] += amount;
    this.delta[l] += amount;
    this.room[l] -= amount;
  }

  /** The value of location `x`, and of all with its name, is at most `bound`. */
  boundAbove(x: number, bound: number): void {
    const name = this.name[x], delta = this.delta[x];
    if (bound < this.high[x]) this.high[x] = bound;
    if (name === 0) return;
    for (let l = 0; l < this.count; l++) {
      if (this.name[l] !== name || this.kind[l] !== VALUE.NUMBER) continue;
      const own = bound + this.delta[l] - delta;
      if (own < this.high[l]) this.high[l] = own;
    }
  }

  /** The value of location `x`, and of all with its name, is at least `bound`. */
  boundBelow(x: number, bound: number): void {
    const name = this.name[x], delta = this.delta[x];
    if (bound > this.low[x]) this.low[x] = bound;
    if (name === 0) return;
    for (let l = 0; l < this.count; l++) {
      if (this.name[l] !== name || this.kind[l] !== VALUE.NUMBER) continue;
      const own = bound + this.delta[l] - delta;
      if (own > this.low[l]) this.low[l] = own;
    }
  }

  /** The value of location `x` plus `room` is at most length `limit`; so for all with its name. */
  boundByLength(x: number, room: number, limit: number): void {
    const name = this.name[x], delta = this.delta[x];
    for (let l = 0; l < this.count; l++) {
      if (l !== x && (name === 0 || this.name[l] !== name)) continue;
      if (this.kind[l] !== VALUE.NUMBER && this.kind[l] !== VALUE.MEMORY) continue;
      const own = room + delta - this.delta[l];
      if (this.of[l] === limit && this.room[l] >= own) continue;
      this.room[l] = own;
      this.of[l] = limit;
    }
  }
}

/** Facts at the heads of blocks: one part of each column per block. */
export class SavedFacts {
  #facts = new Facts();
  #end = 0;
  /** Per block: first entry, −1 while nothing has reached it, and number of locations. */
  first: Int32Array = new Int32Array(64);
  count: Int32Array = new Int32Array(64);
  /** Name of the block's first location, as a join names it; the other locations follow. */
  nameBase: Int32Array = new Int32Array(64);
  visits: Int32Array = new Int32Array(64);

  reset(blocks: number): void {
    this.#end = 0;
    if (blocks > this.first.length) {
      this.first = new Int32Array(blocks * 2);
      this.count = new Int32Array(blocks * 2);
      this.nameBase = new Int32Array(blocks * 2);
      this.visits = new Int32Array(blocks * 2);
    }
    this.first.fill(-1, 0, blocks);
    this.visits.fill(0, 0, blocks);
  }

  /** Whether block `k` has been reached. */
  has(k: number): boolean {
    return this.first[k] >= 0;
  }

  /** Saves the facts of the first path to block `k`; names are numbered from `nameBase` on. `loop`: see rename. */
  save(k: number, facts: Facts, nameBase: number, loop: boolean): void {
    const first = this.#end;
    this.first[k] = first;
    this.count[k] = facts.count;
    this.nameBase[k] = nameBase;
    this.#end += facts.count;
    this.#facts.reserve(this.#end);
    copyFacts(this.#facts, first, facts, 0, facts.count);
    if (loop) this.#rename(k);
    this.#nameAll(k);
  }

  /** Gives a name to every location of block `k` that has none. */
  #nameAll(k: number): void {
    const { name, delta } = this.#facts;
    const first = this.first[k], end = first + this.count[k];
    for (let l = first; l < end; l++) {
      if (name[l] !== 0) continue;
      name[l] = this.nameBase[k] + l - first;
      delta[l] = 0;
    }
  }

  /** Loads the facts of block `k`. */
  load(k: number, facts: Facts): void {
    const count = this.count[k];
    facts.reserve(count);
    facts.count = count;
    copyFacts(facts, 0, this.#facts, this.first[k], count);
  }

  /**
   * Gives every location of block `k` a name of that block: that of the first location with its name. Facts that refer
   * to a name are lost.
   */
  #rename(k: number): void {
    const { name, delta, kind } = this.#facts;
    const first = this.first[k], end = first + this.count[k], base = this.nameBase[k] - first;
    for (let l = first; l < end; l++) if (NAMES_ID[kind[l]] !== 0) this.#facts.forget(l);
    for (let l = end - 1; l >= first; l--) {
      if (name[l] === 0) continue;
      let same = first;
      while (name[same] !== name[l]) same++;
      name[l] = base + same;
      delta[l] = same === l ? 0 : delta[l] - delta[same];
    }
  }

  /** Weakens the facts of block `k` to those that also hold in `facts`; returns whether any was lost. */
  join(k: number, facts: Facts): boolean {
    this.visits[k]++;
    const first = this.first[k];
    let changed = false;
    const count = Math.min(this.count[k], facts.count);
    for (let l = 0; l < count; l++) if (this.#joinLocation(k, first + l, facts, l)) changed = true;
    if (this.#joinNames(k, facts, count)) changed = true;
    for (let l = count; l < this.count[k]; l++) {
      if (this.#isKnown(first + l)) {
        this.#facts.forget(first + l);
        changed = true;
      }
    }
    return changed;
  }

  #isKnown(n: number): boolean {
    const f = this.#facts;
    return f.kind[n] !== VALUE.NUMBER || f.high[n] !== Infinity || f.low[n] !== 0 || f.of[n] >= 0;
  }

  #joinLocation(k: number, n: number, facts: Facts, l: number): boolean {
    const own = this.#facts;
    if (own.kind[n] !== facts.kind[l]) return this.#loseKind(k, n);
    if (own.kind[n] === VALUE.RECORD) return this.#joinRecord(n, facts, l);
    if (own.id[n] !== facts.id[l]) return this.#loseKind(k, n);
    let changed = this.#joinBounds(k, n, facts, l);
    if (this.#joinRoom(k, n, facts, l)) changed = true;
    return changed;
  }

  #loseKind(k: number, n: number): boolean {
    const changed = this.#isKnown(n);
    this.#facts.forget(n);
    // A name that no other location has: a number and the distance of an address may have had one name.
    this.#facts.name[n] = this.nameBase[k] + this.count[k] + n - this.first[k];
    return changed;
  }

  #joinRecord(n: number, facts: Facts, l: number): boolean {
    const own = this.#facts;
    const id = own.id[n] === facts.id[l] ? own.id[n] : 0;
    const known = own.low[n] & facts.low[l];
    const changed = id !== own.id[n] || known !== own.low[n];
    own.id[n] = id;
    own.low[n] = known;
    return changed;
  }

  #joinBounds(k: number, n: number, facts: Facts, l: number): boolean {
    const own = this.#facts;
    let changed = false;
    if (facts.low[l] < own.low[n]) {
      own.low[n] = this.visits[k] <= NARROW_VISITS ? facts.low[l] : facts.low[l] >= 0 ? 0 : -Infinity;
      changed = true;
    }
    if (facts.high[l] > own.high[n]) {
      own.high[n] = this.visits[k] > NARROW_VISITS ? widened(facts.high[l]) : facts.high[l];
      changed = true;
    }
    return changed;
  }

  #joinRoom(k: number, n: number, facts: Facts, l: number): boolean {
    const own = this.#facts;
    if (own.of[n] < 0) return false;
    if (facts.of[l] === own.of[n]) {
      if (facts.room[l] >= own.room[n]) return false;
      own.room[n] = facts.room[l];
      // A room that keeps shrinking around a loop is given up.
      if (this.visits[k] > NARROW_VISITS) own.of[n] = -1;
      return true;
    }
    own.of[n] = -1;
    return true;
  }

  /**
   * Names that differ between the paths become names of the block. Locations keep one name if the distance between them
   * is the same on both paths.
   */
  #joinNames(k: number, facts: Facts, count: number): boolean {
    const own = this.#facts;
    const first = this.first[k];
    let groups = 0;
    let changed = false;
    for (let l = 0; l < count; l++) {
      const n = first + l;
      if (this.#isStable(k, n, facts, l)) continue;
      const group = this.#groupOf(own.name[n], own.delta[n], facts.name[l], facts.delta[l], groups);
      if (group === groups && groups < MAX_GROUPS) {
        GROUP_PLACE[groups] = l;
        GROUP_OWN[groups] = own.name[n];
        GROUP_OTHER[groups] = facts.name[l];
        GROUP_OWN_DELTA[groups] = own.delta[n];
        GROUP_OTHER_DELTA[groups++] = facts.delta[l];
      }
      own.delta[n] = group < groups ? own.delta[n] - GROUP_OWN_DELTA[group] : 0;
      own.name[n] = this.nameBase[k] + (group < groups ? GROUP_PLACE[group] : l);
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
  #isStable(k: number, n: number, facts: Facts, l: number): boolean {
    const own = this.#facts;
    const base = this.nameBase[k], count = this.count[k];
    const place = own.name[n] - base;
    if (place === l || place === count + l) return true;
    if (place < 0 || place >= count) return own.name[n] === facts.name[l] && own.delta[n] === facts.delta[l];
    if (own.name[this.first[k] + place] !== own.name[n] || facts.name[l] === 0) return false;
    return facts.name[place] === facts.name[l] && facts.delta[l] - facts.delta[place] === own.delta[n];
  }
}

/** Groups of locations that keep a common name in one join. */
const MAX_GROUPS = 64;
const GROUP_PLACE = new Int32Array(MAX_GROUPS);
const GROUP_OWN = new Int32Array(MAX_GROUPS);
const GROUP_OTHER = new Int32Array(MAX_GROUPS);
const GROUP_OWN_DELTA = new Float64Array(MAX_GROUPS);
const GROUP_OTHER_DELTA = new Float64Array(MAX_GROUPS);

/** Visits of a block after which bounds that still grow are widened. */
const NARROW_VISITS = 3;

/** The next bound to which a growing bound is widened. */
function widened(high: number): number {
  return high <= 0x7fffffff ? 0x7fffffff : high <= MAX32 ? MAX32 : Infinity;
}

/** Copies `count` locations of `from` from `first` on to those of `to` from `at` on. */
export function copyFacts(to: Facts, at: number, from: Facts, first: number, count: number): void {
  for (let k = 0; k < count; k++, at++, first++) {
    to.kind[at] = from.kind[first];
    to.id[at] = from.id[first];
    to.low[at] = from.low[first];
    to.high[at] = from.high[first];
    to.name[at] = from.name[first];
    to.delta[at] = from.delta[first];
    to.room[at] = from.room[first];
    to.of[at] = from.of[first];
  }
}
