/**
 * The HTTP server of components: answers, streams, limits, failures, graceful stop. In:
 * tests/component/fixtures/http.wat.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Agent, request as httpRequest } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { NewEngine } from "@waft/engine";
import { compileComponent } from "../../component/mod.ts";
import { httpInterfaces } from "../../component/http/mod.ts";
import type { HandlerLimits } from "../../component/http/request_handler.ts";
import { ComponentServer, handlerProblem, type RequestReport } from "../../component/http/server.ts";
import { ComponentWasi } from "../../component/wasi/mod.ts";
import { allRequests } from "../support/http_requests.ts";

const FIXTURE = new URL("./fixtures/http.wat", import.meta.url);
const component = compileComponent(NewEngine({ interruptible: true, fuel: true }), readFileSync(FIXTURE, "utf8"));

/** A guard for requests that must be answered, also on an emulated processor. */
const NEVER = 600_000;

interface Served {
  readonly port: number;
  readonly server: ComponentServer;
  readonly reports: RequestReport[];
}

interface Setup {
  readonly limits?: HandlerLimits;
  readonly context?: () => { deadline?: number; fuel?: number };
  readonly maxMemoryPages?: number;
}

/** Runs `action` with a server on a free port of the loopback interface. */
async function withServer(
  { limits = { concurrent: 4, waiting: 4 }, context = () => ({ deadline: NEVER }), maxMemoryPages = 2048 }: Setup,
  action: (served: Served) => Promise<void>,
): Promise<void> {
  const wasi = new ComponentWasi({ waitInEventLoop: true });
  const imports = { ...wasi.imports, ...httpInterfaces(wasi) };
  const pool = component.pool({ size: 4, context: { limits: { maxMemoryPages } }, imports });
  const reports: RequestReport[] = [];
  const onRequest = (report: RequestReport) => void reports.push(report);
  const server = new ComponentServer({
    routes: allRequests({ pool, preview1: wasi.preview1, limits, context }),
    onRequest,
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

interface Reply {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly trailers: Record<string, unknown>;
  readonly body: Uint8Array;
}

const text = ({ body }: Reply) => new TextDecoder().decode(body);

/** Makes a request; rejects if the answer is incomplete. */
function ask(port: number, path: string, { method = "GET", body = "" as string | Uint8Array } = {}): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ host: "127.0.0.1", port, path, method, agent: false }, (message) => {
      const parts: Uint8Array[] = [];
      message.on("data", (part: Uint8Array) => parts.push(part));
      message.on("error", reject);
      message.on("end", () => {
        const { statusCode = 0, headers, trailers } = message;
        resolve({ status: statusCode, headers, trailers, body: new Uint8Array(Buffer.concat(parts)) });
      });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

/** Sends bytes over a connection, and returns all that comes back. */
function exchange(port: number, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let all = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (part) => all += part.toString("latin1"));
    socket.on("end", () => socket.end());
    // The server may reset the connection while bytes of the request are on their way.
    socket.on("error", () => {});
    socket.on("close", () => resolve(all));
  });
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}

Deno.test("every request has an instance in its first state", async () => {
  await withServer({}, async ({ port, reports }) => {
    const reply = await ask(port, "/some/path?q=1");
    assert.deepEqual([reply.status, text(reply)], [201, "/some/path?q=1"]);
    assert.equal(reply.headers["x-kind"], "text");
    for (let k = 0; k < 8; k++) assert.equal(text(await ask(port, "/count")), "1");
    const all = await Promise.all(Array.from({ length: 8 }, () => ask(port, "/count")));
    assert.deepEqual(all.map(text), Array(8).fill("1"));
    await until(() => reports.length === 17);
    assert.equal(reports[0].path, "/some/path?q=1");
    assert.ok(reports.every(({ status, error }) => status === 201 && error === undefined));
  });
});

Deno.test("bodies stream both ways, and trailers follow", async () => {
  const body = new Uint8Array(1_000_000).map((_, k) => k * 7 + (k >> 9));
  await withServer({}, async ({ port }) => {
    const reply = await ask(port, "/echo", { method: "POST", body });
    assert.ok(Buffer.from(reply.body).equals(body));
    assert.equal(reply.trailers["x-end"], "yes");
    assert.equal(reply.headers["transfer-encoding"], "chunked");
  });
});

Deno.test("the first part of an answer arrives before the request has ended", async () => {
  await withServer({}, async ({ port }) => {
    const sent = httpRequest({ host: "127.0.0.1", port, path: "/echo", method: "POST", agent: false });
    const got: string[] = [];
    const done = new Promise<void>((resolve, reject) => {
      sent.on("error", reject);
      sent.on("response", (message) => {
        message.on("data", (part: Uint8Array) => got.push(new TextDecoder().decode(part)));
        message.on("end", resolve);
      });
    });
    sent.write("one");
    await until(() => got.join("") === "one");
    sent.end("two");
    await done;
    assert.equal(got.join(""), "onetwo");
  });
});

Deno.test("a failure is status 500 without details, and the next request is answered", async () => {
  await withServer({}, async ({ port, reports }) => {
    for (const [path, error] of [["/trap", /unreachable/], ["/silent", /without an answer/]] as const) {
      const reply = await ask(port, path);
      assert.deepEqual([reply.status, text(reply)], [500, "Internal Server Error\n"]);
      await until(() => reports.length > 0);
      assert.match(String(reports.pop()?.error), error);
      assert.equal(text(await ask(port, "/count")), "1");
      await until(() => reports.length > 0);
      reports.pop();
    }
  });
});

Deno.test("deadline, fuel and memory limit each request", async () => {
  await withServer({ context: () => ({ deadline: 50 }) }, async ({ port, reports }) => {
    assert.equal((await ask(port, "/spin")).status, 500);
    await until(() => reports.length === 1);
    assert.match(String(reports[0].error), /interrupted/);
  });
  await withServer({ context: () => ({ deadline: NEVER, fuel: 100_000 }) }, async ({ port, reports }) => {
    assert.equal((await ask(port, "/spin")).status, 500);
    await until(() => reports.length === 1);
    assert.match(String(reports[0].error), /fuel/);
    assert.equal((await ask(port, "/abc")).status, 201);
  });
  await withServer({ maxMemoryPages: 512 }, async ({ port }) => {
    assert.equal((await ask(port, "/grow")).status, 500);
  });
  await withServer({}, async ({ port }) => assert.equal((await ask(port, "/grow")).status, 201));
});

Deno.test("a wait for a client that sends nothing ends at the deadline, and other requests run meanwhile", async () => {
  // The first request has the deadline; the others have time also on a machine that is slow.
  let requests = 0;
  const context = () => ({ deadline: requests++ === 0 ? 300 : NEVER });
  await withServer({ context }, async ({ port, reports }) => {
    const sent = httpRequest({ host: "127.0.0.1", port, path: "/wait", method: "POST", agent: false });
    const status = new Promise((resolve) => sent.on("response", ({ statusCode }) => resolve(statusCode)));
    sent.on("error", () => {});
    sent.write("part");
    await until(() => requests === 1);
    assert.equal((await ask(port, "/abc")).status, 201);
    assert.equal(await status, 500);
    sent.destroy();
    await until(() => reports.length === 2);
    assert.match(String(reports.find(({ path }) => path === "/wait")?.error), /interrupted/);
  });
});

Deno.test("an answer that is shorter than announced is cut off", async () => {
  await withServer({}, async ({ port }) => {
    await assert.rejects(ask(port, "/short"));
    assert.equal((await ask(port, "/abc")).status, 201);
  });
});

Deno.test("a client that leaves ends its request", async () => {
  await withServer({ limits: { concurrent: 1, waiting: 1 } }, async ({ port, reports, server }) => {
    const socket = connect(port, "127.0.0.1", () => socket.write("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n"));
    await new Promise((resolve) => socket.once("data", resolve));
    // The guest cannot go on before the client reads: it waits, and holds the only place.
    const next = ask(port, "/abc");
    await until(() => server.active === 2);
    socket.destroy();
    assert.equal((await next).status, 201);
    await until(() => reports.length === 2);
    assert.equal(reports.filter(({ error }) => error !== undefined).length, 1);
  });
});

Deno.test("requests beyond the limits get status 503", async () => {
  await withServer({ limits: { concurrent: 1, waiting: 1 } }, async ({ port, server }) => {
    const sent = [0, 1].map(() => {
      const request = httpRequest({ host: "127.0.0.1", port, path: "/echo", method: "POST", agent: false });
      request.write("x");
      return request;
    });
    const statuses = sent.map((request) =>
      new Promise((resolve) =>
        request.on("response", (message) => {
          message.resume();
          message.on("end", () => resolve(message.statusCode));
        })
      )
    );
    await until(() => server.active === 2);
    const refused = await ask(port, "/abc");
    assert.deepEqual([refused.status, refused.headers["retry-after"]], [503, "1"]);
    for (const request of sent) request.end();
    assert.deepEqual(await Promise.all(statuses), [201, 201]);
  });
});

Deno.test("requests that servers understand differently are refused", async () => {
  await withServer({}, async ({ port, reports }) => {
    const head = "POST /abc HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
    const cases = [
      `${head}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc`,
      `${head}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      `${head}Content-Length: +3\r\n\r\nabc`,
      `${head}Content-Length : 3\r\n\r\nabc`,
      `${head}X: a\r\n\tb\0c\r\n\r\n`,
      "GET /abc HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n",
      "GET /abc HTTP/1.1\r\nHost: a/../b\r\nConnection: close\r\n\r\n",
      `GET /abc HTTP/1.1\r\nHost: a\r\nX: ${"y".repeat(100_000)}\r\nConnection: close\r\n\r\n`,
    ];
    for (const bytes of cases) {
      const reply = await exchange(port, bytes);
      assert.match(reply, /^(?:HTTP\/1\.1 4\d\d |$)/, bytes.slice(0, 120));
    }
    assert.ok(reports.every(({ status }) => status === 400));
    assert.equal((await ask(port, "/abc")).status, 201);
  });
});

Deno.test("a connection serves the next request although the component has not read the whole body", async () => {
  await withServer({}, async ({ port }) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const body = new Uint8Array(300_000);
    for (const path of ["/part", "/abc", "/trap", "/part"]) {
      const status = await new Promise((resolve, reject) => {
        const sent = httpRequest({ host: "127.0.0.1", port, path, method: "POST", agent }, (message) => {
          message.resume();
          message.on("end", () => resolve(message.statusCode));
        });
        sent.on("error", reject);
        sent.end(body);
      });
      assert.equal(status, path === "/trap" ? 500 : 201);
    }
    agent.destroy();
  });
});

Deno.test("a handler of another type, which would get the host's objects as records, does not serve", () => {
  const text = `(component
    (core module $m (memory (export "memory") 1) (func (export "handle") (param i32 i32))
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 64)))
    (core instance $i (instantiate $m))
    (func $handle (param "request" string)
      (canon lift (core func $i "handle") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
    (instance $e (export "handle" (func $handle)))
    (export "wasi:http/incoming-handler@0.2.3" (instance $e)))`;
  const mistyped = compileComponent(NewEngine(), text).instantiate({}, {});
  assert.match(
    String(handlerProblem(mistyped)),
    /exports .* as func\(request: string\); the interface has func\(own<incoming/,
  );
  const wasi = new ComponentWasi({ waitInEventLoop: true });
  assert.equal(handlerProblem(component.instantiate({}, { ...wasi.imports, ...httpInterfaces(wasi) })), undefined);
  wasi.close();
});

Deno.test("a stop waits for the requests in progress and accepts no others", async () => {
  await withServer({}, async ({ port, server }) => {
    const sent = httpRequest({ host: "127.0.0.1", port, path: "/echo", method: "POST", agent: false });
    sent.write("begun ");
    let body = "";
    const ended = new Promise<void>((resolve, reject) => {
      sent.on("error", reject);
      sent.on("response", (message) => {
        message.on("data", (part: Uint8Array) => body += new TextDecoder().decode(part));
        message.on("end", resolve);
      });
    });
    await until(() => body === "begun ");
    let isStopped = false;
    const stopped = server.stop().then(() => isStopped = true);
    await assert.rejects(ask(port, "/abc"));
    assert.equal(isStopped, false);
    sent.end("ended");
    await ended;
    await stopped;
    assert.equal(body, "begun ended");
  });
});
