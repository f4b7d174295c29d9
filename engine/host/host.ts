/**
 * What the engine needs of the JavaScript runtime it runs in: memory from the operating system, views of it, a way to enter
 * machine code. Only this folder knows Deno, Node or Bun; everything else talks to a {@linkcode Host}.
 *
 * Addresses are JavaScript numbers: user space lies below 2^47, so they are exact.
 */

import type { LentViews } from "./lent_views.ts";

/** Memory protection, as mmap and mprotect take it. */
export const PROT = { NONE: 0, READ: 1, WRITE: 2, EXEC: 4 } as const;

/** Machine types of native functions: what the C ABI of a symbol says. */
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
  readonly os: "linux" | "darwin";
  readonly arch: "x64" | "arm64";
  readonly pageSize: number;
  /** The most bytes that one ArrayBuffer or SharedArrayBuffer can have. */
  readonly maxViewBytes: number;

  /** Reserves `bytes` of address space with `prot`; lazily committed. Throws RangeError when there is none. */
  reserve(bytes: number, prot: number): number;
  /** Changes the protection of a range. Throws RangeError when the system refuses (out of memory). */
  protect(address: number, bytes: number, prot: number): void;
  /** Replaces a range by fresh zero pages with `prot`, giving its memory back. */
  replace(address: number, bytes: number, prot: number): void;
  /** Gives a range back. */
  release(address: number, bytes: number): void;
  /** Discards the pages of a range, which keeps its protection: they return to their initial contents (zeros, or an image's). */
  discard(address: number, bytes: number): void;
  /** Makes a file in memory of `bytes` (whole pages), for `mapImage`. Throws an Error where there is no such thing. */
  createImage(bytes: Uint8Array): number;
  /** Opens a file as an image, and says how long it is. Throws an Error when the system refuses. */
  openImage(path: string): { image: number; bytes: number };
  /**
   * Maps `bytes` of an image, from `offset` (whole pages) on, to `address`, replacing the mapping there, copy-on-write. With `prot`,
   * which is READ | WRITE when it is left out. Throws RangeError when the system refuses.
   */
  mapImage(address: number, bytes: number, image: number, offset?: number, prot?: number): void;
  /** Forgets an image; where it is mapped it stays. */
  closeImage(image: number): void;
  /** Asks for large pages in a range that has not been written to yet; where there are none, nothing happens. */
  preferLargePages(address: number, bytes: number): void;
  /** A view of memory, not a copy; it must not outlive the range, so it is not for programs. */
  view(address: number, bytes: number): ArrayBuffer;
  /** ArrayBuffers for programs. */
  readonly lent: LentViews;

  /** Address of the first byte of a typed array over a buffer that does not move: a SharedArrayBuffer. */
  addressOf(bytes: Uint8Array): number;

  /** Makes `text` (position-independent machine code) callable: one function per symbol. */
  nativeLibrary<Name extends string>(
    text: Uint8Array,
    symbols: Record<Name, NativeSymbol>,
  ): Record<Name, NativeFunction>;
  /** Runs `text` (a function of one pointer, position-independent), which is not needed again: no library is opened where that can be avoided. */
  runOnce(text: Uint8Array, pointer: number): void;
  /**
   * Functions at `offsets` bound to one pointer argument that never changes, which is their only parameter; they return an i32: the shape of `call`
   * and `resume`, and the fastest way in.
   */
  boundCalls<Name extends string>(
    text: Uint8Array,
    offsets: Readonly<Record<Name, number>>,
    pointer: number,
  ): Record<Name, () => number>;

  /** Starts a detached thread that runs the machine code at `code` with `argument`. Throws an Error when the system refuses. */
  startThread(code: number, argument: number): void;
  /** Installs `handler` (address) for `signal` with SA_SIGINFO, SA_ONSTACK and SA_NODEFER; returns the one that it replaces. */
  installSignalHandler(signal: number, handler: number): number;
  /** Address of the handler that is installed for `signal` now (0 default, 1 ignore). */
  signalHandler(signal: number): number;
  /** Makes sure that the calling thread has an alternate signal stack. */
  ensureSignalStack(): void;
}
