/**
 * The instruction of a call that is not inlined, with its results and its landing pad. In: arguments on the
 * translator's stack. Out: one call instruction, followed by RESULT instructions if there are several results; or a
 * TAIL_CALL that ends the block.
 */
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { takePool } from "./block_parameters.ts";
import { returnResults } from "./control.ts";
import { leaveDepth } from "./deterministic.ts";
import { branchOnUnwind } from "./exceptions.ts";
import type { Translation } from "./translation.ts";

const { NONE } = TY;

/** The tail-call form of a call operation. */
function tailOf(op: number): number {
  return op === OP.CALL ? OP.TAIL_CALL : op === OP.CALL_RECORD ? OP.TAIL_CALL_RECORD : OP.TAIL_CALL_IMPORT;
}

/**
 * Emits call `op` of signature `signature` with the arguments on the stack, preceded by `record` unless that is 0, and
 * pushes the results. `c` is column c of the operation.
 */
export function emitCall(
  t: Translation,
  op: number,
  c: number,
  signature: number,
  record: number,
  tail: boolean,
): void {
  const { params, results } = t.env.signatures[signature];
  if (t.deterministic) leaveDepth(t, op === OP.CALL ? t.env.importedFuncCount + c : -1, tail);
  const extra = record !== 0 ? 1 : 0;
  const list = takePool(t, params.length + extra);
  const { pool } = t.f;
  if (record !== 0) pool[list] = record;
  t.sp -= params.length;
  for (let k = 0; k < params.length; k++) pool[list + extra + k] = t.stack[t.sp + k];
  const count = results.length;
  if (tail && t.inlineDepth === 0) {
    t.b.emit(tailOf(op), NONE, list, params.length + extra, c, signature);
    t.keptCalls++;
    t.b.closeBlock();
    t.reachable = false;
    return;
  }
  const call = t.b.emit(op, count === 1 ? results[0] : NONE, list, params.length + extra, c, signature);
  t.keptCalls++;
  if (count === 1) {
    t.stack[t.sp++] = call;
  } else if (count > 1) {
    t.reserve(count);
    for (let k = 0; k < count; k++) t.stack[t.sp++] = t.b.emit(OP.RESULT, results[k], call, 0, 0, k);
  }
  branchOnUnwind(t);
  if (tail) returnResults(t);
}
