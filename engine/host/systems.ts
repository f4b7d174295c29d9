/**
 * The facts about each operating system that the host depends on, one record per system: the C library, flags, signal
 * numbers, structure layouts, and which of the host's mechanisms the system has. `nativeHost` picks a record once; no
 * other code compares names of systems.
 *
 * Sources: Linux <bits/mman-map-flags-generic.h>, <bits/sigaction.h>, <asm-generic/fcntl.h>; macOS <sys/mman.h>,
 * <sys/signal.h>, <sys/fcntl.h>, <libkern/OSCacheControl.h>.
 */

/** The systems on which waft runs. */
export type SystemName = "linux" | "darwin";

export interface SystemFacts {
  readonly name: SystemName;
  /** The name of the system in messages. */
  readonly title: string;
  /** Has the engine been run on this system? Otherwise a self-test precedes the first use (self_test.ts). */
  readonly isProven: boolean;
  /** The C library, as dlopen finds it. */
  readonly libc: string;
  /**
   * The way into machine code: `object` writes a shared object to a file in memory, which dlopen opens; `bsearch`
   * passes the code as the comparison to the C library's bsearch (bsearch_entry.ts).
   */
  readonly entry: "object" | "bsearch";
  /** The pseudo-handle with which dlsym searches every loaded library. */
  readonly dlsymDefault: number;
  /** The size of a page on x64; on arm64 the system says it. */
  readonly x64PageBytes: number;
  readonly MAP_PRIVATE: number;
  readonly MAP_FIXED: number;
  readonly MAP_ANONYMOUS: number;
  /** 0 where address space is never charged. */
  readonly MAP_NORESERVE: number;
  /** `madvise` that makes pages read as zeros, or as their file; undefined where no advice does. */
  readonly MADV_ZERO: number | undefined;
  /** `madvise` that asks for large pages. */
  readonly MADV_HUGEPAGE: number | undefined;
  /** Flags of `open`: read only, not inherited; does not wait for the other end of a pipe. */
  readonly OPEN_TO_READ: number;
  /** May pages of any file be mapped as code? Where code must be signed, running such a page ends the process. */
  readonly mapsCode: boolean;
  /** The function `(start, bytes)` that makes new code visible to instruction fetch on arm64; else machine code does. */
  readonly invalidateInstructions: string | undefined;
  /** The function that returns the address of errno. */
  readonly errnoFunction: string;
  /** May machine code make system calls by number? Otherwise only functions of the C library are a stable interface. */
  readonly hasSystemCalls: boolean;
  /** Optional instructions of every arm64 processor with this system; undefined where a program may ask for them. */
  readonly arm64Features: readonly string[] | undefined;
  readonly SIGILL: number;
  readonly SIGBUS: number;
  readonly SIGFPE: number;
  readonly SIGSEGV: number;
  /** Signals by which an access to protected memory arrives. */
  readonly faultSignals: readonly number[];
  readonly SIGACTION_SIZE: number;
  /** A struct sigaction with SA_SIGINFO | SA_ONSTACK | SA_NODEFER and an empty mask. */
  sigactionBytes(handler: number): Uint8Array<ArrayBuffer>;
  /** stack_t saying SS_DISABLE? */
  isSignalStackDisabled(stack: Uint8Array): boolean;
  signalStackBytes(address: number, size: number): Uint8Array<ArrayBuffer>;
}

const LINUX: SystemFacts = {
  name: "linux",
  title: "Linux",
  isProven: true,
  libc: "libc.so.6",
  entry: "object",
  dlsymDefault: 0,
  x64PageBytes: 4096,
  MAP_PRIVATE: 0x2,
  MAP_FIXED: 0x10,
  MAP_ANONYMOUS: 0x20,
  MAP_NORESERVE: 0x4000,
  MADV_ZERO: 4, // MADV_DONTNEED
  MADV_HUGEPAGE: 14,
  OPEN_TO_READ: 0x80000 | 0x800, // O_CLOEXEC | O_NONBLOCK, the same on x64 and arm64
  mapsCode: true,
  invalidateInstructions: undefined,
  errnoFunction: "__errno_location",
  hasSystemCalls: true,
  arm64Features: undefined, // Linux emulates reads of the identification registers
  SIGILL: 4,
  SIGBUS: 7,
  SIGFPE: 8,
  SIGSEGV: 11,
  faultSignals: [11, 7],
  SIGACTION_SIZE: 152,
  sigactionBytes: (handler) => {
    const bytes = new Uint8Array(152); // sa_sigaction, sa_mask (128), sa_flags, sa_restorer
    const view = new DataView(bytes.buffer);
    view.setBigUint64(0, BigInt(handler), true);
    view.setInt32(136, 0x4 | 0x08000000 | 0x40000000, true);
    return bytes;
  },
  isSignalStackDisabled: (stack) => (new DataView(stack.buffer, stack.byteOffset).getInt32(8, true) & 2) !== 0,
  signalStackBytes: (address, size) => {
    const bytes = new Uint8Array(24); // ss_sp, ss_flags, ss_size
    const view = new DataView(bytes.buffer);
    view.setBigUint64(0, BigInt(address), true);
    view.setBigUint64(16, BigInt(size), true);
    return bytes;
  },
};

/** musl's loader opens the same objects, and its structures are those of the GNU C library. */
const MUSL: SystemFacts = { ...LINUX, title: "Linux with musl", isProven: false };

const DARWIN: SystemFacts = {
  name: "darwin",
  title: "macOS",
  isProven: false,
  libc: "/usr/lib/libSystem.B.dylib",
  entry: "bsearch",
  dlsymDefault: -2,
  x64PageBytes: 4096,
  MAP_PRIVATE: 0x2,
  MAP_FIXED: 0x10,
  MAP_ANONYMOUS: 0x1000,
  MAP_NORESERVE: 0,
  MADV_ZERO: undefined, // MADV_DONTNEED keeps the contents there
  MADV_HUGEPAGE: undefined,
  OPEN_TO_READ: 0x1000000 | 0x4, // O_CLOEXEC | O_NONBLOCK
  mapsCode: false,
  invalidateInstructions: "sys_icache_invalidate",
  errnoFunction: "__error",
  hasSystemCalls: false,
  arm64Features: ["lse"],
  SIGILL: 4,
  SIGBUS: 10,
  SIGFPE: 8,
  SIGSEGV: 11,
  faultSignals: [10, 11],
  SIGACTION_SIZE: 16,
  sigactionBytes: (handler) => {
    const bytes = new Uint8Array(16); // sa_sigaction, sa_mask, sa_flags
    const view = new DataView(bytes.buffer);
    view.setBigUint64(0, BigInt(handler), true);
    view.setInt32(12, 0x40 | 0x1 | 0x10, true);
    return bytes;
  },
  isSignalStackDisabled: (stack) => (new DataView(stack.buffer, stack.byteOffset).getInt32(16, true) & 4) !== 0,
  signalStackBytes: (address, size) => {
    const bytes = new Uint8Array(24); // ss_sp, ss_size, ss_flags
    const view = new DataView(bytes.buffer);
    view.setBigUint64(0, BigInt(address), true);
    view.setBigUint64(8, BigInt(size), true);
    return bytes;
  },
};

/** The record of each system. */
export const SYSTEMS: Readonly<Record<SystemName, SystemFacts>> = { linux: LINUX, darwin: DARWIN };

/** What a JavaScript runtime says about the machine that it runs on. */
export interface MachineDescription {
  /** The system by Deno's or Node's name: `linux`, `darwin`, `windows`, `win32`, … */
  readonly os: string;
  /** The processor by Deno's or Node's name: `x86_64`, `x64`, `aarch64`, `arm64`, … */
  readonly arch: string;
  readonly bigEndian: boolean;
  /** The C library, where the runtime says it: `gnu`, `musl`. */
  readonly libc?: string | undefined;
}

/** A machine on which the engine runs. */
export interface SupportedMachine {
  readonly system: SystemFacts;
  readonly os: SystemName;
  readonly arch: "x64" | "arm64";
}

const PROCESSORS: Readonly<Record<string, "x64" | "arm64">> = {
  x86_64: "x64",
  x64: "x64",
  aarch64: "arm64",
  arm64: "arm64",
};

/** 32-bit processors by the names of Deno and Node. */
const NARROW = new Set(["ia32", "x86", "arm", "mips", "mipsel", "ppc", "s390"]);

/** The beginning of every message. */
const ONLY = "waft runs WebAssembly on 64-bit Linux and macOS";

/**
 * Decides whether the engine runs on a machine. Throws an Error whose message is one sentence that names the obstacle.
 */
export function supportedMachine({ os, arch, bigEndian, libc }: MachineDescription): SupportedMachine {
  const processor = PROCESSORS[arch];
  if (os === "windows" || os === "win32") {
    throw new Error(
      processor === "arm64"
        ? `${ONLY}, not on Windows for arm64: its calling convention and exception frames have no host code yet`
        : `${ONLY}, not on Windows yet: use the Windows Subsystem for Linux`,
    );
  }
  if (os !== "linux" && os !== "darwin") throw new Error(`${ONLY}, not on ${os}`);
  if (NARROW.has(arch)) {
    throw new Error(`${ONLY}, and this JavaScript runtime is a 32-bit program (${arch}): install its 64-bit version`);
  }
  if (bigEndian) throw new Error(`${ONLY} with little-endian processors, and ${arch} is big-endian here`);
  if (processor === undefined) throw new Error(`${ONLY} with x64 and arm64 processors, not on ${arch}`);
  const system = os === "linux" && libc === "musl" ? MUSL : SYSTEMS[os];
  return { os, arch: processor, system };
}

/** Is this machine big-endian? */
export function isBigEndian(): boolean {
  return new Uint8Array(Uint16Array.of(1).buffer)[0] === 0;
}
