/**
 * Debugging information entries (DWARF 4 and 5, chapters 2 and 7; 5 with split strings and addresses, without separate
 * files). In: the sections of a module. Out: units, and the entries of a unit as a tree, read when they are first needed.
 *
 * The input is untrusted: every read is within its section, a form that is not known ends the unit, and a unit that
 * cannot be read has no entries. Work is bounded by the size of the section.
 */
import { ByteReader } from "@waft/engine/internal/base/bytes";
import { cString, fixed, stringAt } from "@waft/engine/internal/runtime/debug_lines";
import { AT, FORM, TAG } from "./constants.ts";

/** The value of an attribute: a number, a text, or bytes (expressions and blocks). References are section offsets. */
type AttributeValue = number | bigint | string | Uint8Array;

/** An entry. */
export interface Entry {
  /** Its offset in .debug_info. */
  readonly offset: number;
  readonly tag: number;
  readonly attributes: ReadonlyMap<number, AttributeValue>;
  /** The forms of the attributes, which decide what a number means. */
  readonly forms: ReadonlyMap<number, number>;
  readonly children: Entry[];
}

/** The sections by name, such as `.debug_info`. */
type DebugSections = ReadonlyMap<string, Uint8Array>;

interface Abbreviation {
  readonly tag: number;
  readonly hasChildren: boolean;
  readonly attributes: readonly { readonly name: number; readonly form: number; readonly constant: number }[];
}

/** The most entries of one unit that are read. */
const MOST_ENTRIES = 1_000_000;
const EMPTY = new Uint8Array(0);

/** A unit: the entries of one compilation. */
export class Unit {
  readonly version: number;
  readonly addressBytes: number;
  /** 4, or 8 in the 64-bit format. */
  readonly offsetBytes: number;
  readonly #sections: DebugSections;
  readonly #start: number;
  readonly #entries: number;
  readonly #end: number;
  readonly #abbreviations: ReadonlyMap<number, Abbreviation>;
  #root: Entry | undefined;
  #whole: Entry | undefined;
  readonly #byOffset = new Map<number, Entry>();

  /** `entries` is the offset of the first entry of the unit that begins at `start`. */
  constructor(
    sections: DebugSections,
    header: { readonly start: number; readonly end: number; readonly entries: number; readonly abbreviations: number },
    format: { readonly version: number; readonly addressBytes: number; readonly offsetBytes: number },
  ) {
    this.#sections = sections;
    this.#start = header.start;
    this.#end = header.end;
    this.#entries = header.entries;
    this.version = format.version;
    this.addressBytes = format.addressBytes;
    this.offsetBytes = format.offsetBytes;
    this.#abbreviations = readAbbreviations(sections.get(".debug_abbrev") ?? EMPTY, header.abbreviations);
  }

  /** True if the entry at this offset of .debug_info is in the unit. */
  has(offset: number): boolean {
    return offset >= this.#start && offset < this.#end;
  }

  /** The entry of the whole unit, without its children. */
  get root(): Entry {
    if (this.#root === undefined) {
      // It is read twice, because the bases of its own indices may be its last attributes.
      this.#root = this.#read(true);
      this.#root = this.#read(true);
    }
    return this.#root;
  }

  /** The tree of all entries. */
  get tree(): Entry {
    void this.root;
    return this.#whole ??= this.#read(false);
  }

  /** The entry at an offset of .debug_info. */
  entryAt(offset: number): Entry | undefined {
    void this.tree;
    return this.#byOffset.get(offset);
  }

  /** A section of the module. */
  section(name: string): Uint8Array {
    return this.#sections.get(name) ?? EMPTY;
  }

  #read(rootOnly: boolean): Entry {
    const reader = new ByteReader(this.section(".debug_info"), this.#entries, this.#end);
    const nothing = { offset: this.#entries, tag: 0, attributes: new Map(), forms: new Map(), children: [] };
    const open: Entry[] = [];
    try {
      for (let count = 0; reader.left > 0 && count < MOST_ENTRIES; count++) {
        const offset = reader.pos;
        const code = reader.u32();
        if (code === 0) {
          if (open.length < 2) break;
          open.pop();
          continue;
        }
        const abbreviation = this.#abbreviations.get(code);
        if (abbreviation === undefined) break;
        const entry = this.#entry(reader, offset, abbreviation, open[0] ?? this.#root);
        if (rootOnly) return entry;
        this.#byOffset.set(offset, entry);
        open.at(-1)?.children.push(entry);
        if (abbreviation.hasChildren || open.length === 0) open.push(entry);
        if (entry === open[0] && !abbreviation.hasChildren) break;
      }
    } catch {
      // A damaged unit has the entries up to the damage.
    }
    return open[0] ?? nothing;
  }

  #entry(reader: ByteReader, offset: number, { tag, attributes }: Abbreviation, root: Entry | undefined): Entry {
    const values = new Map<number, AttributeValue>();
    const forms = new Map<number, number>();
    const base = (name: number) => Number((root?.attributes ?? values).get(name) ?? values.get(name) ?? 0);
    for (const { name, form, constant } of attributes) {
      const value = this.#value(reader, form, constant, base);
      if (value !== undefined) values.set(name, value);
      forms.set(name, form);
    }
    return { offset, tag, attributes: values, forms, children: [] };
  }

  #value(
    reader: ByteReader,
    form: number,
    constant: number,
    base: (name: number) => number,
  ): AttributeValue | undefined {
    const size = FIXED_SIZES.get(form);
    if (size !== undefined) {
      if (size === 8) return BigInt(fixed(reader, 4)) | (BigInt(fixed(reader, 4)) << 32n);
      const value = fixed(reader, size);
      return REFERENCES.has(form) ? value + this.#start : value;
    }
    switch (form) {
      case FORM.ADDR:
        return fixed(reader, this.addressBytes);
      case FORM.UDATA:
        return unsigned(reader);
      case FORM.REF_UDATA:
        return reader.u32() + this.#start;
      case FORM.SDATA:
        return signed(reader);
      case FORM.IMPLICIT_CONST:
        return constant;
      case FORM.FLAG_PRESENT:
        return 1;
      case FORM.STRING:
        return cString(reader);
      case FORM.STRP:
        return stringAt(this.section(".debug_str"), fixed(reader, this.offsetBytes));
      case FORM.LINE_STRP:
        return stringAt(this.section(".debug_line_str"), fixed(reader, this.offsetBytes));
      case FORM.SEC_OFFSET:
      case FORM.REF_ADDR:
        return fixed(reader, this.offsetBytes);
      case FORM.EXPRLOC:
      case FORM.BLOCK:
        return reader.take(reader.u32());
      case FORM.BLOCK1:
      case FORM.BLOCK2:
      case FORM.BLOCK4:
        return reader.take(fixed(reader, form === FORM.BLOCK1 ? 1 : form === FORM.BLOCK2 ? 2 : 4));
      case FORM.DATA16:
        return reader.take(16);
      case FORM.REF_SIG8:
        reader.take(8);
        return undefined;
      case FORM.INDIRECT:
        return this.#value(reader, reader.u32(), 0, base);
      case FORM.STRX:
        return this.#string(reader.u32(), base);
      case FORM.ADDRX:
        return this.#address(reader.u32(), base);
      case FORM.LOCLISTX:
        return this.#listOffset(".debug_loclists", reader.u32(), base(AT.LOCLISTS_BASE));
      case FORM.RNGLISTX:
        return this.#listOffset(".debug_rnglists", reader.u32(), base(AT.RNGLISTS_BASE));
    }
    const strx = INDEXED.indexOf(form, 1);
    if (strx >= 1 && strx <= 4) return this.#string(fixed(reader, strx), base);
    const addrx = form - FORM.ADDRX1 + 1;
    if (addrx >= 1 && addrx <= 4) return this.#address(fixed(reader, addrx), base);
    return reader.fail(`form ${form}`);
  }

  #string(index: number, base: (name: number) => number): string {
    const at = (base(AT.STR_OFFSETS_BASE) || 8) + index * this.offsetBytes;
    return stringAt(this.section(".debug_str"), this.#entryOf(".debug_str_offsets", at, this.offsetBytes));
  }

  #address(index: number, base: (name: number) => number): number {
    const at = (base(AT.ADDR_BASE) || 8) + index * this.addressBytes;
    return this.#entryOf(".debug_addr", at, this.addressBytes);
  }

  /** The number at an offset in a table; 0 beyond its end. */
  #entryOf(table: string, at: number, bytes: number): number {
    const section = this.section(table);
    return at + bytes > section.length ? 0 : fixed(new ByteReader(section, at), bytes);
  }

  /** The address with this index in the unit's table. */
  addressAt(index: number): number {
    return this.#address(index, (name) => Number(this.root.attributes.get(name) ?? 0));
  }

  #listOffset(name: string, index: number, base: number): number {
    return base + this.#entryOf(name, base + index * this.offsetBytes, this.offsetBytes);
  }
}

/** Forms of a fixed size. */
const FIXED_SIZES: ReadonlyMap<number, number> = new Map([
  [FORM.DATA1, 1],
  [FORM.DATA2, 2],
  [FORM.DATA4, 4],
  [FORM.DATA8, 8],
  [FORM.FLAG, 1],
  [FORM.REF1, 1],
  [FORM.REF2, 2],
  [FORM.REF4, 4],
]);
/** Forms that refer to an entry of the same unit. */
const REFERENCES: ReadonlySet<number> = new Set([FORM.REF1, FORM.REF2, FORM.REF4]);
/** The forms of an index of a string by their size in bytes. */
const INDEXED: readonly number[] = [0, FORM.STRX1, FORM.STRX2, FORM.STRX3, FORM.STRX4];

/** A ULEB128 of up to 64 bits. */
export function unsigned(reader: ByteReader): number | bigint {
  reader.u64();
  const [lo, hi] = [reader.lo >>> 0, reader.hi >>> 0];
  return hi === 0 ? lo : (BigInt(hi) << 32n) | BigInt(lo);
}

/** An SLEB128 of up to 64 bits. */
export function signed(reader: ByteReader): number | bigint {
  reader.s64();
  const [lo, hi] = [reader.lo, reader.hi];
  return hi === lo >> 31 ? lo | 0 : BigInt.asIntN(64, (BigInt(hi) << 32n) | BigInt(lo >>> 0));
}

function readAbbreviations(section: Uint8Array, at: number): Map<number, Abbreviation> {
  const found = new Map<number, Abbreviation>();
  try {
    const reader = new ByteReader(section, at);
    for (let code = reader.u32(); code !== 0; code = reader.u32()) {
      const tag = reader.u32();
      const hasChildren = reader.u8() !== 0;
      const attributes: { name: number; form: number; constant: number }[] = [];
      for (;;) {
        const name = reader.u32();
        const form = reader.u32();
        const constant = form === FORM.IMPLICIT_CONST ? Number(signed(reader)) : 0;
        if (name === 0 && form === 0) break;
        attributes.push({ name, form, constant });
      }
      found.set(code, { tag, hasChildren, attributes });
    }
  } catch {
    // The table ends where it is damaged.
  }
  return found;
}

/** The compilation units of a module; those that cannot be read are left out. */
export function readUnits(sections: DebugSections): Unit[] {
  const info = sections.get(".debug_info") ?? EMPTY;
  const units: Unit[] = [];
  for (let at = 0; at < info.length;) {
    try {
      const reader = new ByteReader(info, at);
      let size = fixed(reader, 4);
      const offsetBytes = size === 0xffffffff ? 8 : 4;
      if (offsetBytes === 8) size = fixed(reader, 8);
      const end = reader.pos + size;
      if (size === 0 || end > info.length) break;
      const unit = readUnit(sections, reader, { start: at, end, offsetBytes });
      if (unit?.root.tag === TAG.COMPILE_UNIT) units.push(unit);
      at = end;
    } catch {
      break;
    }
  }
  return units;
}

function readUnit(
  sections: DebugSections,
  reader: ByteReader,
  { start, end, offsetBytes }: { readonly start: number; readonly end: number; readonly offsetBytes: number },
): Unit | undefined {
  const version = fixed(reader, 2);
  if (version < 2 || version > 5) return undefined;
  const isNew = version === 5;
  if (isNew) reader.u8(); // kind of unit
  const newAddressBytes = isNew ? reader.u8() : 0;
  const abbreviations = fixed(reader, offsetBytes);
  const addressBytes = isNew ? newAddressBytes : reader.u8();
  if (addressBytes !== 4 && addressBytes !== 8) return undefined;
  return new Unit(sections, { start, end, entries: reader.pos, abbreviations }, { version, addressBytes, offsetBytes });
}
