/**
 * The binary form of the file that `waft objdump` shows. In: a path. Out: bytes that begin like a module or component.
 * Throws the errors of the text formats.
 */
import { componentBytes } from "../tools/component_bytes.ts";
import { fileKind } from "../tools/file_kind.ts";
import { readInput } from "../tools/read_input.ts";
import { binaryOf } from "./inspect_file.ts";

/** Reads a module or component in either form. */
export async function objectBytes(path: string): Promise<Uint8Array> {
  const content = readInput(path);
  const kind = fileKind(content);
  if (kind === "artifact") throw new Error("this is an artifact, whose contents `waft inspect` shows");
  const component = await componentBytes(content, kind);
  if (component !== undefined) return component;
  return kind === "module" ? content : binaryOf(content);
}
