/**
 * The fast paths of `waft run`, of cached modules and of others: they load few modules and behave like the full path.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { encodeModule } from "../../engine/binary/encode.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { codeSize, loadedWith, sourceOf } from "../support/loaded_modules.ts";
import { waft } from "./waft.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const ENTRY = "project/commands/run/quick_run.ts";

Deno.test("a quick run loads no compiler, no option reader and nothing of Node", () => {
  const { files, others } = loadedWith(ENTRY);
  assert.deepEqual(others, [], "all modules are our own");
  for (const file of files) assert.doesNotMatch(sourceOf(file), /\bawait import\(/, `${file} imports later`);
  const heavy =
    /^engine\/(backend_|codegen\/|optimize\/|translate\/|ir\/(?!types)|text\/|script\/|compile\.ts|engine\.ts|mod\.ts|wasm\/opcodes|binary\/decode)/;
  assert.deepEqual(files.filter((file) => heavy.test(file)), []);
  assert.deepEqual(files.filter((file) => /^(registry|project\/plugins)\//.test(file)), []);
  assert.ok(files.includes("engine/runtime/instance/instance.ts"), "the walk finds the modules of a run");
  assert.ok(files.length < 214, `${files.length} modules`);
  const size = files.reduce((sum, file) => sum + codeSize(file), 0);
  // Of these, 400 let a process load all late modules before it is confined, 5,000 are budgets of contexts, 5,000 find
  // dropped instances in synchronous programs, 12,000 are the types that the parts of threads and stores have of each
  // other, 12,000 run continuations, 8,000 read the source map beside a program that traps, and 2,000 give objects the
  // prototypes that their descriptors hold.
  assert.ok(size < 943_000, `${size} characters without comments`);
});

Deno.test("the command reads no module before it is needed", () => {
  const { files } = loadedWith("cli.ts");
  assert.ok(files.includes("project/commands/table.ts") && files.length < 40, `${files.length} modules`);
  for (const file of files) {
    // Deno reads files that literal imports name, before the program starts.
    assert.doesNotMatch(sourceOf(file).replaceAll("typeof import(", ""), /\bimport\("\./, file);
  }
});

Deno.test("a first run loads no option reader, no opcode table and nothing of Node", () => {
  const { files, others } = loadedWith("project/commands/run/first_run.ts");
  assert.deepEqual(others, [], "all modules are our own");
  const heavy =
    /^engine\/(optimize\/(?!pass_options)|regalloc\/(?!allocator_options)|ir\/(?!types|regions)|text\/(?!text_places|text_format)|script\/|wasm\/(opcodes|code_reader)|validate\/walker)/;
  assert.deepEqual(files.filter((file) => heavy.test(file)), []);
  assert.deepEqual(files.filter((file) => /^(registry|component|project\/(plugins|manifest))\//.test(file)), []);
  assert.ok(files.includes("engine/compile/compile.ts"), "the walk finds the compiler");
  const size = files.reduce((sum, file) => sum + codeSize(file), 0);
  // Of these, 65,000 are both backends, 70,000 let native threads compile, and 2,000 give objects the prototypes that
  // their descriptors hold.
  assert.ok(size < 1_370_000, `${size} characters without comments`);
});

/**
 * Imports the modules that are its arguments, and prints how many errors that creates. An error makes V8 compile the
 * functions on the stack again, for the positions in their sources; a bundle is one such function.
 */
const COUNT_ERRORS = `
let count = 0;
globalThis.Error = new Proxy(Error, { construct: (target, args, made) => (count++, Reflect.construct(target, args, made)) });
for (const module of Deno.args) await import(module);
console.log(count);`;

Deno.test("the modules of the fast paths create no errors when they are loaded", () => {
  const scratch = mkdtempSync(join(tmpdir(), "waft-errors-"));
  try {
    const file = join(scratch, "count.js");
    writeFileSync(file, COUNT_ERRORS);
    const modules = [ENTRY, "project/commands/run/first_run.ts"].map((path) => pathToFileURL(join(ROOT, path)).href);
    const args = ["run", "-A", "--no-check", "--config", join(ROOT, "deno.json"), file, ...modules];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    assert.equal(stdout, "0\n", stderr);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
});

const PROGRAM = `(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1) (data (i32.const 8) "\\08\\01\\00\\00\\03\\00\\00\\00") (data (i32.const 264) "hi\\n")
  (func (export "_start") (drop (call $write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 0))) (call $exit (i32.const 7))))`;
const FUNCTIONS = `(module
  (func $inner (param i32) (result i32) (i32.div_s (i32.const 1) (local.get 0)))
  (func (export "divide") (param i32) (result i32) (call $inner (local.get 0)))
  (func (export "pair") (result i64 f32) (i64.const -1) (f32.const 0.1))
  (func (export "spin") (loop (br 0))))`;

/** Fills more of the heap than is taken before a collection: 60 MB in all, a list of 1000 alive. */
const OBJECTS = `(module
  (type $node (struct (field $value i32) (field $next (ref null $node)))) (type $bytes (array (mut i8)))
  (func (export "lists") (param $rounds i32) (result i32) (local $list (ref null $node)) (local $k i32) (local $sum i32)
    (loop $round
      (local.set $list (ref.null $node)) (local.set $k (i32.const 1000))
      (loop $nodes
        (local.set $list (struct.new $node (local.get $k) (local.get $list)))
        (drop (array.new_default $bytes (i32.const 100)))
        (br_if $nodes (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))
      (loop $walk
        (local.set $sum (i32.add (local.get $sum) (struct.get $node $value (local.get $list))))
        (br_if $walk (i32.eqz (ref.is_null (local.tee $list (struct.get $node $next (local.get $list)))))))
      (br_if $round (local.tee $rounds (i32.sub (local.get $rounds) (i32.const 1)))))
    (local.get $sum)))`;

/** Words after `run`, each of which must do the same with and without the cache. */
const RUNS: readonly (readonly string[])[] = [
  ["program.wasm"],
  ["functions.wasm"],
  ["--invoke", "divide", "functions.wasm", "1"],
  ["--invoke", "divide", "functions.wasm", "0"],
  ["--invoke=divide", "functions.wasm", "x"],
  ["--invoke", "divide", "functions.wasm"],
  ["--invoke", "pair", "functions.wasm"],
  ["--invoke", "none", "functions.wasm"],
  ["--timeout", "20", "--invoke", "spin", "functions.wasm"],
  ["--processor-time", "20", "--invoke", "spin", "functions.wasm"],
  ["--dir", "/nowhere-at-all", "program.wasm"],
  ["objects.wasm", "400"],
];

/** Modules that cannot run, or only on the full path. */
const OTHERS: Readonly<Record<string, string | Uint8Array>> = {
  "text.wat": `(module (func (export "text") (result i32) (i32.const 3)))`,
  "import.wasm": parseModule(`(module (import "env" "f" (func)) (func (export "_start")))`).bytes,
  "name.wasm":
    parseModule(`(module (import "wasi_snapshot_preview1" "nothing" (func)) (func (export "_start")))`).bytes,
  "start.wasm": parseModule(`(module (func $f unreachable) (start $f) (func (export "_start")))`).bytes,
  "invalid.wasm": parseModule(`(module (func (export "_start") (drop (i32.add (i64.const 1) (i32.const 1)))))`).bytes,
  "malformed.wasm": Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 7),
  "header.wasm": Uint8Array.of(0, 0x61, 0x73, 0x6d, 2, 0, 0, 0),
  "empty.wasm": new Uint8Array(0),
  "exports.wasm": parseModule(`(module (func (export "a")) (func (export "b")))`).bytes,
};

Deno.test("a module that is not in the cache runs and fails as on the full path", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-first-"));
  try {
    for (const [name, content] of Object.entries(OTHERS)) writeFileSync(join(home, name), content);
    for (const name of [...Object.keys(OTHERS), "absent.wasm"]) {
      const full = await waft(["run", "--parallel", "1", name], home, home);
      assert.deepEqual(await waft(["run", name], home, home), full, name);
      assert.equal(full.code === 0, name === "text.wat", `${name}: ${full.err}`);
    }
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});

/** Runs a module as the command does when it can do so quickly, and looks at the collector of this process. */
const RUN_QUICKLY = `import { runQuickly } from ${JSON.stringify(pathToFileURL(join(ROOT, ENTRY)).href)};
import { realmStore } from ${JSON.stringify(pathToFileURL(join(ROOT, "engine/runtime/realm_store.ts")).href)};
const status = await runQuickly(["--bare", Deno.args[0], "400"]);
const { collections } = realmStore().heap.statistics;
console.log(status === 0 && collections > 1 ? "quick, with collections" : \`\${status} \${collections}\`);`;

Deno.test("a module from the cache behaves as one that is compiled again", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-quick-"));
  try {
    const place = join(home, "place");
    mkdirSync(place);
    for (const [name, text] of [["program", PROGRAM], ["functions", FUNCTIONS], ["objects", OBJECTS]] as const) {
      writeFileSync(join(place, `${name}.wasm`), encodeModule(parseModule(text)));
    }
    const compiled = join(home, "waft", "cache", "compiled");
    for (const words of RUNS) {
      const anew = await waft(["run", "--no-cache", ...words], place, home);
      // This option takes the full path.
      assert.deepEqual(await waft(["run", "--no-cache", "--parallel", "1", ...words], place, home), anew, words[0]);
      await waft(["run", "--tier", "optimizing", ...words], place, home);
      assert.ok(existsSync(compiled), "the cache is filled");
      assert.deepEqual(await waft(["run", ...words], place, home), anew, words.join(" "));
    }
    // Two engines: with and without interruptible code; and the collector.
    assert.equal(readdirSync(compiled).length, 5);
    // No compiler is loaded: the collector is cached, too.
    const alone = spawnSync(process.execPath, ["eval", "--no-check", RUN_QUICKLY, join(place, "objects.wasm")], {
      cwd: ROOT,
      encoding: "utf8",
      env: { ...process.env, WAFT_HOME: join(home, "waft") },
    });
    assert.equal(alone.stdout, "200200000\nquick, with collections\n", alone.stderr);
    // A manifest in a parent directory affects the run, even a broken one.
    writeFileSync(join(home, "waft.json"), "{");
    const broken = await waft(["run", ...RUNS[2]], place, home);
    assert.equal(broken.code, 3, broken.err);
    assert.equal((await waft(["run", "--bare", ...RUNS[2]], place, home)).out, "1\n");
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
