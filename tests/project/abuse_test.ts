/**
 * Hostile input that reaches the project through ids, ranges, versions, graphs and names: each gives one clear error, soon.
 */
import assert from "node:assert/strict";
import { addPlugins } from "../../project/ops/add.ts";
import { reviewText } from "../../project/commands/change_output.ts";
import { ProjectError } from "../../project/diagnostic.ts";
import { isPluginId } from "../../project/grammar.ts";
import type { ReviewRequest } from "../../project/ops/decide.ts";
import { palette } from "../../project/terminal.ts";
import { canonicalVersion, explainRange, explainVersion, satisfies } from "../../project/version.ts";
import { parseIndex } from "../../project/source_registry.ts";
import { FakeRegistry } from "./fake_registry.ts";
import { definition } from "./sample_plugins.ts";
import { ALLOW_ALL, TempProject } from "./temp_project.ts";

function quick<T>(work: () => T): T {
  const start = performance.now();
  const result = work();
  assert.ok(performance.now() - start < 5000, "too slow");
  return result;
}

Deno.test("abuse: versions of a million digits, ranges of endless alternatives, patterns that backtrack", () => {
  assert.match(quick(() => explainVersion("1".repeat(1_000_000)))!, /longer/);
  assert.equal(quick(() => canonicalVersion(`1.2.${"3".repeat(200)}`)), undefined);
  assert.match(quick(() => explainRange(Array(100_000).fill("1").join("||")))!.reason, /longer/);
  assert.equal(quick(() => satisfies("1.0.0", Array(66).fill("9").join("||"))), false);
  for (
    const id of [
      "a.".repeat(100_000),
      `${"a-".repeat(149)}.b/c`,
      `a.b/${"a/".repeat(140)}-`,
      "-".repeat(300),
      `${"a".repeat(299)}.`,
    ]
  ) {
    assert.equal(quick(() => isPluginId(id)), false);
  }
});

Deno.test("abuse: 128 plugins in a cycle", async () => {
  const fake = new FakeRegistry();
  const id = (i: number): string => `a.b/p${String(i % 128).padStart(3, "0")}`;
  for (let i = 0; i < 128; i++) await fake.publish([definition(id(i), "1.0.0", { requires: { [id(i + 1)]: "*" } })]);
  const project = new TempProject();
  await assert.rejects(
    addPlugins(await project.context(fake), {
      root: project.root,
      directory: project.root,
      specs: [id(0)],
      decider: ALLOW_ALL,
    }),
    (error) => error instanceof ProjectError && error.diagnostics[0]!.code === "resolve.cycle" && error.exitCode === 6,
  );
  project.remove();
});

Deno.test("abuse: a private id is never asked of the public registry", async () => {
  const publicRegistry = new FakeRegistry();
  await publicRegistry.publish([definition("git.corp.example/secret/tool", "9.9.9")], "evil");
  const project = new TempProject();
  const context = await project.context(publicRegistry);
  const machine = { ...context.machine, prefixes: { "git.corp.example": "https://registry.corp.example" } };
  const asked: string[] = [];
  const fetch: typeof globalThis.fetch = (input) => {
    asked.push(new URL(String(input)).origin);
    return Promise.resolve(Response.json({ title: "Not found" }, { status: 404 }));
  };
  await assert.rejects(
    addPlugins({ ...context, machine, fetch }, {
      root: project.root,
      directory: project.root,
      specs: ["git.corp.example/secret/tool"],
      decider: ALLOW_ALL,
    }),
    /resolve\.not-found/,
  );
  assert.deepEqual([...new Set(asked)], ["https://registry.corp.example"]);
  project.remove();
});

Deno.test("abuse: indexes with hostile shapes are refused whole", () => {
  const url = "https://r.example/x";
  const good = {
    version: "1.0.0",
    definitionDigest: `sha256:${"0".repeat(64)}`,
    requires: {},
    compatibility: { engines: {}, platforms: [] },
    artifact: { digest: `sha256:${"0".repeat(64)}`, size: 1 },
    publisher: "a.b/c",
  };
  const index = (releases: unknown[], more: object = {}): Uint8Array =>
    new TextEncoder().encode(JSON.stringify({ schemaVersion: 1, id: "a.b/c", package: "a.b/c", releases, ...more }));
  assert.equal(parseIndex(index([good]), "a.b/c", url).length, 1);
  const bad: Uint8Array[] = [
    index([good, good]),
    index([{ ...good, version: "v1.0.0" }]),
    index([{ ...good, version: "1.0" }]),
    index([{ ...good, requires: { "acme/kv": "*" } }]),
    index([{ ...good, artifact: { digest: "sha256:x", size: 1 } }]),
    index([{ ...good, artifact: { ...good.artifact, size: 0 } }]),
    index([{ ...good, publisher: "a\u001b[31m" }]),
    index([{ ...good, yanked: { reason: "", severity: "broken" } }]),
    index([], { schemaVersion: 2 }),
    index([], { package: "x.y/z" }),
    index([{ ...good, publishedAt: "yesterday" }]),
    new TextEncoder().encode('{"id":1,"id":2}'),
    new TextEncoder().encode("[]"),
    new Uint8Array(0),
  ];
  for (const bytes of bad) {
    assert.throws(
      () => parseIndex(bytes, "a.b/c", url),
      (e) => e instanceof ProjectError && e.diagnostics[0]!.code === "registry.answer",
      new TextDecoder().decode(bytes),
    );
  }
});

Deno.test("abuse: names that hide, reorder or imitate are shown as what they are", () => {
  const d = definition("xn--80ak6aa92e.com/x/kv", "1.0.0", {
    description: "\u001b]0;owned\u0007\u202eevil\u2066",
    authorities: [{ name: "random", mode: "required", reason: "\r\u001b[1A\u001b[2Kharmless" }],
  });
  const request: ReviewRequest = {
    plugin: {
      id: d.id,
      definition: d,
      package: d.id,
      grants: {},
      denied: [],
      bindings: {},
      config: {},
      entry: { path: "x", digest: "sha256:x", size: 1 },
      release: {
        id: d.id,
        version: "1.0.0",
        package: d.id,
        definitionDigest: "sha256:x",
        requires: {},
        compatibility: d.compatibility,
        artifact: { digest: "sha256:x", size: 1 },
        publisher: "xn--80ak6aa92e.com/x",
        publishedAt: new Date(0).toISOString(),
        firstPublish: true,
      },
    },
    reasons: [{ rule: "new", text: "it is new" }],
    requiredBy: [],
    direct: true,
    beforeRequests: [],
    reach: {},
  };
  const text = reviewText(request, palette(false), 3_600_000);
  // deno-lint-ignore no-control-regex -- control characters are what must not be there
  assert.doesNotMatch(text, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
  assert.match(text, /the host is written in punycode and reads аррӏе\.com/);
  assert.match(text, /this publisher has published nothing else/);
  assert.match(text, /published less than a day ago/);
});
