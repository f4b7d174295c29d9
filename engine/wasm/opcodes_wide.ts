/**
 * Opcode rows of the proposal "wide arithmetic", in the notation of opcode_row.ts. They come after all other pages, so
 * that the ids of the standard's rows do not depend on them.
 */

/** Rows of prefix 0xfc that take or make integers of 128 bits, as two i64: the low half, then the high half. */
export const WIDE_ROWS = [
  "fc:13 i64.add128 - special wide-arithmetic",
  "fc:14 i64.sub128 - special wide-arithmetic",
  "fc:15 i64.mul_wide_s - special wide-arithmetic",
  "fc:16 i64.mul_wide_u - special wide-arithmetic",
] as const;
