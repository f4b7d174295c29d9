/**
 * Exceptions: tries, landing pads, and throwing instructions. The locals of a try and the operands below it are in
 * their homes, where the landing pad expects them. Each landing pad compares tags: a clause reads the payload from the
 * overflow buffer; an exception that no clause catches continues at the enclosing try, or in the caller.
 */
import * as calls from "./calls.ts";
import * as code from "./code.ts";
import * as cond from "./conditions.ts";
import {
  BUILTIN_CAUGHT,
  BUILTIN_RETHROW,
  BUILTIN_THROW,
  BUILTIN_THROW_REF,
  CONTEXT_THREAD,
  OVERFLOW_ENTRY,
  TAG_BYTES,
  THREAD_CAUGHT_TAG,
  TRAP_UNREACHABLE,
} from "./constants.ts";
import { emitJump, openBlock } from "./control.ts";
import * as frames from "./frames.ts";
import * as landings from "./landings.ts";
import * as layout from "./layout.ts";
import * as machine from "./machine.ts";
import { type i32, load32, store32 } from "./memory.ts";
import { tagAt } from "./module.ts";
import * as operands from "./operands.ts";
import { fail, index, instructionOffset, list, listCount, pos, readByte, readU32, seek, status } from "./reader.ts";
import { bankOf, HEAP_EXN, I32, I64, matches, refType } from "./types.ts";

/**
 * The home of the exception caught by the outermost legacy try (8 bytes per nesting level), whether exceptions are kept
 * there, and the current nesting depth.
 */
let caughtHomes: i32 = 0;
let keepsCaught: boolean = false;
let tryDepth: i32 = 0;

/** Begins a body. If it contains a `rethrow`, catches keep their exceptions in homes from `home` on. */
export function beginExceptions(home: i32, rethrows: boolean): void {
  caughtHomes = home;
  keepsCaught = rethrows;
  tryDepth = 0;
}

/** The type that catch_ref and catch_all_ref add to the payload. */
function caughtType(): i32 {
  return refType(0, HEAP_EXN);
}

/**
 * Checks that a clause provides the operands of its label: the payload of the tag's type `type` (a row, 0: none), then
 * the exception if `withRef`.
 */
function checkClause(type: i32, withRef: boolean, target: i32): void {
  const types = frames.labelTypes(target);
  const payload = type === 0 ? 0 : load32(type + layout.TYPE_PARAM_COUNT);
  const count = payload + (withRef ? 1 : 0);
  let same = frames.labelCount(target) === count;
  for (let k: i32 = 0; k < count && same; k++) {
    const carried = k < payload ? load32(load32(type + layout.TYPE_PARAMS) + k * 4) : caughtType();
    same = matches(carried, load32(types + k * 4));
  }
  if (!same) fail();
}

/** Checks the clauses of a try_table. Their labels are relative to the enclosing frames. */
function checkClauses(): void {
  const back = pos;
  seek(list);
  for (let k: i32 = 0; k < listCount && status === layout.STATUS_DONE; k++) {
    const kind = readByte();
    const type = kind < 2 ? tagAt(readU32()) : 0;
    const target = frames.frameOf(readU32());
    if (target !== 0 && status === layout.STATUS_DONE) checkClause(type, (kind & 1) !== 0, target);
  }
  seek(back);
}

export function visitTryTable(): void {
  const clauses = list;
  const count = listCount;
  checkClauses();
  if (status !== layout.STATUS_DONE) return;
  if (frames.live) operands.flush(frames.base, false);
  openBlock(frames.IS_TRY_TABLE);
  if (status !== layout.STATUS_DONE) return;
  store32(frames.frame + frames.FRAME_OUTER, landings.current);
  store32(frames.frame + frames.FRAME_CLAUSES, clauses);
  store32(frames.frame + frames.FRAME_CLAUSE_COUNT, count);
  // A try_table without clauses catches nothing.
  if (frames.live && count > 0) store32(frames.frame + frames.FRAME_SLOT, landings.openSlot());
}

/** Compares the caught tag with tag `tag`; returns the branch for another tag. */
function testTag(tag: i32): i32 {
  machine.loadContext(I64, machine.SCRATCH, CONTEXT_THREAD);
  machine.loadFrom(I64, machine.SCRATCH, machine.SCRATCH, THREAD_CAUGHT_TAG);
  machine.compareContext(1, machine.SCRATCH, load32(layout.H_TAGS_OFFSET) + tag * TAG_BYTES);
  return machine.jumpIf(cond.NE);
}

/** Pushes the payload of an exception of function type `type` (a row), from the overflow buffer into its homes. */
function pushPayload(type: i32): void {
  const first = operands.top;
  const count = load32(type + layout.TYPE_PARAM_COUNT);
  frames.pushTypes(load32(type + layout.TYPE_PARAMS), count);
  calls.takeOverflow(first, count);
}

function pushCaught(): void {
  calls.callBuiltin(BUILTIN_CAUGHT, 0);
  operands.pushRegister(caughtType(), machine.resultRegister(0, 0));
}

/** `end` of a try_table, whose results have been checked: emits its landing pad. */
export function endTryTable(): void {
  const frame = frames.frame;
  const slot = load32(frame + frames.FRAME_SLOT);
  const outer = load32(frame + frames.FRAME_OUTER);
  landings.setCurrent(outer);
  if (!landings.isUsed(slot)) return;
  frames.jumpToEnd();
  landings.bindSlot(slot);
  frames.arrive();
  emitClauses(frame);
  if (frames.live) handOn(outer);
}

function emitClauses(frame: i32): void {
  const back = pos;
  seek(load32(frame + frames.FRAME_CLAUSES));
  for (let k = load32(frame + frames.FRAME_CLAUSE_COUNT); k > 0 && frames.live; k--) {
    code.reserveCode(0);
    const kind = readByte();
    const tag = kind < 2 ? readU32() : -1;
    // The label is counted from outside the try_table.
    const target = frames.frameOf(readU32() + 1);
    const other = tag < 0 ? 0 : testTag(tag);
    if (tag >= 0) pushPayload(tagAt(tag));
    if ((kind & 1) !== 0) pushCaught();
    emitJump(target);
    frames.depart();
    if (other === 0) break;
    machine.patchBranch(other, code.at);
    frames.arrive();
  }
  seek(back);
}

/** Passes the exception that has landed here to the landing pad of `slot`, or to the caller (0). */
function handOn(slot: i32): void {
  if (slot !== 0) landings.jumpTo(slot);
  else {
    // No try of this function catches it, even if one encloses the instruction: a delegate may name the caller.
    const around = landings.current;
    landings.setCurrent(0);
    calls.callBuiltin(BUILTIN_RETHROW, 0);
    landings.setCurrent(around);
    trapHere();
  }
  frames.depart();
}

/** Emits a trap after a call of a routine that never returns. */
function trapHere(): void {
  machine.callTrap(TRAP_UNREACHABLE);
  code.trapSite(TRAP_UNREACHABLE, 0, instructionOffset);
}

// Legacy tries.

export function visitTry(): void {
  if (frames.live) operands.flush(frames.base, false);
  openBlock(frames.IS_TRY);
  if (status !== layout.STATUS_DONE) return;
  store32(frames.frame + frames.FRAME_OUTER, landings.current);
  store32(frames.frame + frames.FRAME_CAUGHT, caughtHomes + tryDepth * 8);
  tryDepth = tryDepth + 1;
  if (frames.live) store32(frames.frame + frames.FRAME_SLOT, landings.openSlot());
}

/** `catch` of tag `index`, or `catch_all`. */
export function visitCatch(isAll: boolean): void {
  const kind = load32(frames.frame + frames.FRAME_KIND);
  if (kind !== frames.IS_TRY && kind !== frames.IS_CATCH) {
    fail();
    return;
  }
  if (!frames.expectResults()) return;
  const type = isAll ? 0 : tagAt(index);
  if (status !== layout.STATUS_DONE) return;
  frames.jumpToEnd();
  const arrives = kind === frames.IS_TRY ? arriveInCatch() : frames.takeElse();
  frames.restartFrame(isAll ? frames.IS_CATCH_ALL : frames.IS_CATCH, arrives);
  if (arrives) {
    if (!isAll) frames.setElse(testTag(index), 0);
    if (type !== 0) pushPayload(type);
    if (keepsCaught) keepCaught();
  } else if (type !== 0) {
    frames.pushTypes(load32(type + layout.TYPE_PARAMS), load32(type + layout.TYPE_PARAM_COUNT));
  }
}

/** Binds the landing pad of a try at its first catch; returns whether an exception lands there. */
function arriveInCatch(): boolean {
  const slot = load32(frames.frame + frames.FRAME_SLOT);
  landings.setCurrent(load32(frames.frame + frames.FRAME_OUTER));
  if (!landings.isUsed(slot)) return false;
  landings.bindSlot(slot);
  return true;
}

/** Stores the caught exception to the home of the try, for `rethrow`. */
function keepCaught(): void {
  calls.callBuiltin(BUILTIN_CAUGHT, 0);
  machine.storeHome(I64, machine.resultRegister(0, 0), load32(frames.frame + frames.FRAME_CAUGHT));
}

/** `end` of a legacy try, whose results have been checked; exceptions that it has not caught continue at `slot`. */
export function endTry(slot: i32): void {
  const isOpen = load32(frames.frame + frames.FRAME_KIND) === frames.IS_TRY;
  tryDepth = tryDepth - 1;
  frames.jumpToEnd();
  if (isOpen ? arriveInCatch() : frames.takeElse()) {
    frames.arrive();
    handOn(slot);
  }
}

/** The slot that receives exceptions thrown at the label of frame `target`; 0 for the caller. */
function slotAt(target: i32): i32 {
  let at = target;
  while (at >= frames.bodyFrame()) {
    const kind = load32(at + frames.FRAME_KIND);
    const slot = load32(at + frames.FRAME_SLOT);
    if ((kind === frames.IS_TRY || kind === frames.IS_TRY_TABLE) && slot !== 0) return slot;
    at = at - frames.FRAME;
  }
  return 0;
}

/**
 * Ends a legacy try like `end`; its label, relative to the enclosing frames, names the try that receives its
 * exceptions. Returns whether it is valid.
 */
export function endWithDelegate(): boolean {
  if (load32(frames.frame + frames.FRAME_KIND) !== frames.IS_TRY) {
    fail();
    return false;
  }
  if (!frames.expectResults()) return false;
  const target = index < 0 ? 0 : frames.frameOf(index + 1);
  if (target === 0) {
    fail();
    return false;
  }
  endTry(slotAt(target));
  return true;
}

// Throwing.

export function visitThrow(): void {
  const type = tagAt(index);
  if (type === 0) return;
  // A tag with results is for suspending alone.
  if (load32(type + layout.TYPE_RESULT_COUNT) !== 0) {
    fail();
    return;
  }
  const count = load32(type + layout.TYPE_PARAM_COUNT);
  if (!frames.expectList(load32(type + layout.TYPE_PARAMS), count, 0)) return;
  if (frames.live) {
    passPayload(count);
    operands.pushConstant(I32, index, 0);
    calls.callBuiltin(BUILTIN_THROW, 1);
    trapHere();
  }
  frames.markDead();
}

/** Stores the topmost `count` operands to the overflow buffer. */
export function passPayload(count: i32): void {
  for (let k = count - 1; k >= 0; k--) {
    code.reserveCode(64);
    const entry = operands.popEntry();
    const type = operands.entryType(entry);
    const register = operands.toRegister(entry);
    machine.overflowBuffer(machine.SCRATCH);
    machine.storeTo(bankOf(type) === 0 && type !== I32 ? I64 : type, register, machine.SCRATCH, k * OVERFLOW_ENTRY);
    operands.release(entry);
  }
}

export function visitThrowRef(): void {
  if (!frames.expect(0, refType(1, HEAP_EXN))) return;
  if (frames.live) {
    calls.callBuiltin(BUILTIN_THROW_REF, 1);
    trapHere();
  }
  frames.markDead();
}

export function visitRethrow(): void {
  const target = frames.frameOf(index);
  if (target === 0) return;
  const kind = load32(target + frames.FRAME_KIND);
  if (kind !== frames.IS_CATCH && kind !== frames.IS_CATCH_ALL) {
    fail();
    return;
  }
  if (frames.live) {
    const register = operands.allocate(0);
    machine.loadHome(I64, register, load32(target + frames.FRAME_CAUGHT));
    operands.pushRegister(refType(1, HEAP_EXN), register);
    calls.callBuiltin(BUILTIN_THROW_REF, 1);
    trapHere();
  }
  frames.markDead();
}
