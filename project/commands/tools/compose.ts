/**
 * `waft compose COMPONENT --plug FILE… -o OUT`: a component of several. Prints nothing, or with `--json` the world of
 * the composition.
 */
import type { Command } from "commander";
import { UsageError } from "../../base/failure.ts";
import { addOptions, type OptionRow } from "../option_rows.ts";
import { reportComponent } from "./report_component.ts";

interface ComposeFlags {
  readonly output: string;
  readonly plug: readonly string[];
  readonly json?: boolean;
}

const ROWS: readonly OptionRow[] = [
  {
    flags: "--plug <file>",
    description: "A component whose exports satisfy imports of the component and of plugs after it",
    repeatable: true,
  },
  { flags: "--json", description: "Print the world of the composition as JSON" },
];

/** Adds `compose`. */
export function addCommand(program: Command): void {
  const command = program.command("compose")
    .description("Connect a component with components that export the interfaces that it imports.")
    .argument(
      "<component>",
      "Component in either form, whose exports are those of the composition; - is standard input",
    )
    .requiredOption("-o, --output <file>", "Output file; - is standard output");
  addOptions(command, ROWS).action(async (component: string, flags: ComposeFlags) => {
    if (flags.plug.length === 0) throw new UsageError("compose requires --plug: a component to connect");
    const { composeFiles } = await import("../../ops/tools/make_component.ts");
    await reportComponent("compose", component, flags, () => composeFiles(component, flags));
  });
}
