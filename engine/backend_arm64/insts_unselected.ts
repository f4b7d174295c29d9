/**
 * Instructions of arm64 that compiled code does not contain, in the notation of insts_integer.ts: rows for stub
 * programs alone. They are apart from the rows of instructions.ts, whose columns the optimizing compiler carries.
 */
export const UNSELECTED_ROWS = [
  "CLREX|clrex|11010101000000110011111101011111",
  "MRS_ISAR0|mrs xd, ID_AA64ISAR0_EL1|110101010011100000000110000ddddd",
  "ADRP|adrp xd, #~J|1jj10000iiiiiiiiiiiiiiiiiiiddddd",
  "LDR_LX|ldr xd, #~i*4|01011000iiiiiiiiiiiiiiiiiiiddddd",
  "LDR_POST|ldr xd, [Xn], #~i|11111000010iiiiiiiii01nnnnnddddd",
  "STR_POST|str xd, [Xn], #~i|11111000000iiiiiiiii01nnnnnddddd",
  "STR_PRE|str xd, [Xn, #~i]!|11111000000iiiiiiiii11nnnnnddddd",
  "LDRB_PRE|ldrb wd, [Xn, #~i]!|00111000010iiiiiiiii11nnnnnddddd",
] as const;
