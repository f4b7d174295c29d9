/**
 * x86-64 for the verifier (Machine). In: instructions of x64_decoder.ts. Out: the calling convention, and the effects
 * of instructions on stack and return address; x64_rules.ts has the other effects.
 */
import { RECORD } from "../abi/context_layout.ts";
import { type Analysis, FLAGS, REASON } from "./analysis.ts";
import { define } from "./arithmetic.ts";
import type { CodeMap } from "./code_map.ts";
import { setObject } from "./kind_facts.ts";
import { VALUE } from "./value_kinds.ts";
import { BASE_RIP, type Instructions, KIND, OPERANDS } from "./instructions.ts";
import type { Machine } from "./machine.ts";
import { decodeX64 } from "./x64_decoder.ts";
import * as rules from "./x64_rules.ts";

const RSP = 4, RECORD_REGISTER = 10, CONTEXT_REGISTER = 15;
/** Condition code of JE. */
const JUMP_EQUAL = 4;

/** Bit of the vector scratch register in masks. */
const SCRATCH_VECTOR = 1 << 16;
/** Mask of the registers that a call may change: all but rsp, rbx (memory base) and r15 (context). */
const ALL_WRITTEN = (0xffff & ~((1 << 4) | (1 << 3) | (1 << 15))) | SCRATCH_VECTOR;

/** The general registers that instruction `n` writes itself. */
function written(code: Instructions, n: number): number {
  const { kind, operands, reg, rm } = code;
  const own = rm[n] >= 0 ? 1 << rm[n] : 0;
  switch (kind[n]) {
    case KIND.COMPARE:
    case KIND.TEST:
    case KIND.PUSH:
    case KIND.VECTOR:
    case KIND.VECTOR_FROM_GENERAL:
    case KIND.VECTOR_MOVE:
    case KIND.VECTOR_STORE:
      return rules.writesScratch(code, n) ? SCRATCH_VECTOR : 0;
    case KIND.NOP:
    case KIND.DATA:
      return 0;
    case KIND.WIDE_ARITHMETIC:
    case KIND.SIGN_OF_RAX:
      return 0b101;
    case KIND.FILL:
      return 0b10000010;
    case KIND.EXCHANGE:
    case KIND.EXCHANGE_ADD:
      return own | (1 << reg[n]);
    case KIND.COMPARE_EXCHANGE:
      return own | 1;
    case KIND.VECTOR_TO_GENERAL:
      return own;
  }
  const isRegister = operands[n] === OPERANDS.R_M || operands[n] === OPERANDS.OPCODE;
  return isRegister ? 1 << reg[n] : own;
}

/** Whether the instruction may be a load from the poll page. Placing the image writes its displacement. */
function isPoll({ kind, base, reg, operands, wide }: Instructions, n: number): boolean {
  return kind[n] === KIND.MOVE && operands[n] === OPERANDS.R_M && base[n] === BASE_RIP && wide[n] === 0 &&
    reg[n] !== RSP;
}

function move(a: Analysis, map: CodeMap): void {
  const { code, n } = a;
  if (!isPoll(code, n) || !map.isPoll(code.at[n + 1] - 4)) return rules.move(a);
  a.requireContext();
  define(a, code.reg[n], 4);
}

function constantOf({ kind, hasImmediate, immediate, immediateHigh, rm, wide }: Instructions, n: number): number {
  if (wide[n] === 0) return 0;
  if (kind[n] === KIND.CONSTANT) return immediateHigh[n] * 2 ** 32 + (immediate[n] >>> 0);
  return kind[n] === KIND.MOVE && hasImmediate[n] !== 0 && rm[n] >= 0 ? immediate[n] : 0;
}

function step(a: Analysis, map: CodeMap): void {
  const kind = a.code.kind[a.n];
  switch (kind) {
    case KIND.NOP:
      return;
    case KIND.MOVE:
      return move(a, map);
    case KIND.CONSTANT:
      return rules.loadConstant(a);
    case KIND.ZERO_EXTEND:
      return rules.extend(a, false);
    case KIND.SIGN_EXTEND:
      return rules.extend(a, true);
    case KIND.LEA:
      return rules.loadAddress(a);
    case KIND.ALU:
      return rules.arithmetic(a);
    case KIND.COMPARE:
    case KIND.TEST:
      return rules.compare(a);
    case KIND.SHIFT:
      return rules.shift(a);
    case KIND.NOT:
    case KIND.NEGATE:
    case KIND.SET_BIT:
      return rules.inPlace(a);
    case KIND.MULTIPLY:
    case KIND.MULTIPLY_CONSTANT:
      return rules.multiply(a);
    case KIND.WIDE_ARITHMETIC:
      return rules.wideArithmetic(a);
    case KIND.SIGN_OF_RAX:
      return rules.signOfRax(a);
    case KIND.COUNT_BITS:
    case KIND.SHIFT_TO:
      return rules.compute(a);
    case KIND.EXCHANGE:
    case KIND.EXCHANGE_ADD:
      return rules.exchange(a);
    case KIND.COMPARE_EXCHANGE:
      return rules.compareExchange(a);
    case KIND.SET_CONDITION:
      return rules.setCondition(a);
    case KIND.FILL:
      return rules.fill(a);
    case KIND.CONDITIONAL_MOVE:
      return rules.conditionalMove(a);
  }
  const isVector = kind >= KIND.VECTOR && kind <= KIND.VECTOR_TO_GENERAL;
  if (isVector || kind === KIND.VECTOR_MOVE) return rules.vector(a);
  a.fail(kind === KIND.DATA ? REASON.DECODE : REASON.INSTRUCTION);
}

function moveStack(a: Analysis): void {
  if (a.code.kind[a.n] === KIND.PUSH) push(a);
  else pop(a);
}

function push(a: Analysis): void {
  const from = a.code.reg[a.n];
  a.moveStack(8);
  if (a.reason !== "") return;
  a.forgetSlots(a.depth, 8);
  const slot = a.newSlot(a.depth, 8);
  if (slot !== 0) a.facts.copy(slot, from);
}

function pop(a: Analysis): void {
  const to = a.code.reg[a.n];
  const slot = a.slot(a.depth, 8);
  if (to === RSP || a.depth < 8) return a.fail(REASON.STACK_POINTER);
  if (slot !== 0) a.facts.copy(to, slot);
  else define(a, to, 8);
  a.moveStack(-8);
}

/** JE after the compare of a register with itself. */
function isTaken({ code, flags, n }: Analysis, condition: number): boolean {
  if (flags !== FLAGS.COMPARED || condition !== JUMP_EQUAL || code.kind[n - 1] !== KIND.COMPARE) return false;
  return code.rm[n - 1] >= 0 && code.rm[n - 1] === code.reg[n - 1] && code.hasImmediate[n - 1] === 0;
}

/** Takes the address of the next instruction off the stack; returns false if something else is there. */
function popReturn(a: Analysis): boolean {
  const slot = a.slot(a.depth, 8);
  if (slot === 0 || a.depth < 8) return false;
  const next = a.code.at[a.n + 1];
  const { facts } = a;
  const isNext = facts.kind[slot] === VALUE.IMAGE && facts.low[slot] === next && facts.high[slot] === next;
  a.moveStack(-8);
  return isNext;
}

function targetsRecord({ code, n }: Analysis): boolean {
  return code.rm[n] < 0 && code.base[n] === RECORD_REGISTER && code.index[n] < 0 &&
    code.displacement[n] === RECORD.CODE;
}

function reuseTailFrame(a: Analysis): void {
  a.enterTailFrame(16);
  const stub = a.newSlot(16, 8), context = a.newSlot(8, 8);
  setObject(a.facts, stub, VALUE.TAIL_RETURN);
  setObject(a.facts, context, VALUE.CONTEXT);
}

function hasTailFrame(a: Analysis): boolean {
  const { facts } = a;
  const stub = a.slot(16, 8), context = a.slot(8, 8);
  return a.depth === 16 && stub !== 0 && context !== 0 && facts.kind[stub] === VALUE.TAIL_RETURN &&
    facts.isStart(context, VALUE.CONTEXT, 0);
}

const nothing = () => {};

export const X64_MACHINE: Machine = {
  locations: Uint8Array.from({ length: 17 }, (_, r) => r < 16 ? r : rules.VECTOR_SCRATCH),
  stackPointer: RSP,
  firstSlot: rules.VECTOR_SCRATCH + 1,
  context: CONTEXT_REGISTER,
  memoryBase: 3,
  memoryLength: 14,
  record: RECORD_REGISTER,
  scratch: 11,
  link: -1,
  parameters: [0, 1, 2, 6, 7, 8, 9],
  results: [0, 1],
  allWritten: ALL_WRITTEN,
  nativeWrites: 0b1111000111 | SCRATCH_VECTOR,
  allocateWrites: (1 << 11) | SCRATCH_VECTOR,
  siteBytes: 0,
  jumpBytes: 5,
  decode: decodeX64,
  written,
  constantOf,
  isPoll,
  jumpsInside: (code, n) => code.rm[n] >= 0,
  enter: nothing,
  step,
  moveStack,
  branchCondition: ({ code, n }) => code.condition[n],
  isTaken,
  popReturn,
  targetsRecord,
  checkReturn: nothing,
  reuseTailFrame,
  hasTailFrame,
  checkSavedReturn: nothing,
};
