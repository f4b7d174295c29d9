/** Misuse of the API by untyped programs is reported where it happens, not ignored. */
import assert from "node:assert/strict";
import { type EngineOptions, NewEngine } from "@waft/engine";

const TEXT = `(module (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))`;

Deno.test("compile() takes any buffer type or text, and refuses other values", () => {
  const engine = NewEngine();
  const bytes = new Uint8Array(engine.parse(TEXT).bytes);
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
  shared.set(bytes);
  for (const source of [bytes, bytes.buffer, new DataView(bytes.buffer), shared, shared.buffer, TEXT]) {
    assert.equal(engine.compile(source as Uint8Array).instantiate().call({}, "add", 2, 3), 5);
  }
  const rows: [unknown, RegExp][] = [
    [undefined, /not undefined$/],
    [null, /not null$/],
    [5, /not number$/],
    [{}, /not object$/],
    [Promise.resolve(bytes), /not a promise: await it$/],
  ];
  for (const [source, message] of rows) {
    assert.throws(() => engine.compile(source as string), { name: "TypeError", message });
  }
});

Deno.test("unknown options are refused", () => {
  const rows: [object, RegExp][] = [
    [{ feature: {} }, /^Unknown option "feature"; did you mean "features"\?$/],
    [{ features: { simdd: true } }, /^Unknown feature "simdd"; did you mean "simd"\?$/],
    [{ features: { simd: "off" } }, /^The feature simd must be true or false, not "off"$/],
    [{ optimizations: { inlining: true } }, /^Unknown optimization "inlining"/],
    [{ optimizations: { inline: 1 } }, /^The optimization inline must be true or false, not 1$/],
    [{ bounds: "none" }, /^The option bounds must be guard, explicit or auto, not none$/],
    [{ limits: { maxMemory: 1 } }, /^Unknown limit "maxMemory"$/],
  ];
  for (const [options, message] of rows) {
    assert.throws(() => NewEngine(options as EngineOptions), { name: "TypeError", message });
  }
  NewEngine({ features: { simd: undefined }, bounds: undefined } as unknown as EngineOptions);
});

Deno.test("a call without a context reports the missing context", () => {
  const instance = NewEngine().compile(TEXT).instantiate();
  const call = instance.call.bind(instance) as (...args: unknown[]) => unknown;
  assert.throws(() => call("add", 1, 2), /must be a context, such as \{\}, not "add"$/);
});
