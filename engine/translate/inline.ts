/**
 * Inlining during translation: the callee's bytes are translated into the caller's builder as a nested frame, with its
 * parameters bound to the arguments and `return` a branch to its end. There is no IR to copy and no second code path.
 *
 * In: a direct call with its arguments on the stack. Out: the callee's results on the stack. Instructions keep the
 * callee's byte offsets and name the call as their inline site, so stack traces do not change.
 *
 * Policy: small callees without loops and with few calls, and callees with a single call site; constant arguments raise
 * the size limit; small recursive functions are inlined into themselves, and into each other if two call each other,
 * three levels deep; a call followed by `unreachable` stays a call; growth is bounded per function. Each inlined body
 * is visited as every body is (valid_body.ts).
 */
import type { Translation } from "./translation.ts";
import { BODY } from "../wasm/body_flags.ts";
import { paramCount, resultCount } from "./module_facts.ts";

/** Size limit for callees without loops whose only calls do not return (to throw an exception, for example). */
const LEAF_BYTES = 60;
/** Added to the limit for each constant argument. */
const CONSTANT_BONUS = 40;
/** Size limit for callees with a call that returns: wrappers. */
const WRAPPER_BYTES = 24;
/** Size limit for callees with a single call site. */
const SINGLE_SITE_BYTES = 400;
/** Size limit for recursive functions, into themselves and each other. */
const RECURSIVE_BYTES = 160;
/** The flags of functions that are inlined into themselves and each other alone. */
const RECURSIVE = BODY.SELF_CALL | BODY.MUTUAL_CALL;
/** Nesting of recursive functions: calls dominate the cost of such a function, and each level saves some. */
const RECURSION_DEPTH = 3;
/** Limit on declared locals: a short body can declare thousands, each with a cost at every call site. */
const MAX_LOCALS = 40;
/** Nesting of inlined bodies. */
const MAX_DEPTH = 6;
/** Bytes of bodies that one function may inline: this base plus its own size. */
const GROWTH_BASE = 1200;
/** Functions above this size inline nothing, which would only slow down their compilation. */
const MAX_CALLER_BYTES = 100_000;

const UNREACHABLE_BYTE = 0x00;
const CALL_BYTE = 0x10;

/** The growth allowed for a function body of `bytes` bytes. */
function growthBudget(bytes: number): number {
  return bytes > MAX_CALLER_BYTES ? 0 : GROWTH_BASE + bytes;
}

/** Whether the current instruction, a plain call, is followed by `unreachable`. */
function precedesUnreachable(t: Translation): boolean {
  const { reader } = t;
  t.openBody(t.funcIndex - t.env.importedFuncCount);
  const { bytes } = reader;
  let at = t.b.pos - reader.base;
  if (bytes[at++] !== CALL_BYTE) return false;
  while (at < bytes.length && bytes[at] >= 0x80) at++;
  return at + 1 < bytes.length && bytes[at + 1] === UNREACHABLE_BYTE;
}

/** Whether a call of `funcIndex` in the current body leads back to that body, through small functions alone. */
function isRecursion(t: Translation, funcIndex: number): boolean {
  if (t.funcIndex === funcIndex) return true;
  const { summaries: { flags }, importedFuncCount } = t.env;
  // Two functions of different pairs are taken for one pair, which costs some code.
  return (flags[funcIndex - importedFuncCount] & flags[t.funcIndex - importedFuncCount] & BODY.MUTUAL_CALL) !== 0;
}

/** Decides if the current call, of function `funcIndex` defined in this module, is inlined. */
export function shouldInline(t: Translation, funcIndex: number): boolean {
  const { env } = t;
  if (!env.choices.inline) return false;
  const { summaries, importedFuncCount } = env;
  const defined = funcIndex - importedFuncCount;
  const bytes = summaries.bytes[defined];
  const flags = summaries.flags[defined];
  if ((flags & BODY.EXCEPTIONS) !== 0 || t.inlineDepth >= MAX_DEPTH) return false;
  const recursive = isRecursion(t, funcIndex);
  if (recursive ? t.inlineDepth >= RECURSION_DEPTH : (flags & RECURSIVE) !== 0 || t.chain.includes(funcIndex)) {
    return false;
  }
  if (t.inlineBudget < 0) { // the first call of the function itself
    t.inlineBudget = growthBudget(summaries.bytes[t.funcIndex - importedFuncCount]);
  }
  if (bytes > t.inlineBudget || summaries.locals[defined] > MAX_LOCALS) return false;
  if (recursive) return bytes <= RECURSIVE_BYTES;
  const loops = (flags & BODY.LOOP) !== 0;
  if (loops && !env.choices.inlineLoops) return false;
  let limit = (flags & BODY.RETURNING_CALL) !== 0 ? WRAPPER_BYTES : LEAF_BYTES;
  if (summaries.callSites[defined] === 1 && !loops) limit = SINGLE_SITE_BYTES;
  const params = paramCount(env, funcIndex);
  for (let k = 1; k <= params; k++) if (t.b.isConst(t.stack[t.sp - k])) limit += CONSTANT_BONUS;
  if (bytes > limit || precedesUnreachable(t)) return false;
  if (loops) t.counts.inlinedLoops++;
  return true;
}

/** Translates the body of `funcIndex` in place of its call. */
export function inlineCall(t: Translation, funcIndex: number): void {
  const { env, f, b, loops } = t;
  const defined = funcIndex - env.importedFuncCount;
  t.counts.inlined++;
  t.inlineBudget -= env.summaries.bytes[defined];
  const { charge, price, depthReceived, depthLeft } = t;
  t.charge = 0;
  t.price = 0;
  const { funcIndex: caller, bodyFrame, localBase, localEnd, openLoops, nextLoop, room } = t;
  const { pos, site, depth } = b;
  const records = loops.loopCount;
  f.inlineSites.push({ parent: site, callPos: pos, funcIndex });
  b.site = f.inlineSites.length - 1;
  t.inlineDepth++;
  t.visitBody(defined, t);
  t.inlineDepth--;
  t.depthReceived = depthReceived;
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
  t.reserve(resultCount(env, funcIndex));
  loops.truncate(records);
  b.pos = pos;
  b.site = site;
  b.depth = depth;
}
