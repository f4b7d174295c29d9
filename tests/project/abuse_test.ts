/**
 * Hostile ids, ranges, versions, graphs and names: each gives one clear error, quickly.
 */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { addPlugins } from "../../project/ops/project/add.ts";
import { checkProject } from "../../project/ops/project/check.ts";
import { SourceSet } from "../../project/packages/context.ts";
import { loadProject } from "../../project/plugins/load.ts";
import { machinePaths } from "../../project/base/paths.ts";
import { reviewText } from "../../project/commands/project/change_output.ts";
import { ProjectError } from "../../project/base/diagnostic.ts";
import { isPluginId } from "../../project/base/grammar.ts";
import type { ReviewRequest } from "../../project/ops/project/decide.ts";
import { palette } from "../../project/base/terminal.ts";
import { canonicalVersion, explainRange, explainVersion, satisfies } from "../../project/base/version.ts";
import { parseIndex, RegistrySource } from "../../project/packages/source_registry.ts";
import { HANG_MS } from "../support/hang.ts";
import { FakeRegistry } from "./fake_registry.ts";
import { CODEC, codecDefinition, definition, KV, kvDefinition } from "./sample_plugins.ts";
import { ALLOW_ALL, TempProject } from "./temp_project.ts";

function quick<T>(work: () => T): T {
  const start = performance.now();
  const result = work();
  assert.ok(performance.now() - start < HANG_MS, "too slow");
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
    (error) => error instanceof ProjectError && error.diagnostics[0].code === "resolve.cycle" && error.exitCode === 6,
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
    publishedAt: "2026-08-01T00:00:00Z",
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
    index([{ ...good, publishedAt: undefined }]),
    new TextEncoder().encode('{"id":1,"id":2}'),
    new TextEncoder().encode("[]"),
    new Uint8Array(0),
  ];
  for (const bytes of bad) {
    assert.throws(
      () => parseIndex(bytes, "a.b/c", url),
      (e) => e instanceof ProjectError && e.diagnostics[0].code === "registry.answer",
      new TextDecoder().decode(bytes),
    );
  }
});

Deno.test("abuse: names that hide, reorder or imitate are shown unambiguously", () => {
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
    following: [],
  };
  const text = reviewText(request, palette(false), 3_600_000);
  // deno-lint-ignore no-control-regex -- control characters must not be there
  assert.doesNotMatch(text, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
  assert.match(text, /the host is written in punycode and reads аррӏе\.com/);
  assert.match(text, /this publisher has published nothing else/);
  assert.match(text, /published less than a day ago/);
});

async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return "ok";
  } catch (error) {
    if (!(error instanceof ProjectError)) throw error;
    return `${error.diagnostics[0].code} ${error.exitCode}`;
  }
}

/** A project with the codec locked at 2.0.0. */
async function lockedProject(fake: FakeRegistry): Promise<TempProject> {
  await fake.publish([kvDefinition()]);
  await fake.publish([codecDefinition("2.0.0")]);
  const project = new TempProject();
  await addPlugins(await project.context(fake), {
    root: project.root,
    directory: project.root,
    specs: [`${KV}@^1.0.0`],
    decider: ALLOW_ALL,
  });
  return project;
}

Deno.test("abuse: a token goes to its registry only, and never across a redirect", async () => {
  const asked: { readonly origin: string; readonly token: string | null }[] = [];
  const fetch: typeof globalThis.fetch = (input, init) => {
    asked.push({ origin: new URL(String(input)).origin, token: new Headers(init?.headers).get("authorization") });
    assert.notEqual(init?.redirect ?? "follow", "follow", "no redirect is followed unseen");
    return Promise.resolve(new Response("", { status: 307, headers: { location: "https://evil.example/steal" } }));
  };
  const project = new TempProject();
  try {
    const paths = machinePaths({ env: { WAFT_HOME: join(project.home, "waft") }, os: "linux", home: project.home });
    const source = new RegistrySource("https://plugins.example", { paths, fetch, token: "waft_secret" });
    await assert.rejects(source.publish("github.com/acme/kv", "1.0.0", Uint8Array.of(1)), ProjectError);
    assert.deepEqual(asked, [{ origin: "https://plugins.example", token: "Bearer waft_secret" }]);
    asked.length = 0;
    assert.equal(await codeOf(source.releases("github.com/acme/kv")), "registry.redirect 7");
    assert.deepEqual(asked, [{ origin: "https://plugins.example", token: null }], "reading needs no token");
    // The token is sent only to the registry that it was issued for.
    asked.length = 0;
    const context = await project.context(undefined, { fetch, env: { WAFT_TOKEN: "waft_secret" } });
    const other = new SourceSet(context, project.root).registry("https://other.example");
    assert.equal(await codeOf(other.publish("github.com/acme/kv", "1.0.0", Uint8Array.of(1))), "auth.missing 8");
    assert.deepEqual(asked, []);
  } finally {
    project.remove();
  }
});

Deno.test("abuse: a lockfile with a foreign registry, a swapped digest, a wider scope, a grant that was not requested", async () => {
  const fake = new FakeRegistry();
  const project = await lockedProject(fake);
  const good = project.read("waft-lock.json")!;
  const context = await project.context(fake, { inspect: () => ({ imports: [], exports: [] }) });
  const outcome = async (from: string | RegExp, to: string): Promise<string> => {
    const changed = good.replace(from, to);
    assert.notEqual(changed, good);
    project.write("waft-lock.json", changed);
    fake.requests.length = 0;
    const code = await codeOf(loadProject(context, project.root));
    assert.deepEqual(fake.requests, [], "nothing is fetched for a lockfile that was tampered with");
    return code;
  };
  try {
    // The seal of the entry detects each change; an attacker who can write seals meets the checks behind it.
    const digest = /"artifact": \{\s*"digest": "sha256:[0-9a-f]{4}/;
    assert.match(await outcome(digest, '"artifact": { "digest": "sha256:beef'), /^lock\.(?:digest|review) /);
    assert.match(await outcome("https://plugins.example", "https://evil.example"), /^(?:lock\.|registry\.untrusted)/);
    assert.match(await outcome('"/store": "./store"', '"/store": "."'), /^lock\./);
    assert.match(await outcome('"caller.memory.read": {}', '"caller.memory.read": {}, "random": {}'), /^lock\.grant /);
  } finally {
    project.remove();
  }
});

Deno.test("abuse: an old index played again moves nothing that is locked; releases yanked later stay, with a warning", async () => {
  const fake = new FakeRegistry();
  const project = await lockedProject(fake);
  try {
    const locked = project.read("waft-lock.json");
    fake.yank(CODEC, "2.0.0", { reason: "leaks keys", severity: "security" });
    const checked = await checkProject(await project.context(fake), project.root);
    assert.deepEqual(checked.diagnostics.map((d) => [d.code, d.severity]), [["registry.yanked", "warning"]]);
    const again = await addPlugins(await project.context(fake), {
      root: project.root,
      directory: project.root,
      specs: [],
      decider: ALLOW_ALL,
    });
    assert.deepEqual([again.written, project.read("waft-lock.json")], [[], locked]);
    // An index from before the release: nothing is downgraded, and every command that asks says so.
    const old = codecDefinition("1.9.0");
    fake.published.splice(0, fake.published.length);
    await fake.publish([kvDefinition()]);
    await fake.publish([old]);
    const { diagnostics } = await checkProject(await project.context(fake), project.root);
    assert.deepEqual(diagnostics.map((d) => d.code), ["registry.rollback", "log.inconsistent"]);
    assert.equal(
      await codeOf(addPlugins(await project.context(fake), {
        root: project.root,
        directory: project.root,
        specs: [],
        decider: ALLOW_ALL,
      })),
      "registry.rollback 5",
    );
    assert.equal(project.read("waft-lock.json"), locked);
  } finally {
    project.remove();
  }
});

Deno.test("abuse: log rollback: a registry that forgets a release, signed as it was, moves nothing that is locked", async () => {
  const fake = new FakeRegistry();
  const project = await lockedProject(fake);
  try {
    const locked = project.read("waft-lock.json");
    const rest = fake.published.filter((p) => p.id !== CODEC);
    fake.published.splice(0, fake.published.length, ...rest);
    await fake.publish([codecDefinition("2.0.0-rc.1")]);
    const { diagnostics } = await checkProject(await project.context(fake), project.root);
    assert.deepEqual(diagnostics.map((d) => d.code), ["registry.rollback", "log.inconsistent"]);
    const request = { root: project.root, directory: project.root, decider: ALLOW_ALL };
    assert.equal(
      await codeOf(addPlugins(await project.context(fake), { ...request, specs: [] })),
      "registry.rollback 5",
    );
    assert.equal(project.read("waft-lock.json"), locked);
  } finally {
    project.remove();
  }
});

Deno.test("abuse: log fork: a registry that signs other bytes for a locked version is an integrity failure", async () => {
  const fake = new FakeRegistry();
  const project = await lockedProject(fake);
  try {
    const locked = project.read("waft-lock.json");
    // Another history, signed by the registry's own key, as a client without a lockfile would see it.
    const rest = fake.published.filter((p) => p.id !== CODEC);
    fake.published.splice(0, fake.published.length, ...rest);
    await fake.publish([{ ...codecDefinition("2.0.0"), description: "The same, but not quite." }]);
    const { diagnostics } = await checkProject(await project.context(fake), project.root);
    assert.deepEqual(diagnostics.map((d) => [d.code, d.severity]), [
      ["integrity.republished", "error"],
      ["log.inconsistent", "error"],
    ]);
    // A machine that has never seen the release has only the lockfile to compare with.
    for (const part of ["cache", "state"]) rmSync(join(project.home, "waft", part), { recursive: true });
    const elsewhere = await checkProject(await project.context(fake), project.root);
    assert.deepEqual(elsewhere.diagnostics.map((d) => d.code), ["registry.not-found", "integrity.disagrees"]);
    const fresh = new TempProject();
    try {
      const context = await fresh.context(fake);
      const asked = { root: fresh.root, directory: fresh.root, decider: ALLOW_ALL, specs: [`${KV}@^1.0.0`] };
      await addPlugins(context, asked);
      assert.notEqual(fresh.read("waft-lock.json"), locked, "two lockfiles, side by side, show the fork");
    } finally {
      fresh.remove();
    }
    const request = { root: project.root, directory: project.root, decider: ALLOW_ALL };
    const outcome = await codeOf(addPlugins(await project.context(fake), { ...request, specs: [] }));
    assert.equal(outcome, "integrity.republished 5");
    assert.equal(project.read("waft-lock.json"), locked, "nothing that is locked changes");
  } finally {
    project.remove();
  }
});

Deno.test("abuse: a manifest of schema v0 is told apart, and never guessed at", async () => {
  const project = new TempProject(
    '{ "$schema": "https://waft.sh/schemas/v0/schema.json", "plugins": { "acme/kv": "^0.0.0" } }',
  );
  try {
    const { diagnostics } = await checkProject(await project.context(new FakeRegistry()), project.root);
    assert.ok(diagnostics.some((d) => d.code === "manifest.schema-version" && /init --upgrade/.test(d.help ?? "")));
  } finally {
    project.remove();
  }
});
