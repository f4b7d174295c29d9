/**
 * Instance definitions (Binary, "Instance Definitions"): instantiations, whose arguments must match the imports, and
 * instances made of exports. Out: the types of the instances.
 */
import type { CoreInstanceExpr, CoreSort, InstanceExpr, NamedSortIndex } from "../model/definitions.ts";
import type {
  AnyType,
  ComponentType,
  CoreExternType,
  ExportPath,
  Extern,
  InstanceType,
  ResourceId,
} from "../model/types.ts";
import type { CoreInstanceType } from "../model/valid_component.ts";
import { coreMismatch } from "./core_subtype.ts";
import { referencedExtern } from "./externs.ts";
import { NameSet } from "./name_set.ts";
import { chargeCopy, chargeNodes, type Scope } from "./scope.ts";
import { Substitution } from "./substitution.ts";
import { bindResources } from "./subtype.ts";

/** The type of a core instance. */
export function coreInstanceType(scope: Scope, expr: CoreInstanceExpr): CoreInstanceType {
  return expr.kind === "exports" ? coreExports(scope, expr.exports) : instantiateModule(scope, expr);
}

function coreExports(
  scope: Scope,
  entries: readonly { readonly name: string; readonly sort: CoreSort; readonly index: number }[],
): CoreInstanceType {
  const exports = new Map<string, CoreExternType>();
  for (const { name, sort, index } of entries) {
    const type = coreExternAt(scope, sort, index);
    if (exports.has(name)) scope.fail(`export name \`${name}\` already defined`);
    exports.set(name, type);
  }
  return exports;
}

function coreExternAt(scope: Scope, sort: CoreSort, index: number): CoreExternType {
  switch (sort) {
    case "func":
      return { kind: "func", ...scope.at("coreFuncs", index) };
    case "tag":
      return { kind: "tag", ...scope.at("coreTags", index) };
    case "table":
      return { kind: "table", type: scope.at("coreTables", index) };
    case "memory":
      return { kind: "memory", type: scope.at("coreMemories", index) };
    case "global":
      return { kind: "global", type: scope.at("coreGlobals", index) };
    default:
      return scope.fail(`a core instance cannot export a core ${sort}`);
  }
}

function instantiateModule(
  scope: Scope,
  { module, args }: Extract<CoreInstanceExpr, { kind: "instantiate" }>,
): CoreInstanceType {
  const { imports, exports } = scope.at("coreModules", module);
  const given = new Map<string, CoreInstanceType>();
  for (const { name, instance } of args) {
    if (given.has(name)) scope.fail(`duplicate module instantiation argument named \`${name}\``);
    given.set(name, scope.at("coreInstances", instance));
  }
  for (const { module: from, name, type } of imports) {
    const instance = given.get(from) ?? scope.fail(`missing module instantiation argument named \`${from}\``);
    const actual = instance.get(name);
    if (actual === undefined) {
      scope.fail(`module instantiation argument \`${from}\` does not export an item named \`${name}\``);
    }
    const mismatch = coreMismatch(actual, type);
    if (mismatch !== undefined) scope.fail(`type mismatch for import \`${from}::${name}\`: ${mismatch}`);
  }
  return exports;
}

/** The type of an instance. */
export function instanceType(scope: Scope, expr: InstanceExpr): InstanceType {
  if (expr.kind === "exports") return exportsInstance(scope, expr.exports);
  return instantiateComponent(scope, scope.at("components", expr.component), expr.args);
}

function exportsInstance(scope: Scope, entries: readonly NamedSortIndex[]): InstanceType {
  const names = new NameSet("export", false);
  const exports = new Map<string, Extern>();
  const paths = new Map<ResourceId, ExportPath>();
  for (const entry of entries) {
    const type = argumentExtern(scope, entry);
    const extern: Extern = entry.attributes === undefined ? type : { ...type, attributes: entry.attributes };
    names.add(entry.name, extern, scope.session.offset);
    exports.set(entry.name, extern);
    for (const [id, path] of resourcePaths(scope, entry.name, extern)) if (!paths.has(id)) paths.set(id, path);
  }
  return { kind: "instance", exports, defined: [], paths };
}

function resourcePaths(scope: Scope, name: string, extern: Extern): [ResourceId, ExportPath][] {
  if (extern.kind === "type" && extern.type.kind === "resource") return [[extern.type.id, [name]]];
  if (extern.kind !== "instance") return [];
  chargeNodes(scope, extern.type.paths.size);
  return [...extern.type.paths].map(([id, path]) => [id, [name, ...path]]);
}

function instantiateComponent(scope: Scope, type: ComponentType, args: readonly NamedSortIndex[]): InstanceType {
  const given = new Map<string, Extern>();
  for (const arg of args) {
    const extern = argumentExtern(scope, arg);
    if (given.has(arg.name)) {
      scope.fail(`instantiation argument \`${arg.name}\` conflicts with previous argument \`${arg.name}\``);
    }
    given.set(arg.name, extern);
  }
  chargeCopy(scope, type, type.defined.length);
  const bound = bindResources(type.imported, type.imports, given);
  const { subtyping } = scope.session;
  for (const [name, expected] of type.imports) {
    const actual = given.get(name) ?? scope.fail(`missing import named \`${name}\``);
    const mismatch = subtyping.extern(actual, bound.extern(expected));
    if (mismatch !== undefined) scope.fail(`type mismatch for import \`${name}\`: ${mismatch}`);
  }
  return openExports(scope, type, bound, given);
}

/** The type of an argument or inline export; a type is passed as it is, without a name of its own. */
function argumentExtern(scope: Scope, arg: NamedSortIndex): Extern {
  const extern = referencedExtern(scope, arg);
  return extern.kind === "type" ? { ...extern, type: extern.referenced } : extern;
}

/** Collects the types of arguments that replace the types of imports, by the nodes of the imports. */
function collectRenamed(declared: Extern, given: Extern, nodes: Map<AnyType, AnyType>): void {
  if (declared.kind === "type" && given.kind === "type") nodes.set(declared.type, given.type);
  if (declared.kind !== "instance" || given.kind !== "instance") return;
  for (const [name, extern] of declared.type.exports) {
    const actual = given.type.exports.get(name);
    if (actual !== undefined) collectRenamed(extern, actual, nodes);
  }
}

/** The exports of a new instance: abstract resource types of imports are replaced, defined ones are fresh. */
function openExports(
  scope: Scope,
  type: ComponentType,
  bound: Substitution,
  given: ReadonlyMap<string, Extern>,
): InstanceType {
  const ids = new Map<ResourceId, ResourceId>();
  for (const { id } of type.imported) ids.set(id, bound.id(id));
  for (const { id } of type.defined) {
    const fresh: ResourceId = { origin: "exported" };
    scope.defined.add(fresh);
    ids.set(id, fresh);
  }
  const nodes = new Map<AnyType, AnyType>();
  for (const [name, declared] of type.imports) {
    const actual = given.get(name);
    if (actual !== undefined) collectRenamed(declared, actual, nodes);
  }
  const substitution = new Substitution(ids, nodes);
  const { exports, paths } = type;
  return { kind: "instance", exports: substitution.externs(exports), defined: [], paths: substitution.paths(paths) };
}
