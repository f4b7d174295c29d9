/** Plugins in OCI registries: published, added, updated, checked, refused. In: a registry on loopback. */
import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { addPlugins, type AddRequest } from "../../project/ops/project/add.ts";
import { changeProject } from "../../project/ops/project/change.ts";
import { checkProject } from "../../project/ops/project/check.ts";
import { readLockfile } from "../../project/lockfile/lockfile.ts";
import { holderLines } from "../../project/plugins/acceptance.ts";
import { authorityHolders, authorityState } from "../../project/lockfile/held_authority.ts";
import type { Lockfile } from "../../project/lockfile/lock_schema.ts";
import { writeArchive } from "../../project/packages/archive.ts";
import { pushPlugin } from "../../project/packages/oci/plugin_artifact.ts";
import { parseReference } from "../../project/packages/oci/reference.ts";
import type { OpsContext } from "../../project/packages/context.ts";
import type { Definition } from "../../project/definitions/definition.ts";
import { ProjectError } from "../../project/base/diagnostic.ts";
import { packageFiles } from "../project/fake_registry.ts";
import { definition } from "../project/sample_plugins.ts";
import { ALLOW_ALL, NO_TERMINAL, TempProject } from "../project/temp_project.ts";
import { sha256, startRegistry, type TestRegistry } from "../support/oci_registry.ts";
import { sign } from "../support/oci_signature.ts";
import { removeFolder } from "../support/remove_folder.ts";
import { waft } from "./waft.ts";

const ID = "github.com/acme/clock";

/** A plugin that asks for an authority. */
function clock(version: string): Definition {
  const scope = { resolutionNs: 1000 };
  return definition(ID, version, {
    authorities: [{ name: "clock.wall", mode: "optional", reason: "Tells the time.", scope }],
  });
}

interface Setup {
  readonly registry: TestRegistry;
  readonly project: TempProject;
  readonly context: OpsContext;
  /** Pushes a release under a tag, by default its version. Returns the digest of the manifest. */
  push(version: string, tag?: string, released?: Definition): Promise<string>;
  add(rest: string | undefined, more?: Partial<AddRequest>): ReturnType<typeof addPlugins>;
  update(): ReturnType<typeof changeProject>;
  lock(): Lockfile;
}

async function withSetup(action: (setup: Setup) => Promise<void>, policy?: object): Promise<void> {
  const registry = await startRegistry();
  const project = new TempProject();
  if (policy !== undefined) {
    mkdirSync(join(project.home, "waft", "config"), { recursive: true });
    writeFileSync(join(project.home, "waft", "config", "policy.json"), JSON.stringify(policy), { mode: 0o600 });
  }
  const context = await project.context(undefined);
  const common = { root: project.root, directory: project.root, decider: ALLOW_ALL };
  try {
    await action({
      registry,
      project,
      context,
      async push(version, tag = version, released = clock(version)) {
        const archive = new Uint8Array(writeArchive(packageFiles([released])));
        const reference = parseReference(`oci://${registry.host}/acme/clock:${tag}`);
        return (await pushPlugin(reference, { archive, version })).split("@")[1];
      },
      add: (rest, more = {}) => {
        const specs = rest === undefined ? [] : [`oci://${registry.host}/acme/clock${rest}`];
        return addPlugins(context, { ...common, specs, ...more });
      },
      update: () => changeProject(context, { ...common, update: "all" }),
      lock: () => readLockfile(new TextEncoder().encode(project.read("waft-lock.json"))),
    });
  } finally {
    registry.close();
    project.remove();
  }
}

/** The first finding of a failure, with its exit code. */
async function failure(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    assert.ok(error instanceof ProjectError, String(error));
    const [{ code, message }] = error.diagnostics;
    return `${error.exitCode} ${code}: ${message}`;
  }
  return "none";
}

Deno.test("a plugin is locked by digest, reviewed, kept, and updated to the newest version in the range", async () => {
  await withSetup(async ({ registry, project, context, push, add, update, lock }) => {
    const first = await push("1.0.0");
    await push("2.0.0");
    await push("1.9.0-rc.1");
    await push("1.0.0", "latest");
    assert.match(await failure(add("", { decider: NO_TERMINAL })), /^4 review/);
    const added = await add(":1.0.0");
    assert.deepEqual(added.changes.map(({ id, action, needsReview }) => [id, action, needsReview]), [[
      ID,
      "add",
      true,
    ]]);
    const reference = `oci://${registry.host}/acme/clock:1.0.0`;
    assert.deepEqual({ ...lock().packages[ID].source }, { kind: "oci", reference, manifest: first });
    assert.deepEqual(JSON.parse(project.read("waft.json") ?? "").plugins, { [ID]: "^1.0.0" });
    const [holder] = authorityHolders(authorityState(lock()));
    assert.equal(holderLines(holder)[0], `${ID} 1.0.0 from ${reference}@${first}, not signed`);

    // A tag that moves changes nothing, and a locked plugin in the cache needs no registry.
    await push("1.1.0", "1.0.0");
    const count = registry.requests.length;
    assert.deepEqual((await add(undefined)).written, []);
    assert.deepEqual((await add(undefined, { decider: NO_TERMINAL })).changes.map((c) => c.action), ["keep"]);
    assert.equal(registry.requests.length, count);
    const { checks, diagnostics } = await checkProject(context, project.root);
    assert.deepEqual([diagnostics, checks.find(({ name }) => name === "registry")?.status], [[], "ok"]);

    // An update asks for the tag again: the same authorities need no further review.
    const updated = await update();
    assert.deepEqual(updated.changes.map((c) => [c.action, c.to, c.needsReview]), [["update", "1.1.0", false]]);

    // A repository without a tag has the newest version within the range.
    await push("1.2.0");
    await add("");
    assert.equal(lock().packages[ID].version, "2.0.0");
    project.write("waft.json", JSON.stringify({ plugins: { [ID]: "^1.0.0" } }));
    await update();
    assert.equal(lock().packages[ID].version, "1.2.0");

    // A digest is never asked for again.
    await add(`@${first}`);
    assert.deepEqual((await update()).changes.map((c) => c.action), ["keep"]);
    assert.deepEqual({ ...lock().packages[ID].source }, {
      kind: "oci",
      reference: `oci://${registry.host}/acme/clock@${first}`,
      manifest: first,
    });
  });
});

Deno.test("a signature is demanded when a release is chosen, and remains demanded", async () => {
  await withSetup(async ({ registry, project, context, push, add, update, lock }) => {
    const first = await push("1.0.0", "1");
    const key = sign(registry, first, { type: "ec" });
    project.write("key.pem", key);
    project.write("text.pem", "no key");
    const signedBy = join(project.root, "key.pem");
    assert.match(
      await failure(add(":1", { signedBy: join(project.root, "text.pem") })),
      /^2 usage\.signed-by: no public key/,
    );
    assert.match(
      await failure(add(":1", { signedBy: join(project.root, "none") })),
      /^2 usage\.signed-by: there is no/,
    );
    assert.match(await failure(add(undefined, { signedBy })), /^2 usage\.signed-by: --signed-by is for plugins/);
    await add(":1", { signedBy });
    const { source } = lock().packages[ID];
    assert.ok(
      source.kind === "oci" && source.signedBy !== undefined && key.replaceAll("\n", "").includes(source.signedBy),
    );
    const second = await push("1.1.0", "1");
    assert.match(await failure(update()), new RegExp(`^5 signature\\.missing: .*${second} has no signature`));
    // Neither does another `add` without the option get around it.
    assert.match(await failure(add(":1")), /^5 signature\.missing/);
    sign(registry, second, { type: "ec" });
    assert.match(await failure(update()), /^5 signature\.missing: .* has no signature by this key/);
    assert.equal(lock().packages[ID].version, "1.0.0");
    // `plugin check` asks for the signatures of locked plugins.
    assert.deepEqual((await checkProject(context, project.root)).diagnostics, []);
    registry.manifests.delete(`${first.replace(":", "-")}.sig`);
    const { diagnostics } = await checkProject(context, project.root);
    assert.deepEqual(diagnostics.map(({ code }) => code), ["signature.missing"]);
    // Another key is another decision.
    const other = sign(registry, second, { type: "ed25519" });
    project.write("other.pem", other);
    assert.match(
      await failure(add(":1", { signedBy: join(project.root, "other.pem"), decider: NO_TERMINAL })),
      /^4 review/,
    );
  });
});

Deno.test("a registry that breaks a promise is one error, and nothing is written", async () => {
  await withSetup(async ({ registry, project, push, add, update }) => {
    const digest = await push("1.0.0");
    const before = project.read("waft.json");
    const manifest = JSON.parse(new TextDecoder().decode(registry.manifests.get("1.0.0")));
    const store = (change: object) =>
      registry.manifests.set("1", new TextEncoder().encode(JSON.stringify({ ...manifest, ...change })));
    const [layer] = manifest.layers;
    const program = { artifactType: undefined, layers: [{ ...layer, mediaType: "application/wasm" }] };
    const notArchive = new Uint8Array([1, 2, 3]);
    registry.blobs.set(sha256(notArchive), notArchive);
    const cases: [object, RegExp][] = [
      [program, /^7 registry\.oci: oci:.*:1: not a plugin: the artifact has the type "undefined"/],
      [{ layers: [] }, /not a plugin/],
      [{ layers: [{ ...layer, mediaType: "text/plain" }] }, /not a plugin: the layer has the type "text\/plain"/],
      [{ layers: [{ ...layer, size: 2 ** 30 }] }, /the layer has more than 16777216 bytes/],
      [{ layers: [{ ...layer, size: layer.size + 1 }] }, /^5 integrity\.artifact: .*its manifest says/],
      [{ layers: [{ ...layer, digest: sha256("else") }] }, /has no such package/],
      [{ layers: [{ ...layer, digest: sha256(notArchive), size: 3 }] }, /^5 integrity\.package: the package in oci/],
      [{ annotations: {} }, /has no version of the package/],
      [{ annotations: { "org.opencontainers.image.version": "new" } }, /has no version of the package/],
      [{ annotations: null }, /is no object/],
    ];
    for (const [change, message] of cases) {
      store(change);
      assert.match(await failure(add(":1")), message);
    }
    const tags: [unknown, RegExp][] = [
      [{ tags: null }, /no tag is a version: name one/],
      [{ tags: ["../../blobs", "latest", 1] }, /no tag is a version/],
      [null, /no tag is a version/],
    ];
    for (const [answer, message] of tags) {
      registry.replace = ({ url = "" }, response) => {
        if (!url.includes("/tags/")) return false;
        response.end(JSON.stringify(answer));
        return true;
      };
      assert.match(await failure(add("")), message);
    }
    registry.replace = () => false;
    assert.match(await failure(add(":1:2")), /^2 usage\.reference/);
    assert.deepEqual([project.read("waft.json"), project.read("waft-lock.json")], [before, undefined]);

    // Versions are immutable here, too.
    await add(":1.0.0");
    const other = { ...clock("1.0.0"), description: "Another plugin under the same version" };
    assert.notEqual(await push("1.0.0", "1.0.0", other), digest);
    assert.match(await failure(update()), /^5 integrity\.republished/);
  });
});

Deno.test("the lockfile names a manifest, and keys of its own kind of source only", async () => {
  await withSetup(async ({ project, push, add }) => {
    await push("1.0.0");
    await add(":1.0.0");
    const text = project.read("waft-lock.json") ?? "";
    const other = `sha256:${"0".repeat(64)}`;
    const cases: [string, string, RegExp][] = [
      ['"manifest": "sha256:', '"publisher": "x", "manifest": "sha256:', /lock\.unknown-key/],
      ['"manifest": "sha256:', '"path": "./x", "manifest": "sha256:', /lock\.unknown-key.*"path" is not allowed/s],
      ['clock:1.0.0"', `clock@${other}"`, /lock\.value.*manifest is not that of its reference/s],
      ["oci://", "oci://user@", /lock\.value/],
      ['clock:1.0.0"', 'clock:2.0.0"', /lock\.digest/],
    ];
    for (const [from, to, message] of cases) {
      assert.ok(text.includes(from), from);
      assert.throws(() => readLockfile(new TextEncoder().encode(text.replace(from, to))), message);
    }
  });
});

Deno.test("the machine's policy names the registries that may be used", async () => {
  await withSetup(async ({ registry, push, add }) => {
    await push("1.0.0");
    const count = registry.requests.length;
    assert.match(await failure(add(":1.0.0")), /^4 policy\.registry/);
    assert.equal(registry.requests.length, count);
  }, { registries: ["https://plugins.example"] });
});

Deno.test("a plugin is published to an OCI registry, added, run, and checked by the command", async () => {
  const registry = await startRegistry();
  const home = mkdtempSync(join(tmpdir(), "waft-oci-plugin-"));
  const [plugin, user] = ["greeter", "user"].map((name) => join(home, name));
  for (const directory of [plugin, user]) mkdirSync(directory);
  const run = async (cwd: string, ...args: string[]) => {
    const { code, out, err } = await waft(args, cwd, home);
    assert.equal(code, 0, `waft ${args.join(" ")}\n${out}${err}`);
    return out;
  };
  const id = "github.com/ada/greeter";
  const repository = `oci://${registry.host}/ada/greeter`;
  try {
    const facts = ["--name", "Greeter", "--module", id, "--description", "Greets.", "--license", "MIT"];
    const more = ["--repository", "https://github.com/ada/greeter", "--yes"];
    await run(plugin, "init", "--full", "--kind", "plugin", ...facts, ...more);
    const block = /```sh\n([^]*?)```/.exec(readFileSync(join(plugin, "README.md"), "utf8"))?.[1] ?? "";
    for (const line of block.trim().split("\n")) await run(plugin, ...line.replace(/\s+#.*$/, "").split(" ").slice(1));
    assert.match(await run(plugin, "plugin", "publish", "--to", repository, "--dry-run"), /Nothing was published/);
    assert.equal(registry.requests.length, 0);
    const published = await run(plugin, "plugin", "publish", "--to", repository);
    const digest = /greeter:0\.1\.0@(sha256:[0-9a-f]{64})/.exec(published)?.[1];
    assert.ok(digest !== undefined, published);
    await run(user, "init", "--quick");
    const added = await run(user, "add", `${repository}@${digest}`, "--allow", "caller.memory.write");
    assert.match(added, /greeter/);
    cpSync(join(plugin, "test", "guest.wat"), join(user, "guest.wat"));
    assert.equal(await run(user, "run", "--locked", "--offline", "guest.wat"), "19\n");
    assert.match(await run(user, "plugin", "check"), /passed/);
    assert.match(await run(user, "plugin", "list"), /greeter.*ok/);
    registry.manifests.clear();
    const { code, out, err } = await waft(["plugin", "check"], user, home);
    assert.equal(code, 7, out + err);
    assert.match(out + err, /has no such manifest/);
  } finally {
    registry.close();
    removeFolder(home);
  }
});
