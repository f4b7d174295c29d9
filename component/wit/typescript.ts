/**
 * Resolved WIT → TypeScript declarations. In: a world. Out: files by path: `WORLD.d.ts` with `Imports` and `Exports`,
 * and a file per interface below `WORLD/imports` or `WORLD/exports`. The types are those of link/host_exports.ts and
 * link/host_names.ts: camelCase, `result` as value or thrown, `{ tag, val }`, resources as classes.
 *
 * Invariant: an interface that a world imports and exports has a file for each side, because its resources differ.
 */
import { TYPED_ARRAYS } from "../abi/emitter.ts";
import { camelCase, pascalCase } from "../abi/names.ts";
import {
  interfaceId,
  originOf,
  type WitFunc,
  type WitInterface,
  type WitType,
  type WitTypeDef,
  type WitWorld,
  type WorldItem,
} from "./document.ts";

/** The two sides of a world. */
type Side = "imports" | "exports";

const PRIMITIVES: Readonly<Record<string, string>> = {
  bool: "boolean",
  s64: "bigint",
  u64: "bigint",
  char: "string",
  string: "string",
  "error-context": "{ readonly message: string }",
};

/** Names that declarations use themselves; types of WIT with these names get an underscore. */
const RESERVED: ReadonlySet<string> = new Set([
  ...Object.values(TYPED_ARRAYS),
  ..."Array AsyncIterable Exports Imports Interface Iterable Map Promise ReadableStream".split(" "),
]);

/** The declarations of a world, by path. `name` is that of its file without the ending. */
export function declareWorld(world: WitWorld, name: string): Map<string, string> {
  return new WorldDeclarations(world, name).files();
}

/** The names of the properties of the world's type `Exports`. */
export function declaredExports(world: WitWorld): string[] {
  const names = new Set<string>();
  for (const [key, item] of world.exports) {
    if (item.kind === "interface") names.add(key).add(shortName(key));
    else if (item.kind === "func" && item.func.kind === "free") names.add(camelCase(item.func.name));
  }
  return [...names];
}

/** The last part of an interface's name in camelCase. */
function shortName(key: string): string {
  return camelCase(/^[^/]*\/([^@]*)/.exec(key)?.[1] ?? key);
}

class WorldDeclarations {
  readonly #world: WitWorld;
  readonly #name: string;
  readonly #paths: Readonly<Record<Side, ReadonlyMap<WitInterface, string>>>;

  constructor(world: WitWorld, name: string) {
    this.#world = world;
    this.#name = name;
    this.#paths = { imports: filesOf(world.imports), exports: filesOf(world.exports) };
  }

  files(): Map<string, string> {
    const files = new Map<string, string>();
    for (const side of ["imports", "exports"] as const) {
      for (const [item, file] of this.#paths[side]) {
        files.set(`${this.#name}/${side}/${file}.d.ts`, this.#interface(item, side));
      }
    }
    files.set(`${this.#name}.d.ts`, this.#root());
    return files;
  }

  #interface(item: WitInterface, side: Side): string {
    const file = new FileDeclarations(side, (owner) => this.#pathOf(owner, side, "../"));
    const about = `The ${side.slice(0, -1)}ed interface ${interfaceId(item)}.`;
    return file.text(about, () => {
      file.types([...item.types.values()], [...item.funcs.values()]);
      file.block(`${file.docs(item.docs)}export interface Interface`, () => {
        file.members([...item.types.values()], [...item.funcs.values()]);
      });
    });
  }

  /** The specifier of the file that declares the types of `owner` for a side, from a file at depth `up`. */
  #pathOf(owner: WitInterface, side: Side, up: string): string {
    const of = side === "exports" && this.#paths.exports.has(owner) ? "exports" : "imports";
    const file = this.#paths[of].get(owner) ?? this.#paths.exports.get(owner);
    return `${up}${up === "../" ? of : `${this.#name}/${of}`}/${file}.d.ts`;
  }

  #root(): string {
    const world = this.#world;
    const file = new FileDeclarations("imports", (owner) => this.#pathOf(owner, "imports", "./"));
    const about = `The world ${world.name}: \`component.instantiate<Exports>({}, imports satisfies Imports)\`.`;
    return file.text(about, () => {
      const funcs = (side: Side) => [...world[side].values()].flatMap((row) => row.kind === "func" ? [row.func] : []);
      const defs = [...world.imports.values()].flatMap((row) => row.kind === "type" ? [row.def] : []);
      file.types(defs, funcs("imports"));
      for (const side of ["imports", "exports"] as const) {
        const title = side === "imports" ? "Imports" : "Exports";
        file.side = side;
        file.block(`${file.docs(side === "imports" ? world.docs : "")}export interface ${title}`, () => {
          this.#items(file, side);
          file.members(side === "imports" ? defs : [], funcs(side));
        });
      }
    });
  }

  #items(file: FileDeclarations, side: Side): void {
    const shorts = new Set<string>();
    for (const [key, item] of this.#world[side]) {
      if (item.kind !== "interface") continue;
      const path = `./${this.#name}/${side}/${this.#paths[side].get(item.interface)}.d.ts`;
      const type = `import(${JSON.stringify(path)}).Interface`;
      file.line(`readonly ${JSON.stringify(key)}: ${type};`);
      const short = shortName(key);
      if (side === "imports" || shorts.has(short) || short === key) continue;
      shorts.add(short);
      file.line(`readonly ${short}: ${type};`);
    }
  }
}

/** The names of the files of a side's interfaces; a version is part of a name where it distinguishes. */
function filesOf(items: ReadonlyMap<string, WorldItem>): Map<WitInterface, string> {
  const files = new Map<WitInterface, string>();
  const taken = new Set<string>();
  for (const [key, item] of items) {
    if (item.kind !== "interface") continue;
    const id = item.label === undefined ? interfaceId(item.interface) : key;
    const plain = id.replace(/@.*$/, "").replace(/[^A-Za-z0-9]+/g, "-");
    let file = taken.has(plain) ? id.replace(/[^A-Za-z0-9.]+/g, "-") : plain;
    while (taken.has(file)) file += "-2";
    taken.add(file);
    files.set(item.interface, file);
  }
  return files;
}

/** The text of one file. */
class FileDeclarations {
  side: Side;
  readonly #pathOf: (owner: WitInterface) => string;
  #text = "";
  #indent = "";

  constructor(side: Side, pathOf: (owner: WitInterface) => string) {
    this.side = side;
    this.#pathOf = pathOf;
  }

  text(about: string, body: () => void): string {
    body();
    return `/** ${about} Written by \`waft types\`. */

${this.#text.trimEnd()}
`;
  }

  line(text: string): void {
    for (const line of text.split("\n")) this.#text += line === "" ? "\n" : `${this.#indent}${line}\n`;
  }

  block(head: string, body: () => void): void {
    this.line(`${head} {`);
    this.#indent += "  ";
    body();
    this.#indent = this.#indent.slice(2);
    this.line("}\n");
  }

  /** A documentation comment, with its line break. */
  docs(text: string): string {
    const lines = text.trim().replaceAll("*/", "* /").split("\n").map((line) => line.trimEnd());
    if (lines[0] === "") return "";
    return lines.length === 1
      ? `/** ${lines[0]} */\n`
      : `/**\n${lines.map((line) => ` * ${line}`.trimEnd()).join("\n")}\n */\n`;
  }

  types(defs: readonly WitTypeDef[], funcs: readonly WitFunc[]): void {
    for (const def of defs) this.#type(def, funcs.filter(({ resource }) => resource === def));
  }

  #type(def: WitTypeDef, funcs: readonly WitFunc[]): void {
    const name = typeName(def);
    const { type } = def;
    switch (type.kind) {
      case "resource":
        return this.#resource(def, funcs);
      case "record":
        return this.block(`${this.docs(def.docs)}export interface ${name}`, () => {
          for (const field of type.fields) {
            const { mark, text } = this.#optional(field.type, true);
            this.line(`${this.docs(def.labelDocs?.get(field.name) ?? "")}${camelCase(field.name)}${mark}: ${text};`);
          }
        });
      case "flags":
        return this.block(`${this.docs(def.docs)}export interface ${name}`, () => {
          for (const flag of type.names) {
            this.line(`${this.docs(def.labelDocs?.get(flag) ?? "")}${camelCase(flag)}?: boolean;`);
          }
        });
      case "use":
        return this.line(`export type ${name} = ${this.#imported(type.target)};\n`);
      case "enum":
        return this.line(`${this.docs(def.docs)}export type ${name} = ${type.names.map(quoted).join(" | ")};\n`);
      case "variant":
        return this.line(`${this.docs(def.docs)}export type ${name} =${
          type.cases.map((row) => {
            const payload = row.type === undefined ? "" : `; val: ${this.type(row.type)}`;
            return `\n  | { tag: ${quoted(row.name)}${payload} }`;
          }).join("")
        };\n`);
      default:
        return this.line(`${this.docs(def.docs)}export type ${name} = ${this.type(type.type)};\n`);
    }
  }

  /** A resource: the type of its objects, and that of its class. */
  #resource(def: WitTypeDef, funcs: readonly WitFunc[]): void {
    const name = typeName(def);
    this.block(`${this.docs(def.docs)}export interface ${name}`, () => {
      for (const func of funcs) if (func.kind === "method") this.#function(func);
      this.line(`[Symbol.dispose]${this.side === "imports" ? "?" : ""}(): void;`);
    });
    this.block(`/** The class of {@link ${name}}. */\nexport interface ${name}Class`, () => {
      const constructor = funcs.find(({ kind }) => kind === "constructor");
      if (constructor !== undefined) {
        this.line(`${this.docs(constructor.docs)}new (${this.#params(constructor)}): ${name};`);
      }
      this.line(`readonly prototype: ${name};`);
      for (const func of funcs) if (func.kind === "static") this.#function(func);
    });
  }

  /** Members of an interface or a world: classes and functions. */
  members(defs: readonly WitTypeDef[], funcs: readonly WitFunc[]): void {
    for (const def of defs) {
      if (def.type.kind === "resource") this.line(`readonly ${pascalCase(def.name)}: ${typeName(def)}Class;`);
    }
    for (const func of funcs) if (func.kind === "free") this.#function(func);
  }

  #function(func: WitFunc): void {
    const thrown = this.#thrown(func);
    const docs = [func.docs.trim(), thrown].filter((part) => part !== "").join("\n\n");
    this.line(`${this.docs(docs)}${camelCase(func.name)}(${this.#params(func)}): ${this.#result(func)};`);
  }

  #thrown({ result }: WitFunc): string {
    if (result === undefined) return "";
    const type = resolved(result);
    if (type.kind !== "result") return "";
    return `@throws {ComponentError} with the payload \`${
      type.err === undefined ? "undefined" : this.type(type.err)
    }\``;
  }

  #params({ params }: WitFunc): string {
    const required = params.findLastIndex(({ type }) => resolved(type).kind !== "option");
    return params.map(({ name, type }, k) => {
      const { mark, text } = this.#optional(type, k > required);
      return `${parameterName(name)}${mark}: ${text}`;
    }).join(", ");
  }

  /** A type, and a question mark if the value may be absent. */
  #optional(type: WitType, may: boolean): { mark: string; text: string } {
    const target = resolved(type);
    if (!may || target.kind !== "option" || resolved(target.type).kind === "option") {
      return { mark: "", text: this.type(type) };
    }
    return { mark: "?", text: this.type(type) };
  }

  #result({ result, async }: WitFunc): string {
    const type = result === undefined ? undefined : resolved(result);
    const value = type?.kind === "result" ? type.ok : result;
    const text = value === undefined ? "void" : this.type(value);
    if (!async) return text;
    return this.side === "imports" ? `Promise<${text}> | ${text}` : `Promise<${text}>`;
  }

  /** The TypeScript type of a WIT type. */
  type(type: WitType): string {
    switch (type.kind) {
      case "named":
        return typeName(type.def);
      case "own":
      case "borrow":
        return typeName(type.resource);
      case "list": {
        const element = resolved(type.element);
        return TYPED_ARRAYS[element.kind] ?? `Array<${this.type(type.element)}>`;
      }
      case "map":
        return `Map<${this.type(type.key)}, ${this.type(type.value)}>`;
      case "tuple":
        return `[${type.types.map((part) => this.type(part)).join(", ")}]`;
      case "option": {
        const inner = this.type(type.type);
        return resolved(type.type).kind === "option"
          ? `({ tag: "none" } | { tag: "some"; val: ${inner} })`
          : `${inner} | undefined`;
      }
      case "result": {
        const payload = (part: WitType | undefined) =>
          part === undefined ? "val?: undefined" : `val: ${this.type(part)}`;
        return `({ tag: "ok"; ${payload(type.ok)} } | { tag: "err"; ${payload(type.err)} })`;
      }
      case "stream": {
        const chunk = type.element === undefined
          ? "undefined"
          : resolved(type.element).kind === "u8"
          ? "Uint8Array"
          : this.type(type.element);
        return `ReadableStream<${chunk}>`;
      }
      case "future":
        return `Promise<${type.element === undefined ? "void" : this.type(type.element)}>`;
      case "enum":
        return type.names.map(quoted).join(" | ");
      default:
        return PRIMITIVES[type.kind] ?? "number";
    }
  }

  /** A type of another file. */
  #imported(def: WitTypeDef): string {
    const { owner } = def;
    if (!("types" in owner)) return typeName(def);
    return `import(${JSON.stringify(this.#pathOf(owner))}).${typeName(def)}`;
  }
}

/** The type behind names and aliases. */
function resolved(type: WitType): WitType | { readonly kind: "record" | "variant" | "flags" | "resource" } {
  if (type.kind !== "named") return type;
  const { type: definition } = originOf(type.def);
  if (definition.kind === "alias") return resolved(definition.type);
  return definition.kind === "use" ? { kind: "resource" } : definition;
}

function typeName(def: WitTypeDef): string {
  const name = pascalCase(def.name);
  return RESERVED.has(name) ? `${name}_` : name;
}

/** Words that cannot be the name of a parameter. */
const WORDS = new Set(
  ("arguments await break case catch class const continue debugger default delete do else enum eval export extends false " +
    "finally for function if implements import in instanceof interface let new null package private protected public " +
    "return static super switch this throw true try typeof var void while with yield").split(" "),
);

function parameterName(name: string): string {
  const camel = camelCase(name);
  return WORDS.has(camel) ? `${camel}_` : camel;
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
