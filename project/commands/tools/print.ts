/**
 * `waft print FILE`: a module or component, binary or text, to text on stdout, or to a file with `-o`.
 */
import { NewEngine } from "@waft/engine";
import type { Command } from "commander";
import { writeText } from "@waft/engine/internal/host/process";
import { printModule } from "@waft/engine/internal/text/print";
import { FileFailure } from "../../base/failure.ts";
import { writeOutput } from "../../base/replace_file.ts";
import { readInput } from "../../ops/tools/read_input.ts";

/** The text of a module or component. */
async function print(content: Uint8Array): Promise<string> {
  const { componentBytes } = await import("../../ops/tools/component_bytes.ts");
  const component = await componentBytes(content);
  if (component === undefined) return printModule(NewEngine().parse(content));
  const [{ decodeComponent }, { printComponent }] = await Promise.all([
    import("@waft/component/internal/binary/decode"),
    import("@waft/component/internal/text/print_component"),
  ]);
  return printComponent(decodeComponent(component));
}

/** Adds `print`. */
export function addCommand(program: Command): void {
  program.command("print")
    .description("Print a module or component as text.")
    .argument("<file>", "Module or component, in binary or text form; - is standard input")
    .option("-o, --output <file>", "Write to a file instead of stdout")
    .action(async (file: string, flags: { output?: string }) => {
      let text: string;
      try {
        text = await print(readInput(file));
      } catch (error) {
        throw new FileFailure(file, error);
      }
      if (flags.output === undefined || flags.output === "-") {
        writeText(1, text);
        return;
      }
      try {
        writeOutput(flags.output, text);
      } catch (error) {
        throw new FileFailure(flags.output, error);
      }
    });
}
