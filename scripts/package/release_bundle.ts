/**
 * Builds the bundle: waft as a few JavaScript modules, with their data files. In: a source tree, the version to report,
 * the release keys to trust. Out: files by path, the same for every platform; release.ts adds the Deno executable.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { ReleaseKeys } from "../../project/versions/release_index.ts";
import { NATIVE_FILES, NATIVE_MODULES, NATIVE_SCRIPTS } from "./native_modules.ts";
import { writeLiteralImports } from "./literal_imports.ts";
import { compileQuickRunsEagerly, compileRunsEagerly } from "./quick_profile.ts";
import { filesBelow, run, sha256 } from "./release_files.ts";

/** Programs started by URL (workers, processes): their name in the bundle and their source. */
const PROGRAMS: readonly (readonly [name: string, source: string])[] = [
  ["socket_worker", "project/plugins/socket_worker.ts"],
  ["check_process", "registry/publish/check_process.ts"],
  ["compile_worker", "engine/parallel/worker.ts"],
  ["thread_worker", "engine/wasi/thread_worker.ts"],
  ["script_thread", "engine/script/script_thread.ts"],
  ["self_test_program", "engine/api/self_test_program.ts"],
];

/**
 * Modules that synchronous code loads (engine/host/late_module.ts): their name in the bundle, their folder below the
 * importing module, and their source.
 */
const LATE: readonly (readonly [name: string, folder: string, source: string])[] = [
  ["body_compiler_x64", "", "engine/compile/body_compiler_x64.ts"],
  ["body_compiler_arm64", "", "engine/compile/body_compiler_arm64.ts"],
  ["body_analysis", "", "engine/translate/body_analysis.ts"],
  ["kernel_x64", "generated/", "engine/baseline/generated/kernel_x64.ts"],
  ["kernel_arm64", "generated/", "engine/baseline/generated/kernel_arm64.ts"],
  ["native_x64", "generated/", "engine/baseline/generated/native_x64.ts"],
  ["native_arm64", "generated/", "engine/baseline/generated/native_arm64.ts"],
  ["parse_module", "", "engine/text/parse_module.ts"],
  ["code", "", "engine/validate/code.ts"],
  ["constant_rules", "", "engine/validate/constant_rules.ts"],
  ["clauses", "", "engine/validate/clauses.ts"],
  ["continuations", "", "engine/runtime/instance/continuations.ts"],
  ["js_prototypes", "", "engine/webassembly/js_prototypes.ts"],
  ["code_reader", "", "engine/wasm/code_reader.ts"],
  ["fuel_groups", "", "engine/wasm/fuel_groups.ts"],
  ["verify_module", "", "engine/compile/verify_module.ts"],
  ["portable_form", "", "engine/portable/portable_form.ts"],
  ["native_compiler_x64", "generated/", "engine/portable/generated/native_compiler_x64.ts"],
  ["native_compiler_arm64", "generated/", "engine/portable/generated/native_compiler_arm64.ts"],
  // Without contents: a bundle has the images as files.
  ["packed_compiler_x64", "generated/", "engine/portable/generated/packed_compiler_x64.ts"],
  ["packed_compiler_arm64", "generated/", "engine/portable/generated/packed_compiler_arm64.ts"],
  ["native_references", "", "engine/host/systems/native_references.ts"],
];

/** Modules that are imported before they are needed, by their paths for their users: their URLs are never read. */
const EARLY: readonly string[] = [
  "./darwin_parts",
  "./windows_parts",
];

/** The modules of a bundle that are loaded by URL; a single executable names them beside its entry module. */
export const MODULES_BY_URL: readonly string[] = [...PROGRAMS, ...LATE].map(([name]) => `${name}.js`);

/** Placeholder for the digest of all modules of the bundle. */
const BUILD_MARK = "build-of-waft";

/** Placeholder for the engine's stamp (engine/artifact/engine_stamp.ts), which is too slow to compute at start-up. */
const STAMP_MARK = "stamp-of-waft";

/** Files located by URL: the URL in the sources, the URL in the bundle, and the files to copy. */
const PLACES: readonly (readonly [from: string, to: string, copy?: readonly [string, string]])[] = [
  ['"../docs/"', '"./docs/"', ["docs", "lib/docs"]],
  ['"../../../docs/reference/"', '"./docs/reference/"'],
  // A bundle has no sources; the pages that are made from them are in docs/reference.
  ['"../../../"', '"./"'],
  ['"../examples/plugins/"', '"./examples/plugins/"', ["examples/plugins", "lib/examples/plugins"]],
  ['"../../installer/install.sh"', '"./installer/install.sh"', ["installer", "lib/installer"]],
  ['"../../installer/install.ps1"', '"./installer/install.ps1"'],
  ['"../../bench/figures.json"', '"./bench/figures.json"', ["bench/figures.json", "lib/bench/figures.json"]],
  ["`./static/${name}`", "`./static/${name}`", ["registry/site/static", "lib/static"]],
  ['"./check_process.ts"', '"./check_process.js"'],
  ['"./socket_worker.ts"', '"./socket_worker.js"'],
  ["`./worker.${suffix}`", '"./compile_worker.js"'],
  ["`./thread_worker.${suffix}`", '"./thread_worker.js"'],
  ["`./script_thread.${suffix}`", '"./script_thread.js"'],
  // In the texts of templates.
  ['"module.wat"', '"module.wat"'],
  ['"../build/module.wasm"', '"../build/module.wasm"'],
  // No command starts a runner: `waft runner` is one.
  ["`./program.${SUFFIX}`", '"./waft.js"'],
  ...NATIVE_FILES.map(({ name }) => [`"./generated/${name}"`, `"./${name}"`] as const),
  ...LATE.map(([name, folder]) => [`\`./${folder}${name}.\${SUFFIX}\``, `"./${name}.js"`] as const),
  ...EARLY.map((path) => [`\`${path}.\${SUFFIX}\``, `"${path}.js"`] as const),
  ['"../api/self_test_program.ts"', '"./self_test_program.js"'],
  ['"../api/self_test_program.js"', '"./self_test_program.js"'],
  ['"./release-keys.json"', '"./release-keys.json"'],
  ['"."', '"."'],
  // The engine's files, which stack traces leave out: all modules of the bundle.
  ['"../"', '"./"'],
  // The key of the cache of compiled modules, which replaces the times of the engine's sources.
  ['".."', `"data:,${BUILD_MARK}"`],
];

/**
 * The code that runs a module from the cache, in separate files: each file, and unused code in it, costs start-up.
 * The second has the code that systems other than Linux share.
 */
const QUICK = "./quick_run.js";
const QUICK_FILES = ["lib/quick_run.js", "lib/quick_run_base.js"] as const;
const QUICK_SOURCE = "project/commands/run/quick_run.ts";

/**
 * The code that compiles and runs a module that is not in the cache, in a folder of its own with the late modules that
 * it may need: of all modules of the bundle, it shares only the programs of Workers with the rest.
 */
const FIRST_FOLDER = "first/";
const FIRST = "./first/first_run.js";
const FIRST_SOURCE = "project/commands/run/first_run.ts";

/** The longest log of one of Deno's caches (project/base/deno_caches.ts), in bytes, that a run leaves as it is. */
const LOG_LIMIT = 1 << 16;

/** The entry module: answers commands that need no other module before loading any. */
const ENTRY = (version: string): string =>
  `// A bundle runs on its own Deno; modules are loaded on demand.
// The launcher for Windows cannot remove the word \`+VERSION\` from its command line.
const named = Deno.args[0]?.startsWith("+") && Deno.env.get("WAFT_RUNTIME") === Deno.args[0].slice(1);
const args = named ? Deno.args.slice(1) : Deno.args;
if (args.length === 1 && (args[0] === "--version" || args[0] === "-V")) console.log(${JSON.stringify(version)});
else Deno.exit(await quickly() ?? await start().finally(emptyLogs));

/** Deno's caches grow by the modules of this run; only the first runs of a command add any. */
async function emptyLogs() {
  try {
    const directory = Deno.env.get("DENO_DIR");
    if (Deno.statSync(directory + "/v8_code_cache_v2-wal").size <= ${LOG_LIMIT}) return;
    (await import("./project/base/deno_caches.ts")).emptyLogs(directory, ${LOG_LIMIT});
  } catch {
    // Without a cache, or with one of another layout, there is nothing to gain.
  }
}

async function quickly() {
  if (args[0] !== "run") return undefined;
  const words = args.slice(1);
  // Nothing of such a run is in the cache: it need not be searched.
  const quick = words[0] === "--no-cache"
    ? undefined
    : await (await import(String(${JSON.stringify(QUICK)}))).runQuickly(words);
  return quick ?? await first(words);
}

async function first(words) {
  const status = await (await import(String(${JSON.stringify(FIRST)}))).runFirst(words);
  if (status !== undefined) await emptyLogs();
  return status;
}

async function start() {
  const { pinnedVersion } = await import("./project/ops/versions/pinned_version.ts");
  const { machinePaths, platformName } = await import("./project/base/paths.ts");
  const paths = machinePaths();
  let pinned;
  try {
    pinned = await pinnedVersion(Deno.cwd(), args, ${JSON.stringify(version)}, paths, {
      WAFT_RUNTIME: Deno.env.get("WAFT_RUNTIME"),
    });
  } catch (error) {
    console.error(error.message);
    return error.exitCode ?? 1;
  }
  if (pinned === undefined) return await (await import("./cli.ts")).mainAfterRun(args);
  console.error(\`waft: using \${pinned.version}, since \${pinned.file} asks for \${pinned.range}\`);
  const { spawnSync } = await import("node:child_process");
  const { startCommand } = await import("./project/versions/bundle_layout.ts");
  const directory = paths.versions + "/" + pinned.version;
  const { status } = spawnSync(...startCommand(directory, platformName(), args), {
    stdio: "inherit",
    env: { ...Deno.env.toObject(), WAFT_RUNTIME: pinned.version },
  });
  return status ?? 1;
}
`;

/**
 * Bundles the modules of a tree with `entry` as the entry module `waft.js`, or with the bundle's own and the modules of
 * the fast paths, which that loads; returns their files, and leaves none in the tree.
 */
export function bundleModules(tree: string, version: string, entry?: string): Map<string, Uint8Array> {
  const entries: [string, string][] = [["waft", entry ?? ENTRY(version)]];
  if (entry === undefined) entries.push(["first_run", `export * from "./${FIRST_SOURCE}";\n`]);
  for (const [name, source] of PROGRAMS) entries.push([name, `import "./${source}";\n`]);
  for (const [name, , source] of LATE) entries.push([name, `export * from "./${source}";\n`]);
  const names = entries.map(([name, content]) => {
    const file = `${name}.ts`;
    if (existsSync(join(tree, file))) throw new Error(`the tree already contains ${file}`);
    writeFileSync(join(tree, file), content);
    return file;
  });
  const out = join(tree, "bundled");
  const quick = join(tree, "bundled_quick");
  const first = join(tree, "bundled_first");
  const isFirst = (file: string): boolean => file === "first_run.ts" || LATE.some(([name]) => `${name}.ts` === file);
  const options = ["--quiet", "--node-modules-dir=auto", "--frozen", "--outdir"];
  const restore = writeLiteralImports(tree);
  try {
    const rest = names.filter((name) => name !== "first_run.ts");
    run(process.execPath, ["bundle", ...options, out, "--code-splitting", ...rest], tree);
    if (entry !== undefined) return filesBelow(out);
    run(process.execPath, ["bundle", ...options, quick, "--minify", "--code-splitting", QUICK_SOURCE], tree);
    mergeChunksIn(quick, "quick_run.js");
    const parts = names.filter(isFirst);
    run(process.execPath, ["bundle", ...options, first, "--minify", "--code-splitting", ...parts], tree);
    mergeChunksIn(first, "first_run.js", LATE.map(([name]) => `${name}.js`));
    const firstFiles = [...filesBelow(first)].map(([path, bytes]) => [FIRST_FOLDER + path, bytes] as const);
    return new Map([...filesBelow(out), ...filesBelow(quick), ...firstFiles]);
  } finally {
    restore();
    for (const name of names) rmSync(join(tree, name));
    for (const folder of [out, quick, first]) rmSync(folder, { recursive: true, force: true });
  }
}

/** Merges the chunks in a folder (merge_chunks.ts). */
function mergeChunksIn(folder: string, entry: string, kept: readonly string[] = []): void {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  run(
    process.execPath,
    ["run", "--allow-all", "--quiet", "scripts/package/merge_chunks.ts", folder, entry, ...kept],
    root,
  );
}

/**
 * Runs `action` while the tree's modules of machine code (native_modules.ts) have their contents; returns its result,
 * and the images by name.
 */
function withNativeModules<T>(tree: string, action: () => T): { bundled: T; images: Map<string, Uint8Array> } {
  const scratch = mkdtempSync(join(tmpdir(), "waft-native-"));
  const kept = NATIVE_MODULES.map(({ folder, name }) => {
    const path = join(tree, `engine/${folder}/${name}.ts`);
    return { path, name, text: readFileSync(path) };
  });
  try {
    for (const script of NATIVE_SCRIPTS) {
      run(process.execPath, ["run", "--allow-all", "--quiet", script, "--out", scratch], tree);
    }
    for (const { path, name } of kept) writeFileSync(path, readFileSync(join(scratch, `${name}.js`)));
    const images = NATIVE_FILES.map(({ name }) => [name, new Uint8Array(readFileSync(join(scratch, name)))] as const);
    return { bundled: action(), images: new Map(images) };
  } finally {
    for (const { path, text } of kept) writeFileSync(path, text);
    rmSync(scratch, { recursive: true, force: true });
  }
}

/**
 * Bundles the modules of a tree with machine code; `entry` as for `bundleModules`. Their URLs are those of the
 * bundle, and they contain the digest of all modules and the engine's stamp. `images` are files beside them.
 */
export function placedModules(
  tree: string,
  version: string,
  entry?: string,
): { readonly modules: ReadonlyMap<string, string>; readonly images: ReadonlyMap<string, Uint8Array> } {
  const stamp = engineStampOf(tree);
  const { bundled, images } = withNativeModules(tree, () => bundleModules(tree, version, entry));
  const build = sha256(new TextEncoder().encode([...bundled.values()].map(sha256).join(""))).slice(0, 32);
  const placed = (path: string, bytes: Uint8Array): string =>
    placeUrls(new TextDecoder().decode(bytes), path).replaceAll(BUILD_MARK, build).replaceAll(STAMP_MARK, stamp);
  return { modules: new Map([...bundled].map(([path, bytes]) => [path, placed(path, bytes)])), images };
}

/** Builds the platform-independent files of a bundle. */
export function buildBundle(tree: string, version: string, keys: ReleaseKeys | undefined): Map<string, Uint8Array> {
  const text = (content: string): Uint8Array => new TextEncoder().encode(content);
  const files = new Map<string, Uint8Array>();
  const { modules, images } = placedModules(tree, version);
  for (const [path, module] of modules) files.set(`lib/${path}`, text(loadLate(module)));
  for (const [name, image] of images) files.set(`lib/${name}`, image);
  compileQuickRunsEagerly(files, "lib/waft.js", QUICK_FILES);
  compileRunsEagerly(files, "lib/waft.js", QUICK_FILES);
  run(process.execPath, ["run", "--allow-all", "--quiet", "scripts/generate/build_reference.ts"], tree);
  for (const [, , copy] of PLACES) {
    if (copy === undefined || !existsSync(join(tree, copy[0]))) continue;
    const [from, to] = copy;
    if (!statSync(join(tree, from)).isDirectory()) files.set(to, new Uint8Array(readFileSync(join(tree, from))));
    else for (const [path, bytes] of filesBelow(join(tree, from))) files.set(`${to}/${path}`, bytes);
  }
  files.set("LICENSE", new Uint8Array(readFileSync(join(tree, "LICENSE"))));
  if (keys !== undefined) files.set("lib/release-keys.json", text(`${JSON.stringify(keys, null, 2)}\n`));
  return files;
}

/** Computes the stamp of a tree's engine. */
function engineStampOf(tree: string): string {
  const file = join(tree, "engine/artifact/engine_stamp.ts");
  const program = `import { engineStamp } from ${
    JSON.stringify(pathToFileURL(file).href)
  }; console.log(engineStamp());`;
  return run(process.execPath, ["eval", "--no-check", program], tree).toString().trim();
}

/** The place of a program or an image as a module of FIRST_FOLDER sees it; other modules are in the same folder. */
function fromFirst(place: string): string {
  const outside = [...PROGRAMS.map(([name]) => `"./${name}.js"`), ...NATIVE_FILES.map(({ name }) => `"./${name}"`)];
  return outside.includes(place) ? place.replace("./", "../") : place;
}

/** A template without the names of its variables, which a minified module does not keep. */
function withoutNames(template: string): string {
  return template.replaceAll(/\$\{[\w$]+\}/g, "${}");
}

/** Rewrites a module's URLs for the flat folder of the bundle; throws an Error for a URL that PLACES does not list. */
export function placeUrls(module: string, name: string): string {
  return module.replace(
    /new URL\(("[^"]*"|`[^`]*`), ?import\.meta\.url\)/g,
    (whole, argument: string) => {
      const row = PLACES.find(([from]) => withoutNames(from) === withoutNames(argument));
      if (row === undefined) throw new Error(`${name} has ${whole}, which has no place in a bundle (PLACES)`);
      return `new URL(${name.startsWith(FIRST_FOLDER) ? fromFirst(row[1]) : row[1]}, import.meta.url)`;
    },
  );
}

/**
 * Hides the specifiers of dynamic imports: Deno reads, hashes and parses every statically known module before the first
 * one runs, which takes longer than all of `waft --version`.
 */
export function loadLate(module: string): string {
  return module.replace(/\bimport\((["']\.\/[\w.-]+["'])\)/g, "import(String($1))");
}
