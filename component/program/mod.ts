/**
 * Programs with files and streams in memory: modules of WASI preview 1, and components of the worlds `wasi:cli/command`
 * of WASI 0.2 and 0.3. In: a program in either form, and the inputs of its run. Out: its status, output and
 * files. Invariant: the program reaches nothing of the host but clocks and random bytes.
 *
 * @module
 */
import { type ProgramOptions, type ProgramResult, runProgram as runModule } from "@waft/engine/wasi/program";
import { isComponent } from "../binary/section_ids.ts";
import { isComponentText } from "../text/is_component_text.ts";
import { runCommand } from "./run_command.ts";

export type { ProgramLimits, ProgramOptions, ProgramResult } from "@waft/engine/wasi/program";

/**
 * Runs a program, a module or a component, given in binary form or as text, with files and streams in memory. It
 * reaches nothing of the host but clocks and random bytes.
 *
 * Rejects with the errors of compilation and linking, and with TypeError for options that are refused. A trap, also
 * that of a limit, is part of the result.
 *
 * @example
 * ```ts
 * import { runProgram } from "@waft/component/program";
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
  return await (isComponentSource(source) ? runCommand(source, options, true) : runModule(source, options));
}

function isComponentSource(source: Uint8Array | ArrayBuffer | string): boolean {
  if (typeof source === "string") return isComponentText(source);
  if (!(source instanceof Uint8Array) && !(source instanceof ArrayBuffer)) return false;
  const bytes = new Uint8Array(source);
  return isComponent(bytes) || isComponentText(bytes);
}
