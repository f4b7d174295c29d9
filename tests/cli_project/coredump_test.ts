/**
 * `waft run --coredump`: the file after a trap, after other ends, and where it cannot be written; `waft inspect` of
 * core dumps, damaged ones included.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";
import { removeFolder } from "../support/remove_folder.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

const PROGRAM = `(module
  (memory (export "memory") 1)
  (global (mut i32) (i32.const 77))
  (global f64 (f64.const 0.5))
  (func $divide (param i32) (result i32) (i32.div_u (i32.const 1) (local.get 0)))
  (func (export "f") (param i32) (result i32)
    (i32.store8 (i32.const 60000) (i32.const 5))
    (call $divide (local.get 0))))`;

function inFolder(run: (folder: string, waft: (...args: string[]) => ReturnType<typeof start>) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "coredump-"));
  try {
    writeFileSync(join(folder, "divide.wat"), PROGRAM);
    run(folder, (...args) => start(folder, args));
  } finally {
    removeFolder(folder);
  }
}

function start(folder: string, args: readonly string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [...hostArguments(CLI), ...args], {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, WAFT_HOME: join(folder, "home") },
  });
}

Deno.test("a trap leaves a core dump, which inspect shows; another end leaves none", () => {
  inFolder((folder, waft) => {
    assert.deepEqual(waft("run", "--coredump", "core", "divide.wat", "4").stdout, "0\n");
    assert.equal(existsSync(join(folder, "core")), false);
    const { status, stderr } = waft("run", "--coredump", "core", "divide.wat", "0");
    assert.equal(status, 134);
    assert.match(stderr, /^waft: core dump written to core\nwaft: divide.wat: trap: integer divide by zero\n/);
    if (process.platform !== "win32") assert.equal(statSync(join(folder, "core")).mode & 0o777, 0o600);
    const shown = waft("inspect", "core");
    assert.equal(shown.stderr, "");
    assert.equal(
      shown.stdout,
      `core dump of divide.wat

stack of main
  #0  divide  +0x5
  #1  f       +0xc

state
  memory 0  1 page, 4,096 bytes not zero
  global 0  i32 77
  global 1  f64 0.5
`,
    );
    const { data } = JSON.parse(waft("inspect", "--json", "core").stdout);
    assert.deepEqual([data.kind, data.program, data.threads[0].frames.length], ["core dump", "divide.wat", 2]);
  });
});

Deno.test("a core dump that cannot be written does not hide the trap", () => {
  inFolder((folder, waft) => {
    const { status, stderr } = waft("run", "--coredump", join("none", "core"), "divide.wat", "0");
    assert.equal(status, 134);
    assert.match(
      stderr,
      /^waft: no core dump was written: ENOENT[^\n]*none[^\n]*'\nwaft: divide.wat: trap: integer divide/,
    );
    assert.equal(existsSync(join(folder, "none")), false);
  });
});

Deno.test({
  name: "a link at the path of a core dump is replaced, not followed",
  ignore: process.platform === "win32",
  fn: () => {
    inFolder((folder, waft) => {
      writeFileSync(join(folder, "precious"), "data");
      symlinkSync(join(folder, "precious"), join(folder, "core"));
      assert.equal(waft("run", "--coredump", "core", "divide.wat", "0").status, 134);
      assert.equal(readFileSync(join(folder, "precious"), "utf8"), "data");
      assert.equal(lstatSync(join(folder, "core")).isFile(), true);
      assert.deepEqual(readdirSync(folder).filter((name) => name.endsWith(".tmp")), []);
    });
  },
});

/** A guest that renames `out`, links it to `../outside`, and traps. */
const REDIRECTS = `(module
  (import "wasi_snapshot_preview1" "path_rename" (func $rename (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_symlink" (func $link (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "out") (data (i32.const 8) "moved") (data (i32.const 16) "../outside")
  (func (export "_start")
    (drop (call $rename (i32.const 3) (i32.const 0) (i32.const 3) (i32.const 3) (i32.const 8) (i32.const 5)))
    (if (call $link (i32.const 16) (i32.const 10) (i32.const 3) (i32.const 0) (i32.const 3)) (then (return)))
    (unreachable)))`;

Deno.test({
  name: "a guest cannot redirect its core dump or recording to another directory",
  ignore: process.platform === "win32",
  fn: () => {
    inFolder((folder) => {
      const work = join(folder, "work"), outside = join(folder, "outside");
      for (const path of [work, outside]) mkdirSync(path);
      writeFileSync(join(work, "redirect.wat"), REDIRECTS);
      const args = ["run", "--dir", ".::/", "--coredump", "out/core", "redirect.wat"];
      for (const existsBefore of [true, false]) {
        if (existsBefore) mkdirSync(join(work, "out"));
        const { status, stderr } = start(work, args);
        assert.equal(status, 134, stderr);
        assert.match(stderr, /^waft: no core dump was written: [^\n]*\nwaft: redirect.wat: trap: unreachable\n/);
        assert.deepEqual(readdirSync(outside), []);
        assert.deepEqual(lstatSync(join(work, "out")).isSymbolicLink(), true);
        rmSync(join(work, "out"));
      }
      // The same for a recording.
      mkdirSync(join(work, "out"));
      rmSync(join(work, "moved"), { recursive: true });
      const { stderr } = start(work, ["run", "--dir", ".::/", "--record", "out/log", "redirect.wat"]);
      assert.match(stderr, /no recording was written: the directory of out\/log was replaced during the run/);
      assert.deepEqual(readdirSync(outside), []);
    });
  },
});

Deno.test("a damaged core dump is an error with its offset", () => {
  inFolder((folder, waft) => {
    assert.equal(waft("run", "--coredump", "core", "divide.wat", "0").status, 134);
    const bytes = readFileSync(join(folder, "core"));
    const stack = bytes.indexOf("corestack") + "corestack".length;
    bytes[stack + 6] = 0x7f;
    writeFileSync(join(folder, "core"), bytes);
    const { status, stderr } = waft("inspect", "core");
    assert.equal(status, 1);
    assert.match(stderr, /^waft: core: .*\(at offset 0x[0-9a-f]+\)\n$/);
  });
});
