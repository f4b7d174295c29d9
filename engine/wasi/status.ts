/**
 * File status: Linux's statx (uniform over architectures) to WASI's filestat.
 */
import type { LinuxCalls } from "../host/calls/linux_calls.ts";
import { FILETYPE, FILETYPE_OF_MODE } from "./abi.ts";
import type { GuestMemory } from "./guest_memory.ts";
import type { Scratch } from "./scratch.ts";
import { checked } from "./wasi_error.ts";

const AT_FDCWD = -100;
const AT_EMPTY_PATH = 0x1000;
const AT_SYMLINK_NOFOLLOW = 0x100;
const STATX_BASIC_STATS = 0x7ff;

export interface FileStatus {
  mode: number;
  links: number;
  inode: bigint;
  device: bigint;
  size: bigint;
  /** Nanoseconds since 1970. */
  accessed: bigint;
  modified: bigint;
  changed: bigint;
}

interface StatusNeeds {
  readonly sys: LinuxCalls;
  readonly scratch: Scratch;
}

/**
 * Status of `name` in directory `fd`, without following links, or of `fd` itself; undefined when `fd` itself has none.
 */
export function readStatus({ sys, scratch }: StatusNeeds, fd: number, name?: string): FileStatus | undefined {
  const path = scratch.path(name ?? "");
  const flags = name === undefined ? AT_EMPTY_PATH : AT_SYMLINK_NOFOLLOW;
  const result = sys("statx", fd, path, flags, STATX_BASIC_STATS, scratch.out.address);
  if (result < 0 && name === undefined) return undefined;
  checked(result);
  return statusIn(scratch);
}

/**
 * Status of a path of the host, through a symbolic link or of the link itself; undefined when there is none. A relative
 * path begins at the open directory `fd`.
 */
export function readStatusAt(
  { sys, scratch }: StatusNeeds,
  path: string,
  follow: boolean,
  fd: number = AT_FDCWD,
): FileStatus | undefined {
  const flags = follow ? 0 : AT_SYMLINK_NOFOLLOW;
  const result = sys("statx", fd, scratch.path(path), flags, STATX_BASIC_STATS, scratch.out.address);
  return result < 0 ? undefined : statusIn(scratch);
}

/** The structure that statx has written. */
function statusIn(scratch: Scratch): FileStatus {
  const view = new DataView(scratch.out.buffer);
  const time = (at: number) => view.getBigInt64(at, true) * 1_000_000_000n + BigInt(view.getUint32(at + 8, true));
  return {
    mode: view.getUint16(28, true),
    links: view.getUint32(16, true),
    inode: view.getBigUint64(32, true),
    device: (BigInt(view.getUint32(136, true)) << 32n) | BigInt(view.getUint32(140, true)),
    size: view.getBigUint64(40, true),
    accessed: time(64),
    changed: time(96),
    modified: time(112),
  };
}

/** WASI file type of a status. */
export function filetypeOf(status: FileStatus): number {
  return FILETYPE_OF_MODE[status.mode >> 12] ?? FILETYPE.unknown;
}

/** Writes a filestat (64 bytes) at `at`. */
export function writeStatus(memory: GuestMemory, at: number, status: FileStatus): void {
  memory.bytes(at, 64).fill(0);
  memory.setU64(at, status.device);
  memory.setU64(at + 8, status.inode);
  memory.setU8(at + 16, filetypeOf(status));
  memory.setU64(at + 24, status.links);
  memory.setU64(at + 32, status.size);
  memory.setU64(at + 40, status.accessed);
  memory.setU64(at + 48, status.modified);
  memory.setU64(at + 56, status.changed);
}
