/**
 * Builds the host interface on Windows x64: kernel32 for memory, threads and exceptions (windows_memory.ts,
 * windows_code.ts), and `bsearch` of ucrtbase as the way into machine code (bsearch_entry.ts). In: the FFI of a
 * runtime. Out: a {@linkcode Host}.
 *
 * Faults arrive at vectored exception handlers, newest first. Invariant: a handler that commits memory precedes every
 * realm's handler of faults, because compiled code also touches reservations that are committed on access.
 */
import { bsearchEntry } from "./bsearch_entry.ts";
import type { CodeEntry } from "./code_entry.ts";
import type { Ffi, ForeignSignature } from "./ffi.ts";
import { type Host, PROT } from "./host.ts";
import type { LentViews } from "./lent_views.ts";
import { bufferAddresses, checkedView, wordAllocator } from "./host_parts.ts";
import { endProcessBy } from "./process.ts";
import { COMMIT_FUNCTIONS, commitHandler } from "./windows_code.ts";
import { WINDOWS_PAGE_BYTES, windowsMemory } from "./windows_memory.ts";

const KERNEL32 = {
  AddVectoredExceptionHandler: { params: ["i32", "i64"], result: "i64" },
  GetModuleHandleA: { params: ["buffer"], result: "i64" },
  LoadLibraryExA: { params: ["buffer", "i64", "i32"], result: "i64" },
  GetProcAddress: { params: ["i64", "buffer"], result: "i64" },
} as const satisfies Record<string, ForeignSignature>;

const THREADS = {
  CreateThread: { params: ["i64", "i64", "i64", "i64", "i32", "i64"], result: "i64" },
  CloseHandle: { params: ["i64"], result: "i32" },
} as const satisfies Record<string, ForeignSignature>;

const ENDING = {
  TerminateProcess: { params: ["i64", "i32"], result: "i32" },
} as const satisfies Record<string, ForeignSignature>;

/** The libraries in which functions are looked up, in this order. */
const LIBRARIES = ["kernel32.dll", "kernelbase.dll", "ntdll.dll", "ucrtbase.dll", "bcryptprimitives.dll"] as const;
/** LOAD_LIBRARY_SEARCH_SYSTEM32: a file of the same name in another folder is not loaded. */
const SEARCH_SYSTEM32 = 0x800;
const THIS_PROCESS = -1n;
/** Adds a handler in front of the others. */
const FIRST = 1;

function zeroTerminated(text: string): Uint8Array {
  return new TextEncoder().encode(`${text}\0`);
}

/** Creates the host interface of a runtime on Windows. */
export function windowsHost(ffi: Ffi): Host {
  const { system, arch } = ffi;
  const kernel = ffi.open("kernel32.dll", KERNEL32);
  const memory = windowsMemory(ffi);
  const { reserve, protect } = memory;
  const pageSize = WINDOWS_PAGE_BYTES;
  if (ffi.name === "node") {
    const { TerminateProcess } = ffi.open("kernel32.dll", ENDING);
    endProcessBy((status) => void TerminateProcess(THIS_PROCESS, status));
  }

  const libraries = new Map<string, bigint>();
  function library(name: string): bigint {
    let handle = libraries.get(name);
    if (handle === undefined) {
      const path = zeroTerminated(name);
      handle = BigInt(kernel.GetModuleHandleA(path)) || BigInt(kernel.LoadLibraryExA(path, 0n, SEARCH_SYSTEM32));
      libraries.set(name, handle);
    }
    return handle;
  }

  function functionAddress(name: string): number {
    const symbol = zeroTerminated(name);
    for (const file of LIBRARIES) {
      const handle = library(file);
      const address = handle === 0n ? 0 : Number(kernel.GetProcAddress(handle, symbol));
      if (address !== 0) return address;
    }
    throw new Error(`This ${system.title} lacks the function ${name}`);
  }

  function placeCode(text: Uint8Array): number {
    const code = reserve(text.length, PROT.READ | PROT.WRITE);
    protect(code, text.length, PROT.READ | PROT.WRITE);
    new Uint8Array(ffi.view(code, text.length)).set(text);
    protect(code, text.length, PROT.READ | PROT.EXEC);
    return code;
  }

  const committer = placeCode(commitHandler(COMMIT_FUNCTIONS.map(functionAddress)));
  const commitFirst = (): void => void kernel.AddVectoredExceptionHandler(FIRST, BigInt(committer));
  commitFirst();

  let entry: CodeEntry | undefined;
  const way = (): CodeEntry =>
    entry ??= bsearchEntry(ffi, system.libc, {
      allocate: wordAllocator(reserve, pageSize),
      placeCode,
      view: (at, bytes) => ffi.view(at, bytes),
    });
  const nativeLibrary: Host["nativeLibrary"] = (text, symbols) => way().nativeLibrary(text, symbols);

  const addressOf = bufferAddresses(ffi);
  let lent: LentViews | undefined;
  return {
    ...memory,
    name: ffi.name,
    os: ffi.os,
    system,
    arch,
    pageSize,
    get lent() {
      return lent ??= ffi.lentViews({ arch, system, nativeLibrary, pageSize, reserve });
    },
    maxViewBytes: ffi.maxViewBytes,
    preferLargePages: () => {}, // large pages need a privilege
    view: (address, bytes) => checkedView(ffi, address, bytes),
    addressOf,
    nativeLibrary,
    runOnce: (text, pointer) => {
      const { run } = nativeLibrary(text, { run: { offset: 0, params: ["i64"], result: "void" } });
      run(BigInt(pointer));
    },
    boundCalls: (text, offsets, pointer) => way().boundCalls(text, offsets, pointer),
    invalidateInstructions: undefined,
    functionAddresses: <Name extends string>(names: readonly Name[]) =>
      Object.fromEntries(names.map((name) => [name, functionAddress(name)])) as Record<Name, number>,
    startThread: (code, argument) => {
      const threads = ffi.open("kernel32.dll", THREADS);
      const thread = BigInt(threads.CreateThread(0n, 0n, BigInt(code), BigInt(argument), 0, 0n));
      if (thread === 0n) throw new Error("Cannot start a thread: the system refuses another one");
      threads.CloseHandle(thread);
    },
    installSignalHandler: (_signal, handler) => {
      if (BigInt(kernel.AddVectoredExceptionHandler(FIRST, BigInt(handler))) === 0n) {
        throw new Error("Cannot install an exception handler");
      }
      commitFirst();
      return 0;
    },
    signalHandler: () => 0,
    ensureSignalStack: () => {},
  };
}
