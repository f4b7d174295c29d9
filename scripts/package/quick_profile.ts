/**
 * Profiles the start-up of programs: which functions of a module are called. In: the files of a bundle or of the
 * engine's npm package. Out: the positions of those functions in the modules' texts, from V8's coverage counts, and
 * modules in which they are compiled eagerly. The files run on this machine, in temporary directories.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { encodeModule } from "../../engine/binary/encode.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { compileEagerly, type MovedMethods } from "./eager_functions.ts";
import { QUICK_SAMPLES, type QuickSample } from "./quick_samples.ts";

/** V8's coverage report for a script. */
interface Coverage {
  readonly url: string;
  readonly functions: readonly {
    /** The whole function first. */
    readonly ranges: readonly { readonly startOffset: number; readonly endOffset: number; readonly count: number }[];
  }[];
}

/**
 * Makes the functions of the modules `quick` that run when `waft run` finds a module in the cache compile eagerly;
 * `files` are a bundle's files, `entry` is its entry module.
 */
export function compileQuickRunsEagerly(
  files: Map<string, Uint8Array>,
  entry: string,
  quick: readonly string[],
): void {
  inScratch(files, (scratch) => {
    const counts = QUICK_SAMPLES.map((sample) => {
      // Fills the cache of compiled modules: `auto` stores nothing for a short first run.
      runSample(scratch, entry, sample, ["--tier", "optimizing"]);
      const folder = join(scratch, `coverage_${sample.name}`);
      runSample(scratch, entry, sample, [], folder);
      requireQuick(folder, quick);
      return folder;
    });
    rewriteCalled(files, scratch, counts, (path) => quick.includes(path) ? "all" : undefined);
  });
}

/**
 * Makes the functions of a bundle that run when `waft run` compiles a module compile eagerly, except in the modules
 * `quick`, which have functions of their own for runs from the cache.
 */
export function compileRunsEagerly(files: Map<string, Uint8Array>, entry: string, quick: readonly string[]): void {
  inScratch(files, (scratch) => {
    const counts = QUICK_SAMPLES.map((sample) => {
      const folder = join(scratch, `coverage_${sample.name}`);
      runSample(scratch, entry, sample, ["--no-cache"], folder);
      return folder;
    });
    rewriteCalled(files, scratch, counts, (path) => quick.includes(path) ? undefined : movedOf(path));
  });
}

/** Throws an Error if a run loaded other modules than an entry and `quick`, such as a compiler. */
function requireQuick(counts: string, quick: readonly string[]): void {
  const loaded = coverage(counts).map(({ url }) => url);
  const others = loaded.filter((url) => !quick.some((path) => url.endsWith(`/${path}`)));
  if (others.length > 1 || loaded.length === others.length) {
    throw new Error(`the bundle's quick run loads ${others.join(", ")}`);
  }
}

/** A program that uses the engine as most programs do, up to its first result; see {@linkcode compileFirstEagerly}. */
const FIRST_RESULT = `
import { NewEngine } from "./mod.js";
import { readFileSync } from "node:fs";

for (const name of ["smallest", "usual", "large"]) {
  const module = NewEngine().compile(new Uint8Array(readFileSync(new URL(name + ".wasm", import.meta.url))));
  const { run } = module.instantiate({}, { env: { host: (value) => value } }).exports;
  if (run(20) !== 20) throw new Error("wrong result of " + name);
}
const { WebAssembly } = await import("./webassembly/mod.js");
const usual = new WebAssembly.Module(readFileSync(new URL("usual.wasm", import.meta.url)));
const { exports } = new WebAssembly.Instance(usual, { env: { host: (value) => value } });
if (exports.run(20) !== 20 || exports.memory.buffer.byteLength === 0) throw new Error("wrong result");
const bytes = readFileSync(new URL("usual.wasm", import.meta.url));
const { instance } = await WebAssembly.instantiate(bytes, { env: { host: (value) => value } });
if (instance.exports.run(20) !== 20 || !WebAssembly.validate(bytes)) throw new Error("wrong result");
await WebAssembly.instantiate(await WebAssembly.compile(bytes), { env: { host: (value) => value } });
Deno.exit(0);
`;

/** The modules that this program runs. */
const FIRST_MODULES = {
  smallest: `(module (func (export "run") (param i32) (result i32) (local.get 0)))`,
  usual: `(module (import "env" "host" (func $host (param i32) (result i32)))
    (memory (export "memory") 2) (data (i32.const 8) "text") (global $sum (mut i32) (i32.const 0))
    (table (export "table") 2 funcref) (elem (i32.const 0) $host $twice)
    (func $twice (param i32) (result i32) (i32.mul (local.get 0) (i32.const 2)))
    (func (export "run") (param i32) (result i32)
      (loop $again
        (global.set $sum (i32.add (global.get $sum) (i32.load8_u (global.get $sum))))
        (global.set $sum (i32.sub (global.get $sum) (i32.load8_u (global.get $sum))))
        (br_if $again (i32.lt_s (global.get $sum) (i32.const 0))))
      (call_indirect (param i32) (result i32)
        (i32.div_s (call_indirect (param i32) (result i32) (local.get 0) (i32.const 1)) (i32.const 2))
        (i32.const 0))))`,
  // Two kernels compile its bodies.
  large: `(module (import "env" "host" (func $host (param i32) (result i32)))
    (memory 2) (data (i32.const 8) "text") (data (i32.const 70000) "more")
    (func (export "run") (param i32) (result i32) (call $host (local.get 0)))
    ${
    `(func (param i32) (result i32) ${"(local.set 0 (i32.mul (local.get 0) (i32.const 3)))".repeat(30)} (local.get 0))`
      .repeat(800)
  })`,
};

/** Modules whose classes are an interface that programs examine, down to the kind of its functions. */
const EXAMINED = /(?:^|\/)webassembly[\w/]*\.js$/;

/** The methods of a module that become functions, where many objects may be created. */
function movedOf(path: string): MovedMethods {
  return EXAMINED.test(path) ? "none" : "public";
}

/** Makes the functions of the engine's npm package that run before a first result compile eagerly. */
export function compileFirstEagerly(files: Map<string, Uint8Array>): void {
  inScratch(files, (scratch) => {
    for (const [name, text] of Object.entries(FIRST_MODULES)) writeModule(scratch, name, text);
    writeFileSync(join(scratch, "first_result.js"), FIRST_RESULT);
    const counts = join(scratch, "coverage");
    const { status, stderr } = runDeno(scratch, [join(scratch, "first_result.js")], counts);
    if (status !== 0) throw new Error(`the package fails on a module: status ${status}\n${stderr}`);
    rewriteCalled(files, scratch, [counts], movedOf);
  });
}

/** Runs `action` with a temporary folder that contains `files`. */
function inScratch(files: ReadonlyMap<string, Uint8Array>, action: (scratch: string) => void): void {
  const scratch = mkdtempSync(join(tmpdir(), "waft-profile-"));
  try {
    writeFiles(scratch, files);
    action(scratch);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Writes a module, given as text, into a folder; returns its path. */
function writeModule(folder: string, name: string, text: string): string {
  const path = join(folder, `${name}.wasm`);
  writeFileSync(path, encodeModule(parseModule(text)));
  return path;
}

function writeFiles(folder: string, files: ReadonlyMap<string, Uint8Array>): void {
  for (const [path, bytes] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), bytes);
  }
}

/**
 * Rewrites the modules of `files` whose functions were called according to the counts. `moved` says which methods of a
 * module become functions; undefined leaves the module as it is.
 */
function rewriteCalled(
  files: Map<string, Uint8Array>,
  folder: string,
  counts: readonly string[],
  moved: (path: string) => MovedMethods | undefined,
): void {
  const called = new Map<string, Set<string>>();
  const prefix = `${pathToFileURL(realpathSync(folder)).href}/`;
  for (const { url, functions } of counts.flatMap(coverage)) {
    const path = url.startsWith(prefix) ? url.slice(prefix.length) : "";
    if (!files.has(path) || moved(path) === undefined) continue;
    const positions = called.get(path) ?? new Set();
    called.set(path, positions);
    notePositions(positions, functions);
  }
  if (called.size === 0) throw new Error("the profile names no module");
  for (const [path, positions] of called) {
    const text = new TextDecoder().decode(files.get(path));
    const eager = compileEagerly(text, (start, end) => positions.has(`${start} ${end}`), moved(path));
    files.set(path, new TextEncoder().encode(eager));
  }
}

/** Runs a sample with further options of `waft run`. Throws an Error if its output is wrong. */
function runSample(
  scratch: string,
  entry: string,
  sample: QuickSample,
  options: readonly string[],
  counts?: string,
): void {
  const module = writeModule(scratch, sample.name, sample.text);
  const program = [join(scratch, entry), "run", ...options, ...sample.options, module, ...sample.args];
  const { status, stdout, stderr } = runDeno(scratch, program, counts);
  if (status !== 0 || stdout !== sample.output) {
    throw new Error(`the bundle fails on the sample "${sample.name}": status ${status}, "${stdout}"\n${stderr}`);
  }
}

/** Stops the clock: tiering up after a time would make the profile depend on the machine's load. */
const STOPPED_CLOCK = "performance.now = () => 0;\n";
const CLOCK_FILE = "stopped_clock.js";

/** Runs a program in `scratch` with a stopped clock; writes its coverage into the folder `counts`, if given. */
function runDeno(scratch: string, program: readonly string[], counts?: string) {
  const clock = join(scratch, CLOCK_FILE);
  writeFileSync(clock, STOPPED_CLOCK);
  const options = [
    "--preload",
    clock,
    "-A",
    "--quiet",
    "--no-config",
    "--no-lock",
    "--no-check",
    "--no-remote",
    "--no-npm",
  ];
  if (counts !== undefined) options.push(`--coverage=${counts}`);
  return spawnSync(process.execPath, ["run", ...options, ...program], {
    encoding: "utf8",
    cwd: scratch,
    env: { ...process.env, NO_COLOR: "1", WAFT_HOME: join(scratch, "home"), DENO_DIR: join(scratch, "deno") },
  });
}

/** The reports in a folder, except for that of the clock. */
function coverage(counts: string): Coverage[] {
  const reports = readdirSync(counts).map((name) => JSON.parse(readFileSync(join(counts, name), "utf8")) as Coverage);
  return reports.filter(({ url }) => !url.endsWith(`/${CLOCK_FILE}`));
}

/** Adds the called functions to `positions`, as "start end". */
function notePositions(positions: Set<string>, functions: Coverage["functions"]): void {
  for (const { ranges: [whole] } of functions) {
    if (whole.count > 0) positions.add(`${whole.startOffset} ${whole.endOffset}`);
  }
}
