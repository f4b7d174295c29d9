/**
 * The program that a command line names: a file, or a reference to an OCI registry (`oci://…`), whose program is then a
 * file of the cache. In: the word. Out: a path. Costs nothing for files.
 */
import { OCI_SCHEME } from "../../base/constants.ts";
import { lateImports } from "../../base/late_import.ts";

const late = lateImports(import.meta.url);
const ociProgram = late<typeof import("../../ops/tools/oci_program.ts")>("../../ops/tools/oci_program.ts");

/** Whether the word is a reference and not a file. */
export function isReference(word: string): boolean {
  return word.startsWith(OCI_SCHEME);
}

/** The path of a program, and its name if that is not the file's. Throws FileFailure for one that cannot be pulled. */
export async function programFile(word: string): Promise<{ readonly file: string; readonly name?: string }> {
  return isReference(word) ? await (await ociProgram()).referencedFile(word) : { file: word };
}
