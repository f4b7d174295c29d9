/**
 * Resolved WIT → text. In: packages, worlds, functions or types. Out: text that parses to the same packages.
 */
import { valueOperands } from "../model/types.ts";
import {
  type Annotations,
  funcId,
  interfaceId,
  packageId,
  type WitFunc,
  type WitInterface,
  type WitPackage,
  type WitType,
  type WitTypeDef,
  type WitWorld,
  type WorldItem,
} from "./document.ts";
import { isKeyword } from "./tokens.ts";

/** Lines of text with the current indentation. */
class Lines {
  #text = "";
  #indent = "";

  line(text: string): void {
    this.#text += text === "" ? "\n" : `${this.#indent}${text}\n`;
  }

  block(head: string, body: () => void): void {
    this.line(`${head} {`);
    this.#indent += "  ";
    body();
    this.#indent = this.#indent.slice(2);
    this.line("}");
  }

  get text(): string {
    return this.#text;
  }
}

/** A name, with `%` if it is a keyword. */
function printName(name: string): string {
  return isKeyword(name) ? `%${name}` : name;
}

/** A package as a file; `others` follow as nested packages. */
export function printPackage(root: WitPackage, others: Iterable<WitPackage> = []): string {
  const out = new Lines();
  printDocs(out, root.docs);
  out.line(`package ${printPackageId(root)};`);
  printItems(out, root, true);
  for (const other of others) {
    if (other === root) continue;
    out.line("");
    out.block(`package ${printPackageId(other)}`, () => printItems(out, other, false));
  }
  return out.text;
}

function printPackageId({ name }: WitPackage): string {
  const { namespace, name: own, version } = name;
  return `${printName(namespace)}:${printName(own)}${version === undefined ? "" : `@${version}`}`;
}

function printItems(out: Lines, { interfaces, worlds }: WitPackage, spaced: boolean): void {
  let first = !spaced;
  const separate = () => {
    if (!first) out.line("");
    first = false;
  };
  for (const item of interfaces.values()) {
    separate();
    printAnnotations(out, item);
    out.block(`interface ${printName(item.name)}`, () => printInterfaceItems(out, item));
  }
  for (const world of worlds.values()) {
    separate();
    printWorldInto(out, world);
  }
}

function printWorldInto(out: Lines, world: WitWorld): void {
  printAnnotations(out, world);
  out.block(`world ${printName(world.name)}`, () => {
    printUses(out, world, typesOf(world));
    for (const item of world.imports.values()) printWorldItem(out, world, "import", item);
    if (world.imports.size > 0 && world.exports.size > 0) out.line("");
    for (const item of world.exports.values()) printWorldItem(out, world, "export", item);
  });
}

function typesOf(world: WitWorld): WitTypeDef[] {
  return [...world.imports.values()].flatMap((item) => item.kind === "type" ? [item.def] : []);
}

function printWorldItem(out: Lines, world: WitWorld, direction: "import" | "export", item: WorldItem): void {
  switch (item.kind) {
    case "interface": {
      printAnnotations(out, item);
      const { interface: target, label } = item;
      if (label === undefined) out.line(`${direction} ${interfacePath(world, target)};`);
      else if (target.package !== undefined) {
        out.line(`${direction} ${printName(label)}: ${interfacePath(world, target)};`);
      } else out.block(`${direction} ${printName(label)}: interface`, () => printInterfaceItems(out, target, world));
      return;
    }
    case "func":
      if (item.func.kind !== "free") return; // Printed with its resource.
      printAnnotations(out, item);
      out.line(`${direction} ${printName(item.func.name)}: ${printSignature(item.func)};`);
      return;
    case "type":
      if (item.def.type.kind === "use") return; // Printed at the start of the world.
      printTypeDef(out, item.def, methodsOf(item.def, worldFuncs(world)));
  }
}

function worldFuncs(world: WitWorld): WitFunc[] {
  return [...world.imports.values()].flatMap((item) => item.kind === "func" ? [item.func] : []);
}

/** The path of an interface as written in `from`. */
function interfacePath(from: { readonly package?: WitPackage }, target: WitInterface): string {
  if (target.package === undefined || target.package === from.package) return printName(target.name);
  const { namespace, name, version } = target.package.name;
  const path = `${printName(namespace)}:${printName(name)}/${printName(target.name)}`;
  return version === undefined ? path : `${path}@${version}`;
}

/** The items of an interface; `within` is the world of an inline interface. */
function printInterfaceItems(out: Lines, item: WitInterface, within?: WitWorld): void {
  const types = [...item.types.values()];
  const funcs = [...item.funcs.values()];
  let separated = !printUses(out, within ?? item, types);
  for (const def of types) {
    if (def.type.kind === "use") continue;
    if (!separated) out.line("");
    separated = false;
    printTypeDef(out, def, methodsOf(def, funcs));
  }
  for (const func of funcs) {
    if (func.kind !== "free") continue;
    if (!separated) out.line("");
    separated = false;
    printAnnotations(out, func);
    out.line(`${printName(func.name)}: ${printSignature(func)};`);
  }
}

function methodsOf(def: WitTypeDef, funcs: readonly WitFunc[]): WitFunc[] {
  return funcs.filter((func) => func.resource === def);
}

/** Prints the `use` items among `types`, one per run from the same interface; returns whether there are any. */
function printUses(out: Lines, from: { readonly package?: WitPackage }, types: readonly WitTypeDef[]): boolean {
  const runs: { readonly def: WitTypeDef; readonly key: string; readonly path: string; readonly names: string[] }[] =
    [];
  for (const def of types) {
    if (def.type.kind !== "use") continue;
    const { target } = def.type;
    const path = interfacePath(from, target.owner as WitInterface);
    const key = JSON.stringify([path, def.since, def.unstable, def.deprecated]);
    if (runs[runs.length - 1]?.key !== key) runs.push({ def, key, path, names: [] });
    const name = target.name === def.name ? printName(def.name) : `${printName(target.name)} as ${printName(def.name)}`;
    runs[runs.length - 1].names.push(name);
  }
  for (const { def, path, names } of runs) {
    printAnnotations(out, { ...def, docs: "" });
    out.line(`use ${path}.{${names.join(", ")}};`);
  }
  return runs.length > 0;
}

function printTypeDef(out: Lines, def: WitTypeDef, methods: readonly WitFunc[]): void {
  printAnnotations(out, def);
  const name = printName(def.name);
  const { type } = def;
  const label = (label: string, rest = "") => {
    printDocs(out, def.labelDocs?.get(label) ?? "");
    out.line(`${printName(label)}${rest},`);
  };
  switch (type.kind) {
    case "alias":
      out.line(`type ${name} = ${printType(type.type)};`);
      break;
    case "resource":
      if (methods.length === 0) out.line(`resource ${name};`);
      else out.block(`resource ${name}`, () => methods.forEach((func) => printMethod(out, func)));
      break;
    case "record":
      out.block(`record ${name}`, () => {
        for (const field of type.fields) label(field.name, `: ${printType(field.type)}`);
      });
      break;
    case "variant":
      out.block(`variant ${name}`, () => {
        for (const row of type.cases) label(row.name, row.type === undefined ? "" : `(${printType(row.type)})`);
      });
      break;
    case "flags":
    case "enum":
      out.block(`${type.kind} ${name}`, () => {
        for (const name of type.names) label(name);
      });
      break;
  }
}

function printMethod(out: Lines, func: WitFunc): void {
  printAnnotations(out, func);
  if (func.kind === "constructor") out.line(`constructor${printParams(func)};`);
  else out.line(`${printName(func.name)}: ${func.kind === "static" ? "static " : ""}${printSignature(func)};`);
}

/** The signature of a function, such as `func(a: u32) -> string`. */
function printSignature(func: WitFunc): string {
  return `${func.async ? "async " : ""}func${printParams(func)}`;
}

function printParams({ params, result }: WitFunc): string {
  const list = params.map(({ name, type }) => `${printName(name)}: ${printType(type)}`).join(", ");
  return `(${list})${result === undefined ? "" : ` -> ${printType(result)}`}`;
}

/** A type, such as `result<list<u8>, error-code>`. */
function printType(type: WitType): string {
  switch (type.kind) {
    case "named":
      return printName(type.def.name);
    case "own":
      return printName(type.resource.name);
    case "borrow":
      return `borrow<${printName(type.resource.name)}>`;
    case "list":
      return `list<${printType(type.element)}${type.length === undefined ? "" : `, ${type.length}`}>`;
    case "result":
      if (type.err === undefined) return type.ok === undefined ? "result" : `result<${printType(type.ok)}>`;
      return `result<${type.ok === undefined ? "_" : printType(type.ok)}, ${printType(type.err)}>`;
    default: {
      const operands = valueOperands<WitType, WitTypeDef>(type);
      return operands.length === 0 ? type.kind : `${type.kind}<${operands.map(printType).join(", ")}>`;
    }
  }
}

function printDocs(out: Lines, docs: string): void {
  for (const line of docs === "" ? [] : docs.replace(/\n$/, "").split("\n")) {
    out.line(line === "" ? "///" : `/// ${line}`);
  }
}

function printAnnotations(out: Lines, { docs, since, unstable, deprecated, externalId }: Annotations): void {
  printDocs(out, docs);
  if (since !== undefined) out.line(`@since(version = ${since})`);
  if (unstable !== undefined) out.line(`@unstable(feature = ${unstable})`);
  if (deprecated !== undefined) out.line(`@deprecated(version = ${deprecated})`);
  if (externalId !== undefined) out.line(`@external-id(${JSON.stringify(externalId)})`);
}

/** Everything about a document as plain data, for `--json` and for comparisons. */
export function describeWorld(world: WitWorld): object {
  const items = (side: ReadonlyMap<string, WorldItem>) =>
    [...side].map(([name, item]) => ({ name, ...describeItem(item) }));
  return {
    package: packageId(world.package.name),
    name: world.name,
    imports: items(world.imports),
    exports: items(world.exports),
  };
}

function describeItem(item: WorldItem): object {
  switch (item.kind) {
    case "func":
      return { kind: "func", type: printSignature(item.func) };
    case "type":
      return { kind: "type", type: describeDef(item.def) };
    case "interface": {
      const { types, funcs } = item.interface;
      return {
        kind: "interface",
        interface: interfaceId(item.interface),
        types: [...types.values()].map((def) => ({ name: def.name, type: describeDef(def) })),
        functions: [...funcs.values()].map((func) => ({ name: funcId(func), type: printSignature(func) })),
      };
    }
  }
}

function describeDef({ type }: WitTypeDef): string {
  switch (type.kind) {
    case "alias":
      return printType(type.type);
    case "use":
      return `${interfaceId(type.target.owner as WitInterface)}.${type.target.name}`;
    case "resource":
      return "resource";
    case "record":
      return `record { ${type.fields.map((field) => `${field.name}: ${printType(field.type)}`).join(", ")} }`;
    case "variant":
      return `variant { ${
        type.cases.map((row) => row.type === undefined ? row.name : `${row.name}(${printType(row.type)})`).join(", ")
      } }`;
    default:
      return `${type.kind} { ${type.names.join(", ")} }`;
  }
}
