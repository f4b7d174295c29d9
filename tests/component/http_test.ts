/** wasi:http of WASI 0.2: fields, messages and the client, on the loopback interface. */
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Fields } from "../../component/http/fields.ts";
import { httpInterfaces } from "../../component/http/mod.ts";
import type { FutureIncomingResponse } from "../../component/http/client.ts";
import {
  checkAuthority,
  checkedScheme,
  type IncomingResponse,
  type OutgoingRequest,
  type RequestOptions,
} from "../../component/http/messages.ts";
import { ComponentWasi, type NetworkOptions } from "../../component/wasi/mod.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

/** The error case that `action` throws. */
function payload(action: () => unknown): unknown {
  try {
    action();
  } catch (error) {
    return (error as { payload?: unknown }).payload ?? error;
  }
  return "no error";
}

/** The classes of a guest with these grants. */
function guest(network: NetworkOptions) {
  const wasi = new ComponentWasi({ network });
  const imports = httpInterfaces(wasi) as Record<string, Record<string, unknown>>;
  const types = imports["wasi:http/types"];
  const send = imports["wasi:http/outgoing-handler"]["handle"] as (
    request: OutgoingRequest,
    options?: RequestOptions,
  ) => FutureIncomingResponse;
  const Request = types["OutgoingRequest"] as new (headers: Fields) => OutgoingRequest;
  const Options = types["RequestOptions"] as new () => RequestOptions;
  const { finish: finishOutgoing } = types["OutgoingBody"] as { finish(body: unknown, trailers?: Fields): void };
  const { finish: finishIncoming } = types["IncomingBody"] as {
    finish(body: unknown): { subscribe(): { block(): unknown }; get(): unknown };
  };
  const to = (authority: string, path = "/", headers = new Fields()) => {
    const request = new Request(headers);
    request.setScheme({ tag: "HTTP" });
    request.setAuthority(authority);
    request.setPathWithQuery(path);
    return request;
  };
  return { to, send, Options, finishOutgoing, finishIncoming, close: () => wasi.close() };
}

/** The response, or the error. */
async function outcome(future: FutureIncomingResponse): Promise<{ tag: "ok" | "err"; val: unknown }> {
  await future.subscribe().block();
  return (future.get() as { val: { tag: "ok" | "err"; val: unknown } }).val;
}

async function response(future: FutureIncomingResponse): Promise<IncomingResponse> {
  const { tag, val } = await outcome(future);
  assert.equal(tag, "ok", String((val as { tag?: unknown }).tag));
  return val as IncomingResponse;
}

async function withServer(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  action: (port: number) => Promise<void>,
): Promise<void> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await action((server.address() as { port: number }).port);
  } finally {
    server.closeAllConnections?.();
    server.close();
  }
}

Deno.test("fields cannot end a line, a field or a message", () => {
  const fields = new Fields();
  const bad = ["", "a b", "a:", "a\r", "a\n", "é", "a\0", "(a)"];
  for (const name of bad) {
    assert.deepEqual(payload(() => fields.append(name, bytes("x"))), { tag: "invalid-syntax" }, name);
  }
  for (const value of ["a\r\nb: c", "a\n", "a\0", "\x7f"]) {
    assert.deepEqual(payload(() => fields.append("x", bytes(value))), { tag: "invalid-syntax" }, value);
    assert.deepEqual(payload(() => Fields.fromList([["x", bytes(value)]])), { tag: "invalid-syntax" }, value);
    assert.deepEqual(payload(() => fields.set("x", [bytes(value)])), { tag: "invalid-syntax" }, value);
  }
  for (const name of ["Connection", "host", "TRANSFER-ENCODING", "upgrade", "keep-alive", "proxy-connection"]) {
    assert.deepEqual(payload(() => fields.append(name, bytes("x"))), { tag: "forbidden" }, name);
    assert.deepEqual(payload(() => fields.set(name, [])), { tag: "forbidden" }, name);
    assert.deepEqual(payload(() => fields.delete(name)), { tag: "forbidden" }, name);
  }
  assert.deepEqual(fields.entries(), []);
  assert.throws(() => fields.append("x", new Uint8Array(1 << 18).fill(65)), RangeError);
  assert.throws(() => Fields.fromList(Array.from({ length: 1025 }, () => ["x", bytes("y")] as const)), RangeError);
});

Deno.test("sizes of fields, schemes and authorities are checked before their contents", () => {
  const control = new Uint8Array(2 ** 17 + 1).fill(1);
  const tooLarge = { tag: "size-exceeded" };
  assert.deepEqual(payload(() => new Fields(true).append("a", control)), tooLarge);
  assert.deepEqual(payload(() => Fields.filled(new Fields(true), [["a", control]])), tooLarge);
  assert.deepEqual(payload(() => new Fields(true).set("a", Array(1025).fill(control))), tooLarge);
  assert.throws(() => new Fields().append("a", control), RangeError);
  const name = "a".repeat(2 ** 17 + 1);
  assert.deepEqual(payload(() => new Fields().delete(name)), { tag: "invalid-syntax" });
  assert.equal(new Fields().has(name), false);
  checkedScheme({ tag: "other", val: "a".repeat(64) });
  assert.throws(() => checkedScheme({ tag: "other", val: "a".repeat(65) }));
  checkAuthority("a".repeat(512));
  assert.throws(() => checkAuthority("a".repeat(513)));
});

Deno.test("fields compare names without case, keep order, and views cannot be changed", () => {
  const fields = Fields.fromList([["Set-Cookie", bytes("a")], ["X", bytes("1")], ["set-cookie", bytes("b")]]);
  assert.deepEqual(fields.get("SET-COOKIE").map(text), ["a", "b"]);
  assert.equal(fields.has("x"), true);
  fields.set("x", [bytes("2"), bytes("3")]);
  assert.deepEqual(fields.entries().map(([name]) => name), ["Set-Cookie", "Set-Cookie", "x", "x"]);
  fields.delete("set-cookie");
  assert.equal(fields.has("set-cookie"), false);
  const view = fields.view();
  assert.deepEqual(payload(() => view.append("y", bytes("z"))), { tag: "immutable" });
  fields.append("y", bytes("z"));
  assert.equal(view.has("y"), true);
  const copy = view.clone();
  copy.append("w", bytes(""));
  assert.equal(fields.has("w"), false);
});

Deno.test("fields that arrive come without those of the connection", () => {
  const fields = Fields.arrived(["Host", "a", "Connection", "close", "X", "\xe9", "Transfer-Encoding", "chunked"]);
  assert.deepEqual(fields.entries(), [["X", Uint8Array.of(0xe9)]]);
});

Deno.test("the length that a message announces is one number", () => {
  const length = (...values: string[]) => () =>
    Fields.fromList(values.map((value) => ["Content-Length", bytes(value)] as const)).contentLength;
  assert.equal(length()(), undefined);
  assert.equal(length("5")(), 5);
  for (const values of [["5", "5"], ["+5"], ["5, 6"], ["0x5"], [""], ["1e3"]]) assert.throws(length(...values));
});

Deno.test("the parts of a request have no character that ends the line", () => {
  const { to, close } = guest({});
  const request = to("example.test:80");
  for (const authority of ["a b", "a\r\nb", "a/b", "a@b", "", "a:x", "[::1", "a:80:80"]) {
    assert.notEqual(payload(() => request.setAuthority(authority)), "no error", authority);
  }
  for (const path of ["/a b", "/a\r\nX: y", "a", "http://a/", "/\u00e9"]) {
    assert.notEqual(payload(() => request.setPathWithQuery(path)), "no error", path);
  }
  for (const val of ["GET /", "a\n", ""]) {
    assert.notEqual(payload(() => request.setMethod({ tag: "other", val })), "no error", val);
  }
  assert.equal(request.authority(), "example.test:80");
  close();
});

Deno.test("a request goes only where a grant permits it", async () => {
  let requests = 0;
  await withServer((_, response) => {
    requests++;
    response.end();
  }, async (port) => {
    const none = guest({});
    const denied = { tag: "HTTP-request-denied" };
    assert.deepEqual(payload(() => none.send(none.to(`127.0.0.1:${port}`))), denied);
    none.close();
    const some = guest({ connect: [`127.0.0.2:${port}`, "192.0.2.1:80"] });
    const notations = [
      "127.0.0.1",
      "127.1",
      "2130706433",
      "0x7f000001",
      "localhost",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "0.0.0.0",
    ];
    for (const host of notations) {
      const { tag, val } = await outcome(some.send(some.to(`${host}:${port}`)));
      assert.deepEqual([tag, val], ["err", denied], host);
    }
    some.close();
  });
  assert.equal(requests, 0);
});

Deno.test("a request and its answer carry fields, bodies and trailers", async () => {
  await withServer((request, response) => {
    response.setHeader("x-seen", `${request.method} ${request.url} ${request.headers.host} ${request.headers["x-a"]}`);
    response.setHeader("trailer", "x-end");
    request.on("data", (part: Uint8Array) => response.write(part));
    request.on("end", () => {
      response.addTrailers({ "x-end": "yes" });
      response.end();
    });
  }, async (port) => {
    const some = guest({ connect: [`127.0.0.1:${port}`] });
    const request = some.to(`127.0.0.1:${port}`, "/p?q", Fields.fromList([["X-A", bytes("b")]]));
    request.setMethod({ tag: "put" });
    const body = request.body();
    const output = body.write();
    output.write(bytes("early "));
    const future = some.send(request);
    await output.blockingWriteAndFlush(bytes("late"));
    some.finishOutgoing(body);
    const answer = await response(future);
    assert.deepEqual(future.get(), { tag: "err", val: undefined });
    assert.equal(answer.status(), 200);
    assert.deepEqual(answer.headers().get("x-seen").map(text), [`PUT /p?q 127.0.0.1:${port} b`]);
    assert.equal(answer.headers().has("transfer-encoding"), false);
    const incoming = answer.consume();
    assert.notEqual(payload(() => answer.consume()), "no error");
    const input = incoming.stream();
    let all = "";
    while (all.length < 10) all += text(await input.blockingRead(3n));
    assert.equal(all, "early late");
    const trailers = some.finishIncoming(incoming);
    await trailers.subscribe().block();
    const { val } = trailers.get() as { val: { val: Fields } };
    assert.deepEqual(val.val.get("x-end").map(text), ["yes"]);
    some.close();
  });
});

Deno.test("an answer has all of its fields", async () => {
  await withServer((_, response) => {
    response.setHeader("a", Array(2500).fill("b"));
    response.setHeader("x-last", "yes");
    response.end();
  }, async (port) => {
    const some = guest({ connect: [`127.0.0.1:${port}`] });
    const { tag, val } = await outcome(some.send(some.to(`127.0.0.1:${port}`)));
    // Bun takes no answer of so many fields.
    if (tag === "ok") assert.deepEqual((val as IncomingResponse).headers().get("x-last").map(text), ["yes"]);
    some.close();
  });
});

Deno.test("the body of a GET request is framed", async () => {
  const seen: unknown[] = [];
  await withServer((request, response) => {
    let body = "";
    request.on("data", (part) => body += String(part));
    request.on("end", () => {
      seen.push([request.method, body]);
      response.end();
    });
  }, async (port) => {
    const some = guest({ connect: [`127.0.0.1:${port}`] });
    for (const tag of ["get", "delete", "options"]) {
      const request = some.to(`127.0.0.1:${port}`);
      request.setMethod({ tag });
      const body = request.body();
      body.write().write(bytes("GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"));
      some.finishOutgoing(body);
      assert.equal((await response(some.send(request))).status(), 200);
    }
    some.close();
  });
  assert.deepEqual(
    seen,
    ["GET", "DELETE", "OPTIONS"].map((method) => [method, "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"]),
  );
});

Deno.test("a message that announces bytes has a body", () => {
  const some = guest({ connect: ["192.0.2.1:80"] });
  const request = some.to("192.0.2.1", "/", Fields.fromList([["content-length", bytes("5")]]));
  assert.deepEqual(payload(() => some.send(request)), { tag: "HTTP-request-body-size", val: undefined });
  assert.throws(() => request.takeSink(false), /announces 5 bytes/);
  assert.equal(request.takeSink(true).isEmpty, true);
  some.close();
});

Deno.test("failures of a request have their codes", async () => {
  let port = 0;
  await withServer((request, response) => {
    if (request.url === "/cut") {
      response.writeHead(200, { "content-length": "10" });
      response.write("half", () => response.destroy());
    }
    // Any other request gets no answer.
  }, async (found) => {
    port = found;
    const some = guest({ connect: [`127.0.0.1:${port}`] });
    const options = new some.Options();
    options.setFirstByteTimeout(20_000_000n);
    const late = await outcome(some.send(some.to(`127.0.0.1:${port}`), options));
    assert.deepEqual(late, { tag: "err", val: { tag: "HTTP-response-timeout", val: undefined } });
    const cut = await response(some.send(some.to(`127.0.0.1:${port}`, "/cut")));
    const input = cut.consume().stream();
    assert.equal(text(await input.blockingRead(100n)), "half");
    const read = async () => await input.blockingRead(100n);
    const error = await Promise.resolve().then(read).then(() => undefined, (error) => error.payload);
    assert.deepEqual([error.tag, error.val.httpError], ["last-operation-failed", { tag: "HTTP-response-incomplete" }]);
    some.close();
  });
  const some = guest({ connect: [`127.0.0.1:${port}`] });
  const refused = await outcome(some.send(some.to(`127.0.0.1:${port}`)));
  assert.deepEqual(refused, { tag: "err", val: { tag: "connection-refused", val: undefined } });
  some.close();
});

Deno.test("a body that is longer or shorter than announced is an error", () => {
  const some = guest({});
  const announcing = (length: string) => some.to("a.test", "/", Fields.fromList([["content-length", bytes(length)]]));
  const long = announcing("3").body();
  const output = long.write();
  assert.equal((payload(() => output.write(bytes("four"))) as { tag: string }).tag, "last-operation-failed");
  assert.deepEqual(payload(() => some.finishOutgoing(long)), { tag: "HTTP-request-body-size", val: 4n });
  const short = announcing("3").body();
  short.write().write(bytes("2"));
  assert.deepEqual(payload(() => some.finishOutgoing(short)), { tag: "HTTP-request-body-size", val: 1n });
  assert.notEqual(payload(() => announcing("x").body()), "no error");
  some.close();
});
