/**
 * `waft snapshot`: modules whose initialization has run, on waft and on the host's engine; state that no module can
 * have is refused.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { NewEngine } from "../../engine/mod.ts";
import { CHILD_TIMEOUT, hostArguments } from "../support/host_arguments.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

function waft(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...hostArguments(CLI), ...args], {
    encoding: "utf8",
    timeout: CHILD_TIMEOUT,
  });
  return { status, stdout, stderr };
}

const MODULE = `(module
  (import "env" "later" (func $later))
  (type $f (func (result i32)))
  (memory (export "memory") 1 10)
  (table $t 2 10 funcref)
  (elem (i32.const 0) func $one)
  (elem $unused func $two)
  (elem $used func $one $two)
  (data (i32.const 8) "hello")
  (data $d "passive")
  (data $kept "kept")
  (global $n (mut i64) (i64.const 5))
  (global $x (mut f64) (f64.const 0))
  (global $v (mut v128) (v128.const i64x2 0 0))
  (global $r (mut funcref) (ref.null func))
  (func $one (result i32) (i32.const 1))
  (func $two (result i32) (i32.const 2))
  (func $start (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1))))
  (start $start)
  (func (export "setup")
    (drop (memory.grow (i32.const 2)))
    (i32.store (i32.const 100000) (i32.const 42))
    (i32.store8 (i32.const 8) (i32.const 0x4a))
    (global.set $n (i64.const -7))
    (global.set $x (f64.const nan:0x4000000000123))
    (global.set $v (v128.const i64x2 3 4))
    (global.set $r (ref.func $two))
    (drop (table.grow $t (ref.func $two) (i32.const 1)))
    (table.init $t $used (i32.const 1) (i32.const 0) (i32.const 1))
    (elem.drop $used)
    (memory.init $d (i32.const 200) (i32.const 0) (i32.const 7))
    (data.drop $d))
  (func (export "calls") (call $later))
  (func (export "starts") (result i32) (i32.load (i32.const 0)))
  (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "element") (param i32) (result i32) (call_indirect $t (type $f) (local.get 0)))
  (func (export "globals") (result i64)
    (i64.add (global.get $n)
      (i64.add (i64x2.extract_lane 1 (global.get $v)) (i64.reinterpret_f64 (global.get $x)))))
  (func (export "function") (result i32) (table.set $t (i32.const 0) (global.get $r))
    (call_indirect $t (type $f) (i32.const 0)))
  (func (export "sizes") (result i32) (i32.add (i32.mul (memory.size) (i32.const 10)) (table.size $t)))
  (func (export "dropped") (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1)))
  (func (export "kept") (result i32)
    (memory.init $kept (i32.const 300) (i32.const 0) (i32.const 4)) (i32.load8_u (i32.const 303)))
  (func (export "unused") (table.init $t $unused (i32.const 0) (i32.const 0) (i32.const 1))))`;

function inFolder(run: (path: (name: string) => string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "waft-snapshot-"));
  try {
    run((name) => join(folder, name));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

Deno.test("waft snapshot writes a module that begins after its initialization, for any engine", () =>
  inFolder((path) => {
    writeFileSync(path("m.wat"), MODULE);
    const { status, stderr } = waft("snapshot", "--init", "setup", path("m.wat"), "-o", path("out.wasm"));
    assert.equal(status, 0, stderr);
    assert.match(stderr, /out\.wasm: \d+ bytes, initialized/);
    const bytes = readFileSync(path("out.wasm"));
    const env = { later: () => {} };
    const own = NewEngine().compile(bytes).instantiate({}, { env });
    const host = new WebAssembly.Instance(new WebAssembly.Module(bytes), { env }).exports as Record<string, unknown>;
    const subjects: ((name: string, ...args: unknown[]) => unknown)[] = [
      (name, ...args) => own.call({}, name, ...args),
      (name, ...args) => (host[name] as (...args: unknown[]) => unknown)(...args),
    ];
    for (const call of subjects) {
      assert.equal(call("starts"), 1);
      assert.deepEqual([call("load", 100000), call("load", 8), call("load", 200)], [42, 0x6c6c654a, 0x73736170]);
      assert.deepEqual([call("element", 0), call("element", 1), call("element", 2)], [1, 1, 2]);
      assert.equal(call("globals"), -7n + 4n + 0x7ff4000000000123n);
      assert.deepEqual([call("sizes"), call("kept")], [33, "t".charCodeAt(0)]);
      assert.throws(() => call("dropped"), { message: /out of bounds/i });
      call("unused");
      assert.deepEqual([call("element", 0), call("function")], [2, 2]);
    }
    assert.equal("setup" in host, false);
  }));

Deno.test("waft snapshot keeps i31 references", () =>
  inFolder((path) => {
    const text = `(module (global $i (mut i31ref) (ref.null i31)) (table $t 1 anyref)
      (func (export "_initialize")
        (global.set $i (ref.i31 (i32.const -9))) (table.set $t (i32.const 0) (ref.i31 (i32.const 0x3fffffff))))
      (func (export "sum") (result i32) (i32.add (i31.get_s (global.get $i))
        (i31.get_s (ref.cast i31ref (table.get $t (i32.const 0)))))))`;
    writeFileSync(path("m.wat"), text);
    const { status, stderr } = waft("snapshot", path("m.wat"), "-o", path("out.wasm"));
    assert.equal(status, 0, stderr);
    const instance = NewEngine().compile(readFileSync(path("out.wasm"))).instantiate();
    assert.equal(instance.call({}, "sum"), 0x3fffffff - 9);
  }));

Deno.test("waft snapshot runs reactors and the initialization of other tools with WASI", () =>
  inFolder((path) => {
    const text = `(module
      (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
      (memory (export "memory") 1)
      (func (export "_initialize") (drop (call $sizes (i32.const 0) (i32.const 4))))
      (func (export "wizer.initialize") (i32.store (i32.const 8) (i32.add (i32.load (i32.const 0)) (i32.const 40))))
      (func (export "value") (result i32) (i32.load (i32.const 8))))`;
    writeFileSync(path("m.wat"), text);
    const written = waft("snapshot", path("m.wat"), "-o", path("out.wasm"), "--", "one", "two");
    assert.equal(written.status, 0, written.stderr);
    assert.equal(waft("run", "--invoke", "value", path("out.wasm")).stdout, "43\n");
    const module = NewEngine().compile(readFileSync(path("out.wasm")));
    assert.deepEqual(module.exports.map(({ name }) => name), ["memory", "value"]);
  }));

Deno.test("waft snapshot says what it cannot do, and writes nothing", () =>
  inFolder((path) => {
    writeFileSync(path("m.wat"), MODULE);
    const objects = `(module (type $s (struct)) (global $g (mut (ref null $s)) (ref.null $s))
      (func (export "init") (global.set $g (struct.new $s))))`;
    writeFileSync(path("objects.wat"), objects);
    writeFileSync(path("imported.wat"), `(module (import "env" "m" (memory 1)) (func (export "init")))`);
    const cases: readonly (readonly [name: string, init: string, message: RegExp])[] = [
      ["m.wat", "missing", /exports no function "missing"/],
      ["m.wat", "load", /--init load: the function has parameters/],
      ["m.wat", "calls", /the initialization calls the import "env" "later", which only later runs have/],
      ["objects.wat", "init", /No module can begin in this state: global 0 refers to an object/],
      ["imported.wat", "init", /"env" "m"/],
    ];
    for (const [name, init, message] of cases) {
      const { status, stderr } = waft("snapshot", "--init", init, path(name), "-o", path("out.wasm"));
      assert.notEqual(status, 0, name);
      assert.match(stderr, message);
      assert.throws(() => readFileSync(path("out.wasm")), { code: "ENOENT" });
    }
    const { status, stderr } = waft("snapshot", path("m.wat"), "-o", path("out.wasm"));
    assert.equal(status, 2);
    assert.match(stderr, /exports neither wizer\.initialize nor _initialize: name its initialization with --init/);
  }));

Deno.test("waft snapshot ends as an initialization does that ends the program, and writes nothing", () =>
  inFolder((path) => {
    for (const [status, message] of [[0, /the initialization ends the program/], [7, /^$/]] as const) {
      const text = `(module (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory (export "memory") 1) (func (export "_initialize") (call $exit (i32.const ${status}))))`;
      writeFileSync(path("m.wat"), text);
      const ended = waft("snapshot", path("m.wat"), "-o", path("out.wasm"));
      assert.equal(ended.status, status === 0 ? 1 : status);
      assert.match(ended.stderr, message);
      assert.throws(() => readFileSync(path("out.wasm")), { code: "ENOENT" });
    }
  }));
