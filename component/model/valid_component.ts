/**
 * ValidComponent: a decoded component that validation has accepted, with its type and its resolved index spaces, which
 * linking reads in place of the definitions' indices into types.
 *
 * Invariant: entry `i` of a space is the resolved type of index `i` of that sort, in the order of the definitions.
 */
import type { Component } from "./definitions.ts";
import type {
  AnyType,
  ComponentType,
  CoreExternType,
  CoreFuncType,
  FuncType,
  InstanceType,
  ModuleType,
  ValType,
} from "./types.ts";

declare const VALID: unique symbol;

/** A core function type, and its canonical id. */
export interface ClosedFuncType {
  readonly type: CoreFuncType;
  readonly id: number;
}

/** The type of a core instance: its exports. */
export type CoreInstanceType = ReadonlyMap<string, CoreExternType>;

/** An entry of the index space of core types: the canonical id of a type, or a module type. */
export type CoreTypeEntry = { readonly kind: "type"; readonly id: number } | ModuleType;

/** The resolved index spaces of a component. */
interface IndexSpaces {
  readonly coreModules: readonly ModuleType[];
  readonly coreInstances: readonly CoreInstanceType[];
  readonly coreTypes: readonly CoreTypeEntry[];
  readonly coreFuncs: readonly ClosedFuncType[];
  readonly coreTables: readonly Extract<CoreExternType, { kind: "table" }>["type"][];
  readonly coreMemories: readonly Extract<CoreExternType, { kind: "memory" }>["type"][];
  readonly coreGlobals: readonly Extract<CoreExternType, { kind: "global" }>["type"][];
  readonly coreTags: readonly ClosedFuncType[];
  readonly components: readonly ComponentType[];
  readonly instances: readonly InstanceType[];
  readonly funcs: readonly FuncType[];
  readonly types: readonly AnyType[];
  readonly values: readonly ValType[];
}

/** A valid component. */
export interface ValidComponent {
  readonly [VALID]: true;
  readonly component: Component;
  readonly type: ComponentType;
  readonly spaces: IndexSpaces;
  /** The nested components, in the order of their definitions. */
  readonly nested: readonly ValidComponent[];
}
