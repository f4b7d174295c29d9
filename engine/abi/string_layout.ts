/**
 * Memory that machine code and the runtime share about strings of JavaScript: what is known of each host handle (gc_layout.ts: REF_TAG.HOST), the
 * text of some, and room for new ones. Offsets in bytes; this file is the only place that says where a field is.
 *
 *     table     STRING_ENTRY.SIZE bytes per number of a host handle; number 0, which no handle has, stands for references of other kinds
 *     control   STRING_CONTROL: where things are, free slots for text, and a stack of handles that machine code may give away
 *     arena     slots of text: UTF-16 code units, little endian
 *
 * Text in the arena is a copy: JavaScript has the string as well, or makes it when it first sees one that machine code has made. So a slot may be taken
 * away whenever no machine code runs, and everything must work without it.
 */
import { REF_TAG } from "./gc_layout.ts";

/** What is known of a host handle. All zero when the handle is free, or in a table that knows nothing. */
export const STRING_ENTRY = {
  /** Address of the text, u64, when READABLE is not 0; else what the runtime counts here. */
  UNITS: 0,
  /** How many units lie there, u32: all of the string's, or 0. */
  READABLE: 8,
  /** Length of the string in units, plus 1, u32; 0 when nothing is known, NO_STRING when it is none. */
  LENGTH: 12,
  SIZE: 16,
} as const;

/** STRING_ENTRY.LENGTH of what is no string. */
export const NO_STRING = 0xffffffff;

/** Where a reference's entry is: ORIGIN + 2 × its word; words without the tag of host handles count as OTHER_WORD. */
export const ENTRY_SHIFT = 1;
export const OTHER_WORD: number = REF_TAG.HOST;
/** ORIGIN, less the address of the table. */
export const ORIGIN_OFFSET: number = -(REF_TAG.HOST << ENTRY_SHIFT);

/** Slots of text. */
export const TEXT_SLOT = {
  /** Up to this size they are multiples of GRAIN; class numbers are what they are multiplied by. Beyond, each is twice the one before. */
  MOST_FINE: 512,
  GRAIN: 16,
  FINE_CLASSES: 32,
  CLASSES: 48,
  /** A slot has this many bytes more than its text, so that code may write eight bytes at once. */
  SLACK: 6,
} as const;

/** The class of a slot for `units`, at least 1. */
export function textClassOf(units: number): number {
  const bytes = units * 2 + TEXT_SLOT.SLACK;
  if (bytes <= TEXT_SLOT.MOST_FINE) return (bytes + TEXT_SLOT.GRAIN - 1) >> 4;
  return TEXT_SLOT.FINE_CLASSES + 32 - Math.clz32((bytes - 1) >> 9);
}

/** Bytes of a slot of class `k`. */
export function textSlotBytes(k: number): number {
  return k <= TEXT_SLOT.FINE_CLASSES ? k * TEXT_SLOT.GRAIN : TEXT_SLOT.MOST_FINE << (k - TEXT_SLOT.FINE_CLASSES);
}

/** Strings that machine code makes have at most so many units: others can share text with what they are made of, in JavaScript. */
export const MOST_JOINED = 512;
export const MOST_COPIED = 1 << 15;
/** Strings of one unit below this are made once. */
export const SINGLE_UNITS = 256;
/** The most handles that machine code has for strings that it makes. */
export const MOST_LENT = 1 << 22;

/** Bits of STRING_CONTROL.LACKS: room in the arena; handles to give away. */
export const LACKS = { TEXT: 1, HANDLES: 2 } as const;

/** The control area; u64 each unless said otherwise. */
export const STRING_CONTROL = {
  /** Of the table. */
  ORIGIN: 0,
  /** The stack of handles, u32 each, that machine code may give away: where it begins, and its end. */
  SPARE: 8,
  SPARE_END: 16,
  /** First byte of the arena that no slot has had yet, and its end for now. */
  TOP: 24,
  END: 32,
  /** What was wanted and not there, LACKS, u32. */
  LACKS: 40,
  /** The empty string, u32. */
  EMPTY: 44,
  /** By class: address of the first free slot, 0 for none. A free slot's first word is the address of the next. */
  FREE: 64,
  /** u32 by unit: the string of that unit alone, 0 while there is none. */
  SINGLES: 512,
  /** What is to be swept: its first handle, how many numbers, u32; and the address of a byte for each, 0 when nothing has it. */
  SWEPT: 1536,
  SWEPT_COUNT: 1544,
  SWEPT_MARKS: 1552,
  SIZE: 2048,
} as const;

/**
 * The builtins of "wasm:js-string": what their types are, in short (e externref, s the same but not null, a array of mutable i16, i i32), in the order
 * of a context's records for them (context_layout.ts).
 */
export const STRING_BUILTINS = {
  cast: "e>s",
  test: "e>i",
  fromCharCodeArray: "aii>s",
  intoCharCodeArray: "eai>i",
  fromCharCode: "i>s",
  fromCodePoint: "i>s",
  charCodeAt: "ei>i",
  codePointAt: "ei>i",
  length: "e>i",
  concat: "ee>s",
  substring: "eii>s",
  equals: "ee>i",
  compare: "ee>i",
} as const;

export type StringBuiltin = keyof typeof STRING_BUILTINS;
export const STRING_BUILTIN_NAMES: readonly StringBuiltin[] = Object.keys(STRING_BUILTINS) as StringBuiltin[];
/** The module that they are imported from. */
export const STRING_MODULE = "wasm:js-string";

/** What the runtime's builtin may return instead of a result, by type, when it has seen to what was missing: then the machine code tries again. */
export const AGAIN = { i64: 0, i32: -2 } as const;
