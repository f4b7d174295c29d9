/**
 * Facts at the heads of blocks: what holds on every path to them. In: the facts at the end of a path. Out: the facts of
 * the block, weakened to those that hold on this path, too, and whether any was lost. Bounds that keep growing are
 * widened, so that each block is interpreted a bounded number of times. Invariant: joining only loses facts.
 */
import { bottomOf } from "../wasm/subtype.ts";
import { EXACT, Facts, MAX32, PLACE } from "./facts.ts";
import {
  commonHeapOf,
  leastLength,
  numberFacts,
  referenceFacts,
  referenceHeap,
  setHeapReference,
  setTest,
} from "./kind_facts.ts";
import {
  elementLimit,
  isArrayLimit,
  isNamedLimit,
  isProductLimit,
  limitName,
  limitShift,
  renamedLimit,
} from "./limits.ts";
import {
  EXACT_KINDS,
  NAMES_ID,
  NO_CLASS,
  OUTLIVES_SUBJECT,
  REFERENCE_FACTS,
  SHORT_KINDS,
  VALUE,
} from "./value_kinds.ts";
import { type Hint, Inductions } from "./inductions.ts";
import { elementBytes } from "./references.ts";

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
   * location, then one for the array of which it has an element's address, or for the object that it is about and to
   * which no location refers (NAMES_PER_LOCATION).
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
    const { name, delta, kind, subject, of } = this.#facts;
    const count = this.count[k], renamed = this.nameBase[k] + to, distance = delta[to];
    for (let l = 0; l < count; l++) {
      if (name[l] === old) {
        name[l] = renamed;
        delta[l] -= distance;
      }
      if (distance !== 0) continue;
      if (NAMES_ID[kind[l]] !== 0 && subject[l] === old) subject[l] = renamed;
      if (!isNamedLimit(of[l]) || limitName(of[l]) !== old) continue;
      of[l] = renamedLimit(of[l], renamed);
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
   * to a name which no location has are lost, unless they outlive it.
   */
  #rename(k: number): void {
    const { name, delta, kind } = this.#facts;
    const count = this.count[k], base = this.nameBase[k];
    for (let l = 0; l < count; l++) {
      if (NAMES_ID[kind[l]] !== 0) this.#renameId(k, l);
      if (kind[l] === VALUE.FREE_SLOT && this.#facts.slotClass[l] < 0) this.#facts.slotClass[l] = NO_CLASS;
      if (isNamedLimit(this.#facts.of[l])) this.#renameLimit(k, l);
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
    const { subject, kind } = this.#facts;
    const name = this.#newName(k, subject[l]);
    if (name !== 0) subject[l] = name;
    else if (OUTLIVES_SUBJECT[kind[l]] !== 0) this.#loseSubject(k, l);
    else if (SHORT_KINDS[kind[l]] !== 0) this.#facts.number(l, 0, kind[l] === VALUE.TYPE_TEST ? 1 : MAX32, 0);
    else this.#facts.forget(l);
  }

  #renameLimit(k: number, l: number): void {
    const { of, kind } = this.#facts;
    const name = this.#newName(k, limitName(of[l]));
    if (name !== 0) of[l] = renamedLimit(of[l], name);
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
    return this.#notePlace(k, l, this.#facts.subject[l], facts, facts.subject[l]);
  }

  /** The same for the arrays whose lengths are the limits of location `l` on both paths. */
  #noteLimit(k: number, l: number, facts: Facts): boolean {
    const own = this.#facts.of[l], other = facts.of[l];
    return isArrayLimit(own) && isArrayLimit(other) && limitShift(own) === limitShift(other) &&
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
    const { name, delta, kind, subject, of } = this.#facts;
    const rows = this.#referents;
    for (let at = 0; at < rows.length; at += 2) {
      const l = rows[at], place = rows[at + 1];
      if (delta[place] !== 0 || name[place] === 0) this.#loseReferent(k, l);
      else if (kind[l] === VALUE.ELEMENT) of[l] = elementLimit(name[place], limitShift(of[l]));
      else subject[l] = name[place];
      if (kind[l] === VALUE.ELEMENT && of[l] < 0) this.#loseKind(k, l);
    }
    const any = rows.length > 0;
    rows.length = 0;
    return any;
  }

  /**
   * Nothing is known any more of the value that location `l` refers to; on both paths, the entry has one kind. Only its
   * size stays, or that it is about some object.
   */
  #loseReferent(k: number, l: number): boolean {
    const kind = this.#facts.kind[l];
    if (OUTLIVES_SUBJECT[kind] !== 0) return this.#loseSubject(k, l);
    if (SHORT_KINDS[kind] === 0) return this.#loseKind(k, l);
    this.#facts.number(l, 0, kind === VALUE.TYPE_TEST ? 1 : MAX32, this.#ownName(k, l));
    return true;
  }

  /** Location `l` is about an object to which no location refers; returns whether it was about another one. */
  #loseSubject(k: number, l: number): boolean {
    const { subject } = this.#facts;
    const name = this.nameBase[k] + 2 * this.count[k] + l;
    if (subject[l] === name) return false;
    subject[l] = name;
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
    if (!isNamedLimit(own) || !isNamedLimit(other)) return own === other;
    const isAlike = isArrayLimit(own) === isArrayLimit(other) && limitShift(own) === limitShift(other);
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
    const isSame = isNamed ? this.#isSameName(k, own.subject[l], facts, facts.subject[l]) : own.id[l] === facts.id[l];
    const isLost = !isSame && !(isNamed && this.#noteReferent(k, l, facts));
    let changed = isLost && this.#loseReferent(k, l);
    if (isLost && OUTLIVES_SUBJECT[kind] === 0) return changed;
    if (kind === VALUE.ELEMENT) return this.#joinElement(k, l, facts);
    if (this.#joinBounds(k, l, facts)) changed = true;
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
    if (changed) own.traits[l] = common;
    return changed;
  }

  /** A type test, joined with the same test or with the constant 0: the outcome of a test that failed. */
  #joinTest(k: number, l: number, facts: Facts): boolean {
    const own = this.#facts;
    if (isZero(facts, l)) return false;
    const isTest = own.kind[l] === VALUE.TYPE_TEST;
    if (isTest && facts.kind[l] === VALUE.TYPE_TEST) {
      const isSame = this.#isSameName(k, own.subject[l], facts, facts.subject[l]);
      if (!isSame && !this.#noteReferent(k, l, facts)) return this.#loseReferent(k, l);
      return this.#joinHeap(k, l, facts.testedHeap[l], facts.orNull[l]) || !isSame;
    }
    if (isTest && isOneOrBit(facts, l)) {
      const place = namedPlace(own, own.subject[l], Math.min(this.count[k], facts.count));
      if (place >= 0 && isNullAt(facts, place)) return this.#joinHeap(k, l, own.testedHeap[l], 1);
    }
    if (isZero(own, l)) {
      const place = namedPlace(facts, facts.subject[l], Math.min(this.count[k], facts.count));
      if (place >= 0 && this.#makeTest(k, l, place, facts.testedHeap[l], facts.orNull[l])) return true;
    }
    if (!isBit(own, l) || !isBit(facts, l)) return this.#joinKinds(k, l, facts);
    own.number(l, 0, 1, this.#ownName(k, l));
    return true;
  }

  /** A test that succeeds for heap type `heap`, and null with `orNull` = 1, too; returns whether a fact was lost. */
  #joinHeap(k: number, l: number, heap: number, orNull: number): boolean {
    const { testedHeap, high, orNull: passesNull } = this.#facts;
    const own = testedHeap[l];
    const common = own === heap || heap === bottomOf(own) ? own : own === bottomOf(heap) ? heap : undefined;
    if (common === undefined) return this.#loseReferent(k, l);
    const changed = common !== own || orNull > passesNull[l];
    testedHeap[l] = high[l] = common;
    passesNull[l] = Math.max(passesNull[l], orNull);
    return changed;
  }

  /** Location `l` becomes the test of the reference in location `place`; returns false if there are too many. */
  #makeTest(k: number, l: number, place: number, heap: number, orNull: number): boolean {
    if (this.#referents.length >= MAX_REFERENTS) return false;
    setTest(this.#facts, l, VALUE.TYPE_TEST, 0, heap, this.#ownName(k, l));
    this.#facts.orNull[l] = orNull;
    this.#referents.push(l, place);
    return true;
  }

  /**
   * One path has 1 and a null reference where the other has 0 and one that is not null, or another test of it: the
   * outcome of a test for null. Returns false if there is no such reference.
   */
  #joinNullTest(k: number, l: number, facts: Facts): boolean {
    const own = this.#facts;
    if (isOneOrBit(own, l) && facts.kind[l] === VALUE.TYPE_TEST) return this.#joinNullBefore(k, l, facts);
    const isOwn = isOne(own, l) && isZero(facts, l);
    if (!isOwn && !(isZero(own, l) && isOne(facts, l))) return false;
    const nulls = isOwn ? own : facts, others = isOwn ? facts : own;
    const count = Math.min(this.count[k], facts.count);
    for (let place = 0; place < count; place++) {
      if (!isNullAt(nulls, place) || nulls.kind[place] !== VALUE.REFERENCE) continue;
      const isOther = others.kind[place] === VALUE.REFERENCE && (others.known[place] & REFERENCE_FACTS.NOT_NULL) !== 0;
      if (isOther) return this.#makeTest(k, l, place, nulls.heap[place], 1);
    }
    return false;
  }

  /** This path has 1, or 0 or 1, the other the test of a reference that is null here, whatever the outcome is. */
  #joinNullBefore(k: number, l: number, facts: Facts): boolean {
    const place = namedPlace(facts, facts.subject[l], Math.min(this.count[k], facts.count));
    return place >= 0 && isNullAt(this.#facts, place) && this.#makeTest(k, l, place, facts.testedHeap[l], 1);
  }

  /** Values of different kinds: only their size is known. */
  #joinKinds(k: number, l: number, facts: Facts): boolean {
    return this.#facts.isShort(l) && facts.isShort(l) ? this.#joinShort(k, l) : this.#loseKind(k, l);
  }

  /** Values of different kinds that have 32 bits on both paths. */
  #joinShort(k: number, l: number): boolean {
    const own = this.#facts;
    if (own.isNumber(l) && own.low[l] === 0 && own.high[l] === MAX32 && own.of[l] < 0 && own.traits[l] === 0) {
      return false;
    }
    own.number(l, 0, MAX32, this.#ownName(k, l));
    return true;
  }

  /** Slots of the heap: the bytes that both have. */
  #joinSlot(k: number, l: number, facts: Facts): boolean {
    const own = this.#facts;
    const known = own.known[l] & facts.known[l], bytes = Math.min(own.slotBytes[l], facts.slotBytes[l]);
    const isSame = own.room[l] === facts.room[l] && this.#isSameLimit(k, own.of[l], facts, facts.of[l]);
    // The class decides only which list the slot may be taken from.
    const slotClass = own.slotClass[l] === facts.slotClass[l] ? own.slotClass[l] : NO_CLASS;
    const of = isSame ? own.of[l] : -1;
    const isKnown = own.known[l] === known && own.slotBytes[l] === bytes;
    if (isKnown && own.of[l] === of && own.slotClass[l] === slotClass) return false;
    own.known[l] = known;
    own.slotBytes[l] = bytes;
    own.of[l] = of;
    own.slotClass[l] = slotClass;
    return true;
  }

  /** Element addresses in one array, at distances that differ by whole elements. */
  #joinElement(k: number, l: number, facts: Facts): boolean {
    const own = this.#facts;
    const steps = (facts.low[l] - own.low[l]) / elementBytes(own.arrayType[l]);
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
    const known = referenceFacts(own, l) & referenceFacts(facts, l) & (heap === other ? -1 : ~REFERENCE_FACTS.FRESH);
    const length = Math.min(leastLength(own, l), leastLength(facts, l));
    const isSame = own.kind[l] === VALUE.REFERENCE && own.heap[l] === id;
    if (isSame && own.known[l] === known && own.leastLength[l] === length) return false;
    const isNamed = own.delta[l] === 0 && own.name[l] !== 0;
    setHeapReference(own, l, id, known, length, isNamed ? own.name[l] : this.#ownName(k, l));
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
      if (isProductLimit(own.of[l]) && facts.room[l] !== own.room[l]) {
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
/** The address of an element at location `l` is described by the index of one that is `steps` elements further on. */
function moveIndex(facts: Facts, l: number, steps: number): void {
  const bytes = steps * elementBytes(facts.arrayType[l]);
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

/** Whether location `l` has the number 1, or one that is 0 or 1. */
function isOneOrBit(facts: Facts, l: number): boolean {
  return facts.isNumber(l) && facts.low[l] >= 0 && facts.high[l] === 1;
}

function isOne(facts: Facts, l: number): boolean {
  return facts.isNumber(l) && facts.low[l] === 1 && facts.high[l] === 1;
}

/** Whether the value of location `l` is the null reference. */
function isNullAt(facts: Facts, l: number): boolean {
  const isNull = facts.kind[l] === VALUE.REFERENCE && (facts.known[l] & REFERENCE_FACTS.NOT_NULL) === 0 &&
    facts.heap[l] === bottomOf(facts.heap[l]);
  return isNull || isZero(facts, l);
}

/** The first of `count` locations whose value has exactly this name, −1 if there is none. */
function namedPlace({ name, delta }: Facts, wanted: number, count: number): number {
  for (let l = 0; l < count; l++) if (name[l] === wanted && delta[l] === 0) return l;
  return -1;
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
