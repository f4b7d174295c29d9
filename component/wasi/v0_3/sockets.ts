/**
 * wasi:sockets of WASI 0.3 on the sockets of 0.2, which keep to the grants. In: the grants of a guest, addresses,
 * streams. Out: the classes of the interface, in jco's form. Invariant: a socket of the host is closed once the guest
 * has dropped its handle and all streams of it.
 */
import { ComponentError } from "../../abi/traps.ts";
import { cancellable } from "../../async/host_calls.ts";
import { type Holding, type HostShare, SHARES } from "../../async/host_quota.ts";
import type { Outcome } from "../../async/host_streams.ts";
import type { EventInputStream, EventOutputStream } from "../event_streams.ts";
import { type Family, type IpAddress, ipAddress, type SocketAddress } from "../socket_address.ts";
import { CHUNK_BYTES } from "../preview1.ts";
import type { IoError, Pollable } from "../streams.ts";
import { type SocketContext, TcpSocket } from "../tcp.ts";
import { type IncomingDatagramStream, type OutgoingDatagramStream, UdpSocket } from "../udp.ts";
import { type End, failed, produce, type Produced, receive, refused } from "./streams.ts";

/** A case of error-code. */
interface Code {
  readonly tag: string;
  readonly val?: string;
}

const CODES: ReadonlySet<string> = new Set([
  "access-denied",
  "not-supported",
  "invalid-argument",
  "out-of-memory",
  "timeout",
  "invalid-state",
  "address-not-bindable",
  "address-in-use",
  "remote-unreachable",
  "connection-refused",
  "connection-broken",
  "connection-reset",
  "connection-aborted",
  "datagram-too-large",
]);

/** The error-code for one of 0.2. */
function errorCode(name: string): Code {
  if (CODES.has(name)) return { tag: name };
  return name === "unknown" ? { tag: "other", val: undefined } : { tag: "other", val: name };
}

/** The error-code of an error of 0.2: an enum, or the end of a stream. */
function codeOf(error: unknown): Code {
  if (!(error instanceof ComponentError)) throw error;
  const payload = error.payload as string | { readonly tag: string; readonly val?: IoError };
  if (typeof payload === "string") return errorCode(payload);
  if (payload.tag === "closed") return { tag: "connection-broken" };
  const code = payload.val?.code ?? "";
  return CODES.has(code) ? { tag: code } : { tag: "connection-reset" };
}

/** Runs a function of 0.2; its error becomes one of 0.3. */
function using<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw new ComponentError(codeOf(error));
  }
}

/** Runs `action` once `pollable` is ready: now, or later with a promise that the guest can cancel. */
function whenReady<T>(pollable: Pollable, action: () => T): T | Promise<T> {
  if (pollable.ready()) return using(action);
  const waiting = Promise.resolve(pollable.block()).then(() => using(action));
  return cancellable(waiting, () => pollable[Symbol.dispose]());
}

function fail(code: string): never {
  throw new ComponentError(errorCode(code));
}

/** The address of all networks, with a port of the system's choice. */
const ANY: Readonly<Record<Family, SocketAddress>> = {
  ipv4: { tag: "ipv4", val: { port: 0, address: [0, 0, 0, 0] } },
  ipv6: { tag: "ipv6", val: { port: 0, flowInfo: 0, address: [0, 0, 0, 0, 0, 0, 0, 0], scopeId: 0 } },
};

/** The network resource of 0.2, which 0.3 does not have. */
const NETWORK = {};

/** Writes all of `bytes` to a connection, as fast as the peer takes them. */
async function writeAll(output: EventOutputStream, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    const room = Number(output.checkWrite());
    if (room === 0) await output.subscribe().block();
    else output.write(bytes.subarray(at, at += room));
  }
}

/** The bytes that a peer sends. `close` is called once. */
function received(input: EventInputStream, close: () => void): Produced<Uint8Array> {
  return produce({
    async next() {
      try {
        return await input.blockingRead(BigInt(CHUNK_BYTES));
      } catch (error) {
        if (error instanceof ComponentError && (error.payload as { tag?: unknown }).tag === "closed") return undefined;
        throw error;
      }
    },
    close,
  }, codeOf);
}

/** The accessors of 0.3 for the methods of a socket of 0.2: `x` becomes `getX`, and `setX` keeps its name. */
type AccessorOf<Socket> = {
  [Name in keyof Socket & string]: Name extends `set${string}` ? Name : `get${Capitalize<Name>}`;
}[keyof Socket & string];

const TCP_ACCESSORS: readonly AccessorOf<TcpSocket>[] = [
  "getLocalAddress",
  "getRemoteAddress",
  "getIsListening",
  "getAddressFamily",
  "setListenBacklogSize",
  "getKeepAliveEnabled",
  "setKeepAliveEnabled",
  "getKeepAliveIdleTime",
  "setKeepAliveIdleTime",
  "getKeepAliveInterval",
  "setKeepAliveInterval",
  "getKeepAliveCount",
  "setKeepAliveCount",
  "getHopLimit",
  "setHopLimit",
  "getReceiveBufferSize",
  "setReceiveBufferSize",
  "getSendBufferSize",
  "setSendBufferSize",
];

const UDP_ACCESSORS: readonly AccessorOf<UdpSocket>[] = [
  "getLocalAddress",
  "getRemoteAddress",
  "getAddressFamily",
  "getUnicastHopLimit",
  "setUnicastHopLimit",
  "getReceiveBufferSize",
  "setReceiveBufferSize",
  "getSendBufferSize",
  "setSendBufferSize",
];

/** Adds `accessors` to the prototype of a class of 0.3; each calls its method of the socket of 0.2. */
function forward<Outer, Inner extends object>(
  prototype: Outer,
  accessors: readonly AccessorOf<Inner>[],
  innerOf: (socket: Outer) => Inner,
): void {
  for (const accessor of accessors as readonly string[]) {
    const method = accessor.replace(/^get./, (text) => text.slice(3).toLowerCase());
    Object.defineProperty(prototype, accessor, {
      value(this: Outer, ...values: unknown[]): unknown {
        const inner = innerOf(this) as Record<string, (...values: unknown[]) => unknown>;
        return using(() => inner[method](...values));
      },
    });
  }
}

/** wasi:sockets/types tcp-socket. */
class AsyncTcpSocket implements Holding {
  readonly #inner: TcpSocket;
  #streams: [EventInputStream, EventOutputStream] | undefined;
  #isBound = false;
  #sends = false;
  #receives = false;
  /** The handle of the guest, and streams that are in use. */
  #users = 1;

  constructor(inner: TcpSocket, streams?: [EventInputStream, EventOutputStream]) {
    this.#inner = inner;
    this.#streams = streams;
    this.#isBound = streams !== undefined;
  }

  #release(): void {
    if (--this.#users === 0) this.#inner[Symbol.dispose]();
  }

  get [SHARES](): readonly HostShare[] {
    return this.#inner[SHARES];
  }

  bind(local: SocketAddress): void | Promise<void> {
    using(() => this.#inner.startBind(NETWORK, local));
    return whenReady(this.#inner.subscribe(), () => {
      this.#inner.finishBind();
      this.#isBound = true;
    });
  }

  connect(remote: SocketAddress): void | Promise<void> {
    using(() => this.#inner.startConnect(NETWORK, remote));
    return whenReady(this.#inner.subscribe(), () => {
      this.#streams = this.#inner.finishConnect();
    });
  }

  listen(): AsyncIterable<AsyncTcpSocket> | Promise<AsyncIterable<AsyncTcpSocket>> {
    if (this.#isBound || this.#streams !== undefined) return this.#listen();
    const bound = this.bind(ANY[this.#inner.addressFamily()]);
    return bound instanceof Promise ? bound.then(() => this.#listen()) : this.#listen();
  }

  #listen(): AsyncIterable<AsyncTcpSocket> | Promise<AsyncIterable<AsyncTcpSocket>> {
    using(() => this.#inner.startListen());
    return whenReady(this.#inner.subscribe(), () => {
      this.#inner.finishListen();
      this.#users++;
      return this.#connections();
    });
  }

  /** The connections that arrive, without an end. */
  #connections(): AsyncIterable<AsyncTcpSocket> {
    const arrived = this.#inner.subscribe();
    const close = () => {
      arrived[Symbol.dispose]();
      this.#release();
    };
    const next = () =>
      whenReady(arrived, () => {
        const [socket, ...streams] = this.#inner.accept();
        return new AsyncTcpSocket(socket, streams);
      });
    return produce({ next, close }, codeOf)[0];
  }

  send(data: ReadableStream<Uint8Array>): Outcome<End> {
    const output = this.#streams?.[1];
    if (output === undefined || this.#sends) return refused(data, new ComponentError("invalid-state"), codeOf);
    this.#sends = true;
    this.#users++;
    return receive(data, (bytes) => writeAll(output, bytes), codeOf, async () => {
      try {
        await output.blockingFlush();
        this.#inner.shutdown("send");
      } finally {
        this.#release();
      }
    });
  }

  receive(): Produced<Uint8Array> {
    const input = this.#streams?.[0];
    if (input === undefined || this.#receives) return failed(new ComponentError("invalid-state"), codeOf);
    this.#receives = true;
    this.#users++;
    return received(input, () => {
      this.#inner.shutdown("receive");
      this.#release();
    });
  }

  static {
    forward(this.prototype, TCP_ACCESSORS, (socket: AsyncTcpSocket) => socket.#inner);
  }

  [Symbol.dispose](): void {
    this.#release();
  }
}

/** wasi:sockets/types udp-socket. */
class AsyncUdpSocket implements Holding {
  readonly #inner: UdpSocket;
  #streams: [IncomingDatagramStream, OutgoingDatagramStream] | undefined;
  #isConnected = false;

  constructor(inner: UdpSocket) {
    this.#inner = inner;
  }

  get [SHARES](): readonly HostShare[] {
    return this.#inner[SHARES];
  }

  bind(local: SocketAddress): void | Promise<void> {
    using(() => this.#inner.startBind(NETWORK, local));
    return whenReady(this.#inner.subscribe(), () => {
      this.#inner.finishBind();
      this.#streams = this.#inner.stream(undefined);
    });
  }

  /** Runs `action` once the socket has an address: a port of the system's choice, unless it is bound. */
  #bound<T>(action: () => T | Promise<T>): T | Promise<T> {
    if (this.#streams !== undefined) return action();
    const bound = this.bind(ANY[this.#inner.addressFamily()]);
    return bound instanceof Promise ? bound.then(action) : action();
  }

  connect(remote: SocketAddress): void | Promise<void> {
    return this.#bound(() =>
      using(() => {
        this.#streams = this.#inner.stream(remote);
        this.#isConnected = true;
      })
    );
  }

  disconnect(): void {
    if (!this.#isConnected) fail("invalid-state");
    this.#isConnected = false;
    using(() => {
      this.#streams = this.#inner.stream(undefined);
    });
  }

  send(data: Uint8Array, remoteAddress: SocketAddress | undefined): void | Promise<void> {
    return this.#bound(() => {
      const [, output] = this.#open();
      return whenReady(output.subscribe(), () => {
        output.send([remoteAddress === undefined ? { data } : { data, remoteAddress }]);
      });
    });
  }

  #open(): [IncomingDatagramStream, OutgoingDatagramStream] {
    return this.#streams ?? fail("invalid-state");
  }

  receive(): [Uint8Array, SocketAddress] | Promise<[Uint8Array, SocketAddress]> {
    const [input] = this.#open();
    const take = (): [Uint8Array, SocketAddress] | undefined => {
      const datagram = input.receive(1n).at(0);
      return datagram === undefined ? undefined : [datagram.data, datagram.remoteAddress];
    };
    return take() ?? this.#receiveLater(input, take);
  }

  /** Several calls may wait for one datagram. */
  #receiveLater(
    input: IncomingDatagramStream,
    take: () => [Uint8Array, SocketAddress] | undefined,
  ): Promise<[Uint8Array, SocketAddress]> {
    const arrived = input.subscribe();
    const waiting = async () => {
      for (;;) {
        await arrived.block();
        const datagram = take();
        if (datagram !== undefined) return datagram;
      }
    };
    return cancellable(waiting(), () => arrived[Symbol.dispose]());
  }

  static {
    forward(this.prototype, UDP_ACCESSORS, (socket: AsyncUdpSocket) => socket.#inner);
  }

  [Symbol.dispose](): void {
    this.#inner[Symbol.dispose]();
  }
}

/** Codes with which a lookup fails; others are `other`. */
const LOOKUP_CODES: ReadonlySet<string> = new Set([
  "access-denied",
  "invalid-argument",
  "name-unresolvable",
  "temporary-resolver-failure",
]);

async function lookUp({ grants }: SocketContext, name: string): Promise<IpAddress[]> {
  if (grants.isEmpty) throw new ComponentError({ tag: "access-denied" });
  try {
    return (await grants.resolve(name.replace(/^\[(.*)\]$/, "$1"))).map(ipAddress);
  } catch (error) {
    if (!(error instanceof ComponentError)) throw error;
    const code = String(error.payload);
    throw new ComponentError(LOOKUP_CODES.has(code) ? { tag: code } : { tag: "other", val: code });
  }
}

/** The interfaces of wasi:sockets; without a grant, no guest opens a socket or resolves a name. */
export function asyncSocketInterfaces(context: SocketContext): Record<string, object> {
  const requireGrant = () => {
    if (context.grants.isEmpty) fail("access-denied");
  };
  return {
    "wasi:sockets/types@0.3.0": {
      TcpSocket: class extends AsyncTcpSocket {
        static create(family: Family): AsyncTcpSocket {
          requireGrant();
          return using(() => new AsyncTcpSocket(new TcpSocket(context, family)));
        }
      },
      UdpSocket: class extends AsyncUdpSocket {
        static create(family: Family): AsyncUdpSocket {
          requireGrant();
          return using(() => new AsyncUdpSocket(new UdpSocket(context, family)));
        }
      },
    },
    "wasi:sockets/ip-name-lookup@0.3.0": { resolveAddresses: (name: string) => lookUp(context, name) },
  };
}
