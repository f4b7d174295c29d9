/**
 * Plugins that are components: their code, their imports and their calls.
 *
 * In: a component, and its node with the link table. Out: instances for a graph (node.ts). Invariants: memories
 * and tables of all core instances together have at most the plugin's limits; an exit of the component is a trap of the
 * plugin; the error case of a `result` is a value, and does not end the graph.
 */
import type { Context, Engine } from "@waft/engine";
import { decodeComponent } from "@waft/component/internal/binary/decode";
import {
  compileBinary,
  type Component,
  type ComponentInstance,
  functionTypes,
} from "@waft/component/internal/component";
import { forCoreCaller } from "@waft/component/internal/link/core_caller";
import { unwrapResult } from "@waft/component/internal/link/host_exports";
import { countStorage } from "@waft/component/internal/link/memory_count";
import { ComponentFunctions, failed, ok } from "./component_functions.ts";
import type {
  CompiledComponent,
  ComponentPart,
  ComponentPlace,
  ComponentRuntime,
  ProvidedFunctions,
} from "./component_part.ts";
import { componentImports } from "./component_imports.ts";
import type { Callable, GraphInstance } from "./graph_instance.ts";
import { MAX_HEAP_BYTES, MAX_TABLE_ELEMENTS } from "./node.ts";

/** Compiles a component whose memories have at most `maxMemoryPages` together. */
export const compile: ComponentRuntime["compile"] = (engine: Engine, bytes, maxMemoryPages, debugging) => {
  const limits = storageLimits(bytes, maxMemoryPages);
  if (debugging === undefined) return new Compiled(compileBinary(engine, bytes), limits);
  const { core, leastPages } = debugging;
  // Core modules share their limit with the records of activations.
  const raised = { ...limits, maxMemoryPages: Math.max(limits.maxMemoryPages!, leastPages) };
  return new Compiled(compileBinary(engine, bytes, { callsBeforeAdapter: 0, coreDebugger: core }), raised);
};

/** The limits of each core instance of a component whose memories have at most `maxMemoryPages` together. */
export function storageLimits(bytes: Uint8Array, maxMemoryPages: number): CompiledComponent["limits"] {
  const { memories, tables } = countStorage(decodeComponent(bytes));
  return {
    maxMemoryPages: Math.floor(maxMemoryPages / Math.max(1, memories)),
    maxTableElements: Math.floor(MAX_TABLE_ELEMENTS / Math.max(1, tables)),
    maxHeapBytes: MAX_HEAP_BYTES,
  };
}

class Compiled implements CompiledComponent {
  readonly limits: CompiledComponent["limits"];
  readonly #component: Component;

  constructor(component: Component, limits: CompiledComponent["limits"]) {
    this.#component = component;
    this.limits = limits;
  }

  instantiate(
    place: ComponentPlace,
    context: Context,
    provided: ReadonlyMap<string, ProvidedFunctions>,
    provides: ComponentPart["provides"],
  ): GraphInstance {
    const imports = { ...componentImports(place), ...Object.fromEntries(provided) };
    return new PluginInstance(this.#component.instantiate(context, imports), provides);
  }
}

class PluginInstance extends ComponentFunctions implements GraphInstance {
  readonly #instance: ComponentInstance;

  constructor(instance: ComponentInstance, provides: ComponentPart["provides"]) {
    super(functionTypes(instance), provides);
    this.#instance = instance;
  }

  function(name: string): Callable {
    const [iface, label] = this.own(name).split("#") as [string, string];
    const call = (this.#instance.exports as { [name: string]: { [name: string]: Callable } })[iface][label];
    return this.returnsResult(name) ? (...args) => asResult(() => call(...args)) : call;
  }

  call(context: Context, name: string, ...args: unknown[]): unknown {
    const call = () => this.#instance.call(context, this.own(name), ...args);
    return this.returnsResult(name) ? asResult(call) : call();
  }

  async callAsync(context: Context, name: string, ...args: unknown[]): Promise<unknown> {
    const call = this.#instance.callAsync(context, this.own(name), ...args);
    return this.returnsResult(name) ? await call.then(ok, failed) : await call;
  }

  close(): void {
    this.#instance.close();
  }
}

/** A returned value or a thrown ComponentError as the cases of a `result`. */
function asResult(call: () => unknown): unknown {
  try {
    return ok(call());
  } catch (error) {
    return failed(error);
  }
}

/** A function of a component for a core module. */
export const forCore: ComponentRuntime["forCore"] = ({ type, call }, caller) =>
  forCoreCaller(type, caller, call) as Callable;

/** A function of a component for another component, which takes the error case of a `result` as a ComponentError. */
export const forComponent: ComponentRuntime["forComponent"] = ({ type, call }) => {
  if (type.result?.kind !== "result") return call;
  return (...args) => {
    const value = call(...args);
    return value instanceof Promise ? value.then((v) => unwrapResult(type, v)) : unwrapResult(type, value);
  };
};
