/** The code for Windows. In: the host. Out: the parts of the system (parts.ts). */
import type { Host } from "../host.ts";
import type { SetWord, SystemParts } from "./parts.ts";
import { windowsCalls } from "../calls/windows_calls.ts";
import { WINDOWS_WATCHDOG } from "../code/generated_windows_code.ts";
import { WINDOWS_WATCH, WINDOWS_WATCHDOG_FUNCTIONS } from "../code/windows_code.ts";
import { windowsHost } from "./windows_host.ts";

/** Fills the words of the watchdog's state that only Windows has. */
function prepareWindows(host: Host, setWord: SetWord): void {
  const addresses = host.functionAddresses(WINDOWS_WATCHDOG_FUNCTIONS);
  WINDOWS_WATCHDOG_FUNCTIONS.forEach((name, k) => setWord(WINDOWS_WATCH.FUNCTIONS + 8 * k, addresses[name]));
}

export const PARTS: SystemParts = {
  host: windowsHost,
  fileCalls: windowsCalls,
  watchdog: { code: WINDOWS_WATCHDOG, prepare: prepareWindows },
};
