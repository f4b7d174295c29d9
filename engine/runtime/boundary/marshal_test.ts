/** The sources of functions at the boundary: one for all function types that differ in their references alone. */
import assert from "node:assert/strict";
import { NewEngine } from "../../api/engine.ts";

const TYPES = 60;

/** Runs `action`; returns its value and the number of functions that it made of text. */
function countingFunctions<T>(action: () => T): { value: T; compiled: number } {
  let compiled = 0;
  const { Function } = globalThis;
  globalThis.Function = new Proxy(Function, {
    construct: (target, args) => {
      compiled++;
      return Reflect.construct(target, args);
    },
  });
  try {
    return { value: action(), compiled };
  } finally {
    globalThis.Function = Function;
  }
}

Deno.test("functions with references of other types share a source, and convert by their own types", () => {
  const indices = Array.from({ length: TYPES }, (_, k) => k);
  const text = `(module
    ${indices.map((k) => `(type $s${k} (struct (field i32) ${"(field i64) ".repeat(k)}))`).join("\n")}
    ${indices.map((k) => `(func (export "new${k}") (result (ref $s${k})) (struct.new_default $s${k}))`).join("\n")}
    ${
    indices.map((k) => `(func (export "take${k}") (param (ref null $s${k})) (result i32) (ref.is_null (local.get 0)))`)
      .join("\n")
  })`;
  const { compiled } = countingFunctions(() => {
    const { exports } = NewEngine().compile(text).instantiate({});
    const call = (name: string, ...args: unknown[]) => (exports[name] as (...args: unknown[]) => unknown)(...args);
    for (const k of indices) {
      assert.equal(call(`take${k}`, call(`new${k}`)), 0);
      assert.equal(call(`take${k}`, null), 1);
      assert.throws(() => call(`take${k}`, call(`new${(k + 1) % TYPES}`)), TypeError);
      assert.throws(() => call(`take${k}`, {}), TypeError);
    }
  });
  assert.ok(compiled <= 8, `${compiled} functions were compiled`);
});

Deno.test("the sources for an instance's exports, and for its host functions, are compiled together", () => {
  // Signatures that no other test has, in both directions.
  const types = Array.from({ length: 6 }, (_, k) => `(param f32 f64 f32 ${"i64 i32 ".repeat(k + 3)}) (result i32)`);
  const text = `(module
    ${types.map((type, k) => `(import "host" "h${k}" (func ${type}))`).join("\n")}
    ${
    types.map((type, k) =>
      `(func (export "e${k}") ${type}
      ${Array.from({ length: 3 + 2 * (k + 3) }, (_, p) => `(local.get ${p})`).join(" ")} (call ${k}))`
    ).join("\n")
  })`;
  const args = (k: number) => [0.5, 1.5, 2.5, ...Array.from({ length: k + 3 }, (_, p) => [BigInt(p), p + 100]).flat()];
  const module = NewEngine().compile(text);
  const host = Object.fromEntries(types.map((_, k) => [`h${k}`, (...values: unknown[]) => {
    assert.deepEqual(values, args(k));
    return k + 7;
  }]));
  const { value: exports, compiled } = countingFunctions(() => module.instantiate({}, { host }).exports);
  assert.equal(compiled, 2);
  types.forEach((_, k) => {
    assert.equal((exports[`e${k}`] as (...values: unknown[]) => unknown)(...args(k)), k + 7);
  });
});
