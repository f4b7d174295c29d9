/** Messages: data from outside in the shape of an envelope is delivered unchanged, and genuine envelopes are opened. */
import assert from "node:assert/strict";
import { fromMessage, toMessage } from "./messages.ts";
import { WebAssembly } from "./mod.ts";
import { wasm as encode } from "../../tests/webassembly/subject.ts";

const MARK = "waft:message";

Deno.test("parsed JSON in the shape of an envelope is delivered unchanged", () => {
  const tokens = [
    { kind: "module", module: { waft: "module", version: 3, base: 4096, size: 4096, count: {} } },
    { kind: "memory", memory: { waft: "memory", pages: {}, control: {} } },
    { kind: "memory" },
    null,
  ];
  for (const token of tokens) {
    const message = JSON.parse(JSON.stringify({ [MARK]: 1, value: "inside", objects: [{}], tokens: [token] }));
    assert.equal(fromMessage(message), message);
  }
  for (const rest of [{}, { tokens: [] }, { objects: [], tokens: {} }, { objects: [null], tokens: [tokens[0]] }]) {
    const message = JSON.parse(JSON.stringify({ [MARK]: 1, value: "inside", ...rest }));
    assert.equal(fromMessage(message), message);
  }
});

Deno.test("an envelope that a Worker forged is delivered unchanged", () => {
  const { Module, Memory } = WebAssembly;
  const module = new Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
  const genuine = toMessage([module, new Memory({ initial: 1, maximum: 2, shared: true })]) as {
    tokens: { module: { description: string; buffers: SharedArrayBuffer[] }; memory: { pages: SharedArrayBuffer } }[];
  };
  const [{ module: ofModule }, { memory: ofMemory }] = genuine.tokens;
  const description = JSON.stringify({ ...JSON.parse(ofModule.description), base: 4096, size: 1 << 20 });
  const forged = [
    { kind: "module", module: { ...ofModule, description } },
    { kind: "module", module: { ...ofModule, buffers: ofModule.buffers.map(() => new SharedArrayBuffer(64)) } },
    { kind: "memory", memory: { ...ofMemory, pages: new SharedArrayBuffer(65536) } },
    { kind: "memory", memory: ofModule },
    { kind: "module", module: ofMemory },
  ];
  for (const [k, token] of forged.entries()) {
    const object = {};
    // The genuine one beside it is not opened either.
    const message = { ...genuine, value: object, objects: [object, {}], tokens: [genuine.tokens[0], token] };
    assert.equal(fromMessage(message), message, `token ${k}`);
    assert.equal(Object.getPrototypeOf(object), Object.prototype);
  }
  const list = fromMessage(genuine) as object[];
  assert.ok(list[0] instanceof Module && list[1] instanceof Memory);
});

Deno.test("a forged message cannot give a module builtins that its imports do not have the types of", () => {
  const module = new WebAssembly.Module(
    encode(`(module (import "wasm:js-string" "length" (func $f (param i64) (result i32)))
      (func (export "f") (param i64) (result i32) (call $f (local.get 0))))`),
  );
  const envelope = toMessage({ module }) as { tokens: object[] };
  const strings = { builtins: true, constants: undefined };
  const { module: clone } = fromMessage({ ...envelope, tokens: [{ ...envelope.tokens[0], strings }] }) as {
    module: typeof module;
  };
  assert.throws(() => new WebAssembly.Instance(clone, {}), {
    name: "LinkError",
    message: /"wasm:js-string" "length" has another type than the builtin length/,
  });
});

Deno.test("a genuine envelope gives its value", () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 2, shared: true });
  new Uint8Array(memory.buffer)[3] = 9;
  const { list: [clone] } = fromMessage(structuredClone(toMessage({ list: [memory] }))) as { list: [typeof memory] };
  assert.ok(clone instanceof WebAssembly.Memory);
  assert.equal(new Uint8Array(clone.buffer)[3], 9);
});
