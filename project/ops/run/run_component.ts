/**
 * Runs a component file as a program: compiles it, instantiates it with WASI and calls `run` of wasi:cli, or the
 * function that `--invoke` names. In: bytes with the header of a component, and the inputs of a run. Out: lines to
 * print; throws FileFailure, or GuestExit with the program's status.
 */
import { Buffer } from "node:buffer";
import { ComponentError } from "@waft/component/internal/abi/traps";
import { compileBinary, type ComponentInstance, functionTypes } from "@waft/component/internal/component";
import { ComponentWasi, type ComponentWasiOptions } from "@waft/component/wasi";
import type { ComponentImports } from "@waft/component/internal/link/host_names";
import { type Context, type Engine, NewEngine } from "@waft/engine";
import { writeText } from "@waft/engine/internal/host/process";
import { GuestExit } from "../../base/failure.ts";
import { protectedPaths } from "../../base/protected_paths.ts";
import { narrowedInputs, narrowedInterfaces, narrowedStreams } from "../../definitions/wasi_groups.ts";
import { FileSearch } from "./file_hint.ts";
import { openDrafts } from "./granted_drafts.ts";
import type { RunOptions } from "./run_options.ts";
import { inFile, programArguments } from "./run_module.ts";

/** The functions that a command exports, for WASI 0.2 and for 0.3, where it is asynchronous. */
const RUN = "wasi:cli/run@0.2.0#run";
const RUN_ASYNC = "wasi:cli/run@0.3.0#run";

/** Runs the command component in `bytes`. `engine` compiles its core modules. */
export async function runComponent(
  file: string,
  bytes: Uint8Array,
  args: readonly string[],
  options: RunOptions,
  engine: Engine = NewEngine(options.engine),
): Promise<string[]> {
  const { context, network, stdio, wasiGroups } = options;
  const project = await pluginsFor(file, bytes, options);
  const inputs = narrowedInputs({ ...options, args: programArguments(file, args, options.argv0) }, wasiGroups);
  const component = inFile(file, () => compileBinary(engine, bytes));
  const protect = inputs.preopens.length === 0 ? {} : { protect: protectedPaths(options) };
  const wasiOptions: ComponentWasiOptions = {
    ...inputs,
    ...(network === undefined ? {} : { network }),
    ...narrowedStreams(stdio, wasiGroups),
    ...protect,
  };
  const wasi = inFile(file, () => new ComponentWasi(wasiOptions));
  const search = inputs.preopens.length === 0 ? new FileSearch() : undefined;
  const drafts = await inFile(file, () => openDrafts(options.drafts, wasi));
  const needsLoop = network !== undefined || drafts.mayWait;
  try {
    const http = await httpImports(wasi, bytes);
    const allowed = narrowedInterfaces(wasi.imports, wasiGroups);
    const interfaces = search?.watchInterfaces(allowed) ?? allowed;
    const instantiate = (limits: Context, provided: ComponentImports): ComponentInstance =>
      component.instantiate(limits, { ...provided, ...interfaces, ...http, ...drafts.imports });
    if (project === undefined) {
      const instance = inFile(file, () => instantiate(context, {}));
      return await runInstance(file, { instance, calls: instance, mayWait: needsLoop }, options);
    }
    const { withPlugins } = await import("./component_with_plugins.ts");
    const guest = { file, bytes, ...inputs, context, instantiate, ...artifactOf(options) };
    return await withPlugins(project, engine, guest, (calls, instance, waits) => {
      return runInstance(file, { instance, calls, mayWait: waits || needsLoop }, options);
    });
  } catch (error) {
    search?.explain(error);
    throw error;
  } finally {
    drafts.close();
    wasi.close();
  }
}

/** The project, with the user's plugins that serve imports of the component which its plugins do not. */
async function pluginsFor(
  file: string,
  bytes: Uint8Array,
  { project, userPlugins }: RunOptions,
): Promise<RunOptions["project"]> {
  // Decoding the component takes time: only if the user has plugins.
  if (userPlugins === undefined || !(await import("../../user_project.ts")).hasUserPlugins()) return project;
  const { decodeComponent } = await import("@waft/component/internal/binary/decode");
  const { definitions } = inFile(file, () => decodeComponent(bytes));
  const names = definitions.flatMap((definition) => definition.kind === "import" ? [definition.name] : []);
  const wanted = names.filter((name) => !name.startsWith("wasi:"));
  return wanted.length === 0 ? project : await userPlugins(wanted);
}

function artifactOf({ artifact }: RunOptions): { readonly artifact?: string } {
  return artifact === undefined ? {} : { artifact };
}

/** An instance, and how its functions are called. */
interface Started {
  readonly instance: ComponentInstance;
  /** The instance, or the graph in which it is with plugins. */
  readonly calls: Calls;
  readonly mayWait: boolean;
}

/** Calls functions of an instance under the limits of a context. */
export type Calls = Pick<ComponentInstance, "call" | "callAsync">;

/** Runs the program, or makes the call of `--invoke`. */
async function runInstance(
  file: string,
  { instance, calls, mayWait }: Started,
  { invoke, context }: RunOptions,
): Promise<string[]> {
  if (invoke !== undefined) return await invokeFunction(file, instance, calls, invoke, context, mayWait);
  const run = inFile(file, () => runFunction(instance));
  const succeeded = await inFile(file, () => runCommand(calls, run, context, mayWait || run === RUN_ASYNC));
  if (!succeeded) throw new GuestExit(1);
  return [];
}

/** The function that a command exports. Throws an Error if the component is not a command. */
export function runFunction(instance: Pick<ComponentInstance, "has">): string {
  const run = [RUN_ASYNC, RUN].find((name) => instance.has(name));
  if (run !== undefined) return run;
  throw new Error(
    "the component is not a command: it does not export wasi:cli/run; call one of its functions with --invoke",
  );
}

/** Runs the program. Returns false if it failed. Sockets need the event loop, and so calls that may wait for it. */
export async function runCommand(
  instance: Calls,
  run: string,
  context: Context,
  mayWait: boolean,
): Promise<boolean> {
  try {
    if (mayWait) await instance.callAsync(context, run);
    else instance.call(context, run);
    return true;
  } catch (error) {
    if (error instanceof ComponentError) return false;
    throw error;
  }
}

/** wasi:http, which is loaded only for components that name it. */
export async function httpImports(wasi: ComponentWasi, bytes: Uint8Array): Promise<ComponentImports> {
  const isNamed = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes("wasi:http/");
  return isNamed ? (await import("@waft/component/internal/http")).httpInterfaces(wasi) : {};
}

/** Calls the function that `--invoke` names. The error case of a `result` is printed, too, and the status is 1. */
async function invokeFunction(
  file: string,
  instance: ComponentInstance,
  calls: Calls,
  text: string,
  context: Context,
  mayWait: boolean,
): Promise<string[]> {
  // Loaded only for --invoke, since the start of a program pays for every module.
  const { invoke, planInvocation } = await import("./invoke_component.ts");
  const plan = planInvocation(file, functionTypes(instance), text);
  const { lines, isError } = await inFile(file, () => invoke(calls, context, plan, mayWait));
  if (!isError) return lines;
  writeText(1, `${lines.join("\n")}\n`);
  throw new GuestExit(1);
}
