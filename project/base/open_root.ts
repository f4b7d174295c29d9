/**
 * Opens a directory that a review or the machine's configuration gives to guests or plugins.
 *
 * In: the project's directory, and the directory as it was accepted, relative to the project or absolute. Out: an
 * open descriptor, for the caller to close and to hand on in place of the path. Invariant: the descriptor is of exactly
 * the directory whose path was accepted. It is opened component by component, from the project's directory or from the
 * root of the file system, and no component may be a symbolic link: a commit could add one without any change to the
 * accepted text.
 */
import { existsSync, realpathSync } from "node:fs";
import { dirname, join, parse, relative, resolve, sep } from "node:path";
import type { ProtectedPaths } from "@waft/engine/wasi";
import { currentHost } from "@waft/engine/internal/host/current";
import { fileCalls } from "@waft/engine/internal/host/file_calls";
import { openFlags } from "@waft/engine/internal/wasi/abi";
import { foldName } from "@waft/engine/internal/wasi/path_guard";
import { checked, type PathSystem } from "@waft/engine/internal/wasi/paths";
import { Scratch } from "@waft/engine/internal/wasi/scratch";
import { escapeHostile } from "./diagnostic.ts";
import { isWithin } from "./system_path.ts";

/** Says that the directory that was accepted is not the one at its path. */
export class LinkedRoot extends Error {
  override readonly name = "LinkedRoot";
  /** The remedy. */
  readonly help: string;

  constructor(link: string, target: string, directory: string) {
    super(`${escapeHostile(link)} is a symbolic link to ${escapeHostile(target)}`);
    this.help = `use a directory without symbolic links on its path, or name the directory itself: ${directory}`;
  }
}

type System = Pick<PathSystem, "sys" | "scratch" | "open">;

let shared: System | undefined;

/** The system's calls for files, on first use. */
function system(): System {
  if (shared !== undefined) return shared;
  const host = currentHost();
  return shared = { sys: fileCalls(host), scratch: new Scratch(host), open: openFlags(host.arch) };
}

/**
 * Opens the host's `directory` of a root; relative ones begin at the project's directory `project`. Creates directories
 * that are missing if `create` is set. Throws LinkedRoot for a symbolic link on its path, and WasiError if it cannot be
 * opened.
 */
export function openRoot(project: string, directory: string, create = false): number {
  const { sys, scratch, open } = system();
  const base = realpathSync(project);
  const path = resolve(base, directory);
  const start = isWithin(path, base) ? base : parse(path).root;
  const parts = relative(start, path).split(sep).filter((part) => part !== "");
  const walked = open.PATH | open.DIRECTORY | open.CLOEXEC;
  const found = open.RDONLY | open.DIRECTORY | open.CLOEXEC;
  let fd = checked(sys("openat", -100, scratch.path(start), parts.length === 0 ? found : walked));
  for (let k = 0; k < parts.length; k++) {
    const parent = fd;
    try {
      // An existing entry is kept; any other failure surfaces when the directory is opened.
      if (create) sys("mkdirat", parent, scratch.path(parts[k]), 0o777);
      const flags = k === parts.length - 1 ? found : walked;
      fd = sys("openat", parent, scratch.path(parts[k]), flags | open.NOFOLLOW);
      if (fd < 0) {
        const target = readLink(parent, parts[k]);
        if (target !== undefined) throw new LinkedRoot(join(start, ...parts.slice(0, k + 1)), target, realPath(path));
        checked(fd);
      }
    } finally {
      sys("close", parent);
    }
  }
  return fd;
}

/** The target of the symbolic link `name`; undefined if it is none. */
function readLink(parent: number, name: string): string | undefined {
  const { sys, scratch } = system();
  const { address, size } = scratch.out;
  const length = sys("readlinkat", parent, scratch.path(name), address, size);
  return length < 0 ? undefined : scratch.text(length);
}

function realPath(path: string): string {
  try {
    return escapeHostile(realpathSync(path));
  } catch {
    return "it does not exist";
  }
}

/** The name of the directory in which Git keeps hooks and configuration, which name programs that it runs. */
const GIT_DIRECTORY = ".git";

/** The short names that Windows makes for it, also those with a hash, which follow four others. */
const SHORT_GIT = /^gi(?:t|[0-9a-f]{4})~\d+$/i;

/** Whether the path is, or leads through, a directory of Git. */
export function leadsIntoGit(path: string): boolean {
  return path.split(/[\\/]/).some((name) => foldName(name) === GIT_DIRECTORY || SHORT_GIT.test(name));
}

/** `paths`, and the entries of Git in any directory, with all of the repository that the project is in. */
export function withoutGit(paths: ProtectedPaths, project: string): ProtectedPaths {
  const { names = [], directories = [] } = paths;
  const repository = repositoryOf(realpathSync(project));
  return {
    ...paths,
    names: [...names, GIT_DIRECTORY],
    directories: repository === undefined ? directories : [...directories, repository],
  };
}

/** The directory of Git for `directory`, in it or in the nearest one above it. */
function repositoryOf(directory: string): string | undefined {
  for (let at = directory;; at = dirname(at)) {
    const found = join(at, GIT_DIRECTORY);
    if (existsSync(found)) return found;
    if (dirname(at) === at) return undefined;
  }
}
