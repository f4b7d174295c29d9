/**
 * Runners for components: the API of the engine's runners, and components in the same process. In: components, and
 * functions and classes of the program. Out: results. Invariant: the program decodes a component for its types and
 * never runs it; this file loads no compiler.
 */
import { requireKnownNames, requireRecord } from "@waft/engine/internal/base/arguments";
import { SUFFIX } from "@waft/engine/internal/host/late_module";
import type { Connection, HostFunction } from "@waft/engine/internal/runner/connection";
import { limitsOf, millisecondsOf, within } from "@waft/engine/internal/runner/limits";
import { openRunner } from "@waft/engine/internal/runner/open_runner";
import { programRequest, readProgramResult } from "@waft/engine/internal/runner/programs";
import { KIND } from "@waft/engine/internal/runner/protocol";
import { PayloadReader, type PayloadWriter } from "@waft/engine/internal/runner/values";
import {
  Runner as EngineRunner,
  type RunnerContext,
  type RunnerInstantiation,
  type RunnerOptions,
  type RunnerProgram,
} from "@waft/engine/runner";
import type { ProgramResult } from "@waft/engine/wasi/program";
import { camelCase } from "../abi/names.ts";
import { ComponentError, payloadOf } from "../abi/traps.ts";
import { binaryOf } from "../binary_of.ts";
import { type ComponentImports, lookUpName, member, rootFunction } from "../link/host_names.ts";
import type { FuncType } from "../model/types.ts";
import { type ComponentInterface, exportedFunction, exportedNames, interfaceOf } from "./interface.ts";
import { EXTENSION, type InstantiateOptions, OPERATION } from "./operations.ts";
import { ProgramHandles } from "./program_handles.ts";

/** The inputs of a component with WASI 0.2 or 0.3: files and streams in memory. */
export type RunnerWasi = Omit<RunnerProgram, "limits">;

/** The context of an instantiation of a component in a runner. */
export interface RunnerComponentContext extends RunnerInstantiation {
  /**
   * Gives the component WASI with these files and streams, which {@linkcode RunnerComponentInstance.output} reads. It
   * reaches nothing of the host but clocks and random bytes. Without it, WASI is up to the imports.
   */
  wasi?: RunnerWasi;
}

const CONTEXT_NAMES: Readonly<Record<keyof RunnerComponentContext, true>> = {
  deadline: true,
  processorTime: true,
  limits: true,
  resettable: true,
  wasi: true,
};

/** What a component with WASI has written. */
export type RunnerOutput = Pick<ProgramResult, "stdout" | "stderr" | "stdoutBytes" | "stderrBytes" | "files">;

/** An engine in a process of its own, for modules and components. */
export class Runner extends EngineRunner {
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection, measures: EngineRunner["measures"]) {
    super(connection, measures);
    this.#connection = connection;
  }

  /** Starts a runner, as `Runner.start` of `@waft/engine/runner` does. */
  static override async start(options: RunnerOptions = {}): Promise<Runner> {
    const program = new URL(`./program.${SUFFIX}`, import.meta.url);
    const { connection, measures } = await openRunner(options, program, EXTENSION);
    return new Runner(connection, measures);
  }

  /** Compiles a component, given as bytes or as text. Rejects with the errors of `compileComponent`. */
  async compileComponent(source: Uint8Array | ArrayBuffer | string): Promise<RunnerComponent> {
    const bytes = binaryOf(source);
    const types = interfaceOf(bytes);
    const connection = this.#connection;
    const id = connection.newId();
    await connection.request(KIND.EXTENDED, OPERATION.COMPILE, (writer) => void writer.raw(bytes), {}, id);
    return new RunnerComponent(connection, id, types);
  }
}

/** A compiled component in a runner. */
export class RunnerComponent {
  readonly #connection: Connection;
  readonly #id: number;
  readonly #types: ComponentInterface;
  /** The names of its imported functions: of an interface and the function's own. */
  readonly imports: readonly string[];
  /** The names of its exported functions, as `call` takes them. */
  readonly exports: readonly string[];

  /** @internal */
  constructor(connection: Connection, id: number, types: ComponentInterface) {
    this.#connection = connection;
    this.#id = id;
    this.#types = types;
    this.imports = types.imports.map(({ path }) => path.join("#"));
    this.exports = exportedNames(types);
  }

  /**
   * Makes an instance. `imports` has the form that `Component.instantiate` takes: functions and classes of the program,
   * which run in the program, and may return promises, for which the component waits. Objects of its classes stay in
   * the program; the component gets handles.
   *
   * Rejects with the errors of `Component.instantiate`.
   */
  async instantiate(
    context: RunnerComponentContext = {},
    imports: ComponentImports = {},
  ): Promise<RunnerComponentInstance> {
    requireRecord(context, "The context");
    requireKnownNames("context field", context, CONTEXT_NAMES);
    const { wasi, ...limits } = context;
    if (wasi !== undefined && "limits" in wasi) {
      throw new TypeError("The field wasi cannot have limits: they are fields of the context and of calls");
    }
    const inputs = wasi === undefined ? undefined : programRequest(wasi);
    const deadline = millisecondsOf(context.deadline);
    const connection = this.#connection;
    const id = connection.newId();
    const handles = new ProgramHandles(connection, id, this.#types.hostResources);
    const functions = this.#functions(imports, handles);
    const release = () => {
      functions.forEach(({ index }) => connection.removeFunction(index));
      connection.unlisten(id);
      handles.end();
    };
    const options: InstantiateOptions = {
      context: { ...limits, ...(deadline === undefined ? {} : { deadline }) },
      functions,
      hasWasi: wasi !== undefined,
    };
    connection.listen(id, (payload) => handles.notice(payload));
    try {
      const write = (writer: PayloadWriter) => {
        writer.u32(this.#id).text(JSON.stringify(options));
        inputs?.write(writer);
      };
      const settings = { within: within(deadline) };
      await connection.request(KIND.EXTENDED, OPERATION.INSTANTIATE, write, settings, id);
      return new RunnerComponentInstance(connection, id, this.#types, handles, release);
    } catch (error) {
      release();
      throw error;
    }
  }

  /** The functions of the program that implement imports. Those that are missing are up to the instantiation. */
  #functions(imports: ComponentImports, handles: ProgramHandles): InstantiateOptions["functions"] {
    const functions: { path: readonly string[]; index: number }[] = [];
    for (const { path, type } of this.#types.imports) {
      const found = implementationOf(path, imports);
      if (found === undefined) continue;
      const run = type.result?.kind === "result" ? withResult(found) : found;
      const index = this.#connection.addFunction(run as HostFunction, {
        read: (reader) => type.params.map((param) => handles.codec.read(reader, param.type)),
        write: (writer, value) => {
          if (type.result !== undefined) handles.codec.write(writer, type.result, value);
        },
      });
      functions.push({ path, index });
    }
    return functions;
  }

  /**
   * Runs the component as a command of WASI 0.2 or 0.3 with files and streams in memory, as `runProgram` of
   * `@waft/component/program` does. It reaches nothing of the host but clocks and random bytes.
   */
  async run(program: RunnerProgram = {}): Promise<ProgramResult> {
    const { within, write } = programRequest(program);
    const connection = this.#connection;
    const writeAll = (writer: PayloadWriter) => write(writer.u32(this.#id));
    const answer = await connection.request(KIND.EXTENDED, OPERATION.RUN, writeAll, { within });
    return connection.reading(() => readProgramResult(answer));
  }

  /** Forgets the component; its instances stay. */
  async close(): Promise<void> {
    await this.#connection.request(KIND.EXTENDED, OPERATION.FORGET, (writer) => void writer.u32(this.#id));
  }
}

type Implementation = (...args: unknown[]) => unknown;

/** The function of the program for the import with a path of names. */
function implementationOf(path: readonly string[], imports: ComponentImports): Implementation | undefined {
  const [first, ...rest] = path;
  let value = lookUpName(imports, first);
  if (rest.length === 0) return rootFunction(first, value, imports) as Implementation | undefined;
  for (const name of rest.slice(0, -1)) value = isNamespace(value) ? value[camelCase(name)] ?? value[name] : undefined;
  return isNamespace(value) ? member(rest.at(-1)!, value) as Implementation | undefined : undefined;
}

function isNamespace(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** A function whose outcome is a case of a `result`. */
function withResult(run: Implementation): Implementation {
  const ok = (val: unknown) => ({ tag: "ok", val });
  const failed = (error: unknown) => ({ tag: "err", val: payloadOf(error) });
  return (...args) => {
    try {
      const value = run(...args);
      return value instanceof Promise ? value.then(ok, failed) : ok(value);
    } catch (error) {
      return failed(error);
    }
  };
}

/** An instance of a component in a runner. */
export class RunnerComponentInstance {
  readonly #connection: Connection;
  readonly #id: number;
  readonly #types: ComponentInterface;
  readonly #handles: ProgramHandles;
  readonly #release: () => void;

  /** @internal */
  constructor(
    connection: Connection,
    id: number,
    types: ComponentInterface,
    handles: ProgramHandles,
    release: () => void,
  ) {
    this.#connection = connection;
    this.#id = id;
    this.#types = types;
    this.#handles = handles;
    this.#release = release;
  }

  /**
   * Calls the exported function `name` under the limits of `context`; resolves with its result. `name` is that of a
   * function, or of an interface and one of its functions: `wasi:cli/run@0.2.0#run`. Functions of resources have their
   * names in WIT, `[constructor]counter` and `[method]counter.next`, which takes the resource as its first argument.
   *
   * Values have the form of `ComponentInstance.call`. A resource of the component is a {@linkcode RunnerResource}, a
   * stream a `ReadableStream`. A resource that is passed as owned is gone even if the call fails.
   *
   * Rejects with ComponentError for the error case of a `result`, with the errors of `ComponentInstance.call`, and as
   * `RunnerInstance.call` for a runner that does not end the call at its deadline.
   */
  async call<Result = unknown>(context: RunnerContext, name: string, ...args: unknown[]): Promise<Result> {
    const limits = limitsOf(context);
    const type = this.#type(name);
    const { codec } = this.#handles;
    const connection = this.#connection;
    let takeBack = () => {};
    const write = (writer: PayloadWriter) => {
      limits.write(writer.u32(this.#id).text(name));
      takeBack = this.#handles.lending(() =>
        type.params.forEach((param, k) => codec.write(writer, param.type, args[k]))
      );
    };
    let answer: Uint8Array;
    try {
      answer = await connection.request(KIND.EXTENDED, OPERATION.CALL, write, limits.options);
    } finally {
      takeBack();
    }
    const value = connection.reading(() => {
      const reader = new PayloadReader(answer);
      limits.read(reader);
      const result = type.result === undefined ? undefined : codec.read(reader, type.result);
      reader.end();
      return result;
    });
    if (type.result?.kind !== "result") return value as Result;
    const { tag, val } = value as { tag: string; val: unknown };
    if (tag === "err") throw new ComponentError(val);
    return val as Result;
  }

  #type(name: string): FuncType {
    const type = exportedFunction(this.#types, name);
    if (type === undefined) throw new TypeError(`There is no exported function "${name}"`);
    return type;
  }

  /** Whether there is a function `name`, as `call` takes it. */
  has(name: string): boolean {
    return exportedFunction(this.#types, name) !== undefined;
  }

  /** The output and the files of a component that was instantiated with `wasi`, as they are now. */
  async output(): Promise<RunnerOutput> {
    const answer = await this.#request(OPERATION.OUTPUT);
    const { status: _, trap: __, ...output } = this.#connection.reading(() => readProgramResult(answer));
    return output;
  }

  /** Resets the instance to its state after instantiation, as `ComponentInstance.reset` does; its resources end. */
  async reset(): Promise<void> {
    await this.#request(OPERATION.RESET);
    this.#handles.end();
  }

  /** Closes the instance; objects of the program that it still has are disposed of. */
  async close(): Promise<void> {
    await this.#request(OPERATION.CLOSE);
    this.#release();
  }

  #request(operation: number): Promise<Uint8Array> {
    return this.#connection.request(KIND.EXTENDED, operation, (writer) => void writer.u32(this.#id));
  }
}
