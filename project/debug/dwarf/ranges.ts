/**
 * The addresses that an entry covers (DWARF 5, section 2.17). In: an entry with bounds or a list of ranges, and an
 * address. Out: whether the address belongs to it.
 */
import { ByteReader } from "@waft/engine/internal/base/bytes";
import { fixed } from "@waft/engine/internal/runtime/debug_lines";
import { AT, FORM } from "./constants.ts";
import type { Entry, Unit } from "./entries.ts";

/** Kinds of entries in lists of ranges (7.25). */
const RLE = {
  END: 0,
  BASE_ADDRESSX: 1,
  STARTX_ENDX: 2,
  STARTX_LENGTH: 3,
  OFFSET_PAIR: 4,
  BASE_ADDRESS: 5,
  START_END: 6,
  START_LENGTH: 7,
} as const;

/** Whether `entry` covers the address `pc`; an entry without bounds covers nothing. */
export function covers(unit: Unit, entry: Entry, pc: number): boolean {
  const ranges = entry.attributes.get(AT.RANGES);
  if (typeof ranges === "number") {
    try {
      return unit.version === 5 ? inRanges(unit, ranges, pc) : inOldRanges(unit, ranges, pc);
    } catch {
      return false; // a damaged list
    }
  }
  const low = Number(entry.attributes.get(AT.LOW_PC) ?? NaN);
  const high = Number(entry.attributes.get(AT.HIGH_PC) ?? NaN);
  const form = entry.forms.get(AT.HIGH_PC);
  const isAddress = form === FORM.ADDR || form === FORM.ADDRX;
  return low > 0 && pc >= low && pc < (isAddress ? high : low + high);
}

function inRanges(unit: Unit, at: number, pc: number): boolean {
  const reader = new ByteReader(unit.section(".debug_rnglists"), at);
  let base = Number(unit.root.attributes.get(AT.LOW_PC) ?? 0);
  for (let kind = reader.u8(); kind !== RLE.END; kind = reader.u8()) {
    unit.limits.countStep();
    if (kind === RLE.BASE_ADDRESSX) base = unit.addressAt(reader.u32());
    else if (kind === RLE.BASE_ADDRESS) base = fixed(reader, unit.addressBytes);
    else {
      const [from, to] = rangeOf(unit, reader, kind, base);
      if (pc >= from && pc < to) return true;
    }
  }
  return false;
}

function rangeOf(unit: Unit, reader: ByteReader, kind: number, base: number): [from: number, to: number] {
  const isIndex = kind === RLE.STARTX_ENDX || kind === RLE.STARTX_LENGTH;
  const address = () => isIndex ? unit.addressAt(reader.u32()) : fixed(reader, unit.addressBytes);
  switch (kind) {
    case RLE.OFFSET_PAIR:
      return [base + reader.u32(), base + reader.u32()];
    case RLE.STARTX_ENDX:
    case RLE.START_END:
      return [address(), address()];
    case RLE.STARTX_LENGTH:
    case RLE.START_LENGTH: {
      const from = address();
      return [from, from + reader.u32()];
    }
  }
  return reader.fail(`entry ${kind} of a list of ranges`);
}

function inOldRanges(unit: Unit, at: number, pc: number): boolean {
  const reader = new ByteReader(unit.section(".debug_ranges"), at);
  let base = Number(unit.root.attributes.get(AT.LOW_PC) ?? 0);
  for (;;) {
    unit.limits.countStep();
    const from = fixed(reader, unit.addressBytes);
    const to = fixed(reader, unit.addressBytes);
    if (from === 0 && to === 0) return false;
    if (from === 2 ** (8 * unit.addressBytes) - 1) base = to;
    else if (pc >= base + from && pc < base + to) return true;
  }
}
