/** Flags and commands of Linux's calls on files, as x64 numbers them (<asm-generic/fcntl.h>, <linux/fcntl.h>). */
/** Bits of Linux's `open` on x64. */
export const O = {
  WRONLY: 0o1,
  RDWR: 0o2,
  CREAT: 0o100,
  EXCL: 0o200,
  TRUNC: 0o1000,
  APPEND: 0o2000,
  DSYNC: 0o10000,
  DIRECTORY: 0o200000,
  NOFOLLOW: 0o400000,
} as const;
export const AT = { FDCWD: -100, NOFOLLOW: 0x100, REMOVEDIR: 0x200, EMPTY_PATH: 0x1000 } as const;
export const SEEK = { SET: 0, CUR: 1, END: 2 } as const;
export const F_SETFL = 4;
export const POLL = { IN: 1, OUT: 4, HUP: 16, NVAL: 32 } as const;
export const UTIME_OMIT = 0x3ffffffen;
