/**
 * The thread that holds the plugins' sockets: sockets are asynchronous, and a synchronous call needs its answer at
 * once.
 *
 * In: one request at a time by message; the requesting thread blocks at the reply cell, or waits for a message.
 * Out: a handle, a count or a negated status there, bytes in the shared buffer. Whether a connection may be made is
 * a decision of NetworkGrants, as for components: they read the scopes and resolve the name, and the address that they
 * return is the one connected to. A socket stops reading when enough received data is pending, so a sender cannot fill
 * memory. Started by sockets.ts.
 */
import { createConnection, createServer, isIP, type Server, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { parentPort, workerData } from "node:worker_threads";
import { ComponentError } from "@waft/component/internal/abi/traps";
import { NetworkGrants } from "@waft/component/internal/wasi/network_grants";
import { type SocketRequest, type SocketShare, STATUS_OF } from "./socket_wire.ts";

const { reply, data, timeout, grants: scopes } = workerData as SocketShare;
const grants = grantsOf(scopes);

/** No grants if a scope names no host. */
function grantsOf(scopes: SocketShare["grants"]): NetworkGrants {
  try {
    return new NetworkGrants(scopes);
  } catch {
    return new NetworkGrants();
  }
}
const cells = new Int32Array(reply);
const bytes = new Uint8Array(data);

/** Bytes that wait on a socket before it stops reading. */
const ENOUGH = 1 << 18;

interface Listener {
  readonly server: Server;
  readonly waiting: Connection[];
}

/** A socket and its received data. */
interface Connection {
  readonly socket: Socket;
  readonly chunks: Uint8Array[];
  size: number;
  ended: boolean;
}
const connections = new Map<number, Connection>();
const listeners = new Map<number, Listener>();
let nextHandle = 1;

/** Begins to receive. A failed socket must not end the thread: the next use of its handle says so. */
function connectionOf(socket: Socket): Connection {
  const connection: Connection = { socket, chunks: [], size: 0, ended: false };
  socket.on("error", () => {});
  socket.on("end", () => connection.ended = true);
  socket.on("data", (chunk: Uint8Array) => {
    connection.chunks.push(chunk);
    connection.size += chunk.length;
    if (connection.size >= ENOUGH) socket.pause();
  });
  return connection;
}

function keep(connection: Connection): number {
  const handle = nextHandle++;
  connections.set(handle, connection);
  return handle;
}

/** The first of `events` that happens, or "timeout" after `most` ms. Emitters are left as they were. */
function firstOf(
  emitter: { on(e: string, f: () => void): unknown; off(e: string, f: () => void): unknown },
  events: readonly string[],
  most: number = timeout,
): Promise<string> {
  return new Promise((resolve) => {
    const done = (name: string) => (): void => {
      clearTimeout(timer);
      for (const { event, handler } of handlers) emitter.off(event, handler);
      resolve(name);
    };
    const handlers = events.map((event) => ({ event, handler: done(event) }));
    const timer = setTimeout(done("timeout"), most);
    for (const { event, handler } of handlers) emitter.on(event, handler);
  });
}

/** Errors of granted names, which the resolver does not know. */
const UNKNOWN_NAME: ReadonlySet<string> = new Set(["name-unresolvable", "temporary-resolver-failure"]);

/** Connects to the first address of a granted host that answers. The addresses share the time of the operation. */
async function connect({ host, port, tls }: SocketRequest): Promise<number> {
  let addresses: string[];
  try {
    addresses = await grants.resolve(host, port);
  } catch (error) {
    const isUnknown = error instanceof ComponentError && UNKNOWN_NAME.has(String(error.payload));
    return isUnknown ? -STATUS_OF.failed : -STATUS_OF.denied;
  }
  // Certificates are compared with the name, or with the address if there is no name.
  const servername = isIP(host) === 0 ? host : "";
  for (const address of addresses) {
    const to = { host: address, port };
    const socket = tls === true ? connectTls({ ...to, servername }) : createConnection(to);
    socket.on("error", () => {});
    const events = [tls === true ? "secureConnect" : "connect", "error", "close"];
    const event = await firstOf(socket, events, timeout / addresses.length);
    if (event === events[0]) return keep(connectionOf(socket));
    socket.destroy();
  }
  return -STATUS_OF.failed;
}

async function listen({ host, port }: SocketRequest): Promise<number> {
  if (!grants.mayListen(host, port)) return -STATUS_OF.denied;
  const waiting: Connection[] = [];
  const server = createServer((socket) => void waiting.push(connectionOf(socket)));
  server.maxConnections = 64;
  server.on("error", () => {});
  server.listen({ host, port, exclusive: true });
  if (await firstOf(server, ["listening", "error"]) !== "listening") return -STATUS_OF.failed;
  const handle = nextHandle++;
  listeners.set(handle, { server, waiting });
  return handle;
}

async function accept({ handle }: SocketRequest): Promise<number> {
  const listener = listeners.get(handle);
  if (listener === undefined) return -STATUS_OF.missing;
  if (listener.waiting.length === 0) await firstOf(listener.server, ["connection", "close"]);
  const connection = listener.waiting.shift();
  return connection === undefined ? -STATUS_OF.failed : keep(connection);
}

async function send({ handle, count }: SocketRequest): Promise<number> {
  const socket = connections.get(handle)?.socket;
  if (socket === undefined) return -STATUS_OF.missing;
  if (socket.destroyed || !socket.writable) return -STATUS_OF.closed;
  // Copied, because the asker reuses the buffer.
  if (socket.write(bytes.slice(0, count))) return count;
  const event = await firstOf(socket, ["drain", "error", "close"]);
  return event === "drain" ? count : -STATUS_OF.closed;
}

async function receive({ handle, count }: SocketRequest): Promise<number> {
  const connection = connections.get(handle);
  if (connection === undefined) return -STATUS_OF.missing;
  const { socket, chunks } = connection;
  if (chunks.length === 0 && !connection.ended) {
    if (socket.destroyed) return -STATUS_OF.closed;
    const event = await firstOf(socket, ["data", "end", "error", "close"]);
    if (chunks.length === 0 && event !== "end") return event === "timeout" ? -STATUS_OF.failed : -STATUS_OF.closed;
  }
  let done = 0;
  while (done < count && chunks.length > 0) {
    const chunk = chunks[0];
    const part = chunk.subarray(0, count - done);
    bytes.set(part, done);
    done += part.length;
    if (part.length === chunk.length) chunks.shift();
    else chunks[0] = chunk.subarray(part.length);
  }
  connection.size -= done;
  if (connection.size < ENOUGH) socket.resume();
  return done;
}

function close({ handle }: SocketRequest): number {
  const socket = connections.get(handle)?.socket;
  const listener = listeners.get(handle);
  connections.delete(handle);
  listeners.delete(handle);
  if (socket !== undefined) socket.end(() => socket.destroy());
  else if (listener !== undefined) {
    for (const { socket } of listener.waiting.splice(0)) socket.destroy();
    listener.server.close();
  } else return -STATUS_OF.missing;
  return 0;
}

const OPERATIONS: { readonly [name: string]: (request: SocketRequest) => number | Promise<number> } = {
  connect,
  listen,
  accept,
  send,
  receive,
  close,
};

parentPort!.on("message", async (request: SocketRequest) => {
  let result: number;
  try {
    result = await OPERATIONS[request.operation](request);
  } catch {
    result = -STATUS_OF.failed;
  }
  if (request.byMessage === true) return parentPort!.postMessage(result);
  Atomics.store(cells, 1, result);
  Atomics.store(cells, 0, 1);
  Atomics.notify(cells, 0);
});
