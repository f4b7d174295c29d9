/**
 * The range of versions of waft that a project asks for. In: a directory. Out: `package.engines.waft` of the nearest `waft.json`, or nothing; a manifest
 * that cannot be read is left to who reports it with its place.
 */
import { readFile } from "@waft/engine/host/files";
import { isMissing } from "../base/file_status.ts";
import { MANIFEST_FILE } from "../base/site.ts";
import { absolutePath, joinPaths, parentOf } from "../base/posix_path.ts";

/** The nearest manifest, and its text. */
export interface NearestManifest {
  readonly file: string;
  readonly text: string;
}

/** The `waft.json` in a directory or nearest above it; one that cannot be read has an empty text. */
export function nearestManifest(start: string): NearestManifest | undefined {
  for (let directory = absolutePath(start);; directory = parentOf(directory)) {
    const file = joinPaths(directory, MANIFEST_FILE);
    try {
      return { file, text: new TextDecoder().decode(readFile(file)) };
    } catch (error) {
      if (!isMissing(error)) return { file, text: "" };
      if (parentOf(directory) === directory) return undefined;
    }
  }
}

/** The range that the nearest manifest asks for, and where it is. */
export function askedRange(
  manifest: NearestManifest | undefined,
): { readonly range: string; readonly file: string } | undefined {
  if (manifest === undefined) return undefined;
  const { file, text } = manifest;
  if (!text.includes('"engines"') || text.length > 1 << 20) return undefined;
  try {
    const value = JSON.parse(text) as { package?: { engines?: { waft?: unknown } } } | null;
    const range = value?.package?.engines?.waft;
    return typeof range === "string" && range !== "" && range.length <= 200 ? { range, file } : undefined;
  } catch {
    return undefined;
  }
}
