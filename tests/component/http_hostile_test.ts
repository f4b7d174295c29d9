/**
 * Hostile clients, servers and guests of wasi:http, on the loopback interface. The guests are JavaScript functions on
 * the classes of the interface, so they can misuse it in ways that no compiler produces.
 */
import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import type { ComponentInstance } from "../../component/component.ts";
import type { IncomingBody, OutgoingBody } from "../../component/http/body.ts";
import { FutureIncomingResponse } from "../../component/http/client.ts";
import { Fields } from "../../component/http/fields.ts";
import {
  type IncomingRequest,
  type IncomingResponse,
  OutgoingRequest,
  OutgoingResponse,
  ResponseOutparam,
} from "../../component/http/messages.ts";
import { httpInterfaces } from "../../component/http/mod.ts";
import type { HandlerLimits, HandlerOptions } from "../../component/http/request_handler.ts";
import { ComponentServer, type RequestReport, type ServerLimits } from "../../component/http/server.ts";
import { ComponentWasi } from "../../component/wasi/mod.ts";
import { NetworkGrants } from "../../component/wasi/network_grants.ts";
import { SocketQuota } from "../../component/wasi/socket_address.ts";
import { TcpSocket } from "../../component/wasi/tcp.ts";
import { allRequests } from "../support/http_requests.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const wasi = new ComponentWasi({ waitInEventLoop: true });
const { preview1 } = wasi;
const types = httpInterfaces(wasi)["wasi:http/types"] as {
  OutgoingBody: { finish(body: OutgoingBody, trailers?: Fields): void };
  IncomingBody: { finish(body: IncomingBody): { [Symbol.dispose](): void } };
};

type Guest = (request: IncomingRequest, out: ResponseOutparam) => void | Promise<void>;

/** Runs `action` with a server whose requests `guest` handles. */
async function withGuest(
  guest: Guest,
  limits: HandlerLimits & ServerLimits,
  action: (port: number, reports: readonly RequestReport[], server: ComponentServer) => Promise<void>,
): Promise<void> {
  const callAsync = async (_context: object, _name: string, ...args: unknown[]) =>
    await guest(args[0] as IncomingRequest, args[1] as ResponseOutparam);
  // A handler of WASI 0.2.
  const instance = { callAsync, has: () => false } as unknown as ComponentInstance;
  const pool = { take: () => instance, put() {}, close() {} } as unknown as HandlerOptions["pool"];
  const reports: RequestReport[] = [];
  const onRequest = (report: RequestReport) => void reports.push(report);
  const routes = allRequests({ pool, preview1, limits, context: () => ({}) });
  const server = new ComponentServer({ routes, limits, onRequest });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 }) as AddressInfo;
  try {
    await action(port, reports, server);
  } finally {
    await server.stop();
  }
}

const SOME: HandlerLimits = { concurrent: 4, waiting: 4 };

/** Begins an answer with these fields. */
function begin(out: ResponseOutparam, fields: Readonly<Record<string, string>>): OutgoingBody {
  const list = Object.entries(fields).map(([name, value]) => [name, bytes(value)] as const);
  const response = new OutgoingResponse(preview1, Fields.fromList(list));
  const body = response.body();
  ResponseOutparam.set(out, { tag: "ok", val: response });
  return body;
}

function answer(out: ResponseOutparam, content: string): void {
  const body = begin(out, {});
  body.write().write(bytes(content));
  types.OutgoingBody.finish(body);
}

/** Sends bytes over a connection, and returns all that comes back until it is closed. */
function exchange(port: number, request: string): Promise<string> {
  return new Promise((resolve) => {
    let all = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(request, "latin1"));
    socket.on("data", (part) => all += part.toString("latin1"));
    socket.on("end", () => socket.end());
    socket.on("error", () => {});
    socket.on("close", () => resolve(all));
  });
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}

const SECOND = "GET /second HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

Deno.test("a request with several meanings gets status 400, and nothing after it is a request", async () => {
  const seen: (string | undefined)[] = [];
  const guest: Guest = (request, out) => {
    seen.push(request.pathWithQuery());
    answer(out, "x");
  };
  await withGuest(guest, SOME, async (port, reports) => {
    const heads = [
      "GET /x HTTP/1.1\r\nHost: a\r\nHost: b",
      "GET /x HTTP/1.1\r\nHost: a\r\nhost: a",
      "GET http://b/x HTTP/1.1\r\nHost: a",
      "GET http://c@a/x HTTP/1.1\r\nHost: a",
      "GET https://a/x HTTP/1.1\r\nHost: a",
      "GET /x#y HTTP/1.1\r\nHost: a",
      "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked",
      "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked",
      "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity",
      "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
      "POST /x HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked",
    ];
    for (const head of heads) {
      const reply = await exchange(port, `${head}\r\n\r\n0\r\n\r\n${SECOND}`);
      assert.match(reply, /^HTTP\/1\.1 400 Bad Request\r\n/, head);
      assert.equal(reply.split("HTTP/1.1 ").length, 2, head);
    }
    assert.ok(reports.every(({ status }) => status === 400));
  });
  assert.deepEqual(seen, []);
});

Deno.test("fields beyond the maximum of the host hide none that frames or routes a request", async () => {
  let calls = 0;
  const guest: Guest = (_, out) => {
    calls++;
    answer(out, "x");
  };
  const many = "a:b\r\n".repeat(2500);
  await withGuest(guest, SOME, async (port) => {
    for (const last of ["Transfer-Encoding: gzip, chunked", "Host: b", "X: y"]) {
      const reply = await exchange(port, `POST /x HTTP/1.1\r\nHost: a\r\n${many}${last}\r\n\r\n0\r\n\r\n${SECOND}`);
      assert.match(reply, /^HTTP\/1\.1 431 /, last);
      assert.equal(reply.split("HTTP/1.1 ").length, 2, last);
    }
    assert.equal(calls, 0);
    const few = "a:b\r\n".repeat(190);
    const reply = await exchange(port, `GET /x HTTP/1.1\r\nHost: a\r\n${few}Connection: close\r\n\r\n`);
    assert.match(reply, /^HTTP\/1\.1 200 /);
  });
});

Deno.test("the target of a request names its authority", async () => {
  const guest: Guest = (request, out) => answer(out, `${request.authority()} ${request.pathWithQuery()}`);
  await withGuest(guest, SOME, async (port) => {
    for (
      const [target, host, expected] of [
        ["http://a:8/x?y", "A:8", "a:8 /x?y"],
        ["http://a?y", "a", "a /?y"],
        ["http://a", "a", "a /"],
        ["//b/x", "a", "a //b/x"],
        ["/x", "", " /x"],
      ]
    ) {
      const reply = await exchange(port, `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      assert.ok(reply.endsWith(`\r\n\r\n${expected}`), `${target}: ${reply}`);
    }
  });
});

Deno.test("a head that announces trailers is sent without them where there are no chunks", async () => {
  const guest = (fields: Readonly<Record<string, string>>): Guest => async (_, out) => {
    const body = begin(out, { trailer: "x-end", ...fields });
    // The head is sent before the body has begun.
    await new Promise((resolve) => setTimeout(resolve, 20));
    body.write().write(bytes("abc"));
    types.OutgoingBody.finish(body, Fields.fromList([["x-end", bytes("1")], ["Content-Length", bytes("99")]]));
  };
  const request = (method: string, version: string) =>
    `${method} /x HTTP/${version}\r\nHost: a\r\nConnection: close\r\n\r\n`;
  await withGuest(guest({ "content-length": "3" }), SOME, async (port) => {
    const reply = await exchange(port, request("GET", "1.1"));
    assert.match(reply, /^HTTP\/1\.1 200 OK\r\n(?!.*trailer).*\r\n\r\nabc$/is);
  });
  await withGuest(guest({}), SOME, async (port) => {
    assert.match(await exchange(port, request("GET", "1.0")), /^HTTP\/1\.1 200 OK\r\n(?!.*trailer).*\r\n\r\nabc$/is);
    assert.match(await exchange(port, request("HEAD", "1.1")), /^HTTP\/1\.1 200 OK\r\n(?!.*trailer).*\r\n\r\n$/is);
    const chunked = await exchange(port, request("GET", "1.1"));
    assert.match(chunked, /trailer: x-end\r\n.*3\r\nabc\r\n0\r\nx-end: 1\r\n\r\n$/is);
    assert.doesNotMatch(chunked, /content-length/i);
  });
});

Deno.test("a head that the host refuses ends its connection alone", async () => {
  // A host that refuses the status: hosts differ in the ones that they take.
  class Refused extends OutgoingResponse {
    isGiven = false;
    override statusCode(): number {
      if (this.isGiven) throw new RangeError("Invalid status code");
      return 200;
    }
  }
  const guest: Guest = async (request, out) => {
    if (request.pathWithQuery() === "/second") return answer(out, "x");
    const response = new Refused(preview1, new Fields());
    const body = response.body();
    ResponseOutparam.set(out, { tag: "ok", val: response });
    response.isGiven = true;
    // The head is sent before the body has begun, outside of any call of the guest.
    await new Promise((resolve) => setTimeout(resolve, 20));
    types.OutgoingBody.finish(body);
  };
  await withGuest(guest, SOME, async (port) => {
    assert.equal(await exchange(port, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"), "");
    assert.match(await exchange(port, SECOND), /^HTTP\/1\.1 200 OK\r\n/);
  });
});

Deno.test("a status without a body announces no length", async () => {
  const guest: Guest = (_, out) => {
    const response = new OutgoingResponse(preview1, Fields.fromList([["content-length", bytes("5")]]));
    response.setStatusCode(204);
    ResponseOutparam.set(out, { tag: "ok", val: response });
  };
  await withGuest(guest, SOME, async (port) => {
    const reply = await exchange(port, "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert.match(reply, /^HTTP\/1\.1 204 No Content\r\n(?!.*content-length).*\r\n\r\n$/is);
  });
});

Deno.test("requests that were sent ahead end with their connection", async () => {
  let release = () => {};
  const held = new Promise<void>((resolve) => release = resolve);
  let calls = 0;
  const guest: Guest = async (request, out) => {
    calls++;
    if (request.pathWithQuery() === "/held") await held;
    answer(out, "x");
  };
  await withGuest(guest, { concurrent: 64, waiting: 0 }, async (port, reports, server) => {
    const ahead = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n".repeat(20);
    const socket = connect(port, "127.0.0.1", () => socket.write(`GET /held HTTP/1.1\r\nHost: a\r\n\r\n${ahead}`));
    await until(() => calls === 21);
    socket.destroy();
    await until(() => server.active === 1);
    release();
    await until(() => server.active === 0 && reports.length === 21);
  });
});

Deno.test("a connection on which too many requests were sent ahead is closed, and others are served", async () => {
  let release = () => {};
  const held = new Promise<void>((resolve) => release = resolve);
  const guest: Guest = async (request, out) => {
    if (request.pathWithQuery() === "/held") await held;
    answer(out, "x");
  };
  await withGuest(guest, { concurrent: 64, waiting: 64 }, async (port, reports, server) => {
    const ahead = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n".repeat(5000);
    assert.equal(await exchange(port, `GET /held HTTP/1.1\r\nHost: a\r\n\r\n${ahead}`), "");
    assert.ok(reports.length < 1000);
    assert.match(await exchange(port, SECOND), /^HTTP\/1\.1 200 OK\r\n/);
    release();
    await until(() => server.active === 0);
  });
});

/** Sends parts of a body until the connection is closed. */
function flood(port: number, head: string): Promise<string> {
  return new Promise((resolve) => {
    let all = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n`));
    const timer = setInterval(() => socket.write(`400\r\n${"x".repeat(1024)}\r\n`), 10);
    socket.on("data", (part) => all += String(part));
    socket.on("error", () => {});
    socket.on("close", () => {
      clearInterval(timer);
      resolve(all);
    });
  });
}

Deno.test("the endless body of a refused request ends with its connection", async () => {
  let release = () => {};
  const held = new Promise<void>((resolve) => release = resolve);
  const guest: Guest = async (_, out) => {
    await held;
    answer(out, "x");
  };
  await withGuest(guest, { concurrent: 1, waiting: 0 }, async (port, _, server) => {
    const first = exchange(port, SECOND);
    await until(() => server.active === 1);
    const [busy, bad] = await Promise.all([
      flood(port, "POST /x HTTP/1.1\r\nHost: a\r\n"),
      flood(port, "POST /x HTTP/1.1\r\nHost: a/b\r\n"),
    ]);
    assert.match(busy, /^HTTP\/1\.1 503 /);
    assert.match(bad, /^HTTP\/1\.1 400 /);
    release();
    assert.match(await first, /^HTTP\/1\.1 200 /);
  });
});

Deno.test("connections, and answers that their clients do not take, are bounded", async () => {
  const guest: Guest = (_, out) => answer(out, "x".repeat(1000));
  await withGuest(guest, { ...SOME, ending: 1, connections: 3 }, async (port, reports, server) => {
    // The body that the request announces does not arrive, so the answered request does not end.
    const slow = connect(port, "127.0.0.1", () => {
      slow.write("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
    });
    slow.on("error", () => {});
    await new Promise((resolve) => slow.once("data", resolve));
    assert.equal(server.active, 1);
    assert.match(await exchange(port, SECOND), /^HTTP\/1\.1 503 /);
    // Bun counts a connection from its first request on.
    const idle = [0, 1].map(() => connect(port, "127.0.0.1"));
    for (const socket of idle) socket.write("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    await Promise.all(idle.map((socket) => new Promise((resolve) => socket.once("data", resolve))));
    assert.equal(await exchange(port, SECOND), "");
    for (const socket of [slow, ...idle]) socket.destroy();
    await until(() => reports.length === 4 && server.active === 0);
  });
});

/** Runs `action` with a server that answers with `respond`; `open` is the number of its connections. */
async function withPeer(
  respond: (response: ServerResponse) => void,
  action: (port: number, open: () => number) => Promise<void>,
): Promise<void> {
  const sockets = new Set<Socket>();
  const server = createServer((_, response) => respond(response));
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await action((server.address() as { port: number }).port, () => sockets.size);
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
}

function requestTo(port: number): OutgoingRequest {
  const request = new OutgoingRequest(preview1, new Fields());
  request.setScheme({ tag: "HTTP" });
  request.setAuthority(`127.0.0.1:${port}`);
  return request;
}

function send(port: number, quota: SocketQuota): FutureIncomingResponse {
  return sendTo(port, quota, requestTo(port));
}

function sendTo(port: number, quota: SocketQuota, request: OutgoingRequest): FutureIncomingResponse {
  const grants = new NetworkGrants({ connect: [`127.0.0.1:${port}`] });
  return new FutureIncomingResponse(preview1, { grants, quota }, request, undefined);
}

async function responseOf(future: FutureIncomingResponse): Promise<IncomingResponse> {
  await future.subscribe().block();
  return (future.get() as { val: { val: IncomingResponse } }).val.val;
}

Deno.test("a response that the guest drops before its end closes its connection", async () => {
  const endless = (response: ServerResponse) => {
    const timer = setInterval(() => response.write("x".repeat(1000)), 1);
    response.on("close", () => clearInterval(timer));
  };
  await withPeer(endless, async (port, open) => {
    const quota = new SocketQuota(8);
    const drops: ((response: IncomingResponse) => void)[] = [
      (response) => response[Symbol.dispose](),
      (response) => response.consume()[Symbol.dispose](),
      (response) => {
        const body = response.consume();
        body.stream();
        response[Symbol.dispose]();
        body[Symbol.dispose]();
      },
      (response) => types.IncomingBody.finish(response.consume())[Symbol.dispose](),
    ];
    for (const drop of drops) {
      drop(await responseOf(send(port, quota)));
      await until(() => open() === 0 && quota.open === 0);
    }
  });
});

Deno.test("the requests under way are bounded", async () => {
  await withPeer(() => {}, async (port, open) => {
    const quota = new SocketQuota(2);
    const futures = [send(port, quota), send(port, quota)];
    const limit = { payload: { tag: "connection-limit-reached", val: undefined } };
    assert.throws(() => send(port, quota), limit);
    await until(() => open() === 2);
    futures[0][Symbol.dispose]();
    await until(() => quota.open === 1);
    const early = send(port, quota);
    assert.throws(() => send(port, quota), limit);
    const waiting = requestTo(port);
    const output = waiting.body().write();
    assert.throws(() => sendTo(port, quota, waiting), limit);
    assert.throws(() => output.write(bytes("x")), { payload: { tag: "closed" } }, "its body ends with it");
    // Dropped while its name is being resolved.
    early[Symbol.dispose]();
    futures[1][Symbol.dispose]();
    await until(() => quota.open === 0);
  });
});

Deno.test("a socket counts until the host has closed it", async () => {
  const peers: Socket[] = [];
  const server = createTcpServer({ pauseOnConnect: true }, (socket) => {
    socket.on("error", () => {});
    peers.push(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const quota = new SocketQuota(1);
  const grants = new NetworkGrants({ connect: [`127.0.0.1:${port}`] });
  const socket = new TcpSocket({ preview1, grants, quota }, "ipv4");
  socket.startConnect(undefined, { tag: "ipv4", val: { port, address: [127, 0, 0, 1] } });
  await socket.subscribe().block();
  const [, output] = socket.finishConnect();
  // More than the buffers of the system hold, so that the rest lingers.
  for (let k = 0; k < 200 && output.checkWrite() > 0n; k++) {
    output.write(new Uint8Array(Number(output.checkWrite())));
    for (let turn = 0; turn < 20 && output.checkWrite() === 0n; turn++) await new Promise((r) => setTimeout(r, 1));
  }
  assert.equal(output.checkWrite(), 0n);
  socket[Symbol.dispose]();
  assert.throws(() => new TcpSocket({ preview1, grants, quota }, "ipv4"), { payload: "new-socket-limit" });
  await until(() => peers.length === 1);
  peers[0].destroy();
  await until(() => quota.open === 0);
  new TcpSocket({ preview1, grants, quota }, "ipv4")[Symbol.dispose]();
  assert.equal(quota.open, 0);
  await new Promise((resolve) => server.close(resolve));
});
