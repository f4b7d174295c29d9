/**
 * The API reference as Markdown, one page for each public module of the packages.
 *
 * In: modules as `deno doc` describes them. Out: pages that are rendered, searched and indexed like the rest of the
 * documentation. A symbol is a section; methods of classes are sections below it, named `Class.method`.
 */
import type { StoredDocument } from "../../store/keys.ts";
import {
  type Declaration,
  type Definition,
  type DocModule,
  type DocSymbol,
  examplesOf,
  type FunctionDef,
  isInternal,
  type JsDoc,
  type Member,
} from "./doc_json.ts";
import { printFunction, printParams, printProperty, printType, typeParameters } from "./print_type.ts";

/** A module of the reference. */
export interface ReferenceModule {
  /** File name of the page without `.md`. */
  readonly page: string;
  /** The specifier that programs import. */
  readonly specifier: string;
  /** The folder of the package, with its deno.json. */
  readonly package: "engine" | "component";
  /** The key of `exports` in the package's deno.json. */
  readonly entry: string;
  readonly title: string;
  readonly about: string;
}

/** All modules, in order. */
export const REFERENCE_MODULES: readonly ReferenceModule[] = [
  {
    page: "reference",
    specifier: "@waft/engine",
    package: "engine",
    entry: ".",
    title: "API reference",
    about: "Engines, modules, instances, memories, tables, errors and settings.",
  },
  {
    page: "reference-wasi",
    specifier: "@waft/engine/wasi",
    package: "engine",
    entry: "./wasi",
    title: "API reference: WASI",
    about: "WASI preview 1: arguments, environment, standard streams and directories of a guest.",
  },
  {
    page: "reference-threads",
    specifier: "@waft/engine/wasi/threads",
    package: "engine",
    entry: "./wasi/threads",
    title: "API reference: WASI threads",
    about: "Programs that use wasi-threads: each thread is a Worker.",
  },
  {
    page: "reference-program",
    specifier: "@waft/engine/wasi/program",
    package: "engine",
    entry: "./wasi/program",
    title: "API reference: programs",
    about: "Running a program of WASI with files and streams in memory.",
  },
  {
    page: "reference-runner",
    specifier: "@waft/engine/runner",
    package: "engine",
    entry: "./runner",
    title: "API reference: runners",
    about: "The engine in a process of its own, which the operating system confines.",
  },
  {
    page: "reference-extism",
    specifier: "@waft/engine/extism",
    package: "engine",
    entry: "./extism",
    title: "API reference: Extism",
    about: "Plugins of Extism, unchanged: modules for its host interface, and its manifests.",
  },
  {
    page: "reference-counts",
    specifier: "@waft/engine/counts",
    package: "engine",
    entry: "./counts",
    title: "API reference: counts",
    about: "Exact counts of runs: calls, turns of loops, allocations, growth of memories and calls of the host.",
  },
  {
    page: "reference-recording",
    specifier: "@waft/engine/recording",
    package: "engine",
    entry: "./recording",
    title: "API reference: recordings",
    about: "Recording everything that enters a guest, and repeating the run without its host.",
  },
  {
    page: "reference-node-wasi",
    specifier: "@waft/engine/node_wasi",
    package: "engine",
    entry: "./node_wasi",
    title: "API reference: node:wasi",
    about: "The class `WASI` of `node:wasi` on waft's WASI.",
  },
  {
    page: "reference-webassembly",
    specifier: "@waft/engine/webassembly",
    package: "engine",
    entry: "./webassembly",
    title: "API reference: WebAssembly",
    about: "A namespace with the interface of the global `WebAssembly`.",
  },
  {
    page: "reference-component",
    specifier: "@waft/component",
    package: "component",
    entry: ".",
    title: "API reference: components",
    about: "Compiling, instantiating and calling WebAssembly components.",
  },
  {
    page: "reference-component-wasi",
    specifier: "@waft/component/wasi",
    package: "component",
    entry: "./wasi",
    title: "API reference: WASI of components",
    about: "WASI 0.2 and 0.3 for components: arguments, streams, directories and network.",
  },
  {
    page: "reference-component-program",
    specifier: "@waft/component/program",
    package: "component",
    entry: "./program",
    title: "API reference: programs that are components",
    about: "Running a module or a component of WASI with files and streams in memory.",
  },
];

/** Kinds of declarations in the order of the page, with their names. */
const KINDS: readonly (readonly [kind: Declaration["kind"], word: string])[] = [
  ["function", "Function"],
  ["class", "Class"],
  ["interface", "Interface"],
  ["typeAlias", "Type"],
  ["enum", "Enumeration"],
  ["namespace", "Namespace"],
  ["variable", "Variable"],
];

/** The page of a module. */
export function referencePage(module: ReferenceModule, doc: DocModule): StoredDocument {
  const rank = ({ declarations }: DocSymbol): number => KINDS.findIndex(([kind]) => kind === declarations[0].kind);
  const symbols = [...doc.symbols].sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
  const others = REFERENCE_MODULES.filter((m) => m !== module).map((m) =>
    `[\`${m.specifier}\`](https://waft.sh/${m.page})`
  );
  const lines = [
    `# ${module.title}`,
    "",
    `${module.about} Everything that \`${module.specifier}\` exports, written from its sources. Further modules: ${
      others.join(", ")
    }. [Embedding](https://waft.sh/embedding) is an introduction.`,
    "",
    text(doc.doc),
    "",
    ...symbols.flatMap(symbolSection),
  ];
  return { path: `${module.page}.md`, source: `${lines.join("\n").replace(/\n{3,}/g, "\n\n").trimEnd()}\n` };
}

function symbolSection({ name, declarations }: DocSymbol): string[] {
  const [first] = declarations as [Declaration];
  const word = KINDS.find(([kind]) => kind === first.kind)?.[1] ?? "Symbol";
  const comments = declarations.map((d) => d.jsDoc).filter((d) => d !== undefined);
  return [
    `## ${name}`,
    "",
    `${word}. ${text(comments[0]?.doc ?? "")}`.trim(),
    "",
    "```ts",
    ...declarations.map((d) => signature(name, d)),
    "```",
    "",
    ...comments.flatMap(details),
    ...(first.def === undefined || !["class", "interface"].includes(first.kind) ? [] : members(name, first)),
  ];
}

/** The declaration without its members. */
function signature(name: string, { kind, def = {} }: Declaration): string {
  const generics = typeParameters(def.typeParams);
  switch (kind) {
    case "function":
      return `function ${name}${printFunction(def as FunctionDef)}`;
    case "typeAlias":
      return `type ${name}${generics} = ${printType(def.tsType)}`;
    case "variable":
      return `${def.kind ?? "const"} ${name}: ${printType(def.tsType)}`;
    case "class":
    case "interface":
      return `${kind} ${name}${generics}${heritage(def)}`;
    default:
      return `${kind} ${name}`;
  }
}

function heritage(def: Definition): string {
  const parents = typeof def.extends === "string" ? def.extends : (def.extends ?? []).map(printType).join(", ");
  const contracts = (def.implements ?? []).map(printType).join(", ");
  return (parents === "" ? "" : ` extends ${parents}`) + (contracts === "" ? "" : ` implements ${contracts}`);
}

function members(name: string, { kind, def = {} }: Declaration): string[] {
  const isPublic = (m: Member): boolean =>
    !isInternal(m.jsDoc) && (m.accessibility ?? "public") === "public" && !m.name.startsWith("[");
  const properties = (def.properties ?? []).filter(isPublic);
  const accessors = (def.methods ?? []).filter((m) => isPublic(m) && m.kind === "getter");
  const methods = (def.methods ?? []).filter((m) => isPublic(m) && (m.kind ?? "method") === "method");
  const constructors = kind === "class" ? (def.constructors ?? []).filter(isPublic) : [];
  const items = [
    ...properties.map((p) => item(printProperty(p), p.jsDoc)),
    ...accessors.map((a) => item(`readonly ${a.name}: ${printType(a.functionDef?.returnType)}`, a.jsDoc)),
  ];
  return [
    ...constructors.flatMap((c) => callSection(`new ${name}`, `new ${name}(${printParams(c.params ?? [])})`, c.jsDoc)),
    ...(items.length === 0 ? [] : [...items, ""]),
    ...overloads(methods).flatMap(([method, all]) => {
      const place = all[0].isStatic === true ? "static " : "";
      const shapes = all.map((m) => place + method + printFunction(m.functionDef ?? (m as FunctionDef)));
      return callSection(`${name}.${method}`, shapes.join("\n"), all.find((m) => m.jsDoc !== undefined)?.jsDoc);
    }),
  ];
}

function overloads(methods: readonly Member[]): (readonly [string, Member[]])[] {
  const byName = new Map<string, Member[]>();
  for (const method of methods) byName.set(method.name, [...byName.get(method.name) ?? [], method]);
  return [...byName];
}

/** A list item: the declaration of a property, then its comment. */
function item(declaration: string, jsDoc: JsDoc | undefined): string {
  const doc = text(jsDoc?.doc ?? "").replace(/\s*\n\s*/g, " ");
  return `- \`${declaration}\`${doc === "" ? "" : `: ${doc}`}`;
}

function callSection(title: string, shape: string, jsDoc: JsDoc | undefined): string[] {
  return [`### ${title}`, "", text(jsDoc?.doc ?? ""), "", "```ts", shape, "```", "", ...details(jsDoc)];
}

/** Parameters, errors and examples of a comment. */
function details(jsDoc: JsDoc | undefined): string[] {
  const notes = (jsDoc?.tags ?? []).flatMap((tag) => {
    if (tag.kind === "param") return [`- \`${tag.name}\`: ${text(tag.doc ?? "")}`];
    if (tag.kind === "throws") return [`- Throws ${text(tag.doc ?? "")}`];
    return tag.kind === "deprecated" ? [`- Deprecated. ${text(tag.doc ?? "")}`] : [];
  });
  return [...notes, ...(notes.length > 0 ? [""] : []), ...examplesOf(jsDoc).flatMap((e) => [e, ""])];
}

/** A comment as Markdown of a page: links to symbols become code, headings stay below ours. */
function text(doc: string): string {
  return doc.trim().replace(/\{@link(?:code|plain)?\s+([^}\s|]+)[^}]*\}/g, "`$1`").replace(/^#+ /gm, "#### ");
}
