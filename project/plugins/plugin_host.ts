/**
 * Runs guests with the plugins of a project: compiles the plugins once and links exactly the link table.
 *
 * Input: a LoadedProject (load.ts) and an engine. Output: one InstanceGraph per guest, with separate plugin instances.
 * Order: every link of plugins and guest is checked; plugins are instantiated in start order; `init` runs; the guest is
 * instantiated. The sandbox depends on this invariant: before any code runs, every import of every module has its entry
 * in the table, and an import value is made from that entry alone.
 */
import { type Context, type Engine, type Instance, type Module, TrapError, WaftError } from "@waft/engine";
import type { Memory } from "@waft/engine/internal/runtime/memory";
import type { Diagnostic } from "../base/diagnostic.ts";
import { fail, ProjectError, quote } from "../base/diagnostic.ts";
import type { Digest } from "../base/integrity.ts";
import { formatType, type FunctionType } from "../definitions/module_inspector.ts";
import type { LoadedPlugin, LoadedProject } from "./load.ts";
import type { Link } from "./plugin_grants.ts";
import { markGuestTrap } from "./error_attribution.ts";
import { CallerSlot, slotFault } from "./caller_slot.ts";
import { type Callable, InstanceGraph, instantiateUnder } from "./graph.ts";
import { type Child, type HostedPlugin, type Party, PluginNode } from "./node.ts";
import { LOG_LEVELS } from "./self.ts";
import { deniedImport, type HostImport, hostImports, serves } from "./host_functions.ts";

export { pluginOf } from "./error_attribution.ts";
export { InstanceGraph } from "./graph.ts";

/** Maximum elements of all tables of a plugin together. */
const MAX_TABLE_ELEMENTS = 1_000_000;
/** Bytes of structs and arrays in the whole process beyond which those of plugins are refused. */
const MAX_HEAP_BYTES = 256 * 2 ** 20;

/** A guest, compiled by the engine that the host was made with. */
export interface Guest {
  /** The compiled module. */
  readonly module: Module;
  /** SHA-256 of the file that it was compiled from. */
  readonly digest: Digest;
  /** Imports besides plugins, such as WASI. Plugins never shadow them. */
  readonly imports?: { readonly [module: string]: { readonly [name: string]: unknown } };
  /** The program's name and arguments, as plugins with `guest.args` see them. */
  readonly args?: readonly string[];
  /** The environment variables that plugins with `guest.env` see. */
  readonly env?: readonly (readonly [string, string])[];
  /** Limits of the guest's instance; deadline and fuel for all start functions, `init`, `stop` and hooks. */
  readonly context?: Context;
  /** The artifact that it was loaded from, which plugins cannot change. */
  readonly artifact?: string;
}

/** The options of a host. */
export interface HostOptions {
  /** Takes lines of the plugins' logs; default: stderr. */
  readonly log?: (plugin: string, level: number, text: string) => void;
  /** Descriptors for `stdio`; default 0, 1, 2. */
  readonly stdio?: readonly [number, number, number];
}

interface Compiled {
  readonly plugin: HostedPlugin;
  readonly module: Module;
  readonly limits: NonNullable<Context["limits"]>;
  /** With which type it imports its caller's memory. */
  readonly callerMemory: Memory["type"] | undefined;
}

type Namespaces = { [module: string]: { [name: string]: HostImport | Callable | Memory } };

/** The plugins of a project, ready to serve guests. */
export class PluginHost {
  readonly #project: LoadedProject;
  readonly #engine: Engine;
  readonly #options: HostOptions;
  readonly #compiled: Compiled[];
  /** Whether a plugin waits for the network, so that guests should be called asynchronously. */
  readonly waits: boolean;

  /** Compiles the plugins and checks their links; throws a ProjectError with every reason to refuse. Nothing runs. */
  constructor(project: LoadedProject, engine: Engine, options: HostOptions = {}) {
    this.#project = project;
    this.#engine = engine;
    this.#options = options;
    const diagnostics = project.plugins.flatMap((plugin) => this.#checkPlugin(plugin));
    if (diagnostics.length > 0) throw new ProjectError(diagnostics);
    const waiting = waitingPlugins(project.plugins);
    this.#compiled = project.plugins.map((plugin) =>
      compilePlugin(engine, { ...plugin, waits: waiting.has(plugin.id) })
    );
    this.waits = project.plugins.some(usesNetwork);
  }

  /** Starts the plugins and the guest. Throws a ProjectError before any code has run; errors of that code propagate. */
  start(guest: Guest): InstanceGraph {
    const graph = this.#makeGraph(guest);
    try {
      this.#addPlugins(graph, guest);
      graph.start();
      graph.moduleCompiled(guest.digest);
      this.#addGuest(graph, guest);
    } catch (error) {
      graph.close();
      throw error;
    }
    return graph;
  }

  /**
   * Like `start`, for plugins that may wait in `init` and a guest that may wait in its start function. Start functions
   * of plugins block.
   */
  async startAsync(guest: Guest): Promise<InstanceGraph> {
    const graph = this.#makeGraph(guest);
    try {
      this.#addPlugins(graph, guest);
      await graph.startAsync();
      await graph.moduleCompiledAsync(guest.digest);
      await this.#addGuestAsync(graph, guest);
    } catch (error) {
      await graph.closeAsync();
      throw error;
    }
    return graph;
  }

  #makeGraph(guest: Guest): InstanceGraph {
    this.checkGuest(guest.module, Object.keys(guest.imports ?? {}));
    const control: Context = guest.context ?? {};
    return new InstanceGraph({
      control,
      args: guest.args ?? [],
      env: guest.env ?? [],
      stdio: this.#options.stdio ?? [0, 1, 2],
      root: this.#project.root,
      ...(guest.artifact === undefined ? {} : { artifact: guest.artifact }),
      log: this.#options.log ?? logToStderr,
      instantiateChild: (bytes, pages) => instantiateChild(this.#engine, bytes, pages),
    });
  }

  #addPlugins(graph: InstanceGraph, guest: Guest): void {
    for (const compiled of this.#compiled) this.#addPlugin(graph, compiled, guest.context ?? {});
  }

  /** Refuses a guest with an import that neither the `given` namespaces nor the project's plugins offer. */
  checkGuest(module: Module, given: readonly string[] = []): void {
    const found: Diagnostic[] = [];
    for (const { module: namespace, name, kind, type } of module.imports) {
      if (given.includes(namespace)) continue;
      const link = this.#project.guest.find((l) => l.module === namespace && l.name === name);
      const wanted = `${quote(namespace)} ${quote(name)}`;
      if (link === undefined || kind !== "func") {
        const known = this.#project.guest.some((l) => l.module === namespace);
        found.push({
          code: "link.unlinked",
          severity: "error",
          message: known
            ? `the guest's import ${wanted} is not among the functions that the plugin offers`
            : `the guest's import ${wanted} is unresolved`,
          ...(known ? {} : { help: "add a plugin that provides it: waft add <plugin>" }),
        });
      } else if (engineType(link.type) !== type) {
        found.push({
          code: "link.type",
          severity: "error",
          message: `the guest's import ${wanted} is ${type}; ${link.provider} offers ${engineType(link.type)}`,
        });
      } else {
        const reason = impassable(link.type) ?? this.#exportFault(link.provider, link.export, link.type);
        if (reason !== undefined) found.push({ code: "link.type", severity: "error", message: `${wanted}: ${reason}` });
      }
    }
    if (found.length > 0) throw new ProjectError(found);
  }

  /** The findings that prevent linking a plugin; empty if it links. */
  #checkPlugin(plugin: LoadedPlugin): Diagnostic[] {
    const found: Diagnostic[] = [];
    const links = new Map(plugin.links.map((link) => [`${link.module} ${link.name}`, link]));
    for (const item of plugin.module.imports) {
      const link = links.get(`${item.module} ${item.name}`);
      const reason = link === undefined ? "no grant and no bound contract links it" : this.#linkFault(link);
      if (reason === undefined) continue;
      const name = `${quote(item.module)} ${quote(item.name)}`;
      const message = `${plugin.id}: the import ${name} cannot be linked: ${reason}`;
      found.push({ code: "link.unlinked", severity: "error", message });
    }
    return found;
  }

  #linkFault({ module, type, target }: Link): string | undefined {
    switch (target.kind) {
      case "host":
      case "self":
        return serves({ module }) ? undefined : "the host does not serve it";
      case "provider":
        return impassable(type!) ?? this.#exportFault(target.provider, target.export, type!);
      case "providers": {
        const own = { params: type!.params.slice(1), results: type!.results };
        for (const id of target.ordinals) {
          const fault = impassable(own) ?? this.#exportFault(id, target.export, own);
          if (fault !== undefined) return fault;
        }
        return undefined;
      }
      case "caller-memory": // compilePlugin knows its type
      case "denied":
      case "count":
        return undefined;
    }
  }

  #exportFault(id: string, name: string, type: FunctionType): string | undefined {
    const found = this.#project.plugins.find((p) => p.id === id)?.module.exports.find((e) => e.name === name);
    if (found?.kind !== "function") return `${id} does not export ${quote(name)}`;
    if (formatType(found.type!) !== formatType(type)) {
      return `${quote(name)} of ${id} is ${formatType(found.type!)}, not ${formatType(type)}`;
    }
    return undefined;
  }

  #addPlugin(graph: InstanceGraph, compiled: Compiled, control: Context): void {
    const { plugin, module, limits, callerMemory } = compiled;
    const slot = callerMemory === undefined ? undefined : new CallerSlot(callerMemory);
    const node = new PluginNode(plugin, graph, slot);
    const party: Party = {
      label: plugin.id,
      digest: plugin.digest,
      instance: undefined,
      functionType: (name) => module.functionType(name),
      callExport: (name, args) => graph.callPlugin(plugin.id, name, args),
    };
    const host = hostImports(node);
    const imports: Namespaces = Object.create(null);
    for (const link of plugin.links) {
      const namespace = imports[link.module] ??= Object.create(null) as Namespaces[string];
      namespace[link.name] = link.target.kind === "caller-memory"
        ? slot!.idle
        : host.get(`${link.module} ${link.name}`) ?? contractImport(graph, party, link);
    }
    try {
      graph.addPlugin(node, party, () => instantiateUnder(module, control, limits, imports));
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw fail("link.limits", `${plugin.id}: ${error.message}`);
    }
  }

  #addGuest(graph: InstanceGraph, guest: Guest): void {
    const party = guestParty(graph, guest);
    const imports = this.#guestImports(graph, guest, party);
    graph.addGuest(party, () => guest.module.instantiate(guest.context ?? {}, imports));
  }

  #addGuestAsync(graph: InstanceGraph, guest: Guest): Promise<void> {
    const party = guestParty(graph, guest);
    const imports = this.#guestImports(graph, guest, party);
    return graph.addGuestAsync(
      party,
      (context) => guest.module.instantiateAsync(Object.assign(context, { ...guest.context, ...context }), imports),
    );
  }

  #guestImports(graph: InstanceGraph, guest: Guest, party: Party) {
    const imports: { [module: string]: { readonly [name: string]: unknown } } = Object.create(null);
    for (const { module: namespace, name, provider, export: exported } of this.#project.guest) {
      const functions = imports[namespace] ??= Object.create(null) as { [name: string]: unknown };
      (functions as { [name: string]: unknown })[name] = graph.entry(provider, exported, party);
    }
    return Object.assign(imports, guest.imports);
  }
}

function guestParty(graph: InstanceGraph, { module, digest }: Guest): Party {
  const blame = (error: unknown): never => {
    throw markGuestTrap(error);
  };
  return {
    label: "guest",
    digest,
    instance: undefined,
    functionType: (name) => module.functionType(name),
    callExport: (name, args) => {
      try {
        const result = graph.callGuest(name, args);
        return result instanceof Promise ? result.catch(blame) : result;
      } catch (error) {
        return blame(error);
      }
    },
  };
}

/** Whether the plugin uses host functions that wait. */
function usesNetwork({ links }: LoadedPlugin): boolean {
  return links.some(({ module, target }) => module === "waft:net@1" && target.kind === "host");
}

/**
 * The plugins whose calls can wait: those that use the network or call back into their callers, and all plugins that
 * call such a plugin.
 */
function waitingPlugins(plugins: readonly LoadedPlugin[]): Set<string> {
  const calls = ({ target }: Link): readonly string[] =>
    target.kind === "provider" ? [target.provider] : target.kind === "providers" ? target.ordinals : [];
  const callsBack = ({ module, name, target }: Link) =>
    module === "waft:caller@1" && name === "call" && target.kind === "host";
  const found = new Set<string>();
  // Providers come before their consumers in start order.
  for (const plugin of plugins) {
    const { id, links } = plugin;
    if (usesNetwork(plugin) || links.some((l) => callsBack(l) || calls(l).some((to) => found.has(to)))) found.add(id);
  }
  return found;
}

/** Compiles a plugin; its memory and tables are limited together, however many there are. */
function compilePlugin(engine: Engine, plugin: HostedPlugin): Compiled {
  try {
    const parsed = engine.parse(plugin.bytes);
    const imported = parsed.imports.flatMap(({ desc }) => desc.kind === "memory" ? [desc.type] : []);
    const fault = imported.length > 1 ? "it imports its caller's memory twice" : imported.map(slotFault)[0];
    if (fault !== undefined) throw fail("link.type", `${plugin.id}: ${fault}`);
    return {
      callerMemory: imported[0],
      plugin,
      module: engine.compileParsed(parsed),
      limits: {
        maxMemoryPages: Math.floor(plugin.maxMemoryPages / Math.max(1, parsed.memories.length)),
        maxTableElements: Math.floor(MAX_TABLE_ELEMENTS / Math.max(1, parsed.tables.length)),
        maxHeapBytes: MAX_HEAP_BYTES,
      },
    };
  } catch (error) {
    if (!(error instanceof WaftError)) throw error;
    throw fail("link.module", `${plugin.id} cannot be compiled: ${error.message}`);
  }
}

/** A link to other plugins, or to none. */
function contractImport(graph: InstanceGraph, caller: Party, { type, target }: Link): HostImport | Callable {
  switch (target.kind) {
    case "provider":
      return graph.entry(target.provider, target.export, caller);
    case "providers": {
      const entries = target.ordinals.map((id) => graph.entry(id, target.export, caller));
      return (ordinal: unknown, ...args: unknown[]) => {
        const entry = entries[(ordinal as number) >>> 0];
        if (entry === undefined) throw new TrapError(`unknown provider ${(ordinal as number) >>> 0}`);
        return entry(...args);
      };
    }
    case "count":
      return () => target.value;
    case "denied":
      return deniedImport(type, target.status);
    default:
      throw new WaftError(`no function is made for a link of kind ${target.kind}`);
  }
}

/** A child has no imports: each import it declares is missing. */
function instantiateChild(engine: Engine, bytes: Uint8Array, maxMemoryPages: number): Child {
  const parsed = engine.parse(bytes);
  if (parsed.imports.length > 0) throw new WaftError("a child instance imports nothing");
  const module = engine.compileParsed(parsed);
  const limits = {
    maxMemoryPages: Math.floor(maxMemoryPages / Math.max(1, parsed.memories.length)),
    maxTableElements: Math.floor(MAX_TABLE_ELEMENTS / Math.max(1, parsed.tables.length)),
    maxHeapBytes: MAX_HEAP_BYTES,
  };
  const instance: Instance = module.instantiate({ limits });
  return { instance, functionType: (name) => module.functionType(name) };
}

/**
 * Types that cannot pass between instances through the host: vectors, and functions, which would escape the tracking of
 * callers.
 */
function impassable(type: FunctionType): string | undefined {
  const bad = [...type.params, ...type.results].find((t) => t === "v128" || t === "funcref");
  return bad === undefined ? undefined : `${bad} cannot be passed between instances`;
}

/** A function type in the engine's words. */
function engineType({ params, results }: FunctionType): string {
  return `[${params.join(" ")}] -> [${results.join(" ")}]`;
}

function logToStderr(plugin: string, level: number, text: string): void {
  process.stderr.write(`${plugin}: ${LOG_LEVELS[level]}: ${text}\n`);
}
