/**
 * Exceptions (specification, 4.4.8.10 ff., and the legacy instructions). In: throw, throw_ref, rethrow, and the frames
 * of tries. Out: calls with landing pads (ir/function.ts, "Exceptions"), and after each try the landing pad where its
 * exceptions meet, which dispatches on the tag.
 *
 *     call inside a try       CALL, UNWOUND, BRANCH ──► landing pad of the innermost try
 *     landing pad             tag = CAUGHT_TAG;  tag = tags[k]? ──► payload from the overflow buffer, then the clause's
 *                             label; no match: jump to the landing pad of the enclosing try, or `rethrow` to the caller
 *
 * An edge into a landing pad carries the locals that changed since the try began, as every other edge does; operands
 * below the try do not change inside it. The caught exception is readable until the next call, so landing pads read it
 * first.
 *
 * A throw that a clause in the same function is certain to catch is a branch (`localCatch`).
 *
 * A legacy try has catches instead of clauses: each is translated in place, with the locals of the landing pad.
 */
import { BUILTIN } from "../abi/builtins.ts";
import { CONTEXT, TAG_SIZE, THREAD } from "../abi/context_layout.ts";
import { CLASS_CONSTANT, REGION, region } from "../ir/regions.ts";
import { BRANCH_HINT, OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { TRAP } from "../base/traps.ts";
import { type CatchClause, passesException } from "../wasm/immediates.ts";
import { branch, jumpToFrame, trapHere } from "./control.ts";
import { FRAME_KIND } from "./frames.ts";
import type { Translation } from "./translation.ts";
import { edgeToTry, openJoin } from "./block_parameters.ts";
import { callBuiltin } from "./builtin_calls.ts";
import { BODY } from "../wasm/body_flags.ts";

const { I32, I64, NONE } = TY;
const { TRY_TABLE, TRY, CATCH } = FRAME_KIND;
const { throw: THROW, throw_ref: THROW_REF, rethrow: RETHROW, caught: CAUGHT } = BUILTIN;
const CONSTANT_CONTEXT = region(REGION.CONTEXT, CLASS_CONSTANT);
/** Bytes of a payload value in the overflow buffer. */
export const PAYLOAD_ENTRY = 16;
/** Value of elseEdge of a catch: no exception reaches the following catches. */
const NOTHING_LEFT = -1;

/** Begins a try; `clauses` are those of a try_table, else undefined. */
export function enterTry(
  t: Translation,
  params: number,
  results: number,
  clauses: readonly CatchClause[] | undefined,
): void {
  const { frames } = t;
  const n = frames.open(clauses !== undefined ? TRY_TABLE : TRY, t.sp - params, results, results);
  frames.floor = frames.trailCount;
  frames.localLimit[n] = t.localEnd;
  frames.clauses[n] = t.clauses.length;
  if (clauses !== undefined) t.clauses.push(clauses.slice());
  // A try_table without clauses catches nothing.
  if (clauses === undefined || clauses.length > 0) frames.tryFrame = n;
}

/**
 * After a call and its results: if a try is open, branches to its landing pad for exceptions, and opens the normal
 * successor.
 */
export function branchOnUnwind(t: Translation): void {
  const { frames, f, b } = t;
  if (frames.tryFrame < 0) return;
  const condition = b.emit(OP.UNWOUND, I32, 0, 0, 0, 0);
  const thrown = edgeToTry(t, frames.tryFrame);
  const from = b.block;
  const other = f.addEdge(from, from + 1, f.poolCount);
  b.emit(OP.BRANCH, NONE, condition, thrown, other, BRANCH_HINT.UNLIKELY);
  b.closeBlock();
  b.openBlock(0, true);
}

/** Calls routine `number`, which throws, with `operand`; the code after it is unreachable. */
function raise(t: Translation, number: number, operand: number): void {
  callBuiltin(t, number, [operand]);
  branchOnUnwind(t);
  trapHere(t, TRAP.UNREACHABLE);
}

/** Passes the current exception on to try `n`, or to the caller if `n` is −1. */
function resumeUnwinding(t: Translation, n: number): void {
  if (n < 0) {
    callBuiltin(t, RETHROW, []);
    trapHere(t, TRAP.UNREACHABLE);
    return;
  }
  const e = edgeToTry(t, n);
  t.b.emit(OP.JUMP, NONE, e, 0, 0, 0);
  t.b.closeBlock();
  t.reachable = false;
}

/**
 * Opens the landing pad of try `n`, with the locals of the exceptions that reach it; normal control flow has been
 * joined already.
 */
function openLandingPad(t: Translation, n: number): void {
  const { frames } = t;
  frames.undo(frames.trailStart[n]);
  frames.swapPending(n);
  const arity = frames.arity[n];
  frames.arity[n] = 0;
  openJoin(t, n);
  frames.arity[n] = arity;
  frames.swapPending(n);
  frames.firstThrown[n] = -1;
  frames.thrownCount[n] = 0;
  t.reachable = true;
}

/** Identity of the caught tag. */
function caughtTag(t: Translation): number {
  const thread = t.b.emit(OP.LOAD, I64, 0, 0, CONSTANT_CONTEXT, CONTEXT.THREAD);
  return t.b.emit(OP.LOAD, I64, thread, 0, t.env.payloadRegion, THREAD.CAUGHT_TAG);
}

/** The address of the overflow buffer. */
export function payloadBuffer(t: Translation): number {
  return t.b.emit(OP.LOAD, I64, 0, 0, CONSTANT_CONTEXT, CONTEXT.OVERFLOW);
}

/** Pushes the operands of a clause: the payload of `tag` (≥ 0), and the exception if `withRef`. */
function pushCaught(t: Translation, tag: number, withRef: boolean): void {
  const { b, env } = t;
  if (tag >= 0) {
    const { params } = env.signatures[env.tagSignature[tag]];
    t.reserve(params.length + 1);
    const buffer = params.length > 0 ? payloadBuffer(t) : 0;
    for (let k = 0; k < params.length; k++) {
      t.push(b.emit(OP.LOAD, params[k], buffer, 0, env.payloadRegion, k * PAYLOAD_ENTRY));
    }
  }
  if (withRef) t.push(callBuiltin(t, CAUGHT, []));
}

/** Tests if the caught tag is `tag` and opens the clause's block; returns the edge taken otherwise. */
function testTag(t: Translation, caught: number, tag: number): number {
  const { f, b, env } = t;
  const own = b.emit(OP.LOAD, I64, 0, 0, CONSTANT_CONTEXT, env.tagsOffset + tag * TAG_SIZE);
  const condition = b.binary(OP.EQ, I32, caught, own);
  const from = b.block;
  const taken = f.addEdge(from, from + 1, f.poolCount);
  const other = f.addEdge(from, 0, f.poolCount);
  b.emit(OP.BRANCH, NONE, condition, taken, other, 0);
  b.closeBlock();
  b.openBlock(0, true);
  return other;
}

/** Opens the block that edge `e` leads to. */
function openAt(t: Translation, e: number, n: number): void {
  const { f, b, frames } = t;
  f.edgeTo[e] = b.openBlock(0, false);
  f.edgeArgs[e] = f.poolCount;
  t.sp = frames.height[n];
  t.reachable = true;
}

/** Translates the landing pad of try_table `n`, at its end, before its edges are joined. */
export function endTryTable(t: Translation, n: number): void {
  const { frames } = t;
  const clauses = t.clauses[t.clauses.length - 1];
  t.clauses.length--;
  frames.tryFrame = frames.outerTry[n];
  if (frames.thrownCount[n] === 0) return;
  if (t.reachable) jumpToFrame(t, n);
  openLandingPad(t, n);
  const caught = caughtTag(t);
  // Labels of clauses are relative to the frame outside the try_table.
  frames.count = n;
  for (const { kind, tag, label } of clauses) {
    const withRef = passesException(kind);
    if (tag < 0) {
      pushCaught(t, -1, withRef);
      branch(t, label);
      break;
    }
    const other = testTag(t, caught, tag);
    pushCaught(t, tag, withRef);
    branch(t, label);
    openAt(t, other, n);
  }
  if (t.reachable) resumeUnwinding(t, frames.tryFrame);
  frames.count = n + 1;
}

/** catch and catch_all (tag −1) of the innermost frame. */
export function enterCatch(t: Translation, tag: number): void {
  const { frames, env } = t;
  const n = frames.count - 1;
  if (t.reachable) jumpToFrame(t, n);
  if (frames.kind[n] === TRY) {
    frames.kind[n] = CATCH;
    frames.tryFrame = frames.outerTry[n];
    frames.elseEdge[n] = NOTHING_LEFT;
    if (frames.thrownCount[n] === 0) return;
    openLandingPad(t, n);
    frames.landingTag[n] = caughtTag(t);
    frames.landingTrail[n] = frames.floor = frames.trailCount;
  } else {
    if (frames.elseEdge[n] === NOTHING_LEFT) return;
    frames.undo(frames.landingTrail[n]);
    openAt(t, frames.elseEdge[n], n);
  }
  frames.elseEdge[n] = tag >= 0 ? testTag(t, frames.landingTag[n], tag) : NOTHING_LEFT;
  pushCaught(t, tag, false);
  const body = env.summaries.flags[t.funcIndex - env.importedFuncCount];
  frames.caught[n] = (body & BODY.RETHROW) !== 0 ? callBuiltin(t, CAUGHT, []) : 0;
}

/** Ends legacy try `n`, before its edges are joined: uncaught exceptions go on to the try that `delegate` names. */
export function endTry(t: Translation, n: number, delegate: number): void {
  const { frames } = t;
  if (frames.kind[n] === TRY) {
    frames.tryFrame = frames.outerTry[n];
    if (frames.thrownCount[n] === 0) return;
    if (t.reachable) jumpToFrame(t, n);
    openLandingPad(t, n);
    resumeUnwinding(t, delegate < 0 ? frames.tryFrame : tryAt(t, n - 1 - delegate));
  } else if (frames.elseEdge[n] !== NOTHING_LEFT) {
    if (t.reachable) jumpToFrame(t, n);
    frames.undo(frames.landingTrail[n]);
    openAt(t, frames.elseEdge[n], n);
    resumeUnwinding(t, frames.tryFrame);
  }
}

/** The try whose handlers apply at the label of frame `n`. */
function tryAt(t: Translation, n: number): number {
  const { frames } = t;
  const kind = frames.kind[n];
  return kind === TRY || kind === TRY_TABLE ? n : frames.outerTry[n];
}

/**
 * Branches to the clause that catches a throw of `tag`, if that is known at compile time: a clause of this activation
 * without a reference, with no earlier clause that might match. Two imported tags may be equal; a tag that the module
 * defines equals no other.
 */
function localCatch(t: Translation, tag: number): boolean {
  const { frames, env } = t;
  const { importedTagCount } = env;
  for (let n = frames.tryFrame; n >= 0; n = frames.outerTry[n]) {
    if (frames.kind[n] !== TRY_TABLE || frames.localLimit[n] !== t.localEnd || n < t.bodyFrame) return false;
    for (const { kind, tag: wanted, label } of t.clauses[frames.clauses[n]]) {
      if (wanted >= 0 && wanted !== tag) {
        if (wanted < importedTagCount && tag < importedTagCount) return false;
        continue;
      }
      if (passesException(kind)) return false;
      if (wanted < 0) t.sp -= env.signatures[env.tagSignature[tag]].params.length;
      branch(t, frames.count - n + label);
      return true;
    }
  }
  return false;
}

/** `throw` */
export function translateThrow(t: Translation, tag: number): void {
  const { b, env } = t;
  const { params } = env.signatures[env.tagSignature[tag]];
  if (localCatch(t, tag)) return;
  t.sp -= params.length;
  const buffer = params.length > 0 ? payloadBuffer(t) : 0;
  for (let k = 0; k < params.length; k++) {
    b.emit(OP.STORE, NONE, buffer, t.stack[t.sp + k], env.payloadRegion, k * PAYLOAD_ENTRY);
  }
  raise(t, THROW, b.i32(tag));
}

/** `throw_ref` */
export function translateThrowRef(t: Translation): void {
  raise(t, THROW_REF, t.pop());
}

/** `rethrow` of the exception that the catch with label `label` has caught. */
export function translateRethrow(t: Translation, label: number): void {
  raise(t, THROW_REF, t.frames.caught[t.frames.count - 1 - label]);
}
