/**
 * Types of the component model (Explainer, "Type Definitions") as immutable syntax trees.
 *
 * A type constructor is generic in its operands: `V` for value types and `R` for resource types. The decoder produces
 * constructors over type indices (definitions.ts); validation resolves them to constructors over types, which is what
 * {@linkcode ValType} is. Resolved types contain no index, so they mean the same in every component.
 *
 * Invariants of resolved types: trees are acyclic, but share nodes; equality is structural (validate/subtype.ts), never
 * by node. The identity of a node is significant in one place: an import or export of a type introduces a new node,
 * by which validation tracks external visibility and by which a printer finds the type's name. The identity of a
 * {@linkcode ResourceId} is the identity of an abstract resource type.
 */
import type {
  FuncType as CoreFuncType,
  GlobalType,
  MemoryType,
  TableType,
  ValType as CoreValType,
} from "@waft/engine/internal/wasm/types";

export type { CoreFuncType, CoreValType };

/** Primitive value types: name in the text format, code in the binary format. */
export const PRIMITIVES = {
  "bool": 0x7f,
  "s8": 0x7e,
  "u8": 0x7d,
  "s16": 0x7c,
  "u16": 0x7b,
  "s32": 0x7a,
  "u32": 0x79,
  "s64": 0x78,
  "u64": 0x77,
  "f32": 0x76,
  "f64": 0x75,
  "char": 0x74,
  "string": 0x73,
  "error-context": 0x64,
} as const satisfies Record<string, number>;

/** The name of a primitive value type. */
export type Primitive = keyof typeof PRIMITIVES;

/** Whether `name` is a primitive value type. */
export function isPrimitive(name: string): name is Primitive {
  return Object.hasOwn(PRIMITIVES, name);
}

export interface PrimitiveType {
  readonly kind: Primitive;
}

export interface ListType<V> {
  readonly kind: "list";
  readonly element: V;
  /** The number of elements of a fixed-length list. */
  readonly length?: number;
}

/** A labelled type: a field of a record or a parameter. */
export interface Labelled<V> {
  readonly name: string;
  readonly type: V;
}

export interface RecordType<V> {
  readonly kind: "record";
  readonly fields: readonly Labelled<V>[];
}

export interface VariantCase<V> {
  readonly name: string;
  readonly type?: V;
}

export interface VariantType<V> {
  readonly kind: "variant";
  readonly cases: readonly VariantCase<V>[];
}

export interface TupleType<V> {
  readonly kind: "tuple";
  readonly types: readonly V[];
}

export interface FlagsType {
  readonly kind: "flags";
  readonly names: readonly string[];
}

export interface EnumType {
  readonly kind: "enum";
  readonly names: readonly string[];
}

export interface OptionType<V> {
  readonly kind: "option";
  readonly type: V;
}

export interface ResultType<V> {
  readonly kind: "result";
  readonly ok?: V;
  readonly err?: V;
}

export interface MapType<V> {
  readonly kind: "map";
  readonly key: V;
  readonly value: V;
}

/** A `stream` or `future`; without an element it transfers only the event. */
export interface ChannelType<V> {
  readonly kind: "stream" | "future";
  readonly element?: V;
}

/** A handle, `own` or `borrow`. */
export interface HandleType<R> {
  readonly kind: "own" | "borrow";
  readonly resource: R;
}

/** A value type constructor over operands. */
export type ValueType<V, R> =
  | PrimitiveType
  | ListType<V>
  | RecordType<V>
  | VariantType<V>
  | TupleType<V>
  | FlagsType
  | EnumType
  | OptionType<V>
  | ResultType<V>
  | MapType<V>
  | ChannelType<V>
  | HandleType<R>;

/** A resolved value type. */
export type ValType =
  | PrimitiveType
  | ListType<ValType>
  | RecordType<ValType>
  | VariantType<ValType>
  | TupleType<ValType>
  | FlagsType
  | EnumType
  | OptionType<ValType>
  | ResultType<ValType>
  | MapType<ValType>
  | ChannelType<ValType>
  | HandleType<ResourceType>;

/** A function type over operands. */
export interface FuncShape<V> {
  readonly kind: "func";
  readonly async: boolean;
  readonly params: readonly Labelled<V>[];
  readonly result?: V;
}

/** A resolved function type. */
export type FuncType = FuncShape<ValType>;

/** The identity of a resource type. A new object is a type unequal to all others. */
export interface ResourceId {
  /** The source of the type: its definition, or the bound `(sub resource)` of an import or export. */
  readonly origin: "defined" | "imported" | "exported";
  /** The core type of representations; present if the type is defined by a component. */
  readonly rep?: CoreValType;
}

/** A reference to a resource type. Several nodes may have one id: every import or export of the type makes one. */
export interface ResourceType {
  readonly kind: "resource";
  readonly id: ResourceId;
}

/** Names of exports that lead from a component or instance to a nested item, outermost first. */
export type ExportPath = readonly string[];

/** Attributes of an import or export, which type checking ignores. */
export interface ExternAttributes {
  /** The interface that an instance with a plain name implements. */
  readonly implements?: string;
  /** The part of the version that a canonical interface name omits. */
  readonly versionSuffix?: string;
  /** A name in the host's own syntax. */
  readonly externalId?: string;
}

/** The type of an import or export of a core module. */
export type CoreExternType =
  | { readonly kind: "func"; readonly type: CoreFuncType; readonly id: number }
  | { readonly kind: "table"; readonly type: TableType }
  | { readonly kind: "memory"; readonly type: MemoryType }
  | { readonly kind: "global"; readonly type: GlobalType }
  | { readonly kind: "tag"; readonly type: CoreFuncType; readonly id: number };

export interface CoreImport {
  readonly module: string;
  readonly name: string;
  readonly type: CoreExternType;
}

/**
 * The type of a core module. Types are closed: a type index is a canonical id (engine/wasm/subtype.ts), and `id` of a
 * function or tag is the canonical id of its type.
 */
export interface ModuleType {
  readonly kind: "module";
  readonly imports: readonly CoreImport[];
  readonly exports: ReadonlyMap<string, CoreExternType>;
}

/** An instance type; `exports` are in order of declaration. */
export interface InstanceType {
  readonly kind: "instance";
  readonly exports: ReadonlyMap<string, Extern>;
  /** Resource types that every instance of this type has of its own: those bound by `(sub resource)`. */
  readonly defined: readonly ResourceId[];
  /** The path of the first export that names each resource type. */
  readonly paths: ReadonlyMap<ResourceId, ExportPath>;
}

/** A resource type and the path of imports or exports that names it. */
export interface ResourcePath {
  readonly id: ResourceId;
  readonly path: ExportPath;
}

/** A component type; imports and exports are in order of declaration. */
export interface ComponentType {
  readonly kind: "component";
  readonly imports: ReadonlyMap<string, Extern>;
  readonly exports: ReadonlyMap<string, Extern>;
  /** Abstract resource types of the imports: instantiation replaces them by those of the arguments. */
  readonly imported: readonly ResourcePath[];
  /** Resource types that occur in the exports and that every instantiation creates. */
  readonly defined: readonly ResourcePath[];
  /** The path of the first export that names each resource type. */
  readonly paths: ReadonlyMap<ResourceId, ExportPath>;
}

/** Any entry of a component's type index space. */
export type AnyType = ValType | FuncType | ResourceType | ComponentType | InstanceType;

/** The type of an import or export. */
export type ExternType =
  | { readonly kind: "module"; readonly type: ModuleType }
  | { readonly kind: "func"; readonly type: FuncType }
  | { readonly kind: "value"; readonly type: ValType }
  | {
    readonly kind: "type";
    /** The node that the import or export introduces. */
    readonly type: AnyType;
    /** The node that the bound `(eq type)` refers to; the same as `type` if the bound is `(sub resource)`. */
    readonly referenced: AnyType;
  }
  | { readonly kind: "component"; readonly type: ComponentType }
  | { readonly kind: "instance"; readonly type: InstanceType };

/** An import or export: its type and attributes. */
export type Extern = ExternType & { readonly attributes?: ExternAttributes };

/** Whether `type` is a value type. */
export function isValType(type: AnyType): type is ValType {
  return !NOT_VALUES.has(type.kind);
}

const NOT_VALUES: ReadonlySet<string> = new Set(["func", "resource", "component", "instance"]);

/** Applies `value` to the value operands of a constructor, and `resource` to its resource operand. */
export function mapValueType<V, R, W, S>(
  type: ValueType<V, R>,
  value: (operand: V) => W,
  resource: (operand: R) => S,
): ValueType<W, S> {
  const optional = (operand: V | undefined): W | undefined => operand === undefined ? undefined : value(operand);
  switch (type.kind) {
    case "list":
      return { ...type, element: value(type.element) };
    case "record":
      return { kind: "record", fields: type.fields.map((field) => ({ name: field.name, type: value(field.type) })) };
    case "variant":
      return { kind: "variant", cases: type.cases.map((row) => withType(row.name, optional(row.type))) };
    case "tuple":
      return { kind: "tuple", types: type.types.map(value) };
    case "option":
      return { kind: "option", type: value(type.type) };
    case "result": {
      const ok = optional(type.ok);
      const err = optional(type.err);
      return { kind: "result", ...(ok === undefined ? {} : { ok }), ...(err === undefined ? {} : { err }) };
    }
    case "map":
      return { kind: "map", key: value(type.key), value: value(type.value) };
    case "stream":
    case "future": {
      const element = optional(type.element);
      return element === undefined ? { kind: type.kind } : { kind: type.kind, element };
    }
    case "own":
    case "borrow":
      return { kind: type.kind, resource: resource(type.resource) };
    default:
      return type;
  }
}

function withType<W>(name: string, type: W | undefined): VariantCase<W> {
  return type === undefined ? { name } : { name, type };
}

/** Applies `value` to the parameters and the result of a function type. */
export function mapFuncType<V, W>(type: FuncShape<V>, value: (operand: V) => W): FuncShape<W> {
  const params = type.params.map((param) => ({ name: param.name, type: value(param.type) }));
  const { kind, async } = type;
  return type.result === undefined ? { kind, async, params } : { kind, async, params, result: value(type.result) };
}

/** The value operands of a constructor, in order. */
export function valueOperands<V, R>(type: ValueType<V, R>): readonly V[] {
  switch (type.kind) {
    case "list":
      return [type.element];
    case "record":
      return type.fields.map((field) => field.type);
    case "variant":
      return type.cases.flatMap((row) => row.type === undefined ? [] : [row.type]);
    case "tuple":
      return type.types;
    case "option":
      return [type.type];
    case "result":
      return [type.ok, type.err].filter((operand) => operand !== undefined);
    case "map":
      return [type.key, type.value];
    case "stream":
    case "future":
      return type.element === undefined ? [] : [type.element];
    default:
      return [];
  }
}
