/** Messages: data from outside in the shape of an envelope is delivered unchanged, and genuine envelopes are opened. */
import assert from "node:assert/strict";
import { fromMessage, toMessage } from "./messages.ts";
import { WebAssembly } from "./mod.ts";

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

Deno.test("a genuine envelope gives its value", () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 2, shared: true });
  new Uint8Array(memory.buffer)[3] = 9;
  const { list: [clone] } = fromMessage(structuredClone(toMessage({ list: [memory] }))) as { list: [typeof memory] };
  assert.ok(clone instanceof WebAssembly.Memory);
  assert.equal(new Uint8Array(clone.buffer)[3], 9);
});
