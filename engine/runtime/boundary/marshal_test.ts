/** The sources of functions at the boundary: one for all function types that differ in their references alone. */
import assert from "node:assert/strict";
import { NewEngine } from "../../engine.ts";

const TYPES = 60;

Deno.test("functions with references of other types share a source, and convert by their own types", () => {
  const indices = Array.from({ length: TYPES }, (_, k) => k);
  const text = `(module
    ${indices.map((k) => `(type $s${k} (struct (field i32) ${"(field i64) ".repeat(k)}))`).join("\n")}
    ${indices.map((k) => `(func (export "new${k}") (result (ref $s${k})) (struct.new_default $s${k}))`).join("\n")}
    ${
    indices.map((k) => `(func (export "take${k}") (param (ref null $s${k})) (result i32) (ref.is_null (local.get 0)))`)
      .join("\n")
  })`;
  let compiled = 0;
  const { Function } = globalThis;
  // Counts the functions that are made of text.
  globalThis.Function = new Proxy(Function, {
    construct: (target, args) => {
      compiled++;
      return Reflect.construct(target, args);
    },
  });
  try {
    const { exports } = NewEngine().compile(text).instantiate({});
    const call = (name: string, ...args: unknown[]) => (exports[name] as (...args: unknown[]) => unknown)(...args);
    for (const k of indices) {
      assert.equal(call(`take${k}`, call(`new${k}`)), 0);
      assert.equal(call(`take${k}`, null), 1);
      assert.throws(() => call(`take${k}`, call(`new${(k + 1) % TYPES}`)), TypeError);
      assert.throws(() => call(`take${k}`, {}), TypeError);
    }
  } finally {
    globalThis.Function = Function;
  }
  assert.ok(compiled <= 8, `${compiled} functions were compiled`);
});
