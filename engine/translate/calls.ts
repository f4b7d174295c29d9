/**
 * Calls (specification, 4.4.8.9 ff.): direct, to imports, through tables and through references, each also as a tail
 * call. In: arguments on the translator's stack. Out: one call instruction, followed by RESULT instructions if there
 * are several results; or the callee's body, if inline.ts accepts the callee; or a TAIL_CALL that ends the block.
 *
 * A tail call in an inlined body is a call and a branch to the body's end, since there is no frame to replace.
 *
 * A call through a table checks in the specification's order: the index against the table's length (undefined element),
 * the element against null (uninitialized element: reading the type id of the record at address 0 faults), the
 * element's type against the expected canonical id (indirect call type mismatch).
 */
import { RECORD } from "../abi/context_layout.ts";
import { CLASS_CONSTANT, REGION, region } from "../ir/function.ts";
import { CALL_OWN, OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { TRAP } from "../base/traps.ts";
import { isSubtypeId } from "../wasm/subtype.ts";
import { typeMatches } from "./casts.ts";
import { returnResults, trapHere } from "./control.ts";
import { leaveDepth } from "./deterministic.ts";
import { branchOnUnwind } from "./exceptions.ts";
import type { Translation } from "./translation.ts";
import { inlineCall, shouldInline } from "./inline.ts";
import { takePool } from "./block_parameters.ts";
import { translateStringCall } from "./strings.ts";
import { checkTableIndex, elementAddress } from "./tables.ts";
import type { TableFacts } from "./table_facts.ts";

const { I32, I64, NONE } = TY;
const CONSTANT_POINTER = region(REGION.POINTER, CLASS_CONSTANT);

/** The tail-call form of a call operation. */
function tailOf(op: number): number {
  return op === OP.CALL ? OP.TAIL_CALL : op === OP.CALL_RECORD ? OP.TAIL_CALL_RECORD : OP.TAIL_CALL_IMPORT;
}

/**
 * Emits call `op` of signature `signature` with the arguments on the stack, preceded by `record` unless that is 0, and
 * pushes the results. `c` is column c of the operation.
 */
function emitCall(
  t: Translation,
  op: number,
  c: number,
  signature: number,
  record: number,
  tail: boolean,
): void {
  const { params, results } = t.env.signatures[signature];
  if (t.deterministic) leaveDepth(t, op === OP.CALL ? t.env.valid.importedFuncCount + c : -1, tail);
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

/** `call`, and `return_call` with `tail`. */
export function translateCall(t: Translation, funcIndex: number, tail: boolean): void {
  const { env } = t;
  const signature = env.funcSignature[funcIndex];
  if (funcIndex < env.valid.importedFuncCount) {
    const call = (index: number) => emitCall(t, OP.CALL_IMPORT, index, signature, 0, false);
    if (tail || !translateStringCall(t, funcIndex, call)) emitCall(t, OP.CALL_IMPORT, funcIndex, signature, 0, tail);
  } else if ((!tail || t.inlineDepth > 0) && shouldInline(t, funcIndex)) {
    inlineCall(t, funcIndex);
    if (tail && t.reachable) returnResults(t);
  } else {
    emitCall(t, OP.CALL, funcIndex - env.valid.importedFuncCount, signature, 0, tail);
  }
}

/** `call_ref` and `return_call_ref`: the operand is null or the address of a record of the right type. */
export function translateCallRef(t: Translation, typeIndex: number, tail: boolean): void {
  const { env, f } = t;
  const record = t.pop();
  const { layout } = env;
  if (f.op[record] === OP.CONTEXT) {
    // Only references to functions of this instance are addresses in the context.
    const defined = (f.imm[record] - layout.functionsOffset) / RECORD.SIZE;
    const imported = (f.imm[record] - layout.importsOffset) / RECORD.SIZE;
    const funcIndex = defined >= 0 ? defined + env.valid.importedFuncCount : imported;
    // If the signatures differ, an earlier cast has trapped: the call below is unreachable.
    if (env.funcSignature[funcIndex] === env.typeSignature[typeIndex]) {
      translateCall(t, funcIndex, tail);
      return;
    }
  }
  emitCall(t, OP.CALL_RECORD, TRAP.NULL_FUNCTION, env.typeSignature[typeIndex], record, tail);
}

/** `call_indirect`, `return_call_indirect` */
export function translateCallIndirect(t: Translation, typeIndex: number, table: number, tail: boolean): void {
  const { b, env } = t;
  const index = t.pop();
  const facts = env.tableFacts[table];
  if (facts !== undefined) {
    callKnownTable(t, typeIndex, table, index, facts, tail);
    return;
  }
  const element = elementAddress(t, table, checkTableIndex(t, table, index, TRAP.UNDEFINED_ELEMENT));
  const record = b.emit(OP.LOAD, I64, element, 0, env.tableRegion[table], 0);
  checkRecordType(t, record, typeIndex);
  emitCall(t, OP.CALL_RECORD, 0, env.typeSignature[typeIndex], record, tail);
}

/** Traps unless the record is not null and of type `typeIndex`. */
function checkRecordType(t: Translation, record: number, typeIndex: number): void {
  const { b } = t;
  const actual = b.emit(OP.LOAD, I32, record, TRAP.UNINITIALIZED_ELEMENT, CONSTANT_POINTER, RECORD.TYPE_ID);
  b.trapIf(typeMatches(t, actual, typeIndex, OP.NE), TRAP.INDIRECT_CALL_TYPE);
}

/**
 * A call through a table of known content: the same traps with fewer checks, and a direct call if only one function
 * matches.
 */
function callKnownTable(
  t: Translation,
  typeIndex: number,
  table: number,
  index: number,
  { content, hasNull, allDefined, soleFunction }: TableFacts,
  tail: boolean,
): void {
  const { b, env, f } = t;
  env.statistics.count("immutable-table");
  if (b.isConst(index)) {
    const at = (f.imm[index] >>> 0) + (f.ty[index] === I64 ? f.c[index] >>> 0 : 0) * 2 ** 32;
    callKnownElement(t, typeIndex, at < content.length ? content[at] : NO_ELEMENT, tail);
    return;
  }
  // A function of a subtype matches too, unless the type has no subtypes.
  const exact = env.valid.types[typeIndex].final || soleFunction.size === 1;
  const target = exact ? soleFunction.get(env.valid.canonicalIds[typeIndex]) : undefined;
  const element = elementAddress(t, table, checkTableIndex(t, table, index, TRAP.UNDEFINED_ELEMENT));
  const record = b.emit(OP.LOAD, I64, element, 0, env.tableRegion[table], 0);
  const untyped = target !== undefined && soleFunction.size === 1 && env.optimizations["immutable-table-type"];
  if (untyped) env.statistics.count("immutable-table-type");
  else checkRecordType(t, record, typeIndex);
  if (target === undefined || target < 0) {
    const nullCode = untyped && hasNull ? TRAP.UNINITIALIZED_ELEMENT : 0;
    const known = allDefined && env.optimizations["immutable-poly-fastpath"];
    if (known) env.statistics.count("immutable-poly-fastpath");
    emitCall(t, OP.CALL_RECORD, known ? nullCode | CALL_OWN : nullCode, env.typeSignature[typeIndex], record, tail);
    return;
  }
  if (untyped && hasNull) b.trapIf(b.binary(OP.EQ, I32, record, b.i64(0, 0)), TRAP.UNINITIALIZED_ELEMENT);
  translateCall(t, target, tail);
}

/** For {@linkcode callKnownElement}: the index is out of bounds. */
const NO_ELEMENT = -2;

/** Calls function `func`, −1 for null, with expected type `typeIndex`. */
function callKnownElement(t: Translation, typeIndex: number, func: number, tail: boolean): void {
  const { canonicalIds, funcTypeIndices } = t.env.valid;
  if (func === NO_ELEMENT) trapHere(t, TRAP.UNDEFINED_ELEMENT);
  else if (func < 0) trapHere(t, TRAP.UNINITIALIZED_ELEMENT);
  else if (!isSubtypeId(canonicalIds[funcTypeIndices[func]], canonicalIds[typeIndex])) {
    trapHere(t, TRAP.INDIRECT_CALL_TYPE);
  } else translateCall(t, func, tail);
}
