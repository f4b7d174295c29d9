/**
 * The engine's side of a runner: compiles, instantiates and calls on behalf of the program at the other end of the
 * pipe. In: requests. Out: answers, and calls of the program's host functions. Invariant: requests run one after the
 * other; those that come while a host function is awaited run inside of it, as calls of a host function do in one
 * process.
 */
import { inNextTurn, now } from "../host/clocks.ts";
import { confine, type Measure } from "../host/confinement.ts";
import { currentHost } from "../host/current.ts";
import { type Context, type Engine, type Instance, Memory, type Module, NewEngine } from "../api/engine.ts";
import { callDeadline, callIsOver, interruptedCall } from "../runtime/host_limits.ts";
import { refuseWorkers } from "../host/workers.ts";
import type { ProgramOptions, ProgramResult } from "../wasi/prepare_program.ts";
import { runProgram } from "./run_program.ts";
import { describeFailure, HostFunctionError } from "./failures.ts";
import { Pipe, PipeClosed } from "./pipe.ts";
import { HEADER_BYTES, KIND, type Message, type MessageKind, PROTOCOL_VERSION, writeHeader } from "./protocol.ts";
import { jsonOf, PayloadReader, PayloadWriter, resultOf, valuesOf } from "./values.ts";
import { CALL_FLAG, type InstantiateOptions, type Ready, type Setup } from "./service_types.ts";
import { warmUp } from "./warm_up.ts";

/** The largest first message. */
const MAX_SETUP_BYTES = 1 << 20;
/** The time in milliseconds after which the event loop gets a turn between two requests. */
const TURN_MS = 50;

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

  constructor(pipe: Pipe, engine: Engine, mayTurn: boolean) {
    this.#pipe = pipe;
    this.#engine = engine;
    this.#mayTurn = mayTurn;
  }

  /** Serves requests until the program closes the pipe. */
  async serve(): Promise<void> {
    for (let turn = now();;) {
      const message = this.#pipe.read()!;
      if (message.kind === KIND.RUN) await this.#run(message);
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
    let context: Context | undefined;
    try {
      this.#begin();
      if (kind === KIND.CALL) context = this.#call(message);
      else this.#serveRequest(message);
      this.#send(KIND.DONE, id);
    } catch (error) {
      if (error instanceof PipeClosed) throw error;
      this.#fail(id, error, context);
    } finally {
      this.#requests.pop();
    }
  }

  #fail(id: number, error: unknown, context?: Context): void {
    const fuel = context?.fuel ?? (error instanceof FuelledError ? error.fuel : undefined);
    const reason = error instanceof FuelledError ? error.reason : error;
    const json = new TextEncoder().encode(describeFailure(reason, fuel?.toString()));
    this.#begin();
    this.#writer.raw(json);
    this.#send(KIND.FAILED, id);
  }

  #serveRequest({ kind, subject, payload }: Message): void {
    switch (kind) {
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
      put(module, name, (...args: unknown[]) => this.#callProgram(index, args));
    }
    values.forEach(({ module, name }, k) => put(module, name, given[k]));
    const { module } = this.#module(moduleId);
    const id = this.#requests.at(-1)!;
    this.#instances.set(id, module.instantiate(context, imports));
    this.#exports.set(id, module.exports.map(({ name }) => name));
    this.#begin();
  }

  #call({ subject, payload }: Message): Context | undefined {
    const instance = this.#instance(subject);
    const reader = new PayloadReader(payload);
    const name = this.#exports.get(subject)![reader.u32()];
    const flags = reader.u8();
    const context: Context = {};
    if (flags !== 0) {
      if ((flags & CALL_FLAG.DEADLINE) !== 0) context.deadline = reader.f64();
      if ((flags & CALL_FLAG.PROCESSOR_TIME) !== 0) context.processorTime = reader.f64();
      if ((flags & CALL_FLAG.FUEL) !== 0) context.fuel = reader.i64();
    }
    const args = reader.values();
    let result: unknown;
    try {
      result = instance.call(context, name, ...args);
    } catch (error) {
      throw context.fuel === undefined ? error : new FuelledError(error, BigInt(context.fuel));
    }
    this.#begin();
    this.#writer.i64(BigInt(context.fuel ?? 0)).values(valuesOf(result), "The result of the call");
    return context;
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

  /** Calls a host function of the program and serves requests until its answer comes. */
  #callProgram(index: number, args: readonly unknown[]): unknown {
    const id = this.#nextId;
    this.#nextId = this.#nextId % 0xffffffff + 1;
    this.#begin();
    this.#writer.u32(this.#requests.at(-1) ?? 0).values(args, "The arguments of a host function");
    this.#send(KIND.HOST, id, index);
    this.#awaited.set(id, undefined);
    try {
      for (;;) {
        const answer = this.#awaited.get(id);
        if (answer !== undefined) return this.#answerOf(answer);
        const message = this.#pipe.read(callDeadline());
        if (message !== undefined) this.#handle(message);
        else if (callIsOver()) throw interruptedCall();
      }
    } finally {
      this.#awaited.delete(id);
    }
  }

  #answerOf({ kind, id, payload }: Message): unknown {
    if (kind === KIND.THREW) throw new HostFunctionError(id);
    return resultOf(new PayloadReader(payload).values());
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

/** The error of a call, with the fuel that it left. */
class FuelledError extends Error {
  readonly reason: unknown;
  readonly fuel: bigint;

  constructor(reason: unknown, fuel: bigint) {
    super();
    this.reason = reason;
    this.fuel = fuel;
  }
}

function readProgramOptions(payload: Uint8Array): ProgramOptions {
  const reader = new PayloadReader(payload);
  const { paths, fuel, ...options } = jsonOf(reader.bytes()) as ProgramOptions & { paths: string[]; fuel?: string };
  const stdin = reader.bytes();
  const files: Record<string, Uint8Array> = Object.create(null);
  for (const path of paths) files[path] = reader.bytes();
  const limits = fuel === undefined ? options.limits : { ...options.limits, fuel: BigInt(fuel) };
  return { ...options, ...(limits === undefined ? {} : { limits }), stdin, files };
}

function writeProgramResult(writer: PayloadWriter, { status, stdoutBytes, stderrBytes, files, trap }: ProgramResult) {
  const paths = Object.keys(files);
  const failure = trap === undefined ? {} : { trap: describeFailure(trap) };
  writer.text(JSON.stringify({ status, paths, ...failure })).bytes(stdoutBytes).bytes(stderrBytes);
  for (const path of paths) writer.bytes(files[path]);
}

/**
 * Serves one program through standard input and output; returns when it closes them. Rejects with an Error for a
 * program of another version, and if the system lacks the confinement that it requires.
 */
export async function serveRunner(): Promise<void> {
  const host = currentHost();
  const first = new Pipe(host, MAX_SETUP_BYTES);
  try {
    const { kind, payload } = first.read()!;
    const setup = jsonOf(payload) as Setup;
    if (kind !== KIND.SETUP || setup.version !== PROTOCOL_VERSION) {
      throw new Error("The program uses another version of waft than its runner");
    }
    const engine = NewEngine(setup.engine);
    const pipe = new Pipe(host, setup.maxMessageBytes);
    let measures: Measure[] = [];
    if (setup.confinement !== "none") {
      refuseWorkers(); // their event loops would make calls that the filter refuses
      await warmUp(setup.engine);
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
    await new Service(pipe, engine, mayTurn).serve();
  } catch (error) {
    if (!(error instanceof PipeClosed)) throw error;
  }
}
