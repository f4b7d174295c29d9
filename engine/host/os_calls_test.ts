/**
 * C structures and flags of both systems, compared field by field with their headers; plain data, so every host checks
 * both.
 */
import { deepEqual, equal } from "node:assert/strict";
import { OS_CALLS, type OsCalls } from "./os_calls.ts";

const HANDLER = 0x1234_5678_9abc;

function word(bytes: Uint8Array, at: number): number {
  return Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(at, true));
}

function int(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getInt32(at, true);
}

/** Every byte outside of [from, to) ranges is zero: no mask, no restorer, no padding that says something. */
function isZeroOutside(bytes: Uint8Array, fields: readonly (readonly [number, number])[]): boolean {
  return bytes.every((byte, at) => byte === 0 || fields.some(([from, to]) => at >= from && at < to));
}

function stackOf(system: OsCalls, flagsAt: number, flags: number): Uint8Array {
  const bytes = system.signalStackBytes(HANDLER, 65536);
  new DataView(bytes.buffer).setInt32(flagsAt, flags, true);
  return bytes;
}

Deno.test("Linux: struct sigaction, stack_t, flags of mmap", () => {
  const { linux } = OS_CALLS;
  const action = linux.sigactionBytes(HANDLER);
  equal(action.length, linux.SIGACTION_SIZE);
  equal(linux.SIGACTION_SIZE, 8 + 1024 / 8 + 4 + 4 + 8); // handler, mask of 1024 signals, flags, padding, restorer
  equal(word(action, 0), HANDLER);
  equal(int(action, 136), 0x0000_0004 | 0x0800_0000 | 0x4000_0000); // SA_SIGINFO, SA_ONSTACK, SA_NODEFER
  equal(isZeroOutside(action, [[0, 8], [136, 140]]), true);
  const stack = linux.signalStackBytes(HANDLER, 65536); // ss_sp, ss_flags, ss_size
  deepEqual([word(stack, 0), int(stack, 8), word(stack, 16), stack.length], [HANDLER, 0, 65536, 24]);
  equal(linux.isSignalStackDisabled(stackOf(linux, 8, 2)), true); // SS_DISABLE
  equal(linux.isSignalStackDisabled(stackOf(linux, 8, 1)), false); // SS_ONSTACK
  deepEqual(
    [linux.MAP_PRIVATE, linux.MAP_FIXED, linux.MAP_ANONYMOUS, linux.MAP_NORESERVE, linux.MAP_JIT],
    [0x02, 0x10, 0x20, 0x4000, 0],
  );
  deepEqual([linux.SIGILL, linux.SIGBUS, linux.SIGFPE, linux.SIGSEGV], [4, 7, 8, 11]);
});

Deno.test("macOS: struct sigaction, stack_t, flags of mmap", () => {
  const { darwin } = OS_CALLS;
  const action = darwin.sigactionBytes(HANDLER);
  equal(action.length, darwin.SIGACTION_SIZE);
  equal(darwin.SIGACTION_SIZE, 8 + 4 + 4); // handler, mask of 32 signals, flags
  equal(word(action, 0), HANDLER);
  equal(int(action, 12), 0x40 | 0x01 | 0x10); // SA_SIGINFO, SA_ONSTACK, SA_NODEFER
  equal(isZeroOutside(action, [[0, 8], [12, 16]]), true);
  const stack = darwin.signalStackBytes(HANDLER, 65536); // ss_sp, ss_size, ss_flags
  deepEqual([word(stack, 0), word(stack, 8), int(stack, 16), stack.length], [HANDLER, 65536, 0, 24]);
  equal(darwin.isSignalStackDisabled(stackOf(darwin, 16, 4)), true); // SS_DISABLE
  equal(darwin.isSignalStackDisabled(stackOf(darwin, 16, 1)), false); // SS_ONSTACK
  deepEqual(
    [darwin.MAP_PRIVATE, darwin.MAP_FIXED, darwin.MAP_ANONYMOUS, darwin.MAP_NORESERVE, darwin.MAP_JIT],
    [0x02, 0x10, 0x1000, 0x40, 0x800],
  );
  deepEqual([darwin.SIGILL, darwin.SIGBUS, darwin.SIGFPE, darwin.SIGSEGV], [4, 10, 8, 11]);
});
