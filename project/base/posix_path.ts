/**
 * Paths of Linux and macOS. Input: text. Output: normalized text. Replaces the part of node:path that `waft run` needs:
 * on Deno the first import of a Node module takes longer than starting an empty script.
 */
import { currentDirectory } from "@waft/engine/internal/host/process";

/** Does the path begin at the root? */
export function isAbsolutePath(path: string): boolean {
  return path.startsWith("/");
}

/** Joins the parts into one path, without `.`, inner `..`, doubled and trailing slashes. */
export function joinPaths(...parts: readonly string[]): string {
  const text = parts.filter((part) => part !== "").join("/");
  const root = isAbsolutePath(text);
  const kept: string[] = [];
  for (const part of text.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== ".." || kept.length === 0 || kept.at(-1) === "..") {
      if (part !== ".." || !root) kept.push(part);
    } else kept.pop();
  }
  return (root ? "/" : "") + kept.join("/") || ".";
}

/** The absolute form of a path; a relative one is resolved against `from`, or the current directory. */
export function absolutePath(path: string, from = ""): string {
  if (isAbsolutePath(path)) return joinPaths(path);
  return joinPaths(isAbsolutePath(from) ? from : joinPaths(currentDirectory(), from), path);
}

/** The directory that an absolute path is in; that of `/` is `/`. */
export function parentOf(path: string): string {
  return joinPaths(path, "..");
}
