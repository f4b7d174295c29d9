/**
 * Runs a module with a recorder. In: the module and its inputs, as for startGuest of run_module.ts. Out: the guest,
 * whose log is written when it is closed, also after a trap; a guest that cannot be instantiated leaves the log up to
 * there.
 */
import type { Module } from "@waft/engine";
import { Recorder } from "@waft/engine/recording";
import { type GuestInputs, type ImportStubs, type Runnable, startGuest } from "./run_module.ts";

/** Instantiates a module whose run is recorded; `write` gets the log. */
export function startRecorded(
  file: string,
  bytes: Uint8Array,
  module: Module,
  args: readonly string[],
  inputs: GuestInputs,
  stubs: ImportStubs,
  write: (log: Uint8Array) => void,
): Runnable {
  const recorder = new Recorder(bytes);
  const context = { ...inputs.context, record: recorder };
  const guest = orRecorded(() => startGuest(file, module, args, { ...inputs, context }, stubs), recorder, write);
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
