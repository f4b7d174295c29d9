/**
 * Signals on systems with sigaction. In: the system calls. Out: the parts of a {@linkcode Host} that concern handlers
 * of faults.
 */
import { type Host, PROT } from "./host.ts";
import type { SystemCalls } from "./system_calls.ts";
import type { PosixFacts } from "./systems.ts";

const SIGNAL_STACK_BYTES = 1 << 16;

/** Creates the parts from the calls of a system. */
export function posixSignals(
  system: PosixFacts,
  calls: SystemCalls,
  reserve: Host["reserve"],
): Pick<Host, "installSignalHandler" | "signalHandler" | "ensureSignalStack"> {
  return {
    installSignalHandler: (signal, handler) => {
      const action = system.sigactionBytes(handler);
      const old = new Uint8Array(system.SIGACTION_SIZE);
      if (calls.sigaction(signal, action, old) !== 0) throw new Error(`Cannot install a handler for signal ${signal}`);
      return Number(new DataView(old.buffer).getBigUint64(0, true));
    },
    signalHandler: (signal) => {
      const old = new Uint8Array(system.SIGACTION_SIZE);
      calls.sigaction(signal, null, old);
      return Number(new DataView(old.buffer).getBigUint64(0, true));
    },
    ensureSignalStack: () => {
      const old = new Uint8Array(24);
      calls.sigaltstack(null, old);
      if (!system.isSignalStackDisabled(old)) return;
      const stack = reserve(SIGNAL_STACK_BYTES, PROT.READ | PROT.WRITE);
      calls.sigaltstack(system.signalStackBytes(stack, SIGNAL_STACK_BYTES), null);
    },
  };
}
