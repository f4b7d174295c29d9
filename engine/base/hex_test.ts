/**
 * Hexadecimal text, with and without the built-in functions; fingerprints.
 */
import assert from "node:assert/strict";
import { fingerprint } from "./fingerprint.ts";
import { fromHex, toHex } from "./hex.ts";

Deno.test("bytes become digits and come back, with and without functions of the engine", () => {
  const bytes = Uint8Array.of(0, 1, 0x0f, 0x10, 0x7f, 0x80, 0xff);
  const check = () => {
    assert.equal(toHex(bytes), "00010f107f80ff");
    assert.deepEqual(fromHex("00010f107f80ff"), bytes);
    assert.equal(toHex(fromHex("")), "");
    assert.deepEqual(fromHex("fF"), Uint8Array.of(255));
    for (const text of ["0", "0g", "000x", " 00", "+1", "00\n"]) assert.throws(() => fromHex(text), SyntaxError, text);
  };
  check();
  const own = [[Uint8Array.prototype, "toHex"], [Uint8Array, "fromHex"]] as const;
  const kept = own.map(([object, name]) => Object.getOwnPropertyDescriptor(object, name));
  try {
    for (const [object, name] of own) Reflect.deleteProperty(object, name);
    check();
  } finally {
    own.forEach(([object, name], k) => kept[k] === undefined || Object.defineProperty(object, name, kept[k]));
  }
});

Deno.test("fingerprints differ by every character, the length and the seed", () => {
  const text = "0.1.0-9f2c01ab\nlinux/x64\navx2";
  const all = new Set([fingerprint(text), fingerprint(text, 1), fingerprint(text + " "), fingerprint("")]);
  for (let k = 0; k < text.length; k++) all.add(fingerprint(text.slice(0, k) + "?" + text.slice(k + 1)));
  assert.equal(all.size, text.length + 4);
  assert.equal(fingerprint(text), fingerprint(text));
});
