/**
 * WASI's access to the guest's memory. Every access is checked against the current size of the memory (WASI's fault
 * otherwise), and system calls receive addresses in it, so that data is not copied.
 */
import type { Memory } from "../runtime/memory/memory.ts";
import { ERRNO } from "./abi.ts";
import { WasiError } from "./wasi_error.ts";

const DECODER = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The longest text, in bytes: no path or link of any system is longer. */
const MAX_TEXT_BYTES = 8191;

export class GuestMemory {
  #memory: Memory | undefined;
  /** The storage behind the view: the runtime's own bytes, or the buffer of a shared memory. */
  #source: Uint8Array | SharedArrayBuffer | undefined;
  #view: DataView = new DataView(new ArrayBuffer(0));

  /** Sets the memory: the guest's exported one. */
  attach(memory: Memory): void {
    this.#memory = memory;
  }

  #current(): DataView {
    const memory = this.#memory;
    if (memory === undefined) throw new WasiError(ERRNO.fault);
    const source = memory.shared?.buffer ?? memory.bytes;
    if (source !== this.#source) {
      this.#source = source;
      this.#view = source instanceof Uint8Array
        ? new DataView(source.buffer, source.byteOffset, source.length)
        : new DataView(source);
    }
    return this.#view;
  }

  /** Returns the view after a bounds check of `bytes` bytes at `at`. */
  #range(at: number, bytes: number): DataView {
    const view = this.#current();
    if (at + bytes > view.byteLength) throw new WasiError(ERRNO.fault);
    return view;
  }

  /** The same for bytes that WASI may write. */
  #writable(at: number, bytes: number): DataView {
    const view = this.#range(at, bytes);
    this.#memory!.watcher?.touching(at, bytes);
    return view;
  }

  /** The address of `bytes` bytes at `at`, for a system call. */
  address(at: number, bytes: number): number {
    this.#writable(at, bytes);
    return this.#memory!.base + at;
  }

  /** The bytes at an address that `address` has returned. */
  bytesAt(address: number, length: number): Uint8Array<ArrayBuffer> {
    return this.bytes(address - (this.#memory?.base ?? 0), length);
  }

  bytes(at: number, length: number): Uint8Array<ArrayBuffer> {
    const view = this.#writable(at, length);
    return new Uint8Array(view.buffer as ArrayBuffer, view.byteOffset + at, length);
  }

  /** A path of the guest, or the contents of a link. Throws ilseq unless it is UTF-8. */
  text(at: number, length: number): string {
    const bytes = this.bytes(at, length);
    if (length > MAX_TEXT_BYTES) throw new WasiError(ERRNO.nametoolong); // decoding it would take long
    try {
      // Some decoders reject bytes that may change during decoding.
      return DECODER.decode((bytes.buffer as object) instanceof SharedArrayBuffer ? bytes.slice() : bytes);
    } catch {
      throw new WasiError(ERRNO.ilseq);
    }
  }

  u8(at: number): number {
    return this.#range(at, 1).getUint8(at);
  }
  u16(at: number): number {
    return this.#range(at, 2).getUint16(at, true);
  }
  u32(at: number): number {
    return this.#range(at, 4).getUint32(at, true);
  }
  u64(at: number): bigint {
    return this.#range(at, 8).getBigUint64(at, true);
  }
  setU8(at: number, value: number): void {
    this.#writable(at, 1).setUint8(at, value);
  }
  setU16(at: number, value: number): void {
    this.#writable(at, 2).setUint16(at, value, true);
  }
  setU32(at: number, value: number): void {
    this.#writable(at, 4).setUint32(at, value, true);
  }
  setU64(at: number, value: bigint | number): void {
    this.#writable(at, 8).setBigUint64(at, BigInt(value), true);
  }
}
