/**
 * An FFI whose calls of the system fail on request. In: the FFI of a JavaScript runtime on Linux and a decision per
 * call. Out: an FFI with the same functions, in which a refused call returns as the system's would, with an error
 * number, and a ledger of the ranges, descriptors and threads that the calls have taken and not given back.
 *
 * Invariant: a refused call does not reach the system, and no call of the JavaScript runtime itself is refused.
 */
import type { Ffi, ForeignFunction } from "../../engine/host/runtimes/ffi.ts";
import { PROT } from "../../engine/host/host.ts";
import { callNumber, type LinuxCall } from "../../engine/host/calls/linux_calls.ts";
import { SYSTEMS } from "../../engine/host/systems/systems.ts";

/** System calls that may be refused, with the error number of the refusal. */
const REFUSALS: Readonly<Partial<Record<LinuxCall, number>>> = {
  mmap: 12, // ENOMEM
  mprotect: 12,
  munmap: 12,
  madvise: 12,
  sigaltstack: 12,
  memfd_create: 24, // EMFILE
  write: 28, // ENOSPC
  openat: 24,
  lseek: 75, // EOVERFLOW
};
/** Functions of the C library that may be refused: those with a result in errno, and those that return the number. */
const REFUSED_FUNCTIONS: Readonly<Record<string, { readonly errno: number; readonly returned: boolean }>> = {
  sigaction: { errno: 22, returned: false }, // EINVAL
  pthread_create: { errno: 11, returned: true }, // EAGAIN
};

/** The text in the error of a library that was not opened. */
export const NOT_OPENED = "refused for a test";

/** The error numbers of refusals. */
export const REFUSED_ERRNOS: ReadonlySet<number> = new Set([
  ...Object.values(REFUSALS),
  ...Object.values(REFUSED_FUNCTIONS).map(({ errno }) => errno),
]);

/** The FFI. */
export class FaultyFfi implements Ffi {
  readonly name: Ffi["name"];
  readonly os: Ffi["os"];
  readonly system: Ffi["system"];
  readonly arch: Ffi["arch"];
  readonly maxViewBytes: number;
  /** Decides whether the next call, by its name, is refused. */
  refuses: (call: string) => boolean = () => false;
  /** Ranges by address, with their sizes in bytes. */
  readonly ranges = new Map<number, number>();
  readonly descriptors = new Set<number>();
  threads = 0;
  readonly #ffi: Ffi;
  readonly #errno: Int32Array;
  /** Starts of ranges that have been made executable. */
  readonly #executable = new Set<number>();
  /** Signal handlers that calls of sigaction have returned. */
  readonly #handlers = new Set<bigint>();
  readonly #numbers: ReadonlyMap<number, LinuxCall>;

  constructor(ffi: Ffi) {
    this.#ffi = ffi;
    this.name = ffi.name;
    this.os = ffi.os;
    this.system = ffi.system;
    this.arch = ffi.arch;
    this.maxViewBytes = ffi.maxViewBytes;
    const { __errno_location: locate } = ffi.open(SYSTEMS.linux.libc, {
      __errno_location: { params: [], result: "i64" },
    });
    this.#errno = new Int32Array(ffi.view(Number(locate()), 4));
    const names: LinuxCall[] = [...Object.keys(REFUSALS) as LinuxCall[], "close"];
    this.#numbers = new Map(names.map((name) => [callNumber(name, ffi.arch), name]));
  }

  /** The ledger as text. */
  get taken(): string {
    let bytes = 0;
    for (const size of this.ranges.values()) bytes += size;
    return `${this.ranges.size} ranges of ${bytes} bytes, ${this.descriptors.size} descriptors, ${this.threads} threads`;
  }

  get call(): Ffi["call"] {
    return this.#ffi.call;
  }

  get addressOf(): Ffi["addressOf"] {
    return this.#ffi.addressOf;
  }

  view(address: number, bytes: number): ArrayBuffer {
    return this.#ffi.view(address, bytes);
  }

  lentViews(host: Parameters<Ffi["lentViews"]>[0]): ReturnType<Ffi["lentViews"]> {
    return this.#ffi.lentViews(host);
  }

  open<Name extends string>(path: string, signatures: Parameters<Ffi["open"]>[1]): ReturnType<Ffi["open"]> {
    // Without errno, no error could be checked.
    if (!(SYSTEMS.linux.errnoFunction in signatures) && this.refuses("dlopen")) throw new Error(NOT_OPENED);
    const functions: Record<string, ForeignFunction> = this.#ffi.open(path, signatures);
    if (path !== SYSTEMS.linux.libc) return functions as ReturnType<typeof this.open<Name>>;
    return Object.fromEntries(
      Object.entries(functions).map(([name, call]) => [name, this.#guarded(name, call)]),
    ) as ReturnType<typeof this.open<Name>>;
  }

  #guarded(name: string, call: ForeignFunction): ForeignFunction {
    if (name === "syscall") return (...args) => this.#systemCall(call, args);
    const refusal = REFUSED_FUNCTIONS[name];
    if (refusal === undefined) return call;
    return (...args) => {
      const earlier = name === "sigaction" && this.#isEarlier(args);
      if (this.refuses(earlier ? "sigaction of an earlier handler" : name)) {
        return this.#refuse(refusal.errno, refusal.returned ? refusal.errno : -1);
      }
      if (name === "pthread_create") this.threads++;
      const result = call(...args);
      const old = name === "sigaction" && !earlier ? this.#handlerAt(args[2]) : undefined;
      if (old !== undefined) this.#handlers.add(old);
      return result;
    };
  }

  /** Whether a call of sigaction installs a handler that was there before the engine's: it gives the engine's back. */
  #isEarlier(args: Parameters<ForeignFunction>): boolean {
    const handler = this.#handlerAt(args[1]);
    return handler !== undefined && this.#handlers.has(handler);
  }

  /** The handler in an action, which is given by its address; undefined for none. */
  #handlerAt(action: Parameters<ForeignFunction>[number]): bigint | undefined {
    const address = Number(action);
    return address === 0 ? undefined : new DataView(this.#ffi.view(address, 8)).getBigUint64(0, true);
  }

  #systemCall(call: ForeignFunction, args: Parameters<ForeignFunction>): number | bigint {
    const name = this.#numbers.get(Number(args[0]));
    const errno = name === undefined ? undefined : REFUSALS[name];
    const refused = errno !== undefined && !this.#restores(name!, args) && this.refuses(this.#purpose(name!, args));
    const result = refused ? this.#refuse(errno, -1n) : call(...args);
    this.#note(name, args.map(Number), Number(result), refused);
    return result;
  }

  /**
   * Whether the call makes code executable again that has been: the system merges it with its neighbours, which needs
   * nothing, and the engine relies on it.
   */
  #restores(name: LinuxCall, args: Parameters<ForeignFunction>): boolean {
    if (name !== "mprotect" || (Number(args[3]) & PROT.EXEC) === 0) return false;
    return this.#executable.has(Number(args[1]));
  }

  /** The name of a call; one that makes pages inaccessible gives something back. */
  #purpose(name: LinuxCall, args: Parameters<ForeignFunction>): string {
    const isFixed = (Number(args[4]) & SYSTEMS.linux.MAP_FIXED) !== 0;
    const isRevocation = Number(args[3]) === PROT.NONE && (name === "mprotect" || (name === "mmap" && isFixed));
    return isRevocation ? `${name} of nothing` : name;
  }

  #refuse<T>(errno: number, result: T): T {
    this.#errno[0] = errno;
    return result;
  }

  #note(name: LinuxCall | undefined, args: readonly number[], result: number, refused: boolean): void {
    const isFixed = (args[4] & SYSTEMS.linux.MAP_FIXED) !== 0;
    if (name === "munmap") this.ranges.delete(args[1]); // a refused one leaves its range, which is not a leak
    else if (name === "close") this.descriptors.delete(args[1]);
    else if (refused || result < 0) return;
    else if (name === "mprotect" && (args[3] & PROT.EXEC) !== 0) this.#executable.add(args[1]);
    else if (name === "mmap" && isFixed) this.#executable.delete(args[1]);
    else if (name === "mmap") this.ranges.set(result, args[2]);
    else if (name === "memfd_create" || name === "openat") this.descriptors.add(result);
  }
}
