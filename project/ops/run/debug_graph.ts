/**
 * The programs and sessions of a guest instance graph under the debugger. In: the modules of the graph and their
 * instances, as its host makes them. Out: the forms that are compiled, the sessions of the guest and of the plugins,
 * instances whose calls stop where they trap, and the run. Invariant: a session is there before its instance runs.
 */
import { type Context, type Engine, type EngineOptions, type Instance, NewEngine, TrapError } from "@waft/engine";
import { instrumentedOptions } from "@waft/engine/internal/counts/instrumented_form";
import type { CoreDebugger } from "@waft/component/internal/component";
import { ActivationClock } from "../../debug/activation_clock.ts";
import type { Launched } from "../../debug/adapter.ts";
import { CorePrograms, trappedSession } from "../../debug/component_programs.ts";
import { Program } from "../../debug/program.ts";
import { Session } from "../../debug/session.ts";
import { absolutePath } from "../../base/system_path.ts";
import {
  type Callable,
  type CalledInstance,
  type GraphInstance,
  ModuleInstance,
} from "../../plugins/graph_instance.ts";
import type { InstanceGraph } from "../../plugins/graph.ts";
import type { LoadedProject } from "../../plugins/load.ts";
import { isDebuggable, type PluginDebugger, PluginHost, pluginOf } from "../../plugins/plugin_host.ts";
import { LOG_LEVELS } from "../../plugins/self.ts";
import { instrumenting } from "../tools/instrumented_module.ts";
import { type Print, silentStreams } from "./captured_output.ts";

/** The least limit of a plugin's memories, in pages: they share it with the records of activations. */
const LEAST_PAGES = 1024;

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

/** The host of a project's plugins under the debugger; `streams` are those of `silentStreams`. */
export function debuggedHost(
  project: LoadedProject,
  engine: EngineOptions,
  debugging: GraphDebugging,
  print: Print,
  streams = silentStreams(),
): PluginHost {
  const compiler: Engine = NewEngine({ ...instrumentedOptions(engine), interruptible: true });
  return new PluginHost(project, compiler, {
    coreDebugger: debugging,
    stdio: [streams[0], 2, 2],
    log: (plugin, level, text) => print("stderr", `${plugin}: ${LOG_LEVELS[level]}: ${text}\n`),
  });
}

/** A guest with its plugins, which is ready to start. */
interface GraphProgram {
  readonly file: string;
  /** The programs of its parts, the main one of the guest first. */
  readonly programs: readonly Program[];
  readonly start: (context: Context) => Promise<InstanceGraph>;
  /** Makes the calls of the guest. */
  readonly work: (graph: InstanceGraph, context: Context) => Promise<unknown>;
}

/** A program whose run starts a graph, makes the calls of the guest, and closes the graph. */
export function launchedGraph(
  { file, programs, start, work }: GraphProgram,
  project: LoadedProject,
  debugging: GraphDebugging,
  { context }: { readonly context: Context },
): Omit<Launched, "outcome"> {
  const abort = new AbortController();
  const limits: Context = { ...context, signal: abort.signal };
  return {
    programs,
    goesBack: false,
    path: absolutePath(file),
    notes: notesOn(project),
    run: async (attach) => {
      debugging.observe(attach);
      const graph = await start(limits);
      try {
        for (const session of debugging.sessions) session.begin();
        return await work(graph, limits);
      } finally {
        await graph.closeAsync();
      }
    },
    terminate: () => {
      abort.abort();
      debugging.observe(() => {});
      for (const session of debugging.sessions) session.listen(undefined);
    },
  };
}

/** Sentences about the plugins that do not stop. */
function notesOn({ plugins }: LoadedProject): string[] {
  return plugins.filter((plugin) => !isDebuggable(plugin))
    .map(({ id }) => `${id} runs in a process of its own, in which it does not stop.`);
}

/** The programs and sessions of a graph. */
export class GraphDebugging implements PluginDebugger {
  readonly leastPages = LEAST_PAGES;
  readonly clock: ActivationClock = new ActivationClock();
  /** The program of the guest, if that is a module. */
  readonly #guest: Program | undefined;
  readonly #modules = new Map<string, Program>();
  readonly #components = new Map<string, CorePrograms>();
  readonly #sessions: Session[] = [];
  /** The traps at which an instance of the graph has stopped. */
  readonly #reported = new WeakSet<object>();
  #attach: (session: Session) => void = () => {};
  #guestInstance: Instance | undefined;

  constructor(guest?: Program) {
    this.#guest = guest;
  }

  /** The programs of the plugins with functions, once all are compiled. */
  get programs(): readonly Program[] {
    const modules = [...this.#modules.values()].filter(({ locations }) => locations > 0);
    return [
      ...modules,
      ...[...this.#components.values()].flatMap((core) => core.named().map(({ program }) => program)),
    ];
  }

  /** The sessions of all instances so far. */
  get sessions(): readonly Session[] {
    return this.#sessions;
  }

  /** Calls `attach` with the session of each later instance, before that runs. */
  observe(attach: (session: Session) => void): void {
    this.#attach = attach;
  }

  /** Adds the session of an instance of the graph. */
  began(session: Session): void {
    this.#sessions.push(session);
    this.#attach(session);
  }

  /** The instance of a guest that is a module. Throws an Error before there is one. */
  get guestInstance(): Instance {
    if (this.#guestInstance === undefined) throw new Error("the guest has not started");
    return this.#guestInstance;
  }

  formOf(id: string, bytes: Uint8Array): Uint8Array {
    const program = instrumenting(id, "debugged", () => new Program(id, bytes, undefined, undefined, true));
    this.#modules.set(id, program);
    return program.instrumented.bytes;
  }

  plugin(instance: Instance, id: string): ModuleInstance {
    const program = this.#modules.get(id)!;
    const session = this.#sessionOf(program, instance);
    if (program.locations > 0) this.began(session);
    const { start } = program.instrumented.names;
    if (start !== undefined) instance.call({}, start);
    return new DebuggedInstance(instance, this.#stopping([session]));
  }

  coreOf(id: string): CoreDebugger {
    const core = new CorePrograms(id, this.clock);
    this.#components.set(id, core);
    return {
      formOf: (bytes) => instrumenting(id, "debugged", () => core.formOf(bytes)),
      instantiated: (bytes, instance, tasks) => core.instantiated(bytes, instance, tasks),
    };
  }

  component(id: string, instantiate: () => GraphInstance): GraphInstance {
    const sessions: Session[] = [];
    this.#components.get(id)!.observe((session) => {
      sessions.push(session);
      this.began(session);
    });
    return new DebuggedComponent(instantiate(), this.#stopping(sessions));
  }

  async guest(instance: Instance): Promise<ModuleInstance> {
    const program = this.#guest!;
    this.#guestInstance = instance;
    const session = this.#sessionOf(program, instance);
    this.began(session);
    const stopping = this.#stopping([session]);
    const { start } = program.instrumented.names;
    if (start !== undefined) await stopping(() => instance.callAsync({}, start));
    return new DebuggedInstance(instance, stopping);
  }

  /** The instance of a guest that is a component, as the graph calls it; `sessions` are those of its core instances. */
  guestComponent(instance: CalledInstance, sessions: readonly Session[]): CalledInstance {
    const stopping = this.#stopping(sessions);
    return {
      call: (context, name, ...args) => instance.call(context, name, ...args),
      callAsync: (context, name, ...args) => stopping(() => instance.callAsync(context, name, ...args)),
      close: () => instance.close(),
    };
  }

  #sessionOf(program: Program, instance: Instance): Session {
    return new Session(program, { instance, canRepeat: () => false, clock: this.clock }, undefined, false);
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
