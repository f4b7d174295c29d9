/**
 * The derived tables of a module that was validated before: that of an artifact, or one from another Worker. In: a
 * module whose bodies may be missing. Out: the tables that validateModule (module.ts) derives, except for those that
 * only the validation of bodies reads. Nothing is checked.
 */
import { readBranchHints } from "../wasm/branch_hints.ts";
import type { FeatureSet } from "../settings/features.ts";
import type { Module } from "../wasm/module.ts";
import { canonicalTypeIds } from "../wasm/subtype.ts";
import type { FuncType, GlobalType, MemoryType, TableType } from "../wasm/types.ts";
import { FeatureGate } from "./gate.ts";
import type { AnnotatedModule, ValidModule } from "./valid_module.ts";

/** Returns `module` with its derived tables. `features` are those with which it was validated. */
export function annotateKnownValid(module: Module, features: FeatureSet): ValidModule {
  const { types, imports } = module;
  const gate = new FeatureGate(features);
  const funcs: number[] = [];
  const exactImports = new Set<number>();
  const tags: number[] = [];
  const tableTypes: TableType[] = [];
  const memoryTypes: MemoryType[] = [];
  const globalTypes: GlobalType[] = [];
  for (const { desc } of imports) {
    if (desc.kind === "func") {
      if (desc.exact === true) exactImports.add(funcs.length);
      funcs.push(desc.typeIndex);
    } else if (desc.kind === "table") tableTypes.push(desc.type);
    else if (desc.kind === "memory") memoryTypes.push(desc.type);
    else if (desc.kind === "global") globalTypes.push(desc.type);
    else tags.push(desc.type.typeIndex);
  }
  const imported = {
    importedFuncCount: funcs.length,
    importedTableCount: tableTypes.length,
    importedMemoryCount: memoryTypes.length,
    importedGlobalCount: globalTypes.length,
    importedTagCount: tags.length,
  };
  for (const { typeIndex } of module.funcs) funcs.push(typeIndex);
  for (const { type } of module.tables) tableTypes.push(type);
  for (const type of module.memories) memoryTypes.push(type);
  for (const { type } of module.globals) globalTypes.push(type);
  for (const { typeIndex } of module.tags) tags.push(typeIndex);
  const annotated: AnnotatedModule = {
    ...module,
    ...imported,
    exactImports,
    tableTypes,
    memoryTypes,
    globalTypes,
    funcTypes: funcs.map((index) => types[index].composite as FuncType),
    tagTypes: tags.map((index) => types[index].composite as FuncType),
    funcTypeIndices: Int32Array.from(funcs),
    tagTypeIndices: Int32Array.from(tags),
    declaredFuncs: new Uint8Array(funcs.length),
    canonicalIds: canonicalTypeIds(module),
    branchHints: readBranchHints(module),
    usedFeatures: gate.used,
    hasUnknownFeatures: true,
    gate,
    blockResults: new Map(),
  };
  return annotated as ValidModule;
}
