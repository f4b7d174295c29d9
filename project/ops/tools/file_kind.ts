/**
 * The kinds of files that hold a program. In: a file's content. Out: its kind, which every command asks for here.
 * Invariant: only the first bytes decide, so a file of a kind may still be invalid; loads no compiler and no parser.
 */
import { isComponent } from "@waft/component/internal/binary/section_ids";
import { isComponentText } from "@waft/component/internal/text/is_component_text";
import { looksLikeArtifact } from "@waft/engine/internal/artifact/format";
import { isBinary } from "@waft/engine/internal/binary/decode";

/** Whether the content begins like a JSON object with a list of modules. */
function looksLikeExtismManifest(content: Uint8Array): boolean {
  const first = content.find((byte) => byte > 0x20);
  return first === 0x7b && /"wasm"\s*:/.test(new TextDecoder("latin1").decode(content.subarray(0, MANIFEST_BYTES)));
}

/** The bytes at the beginning of a file in which its modules must be named. */
const MANIFEST_BYTES = 1 << 16;

/** The kinds, each with its test; the first one that holds decides. */
const KINDS = {
  "artifact": looksLikeArtifact,
  "component": isComponent,
  "module": isBinary,
  "text of a component": isComponentText,
  "manifest of Extism": looksLikeExtismManifest,
  // What is nothing else is compiled as the text of a module, whose parser reports its first mistake.
  "text of a module": (_: Uint8Array) => true,
} as const satisfies Record<string, (content: Uint8Array) => boolean>;

/** A kind of file. */
export type FileKind = keyof typeof KINDS;

const ROWS = Object.entries(KINDS) as [FileKind, (content: Uint8Array) => boolean][];

/** Whether files of a kind are components, in either form. */
export function isComponentKind(kind: FileKind): boolean {
  return kind === "component" || kind === "text of a component";
}

/** The kind of file that has this content. */
export function fileKind(content: Uint8Array): FileKind {
  return ROWS.find(([, holds]) => holds(content))![0];
}
