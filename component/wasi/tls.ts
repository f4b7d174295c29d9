/**
 * wasi:tls of WASI 0.2, a draft: the client's side of TLS over the streams of a connection that the guest has. In: the
 * name of the server, and two streams of a socket. Out: imports for `Component.instantiate`, by the name of the
 * interface without its version. Invariants: a handshake succeeds only if the server's certificate is valid for the
 * name and leads to a certificate that the host trusts; TLS gives access to nothing that the two streams do not reach.
 */
import { Buffer } from "node:buffer";
import { isIP } from "node:net";
import { Duplex } from "node:stream";
import { clearTimeout, setTimeout } from "node:timers";
import { connect, type TLSSocket } from "node:tls";
import { ComponentError } from "../abi/traps.ts";
import { type Holding, HostShare, SHARES } from "../async/host_quota.ts";
import { SHAPES, type ShapesOf } from "../link/host_imports.ts";
import type { ComponentImports } from "../link/host_names.ts";
import { ByteSource, EventInputStream, EventOutputStream, WritableSink } from "./event_streams.ts";
import type { ComponentWasi } from "./mod.ts";
import type { Preview1 } from "./preview1.ts";
import { Condition } from "./readiness.ts";
import { IoError, Pollable } from "./streams.ts";

/** The bytes of the host that a connection counts, besides those in its streams. */
const CONNECTION_BYTES = 1 << 16;
const READ_BYTES = 1n << 14n;
/** The maximum number of bytes of one blocking-write-and-flush (wasi:io). */
const WRITE_BYTES = 4096;

/** The time in which a handshake whose connection has ended must have ended, too. */
const ENDING_MS = 1000;

const SERVER_NAME = /^(?!-)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?$/;
const MAX_NAME = 253;

/** The types of the functions in `wasi:tls@0.2.0-draft`. */
const FUNCTIONS: Readonly<Record<string, string>> = {
  "[constructor]client-handshake": "func(string, own<input-stream>, own<output-stream>) -> own<client-handshake>",
  "[static]client-handshake.finish": "func(own<client-handshake>) -> own<future-client-streams>",
  "[method]client-connection.close-output": "func(borrow<client-connection>)",
  "[method]future-client-streams.subscribe": "func(borrow<future-client-streams>) -> own<pollable>",
  "[method]future-client-streams.get":
    "func(borrow<future-client-streams>) -> option<result<result<tuple<own<client-connection>, own<input-stream>, " +
    "own<output-stream>>, own<error>>>>",
};

/** Options of TLS. */
export interface TlsOptions {
  /** Certificates that are trusted in place of the host's, as PEM. */
  readonly ca?: string;
}

/** The interface for a guest with this WASI, whose calls must be able to wait. */
export function tlsInterface({ preview1 }: ComponentWasi, options: TlsOptions = {}): ComponentImports {
  const shapesOf: ShapesOf = (fn) => Object.hasOwn(FUNCTIONS, fn) ? [FUNCTIONS[fn]] : [];
  return {
    "wasi:tls/types": {
      ClientHandshake: class extends ClientHandshake {
        constructor(serverName: string, input: unknown, output: unknown) {
          super(preview1, options, serverName, input, output);
        }
      },
      ClientConnection,
      FutureClientStreams,
      [SHAPES]: shapesOf,
    },
  };
}

/** The two streams of a guest as one of the host. */
class GuestStreams extends Duplex {
  readonly #input: EventInputStream;
  readonly #output: EventOutputStream;
  readonly #ended: () => void;
  #isReading = false;

  /** Calls `ended` when nothing more arrives, whether or not all has been read. */
  constructor(input: EventInputStream, output: EventOutputStream, ended: () => void) {
    super();
    this.#ended = ended;
    this.#input = input;
    this.#output = output;
  }

  override _read(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    const end = (action: () => void) => {
      this.#isReading = false;
      if (!this.destroyed) action();
    };
    this.#readPart().then(
      (bytes) => end(() => this.push(bytes)),
      (error: unknown) => {
        this.#ended();
        end(() => isClosed(error) ? this.push(null) : this.destroy(new Error(messageOf(error))));
      },
    );
  }

  async #readPart(): Promise<Buffer> {
    const bytes = await this.#input.blockingRead(READ_BYTES);
    return bytes.length > 0 ? Buffer.from(bytes) : await this.#readPart();
  }

  override _write(chunk: Uint8Array, _encoding: string, done: (error?: Error) => void): void {
    this.#writeAll(chunk).then(() => done(), (error: unknown) => done(new Error(messageOf(error))));
  }

  async #writeAll(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; at += WRITE_BYTES) {
      await this.#output.blockingWriteAndFlush(bytes.subarray(at, at + WRITE_BYTES));
    }
  }
}

function isClosed(error: unknown): boolean {
  return error instanceof ComponentError && (error.payload as { tag?: string } | undefined)?.tag === "closed";
}

/** The reason for which a stream of the guest failed. */
function messageOf(error: unknown): string {
  const { val } = (error instanceof ComponentError ? error.payload : undefined) as { val?: unknown } | undefined ?? {};
  return val instanceof IoError ? val.toDebugString() : "closed";
}

/** wasi:tls/types client-handshake. */
class ClientHandshake implements Holding {
  readonly [SHARES]: readonly HostShare[] = [new HostShare(CONNECTION_BYTES)];
  readonly #preview1: Preview1;
  readonly #options: TlsOptions;
  readonly #serverName: string;
  readonly #input: unknown;
  readonly #output: unknown;

  constructor(preview1: Preview1, options: TlsOptions, serverName: string, input: unknown, output: unknown) {
    this.#preview1 = preview1;
    this.#options = options;
    this.#serverName = serverName;
    this.#input = input;
    this.#output = output;
  }

  static finish(handshake: ClientHandshake): FutureClientStreams {
    return new FutureClientStreams(handshake.#preview1, handshake[SHARES], handshake.#start());
  }

  /** Begins the handshake; returns the reason why it cannot begin. */
  #start(): TLSSocket | string {
    const name = this.#serverName;
    const input = this.#input;
    const output = this.#output;
    if (name.length > MAX_NAME || (isIP(name) === 0 && !SERVER_NAME.test(name))) return "the server name is not valid";
    if (!(input instanceof EventInputStream && output instanceof EventOutputStream)) {
      return "TLS needs the streams of a socket";
    }
    const { ca } = this.#options;
    // Not every host reports a connection that ends before the handshake does.
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ended = () => {
      if (!isOver) timer ??= setTimeout(() => socket.destroy(), ENDING_MS);
    };
    let isOver = false;
    const stop = () => {
      isOver = true;
      clearTimeout(timer);
    };
    const socket = connect({
      socket: new GuestStreams(input, output, ended),
      host: name,
      // An address is checked against the certificate, and is not sent to the server (RFC 6066, section 3).
      servername: isIP(name) === 0 ? name : "",
      rejectUnauthorized: true,
      ...(ca === undefined ? {} : { ca }),
    });
    socket.once("secureConnect", stop);
    socket.once("close", stop);
    return socket;
  }
}

/** What a handshake has come to. */
type Outcome = { readonly tag: "pending" | "done" | "taken" } | { readonly tag: "failed"; readonly reason: string };

/** wasi:tls/types future-client-streams. */
class FutureClientStreams implements Holding {
  readonly [SHARES]: readonly HostShare[];
  readonly #preview1: Preview1;
  readonly #socket: TLSSocket | undefined;
  readonly #ended = new Condition(() => this.#outcome.tag !== "pending");
  #outcome: Outcome = { tag: "pending" };

  constructor(preview1: Preview1, shares: readonly HostShare[], socket: TLSSocket | string) {
    this.#preview1 = preview1;
    this[SHARES] = shares;
    if (typeof socket === "string") {
      this.#end({ tag: "failed", reason: socket });
      return;
    }
    this.#socket = socket;
    socket.once("secureConnect", () => this.#end({ tag: "done" }));
    socket.on("error", (error: Error & { code?: string }) => {
      this.#end({ tag: "failed", reason: error.code ?? error.message });
    });
    socket.once("close", () => this.#end({ tag: "failed", reason: "the connection has been closed" }));
  }

  #end(outcome: Outcome): void {
    if (this.#outcome.tag !== "pending") return;
    this.#outcome = outcome;
    this.#ended.notify();
  }

  subscribe(): Pollable {
    return new Pollable(this.#preview1, this.#ended);
  }

  /** Nothing before the end of the handshake; then its result, once. */
  get(): unknown {
    const outcome = this.#outcome;
    if (outcome.tag === "pending") return undefined;
    if (outcome.tag === "taken") return { tag: "err", val: undefined };
    this.#outcome = { tag: "taken" };
    if (outcome.tag === "failed") {
      return { tag: "ok", val: { tag: "err", val: new IoError(outcome.reason) } };
    }
    const socket = this.#socket!;
    const source = new ByteSource(socket, () => new IoError("connection-reset"));
    const sink = new WritableSink(socket);
    const streams = [
      new ClientConnection(this[SHARES], sink),
      new EventInputStream(this.#preview1, source),
      new EventOutputStream(this.#preview1, sink),
    ];
    return { tag: "ok", val: { tag: "ok", val: streams } };
  }

  [Symbol.dispose](): void {
    if (this.#outcome.tag !== "taken") this.#socket?.destroy();
  }
}

/** wasi:tls/types client-connection. */
class ClientConnection implements Holding {
  readonly [SHARES]: readonly HostShare[];
  readonly #sink: WritableSink;

  constructor(shares: readonly HostShare[], sink: WritableSink) {
    this[SHARES] = shares;
    this.#sink = sink;
  }

  /** Tells the server that nothing follows. */
  closeOutput(): void {
    this.#sink.end();
  }
}
