/**
 * The interface through which the project inspects a WebAssembly module or component.
 *
 * In: the bytes of a plugin's entry. Out: the imports and exports of a module with types in the syntax of the
 * text format, or the world of a component in the notation of WIT. The decoders and validators provide the
 * implementation; tests use fakes. An inspector throws InspectionError for invalid bytes and never runs code.
 */

/** A function type; value types as in the text format. */
export interface FunctionType {
  /** Types of the parameters. */
  readonly params: readonly string[];
  /** Types of the results. */
  readonly results: readonly string[];
}

/** The kind of an import or export. */
export type ExternKind = "function" | "table" | "memory" | "global" | "tag";

/** An import of a module. */
export interface ModuleImport {
  /** The module name. */
  readonly module: string;
  /** The name in the module. */
  readonly name: string;
  /** The kind. */
  readonly kind: ExternKind;
  /** Present for functions. */
  readonly type?: FunctionType;
}

/** An export of a module. */
export interface ModuleExport {
  /** The name. */
  readonly name: string;
  /** The kind. */
  readonly kind: ExternKind;
  /** Present for functions. */
  readonly type?: FunctionType;
}

/** A function of an interface of a component. */
export interface InspectedFunction {
  /** The name in the interface. */
  readonly name: string;
  /** The signature in the notation of WIT. */
  readonly signature: string;
  /** The type with which core modules import it; absent if they cannot. */
  readonly type?: FunctionType;
  /** The reason why core modules cannot import it; absent if they can. */
  readonly fault?: string;
  /** Whether its values are in the memory of the module that imports it. */
  readonly needsMemory?: boolean;
  /** Whether its result is allocated by `cabi_realloc` of the module that imports it. */
  readonly needsRealloc?: boolean;
}

/** An import or export of a component. */
export interface WorldItem {
  /** The name, such as `wasi:clocks/wall-clock@0.2.0`. */
  readonly name: string;
  /** The kind; plugins have interfaces only. */
  readonly kind: "interface" | "func" | "type" | "value" | "module" | "component";
  /** The functions of an interface. */
  readonly functions: readonly InspectedFunction[];
}

/** The world of a component. */
export interface InspectedWorld {
  /** Imports in the order of the component. */
  readonly imports: readonly WorldItem[];
  /** Exports in the order of the component. */
  readonly exports: readonly WorldItem[];
}

/** The imports and exports of a module; of a component, its world, and neither imports nor exports. */
export interface InspectedModule {
  /** Imports in the order of the module. */
  readonly imports: readonly ModuleImport[];
  /** Exports in the order of the module. */
  readonly exports: readonly ModuleExport[];
  /** The world of a component. */
  readonly world?: InspectedWorld;
}

/** Validates a module or component and lists its imports and exports. */
export type ModuleInspector = (bytes: Uint8Array) => InspectedModule | Promise<InspectedModule>;

/** Thrown for bytes that are not a valid module or component, and for a component that cannot be a plugin. */
export class InspectionError extends Error {
  override readonly name = "InspectionError";
}

/** The text of a function type, such as `(i32, i64) -> (i32)`. */
export function formatType(type: FunctionType): string {
  return `(${type.params.join(", ")}) -> (${type.results.join(", ")})`;
}

/** True when two function types are equal. */
export function sameType(a: FunctionType, b: FunctionType): boolean {
  return formatType(a) === formatType(b);
}
