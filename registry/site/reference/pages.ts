/**
 * The API reference as Markdown: a page for each public module of the packages, and one for each symbol.
 *
 * In: modules as `deno doc` describes them. Out: pages that are rendered, searched and indexed like the rest of the
 * documentation. Methods of classes are sections of the class's page, named `Class.method`.
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
  {
    page: "reference-component-runner",
    specifier: "@waft/component/runner",
    package: "component",
    entry: "./runner",
    title: "API reference: runners of components",
    about: "Components in a process of their own: functions, resources, streams and WASI.",
  },
  {
    page: "reference-component-install",
    specifier: "@waft/component/install",
    package: "component",
    entry: "./install",
    title: "API reference: imported components",
    about: "Components as modules of JavaScript: what they import, and their WASI.",
  },
];

/** Kinds of declarations in the order of the page, with their names. */
const KINDS: readonly { readonly kind: Declaration["kind"]; readonly word: string; readonly plural: string }[] = [
  { kind: "function", word: "Function", plural: "Functions" },
  { kind: "class", word: "Class", plural: "Classes" },
  { kind: "interface", word: "Interface", plural: "Interfaces" },
  { kind: "typeAlias", word: "Type", plural: "Types" },
  { kind: "enum", word: "Enumeration", plural: "Enumerations" },
  { kind: "namespace", word: "Namespace", plural: "Namespaces" },
  { kind: "variable", word: "Variable", plural: "Variables" },
];

/** What the pages of a module need to know of it. */
interface Context {
  readonly module: ReferenceModule;
  /** The symbols that the module exports, with the names of their methods. */
  readonly symbols: ReadonlyMap<string, ReadonlySet<string>>;
  /** The address of the repository's root folder, if the sources are there. */
  readonly root: string | undefined;
}

/**
 * The page of a module, which lists its symbols by kind, and the page of each symbol, in a folder that has the name of
 * the module's page. Sources are named relative to `root`, a file URL that ends in a slash.
 */
export function referencePages(module: ReferenceModule, doc: DocModule, root?: string): StoredDocument[] {
  const symbols = new Map(doc.symbols.map((symbol) => [symbol.name, methodsOf(symbol)]));
  const context = { module, symbols, root };
  return [modulePage(doc, context), ...doc.symbols.map((symbol) => symbolPage(symbol, context))];
}

function methodsOf({ declarations }: DocSymbol): Set<string> {
  return new Set(declarations.flatMap(({ def }) => (def?.methods ?? []).filter(isMethod).map(({ name }) => name)));
}

/** A page of `lines`. */
function page(name: string, lines: readonly string[]): StoredDocument {
  return { path: `${name}.md`, source: `${lines.join("\n").replace(/\n{3,}/g, "\n\n").trimEnd()}\n` };
}

function modulePage(doc: DocModule, context: Context): StoredDocument {
  const { module } = context;
  const others = REFERENCE_MODULES.filter((m) => m !== module).map((m) =>
    `[\`${m.specifier}\`](https://waft.sh/${m.page})`
  );
  return page(module.page, [
    `# ${module.title}`,
    "",
    `${module.about} Everything that \`${module.specifier}\` exports, written from its sources. Further modules: ${
      others.join(", ")
    }. [Embedding](https://waft.sh/embedding) is an introduction.`,
    "",
    text(doc.doc, context),
    "",
    ...KINDS.flatMap(({ kind, plural }) => {
      const symbols = doc.symbols.filter(({ declarations }) => declarations[0].kind === kind);
      return symbols.length === 0 ? [] : [`## ${plural}`, "", ...symbols.sort(byName).map(entry), ""];
    }),
  ]);

  function entry({ name, declarations }: DocSymbol): string {
    const comment = declarations.find((d) => d.jsDoc?.doc !== undefined)?.jsDoc?.doc ?? "";
    const sentence = firstSentence(text(comment, { ...context, symbols: new Map() }));
    return `- [\`${name}\`](${addressOf(context, name)})${sentence === "" ? "" : `: ${sentence}`}`;
  }
}

function byName(a: DocSymbol, b: DocSymbol): number {
  return a.name < b.name ? -1 : 1;
}

/** The name of a symbol's page: two names never differ in the case of letters alone, since some folders ignore it. */
function pageName({ module, symbols }: Context, name: string): string {
  const isLater = [...symbols.keys()].some((other) => other < name && other.toLowerCase() === name.toLowerCase());
  return `${module.page}/${name}${isLater ? "-2" : ""}`;
}

/** The address of a symbol's page. */
function addressOf(context: Context, name: string): string {
  return `https://waft.sh/${pageName(context, name)}`;
}

/** The first sentence of a comment, on one line. */
function firstSentence(comment: string): string {
  const [paragraph] = comment.split(/\n\s*\n/) as [string];
  const line = paragraph.replace(/\s*\n\s*/g, " ").trim();
  return /^(?:[^.]|\.(?! |$))*\./.exec(line)?.[0] ?? line;
}

function symbolPage({ name, declarations }: DocSymbol, context: Context): StoredDocument {
  const { module } = context;
  const [first] = declarations as [Declaration];
  const word = KINDS.find(({ kind }) => kind === first.kind)?.word ?? "Symbol";
  const comments = declarations.map((d) => d.jsDoc).filter((d) => d !== undefined);
  const hasMembers = first.def !== undefined && ["class", "interface"].includes(first.kind);
  return page(pageName(context, name), [
    `# ${name}`,
    "",
    text(comments[0]?.doc ?? "", context),
    "",
    `${word} of [\`${module.specifier}\`](https://waft.sh/${module.page})${sourceOf(first, context)}.`,
    "",
    "```ts",
    ...declarations.map((d) => signature(name, d)),
    "```",
    "",
    ...comments.flatMap((comment) => details(comment, context)),
    ...(hasMembers ? members(name, first, context) : []),
    ...relatedSection(name, declarations, context),
  ]);
}

/** The file and line of a declaration, as {@linkcode readSource} finds them in a page. */
function sourceOf({ location }: Declaration, { root }: Context): string {
  if (location === undefined || root === undefined || !location.filename.startsWith(root)) return "";
  return `, from line ${location.line + 1} of \`${location.filename.slice(root.length)}\``;
}

/** The file and line that the page of a symbol names; undefined if it names none. */
export function readSource(markdown: string): { readonly file: string; readonly line: string } | undefined {
  const [, line, file] = /^\w+ of \[`[^`]*`\]\([^)]*\), from line ([0-9]+) of `([a-z0-9_./-]+)`\.$/m.exec(markdown) ??
    [];
  return line === undefined || file === undefined ? undefined : { file, line };
}

/** Links to the symbols of the module that the types of a declaration name. */
function relatedSection(name: string, declarations: readonly Declaration[], context: Context): string[] {
  const named = new Set<string>();
  JSON.stringify(declarations, (key, value) => {
    if ((key === "typeName" || key === "extends") && typeof value === "string") named.add(value);
    return value;
  });
  const related = [...named].filter((other) => other !== name && context.symbols.has(other)).sort();
  if (related.length === 0) return [];
  const links = related.map((other) => `[\`${other}\`](${addressOf(context, other)})`);
  return ["## Related", "", `${links.join(", ")}.`, ""];
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

function members(name: string, { kind, def = {} }: Declaration, context: Context): string[] {
  const properties = (def.properties ?? []).filter(isPublic);
  const accessors = (def.methods ?? []).filter((m) => isPublic(m) && m.kind === "getter");
  const methods = (def.methods ?? []).filter(isMethod);
  const constructors = kind === "class" ? (def.constructors ?? []).filter(isPublic) : [];
  const items = [
    ...properties.map((p) => item(printProperty(p), p.jsDoc, context)),
    ...accessors.map((a) => item(`readonly ${a.name}: ${printType(a.functionDef?.returnType)}`, a.jsDoc, context)),
  ];
  return [
    ...constructors.flatMap((c) =>
      callSection(`new ${name}`, `new ${name}(${printParams(c.params ?? [])})`, c.jsDoc, context)
    ),
    ...(items.length === 0 ? [] : [...items, ""]),
    ...overloads(methods).flatMap(([method, all]) => {
      const place = all[0].isStatic === true ? "static " : "";
      const shapes = all.map((m) => place + method + printFunction(m.functionDef ?? (m as FunctionDef)));
      const comment = all.find((m) => m.jsDoc !== undefined)?.jsDoc;
      return callSection(`${name}.${method}`, shapes.join("\n"), comment, context);
    }),
  ];
}

function isPublic({ name, jsDoc, accessibility = "public" }: Member): boolean {
  return !isInternal(jsDoc) && accessibility === "public" && !name.startsWith("[");
}

function isMethod(member: Member): boolean {
  return isPublic(member) && (member.kind ?? "method") === "method";
}

function overloads(methods: readonly Member[]): (readonly [string, Member[]])[] {
  const byName = new Map<string, Member[]>();
  for (const method of methods) byName.set(method.name, [...byName.get(method.name) ?? [], method]);
  return [...byName];
}

/** A list item: the declaration of a property, then its comment. */
function item(declaration: string, jsDoc: JsDoc | undefined, context: Context): string {
  const doc = text(jsDoc?.doc ?? "", context).replace(/\s*\n\s*/g, " ");
  return `- \`${declaration}\`${doc === "" ? "" : `: ${doc}`}`;
}

function callSection(title: string, shape: string, jsDoc: JsDoc | undefined, context: Context): string[] {
  const comment = text(jsDoc?.doc ?? "", context);
  return [`## ${title}`, "", comment, "", "```ts", shape, "```", "", ...details(jsDoc, context)];
}

/** Parameters, errors and examples of a comment. */
function details(jsDoc: JsDoc | undefined, context: Context): string[] {
  const notes = (jsDoc?.tags ?? []).flatMap((tag) => {
    if (tag.kind === "param") return [`- \`${tag.name}\`: ${text(tag.doc ?? "", context)}`];
    if (tag.kind === "throws") return [`- Throws ${text(tag.doc ?? "", context)}`];
    return tag.kind === "deprecated" ? [`- Deprecated. ${text(tag.doc ?? "", context)}`] : [];
  });
  return [...notes, ...(notes.length > 0 ? [""] : []), ...examplesOf(jsDoc).flatMap((e) => [e, ""])];
}

/** A comment as Markdown of a page: links to symbols of the module become links to their pages, other links code. */
function text(doc: string, context: Context): string {
  return doc.trim().replace(/\{@link(?:code|plain)?\s+([^}\s|]+)[^}]*\}/g, (_, target: string) => {
    const [symbol, member = ""] = target.split(".") as [string, string?];
    const methods = context.symbols.get(symbol);
    if (methods === undefined) return `\`${target}\``;
    const fragment = methods.has(member) ? `#${target.toLowerCase().replace(".", "-")}` : "";
    return `[\`${target}\`](${addressOf(context, symbol)}${fragment})`;
  }).replace(/^#+ /gm, "#### ");
}
