/**
 * Component types → WIT (WIT, "Package Format"): the world of a component, the packages of a component that contains
 * WIT, and the worlds embedded in a core module. In: valid components. Out: resolved packages.
 *
 * A type is found by the node that its import or export introduced (model/types.ts), and a resource, where the node has
 * no name, by its identity.
 */
import type { decodeModule } from "@waft/engine/internal/binary/decode";
import { decodeComponent } from "../binary/decode.ts";
import { invalid } from "../model/invalid.ts";
import { type ExternName, parseExternName, parseInterfaceName } from "../model/names.ts";
import {
  type AnyType,
  type ComponentType,
  type Extern,
  type FuncType,
  type InstanceType,
  isValType,
  mapValueType,
  type ResourceId,
  type ResourceType,
  type ValType,
} from "../model/types.ts";
import type { ValidComponent } from "../model/valid_component.ts";
import { validateComponent } from "../validate/validate_component.ts";
import {
  packageId,
  type PackageName,
  type WitFunc,
  type WitInterface,
  type WitPackage,
  type WitType,
  type WitTypeDef,
  type WitWorld,
  type WorldItem,
} from "./document.ts";

/** The WIT of a component. */
interface ComponentWit {
  readonly root: WitPackage;
  readonly packages: ReadonlyMap<string, WitPackage>;
  /** Imports and exports that WIT cannot express, such as core modules. */
  readonly omitted: readonly string[];
}

/** The package and name of the world of a component, which has no name of its own. */
const ROOT_PACKAGE: PackageName = { namespace: "root", name: "component" };
const ROOT_WORLD = "root";

/** The WIT of a component: its packages if it contains WIT only, otherwise its world. */
export function witOfComponent({ type }: ValidComponent): ComponentWit {
  return isWitPackage(type) ? new Reader().packages(type) : new Reader().component(type);
}

/** The custom sections in which tools embed worlds in core modules begin with this. */
const EMBEDDED = "component-type";

/** The worlds that tools have embedded in a core module. */
export function embeddedWit({ customs }: ReturnType<typeof decodeModule>): ComponentWit[] {
  return customs
    .filter(({ name }) => isWorldSection(name))
    .map(({ bytes }) => witOfComponent(validateComponent(decodeComponent(bytes))));
}

/** True for the name of a custom section that contains a world. */
export function isWorldSection(name: string): boolean {
  return name === EMBEDDED || name.startsWith(`${EMBEDDED}:`);
}

/** Several worlds in one set of packages, so that an interface that several of them have is one. */
export function worldsTogether(types: readonly ComponentType[]): WitWorld[] {
  const reader = new Reader();
  for (const type of types) {
    if (isWitPackage(type)) reader.packages(type);
    else reader.component(type);
  }
  return reader.worlds;
}

/** Whether a component contains WIT only: types of interfaces and worlds. */
function isWitPackage({ imports, exports }: ComponentType): boolean {
  return imports.size === 0 && exports.size > 0 && [...exports.values()].every(({ kind, type }) => {
    if (kind !== "type" || type.kind !== "component" || type.exports.size !== 1) return false;
    const [[name, extern]] = type.exports;
    return name.includes("/") && (extern.kind === "instance" || extern.kind === "component");
  });
}

const NO_DOCS = { docs: "" };

class Reader {
  readonly #packages = new Map<string, WitPackage>();
  readonly #defs = new Map<AnyType, WitTypeDef>();
  readonly #resources = new Map<ResourceId, WitTypeDef>();
  readonly #omitted: string[] = [];
  /** The worlds, in the order in which they were read. */
  readonly worlds: WitWorld[] = [];

  #result(root: WitPackage): ComponentWit {
    return { root, packages: this.#packages, omitted: this.#omitted };
  }

  #package(name: PackageName): WitPackage {
    const id = packageId(name);
    const found = this.#packages.get(id) ?? { name, docs: "", interfaces: new Map(), worlds: new Map() };
    this.#packages.set(id, found);
    return found;
  }

  component(type: ComponentType): ComponentWit {
    const root = this.#package(ROOT_PACKAGE);
    this.#world(root, ROOT_WORLD, type);
    return this.#result(root);
  }

  packages(type: ComponentType): ComponentWit {
    let root: WitPackage | undefined;
    for (const { type: wrapper } of type.exports.values()) {
      if (wrapper.kind !== "component") continue;
      for (const [name, extern] of wrapper.imports) this.#item(name, extern);
      for (const [name, extern] of wrapper.exports) {
        const { package: home, interface: label } = this.#split(name);
        root ??= home;
        if (extern.kind === "component") this.#world(home, label, extern.type);
        else if (extern.kind === "instance") this.#interface(name, extern.type);
      }
    }
    return this.#result(root ?? this.#package(ROOT_PACKAGE));
  }

  #split(id: string): { package: WitPackage; interface: string } {
    const { namespace, package: name, interface: label, version } = parseInterfaceName(id, 0);
    const home = this.#package(version === undefined ? { namespace, name } : { namespace, name, version });
    return { package: home, interface: label };
  }

  #world(home: WitPackage, name: string, type: ComponentType): void {
    const world: WitWorld = { ...NO_DOCS, name, package: home, imports: new Map(), exports: new Map() };
    home.worlds.set(name, world);
    this.worlds.push(world);
    for (const side of ["imports", "exports"] as const) {
      for (const [key, extern] of type[side]) {
        const item = this.#item(key, extern, world);
        if (item !== undefined) world[side].set(key, item);
        if (item?.kind === "type" && side === "exports") {
          this.#omitted.push(`${key}: WIT has no form for the export of a type, which is shown like an import`);
        }
      }
    }
  }

  /** An import or export; `world` owns the types outside of interfaces. */
  #item(name: string, extern: Extern, world?: WitWorld): WorldItem | undefined {
    const { attributes } = extern;
    const annotations = attributes?.externalId === undefined
      ? NO_DOCS
      : { ...NO_DOCS, externalId: attributes.externalId };
    switch (extern.kind) {
      case "instance": {
        const named = name.includes(":");
        const id = named ? name : attributes?.implements;
        const found = id === undefined ? this.#inline(name, extern.type) : this.#interface(id, extern.type);
        return { ...annotations, kind: "interface", interface: found, ...(named ? {} : { label: name }) };
      }
      case "func": {
        const func = this.#func(name, extern.type, (label) => worldResource(world, label));
        return { ...annotations, kind: "func", func };
      }
      case "type": {
        if (world === undefined) return undefined;
        const def = this.#define(world, name, extern.type, extern.referenced);
        return { ...annotations, kind: "type", def };
      }
      default:
        this.#omitted.push(`${name}: a ${extern.kind} has no form in WIT`);
        return undefined;
    }
  }

  /** The interface with an id. What several instance types say about it is merged. */
  #interface(id: string, type: InstanceType): WitInterface {
    const { package: home, interface: name } = this.#split(id);
    const found = home.interfaces.get(name) ??
      { ...NO_DOCS, name, package: home, types: new Map(), funcs: new Map() };
    home.interfaces.set(name, found);
    this.#fill(found, type);
    return found;
  }

  #inline(name: string, type: InstanceType): WitInterface {
    const found: WitInterface = { ...NO_DOCS, name, types: new Map(), funcs: new Map() };
    this.#fill(found, type);
    return found;
  }

  #fill(target: WitInterface, { exports }: InstanceType): void {
    for (const [name, extern] of exports) {
      if (extern.kind === "type") {
        const known = target.types.get(name);
        if (known === undefined) target.types.set(name, this.#define(target, name, extern.type, extern.referenced));
        else this.#know(extern.type, known);
      } else if (extern.kind === "func") {
        const func = this.#func(name, extern.type, (label) => target.types.get(label));
        if (!target.funcs.has(name)) target.funcs.set(name, func);
      } else this.#omitted.push(`${target.name}: the ${extern.kind} ${name} has no form in WIT`);
    }
  }

  #know(type: AnyType, def: WitTypeDef): void {
    this.#defs.set(type, def);
    if (type.kind === "resource" && !this.#resources.has(type.id)) this.#resources.set(type.id, def);
  }

  #define(owner: WitInterface | WitWorld, name: string, type: AnyType, referenced: AnyType): WitTypeDef {
    const known = this.#known(referenced);
    const def: WitTypeDef = {
      ...NO_DOCS,
      name,
      owner,
      type: known === undefined ? this.#definition(type) : reference(owner, known),
    };
    this.#know(type, def);
    return def;
  }

  #known(type: AnyType): WitTypeDef | undefined {
    return this.#defs.get(type) ?? (type.kind === "resource" ? this.#resources.get(type.id) : undefined);
  }

  #definition(type: AnyType): WitTypeDef["type"] {
    if (type.kind === "resource") return { kind: "resource" };
    if (!isValType(type)) throw invalid(`a type of kind ${type.kind} has no form in WIT`, 0);
    const shape = this.#shape(type);
    switch (shape.kind) {
      case "record":
      case "variant":
      case "flags":
      case "enum":
        return shape;
      default:
        return { kind: "alias", type: shape };
    }
  }

  #type(type: ValType): WitType {
    const def = this.#defs.get(type);
    return def === undefined ? this.#shape(type) : { kind: "named", def };
  }

  #shape(type: ValType): WitType {
    return mapValueType(type, (part: ValType) => this.#type(part), (resource: ResourceType) => {
      return this.#known(resource) ?? this.#unnamed();
    });
  }

  #unnamed(): never {
    throw invalid("a resource without a name has no form in WIT", 0);
  }

  #func(id: string, type: FuncType, resourceNamed: (name: string) => WitTypeDef | undefined): WitFunc {
    const name = parseExternName(id, 0);
    const params = type.params.map((param) => ({ name: param.name, type: this.#type(param.type) }));
    const result = type.result === undefined ? undefined : this.#type(type.result);
    const base = { ...NO_DOCS, async: type.async };
    if (name.kind === "plain" || name.kind === "interface") {
      return { ...base, name: id, kind: "free", params, ...(result === undefined ? {} : { result }) };
    }
    const resource = resourceNamed(name.resource) ?? this.#unnamed();
    const implied = name.kind === "constructor" && result?.kind === "own";
    return {
      ...base,
      name: labelOf(name),
      kind: name.kind,
      resource,
      params: name.kind === "method" ? params.slice(1) : params,
      ...(result === undefined || implied ? {} : { result }),
    };
  }
}

function labelOf(name: Exclude<ExternName, { kind: "plain" | "interface" }>): string {
  return name.kind === "constructor" ? "constructor" : name.label;
}

function worldResource(world: WitWorld | undefined, name: string): WitTypeDef | undefined {
  const item = world?.imports.get(name) ?? world?.exports.get(name);
  return item?.kind === "type" ? item.def : undefined;
}

/** The definition of a type that is another one: a use of another interface's, or an alias. */
function reference(owner: WitInterface | WitWorld, target: WitTypeDef): WitTypeDef["type"] {
  const foreign = target.owner !== owner && "types" in target.owner && target.owner.package !== undefined;
  if (foreign) return { kind: "use", target };
  if (target.type.kind === "resource") return { kind: "alias", type: { kind: "own", resource: target } };
  return { kind: "alias", type: { kind: "named", def: target } };
}
