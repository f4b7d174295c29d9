/**
 * The calls for files, clocks, sockets and waits of the current operating system, under the names and with the numbers
 * of Linux. In: the host. Out: one function; on Linux it makes the system calls, on macOS and Windows it
 * translates them (darwin_calls.ts, windows_calls.ts).
 */
import { cCalls } from "./c_calls.ts";
import { DarwinCalls, darwinMachine } from "./darwin_calls.ts";
import { type Host, PROT } from "./host.ts";
import { type LinuxCalls, linuxCalls } from "./linux_calls.ts";
import type { SystemName } from "./systems.ts";
import { windowsCalls } from "./windows_calls.ts";

/** How each system makes the calls. */
export const FILE_CALLS: Record<SystemName, (host: Host) => LinuxCalls> = {
  linux: linuxCalls,
  darwin: (host) => {
    const scratch = host.reserve(host.pageSize, PROT.READ | PROT.WRITE);
    return new DarwinCalls(darwinMachine(host, cCalls(host), scratch)).call;
  },
  windows: windowsCalls,
};

/** The calls of this system: results, or −errno as Linux numbers it. */
export function fileCalls(host: Host): LinuxCalls {
  return FILE_CALLS[host.os](host);
}
