/** wasi:sockets of WASI 0.2: grants, TCP, UDP and lookup of names, all on the loopback interface. */
import assert from "node:assert/strict";
import { createServer, type Server, type Socket } from "node:net";
import { NetworkGrants, type NetworkOptions, parseHostPort } from "../../component/wasi/network_grants.ts";
import { ipAddress, socketAddress } from "../../component/wasi/socket_address.ts";
import { ComponentWasi, type ComponentWasiOptions } from "../../component/wasi/mod.ts";
import type { TcpSocket } from "../../component/wasi/tcp.ts";
import type { UdpSocket } from "../../component/wasi/udp.ts";
import type { ResolveAddressStream } from "../../component/wasi/name_lookup.ts";
import type { Pollable } from "../../component/wasi/streams.ts";

/** The functions of a guest with these grants. */
function guest(network: NetworkOptions) {
  const wasi = new ComponentWasi({ network });
  const of = (name: string) => wasi.imports[`wasi:sockets/${name}`] as Record<string, (...args: unknown[]) => unknown>;
  return {
    tcp: (family = "ipv4") => of("tcp-create-socket")["createTcpSocket"](family) as TcpSocket,
    udp: (family = "ipv4") => of("udp-create-socket")["createUdpSocket"](family) as UdpSocket,
    look: (name: string) => of("ip-name-lookup")["resolveAddresses"]({}, name) as ResolveAddressStream,
    poll: (...list: Pollable[]) =>
      (wasi.imports["wasi:io/poll"] as Record<string, (list: Pollable[]) => unknown>)["poll"](list),
    after: (milliseconds: number) =>
      (wasi.imports["wasi:clocks/monotonic-clock"] as Record<string, (time: bigint) => Pollable>)["subscribeDuration"](
        BigInt(milliseconds) * 1_000_000n,
      ),
    close: () => wasi.close(),
  };
}

/** The error code that `action` throws. */
function code(action: () => unknown): unknown {
  try {
    action();
  } catch (error) {
    return (error as { payload?: unknown }).payload ?? error;
  }
  return "no error";
}

const at = (port: number, address = "127.0.0.1") => socketAddress({ address, port });
const mapped = (port: number) => ({
  tag: "ipv6" as const,
  val: { port, flowInfo: 0, address: [0, 0, 0, 0, 0, 0xffff, 0x7f00, 1] as const, scopeId: 0 },
});
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const bytes = (text: string) => new TextEncoder().encode(text);

async function withServer(action: (port: number, server: Server) => Promise<void>): Promise<void> {
  const server = createServer((socket) => socket.on("error", () => {}).pipe(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await action((server.address() as { port: number }).port, server);
  } finally {
    server.close();
  }
}

Deno.test("grants are read strictly", () => {
  assert.deepEqual(parseHostPort("Example.COM:80"), { host: "example.com", port: 80 });
  assert.deepEqual(parseHostPort("example.com"), { host: "example.com", port: undefined });
  assert.deepEqual(parseHostPort("[::1]:8080"), { host: "::1", port: 8080 });
  assert.deepEqual(parseHostPort("0:0::1"), { host: "::1", port: undefined });
  assert.deepEqual(parseHostPort("::ffff:127.0.0.1"), { host: "127.0.0.1", port: undefined });
  const bad = [
    "",
    "*",
    "*:80",
    ":80",
    "a:",
    "a:65536",
    "a b",
    "http://a",
    "a/b",
    "1.2.3",
    "127.1",
    "[a]:1",
    "-a",
    "a..b",
  ];
  for (const grant of bad) {
    assert.throws(() => new NetworkGrants({ connect: [grant] }), /is not HOST or HOST:PORT/, grant);
  }
  for (const grant of ["127.0.0.1", "localhost:80", "[::1]"]) {
    assert.throws(() => new NetworkGrants({ listen: [grant] }), /is not ADDRESS:PORT/, grant);
  }
});

Deno.test("without a grant nothing is opened or looked up", () => {
  const none = guest({});
  assert.equal(code(() => none.tcp()), "access-denied");
  assert.equal(code(() => none.udp()), "access-denied");
  assert.equal(code(() => none.look("localhost")), "access-denied");
  none.close();
});

Deno.test("a connection goes only to a granted address and port", () => {
  const some = guest({ connect: ["127.0.0.1:9"], listen: ["127.0.0.1:0"] });
  const connect = (address: Parameters<TcpSocket["startConnect"]>[1], family = "ipv4") =>
    code(() => some.tcp(family).startConnect({}, address));
  assert.equal(connect(at(10)), "access-denied");
  assert.equal(connect(at(9, "127.0.0.2")), "access-denied");
  assert.equal(connect(at(9, "0.0.0.0")), "invalid-argument");
  assert.equal(connect(at(0)), "invalid-argument");
  assert.equal(connect(at(9, "::1"), "ipv6"), "access-denied");
  assert.equal(connect(at(9, "::"), "ipv6"), "invalid-argument");
  assert.equal(connect(mapped(9), "ipv6"), "invalid-argument");
  assert.equal(connect(at(9), "ipv6"), "invalid-argument");
  const bind = (address: Parameters<TcpSocket["startBind"]>[1]) => code(() => some.tcp().startBind({}, address));
  assert.equal(bind(at(8080)), "access-denied");
  assert.equal(bind(at(8080, "0.0.0.0")), "access-denied");
  const client = some.tcp();
  client.startBind({}, at(0, "0.0.0.0"));
  client.finishBind();
  assert.equal(code(() => client.startListen()), "access-denied");
  const udp = some.udp();
  assert.equal(code(() => udp.startBind({}, at(53))), "access-denied");
  udp[Symbol.dispose]();
  some.close();
});

Deno.test("a name leads to this machine only if it is localhost or the address is granted", async () => {
  const grants = new NetworkGrants({ connect: ["localhost:9", "example.test:80"] });
  assert.equal(grants.mayConnect("127.0.0.1", 9), false);
  const addresses = await grants.resolve("LOCALHOST.");
  assert.ok(addresses.length > 0 && addresses.every((address) => ["127.0.0.1", "::1"].includes(address)));
  assert.equal(grants.mayConnect(addresses[0], 9), true);
  assert.equal(grants.mayConnect(addresses[0], 10), false);
  await assert.rejects(grants.resolve("localhost", 10), { payload: "access-denied" });
  await assert.rejects(grants.resolve("other.test"), { payload: "access-denied" });
  await assert.rejects(grants.resolve("127.0.0.1", 80), { payload: "access-denied" });
  for (const name of ["a b", "a\r\nb", "", "a/b", "a@b", "x".repeat(300)]) {
    await assert.rejects(grants.resolve(name), { payload: "invalid-argument" }, name);
  }
});

Deno.test("an answer of the resolver that points to this machine or a private network is dropped", async () => {
  const answers = ["127.0.0.1", "169.254.169.254", "10.0.0.5", "::1", "fe80::1", "::ffff:127.0.0.1", "0.0.0.0"];
  // IPv4 addresses that translators and tunnels take out of IPv6 ones.
  answers.push(
    "64:ff9b::7f00:1",
    "64:ff9b:1::7f00:1",
    "2002:7f00:1::",
    "2001::7f00:1",
    "::ffff:0:127.0.0.1",
    "fec0::1",
  );
  const lookUp = (...addresses: string[]) => () => Promise.resolve(addresses);
  for (const answer of answers) {
    const grants = new NetworkGrants({ connect: ["example.test:80"] }, lookUp(answer));
    await assert.rejects(grants.resolve("example.test"), { payload: "access-denied" }, answer);
    assert.equal(grants.mayConnect(answer, 80), false, answer);
  }
  const mixed = new NetworkGrants({ connect: ["example.test:80"] }, lookUp("192.0.2.7", "127.0.0.1"));
  assert.deepEqual(await mixed.resolve("example.test"), ["192.0.2.7"]);
  assert.equal(mixed.mayConnect("192.0.2.7", 80), true);
  assert.equal(mixed.mayConnect("192.0.2.7", 81), false);
  const both = new NetworkGrants({ connect: ["example.test:80", "10.0.0.5:80"] }, lookUp("10.0.0.5"));
  assert.deepEqual(await both.resolve("example.test"), ["10.0.0.5"]);
});

Deno.test("a name that leads to a granted address of a private network opens none of its other ports", async () => {
  for (const port of [undefined, 5432]) {
    const connect = ["example.test", "127.0.0.1:5432"];
    const grants = new NetworkGrants({ connect }, () => Promise.resolve(["127.0.0.1"]));
    assert.deepEqual(await grants.resolve("example.test", port), ["127.0.0.1"]);
    assert.equal(grants.mayConnect("127.0.0.1", 5432), true);
    assert.equal(grants.mayConnect("127.0.0.1", 22), false);
    await assert.rejects(grants.resolve("example.test", 22), { payload: "access-denied" });
  }
});

Deno.test("grants and options of another form are refused, not ignored", () => {
  const wrong: unknown[] = [
    5,
    null,
    "example.test",
    { network: "example.test" },
    { network: null },
    { network: { conect: [] } },
    { network: { connect: "example.test" } },
    { network: { connect: [null] } },
    { network: { listen: [8080] } },
    { waitInEventLoop: 1 },
    { args: [1] },
    { args: "name" },
    { env: { NAME: "value" } },
    { env: [["NAME", 1]] },
  ];
  for (const options of wrong) {
    assert.throws(() => new ComponentWasi(options as ComponentWasiOptions), (error) => {
      assert.ok(error instanceof TypeError, String(error));
      assert.match(error.message, /^(The|An|Unknown) .*option/);
      return true;
    }, JSON.stringify(options));
  }
});

Deno.test("a name that changes its address does not lead to the new one", async () => {
  let answer = ["192.0.2.7"];
  const grants = new NetworkGrants({ connect: ["example.test:80"] }, () => Promise.resolve(answer));
  await grants.resolve("example.test");
  answer = ["127.0.0.1"];
  assert.equal(grants.mayConnect("127.0.0.1", 80), false);
  await assert.rejects(grants.resolve("example.test"), { payload: "access-denied" });
});

Deno.test("TCP: a client exchanges bytes with a server, to the end", async () => {
  await withServer(async (port) => {
    const some = guest({ connect: [`127.0.0.1:${port}`] });
    const socket = some.tcp();
    socket.startConnect({}, at(port));
    assert.equal(code(() => socket.finishConnect()), "would-block");
    await socket.subscribe().block();
    const [input, output] = socket.finishConnect();
    assert.deepEqual(socket.remoteAddress(), at(port));
    assert.equal(input.read(10n).length, 0);
    await output.blockingWriteAndFlush(bytes("hello"));
    assert.equal(text(await input.blockingRead(2n)), "he");
    assert.equal(text(await input.blockingRead(10n)), "llo");
    const timer = some.after(1);
    assert.deepEqual(await some.poll(input.subscribe(), timer), Uint32Array.of(1));
    socket.shutdown("send");
    assert.equal((code(() => output.checkWrite()) as { tag: string }).tag, "closed");
    await input.subscribe().block();
    assert.equal((code(() => input.read(1n)) as { tag: string }).tag, "closed");
    socket[Symbol.dispose]();
    some.close();
  });
});

Deno.test("TCP: a writer cannot outrun its receiver", async () => {
  await withServer(async (port, server) => {
    server.removeAllListeners("connection");
    const connections: Socket[] = [];
    server.on("connection", (socket) => connections.push(socket.pause().on("error", () => {})));
    const some = guest({ connect: [`127.0.0.1:${port}`] });
    const socket = some.tcp();
    socket.startConnect({}, at(port));
    await socket.subscribe().block();
    const [, output] = socket.finishConnect();
    assert.throws(() => output.write(new Uint8Array(1 << 17)), RangeError);
    let written = 0;
    for (;;) {
      const room = Number(output.checkWrite());
      assert.ok(room <= 1 << 16);
      if (room > 0) output.write(new Uint8Array(room));
      written += room;
      const full = await some.poll(output.subscribe(), some.after(200)) as Uint32Array;
      if (!full.includes(0)) break;
    }
    // The system's buffers take some megabytes; nothing beyond them waits in the process.
    assert.ok(written < 1 << 26, `${written} bytes`);
    socket[Symbol.dispose]();
    some.close();
    for (const connection of connections) connection.destroy();
  });
});

Deno.test("TCP: a refused connection is an error of finish-connect", async () => {
  let port = 0;
  await withServer((found) => Promise.resolve(void (port = found)));
  const some = guest({ connect: [`127.0.0.1:${port}`] });
  const socket = some.tcp();
  socket.startConnect({}, at(port));
  await socket.subscribe().block();
  assert.equal(code(() => socket.finishConnect()), "connection-refused");
  assert.equal(code(() => socket.finishConnect()), "not-in-progress");
  some.close();
});

Deno.test("TCP: a guest listens, accepts and answers", async () => {
  const some = guest({ connect: ["127.0.0.1"], listen: ["127.0.0.1:0"] });
  const server = some.tcp();
  server.startBind({}, at(0));
  await server.subscribe().block();
  server.finishBind();
  const local = server.localAddress();
  assert.notEqual(local.val.port, 0);
  server.startListen();
  server.finishListen();
  assert.equal(code(() => server.accept()), "would-block");
  const client = some.tcp();
  client.startConnect({}, local);
  await some.poll(server.subscribe());
  await client.subscribe().block();
  const [fromServer, toServer] = client.finishConnect();
  const [peer, fromClient, toClient] = server.accept();
  assert.deepEqual(peer.remoteAddress(), client.localAddress());
  await toServer.blockingWriteAndFlush(bytes("question"));
  assert.equal(text(await fromClient.blockingRead(100n)), "question");
  await toClient.blockingWriteAndFlush(bytes("answer"));
  assert.equal(text(await fromServer.blockingRead(100n)), "answer");
  for (const socket of [peer, client, server]) socket[Symbol.dispose]();
  some.close();
});

Deno.test("a guest has a bounded number of sockets", () => {
  const some = guest({ connect: ["127.0.0.1:9"] });
  const sockets = Array.from({ length: 256 }, () => some.tcp());
  assert.equal(code(() => some.tcp()), "new-socket-limit");
  sockets[0][Symbol.dispose]();
  some.tcp();
  some.close();
});

Deno.test("UDP: datagrams go to and come from granted addresses only", async () => {
  const bind = async (socket: UdpSocket) => {
    socket.startBind({}, at(0));
    await socket.subscribe().block();
    socket.finishBind();
    return socket.localAddress().val.port;
  };
  const open = guest({ connect: ["127.0.0.1"], listen: ["127.0.0.1:0"] });
  const server = open.udp();
  const port = await bind(server);
  const closed = guest({ connect: [`127.0.0.1:${port}`] });
  const client = closed.udp();
  const own = await bind(client);
  const [incoming, outgoing] = client.stream(at(port));
  const [atServer, fromServer] = server.stream(undefined);
  assert.equal(outgoing.send([{ data: bytes("one") }, { data: bytes("two") }]), 2n);
  const got = [];
  while (got.length < 2) {
    await open.poll(atServer.subscribe());
    got.push(...atServer.receive(10n));
  }
  assert.deepEqual(got.map(({ data }) => text(data)), ["one", "two"]);
  assert.deepEqual(got[0].remoteAddress, at(own));
  assert.equal(code(() => outgoing.send([{ data: bytes("x"), remoteAddress: at(port + 1) }])), "invalid-argument");
  assert.equal(code(() => outgoing.send([{ data: new Uint8Array(65_508) }])), "datagram-too-large");
  assert.equal(code(() => client.stream(at(port === 1 ? 2 : 1))), "access-denied");
  // Another socket is a stranger to the client: only the datagram after it arrives.
  const stranger = open.udp();
  await bind(stranger);
  stranger.stream(undefined)[1].send([{ data: bytes("stranger"), remoteAddress: at(own) }]);
  fromServer.send([{ data: bytes("friend"), remoteAddress: at(own) }]);
  await closed.poll(incoming.subscribe());
  assert.deepEqual(incoming.receive(10n).map(({ data }) => text(data)), ["friend"]);
  for (const socket of [server, client, stranger]) socket[Symbol.dispose]();
  open.close();
  closed.close();
});

Deno.test("names are looked up without blocking", async () => {
  const some = guest({ connect: ["localhost:80"] });
  const stream = some.look("localhost");
  assert.equal(code(() => stream.resolveNextAddress()), "would-block");
  await stream.subscribe().block();
  const first = stream.resolveNextAddress();
  assert.ok(first !== undefined && [ipAddress("127.0.0.1"), ipAddress("::1")].some(({ tag }) => tag === first.tag));
  const literal = some.look("::1");
  await literal.subscribe().block();
  assert.deepEqual(literal.resolveNextAddress(), { tag: "ipv6", val: [0, 0, 0, 0, 0, 0, 0, 1] });
  assert.equal(literal.resolveNextAddress(), undefined);
  const denied = some.look("example.test");
  await denied.subscribe().block();
  assert.equal(code(() => denied.resolveNextAddress()), "access-denied");
  some.close();
});
