/**
 * Structured control: bodies, blocks, loops, ifs and branches (specification, 4.4.8). In: the visitor's calls in
 * reachable code. Out: blocks and edges in structural order, which is the reverse postorder that ir/function.ts
 * requires.
 *
 * A frame gets a block of its own only where edges meet or a loop repeats: a block without branches to it, a loop
 * without a back edge and an if with a constant condition emit nothing.
 */
import { BLOCK_COLD, BLOCK_LOOP } from "../ir/function.ts";
import { isBelow } from "../base/numbers.ts";
import { BRANCH_HINT, OP, oppositeHint } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import type { Immediates } from "../wasm/immediates.ts";
import { endTry, endTryTable } from "./exceptions.ts";
import { tooLarge } from "./failures.ts";
import { FRAME_KIND, MAX_INSTRUCTIONS } from "./frames.ts";
import { takeDepth } from "./deterministic.ts";
import { beginFuel } from "./fuel.ts";
import type { Translation } from "./translation.ts";
import { edgeToFrame, openJoin, takePool } from "./block_parameters.ts";
import { tyOf } from "../wasm/ir_types.ts";
import { BODY as CONTAINS } from "../wasm/body_flags.ts";
import { MODE } from "../settings/code_mode.ts";

const { BLOCK, LOOP, IF, ELSE, TRY_TABLE, TRY, CATCH, BODY, INLINED } = FRAME_KIND;

/**
 * Begins a body: the function's own, or an inlined one, whose arguments are on the stack. `locals` has the types of all
 * locals; those of the parameters are not read.
 */
export function beginActivation(
  t: Translation,
  funcIndex: number,
  params: number,
  results: number,
  locals: readonly number[],
): void {
  const { frames, b, f } = t;
  const inlined = t.chain.length > 0;
  t.chain.push(funcIndex);
  t.funcIndex = funcIndex;
  t.localBase = t.localEnd;
  t.localEnd += locals.length;
  frames.reserveLocals(t.localEnd);
  const base = t.localBase;
  t.openLoops = 0;
  t.nextLoop = t.loops.loopCount;
  t.reserve(t.env.summaries.bytes[funcIndex - t.env.importedFuncCount] + 16);
  if (inlined) {
    t.sp -= params;
    for (let k = 0; k < params; k++) frames.locals[base + k] = t.stack[t.sp + k];
  } else {
    b.openBlock(0, false);
    for (let k = 0; k < params; k++) frames.locals[base + k] = b.param(f.signature.params[k]);
    for (let k = params; k < locals.length; k++) {
      const ty = tyOf(locals[k]);
      if (t.zeros[ty] === 0) t.zeros[ty] = t.zero(ty);
    }
  }
  for (let k = params; k < locals.length; k++) frames.locals[base + k] = t.zero(tyOf(locals[k]));
  frames.loggedAt.fill(0, base, t.localEnd);
  t.bodyFrame = frames.open(inlined ? INLINED : BODY, t.sp, results, results);
  frames.floor = -1;
  t.reachable = true;
  if (t.deterministic) takeDepth(t, locals.length, inlined);
  if (t.metered && !inlined) beginFuel(t);
  // A leaf function without loops ends soon; in call trees every function that calls polls.
  if ((t.env.mode & MODE.INTERRUPTIBLE) !== 0 && !inlined && (bodyFlags(t) & CONTAINS.CALL) !== 0) {
    t.entryPoll = b.emit(OP.POLL, TY.NONE, 0, 0, 0, 0);
  }
}

/** The summary of the current body: bits of BODY in summaries.ts. */
function bodyFlags(t: Translation): number {
  return t.env.summaries.flags[t.funcIndex - t.env.importedFuncCount];
}

export function enterBlock(t: Translation, params: number, results: number): void {
  const { frames } = t;
  frames.open(BLOCK, t.sp - params, results, results);
  frames.floor = frames.trailCount;
}

export function enterIf(t: Translation, params: number, results: number): void {
  const { frames, f, b } = t;
  const condition = b.condition(t.pop());
  const value = Math.abs(condition);
  const n = frames.open(IF, t.sp - params, results, results);
  frames.floor = frames.trailCount;
  frames.saved[n] = frames.saveParams(t.stack, t.sp - params, params);
  if (b.isConst(value)) {
    // The arm that is never taken is unreachable; ELSE_ONLY makes the else arm reachable only if the first arm was not.
    t.reachable = (f.imm[value] !== 0) === (condition > 0);
    frames.elseEdge[n] = t.reachable ? ELSE_DEAD : ELSE_ONLY;
    return;
  }
  const from = b.block;
  const thenEdge = f.addEdge(from, from + 1, 0);
  const elseEdge = f.addEdge(from, 0, 0);
  frames.elseEdge[n] = elseEdge;
  emitBranch(t, condition, thenEdge, elseEdge);
  b.openBlock(0, true);
}

/**
 * Values of elseEdge for ifs with a constant condition: the else arm is unreachable; only the else arm is reachable.
 */
const ELSE_DEAD = -2;
const ELSE_ONLY = -3;

/** The module's hint for the current instruction. */
function branchHint(t: Translation): number {
  const { hintAt, hintIsLikely } = t.env;
  const { pos } = t.b;
  let first = 0;
  for (let end = hintAt.length; first < end;) {
    const middle = (first + end) >> 1;
    if (hintAt[middle] < pos) first = middle + 1;
    else end = middle;
  }
  if (first === hintAt.length || hintAt[first] !== pos) return BRANCH_HINT.NONE;
  return hintIsLikely[first] !== 0 ? BRANCH_HINT.LIKELY : BRANCH_HINT.UNLIKELY;
}

/** Ends the open block with a branch to `taken` if `condition` (of Builder.condition) holds, else to `other`. */
function emitBranch(t: Translation, condition: number, taken: number, other: number): void {
  const { b } = t;
  const hint = branchHint(t);
  if (condition > 0) b.emit(OP.BRANCH, TY.NONE, condition, taken, other, hint);
  else b.emit(OP.BRANCH, TY.NONE, -condition, other, taken, oppositeHint(hint));
  b.closeBlock();
}

/** Begins the else arm of the innermost frame. */
export function enterElse(t: Translation): void {
  const { frames, f, b } = t;
  const n = frames.count - 1;
  const e = frames.elseEdge[n];
  if (t.reachable) jumpToFrame(t, n);
  frames.kind[n] = ELSE;
  // The locals keep the values of the last jump, which may be taken back (resumeFromJump).
  if (e === ELSE_DEAD) return;
  frames.undo(frames.trailStart[n]);
  const params = frames.savedCount - frames.saved[n];
  const base = frames.height[n];
  for (let k = 0; k < params; k++) t.stack[base + k] = frames.savedParams[frames.saved[n] + k];
  t.sp = base + params;
  // With a constant condition, the block before the if is still open.
  if (e >= 0) {
    f.edgeTo[e] = b.openBlock(0, false);
    f.edgeArgs[e] = f.poolCount;
  }
  t.reachable = true;
}

/** Opens a loop, in reachable or unreachable code. */
export function enterLoop(t: Translation, params: number, results: number, at: number): void {
  const { frames, f, b, loops } = t;
  if (!t.reachable) {
    if (t.openLoops > 0) t.nextLoop++;
    t.deadFrames++;
    return;
  }
  if (t.openLoops === 0) scanLoop(t, at);
  const loop = t.nextLoop++;
  t.openLoops++;
  const n = frames.open(LOOP, t.sp - params, params, results);
  frames.loop[n] = loop;
  if (loops.targeted[loop] === 0) return;
  b.depth++;
  const from = b.block;
  frames.header[n] = from + 1;
  const e = edgeToFrame(t, n);
  b.emit(OP.JUMP, TY.NONE, e, 0, 0, 0);
  b.closeBlock();
  b.openBlock(BLOCK_LOOP, true);
  const base = t.sp - params;
  for (let k = 0; k < params; k++) t.stack[base + k] = b.param(f.ty[t.stack[base + k]]);
  const first = loops.first[loop];
  const last = loops.last[loop];
  if (f.count + last - first > MAX_INSTRUCTIONS) throw tooLarge(t.funcIndex, at);
  for (let k = first; k < last; k++) {
    const slot = t.localBase + loops.list[k];
    frames.setLocal(slot, b.param(f.ty[frames.locals[slot]]));
  }
  if ((t.env.mode & MODE.INTERRUPTIBLE) !== 0) b.emit(OP.POLL, TY.NONE, 0, 0, 0, 0);
}

/** Scans the outermost loop whose opcode is at absolute offset `at`. */
function scanLoop(t: Translation, at: number): void {
  const { reader } = t;
  t.openBody(t.funcIndex - t.env.importedFuncCount);
  reader.pos = at - reader.base;
  reader.next(); // the loop itself
  t.nextLoop = t.loops.loopCount;
  t.loops.scan(reader, t.localEnd - t.localBase);
  if (t.loops.overflow) throw tooLarge(t.funcIndex, at);
}

/** Ends the innermost frame; `delegate` ≥ 0 is the label that ends a legacy try. */
export function endFrame(t: Translation, delegate: number): void {
  const { frames } = t;
  const n = frames.count - 1;
  const kind = frames.kind[n];
  if (kind === LOOP) {
    endLoop(t, n);
    return;
  }
  if (kind === IF || kind === ELSE) endIf(t, n, kind);
  else if (kind === TRY_TABLE) endTryTable(t, n);
  else if (kind === TRY || kind === CATCH) endTry(t, n, delegate);
  const pending = frames.edgeCount[n];
  const start = frames.trailStart[n];
  const floor = frames.outerFloor[n];
  const isBody = kind >= BODY;
  if (pending === 0 || !t.reachable && pending === 1 && reopensLast(t, n)) {
    // Control falls through in the open block, or the end is unreachable.
    if (pending === 1) resumeFromJump(t, n);
    if (isBody) frames.undo(start);
    else if (t.reachable) frames.compact(start, floor);
    frames.floor = floor;
  } else {
    if (t.reachable) jumpToFrame(t, n);
    frames.undo(start);
    frames.floor = floor;
    openJoin(t, n);
    t.reachable = true;
  }
  frames.count = n;
  if (kind === BODY && t.reachable) emitReturn(t, frames.results[n]);
}

/** Ends the open block with a return of the `count` topmost operands. */
function emitReturn(t: Translation, count: number): void {
  const { f, b } = t;
  const list = takePool(t, count);
  for (let k = 0; k < count; k++) f.pool[list + k] = t.stack[t.sp - count + k];
  b.emit(OP.RETURN, TY.NONE, list, count, 0, 0);
  b.closeBlock();
  t.reachable = false;
}

function endIf(t: Translation, n: number, kind: number): void {
  const { frames } = t;
  const e = frames.elseEdge[n];
  const saved = frames.saved[n];
  if (kind === IF) {
    const params = frames.savedCount - saved;
    if (e >= 0) {
      // Without an else arm, the edge that skips the first arm carries the parameters to the end.
      frames.reserveSnap(params);
      const snap = frames.snapCount;
      for (let k = 0; k < params; k++) frames.snaps[snap + k] = frames.savedParams[saved + k];
      frames.snapCount = snap + params;
      if (t.reachable) jumpToFrame(t, n);
      frames.addPending(n, e, snap, 0);
    } else if (e === ELSE_ONLY) {
      const base = frames.height[n];
      for (let k = 0; k < params; k++) t.stack[base + k] = frames.savedParams[saved + k];
      t.sp = base + params;
      t.reachable = true;
    }
  }
  frames.savedCount = saved;
}

function endLoop(t: Translation, n: number): void {
  const { frames, f, b } = t;
  if (frames.header[n] >= 0) {
    b.depth--;
    // An empty block after a final `br_if` is outside the loop.
    if (t.reachable && f.blockStart[b.block] === f.schedCount) f.blockDepth[b.block] = b.depth;
  }
  frames.count = n;
  if (--t.openLoops === 0) t.loops.truncate(frames.loop[n]);
}

/**
 * Whether the only pending edge of frame `n` is that of a jump which ended the newest block. The locals then still have
 * the values of the jump.
 */
function reopensLast(t: Translation, n: number): boolean {
  const { f } = t;
  const e = t.frames.firstEdge[n];
  if (e !== f.edgeCount - 1 || f.edgeFrom[e] !== f.blockCount - 1) return false;
  const last = f.sched[f.schedCount - 1];
  return f.op[last] === OP.JUMP && f.a[last] === e;
}

/** Removes that jump and reopens its block, with the operands that it carried. */
function resumeFromJump(t: Translation, n: number): void {
  const { frames, f, b } = t;
  const e = frames.firstEdge[n];
  const snap = frames.edgeSnap[e];
  const arity = frames.arity[n];
  const base = frames.height[n];
  for (let k = 0; k < arity; k++) t.stack[base + k] = frames.snaps[snap + k];
  t.sp = base + arity;
  b.reopenBlock(f.edgeFrom[e]);
  t.reachable = true;
}

/** Ends the open block with a jump to frame `n`; the code that follows is unreachable. */
export function jumpToFrame(t: Translation, n: number): void {
  const e = edgeToFrame(t, n);
  t.b.emit(OP.JUMP, TY.NONE, e, 0, 0, 0);
  t.b.closeBlock();
  t.reachable = false;
}

function frameOf(t: Translation, label: number): number {
  return t.frames.count - 1 - label;
}

/** `br` */
export function branch(t: Translation, label: number): void {
  const n = frameOf(t, label);
  if (t.frames.kind[n] === BODY) returnResults(t);
  else jumpToFrame(t, n);
}

/** `return` */
export function returnResults(t: Translation): void {
  const n = t.bodyFrame;
  if (t.frames.kind[n] !== BODY) {
    jumpToFrame(t, n);
    return;
  }
  emitReturn(t, t.frames.results[n]);
}

/** `br_if` */
export function branchIf(t: Translation, label: number): void {
  branchWhen(t, t.pop(), label);
}

/** Branches to `label`, whose operands are on the stack, if `test` (i32) is not zero. */
export function branchWhen(t: Translation, test: number, label: number): void {
  const condition = t.b.condition(test);
  const value = Math.abs(condition);
  if (t.b.isConst(value)) {
    if ((t.f.imm[value] !== 0) === (condition > 0)) branch(t, label);
    return;
  }
  branchOnCondition(t, condition, label);
}

/** Branches to `label` if `condition` (of Builder.condition) holds; opens the fall-through block. */
function branchOnCondition(t: Translation, condition: number, label: number): void {
  const { f, b } = t;
  const from = b.block;
  const taken = edgeToFrame(t, frameOf(t, label));
  const other = f.addEdge(from, from + 1, f.poolCount);
  emitBranch(t, condition, taken, other);
  b.openBlock(0, true);
}

/** `br_table` */
export function branchTable(t: Translation, imm: Immediates): void {
  const { f, b } = t;
  const count = imm.labelCount;
  const { labels } = imm;
  const index = t.pop();
  if (b.isConst(index)) {
    branch(t, labels[isBelow(f.imm[index], count) ? f.imm[index] : count]);
    return;
  }
  let same = true;
  for (let k = 0; k < count; k++) if (labels[k] !== labels[count]) same = false;
  if (same) {
    branch(t, labels[0]);
    return;
  }
  const stamp = ++t.tableStamp;
  const first = f.edgeCount;
  for (let k = 0; k <= count; k++) edgeToFrame(t, frameOf(t, labels[k]), stamp);
  if (count === 1) b.emit(OP.BRANCH, TY.NONE, index, first + 1, first, 0);
  else b.emit(OP.SWITCH, TY.NONE, index, first, count + 1, 0);
  b.closeBlock();
  t.reachable = false;
}

/** Traps with `code`: for `unreachable`, and for instructions that are known to trap. */
export function trapHere(t: Translation, code: number): void {
  const { b, f } = t;
  if (b.block !== 0) f.blockFlags[b.block] |= BLOCK_COLD;
  b.emit(OP.TRAP, TY.NONE, 0, 0, 0, code);
  b.closeBlock();
  t.reachable = false;
}
