/** wasi:sockets of WASI 0.3: TCP, UDP and lookup of names, on the loopback interface. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { NewEngine } from "@waft/engine";
import { readFile } from "@waft/engine/internal/host/files";
import { consume, type Outcome } from "../../component/async/host_streams.ts";
import { cancelOf } from "../../component/async/host_calls.ts";
import { compileComponent } from "../../component/mod.ts";
import { ComponentWasi } from "../../component/wasi/mod.ts";
import type { NetworkOptions } from "../../component/wasi/network_grants.ts";
import { type Family, type SocketAddress, socketAddress } from "../../component/wasi/socket_address.ts";

const FIXTURE = fileURLToPath(new URL("fixtures/async_tcp.wat", import.meta.url));
const at = (port: number, address = "127.0.0.1") => socketAddress({ address, port });
const bytes = (text: string) => new TextEncoder().encode(text);

interface TcpSocket {
  bind(address: SocketAddress): unknown;
  connect(address: SocketAddress): Promise<void>;
  listen(): Promise<AsyncIterable<TcpSocket>>;
  send(data: ReadableStream<Uint8Array>): Outcome;
  receive(): [AsyncIterable<Uint8Array>, Outcome];
  getLocalAddress(): SocketAddress;
  getRemoteAddress(): SocketAddress;
  [Symbol.dispose](): void;
}

interface UdpSocket {
  bind(address: SocketAddress): unknown;
  connect(address: SocketAddress): unknown;
  disconnect(): void;
  send(data: Uint8Array, to?: SocketAddress): Promise<void>;
  receive(): Promise<[Uint8Array, SocketAddress]>;
  getLocalAddress(): SocketAddress;
  [Symbol.dispose](): void;
}

/** The functions of a guest with these grants. */
function guest(network: NetworkOptions) {
  const wasi = new ComponentWasi({ network });
  const types = wasi.imports["wasi:sockets/types@0.3.0"] as {
    TcpSocket: { create(family: Family): TcpSocket };
    UdpSocket: { create(family: Family): UdpSocket };
  };
  const lookup = wasi.imports["wasi:sockets/ip-name-lookup@0.3.0"] as {
    resolveAddresses(name: string): Promise<unknown[]>;
  };
  return {
    tcp: () => types.TcpSocket.create("ipv4"),
    udp: () => types.UdpSocket.create("ipv4"),
    look: (name: string) => lookup.resolveAddresses(name),
    imports: wasi.imports,
    close: () => wasi.close(),
  };
}

/** The error case that `action` throws or rejects with. */
async function code(action: () => unknown): Promise<unknown> {
  try {
    await action();
  } catch (error) {
    return (error as { payload?: unknown }).payload ?? error;
  }
  return "no error";
}

async function collect(source: AsyncIterable<Uint8Array>): Promise<string> {
  let text = "";
  for await (const part of source) text += new TextDecoder().decode(part);
  return text;
}

async function withServer(answer: (socket: Socket) => void, action: (port: number) => Promise<void>): Promise<void> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    answer(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await action(portOf(server));
  } finally {
    server.close();
  }
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

function stream(...parts: readonly string[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(bytes(part));
      controller.close();
    },
  });
}

Deno.test("a guest of WASI 0.3 connects, sends and receives, within its grants", async () => {
  const component = compileComponent(NewEngine(), new TextDecoder().decode(readFile(FIXTURE)));
  const ping = async (port: number, network: NetworkOptions) => {
    const { imports, close } = guest(network);
    try {
      const instance = component.instantiate<{ ping(port: number): Promise<number> }>({}, imports);
      return await instance.exports.ping(port).catch((error: { payload?: unknown }) => ({
        error: error.payload ?? error,
      }));
    } finally {
      close();
    }
  };
  await withServer((socket) => socket.pipe(socket), async (port) => {
    const sum = [..."ping"].reduce((sum, character) => sum + character.charCodeAt(0), 0);
    assert.equal(await ping(port, { connect: [`127.0.0.1:${port}`] }), sum);
    assert.deepEqual(await ping(port, {}), { error: 0 }, "access-denied without a grant");
    assert.deepEqual(await ping(port, { connect: ["127.0.0.1:1"] }), { error: 0 }, "access-denied for another port");
  });
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const port = portOf(server);
  await new Promise((resolve) => server.close(resolve));
  assert.deepEqual(await ping(port, { connect: [`127.0.0.1:${port}`] }), { error: 9 }, "connection-refused");
});

Deno.test("a connection has one stream in each direction, and long data arrive whole", async () => {
  await withServer((socket) => socket.pipe(socket), async (port) => {
    const { tcp, close } = guest({ connect: [`127.0.0.1:${port}`] });
    const socket = tcp();
    assert.deepEqual(await code(() => socket.getRemoteAddress()), { tag: "invalid-state" });
    await socket.connect(at(port));
    assert.deepEqual(socket.getRemoteAddress(), at(port));
    const part = "x".repeat(100_000);
    const sent = socket.send(stream(part, part, part)).settled();
    const [data, outcome] = socket.receive();
    const received = outcome.settled();
    assert.equal((await collect(data)).length, 300_000);
    assert.deepEqual([await sent, await received], [{ tag: "ok" }, { tag: "ok" }]);
    const [none, refused] = socket.receive();
    const failure = refused.settled();
    assert.equal(await collect(none), "");
    assert.deepEqual(await failure, { tag: "err", val: { tag: "invalid-state" } });
    socket[Symbol.dispose]();
    close();
  });
});

Deno.test("a receiver that is dropped while it waits closes the connection", async () => {
  let closed: Promise<unknown> | undefined;
  await withServer((socket) => {
    closed = once(socket, "close");
    socket.resume();
    socket.on("end", () => socket.end());
  }, async (port) => {
    const { tcp, close } = guest({ connect: [`127.0.0.1:${port}`] });
    const socket = tcp();
    await socket.connect(at(port));
    const iterator = socket.receive()[0][Symbol.asyncIterator]();
    const pending = iterator.next();
    socket[Symbol.dispose]();
    await iterator.return!();
    assert.equal((await pending).done, true);
    await closed;
    close();
  });
});

Deno.test("a listener hands out connections", async () => {
  const { tcp, close } = guest({ listen: ["127.0.0.1:0"] });
  const denied = tcp();
  assert.deepEqual(await code(() => denied.listen()), { tag: "access-denied" }, "all networks are not granted");
  const listener = tcp();
  await listener.bind(at(0));
  const connections = (await listener.listen())[Symbol.asyncIterator]();
  const { port } = listener.getLocalAddress().val;
  assert.notEqual(port, 0);
  for (const text of ["one", "two"]) {
    const client = connect(port, "127.0.0.1");
    client.end(text);
    const { value: socket } = await connections.next() as { value: TcpSocket };
    assert.equal(await collect(socket.receive()[0]), text);
    socket[Symbol.dispose]();
    client.destroy();
  }
  listener[Symbol.dispose]();
  await connections.return!();
  denied[Symbol.dispose]();
  const client = connect(port, "127.0.0.1");
  await assert.rejects(once(client, "connect"), { code: "ECONNREFUSED" });
  close();
});

Deno.test("datagrams have their senders, and a wait for one can be cancelled", async () => {
  const { udp, close } = guest({ connect: ["127.0.0.1"], listen: ["127.0.0.1:0"] });
  const [a, b] = [udp(), udp()];
  await b.bind(at(0));
  assert.deepEqual(await code(() => a.receive()), { tag: "invalid-state" }, "an unbound socket receives nothing");
  const to = b.getLocalAddress();
  await a.send(bytes("hello"), to);
  const [data, from] = await b.receive();
  assert.equal(new TextDecoder().decode(data), "hello");
  assert.equal(from.val.port, a.getLocalAddress().val.port);
  const waits = [b.receive(), b.receive()];
  const abandoned = b.receive();
  cancelOf(abandoned)!();
  await assert.rejects(abandoned);
  await a.connect(to);
  await a.send(bytes("1"));
  await a.send(bytes("2"));
  const texts = (await Promise.all(waits)).map(([part]) => new TextDecoder().decode(part));
  assert.deepEqual(texts.sort(), ["1", "2"]);
  assert.deepEqual(await code(() => a.send(bytes("x"), at(1))), { tag: "invalid-argument" });
  a.disconnect();
  assert.deepEqual(await code(() => a.disconnect()), { tag: "invalid-state" });
  assert.deepEqual(await code(() => a.send(bytes("x"), at(80, "10.0.0.1"))), { tag: "access-denied" });
  a[Symbol.dispose]();
  b[Symbol.dispose]();
  close();
});

Deno.test("names are resolved within the grants", async () => {
  const { look, close } = guest({ connect: ["localhost:80"] });
  assert.deepEqual((await look("localhost"))[0], { tag: "ipv4", val: [127, 0, 0, 1] });
  assert.deepEqual(await code(() => look("example.com")), { tag: "access-denied" });
  assert.deepEqual(await code(() => look("a b")), { tag: "invalid-argument" });
  assert.deepEqual(await look("[::1]"), [{ tag: "ipv6", val: [0, 0, 0, 0, 0, 0, 0, 1] }]);
  close();
  const none = guest({});
  assert.deepEqual(await code(() => none.look("localhost")), { tag: "access-denied" });
  assert.deepEqual(await code(() => none.tcp()), { tag: "access-denied" });
  none.close();
});

Deno.test("a stream of JavaScript is consumed like that of a component", async () => {
  const parts: string[] = [];
  await new Promise<void>((resolve, reject) => {
    consume(stream("a", "b"), (part) => void parts.push(new TextDecoder().decode(part)), (error) => {
      if (error === undefined) resolve();
      else reject(error);
    });
  });
  assert.deepEqual(parts, ["a", "b"]);
});

/** Options of sockets as they are after they are set, by the part of the accessor's name after `set`. */
const OPTIONS: Readonly<Record<"tcp" | "udp", Readonly<Record<string, number | bigint | boolean>>>> = {
  tcp: {
    KeepAliveEnabled: true,
    KeepAliveIdleTime: 7_000_000_000n,
    KeepAliveInterval: 3_000_000_000n,
    KeepAliveCount: 5,
    HopLimit: 9,
    ReceiveBufferSize: 65_536n,
    SendBufferSize: 131_072n,
  },
  udp: { UnicastHopLimit: 9, ReceiveBufferSize: 65_536n, SendBufferSize: 131_072n },
};

Deno.test("0.3: options of sockets are those of the sockets of 0.2, and an invalid one is an error-code of 0.3", async () => {
  const { tcp, udp, close } = guest({ connect: ["127.0.0.1"] });
  for (const [kind, socket] of [["tcp", tcp()], ["udp", udp()]] as const) {
    const options = socket as unknown as Record<string, (value?: number | bigint | boolean) => unknown>;
    for (const [name, value] of Object.entries(OPTIONS[kind])) {
      options[`set${name}`](value);
      assert.equal(options[`get${name}`](), value, `${kind} ${name}`);
      if (typeof value === "boolean") continue;
      const zero = typeof value === "bigint" ? 0n : 0;
      assert.deepEqual(await code(() => options[`set${name}`](zero)), { tag: "invalid-argument" }, name);
    }
    assert.equal(options.getAddressFamily(), "ipv4");
    assert.deepEqual(await code(() => options.getRemoteAddress()), { tag: "invalid-state" });
    socket[Symbol.dispose]();
  }
  const socket = tcp() as unknown as { getIsListening(): boolean; setListenBacklogSize(value: bigint): void };
  assert.equal(socket.getIsListening(), false);
  socket.setListenBacklogSize(4n);
  assert.deepEqual(await code(() => socket.setListenBacklogSize(0n)), { tag: "invalid-argument" });
  close();
});
