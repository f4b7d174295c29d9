/**
 * Syntax → resolved packages (WIT, "Name resolution", "Union of Worlds with include", "Transitive imports and worlds").
 * In: parsed files, grouped by package. Out: packages whose names are references, without the items that the feature
 * gates exclude.
 *
 * Errors are InvalidError with file, line and column.
 */
import { InvalidError } from "@waft/engine/internal/errors";
import { printable } from "../model/invalid.ts";
import { mapValueType, type ValueType } from "../model/types.ts";
import {
  interfaceId,
  isResource,
  originOf,
  packageId,
  type WitFunc,
  type WitInterface,
  type WitPackage,
  type WitType,
  type WitTypeDef,
  type WitWorld,
  type WorldItem,
} from "./document.ts";
import type {
  Annotations,
  ExternItem,
  FileSyntax,
  FuncItem,
  IncludeItem,
  InterfaceItem,
  InterfaceSyntax,
  Name,
  PackageName,
  PackageSyntax,
  TypeItem,
  TypeSyntax,
  UsePath,
  WorldSyntax,
} from "./syntax.ts";
import { failAt, type WitSource } from "./tokens.ts";

/** Options of resolution. */
export interface ResolveOptions {
  /** Enabled features of `@unstable` items. */
  readonly features?: readonly string[];
  /** Enables every feature. */
  readonly allFeatures?: boolean;
}

/** The packages of a set of files. */
export interface WitDocument {
  /** The root package, if a file of the root declares one. */
  readonly root: WitPackage;
  /** All packages by id, the root included. */
  readonly packages: ReadonlyMap<string, WitPackage>;
}

/** The part of a package that one file contains. */
interface Part {
  readonly source: WitSource;
  readonly syntax: PackageSyntax;
}

interface PackageState {
  readonly package: WitPackage;
  readonly parts: Part[];
  readonly interfaces: Map<string, InterfaceState>;
  readonly worlds: Map<string, WorldState>;
}

interface InterfaceState {
  readonly part: Part;
  readonly syntax: InterfaceSyntax;
  readonly scope: PackageState;
  stage: "new" | "active" | "done";
  readonly item: WitInterface;
}

interface WorldState {
  readonly part: Part;
  readonly syntax: WorldSyntax;
  readonly scope: PackageState;
  stage: "new" | "active" | "done";
  readonly item: WitWorld;
}

/**
 * Resolves files. The files of `root` form one package, in which nested packages may be defined; each group of
 * `dependencies` forms one as well.
 */
export function resolveWit(
  root: readonly FileSyntax[],
  dependencies: readonly (readonly FileSyntax[])[] = [],
  options: ResolveOptions = {},
): WitDocument {
  return new Resolver(options).run(root, dependencies);
}

class Resolver {
  readonly #states = new Map<string, PackageState>();
  readonly #features: ReadonlySet<string>;
  readonly #allFeatures: boolean;
  /** Types under resolution, for cycles. */
  readonly #activeTypes = new Set<WitTypeDef>();

  constructor({ features = [], allFeatures = false }: ResolveOptions) {
    this.#features = new Set(features);
    this.#allFeatures = allFeatures;
  }

  run(root: readonly FileSyntax[], dependencies: readonly (readonly FileSyntax[])[]): WitDocument {
    for (const files of dependencies) this.#declareGroup(files);
    const main = this.#declareGroup(root);
    for (const state of this.#states.values()) {
      for (const item of state.interfaces.values()) this.#resolveInterface(item);
    }
    for (const state of this.#states.values()) for (const item of state.worlds.values()) this.#resolveWorld(item);
    const packages = new Map([...this.#states].map(([id, state]) => [id, state.package]));
    if (main === undefined) {
      throw new InvalidError("no package is declared: begin a file with `package namespace:name;`");
    }
    return { root: main.package, packages };
  }

  #fail(part: Part, at: number, message: string): never {
    try {
      return failAt(part.source, at, message);
    } catch (error) {
      throw new InvalidError(printable(message), (error as InvalidError).place);
    }
  }

  /** Declares the packages of one group of files; returns the group's own, or the first nested one. */
  #declareGroup(files: readonly FileSyntax[]): PackageState | undefined {
    const name = files.find((file) => file.root.name !== undefined)?.root.name;
    let own: PackageState | undefined;
    for (const { source, root } of files) {
      const part: Part = { source, syntax: { ...root, ...(name === undefined ? {} : { name }) } };
      if (name === undefined && root.items.length > 0) this.#fail(part, 0, "this file declares no package");
      if (name === undefined) continue;
      if (root.name !== undefined && packageId(root.name) !== packageId(name)) {
        const found = `${packageId(root.name)} and ${packageId(name)}`;
        this.#fail(part, 0, `the files of one package declare different packages: ${found}`);
      }
      own = this.#declare(part);
    }
    for (const { source, nested } of files) {
      for (const syntax of nested) {
        const state = this.#declare({ source, syntax });
        own ??= state;
      }
    }
    return own;
  }

  #declare(part: Part): PackageState {
    const name = part.syntax.name ?? this.#fail(part, 0, "this file declares no package");
    const id = packageId(name);
    const state: PackageState = this.#states.get(id) ?? {
      package: { name, docs: "", interfaces: new Map(), worlds: new Map() },
      parts: [],
      interfaces: new Map(),
      worlds: new Map(),
    };
    this.#states.set(id, state);
    state.parts.push(part);
    state.package.docs += part.syntax.docs;
    for (const item of part.syntax.items) {
      if (item.kind === "use" || !this.#enabled(item, name)) continue;
      const taken = state.interfaces.has(item.name.text) || state.worlds.has(item.name.text);
      if (taken) this.#fail(part, item.name.at, `the name \`${item.name.text}\` is already defined in ${id}`);
      if (item.kind === "interface") this.#declareInterface(state, part, item);
      else this.#declareWorld(state, part, item);
    }
    return state;
  }

  #declareInterface(scope: PackageState, part: Part, syntax: InterfaceSyntax): void {
    const { text: name } = syntax.name;
    const item: WitInterface = {
      ...annotationsOf(syntax),
      name,
      package: scope.package,
      types: new Map(),
      funcs: new Map(),
    };
    scope.interfaces.set(name, { part, syntax, scope, stage: "new", item });
    scope.package.interfaces.set(name, item);
  }

  #declareWorld(scope: PackageState, part: Part, syntax: WorldSyntax): void {
    const { text: name } = syntax.name;
    const item: WitWorld = {
      ...annotationsOf(syntax),
      name,
      package: scope.package,
      imports: new Map(),
      exports: new Map(),
    };
    scope.worlds.set(name, { part, syntax, scope, stage: "new", item });
    scope.package.worlds.set(name, item);
  }

  /** True unless a gate excludes the item. */
  #enabled({ unstable, since }: Annotations, { version }: PackageName): boolean {
    if (unstable !== undefined) return this.#allFeatures || this.#features.has(unstable);
    return since === undefined || version === undefined || compareVersions(since, version) <= 0;
  }

  /** The interface or world that a path names. */
  #lookUp(scope: PackageState, part: Part, path: UsePath): InterfaceState | WorldState {
    const { name } = path;
    if (path.package !== undefined) {
      const state = this.#states.get(packageId(path.package));
      if (state === undefined) {
        this.#fail(part, name.at, `the package ${packageId(path.package)} is not found: is it missing in \`deps\`?`);
      }
      return state.interfaces.get(name.text) ?? state.worlds.get(name.text) ??
        this.#fail(part, name.at, `${packageId(path.package)} has no interface or world \`${name.text}\``);
    }
    for (const item of part.syntax.items) {
      if (item.kind !== "use" || item.as.text !== name.text) continue;
      if (item.path.package === undefined && item.path.name.text === name.text) continue;
      return this.#lookUp(scope, part, item.path);
    }
    return scope.interfaces.get(name.text) ?? scope.worlds.get(name.text) ??
      this.#fail(part, name.at, `the name \`${name.text}\` is not defined`);
  }

  #interfaceAt(scope: PackageState, part: Part, path: UsePath): WitInterface {
    const state = this.#lookUp(scope, part, path);
    if (state.syntax.kind === "world") {
      this.#fail(part, path.name.at, `\`${path.name.text}\` is a world, not an interface`);
    }
    const found = state as InterfaceState;
    this.#resolveInterface(found);
    return found.item;
  }

  #resolveInterface(state: InterfaceState): void {
    if (state.stage === "done") return;
    if (state.stage === "active") {
      this.#fail(state.part, state.syntax.name.at, `the interface \`${state.syntax.name.text}\` depends on itself`);
    }
    state.stage = "active";
    this.#fillInterface(state.scope, state.part, state.item, state.syntax.items);
    state.stage = "done";
  }

  #fillInterface(scope: PackageState, part: Part, item: WitInterface, syntax: readonly InterfaceItem[]): void {
    const items = syntax.filter((row) => this.#enabled(row, scope.package.name));
    const types = new TypeScope(item, item.types);
    this.#defineTypes(scope, part, types, items.filter((row) => row.kind !== "func"));
    for (const row of items) {
      if (row.kind !== "type" || row.type.kind !== "resource") continue;
      const def = types.get(row.name.text);
      for (const func of row.type.funcs) {
        if (this.#enabled(func, scope.package.name)) this.#addFunc(part, types, item.funcs, func, def);
      }
    }
    for (const row of items) if (row.kind === "func") this.#addFunc(part, types, item.funcs, row, undefined);
  }

  /** Declares and resolves the types of a scope; they may refer to each other in any order. */
  #defineTypes(scope: PackageState, part: Part, types: TypeScope, items: readonly InterfaceItem[]): void {
    const pending: [WitTypeDef, TypeItem][] = [];
    for (const item of items) {
      if (item.kind === "use") this.#use(scope, part, types, item);
      else if (item.kind === "type") {
        const def = types.declare(item.name.text, annotationsOf(item)) ?? this.#duplicate(part, item.name);
        pending.push([def, item]);
      }
    }
    types.pending = new Map(pending);
    for (const [def] of pending) this.#resolveDef(part, types, def);
  }

  #duplicate(part: Part, name: Name): never {
    return this.#fail(part, name.at, `the name \`${name.text}\` is already defined`);
  }

  #use(scope: PackageState, part: Part, types: TypeScope, item: Extract<InterfaceItem, { kind: "use" }>): void {
    const from = this.#interfaceAt(scope, part, item.path);
    for (const { name, as } of item.names) {
      const target = from.types.get(name.text) ??
        this.#fail(part, name.at, `the interface \`${interfaceId(from)}\` has no type \`${name.text}\``);
      const def = types.declare(as.text, annotationsOf(item)) ?? this.#duplicate(part, as);
      def.type = { kind: "use", target };
    }
  }

  #resolveDef(part: Part, types: TypeScope, def: WitTypeDef): void {
    const item = types.pending.get(def);
    if (item === undefined) return;
    if (this.#activeTypes.has(def)) this.#fail(part, item.name.at, `the type \`${def.name}\` refers to itself`);
    this.#activeTypes.add(def);
    const { type } = item;
    if (type.kind === "resource") def.type = { kind: "resource" };
    else if (type.kind === "alias") def.type = { kind: "alias", type: this.#type(part, types, type.type) };
    else {
      def.type = this.#shape(part, types, type) as WitTypeDef["type"];
      if (item.labelDocs !== undefined) def.labelDocs = item.labelDocs;
    }
    types.pending.delete(def);
    this.#activeTypes.delete(def);
  }

  #named(part: Part, types: TypeScope, name: Name): WitTypeDef {
    const def = types.get(name.text) ?? this.#fail(part, name.at, `the type \`${name.text}\` is not defined`);
    const item = types.pending.get(def);
    // A handle may refer to a resource that is being defined.
    if (item !== undefined && item.type.kind !== "resource") this.#resolveDef(part, types, def);
    else if (item !== undefined) def.type = { kind: "resource" };
    return def;
  }

  #type(part: Part, types: TypeScope, syntax: TypeSyntax): WitType {
    if (syntax.kind !== "named") return this.#shape(part, types, syntax);
    const def = this.#named(part, types, syntax.name);
    return isResource(def) ? { kind: "own", resource: def } : { kind: "named", def };
  }

  #shape(part: Part, types: TypeScope, syntax: ValueType<TypeSyntax, Name>): WitType {
    return mapValueType(syntax, (operand) => this.#type(part, types, operand), (name) => {
      const def = this.#named(part, types, name);
      return isResource(def) ? def : this.#fail(part, name.at, `\`${name.text}\` is not a resource`);
    });
  }

  #addFunc(
    part: Part,
    types: TypeScope,
    funcs: Map<string, WitFunc>,
    item: FuncItem,
    resource: WitTypeDef | undefined,
  ): void {
    const func = this.#func(part, types, item, resource);
    const id = funcName(func);
    if (funcs.has(id) || (resource === undefined && types.get(id) !== undefined)) this.#duplicate(part, item.name);
    funcs.set(id, func);
  }

  #func(part: Part, types: TypeScope, item: FuncItem, resource: WitTypeDef | undefined): WitFunc {
    const { async, params, result } = item.type;
    const seen = new Set<string>();
    for (const { name } of params) {
      if (seen.has(name)) this.#fail(part, item.name.at, `the parameter \`${name}\` occurs twice`);
      seen.add(name);
    }
    const resolved = result === undefined ? undefined : this.#type(part, types, result);
    if (item.funcKind === "constructor" && resolved !== undefined) {
      this.#checkConstructor(part, item, resource, resolved);
    }
    return {
      ...annotationsOf(item),
      name: item.name.text,
      kind: item.funcKind,
      ...(resource === undefined ? {} : { resource }),
      async,
      params: params.map(({ name, type }) => ({ name, type: this.#type(part, types, type) })),
      ...(resolved === undefined ? {} : { result: resolved }),
    };
  }

  #checkConstructor(part: Part, item: FuncItem, resource: WitTypeDef | undefined, result: WitType): void {
    const own = result.kind === "result" ? result.ok : undefined;
    if (own?.kind === "own" && own.resource === resource) return;
    this.#fail(part, item.name.at, `a fallible constructor must return \`result<${resource?.name}, …>\``);
  }

  #resolveWorld(state: WorldState): void {
    if (state.stage === "done") return;
    const { part, syntax, scope, item: world } = state;
    if (state.stage === "active") this.#fail(part, syntax.name.at, `the world \`${syntax.name.text}\` includes itself`);
    state.stage = "active";
    const items = syntax.items.filter((row) => this.#enabled(row, scope.package.name));
    const types = new TypeScope(world, new Map());
    this.#defineTypes(scope, part, types, items.filter((row) => row.kind === "use" || row.kind === "type"));
    for (const item of items) {
      switch (item.kind) {
        case "import":
        case "export":
          this.#addExtern(scope, part, world, types, item);
          break;
        case "use":
          for (const { as } of item.names) this.#addWorldType(part, world, types, as);
          break;
        case "type":
          this.#addWorldType(part, world, types, item.name);
          if (item.type.kind === "resource") this.#addWorldMethods(state, types, item);
      }
    }
    for (const item of items) if (item.kind === "include") this.#include(state, item);
    addTransitiveImports(world);
    state.stage = "done";
  }

  #addWorldType(part: Part, world: WitWorld, types: TypeScope, name: Name): void {
    const def = types.get(name.text);
    if (def === undefined) return;
    this.#addItem(part, world.imports, name.at, name.text, { ...annotationsOf(def), kind: "type", def });
  }

  #addWorldMethods({ part, scope, item: world }: WorldState, types: TypeScope, item: TypeItem): void {
    if (item.type.kind !== "resource") return;
    const def = types.get(item.name.text);
    for (const row of item.type.funcs) {
      if (!this.#enabled(row, scope.package.name)) continue;
      const func = this.#func(part, types, row, def);
      this.#addItem(part, world.imports, row.name.at, funcName(func), { ...annotationsOf(row), kind: "func", func });
    }
  }

  #addExtern(scope: PackageState, part: Part, world: WitWorld, types: TypeScope, item: ExternItem): void {
    const items = item.kind === "import" ? world.imports : world.exports;
    const annotations = annotationsOf(item);
    const { name, type } = item;
    const at = name?.at ?? 0;
    switch (type.kind) {
      case "func": {
        if (name === undefined) return;
        const func = this.#func(
          part,
          types,
          { ...item, kind: "func", name, funcKind: "free", type: type.type },
          undefined,
        );
        return this.#addItem(part, items, at, name.text, { ...annotations, kind: "func", func });
      }
      case "inline": {
        if (name === undefined) return;
        const inline: WitInterface = { ...annotations, name: name.text, types: new Map(), funcs: new Map() };
        this.#fillInterface(scope, part, inline, type.items);
        const added: WorldItem = { ...annotations, kind: "interface", interface: inline, label: name.text };
        return this.#addItem(part, items, at, name.text, added);
      }
      case "path": {
        const target = this.#interfaceAt(scope, part, type.path);
        const label = name === undefined ? {} : { label: name.text };
        const key = name?.text ?? interfaceId(target);
        this.#addItem(part, items, type.path.name.at, key, {
          ...annotations,
          kind: "interface",
          interface: target,
          ...label,
        });
      }
    }
  }

  #addItem(part: Part, items: Map<string, WorldItem>, at: number, key: string, item: WorldItem): void {
    if (items.has(key)) this.#fail(part, at, `the name \`${key}\` occurs twice in this world`);
    items.set(key, item);
  }

  #include({ part, scope, item: world }: WorldState, item: IncludeItem): void {
    const target = this.#lookUp(scope, part, item.path);
    if (target.syntax.kind !== "world") {
      this.#fail(part, item.path.name.at, `\`${item.path.name.text}\` is not a world`);
    }
    const included = target as WorldState;
    this.#resolveWorld(included);
    const names = new Map(item.names.map(({ name, as }) => [name.text, as.text]));
    const used = new Set<string>();
    for (const side of ["imports", "exports"] as const) {
      for (const [key, row] of included.item[side]) {
        const renamed = names.get(key);
        if (renamed !== undefined) used.add(key);
        this.#includeItem(
          part,
          item,
          world[side],
          renamed ?? key,
          renamed === undefined ? row : renameItem(row, renamed),
        );
      }
    }
    const missing = item.names.find(({ name }) => !used.has(name.text));
    if (missing !== undefined) {
      this.#fail(part, missing.name.at, `the included world has no import or export \`${missing.name.text}\``);
    }
  }

  #includeItem(part: Part, item: IncludeItem, items: Map<string, WorldItem>, key: string, row: WorldItem): void {
    const present = items.get(key);
    if (present === undefined) items.set(key, row);
    else if (row.kind !== "interface" || row.label !== undefined || present.kind !== "interface") {
      if (row.kind === "type" && present.kind === "type" && originOf(row.def) === originOf(present.def)) return;
      this.#fail(
        part,
        item.path.name.at,
        `the name \`${key}\` of the included world occurs in this world: rename it by \`with\``,
      );
    }
  }
}

/** The types of an interface or world during resolution. */
class TypeScope {
  readonly #owner: WitInterface | WitWorld;
  readonly #types: Map<string, WitTypeDef>;
  /** Types that are declared, but not resolved. */
  pending = new Map<WitTypeDef, TypeItem>();

  constructor(owner: WitInterface | WitWorld, types: Map<string, WitTypeDef>) {
    this.#owner = owner;
    this.#types = types;
  }

  get(name: string): WitTypeDef | undefined {
    return this.#types.get(name);
  }

  /** Declares a type; undefined if the name is taken. */
  declare(name: string, annotations: Annotations): WitTypeDef | undefined {
    if (this.#types.has(name)) return undefined;
    const def: WitTypeDef = { ...annotations, name, owner: this.#owner, type: { kind: "resource" } };
    this.#types.set(name, def);
    return def;
  }
}

function funcName({ kind, name, resource }: WitFunc): string {
  if (resource === undefined) return name;
  return kind === "constructor" ? `[constructor]${resource.name}` : `[${kind}]${resource.name}.${name}`;
}

function annotationsOf({ docs, since, unstable, deprecated, externalId }: Annotations): Annotations {
  return {
    docs,
    ...(since === undefined ? {} : { since }),
    ...(unstable === undefined ? {} : { unstable }),
    ...(deprecated === undefined ? {} : { deprecated }),
    ...(externalId === undefined ? {} : { externalId }),
  };
}

function renameItem(item: WorldItem, name: string): WorldItem {
  switch (item.kind) {
    case "interface":
      return item.label === undefined ? item : { ...item, label: name };
    case "func":
      return { ...item, func: { ...item.func, name } };
    case "type":
      return { ...item, def: { ...item.def, name } };
  }
}

/** The interfaces whose types an interface or world item uses, in order. */
function usedInterfaces(item: WorldItem | WitInterface): WitInterface[] {
  const types = "kind" in item
    ? item.kind === "type" ? [item.def] : item.kind === "interface" ? [...item.interface.types.values()] : []
    : [...item.types.values()];
  const used: WitInterface[] = [];
  for (const { type } of types) {
    if (type.kind !== "use") continue;
    const { owner } = type.target;
    if ("types" in owner && !used.includes(owner)) used.push(owner);
  }
  return used;
}

/** Adds the interfaces that the items of a world use to its imports, unless the world exports them for an export. */
function addTransitiveImports(world: WitWorld): void {
  const imports = new Map<string, WorldItem>();
  const add = (used: WitInterface, annotations: Annotations, exported: boolean): void => {
    const id = interfaceId(used);
    if (imports.has(id) || used.package === undefined || (exported && world.exports.has(id))) return;
    for (const inner of usedInterfaces(used)) add(inner, annotations, exported);
    imports.set(id, world.imports.get(id) ?? { ...withoutDocs(annotations), kind: "interface", interface: used });
  };
  for (const [key, item] of world.imports) {
    for (const used of usedInterfaces(item)) add(used, item, false);
    imports.set(key, item);
  }
  for (const item of world.exports.values()) for (const used of usedInterfaces(item)) add(used, item, true);
  world.imports.clear();
  for (const [key, item] of imports) world.imports.set(key, item);
}

function withoutDocs(annotations: Annotations): Annotations {
  const { since, unstable } = annotations;
  return annotationsOf({
    docs: "",
    ...(since === undefined ? {} : { since }),
    ...(unstable === undefined ? {} : { unstable }),
  });
}

/** Compares semantic versions by precedence (Semantic Versioning 2.0, 11). */
export function compareVersions(a: string, b: string): number {
  const [coreA, preA] = splitVersion(a);
  const [coreB, preB] = splitVersion(b);
  for (let i = 0; i < 3; i++) if (coreA[i] !== coreB[i]) return coreA[i] < coreB[i] ? -1 : 1;
  if (preA === undefined || preB === undefined) return preA === preB ? 0 : preA === undefined ? 1 : -1;
  const [partsA, partsB] = [preA.split("."), preB.split(".")];
  for (let i = 0; i < Math.min(partsA.length, partsB.length); i++) {
    const order = compareIdentifiers(partsA[i], partsB[i]);
    if (order !== 0) return order;
  }
  return partsA.length - partsB.length;
}

function splitVersion(version: string): [bigint[], string | undefined] {
  const [main] = version.split("+");
  const dash = main.indexOf("-");
  const core = dash < 0 ? main : main.slice(0, dash);
  return [core.split(".").map(BigInt), dash < 0 ? undefined : main.slice(dash + 1)];
}

function compareIdentifiers(a: string, b: string): number {
  const numbers = [a, b].map((text) => /^[0-9]+$/.test(text));
  if (numbers[0] && numbers[1]) return BigInt(a) === BigInt(b) ? 0 : BigInt(a) < BigInt(b) ? -1 : 1;
  if (numbers[0] !== numbers[1]) return numbers[0] ? -1 : 1;
  return a === b ? 0 : a < b ? -1 : 1;
}
