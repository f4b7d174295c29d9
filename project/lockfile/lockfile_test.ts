/**
 * The strict parse: every code of the lockfile's law is produced, and only it; no single byte can change unnoticed; the
 * writer is deterministic and its output reads back unchanged.
 */
import assert from "node:assert/strict";
import { formatDiagnostic } from "../base/diagnostic.ts";
import { digestBytes, jcs } from "../base/integrity.ts";
import type { JsonObject } from "../base/json_read.ts";
import type { Lockfile } from "./lock_schema.ts";
import { type LockDraft, sealLockfile, writeLockfile } from "./lock_write.ts";
import { checkLockfile, MAX_LOCK_BYTES, readLockfile } from "./lockfile.ts";
import { sealPackage, sealPlugin } from "./review.ts";
import { CODEC, definition, KV, sampleDraft } from "../../tests/project/sample_plugins.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const REQUIREMENTS = { [KV]: "^1.2.0" };

function sampleText(): string {
  return new TextDecoder().decode(writeLockfile(sealLockfile(sampleDraft())));
}
function codesOf(bytes: Uint8Array, requirements: { readonly [id: string]: string } = REQUIREMENTS): string[] {
  const { diagnostics, lockfile } = checkLockfile(bytes, { requirements });
  assert.equal(lockfile === undefined, diagnostics.length > 0);
  for (const d of diagnostics) {
    assert.match(
      formatDiagnostic(d),
      d.line === undefined ? /^waft-lock.json: lock\./ : /^waft-lock.json:\d+:\d+: lock\./,
    );
  }
  return diagnostics.map((d) => d.code);
}
/** The codes after a change of the draft; digests, reviews and seals are then made right. */
function afterDraft(change: (draft: LockDraft) => void): string[] {
  const draft = sampleDraft();
  change(draft);
  return codesOf(writeLockfile(sealLockfile(draft)), draft.requirements);
}
/** The codes after a change of the finished lockfile. */
function afterChange(change: (lock: Lockfile & JsonObject) => void, reseal = false): string[] {
  const lock = JSON.parse(sampleText()) as Lockfile & JsonObject;
  change(lock);
  if (reseal) {
    for (const id of Object.keys(lock.packages)) lock.packages[id].seal = sealPackage(id, lock.packages[id]);
    for (const id of Object.keys(lock.plugins)) lock.plugins[id].seal = sealPlugin(id, lock.plugins[id]);
  }
  return codesOf(encode(JSON.stringify(lock)));
}
function test(name: string, got: () => string[], ...expected: string[]): void {
  Deno.test(`lockfile: ${name}`, () => assert.deepEqual(got(), expected));
}
const OTHER_DIGEST = digestBytes(encode("other"));

Deno.test("lockfile: the sample is accepted, and written as it was read", () => {
  const bytes = encode(sampleText());
  const lock = readLockfile(bytes, { requirements: REQUIREMENTS });
  assert.deepEqual(writeLockfile(lock), bytes);
  assert.equal(jcs(lock), jcs(JSON.parse(sampleText())));
});

Deno.test("lockfile: same content in any order gives the same bytes", () => {
  const turn = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(turn);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).reverse().map(([k, v]) => [k, turn(v)]));
  };
  const draft = turn(sampleDraft()) as LockDraft;
  draft.plugins[KV].definition.authorities.reverse();
  assert.equal(new TextDecoder().decode(writeLockfile(sealLockfile(draft))), sampleText());
});

Deno.test("lockfile: white space and key order are not judged", () => {
  const lock = JSON.parse(sampleText()) as { [key: string]: unknown };
  const turned = JSON.stringify(Object.fromEntries(Object.entries(lock).reverse()), null, 7).replaceAll("\n", "\r\n");
  assert.deepEqual(codesOf(encode(turned)), []);
});

// Reading.
test("too large", () => codesOf(encode(sampleText() + " ".repeat(MAX_LOCK_BYTES))), "lock.too-large");
test("byte order mark", () => codesOf(encode("\ufeff" + sampleText())), "lock.encoding");
test("invalid UTF-8", () => codesOf(Uint8Array.of(...encode(sampleText()), 0xc3)), "lock.encoding");
test("lone surrogate", () => codesOf(encode(sampleText().replace("Dates entries.", "\\udead"))), "lock.encoding");
test("no JSON", () => codesOf(encode(sampleText().slice(0, -3))), "lock.syntax");
test("comment", () => codesOf(encode("// x\n" + sampleText())), "lock.syntax");
test("empty", () => codesOf(encode("")), "lock.syntax");
test("too deep", () => codesOf(encode('{"a":'.repeat(65) + "1" + "}".repeat(65))), "lock.syntax");
test(
  "10,000 levels in configSchema",
  () => codesOf(encode(sampleText().replace('"default": 10', `"default": ${"[".repeat(10_000)}${"]".repeat(10_000)}`))),
  "lock.syntax",
);
test(
  "conflict markers",
  () =>
    codesOf(
      encode(
        sampleText().replace('    "github.com/acme/kv": "^1.2.0"', '<<<<<<< ours\n "x"\n=======\n "y"\n>>>>>>> theirs'),
      ),
    ),
  "lock.conflict-markers",
);

// Keys.
test(
  "duplicate key",
  () => codesOf(encode(sampleText().replace('"lockVersion": 1,', '"lockVersion": 1, "lockVersion": 1,'))),
  "lock.duplicate-key",
);
test(
  "duplicate key in config",
  () => codesOf(encode(sampleText().replace('"maxEntries": 1000', '"maxEntries": 1000, "maxEntries": 1000'))),
  "lock.duplicate-key",
);
test("unknown key at the top", () => afterChange((l) => l.url = "x"), "lock.unknown-key");
test(
  "unknown key in a package",
  () => afterChange((l) => Object.assign(l.packages[KV], { url: "x" })),
  "lock.unknown-key",
);
test(
  "unknown key in a definition",
  () => afterChange((l) => Object.assign(l.plugins[KV].definition, { hooks: [] })),
  "lock.unknown-key",
);
test(
  "__proto__ is a key like any other",
  () => codesOf(encode(sampleText().replace('"lockVersion": 1,', '"lockVersion": 1, "__proto__": {},'))),
  "lock.unknown-key",
);
test(
  "unknown scope key",
  () => afterDraft((d) => d.plugins[KV].definition.authorities[0].scope = { all: true }),
  "lock.unknown-key",
);
test(
  "path in a registry source",
  () => afterChange((l) => Object.assign(l.packages[KV].source, { path: "./x" }), true),
  "lock.unknown-key",
);

// Version.
test(
  "newer version, with keys that we do not know",
  () => afterChange((l) => Object.assign(l, { lockVersion: 2, more: 1 })),
  "lock.version",
);
test("version 0", () => afterChange((l) => Object.assign(l, { lockVersion: 0 })), "lock.version");

// Types and values.
for (
  const [name, change, code] of [
    ["lockVersion is text", (l) => l.lockVersion = "1", "lock.type"],
    ["plugins is an array", (l) => l.plugins = [], "lock.type"],
    ["requirements is missing", (l) => delete l.requirements, "lock.value"],
    ["another schema", (l) => l.$schema = "https://waft.sh/schemas/v2/lock.schema.json", "lock.value"],
  ] as readonly [string, (l: JsonObject) => void, string][]
) {
  test(name, () => afterChange((l) => change(l)), code);
}
test("short plugin id", () => afterChange((l) => l.requirements = { "acme/kv": "^1.0.0" }), "lock.value");
test(
  "version with v",
  () => afterDraft((d) => d.packages[KV].version = d.plugins[KV].definition.version = "v1.2.3"),
  "lock.value",
  "lock.value",
);
test(
  "version with a leading zero",
  () => afterDraft((d) => d.packages[CODEC].version = d.plugins[CODEC].definition.version = "2.00.1"),
  "lock.value",
  "lock.value",
);
test(
  "digest in capitals",
  () => afterChange((l) => Object.assign(l.packages[KV].artifact, { digest: "sha256:" + "A".repeat(64) })),
  "lock.value",
);
test("size 0", () => afterChange((l) => l.packages[KV].artifact.size = 0), "lock.value");
test("size 1.5", () => afterChange((l) => l.packages[KV].artifact.size = 1.5), "lock.type");
test(
  "path leaves the project",
  () => afterDraft((d) => d.packages[CODEC].source = { kind: "path", path: "./../x" }),
  "lock.value",
);
test("entry leaves the package", () => afterDraft((d) => d.plugins[KV].entry.path = "../kv.wasm"), "lock.value");
test(
  "registry source without registry",
  () => afterChange((l) => Object.assign(l.packages[KV], { source: { kind: "registry" } }), true),
  "lock.value",
);
test("host kind", () => afterChange((l) => Object.assign(l.plugins[KV].definition, { kind: "host" })), "lock.value");
test(
  "pattern in configSchema",
  () =>
    afterDraft((d) =>
      d.plugins[CODEC].definition.configSchema = {
        type: "object",
        additionalProperties: false,
        properties: { a: { type: "string", pattern: "(a+)+$" } },
      }
    ),
  "lock.value",
);

// References.
test("missing package", () => afterDraft((d) => delete d.packages[CODEC]), "lock.reference");
test(
  "missing plugin",
  () => afterDraft((d) => (delete d.plugins[CODEC], delete d.packages[CODEC])),
  "lock.reference",
  "lock.reference",
);
test("required but not locked", () => afterDraft((d) => d.requirements["a.b/c"] = "*"), "lock.reference");
test("orphan plugin and its package", () =>
  afterDraft((d) => {
    d.packages["a.b/c"] = {
      version: "1.0.0",
      source: { kind: "path", path: "./c" },
      artifact: { digest: OTHER_DIGEST, size: 1 },
    };
    d.plugins["a.b/c"] = { ...d.plugins[CODEC], package: "a.b/c", definition: definition("a.b/c", "1.0.0") };
  }), "lock.reference");
test("orphan package", () => afterDraft((d) => d.packages["a.b/c"] = { ...d.packages[CODEC] }), "lock.reference");
test("unsatisfied range", () => afterDraft((d) => d.requirements[KV] = "^2.0.0"), "lock.reference");
test(
  "unsatisfied transitive range",
  () => afterDraft((d) => d.plugins[KV].definition.requires[CODEC] = "^3.0.0"),
  "lock.reference",
);
test("cycle", () => afterDraft((d) => d.plugins[CODEC].definition.requires[KV] = "*"), "lock.reference");
test(
  "binding to a non-provider",
  () => afterDraft((d) => d.plugins[CODEC].definition.provides = []),
  "lock.reference",
);
test(
  "binding with another signature",
  () => afterDraft((d) => d.plugins[CODEC].definition.provides[0].functions[0].params = ["i64"]),
  "lock.reference",
);
test(
  "binding of a contract that is not consumed",
  () => afterDraft((d) => d.plugins[CODEC].bindings["a.b/c@1"] = []),
  "lock.reference",
);
test("unbound required contract", () => afterDraft((d) => d.plugins[KV].bindings = {}), "lock.reference");
test(
  "guest binding to a namespace that is not offered",
  () => afterDraft((d) => d.guest.bindings["other"] = KV),
  "lock.reference",
);
test("guest binding without import.define", () =>
  afterDraft((d) => {
    delete d.plugins[KV].grants["import.define"];
    d.plugins[KV].denied.push("import.define");
  }), "lock.reference");
test("package that cannot hold the plugin", () =>
  afterDraft((d) => {
    d.packages["a.b/c"] = d.packages[CODEC];
    delete d.packages[CODEC];
    d.plugins[CODEC].package = "a.b/c";
  }), "lock.reference");

// Digests.
test("definition changed", () => afterChange((l) => l.plugins[KV].definition.description = "x"), "lock.digest");
test(
  "definition digest changed",
  () => afterChange((l) => l.plugins[KV].definitionDigest = OTHER_DIGEST, true),
  "lock.digest",
);
test("definition of another id", () =>
  afterDraft((d) => {
    d.plugins[CODEC].definition.id = "github.com/acme/other";
  }), "lock.digest");
test(
  "definition of another version",
  () => afterDraft((d) => d.plugins[CODEC].definition.version = "2.0.2"),
  "lock.digest",
);
test(
  "artifact digest swapped",
  () => afterChange((l) => l.packages[KV].artifact.digest = OTHER_DIGEST),
  "lock.digest",
);
test(
  "registry swapped",
  () => afterChange((l) => Object.assign(l.packages[KV].source, { registry: "https://evil.example" })),
  "lock.digest",
);
test("entry digest swapped", () => afterChange((l) => l.plugins[KV].entry.digest = OTHER_DIGEST), "lock.digest");
test("config edited", () => afterChange((l) => l.plugins[KV].config = { maxEntries: 7 }), "lock.digest");

// Grants.
test("grant that was not requested", () => afterDraft((d) => d.plugins[KV].grants.random = {}), "lock.grant");
test("unknown authority granted", () => afterDraft((d) => d.plugins[KV].grants["fs.everything"] = {}), "lock.grant");
test(
  "unknown authority requested",
  () =>
    afterDraft((d) =>
      d.plugins[KV].definition.authorities.push({ name: "fs.everything", mode: "optional", reason: "x" })
    ),
  "lock.grant",
);
test(
  "wider scope",
  () => afterDraft((d) => d.plugins[KV].grants["fs.write"] = { roots: { "/store": "./data", "/etc": "/etc" } }),
  "lock.grant",
);
test("finer clock than requested", () =>
  afterDraft((d) => {
    d.plugins[KV].denied = [];
    d.plugins[KV].grants["clock.wall"] = { resolutionNs: 1 };
  }), "lock.grant");
test("granted and denied", () => afterDraft((d) => d.plugins[KV].denied.push("fs.write")), "lock.grant");
test("denied but not requested", () => afterDraft((d) => d.plugins[KV].denied.push("random")), "lock.grant");
test(
  "scope of the wrong shape",
  () => afterDraft((d) => d.plugins[KV].grants["fs.write"] = { roots: ["/store"] }),
  "lock.grant",
);
test(
  "changed scope, unreviewed",
  () => afterChange((l) => l.plugins[KV].grants["fs.write"] = { roots: { "/store": "/home" } }),
  "lock.review",
);

// Configuration.
test("config against its schema", () => afterDraft((d) => d.plugins[KV].config = { maxEntries: 0 }), "lock.config");
test("config with an unknown key", () => afterDraft((d) => d.plugins[KV].config = { maxEntires: 1 }), "lock.config");

// Staleness and review.
test("stale: other range", () => codesOf(encode(sampleText()), { [KV]: "^1.3.0" }), "lock.stale");
test("stale: one more, one less", () => codesOf(encode(sampleText()), { "a.b/c": "*" }), "lock.stale", "lock.stale");
test("review differs", () => afterChange((l) => l.plugins[KV].review = OTHER_DIGEST, true), "lock.review");
test("grant removed by hand", () => afterChange((l) => delete l.plugins[KV].grants["fs.write"]), "lock.review");
test("publisher changed", () => afterChange((l) => l.packages[KV].publisher = "github.com/evil", true), "lock.review");
test(
  "required authority undecided",
  () => afterDraft((d) => delete d.plugins[KV].grants["caller.memory.read"]),
  "lock.review",
);

Deno.test("lockfile: a stale one reports each difference by id", () => {
  const { diagnostics } = checkLockfile(encode(sampleText()), { requirements: { [KV]: "^1.3.0" } });
  assert.equal(
    formatDiagnostic(diagnostics[0]),
    'waft-lock.json:5:27: lock.stale: github.com/acme/kv: waft.json has "^1.3.0", the lockfile has "^1.2.0"\n' +
      "  help: run `waft add` to update the lockfile",
  );
});

Deno.test("lockfile: an unknown key is reported as the design shows it", () => {
  const text = sampleText().replace(
    '      "version": "1.2.3",\n      "source"',
    '      "version": "1.2.3",\n      "url": "x",\n      "source"',
  );
  const { diagnostics } = checkLockfile(encode(text));
  assert.match(
    formatDiagnostic(diagnostics[0]),
    /^waft-lock\.json:\d+:7: lock\.unknown-key: "url" is not allowed in packages\["github\.com\/acme\/kv"\]\n {2}help: /,
  );
});

Deno.test("lockfile: any single-byte change is rejected or equal in meaning", () => {
  const bytes = encode(sampleText());
  const meaning = jcs(readLockfile(bytes, { requirements: REQUIREMENTS }));
  let seed = 0x2545f491;
  const random = (): number => {
    seed ^= seed << 13;
    seed ^= seed >>> 17;
    seed ^= seed << 5;
    return seed >>> 0;
  };
  let rejected = 0;
  for (let i = 0; i < bytes.length; i++) {
    const before = bytes[i];
    // One neighbour (a digit stays a digit, a letter a letter), and one byte out of those that JSON is made of.
    for (const after of [before ^ 1, '0 "{}[],:a\n\\\t-'.charCodeAt(random() % 15)]) {
      if (after === before) continue;
      bytes[i] = after;
      const result = checkLockfile(bytes, { requirements: REQUIREMENTS });
      if (result.lockfile === undefined) rejected++;
      else assert.equal(jcs(result.lockfile), meaning, `byte ${i}: ${before} -> ${after}`);
    }
    bytes[i] = before;
  }
  assert.ok(rejected > bytes.length);
});
