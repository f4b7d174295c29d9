/**
 * wasi:sockets/udp on the host's sockets. In: the grants of a guest. Out: the classes udp-socket and its two streams.
 * Invariant: datagrams go only to granted addresses, and come only from those unless the guest may listen on the
 * address of the socket; a bounded number waits for a slow guest, and further ones are lost, as UDP permits.
 */
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { type Holding, HostShare, SHARES } from "../async/host_quota.ts";
import { Condition } from "./readiness.ts";
import {
  type Endpoint,
  endpointOf,
  fail,
  type Family,
  isUnspecified,
  localAddressFor,
  requireRemote,
  type SocketAddress,
  socketAddress,
  socketErrorCode,
} from "./socket_address.ts";
import { Pollable } from "./streams.ts";
import type { SocketContext } from "./tcp.ts";
import { canonicalAddress } from "./network_grants.ts";

interface IncomingDatagram {
  readonly data: Uint8Array;
  readonly remoteAddress: SocketAddress;
}

interface OutgoingDatagram {
  readonly data: Uint8Array;
  readonly remoteAddress?: SocketAddress;
}

/** The maximum numbers of queued incoming datagrams and of their bytes. */
const MAX_WAITING = 256;
const MAX_WAITING_BYTES = 1 << 20;
/** The maximum number of queued outgoing datagrams. */
const MAX_SENDING = 16;
/** The greatest payload over IPv4. */
const MAX_DATAGRAM = 65_507;

/** The bytes of the host that a datagram counts besides its own, and those of a socket. */
const DATAGRAM_BYTES = 512;
const SOCKET_BYTES = 4096;

/** A socket of the host with the datagrams that wait. */
class Datagrams implements Holding {
  readonly #share = new HostShare(SOCKET_BYTES);
  readonly [SHARES]: readonly HostShare[] = [this.#share];
  readonly context: SocketContext;
  readonly family: Family;
  readonly socket: Socket;
  readonly arrived: Condition = new Condition(() => this.waiting.length > 0);
  readonly writable: Condition = new Condition(() => this.sending < MAX_SENDING);
  readonly waiting: IncomingDatagram[] = [];
  waitingBytes = 0;
  readonly #outbox: { readonly data: Uint8Array; readonly to: Endpoint }[] = [];
  isClosed = false;
  /** Whether the guest may receive from anywhere. */
  isOpen = false;
  remote: Endpoint | undefined;

  constructor(context: SocketContext, family: Family) {
    this.context = context;
    this.family = family;
    this.socket = createSocket({ type: family === "ipv4" ? "udp4" : "udp6", ipv6Only: family === "ipv6" });
    this.socket.on("message", (data: Uint8Array, from: RemoteInfo) => this.#arrive(data, from));
    // An error of one datagram, such as an unreachable port, concerns no other.
    this.socket.on("error", () => {});
  }

  /** The number of datagrams on their way out. */
  get sending(): number {
    return this.#outbox.length;
  }

  /** Sends a datagram after those before it: not every host keeps the order of sends that overlap. */
  send(data: Uint8Array, to: Endpoint): void {
    this.#share.add(DATAGRAM_BYTES + data.length);
    this.#outbox.push({ data, to });
    if (this.#outbox.length === 1) this.#sendNext();
  }

  #sendNext(): void {
    if (this.#outbox.length === 0 || this.isClosed) return;
    const { data, to } = this.#outbox[0];
    this.socket.send(data, to.port, to.address, () => {
      this.#outbox.shift();
      this.#share.add(-DATAGRAM_BYTES - data.length);
      this.writable.notify();
      this.#sendNext();
    });
  }

  #arrive(data: Uint8Array, from: RemoteInfo): void {
    const remote = { address: canonicalAddress(from.address), port: from.port };
    const isExpected = this.remote === undefined
      ? this.isOpen || this.context.grants.mayConnect(remote.address, remote.port)
      : this.remote.address === remote.address && this.remote.port === remote.port;
    if (!isExpected || this.waiting.length >= MAX_WAITING || this.waitingBytes + data.length > MAX_WAITING_BYTES) {
      return;
    }
    if (!this.#share.tryAdd(DATAGRAM_BYTES + data.length)) return;
    this.waiting.push({ data: new Uint8Array(data), remoteAddress: socketAddress(remote) });
    this.waitingBytes += data.length;
    this.arrived.notify();
  }

  /** Takes at most `most` datagrams that have arrived. */
  take(most: number): IncomingDatagram[] {
    const list = this.waiting.splice(0, most);
    for (const { data } of list) {
      this.waitingBytes -= data.length;
      this.#share.add(-DATAGRAM_BYTES - data.length);
    }
    return list;
  }
}

/** wasi:sockets/udp incoming-datagram-stream. */
export class IncomingDatagramStream implements Holding {
  readonly #datagrams: Datagrams;

  constructor(datagrams: Datagrams) {
    this.#datagrams = datagrams;
  }

  receive(most: bigint): IncomingDatagram[] {
    return this.#datagrams.take(Number(most < BigInt(MAX_WAITING) ? most : BigInt(MAX_WAITING)));
  }

  get [SHARES](): readonly HostShare[] {
    return this.#datagrams[SHARES];
  }

  subscribe(): Pollable {
    return new Pollable(this.#datagrams.context.preview1, this.#datagrams.arrived);
  }
}

/** wasi:sockets/udp outgoing-datagram-stream. */
export class OutgoingDatagramStream implements Holding {
  readonly #datagrams: Datagrams;

  constructor(datagrams: Datagrams) {
    this.#datagrams = datagrams;
  }

  get [SHARES](): readonly HostShare[] {
    return this.#datagrams[SHARES];
  }

  checkSend(): bigint {
    return BigInt(MAX_SENDING - this.#datagrams.sending);
  }

  /** Sends datagrams up to the first that cannot be sent; throws its error if that is the first of all. */
  send(list: readonly OutgoingDatagram[]): bigint {
    if (list.length > Number(this.checkSend())) {
      throw new RangeError("More datagrams were sent than check-send permits");
    }
    let sent = 0;
    for (const datagram of list) {
      try {
        this.#sendOne(datagram);
      } catch (error) {
        if (sent === 0) throw error;
        break;
      }
      sent++;
    }
    return BigInt(sent);
  }

  #sendOne({ data, remoteAddress }: OutgoingDatagram): void {
    const datagrams = this.#datagrams;
    const given = remoteAddress === undefined ? undefined : endpointOf(remoteAddress, datagrams.family);
    const { remote } = datagrams;
    const isOther = given !== undefined && remote !== undefined &&
      (given.address !== remote.address || given.port !== remote.port);
    const to = remote ?? given;
    if (to === undefined || isOther) return fail("invalid-argument");
    requireRemote(to);
    if (data.length > MAX_DATAGRAM) fail("datagram-too-large");
    if (!datagrams.context.grants.mayConnect(to.address, to.port)) fail("access-denied");
    datagrams.send(data.slice(), to);
  }

  subscribe(): Pollable {
    return new Pollable(this.#datagrams.context.preview1, this.#datagrams.writable);
  }
}

/** wasi:sockets/udp udp-socket. */
export class UdpSocket implements Holding {
  readonly #context: SocketContext;
  readonly #datagrams: Datagrams;
  readonly #condition = new Condition(() => this.#outcome !== "pending");
  #phase: "unbound" | "bind-started" | "bound" = "unbound";
  #outcome: "pending" | "done" | { readonly code: string } = "done";
  #hopLimit = 64;
  #receiveBufferSize = 65_536n;
  #sendBufferSize = 65_536n;

  constructor(context: SocketContext, family: Family) {
    context.quota.take();
    this.#context = context;
    this.#datagrams = new Datagrams(context, family);
  }

  get [SHARES](): readonly HostShare[] {
    return this.#datagrams[SHARES];
  }

  /** Binds to an address that the guest may listen on, or to a port of the system's choice. */
  startBind(_network: unknown, local: SocketAddress): void {
    const { address, port } = endpointOf(local, this.#datagrams.family);
    if (this.#phase !== "unbound") fail("invalid-state");
    const isOpen = this.#context.grants.mayListen(address, port);
    if (port !== 0 && !isOpen) fail("access-denied");
    this.#phase = "bind-started";
    this.#outcome = "pending";
    this.#datagrams.isOpen = isOpen;
    const settle = (outcome: "done" | { readonly code: string }) => {
      if (this.#outcome === "pending") this.#outcome = outcome;
      this.#condition.notify();
    };
    const { socket } = this.#datagrams;
    socket.once("error", (error) => settle({ code: socketErrorCode(error) }));
    socket.bind({ address, port, exclusive: true }, () => settle("done"));
  }

  finishBind(): void {
    if (this.#phase !== "bind-started") fail("not-in-progress");
    const outcome = this.#outcome;
    if (outcome === "pending") fail("would-block");
    this.#phase = outcome === "done" ? "bound" : "unbound";
    if (outcome !== "done") fail(outcome.code);
  }

  #requireBound(): void {
    if (this.#phase !== "bound") fail("invalid-state");
  }

  /** Streams to and from one remote address, or to any and from any that the grants permit. */
  stream(remote: SocketAddress | undefined): [IncomingDatagramStream, OutgoingDatagramStream] {
    this.#requireBound();
    const endpoint = remote === undefined ? undefined : endpointOf(remote, this.#datagrams.family);
    if (endpoint !== undefined) {
      requireRemote(endpoint);
      if (!this.#context.grants.mayConnect(endpoint.address, endpoint.port)) fail("access-denied");
    }
    this.#datagrams.remote = endpoint;
    return [new IncomingDatagramStream(this.#datagrams), new OutgoingDatagramStream(this.#datagrams)];
  }

  localAddress(): SocketAddress {
    this.#requireBound();
    const { remote, socket } = this.#datagrams;
    const { address, port } = socket.address();
    // A socket with a peer has the address of the interface that leads to it.
    const own = remote !== undefined && isUnspecified(address) ? localAddressFor(remote.address) : undefined;
    return socketAddress({ address: own ?? address, port });
  }

  remoteAddress(): SocketAddress {
    const { remote } = this.#datagrams;
    return remote === undefined ? fail("invalid-state") : socketAddress(remote);
  }

  addressFamily(): Family {
    return this.#datagrams.family;
  }

  unicastHopLimit(): number {
    return this.#hopLimit;
  }

  setUnicastHopLimit(value: number): void {
    if (value === 0) fail("invalid-argument");
    if (this.#phase === "bound") this.#datagrams.socket.setTTL(value);
    this.#hopLimit = value;
  }

  receiveBufferSize(): bigint {
    return this.#receiveBufferSize;
  }

  setReceiveBufferSize(value: bigint): void {
    if (value === 0n) fail("invalid-argument");
    this.#receiveBufferSize = value;
  }

  sendBufferSize(): bigint {
    return this.#sendBufferSize;
  }

  setSendBufferSize(value: bigint): void {
    if (value === 0n) fail("invalid-argument");
    this.#sendBufferSize = value;
  }

  subscribe(): Pollable {
    return new Pollable(this.#context.preview1, this.#condition);
  }

  [Symbol.dispose](): void {
    this.#context.quota.release();
    this.#datagrams.isClosed = true;
    this.#datagrams.socket.close();
  }
}
