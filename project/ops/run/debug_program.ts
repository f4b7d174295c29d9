/**
 * Prepares a program for the debugger. In: the file of a module or a component, the words of its command line, its
 * grants, and a function that takes its output. Out: its sessions, its run, and a reader of its end.
 */
import type { Launched } from "../../debug/adapter.ts";
import { componentBytes } from "../tools/component_bytes.ts";
import { readFileContent } from "../tools/read_module.ts";
import type { Print } from "./captured_output.ts";
import type { DebugOptions } from "./debug_module.ts";
import { inFile } from "./run_module.ts";

/** Prepares the program. Rejects with the FileFailure or UsageError of a run of it. */
export async function prepareProgram(
  file: string,
  args: readonly string[],
  options: DebugOptions,
  print: Print,
): Promise<Launched> {
  const content = readFileContent(file);
  const component = await inFile(file, () => componentBytes(content));
  if (component === undefined) {
    const { prepareModule } = await import("./debug_module.ts");
    return prepareModule(file, content, args, options, print);
  }
  const { prepareComponent } = await import("./debug_component.ts");
  return await prepareComponent(file, component, args, options, print);
}
