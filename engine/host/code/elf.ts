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
  const strings = new StringTable(Object.keys(symbols));
  const layout = layOut(strings.names.length + 1, strings.bytes.length);
  const file = new SharedObject(layout, text);
  file.writeHeader(arch);
  file.writeProgramHeaders();
  file.writeHashTable();
  strings.names.forEach((name, i) => file.writeSymbol(i + 1, strings.offsets[i], symbols[name]));
  file.bytes.set(strings.bytes, layout.strings);
  file.writeDynamicTable(strings.bytes.length);
  return file.bytes;
}

/** Names with a zero byte after each; the first byte is zero. */
class StringTable {
  readonly names: readonly string[];
  readonly bytes: number[] = [0];
  readonly offsets: readonly number[];

  constructor(names: readonly string[]) {
    const encoder = new TextEncoder();
    this.names = names;
    this.offsets = names.map((name) => {
      const at = this.bytes.length;
      this.bytes.push(...encoder.encode(name), 0);
      return at;
    });
  }
}

/** Offsets of the parts in the file. */
interface Layout {
  /** The number of symbols, with the null symbol. */
  readonly symbolCount: number;
  readonly hash: number;
  readonly symbols: number;
  readonly strings: number;
  readonly dynamic: number;
  readonly text: number;
}

const DYNAMIC_ENTRIES = 6;

function layOut(symbolCount: number, stringBytes: number): Layout {
  const hash = EHDR + 4 * PHDR;
  const symbols = alignUp(hash + 4 * (2 + 1 + symbolCount), 8);
  const strings = symbols + SYM * symbolCount;
  const dynamic = alignUp(strings + stringBytes, 8);
  return { symbolCount, hash, symbols, strings, dynamic, text: alignUp(endOfHead(dynamic), SEGMENT_ALIGN) };
}

function endOfHead(dynamic: number): number {
  return dynamic + 16 * DYNAMIC_ENTRIES;
}

function alignUp(offset: number, alignment: number): number {
  return (offset + alignment - 1) & ~(alignment - 1);
}

class SharedObject {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly #layout: Layout;
  readonly #view: DataView;
  readonly #textBytes: number;

  constructor(layout: Layout, text: Uint8Array) {
    this.bytes = new Uint8Array(layout.text + text.length);
    this.bytes.set(text, layout.text);
    this.#layout = layout;
    this.#view = new DataView(this.bytes.buffer);
    this.#textBytes = text.length;
  }

  #put32(at: number, value: number): void {
    this.#view.setUint32(at, value, true);
  }

  #put64(at: number, value: number): void {
    this.#put32(at, value);
    this.#put32(at + 4, 0);
  }

  writeHeader(arch: "x64" | "arm64"): void {
    const view = this.#view;
    this.bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0]); // ELF, 64-bit, little-endian, version 1, System V
    view.setUint16(16, 3, true); // ET_DYN
    view.setUint16(18, EM[arch], true);
    this.#put32(20, 1);
    this.#put64(32, EHDR); // program headers follow
    view.setUint16(52, EHDR, true);
    view.setUint16(54, PHDR, true);
    view.setUint16(56, 4, true);
  }

  writeProgramHeaders(): void {
    const { dynamic, text } = this.#layout;
    const end = endOfHead(dynamic);
    this.#programHeader(0, 1, 4 | 2, 0, end, SEGMENT_ALIGN); // PT_LOAD, read and write (the loader writes to .dynamic)
    this.#programHeader(1, 1, 4 | 1, text, this.#textBytes, SEGMENT_ALIGN); // PT_LOAD, read and execute
    this.#programHeader(2, 2, 4 | 2, dynamic, end - dynamic, 8); // PT_DYNAMIC
    this.#programHeader(3, 0x6474e551, 4 | 2, 0, 0, 16); // PT_GNU_STACK: not executable
  }

  #programHeader(index: number, type: number, flags: number, offset: number, size: number, align: number): void {
    const at = EHDR + index * PHDR;
    this.#put32(at, type);
    this.#put32(at + 4, flags);
    for (const [field, value] of [[8, offset], [16, offset], [24, offset], [32, size], [40, size], [48, align]]) {
      this.#put64(at + field, value);
    }
  }

  /** One hash bucket, which chains all symbols. */
  writeHashTable(): void {
    const { hash, symbolCount } = this.#layout;
    this.#put32(hash, 1);
    this.#put32(hash + 4, symbolCount);
    this.#put32(hash + 8, symbolCount > 1 ? 1 : 0);
    for (let i = 1; i < symbolCount; i++) this.#put32(hash + 12 + 4 * i, i + 1 < symbolCount ? i + 1 : 0);
  }

  /** A function at `offset` in the text. */
  writeSymbol(index: number, name: number, offset: number): void {
    const at = this.#layout.symbols + SYM * index;
    this.#put32(at, name);
    this.bytes[at + 4] = 0x12; // STB_GLOBAL, STT_FUNC
    this.#view.setUint16(at + 6, 1, true); // any section that is not SHN_UNDEF
    this.#put64(at + 8, this.#layout.text + offset);
    this.#put64(at + 16, 1);
  }

  /** The tables, by tag; a zero tag ends them. */
  writeDynamicTable(stringBytes: number): void {
    const { dynamic, hash, strings, symbols } = this.#layout;
    const entries = [[4, hash], [5, strings], [6, symbols], [10, stringBytes], [11, SYM], [0, 0]];
    entries.forEach(([tag, value], i) => {
      this.#put64(dynamic + 16 * i, tag);
      this.#put64(dynamic + 16 * i + 8, value);
    });
  }
}
