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
import { isBelow } from "../base/numbers.ts";
import { CLASS_CONSTANT, REGION, region } from "../ir/regions.ts";
import { CALL_OWN, OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { TRAP } from "../base/traps.ts";
import { typeMatches } from "./casts.ts";
import { returnResults, trapHere } from "./control.ts";
import { emitCall } from "./emit_call.ts";
import { isSubtypeIndex } from "./heap_types.ts";
import { inlineCall, shouldInline } from "./inline.ts";
import { translateStringCall } from "./strings.ts";
import { checkTableIndex, elementAddress } from "./tables.ts";
import type { TableFacts } from "./module_facts.ts";
import type { Translation } from "./translation.ts";

const { I32, I64 } = TY;
const CONSTANT_POINTER = region(REGION.POINTER, CLASS_CONSTANT);

/** `call`, and `return_call` with `tail`. */
export function translateCall(t: Translation, funcIndex: number, tail: boolean): void {
  const { env } = t;
  const signature = env.funcSignature[funcIndex];
  if (funcIndex < env.importedFuncCount) {
    const k = env.stringBuiltin[funcIndex];
    if (tail || k < 0) emitCall(t, OP.CALL_IMPORT, funcIndex, signature, 0, tail);
    else translateStringCall(t, funcIndex, k);
  } else if ((!tail || t.inlineDepth > 0) && shouldInline(t, funcIndex)) {
    inlineCall(t, funcIndex);
    if (tail && t.reachable) returnResults(t);
  } else {
    emitCall(t, OP.CALL, funcIndex - env.importedFuncCount, signature, 0, tail);
  }
}

/** `call_ref` and `return_call_ref`: the operand is null or the address of a record of the right type. */
export function translateCallRef(t: Translation, typeIndex: number, tail: boolean): void {
  const { env, f } = t;
  const record = t.pop();
  if (f.op[record] === OP.CONTEXT) {
    // Only references to functions of this instance are addresses in the context.
    const offset = f.imm[record];
    const funcIndex = offset >= env.functionsOffset
      ? (((offset - env.functionsOffset) / RECORD.SIZE) | 0) + env.importedFuncCount
      : ((offset - env.importsOffset) / RECORD.SIZE) | 0;
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
  facts: TableFacts,
  tail: boolean,
): void {
  const { b, env, f } = t;
  const { content, hasNull, soleFunction } = facts;
  t.counts.knownTables++;
  if (b.isConst(index)) {
    const at = f.imm[index];
    const isInside = isBelow(at, content.length) && (f.ty[index] !== I64 || f.c[index] === 0);
    callKnownElement(t, typeIndex, isInside ? content[at] : NO_ELEMENT, tail);
    return;
  }
  // A function of a subtype matches too, unless the type has no subtypes.
  const isSole = soleFunction.size === 1;
  const typeId = env.canonicalIds[typeIndex];
  const isKnown = (env.typeIsFinal[typeIndex] !== 0 || isSole) && soleFunction.has(typeId);
  const target = isKnown ? soleFunction.get(typeId)! : -1;
  const element = elementAddress(t, table, checkTableIndex(t, table, index, TRAP.UNDEFINED_ELEMENT));
  const record = b.emit(OP.LOAD, I64, element, 0, env.tableRegion[table], 0);
  const untyped = isKnown && isSole && env.choices.untypedTables;
  if (untyped) t.counts.untypedTables++;
  else checkRecordType(t, record, typeIndex);
  if (target < 0) {
    const nullCode = untyped && hasNull ? TRAP.UNINITIALIZED_ELEMENT : 0;
    const known = facts.allDefined && env.choices.ownRecords;
    if (known) t.counts.ownRecords++;
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
  if (func === NO_ELEMENT) trapHere(t, TRAP.UNDEFINED_ELEMENT);
  else if (func < 0) trapHere(t, TRAP.UNINITIALIZED_ELEMENT);
  else if (!isSubtypeIndex(t.env, t.env.funcTypeIndices[func], typeIndex)) {
    trapHere(t, TRAP.INDIRECT_CALL_TYPE);
  } else translateCall(t, func, tail);
}
