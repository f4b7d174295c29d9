/**
 * Packages: catalog and manifest together give definitions; contradictory, missing or hostile content is a
 * finding.
 */
import assert from "node:assert/strict";
import { Ajv } from "ajv";
import { openPackage } from "./catalog.ts";
import { definitionDigest } from "./definition.ts";
import { ProjectError } from "../base/diagnostic.ts";
import { publishedSchemas } from "../published_schemas.ts";
import { sealLockfile } from "../lockfile/lock_write.ts";
import { packageFiles } from "../../tests/project/fake_registry.ts";
import { codecDefinition, definition, KV, kvDefinition, sampleDraft } from "../../tests/project/sample_plugins.ts";

// deno-lint-ignore no-explicit-any -- tests change JSON freely
type Loose = any;
const encode = (value: unknown): Uint8Array =>
  new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value));

async function codesAfter(
  change: (parts: { manifest: Loose; catalog: Loose; files: Map<string, Uint8Array> }) => void,
): Promise<string[]> {
  const files = packageFiles([kvDefinition()]);
  const parse = (name: string): Loose => JSON.parse(new TextDecoder().decode(files.get(name)));
  const parts = { manifest: parse("waft.json"), catalog: parse("register/catalog.json"), files };
  files.set("waft.json", encode(""));
  files.set("register/catalog.json", encode(""));
  change(parts);
  if (files.get("waft.json")?.length === 0) files.set("waft.json", encode(parts.manifest));
  if (files.get("register/catalog.json")?.length === 0) files.set("register/catalog.json", encode(parts.catalog));
  try {
    await openPackage(files, "1.2.3");
    return [];
  } catch (error) {
    assert.ok(error instanceof ProjectError, String(error));
    return error.diagnostics.map((d) => d.code);
  }
}
function row(name: string, change: Parameters<typeof codesAfter>[0], ...expected: string[]): void {
  Deno.test(`package: ${name}`, async () => assert.deepEqual(await codesAfter(change), expected));
}
const first = (c: Loose): Loose => c.plugins[0].definition;

row("as it is", () => {});
row("no catalog", (p) => p.files.delete("register/catalog.json"), "catalog.missing");
row("no manifest", (p) => p.files.delete("waft.json"), "manifest.missing");
row("an application", (p) => delete p.manifest.package, "manifest.no-package");
row("no JSON", (p) => p.files.set("register/catalog.json", encode("{,}")), "catalog.syntax");
row("too large", (p) => p.files.set("register/catalog.json", encode(" ".repeat((1 << 20) + 1))), "catalog.too-large");
row(
  "duplicate key",
  (p) => p.files.set("register/catalog.json", encode('{"plugins":[],"plugins":[]}')),
  "catalog.duplicate-key",
  "catalog.value",
);
row("unknown key", (p) => p.catalog.scripts = {}, "catalog.unknown-key");
row(
  "__proto__",
  (p) =>
    p.files.set(
      "register/catalog.json",
      encode(JSON.stringify(p.catalog).replace('{"plugins"', '{"__proto__":{},"plugins"')),
    ),
  "catalog.unknown-key",
);
row("no plugins", (p) => p.catalog.plugins = [], "catalog.value");
row("129 plugins", (p) => p.catalog.plugins = Array(129).fill(p.catalog.plugins[0]), "catalog.value");
row("foreign id", (p) => first(p.catalog).id = "github.com/evil/kv", "catalog.value");
row("id twice", (p) => p.catalog.plugins.push(p.catalog.plugins[0]), "catalog.value");
row("missing entry", (p) => p.catalog.plugins[0].entry = "dist/none.wasm", "catalog.entry");
row("entry leads out", (p) => p.catalog.plugins[0].entry = "../x.wasm", "catalog.entry");
row("empty entry", (p) => p.files.set("dist/0.wasm", new Uint8Array(0)), "catalog.entry");
row("version contradicts", (p) => first(p.catalog).version = "9.9.9", "catalog.mismatch");
row(
  "license contradicts",
  (p) => first(p.catalog).provenance = { repository: `https://${KV}`, license: "GPL" },
  "catalog.mismatch",
);
row(
  "stability contradicts",
  (p) => (delete p.manifest.package.stability, first(p.catalog).stability = "stable"),
  "catalog.mismatch",
);
row(
  "subpackage that is not a child",
  (p) => p.manifest.package.subpackages = [{ module: "github.com/acme/other", name: "x", description: "x" }],
  "manifest.subpackage",
);
row(
  "subpackage without a definition",
  (p) => p.manifest.package.subpackages = [{ module: `${KV}/x`, name: "x", description: "x" }],
  "catalog.value",
);
row("host kind", (p) => first(p.catalog).kind = "host", "catalog.value");
row(
  "host.code",
  (p) => first(p.catalog).authorities.push({ name: "host.code", mode: "required", reason: "x" }),
  "catalog.value",
);
row(
  "unknown authority",
  (p) => first(p.catalog).authorities.push({ name: "fs.all", mode: "required", reason: "x" }),
  "catalog.value",
);
row("authority twice", (p) => first(p.catalog).authorities.push(first(p.catalog).authorities[0]), "catalog.value");
row(
  "authority without its scope",
  (p) => first(p.catalog).authorities.push({ name: "net.connect", mode: "required", reason: "x" }),
  "catalog.missing",
);
row(
  "network to anywhere",
  (p) =>
    first(p.catalog).authorities.push({ name: "net.connect", mode: "required", reason: "x", scope: { hosts: ["*"] } }),
  "catalog.value",
);
row("authority without a reason", (p) => first(p.catalog).authorities[0].reason = "", "catalog.value");
row("namespace of the host", (p) => {
  first(p.catalog).provides[0].namespaces = ["waft:fs@1"];
  first(p.catalog).authorities.find((a: Loose) => a.name === "import.define").scope.namespaces = ["waft:fs@1"];
}, "catalog.value");
for (const namespaces of [0, true, {}, "x", [0], [{}], null]) {
  row(
    `namespaces of another form: ${JSON.stringify(namespaces)}`,
    (p) => {
      first(p.catalog).authorities.find((a: Loose) => a.name === "import.define").scope.namespaces = namespaces;
    },
    "catalog.type",
    "catalog.missing",
  );
}
row("namespace without import.define", (p) => first(p.catalog).provides[0].namespaces.push("other"), "catalog.missing");
row("import.define of nothing", (p) => first(p.catalog).provides[0].namespaces = [], "catalog.value");
row("requires itself", (p) => first(p.catalog).requires = { [KV]: "*" }, "catalog.value");
row("requires no range", (p) => first(p.catalog).requires = { "a.b/c": "newest" }, "catalog.value");
row(
  "range of 200 alternatives",
  (p) => first(p.catalog).requires = { "a.b/c": Array(201).fill("1").join("||") },
  "catalog.value",
);
row("unknown value type", (p) => first(p.catalog).provides[0].functions[0].params = ["i128"], "catalog.value");
row(
  "regular expression in configSchema",
  (p) =>
    first(p.catalog).configSchema = {
      type: "object",
      additionalProperties: false,
      properties: { a: { type: "string", pattern: "x" } },
    },
  "catalog.unknown-key",
);
row(
  "10,000 levels of configSchema",
  (p) =>
    p.files.set(
      "register/catalog.json",
      encode(JSON.stringify(p.catalog).replace('"default":10', `"default":${"[".repeat(10_000)}${"]".repeat(10_000)}`)),
    ),
  "catalog.syntax",
);

Deno.test("package: the digest does not depend on the order of keys and set-like arrays", () => {
  const a = kvDefinition();
  const b = Object.fromEntries(Object.entries(kvDefinition()).reverse()) as unknown as typeof a;
  b.authorities = [...b.authorities].reverse();
  assert.equal(definitionDigest(a), definitionDigest(b));
  assert.notEqual(definitionDigest(a), definitionDigest({ ...a, description: "x" }));
});

Deno.test("package: several plugins in one archive share its version", async () => {
  const admin = definition(`${KV}/admin`, "1.2.3");
  const opened = await openPackage(packageFiles([kvDefinition(), admin]), "1.2.3");
  assert.deepEqual(Object.keys(opened.plugins), [KV, `${KV}/admin`]);
  assert.deepEqual(Object.values(opened.plugins).map((p) => p.definition.version), ["1.2.3", "1.2.3"]);
});

Deno.test("schemas: the published ones are draft 7, and accept all written files", () => {
  const schemas = publishedSchemas();
  const lock = JSON.parse(JSON.stringify(sealLockfile(sampleDraft())));
  const catalog = { plugins: [{ entry: "a.wasm", definition: { id: KV } }] };
  for (
    const [file, value] of [["lock.schema.json", lock], ["catalog.schema.json", catalog], ["schema.json", {}]] as const
  ) {
    const validate = new Ajv({ strict: false, validateFormats: false }).compile(schemas[file]);
    assert.equal(validate(value), true, `${file}: ${JSON.stringify(validate.errors)}`);
    assert.equal(validate({ ...value, unknown: 1 }), false);
  }
  assert.ok(codecDefinition().provides.length > 0);
});
