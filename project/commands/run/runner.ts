/**
 * `waft runner`: the engine's side of `@waft/engine/runner`. In: the requests of the program that started it, through
 * standard input. Out: its answers, through standard output; it ends with the input.
 */
import type { Command } from "commander";

/** Adds `runner`. */
export function addCommand(program: Command): void {
  program.command("runner")
    .description("Run WebAssembly for a program that uses @waft/engine/runner, which starts this command.")
    .action(async () => {
      const { serveRunner } = await import("@waft/engine/internal/runner/service");
      await serveRunner();
    });
}
