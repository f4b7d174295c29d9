/**
 * Checksums of memory outside of JavaScript's, by machine code (scripts/generate/programs/checksum.ts). In: the thread
 * of this realm, and a checksum of artifact/checksum.ts. Out: whether the memory has it. Damage is detected, forgery is
 * not.
 */
import { CONTEXT, MEMORY } from "../abi/context_layout.ts";
import { fromBase64 } from "../base/base64.ts";
import { PROT } from "../host/host.ts";
import { CHECKSUM } from "../portable/generated/checksum_routine.ts";
import type { GuestThread } from "../runtime/thread/guest_thread.ts";
import { callOnStack } from "./call_on_stack.ts";

/** The words of every VM context, and the memory that the process stub `call` loads. */
const CONTEXT_BYTES = CONTEXT.SIZE + MEMORY.SIZE;

/**
 * Whether the `bytes` bytes at `address`, a multiple of 16, have the checksum `expected`. Throws a RangeError without
 * memory.
 */
export function hasChecksum(
  thread: GuestThread,
  address: number,
  bytes: number,
  expected: readonly number[],
): boolean {
  const { host, arena } = thread;
  const routine = fromBase64(CHECKSUM[host.arch].code);
  const thunk = arena.allocate(routine.length);
  arena.publish(thunk, routine);
  try {
    return runOnPage(thread, thunk, address, [bytes, ...expected]) === 0;
  } finally {
    arena.release(thunk, routine.length);
  }
}

/** Calls `thunk` on a stack of one page. */
function runOnPage(thread: GuestThread, thunk: number, code: number, args: readonly number[]): number {
  const { host, contexts } = thread;
  const block = contexts.allocate(CONTEXT_BYTES);
  const stack = host.reserve(host.pageSize, PROT.READ | PROT.WRITE);
  try {
    thread.initContext(block.region, block.offset, 0, 0, false);
    return callOnStack(thread, { code, thunk, context: block.address, top: stack + host.pageSize - 64 }, args);
  } finally {
    host.release(stack, host.pageSize);
    contexts.release(block);
  }
}
