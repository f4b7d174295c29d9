/**
 * Components among the files that commands read. In: a file's content. Out: the binary form of a component, or
 * undefined for anything else.
 */
import { type FileKind, fileKind } from "./file_kind.ts";

/** The binary form of a component in either form; undefined if the content is not a component. */
export async function componentBytes(
  content: Uint8Array,
  kind: FileKind = fileKind(content),
): Promise<Uint8Array | undefined> {
  if (kind === "component") return content;
  if (kind !== "text of a component") return undefined;
  // Loaded only for the text of components, since start-up pays for it.
  const { componentToBinary } = await import("@waft/component/internal/text/parse_component");
  return componentToBinary(content);
}
