/**
 * Aliases (Binary, "Alias Definitions"): an export of an instance or core instance, or a definition of an enclosing
 * scope, enters the current index space of its sort.
 */
import type { Alias } from "../model/definitions.ts";
import type { CoreExternType } from "../model/types.ts";
import { appendItem } from "./externs.ts";
import type { Scope } from "./scope.ts";
import { factsOf } from "./type_facts.ts";

/** Kinds of externs by sort. */
const EXTERN_KIND = {
  "core module": "module",
  func: "func",
  value: "value",
  type: "type",
  component: "component",
  instance: "instance",
} as const;

/** Adds the target of an alias to a scope. */
export function addAlias(scope: Scope, alias: Alias): void {
  const declared = scope.kind !== "component";
  switch (alias.kind) {
    case "export":
      if (declared && alias.sort !== "type" && alias.sort !== "instance") failDeclared(scope);
      return aliasExport(scope, alias);
    case "core export":
      if (declared) failDeclared(scope);
      return aliasCoreExport(scope, alias);
    case "outer":
      if (declared && alias.sort !== "type" && alias.sort !== "core type") failDeclared(scope);
      return aliasOuter(scope, alias);
  }
}

function failDeclared(scope: Scope): never {
  return scope.fail("aliases in component and instance types may only refer to types or instances");
}

function aliasExport(scope: Scope, { sort, instance, name }: Extract<Alias, { kind: "export" }>): void {
  const extern = scope.at("instances", instance).exports.get(name);
  if (extern === undefined) scope.fail(`instance ${instance} has no export named \`${name}\``);
  const kind = EXTERN_KIND[sort];
  if (extern.kind !== kind) scope.fail(`export \`${name}\` for instance ${instance} is not a ${kind}`);
  appendItem(scope, extern);
}

function aliasCoreExport(scope: Scope, { sort, instance, name }: Extract<Alias, { kind: "core export" }>): void {
  const extern = scope.at("coreInstances", instance).get(name);
  if (extern === undefined) scope.fail(`core instance ${instance} has no export named \`${name}\``);
  const kind = sort.slice("core ".length);
  if (extern.kind !== kind) scope.fail(`export \`${name}\` for core instance ${instance} is not a ${kind}`);
  appendCoreItem(scope, extern);
}

function appendCoreItem({ spaces }: Scope, extern: CoreExternType): void {
  switch (extern.kind) {
    case "func":
      spaces.coreFuncs.push({ type: extern.type, id: extern.id });
      break;
    case "tag":
      spaces.coreTags.push({ type: extern.type, id: extern.id });
      break;
    case "table":
      spaces.coreTables.push(extern.type);
      break;
    case "memory":
      spaces.coreMemories.push(extern.type);
      break;
    case "global":
      spaces.coreGlobals.push(extern.type);
      break;
  }
}

function aliasOuter(scope: Scope, { sort, count, index }: Extract<Alias, { kind: "outer" }>): void {
  const outer = scope.outer(count);
  switch (sort) {
    case "core module":
      scope.spaces.coreModules.push(outer.at("coreModules", index));
      break;
    case "core type":
      scope.spaces.coreTypes.push(outer.at("coreTypes", index));
      break;
    case "component":
      scope.spaces.components.push(outer.at("components", index));
      break;
    case "type": {
      const type = outer.at("types", index);
      if (scope.leavesComponent(count) && factsOf(type).resources.size > 0) {
        scope.fail(
          "cannot alias outer type which transitively refers to resources not defined in the current component",
        );
      }
      scope.spaces.types.push(type);
      break;
    }
    default:
      scope.fail(`an outer alias cannot refer to a ${sort}`);
  }
}
