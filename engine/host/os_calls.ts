/**
 * Differences between operating systems at the C interface: constants and structure layouts, one record per system.
 * Sources: Linux <bits/mman-map-flags-generic.h>, <bits/sigaction.h>; macOS <sys/mman.h>, <sys/signal.h>.
 */
export interface OsCalls {
  libc: string;
  MAP_PRIVATE: number;
  MAP_FIXED: number;
  MAP_ANONYMOUS: number;
  MAP_NORESERVE: number;
  MAP_JIT: number;
  SIGILL: number;
  SIGBUS: number;
  SIGFPE: number;
  SIGSEGV: number;
  /** Signals by which an access to protected memory arrives. */
  faultSignals: readonly number[];
  SIGACTION_SIZE: number;
  /** A struct sigaction with SA_SIGINFO | SA_ONSTACK | SA_NODEFER and an empty mask. */
  sigactionBytes(handler: number): Uint8Array<ArrayBuffer>;
  /** stack_t saying SS_DISABLE? */
  isSignalStackDisabled(stack: Uint8Array): boolean;
  signalStackBytes(address: number, size: number): Uint8Array<ArrayBuffer>;
}

const LINUX: OsCalls = {
  libc: "libc.so.6",
  MAP_PRIVATE: 0x2,
  MAP_FIXED: 0x10,
  MAP_ANONYMOUS: 0x20,
  MAP_NORESERVE: 0x4000,
  MAP_JIT: 0,
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

const DARWIN: OsCalls = {
  libc: "libSystem.B.dylib",
  MAP_PRIVATE: 0x2,
  MAP_FIXED: 0x10,
  MAP_ANONYMOUS: 0x1000,
  MAP_NORESERVE: 0x40,
  MAP_JIT: 0x800,
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

/** Records by `os` name. */
export const OS_CALLS: Readonly<Record<"linux" | "darwin", OsCalls>> = { linux: LINUX, darwin: DARWIN };
