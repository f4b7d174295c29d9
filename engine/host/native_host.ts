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
import { bufferAddresses, checkedView, wordAllocator } from "./host_parts.ts";
import { objectEntry } from "./object_entry.ts";
import { posixMemory } from "./posix_memory.ts";
import { posixSignals } from "./posix_signals.ts";
import { endProcessBy } from "./process.ts";
import { systemCalls } from "./system_calls.ts";
import { isPosix, type PosixFacts } from "./systems.ts";

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

  const addressOf = bufferAddresses(ffi);
  const calls = systemCalls(ffi, addressOf);
  if (ffi.name === "node") endProcessBy(calls.exitGroup);
  const { createFile, ...memory } = posixMemory(system, calls);
  const { reserve } = memory;
  const pageSize = arch === "x64" ? system.x64PageBytes : late(PAGES).getpagesize() as number;

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
      ? objectEntry(ffi, { create: (bytes) => createFile(bytes, "executable memory"), close: memory.closeImage })
      : bsearchEntry(ffi, system.libc, {
        allocate: wordAllocator(reserve, pageSize),
        placeCode,
        view: (at, bytes) => ffi.view(at, bytes),
      });
  const nativeLibrary: Host["nativeLibrary"] = (text, symbols) => way().nativeLibrary(text, symbols);

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
    ...memory,
    name: ffi.name,
    os,
    system,
    arch,
    pageSize,
    get lent() {
      return lent ??= ffi.lentViews({ arch, system, nativeLibrary, pageSize, reserve });
    },
    maxViewBytes: ffi.maxViewBytes,
    view: (address, bytes) => checkedView(ffi, address, bytes),
    addressOf,
    nativeLibrary,
    runOnce,
    boundCalls: (text, offsets, pointer) => way().boundCalls(text, offsets, pointer),
    invalidateInstructions,
    ...posixSignals(system, calls, reserve),
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
  };
}
