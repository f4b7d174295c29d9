/**
 * Custom descriptors in the JavaScript interface: the tests of the proposal for prototypes and for the builtin that
 * configures them, and what those leave out.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { WebAssembly } from "@waft/engine/webassembly";
import { NewEngine } from "../../engine/mod.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { hasSuite, suiteFolder, suiteHint, suiteNamed } from "../support/suites.ts";
import { TestWorker } from "../support/test_worker.ts";
import { MODULE_BUILDER } from "./descriptor_module_builder.ts";

const SUITE = suiteNamed("custom-descriptors");
const SCRIPTS = ["prototype.any.js", "configure-all.any.js"];

Deno.test({
  name: `the proposal's tests of prototypes pass${hasSuite(SUITE) ? "" : ` (${suiteHint(SUITE)})`}`,
  ignore: !hasSuite(SUITE),
  async fn() {
    const worker = new TestWorker(new URL("./custom_descriptors_worker.ts", import.meta.url));
    const failures: Record<string, string> = {};
    let passed = 0;
    try {
      for (const name of SCRIPTS) {
        const text = readFileSync(join(suiteFolder(SUITE), "test/js-api/custom-descriptors", name), "utf8");
        for (const outcome of await worker.ask([MODULE_BUILDER, text]) as { name: string; failure?: string }[]) {
          if (outcome.failure === undefined) passed++;
          else failures[`${name}: ${outcome.name}`] = outcome.failure;
        }
      }
    } finally {
      worker.terminate();
    }
    assert.deepEqual(failures, {});
    assert.ok(passed >= 30, `${passed}`);
  },
});

const COUNTER = `(module
  (rec
    (type $counter (sub (descriptor $class) (struct (field $n (mut i32)))))
    (type $class (sub (describes $counter) (struct (field externref)))))
  (func (export "new") (param externref) (result (ref $counter))
    (struct.new_default_desc $counter (struct.new $class (local.get 0))))
  (func (export "nested") (param $depth i32) (param $proto externref) (result (ref $counter))
    (local $made (ref $counter))
    (local.set $made (struct.new_default_desc $counter (struct.new $class (local.get $proto))))
    (loop $next
      (local.set $made (struct.new_default_desc $counter
        (struct.new $class (extern.convert_any (local.get $made)))))
      (br_if $next (local.tee $depth (i32.sub (local.get $depth) (i32.const 1)))))
    (local.get $made))
  (func (export "next") (param (ref $counter)) (result i32)
    (struct.set $counter $n (local.get 0) (i32.add (struct.get $counter $n (local.get 0)) (i32.const 1)))
    (struct.get $counter $n (local.get 0))))`;

type Make = (prototype: unknown) => Record<string, unknown>;

Deno.test("objects inherit methods and accessors, and stay opaque", () => {
  const { exports } = NewEngine({ features: { "custom-descriptors": true } }).compile(COUNTER).instantiate();
  const make = exports["new"] as Make, next = exports["next"] as (counter: unknown) => number;
  const seen: unknown[] = [];
  class Counter {
    next(): number {
      return next(this);
    }
    set value(value: unknown) {
      seen.push(value);
    }
  }
  const counter = make(Counter.prototype) as unknown as Counter;
  assert.ok(counter instanceof Counter);
  assert.deepEqual([counter.next(), counter.next()], [1, 2]);
  counter.value = 7;
  assert.deepEqual(seen, [7]);
  const object = counter as unknown as Record<string, unknown>;
  assert.throws(() => object["other"] = 1, TypeError);
  assert.throws(() => delete object["next"], TypeError);
  assert.throws(() => Object.defineProperty(object, "x", { value: 1 }), TypeError);
  assert.throws(() => Object.setPrototypeOf(object, null), TypeError);
  assert.deepEqual(Object.keys(object), []);
  assert.equal(Object.isExtensible(object), false);
  assert.equal(Object.getPrototypeOf(make(5)), null);
});

Deno.test("a long chain of prototypes of the module is made without recursion", () => {
  const { exports } = NewEngine({ features: { "custom-descriptors": true } }).compile(COUNTER).instantiate();
  const nested = exports["nested"] as (depth: number, prototype: unknown) => object;
  const root = {};
  let object: object | null = nested(20_000, root);
  let depth = 0;
  for (; object !== null && object !== root; depth++) object = Object.getPrototypeOf(object);
  assert.deepEqual([object, depth], [root, 20_001]);
});

Deno.test("without the feature, the option provides nothing", () => {
  const bytes = parseModule(`(module (import "wasm:js-prototypes" "configureAll" (func)))`).bytes;
  const Module = WebAssembly.Module as unknown as new (bytes: Uint8Array, options: object) => WebAssembly.Module;
  const module = new Module(bytes, { builtins: ["js-prototypes"] });
  assert.equal(WebAssembly.Module.imports(module).length, 1);
});
