/**
 * Descriptors of files and streams, as Linux numbers them. In: handles. Out: descriptors, and the open file of each.
 * The table belongs to the realm, because the numbers do.
 */
import { E } from "./linux_errors.ts";
import type { WindowsSystem } from "./windows_system.ts";

const STANDARD_HANDLES = [-10, -11, -12];

/** An open file, directory or stream. */
export interface Opened {
  readonly handle: bigint;
  /** A descriptor of the process itself: its position belongs to the handle. */
  readonly isStandard: boolean;
  readonly isDirectory: boolean;
  position: bigint;
  appends: boolean;
  /** The next getdents64 starts at the first entry. */
  restarts: boolean;
  /** A pipe that has just refused a write: the next poll reports it as not writable. */
  isFull: boolean;
}

/** The descriptors of this realm. */
const OPENED = new Map<number, Opened>();
/** Numbers of closed descriptors. */
const FREE: number[] = [];
/** The first number of a descriptor that is not the process's own. */
const FIRST_DESCRIPTOR = 1000;

/** Whether a number can be a descriptor of the JavaScript runtime: neither a standard stream nor one made here. */
export function isForeign(fd: number): boolean {
  return fd >= STANDARD_HANDLES.length && fd < FIRST_DESCRIPTOR;
}

/** A stream of the process, which the process closes itself. */
function streamOf(handle: bigint): Opened {
  return {
    handle,
    isStandard: true,
    isDirectory: false,
    position: 0n,
    appends: false,
    restarts: false,
    isFull: false,
  };
}

/** The number for a new descriptor. */
function nextDescriptor(): number {
  return FREE.pop() ?? FIRST_DESCRIPTOR + OPENED.size;
}

/** A descriptor of this realm for a stream that the program opened by itself, and closes itself. */
export function streamDescriptor(handle: bigint): number {
  const fd = nextDescriptor();
  OPENED.set(fd, streamOf(handle));
  return fd;
}

export class Descriptors {
  readonly #system: WindowsSystem;

  constructor(system: WindowsSystem) {
    this.#system = system;
  }

  /** The open file of a descriptor; the process's own on first use. */
  opened(fd: number): Opened | undefined {
    const known = OPENED.get(fd);
    const standard = STANDARD_HANDLES[fd];
    if (known !== undefined || standard === undefined) return known;
    const handle = this.#system.call("GetStdHandle", standard);
    if (handle === 0n || handle === -1n) return undefined;
    const opened = streamOf(handle);
    OPENED.set(fd, opened);
    return opened;
  }

  /** Calls `use` with the open file of a descriptor: its result, or EBADF. */
  with(fd: number | bigint, use: (opened: Opened) => number): number {
    const opened = this.opened(Number(fd));
    return opened === undefined ? E.BADF : use(opened);
  }

  /** A new descriptor of a handle. */
  add(handle: bigint, isDirectory: boolean, appends: boolean): number {
    const fd = nextDescriptor();
    OPENED.set(fd, { ...streamOf(handle), isStandard: false, isDirectory, appends, restarts: true });
    return fd;
  }

  close(fd: number): number {
    return this.with(fd, ({ handle, isStandard }) => {
      if (isStandard) return 0;
      OPENED.delete(fd);
      FREE.push(fd);
      this.#system.call("NtClose", handle);
      return 0;
    });
  }
}
