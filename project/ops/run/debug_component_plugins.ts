/**
 * Prepares a component with the plugins of its project for the debugger. In: the component, the functions of its host,
 * its calls, and the project. Out: the programs of guest and plugins, and a run, which starts the plugins first.
 * Invariant: plugins that run in processes of their own do not stop, nor do start functions.
 */
import { decodeComponent } from "@waft/component/internal/binary/decode";
import type { ComponentImports } from "@waft/component/internal/link/host_names";
import { type Context, NewEngine } from "@waft/engine";
import type { Launched } from "../../debug/adapter.ts";
import { DebuggedPrograms } from "../../debug/component_programs.ts";
import { digestBytes } from "../../base/integrity.ts";
import { worldOf } from "../../definitions/component_inspector.ts";
import type { InstanceGraph } from "../../plugins/graph.ts";
import type { LoadedProject } from "../../plugins/load.ts";
import { readSourceMap } from "../tools/source_files.ts";
import type { Print } from "./captured_output.ts";
import { debuggedHost, GraphDebugging, launchedGraph } from "./debug_graph.ts";
import type { DebugOptions } from "./debug_module.ts";
import type { Calls } from "./run_component.ts";
import { inFile } from "./run_module.ts";

/** A component that is ready to start. */
interface DebuggedGuest {
  readonly file: string;
  readonly bytes: Uint8Array;
  /** The name of the program and its arguments. */
  readonly args: readonly string[];
  /** The functions of the host. */
  readonly imports: ComponentImports;
  /** Makes the call of a run. */
  readonly call: (calls: Calls, context: Context) => Promise<unknown>;
}

/** Prepares the plugins and the guest. Throws the errors of a run of it. */
export function prepareComponentWithPlugins(
  { file, bytes, args, imports, call }: DebuggedGuest,
  project: LoadedProject,
  options: DebugOptions,
  print: Print,
): Omit<Launched, "outcome"> {
  const { engine, env } = options;
  const debugging = new GraphDebugging();
  const { features } = NewEngine(engine);
  const world = inFile(file, () => worldOf(decodeComponent(bytes), { features, bodies: false }));
  const readMap = (url: string) => readSourceMap(file, url);
  const debugged = inFile(file, () => new DebuggedPrograms(file, bytes, engine, readMap, debugging.clock));
  const host = inFile(file, () => debuggedHost(project, engine, debugging, print));
  inFile(file, () => host.checkComponent(world));
  const programs = [...debugged.programs.map(({ program }) => program), ...debugging.programs];
  const start = (context: Context): Promise<InstanceGraph> =>
    host.startComponentAsync({
      digest: digestBytes(bytes),
      world,
      args,
      env,
      context,
      instantiate: (limits, provided) => {
        const all = { ...provided, ...imports };
        const made = debugged.instantiate(limits, all, (session) => debugging.began(session));
        return debugging.guestComponent(made.instance, made.sessions);
      },
    });
  const work = (graph: InstanceGraph, context: Context) => call(graph as Calls, context);
  return launchedGraph({ file, programs, start, work }, project, debugging, options);
}
