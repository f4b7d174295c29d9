/**
 * Frames of suspended calls. Guest frames hold no address of the stack they lie on, except the first word of what a parked call leaves
 * (context_layout.ts, PARKED), so a call that waits need not occupy a stack: its frames are copied off and, when it goes on, put
 * back wherever the guest stack then ends.
 *
 * In: a guest thread whose innermost activation is parked. Out: a thread as if that activation had never been, and its frames.
 */
import { PARKED, THREAD } from "../../abi/context_layout.ts";
import { ExhaustionError } from "../../errors.ts";
import { TRAP, TRAP_MESSAGES } from "../../traps.ts";
import type { GuestThread, SuspendedFrames } from "./guest_thread.ts";

/** Up to so many bytes are copied word by word: making views costs more. */
const SHORT_BYTES = 512;

/** Takes the innermost activation, which must be parked, off the stack. Returns where it is: `frames`, if they are given. */
export function saveFrames(thread: GuestThread, frames: SuspendedFrames | undefined): SuspendedFrames {
  const { state, stack, stackLow, contexts } = thread;
  const parked = state.word(THREAD.GUEST_SP) - stackLow;
  const entry = stack.word(parked + PARKED.ENTRY_SP);
  const bytes = entry - stackLow - parked;
  if (frames === undefined) {
    frames = { block: contexts.allocate(bytes), bytes: 0 };
    thread.suspended.add(frames);
  } else if (frames.block.size < bytes) {
    contexts.release(frames.block);
    frames.block = contexts.allocate(bytes);
  }
  const { region, offset } = frames.block;
  copy(stack.u32, parked, region.u32, offset, bytes);
  frames.bytes = bytes;
  state.setWord(THREAD.GUEST_SP, entry);
  return frames;
}

/** Puts frames back as the innermost activation, parked as it was. Throws ExhaustionError when the stack has no room for them. */
export function restoreFrames(thread: GuestThread, frames: SuspendedFrames): void {
  const { state, stack, stackLow } = thread;
  const entry = state.word(THREAD.GUEST_SP);
  const parked = entry - stackLow - frames.bytes;
  if (parked < 0) throw new ExhaustionError(TRAP_MESSAGES[TRAP.STACK_EXHAUSTED]!);
  const { region, offset } = frames.block;
  copy(region.u32, offset, stack.u32, parked, frames.bytes);
  stack.setWord(parked + PARKED.ENTRY_SP, entry);
  state.setWord(THREAD.GUEST_SP, stackLow + parked);
  frames.bytes = 0;
}

/** The call has ended, or will not go on. */
export function discardFrames(thread: GuestThread, frames: SuspendedFrames): void {
  if (thread.suspended.delete(frames)) thread.contexts.release(frames.block);
}

function copy(from: Uint32Array, fromByte: number, to: Uint32Array, toByte: number, bytes: number): void {
  const a = fromByte >> 2;
  const b = toByte >> 2;
  const count = bytes >> 2;
  if (bytes > SHORT_BYTES) to.set(from.subarray(a, a + count), b);
  else for (let k = 0; k < count; k++) to[b + k] = from[a + k]!;
}
