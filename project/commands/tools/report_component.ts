/**
 * The output of commands that write a component. In: the operation, which writes the component and returns its file,
 * size and WIT. Out: nothing, or with `--json` the file, its size and its world.
 */
import { describeWorld } from "@waft/component/internal/wit/print";
import type { WrittenComponent } from "../../ops/tools/make_component.ts";
import { withEnvelope } from "./file_envelope.ts";

/** Runs `make` for `command` (as in output_schemas.ts) on `input` and reports the component that it wrote. */
export async function reportComponent(
  command: string,
  input: string,
  { json = false }: { readonly json?: boolean },
  make: () => WrittenComponent | Promise<WrittenComponent>,
): Promise<void> {
  await withEnvelope(command, input, json, make, {
    data: ({ file, bytes, wit: { root, omitted } }) => (
      { file, bytes, worlds: [...root.worlds.values()].map(describeWorld), omitted }
    ),
    print: () => {},
  });
}
