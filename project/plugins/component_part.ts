/**
 * A plugin that is a component, as the rest of the plugin host sees it. Types only: the code behind them
 * (component_plugin.ts) is loaded for projects with components.
 *
 * In: the engine, a plugin's bytes, its links. Out: instances whose functions take and return values in their
 * form in JavaScript, a `result` as `{ tag, val }`, and functions between them and other callers. Invariant: an
 * interface is linked for a link of the table only, with the grants of that link.
 */
import type { Context, Engine } from "@waft/engine";
import type { CoreDebugger } from "@waft/component/internal/component";
import type { FuncType } from "@waft/component/internal/model/types";
import type { Callable, GraphInstance } from "./graph_instance.ts";
import type { Link } from "./plugin_grants.ts";

/** The functions of an interface that another plugin provides, by name. */
export type ProvidedFunctions = { readonly [name: string]: Callable };

/** A function of another plugin, and its type. */
export interface TypedFunction {
  readonly type: FuncType;
  readonly call: Callable;
}

/** The part of a core module's instance that values pass through; undefined while there is none. */
export type CoreCallerSource = Parameters<typeof import("@waft/component/internal/link/core_caller").forCoreCaller>[1];

/** The services that the graph offers to plugins of either kind. */
export interface PluginServices {
  /** The guest's arguments, the program's name first. */
  readonly args: readonly string[];
  readonly env: readonly (readonly [string, string])[];
  /** Descriptors of the process for stdin, stdout and stderr. */
  readonly stdio: readonly [number, number, number];
  /** The project's root: granted directories are relative to it. */
  readonly root: string;
  /** The artifact that is run, which plugins cannot change. */
  readonly artifact?: string;
  /** Receives a line of a plugin's log. */
  log(plugin: string, level: number, text: string): void;
}

/** The parts of a node (node.ts) that a component uses. */
export interface ComponentPlace {
  readonly plugin: {
    readonly id: string;
    readonly links: readonly Link[];
    readonly config: Uint8Array;
    readonly root?: string;
  };
  readonly services: PluginServices;
  readonly closers: (() => void)[];
}

/** A compiled component. */
export interface CompiledComponent {
  readonly limits: NonNullable<Context["limits"]>;
  /** Creates an instance. `provided` has the functions of interfaces that other plugins provide, by interface. */
  instantiate(
    place: ComponentPlace,
    context: Context,
    provided: ReadonlyMap<string, ProvidedFunctions>,
    provides: ComponentPart["provides"],
  ): GraphInstance;
}

/** The debugging of a component. */
interface ComponentDebugging {
  readonly core: CoreDebugger;
  /** The least limit of the memories of a core module in the form that is debugged, in pages. */
  readonly leastPages: number;
}

/** The code for components. */
export interface ComponentRuntime {
  /** Whether its components run elsewhere, so that every call of them waits. */
  readonly waits?: true;
  /**
   * Compiles a component whose memories have at most `maxMemoryPages` together, for a debugger if there is one and the
   * component does not run elsewhere. Throws WaftError.
   */
  compile(
    engine: Engine,
    bytes: Uint8Array,
    maxMemoryPages: number,
    debugging?: ComponentDebugging,
  ): CompiledComponent;
  /** A function of a component for a core module. */
  forCore(target: TypedFunction, caller: CoreCallerSource): Callable;
  /** A function of a component for another component. */
  forComponent(target: TypedFunction): Callable;
}

/**
 * The component part of a plugin: the code for it, and the interfaces that it provides by the namespaces of contracts.
 */
export interface ComponentPart {
  readonly runtime: ComponentRuntime;
  readonly provides: ReadonlyMap<string, string>;
}
