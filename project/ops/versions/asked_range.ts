/**
 * The range of versions of waft that a project asks for. In: a directory. Out: `package.engines.waft` of the
 * nearest `waft.json`, or nothing. A manifest that cannot be read is left to the command, which reports it with its
 * place.
 */
import { readFile } from "@waft/engine/internal/host/files";
import { MANIFEST_FILE } from "../../base/constants.ts";
import { fileStatus } from "../../base/file_status.ts";
import { joinPaths } from "../../base/system_path.ts";
import { findProjectRoot } from "../../project_root.ts";

/** The largest manifest that is read here. */
const MAX_BYTES = 1 << 20;

/** The nearest manifest, and its text. */
interface NearestManifest {
  readonly file: string;
  readonly text: string;
}

/**
 * The manifest of the project that a directory belongs to; its text is empty when it cannot be read. Throws for a
 * project that other users could have written.
 */
export function nearestManifest(start: string): NearestManifest | undefined {
  const root = findProjectRoot(start);
  if (root === undefined) return undefined;
  const file = joinPaths(root, MANIFEST_FILE);
  try {
    // A pipe or a device would never end.
    const status = fileStatus(file);
    if (status?.kind !== "file" || status.size > MAX_BYTES) return { file, text: "" };
    return { file, text: new TextDecoder().decode(readFile(file)) };
  } catch {
    return { file, text: "" };
  }
}

/** The range that the nearest manifest asks for, and where it is. */
export function askedRange(
  manifest: NearestManifest | undefined,
): { readonly range: string; readonly file: string } | undefined {
  if (manifest === undefined) return undefined;
  const { file, text } = manifest;
  if (!text.includes('"engines"')) return undefined;
  try {
    const value = JSON.parse(text) as { package?: { engines?: { waft?: unknown } } } | null;
    const range = value?.package?.engines?.waft;
    return typeof range === "string" && range !== "" && range.length <= 200 ? { range, file } : undefined;
  } catch {
    return undefined;
  }
}
