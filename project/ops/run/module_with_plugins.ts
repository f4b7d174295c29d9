/**
 * Runs a module with the plugins of its project. In: the compiled module, and the options of the run. Out: the lines to
 * print; throws a ProjectError before the guest starts. Calls are asynchronous if plugins use the network, so that a
 * deadline ends waiting; otherwise they are synchronous, which is faster.
 */
import { digestBytes } from "../../base/integrity.ts";
import type { LoadedProject } from "../../plugins/load.ts";
import { PluginHost } from "../../plugins/plugin_host.ts";
import { callGuest, inFile, programArguments, type Runnable, wasiFor, withStubs } from "./run_module.ts";
import type { CompiledModule, RunOptions } from "./run_options.ts";

/** Runs a module with the plugins of `options.project`. */
export async function runModuleWithPlugins(compiled: CompiledModule, options: RunOptions): Promise<string[]> {
  const guest = await startWithPlugins(compiled, options, options.project!);
  return await callGuest(compiled.file, guest, compiled.call, options.failed);
}

/** Instantiates a module and the plugins of the project, which may wait. */
async function startWithPlugins(
  { file, bytes, module, engine, args, stubs }: CompiledModule,
  options: RunOptions,
  project: LoadedProject,
): Promise<Runnable> {
  const programArgs = programArguments(file, args, options.argv0);
  const { context, env, artifact } = options;
  const { wasi, imports, search } = wasiFor(module, programArgs, options);
  const host = new PluginHost(project, engine);
  const started = {
    module,
    digest: digestBytes(bytes),
    imports: withStubs(imports, stubs),
    args: programArgs,
    env,
    context,
    ...(artifact === undefined ? {} : { artifact }),
  };
  if (host.waits) {
    const graph = await inFile(file, () => host.startAsync(started));
    wasi?.attach(graph.guest);
    return {
      call: (name, ...values) => graph.callAsync(context, name, ...values),
      close: () => graph.closeAsync(),
      search,
    };
  }
  const graph = inFile(file, () => host.start(started));
  wasi?.attach(graph.guest);
  return { call: (name, ...values) => graph.call(context, name, ...values), close: () => graph.close(), search };
}
