/**
 * Constants of WASI preview 1 (witx/wasi_snapshot_preview1) and the mapping of Linux's numbers to WASI's.
 */

/** Error names in the order of their numbers, each with Linux's number (0: none). */
const ERRNO_ROWS = [
  ["success", 0],
  ["2big", 7],
  ["acces", 13],
  ["addrinuse", 98],
  ["addrnotavail", 99],
  ["afnosupport", 97],
  ["again", 11],
  ["already", 114],
  ["badf", 9],
  ["badmsg", 74],
  ["busy", 16],
  ["canceled", 125],
  ["child", 10],
  ["connaborted", 103],
  ["connrefused", 111],
  ["connreset", 104],
  ["deadlk", 35],
  ["destaddrreq", 89],
  ["dom", 33],
  ["dquot", 122],
  ["exist", 17],
  ["fault", 14],
  ["fbig", 27],
  ["hostunreach", 113],
  ["idrm", 43],
  ["ilseq", 84],
  ["inprogress", 115],
  ["intr", 4],
  ["inval", 22],
  ["io", 5],
  ["isconn", 106],
  ["isdir", 21],
  ["loop", 40],
  ["mfile", 24],
  ["mlink", 31],
  ["msgsize", 90],
  ["multihop", 72],
  ["nametoolong", 36],
  ["netdown", 100],
  ["netreset", 102],
  ["netunreach", 101],
  ["nfile", 23],
  ["nobufs", 105],
  ["nodev", 19],
  ["noent", 2],
  ["noexec", 8],
  ["nolck", 37],
  ["nolink", 67],
  ["nomem", 12],
  ["nomsg", 42],
  ["noprotoopt", 92],
  ["nospc", 28],
  ["nosys", 38],
  ["notconn", 107],
  ["notdir", 20],
  ["notempty", 39],
  ["notrecoverable", 131],
  ["notsock", 88],
  ["notsup", 95],
  ["notty", 25],
  ["nxio", 6],
  ["overflow", 75],
  ["ownerdead", 130],
  ["perm", 1],
  ["pipe", 32],
  ["proto", 71],
  ["protonosupport", 93],
  ["prototype", 91],
  ["range", 34],
  ["rofs", 30],
  ["spipe", 29],
  ["srch", 3],
  ["stale", 116],
  ["timedout", 110],
  ["txtbsy", 26],
  ["xdev", 18],
  ["notcapable", 0],
] as const;

export type ErrnoName = (typeof ERRNO_ROWS)[number][0];

/** WASI error numbers by name. */
export const ERRNO: Readonly<Record<ErrnoName, number>> = Object.freeze(
  Object.fromEntries(ERRNO_ROWS.map(([name], index) => [name, index])) as Record<ErrnoName, number>,
);

const FROM_LINUX: ReadonlyMap<number, number> = new Map(ERRNO_ROWS.map(([, linux], index) => [linux as number, index]));

/** The WASI error for the result of a system call: 0 when it is not negative. */
export function errnoOf(result: number): number {
  return result >= 0 ? 0 : FROM_LINUX.get(-result) ?? ERRNO.io;
}

/** Rights of a file descriptor, in the order of their bits. */
const RIGHT_NAMES = [
  "fd_datasync",
  "fd_read",
  "fd_seek",
  "fd_fdstat_set_flags",
  "fd_sync",
  "fd_tell",
  "fd_write",
  "fd_advise",
  "fd_allocate",
  "path_create_directory",
  "path_create_file",
  "path_link_source",
  "path_link_target",
  "path_open",
  "fd_readdir",
  "path_readlink",
  "path_rename_source",
  "path_rename_target",
  "path_filestat_get",
  "path_filestat_set_size",
  "path_filestat_set_times",
  "fd_filestat_get",
  "fd_filestat_set_size",
  "fd_filestat_set_times",
  "path_symlink",
  "path_remove_directory",
  "path_unlink_file",
  "poll_fd_readwrite",
  "sock_shutdown",
  "sock_accept",
] as const;

export type RightName = (typeof RIGHT_NAMES)[number];

/** Rights as bits. All fit in 30 bits, so numbers do. */
export const RIGHT: Readonly<Record<RightName, number>> = Object.freeze(
  Object.fromEntries(RIGHT_NAMES.map((name, bit) => [name, 2 ** bit])) as Record<RightName, number>,
);

export const ALL_RIGHTS: number = 2 ** RIGHT_NAMES.length - 1;

function rights(...names: RightName[]): number {
  return names.reduce((bits, name) => bits | RIGHT[name], 0);
}

/** Rights that apply to a directory. */
export const DIRECTORY_RIGHTS: number = rights(
  "fd_fdstat_set_flags",
  "fd_sync",
  "fd_datasync",
  "fd_advise",
  "path_create_directory",
  "path_create_file",
  "path_link_source",
  "path_link_target",
  "path_open",
  "fd_readdir",
  "path_readlink",
  "path_rename_source",
  "path_rename_target",
  "path_filestat_get",
  "path_filestat_set_size",
  "path_filestat_set_times",
  "fd_filestat_get",
  "fd_filestat_set_times",
  "path_symlink",
  "path_remove_directory",
  "path_unlink_file",
  "poll_fd_readwrite",
);

/** Rights that apply to a file. */
export const FILE_RIGHTS: number = rights(
  "fd_datasync",
  "fd_read",
  "fd_seek",
  "fd_fdstat_set_flags",
  "fd_sync",
  "fd_tell",
  "fd_write",
  "fd_advise",
  "fd_allocate",
  "fd_filestat_get",
  "fd_filestat_set_size",
  "fd_filestat_set_times",
  "poll_fd_readwrite",
);

/** Rights that apply to a stream (pipe, terminal, socket). */
export const STREAM_RIGHTS: number = rights(
  "fd_read",
  "fd_write",
  "fd_fdstat_set_flags",
  "fd_filestat_get",
  "poll_fd_readwrite",
  "sock_shutdown",
  "sock_accept",
);

export const FILETYPE = {
  unknown: 0,
  block_device: 1,
  character_device: 2,
  directory: 3,
  regular_file: 4,
  socket_dgram: 5,
  socket_stream: 6,
  symbolic_link: 7,
} as const;

/** WASI file type by the type bits of a Linux mode (mode >> 12). */
export const FILETYPE_OF_MODE: Readonly<Record<number, number>> = {
  0x2: FILETYPE.character_device,
  0x4: FILETYPE.directory,
  0x6: FILETYPE.block_device,
  0x8: FILETYPE.regular_file,
  0xa: FILETYPE.symbolic_link,
  0xc: FILETYPE.socket_stream,
};

export const FDFLAG = { append: 1, dsync: 2, nonblock: 4, rsync: 8, sync: 16 } as const;
export const OFLAG = { creat: 1, directory: 2, excl: 4, trunc: 8 } as const;
export const FSTFLAG = { atim: 1, atim_now: 2, mtim: 4, mtim_now: 8 } as const;
export const WHENCE = { set: 0, cur: 1, end: 2 } as const;
export const EVENTTYPE = { clock: 0, fd_read: 1, fd_write: 2 } as const;

/** Names of the flags of openat. */
export type OpenFlag =
  | "RDONLY"
  | "WRONLY"
  | "RDWR"
  | "CREAT"
  | "EXCL"
  | "TRUNC"
  | "APPEND"
  | "NONBLOCK"
  | "DSYNC"
  | "SYNC"
  | "DIRECTORY"
  | "NOFOLLOW"
  | "CLOEXEC"
  | "PATH";

/** Flags of Linux's openat. The directory and nofollow bits differ between x64 and arm64. */
export function openFlags(arch: "x64" | "arm64"): Readonly<Record<OpenFlag, number>> {
  return {
    RDONLY: 0,
    WRONLY: 1,
    RDWR: 2,
    CREAT: 0o100,
    EXCL: 0o200,
    TRUNC: 0o1000,
    APPEND: 0o2000,
    NONBLOCK: 0o4000,
    DSYNC: 0o10000,
    SYNC: 0o4010000,
    DIRECTORY: arch === "x64" ? 0o200000 : 0o40000,
    NOFOLLOW: arch === "x64" ? 0o400000 : 0o100000,
    CLOEXEC: 0o2000000,
    PATH: 0o10000000,
  };
}
