/**
 * Builds the host interface on Windows x64: kernel32 for memory, threads and exceptions (windows_memory.ts,
 * windows_code.ts), and `bsearch` of ucrtbase as the way into machine code (bsearch_entry.ts). In: the FFI of a
 * runtime. Out: a {@linkcode Host}.
 *
 * Faults arrive at vectored exception handlers, newest first. Invariant: a handler that commits memory precedes every
 * realm's handler of faults, because compiled code also touches reservations that are committed on access.
 */
import type { Ffi, ForeignFunction, ForeignSignature } from "../runtimes/ffi.ts";
import { type Host, PROT } from "../host.ts";
import { endProcessBy } from "../process.ts";
import { COMMIT_FUNCTIONS, commitHandler, threadStart } from "../code/windows_code.ts";
import { WindowsMemory } from "../memory/windows_memory.ts";

const KERNEL32 = {
  AddVectoredExceptionHandler: { params: ["i32", "i64"], result: "i64" },
  GetModuleHandleA: { params: ["buffer"], result: "i64" },
  LoadLibraryExA: { params: ["buffer", "i64", "i32"], result: "i64" },
  GetProcAddress: { params: ["i64", "buffer"], result: "i64" },
} as const satisfies Record<string, ForeignSignature>;

const THREADS = {
  CreateThread: { params: ["i64", "i64", "i64", "i64", "i32", "i64"], result: "i64" },
  WaitForSingleObject: { params: ["i64", "i32"], result: "i32" },
  CloseHandle: { params: ["i64"], result: "i32" },
} as const satisfies Record<string, ForeignSignature>;

/** INFINITE: a wait without a timeout. */
const FOREVER = -1;

/** Encodes a pointer with a random number of the process. */
const ENCODING = {
  EncodePointer: { params: ["i64"], result: "i64" },
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
  return new WindowsHost(ffi);
}

class WindowsHost extends WindowsMemory implements Host {
  readonly invalidateInstructions = undefined;
  readonly #kernel: Record<keyof typeof KERNEL32, ForeignFunction>;
  readonly #libraries = new Map<string, bigint>();
  /** The address of the handler that commits memory. */
  readonly #committer: number;
  #threads: Record<keyof typeof THREADS, ForeignFunction> | undefined;
  /** Starts of threads, by the address of the code that they enter. */
  readonly #threadStarts = new Map<number, number>();

  constructor(ffi: Ffi) {
    super(ffi);
    this.#kernel = ffi.open("kernel32.dll", KERNEL32);
    if (ffi.name === "node") {
      const { TerminateProcess } = ffi.open("kernel32.dll", ENDING);
      endProcessBy((status) => void TerminateProcess(THIS_PROCESS, status));
    }
    this.#committer = this.placeCode(commitHandler(COMMIT_FUNCTIONS.map((name) => this.#functionAddress(name))));
    this.#addFirst(this.#committer);
  }

  /** Adds a handler in front of the others; false if the system refuses. */
  #addFirst(handler: number): boolean {
    return BigInt(this.#kernel.AddVectoredExceptionHandler(FIRST, BigInt(handler))) !== 0n;
  }

  #library(name: string): bigint {
    let handle = this.#libraries.get(name);
    if (handle === undefined) {
      const { GetModuleHandleA, LoadLibraryExA } = this.#kernel;
      const path = zeroTerminated(name);
      handle = BigInt(GetModuleHandleA(path)) || BigInt(LoadLibraryExA(path, 0n, SEARCH_SYSTEM32));
      this.#libraries.set(name, handle);
    }
    return handle;
  }

  #functionAddress(name: string): number {
    const symbol = zeroTerminated(name);
    for (const file of LIBRARIES) {
      const handle = this.#library(file);
      const address = handle === 0n ? 0 : Number(this.#kernel.GetProcAddress(handle, symbol));
      if (address !== 0) return address;
    }
    throw new Error(`This ${this.system.title} lacks the function ${name}`);
  }

  functionAddresses<Name extends string>(names: readonly Name[]): Record<Name, number> {
    return Object.fromEntries(names.map((name) => [name, this.#functionAddress(name)])) as Record<Name, number>;
  }

  openReferences(): undefined {
    return undefined; // a library must be a file on disk
  }

  protected placeCode(text: Uint8Array): number {
    const code = this.reserve(text.length, PROT.READ | PROT.WRITE);
    this.protect(code, text.length, PROT.READ | PROT.WRITE);
    new Uint8Array(this.ffi.view(code, text.length)).set(text);
    this.protect(code, text.length, PROT.READ | PROT.EXEC);
    return code;
  }

  startThread(code: number, argument: number): void {
    this.#threadCalls.CloseHandle(this.#createThread(code, argument));
  }

  /** Exception handlers serve all threads of the process, and run on the stack of the code that faults. */
  runWithFaults(code: number, argument: number): () => void {
    let start = this.#threadStarts.get(code);
    if (start === undefined) this.#threadStarts.set(code, start = this.placeCode(threadStart(code)));
    const thread = this.#createThread(start, argument);
    return () => {
      const { WaitForSingleObject, CloseHandle } = this.#threadCalls;
      if (WaitForSingleObject(thread, FOREVER) !== 0) throw new Error("Cannot wait for a thread");
      CloseHandle(thread);
    };
  }

  get #threadCalls(): Record<keyof typeof THREADS, ForeignFunction> {
    return this.#threads ??= this.ffi.open("kernel32.dll", THREADS);
  }

  /** Returns the thread's handle. */
  #createThread(code: number, argument: number): bigint {
    const thread = BigInt(this.#threadCalls.CreateThread(0n, 0n, BigInt(code), BigInt(argument), 0, 0n));
    if (thread === 0n) throw new Error("Cannot start a thread: the system refuses another one");
    return thread;
  }

  installSignalHandler(_signal: number, handler: number): number {
    if (!this.#addFirst(handler)) throw new Error("Cannot install an exception handler");
    this.#addFirst(this.#committer);
    return 0;
  }

  signalHandler(): number {
    return 0;
  }

  ensureSignalStack(): void {}

  processSecret(): Uint8Array {
    return this.#secret ??= this.#readSecret();
  }
  #secret: Uint8Array | undefined;

  /** The random number has 32 bits; the addresses of libraries add theirs. */
  #readSecret(): Uint8Array {
    const { EncodePointer } = this.ffi.open("kernel32.dll", ENCODING);
    const words = [BigInt(EncodePointer(0n)), ...LIBRARIES.map((name) => this.#library(name))];
    return new Uint8Array(BigUint64Array.from(words, (word) => BigInt.asUintN(64, word)).buffer);
  }
}
