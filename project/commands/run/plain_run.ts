/**
 * Plain command lines of `waft run`: those of the fast paths (quick_run.ts, first_run.ts), outside of projects, without
 * options that concern more than one module. In: the words after `run`. Out: the parts of the line, and the run of a
 * compiled module. Invariant: loads neither commander, nor the compiler, nor any Node module.
 */
import { currentDirectory, writeText } from "@waft/engine/internal/host/process";
import type { Module } from "@waft/engine";
import { exitStatus, report } from "../../base/failure.ts";
import { parentOf } from "../../base/system_path.ts";
import { askedRange, nearestManifest } from "../../ops/versions/asked_range.ts";
import { callGuest, planCall, startGuest } from "../../ops/run/run_module.ts";
import { useMapBeside } from "../../ops/run/source_map_beside.ts";
import { withLimitNames } from "./control_flags.ts";
import { readFlags } from "../option_rows.ts";
import { guestInputs, RUN_OPTION_ROWS, type RunFlags } from "./run_flags.ts";

/** A plain command line. */
export interface PlainRun {
  readonly file: string;
  readonly args: readonly string[];
  readonly flags: RunFlags;
  /** Root of the project that `--bare` ignores. */
  readonly root?: string;
}

/** The plain command line in `words`; undefined if the full path must read it. Throws for wrong inputs of the guest. */
export function plainRun(words: readonly string[]): PlainRun | undefined {
  const read = readFlags(RUN_OPTION_ROWS, words);
  if (read === undefined) return undefined;
  const flags = read.flags as unknown as RunFlags;
  if (
    flags.watch === true || flags.signedBy !== undefined || flags.preload.length > 0 || flags.keyvalue === true ||
    flags.keyvalueRedis !== undefined ||
    flags.logging === true ||
    flags.tlsClient === true ||
    flags.configVar.length > 0 ||
    flags.coredump !== undefined || flags.record !== undefined || flags.perfMap === true ||
    flags.explainCompile === true ||
    flags.parallel !== undefined || flags.unknownImports !== undefined || flags.net.length + flags.listen.length > 0
  ) {
    return undefined;
  }
  const { operand: file, rest: args } = read;
  // A pipe (`<(…)`, /dev/stdin) can be read only once: run.ts does.
  if (file === "-" || file.startsWith("/dev/")) return undefined;
  guestInputs(flags);
  const manifest = nearestManifest(currentDirectory());
  if (askedRange(manifest) !== undefined) return undefined;
  if (flags.bare !== true && (flags.project !== undefined || manifest !== undefined)) return undefined;
  return { file, args, flags, ...(manifest === undefined ? {} : { root: parentOf(manifest.file) }) };
}

/** Runs the module of a plain command line; returns the exit status. */
export async function runPlain({ file, args, flags, root }: PlainRun, module: Module): Promise<number> {
  try {
    useMapBeside(file, module);
    const call = planCall(file, module, args, flags.invoke);
    // Outside of a project, or with --bare, nothing narrows WASI.
    const inputs = { ...guestInputs(flags), wasiGroups: undefined, ...(root === undefined ? {} : { root }) };
    const lines = await callGuest(file, startGuest(file, module, args, inputs), call);
    if (lines.length > 0) writeText(1, lines.join("\n") + "\n");
    return 0;
  } catch (error) {
    const named = withLimitNames(error, flags);
    report(named);
    return exitStatus(named);
  }
}
