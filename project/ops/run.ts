/**
 * Runs a module file: reads, compiles, instantiates with WASI when the module imports it and with the project's plugins when there are
 * any, and calls (run_module.ts). Where plugins use the network the calls are asynchronous, so that a deadline ends
 * waiting, too; elsewhere synchronous, which is faster. In: a path and words of the command line, and what loadProject gave. Out: the
 * result lines; throws UsageError, FileFailure, GuestExit, or a ProjectError before the guest starts.
 */
import { type EngineOptions, type Module, NewEngine } from "@waft/engine";
import { readFile } from "@waft/engine/host/files";
import { FileFailure, GuestExit, UsageError } from "../base/failure.ts";
import { protectedPaths } from "../base/protected_paths.ts";
import { inputPath } from "./input_path.ts";
import type { LoadedProject } from "../plugins/load.ts";
import {
  callGuest,
  type GuestInputs,
  inFile,
  planCall,
  type Runnable,
  startGuest,
  startsThreads,
  wasiFor,
} from "./run_module.ts";

/** How to run. */
export interface RunOptions extends GuestInputs {
  readonly engine: EngineOptions;
  readonly invoke?: string;
  /** A project with plugins; without it nothing of the plugin host is loaded. */
  readonly project?: LoadedProject;
}

/** Runs `file` and returns what to print, one line per result. */
export async function runFile(file: string, args: readonly string[], options: RunOptions): Promise<string[]> {
  let bytes: Uint8Array;
  try {
    bytes = readFile(inputPath(file));
  } catch (error) {
    throw new FileFailure(file, error);
  }
  const engine = NewEngine(options.engine);
  const module = inFile(file, () => engine.compile(bytes));
  const call = planCall(file, module, args, options.invoke);
  if (startsThreads(module)) {
    await runWithThreads(file, module, call.name, [file, ...args], options);
    return [];
  }
  const { project } = options;
  if (project === undefined) return await callGuest(file, startGuest(file, module, args, options), call);
  const [{ PluginHost }, { digestBytes }] = await Promise.all([
    import("../plugins/plugin_host.ts"),
    import("../base/integrity.ts"),
  ]);
  const programArgs = [file, ...args];
  const { wasi, imports } = wasiFor(module, programArgs, options, project.wasi);
  const { context, env } = options;
  const host = new PluginHost(project, engine);
  const started = { module, digest: digestBytes(bytes), imports, args: programArgs, env, context };
  let guest: Runnable;
  if (host.waits) {
    const graph = await inFile(file, () => host.startAsync(started));
    wasi?.attach(graph.guest);
    guest = { call: (name, ...values) => graph.callAsync(context, name, ...values), close: () => graph.closeAsync() };
  } else {
    const graph = inFile(file, () => host.start(started));
    wasi?.attach(graph.guest);
    guest = { call: (name, ...values) => graph.call(context, name, ...values), close: () => graph.close() };
  }
  return await callGuest(file, guest, call);
}

/** Runs a program that starts threads (wasi-threads), every one of them in a Worker. */
async function runWithThreads(
  file: string,
  module: Module,
  name: string,
  args: string[],
  { project, context, env, preopens, root }: RunOptions,
): Promise<void> {
  if (name !== "_start") throw new UsageError(`${file} starts threads: only its _start can be run`);
  if (project !== undefined) throw new FileFailure(file, new Error("a program with threads cannot use plugins"));
  const { runThreads } = await import("@waft/engine/wasi/threads");
  let status: number;
  try {
    status = await runThreads(module, { args, env, preopens, protect: protectedPaths(root) }, context);
  } catch (error) {
    throw new FileFailure(file, error);
  }
  if (status !== 0) throw new GuestExit(status);
}
