/**
 * Debugging information entries (DWARF 4 and 5, chapters 2 and 7; 5 with split strings and addresses, without separate
 * files). In: the sections of a module. Out: units, and the entries of a unit as a tree, read when they are first
 * needed.
 *
 * The input is untrusted: every read is within its section, a form that is not known ends the unit, and a unit that
 * cannot be read has no entries. Units, abbreviations, attributes of no size and lists may all refer to the same bytes,
 * so their number is limited for the module as a whole ({@linkcode Limits}).
 */
import { ByteReader } from "@waft/engine/internal/base/bytes";
import { cString, fixed, TextSection } from "@waft/engine/internal/runtime/debug_lines";
import { AT, FORM, TAG } from "./constants.ts";

/** The value of an attribute: a number, a text, or bytes (expressions and blocks). References are section offsets. */
type AttributeValue = number | bigint | string | Uint8Array;

/** An entry. */
export interface Entry {
  /** Its offset in .debug_info. */
  readonly offset: number;
  readonly tag: number;
  readonly attributes: ReadonlyMap<number, AttributeValue>;
  /** The forms of the attributes, which decide the meaning of a number. */
  readonly forms: ReadonlyMap<number, number>;
  readonly children: Entry[];
}

/** The sections by name, such as `.debug_info`. */
type DebugSections = ReadonlyMap<string, Uint8Array>;

interface Abbreviation {
  readonly tag: number;
  readonly hasChildren: boolean;
  readonly attributes: readonly { readonly name: number; readonly form: number; readonly constant: number }[];
  readonly forms: ReadonlyMap<number, number>;
}

/** The attributes that the debugger reads. */
const KNOWN: ReadonlySet<number> = new Set(Object.values(AT));

/** The most entries of a module that are read, the most of their attributes, and the deepest nesting. */
const MAX_ENTRIES = 4_000_000;
const MAX_ATTRIBUTES = 32_000_000;
const MAX_DEPTH = 1000;
/** The most bytes of abbreviations that are read, as a multiple of their section. */
const MAX_COPIES = 8;
/** The most steps in lists of ranges and locations that the evaluation of one frame takes. */
const MAX_STEPS = 4_000_000;
const EMPTY = new Uint8Array(0);

/** The state that the units of a module share: their sections, and the remaining limits of the work on them. */
class Limits {
  readonly sections: DebugSections;
  readonly #texts = new Map<string, TextSection>();
  readonly #abbreviations = new Map<number, ReadonlyMap<number, Abbreviation>>();
  #abbreviationBytes: number;
  #entries = MAX_ENTRIES;
  #attributes = MAX_ATTRIBUTES;
  #steps = MAX_STEPS;

  constructor(sections: DebugSections) {
    this.sections = sections;
    this.#abbreviationBytes = MAX_COPIES * this.section(".debug_abbrev").length;
  }

  section(name: string): Uint8Array {
    return this.sections.get(name) ?? EMPTY;
  }

  /** The string at an offset of a section. Throws a RangeError if too many strings overlap. */
  text(name: string, offset: number): string {
    let section = this.#texts.get(name);
    if (section === undefined) {
      section = new TextSection(this.section(name));
      this.#texts.set(name, section);
    }
    return section.at(offset);
  }

  /** The abbreviations at an offset. */
  abbreviations(at: number): ReadonlyMap<number, Abbreviation> {
    const known = this.#abbreviations.get(at);
    if (known !== undefined) return known;
    const reader = new ByteReader(this.section(".debug_abbrev"), at);
    const found = this.#abbreviationBytes < 0 ? new Map<number, Abbreviation>() : readAbbreviations(reader);
    this.#abbreviationBytes -= Math.max(0, reader.pos - at);
    this.#abbreviations.set(at, found);
    return found;
  }

  /** Counts an entry with its attributes. Throws a RangeError beyond the limit. */
  countEntry(attributes: number): void {
    this.#entries--;
    this.#attributes -= attributes;
    if (this.#entries < 0 || this.#attributes < 0) throw new RangeError("too many entries");
  }

  /** Counts a step in a list. Throws a RangeError beyond the limit since the last {@linkcode beginSteps}. */
  countStep(): void {
    if (--this.#steps < 0) throw new RangeError("too many ranges");
  }

  beginSteps(): void {
    this.#steps = MAX_STEPS;
  }
}

/** A unit: the entries of one compilation. */
export class Unit {
  readonly version: number;
  readonly addressBytes: number;
  /** 4, or 8 in the 64-bit format. */
  readonly offsetBytes: number;
  readonly limits: Limits;
  readonly #start: number;
  readonly #entries: number;
  readonly #end: number;
  readonly #abbreviations: ReadonlyMap<number, Abbreviation>;
  #root: Entry | undefined;
  #whole: Entry | undefined;
  readonly #byOffset = new Map<number, Entry>();

  /** `entries` is the offset of the first entry of the unit that begins at `start`. */
  constructor(
    limits: Limits,
    header: { readonly start: number; readonly end: number; readonly entries: number; readonly abbreviations: number },
    format: { readonly version: number; readonly addressBytes: number; readonly offsetBytes: number },
  ) {
    this.limits = limits;
    this.#start = header.start;
    this.#end = header.end;
    this.#entries = header.entries;
    this.version = format.version;
    this.addressBytes = format.addressBytes;
    this.offsetBytes = format.offsetBytes;
    this.#abbreviations = limits.abbreviations(header.abbreviations);
  }

  /** The offset of the unit in .debug_info. */
  get start(): number {
    return this.#start;
  }

  /** Whether the entry at this offset of .debug_info is in the unit. */
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
    return this.limits.section(name);
  }

  #read(rootOnly: boolean): Entry {
    const reader = new ByteReader(this.section(".debug_info"), this.#entries, this.#end);
    const nothing = { offset: this.#entries, tag: 0, attributes: new Map(), forms: new Map(), children: [] };
    const open: Entry[] = [];
    try {
      while (reader.left > 0) {
        const offset = reader.pos;
        const code = reader.u32();
        if (code === 0) {
          if (open.length < 2) break;
          open.pop();
          continue;
        }
        const abbreviation = this.#abbreviations.get(code);
        if (abbreviation === undefined || open.length > MAX_DEPTH) break;
        this.limits.countEntry(abbreviation.attributes.length);
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

  #entry(
    reader: ByteReader,
    offset: number,
    { tag, attributes, forms }: Abbreviation,
    root: Entry | undefined,
  ): Entry {
    const values = new Map<number, AttributeValue>();
    const base = (name: number) => Number((root?.attributes ?? values).get(name) ?? values.get(name) ?? 0);
    for (const { name, form, constant } of attributes) {
      const value = this.#value(reader, form, constant, base);
      if (value !== undefined && KNOWN.has(name)) values.set(name, value);
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
        return this.limits.text(".debug_str", fixed(reader, this.offsetBytes));
      case FORM.LINE_STRP:
        return this.limits.text(".debug_line_str", fixed(reader, this.offsetBytes));
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
        return this.#value(reader, requireDirect(reader), 0, base);
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
    return this.limits.text(".debug_str", this.#entryOf(".debug_str_offsets", at, this.offsetBytes));
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

/** The form that follows DW_FORM_indirect; it is not indirect itself. */
function requireDirect(reader: ByteReader): number {
  const form = reader.u32();
  return form === FORM.INDIRECT ? reader.fail("an indirect form of an indirect form") : form;
}

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

function readAbbreviations(reader: ByteReader): Map<number, Abbreviation> {
  const found = new Map<number, Abbreviation>();
  try {
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
      const forms = new Map(attributes.map(({ name, form }) => [name, form]));
      found.set(code, { tag, hasChildren, attributes, forms });
    }
  } catch {
    // The table ends where it is damaged.
  }
  return found;
}

/** The compilation units of a module; those that cannot be read are left out. */
export function readUnits(sections: DebugSections): Unit[] {
  const info = sections.get(".debug_info") ?? EMPTY;
  const limits = new Limits(sections);
  const units: Unit[] = [];
  for (let at = 0; at < info.length;) {
    try {
      const reader = new ByteReader(info, at);
      let size = fixed(reader, 4);
      const offsetBytes = size === 0xffffffff ? 8 : 4;
      if (offsetBytes === 8) size = fixed(reader, 8);
      const end = reader.pos + size;
      if (size === 0 || end > info.length) break;
      const unit = readUnit(limits, reader, { start: at, end, offsetBytes });
      if (unit?.root.tag === TAG.COMPILE_UNIT) units.push(unit);
      at = end;
    } catch {
      break;
    }
  }
  return units;
}

/** The unit, among units in the order of their section, that has the entry at an offset of .debug_info. */
export function unitAt(units: readonly Unit[], offset: number): Unit | undefined {
  let [low, high] = [0, units.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (units[middle].start <= offset) low = middle + 1;
    else high = middle;
  }
  const found = units[low - 1];
  return found?.has(offset) === true ? found : undefined;
}

function readUnit(
  limits: Limits,
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
  return new Unit(limits, { start, end, entries: reader.pos, abbreviations }, { version, addressBytes, offsetBytes });
}
