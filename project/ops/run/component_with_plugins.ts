/**
 * Runs a component as a guest of a project with plugins.
 *
 * In: a loaded project, the component and the function that instantiates it. Out: the result of a run, whose
 * calls go through the graph of the guest and its plugins; throws a ProjectError before the guest starts. The graph is
 * closed at the end, also after a failure, which the failure of a plugin's `stop` does not replace.
 */
import type { Context, Engine } from "@waft/engine";
import { decodeComponent } from "@waft/component/internal/binary/decode";
import type { ComponentInstance } from "@waft/component/internal/component";
import type { ComponentImports } from "@waft/component/internal/link/host_names";
import { digestBytes } from "../../base/integrity.ts";
import { worldOf } from "../../definitions/component_inspector.ts";
import type { LoadedProject } from "../../plugins/load.ts";
import { PluginHost } from "../../plugins/plugin_host.ts";
import type { Calls } from "./run_component.ts";
import { inFile } from "./run_module.ts";

/** A component that runs with plugins. */
interface PluginUser {
  readonly file: string;
  readonly bytes: Uint8Array;
  readonly args: readonly string[];
  readonly env: readonly (readonly [string, string])[];
  readonly context: Context;
  readonly artifact?: string;
  readonly instantiate: (context: Context, provided: ComponentImports) => ComponentInstance;
}

/** Starts a component with the plugins of a project and runs `work`; `waits` is true if a plugin uses the network. */
export async function withPlugins<T>(
  project: LoadedProject,
  engine: Engine,
  guest: PluginUser,
  work: (calls: Calls, instance: ComponentInstance, waits: boolean) => Promise<T>,
): Promise<T> {
  const { file, bytes, instantiate, ...run } = guest;
  let instance: ComponentInstance | undefined;
  const started = {
    ...run,
    digest: digestBytes(bytes),
    world: inFile(file, () => worldOf(decodeComponent(bytes), { features: engine.features, bodies: false })),
    instantiate: (context: Context, provided: ComponentImports) => instance = instantiate(context, provided),
  };
  const host = new PluginHost(project, engine);
  const graph = host.waits
    ? await inFile(file, () => host.startComponentAsync(started))
    : inFile(file, () => host.startComponent(started));
  let result: T;
  try {
    result = await work(graph as Calls, instance!, host.waits);
  } catch (error) {
    await Promise.resolve(graph.closeAsync()).catch(() => {});
    throw error;
  }
  await inFile(file, () => graph.closeAsync());
  return result;
}
