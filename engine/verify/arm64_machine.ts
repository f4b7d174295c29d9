/**
 * arm64 for the verifier (Machine). In: instructions of arm64_decoder.ts. Out: the calling convention, and the effects
 * of instructions on stack and return address; arm64_rules.ts has the other effects.
 *
 * The return address is in x30. A function that calls others saves it in the uppermost word of its frame, right below
 * its stack pointer at entry, where stack walks expect it: there it must be whenever a callee runs.
 */
import { type Analysis, FLAGS, REASON } from "./analysis.ts";
import { assign, define, needName } from "./arithmetic.ts";
import { decodeArm64, FIRST_SLOT, registerLocation, STACK, VECTOR_SCRATCH, ZERO } from "./arm64_decoder.ts";
import * as rules from "./arm64_rules.ts";
import type { CodeMap } from "./code_map.ts";
import { nameOfRecord } from "./control.ts";
import { PLACE } from "./facts.ts";
import { setObject } from "./kind_facts.ts";
import { VALUE } from "./value_kinds.ts";
import { ALU, type Instructions, KIND } from "./instructions.ts";
import type { Machine } from "./machine.ts";

const { LEFT, RIGHT } = PLACE;
const SCRATCH = registerLocation(16), SECOND_SCRATCH = registerLocation(17);
const MEMORY_BASE = registerLocation(26), MEMORY_LENGTH = registerLocation(27), CONTEXT = registerLocation(28);
const LINK = registerLocation(30);
/** Mask of x18, which belongs to the platform: code must not write it. */
const PLATFORM = 1 << 18;
/** Bit of the vector scratch register in masks. */
const SCRATCH_VECTOR = 1 << 31;
/** Condition code of x64 for "below"; bit 0 inverts it. */
const BELOW = 2;

function step(a: Analysis, map: CodeMap): void {
  const { code, n } = a;
  if ((code.writes[n] & PLATFORM) !== 0) return a.fail(REASON.INSTRUCTION);
  rules.step(a, map, SCRATCH, SECOND_SCRATCH);
}

function written(code: Instructions, n: number): number {
  const { kind, reg, rn, sub } = code;
  const isVector = kind[n] === KIND.VECTOR || kind[n] === KIND.VECTOR_MOVE || kind[n] === KIND.VECTOR_FROM_GENERAL;
  const isScratch = isVector && (reg[n] === 31 || (sub[n] === 1 && rn[n] === 31));
  return code.writes[n] | (isScratch ? SCRATCH_VECTOR : 0);
}

function constantOf({ kind, immediate, immediateHigh, wide }: Instructions, n: number): number {
  return kind[n] === KIND.CONSTANT && wide[n] !== 0 ? immediateHigh[n] * 2 ** 32 + (immediate[n] >>> 0) : 0;
}

/** The jump goes to a sum: the entry of a table. */
function jumpsInside({ kind, reg, rm, sub }: Instructions, n: number): boolean {
  if (n === 0 || reg[n - 1] !== rm[n]) return false;
  return kind[n - 1] === KIND.LEA || (kind[n - 1] === KIND.ALU && sub[n - 1] === ALU.ADD);
}

function enter({ facts }: Analysis): void {
  facts.number(ZERO, 0, 0, 0);
  setObject(facts, LINK, VALUE.RETURN_ADDRESS);
}

/** STP and LDP at the stack pointer, which moves. */
function moveStack(a: Analysis): void {
  if ((a.code.writes[a.n] & PLATFORM) !== 0) a.fail(REASON.INSTRUCTION);
  else if (a.code.kind[a.n] === KIND.PUSH) push(a);
  else pop(a);
}

function push(a: Analysis): void {
  const { code, facts, n } = a;
  a.moveStack(-code.displacement[n]);
  if (a.reason !== "") return;
  for (const [position, from] of [[a.depth, code.reg[n]], [a.depth - 8, code.rn[n]]]) {
    a.forgetSlots(position, 8);
    const slot = a.newSlot(position, 8);
    if (slot !== 0) facts.copy(slot, from);
  }
}

function pop(a: Analysis): void {
  const { code, n } = a;
  if (a.depth < Math.max(code.displacement[n], 16)) return a.fail(REASON.STACK_POINTER);
  for (const [result, to] of [code.reg[n], code.rn[n]].entries()) {
    const slot = a.slot(a.depth - result * 8, 8);
    a.result = result;
    if (to === ZERO) continue;
    if (slot !== 0) assign(a, to, slot, 8);
    else define(a, to, 8);
  }
  a.result = 0;
  a.moveStack(-code.displacement[n]);
}

function isSum(flags: number): boolean {
  return flags === FLAGS.ADDED || flags === FLAGS.CARRIED || flags === FLAGS.LARGE_SUM || flags === FLAGS.SUM ||
    flags === FLAGS.EXACT_SUM;
}

function branchCondition(a: Analysis): number {
  const { code, facts, n } = a;
  const condition = code.condition[n], rn = code.rn[n];
  switch (code.sub[n]) {
    case 0:
      // A carry of an addition is the opposite of that of a compare, to which the codes refer.
      return isSum(a.flags) && (condition & ~1) === BELOW ? condition ^ 1 : condition;
    case 1:
      if (rn !== ZERO) needName(a, rn, 2);
      facts.number(RIGHT, 0, 0, 0);
      a.flags = FLAGS.COMPARED;
      a.flagsSize = code.size[n];
      break;
    default:
      facts.number(RIGHT, 2 ** code.scale[n], 2 ** code.scale[n], 0);
      a.flags = FLAGS.TESTED;
      a.flagsSize = 8;
  }
  facts.copy(LEFT, rn);
  return condition;
}

function popReturn(a: Analysis): boolean {
  const { facts } = a;
  const next = a.code.at[a.n + 1];
  return facts.kind[LINK] === VALUE.IMAGE && facts.low[LINK] === next && facts.high[LINK] === next;
}

function targetsRecord(a: Analysis): boolean {
  const { code, facts, n } = a;
  const name = nameOfRecord(a), target = code.rm[n];
  return name !== 0 && facts.kind[target] === VALUE.RECORD_CODE && facts.subject[target] === name;
}

function checkReturn(a: Analysis): void {
  const { code, n } = a;
  const isLink = code.kind[n] !== KIND.RETURN || code.rm[n] === LINK;
  if (!isLink || a.facts.kind[LINK] !== VALUE.RETURN_ADDRESS) a.fail(REASON.RETURN);
}

function reuseTailFrame(a: Analysis): void {
  const { facts } = a;
  a.enterTailFrame(16);
  const context = a.newSlot(16, 8), back = a.newSlot(8, 8);
  setObject(facts, context, VALUE.CONTEXT);
  setObject(facts, back, VALUE.RETURN_ADDRESS);
  setObject(facts, LINK, VALUE.TAIL_RETURN);
}

function hasTailFrame(a: Analysis): boolean {
  const { facts } = a;
  const context = a.slot(16, 8), back = a.slot(8, 8);
  return a.depth === 16 && context !== 0 && back !== 0 && facts.isStart(context, VALUE.CONTEXT, 0) &&
    facts.kind[back] === VALUE.RETURN_ADDRESS && facts.kind[LINK] === VALUE.TAIL_RETURN;
}

function checkSavedReturn(a: Analysis): void {
  const slot = a.slot(8, 8);
  if (slot === 0 || a.facts.kind[slot] !== VALUE.RETURN_ADDRESS) a.fail(REASON.RETURN);
}

/** Registers that native routines write: x0-x5 and v31. The call itself writes x30. */
const NATIVE_WRITES = 0x3f | SCRATCH_VECTOR;

export const ARM64_MACHINE: Machine = {
  locations: Uint8Array.from({ length: 32 }, (_, r) => r === 31 ? VECTOR_SCRATCH : registerLocation(r)),
  stackPointer: STACK,
  firstSlot: FIRST_SLOT,
  context: CONTEXT,
  memoryBase: MEMORY_BASE,
  memoryLength: MEMORY_LENGTH,
  record: 15,
  scratch: SCRATCH,
  link: LINK,
  parameters: [0, 1, 2, 3, 4, 5, 6, 7],
  results: [0, 1],
  allWritten: ~(PLATFORM | (1 << 26) | (1 << 28)),
  nativeWrites: NATIVE_WRITES,
  allocateWrites: (1 << 16) | (1 << 17) | SCRATCH_VECTOR,
  siteBytes: 8,
  jumpBytes: 4,
  decode: decodeArm64,
  written,
  constantOf,
  jumpsInside,
  isPoll: () => false,
  enter,
  step,
  moveStack,
  branchCondition,
  isTaken: () => false,
  popReturn,
  targetsRecord,
  checkReturn,
  reuseTailFrame,
  hasTailFrame,
  checkSavedReturn,
};
