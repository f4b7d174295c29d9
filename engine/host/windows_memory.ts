/**
 * Memory on Windows: reservations, commitment, protection, and copy-on-write images. In: the FFI of a runtime. Out: the
 * parts of a {@linkcode Host} that concern memory.
 *
 * Windows charges committed pages whether they are used or not. Large accessible reservations are therefore committed
 * on access, by an exception handler (windows_code.ts); `protect` commits its range at once. An image is a section of
 * the paging file, and a reservation for an image is a placeholder, which a view of the section replaces: views start
 * at multiples of 64 KiB.
 *
 * Sources: "VirtualAlloc2 function", "MapViewOfFile3 function" and "VirtualFree function" of Microsoft's documentation.
 */
import type { Ffi, ForeignFunction, ForeignSignature } from "./ffi.ts";
import { type Host, PROT } from "./host.ts";
import { COMMITTED_ON_ACCESS } from "./windows_code.ts";

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

/** The parts of a host that concern memory. */
type WindowsMemory = Pick<
  Host,
  "reserve" | "protect" | "replace" | "release" | "discard" | "createImage" | "openImage" | "mapImage" | "closeImage"
>;

/** The memory of this process. */
export function windowsMemory(ffi: Ffi): WindowsMemory {
  const kernel = ffi.open("kernel32.dll", KERNEL32);
  let sections: Record<keyof typeof SECTIONS, ForeignFunction> | undefined;
  const late = () => sections ??= ffi.open("kernel32.dll", SECTIONS);
  let placeholders: Record<keyof typeof PLACEHOLDERS, ForeignFunction> | undefined;
  const withPlaceholders = () => placeholders ??= ffi.open("kernelbase.dll", PLACEHOLDERS);
  const oldProtection = new Uint8Array(4);
  /** Reservations that are committed on access: [start, end). */
  const onAccess: (readonly [start: number, end: number])[] = [];
  const images = new Map<number, ImageRange>();

  function allocate(address: number, bytes: number, kind: number, protection: number): number {
    return Number(kernel.VirtualAlloc(BigInt(address), BigInt(bytes), kind, protection));
  }

  function found(address: number, bytes: number): number {
    if (address === 0) throw new RangeError(`Out of address space: cannot map ${bytes} bytes`);
    return address;
  }

  function reservePlaceholder(bytes: number): number {
    const size = roundUp(bytes, GRANULARITY);
    const kind = MEM.RESERVE | MEM.RESERVE_PLACEHOLDER;
    const { VirtualAlloc2 } = withPlaceholders();
    const address = found(Number(VirtualAlloc2(THIS_PROCESS, 0n, BigInt(size), kind, PAGE.NOACCESS, 0n, 0)), bytes);
    images.set(address, { bytes: size, view: 0, isMapped: false });
    return address;
  }

  function reserve(bytes: number, prot: number, forImage = false): number {
    if (forImage) return reservePlaceholder(bytes);
    if (prot !== PROT.NONE && bytes <= COMMIT_AT_ONCE) {
      return found(allocate(0, bytes, MEM.RESERVE | MEM.COMMIT, pageProtection(prot)), bytes);
    }
    const address = found(allocate(0, bytes, MEM.RESERVE, reservedProtection(prot)), bytes);
    if (prot !== PROT.NONE) onAccess.push([address, address + bytes]);
    return address;
  }

  /** Commits pages, which keep their contents if they are committed already, and sets their protection. */
  function commit(address: number, bytes: number, prot: number): boolean {
    const protection = pageProtection(prot);
    if (allocate(address, bytes, MEM.COMMIT, protection) === 0) return false;
    return kernel.VirtualProtect(BigInt(address), BigInt(bytes), protection, oldProtection) !== 0;
  }

  function protect(address: number, bytes: number, prot: number): void {
    const mapped = images.get(address);
    const skipped = mapped?.isMapped === true ? Math.min(mapped.view, bytes) : 0;
    if (skipped > 0 && prot !== READ_WRITE) throw new RangeError("Pages of an image are readable and writable");
    if (skipped < bytes && !commit(address + skipped, bytes - skipped, prot) && !commitBehindView(address, bytes)) {
      throw new RangeError(`Out of memory: cannot make ${bytes} bytes accessible`);
    }
  }

  /** Commits a range that begins inside of a view; false if it does not. */
  function commitBehindView(address: number, bytes: number): boolean {
    for (const [start, { view, isMapped }] of images) {
      const end = start + view;
      if (!isMapped || address <= start || address >= end) continue;
      return address + bytes <= end || commit(end, address + bytes - end, READ_WRITE);
    }
    return false;
  }

  function replace(address: number, bytes: number, prot: number): void {
    const mapped = images.get(address);
    if (mapped?.isMapped === true) return replaceView(address, mapped, bytes);
    kernel.VirtualFree(BigInt(address), BigInt(bytes), MEM.DECOMMIT);
    if (prot === PROT.NONE) return;
    const isOnAccess = onAccess.some(([start, end]) => start <= address && address < end);
    if (!(isOnAccess && prot === READ_WRITE)) protect(address, bytes, prot);
  }

  /** Replaces the view by zero pages, and the pages behind it. */
  function replaceView(address: number, range: ImageRange, bytes: number): void {
    const { UnmapViewOfFile2, VirtualAlloc2 } = withPlaceholders();
    UnmapViewOfFile2(THIS_PROCESS, BigInt(address), MEM.PRESERVE_PLACEHOLDER);
    range.isMapped = false;
    const kind = MEM.RESERVE | MEM.COMMIT | MEM.REPLACE_PLACEHOLDER;
    found(Number(VirtualAlloc2(THIS_PROCESS, BigInt(address), BigInt(range.view), kind, PAGE.READWRITE, 0n, 0)), bytes);
    if (bytes > range.view) replace(address + range.view, bytes - range.view, READ_WRITE);
  }

  function release(address: number): void {
    const at = onAccess.findIndex(([start]) => start === address);
    if (at >= 0) onAccess.splice(at, 1);
    const range = images.get(address);
    images.delete(address);
    if (range?.isMapped === true) withPlaceholders().UnmapViewOfFile2(THIS_PROCESS, BigInt(address), 0);
    else kernel.VirtualFree(BigInt(address), 0n, MEM.RELEASE);
    if (range !== undefined && range.view > 0 && range.view < range.bytes) {
      kernel.VirtualFree(BigInt(address + range.view), 0n, MEM.RELEASE);
    }
  }

  function discard(address: number, bytes: number, mapAgain?: () => void): void {
    const range = images.get(address);
    if (range?.isMapped !== true) return replace(address, bytes, READ_WRITE);
    if (bytes > range.view) replace(address + range.view, bytes - range.view, READ_WRITE);
    mapAgain?.();
  }

  function createImage(bytes: Uint8Array): number {
    const { CreateFileMappingW, MapViewOfFile, UnmapViewOfFile } = late();
    const size = roundUp(bytes.length, GRANULARITY);
    const [high, low] = [Math.floor(size / 2 ** 32), size | 0];
    const section = Number(CreateFileMappingW(INVALID_HANDLE, 0n, PAGE.READWRITE, high, low, 0n));
    const at = section === 0 ? 0 : Number(MapViewOfFile(BigInt(section), FILE_MAP_WRITE, 0, 0, BigInt(size)));
    if (at === 0) {
      if (section !== 0) closeImage(section);
      throw new Error("Cannot create an image: the system does not give a section of the paging file");
    }
    new Uint8Array(ffi.view(at, size)).set(bytes);
    UnmapViewOfFile(BigInt(at));
    return section;
  }

  function closeImage(section: number): void {
    late().CloseHandle(BigInt(section));
  }

  function mapImage(address: number, bytes: number, section: number): void {
    const range = images.get(address);
    if (range === undefined) throw new RangeError("An image replaces only a reservation that was made for it");
    const { MapViewOfFile3, UnmapViewOfFile2, VirtualAlloc2 } = withPlaceholders();
    if (range.isMapped) UnmapViewOfFile2(THIS_PROCESS, BigInt(address), MEM.PRESERVE_PLACEHOLDER);
    else {
      range.view = Math.min(roundUp(bytes, GRANULARITY), range.bytes);
      const [rest, restBytes] = [BigInt(address + range.view), BigInt(range.bytes - range.view)];
      if (restBytes > 0n) {
        kernel.VirtualFree(BigInt(address), BigInt(range.view), MEM.RELEASE | MEM.PRESERVE_PLACEHOLDER);
        const kind = MEM.RESERVE | MEM.REPLACE_PLACEHOLDER;
        found(Number(VirtualAlloc2(THIS_PROCESS, rest, restBytes, kind, PAGE.NOACCESS, 0n, 0)), bytes);
      }
    }
    const size = BigInt(range.view);
    const image = BigInt(section);
    const kind = MEM.REPLACE_PLACEHOLDER;
    const at = MapViewOfFile3(image, THIS_PROCESS, BigInt(address), 0n, size, kind, PAGE.WRITECOPY, 0n, 0);
    range.isMapped = Number(at) === address;
    if (!range.isMapped) throw new RangeError(`Out of memory: cannot map ${bytes} bytes`);
  }

  return {
    reserve,
    protect,
    replace,
    release,
    discard,
    createImage,
    // A file cannot be replaced while it is mapped, so artifacts are read.
    openImage: () => {
      throw new Error("Files are not mapped on Windows");
    },
    mapImage: (address, bytes, section, offset = 0, prot = READ_WRITE) => {
      if (offset !== 0 || prot !== READ_WRITE) throw new RangeError("Windows maps whole images, readable and writable");
      mapImage(address, bytes, section);
    },
    closeImage,
  };
}

/** The size of a page of Windows on x64. */
export const WINDOWS_PAGE_BYTES: number = PAGE_BYTES;
