/**
 * Memory shared by machine code and the runtime for JavaScript strings: the properties of each host handle
 * (gc_layout.ts: REF_TAG.HOST), the text of some strings, and free space for new ones. Offsets are in bytes. This file
 * is the only definition of these layouts.
 *
 *     table     STRING_ENTRY.SIZE bytes per host-handle number; number 0, which is never allocated, serves
 *               references of all other kinds
 *     control   STRING_CONTROL: addresses, free text slots, and a stack of free handles for machine code
 *     arena     text slots: UTF-16 code units, little-endian
 *
 * Text in the arena is a copy: JavaScript holds the string too, or creates it when it first reads a string made by
 * machine code. The runtime may therefore discard any slot while no machine code runs; all operations must work without
 * it.
 */
import { REF_TAG } from "./gc_layout.ts";

/** The entry of a host handle. All zero if the handle is free, or in the empty table. */
export const STRING_ENTRY = {
  /**
   * Address of the text, u64, if READABLE is not 0; otherwise the number of requests for the text so far
   * (runtime/boundary/string_memory.ts).
   */
  UNITS: 0,
  /** Number of units at that address, u32: the string's length, or 0. */
  READABLE: 8,
  /** Length of the string in units plus 1, u32; 0 if unknown, NO_STRING if the value is not a string. */
  LENGTH: 12,
  SIZE: 16,
} as const;

/** STRING_ENTRY.LENGTH of values that are not strings. */
export const NO_STRING = 0xffffffff;

/**
 * The entry of a reference is at ORIGIN + 2 × its word; a word without the host-handle tag is replaced by OTHER_WORD.
 */
export const ENTRY_SHIFT = 1;
export const OTHER_WORD: number = REF_TAG.HOST;
/** ORIGIN minus the address of the table. */
export const ORIGIN_OFFSET: number = -(REF_TAG.HOST << ENTRY_SHIFT);

/** Size classes of text slots. */
export const TEXT_SLOT = {
  /** Up to MAX_FINE bytes, class k has k × GRAIN bytes; each class above is twice the size of the previous one. */
  MAX_FINE: 512,
  GRAIN: 16,
  FINE_CLASSES: 32,
  CLASSES: 48,
  /** Bytes in a slot beyond its text, so that code may write eight bytes at a time. */
  SLACK: 6,
} as const;

/** The class of a slot for `units` code units, at least 1. */
export function textClassOf(units: number): number {
  const bytes = units * 2 + TEXT_SLOT.SLACK;
  if (bytes <= TEXT_SLOT.MAX_FINE) return (bytes + TEXT_SLOT.GRAIN - 1) >> 4;
  return TEXT_SLOT.FINE_CLASSES + 32 - Math.clz32((bytes - 1) >> 9);
}

/** Size in bytes of a slot of class `k`. */
export function textSlotBytes(k: number): number {
  return k <= TEXT_SLOT.FINE_CLASSES ? k * TEXT_SLOT.GRAIN : TEXT_SLOT.MAX_FINE << (k - TEXT_SLOT.FINE_CLASSES);
}

/**
 * The maximum length in units of a string that machine code makes by concatenation or as a substring. JavaScript makes
 * longer ones, because it can share the text of their sources.
 */
export const MAX_JOINED = 512;
/** The maximum length in units of a string that machine code makes from an array. */
export const MAX_COPIED = 1 << 15;
/** Strings of a single unit below this value are created once and cached. */
export const SINGLE_UNITS = 256;
/** The maximum number of handles reserved for strings that machine code makes. */
export const MAX_NATIVE_HANDLES = 1 << 22;

/** Bits of STRING_CONTROL.SHORTAGE: the arena is full; no handle is free. */
export const SHORTAGE = { TEXT: 1, HANDLES: 2 } as const;

/** The control area; fields are u64 unless noted. */
export const STRING_CONTROL = {
  /** ORIGIN of the table. */
  ORIGIN: 0,
  /** The stack of free handles for machine code, u32 each: its start and its top, from which machine code pops. */
  HANDLES: 8,
  HANDLES_TOP: 16,
  /** First byte of the arena that has never been part of a slot, and the current end of the arena. */
  TOP: 24,
  END: 32,
  /** Resources that machine code asked for and did not get, u32 (SHORTAGE). */
  SHORTAGE: 40,
  /** Handle of the empty string, u32. */
  EMPTY: 44,
  /** By class: address of the first free slot, 0 if there is none. The first word of a free slot links to the next. */
  FREE: 64,
  /** u32 by unit: handle of the string of that unit alone, 0 if not created yet. */
  SINGLES: 512,
  /**
   * Parameters of a sweep: the first handle, the number of handles, u32, and the address of the mark bytes, one per
   * handle (0: unreachable).
   */
  SWEPT: 1536,
  SWEPT_COUNT: 1544,
  SWEPT_MARKS: 1552,
  SIZE: 2048,
} as const;

/**
 * The builtins of "wasm:js-string" with their types, one letter per value: e externref, s non-null externref, a array
 * of mutable i16, i i32. The order is that of their records in a VM context (context_layout.ts).
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
/** The module name of their imports. */
export const STRING_MODULE = "wasm:js-string";

/**
 * The result, by type, with which a builtin of the runtime tells machine code to retry, after it has supplied the
 * missing text, handles or space.
 */
export const RETRY = { i64: 0, i32: -2 } as const;
