/**
 * The parts of a host that do not depend on the operating system. In: the FFI of a runtime (ffi.ts), the record of the
 * operating system (systems.ts), the size of a page in bytes. Out: the base class of hosts, which add memory, threads
 * and signals.
 */
import { bsearchEntry } from "./code/bsearch_entry.ts";
import type { CodeEntry } from "./code/code_entry.ts";
import type { Ffi, ForeignFunction, ForeignSignature } from "./runtimes/ffi.ts";
import { type Host, type NativeFunction, type NativeSymbol, PROT } from "./host.ts";
import type { LentViews } from "./memory/lent_views.ts";
import type { SystemFacts, SystemName } from "./systems/systems.ts";

const ADDRESSES = {
  memcpy: { params: ["buffer", "buffer", "i64"], result: "i64" },
} as const satisfies Record<string, ForeignSignature>;

/** A host without memory, threads and signals. */
export abstract class BaseHost<System extends SystemFacts> {
  readonly name: Host["name"];
  readonly os: SystemName;
  readonly system: System;
  readonly arch: Host["arch"];
  readonly pageSize: number;
  readonly maxViewBytes: number;
  protected readonly ffi: Ffi;
  #copying: Record<keyof typeof ADDRESSES, ForeignFunction> | undefined;
  #entry: CodeEntry | undefined;
  #lent: LentViews | undefined;
  /** Sizes of the ranges, by address, that `releasingOnError` releases on failure; undefined outside of it. */
  #reserved: Map<number, number> | undefined;

  constructor(ffi: Ffi, system: System, pageSize: number) {
    this.name = ffi.name;
    this.os = ffi.os;
    this.system = system;
    this.arch = ffi.arch;
    this.pageSize = pageSize;
    this.maxViewBytes = ffi.maxViewBytes;
    this.ffi = ffi;
  }

  abstract reserve(bytes: number, prot: number): number;

  /** Places code in executable pages of its own; returns its address. */
  protected abstract placeCode(text: Uint8Array): number;

  abstract release(address: number, bytes: number): void;

  /** Records a new range for `releasingOnError`; returns its address. */
  protected noteReserved(address: number, bytes: number): number {
    this.#reserved?.set(address, bytes);
    return address;
  }

  /** Forgets a range that has been released. */
  protected noteReleased(address: number): void {
    this.#reserved?.delete(address);
  }

  releasingOnError<T>(make: () => T): T {
    const outer = this.#reserved;
    const own = this.#reserved = new Map();
    try {
      const made = make();
      for (const [address, bytes] of own) outer?.set(address, bytes);
      return made;
    } catch (error) {
      for (const [address, bytes] of [...own]) this.release(address, bytes);
      throw error;
    } finally {
      this.#reserved = outer;
    }
  }

  /** Runs `make`, whose ranges stay reserved also if the caller of `releasingOnError` fails. */
  protected keepingRanges<T>(make: () => T): T {
    const outer = this.#reserved;
    this.#reserved = undefined;
    try {
      return make();
    } finally {
      this.#reserved = outer;
    }
  }

  /** Opens the way into machine code, at its first use. */
  protected openEntry(): CodeEntry {
    return bsearchEntry(this.ffi, this.system.libc, {
      allocate: this.#wordAllocator(),
      placeCode: (text) => this.placeCode(text),
      view: (at, bytes) => this.ffi.view(at, bytes),
    });
  }

  /** Allocates a few words at a time, from a page reserved at the first request and whenever the last one is full. */
  #wordAllocator(): (bytes: number) => number {
    let next = 0;
    let end = 0;
    return (bytes) => {
      if (next + bytes > end) {
        next = this.reserve(this.pageSize, PROT.READ | PROT.WRITE);
        end = next + this.pageSize;
      }
      next += bytes;
      return next - bytes;
    };
  }

  get lent(): LentViews {
    return this.#lent ??= this.keepingRanges(() => this.ffi.lentViews(this));
  }

  view(address: number, bytes: number): ArrayBuffer {
    if (bytes === 0) return new ArrayBuffer(0);
    if (bytes > this.maxViewBytes) {
      throw new RangeError(`A view of ${bytes} bytes is more than the ${this.maxViewBytes} that ${this.name} allows`);
    }
    return this.ffi.view(address, bytes);
  }

  /** Where the runtime reports no address, memcpy does: it returns its first argument. */
  addressOf(bytes: Uint8Array): number {
    const address = this.ffi.addressOf?.(bytes) ?? Number(this.#memcpy(bytes, bytes, 0n));
    if (address === 0) throw new RangeError(`${this.name} returns no address for an empty buffer`);
    return address;
  }

  get #memcpy(): ForeignFunction {
    return (this.#copying ??= this.ffi.open(this.system.libc, ADDRESSES)).memcpy;
  }

  nativeLibrary<Name extends string>(
    text: Uint8Array,
    symbols: Record<Name, NativeSymbol>,
  ): Record<Name, NativeFunction> {
    return this.keepingRanges(() => (this.#entry ??= this.openEntry()).nativeLibrary(text, symbols));
  }

  runOnce(text: Uint8Array, pointer: number): void {
    const { run } = this.nativeLibrary(text, { run: { offset: 0, params: ["i64"], result: "void" } });
    run(BigInt(pointer));
  }

  boundCalls<Name extends string>(
    text: Uint8Array,
    offsets: Readonly<Record<Name, number>>,
    pointer: number | Readonly<Record<Name, number>>,
  ): Record<Name, () => number> {
    return this.keepingRanges(() => (this.#entry ??= this.openEntry()).boundCalls(text, offsets, pointer));
  }
}
