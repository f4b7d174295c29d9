/**
 * `waft inspect`, `parse` and `validate` of components: the command as a process.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";
import { CHILD_TIMEOUT } from "../support/host_arguments.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

function waft(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...hostArguments(CLI), ...args], {
    encoding: "utf8",
    timeout: CHILD_TIMEOUT,
  });
  return { status, stdout, stderr };
}

const COMPONENT = `;; a component
(component
  (import "a:b/logger@1.2.0" (instance $logger
    (type $l (enum "low" "high"))
    (export "level" (type $level (eq $l)))
    (export "log" (func (param "level" $level) (param "text" string)))))
  (import "scale" (func $scale (param "value" f32) (result (list u8))))
  (core module $m (func (export "run") (result i32) (i32.const 0)))
  (core instance $i (instantiate $m))
  (func (export "run") (result (result)) (canon lift (core func $i "run"))))
`;

const WORLD = `package root:component;

world root {
  import a:b/logger@1.2.0;
  import scale: func(value: f32) -> list<u8>;

  export run: func() -> result;
}

package a:b@1.2.0 {
  interface logger {
    enum level {
      low,
      high,
    }

    log: func(level: level, text: string);
  }
}
`;

function inFolder(run: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "inspect-"));
  try {
    run(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

Deno.test("a component is parsed, validated and shown as WIT", () => {
  inFolder((folder) => {
    const [text, binary] = [join(folder, "c.wat"), join(folder, "c.wasm")];
    writeFileSync(text, COMPONENT);
    assert.deepEqual(waft("parse", text, "-o", binary), { status: 0, stdout: "", stderr: "" });
    assert.deepEqual([...readFileSync(binary).subarray(0, 8)], [0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0]);
    assert.deepEqual(waft("validate", text, binary), { status: 0, stdout: "", stderr: "" });
    for (const file of [text, binary]) {
      const { status, stdout, stderr } = waft("inspect", file);
      assert.deepEqual({ status, stderr }, { status: 0, stderr: "" });
      assert.ok(stdout.startsWith(WORLD));
      assert.match(
        stdout.slice(WORLD.length),
        /^\n\/\/ component, \d{3} bytes\n\/\/ {3}core module 0 {2}\d+ bytes {2}\d+ %\n$/,
      );
    }
    const [printed, again] = [join(folder, "p.wat"), join(folder, "p.wasm")];
    assert.deepEqual(waft("print", binary, "-o", printed), { status: 0, stdout: "", stderr: "" });
    assert.match(readFileSync(printed, "utf8"), /^\(component\n {2}\(type \(;0;\) \(instance\n/);
    assert.deepEqual(waft("parse", printed, "-o", again), { status: 0, stdout: "", stderr: "" });
    assert.deepEqual(readFileSync(again), readFileSync(binary));
    const wit = join(folder, "c.wit");
    writeFileSync(wit, WORLD);
    assert.deepEqual(waft("inspect", wit), { status: 0, stdout: WORLD, stderr: "" });
    const { ok, data } = JSON.parse(waft("inspect", "--json", binary).stdout);
    assert.ok(ok);
    assert.deepEqual(data.worlds[0].exports, [{ name: "run", kind: "func", type: "func() -> result" }]);
  });
});

Deno.test("faults are one line with the file and the place", () => {
  inFolder((folder) => {
    const text = join(folder, "c.wat");
    writeFileSync(text, '(component\n  (export "f" (func $f)))');
    const parsed = waft("validate", text);
    assert.equal(parsed.status, 1);
    assert.match(parsed.stderr, /c\.wat:2:21: unknown func: failed to find name `\$f`/);
    writeFileSync(text, '(component (import "Xy" (func)))');
    assert.match(
      waft("inspect", text).stderr,
      /^waft: .*c\.wat: `Xy` is not a valid extern name: .* \(at offset 0x[0-9a-f]+\)\n$/,
    );
    writeFileSync(join(folder, "w.wit"), "package a:b;\nworld w { import nope; }\n");
    const inspected = waft("inspect", folder);
    assert.match(inspected.stderr, /w\.wit:2:18: the name `nope` is not defined/);
    writeFileSync(text, "(module (func (i32.const 1)))");
    assert.match(waft("inspect", text).stderr, /^waft: .*c\.wat:1:\d+: type mismatch/);
  });
});

Deno.test({
  name: "a pipe or a device in a directory of WIT is refused, because reading it would never end",
  ignore: process.platform === "win32",
  fn: () => {
    inFolder((folder) => {
      writeFileSync(join(folder, "w.wit"), "package a:b;\nworld w {}\n");
      const deps = join(folder, "deps"), found = join(deps, "z.wit");
      mkdirSync(deps);
      symlinkSync("/dev/zero", found);
      const device = waft("inspect", folder);
      assert.deepEqual([device.status, device.stderr], [1, `waft: ${found}: this is not a regular file\n`]);
      rmSync(found);
      assert.equal(spawnSync("mkfifo", [join(folder, "pipe.wit")]).status, 0);
      assert.match(waft("types", folder, "-o", join(folder, "out")).stderr, /pipe\.wit: this is not a regular file\n$/);
      assert.equal(existsSync(join(folder, "out")), false);
    });
  },
});

const MODULE = `(module $tool
  (import "env" "log" (func $log (param i32 i64) (result f32)))
  (import "env" "memory" (memory 1 16 shared))
  (global (export "flag") (mut i32) (i32.const 0))
  (func $~lib/rt/itcms/__new (export "new") (result i32)
    (i32.atomic.load (i32.const 0)) (i32.const 100000) i32.add)
  (func $~lib/string/String#concat (nop) (nop))
  (func $main (v128.const i32x4 1 2 3 4) drop)
  (data (i32.const 8) "\\1b[31m0123456789")
  (@custom "producers" "\\01\\08language\\01\\05Rust\\1b\\041.80"))
`;

Deno.test("a module is shown with its imports, exports, features, producers and a map of its size", () => {
  inFolder((folder) => {
    const file = join(folder, "m.wat");
    writeFileSync(file, MODULE);
    const { status, stdout, stderr } = waft("inspect", file);
    assert.deepEqual({ status, stderr }, { status: 0, stderr: "" });
    assert.match(stdout, /^core module, \d{3} bytes\n {2}name {7}tool\n {2}needs {6}mutable-global, simd, threads\n/);
    assert.match(stdout, /functions {2}3, 3 with names\n {2}memory {5}1 16 shared\n/);
    assert.match(stdout, /language {3}Rust\\u\{1b\} 1\.80/);
    assert.ok(!stdout.includes("\u001b"), "no control characters of the file");
    assert.match(
      stdout,
      /imports \(2\)\n {2}env\n {4}log {5}func \[i32 i64\] -> \[f32\]\n {4}memory {2}memory 1 16 shared\n/,
    );
    assert.match(stdout, /exports \(2\)\n {2}flag {2}global \(mut i32\)\n {2}new {3}func \[\] -> \[i32\]\n/);
    assert.match(stdout, /\d+ +\d+ % +█* +~lib\/rt \(1\)\n.*~lib\/rt\/itcms\/__new/);
    const { data } = JSON.parse(waft("inspect", "--json", file).stdout);
    assert.equal(data.kind, "core module");
    assert.deepEqual(data.features, ["mutable-global", "simd", "threads"]);
    assert.deepEqual(data.functions.map(({ index }: { index: number }) => index), [3, 1, 2]);
    assert.equal(
      data.sections.reduce((sum: number, { bytes }: { bytes: number }) => sum + bytes, 0) < data.bytes,
      true,
    );
  });
});

Deno.test("an artifact is shown with its engine, machine and code; a damaged one is refused", () => {
  inFolder((folder) => {
    const [text, artifact] = [join(folder, "m.wat"), join(folder, "m.waft")];
    writeFileSync(text, `(module (func (export "f") (result i32) (i32.const 7)))`);
    assert.deepEqual(waft("compile", text, "-o", artifact).status, 0);
    const { data } = JSON.parse(waft("inspect", "--json", artifact).stdout);
    assert.equal(data.kind, "artifact");
    assert.match(data.machine, /^\w+\/(?:x64|arm64)$/);
    assert.equal(data.functions.length, 1);
    assert.match(waft("inspect", artifact).stdout, /^artifact, [\d,]+ bytes\n {2}engine {8}0\.1\.0-/);
    const bytes = readFileSync(artifact);
    bytes[bytes.length - 40] ^= 1;
    writeFileSync(artifact, bytes);
    assert.match(waft("inspect", artifact).stderr, /damaged/);
  });
});
