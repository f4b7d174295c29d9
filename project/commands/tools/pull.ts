/**
 * `waft pull REFERENCE`: fetches a module or component from an OCI registry into the cache, or into a file.
 */
import { writeText } from "@waft/engine/internal/host/process";
import type { Command } from "commander";

/** Adds `pull`. */
export function addCommand(program: Command): void {
  program.command("pull")
    .description(
      "Fetch a module or component from an OCI registry and print the reference with its digest. Credentials are those " +
        "of Docker's configuration.",
    )
    .argument("<reference>", "oci://HOST/NAME:TAG, or oci://HOST/NAME@sha256:DIGEST")
    .option("-o, --output <file>", "Write the program to a file; - is standard output")
    .option("--signed-by <file>", "Public key (PEM) by which the program must be signed (cosign)")
    .action(async (text: string, { output, signedBy }: { output?: string; signedBy?: string }) => {
      const [{ parseReference }, { pull }] = await Promise.all([
        import("../../packages/oci/reference.ts"),
        import("../../ops/tools/oci_program.ts"),
      ]);
      const { reference, bytes } = await pull(parseReference(text), signedBy);
      if (output !== undefined) {
        const { writeOutput } = await import("../../base/replace_file.ts");
        writeOutput(output, bytes);
      }
      writeText(output === "-" ? 2 : 1, `${reference}\n`);
    });
}
