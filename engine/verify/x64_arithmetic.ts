/**
 * Rules for moves and arithmetic of x86-64. In: an instruction without control flow. Out: facts about its results.
 *
 * A write of 32 bits clears the upper half of a register; narrower writes keep the rest. Sums keep their name only
 * where they cannot wrap, so that a bound of one bounds the other.
 */
import { RECORD } from "../abi/context_layout.ts";
import { type Analysis, FLAGS, REASON } from "./analysis.ts";
import {
  EXACT,
  joinReferences,
  LIMIT,
  limitShift,
  MAX32,
  NUMBER_FACTS,
  PLACE,
  productLimit,
  REFERENCE_FACTS,
  VALUE,
} from "./facts.ts";
import { addCells, noteEighth } from "./allocation.ts";
import { makeElement } from "./objects.ts";
import { testedType } from "./x64_conditions.ts";
import { OPERANDS } from "./x64_decoder.ts";
import { ALU, KIND, SHIFT } from "./x64_forms.ts";
import { addNumber, evaluateAddress, hasDistance, load, modify, scaled, store } from "./x64_memory.ts";

const { LEFT, RIGHT, RESULT, ADDRESS } = PLACE;
const RAX = 0, RCX = 1, RDX = 2, RSP = 4, RDI = 7;
/** Longest table of jumps. */
const MAX_JUMPS = 1 << 16;

/** General register `r` becomes a number of `size` bytes about which nothing is known. */
export function define(a: Analysis, r: number, size: number, result = 0): void {
  a.facts.number(r, 0, size >= 8 ? Infinity : 2 ** (size * 8) - 1, a.name(result));
}

/** Register `r` becomes the value of location `from`, cut to `size` bytes (4 or 8). */
function assign(a: Analysis, r: number, from: number, size: number): void {
  const { facts } = a;
  if (size === 8 || facts.isShort(from)) facts.copy(r, from);
  else define(a, r, 4);
  // Without a name, the index of an element is a constant.
  if (facts.name[r] === 0 && facts.kind[r] !== VALUE.ELEMENT) nameLocation(a, r);
}

/** Gives the value of location `l` the name of the current instruction. */
function nameLocation(a: Analysis, l: number): void {
  a.facts.name[l] = a.name();
  a.facts.delta[l] = 0;
}

/** Names the value of location `l` if it has no name: with the names 2 and 3 of the instruction, for its operands. */
function needName(a: Analysis, l: number, operand: number): void {
  if (a.facts.name[l] !== 0) return;
  a.facts.name[l] = a.name(operand);
  a.facts.delta[l] = 0;
}

/** The immediate of the current instruction as a signed number; Infinity if it is not exact. */
function immediateOf(a: Analysis): number {
  const { code, n } = a;
  if (code.kind[n] !== KIND.CONSTANT || code.wide[n] === 0) return code.immediate[n];
  const value = code.immediateHigh[n] * 4294967296 + (code.immediate[n] >>> 0);
  return Math.abs(value) <= EXACT ? value : Infinity;
}

/** Location `l` becomes the constant `value`, as `size` bytes see it. */
function constant(a: Analysis, l: number, value: number, size: number): void {
  const seen = size === 4 ? value >>> 0 : size === 2 ? value & 0xffff : size === 1 ? value & 0xff : value;
  if (seen < 0 || seen === Infinity) define(a, l, 8);
  else a.facts.number(l, seen, seen, a.name());
}

/** The source of an instruction of two operands, in a location: a register, or a load or immediate in PLACE.RESULT. */
function sourceOf(a: Analysis): number {
  const { code, n } = a;
  if (code.hasImmediate[n] !== 0) {
    constant(a, RESULT, immediateOf(a), code.size[n]);
    return RESULT;
  }
  if (code.operands[n] === OPERANDS.M_R) return code.reg[n];
  if (code.rm[n] >= 0) return code.rm[n];
  load(a, code.size[n]);
  return RESULT;
}

/** The general register that the instruction writes, or −1 for memory. */
function destinationOf(a: Analysis): number {
  const { code, n } = a;
  return code.operands[n] === OPERANDS.R_M ? code.reg[n] : code.rm[n];
}

/** Moves of all kinds. */
export function move(a: Analysis): void {
  const { code, n } = a;
  const size = code.size[n];
  const to = destinationOf(a);
  if (to >= 0) {
    const from = sourceOf(a);
    if (size >= 4) writeRegister(a, to, from, size);
    else writeLow(a, to, size);
  } else if (code.hasImmediate[n] !== 0) storeImmediate(a, size);
  else store(a, size, code.reg[n]);
}

function writeRegister(a: Analysis, to: number, from: number, size: number): void {
  if (to === RSP) return a.fail(REASON.STACK_POINTER);
  assign(a, to, from, size);
}

function storeImmediate(a: Analysis, size: number): void {
  constant(a, LEFT, a.code.immediate[a.n], size);
  a.flags = FLAGS.NONE;
  store(a, size, LEFT);
}

/** A write to the low bytes of register `r`. */
function writeLow(a: Analysis, r: number, size: number): void {
  if (r === RSP) return a.fail(REASON.STACK_POINTER);
  const { facts } = a;
  const mask = 2 ** (size * 8) - 1;
  const high = facts.isNumber(r) ? facts.high[r] : Infinity;
  facts.number(r, 0, high <= mask ? mask : high <= MAX32 ? MAX32 : Infinity, a.name());
}

export function loadConstant(a: Analysis): void {
  const { code, n } = a;
  if (code.reg[n] === RSP) return a.fail(REASON.STACK_POINTER);
  constant(a, code.reg[n], immediateOf(a), code.size[n]);
}

/** Extensions: the source has `size` bytes, the result 4 or 8. */
export function extend(a: Analysis, isSigned: boolean): void {
  const { code, facts, n } = a;
  const to = code.reg[n], size = code.size[n], wide = code.wide[n] !== 0;
  if (to === RSP) return a.fail(REASON.STACK_POINTER);
  const from = code.rm[n];
  if (from < 0) load(a, size);
  const source = from < 0 ? RESULT : from;
  const limit = 2 ** (size * 8) - 1;
  if (facts.kind[source] === VALUE.SIZE_CLASS && !isSigned) return facts.copy(to, source);
  if (facts.kind[source] === VALUE.TYPE_FLAG && size === 1 && !isSigned) {
    facts.copy(to, source);
    facts.kind[to] = VALUE.TYPE_TEST;
    return;
  }
  if (facts.kind[source] === VALUE.LOW_FLAG && size === 1) return facts.number(to, 0, 1, a.name());
  if (facts.isNumber(source) && facts.high[source] <= (isSigned ? limit / 2 : limit)) return assign(a, to, source, 8);
  if (from < 0 && isSigned && wide && isJumpTable(a)) {
    return facts.set(to, VALUE.JUMP_ENTRY, facts.id[ADDRESS], facts.low[ADDRESS], facts.high[ADDRESS], 0);
  }
  if (isSigned) define(a, to, wide ? 8 : 4);
  else facts.number(to, 0, limit, a.name());
}

/**
 * Whether the address was that of an entry of a table in the image. If so, PLACE.ADDRESS has the table and the entries.
 */
function isJumpTable(a: Analysis): boolean {
  const { code, facts, n } = a;
  const table = code.base[n], index = code.index[n];
  if (table < 0 || index < 0 || code.scale[n] !== 2 || code.displacement[n] !== 0 || code.size[n] !== 4) return false;
  if (facts.kind[table] !== VALUE.IMAGE || facts.low[table] !== facts.high[table]) return false;
  const { low, high } = facts;
  facts.set(ADDRESS, VALUE.JUMP_ENTRY, low[table], low[index], high[index], 0);
  return true;
}

/** The address of an object plus a displacement is that of its first element. */
function moveReference(a: Analysis): void {
  const { facts } = a;
  const at = facts.low[ADDRESS];
  a.facts.number(RIGHT, 0, 0, 0);
  a.flags = FLAGS.NONE;
  makeElement(a, ADDRESS, a.referent, RIGHT, 0);
  if (facts.kind[ADDRESS] === VALUE.ELEMENT) facts.shift(ADDRESS, at);
}

/** The address in the context of the record of an own function is a reference to it. */
function recordOfFunction(a: Analysis): void {
  const { facts, module } = a;
  const at = facts.low[ADDRESS] - module.code.layout.functionsOffset,
    index = module.importedFunctions + at / RECORD.SIZE;
  if (facts.low[ADDRESS] !== facts.high[ADDRESS] || at < 0 || !Number.isInteger(index)) return;
  const type = module.functionTypeId[index];
  if (type !== undefined) {
    facts.set(ADDRESS, VALUE.REFERENCE, type, REFERENCE_FACTS.NOT_NULL | REFERENCE_FACTS.OWN, 0, 0);
  }
}

export function loadAddress(a: Analysis): void {
  const { code, facts, n } = a;
  const to = code.reg[n];
  if (to === RSP) return adjustStack(a);
  if (isJumpOffset(a)) {
    const index = code.base[n];
    return facts.set(to, VALUE.JUMP_OFFSET, 0, facts.low[index], facts.high[index], 0);
  }
  if (code.base[n] >= 0) needName(a, code.base[n], 2);
  evaluateAddress(a);
  // A negative sum of numbers wraps.
  if (facts.isNumber(ADDRESS) && (facts.low[ADDRESS] < 0 || facts.high[ADDRESS] > EXACT)) facts.forget(ADDRESS);
  const isMoved = code.displacement[n] !== 0 || code.index[n] >= 0;
  if (isMoved && facts.kind[ADDRESS] === VALUE.REFERENCE) moveReference(a);
  if (isMoved && !hasDistance(facts, ADDRESS) && facts.kind[ADDRESS] !== VALUE.ELEMENT) facts.forget(ADDRESS);
  if (facts.kind[ADDRESS] === VALUE.CONTEXT && code.size[n] === 8) recordOfFunction(a);
  assign(a, to, ADDRESS, code.size[n]);
  noteSum(a, to);
}

/** Whether the address is five times a small number: the distance of an entry in a table of jumps. */
function isJumpOffset({ code, facts, n }: Analysis): boolean {
  const index = code.base[n];
  const isProduct = index >= 0 && code.index[n] === index && code.scale[n] === 2 && code.displacement[n] === 0;
  return isProduct && code.wide[n] !== 0 && facts.isNumber(index) && facts.high[index] < MAX_JUMPS;
}

/** Notes the two numbers whose sum an address is. */
function noteSum(a: Analysis, to: number): void {
  const { code, facts, n } = a;
  const x = code.base[n], y = code.index[n];
  if (x < 0 || y < 0 || code.scale[n] !== 0 || code.displacement[n] !== 0 || code.size[n] !== 8) return;
  if (to === x || to === y || !facts.isNumber(x) || !facts.isNumber(y)) return;
  needName(a, x, 2);
  needName(a, y, 3);
  a.ranges.note(facts.name[to], facts.name[x], facts.delta[x], facts.name[y], facts.delta[y]);
}

/** LEA of the stack pointer from itself. */
function adjustStack(a: Analysis): void {
  const { code, n } = a;
  if (code.base[n] !== RSP || code.index[n] >= 0 || code.wide[n] === 0) return a.fail(REASON.STACK_POINTER);
  moveStack(a, -code.displacement[n]);
}

/** The stack pointer moves down by `bytes`. */
function moveStack(a: Analysis, bytes: number): void {
  a.depth += bytes;
  if (a.depth < 0 || (a.depth & 3) !== 0) a.fail(REASON.STACK_POINTER);
}

export function arithmetic(a: Analysis): void {
  const { code, n } = a;
  const to = destinationOf(a);
  a.flags = FLAGS.NONE;
  if (to === RSP) return arithmeticOfStack(a);
  if (to < 0) return modify(a, code.size[n]);
  const size = code.size[n];
  const from = sourceOf(a);
  if (size < 4) return writeLow(a, to, size);
  switch (code.sub[n]) {
    case ALU.ADD:
      return add(a, to, from, size);
    case ALU.SUB:
      return subtract(a, to, from, size);
    case ALU.AND:
      return and(a, to, from, size);
    case ALU.OR:
    case ALU.XOR:
      return or(a, to, from, size);
  }
  a.fail(REASON.INSTRUCTION);
}

function arithmeticOfStack(a: Analysis): void {
  const { code, n } = a;
  const sub = code.sub[n];
  if (code.hasImmediate[n] === 0 || code.wide[n] === 0) return a.fail(REASON.STACK_POINTER);
  if (sub === ALU.SUB) moveStack(a, code.immediate[n]);
  else if (sub === ALU.ADD) moveStack(a, -code.immediate[n]);
  else a.fail(REASON.STACK_POINTER);
}

function add(a: Analysis, to: number, from: number, size: number): void {
  const { facts, code, n } = a;
  if (size === 8 && code.hasImmediate[n] !== 0) return addImmediate(a, to, code.immediate[n]);
  if (size === 4 && code.hasImmediate[n] !== 0) return addShortImmediate(a, to, code.immediate[n]);
  if (size === 8 && facts.isConstant(to) && facts.isNumber(from)) return addToConstant(a, to, from);
  const pointer = facts.isNumber(to) ? from : to, number = pointer === to ? from : to;
  if (size === 8 && facts.kind[pointer] === VALUE.REFERENCE) return addToArray(a, to, pointer, number);
  if (size === 8 && facts.kind[pointer] === VALUE.CELLS) return addCells(a, to, pointer, number);
  if (facts.kind[pointer] === VALUE.ELEMENT) return define(a, to, size);
  if (size === 8 && addToTable(a, to, pointer, number)) return;
  if (!facts.isNumber(number) || !hasDistance(facts, pointer)) return define(a, to, size);
  const sum = scaled(facts, number, 0);
  const { low, high, name, delta, room, of } = sum;
  facts.copy(RESULT, pointer);
  const other = facts.name[RESULT], otherDelta = facts.delta[RESULT];
  addNumber(facts, RESULT, { low, high, name, delta, room, of });
  finishSum(a, to, size);
  if (size === 8 && facts.isNumber(to)) a.ranges.note(facts.name[to], name, delta, other, otherDelta);
}

/** The address of an array plus a number and a constant. */
function addToArray(a: Analysis, to: number, array: number, number: number, amount = 0): void {
  makeElement(a, RESULT, array, number, 0);
  if (a.facts.kind[RESULT] === VALUE.ELEMENT) a.facts.shift(RESULT, amount);
  if (a.facts.kind[RESULT] === VALUE.ELEMENT) a.facts.copy(to, RESULT);
  else define(a, to, 8);
}

/** Sums of objects: jump entries with their table, descriptors with their table. */
function addToTable(a: Analysis, to: number, x: number, y: number): boolean {
  const { facts } = a;
  for (const [table, entry] of [[x, y], [y, x]]) {
    const kind = facts.kind[entry];
    if (kind === VALUE.JUMP_ENTRY && facts.isStart(table, VALUE.IMAGE, 0) === false) {
      const at = facts.low[table];
      if (facts.kind[table] !== VALUE.IMAGE || facts.high[table] !== at || at !== facts.id[entry]) return false;
      facts.set(to, VALUE.JUMP_TARGET, at, facts.low[entry], facts.high[entry], 0);
      return true;
    }
    if (kind === VALUE.JUMP_OFFSET && facts.kind[table] === VALUE.IMAGE && facts.low[table] === facts.high[table]) {
      facts.set(to, VALUE.JUMP_PLACE, facts.low[table], facts.low[entry], facts.high[entry], 0);
      return true;
    }
    if (kind === VALUE.DESCRIPTOR_OFFSET && facts.isStart(table, VALUE.DESCRIPTORS, 0)) {
      facts.set(to, VALUE.DESCRIPTOR, facts.id[entry], 0, 0, 0);
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

function addImmediate(a: Analysis, to: number, amount: number): void {
  const { facts } = a;
  if (facts.kind[to] === VALUE.REFERENCE) {
    facts.number(RIGHT, 0, 0, 0);
    return addToArray(a, to, to, RIGHT, amount);
  }
  if (facts.isNumber(to)) {
    if (facts.low[to] + amount < 0 || !(facts.high[to] + amount <= EXACT)) return define(a, to, 8);
  } else if (!hasDistance(facts, to) && facts.kind[to] !== VALUE.ELEMENT) return define(a, to, 8);
  facts.shift(to, amount);
}

function addShortImmediate(a: Analysis, to: number, amount: number): void {
  const { facts } = a;
  const stays = facts.isNumber(to) && facts.low[to] + amount >= 0 && facts.high[to] + amount <= MAX32;
  if (stays) facts.shift(to, amount);
  else define(a, to, 4);
}

/**
 * The sum of a constant and a number of 64 bits, for which the carry is tested next: unless it is set, the sum is
 * exact.
 */
function addToConstant(a: Analysis, to: number, from: number): void {
  const { facts } = a;
  const amount = facts.low[to];
  const name = facts.name[from], delta = facts.delta[from];
  const isBelowLength = facts.of[from] >= 0 && facts.of[from] < LIMIT.TABLE && facts.room[from] >= amount;
  if (facts.high[from] + amount <= EXACT || isBelowLength) {
    facts.copy(to, from);
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

function subtract(a: Analysis, to: number, from: number, size: number): void {
  const { facts, code, n } = a;
  if (code.hasImmediate[n] !== 0) {
    return size === 8 ? addImmediate(a, to, -code.immediate[n]) : addShortImmediate(a, to, -code.immediate[n]);
  }
  const isExact = facts.isNumber(to) && facts.isNumber(from) && facts.low[to] >= facts.high[from];
  if (isExact) facts.number(to, facts.low[to] - facts.high[from], facts.high[to] - facts.low[from], a.name());
  else define(a, to, size);
}

/** The number of location `l` as at most `size` bytes see it: its largest value. */
function highOf(a: Analysis, l: number, size: number): number {
  const { facts } = a;
  const high = facts.isNumber(l) || facts.kind[l] === VALUE.LENGTH ? facts.high[l] : Infinity;
  return size === 4 ? Math.min(high, MAX32) : high;
}

function and(a: Analysis, to: number, from: number, size: number): void {
  const { facts } = a;
  if (facts.kind[to] === VALUE.REFERENCE && facts.isConstant(from) && facts.low[from] <= 3 && facts.name[to] !== 0) {
    const mask = facts.low[from];
    a.flags = FLAGS.TESTED;
    facts.copy(LEFT, to);
    facts.number(RIGHT, mask, mask, 0);
    return facts.set(to, VALUE.TAG_BITS, facts.name[to], mask, mask, a.name());
  }
  const high = Math.min(highOf(a, to, size), highOf(a, from, size));
  a.facts.number(to, 0, high, a.name());
}

function or(a: Analysis, to: number, from: number, size: number): void {
  const { facts, code, n } = a;
  if (to === from && code.sub[n] === ALU.XOR) return facts.number(to, 0, 0, a.name());
  const high = Math.max(highOf(a, to, size), highOf(a, from, size));
  facts.number(to, 0, high > MAX32 ? Infinity : 2 ** (32 - Math.clz32(high)) - 1, a.name());
  const isOdd = code.sub[n] === ALU.OR && code.hasImmediate[n] !== 0 && (code.immediate[n] & 1) !== 0;
  if (isOdd) facts.id[to] = NUMBER_FACTS.ODD;
}

export function shift(a: Analysis): void {
  const { code, facts, n } = a;
  const to = code.rm[n], size = code.size[n];
  a.flags = FLAGS.NONE;
  if (to < 0) return modify(a, size);
  if (to === RSP) return a.fail(REASON.STACK_POINTER);
  if (size < 4) return writeLow(a, to, size);
  const high = highOf(a, to, size);
  const count = code.hasImmediate[n] !== 0 ? code.immediate[n] & (size === 8 ? 63 : 31) : -1;
  switch (code.sub[n]) {
    case SHIFT.SHL:
      return shiftLeft(a, to, size, count);
    case SHIFT.SHR:
      if (size === 8 && count === 32) noteUpperHalf(a, to);
      if (size === 8 && count === 3) noteEighth(a, to, a.name());
      return facts.number(to, 0, shiftedRight(high, Math.max(count, 0)), a.name());
    case SHIFT.SAR:
      if (high <= (size === 4 ? 0x7fffffff : EXACT)) {
        return facts.number(to, 0, shiftedRight(high, Math.max(count, 0)), a.name());
      }
  }
  define(a, to, size);
}

/** The register is shifted right by 32: if the result is zero, its value has 32 bits. */
function noteUpperHalf(a: Analysis, r: number): void {
  a.flags = FLAGS.UPPER_HALF;
  a.flagsName = a.facts.name[r];
  a.flagsDelta = a.facts.delta[r];
}

function shiftedRight(high: number, count: number): number {
  return high === Infinity ? (count > 11 ? 2 ** (64 - count) - 1 : Infinity) : Math.floor(high / 2 ** count);
}

function shiftLeft(a: Analysis, to: number, size: number, count: number): void {
  const { facts } = a;
  if (count === 6 && facts.kind[to] === VALUE.TYPE_ID && size === 8) {
    return facts.set(to, VALUE.DESCRIPTOR_OFFSET, facts.id[to], 0, 0, 0);
  }
  if (size === 8 && count >= 1 && count <= 4 && shiftIndex(a, to, count)) return;
  const high = highOf(a, to, size) * 2 ** count;
  if (count < 0 || high > (size === 4 ? MAX32 : EXACT)) return define(a, to, size);
  const { low, room, of } = scaled(facts, to, Math.min(count, 3));
  facts.number(to, count <= 3 ? low : 0, high, a.name());
  if (count === 3 && of >= 0) {
    facts.room[to] = room;
    facts.of[to] = of;
  }
}

/** An index of elements, or a number of them, becomes a distance in bytes; returns whether the location has one. */
function shiftIndex(a: Analysis, to: number, count: number): boolean {
  const { facts } = a;
  const of = facts.of[to], name = facts.name[to];
  if (facts.kind[to] !== VALUE.NUMBER || facts.high[to] > MAX32 || facts.isConstant(to)) return false;
  const isIndex = of >= LIMIT.ELEMENTS && of < LIMIT.PRODUCT && limitShift(of) === 0;
  const limit = isIndex ? of + count : of < 0 && facts.delta[to] === 0 ? productLimit(name, count) : -1;
  if (limit < 0) return false;
  const room = isIndex ? facts.room[to] : 0;
  if (isIndex && facts.delta[to] === 0) a.ranges.noteProduct(a.name(), name, count);
  facts.number(to, facts.low[to] * 2 ** count, facts.high[to] * 2 ** count, a.name());
  facts.of[to] = limit;
  facts.room[to] = room;
  return true;
}

export function multiply(a: Analysis): void {
  const { code, facts, n } = a;
  const to = code.reg[n], size = code.size[n];
  const from = code.rm[n] >= 0 ? code.rm[n] : (load(a, size), RESULT);
  a.flags = FLAGS.NONE;
  if (to === RSP) return a.fail(REASON.STACK_POINTER);
  const isConstant = code.kind[n] === KIND.MULTIPLY_CONSTANT;
  const factor = isConstant ? code.immediate[n] : highOf(a, to, size);
  const high = highOf(a, from, size) * factor;
  if (factor < 0 || !(high <= (size === 4 ? MAX32 : EXACT))) define(a, to, size);
  else facts.number(to, 0, high, a.name());
}

/** Products and quotients of rdx:rax. */
export function wideArithmetic(a: Analysis): void {
  const { code, n } = a;
  if (code.rm[n] < 0) load(a, code.size[n]);
  a.flags = FLAGS.NONE;
  define(a, RAX, code.size[n]);
  define(a, RDX, code.size[n], 1);
}

export function signOfRax(a: Analysis): void {
  define(a, RDX, a.code.size[a.n]);
}

/** Instructions of r/m in place. */
export function inPlace(a: Analysis): void {
  const { code, n } = a;
  const to = code.rm[n];
  if (code.kind[n] !== KIND.NOT) a.flags = FLAGS.NONE;
  if (to < 0) return modify(a, code.size[n]);
  if (to === RSP) return a.fail(REASON.STACK_POINTER);
  define(a, to, code.size[n]);
}

/** Instructions that write a register and read r/m. */
export function compute(a: Analysis): void {
  const { code, facts, n } = a;
  const to = code.reg[n], size = code.size[n];
  if (code.rm[n] < 0) load(a, size);
  if (to === RSP) return a.fail(REASON.STACK_POINTER);
  if (code.kind[n] !== KIND.COUNT_BITS) return define(a, to, size);
  a.flags = FLAGS.NONE;
  // A scan of zero leaves the register as it was.
  const old = facts.isNumber(to) ? facts.high[to] : Infinity;
  facts.number(to, 0, size === 4 ? MAX32 : Math.max(old, 64), a.name());
}

export function conditionalMove(a: Analysis): void {
  const { code, facts, n } = a;
  const to = code.reg[n], size = code.size[n];
  const from = code.rm[n] >= 0 ? code.rm[n] : (load(a, size), RESULT);
  if (to === RSP) return a.fail(REASON.STACK_POINTER);
  for (const l of [to, from]) if (facts.kind[l] === VALUE.CONTEXT) becomeRecord(a, l);
  if (facts.kind[to] === VALUE.REFERENCE || facts.kind[from] === VALUE.REFERENCE) return chooseReference(a, to, from);
  if (!facts.isNumber(to) || !facts.isNumber(from)) return define(a, to, size);
  const low = Math.min(facts.low[to], facts.low[from]);
  const high = Math.max(highOf(a, to, size), highOf(a, from, size));
  facts.number(to, size === 4 && high >= MAX32 ? 0 : low, high, a.name());
}

/** An address in the context, of the record of a function, is a reference in location `l`. */
function becomeRecord(a: Analysis, l: number): void {
  const { facts, module } = a;
  const index = (facts.low[l] - module.code.layout.importsOffset) / RECORD.SIZE;
  const type = facts.low[l] === facts.high[l] ? module.functionTypeId[index] : undefined;
  if (type !== undefined) facts.set(l, VALUE.REFERENCE, type, REFERENCE_FACTS.NOT_NULL, 0, facts.name[l]);
}

/** One of two references. */
function chooseReference(a: Analysis, to: number, from: number): void {
  const { facts } = a;
  if (!joinReferences(facts, to, from)) return define(a, to, 8);
  facts.name[to] = a.name();
}

export function setCondition(a: Analysis): void {
  const { code, facts, n } = a;
  const to = code.rm[n];
  if (to < 0) return store(a, 1, -1);
  if (to === RSP) return a.fail(REASON.STACK_POINTER);
  if (testedType(a, code.condition[n], to)) return;
  if (facts.isNumber(to) && facts.high[to] <= 255) facts.number(to, 0, 1, a.name());
  else facts.set(to, VALUE.LOW_FLAG, 0, 0, 0, a.name());
}

/** XCHG, XADD: the register gets the old value of r/m. */
export function exchange(a: Analysis): void {
  const { code, facts, n } = a;
  const { rm, reg, size } = { rm: code.rm[n], reg: code.reg[n], size: code.size[n] };
  if (rm === RSP || reg === RSP) return a.fail(REASON.STACK_POINTER);
  if (code.kind[n] === KIND.EXCHANGE_ADD) a.flags = FLAGS.NONE;
  if (rm < 0) {
    modify(a, size);
    return size < 4 ? writeLow(a, reg, size) : define(a, reg, size);
  }
  if (code.kind[n] !== KIND.EXCHANGE || size < 4) return a.fail(REASON.INSTRUCTION);
  facts.copy(RESULT, rm);
  assign(a, rm, reg, size);
  assign(a, reg, RESULT, size);
}

/** CMPXCHG: rax gets the old value of r/m if they differ, and else keeps its own, with all its bytes. */
export function compareExchange(a: Analysis): void {
  const { code, n } = a;
  const size = code.size[n];
  a.flags = FLAGS.NONE;
  if (code.rm[n] >= 0) return a.fail(REASON.INSTRUCTION);
  modify(a, size);
  if (size < 8) writeLow(a, RAX, size);
  else define(a, RAX, size);
}

/** REP STOS: a fill of slots of the frame. */
export function fill(a: Analysis): void {
  const { code, facts, n } = a;
  const bytes = facts.high[RCX] * code.size[n];
  const position = -facts.low[RDI];
  const isFrame = facts.kind[RDI] === VALUE.STACK && facts.low[RDI] === facts.high[RDI] && facts.isConstant(RCX);
  if (!isFrame || position > a.depth || bytes > position) return a.fail(REASON.FRAME);
  a.forgetSlots(position, bytes);
  define(a, RDI, 8);
  define(a, RCX, 8, 1);
}

/** Instructions of vectors: their memory operands and general registers. */
export function vector(a: Analysis): void {
  const { code, n } = a;
  const kind = code.kind[n], size = code.size[n], rm = code.rm[n];
  if (kind === KIND.VECTOR) a.flags = FLAGS.NONE;
  if (kind === KIND.GENERAL_FROM_VECTOR) {
    if (rm < 0) load(a, size);
    if (code.reg[n] === RSP) return a.fail(REASON.STACK_POINTER);
    return define(a, code.reg[n], code.wide[n] !== 0 ? 8 : 4);
  }
  if (rm < 0) {
    if (kind === KIND.VECTOR_STORE || kind === KIND.VECTOR_TO_GENERAL) store(a, size, -1);
    else load(a, size);
  } else if (kind === KIND.VECTOR_TO_GENERAL) {
    if (rm === RSP) return a.fail(REASON.STACK_POINTER);
    define(a, rm, size === 8 ? 8 : 4);
  }
}

/** CMP and TEST: their operands in PLACE.LEFT and PLACE.RIGHT. */
export function compare(a: Analysis): void {
  const { code, facts, n } = a;
  const isTest = code.kind[n] === KIND.TEST;
  const reg = code.reg[n], rm = code.rm[n], size = code.size[n];
  const isSwapped = code.operands[n] === OPERANDS.R_M;
  if (rm < 0) load(a, size);
  else needName(a, rm, 2);
  if (code.hasImmediate[n] === 0) needName(a, reg, 3);
  facts.copy(isSwapped ? RIGHT : LEFT, rm < 0 ? RESULT : rm);
  if (rm === RSP || (reg === RSP && code.hasImmediate[n] === 0)) stackOperand(a, rm === RSP, isSwapped);
  a.flags = FLAGS.COMPARED;
  a.flagsSize = size;
  if (code.hasImmediate[n] !== 0) {
    constant(a, RIGHT, code.immediate[n], size);
    // The loaded operand has the instruction's name.
    facts.name[RIGHT] = 0;
  } else if (reg !== RSP) facts.copy(isSwapped ? LEFT : RIGHT, reg);
  if (!isTest) return;
  if (code.hasImmediate[n] === 0 && reg === rm) facts.number(RIGHT, 0, 0, 0);
  else a.flags = code.hasImmediate[n] !== 0 ? FLAGS.TESTED : FLAGS.NONE;
}

/** The stack pointer as an operand of a compare. */
function stackOperand(a: Analysis, isRm: boolean, isSwapped: boolean): void {
  const place = isRm === isSwapped ? RIGHT : LEFT;
  a.facts.set(place, VALUE.STACK, 0, -a.depth, -a.depth, 0);
}
