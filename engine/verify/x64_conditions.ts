/**
 * Rules for conditions: the facts that hold on each way of a branch. In: the meaning of the flags and a condition code.
 * Out: refined facts.
 *
 *     x < y, x ≤ y     bounds of both; if y is a length, room of x; if x is a length and y constant, a bound of the length
 *     x = y            bounds; the type of a record if x is its type id, or the ancestor at the depth of y, and y is the id of
 *                      a type; a record of the own instance if x is its context and y the own one
 *     stack, limit     the depth that has been compared
 *
 * Comparisons of signed numbers are read like those of unsigned ones where both operands are known to be small enough.
 */
import { type Analysis, FLAGS } from "./analysis.ts";
import { lengthPlace, MAX32, PLACE, RECORD_FACTS, VALUE } from "./facts.ts";

const { LEFT, RIGHT } = PLACE;

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

/** Condition `condition` holds. */
export function assume(a: Analysis, condition: number): void {
  if (a.flags === FLAGS.ADDED) return assumeAdded(a, condition);
  if (a.flags === FLAGS.UPPER_HALF) return assumeUpperHalf(a, condition);
  if (a.flags !== FLAGS.COMPARED) return;
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
  const name = facts.name[LEFT];
  for (let l = 0; l < facts.count; l++) {
    if (facts.name[l] !== name || facts.delta[l] !== 0) continue;
    facts.name[l] = a.flagsName;
    facts.delta[l] = a.flagsDelta;
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
  if (kindX === VALUE.STACK_LIMIT && kindY === VALUE.STACK && strict === 1) return assumeFence(a, y);
  if (!isSeen(a, x) || !isSeen(a, y)) return;
  if (kindX === VALUE.NUMBER && kindY === VALUE.LENGTH) return assumeInside(a, x, facts.id[y], strict);
  if (kindX !== VALUE.NUMBER || kindY !== VALUE.NUMBER) return;
  const high = facts.high[y] - strict, low = facts.low[x] + strict;
  facts.boundAbove(x, high);
  facts.boundBelow(y, low);
}

/** The number at `x` plus `room` is at most a length. */
function assumeInside({ facts, ranges }: Analysis, x: number, limit: number, room: number): void {
  facts.boundByLength(x, room, limit);
  ranges.bound(facts.name[x], limit);
  const least = facts.low[x] + room, place = lengthPlace(limit);
  if (place !== 0 && least > facts.low[place]) facts.low[place] = least;
}

/** The stack limit is below location `y`. */
function assumeFence(a: Analysis, y: number): void {
  const depth = -a.facts.low[y];
  if (a.facts.low[y] === a.facts.high[y] && depth > a.fence) a.fence = depth;
}

function assumeEqual(a: Analysis): void {
  const { facts } = a;
  if (assumeKinds(a, LEFT, RIGHT) || assumeKinds(a, RIGHT, LEFT)) return;
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
    if (a.flagsSize === 8 && facts.isStart(y, VALUE.CONTEXT, 0)) noteRecord(a, facts.id[x], RECORD_FACTS.OWN, 0);
    return true;
  }
  if (kindX === VALUE.TAIL_RETURN && kindY === VALUE.RETURN_ADDRESS) {
    if (a.flagsSize === 8 && a.depth === 0) reuseTailFrame(a);
    return true;
  }
  if (kindY !== VALUE.EXPECTED_TYPE || a.flagsSize !== 4) return false;
  const type = facts.id[y];
  const isDepth = kindX === VALUE.ANCESTOR && facts.low[x] === module.typeDepth[type];
  if (kindX === VALUE.TYPE_ID || isDepth) noteRecord(a, facts.id[x], RECORD_FACTS.NOT_NULL, type + 1);
  return true;
}

/**
 * The function was entered by a tail call from another instance: the stub's address and a context are above its frame
 * already. They count as pushed.
 */
function reuseTailFrame(a: Analysis): void {
  a.depth = 16;
  const stub = a.newSlot(16, 8), context = a.newSlot(8, 8);
  a.facts.set(stub, VALUE.TAIL_RETURN, 0, 0, 0, 0);
  a.facts.set(context, VALUE.CONTEXT, 0, 0, 0, 0);
}

/** The record named `name` has the facts `known`, and type `type` − 1 unless it is 0. */
function noteRecord(a: Analysis, name: number, known: number, type: number): void {
  if (name < 0) a.ownRecord = name;
  const { facts } = a;
  for (let l = 0; l < facts.count; l++) {
    if (facts.kind[l] !== VALUE.RECORD || facts.name[l] !== name) continue;
    facts.low[l] |= known;
    if (type !== 0) facts.id[l] = type;
  }
}

function assumeDifferent(a: Analysis): void {
  const { facts } = a;
  if (!facts.isNumber(LEFT) || !facts.isConstant(RIGHT) || !isSeen(a, LEFT)) return;
  if (facts.low[LEFT] === facts.low[RIGHT]) facts.boundBelow(LEFT, facts.low[LEFT] + 1);
  if (facts.high[LEFT] === facts.high[RIGHT]) facts.boundAbove(LEFT, facts.high[LEFT] - 1);
}
