/**
 * Control frames, their types, and branches to them. The label of a frame is the header of a loop, or else the frame's
 * end. Values that a branch carries are in the homes of the label's operands, the first ones of the frame, and the
 * pinned registers that the label expects are valid.
 *
 * `live` is true while the current instruction is reachable; otherwise it is validated and emits nothing.
 */
import * as code from "./code.ts";
import { FRAMES, FRAMES_END, STATUS_TOO_LARGE } from "./layout.ts";
import * as machine from "./machine.ts";
import { type i32, load32, store32 } from "./memory.ts";
import * as operands from "./operands.ts";
import { ENTRY, entryType, top } from "./operands.ts";
import { fail, stop } from "./reader.ts";
import { BOTTOM, homeBytes, matches } from "./types.ts";

export const FRAME: i32 = 104;
export const FRAME_KIND: i32 = 0;
/** Top of the operand stack below the frame's parameters, and end of its homes. */
const FRAME_HEIGHT: i32 = 4;
const FRAME_HOME: i32 = 8;
export const FRAME_PARAMS: i32 = 12;
export const FRAME_PARAM_COUNT: i32 = 16;
export const FRAME_RESULTS: i32 = 20;
export const FRAME_RESULT_COUNT: i32 = 24;
/** 1 if the rest of the frame is unreachable; operands below its height then match any type. */
const FRAME_DEAD: i32 = 28;
/** The most recent branch to the end, or 0; each displacement holds the address of the previous one. */
const FRAME_LINKS: i32 = 32;
/** 1 if the label already expects pinned registers, and their masks. */
const FRAME_EXPECTS: i32 = 36;
const FRAME_GENERAL: i32 = 40;
const FRAME_VECTOR: i32 = 44;
/** Address of a loop's header. */
const FRAME_HEADER: i32 = 48;
/**
 * The branches to an if's else, or of an `if` without one to its end (FRAME_ELSE2: 0 for none), and the masks of valid
 * pinned registers there.
 */
const FRAME_ELSE: i32 = 52;
/** Storage for a result list of one type. */
const FRAME_TYPE: i32 = 56;
/** 1 if the frame was reachable when it was opened. */
const FRAME_LIVE: i32 = 60;
/** Number of entries of the list of set locals when the frame was opened. */
const FRAME_INITS: i32 = 64;
const FRAME_ELSE2: i32 = 68;
const FRAME_ELSE_GENERAL: i32 = 72;
const FRAME_ELSE_VECTOR: i32 = 76;
/** Stamp of the last br_table that checked the frame's label. */
const FRAME_STAMP: i32 = 80;
/**
 * For a try: its slot (landings.ts; 0 if it is unreachable), the enclosing slot, its clauses, and the home of the
 * caught exception.
 */
export const FRAME_SLOT: i32 = 84;
export const FRAME_OUTER: i32 = 88;
export const FRAME_CLAUSES: i32 = 92;
export const FRAME_CLAUSE_COUNT: i32 = 96;
export const FRAME_CAUGHT: i32 = 100;

export const IS_BODY: i32 = 0;
export const IS_BLOCK: i32 = 1;
export const IS_LOOP: i32 = 2;
export const IS_IF: i32 = 3;
const IS_ELSE: i32 = 4;
export const IS_TRY_TABLE: i32 = 5;
/** A legacy try up to its first catch, and the parts that follow. */
export const IS_TRY: i32 = 6;
export const IS_CATCH: i32 = 7;
export const IS_CATCH_ALL: i32 = 8;

/** The innermost frame. */
export let frame: i32 = FRAMES - FRAME;
export let live: boolean = true;
/** Lowest entry that the innermost frame may use. */
export let base: i32 = 0;

export function beginFrames(): void {
  frame = FRAMES - FRAME;
  live = true;
}

/** Lets a body that is only to be validated emit nothing. */
export function suppressCode(): void {
  live = false;
}

export function isOpen(): boolean {
  return frame >= FRAMES;
}

/** The outermost frame, that of the body. */
export function bodyFrame(): i32 {
  return FRAMES;
}

// Checking operands.

function isDead(): boolean {
  return load32(frame + FRAME_DEAD) !== 0;
}

/**
 * The type of the operand `below` the top of the stack; BOTTOM in unreachable code without such an operand. Fails if
 * there is none.
 */
export function typeAt(below: i32): i32 {
  const entry = top - (below + 1) * ENTRY;
  if (entry >= base) return entryType(entry);
  if (!isDead()) fail();
  return BOTTOM;
}

/** Checks that the operand `below` the top of the stack has `type`. */
export function expect(below: i32, type: i32): boolean {
  const entry = top - (below + 1) * ENTRY;
  if (entry >= base) {
    const actual = entryType(entry);
    if (actual === type || matches(actual, type)) return true;
  } else if (isDead()) return true;
  fail();
  return false;
}

/** Checks that the topmost operands are those of a list of types, `below` others. */
export function expectList(list: i32, count: i32, below: i32): boolean {
  for (let k: i32 = 0; k < count; k++) {
    if (!expect(below + count - 1 - k, load32(list + k * 4))) return false;
  }
  return true;
}

/** Pops `count` operands, or as many as the frame has, in unreachable code. */
export function dropTypes(count: i32): void {
  for (let k: i32 = 0; k < count && top > base; k++) operands.release(operands.popEntry());
}

/** In unreachable code: pops `count` operands and pushes one of type `result` (0: none). */
export function replaceTypes(count: i32, result: i32): void {
  dropTypes(count);
  if (result !== 0) operands.pushHome(result);
}

/** Pushes operands of the `count` types at `list`, in their homes, or as types in unreachable code. */
export function pushTypes(list: i32, count: i32): void {
  for (let k: i32 = 0; k < count; k++) {
    code.reserveCode(0);
    operands.pushHome(load32(list + k * 4));
  }
}

// Frames.

/** Opens a frame whose parameters are on the stack. A list of one result type is stored in the frame. */
export function openFrame(kind: i32, params: i32, paramCount: i32, results: i32, resultCount: i32, single: i32): void {
  if (frame + FRAME * 2 > FRAMES_END) {
    stop(STATUS_TOO_LARGE);
    return;
  }
  frame = frame + FRAME;
  let height = top;
  let home = operands.homeTop;
  for (let k: i32 = 0; k < paramCount && height > base && frame > FRAMES; k++) {
    height = height - ENTRY;
    home = operands.entryHome(height);
  }
  store32(frame + FRAME_KIND, kind);
  store32(frame + FRAME_HEIGHT, height);
  store32(frame + FRAME_HOME, home);
  store32(frame + FRAME_PARAMS, params);
  store32(frame + FRAME_PARAM_COUNT, paramCount);
  store32(frame + FRAME_TYPE, single);
  store32(frame + FRAME_RESULTS, single !== 0 ? frame + FRAME_TYPE : results);
  store32(frame + FRAME_RESULT_COUNT, resultCount);
  store32(frame + FRAME_DEAD, 0);
  store32(frame + FRAME_LINKS, 0);
  store32(frame + FRAME_EXPECTS, 0);
  store32(frame + FRAME_HEADER, 0);
  store32(frame + FRAME_ELSE, 0);
  store32(frame + FRAME_ELSE2, 0);
  store32(frame + FRAME_STAMP, 0);
  store32(frame + FRAME_SLOT, 0);
  store32(frame + FRAME_LIVE, live ? 1 : 0);
  store32(frame + FRAME_INITS, initCount);
  base = height;
}

/**
 * Resets the stack to the frame's height and pushes the types of its parameters, of which unreachable code may lack
 * some.
 */
export function restoreParams(): void {
  operands.setTop(load32(frame + FRAME_HEIGHT), load32(frame + FRAME_HOME));
  pushTypes(load32(frame + FRAME_PARAMS), load32(frame + FRAME_PARAM_COUNT));
}

/** Marks the rest of the frame as unreachable. */
export function markDead(): void {
  store32(frame + FRAME_DEAD, 1);
  if (live) operands.dropTo(base);
  else operands.setTop(base, load32(frame + FRAME_HOME));
  live = false;
}

/** Checks that the stack of the innermost frame contains exactly its results. */
export function expectResults(): boolean {
  const count = load32(frame + FRAME_RESULT_COUNT);
  if (!expectList(load32(frame + FRAME_RESULTS), count, 0)) return false;
  if (top - count * ENTRY > base) {
    fail();
    return false;
  }
  return true;
}

/** The frame of label `depth`, or 0. */
export function frameOf(depth: i32): i32 {
  const count = (frame - FRAMES) / FRAME + 1;
  if (depth < 0 || depth >= count) {
    fail();
    return 0;
  }
  return frame - depth * FRAME;
}

/** Address of the list of types that a branch to `target` carries; labelCount is their number. */
export function labelTypes(target: i32): i32 {
  return load32(target + (load32(target + FRAME_KIND) === IS_LOOP ? FRAME_PARAMS : FRAME_RESULTS));
}

export function labelCount(target: i32): i32 {
  return load32(target + (load32(target + FRAME_KIND) === IS_LOOP ? FRAME_PARAM_COUNT : FRAME_RESULT_COUNT));
}

let stamp: i32 = 0;

/** Begins a br_table, for isSeen. */
export function beginLabels(): void {
  stamp = stamp + 1;
}

/** Whether the current br_table has already checked the label of `target`; marks it as checked. */
export function isSeen(target: i32): boolean {
  const seen = load32(target + FRAME_STAMP) === stamp;
  store32(target + FRAME_STAMP, stamp);
  return seen;
}

// Locals without a default value: the indices of those that have been set, in order.

let initCount: i32 = 0;
let inits: i32 = 0;
let initsEnd: i32 = 0;

/** Begins a body whose list of set locals occupies the memory from `list` to before `listEnd`. */
export function beginInits(list: i32, listEnd: i32): void {
  inits = list;
  initsEnd = listEnd;
  initCount = 0;
}

/** Marks local `index` as set from here to the end of the frame. */
export function markSet(index: i32): void {
  if (operands.isLocalSet(index)) return;
  operands.setLocalFlag(index, 1);
  if (inits + initCount * 4 + 4 > initsEnd) {
    stop(STATUS_TOO_LARGE);
    return;
  }
  store32(inits + initCount * 4, index);
  initCount = initCount + 1;
}

function undoInits(): void {
  const mark = load32(frame + FRAME_INITS);
  while (initCount > mark) {
    initCount = initCount - 1;
    operands.setLocalFlag(load32(inits + initCount * 4), 0);
  }
}

// Branches, in live code.

/**
 * Makes the pinned registers that the label of `target` expects valid. The first branch to a label defines these: all
 * that are valid at the branch. Preserves the flags.
 */
export function meetLabel(target: i32): void {
  if (load32(target + FRAME_EXPECTS) === 0) {
    store32(target + FRAME_EXPECTS, 1);
    store32(target + FRAME_GENERAL, operands.validGeneral);
    store32(target + FRAME_VECTOR, operands.validVector);
  } else operands.loadLocals(load32(target + FRAME_GENERAL), load32(target + FRAME_VECTOR));
}

/**
 * Binds the branch whose displacement is at `branch` to the loop header of `target`, or links it to the branches to its
 * end.
 */
export function linkBranch(target: i32, branch: i32): void {
  if (load32(target + FRAME_KIND) === IS_LOOP) {
    machine.patchBranch(branch, load32(target + FRAME_HEADER));
    return;
  }
  machine.setLink(branch, load32(target + FRAME_LINKS));
  store32(target + FRAME_LINKS, branch);
}

/** Whether the operands that a branch carries are already at the height of the label of `target`. */
export function isAligned(target: i32): boolean {
  return top - labelCount(target) * ENTRY === load32(target + FRAME_HEIGHT);
}

/**
 * Moves the operands that a branch carries to the homes that the label expects, unless they are already there.
 * Preserves the flags.
 */
export function moveOperands(target: i32): void {
  const count = labelCount(target);
  let home = load32(target + FRAME_HOME);
  for (let k: i32 = count; k > 0; k--) {
    const entry = top - k * ENTRY;
    code.reserveCode(64);
    operands.storeInto(entry, home);
    home = home + homeBytes(entryType(entry));
  }
}

function bindLinks(head: i32): void {
  let branch = head;
  while (branch !== 0) {
    const next = machine.linkOf(branch);
    machine.patchBranch(branch, code.at);
    branch = next;
  }
}

/** Begins a loop: stores its parameters to their homes and makes all pinned registers valid. */
export function beginLoop(): void {
  operands.flush(base, true);
  operands.loadLocals(operands.allPinned(0), operands.allPinned(1));
  meetLabel(frame);
  store32(frame + FRAME_HEADER, code.at);
}

/** Sets the branches to the else arm, or to the next catch of a legacy try (`branch2` 0: none). */
export function setElse(branch: i32, branch2: i32): void {
  store32(frame + FRAME_ELSE, branch);
  store32(frame + FRAME_ELSE2, branch2);
  store32(frame + FRAME_ELSE_GENERAL, operands.validGeneral);
  store32(frame + FRAME_ELSE_VECTOR, operands.validVector);
}

/** Binds the branch of setElse here; returns false if there is none. */
export function takeElse(): boolean {
  const branch = load32(frame + FRAME_ELSE);
  if (branch === 0) return false;
  machine.patchBranch(branch, code.at);
  store32(frame + FRAME_ELSE, 0);
  return true;
}

function bindElse(): void {
  machine.patchBranch(load32(frame + FRAME_ELSE), code.at);
  if (load32(frame + FRAME_ELSE2) !== 0) machine.patchBranch(load32(frame + FRAME_ELSE2), code.at);
  store32(frame + FRAME_ELSE, 0);
  operands.keepLocals(load32(frame + FRAME_ELSE_GENERAL), load32(frame + FRAME_ELSE_VECTOR));
}

/** `else`: starts the other arm of the innermost frame, whose results have been checked. */
export function beginElse(): void {
  if (live) {
    operands.flush(base, true);
    meetLabel(frame);
    linkBranch(frame, machine.jump());
  }
  undoInits();
  store32(frame + FRAME_KIND, IS_ELSE);
  store32(frame + FRAME_DEAD, 0);
  live = load32(frame + FRAME_LIVE) !== 0;
  if (live) bindElse();
  restoreParams();
}

/**
 * Starts another part of the frame, which is entered only by branches: discards its operands and sets whether it is
 * `reachable`.
 */
export function restartFrame(kind: i32, reachable: boolean): void {
  undoInits();
  store32(frame + FRAME_KIND, kind);
  store32(frame + FRAME_DEAD, 0);
  if (live) operands.dropTo(base);
  else operands.setTop(base, load32(frame + FRAME_HOME));
  operands.forgetLocals();
  live = reachable;
}

/** In live code, branches to the end of the frame with its results. */
export function jumpToEnd(): void {
  if (!live) return;
  operands.flush(base, true);
  meetLabel(frame);
  linkBranch(frame, machine.jump());
  operands.dropTo(base);
  live = false;
}

/** Starts reachable code with an empty operand stack in the frame and no valid pinned registers. */
export function arrive(): void {
  operands.setTop(base, load32(frame + FRAME_HOME));
  operands.forgetLocals();
  live = true;
}

/** Ends reachable code and empties the frame's operand stack. */
export function depart(): void {
  if (live) operands.dropTo(base);
  live = false;
}

/** Compiles the `end` of a frame other than the body's. The results have been checked. */
export function closeFrame(): void {
  const kind = load32(frame + FRAME_KIND);
  const links = load32(frame + FRAME_LINKS);
  const skips = kind === IS_IF && load32(frame + FRAME_LIVE) !== 0;
  if (kind !== IS_LOOP && (links !== 0 || skips)) {
    if (live) {
      operands.flush(base, true);
      meetLabel(frame);
    }
    if (skips) bindElse();
    bindLinks(links);
    operands.keepLocals(load32(frame + FRAME_GENERAL), load32(frame + FRAME_VECTOR));
    leave(true, true);
  } else leave(live, false);
}

/** Closes the innermost frame. Its results are in their homes if `joined`, otherwise at their current locations. */
function leave(reachable: boolean, joined: boolean): void {
  undoInits();
  const results = load32(frame + FRAME_RESULTS);
  const count = load32(frame + FRAME_RESULT_COUNT);
  const outer = load32(frame + FRAME_LIVE) !== 0;
  if (joined || !reachable) {
    operands.setTop(load32(frame + FRAME_HEIGHT), load32(frame + FRAME_HOME));
    pushTypes(results, count);
  } else retypeTop(results, count);
  live = reachable && outer;
  frame = frame - FRAME;
  if (frame >= FRAMES) base = load32(frame + FRAME_HEIGHT);
}

/** Sets the types of the topmost operands to those of the list, which may be supertypes of their own. */
export function retypeTop(list: i32, count: i32): void {
  for (let k: i32 = 0; k < count; k++) operands.setEntryType(top - (count - k) * ENTRY, load32(list + k * 4));
}

/** Binds the branches to the end of the body; returns whether there are any. Results are then in their homes. */
export function joinBody(): boolean {
  const links = load32(frame + FRAME_LINKS);
  if (links === 0) return false;
  if (live) operands.flush(base, true);
  bindLinks(links);
  operands.forgetLocals();
  operands.setTop(load32(frame + FRAME_HEIGHT), load32(frame + FRAME_HOME));
  pushTypes(load32(frame + FRAME_RESULTS), load32(frame + FRAME_RESULT_COUNT));
  live = true;
  return true;
}

export function dropBody(): void {
  frame = frame - FRAME;
}
