/**
 * What the version does not say of an engine that runs from its sources: whether somebody has changed one of them. Out: a line of text that is another
 * one after each change, empty where there are no files to look at. Only the cache asks: an artifact that is given is of whom it says.
 */
import { readdirSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join } from "node:path";

let stamp: string | undefined;

/** Names, sizes and times of the engine's files, as one number. */
export function sourceStamp(): string {
  return stamp ??= computeStamp();
}

function computeStamp(): string {
  const here = new URL("..", import.meta.url);
  if (here.protocol !== "file:") return "";
  const hash = { value: 0x811c9dc5 | 0 };
  try {
    addFolder(hash, fileURLToPath(here));
  } catch {
    return "";
  }
  return (hash.value >>> 0).toString(16);
}

function addFolder(hash: { value: number }, folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true }).sort((a, b) => a.name < b.name ? -1 : 1)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) addFolder(hash, path);
    else if (/\.[jt]s$/.test(entry.name) && !/_test\.[jt]s$/.test(entry.name)) {
      const { size, mtimeMs } = statSync(path);
      const line = `${entry.name} ${size} ${mtimeMs};`;
      for (let k = 0; k < line.length; k++) hash.value = Math.imul(hash.value ^ line.charCodeAt(k), 0x01000193);
    }
  }
}
