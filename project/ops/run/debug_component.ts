/**
 * Prepares a component for the debugger. In: its binary form, the words of its command line, its grants, and a function
 * that takes its output. Out: the sessions of its core instances, its run, and a reader of its end.
 *
 * The guest has no standard input, since the debugger's fronts read that of the process. Invariant: the component does
 * the same as under `waft run` without grants of the network.
 */
import type { ComponentInstance } from "@waft/component/internal/component";
import { decodeComponent } from "@waft/component/internal/binary/decode";
import { ComponentWasi } from "@waft/component/wasi";
import type { Context } from "@waft/engine";
import { type ComponentImports, lookUpName } from "@waft/component/internal/link/host_names";
import { exportedFunction, exportedNames, interfaceOf } from "@waft/component/internal/runner/interface";
import type { Launched, Outcome } from "../../debug/adapter.ts";
import { DebuggedPrograms, duringAll } from "../../debug/component_programs.ts";
import type { Program } from "../../debug/program.ts";
import type { Session } from "../../debug/session.ts";
import { UsageError } from "../../base/failure.ts";
import { protectedPaths } from "../../base/protected_paths.ts";
import { absolutePath } from "../../base/system_path.ts";
import { hasStreams, narrowedInputs, narrowedInterfaces } from "../../definitions/wasi_groups.ts";
import type { LoadedProject } from "../../plugins/load.ts";
import { readSourceMap } from "../tools/source_files.ts";
import type { Print } from "./captured_output.ts";
import { type DebugOptions, failed } from "./debug_module.ts";
import { openDrafts } from "./granted_drafts.ts";
import { type Calls, httpImports, runCommand, runFunction } from "./run_component.ts";
import { inFile, programArguments } from "./run_module.ts";

/** The end of a run: lines to print, and whether the component reports a failure. */
interface End {
  readonly lines: readonly string[];
  readonly isError: boolean;
}

/** Prepares the component. Rejects with the FileFailure or UsageError of a run of it. */
export async function prepareComponent(
  file: string,
  bytes: Uint8Array,
  args: readonly string[],
  options: DebugOptions,
  print: Print,
): Promise<Launched> {
  if (options.unknownImports !== undefined) throw new UsageError("--unknown-imports is for modules");
  const output = outputTo(print);
  const { inputs, imports, release } = await hostFor(file, bytes, args, options, output.receivers);
  try {
    const project = await neededPlugins(file, bytes, imports, options);
    const launched = project === undefined
      ? await prepareAlone(file, bytes, imports, options)
      : await prepareInProject({ file, bytes, imports, args: inputs.args }, project, options, print);
    return {
      ...launched,
      run: (attach) =>
        launched.run(attach).finally(() => {
          output.end();
          release();
        }),
      outcome: (end) => "error" in end ? failed(file, end.error) : ended(end.result as End),
    };
  } catch (error) {
    release();
    throw error;
  }
}

/** The project, if the component has imports that the host does not serve. */
async function neededPlugins(
  file: string,
  bytes: Uint8Array,
  imports: ComponentImports,
  { plugins }: DebugOptions,
): Promise<LoadedProject | undefined> {
  const { definitions } = inFile(file, () => decodeComponent(bytes));
  const names = definitions.flatMap((definition) => definition.kind === "import" ? [definition.name] : []);
  const isServed = (name: string) => lookUpName(imports, name) !== undefined;
  return names.every(isServed) ? undefined : await plugins?.();
}

/** Prepares a component with the plugins of its project. */
async function prepareInProject(
  guest: {
    readonly file: string;
    readonly bytes: Uint8Array;
    readonly imports: ComponentImports;
    readonly args: readonly string[];
  },
  project: LoadedProject,
  options: DebugOptions,
  print: Print,
): Promise<Omit<Launched, "outcome">> {
  const { prepareComponentWithPlugins } = await import("./debug_component_plugins.ts");
  const call = await plannedCall(guest.file, guest.bytes, options.invoke);
  return prepareComponentWithPlugins({ ...guest, call }, project, options, print);
}

/** Prepares a component without plugins: an instance of it, whose start functions have run. */
async function prepareAlone(
  file: string,
  bytes: Uint8Array,
  imports: ComponentImports,
  options: DebugOptions,
): Promise<Omit<Launched, "outcome">> {
  const { instance, programs, sessions } = inFile(file, () => instantiate(file, bytes, options, imports));
  const call = await plannedCall(file, bytes, options.invoke);
  const abort = new AbortController();
  const calls = debuggedCalls(instance, sessions, abort.signal);
  return {
    programs,
    goesBack: false,
    path: absolutePath(file),
    run: (attach) => {
      for (const session of sessions) attach(session);
      return call(calls, options.context);
    },
    terminate: () => {
      abort.abort();
      for (const session of sessions) session.listen(undefined);
    },
  };
}

/** The functions of the host, and the release of what they hold. */
async function hostFor(
  file: string,
  bytes: Uint8Array,
  args: readonly string[],
  options: DebugOptions,
  receivers: Receivers,
): Promise<
  {
    readonly inputs: { readonly args: readonly string[] };
    readonly imports: ComponentImports;
    readonly release: () => void;
  }
> {
  const { wasiGroups } = options;
  const inputs = narrowedInputs({ ...options, args: programArguments(file, args) }, wasiGroups);
  const streams = hasStreams(wasiGroups) ? { stdin: "", ...receivers } : { stdio: "none" } as const;
  const protect = inputs.preopens.length === 0 ? {} : { protect: protectedPaths(options) };
  const wasi = inFile(file, () => new ComponentWasi({ ...inputs, ...streams, ...protect }));
  const drafts = await openDrafts(undefined, wasi);
  const allowed = narrowedInterfaces(wasi.imports, wasiGroups);
  return {
    inputs,
    imports: { ...allowed, ...await httpImports(wasi, bytes), ...drafts.imports },
    release: () => {
      drafts.close();
      wasi.close();
    },
  };
}

/** Makes an instance, and the sessions of its core instances; the core module with most code comes first. */
function instantiate(
  file: string,
  bytes: Uint8Array,
  { engine, context }: DebugOptions,
  imports: ComponentImports,
): {
  readonly instance: ComponentInstance;
  readonly programs: readonly Program[];
  readonly sessions: readonly Session[];
} {
  const debugged = new DebuggedPrograms(file, bytes, engine, (url) => readSourceMap(file, url));
  const { instance, sessions } = debugged.instantiate(context, imports);
  const used = new Set(sessions.map(({ program }) => program));
  const programs = debugged.programs.map(({ program }) => program).filter((program) => used.has(program));
  if (programs.length === 0) throw new Error("the component has no code of its own to debug");
  return { instance, programs, sessions };
}

/** The calls of an instance, in which its core instances may stop. */
function debuggedCalls(instance: ComponentInstance, sessions: readonly Session[], signal: AbortSignal): Calls {
  return {
    call: () => {
      throw new Error("calls under the debugger are asynchronous");
    },
    callAsync: (context, name, ...args) => {
      const either = context.signal === undefined ? signal : AbortSignal.any([context.signal, signal]);
      return duringAll(sessions, () => instance.callAsync({ ...context, signal: either }, name, ...args));
    },
  };
}

function ended({ lines, isError }: End): Outcome {
  return { status: isError ? 1 : 0, output: lines.map((line) => `${line}\n`).join(""), message: "" };
}

/** The call of a run: of the function that `text` names in WAVE notation, or of that of a command. */
async function plannedCall(
  file: string,
  bytes: Uint8Array,
  text: string | undefined,
): Promise<(calls: Calls, context: Context) => Promise<End>> {
  const exported = inFile(file, () => interfaceOf(bytes));
  if (text === undefined) {
    const run = inFile(file, () => runFunction({ has: (name) => exportedFunction(exported, name) !== undefined }));
    return async (calls, context) => ({ lines: [], isError: !await runCommand(calls, run, context, true) });
  }
  const { invoke, planInvocation } = await import("./invoke_component.ts");
  const types = exportedNames(exported).map((name) => [name, exportedFunction(exported, name)!] as const);
  const plan = planInvocation(file, new Map(types), text);
  return (calls, context) => invoke(calls, context, plan, true);
}

/** Receivers of the parts of a guest's output. */
type Receivers = Readonly<Record<"stdout" | "stderr", (bytes: Uint8Array) => void>>;

/** Receivers that pass output on as text; `end` passes on what is left of incomplete characters. */
function outputTo(print: Print): { readonly receivers: Receivers; readonly end: () => void } {
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  const receive = (category: "stdout" | "stderr") => (bytes?: Uint8Array): void => {
    const text = decoders[category].decode(bytes, { stream: bytes !== undefined });
    if (text !== "") print(category, text);
  };
  const [stdout, stderr] = [receive("stdout"), receive("stderr")];
  return {
    receivers: { stdout, stderr },
    end: () => {
      stdout();
      stderr();
    },
  };
}
