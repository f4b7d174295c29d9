/**
 * Values of components in messages: random types and values come back the same; random and damaged bytes are values of
 * their type, or errors of the protocol.
 */
import assert from "node:assert/strict";
import { ProtocolError } from "../../engine/runner/protocol.ts";
import { PayloadReader, PayloadWriter } from "../../engine/runner/values.ts";
import { type HandleTable, ValueCodec } from "../../component/runner/values.ts";
import type { ValType } from "../../component/model/types.ts";
import { randomSource, randomType, randomValue } from "../component/random_values.ts";

const none = () => {
  throw new Error("the types have no handles");
};
const HANDLES: HandleTable = { nameOf: none, objectOf: none, send: none, receive: none };
const CODEC = new ValueCodec(HANDLES, true);

function bytesOf(type: ValType, value: unknown): Uint8Array {
  const writer = new PayloadWriter().begin(0);
  CODEC.write(writer, type, value);
  return writer.written.slice();
}

Deno.test("random values come back the same", () => {
  const random = randomSource(38);
  for (let k = 0; k < 3000; k++) {
    const type = randomType(random, 4);
    const { js: value } = randomValue(random, type);
    const reader = new PayloadReader(bytesOf(type, value));
    assert.deepEqual(CODEC.read(reader, type), value, JSON.stringify(type));
    reader.end();
  }
});

Deno.test("damaged and random bytes are values of their type, or errors of the protocol", () => {
  const random = randomSource(39);
  let refused = 0;
  for (let k = 0; k < 20_000; k++) {
    const type = randomType(random, 3);
    const bytes = k % 2 === 0
      ? bytesOf(type, randomValue(random, type).js)
      : Uint8Array.from({ length: random(40) }, () => random(random(4) === 0 ? 256 : 8));
    for (let n = random(4); n > 0 && bytes.length > 0; n--) bytes[random(bytes.length)] = random(256);
    let value: unknown;
    try {
      value = CODEC.read(new PayloadReader(bytes.subarray(0, bytes.length - (k % 5 === 0 ? 1 : 0))), type);
    } catch (error) {
      assert.ok(error instanceof ProtocolError, String(error));
      refused++;
      continue;
    }
    assert.deepEqual(CODEC.read(new PayloadReader(bytesOf(type, value)), type), value, "it has the form of its type");
  }
  assert.ok(refused > 5000, `${refused} are refused`);
});

Deno.test("a count without its items reserves nothing", () => {
  const type: ValType = { kind: "list", element: { kind: "string" } };
  const bytes = Uint8Array.of(2, 255, 255, 255, 255, 0, 8, 0, 0, 0, 0);
  assert.throws(() => CODEC.read(new PayloadReader(bytes), type), ProtocolError);
});
