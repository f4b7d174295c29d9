/**
 * One guest with its plugins: a guest instance graph. Whoever calls into a plugin goes through here.
 *
 * In: plugin nodes, instantiated in start order, and a guest. Out: calls of guest exports, with hooks; traps that say in which
 * plugin they happened. Invariants: a plugin's stack of callers is the same after a call as before it, whatever the call did;
 * after a failure inside a plugin nothing of the graph runs again, since its state may be half updated; nothing that leaves
 * a plugin can be caught by WebAssembly code. Design: §1.4, §1.5.
 */
import { Bug, type Context, ExhaustionError, type Instance, type Module, TrapError, WasmException } from "@waft/engine";
import { UNCATCHABLE } from "@waft/engine/errors";
import type { Child, GraphServices, Party, PluginNode } from "./node.ts";

/** Most calls into plugins that are under way at once. */
const MAX_DEPTH = 100;

/** A function of an instance, as JavaScript calls it. */
export type Callable = (...args: unknown[]) => unknown;

const PLUGIN_OF = new WeakMap<object, string>();

/** The plugin in which a trap happened; undefined when it was none. */
export function pluginOf(error: unknown): string | undefined {
  return typeof error === "object" && error !== null ? PLUGIN_OF.get(error) : undefined;
}

/** Makes an instance under `control`, whose fuel it uses up. */
export function instantiateUnder(
  module: Module,
  control: Context,
  limits: NonNullable<Context["limits"]>,
  imports: Parameters<Module["instantiate"]>[1],
): Instance {
  const context: Context = { ...control, limits };
  try {
    return module.instantiate(context, imports);
  } finally {
    if (context.fuel !== undefined) control.fuel = context.fuel;
  }
}

/** What a graph is made of. */
export interface GraphParts {
  /** What the plugins' own functions (`init`, `stop`, hooks) are subject to. */
  readonly control: Context;
  readonly args: readonly string[];
  readonly env: readonly (readonly [string, string])[];
  readonly stdio: readonly [number, number, number];
  readonly root: string;
  readonly log: (plugin: string, level: number, text: string) => void;
  readonly instantiateChild: (bytes: Uint8Array, maxMemoryPages: number) => Child;
}

/** A plugin that is there, with the functions that the engine calls. */
interface Live {
  readonly node: PluginNode;
  readonly party: Party;
  readonly instance: Instance;
  started: boolean;
}

/** A guest and its plugins. */
export class InstanceGraph implements GraphServices {
  readonly args: GraphServices["args"];
  readonly env: GraphServices["env"];
  readonly stdio: GraphServices["stdio"];
  readonly root: string;
  readonly log: GraphServices["log"];
  readonly instantiateChild: GraphServices["instantiateChild"];
  readonly #control: Context;
  readonly #live: Live[] = [];
  readonly #byId = new Map<string, Live>();
  #guest: Party | undefined;
  #subjects: string[] = [];
  #depth = 0;
  #end: "open" | "closed" | "failed" = "open";
  /** What ended the graph. */
  #failure: unknown;

  constructor(parts: GraphParts) {
    this.#control = parts.control;
    this.args = parts.args;
    this.env = parts.env;
    this.stdio = parts.stdio;
    this.root = parts.root;
    this.log = parts.log;
    this.instantiateChild = parts.instantiateChild;
  }

  get subject(): string | undefined {
    return this.#subjects.at(-1);
  }

  /** The guest's instance. */
  get guest(): Instance {
    const instance = this.#guest?.instance;
    if (instance === undefined) throw new Bug("The graph has no guest yet");
    return instance;
  }

  /** Makes the instance of a plugin, whose start function may run. */
  addPlugin(node: PluginNode, party: Party, instantiate: () => Instance): void {
    const instance = this.#inPlugin(node, undefined, instantiate);
    party.instance = instance;
    node.memory.attach(instance);
    const live = { node, party, instance, started: false };
    this.#live.push(live);
    this.#byId.set(node.plugin.id, live);
  }

  /** Runs `init` of the plugins that have one, in start order. */
  start(): void {
    for (const live of this.#live) {
      this.#engineCall(live, "waft:self@1#init");
      live.started = true;
    }
  }

  /** Tells the plugins that may know of a module that was compiled. */
  moduleCompiled(digest: string): void {
    this.#hooks("module-compiled", digest);
  }

  /** Makes the guest's instance, whose start function may run. */
  addGuest(party: Party, instantiate: () => Instance): void {
    this.#guest = party;
    party.instance = instantiate();
  }

  /** The function by which `caller` calls an export of a plugin. */
  entry(id: string, name: string, caller: Party): Callable {
    const { node, instance } = this.#byId.get(id)!;
    const fn = instance.exports[name] as Callable;
    return (...args) => this.#inPlugin(node, caller, () => fn(...args));
  }

  /** Calls an export of a plugin that a plugin which it called may call back. */
  callPlugin(id: string, name: string, args: readonly unknown[]): unknown {
    const { node, instance } = this.#byId.get(id)!;
    return this.#inPlugin(node, undefined, () => (instance.exports[name] as Callable)(...args));
  }

  /**
   * Calls an export of the guest; plugins that may observe or refuse it do. What the context limits, it limits for the plugins that the
   * guest calls, too; their blocking host functions are not disturbed.
   */
  call(context: Context, name: string, ...args: unknown[]): unknown {
    this.#mustBeOpen();
    for (const live of this.#live) {
      if (!live.node.plugin.hooks.includes("intercept-call")) continue;
      if (this.#hook(live, "intercept-call", name) !== 0) {
        throw new TrapError(`the call of "${name}" was refused by plugin ${live.node.plugin.id}`);
      }
    }
    this.#hooks("before-call", name);
    let result: unknown;
    try {
      result = this.guest.call(context, name, ...args);
    } catch (error) {
      if (this.#end === "open" && !isExit(error)) this.#hooks("after-call", name, 1);
      throw error;
    }
    this.#hooks("after-call", name, 0);
    return result;
  }

  /** Ends the graph: runs `stop` in reverse order unless a plugin failed, and gives everything back. */
  close(): void {
    if (this.#end === "closed") return;
    try {
      if (this.#end === "open") {
        for (const live of this.#live.toReversed()) {
          if (live.started) this.#engineCall(live, "waft:self@1#stop");
        }
      }
    } finally {
      this.#release("closed");
    }
  }

  #hooks(hook: string, subject: string, ...args: unknown[]): void {
    for (const live of this.#live) {
      if (live.node.plugin.hooks.includes(hook)) this.#hook(live, hook, subject, ...args);
    }
  }

  #hook(live: Live, hook: string, subject: string, ...args: unknown[]): unknown {
    this.#subjects.push(subject);
    try {
      return this.#engineCall(live, `waft:hooks@1#${hook}`, ...args);
    } finally {
      this.#subjects.pop();
    }
  }

  #engineCall({ node, instance }: Live, name: string, ...args: unknown[]): unknown {
    if (!node.plugin.module.exports.some((e) => e.name === name)) return undefined;
    return this.#inPlugin(node, undefined, () => instance.call(this.#control, name, ...args));
  }

  #mustBeOpen(): void {
    if (this.#end === "open") return;
    const why = this.#failure instanceof Error ? ` after: ${this.#failure.message}` : "";
    throw new TrapError(`the instance graph is closed${why}`);
  }

  /** Every way into a plugin. */
  #inPlugin<T>(node: PluginNode, caller: Party | undefined, action: () => T): T {
    this.#mustBeOpen();
    if (this.#depth >= MAX_DEPTH) throw new ExhaustionError("call stack exhausted");
    this.#depth++;
    node.callers.push(caller);
    try {
      return action();
    } catch (error) {
      const failure = attribute(node.plugin.id, error);
      this.#failure ??= failure;
      this.#release("failed");
      throw failure;
    } finally {
      node.callers.pop();
      this.#depth--;
    }
  }

  #release(end: "closed" | "failed"): void {
    if (this.#end === "open") {
      for (const { node, instance } of this.#live) {
        instance.close();
        for (const closer of node.closers.splice(0)) closer();
      }
      this.#guest?.instance?.close();
    }
    this.#end = end;
  }
}

/** An exit of the guest, which passes through everything. */
function isExit(error: unknown): boolean {
  return typeof error === "object" && error !== null && UNCATCHABLE in error;
}

/** What leaves a plugin: a trap with the plugin's name, unless a plugin further in or the guest caused it. */
function attribute(id: string, error: unknown): unknown {
  if (error instanceof Bug || isExit(error) || pluginOf(error) !== undefined || GUEST_TRAPS.has(error as object)) {
    return error;
  }
  let trap: TrapError;
  if (error instanceof ExhaustionError || isStackOverflow(error)) {
    const frames = error instanceof ExhaustionError ? error.frames : [];
    trap = new ExhaustionError(`call stack exhausted in plugin ${id}`, frames);
  } else if (error instanceof TrapError) trap = new TrapError(`${error.message} in plugin ${id}`, error.frames);
  else if (error instanceof WasmException) trap = new TrapError(`uncaught exception in plugin ${id}`);
  else if (isRefusal(error)) return error;
  else trap = new TrapError(`${error instanceof Error ? error.message : String(error)} in plugin ${id}`);
  PLUGIN_OF.set(trap, id);
  return trap;
}

/** Instantiation that failed before any code ran: limits and links, which plugin_host.ts words. */
function isRefusal(error: unknown): boolean {
  return error instanceof RangeError;
}

function isStackOverflow(error: unknown): boolean {
  return error instanceof RangeError && /call stack/i.test(error.message);
}

const GUEST_TRAPS = new WeakSet<object>();

/** Marks a trap of the guest, so that a plugin which it passes through is not blamed. */
export function markGuestTrap(error: unknown): unknown {
  if (error instanceof TrapError && pluginOf(error) === undefined) GUEST_TRAPS.add(error);
  return error;
}
