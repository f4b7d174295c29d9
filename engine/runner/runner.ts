/**
 * The API of runners: the engine's, with promises. In: options, modules, host functions. Out: results. Invariant: this
 * file loads no part of the engine; the runner's process has it.
 */
import { bytesIn, inWords, isRecord, requireKnownNames, requireRecord, wholeNumber } from "../base/arguments.ts";
import { SUFFIX } from "../host/late_module.ts";
import type { Measure } from "../host/confinement.ts";
import type { Context, ExportDescriptor, ImportDescriptor } from "../api/engine.ts";
import type { ProgramResult } from "../wasi/prepare_program.ts";
import { LinkError } from "../base/errors.ts";
import type { Connection, HostFunction } from "./connection.ts";
import { RunnerError } from "./failures.ts";
import { limitsOf, millisecondsOf, type RunnerContext, within } from "./limits.ts";
import { openRunner, type RunnerOptions } from "./open_runner.ts";
import { programRequest, readProgramResult, type RunnerProgram } from "./programs.ts";
import { KIND, ProtocolError } from "./protocol.ts";
import type { InstantiateOptions } from "./service_types.ts";
import { jsonOf, PayloadReader, resultOf } from "./values.ts";

/** Imports of an instance in a runner: host functions, and numbers and bigints for immutable globals. */
export type RunnerImports = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** The context of an instantiation in a runner. */
export type RunnerInstantiation = Pick<Context, "deadline" | "processorTime" | "limits" | "resettable">;

const INSTANTIATION_NAMES: Readonly<Record<keyof RunnerInstantiation, true>> = {
  deadline: true,
  processorTime: true,
  limits: true,
  resettable: true,
};

/** Bytes of a memory that one message carries. */
const PIECE_BYTES = 1 << 20;
/** Pieces that are on their way at once. */
const PIECES = 4;

const ENCODER = new TextEncoder();

/**
 * An engine in a process of its own. Requests run one after the other; those that a host function makes while the guest
 * waits for it run at once.
 */
export class Runner {
  readonly #connection: Connection;
  readonly #measures: readonly Measure[];
  #nextModule = 1;

  /** @internal */
  constructor(connection: Connection, measures: readonly Measure[]) {
    this.#connection = connection;
    this.#measures = measures;
  }

  /**
   * Starts a runner. Rejects with TypeError and RangeError for options that are refused, and with RunnerError if the
   * process cannot be started, or is of another version.
   */
  static async start(options: RunnerOptions = {}): Promise<Runner> {
    const { connection, measures } = await openRunner(options, new URL(`./program.${SUFFIX}`, import.meta.url));
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
    const { imports, exports } = connection.reading(() => interfaceOf(jsonOf(new PayloadReader(answer).bytes())));
    return new RunnerModule(connection, id, imports, exports);
  }

  /** Ends the process at once, whatever it does. Requests in progress reject with a RunnerError. */
  async close(): Promise<void> {
    this.#connection.kill(new RunnerError("The runner has been closed"));
    await this.#connection.ended;
  }
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
    const { within, write } = programRequest(program);
    const connection = this.#connection;
    const answer = await connection.request(KIND.RUN, this.#id, write, { within });
    return connection.reading(() => readProgramResult(answer));
  }

  /** Forgets the module; its instances stay. */
  async close(): Promise<void> {
    await this.#connection.request(KIND.FORGET, this.#id, () => {});
  }
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
    const limits = limitsOf(context);
    const index = this.#names.get(name);
    if (index === undefined) throw new TypeError(`Unknown export ${inWords(name)}`);
    const connection = this.#connection;
    const answer = await connection.request(KIND.CALL, this.#id, (writer) => {
      writer.u32(index);
      limits.write(writer);
      writer.values(args, "The arguments of the call");
    }, limits.options);
    return connection.reading(() => {
      const reader = new PayloadReader(answer);
      limits.read(reader);
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
      connection.reading(() => {
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
