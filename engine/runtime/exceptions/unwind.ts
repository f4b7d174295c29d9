/**
 * Unwinding: finds the innermost landing pad on the guest stack that handles an exception, and makes the guest resume
 * there. In: parked guest code. Out: the thread state of code parked at the landing pad, or false if there is none.
 *
 * The walk follows return addresses through the call-site tables of images, from the parked call up to the entry from
 * JavaScript, and tracks the VM context of the current frame: a call into another instance saves its caller's context
 * next to the return address, and so does a tail call into another instance (TAIL_FRAME). To drop the inner frames, the
 * walk writes a parked frame directly below the frame that resumes. No registers need restoring, because no value is
 * live in a register at a landing pad (ir/function.ts, "Exceptions").
 */
import { PARKED, TAIL_FRAME, THREAD } from "../../abi/context_layout.ts";
import type { CodeImage } from "../../link/image.ts";
import type { NativeRegion } from "../memory/native_region.ts";
import type { UnwindTable } from "./unwind_table.ts";

/** The parts of the guest thread that unwinding uses. */
interface UnwindingThread {
  readonly state: NativeRegion;
  readonly stack: { readonly low: number; readonly high: number; readonly region: NativeRegion };
  /** The address that a tail call into another instance installs as its return address. */
  readonly tailReturn: number;
  readonly code: { readonly stubs: { readonly unwinds?: unknown } };
  readonly unwindTable: UnwindTable;
}

/**
 * Moves the parked guest to the landing pad for an exception thrown at the parked call. Returns false if there is none.
 */
export function unwindToLandingPad(
  thread: UnwindingThread,
  imageAt: (address: number) => CodeImage | undefined,
): boolean {
  const { state, stack: { low, high, region: stack }, tailReturn } = thread;
  const parked = state.word(THREAD.GUEST_SP) - low;
  const entry = stack.word(parked + PARKED.ENTRY_SP);
  let context = stack.word(parked + PARKED.CONTEXT);
  let image: CodeImage | undefined;
  const end = high - low - 8;
  for (let at = parked + PARKED.RESUME; at <= end;) {
    const pc = stack.word(at);
    if (pc === tailReturn) {
      context = stack.word(at + TAIL_FRAME.CONTEXT);
      at += TAIL_FRAME.SIZE;
      continue;
    }
    // The call, which may end its image, is before the return address.
    if (image === undefined || !image.contains(pc - 1)) {
      image = imageAt(pc - 1);
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
    state.setWord(THREAD.GUEST_SP, low + parking);
    return true;
  }
  return false;
}
