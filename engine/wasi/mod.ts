/**
 * WASI preview 1: all functions of `wasi_snapshot_preview1`, on the calls of the operating system (file_calls.ts).
 * In: arguments, environment and the directories that the guest may use. Out: an import namespace. Invariant: a guest
 * reaches nothing outside those directories (paths.ts), and no call blocks beyond the deadline of the guest's call
 * (waits.ts).
 */
import { requireKnownNames, requireRecord, requireTexts, wholeNumber } from "../base/arguments.ts";
import { currentHost } from "../host/current.ts";
import { fileCalls } from "../host/calls/file_calls.ts";
import type { Instance } from "../api/engine.ts";
import { Memory } from "../runtime/memory/memory.ts";
import {
  ALL_RIGHTS,
  DIRECTORY_RIGHTS,
  ERRNO,
  errnoOf,
  FDFLAG,
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
import { type BytesAt, MemoryFiles } from "./memory_files.ts";
import {
  bytesOf,
  Collected,
  type Contents,
  type InputSource,
  type OutputReceiver,
  readerOf,
  receiverOf,
} from "./memory_streams.ts";
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

export { type Contents, type InputSource, type OutputReceiver, type ProtectedPaths, WasiExit };

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
  /**
   * Descriptors of the process, of sockets that listen: the guest has them from its descriptor 3 on, before its
   * directories, and accepts connections from them. They do not block, as under wasmtime: programs poll them. They stay
   * open.
   */
  sockets?: readonly number[];
  /** Paths of the host that the guest may read but never change, although its directories contain them. */
  protect?: ProtectedPaths;
  /** Standard input: bytes, text, or an iterable of them, whose parts are taken when the guest reads. */
  stdin?: InputSource;
  /** The receiver of standard output: a function that gets each part, or `"collect"` for {@linkcode Wasi.stdout}. */
  stdout?: OutputReceiver;
  /** The receiver of standard error: a function that gets each part, or `"collect"` for {@linkcode Wasi.stderr}. */
  stderr?: OutputReceiver;
  /**
   * Files in memory by their paths, with `/` between names. The guest sees them below `/`, and may change them and
   * create others; {@linkcode Wasi.files} has them afterwards.
   */
  files?: Readonly<Record<string, Contents>>;
  /** The maximum number of bytes of files in memory and of collected output together. Default: 64 MiB. */
  maxFileBytes?: number;
}

/** The default of {@linkcode WasiOptions.maxFileBytes}. */
const MAX_FILE_BYTES = 1 << 26;

/** One guest's WASI. */
export class Wasi {
  /** The functions, for `imports.wasi_snapshot_preview1`. */
  readonly imports: Readonly<Record<string, (...args: never[]) => unknown>>;
  readonly #state: WasiState;
  readonly #poll: PollFunctions;
  #memoryFiles: MemoryFiles | undefined;
  readonly #collected: Readonly<Record<"stdout" | "stderr", Collected>>;

  /**
   * Opens the preopened directories. `limits` bound the waits of its functions and default to those of the running
   * call. Throws an Error for a directory that cannot be opened.
   */
  constructor(options: WasiOptions = {}, limits: CallLimits = CALL_LIMITS) {
    checkOptions(options);
    const host = currentHost();
    const scratch = new Scratch(host);
    const open = openFlags(host.arch);
    const memory = new GuestMemory();
    this.#collected = { stdout: new Collected(), stderr: new Collected() };
    const below = fileCalls(host);
    if (usesMemory(options)) {
      const bytesAt: BytesAt = (address, length) => scratch.bytesAt(address, length) ?? memory.bytesAt(address, length);
      this.#memoryFiles = new MemoryFiles(open, bytesAt, below, options.maxFileBytes ?? MAX_FILE_BYTES);
    }
    const sys = this.#memoryFiles?.call ?? below;
    const waits = new Waits(sys, scratch, limits);
    const resolver = new PathResolver({ sys, scratch, open, waits });
    const state: WasiState = {
      sys,
      scratch,
      open,
      memory,
      descriptors: new Descriptors(options.stdio === "none" ? STREAMS : 0),
      resolver,
      guard: new PathGuard({ sys, scratch, open, waits }, options.protect),
      waits,
    };
    this.#state = state;
    this.#poll = new PollFunctions(state);
    const { args = [], env = [], preopens = [], sockets = [] } = options;
    for (const fd of this.#streams(options)) this.#addStream(fd);
    for (const fd of sockets) this.#addStream(fd, FDFLAG.nonblock);
    this.#addFiles(options.files);
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

  /** The bytes that the guest has written to standard output, if they are collected. */
  get stdout(): Uint8Array<ArrayBuffer> {
    return this.#collected.stdout.bytes;
  }

  /** The bytes that the guest has written to standard error, if they are collected. */
  get stderr(): Uint8Array<ArrayBuffer> {
    return this.#collected.stderr.bytes;
  }

  /** The files in memory by their paths, as they are now. */
  get files(): Record<string, Uint8Array> {
    return this.#memoryFiles?.contents() ?? {};
  }

  /** The descriptors of the standard streams. */
  #streams({ stdio = [0, 1, 2], stdin, stdout, stderr }: WasiOptions): readonly number[] {
    const files = this.#memoryFiles;
    if (stdio === "none") return [];
    if (files === undefined) return stdio;
    const output = (option: OutputReceiver | undefined, name: "stdout" | "stderr", fd: number) => {
      if (option === undefined) return fd;
      return files.openReceiver(receiverOf(option, name) ?? files.collecting(this.#collected[name].add));
    };
    return [
      stdin === undefined ? stdio[0] : files.openSource(readerOf(stdin)),
      output(stdout, "stdout", stdio[1]),
      output(stderr, "stderr", stdio[2]),
    ];
  }

  #addFiles(files: WasiOptions["files"]): void {
    if (files === undefined) return;
    for (const [path, contents] of Object.entries(files)) {
      this.#memoryFiles!.addFile(path, bytesOf(contents, `The file "${path}"`));
    }
    this.addDirectory(this.#memoryFiles!.openRoot(), "/", DIRECTORY_RIGHTS, ALL_RIGHTS);
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

  #addStream(fd: number, flags = 0): void {
    const status = readStatus(this.#state, fd);
    const filetype = status === undefined ? FILETYPE.unknown : FILETYPE_OF_MODE[status.mode >> 12] ?? FILETYPE.unknown;
    const seekable = filetype === FILETYPE.regular_file;
    const rights = seekable ? ALL_RIGHTS : STREAM_RIGHTS;
    this.#state.descriptors.add({ fd, filetype, flags, rights, inheriting: 0, borrowed: true });
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

/** The largest descriptor of a process. */
const MAX_FD = 0x7fffffff;

/** The number of standard streams. */
const STREAMS = 3;

/** The names of all options. */
const OPTION_NAMES: Readonly<Record<keyof WasiOptions, true>> = {
  args: true,
  env: true,
  preopens: true,
  stdio: true,
  sockets: true,
  protect: true,
  stdin: true,
  stdout: true,
  stderr: true,
  files: true,
  maxFileBytes: true,
};

/** Whether some file or stream of the guest is in memory. */
function usesMemory({ stdin, stdout, stderr, files }: WasiOptions): boolean {
  return [stdin, stdout, stderr, files].some((option) => option !== undefined);
}

/** Refuses unknown options, and descriptors that no process has. */
function checkOptions(options: WasiOptions): void {
  requireRecord(options, "The options of WASI");
  requireKnownNames("WASI option", options, OPTION_NAMES);
  const { args, env, stdio } = options;
  requireTexts(args, "The option args");
  if (env !== undefined && !Array.isArray(env)) throw new TypeError("The option env is an array of names with values");
  for (const pair of env ?? []) requireTexts(pair, "An element of the option env");
  if (options.sockets !== undefined && !Array.isArray(options.sockets)) {
    throw new TypeError("The option sockets is an array of descriptors");
  }
  for (const fd of options.sockets ?? []) wholeNumber(fd, "A descriptor of the option sockets", MAX_FD);
  checkMemoryOptions(options);
  if (stdio === undefined || stdio === "none") return;
  if (!Array.isArray(stdio) || stdio.length !== STREAMS) {
    throw new TypeError('The option stdio is three descriptors, of stdin, stdout and stderr, or "none"');
  }
  for (const fd of stdio) wholeNumber(fd, "A descriptor of the option stdio", MAX_FD);
}

/** Refuses standard streams that are given twice, and files that are not a record. */
function checkMemoryOptions({ stdio, stdin, stdout, stderr, files, maxFileBytes }: WasiOptions): void {
  const isStream = [stdin, stdout, stderr].some((option) => option !== undefined);
  if (isStream && stdio === "none") {
    throw new TypeError('The option stdio is "none", so stdin, stdout and stderr cannot be given');
  }
  if (files !== undefined) requireRecord(files, "The option files");
  if (maxFileBytes !== undefined) wholeNumber(maxFileBytes, "The option maxFileBytes");
}

const WHY_NOT_OPEN: Readonly<Record<number, string>> = {
  [ERRNO.notdir]: "is not a directory",
  [ERRNO.noent]: "does not exist",
};
