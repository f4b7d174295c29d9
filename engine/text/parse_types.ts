/**
 * Types of the text format. In: tokens. Out: the packed types of wasm/types.ts (specification, 6.4).
 *
 * Relies on a context with all type identifiers bound. Establishes: a heap type that is an index fits the packing of
 * wasm/types.ts; validation checks that the index exists.
 */
import { exactHeap } from "../wasm/exact_heap.ts";
import {
  type CompositeType,
  F32,
  F64,
  type FieldType,
  type FuncType,
  type GlobalType,
  HEAP,
  type HeapType,
  I16,
  I32,
  I64,
  I8,
  type Limits,
  type MemoryType,
  REF_SHORTHANDS,
  refType,
  type SubType,
  type TableType,
  V128,
  type ValType,
} from "../wasm/types.ts";
import { K } from "./keywords.ts";
import { ModuleContext } from "./module_context.ts";
import type { Scope } from "./scopes.ts";
import { NO_SYMBOL } from "./symbols.ts";
import { ID, KEYWORD, NAT } from "./tokens.ts";

/** Type indices above this do not fit a packed reference type. No valid module has as many types. */
const TYPE_INDEX_LIMIT = 0xffff00;

const NUM_TYPES: ReadonlyMap<number, ValType> = new Map([
  [K.i32, I32],
  [K.i64, I64],
  [K.f32, F32],
  [K.f64, F64],
  [K.v128, V128],
  ...[...REF_SHORTHANDS].map(([heap, name]) => [K[name as keyof typeof K], refType(true, heap)] as [number, ValType]),
]);

const HEAP_TYPES: ReadonlyMap<number, HeapType> = new Map(
  Object.entries(HEAP).map(([name, heap]) => [K[name as keyof typeof K], heap]),
);

/** Parses a heap type: a keyword, a type index, or `(exact …)` with a type index. */
export function parseHeapType(context: ModuleContext): HeapType {
  const cursor = context.cursor;
  if (cursor.takeOpen(K.exact)) {
    if (!context.hasIndex()) return cursor.unexpected();
    const index = parseTypeIndex(context);
    cursor.expectClose();
    return exactHeap(index);
  }
  if (context.hasIndex()) return parseTypeIndex(context);
  const heap = cursor.kind === KEYWORD ? HEAP_TYPES.get(cursor.values[cursor.at]) : undefined;
  if (heap === undefined) return cursor.unexpected();
  cursor.at++;
  return heap;
}

/** Parses a type index that fits a packed reference type. */
function parseTypeIndex(context: ModuleContext): number {
  const { cursor } = context;
  const token = cursor.at;
  const index = context.index(context.types);
  if (index > TYPE_INDEX_LIMIT) cursor.invalid(`unknown type ${index}`, token);
  return index;
}

/** True at a reference type: a shorthand or `(ref …)`. */
export function isRefType(context: ModuleContext): boolean {
  const cursor = context.cursor;
  if (cursor.isOpen(K.ref)) return true;
  return cursor.kind === KEYWORD && NUM_TYPES.has(cursor.values[cursor.at]) &&
    NUM_TYPES.get(cursor.values[cursor.at])! > I32;
}

/** Parses a reference type. */
export function parseRefType(context: ModuleContext): ValType {
  if (!isRefType(context)) context.cursor.unexpected();
  return parseValType(context);
}

/** Parses a value type. */
function parseValType(context: ModuleContext): ValType {
  const cursor = context.cursor;
  if (cursor.kind === KEYWORD) {
    const type = NUM_TYPES.get(cursor.values[cursor.at]);
    if (type === undefined) return cursor.unexpected();
    cursor.at++;
    return type;
  }
  cursor.expectOpen(K.ref);
  const nullable = cursor.takeKeyword(K.null);
  const heap = parseHeapType(context);
  cursor.expectClose();
  return refType(nullable, heap);
}

/** The treatment of parameter identifiers: they bind locals, are ignored (in type definitions), or are an error. */
type ParamNames = { scope: Scope; names: Map<number, string> } | "ignored" | "forbidden";

/** Parses the groups `(param …)`, `(result …)` or `(local …)` that follow and appends their types to `types`. */
export function parseTypeGroups(context: ModuleContext, keyword: number, types: ValType[], names: ParamNames): void {
  const cursor = context.cursor;
  const binds = typeof names === "object";
  while (cursor.takeOpen(keyword)) {
    if (names !== "forbidden" && (cursor.kind === ID || cursor.isNameAnnotation())) {
      if (binds) context.bind(names.scope, names.names);
      else context.skipBinder();
      types.push(parseValType(context));
      cursor.expectClose();
      continue;
    }
    while (!cursor.takeClose()) {
      types.push(parseValType(context));
      if (binds) names.scope.declare(NO_SYMBOL);
    }
  }
}

/** Parses `(param …)* (result …)*`. */
export function parseFuncType(context: ModuleContext, names: ParamNames): FuncType {
  const type: FuncType = { kind: "func", params: [], results: [] };
  parseTypeGroups(context, K.param, type.params, names);
  parseTypeGroups(context, K.result, type.results, "forbidden");
  return type;
}

/** Parses a type use; returns its type index. One without `(type …)` finds or adds the function type. */
export function parseTypeUse(context: ModuleContext, names: ParamNames): number {
  const cursor = context.cursor;
  const token = cursor.at;
  if (!cursor.takeOpen(K.type)) {
    const type = parseFuncType(context, names);
    return context.funcTypeIndex(type.params, type.results);
  }
  const index = context.index(context.types);
  cursor.expectClose();
  const inline = parseFuncType(context, names);
  if (cursor.isOpen(K.param) || cursor.isOpen(K.type)) cursor.unexpected();
  if (inline.params.length + inline.results.length > 0) context.checkInlineType(index, inline, token);
  else if (typeof names === "object") names.scope.count += context.funcTypeAt(index)?.params.length ?? 0;
  return index;
}

/** Parses a field's type: a value or packed type, optionally in `(mut …)`. */
function parseFieldType(context: ModuleContext): FieldType {
  const cursor = context.cursor;
  const mutable = cursor.takeOpen(K.mut);
  const storage = cursor.takeKeyword(K.i8) ? I8 : cursor.takeKeyword(K.i16) ? I16 : parseValType(context);
  if (mutable) cursor.expectClose();
  return { storage, mutable };
}

/** Parses the fields of structure type `index`. */
function parseFields(context: ModuleContext, index: number): FieldType[] {
  const cursor = context.cursor;
  const fields: FieldType[] = [];
  const symbols = new Map<number, number>();
  const names = new Map<number, string>();
  while (cursor.takeOpen(K.field)) {
    if (cursor.kind === ID || cursor.isNameAnnotation()) {
      const token = cursor.at;
      const symbol = cursor.takeId();
      if (symbols.has(symbol)) cursor.fail(`duplicate field ${cursor.tokens.textOf(token)}`, token);
      if (symbol !== NO_SYMBOL) symbols.set(symbol, fields.length);
      names.set(fields.length, cursor.takeNameAnnotation() ?? context.textOf(symbol)!);
      fields.push(parseFieldType(context));
      cursor.expectClose();
      continue;
    }
    while (!cursor.takeClose()) fields.push(parseFieldType(context));
  }
  if (symbols.size > 0) context.fields.set(index, symbols);
  if (names.size > 0) context.names.fields.set(index, names);
  return fields;
}

/** Parses `(func …)`, `(struct …)`, `(array …)` or `(cont …)` as the definition of type `index`. */
function parseCompositeType(context: ModuleContext, index: number): CompositeType {
  const cursor = context.cursor;
  let type: CompositeType;
  if (cursor.takeOpen(K.struct)) {
    type = { kind: "struct", fields: parseFields(context, index) };
  } else if (cursor.takeOpen(K.array)) {
    type = { kind: "array", field: parseFieldType(context) };
  } else if (cursor.takeOpen(K.cont)) {
    type = { kind: "cont", func: context.index(context.types) };
  } else {
    cursor.expectOpen(K.func);
    type = parseFuncType(context, "ignored");
  }
  cursor.expectClose();
  return type;
}

/** Parses a composite type with the clauses before it, as the definition of type `index`. */
function parseDescribedType(
  context: ModuleContext,
  index: number,
): Pick<SubType, "describes" | "descriptor" | "composite"> {
  const describes = parseClause(context, K.describes);
  const descriptor = parseClause(context, K.descriptor);
  return {
    ...(describes === undefined ? {} : { describes }),
    ...(descriptor === undefined ? {} : { descriptor }),
    composite: parseCompositeType(context, index),
  };
}

/** Parses the type index of a clause `(keyword …)`, if it is there. */
function parseClause(context: ModuleContext, keyword: number): number | undefined {
  if (!context.cursor.takeOpen(keyword)) return undefined;
  const index = context.index(context.types);
  context.cursor.expectClose();
  return index;
}

/** Parses the rest of `(type $id? …)` after the keyword: the definition of type `index`. */
function parseTypeDefinition(context: ModuleContext, index: number): SubType {
  const cursor = context.cursor;
  context.skipBinder();
  let type: SubType;
  if (cursor.takeOpen(K.sub)) {
    const final = cursor.takeKeyword(K.final);
    const supertypes: number[] = [];
    while (context.hasIndex()) supertypes.push(context.index(context.types));
    type = { final, supertypes, ...parseDescribedType(context, index) };
    cursor.expectClose();
  } else {
    type = { final: true, supertypes: [], ...parseDescribedType(context, index) };
  }
  cursor.expectClose();
  return type;
}

/** Parses the rest of a field `(type …)`. */
export function parseTypeField(context: ModuleContext): void {
  context.addGroup([parseTypeDefinition(context, context.module.types.length)]);
}

/** Parses the rest of a field `(rec (type …)*)`. */
export function parseRecField(context: ModuleContext): void {
  const cursor = context.cursor;
  const start = context.module.types.length;
  const types: SubType[] = [];
  while (!cursor.takeClose()) {
    cursor.expectOpen(K.type);
    types.push(parseTypeDefinition(context, start + types.length));
  }
  context.addGroup(types);
}

/** Parses an address type; the default is i32. */
export function parseAddressType(context: ModuleContext): typeof I32 | typeof I64 {
  if (context.cursor.takeKeyword(K.i64)) return I64;
  context.cursor.takeKeyword(K.i32);
  return I32;
}

/** Parses limits; `noun` (memory, table) is for the message if one exceeds a 32-bit address type. */
function parseLimits(context: ModuleContext, address: typeof I32 | typeof I64, noun: string): Limits {
  const min = parseLimit(context, address, noun);
  if (context.cursor.kind !== NAT) return { address, min };
  return { address, min, max: parseLimit(context, address, noun) };
}

function parseLimit(context: ModuleContext, address: typeof I32 | typeof I64, noun: string): bigint {
  const cursor = context.cursor;
  const token = cursor.at;
  cursor.u64();
  const limit = ModuleContext.integer();
  if (address === I32 && limit > 0xffff_ffffn) {
    cursor.invalid(`${noun} size must be at most 2^32-1: i32 constant out of range`, token);
  }
  return limit;
}

/** Parses a memory type after its address type. */
export function parseMemoryType(context: ModuleContext, address: typeof I32 | typeof I64): MemoryType {
  const limits = parseLimits(context, address, "memory");
  const shared = context.cursor.takeKeyword(K.shared);
  return { limits, shared, ...parsePageSize(context) };
}

/** Parses the page size of a memory type, if it is there (custom page sizes, "Text Format"). */
export function parsePageSize({ cursor }: ModuleContext): Pick<MemoryType, "pageSize"> {
  if (!cursor.takeOpen(K.pagesize)) return {};
  const at = cursor.at;
  const pageSize = cursor.u32() >>> 0;
  if (!Number.isInteger(Math.log2(pageSize))) cursor.fail(`invalid custom page size ${pageSize}`, at);
  cursor.expectClose();
  return { pageSize };
}

/** Parses a table type after its address type. */
export function parseTableType(context: ModuleContext, address: typeof I32 | typeof I64): TableType {
  const limits = parseLimits(context, address, "table");
  return { limits, element: parseRefType(context) };
}

/** Parses a global's type. */
export function parseGlobalType(context: ModuleContext): GlobalType {
  const cursor = context.cursor;
  const mutable = cursor.takeOpen(K.mut);
  const type = parseValType(context);
  if (mutable) cursor.expectClose();
  return { type, mutable };
}
