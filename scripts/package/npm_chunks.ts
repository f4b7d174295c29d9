/**
 * Bundles the modules of the engine's npm package into a few chunks: importing hundreds of files takes Node several
 * times as long as evaluating them. In: the package's files, finished for npm, and its exports. Out: the same package
 * with a module for each export, program and late module, and chunks that these share.
 *
 * Invariants: every export keeps its path; a class exists once, whichever modules are imported; a module that is
 * loaded by `require` imports no chunk with a top-level `await`. Only programs and workers have one, so that
 * `require` loads every export.
 */
import { parse } from "acorn";
import { posix } from "node:path";
import { type OutputChunk, rollup } from "@rollup/wasm-node";
import { awaits, closureOf, moduleAt, reachesAwait, refuseWarnings } from "./module_graph.ts";
import type { Files } from "./npm_package.ts";

/** A chunk: the modules that every root reaches by static imports, or any root. */
interface ChunkRow {
  readonly name: string;
  readonly roots: readonly string[];
  readonly reachedFrom?: "any";
  /** Leaves out modules that reach a top-level `await`, and so cannot be loaded by `require`. */
  readonly synchronous?: true;
}

/**
 * The chunks. A module belongs to the first that takes it; other modules form chunks by the entries that reach them.
 * Every row is closed under static imports, apart from earlier rows, so chunks do not import each other in cycles.
 */
const CHUNKS: readonly ChunkRow[] = [
  // Commands that do not compile load no more than these.
  {
    name: "base",
    roots: ["base/errors.js", "base/numbers.js", "settings/features.js", "host/files.js", "host/process.js"],
    reachedFrom: "any",
  },
  // Programs in whose bundle late modules have no files give them before the engine is evaluated.
  { name: "late_module", roots: ["host/late_module.js"], reachedFrom: "any" },
  { name: "core", roots: ["mod.js"], synchronous: true },
  { name: "engine", roots: ["mod.js"] },
  { name: "rules", roots: ["validate/constant_rules.js", "validate/clauses.js"] },
  { name: "prototypes", roots: ["webassembly/js_prototypes.js"] },
  { name: "body_analysis", roots: ["translate/body_analysis.js"] },
  // The compiled form of the optimizer loads none of its TypeScript form.
  { name: "form", roots: ["portable/portable_compiler.js"] },
  { name: "optimizer", roots: ["compile/body_compiler_x64.js", "compile/body_compiler_arm64.js"] },
  { name: "text", roots: ["text/parse_module.js"] },
  { name: "webassembly", roots: ["webassembly/mod.js"] },
  { name: "wasi", roots: ["wasi/mod.js"] },
];

/** Programs and workers, which no module imports. */
const PROGRAMS = /(?:^|_|\/)(?:worker|program|sampler_code)\.js$/;

/** The prefix of a URL below the package's folder, until the folder of its chunk is known. */
const PACKAGE = "package-of-waft:";

/** The folder of the entries for bundlers. */
const BUNDLED = "bundled";

/**
 * Entries for bundlers, which find them by the condition "module" of `exports`: they import the late modules, which
 * have no files of their own in a bundle, and give them to the engine. Adds the entries to `modules`, and to `exports`
 * for the public modules. The late modules without imports come first: the engine needs them when it is evaluated.
 */
function addBundledEntries(modules: Map<string, SourceModule>, late: readonly string[], exports: Exports): string[] {
  const isLeaf = (path: string) => moduleAt(modules, path).imports.length === 0;
  const giving = (name: string, before: readonly string[], paths: readonly string[]) => {
    const lines = [
      ...before.map((path) => `import "${path}";`),
      'import { LateModule } from "../host/late_module.js";',
      ...paths.map((path, k) => `import * as m${k} from "../${path}";`),
      `LateModule.provide({ ${paths.map((path, k) => `"${path}": m${k}`).join(", ")} });`,
    ];
    add(`${BUNDLED}/${name}.js`, lines);
  };
  const add = (path: string, lines: readonly string[]) => {
    const source = `${lines.join("\n")}\n`;
    modules.set(path, readModule(path, source, new Set()));
  };
  giving("leaves", [], late.filter(isLeaf));
  giving("parts", ["./leaves.js"], late.filter((path) => !isLeaf(path)));
  const entries = Object.entries(exports).flatMap(([name, conditions]) => {
    if (name.startsWith("./internal/") || typeof conditions === "string") return [];
    const path = exportedModules(conditions)[0];
    const entry = `${BUNDLED}/${name === "." ? "mod" : name.slice(2)}.js`;
    const up = "../".repeat(entry.split("/").length - 1);
    add(entry, [`import "${up}${BUNDLED}/parts.js";`, `export * from "${up}${path}";`]);
    const { types, ...others } = conditions as Record<string, unknown>;
    exports[name] = { ...(types === undefined ? {} : { types }), module: `./${entry}`, ...others };
    return [entry];
  });
  // Entries of their own, so that the order in which they are evaluated stays.
  return [`${BUNDLED}/leaves.js`, `${BUNDLED}/parts.js`, ...entries];
}

type Exports = Record<string, unknown>;

/** The late modules that the modules declare. */
function lateModules(modules: ReadonlyMap<string, SourceModule>): string[] {
  const found = new Set<string>();
  for (const { source } of modules.values()) {
    const declared = /new LateModule\(new URL\("[^"]*?([\w/]+\.js)", import\.meta\.url\), ?\(\) ?=> ?import\(/g;
    for (const [, path] of source.matchAll(declared)) found.add(path);
  }
  return [...found].filter((path) => modules.has(path)).sort();
}

/** One module: its static imports, and its source with URLs relative to the package. */
interface SourceModule {
  readonly source: string;
  readonly imports: readonly string[];
  readonly hasAwait: boolean;
}

/** The path of a specifier of the module at `path`; undefined if it is not in the package. */
function resolved(path: string, specifier: string): string | undefined {
  return specifier.startsWith(".") ? posix.join(posix.dirname(path), specifier) : undefined;
}

/**
 * Replaces URLs relative to the module's own by URLs relative to the package, because the module's code moves to a
 * chunk. Adds the modules that they locate to `located`.
 */
export function placeModuleUrls(path: string, source: string, located: Set<string>): string {
  const place = (target: string): string => {
    const clean = target.replace(/^\.?\/?$/, "");
    if (clean.endsWith(".js")) located.add(clean);
    return `new URL("${PACKAGE}${clean}", import.meta_url)`;
  };
  return source
    .replace(/new URL\([`"]([^`"]*)[`"], import\.meta\.url\)/g, (_, relative: string) => {
      const target = relative.replace(/\$\{(?:SUFFIX|suffix)\}/, "js");
      if (target.includes("$")) throw new Error(`${path} locates ${relative}, which a bundle cannot know`);
      return place(posix.join(posix.dirname(path), target));
    })
    // A module's name for itself. Its extension is the same everywhere, and so are the packages that it may require.
    .replace(/(?<!createRequire\()import\.meta\.url(?!\.endsWith\()/g, () => `${place(path)}.href`)
    .replaceAll("import.meta_url", "import.meta.url");
}

/**
 * The source of a module that does not await at its top level, so that `require` can load it. Awaits that load late
 * modules in advance are removed: the package's modules are files, which `require` loads on first use. Throws an Error
 * for other awaits.
 */
export function withoutAwaits(path: string, source: string): string {
  const program = parse(source, { ecmaVersion: "latest", sourceType: "module" });
  let text = source;
  for (const node of [...program.body].reverse()) {
    if (!awaits(node)) continue;
    const statement = source.slice(node.start, node.end);
    const isPreparing = /^await (?:[^;]*\.(?:load|prepare)\(\)\)?|prepare\w*\([^;]*\));$/s.test(statement);
    const changed = isPreparing ? "" : statement.replace(
      /await (import\(("\.\/[\w/]+\.js")\))/,
      "((late) => new Proxy({}, { get: (_, name) => late.get()[name] }))" +
        "(new LateModule(new URL($2, import.meta.url), () => $1))",
    );
    if (changed === statement) throw new Error(`${path} awaits at its top level: ${statement.slice(0, 80)}`);
    text = text.slice(0, node.start) + changed + text.slice(node.end);
  }
  return text;
}

function readModule(path: string, text: string, located: Set<string>): SourceModule {
  const source = placeModuleUrls(path, text, located);
  const program = parse(source, { ecmaVersion: "latest", sourceType: "module" });
  const imports = program.body.flatMap((node) => {
    const from = "source" in node && typeof node.source?.value === "string"
      ? resolved(path, node.source.value)
      : undefined;
    return from ?? [];
  });
  return { source, imports, hasAwait: awaits(program) };
}

type Modules = ReadonlyMap<string, SourceModule>;

/** The modules that all roots of a row reach, or any. */
function reached(modules: Modules, { roots, reachedFrom }: ChunkRow): Set<string> {
  const closures = roots.map((root) => closureOf(modules, root));
  return reachedFrom === "any"
    ? new Set(closures.flatMap((closure) => [...closure]))
    : closures.reduce((common, closure) => common.intersection(closure));
}

/** The chunk of each module that has one by `CHUNKS`. */
export function chunkNames(modules: Modules): Map<string, string> {
  const chunks = new Map<string, string>();
  for (const row of CHUNKS) {
    for (const path of reached(modules, row)) {
      if (!chunks.has(path) && (row.synchronous !== true || !reachesAwait(modules, path))) chunks.set(path, row.name);
    }
  }
  return chunks;
}

/** The modules that `exports` of package.json names. */
function exportedModules(exports: unknown): string[] {
  if (typeof exports === "string") return exports.endsWith(".js") ? [exports.replace(/^\.\//, "")] : [];
  return Object.values(exports as Record<string, unknown>).flatMap(exportedModules);
}

/** The source of a chunk, its URLs relative to itself. */
function finishChunk({ fileName, code }: OutputChunk): string {
  const up = "../".repeat(fileName.split("/").length - 1) || "./";
  return code.replaceAll(PACKAGE, up);
}

/**
 * Replaces the JavaScript in `files` by chunks, and adds entries for bundlers to `exports`. `kept` lists further
 * modules that keep their paths. Throws an Error for an import or URL of a module that is not in the package.
 */
export async function bundleModules(files: Files, exports: Exports, kept: readonly string[] = []): Promise<void> {
  const located = new Set<string>();
  const modules = new Map<string, SourceModule>();
  for (const [path, bytes] of files) {
    if (!path.endsWith(".js")) continue;
    const text = new TextDecoder().decode(bytes);
    modules.set(path, readModule(path, PROGRAMS.test(path) ? text : withoutAwaits(path, text), located));
  }
  const entries = new Set([...exportedModules(exports), ...kept, ...located]);
  for (const entry of addBundledEntries(modules, lateModules(modules), exports)) entries.add(entry);
  const names = chunkNames(modules);
  const bundle = await rollup({
    input: Object.fromEntries([...entries].map((path) => [path.replace(/\.js$/, ""), path])),
    preserveEntrySignatures: "strict",
    plugins: [{
      name: "package",
      resolveId(specifier, importer) {
        const id = importer === undefined ? specifier : resolved(importer, specifier);
        return id ?? { id: specifier, external: true };
      },
      load: (path) => moduleAt(modules, path).source,
    }],
    onLog: refuseWarnings,
  });
  const { output } = await bundle.generate({
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name].js",
    manualChunks: (path) => names.get(path),
  });
  await bundle.close();
  for (const path of modules.keys()) files.delete(path);
  for (const chunk of output) {
    if (chunk.type === "chunk") files.set(chunk.fileName, new TextEncoder().encode(finishChunk(chunk)));
  }
}
