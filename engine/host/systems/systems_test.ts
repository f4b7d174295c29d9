/**
 * C structures and flags of both systems, compared field by field with their headers; plain data, so every host checks
 * both.
 */
import { deepEqual, equal, throws } from "node:assert/strict";
import { libcOfHeader, machineSupport } from "../machine.ts";
import { type MachineDescription, type PosixFacts, supportedMachine, SYSTEMS } from "./systems.ts";

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

function stackOf(system: PosixFacts, flagsAt: number, flags: number): Uint8Array {
  const bytes = system.signalStackBytes(HANDLER, 65536);
  new DataView(bytes.buffer).setInt32(flagsAt, flags, true);
  return bytes;
}

Deno.test("Linux: struct sigaction, stack_t, flags of mmap", () => {
  const { linux } = SYSTEMS;
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
    [linux.MAP_PRIVATE, linux.MAP_FIXED, linux.MAP_ANONYMOUS, linux.MAP_NORESERVE, linux.MADV_ZERO],
    [0x02, 0x10, 0x20, 0x4000, 4],
  );
  deepEqual([linux.SIGILL, linux.SIGBUS, linux.SIGFPE, linux.SIGSEGV], [4, 7, 8, 11]);
});

Deno.test("macOS: struct sigaction, stack_t, flags of mmap", () => {
  const { darwin } = SYSTEMS;
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
    [darwin.MAP_PRIVATE, darwin.MAP_FIXED, darwin.MAP_ANONYMOUS, darwin.MAP_NORESERVE, darwin.MADV_ZERO],
    [0x02, 0x10, 0x1000, 0, undefined],
  );
  deepEqual([darwin.SIGILL, darwin.SIGBUS, darwin.SIGFPE, darwin.SIGSEGV], [4, 10, 8, 11]);
});

const LINUX: MachineDescription = { os: "linux", arch: "x86_64", bigEndian: false, libc: "gnu" };

Deno.test("supportedMachine() accepts 64-bit Linux, macOS and Windows, by the names of every runtime", () => {
  const { linux, darwin, windows } = SYSTEMS;
  const mac = { os: "darwin", bigEndian: false };
  deepEqual(supportedMachine(LINUX), { os: "linux", arch: "x64", system: linux });
  deepEqual(supportedMachine({ ...LINUX, arch: "aarch64" }), { os: "linux", arch: "arm64", system: linux });
  deepEqual(supportedMachine({ ...LINUX, arch: "arm64", libc: undefined }).system, linux);
  deepEqual(supportedMachine({ ...mac, arch: "x64" }), { os: "darwin", arch: "x64", system: darwin });
  deepEqual(supportedMachine({ ...mac, arch: "aarch64" }), { os: "darwin", arch: "arm64", system: darwin });
  for (const [os, arch] of [["windows", "x86_64"], ["win32", "x64"]] as const) {
    deepEqual(supportedMachine({ os, arch, bigEndian: false }), { os: "windows", arch: "x64", system: windows });
  }
});

Deno.test("musl has the facts of Linux, but the engine has not been run with it", () => {
  const { system } = supportedMachine({ ...LINUX, libc: "musl" });
  deepEqual({ ...system, title: "Linux", isProven: true }, SYSTEMS.linux);
  equal(system.isProven, false);
});

Deno.test("supportedMachine() names the obstacle in one sentence", () => {
  const cases: readonly (readonly [Partial<MachineDescription>, RegExp])[] = [
    [{ os: "windows", arch: "aarch64" }, /not on Windows for arm64/],
    [{ os: "freebsd" }, /not on freebsd$/],
    [{ arch: "ia32" }, /32-bit program \(ia32\): install its 64-bit version$/],
    [{ arch: "arm" }, /32-bit program \(arm\)/],
    [{ arch: "s390x", bigEndian: true }, /s390x is big-endian here$/],
    [{ arch: "ppc64", bigEndian: true }, /big-endian/],
    [{ arch: "arm64", bigEndian: true }, /arm64 is big-endian here$/],
    [{ arch: "riscv64" }, /not on riscv64$/],
  ];
  for (const [change, message] of cases) {
    throws(() => supportedMachine({ ...LINUX, ...change }), (error: Error) => {
      equal(error.message.includes("\n"), false);
      return message.test(error.message) &&
        error.message.startsWith("waft runs WebAssembly on 64-bit Linux, macOS and");
    });
  }
});

Deno.test("the dynamic linker in an executable's header tells musl from the GNU C library", () => {
  const header = (linker: string) => new TextEncoder().encode(`\x7fELF...${linker}\0...`);
  equal(libcOfHeader(header("/lib/ld-musl-x86_64.so.1")), "musl");
  equal(libcOfHeader(header("/lib/ld-musl-aarch64.so.1")), "musl");
  equal(libcOfHeader(header("/lib64/ld-linux-x86-64.so.2")), "gnu");
});

Deno.test("machineSupport() tells tested, untested and unsupported machines apart", () => {
  deepEqual(machineSupport(() => supportedMachine(LINUX)), { state: "supported", detail: "" });
  deepEqual(machineSupport(() => supportedMachine({ os: "darwin", arch: "aarch64", bigEndian: false })), {
    state: "untested",
    detail: "not run by us on this system (macOS for arm64)",
  });
  deepEqual(machineSupport(() => supportedMachine({ os: "win32", arch: "x64", bigEndian: false })), {
    state: "untested",
    detail: "run by us under Wine only (Windows for x64)",
  });
  deepEqual(machineSupport(() => supportedMachine({ ...LINUX, os: "freebsd" })), {
    state: "unsupported",
    detail: "waft runs WebAssembly on 64-bit Linux, macOS and Windows, not on freebsd",
  });
});
