/**
 * WASI preview 1: all functions of `wasi_snapshot_preview1`, on system calls of our own (Linux). In: arguments, environment and the directories
 * that the guest may use. Out: an import namespace; nothing outside those directories can be reached (paths.ts).
 */
import { UNCATCHABLE } from "../errors.ts";
import { currentHost } from "../host/current.ts";
import { type LinuxCalls, linuxCalls } from "../host/linux_calls.ts";
import type { Instance } from "../engine.ts";
import { Memory } from "../runtime/memory/memory.ts";
import {
  ALL_RIGHTS,
  DIRECTORY_RIGHTS,
  ERRNO,
  errnoOf,
  FILETYPE,
  FILETYPE_OF_MODE,
  openFlags,
  STREAM_RIGHTS,
} from "./abi.ts";
import { clockFunctions } from "./clock.ts";
import { Descriptors } from "./descriptors.ts";
import { fileFunctions } from "./files.ts";
import { GuestMemory } from "./guest_memory.ts";
import { PathGuard, type ProtectedPaths } from "./path_guard.ts";
import { checked, PathResolver, WasiError } from "./paths.ts";
import { pathFunctions } from "./path_functions.ts";
import { pollFunctions } from "./poll.ts";
import { Scratch } from "./scratch.ts";
import { readStatus } from "./status.ts";

export type { ProtectedPaths };

/** What the guest gets. */
export interface WasiOptions {
  /** Arguments, the program's name first. */
  args?: readonly string[];
  /** Environment variables. */
  env?: readonly (readonly [string, string])[];
  /** Directories of the host and the names under which the guest sees them. */
  preopens?: readonly { host: string; guest: string }[];
  /** Descriptors of the process for stdin, stdout and stderr; default 0, 1, 2. */
  stdio?: readonly [number, number, number];
  /** Paths of the host that the guest may read but never change, although its directories contain them. */
  protect?: ProtectedPaths;
}

/** Thrown through the guest by proc_exit. */
export class WasiExit extends Error {
  override name = "WasiExit";
  readonly [UNCATCHABLE] = true;
  readonly status: number;
  constructor(status: number) {
    super(`The program ended with status ${status}`);
    this.status = status;
  }
}

/** What the function groups share. */
export interface WasiState {
  sys: LinuxCalls;
  scratch: Scratch;
  memory: GuestMemory;
  descriptors: Descriptors;
  resolver: PathResolver;
  guard: PathGuard;
  open: ReturnType<typeof openFlags>;
}

/** A WASI function: pointers and sizes are i32 (as JavaScript gives them: signed), 64-bit values bigints; returns an error number. */
export type WasiFunction = (...args: never[]) => number | void;

const ENCODER = new TextEncoder();
const POLLIN = 1, POLLOUT = 4;

/** One guest's WASI. */
export class Wasi {
  /** The functions, for `imports.wasi_snapshot_preview1`. */
  readonly imports: Readonly<Record<string, (...args: never[]) => unknown>>;
  readonly #state: WasiState;

  constructor(options: WasiOptions = {}) {
    const host = currentHost();
    const sys = linuxCalls(host);
    const scratch = new Scratch(host);
    const open = openFlags(host.arch);
    const state: WasiState = {
      sys,
      scratch,
      open,
      memory: new GuestMemory(),
      descriptors: new Descriptors(),
      resolver: new PathResolver(sys, scratch, open),
      guard: new PathGuard({ sys, scratch }, options.protect),
    };
    this.#state = state;
    for (const fd of options.stdio ?? [0, 1, 2]) this.#addStream(fd);
    for (const preopen of options.preopens ?? []) this.#addPreopen(preopen.host, preopen.guest);
    const functions: Record<string, WasiFunction> = {
      ...stringFunctions(state.memory, "args", (options.args ?? []).map(checkString)),
      ...stringFunctions(
        state.memory,
        "environ",
        (options.env ?? []).map(([name, value]) => checkString(`${name}=${value}`)),
      ),
      ...clockFunctions(state),
      ...fileFunctions(state),
      ...pathFunctions(state),
      ...pollFunctions(state),
      proc_exit: (status: number) => {
        throw new WasiExit(status >>> 0);
      },
      proc_raise: () => ERRNO.nosys,
      random_get: (at: number, length: number) => {
        let address = state.memory.address(at >>> 0, length >>> 0);
        for (let left = length >>> 0; left > 0;) {
          const got = sys("getrandom", address, left, 0);
          if (errnoOf(got) === ERRNO.intr) continue;
          checked(got);
          address += got;
          left -= got;
        }
        return 0;
      },
    };
    this.imports = Object.fromEntries(Object.entries(functions).map(([name, fn]) => [name, guarded(fn)]));
  }

  /** Connects the guest's memory: what it exports as `memory`. Must be done before its functions run. */
  attach(instance: Instance): void {
    const { memory } = instance.exports;
    if (memory instanceof Memory) this.#state.memory.attach(memory);
  }

  /** The same for a guest that imports its memory. */
  attachMemory(memory: Memory): void {
    this.#state.memory.attach(memory);
  }

  /** Would reading from (or writing to) descriptor `fd` of the guest end at once, if only with an error? */
  isReady(fd: number, writes: boolean): boolean {
    const { descriptors, scratch: { out }, sys } = this.#state;
    let own: number;
    try {
      own = descriptors.get(fd).fd;
    } catch (error) {
      if (error instanceof WasiError) return true;
      throw error;
    }
    const view = new DataView(out.buffer);
    view.setInt32(0, own, true);
    view.setInt32(4, writes ? POLLOUT : POLLIN, true); // and no result yet
    view.setBigUint64(8, 0n, true);
    view.setBigUint64(16, 0n, true);
    return sys("ppoll", out.address, 1, out.address + 8, 0, 0) !== 0;
  }

  /** Closes every descriptor that the guest has open. */
  close(): void {
    for (const { fd, borrowed } of this.#state.descriptors.removeAll()) if (!borrowed) this.#state.sys("close", fd);
  }

  #addStream(fd: number): void {
    const status = readStatus(this.#state, fd);
    const filetype = status === undefined ? FILETYPE.unknown : FILETYPE_OF_MODE[status.mode >> 12] ?? FILETYPE.unknown;
    const seekable = filetype === FILETYPE.regular_file;
    const rights = seekable ? ALL_RIGHTS : STREAM_RIGHTS;
    this.#state.descriptors.add({ fd, filetype, flags: 0, rights, inheriting: 0, borrowed: true });
  }

  #addPreopen(path: string, guest: string): void {
    const { sys, scratch, open, descriptors } = this.#state;
    const fd = sys("openat", -100, scratch.path(path), open.RDONLY | open.DIRECTORY | open.CLOEXEC);
    if (fd < 0) {
      const errno = errnoOf(fd);
      const why = errno === ERRNO.notdir
        ? "is not a directory"
        : errno === ERRNO.noent
        ? "does not exist"
        : "cannot be opened";
      throw new Error(`The directory "${path}" ${why}`);
    }
    descriptors.add({
      fd,
      filetype: FILETYPE.directory,
      flags: 0,
      rights: DIRECTORY_RIGHTS,
      inheriting: ALL_RIGHTS,
      preopen: guest,
      borrowed: false,
    });
  }
}

function checkString(text: string): string {
  if (text.includes("\0")) throw new Error("Arguments and environment variables cannot contain NUL");
  return text;
}

/** Turns thrown WasiErrors into error numbers. */
function guarded(fn: WasiFunction): (...args: never[]) => unknown {
  return (...args) => {
    try {
      return fn(...args);
    } catch (error) {
      if (error instanceof WasiError) return error.errno;
      throw error;
    }
  };
}

/** args_get and args_sizes_get, or the same for environ. */
function stringFunctions(memory: GuestMemory, name: string, strings: readonly string[]): Record<string, WasiFunction> {
  const encoded = strings.map((text) => ENCODER.encode(text + "\0"));
  const total = encoded.reduce((sum, bytes) => sum + bytes.length, 0);
  return {
    [`${name}_sizes_get`]: (countAt: number, bytesAt: number) => {
      memory.setU32(countAt >>> 0, encoded.length);
      memory.setU32(bytesAt >>> 0, total);
      return 0;
    },
    [`${name}_get`]: (pointersAt: number, bufferAt: number) => {
      let at = bufferAt >>> 0;
      encoded.forEach((bytes, i) => {
        memory.setU32((pointersAt >>> 0) + i * 4, at);
        memory.bytes(at, bytes.length).set(bytes);
        at += bytes.length;
      });
      return 0;
    },
  };
}
