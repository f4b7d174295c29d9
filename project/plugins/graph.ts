/**
 * A guest instance graph: one guest with its plugins. Every call into a plugin goes through here.
 *
 * In: plugin nodes, instantiated in start order, and a guest. Out: calls of guest exports, with hooks; traps that
 * name the plugin in which they happened. Invariants: a call leaves a plugin's stack of callers as it found it, however
 * the call ends; after a failure inside a plugin no code of the graph runs again, since its state may be half updated;
 * no error that leaves a plugin can be caught by WebAssembly code.
 *
 * Each call has two forms. The synchronous form blocks while a plugin waits for the network. The asynchronous form
 * suspends the guest and the plugins between; plugins that cannot wait (node.ts) are still called synchronously.
 * Asynchronous calls of a graph take turns, and while a plugin is suspended, only its callees run in the graph.
 */
import { Bug, type Context, ExhaustionError, type Instance, TrapError } from "@waft/engine";
import { attribute, isExit } from "./error_attribution.ts";
import type { CallerSlot } from "./caller_slot.ts";
import { type Callable, type CalledInstance, type GraphInstance, ModuleInstance } from "./graph_instance.ts";
import type { Child, GraphServices, Party, PluginNode } from "./node.ts";
import type { TypedFunction } from "./component_part.ts";
import { Waiting } from "./waiting.ts";

/** The maximum number of calls into plugins in progress. */
const MAX_DEPTH = 100;

/** Creates an instance under `control` and charges its fuel. */
export function instantiateUnder<T>(
  control: Context,
  limits: NonNullable<Context["limits"]>,
  instantiate: (context: Context) => T,
): T {
  const context: Context = { ...control, limits };
  try {
    return instantiate(context);
  } finally {
    if (context.fuel !== undefined) control.fuel = context.fuel;
  }
}

/** The parts of a graph. */
interface GraphParts {
  /** The limits of the plugins' own functions (`init`, `stop`, hooks). */
  readonly control: Context;
  readonly args: readonly string[];
  readonly env: readonly (readonly [string, string])[];
  readonly stdio: readonly [number, number, number];
  readonly root: string;
  readonly log: (plugin: string, level: number, text: string) => void;
  readonly instantiateChild: (bytes: Uint8Array, maxMemoryPages: number) => Child;
}

/** An instantiated plugin. */
interface Live {
  readonly node: PluginNode;
  readonly party: Party;
  readonly instance: GraphInstance;
  started: boolean;
}

/** A guest and its plugins; the GraphServices of their nodes. */
export class InstanceGraph {
  /** @internal */
  readonly args: GraphServices["args"];
  /** @internal */
  readonly env: GraphServices["env"];
  /** @internal */
  readonly stdio: GraphServices["stdio"];
  /** @internal */
  readonly root: string;
  /** @internal */
  readonly log: GraphServices["log"];
  /** @internal */
  readonly instantiateChild: GraphServices["instantiateChild"];
  readonly #control: Context;
  readonly #live: Live[] = [];
  readonly #byId = new Map<string, Live>();
  #guest: Party | undefined;
  #subjects: string[] = [];
  #depth = 0;
  #end: "open" | "closed" | "failed" = "open";
  /** The asynchronous call in progress; undefined while a synchronous one runs. */
  #waiting: Waiting | undefined;
  /** The parties that run in it, innermost last. */
  readonly #running: Party[] = [];
  #guestInstance: CalledInstance | undefined;
  /** Resolves when the asynchronous calls so far have ended. */
  #turn: Promise<unknown> = Promise.resolve();
  /** The error that ended the graph. */
  #failure: unknown;

  /** @internal */
  constructor(parts: GraphParts) {
    this.#control = parts.control;
    this.args = parts.args;
    this.env = parts.env;
    this.stdio = parts.stdio;
    this.root = parts.root;
    this.log = parts.log;
    this.instantiateChild = parts.instantiateChild;
  }

  /** @internal */
  get subject(): string | undefined {
    return this.#subjects.at(-1);
  }

  /** @internal */
  get mayWait(): boolean {
    return this.#waiting !== undefined;
  }

  /** The guest's instance, if the guest is a module. */
  get guest(): Instance {
    const instance = this.#guest?.instance;
    if (instance === undefined) throw new Bug("The graph has no guest yet, or one that is a component");
    return instance;
  }

  /** The guest. Throws a Bug before it has been added. */
  get #called(): CalledInstance {
    if (this.#guestInstance === undefined) throw new Bug("The graph has no guest yet");
    return this.#guestInstance;
  }

  /**
   * Creates the instance of a plugin; its start function may run.
   *
   * @internal
   */
  addPlugin(node: PluginNode, party: Party, instantiate: () => GraphInstance): void {
    const instance = this.#inPlugin(node, undefined, instantiate);
    if (instance instanceof ModuleInstance) {
      party.instance = instance.instance;
      node.memory.attach(instance.instance, node.slot === undefined ? 0 : 1);
      node.slot?.attach(instance.instance);
    }
    const live = { node, party, instance, started: false };
    this.#live.push(live);
    this.#byId.set(node.plugin.id, live);
  }

  /** Runs the `init` functions of the plugins, in start order; none may wait. */
  start(): void {
    for (const live of this.#live) {
      this.#engineCall(live, "waft:self@1#init");
      live.started = true;
    }
  }

  /** `start` for plugins that may wait. */
  startAsync(): Promise<void> {
    return this.#inTurn(this.#control, async (waiting) => {
      for (const live of this.#live) {
        await this.#engineCallWaiting(live, waiting, "waft:self@1#init", []);
        live.started = true;
      }
    });
  }

  /** Calls the `module-compiled` hooks with the digest of a compiled module. */
  moduleCompiled(digest: string): void {
    this.#hooks("module-compiled", digest);
  }

  /** `moduleCompiled` for plugins that may wait. */
  moduleCompiledAsync(digest: string): Promise<void> {
    return this.#inTurn(this.#control, (waiting) => this.#hooksWaiting(waiting, "module-compiled", digest));
  }

  /**
   * Creates the guest's instance; its start function may run.
   *
   * @internal
   */
  addGuest(party: Party, instantiate: () => CalledInstance): void {
    this.#guest = party;
    this.#setGuest(party, instantiate());
  }

  #setGuest(party: Party, instance: CalledInstance): void {
    this.#guestInstance = instance;
    if (instance instanceof ModuleInstance) party.instance = instance.instance;
  }

  /**
   * The same, with a start function that may wait.
   *
   * @internal
   */
  addGuestAsync(party: Party, instantiate: (context: Context) => Promise<CalledInstance>): Promise<void> {
    this.#guest = party;
    return this.#inTurn(this.#control, async (waiting) => {
      this.#setGuest(party, await this.#runGuest(waiting, instantiate));
    });
  }

  /**
   * The function by which `caller` calls an export of a plugin.
   *
   * @internal
   */
  entry(id: string, name: string, caller: Party): Callable {
    const live = this.#byId.get(id)!;
    const { node, instance } = live;
    const fn = instance.function(name);
    if (!node.plugin.waits) return (...args) => this.#inPlugin(node, caller, () => fn(...args));
    return (...args) => {
      const waiting = this.#waiting;
      if (waiting === undefined) return this.#inPlugin(node, caller, () => fn(...args));
      return this.#inPluginWaiting(live, waiting, caller, (context) => instance.callAsync(context, name, ...args));
    };
  }

  /**
   * A function of a plugin that is a component, with its type.
   *
   * @internal
   */
  typedEntry(id: string, name: string, caller: Party): TypedFunction {
    const type = this.#byId.get(id)!.instance.type!(name);
    return { type, call: this.entry(id, name, caller) };
  }

  /**
   * Calls a function of a module under the limits of the call in progress, which may have suspended the module.
   *
   * @internal
   */
  callNested(instance: Instance, name: string, ...args: unknown[]): unknown {
    const waiting = this.#waiting;
    const call = (context: Context) => instance.call(context, name, ...args);
    return waiting === undefined ? call({}) : waiting.insideNow(call);
  }

  /** Calls an export of a plugin that a plugin which it called may call back. */
  callPlugin(id: string, name: string, args: readonly unknown[]): unknown {
    const live = this.#byId.get(id)!;
    const { node, instance } = live;
    const waiting = this.#waiting;
    if (waiting !== undefined && node.plugin.waits) {
      return this.#inPluginWaiting(live, waiting, undefined, (context) => instance.callAsync(context, name, ...args));
    }
    return this.#inPlugin(node, undefined, () => instance.function(name)(...args));
  }

  /**
   * Calls an export of the guest; plugins with the respective hooks observe or refuse the call. The context also limits
   * the plugins that the guest calls, but does not interrupt their blocking host functions.
   */
  call(context: Context, name: string, ...args: unknown[]): unknown {
    this.#mustBeOpen();
    const waiting = this.#waiting;
    if (waiting === undefined) return this.#call(context, name, args);
    if (this.#running.at(-1) !== this.#guest) {
      throw new Error("A plugin of the graph is waiting in an asynchronous call: callAsync waits for its turn");
    }
    this.#waiting = undefined;
    try {
      return this.#call(context, name, args);
    } finally {
      this.#waiting = waiting;
    }
  }

  #call(context: Context, name: string, args: readonly unknown[]): unknown {
    for (const live of this.#live) {
      if (!live.node.plugin.hooks.includes("intercept-call")) continue;
      if (this.#hook(live, "intercept-call", name) !== 0) {
        throw new TrapError(`the call of "${name}" was refused by plugin ${live.node.plugin.id}`);
      }
    }
    this.#hooks("before-call", name);
    let result: unknown;
    try {
      result = this.#called.call(context, name, ...args);
    } catch (error) {
      if (this.#end === "open" && !isExit(error)) this.#hooks("after-call", name, 1);
      throw error;
    }
    this.#hooks("after-call", name, 0);
    return result;
  }

  /**
   * Calls an export of the guest as `call` does, and waits for the guest's host functions and its plugins without
   * blocking the event loop. Calls take turns: a host function that makes such a call and waits for it inside another
   * call deadlocks. A deadline or a signal that ends the call while a plugin is at work also ends the graph.
   */
  callAsync(context: Context, name: string, ...args: unknown[]): Promise<unknown> {
    return this.#inTurn(context, (waiting) => this.#callWaiting(waiting, name, args));
  }

  /** Calls an export of the guest on behalf of a plugin: the result, or a promise of it where plugins may wait. */
  callGuest(name: string, args: readonly unknown[]): unknown {
    const waiting = this.#waiting;
    return waiting === undefined ? this.call({}, name, ...args) : this.#callWaiting(waiting, name, args);
  }

  async #callWaiting(waiting: Waiting, name: string, args: readonly unknown[]): Promise<unknown> {
    this.#mustBeOpen();
    for (const live of this.#live) {
      if (!live.node.plugin.hooks.includes("intercept-call")) continue;
      if (await this.#hookWaiting(live, waiting, "intercept-call", name) !== 0) {
        throw new TrapError(`the call of "${name}" was refused by plugin ${live.node.plugin.id}`);
      }
    }
    await this.#hooksWaiting(waiting, "before-call", name);
    let result: unknown;
    try {
      result = await this.#runGuest(waiting, (context) => this.#called.callAsync(context, name, ...args));
    } catch (error) {
      if (this.#end === "open" && !isExit(error)) await this.#hooksWaiting(waiting, "after-call", name, 1);
      throw error;
    }
    await this.#hooksWaiting(waiting, "after-call", name, 0);
    return result;
  }

  /** Ends the graph as `close` does; `stop` may wait. */
  closeAsync(): Promise<void> {
    return this.#inTurn(this.#control, async (waiting) => {
      if (this.#end === "closed") return;
      try {
        if (this.#end === "open") {
          for (const live of this.#live.toReversed()) {
            if (live.started) await this.#engineCallWaiting(live, waiting, "waft:self@1#stop", []);
          }
        }
      } finally {
        this.#release("closed");
      }
    });
  }

  /** Ends the graph: runs `stop` in reverse order unless a plugin failed, and releases all resources. */
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
    if (!instance.has(name)) return undefined;
    return this.#inPlugin(node, undefined, () => instance.call(this.#control, name, ...args));
  }

  async #hooksWaiting(waiting: Waiting, hook: string, subject: string, ...args: unknown[]): Promise<void> {
    for (const live of this.#live) {
      if (live.node.plugin.hooks.includes(hook)) await this.#hookWaiting(live, waiting, hook, subject, ...args);
    }
  }

  async #hookWaiting(
    live: Live,
    waiting: Waiting,
    hook: string,
    subject: string,
    ...args: unknown[]
  ): Promise<unknown> {
    this.#subjects.push(subject);
    try {
      return await this.#engineCallWaiting(live, waiting, `waft:hooks@1#${hook}`, args);
    } finally {
      this.#subjects.pop();
    }
  }

  #engineCallWaiting(live: Live, waiting: Waiting, name: string, args: readonly unknown[]): unknown {
    const { node, instance } = live;
    if (!node.plugin.waits) return this.#engineCall(live, name, ...args);
    if (!instance.has(name)) return undefined;
    return this.#inPluginWaiting(live, waiting, undefined, (context) => instance.callAsync(context, name, ...args));
  }

  /** Makes an asynchronous call once the previous ones have ended. */
  async #inTurn<T>(context: Context, action: (waiting: Waiting) => Promise<T>): Promise<T> {
    const waiting = new Waiting(context);
    const before = this.#turn;
    let ended = (): void => {};
    this.#turn = new Promise<void>((resolve) => ended = resolve);
    try {
      await before;
      this.#waiting = waiting;
      return await action(waiting);
    } finally {
      this.#waiting = undefined;
      const fuel = waiting.fuelLeft;
      if (fuel !== undefined) context.fuel = fuel;
      ended();
    }
  }

  /** Runs the guest in an asynchronous call. If the graph ends during the call, the call fails with the same error. */
  async #runGuest<T>(waiting: Waiting, action: (context: Context) => Promise<T>): Promise<T> {
    const depth = this.#running.push(this.#guest!);
    try {
      return await (depth === 1 ? action(waiting.context) : waiting.inside(action as never) as Promise<T>);
    } catch (error) {
      // A deadline or a signal may end the guest's call first; the plugin it waited for is then interrupted in an
      // unknown state.
      const inner = this.#running.length > depth ? this.#running.at(-1)! : undefined;
      if (inner !== undefined && this.#end === "open") {
        this.#failure ??= waiting.aborted(error) ? error : attribute(inner.label, error);
        this.#release("failed");
      }
      throw this.#failure !== undefined && !isExit(error) ? this.#failure : error;
    } finally {
      this.#leave(depth);
    }
  }

  /** Removes the running parties from `depth` on; a call ended from outside may still be among them. */
  #leave(depth: number): void {
    if (this.#running.length >= depth) this.#running.length = depth - 1;
  }

  /** Every way into a plugin that may wait, in an asynchronous call. */
  async #inPluginWaiting(
    { node, party }: Live,
    waiting: Waiting,
    caller: Party | undefined,
    action: (context: Context) => Promise<unknown>,
  ): Promise<unknown> {
    this.#mustBeOpen();
    if (this.#depth >= MAX_DEPTH) throw new ExhaustionError("call stack exhausted");
    if (caller !== undefined && this.#running.at(-1) !== caller) {
      throw new TrapError(`plugin ${node.plugin.id} was called while another call of the graph was waiting`);
    }
    this.#depth++;
    node.callers.push(caller);
    const depth = this.#running.push(party);
    let slot: ReturnType<CallerSlot["enter"]> | undefined;
    try {
      slot = node.slot?.enter(caller);
      return await (depth === 1 ? action(waiting.context) : waiting.inside(action));
    } catch (error) {
      const failure = waiting.aborted(error) ? error : attribute(node.plugin.id, error);
      this.#failure ??= failure;
      this.#release("failed");
      throw failure;
    } finally {
      this.#leave(depth);
      if (slot !== undefined) node.slot!.leave(slot);
      node.callers.pop();
      this.#depth--;
    }
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
    let slot: ReturnType<CallerSlot["enter"]> | undefined;
    try {
      slot = node.slot?.enter(caller);
      return action();
    } catch (error) {
      const failure = attribute(node.plugin.id, error);
      this.#failure ??= failure;
      this.#release("failed");
      throw failure;
    } finally {
      if (slot !== undefined) node.slot!.leave(slot);
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
      this.#guestInstance?.close();
    }
    this.#end = end;
  }
}
