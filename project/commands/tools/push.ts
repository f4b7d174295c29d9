/**
 * `waft push REFERENCE FILE`: stores a module or component in an OCI registry, in the format of the CNCF's TAG Runtime.
 */
import { writeText } from "@waft/engine/internal/host/process";
import type { Command } from "commander";

/** Adds `push`. */
export function addCommand(program: Command): void {
  program.command("push")
    .description(
      "Store a module or component in an OCI registry, under a tag, and print the reference with its digest. Credentials " +
        "are those of Docker's configuration.",
    )
    .argument("<reference>", "oci://HOST/NAME:TAG")
    .argument("<file>", "Module or component in binary form; - is standard input")
    .action(async (text: string, file: string) => {
      const [{ parseReference }, { push }] = await Promise.all([
        import("../../packages/oci/reference.ts"),
        import("../../ops/tools/oci_program.ts"),
      ]);
      writeText(1, `${await push(parseReference(text), file)}\n`);
    });
}
