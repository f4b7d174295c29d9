/**
 * `waft:fs@1`: files beneath the directories that a review bound to a plugin's roots.
 *
 * In: a plugin and its grants (`{ "/store": "./data" }`: the plugin's name for a root, and the host's directory).
 * Out: its functions. A plugin's path begins with a root; the longest granted root that matches is used, and the
 * engine's resolver resolves the rest: no `..`, no absolute link and no race leads out. A root is exactly the directory
 * whose path was accepted: no symbolic link is followed on the way to it (open_root.ts), and it is not opened again.
 * The project's protected files (protected_paths.ts) and the directories of Git are never changed. Only the roots stay
 * open between calls.
 */
import { Buffer } from "node:buffer";
import { ERRNO, FILETYPE } from "@waft/engine/internal/wasi/abi";
import type { ProtectedPaths } from "@waft/engine/wasi";
import { PathGuard } from "@waft/engine/internal/wasi/path_guard";
import { checked, type Place, WasiError } from "@waft/engine/internal/wasi/paths";
import { type FileStatus, filetypeOf, readStatus } from "@waft/engine/internal/wasi/status";
import { STATUS } from "../definitions/authorities.ts";
import type { JsonObject } from "../base/json_read.ts";
import { protectedPaths } from "../base/protected_paths.ts";
import { fail, oneWord } from "../base/diagnostic.ts";
import { leadsIntoGit, LinkedRoot, openRoot, withoutGit } from "../base/open_root.ts";
import type { ComponentPlace, PluginServices } from "./component_part.ts";
import { type HostFunctionGroup, type PluginNode, StatusError } from "./node.ts";
import { inPieces, pay, system } from "./system.ts";

const STATUS_OF_ERRNO: ReadonlyMap<number, number> = new Map([
  [ERRNO.noent, STATUS.missing],
  [ERRNO.notdir, STATUS.missing],
  [ERRNO.exist, STATUS.exists],
  [ERRNO.notempty, STATUS.exists],
  [ERRNO.notcapable, STATUS.denied],
  [ERRNO.acces, STATUS.denied],
  [ERRNO.perm, STATUS.denied],
  [ERRNO.rofs, STATUS.denied],
  [ERRNO.inval, STATUS.invalid],
  [ERRNO.isdir, STATUS.invalid],
  [ERRNO.nametoolong, STATUS.invalid],
  [ERRNO.ilseq, STATUS.invalid],
  [ERRNO.loop, STATUS.invalid],
  [ERRNO.xdev, STATUS.invalid],
]);

/** Runs `action`; failures of the system become statuses. */
function withStatus<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (!(error instanceof WasiError)) throw error;
    throw new StatusError(STATUS_OF_ERRNO.get(error.errno) ?? STATUS.failed);
  }
}

/** The directories of an authority, opened on first use. */
class Roots {
  readonly #directories: readonly (readonly [string, string])[];
  readonly #node: PluginNode;
  readonly #writes: boolean;
  readonly #open = new Map<string, number>();

  constructor(node: PluginNode, scope: JsonObject | undefined, writes: boolean) {
    const roots = (scope?.roots ?? {}) as { readonly [root: string]: string };
    // The longest first: "/store/cache" before "/store" before "/".
    this.#directories = Object.entries(roots).sort(([a], [b]) => b.length - a.length);
    this.#node = node;
    this.#writes = writes;
    for (const [root, directory] of this.#directories) this.#openEarly(root, directory);
  }

  /** Opens a directory that exists, before the plugin runs: one that cannot be its root is an error at once. */
  #openEarly(root: string, directory: string): void {
    try {
      this.#descriptor(root, directory, false);
    } catch (error) {
      // It may exist when it is used, and failures become statuses then.
      if (!(error instanceof WasiError)) throw error;
    }
  }

  /** Resolves a path of the plugin and runs `action` on the place. */
  at<T>(path: string, follow: boolean, action: (place: Place) => T): T {
    return withStatus(() => {
      const found = this.#directories.find(([root]) => root === "/" || path === root || path.startsWith(root + "/"));
      if (found === undefined || !path.startsWith("/")) throw new StatusError(STATUS.denied);
      const rest = path.slice(found[0].length).replace(/^\/+/, "");
      const place = system().resolver.resolve(
        this.#descriptor(...found, this.#writes),
        rest === "" ? "." : rest,
        follow,
      );
      try {
        return action(place);
      } finally {
        place.close();
      }
    });
  }

  #descriptor(root: string, directory: string, create: boolean): number {
    const known = this.#open.get(directory);
    if (known !== undefined) return known;
    const fd = openPluginRoot(this.#node, root, directory, { writes: this.#writes, create });
    this.#open.set(directory, fd);
    this.#node.closers.push(() => system().sys("close", fd));
    return fd;
  }
}

/**
 * Opens the host's `directory` of a plugin's root `name`; creates it if it is missing and `create` is set. Throws
 * WasiError, and a ProjectError for a directory that no plugin gets.
 */
export function openPluginRoot(
  { plugin, services }: ComponentPlace,
  name: string,
  directory: string,
  { writes, create }: { readonly writes: boolean; readonly create: boolean },
): number {
  const subject = `${plugin.id}: the directory ${oneWord(directory)} of its root ${name}`;
  if (writes && leadsIntoGit(directory)) {
    throw fail("link.root", `${subject} is Git's: its files name programs that Git runs`, {
      help: "grant fs.write for another directory, with `waft trust --review`",
    });
  }
  try {
    return openRoot(plugin.root ?? services.root, directory, create);
  } catch (error) {
    if (!(error instanceof LinkedRoot)) throw error;
    throw fail("link.root", `${subject} is not the one that was accepted: ${error.message}`, { help: error.help });
  }
}

/** The paths that no plugin changes. */
export function protectedFromPlugins({ root, artifact }: PluginServices): ProtectedPaths {
  return withoutGit(protectedPaths({ root, ...(artifact === undefined ? {} : { artifact }) }), root);
}

/**
 * Opens a regular file, runs `action` on its descriptor, closes it. A pipe or device is refused without waiting for it.
 */
function onFile<T>(place: Place, flags: number, action: (fd: number, status: FileStatus) => T): T {
  const { sys, scratch, open } = system();
  const all = flags | open.NOFOLLOW | open.CLOEXEC | open.NONBLOCK;
  const fd = checked(sys("openat", place.parent, scratch.path(place.name), all, 0o666));
  try {
    const status = readStatus(system(), fd);
    if (place.mustBeDirectory || status === undefined || filetypeOf(status) !== FILETYPE.regular_file) {
      throw new StatusError(STATUS.invalid);
    }
    return action(fd, status);
  } finally {
    sys("close", fd);
  }
}

/** Repeats a call that a signal interrupted. */
function again(call: () => number): number {
  for (;;) {
    const result = call();
    if (result !== -4) return checked(result);
  }
}

/** Functions of `waft:fs@1`. */
export const fileFunctions: HostFunctionGroup = (node, grants) => {
  const { memory } = node;
  const readable = new Roots(node, grants["fs.read"], false);
  const writable = new Roots(node, grants["fs.write"], true);
  const guard = new PathGuard(system(), protectedFromPlugins(node.services));
  const offsetOf = (offset: bigint): bigint => {
    if (offset < 0n) throw new StatusError(STATUS.invalid);
    return offset;
  };
  return {
    /** Writes kind (0 other, 1 file, 2 directory) as u32, 4 zero bytes, size and time of change (ns) as u64. */
    stat: (path: number, length: number, out: number) =>
      readable.at(memory.text(path, length), true, (place) => {
        const status = readStatus(system(), place.parent, place.name)!;
        const type = filetypeOf(status);
        const bytes = memory.bytes(out, 24);
        const view = new DataView(bytes.buffer, bytes.byteOffset, 24);
        view.setUint32(0, type === FILETYPE.regular_file ? 1 : type === FILETYPE.directory ? 2 : 0, true);
        view.setUint32(4, 0, true);
        view.setBigUint64(8, status.size, true);
        view.setBigInt64(16, status.modified, true);
        return STATUS.ok;
      }),
    read: (path: number, length: number, offset: bigint, at: number, room: number) =>
      readable.at(memory.text(path, length), true, (place) => {
        const address = memory.address(at, room);
        const { sys, open } = system();
        const from = offsetOf(offset);
        return onFile(
          place,
          open.RDONLY,
          (fd) =>
            inPieces(
              room >>> 0,
              (done, bytes) => again(() => sys("pread64", fd, address + done, bytes, from + BigInt(done))),
            ),
        );
      }),
    /** Writes the names, each with a zero byte after it, if all fit; returns the bytes they need. */
    list: (path: number, length: number, at: number, room: number) =>
      readable.at(memory.text(path, length), true, (place) => {
        const names = namesIn(place);
        const size = names.reduce((sum, name) => sum + name.length + 1, 0);
        const to = memory.bytes(at, room);
        if (size > to.length) return size;
        to.set(Buffer.from(names.map((name) => `${name}\0`).join(""), "latin1"));
        return size;
      }),
    /** Offset -1 appends. */
    write: (path: number, length: number, offset: bigint, at: number, count: number) =>
      writable.at(memory.text(path, length), true, (place) => {
        const address = memory.address(at, count);
        const { sys, open } = system();
        guard.checkEntry(place);
        return onFile(
          place,
          open.WRONLY | open.CREAT | (offset === -1n ? open.APPEND : 0),
          (fd) => {
            guard.checkContents(fd);
            return inPieces(
              count >>> 0,
              (done, bytes) =>
                again(() =>
                  offset === -1n
                    ? sys("write", fd, address + done, bytes)
                    : sys("pwrite64", fd, address + done, bytes, offsetOf(offset) + BigInt(done))
                ),
            );
          },
        );
      }),
    truncate: (path: number, length: number, size: bigint) =>
      writable.at(memory.text(path, length), true, (place) => {
        const { sys, open } = system();
        onFile(place, open.WRONLY, (fd) => {
          guard.checkEntry(place);
          guard.checkContents(fd);
          return again(() => sys("ftruncate", fd, offsetOf(size)));
        });
        return STATUS.ok;
      }),
    rename: (from: number, fromLength: number, to: number, toLength: number) =>
      writable.at(
        memory.text(from, fromLength),
        false,
        (old) =>
          writable.at(memory.text(to, toLength), false, (next) => {
            const { sys, scratch } = system();
            guard.checkMove(old);
            guard.checkTarget(next);
            const [a, b] = [scratch.path(old.name), scratch.path(next.name, true)];
            checked(sys("renameat2", old.parent, a, next.parent, b, 0));
            return STATUS.ok;
          }),
      ),
    /** A file, or an empty directory. */
    remove: (path: number, length: number) =>
      writable.at(memory.text(path, length), false, (place) => {
        const { sys, scratch } = system();
        const status = readStatus(system(), place.parent, place.name)!;
        guard.checkMove(place);
        const directory = filetypeOf(status) === FILETYPE.directory ? 0x200 : 0;
        checked(sys("unlinkat", place.parent, scratch.path(place.name), directory));
        return STATUS.ok;
      }),
    "make-dir": (path: number, length: number) =>
      writable.at(memory.text(path, length), false, (place) => {
        const { sys, scratch } = system();
        guard.checkEntry(place);
        checked(sys("mkdirat", place.parent, scratch.path(place.name), 0o777));
        return STATUS.ok;
      }),
    sync: (path: number, length: number) =>
      writable.at(memory.text(path, length), true, (place) => {
        const { sys, open } = system();
        onFile(place, open.WRONLY, (fd) => again(() => sys("fsync", fd)));
        return STATUS.ok;
      }),
  };
};

/** The price of comparing two names, as that of so many bytes moved; it is charged for many comparisons at once. */
const COMPARISON_COST = 64;
const COMPARISONS_PER_CHARGE = 256;

/** Names in a directory, one character per byte, sorted. */
function namesIn(place: Place): string[] {
  const { sys, scratch, open } = system();
  const flags = open.RDONLY | open.DIRECTORY | open.NOFOLLOW | open.CLOEXEC;
  const fd = checked(sys("openat", place.parent, scratch.path(place.name), flags));
  try {
    const { address, size, u8, buffer } = scratch.out;
    const view = new DataView(buffer);
    const names: string[] = [];
    for (;;) {
      const length = checked(sys("getdents64", fd, address, size));
      if (length === 0) break;
      pay(length);
      for (let at = 0; at < length; at += view.getUint16(at + 16, true)) {
        let end = at + 19;
        while (u8[end] !== 0) end++;
        const name = Buffer.from(buffer, u8.byteOffset + at + 19, end - at - 19).toString("latin1");
        if (name !== "." && name !== "..") names.push(name);
      }
    }
    let compared = 0;
    return names.sort((a, b) => {
      if (++compared % COMPARISONS_PER_CHARGE === 0) pay(COMPARISONS_PER_CHARGE * COMPARISON_COST);
      return a < b ? -1 : 1;
    });
  } finally {
    sys("close", fd);
  }
}
