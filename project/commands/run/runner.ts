/**
 * `waft runner`: the engine's side of `@waft/engine/runner` and `@waft/component/runner`. In: the requests of the
 * program that started it, through standard input. Out: its answers, through standard output; it ends with the input.
 */
import type { Command } from "commander";

/** Adds `runner`. */
export function addCommand(program: Command): void {
  program.command("runner")
    .description(
      "Run WebAssembly for a program that uses @waft/engine/runner or @waft/component/runner, which start this command.",
    )
    .action(async () => {
      const { serveRunner } = await import("@waft/engine/internal/runner/service");
      await serveRunner({ components: async () => await import("@waft/component/internal/runner/extension") });
    });
}
