/**
 * A hostile registry or mirror, answer by answer: claims that it makes without its key, and faults of connections.
 * Every row gives the named finding, writes no lockfile, and takes bounded time and memory.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { machinePaths } from "../../project/base/paths.ts";
import { ProjectError } from "../../project/base/diagnostic.ts";
import { addPlugins } from "../../project/ops/project/add.ts";
import { checkProject } from "../../project/ops/project/check.ts";
import { inspectPlugin } from "../../project/ops/project/inspect.ts";
import { SourceSet } from "../../project/packages/context.ts";
import { RegistrySource } from "../../project/packages/source_registry.ts";
import { MAX_RELEASES, type Release } from "../../project/packages/source.ts";
import { FakeRegistry, TestKey } from "./fake_registry.ts";
import { CODEC, codecDefinition, KV, kvDefinition } from "./sample_plugins.ts";
import { ALLOW_ALL, REGISTRY, TempProject } from "./temp_project.ts";

/** The code of the first finding; "ok" without one. Anything but a finding is a defect. */
async function codeOf(work: () => Promise<unknown>): Promise<string> {
  try {
    await work();
    return "ok";
  } catch (error) {
    if (!(error instanceof ProjectError)) throw error;
    return error.diagnostics[0].code;
  }
}

async function honest(): Promise<FakeRegistry> {
  const fake = new FakeRegistry();
  await fake.publish([codecDefinition("2.0.0")]);
  await fake.publish([kvDefinition("1.2.3")]);
  return fake;
}

function add(fake: FakeRegistry, project: TempProject): () => Promise<unknown> {
  return async () => {
    const context = await project.context(fake);
    await addPlugins(context, { root: project.root, directory: project.root, specs: [KV], decider: ALLOW_ALL });
  };
}

const INDEX = /\/index$/;
const RECORD = /\/versions\//;
const KEYS = /^\/api\/keys$/;
const BLOB = /^\/api\/blobs\//;

type Forge = (text: string, path: string) => string | Response;

function redirect(location: string): Forge {
  return () => new Response(null, { status: 302, headers: { location } });
}

function replaced(pattern: RegExp, by: string): Forge {
  return (text) => text.replaceAll(pattern, by);
}

function json(text: string, headers: { [name: string]: string } = {}, status = 200): Response {
  return new Response(text, { status, headers: { "content-type": "application/json", ...headers } });
}

/** Answers of a mirror without the registry's key: the name, the address, the finding, the answer. */
const FORGED: readonly (readonly [string, RegExp, string, Forge])[] = [
  ["to another host", INDEX, "registry.redirect", redirect("https://evil.example/x")],
  ["to another port", INDEX, "registry.redirect", redirect("https://plugins.example:444/x")],
  ["to another scheme", INDEX, "registry.redirect", redirect("http://plugins.example/x")],
  ["to data", INDEX, "registry.redirect", redirect("data:application/json,{}")],
  ["to a file", INDEX, "registry.redirect", redirect("file:///etc/hostname")],
  ["to no address", INDEX, "registry.redirect", redirect("http://[")],
  ["in a circle", INDEX, "registry.redirect", redirect("?again")],
  ["record elsewhere", RECORD, "registry.redirect", redirect("https://evil.example/x")],
  ["keys elsewhere", KEYS, "registry.redirect", redirect("https://evil.example/x")],
  ["archive elsewhere", BLOB, "registry.redirect", redirect("https://evil.example/x")],
  ["a web page", INDEX, "registry.answer", () => new Response("<html>", { headers: { "content-type": "text/html" } })],
  ["another JSON", INDEX, "registry.answer", (text) => json(text, { "content-type": "application/json-seq" })],
  ["two types", INDEX, "registry.answer", (text) => json(text, { "content-type": "application/json, text/html" })],
  ["unchanged, but never seen", INDEX, "registry.answer", () => new Response(null, { status: 304 })],
  ["no content", INDEX, "registry.answer", () => new Response(null, { status: 204 })],
  ["status 599", INDEX, "registry.answer", () => new Response("", { status: 599 })],
  ["a byte order mark", INDEX, "registry.answer", (text) => `\ufeff${text}`],
  ["a key twice", INDEX, "registry.answer", replaced(/^\{/g, '{"schemaVersion":1,')],
  ["a release twice", INDEX, "registry.answer", replaced(/"releases":\[(\{.*\})\]/g, '"releases":[$1,$1]')],
  ["another id", INDEX, "registry.answer", replaced(/"id":"github.com\/acme\/codec"/g, '"id":"github.com/acme/kv"')],
  ["an id of look-alikes", INDEX, "registry.answer", replaced(/acme\/kv/g, "acme/\u043Av")],
  ["another algorithm", INDEX, "registry.answer", replaced(/sha256:/g, "sha512:")],
  ["a digest in capitals", INDEX, "registry.answer", replaced(/sha256:[0-9a-f]/g, "sha256:A")],
  ["a huge number", INDEX, "registry.answer", replaced(/"size":[0-9]+/g, '"size":9007199254740993')],
  ["no time", INDEX, "registry.answer", replaced(/"publishedAt":"[^"]*",?/g, "")],
  ["an earlier time", INDEX, "signature.disagrees", replaced(/2026-08-01T/g, "2001-01-01T")],
  ["no time at all", INDEX, "signature.disagrees", replaced(/2026-08-01T/g, "9999-99-99T")],
  ["another publisher", INDEX, "signature.disagrees", replaced(/com\/acme","pub/g, 'com/evil","pub')],
  ["another definition", INDEX, "signature.disagrees", replaced(/Digest":"sha256:../g, 'Digest":"sha256:00')],
  ["another archive", INDEX, "signature.disagrees", replaced(/"digest":"sha256:../g, '"digest":"sha256:00')],
  ["another size", INDEX, "signature.disagrees", replaced(/"size":/g, '"size":1')],
  ["an engine that fits", INDEX, "integrity.definition", replaced(/"engines":\{[^}]*\}/g, '"engines":{}')],
  ["another system", INDEX, "resolve.conflict", replaced(/"platforms":\[\]/g, '"platforms":["plan9/mips"]')],
  ["no requirements", INDEX, "integrity.definition", replaced(/"requires":\{[^}]+\}/g, '"requires":{}')],
  ["record: a key twice", RECORD, "registry.answer", replaced(/"record":\{/g, '"record":{"package":"x.y/z",')],
  ["record: more keys", RECORD, "registry.answer", replaced(/"record":\{/g, '"record":{"more":1,')],
  ["record: none", RECORD, "signature.missing", () => new Response("", { status: 404 })],
  ["record: no signature", RECORD, "registry.answer", replaced(/,"signature":.*/g, "}")],
  ["record: an empty signature", RECORD, "signature.wrong", replaced(/"value":"[^"]*"/g, '"value":""')],
  ["record: another algorithm", RECORD, "registry.answer", replaced(/Ed25519/g, "none")],
  ["record: another key's name", RECORD, "signature.key", replaced(/"keyId":"[^"]*"/g, '"keyId":"0123456789abcdef"')],
  ["record: a key in capitals", RECORD, "registry.answer", replaced(/"keyId":"[^"]/g, '"keyId":"A')],
  ["record: of another release", RECORD, "signature.disagrees", () => ""],
  ["keys: none", KEYS, "signature.missing", () => new Response("", { status: 404 })],
  ["keys: an empty list", KEYS, "signature.key", () => '{"keys":[]}'],
  ["keys: another algorithm", KEYS, "registry.answer", replaced(/Ed25519/g, "Ed448")],
  ["keys: under another name", KEYS, "signature.key", replaced(/"id":"[^"]*"/g, '"id":"0123456789abcdef"')],
  ["keys: not a point", KEYS, "signature.key", replaced(/"publicKey":"[^"]*"/g, `"publicKey":"${"A".repeat(43)}="`)],
  ["archive: another one", BLOB, "integrity.artifact", (text) => `${text.slice(0, -1)}!`],
  ["archive: longer", BLOB, "registry.answer", (text) => `${text}!`],
  ["archive: shorter", BLOB, "integrity.artifact", (text) => text.slice(0, -1)],
  ["archive: none", BLOB, "registry.not-found", () => new Response("", { status: 404 })],
  ["problem: no texts", INDEX, "registry.rejected", () => json('{"title":{"toString":1},"errors":[null]}', {}, 422)],
  ["problem: deep", INDEX, "registry.rejected", () => json("[".repeat(1 << 20), {}, 422)],
];

Deno.test("hostile answers: a mirror without the registry's key gets nothing locked, and each lie has its finding", async () => {
  const fake = await honest();
  const other = await (await fake.fetch(`${REGISTRY}/api/packages/github.com%2Facme%2Fkv/versions/1.2.3`)).text();
  for (const [name, address, code, forge] of FORGED) {
    let hits = 0;
    fake.tamper = async (path, response) => {
      if (!address.test(path)) return response;
      hits++;
      const body = new TextDecoder("latin1").decode(new Uint8Array(await response.clone().arrayBuffer()));
      const forged = name.endsWith("of another release") ? other : forge(body, path);
      if (typeof forged !== "string") return forged;
      const bytes = BLOB.test(path)
        ? Uint8Array.from(forged, (c) => c.charCodeAt(0))
        : new TextEncoder().encode(forged);
      return new Response(bytes, { status: response.status, headers: response.headers });
    };
    const project = new TempProject();
    try {
      assert.equal(await codeOf(add(fake, project)), code, name);
      assert.ok(hits > 0, name);
      assert.equal(project.read("waft-lock.json"), undefined, name);
    } finally {
      project.remove();
    }
  }
});

Deno.test("hostile answers: minReleaseAge holds against a mirror that backdates a release or withholds its time", async () => {
  const fake = await honest();
  for (const forge of [replaced(/2026-08-01T/g, "2001-01-01T"), replaced(/"publishedAt":"[^"]*",?/g, "")]) {
    fake.tamper = async (path, response) =>
      INDEX.test(path) ? json(forge(await response.text(), path) as string) : response;
    const project = new TempProject();
    try {
      const context = await project.context(fake, { now: () => Date.parse("2026-08-01T01:00:00Z") });
      const young = { ...context, machine: { ...context.machine, minReleaseAgeMs: 86_400_000 } };
      const request = { root: project.root, directory: project.root, specs: [KV], decider: ALLOW_ALL };
      assert.match(await codeOf(() => addPlugins(young, request)), /^(?:signature\.disagrees|registry\.answer)$/);
      assert.equal(project.read("waft-lock.json"), undefined);
    } finally {
      project.remove();
    }
  }
});

Deno.test("hostile answers: plugin inspect shows what the registry signed, or the finding", async () => {
  const fake = await honest();
  const project = new TempProject();
  try {
    for (const version of ["", "@1.2.3"]) {
      for (const [name, address, code, forge] of FORGED) {
        if (code !== "signature.disagrees" || address !== INDEX) continue;
        fake.tamper = async (path, response) =>
          address.test(path) ? json(forge(await response.text(), path) as string) : response;
        const context = await project.context(fake);
        assert.equal(await codeOf(() => inspectPlugin(context, project.root, `${KV}${version}`)), code, name);
      }
    }
    fake.tamper = undefined;
    const [shown] = await inspectPlugin(await project.context(fake), project.root, `${KV}@1.2.3`);
    assert.deepEqual([shown.publisher, shown.publishedAt], ["github.com/acme", "2026-08-01T00:00:00Z"]);
  } finally {
    project.remove();
  }
});

Deno.test("hostile answers: the registry need not keep releases that an imposter invented", async () => {
  const fake = await honest();
  const project = new TempProject();
  try {
    const invented = (text: string): string => {
      const index = JSON.parse(text) as { readonly releases: { version: string }[] };
      index.releases.push({ ...index.releases[0], version: "99.0.0" });
      return JSON.stringify(index);
    };
    fake.tamper = async (path, response) => INDEX.test(path) ? json(invented(await response.text())) : response;
    assert.equal(await codeOf(add(fake, project)), "signature.missing");
    // A long ETag does not bypass the memory of earlier answers.
    fake.tamper = async (path, response) =>
      INDEX.test(path) ? json(await response.text(), { etag: `"${"x".repeat(1000)}"` }) : response;
    assert.equal(await codeOf(add(fake, project)), "ok");
    await fake.publish([codecDefinition("2.0.1")]);
    const request = { root: project.root, directory: project.root, decider: ALLOW_ALL };
    await addPlugins(await project.context(fake), { ...request, specs: [], update: "all" });
    assert.match(project.read("waft-lock.json")!, /"2\.0\.1"/);
    const last = fake.published.pop()!;
    assert.deepEqual([last.id, last.version], [CODEC, "2.0.1"]);
    const again = async (): Promise<unknown> =>
      await addPlugins(await project.context(fake), { ...request, specs: [], update: "all" });
    assert.equal(await codeOf(again), "registry.rollback");
    const checked = await checkProject(await project.context(fake), project.root);
    assert.deepEqual(checked.diagnostics.map(({ code }) => code), ["registry.rollback", "log.rollback"]);
  } finally {
    project.remove();
  }
});

Deno.test("hostile answers: keys pinned while another command asked the registry decide", async () => {
  const fake = await honest();
  const project = new TempProject();
  try {
    // The imposter answers the question for keys late: meanwhile another command has pinned the registry's own.
    const imposter = await honest();
    imposter.keys = [new TestKey()];
    imposter.tamper = async (path, response) => {
      if (KEYS.test(path)) await add(fake, project)();
      return response;
    };
    const victim = new TempProject();
    const context = await project.context(imposter);
    const request = { root: victim.root, directory: victim.root, specs: [KV], decider: ALLOW_ALL };
    assert.equal(await codeOf(() => addPlugins(context, request)), "signature.key-changed");
    victim.remove();
  } finally {
    project.remove();
  }
});

Deno.test("hostile answers: lists of a search have their form, and no other text reaches the terminal", async () => {
  const project = new TempProject();
  const fake = await honest();
  try {
    const lists = [
      "null",
      "[]",
      '{"packages":[{"name":{},"version":"1.0.0","description":""}],"total":1}',
      '{"packages":[{"name":"github.com/acme/kv","version":"1.0.0","description":null}],"total":1}',
      '{"packages":[{"name":"acme\\u001b[2J","version":"1.0.0","description":""}],"total":1}',
      '{"packages":[],"packages":[],"total":1}',
      '{"packages":[],"total":1e308}',
      '{"packages":[],"total":-1}',
      `{"packages":[${Array(51).fill('{"name":"a.b/c","version":"1.0.0","description":""}').join(",")}],"total":51}`,
      `{"packages":[{"name":"a.b/c","version":"1.0.0","description":"${"x".repeat(501)}"}],"total":1}`,
    ];
    for (const list of lists) {
      fake.tamper = () => json(list);
      const source = new SourceSet(await project.context(fake), project.root).registry(REGISTRY);
      assert.equal(await codeOf(() => source.search("kv")), "registry.answer", list.slice(0, 100));
    }
    for (const list of ["null", '{"providers":[{"id":"\\u202e"}]}', '{"providers":[{}]}', '{"providers":{}}']) {
      fake.tamper = () => json(list);
      const source = new SourceSet(await project.context(fake), project.root).registry(REGISTRY);
      assert.deepEqual(await source.providers("a.b/c@1"), [], list);
    }
  } finally {
    project.remove();
  }
});

Deno.test("an index of as many releases as a plugin may have is read", async () => {
  const project = new TempProject();
  const fake = await honest();
  try {
    const index = await (await fake.fetch(`${REGISTRY}/api/plugins/github.com%2Facme%2Fcodec/index`)).json();
    const { releases: [release], ...rest } = index as { readonly releases: readonly object[] };
    const many = (count: number) => Array.from({ length: count }, (_, k) => ({ ...release, version: `1.0.${k}` }));
    let count = MAX_RELEASES;
    fake.tamper = () => json(JSON.stringify({ ...rest, releases: many(count) }));
    const source = async () => new SourceSet(await project.context(fake), project.root).registry(REGISTRY);
    assert.equal((await (await source()).releases(CODEC))?.length, MAX_RELEASES);
    count++;
    await assert.rejects(source().then((from) => from.releases(CODEC)), /registry\.answer/);
  } finally {
    project.remove();
  }
});

Deno.test("hostile answers: indexes that name ever more plugins end at a limit of bytes", async () => {
  const project = new TempProject();
  const fake = await honest();
  try {
    const index = await (await fake.fetch(`${REGISTRY}/api/plugins/github.com%2Facme%2Fcodec/index`)).json();
    const [release] = (index as { readonly releases: readonly object[] }).releases;
    let bytes = 0;
    fake.tamper = (path, response) => {
      if (!INDEX.test(path)) return response;
      const id = decodeURIComponent(path.split("/")[3]);
      const requires = Object.fromEntries(Array.from({ length: 32 }, (_, k) => [`${id.slice(0, 40)}/${k}`, "*"]));
      const text = JSON.stringify({ schemaVersion: 1, id, package: id, releases: [{ ...release, requires }] });
      bytes += 4 << 20;
      // Blanks, which compression makes free.
      return json(text + " ".repeat((4 << 20) - text.length));
    };
    await assert.rejects(add(fake, project)(), /registry\.answer: .* more than 67108864 bytes of indexes/);
    assert.ok(bytes <= 256 << 20, `${bytes} bytes`);
  } finally {
    project.remove();
  }
});

type Wire = (socket: Socket) => void;

const OK = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";

/** Sends a piece again and again. */
function drip(head: string, piece: string): Wire {
  return (socket) => {
    socket.write(head);
    const timer = setInterval(() => socket.write(piece), 20);
    socket.on("close", () => clearInterval(timer));
  };
}

/** Sends a piece as often as the client takes it. */
function flood(head: string, piece: string): Wire {
  return (socket) => {
    const send = (): void => {
      while (!socket.destroyed && socket.write(piece));
    };
    socket.write(head);
    socket.on("drain", send);
    send();
  };
}

function whole(head: string, body: string | Uint8Array = ""): Wire {
  return (socket) => {
    socket.write(head);
    socket.end(body);
  };
}

const ZEROS = new Uint8Array(64 << 20);
const SPACES = " ".repeat(1 << 16);

/** Bytes on the wire, none of which is a complete answer. */
const WIRES: readonly (readonly [string, Wire])[] = [
  ["no answer", () => {}],
  ["closed at once", (socket) => void socket.destroy()],
  ["reset", (socket) => void socket.resetAndDestroy()],
  ["not HTTP", whole("hello\r\n\r\n")],
  ["a head that drips", drip("HTTP/1.1 200 OK\r\n", "x")],
  ["a body that drips", drip(`${OK}content-length: 100000\r\n\r\n`, " ")],
  ["a body without end", flood(`${OK}\r\n`, SPACES)],
  ["chunks without end", flood(`${OK}transfer-encoding: chunked\r\n\r\n`, `10000\r\n${SPACES}\r\n`)],
  ["fields without end", flood("HTTP/1.1 200 OK\r\n", `x-a: ${"y".repeat(1000)}\r\n`)],
  ["early answers without end", drip("", "HTTP/1.1 100 Continue\r\n\r\n")],
  ["a huge length", whole(`${OK}content-length: 1000000000000000\r\n\r\n{`)],
  ["a negative length", whole(`${OK}content-length: -1\r\n\r\n{}`)],
  ["two lengths", whole(`${OK}content-length: 2\r\ncontent-length: 20\r\n\r\n{}`)],
  ["a body cut off", whole(`${OK}content-length: 100\r\n\r\n{}`)],
  ["a chunk cut off", whole(`${OK}transfer-encoding: chunked\r\n\r\n10\r\n{}`)],
  ["a chunk without size", whole(`${OK}transfer-encoding: chunked\r\n\r\nzz\r\n{}`)],
  ["64 MB in gzip", whole(`${OK}content-encoding: gzip\r\n\r\n`, gzipSync(ZEROS))],
  ["64 MB in Brotli", whole(`${OK}content-encoding: br\r\n\r\n`, brotliCompressSync(ZEROS))],
  ["gzip cut off", whole(`${OK}content-encoding: gzip\r\n\r\n`, gzipSync(ZEROS).subarray(0, 1000))],
  ["no gzip", whole(`${OK}content-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}`)],
  ["a redirect with a body", flood("HTTP/1.1 302 Found\r\nlocation: /x\r\n\r\n", SPACES)],
  ["not found, without end", flood("HTTP/1.1 404 x\r\n\r\n", SPACES)],
  ["an error without end", flood("HTTP/1.1 500 x\r\n\r\n", SPACES)],
];

const RELEASE: Release = {
  id: "a.b/c",
  version: "1.0.0",
  package: "a.b/c",
  definitionDigest: `sha256:${"0".repeat(64)}`,
  requires: {},
  compatibility: { engines: {}, platforms: [] },
  artifact: { digest: `sha256:${"0".repeat(64)}`, size: 1000 },
};

Deno.test("hostile connections: each question of the client ends with a finding, however the bytes come", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-test-"));
  const paths = machinePaths({ env: { WAFT_HOME: join(home, "waft") }, os: "linux", home });
  let wire: Wire = () => {};
  let sent = 0;
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => {
      open.delete(socket);
      sent += socket.bytesWritten;
    });
    socket.once("data", () => wire(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as { readonly port: number }).port}`;
  const source = (): RegistrySource => new RegistrySource(url, { paths, timeoutMs: 300, token: "waft_12345678" });
  try {
    for (const [name, bytes] of WIRES) {
      wire = bytes;
      sent = 0;
      const asked: (readonly [string, () => Promise<unknown>])[] = [
        ["index", () => source().releases("a.b/c")],
        ["record", () => source().record("a.b/c", "1.0.0")],
        ["keys", () => source().keys()],
        ["archive", () => source().archive(RELEASE)],
        ["search", () => source().search("kv")],
        [
          "archive of any size",
          () => source().archive({ ...RELEASE, artifact: { ...RELEASE.artifact, size: 2 ** 50 } }),
        ],
      ];
      for (const [question, ask] of asked) {
        const code = await codeOf(ask);
        assert.match(code, /^registry\.(?:unreachable|answer|redirect)$/, `${name}: ${question}`);
      }
      assert.deepEqual(await source().providers("a.b/c@1"), [], name);
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => setTimeout(resolve, 0));
      // Backpressure ends what the client does not take: far less than an answer without end.
      assert.ok(sent < 256 << 20, `${name}: ${sent} bytes`);
    }
  } finally {
    for (const socket of open) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
    rmSync(home, { recursive: true, force: true });
  }
});

Deno.test("busy registry: a question is repeated when the answer asks for a short wait, and three times at most", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-busy-"));
  try {
    const fake = await honest();
    const paths = machinePaths({ env: { WAFT_HOME: join(home, "waft") }, os: "linux", home });
    for (
      const [busy, after, code, questions] of [
        [1, "0", "ok", 2],
        [3, "0", "ok", 4],
        [4, "0", "registry.busy", 4],
        [1, "11", "registry.busy", 1],
        [1, "Wed, 21 Oct 2026 07:28:00 GMT", "registry.busy", 1],
      ] as const
    ) {
      for (const status of [429, 503]) {
        let asked = 0;
        const send: typeof fetch = async (input, init) => {
          if (!INDEX.test(new URL(String(input)).pathname)) return await fake.fetch(String(input), init);
          if (asked++ >= busy) return await fake.fetch(String(input), init);
          return new Response("{}", { status, headers: { "retry-after": after } });
        };
        const source = new RegistrySource(REGISTRY, { paths, fetch: send });
        const expected = code === "ok" || status === 429 ? code : "registry.answer";
        assert.equal(await codeOf(() => source.releases(KV)), expected, `${status} ${busy} ${after}`);
        assert.equal(asked, questions, `${status} ${busy} ${after}`);
        rmSync(join(home, "waft"), { recursive: true, force: true });
      }
    }
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
