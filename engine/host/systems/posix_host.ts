/**
 * The host interface on systems with mmap and signals: libc for memory, threads and signals, and a way into generated
 * machine code (object_entry.ts, bsearch_entry.ts). In: the FFI of a runtime (ffi.ts) and the record of the operating
 * system (systems.ts). Out: a {@linkcode Host}.
 */
import type { CodeEntry } from "../code/code_entry.ts";
import type { Ffi, ForeignFunction, ForeignSignature } from "../runtimes/ffi.ts";
import type { NativeReferences } from "../finalizers.ts";
import { type Host, PROT } from "../host.ts";
import { type CodeFiles, objectEntry } from "../code/object_entry.ts";
import { PosixMemory } from "../memory/posix_memory.ts";
import { LateModule, SUFFIX } from "../late_module.ts";
import { endProcessBy } from "../process.ts";
import { SystemError } from "../calls/system_error.ts";
import { isPosix, type PosixFacts } from "./systems.ts";

/** Native references, which programs with few instances do without. */
const REFERENCES: LateModule<typeof import("./native_references.ts")> = new LateModule(
  new URL(`./native_references.${SUFFIX}`, import.meta.url),
  () => import("./native_references.ts"),
);

/** The size of a page, where the processor alone does not say it. */
const PAGES = {
  getpagesize: { params: [], result: "i32" },
} as const satisfies Record<string, ForeignSignature>;

const THREADS = {
  pthread_create: { params: ["buffer", "i64", "i64", "i64"], result: "i32" },
  pthread_detach: { params: ["i64"], result: "i32" },
  pthread_join: { params: ["i64", "buffer"], result: "i32" },
} as const satisfies Record<string, ForeignSignature>;

const SIGNAL_MASK = {
  pthread_sigmask: { params: ["i32", "buffer", "buffer"], result: "i32" },
} as const satisfies Record<string, ForeignSignature>;

const DLSYM = {
  dlsym: { params: ["i64", "buffer"], result: "i64" },
} as const satisfies Record<string, ForeignSignature>;

const AUXILIARY_VECTOR = {
  getauxval: { params: ["i64"], result: "i64" },
} as const satisfies Record<string, ForeignSignature>;

/** The entry of the auxiliary vector with the address of 16 random bytes. */
const AT_RANDOM = 25;
const AT_RANDOM_BYTES = 16;

const SIGNAL_STACK_BYTES = 1 << 16;
/** The size of a signal set: the C library's, of which the kernel reads the first words. */
const SIGNAL_SET_BYTES = 128;

/** The record of the FFI's operating system, which has mmap and signals. */
function posixSystem({ system }: Ffi): PosixFacts {
  if (!isPosix(system)) throw new Error(`${system.title} has no mmap`);
  return system;
}

/** The C library's function for making new code visible; undefined where no processor needs it. */
function cacheMaintenance(ffi: Ffi, system: PosixFacts): Host["invalidateInstructions"] {
  const name = system.invalidateInstructions;
  if (ffi.arch === "x64" || name === undefined) return undefined;
  const { [name]: invalidate } = ffi.open(system.libc, { [name]: { params: ["i64", "i64"], result: "void" } });
  return (first, end) => void invalidate(BigInt(first), BigInt(end - first));
}

function handlerIn(sigaction: Uint8Array): number {
  return Number(new DataView(sigaction.buffer).getBigUint64(0, true));
}

/**
 * Creates the host interface of a runtime on a system with mmap and signals. `system` is the record of its operating
 * system; tests pass others.
 */
export function posixHost(ffi: Ffi, system: PosixFacts = posixSystem(ffi)): Host {
  const pageSize = ffi.arch === "x64" ? system.x64PageBytes : ffi.open(system.libc, PAGES).getpagesize() as number;
  return new PosixHost(ffi, system, pageSize);
}

class PosixHost extends PosixMemory implements Host {
  readonly invalidateInstructions: Host["invalidateInstructions"];
  #lookup: Record<keyof typeof DLSYM, ForeignFunction> | undefined;
  #threads: Record<keyof typeof THREADS, ForeignFunction> | undefined;
  #signalMask: Record<keyof typeof SIGNAL_MASK, ForeignFunction> | undefined;

  constructor(ffi: Ffi, system: PosixFacts, pageSize: number) {
    super(ffi, system, pageSize);
    this.invalidateInstructions = cacheMaintenance(ffi, system);
    if (ffi.name === "node") endProcessBy(this.calls.exitGroup);
  }

  protected override openEntry(): CodeEntry {
    if (this.system.entry !== "object") return super.openEntry();
    return objectEntry(this.ffi, this.#codeFiles);
  }

  get #codeFiles(): CodeFiles {
    return {
      create: (bytes) => this.createFile(bytes, "executable memory"),
      close: (file) => this.closeImage(file),
    };
  }

  openReferences(): NativeReferences | undefined {
    if (this.system.entry !== "object") return undefined;
    try {
      return REFERENCES.get().loadReferences(this.arch, this.#codeFiles, (names) => this.functionAddresses(names));
    } catch {
      return undefined; // the runtime lacks Node-API, or forbids addons or to read the module; or the system refuses
    }
  }

  /** On arm64 only where `invalidateInstructions` exists. */
  protected placeCode(text: Uint8Array): number {
    const bytes = Math.ceil(text.length / this.pageSize) * this.pageSize;
    const code = this.reserve(bytes, PROT.READ | PROT.WRITE);
    new Uint8Array(this.ffi.view(code, text.length)).set(text);
    const result = this.calls.mprotect(code, bytes, PROT.READ | PROT.EXEC);
    if (result !== 0) {
      this.release(code, bytes);
      throw new SystemError("Cannot create executable memory: the system does not allow it", "mprotect", -result);
    }
    this.invalidateInstructions?.(code, code + text.length);
    return code;
  }

  override runOnce(text: Uint8Array, pointer: number): void {
    // On other architectures, instruction fetch is not coherent with stores.
    if (this.ffi.call === undefined || this.arch !== "x64" || this.system.entry !== "object") {
      return super.runOnce(text, pointer);
    }
    const code = this.placeCode(text);
    this.ffi.call(code, pointer);
    this.release(code, Math.ceil(text.length / this.pageSize) * this.pageSize);
  }

  functionAddresses<Name extends string>(names: readonly Name[]): Record<Name, number> {
    const { dlsym } = this.#lookup ??= this.ffi.open(this.system.libc, DLSYM);
    const found = {} as Record<Name, number>;
    for (const name of names) {
      const at = Number(dlsym(BigInt(this.system.dlsymDefault), new TextEncoder().encode(`${name}\0`)));
      if (at === 0) throw new Error(`The C library of this ${this.system.title} lacks the function ${name}`);
      found[name] = at;
    }
    return found;
  }

  startThread(code: number, argument: number): void {
    this.#threadCalls.pthread_detach(this.#createThread(code, argument));
  }

  runWithFaults(code: number, argument: number): () => void {
    // A new thread has the mask of its creator.
    const old = new Uint8Array(SIGNAL_SET_BYTES);
    const { pthread_sigmask } = this.#signalMask ??= this.ffi.open(this.system.libc, SIGNAL_MASK);
    const { SIG_SETMASK, faultSignals } = this.system;
    const mask = new Uint8Array(SIGNAL_SET_BYTES).fill(255);
    for (const signal of faultSignals) mask[(signal - 1) >> 3] &= ~(1 << ((signal - 1) & 7));
    pthread_sigmask(SIG_SETMASK, mask, old);
    try {
      const id = this.#createThread(code, argument);
      return () => void this.#threadCalls.pthread_join(id, null);
    } finally {
      pthread_sigmask(SIG_SETMASK, old, new Uint8Array(SIGNAL_SET_BYTES));
    }
  }

  get #threadCalls(): Record<keyof typeof THREADS, ForeignFunction> {
    return this.#threads ??= this.ffi.open(this.system.libc, THREADS);
  }

  /** Returns the thread's id. */
  #createThread(code: number, argument: number): bigint {
    const id = new BigUint64Array(1);
    const errno = Number(this.#threadCalls.pthread_create(id, 0n, BigInt(code), BigInt(argument)));
    if (errno !== 0) {
      throw new SystemError("Cannot start a thread: the system refuses another one", "pthread_create", errno);
    }
    return id[0];
  }

  installSignalHandler(signal: number, handler: number, isTimer = false): number {
    const old = new Uint8Array(this.system.SIGACTION_SIZE);
    const result = this.calls.sigaction(signal, this.system.sigactionBytes(handler, isTimer), old);
    if (result !== 0) throw new SystemError(`Cannot install a handler for signal ${signal}`, "sigaction", -result);
    return handlerIn(old);
  }

  signalHandler(signal: number): number {
    const old = new Uint8Array(this.system.SIGACTION_SIZE);
    const result = this.calls.sigaction(signal, null, old);
    if (result !== 0) throw new SystemError(`Cannot read the handler of signal ${signal}`, "sigaction", -result);
    return handlerIn(old);
  }

  ensureSignalStack(): void {
    const old = new Uint8Array(24);
    this.#checkStack(this.calls.sigaltstack(null, old));
    if (!this.system.isSignalStackDisabled(old)) return;
    const stack = this.mapZeros(0, SIGNAL_STACK_BYTES, PROT.READ | PROT.WRITE, 0); // stays if the caller fails later
    const result = this.calls.sigaltstack(this.system.signalStackBytes(stack, SIGNAL_STACK_BYTES), null);
    if (result !== 0) this.release(stack, SIGNAL_STACK_BYTES);
    this.#checkStack(result);
  }

  processSecret(): Uint8Array {
    return this.#secret ??= this.#readSecret();
  }
  #secret: Uint8Array | undefined;

  #readSecret(): Uint8Array {
    const { libc, randomVariable } = this.system;
    if (randomVariable !== undefined) {
      const { name, bytes } = randomVariable;
      return new Uint8Array(this.ffi.view(this.functionAddresses([name])[name], bytes)).slice(0, bytes);
    }
    const address = Number(this.ffi.open(libc, AUXILIARY_VECTOR).getauxval(BigInt(AT_RANDOM)));
    return new Uint8Array(this.ffi.view(address, AT_RANDOM_BYTES)).slice();
  }

  #checkStack(result: number): void {
    if (result !== 0) throw new SystemError("Cannot set a stack for signal handlers", "sigaltstack", -result);
  }
}
