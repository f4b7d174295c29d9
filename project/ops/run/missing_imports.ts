/**
 * Unsatisfied imports, reported all at once before compilation.
 *
 * In: a module's imports, and the names that are provided. Out: a failure that lists each missing import with its
 * type, its position in a text module, and its usual cause; or, on request, functions that trap when called.
 */
import { markUncatchable, TrapError } from "@waft/engine/internal/errors";
import { Wasi } from "@waft/engine/wasi";
import { nearestName } from "../../base/grammar.ts";
import { FileFailure, ListedFailure, oneLine } from "../../base/failure.ts";
import type { PlacedImport, PlacedShape } from "./module_shape.ts";
import { type ImportStubs, startsThreads, WASI } from "./run_module.ts";

/** Names that are offered, by namespace. */
type OfferedImports = ReadonlyMap<string, readonly string[]>;

/** Namespaces and names that compilers leave to their own runtimes, with advice for each. */
const HINTS: readonly (readonly [namespace: RegExp, name: RegExp, hint: string])[] = [
  [/^env$/, /^(?:abort|seed|trace|Date\.now)$/, "AssemblyScript: build with --use abort= or with its WASI shim"],
  [/^(?:wbg|__wbindgen.*|\.\/.*_bg\.js)$/, /./, "wasm-bindgen: made for JavaScript; build for wasm32-wasip1 instead"],
  [
    /^(?:env|a)$/,
    /^(?:emscripten_.*|invoke_.*|__cxa_.*|_embind.*|__syscall_.*)$/,
    "Emscripten: build with -sSTANDALONE_WASM",
  ],
  [/^(?:gojs|go)$/, /./, "Go for browsers: build with GOOS=wasip1"],
  [/^wasi:/, /./, "WASI 0.2 is for components; build for wasm32-wasip1"],
  [/^wasi_snapshot_preview2$/, /./, "build for wasm32-wasip1"],
  [/^wasi_unstable$/, /./, "an old WASI: build again with a current toolchain"],
  [/@[0-9]+$/, /./, "a plugin's contract: add a plugin that provides it (`waft add <plugin>`)"],
];

/** What provides imports beside WASI, and the treatment of the others. */
interface ImportSources {
  /** The functions that plugins offer to the guest. */
  readonly plugins?: readonly { readonly module: string; readonly name: string }[] | undefined;
  /** The names of modules whose exports the guest imports. */
  readonly preloads?: readonly string[] | undefined;
  readonly unknown?: "trap" | "refuse" | undefined;
}

/**
 * Refuses a module with imports that nothing provides, or returns functions that trap in their place. Imports of a
 * namespace that plugins or other modules serve are left to these, which compare types, too.
 */
export function checkImports(
  file: string,
  shape: PlacedShape,
  { plugins = [], preloads = [], unknown = "refuse" }: ImportSources = {},
): ImportStubs {
  const threads = startsThreads(shape);
  const offered = new Map<string, string[]>([[WASI, Object.keys(new Wasi().imports)]]);
  for (const { module, name } of plugins) offered.set(module, [...offered.get(module) ?? [], name]);
  if (threads) offered.set("wasi", ["thread-spawn"]);
  const served = new Set([...plugins.map(({ module }) => module), ...preloads]);
  const missing = missingImports(shape.imports, offered).filter(({ module, kind }) =>
    !served.has(module) && !(threads && kind === "memory")
  );
  if (missing.length === 0) return {};
  const { imports, left } = trappingImports(missing);
  if (unknown === "trap" && left.length === 0) return imports;
  throw new FileFailure(file, missingFailure(file, unknown === "trap" ? left : missing, offered));
}

/** The failure for imports that nothing provides. */
function missingFailure(file: string, missing: readonly PlacedImport[], offered: OfferedImports): ListedFailure {
  const count = missing.length === 1 ? "1 unknown import" : `${missing.length} unknown imports`;
  return new ListedFailure(
    count,
    missing.flatMap((entry) => {
      const place = entry.line === undefined ? "" : `${file}:${entry.line}:${entry.column ?? 1}: `;
      const hint = hintFor(entry, offered);
      return [
        `    ${oneLine(`${place}"${entry.module}" "${entry.name}" (${entry.kind} ${entry.type})`)}`,
        ...(hint === undefined ? [] : [`        ${oneLine(hint)}`]),
      ];
    }),
  );
}

/** The imports that are not offered. */
function missingImports(imports: readonly PlacedImport[], offered: OfferedImports): PlacedImport[] {
  return imports.filter(({ module, name }) => offered.get(module)?.includes(name) !== true);
}

function hintFor({ module, name }: PlacedImport, offered: OfferedImports): string | undefined {
  const names = offered.get(module);
  const near = names === undefined ? undefined : nearestName(name, names);
  if (near !== undefined) return `did you mean ${near}?`;
  const known = HINTS.find(([namespace, pattern]) => namespace.test(module) && pattern.test(name));
  if (known !== undefined) return known[2];
  const namespace = names === undefined ? nearestName(module, [...offered.keys()]) : undefined;
  return namespace === undefined ? undefined : `did you mean the namespace ${namespace}?`;
}

/** A call of an import that nothing provides. */
class UnknownImportCalled extends TrapError {
  constructor(message: string) {
    super(message);
    markUncatchable(this);
  }
}

/** Functions that trap, for missing imports that are functions, by namespace; the others are left over. */
function trappingImports(missing: readonly PlacedImport[]): {
  readonly imports: { [namespace: string]: { [name: string]: () => never } };
  readonly left: readonly PlacedImport[];
} {
  const imports: { [namespace: string]: { [name: string]: () => never } } = Object.create(null);
  for (const { module, name, kind } of missing) {
    if (kind !== "func") continue;
    (imports[module] ??= Object.create(null) as { [name: string]: () => never })[name] = () => {
      throw new UnknownImportCalled(`the unknown import "${module}" "${name}" was called`);
    };
  }
  return { imports, left: missing.filter(({ kind }) => kind !== "func") };
}
