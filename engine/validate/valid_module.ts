/**
 * ValidModule: a Module that validation has accepted, with the tables that validation derived for later stages: types
 * by index over imports and definitions, canonical type ids, required features.
 *
 * The brand is created only by validateModule (module.ts), and by annotateKnownValid (known_valid.ts) for modules
 * accepted before. With `bodies: false` everything but the function bodies is valid; the bodies are validated before
 * any is translated (compile/compile.ts), or by the baseline tier as it compiles them.
 */
import type { FeatureName } from "../settings/features.ts";
import type { BranchHints } from "../wasm/branch_hints.ts";
import type { Module } from "../wasm/module.ts";
import type { FuncType, GlobalType, MemoryType, TableType, ValType } from "../wasm/types.ts";
import type { FeatureGate } from "./gate.ts";

declare const VALID: unique symbol;

/** A Module with its derived tables, not (yet) validated as a whole. */
export interface AnnotatedModule extends Module {
  /** Number of imports in each index space; definitions follow. */
  readonly importedFuncCount: number;
  readonly importedTableCount: number;
  readonly importedMemoryCount: number;
  readonly importedGlobalCount: number;
  readonly importedTagCount: number;
  /** Type of every function, imports first, and its type index. */
  readonly funcTypes: readonly FuncType[];
  readonly funcTypeIndices: Int32Array;
  /** The imported functions of exact types: a reference to another import may be to a function of a subtype. */
  readonly exactImports: ReadonlySet<number>;
  /** Types of every table, memory and global, imports first. */
  readonly tableTypes: readonly TableType[];
  readonly memoryTypes: readonly MemoryType[];
  readonly globalTypes: readonly GlobalType[];
  /** Function type of every tag, imports first (its parameters are the payload), and its type index. */
  readonly tagTypes: readonly FuncType[];
  readonly tagTypeIndices: Int32Array;
  /** By function index: 1 if the function may be the operand of ref.func in a body (the specification's C.refs). */
  readonly declaredFuncs: Uint8Array;
  /** Canonical id of every type (wasm/subtype.ts), by type index. */
  readonly canonicalIds: Int32Array;
  /** Likelihoods of branches, for block placement. */
  readonly branchHints: BranchHints;
  /** Every feature that the module requires, with the smallest offset of a use; grows as bodies are validated. */
  readonly usedFeatures: ReadonlyMap<FeatureName, number>;
  /** Whether `usedFeatures` lacks the bodies' uses, because the module was validated before (known_valid.ts). */
  readonly hasUnknownFeatures?: true;
  /** Feature switches and uses, internal to the validator. */
  readonly gate: FeatureGate;
  /** Result lists of the shorthand block types, by value type; internal to the validator. */
  readonly blockResults: Map<ValType, readonly ValType[]>;
}

/** A valid module. */
export interface ValidModule extends AnnotatedModule {
  readonly [VALID]: true;
}

export interface ValidateOptions {
  /** Validate function bodies too; default true. */
  bodies?: boolean;
}
