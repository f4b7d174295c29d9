/** The code for macOS. In: the host. Out: the parts of the system (parts.ts). */
import { cCalls } from "../calls/c_calls.ts";
import { DarwinCalls, darwinMachine } from "../calls/darwin_calls.ts";
import { DARWIN_WATCH, WATCHDOG_FUNCTIONS } from "../code/darwin_watchdog.ts";
import { DARWIN_WATCHDOG } from "../code/generated_darwin_code.ts";
import { type Host, PROT } from "../host.ts";
import { posixHost } from "./posix_host.ts";
import type { SetWord, SystemParts } from "./parts.ts";

/** Fills the words of the watchdog's state that only macOS has. */
function prepareDarwin(host: Host, setWord: SetWord): void {
  const { dispatch_semaphore_create: create, ...addresses } = host.functionAddresses([
    "dispatch_semaphore_create",
    ...WATCHDOG_FUNCTIONS,
  ]);
  WATCHDOG_FUNCTIONS.forEach((name, k) => setWord(DARWIN_WATCH.FUNCTIONS + 8 * k, addresses[name]));
  const semaphore = cCalls(host)({ address: create, isInt: false }, [0]);
  if (semaphore <= 0) throw new Error("Cannot watch deadlines: the system gives no semaphore");
  setWord(DARWIN_WATCH.SEMAPHORE, semaphore);
}

export const PARTS: SystemParts = {
  host: posixHost,
  fileCalls: (host) => {
    const scratch = host.reserve(host.pageSize, PROT.READ | PROT.WRITE);
    return new DarwinCalls(darwinMachine(host, cCalls(host), scratch)).call;
  },
  watchdog: { code: DARWIN_WATCHDOG, prepare: prepareDarwin },
};
