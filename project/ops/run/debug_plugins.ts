/**
 * Starts a module with the plugins of its project for the debugger. In: the module's program and calls, and the
 * project. Out: the sessions of the guest and of the plugins, which are modules or components, and the run. Invariant:
 * start functions and `init` functions have run before; plugins that run in processes of their own do not stop.
 */
import { type Context, type Instance, NewEngine, TrapError } from "@waft/engine";
import { instrumentedOptions } from "@waft/engine/internal/counts/instrumented_form";
import type { CoreDebugger } from "@waft/component/internal/component";
import { ActivationClock } from "../../debug/activation_clock.ts";
import type { Launched } from "../../debug/adapter.ts";
import { CorePrograms, orderedSessions, trappedSession } from "../../debug/component_programs.ts";
import { Program } from "../../debug/program.ts";
import { Session } from "../../debug/session.ts";
import { hasStreams } from "../../definitions/wasi_groups.ts";
import { digestBytes } from "../../base/integrity.ts";
import { absolutePath } from "../../base/system_path.ts";
import { type Callable, type GraphInstance, ModuleInstance } from "../../plugins/graph_instance.ts";
import type { LoadedProject } from "../../plugins/load.ts";
import { isDebuggable, type PluginDebugger, PluginHost, pluginOf } from "../../plugins/plugin_host.ts";
import { LOG_LEVELS } from "../../plugins/self.ts";
import { compileInstrumented, instrumenting } from "../tools/instrumented_module.ts";
import { type Print, silentStreams, withOutput } from "./captured_output.ts";
import type { DebugOptions } from "./debug_module.ts";
import { type ImportStubs, inFile, wasiFor, withStubs } from "./run_module.ts";

/** The least limit of a plugin's memories, in pages: they share it with the records of activations. */
const LEAST_PAGES = 1024;

/** A module that is ready to start. */
interface DebuggedGuest {
  readonly file: string;
  /** The content of the file. */
  readonly content: Uint8Array;
  /** The name of the program and its arguments. */
  readonly args: string[];
  readonly program: Program;
  readonly stubs: ImportStubs;
  readonly calls: readonly { readonly name: string; readonly args: readonly unknown[] }[];
}

/** Makes a call of an instance of the graph, which stops where it traps, before the graph closes its instances. */
type Stopping = <T>(call: () => Promise<T>) => Promise<T>;

/** An instance of a module whose calls stop where they trap. */
class DebuggedInstance extends ModuleInstance {
  readonly #stopping: Stopping;

  constructor(instance: Instance, stopping: Stopping) {
    super(instance);
    this.#stopping = stopping;
  }

  override callAsync(context: Context, name: string, ...args: unknown[]): Promise<unknown> {
    return this.#stopping(() => super.callAsync(context, name, ...args));
  }
}

/** An instance of a component whose calls stop where they trap. */
class DebuggedComponent implements GraphInstance {
  readonly #instance: GraphInstance;
  readonly #stopping: Stopping;

  constructor(instance: GraphInstance, stopping: Stopping) {
    this.#instance = instance;
    this.#stopping = stopping;
  }

  has(name: string): boolean {
    return this.#instance.has(name);
  }

  function(name: string): Callable {
    return this.#instance.function(name);
  }

  type(name: string): ReturnType<NonNullable<GraphInstance["type"]>> {
    return this.#instance.type!(name);
  }

  call(context: Context, name: string, ...args: unknown[]): unknown {
    return this.#instance.call(context, name, ...args);
  }

  callAsync(context: Context, name: string, ...args: unknown[]): Promise<unknown> {
    return this.#stopping(() => this.#instance.callAsync(context, name, ...args));
  }

  close(): void {
    this.#instance.close();
  }
}

/** Starts the plugins and the guest. Rejects with the errors of a run of it. */
export async function startWithPlugins(
  { file, content, args, program, stubs, calls }: DebuggedGuest,
  project: LoadedProject,
  options: DebugOptions,
  print: Print,
): Promise<Omit<Launched, "outcome">> {
  const compiled = { ...options.engine, interruptible: true };
  const module = compileInstrumented(file, program.instrumented.bytes, "debugged", compiled);
  const debugging = new Debugging(program);
  const streams = silentStreams();
  const { wasi, imports } = wasiFor(module, args, { ...options, stdio: streams });
  const shown = hasStreams(options.wasiGroups) ? withOutput(imports, () => debugging.guestInstance, print) : imports;
  const host = inFile(file, () =>
    new PluginHost(project, NewEngine(instrumentedOptions(compiled)), {
      coreDebugger: debugging,
      stdio: [streams[0], 2, 2],
      log: (plugin, level, text) => print("stderr", `${plugin}: ${LOG_LEVELS[level]}: ${text}\n`),
    }));
  const graph = await inFile(file, () =>
    host.startAsync({
      module,
      digest: digestBytes(content),
      imports: withStubs(shown, stubs),
      args,
      env: options.env,
      context: options.context,
    }));
  wasi?.attach(graph.guest);
  const { sessions } = debugging;
  const abort = new AbortController();
  return {
    sessions,
    path: absolutePath(file),
    notes: project.plugins.filter((plugin) => !isDebuggable(plugin))
      .map(({ id }) => `${id} runs in a process of its own, in which it does not stop.`),
    run: async () => {
      for (const session of sessions) session.begin();
      try {
        let result: unknown;
        for (const { name, args } of calls) {
          result = await graph.callAsync({ ...options.context, signal: abort.signal }, name, ...args);
        }
        return result;
      } finally {
        await graph.closeAsync();
      }
    },
    terminate: () => {
      abort.abort();
      for (const session of sessions) session.listen(undefined);
    },
  };
}

/** The programs and sessions of a graph. */
class Debugging implements PluginDebugger {
  readonly leastPages = LEAST_PAGES;
  readonly #guest: Program;
  readonly #clock = new ActivationClock();
  readonly #plugins = new Map<string, Program>();
  readonly #components = new Map<string, { readonly core: CorePrograms; readonly sessions: readonly Session[] }>();
  readonly #sessions: Session[] = [];
  /** The traps at which an instance of the graph has stopped. */
  readonly #reported = new WeakSet<object>();
  #guestSession: Session | undefined;
  #guestInstance: Instance | undefined;

  constructor(guest: Program) {
    this.#guest = guest;
  }

  /** The guest's session, then those of the plugins. */
  get sessions(): readonly Session[] {
    return this.#guestSession === undefined ? this.#sessions : [this.#guestSession, ...this.#sessions];
  }

  /** The instance of the guest. Throws an Error before there is one. */
  get guestInstance(): Instance {
    if (this.#guestInstance === undefined) throw new Error("the guest has not started");
    return this.#guestInstance;
  }

  formOf(id: string, bytes: Uint8Array): Uint8Array {
    const program = instrumenting(id, "debugged", () => new Program(id, bytes, undefined, undefined, true));
    this.#plugins.set(id, program);
    return program.instrumented.bytes;
  }

  plugin(instance: Instance, id: string): ModuleInstance {
    const program = this.#plugins.get(id)!;
    const session = this.#sessionOf(program, instance);
    const { start } = program.instrumented.names;
    if (start !== undefined) instance.call({}, start);
    if (program.locations > 0) this.#sessions.push(session);
    return new DebuggedInstance(instance, this.#stopping([session]));
  }

  coreOf(id: string): CoreDebugger {
    const core = new CorePrograms(id, this.#clock);
    this.#components.set(id, { core, sessions: core.newSessions() });
    return {
      formOf: (bytes) => instrumenting(id, "debugged", () => core.formOf(bytes)),
      instantiated: (bytes, instance, tasks) => core.instantiated(bytes, instance, tasks),
    };
  }

  component(instance: GraphInstance, id: string): GraphInstance {
    const { core, sessions } = this.#components.get(id)!;
    const ordered = orderedSessions(core.named(), sessions);
    this.#sessions.push(...ordered);
    return new DebuggedComponent(instance, this.#stopping(ordered));
  }

  async guest(instance: Instance): Promise<ModuleInstance> {
    this.#guestInstance = instance;
    const session = this.#guestSession = this.#sessionOf(this.#guest, instance);
    const { start } = this.#guest.instrumented.names;
    if (start !== undefined) await instance.callAsync({}, start);
    return new DebuggedInstance(instance, this.#stopping([session]));
  }

  #sessionOf(program: Program, instance: Instance): Session {
    return new Session(program, { instance, canRepeat: () => false, clock: this.#clock }, undefined, false);
  }

  /** Calls of an instance, which is that of a module or has several core instances. */
  #stopping(sessions: readonly Session[]): Stopping {
    return async (call) => {
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof TrapError) || pluginOf(error) !== undefined || this.#reported.has(error)) throw error;
        const session = trappedSession(sessions, error);
        if (session !== undefined) {
          this.#reported.add(error);
          await session.stopAtTrap(error);
        }
        throw error;
      }
    };
  }
}
