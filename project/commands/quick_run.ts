/**
 * The fast path of `waft run`: a plain command line, no project, a module in the cache. Input: the words after `run`.
 * Output: the exit status, or undefined when run.ts must take the full path; in that case nothing has happened yet.
 *
 * Invariant: loads neither commander, nor the compiler, nor any Node module; together these take ten times as long as
 * starting a script. After the module is loaded, the code is shared with the full path.
 */
import { readFile } from "@waft/engine/internal/host/files";
import { currentDirectory, writeText } from "@waft/engine/internal/host/process";
import { openCachedModule } from "@waft/engine/internal/open_cached_module";
import { askedRange, nearestManifest } from "../ops/asked_range.ts";
import { callGuest, planCall, startGuest, startsThreads, WASI } from "../ops/run_module.ts";
import { codeCacheOptions } from "../base/paths.ts";
import { parentOf } from "../base/system_path.ts";
import { controlledEngine } from "./control_flags.ts";
import { engineOptions } from "./engine_options.ts";
import { exitStatus, report } from "../base/failure.ts";
import { readFlags } from "./option_rows.ts";
import { guestInputs, RUN_OPTION_ROWS, type RunFlags } from "./run_flags.ts";

/** A cached module to run. */
interface Found {
  readonly file: string;
  readonly args: readonly string[];
  readonly flags: RunFlags;
  readonly module: NonNullable<Awaited<ReturnType<typeof openCachedModule>>>;
  /** Root of the project that `--bare` ignores. */
  readonly root?: string;
}

/** Runs a command line on the fast path if possible. */
export async function runQuickly(words: readonly string[]): Promise<number | undefined> {
  const found = await find(words);
  if (found === undefined) return undefined;
  const { file, args, flags, module, root } = found;
  try {
    const call = planCall(file, module, args, flags.invoke);
    const inputs = { ...guestInputs(flags), ...(root === undefined ? {} : { root }) };
    const lines = await callGuest(file, startGuest(file, module, args, inputs), call);
    if (lines.length > 0) writeText(1, lines.join("\n") + "\n");
    return 0;
  } catch (error) {
    report(error);
    return exitStatus(error);
  }
}

/** The module to run. Every failure falls back to the full path. */
async function find(words: readonly string[]): Promise<Found | undefined> {
  const read = readFlags(RUN_OPTION_ROWS, words);
  if (read === undefined) return undefined;
  const flags = read.flags as unknown as RunFlags;
  if (
    !flags.cache || flags.coredump !== undefined || flags.perfMap === true || flags.explainCompile === true ||
    flags.parallel !== undefined ||
    flags.unknownImports !== undefined || flags.net.length + flags.listen.length > 0
  ) {
    return undefined;
  }
  const { operand: file, rest: args } = read;
  try {
    // A pipe (`<(…)`, /dev/stdin) can be read only once: run.ts does.
    if (file.startsWith("/dev/")) return undefined;
    guestInputs(flags);
    const manifest = nearestManifest(currentDirectory());
    if (askedRange(manifest) !== undefined) return undefined;
    if (flags.bare !== true && (flags.project !== undefined || manifest !== undefined)) return undefined;
    const engine = controlledEngine(engineOptions(flags), flags);
    const module = await openCachedModule(readFile(file), { ...engine, cache: codeCacheOptions() });
    if (module === undefined || startsThreads(module)) return undefined;
    // Any other import is missing; run.ts reports it.
    if (module.imports.some((entry) => entry.module !== WASI)) return undefined;
    return { file, args, flags, module, ...(manifest === undefined ? {} : { root: parentOf(manifest.file) }) };
  } catch {
    return undefined;
  }
}
