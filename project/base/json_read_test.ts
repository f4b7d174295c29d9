/**
 * Strict JSON: agrees with JSON.parse on validity, records the position of every key and value, and refuses large
 * hostile files in bounded time.
 */
import assert from "node:assert/strict";
import { checkLockfile } from "../lockfile/lockfile.ts";
import { checkManifest } from "../manifest/manifest.ts";
import { type JsonReading, readJson } from "./json_read.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
function read(text: string): JsonReading {
  return readJson(encode(text), { file: "x.json", codes: "x", maxBytes: 8 << 20 });
}

Deno.test("json: agrees with JSON.parse on generated texts", () => {
  let seed = 88172645;
  const random = (n: number): number => {
    seed ^= seed << 13;
    seed ^= seed >>> 17;
    seed ^= seed << 5;
    return (seed >>> 0) % n;
  };
  const pieces = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"a"',
    '"b"',
    "1",
    "-0",
    "1.5e3",
    "01",
    "true",
    "null",
    "nul",
    " ",
    "\n",
    "\t",
    '"\\u00e9"',
    '"\\x"',
    "'",
    "//",
    "\u00a0",
    "0x1",
    "+1",
    ".5",
    "1.",
    '"\u0001"',
  ];
  let accepted = 0;
  for (let i = 0; i < 20_000; i++) {
    let text = "";
    for (let n = 1 + random(9); n > 0; n--) text += pieces[random(pieces.length)];
    let expected: unknown;
    let valid = true;
    try {
      expected = JSON.parse(text);
    } catch {
      valid = false;
    }
    const reading = read(text);
    assert.equal(reading.ok, valid, JSON.stringify(text));
    if (reading.ok) {
      accepted++;
      assert.equal(JSON.stringify(reading.document.value), JSON.stringify(expected));
    }
  }
  assert.ok(accepted > 500, String(accepted));
});

Deno.test("json: places of keys, values, and of missing members", () => {
  const reading = read('{\n  "a": [1, {"b/c": true}],\n  "~": "x"\n}');
  assert.ok(reading.ok);
  const { document } = reading;
  const at = (pointer: string, part?: "key" | "value"): string => {
    const { line, column } = document.place(pointer, part);
    return `${line}:${column}`;
  };
  assert.deepEqual([at(""), at("/a", "key"), at("/a"), at("/a/0"), at("/a/1/b~1c", "key"), at("/a/1/b~1c")], [
    "1:1",
    "2:3",
    "2:8",
    "2:9",
    "2:13",
    "2:20",
  ]);
  assert.deepEqual([at("/~0"), at("/none"), at("/a/1/none/deeper"), at("/__proto__")], ["3:8", "1:1", "2:12", "1:1"]);
});

Deno.test("json: hostile files with hundreds of thousands of members are refused in bounded time", async () => {
  const long = "k".repeat(999);
  const nested = (inner: string): string => `{"${long}":`.repeat(60) + inner + "}".repeat(60);
  const many = (n: number, item: (i: number) => string): string =>
    Array.from({ length: n }, (_, i) => item(i)).join(",");
  const start = performance.now();
  const texts = [
    nested(`[${many(300_000, () => "1")}]`),
    nested(`{${many(60_000, (i) => `"${i}":1`)}}`),
    `{${many(100_000, (i) => `"a":${i % 10}`)}}`,
    `{"plugins":{${many(20_000, (i) => `"${i}":{}`)}}}`,
    `[${many(200_000, () => "[]")}]`,
  ];
  for (const text of texts) {
    const { diagnostics, lockfile } = checkLockfile(encode(text));
    assert.equal(lockfile, undefined);
    assert.ok(diagnostics.length >= 1 && diagnostics.length <= 1000);
  }
  const manifest = `{${many(15_000, (i) => `"x${i}":1`)}}`;
  const { diagnostics } = await checkManifest(encode(manifest));
  assert.ok(diagnostics.length >= 1 && diagnostics.length <= 200);
  assert.ok(performance.now() - start < 60_000, `${performance.now() - start} ms`);
});
