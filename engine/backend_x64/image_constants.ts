/**
 * Constants that every image carries once, in front of its code, 16 bytes each and aligned to 16: masks and bounds for
 * float operations. Code refers to them relative to the instruction pointer.
 */

import { NAN32, NAN64_HIGH } from "../ir/types.ts";

// Each row: name and four 32-bit words, lowest first.
const ROWS = [
  ["ABS32", 0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff],
  ["ABS64", 0xffffffff, 0x7fffffff, 0xffffffff, 0x7fffffff],
  ["SIGN32", 0x80000000, 0x80000000, 0x80000000, 0x80000000],
  ["SIGN64", 0, 0x80000000, 0, 0x80000000],
  ["F32_2P63", 0x5f000000, 0, 0, 0],
  ["F64_2P63", 0, 0x43e00000, 0, 0],
  ["F32_M2P31", 0xcf000000, 0, 0, 0],
  ["F64_M2P31_1", 0x00200000, 0xc1e00000, 0, 0], // −2147483649
  ["F32_M2P63", 0xdf000000, 0, 0, 0],
  ["F64_M2P63", 0, 0xc3e00000, 0, 0],
  ["NAN32", NAN32, 0, 0, 0],
  ["NAN64", 0, NAN64_HIGH, 0, 0],
] as const;

type Name = (typeof ROWS)[number][0];

/** Byte offset of each constant from the start of the block. */
export const SHARED: Readonly<Record<Name, number>> = Object.freeze(
  Object.fromEntries(ROWS.map((row, index) => [row[0], index * 16])) as Record<Name, number>,
);

/** The block's bytes. */
export function imageConstants(): Uint8Array {
  const words = new Uint32Array(ROWS.length * 4);
  ROWS.forEach((row, index) => {
    for (let k = 0; k < 4; k++) words[index * 4 + k] = row[k + 1] as number;
  });
  return new Uint8Array(words.buffer);
}
