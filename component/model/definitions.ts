/**
 * A component as decoded (Binary): a flat list of definitions in order, which refer to earlier ones by index. Sections
 * have no meaning beyond their content, so they do not appear.
 *
 * Every definition appends to one index space, in order, unless its comment says otherwise: `core instance` definitions
 * to that of core instances, `alias` and `export` to that of their sort, `import` to that of its type's kind, `canon
 * lift` to the functions, all other `canon` to the core functions. Offsets are absolute, in the outermost component.
 */
import type { SubType } from "@waft/engine/internal/wasm/types";
import type { ImportDesc } from "@waft/engine/internal/wasm/module";
import type { Canon } from "./canon.ts";
import type { CoreValType, ExternAttributes, FuncShape, Primitive, ValueType } from "./types.ts";

/** Core sorts and their codes in the binary format. */
export const CORE_SORTS = {
  func: 0x00,
  table: 0x01,
  memory: 0x02,
  global: 0x03,
  tag: 0x04,
  type: 0x10,
  module: 0x11,
  instance: 0x12,
} as const satisfies Record<string, number>;
export type CoreSort = keyof typeof CORE_SORTS;

/** Component sorts and their codes in the binary format; 0x00 is the prefix of a core sort. */
export const COMPONENT_SORTS = { func: 0x01, value: 0x02, type: 0x03, component: 0x04, instance: 0x05 } as const;
export type ComponentSort = keyof typeof COMPONENT_SORTS;

/** A sort, which is also an index space. */
export type Sort = ComponentSort | `core ${CoreSort}`;

/** A reference to a definition. */
export interface SortIndex {
  readonly sort: Sort;
  readonly index: number;
}

/** A value type as written: a primitive, or the index of a type. */
export type ValTypeRef = Primitive | number;

export interface NamedSortIndex extends SortIndex {
  readonly name: string;
  readonly attributes?: ExternAttributes;
}

/** The expression of a core instance definition. */
export type CoreInstanceExpr =
  | {
    readonly kind: "instantiate";
    readonly module: number;
    /** Arguments: core instances by the module name of imports. */
    readonly args: readonly { readonly name: string; readonly instance: number }[];
  }
  | {
    readonly kind: "exports";
    readonly exports: readonly { readonly name: string; readonly sort: CoreSort; readonly index: number }[];
  };

/** The expression of an instance definition. */
export type InstanceExpr =
  | { readonly kind: "instantiate"; readonly component: number; readonly args: readonly NamedSortIndex[] }
  | { readonly kind: "exports"; readonly exports: readonly NamedSortIndex[] };

/** The target of an alias: an export of an instance or core instance, or a definition of the `count`th outer scope. */
export type Alias =
  | {
    readonly kind: "export";
    readonly sort: ComponentSort | "core module";
    readonly instance: number;
    readonly name: string;
  }
  | {
    readonly kind: "core export";
    readonly sort: `core ${CoreSort}`;
    readonly instance: number;
    readonly name: string;
  }
  | { readonly kind: "outer"; readonly sort: Sort; readonly count: number; readonly index: number };

/** A core module type: its declarations in order. `type` and `alias` append to its own index space of types. */
interface ModuleTypeExpr {
  readonly kind: "module";
  readonly declarations: readonly ModuleDeclaration[];
}

export type ModuleDeclaration =
  & (
    | { readonly kind: "import"; readonly module: string; readonly name: string; readonly desc: ImportDesc }
    | { readonly kind: "export"; readonly name: string; readonly desc: ImportDesc }
    | { readonly kind: "type"; readonly type: CoreTypeExpr }
    | { readonly kind: "alias"; readonly count: number; readonly index: number }
  )
  & { readonly offset: number };

/** A core type definition: a recursive group, which appends one entry per type, or a module type. */
export type CoreTypeExpr = { readonly kind: "rec"; readonly types: readonly SubType[] } | ModuleTypeExpr;

/** A resource type definition. */
export interface ResourceExpr {
  readonly kind: "resource";
  readonly rep: CoreValType;
  /** Index of the destructor, a core function. */
  readonly dtor?: number;
}

/** An instance type: its declarations in order, with index spaces of their own. */
interface InstanceTypeExpr {
  readonly kind: "instance";
  readonly declarations: readonly Declaration[];
}

interface ComponentTypeExpr {
  readonly kind: "component";
  readonly declarations: readonly Declaration[];
}

/** A type definition as written. */
export type TypeExpr =
  | ValueType<ValTypeRef, number>
  | FuncShape<ValTypeRef>
  | ResourceExpr
  | InstanceTypeExpr
  | ComponentTypeExpr;

/** The type of an import or export as written; the indices are in the index space of types or core types. */
export type ExternDesc =
  | { readonly kind: "module" | "func" | "component" | "instance"; readonly type: number }
  | { readonly kind: "value"; readonly bound: { readonly eq: number } | { readonly type: ValTypeRef } }
  /** Without `eq`, the bound is `(sub resource)`. */
  | { readonly kind: "type"; readonly eq?: number };

/** The name of an import or export with its attributes, and its type. */
export interface ExternDeclaration {
  readonly name: string;
  readonly attributes?: ExternAttributes;
  readonly type: ExternDesc;
}

/** A declaration of an instance or component type; `import` occurs in component types only. */
export type Declaration =
  & (
    | { readonly kind: "core type"; readonly type: CoreTypeExpr }
    | { readonly kind: "type"; readonly type: TypeExpr }
    | { readonly kind: "alias"; readonly alias: Alias }
    | ({ readonly kind: "import" } & ExternDeclaration)
    | ({ readonly kind: "export" } & ExternDeclaration)
  )
  & { readonly offset: number };

/** A definition of a component. */
export type Definition =
  & (
    /** A core module in binary form; its offset is that of its header. */
    | { readonly kind: "core module"; readonly bytes: Uint8Array }
    | { readonly kind: "core instance"; readonly expr: CoreInstanceExpr }
    | { readonly kind: "core type"; readonly type: CoreTypeExpr }
    | { readonly kind: "component"; readonly component: Component }
    | { readonly kind: "instance"; readonly expr: InstanceExpr }
    | { readonly kind: "alias"; readonly alias: Alias }
    | { readonly kind: "type"; readonly type: TypeExpr }
    | { readonly kind: "canon"; readonly canon: Canon }
    /** Calls a function and appends `results` values. */
    | { readonly kind: "start"; readonly func: number; readonly args: readonly number[]; readonly results: number }
    /** A constant; `bytes` is its encoding. */
    | { readonly kind: "value"; readonly type: ValTypeRef; readonly bytes: Uint8Array }
    | ({ readonly kind: "import" } & ExternDeclaration)
    /** An export, which also appends to the index space of its sort. */
    | ({ readonly kind: "export"; readonly type?: ExternDesc } & NamedSortIndex)
  )
  & { readonly offset: number };

/** A custom section; `after` is the number of definitions before it. */
export interface CustomSection {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly offset: number;
  readonly after: number;
}

/** A decoded component. */
export interface Component {
  readonly definitions: readonly Definition[];
  readonly customs: readonly CustomSection[];
  /** The binary form, header included. */
  readonly bytes: Uint8Array;
  /** Offset of the header in the outermost component. */
  readonly offset: number;
}
