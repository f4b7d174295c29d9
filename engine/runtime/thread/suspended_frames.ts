/**
 * Saves and restores the frames of suspended calls. Guest frames contain no stack address except the first word of a
 * parked frame (context_layout.ts, PARKED), so a waiting call need not occupy the stack: its frames are copied off and
 * later restored at the then current end of the guest stack.
 *
 * In: a guest thread whose innermost activation is parked. Out: the thread without the activations of the innermost
 * call from JavaScript, and their frames: several if it has resumed computations (continuations.ts).
 */
import { PARKED, THREAD } from "../../abi/context_layout.ts";
import { ExhaustionError } from "../../base/errors.ts";
import { TRAP, TRAP_MESSAGES } from "../../base/traps.ts";
import { copyWords } from "../memory/native_region.ts";
import type { SuspendedFrames } from "./guest_stack.ts";
import type { GuestThread } from "./guest_thread.ts";

/**
 * Copies the frames of the innermost call from JavaScript, which must be parked, off the stack. Returns the saved
 * frames, reusing `frames` if given.
 */
export function saveFrames(thread: GuestThread, frames: SuspendedFrames | undefined): SuspendedFrames {
  const { state, stack: { low, region: stack, suspended }, contexts, continuations } = thread;
  const parked = state.word(THREAD.GUEST_SP) - low;
  const { entry } = continuations;
  const prompts = continuations.takePrompts();
  const bytes = entry - low - parked;
  if (frames === undefined) {
    frames = { block: contexts.allocate(bytes), bytes: 0, prompts };
    suspended.add(frames);
  } else if (frames.block.size < bytes) {
    contexts.release(frames.block);
    frames.block = contexts.allocate(bytes);
  }
  const { region, offset } = frames.block;
  copyWords(stack.u32, parked, region.u32, offset, bytes);
  frames.bytes = bytes;
  frames.prompts = prompts;
  state.setWord(THREAD.GUEST_SP, entry);
  return frames;
}

/**
 * Restores saved frames as those of the innermost call from JavaScript, parked as before. Throws ExhaustionError if the
 * stack has no room for them.
 */
export function restoreFrames(thread: GuestThread, frames: SuspendedFrames): void {
  const { state, stack: { low, region: stack } } = thread;
  const entry = state.word(THREAD.GUEST_SP);
  const parked = entry - low - frames.bytes;
  if (parked < 0) throw new ExhaustionError(TRAP_MESSAGES[TRAP.STACK_EXHAUSTED]);
  const { region, offset } = frames.block;
  copyWords(region.u32, offset, stack.u32, parked, frames.bytes);
  state.setWord(THREAD.GUEST_SP, low + parked);
  if (frames.prompts === undefined) stack.setWord(parked + PARKED.ENTRY_SP, entry);
  else thread.continuations.putPrompts(frames.prompts, entry);
  frames.bytes = 0;
  frames.prompts = undefined;
}

/** Frees the saved frames of a call that has ended or will not resume. */
export function discardFrames(thread: GuestThread, frames: SuspendedFrames): void {
  if (thread.stack.suspended.delete(frames)) thread.contexts.release(frames.block);
}
