/**
 * Programs in OCI registries as files of commands. In: a word of the command line, or a file. Out: a path, or the facts
 * that a registry stores beside a program.
 */
import { decodeModule } from "@waft/engine/internal/binary/decode";
import { decodeComponent } from "@waft/component/internal/binary/decode";
import { isComponent } from "@waft/component/internal/binary/section_ids";
import { FileFailure } from "../../base/failure.ts";
import { type ProgramFacts, type PulledProgram, pullProgram, pushProgram } from "../../packages/oci/artifact.ts";
import { type OciReference, parseReference, referenceText } from "../../packages/oci/reference.ts";
import { signatureKey } from "../../packages/oci/signature.ts";
import { readInput } from "./read_input.ts";

/**
 * A reference as the file that holds its program, and the name of that program. `keyFile`: the file of a public key by
 * which the program must be signed.
 */
export async function referencedFile(
  word: string,
  keyFile?: string,
): Promise<{ readonly file: string; readonly name: string }> {
  const reference = parseReference(word);
  const { path } = await pull(reference, keyFile);
  return { file: path, name: reference.name.split("/").at(-1) ?? reference.name };
}

/** Pulls a program, which must be signed by the public key in `keyFile` if there is one. Throws FileFailure. */
export async function pull(reference: OciReference, keyFile?: string): Promise<PulledProgram> {
  const signedBy = keyFile === undefined ? undefined : keyIn(keyFile);
  try {
    return await pullProgram(reference, signedBy === undefined ? {} : { signedBy });
  } catch (error) {
    throw new FileFailure(referenceText(reference), error);
  }
}

/** The public key in a file. Throws FileFailure. */
function keyIn(file: string): string {
  try {
    const pem = new TextDecoder().decode(readInput(file));
    signatureKey(pem);
    return pem;
  } catch (error) {
    throw new FileFailure(file, error);
  }
}

/** Pushes the module or component in `file`. Returns the reference with its digest. Throws FileFailure. */
export async function push(reference: OciReference, file: string): Promise<string> {
  let bytes: Uint8Array<ArrayBuffer>;
  let facts: ProgramFacts;
  try {
    bytes = readInput(file);
    facts = factsOf(bytes);
  } catch (error) {
    throw new FileFailure(file, error);
  }
  try {
    return await pushProgram(reference, bytes, facts);
  } catch (error) {
    throw new FileFailure(referenceText(reference), error);
  }
}

/** Decodes a binary. Throws the errors of the decoder. */
function factsOf(bytes: Uint8Array): ProgramFacts {
  if (bytes[0] !== 0) throw new Error("registries take programs in binary form; `waft parse` translates text");
  if (!isComponent(bytes)) {
    decodeModule(bytes);
    return { kind: "module", imports: [], exports: [] };
  }
  const { definitions } = decodeComponent(bytes);
  const names = (kind: "import" | "export") =>
    definitions.flatMap((definition) => definition.kind === kind ? [definition.name] : []);
  return { kind: "component", imports: names("import"), exports: names("export") };
}
