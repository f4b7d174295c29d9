/**
 * The same kernels in Java (TeaVM), Kotlin and Scala (Scala.js), compiled from bench/kernels/: garbage-collected
 * objects, casts, exceptions and JavaScript strings, as in real programs. The compilers come from Maven Central into
 * the benchmark's cache folder; neither they nor their output are in the repository. Out: a folder with the module and
 * its glue code, or the reason why it is not available.
 *
 * Invariant: a kernel returns the same number in every language and on every engine.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { WebAssembly as waftWebAssembly } from "../engine/webassembly/mod.ts";
import { alternate, type Effort, timeOf, warmUp } from "./measure.ts";
import { cacheFolder } from "./modules.ts";
import type { ProgramResult } from "./run_time.ts";

type Language = "java" | "kotlin" | "scala";
export const LANGUAGES: readonly Language[] = ["java", "kotlin", "scala"];

/** The global `WebAssembly`, or one with its interface. */
type Namespace = typeof WebAssembly;
/** Runs kernel number `kernel`. */
type Run = (kernel: number, n: number) => number;

/** A kernel: its argument in tests and in the benchmark. */
interface Kernel {
  name: string;
  small: number;
  n: number;
}

/** The kernels, by number. */
export const KERNELS: readonly Kernel[] = [
  { name: "expressions", small: 3, n: 40 }, // rewriting of expression trees
  { name: "words", small: 3000, n: 30000 }, // a map keyed by strings
  { name: "paths", small: 40, n: 250 }, // objects in a priority queue
  { name: "failures", small: 300, n: 20000 }, // exceptions
  { name: "arrays", small: 2, n: 25 }, // arrays of arrays of f64
  { name: "texts", small: 60, n: 600 }, // strings, by character and by substring
];

const SOURCES = fileURLToPath(new URL("./kernels/", import.meta.url));

function run(command: string, args: readonly string[]): void {
  execFileSync(command, args, { stdio: ["ignore", "ignore", "pipe"], maxBuffer: 1 << 26, timeout: 600_000 });
}

/** The folder with the archives listed in bench/kernels/`name`.xml. */
function archives(name: string): string {
  const list = join(SOURCES, `${name}.xml`);
  const folder = join(cacheFolder(), "jvm", `${name}-${digest([list])}`);
  if (existsSync(folder)) return folder;
  const scratch = mkdtempSync(join(tmpdir(), "waft-jvm-"));
  try {
    run("mvn", ["-q", "-B", "-f", list, "dependency:copy-dependencies", `-DoutputDirectory=${scratch}/lib`]);
    mkdirSync(join(folder, ".."), { recursive: true });
    cpSync(join(scratch, "lib"), `${folder}.new`, { recursive: true });
    renameSync(`${folder}.new`, folder);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return folder;
}

function digest(paths: readonly string[]): string {
  const hash = createHash("sha256");
  for (const path of paths) hash.update(readFileSync(path));
  return hash.digest("hex").slice(0, 16);
}

/** A class path of all archives in a folder. */
function classPath(folder: string): string {
  return readdirSync(folder).filter((name) => name.endsWith(".jar")).map((name) => join(folder, name)).join(delimiter);
}

/** The archive of `folder` whose name starts with `prefix`. */
function archive(folder: string, prefix: string): string {
  return fileIn(folder, (name) => name.startsWith(prefix), prefix);
}

/** The first file of `folder` with a matching name; throws an Error that names `wanted` if there is none. */
function fileIn(folder: string, matches: (name: string) => boolean, wanted: string): string {
  const found = readdirSync(folder).find(matches);
  if (found === undefined) throw new Error(`${folder} has no ${wanted}`);
  return join(folder, found);
}

/** The build of each language: its sources, and a function that fills `out`, with `work` for intermediate files. */
const BUILDS: Readonly<Record<Language, { sources: string[]; build: (work: string, out: string) => void }>> = {
  java: {
    sources: ["Kernels.java", "BuildJava.java", "java.xml"],
    build(work, out) {
      const path = classPath(archives("java"));
      run("javac", ["-cp", path, "-d", work, join(SOURCES, "Kernels.java")]);
      run("java", ["-cp", path, join(SOURCES, "BuildJava.java"), work, out, "Kernels"]);
      const runtime = "org/teavm/backend/wasm/wasm-gc-module-runtime.js";
      run("unzip", ["-q", "-j", archive(archives("java"), "teavm-core"), runtime, "-d", out]);
    },
  },
  kotlin: {
    sources: ["kernels.kt", "kotlin.xml"],
    build(work, out) {
      const folder = archives("kotlin");
      const compiler = ["-cp", classPath(folder), "org.jetbrains.kotlin.cli.js.K2JSCompiler", "-Xwasm"];
      const library = ["-Xwasm-target=wasm-js", "-libraries", archive(folder, "kotlin-stdlib-wasm-js")];
      const to = (folder: string) => ["-ir-output-dir", folder, "-ir-output-name", "kernels"];
      run("java", [...compiler, ...library, "-Xir-produce-klib-file", ...to(work), join(SOURCES, "kernels.kt")]);
      const module = ["-Xir-produce-js", `-Xinclude=${join(work, "kernels.klib")}`, "-Xir-dce"];
      run("java", [...compiler, ...library, ...module, ...to(out)]);
      // The glue code imports a module from the network for Deno, which the loader would fetch although it is not used.
      const glue = join(out, "kernels.uninstantiated.mjs");
      writeFileSync(glue, readFileSync(glue, "utf8").replace(/'https:[^']*'/, "'node:path'"));
    },
  },
  scala: {
    sources: ["Kernels.scala", "LinkScala.scala", "scala.xml", "scala_linker.xml"],
    build(work, out) {
      const [library, linker] = [archives("scala"), classPath(archives("scala_linker"))];
      const [path, driver] = [classPath(library), join(work, "driver")];
      mkdirSync(driver);
      const scalac = (path: string) => ["-cp", path, "scala.tools.nsc.Main", "-usejavacp"];
      const plugin = [`-Xplugin:${archive(library, "scalajs-compiler")}`, "-cp", path];
      run("java", [...scalac(path), ...plugin, "-d", work, join(SOURCES, "Kernels.scala")]);
      run("java", [...scalac(linker), "-d", driver, join(SOURCES, "LinkScala.scala")]);
      run("java", ["-cp", [driver, linker].join(delimiter), "LinkScala", [work, path].join(delimiter), out]);
    },
  },
};

/** The folder with the kernels in `language`, built on first use, or the reason why it is not available. */
export function buildKernels(language: Language): { folder: string } | { missing: string } {
  const { sources, build } = BUILDS[language];
  const folder = join(cacheFolder(), "kernels", `${language}-${digest(sources.map((name) => join(SOURCES, name)))}`);
  if (existsSync(folder)) return { folder };
  for (const tool of ["java", "javac", "mvn", "unzip"]) {
    try {
      execFileSync("which", [tool], { stdio: "ignore" });
    } catch {
      return { missing: `${tool} is not installed` };
    }
  }
  const work = mkdtempSync(join(tmpdir(), "waft-kernels-"));
  try {
    const out = join(work, "out");
    mkdirSync(out);
    mkdirSync(join(work, "classes"));
    build(join(work, "classes"), out);
    mkdirSync(join(folder, ".."), { recursive: true });
    cpSync(out, `${folder}.new`, { recursive: true });
    renameSync(`${folder}.new`, folder);
  } catch (error) {
    const said = (error as { stderr?: Uint8Array }).stderr;
    return { missing: said === undefined ? String(error) : new TextDecoder().decode(said).slice(0, 2000) };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return { folder };
}

/** The module in a folder of `buildKernels`. */
function kernelsModule(folder: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(readFileSync(fileIn(folder, (name) => name.endsWith(".wasm"), "module")));
}

/** Runs the compilers' glue code, a separate copy for each engine, with `namespace` as the global `WebAssembly`. */
export async function loadKernels(language: Language, folder: string, namespace: Namespace): Promise<Run> {
  const own = mkdtempSync(join(tmpdir(), "waft-kernels-"));
  const { WebAssembly } = globalThis;
  try {
    cpSync(folder, own, { recursive: true });
    globalThis.WebAssembly = namespace;
    const glue = (name: string) => import(pathToFileURL(join(own, name)).href);
    if (language === "java") {
      const { load } = await glue("wasm-gc-module-runtime.js");
      return (await load(kernelsModule(own), {})).exports.run;
    }
    if (language === "kotlin") return (await (await glue("kernels.uninstantiated.mjs")).instantiate({})).exports.run;
    return (await glue("main.js")).run;
  } finally {
    globalThis.WebAssembly = WebAssembly;
    rmSync(own, { recursive: true });
  }
}

/** Run times of all kernels in `language`; throws an Error if the engines disagree. */
export async function measureKernels(language: Language, folder: string, effort: Effort): Promise<ProgramResult[]> {
  const starts: number[] = [];
  const runs: Run[] = [];
  for (const namespace of [waftWebAssembly, WebAssembly]) {
    const start = performance.now();
    runs.push(await loadKernels(language, folder, namespace));
    starts.push(performance.now() - start);
  }
  const rows: ProgramResult[] = [];
  for (const [kernel, { name, n }] of KERNELS.entries()) {
    const [waft, v8] = runs.map((run) => () => run(kernel, n)) as [() => number, () => number];
    const [waftFirstMs, v8FirstMs] = [waft, v8].map((work, side) => starts[side] + timeOf(work)) as [number, number];
    const [answer, expected] = [waft(), v8()];
    if (answer !== expected) throw new Error(`${name} in ${language}: waft returns ${answer}, V8 returns ${expected}`);
    await warmUp(v8, effort);
    await warmUp(waft, { ...effort, warmMs: effort.warmMs / 4 });
    const { a: waftMs, b: v8Ms } = alternate(waft, v8, effort.rounds);
    const ratios = { runRatio: waftMs / v8Ms, firstRatio: waftFirstMs / v8FirstMs };
    rows.push({ name: `${language} ${name}`, kind: "real objects", waftMs, v8Ms, waftFirstMs, v8FirstMs, ...ratios });
  }
  return rows;
}
