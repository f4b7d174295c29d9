/**
 * Prepares a module for the debugger. In: its file, the words of its command line, its grants, and a function that
 * takes its output. Out: an instance of its instrumented form with the calls to make, and a reader of its end.
 *
 * The guest has no standard input, since the debugger's fronts read that of the process.
 */
import { type EngineOptions, type Instance, type Memory, TrapError } from "@waft/engine";
import { WasiExit } from "@waft/engine/wasi";
import { describeTrap } from "@waft/engine/internal/errors";
import type { Launched, Outcome } from "../../debug/adapter.ts";
import { HostLog } from "../../debug/host_log.ts";
import { Program } from "../../debug/program.ts";
import { Session } from "../../debug/session.ts";
import { hasStreams } from "../../definitions/wasi_groups.ts";
import { ProjectError } from "../../base/diagnostic.ts";
import { describe, exitStatus, FileFailure, oneLine } from "../../base/failure.ts";
import { absolutePath } from "../../base/system_path.ts";
import { printResult } from "./arguments.ts";
import type { LoadedProject } from "../../plugins/load.ts";
import { compileInstrumented, instrumenting } from "../tools/instrumented_module.ts";
import { readModuleContent } from "../tools/read_module.ts";
import { type Print, silentStreams, withOutput } from "./captured_output.ts";
import { checkImports } from "./missing_imports.ts";
import { readSourceMap } from "../tools/source_files.ts";
import {
  type GuestInputs,
  inFile,
  INITIALIZE,
  planCall,
  programArguments,
  WASI,
  wasiFor,
  withStubs,
} from "./run_module.ts";

/** The grants and the choice of a function, beside the file and its arguments. */
export interface DebugOptions extends GuestInputs {
  readonly engine: EngineOptions;
  readonly invoke?: string;
  /** Treatment of unsatisfied imports: functions that trap, or refusal. */
  readonly unknownImports?: "trap" | "refuse";
  /** Loads the plugins of the project, if there is one; for modules that import more than WASI. */
  readonly plugins?: () => Promise<LoadedProject | undefined>;
}

/** Prepares the module that is the content of `file`. Rejects with the FileFailure or UsageError of a run of it. */
export async function prepareModule(
  file: string,
  content: Uint8Array,
  args: readonly string[],
  options: DebugOptions,
  print: Print,
): Promise<Launched> {
  const { bytes, text, shape } = readModuleContent(file, content, options.engine, "debugged");
  const { name, values, printed, initialize } = planCall(file, shape, args, options.invoke);
  const project = shape.imports.some(({ module }) => module !== WASI) ? await options.plugins?.() : undefined;
  const stubs = checkImports(file, shape, { plugins: project?.guest, unknown: options.unknownImports });
  const program = instrumenting(
    file,
    "debugged",
    () => new Program(file, bytes, text, (url) => readSourceMap(file, url), project !== undefined),
  );
  const calls = [...(initialize ? [{ name: INITIALIZE, args: [] }] : []), { name, args: values }];
  const outcome: Launched["outcome"] = (end) =>
    "error" in end ? failed(file, end.error) : succeeded(end.result, printed);
  if (project !== undefined) {
    const { prepareWithPlugins } = await import("./debug_plugins.ts");
    const guest = { file, content, args: programArguments(file, args), program, stubs, calls };
    return { ...prepareWithPlugins(guest, project, options, print), outcome };
  }
  // Another run of the program must be the same to the bit.
  const repeatable = { ...options.engine, interruptible: true, deterministic: true };
  const module = compileInstrumented(file, program.instrumented.bytes, "debugged", repeatable);
  const { wasi, imports } = wasiFor(module, programArguments(file, args), { ...options, stdio: silentStreams() });
  const log = new HostLog();
  let instance: Instance;
  const shown = hasStreams(options.wasiGroups) ? withOutput(imports, () => instance, print) : imports;
  const functions = withStubs(shown, stubs);
  const logged = log.logged(functions, () => memoriesOf(instance, program));
  const run = (): Instance => {
    log.rewind();
    instance = inFile(file, () => module.instantiate(options.context, logged));
    wasi?.attach(instance);
    return instance;
  };
  const runs = { instance: run(), again: run, canRepeat: () => log.isWhole };
  const session = new Session(program, runs, undefined, false);
  return {
    programs: [program],
    goesBack: true,
    path: absolutePath(file),
    run: (attach) => {
      attach(session);
      return session.run(calls, options.context);
    },
    terminate: () => session.terminate(),
    outcome,
  };
}

function memoriesOf({ exports }: Instance, { instrumented: { names } }: Program): Uint8Array[] {
  return names.memories.map((name) => ((exports as Record<string, unknown>)[name] as Memory).bytes);
}

/** The result lines as a run prints them. */
function succeeded(result: unknown, printed: readonly number[] | undefined): Outcome {
  const results = printed?.length === 1 ? [result] : printed === undefined ? [] : (result ?? []) as unknown[];
  const output = results.map((value, k) => `${printResult(value, printed![k])}\n`).join("");
  return { status: 0, output, message: "" };
}

/** The end of a program by an error. */
export function failed(file: string, error: unknown): Outcome {
  if (error instanceof WasiExit) return { status: error.status, output: "", message: "" };
  const aborted = error instanceof DOMException && error.name === "AbortError";
  const status = aborted ? 0 : exitStatus(error);
  // The frames of a trap are those of the instrumented module; people have seen the program stop at it.
  const message = error instanceof TrapError
    ? `${oneLine(file)}: trap: ${oneLine(describeTrap(error))}`
    : describe(error instanceof ProjectError ? error : new FileFailure(file, error)).replace(/^waft: /, "");
  return { status, output: "", message: aborted ? "" : message };
}
