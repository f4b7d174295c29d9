/**
 * WASI preview 1 (witx/wasi_snapshot_preview1) in rows: errors with Linux's numbers, rights, functions; and its other
 * constants.
 */
import { type FuncType, I32, I64 } from "../wasm/types.ts";

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

/**
 * Rights of a file descriptor, in the order of their bits: the name, and a letter for each of its holders: a directory,
 * a file, a stream (pipe, terminal, socket); a plugin's grant to read files, and its grant to write them.
 */
const RIGHT_ROWS = [
  ["fd_datasync", "df--w"],
  ["fd_read", "-fsr-"],
  ["fd_seek", "-f-rw"],
  ["fd_fdstat_set_flags", "dfs-w"],
  ["fd_sync", "df--w"],
  ["fd_tell", "-f-rw"],
  ["fd_write", "-fs-w"],
  ["fd_advise", "df-r-"],
  ["fd_allocate", "-f--w"],
  ["path_create_directory", "d---w"],
  ["path_create_file", "d---w"],
  ["path_link_source", "d----"],
  ["path_link_target", "d----"],
  ["path_open", "d--rw"],
  ["fd_readdir", "d--r-"],
  ["path_readlink", "d--r-"],
  ["path_rename_source", "d---w"],
  ["path_rename_target", "d---w"],
  ["path_filestat_get", "d--r-"],
  ["path_filestat_set_size", "d---w"],
  ["path_filestat_set_times", "d---w"],
  ["fd_filestat_get", "dfsrw"],
  ["fd_filestat_set_size", "-f--w"],
  ["fd_filestat_set_times", "df--w"],
  ["path_symlink", "d----"],
  ["path_remove_directory", "d---w"],
  ["path_unlink_file", "d---w"],
  ["poll_fd_readwrite", "dfsrw"],
  ["sock_shutdown", "--s--"],
  ["sock_accept", "--s--"],
] as const;

export type RightName = (typeof RIGHT_ROWS)[number][0];

/** Rights as bits. All fit in 30 bits, so numbers do. */
export const RIGHT: Readonly<Record<RightName, number>> = Object.freeze(
  Object.fromEntries(RIGHT_ROWS.map(([name], bit) => [name, 2 ** bit])) as Record<RightName, number>,
);

export const ALL_RIGHTS: number = 2 ** RIGHT_ROWS.length - 1;

/** The rights whose rows have a letter. */
function rightsWith(letter: string): number {
  return RIGHT_ROWS.reduce((bits, [name, letters]) => bits | (letters.includes(letter) ? RIGHT[name] : 0), 0);
}

/** Rights that apply to a directory, to a file, and to a stream. */
export const DIRECTORY_RIGHTS: number = rightsWith("d");
export const FILE_RIGHTS: number = rightsWith("f");
export const STREAM_RIGHTS: number = rightsWith("s");

/**
 * Rights on a directory and on its contents of a plugin that may read files, and of one that may write them: not to
 * read, and not to make links. Appending needs the size of the file, so the size and the times of a file that is open
 * for writing can be read.
 */
export const READER_RIGHTS: number = rightsWith("r");
export const WRITER_RIGHTS: number = rightsWith("w");

/**
 * The functions, one row each:
 * - the name;
 * - the types of the parameters, i for i32 and l for i64; all functions return an error number (i32) but `proc_exit`;
 * - the thread that serves it in a program with threads: its own, or the one with the descriptors;
 * - the group in which a project can take it from its guests;
 * - the rights that it needs: of each descriptor in turn, joined by `+` where it needs several;
 * - the ranges of memory that it writes, as `pointer:length`: numbers of parameters and of bytes, `*` before a length
 *   that is a parameter's number, with a size in bytes after another `*`; `?` where vectors or strings say it.
 */
const FUNCTION_ROWS = [
  ["args_get", "ii", "own", "", "", "?"],
  ["args_sizes_get", "ii", "own", "", "", "0:4 1:4"],
  ["environ_get", "ii", "own", "", "", "?"],
  ["environ_sizes_get", "ii", "own", "", "", "0:4 1:4"],
  ["clock_res_get", "ii", "own", "clock", "", "1:8"],
  ["clock_time_get", "ili", "own", "clock", "", "2:8"],
  ["fd_advise", "illi", "shared", "", "fd_advise", ""],
  ["fd_allocate", "ill", "shared", "", "fd_allocate", ""],
  ["fd_close", "i", "shared", "", "", ""],
  ["fd_datasync", "i", "shared", "", "fd_datasync", ""],
  ["fd_fdstat_get", "ii", "shared", "", "", "1:24"],
  ["fd_fdstat_set_flags", "ii", "shared", "", "fd_fdstat_set_flags", ""],
  ["fd_fdstat_set_rights", "ill", "shared", "", "", ""],
  ["fd_filestat_get", "ii", "shared", "", "fd_filestat_get", "1:64"],
  ["fd_filestat_set_size", "il", "shared", "", "fd_filestat_set_size", ""],
  ["fd_filestat_set_times", "illi", "shared", "", "fd_filestat_set_times", ""],
  ["fd_pread", "iiili", "shared", "", "fd_read+fd_seek", "?"],
  ["fd_prestat_get", "ii", "shared", "", "", "1:8"],
  ["fd_prestat_dir_name", "iii", "shared", "", "", "1:*2"],
  ["fd_pwrite", "iiili", "shared", "", "fd_write+fd_seek", "4:4"],
  ["fd_read", "iiii", "shared", "", "fd_read", "?"],
  ["fd_readdir", "iiili", "shared", "", "fd_readdir", "1:*2 4:4"],
  ["fd_renumber", "ii", "shared", "", "", ""],
  ["fd_seek", "ilii", "shared", "", "fd_seek", "3:8"],
  ["fd_sync", "i", "shared", "", "fd_sync", ""],
  ["fd_tell", "ii", "shared", "", "fd_tell", "1:8"],
  ["fd_write", "iiii", "shared", "", "fd_write", "3:4"],
  ["path_create_directory", "iii", "shared", "", "path_create_directory", ""],
  ["path_filestat_get", "iiiii", "shared", "", "path_filestat_get", "4:64"],
  ["path_filestat_set_times", "iiiilli", "shared", "", "path_filestat_set_times", ""],
  ["path_link", "iiiiiii", "shared", "", "path_link_source path_link_target", ""],
  ["path_open", "iiiiillii", "shared", "", "path_open", "8:4"],
  ["path_readlink", "iiiiii", "shared", "", "path_readlink", "3:*4 5:4"],
  ["path_remove_directory", "iii", "shared", "", "path_remove_directory", ""],
  ["path_rename", "iiiiii", "shared", "", "path_rename_source path_rename_target", ""],
  ["path_symlink", "iiiii", "shared", "", "path_symlink", ""],
  ["path_unlink_file", "iii", "shared", "", "path_unlink_file", ""],
  ["poll_oneoff", "iiii", "shared", "clock", "poll_fd_readwrite", "1:*2*32 3:4"],
  ["proc_exit", "i", "own", "", "", ""],
  ["proc_raise", "i", "own", "", "", ""],
  ["sched_yield", "", "own", "", "", ""],
  ["random_get", "ii", "own", "random", "", "0:*1"],
  ["sock_accept", "iii", "shared", "", "sock_accept", "2:4"],
  ["sock_recv", "iiiiii", "shared", "", "fd_read", "?"],
  ["sock_send", "iiiii", "shared", "", "fd_write", "4:4"],
  ["sock_shutdown", "ii", "shared", "", "sock_shutdown", ""],
] as const;

/** The name of a function. */
export type FunctionName = (typeof FUNCTION_ROWS)[number][0];

/** A function of preview 1, as its row describes it. */
export interface WasiFunctionRow {
  readonly type: FuncType;
  /** Whether a thread of the guest serves it itself. */
  readonly isOwn: boolean;
  readonly group: string;
  /** The rights that it needs, of each descriptor in turn. */
  readonly rights: readonly number[];
  /** The ranges that it writes, by its arguments; undefined if vectors or strings in the memory say it. */
  readonly writes: ((args: readonly number[]) => (readonly [at: number, length: number])[]) | undefined;
}

/** The functions by name. */
export const WASI_FUNCTIONS: Readonly<Record<FunctionName, WasiFunctionRow>> = Object.freeze(
  Object.fromEntries(FUNCTION_ROWS.map(([name, params, thread, group, rights, writes]) => [name, {
    type: {
      kind: "func",
      params: [...params].map((letter) => letter === "l" ? I64 : I32),
      results: name === "proc_exit" ? [] : [I32],
    },
    isOwn: thread === "own",
    group,
    rights: words(rights).map((list) => list.split("+").reduce((bits, right) => bits | RIGHT[right as RightName], 0)),
    writes: (writes as string) === "?" ? undefined : rangesOf(words(writes)),
  }])) as unknown as Record<FunctionName, WasiFunctionRow>,
);

function words(text: string): string[] {
  return text === "" ? [] : text.split(" ");
}

/** Reads ranges of a row. */
function rangesOf(texts: readonly string[]): (args: readonly number[]) => (readonly [number, number])[] {
  const ranges = texts.map((text) => {
    const [pointer, length] = text.split(":");
    const [bytes, parameter, size = "1"] = length.split("*");
    return { pointer: Number(pointer), bytes: Number(bytes), parameter, size: Number(size) };
  });
  return (args) =>
    ranges.map(({ pointer, bytes, parameter, size }) =>
      [args[pointer] ?? 0, parameter === undefined ? bytes : (args[Number(parameter)] ?? 0) * size] as const
    );
}

/** The rights that a function needs of its descriptor number `which`. */
export function rightsFor(name: FunctionName, which: number = 0): number {
  return WASI_FUNCTIONS[name].rights[which];
}

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
