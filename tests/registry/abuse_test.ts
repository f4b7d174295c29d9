/**
 * The registry's abuse cases, each a named test or step. Those of archives go over HTTP here, to cover the whole path;
 * project/packages/archive_test.ts has them for the reader alone. abuse_cases_test.ts lists all cases, including the
 * client's.
 */
import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { writeArchive } from "../../project/packages/archive.ts";
import type { Definition } from "../../project/definitions/definition.ts";
import { CheckPool } from "../../registry/publish/check_pool.ts";
import { listen } from "../../registry/serve.ts";
import { CODEC, codecDefinition, definition } from "../project/sample_plugins.ts";
import {
  contentDigest,
  type ProblemBody,
  realArchive,
  realFiles,
  type TestRegistry,
  withRegistry,
} from "./test_registry.ts";
import { HANG_MS } from "../support/hang.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

async function acme(r: TestRegistry): Promise<string> {
  return (await r.author("acme", ["github.com/acme"])).token;
}

/** One ustar entry; `change` damages its header before the checksum is made. */
function entry(path: string, bytes: Uint8Array, change: (header: Uint8Array) => void = () => {}): Uint8Array {
  const block = new Uint8Array(512 + Math.ceil(bytes.length / 512) * 512);
  const put = (text: string, at: number): void => block.set(encode(text), at);
  put(path, 0);
  put("0000644\0", 100);
  put("0000000\0", 108);
  put("0000000\0", 116);
  put(`${bytes.length.toString(8).padStart(11, "0")}\0`, 124);
  put("00000000000\0", 136);
  put("        ", 148);
  put("0", 156);
  put("ustar\u000000", 257);
  change(block);
  let sum = 0;
  for (const byte of block.subarray(0, 512)) sum += byte;
  put(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  block.set(bytes, 512);
  return block;
}

/** A valid package with an additional entry. */
function archiveWith(
  extra: Uint8Array | readonly Uint8Array[],
  tail: Uint8Array = new Uint8Array(1024),
): Uint8Array<ArrayBuffer> {
  const parts = [...realFiles([codecDefinition()])].map(([path, bytes]) => entry(path, bytes));
  return new Uint8Array(
    gzipSync(Buffer.concat([...parts, ...(Array.isArray(extra) ? extra : [extra as Uint8Array]), tail])),
  );
}

const set = (at: number, text: string) => (header: Uint8Array): void => header.set(encode(text), at);

/** Name, archive, the code that must be found. */
const TAR_CASES: readonly (readonly [string, () => Uint8Array<ArrayBuffer>, string])[] = [
  ["a path that climbs with ..", () => archiveWith(entry("../evil", encode("x"))), "archive.path"],
  ["an absolute path", () => archiveWith(entry("/etc/passwd", encode("x"))), "archive.path"],
  ["a drive letter", () => archiveWith(entry("C:evil", encode("x"))), "archive.path"],
  ["a backslash", () => archiveWith(entry("a\\..\\b", encode("x"))), "archive.path"],
  ["NUL inside a name", () => archiveWith(entry("a\0b", encode("x"))), "archive.path"],
  ["a symbolic link", () => archiveWith(entry("link", encode(""), set(156, "2"))), "archive.entry-type"],
  ["a hard link", () => archiveWith(entry("link", encode(""), set(156, "1"))), "archive.entry-type"],
  ["a device", () => archiveWith(entry("null", encode(""), set(156, "3"))), "archive.entry-type"],
  [
    "a PAX header that overrides a path",
    () => archiveWith(entry("pax", encode("18 path=../../evil\n"), set(156, "x"))),
    "archive.entry-type",
  ],
  ["a GNU sparse entry", () => archiveWith(entry("sparse", encode(""), set(156, "S"))), "archive.entry-type"],
  ["a name twice", () => archiveWith(entry("waft.json", encode("{}"))), "archive.duplicate"],
  ["names that differ in case", () => archiveWith(entry("WAFT.JSON", encode("{}"))), "archive.duplicate"],
  [
    "names that differ in normalisation",
    () => archiveWith([entry("README\u00e9", encode("")), entry("READMEe\u0301", encode(""))]),
    "archive.duplicate",
  ],
  ["a name that Windows reserves", () => archiveWith(entry("register/con.json", encode("x"))), "archive.path"],
  ["a size that lies", () => archiveWith(entry("README", encode("x"), set(124, "77777777777\0"))), "archive.too-large"],
  ["bytes after the end", () => archiveWith([], new Uint8Array([...new Uint8Array(1024), 1])), "archive.trailing"],
  [
    "a second gzip member",
    () => new Uint8Array(Buffer.concat([realArchive([codecDefinition()]), gzipSync("x")])),
    "archive.trailing",
  ],
  ["a bomb by ratio", () => archiveWith(entry("README", new Uint8Array(30 << 20))), "archive.bomb"],
  [
    "a bomb by count",
    () => archiveWith(Array.from({ length: 1001 }, (_, i) => entry(`register/${i}`, encode("")))),
    "archive.too-many",
  ],
  ["a file that is not shipped", () => archiveWith(entry(".env", encode("SECRET=1"))), "publish.file"],
  ["no gzip at all", () => new Uint8Array(encode("PK\u0003\u0004 and much more text")), "archive.gzip"],
];

Deno.test("tar: every hostile archive is refused with its finding, and the registry goes on", async (t) => {
  await withRegistry(async (r) => {
    const token = await acme(r);
    for (const [name, make, code] of TAR_CASES) {
      await t.step(name, async () => {
        const problem = await r.problem(...r.publishing(CODEC, "2.0.1", make(), token));
        assert.equal(problem.code, "publish.invalid");
        assert.equal(problem.errors[0].code, code, JSON.stringify(problem.errors));
      });
    }
    assert.equal((await r.publish(token, [codecDefinition()])).status, 201);
  });
});

Deno.test("a module that is not a module, and one with a forbidden import", () =>
  withRegistry(async (r) => {
    const token = await acme(r);
    const invalid = await r.publish(token, [codecDefinition()], { "dist/0.wasm": "\0asm\u0001\0\0\0 nonsense" });
    assert.equal((invalid.body as ProblemBody).errors[0].code, "link.module");
    const { assemble } = await import("../../project/definitions/engine_inspector.ts");
    const greedy = assemble(`(module (import "waft:fs@1" "remove" (func (param i32 i32) (result i32))))`);
    const hidden = await r.publish(token, [definition(CODEC, "2.0.1")], { "dist/0.wasm": greedy });
    assert.equal((hidden.body as ProblemBody).errors[0].code, "link.unrequested");
    const env = assemble(`(module (import "env" "system" (func (param i32) (result i32))))`);
    const unknown = await r.publish(token, [definition(CODEC, "2.0.1")], { "dist/0.wasm": env });
    assert.equal((unknown.body as ProblemBody).errors[0].code, "link.import");
    const vain = { ...definition(CODEC, "2.0.1"), authorities: [{ name: "random", mode: "optional", reason: "?" }] };
    const unused = await r.publish(token, [vain as Definition], { "dist/0.wasm": assemble("(module)") });
    assert.equal((unused.body as ProblemBody).errors[0].code, "link.unused");
  }));

Deno.test("HTTP: bodies", (t) =>
  withRegistry(async (r) => {
    const token = await acme(r);
    const archive = realArchive([codecDefinition()]);
    const [path, good] = r.publishing(CODEC, "2.0.1", archive, token);
    const headers = good.headers as { [name: string]: string };
    const send = (more: { [name: string]: string }): RequestInit => ({ ...good, headers: { ...headers, ...more } });
    const code = async (more: { [name: string]: string }): Promise<string> => (await r.problem(path, send(more))).code;
    await t.step("wrong digest", async () => {
      assert.equal(await code({ "content-digest": contentDigest(encode("other")) }), "request.digest");
      assert.equal(await code({ "content-digest": "md5=:AAAA:" }), "request.digest");
    });
    await t.step("wrong content type", async () => {
      assert.equal(await code({ "content-type": "application/json" }), "request.type");
    });
    await t.step("a condition that would replace a version", async () => {
      assert.equal(await code({ "if-none-match": '"x"' }), "request.precondition");
    });
    await t.step("oversized", async () => {
      const large = new Uint8Array((1 << 20) + 1);
      const init = { ...send({ "content-digest": contentDigest(large) }), body: large };
      assert.equal((await r.problem(path, init)).code, "request.too-large");
    });

    const raw = (head: string, body: string, times: number): Promise<string> =>
      new Promise((resolve, reject) => {
        const { hostname, port } = new URL(r.url);
        let got = "";
        const socket = connect(Number(port), hostname, () => {
          socket.write(head);
          for (let i = 0; i < times; i++) socket.write(body);
        });
        socket.on("data", (d) => got += d.toString());
        socket.on("close", () => resolve(got));
        socket.on("error", (e) => got === "" ? reject(e) : resolve(got));
        setTimeout(() => socket.destroy(), HANG_MS).unref();
      });
    const put =
      `PUT ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/gzip\r\n` +
      `Content-Digest: ${contentDigest(archive)}\r\n`;
    await t.step("a length that lies", async () => {
      assert.match(await raw(`${put}Content-Length: 99999999\r\n\r\n`, "x", 1), /^HTTP\/1\.1 413 /);
    });
    await t.step("chunked without end", async () => {
      const chunk = `4000\r\n${"x".repeat(0x4000)}\r\n`;
      assert.match(await raw(`${put}Transfer-Encoding: chunked\r\n\r\n`, chunk, 100), /^HTTP\/1\.1 413 /);
    });
    await t.step("slow body", async () => {
      assert.match(await raw(`${put}Content-Length: 500\r\n\r\n`, "x", 1), /^HTTP\/1\.1 408 /);
    });
    assert.equal((await r.api(path, good)).response.status, 201);
  }, { settings: { archiveBytes: 1 << 20, bodyTimeoutMs: 400 } }));

Deno.test("HTTP: heads that are too large, broken, ambiguous or never end", async () => {
  const listener = await listen(() => Promise.resolve(new Response("ok")), {
    host: "127.0.0.1",
    port: 0,
    headersTimeoutMs: 300,
  });
  const raw = (text: string): Promise<string> =>
    new Promise((resolve) => {
      let got = "";
      const socket = connect(listener.port, "127.0.0.1", () => socket.write(text));
      socket.on("data", (d) => got += d.toString());
      socket.on("error", () => {});
      const guard = setTimeout(() => {
        got = "still open";
        socket.destroy();
      }, 30_000);
      socket.on("close", () => {
        clearTimeout(guard);
        resolve(got);
      });
    });
  try {
    assert.equal(await raw("GET / HTTP/1.1\r\nHost: x\r\n"), "", "a head that never ends");
    assert.match(
      await raw("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
      /^HTTP\/1\.1 200 [\s\S]*ok$/,
      "an idle connection ends",
    );
    const hidden = "a:b\r\n".repeat(2500);
    assert.match(
      await raw(`GET / HTTP/1.1\r\nHost: x\r\n${hidden}X-Forwarded-For: 192.0.2.1\r\n\r\n`),
      /^HTTP\/1\.1 400 /,
    );
    const lines = Array.from({ length: 5000 }, (_, i) => `X-${i}: 1\r\n`).join("");
    for (
      const head of [
        `GET / HTTP/1.1\r\nHost: x\r\nX-A: ${"a".repeat(100_000)}\r\n\r\n`,
        `GET / HTTP/1.1\r\nHost: x\r\n${lines}\r\n`,
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "nonsense\r\n\r\n",
      ]
    ) assert.match(await raw(head), /^HTTP\/1\.1 400 /, head.slice(0, 60));
  } finally {
    await listener.close(100);
  }
});

Deno.test("HTTP: requests that were sent ahead end with their connection", async () => {
  let calls = 0;
  let release = () => {};
  const held = new Promise<void>((resolve) => release = resolve);
  const listener = await listen(async ({ url }) => {
    calls++;
    if (url.endsWith("/held")) await held;
    return new Response("ok");
  }, { host: "127.0.0.1", port: 0 });
  const ahead = "GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(20);
  const socket = connect(
    listener.port,
    "127.0.0.1",
    () => socket.write(`GET /held HTTP/1.1\r\nHost: x\r\n\r\n${ahead}`),
  );
  while (calls < 21) await new Promise((resolve) => setTimeout(resolve, 2));
  const gone = new Promise((resolve) => socket.once("close", resolve));
  socket.destroy();
  await gone;
  release();
  // Closing waits for the requests in progress; one that never ends would hold it for an hour.
  await listener.close(3_600_000);
});

Deno.test("HTTP: a connection on which too many requests were sent ahead is closed", async () => {
  let calls = 0;
  let release = () => {};
  const held = new Promise<void>((resolve) => release = resolve);
  const listener = await listen(async ({ url }) => {
    calls++;
    if (url.endsWith("/held")) await held;
    return new Response("ok");
  }, { host: "127.0.0.1", port: 0 });
  const requests = `GET /held HTTP/1.1\r\nHost: x\r\n\r\n${"GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(5000)}`;
  const socket = connect(listener.port, "127.0.0.1", () => socket.write(requests));
  socket.on("error", () => {});
  await new Promise((resolve) => socket.once("close", resolve));
  assert.ok(calls < 1000);
  release();
  await listener.close(3_600_000);
});

/** The bytes that a client sends after its request while it does not read the answer. */
const STALLING_CLIENTS = { "silent": "", "talking nonsense": "x" };

for (const [kind, more] of Object.entries(STALLING_CLIENTS)) {
  for (const path of ["/stream", "/whole"]) {
    Deno.test(`HTTP: a client that takes nothing of its answer is cut off (${kind}, ${path})`, async () => {
      const bytes = new Uint8Array(16 << 20);
      const headers = path === "/stream" ? { "content-length": String(bytes.length) } : undefined;
      let answer = () => {};
      const answered = new Promise<void>((resolve) => answer = resolve);
      const listener = await listen(() => {
        answer();
        return Promise.resolve(new Response(bytes, headers && { headers }));
      }, { host: "127.0.0.1", port: 0, sendingMs: 20, headersTimeoutMs: 3_600_000 });
      const socket = connect(listener.port, "127.0.0.1", () => socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`));
      socket.pause();
      socket.on("error", () => {});
      await answered;
      if (more !== "") socket.write(more);
      // Closing waits for the request, which ends only if it is cut off.
      await listener.close(3_600_000);
      socket.destroy();
    });
  }
}

/** Kind of abuse, and segments that are not names. */
const NAME_CASES: readonly (readonly [string, readonly string[]])[] = [
  ["encoded traversal in a name", ["..%2F..%2Fetc%2Fpasswd", "github.com%2Facme%2F..%2Fcodec", "github.com%5Cacme"]],
  ["double encoding", ["%252e%252e%252f", "github.com%252Facme%252Fcodec"]],
  ["header injection by a name", ["github.com%0d%0aX-Evil:%201", "github.com%2Facme%2Fkv%0d%0aX-Evil:%201"]],
  ["not names at all", ["github.com%00", "%zz", "a".repeat(400), "__proto__"]],
];

Deno.test("HTTP: names", (t) =>
  withRegistry(async (r) => {
    const token = await acme(r);
    await r.publish(token, [codecDefinition()]);
    for (const [kind, names] of NAME_CASES) {
      await t.step(kind, async () => {
        for (const name of names) {
          for (const path of [`/api/packages/${name}`, `/api/plugins/${name}/index`]) {
            const { response, body } = await r.api(path);
            const { code } = body as ProblemBody;
            assert.ok(["request.name", "route.unknown"].includes(code), `${path}: ${code}`);
            assert.equal(response.headers.get("x-evil"), null);
          }
        }
      });
    }
    await t.step("invalid versions", async () => {
      for (const version of ["1", "v2.0.1", "02.0.1", "2.0.1%0d%0a", "1".repeat(300), "9".repeat(100) + ".0.0"]) {
        const problem = await r.problem(`/api/packages/github.com:acme:codec/versions/${version}`);
        assert.equal(problem.code, "request.version", version);
      }
    });
    assert.equal((await r.api("/api/packages/github.com%2Facme%2Fcodec")).response.status, 200);
  }));

Deno.test("HTTP: cursors that were changed or belong to another query", () =>
  withRegistry(async (r) => {
    const token = await acme(r);
    for (const name of ["a", "b", "c"]) await r.publish(token, [definition(`github.com/acme/${name}`, "1.0.0")]);
    const { nextCursor } = await r.get<{ nextCursor: string }>("/api/packages?sort=name&limit=1");
    const [body, seal] = nextCursor.split(".") as [string, string];
    const other = Buffer.from('["zzz"]').toString("base64url");
    for (
      const cursor of [`${other}.${seal}`, `${body}.${"A".repeat(22)}`, body, "", "x".repeat(2000), `${nextCursor}x`]
    ) {
      const path = `/api/packages?sort=name&limit=1&cursor=${encodeURIComponent(cursor)}`;
      assert.equal((await r.problem(path)).code, "request.cursor", cursor.slice(0, 50));
    }
    assert.equal((await r.problem(`/api/packages?sort=recent&cursor=${nextCursor}`)).code, "request.cursor");
    assert.equal((await r.problem(`/api/packages?sort=name&q=a&cursor=${nextCursor}`)).code, "request.cursor");
  }));

Deno.test("HTTP: too many requests are answered 429 with a time to wait, and counts are per kind", () =>
  withRegistry(async (r) => {
    for (let i = 0; i < 2; i++) assert.equal((await r.api("/api/keys")).response.status, 200);
    const { response } = await r.api("/api/keys");
    assert.equal(response.status, 429);
    assert.match(response.headers.get("ratelimit")!, /^"read";r=0;t=\d+$/);
    assert.ok(Number(response.headers.get("retry-after")) >= 1);
    assert.equal((await r.api("/api/packages")).response.status, 200);
    r.clock.at += 60_000;
    assert.equal((await r.api("/api/keys")).response.status, 200);
    const guess = { headers: { authorization: `Bearer waft_${"A".repeat(43)}` } };
    assert.equal((await r.problem("/api/account", guess)).code, "auth.invalid");
    r.clock.at += 60_000;
    for (let i = 0; i < 2; i++) await r.problem("/api/account", guess);
    r.clock.at += 60_000;
  }, { settings: { rates: { read: 2, search: 5, installs: 5, write: 5, refused: 1 } } }));

Deno.test("HTTP: the client's address is taken from a proxy only when that is trusted", async () => {
  const rates = { read: 1, search: 1, installs: 1, write: 1, refused: 1 };
  const from = (address: string): RequestInit => ({ headers: { "x-forwarded-for": address } });
  await withRegistry(async (r) => {
    assert.equal((await r.api("/api/keys", from("192.0.2.1"))).response.status, 200);
    assert.equal((await r.api("/api/keys", from("192.0.2.2"))).response.status, 429);
  }, { settings: { rates } });
  await withRegistry(async (r) => {
    assert.equal((await r.api("/api/keys", from("192.0.2.1"))).response.status, 200);
    assert.equal((await r.api("/api/keys", from("192.0.2.2"))).response.status, 200);
    assert.equal((await r.api("/api/keys", from("spoofed, 192.0.2.2"))).response.status, 429);
    assert.equal((await r.api("/api/keys", from("2001:db8:1:2:3::1"))).response.status, 200);
    assert.equal((await r.api("/api/keys", from("2001:db8:1:2:4::1"))).response.status, 429);
  }, { settings: { rates, trustProxy: true } });
});

/** A CI service's token, signed for any audience and repository. */
function ciToken(claims: { readonly aud: string; readonly repository: string }): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const now = Math.floor(Date.now() / 1000);
  const text = `${part({ alg: "RS256", typ: "JWT", kid: "1" })}.${
    part({ iss: "https://ci.example", iat: now, exp: now + 300, ...claims })
  }`;
  return `${text}.${sign("sha256", Buffer.from(text), privateKey).toString("base64url")}`;
}

Deno.test("identity: who may publish what", (t) =>
  withRegistry(async (r) => {
    const token = await acme(r);
    const { token: evil } = await r.author("evil", ["github.com/acrne", "xn--gthub-n4a.com", "evil.example"]);
    const code = async (secret: string, id: string): Promise<string> => {
      const { status, body } = await r.publish(secret, [definition(id, "1.0.0")]);
      return status === 201 ? "created" : (body as ProblemBody).code;
    };
    assert.equal(await code(token, CODEC), "created");
    await t.step("prefix owner mismatch", async () => {
      assert.equal(await code(evil, "github.com/acme/other"), "owner.prefix");
    });
    await t.step("a private id published publicly", async () => {
      assert.equal(await code(evil, "private.example/secret/plugin"), "owner.prefix");
    });
    await t.step("case twins", async () => {
      assert.equal(await code(token, "github.com/acme/CODEC"), "package.twin");
    });
    await t.step("homoglyph ids", async () => {
      assert.equal(await code(token, "github.com/acme/C0DEC"), "package.twin");
      assert.equal(await code(token, "github.com/acme/co-dec"), "package.twin");
      assert.equal(await code(evil, "github.com/acrne/codec"), "package.twin", "rn looks like m");
    });
    await t.step("punycode ids", async () => {
      assert.equal(await code(evil, "xn--gthub-n4a.com/acme/codec"), "created");
      assert.equal((await r.problem("/api/packages/xn--gthub-n4a.com:acme:codec")).code, "package.held");
      assert.equal((await r.problem("/api/plugins/xn--gthub-n4a.com:acme:codec/index")).code, "package.unknown");
      assert.equal((await r.get<{ total: number }>("/api/packages")).total, 1);
    });
    await t.step("expired domain", async () => {
      await r.database.run("UPDATE prefixes SET proof = 'dns' WHERE prefix = 'evil.example'");
      assert.equal(await code(evil, "evil.example/x"), "owner.unproved", "the domain names the account no more");
      const claim = await r.problem("/api/prefixes", r.json("POST", { prefix: "other.example" }, evil));
      assert.equal(claim.code, "owner.prefix");
    });
    await t.step("tokens of a CI service, for whatever audience and repository", async () => {
      // This registry accepts only its own tokens, so no such token publishes anything, with right claims or wrong
      // ones.
      for (const aud of [r.url, "https://waft.sh", "https://other.example"]) {
        for (const repository of ["acme/codec", "evil/codec"]) {
          const jwt = ciToken({ aud, repository });
          assert.equal(await code(jwt, "github.com/acme/by-ci"), "auth.invalid", `${aud} ${repository}`);
          for (const path of ["/api/auth/oidc", "/api/auth/token", "/api/auth/device"]) {
            assert.equal((await r.problem(path, r.json("POST", { token: jwt }))).code, "route.unknown");
          }
        }
      }
      const verified = await r.get<{ verified: boolean }>("/api/packages/github.com:acme:codec");
      assert.equal(verified.verified, false, "nothing but DNS verifies a publisher");
    });
    await t.step("token replay after revoke", async () => {
      const as = { headers: { authorization: `Bearer ${token}` } };
      const { tokens } = await r.get<{ tokens: { id: string }[] }>("/api/tokens", as);
      const ended = await r.api(`/api/tokens/${tokens[0].id}`, { method: "DELETE", ...as });
      assert.equal(ended.response.status, 204);
      assert.equal(await code(token, "github.com/acme/after"), "auth.invalid");
      for (const path of ["/api/account", "/api/tokens"]) {
        assert.equal((await r.problem(path, as)).code, "auth.invalid", path);
      }
    });
  }));

Deno.test("identity: a name server that does not answer is not a permanent refusal", () =>
  withRegistry(async (r) => {
    const { token } = await r.author("ada", ["ada.example"]);
    await r.database.run("UPDATE prefixes SET proof = 'dns' WHERE prefix = 'ada.example'");
    for (
      const [path, init] of [
        r.publishing("ada.example/x", "1.0.0", realArchive([definition("ada.example/x", "1.0.0")]), token),
        ["/api/prefixes", r.json("POST", { prefix: "bob.example" }, token)],
      ] as const
    ) {
      const { response, body } = await r.api(path, init);
      assert.deepEqual([response.status, (body as ProblemBody).code], [503, "server.unavailable"], path);
      assert.ok(Number(response.headers.get("retry-after")) > 0, path);
    }
  }, { domains: () => Promise.reject(new Error("SERVFAIL")) }));

Deno.test("identity: a host is claimed by its DNS record and lost with it", async () => {
  let shown = true;
  await withRegistry(async (r) => {
    const { token } = await r.author("ada", []);
    const prefix = await r.get<{ proof: string }>("/api/prefixes", r.json("POST", { prefix: "ada.example" }, token));
    assert.equal(prefix.proof, "dns");
    assert.equal((await r.publish(token, [definition("ada.example/x", "1.0.0")])).status, 201);
    shown = false;
    const { body } = await r.publish(token, [definition("ada.example/x", "1.0.1")]);
    assert.equal((body as ProblemBody).code, "owner.unproved");
  }, { domains: (host, account) => Promise.resolve(shown && host === "ada.example" && account === "ada") });
});

Deno.test("supply: the form of a version", (t) =>
  withRegistry(async (r) => {
    const token = await acme(r);
    assert.equal((await r.publish(token, [codecDefinition()])).status, 201);
    await t.step("same version re-uploaded with other bytes", async () => {
      const { status, body } = await r.publish(token, [{ ...codecDefinition(), description: "Changed" }]);
      assert.equal(status, 409);
      assert.equal((body as ProblemBody).code, "version.exists");
    });
    const archive = realArchive([codecDefinition("2.0.2")]);
    await t.step("another package inside", async () => {
      const other = await r.problem(...r.publishing("github.com/acme/other", "2.0.2", archive, token));
      assert.equal(other.errors[0].code, "publish.package");
    });
    await t.step("another version inside", async () => {
      const renumbered = await r.problem(...r.publishing(CODEC, "2.0.3", archive, token));
      assert.equal(renumbered.errors[0].code, "catalog.mismatch");
    });
  }));

Deno.test("supply: archives of existing versions, and of accounts at their limit, are not checked", () =>
  withRegistry(async (r) => {
    const token = await acme(r);
    let checks = 0;
    const { check } = CheckPool.prototype;
    CheckPool.prototype.check = function (...given) {
      checks++;
      return check.apply(this, given);
    };
    try {
      const statusOf = async (version: string, more: object = {}) =>
        (await r.publish(token, [{ ...codecDefinition(version), ...more }])).status;
      assert.equal(await statusOf("1.0.0"), 201);
      assert.equal(checks, 1);
      assert.equal(await statusOf("1.0.0"), 200);
      assert.equal(await statusOf("1.0.0", { description: "Changed" }), 409);
      assert.equal(await statusOf("1.0.0+build"), 409);
      assert.equal(await statusOf("1.0.1"), 429);
      const [path, init] = r.publishing(CODEC, "1.0.0", realArchive([codecDefinition("1.0.0")]), token);
      const { code } = await r.problem(path, { ...init, body: "other bytes" });
      assert.equal(code, "request.digest", "the same digest, of other bytes");
      assert.equal(checks, 1);
    } finally {
      CheckPool.prototype.check = check;
    }
  }, { settings: { publishPerHour: 1 } }));

Deno.test("supply: an account publishes at most so much", () =>
  withRegistry(async (r) => {
    const token = await acme(r);
    for (const v of ["1.0.0", "1.0.1"]) assert.equal((await r.publish(token, [codecDefinition(v)])).status, 201);
    const { response } = await r.api(...r.publishing(CODEC, "1.0.2", realArchive([codecDefinition("1.0.2")]), token));
    assert.equal(response.status, 429);
    assert.equal(response.headers.get("retry-after"), "3600");
    assert.equal(
      (await r.publish(token, [codecDefinition("1.0.1")])).status,
      200,
      "an existing version is not published again",
    );
    r.clock.at += 3_600_001;
    assert.equal((await r.publish(token, [codecDefinition("1.0.2")])).status, 201);
  }, { settings: { publishPerHour: 2 } }));

/** Kind of abuse, Markdown of an author, pattern that no page may contain. */
const README_CASES: readonly (readonly [string, string, RegExp])[] = [
  [
    "raw HTML",
    "<script>alert(1)</script> <img src=x onerror=alert(1)> <b onclick=x>y</b>",
    /<script|<img[^>]+onerror|<b onclick/i,
  ],
  [
    "javascript: and its like",
    "[click](javascript:alert(1)) [data](data:text/html,x) <javascript:alert(1)> [ref]\n\n[ref]: vbscript:x",
    /href="(?:javascript|data|vbscript)/i,
  ],
  ["SVG", "<svg onload=alert(1)><a href='x'></a></svg>", /<svg/i],
  ["remote images", "![pixel](https://tracker.example/p.png)", /<img[^>]+tracker/i],
  // deno-lint-ignore no-control-regex -- control characters must not be there
  ["ANSI and bidi in text", "\u001b[31mred\u001b[0m \u202eevil\u202c", /[\u001b\u202c\u202e]/],
];

/** A page without the site's single script, which must be present. */
function withoutOwnScript(html: string): string {
  const own = /<script src="\/static\/site\.[0-9a-f]{12}\.js" defer><\/script>/;
  assert.match(html, own);
  return html.replace(own, "");
}

Deno.test("content: a read me", (t) =>
  withRegistry(async (r) => {
    const token = await acme(r);
    for (const [i, [kind, markdown, forbidden]] of README_CASES.entries()) {
      await t.step(kind, async () => {
        const version = `1.0.${i}`;
        const files = { "README.md": `# Title\n\n${markdown}\n\n[ok](https://example.com/ "t")\n` };
        assert.equal((await r.publish(token, [definition(CODEC, version)], files)).status, 201);
        const { readme } = await r.get<{ readme: { html: string } }>("/api/packages/github.com:acme:codec");
        const page = await fetch(`${r.url}/plugins/github.com:acme:codec`);
        assert.match(page.headers.get("content-security-policy")!, /default-src 'none'/);
        for (const html of [readme.html, withoutOwnScript(await page.text())]) {
          // The site's own drawings of an icon are images, not SVG in the page.
          assert.doesNotMatch(html, forbidden);
          assert.match(html, /<a href="https:\/\/example\.com\/" title="t" rel="nofollow noopener ugc">ok<\/a>/);
        }
      });
    }
  }));

Deno.test("content: ANSI, bidi and markup in names", () =>
  withRegistry(async (r) => {
    const token = await acme(r);
    const hostile = {
      ...codecDefinition(),
      name: `<b onclick="x">&\u202e`,
      description: `"><script>alert(1)</script>`,
    };
    assert.equal((await r.publish(token, [hostile])).status, 201);
    for (
      const path of ["/plugins", "/plugins/github.com:acme:codec", "/contracts/github.com:acme:contracts:codec@1"]
    ) {
      const page = withoutOwnScript(await (await fetch(r.url + path)).text());
      assert.doesNotMatch(page, /<script|<b onclick/i, path);
      assert.ok(!page.includes("\u001b") && !page.includes("\u202e"), path);
    }
  }));

Deno.test("content: definitions", (t) =>
  withRegistry(async (r) => {
    const token = await acme(r);
    const publish = async (files: ReadonlyMap<string, Uint8Array>): Promise<string> => {
      const archive = new Uint8Array(writeArchive(files));
      const problem = await r.problem(...r.publishing(CODEC, "1.0.0", archive, token));
      assert.equal(problem.status, 422, JSON.stringify(problem).slice(0, 300));
      return problem.errors[0].code!;
    };
    const refused = async (change: object): Promise<string> => {
      const files = realFiles([definition(CODEC, "1.0.0")]);
      const catalog = JSON.parse(new TextDecoder().decode(files.get("register/catalog.json"))) as {
        plugins: { definition: object }[];
      };
      Object.assign(catalog.plugins[0].definition, change);
      return await publish(files.set("register/catalog.json", encode(JSON.stringify(catalog))));
    };
    const object = { type: "object", additionalProperties: false };
    await t.step("configSchema with a pattern", async () => {
      const evil = { ...object, properties: { a: { type: "string", pattern: "(a+)+$" } } };
      assert.equal(await refused({ configSchema: evil }), "catalog.unknown-key");
    });
    await t.step("configSchema of 10,000 levels", async () => {
      for (const levels of [40, 10_000]) {
        const open = '{"type":"object","additionalProperties":false,"properties":{"a":'.repeat(levels);
        const schema = `${open}{"type":"string"}${"}}".repeat(levels)}`;
        const files = realFiles([definition(CODEC, "1.0.0")]);
        const text = new TextDecoder().decode(files.get("register/catalog.json"));
        const deep = text.replace('"definition":{', `"definition":{"configSchema":${schema},`);
        assert.notEqual(deep, text);
        assert.match(await publish(files.set("register/catalog.json", encode(deep))), /^catalog\./, String(levels));
      }
      const files = realFiles([definition(CODEC, "1.0.0")]);
      assert.match(await publish(files.set("register/catalog.json", encode("[".repeat(10_000)))), /^catalog\./);
    });
    await t.step("ranges of 200 alternatives", async () => {
      const range = Array.from({ length: 200 }, () => "1").join("||");
      assert.match(await refused({ requires: { "a.b/c": range } }), /^catalog\./);
    });
    await t.step("versions of a million digits", async () => {
      assert.match(await refused({ version: `1.0.${"1".repeat(1_000_000)}` }), /^catalog\./);
    });
    await t.step("__proto__ keys", async () => {
      assert.match(await refused({ requires: JSON.parse('{"__proto__": "^1.0.0"}') as object }), /^catalog\./);
    });
    await t.step("a kind that is reserved", async () => {
      assert.match(await refused({ kind: "host" }), /^catalog\./);
    });
    await t.step("128 plugins in a cycle", async () => {
      const id = (i: number): string => i === 0 ? "github.com/acme/ring" : `github.com/acme/ring/p${i}`;
      const ring = Array.from({ length: 128 }, (_, i) =>
        definition(id(i), "1.0.0", { requires: { [id((i + 1) % 128)]: "1.0.0" } }));
      const { status, body } = await r.publish(token, ring);
      assert.equal(status, 422);
      assert.match((body as ProblemBody).detail, /in a cycle: .* -> /);
    });
    await t.step("a manifest of schema v0", async () => {
      const manifest = '{"$schema": "https://waft.sh/schemas/v0/schema.json", "plugins": {"acme/kv": "^0.0.0"}}';
      const files = realFiles([definition(CODEC, "1.0.0")]).set("waft.json", encode(manifest));
      const archive = new Uint8Array(writeArchive(files));
      const old = await r.problem(...r.publishing(CODEC, "1.0.0", archive, token));
      assert.equal(old.errors[0].code, "manifest.schema-version");
      assert.match(old.errors[0].detail, /init --upgrade/);
    });
  }));

Deno.test("a check that runs too long, takes too much memory or dies is ended, and the registry goes on", async (t) => {
  const scripts = {
    "for (;;) {}": /took more than 0\.\d s/,
    "const keep = []; for (;;) keep.push(new Uint8Array(1 << 20).fill(1));": /took more/,
    "process.exit(3);": /more memory than is allowed, or failed/,
    "process.stdout.write(new Uint8Array([255, 255, 255, 255, 1, 2, 3]));": /took more than|failed/,
  };
  const { mkdtemp, rm, writeFile } = await import("node:fs/promises");
  const { tmpdir } = await import("node:os");
  const folder = await mkdtemp(`${tmpdir()}/waft-check-`);
  for (const [i, [source, expected]] of Object.entries(scripts).entries()) {
    await t.step(source, async () => {
      const script = `${folder}/${i}.ts`;
      await writeFile(
        script,
        `import process from "node:process";\nprocess.stdin.once("data", () => { ${source} });\n`,
      );
      await withRegistry(async (r) => {
        const token = await acme(r);
        const problem = await r.problem(...r.publishing(CODEC, "2.0.1", realArchive([codecDefinition()]), token));
        assert.equal(problem.code, "publish.check");
        assert.match(problem.detail, expected);
        assert.equal((await r.api("/api/packages")).response.status, 200);
      }, { checkScript: script, settings: { checkTimeoutMs: 800, checkMemoryMiB: 200 } });
    });
  }
  await rm(folder, { recursive: true, force: true });
});
