/**
 * The FFI of a JavaScript runtime: opening a library with typed symbols, and viewing memory as an ArrayBuffer. It holds
 * the differences between Deno, Node and Bun; {@linkcode Host} is built on it (base_host.ts).
 */
import type { Host, NativeFunction, NativeType } from "../host.ts";
import type { LentViews } from "../memory/lent_views.ts";
import type { SystemFacts, SystemName } from "../systems/systems.ts";

/** Types of foreign functions: machine types, and `buffer` (the address of a typed array's first byte, or null). */
export type ForeignType = NativeType | "buffer";

/** The C type of one symbol. */
export interface ForeignSignature {
  readonly params: readonly ForeignType[];
  readonly result: NativeType;
}

/** A function of a system library; 64-bit integers are bigints in both directions. */
export type ForeignFunction = (...args: (number | bigint | Uint8Array | BigUint64Array | null)[]) => number | bigint;

/** The foreign function interface of one JavaScript runtime. */
export interface Ffi {
  readonly name: Host["name"];
  readonly os: SystemName;
  /** The facts about the operating system. */
  readonly system: SystemFacts;
  readonly arch: "x64" | "arm64";
  /** Maximum size of an ArrayBuffer in this runtime, in bytes. */
  readonly maxViewBytes: number;
  /** Opens the library at `path` with exactly typed symbols; the library stays open. Throws the runtime's errors. */
  open<Name extends string>(
    path: string,
    signatures: Readonly<Record<Name, ForeignSignature>>,
  ): Record<Name, ForeignFunction & NativeFunction>;
  /**
   * Calls machine code at an address with one pointer argument, slowly; absent where the runtime needs a library for
   * that.
   */
  call?(address: number, argument: number): void;
  /** Address of a buffer's first byte; absent where the runtime does not report it. */
  addressOf?(bytes: Uint8Array): number;
  /** A view of memory, not a copy; `bytes` is at least 1 and at most `maxViewBytes`. */
  view(address: number, bytes: number): ArrayBuffer;
  /** Creates the lender of memory to programs, given the other parts of the host. */
  lentViews(host: Pick<Host, "arch" | "system" | "nativeLibrary" | "pageSize" | "reserve">): LentViews;
}
