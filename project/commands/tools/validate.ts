/**
 * `waft validate FILE…`: prints nothing when all modules are valid, and one error per invalid module.
 */
import { type FeatureSet, NewEngine } from "@waft/engine";
import type { Command } from "commander";
import { ENGINE_OPTION_ROWS } from "../settings/engine_options.ts";
import { addOptions } from "../option_rows.ts";
import { type CompilingFlags, compilingOptions } from "../settings/project_defaults.ts";
import { PROJECT_OPTION_ROWS } from "../run/run_flags.ts";
import process from "node:process";
import { exitStatus, FileFailure, report } from "../../base/failure.ts";
import { readInput } from "../../ops/tools/read_input.ts";

/** Validates a component; false if the bytes are not one. */
async function validateIfComponent(bytes: Uint8Array, features: Partial<FeatureSet>): Promise<boolean> {
  const { componentBytes } = await import("../../ops/tools/component_bytes.ts");
  const component = await componentBytes(bytes);
  if (component === undefined) return false;
  const [{ decodeComponent }, { validateComponent }] = await Promise.all([
    import("@waft/component/internal/binary/decode"),
    import("@waft/component/internal/validate/validate_component"),
  ]);
  validateComponent(decodeComponent(component), { features });
  return true;
}

/** Adds `validate`. */
export function addCommand(program: Command): void {
  const command = program.command("validate")
    .description("Check that modules and components are valid, without compiling or running them.")
    .argument("<files...>", "Modules and components, in binary or text form");
  addOptions(command, [...PROJECT_OPTION_ROWS, ...ENGINE_OPTION_ROWS]).action(
    async (files: string[], flags: CompilingFlags) => {
      const options = await compilingOptions(flags);
      const engine = NewEngine(options);
      for (const file of files) {
        try {
          const bytes = readInput(file);
          if (!await validateIfComponent(bytes, options.features ?? {})) engine.validate(bytes);
        } catch (error) {
          const failure = new FileFailure(file, error);
          report(failure);
          process.exitCode = exitStatus(failure);
        }
      }
    },
  );
}
