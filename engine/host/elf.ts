/**
 * Writes a minimal ELF64 shared object around machine code, so that `dlopen` returns exactly typed symbols for it. In:
 * position-independent text and symbol offsets in it. Out: the file's bytes, with one read-only segment for the dynamic
 * tables, one executable segment for the text, no relocations and no sections.
 *
 * Source: System V ABI, "Object files" and "Program loading and dynamic linking".
 */

const EM = { x64: 62, arm64: 183 } as const;
const EHDR = 64;
const PHDR = 56;
const SYM = 24;
/** Alignment of the executable segment: enough for 64 KiB pages, too. */
const SEGMENT_ALIGN = 0x10000;

/** The bytes of a shared object exporting `symbols` (name → offset in `text`). */
export function writeSharedObject(
  text: Uint8Array,
  symbols: Readonly<Record<string, number>>,
  arch: "x64" | "arm64",
): Uint8Array<ArrayBuffer> {
  const names = Object.keys(symbols);
  const encoder = new TextEncoder();
  const strings: number[] = [0];
  const nameOffsets = names.map((name) => {
    const at = strings.length;
    strings.push(...encoder.encode(name), 0);
    return at;
  });
  const symbolCount = names.length + 1;
  const hashOffset = EHDR + 4 * PHDR;
  const hashSize = 4 * (2 + 1 + symbolCount);
  const symOffset = (hashOffset + hashSize + 7) & ~7;
  const strOffset = symOffset + SYM * symbolCount;
  const dynOffset = (strOffset + strings.length + 7) & ~7;
  const dynSize = 16 * 6;
  const headEnd = dynOffset + dynSize;
  const textOffset = (headEnd + SEGMENT_ALIGN - 1) & ~(SEGMENT_ALIGN - 1);

  const file = new Uint8Array(textOffset + text.length);
  const view = new DataView(file.buffer);
  const put64 = (at: number, value: number) => {
    view.setUint32(at, value, true);
    view.setUint32(at + 4, 0, true);
  };
  file.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0]); // ELF, 64-bit, little-endian, version 1, System V
  view.setUint16(16, 3, true); // ET_DYN
  view.setUint16(18, EM[arch], true);
  view.setUint32(20, 1, true);
  put64(32, EHDR); // program headers follow
  view.setUint16(52, EHDR, true);
  view.setUint16(54, PHDR, true);
  view.setUint16(56, 4, true);

  const programHeader = (index: number, type: number, flags: number, offset: number, size: number, align: number) => {
    const at = EHDR + index * PHDR;
    view.setUint32(at, type, true);
    view.setUint32(at + 4, flags, true);
    put64(at + 8, offset);
    put64(at + 16, offset);
    put64(at + 24, offset);
    put64(at + 32, size);
    put64(at + 40, size);
    put64(at + 48, align);
  };
  programHeader(0, 1, 4 | 2, 0, headEnd, SEGMENT_ALIGN); // PT_LOAD, read and write (the loader writes to .dynamic)
  programHeader(1, 1, 4 | 1, textOffset, text.length, SEGMENT_ALIGN); // PT_LOAD, read and execute
  programHeader(2, 2, 4 | 2, dynOffset, dynSize, 8); // PT_DYNAMIC
  programHeader(3, 0x6474e551, 4 | 2, 0, 0, 16); // PT_GNU_STACK: not executable

  // One hash bucket, which chains all symbols.
  view.setUint32(hashOffset, 1, true);
  view.setUint32(hashOffset + 4, symbolCount, true);
  view.setUint32(hashOffset + 8, symbolCount > 1 ? 1 : 0, true);
  for (let i = 1; i < symbolCount; i++) view.setUint32(hashOffset + 12 + 4 * i, i + 1 < symbolCount ? i + 1 : 0, true);
  names.forEach((name, i) => {
    const at = symOffset + SYM * (i + 1);
    view.setUint32(at, nameOffsets[i]!, true);
    file[at + 4] = 0x12; // STB_GLOBAL, STT_FUNC
    view.setUint16(at + 6, 1, true); // any section that is not SHN_UNDEF
    put64(at + 8, textOffset + symbols[name]!);
    put64(at + 16, 1);
  });
  file.set(strings, strOffset);
  const dynamic: [number, number][] = [
    [4, hashOffset],
    [5, strOffset],
    [6, symOffset],
    [10, strings.length],
    [11, SYM],
    [0, 0],
  ];
  dynamic.forEach(([tag, value], i) => {
    put64(dynOffset + 16 * i, tag);
    put64(dynOffset + 16 * i + 8, value);
  });
  file.set(text, textOffset);
  return file;
}
