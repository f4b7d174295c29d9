/**
 * The program that a command line names: a file, or a reference to an OCI registry (`oci://…`), whose program is then a
 * file of the cache. In: the word. Out: a path. Costs nothing for files.
 */
import { OCI_SCHEME } from "../../base/constants.ts";
import { UsageError } from "../../base/failure.ts";
import { lateImports } from "../../base/late_import.ts";

const late = lateImports(import.meta.url);
const ociProgram = late<typeof import("../../ops/tools/oci_program.ts")>("../../ops/tools/oci_program.ts");

/** Whether the word is a reference and not a file. */
export function isReference(word: string): boolean {
  return word.startsWith(OCI_SCHEME);
}

/**
 * The path of a program, and its name if that is not the file's. `signedBy`: the file of a public key by which a
 * program from a registry must be signed. Throws FileFailure for one that cannot be pulled or is not signed.
 */
export async function programFile(
  word: string,
  signedBy?: string,
): Promise<{ readonly file: string; readonly name?: string }> {
  if (isReference(word)) return await (await ociProgram()).referencedFile(word, signedBy);
  if (signedBy !== undefined) throw new UsageError("--signed-by is for programs of registries (oci://…)");
  return { file: word };
}
