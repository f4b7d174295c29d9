/**
 * What the version does not say of an engine that runs from its sources: whether somebody has changed one of them. Out: a line of text that is another
 * one after each change; the engine's address where that is no folder. Only the cache asks: an artifact that is given is of whom it says.
 */
import { linkFacts, listDirectory } from "../host/files.ts";

let stamp: string | undefined;

/** Names, sizes and times of the engine's files, as one number. */
export function sourceStamp(): string {
  return stamp ??= computeStamp();
}

function computeStamp(): string {
  const here = new URL("..", import.meta.url);
  // Elsewhere the address names the version.
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
