/**
 * `waft compile FILE -o ARTIFACT`: compiles a module to machine code in a file that `waft run --allow-precompiled` and
 * `Engine.load` accept. In: a module, options, a machine. Out: the artifact, written completely or not at all.
 */
import { NewEngine } from "@waft/engine";
import type { Command } from "commander";
import { FileFailure, UsageError } from "../../base/failure.ts";
import { writeOutput } from "../../base/replace_file.ts";
import { machineOf } from "../../ops/build/machine_name.ts";
import { fileKind, isComponentKind } from "../../ops/tools/file_kind.ts";
import { readInput } from "../../ops/tools/read_input.ts";
import { ENGINE_OPTION_ROWS } from "../settings/engine_options.ts";
import { addOptions } from "../option_rows.ts";
import { compileProgress } from "./compile_progress.ts";
import { type CompilingFlags, compilingOptions } from "../settings/project_defaults.ts";
import { PROJECT_OPTION_ROWS } from "../run/run_flags.ts";

const NO_COMPONENTS = "this is a component, and artifacts are of modules: `waft run` keeps the compiled code of " +
  "components in its cache, and `waft build` makes an executable of one";

interface CompileFlags extends CompilingFlags {
  readonly output: string;
  readonly target?: string;
  readonly cpu?: string;
}

/** Adds `compile`. */
export function addCommand(program: Command): void {
  const command = program.command("compile")
    .description("Compile a module to an artifact: machine code that runs without a compiler.")
    .argument("<file>", "Module, in binary or text form; - is standard input")
    .requiredOption("-o, --output <file>", "Output file")
    .option("--target <os/arch>", "Target machine, such as linux/arm64 or windows/amd64 (default: this one)")
    .option("--cpu <features>", "Instruction-set extensions of the target, separated by commas");
  addOptions(command, [...PROJECT_OPTION_ROWS, ...ENGINE_OPTION_ROWS]).action(
    async (file: string, flags: CompileFlags) => {
      const progress = await compileProgress();
      const engine = NewEngine({ ...await compilingOptions(flags), tier: "optimizing", ...progress.option });
      const machine = flags.target === undefined ? undefined : machineOf("--target", flags.target, flags.cpu);
      if (machine === undefined && flags.cpu !== undefined) throw new UsageError("--cpu requires --target");
      const done = progress.start(`compiling ${file}`);
      let artifact: Uint8Array;
      try {
        const bytes = readInput(file);
        if (isComponentKind(fileKind(bytes))) throw new Error(NO_COMPONENTS);
        artifact = machine === undefined ? engine.compile(bytes).serialize() : await engine.compileFor(machine, bytes);
      } catch (error) {
        throw new FileFailure(file, error);
      } finally {
        done();
      }
      try {
        writeOutput(flags.output, artifact);
      } catch (error) {
        throw new FileFailure(flags.output, error);
      }
      progress.finish(flags.output, artifact.length);
    },
  );
}
