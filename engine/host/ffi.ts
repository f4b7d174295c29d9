/**
 * What differs between Deno, Node and Bun: how a library is opened with typed symbols, and how memory becomes an ArrayBuffer. Everything else
 * that a {@linkcode Host} does is made of these two (native_host.ts).
 */
import type { Host, NativeFunction, NativeType } from "./host.ts";
import type { LentViews } from "./lent_views.ts";

/** Types of foreign functions: machine types, and `buffer` (the address of a typed array's first byte, or null). */
export type ForeignType = NativeType | "buffer";

/** The C type of one symbol. */
export interface ForeignSignature {
  readonly params: readonly ForeignType[];
  readonly result: NativeType;
}

/** A function of a library of the system: 64-bit integers are bigints in both directions. */
export type ForeignFunction = (...args: (number | bigint | Uint8Array | BigUint64Array | null)[]) => number | bigint;

/** The foreign function interface of one JavaScript runtime. */
export interface Ffi {
  readonly name: "deno" | "node" | "bun";
  readonly os: "linux" | "darwin";
  readonly arch: "x64" | "arm64";
  /** The most bytes that one ArrayBuffer of this runtime can have. */
  readonly maxViewBytes: number;
  /** Opens the library at `path`, which stays open, with exactly typed symbols. Throws what the runtime throws. */
  open<Name extends string>(
    path: string,
    signatures: Readonly<Record<Name, ForeignSignature>>,
  ): Record<Name, ForeignFunction & NativeFunction>;
  /** Calls machine code at an address with one pointer, slowly, where the runtime can do so without a library. */
  call?(address: number, argument: number): void;
  /** Address of the first byte of a buffer, where the runtime says it. */
  addressOf?(bytes: Uint8Array): number;
  /** A view of memory, not a copy; `bytes` is at least 1 and at most `maxViewBytes`. */
  view(address: number, bytes: number): ArrayBuffer;
  /** Makes what lends memory to programs, on a host whose other parts are there. */
  lentViews(host: Pick<Host, "arch" | "nativeLibrary" | "pageSize" | "reserve">): LentViews;
}

/** The operating system by the name that the runtime gives it. Throws an Error where waft does not run. */
export function supportedSystem(name: string): "linux" | "darwin" {
  if (name === "linux" || name === "darwin") return name;
  throw new Error(`waft runs on Linux and macOS, not on ${name}`);
}
