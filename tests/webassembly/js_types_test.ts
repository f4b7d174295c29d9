/**
 * Type reflection: the tests of the proposal "JS Types", and that the namespace has nothing of it unless it is switched
 * on.
 */
import { WebAssembly } from "@waft/engine/webassembly";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseModule } from "../../engine/text/parse_module.ts";
import { hasSuite, scriptFolder, scriptNames, suiteHint, suiteNamed } from "../support/suites.ts";
import { TestWorker } from "../support/test_worker.ts";

const SUITE = suiteNamed("js-types");

/** Files that have no tests: parts of others. */
const PARTS =
  /assertions\.js$|helper\.js$|module-builder\.js$|bad-imports\.js$|instanceTestFactory\.js$|tostringtag\.js$/;

/** Left out: it has the limits of 2024, and its modules take 40 seconds; tests/hostile/limits_test.ts has today's. */
const LIMITS = "limits.any.js";

/** Tests that fail, with the reason. */
const FAILURES: Readonly<Record<string, string>> = {
  "memory/grow.any.js: Growing shared memory does not detach old buffer":
    "the buffer of a shared memory is one SharedArrayBuffer that grows (conformance_test.ts)",
};

/** The script and the files that it names, in order. */
function scriptsOf(name: string): string[] {
  const folder = scriptFolder(SUITE);
  const text = readFileSync(join(folder, name), "utf8");
  const parts = [...text.matchAll(/^\/\/ META: script=(\S+)$/gm)].map(([, path]) =>
    path.startsWith("/wasm/jsapi/") ? path.slice("/wasm/jsapi/".length) : join(dirname(name), path)
  );
  return [...parts.map((part) => readFileSync(join(folder, part), "utf8")), text];
}

Deno.test({
  name: `js-types: the proposal's tests pass${hasSuite(SUITE) ? "" : ` (${suiteHint(SUITE)})`}`,
  ignore: !hasSuite(SUITE),
  async fn() {
    const worker = new TestWorker(new URL("./js_types_worker.ts", import.meta.url));
    const failures: Record<string, string> = {};
    let passed = 0;
    try {
      for (const name of scriptNames(SUITE).filter((name) => name !== LIMITS && !PARTS.test(name))) {
        for (const outcome of await worker.ask(scriptsOf(name)) as { name: string; failure?: string }[]) {
          if (outcome.failure === undefined) passed++;
          else failures[`${name}: ${outcome.name}`] = outcome.failure;
        }
      }
    } finally {
      worker.terminate();
    }
    assert.deepEqual(Object.keys(failures), Object.keys(FAILURES), JSON.stringify(failures, null, 2));
    assert.ok(passed > 200, `${passed}`);
  },
});

/** Of our own, for all that the proposal's tests leave out. */
const OWN = `
test(() => {
  const memory = new WebAssembly.Memory({ minimum: 1, maximum: 3 });
  memory.grow(1);
  assert_equals(JSON.stringify(memory.type()), '{"minimum":2,"maximum":3}');
  const shared = new WebAssembly.Memory({ minimum: 1, maximum: 3, shared: true });
  assert_equals(JSON.stringify(shared.type()), '{"minimum":1,"maximum":3,"shared":true}');
  const wide = new WebAssembly.Memory({ minimum: 1n, address: "i64" }).type();
  assert_equals(wide.minimum, 1n);
  assert_equals(wide.address, "i64");
  assert_equals(new WebAssembly.Memory(wide).buffer.byteLength, 65536);
  assert_throws_js(TypeError, () => new WebAssembly.Memory({ minimum: 1, initial: 1 }));
  assert_throws_js(TypeError, () => new WebAssembly.Table({ element: "anyfunc" }));
}, "memories");
test(() => {
  assert_equals(JSON.stringify(new WebAssembly.Tag({ parameters: ["i32", "externref"] }).type()),
    '{"parameters":["i32","externref"]}');
  for (const { prototype } of [WebAssembly.Memory, WebAssembly.Table, WebAssembly.Global, WebAssembly.Tag, WebAssembly.Function]) {
    assert_throws_js(TypeError, () => prototype.type.call({}));
    assert_throws_js(TypeError, () => prototype.type.call(() => 1));
  }
}, "tags and receivers");
test(() => {
  const seen = [];
  const pair = new WebAssembly.Function({ parameters: ["i64", "f32"], results: ["i32", "externref"] }, (...args) => {
    seen.push(...args);
    return [7.5, seen];
  });
  const [number, object] = pair(5n, 1.5);
  assert_equals(number, 7);
  assert_equals(object, seen);
  assert_equals(seen.join(), "5,1.5");
  assert_equals(pair.length, 2);
  assert_true(pair instanceof Function);
  const table = new WebAssembly.Table({ element: "funcref", minimum: 1 }, pair);
  assert_equals(table.get(0), pair);
  assert_throws_js(TypeError, () => table.set(0, () => 1));
  assert_throws_js(TypeError, () => new WebAssembly.Function({ parameters: ["i32"], results: 1 }, () => 1));
  assert_throws_js(TypeError, () => new WebAssembly.Function({ get parameters() { throw new TypeError(); }, results: [] }, () => 1));
}, "functions");
test(() => {
  const module = new WebAssembly.Module(MODULE);
  assert_equals(JSON.stringify(WebAssembly.Module.imports(module)), JSON.stringify([
    { module: "m", name: "f", kind: "function", type: { parameters: ["i32"], results: ["f64"] } },
    { module: "m", name: "t", kind: "table", type: { minimum: 1, element: "externref" } },
  ]));
  assert_equals(JSON.stringify(WebAssembly.Module.exports(module)), JSON.stringify([
    { name: "f", kind: "function", type: { parameters: ["i32"], results: ["f64"] } },
    { name: "g", kind: "global", type: { mutable: true, value: "i64" } },
    { name: "e", kind: "tag", type: { parameters: ["v128"] } },
  ]));
  const table = new WebAssembly.Table(WebAssembly.Module.imports(module)[1].type);
  const { exports } = new WebAssembly.Instance(module, { m: { f: (x) => x / 2, t: table } });
  assert_true(exports.f instanceof WebAssembly.Function);
  assert_equals(exports.f(3), 1.5);
}, "imports and exports");
`;

const MODULE = parseModule(`(module
  (import "m" "f" (func $f (param i32) (result f64)))
  (import "m" "t" (table 1 externref))
  (global $g (mut i64) (i64.const 1))
  (tag $e (param v128))
  (export "f" (func $f)) (export "g" (global $g)) (export "e" (tag $e)))`).bytes;

Deno.test("js-types: memories, tables, globals, tags, functions, imports and exports", async () => {
  const worker = new TestWorker(new URL("./js_types_worker.ts", import.meta.url));
  try {
    const outcomes = await worker.ask([`const MODULE = Uint8Array.of(${MODULE});`, OWN]) as { failure?: string }[];
    assert.equal(outcomes.length, 4);
    for (const outcome of outcomes) assert.equal(outcome.failure, undefined, JSON.stringify(outcome));
  } finally {
    worker.terminate();
  }
});

Deno.test("js-types: off by default", () => {
  assert.ok(!("Function" in WebAssembly));
  assert.ok(!("type" in WebAssembly.Memory.prototype));
  const memory = new WebAssembly.Memory({ initial: 1, minimum: 2 } as { initial: number });
  assert.equal(memory.buffer.byteLength, 65536);
});
