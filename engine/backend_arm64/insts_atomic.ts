/**
 * Rows of atomic accesses, as insts_integer.ts, with a fourth column as rows of vectors have: letters of B H W X, whose
 * rows are KEY_B, KEY_H, KEY_W and KEY_X in this order. In the text, `~` is the suffix of narrow accesses, r a register
 * of that width; in the bits, ZZ is the size. The first group needs the feature LSE.
 *
 * Arm Architecture Reference Manual for A-profile, C4.1.94 "Loads and Stores".
 */
export const ATOMIC_ROWS = [
  "LDADDAL|ldaddal~ rm, rd, [Xn]|ZZ111000111mmmmm000000nnnnnddddd|BHWX",
  "LDCLRAL|ldclral~ rm, rd, [Xn]|ZZ111000111mmmmm000100nnnnnddddd|BHWX",
  "LDEORAL|ldeoral~ rm, rd, [Xn]|ZZ111000111mmmmm001000nnnnnddddd|BHWX",
  "LDSETAL|ldsetal~ rm, rd, [Xn]|ZZ111000111mmmmm001100nnnnnddddd|BHWX",
  "SWPAL|swpal~ rm, rd, [Xn]|ZZ111000111mmmmm100000nnnnnddddd|BHWX",
  "CASAL|casal~ rm, rd, [Xn]|ZZ001000111mmmmm111111nnnnnddddd|BHWX",
  // exclusive accesses and ordered ones
  "LDAR|ldar~ rd, [Xn]|ZZ00100011011111111111nnnnnddddd|BHWX",
  "STLR|stlr~ rd, [Xn]|ZZ00100010011111111111nnnnnddddd|BHWX",
  "LDAXR|ldaxr~ rd, [Xn]|ZZ00100001011111111111nnnnnddddd|BHWX",
  "STLXR|stlxr~ wm, rd, [Xn]|ZZ001000000mmmmm111111nnnnnddddd|BHWX",
] as const;
