/**
 * WIT as the text of component types. In: types, functions and interfaces of resolved WIT. Out: text in which a named
 * type is the identifier that a {@linkcode TypeNames} holds for it. Invariant: a type is written after the types that
 * it refers to, and only if it is live.
 */
import { valueOperands } from "../model/types.ts";
import {
  funcId,
  interfaceId,
  isResource,
  originOf,
  type WitFunc,
  type WitInterface,
  type WitType,
  type WitTypeDef,
  type WitWorld,
  type WorldItem,
} from "../wit/document.ts";

/** Source of identifiers that differ from each other. */
export class Identifiers {
  #count = 0;

  fresh(prefix: string): string {
    return `$${prefix}${this.#count++}`;
  }
}

/** The identifiers of named types in one scope; a lookup continues in the enclosing scope. */
export class TypeNames {
  readonly #names = new Map<WitTypeDef, string>();
  readonly #parent: TypeNames | undefined;

  constructor(parent?: TypeNames) {
    this.#parent = parent;
  }

  set(def: WitTypeDef, name: string): void {
    this.#names.set(def, name);
  }

  has(def: WitTypeDef): boolean {
    return this.#names.has(def);
  }

  /** The identifier of `def`, or of the type that it is another name of. */
  get(def: WitTypeDef): string {
    const name = this.#find(def) ?? this.#find(originOf(def));
    if (name === undefined) throw new Error(`the type ${def.name} has no identifier`);
    return name;
  }

  #find(def: WitTypeDef): string | undefined {
    const parent = this.#parent;
    return this.#names.get(def) ?? (parent === undefined ? undefined : parent.#find(def));
  }
}

/** A name as a string of the text format. */
export function quoted(name: string): string {
  const escaped = (char: string) => `\\${char.charCodeAt(0).toString(16).padStart(2, "0")}`;
  return `"${name.replace(/["\\\p{Cc}]/gu, escaped)}"`;
}

/** A value type. */
export function typeText(type: WitType, names: TypeNames): string {
  const text = (part: WitType) => typeText(part, names);
  const optional = (part: WitType | undefined) => part === undefined ? "" : ` ${text(part)}`;
  switch (type.kind) {
    case "named":
      return names.get(type.def);
    case "own":
    case "borrow":
      return `(${type.kind} ${names.get(type.resource)})`;
    case "list":
      return `(list ${text(type.element)}${type.length === undefined ? "" : ` ${type.length}`})`;
    case "record":
      return `(record${type.fields.map((field) => ` (field ${quoted(field.name)} ${text(field.type)})`).join("")})`;
    case "variant":
      return `(variant${type.cases.map((row) => ` (case ${quoted(row.name)}${optional(row.type)})`).join("")})`;
    case "tuple":
      return `(tuple${type.types.map((part) => ` ${text(part)}`).join("")})`;
    case "flags":
    case "enum":
      return `(${type.kind}${type.names.map((name) => ` ${quoted(name)}`).join("")})`;
    case "option":
      return `(option ${text(type.type)})`;
    case "result":
      return `(result${optional(type.ok)}${type.err === undefined ? "" : ` (error ${text(type.err)})`})`;
    case "map":
      return `(map ${text(type.key)} ${text(type.value)})`;
    case "stream":
    case "future":
      return `(${type.kind}${optional(type.element)})`;
    default:
      return type.kind;
  }
}

/** The parameters of a function, `self` included, and its result, that of a constructor included. */
interface FuncParts {
  readonly params: readonly { readonly name: string; readonly type: WitType }[];
  readonly result: WitType | undefined;
}

/** Makes implied parameters and results explicit. */
export function funcParts({ kind, resource, params, result }: WitFunc): FuncParts {
  if (resource === undefined) return { params, result };
  if (kind === "method") {
    return { params: [{ name: "self", type: { kind: "borrow", resource } }, ...params], result };
  }
  return { params, result: kind === "constructor" ? result ?? { kind: "own", resource } : result };
}

/** The signature of a function, without `(func`. */
export function signatureText(func: WitFunc, names: TypeNames): string {
  const { params, result } = funcParts(func);
  return (func.async ? " async" : "") +
    params.map(({ name, type }) => ` (param ${quoted(name)} ${typeText(type, names)})`).join("") +
    (result === undefined ? "" : ` (result ${typeText(result, names)})`);
}

/** Whether a declaration imports or exports. */
type Direction = "import" | "export";

/** The declaration of a type under `label`; sets the identifier of `def`. */
export function typeDeclaration(
  def: WitTypeDef,
  label: string,
  direction: Direction,
  names: TypeNames,
  ids: Identifiers,
): string {
  const { type } = def;
  const declare = (bound: string): string => {
    const id = ids.fresh("t");
    names.set(def, id);
    return `(${direction} ${quoted(label)} (type ${id} ${bound}))`;
  };
  if (type.kind === "resource") return declare("(sub resource)");
  if (type.kind === "use") return declare(`(eq ${names.get(type.target)})`);
  if (isResource(def)) return declare(`(eq ${names.get(originOf(def))})`);
  const definition = type.kind === "alias" ? type.type : type;
  if (definition.kind === "named") return declare(`(eq ${names.get(definition.def)})`);
  const id = ids.fresh("d");
  const text = typeText(definition, names);
  return `(type ${id} ${text})\n${declare(`(eq ${id})`)}`;
}

/** The named types that occur in a type. */
export function namesIn(type: WitType): WitTypeDef[] {
  if (type.kind === "named") return [type.def];
  if (type.kind === "own" || type.kind === "borrow") return [type.resource];
  return valueOperands(type).flatMap(namesIn);
}

/** The named types that a definition refers to. */
export function typesUsedBy({ type }: WitTypeDef): WitTypeDef[] {
  if (type.kind === "resource") return [];
  if (type.kind === "use") return [type.target];
  return namesIn(type.kind === "alias" ? type.type : type);
}

/** The live ones of `defs`, each after those that it refers to. */
export function inDependencyOrder(defs: Iterable<WitTypeDef>, live: ReadonlySet<WitTypeDef>): WitTypeDef[] {
  const chosen = new Set([...defs].filter((def) => live.has(def)));
  const ordered = new Set<WitTypeDef>();
  const add = (def: WitTypeDef): void => {
    if (!chosen.has(def) || ordered.has(def)) return;
    typesUsedBy(def).forEach(add);
    ordered.add(def);
  };
  chosen.forEach(add);
  return [...ordered];
}

/** The functions and types of a world that a component needs. */
export interface Live {
  readonly types: ReadonlySet<WitTypeDef>;
  readonly funcs: ReadonlySet<WitFunc>;
}

/** The instance type of an interface; `names` are those of the scope around it. */
function instanceTypeText(
  { types, funcs }: WitInterface,
  live: Live,
  names: TypeNames,
  ids: Identifiers,
): string {
  const inner = new TypeNames(names);
  const lines = [
    ...inDependencyOrder(types.values(), live.types)
      .map((def) => typeDeclaration(def, def.name, "export", inner, ids)),
    ...[...funcs.values()].filter((func) => live.funcs.has(func))
      .map((func) => `(export ${quoted(funcId(func))} (func${signatureText(func, inner)}))`),
  ];
  return `(instance\n${lines.join("\n")})`;
}

/** The import or export of a world's item as text; sets the identifiers of its types. */
export function itemText(
  key: string,
  item: WorldItem,
  direction: Direction,
  live: Live,
  names: TypeNames,
  ids: Identifiers,
): { readonly text: string; readonly id: string } {
  const attribute = item.externalId === undefined ? "" : ` (external-id ${quoted(item.externalId)})`;
  switch (item.kind) {
    case "func": {
      const id = ids.fresh("f");
      return { text: `(${direction} ${quoted(key)}${attribute} (func ${id}${signatureText(item.func, names)}))`, id };
    }
    case "type":
      return { text: typeDeclaration(item.def, key, direction, names, ids), id: names.get(item.def) };
    case "interface": {
      const id = ids.fresh("i");
      const { interface: target, label } = item;
      const implemented = label === undefined || target.package === undefined
        ? ""
        : ` (implements ${quoted(interfaceId(target))})`;
      const type = instanceTypeText(target, live, names, ids);
      const lines = [
        `(${direction} ${quoted(key)}${implemented}${attribute} (instance ${id} ${type.slice("(instance".length)})`,
      ];
      for (const def of target.types.values()) {
        if (!live.types.has(def)) continue;
        const alias = ids.fresh("t");
        names.set(def, alias);
        lines.push(`(alias export ${id} ${quoted(def.name)} (type ${alias}))`);
      }
      return { text: lines.join("\n"), id };
    }
  }
}

/**
 * The imports or exports of a world: interfaces, types, then functions, each after those that it refers to. Worlds that
 * were united may have them in another order.
 */
export function itemsInOrder(items: ReadonlyMap<string, WorldItem>): [string, WorldItem][] {
  const rank = { interface: 0, type: 1, func: 2 } as const;
  const ordered = new Map<string, WorldItem>();
  const owners = new Map(
    [...items].map((entry) => [entry[1].kind === "interface" ? entry[1].interface : entry[1], entry]),
  );
  const defs = [...items.values()].flatMap((item) => item.kind === "type" ? [item.def] : []);
  const order = inDependencyOrder(defs, new Set(defs));
  const add = ([key, item]: [string, WorldItem]): void => {
    if (ordered.has(key)) return;
    if (item.kind === "interface") {
      for (const { type } of item.interface.types.values()) {
        const used = type.kind === "use" ? owners.get(type.target.owner as WitInterface) : undefined;
        if (used !== undefined && used[0] !== key) add(used);
      }
    }
    ordered.set(key, item);
  };
  const at = (item: WorldItem) => item.kind === "type" ? order.indexOf(item.def) : 0;
  [...items].sort(([, a], [, b]) => rank[a.kind] - rank[b.kind] || at(a) - at(b)).forEach(add);
  return [...ordered];
}

/** Everything in a world. */
export function allLive(world: WitWorld): Live {
  const types = new Set<WitTypeDef>();
  const funcs = new Set<WitFunc>();
  for (const item of [...world.imports.values(), ...world.exports.values()]) {
    if (item.kind === "func") funcs.add(item.func);
    else if (item.kind === "type") types.add(item.def);
    else {
      for (const def of item.interface.types.values()) types.add(def);
      for (const func of item.interface.funcs.values()) funcs.add(func);
    }
  }
  return { types, funcs };
}

/**
 * A component that contains the type of a world only, as tools embed it in core modules. The exports of the world are
 * written in a scope of their own: an interface that is imported and exported has two sets of types.
 */
export function worldTypeText(world: WitWorld): string {
  const ids = new Identifiers();
  const live = allLive(world);
  const imported = new TypeNames();
  const exported = new TypeNames(imported);
  const lines = [
    ...itemsInOrder(world.imports).map(([key, item]) => itemText(key, item, "import", live, imported, ids).text),
    ...itemsInOrder(world.exports).map(([key, item]) => itemText(key, item, "export", live, exported, ids).text),
  ];
  return `(component (type $package (component (type $world (component\n${lines.join("\n")}))
(export ${quoted(interfaceId(world))} (component (type $world)))))
(export ${quoted(world.name)} (type $package)))`;
}
