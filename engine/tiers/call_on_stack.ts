/**
 * Calls of the engine's own machine code, on a stack of its own: also while other compiled code is parked. In: the
 * code, its VM context, and arguments that are i32. Out: its result, an i32.
 */
import { STATUS, THREAD } from "../abi/context_layout.ts";
import { Bug } from "../base/errors.ts";
import type { GuestThread } from "../runtime/thread/guest_thread.ts";

/** A function, by addresses. */
interface CodeOnStack {
  readonly code: number;
  readonly thunk: number;
  /** The VM context, whose THREAD is the thread's state. */
  readonly context: number;
  /** The highest address of the stack. */
  readonly top: number;
}

/**
 * Calls the function with `args`, of which it may ignore the last ones. The slots keep their contents: a builtin that
 * has not read its arguments yet may need code of the engine. Throws a Bug if the code traps.
 */
export function callOnStack(
  thread: GuestThread,
  { code, thunk, context, top }: CodeOnStack,
  args: readonly number[],
): number {
  const { state } = thread;
  const guest = state.word(THREAD.GUEST_SP);
  const first = THREAD.SLOTS >> 2, words = THREAD.SLOT_SIZE >> 2;
  const slots = state.i32.slice(first, first + Math.max(args.length, 1) * words);
  state.setWord(THREAD.GUEST_SP, top);
  state.setWord(THREAD.CALL_CODE, code);
  state.setWord(THREAD.CALL_CONTEXT, context);
  state.setWord(THREAD.CALL_THUNK, thunk);
  for (let k = 0; k < args.length; k++) state.i32[first + k * words] = args[k];
  let status = thread.call();
  // Between two pieces of a large move.
  while (status === STATUS.BUILTIN) status = thread.resume();
  state.setWord(THREAD.GUEST_SP, guest);
  if (status !== STATUS.DONE) throw new Bug(`The compiler ended with trap ${state.u32[THREAD.TRAP_CODE >> 2]}`);
  const result = state.i32[first];
  state.i32.set(slots, first);
  return result;
}
