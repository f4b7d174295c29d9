/**
 * Memory outside the JavaScript heap for arguments and results of system calls: two C strings for paths, a buffer for
 * the kernel's output, and a few separate words for waits, which may occur during a call that uses the buffer.
 */
import { type Host, PROT } from "../host/host.ts";
import { NativeRegion } from "../runtime/memory/native_region.ts";
import { ERRNO } from "./abi.ts";
import { WasiError } from "./wasi_error.ts";

const PATH_BYTES = 8192;
const OUT_BYTES = 65536;
const WAIT_BYTES = 64;

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export class Scratch {
  readonly #region: NativeRegion;
  /** The buffer for the kernel's output. */
  readonly out: NativeRegion;
  /** A timespec, a pollfd record and a vector (waits.ts). */
  readonly wait: NativeRegion;

  constructor(host: Host) {
    const base = host.reserve(2 * PATH_BYTES + OUT_BYTES + WAIT_BYTES, PROT.READ | PROT.WRITE);
    this.#region = new NativeRegion(host, base, 2 * PATH_BYTES);
    this.out = new NativeRegion(host, base + 2 * PATH_BYTES, OUT_BYTES);
    this.wait = new NativeRegion(host, base + 2 * PATH_BYTES + OUT_BYTES, WAIT_BYTES);
  }

  /** The bytes at an address of these buffers, at most `length`; undefined for other addresses. */
  bytesAt(address: number, length: number): Uint8Array | undefined {
    for (const { address: start, size, u8 } of [this.#region, this.out, this.wait]) {
      if (address >= start && address < start + size) return u8.subarray(address - start, address - start + length);
    }
    return undefined;
  }

  /** Writes a path as a C string and returns its address; `second` for the second path of a call. */
  path(text: string, second = false): number {
    const at = second ? PATH_BYTES : 0;
    const bytes = ENCODER.encode(text);
    if (bytes.length >= PATH_BYTES) throw new WasiError(ERRNO.nametoolong);
    this.#region.u8.set(bytes, at);
    this.#region.u8[at + bytes.length] = 0;
    return this.#region.address + at;
  }

  /** The first `length` bytes of `out` as text. */
  text(length: number): string {
    return decodeName(this.out.u8.subarray(0, length));
  }
}

/** Decodes a file name. Throws ilseq unless it is UTF-8. */
export function decodeName(bytes: Uint8Array): string {
  try {
    return DECODER.decode(bytes);
  } catch {
    throw new WasiError(ERRNO.ilseq);
  }
}
