/**
 * Builds the npm packages: `deno task build:npm [--out DIR] [--version VERSION] [--package FOLDER]`. In: the
 * packages of this tree, as their deno.json describes them. Out: `waft-engine-VERSION.tgz`,
 * `waft-component-VERSION.tgz` and `waft-cli-VERSION.tgz` in DIR (dist/npm by default). Invariant: the same tree gives
 * the same bytes.
 *
 * `deno pack` emits JavaScript and declarations; npm_package.ts and the tables below add the rest that npm, Node and
 * Bun need, and npm_chunks.ts bundles the engine.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { endProgress, startBlocking } from "../../project/base/progress.ts";
import { writeArchive } from "../../project/packages/archive.ts";
import { NATIVE_FILES, NATIVE_MODULES, NATIVE_SCRIPTS, PACKED_MODULES } from "./native_modules.ts";
import { createWaftFiles } from "./create_waft.ts";
import { writeLiteralImports } from "./literal_imports.ts";
import { bundleModules } from "./npm_chunks.ts";
import { type Files, finishModules, lockedVersions, missingExports, readPack } from "./npm_package.ts";
import { compileFirstEagerly } from "./quick_profile.ts";
import { filesBelow } from "./release_files.ts";
import { readTaskLine } from "../task_options.ts";
import { copyTree } from "./tree_copy.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The runtimes that the packages are tested with; of Node, the versions whose `require` loads ES modules. */
const ENGINES = { node: "^20.19 || >=22.12", bun: ">=1.4", deno: ">=2.9" };

/** The foreign function interface for Node versions without a built-in one. */
const KOFFI = "3.3.4";

/** The command's entry point on hosts without `import.meta.main`. */
const BIN = `#!/usr/bin/env node
import { exitProcess, programArguments } from "@waft/engine/internal/host/process";
import { main } from "../cli.js";

await exitProcess(await main(programArguments()));
`;

interface PackageRow {
  /** Folder of its deno.json. */
  folder: string;
  description: string;
  /** Additional files from the tree: [from, to]. */
  extra: readonly (readonly [string, string])[];
  /** Additional fields of package.json. */
  fields: Record<string, unknown>;
  /** The packages of this tree that it imports. */
  uses: readonly string[];
}

const PACKAGES: readonly PackageRow[] = [
  {
    folder: "engine",
    description: "A WebAssembly engine: compiles to machine code in TypeScript; deadlines, fuel, limits",
    extra: [["LICENSE", "LICENSE"], ["scripts/package/engine_readme.md", "README.md"]],
    fields: { optionalDependencies: { koffi: KOFFI }, keywords: ["webassembly", "wasm", "compiler", "sandbox"] },
    uses: [],
  },
  {
    folder: "component",
    description: "WebAssembly components and WASI 0.2 and 0.3 for programs, on the engine of waft",
    extra: [["LICENSE", "LICENSE"], ["scripts/package/component_readme.md", "README.md"]],
    fields: { keywords: ["webassembly", "wasm", "component-model", "wasi"] },
    uses: ["@waft/engine"],
  },
  {
    folder: ".",
    description: "waft: run WebAssembly as machine code, and manage projects and plugins",
    extra: [],
    fields: { bin: { waft: "bin/waft.js" }, keywords: ["webassembly", "wasm", "cli", "wasi"] },
    uses: ["@waft/engine", "@waft/component"],
  },
];

/** Runs this Deno; throws an Error with its output if it fails. */
function deno(args: string[], cwd: string): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd,
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1" },
  });
  if (status !== 0) throw new Error(`deno ${args[0]} failed in ${cwd}:\n${stdout}${stderr}`);
}

/** Transpiles sources that no module imports (entry points of workers and child processes). */
function transpileRest(files: Files, folder: string, scratch: string): void {
  const rest = [...files.keys()].filter((path) => path.endsWith(".ts") && !path.endsWith(".d.ts"));
  if (rest.length === 0) return;
  const out = join(scratch, "rest");
  deno(["transpile", "--quiet", "--outdir", out, ...rest], folder);
  for (const path of rest) {
    const name = path.replace(/\.ts$/, ".js");
    files.set(name, readFileSync(join(out, name)));
    files.delete(path);
  }
}

/** Builds the npm files of one package of the tree at `root`, with the new folder `scratch` for its files. */
async function buildPackage(
  row: PackageRow,
  version: string | undefined,
  scratch: string,
  root: string,
  kept: readonly string[],
): Promise<Files> {
  mkdirSync(scratch);
  const folder = join(root, row.folder);
  const pack = join(scratch, "pack.tgz");
  const options = ["--quiet", "--allow-dirty", "--no-source-maps", "--output", pack];
  deno(["pack", ...options, ...(version === undefined ? [] : ["--set-version", version])], folder);
  const files = readPack(readFileSync(pack));
  // The command's archive also contains the folders of the other packages.
  if (row.folder === ".") {
    for (const path of [...files.keys()]) if (/^(?:engine|component)\//.test(path)) files.delete(path);
  }
  transpileRest(files, folder, scratch);
  finishModules(files);
  for (const [from, to] of row.extra) files.set(to, readFileSync(join(root, from)));
  if (row.folder === ".") addReference(files, root);
  if (row.fields["bin"] !== undefined) files.set("bin/waft.js", new TextEncoder().encode(BIN));
  const { exports } = finishManifest(files, row, root);
  // The command's start-up loads most modules late, from files of their own.
  if (row.folder === "engine") {
    addNativeModules(files, root, scratch);
    await bundleModules(files, exports, kept);
    files.set(
      "package.json",
      new TextEncoder().encode(JSON.stringify({ ...manifestOf(files), exports }, null, 2) + "\n"),
    );
    compileFirstEagerly(files);
  }
  return files;
}

/** Adds the files that contain machine code, in place of the tree's (native_modules.ts). */
function addNativeModules(files: Files, root: string, scratch: string): void {
  for (const script of NATIVE_SCRIPTS) deno(["run", "--allow-all", "--quiet", script, "--out", scratch], root);
  const add = (folder: string, name: string) => void files.set(`${folder}/${name}`, readFileSync(join(scratch, name)));
  for (const { folder, name } of [...NATIVE_MODULES, ...PACKED_MODULES]) add(folder, `${name}.js`);
  for (const { folder, name } of NATIVE_FILES) add(folder, name);
}

/** Adds the pages of the API reference, which a package cannot build from sources. */
function addReference(files: Files, root: string): void {
  deno(["run", "--allow-all", "--quiet", "scripts/generate/build_reference.ts"], root);
  const folder = join(root, "docs/reference");
  for (const [path, bytes] of filesBelow(folder)) files.set(`docs/reference/${path}`, bytes);
}

/** A package.json. */
interface NpmManifest extends Record<string, unknown> {
  readonly name: string;
  readonly version: string;
  readonly exports: Record<string, unknown>;
  readonly dependencies?: Record<string, string>;
}

function manifestOf(files: Files): NpmManifest {
  const bytes = files.get("package.json");
  if (bytes === undefined) throw new Error("deno pack wrote no package.json");
  return JSON.parse(new TextDecoder().decode(bytes)) as NpmManifest;
}

/** Whether every export names its declarations. */
function exportsTypes(exports: Record<string, unknown>): boolean {
  return Object.values(exports).every((value) => typeof value === "object" && value !== null && "types" in value);
}

/**
 * Completes package.json, and returns it: exports and imports come from `deno pack`, exact versions from the lockfile.
 */
export function finishManifest(files: Files, row: PackageRow, root: string): { exports: Record<string, unknown> } {
  const manifest = manifestOf(files);
  const locked = lockedVersions(readFileSync(join(root, "deno.lock"), "utf8"));
  const dependencies: Record<string, string> = {};
  for (const name of Object.keys(manifest.dependencies ?? {})) {
    const exact = locked.get(name);
    if (exact === undefined) throw new Error(`${manifest.name} imports "${name}", which deno.lock does not list`);
    dependencies[name] = exact;
  }
  for (const name of row.uses) dependencies[name] = manifest.version;
  const finished = {
    ...manifest,
    description: row.description,
    homepage: "https://waft.sh",
    engines: ENGINES,
    exports: { ...manifest.exports, "./package.json": "./package.json" },
    dependencies,
    ...row.fields,
  };
  // Without explicit types in all of a package, deno pack writes no declarations at all.
  if (!exportsTypes(manifest.exports)) {
    throw new Error(`${manifest.name} has no declarations: "deno publish --dry-run" names the exports without types`);
  }
  const missing = missingExports(files, manifest.exports);
  if (missing.length > 0) {
    throw new Error(
      `${manifest.name} lacks ${
        missing.join(", ")
      }: run "deno publish --dry-run" to find exports without explicit types`,
    );
  }
  files.set("package.json", new TextEncoder().encode(JSON.stringify(finished, null, 2) + "\n"));
  return finished;
}

interface NpmOptions {
  /** The version of the packages; that of the tree by default. */
  readonly version?: string | undefined;
  /** The tree; this one by default. */
  readonly root?: string;
  /** Called with the name of each step. */
  readonly begin?: (step: string) => void;
  /** Modules of the engine that keep their paths besides the exported ones: for tests. */
  readonly kept?: readonly string[];
  /** The folders of the packages to build; all by default. */
  readonly packages?: readonly string[] | undefined;
}

/**
 * Builds the packages of a copy of a tree into `out`; returns the paths of the archives: engine, components, command,
 * create-waft.
 */
export async function buildNpm(out: string, options: NpmOptions = {}): Promise<string[]> {
  const { version, root = ROOT, begin = () => {}, kept = [], packages } = options;
  mkdirSync(out, { recursive: true });
  const { tree, remove } = copyTree(root);
  writeLiteralImports(tree);
  const scratch = mkdtempSync(join(tmpdir(), "waft-npm-"));
  try {
    const paths: string[] = [];
    const write = (files: Files): void => {
      const { name, version: built } = manifestOf(files);
      const path = join(out, `${name.replace("@", "").replace("/", "-")}-${built}.tgz`);
      writeFileSync(path, writeArchive(new Map([...files].map(([file, bytes]) => [`package/${file}`, bytes]))));
      paths.push(path);
    };
    for (const row of PACKAGES.filter(({ folder }) => packages?.includes(folder) ?? true)) {
      begin(`packing the ${row.folder === "." ? "command" : row.folder}`);
      const files = await buildPackage(row, version, join(scratch, String(paths.length)), tree, kept);
      write(files);
      if (row.folder === ".") {
        write(createWaftFiles(manifestOf(files).version, ENGINES, readFileSync(join(tree, "LICENSE"))));
      }
    }
    return paths;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
    remove();
  }
}

if (import.meta.main) {
  const { values } = readTaskLine({
    name: "task build:npm",
    about: "Builds the npm packages of the engine, components and the command, and prints the archive paths.",
    options: {
      out: { value: "DIR", help: "output folder", default: "dist/npm" },
      version: { value: "VERSION", help: "package version instead of the one in deno.json" },
      package: { value: "FOLDER", help: "only the package of this folder: engine, component, or . for the command" },
    },
  });
  try {
    const begin = (step: string) => {
      endProgress();
      startBlocking(step);
    };
    const paths = await buildNpm(resolve(ROOT, values.out), {
      version: values.version,
      begin,
      packages: values.package === undefined ? undefined : [values.package],
    });
    endProgress();
    for (const path of paths) console.log(path);
  } catch (error) {
    endProgress();
    console.error(`error: ${(error as Error).message}`);
    process.exit(1);
  }
}
