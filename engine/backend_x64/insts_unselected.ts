/**
 * Instructions of x86-64 that compiled code does not contain, in the notation of insts_integer.ts: rows for the
 * baseline kernel and for stub programs alone. They are apart from the rows of instructions.ts, whose columns the
 * optimizing compiler carries.
 */
export const UNSELECTED_ROWS = [
  // forms that only the baseline kernel uses
  "ADC64_R   | adc rw:r64 r:rm64       | REX.W 13 /r",
  "AND8_R    | and rw:r8 r:rm8         | 22 /r",
  "OR8_R     | or rw:r8 r:rm8          | 0A /r",
  "SHR32_1   | shr rw:rm32             | D1 /5",
  "SHR64_1   | shr rw:rm64             | REX.W D1 /5",
  "UNPCKLPS  | unpcklps rw:xmm r:xm128 | 0F 14 /r",
  "REP_STOSQ | rep_stosq               | F3 REX.W AB",
  // instructions without operands, of stub programs
  "CDQE      | cdqe                    | REX.W 98",
  "CLD       | cld                     | FC",
  "CPUID     | cpuid                   | 0F A2",
  "REP_MOVSQ | rep_movsq               | F3 REX.W A5",
  "XGETBV    | xgetbv                  | 0F 01 D0",
] as const;
