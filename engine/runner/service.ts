/**
 * The engine's side of a runner: compiles, instantiates and calls on behalf of the program at the other end of the
 * pipe. In: requests. Out: answers, and calls of the program's host functions. Invariant: requests run one after the
 * other; those that come while a host function is awaited run inside of it, as calls of a host function do in one
 * process.
 */
import { inNextTurn, now } from "../host/clocks.ts";
import { confine, type Measure } from "../host/confinement.ts";
import { currentHost } from "../host/current.ts";
import { type Engine, type Instance, Memory, type Module, NewEngine } from "../api/engine.ts";
import { callDeadline, callIsOver, interruptedCall } from "../runtime/host_limits.ts";
import { refuseWorkers } from "../host/workers.ts";
import { runProgram } from "./run_program.ts";
import { describeFailure, FuelledError, HostFunctionError } from "./failures.ts";
import { enforceable, readLimits, writeFuel } from "./limits.ts";
import { Pipe, PipeClosed } from "./pipe.ts";
import { HEADER_BYTES, KIND, type Message, type MessageKind, PROTOCOL_VERSION, writeHeader } from "./protocol.ts";
import { readProgramOptions, writeProgramResult } from "./programs.ts";
import type {
  InstantiateOptions,
  LoadedExtension,
  MakeExtension,
  Ready,
  RunnerExtension,
  Setup,
  WriteAnswer,
} from "./service_types.ts";
import { jsonOf, PayloadReader, PayloadWriter, resultOf, valuesOf } from "./values.ts";
import { warmUp } from "./warm_up.ts";

/** The largest first message. */
const MAX_SETUP_BYTES = 1 << 20;
/** The time in milliseconds after which the event loop gets a turn between two requests. */
const TURN_MS = 50;

/** The turns after which a promise that is awaited is idle. */
const BUSY_TURNS = 20;
/** The time in milliseconds between two turns while a promise is awaited. */
const IDLE_MS = 1;

/** A module, with the source from which programs are run. */
interface HeldModule {
  readonly module: Module;
  readonly source: Uint8Array | string;
}

class Service {
  readonly #pipe: Pipe;
  readonly #engine: Engine;
  /** Whether the event loop gets turns. */
  readonly #mayTurn: boolean;
  readonly #modules = new Map<number, HeldModule>();
  readonly #instances = new Map<number, Instance>();
  readonly #exports = new Map<number, readonly string[]>();
  readonly #writer = new PayloadWriter();
  /** Calls of host functions that are awaited, with their answers once these are there. */
  readonly #awaited = new Map<number, Message | undefined>();
  /** The requests in progress, the innermost last. */
  readonly #requests: number[] = [];
  #nextId = 1;
  readonly #extension: RunnerExtension | undefined;

  constructor(pipe: Pipe, engine: Engine, mayTurn: boolean, extend: MakeExtension | undefined) {
    this.#pipe = pipe;
    this.#engine = engine;
    this.#mayTurn = mayTurn;
    this.#extension = extend?.({
      engine,
      callProgram: (index, write, read) => this.#callProgram(index, write, read),
      notify: (subject, write) => this.#notify(subject, write),
    });
  }

  /** Serves requests until the program closes the pipe. */
  async serve(): Promise<void> {
    for (let turn = now();;) {
      const message = this.#pipe.read()!;
      if (message.kind === KIND.RUN) await this.#run(message);
      else if (message.kind === KIND.EXTENDED) await this.#serveExtended(message);
      else this.#handle(message);
      if (!this.#mayTurn || now() - turn < TURN_MS) continue;
      await new Promise<void>((resolve) => inNextTurn(resolve));
      turn = now();
    }
  }

  #handle(message: Message): void {
    const { kind, id } = message;
    if (kind === KIND.RETURNED || kind === KIND.THREW) {
      if (this.#awaited.has(id)) this.#awaited.set(id, message);
      return;
    }
    this.#requests.push(id);
    try {
      this.#begin();
      this.#serveRequest(message);
      this.#send(KIND.DONE, id);
    } catch (error) {
      if (error instanceof PipeClosed) throw error;
      this.#fail(id, error);
    } finally {
      this.#requests.pop();
    }
  }

  /** Serves a request of a package on top of the engine, which may wait for promises. */
  async #serveExtended(message: Message): Promise<void> {
    const { id } = message;
    this.#requests.push(id);
    try {
      const answer = this.#extended(message, false);
      const write = answer instanceof Promise ? await this.#during(answer) : answer;
      this.#begin();
      write(this.#writer);
      this.#send(KIND.DONE, id);
    } catch (error) {
      if (error instanceof PipeClosed) throw error;
      this.#fail(id, error);
    } finally {
      this.#requests.splice(this.#requests.lastIndexOf(id), 1);
    }
  }

  /**
   * Waits for a promise, and serves requests meanwhile: it may depend on them. Turns of the event loop add no
   * descriptors, so a confined process of Node can make them (see serveRunner).
   */
  async #during<T>(promise: Promise<T>): Promise<T> {
    let isOver = false;
    const end = () => isOver = true;
    promise.then(end, end);
    for (let turns = 0; !isOver; turns++) {
      await new Promise<void>((resolve) => inNextTurn(resolve));
      if (isOver) break;
      const message = this.#pipe.read(now() + (turns < BUSY_TURNS ? 0 : IDLE_MS));
      if (message === undefined) continue;
      turns = 0;
      if (message.kind === KIND.EXTENDED) void this.#serveExtended(message).catch(() => {}); // the pipe is closed: the next read says so
      else this.#handle(message);
    }
    return await promise;
  }

  #extended({ id, subject, payload }: Message, isNested: boolean): WriteAnswer | Promise<WriteAnswer> {
    if (this.#extension === undefined) throw new Error("The runner has no package on top of the engine");
    return this.#extension.serve({ operation: subject, id, reader: new PayloadReader(payload), isNested });
  }

  /** Sends a notice. */
  #notify(subject: number, write: (writer: PayloadWriter) => void): void {
    const writer = new PayloadWriter().begin(HEADER_BYTES);
    write(writer);
    const { written, view } = writer;
    writeHeader(view, KIND.NOTICE, 0, subject, written.length - HEADER_BYTES);
    this.#pipe.write(written);
  }

  #fail(id: number, error: unknown): void {
    const json = new TextEncoder().encode(describeFailure(error));
    this.#begin();
    this.#writer.raw(json);
    this.#send(KIND.FAILED, id);
  }

  #serveRequest(message: Message): void {
    const { kind, subject, payload } = message;
    switch (kind) {
      case KIND.CALL:
        return this.#call(message);
      case KIND.COMPILE:
        return this.#compile(subject, payload);
      case KIND.INSTANTIATE:
        return this.#instantiate(subject, payload);
      case KIND.READ:
        return this.#read(subject, payload);
      case KIND.WRITE:
        return this.#write(subject, payload);
      case KIND.RESET:
        return this.#instance(subject).reset();
      case KIND.CLOSE:
        this.#instance(subject).close();
        this.#instances.delete(subject);
        this.#exports.delete(subject);
        return;
      case KIND.FORGET:
        this.#modules.delete(subject);
        return;
      case KIND.EXTENDED: {
        const write = this.#extended(message, true);
        if (write instanceof Promise) throw new Error("The request cannot wait while a call waits for a host function");
        this.#begin();
        write(this.#writer);
        return;
      }
      case KIND.RUN:
        throw new Error("A program cannot be run while a call waits for a host function: use another runner");
      default:
        throw new Error(`The runner has no request of kind ${kind}`);
    }
  }

  #compile(id: number, payload: Uint8Array): void {
    const isText = payload[0] === 1;
    const bytes = payload.subarray(1);
    const source = isText ? new TextDecoder().decode(bytes) : bytes;
    const module = this.#engine.compile(source);
    this.#modules.set(id, { module, source });
    this.#writer.text(JSON.stringify({ imports: module.imports, exports: module.exports }));
  }

  #module(id: number): HeldModule {
    const held = this.#modules.get(id);
    if (held === undefined) throw new Error("The module has been closed");
    return held;
  }

  #instance(id: number): Instance {
    const instance = this.#instances.get(id);
    if (instance === undefined) throw new Error("The instance has been closed");
    return instance;
  }

  /** The number of the instance is that of its request. */
  #instantiate(moduleId: number, payload: Uint8Array): void {
    const reader = new PayloadReader(payload);
    const { context, functions, values } = JSON.parse(reader.text()) as InstantiateOptions;
    const given = reader.values();
    const imports: Record<string, Record<string, unknown>> = Object.create(null);
    const put = (module: string, name: string, value: unknown) => {
      (imports[module] ??= Object.create(null) as Record<string, unknown>)[name] = value;
    };
    for (const { module, name, index } of functions) {
      put(module, name, (...args: unknown[]) => this.#callFunction(index, args));
    }
    values.forEach(({ module, name }, k) => put(module, name, given[k]));
    const { module } = this.#module(moduleId);
    const id = this.#requests.at(-1)!;
    this.#instances.set(id, module.instantiate(enforceable(context, this.#engine), imports));
    this.#exports.set(id, module.exports.map(({ name }) => name));
    this.#begin();
  }

  #call({ subject, payload }: Message): void {
    const instance = this.#instance(subject);
    const reader = new PayloadReader(payload);
    const name = this.#exports.get(subject)![reader.u32()];
    const context = readLimits(reader, this.#engine);
    const args = reader.values();
    let result: unknown;
    try {
      result = instance.call(context, name, ...args);
      this.#begin();
      writeFuel(this.#writer, context);
      this.#writer.values(valuesOf(result), "The result of the call");
    } catch (error) {
      throw context.fuel === undefined ? error : new FuelledError(error, BigInt(context.fuel));
    }
  }

  #memory(id: number, reader: PayloadReader): { memory: Memory; at: number } {
    const name = reader.text();
    const memory = this.#instance(id).exports[name];
    if (!(memory instanceof Memory)) throw new TypeError(`The instance exports no memory "${name}"`);
    return { memory, at: reader.f64() };
  }

  #range(memory: Memory, at: number, length: number): Uint8Array {
    const { buffer } = memory;
    if (at + length > buffer.byteLength) {
      throw new RangeError(`The memory has ${buffer.byteLength} bytes, too few for ${length} bytes at ${at}`);
    }
    return new Uint8Array(buffer, at, length);
  }

  #read(id: number, payload: Uint8Array): void {
    const reader = new PayloadReader(payload);
    const { memory, at } = this.#memory(id, reader);
    this.#writer.raw(this.#range(memory, at, reader.f64()));
  }

  #write(id: number, payload: Uint8Array): void {
    const reader = new PayloadReader(payload);
    const { memory, at } = this.#memory(id, reader);
    const bytes = reader.rest();
    this.#range(memory, at, bytes.length).set(bytes);
  }

  /** Calls a host function with values of WebAssembly. */
  #callFunction(index: number, args: readonly unknown[]): unknown {
    return this.#callProgram(
      index,
      (writer) => void writer.values(args, "The arguments of a host function"),
      (reader) => resultOf(reader.values()),
    );
  }

  /** Calls a host function of the program and serves requests until its answer comes. */
  #callProgram<T>(index: number, write: (writer: PayloadWriter) => void, read: (reader: PayloadReader) => T): T {
    const request = this.#requests.at(-1);
    // A task of a component that goes on after its call.
    if (request === undefined) throw new Error("The program can be called only while it waits for the runner");
    const id = this.#nextId;
    this.#nextId = this.#nextId % 0xffffffff + 1;
    this.#begin();
    write(this.#writer.u32(request));
    this.#send(KIND.HOST, id, index);
    this.#awaited.set(id, undefined);
    try {
      for (;;) {
        const answer = this.#awaited.get(id);
        if (answer !== undefined) {
          if (answer.kind === KIND.THREW) throw new HostFunctionError(id);
          return read(new PayloadReader(answer.payload));
        }
        const message = this.#pipe.read(callDeadline());
        if (message !== undefined) this.#handle(message);
        else if (callIsOver()) throw interruptedCall();
      }
    } finally {
      this.#awaited.delete(id);
    }
  }

  async #run(message: Message): Promise<void> {
    const { id, subject, payload } = message;
    try {
      const { source } = this.#module(subject);
      const result = await runProgram(source, readProgramOptions(payload));
      this.#begin();
      writeProgramResult(this.#writer, result);
      this.#send(KIND.DONE, id);
    } catch (error) {
      if (error instanceof PipeClosed) throw error;
      this.#fail(id, error);
    }
  }

  #begin(): void {
    this.#writer.begin(HEADER_BYTES);
  }

  /** Sends the payload that has been written. */
  #send(kind: MessageKind, id: number, subject = 0): void {
    const { written } = this.#writer;
    writeHeader(this.#writer.view, kind, id, subject, written.length - HEADER_BYTES);
    this.#pipe.write(written);
  }
}

/** Packages on top of the engine that a runner serves, by name; only the one that the program uses is loaded. */
export type RunnerExtensions = Readonly<Record<string, () => Promise<LoadedExtension>>>;

/**
 * Serves one program through standard input and output; returns when it closes them. Rejects with an Error for a
 * program of another version, for a package that `extensions` lack, and if the system lacks the confinement that the
 * program requires.
 */
export async function serveRunner(extensions: RunnerExtensions = {}): Promise<void> {
  const host = currentHost();
  const first = new Pipe(host, MAX_SETUP_BYTES);
  try {
    const { kind, payload } = first.read()!;
    const setup = jsonOf(payload) as Setup;
    if (kind !== KIND.SETUP || setup.version !== PROTOCOL_VERSION) {
      throw new Error("The program uses another version of waft than its runner");
    }
    const extend = await loadExtension(extensions, setup.extension);
    const engine = NewEngine(setup.engine);
    const pipe = new Pipe(host, setup.maxMessageBytes);
    let measures: Measure[] = [];
    if (setup.confinement !== "none") {
      refuseWorkers(); // their event loops would make calls that the filter refuses
      await warmUp(setup.engine);
      await extend?.warmUp(NewEngine(setup.engine));
      measures = confine(host, setup.maxBytes);
      if (setup.confinement === "required" && !measures.includes("system-calls")) {
        throw new Error(
          `The runner cannot be confined on ${host.system.title}: its confinement must not be "required"`,
        );
      }
    }
    const ready: Ready = { version: PROTOCOL_VERSION, measures };
    const json = new TextEncoder().encode(JSON.stringify(ready));
    const message = new Uint8Array(HEADER_BYTES + json.length);
    writeHeader(new DataView(message.buffer), KIND.READY, 0, 0, json.length);
    message.set(json, HEADER_BYTES);
    first.write(message);
    // Node's event loop passes its descriptors to the system by io_uring, which would evade the filter.
    const mayTurn = host.name !== "node" || !measures.includes("system-calls");
    await new Service(pipe, engine, mayTurn, extend?.make).serve();
  } catch (error) {
    if (!(error instanceof PipeClosed)) throw error;
  }
}

async function loadExtension(extensions: RunnerExtensions, name: string | undefined) {
  if (name === undefined) return undefined;
  if (!Object.hasOwn(extensions, name)) {
    throw new Error(`The runner's command does not serve ${name}: it must be "waft runner", or the one of the package`);
  }
  return await extensions[name]();
}
