/**
 * Rules for conditions: the facts that hold on each edge of a branch. In: the meaning of the flags and a condition code
 * of x64, to which arm64_decoder.ts translates its own. Out: refined facts.
 *
 *     x < y, x ≤ y     bounds of both; if y is a length, room of x; if x is a length and y constant, a bound of the
 *                      length
 *     x = y            bounds; the type of a record if x is its type id, or the ancestor at the depth of y, and y is
 *                      the id of a type; a record is this instance's if x is its context and y the instance's; the
 *                      link in a free slot if y is one
 *     stack, limit     the depth that has been compared
 *
 * Comparisons of signed numbers are read like those of unsigned ones where both operands are known to be small enough.
 */
import { type Analysis, FLAGS } from "./analysis.ts";
import { REF_TAG, TYPE_KIND } from "../abi/gc_layout.ts";
import { bottomOf, heapMatches, topHeap } from "../wasm/subtype.ts";
import { HEAP, type HeapType, isRef } from "../wasm/types.ts";
import { EXACT, type Facts, lengthPlace, MAX32, PLACE } from "./facts.ts";
import { numberFacts, setTest } from "./kind_facts.ts";
import { elementLimit, isMemoryLimit, tableOfLimit, unmaskedLimit } from "./limits.ts";
import { NUMBER_FACTS, REFERENCE_FACTS, VALUE } from "./value_kinds.ts";
import { noteLink, noteSlot } from "./allocation.ts";
import { elementBytes } from "./references.ts";
import { eachReference, noteHeap, noteKind, noteLength, noteNull, noteTag, noteType, setReference } from "./objects.ts";

const { LEFT, RIGHT } = PLACE;
/** No memory is longer, in bytes, and no table: the address spaces of processes end below this. */
const LONGEST = 2 ** 52;

/** Condition codes of the hardware; bit 0 inverts. */
const CONDITION = {
  BELOW: 2,
  EQUAL: 4,
  BELOW_EQUAL: 6,
  SIGN: 8,
  PARITY: 10,
  LESS: 12,
  LESS_EQUAL: 14,
} as const;

/** Conditions that hold if the operands are equal. */
const HOLD_IF_EQUAL: readonly number[] = [
  CONDITION.BELOW + 1,
  CONDITION.EQUAL,
  CONDITION.BELOW_EQUAL,
  CONDITION.LESS + 1,
  CONDITION.LESS_EQUAL,
];

/** Condition `condition` holds. Returns false if it cannot, by the bounds of a compared number. */
export function assume(a: Analysis, condition: number): boolean {
  a.isImpossible = false;
  refine(a, condition);
  if (a.isImpossible || (a.flags === FLAGS.EXACT_SUM && condition === CONDITION.BELOW)) return false;
  return a.flags !== FLAGS.COMPARED || !(isEmpty(a, LEFT) || isEmpty(a, RIGHT));
}

/** Whether the number that was tested is odd, and the mask includes its lowest bit. */
function isOddUnder({ facts }: Analysis): boolean {
  const isOdd = facts.isNumber(LEFT) && (numberFacts(facts, LEFT) & NUMBER_FACTS.ODD) !== 0;
  return isOdd && facts.isConstant(RIGHT) && facts.low[RIGHT] % 2 === 1;
}

/** Whether `condition` holds in any case. */
export function isCertain(a: Analysis, condition: number): boolean {
  if (a.flags === FLAGS.CARRIED) return condition === CONDITION.BELOW;
  return HOLD_IF_EQUAL.includes(condition) && a.flags === FLAGS.COMPARED && areSame(a.facts);
}

/** Whether a number was compared with itself. */
function areSame({ kind, name, delta }: Facts): boolean {
  const isNumber = kind[LEFT] === VALUE.NUMBER || kind[LEFT] === VALUE.LENGTH || kind[LEFT] === VALUE.ARRAY_LENGTH;
  return isNumber && kind[LEFT] === kind[RIGHT] && name[LEFT] !== 0 && name[LEFT] === name[RIGHT] &&
    delta[LEFT] === delta[RIGHT];
}

/** No number is within the bounds of location `l`. */
function isEmpty({ facts }: Analysis, l: number): boolean {
  return facts.isNumber(l) && facts.low[l] > facts.high[l];
}

function refine(a: Analysis, condition: number): void {
  if (a.flags === FLAGS.ADDED) return assumeAdded(a, condition);
  if (a.flags === FLAGS.LARGE_SUM && condition === CONDITION.BELOW + 1) return a.facts.boundBelow(LEFT, EXACT);
  if (a.flags === FLAGS.SUM && condition === CONDITION.BELOW + 1) return a.ranges.noteExact(a.facts.name[LEFT]);
  if (a.flags === FLAGS.UPPER_HALF) return assumeUpperHalf(a, condition);
  if (a.flags === FLAGS.TESTED) return assumeTested(a, condition);
  if (a.flags === FLAGS.BOTH && condition === CONDITION.EQUAL + 1) {
    return [LEFT, RIGHT].forEach((l) => noteOutcome(a, l));
  }
  if (a.flags === FLAGS.CHAINED && holdsIn(a.chainFlags, condition)) {
    if (a.chainName !== 0 && condition === CONDITION.EQUAL + 1) noteHeap(a, a.chainName, HEAP.i31);
    return;
  }
  if (a.flags !== FLAGS.COMPARED && a.flags !== FLAGS.CHAINED) return;
  const holds = (condition & 1) === 0;
  switch (condition & ~1) {
    case CONDITION.BELOW:
      return holds ? assumeBelow(a, LEFT, RIGHT, 1) : assumeBelow(a, RIGHT, LEFT, 0);
    case CONDITION.BELOW_EQUAL:
      return holds ? assumeBelow(a, LEFT, RIGHT, 0) : assumeBelow(a, RIGHT, LEFT, 1);
    case CONDITION.EQUAL:
      return holds ? assumeEqual(a) : assumeDifferent(a);
    case CONDITION.LESS:
      if (!areSmall(a)) return;
      return holds ? assumeBelow(a, LEFT, RIGHT, 1) : assumeBelow(a, RIGHT, LEFT, 0);
    case CONDITION.LESS_EQUAL:
      if (!areSmall(a)) return;
      return holds ? assumeBelow(a, LEFT, RIGHT, 0) : assumeBelow(a, RIGHT, LEFT, 1);
  }
}

/** Whether `condition` holds with the flags N Z C V of arm64, whose carry is the opposite of x64's after a compare. */
function holdsIn(flags: number, condition: number): boolean {
  const isNegative = (flags & 8) !== 0, isZero = (flags & 4) !== 0, isBelow = (flags & 2) === 0, overflows = flags & 1;
  const isLess = isNegative !== (overflows !== 0);
  const holds = [overflows !== 0, isBelow, isZero, isBelow || isZero, isNegative, false, isLess, isLess || isZero];
  return holds[condition >> 1] === ((condition & 1) === 0);
}

/** Whether both operands are known not to be negative as signed numbers. Lengths of 64 bits never are. */
function areSmall(a: Analysis): boolean {
  return isSmall(a, LEFT) && isSmall(a, RIGHT);
}

function isSmall({ facts, flagsSize }: Analysis, place: number): boolean {
  const most = flagsSize === 8 ? 2 ** 53 : 2 ** (flagsSize * 8 - 1) - 1;
  if (facts.kind[place] === VALUE.LENGTH) return flagsSize === 8;
  return facts.isNumber(place) && facts.high[place] <= most;
}

/** After the addition of a constant, without carry: the sum is exact. */
function assumeAdded(a: Analysis, condition: number): void {
  if (condition !== CONDITION.BELOW + 1) return;
  const { facts } = a;
  const name = facts.name[LEFT], low = leastOf(a, a.flagsName) + a.flagsDelta;
  for (let l = 0; l < facts.count; l++) {
    if (facts.name[l] !== name || facts.delta[l] !== 0) continue;
    facts.name[l] = a.flagsName;
    facts.delta[l] = a.flagsDelta;
    if (facts.isNumber(l)) facts.low[l] = Math.max(facts.low[l], Math.min(low, EXACT));
  }
}

/** The largest lower bound that is known of the number with this name. */
function leastOf({ facts }: Analysis, name: number): number {
  let least = 0;
  for (let l = 0; l < facts.count; l++) {
    if (facts.name[l] === name && facts.isNumber(l)) least = Math.max(least, facts.low[l] - facts.delta[l]);
  }
  return least;
}

/** The low bits of a reference are zero, or not; or a number is odd, or zero because it is not odd. */
function assumeTested(a: Analysis, condition: number): void {
  const { facts } = a;
  const isBit = facts.isConstant(RIGHT) && facts.low[RIGHT] === 1;
  if (facts.isNumber(LEFT) && isBit && condition === CONDITION.EQUAL + 1) return noteOdd(a);
  if (condition === CONDITION.EQUAL && isOddUnder(a)) {
    a.isImpossible = true;
    return;
  }
  if (condition === CONDITION.EQUAL && isZeroIfEven(facts)) return facts.boundAbove(LEFT, 0);
  if ((condition & ~1) !== CONDITION.EQUAL || facts.kind[LEFT] !== VALUE.REFERENCE) return;
  noteTag(a, facts.name[LEFT], facts.low[RIGHT], 0, condition === CONDITION.EQUAL);
}

/** Whether the number at LEFT, whose lowest bit is among the tested ones, is zero unless it is odd. */
function isZeroIfEven(facts: Facts): boolean {
  const isLowBit = facts.isConstant(RIGHT) && facts.low[RIGHT] % 2 === 1;
  return isLowBit && facts.isNumber(LEFT) && (numberFacts(facts, LEFT) & NUMBER_FACTS.ZERO_OR_ODD) !== 0;
}

/** The number at LEFT is odd, and so are all that have its name. */
function noteOdd({ facts }: Analysis): void {
  const name = facts.name[LEFT], delta = facts.delta[LEFT];
  if (name === 0) return;
  for (let l = 0; l < facts.count; l++) {
    const isValue = facts.name[l] === name && facts.delta[l] === delta && facts.isNumber(l);
    if (isValue) facts.traits[l] |= NUMBER_FACTS.ODD | NUMBER_FACTS.ZERO_OR_ODD;
  }
}

/** If the upper half is zero, the value has 32 bits. */
function assumeUpperHalf(a: Analysis, condition: number): void {
  const { facts, flagsName, flagsDelta } = a;
  if (condition !== CONDITION.EQUAL || flagsName === 0) return;
  for (let l = 0; l < facts.count; l++) {
    const isValue = facts.name[l] === flagsName && facts.delta[l] === flagsDelta && facts.isNumber(l);
    if (isValue && facts.high[l] > MAX32) facts.high[l] = MAX32;
  }
}

/** Whether the compare reads all bits of the number at `place`. */
function isSeen(a: Analysis, place: number): boolean {
  if (a.flagsSize === 8) return true;
  const { facts } = a;
  const most = 2 ** (a.flagsSize * 8) - 1;
  return facts.high[place] <= most;
}

/** x + strict ≤ y */
function assumeBelow(a: Analysis, x: number, y: number, strict: number): void {
  const { facts } = a;
  const kindX = facts.kind[x], kindY = facts.kind[y];
  const isFence = kindX === VALUE.STACK_LIMIT && kindY === VALUE.STACK;
  if (isFence && strict === 1 && a.flagsSize === 8) return assumeFence(a, y);
  if (kindX === VALUE.ELEMENT && kindY === VALUE.ELEMENT) return assumeElements(a, x, y, strict);
  if (!isSeen(a, x) || !isSeen(a, y)) return;
  const isLength = kindX === VALUE.LENGTH || kindX === VALUE.ARRAY_LENGTH;
  if ((kindX === VALUE.NUMBER || isLength) && kindY === VALUE.LENGTH) {
    facts.boundAbove(x, facts.high[y] - strict);
    return assumeInside(a, x, facts.lengthLimit[y], strict);
  }
  if (kindY === VALUE.ARRAY_LENGTH) {
    if (isLength || kindX === VALUE.NUMBER) assumeInArray(a, x, facts.subject[y], strict);
    return;
  }
  if (isLength && kindY === VALUE.NUMBER) facts.boundAbove(x, facts.high[y] - strict);
  if (kindX === VALUE.LENGTH && kindY === VALUE.NUMBER) {
    facts.boundBelow(y, leastEver(a, facts.lengthLimit[x]) + strict);
  }
  if (kindX !== VALUE.NUMBER || kindY !== VALUE.NUMBER) return;
  // A sum modulo 2^64 that has wrapped is below both of its numbers.
  if (a.flagsSize === 8 && facts.delta[y] === 0) a.ranges.noteBelow(facts.name[x], facts.delta[x], facts.name[y]);
  const high = facts.high[y] - strict, low = facts.low[x] + strict;
  facts.boundAbove(x, high);
  facts.boundBelow(y, low);
}

/** The address of an element is below that of another of its array, or of the array's end. */
function assumeElements(a: Analysis, x: number, y: number, strict: number): void {
  const { facts } = a;
  // Their distances from elements are constants (VALUE.ELEMENT).
  const size = elementBytes(facts.arrayType[x]), steps = (facts.low[y] - facts.low[x]) / size;
  if (a.flagsSize !== 8 || facts.of[x] !== facts.of[y] || !Number.isInteger(steps)) return;
  const room = facts.room[y] - steps + strict;
  if (facts.name[x] !== 0) return facts.boundByLength(x, room, facts.of[x]);
  for (let l = 0; l < facts.count; l++) {
    const isFirst = facts.kind[l] === VALUE.ELEMENT && facts.name[l] === 0 && facts.of[l] === facts.of[x];
    if (isFirst) facts.room[l] = Math.max(facts.room[l], room);
  }
}

/** The number at `x` plus `room` is at most a length. */
function assumeInside(a: Analysis, x: number, limit: number, room: number): void {
  const { facts, ranges, module } = a;
  const needsMask = isMemoryLimit(limit) ? module.masksMemories : module.masksTables;
  facts.boundAbove(x, LONGEST - room);
  facts.boundByLength(x, room, needsMask ? unmaskedLimit(limit) : limit);
  if (facts.delta[x] >= 0) ranges.bound(facts.name[x], limit);
  noteLeast(a, limit, facts.low[x] + room);
}

/** The smallest length `limit` of any instance, at any time: a register may hold an earlier one. */
function leastEver({ module: { memoryBytes, tableLength } }: Analysis, limit: number): number {
  return (isMemoryLimit(limit) ? memoryBytes[limit] : tableLength[tableOfLimit(limit)]) ?? 0;
}

/** Length `limit` is at least `least`. */
function noteLeast({ facts }: Analysis, limit: number, least: number): void {
  const place = lengthPlace(limit);
  if (place !== 0 && least > facts.low[place]) facts.low[place] = least;
}

/** The number at `x` plus `room` is at most the length of the array named `name`. */
function assumeInArray(a: Analysis, x: number, name: number, room: number): void {
  const { facts, ranges } = a;
  const limit = elementLimit(name, 0);
  if (limit < 0) return;
  facts.boundByLength(x, room, limit);
  if (facts.delta[x] >= 0) ranges.bound(facts.name[x], limit);
  ranges.noteBound(facts.name[x], facts.delta[x], limit);
  noteLength(a, name, facts.low[x] + room);
}

/** The test with the outcome 1 at location `l` has succeeded. */
function noteOutcome(a: Analysis, l: number): void {
  const { subject, testedHeap, orNull } = a.facts;
  if (orNull[l] !== 1) return noteType(a, subject[l], testedHeap[l]);
  noteHeap(a, subject[l], testedHeap[l]);
  if (testedHeap[l] === bottomOf(testedHeap[l])) noteZero(a, subject[l]);
}

/** Numbers with this name are zero. */
function noteZero({ facts }: Analysis, name: number): void {
  for (let l = 0; l < facts.count; l++) {
    if (facts.name[l] === name && facts.delta[l] === 0 && facts.isNumber(l)) return facts.boundAbove(l, 0);
  }
}

/** Register `to` becomes the outcome of a test for null, or for its opposite; false: that was not tested. */
function testedNull(a: Analysis, condition: number, to: number): boolean {
  const { facts } = a;
  const isNullTest = a.flags === FLAGS.COMPARED && a.flagsSize === 8 && (condition & ~1) === CONDITION.EQUAL &&
    facts.name[LEFT] !== 0 && facts.isConstant(RIGHT) && facts.low[RIGHT] === 0;
  if (!isNullTest) return false;
  const isNull = condition === CONDITION.EQUAL;
  if (facts.kind[LEFT] !== VALUE.REFERENCE) return isNull && testedNumber(a, to);
  const own = facts.heap[LEFT];
  setOutcome(a, to, facts.name[LEFT], isNull ? bottomOf(own) : own, isNull);
  return true;
}

/** The same for a number that is a reference to an integer, or null; false: it is another number. */
function testedNumber(a: Analysis, to: number): boolean {
  const { facts } = a;
  const isReference = facts.isNumber(LEFT) && facts.delta[LEFT] === 0 && facts.high[LEFT] <= MAX32 &&
    facts.low[LEFT] !== facts.high[LEFT] && (numberFacts(facts, LEFT) & NUMBER_FACTS.ZERO_OR_ODD) !== 0;
  if (isReference) setOutcome(a, to, facts.name[LEFT], HEAP.none, true);
  return isReference;
}

/** Register `to` becomes 1 if the reference named `name` is of heap type `heap`, or null with `orNull`. */
function setOutcome(a: Analysis, to: number, name: number, heap: HeapType, orNull: boolean): void {
  setTest(a.facts, to, VALUE.TYPE_FLAG, name, heap, a.name());
  if (orNull) a.facts.orNull[to] = 1;
}

/** Register `to` becomes the outcome of a test that a reference is none of the host's; false: that was not tested. */
function testedHost(a: Analysis, condition: number, to: number): boolean {
  const { facts } = a;
  const isTest = a.flags === FLAGS.COMPARED && condition === CONDITION.EQUAL + 1 &&
    facts.kind[LEFT] === VALUE.TAG_BITS &&
    facts.tagMask[LEFT] === 3 && facts.isConstant(RIGHT) && facts.low[RIGHT] === REF_TAG.HOST;
  if (!isTest) return false;
  const name = facts.subject[LEFT];
  let isAny = false;
  // References of other hierarchies have other bits.
  eachReference(a, name, (l) => isAny ||= topHeap(facts.heap[l]) === HEAP.any);
  if (isAny) setOutcome(a, to, name, HEAP.eq, true);
  return isAny;
}

/** Register `to` becomes the outcome of the test of a type; returns false if the flags are of something else. */
export function testedType(a: Analysis, condition: number, to: number): boolean {
  const { facts, module } = a;
  if (testedNull(a, condition, to) || testedHost(a, condition, to)) return true;
  if (a.flags !== FLAGS.COMPARED || a.flagsSize !== 4 || condition !== CONDITION.EQUAL) return false;
  const kind = facts.kind[LEFT], name = facts.subject[LEFT];
  let heap: HeapType;
  if (kind === VALUE.TYPE_KIND && facts.isConstant(RIGHT)) {
    const type = facts.low[RIGHT];
    if (type !== TYPE_KIND.STRUCT && type !== TYPE_KIND.ARRAY) return false;
    heap = type === TYPE_KIND.STRUCT ? HEAP.struct : HEAP.array;
  } else {
    if (facts.kind[RIGHT] !== VALUE.EXPECTED_TYPE) return false;
    const type = facts.index[RIGHT];
    const isDepth = kind === VALUE.ANCESTOR && facts.depth[LEFT] === module.typeDepth[type];
    if (kind !== VALUE.TYPE_ID && !isDepth) return false;
    heap = module.typeId[type];
  }
  setTest(facts, to, VALUE.TYPE_FLAG, name, heap, a.name());
  return true;
}

/** The stack limit is below location `y`. */
function assumeFence(a: Analysis, y: number): void {
  const depth = -a.facts.low[y];
  if (a.facts.low[y] === a.facts.high[y] && depth > a.fence) a.fence = depth;
}

function assumeEqual(a: Analysis): void {
  const { facts } = a;
  if (assumeKinds(a, LEFT, RIGHT) || assumeKinds(a, RIGHT, LEFT)) return;
  if (facts.isConstant(RIGHT) && isSeen(a, RIGHT) && assumeReference(a, facts.low[RIGHT], true)) return;
  if (!facts.isNumber(LEFT) || !facts.isNumber(RIGHT) || !isSeen(a, LEFT) || !isSeen(a, RIGHT)) return;
  const low = Math.max(facts.low[LEFT], facts.low[RIGHT]), high = Math.min(facts.high[LEFT], facts.high[RIGHT]);
  for (const place of [LEFT, RIGHT]) {
    facts.boundAbove(place, high);
    facts.boundBelow(place, low);
  }
}

/** Location `x` equals location `y`: facts that follow from their kinds. Returns false if there are none. */
function assumeKinds(a: Analysis, x: number, y: number): boolean {
  const { facts, module } = a;
  const kindX = facts.kind[x], kindY = facts.kind[y];
  if (kindX === VALUE.RECORD_CONTEXT && kindY === VALUE.CONTEXT) {
    if (a.flagsSize === 8 && facts.isStart(y, VALUE.CONTEXT, 0)) noteOwn(a, facts.subject[x]);
    return true;
  }
  if (kindX === VALUE.TAIL_RETURN && kindY === VALUE.RETURN_ADDRESS) {
    if (a.flagsSize === 8 && a.depth === 0) a.machine.reuseTailFrame(a);
    return true;
  }
  if (kindX === VALUE.FREE_LINK && kindY === VALUE.NUMBER) {
    if (a.flagsSize === 8) noteLink(a, facts.subject[x], y);
    return true;
  }
  if (kindX === VALUE.CAUGHT_TAG && kindY === VALUE.TAG) {
    if (a.flagsSize === 8) notePayload(a, facts.index[y]);
    return true;
  }
  if (kindY !== VALUE.EXPECTED_TYPE || a.flagsSize !== 4) return false;
  const type = facts.index[y];
  const isDepth = kindX === VALUE.ANCESTOR && facts.depth[x] === module.typeDepth[type];
  if (kindX === VALUE.TYPE_ID || isDepth) {
    const exact = a.exactTypes.get(facts.subject[x]);
    const isType = kindX === VALUE.TYPE_ID
      ? exact === module.typeId[type]
      : heapMatches(exact ?? 0, module.typeId[type]);
    a.isImpossible = exact !== undefined && !isType;
    noteType(a, facts.subject[x], module.typeId[type]);
  }
  return true;
}

/** The record named `name` is that of a function of this instance. */
function noteOwn(a: Analysis, name: number): void {
  if (name < 0) a.ownRecord = name;
  eachReference(a, name, (l) => a.facts.known[l] |= REFERENCE_FACTS.OWN);
}

/** The caught exception has tag `tag`: its payload is in the overflow buffer, unless that was written since. */
function notePayload(a: Analysis, tag: number): void {
  if (a.facts.low[PLACE.PAYLOAD] !== 1) return;
  a.module.tagPayload[tag].forEach((type, k) => {
    const l = isRef(type) ? a.newOverflowSlot(k) : 0;
    if (l > 0) setReference(a, l, type, 0);
  });
}

/** A fact about a reference that is compared with `value`: returns false if there is none. */
function assumeReference(a: Analysis, value: number, isEqual: boolean): boolean {
  const { facts } = a;
  switch (facts.kind[LEFT]) {
    case VALUE.REFERENCE:
      if (value !== 0 || a.flagsSize !== 8) return true;
      a.isImpossible = isEqual && (facts.known[LEFT] & REFERENCE_FACTS.NOT_NULL) !== 0;
      noteNull(a, facts.name[LEFT], isEqual);
      return true;
    case VALUE.FREE_SLOT:
      if (value === 0 && !isEqual && a.flagsSize === 8) noteSlot(a, facts.name[LEFT]);
      return true;
    case VALUE.TYPE_TEST:
      if (value === 0 && !isEqual) noteOutcome(a, LEFT);
      return true;
    case VALUE.ARRAY_LENGTH:
      if (value === 0 && !isEqual) noteLength(a, facts.subject[LEFT], 1);
      return true;
    case VALUE.TAG_BITS:
      noteTag(a, facts.subject[LEFT], facts.tagMask[LEFT], value, isEqual);
      return true;
    case VALUE.TYPE_KIND:
      if (a.flagsSize !== 4) return true;
      a.isImpossible = isEqual && isOfOtherKind(a, facts.subject[LEFT], value);
      if (isEqual) noteKind(a, facts.subject[LEFT], value);
      return true;
  }
  return false;
}

/** Whether the type of the reference with that name is known, and not of the kind `kind` (TYPE_KIND). */
function isOfOtherKind({ exactTypes }: Analysis, name: number, kind: number): boolean {
  const exact = exactTypes.get(name);
  if (exact === undefined) return false;
  if (kind === TYPE_KIND.STRUCT) return !heapMatches(exact, HEAP.struct);
  return kind === TYPE_KIND.ARRAY && !heapMatches(exact, HEAP.array);
}

function assumeDifferent(a: Analysis): void {
  const { facts } = a;
  if (facts.isConstant(RIGHT) && isSeen(a, RIGHT) && assumeReference(a, facts.low[RIGHT], false)) return;
  if (!facts.isConstant(RIGHT) || !isSeen(a, LEFT)) return;
  if (facts.kind[LEFT] === VALUE.LENGTH && facts.low[RIGHT] === 0) noteLeast(a, facts.lengthLimit[LEFT], 1);
  if (!facts.isNumber(LEFT)) return;
  if (facts.low[LEFT] === facts.low[RIGHT]) facts.boundBelow(LEFT, facts.low[LEFT] + 1);
  if (facts.high[LEFT] === facts.high[RIGHT]) facts.boundAbove(LEFT, facts.high[LEFT] - 1);
}
