/**
 * Core types and core modules in components: core type definitions and module types are resolved, and core modules are
 * decoded and validated by the engine. Out: closed types (engine/wasm/subtype.ts), which mean the same in every module.
 */
import { decodeModule } from "@waft/engine/internal/binary/decode";
import { InvalidError, MalformedError } from "@waft/engine/internal/errors";
import { FeatureGate } from "@waft/engine/internal/validate/gate";
import { validateModule } from "@waft/engine/internal/validate/module";
import {
  type Declarations,
  validateGlobalType,
  validateMemoryType,
  validateTableType,
  validateValType,
} from "@waft/engine/internal/validate/types";
import { emptyModule, type ImportDesc } from "@waft/engine/internal/wasm/module";
import {
  appendTypeIds,
  canonicalFuncTypeId,
  canonicalType,
  closeFuncType,
  closeGlobalType,
  closeTableType,
  matchesCompositeType,
  type TypeIds,
} from "@waft/engine/internal/wasm/subtype";
import { heapOf, isRef, type SubType } from "@waft/engine/internal/wasm/types";
import type { CoreTypeExpr, ModuleDeclaration } from "../model/definitions.ts";
import type { CoreExternType, CoreFuncType, CoreImport, ModuleType } from "../model/types.ts";
import type { ClosedFuncType, CoreTypeEntry } from "../model/valid_component.ts";
import type { Scope } from "./scope.ts";

/** The closed function type with a canonical id of its own. */
export function closedFuncType(type: CoreFuncType): ClosedFuncType {
  return { type, id: canonicalFuncTypeId(type) };
}

/** The context for the engine's rules of types, in an index space of `count` types. */
function declarationsOf(scope: Scope, count: number): Declarations {
  const module = emptyModule();
  module.types.length = count;
  return { module, gate: new FeatureGate(scope.session.features), locate: () => scope.session.offset };
}

/** Limits on the operands of core types, as for modules. */
const MAX_OPERANDS = 1_000;
const MAX_FIELDS = 10_000;

/** The component model has no such types. */
const NO_DESCRIPTORS = "custom descriptors are not possible in the core types of a component";

function checkSubType(scope: Scope, declarations: Declarations, type: SubType): void {
  const { composite } = type;
  if (type.describes !== undefined || type.descriptor !== undefined) scope.fail(NO_DESCRIPTORS);
  if (composite.kind === "func") {
    if (composite.params.length > MAX_OPERANDS || composite.results.length > MAX_OPERANDS) {
      scope.fail(`too many parameters or results: at most ${MAX_OPERANDS} are possible`);
    }
    for (const type of [...composite.params, ...composite.results]) validateValType(declarations, type);
  } else if (composite.kind !== "cont") {
    const fields = composite.kind === "struct" ? composite.fields : [composite.field];
    if (fields.length > MAX_FIELDS) scope.fail(`too many fields: at most ${MAX_FIELDS} are possible`);
    for (const field of fields) validateValType(declarations, field.storage);
  }
}

/** Resolves a recursive group in the index space of `ids`; appends its canonical ids. */
function resolveGroup(scope: Scope, ids: number[], types: readonly SubType[]): void {
  const declarations = declarationsOf(scope, ids.length + types.length);
  for (const type of types) checkSubType(scope, declarations, type);
  const start = ids.length;
  appendTypeIds(ids, types, scope.session.offset);
  types.forEach(({ supertypes }, i) => {
    if (supertypes.length === 0) return;
    const own = canonicalType(ids[start + i]);
    const above = canonicalType(ids[supertypes[0]]);
    if (above.final) scope.fail(`sub type ${start + i} has final supertype ${supertypes[0]}`);
    if (!matchesCompositeType(own.composite, above.composite)) {
      scope.fail(`sub type ${start + i} does not match super type ${supertypes[0]}`);
    }
  });
}

/** Resolves a core type definition and appends its entries to the scope's index space. */
export function defineCoreType(scope: Scope, expr: CoreTypeExpr): void {
  const { coreTypes } = scope.spaces;
  if (expr.kind === "module") {
    coreTypes.push(resolveModuleType(scope, expr.declarations));
    return;
  }
  // A module type in between occupies an index to which a core type cannot refer.
  const ids = coreTypes.map((entry) => entry.kind === "type" ? entry.id : 0);
  for (const { supertypes, composite } of expr.types) {
    for (const index of [...supertypes, ...referencesOf(composite)]) needCoreType(scope, coreTypes, index);
  }
  const start = ids.length;
  resolveGroup(scope, ids, expr.types);
  for (const id of ids.slice(start)) coreTypes.push({ kind: "type", id });
}

/** The indices of the types that a type refers to. */
function referencesOf(composite: SubType["composite"]): number[] {
  if (composite.kind === "cont") return [composite.func];
  const types = composite.kind === "func"
    ? [...composite.params, ...composite.results]
    : (composite.kind === "struct" ? composite.fields : [composite.field]).map(({ storage }) => storage);
  return types.filter(isRef).map(heapOf).filter((heap) => heap >= 0);
}

function needCoreType(scope: Scope, entries: readonly CoreTypeEntry[], index: number): void {
  if (entries[index]?.kind === "module") scope.fail(`type mismatch: core type ${index} is a module type`);
}

/** The function type that the core type with index `index` is. */
export function coreFuncTypeAt(scope: Scope, index: number): CoreFuncType {
  const entry = scope.at("coreTypes", index);
  if (entry.kind === "type") {
    const { composite } = canonicalType(entry.id);
    if (composite.kind === "func") return composite;
  }
  return scope.fail(`core type index ${index} is not a function type`);
}

/** The module type with index `index`. */
export function moduleTypeAt(scope: Scope, index: number): ModuleType {
  const entry = scope.at("coreTypes", index);
  return entry.kind === "module" ? entry : scope.fail(`core type index ${index} is not a module type`);
}

function resolveModuleType(scope: Scope, declarations: readonly ModuleDeclaration[]): ModuleType {
  const { session } = scope;
  const ids: number[] = [];
  const imports: CoreImport[] = [];
  const exports = new Map<string, CoreExternType>();
  for (const declaration of declarations) {
    session.offset = declaration.offset;
    switch (declaration.kind) {
      case "type":
        if (declaration.type.kind === "module") scope.fail("a module type cannot define a module type");
        resolveGroup(scope, ids, declaration.type.types);
        break;
      case "alias":
        ids.push(outerTypeId(scope, declaration, ids));
        break;
      case "import": {
        const { module, name } = declaration;
        imports.push({ module, name, type: resolveExtern(scope, declaration.desc, ids) });
        break;
      }
      case "export":
        if (exports.has(declaration.name)) scope.fail(`export name \`${declaration.name}\` already defined`);
        exports.set(declaration.name, resolveExtern(scope, declaration.desc, ids));
    }
  }
  checkImportNames(scope, imports);
  return { kind: "module", imports, exports };
}

/** The type that an outer alias of a module type refers to; count 0 is the module type itself. */
function outerTypeId(scope: Scope, { count, index }: { count: number; index: number }, own: readonly number[]): number {
  if (count === 0) {
    if (index >= own.length) scope.fail(`unknown type ${index}: type index out of bounds`);
    return own[index];
  }
  const entry = scope.outer(count - 1).at("coreTypes", index);
  if (entry.kind !== "type") scope.fail(`outer alias of core type ${index}: a module type cannot alias a module type`);
  return entry.id;
}

function resolveExtern(scope: Scope, desc: ImportDesc, ids: number[]): CoreExternType {
  const declarations = declarationsOf(scope, ids.length);
  switch (desc.kind) {
    case "func":
      if (desc.exact === true) scope.fail(NO_DESCRIPTORS);
      return { kind: "func", ...funcTypeOf(scope, desc.typeIndex, ids) };
    case "tag":
      return { kind: "tag", ...funcTypeOf(scope, desc.type.typeIndex, ids) };
    case "table":
      validateTableType(declarations, desc.type);
      return { kind: "table", type: closeTableType(desc.type, ids) };
    case "memory":
      validateMemoryType(declarations, desc.type);
      return desc;
    case "global":
      validateGlobalType(declarations, desc.type);
      return { kind: "global", type: closeGlobalType(desc.type, ids) };
  }
}

function funcTypeOf(scope: Scope, index: number, ids: readonly number[]): ClosedFuncType {
  if (index >= ids.length) scope.fail(`unknown type ${index}: type index out of bounds`);
  const { composite } = canonicalType(ids[index]);
  if (composite.kind !== "func") scope.fail(`type index ${index} is not a function type`);
  return { type: composite, id: ids[index] };
}

/** Components name core imports by the pair of names, so a pair must be unique. */
function checkImportNames(scope: Scope, imports: readonly CoreImport[]): void {
  const names = new Set<string>();
  for (const { module, name } of imports) {
    const key = JSON.stringify([module, name]);
    if (names.has(key)) scope.fail(`duplicate import name \`${module}:${name}\``);
    names.add(key);
  }
}

/** Decodes and validates a core module; returns its type. Errors have offsets in the outermost component. */
export function validateCoreModule(scope: Scope, bytes: Uint8Array, offset: number): ModuleType {
  const { features, bodies } = scope.session;
  const module = withinModule(offset, () => validateModule(decodeModule(bytes), features, { bodies }));
  const ids: TypeIds = module.canonicalIds;
  const func = (index: number, type: CoreFuncType): ClosedFuncType => ({
    type: closeFuncType(type, ids),
    id: ids[index],
  });
  const imports = module.imports.map(({ module: from, name, desc }): CoreImport => {
    switch (desc.kind) {
      case "func":
        return {
          module: from,
          name,
          type: { kind: "func", ...func(desc.typeIndex, funcComposite(module, desc.typeIndex)) },
        };
      case "tag": {
        const { typeIndex } = desc.type;
        return { module: from, name, type: { kind: "tag", ...func(typeIndex, funcComposite(module, typeIndex)) } };
      }
      case "table":
        return { module: from, name, type: { kind: "table", type: closeTableType(desc.type, ids) } };
      case "memory":
        return { module: from, name, type: desc };
      case "global":
        return { module: from, name, type: { kind: "global", type: closeGlobalType(desc.type, ids) } };
    }
  });
  checkImportNames(scope, imports);
  const exports = new Map(module.exports.map(({ name, kind, index }): [string, CoreExternType] => {
    switch (kind) {
      case "func":
        return [name, { kind, ...func(module.funcTypeIndices[index], module.funcTypes[index]) }];
      case "tag":
        return [name, { kind, ...func(module.tagTypeIndices[index], module.tagTypes[index]) }];
      case "table":
        return [name, { kind, type: closeTableType(module.tableTypes[index], ids) }];
      case "memory":
        return [name, { kind, type: module.memoryTypes[index] }];
      case "global":
        return [name, { kind, type: closeGlobalType(module.globalTypes[index], ids) }];
    }
  }));
  return { kind: "module", imports, exports };
}

function funcComposite(module: { readonly types: readonly SubType[] }, index: number): CoreFuncType {
  return module.types[index].composite as CoreFuncType;
}

/** Calls `action` for a core module at `base`, and makes the offsets of its errors absolute. */
export function withinModule<T>(base: number, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if ((error instanceof InvalidError || error instanceof MalformedError) && error.place.offset !== undefined) {
      error.place = { ...error.place, offset: error.place.offset + base };
    }
    throw error;
  }
}
