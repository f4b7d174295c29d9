/** The parts by which operating systems other than Linux differ. Types alone: system_parts.ts has this system's. */
import type { LinuxCalls } from "../calls/linux_calls.ts";
import type { Host } from "../host.ts";
import type { Ffi } from "../runtimes/ffi.ts";

/** Writes a 64-bit word of the shared state. */
export type SetWord = (offset: number, value: number) => void;

/** The code of a watchdog in base64, and the offsets of its routines. */
interface StoredWatchdog {
  readonly code: string;
  readonly labels: { readonly arm: number; readonly disarm: number };
}

/** The machine code on a system, by processor, and the preparation of the words that only that system has. */
interface SystemWatchdog {
  readonly code: Readonly<Partial<Record<Host["arch"], StoredWatchdog>>>;
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
