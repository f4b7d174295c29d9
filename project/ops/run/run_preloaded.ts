/**
 * Runs a module that imports exports of other modules (`--preload`). In: a compiled module, options. Out: the lines to
 * print. Invariant: the other modules live as long as the program.
 */
import { compilePreloads, startPreloads } from "./preload.ts";
import { callGuest, startGuest } from "./run_module.ts";
import type { CompiledModule, RunOptions } from "./run_options.ts";

export async function runPreloaded(
  { file, module, engine, args, call, stubs }: CompiledModule,
  options: RunOptions,
): Promise<string[]> {
  const preloaded = startPreloads(compilePreloads(engine, options.preloads ?? []), options);
  try {
    const guest = startGuest(file, module, args, options, { ...stubs, ...preloaded.exports });
    return await callGuest(file, guest, call, options.failed);
  } finally {
    preloaded.close();
  }
}
