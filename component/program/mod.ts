/**
 * Programs with files and streams in memory: modules of WASI preview 1, and components of the worlds `wasi:cli/command`
 * of WASI 0.2 and 0.3. In: a program in either form, and the inputs of its run. Out: its status, output and
 * files. Invariant: the program reaches nothing of the host but clocks and random bytes.
 *
 * @module
 */
import { prepareProgram } from "@waft/engine/internal/wasi/prepare_program";
import { type ProgramOptions, type ProgramResult, runProgram as runModule } from "@waft/engine/wasi/program";
import { ComponentError } from "../abi/traps.ts";
import { isComponent } from "../binary/section_ids.ts";
import { compileComponent } from "../compile_source.ts";
import { isComponentText } from "../text/is_component_text.ts";
import { ComponentWasi } from "../wasi/mod.ts";

export type { ProgramLimits, ProgramOptions, ProgramResult } from "@waft/engine/wasi/program";

/** The function that runs a command, in WASI 0.3 and 0.2. */
const RUN = ["wasi:cli/run@0.3.0#run", "wasi:cli/run@0.2.0#run"] as const;

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
  return await (isComponentSource(source) ? runComponent(source, options) : runModule(source, options));
}

function isComponentSource(source: Uint8Array | ArrayBuffer | string): boolean {
  if (typeof source === "string") return isComponentText(source);
  if (!(source instanceof Uint8Array) && !(source instanceof ArrayBuffer)) return false;
  const bytes = new Uint8Array(source);
  return isComponent(bytes) || isComponentText(bytes);
}

async function runComponent(
  source: Uint8Array | ArrayBuffer | string,
  options: ProgramOptions,
): Promise<ProgramResult> {
  const program = await prepareProgram(options);
  const { engine, context } = program;
  const component = compileComponent(engine, source);
  const wasi = new ComponentWasi({ ...program.wasi, waitInEventLoop: true });
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
