/**
 * Runs guests with the plugins of a project: compiles the plugins once and links exactly the link table.
 *
 * In: a LoadedProject (load.ts) and an engine. Out: one InstanceGraph per guest, with separate plugin instances.
 * Order: every link of plugins and guest is checked; plugins are instantiated in start order; `init` runs; the guest is
 * instantiated. The sandbox depends on this invariant: before any code runs, every import of every module has its entry
 * in the table, and an import value is made from that entry alone.
 */
import { type Context, type Engine, type Instance, LinkError, type Module, TrapError, WaftError } from "@waft/engine";
import type { CoreDebugger } from "@waft/component/internal/component";
import { Memory } from "@waft/engine/internal/runtime/memory";
import { I64 } from "@waft/engine/internal/wasm/types";
import type { Diagnostic } from "../base/diagnostic.ts";
import { fail, ProjectError, quote } from "../base/diagnostic.ts";
import type { Digest } from "../base/integrity.ts";
import {
  formatType,
  type FunctionType,
  type InspectedFunction,
  type InspectedWorld,
  type WorldItem,
} from "../definitions/module_inspector.ts";
import { hostInterface, sameInterface, splitInterface } from "../definitions/wit_interfaces.ts";
import type { LoadedPlugin, LoadedProject } from "./load.ts";
import { type Link, WHOLE_INTERFACE } from "./plugin_grants.ts";
import { markGuestTrap } from "./error_attribution.ts";
import { CallerSlot, slotFault } from "./caller_slot.ts";
import { InstanceGraph, instantiateUnder } from "./graph.ts";
import { type Callable, type CalledInstance, type GraphInstance, ModuleInstance } from "./graph_instance.ts";
import type { CompiledComponent, CoreCallerSource, ProvidedFunctions } from "./component_part.ts";
import { type Child, type HostedPlugin, MAX_HEAP_BYTES, MAX_TABLE_ELEMENTS, type Party, PluginNode } from "./node.ts";
import { LOG_LEVELS } from "./self.ts";
import { deniedImport, type HostImport, hostImports, serves } from "./host_functions.ts";

export { pluginOf } from "./error_attribution.ts";
export { InstanceGraph } from "./graph.ts";

/** A guest, compiled by the engine that the host was made with. */
export interface Guest extends GuestRun {
  /** The compiled module. */
  readonly module: Module;
  /** Imports besides plugins, such as WASI. Plugins never shadow them. */
  readonly imports?: { readonly [module: string]: { readonly [name: string]: unknown } };
}

/**
 * A guest that is a component.
 *
 * @internal
 */
interface ComponentGuest extends GuestRun {
  /** The imports and exports of the component. */
  readonly world: InspectedWorld;
  /** Creates the instance. `provided` has the functions that plugins provide, by interface, for `instantiate`. */
  readonly instantiate: (
    context: Context,
    provided: { readonly [name: string]: ProvidedFunctions },
  ) => CalledInstance;
}

/** The inputs and limits of a guest's run. */
export interface GuestRun {
  /** SHA-256 of the file that it was compiled from. */
  readonly digest: Digest;
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
  /**
   * A debugger of the modules. Guests are then started with `startAsync` and called with `callAsync` only.
   *
   * @internal
   */
  readonly coreDebugger?: PluginDebugger;
}

/** A debugger, which has forms of its own of plugins. Those that run in other processes are not debugged. */
export interface PluginDebugger {
  /** The form that is compiled in place of a plugin's module; it imports and exports all that the module does. */
  formOf(id: string, bytes: Uint8Array): Uint8Array;
  /** The least limit of the memories of such a form, in pages. */
  readonly leastPages: number;
  /** A plugin's instance as the graph calls it. Start functions are up to it. */
  plugin(instance: Instance, id: string): ModuleInstance;
  /** The debugger of the core modules of a plugin that is a component. */
  coreOf(id: string): CoreDebugger;
  /** The instance of such a plugin as the graph calls it; `instantiate` makes it. */
  component(id: string, instantiate: () => GraphInstance): GraphInstance;
  /** The guest's instance as the graph calls it; the guest's module is such a form, too. */
  guest(instance: Instance): Promise<ModuleInstance>;
}

interface CompiledModulePlugin {
  readonly plugin: HostedPlugin;
  readonly module: Module;
  readonly limits: NonNullable<Context["limits"]>;
  /** The type with which it imports its caller's memory. */
  readonly callerMemory: Memory["type"] | undefined;
}

/** A compiled plugin that is a component. */
interface CompiledComponentPlugin {
  readonly plugin: HostedPlugin;
  readonly component: CompiledComponent;
}

type Compiled = CompiledModulePlugin | CompiledComponentPlugin;

type Namespaces = { [module: string]: { [name: string]: HostImport | Callable | Memory } };

/** The plugins of a project, ready to serve guests. */
export class PluginHost {
  readonly #project: LoadedProject;
  readonly #engine: Engine;
  readonly #options: HostOptions;
  readonly #compiled: Compiled[];
  /** Whether a plugin waits for the network or a process, so that guests should be called asynchronously. */
  readonly waits: boolean;
  /** A plugin that runs in a process of its own, so that guests can be called asynchronously only. */
  readonly #remote: LoadedPlugin | undefined;

  /** Compiles the plugins and checks their links; throws a ProjectError with every reason to refuse. Nothing runs. */
  constructor(project: LoadedProject, engine: Engine, options: HostOptions = {}) {
    this.#project = project;
    this.#engine = engine;
    this.#options = options;
    const diagnostics = project.plugins.flatMap((plugin) => this.#checkPlugin(plugin));
    if (diagnostics.length > 0) throw new ProjectError(diagnostics);
    const waiting = waitingPlugins(project.plugins);
    const { coreDebugger } = options;
    const isDebugged = coreDebugger !== undefined;
    const mayStop = (plugin: LoadedPlugin) => isDebugged && isDebuggable(plugin);
    this.#compiled = project.plugins.map((plugin) =>
      compilePlugin(engine, { ...plugin, waits: mayStop(plugin) || waiting.has(plugin.id) }, coreDebugger)
    );
    this.waits = isDebugged || project.plugins.some(usesNetwork);
    this.#remote = project.plugins.find(({ component }) => component?.runtime.waits === true);
  }

  /** Starts the plugins and the guest. Throws a ProjectError before any code has run; errors of that code propagate. */
  start(guest: Guest): InstanceGraph {
    this.checkGuest(guest.module, Object.keys(guest.imports ?? {}));
    return this.#start(guest, (graph) => this.#addGuest(graph, guest));
  }

  /**
   * Like `start`, for plugins that may wait in `init` and a guest that may wait in its start function. Start functions
   * of plugins block.
   */
  async startAsync(guest: Guest): Promise<InstanceGraph> {
    this.checkGuest(guest.module, Object.keys(guest.imports ?? {}));
    return await this.#startAsync(guest, (graph) => this.#addGuestAsync(graph, guest));
  }

  /**
   * Starts the plugins and a guest that is a component, as `start` does.
   *
   * @internal
   */
  startComponent(guest: ComponentGuest): InstanceGraph {
    this.checkComponent(guest.world);
    return this.#start(guest, (graph) => this.#addComponentGuest(graph, guest));
  }

  /**
   * Like `startComponent`, for plugins that may wait in `init`. Start functions of core modules block.
   *
   * @internal
   */
  async startComponentAsync(guest: ComponentGuest): Promise<InstanceGraph> {
    this.checkComponent(guest.world);
    return await this.#startAsync(guest, (graph) => this.#addComponentGuest(graph, guest));
  }

  /** Starts the plugins and adds the guest; closes the graph if any of it fails. */
  #start(guest: GuestRun, addGuest: (graph: InstanceGraph) => void): InstanceGraph {
    if (this.#remote !== undefined) {
      throw fail("plugin.waits", `${this.#remote.id} runs in a process of its own, which calls must wait for`, {
        help: "start the guest with startAsync",
      });
    }
    const graph = this.#makeGraph(guest);
    try {
      this.#addPlugins(graph, guest);
      graph.start();
      graph.moduleCompiled(guest.digest);
      addGuest(graph);
    } catch (error) {
      graph.close();
      throw error;
    }
    return graph;
  }

  async #startAsync(guest: GuestRun, addGuest: (graph: InstanceGraph) => void | Promise<void>): Promise<InstanceGraph> {
    const graph = this.#makeGraph(guest);
    try {
      this.#addPlugins(graph, guest);
      await graph.startAsync();
      await graph.moduleCompiledAsync(guest.digest);
      await addGuest(graph);
    } catch (error) {
      await graph.closeAsync();
      throw error;
    }
    return graph;
  }

  #makeGraph(guest: GuestRun): InstanceGraph {
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

  #addPlugins(graph: InstanceGraph, guest: GuestRun): void {
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
        const reason = impassable(link.type) ?? this.#exportFault(link.provider, link.export, link.type) ??
          this.#callerFault(link.provider, link.export, module.exports);
        if (reason !== undefined) found.push({ code: "link.type", severity: "error", message: `${wanted}: ${reason}` });
      }
    }
    if (found.length > 0) throw new ProjectError(found);
  }

  /**
   * Refuses a component with an interface that a plugin provides with other functions.
   *
   * @internal
   */
  checkComponent(world: InspectedWorld): void {
    const found: Diagnostic[] = [];
    const offers = this.#interfaces();
    for (const { name } of world.imports) {
      const offer = offers.get(lookUpKey(offers, name) ?? "");
      const fault = offer && this.#interfaceFault(name, offer.provider, offer.namespace, world);
      if (fault === undefined) continue;
      found.push({ code: "link.type", severity: "error", message: `the guest's import ${quote(name)}: ${fault}` });
    }
    if (found.length > 0) throw new ProjectError(found);
  }

  /** The interfaces that plugins offer to guests, by the names that `import.define` grants. */
  #interfaces(): Map<string, { readonly provider: string; readonly namespace: string }> {
    return new Map(
      this.#project.guest.filter(({ module }) => splitInterface(module) !== undefined)
        .map(({ module, provider, export: name }) => [
          module,
          { provider, namespace: name.slice(0, name.lastIndexOf("#")) },
        ]),
    );
  }

  #addComponentGuest(graph: InstanceGraph, guest: ComponentGuest): void {
    const party: Party = {
      label: "guest",
      digest: guest.digest,
      instance: undefined,
      functionType: () => undefined,
      callExport: (name, args) => graph.callGuest(name, args),
    };
    const offers = this.#interfaces();
    const provided: { [name: string]: ProvidedFunctions } = {};
    for (const { name } of guest.world.imports) {
      const offer = offers.get(lookUpKey(offers, name) ?? "");
      if (offer !== undefined) provided[name] = this.#provided(graph, party, offer.provider, offer.namespace);
    }
    graph.addGuest(party, () => guest.instantiate(guest.context ?? {}, provided));
  }

  /** The findings that prevent linking a plugin; empty if it links. */
  #checkPlugin(plugin: LoadedPlugin): Diagnostic[] {
    const found: Diagnostic[] = [];
    const links = new Map(plugin.links.map((link) => [`${link.module} ${link.name}`, link]));
    const { imports, world } = plugin.module;
    const all: readonly { readonly module: string; readonly name?: string }[] = world === undefined
      ? imports
      : world.imports.map(({ name }) => ({ module: name }));
    for (const item of all) {
      const link = links.get(`${item.module} ${item.name ?? WHOLE_INTERFACE}`);
      const reason = link === undefined ? "no grant and no bound contract links it" : this.#linkFault(link, plugin);
      if (reason === undefined) continue;
      const name = item.name === undefined ? quote(item.module) : `${quote(item.module)} ${quote(item.name)}`;
      const message = `${plugin.id}: the import ${name} cannot be linked: ${reason}`;
      found.push({ code: "link.unlinked", severity: "error", message });
    }
    return found;
  }

  #linkFault({ module, type, target }: Link, plugin: LoadedPlugin): string | undefined {
    switch (target.kind) {
      case "host":
      case "self":
        if (plugin.component !== undefined) return undefined; // its table has rows of the host only
        return serves({ module }) ? undefined : "the host does not serve it";
      case "provider":
        if (plugin.component !== undefined) {
          return this.#interfaceFault(module, target.provider, target.export, plugin.module.world!);
        }
        return impassable(type!) ?? this.#exportFault(target.provider, target.export, type!) ??
          this.#callerFault(target.provider, target.export, plugin.module.exports);
      case "providers": {
        const own = { params: type!.params.slice(1), results: type!.results };
        for (const id of target.ordinals) {
          const fault = impassable(own) ?? this.#exportFault(id, target.export, own) ??
            this.#callerFault(id, target.export, plugin.module.exports);
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

  /**
   * The reason why a component cannot import an interface from a provider: both must have the same signatures in WIT.
   */
  #interfaceFault(name: string, id: string, namespace: string, world: InspectedWorld): string | undefined {
    const provider = this.#plugin(id);
    const own = provider?.component?.provides.get(namespace);
    if (own === undefined) return `${id} is a module, and components call plugins that are components`;
    const offered = functionsOf(provider!.module.world!.exports, own);
    for (const [label, { signature }] of functionsOf(world.imports, name)) {
      const there = offered.get(label)?.signature;
      if (there !== signature) return `${quote(label)} is ${there ?? "missing"} in ${id}, and ${signature} here`;
    }
    return undefined;
  }

  /**
   * The reason why a module with these exports cannot call a function of a plugin: values of components need its
   * memory.
   */
  #callerFault(id: string, name: string, exports: readonly CallerExport[]): string | undefined {
    const provider = this.#plugin(id);
    if (provider?.component === undefined) return undefined;
    const at = name.lastIndexOf("#");
    const own = provider.component.provides.get(name.slice(0, at));
    const target = functionsOf(provider.module.world!.exports, own).get(name.slice(at + 1));
    if (target?.needsMemory === true && !exports.some((e) => e.name === "memory" && e.kind === "memory")) {
      return `its type is ${target.signature}, and the caller does not export its memory as "memory"`;
    }
    if (target?.needsRealloc === true && !exports.some(isRealloc)) {
      return `its type is ${target.signature}, and the caller does not export "cabi_realloc" of type ${REALLOC}`;
    }
    return undefined;
  }

  #addPlugin(graph: InstanceGraph, compiled: Compiled, control: Context): void {
    try {
      if ("component" in compiled) this.#addComponent(graph, compiled, control);
      else this.#addModule(graph, compiled, control);
    } catch (error) {
      const { id } = compiled.plugin;
      if (error instanceof LinkError) throw fail("link.unlinked", `${id}: ${error.message}`);
      if (error instanceof RangeError) throw fail("link.limits", `${id}: ${error.message}`);
      throw error;
    }
  }

  #addComponent(graph: InstanceGraph, { plugin, component }: CompiledComponentPlugin, control: Context): void {
    const node = new PluginNode(plugin, graph);
    const party: Party = {
      label: plugin.id,
      digest: plugin.digest,
      instance: undefined,
      functionType: () => undefined,
      callExport: (name, args) => graph.callPlugin(plugin.id, name, args),
    };
    const own = plugin.component!.provides;
    const provided = new Map<string, ProvidedFunctions>();
    for (const { module, target } of plugin.links) {
      if (target.kind === "provider") {
        provided.set(module, this.#provided(graph, party, target.provider, target.export));
      } else if (target.kind === "denied" && typeof hostInterface(module) === "string") {
        provided.set(module, unboundFunctions(plugin, module, target.reason));
      }
    }
    const coreDebugger = isDebuggable(plugin) ? this.#options.coreDebugger : undefined;
    const instantiate = (context: Context) => {
      const make = () => component.instantiate(node, context, provided, own);
      return coreDebugger?.component(plugin.id, make) ?? make();
    };
    graph.addPlugin(node, party, () => instantiateUnder(control, component.limits, instantiate));
  }

  /** The functions of an interface for a component; the provider is a component (#linkFault). */
  #provided(graph: InstanceGraph, caller: Party, provider: string, namespace: string): ProvidedFunctions {
    const { module, component } = this.#plugin(provider)!;
    const prefix = `${namespace}#`;
    const names = module.exports.flatMap(({ name }) => name.startsWith(prefix) ? [name.slice(prefix.length)] : []);
    return Object.fromEntries(names.map((name) => {
      return [name, component!.runtime.forComponent(graph.typedEntry(provider, prefix + name, caller))];
    }));
  }

  #plugin(id: string): LoadedPlugin | undefined {
    return this.#project.plugins.find((plugin) => plugin.id === id);
  }

  /** The function by which a module calls an export of a plugin. */
  #coreEntry(graph: InstanceGraph, id: string, name: string, caller: Party): Callable {
    const component = this.#plugin(id)?.component;
    if (component === undefined) return graph.entry(id, name, caller);
    return component.runtime.forCore(graph.typedEntry(id, name, caller), coreCaller(graph, caller));
  }

  #addModule(graph: InstanceGraph, compiled: CompiledModulePlugin, control: Context): void {
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
        : host.get(`${link.module} ${link.name}`) ??
          contractImport(link, (id, name) => this.#coreEntry(graph, id, name, party));
    }
    const instantiate = (context: Context) => {
      const instance = module.instantiate(context, imports);
      return this.#options.coreDebugger?.plugin(instance, plugin.id) ?? new ModuleInstance(instance);
    };
    graph.addPlugin(node, party, () => instantiateUnder(control, limits, instantiate));
  }

  #addGuest(graph: InstanceGraph, guest: Guest): void {
    const party = guestParty(graph, guest);
    const imports = this.#guestImports(graph, guest, party);
    graph.addGuest(party, () => new ModuleInstance(guest.module.instantiate(guest.context ?? {}, imports)));
  }

  #addGuestAsync(graph: InstanceGraph, guest: Guest): Promise<void> {
    const party = guestParty(graph, guest);
    const imports = this.#guestImports(graph, guest, party);
    return graph.addGuestAsync(party, async (context) => {
      const all = Object.assign(context, { ...guest.context, ...context });
      const instance = await guest.module.instantiateAsync(all, imports);
      return await this.#options.coreDebugger?.guest(instance) ?? new ModuleInstance(instance);
    });
  }

  #guestImports(graph: InstanceGraph, guest: Guest, party: Party) {
    const imports: { [module: string]: { readonly [name: string]: unknown } } = Object.create(null);
    for (const { module: namespace, name, provider, export: exported } of this.#project.guest) {
      const functions = imports[namespace] ??= Object.create(null) as { [name: string]: unknown };
      (functions as { [name: string]: unknown })[name] = this.#coreEntry(graph, provider, exported, party);
    }
    return Object.assign(imports, guest.imports);
  }
}

/** The functions of an optional contract without a provider: a call traps, since WIT has no value for this case. */
function unboundFunctions({ id, module }: LoadedPlugin, name: string, reason: string): ProvidedFunctions {
  const refuse = () => {
    throw new TrapError(`${name} cannot be called by ${id}: ${reason}`);
  };
  return Object.fromEntries([...functionsOf(module.world!.imports, name).keys()].map((label) => [label, refuse]));
}

/** An export of a module, as the engine or an inspector describes it. */
interface CallerExport {
  readonly name: string;
  readonly kind: string;
  readonly type?: string | FunctionType;
}

const REALLOC = "[i32 i32 i32 i32] -> [i32]";

function isRealloc({ name, type }: CallerExport): boolean {
  return name === "cabi_realloc" && (typeof type === "object" ? engineType(type) : type) === REALLOC;
}

/** The functions of an interface among imports or exports of a world. */
function functionsOf(items: readonly WorldItem[], name: string | undefined): Map<string, InspectedFunction> {
  return new Map(items.find((item) => item.name === name)?.functions.map((f) => [f.name, f]));
}

/** The name among `offers` that satisfies the import of an interface: the same, or that of a compatible version. */
function lookUpKey(offers: ReadonlyMap<string, unknown>, name: string): string | undefined {
  return [...offers.keys()].find((key) => sameInterface(key, name));
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

/** Whether a debugger can have a form of its own of a plugin: its code runs in this process. */
export function isDebuggable({ component }: LoadedPlugin): boolean {
  return component?.runtime.waits !== true;
}

/** Whether the plugin uses host functions that wait, or runs in another process. */
function usesNetwork({ links, component }: LoadedPlugin): boolean {
  return component?.runtime.waits === true ||
    links.some(({ module, target }) => target.kind === "host" && waitsForNetwork(module));
}

function waitsForNetwork(module: string): boolean {
  if (module === "waft:net@1") return true;
  const row = hostInterface(module);
  return typeof row !== "string" && row.waits;
}

/** The memory and `cabi_realloc` of a module that calls a component; undefined while its start function runs. */
function coreCaller(graph: InstanceGraph, party: Party): CoreCallerSource {
  return () => {
    const { instance } = party;
    const memory = instance?.exports.memory;
    if (instance === undefined || !(memory instanceof Memory)) return undefined;
    if (memory.type.limits.address === I64) throw new TrapError("the caller's memory is a 64-bit one");
    return { memory, realloc: (...args) => graph.callNested(instance, "cabi_realloc", ...args) as number };
  };
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
function compilePlugin(engine: Engine, plugin: HostedPlugin, coreDebugger: PluginDebugger | undefined): Compiled {
  try {
    const { component, bytes, maxMemoryPages } = plugin;
    if (component !== undefined) {
      const debugging = coreDebugger !== undefined && isDebuggable(plugin)
        ? { core: coreDebugger.coreOf(plugin.id), leastPages: coreDebugger.leastPages }
        : undefined;
      return { plugin, component: component.runtime.compile(engine, bytes, maxMemoryPages, debugging) };
    }
    const parsed = engine.parse(plugin.bytes);
    const imported = parsed.imports.flatMap(({ desc }) => desc.kind === "memory" ? [desc.type] : []);
    const fault = imported.length > 1 ? "it imports its caller's memory twice" : imported.map(slotFault)[0];
    if (fault !== undefined) throw fail("link.type", `${plugin.id}: ${fault}`);
    const pages = Math.floor(plugin.maxMemoryPages / Math.max(1, parsed.memories.length));
    return {
      callerMemory: imported[0],
      plugin,
      module: coreDebugger === undefined
        ? engine.compileParsed(parsed)
        : engine.compile(coreDebugger.formOf(plugin.id, bytes)),
      limits: {
        maxMemoryPages: Math.max(pages, coreDebugger?.leastPages ?? 0),
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
function contractImport(
  { type, target }: Link,
  entry: (id: string, name: string) => Callable,
): HostImport | Callable {
  switch (target.kind) {
    case "provider":
      return entry(target.provider, target.export);
    case "providers": {
      const entries = target.ordinals.map((id) => entry(id, target.export));
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

/** A function type in the engine's notation. */
function engineType({ params, results }: FunctionType): string {
  return `[${params.join(" ")}] -> [${results.join(" ")}]`;
}

function logToStderr(plugin: string, level: number, text: string): void {
  process.stderr.write(`${plugin}: ${LOG_LEVELS[level]}: ${text}\n`);
}
