/**
 * `waft profile` as a process: tables, pages, file for the Firefox profiler, JSON, counts; programs that fail;
 * refusals.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

function profileTest(
  name: string,
  run: (folder: string, waft: (...args: string[]) => { status: number | null; stdout: string; stderr: string }) => void,
  everywhere = false,
): void {
  Deno.test({
    name: `profile command: ${name}`,
    // Samples need Linux.
    ignore: !everywhere && process.platform !== "linux",
    fn() {
      const folder = mkdtempSync(join(tmpdir(), "profile-"));
      const env = { ...process.env, WAFT_HOME: join(folder, "home") };
      try {
        run(folder, (...args) => {
          const options = { cwd: folder, encoding: "utf8", env } as const;
          const { status, stdout, stderr } = spawnSync(process.execPath, [...hostArguments(CLI), ...args], options);
          return { status, stdout, stderr };
        });
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  });
}

/** Turns of a loop that take some tenths of a second. */
const TURNS = 300_000_000;

const SPIN = `(func $spin (param i32) (result i32) (local $s i32)
    (loop $l (local.set $s (i32.xor (i32.mul (local.get $s) (i32.const 31)) (local.get 0)))
      (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get $s))`;

profileTest("the table names the busiest function, and the program's result is printed", (folder, waft) => {
  writeFileSync(
    join(folder, "m.wat"),
    `(module ${SPIN} (func (export "run") (param i32) (result i32) (call $spin (local.get 0))))`,
  );
  const { status, stdout, stderr } = waft(
    "profile",
    "--firefox",
    "p.json",
    "-o",
    "p.html",
    "--invoke",
    "run",
    "m.wat",
    `${TURNS}`,
  );
  assert.equal(status, 0, stderr);
  assert.equal(stdout, waft("run", "--invoke", "run", "m.wat", `${TURNS}`).stdout);
  assert.match(stderr, /^\d+ samples, \d+ ms\n own % {2}all % {2}function\n +(9\d|100)\.\d +(9\d|100)\.\d {2}spin\n/);
  const file = JSON.parse(readFileSync(join(folder, "p.json"), "utf8"));
  assert.deepEqual([file.meta.product, file.meta.interval, file.threads.length], ["m.wat", 1, 1]);
  const [, data] = /<script type="application\/json" id="profile">([^<]*)</.exec(
    readFileSync(join(folder, "p.html"), "utf8"),
  )!;
  const { frames, nodes } = JSON.parse(data!);
  assert.ok(frames.some(({ name }: { name: string }) => name.startsWith("spin")));
  nodes.forEach(([, parent]: number[], k: number) => assert.ok(k === 0 || parent! < k, "callers come first"));
});

profileTest("a program that traps or ends with a status has its profile and its status", (folder, waft) => {
  writeFileSync(
    join(folder, "trap.wat"),
    `(module ${SPIN} (func (export "run") (drop (call $spin (i32.const ${TURNS}))) unreachable))`,
  );
  const trapped = waft("profile", "--invoke", "run", "trap.wat", "--firefox", "x");
  assert.equal(trapped.status, 2, "options come before the file");
  const { status, stderr } = waft("profile", "-o", "trap.html", "--invoke", "run", "trap.wat");
  assert.equal(status, 134);
  assert.match(stderr, / spin\n[\s\S]*trap\.html: flame graph\nwaft: trap\.wat: trap: unreachable/);
  writeFileSync(
    join(folder, "exit.wat"),
    `(module (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32))) (memory (export "memory") 1)
      ${SPIN} (func (export "_start") (drop (call $spin (i32.const ${TURNS}))) (call $exit (i32.const 7))))`,
  );
  assert.equal(waft("profile", "exit.wat").status, 7);
});

profileTest("hostile names in the page are text", (folder, waft) => {
  const name = "</script><img src=x onerror=alert(1)>\\u{202e}";
  writeFileSync(
    join(folder, "m.wat"),
    `(module ${
      SPIN.replace("$spin", `$spin (@name "${name}")`)
    } (func (export "run") (drop (call $spin (i32.const ${TURNS})))))`,
  );
  const { status, stderr } = waft("profile", "-o", "p.html", "--invoke", "run", "m.wat");
  assert.equal(status, 0, stderr);
  assert.ok(!stderr.includes("\u202e"));
  const html = readFileSync(join(folder, "p.html"), "utf8");
  assert.ok(!html.includes("<img") && !html.includes("\u202e"));
  assert.equal(html.match(/<\/script>/g)?.length, 2);
});

profileTest("threads, intervals and missing files are refused", (folder, waft) => {
  writeFileSync(
    join(folder, "t.wat"),
    `(module (import "env" "memory" (memory 1 2 shared)) (import "wasi" "thread-spawn" (func (param i32) (result i32)))
      (func (export "wasi_thread_start") (param i32 i32)) (func (export "_start")))`,
  );
  assert.match(
    waft("profile", "t.wat").stderr,
    /^waft: t\.wat starts threads; a profile has the samples of one thread/,
  );
  assert.match(waft("profile", "--interval", "0", "t.wat").stderr, /--interval "0" is not 0\.1 to 1000 milliseconds/);
  assert.match(waft("profile", "-o", "p", "none.wasm").stderr, /^waft: none\.wasm: /);
  writeFileSync(join(folder, "i.wat"), `(module (import "a" "b" (func)) (func (export "_start")))`);
  assert.match(waft("profile", "-o", "p", "i.wat").stderr, /^waft: i\.wat: 1 unknown import/);
  assert.ok(!existsSync(join(folder, "p")));
});

/** A guest that renames `out` and links it to `outside`. */
const REDIRECTS = `(module
  (import "wasi_snapshot_preview1" "path_rename" (func $rename (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_symlink" (func $link (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "out") (data (i32.const 8) "moved") (data (i32.const 16) "../outside")
  (func (export "_start")
    (drop (call $rename (i32.const 3) (i32.const 0) (i32.const 3) (i32.const 3) (i32.const 8) (i32.const 5)))
    (drop (call $link (i32.const 16) (i32.const 10) (i32.const 3) (i32.const 0) (i32.const 3)))))`;

profileTest("a guest cannot redirect the files to another directory", (folder, waft) => {
  for (const path of ["outside", "work", "work/out"]) mkdirSync(join(folder, path));
  writeFileSync(join(folder, "work/m.wat"), REDIRECTS);
  const { status, stderr } = waft("profile", "--dir", "work::/", "-o", "work/out/page.html", "work/m.wat");
  assert.equal(status, 1, stderr);
  assert.match(stderr, /the directory of work\/out\/page\.html was replaced during the run/);
  assert.deepEqual(readdirSync(join(folder, "outside")), []);
});

const HELLO = fileURLToPath(new URL("../component/fixtures/hello.wasm", import.meta.url));

profileTest("with --json, the output of a component goes to standard error", (_, waft) => {
  const { status, stdout, stderr } = waft("profile", "--json", HELLO, "a word");
  assert.equal(status, 0, stderr);
  assert.equal(JSON.parse(stdout).command, "profile");
  assert.ok(stderr.startsWith("a word"), stderr);
});

const SUMS = fileURLToPath(new URL("../debug/programs/sums.wasm", import.meta.url));

profileTest("samples of an AssemblyScript program have the lines of its source map", (folder, waft) => {
  const { status, stderr } = waft("profile", "--firefox", "p.json", "--invoke", "run", SUMS, "16000");
  assert.equal(status, 0, stderr);
  const { threads: [{ stringArray, funcTable, frameTable }] } = JSON.parse(
    readFileSync(join(folder, "p.json"), "utf8"),
  );
  const lines = frameTable.func.map((func: number, k: number) =>
    `${stringArray[funcTable.name[func]]} ${stringArray[funcTable.fileName[func]]}:${frameTable.line[k]}`
  );
  assert.ok(lines.includes("sums/sumOfSquares ./sums/sums.ts:10"), lines.join(", "));
});

const COUNTED = `(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (type $pair (struct (field i32 i32)))
  (memory (export "memory") 1 4)
  (func $leaf (drop (struct.new_default $pair)) (drop (memory.grow (i32.const 1))))
  (func (export "_start") (local $k i32)
    (loop $l
      (call $leaf)
      (drop (call $random (i32.const 0) (i32.const 8)))
      (br_if $l (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 1234))))
    (call $exit (i32.const 7))))`;

profileTest(
  "counts are exact in the tables, the page and the JSON, and the status is the program's",
  (folder, waft) => {
    writeFileSync(join(folder, "m.wat"), COUNTED);
    const { status, stdout, stderr } = waft("profile", "--counts", "--json", "-o", "p.html", "m.wat");
    assert.equal(status, 7, stderr);
    for (
      const row of [
        "1,234  leaf",
        "1,234  _start (line 8)",
        "1,234         0  struct.new_default of type 0 in leaf (line 6)",
        "1,234      3  memory 0 in leaf (line 6)",
      ]
    ) assert.ok(stderr.includes(row), `${row}\n${stderr}`);
    const { functions, loops, allocations, growth, hostCalls } = JSON.parse(stdout).data;
    assert.deepEqual(functions.map(({ name, calls }: { name: string; calls: number }) => [name, calls]), [
      ["leaf", 1234],
      ["_start", 1],
    ]);
    assert.deepEqual([loops[0].iterations, allocations[0].objects, growth[0].calls, growth[0].pages], [
      1234,
      1234,
      1234,
      3,
    ]);
    const called = hostCalls.map(({ name, calls }: { name: string; calls: number }) => `${name} ${calls}`);
    assert.deepEqual(called.sort(), ["proc_exit 1", "random_get 1234"]);
    assert.match(
      readFileSync(join(folder, "p.html"), "utf8"),
      /<td class="number">1,234<\/td><td class="name">leaf<\/td>/,
    );
  },
  true,
);

profileTest(
  "counts name AssemblyScript lines; a trap keeps its status; samples and fuel are refused",
  (folder, waft) => {
    const { stdout, stderr } = waft("profile", "--counts", "--invoke", "run", SUMS, "10");
    assert.equal(stdout, waft("run", "--invoke", "run", SUMS, "10").stdout);
    assert.match(stderr, / 55 {2}sums\/square\n[^]* 65 {2}sums\/sumOfSquares \(\.\/sums\/sums\.ts:9\)\n/);
    writeFileSync(join(folder, "trap.wat"), `(module (func (export "f") (call $g)) (func $g unreachable))`);
    const trapped = waft("profile", "--counts", "trap.wat");
    assert.equal(trapped.status, 134);
    assert.match(trapped.stderr, /calls {2}function\n {4}1 {2}f\n {4}1 {2}g\nwaft: trap\.wat: trap: unreachable\n$/);
    assert.match(waft("profile", "--counts", "--firefox", "x", "trap.wat").stderr, /--counts takes no samples/);
    assert.match(waft("profile", "--counts", "--fuel", "9", "trap.wat").stderr, /--counts adds instructions/);
    writeFileSync(join(folder, "c.wat"), "(component)");
    assert.match(waft("profile", "--counts", "c.wat").stderr, /components cannot be counted, only modules/);
    // Limits are those of the program: its counters are in a second memory.
    writeFileSync(
      join(folder, "m0.wat"),
      `(module (memory 0) (func (export "f") (result i32) (memory.grow (i32.const 1))))`,
    );
    const limits = ["--max-memory", "0", "--feature", "multi-memory=off"];
    assert.equal(waft("profile", "--counts", ...limits, "m0.wat").stdout, "-1\n");
    writeFileSync(join(folder, "m1.wat"), `(module (memory 1) (func (export "f")))`);
    assert.match(waft("profile", "--counts", ...limits, "m1.wat").stderr, /1 pages exceed the limit of 0/);
    writeFileSync(join(folder, "big.wat"), `(module (func (export "f") ${"(loop)".repeat(400_000)}))`);
    assert.match(
      waft("profile", "--counts", "big.wat").stderr,
      /: func 0 of 1200002 bytes is too large to be instrumented/,
    );
    assert.match(waft("debug", "big.wat").stderr, /: func 0 of 1200002 bytes is too large to be instrumented/);
  },
  true,
);
