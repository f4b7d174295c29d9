/**
 * The programming interface to a project: an engine with its settings, and its plugins ready to serve guests.
 *
 * In: a directory (the nearest `waft.json` upwards counts) and the program's own choices. Out: an engine with the
 * project's features and optimizations, and `start`, which runs a guest with the plugins that the lockfile allows. As
 * with `waft run`, only the lockfile decides, and any difference from it is refused before code runs.
 */
import { type Context, type Engine, type EngineOptions, type Module, NewEngine } from "@waft/engine";
import { resolve } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { inspectPlugin } from "../../definitions/engine_inspector.ts";
import { IMPLEMENTED } from "../../implemented_keys.ts";
import { digestBytes } from "../../base/integrity.ts";
import { makeContext, type OpsContext } from "../../packages/context.ts";
import { loadProject } from "../../plugins/load.ts";
import { type HostOptions, type InstanceGraph, PluginHost } from "../../plugins/plugin_host.ts";
import { requireProject } from "../../project_root.ts";
import { engineSettings, nearestSettings, resolveSettings } from "../../settings.ts";

/** The program's choices for a project. */
export interface ProjectOptions extends HostOptions {
  /** Options of the engine; they come before the project's settings. */
  readonly engine?: EngineOptions;
  /** Use no network: locked packages must be in the cache. */
  readonly offline?: boolean;
  /** Refuse plugins from directories, which have no fixed source. */
  readonly locked?: boolean;
  /**
   * Accepts the grants of the lockfile with this digest, as `waft trust` shows it, without a record on this machine.
   */
  readonly trust?: string;
  /** Another machine configuration and cache than the user's; made with makeContext and inspectPlugin. */
  readonly context?: OpsContext;
}

/** The inputs of a guest besides the plugins. */
export interface GuestOptions {
  /** Imports of the guest, in addition to those that plugins provide. */
  readonly imports?: { readonly [module: string]: { readonly [name: string]: unknown } };
  /** The program's name and arguments. */
  readonly args?: readonly string[];
  /** Environment variables. */
  readonly env?: readonly (readonly [string, string])[];
  /** Limits, deadline and fuel. */
  readonly context?: Context;
}

/** An open project. */
export class Project {
  /** The directory of its `waft.json`. */
  readonly root: string;
  /** An engine with the project's settings. */
  readonly engine: Engine;
  /** Settings that this build does not implement, and plugins that were yanked. */
  readonly warnings: readonly Diagnostic[];
  readonly #host: PluginHost;

  /** @internal */
  constructor(root: string, engine: Engine, host: PluginHost, warnings: readonly Diagnostic[]) {
    this.root = root;
    this.engine = engine;
    this.warnings = warnings;
    this.#host = host;
  }

  /**
   * Compiles a guest (binary or text) and starts it with separate plugin instances. Close the returned graph after use.
   */
  start(guest: Uint8Array | string, options: GuestOptions = {}): InstanceGraph {
    return this.startModule(this.engine.compile(guest), guest, options);
  }

  /** Like `start`, for plugins that may wait: use `callAsync` and `closeAsync` on the resolved graph. */
  startAsync(guest: Uint8Array | string, options: GuestOptions = {}): Promise<InstanceGraph> {
    return this.startModuleAsync(this.engine.compile(guest), guest, options);
  }

  /** The same for a module that `engine` compiled from these bytes. */
  startModule(module: Module, source: Uint8Array | string, options: GuestOptions = {}): InstanceGraph {
    const bytes = typeof source === "string" ? new TextEncoder().encode(source) : source;
    return this.#host.start({ module, digest: digestBytes(bytes), ...options });
  }

  /** The same for a module that `engine` compiled from these bytes, where plugins may wait. */
  async startModuleAsync(
    module: Module,
    source: Uint8Array | string,
    options: GuestOptions = {},
  ): Promise<InstanceGraph> {
    const bytes = typeof source === "string" ? new TextEncoder().encode(source) : source;
    return await this.#host.startAsync({ module, digest: digestBytes(bytes), ...options });
  }
}

/** Opens the project that `directory` belongs to; throws a ProjectError with every reason to refuse. */
export async function openProject(directory: string, options: ProjectOptions = {}): Promise<Project> {
  const root = await requireProject(resolve(directory), undefined);
  const context = options.context ?? await makeContext({ offline: options.offline === true, inspect: inspectPlugin });
  const project = await loadProject(context, root, {
    locked: options.locked === true,
    ...(options.trust === undefined ? {} : { trust: options.trust }),
  });
  const settings = resolveSettings(await nearestSettings(root), {}, IMPLEMENTED);
  const { features, optimizations, bounds, parallel } = engineSettings(settings);
  const own = options.engine ?? {};
  const engine = NewEngine({
    bounds,
    parallel,
    ...own,
    features: { ...features, ...own.features },
    optimizations: { ...optimizations, ...own.optimizations },
  });
  return new Project(root, engine, new PluginHost(project, engine, options), [
    ...settings.diagnostics,
    ...project.warnings,
  ]);
}
