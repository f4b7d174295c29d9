/**
 * WASI preview 1: all functions of `wasi_snapshot_preview1`, on the calls of the operating system (host/file_calls.ts).
 * In: arguments, environment and the directories that the guest may use. Out: an import namespace. Invariant: a guest
 * reaches nothing outside those directories (paths.ts), and no call blocks beyond the deadline of the guest's call
 * (waits.ts).
 */
import { requireKnownNames, requireRecord, requireTexts, wholeNumber } from "../base/arguments.ts";
import { currentHost } from "../host/current.ts";
import { fileCalls } from "../host/file_calls.ts";
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
import { ClockFunctions } from "./clock_functions.ts";
import { DescriptorFunctions } from "./descriptor_functions.ts";
import { Descriptors } from "./descriptors.ts";
import { functionsOf, type WasiState } from "./functions.ts";
import { GuestMemory } from "./guest_memory.ts";
import { PathGuard, type ProtectedPaths } from "./path_guard.ts";
import { PathFunctions } from "./path_functions.ts";
import { PathResolver } from "./paths.ts";
import { PollFunctions } from "./poll_functions.ts";
import { ProcessFunctions } from "./process_functions.ts";
import { Scratch } from "./scratch.ts";
import { SocketFunctions } from "./socket_functions.ts";
import { readStatus } from "./status.ts";
import { CALL_LIMITS, type CallLimits, POLL, Waits } from "./waits.ts";
import { WasiError } from "./wasi_error.ts";
import { WasiExit } from "./wasi_exit.ts";

export { type ProtectedPaths, WasiExit };

/** The arguments, variables, directories and streams of a guest. */
export interface WasiOptions {
  /** Arguments, the program's name first. */
  args?: readonly string[];
  /** Environment variables. */
  env?: readonly (readonly [string, string])[];
  /**
   * Directories of the host and the names under which the guest sees them. With `descriptor`, an open directory of the
   * process that stays open, the guest gets that directory, and `host` only names it in errors.
   */
  preopens?: readonly { host: string; guest: string; descriptor?: number }[];
  /**
   * Descriptors of the process for stdin, stdout and stderr; default 0, 1, 2. With `"none"`, the guest has no standard
   * streams: its descriptors 0, 1 and 2 are never open.
   */
  stdio?: readonly [number, number, number] | "none";
  /** Paths of the host that the guest may read but never change, although its directories contain them. */
  protect?: ProtectedPaths;
}

/** One guest's WASI. */
export class Wasi {
  /** The functions, for `imports.wasi_snapshot_preview1`. */
  readonly imports: Readonly<Record<string, (...args: never[]) => unknown>>;
  readonly #state: WasiState;
  readonly #poll: PollFunctions;

  /**
   * Opens the preopened directories. `limits` bound the waits of its functions and default to those of the running
   * call. Throws an Error for a directory that cannot be opened.
   */
  constructor(options: WasiOptions = {}, limits: CallLimits = CALL_LIMITS) {
    checkOptions(options);
    const host = currentHost();
    const sys = fileCalls(host);
    const scratch = new Scratch(host);
    const open = openFlags(host.arch);
    const waits = new Waits(sys, scratch, limits);
    const resolver = new PathResolver({ sys, scratch, open, waits });
    const state: WasiState = {
      sys,
      scratch,
      open,
      memory: new GuestMemory(),
      descriptors: new Descriptors(options.stdio === "none" ? STREAMS : 0),
      resolver,
      guard: new PathGuard({ sys, scratch, open, waits }, options.protect),
      waits,
    };
    this.#state = state;
    this.#poll = new PollFunctions(state);
    const { args = [], env = [], preopens = [], stdio = [0, 1, 2] } = options;
    if (stdio !== "none") { for (const fd of stdio) this.#addStream(fd); }
    for (const { host, guest, descriptor } of preopens) this.#addPreopen(host, guest, descriptor);
    const groups = [
      new ProcessFunctions(state, args, env),
      new ClockFunctions(state),
      new DescriptorFunctions(state),
      new SocketFunctions(state),
      new PathFunctions(state),
      this.#poll,
    ];
    this.imports = Object.assign({}, ...groups.map(functionsOf));
  }

  /** Connects the guest's memory, which it exports as `memory`. Must be done before its functions run. */
  attach(instance: Instance): void {
    const { memory } = instance.exports;
    if (memory instanceof Memory) this.#state.memory.attach(memory);
  }

  /** Connects the memory of a guest that imports it. */
  attachMemory(memory: Memory): void {
    this.#state.memory.attach(memory);
  }

  /**
   * Charges the fuel of `bytes` for work on behalf of the running call. Throws the trap if its time is up.
   *
   * @internal
   */
  charge(bytes: number): void {
    const { waits } = this.#state;
    waits.check();
    waits.charge(bytes);
  }

  /** Whether reading from (or writing to) descriptor `fd` of the guest would return at once, if only with an error. */
  isReady(fd: number, writes: boolean): boolean {
    const { descriptors, waits } = this.#state;
    try {
      return waits.isReady(descriptors.get(fd).fd, writes ? POLL.OUT : POLL.IN);
    } catch (error) {
      if (error instanceof WasiError) return true;
      throw error;
    }
  }

  /**
   * One attempt of a poll_oneoff that began `waitedMs` milliseconds ago, for realms that must not block. Returns its
   * error number, or undefined when nothing is ready yet.
   */
  attemptPoll(args: readonly [number, number, number, number], waitedMs: number): number | undefined {
    try {
      return this.#poll.attempt(...args, BigInt(Math.floor(waitedMs * 1e6)));
    } catch (error) {
      if (error instanceof WasiError) return error.errno;
      throw error;
    }
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

  #addPreopen(path: string, guest: string, descriptor: number | undefined): void {
    const { sys, scratch, open } = this.#state;
    const [from, name] = descriptor === undefined ? [-100, path] : [descriptor, "."];
    const fd = sys("openat", from, scratch.path(name), open.RDONLY | open.DIRECTORY | open.CLOEXEC);
    if (fd < 0) throw new Error(`The directory "${path}" ${WHY_NOT_OPEN[errnoOf(fd)] ?? "cannot be opened"}`);
    this.addDirectory(fd, guest, DIRECTORY_RIGHTS, ALL_RIGHTS);
  }

  /**
   * Adds an open directory as a preopened one, which `close` closes. `inheriting` are the rights of descriptors that
   * are opened in it.
   *
   * @internal
   */
  addDirectory(fd: number, guest: string, rights: number, inheriting: number): void {
    this.#state.descriptors.add({
      fd,
      filetype: FILETYPE.directory,
      flags: 0,
      rights,
      inheriting,
      preopen: guest,
      borrowed: false,
    });
  }
}

/** The number of standard streams. */
const STREAMS = 3;

/** The names of all options. */
const OPTION_NAMES: Readonly<Record<keyof WasiOptions, true>> = {
  args: true,
  env: true,
  preopens: true,
  stdio: true,
  protect: true,
};

/** Refuses unknown options, and descriptors that no process has. */
function checkOptions(options: WasiOptions): void {
  requireRecord(options, "The options of WASI");
  requireKnownNames("WASI option", options, OPTION_NAMES);
  const { args, env, stdio } = options;
  requireTexts(args, "The option args");
  if (env !== undefined && !Array.isArray(env)) throw new TypeError("The option env is an array of names with values");
  for (const pair of env ?? []) requireTexts(pair, "An element of the option env");
  if (stdio === undefined || stdio === "none") return;
  if (!Array.isArray(stdio) || stdio.length !== STREAMS) {
    throw new TypeError('The option stdio is three descriptors, of stdin, stdout and stderr, or "none"');
  }
  for (const fd of stdio) wholeNumber(fd, "A descriptor of the option stdio", 0x7fffffff);
}

const WHY_NOT_OPEN: Readonly<Record<number, string>> = {
  [ERRNO.notdir]: "is not a directory",
  [ERRNO.noent]: "does not exist",
};
