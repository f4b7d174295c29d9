/**
 * Builds the host interface on an FFI: libc for memory, threads and signals, and a way into generated machine code
 * (object_entry.ts, bsearch_entry.ts). In: the FFI of a runtime (ffi.ts) and the facts about the operating system
 * (systems.ts). Out: a {@linkcode Host}.
 */
import { bsearchEntry } from "./bsearch_entry.ts";
import type { CodeEntry } from "./code_entry.ts";
import type { Ffi, ForeignSignature } from "./ffi.ts";
import type { LentViews } from "./lent_views.ts";
import { type Host, PROT } from "./host.ts";
import { objectEntry } from "./object_entry.ts";
import { endProcessBy } from "./process.ts";
import { systemCalls } from "./system_calls.ts";
import { isPosix, type PosixFacts } from "./systems.ts";

const ADDRESSES = {
  memcpy: { params: ["buffer", "buffer", "i64"], result: "i64" },
} as const satisfies Record<string, ForeignSignature>;

/** The size of a page, where the processor alone does not say it. */
const PAGES = {
  getpagesize: { params: [], result: "i32" },
} as const satisfies Record<string, ForeignSignature>;

const THREADS = {
  pthread_create: { params: ["buffer", "i64", "i64", "i64"], result: "i32" },
  pthread_detach: { params: ["i64"], result: "i32" },
} as const satisfies Record<string, ForeignSignature>;

const DLSYM = {
  dlsym: { params: ["i64", "buffer"], result: "i64" },
} as const satisfies Record<string, ForeignSignature>;

const SEEK_END = 2;
const SIGNAL_STACK_BYTES = 1 << 16;

/** The record of the FFI's operating system, which has mmap and signals. */
function posixSystem({ system }: Ffi): PosixFacts {
  if (!isPosix(system)) throw new Error(`${system.title} has no mmap`);
  return system;
}

/**
 * Creates the host interface of a runtime on a system with mmap and signals. `system` is the record of its operating
 * system; tests give others.
 */
export function nativeHost(ffi: Ffi, system: PosixFacts = posixSystem(ffi)): Host {
  const { os, arch } = ffi;
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
  if (ffi.name === "node") endProcessBy(calls.exitGroup);
  const pageSize = arch === "x64" ? system.x64PageBytes : late(PAGES).getpagesize() as number;

  function map(address: number, bytes: number, prot: number, flags: number): number {
    const at = calls.mmap(address, bytes, prot, flags, -1, 0);
    if (at < 0 || at >= 2 ** 63) throw new RangeError(`Out of address space: cannot map ${bytes} bytes`);
    return at;
  }

  function writeAll(fd: number, bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const part = bytes.subarray(at);
      const written = files.write(fd, part);
      if (written <= 0) throw new Error("Cannot create a file without a name: writing it failed");
      at += written;
    }
  }

  /** A file without a name that contains `bytes`. */
  function createFile(bytes: Uint8Array, purpose: string): number {
    const fd = files.createUnnamed();
    if (fd < 0) throw new Error(`Cannot create ${purpose}: the system does not give a file without a name`);
    try {
      writeAll(fd, bytes);
    } catch (error) {
      files.close(fd);
      throw error;
    }
    return fd;
  }

  function reserve(bytes: number, prot: number): number {
    return map(0, bytes, prot, system.MAP_PRIVATE | system.MAP_ANONYMOUS | system.MAP_NORESERVE);
  }

  function replace(address: number, bytes: number, prot: number): void {
    const flags = system.MAP_PRIVATE | system.MAP_ANONYMOUS | system.MAP_NORESERVE | system.MAP_FIXED;
    map(address, bytes, prot, flags);
  }

  const invalidateInstructions = arch === "x64" || system.invalidateInstructions === undefined
    ? undefined
    : cacheMaintenance(system.invalidateInstructions);

  /** The C library's function for making new code visible. */
  function cacheMaintenance(name: string): (first: number, end: number) => void {
    const { [name]: invalidate } = ffi.open(system.libc, { [name]: { params: ["i64", "i64"], result: "void" } });
    return (first, end) => void invalidate!(BigInt(first), BigInt(end - first));
  }

  /** Makes pages with `text`, readable and executable. On arm64 only where `invalidateInstructions` exists. */
  function placeCode(text: Uint8Array): number {
    const bytes = Math.ceil(text.length / pageSize) * pageSize;
    const code = reserve(bytes, PROT.READ | PROT.WRITE);
    new Uint8Array(ffi.view(code, text.length)).set(text);
    if (calls.mprotect(code, bytes, PROT.READ | PROT.EXEC) !== 0) {
      throw new Error("Cannot create executable memory: the system does not allow it");
    }
    invalidateInstructions?.(code, code + text.length);
    return code;
  }

  let entry: CodeEntry | undefined;
  const way = (): CodeEntry =>
    entry ??= system.entry === "object"
      ? objectEntry(ffi, { create: (bytes) => createFile(bytes, "executable memory"), close: files.close })
      : bsearchEntry(ffi, system.libc, {
        allocate: allocateWords(),
        placeCode,
        view: (at, bytes) => ffi.view(at, bytes),
      });
  const nativeLibrary: Host["nativeLibrary"] = (text, symbols) => way().nativeLibrary(text, symbols);

  /** Allocates a few words at a time from one page. */
  function allocateWords(): (bytes: number) => number {
    let next = reserve(pageSize, PROT.READ | PROT.WRITE);
    const end = next + pageSize;
    return (bytes) => {
      if (next + bytes > end) throw new RangeError("Too many entry points into machine code");
      next += bytes;
      return next - bytes;
    };
  }

  function runOnce(text: Uint8Array, pointer: number): void {
    // on other architectures, instruction fetch is not coherent with stores
    if (ffi.call === undefined || arch !== "x64" || system.entry !== "object") {
      const { run } = nativeLibrary(text, { run: { offset: 0, params: ["i64"], result: "void" } });
      run(BigInt(pointer));
      return;
    }
    const code = placeCode(text);
    ffi.call(code, pointer);
    calls.munmap(code, text.length);
  }

  let lent: LentViews | undefined;
  return {
    name: ffi.name,
    os,
    system,
    arch,
    pageSize,
    get lent() {
      return lent ??= ffi.lentViews({ arch, system, nativeLibrary, pageSize, reserve });
    },
    maxViewBytes: ffi.maxViewBytes,
    reserve,
    replace,
    protect: (address, bytes, prot) => {
      if (calls.mprotect(address, bytes, prot) !== 0) {
        throw new RangeError(`Out of memory: cannot make ${bytes} bytes accessible`);
      }
    },
    release: (address, bytes) => {
      calls.munmap(address, bytes);
    },
    discard: (address, bytes, mapAgain) => {
      if (system.MADV_ZERO === undefined) {
        replace(address, bytes, PROT.READ | PROT.WRITE);
        mapAgain?.();
      } else if (calls.madvise(address, bytes, system.MADV_ZERO) !== 0) {
        throw new RangeError(`Out of memory: cannot drop ${bytes} bytes`);
      }
    },
    createImage: (bytes) => createFile(bytes, "an image"),
    openImage: (path) => {
      if (path.includes("\0")) throw new TypeError("A path cannot hold a zero byte");
      const fd = files.open(new TextEncoder().encode(`${path}\0`), system.OPEN_TO_READ);
      if (fd < 0) throw new Error(`Cannot open ${path}`);
      const bytes = files.lseek(fd, 0, SEEK_END);
      if (bytes >= 0 && bytes <= Number.MAX_SAFE_INTEGER) return { image: fd, bytes };
      files.close(fd);
      throw new Error(`Cannot map ${path}: not a regular file`);
    },
    mapImage: (address, bytes, image, offset = 0, prot = PROT.READ | PROT.WRITE) => {
      if ((prot & PROT.EXEC) !== 0 && !system.mapsCode) throw new RangeError("This system maps only signed code");
      const flags = system.MAP_PRIVATE | system.MAP_FIXED;
      const at = calls.mmap(address, bytes, prot, flags, image, offset);
      if (at !== address) throw new RangeError(`Out of address space: cannot map ${bytes} bytes`);
    },
    closeImage: (image) => {
      files.close(image);
    },
    preferLargePages: (address, bytes) => {
      if (system.MADV_HUGEPAGE !== undefined) calls.madvise(address, bytes, system.MADV_HUGEPAGE);
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
    boundCalls: (text, offsets, pointer) => way().boundCalls(text, offsets, pointer),
    invalidateInstructions,
    functionAddresses: <Name extends string>(names: readonly Name[]) => {
      const { dlsym } = late(DLSYM);
      const found = {} as Record<Name, number>;
      for (const name of names) {
        const at = Number(dlsym(BigInt(system.dlsymDefault), new TextEncoder().encode(`${name}\0`)));
        if (at === 0) throw new Error(`The C library of this ${system.title} lacks the function ${name}`);
        found[name] = at;
      }
      return found;
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
