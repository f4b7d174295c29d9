/**
 * WASI 0.2 and 0.3 for components. In: arguments, variables, directories and streams. Out: imports for
 * `Component.instantiate`: the interfaces of 0.2 by their names without versions, those of 0.3 that differ with their
 * version. Invariant: nothing is granted that the options do not name, except the process's standard streams, clocks
 * and random bytes.
 */
import type { WasiOptions } from "@waft/engine/wasi";
import type { ComponentImports } from "../link/host_names.ts";
import { datetime, Descriptor, DirectoryEntryStream, filesystemErrorCode, preopens } from "./filesystem.ts";
import { NetworkGrants, type NetworkOptions } from "./network_grants.ts";
import { Preview1 } from "./preview1.ts";
import { socketContext, socketInterfaces } from "./sockets.ts";
import { withShapes } from "./shapes.ts";
import { InputStream, IoError, OutputStream, Pollable, SharedDescriptor } from "./streams.ts";
import { commandInterfaces } from "./v0_3/command.ts";
import { filesystemInterfaces } from "./v0_3/filesystem.ts";
import { asyncSocketInterfaces } from "./v0_3/sockets.ts";
import { Timers } from "./v0_3/timers.ts";
import { requireBoolean, requireKnownNames, requireRecord } from "@waft/engine/internal/base/arguments";
import { FILETYPE } from "@waft/engine/internal/wasi/abi";

export type { NetworkOptions, WasiOptions };

/** The options of {@linkcode ComponentWasi}. */
export interface ComponentWasiOptions extends WasiOptions {
  /** The part of the network that the guest reaches; nothing by default. Its calls must be made by `callAsync`. */
  network?: NetworkOptions;
  /**
   * Waits for clocks and streams leave the thread to the event loop, so that other guests run meanwhile. The guest's
   * calls must be made by `callAsync`. By default only waits for the network do so.
   */
  waitInEventLoop?: boolean;
}

class TerminalInput {}
class TerminalOutput {}

/** WASI 0.2 and 0.3 of one guest. */
export class ComponentWasi {
  /** The interfaces of WASI 0.2 and 0.3, for `Component.instantiate`. */
  readonly imports: ComponentImports;
  /** The implementation below, for other interfaces of the host. */
  readonly preview1: Preview1;
  /** The grants of the network. */
  readonly grants: NetworkGrants;
  readonly #timers: Timers;

  /** Opens the preopened directories. Throws an Error for a directory that cannot be opened, or for a bad grant. */
  constructor(given: ComponentWasiOptions = {}) {
    requireRecord(given, "The options of WASI");
    const { network = {}, waitInEventLoop, ...options } = given;
    requireRecord(network, "The option network");
    requireKnownNames("network option", network, { connect: true, listen: true });
    requireBoolean(waitInEventLoop, "The option waitInEventLoop");
    this.grants = new NetworkGrants(network);
    const preview1 = this.preview1 = new Preview1(options, waitInEventLoop);
    const timers = this.#timers = new Timers(preview1);
    const sockets = socketContext(preview1, this.grants);
    this.imports = withShapes({
      ...cliInterfaces(preview1, options),
      ...clockInterfaces(preview1),
      ...ioInterfaces(preview1),
      ...randomInterfaces(preview1),
      ...socketInterfaces(sockets),
      ...asyncSocketInterfaces(sockets),
      "wasi:filesystem/preopens": { getDirectories: () => preopens(preview1) },
      "wasi:filesystem/types": { Descriptor, DirectoryEntryStream, filesystemErrorCode },
      ...commandInterfaces(preview1, timers, options),
      ...filesystemInterfaces(preview1),
    });
  }

  /** The bytes that the guest has written to standard output, if they are collected. */
  get stdout(): Uint8Array<ArrayBuffer> {
    return this.preview1.wasi.stdout;
  }

  /** The bytes that the guest has written to standard error, if they are collected. */
  get stderr(): Uint8Array<ArrayBuffer> {
    return this.preview1.wasi.stderr;
  }

  /** The files in memory by their paths, as they are now. */
  get files(): Record<string, Uint8Array> {
    return this.preview1.wasi.files;
  }

  /** Closes every descriptor that the guest has open, and ends its waits for clocks and standard input. */
  close(): void {
    this.#timers.close();
    this.preview1.close();
  }
}

function cliInterfaces(preview1: Preview1, { args = [], env = [] }: WasiOptions): Record<string, object> {
  const stream = (fd: number) => new SharedDescriptor(preview1, fd, true);
  const isTerminal = (fd: number) => preview1.descriptorStatus(fd).type === FILETYPE.character_device;
  const terminal = (fd: number, of: typeof TerminalInput | typeof TerminalOutput) => () =>
    isTerminal(fd) ? new of() : undefined;
  return {
    "wasi:cli/environment": {
      getEnvironment: () => env.map(([name, value]) => [name, value]),
      getArguments: () => [...args],
      initialCwd: () => undefined,
    },
    "wasi:cli/exit": {
      exit: ({ tag }: { tag: string }) => preview1.exit(tag === "ok" ? 0 : 1),
      exitWithCode: (code: number) => preview1.exit(code),
    },
    "wasi:cli/stdin": { getStdin: () => new InputStream(preview1, stream(0)) },
    "wasi:cli/stdout": { getStdout: () => new OutputStream(preview1, stream(1)) },
    "wasi:cli/stderr": { getStderr: () => new OutputStream(preview1, stream(2)) },
    "wasi:cli/terminal-input": { TerminalInput },
    "wasi:cli/terminal-output": { TerminalOutput },
    "wasi:cli/terminal-stdin": { getTerminalStdin: terminal(0, TerminalInput) },
    "wasi:cli/terminal-stdout": { getTerminalStdout: terminal(1, TerminalOutput) },
    "wasi:cli/terminal-stderr": { getTerminalStderr: terminal(2, TerminalOutput) },
  };
}

function clockInterfaces(preview1: Preview1): Record<string, object> {
  const until = (time: bigint) => new Pollable(preview1, { kind: "clock", until: time });
  const latest = 2n ** 64n - 1n;
  return {
    "wasi:clocks/monotonic-clock": {
      now: () => preview1.time(1),
      resolution: () => preview1.resolution(1),
      subscribeInstant: until,
      subscribeDuration: (duration: bigint) => {
        const time = preview1.time(1) + duration;
        return until(time > latest ? latest : time);
      },
    },
    "wasi:clocks/wall-clock": {
      now: () => datetime(preview1.time(0)),
      resolution: () => datetime(preview1.resolution(0)),
    },
  };
}

function ioInterfaces(preview1: Preview1): Record<string, object> {
  return {
    "wasi:io/error": { Error: IoError },
    "wasi:io/poll": { Pollable, poll: (list: readonly Pollable[]) => Pollable.poll(preview1, list) },
    "wasi:io/streams": { InputStream, OutputStream },
  };
}

/** The maximum number of random bytes of one call. */
const MAX_RANDOM_BYTES = 1n << 26n;

function randomInterfaces(preview1: Preview1): Record<string, object> {
  const bytes = (length: bigint): Uint8Array => {
    if (length > MAX_RANDOM_BYTES) {
      throw new RangeError(`At most ${MAX_RANDOM_BYTES} random bytes are possible at once`);
    }
    return preview1.random(Number(length));
  };
  const word = () => new DataView(preview1.random(8).buffer).getBigUint64(0);
  return {
    "wasi:random/random": { getRandomBytes: bytes, getRandomU64: word },
    "wasi:random/insecure": { getInsecureRandomBytes: bytes, getInsecureRandomU64: word },
    "wasi:random/insecure-seed": { insecureSeed: () => preview1.insecureSeed() },
  };
}
