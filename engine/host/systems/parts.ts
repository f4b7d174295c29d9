/** The parts by which operating systems other than Linux differ. Types alone: system_parts.ts has this system's. */
import type { LinuxCalls } from "../calls/linux_calls.ts";
import type { WatchdogCode } from "../code/watchdog_code.ts";
import type { Host } from "../host.ts";
import type { Ffi } from "../runtimes/ffi.ts";

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
