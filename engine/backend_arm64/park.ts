/** The common end of guest code that parks (abi.ts: a parked call), shared by image stubs and process stubs. */
import { PARKED, THREAD } from "../abi/context_layout.ts";
import { X } from "./instructions.ts";
import { CONTEXT_REGISTER, SCRATCH, SCRATCH2, SP, THREAD_REGISTER } from "./registers.ts";
import type { StubCode } from "./stub_code.ts";

/**
 * Leaves for the host. In: w0 = status, x9 = thread, x17 = address at which to resume, sp = start of the parked code's
 * frame. Changes x16 and x17.
 */
export function emitPark(s: StubCode): void {
  const thread = THREAD_REGISTER;
  s.storeFuel(thread);
  s.add(SCRATCH, SP, -PARKED.FRAME);
  s.at(X.STR_X_U, SCRATCH2, SCRATCH, PARKED.RESUME);
  s.at(X.STR_X_U, CONTEXT_REGISTER, SCRATCH, PARKED.CONTEXT);
  s.at(X.LDR_X_U, SCRATCH2, thread, THREAD.GUEST_SP);
  s.at(X.STR_X_U, SCRATCH2, SCRATCH, PARKED.ENTRY_SP);
  s.at(X.STR_X_U, SCRATCH, thread, THREAD.GUEST_SP);
  s.at(X.STR_X_U, CONTEXT_REGISTER, thread, THREAD.PARK_CONTEXT);
  s.at(X.STR_W_U, 0, thread, THREAD.STATUS);
  s.returnToHost(thread);
}
