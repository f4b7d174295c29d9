/**
 * `waft run --record` and `waft replay`: exit statuses, results, damaged files and programs that cannot be recorded.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

interface Outcome {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function inFolder(run: (folder: string, waft: (...args: string[]) => Outcome) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "waft-recording-"));
  const env = { ...process.env, WAFT_HOME: join(folder, "home") };
  try {
    run(folder, (...args) => {
      return spawnSync(process.execPath, [...hostArguments(CLI), ...args], { cwd: folder, encoding: "utf8", env });
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

Deno.test("a replay prints results and ends like the run", () => {
  inFolder((folder, waft) => {
    writeFileSync(
      join(folder, "m.wat"),
      `(module
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory (export "memory") 1)
        (func (export "add") (param i64 f32) (result i64 f32) (i64.add (local.get 0) (i64.const 1)) (local.get 1))
        (func (export "exit") (call $exit (i32.const 7)))
        (func (export "spin") (loop (br 0))))`,
    );
    assert.equal(waft("run", "--record", "log", "--invoke", "add", "m.wat", "41", "0.1").stdout, "42\n0.1\n");
    const { status, stdout, stderr } = waft("replay", "log");
    assert.deepEqual([status, stdout], [0, "42\n0.1\n"]);
    assert.equal(stderr, "waft: replayed 1 call and 0 host calls; the state is as recorded\n");
    assert.equal(waft("replay", "--tier", "baseline", "--bounds", "explicit", "log").stdout, "42\n0.1\n");
    if (process.platform !== "win32") assert.equal(statSync(join(folder, "log")).mode & 0o777, 0o600);
    assert.equal(waft("run", "--record", "log", "--invoke", "exit", "m.wat").status, 7);
    assert.equal(waft("replay", "log").status, 7);
    for (const limit of [["--timeout", "20"], ["--fuel", "1000"], ["--processor-time", "20"]]) {
      assert.equal(waft("run", "--record", "log", ...limit, "--invoke", "spin", "m.wat").status, 134);
      const { status, stderr } = waft("replay", "--coredump", "core", "log");
      assert.equal(status, 134, stderr);
      assert.match(stderr, limit[0] === "--fuel" ? /trap: out of fuel/ : /trap: interrupted/);
      assert.ok(existsSync(join(folder, "core")));
    }
    const { data } = JSON.parse(waft("replay", "--json", "log").stdout);
    assert.deepEqual([data.outcome, data.message, data.calls], ["trapped", "interrupted", 1]);
  });
});

Deno.test("damaged recordings and runs that cannot be recorded are refused", () => {
  inFolder((folder, waft) => {
    writeFileSync(join(folder, "m.wat"), `(module (func (export "f") (result i32) (i32.const 5)))`);
    assert.equal(waft("run", "--record", "log", "m.wat").stdout, "5\n");
    const log = readFileSync(join(folder, "log"));
    for (const [name, bytes] of [["cut", log.subarray(0, 60)], ["changed", log.with(40, log[40] ^ 1)]] as const) {
      writeFileSync(join(folder, name), bytes);
      for (const command of ["replay", "inspect"]) {
        const { status, stdout, stderr } = waft(command, name);
        assert.deepEqual([status, stdout], [1, ""]);
        assert.match(stderr, /^waft: \w+: The recording cannot be read: .* \(at offset 0x[0-9a-f]+\)\n$/);
      }
    }
    const refused = (args: string[], message: RegExp) => {
      const { status, stderr } = waft("run", "--record", "other", ...args);
      assert.match(stderr, message);
      assert.ok(status === 1 || status === 2, String(status));
      assert.ok(!readdirSync(folder).some((name) => name.startsWith("other")));
    };
    writeFileSync(join(folder, "c.wat"), "(component)");
    refused(["c.wat"], /components cannot be recorded/);
    writeFileSync(
      join(folder, "t.wat"),
      `(module (import "wasi" "thread-spawn" (func (param i32) (result i32)))
      (import "env" "memory" (memory 1 1 shared)) (func (export "_start")))`,
    );
    refused(["t.wat"], /a program with threads cannot be recorded/);
    waft("compile", "m.wat", "-o", "m.artifact");
    refused(["--allow-precompiled", "m.artifact"], /takes the module, not an artifact/);
    const { status, stderr } = waft("run", "--record", "none/log", "m.wat");
    assert.equal(status, 2);
    assert.match(stderr, /--record: the directory of none\/log does not exist/);
    assert.match(waft("replay", "m.wat").stderr, /not a recording of waft/);
  });
});
