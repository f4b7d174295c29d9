/**
 * The host's operating system calls, through libc. In: the FFI of a JavaScript runtime. Out: functions of numbers and
 * buffers with the results of the C functions, and −errno when the system refuses.
 *
 * On Linux, all calls but `sigaction` go through libc's `syscall`: Deno compiles a call for each symbol, which takes a
 * tenth of a millisecond, and a process that runs a cached module makes few calls of many kinds. `sigaction` stays
 * separate because libc's function does more than the system call.
 */
import type { Ffi, ForeignSignature } from "../runtimes/ffi.ts";
import { callNumber, type LinuxCall } from "./linux_calls.ts";
import { environmentVariable } from "../process.ts";
import { UNKNOWN_ERRNO } from "./system_error.ts";
import { type PosixFacts, SYSTEMS } from "../systems/systems.ts";

/** The calls, by their names in C; addresses and sizes are numbers. */
export interface SystemCalls {
  mmap(address: number, bytes: number, prot: number, flags: number, file: number, offset: number): number;
  mprotect(address: number, bytes: number, prot: number): number;
  munmap(address: number, bytes: number): number;
  madvise(address: number, bytes: number, advice: number): number;
  sigaltstack(stack: Uint8Array | null, old: Uint8Array | null): number;
  sigaction(signal: number, action: Uint8Array | null, old: Uint8Array | null): number;
  /** Ends the process without exit handlers. */
  exitGroup(status: number): void;
  readonly files: FileCalls;
}

/** Calls for in-memory and mapped files; paths and names end with a zero byte. */
interface FileCalls {
  /** Creates an anonymous file that is not inherited. */
  createUnnamed(): number;
  write(file: number, bytes: Uint8Array): number;
  close(file: number): number;
  open(path: Uint8Array, flags: number): number;
  lseek(file: number, offset: number, whence: number): number;
}

/** Buffers are passed by address, since Node converts pointers in JavaScript, which is slow at first. */
const LINUX = {
  sigaction: { params: ["i32", "i64", "i64"], result: "i32" },
  syscall: { params: ["i64", "i64", "i64", "i64", "i64", "i64", "i64"], result: "i64" },
} as const satisfies Record<string, ForeignSignature>;

const DARWIN = {
  sigaction: { params: ["i32", "buffer", "buffer"], result: "i32" },
  mmap: { params: ["i64", "i64", "i32", "i32", "i32", "i64"], result: "i64" },
  mprotect: { params: ["i64", "i64", "i32"], result: "i32" },
  munmap: { params: ["i64", "i64"], result: "i32" },
  madvise: { params: ["i64", "i64", "i32"], result: "i32" },
  sigaltstack: { params: ["buffer", "buffer"], result: "i32" },
  mkstemp: { params: ["buffer"], result: "i32" },
  unlink: { params: ["buffer"], result: "i32" },
  write: { params: ["i32", "buffer", "i64"], result: "i64" },
  close: { params: ["i32"], result: "i32" },
  // Variadic functions: no argument beyond the fixed ones may be passed this way, because arm64 passes it on the stack.
  open: { params: ["buffer", "i32"], result: "i32" },
  lseek: { params: ["i32", "i64", "i32"], result: "i64" },
  _exit: { params: ["i32"], result: "void" },
} as const satisfies Record<string, ForeignSignature>;

const MFD_CLOEXEC = 1;
const MEMFD_NAME = new TextEncoder().encode("waft\0");

/** `openat` relative to the current directory. */
const AT_FDCWD = -100;

/**
 * Returns the function that replaces −1, the result of a call that just failed, by −errno. The C function that locates
 * errno is opened at the first failure, because each symbol lengthens the start; opening makes no call that fails.
 */
function errnoReader(ffi: Ffi, { libc, errnoFunction }: PosixFacts): (result: number) => number {
  let errno: Int32Array | undefined;
  const locate = (): Int32Array => {
    const { [errnoFunction]: find } = ffi.open(libc, { [errnoFunction]: { params: [], result: "i64" } });
    return new Int32Array(ffi.view(Number(find()), 4));
  };
  return (result) => {
    if (result !== -1) return result;
    try {
      return -(errno ??= locate())[0] || -UNKNOWN_ERRNO;
    } catch {
      return -UNKNOWN_ERRNO; // no more memory, not even for this
    }
  };
}

/** The system calls for the FFI's operating system. `addressOf` returns the address of a buffer. */
export function systemCalls(ffi: Ffi, addressOf: (bytes: Uint8Array) => number): SystemCalls {
  return ffi.os === "linux" ? linuxSystem(ffi, addressOf) : darwinSystem(ffi);
}

function linuxSystem(ffi: Ffi, addressOf: (bytes: Uint8Array) => number): SystemCalls {
  const { syscall, sigaction } = ffi.open(SYSTEMS.linux.libc, LINUX);
  const orErrno = errnoReader(ffi, SYSTEMS.linux);
  const call = (name: LinuxCall, a: number, b = 0, c = 0, d = 0, e = 0, f = 0): number =>
    orErrno(Number(
      syscall(BigInt(callNumber(name, ffi.arch)), BigInt(a), BigInt(b), BigInt(c), BigInt(d), BigInt(e), BigInt(f)),
    ));
  /** Calls `make` with the address of `bytes`, which stay alive until the call returns. */
  const withBytes = (bytes: Uint8Array | null, make: (address: number) => number): number => {
    KEPT.push(bytes);
    try {
      return make(bytes === null ? 0 : addressOf(bytes));
    } finally {
      KEPT.pop();
    }
  };
  return {
    mmap: (address, bytes, prot, flags, file, offset) => call("mmap", address, bytes, prot, flags, file, offset),
    mprotect: (address, bytes, prot) => call("mprotect", address, bytes, prot),
    munmap: (address, bytes) => call("munmap", address, bytes),
    madvise: (address, bytes, advice) => call("madvise", address, bytes, advice),
    sigaltstack: (stack, old) => withBytes(stack, (from) => withBytes(old, (to) => call("sigaltstack", from, to))),
    sigaction: (signal, action, old) =>
      withBytes(
        action,
        (from) => withBytes(old, (to) => orErrno(sigaction(signal, BigInt(from), BigInt(to)) as number)),
      ),
    exitGroup: (status) => void call("exit_group", status),
    files: {
      createUnnamed: () => withBytes(MEMFD_NAME, (address) => call("memfd_create", address, MFD_CLOEXEC)),
      write: (file, bytes) => withBytes(bytes, (address) => call("write", file, address, bytes.length)),
      close: (file) => call("close", file),
      open: (path, flags) => withBytes(path, (address) => call("openat", AT_FDCWD, address, flags)),
      lseek: (file, offset, whence) => call("lseek", file, offset, whence),
    },
  };
}

/** Buffers in use by a system call; an address does not keep its buffer alive. */
const KEPT: (Uint8Array | null)[] = [];

function darwinSystem(ffi: Ffi): SystemCalls {
  const libc = ffi.open(SYSTEMS.darwin.libc, DARWIN);
  const orErrno = errnoReader(ffi, SYSTEMS.darwin);
  return {
    mmap: (address, bytes, prot, flags, file, offset) =>
      orErrno(Number(libc.mmap(BigInt(address), BigInt(bytes), prot, flags, file, BigInt(offset)))),
    mprotect: (address, bytes, prot) => orErrno(libc.mprotect(BigInt(address), BigInt(bytes), prot) as number),
    munmap: (address, bytes) => orErrno(libc.munmap(BigInt(address), BigInt(bytes)) as number),
    madvise: (address, bytes, advice) => orErrno(libc.madvise(BigInt(address), BigInt(bytes), advice) as number),
    sigaltstack: (stack, old) => orErrno(libc.sigaltstack(stack, old) as number),
    sigaction: (signal, action, old) => orErrno(libc.sigaction(signal, action, old) as number),
    exitGroup: (status) => void libc._exit(status),
    files: {
      createUnnamed: () => {
        const path = new TextEncoder().encode(`${temporaryDirectory()}/waft-XXXXXX\0`);
        const file = libc.mkstemp(path) as number; // writes the name that it chose into the path
        if (file >= 0) libc.unlink(path);
        return orErrno(file);
      },
      write: (file, bytes) => orErrno(Number(libc.write(file, bytes, BigInt(bytes.length)))),
      close: (file) => orErrno(libc.close(file) as number),
      open: (path, flags) => orErrno(libc.open(path, flags) as number),
      lseek: (file, offset, whence) => orErrno(Number(libc.lseek(file, BigInt(offset), whence))),
    },
  };
}

/** The directory for temporary files, which on macOS is private to the user. */
function temporaryDirectory(): string {
  try {
    return environmentVariable("TMPDIR")?.replace(/\/+$/, "") || "/tmp";
  } catch {
    return "/tmp"; // Deno without the permission for the variable
  }
}
