/**
 * Prepares a module with the plugins of its project for the debugger. In: the module's program and calls, and the
 * project. Out: the programs of guest and plugins, and a run, which starts the plugins first. Invariant: plugins that
 * run in processes of their own do not stop.
 */
import type { Context } from "@waft/engine";
import type { Launched } from "../../debug/adapter.ts";
import type { Program } from "../../debug/program.ts";
import { hasStreams } from "../../definitions/wasi_groups.ts";
import { digestBytes } from "../../base/integrity.ts";
import type { InstanceGraph } from "../../plugins/graph.ts";
import type { LoadedProject } from "../../plugins/load.ts";
import { compileInstrumented } from "../tools/instrumented_module.ts";
import { type Print, silentStreams, withOutput } from "./captured_output.ts";
import { debuggedHost, GraphDebugging, launchedGraph } from "./debug_graph.ts";
import type { DebugOptions } from "./debug_module.ts";
import { type ImportStubs, inFile, wasiFor, withStubs } from "./run_module.ts";

/** A module that is ready to start. */
interface DebuggedGuest {
  readonly file: string;
  /** The content of the file. */
  readonly content: Uint8Array;
  /** The name of the program and its arguments. */
  readonly args: string[];
  readonly program: Program;
  readonly stubs: ImportStubs;
  readonly calls: readonly { readonly name: string; readonly args: readonly unknown[] }[];
}

/** Prepares the plugins and the guest. Rejects with the errors of a run of it. */
export function prepareWithPlugins(
  { file, content, args, program, stubs, calls }: DebuggedGuest,
  project: LoadedProject,
  options: DebugOptions,
  print: Print,
): Omit<Launched, "outcome"> {
  const compiled = { ...options.engine, interruptible: true };
  const module = compileInstrumented(file, program.instrumented.bytes, "debugged", compiled);
  const debugging = new GraphDebugging(program);
  const streams = silentStreams();
  const { wasi, imports } = wasiFor(module, args, { ...options, stdio: streams });
  const shown = hasStreams(options.wasiGroups) ? withOutput(imports, () => debugging.guestInstance, print) : imports;
  const host = inFile(file, () => debuggedHost(project, compiled, debugging, print, streams));
  const given = withStubs(shown, stubs);
  inFile(file, () => host.checkGuest(module, Object.keys(given)));
  const start = async (context: Context): Promise<InstanceGraph> => {
    const digest = digestBytes(content);
    const graph = await host.startAsync({ module, digest, imports: given, args, env: options.env, context });
    wasi?.attach(graph.guest);
    return graph;
  };
  const work = async (graph: InstanceGraph, context: Context): Promise<unknown> => {
    let result: unknown;
    for (const { name, args } of calls) result = await graph.callAsync(context, name, ...args);
    return result;
  };
  return launchedGraph({ file, programs: [program, ...debugging.programs], start, work }, project, debugging, options);
}
