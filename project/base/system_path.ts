/**
 * Paths of this system, without node:path: on Deno the first import of a Node module takes longer than starting an
 * empty script. In: text. Out: normalized text, with the separators of the system. On Windows, slashes and
 * backslashes separate names, and an absolute path begins with a drive or with a share (two separators, server, share).
 */
import { currentDirectory, systemName } from "@waft/engine/internal/host/process";

/** The paths of a kind of system. */
interface PathRules {
  /** The root of an absolute path, in normal form; empty for a relative path. */
  rootOf(path: string): { readonly root: string; readonly rest: string };
  readonly separator: "/" | "\\";
  /** Separates the names of a path. */
  readonly between: RegExp;
  /** Whether names that differ only in letter case are different. */
  readonly caseMatters: boolean;
}

/** Linux and macOS. */
export const POSIX_PATHS: PathRules = {
  rootOf: (path) => path.startsWith("/") ? { root: "/", rest: path } : { root: "", rest: path },
  separator: "/",
  between: /\//,
  caseMatters: true,
};

const DRIVE = /^([A-Za-z]:)[\\/]/;
const SHARE = /^[\\/]{2}([^\\/]+)[\\/]+([^\\/]+)(?:[\\/]|$)/;

/** Windows. */
export const WINDOWS_PATHS: PathRules = {
  rootOf: (path) => {
    const drive = DRIVE.exec(path);
    if (drive !== null) return { root: `${drive[1]}\\`, rest: path.slice(drive[0].length) };
    const share = SHARE.exec(path);
    if (share === null) return { root: "", rest: path };
    return { root: `\\\\${share[1]}\\${share[2]}\\`, rest: path.slice(share[0].length) };
  },
  separator: "\\",
  between: /[\\/]/,
  caseMatters: false,
};

const RULES = systemName() === "win32" ? WINDOWS_PATHS : POSIX_PATHS;

/** Whether the path begins at a root. */
export function isAbsolutePath(path: string): boolean {
  return RULES.rootOf(path).root !== "";
}

/** Joins the parts into one path, without `.`, inner `..`, doubled and trailing separators. */
export function joinPaths(...parts: readonly string[]): string {
  return joinBy(RULES, parts);
}

/** `joinPaths` on a kind of system. */
export function joinBy({ rootOf, separator, between }: PathRules, parts: readonly string[]): string {
  const { root, rest } = rootOf(parts.filter((part) => part !== "").join(separator));
  const kept: string[] = [];
  for (const part of rest.split(between)) {
    if (part === "" || part === ".") continue;
    if (part !== ".." || kept.length === 0 || kept.at(-1) === "..") {
      if (part !== ".." || root === "") kept.push(part);
    } else kept.pop();
  }
  return root + kept.join(separator) || ".";
}

/** Whether the path, absolute and joined, is the directory or below it. */
export function isWithin(path: string, directory: string): boolean {
  return isWithinBy(RULES, path, directory);
}

/** `isWithin` on a kind of system. */
export function isWithinBy({ separator, caseMatters }: PathRules, path: string, directory: string): boolean {
  const [inner, outer] = caseMatters ? [path, directory] : [path.toLowerCase(), directory.toLowerCase()];
  return inner === outer || inner.startsWith(outer.endsWith(separator) ? outer : outer + separator);
}

/** The absolute form of a path; a relative one is resolved against `from`, or the current directory. */
export function absolutePath(path: string, from = ""): string {
  if (isAbsolutePath(path)) return joinPaths(path);
  const base = isAbsolutePath(from) ? from : joinPaths(currentDirectory(), from);
  // Only Windows has a separator in front of a path that is not absolute: it begins at the root of the drive.
  return joinPaths(RULES.between.test(path.slice(0, 1)) ? RULES.rootOf(base).root : base, path);
}

/** The directory that an absolute path is in; that of a root is itself. */
export function parentOf(path: string): string {
  return joinPaths(path, "..");
}
