/**
 * Runs programs of WASI preview 1 in a runner. In: a program and its inputs. Out: its status, output and files.
 * Invariant: nothing waits for the event loop, which a confined process may not have.
 */
import { prepareProgram, type ProgramOptions, type ProgramResult } from "../wasi/prepare_program.ts";
import { Wasi } from "../wasi/mod.ts";

/** Runs a program with files and streams in memory. Rejects as `runProgram` of wasi/run_program.ts. */
export async function runProgram(source: Uint8Array | string, options: ProgramOptions): Promise<ProgramResult> {
  const program = await prepareProgram(options);
  const { engine, context } = program;
  const module = engine.compile(source);
  const start = module.exports.find(({ name }) => name === "_start");
  if (start?.kind !== "func") throw new TypeError("The module is not a program: it has no function _start");
  const wasi = new Wasi(program.wasi);
  const run = (): number => {
    const instance = module.instantiate(context, { wasi_snapshot_preview1: wasi.imports });
    try {
      wasi.attach(instance);
      instance.call(context, "_start");
      return 0;
    } finally {
      instance.close();
    }
  };
  try {
    return await program.finish(async () => await Promise.resolve().then(run), () => wasi.files);
  } finally {
    wasi.close();
  }
}
