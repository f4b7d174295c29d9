/**
 * The deterministic profile (specification, appendix "Profiles"): what else would be the machine's or the compiler's choice. In: the
 * translator's calls in a module compiled to be deterministic. Out: NaNs that arithmetic makes are the positive canonical one, and the
 * depth of calls is limited by a count that depends on the bytes of the bodies and on nothing else.
 *
 * Depth: the thread holds how much stack is left, in units of wasm. Who makes a call stores what it leaves to the callee; the callee
 * takes its own share, and traps if there is none. So nothing needs restoring, whichever way a call ends; a tail call leaves what its
 * caller got. Bodies that are inlined take their share like others. The native stack is much larger than these units are.
 */
import { CONTEXT, THREAD } from "../abi/context_layout.ts";
import { CLASS_CONSTANT, REGION, region } from "../ir/function.ts";
import { OP } from "../ir/ops.ts";
import { SHAPE, TY } from "../ir/types.ts";
import { TRAP } from "../traps.ts";
import { OPCODES } from "../wasm/opcodes.ts";
import type { Translation } from "./translation.ts";

const { F32, I32, I64, NONE, V128 } = TY;
const CONSTANT_CONTEXT = region(REGION.CONTEXT, CLASS_CONSTANT);

/** What an activation takes of the stack: so much, and so much for each parameter and local. */
const ACTIVATION_UNITS = 64;
const LOCAL_UNITS = 16;

/** By opcode row: may its result be a NaN that it has made? */
export const MAKES_NAN: Uint8Array = Uint8Array.from(
  OPCODES,
  ({ mnemonic }) =>
    /^(f32|f64|f32x4|f64x2)\.(add|sub|mul|div|min|max|sqrt|ceil|floor|trunc|nearest|demote_\w+|promote_\w+|relaxed_(n?madd|min|max))$/
        .test(mnemonic)
      ? /^f64/.test(mnemonic) ? 2 : 1
      : 0,
);

const CANONICAL_F32 = new Uint8Array(new Uint32Array(4).fill(0x7fc00000).buffer);
const CANONICAL_F64 = new Uint8Array(new BigUint64Array(2).fill(0x7ff8000000000000n).buffer);

/** Makes NaNs in the operand on top, which row `id` has pushed, canonical. */
export function canonicalize(t: Translation, id: number): void {
  const { b, f } = t;
  const value = t.pop();
  const ty = f.ty[value];
  if (ty === V128) {
    const wide = MAKES_NAN[id] === 2;
    const isNan = b.pure(OP.VFNE, V128, value, value, 0, wide ? SHAPE.F64X2 : SHAPE.F32X4);
    const canonical = t.vectorConstant(wide ? CANONICAL_F64 : CANONICAL_F32);
    t.push(b.pure(OP.VBITSELECT, V128, canonical, value, isNan, 0));
    return;
  }
  const canonical = ty === F32 ? b.constant(ty, 0x7fc00000, 0) : b.constant(ty, 0, 0x7ff80000);
  t.push(b.select(ty, canonical, value, b.binary(OP.FNE, I32, value, value)));
}

/** An activation begins: it takes its share of the stack. */
export function takeDepth(t: Translation, locals: number, inlined: boolean): void {
  const { b, env } = t;
  if (inlined) t.depthGot = t.depthLeft;
  else {
    t.depthThread = b.emit(OP.LOAD, I64, 0, 0, CONSTANT_CONTEXT, CONTEXT.THREAD);
    t.depthGot = b.emit(OP.LOAD, I32, t.depthThread, 0, env.depthRegion, THREAD.DEPTH_LEFT);
  }
  t.depthLeft = b.binary(OP.SUB, I32, t.depthGot, b.i32(ACTIVATION_UNITS + locals * LOCAL_UNITS));
  b.trapIf(b.binary(OP.LT_S, I32, t.depthLeft, b.i32(0)), TRAP.STACK_EXHAUSTED);
}

/** A call is about to be made: its callee may use what is left, or for a tail call, what this activation got. */
export function leaveDepth(t: Translation, tail: boolean): void {
  const { b, env } = t;
  b.emit(OP.STORE, NONE, t.depthThread, tail ? t.depthGot : t.depthLeft, env.depthRegion, THREAD.DEPTH_LEFT);
}
