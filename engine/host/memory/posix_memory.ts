/**
 * Memory on systems with mmap: reservations, protection, and copy-on-write images, which are anonymous files. In:
 * the system calls. Out: the base class of hosts on such systems; {@linkcode Host} documents its methods.
 */
import { BaseHost } from "../base_host.ts";
import type { Ffi } from "../runtimes/ffi.ts";
import { PROT } from "../host.ts";
import { type SystemCalls, systemCalls } from "../calls/system_calls.ts";
import { SystemError } from "../calls/system_error.ts";
import type { PosixFacts } from "../systems/systems.ts";

const SEEK_END = 2;

/** A host with memory and system calls. */
export abstract class PosixMemory extends BaseHost<PosixFacts> {
  protected readonly calls: SystemCalls;

  constructor(ffi: Ffi, system: PosixFacts, pageSize: number) {
    super(ffi, system, pageSize);
    this.calls = systemCalls(ffi, (bytes) => this.addressOf(bytes));
  }

  reserve(bytes: number, prot: number): number {
    return this.noteReserved(this.mapZeros(0, bytes, prot, 0), bytes);
  }

  replace(address: number, bytes: number, prot: number): void {
    this.mapZeros(address, bytes, prot, this.system.MAP_FIXED);
  }

  /** Maps pages of zeros that the system does not count until they are written; returns their address. */
  protected mapZeros(address: number, bytes: number, prot: number, flags: number): number {
    const { MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE } = this.system;
    const at = this.calls.mmap(address, bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
    if (at < 0) throw new SystemError(`Out of address space: cannot map ${bytes} bytes`, "mmap", -at);
    return at;
  }

  protect(address: number, bytes: number, prot: number): void {
    const result = this.calls.mprotect(address, bytes, prot);
    if (result === 0) return;
    const purpose = prot === PROT.NONE ? "inaccessible" : (prot & PROT.EXEC) === 0 ? "accessible" : "executable";
    throw new SystemError(`Out of memory: cannot make ${bytes} bytes ${purpose}`, "mprotect", -result);
  }

  release(address: number, bytes: number): void {
    this.noteReleased(address);
    // Unmapping may split a mapping, and the system limits their number; dropping the pages always succeeds.
    const { MADV_ZERO } = this.system;
    if (this.calls.munmap(address, bytes) !== 0 && MADV_ZERO !== undefined) {
      this.calls.madvise(address, bytes, MADV_ZERO);
    }
  }

  discard(address: number, bytes: number, mapAgain?: () => void): void {
    const { MADV_ZERO } = this.system;
    if (MADV_ZERO === undefined) {
      this.replace(address, bytes, PROT.READ | PROT.WRITE);
      mapAgain?.();
    } else {
      const result = this.calls.madvise(address, bytes, MADV_ZERO);
      if (result !== 0) throw new SystemError(`Out of memory: cannot drop ${bytes} bytes`, "madvise", -result);
    }
  }

  createImage(bytes: Uint8Array): number {
    return this.createFile(bytes, "an image");
  }

  /** An anonymous file that contains `bytes`. Throws an Error that names its purpose. */
  protected createFile(bytes: Uint8Array, purpose: string): number {
    const { files } = this.calls;
    const { unnamedFileCall } = this.system;
    const fd = files.createUnnamed();
    if (fd < 0) throw new SystemError(`Cannot create a file for ${purpose}`, unnamedFileCall, -fd);
    try {
      this.#writeAll(fd, bytes);
    } catch (error) {
      files.close(fd);
      throw error;
    }
    return fd;
  }

  #writeAll(fd: number, bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const written = this.calls.files.write(fd, bytes.subarray(at));
      if (written <= 0) throw new SystemError("Cannot create an anonymous file: writing it failed", "write", -written);
      at += written;
    }
  }

  openImage(path: string): { image: number; bytes: number } {
    if (path.includes("\0")) throw new TypeError("A path cannot hold a zero byte");
    const { files } = this.calls;
    const fd = files.open(new TextEncoder().encode(`${path}\0`), this.system.OPEN_TO_READ);
    if (fd < 0) throw new SystemError(`Cannot open ${path}`, "open", -fd);
    const bytes = files.lseek(fd, 0, SEEK_END);
    if (bytes >= 0 && bytes <= Number.MAX_SAFE_INTEGER) return { image: fd, bytes };
    files.close(fd);
    throw new Error(`Cannot map ${path}: not a regular file`);
  }

  mapImage(address: number, bytes: number, image: number, offset = 0, prot: number = PROT.READ | PROT.WRITE): void {
    if ((prot & PROT.EXEC) !== 0 && !this.system.mapsCode) throw new RangeError("This system maps only signed code");
    const flags = this.system.MAP_PRIVATE | this.system.MAP_FIXED;
    const at = this.calls.mmap(address, bytes, prot, flags, image, offset);
    if (at !== address) {
      throw new SystemError(`Out of address space: cannot map ${bytes} bytes`, "mmap", Math.max(-at, 0));
    }
  }

  closeImage(image: number): void {
    this.calls.files.close(image);
  }

  preferLargePages(address: number, bytes: number): void {
    const { MADV_HUGEPAGE } = this.system;
    if (MADV_HUGEPAGE !== undefined) this.calls.madvise(address, bytes, MADV_HUGEPAGE);
  }
}
