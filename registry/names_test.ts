/**
 * Ids in addresses, owners' prefixes, skeletons, and networks of clients.
 */
import assert from "node:assert/strict";
import { networkOf, rateAddress } from "./addresses.ts";
import { decodedHost, idOfSegment, isBelow, isPrefix, prefixesOf, segmentOfId, skeletonOf } from "./names.ts";

Deno.test("idOfSegment() takes ids with slashes or colons and nothing else", () => {
  const cases: readonly (readonly [string, string | undefined])[] = [
    ["github.com:acme:kv", "github.com/acme/kv"],
    ["github.com/acme/kv", "github.com/acme/kv"],
    ["github.com", undefined],
    ["github.com:", undefined],
    ["acme:kv", undefined],
    ["github.com:acme:..", undefined],
    ["github.com:acme:%2e", undefined],
    ["github.com:acme:kv\n", undefined],
    [`a.b:${"c".repeat(296)}`, `a.b/${"c".repeat(296)}`],
    [`a.b:${"c".repeat(297)}`, undefined],
  ];
  for (const [segment, id] of cases) assert.equal(idOfSegment(segment), id, segment);
  assert.equal(idOfSegment(segmentOfId("git.example.org/a/b~c")), "git.example.org/a/b~c");
});

Deno.test("skeletonOf() is the same for ids that eyes confuse", () => {
  for (
    const [a, b] of [
      ["github.com/acme/kv", "GitHub.com/ACME/KV"],
      ["github.com/acme/kv-store", "github.com/acme/kv_store"],
      ["github.com/acme/l0g", "github.com/acme/iog"],
      ["github.com/acme/1ist", "github.com/acme/list"],
      ["github.com/acrne/kv", "github.com/acme/kv"],
      ["github.com/vvasm/x", "github.com/wasm/x"],
    ] as const
  ) assert.equal(skeletonOf(a), skeletonOf(b), `${a} ${b}`);
  assert.notEqual(skeletonOf("github.com/acme/kv"), skeletonOf("github.com/acme/kw"));
  assert.notEqual(skeletonOf("github.com/ac/mekv"), skeletonOf("github.com/acme/kv"));
});

Deno.test("prefixes cover ids at segment borders only, whatever the case", () => {
  assert.deepEqual(prefixesOf("GitHub.com/Acme/kv"), ["github.com/acme/kv", "github.com/acme", "github.com"]);
  assert.equal(isBelow("github.com/Acme/kv", "github.com/acme"), true);
  assert.equal(isBelow("github.com/acmeother/kv", "github.com/acme"), false);
  assert.equal(isBelow("github.com/acme", "github.com/acme/kv"), false);
  assert.equal(isBelow("*", "github.com/acme"), false);
  for (const good of ["github.com", "github.com/acme"]) assert.equal(isPrefix(good), true, good);
  for (const bad of ["com", "GitHub.com", "github.com/", "*", "", "github.com/a b"]) {
    assert.equal(isPrefix(bad), false, bad);
  }
  assert.match(decodedHost("xn--gthub-n4a.com/a/b")!, /^g[^a-z]thub\.com$/u);
  assert.equal(decodedHost("github.com/a/b"), undefined);
});

Deno.test("addresses: IPv4 and IPv6 are cut where networks are", () => {
  const cases: readonly (readonly [string, string, string])[] = [
    ["192.0.2.77", "192.0.2.77", "192.0.2"],
    ["::ffff:192.0.2.77", "192.0.2.77", "192.0.2"],
    ["::FFFF:c000:24d", "192.0.2.77", "192.0.2"],
    ["0:0:0:0:0:ffff:192.0.2.77", "192.0.2.77", "192.0.2"],
    ["0000:0:0:0::ffff:192.0.2.77", "192.0.2.77", "192.0.2"],
    ["::192.0.2.77", "0:0:0:0", "0:0:0"],
    ["64:ff9b::192.0.2.77", "64:ff9b:0:0", "64:ff9b:0"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2", "2001:db8:1"],
    ["2001:0db8::6", "2001:db8:0:0", "2001:db8:0"],
    ["::1", "0:0:0:0", "0:0:0"],
    ["fe80::1%eth0", "fe80:0:0:0", "fe80:0:0"],
    ["nonsense", "unknown", "unknown"],
    ["", "unknown", "unknown"],
  ];
  for (const [address, rate, network] of cases) {
    assert.equal(rateAddress(address), rate, address);
    assert.equal(networkOf(address), network, address);
  }
});
