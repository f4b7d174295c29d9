/**
 * Every command with guests obeys the same settings of project and machine: groups of WASI in the lockfile, directories
 * in the machine's configuration, features in the manifest. Every command with the option `--dir` has a row.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { COMMANDS } from "../../project/commands/table.ts";
import { hostArguments } from "../support/host_arguments.ts";
import { removeFolder } from "../support/remove_folder.ts";
import { HANG_MS } from "../support/hang.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));
const HTTP = fileURLToPath(new URL("../component/fixtures/http.wat", import.meta.url));

/**
 * Exits with a bit for each part of WASI that it has: 1 output, 2 readiness of input, 4 the clock, 8 random bytes,
 * 16 its name, 32 a directory, 64 a variable.
 */
const PARTS = `(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $env (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_prestat_get" (func $prestat (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func $bit (param $has i32) (param $bit i32)
    (if (local.get $has) (then (i32.store (i32.const 800) (i32.or (i32.load (i32.const 800)) (local.get $bit))))))
  (func (export "_start")
    (call $bit (i32.eqz (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16))) (i32.const 1))
    (i32.store8 (i32.const 108) (i32.const 1))
    (call $bit (i32.and
      (i32.eqz (call $poll (i32.const 100) (i32.const 200) (i32.const 1) (i32.const 300)))
      (i32.eqz (i32.load16_u (i32.const 208)))) (i32.const 2))
    (call $bit (i32.eqz (call $clock (i32.const 1) (i64.const 1) (i32.const 400))) (i32.const 4))
    (call $bit (i32.eqz (call $random (i32.const 400) (i32.const 4))) (i32.const 8))
    (drop (call $args (i32.const 500) (i32.const 504)))
    (call $bit (i32.load (i32.const 500)) (i32.const 16))
    (call $bit (i32.eqz (call $prestat (i32.const 3) (i32.const 600))) (i32.const 32))
    (drop (call $env (i32.const 500) (i32.const 504)))
    (call $bit (i32.load (i32.const 500)) (i32.const 64))
    (call $exit (i32.load (i32.const 800)))))`;

/** Definitions of a component that reads a clock while it is instantiated. */
const TICKS = `(import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock (export "now" (func (result u64)))))
  (core func $now (canon lower (func $clock "now")))
  (core module $ticks (import "" "now" (func $now (result i64))) (func $start (drop (call $now))) (start $start))
  (core instance (instantiate $ticks (with "" (instance (export "now" (func $now))))))`;

/** A program that may start threads. */
const THREADS = `(module (import "wasi" "thread-spawn" (func (param i32) (result i32)))
  (import "env" "memory" (memory 1 2 shared)) (func (export "wasi_thread_start") (param i32 i32)) (func (export "_start")))`;

interface Row {
  readonly command: string;
  /** The words of a run before the file. */
  readonly words: readonly string[];
  /** Standard input. */
  readonly input?: string;
  /** True for a command that compiles for another run: nothing runs, and the machine's entry is for this machine. */
  readonly builds?: true;
}

/** Each command with guests, in each of its ways to start one. */
const ROWS: readonly Row[] = [
  { command: "run", words: ["run"] },
  { command: "run", words: ["run", "--record", "log"] },
  { command: "profile", words: ["profile"] },
  { command: "profile", words: ["profile", "--counts"] },
  { command: "debug", words: ["debug"], input: "run\n" },
  { command: "serve", words: ["serve", "--addr", "127.0.0.1:0"] },
  { command: "snapshot", words: ["snapshot", "--init", "_start", "-o", "out.wasm"] },
  { command: "build", words: ["build", "-o", "app", "--runtime", "runtime"], builds: true },
];

/** The commands whose modules have an option `--dir`. */
async function commandsWithGuests(): Promise<string[]> {
  const found: string[] = [];
  for (const { name, load } of COMMANDS) {
    const program = new Command().enablePositionalOptions();
    (await load()).addCommand(program);
    if (program.commands.some(({ options }) => options.some(({ long }) => long === "--dir"))) found.push(name);
  }
  return found;
}

interface Place {
  readonly project: string;
  readonly run: (words: readonly string[], input?: string) => { status: number | null; err: string };
  readonly configure: (projects: object) => void;
}

async function inProject(work: (place: Place) => void | Promise<void>): Promise<void> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "waft-guests-")));
  try {
    const project = join(home, "project");
    mkdirSync(join(project, "data"), { recursive: true });
    mkdirSync(join(home, "waft/config"), { recursive: true });
    writeFileSync(join(project, "waft.json"), "{}");
    writeFileSync(join(project, "parts.wat"), PARTS);
    copyFileSync(HTTP, join(project, "http.wat"));
    const env = { ...process.env, WAFT_HOME: join(home, "waft"), NO_COLOR: "1", WAFT_NO_REPORT: "1" };
    await work({
      project,
      run: (words, input = "") => {
        const { status, stderr } = spawnSync(process.execPath, [...hostArguments(CLI), ...words], {
          cwd: project,
          env,
          encoding: "utf8",
          input,
          timeout: HANG_MS,
        });
        return { status, err: stderr };
      },
      configure: (projects) => writeFileSync(join(home, "waft/config/config.json"), JSON.stringify({ projects })),
    });
  } finally {
    removeFolder(home);
  }
}

/** The file that a command takes in these tests. */
function fileOf({ command }: Row): string {
  return command === "serve" ? "http.wat" : "parts.wat";
}

Deno.test("guests: every command with --dir has a row", async () => {
  assert.deepEqual(await commandsWithGuests(), [...new Set(ROWS.map(({ command }) => command))].sort(byTable));
});

function byTable(a: string, b: string): number {
  const at = (command: string) => COMMANDS.findIndex(({ name }) => name === command);
  return at(a) - at(b);
}

Deno.test("guests: the lockfile's groups of WASI hold for every command, and --bare ignores them", () =>
  inProject(({ project, run }) => {
    const parts = ROWS.filter(({ command, builds }) => command !== "serve" && builds === undefined);
    assert.equal(run(["add", "--wasi", "clock"]).status, 0);
    for (const { words, input } of parts) {
      assert.equal(run([...words, "parts.wat"], input).status, 4, words.join(" "));
      const bare = run([...words, "--bare", "--dir", ".", "--env", "A=1", "parts.wat"], input);
      assert.equal(bare.status, 1 + 2 + 4 + 8 + 16 + 32 + 64, `${words.join(" ")}: ${bare.err}`);
    }
    for (const row of ROWS) {
      const { status, err } = run([...row.words, "--env", "A=1", fileOf(row)], row.input);
      assert.equal(status, 4, row.words.join(" "));
      assert.match(err, /authority\.wasi: the project does not allow its guests --env \(env\)/);
    }
    writeFileSync(join(project, "threads.wat"), THREADS);
    assert.match(
      run(["run", "threads.wat"]).err,
      /cannot run where its project narrows WASI: .* ignore the project with --bare/,
    );
    const serve = ["serve", "--addr", "127.0.0.1:0"];
    assert.match(run([...serve, "--project", "data", "http.wat"]).err, /project\.missing/);
    writeFileSync(join(project, "ticks.wat"), readFileSync(HTTP, "utf8").replace("(component", `(component ${TICKS}`));
    assert.equal(run(["add", "--wasi", "env"]).status, 0);
    assert.match(run([...serve, "ticks.wat"]).err, /does not allow its guests wasi:clocks\/monotonic-clock \(clock\)/);
  }));

Deno.test("guests: the machine's entry and the manifest's features hold for every command", () =>
  inProject(({ project, run, configure }) => {
    const rows = ROWS.filter(({ builds }) => builds === undefined);
    configure({ [project]: { dirs: { "/d": "data" }, env: { A: "1" } } });
    for (const { command, words, input } of rows) {
      if (command !== "serve") assert.equal(run([...words, "parts.wat"], input).status, 127, words.join(" "));
    }
    configure({ [project]: { dirs: { "/d": "gone" } } });
    for (const row of rows) {
      assert.match(run([...row.words, fileOf(row)], row.input).err, /directory .*gone does not exist/);
    }
    configure({});
    writeFileSync(join(project, "waft.json"), '{ "settings": { "features": { "multi-value": false } } }');
    writeFileSync(join(project, "parts.wat"), '(module (func (export "f") (result i32 i32) i32.const 1 i32.const 2))');
    for (const { command, words, input } of rows) {
      if (command === "serve") continue;
      const { status, err } = run([...words, "parts.wat"], input);
      assert.match(err, /feature multi-value/, words.join(" "));
      assert.notEqual(status, 0);
    }
  }));

Deno.test("commands that only compile obey the manifest as run does, and --bare ignores it", () =>
  inProject(({ project, run }) => {
    writeFileSync(join(project, "pair.wat"), '(module (func (export "f") (result i32 i32) i32.const 1 i32.const 2))');
    writeFileSync(join(project, "one.wat"), '(module (func (export "f") (result i32) i32.const 1))');
    writeFileSync(join(project, "waft.json"), '{ "settings": { "features": { "multi-value": false } } }');
    for (const words of [["validate"], ["verify"], ["compile", "-o", "artifact"]]) {
      const { status, err } = run([...words, "pair.wat"]);
      assert.match(err, /feature multi-value/, words[0]);
      assert.notEqual(status, 0);
      assert.deepEqual(run([...words, "--bare", "pair.wat"]), { status: 0, err: "" });
      assert.match(run([...words, "--project", "data", "one.wat"]).err, /project\.missing/);
    }
    assert.equal(run(["compile", "-o", "artifact", "one.wat"]).status, 0);
    assert.deepEqual(run(["run", "--allow-precompiled", "--invoke", "f", "artifact"]), { status: 0, err: "" });
  }));
