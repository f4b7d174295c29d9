/**
 * Runs components of the worlds `wasi:cli/command` of WASI 0.2 and 0.3. In: a component and the inputs of its run. Out:
 * its status, output and files. Invariant: the component reaches nothing of the host but clocks and random bytes.
 */
import { prepareProgram } from "@waft/engine/internal/wasi/prepare_program";
import type { ProgramOptions, ProgramResult } from "@waft/engine/wasi/program";
import { ComponentError } from "../abi/traps.ts";
import { compileComponent } from "../compile_source.ts";
import { ComponentWasi } from "../wasi/mod.ts";

/** The function that runs a command, in WASI 0.3 and 0.2. */
const RUN = ["wasi:cli/run@0.3.0#run", "wasi:cli/run@0.2.0#run"] as const;

/**
 * Runs a component as a command. Without `waitsInEventLoop`, the waits of WASI 0.2 block the thread.
 */
export async function runCommand(
  source: Uint8Array | ArrayBuffer | string,
  options: ProgramOptions,
  waitsInEventLoop: boolean,
): Promise<ProgramResult> {
  const program = await prepareProgram(options);
  const { engine, context } = program;
  const component = compileComponent(engine, source);
  const wasi = new ComponentWasi({ ...program.wasi, waitInEventLoop: waitsInEventLoop });
  try {
    return await program.finish(async () => {
      const instance = component.instantiate(context, wasi.imports);
      try {
        const run = RUN.find((name) => instance.has(name));
        if (run === undefined) throw new TypeError("The component is not a command: it does not export wasi:cli/run");
        await instance.callAsync(context, run);
        return 0;
      } catch (error) {
        // The error case of `run`, which has no value.
        if (error instanceof ComponentError) return 1;
        throw error;
      } finally {
        instance.close();
      }
    }, () => wasi.files);
  } finally {
    wasi.close();
  }
}
