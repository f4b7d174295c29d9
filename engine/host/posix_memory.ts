/**
 * Memory on systems with mmap: reservations, protection, and copy-on-write images, which are files without a name. In:
 * the system calls. Out: the parts of a {@linkcode Host} that concern memory.
 */
import { type Host, PROT } from "./host.ts";
import type { SystemCalls } from "./system_calls.ts";
import type { PosixFacts } from "./systems.ts";

const SEEK_END = 2;

/** The parts of a host that concern memory. */
type PosixMemory =
  & Pick<
    Host,
    | "reserve"
    | "replace"
    | "protect"
    | "release"
    | "discard"
    | "createImage"
    | "openImage"
    | "mapImage"
    | "closeImage"
    | "preferLargePages"
  >
  & {
    /** A file without a name that contains `bytes`. Throws an Error that names its purpose. */
    createFile(bytes: Uint8Array, purpose: string): number;
  };

/** Creates the parts from the calls of a system. */
export function posixMemory(system: PosixFacts, calls: SystemCalls): PosixMemory {
  const { files } = calls;

  function map(address: number, bytes: number, prot: number, flags: number): number {
    const at = calls.mmap(address, bytes, prot, flags, -1, 0);
    if (at < 0 || at >= 2 ** 63) throw new RangeError(`Out of address space: cannot map ${bytes} bytes`);
    return at;
  }

  function writeAll(fd: number, bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const part = bytes.subarray(at);
      const written = files.write(fd, part);
      if (written <= 0) throw new Error("Cannot create a file without a name: writing it failed");
      at += written;
    }
  }

  /** A file without a name that contains `bytes`. */
  function createFile(bytes: Uint8Array, purpose: string): number {
    const fd = files.createUnnamed();
    if (fd < 0) throw new Error(`Cannot create ${purpose}: the system does not give a file without a name`);
    try {
      writeAll(fd, bytes);
    } catch (error) {
      files.close(fd);
      throw error;
    }
    return fd;
  }

  function reserve(bytes: number, prot: number): number {
    return map(0, bytes, prot, system.MAP_PRIVATE | system.MAP_ANONYMOUS | system.MAP_NORESERVE);
  }

  function replace(address: number, bytes: number, prot: number): void {
    const flags = system.MAP_PRIVATE | system.MAP_ANONYMOUS | system.MAP_NORESERVE | system.MAP_FIXED;
    map(address, bytes, prot, flags);
  }

  return {
    createFile,
    reserve,
    replace,
    protect: (address, bytes, prot) => {
      if (calls.mprotect(address, bytes, prot) !== 0) {
        throw new RangeError(`Out of memory: cannot make ${bytes} bytes accessible`);
      }
    },
    release: (address, bytes) => {
      calls.munmap(address, bytes);
    },
    discard: (address, bytes, mapAgain) => {
      if (system.MADV_ZERO === undefined) {
        replace(address, bytes, PROT.READ | PROT.WRITE);
        mapAgain?.();
      } else if (calls.madvise(address, bytes, system.MADV_ZERO) !== 0) {
        throw new RangeError(`Out of memory: cannot drop ${bytes} bytes`);
      }
    },
    createImage: (bytes) => createFile(bytes, "an image"),
    openImage: (path) => {
      if (path.includes("\0")) throw new TypeError("A path cannot hold a zero byte");
      const fd = files.open(new TextEncoder().encode(`${path}\0`), system.OPEN_TO_READ);
      if (fd < 0) throw new Error(`Cannot open ${path}`);
      const bytes = files.lseek(fd, 0, SEEK_END);
      if (bytes >= 0 && bytes <= Number.MAX_SAFE_INTEGER) return { image: fd, bytes };
      files.close(fd);
      throw new Error(`Cannot map ${path}: not a regular file`);
    },
    mapImage: (address, bytes, image, offset = 0, prot = PROT.READ | PROT.WRITE) => {
      if ((prot & PROT.EXEC) !== 0 && !system.mapsCode) throw new RangeError("This system maps only signed code");
      const flags = system.MAP_PRIVATE | system.MAP_FIXED;
      const at = calls.mmap(address, bytes, prot, flags, image, offset);
      if (at !== address) throw new RangeError(`Out of address space: cannot map ${bytes} bytes`);
    },
    closeImage: (image) => {
      files.close(image);
    },
    preferLargePages: (address, bytes) => {
      if (system.MADV_HUGEPAGE !== undefined) calls.madvise(address, bytes, system.MADV_HUGEPAGE);
    },
  };
}
