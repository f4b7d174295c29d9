/**
 * The deterministic profile (specification, appendix "Profiles"): removes the choices that the specification leaves to
 * the machine or the compiler. In: the translator's calls in a module compiled to be deterministic. Out: NaNs produced
 * by arithmetic are the positive canonical NaN, or those of a processor (imitated_nans.ts), and the call depth is
 * limited by a count that depends only on the bytes of the bodies.
 *
 * Depth: the thread holds the remaining stack, in units of wasm. A caller stores the amount that it leaves to the
 * callee; the callee subtracts its own share, and traps if too little remains. Nothing needs to be restored, however a
 * call ends; a tail call passes on the amount that its caller received. Inlined bodies subtract their share too. Only
 * functions that can reach a cycle of calls count (counted_functions.ts). The native stack is much larger than these
 * units require.
 *
 * With the stack rule `native` nothing counts. With `logged`, for replays, the units are activations, of all functions;
 * nothing traps by itself, but the activation of depth THREAD.DEPTH_STOP asks the runtime before it has any effect.
 */
import { BUILTIN } from "../abi/builtins.ts";
import { CONTEXT, THREAD } from "../abi/context_layout.ts";
import { CLASS_CONSTANT, REGION, region } from "../ir/regions.ts";
import { OP } from "../ir/ops.ts";
import { NAN32, NAN64_HIGH, SHAPE, TY } from "../ir/types.ts";
import { TRAP } from "../base/traps.ts";
import { branchAhead, joinEdges, jumpAhead } from "./block_parameters.ts";
import { callBuiltin } from "./builtin_calls.ts";
import { ACTIVATION_UNITS, LOCAL_UNITS } from "./counted_functions.ts";
import { MAKES_NAN } from "./imitated_nans.ts";
import type { Translation } from "./translation.ts";
import { MODE } from "../settings/code_mode.ts";

const { F32, I32, I64, NONE, V128 } = TY;
const CONSTANT_CONTEXT = region(REGION.CONTEXT, CLASS_CONSTANT);

/** Canonicalizes NaNs in the top operand, the result of row `id`; see ir/canonical_nan.ts. */
export function canonicalize(t: Translation, id: number): void {
  const { b, f } = t;
  f.canonicalizes = true;
  const value = t.pop();
  const ty = f.ty[value];
  if (ty === V128) {
    const wide = MAKES_NAN[id] === 2;
    const isNan = b.pure(OP.VFNE, V128, value, value, 0, wide ? SHAPE.F64X2 : SHAPE.F32X4);
    const low = wide ? 0 : NAN32, high = wide ? NAN64_HIGH : NAN32;
    const canonical = t.vectorConstant(low, high, low, high);
    t.push(b.pure(OP.VBITSELECT, V128, canonical, value, isNan, 0));
    return;
  }
  const canonical = ty === F32 ? b.constant(ty, NAN32, 0) : b.constant(ty, 0, NAN64_HIGH);
  t.push(b.select(ty, canonical, value, b.binary(OP.FNE, I32, value, value)));
}

/** Whether activations of function `funcIndex`, which the module defines, count. */
function counts(t: Translation, funcIndex: number): boolean {
  return t.env.counted[funcIndex - t.env.importedFuncCount] !== 0;
}

/** Begins an activation: subtracts its share of the stack. */
export function takeDepth(t: Translation, locals: number, inlined: boolean): void {
  const { b, env } = t;
  if (!counts(t, t.funcIndex)) return;
  if (inlined) t.depthReceived = t.depthLeft;
  else {
    t.depthThread = b.emit(OP.LOAD, I64, 0, 0, CONSTANT_CONTEXT, CONTEXT.THREAD);
    t.depthReceived = b.emit(OP.LOAD, I32, t.depthThread, 0, env.depthRegion, THREAD.DEPTH_LEFT);
  }
  if ((env.mode & MODE.LOGGED_STACK) !== 0) {
    t.depthLeft = b.binary(OP.SUB, I32, t.depthReceived, b.i32(1));
    checkStack(t);
    return;
  }
  t.depthLeft = b.binary(OP.SUB, I32, t.depthReceived, b.i32(ACTIVATION_UNITS + locals * LOCAL_UNITS));
  b.trapIf(b.binary(OP.LT_S, I32, t.depthLeft, b.i32(0)), TRAP.STACK_EXHAUSTED);
}

/** Calls the runtime if this activation has the depth at which the recorded run exhausted its stack. */
function checkStack(t: Translation): void {
  const { b, env } = t;
  const stop = b.emit(OP.LOAD, I32, t.depthThread, 0, env.depthRegion, THREAD.DEPTH_STOP);
  const other = branchAhead(t, b.binary(OP.NE, I32, t.depthLeft, stop));
  callBuiltin(t, BUILTIN.check_stack, []);
  joinEdges(t, [other, jumpAhead(t, 0)], NONE);
}

/**
 * Stores the callee's limit before a call: the remaining stack, or for a tail call the amount that this activation
 * received. `callee` is the function index of a direct call, −1 for other calls.
 */
export function leaveDepth(t: Translation, callee: number, tail: boolean): void {
  const { b, env } = t;
  if (!counts(t, callee < 0 ? t.funcIndex : callee)) return;
  b.emit(OP.STORE, NONE, t.depthThread, tail ? t.depthReceived : t.depthLeft, env.depthRegion, THREAD.DEPTH_LEFT);
}
