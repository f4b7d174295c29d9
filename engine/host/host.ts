/**
 * The engine's interface to the JavaScript runtime: memory from the operating system, views of it, and calls into
 * machine code. Only this folder knows Deno, Node and Bun; the rest of the engine uses a {@linkcode Host}.
 *
 * Invariant: addresses are exact as JavaScript numbers, because user space ends below 2^47.
 */

import type { NativeReferences } from "./finalizers.ts";
import type { LentViews } from "./memory/lent_views.ts";
import type { SystemFacts, SystemName } from "./systems/systems.ts";

/** Memory protection bits of mmap and mprotect. */
export const PROT = { NONE: 0, READ: 1, WRITE: 2, EXEC: 4 } as const;

/** Machine types in the C signature of a native function. */
export type NativeType = "i32" | "i64" | "f32" | "f64" | "void";

/** A native function: 64-bit integers are bigints. */
export type NativeFunction = (...args: (number | bigint)[]) => number | bigint | undefined;

/** One symbol of a library made from machine code. */
export interface NativeSymbol {
  /** Offset of the code in the library's text. */
  offset: number;
  params: readonly NativeType[];
  result: NativeType;
}

export interface Host {
  readonly name: "deno" | "node" | "bun";
  readonly os: SystemName;
  /** The facts about the operating system. */
  readonly system: SystemFacts;
  readonly arch: "x64" | "arm64";
  readonly pageSize: number;
  /** Maximum size of an ArrayBuffer or SharedArrayBuffer, in bytes. */
  readonly maxViewBytes: number;

  /**
   * Reserves `bytes` of lazily committed address space with protection `prot`; returns its address. Throws RangeError
   * when address space is exhausted. `forImage`: `mapImage` will map an image to its start.
   */
  reserve(bytes: number, prot: number, forImage?: boolean): number;
  /** Changes the protection of a range. Throws RangeError when the system refuses (out of memory). */
  protect(address: number, bytes: number, prot: number): void;
  /** Replaces a range by fresh zero pages with protection `prot`, which frees its memory. */
  replace(address: number, bytes: number, prot: number): void;
  /** Unmaps a range. Where the system refuses, the range stays reserved and its memory is freed. */
  release(address: number, bytes: number): void;
  /** Runs `make`. If it throws, releases the ranges that it has reserved and not released. */
  releasingOnError<T>(make: () => T): T;
  /**
   * Discards the pages of a readable and writable range: the contents revert to zeros, or to those of the mapped image.
   * Where the system cannot revert pages of an image, the range becomes zeros and `mapAgain` must map the image.
   */
  discard(address: number, bytes: number, mapAgain?: () => void): void;
  /** Creates an in-memory file of `bytes` (whole pages) for `mapImage`. Throws an Error where the system has none. */
  createImage(bytes: Uint8Array): number;
  /** Opens a file as an image; returns it with its size in bytes. Throws an Error when the system refuses. */
  openImage(path: string): { image: number; bytes: number };
  /**
   * Maps `bytes` of an image, starting at `offset` (whole pages), copy-on-write to `address`, in place of the mapping
   * there. Some systems map only to the start of a reservation that was made for an image. `prot` defaults to READ |
   * WRITE. Throws RangeError when the system refuses, as for code where it must be signed; the mapping there is then
   * unchanged.
   */
  mapImage(address: number, bytes: number, image: number, offset?: number, prot?: number): void;
  /** Closes an image; its mappings remain. */
  closeImage(image: number): void;
  /** Requests large pages for a range that has not been written to yet; no effect where the system has none. */
  preferLargePages(address: number, bytes: number): void;
  /** A view of memory, not a copy. It must not outlive the range, so programs never receive it. */
  view(address: number, bytes: number): ArrayBuffer;
  /** Lends ArrayBuffers to programs. */
  readonly lent: LentViews;

  /** Opens the runtime's native weak references; undefined where there are none. */
  openReferences(): NativeReferences | undefined;

  /** Address of the first byte of a typed array on a SharedArrayBuffer, whose storage does not move. */
  addressOf(bytes: Uint8Array): number;

  /** Loads `text`, position-independent machine code; returns one function per symbol. */
  nativeLibrary<Name extends string>(
    text: Uint8Array,
    symbols: Record<Name, NativeSymbol>,
  ): Record<Name, NativeFunction>;
  /** Runs `text`, a position-independent function of one pointer, once; avoids opening a library where possible. */
  runOnce(text: Uint8Array, pointer: number): void;
  /**
   * Binds the functions at `offsets` to the constant `pointer`, their only parameter, or to one each. The results are
   * i32. `call` and `resume` have this shape, the fastest way into machine code.
   */
  boundCalls<Name extends string>(
    text: Uint8Array,
    offsets: Readonly<Record<Name, number>>,
    pointer: number | Readonly<Record<Name, number>>,
  ): Record<Name, () => number>;

  /** Addresses of functions of the system's libraries. Throws an Error for one that it lacks. */
  functionAddresses<Name extends string>(names: readonly Name[]): Record<Name, number>;
  /**
   * Makes stores to [first, end) visible to instruction fetch on all processors; undefined where the backend's machine
   * code does it, or where no processor needs it.
   */
  readonly invalidateInstructions: ((first: number, end: number) => void) | undefined;

  /**
   * Starts a detached thread that runs the machine code at `code` with `argument`. Throws an Error when the system
   * refuses.
   */
  startThread(code: number, argument: number): void;
  /**
   * Starts a thread that runs the machine code at `code`, which follows System V on x64 and may fault, with `argument`.
   * The result waits until the code returns. The thread blocks all signals but those of faults, whose handlers are
   * those of the process. It has no signal stack: handlers run on the stack of the code. Throws an Error when the
   * system refuses.
   */
  runWithFaults(code: number, argument: number): () => void;
  /**
   * Installs `handler` (an address) for `signal` with SA_SIGINFO, SA_ONSTACK and SA_NODEFER; returns the previous
   * handler's address. `isTimer`: the signal comes at any time, so SA_RESTART takes the place of SA_NODEFER. On
   * Windows, `handler` precedes the others as a vectored exception handler, and the result is 0.
   */
  installSignalHandler(signal: number, handler: number, isTimer?: boolean): number;
  /** Address of the current handler of `signal` (0: default, 1: ignore). */
  signalHandler(signal: number): number;
  /** Ensures that the calling thread has an alternate signal stack. */
  ensureSignalStack(): void;

  /**
   * Random bytes of this process: the same in every realm, and unknown to programs that cannot make native calls.
   */
  processSecret(): Uint8Array;
}
