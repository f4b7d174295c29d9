/**
 * Inlining while the caller is built: the callee's bytes are walked into the caller's builder as a frame of their own, with
 * its parameters bound to the arguments and `return` a branch to its end. There is no IR to copy and no second code path.
 *
 * In: a direct call with its arguments on the stack. Out: the callee's results on the stack. Instructions keep the callee's
 * byte offsets and carry the call in their inline site, so stack traces stay as they were.
 *
 * Policy: small callees that neither loop nor call much, and callees with one call site; constant arguments make a callee
 * worth more; a small recursive function takes itself in, one level deep; what `unreachable` follows stays a call; growth is bounded
 * per function. A body is walked
 * with its own validation, so nothing unvalidated is ever emitted.
 */
import { validateBody } from "../validate/code.ts";
import type { Translation } from "./translation.ts";
import { BODY, goesNoFurther } from "./summaries.ts";

/** Callees up to this many bytes are inlined when they do not loop, and call only what does not return (to throw an exception, say). */
const LEAF_BYTES = 60;
/** What a constant argument adds to it. */
const CONSTANT_BONUS = 40;
/** Callees that call something that returns: only wrappers. */
const WRAPPER_BYTES = 24;
/** Callees with a single call site. */
const SINGLE_SITE_BYTES = 400;
/** Recursive functions, into themselves. */
const RECURSIVE_BYTES = 160;
/** Locals that a callee may declare: a short body can declare thousands, and each is work at every call site. */
const MAX_LOCALS = 40;
/** Nesting of inlined bodies. */
const MAX_DEPTH = 6;
/** Bytes of bodies that one function may take in: a base, and as much as its own. */
const GROWTH_BASE = 1200;
/** Above this size a function takes nothing in: it would only get slower to compile. */
const MAX_CALLER_BYTES = 100_000;

const CALL_BYTE = 0x10;

/** The growth that function body of `bytes` bytes may have. */
function growthBudget(bytes: number): number {
  return bytes > MAX_CALLER_BYTES ? 0 : GROWTH_BASE + bytes;
}

/** Does `unreachable` follow the instruction in hand, a plain call? */
function isLastCall(t: Translation): boolean {
  const { body } = t.env.valid.funcs[t.funcIndex - t.env.valid.importedFuncCount];
  const { bytes, offset } = body;
  let at = t.b.pos - offset;
  if (bytes[at++] !== CALL_BYTE) return false;
  while (bytes[at++] >= 0x80);
  return goesNoFurther(bytes, at);
}

/** Is the call of `funcIndex` (defined in this module), the instruction in hand, to be replaced by its body? */
export function shouldInline(t: Translation, funcIndex: number): boolean {
  const { env } = t;
  if (!env.optimizations["inline"]) return false;
  const { summaries, valid } = env;
  const defined = funcIndex - valid.importedFuncCount;
  const bytes = summaries.bytes[defined];
  const flags = summaries.flags[defined];
  if ((flags & BODY.EXCEPTIONS) !== 0 || t.inlineDepth >= MAX_DEPTH) return false;
  const recursive = (flags & BODY.SELF_CALL) !== 0;
  // Into itself and no deeper: that halves the calls, which are most of such a function's work.
  if (recursive ? t.inlineDepth > 0 || t.funcIndex !== funcIndex : t.chain.includes(funcIndex)) return false;
  if (t.inlineBudget < 0) { // the first call of the function itself
    t.inlineBudget = growthBudget(summaries.bytes[t.funcIndex - valid.importedFuncCount]);
  }
  if (bytes > t.inlineBudget || summaries.locals[defined] > MAX_LOCALS) return false;
  if (recursive) return bytes <= RECURSIVE_BYTES;
  const loops = (flags & BODY.LOOP) !== 0;
  if (loops && !env.optimizations["inline-loop-callees"]) return false;
  let limit = (flags & BODY.RETURNING_CALL) !== 0 ? WRAPPER_BYTES : LEAF_BYTES;
  if (summaries.callSites[defined] === 1 && !loops) limit = SINGLE_SITE_BYTES;
  const params = valid.funcTypes[funcIndex].params.length;
  for (let k = 1; k <= params; k++) if (t.b.isConst(t.stack[t.sp - k])) limit += CONSTANT_BONUS;
  if (bytes > limit || isLastCall(t)) return false;
  if (loops) env.statistics.count("inline-loop-callees");
  return true;
}

/** Walks the body of `funcIndex` in place of its call. */
export function inlineCall(t: Translation, funcIndex: number): void {
  const { env, f, b, loops } = t;
  env.statistics.count("inline");
  t.inlineBudget -= env.summaries.bytes[funcIndex - env.valid.importedFuncCount];
  const { charge, price, depthGot, depthLeft } = t;
  t.charge = 0;
  t.price = 0;
  const { funcIndex: caller, bodyFrame, localBase, localEnd, openLoops, nextLoop, room } = t;
  const { pos, site, depth } = b;
  const records = loops.loopCount;
  f.inlineSites.push({ parent: site, callPos: pos, funcIndex });
  b.site = f.inlineSites.length - 1;
  t.inlineDepth++;
  validateBody(env.valid, funcIndex, t);
  t.inlineDepth--;
  t.depthGot = depthGot;
  t.depthLeft = depthLeft;
  t.charge = charge;
  t.price = price;
  t.chain.pop();
  t.funcIndex = caller;
  t.bodyFrame = bodyFrame;
  t.localBase = localBase;
  t.localEnd = localEnd;
  t.openLoops = openLoops;
  t.nextLoop = nextLoop;
  t.room = room;
  t.reserve(env.valid.funcTypes[funcIndex].results.length);
  loops.truncate(records);
  b.pos = pos;
  b.site = site;
  b.depth = depth;
}
