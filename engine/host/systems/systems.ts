/**
 * The facts about each operating system that the host depends on, one record per system: the C library, flags, signal
 * numbers, structure layouts, and which of the host's mechanisms the system has. `posixHost` and `windowsHost` pick a
 * record once; no other code compares names of systems.
 *
 * Sources: Linux <bits/mman-map-flags-generic.h>, <bits/sigaction.h>, <asm-generic/fcntl.h>; macOS <sys/mman.h>,
 * <sys/signal.h>, <sys/fcntl.h>, <libkern/OSCacheControl.h>; Windows: "x64 calling convention" and "Exception dispatch"
 * of Microsoft's documentation.
 */

/** The systems on which waft runs. */
export type SystemName = "linux" | "darwin" | "windows";

/** The facts about any system. */
export interface SystemFacts {
  readonly name: SystemName;
  /** The name of the system in messages. */
  readonly title: string;
  /**
   * Whether the engine has been tested on this system. Otherwise a self-test precedes the first use (self_check.ts).
   */
  readonly isProven: boolean;
  /** The software in place of the system under which the engine has been run, if it has not been run on the system. */
  readonly emulatedBy?: string;
  /** The C library, as dlopen finds it. */
  readonly libc: string;
  /** The calling convention of the C library on x64. Compiled code and stubs follow System V on every system. */
  readonly x64Convention: "systemV" | "win64";
  /**
   * Whether machine code may make system calls by number. Otherwise only functions of the C library are a stable
   * interface.
   */
  readonly hasSystemCalls: boolean;
  /** The function that creates files for images, named in errors. */
  readonly unnamedFileCall: string;
  /** Optional instructions of every arm64 processor with this system; undefined where a program may ask for them. */
  readonly arm64Features: readonly string[] | undefined;
  /**
   * Whether the system commits pages of accessible reservations on first access by code only. If so, the kernel refuses
   * such pages as buffers of system calls until they are touched, and memories of programs are committed explicitly.
   */
  readonly commitsOnAccess: boolean;
  /** Bytes of stack that must remain below the stack pointer of any instruction that may fault. */
  readonly faultStackBytes: number;
  readonly SIGILL: number;
  readonly SIGBUS: number;
  readonly SIGFPE: number;
  readonly SIGSEGV: number;
  /** Signals by which an access to protected memory arrives. */
  readonly faultSignals: readonly number[];
}

/** The facts about a system with mmap and signals. */
export interface PosixFacts extends SystemFacts {
  /**
   * The way into machine code: `object` writes a shared object to a file in memory, which dlopen opens; `bsearch`
   * passes the code as the comparison to the C library's bsearch (bsearch_entry.ts).
   */
  readonly entry: "object" | "bsearch";
  /** The pseudo-handle with which dlsym searches every loaded library. */
  readonly dlsymDefault: number;
  /** The size of a page on x64; on arm64 the system reports it. */
  readonly x64PageBytes: number;
  /** How pthread_sigmask replaces the mask. */
  readonly SIG_SETMASK: number;
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
  /**
   * Whether pages of any file may be mapped as code. Where code must be signed, running such a page ends the process.
   */
  readonly mapsCode: boolean;
  /**
   * The function `(start, bytes)` that makes new code visible to instruction fetch on arm64; else machine code does.
   */
  readonly invalidateInstructions: string | undefined;
  /** The function that returns the address of errno. */
  readonly errnoFunction: string;
  /**
   * The variable of the C library that holds random bytes of the process, and their number; undefined where the
   * auxiliary vector has their address.
   */
  readonly randomVariable: { readonly name: string; readonly bytes: number } | undefined;
  readonly SIGACTION_SIZE: number;
  /**
   * A struct sigaction with SA_SIGINFO | SA_ONSTACK, an empty mask, and SA_NODEFER; for a timer's signal, which comes
   * at any time, SA_RESTART in its place.
   */
  sigactionBytes(handler: number, isTimer?: boolean): Uint8Array<ArrayBuffer>;
  /** Whether a stack_t has the flag SS_DISABLE. */
  isSignalStackDisabled(stack: Uint8Array): boolean;
  signalStackBytes(address: number, size: number): Uint8Array<ArrayBuffer>;
}

const LINUX: PosixFacts = {
  name: "linux",
  title: "Linux",
  isProven: true,
  libc: "libc.so.6",
  x64Convention: "systemV",
  entry: "object",
  dlsymDefault: 0,
  x64PageBytes: 4096,
  SIG_SETMASK: 2,
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
  randomVariable: undefined,
  hasSystemCalls: true,
  unnamedFileCall: "memfd_create",
  arm64Features: undefined, // Linux emulates reads of the identification registers
  commitsOnAccess: false,
  faultStackBytes: 0, // handlers run on the signal stack
  SIGILL: 4,
  SIGBUS: 7,
  SIGFPE: 8,
  SIGSEGV: 11,
  faultSignals: [11, 7],
  SIGACTION_SIZE: 152,
  sigactionBytes: (handler, isTimer = false) => {
    const bytes = new Uint8Array(152); // sa_sigaction, sa_mask (128), sa_flags, sa_restorer
    const view = new DataView(bytes.buffer);
    view.setBigUint64(0, BigInt(handler), true);
    view.setInt32(136, 0x4 | 0x08000000 | (isTimer ? 0x10000000 : 0x40000000), true);
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
const MUSL: PosixFacts = { ...LINUX, title: "Linux with musl", isProven: false };

const DARWIN: PosixFacts = {
  name: "darwin",
  title: "macOS",
  isProven: false,
  libc: "/usr/lib/libSystem.B.dylib",
  x64Convention: "systemV",
  entry: "bsearch",
  dlsymDefault: -2,
  x64PageBytes: 4096,
  SIG_SETMASK: 3,
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
  randomVariable: { name: "__stack_chk_guard", bytes: 8 },
  hasSystemCalls: false,
  unnamedFileCall: "mkstemp",
  arm64Features: ["lse"],
  commitsOnAccess: false,
  faultStackBytes: 0,
  SIGILL: 4,
  SIGBUS: 10,
  SIGFPE: 8,
  SIGSEGV: 11,
  faultSignals: [10, 11],
  SIGACTION_SIZE: 16,
  sigactionBytes: (handler, isTimer = false) => {
    const bytes = new Uint8Array(16); // sa_sigaction, sa_mask, sa_flags
    const view = new DataView(bytes.buffer);
    view.setBigUint64(0, BigInt(handler), true);
    view.setInt32(12, 0x40 | 0x1 | (isTimer ? 0x2 : 0x10), true);
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

/**
 * Windows dispatches exceptions on the stack of the code that faults, also when that is a stack of waft's own: context
 * and records take 3.8 KB with AVX, and up to 6 KB with AVX-512; the handler may call VirtualAlloc.
 */
const WINDOWS: SystemFacts = {
  name: "windows",
  title: "Windows",
  isProven: false,
  emulatedBy: "Wine",
  libc: "ucrtbase.dll",
  x64Convention: "win64",
  hasSystemCalls: false,
  unnamedFileCall: "CreateFileMappingW",
  arm64Features: [],
  commitsOnAccess: true,
  faultStackBytes: 16384,
  // There are no signals; the host's only use of the numbers is to tell them apart. One handler sees every exception.
  SIGILL: 4,
  SIGBUS: 7,
  SIGFPE: 8,
  SIGSEGV: 11,
  faultSignals: [11],
};

/** The record of each system. */
export const SYSTEMS: Readonly<{ linux: PosixFacts; darwin: PosixFacts; windows: SystemFacts }> = {
  linux: LINUX,
  darwin: DARWIN,
  windows: WINDOWS,
};

/** Whether the system has mmap and signals. */
export function isPosix(system: SystemFacts): system is PosixFacts {
  return "MAP_PRIVATE" in system;
}

/** The facts that a JavaScript runtime reports about its machine. */
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
const ONLY = "waft runs WebAssembly on 64-bit Linux, macOS and Windows";

/** Systems by the names of Deno and Node. */
const SYSTEM_NAMES: Readonly<Record<string, SystemName>> = {
  linux: "linux",
  darwin: "darwin",
  windows: "windows",
  win32: "windows",
};

/**
 * Decides whether the engine runs on a machine. Throws an Error whose message is one sentence that names the obstacle.
 */
export function supportedMachine({ os: runtimeName, arch, bigEndian, libc }: MachineDescription): SupportedMachine {
  const processor = PROCESSORS[arch];
  const os = SYSTEM_NAMES[runtimeName];
  if (os === undefined) throw new Error(`${ONLY}, not on ${runtimeName}`);
  if (os === "windows" && processor === "arm64") {
    throw new Error(`${ONLY}, not on Windows for arm64: its exception frames have no host code yet`);
  }
  if (NARROW.has(arch)) {
    throw new Error(`${ONLY}, and this JavaScript runtime is a 32-bit program (${arch}): install its 64-bit version`);
  }
  if (bigEndian) throw new Error(`${ONLY} with little-endian processors, and ${arch} is big-endian here`);
  if (processor === undefined) throw new Error(`${ONLY} with x64 and arm64 processors, not on ${arch}`);
  const system = os === "linux" && libc === "musl" ? MUSL : SYSTEMS[os];
  return { os, arch: processor, system };
}

/** Whether this machine is big-endian. */
export function isBigEndian(): boolean {
  return new Uint8Array(Uint16Array.of(1).buffer)[0] === 0;
}
