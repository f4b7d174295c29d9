/**
 * `waft validate FILE…`: prints nothing when all modules are valid, and one error per invalid module.
 */
import { NewEngine } from "@waft/engine";
import type { Command } from "commander";
import { readFile } from "node:fs/promises";
import { ENGINE_OPTION_ROWS, type EngineFlags, engineOptions } from "./engine_options.ts";
import { addOptions } from "./option_rows.ts";
import process from "node:process";
import { exitStatus, FileFailure, report } from "../base/failure.ts";
import { inputPath } from "../ops/input_path.ts";

/** Adds `validate`. */
export function addCommand(program: Command): void {
  const command = program.command("validate")
    .description("Check that modules are valid, without compiling or running them.")
    .argument("<files...>", "Modules, in binary or text form");
  addOptions(command, ENGINE_OPTION_ROWS).action(async (files: string[], flags: EngineFlags) => {
    const engine = NewEngine(engineOptions(flags));
    for (const file of files) {
      try {
        engine.validate(await readFile(inputPath(file)));
      } catch (error) {
        const failure = new FileFailure(file, error);
        report(failure);
        process.exitCode = exitStatus(failure);
      }
    }
  });
}
