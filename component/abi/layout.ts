/**
 * Sizes, alignments and flat forms of types (Canonical ABI: Despecialization, Alignment, Element Size, Flattening). In:
 * a type and the type of pointers. Out: bytes, or core types. Results are memoized per type, so a type that shares
 * parts costs no more than its parts.
 */
import { type FuncType, type ValType, valueOperands, type VariantCase } from "../model/types.ts";

type Type = ValType;
type Case = VariantCase<ValType>;

/** The type of pointers into a memory. */
export type PointerType = "i32" | "i64";

/** A number type of core WebAssembly. */
export type CoreType = "i32" | "i64" | "f32" | "f64";

/** More flat parameters than this are passed in memory. */
export const MAX_FLAT_PARAMS = 16;
/** The same for functions that are lowered with `async`. */
export const MAX_FLAT_ASYNC_PARAMS = 4;
/** More flat results than this are returned in memory. */
export const MAX_FLAT_RESULTS = 1;
/** The greatest length in bytes of a list, and of a string. */
export const MAX_RANGE_BYTES: number = 2 ** 28 - 1;

/** Size and alignment in bytes. */
interface Layout {
  readonly size: number;
  readonly align: number;
}

const PRIMITIVES: Readonly<Record<string, number>> = {
  bool: 1,
  s8: 1,
  u8: 1,
  s16: 2,
  u16: 2,
  s32: 4,
  u32: 4,
  s64: 8,
  u64: 8,
  f32: 4,
  f64: 8,
  char: 4,
  "error-context": 4,
  own: 4,
  borrow: 4,
  stream: 4,
  future: 4,
};

const FLAT: Readonly<Record<string, CoreType>> = { s64: "i64", u64: "i64", f32: "f32", f64: "f64" };

const memo32 = new WeakMap<Type, Layout>();
const memo64 = new WeakMap<Type, Layout>();

/** The least multiple of `align` that is not less than `offset`. */
function alignTo(offset: number, align: number): number {
  return Math.ceil(offset / align) * align;
}

/**
 * A 64-bit address as a number. Addresses that no memory has lose their upper bits only, so that a misaligned one stays
 * misaligned.
 */
export function addressOf(address: bigint): number {
  const unsigned = BigInt.asUintN(64, address);
  return unsigned < FAR ? Number(unsigned) : Number(FAR + (unsigned & 0xffffn));
}

const FAR = 1n << 52n;

/** The size of a pointer in bytes. */
export function pointerBytes(pointer: PointerType): number {
  return pointer === "i32" ? 4 : 8;
}

/** Size and alignment of `type` in a memory with pointers of type `pointer`. */
export function layoutOf(type: Type, pointer: PointerType): Layout {
  const memo = pointer === "i32" ? memo32 : memo64;
  let layout = memo.get(type);
  if (layout === undefined) memo.set(type, layout = computeLayout(type, pointer));
  return layout;
}

function computeLayout(type: Type, pointer: PointerType): Layout {
  switch (type.kind) {
    case "string":
    case "map":
      return rangeLayout(pointer);
    case "list": {
      if (type.length === undefined) return rangeLayout(pointer);
      const { size, align } = layoutOf(type.element, pointer);
      return { size: size * type.length, align };
    }
    case "record":
      return recordLayout(type.fields.map((field) => field.type), pointer);
    case "tuple":
      return recordLayout(type.types, pointer);
    case "variant":
    case "enum":
    case "option":
    case "result":
      return variantLayout(casesOf(type), pointer);
    case "flags": {
      const bytes = flagsBytes(type.names.length);
      return { size: bytes, align: bytes };
    }
    default: {
      const bytes = PRIMITIVES[type.kind];
      return { size: bytes, align: bytes };
    }
  }
}

function rangeLayout(pointer: PointerType): Layout {
  const bytes = pointerBytes(pointer);
  return { size: 2 * bytes, align: bytes };
}

/** The size in bytes of a set of `count` flags. */
export function flagsBytes(count: number): number {
  return count <= 8 ? 1 : count <= 16 ? 2 : 4;
}

/** The offsets in bytes of consecutive fields. */
export function fieldOffsets(types: readonly Type[], pointer: PointerType): number[] {
  let offset = 0;
  return types.map((type) => {
    const { size, align } = layoutOf(type, pointer);
    const at = alignTo(offset, align);
    offset = at + size;
    return at;
  });
}

function recordLayout(types: readonly Type[], pointer: PointerType): Layout {
  let size = 0;
  let align = 1;
  for (const type of types) {
    const field = layoutOf(type, pointer);
    size = alignTo(size, field.align) + field.size;
    align = Math.max(align, field.align);
  }
  return { size: alignTo(size, align), align };
}

/** Size and alignment of consecutive values in memory. */
export function tupleLayout(types: readonly Type[], pointer: PointerType): Layout {
  const align = Math.max(1, ...types.map((type) => layoutOf(type, pointer).align));
  const offsets = fieldOffsets(types, pointer);
  const last = types.length - 1;
  return { size: last < 0 ? 0 : alignTo(offsets[last] + layoutOf(types[last], pointer).size, align), align };
}

type VariantType = Extract<Type, { kind: "variant" | "enum" | "option" | "result" }>;

const OPTION_NONE: Case = { name: "none" };

/** The cases of a type that is, or abbreviates, a variant. */
export function casesOf(type: VariantType): readonly Case[] {
  switch (type.kind) {
    case "variant":
      return type.cases;
    case "enum":
      return type.names.map((name) => ({ name }));
    case "option":
      return [OPTION_NONE, { name: "some", type: type.type }];
    case "result":
      return [caseOf("ok", type.ok), caseOf("error", type.err)];
  }
}

function caseOf(name: string, type: Type | undefined): Case {
  return type === undefined ? { name } : { name, type };
}

/** The size in bytes of the discriminant of `count` cases. */
export function discriminantBytes(count: number): number {
  return count <= 0x100 ? 1 : count <= 0x1_0000 ? 2 : 4;
}

/** The offset of the payload of a variant. */
export function payloadOffset(cases: readonly Case[], pointer: PointerType): number {
  return alignTo(discriminantBytes(cases.length), payloadAlign(cases, pointer));
}

function payloadAlign(cases: readonly Case[], pointer: PointerType): number {
  return Math.max(1, ...withPayload(cases).map((type) => layoutOf(type, pointer).align));
}

function withPayload(cases: readonly Case[]): Type[] {
  return cases.flatMap(({ type }) => type === undefined ? [] : [type]);
}

function variantLayout(cases: readonly Case[], pointer: PointerType): Layout {
  const align = Math.max(discriminantBytes(cases.length), payloadAlign(cases, pointer));
  const payload = Math.max(0, ...withPayload(cases).map((type) => layoutOf(type, pointer).size));
  return { size: alignTo(payloadOffset(cases, pointer) + payload, align), align };
}

/** The flat form of `type`, or undefined if it has more than `most` core types. */
export function flatten(type: Type, pointer: PointerType, most = MAX_FLAT_PARAMS): CoreType[] | undefined {
  switch (type.kind) {
    case "string":
    case "map":
      return most < 2 ? undefined : [pointer, pointer];
    case "list":
      if (type.length === undefined) return most < 2 ? undefined : [pointer, pointer];
      return flattenTimes(type.element, type.length, pointer, most);
    case "record":
      return flattenAll(type.fields.map((field) => field.type), pointer, most);
    case "tuple":
      return flattenAll(type.types, pointer, most);
    case "variant":
    case "enum":
    case "option":
    case "result":
      return flattenVariant(casesOf(type), pointer, most);
    default:
      return most < 1 ? undefined : [FLAT[type.kind] ?? "i32"];
  }
}

function flattenTimes(element: Type, count: number, pointer: PointerType, most: number): CoreType[] | undefined {
  const one = flatten(element, pointer, most);
  if (one === undefined || one.length * count > most) return undefined;
  return Array.from({ length: count }, () => one).flat();
}

/** The flat form of consecutive values, or undefined if it has more than `most` core types. */
export function flattenAll(types: readonly Type[], pointer: PointerType, most: number): CoreType[] | undefined {
  const flat: CoreType[] = [];
  for (const type of types) {
    const part = flatten(type, pointer, most - flat.length);
    if (part === undefined) return undefined;
    flat.push(...part);
  }
  return flat;
}

function flattenVariant(cases: readonly Case[], pointer: PointerType, most: number): CoreType[] | undefined {
  if (most < 1) return undefined;
  const joined: CoreType[] = [];
  for (const type of withPayload(cases)) {
    const flat = flatten(type, pointer, most - 1);
    if (flat === undefined) return undefined;
    flat.forEach((core, k) => joined[k] = k < joined.length ? join(joined[k], core) : core);
  }
  return ["i32", ...joined];
}

/** The core type that holds values of both types. */
function join(a: CoreType, b: CoreType): CoreType {
  if (a === b) return a;
  return (a === "i32" && b === "f32") || (a === "f32" && b === "i32") ? "i32" : "i64";
}

/** The types of the parameters, in order. */
export function paramTypes(type: FuncType): Type[] {
  return type.params.map((param) => param.type);
}

/** The type of the result, or none. */
export function resultTypes({ result }: FuncType): Type[] {
  return result === undefined ? [] : [result];
}

/** The passing of a function's parameters and result. */
interface CallShape {
  readonly params: readonly CoreType[];
  readonly results: readonly CoreType[];
  /** The flat parameters; undefined if they are in memory. */
  readonly flatParams: readonly CoreType[] | undefined;
  /** The flat results; undefined if they are in memory. */
  readonly flatResults: readonly CoreType[] | undefined;
}

/** The options that decide the shape of a call. */
interface ShapeOptions {
  readonly pointer: PointerType;
  readonly isAsync: boolean;
  /** An async lift with a callback. */
  readonly hasCallback: boolean;
}

/** The core signature of a lifted function. */
export function liftShape(type: FuncType, { pointer, isAsync, hasCallback }: ShapeOptions): CallShape {
  const flatParams = flattenAll(paramTypes(type), pointer, MAX_FLAT_PARAMS);
  const params = flatParams ?? [pointer];
  if (isAsync) return { params, results: hasCallback ? ["i32"] : [], flatParams, flatResults: undefined };
  const flatResults = type.result === undefined ? [] : flatten(type.result, pointer, MAX_FLAT_RESULTS);
  return { params, results: flatResults ?? [pointer], flatParams, flatResults };
}

/** The core signature of a lowered function. */
export function lowerShape(type: FuncType, { pointer, isAsync }: ShapeOptions): CallShape {
  const flatParams = flattenAll(paramTypes(type), pointer, isAsync ? MAX_FLAT_ASYNC_PARAMS : MAX_FLAT_PARAMS);
  const most = isAsync ? 0 : MAX_FLAT_RESULTS;
  const flatResults = type.result === undefined ? [] : flatten(type.result, pointer, most);
  const params = [...(flatParams ?? [pointer]), ...(flatResults === undefined ? [pointer] : [])];
  return { params, results: isAsync ? ["i32"] : flatResults ?? [], flatParams, flatResults };
}

/** Types whose lists are typed arrays. */
const NUMBERS: ReadonlySet<string> = new Set(["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f32", "f64"]);

/** At least the bytes of parts of values in JavaScript, as hosts lay them out. */
const LIFTED = {
  /** An object without its fields, and the field or element that refers to it. */
  OBJECT: 72,
  TYPED_ARRAY: 400,
  MAP: 200,
  HANDLE: 160,
  /** A field with a small number or a boolean. */
  FIELD: 8,
  /** A field with a number that is an object of its own. */
  NUMBER: 32,
} as const;

const liftCosts = new WeakMap<Type, number>();

/** At least the bytes that a value in a list takes in JavaScript, without the elements of ranges in it. */
export function liftCost(type: Type): number {
  let cost = liftCosts.get(type);
  if (cost === undefined) liftCosts.set(type, cost = computeLiftCost(type));
  return cost;
}

function computeLiftCost(type: Type): number {
  if (NUMBERS.has(type.kind)) return PRIMITIVES[type.kind];
  switch (type.kind) {
    case "record":
      return LIFTED.OBJECT + type.fields.reduce((sum, field) => sum + fieldCost(field.type), 0);
    case "tuple":
      return LIFTED.OBJECT + type.types.reduce((sum, part) => sum + fieldCost(part), 0);
    case "variant":
    case "option":
    case "result":
      return LIFTED.OBJECT + casesOf(type).reduce((most, c) => Math.max(most, c.type ? fieldCost(c.type) : 0), 0);
    case "flags":
      return LIFTED.OBJECT + type.names.length * LIFTED.FIELD;
    case "list": {
      const isTyped = NUMBERS.has(type.element.kind);
      return (isTyped ? LIFTED.TYPED_ARRAY : LIFTED.OBJECT) + (type.length ?? 0) * liftCost(type.element);
    }
    case "map":
      return LIFTED.MAP;
    case "own":
    case "borrow":
    case "stream":
    case "future":
    case "error-context":
      return LIFTED.HANDLE;
    default:
      return LIFTED.OBJECT;
  }
}

function fieldCost(type: Type): number {
  if (!NUMBERS.has(type.kind)) return liftCost(type);
  return PRIMITIVES[type.kind] === 8 || type.kind === "f32" ? LIFTED.NUMBER : LIFTED.FIELD;
}

/** Whether values of one of `types` are in memory at addresses that the guest chooses. */
export function hasRanges(types: readonly Type[]): boolean {
  return types.some((type) =>
    someType(
      type,
      ({ kind, ...rest }) =>
        kind === "string" || kind === "map" || (kind === "list" && (rest as { length?: number }).length === undefined),
    )
  );
}

/** Whether `type` or a part of it satisfies `test`. */
export function someType(type: Type | undefined, test: (type: Type) => boolean): boolean {
  return type !== undefined && (test(type) || valueOperands(type).some((part) => someType(part, test)));
}
