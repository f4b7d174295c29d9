/**
 * Details of WASI 0.2 and 0.3 that programs observe: outcomes of messages that were not sent, status codes, spellings,
 * methods and schemes, seeds, flags of directories, addresses of groups, outcomes of streams that a guest drops.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, isIP } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Outcome } from "../../component/async/host_streams.ts";
import { Fields } from "../../component/http/fields.ts";
import { OutgoingRequest, OutgoingResponse } from "../../component/http/messages.ts";
import { httpInterfaces } from "../../component/http/mod.ts";
import { AsyncFields, AsyncRequest, AsyncResponse } from "../../component/http/v0_3/messages.ts";
import type { Descriptor } from "../../component/wasi/filesystem.ts";
import { ComponentWasi, type NetworkOptions } from "../../component/wasi/mod.ts";
import { localAddressFor, type SocketAddress, socketAddress } from "../../component/wasi/socket_address.ts";
import type { TcpSocket } from "../../component/wasi/tcp.ts";
import type { UdpSocket } from "../../component/wasi/udp.ts";
import { waft } from "../cli_project/waft.ts";
import { writeFileSync } from "node:fs";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (value: Uint8Array) => new TextDecoder().decode(value);

/** The error case of a function that throws or rejects. */
async function code(action: () => unknown): Promise<unknown> {
  try {
    await action();
  } catch (error) {
    return (error as { payload?: unknown }).payload ?? error;
  }
  return "no error";
}

const noTrailers = () => Promise.resolve({ tag: "ok", val: undefined });

type Sent = Outcome<{ tag: string; val?: { tag: string } }>;

function newRequest(port: number | undefined, contents?: ReadableStream<Uint8Array>): [AsyncRequest, Sent] {
  const [request, sent] = AsyncRequest.new(new AsyncFields(), contents, noTrailers(), undefined);
  if (port !== undefined) {
    request.setScheme({ tag: "HTTP" });
    request.setAuthority(`127.0.0.1:${port}`);
  }
  return [request, sent as Sent];
}

Deno.test("the outcome of a request that was never sent is an error, that of another one is not", async () => {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    request.on("data", (part: Uint8Array) => seen.push(text(part)));
    request.on("end", () => response.end("ok"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const body = () => new Blob(["a body"]).stream();
  const send = (network: NetworkOptions, request: AsyncRequest): Promise<unknown> => {
    const client = httpInterfaces(new ComponentWasi({ network }))["wasi:http/client@0.3.0"] as {
      send(request: AsyncRequest): Promise<unknown>;
    };
    return client.send(request);
  };
  const connect = [`127.0.0.1:${port}`, "127.0.0.1:1"];
  try {
    for (const contents of [() => undefined, body]) {
      const [dropped, never] = newRequest(port, contents());
      dropped[Symbol.dispose]();
      assert.deepEqual(await never.settled(), { tag: "err", val: { tag: "connection-terminated" } });
      const [denied, isDenied] = newRequest(port, contents());
      assert.deepEqual(await code(() => send({}, denied)), { tag: "HTTP-request-denied" });
      assert.deepEqual(await isDenied.settled(), { tag: "err", val: { tag: "HTTP-request-denied" } });
      const [refused, isRefused] = newRequest(1, contents());
      assert.equal((await code(() => send({ connect }, refused)) as { tag: string }).tag, "connection-refused");
      assert.equal((await isRefused.settled()).val?.tag, "connection-refused");
      const [invalid, isInvalid] = newRequest(undefined, contents());
      assert.notEqual(await code(() => send({ connect }, invalid)), "no error");
      assert.equal((await isInvalid.settled()).tag, "err");
      const [consumed, isConsumed] = newRequest(port, contents());
      AsyncRequest.consumeBody(consumed, Promise.reject(new Error("dropped")));
      assert.equal((await isConsumed.settled()).tag, "err");
      const [good, isGood] = newRequest(port, contents());
      const response = await send({ connect }, good) as AsyncResponse;
      assert.equal(response.getStatusCode(), 200);
      assert.deepEqual(await isGood.settled(), { tag: "ok" });
      response[Symbol.dispose]();
    }
    assert.deepEqual(seen, ["a body"]);
  } finally {
    server.closeAllConnections?.();
    server.close();
  }
});

Deno.test("every status that HTTP has can be set, in 0.2 and 0.3", async () => {
  const { preview1 } = new ComponentWasi();
  const old = new OutgoingResponse(preview1, new Fields());
  const [response] = AsyncResponse.new(new AsyncFields(), undefined, noTrailers());
  for (const status of [100, 101, 103, 200, 404, 599]) {
    old.setStatusCode(status);
    response.setStatusCode(status);
    assert.deepEqual([old.statusCode(), response.getStatusCode()], [status, status]);
  }
  for (const status of [0, 99, 600, 1000]) {
    assert.equal((await code(() => old.setStatusCode(status)) as Error).name, "ComponentError");
    assert.equal((await code(() => response.setStatusCode(status)) as Error).name, "ComponentError");
  }
});

Deno.test("values may have outer blanks, which are not sent; a name has one spelling", () => {
  const fields = new AsyncFields();
  fields.append("X-One", bytes(" a\t"));
  fields.append("x-two", bytes("\t"));
  fields.append("x-oNE", bytes("b c "));
  assert.deepEqual(fields.get("x-one").map(text), [" a\t", "b c "]);
  for (const all of [fields.copyAll(), fields.clone().copyAll(), AsyncFields.fromList(fields.copyAll()).entries()]) {
    assert.deepEqual(all.map(([name, value]) => [name, text(value)]), [
      ["X-One", " a\t"],
      ["x-two", "\t"],
      ["X-One", "b c "],
    ]);
  }
  assert.deepEqual(fields.toRaw(), ["X-One", "a", "x-two", "", "X-One", "b c"]);
  assert.equal(Fields.fromList([["content-length", bytes(" 5 ")]]).contentLength, 5);
  assert.deepEqual(Fields.arrived(["A", "1", "a", "2"]).entries().map(([name]) => name), ["A", "A"]);
});

Deno.test("known methods and schemes that are given as others read back as known", () => {
  const { preview1 } = new ComponentWasi();
  const old = new OutgoingRequest(preview1, new Fields());
  const [request] = newRequest(undefined);
  const rows = [
    [{ tag: "other", val: "https" }, { tag: "HTTPS" }],
    [{ tag: "other", val: "HTTP" }, { tag: "HTTP" }],
    [{ tag: "other", val: "ftp" }, { tag: "other", val: "ftp" }],
  ] as const;
  for (const [given, read] of rows) {
    old.setScheme(given);
    request.setScheme(given);
    assert.deepEqual([old.scheme(), request.getScheme()], [read, read]);
  }
  for (const [given, read] of [["GET", { tag: "get" }], ["get", { tag: "other", val: "get" }]] as const) {
    old.setMethod({ tag: "other", val: given });
    request.setMethod({ tag: "other", val: given });
    assert.deepEqual([old.method(), request.getMethod()], [read, read]);
  }
});

Deno.test("the insecure seed is the same at each call of a guest", () => {
  const seeds = () => {
    const { imports } = new ComponentWasi();
    const old = imports["wasi:random/insecure-seed"] as { insecureSeed(): bigint[] };
    const now = imports["wasi:random/insecure-seed@0.3.0"] as { getInsecureSeed(): bigint[] };
    return [old.insecureSeed(), now.getInsecureSeed(), old.insecureSeed()];
  };
  const [first, second] = [seeds(), seeds()];
  assert.deepEqual(first, [first[0], first[0], first[0]]);
  assert.notDeepEqual(first[0], second[0]);
});

Deno.test("directories: flags are those asked for, and advice is refused", async () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-details-"));
  mkdirSync(join(folder, "inner"));
  const wasi = new ComponentWasi({ preopens: [{ host: folder, guest: "/" }] });
  const refusal: Record<string, unknown> = { "": "bad-descriptor", "@0.3.0": { tag: "bad-descriptor" } };
  try {
    for (const version of ["", "@0.3.0"]) {
      const preopens = wasi.imports[`wasi:filesystem/preopens${version}`] as {
        getDirectories(): [Descriptor, string][];
      };
      const [[root]] = preopens.getDirectories();
      assert.equal(root.getFlags().mutateDirectory, true);
      const set = (descriptor: Descriptor) =>
        Object.entries(descriptor.getFlags()).flatMap(([name, is]) => is === true ? [name] : []);
      for (const path of [".", "inner"]) {
        for (const open of [{}, { directory: true }]) {
          assert.deepEqual(set(root.openAt({}, path, open, { read: true })), ["read"], path);
          assert.deepEqual(set(root.openAt({}, path, open, { read: true, mutateDirectory: true })), [
            "read",
            "mutateDirectory",
          ], path);
        }
        const directory = root.openAt({}, path, {}, { read: true });
        assert.deepEqual(await code(() => directory.advise(0n, 0n, "normal")), refusal[version]);
      }
      const file = root.openAt({}, "file", { create: true }, { read: true, write: true });
      file.advise(0n, 0n, "sequential");
      assert.deepEqual(set(file), ["read", "write"]);
    }
  } finally {
    wasi.close();
    rmSync(folder, { recursive: true });
  }
});

const GROUPS = ["224.0.0.1", "239.255.255.255", "255.255.255.255", "ff02::1", "ff00::"];

Deno.test("TCP sockets neither bind nor connect to addresses of groups of hosts", async () => {
  const wasi = new ComponentWasi({ network: { connect: GROUPS, listen: ["127.0.0.1:0"] } });
  const create = wasi.imports["wasi:sockets/tcp-create-socket"] as { createTcpSocket(family: string): TcpSocket };
  const { TcpSocket: Tcp } = wasi.imports["wasi:sockets/types@0.3.0"] as {
    TcpSocket: {
      create(family: string): { bind(address: SocketAddress): unknown; connect(address: SocketAddress): unknown };
    };
  };
  for (const address of GROUPS) {
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    const old = create.createTcpSocket(family);
    const now = Tcp.create(family);
    const at = socketAddress({ address, port: 80 });
    assert.equal(await code(() => old.startBind({}, at)), "invalid-argument", address);
    assert.equal(await code(() => old.startConnect({}, at)), "invalid-argument", address);
    assert.deepEqual(await code(() => now.bind(at)), { tag: "invalid-argument" }, address);
    assert.deepEqual(await code(() => now.connect(at)), { tag: "invalid-argument" }, address);
  }
  wasi.close();
});

Deno.test("a connected UDP socket has the address of the interface that leads to its peer", async () => {
  const wasi = new ComponentWasi({ network: { connect: ["127.0.0.1"] } });
  const create = wasi.imports["wasi:sockets/udp-create-socket"] as { createUdpSocket(family: string): UdpSocket };
  const socket = create.createUdpSocket("ipv4");
  socket.startBind({}, socketAddress({ address: "0.0.0.0", port: 0 }));
  await socket.subscribe().block();
  socket.finishBind();
  const local = () => (socket.localAddress() as { val: { address: readonly number[] } }).val.address.join(".");
  socket.stream(undefined);
  assert.equal(local(), "0.0.0.0");
  socket.stream(socketAddress({ address: "127.0.0.1", port: 9 }));
  assert.equal(local(), "127.0.0.1");
  socket.stream(undefined);
  assert.equal(local(), "0.0.0.0");
  socket[Symbol.dispose]();
  wasi.close();
  assert.equal(localAddressFor("127.0.0.2"), "127.0.0.1");
  const outside = localAddressFor("203.0.113.1");
  assert.ok(outside === undefined || (isIP(outside) === 4 && !outside.startsWith("127.")), outside);
});

Deno.test("the error of a stream that never was reaches a guest that drops the stream", async () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-details-"));
  const wasi = new ComponentWasi({
    network: { connect: ["127.0.0.1"] },
    preopens: [{ host: folder, guest: "/" }],
  });
  type Result = [AsyncIterable<Uint8Array>, Outcome];
  const { TcpSocket: Tcp } = wasi.imports["wasi:sockets/types@0.3.0"] as {
    TcpSocket: { create(family: string): { receive(): Result } };
  };
  const preopens = wasi.imports["wasi:filesystem/preopens@0.3.0"] as {
    getDirectories(): [{ readViaStream(offset: bigint): Result }, string][];
  };
  const results = [
    [Tcp.create("ipv4").receive(), { tag: "invalid-state" }],
    [preopens.getDirectories()[0][0].readViaStream(0n), { tag: "bad-descriptor" }],
  ] as const;
  for (const [[stream, outcome], val] of results) {
    await stream[Symbol.asyncIterator]().return?.();
    assert.deepEqual(await outcome.settled(), { tag: "err", val });
  }
  wasi.close();
  rmSync(folder, { recursive: true });
});

Deno.test("argument 0 of a program is the name of its file, without directories", async () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-details-"));
  try {
    const file = join(folder, "program.wat");
    writeFileSync(
      file,
      `(module
      (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
      (memory (export "memory") 1)
      (func (export "_start")
        (drop (call $args (i32.const 64) (i32.const 1024)))
        (i32.store (i32.const 0) (i32.const 1024))
        (i32.store (i32.const 4) (i32.const 13))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 32)))))`,
    );
    const { code, out } = await waft(["run", file, "x"], folder, folder);
    assert.deepEqual([code, out], [0, "program.wat\0x"]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
