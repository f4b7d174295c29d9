/**
 * Rules for moves and arithmetic of x86-64. In: an instruction without control flow. Out: facts about its results.
 *
 * A write of 32 bits clears the upper half of a register; narrower writes keep the rest.
 */
import { type Analysis, FLAGS, REASON } from "./analysis.ts";
import {
  add,
  addAmount,
  and,
  assign,
  carries,
  choose,
  constant,
  define,
  highOf,
  isJumpTable,
  needName,
  noteCarry,
  or,
  shiftBy,
  subtract,
  takeAddress,
} from "./arithmetic.ts";
import { testedType } from "./conditions.ts";
import { EXACT, MAX32, PLACE } from "./facts.ts";
import { setAddress, setJump, setMask, setObject } from "./kind_facts.ts";
import { NUMBER_FACTS, VALUE } from "./value_kinds.ts";
import { ALU, type Instructions, KIND, OPERANDS, SHIFT } from "./instructions.ts";
import { isNumberOrLength, load, modify, store } from "./memory.ts";

const { LEFT, RIGHT, RESULT, ADDRESS } = PLACE;
const RAX = 0, RCX = 1, RDX = 2, RSP = 4, RDI = 7;
/** Longest table of jumps, in entries. */
const MAX_JUMPS = 1 << 16;

/** The immediate of the current instruction as a signed number; Infinity if it is not exact. */
function immediateOf(a: Analysis): number {
  const { code, n } = a;
  if (code.kind[n] !== KIND.CONSTANT || code.wide[n] === 0) return code.immediate[n];
  const value = code.immediateHigh[n] * 4294967296 + (code.immediate[n] >>> 0);
  return Math.abs(value) <= EXACT ? value : Infinity;
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
  const isTest = facts.kind[source] === VALUE.TYPE_FLAG || facts.kind[source] === VALUE.TYPE_TEST;
  if (isTest && size === 1 && !isSigned) {
    facts.copy(to, source);
    facts.kind[to] = VALUE.TYPE_TEST;
    return;
  }
  if (facts.kind[source] === VALUE.LOW_FLAG && size === 1) return facts.number(to, 0, 1, a.name());
  if (facts.isNumber(source) && facts.high[source] <= (isSigned ? limit / 2 : limit)) return assign(a, to, source, 8);
  if (from < 0 && isSigned && wide && isJumpTable(a)) {
    return setJump(
      facts,
      to,
      VALUE.JUMP_ENTRY,
      facts.imageOffset[ADDRESS],
      facts.firstEntry[ADDRESS],
      facts.lastEntry[ADDRESS],
    );
  }
  if (isSigned) define(a, to, wide ? 8 : 4);
  else facts.number(to, 0, limit, a.name());
}

/** Whether the address is five times a small number: the distance of an entry in a table of jumps. */
function isJumpOffset({ code, facts, n }: Analysis): boolean {
  const index = code.base[n];
  if (index >= 0) facts.takeNumber(index);
  const isProduct = index >= 0 && code.index[n] === index && code.scale[n] === 2 && code.displacement[n] === 0;
  return isProduct && code.wide[n] !== 0 && isNumberOrLength(facts, index) && facts.high[index] < MAX_JUMPS;
}

export function loadAddress(a: Analysis): void {
  const { code, facts, n } = a;
  const to = code.reg[n];
  if (to === RSP) return adjustStack(a);
  if (isJumpOffset(a)) {
    const { jumpBytes } = a.machine, index = code.base[n];
    facts.number(to, facts.low[index] * jumpBytes, facts.high[index] * jumpBytes, a.name());
    facts.traits[to] = NUMBER_FACTS.ENTRIES;
    return;
  }
  takeAddress(a, to);
}

/** LEA of the stack pointer from itself. */
function adjustStack(a: Analysis): void {
  const { code, n } = a;
  if (code.base[n] !== RSP || code.index[n] >= 0 || code.wide[n] === 0) return a.fail(REASON.STACK_POINTER);
  a.moveStack(-code.displacement[n]);
}

export function arithmetic(a: Analysis): void {
  const { code, n } = a;
  const to = destinationOf(a);
  a.flags = FLAGS.NONE;
  if (to === RSP) return arithmeticOfStack(a);
  if (to < 0) return modify(a, code.size[n]);
  const size = code.size[n];
  const from = sourceOf(a);
  if (code.sub[n] !== ALU.OR) takeNumbers(a, to, from);
  if (size < 4) return combineLow(a, to, from, size);
  const isImmediate = code.hasImmediate[n] !== 0;
  switch (code.sub[n]) {
    case ALU.ADD:
      if (isImmediate && size === 8 && carries(a, to, code.immediate[n])) a.flags = FLAGS.CARRIED;
      if (isImmediate) return addAmount(a, to, code.immediate[n], size);
      add(a, to, from, size);
      return size === 8 ? noteCarry(a, to) : undefined;
    case ALU.SUB:
      return isImmediate ? addAmount(a, to, -code.immediate[n], size) : subtract(a, to, from, size);
    case ALU.SUBTRACT_BORROW:
      // A register less itself less the carry: a mask.
      return to === from ? setMask(a.facts, to, size, a.name()) : define(a, to, size);
    case ALU.ADD_CARRY:
      return define(a, to, size);
    case ALU.AND:
      return and(a, to, from, size);
    case ALU.OR:
    case ALU.XOR:
      or(a, to, from, size, code.sub[n] === ALU.XOR);
      return compareResult(a, to, size);
  }
  a.fail(REASON.INSTRUCTION);
}

/** The values of two locations are used as numbers. */
function takeNumbers({ facts }: Analysis, x: number, y: number): void {
  facts.takeNumber(x);
  facts.takeNumber(y);
}

/** The flags are those of a compare of register `r`, the result of a bitwise operation, with zero. */
function compareResult(a: Analysis, r: number, size: number): void {
  a.facts.copy(LEFT, r);
  a.facts.number(RIGHT, 0, 0, 0);
  a.flags = FLAGS.COMPARED;
  a.flagsSize = size;
}

/** Arithmetic on the low bytes of register `to`: AND and OR of two bytes that are 0 or 1 give such a byte. */
function combineLow(a: Analysis, to: number, from: number, size: number): void {
  const { code, facts, n } = a;
  const isBit = (l: number) => facts.kind[l] === VALUE.LOW_FLAG || (facts.isNumber(l) && facts.high[l] <= 1);
  const isLogical = code.sub[n] === ALU.AND || code.sub[n] === ALU.OR;
  if (size !== 1 || !isLogical || !isBit(to) || !isBit(from)) return writeLow(a, to, size);
  if (facts.isNumber(to)) facts.number(to, 0, 1, a.name());
  else setObject(facts, to, VALUE.LOW_FLAG, 0, a.name());
}

function arithmeticOfStack(a: Analysis): void {
  const { code, n } = a;
  const sub = code.sub[n];
  if (code.hasImmediate[n] === 0 || code.wide[n] === 0) return a.fail(REASON.STACK_POINTER);
  if (sub === ALU.SUB) a.moveStack(code.immediate[n]);
  else if (sub === ALU.ADD) a.moveStack(-code.immediate[n]);
  else a.fail(REASON.STACK_POINTER);
}

export function shift(a: Analysis): void {
  const { code, n } = a;
  const to = code.rm[n], size = code.size[n];
  a.flags = FLAGS.NONE;
  if (to < 0) return modify(a, size);
  if (to === RSP) return a.fail(REASON.STACK_POINTER);
  if (size < 4) return writeLow(a, to, size);
  const count = code.hasImmediate[n] !== 0 ? code.immediate[n] & (size === 8 ? 63 : 31) : -1;
  if (size === 8 && count === 32 && code.sub[n] === SHIFT.SHR) noteUpperHalf(a, to);
  shiftBy(a, to, size, code.sub[n], count);
}

/** Register `r` is shifted right by 32: if the result is zero, its value has 32 bits. */
function noteUpperHalf(a: Analysis, r: number): void {
  a.flags = FLAGS.UPPER_HALF;
  a.flagsName = a.facts.name[r];
  a.flagsDelta = a.facts.delta[r];
}

export function multiply(a: Analysis): void {
  const { code, facts, n } = a;
  const to = code.reg[n], size = code.size[n];
  const from = code.rm[n] >= 0 ? code.rm[n] : (load(a, size), RESULT);
  a.flags = FLAGS.NONE;
  if (to === RSP) return a.fail(REASON.STACK_POINTER);
  takeNumbers(a, to, from);
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
  // A division faults for some operands.
  a.requireContext();
  a.flags = FLAGS.NONE;
  define(a, RAX, code.size[n]);
  define(a, RDX, code.size[n], 1);
}

export function signOfRax(a: Analysis): void {
  define(a, RDX, a.code.size[a.n]);
}

/** Instructions that change r/m in place. */
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
  const { code, n } = a;
  const to = code.reg[n], size = code.size[n];
  const from = code.rm[n] >= 0 ? code.rm[n] : (load(a, size), RESULT);
  if (to === RSP) return a.fail(REASON.STACK_POINTER);
  choose(a, to, from, size);
}

export function setCondition(a: Analysis): void {
  const { code, facts, n } = a;
  const to = code.rm[n];
  if (to < 0) return store(a, 1, -1);
  if (to === RSP) return a.fail(REASON.STACK_POINTER);
  const isByte = facts.isNumber(to) && facts.high[to] <= 255;
  if (testedType(a, code.condition[n], to)) {
    if (isByte) facts.kind[to] = VALUE.TYPE_TEST;
    return;
  }
  if (isByte) facts.number(to, 0, 1, a.name());
  else setObject(facts, to, VALUE.LOW_FLAG, 0, a.name());
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

/** CMPXCHG: rax gets the old value of r/m if they differ; otherwise rax keeps its value, with all its bytes. */
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
  if (code.size[n] === 8 && facts.isConstant(RAX) && facts.low[RAX] === 0) a.fillSlots(position, bytes);
  else a.forgetSlots(position, bytes);
  define(a, RDI, 8);
  define(a, RCX, 8, 1);
}

/** Location of the lower half of the vector scratch register, in which code keeps a general register for a while. */
export const VECTOR_SCRATCH: number = PLACE.MORE;
/** Number of the vector scratch register. */
const XMM15 = 15;

/** Whether instruction `n`, of vectors, may write the vector scratch register. */
export function writesScratch({ kind, operands, reg, rm }: Instructions, n: number): boolean {
  switch (kind[n]) {
    case KIND.GENERAL_FROM_VECTOR:
    case KIND.VECTOR_TO_GENERAL:
      return false;
    case KIND.VECTOR_STORE:
      return rm[n] === XMM15;
  }
  // Shifts by constants write a register that VEX names.
  return operands[n] !== OPERANDS.R_M || reg[n] === XMM15;
}

/** A general register becomes the lower half of the vector scratch register, or the opposite. */
function moveScratch(a: Analysis): boolean {
  const { code, facts, n } = a;
  const { reg, rm, size } = { reg: code.reg[n], rm: code.rm[n], size: code.size[n] };
  const isMove = reg === XMM15 && rm >= 0 && rm !== RSP && size === 8 && code.hasImmediate[n] === 0;
  if (!isMove) return false;
  if (code.kind[n] === KIND.VECTOR_MOVE) facts.copy(VECTOR_SCRATCH, rm);
  else if (code.kind[n] === KIND.VECTOR_TO_GENERAL) assign(a, rm, VECTOR_SCRATCH, 8);
  else return false;
  return true;
}

/** Instructions of vectors: their memory operands and general registers. */
export function vector(a: Analysis): void {
  const { code, n } = a;
  const kind = code.kind[n], size = code.size[n], rm = code.rm[n];
  if (moveScratch(a)) return;
  if (writesScratch(code, n)) a.facts.forget(VECTOR_SCRATCH);
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
  // A compare with zero decides a test.
  if (!isTest && (code.hasImmediate[n] === 0 || code.immediate[n] !== 0)) {
    if (rm >= 0) facts.takeNumber(rm);
    if (code.hasImmediate[n] === 0) facts.takeNumber(reg);
  }
  if (rm < 0) load(a, size);
  else if (rm !== RSP) needName(a, rm, 2); // a name would stay while the stack pointer moves
  if (code.hasImmediate[n] === 0 && reg !== RSP) needName(a, reg, 3);
  facts.copy(isSwapped ? RIGHT : LEFT, rm < 0 ? RESULT : rm);
  if (rm === RSP) stackOperand(a, isSwapped ? RIGHT : LEFT);
  a.flags = FLAGS.COMPARED;
  a.flagsSize = size;
  if (code.hasImmediate[n] !== 0) {
    constant(a, RIGHT, code.immediate[n], size);
    // The loaded operand has the instruction's name.
    facts.name[RIGHT] = 0;
  } else if (reg === RSP) stackOperand(a, isSwapped ? LEFT : RIGHT);
  else facts.copy(isSwapped ? LEFT : RIGHT, reg);
  if (!isTest) return;
  if (code.hasImmediate[n] === 0 && reg === rm) facts.number(RIGHT, 0, 0, 0);
  else if (code.hasImmediate[n] !== 0) a.flags = FLAGS.TESTED;
  else a.flags = areTests(a) ? FLAGS.BOTH : FLAGS.NONE;
}

/** Whether both operands are outcomes of tests. */
function areTests({ facts: { kind } }: Analysis): boolean {
  return kind[LEFT] === VALUE.TYPE_TEST && kind[RIGHT] === VALUE.TYPE_TEST;
}

/** The stack pointer as an operand of a compare. */
function stackOperand(a: Analysis, place: number): void {
  setAddress(a.facts, place, VALUE.STACK, -a.depth);
}
