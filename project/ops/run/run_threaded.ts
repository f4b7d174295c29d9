/**
 * Runs programs that start threads (wasi-threads), each in a Worker. In: a module with the inputs of a run. Out:
 * nothing; throws UsageError, FileFailure, GuestExit. Loaded only for such programs, since start-up pays for it.
 */
import type { Module } from "@waft/engine";
import { runThreads } from "@waft/engine/wasi/threads";
import { FileFailure, GuestExit, UsageError } from "../../base/failure.ts";
import { protectedPaths } from "../../base/protected_paths.ts";
import { type GuestInputs, programArguments } from "./run_module.ts";
import type { CompiledModule, RunOptions } from "./run_options.ts";

const NARROWED = "a program with threads cannot run where its project narrows WASI: allow all of it with " +
  "waft add --wasi all, or ignore the project with --bare";

/** Runs a module of `waft run`, which prints for itself. */
export async function runThreadedModule(
  { file, module, args, call }: CompiledModule,
  options: RunOptions,
): Promise<string[]> {
  if (options.project !== undefined && call.name === "_start") {
    throw new FileFailure(file, new Error("a program with threads cannot use plugins"));
  }
  await runThreaded(file, module, call.name, programArguments(file, args, options.argv0), options);
  return [];
}

/** Runs the program to its end. Throws GuestExit for a status other than 0. */
export async function runThreaded(
  file: string,
  module: Module,
  name: string,
  args: string[],
  inputs: GuestInputs,
): Promise<void> {
  if (name !== "_start") throw new UsageError(`${file} starts threads: only its _start can be run`);
  const { context, env, preopens, wasiGroups } = inputs;
  if (wasiGroups !== undefined) {
    throw new FileFailure(file, new Error(NARROWED));
  }
  let status: number;
  try {
    status = await runThreads(module, { args, env, preopens, protect: protectedPaths(inputs) }, context);
  } catch (error) {
    throw new FileFailure(file, error);
  }
  if (status !== 0) throw new GuestExit(status);
}
