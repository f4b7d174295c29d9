/**
 * Rules for moves, arithmetic and accesses of arm64. In: an instruction without control flow. Out: facts about its
 * results.
 *
 * Results are made in WORK and written last, so that an instruction may read the register that it writes. A write of 32
 * bits clears the upper half. Only some instructions set the flags.
 */
import { REF_TAG } from "../abi/gc_layout.ts";
import { type Analysis, FLAGS, NAMES, REASON } from "./analysis.ts";
import {
  add,
  addAmount,
  addToConstant,
  and,
  assign,
  carries,
  choose,
  define,
  highOf,
  isJumpTable,
  needName,
  noteCarry,
  or,
  shiftBy,
  staysNegative,
  subtract,
  takeAddress,
} from "./arithmetic.ts";
import { EXTEND, EXTENDED, OTHER, STACK, VECTOR_SCRATCH, WORK, ZERO } from "./arm64_decoder.ts";
import type { CodeMap } from "./code_map.ts";
import { testedType } from "./conditions.ts";
import { EXACT, MAX32, PLACE } from "./facts.ts";
import { setAddress, setJump, setObject } from "./kind_facts.ts";
import { VALUE } from "./value_kinds.ts";
import { ALU, BASE_RIP, BIT_FIELD, KIND, SHIFT } from "./instructions.ts";
import { isNumberOrLength, load, modify, store } from "./memory.ts";

const { LEFT, RIGHT, RESULT } = PLACE;
/** Longest table of jumps, in entries. */
const MAX_JUMPS = 1 << 16;
/** The condition code NE. */
const NOT_EQUAL = 5;
/** Number of the vector register whose value is tracked. */
const SCRATCH_VECTOR = 31;

/** Register `r` becomes the value of location `from`, cut to `size` bytes. */
function write(a: Analysis, r: number, from: number, size: number): void {
  if (r === STACK) return a.fail(REASON.STACK_POINTER);
  if (r !== ZERO) assign(a, r, from, size);
}

/** Register `r` becomes a number in low … high. */
function writeNumber(a: Analysis, r: number, low: number, high: number): void {
  if (r === STACK) return a.fail(REASON.STACK_POINTER);
  if (r !== ZERO) a.facts.number(r, low, high, a.name());
}

function writeUnknown(a: Analysis, r: number, size: number): void {
  writeNumber(a, r, 0, largest(size));
}

/** The largest number of `size` bytes. */
function largest(size: number): number {
  return size >= 8 ? Infinity : 2 ** (size * 8) - 1;
}

/** Names the value in a register, unless it is always zero or the stack pointer. */
function nameRegister(a: Analysis, r: number, operand: number): void {
  if (r !== ZERO && r !== STACK) needName(a, r, operand);
}

/** Options of an extension: log2 of the bytes without sign, from SIGNED on with it. */
const WORD = 2, WHOLE = 3, SIGNED = 4;

/** Makes the extended register of the instruction. */
function extend(a: Analysis): void {
  const { code, facts, n } = a;
  const option = code.extend[n] - EXTEND, rm = code.rm[n];
  if (option >= SIGNED) return facts.forget(EXTENDED);
  const high = largest(1 << option);
  const isInside = option === WHOLE || (option === WORD ? facts.isShort(rm) : isAtMost(a, rm, high));
  if (isInside) facts.copy(EXTENDED, rm);
  else facts.number(EXTENDED, 0, high, 0);
}

function isAtMost({ facts }: Analysis, l: number, high: number): boolean {
  return facts.isNumber(l) && facts.high[l] <= high;
}

/** The immediate as a number without sign; Infinity if it is not exact. */
function immediateOf({ code, n }: Analysis): number {
  const low = code.immediate[n] >>> 0;
  if (code.wide[n] === 0) return low;
  const value = (code.immediateHigh[n] >>> 0) * 2 ** 32 + low;
  return value <= EXACT ? value : Infinity;
}

/** Location `l` becomes the constant `value`, or a large number if that is Infinity. */
function constant(a: Analysis, l: number, value: number, name: number): void {
  if (value === Infinity) a.facts.number(l, EXACT, Infinity, name);
  else a.facts.number(l, value, value, name);
}

/** The second operand: a register, or an immediate, shifted or extended register in another location. */
function operandOf(a: Analysis): number {
  const { code, facts, n } = a;
  if (code.hasImmediate[n] !== 0) {
    constant(a, RESULT, immediateOf(a), a.name());
    return RESULT;
  }
  const rm = code.rm[n], kind = code.extend[n];
  if (kind >= EXTEND) {
    extend(a);
    if (code.scale[n] !== 0) shiftBy(a, EXTENDED, code.size[n], SHIFT.SHL, code.scale[n]);
    return EXTENDED;
  }
  if (code.scale[n] === 0) return rm;
  facts.copy(OTHER, rm);
  shiftBy(a, OTHER, code.size[n], SHIFTS[kind], code.scale[n]);
  return OTHER;
}

const SHIFTS = [SHIFT.SHL, SHIFT.SHR, SHIFT.SAR, SHIFT.ROR];

function arithmetic(a: Analysis): void {
  const { code, n } = a;
  const size = code.size[n];
  if (code.reg[n] === STACK) return adjustStack(a);
  if (code.setsFlags[n] !== 0) a.flags = FLAGS.NONE;
  if (code.rn[n] === STACK) return writeUnknown(a, code.reg[n], size);
  const { flags } = a;
  const from = operandOf(a);
  a.flags = FLAGS.NONE;
  compute(a, from, size);
  // Facts about flags that the instruction does not set take the place of those of the last compare.
  if (code.setsFlags[n] === 0) a.flags = a.flags === FLAGS.NONE ? flags : FLAGS.NONE;
  write(a, code.reg[n], WORK, size);
}

/** Register `rn` and the second operand, if that is a register, are used as numbers. */
function takeNumbers({ code, facts, n }: Analysis, rn: number): void {
  if (rn !== STACK) facts.takeNumber(rn);
  if (code.hasImmediate[n] === 0) facts.takeNumber(code.rm[n]);
}

/** WORK becomes the result of an operation on `rn` and location `from`. */
function compute(a: Analysis, from: number, size: number): void {
  const { code, facts, n } = a;
  const rn = code.rn[n];
  if (code.sub[n] !== ALU.OR) {
    takeNumbers(a, rn);
    facts.takeNumber(from);
  }
  facts.copy(WORK, rn);
  const isImmediate = code.hasImmediate[n] !== 0;
  switch (code.sub[n]) {
    case ALU.ADD:
      if (code.setsFlags[n] !== 0 && size === 8) return addWithCarry(a, rn, from);
      if (addPoll(a, from)) return;
      if (facts.isConstant(from) && facts.isNumber(WORK)) return addAmount(a, WORK, facts.low[from], size);
      return add(a, WORK, from, size);
    case ALU.SUB:
      return isImmediate ? addAmount(a, WORK, -code.immediate[n], size) : subtract(a, WORK, from, size);
    case ALU.AND:
      return and(a, WORK, from, size);
    case ALU.AND_NOT:
      return facts.number(WORK, 0, highOf(a, rn, size), a.name());
    case ALU.OR:
    case ALU.XOR:
      return or(a, WORK, from, size, code.sub[n] === ALU.XOR);
  }
  a.fail(REASON.INSTRUCTION);
}

/** WORK becomes a sum whose carry is tested next. */
function addWithCarry(a: Analysis, x: number, y: number): void {
  const { facts } = a;
  if (!facts.isConstant(x) && !facts.isConstant(y)) {
    add(a, WORK, y, 8);
    return noteCarry(a, WORK);
  }
  if (facts.isConstant(y) && carries(a, x, facts.low[y])) {
    a.flags = FLAGS.CARRIED;
    return define(a, WORK, 8);
  }
  if (facts.isConstant(y) && staysNegative(a, x, facts.low[y])) return facts.number(WORK, EXACT, Infinity, a.name());
  const other = facts.isConstant(y) ? x : y;
  nameRegister(a, other, 2);
  facts.copy(OTHER, other);
  facts.copy(WORK, other === x ? y : x);
  addToConstant(a, WORK, OTHER);
  noteCarry(a, WORK);
}

/** WORK becomes POLL_PLACE if it is the address of the distance to the poll page, plus that distance; false if not. */
function addPoll({ facts }: Analysis, from: number): boolean {
  if (facts.kind[from] !== VALUE.POLL_DISTANCE || facts.kind[WORK] !== VALUE.IMAGE) return false;
  if (facts.low[WORK] !== facts.imageOffset[from] || facts.high[WORK] !== facts.imageOffset[from]) return false;
  setObject(facts, WORK, VALUE.POLL_PLACE);
  return true;
}

/** The stack pointer changes by a constant in a register. */
function adjustStack(a: Analysis): void {
  const { code, facts, n } = a;
  const from = operandOf(a);
  const isMove = code.rn[n] === STACK && code.sub[n] === ALU.SUB && code.wide[n] !== 0 && facts.isConstant(from);
  if (!isMove) return a.fail(REASON.STACK_POINTER);
  a.moveStack(facts.low[from]);
}

function takeSum(a: Analysis): void {
  const { code, facts, n } = a;
  const { base, displacement, index, reg, size } = {
    base: code.base[n],
    displacement: code.displacement[n],
    index: code.index[n],
    reg: code.reg[n],
    size: code.size[n],
  };
  if (index === EXTENDED) extend(a);
  if (reg === STACK) {
    const isMove = base === STACK && size === 8 && (index < 0 || facts.isConstant(index));
    if (!isMove) return a.fail(REASON.STACK_POINTER);
    return a.moveStack(-displacement - (index < 0 ? 0 : facts.low[index] * 2 ** code.scale[n]));
  }
  if (isJumpPlace(a)) {
    return setJump(facts, reg, VALUE.JUMP_PLACE, facts.low[base], facts.low[index], facts.high[index]);
  }
  takeAddress(a, WORK, !isContinued(a));
  write(a, reg, WORK, size);
}

/** Whether the next instruction adds to the result: a displacement in two parts. */
function isContinued({ code, n }: Analysis): boolean {
  return code.kind[n + 1] === KIND.LEA && code.base[n + 1] === code.reg[n] && code.reg[n + 1] === code.reg[n];
}

/** Whether the sum is the address of a jump in a table, to which the next instruction jumps. */
function isJumpPlace({ code, facts, n }: Analysis): boolean {
  const base = code.base[n], index = code.index[n];
  if (index >= 0) facts.takeNumber(index);
  if (base < 0 || base === STACK || index < 0 || code.scale[n] !== 2 || code.kind[n + 1] !== KIND.JUMP_INDIRECT) {
    return false;
  }
  return facts.kind[base] === VALUE.IMAGE && facts.low[base] === facts.high[base] && isNumberOrLength(facts, index) &&
    facts.high[index] < MAX_JUMPS && code.wide[n] !== 0;
}

function compare(a: Analysis): void {
  const { code, n } = a;
  const { facts } = a;
  const rn = code.rn[n], size = code.size[n];
  nameRegister(a, rn, 2);
  if (code.hasImmediate[n] === 0) nameRegister(a, code.rm[n], 3);
  // A compare with zero decides a test.
  if (code.hasImmediate[n] === 0 || code.immediate[n] !== 0) takeNumbers(a, rn);
  const from = operandOf(a);
  facts.copy(RIGHT, from);
  // A constant has no name; a name of the instruction would be that of another value.
  if (from === RESULT) facts.name[RIGHT] = 0;
  setLeft(a, rn);
  a.flags = FLAGS.COMPARED;
  a.flagsSize = size;
}

/** The left operand of a compare. */
function setLeft(a: Analysis, rn: number): void {
  if (rn === STACK) setAddress(a.facts, LEFT, VALUE.STACK, -a.depth);
  else a.facts.copy(LEFT, rn);
}

function test(a: Analysis): void {
  const { code, facts, n } = a;
  const rn = code.rn[n];
  a.flags = FLAGS.NONE;
  if (code.hasImmediate[n] === 0 && (rn !== code.rm[n] || code.scale[n] !== 0)) return;
  nameRegister(a, rn, 2);
  facts.copy(LEFT, rn);
  const isMask = code.hasImmediate[n] !== 0;
  constant(a, RIGHT, isMask ? immediateOf(a) : 0, 0);
  a.flags = isMask ? FLAGS.TESTED : FLAGS.COMPARED;
  a.flagsSize = code.size[n];
}

function chain(a: Analysis): void {
  const { code, n } = a;
  // CCMN compares with a negative number.
  if (code.sub[n] === 2) {
    a.flags = FLAGS.NONE;
    return;
  }
  const name = code.condition[n] === NOT_EQUAL ? nullTested(a) : 0;
  compare(a);
  a.flags = FLAGS.CHAINED;
  a.chainFlags = code.displacement[n];
  a.chainName = name !== 0 && a.chainFlags === 0 && isIntegerTest(a, name) ? name : 0;
}

/** The name of the reference that was compared with null; 0 if the flags are of something else. */
function nullTested({ facts, flags, flagsSize }: Analysis): number {
  const isTest = flags === FLAGS.COMPARED && flagsSize === 8 && facts.kind[LEFT] === VALUE.REFERENCE &&
    facts.isConstant(RIGHT) && facts.low[RIGHT] === 0;
  return isTest ? facts.name[LEFT] : 0;
}

/** Whether the tag of an integer in the reference with that name was compared with zero. */
function isIntegerTest({ facts }: Analysis, name: number): boolean {
  return facts.kind[LEFT] === VALUE.TAG_BITS && facts.subject[LEFT] === name && facts.tagMask[LEFT] === REF_TAG.I31 &&
    facts.isConstant(RIGHT) && facts.low[RIGHT] === 0;
}

/** MOVK: 16 bits of a constant change. */
function keep(a: Analysis): void {
  const { code, facts, n } = a;
  const reg = code.reg[n], place = code.scale[n];
  const bits = ((place < 2 ? code.immediate[n] : code.immediateHigh[n]) >>> ((place & 1) * 16)) & 0xffff;
  const factor = 2 ** (16 * place);
  const size = code.size[n];
  if (reg === ZERO) return;
  if (!facts.isConstant(reg)) return keepOfLarge(a, reg, bits, place);
  const old = facts.low[reg];
  const value = old + (bits - Math.floor(old / factor) % 65536) * factor;
  if (size === 4 && value > MAX32) writeUnknown(a, reg, size);
  else constant(a, reg, value > EXACT ? Infinity : value, a.name());
}

/** MOVK of the highest 16 bits of a constant that is not exact, which the last instruction has made. */
function keepOfLarge(a: Analysis, reg: number, bits: number, place: number): void {
  const { code, facts, n } = a;
  const isLast = n > 0 && code.kind[n - 1] === KIND.CONSTANT && code.wide[n - 1] !== 0 && code.reg[n - 1] === reg &&
    facts.name[reg] === a.name(0) - NAMES && facts.delta[reg] === 0;
  if (!isLast || place !== 3 || code.size[n] !== 8) return writeUnknown(a, reg, code.size[n]);
  const value = (bits * 65536 + (code.immediateHigh[n - 1] & 0xffff)) * 2 ** 32 + (code.immediate[n - 1] >>> 0);
  constant(a, reg, value > EXACT ? Infinity : value, a.name());
}

/** Shifts by constants, extensions, and moves of bits. */
function moveBits(a: Analysis): void {
  const { code, facts, n } = a;
  facts.copy(WORK, code.rn[n]);
  facts.takeNumber(WORK);
  if (code.sub[n] === BIT_FIELD.INSERT) define(a, WORK, code.size[n]);
  else moveField(a, code.immediate[n], code.displacement[n], code.size[n], code.sub[n] === BIT_FIELD.SIGNED);
  write(a, code.reg[n], WORK, code.size[n]);
}

function moveField(a: Analysis, first: number, last: number, size: number, isSigned: boolean): void {
  const width = size * 8;
  if (last === width - 1) return shiftBy(a, WORK, size, isSigned ? SHIFT.SAR : SHIFT.SHR, first);
  if (last < first) {
    cut(a, last + 1, size, isSigned);
    return shiftBy(a, WORK, size, SHIFT.SHL, width - first);
  }
  if (first !== 0 && !isSigned) shiftBy(a, WORK, size, SHIFT.SHR, first);
  else if (first !== 0) return define(a, WORK, size);
  cut(a, last - first + 1, size, isSigned);
}

/** WORK is cut to its low `bits`. */
function cut(a: Analysis, bits: number, size: number, isSigned: boolean): void {
  const { facts } = a;
  const high = 2 ** (isSigned ? bits - 1 : bits) - 1;
  const isInside = high >= MAX32 ? facts.isShort(WORK) : isAtMost(a, WORK, high);
  if (isInside || (isSigned && size === 4 && bits === 32)) return;
  if (isSigned) define(a, WORK, size);
  else facts.number(WORK, 0, high, a.name());
}

function multiply(a: Analysis): void {
  const { code, n } = a;
  const size = code.size[n];
  const added = code.base[n];
  const high = highOf(a, code.rn[n], size) * highOf(a, code.rm[n], size) + highOf(a, added, size);
  if (high <= (size === 4 ? MAX32 : EXACT)) writeNumber(a, code.reg[n], 0, high);
  else writeUnknown(a, code.reg[n], size);
}

function conditionalMove(a: Analysis): void {
  const { code, facts, n } = a;
  facts.copy(WORK, code.rn[n]);
  choose(a, WORK, code.rm[n], code.size[n]);
  write(a, code.reg[n], WORK, code.size[n]);
}

function setCondition(a: Analysis): void {
  const { code, facts, n } = a;
  const reg = code.reg[n];
  if (reg === ZERO) return;
  if (testedType(a, code.condition[n], reg)) facts.kind[reg] = VALUE.TYPE_TEST;
  else writeNumber(a, reg, 0, 1);
}

/** A load or store of a general register, or a move between two. */
function move(a: Analysis): void {
  const { code, n } = a;
  const size = code.size[n];
  if (code.rm[n] >= 0 && code.base[n] === -1) return write(a, code.reg[n], code.rm[n], size);
  if (code.index[n] === EXTENDED) extend(a);
  if (code.sub[n] === 0) return store(a, size, code.reg[n]);
  load(a, size);
  write(a, code.reg[n], RESULT, size === 4 ? 4 : 8);
}

function loadExtended(a: Analysis, isSigned: boolean, map: CodeMap): void {
  const { code, facts, n } = a;
  const reg = code.reg[n], size = code.size[n], isWide = code.wide[n] !== 0;
  if (code.index[n] === EXTENDED) extend(a);
  load(a, size);
  if (!isSigned) return write(a, reg, RESULT, 8);
  if (isAtMost(a, RESULT, largest(size) / 2)) return write(a, reg, RESULT, 8);
  if (reg === ZERO) return;
  const word = pollWord(a, map);
  if (word >= 0) return setObject(facts, reg, VALUE.POLL_DISTANCE, word);
  if (isWide && isJumpTable(a)) {
    const { ADDRESS } = PLACE;
    return setJump(
      facts,
      reg,
      VALUE.JUMP_ENTRY,
      facts.imageOffset[ADDRESS],
      facts.firstEntry[ADDRESS],
      facts.lastEntry[ADDRESS],
    );
  }
  writeUnknown(a, reg, isWide ? 8 : 4);
}

/** The offset of the word with the distance to the poll page, if that was loaded; −1: something else was. */
function pollWord({ code, facts, n }: Analysis, map: CodeMap): number {
  const base = code.base[n];
  if (base < 0 || base === STACK || code.index[n] >= 0 || code.displacement[n] !== 0 || code.size[n] !== 4) return -1;
  if (facts.kind[base] !== VALUE.IMAGE || facts.low[base] !== facts.high[base]) return -1;
  return code.wide[n] !== 0 && map.isPoll(facts.low[base]) ? facts.low[base] : -1;
}

/** Two accesses at consecutive places. The second value has the second name of the instruction. */
function accessPair(a: Analysis): void {
  const { code, facts, n } = a;
  const { first, second, size } = { first: code.reg[n], second: code.rn[n], size: code.size[n] };
  if (code.sub[n] === 0) {
    store(a, size, first);
    return store(a, size, second, size);
  }
  load(a, size);
  facts.copy(WORK, RESULT);
  a.result = 1;
  load(a, size, size);
  write(a, second, RESULT, size);
  a.result = 0;
  write(a, first, WORK, size);
}

/** An access that reads and writes memory: the register gets the old value. */
function exchange(a: Analysis): void {
  const size = a.code.size[a.n];
  modify(a, size);
  writeUnknown(a, a.code.reg[a.n], size);
}

function storeExclusive(a: Analysis): void {
  const { code, n } = a;
  store(a, code.size[n], code.rn[n]);
  writeNumber(a, code.reg[n], 0, 1);
}

/** Zeros are stored to x17 words of the frame, from x16 on. */
function fill(a: Analysis, place: number, count: number): void {
  const { facts } = a;
  const bytes = facts.high[count] * 8;
  const position = -facts.low[place];
  const isFrame = facts.kind[place] === VALUE.STACK && facts.low[place] === facts.high[place] &&
    facts.isConstant(count) && facts.low[count] > 0;
  if (!isFrame || position > a.depth || bytes > position) return a.fail(REASON.FRAME);
  a.fillSlots(position, bytes);
  define(a, place, 8);
  define(a, count, 8, 1);
  a.flags = FLAGS.NONE;
}

/** A vector register is written. Words of the frame move through one. */
function vector(a: Analysis): void {
  const { code, facts, n } = a;
  const { reg, size } = { reg: code.reg[n], size: code.size[n] };
  const isLoad = code.base[n] >= 0 || code.base[n] === BASE_RIP;
  const isPair = isLoad && code.sub[n] === 1;
  if (isLoad) {
    if (code.index[n] === EXTENDED) extend(a);
    load(a, size);
    if (isPair) load(a, size, size);
  }
  const writesScratch = reg === SCRATCH_VECTOR || (isPair && code.rn[n] === SCRATCH_VECTOR);
  if (!writesScratch) return;
  if (isLoad && !isPair && size <= 8 && size >= 4) facts.copy(VECTOR_SCRATCH, RESULT);
  else facts.forget(VECTOR_SCRATCH);
}

function storeVector(a: Analysis): void {
  const { code, n } = a;
  const { reg, size } = { reg: code.reg[n], size: code.size[n] };
  if (code.index[n] === EXTENDED) extend(a);
  const from = (r: number) => r === SCRATCH_VECTOR && size === 8 ? VECTOR_SCRATCH : -1;
  store(a, size, from(reg));
  if (code.sub[n] === 1) store(a, size, from(code.rn[n]), size);
}

function moveToVector(a: Analysis): void {
  const { code, facts, n } = a;
  if (code.reg[n] !== SCRATCH_VECTOR) return;
  if (code.kind[n] === KIND.VECTOR_MOVE && code.size[n] === 8) facts.copy(VECTOR_SCRATCH, code.rn[n]);
  else facts.forget(VECTOR_SCRATCH);
}

/** Interprets an instruction without control flow. `place`, `count`: locations of x16 and x17. */
export function step(a: Analysis, map: CodeMap, place: number, count: number): void {
  const { code, n } = a;
  switch (code.kind[n]) {
    case KIND.NOP:
      return;
    case KIND.MOVE:
      return move(a);
    case KIND.CONSTANT:
      if (code.reg[n] !== ZERO) constant(a, code.reg[n], immediateOf(a), a.name());
      return;
    case KIND.KEEP:
      return keep(a);
    case KIND.ZERO_EXTEND:
      return loadExtended(a, false, map);
    case KIND.SIGN_EXTEND:
      return loadExtended(a, true, map);
    case KIND.LEA:
      return takeSum(a);
    case KIND.ALU:
      return arithmetic(a);
    case KIND.COMPARE:
      return compare(a);
    case KIND.TEST:
      return test(a);
    case KIND.CHAIN:
      return chain(a);
    case KIND.BIT_FIELD:
      return moveBits(a);
    case KIND.MULTIPLY:
      return multiply(a);
    case KIND.COMPUTE:
      return writeUnknown(a, code.reg[n], code.size[n]);
    case KIND.COUNT_BITS:
      return writeNumber(a, code.reg[n], 0, 64);
    case KIND.CONDITIONAL_MOVE:
      return conditionalMove(a);
    case KIND.SET_CONDITION:
      return setCondition(a);
    case KIND.PAIR:
      return accessPair(a);
    case KIND.EXCHANGE:
    case KIND.EXCHANGE_ADD:
    case KIND.COMPARE_EXCHANGE:
      return exchange(a);
    case KIND.STORE_EXCLUSIVE:
      return storeExclusive(a);
    case KIND.FILL:
      return fill(a, place, count);
  }
  stepVector(a);
}

function stepVector(a: Analysis): void {
  const { code, n } = a;
  switch (code.kind[n]) {
    case KIND.COMPARE_FLOATS:
      a.flags = FLAGS.NONE;
      return;
    case KIND.VECTOR:
      return vector(a);
    case KIND.VECTOR_STORE:
      return storeVector(a);
    case KIND.VECTOR_MOVE:
    case KIND.VECTOR_FROM_GENERAL:
      return moveToVector(a);
    case KIND.GENERAL_FROM_VECTOR:
      return writeUnknown(a, code.reg[n], code.size[n]);
  }
  a.fail(code.kind[n] === KIND.DATA ? REASON.DECODE : REASON.INSTRUCTION);
}
