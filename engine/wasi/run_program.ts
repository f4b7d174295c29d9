/**
 * Runs programs of WASI preview 1 whose files and streams are in memory. In: a module and the inputs of its run. Out:
 * its status, output and files. Invariant: the program reaches nothing of the host but clocks and random bytes.
 *
 * @module
 */
import { prepareProgram, type ProgramOptions, type ProgramResult } from "./prepare_program.ts";
import { Wasi } from "./mod.ts";
import { runThreads, usesThreads } from "./threads.ts";

export type { Contents } from "./memory_streams.ts";
export type { ProgramLimits, ProgramOptions, ProgramResult } from "./prepare_program.ts";

/**
 * Runs a program of WASI preview 1, given in binary form or as text, with files and streams in memory. It reaches
 * nothing of the host but clocks and random bytes. Programs that start threads can have a deadline only.
 *
 * Rejects with the errors of compilation and linking, and with TypeError for options that are refused. A trap, also
 * that of a limit, is part of the result.
 *
 * @example
 * ```ts
 * import { runProgram } from "@waft/engine/wasi/program";
 *
 * const program = `(module
 *   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
 *   (memory (export "memory") 1)
 *   (data (i32.const 0) "\\08\\00\\00\\00\\06\\00\\00\\00hello\\n")
 *   (func (export "_start") (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))))`;
 * const { status, stdout } = await runProgram(program, { limits: { deadline: 1000 } });
 * if (status !== 0 || stdout !== "hello\n") throw new Error(stdout);
 * ```
 */
export async function runProgram(
  source: Uint8Array | ArrayBuffer | string,
  options: ProgramOptions = {},
): Promise<ProgramResult> {
  const program = await prepareProgram(options);
  const { engine, context } = program;
  const module = engine.compile(source);
  const start = module.exports.find(({ name }) => name === "_start");
  if (start?.kind !== "func") throw new TypeError("The module is not a program: it has no function _start");
  if (usesThreads(module)) {
    let left: Record<string, Uint8Array> = {};
    const run = async () => await runThreads(module, { ...program.wasi, onFiles: (files) => left = files }, context);
    return await program.finish(run, () => left);
  }
  const wasi = new Wasi(program.wasi);
  try {
    return await program.finish(async () => {
      const instance = module.instantiate(context, { wasi_snapshot_preview1: wasi.imports });
      try {
        wasi.attach(instance);
        await instance.callAsync(context, "_start");
        return 0;
      } finally {
        instance.close();
      }
    }, () => wasi.files);
  } finally {
    wasi.close();
  }
}
