/**
 * `waft:net@1`: TCP and TLS connections to granted hosts, and listeners on granted addresses.
 *
 * In: a plugin and its grants (`name:port`, read as those of components). Out: its functions, which return
 * promises in asynchronous calls and block in others, until the deadline of the call: a separate thread holds the
 * sockets (socket_worker.ts), and ends with a wait that the deadline has cut. Handles belong to one plugin of one
 * graph; every wait is bounded. The thread checks the grants.
 */
import { Worker } from "node:worker_threads";
import { callDeadline, callIsOver, interruptedCall } from "@waft/engine/internal/runtime/host_limits";
import { STATUS } from "../definitions/authorities.ts";
import { type HostFunctionGroup, StatusError } from "./node.ts";
import type { SocketRequest, SocketShare } from "./socket_wire.ts";
import { pay } from "./system.ts";
import { whenThere } from "./waiting.ts";

/** Timeout of an operation, in milliseconds. */
const TIMEOUT = 30_000;
/** Extra time for the thread, in milliseconds, before it is terminated. */
const GRACE = 10_000;
/** Maximum bytes that a call moves. */
const MAX_TRANSFER = 1 << 16;
/** Maximum number of open handles per plugin. */
const MAX_HANDLES = 64;

/** The thread of a plugin's sockets. */
class SocketThread {
  readonly #cells: Int32Array<SharedArrayBuffer>;
  readonly data: Uint8Array<SharedArrayBuffer>;
  readonly #worker: Worker;
  #ended = false;
  /** Receives the reply to a pending request whose requester has not blocked. */
  #answer: ((result: number) => void) | undefined;

  constructor(grants: SocketShare["grants"]) {
    const share: SocketShare = {
      grants,
      reply: new SharedArrayBuffer(8),
      data: new SharedArrayBuffer(MAX_TRANSFER),
      timeout: TIMEOUT,
    };
    this.#cells = new Int32Array(share.reply);
    this.data = new Uint8Array(share.data);
    this.#worker = new Worker(new URL("./socket_worker.ts", import.meta.url), { workerData: share });
    this.#worker.on("error", () => this.end());
    this.#worker.on("message", (result: number) => this.#answer?.(result));
    this.#worker.unref();
  }

  /** Makes a request: returns its result, or a promise if the requester may wait; fails with a StatusError. */
  ask(
    operation: SocketRequest["operation"],
    mayWait: boolean,
    more: Partial<SocketRequest>,
  ): number | Promise<number> {
    if (this.#ended) throw new StatusError(STATUS.closed);
    if (this.#answer !== undefined) throw new StatusError(STATUS.failed);
    const cells = this.#cells;
    Atomics.store(cells, 0, 0);
    this.#worker.postMessage({ host: "", port: 0, handle: 0, count: 0, ...more, operation, byMessage: mayWait });
    if (mayWait) return this.#answered();
    const most = Math.min(TIMEOUT + GRACE, Math.max(0, callDeadline() - performance.now()));
    if (Atomics.wait(cells, 0, 0, most) === "timed-out") {
      this.end();
      if (callIsOver()) throw interruptedCall();
      throw new StatusError(STATUS.failed);
    }
    return checked(Atomics.load(cells, 1));
  }

  #answered(): Promise<number> {
    return new Promise<number>((resolve) => {
      const timer = setTimeout(() => this.end(STATUS.failed), TIMEOUT + GRACE);
      this.#worker.ref();
      this.#answer = (result) => {
        this.#answer = undefined;
        clearTimeout(timer);
        this.#worker.unref();
        resolve(result);
      };
    }).then(checked);
  }

  /** Ends the thread and its sockets; a waiting requester gets `status`. */
  end(status: number = STATUS.closed): void {
    this.#ended = true;
    this.#answer?.(-status);
    void this.#worker.terminate();
  }
}

function checked(result: number): number {
  if (result < 0) throw new StatusError(-result);
  return result;
}

/** Functions of `waft:net@1`. */
export const socketFunctions: HostFunctionGroup = (node, grants) => {
  const hosts = (name: string): string[] => (grants[name]?.hosts as string[] | undefined) ?? [];
  const scopes = { connect: hosts("net.connect"), listen: hosts("net.listen") };
  let thread: SocketThread | undefined;
  /** Handles of the plugin: small numbers, each mapped to a handle of the thread. */
  const handles: (number | undefined)[] = [];
  node.closers.push(() => thread?.end());

  const open = (): SocketThread => {
    if (thread === undefined) thread = new SocketThread(scopes);
    return thread;
  };
  const target = (at: number, length: number, port: number) => ({
    host: node.memory.text(at, length, 260).replace(/^\[(.*)\]$/, "$1"),
    port: port >>> 0,
  });
  const ask = (operation: SocketRequest["operation"], more: Partial<SocketRequest>) =>
    open().ask(operation, node.services.mayWait, more);
  const admit = (make: () => number | Promise<number>): number | Promise<number> => {
    let handle = handles.indexOf(undefined);
    if (handle < 0) handle = handles.length;
    if (handle >= MAX_HANDLES) throw new StatusError(STATUS.invalid);
    return whenThere(make(), (made) => {
      handles[handle] = made;
      return handle;
    });
  };
  const own = (handle: number): number => {
    const found = handles[handle >>> 0];
    if (found === undefined) throw new StatusError(STATUS.missing);
    return found;
  };
  return {
    connect: (host: number, length: number, port: number) => {
      const to = target(host, length, port);
      return admit(() => ask("connect", to));
    },
    "connect-tls": (host: number, length: number, port: number) => {
      const to = target(host, length, port);
      return admit(() => ask("connect", { ...to, tls: true }));
    },
    listen: (host: number, length: number, port: number) => {
      const to = target(host, length, port);
      return admit(() => ask("listen", to));
    },
    accept: (handle: number) => {
      const listener = own(handle);
      return admit(() => ask("accept", { handle: listener }));
    },
    send: (handle: number, at: number, length: number) => {
      const socket = own(handle);
      const bytes = node.memory.bytes(at, length).subarray(0, MAX_TRANSFER);
      pay(bytes.length);
      open().data.set(bytes);
      return ask("send", { handle: socket, count: bytes.length });
    },
    receive: (handle: number, at: number, room: number) => {
      const socket = own(handle);
      const to = node.memory.bytes(at, room);
      const { data } = open();
      return whenThere(ask("receive", { handle: socket, count: Math.min(to.length, MAX_TRANSFER) }), (count) => {
        to.set(data.subarray(0, count));
        pay(count);
        return count;
      });
    },
    close: (handle: number) => {
      const socket = own(handle);
      handles[handle >>> 0] = undefined;
      return whenThere(ask("close", { handle: socket }), () => STATUS.ok);
    },
  };
};
