/**
 * Identifies the sources of an engine that runs from a source tree, where the version alone does not reveal local
 * changes. Out: a line of text that changes whenever a source file changes, or the engine's URL if it does not run from
 * a directory. Used only for cache keys; an artifact that a caller loads is identified by its header.
 */
import { linkFacts, listDirectory } from "../host/files.ts";

/** The stamp, once it has been computed. */
let stamp: string | undefined;

/**
 * A hash of the names, sizes and modification times of the engine's source files; the engine's URL if that is remote;
 * empty if the files cannot be read.
 */
export function sourceStamp(): string {
  return stamp ??= computeStamp();
}

function computeStamp(): string {
  const here = new URL("..", import.meta.url);
  // A remote URL contains the version.
  if (here.protocol !== "file:") return here.href;
  const hash = { value: 0x811c9dc5 | 0 };
  try {
    addFolder(hash, decodeURIComponent(here.pathname).replace(/\/$/, ""));
  } catch {
    return "";
  }
  return (hash.value >>> 0).toString(16);
}

function addFolder(hash: { value: number }, folder: string): void {
  for (const { name, isDirectory } of listDirectory(folder).sort((a, b) => a.name < b.name ? -1 : 1)) {
    const path = `${folder}/${name}`;
    if (isDirectory) addFolder(hash, path);
    else if (/\.[jt]s$/.test(name) && !/_test\.[jt]s$/.test(name)) {
      const { bytes, modifiedMs } = linkFacts(path);
      const line = `${name} ${bytes} ${modifiedMs};`;
      for (let k = 0; k < line.length; k++) hash.value = Math.imul(hash.value ^ line.charCodeAt(k), 0x01000193);
    }
  }
}
