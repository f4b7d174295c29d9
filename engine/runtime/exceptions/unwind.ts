/**
 * Unwinding: finds the innermost landing on the guest stack that sees an exception, and makes the guest continue there. In: parked
 * guest code and an exception. Out: the thread state as of code that is parked at the landing, or "nobody sees it".
 *
 * The walk goes by return addresses through the call-site tables of images, from the parked call up to where JavaScript entered, and
 * keeps the VM context of the frame it is at: calls into other instances have saved their caller's beside the return
 * address, and so have tail calls into other instances (TAIL_FRAME). Frames are dropped by writing a parked frame right below the
 * one that continues; registers need no restoring, since nothing of that frame is in any (ir/function.ts, "Exceptions").
 */
import { PARKED, TAIL_FRAME, THREAD } from "../../abi/context_layout.ts";
import type { CodeImage } from "../../link/image.ts";
import type { NativeRegion } from "../memory/native_region.ts";
import type { UnwindTable } from "./unwind_table.ts";

/** What unwinding needs of the guest thread. */
export interface UnwindingThread {
  readonly state: NativeRegion;
  readonly stack: NativeRegion;
  readonly stackLow: number;
  readonly stackHigh: number;
  /** Address that a tail call into another instance leaves as its return address. */
  readonly tailReturn: number;
  readonly code: { readonly stubs: { readonly unwinds?: unknown } };
  readonly unwindTable: UnwindTable;
}

/** Moves the parked guest to the landing that sees an exception thrown where it is parked; false if there is none. */
export function unwindToLanding(thread: UnwindingThread, imageAt: (address: number) => CodeImage | undefined): boolean {
  const { state, stack, stackLow, stackHigh, tailReturn } = thread;
  const parked = state.word(THREAD.GUEST_SP) - stackLow;
  const entry = stack.word(parked + PARKED.ENTRY_SP);
  let context = stack.word(parked + PARKED.CONTEXT);
  let image: CodeImage | undefined;
  const end = stackHigh - stackLow - 8;
  for (let at = parked + PARKED.RESUME; at <= end;) {
    const pc = stack.word(at);
    if (pc === tailReturn) {
      context = stack.word(at + TAIL_FRAME.CONTEXT);
      at += TAIL_FRAME.SIZE;
      continue;
    }
    if (image === undefined || !image.contains(pc)) {
      image = imageAt(pc);
      if (image !== undefined && thread.code.stubs.unwinds) thread.unwindTable.note(image);
    }
    const site = image?.unwindSiteAt(pc);
    if (site === undefined) return false;
    if (site.cross) context = stack.word(at + 8);
    if (site.landing === 0) {
      at += 8 + site.frame;
      continue;
    }
    const frame = at + (site.cross ? 16 : 8);
    const parking = frame - PARKED.FRAME;
    stack.setWord(parking + PARKED.ENTRY_SP, entry);
    stack.setWord(parking + PARKED.CONTEXT, context);
    stack.setWord(parking + PARKED.RESUME, site.landing);
    state.setWord(THREAD.GUEST_SP, stackLow + parking);
    return true;
  }
  return false;
}
