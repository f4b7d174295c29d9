/**
 * The API of runners: the engine's, with promises. In: options, modules, host functions. Out: results. Invariant: this
 * file loads no part of the engine; the runner's process has it.
 */
import {
  bytesIn,
  inWords,
  isRecord,
  requireKnownNames,
  requireRecord,
  requireTexts,
  wholeNumber,
} from "../base/arguments.ts";
import { confinableCommand } from "../host/child_process.ts";
import { SUFFIX } from "../host/late_module.ts";
import type { Measure } from "../host/confinement.ts";
import type { Context, EngineOptions, ExportDescriptor, ImportDescriptor } from "../api/engine.ts";
import type { Contents } from "../wasi/memory_streams.ts";
import type { ProgramLimits, ProgramResult } from "../wasi/prepare_program.ts";
import { LinkError, TrapError } from "../base/errors.ts";
import { Connection, GRACE_MS, type HostFunction } from "./connection.ts";
import { readFailure, RunnerError } from "./failures.ts";
import { KIND, PROTOCOL_VERSION, ProtocolError } from "./protocol.ts";
import { CALL_FLAG, type InstantiateOptions, type Ready, type Setup } from "./service_types.ts";
import { jsonOf, PayloadReader, resultOf } from "./values.ts";

/** The options of the engine in a runner: those that name neither files nor functions of the program. */
export type RunnerEngineOptions = Omit<EngineOptions, "cache" | "explain" | "perfMap" | "parallel">;

/** The options of a runner. */
export interface RunnerOptions {
  /** The options of its engine. `interruptible` is true unless given. */
  engine?: RunnerEngineOptions;
  /**
   * The confinement by the operating system. `auto`: all that the system offers (docs/security.md). `required`: the
   * start fails unless the system filters system calls, which Linux does. `none`: only a process of its own. Default:
   * `auto`.
   */
  confinement?: "auto" | "required" | "none";
  /**
   * The maximum of memory in bytes that the process may get beyond what it has when it is ready: code, memories of
   * guests, and the JavaScript runtime's heap. At the limit, memories fail to grow, or the runner ends. Enforced on
   * Linux, if confined. Default: no limit.
   */
  maxBytes?: number;
  /** The maximum number of bytes of one message in either direction: arguments, results, parts. Default: 64 MiB. */
  maxMessageBytes?: number;
  /**
   * The command that starts a runner, `["waft", "runner"]` for example. Default: the executable that runs this program,
   * with the runner's file of this package.
   */
  command?: readonly string[];
  /** The milliseconds after which a runner that has not answered is ended at its start. Default: 60,000. */
  startDeadline?: number;
}

/** Imports of an instance in a runner: host functions, and numbers and bigints for immutable globals. */
export type RunnerImports = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** The context of a call in a runner. */
export type RunnerContext = Pick<Context, "deadline" | "processorTime" | "fuel">;

/** The context of an instantiation in a runner. */
export type RunnerInstantiation = Pick<Context, "deadline" | "processorTime" | "limits" | "resettable">;

/** The inputs of a program of WASI in a runner. */
export interface RunnerProgram {
  /** The arguments after the program's name. */
  args?: readonly string[];
  /** The program's name, its argument 0. Default: `program`. */
  name?: string;
  /** Environment variables by name. */
  env?: Readonly<Record<string, string>>;
  /** Standard input. */
  stdin?: Contents;
  /** Files in memory by their paths, which the program sees below `/`. */
  files?: Readonly<Record<string, Contents>>;
  /** Limits of the run. */
  limits?: Omit<ProgramLimits, "signal">;
}

const OPTION_NAMES: Readonly<Record<keyof RunnerOptions, true>> = {
  engine: true,
  confinement: true,
  maxBytes: true,
  maxMessageBytes: true,
  command: true,
  startDeadline: true,
};

const CONTEXT_NAMES: Readonly<Record<keyof RunnerContext, true>> = { deadline: true, processorTime: true, fuel: true };

const INSTANTIATION_NAMES: Readonly<Record<keyof RunnerInstantiation, true>> = {
  deadline: true,
  processorTime: true,
  limits: true,
  resettable: true,
};

const PROGRAM_NAMES: Readonly<Record<keyof RunnerProgram, true>> = {
  args: true,
  name: true,
  env: true,
  stdin: true,
  files: true,
  limits: true,
};

const HERE_ONLY: readonly string[] = ["cache", "explain", "perfMap", "parallel"];
const MAX_MESSAGE_BYTES = 1 << 26;
const START_MS = 60_000;
/** Bytes of a memory that one message carries. */
const PIECE_BYTES = 1 << 20;
/** Pieces that are on their way at once. */
const PIECES = 4;

const ENCODER = new TextEncoder();

/** The milliseconds until a deadline, at least 0. Throws TypeError and RangeError. */
function millisecondsOf(deadline: number | Date | undefined): number | undefined {
  if (deadline === undefined) return undefined;
  if (typeof deadline !== "number" && !(deadline instanceof Date)) {
    throw new TypeError(`The context's deadline must be milliseconds or a Date, not ${inWords(deadline)}`);
  }
  const delay = typeof deadline === "number" ? deadline : deadline.getTime() - Date.now();
  if (Number.isNaN(delay)) throw new RangeError("The context's deadline must be milliseconds or a valid Date");
  return Math.max(0, delay);
}

/** The time in which a request must be answered; undefined for any time. */
function within(milliseconds: number | undefined): number | undefined {
  return milliseconds === undefined || milliseconds === Infinity ? undefined : milliseconds + GRACE_MS;
}

/** Reads an answer, and ends a runner whose answer is not one. */
function reading<T>(connection: Connection, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    const reason = new RunnerError(`The runner was ended: it sent ${error.message}`);
    connection.kill(reason);
    throw reason;
  }
}

/**
 * An engine in a process of its own. Requests run one after the other; those that a host function makes while the guest
 * waits for it run at once.
 */
export class Runner {
  readonly #connection: Connection;
  readonly #measures: readonly Measure[];
  #nextModule = 1;

  private constructor(connection: Connection, measures: readonly Measure[]) {
    this.#connection = connection;
    this.#measures = measures;
  }

  /**
   * Starts a runner. Rejects with TypeError and RangeError for options that are refused, and with RunnerError if the
   * process cannot be started, or is of another version.
   */
  static async start(options: RunnerOptions = {}): Promise<Runner> {
    requireRecord(options, "The options of a runner");
    requireKnownNames("option of a runner", options, OPTION_NAMES);
    const { engine = {}, confinement = "auto", command = defaultCommand() } = options;
    requireRecord(engine, "The option engine");
    for (const name of HERE_ONLY) {
      if (name in engine) throw new TypeError(`A runner's engine cannot have the option ${name}`);
    }
    if (confinement !== "auto" && confinement !== "required" && confinement !== "none") {
      throw new TypeError(`The option confinement is "auto", "required" or "none", not ${inWords(confinement)}`);
    }
    requireTexts(command, "The option command");
    if (command.length === 0) throw new TypeError("The option command must name an executable");
    const maxMessageBytes = wholeNumber(
      options.maxMessageBytes ?? MAX_MESSAGE_BYTES,
      "The option maxMessageBytes",
      2 ** 31,
    );
    const maxBytes = options.maxBytes === undefined
      ? {}
      : { maxBytes: wholeNumber(options.maxBytes, "The option maxBytes") };
    const startDeadline = wholeNumber(options.startDeadline ?? START_MS, "The option startDeadline", 2 ** 31 - 1);
    const connection = new Connection(command, Math.max(maxMessageBytes, 2 * PIECE_BYTES));
    const setup: Setup = {
      version: PROTOCOL_VERSION,
      engine: { interruptible: true, ...engine },
      confinement,
      maxMessageBytes: connection.maxBytes,
      ...maxBytes,
    };
    const answer = await connection.start(setup, startDeadline);
    const measures = reading(connection, () => measuresOf(jsonOf(answer)));
    return new Runner(connection, measures);
  }

  /** The measures by which the operating system confines the process. */
  get measures(): readonly Measure[] {
    return this.#measures;
  }

  /** The number of the process. */
  get processId(): number | undefined {
    return this.#connection.processId;
  }

  /** Whether it can be used: it has neither ended nor been closed. */
  get isOpen(): boolean {
    return this.#connection.failure === undefined;
  }

  /** Compiles a module, given as bytes or as text. Rejects with the errors of `Engine.compile`. */
  async compile(source: Uint8Array | ArrayBuffer | string): Promise<RunnerModule> {
    const isText = typeof source === "string";
    const bytes = isText ? ENCODER.encode(source) : bytesIn(source, "A module");
    const id = this.#nextModule++;
    const connection = this.#connection;
    const answer = await connection.request(KIND.COMPILE, id, (writer) => void writer.u8(isText ? 1 : 0).raw(bytes));
    const { imports, exports } = reading(connection, () => interfaceOf(jsonOf(new PayloadReader(answer).bytes())));
    return new RunnerModule(connection, id, imports, exports);
  }

  /** Ends the process at once, whatever it does. Requests in progress reject with a RunnerError. */
  async close(): Promise<void> {
    this.#connection.kill(new RunnerError("The runner has been closed"));
    await this.#connection.ended;
  }
}

/** The command of a runner of this package. */
function defaultCommand(): readonly string[] {
  return confinableCommand(new URL(`./program.${SUFFIX}`, import.meta.url));
}

function measuresOf(json: unknown): readonly Measure[] {
  const { version, measures } = (isRecord(json) ? json : {}) as Partial<Ready>;
  if (version !== PROTOCOL_VERSION || !Array.isArray(measures)) {
    throw new ProtocolError("an answer to the first message of another version");
  }
  return measures.map(String) as Measure[];
}

function interfaceOf(json: unknown): { imports: ImportDescriptor[]; exports: ExportDescriptor[] } {
  const { imports, exports } = (isRecord(json) ? json : {}) as Record<string, unknown>;
  const isList = (list: unknown) =>
    Array.isArray(list) &&
    list.every((entry) => isRecord(entry) && typeof (entry as { name?: unknown }).name === "string");
  if (!isList(imports) || !isList(exports)) {
    throw new ProtocolError("an interface of a module without imports or exports");
  }
  return { imports, exports } as { imports: ImportDescriptor[]; exports: ExportDescriptor[] };
}

/** A compiled module in a runner. */
export class RunnerModule {
  readonly #connection: Connection;
  readonly #id: number;
  /** Its imports. */
  readonly imports: readonly ImportDescriptor[];
  /** Its exports. */
  readonly exports: readonly ExportDescriptor[];

  /** @internal */
  constructor(
    connection: Connection,
    id: number,
    imports: readonly ImportDescriptor[],
    exports: readonly ExportDescriptor[],
  ) {
    this.#connection = connection;
    this.#id = id;
    this.imports = imports;
    this.exports = exports;
  }

  /**
   * Makes an instance and runs its start function. Host functions run in this program; they may return promises, for
   * which the guest waits. Rejects with the errors of `Module.instantiate`, and with TypeError for imports that cannot
   * leave the program: memories, tables, globals and tags.
   */
  async instantiate(context: RunnerInstantiation = {}, imports: RunnerImports = {}): Promise<RunnerInstance> {
    requireRecord(context, "The context");
    requireKnownNames("context field", context, INSTANTIATION_NAMES);
    const deadline = millisecondsOf(context.deadline);
    const functions: { module: string; name: string; index: number }[] = [];
    const values: { module: string; name: string }[] = [];
    const given: unknown[] = [];
    const connection = this.#connection;
    const release = () => functions.forEach(({ index }) => connection.removeFunction(index));
    try {
      for (const { module, name, kind } of this.imports) {
        const value = imports[module]?.[name];
        if (typeof value === "function") {
          functions.push({ module, name, index: connection.addFunction(value as HostFunction) });
        } else if (kind === "global" && (typeof value === "number" || typeof value === "bigint")) {
          values.push({ module, name });
          given.push(value);
        } else if (value === undefined) {
          throw new LinkError(`The import "${module}" "${name}" is missing`);
        } else {
          throw new TypeError(
            `The import "${module}" "${name}" cannot leave the program: it must be a function or a number`,
          );
        }
      }
      const options: InstantiateOptions = {
        context: { ...context, ...(deadline === undefined ? {} : { deadline }) },
        functions,
        values,
      };
      const id = connection.newId();
      const write = (writer: import("./values.ts").PayloadWriter) =>
        void writer.text(JSON.stringify(options)).values(given, "The imports");
      await connection.request(KIND.INSTANTIATE, this.#id, write, { within: within(deadline) }, id);
      const names = new Map(this.exports.map(({ name }, k) => [name, k]));
      return new RunnerInstance(connection, id, names, release);
    } catch (error) {
      release();
      throw error;
    }
  }

  /**
   * Runs the module as a program of WASI with files and streams in memory, as `runProgram` of
   * `@waft/engine/wasi/program` does. It reaches nothing of the host but clocks and random bytes.
   */
  async run(program: RunnerProgram = {}): Promise<ProgramResult> {
    requireRecord(program, "The options of a program");
    requireKnownNames("option of a program", program, PROGRAM_NAMES);
    const { stdin = "", files = {}, limits = {}, ...rest } = program;
    const { fuel, ...others } = limits;
    const deadline = millisecondsOf(limits.deadline);
    const paths = Object.keys(files);
    const json = JSON.stringify({
      ...rest,
      paths,
      limits: { ...others, ...(deadline === undefined ? {} : { deadline }) },
      ...(fuel === undefined ? {} : { fuel: String(fuel) }),
    });
    const connection = this.#connection;
    const answer = await connection.request(
      KIND.RUN,
      this.#id,
      (writer) => {
        writer.text(json).bytes(contentsOf(stdin, "The option stdin"));
        for (const path of paths) writer.bytes(contentsOf(files[path], `The file "${path}"`));
      },
      { within: within(deadline) },
    );
    return reading(connection, () => programResultOf(answer));
  }

  /** Forgets the module; its instances stay. */
  async close(): Promise<void> {
    await this.#connection.request(KIND.FORGET, this.#id, () => {});
  }
}

function contentsOf(contents: Contents, what: string): Uint8Array {
  return typeof contents === "string" ? ENCODER.encode(contents) : bytesIn(contents, what);
}

function programResultOf(payload: Uint8Array): ProgramResult {
  const reader = new PayloadReader(payload);
  const json = jsonOf(reader.bytes());
  const { status, paths, trap } = (isRecord(json) ? json : {}) as Record<string, unknown>;
  if (typeof status !== "number" || !Array.isArray(paths)) throw new ProtocolError("a result without a status");
  const stdoutBytes = reader.bytes();
  const stderrBytes = reader.bytes();
  const files: Record<string, Uint8Array> = Object.create(null);
  for (const path of paths) files[String(path)] = reader.bytes();
  reader.end();
  const error = typeof trap === "string" ? readFailure(ENCODER.encode(trap)).error : undefined;
  return {
    status,
    stdout: new TextDecoder().decode(stdoutBytes),
    stderr: new TextDecoder().decode(stderrBytes),
    stdoutBytes,
    stderrBytes,
    files,
    ...(TrapError.is(error) ? { trap: error } : {}),
  };
}

/** An instance in a runner. */
export class RunnerInstance {
  readonly #connection: Connection;
  readonly #id: number;
  readonly #names: ReadonlyMap<string, number>;
  readonly #release: () => void;

  /** @internal */
  constructor(connection: Connection, id: number, names: ReadonlyMap<string, number>, release: () => void) {
    this.#connection = connection;
    this.#id = id;
    this.#names = names;
    this.#release = release;
  }

  /**
   * Calls the exported function `name` under the limits of `context`, as `Instance.call` does; resolves with
   * undefined, a value, or an array of several. Values are numbers, bigints, strings, booleans, null and bytes.
   *
   * Where the runner itself does not end the call a second after its deadline, it is ended, and all of its requests
   * reject with a RunnerError. A host function that runs at the deadline is not interrupted, but its result is not
   * used.
   */
  async call<Result = unknown>(context: RunnerContext, name: string, ...args: unknown[]): Promise<Result> {
    requireRecord(context, "The first argument");
    requireKnownNames("context field", context, CONTEXT_NAMES);
    const index = this.#names.get(name);
    if (index === undefined) throw new TypeError(`Unknown export ${inWords(name)}`);
    const { processorTime, fuel } = context;
    const deadline = millisecondsOf(context.deadline);
    const connection = this.#connection;
    const setFuel = (left: bigint) => {
      context.fuel = typeof fuel === "number" ? Number(left) : left;
    };
    const flags = (deadline === undefined ? 0 : CALL_FLAG.DEADLINE) |
      (processorTime === undefined ? 0 : CALL_FLAG.PROCESSOR_TIME) | (fuel === undefined ? 0 : CALL_FLAG.FUEL);
    const answer = await connection.request(KIND.CALL, this.#id, (writer) => {
      writer.u32(index).u8(flags);
      if (deadline !== undefined) writer.f64(deadline);
      if (processorTime !== undefined) writer.f64(processorTime);
      if (fuel !== undefined) writer.i64(BigInt(fuel));
      writer.values(args, "The arguments of the call");
    }, { within: within(deadline), onFuel: setFuel });
    return reading(connection, () => {
      const reader = new PayloadReader(answer);
      const left = reader.i64();
      if (fuel !== undefined) setFuel(left);
      const result = resultOf(reader.values());
      reader.end();
      return result as Result;
    });
  }

  /** Copies `length` bytes at `offset` of the exported memory `name`. Rejects with RangeError beyond its end. */
  async read(offset: number, length: number, name = "memory"): Promise<Uint8Array<ArrayBuffer>> {
    wholeNumber(offset, "The offset");
    const bytes = new Uint8Array(wholeNumber(length, "The length"));
    const connection = this.#connection;
    await this.#inPieces(length, async (at, count) => {
      const piece = await connection.request(
        KIND.READ,
        this.#id,
        (writer) => void writer.text(name).f64(offset + at).f64(count),
      );
      reading(connection, () => {
        if (piece.length !== count) throw new ProtocolError(`${piece.length} bytes of a memory in place of ${count}`);
      });
      bytes.set(piece, at);
    });
    return bytes;
  }

  /** Copies bytes to `offset` of the exported memory `name`. Rejects with RangeError beyond its end. */
  async write(offset: number, bytes: Uint8Array, name = "memory"): Promise<void> {
    wholeNumber(offset, "The offset");
    const given = bytesIn(bytes, "The bytes");
    await this.#inPieces(given.length, async (at, count) => {
      await this.#connection.request(
        KIND.WRITE,
        this.#id,
        (writer) => void writer.text(name).f64(offset + at).raw(given.subarray(at, at + count)),
      );
    });
  }

  /** Moves `length` bytes in pieces, some of which are on their way at once. */
  async #inPieces(length: number, move: (at: number, count: number) => Promise<void>): Promise<void> {
    let next = 0;
    const moveOn = async () => {
      while (next < length) {
        const at = next;
        next = Math.min(length, at + PIECE_BYTES);
        await move(at, next - at);
      }
    };
    if (length === 0) await move(0, 0);
    await Promise.all(Array.from({ length: PIECES }, moveOn));
  }

  /** Resets the instance to its state after instantiation, as `Instance.reset` does. */
  async reset(): Promise<void> {
    await this.#connection.request(KIND.RESET, this.#id, () => {});
  }

  /** Closes the instance, and releases its memory. */
  async close(): Promise<void> {
    await this.#connection.request(KIND.CLOSE, this.#id, () => {});
    this.#release();
  }
}
