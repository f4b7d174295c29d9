/** The release index: trusted and untrusted indexes, and the message of each refusal. */
import assert from "node:assert/strict";
import { createPrivateKey, generateKeyPairSync, sign } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ProjectError } from "../base/diagnostic.ts";
import {
  artifactFor,
  parseReleaseIndex,
  parseReleaseKeys,
  type ReleaseIndex,
  requireFresh,
  requireSigned,
  versionOfTarget,
} from "./release_index.ts";
import { trustedReleaseKeys } from "./release_keys.ts";
import { keyIdOf } from "../packages/release_record.ts";

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

function keyPair(): { pem: string; publicKey: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const x = (publicKey.export({ format: "jwk" }) as { x: string }).x;
  return {
    pem: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    publicKey: Buffer.from(x, "base64url").toString("base64"),
  };
}

const A = keyPair();
const B = keyPair();
const STRANGER = keyPair();

function signatures(bytes: Uint8Array, ...keys: { pem: string; publicKey: string }[]): Uint8Array {
  return utf8(JSON.stringify({
    signatures: keys.map(({ pem, publicKey }) => ({
      keyId: keyIdOf(publicKey),
      value: sign(null, bytes, createPrivateKey(pem)).toString("base64"),
    })),
  }));
}

const INDEX = {
  schemaVersion: 1,
  sequence: 7,
  expires: "2030-01-01T00:00:00Z",
  channels: { nightly: "0.2.0-nightly.20260901000000.g1a2b3c4", latest: "0.1.0" },
  releases: Object.fromEntries(["0.1.0", "0.2.0-nightly.20260901000000.g1a2b3c4", "0.0.9"].map((version) => [version, {
    publishedAt: "2026-09-01T00:00:00Z",
    commit: "a".repeat(40),
    minDeno: "2.9.0",
    ...(version === "0.0.9" ? { yanked: "broke memories" } : {}),
    artifacts: [{
      platform: "linux/amd64",
      libc: "gnu",
      kind: "bundle",
      url: `releases/${version}/waft-${version}-linux-amd64.tar.gz`,
      size: 10,
      sha256: "0".repeat(64),
    }],
  }])),
};

function code(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof ProjectError, String(error));
    return error.diagnostics[0].code;
  }
  return "nothing thrown";
}

Deno.test("release index: signatures by a threshold of trusted keys, over the very bytes", () => {
  const bytes = utf8(JSON.stringify(INDEX));
  const one = { threshold: 1, keys: [A.publicKey, B.publicKey] };
  const two = { threshold: 2, keys: [A.publicKey, B.publicKey] };
  requireSigned(bytes, signatures(bytes, A), one, "i");
  requireSigned(bytes, signatures(bytes, STRANGER, B), one, "i");
  requireSigned(bytes, signatures(bytes, A, B), two, "i");
  const refused = (signed: Uint8Array, keys: typeof one): string => code(() => requireSigned(bytes, signed, keys, "i"));
  assert.equal(refused(signatures(bytes), one), "signature.index");
  assert.equal(refused(signatures(bytes, STRANGER), one), "signature.index");
  assert.equal(refused(signatures(bytes, A, A), two), "signature.index", "one key counts once");
  assert.equal(refused(signatures(utf8("other"), A), one), "signature.index");
  const stolenName = JSON.parse(new TextDecoder().decode(signatures(bytes, STRANGER))) as {
    signatures: { keyId: string }[];
  };
  stolenName.signatures[0].keyId = keyIdOf(A.publicKey)!;
  assert.equal(refused(utf8(JSON.stringify(stolenName)), one), "signature.index");
  assert.match(refused(utf8("<html>"), one), /^signature\./);
  assert.match(refused(utf8(""), one), /^signature\./);
  assert.match(refused(utf8('{"signatures":[{"keyId":"x","value":"y"}]}'), one), /^signature\./);
});

Deno.test("release index: hostile contents are refused", () => {
  const variants: [string, (index: typeof INDEX) => void][] = [
    ["another site", (i) => i.releases["0.1.0"].artifacts[0].url = "https://evil.example/x.tar.gz"],
    ["traversal", (i) => i.releases["0.1.0"].artifacts[0].url = "releases/../x.tar.gz"],
    ["another release's file", (i) => i.releases["0.1.0"].artifacts[0].url = "releases/0.0.9/x.tar.gz"],
    ["size 0", (i) => i.releases["0.1.0"].artifacts[0].size = 0],
    ["huge size", (i) => i.releases["0.1.0"].artifacts[0].size = 1e15],
    ["bad hash", (i) => i.releases["0.1.0"].artifacts[0].sha256 = "g".repeat(64)],
    ["bad version", (i) => i.releases["../../x"] = i.releases["0.1.0"]],
    ["version with v", (i) => i.releases["v1.0.0"] = i.releases["0.1.0"]],
    ["dangling channel", (i) => i.channels.latest = "9.9.9"],
    ["fractional sequence", (i) => i.sequence = 1.5],
    ["bad time", (i) => i.expires = "tomorrow"],
    ["unknown key", (i) => (i as unknown as { more: number }).more = 1],
    ["schema 2", (i) => i.schemaVersion = 2],
  ];
  parseReleaseIndex(utf8(JSON.stringify(INDEX)), "i");
  for (const [name, change] of variants) {
    const copy = structuredClone(INDEX);
    change(copy);
    assert.match(code(() => parseReleaseIndex(utf8(JSON.stringify(copy)), "i")), /^release\.invalid/, name);
  }
  const text = JSON.stringify(INDEX);
  for (const bad of ["", "<!doctype html>", "[]", "null", text.slice(0, -1), text.replace("{", '{"sequence":9,')]) {
    assert.match(code(() => parseReleaseIndex(utf8(bad), "i")), /^release\.invalid/, bad.slice(0, 20));
  }
});

Deno.test("release index: never older than the last one, never expired", () => {
  const index = parseReleaseIndex(utf8(JSON.stringify(INDEX)), "i");
  const before = Date.parse("2029-12-31T23:59:59Z");
  requireFresh(index, before, undefined, "i");
  requireFresh(index, before, 7, "i");
  assert.equal(code(() => requireFresh(index, before, 8, "i")), "release.rollback");
  assert.equal(code(() => requireFresh(index, Date.parse("2030-01-01T00:00:00Z"), 7, "i")), "release.expired");
});

Deno.test("release index: targets and artifacts", () => {
  const index: ReleaseIndex = parseReleaseIndex(utf8(JSON.stringify(INDEX)), "i");
  assert.equal(versionOfTarget(index, "nightly"), INDEX.channels.nightly);
  assert.equal(versionOfTarget(index, "official"), "0.1.0");
  assert.equal(versionOfTarget(index, "0.1.0"), "0.1.0");
  for (const unknown of ["canary", "9.9.9", "0.0.9", "__proto__", "toString", ""]) {
    assert.equal(code(() => versionOfTarget(index, unknown)), "release.unknown", unknown);
  }
  assert.equal(artifactFor(index, "0.1.0", "linux/amd64", "gnu").size, 10);
  assert.equal(code(() => artifactFor(index, "0.1.0", "linux/amd64", "musl")), "release.unknown");
  assert.equal(code(() => artifactFor(index, "0.1.0", "darwin/arm64")), "release.unknown");
});

Deno.test("release keys: a file is strict", () => {
  const keys = { threshold: 1, keys: [A.publicKey] };
  assert.deepEqual({ ...parseReleaseKeys(utf8(JSON.stringify(keys)), "k") }, keys);
  for (const bad of [{ ...keys, threshold: 2 }, { ...keys, threshold: 0 }, { ...keys, keys: [] }, { keys: ["x"] }]) {
    assert.match(code(() => parseReleaseKeys(utf8(JSON.stringify(bad)), "k")), /^signature\./);
  }
});

Deno.test("release keys: of a file, and a word where there are none", () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-keys-"));
  try {
    const file = join(folder, "keys.json");
    const trusted = () => trustedReleaseKeys({ WAFT_RELEASE_KEYS: file });
    assert.throws(trusted, /signature\.keys: this build of waft has no release keys/);
    writeFileSync(file, '{\n  "threshold": 1,\n  "keys": []\n}\n');
    assert.throws(trusted, /has no release keys\n.*built from source: .*WAFT_RELEASE_KEYS/);
    writeFileSync(file, JSON.stringify({ threshold: 1, keys: [A.publicKey] }));
    assert.deepEqual({ ...trusted() }, { threshold: 1, keys: [A.publicKey] });
    writeFileSync(file, JSON.stringify({ threshold: 1, keys: ["x"] }));
    assert.throws(trusted, /signature\.pattern|does not match|signature/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
