/**
 * Calls of runtime routines (abi/builtins.ts). In: the number of a routine and its arguments, as values or on the
 * translator's stack. Out: one CALL_BUILTIN.
 */
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { takePool } from "./block_parameters.ts";
import type { Translation } from "./translation.ts";

/** Calls routine `number` (BUILTIN). Returns its result, or 0. */
export function callBuiltin(t: Translation, number: number, args: readonly number[]): number {
  const { env, b } = t;
  const list = takePool(t, args.length);
  t.keptCalls++;
  for (let k = 0; k < args.length; k++) t.f.pool[list + k] = args[k];
  const signature = env.builtinSignature[number];
  const { results } = env.signatures[signature];
  const ty = results.length === 1 ? results[0] : TY.NONE;
  return b.emit(OP.CALL_BUILTIN, ty, list, args.length, number, signature);
}

/**
 * Calls routine `number`, which copies a range between two objects of the instance, given by their indices; pops the
 * target's start, the source's start and the length.
 */
export function callRangeCopy(t: Translation, number: number, target: number, source: number): void {
  const count = t.wide(t.pop());
  const from = t.wide(t.pop());
  const to = t.wide(t.pop());
  callBuiltin(t, number, [t.b.i32(target), t.b.i32(source), to, from, count]);
}
