/**
 * Runs a module with a recorder. In: the compiled module, and the options of the run. Out: the lines to print, and the
 * log, which is written when the guest is closed, also after a trap; a guest that cannot be instantiated leaves the log
 * up to there.
 */
import { Recorder } from "@waft/engine/recording";
import { callGuest, type Runnable, startGuest } from "./run_module.ts";
import type { CompiledModule, RunOptions } from "./run_options.ts";

/** Runs a module; `options.record` gets the log. */
export async function runRecorded(compiled: CompiledModule, options: RunOptions): Promise<string[]> {
  return await callGuest(
    compiled.file,
    startRecorded(compiled, options, options.record!),
    compiled.call,
    options.failed,
  );
}

function startRecorded(
  { file, bytes, module, args, stubs }: CompiledModule,
  options: RunOptions,
  write: (log: Uint8Array) => void,
): Runnable {
  const recorder = new Recorder(bytes);
  const context = { ...options.context, record: recorder };
  const guest = orRecorded(() => startGuest(file, module, args, { ...options, context }, stubs), recorder, write);
  return {
    call: (name, ...values) => guest.call(name, ...values),
    close: () => {
      try {
        write(recorder.finish().log);
      } finally {
        void guest.close();
      }
    },
  };
}

/** Runs `start`. If it fails after the instance was linked, writes the recording so far. */
function orRecorded(start: () => Runnable, recorder: Recorder, write: (log: Uint8Array) => void): Runnable {
  try {
    return start();
  } catch (error) {
    if (recorder.hasBegun) write(recorder.finish().log);
    throw error;
  }
}
