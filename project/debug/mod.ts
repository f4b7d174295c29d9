/**
 * The debugger for programs that embed the engine: instances that an editor attaches to by the Debug Adapter Protocol,
 * on a port of this machine. In: modules with their imports, and calls. Out: the results of the calls, which stop where
 * the editor wants.
 *
 * Invariant: the server listens on the loopback interface alone, serves one editor at a time, and accepts no HTTP
 * requests, which web pages could send. Without an editor, calls stop nowhere.
 *
 * @module
 */
import { type Context, type EngineOptions, type Imports, type Instance, NewEngine } from "@waft/engine";
import { instrumentedOptions, instrumenting } from "@waft/engine/internal/counts/instrumented_form";
import { parseModule } from "@waft/engine/internal/text_format";
import { createServer, type Server, type Socket } from "node:net";
import type { ComponentInstance } from "@waft/component";
import type { ComponentImports } from "@waft/component/internal/link/host_names";
import { type Attached, serveAdapter } from "./adapter.ts";
import { Program } from "./program.ts";
import type { Arguments } from "./protocol.ts";
import { Session } from "./session.ts";

const HOST = "127.0.0.1";
/** Connections at a time: one editor debugs, others are told so. */
const MAX_CONNECTIONS = 8;

/** The options of a debugged instance. */
export interface DebugOptions {
  /**
   * The name by which an editor chooses it, such as the path of its file: source files are also looked for beside that.
   * Default: `module` or
   * `component`, with a number from the second one on.
   */
  readonly name?: string;
  /** The options of the engine. The code is always interruptible. */
  readonly engine?: EngineOptions;
  /** Reads the source map at the address that the module names; undefined if there is none. */
  readonly sourceMap?: (url: string) => string | undefined;
  /** Whether calls wait for an editor, the start function included. Default: false. */
  readonly waits?: boolean;
}

/** An instance of an instrumented module. */
export interface DebuggedInstance {
  /** Its name. */
  readonly name: string;
  /** The instance. Calls of its exports in other ways than by `call` do not stop. */
  readonly instance: Instance;
  /**
   * Calls the exported function `name` as `Instance.callAsync` does, once earlier calls have ended. Deadlines go on
   * while the program is stopped. Rejects with the errors of the call; the frames of traps are those of the
   * instrumented module.
   */
  call(context: Context, name: string, ...args: readonly unknown[]): Promise<unknown>;
}

/** An instance of a component whose core modules are instrumented. */
export interface DebuggedComponent {
  /**
   * Its name, by which an editor attaches to all core modules. The one with most code has this name; the others have
   * `#2`, `#3` and so on after it, by which an editor attaches to one alone.
   */
  readonly name: string;
  /** The instance. Its `callAsync` stops as `call` does; calls in other ways do not stop. */
  readonly instance: ComponentInstance;
  /**
   * Calls the exported function `name` as `ComponentInstance.callAsync` does, once earlier calls of the component's
   * instances have ended. Functions that JavaScript calls meanwhile, such as allocators for strings, do not stop.
   */
  call(context: Context, name: string, ...args: readonly unknown[]): Promise<unknown>;
}

/** A component for several instances. */
export interface DebuggedComponentFactory {
  /** Its name, as {@linkcode DebuggedComponent.name}. */
  readonly name: string;
  /** Makes an instance. An editor follows the instance whose call is in progress. */
  instantiate(context?: Context, imports?: ComponentImports): DebuggedComponent;
}

/** A promise, and the function that resolves it. */
interface Signal {
  readonly whenSet: Promise<void>;
  readonly set: () => void;
}

/** A debugged instance of a module, or a core module of a component, as the server knows it. */
interface Entry {
  readonly program: Program;
  /** The sessions of the call in progress, or of the last one; a core module can have several instances. */
  sessions: readonly Session[];
  readonly configured: Signal;
  isAttached: boolean;
  /** For the core module with most code: the others of the component. */
  parts: readonly Entry[];
}

/** An editor that is attached. */
interface Watcher {
  readonly entries: readonly Entry[];
  /** Lets it follow the sessions of another instance. */
  readonly take: (sessions: readonly Session[]) => void;
}

/**
 * A server for editors. Only this machine can reach it, but each of its users can: an editor reads and changes the
 * memory of the guests.
 *
 * @example
 * ```ts
 * import { DebugServer } from "@waft/cli/debug";
 *
 * const server = await DebugServer.listen();
 * const plugin = await server.instantiate(`(module
 *   (import "host" "two" (func $two (result i32)))
 *   (func (export "next") (param i32) (result i32) (i32.add (local.get 0) (call $two))))`, { host: { two: () => 2 } });
 * // An editor may now attach to the port server.port, set breakpoints, and detach again.
 * if (await plugin.call({}, "next", 40) !== 42) throw new Error("unexpected result");
 * await server.close();
 * ```
 */
export class DebugServer {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #entries = new Map<string, Entry>();
  readonly #watchers = new Set<Watcher>();
  /** Calls that wait for an editor: they keep the process alive. */
  #waiting = 0;

  private constructor(server: Server) {
    this.#server = server;
    server.maxConnections = MAX_CONNECTIONS;
    server.on("connection", (socket) => this.#serve(socket));
    server.unref();
  }

  /**
   * Listens on a port of the loopback interface; 0, the default, is a free one. Rejects with the system's error if the
   * port is in use. The server alone does not keep the process alive.
   */
  static listen({ port = 0 }: { port?: number } = {}): Promise<DebugServer> {
    const server = createServer();
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, HOST, () => {
        server.off("error", reject);
        resolve(new DebugServer(server));
      });
    });
  }

  /** The port. */
  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("The debug server is closed");
    return address.port;
  }

  /**
   * Instantiates the instrumented form of a module, in binary or text form, and runs its start function. Rejects with
   * the errors of compilation and instantiation, and with an Error for a module that is too large to be instrumented or
   * a name that is taken.
   */
  async instantiate(
    source: Uint8Array | string,
    imports: Imports = {},
    options: DebugOptions = {},
  ): Promise<DebuggedInstance> {
    const { engine = {}, sourceMap, waits = false } = options;
    const name = this.#freeName(options.name);
    NewEngine(engine).validate(source);
    const text = typeof source === "string" ? source : undefined;
    const bytes = typeof source === "string" ? parseModule(new TextEncoder().encode(source)).bytes : source;
    const [program, module] = instrumenting("debugged", () => {
      const made = new Program(name, bytes, text, sourceMap);
      const compiler = NewEngine({ ...instrumentedOptions(engine), interruptible: true });
      return [made, compiler.compile(made.instrumented.bytes)] as const;
    });
    const instance = module.instantiate({}, imports);
    const session = new Session(program, { instance, canRepeat: () => false }, undefined, false);
    const entry = this.#addEntry(name, program);
    entry.sessions = [session];
    const call = async (context: Context, called: string, ...args: readonly unknown[]): Promise<unknown> => {
      if (waits) await this.#untilConfigured(entry);
      return await session.call(called, args, context);
    };
    const { start } = program.instrumented.names;
    if (start !== undefined) await call({}, start);
    return { name, instance, call };
  }

  /**
   * Compiles a component, in binary or text form, with instrumented core modules. Rejects with the errors of
   * compilation, and with an Error for a core module that is too large to be instrumented or a name that is taken.
   */
  async compileComponent(
    source: Uint8Array | string,
    options: DebugOptions = {},
  ): Promise<DebuggedComponentFactory> {
    const { engine = {}, sourceMap, waits = false } = options;
    const name = this.#freeName(options.name, "component");
    const { DebuggedPrograms, duringAll } = await import("./component_programs.ts");
    const debugged = new DebuggedPrograms(name, source, engine, sourceMap);
    const entries = debugged.programs.map((each) => this.#addEntry(each.name, each.program));
    if (entries.length > 1) entries[0].parts = entries.slice(1);
    let current: readonly Session[] = [];
    let calls: Promise<unknown> = Promise.resolve();
    const instantiate = (context: Context = {}, imports: ComponentImports = {}): DebuggedComponent => {
      const { instance, sessions } = debugged.instantiate(context, imports);
      const callAsync = instance.callAsync.bind(instance);
      const run = async (context: Context, called: string, args: readonly unknown[]): Promise<unknown> => {
        if (waits && entries[0] !== undefined) await this.#untilConfigured(entries[0]);
        if (current !== sessions) this.#follow(entries, current = sessions);
        return await duringAll(sessions, () => callAsync(context, called, ...args));
      };
      const call = (context: Context, called: string, ...args: readonly unknown[]): Promise<unknown> => {
        const result = calls.then(() => run(context, called, args));
        calls = result.catch(() => {});
        return result;
      };
      // Servers and pools call the instance itself.
      Object.defineProperty(instance, "callAsync", { value: call });
      return { name, instance, call };
    };
    return { name, instantiate };
  }

  /**
   * Instantiates a component with instrumented core modules, as `compileComponent` and `instantiate` do. Start
   * functions do not stop.
   */
  async instantiateComponent(
    source: Uint8Array | string,
    imports: ComponentImports = {},
    options: DebugOptions = {},
  ): Promise<DebuggedComponent> {
    return (await this.compileComponent(source, options)).instantiate({}, imports);
  }

  #addEntry(name: string, program: Program): Entry {
    const entry: Entry = { program, sessions: [], configured: newSignal(), isAttached: false, parts: [] };
    this.#entries.set(name, entry);
    return entry;
  }

  /** Makes sessions those of the entries of a component, whose editors follow them. */
  #follow(entries: readonly Entry[], sessions: readonly Session[]): void {
    for (const entry of entries) entry.sessions = sessions.filter(({ program }) => program === entry.program);
    for (const { entries: watched, take } of this.#watchers) {
      if (watched.some((entry) => entries.includes(entry))) take(watched.flatMap((entry) => entry.sessions));
    }
  }

  /** Detaches the editor and closes the port. The instances can be called further on. */
  close(): Promise<void> {
    for (const { configured } of this.#entries.values()) configured.set();
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      for (const socket of this.#sockets) socket.destroy();
    });
  }

  #freeName(wanted: string | undefined, base = "module"): string {
    if (wanted !== undefined) {
      if (this.#entries.has(wanted)) {
        throw new Error(`A debugged instance has the name ${JSON.stringify(wanted)} already`);
      }
      return wanted;
    }
    for (let k = 1;; k++) {
      const name = k === 1 ? base : `${base} ${k}`;
      if (!this.#entries.has(name)) return name;
    }
  }

  async #untilConfigured({ configured }: Entry): Promise<void> {
    if (++this.#waiting === 1) this.#server.ref();
    await configured.whenSet;
    if (--this.#waiting === 0) this.#server.unref();
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    serveAdapter(socket, socket, { attach: (args) => this.#attach(args) }).then(() => socket.end());
  }

  #attach({ program: wanted }: Arguments): Attached {
    const names = [...this.#entries.keys()];
    const name = typeof wanted === "string" && wanted !== "" ? wanted : names[0];
    const entry = name === undefined ? undefined : this.#entries.get(name);
    if (name === undefined || entry === undefined) {
      const known = names.length === 0 ? "there is none yet" : `there are ${names.join(", ")}`;
      throw new Error(`no debugged instance ${name === undefined ? "" : `${name} `}was found: ${known}`);
    }
    if (entry.isAttached) throw new Error(`another editor is attached to ${name}`);
    const entries = [entry, ...entry.parts.filter(({ isAttached }) => !isAttached)];
    for (const each of entries) each.isAttached = true;
    let watcher: Watcher | undefined;
    return {
      programs: entries.map(({ program }) => program),
      sessions: () => entries.flatMap(({ sessions }) => sessions),
      follow: (take) => this.#watchers.add(watcher = { entries, take }),
      path: name,
      configured: entry.configured.set,
      detached: () => {
        for (const each of entries) each.isAttached = false;
        if (watcher !== undefined) this.#watchers.delete(watcher);
      },
    };
  }
}

function newSignal(): Signal {
  let set = () => {};
  const whenSet = new Promise<void>((resolve) => set = resolve);
  return { whenSet, set };
}
