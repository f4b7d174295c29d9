/**
 * Plugins that are components, each in a process of its own: the runtime of component_plugin.ts, with a runner
 * (`@waft/component/runner`) in place of an instance. In: a component, and its node with the link table. Out: instances
 * for a graph, whose calls wait. Invariants: the component's code runs in the runner alone; its host functions run
 * here, with the same grants; a runner that ends, for whatever reason, is a trap of its plugin.
 */
import process from "node:process";
import { fileURLToPath } from "node:url";
import { type Context, type Engine, TrapError } from "@waft/engine";
import { SUFFIX } from "@waft/engine/internal/host/late_module";
import { isSingleExecutable } from "@waft/engine/internal/host/process";
import { RunnerError } from "@waft/engine/runner";
import type { ComponentImports } from "@waft/component/internal/link/host_names";
import type { FuncType } from "@waft/component/internal/model/types";
import { exportedFunction, exportedNames, interfaceOf } from "@waft/component/internal/runner/interface";
import { Runner, type RunnerComponentInstance } from "@waft/component/runner";
import { platformName } from "../base/paths.ts";
import { startCommand } from "../versions/bundle_layout.ts";
import { componentImports } from "./component_imports.ts";
import type {
  CompiledComponent,
  ComponentPart,
  ComponentPlace,
  ComponentRuntime,
  ProvidedFunctions,
} from "./component_part.ts";
import { ComponentFunctions, failed, ok } from "./component_functions.ts";
import { storageLimits } from "./component_plugin.ts";
import type { Callable, GraphInstance } from "./graph_instance.ts";

export { forComponent, forCore } from "./component_plugin.ts";

export const waits = true;

/** Bytes that the process of a plugin gets beyond its memories: compiled code, values in transit. */
const PROCESS_BYTES = 256 * 2 ** 20;
const PAGE_BYTES = 65536;

/** The milliseconds after which a plugin that cannot be called yet is ended at its start. */
const START_MS = 60_000;

/** The start of a plugin's process. */
interface ProcessOptions {
  /** The command that starts a runner; by default that of this installation. */
  readonly command?: readonly string[];
  /** Milliseconds for the start, the compilation and the instantiation together. */
  readonly startDeadline: number;
}

/** Reads components, each of which is compiled in a process that `options` start. */
export function compileIn(options: ProcessOptions): ComponentRuntime["compile"] {
  return (engine: Engine, bytes, maxMemoryPages) => {
    const read = interfaceOf(bytes);
    const names = exportedNames(read);
    const types = new Map(names.map((name) => [name, exportedFunction(read, name)!]));
    return new Compiled(engine, bytes, types, maxMemoryPages, options);
  };
}

/** Reads a component, which is compiled in its process. */
export const compile: ComponentRuntime["compile"] = compileIn({ startDeadline: START_MS });

class Compiled implements CompiledComponent {
  readonly limits: CompiledComponent["limits"];
  readonly #engine: Engine;
  readonly #bytes: Uint8Array;
  readonly #types: ReadonlyMap<string, FuncType>;
  readonly #maxBytes: number;
  readonly #process: ProcessOptions;

  constructor(
    engine: Engine,
    bytes: Uint8Array,
    types: ReadonlyMap<string, FuncType>,
    maxMemoryPages: number,
    process: ProcessOptions,
  ) {
    this.limits = storageLimits(bytes, maxMemoryPages);
    this.#engine = engine;
    this.#bytes = bytes;
    this.#types = types;
    this.#maxBytes = maxMemoryPages * PAGE_BYTES + PROCESS_BYTES;
    this.#process = process;
  }

  instantiate(
    place: ComponentPlace,
    context: Context,
    provided: ReadonlyMap<string, ProvidedFunctions>,
    provides: ComponentPart["provides"],
  ): GraphInstance {
    const imports = { ...componentImports(place), ...Object.fromEntries(provided) };
    const ready = this.#start(context, imports);
    // A failure is that of the first call.
    ready.catch(() => {});
    return new RunnerInstance(place.plugin.id, ready, this.#types, provides);
  }

  /** Rejects with a RunnerError if the instance is not there at the deadline, whatever the process does. */
  async #start(context: Context, imports: ComponentImports): Promise<Started> {
    const { startDeadline, command = runnerCommand() } = this.#process;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      const end = () => reject(new RunnerError(`its process was not ready within ${startDeadline} ms of its start`));
      timer = setTimeout(end, startDeadline);
    });
    const opening = Runner.start({
      engine: { features: this.#engine.features, fuel: context.fuel !== undefined },
      maxBytes: this.#maxBytes,
      startDeadline,
      ...(command === undefined ? {} : { command }),
    });
    try {
      return await Promise.race([late, opening.then((runner) => this.#instantiateIn(runner, context, imports))]);
    } catch (error) {
      opening.then((runner) => runner.close()).catch(() => {});
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  async #instantiateIn(runner: Runner, { deadline }: Context, imports: ComponentImports): Promise<Started> {
    const component = await runner.compileComponent(this.#bytes);
    const context = { limits: { ...this.limits }, ...(deadline === undefined ? {} : { deadline }) };
    return { runner, instance: await component.instantiate(context, imports) };
  }
}

/** The command of an installed waft that serves a runner; undefined where the runner's module is a file. */
function runnerCommand(): string[] | undefined {
  if (isSingleExecutable()) return [process.execPath, "runner"];
  // In a bundle, this is the module that starts waft.
  const program = new URL(`./program.${SUFFIX}`, import.meta.url);
  if (!program.pathname.endsWith("/lib/waft.js")) return undefined;
  const [command, args] = startCommand(fileURLToPath(new URL("../", program)), platformName(), ["runner"]);
  return [command, ...args];
}

interface Started {
  readonly runner: Runner;
  readonly instance: RunnerComponentInstance;
}

/** An instance in a runner. */
class RunnerInstance extends ComponentFunctions implements GraphInstance {
  readonly #id: string;
  readonly #ready: Promise<Started>;

  constructor(
    id: string,
    ready: Promise<Started>,
    types: ReadonlyMap<string, FuncType>,
    provides: ComponentPart["provides"],
  ) {
    super(types, provides);
    this.#id = id;
    this.#ready = ready;
  }

  function(): Callable {
    return () => this.call();
  }

  call(): never {
    throw new TrapError(`plugin ${this.#id} runs in a process of its own: only asynchronous calls reach it`);
  }

  async callAsync(context: Context, name: string, ...args: unknown[]): Promise<unknown> {
    const { deadline, fuel, signal } = context;
    signal?.throwIfAborted();
    let abort = () => {};
    const aborted = new Promise<never>((_, reject) => abort = () => reject(signal!.reason));
    signal?.addEventListener("abort", abort);
    const limits = { ...(deadline === undefined ? {} : { deadline }), ...(fuel === undefined ? {} : { fuel }) };
    try {
      const { instance } = await Promise.race([this.#ready, aborted]);
      const call = instance.call(limits, this.own(name), ...args);
      const result = this.returnsResult(name) ? call.then(ok, failed) : call;
      return await Promise.race([result, aborted]);
    } catch (error) {
      if (error instanceof RunnerError) throw new TrapError(error.message);
      throw error;
    } finally {
      signal?.removeEventListener("abort", abort);
      if ("fuel" in limits) context.fuel = limits.fuel!;
    }
  }

  /** Ends the process, whatever it does. */
  close(): void {
    this.#ready.then(({ runner }) => runner.close()).catch(() => {});
  }
}
