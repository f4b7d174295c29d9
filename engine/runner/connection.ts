/**
 * A program's end of the connection to its runner. In: a command, requests, and host functions. Out: answers.
 * Invariant: the runner may be hostile. Each of its messages is checked against the requests in progress, and one that
 * does not fit ends it. A request is answered, fails at its deadline, or fails with the runner.
 */
import { clearTimer, setTimer } from "../host/clocks.ts";
import { type ChildProcess, type ProcessEnd, startProcess } from "../host/child_process.ts";
import { readFailure, RunnerError } from "./failures.ts";
import {
  HEADER_BYTES,
  KIND,
  type Message,
  type MessageKind,
  MessageReader,
  newMessage,
  ProtocolError,
  writeHeader,
} from "./protocol.ts";
import { PayloadReader, PayloadWriter, valuesOf } from "./values.ts";

/** A host function of the program, and the instance that may call it. */
export type HostFunction = (...args: never[]) => unknown;

/** How the arguments and the result of a host function cross. */
export interface HostCodec {
  /** Reads all arguments. Throws ProtocolError. */
  readonly read: (reader: PayloadReader) => readonly unknown[];
  readonly write: (writer: PayloadWriter, result: unknown) => void;
}

/** Values of WebAssembly. */
const PLAIN: HostCodec = {
  read: (reader) => reader.values(),
  write: (writer, result) => void writer.values(valuesOf(result), "The result of a host function"),
};

/** A host function, and how its values cross. */
interface HostEntry {
  readonly run: HostFunction;
  readonly codec: HostCodec;
}

/** The maximum delay of a timer. */
const MAX_TIMER_MS = 0x7fff_ffff;
/** The number of errors of host functions that a request keeps for guests that catch and rethrow them. */
const MAX_ERRORS = 64;
/** What an answer costs at least while the runner has not read it, in bytes. */
const MIN_UNREAD = 1024;
/** Bytes of standard error that are kept for the error that reports the end of the runner. */
const MAX_DIAGNOSIS = 2000;
/** The largest id. */
const MAX_ID = 0xffff_ffff;

/** A request in progress. */
interface Request {
  readonly resolve: (payload: Uint8Array) => void;
  readonly reject: (reason: unknown) => void;
  readonly timer: ReturnType<typeof setTimer> | undefined;
  /** The call of a host function that it waits for; 0 if there is none. */
  callback: number;
  readonly errors: Map<number, unknown>;
  readonly onFuel: ((fuel: bigint) => void) | undefined;
}

/** Settings of a request. */
interface RequestOptions {
  /** Milliseconds after which the runner is ended: those of the deadline and a grace period. */
  readonly within?: number | undefined;
  /** Takes the remaining fuel of a request that fails. */
  readonly onFuel?: (fuel: bigint) => void;
}

/** A promise with its functions. */
interface Settled<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (reason: unknown) => void;
}

function settled<T>(): Settled<T> {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((done, failed) => [resolve, reject] = [done, failed]);
  return { promise, resolve, reject };
}

export class Connection {
  readonly #process: ChildProcess;
  readonly #requests = new Map<number, Request>();
  readonly #functions = new Map<number, HostEntry>();
  /** Functions that take notices, by their subjects. */
  readonly #listeners = new Map<number, (payload: Uint8Array) => void>();
  readonly #reader: MessageReader;
  readonly #writer = new PayloadWriter();
  readonly #maxBytes: number;
  /** Bytes of answers to calls of host functions that the runner has not read. */
  #unread = 0;
  #nextId = 1;
  #nextFunction = 0;
  #diagnosis = "";
  #failure: RunnerError | undefined;
  #isReady = false;
  #startTimer: ReturnType<typeof setTimer> | undefined;
  readonly #ready: Settled<Uint8Array> = settled();
  readonly #ended: Settled<void> = settled();

  /** Starts the process. Payloads have at most `maxBytes`. */
  constructor(command: readonly string[], maxBytes: number) {
    this.#maxBytes = maxBytes;
    this.#ready.promise.catch(() => {});
    this.#reader = new MessageReader(maxBytes, (message) => this.#handle(message));
    this.#process = startProcess(command, {
      stdout: (bytes) => this.#take(bytes),
      stderr: (bytes) => {
        if (this.#diagnosis.length < MAX_DIAGNOSIS) this.#diagnosis += new TextDecoder().decode(bytes);
      },
      ended: (end, error) => {
        this.#fail(new RunnerError(this.#describeEnd(command, end, error), { cause: error }));
        this.#ended.resolve();
      },
    });
  }

  /** Resolves when the process has ended. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** The number of the process. */
  get processId(): number | undefined {
    return this.#process.id;
  }

  /** The reason why the runner can no longer be used. */
  get failure(): RunnerError | undefined {
    return this.#failure;
  }

  /** The maximum number of bytes of a payload. */
  get maxBytes(): number {
    return this.#maxBytes;
  }

  /** Sends the first message; resolves with the answer, which must come in `milliseconds`. */
  start(setup: object, milliseconds: number): Promise<Uint8Array> {
    const json = new TextEncoder().encode(JSON.stringify(setup));
    const message = newMessage(KIND.SETUP, 0, 0, json.length);
    message.set(json, HEADER_BYTES);
    void this.#process.write(message);
    this.#startTimer = setTimer(() => this.#endLate(milliseconds), milliseconds);
    return this.#ready.promise;
  }

  /** Ends the process, and fails all requests with `reason`. */
  kill(reason: RunnerError): void {
    this.#fail(reason);
    this.#process.kill();
  }

  #endLate(milliseconds: number): void {
    this.kill(new RunnerError(`The runner was ended: it did not answer within ${milliseconds} ms`));
  }

  /** Adds a host function; returns its number. */
  addFunction(run: HostFunction, codec: HostCodec = PLAIN): number {
    const index = this.#nextFunction++;
    this.#functions.set(index, { run, codec });
    return index;
  }

  removeFunction(index: number): void {
    this.#functions.delete(index);
  }

  /** Passes the notices about `subject` to `listener`, which throws ProtocolError for a forged one. */
  listen(subject: number, listener: (payload: Uint8Array) => void): void {
    this.#listeners.set(subject, listener);
  }

  /** Ends the notices about `subject`. */
  unlisten(subject: number): void {
    this.#listeners.delete(subject);
  }

  /** An id for the next request. */
  newId(): number {
    while (this.#requests.has(this.#nextId)) this.#nextId = this.#nextId % MAX_ID + 1;
    const id = this.#nextId;
    this.#nextId = this.#nextId % MAX_ID + 1;
    return id;
  }

  /**
   * Sends a request whose payload `write` writes; resolves with the payload of the answer. Rejects with the error of
   * the engine, that of a host function, or a RunnerError.
   */
  request(
    kind: MessageKind,
    subject: number,
    write: (writer: PayloadWriter) => void,
    options: RequestOptions = {},
    id: number = this.newId(),
  ): Promise<Uint8Array> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    const message = this.#message(kind, id, subject, write);
    return new Promise((resolve, reject) => {
      const { within, onFuel } = options;
      const timer = within === undefined ? undefined : setTimer(
        () => this.#endLate(within),
        Math.min(within, MAX_TIMER_MS),
      );
      this.#requests.set(id, { resolve, reject, timer, callback: 0, errors: new Map(), onFuel });
      void this.#process.write(message);
    });
  }

  /** Reads an answer, and ends a runner whose answer is not one. */
  reading<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      const reason = new RunnerError(`The runner was ended: it sent ${error.message}`);
      this.kill(reason);
      throw reason;
    }
  }

  #message(kind: MessageKind, id: number, subject: number, write: (writer: PayloadWriter) => void): Uint8Array {
    write(this.#writer.begin(HEADER_BYTES));
    const { written, view } = this.#writer;
    const bytes = written.length - HEADER_BYTES;
    if (bytes > this.#maxBytes) {
      throw new RangeError(`A message of ${bytes} bytes is too long: the option maxMessageBytes is ${this.#maxBytes}`);
    }
    writeHeader(view, kind, id, subject, bytes);
    return written.slice();
  }

  #take(bytes: Uint8Array): void {
    if (this.#failure !== undefined) return;
    try {
      this.#reader.push(bytes);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.kill(new RunnerError(`The runner was ended: it sent ${error.message}`));
    }
  }

  #handle(message: Message): void {
    const { kind, id, payload } = message;
    switch (kind) {
      case KIND.READY:
        if (this.#isReady) throw new ProtocolError("a second answer to the first message");
        this.#isReady = true;
        clearTimer(this.#startTimer);
        this.#ready.resolve(payload);
        return;
      case KIND.DONE:
        this.#finish(id).resolve(payload);
        return;
      case KIND.FAILED: {
        const failure = readFailure(payload);
        const { reject, errors, onFuel } = this.#finish(id);
        if (failure.fuel !== undefined) onFuel?.(failure.fuel);
        const { callback } = failure;
        reject(callback !== undefined && errors.has(callback) ? errors.get(callback) : failure.error);
        return;
      }
      case KIND.HOST:
        this.#callHost(message);
        return;
      case KIND.NOTICE: {
        const listener = this.#listeners.get(message.subject);
        if (listener === undefined) throw new ProtocolError(`a notice about ${message.subject}, which does not exist`);
        listener(payload);
        return;
      }
      default:
        throw new ProtocolError(`a message of kind ${kind}, which only programs send`);
    }
  }

  /** The request that an answer ends. */
  #finish(id: number): Request {
    const request = this.#requests.get(id);
    if (request === undefined) throw new ProtocolError(`an answer to request ${id}, which is not in progress`);
    this.#requests.delete(id);
    if (request.timer !== undefined) clearTimer(request.timer);
    return request;
  }

  #callHost({ id, subject, payload }: Message): void {
    const reader = new PayloadReader(payload);
    const requestId = reader.u32();
    const request = this.#requests.get(requestId);
    const entry = this.#functions.get(subject);
    if (request === undefined) throw new ProtocolError("a call of a host function without a request");
    if (entry === undefined) throw new ProtocolError(`a call of host function ${subject}, which does not exist`);
    if (request.callback !== 0 || id === 0) throw new ProtocolError("a second call of a host function at once");
    const { run, codec } = entry;
    const args = codec.read(reader);
    reader.end();
    request.callback = id;
    let result: unknown;
    try {
      result = (run as (...args: unknown[]) => unknown)(...args);
    } catch (error) {
      this.#throwInGuest(request, id, error);
      return;
    }
    if (result instanceof Promise) {
      result.then(
        (value) => this.#answer(request, id, value, codec),
        (error: unknown) => this.#throwInGuest(request, id, error),
      );
    } else this.#answer(request, id, result, codec);
  }

  #answer(request: Request, id: number, result: unknown, codec: HostCodec): void {
    request.callback = 0;
    let message: Uint8Array;
    try {
      message = this.#message(KIND.RETURNED, id, 0, (writer) => codec.write(writer, result));
    } catch (error) {
      this.#throwInGuest(request, id, error);
      return;
    }
    this.#sendAnswer(message);
  }

  #throwInGuest(request: Request, id: number, error: unknown): void {
    request.callback = 0;
    if (request.errors.size >= MAX_ERRORS) request.errors.delete(request.errors.keys().next().value!);
    request.errors.set(id, error);
    this.#sendAnswer(newMessage(KIND.THREW, id, 0, 0));
  }

  /** Sends an answer to a call of a host function. Ends a runner that makes calls and does not read their answers. */
  #sendAnswer(message: Uint8Array): void {
    if (this.#failure !== undefined) return;
    const sent = this.#process.write(message);
    if (sent === undefined) return;
    const cost = message.length + MIN_UNREAD;
    this.#unread += cost;
    void sent.then(() => this.#unread -= cost);
    if (this.#unread > 2 * this.#maxBytes) {
      this.kill(new RunnerError("The runner was ended: it does not read the answers of host functions"));
    }
  }

  #fail(reason: RunnerError): void {
    if (this.#failure !== undefined) return;
    this.#failure = reason;
    clearTimer(this.#startTimer);
    this.#ready.reject(reason);
    for (const { reject, timer } of this.#requests.values()) {
      if (timer !== undefined) clearTimer(timer);
      reject(reason);
    }
    this.#requests.clear();
    this.#functions.clear();
    this.#listeners.clear();
  }

  #describeEnd([executable]: readonly string[], { status, signal }: ProcessEnd, error: unknown): string {
    if (error !== undefined) {
      const reason = error instanceof Error ? error.message : String(error);
      return `The runner "${executable}" could not be started: ${reason}`;
    }
    const how = signal === null ? `with status ${status}` : `by the signal ${signal}`;
    const said = firstLine(this.#diagnosis);
    return `The runner ended ${how}${said === "" ? "" : `: ${said}`}`;
  }
}

/** The first line that says something, without control codes. */
function firstLine(text: string): string {
  const line = text.split("\n").find((line) => line.trim() !== "") ?? "";
  // deno-lint-ignore no-control-regex
  return line.replace(/\x1b\[[0-9;]*m|[\x00-\x1f\x7f-\x9f]/g, "").trim().slice(0, 300);
}
