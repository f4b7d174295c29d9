/**
 * The server of components over HTTP/2: by ALPN and by prior knowledge, beside HTTP/1.1 on the same port; and clients
 * that flood it. In: tests/component/fixtures/http.wat, a certificate. Not on Bun, which answers HTTP/1.1 alone.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import { request as httpsRequest } from "node:https";
import { type AddressInfo, connect } from "node:net";
import { NewEngine } from "@waft/engine";
import * as http2 from "../../component/http/http2.ts";
import { httpInterfaces } from "../../component/http/mod.ts";
import type { HandlerLimits } from "../../component/http/request_handler.ts";
import { ComponentServer, type RequestReport, type ServerKeys } from "../../component/http/server.ts";
import { compileComponent } from "../../component/mod.ts";
import { ComponentWasi } from "../../component/wasi/mod.ts";
import { allRequests, ask, until } from "../support/http_requests.ts";

const fixture = (name: string) => readFileSync(new URL(`./fixtures/${name}`, import.meta.url), "utf8");
const component = compileComponent(NewEngine({ interruptible: true }), fixture("http.wat"));
const PEM = fixture("tls_one.pem");
const TLS: ServerKeys = { cert: PEM, key: PEM };

interface Served {
  readonly port: number;
  readonly server: ComponentServer;
  readonly reports: RequestReport[];
}

/** Runs `action` with a server on a free port, which answers HTTPS if it has keys. */
async function withServer(
  { keys, limits = { concurrent: 4, waiting: 64 } }: { keys?: ServerKeys; limits?: HandlerLimits },
  action: (served: Served) => Promise<void>,
): Promise<void> {
  const wasi = new ComponentWasi({ waitInEventLoop: true });
  const pool = component.pool({ size: 4, imports: { ...wasi.imports, ...httpInterfaces(wasi) } });
  const reports: RequestReport[] = [];
  const server = new ComponentServer({
    ...(keys === undefined ? {} : { keys }),
    http2,
    routes: allRequests({ pool, preview1: wasi.preview1, limits, context: () => ({ deadline: 600_000 }) }),
    onRequest: (report) => void reports.push(report),
  });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 }) as AddressInfo;
  try {
    await action({ port, server, reports });
  } finally {
    await server.stop();
    pool.close();
    wasi.close();
  }
}

function open(port: number, scheme = "http"): ClientHttp2Session {
  const session = connectHttp2(`${scheme}://127.0.0.1:${port}`, { rejectUnauthorized: false });
  session.on("error", () => {});
  return session;
}

interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders;
  readonly body: string;
  /** The code with which the stream was closed. */
  readonly code: number;
}

/** The whole reply to a request. */
function replyTo(stream: ClientHttp2Stream): Promise<Reply> {
  let headers: IncomingHttpHeaders = {};
  let trailers: IncomingHttpHeaders = {};
  const parts: Buffer[] = [];
  stream.on("response", (fields) => headers = fields);
  stream.on("trailers", (fields) => trailers = fields);
  stream.on("data", (part: Buffer) => parts.push(part));
  stream.on("error", () => {});
  return new Promise((resolve) =>
    stream.on("close", () => {
      const status = Number(headers[":status"] ?? 0);
      resolve({ status, headers, trailers, body: Buffer.concat(parts).toString(), code: stream.rstCode ?? 0 });
    })
  );
}

function get(session: ClientHttp2Session, path: string, fields: OutgoingHttpHeaders = {}): Promise<Reply> {
  return replyTo(session.request({ ":path": path, ...fields }));
}

const ignore = !http2.hasHttp2();

Deno.test({ name: "HTTP/2 by ALPN, and HTTP/1.1 for clients that do not ask for it", ignore }, async () => {
  await withServer({ keys: TLS }, async ({ port, reports }) => {
    const session = open(port, "https");
    const { status, headers, body, code } = await get(session, "/abc");
    assert.deepEqual([status, headers["x-kind"], body, code], [201, "text", "/abc", 0]);
    const others = await Promise.all(["/a", "/b", "/c"].map((path) => get(session, path)));
    assert.deepEqual(others.map(({ body }) => body), ["/a", "/b", "/c"]);
    session.close();
    const answered = await new Promise<number | undefined>((resolve, reject) => {
      const sent = httpsRequest({ port, host: "127.0.0.1", path: "/one", agent: false, rejectUnauthorized: false });
      sent.on("error", reject);
      sent.on("response", (message) => {
        message.resume();
        message.on("end", () => resolve(message.statusCode));
      });
      sent.end();
    });
    assert.equal(answered, 201);
    await until(() => reports.length === 5);
    assert.deepEqual(reports.map(({ version }) => version), ["2.0", "2.0", "2.0", "2.0", "1.1"]);
    assert.deepEqual([reports[0].client, reports[0].bytes, reports[0].status], ["127.0.0.1", 4, 201]);
  });
});

Deno.test(
  { name: "HTTP/2 without TLS for clients that begin with it, however its first bytes arrive", ignore },
  async () => {
    await withServer({}, async ({ port }) => {
      const session = open(port);
      assert.equal((await get(session, "/abc")).body, "/abc");
      session.close();
      assert.equal((await ask(port, "/abc")).body, "/abc");
      const socket = connect(port, "127.0.0.1");
      socket.setNoDelay(true);
      let arrived = Buffer.alloc(0);
      socket.on("data", (part) => arrived = Buffer.concat([arrived, part]));
      // The preface and an empty SETTINGS frame, byte by byte.
      for (const byte of Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", "latin1")) {
        await new Promise<void>((resolve) => socket.write(Buffer.of(byte), () => resolve()));
        await new Promise((resolve) => setImmediate(resolve));
      }
      const SETTINGS = 4;
      await until(() => arrived.length >= 9);
      assert.equal(arrived[3], SETTINGS);
      socket.destroy();
    });
  },
);

Deno.test({ name: "bodies stream both ways over HTTP/2, and trailers follow", ignore }, async () => {
  await withServer({}, async ({ port }) => {
    const session = open(port);
    const sent = session.request({ ":path": "/echo", ":method": "POST" });
    const reply = replyTo(sent);
    const first = new Promise((resolve) => sent.once("data", resolve));
    sent.write("begun ");
    assert.equal(String(await first), "begun ");
    const large = "x".repeat(300_000);
    sent.end(large);
    const { body, trailers, code } = await reply;
    assert.equal(body, `begun ${large}`);
    assert.equal(trailers["x-end"], "yes");
    assert.equal(code, 0);
    const head = await get(session, "/abc", { ":method": "HEAD" });
    assert.deepEqual([head.status, head.body], [201, ""]);
    session.close();
  });
});

Deno.test({ name: "failures over HTTP/2: status 500, and a reset once the answer has begun", ignore }, async () => {
  await withServer({}, async ({ port, reports }) => {
    const session = open(port);
    const trapped = await get(session, "/trap");
    assert.deepEqual([trapped.status, trapped.body], [500, "Internal Server Error\n"]);
    // Five bytes are announced, and two are sent: the client must not take them for the whole body.
    assert.notEqual((await get(session, "/short")).code, constants.NGHTTP2_NO_ERROR);
    assert.equal((await get(session, "/abc")).status, 201);
    session.close();
    await until(() => reports.length === 3);
  });
});

Deno.test({ name: "requests of HTTP/2 with several meanings are refused", ignore }, async () => {
  await withServer({}, async ({ port, reports }) => {
    const mistakes: [string, OutgoingHttpHeaders][] = [
      ["/abc", { ":authority": "one", host: "other" }],
      ["/abc", { ":authority": "a b" }],
      ["http://a/abc", {}],
      ["abc", {}],
    ];
    for (const [path, fields] of mistakes) {
      // Hosts end the connection for some of them, before the server sees them.
      const session = open(port);
      const { status } = await get(session, path, fields);
      assert.ok(status === 400 || status === 0, `${path}: ${status}`);
      session.close();
    }
    assert.ok(reports.length >= 1 && reports.every(({ status }) => status === 400));
    const session = open(port);
    assert.equal((await get(session, "/abc", { ":authority": "one", host: "one" })).status, 201);
    assert.equal((await get(session, "/abc", { host: "one" })).status, 201);
    session.close();
  });
});

Deno.test({ name: "a request of HTTP/2 that has not ended is answered, and others follow", ignore }, async () => {
  await withServer({}, async ({ port, server, reports }) => {
    const session = open(port);
    const sent = session.request({ ":path": "/abc", ":method": "POST" });
    sent.on("error", () => {});
    const status = new Promise((resolve) => sent.on("response", (fields) => resolve(fields[":status"])));
    sent.write("a body without an end");
    assert.equal(await status, 201);
    await until(() => server.active === 0 && reports.length === 1);
    assert.equal((await get(session, "/abc")).status, 201);
    session.destroy();
  });
});

Deno.test({ name: "a client that resets a request ends it", ignore }, async () => {
  await withServer({}, async ({ port, server }) => {
    const session = open(port);
    const sent = session.request({ ":path": "/wait", ":method": "POST" });
    sent.on("error", () => {});
    sent.write("x");
    await until(() => server.load.handling === 1);
    sent.close(constants.NGHTTP2_CANCEL);
    await until(() => server.load.handling === 0);
    assert.equal((await get(session, "/abc")).status, 201);
    session.close();
  });
});

Deno.test(
  { name: "a connection that resets its requests rapidly is closed, and others are served", ignore },
  async () => {
    await withServer({}, async ({ port, server }) => {
      const session = open(port);
      let isOpen = true;
      session.on("close", () => isOpen = false);
      let sent = 0;
      while (isOpen && sent < 100_000) {
        for (let k = 0; k < 20 && isOpen && !session.destroyed; k++, sent++) {
          const stream = session.request({ ":path": "/wait", ":method": "POST" });
          stream.on("error", () => {});
          stream.write("x", () => stream.close(constants.NGHTTP2_CANCEL));
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
      assert.equal(isOpen, false);
      await until(() => server.active === 0 && server.load.connections === 0);
      assert.equal((await ask(port, "/abc")).status, 201);
    });
  },
);

/** A frame: its type, flags, stream and payload. */
function frame(type: number, flags: number, stream: number, payload: Uint8Array = new Uint8Array(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

const [HEADERS, SETTINGS, PING, CONTINUATION] = [1, 4, 6, 9];
const BEGINNING = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(SETTINGS, 0, 0)]);

/** A literal field without indexing, in HPACK. */
function field(name: string, value: string): Buffer {
  assert.ok(name.length < 127 && value.length < 127);
  return Buffer.concat([Buffer.of(0, name.length), Buffer.from(name), Buffer.of(value.length), Buffer.from(value)]);
}

/** The fields of a request. */
function headOf(path: string): Buffer {
  const fields = { ":method": "GET", ":scheme": "http", ":path": path, ":authority": "a" };
  return Buffer.concat(Object.entries(fields).map(([name, value]) => field(name, value)));
}

/** Sends `part` at most `most` times; true if the server has closed the connection by then. */
async function flood(port: number, first: Uint8Array, part: () => Uint8Array, most: number): Promise<boolean> {
  let isOpen = true;
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => isOpen = false);
  socket.on("close", () => isOpen = false);
  socket.resume();
  socket.write(first);
  for (let sent = 0; isOpen && sent < most; sent++) {
    await new Promise<void>((resolve) => socket.write(part(), () => resolve()));
    if (sent % 16 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  socket.destroy();
  return !isOpen;
}

Deno.test({ name: "a head that never ends closes its connection", ignore }, async () => {
  await withServer({}, async ({ port, server }) => {
    const fields = Buffer.concat(Array.from({ length: 100 }, (_, k) => field(`x-${k}`, "y".repeat(100))));
    const begun = Buffer.concat([BEGINNING, frame(HEADERS, 0, 1, headOf("/abc"))]);
    assert.equal(await flood(port, begun, () => frame(CONTINUATION, 0, 1, fields), 20_000), true);
    assert.equal(server.active, 0);
    assert.equal((await ask(port, "/abc")).status, 201);
  });
});

Deno.test({ name: "a connection has at most a hundred open requests", ignore }, async () => {
  await withServer({ limits: { concurrent: 4, waiting: 10_000 } }, async ({ port, server }) => {
    const END_HEADERS = 4;
    let id = -1;
    let isDone = false;
    // The bodies never end.
    const flooding = flood(port, BEGINNING, () => frame(HEADERS, END_HEADERS, id += 2, headOf("/wait")), 2000)
      .then(() => isDone = true);
    let most = 0;
    while (!isDone) {
      most = Math.max(most, server.active);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await flooding;
    assert.ok(most > 4 && most <= 100, `${most} requests`);
    await until(() => server.active === 0);
    assert.equal((await ask(port, "/abc")).status, 201);
  });
});

Deno.test({ name: "pings and settings without end do not keep others from being served", ignore }, async () => {
  await withServer({}, async ({ port }) => {
    const parts = [frame(PING, 0, 0, Buffer.alloc(8)), frame(SETTINGS, 0, 0)];
    for (const part of parts) {
      const many = Buffer.concat(Array.from({ length: 500 }, () => part));
      const flooding = flood(port, BEGINNING, () => many, 100);
      assert.equal((await ask(port, "/abc")).status, 201);
      await flooding;
      assert.equal((await ask(port, "/abc")).status, 201);
    }
  });
});

Deno.test({ name: "a stop answers the requests of HTTP/2 in progress, and refuses others", ignore }, async () => {
  await withServer({}, async ({ port, server, reports }) => {
    const session = open(port);
    const sent = session.request({ ":path": "/echo", ":method": "POST" });
    const reply = replyTo(sent);
    const first = new Promise((resolve) => sent.once("data", resolve));
    sent.write("begun ");
    await first;
    const leaving = new Promise((resolve) => session.once("goaway", resolve));
    const stopped = server.stop();
    await leaving;
    sent.end("ended");
    const { body, code } = await reply;
    assert.deepEqual([body, code], ["begun ended", 0]);
    await stopped;
    assert.equal(reports.length, 1);
    session.destroy();
  });
});
