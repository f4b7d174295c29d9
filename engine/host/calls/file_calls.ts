/**
 * The calls for files, clocks, sockets and waits of the current operating system, under the names and with the numbers
 * of Linux. In: the host. Out: one function; on Linux it makes the system calls, on macOS and Windows it
 * translates them (darwin_calls.ts, windows_calls.ts).
 */
import type { Host } from "../host.ts";
import { type LinuxCalls, linuxCalls } from "./linux_calls.ts";
import { systemParts } from "../systems/system_parts.ts";

/** The constructor of the system's calls. Tests replace it. */
export const FILE_CALLS: { make: (host: Host) => LinuxCalls } = {
  make: (host) => (systemParts()?.fileCalls ?? linuxCalls)(host),
};

/** The calls of this system: results, or −errno as Linux numbers it. */
export function fileCalls(host: Host): LinuxCalls {
  return FILE_CALLS.make(host);
}
