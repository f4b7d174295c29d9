/**
 * Results of Linux's calls that report errors: −errno, by name.
 *
 * Source: Linux <asm-generic/errno-base.h>, <asm-generic/errno.h>.
 */
export const E = {
  PERM: -1,
  NOENT: -2,
  IO: -5,
  BADF: -9,
  AGAIN: -11,
  ACCES: -13,
  BUSY: -16,
  EXIST: -17,
  XDEV: -18,
  NOTDIR: -20,
  ISDIR: -21,
  INVAL: -22,
  MFILE: -24,
  FBIG: -27,
  NOSPC: -28,
  SPIPE: -29,
  ROFS: -30,
  MLINK: -31,
  PIPE: -32,
  NAMETOOLONG: -36,
  NOSYS: -38,
  NOTEMPTY: -39,
  LOOP: -40,
  NOTSOCK: -88,
  OPNOTSUPP: -95,
} as const;
