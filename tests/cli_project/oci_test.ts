/** Programs in OCI registries: push and pull, credentials, hostile registries. In: a registry on loopback. */
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { machinePaths } from "../../project/base/paths.ts";
import { pullProgram, pushProgram } from "../../project/packages/oci/artifact.ts";
import { parseReference } from "../../project/packages/oci/reference.ts";
import { sign } from "../support/oci_signature.ts";
import { removeFolder } from "../support/remove_folder.ts";
import { sha256, startRegistry, type TestRegistry } from "../support/oci_registry.ts";
import { waft } from "./waft.ts";

const HELLO = fileURLToPath(new URL("../component/fixtures/hello.wasm", import.meta.url));
const PROGRAM = new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
const FACTS = { kind: "module", imports: [], exports: [] } as const;
const MODULE_TYPES = ["application/vnd.wasm.config.v0+json", "application/wasm"] as const;

interface Setup {
  readonly home: string;
  readonly registry: TestRegistry;
  /** The blobs in the cache. */
  cached(): string[];
  pull(rest: string): Promise<{ reference: string; bytes: Uint8Array }>;
}

/** Runs `action` with a registry, an empty cache, and the given `config.json` of Docker. */
async function withRegistry(action: (setup: Setup) => Promise<void>, config?: object): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "waft-oci-"));
  const registry = await startRegistry();
  const before = process.env["DOCKER_CONFIG"];
  process.env["DOCKER_CONFIG"] = home;
  const text = JSON.stringify(config ?? {}).replaceAll("HOST", registry.host);
  writeFileSync(join(home, "config.json"), text);
  const paths = machinePaths({ env: { WAFT_HOME: join(home, "waft") }, os: process.platform, home });
  const blobs = join(paths.cache, "blobs", "sha256");
  try {
    await action({
      home,
      registry,
      cached: () => existsSync(blobs) ? readdirSync(blobs) : [],
      pull: (rest) => pullProgram(parseReference(`oci://${registry.host}/${rest}`), { paths }),
    });
  } finally {
    registry.close();
    if (before === undefined) delete process.env["DOCKER_CONFIG"];
    else process.env["DOCKER_CONFIG"] = before;
    removeFolder(home);
  }
}

/** Stores an artifact with these types under a tag. */
function store({ manifests, blobs }: TestRegistry, tag: string, change: object = {}, layer: object = {}): void {
  const [configType, layerType] = MODULE_TYPES;
  blobs.set(sha256(PROGRAM), PROGRAM);
  const manifest = {
    schemaVersion: 2,
    config: { mediaType: configType, digest: sha256("{}"), size: 2 },
    layers: [{ mediaType: layerType, digest: sha256(PROGRAM), size: PROGRAM.length, ...layer }],
    ...change,
  };
  manifests.set(tag, new TextEncoder().encode(JSON.stringify(manifest)));
}

Deno.test("a program that is pushed is pulled by tag and digest, and from the cache without the registry", async () => {
  await withRegistry(async ({ home, registry, pull }) => {
    const { host, requests } = registry;
    const pushed = await waft(["push", `oci://${host}/demo/hello:1`, HELLO], home, home);
    assert.equal(pushed.code, 0, pushed.err);
    const reference = pushed.out.trim();
    assert.match(reference, /^oci:\/\/127\.0\.0\.1:\d+\/demo\/hello:1@sha256:[0-9a-f]{64}$/);
    const manifest = JSON.parse(new TextDecoder().decode(registry.manifests.get("1")));
    assert.deepEqual([manifest.config.mediaType, manifest.layers[0].mediaType], MODULE_TYPES);
    const config = JSON.parse(new TextDecoder().decode(registry.blobs.get(manifest.config.digest)));
    assert.deepEqual([config.architecture, config.os, config.layerDigests], ["wasm", "wasip2", [
      sha256(readFileSync(HELLO)),
    ]]);
    assert.ok(config.component.imports.some((name: string) => name.startsWith("wasi:cli/stdout@0.2")));
    const got = await pull("demo/hello:1");
    assert.equal(got.reference, reference);
    assert.deepEqual(got.bytes, new Uint8Array(readFileSync(HELLO)));
    const run = await waft(["run", reference], home, home);
    assert.deepEqual([run.code, run.out], [0, "hello"], run.err);
    const count = requests.length;
    assert.deepEqual(await waft(["run", reference], home, home), run);
    assert.equal(requests.length, count, "the second run needs no registry");
    const text = await waft(["push", `oci://${host}/demo/hello:2`, HELLO.replace(".wasm", ".wat")], home, home);
    assert.deepEqual([text.code, /binary form/.test(text.err)], [1, true]);
  });
});

Deno.test("registries get the credentials of Docker's configuration for their own name", async () => {
  const denied = /denies access to demo \(status 401\); `docker login 127/;
  await withRegistry(async ({ registry, pull }) => {
    registry.isPrivate = true;
    store(registry, "1");
    await pull("demo:1");
    const tokens = registry.requests.filter(({ path }) => path === "/token");
    assert.equal(tokens.length, 1, "one token serves manifest and blob");
    const reference = parseReference(`oci://${registry.host}/demo:2`);
    await pushProgram(reference, PROGRAM, FACTS);
    assert.ok(registry.manifests.has("2"));
  }, { auths: { HOST: { auth: btoa("ada:engine") } } });
  for (const auths of [{}, { HOST: { auth: btoa("ada:expired") } }, { "127.0.0.1": { auth: btoa("ada:engine") } }]) {
    await withRegistry(async ({ registry, pull, cached }) => {
      registry.isPrivate = true;
      store(registry, "1");
      await assert.rejects(pull("demo:1"), denied);
      assert.deepEqual(cached(), []);
    }, { auths });
  }
});

Deno.test("a signature counts for its digest and its key only, and nothing unsigned is cached", async () => {
  await withRegistry(async ({ registry, home, cached }) => {
    store(registry, "1");
    const digest = sha256(registry.manifests.get("1") ?? "");
    const paths = machinePaths({ env: { WAFT_HOME: join(home, "waft") }, os: process.platform, home });
    const reference = parseReference(`oci://${registry.host}/demo:1`);
    const pull = (signedBy: string) => pullProgram(reference, { paths, signedBy });
    await assert.rejects(
      pull(sign({ ...registry, manifests: new Map() }, digest, { type: "ec" })),
      /has no signature in/,
    );
    const wrong = [
      { type: "ec", about: sha256("other") },
      { type: "ec", payloadType: "another" },
      { type: "rsa", of: new Uint8Array([1]) },
    ] as const;
    for (const options of wrong) {
      await assert.rejects(pull(sign(registry, digest, options)), /no signature by this key/);
    }
    const key = sign(registry, digest, { type: "ec" });
    sign(registry, digest, { type: "ec" });
    await assert.rejects(pull(key), /no signature by this key/);
    assert.deepEqual(cached(), []);
    for (const type of ["ec", "ed25519", "rsa"] as const) {
      const pulled = await pull(sign(registry, digest, { type }));
      assert.equal(pulled.bytes.length, PROGRAM.length);
    }
    for (const text of ["[]", "null", "{}", "{"]) {
      registry.manifests.set(`${digest.replace(":", "-")}.sig`, new TextEncoder().encode(text));
      await assert.rejects(pull(key), /signature's manifest (?:has no layers|is not JSON)/);
    }
  });
});

Deno.test("--signed-by takes a public key, for programs of registries", async () => {
  await withRegistry(async ({ registry, home }) => {
    const pushed = await waft(["push", `oci://${registry.host}/demo/hello:1`, HELLO], home, home);
    const [, digest = ""] = pushed.out.trim().split("@");
    const key = sign(registry, digest, { type: "ec" });
    writeFileSync(join(home, "key.pem"), key);
    writeFileSync(join(home, "text.pem"), "no key");
    writeFileSync(join(home, "empty.wat"), '(module (func (export "_start")))');
    const run = (...args: string[]) => waft(["run", "--signed-by", ...args], home, home);
    const reference = `oci://${registry.host}/demo/hello:1`;
    assert.deepEqual(await run("key.pem", reference), { code: 0, out: "hello", err: "" });
    const cases: [string, string, number, RegExp][] = [
      ["text.pem", reference, 1, /text\.pem: no public key in the form PEM/],
      ["none.pem", reference, 1, /none\.pem/],
      ["key.pem", HELLO, 2, /--signed-by is for programs of registries/],
      // Modules without a project take a shorter way.
      ["key.pem", "empty.wat", 2, /--signed-by is for programs of registries/],
    ];
    for (const [file, program, code, message] of cases) {
      const { code: status, err } = await run(file, program);
      assert.equal(status, code, err);
      assert.match(err, message);
    }
    sign(registry, digest, { type: "ec" });
    for (const command of ["run", "pull", "inspect", "serve"]) {
      const { code, err } = await waft([command, "--signed-by", "key.pem", reference], home, home);
      assert.equal(code, 1, command);
      assert.match(err, /has no signature by this key/);
    }
  });
});

Deno.test("a registry that breaks a promise is one error, and nothing is cached", async () => {
  const other = "sha256:" + "a".repeat(64);
  const artifacts: [object, object, RegExp][] = [
    [{}, { digest: sha256("else"), size: 4 }, /has no such program/],
    [{}, { size: PROGRAM.length - 1 }, /the program has more than 7 bytes/],
    [{}, { size: PROGRAM.length + 1 }, /the program has 8 bytes; its manifest says 9/],
    [{}, { size: 2 ** 40 }, /more than 1073741824 bytes/],
    [{}, { size: "8" }, /no size/],
    [{}, { digest: "md5:1" }, /no SHA-256 digest/],
    [{}, { mediaType: "text/plain" }, /not WebAssembly: the layer has the type "text\/plain"/],
    [{ config: { mediaType: "application/vnd.oci.image.config.v1+json" } }, {}, /not WebAssembly: the configuration/],
    [{ layers: [] }, {}, /not one layer/],
    [{ manifests: [] }, {}, /index of several artifacts/],
  ];
  await withRegistry(async ({ registry, pull, cached }) => {
    for (const [change, layer, message] of artifacts) {
      store(registry, "1", change, layer);
      await assert.rejects(pull("demo:1"), message);
    }
    store(registry, "1");
    store(registry, other);
    await assert.rejects(pull(`demo@${other}`), /the manifest does not have its digest: expected "sha256:a+", got/);
    const answers: [string, (response: ServerResponse) => void, RegExp][] = [
      ["/blobs/", (response) => response.end("\0asm\u0001\0\0\u0001"), /the program does not have its digest/],
      ["/blobs/", (response) => {
        response.writeHead(200, { "content-length": "8" });
        response.write("\0asm", () => response.destroy());
      }, /the program is incomplete/],
      ["/manifests/", (response) => response.end("no manifest"), /the manifest is not JSON/],
      ["/manifests/", (response) => {
        response.writeHead(200, { "content-length": String(1 << 23) });
        response.write(new Uint8Array(1 << 16));
      }, /the manifest has more than 4194304 bytes/],
      ["/manifests/", (response) => {
        // Node may call back at once for a connection that is gone, without an end.
        const pour = (error?: Error | null) => {
          if (!error && response.socket?.destroyed === false) response.write(new Uint8Array(1 << 20), pour);
        };
        pour();
      }, /the manifest has more than 4194304 bytes/],
      ["/manifests/", (response) => {
        response.writeHead(200, { "docker-content-digest": other });
        response.end("{}");
      }, /the manifest does not have its digest/],
      ["/manifests/", (response) => {
        response.writeHead(500);
        response.end('{"errors":[{"code":"A\\u001bB"}]}');
      }, /status 500 \("A.{1,8}B"\)/],
    ];
    for (const [part, answer, message] of answers) {
      registry.replace = ({ url = "" }, response) => {
        if (!url.includes(part)) return false;
        answer(response);
        return true;
      };
      await assert.rejects(pull("demo:1"), message);
    }
    assert.deepEqual(cached(), []);
  });
});

Deno.test("a redirection gets no credentials, and leads neither to clear text nor in circles", async () => {
  const storage = await startRegistry();
  storage.blobs.set(sha256(PROGRAM), PROGRAM);
  try {
    await withRegistry(async ({ registry, pull, cached }) => {
      registry.isPrivate = true;
      store(registry, "1");
      let location = "http://198.51.100.1/blob";
      registry.replace = ({ url = "" }, response) => {
        if (!url.includes("/blobs/")) return false;
        response.writeHead(307, { location });
        response.end();
        return true;
      };
      await assert.rejects(
        pull("demo:1"),
        /redirects the program to "http:\/\/198\.51\.100\.1", which is not encrypted/,
      );
      location = `/v2/demo/blobs/${sha256(PROGRAM)}`;
      await assert.rejects(pull("demo:1"), /redirects the program more than 5 times/);
      location = "http://user:secret@127.0.0.1/blob";
      await assert.rejects(pull("demo:1"), /has credentials/);
      assert.deepEqual(cached(), []);
      location = `http://${storage.host}/v2/demo/blobs/${sha256(PROGRAM)}`;
      assert.deepEqual((await pull("demo:1")).bytes, PROGRAM);
      assert.deepEqual(storage.requests.map(({ authorization }) => authorization), [undefined]);
    }, { auths: { HOST: { auth: btoa("ada:engine") } } });
  } finally {
    storage.close();
  }
});

Deno.test("references have the form of the distribution specification", () => {
  const digest = `sha256:${"0".repeat(64)}`;
  assert.deepEqual(parseReference(`oci://ghcr.io/a/b-c__d:1.0@${digest}`), {
    host: "ghcr.io",
    name: "a/b-c__d",
    tag: "1.0",
    digest,
  });
  const wrong = [
    "oci://a",
    "oci:///a:1",
    "oci://h/A:1",
    "oci://h/a/../b:1",
    "oci://h/a:-",
    "oci://h/a:1:2",
    "oci://h/a",
  ];
  for (
    const text of [...wrong, `oci://h/a@sha256:1`, "oci://u@h/a:1", "oci://h/a?b:1", "oci://h/a:1#b", "oci://h /a:1"]
  ) {
    assert.throws(() => parseReference(text), /a reference is oci:\/\/|names neither/, text);
  }
});

Deno.test(
  "a credential helper is asked for the registry's name",
  { ignore: process.platform === "win32" },
  async () => {
    const path = process.env["PATH"];
    try {
      await withRegistry(async ({ home, registry, pull }) => {
        const bin = join(home, "bin");
        mkdirSync(bin);
        const answer = `[ "$(cat)" = "${registry.host}" ] && echo '{"Username":"ada","Secret":"engine"}'`;
        writeFileSync(join(bin, "docker-credential-test"), `#!/bin/sh\n${answer}\n`, { mode: 0o755 });
        process.env["PATH"] = `${bin}:${path}`;
        registry.isPrivate = true;
        store(registry, "1");
        assert.deepEqual((await pull("demo:1")).bytes, PROGRAM);
      }, { credsStore: "test" });
      await withRegistry(async ({ registry, pull }) => {
        registry.isPrivate = true;
        store(registry, "1");
        await assert.rejects(pull("demo:1"), /"\.\.\/evil" is not the name of a credential helper/);
      }, { credsStore: "../evil" });
    } finally {
      process.env["PATH"] = path;
    }
  },
);
