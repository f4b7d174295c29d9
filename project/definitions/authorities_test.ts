/** Scopes as text: each word is one item, whatever characters it has. */
import assert from "node:assert/strict";
import { walkSchema } from "../base/schema_walk.ts";
import { describeScope, scopeSchema } from "./authorities.ts";

Deno.test("scopes as text: plain words as they are, all others quoted, no run of blanks", () => {
  for (
    const [scope, text] of [
      [{}, ""],
      [{ roots: { "/store": "./data", "/": "../x" } }, "/=../x /store=./data"],
      [{ roots: { "/c": "C:\\Users\\ada" } }, "/c=C:\\Users\\ada"],
      [{ hosts: ["api.example:443", "[::1]:80"] }, "api.example:443 [::1]:80"],
      [{ namespaces: ["github.com/acme/kv@1", "wasi:io/poll@0.2.0"] }, "github.com/acme/kv@1 wasi:io/poll@0.2.0"],
      [{ resolutionNs: 1000 }, "resolutionNs=1000"],
      [
        { exports: ["a b", "c=d", 'e"f', "größe", "", "g,h", "i;j", "(k)"] },
        '"a b" "c=d" "e\\"f" "größe" "" "g,h" "i;j" "(k)"',
      ],
      [
        { exports: ["a   b", "a\u00a0b", "a\u3000\u3000b", "a\tb"] },
        '"a \\u0020\\u0020b" "a\\u00a0b" "a\\u3000\\u3000b" "a\\tb"',
      ],
    ] as const
  ) {
    assert.equal(describeScope(JSON.parse(JSON.stringify(scope))), text);
    // Quoted words are JSON.
    for (const word of text.match(/"(?:[^"\\]|\\.)*"/g) ?? []) assert.equal(typeof JSON.parse(word), "string");
  }
});

Deno.test("hosts: names, addresses with a port, and nothing that a resolver reads as another address", () => {
  const faults = (host: string) => walkSchema({ hosts: [host] }, scopeSchema("hosts", "grant")).map((f) => f.message);
  for (
    const host of [
      "api.example:443",
      "localhost:80",
      "127.0.0.1:80",
      "[::1]:80",
      "a.3com:1",
      "3com.example.:1",
      "x-1:1",
    ]
  ) {
    assert.deepEqual(faults(host), [], host);
  }
  for (
    const host of [
      "2130706433:80",
      "127.1:80",
      "0x7f.1:80",
      "0x7f000001:80",
      "a.0x1.:80",
      "1.2.3.4.5:80",
      "*:80",
      "a:",
      "a",
    ]
  ) {
    assert.match(faults(host).join(), /is not a host with a port/, host);
  }
});
