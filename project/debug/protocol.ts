/**
 * The wire of the Debug Adapter Protocol: messages in JSON, each after a header with its length (the protocol's
 * "Overview", "Base Protocol"). In: a stream of bytes, and a function that serves requests. Out: responses in the order
 * of their requests, and events.
 *
 * A request that fails is answered with the message of its error; a stream that is not the protocol ends the
 * connection.
 */
import type { Readable, Writable } from "node:stream";

/** The arguments of a request, as they came. */
export type Arguments = Readonly<Record<string, unknown>>;
/** Serves a request; returns the body of the response. */
type Serve = (command: string, args: Arguments) => Promise<object | undefined>;

const SEPARATOR = "\r\n\r\n";
/** Limits of a header and of a message in bytes. */
const MAX_HEADER = 4096;
const MAX_BODY = 64 << 20;

/** A connection with an editor. */
export class Connection {
  readonly #output: Writable;
  readonly #serve: Serve;
  readonly #ended: () => void;
  #input = Buffer.alloc(0);
  #sequence = 1;
  /** Settled when all requests so far are answered. */
  #answered: Promise<void> = Promise.resolve();

  /** `ended` is called when no request will follow, possibly several times. */
  constructor(input: Readable, output: Writable, serve: Serve, ended: () => void) {
    this.#output = output;
    this.#serve = serve;
    this.#ended = ended;
    input.on("data", (data: Uint8Array) => this.#receive(data));
    input.on("end", ended);
    input.on("close", ended); // without an end, if this side has closed the stream
    input.on("error", ended);
    output.on("error", ended);
  }

  /** Sends an event. */
  event(event: string, body: object = {}): void {
    this.#send({ type: "event", event, body });
  }

  #send(message: object): void {
    const body = Buffer.from(JSON.stringify({ seq: this.#sequence++, ...message }));
    this.#output.write(Buffer.concat([Buffer.from(`Content-Length: ${body.length}${SEPARATOR}`), body]));
  }

  #receive(data: Uint8Array): void {
    this.#input = Buffer.concat([this.#input, data]);
    try {
      for (let message = this.#next(); message !== undefined; message = this.#next()) this.#dispatch(message);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      this.event("output", { category: "stderr", output: `waft: ${error.message}\n` });
      this.#input = Buffer.alloc(0);
      this.#ended();
    }
  }

  /** Takes the next whole message from the input. Throws SyntaxError for anything else. */
  #next(): Arguments | undefined {
    const end = this.#input.indexOf(SEPARATOR);
    if (end < 0) {
      if (this.#input.length > MAX_HEADER) throw new SyntaxError("the input is not the Debug Adapter Protocol");
      return undefined;
    }
    // Not a field of many: a request of HTTP that a web page sends to the port must be refused.
    const header = this.#input.toString("latin1", 0, end).replace(/\r\ncontent-type: [^\r\n]*$/i, "");
    const length = Number(/^content-length: *(\d+)$/i.exec(header)?.[1] ?? NaN);
    if (!(length <= MAX_BODY)) throw new SyntaxError("a message without a valid Content-Length");
    const start = end + SEPARATOR.length;
    if (this.#input.length < start + length) return undefined;
    const message: unknown = JSON.parse(this.#input.toString("utf8", start, start + length));
    this.#input = this.#input.subarray(start + length);
    if (!isRecord(message)) throw new SyntaxError("a message that is not an object");
    return message;
  }

  #dispatch({ type, command, seq, arguments: args }: Arguments): void {
    if (type !== "request" || typeof command !== "string") return;
    this.#answered = this.#answered.then(async () => {
      const response = { type: "response", request_seq: seq, command };
      try {
        const body = await this.#serve(command, isRecord(args) ? args : {});
        this.#send({ ...response, success: true, ...(body === undefined ? {} : { body }) });
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        this.#send({
          ...response,
          success: false,
          message,
          body: { error: { id: 1, format: message, showUser: true } },
        });
      }
    });
  }
}

/** True for an object that is not an array. */
export function isRecord(value: unknown): value is Arguments {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
