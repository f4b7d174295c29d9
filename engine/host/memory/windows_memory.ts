/**
 * Memory on Windows: reservations, commitment, protection, and copy-on-write images. In: the FFI of a runtime. Out: the
 * base class of the host on Windows; {@linkcode Host} documents its methods.
 *
 * Windows charges committed pages whether they are used or not. Large accessible reservations are therefore committed
 * on access, by an exception handler (windows_code.ts); `protect` commits its range at once. An image is a section of
 * the paging file, and a reservation for an image is a placeholder, which a view of the section replaces: views start
 * at multiples of 64 KiB.
 *
 * Sources: "VirtualAlloc2 function", "MapViewOfFile3 function" and "VirtualFree function" of Microsoft's documentation.
 */
import { BaseHost } from "../base_host.ts";
import type { Ffi, ForeignFunction, ForeignSignature } from "../runtimes/ffi.ts";
import { PROT } from "../host.ts";
import type { SystemFacts } from "../systems/systems.ts";
import { COMMITTED_ON_ACCESS } from "../code/windows_code.ts";

const KERNEL32 = {
  VirtualAlloc: { params: ["i64", "i64", "i32", "i32"], result: "i64" },
  VirtualProtect: { params: ["i64", "i64", "i32", "buffer"], result: "i32" },
  VirtualFree: { params: ["i64", "i64", "i32"], result: "i32" },
} as const satisfies Record<string, ForeignSignature>;

const SECTIONS = {
  CreateFileMappingW: { params: ["i64", "i64", "i32", "i32", "i32", "i64"], result: "i64" },
  MapViewOfFile: { params: ["i64", "i32", "i32", "i32", "i64"], result: "i64" },
  UnmapViewOfFile: { params: ["i64"], result: "i32" },
  CloseHandle: { params: ["i64"], result: "i32" },
} as const satisfies Record<string, ForeignSignature>;

/** Functions since Windows 10, version 1803. */
const PLACEHOLDERS = {
  VirtualAlloc2: { params: ["i64", "i64", "i64", "i32", "i32", "i64", "i32"], result: "i64" },
  MapViewOfFile3: { params: ["i64", "i64", "i64", "i64", "i64", "i32", "i32", "i64", "i32"], result: "i64" },
  UnmapViewOfFile2: { params: ["i64", "i64", "i32"], result: "i32" },
} as const satisfies Record<string, ForeignSignature>;

const MEM = {
  COMMIT: 0x1000,
  RESERVE: 0x2000,
  DECOMMIT: 0x4000,
  RELEASE: 0x8000,
  PRESERVE_PLACEHOLDER: 0x2,
  REPLACE_PLACEHOLDER: 0x4000,
  RESERVE_PLACEHOLDER: 0x40000,
} as const;
const PAGE = { NOACCESS: 1, READONLY: 2, READWRITE: 4, WRITECOPY: 8, EXECUTE: 0x10, EXECUTE_READ: 0x20 } as const;
const FILE_MAP_WRITE = 2;

/** The paging file, as the file of a section. */
const INVALID_HANDLE = -1n;
/** The pseudo-handle of this process. */
const THIS_PROCESS = -1n;

const PAGE_BYTES = 4096;
/** Reservations and views start at multiples of this. */
const GRANULARITY = 1 << 16;
/** Larger accessible reservations are committed on access. */
const COMMIT_AT_ONCE = 1 << 20;
const READ_WRITE = PROT.READ | PROT.WRITE;

/** A reservation for an image: its size, the size of the part that is a view, and whether that part is mapped. */
interface ImageRange {
  readonly bytes: number;
  view: number;
  isMapped: boolean;
}

function roundUp(bytes: number, unit: number): number {
  return Math.ceil(bytes / unit) * unit;
}

/** PAGE_* by the bits of PROT. Memory is never writable and executable at once. */
function pageProtection(prot: number): number {
  if ((prot & PROT.EXEC) !== 0) {
    if ((prot & PROT.WRITE) !== 0) throw new RangeError("Memory cannot be writable and executable at once");
    return (prot & PROT.READ) !== 0 ? PAGE.EXECUTE_READ : PAGE.EXECUTE;
  }
  if ((prot & PROT.WRITE) !== 0) return PAGE.READWRITE;
  return (prot & PROT.READ) !== 0 ? PAGE.READONLY : PAGE.NOACCESS;
}

/** The protection of a reservation: a mark for the exception handler if it is committed on access. */
function reservedProtection(prot: number): number {
  if (prot === READ_WRITE) return COMMITTED_ON_ACCESS.READ_WRITE;
  return prot === PROT.READ ? COMMITTED_ON_ACCESS.READ_ONLY : PAGE.NOACCESS;
}

/** Throws where the system has returned no address. */
function found(address: number, bytes: number): number {
  if (address === 0) throw new RangeError(`Out of address space: cannot map ${bytes} bytes`);
  return address;
}

type Functions<Table> = Record<keyof Table, ForeignFunction>;

/** A host with memory. */
export abstract class WindowsMemory extends BaseHost<SystemFacts> {
  readonly #kernel: Functions<typeof KERNEL32>;
  #openSections: Functions<typeof SECTIONS> | undefined;
  #openPlaceholders: Functions<typeof PLACEHOLDERS> | undefined;
  readonly #oldProtection = new Uint8Array(4);
  /** Reservations that are committed on access: [start, end). */
  readonly #onAccess: (readonly [start: number, end: number])[] = [];
  /** Reservations for images, by address. */
  readonly #images = new Map<number, ImageRange>();

  constructor(ffi: Ffi) {
    super(ffi, ffi.system, PAGE_BYTES);
    this.#kernel = ffi.open("kernel32.dll", KERNEL32);
  }

  get #sections(): Functions<typeof SECTIONS> {
    return this.#openSections ??= this.ffi.open("kernel32.dll", SECTIONS);
  }

  get #placeholders(): Functions<typeof PLACEHOLDERS> {
    return this.#openPlaceholders ??= this.ffi.open("kernelbase.dll", PLACEHOLDERS);
  }

  #allocate(address: number, bytes: number, kind: number, protection: number): number {
    return Number(this.#kernel.VirtualAlloc(BigInt(address), BigInt(bytes), kind, protection));
  }

  #free(address: number, bytes: number, kind: number): void {
    this.#kernel.VirtualFree(BigInt(address), BigInt(bytes), kind);
  }

  reserve(bytes: number, prot: number, forImage = false): number {
    return this.noteReserved(forImage ? this.#reservePlaceholder(bytes) : this.#reservePages(bytes, prot), bytes);
  }

  #reservePages(bytes: number, prot: number): number {
    if (prot !== PROT.NONE && bytes <= COMMIT_AT_ONCE) {
      return found(this.#allocate(0, bytes, MEM.RESERVE | MEM.COMMIT, pageProtection(prot)), bytes);
    }
    const address = found(this.#allocate(0, bytes, MEM.RESERVE, reservedProtection(prot)), bytes);
    if (prot !== PROT.NONE) this.#onAccess.push([address, address + bytes]);
    return address;
  }

  #reservePlaceholder(bytes: number): number {
    const size = roundUp(bytes, GRANULARITY);
    const address = found(this.#placeAt(0, size, MEM.RESERVE | MEM.RESERVE_PLACEHOLDER, PAGE.NOACCESS), bytes);
    this.#images.set(address, { bytes: size, view: 0, isMapped: false });
    return address;
  }

  /** VirtualAlloc2 in this process. */
  #placeAt(address: number, bytes: number, kind: number, protection: number): number {
    const { VirtualAlloc2 } = this.#placeholders;
    return Number(VirtualAlloc2(THIS_PROCESS, BigInt(address), BigInt(bytes), kind, protection, 0n, 0));
  }

  protect(address: number, bytes: number, prot: number): void {
    const mapped = this.#images.get(address);
    const skipped = mapped?.isMapped === true ? Math.min(mapped.view, bytes) : 0;
    if (skipped > 0 && prot !== READ_WRITE) throw new RangeError("Pages of an image are readable and writable");
    if (skipped === bytes || this.#commit(address + skipped, bytes - skipped, prot)) return;
    if (this.#commitBehindView(address, bytes)) return;
    throw new RangeError(`Out of memory: cannot make ${bytes} bytes accessible`);
  }

  /** Commits pages, which keep their contents if they are committed already, and sets their protection. */
  #commit(address: number, bytes: number, prot: number): boolean {
    const protection = pageProtection(prot);
    if (this.#allocate(address, bytes, MEM.COMMIT, protection) === 0) return false;
    return this.#kernel.VirtualProtect(BigInt(address), BigInt(bytes), protection, this.#oldProtection) !== 0;
  }

  /** Commits a range that begins inside of a view; false if it does not. */
  #commitBehindView(address: number, bytes: number): boolean {
    for (const [start, { view, isMapped }] of this.#images) {
      const end = start + view;
      if (!isMapped || address <= start || address >= end) continue;
      return address + bytes <= end || this.#commit(end, address + bytes - end, READ_WRITE);
    }
    return false;
  }

  replace(address: number, bytes: number, prot: number): void {
    const mapped = this.#images.get(address);
    if (mapped?.isMapped === true) return this.#replaceView(address, mapped, bytes);
    this.#free(address, bytes, MEM.DECOMMIT);
    if (prot === PROT.NONE) return;
    const isOnAccess = this.#onAccess.some(([start, end]) => start <= address && address < end);
    if (!(isOnAccess && prot === READ_WRITE)) this.protect(address, bytes, prot);
  }

  /** Replaces the view by zero pages, and the pages behind it. */
  #replaceView(address: number, range: ImageRange, bytes: number): void {
    this.#unmap(address, MEM.PRESERVE_PLACEHOLDER);
    range.isMapped = false;
    const kind = MEM.RESERVE | MEM.COMMIT | MEM.REPLACE_PLACEHOLDER;
    found(this.#placeAt(address, range.view, kind, PAGE.READWRITE), bytes);
    if (bytes > range.view) this.replace(address + range.view, bytes - range.view, READ_WRITE);
  }

  #unmap(address: number, kind: number): void {
    this.#placeholders.UnmapViewOfFile2(THIS_PROCESS, BigInt(address), kind);
  }

  release(address: number): void {
    this.noteReleased(address);
    const at = this.#onAccess.findIndex(([start]) => start === address);
    if (at >= 0) this.#onAccess.splice(at, 1);
    const range = this.#images.get(address);
    this.#images.delete(address);
    if (range?.isMapped === true) this.#unmap(address, 0);
    else this.#free(address, 0, MEM.RELEASE);
    if (range !== undefined && range.view > 0 && range.view < range.bytes) {
      this.#free(address + range.view, 0, MEM.RELEASE);
    }
  }

  discard(address: number, bytes: number, mapAgain?: () => void): void {
    const range = this.#images.get(address);
    if (range?.isMapped !== true) return this.replace(address, bytes, READ_WRITE);
    if (bytes > range.view) this.replace(address + range.view, bytes - range.view, READ_WRITE);
    mapAgain?.();
  }

  createImage(bytes: Uint8Array): number {
    const { CreateFileMappingW, MapViewOfFile, UnmapViewOfFile } = this.#sections;
    const size = roundUp(bytes.length, GRANULARITY);
    const [high, low] = [Math.floor(size / 2 ** 32), size | 0];
    const section = Number(CreateFileMappingW(INVALID_HANDLE, 0n, PAGE.READWRITE, high, low, 0n));
    const at = section === 0 ? 0 : Number(MapViewOfFile(BigInt(section), FILE_MAP_WRITE, 0, 0, BigInt(size)));
    if (at === 0) {
      if (section !== 0) this.closeImage(section);
      throw new Error("Cannot create an image: the system does not give a section of the paging file");
    }
    new Uint8Array(this.ffi.view(at, size)).set(bytes);
    UnmapViewOfFile(BigInt(at));
    return section;
  }

  /** A file cannot be replaced while it is mapped, so artifacts are read. */
  openImage(): { image: number; bytes: number } {
    throw new Error("Files are not mapped on Windows");
  }

  closeImage(section: number): void {
    this.#sections.CloseHandle(BigInt(section));
  }

  mapImage(address: number, bytes: number, section: number, offset = 0, prot: number = READ_WRITE): void {
    if (offset !== 0 || prot !== READ_WRITE) throw new RangeError("Windows maps whole images, readable and writable");
    const range = this.#images.get(address);
    if (range === undefined) throw new RangeError("An image replaces only a reservation that was made for it");
    if (range.isMapped) this.#unmap(address, MEM.PRESERVE_PLACEHOLDER);
    else this.#splitPlaceholder(address, range, bytes);
    const size = BigInt(range.view);
    const kind = MEM.REPLACE_PLACEHOLDER;
    const { MapViewOfFile3 } = this.#placeholders;
    const image = BigInt(section);
    const at = MapViewOfFile3(image, THIS_PROCESS, BigInt(address), 0n, size, kind, PAGE.WRITECOPY, 0n, 0);
    range.isMapped = Number(at) === address;
    if (!range.isMapped) throw new RangeError(`Out of memory: cannot map ${bytes} bytes`);
  }

  /** Makes the first pages of a reservation a placeholder of their own, for a view of `bytes`. */
  #splitPlaceholder(address: number, range: ImageRange, bytes: number): void {
    range.view = Math.min(roundUp(bytes, GRANULARITY), range.bytes);
    const rest = range.bytes - range.view;
    if (rest === 0) return;
    this.#free(address, range.view, MEM.RELEASE | MEM.PRESERVE_PLACEHOLDER);
    found(this.#placeAt(address + range.view, rest, MEM.RESERVE | MEM.REPLACE_PLACEHOLDER, PAGE.NOACCESS), bytes);
  }

  /** No effect: large pages need a privilege. */
  preferLargePages(): void {}
}
