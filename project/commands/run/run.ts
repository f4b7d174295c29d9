/**
 * `waft run [options] FILE [ARG…]`: runs a module; all words after FILE belong to the guest. In a project the guest
 * gets the project's settings and plugins. Plugins are loaded strictly: a difference from the lockfile is an error
 * before any code runs. `--bare` ignores the project. Cached modules without a project take the fast path in
 * quick_run.ts.
 */
import { writeText } from "@waft/engine/internal/host/process";
import type { Command } from "commander";
import type { EngineOptions } from "@waft/engine";
import { UsageError } from "../../base/failure.ts";
import type { LoadedProject } from "../../plugins/loaded.ts";
import { runFile } from "../../ops/run/program.ts";
import type { RunOptions } from "../../ops/run/run_options.ts";
import { compilationText } from "../tools/compilation_text.ts";
import { compileProgress } from "../tools/compile_progress.ts";
import { codeCacheOptions } from "../../base/paths.ts";
import { absolutePath } from "../../base/system_path.ts";
import { controlledEngine, runContext, withLimitNames } from "./control_flags.ts";
import { addOptions } from "../option_rows.ts";
import { programFile } from "./program_file.ts";
import { draftOptions } from "./draft_flags.ts";
import { projectGuest } from "./project_guest.ts";
import { projectPlugins } from "../project/project_plugins.ts";
import { networkOptions, parseVariable, RUN_OPTION_ROWS, type RunFlags } from "./run_flags.ts";

/** A function that writes the core dump of a trap, if one is wanted. */
async function coredumpOf(file: string, path: string | undefined): Promise<(error: unknown) => void> {
  if (path === undefined) return () => {};
  const { coredumpWriter } = await import("../../ops/run/write_coredump.ts");
  return coredumpWriter(path, file, (line) => writeText(2, `waft: ${line}\n`));
}

/** A function that writes the recording, if one is wanted. */
async function recordingOf(path: string | undefined): Promise<RunOptions["record"]> {
  if (path === undefined) return undefined;
  const { recordingWriter } = await import("../../ops/run/write_recording.ts");
  return recordingWriter(path, (line) => writeText(2, `waft: ${line}\n`));
}

/** Options for code that a replay can repeat; the place of an interruption is known by its fuel. */
function recordableEngine(engine: EngineOptions, isRecorded: boolean): EngineOptions {
  if (!isRecorded) return engine;
  return {
    ...engine,
    deterministic: true,
    nans: "processor",
    // Only a count repeats the depth of code that is replaced while it runs.
    stack: engine.tier === "auto" ? "counted" : "native",
    ...(engine.interruptible === true ? { fuel: true } : {}),
  };
}

function parsePreload(text: string): { readonly name: string; readonly file: string } {
  const [name, file] = parseVariable("--preload", text, "NAME=FILE");
  return { name, file };
}

/** Adds `run`. */
export function addCommand(program: Command): void {
  const command = program.command("run")
    .description("Compile a module (binary or text) and call one of its functions.")
    .argument("<file>", "Module, in binary or text form; - is standard input")
    .argument("[args...]", "Arguments of the function, or of the program")
    .passThroughOptions()
    .allowUnknownOption(false);
  addOptions(command, RUN_OPTION_ROWS).action(async (word: string, args: string[], given: RunFlags) => {
    const { file, name } = await programFile(word, given.signedBy);
    const flags = name === undefined ? given : { argv0: name, ...given };
    if (flags.watch === true) return await (await import("./run_watch.ts")).runWatched(file);
    let project: LoadedProject | undefined;
    const { engine, ...guest } = await projectGuest(flags, async (root) => {
      const loaded = await projectPlugins(root, flags);
      if (loaded !== undefined && loaded.plugins.length > 0) project = loaded;
      return loaded?.wasi;
    });
    const { unknownImports } = flags;
    if (unknownImports !== undefined && unknownImports !== "trap") {
      throw new UsageError(`--unknown-imports takes trap, not "${unknownImports}"`);
    }
    const drafts = draftOptions(flags);
    const failed = await coredumpOf(file, flags.coredump);
    const record = await recordingOf(flags.record);
    const progress = await compileProgress();
    const run = runFile(file, args, {
      engine: {
        ...progress.option,
        ...recordableEngine(controlledEngine(engine, flags), record !== undefined),
        // A module from the cache lacks the places of its functions, which a dump has.
        ...(flags.cache && flags.coredump === undefined
          ? { cache: { ...codeCacheOptions(), label: file === "-" ? "" : absolutePath(file) } }
          : {}),
        perfMap: flags.perfMap === true,
        ...(flags.explainCompile === true ? { explain: (report) => writeText(2, compilationText(report)) } : {}),
      },
      allowPrecompiled: flags.allowPrecompiled === true,
      ...(project === undefined ? {} : { project }),
      userPlugins: async (wanted) =>
        (await import("../project/user_plugins.ts")).addUserPlugins(flags, project, wanted),
      ...(flags.argv0 === undefined ? {} : { argv0: flags.argv0 }),
      ...(flags.invoke === undefined ? {} : { invoke: flags.invoke }),
      ...(flags.net.length + flags.listen.length === 0 ? {} : { network: networkOptions(flags) }),
      ...(drafts === undefined ? {} : { drafts }),
      ...(flags.preload.length === 0 ? {} : { preloads: flags.preload.map(parsePreload) }),
      ...(unknownImports === undefined ? {} : { unknownImports }),
      progress: progress.start,
      ...guest,
      context: runContext(flags),
      failed,
      ...(record === undefined ? {} : { record }),
    });
    const lines = await run.catch((error) => {
      failed(error);
      throw withLimitNames(error, flags);
    });
    if (lines.length > 0) writeText(1, lines.join("\n") + "\n");
  });
}
