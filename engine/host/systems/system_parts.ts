/**
 * The code for operating systems other than Linux. In: the system of this process. Out: its parts; undefined on Linux,
 * whose code the users of this module have. Invariant: a system loads no other system's code.
 */
import type { Ffi } from "../runtimes/ffi.ts";
import type { Host } from "../host.ts";
import { LateModule, SUFFIX } from "../late_module.ts";
import type { LinuxCalls } from "../calls/linux_calls.ts";
import type { WatchdogCode } from "../code/watchdog_code.ts";

/** Writes a 64-bit word of the shared state. */
export type SetWord = (offset: number, value: number) => void;

/** The machine code on a system, by processor, and the preparation of the words that only that system has. */
export interface SystemWatchdog {
  readonly code: Readonly<Partial<Record<Host["arch"], WatchdogCode>>>;
  readonly prepare?: (host: Host, setWord: SetWord) => void;
}

/** The parts of a system. */
export interface SystemParts {
  /** Creates the host interface. */
  readonly host: (ffi: Ffi) => Host;
  /** The calls for files, clocks, sockets and waits, under the names and with the numbers of Linux. */
  readonly fileCalls: (host: Host) => LinuxCalls;
  readonly watchdog: SystemWatchdog;
}

type PartsModule = LateModule<{ readonly PARTS: SystemParts }>;

const DARWIN: PartsModule = new LateModule(
  new URL(`./darwin_parts.${SUFFIX}`, import.meta.url),
  () => import("./darwin_parts.ts"),
);
const WINDOWS: PartsModule = new LateModule(
  new URL(`./windows_parts.${SUFFIX}`, import.meta.url),
  () => import("./windows_parts.ts"),
);

/** The systems other than Linux, under the names of Deno and of Node. */
const OTHERS: Readonly<Record<string, PartsModule>> = { darwin: DARWIN, windows: WINDOWS, win32: WINDOWS };

function runtimeSystem(): string {
  const { Deno: own } = globalThis as { Deno?: typeof Deno };
  return own === undefined ? process.platform : own.build.os;
}

await OTHERS[runtimeSystem()]?.load();

/** The parts of this system; undefined on Linux. */
export function systemParts(): SystemParts | undefined {
  return OTHERS[runtimeSystem()]?.get().PARTS;
}
