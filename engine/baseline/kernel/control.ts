/**
 * Blocks and branches. In: a decoded instruction. Out: its validation and, if it is reachable, code; changes of the
 * control frames (frames.ts).
 */
import { passResults } from "./calls.ts";
import * as code from "./code.ts";
import * as cond from "./conditions.ts";
import { MODE_MASK_TABLES, TRAP_UNREACHABLE } from "./constants.ts";
import { dropFrame } from "./epilogue.ts";
import { endTry, endTryTable, endWithDelegate } from "./exceptions.ts";
import * as frames from "./frames.ts";
import * as layout from "./layout.ts";
import * as machine from "./machine.ts";
import { type i32, load32 } from "./memory.ts";
import * as operands from "./operands.ts";
import {
  blockTypeIndex,
  blockValue,
  fail,
  index,
  instructionOffset,
  list,
  listCount,
  pos,
  readU32,
  seek,
  status,
} from "./reader.ts";
import { BOTTOM, I32, isRef, matches, nonNull, REF_BOTTOM, V128 } from "./types.ts";
import { funcTypeAt, useFeature, useType } from "./module.ts";
import { FEATURE_MULTI_VALUE } from "./constants.ts";

/** Emits a return with the topmost operands as results. */
function emitReturn(): void {
  const body = frames.bodyFrame();
  passResults(load32(body + frames.FRAME_RESULTS), load32(body + frames.FRAME_RESULT_COUNT));
  dropFrame();
  machine.returnToCaller();
}

/** Opens a frame with the block type that the reader has decoded. */
export function openBlock(kind: i32): void {
  if (blockTypeIndex >= 0) {
    useFeature(FEATURE_MULTI_VALUE);
    const type = funcTypeAt(blockTypeIndex);
    if (type === 0) return;
    const params = load32(type + layout.TYPE_PARAMS);
    const count = load32(type + layout.TYPE_PARAM_COUNT);
    if (!frames.expectList(params, count, 0)) return;
    frames.openFrame(
      kind,
      params,
      count,
      load32(type + layout.TYPE_RESULTS),
      load32(type + layout.TYPE_RESULT_COUNT),
      0,
    );
    if (!frames.live) frames.restoreParams();
    else frames.retypeTop(params, count);
    return;
  }
  if (blockValue === V128 || isRef(blockValue)) useType(blockValue);
  frames.openFrame(kind, 0, 0, 0, blockValue !== 0 ? 1 : 0, blockValue);
}

export function visitBlock(): void {
  if (frames.live) operands.flush(frames.base, false);
  openBlock(frames.IS_BLOCK);
}

export function visitLoop(): void {
  if (frames.live) operands.flush(frames.base, false);
  openBlock(frames.IS_LOOP);
  if (status === layout.STATUS_DONE && frames.live) frames.beginLoop();
}

/** Pops the i32 on top and returns the condition that it is not zero, which the flags hold. */
function popCondition(): i32 {
  const entry = operands.popEntry();
  const flags = operands.flagsOf(entry);
  if (flags >= 0) return flags;
  machine.compareImmediate(0, operands.toRegister(entry), 0);
  operands.release(entry);
  return cond.NE;
}

/** Compiles `if`. The flags hold the condition up to the branch: the moves before it preserve them. */
export function visitIf(): void {
  if (!frames.expect(0, I32)) return;
  if (!frames.live) {
    frames.dropTypes(1);
    openBlock(frames.IS_IF);
    return;
  }
  const condition = popCondition();
  operands.flush(frames.base, true);
  openBlock(frames.IS_IF);
  if (status !== layout.STATUS_DONE) return;
  frames.meetLabel(frames.frame);
  // Branch to the else arm if the condition does not hold.
  if (machine.takesTwoBranches(condition) && condition === cond.FEQ) {
    frames.setElse(machine.jumpIf(cond.NE), machine.jumpIfUnordered());
  } else if (machine.takesTwoBranches(condition)) {
    const unordered = machine.shortUnordered();
    frames.setElse(machine.jumpIf(cond.EQ), 0);
    machine.bindShort(unordered);
  } else frames.setElse(machine.jumpIf(cond.opposite(condition)), 0);
}

export function visitElse(): void {
  if (load32(frames.frame + frames.FRAME_KIND) !== frames.IS_IF) {
    fail();
    return;
  }
  if (frames.expectResults()) frames.beginElse();
}

export function visitEnd(): void {
  if (!frames.expectResults()) return;
  const kind = load32(frames.frame + frames.FRAME_KIND);
  if (kind === frames.IS_IF && !isEmptyElse()) return;
  if (kind !== frames.IS_BODY) {
    if (kind === frames.IS_TRY_TABLE) endTryTable();
    else if (kind >= frames.IS_TRY) endTry(load32(frames.frame + frames.FRAME_OUTER));
    frames.closeFrame();
    return;
  }
  if (frames.joinBody() || frames.live) emitReturn();
  frames.dropBody();
}

/** `delegate` ends a legacy try. */
export function visitDelegate(): void {
  if (endWithDelegate()) frames.closeFrame();
}

/** Checks that the parameters of an `if` without `else` match its results. */
function isEmptyElse(): boolean {
  const count = load32(frames.frame + frames.FRAME_PARAM_COUNT);
  const params = load32(frames.frame + frames.FRAME_PARAMS);
  const results = load32(frames.frame + frames.FRAME_RESULTS);
  let same = count === load32(frames.frame + frames.FRAME_RESULT_COUNT);
  for (let k: i32 = 0; k < count && same; k++) same = matches(load32(params + k * 4), load32(results + k * 4));
  if (!same) fail();
  return same;
}

/** Jumps to the label of `target` with the topmost operands. The code after it is unreachable. */
export function emitJump(target: i32): void {
  if (target === frames.bodyFrame()) {
    emitReturn();
    return;
  }
  if (frames.isAligned(target)) operands.flush(operands.top - frames.labelCount(target) * operands.ENTRY, true);
  else frames.moveOperands(target);
  frames.meetLabel(target);
  frames.linkBranch(target, machine.jump());
}

export function visitBranch(): void {
  const target = frames.frameOf(index);
  if (target === 0) return;
  if (!frames.expectList(frames.labelTypes(target), frames.labelCount(target), 0)) return;
  if (frames.live) emitJump(target);
  frames.markDead();
}

/** Branches to the label of `target` if the condition, which is in the flags, holds. The operands stay on the stack. */
export function branchIf(target: i32, condition: i32): void {
  const count = frames.labelCount(target);
  frames.meetLabel(target);
  if (count === 0 || frames.isAligned(target)) {
    operands.flush(operands.top - count * operands.ENTRY, true);
    branchOn(target, condition);
    return;
  }
  // Move the operands to the label's homes only if the branch is taken.
  operands.flush(operands.top - count * operands.ENTRY, true);
  if (machine.takesTwoBranches(condition) && condition === cond.FEQ) {
    const differs = machine.jumpIf(cond.NE);
    const unordered = machine.jumpIfUnordered();
    jumpWithOperands(target);
    machine.patchBranch(differs, code.at);
    machine.patchBranch(unordered, code.at);
  } else if (machine.takesTwoBranches(condition)) {
    const unordered = machine.shortUnordered();
    const equal = machine.jumpIf(cond.EQ);
    machine.bindShort(unordered);
    jumpWithOperands(target);
    machine.patchBranch(equal, code.at);
  } else {
    const skip = machine.jumpIf(cond.opposite(condition));
    jumpWithOperands(target);
    machine.patchBranch(skip, code.at);
  }
}

function jumpWithOperands(target: i32): void {
  frames.moveOperands(target);
  frames.linkBranch(target, machine.jump());
}

/** Emits the one or two branches of a condition. */
function branchOn(target: i32, condition: i32): void {
  if (machine.takesTwoBranches(condition) && condition === cond.FEQ) {
    const unordered = machine.shortUnordered();
    frames.linkBranch(target, machine.jumpIf(cond.EQ));
    machine.bindShort(unordered);
  } else if (machine.takesTwoBranches(condition)) {
    frames.linkBranch(target, machine.jumpIf(cond.NE));
    frames.linkBranch(target, machine.jumpIfUnordered());
  } else frames.linkBranch(target, machine.jumpIf(condition));
}

export function visitBranchIf(): void {
  const target = frames.frameOf(index);
  if (target === 0 || !frames.expect(0, I32)) return;
  const types = frames.labelTypes(target);
  const count = frames.labelCount(target);
  if (!frames.expectList(types, count, 1)) return;
  if (!frames.live) {
    frames.dropTypes(1 + count);
    frames.pushTypes(types, count);
    return;
  }
  const condition = popCondition();
  branchIf(target, condition);
  frames.retypeTop(types, count);
}

/** Checks all labels of a br_table, each distinct label once. */
function checkLabels(): void {
  const back = pos;
  seek(list);
  frames.beginLabels();
  let arity: i32 = -1;
  for (let k: i32 = 0; k <= listCount; k++) {
    const target = frames.frameOf(readU32());
    if (target === 0) break;
    if (frames.isSeen(target)) continue;
    const count = frames.labelCount(target);
    if (arity >= 0 && arity !== count) fail();
    arity = count;
    if (!frames.expectList(frames.labelTypes(target), count, 1)) break;
  }
  seek(back);
}

export function visitBranchTable(): void {
  if (!frames.expect(0, I32)) return;
  checkLabels();
  if (status !== layout.STATUS_DONE) return;
  if (frames.live) emitBranchTable();
  frames.markDead();
}

function emitBranchTable(): void {
  const entry = operands.popEntry();
  const selector = operands.ownRegisterOf(entry);
  operands.flush(frames.base, true);
  operands.loadLocals(operands.allPinned(0), operands.allPinned(1));
  machine.compareImmediate(0, selector, listCount);
  const isDefault = machine.jumpIf(cond.GE_U);
  if ((load32(layout.H_MODE) & MODE_MASK_TABLES) !== 0) machine.maskAddress(selector);
  machine.jumpAmong(selector);
  const back = pos;
  seek(list);
  const first = code.at;
  for (let k: i32 = 0; k < listCount; k++) {
    code.reserveCode(16);
    const target = frames.frameOf(readU32());
    const branch = machine.jump();
    if (isDirect(target)) {
      frames.meetLabel(target);
      frames.linkBranch(target, branch);
    }
  }
  emitDefault(isDefault);
  emitFarCases(first);
  seek(back);
  operands.release(entry);
}

/** Returns whether the operands are already where the label expects them. */
function isDirect(target: i32): boolean {
  return frames.labelCount(target) === 0 || frames.isAligned(target);
}

function emitDefault(branch: i32): void {
  const target = frames.frameOf(readU32());
  frames.meetLabel(target);
  if (isDirect(target)) {
    frames.linkBranch(target, branch);
    return;
  }
  machine.patchBranch(branch, code.at);
  jumpWithOperands(target);
}

/** Emits the cases whose operands must be moved, and binds their jumps in the table, which begins at `first`. */
function emitFarCases(first: i32): void {
  seek(list);
  for (let k: i32 = 0; k < listCount; k++) {
    const target = frames.frameOf(readU32());
    if (isDirect(target)) continue;
    code.reserveCode(64);
    machine.patchBranch(first + k * machine.JUMP_BYTES + machine.JUMP_BYTES - 4, code.at);
    frames.meetLabel(target);
    jumpWithOperands(target);
  }
}

export function visitReturn(): void {
  const body = frames.bodyFrame();
  if (!frames.expectList(load32(body + frames.FRAME_RESULTS), load32(body + frames.FRAME_RESULT_COUNT), 0)) return;
  if (frames.live) emitReturn();
  frames.markDead();
}

export function visitUnreachable(): void {
  if (frames.live) {
    machine.callTrap(TRAP_UNREACHABLE);
    code.trapSite(TRAP_UNREACHABLE, 0, instructionOffset);
  }
  frames.markDead();
}

/**
 * The type of the reference on top; REF_BOTTOM if it is missing in unreachable code. Fails if the operand is not a
 * reference.
 */
export function referenceOnTop(): i32 {
  const type = frames.typeAt(0);
  if (type === BOTTOM) return REF_BOTTOM;
  if (!isRef(type)) fail();
  return type;
}

/** `br_on_null`: the branch drops the reference; the fall-through keeps it. */
export function visitBranchOnNull(): void {
  const type = referenceOnTop();
  const target = frames.frameOf(index);
  if (target === 0) return;
  const types = frames.labelTypes(target);
  const count = frames.labelCount(target);
  if (!frames.expectList(types, count, 1)) return;
  if (!frames.live) {
    frames.dropTypes(1 + count);
    frames.pushTypes(types, count);
    operands.pushHome(nonNull(type));
    return;
  }
  const entry = operands.popEntry();
  const register = operands.ownRegisterOf(entry);
  machine.compareImmediate(1, register, 0);
  branchIf(target, cond.EQ);
  frames.retypeTop(types, count);
  operands.pushRegister(nonNull(type), register);
}

/** `br_on_non_null`: the branch carries the reference; the fall-through drops it. */
export function visitBranchOnNonNull(): void {
  const type = referenceOnTop();
  const target = frames.frameOf(index);
  if (target === 0) return;
  const types = frames.labelTypes(target);
  const count = frames.labelCount(target);
  if (count === 0) {
    fail();
    return;
  }
  if (!matches(nonNull(type), load32(types + (count - 1) * 4)) || !frames.expectList(types, count - 1, 1)) {
    fail();
    return;
  }
  if (!frames.live) {
    frames.dropTypes(count);
    frames.pushTypes(types, count - 1);
    return;
  }
  const entry = operands.top - operands.ENTRY;
  machine.compareImmediate(1, operands.ownRegister(entry), 0);
  branchIf(target, cond.NE);
  operands.release(operands.popEntry());
  frames.retypeTop(types, count - 1);
}
