/**
 * The thread on which plugins' sockets live, because host functions must answer at once and sockets do not.
 *
 * In: one request at a time by message; the asking thread waits for the reply cell. Out: a handle, a count or a negated status
 * in the reply cell, bytes in the shared buffer. What was asked for has been granted already: nothing here decides. Sockets
 * read only while someone waits, so that a sender cannot fill memory. Started by sockets.ts.
 */
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { parentPort, workerData } from "node:worker_threads";
import { type SocketRequest, type SocketShare, STATUS_OF } from "./socket_wire.ts";

const { reply, data, timeout } = workerData as SocketShare;
const cells = new Int32Array(reply);
const bytes = new Uint8Array(data);

interface Listener {
  readonly server: Server;
  readonly waiting: Socket[];
}
const handles = new Map<number, Socket | Listener>();
let nextHandle = 1;

function isSocket(entry: Socket | Listener): entry is Socket {
  return !("server" in entry);
}

/** A failed socket must not end the thread: the next use of its handle says so. */
function keep(socket: Socket): number {
  socket.on("error", () => {});
  socket.pause();
  const handle = nextHandle++;
  handles.set(handle, socket);
  return handle;
}

/** The first of `events` that happens, or "timeout". Emitters are left as they were. */
function firstOf(
  emitter: { on(e: string, f: () => void): unknown; off(e: string, f: () => void): unknown },
  events: readonly string[],
): Promise<string> {
  return new Promise((resolve) => {
    const done = (name: string) => (): void => {
      clearTimeout(timer);
      for (const { event, handler } of handlers) emitter.off(event, handler);
      resolve(name);
    };
    const handlers = events.map((event) => ({ event, handler: done(event) }));
    const timer = setTimeout(done("timeout"), timeout);
    for (const { event, handler } of handlers) emitter.on(event, handler);
  });
}

async function connect(request: SocketRequest): Promise<number> {
  const { host, port, tls } = request;
  const socket = tls === true
    ? connectTls({ host, port, servername: /^[\d.]+$|:/.test(host) ? "" : host })
    : createConnection({ host, port });
  socket.on("error", () => {});
  const event = await firstOf(socket, [tls === true ? "secureConnect" : "connect", "error", "close"]);
  if (event === "connect" || event === "secureConnect") return keep(socket);
  socket.destroy();
  return -STATUS_OF.failed;
}

async function listen({ host, port }: SocketRequest): Promise<number> {
  const server = createServer({ pauseOnConnect: true });
  const waiting: Socket[] = [];
  server.maxConnections = 64;
  server.on("connection", (socket) => {
    socket.on("error", () => {});
    waiting.push(socket);
  });
  server.on("error", () => {});
  server.listen({ host, port, exclusive: true });
  if (await firstOf(server, ["listening", "error"]) !== "listening") return -STATUS_OF.failed;
  const handle = nextHandle++;
  handles.set(handle, { server, waiting });
  return handle;
}

async function accept({ handle }: SocketRequest): Promise<number> {
  const entry = handles.get(handle);
  if (entry === undefined || isSocket(entry)) return -STATUS_OF.missing;
  if (entry.waiting.length === 0) await firstOf(entry.server, ["connection", "close"]);
  const socket = entry.waiting.shift();
  return socket === undefined ? -STATUS_OF.failed : keep(socket);
}

async function send({ handle, count }: SocketRequest): Promise<number> {
  const socket = handles.get(handle);
  if (socket === undefined || !isSocket(socket)) return -STATUS_OF.missing;
  if (socket.destroyed || !socket.writable) return -STATUS_OF.closed;
  // Copied, because the asker reuses the buffer.
  if (socket.write(bytes.slice(0, count))) return count;
  const event = await firstOf(socket, ["drain", "error", "close"]);
  return event === "drain" ? count : -STATUS_OF.closed;
}

async function receive({ handle, count }: SocketRequest): Promise<number> {
  const socket = handles.get(handle);
  if (socket === undefined || !isSocket(socket)) return -STATUS_OF.missing;
  if (count === 0) return 0;
  for (;;) {
    const available = Math.min(count, socket.readableLength);
    const chunk = available === 0 ? null : socket.read(available) as Uint8Array | null;
    if (chunk !== null) {
      bytes.set(chunk);
      return chunk.length;
    }
    if (socket.readableEnded) return 0;
    if (socket.destroyed) return -STATUS_OF.closed;
    socket.read(0);
    const event = await firstOf(socket, ["readable", "end", "error", "close"]);
    if (event === "timeout") return -STATUS_OF.failed;
    if (event === "end") return 0;
    if (event === "error") return -STATUS_OF.closed;
    if (event === "close" && socket.readableLength === 0) return 0;
  }
}

function close({ handle }: SocketRequest): number {
  const entry = handles.get(handle);
  if (entry === undefined) return -STATUS_OF.missing;
  handles.delete(handle);
  if (isSocket(entry)) entry.end(() => entry.destroy());
  else {
    for (const socket of entry.waiting.splice(0)) socket.destroy();
    entry.server.close();
  }
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
    result = await OPERATIONS[request.operation]!(request);
  } catch {
    result = -STATUS_OF.failed;
  }
  Atomics.store(cells, 1, result);
  Atomics.store(cells, 0, 1);
  Atomics.notify(cells, 0);
});
