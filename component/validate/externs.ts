/**
 * Imports, exports and references to definitions: the type of an import or export as written is resolved; an item
 * enters the index space of its kind; names and resource types are registered with the scope.
 */
import type { ExternDesc, SortIndex } from "../model/definitions.ts";
import type {
  AnyType,
  ComponentType,
  Extern,
  ExternAttributes,
  ExternType,
  InstanceType,
  ResourceId,
} from "../model/types.ts";
import { moduleTypeAt } from "./core_types.ts";
import { chargeCopy, chargeNodes, type Scope, type Side } from "./scope.ts";
import { openInstance } from "./substitution.ts";
import { factsOf } from "./type_facts.ts";
import { registerVisible } from "./visibility.ts";

/** Resolves the type of an import or export; `(sub resource)` makes a new resource type. */
export function resolveExternDesc(scope: Scope, desc: ExternDesc, direction: Side["direction"]): ExternType {
  switch (desc.kind) {
    case "module":
      return { kind: "module", type: moduleTypeAt(scope, desc.type) };
    case "type": {
      if (desc.eq !== undefined) return renamed(scope.at("types", desc.eq));
      const type: AnyType = { kind: "resource", id: { origin: direction === "import" ? "imported" : "exported" } };
      return { kind: "type", type, referenced: type };
    }
    case "value":
      return scope.fail("values are not supported: they are an unfinished feature of the component model");
    case "func": {
      const type = scope.at("types", desc.type);
      return type.kind === "func"
        ? { kind: "func", type }
        : scope.fail(`type index ${desc.type} is not a function type`);
    }
    case "instance": {
      const type = scope.at("types", desc.type);
      if (type.kind !== "instance") scope.fail(`type index ${desc.type} is not an instance type`);
      return { kind: "instance", type };
    }
    case "component": {
      const type = scope.at("types", desc.type);
      if (type.kind !== "component") scope.fail(`type index ${desc.type} is not a component type`);
      return { kind: "component", type };
    }
  }
}

/** The import or export of an existing type: a new node, which carries the name. */
function renamed(referenced: AnyType): ExternType {
  return { kind: "type", type: { ...referenced }, referenced };
}

/** The type of the definition that a reference names, as the argument of an instantiation or as an export. */
export function referencedExtern(scope: Scope, { sort, index }: SortIndex): ExternType {
  switch (sort) {
    case "core module":
      return { kind: "module", type: scope.at("coreModules", index) };
    case "func":
      return { kind: "func", type: scope.at("funcs", index) };
    case "type":
      return renamed(scope.at("types", index));
    case "component":
      return { kind: "component", type: scope.at("components", index) };
    case "instance":
      return { kind: "instance", type: scope.at("instances", index) };
    case "value":
      return scope.fail("values are not supported: they are an unfinished feature of the component model");
    default:
      return scope.fail(`a ${sort} cannot be passed or exported: of the core sorts, only modules can`);
  }
}

/** Appends an item to the index space of its kind. */
export function appendItem(scope: Scope, extern: ExternType): void {
  const { spaces } = scope;
  switch (extern.kind) {
    case "module":
      spaces.coreModules.push(extern.type);
      break;
    case "func":
      spaces.funcs.push(extern.type);
      break;
    case "value":
      spaces.values.push(extern.type);
      break;
    case "type":
      spaces.types.push(extern.type);
      break;
    case "component":
      spaces.components.push(extern.type);
      break;
    case "instance":
      spaces.instances.push(extern.type);
      break;
  }
}

/** Adds an import or export to a scope. */
export function addExtern(
  scope: Scope,
  direction: Side["direction"],
  name: string,
  type: ExternType,
  attributes: ExternAttributes | undefined,
): void {
  const side = scope.side(direction);
  const introduced = introduce(scope, direction, name, type);
  const extern: Extern = attributes === undefined ? introduced : { ...introduced, attributes };
  side.names.add(name, extern, scope.session.offset);
  if (!registerVisible(scope, direction, extern)) {
    const cause = `\`${name}\` uses a type that has no name among the ${direction}s`;
    scope.fail(`${extern.kind} not valid to be used as ${direction}: ${cause}`);
  }
  appendItem(scope, extern);
  side.externs.set(name, extern);
}

/** Registers the resource types that an import or export introduces; returns its type with them. */
function introduce(scope: Scope, direction: Side["direction"], name: string, extern: ExternType): ExternType {
  if (extern.kind === "instance") {
    return { kind: "instance", type: introduceInstance(scope, direction, name, extern.type) };
  }
  if (extern.kind !== "type" || extern.type.kind !== "resource") return extern;
  const { id } = extern.type;
  const isNew = extern.type === extern.referenced;
  if (direction === "import") {
    if (isNew) scope.imported.push({ id, path: [name] });
    return extern;
  }
  if (isNew) scope.defined.add(id);
  if (!scope.paths.has(id)) scope.paths.set(id, [name]);
  return extern;
}

/** Every import or export of an instance has its own resource types where its type says `(sub resource)`. */
function introduceInstance(
  scope: Scope,
  direction: Side["direction"],
  name: string,
  type: InstanceType,
): InstanceType {
  if (type.defined.length > 0) chargeCopy(scope, type, type.defined.length);
  else chargeNodes(scope, type.paths.size);
  const opened = openInstance(type, () => ({ origin: direction === "import" ? "imported" : "exported" }));
  const isNew = (id: ResourceId) => opened !== type && !type.paths.has(id);
  for (const [id, path] of opened.paths) {
    if (direction === "export") {
      if (isNew(id)) scope.defined.add(id);
      if (!scope.paths.has(id)) scope.paths.set(id, [name, ...path]);
    } else if (isNew(id)) scope.imported.push({ id, path: [name, ...path] });
  }
  return opened;
}

/** The type of an export: that of the definition, or the ascribed one, of which the definition must be a subtype. */
export function exportedExtern(scope: Scope, ref: SortIndex, ascribed: ExternDesc | undefined): ExternType {
  const actual = referencedExtern(scope, ref);
  if (ascribed === undefined) return actual;
  const type = resolveExternDesc(scope, ascribed, "export");
  if (type.kind === "instance" || type.kind === "component") chargeCopy(scope, type.type, 0);
  const mismatch = scope.session.subtyping.extern(actual, boundTo(actual, type));
  if (mismatch !== undefined) {
    scope.fail(`ascribed type of export is not compatible with item's type: ${mismatch}`);
  }
  return type;
}

/** The expected type with its new resource types replaced by the actual ones, for the comparison. */
function boundTo(actual: ExternType, expected: ExternType): ExternType {
  const isNew = expected.kind === "type" && expected.type.kind === "resource" && expected.type === expected.referenced;
  if (!isNew || actual.kind !== "type" || actual.type.kind !== "resource") return expected;
  return actual;
}

/** The component type of a scope that has been read to its end. */
export function finishComponent(scope: Scope): ComponentType {
  const { imports: { externs: imports }, exports: { externs: exports }, paths } = scope;
  const imported = scope.imported;
  for (const id of freeResources(imports.values())) {
    if (scope.defined.has(id)) scope.fail("a resource type of this component occurs in its imports");
  }
  const used = freeResources(exports.values());
  const defined = [...scope.defined].filter((id) => used.has(id)).map((id) => {
    const path = paths.get(id) ??
      scope.fail("a resource type of this component occurs in an export, but is not exported");
    return { id, path };
  });
  return { kind: "component", imports, exports, imported, defined, paths };
}

/** The instance type of a scope that has been read to its end. */
export function finishInstance(scope: Scope): InstanceType {
  return { kind: "instance", exports: scope.exports.externs, defined: [...scope.defined], paths: scope.paths };
}

function freeResources(externs: Iterable<Extern>): Set<ResourceId> {
  const found = new Set<ResourceId>();
  for (const extern of externs) {
    if (extern.kind !== "module") { for (const id of factsOf(extern.type).resources) found.add(id); }
  }
  return found;
}
