/**
 * Rules for arithmetic on locations, for all architectures. In: locations of operands, the operation, its size (4 or 8
 * bytes). Out: facts about the result, which takes the place of the first operand.
 *
 * Sums keep their name only where they cannot wrap, so that a bound of one bounds the other.
 */
import { RECORD } from "../abi/context_layout.ts";
import { REF_TAG } from "../abi/gc_layout.ts";
import { bottomOf } from "../wasm/subtype.ts";
import { HEAP } from "../wasm/types.ts";
import { type Analysis, FLAGS, NAMES } from "./analysis.ts";
import { EXACT, type Facts, MAX32, PLACE } from "./facts.ts";
import { joinReferences, numberFacts, setAbout, setHeapReference, setJump, setTagBits, setTest } from "./kind_facts.ts";
import { isArrayLimit, isMemoryLimit, limitShift, maskedLimit, productLimit, shiftedLimit } from "./limits.ts";
import { NUMBER_FACTS, REFERENCE_FACTS, VALUE } from "./value_kinds.ts";
import { addCells, noteEighth } from "./allocation.ts";
import { SHIFT } from "./instructions.ts";
import { addNumber, evaluateAddress, hasDistance, isNumberOrLength, scaled, takeLength } from "./memory.ts";
import { makeElement, moveElement } from "./objects.ts";

const { LEFT, RIGHT, RESULT, ADDRESS } = PLACE;
/** Kinds of addresses that may be moved although their columns hold no distance. */
const MOVED_KINDS: readonly number[] = [VALUE.ELEMENT, VALUE.CLASS_CELL, VALUE.SIZE_CELL, VALUE.DESCRIPTOR];

/** General register `r` becomes a number of `size` bytes about which nothing is known. */
export function define(a: Analysis, r: number, size: number, result = 0): void {
  a.facts.number(r, 0, size >= 8 ? Infinity : 2 ** (size * 8) - 1, a.name(result));
}

/** Register `r` becomes the value of location `from`, cut to `size` bytes (4 or 8). */
export function assign(a: Analysis, r: number, from: number, size: number): void {
  const { facts } = a;
  if (size === 8 || facts.isShort(from) || (a.isExploring && facts.isNumber(from) && facts.name[from] !== 0)) {
    facts.copy(r, from);
  } else if (isInShortMemory(a, from)) {
    facts.copy(r, from);
    facts.high[r] = Math.min(facts.high[r], 2 ** 32 - facts.room[r]);
  } else define(a, r, 4);
  // Without a name, the index of an element is a constant.
  if (facts.name[r] === 0 && facts.kind[r] !== VALUE.ELEMENT) nameLocation(a, r);
}

/** Whether the number at location `l` is below the length of a memory with 32-bit addresses, and so has 32 bits. */
function isInShortMemory({ facts, module }: Analysis, l: number): boolean {
  const of = facts.of[l];
  return facts.isNumber(l) && of >= 0 && module.memoryIs64[of] === false && facts.room[l] >= 1 && facts.low[l] >= 0;
}

/** Gives the value of location `l` the name of the current instruction. */
function nameLocation(a: Analysis, l: number): void {
  a.facts.name[l] = a.name();
  a.facts.delta[l] = 0;
}

/** Names the value of location `l` if it has no name: with the names 2 and 3 of the instruction, for its operands. */
export function needName(a: Analysis, l: number, operand: number): void {
  // Without a name, the index of an element is a constant.
  if (a.facts.name[l] !== 0 || a.facts.kind[l] === VALUE.ELEMENT) return;
  a.facts.name[l] = a.name(operand);
  a.facts.delta[l] = 0;
}

/** Location `l` becomes the constant `value`, as `size` bytes see it; a negative one is at least 2^63. */
export function constant(a: Analysis, l: number, value: number, size: number): void {
  const seen = size === 4 ? value >>> 0 : size === 2 ? value & 0xffff : size === 1 ? value & 0xff : value;
  if (seen < 0 || seen === Infinity) a.facts.number(l, EXACT, Infinity, a.name());
  else a.facts.number(l, seen, seen, a.name());
}

/**
 * Whether the address was that of an entry of a table in the image. If so, PLACE.ADDRESS has the table and the entries.
 */
export function isJumpTable(a: Analysis): boolean {
  const { code, facts, n } = a;
  const table = code.base[n], index = code.index[n];
  if (table < 0 || index < 0 || code.scale[n] !== 2 || code.displacement[n] !== 0 || code.size[n] !== 4) return false;
  if (facts.kind[table] !== VALUE.IMAGE || facts.low[table] !== facts.high[table]) return false;
  const { low, high } = facts;
  setJump(facts, ADDRESS, VALUE.JUMP_ENTRY, low[table], low[index], high[index]);
  return true;
}

/** The address of an object plus a displacement is that of its first element. */
function moveReference(a: Analysis): void {
  const { facts } = a;
  const at = facts.low[ADDRESS];
  facts.number(RESULT, 0, 0, 0);
  makeElement(a, ADDRESS, a.referent, RESULT, 0);
  if (facts.kind[ADDRESS] === VALUE.ELEMENT) facts.shift(ADDRESS, at);
}

/** The address in the context of the record of an own function is a reference to it. */
function recordOfFunction(a: Analysis): void {
  const { facts, module } = a;
  const at = facts.low[ADDRESS] - module.code.layout.functionsOffset,
    index = module.importedFunctions + at / RECORD.SIZE;
  if (facts.low[ADDRESS] !== facts.high[ADDRESS] || at < 0 || !Number.isInteger(index)) return;
  const type = module.functionTypeId[index];
  if (type === undefined) return;
  setHeapReference(facts, ADDRESS, type, REFERENCE_FACTS.NOT_NULL | REFERENCE_FACTS.OWN, 0, a.name());
  a.exactTypes.set(a.name(), type);
}

/**
 * Location `to` becomes the address of the current instruction's memory operand, which is not accessed. `isWhole`: no
 * part of the displacement follows.
 */
export function takeAddress(a: Analysis, to: number, isWhole = true): void {
  const { code, facts, n } = a;
  if (code.base[n] >= 0 && code.base[n] !== a.machine.stackPointer) needName(a, code.base[n], 2);
  evaluateAddress(a);
  if (facts.isNumber(ADDRESS) && !isExact(a)) facts.forget(ADDRESS);
  const isMoved = code.displacement[n] !== 0 || code.index[n] >= 0;
  if (isMoved && facts.kind[ADDRESS] === VALUE.REFERENCE) moveReference(a);
  if (isMoved && !hasDistance(facts, ADDRESS) && !MOVED_KINDS.includes(facts.kind[ADDRESS])) facts.forget(ADDRESS);
  if (facts.kind[ADDRESS] === VALUE.CONTEXT && code.size[n] === 8 && isWhole) recordOfFunction(a);
  assign(a, to, ADDRESS, code.size[n]);
  noteSum(a, to);
}

/** Whether the sum of numbers in PLACE.ADDRESS did not wrap: it is small, or inside of a memory. */
function isExact({ facts, isExploring }: Analysis): boolean {
  if (facts.low[ADDRESS] < 0) return false;
  return facts.high[ADDRESS] <= EXACT || hasRoom(facts, ADDRESS, 0) || isExploring;
}

/** Notes the two numbers whose sum an address is. */
function noteSum(a: Analysis, to: number): void {
  const { code, facts, n } = a;
  const x = code.base[n], y = code.index[n];
  if (x < 0 || y < 0 || code.scale[n] !== 0 || code.displacement[n] !== 0 || code.size[n] !== 8) return;
  if (to === x || to === y || !facts.isNumber(x) || !facts.isNumber(y)) return;
  needName(a, x, 2);
  needName(a, y, 3);
  a.noteSum(to, facts.name[x], facts.delta[x], facts.name[y], facts.delta[y]);
}

/** Location `to` becomes the sum of its value and that of location `from`, `size` bytes. */
export function add(a: Analysis, to: number, from: number, size: number): void {
  const { facts } = a;
  if (to === from && facts.isNumber(to)) return shiftLeft(a, to, size, 1);
  if (size === 8 && facts.isConstant(to) && isNumberOrLength(facts, from)) return addToConstant(a, to, from);
  const pointer = facts.isNumber(to) ? from : to, number = pointer === to ? from : to;
  if (size === 8 && facts.kind[pointer] === VALUE.REFERENCE) return addToArray(a, to, pointer, number);
  if (size === 8 && facts.kind[pointer] === VALUE.CELLS) return addCells(a, to, pointer, number);
  if (size === 8 && facts.kind[pointer] === VALUE.ELEMENT) return addToElement(a, to, pointer, number);
  if (size === 8 && addToTable(a, to, pointer, number)) return;
  if (!facts.isNumber(number) || !hasDistance(facts, pointer)) return define(a, to, size);
  const isLarge = size === 8 && facts.isNumber(pointer) && Math.max(facts.low[to], facts.low[from]) >= EXACT;
  if (isLarge) return addLarge(a, to);
  const sum = scaled(facts, number, 0);
  const { low, high, name, delta, step, room, of } = sum;
  facts.copy(RESULT, pointer);
  const other = facts.name[RESULT], otherDelta = facts.delta[RESULT];
  addNumber(facts, RESULT, { low, high, name, delta, step, room, of });
  finishSum(a, to, size);
  if (size === 8 && facts.isNumber(to)) a.noteSum(to, name, delta, other, otherDelta);
}

/** The instruction that made the sum of two registers at location `l`, 64 bits, has set the flags. */
export function noteCarry(a: Analysis, l: number): void {
  const { facts } = a;
  if (a.flags !== FLAGS.NONE) return;
  if (facts.isNumber(l) && facts.high[l] <= EXACT) {
    a.flags = FLAGS.EXACT_SUM;
    return;
  }
  if (facts.name[l] !== a.name() || !a.ranges.mayWrap(a.name())) return;
  a.flags = FLAGS.SUM;
  facts.copy(LEFT, l);
}

/** Location `to` becomes the sum of two numbers, one of which is large. Unless the carry is set, the sum is larger. */
function addLarge(a: Analysis, to: number): void {
  define(a, to, 8);
  a.flags = FLAGS.LARGE_SUM;
  a.facts.copy(LEFT, to);
}

/** The address of an array plus a number and a constant. */
function addToArray(a: Analysis, to: number, array: number, number: number, amount = 0): void {
  makeElement(a, RESULT, array, number, 0);
  if (a.facts.kind[RESULT] === VALUE.ELEMENT) a.facts.shift(RESULT, amount);
  if (a.facts.kind[RESULT] === VALUE.ELEMENT) a.facts.copy(to, RESULT);
  else define(a, to, 8);
}

/** The address of an element plus a number of bytes. */
function addToElement(a: Analysis, to: number, element: number, number: number): void {
  const { facts } = a;
  facts.copy(RESULT, element);
  moveElement(a, RESULT, number, 0);
  if (facts.kind[RESULT] === VALUE.ELEMENT) facts.copy(to, RESULT);
  else define(a, to, 8);
}

/** Sums of objects: jump entries with their table, descriptors with their table. */
function addToTable(a: Analysis, to: number, x: number, y: number): boolean {
  const { facts } = a;
  for (const [table, entry] of [[x, y], [y, x]]) {
    const kind = facts.kind[entry];
    if (kind === VALUE.JUMP_ENTRY && facts.isStart(table, VALUE.IMAGE, 0) === false) {
      const at = facts.low[table];
      if (facts.kind[table] !== VALUE.IMAGE || facts.high[table] !== at || at !== facts.imageOffset[entry]) {
        return false;
      }
      setJump(facts, to, VALUE.JUMP_TARGET, at, facts.firstEntry[entry], facts.lastEntry[entry]);
      return true;
    }
    const isOffset = kind === VALUE.NUMBER && (facts.traits[entry] & NUMBER_FACTS.ENTRIES) !== 0;
    if (isOffset && facts.kind[table] === VALUE.IMAGE && facts.low[table] === facts.high[table]) {
      const { jumpBytes } = a.machine;
      const first = Math.ceil(facts.low[entry] / jumpBytes), last = Math.floor(facts.high[entry] / jumpBytes);
      setJump(facts, to, VALUE.JUMP_PLACE, facts.low[table], first, last);
      return true;
    }
    if (kind === VALUE.DESCRIPTOR_OFFSET && facts.isStart(table, VALUE.DESCRIPTORS, 0)) {
      setAbout(facts, to, VALUE.DESCRIPTOR, facts.subject[entry]);
      return true;
    }
  }
  return false;
}

/** The sum in PLACE.RESULT becomes register `to`. */
function finishSum(a: Analysis, to: number, size: number): void {
  const { facts } = a;
  if (size === 4 && !(facts.isNumber(RESULT) && facts.high[RESULT] <= MAX32)) return define(a, to, 4);
  facts.copy(to, RESULT);
  if (facts.name[to] === 0) nameLocation(a, to);
}

/** Adds a constant to the value of location `to`, `size` bytes. */
export function addAmount(a: Analysis, to: number, amount: number, size: number): void {
  if (size === 8) addImmediate(a, to, amount);
  else addShortImmediate(a, to, amount);
}

function addImmediate(a: Analysis, to: number, amount: number): void {
  const { facts } = a;
  if (facts.kind[to] === VALUE.REFERENCE) {
    facts.number(RESULT, 0, 0, 0);
    return addToArray(a, to, to, RESULT, amount);
  }
  if (facts.isNumber(to)) {
    if (staysNegative(a, to, amount)) return facts.number(to, EXACT, Infinity, a.name());
    const isExact = facts.high[to] + amount <= EXACT || (amount >= 0 && hasRoom(facts, to, amount));
    if (facts.low[to] + amount < 0 || !isExact) return define(a, to, 8);
  } else if (!hasDistance(facts, to) && facts.kind[to] !== VALUE.ELEMENT) return define(a, to, 8);
  facts.shift(to, amount);
}

function addShortImmediate(a: Analysis, to: number, amount: number): void {
  const { facts } = a;
  const stays = facts.isNumber(to) && facts.low[to] + amount >= 0 && facts.high[to] + amount <= MAX32;
  if (stays || (a.isExploring && facts.isNumber(to) && facts.low[to] + amount >= 0)) facts.shift(to, amount);
  else define(a, to, 4);
}

/** Whether the number at location `l` plus `amount` is at most the length of a memory, and so does not wrap. */
function hasRoom({ of, room }: Facts, l: number, amount: number): boolean {
  return isMemoryLimit(of[l]) && room[l] >= amount;
}

/**
 * The sum of a constant and a number of 64 bits, for which the carry is tested next: unless it is set, the sum is
 * exact.
 */
export function addToConstant(a: Analysis, to: number, from: number): void {
  const { facts } = a;
  const amount = facts.low[to];
  const name = facts.name[from], delta = facts.delta[from];
  if (facts.high[from] + amount <= EXACT || hasRoom(facts, from, amount)) {
    facts.copy(to, from);
    takeLength(facts, to);
    facts.shift(to, amount);
    return;
  }
  define(a, to, 8);
  if (name === 0) return;
  a.flags = FLAGS.ADDED;
  a.flagsSize = 8;
  a.flagsName = name;
  a.flagsDelta = delta + amount;
  facts.copy(LEFT, to);
}

/**
 * Whether the sum of the value at location `l` and the constant `amount`, 64 bits, sets the carry: the last instruction
 * made that value, which is negative as a signed number, and no further from zero.
 */
export function carries(a: Analysis, l: number, amount: number): boolean {
  const value = lastConstant(a, l);
  return value < 0 && value >= -EXACT && value + amount >= 0;
}

/** Whether the sum is negative as a signed number, as the value at location `l` is: at least 2^63 without a sign. */
export function staysNegative(a: Analysis, l: number, amount: number): boolean {
  const value = lastConstant(a, l);
  return value < 0 && amount >= 0 && amount < MAX32 && value + amount < 0;
}

/** The value at location `l` as a signed number if the last instruction made it of a constant; 0 for others. */
function lastConstant(a: Analysis, l: number): number {
  const { code, facts, machine, n } = a;
  if (n === 0 || facts.name[l] !== a.name(0) - NAMES || facts.delta[l] !== 0) return 0;
  return machine.constantOf(code, n - 1);
}

/** Location `to` becomes the difference of its value and that of location `from`, `size` bytes. */
export function subtract(a: Analysis, to: number, from: number, size: number): void {
  const { facts } = a;
  const isExact = facts.isNumber(to) && facts.isNumber(from) && facts.low[to] >= facts.high[from];
  if (isExact && (size === 8 || facts.high[to] - facts.low[from] <= MAX32)) {
    facts.number(to, facts.low[to] - facts.high[from], facts.high[to] - facts.low[from], a.name());
  } else define(a, to, size);
}

/** The largest value of location `l`, of which at most `size` bytes are read. */
export function highOf(a: Analysis, l: number, size: number): number {
  const { facts } = a;
  if (facts.kind[l] === VALUE.TYPE_TEST) return 1;
  const high = isNumberOrLength(facts, l) ? facts.high[l] : Infinity;
  return size === 4 ? Math.min(high, MAX32) : high;
}

/** Location `to` is 0, or the number in location `number`: bounds from above hold for both. */
function mask(a: Analysis, to: number, number: number): void {
  const { facts } = a;
  const high = facts.high[number], room = facts.room[number], of = maskedLimit(facts.of[number]);
  const isOddOrZero = numberFacts(facts, number) & NUMBER_FACTS.ZERO_OR_ODD;
  facts.number(to, 0, high, a.name());
  facts.traits[to] = isOddOrZero;
  facts.room[to] = room;
  facts.of[to] = of;
}

/** Whether location `l` is a number that `size` bytes hold, and location `other` a mask of at least these. */
function isMasked({ facts }: Analysis, l: number, other: number, size: number): boolean {
  const hasBytes = facts.kind[other] === VALUE.MASK && facts.maskBytes[other] >= size;
  return hasBytes && isNumberOrLength(facts, l) && (size === 8 || facts.isShort(l));
}

/** Location `to` becomes the bitwise AND of its value and that of location `from`, `size` bytes. */
export function and(a: Analysis, to: number, from: number, size: number): void {
  const { facts } = a;
  if (facts.kind[to] === VALUE.REFERENCE && facts.isConstant(from) && facts.low[from] <= 3 && facts.name[to] !== 0) {
    const mask = facts.low[from];
    a.flags = FLAGS.TESTED;
    facts.copy(LEFT, to);
    facts.number(RIGHT, mask, mask, 0);
    return setTagBits(facts, to, facts.name[to], mask, a.name());
  }
  if (keepsAll(facts, to, from)) return;
  if (isMasked(a, from, to, size)) return mask(a, to, from);
  if (isMasked(a, to, from, size)) return mask(a, to, to);
  const high = Math.min(highOf(a, to, size), highOf(a, from, size));
  setBits(a, to, high, isOddAt(facts, to) && isOddAt(facts, from));
}

/**
 * Whether location `mask` has ones, and no other bits, for all bits that the number at location `l` may have. Only a
 * name of its own makes the number one of elements, so those at a distance from a name do not count.
 */
function keepsAll(facts: Facts, l: number, mask: number): boolean {
  if (!facts.isConstant(mask) || !facts.isNumber(l) || facts.delta[l] !== 0) return false;
  const ones = facts.low[mask];
  return facts.high[l] <= ones && ones <= MAX32 && Number.isInteger(Math.log2(ones + 1));
}

/** Location `to` becomes a number of at most `high`, which is odd if `isOdd`. */
function setBits(a: Analysis, to: number, high: number, isOdd: boolean): void {
  a.facts.number(to, isOdd ? 1 : 0, high, a.name());
  if (isOdd) a.facts.traits[to] = NUMBER_FACTS.ODD | NUMBER_FACTS.ZERO_OR_ODD;
}

/** Whether the value of location `l` is an odd number. */
function isOddAt(facts: Facts, l: number): boolean {
  return facts.isNumber(l) && (numberFacts(facts, l) & NUMBER_FACTS.ODD) !== 0;
}

/**
 * Location `to` becomes the outcome of either of two tests of one reference. Returns false if the locations are not
 * such tests.
 */
function eitherTest(a: Analysis, to: number, from: number): boolean {
  const { facts } = a;
  const name = facts.subject[to], x = testedHeap(facts, to), y = testedHeap(facts, from);
  if (x === undefined || y === undefined || name !== facts.subject[from]) return false;
  const heap = x === y || y === bottomOf(x) ? x : x === bottomOf(y) ? y : undefined;
  if (heap === undefined) return false;
  const orNull = isNullTested(facts, to) || isNullTested(facts, from) ? 1 : 0;
  setTest(facts, to, VALUE.TYPE_TEST, name, heap, a.name());
  facts.orNull[to] = orNull;
  return true;
}

/** The heap type of a reference if location `l`, the outcome of its test, is 1; undefined: it is no such outcome. */
function testedHeap({ kind, testedHeap, tagMask }: Facts, l: number): number | undefined {
  if (kind[l] === VALUE.TYPE_TEST) return testedHeap[l];
  return kind[l] === VALUE.TAG_BITS && tagMask[l] === REF_TAG.I31 ? HEAP.i31 : undefined;
}

/** Whether the test at location `l` succeeds for null, too. */
function isNullTested({ kind, orNull }: Facts, l: number): boolean {
  return kind[l] === VALUE.TYPE_TEST && orNull[l] === 1;
}

/** Location `to` becomes the bitwise OR, or XOR with `isExclusive`, of its value and that of location `from`. */
export function or(a: Analysis, to: number, from: number, size: number, isExclusive: boolean): void {
  const { facts } = a;
  if (to === from && isExclusive) return facts.number(to, 0, 0, a.name());
  if (!isExclusive && eitherTest(a, to, from)) return;
  const high = Math.max(highOf(a, to, size), highOf(a, from, size));
  const bound = high > MAX32 ? Infinity : 2 ** (32 - Math.clz32(high)) - 1;
  setBits(a, to, bound, !isExclusive && (isOddAt(facts, to) || isOddAt(facts, from)));
}

function shiftedRight(high: number, count: number): number {
  return high === Infinity ? (count > 11 ? 2 ** (64 - count) - 1 : Infinity) : Math.floor(high / 2 ** count);
}

function shiftLeft(a: Analysis, to: number, size: number, count: number): void {
  const { facts } = a;
  a.exactTypes.delete(a.name());
  if (count === 6 && size === 8) {
    if (facts.kind[to] === VALUE.TYPE_ID) return setAbout(facts, to, VALUE.DESCRIPTOR_OFFSET, facts.subject[to]);
    // No reference has the name of the type of the module.
    if (facts.kind[to] === VALUE.EXPECTED_TYPE) {
      a.exactTypes.set(a.name(), a.module.typeId[facts.index[to]]);
      return setAbout(facts, to, VALUE.DESCRIPTOR_OFFSET, a.name());
    }
  }
  takeLength(facts, to);
  if (size === 8 && count >= 1 && count <= 4 && shiftIndex(a, to, count)) return;
  const high = highOf(a, to, size) * 2 ** count;
  const isCut = size === 4 && !facts.isShort(to);
  if (count < 0 || isCut || high > (size === 4 ? MAX32 : EXACT)) return define(a, to, size);
  const { room, of, step } = scaled(facts, to, Math.min(count, 3));
  facts.number(to, facts.isNumber(to) ? facts.low[to] * 2 ** count : 0, high, a.name());
  if (count <= 3) facts.setStep(to, step);
  if (count === 3 && of >= 0) {
    facts.room[to] = room;
    facts.of[to] = of;
  }
}

/** An index or a number of elements becomes a distance in bytes; returns false if the location has neither. */
function shiftIndex(a: Analysis, to: number, count: number): boolean {
  const { facts } = a;
  const of = facts.of[to], name = facts.name[to];
  if (facts.kind[to] !== VALUE.NUMBER || facts.high[to] > MAX32 || facts.isConstant(to)) return false;
  const isIndex = isArrayLimit(of) && limitShift(of) === 0;
  const limit = isIndex ? shiftedLimit(of, count) : of < 0 && facts.delta[to] === 0 ? productLimit(name, count) : -1;
  if (limit < 0) return false;
  const room = isIndex ? facts.room[to] : 0;
  if (isIndex && facts.delta[to] === 0) a.ranges.noteProduct(a.name(), name, count);
  const step = facts.stepOf(to);
  facts.number(to, facts.low[to] * 2 ** count, facts.high[to] * 2 ** count, a.name());
  facts.setStep(to, step * 2 ** count);
  facts.of[to] = limit;
  facts.room[to] = room;
  return true;
}

/** Location `l`, an address in the context, becomes a reference if it is the address of a function's record. */
function becomeRecord(a: Analysis, l: number): void {
  const { facts, module } = a;
  const index = (facts.low[l] - module.code.layout.importsOffset) / RECORD.SIZE;
  const type = facts.low[l] === facts.high[l] ? module.functionTypeId[index] : undefined;
  if (type === undefined) return;
  // Addresses of several records may be the same name with different distances; a reference has a name and no distance.
  const name = facts.delta[l] === 0 ? facts.name[l] : a.name();
  setHeapReference(facts, l, type, REFERENCE_FACTS.NOT_NULL, 0, name);
}

/** One of two references. */
function chooseReference(a: Analysis, to: number, from: number): void {
  const { facts } = a;
  if (!joinReferences(facts, to, from)) return define(a, to, 8);
  facts.name[to] = a.name();
}

/** Location `to` is shifted (`operation`: SHIFT) by `count` bits; < 0: by an unknown count. */
export function shiftBy(a: Analysis, to: number, size: number, operation: number, count: number): void {
  const { facts } = a;
  a.facts.takeNumber(to);
  const high = highOf(a, to, size);
  switch (operation) {
    case SHIFT.SHL:
      return shiftLeft(a, to, size, count);
    case SHIFT.SHR:
      if (size === 8 && count === 3) noteEighth(a, to, a.name());
      return facts.number(to, 0, shiftedRight(high, Math.max(count, 0)), a.name());
    case SHIFT.SAR:
      if (high <= (size === 4 ? 0x7fffffff : EXACT)) {
        return facts.number(to, 0, shiftedRight(high, Math.max(count, 0)), a.name());
      }
  }
  define(a, to, size);
}

/** Location `to` becomes its value or that of location `from`. */
export function choose(a: Analysis, to: number, from: number, size: number): void {
  const { facts } = a;
  facts.takeNumber(to);
  facts.takeNumber(from);
  takeLength(facts, to);
  if (size === 4 && !(facts.isShort(to) && facts.isShort(from))) return define(a, to, size);
  for (const l of [to, from]) if (facts.kind[l] === VALUE.CONTEXT) becomeRecord(a, l);
  if (facts.kind[to] === VALUE.REFERENCE || facts.kind[from] === VALUE.REFERENCE) return chooseReference(a, to, from);
  if (!facts.isNumber(to) || !facts.isNumber(from)) return define(a, to, size);
  if (facts.isConstant(from) && facts.low[from] === 0) return mask(a, to, to);
  const low = Math.min(facts.low[to], facts.low[from]);
  const high = Math.max(highOf(a, to, size), highOf(a, from, size));
  const common = numberFacts(facts, to) & numberFacts(facts, from);
  facts.number(to, low, high, a.name());
  facts.traits[to] = common;
}
