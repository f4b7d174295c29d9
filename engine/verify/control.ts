/**
 * Rules for calls, jumps and returns. In: a control instruction. Out: the facts where control continues, or a failure.
 *
 *     function   i32 arguments are zero-extended, the registers of context and memory are the instance's
 *     record     the same with the signature of the tested type; the record's context is the own one, or its context
 *                and memory are in their registers
 *     builtin    by the table of builtins; ranges of copies and fills are proven
 *     parking    a jump with the address of the next instruction on the stack
 *     return     the stack pointer is that of the entry
 *
 * After a call the registers that the callee does not write keep their values. Bases of objects that may move are
 * forgotten, wherever they are.
 */
import { BUILTIN_ROWS, type BuiltinRow } from "../abi/builtins.ts";
import { RECORD } from "../abi/context_layout.ts";
import { STUB } from "../codegen/machine_code.ts";
import { TY, TY_BANK } from "../ir/types.ts";
import { type FuncType, HEAP, type HeapType, isRef, refType, type ValType } from "../wasm/types.ts";
import { type Analysis, FLAGS, REASON } from "./analysis.ts";
import { type CodeMap, STUB_KIND, stubKind } from "./code_map.ts";
import { MAX32, PLACE } from "./facts.ts";
import { setLength, setObject } from "./kind_facts.ts";
import { maskedLimit, memoryLimit } from "./limits.ts";
import { REFERENCE_FACTS, VALUE } from "./value_kinds.ts";
import { allocateSlow, forgetSlots } from "./allocation.ts";
import {
  areCopied,
  areFilled,
  checkReferences,
  isElement,
  isElementRange,
  isOfType,
  passReferences,
} from "./objects.ts";
import { storageMatches } from "./references.ts";
import { isBelow, isGuarded, recordName } from "./memory.ts";

/** Types of parameters and results: lists of TY, and the closed types behind them where they are known. */
interface Types {
  readonly params: Uint8Array;
  readonly results: Uint8Array;
  readonly type?: FuncType;
}

const BUILTIN_SIGNATURES: readonly Types[] = BUILTIN_ROWS.map(({ params, results }) => ({
  params: Uint8Array.from(params),
  results: Uint8Array.from(results),
}));

/** Builtins that write to the table that their first argument names. */
const TABLE_WRITERS: ReadonlySet<string> = new Set(["table_grow", "table_fill", "table_copy", "table_init"]);

/** The table in the first argument is written. */
function noteTable({ facts, machine, writtenTables }: Analysis): void {
  const [first] = machine.parameters;
  if (facts.isConstant(first)) writtenTables[facts.low[first]] = 1;
  else writtenTables.fill(1);
}

/** Whether control continues after a call or jump. */
export const FLOW = { ENDS: 0, CONTINUES: 1 } as const;

/** Facts at the entry of a function with the given parameters. */
export function enterFunction(a: Analysis, { params, type }: Types): void {
  const { facts } = a;
  const { firstSlot } = a.machine;
  facts.reserve(firstSlot);
  facts.count = firstSlot;
  for (let l = 0; l < firstSlot; l++) facts.forget(l);
  a.machine.enter(a);
  a.depth = 0;
  a.fence = -1;
  a.flags = FLAGS.NONE;
  a.ownRecord = 0;
  instanceRegisters(a);
  const { parameters } = a.machine;
  shortValues(a, params, parameters);
  if (type !== undefined) passReferences(a, type.params, params, parameters, () => 0);
}

/** The registers of context and memory are the instance's. */
function instanceRegisters(a: Analysis): void {
  const { facts, machine } = a;
  setObject(facts, machine.context, VALUE.CONTEXT);
  setObject(facts, machine.memoryBase, VALUE.MEMORY);
  if (a.module.code.settings.explicitBounds) {
    setLength(facts, machine.memoryLength, memoryLimit(0), Infinity, 0);
  }
}

/** Registers of i32 values in `types` are zero-extended. */
function shortValues(a: Analysis, types: Uint8Array, registers: readonly number[]): void {
  let next = 0;
  for (const type of types) {
    if (TY_BANK[type] !== 1) continue;
    const r = registers[next++];
    if (r === undefined) return;
    a.facts.number(r, 0, type === TY.I32 ? MAX32 : Infinity, 0);
    // There are no more results in registers than an instruction has names; parameters get names of the first block.
    if (registers === a.machine.results) a.facts.name[r] = a.name(next - 1);
  }
}

/** Fails unless the registers of i32 values in `types` are zero-extended. */
function checkShort(a: Analysis, types: Uint8Array, registers: readonly number[]): void {
  let next = 0;
  for (const type of types) {
    if (TY_BANK[type] !== 1) continue;
    const r = registers[next++];
    if (r === undefined) return;
    if (type === TY.I32 && !a.facts.isShort(r)) return a.fail(REASON.ARGUMENT);
  }
}

/** The same, and for references: fails unless they have the given types. */
function checkValues(
  a: Analysis,
  tys: Uint8Array,
  types: readonly ValType[] | undefined,
  registers: readonly number[],
): void {
  checkShort(a, tys, registers);
  if (types !== undefined) checkReferences(a, types, tys, registers);
}

/** Whether the registers of context and memory are those of the instance. */
function hasInstanceRegisters(a: Analysis): boolean {
  const { facts, machine: { context, memoryBase, memoryLength } } = a;
  if (!facts.isStart(context, VALUE.CONTEXT, 0) || !facts.isStart(memoryBase, VALUE.MEMORY, 0)) return false;
  if (!a.module.code.settings.explicitBounds) return true;
  return facts.kind[memoryLength] === VALUE.LENGTH && facts.lengthLimit[memoryLength] === memoryLimit(0);
}

/** The current instruction leaves the function. */
export function leave(a: Analysis, { results, type }: Types): void {
  if (a.depth !== 0) a.fail(REASON.STACK_POINTER);
  a.machine.checkReturn(a);
  if (!hasInstanceRegisters(a)) a.fail(REASON.CONTEXT_LOST);
  checkValues(a, results, type?.results, a.machine.results);
}

/** Fails unless a trap can find the instance, through the register of the context, and walk the stack. */
export function checkTrap(a: Analysis): void {
  a.requireContext();
  a.machine.checkSavedReturn(a);
}

/** CALL of an address in the image. `masks`: registers that functions write. */
export function call(a: Analysis, map: CodeMap, masks: Int32Array, target: number): number {
  const { module } = a;
  const callee = map.functionAt(target);
  if (callee >= 0) {
    const types = module.functionSignature[callee + module.importedFunctions];
    if (types === undefined) return fail(a, REASON.CALL_TARGET);
    if (!hasInstanceRegisters(a)) a.fail(REASON.CONTEXT_LOST);
    if (a.fence < 0) a.fail(REASON.STACK_DEPTH);
    checkValues(a, types.params, types.type?.params, a.machine.parameters);
    return returned(a, map, masks[callee], types, false);
  }
  const stub = map.stubAt(target);
  switch (stub < 0 ? STUB_KIND.NONE : stubKind(stub)) {
    case STUB_KIND.TRAP:
      if (!map.isTrapSite(a.code.at[a.n + 1])) a.fail(REASON.TRAP_SITE);
      checkTrap(a);
      return FLOW.ENDS;
    case STUB_KIND.ALLOCATE:
      return allocated(a, map);
    case STUB_KIND.BUILTIN:
      return callNative(a, map, stub - STUB.BUILTIN);
  }
  return fail(a, REASON.CALL_TARGET);
}

function fail(a: Analysis, reason: string): number {
  a.fail(reason);
  return FLOW.ENDS;
}

function allocated(a: Analysis, map: CodeMap): number {
  if (!hasInstanceRegisters(a)) a.fail(REASON.CONTEXT_LOST);
  const become = allocateSlow(a, a.machine.scratch);
  // A collection moves neither memories nor tables.
  continued(a, map, a.machine.allocateWrites, false);
  become();
  return FLOW.CONTINUES;
}

function callNative(a: Analysis, map: CodeMap, builtin: number): number {
  const row = BUILTIN_ROWS[builtin];
  if (row === undefined || !row.native) return fail(a, REASON.CALL_TARGET);
  if (!isProvenRange(a, row.name)) a.fail(REASON.BULK);
  // The routine neither reads nor writes the registers of context and memory.
  continued(a, map, a.machine.nativeWrites, false);
  return FLOW.CONTINUES;
}

/** Whether the ranges of a native copy or fill are inside of their memories. */
function isProvenRange(a: Analysis, name: string): boolean {
  const count = 2;
  const ranges = name === "memory_move" ? [0, 1] : name === "memory_set" ? [0] : [];
  if (ranges.some((register) => a.facts.kind[register] === VALUE.ELEMENT)) {
    if (!(name === "memory_move" ? areCopied(a, 0, 1) : areFilled(a, 0))) return false;
  }
  return ranges.length > 0 && ranges.every((register) => isRange(a, register, count));
}

/** Whether [register, register + count) is inside of the register's memory. */
function isRange(a: Analysis, register: number, count: number): boolean {
  const { facts, module, ranges } = a;
  if (!facts.isNumber(count)) return false;
  if (facts.kind[register] === VALUE.ELEMENT) return isElementRange(a, register, count);
  if (facts.kind[register] !== VALUE.MEMORY || facts.low[register] < 0) return false;
  const m = facts.index[register];
  const last = facts.high[register] + facts.high[count], limit = memoryLimit(m);
  if (last <= module.memoryBytes[m] || isBelow(facts, last, limit)) return true;
  // Routines are not masked.
  if (maskedLimit(facts.of[register]) === limit && facts.room[register] >= facts.high[count]) return true;
  const isFixed = facts.low[register] === facts.high[register];
  if (isFixed && maskedLimit(facts.of[count]) === limit && facts.room[count] >= facts.low[register]) return true;
  return ranges.holds(facts, register, count, limit);
}

/** Whether references among the arguments of a builtin, and those that it copies, have the types that it takes. */
function areBuiltinReferences(a: Analysis, name: string): boolean {
  const { facts, machine, module } = a;
  const [first, second, third] = machine.parameters;
  const index = facts.isConstant(first) ? facts.low[first] : -1;
  const source = facts.isConstant(second) ? facts.low[second] : -1;
  const table = module.tableElement[index], segment = module.segmentElement[source];
  const array: HeapType | undefined = module.typeId[index];
  switch (name) {
    case "table_grow":
      return table !== undefined && isOfType(a, second, table);
    case "table_fill":
      return table !== undefined && isOfType(a, third, table);
    case "table_copy":
      return isSubtype(module.tableElement[source], table);
    case "table_init":
      return isSubtype(segment, table);
    case "throw_ref":
      return isOfType(a, first, refType(true, HEAP.exn));
    case "throw":
      return isPayload(a, module.tagPayload[index]);
    case "array_new_data":
      return isElement(array, undefined, true);
    case "array_new_elem":
      return segment !== undefined && isElement(array, segment, true);
    case "array_init_data":
      return isElement(array, undefined, false) && isOfType(a, third, refType(true, array));
    case "array_init_elem":
      return segment !== undefined && isElement(array, segment, false) && isOfType(a, third, refType(true, array));
  }
  return true;
}

function isSubtype(from: ValType | undefined, to: ValType | undefined): boolean {
  return from !== undefined && to !== undefined && storageMatches(from, to);
}

function isPayload(a: Analysis, types: readonly ValType[] | undefined): boolean {
  return types !== undefined &&
    types.every((type, k) => !isRef(type) || (a.overflowSlot(k) > 0 && isOfType(a, a.overflowSlot(k), type)));
}

/** The type of the reference that a builtin returns. */
function builtinResult({ facts, machine, module }: Analysis, builtin: number): Pick<Types, "type"> {
  const { name } = BUILTIN_ROWS[builtin];
  const [first] = machine.parameters;
  if (name === "caught") return { type: { kind: "func", params: [], results: [refType(false, HEAP.exn)] } };
  if (name !== "array_new_data" && name !== "array_new_elem") return {};
  if (!facts.isConstant(first)) return {};
  return { type: { kind: "func", params: [], results: [refType(false, module.typeId[facts.low[first]])] } };
}

/** JMP to an address outside of the function. */
export function jumpAway(a: Analysis, map: CodeMap, target: number, own: Types): number {
  const { module } = a;
  const callee = map.functionAt(target);
  if (callee >= 0) {
    const types = module.functionSignature[callee + module.importedFunctions];
    if (types === undefined) return fail(a, REASON.CALL_TARGET);
    return tailCall(a, types, own);
  }
  const stub = map.stubAt(target);
  const builtin = stub - STUB.BUILTIN;
  if (stub < 0 || stubKind(stub) !== STUB_KIND.BUILTIN || BUILTIN_ROWS[builtin]?.native !== false) {
    return fail(a, REASON.CALL_TARGET);
  }
  if (!a.machine.popReturn(a)) return fail(a, REASON.CALL_TARGET);
  if (!hasInstanceRegisters(a)) a.fail(REASON.CONTEXT_LOST);
  const row: BuiltinRow = BUILTIN_ROWS[builtin];
  // Values pass between computations in the overflow buffer, by the types of tags.
  if (row.continuations === true) a.fail(REASON.CONTINUATION);
  const { params, results } = BUILTIN_SIGNATURES[builtin];
  checkValues(a, params, undefined, a.machine.parameters);
  if (!areBuiltinReferences(a, BUILTIN_ROWS[builtin].name)) return fail(a, REASON.REFERENCE);
  if (TABLE_WRITERS.has(BUILTIN_ROWS[builtin].name)) noteTable(a);
  return returned(a, map, a.machine.allWritten, { params, results, ...builtinResult(a, builtin) }, false);
}

/** A tail call within the instance: the callee must have the function's result types. */
function tailCall(a: Analysis, types: Types, own: Types): number {
  if (a.depth !== 0) a.fail(REASON.STACK_POINTER);
  a.machine.checkReturn(a);
  if (!hasInstanceRegisters(a)) a.fail(REASON.CONTEXT_LOST);
  if (!returnsFor(types, own)) a.fail(REASON.CALL_TARGET);
  checkValues(a, types.params, types.type?.params, a.machine.parameters);
  return FLOW.ENDS;
}

/** Whether all results of a callee are results of the function that it is called in place of. */
function returnsFor({ type }: Types, { type: own }: Types): boolean {
  if (type === undefined || own === undefined || type.results.length !== own.results.length) return false;
  return type.results.every((result, k) => isSubtype(result, own.results[k]));
}

/** The function record through which the current instruction calls: its types, or undefined after a failure. */
function recordTypes(a: Analysis): Types | undefined {
  const { facts, machine: { record } } = a;
  if (!a.machine.targetsRecord(a)) return undefined;
  if (facts.kind[record] === VALUE.REFERENCE) return a.functionType(facts.heap[record]);
  if (facts.kind[record] !== VALUE.CONTEXT || facts.low[record] !== facts.high[record]) return undefined;
  return contextRecordTypes(a, facts.low[record]);
}

/** Types of the record at distance `at` of the context: that of an import, of a function or of a string builtin. */
function contextRecordTypes({ module }: Analysis, at: number): Types | undefined {
  const { layout } = module.code;
  const index = (at - layout.importsOffset) / RECORD.SIZE;
  if (!Number.isInteger(index) || index < 0 || at >= layout.typeIdsOffset) return undefined;
  return module.functionSignature[index];
}

/** The name by which facts refer to the record in the record register. */
export function nameOfRecord({ facts, machine: { record }, module }: Analysis): number {
  if (facts.kind[record] !== VALUE.CONTEXT) return facts.name[record];
  return recordName(facts.low[record] - module.code.layout.importsOffset);
}

/** Whether the record belongs to this instance, and the registers of context and memory are the instance's. */
function isOwnCall(a: Analysis): boolean {
  const { facts, machine: { record } } = a;
  const isOwn = facts.kind[record] === VALUE.REFERENCE
    ? (facts.known[record] & REFERENCE_FACTS.OWN) !== 0
    : a.ownRecord === nameOfRecord(a);
  return isOwn && hasInstanceRegisters(a);
}

/** Whether the registers of context and memory are those of the record. */
function isOtherCall(a: Analysis): boolean {
  const { facts, machine: { context, memoryBase, memoryLength } } = a;
  const name = nameOfRecord(a);
  return name !== 0 && facts.isStart(context, VALUE.RECORD_CONTEXT, name) &&
    facts.isStart(memoryBase, VALUE.RECORD_MEMORY, name) && facts.isStart(memoryLength, VALUE.RECORD_LENGTH, name);
}

/** CALL through a function record. */
export function callRecord(a: Analysis, map: CodeMap): number {
  const types = recordTypes(a);
  if (types === undefined) return fail(a, REASON.CALL_TARGET);
  const isOther = isOtherCall(a);
  if (!isOther && !isOwnCall(a)) a.fail(REASON.CONTEXT_LOST);
  if (a.fence < 0) a.fail(REASON.STACK_DEPTH);
  checkValues(a, types.params, types.type?.params, a.machine.parameters);
  return returned(a, map, a.machine.allWritten, types, isOther);
}

/** JMP through a function record: a call with the return address on the stack, or a tail call. */
export function jumpRecord(a: Analysis, map: CodeMap, own: Types): number {
  const types = recordTypes(a);
  if (types === undefined) return fail(a, REASON.CALL_TARGET);
  checkValues(a, types.params, types.type?.params, a.machine.parameters);
  if (isOtherCall(a)) return tailCallOther(a, types, own);
  if (!isOwnCall(a)) a.fail(REASON.CONTEXT_LOST);
  if (a.depth === 0) return tailCall(a, types, own);
  if (!a.machine.popReturn(a)) return fail(a, REASON.CALL_TARGET);
  return returned(a, map, a.machine.allWritten, types, false);
}

/**
 * A tail call into another instance: the frame is gone, and the stub's address and the context were pushed. Where the
 * return address is that of the stub already, they count as pushed (conditions.ts).
 */
function tailCallOther(a: Analysis, types: Types, own: Types): number {
  if (!returnsFor(types, own)) a.fail(REASON.CALL_TARGET);
  if (!a.machine.hasTailFrame(a)) a.fail(REASON.STACK_POINTER);
  return FLOW.ENDS;
}

/** Facts after a call during which memories and tables may move. */
function returned(a: Analysis, map: CodeMap, mask: number, { results, type }: Types, isOther: boolean): number {
  const { facts } = a;
  for (let l = 0; l < facts.count; l++) {
    const kind = facts.kind[l];
    const moves = (kind === VALUE.TABLE && !a.isTableFixed(facts.index[l])) ||
      (kind === VALUE.MEMORY && !isGuarded(a, facts.index[l])) || kind === VALUE.RECORD_MEMORY;
    if (moves) facts.forget(l);
  }
  continued(a, map, mask, isOther);
  if (!isOther) instanceRegisters(a);
  const places = a.machine.results;
  shortValues(a, results, places);
  if (type !== undefined) passReferences(a, type.results, results, places, (r) => a.name(places.indexOf(r)));
  return FLOW.CONTINUES;
}

/** Facts after a call that wrote the registers `mask`. `isOther`: of another instance, whose context stays in place. */
function continued(a: Analysis, map: CodeMap, mask: number, isOther: boolean): void {
  const { facts } = a;
  checkSite(a, map, isOther);
  a.flags = FLAGS.NONE;
  a.ownRecord = 0;
  a.forgetOverflow();
  forgetSlots(a);
  const { link, locations } = a.machine;
  if (link >= 0) facts.forget(link);
  for (let r = 0; r < locations.length; r++) if (((mask >> r) & 1) !== 0) facts.forget(locations[r]);
}

/** Fails unless the call is listed with the depth of the stack. */
function checkSite(a: Analysis, map: CodeMap, isOther: boolean): void {
  const { tables } = a.module;
  const row = map.callSite(a.code.at[a.n + 1]);
  a.machine.checkSavedReturn(a);
  if (row < 0 || tables.callFrame[row] !== a.depth - a.machine.siteBytes || (tables.callCross[row] !== 0) !== isOther) {
    a.fail(REASON.CALL_SITE);
  }
}

/** Facts at the landing pad of the call that was just interpreted. */
export function land(a: Analysis, isOther: boolean): void {
  for (const l of a.machine.locations) a.facts.forget(l);
  instanceRegisters(a);
  a.forgetOverflow();
  a.facts.number(PLACE.PAYLOAD, 1, 1, 0);
  if (isOther) a.moveStack(-8);
}
