/**
 * `waft component new MODULE -o OUT`: a component of a core module. Prints nothing, or with `--json` the world of the
 * component.
 */
import type { Command } from "commander";
import { addOptions, type OptionRow } from "../option_rows.ts";
import { reportComponent } from "./report_component.ts";

interface NewFlags {
  readonly output: string;
  readonly wit?: string;
  readonly world?: string;
  readonly adapt: readonly string[];
  readonly json?: boolean;
}

const ROWS: readonly OptionRow[] = [
  { flags: "--wit <path>", description: "The world of the module: a .wit file or directory" },
  { flags: "--world <name>", description: "The world to choose if --wit has several" },
  {
    flags: "--adapt <name=file>",
    description: "Implement imports from the core module NAME by the adapter FILE, a core module",
    repeatable: true,
  },
  { flags: "--json", description: "Print the world of the component as JSON" },
];

/** Adds `component` with its subcommand. */
export function addCommand(program: Command): void {
  const component = program.command("component").description("Make components.");
  const command = component.command("new")
    .description("Make a component of a core module, of its world in WIT, and of adapters.")
    .argument(
      "<module>",
      "Core module in either form, with a world in a custom section, or with --wit; - is standard input",
    )
    .requiredOption("-o, --output <file>", "Output file; - is standard output");
  addOptions(command, ROWS).action(async (module: string, flags: NewFlags) => {
    const { makeComponent } = await import("../../ops/tools/make_component.ts");
    await reportComponent("component.new", module, flags, () => makeComponent(module, flags));
  });
}
