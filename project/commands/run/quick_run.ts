/**
 * The fast path of `waft run` for modules in the cache: a plain command line (plain_run.ts). In: the words after
 * `run`. Out: the exit status, or undefined when another path must be taken: first_run.ts or run.ts; in that case
 * there has been no effect yet.
 *
 * Invariant: loads neither commander, nor the compiler, nor any Node module; together these take ten times as long as
 * starting a script. After the module is loaded, the code is shared with the full path.
 */
import { readFile } from "@waft/engine/internal/host/files";
import { openCachedModule } from "@waft/engine/internal/open_cached_module";
import { WASI } from "../../ops/run/run_module.ts";
import { codeCacheOptions } from "../../base/paths.ts";
import { controlledEngine } from "./control_flags.ts";
import { engineOptions } from "../settings/engine_options.ts";
import { type PlainRun, plainRun, runPlain } from "./plain_run.ts";

/** A cached module to run. */
interface Found {
  readonly run: PlainRun;
  readonly module: NonNullable<Awaited<ReturnType<typeof openCachedModule>>>;
}

/** Runs a command line on the fast path if possible. */
export async function runQuickly(words: readonly string[]): Promise<number | undefined> {
  const found = await find(words);
  return found && await runPlain(found.run, found.module);
}

/** The module to run. Every failure falls back to another path. */
async function find(words: readonly string[]): Promise<Found | undefined> {
  try {
    const run = plainRun(words);
    if (run === undefined || !run.flags.cache) return undefined;
    const engine = controlledEngine(engineOptions(run.flags), run.flags);
    const module = await openCachedModule(readFile(run.file), { ...engine, cache: codeCacheOptions() });
    if (module === undefined) return undefined;
    // Another import is that of threads, or is missing: run.ts runs or reports it.
    if (module.imports.some((entry) => entry.module !== WASI)) return undefined;
    return { run, module };
  } catch {
    return undefined;
  }
}
