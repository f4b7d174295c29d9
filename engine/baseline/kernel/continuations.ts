/**
 * Continuations (proposal "stack switching"). In: a decoded instruction. Out: its validation, by the rules of
 * validate/continuations.ts, and, if it is reachable, a call of a routine of the runtime, as translate/continuations.ts
 * emits it: values and tags of handlers pass through the overflow buffer.
 *
 * Invariant: the operands below a call are in their homes, which move with the frame while the computation is
 * suspended. A handler's label receives payload and continuation from the overflow buffer, so nothing is called between
 * the routine and the branch.
 */
import * as calls from "./calls.ts";
import * as code from "./code.ts";
import * as cond from "./conditions.ts";
import {
  BUILTIN_CONT_BIND,
  BUILTIN_CONT_NEW,
  BUILTIN_RESUME,
  BUILTIN_RESUME_THROW,
  BUILTIN_RESUME_THROW_REF,
  BUILTIN_SUSPEND,
  BUILTIN_SWITCH_TO,
  MAX_PARAMS,
  OVERFLOW_ENTRY,
  SWITCH_HANDLERS_SHIFT,
  TAG_BYTES,
} from "./constants.ts";
import { emitJump } from "./control.ts";
import { passPayload } from "./exceptions.ts";
import * as frames from "./frames.ts";
import * as layout from "./layout.ts";
import * as machine from "./machine.ts";
import { type i32, load32 } from "./memory.ts";
import { leaveDepth } from "./metering.ts";
import { isIndex, tagAt } from "./module.ts";
import * as operands from "./operands.ts";
import * as op from "./operations.ts";
import { fail, index, index2, list, listCount, pos, readByte, readU32, seek, status } from "./reader.ts";
import { HEAP_EXN, heapOf, I32, I64, isRef, matches, refType, typeRow } from "./types.ts";

/** The kind of a handler without a label. */
const SWITCH_HANDLER: i32 = 1;

/** The index of the function type of the continuations of type `k`; −1 after a failure. */
function functionIndexOf(k: i32): i32 {
  if (!isIndex(k, load32(layout.H_TYPE_COUNT))) return -1;
  const row = typeRow(k);
  if (load32(row + layout.TYPE_KIND) === layout.TYPE_IS_CONT) return load32(row + layout.TYPE_FUNCTION);
  fail();
  return -1;
}

/** The row of the function type of the continuations of type `k`; 0 after a failure. */
function functionOf(k: i32): i32 {
  const func = functionIndexOf(k);
  return func < 0 ? 0 : typeRow(func);
}

/** The row of the function type of a reference to a continuation of a concrete type; 0 after a failure. */
function functionOfReference(type: i32): i32 {
  if (isRef(type) && heapOf(type) >= 0) return functionOf(heapOf(type));
  fail();
  return 0;
}

function paramCount(type: i32): i32 {
  return load32(type + layout.TYPE_PARAM_COUNT);
}

function paramsOf(type: i32): i32 {
  return load32(type + layout.TYPE_PARAMS);
}

function resultCount(type: i32): i32 {
  return load32(type + layout.TYPE_RESULT_COUNT);
}

function resultsOf(type: i32): i32 {
  return load32(type + layout.TYPE_RESULTS);
}

/** Whether the `count` types at `a` match the `expected` types at `b`. */
function allMatch(a: i32, count: i32, b: i32, expected: i32): boolean {
  let same = count === expected;
  for (let k: i32 = 0; k < count && same; k++) same = matches(load32(a + k * 4), load32(b + k * 4));
  return same;
}

/** Whether the results of type `a` (a row) match those of type `b`. */
function resultsMatch(a: i32, b: i32): boolean {
  return allMatch(resultsOf(a), resultCount(a), resultsOf(b), resultCount(b));
}

// Values in the overflow buffer.

/** Pops the reference on top into a register, which no other operand takes until it is pushed again or freed. */
function takeReference(): i32 {
  return operands.ownRegisterOf(operands.popEntry());
}

/** Pushes `count` values of the types at `types` from the overflow buffer, from its first entry on. */
function takeValues(types: i32, count: i32): void {
  const first = operands.top;
  frames.pushTypes(types, count);
  calls.takeOverflow(first, count);
}

/** In unreachable code: pops `count` operands and pushes the results of type `type` (a row). */
function replaceByResults(count: i32, type: i32): void {
  frames.dropTypes(count);
  frames.pushTypes(resultsOf(type), resultCount(type));
}

// Creating and binding.

function visitNew(): void {
  const func = functionIndexOf(index);
  if (func < 0 || !frames.expect(0, refType(1, func))) return;
  if (!frames.live) {
    frames.replaceTypes(1, refType(0, index));
    return;
  }
  operands.pushConstant(I32, index, 0);
  calls.callBuiltin(BUILTIN_CONT_NEW, 2);
  operands.pushRegister(refType(0, index), machine.resultRegister(0, 0));
}

function visitBind(): void {
  const from = functionOf(index);
  const to = functionOf(index2);
  if (from === 0 || to === 0) return;
  const bound = paramCount(from) - paramCount(to);
  if (
    bound < 0 || !allMatch(paramsOf(to), paramCount(to), paramsOf(from) + bound * 4, paramCount(to)) ||
    !resultsMatch(from, to)
  ) {
    fail();
    return;
  }
  if (!frames.expect(0, refType(1, index)) || !frames.expectList(paramsOf(from), bound, 1)) return;
  if (!frames.live) {
    frames.replaceTypes(bound + 1, refType(0, index2));
    return;
  }
  const continuation = takeReference();
  passPayload(bound);
  operands.pushRegister(refType(1, index), continuation);
  operands.pushConstant(I32, bound, 0);
  calls.callBuiltin(BUILTIN_CONT_BIND, 2);
  operands.pushRegister(refType(0, index2), machine.resultRegister(0, 0));
}

// Suspending.

function visitSuspend(): void {
  const type = tagAt(index);
  if (type === 0 || !frames.expectList(paramsOf(type), paramCount(type), 0)) return;
  if (!frames.live) {
    replaceByResults(paramCount(type), type);
    return;
  }
  passPayload(paramCount(type));
  operands.pushConstant(I32, index, 0);
  calls.callBuiltin(BUILTIN_SUSPEND, 1);
  takeValues(resultsOf(type), resultCount(type));
}

/** The row of the type of tag `tag`, for which computations switch: it has no parameters. 0 after a failure. */
function switchTag(tag: i32): i32 {
  const type = tagAt(tag);
  if (type === 0) return 0;
  if (paramCount(type) === 0) return type;
  fail();
  return 0;
}

/** The other computation receives the operands, and the current one as a continuation, its last argument. */
function visitSwitch(): void {
  const target = functionOf(index);
  const tag = switchTag(index2);
  if (target === 0 || tag === 0) return;
  const count = paramCount(target) - 1;
  if (count < 0) {
    fail();
    return;
  }
  const own = functionOfReference(load32(paramsOf(target) + count * 4));
  if (own === 0) return;
  if (!resultsMatch(target, tag) || !resultsMatch(tag, own)) {
    fail();
    return;
  }
  if (!frames.expect(0, refType(1, index)) || !frames.expectList(paramsOf(target), count, 1)) return;
  if (!frames.live) {
    frames.dropTypes(count + 1);
    frames.pushTypes(paramsOf(own), paramCount(own));
    return;
  }
  const continuation = takeReference();
  passPayload(count);
  operands.pushRegister(refType(1, index), continuation);
  operands.pushConstant(I32, count + 1, 0);
  operands.pushConstant(I32, index2, 0);
  calls.callBuiltin(BUILTIN_SWITCH_TO, 3);
  takeValues(paramsOf(own), paramCount(own));
}

// Handlers.

/** Checks the handlers of a computation of type `type` (a row), which is resumed with `count` operands. */
function checkHandlers(type: i32, count: i32): void {
  if (listCount > MAX_PARAMS - count) fail();
  const back = pos;
  seek(list);
  for (let k: i32 = 0; k < listCount && status === layout.STATUS_DONE; k++) {
    if (readByte() === SWITCH_HANDLER) checkSwitchHandler(switchTag(readU32()), type);
    else {
      const tag = tagAt(readU32());
      checkLabelHandler(tag, frames.frameOf(readU32()), type);
    }
  }
  seek(back);
}

/** The label takes the payload of the tag, and a continuation from the tag's results to those of the computation. */
function checkLabelHandler(tag: i32, target: i32, type: i32): void {
  if (tag === 0 || target === 0) return;
  const types = frames.labelTypes(target);
  const payload = frames.labelCount(target) - 1;
  if (payload < 0) {
    fail();
    return;
  }
  const continued = functionOfReference(load32(types + payload * 4));
  if (continued === 0) return;
  const isPassed = allMatch(paramsOf(tag), paramCount(tag), types, payload);
  const isContinued = allMatch(paramsOf(continued), paramCount(continued), resultsOf(tag), resultCount(tag)) &&
    resultsMatch(type, continued);
  if (!isPassed || !isContinued) fail();
}

/** All computations that run below the handler return its results. */
function checkSwitchHandler(tag: i32, type: i32): void {
  if (tag !== 0 && (!resultsMatch(tag, type) || !resultsMatch(type, tag))) fail();
}

/**
 * Stores the tags of the `count` handlers at `handlers` to the overflow buffer, from entry `first` on: those with
 * labels, then those of switches. Returns their numbers as the routines receive them.
 */
function passHandlers(handlers: i32, count: i32, first: i32): i32 {
  if (count === 0) return 0;
  const back = pos;
  const identity = operands.allocate(0);
  let entry = first;
  let switches: i32 = 0;
  for (let round: i32 = 0; round < 2; round++) {
    seek(handlers);
    for (let k: i32 = 0; k < count; k++) {
      const kind = readByte();
      const tag = readU32();
      if (kind !== SWITCH_HANDLER) readU32();
      if (kind !== round) continue;
      code.reserveCode(64);
      machine.loadContext(I64, identity, load32(layout.H_TAGS_OFFSET) + tag * TAG_BYTES);
      machine.overflowBuffer(machine.SCRATCH);
      machine.storeTo(I64, identity, machine.SCRATCH, entry * OVERFLOW_ENTRY);
      entry = entry + 1;
      switches = switches + round;
    }
  }
  operands.freeRegister(identity);
  seek(back);
  return (count - switches) | (switches << SWITCH_HANDLERS_SHIFT);
}

/**
 * After a routine that has resumed a computation: branches to the label of the handler that its result counts, or
 * pushes the results of the computation's type `type` (a row).
 */
function dispatch(handlers: i32, count: i32, type: i32): void {
  const back = pos;
  const hit = machine.resultRegister(0, 0);
  const height = operands.top;
  operands.claim(hit);
  seek(handlers);
  let number: i32 = 0;
  for (let k: i32 = 0; k < count; k++) {
    code.reserveCode(64);
    const kind = readByte();
    const tag = readU32();
    if (kind === SWITCH_HANDLER) continue;
    number = number + 1;
    const target = frames.frameOf(readU32());
    machine.compareImmediate(0, hit, number);
    const other = machine.jumpIf(cond.NE);
    takeSuspended(tagAt(tag), target);
    emitJump(target);
    operands.dropTo(height);
    // Another handler begins as this one did: the routine has left no pinned register valid.
    operands.forgetLocals();
    machine.patchBranch(other, code.at);
  }
  operands.freeRegister(hit);
  seek(back);
  takeValues(resultsOf(type), resultCount(type));
}

/** Pushes the payload of a tag of type `tag` (a row) and the continuation, which the label of `target` takes. */
function takeSuspended(tag: i32, target: i32): void {
  const first = operands.top;
  const payload = paramCount(tag);
  frames.pushTypes(paramsOf(tag), payload);
  operands.pushHome(load32(frames.labelTypes(target) + payload * 4));
  calls.takeOverflow(first, payload + 1);
}

// Resuming.

function visitResume(): void {
  const type = functionOf(index);
  if (type === 0) return;
  const count = paramCount(type);
  checkHandlers(type, count);
  if (status !== layout.STATUS_DONE) return;
  if (!frames.expect(0, refType(1, index)) || !frames.expectList(paramsOf(type), count, 1)) return;
  if (!frames.live) {
    replaceByResults(count + 1, type);
    return;
  }
  const continuation = takeReference();
  passPayload(count);
  const wanted = passHandlers(list, listCount, count);
  operands.pushRegister(refType(1, index), continuation);
  operands.pushConstant(I32, index, 0);
  operands.pushConstant(I32, wanted, 0);
  leaveDepth(false);
  calls.callBuiltin(BUILTIN_RESUME, 3);
  dispatch(list, listCount, type);
}

function visitResumeThrow(): void {
  const type = functionOf(index);
  const tag = tagAt(index2);
  if (type === 0 || tag === 0) return;
  if (resultCount(tag) !== 0) fail();
  const count = paramCount(tag);
  checkHandlers(type, count);
  if (status !== layout.STATUS_DONE) return;
  if (!frames.expect(0, refType(1, index)) || !frames.expectList(paramsOf(tag), count, 1)) return;
  if (!frames.live) {
    replaceByResults(count + 1, type);
    return;
  }
  const continuation = takeReference();
  passPayload(count);
  const wanted = passHandlers(list, listCount, count);
  operands.pushRegister(refType(1, index), continuation);
  operands.pushConstant(I32, index, 0);
  operands.pushConstant(I32, index2, 0);
  operands.pushConstant(I32, wanted, 0);
  leaveDepth(false);
  calls.callBuiltin(BUILTIN_RESUME_THROW, 4);
  dispatch(list, listCount, type);
}

function visitResumeThrowRef(): void {
  const type = functionOf(index);
  if (type === 0) return;
  const exception = refType(1, HEAP_EXN);
  checkHandlers(type, 1);
  if (status !== layout.STATUS_DONE) return;
  if (!frames.expect(0, refType(1, index)) || !frames.expect(1, exception)) return;
  if (!frames.live) {
    replaceByResults(2, type);
    return;
  }
  const continuation = takeReference();
  const thrown = takeReference();
  const wanted = passHandlers(list, listCount, 0);
  operands.pushRegister(refType(1, index), continuation);
  operands.pushConstant(I32, index, 0);
  operands.pushRegister(exception, thrown);
  operands.pushConstant(I32, wanted, 0);
  leaveDepth(false);
  calls.callBuiltin(BUILTIN_RESUME_THROW_REF, 4);
  dispatch(list, listCount, type);
}

/** Handles an instruction of this file. */
export function visitContinuation(kind: i32): void {
  switch (kind) {
    case op.KIND_CONT_NEW:
      visitNew();
      return;
    case op.KIND_CONT_BIND:
      visitBind();
      return;
    case op.KIND_SUSPEND:
      visitSuspend();
      return;
    case op.KIND_RESUME:
      visitResume();
      return;
    case op.KIND_RESUME_THROW:
      visitResumeThrow();
      return;
    case op.KIND_RESUME_THROW_REF:
      visitResumeThrowRef();
      return;
    case op.KIND_SWITCH:
      visitSwitch();
      return;
  }
  // The opcode table contains no other kind.
  fail();
}
