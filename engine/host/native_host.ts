/**
 * Builds the host interface on an FFI: libc for memory, threads and signals, and generated machine code as an ELF
 * object in a memfd, which the dynamic loader opens. In: the FFI of a runtime (ffi.ts). Out: a {@linkcode Host}.
 *
 * The fastest entry is a call without parameters that returns an i32: every runtime compiles it to a direct machine
 * call. A function of one constant pointer therefore gets its own entry point, which loads the pointer as a constant.
 */
import { writeSharedObject } from "./elf.ts";
import type { Ffi, ForeignSignature } from "./ffi.ts";
import type { LentViews } from "./lent_views.ts";
import { type Host, type NativeFunction, type NativeSymbol, PROT } from "./host.ts";
import { OS_CALLS } from "./os_calls.ts";
import { endProcessBy } from "./process.ts";
import { systemCalls } from "./system_calls.ts";

const ADDRESSES = {
  memcpy: { params: ["buffer", "buffer", "i64"], result: "i64" },
} as const satisfies Record<string, ForeignSignature>;

/** Where the processor alone does not say it. */
const PAGES = {
  getpagesize: { params: [], result: "i32" },
} as const satisfies Record<string, ForeignSignature>;
const X64_PAGE_BYTES = 4096;

const THREADS = {
  pthread_create: { params: ["buffer", "i64", "i64", "i64"], result: "i32" },
  pthread_detach: { params: ["i64"], result: "i32" },
} as const satisfies Record<string, ForeignSignature>;

const MFD_CLOEXEC = 1;
const MEMFD_NAME = new TextEncoder().encode("waft\0");
const MADV_DONTNEED = 4;
const MADV_HUGEPAGE = 14;
/** Read only, not inherited; does not wait for the other end of a pipe. The same on x64 and arm64. */
const O_READ = 0x80000 | 0x800;
const SEEK_END = 2;
const SIGNAL_STACK_BYTES = 1 << 16;

/**
 * A path to descriptor `fd` that has not been used before. The loader identifies libraries by path, even after the
 * descriptor refers to another file, so random redundant "/" and "./" make the path unique.
 */
function uniqueFdPath(fd: number): string {
  const bits = Math.floor(Math.random() * 2 ** 48).toString(2);
  return `/proc/self/fd/${bits.replaceAll("1", "./").replaceAll("0", "/")}${fd}`;
}

/**
 * Appends an entry point to `text` that calls `offset` with `pointer` as its only argument; returns both with the
 * entry's offset.
 */
function withBoundEntry(
  text: Uint8Array,
  offset: number,
  pointer: number,
  arch: "x64" | "arm64",
): { text: Uint8Array; entry: number } {
  const entry = Math.ceil(text.length / 16) * 16;
  const bytes = new Uint8Array(entry + 16);
  bytes.set(text);
  const view = new DataView(bytes.buffer);
  if (arch === "x64") {
    bytes.set([0x48, 0xbf], entry); // movabs rdi, pointer
    view.setBigUint64(entry + 2, BigInt(pointer), true);
    bytes[entry + 10] = 0xe9; // jmp offset
    view.setInt32(entry + 11, offset - (entry + 15), true);
  } else {
    view.setUint32(entry, 0x58000040, true); // ldr x0, pointer
    view.setUint32(entry + 4, 0x14000000 | (((offset - (entry + 4)) >> 2) & 0x3ffffff), true); // b offset
    view.setBigUint64(entry + 8, BigInt(pointer), true);
  }
  return { text: bytes, entry };
}

/**
 * `() => enter()`, compiled from its own source. V8 makes a direct machine call of a foreign symbol only at a
 * monomorphic call site, and closures of one function literal share their call sites.
 */
function ownClosure(enter: () => number): () => number {
  try {
    return new Function("enter", "return () => enter();")(enter) as () => number;
  } catch {
    return () => enter(); // code from strings is not allowed here
  }
}

/** Creates the host interface of a runtime. */
export function nativeHost(ffi: Ffi): Host {
  const { os, arch } = ffi;
  const system = OS_CALLS[os];
  const opened = new Map<object, ReturnType<Ffi["open"]>>();
  /** Opens the symbols of a table on first use; not every process needs them. */
  function late<Name extends string>(signatures: Readonly<Record<Name, ForeignSignature>>) {
    let library = opened.get(signatures);
    if (library === undefined) opened.set(signatures, library = ffi.open(system.libc, signatures));
    return library as ReturnType<typeof ffi.open<Name>>;
  }

  function addressOf(bytes: Uint8Array): number {
    // memcpy returns its first argument
    const address = ffi.addressOf?.(bytes) ?? Number(late(ADDRESSES).memcpy(bytes, bytes, 0n));
    if (address === 0) throw new RangeError(`${ffi.name} returns no address for an empty buffer`);
    return address;
  }

  const calls = systemCalls(ffi, addressOf);
  const { files } = calls;
  if (ffi.name === "node" && calls.exitGroup !== undefined) endProcessBy(calls.exitGroup);
  const pageSize = arch === "x64" ? X64_PAGE_BYTES : late(PAGES).getpagesize() as number;

  function map(address: number, bytes: number, prot: number, flags: number): number {
    const at = calls.mmap(address, bytes, prot, flags, -1, 0);
    if (at < 0 || at >= 2 ** 63) throw new RangeError(`Out of address space: cannot map ${bytes} bytes`);
    return at;
  }

  function writeAll(fd: number, bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const part = bytes.subarray(at);
      const written = files!.write(fd, part);
      if (written <= 0) throw new Error("Cannot create executable memory: writing the code failed");
      at += written;
    }
  }

  function nativeLibrary<Name extends string>(
    text: Uint8Array,
    symbols: Record<Name, NativeSymbol>,
  ): Record<Name, NativeFunction> {
    if (files === undefined) throw new Error("waft needs Linux to run machine code; macOS is not supported yet");
    const offsets: Record<string, number> = {};
    for (const name in symbols) offsets[name] = symbols[name].offset;
    const file = writeSharedObject(text, offsets, arch);
    const fd = files.memfdCreate(MEMFD_NAME, MFD_CLOEXEC);
    if (fd < 0) throw new Error("Cannot create executable memory: memfd_create failed");
    try {
      writeAll(fd, file);
      return ffi.open(uniqueFdPath(fd), symbols);
    } finally {
      files.close(fd);
    }
  }

  function runOnce(text: Uint8Array, pointer: number): void {
    // on other architectures, instruction fetch is not coherent with stores
    if (ffi.call === undefined || arch !== "x64") {
      const { run } = nativeLibrary(text, { run: { offset: 0, params: ["i64"], result: "void" } });
      run(BigInt(pointer));
      return;
    }
    const code = reserve(text.length, PROT.READ | PROT.WRITE);
    new Uint8Array(ffi.view(code, text.length)).set(text);
    if (calls.mprotect(code, text.length, PROT.READ | PROT.EXEC) !== 0) {
      throw new Error("Cannot create executable memory: the system does not allow it");
    }
    ffi.call(code, pointer);
    calls.munmap(code, text.length);
  }

  let lent: LentViews | undefined;
  const reserve = (bytes: number, prot: number): number =>
    map(0, bytes, prot, system.MAP_PRIVATE | system.MAP_ANONYMOUS | system.MAP_NORESERVE);

  return {
    name: ffi.name,
    os,
    arch,
    pageSize,
    get lent() {
      return lent ??= ffi.lentViews({ arch, nativeLibrary, pageSize, reserve });
    },
    maxViewBytes: ffi.maxViewBytes,
    reserve,
    replace: (address, bytes, prot) => {
      map(address, bytes, prot, system.MAP_PRIVATE | system.MAP_ANONYMOUS | system.MAP_NORESERVE | system.MAP_FIXED);
    },
    protect: (address, bytes, prot) => {
      if (calls.mprotect(address, bytes, prot) !== 0) {
        throw new RangeError(`Out of memory: cannot make ${bytes} bytes accessible`);
      }
    },
    release: (address, bytes) => {
      calls.munmap(address, bytes);
    },
    discard: (address, bytes) => {
      if (calls.madvise(address, bytes, MADV_DONTNEED) !== 0) {
        throw new RangeError(`Out of memory: cannot drop ${bytes} bytes`);
      }
    },
    createImage: (bytes) => {
      if (files === undefined) throw new Error("Files in memory need Linux");
      const fd = files.memfdCreate(MEMFD_NAME, MFD_CLOEXEC);
      if (fd < 0) throw new Error("Cannot make a file in memory: memfd_create failed");
      try {
        writeAll(fd, bytes);
      } catch (error) {
        files.close(fd);
        throw error;
      }
      return fd;
    },
    openImage: (path) => {
      if (files === undefined) throw new Error("Mapping files needs Linux");
      if (path.includes("\0")) throw new TypeError("A path cannot hold a zero byte");
      const fd = files.open(new TextEncoder().encode(`${path}\0`), O_READ);
      if (fd < 0) throw new Error(`Cannot open ${path}`);
      const bytes = files.lseek(fd, 0, SEEK_END);
      if (bytes >= 0 && bytes <= Number.MAX_SAFE_INTEGER) return { image: fd, bytes };
      files.close(fd);
      throw new Error(`Cannot map ${path}: not a regular file`);
    },
    mapImage: (address, bytes, image, offset = 0, prot = PROT.READ | PROT.WRITE) => {
      const flags = system.MAP_PRIVATE | system.MAP_FIXED;
      const at = calls.mmap(address, bytes, prot, flags, image, offset);
      if (at !== address) throw new RangeError(`Out of address space: cannot map ${bytes} bytes`);
    },
    closeImage: (image) => {
      files!.close(image);
    },
    preferLargePages: (address, bytes) => {
      if (os === "linux") calls.madvise(address, bytes, MADV_HUGEPAGE);
    },
    view: (address, bytes) => {
      if (bytes === 0) return new ArrayBuffer(0);
      if (bytes > ffi.maxViewBytes) {
        throw new RangeError(`A view of ${bytes} bytes is more than the ${ffi.maxViewBytes} that ${ffi.name} allows`);
      }
      return ffi.view(address, bytes);
    },
    addressOf,
    nativeLibrary,
    runOnce,
    boundCalls: <Name extends string>(text: Uint8Array, offsets: Readonly<Record<Name, number>>, pointer: number) => {
      const symbols = {} as Record<Name, NativeSymbol>;
      let bound = text;
      for (const name in offsets) {
        const next = withBoundEntry(bound, offsets[name], pointer, arch);
        bound = next.text;
        symbols[name] = { offset: next.entry, params: [], result: "i32" };
      }
      const library = nativeLibrary(bound, symbols);
      const calls = {} as Record<Name, () => number>;
      for (const name in offsets) calls[name] = ownClosure(library[name] as () => number);
      return calls;
    },
    startThread: (code, argument) => {
      const threads = ffi.open(system.libc, THREADS);
      const id = new BigUint64Array(1);
      if (threads.pthread_create(id, 0n, BigInt(code), BigInt(argument)) !== 0) {
        throw new Error("Cannot start a thread: the system refuses another one");
      }
      threads.pthread_detach(id[0]!);
    },
    installSignalHandler: (signal, handler) => {
      const action = system.sigactionBytes(handler);
      const old = new Uint8Array(system.SIGACTION_SIZE);
      if (calls.sigaction(signal, action, old) !== 0) throw new Error(`Cannot install a handler for signal ${signal}`);
      return Number(new DataView(old.buffer).getBigUint64(0, true));
    },
    signalHandler: (signal) => {
      const old = new Uint8Array(system.SIGACTION_SIZE);
      calls.sigaction(signal, null, old);
      return Number(new DataView(old.buffer).getBigUint64(0, true));
    },
    ensureSignalStack: () => {
      const old = new Uint8Array(24);
      calls.sigaltstack(null, old);
      if (!system.isSignalStackDisabled(old)) return;
      const stack = map(0, SIGNAL_STACK_BYTES, 3, system.MAP_PRIVATE | system.MAP_ANONYMOUS);
      calls.sigaltstack(system.signalStackBytes(stack, SIGNAL_STACK_BYTES), null);
    },
  };
}
