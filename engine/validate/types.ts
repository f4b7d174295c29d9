/**
 * Rules of types (specification, 3.2): the type section with its recursive groups and declared supertypes, limits, and
 * the types of memories, tables and globals. Out: canonical ids of the type section (wasm/subtype.ts).
 */
import { InvalidError } from "../base/errors.ts";
import type { Module } from "../wasm/module.ts";
import { canonicalType, canonicalTypeIds, matchesCompositeType } from "../wasm/subtype.ts";
import {
  type CompositeType,
  FUNCREF,
  type GlobalType,
  heapOf,
  I64,
  isRef,
  type Limits,
  type MemoryType,
  PAGE_BYTES,
  type TableType,
  type ValType,
  valTypeName,
} from "../wasm/types.ts";
import { FEATURE, type FeatureGate, featureOfType } from "./gate.ts";
import {
  MAX_BYTES_32,
  MAX_BYTES_64,
  MAX_FIELDS,
  MAX_PAGES_32,
  MAX_PAGES_64,
  MAX_PARAMS,
  MAX_RESULTS,
  MAX_TABLE_SIZE_32,
  MAX_TABLE_SIZE_64,
} from "./limits.ts";
import { CLAUSE_RULES } from "./late_rules.ts";
import { entryOffset } from "./locate.ts";
import { SECTION } from "../wasm/section_ids.ts";

/** Context of the rules of declarations: the module, its features, and the offset of the current declaration. */
export interface Declarations {
  readonly module: Module;
  readonly gate: FeatureGate;
  /** Finds the offset of the current declaration: called only for messages and for first uses of features. */
  locate: () => number | undefined;
}

/** Throws InvalidError for the current declaration. */
export function invalid(declarations: Declarations, message: string): never {
  throw new InvalidError(message, { offset: declarations.locate() });
}

/** The same if there is a fault. */
function refuse(declarations: Declarations, fault: string | undefined): void {
  if (fault !== undefined) invalid(declarations, fault);
}

/** Records the use of feature `feature` by the current declaration. */
export function useFeature(declarations: Declarations, feature: number, what: string): void {
  const { gate } = declarations;
  if (gate.isUnused(feature)) gate.use(feature, declarations.locate() ?? 0, what);
}

/** Validates the type section and returns canonical ids by type index. */
export function validateTypes(declarations: Declarations): Int32Array {
  const { module } = declarations;
  const offsetOf = (index: number) => entryOffset(module, SECTION.type, index);
  for (const { start, count } of module.recGroups) {
    for (let index = start; index < start + count; index++) {
      declarations.locate = () => offsetOf(index);
      const type = module.types[index];
      const { final, supertypes, composite } = type;
      if (count > 1) useFeature(declarations, FEATURE.gc, "a recursive group of types");
      if (!final || supertypes.length > 0) useFeature(declarations, FEATURE.gc, "a declared subtype");
      if (type.describes !== undefined || type.descriptor !== undefined) {
        useFeature(declarations, FEATURE["custom-descriptors"], "a type with a descriptor or a described type");
        refuse(declarations, CLAUSE_RULES.get().clauseFault(module.types, index, start, start + count));
      }
      validateComposite(declarations, composite, start + count);
    }
  }
  const ids = canonicalTypeIds(module, offsetOf);
  module.types.forEach((type, index) => {
    declarations.locate = () => offsetOf(index);
    for (const above of type.supertypes) validateSupertype(declarations, ids, index, above);
  });
  return ids;
}

/** Checks a composite type whose group ends before type index `visible`. */
function validateComposite(declarations: Declarations, type: CompositeType, visible: number): void {
  switch (type.kind) {
    case "func":
      checkCount(declarations, "parameters", type.params.length, MAX_PARAMS);
      checkCount(declarations, "results", type.results.length, MAX_RESULTS);
      if (type.results.length > 1) {
        useFeature(declarations, FEATURE["multi-value"], "a function type with several results");
      }
      for (const param of type.params) validateValType(declarations, param, visible);
      for (const result of type.results) validateValType(declarations, result, visible);
      break;
    case "struct":
      useFeature(declarations, FEATURE.gc, "a structure type");
      checkCount(declarations, "fields", type.fields.length, MAX_FIELDS);
      for (const field of type.fields) validateValType(declarations, field.storage, visible);
      break;
    case "array":
      useFeature(declarations, FEATURE.gc, "an array type");
      validateValType(declarations, type.field.storage, visible);
      break;
    case "cont":
      useFeature(declarations, FEATURE["stack-switching"], "a continuation type");
      if (type.func >= visible) invalid(declarations, `unknown type ${type.func}`);
      if (declarations.module.types[type.func].composite.kind !== "func") {
        invalid(declarations, `non-function type ${type.func}`);
      }
      break;
  }
}

function checkCount(declarations: Declarations, what: string, count: number, limit: number): void {
  if (count > limit) invalid(declarations, `too many ${what}: ${count}, at most ${limit} are possible`);
}

/** Checks a value or storage type that may refer to types below index `visible`. */
export function validateValType(
  declarations: Declarations,
  type: ValType,
  visible: number = declarations.module.types.length,
): void {
  const feature = featureOfType(type);
  if (feature !== 0 && declarations.gate.isUnused(feature)) {
    useFeature(declarations, feature, `the type ${valTypeName(type)}`);
  }
  if (isRef(type) && heapOf(type) >= visible) invalid(declarations, `unknown type ${heapOf(type)}`);
}

function validateSupertype(declarations: Declarations, ids: Int32Array, index: number, above: number): void {
  if (declarations.module.types[above].final) invalid(declarations, `sub type ${index} has final supertype ${above}`);
  const type = canonicalType(ids[index]), superType = canonicalType(ids[above]);
  const matches = matchesCompositeType(type.composite, superType.composite) &&
    (type.describes === undefined) === (superType.describes === undefined) &&
    (type.descriptor !== undefined || superType.descriptor === undefined);
  if (!matches) invalid(declarations, `sub type ${index} does not match super type ${above}`);
  if (superType.describes !== undefined || superType.descriptor !== undefined) {
    const own = declarations.module.types[index];
    refuse(declarations, CLAUSE_RULES.get().superClauseFault(type, superType, own, above));
  }
}

/** Checks limits against `limit`, the end of the address space. */
function validateLimits(declarations: Declarations, limits: Limits, limit: bigint, rangeMessage: string): void {
  const { min, max } = limits;
  if (min > limit) invalid(declarations, `${rangeMessage}: minimum ${min}`);
  if (max === undefined) return;
  if (max > limit) invalid(declarations, `${rangeMessage}: maximum ${max}`);
  if (min > max) invalid(declarations, `size minimum must not be greater than maximum: ${min} and ${max}`);
}

/** Limits of memory sizes by the size of a page and the address type, with the start of the message about them. */
const MOST_PAGES_32 = { most: MAX_PAGES_32, fault: "memory size must be at most 65536 pages (4GiB)" };
const MOST_PAGES_64 = { most: MAX_PAGES_64, fault: "memory size must be at most 2^48 pages (2^64 bytes)" };
const MOST_BYTES_32 = { most: MAX_BYTES_32, fault: "memory size must be at most 2^32-1 pages of one byte" };
const MOST_BYTES_64 = { most: MAX_BYTES_64, fault: "memory size must be at most 2^64-1 pages of one byte" };

/** Checks a memory type (specification, 3.2.17; threads proposal for `shared`). */
export function validateMemoryType(declarations: Declarations, type: MemoryType): void {
  const { limits, shared, pageSize } = type;
  if (pageSize !== undefined) {
    useFeature(declarations, FEATURE["custom-page-sizes"], "a page size");
    if (pageSize !== 1 && pageSize !== PAGE_BYTES) {
      invalid(declarations, `invalid custom page size ${pageSize}: a page has 1 or 65536 bytes`);
    }
  }
  const isWide = limits.address === I64;
  if (isWide) useFeature(declarations, FEATURE.memory64, "a memory with 64-bit addresses");
  const { most, fault } = pageSize === 1
    ? isWide ? MOST_BYTES_64 : MOST_BYTES_32
    : isWide
    ? MOST_PAGES_64
    : MOST_PAGES_32;
  validateLimits(declarations, limits, most, fault);
  if (shared) {
    useFeature(declarations, FEATURE.threads, "a shared memory");
    if (limits.max === undefined) invalid(declarations, "shared memory must have maximum");
  }
}

/** Checks a table type. */
export function validateTableType(declarations: Declarations, type: TableType): void {
  const { limits, element } = type;
  if (element !== FUNCREF) validateValType(declarations, element);
  if (limits.address === I64) {
    useFeature(declarations, FEATURE.table64, "a table with 64-bit indices");
    validateLimits(declarations, limits, MAX_TABLE_SIZE_64, "table size must be at most 2^64-1");
  } else {
    validateLimits(declarations, limits, MAX_TABLE_SIZE_32, "table size must be at most 2^32-1");
  }
}

/** Checks a global type. */
export function validateGlobalType(declarations: Declarations, type: GlobalType): void {
  validateValType(declarations, type.type);
}
