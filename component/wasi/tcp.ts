/**
 * wasi:sockets/tcp on the host's sockets. In: the grants of a guest. Out: the class tcp-socket. Invariant: a socket
 * connects and listens only where the grants permit it, and a listening socket accepts no connection before
 * `start-listen`.
 */
import { createServer, type Server, Socket } from "node:net";
import { clearTimeout, setTimeout } from "node:timers";
import { type Holding, HostShare, SHARES } from "../async/host_quota.ts";
import { ByteSource, EventInputStream, EventOutputStream, WritableSink } from "./event_streams.ts";
import type { NetworkGrants } from "./network_grants.ts";
import type { Preview1 } from "./preview1.ts";
import { Condition } from "./readiness.ts";
import {
  type Endpoint,
  endpointOf,
  fail,
  type Family,
  requireRemote,
  requireUnicast,
  type SocketAddress,
  socketAddress,
  socketErrorCode,
  type SocketQuota,
} from "./socket_address.ts";
import { IoError, Pollable } from "./streams.ts";

/** State that the sockets of a guest share. */
export interface SocketContext {
  readonly preview1: Preview1;
  readonly grants: NetworkGrants;
  readonly quota: SocketQuota;
}

type Phase =
  | "unbound"
  | "bind-started"
  | "bound"
  | "connect-started"
  | "connected"
  | "listen-started"
  | "listening"
  | "closed";

/** The maximum number of connections in the accept queue. */
const BACKLOG = 128;
/** The time that a peer has to take the last bytes of a socket that was dropped, in milliseconds. */
const LINGER_MS = 30_000;

/** Settings that the host's sockets do not have: they are kept and have no effect (wasi:sockets permits that). */
interface Settings {
  keepAlive: boolean;
  keepAliveIdleTime: bigint;
  keepAliveInterval: bigint;
  keepAliveCount: number;
  hopLimit: number;
  receiveBufferSize: bigint;
  sendBufferSize: bigint;
}

function positive<T extends number | bigint>(value: T): T {
  return value <= 0 ? fail("invalid-argument") : value;
}

/** Sends the last bytes of a socket that was dropped, closes it, and calls `closed`. */
function linger(socket: Socket, closed: () => void): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => {
    clearTimeout(timer);
    closed();
  });
  if (socket.connecting) socket.destroy();
  else socket.end(() => socket.destroy());
}

/** The bytes of the host that a socket counts without those that it has received or not sent. */
const SOCKET_BYTES = 4096;

/** wasi:sockets/tcp tcp-socket. */
export class TcpSocket implements Holding {
  readonly [SHARES]: readonly HostShare[] = [new HostShare(SOCKET_BYTES)];
  readonly #context: SocketContext;
  readonly #family: Family;
  readonly #condition = new Condition(() => this.#isReady);
  readonly #settings: Settings = {
    keepAlive: false,
    keepAliveIdleTime: 7_200_000_000_000n,
    keepAliveInterval: 75_000_000_000n,
    keepAliveCount: 9,
    hopLimit: 64,
    receiveBufferSize: 65_536n,
    sendBufferSize: 65_536n,
  };
  #phase: Phase = "unbound";
  #local: Endpoint | undefined;
  #socket: Socket | undefined;
  #source: ByteSource | undefined;
  #sink: WritableSink | undefined;
  #server: Server | undefined;
  #backlog = BACKLOG;
  readonly #accepted: Socket[] = [];
  /** The operation that was started: over, or failed with a code. */
  #outcome: "pending" | "done" | { readonly code: string } = "done";

  /** Throws new-socket-limit unless the quota already counts the connection (`isCounted`). */
  constructor(context: SocketContext, family: Family, isCounted = false) {
    if (!isCounted) context.quota.take();
    this.#context = context;
    this.#family = family;
  }

  get #isReady(): boolean {
    return this.#phase === "listening" ? this.#accepted.length > 0 : this.#outcome !== "pending";
  }

  #require(...phases: readonly Phase[]): void {
    if (!phases.includes(this.#phase)) fail("invalid-state");
  }

  /** Ends an operation that was started in `phase`. */
  #finish(phase: Phase, next: Phase, otherwise: Phase): void {
    if (this.#phase !== phase) fail("not-in-progress");
    const outcome = this.#outcome;
    if (outcome === "pending") fail("would-block");
    if (outcome !== "done") {
      this.#phase = otherwise;
      fail(outcome.code);
    }
    this.#phase = next;
  }

  #settle(outcome: "done" | { readonly code: string }): void {
    if (this.#outcome === "pending") this.#outcome = outcome;
    this.#condition.notify();
  }

  /**
   * Binds to an address that the guest may listen on; a port of the system's choice needs no grant before
   * `start-listen`.
   */
  startBind(_network: unknown, local: SocketAddress): void {
    const endpoint = endpointOf(local, this.#family);
    requireUnicast(endpoint);
    this.#require("unbound");
    const mayListen = this.#context.grants.mayListen(endpoint.address, endpoint.port);
    if (endpoint.port !== 0 && !mayListen) fail("access-denied");
    this.#phase = "bind-started";
    this.#local = endpoint;
    // The host's sockets bind when they listen, so connections before start-listen are closed here.
    if (mayListen) this.#listenOn(endpoint);
    else this.#outcome = "done";
  }

  #listenOn({ address, port }: Endpoint): void {
    this.#outcome = "pending";
    const server = this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
    server.on("connection", (socket: Socket) => this.#arrive(socket));
    server.on("error", (error) => this.#settle({ code: socketErrorCode(error) }));
    server.listen({ host: address, port, ipv6Only: this.#family === "ipv6", exclusive: true }, () => {
      const { port } = server.address() as { port: number };
      this.#local = { address, port };
      this.#settle("done");
    });
  }

  #arrive(socket: Socket): void {
    const isWanted = this.#phase === "listening" && this.#accepted.length < this.#backlog;
    if (!isWanted || !this.#context.quota.tryTake()) return void socket.destroy();
    socket.on("error", () => {});
    this.#accepted.push(socket);
    this.#condition.notify();
  }

  finishBind(): void {
    this.#finish("bind-started", "bound", "unbound");
  }

  startConnect(_network: unknown, remote: SocketAddress): void {
    const endpoint = endpointOf(remote, this.#family);
    requireRemote(endpoint);
    requireUnicast(endpoint);
    this.#require("unbound", "bound");
    if (!this.#context.grants.mayConnect(endpoint.address, endpoint.port)) fail("access-denied");
    this.#phase = "connect-started";
    this.#outcome = "pending";
    this.#server?.close(() => this.#connect(endpoint));
    if (this.#server === undefined) this.#connect(endpoint);
    this.#server = undefined;
  }

  #connect({ address, port }: Endpoint): void {
    if (this.#phase !== "connect-started") return;
    const socket = new Socket({ allowHalfOpen: true });
    socket.on("connect", () => {
      this.#local = { address: socket.localAddress ?? "", port: socket.localPort ?? 0 };
      this.#settle("done");
    });
    socket.on("error", (error) => this.#settle({ code: socketErrorCode(error) }));
    const local = this.#local === undefined ? {} : { localAddress: this.#local.address, localPort: this.#local.port };
    this.#use(socket);
    socket.connect({ host: address, port, ...local });
  }

  #use(socket: Socket): void {
    this.#socket = socket;
    this.#source = new ByteSource(socket, () => new IoError("connection-reset"));
    this.#sink = new WritableSink(socket);
  }

  finishConnect(): [EventInputStream, EventOutputStream] {
    this.#finish("connect-started", "connected", "closed");
    return this.#streams();
  }

  #streams(): [EventInputStream, EventOutputStream] {
    const { preview1 } = this.#context;
    if (this.#source === undefined || this.#sink === undefined) return fail("invalid-state");
    return [new EventInputStream(preview1, this.#source), new EventOutputStream(preview1, this.#sink)];
  }

  startListen(): void {
    this.#require("bound");
    if (this.#server === undefined) fail("access-denied");
    this.#phase = "listen-started";
  }

  finishListen(): void {
    this.#finish("listen-started", "listening", "bound");
  }

  accept(): [TcpSocket, EventInputStream, EventOutputStream] {
    this.#require("listening");
    if (this.#accepted.length === 0) fail("would-block");
    const made = new TcpSocket(this.#context, this.#family, true);
    const socket = this.#accepted.shift() as Socket;
    made.#phase = "connected";
    made.#local = { address: socket.localAddress ?? "", port: socket.localPort ?? 0 };
    made.#use(socket);
    return [made, ...made.#streams()];
  }

  localAddress(): SocketAddress {
    this.#require("bound", "connect-started", "connected", "listen-started", "listening");
    return this.#local === undefined ? fail("invalid-state") : socketAddress(this.#local);
  }

  remoteAddress(): SocketAddress {
    this.#require("connected");
    const { remoteAddress = "", remotePort = 0 } = this.#socket ?? {};
    return remoteAddress === "" ? fail("invalid-state") : socketAddress({ address: remoteAddress, port: remotePort });
  }

  isListening(): boolean {
    return this.#phase === "listening";
  }

  addressFamily(): Family {
    return this.#family;
  }

  setListenBacklogSize(value: bigint): void {
    positive(value);
    this.#require("unbound", "bound", "listen-started", "listening");
    this.#backlog = Number(value < BigInt(BACKLOG) ? value : BigInt(BACKLOG));
  }

  keepAliveEnabled(): boolean {
    return this.#settings.keepAlive;
  }

  setKeepAliveEnabled(value: boolean): void {
    this.#settings.keepAlive = value;
    this.#socket?.setKeepAlive(value, Number(this.#settings.keepAliveIdleTime / 1_000_000n));
  }

  keepAliveIdleTime(): bigint {
    return this.#settings.keepAliveIdleTime;
  }

  setKeepAliveIdleTime(value: bigint): void {
    this.#settings.keepAliveIdleTime = positive(value);
  }

  keepAliveInterval(): bigint {
    return this.#settings.keepAliveInterval;
  }

  setKeepAliveInterval(value: bigint): void {
    this.#settings.keepAliveInterval = positive(value);
  }

  keepAliveCount(): number {
    return this.#settings.keepAliveCount;
  }

  setKeepAliveCount(value: number): void {
    this.#settings.keepAliveCount = positive(value);
  }

  hopLimit(): number {
    return this.#settings.hopLimit;
  }

  setHopLimit(value: number): void {
    this.#settings.hopLimit = positive(value);
  }

  receiveBufferSize(): bigint {
    return this.#settings.receiveBufferSize;
  }

  setReceiveBufferSize(value: bigint): void {
    this.#settings.receiveBufferSize = positive(value);
  }

  sendBufferSize(): bigint {
    return this.#settings.sendBufferSize;
  }

  setSendBufferSize(value: bigint): void {
    this.#settings.sendBufferSize = positive(value);
  }

  subscribe(): Pollable {
    return new Pollable(this.#context.preview1, this.#condition);
  }

  /** Ends the directions; nothing that was written is lost. */
  shutdown(type: "receive" | "send" | "both"): void {
    this.#require("connected");
    if (type !== "receive") this.#sink?.end();
    if (type !== "send") this.#source?.close();
  }

  [Symbol.dispose](): void {
    this.#phase = "closed";
    const { quota } = this.#context;
    this.#server?.close();
    for (const waiting of this.#accepted.splice(0)) {
      waiting.destroy();
      quota.release();
    }
    if (this.#socket === undefined || this.#socket.destroyed) quota.release();
    else linger(this.#socket, () => quota.release());
  }
}
