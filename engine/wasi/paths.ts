/**
 * Resolves guest paths beneath a directory. In: an open directory and a path. Out: an open parent directory and the
 * last component, for use with the *at system calls and NOFOLLOW. Invariant: no absolute path, no `..` and no symbolic
 * link escapes the directory, even when the tree changes during the resolution. Each step is paid for, and the limits
 * of the running call end the resolution: a path and its links may have 80,000 components.
 *
 * Each component is opened relative to the previous descriptor (openat with O_NOFOLLOW). Links are read and replaced by
 * their components; `..` returns to the previous descriptor and never goes above the first. A path that leads out is
 * not permitted (errno `perm`), as in WASI 0.2.
 */
import type { LinuxCalls } from "../host/calls/linux_calls.ts";
import { ERRNO, errnoOf, type openFlags } from "./abi.ts";
import type { Scratch } from "./scratch.ts";
import type { Waits } from "./waits.ts";
import { checked, WasiError } from "./wasi_error.ts";

export { checked, WasiError };

/** Maximum number of symbolic links in the resolution of one path. */
const MAX_LINKS = 40;
/** Longest path taken, in bytes. */
const MAX_PATH_BYTES = 4095;

/** The entry that a path leads to: `name` in the directory `parent`; `close` must be called. */
export interface Place {
  parent: number;
  name: string;
  /** The path ended in a slash: it must name a directory. */
  mustBeDirectory: boolean;
  close(): void;
}

/** The system calls that look at paths, and the limits under which they are made. */
export interface PathSystem {
  readonly sys: LinuxCalls;
  readonly scratch: Scratch;
  readonly open: ReturnType<typeof openFlags>;
  readonly waits: Waits;
}

export class PathResolver {
  readonly #sys: LinuxCalls;
  readonly #scratch: Scratch;
  readonly #flags: ReturnType<typeof openFlags>;
  readonly #waits: Waits;

  constructor({ sys, scratch, open, waits }: PathSystem) {
    this.#sys = sys;
    this.#scratch = scratch;
    this.#flags = open;
    this.#waits = waits;
  }

  /**
   * Resolves `path` beneath `root`. `followLast` selects whether a link in the last component is followed. A trailing
   * slash also follows it, unless `slashFollows` is false, as for names to be created.
   */
  resolve(root: number, path: string, followLast: boolean, slashFollows: boolean = true): Place {
    if (path === "") throw new WasiError(ERRNO.noent);
    if (path.includes("\0")) throw new WasiError(ERRNO.ilseq);
    if (path.length > MAX_PATH_BYTES) throw new WasiError(ERRNO.nametoolong);
    if (path.startsWith("/")) throw new WasiError(ERRNO.perm);
    const opened: number[] = [];
    const close = () => {
      for (const fd of opened.splice(0)) this.#sys("close", fd);
    };
    try {
      return { ...this.#walk(root, path, { followLast, slashFollows }, opened), close };
    } catch (error) {
      close();
      throw error;
    }
  }

  #walk(
    root: number,
    path: string,
    { followLast, slashFollows }: { followLast: boolean; slashFollows: boolean },
    opened: number[],
  ): Omit<Place, "close"> {
    const { DIRECTORY, NOFOLLOW, CLOEXEC, PATH } = this.#flags;
    let mustBeDirectory = /\/\.{0,2}$/.test(path);
    const rest = components(path).reverse();
    const stack = [root];
    let links = 0;
    for (;;) {
      const name = rest.pop();
      const parent = stack.at(-1)!;
      if (name === undefined) return { parent, name: ".", mustBeDirectory: true };
      if (name === ".") continue;
      this.#waits.step();
      if (name === "..") {
        if (stack.length === 1) throw new WasiError(ERRNO.perm);
        stack.pop();
        this.#sys("close", opened.pop()!);
        continue;
      }
      const isLast = rest.length === 0;
      if (isLast && !followLast && !(mustBeDirectory && slashFollows)) return { parent, name, mustBeDirectory };
      if (!isLast) {
        const fd = this.#sys("openat", parent, this.#scratch.path(name), PATH | DIRECTORY | NOFOLLOW | CLOEXEC);
        if (fd >= 0) {
          opened.push(fd);
          stack.push(fd);
          continue;
        }
        const errno = errnoOf(fd);
        if (errno !== ERRNO.notdir && errno !== ERRNO.loop) throw new WasiError(errno);
      }
      const target = this.readLink(parent, name);
      if (target === undefined) {
        if (isLast) return { parent, name, mustBeDirectory };
        throw new WasiError(ERRNO.notdir);
      }
      if (++links > MAX_LINKS) throw new WasiError(ERRNO.loop);
      if (target.startsWith("/")) throw new WasiError(ERRNO.perm);
      if (isLast && /\/\.{0,2}$/.test(target)) mustBeDirectory = true;
      rest.push(...components(target).reverse());
    }
  }

  /** The target of the symbolic link `name` in `parent`; undefined when it is not a link, or does not exist. */
  readLink(parent: number, name: string): string | undefined {
    const { address, size } = this.#scratch.out;
    const length = this.#sys("readlinkat", parent, this.#scratch.path(name), address, size);
    if (length >= 0) return this.#scratch.text(length);
    const errno = errnoOf(length);
    if (errno === ERRNO.inval || errno === ERRNO.noent) return undefined;
    throw new WasiError(errno);
  }
}

function components(path: string): string[] {
  return path.split("/").filter((part) => part !== "");
}
