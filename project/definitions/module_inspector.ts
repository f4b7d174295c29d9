/**
 * The interface through which the project inspects a WebAssembly module.
 *
 * Input: the bytes of a module. Output: its imports and exports with types in the syntax of the text format. The
 * engine's decoder and validator provide the implementation; tests use fakes. An inspector throws InspectionError for
 * an invalid module and never runs code.
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

/** The imports and exports of a module. */
export interface InspectedModule {
  /** Imports in the order of the module. */
  readonly imports: readonly ModuleImport[];
  /** Exports in the order of the module. */
  readonly exports: readonly ModuleExport[];
}

/** Validates a module and lists its imports and exports. */
export type ModuleInspector = (bytes: Uint8Array) => InspectedModule | Promise<InspectedModule>;

/** The bytes are not a valid module. */
export class InspectionError extends Error {
  override readonly name = "InspectionError";
}

/** `(i32, i64) -> (i32)` */
export function formatType(type: FunctionType): string {
  return `(${type.params.join(", ")}) -> (${type.results.join(", ")})`;
}

/** True when two function types are equal. */
export function sameType(a: FunctionType, b: FunctionType): boolean {
  return formatType(a) === formatType(b);
}
