/**
 * The calls of linux_calls.ts on Windows. WASI and the plugins' files speak Linux's calls, with Linux's numbers for
 * flags and errors and Linux's structures; this file translates them to functions of ntdll and kernel32. In: calls of
 * functions with their addresses (WindowsMachine). Out: the result, or −errno as Linux numbers it.
 *
 * Names are opened relative to the handle of their directory, one component at a time, by the functions of NT, which
 * know neither drive letters nor device names nor the current directory. Invariants: a name relative to a directory
 * contains no separator and no colon, so it names an entry of that directory and no stream; no open follows a reparse
 * point, so a path through a junction or a symbolic link cannot reach a file outside the directory; an 8.3 short name
 * does not open the file that it abbreviates.
 *
 * Differences that remain: symbolic links are read and never made; sockets are missing; a wait for a pipe looks at it
 * every few milliseconds. A pipe does not report its free space, so it counts as writable until it refuses a write.
 *
 * Sources: "NtCreateFile", "NtSetInformationFile", "File System Control Codes" of Microsoft's documentation; [MS-FSCC];
 * Linux <asm-generic/errno.h>, <linux/stat.h>, getdents(2), statx(2).
 */
import { type Host, PROT } from "../host.ts";
import type { LinuxCall, LinuxCalls } from "./linux_calls.ts";
import { E } from "./linux_errors.ts";
import { callOnRuntimeFile, isRuntimeFile } from "../runtime_files.ts";
import { WINDOWS_BLOCK, WINDOWS_CALL } from "../code/windows_code.ts";
import { isWindowsName } from "./windows_names.ts";

/** The functions of Windows that the calls use. */
const FUNCTIONS = [
  "GetConsoleMode",
  "GetFileType",
  "GetFinalPathNameByHandleW",
  "GetFullPathNameW",
  "GetLastError",
  "GetNumberOfConsoleInputEvents",
  "GetProcessTimes",
  "GetStdHandle",
  "GetSystemTimePreciseAsFileTime",
  "GetThreadTimes",
  "NtClose",
  "NtCreateFile",
  "NtDelayExecution",
  "NtFlushBuffersFile",
  "NtFsControlFile",
  "NtQueryDirectoryFile",
  "NtQueryInformationFile",
  "NtQueryVolumeInformationFile",
  "NtReadFile",
  "NtSetInformationFile",
  "NtWriteFile",
  "PeekNamedPipe",
  "ProcessPrng",
  "QueryUnbiasedInterruptTimePrecise",
  "ReadFile",
  "SetFilePointerEx",
  "SwitchToThread",
  "WriteFile",
] as const;

type WindowsFunction = (typeof FUNCTIONS)[number];

/** [NTSTATUS, −errno]; every other failure is EIO. */
const STATUS_ERRORS: ReadonlyMap<number, number> = new Map([
  [0xc0000008, E.BADF], // STATUS_INVALID_HANDLE
  [0xc000000d, E.INVAL], // STATUS_INVALID_PARAMETER
  [0xc000000f, E.NOENT], // STATUS_NO_SUCH_FILE
  [0xc0000010, E.OPNOTSUPP], // STATUS_INVALID_DEVICE_REQUEST
  [0xc0000022, E.ACCES], // STATUS_ACCESS_DENIED
  [0xc0000024, E.NOTDIR], // STATUS_OBJECT_TYPE_MISMATCH
  [0xc0000033, E.INVAL], // STATUS_OBJECT_NAME_INVALID
  [0xc0000034, E.NOENT], // STATUS_OBJECT_NAME_NOT_FOUND
  [0xc0000035, E.EXIST], // STATUS_OBJECT_NAME_COLLISION
  [0xc000003a, E.NOENT], // STATUS_OBJECT_PATH_NOT_FOUND
  [0xc000003b, E.INVAL], // STATUS_OBJECT_PATH_SYNTAX_BAD
  [0xc0000043, E.BUSY], // STATUS_SHARING_VIOLATION
  [0xc0000056, E.NOENT], // STATUS_DELETE_PENDING
  [0xc000007f, E.NOSPC], // STATUS_DISK_FULL
  [0xc00000a2, E.ROFS], // STATUS_MEDIA_WRITE_PROTECTED
  [0xc00000ba, E.ISDIR], // STATUS_FILE_IS_A_DIRECTORY
  [0xc00000bb, E.OPNOTSUPP], // STATUS_NOT_SUPPORTED
  [0xc00000d4, E.XDEV], // STATUS_NOT_SAME_DEVICE
  [0xc0000101, E.NOTEMPTY], // STATUS_DIRECTORY_NOT_EMPTY
  [0xc0000103, E.NOTDIR], // STATUS_NOT_A_DIRECTORY
  [0xc0000106, E.NAMETOOLONG], // STATUS_NAME_TOO_LONG
  [0xc000011f, E.MFILE], // STATUS_TOO_MANY_OPENED_FILES
  [0xc0000121, E.ACCES], // STATUS_CANNOT_DELETE
  [0xc000014b, E.PIPE], // STATUS_PIPE_BROKEN
  [0xc0000265, E.MLINK], // STATUS_TOO_MANY_LINKS
  [0xc0000275, E.INVAL], // STATUS_NOT_A_REPARSE_POINT
  [0xc000041d, E.FBIG], // STATUS_FILE_TOO_LARGE
]);
const STATUS_END_OF_FILE = 0xc0000011;
const STATUS_NO_MORE_FILES = 0x80000006;
const STATUS_NO_SUCH_FILE = 0xc000000f;
const STATUS_INVALID_INFO_CLASS = 0xc0000003;
const STATUS_INVALID_PARAMETER = 0xc000000d;
const STATUS_NOT_SUPPORTED = 0xc00000bb;
const STATUS_NOT_IMPLEMENTED = 0xc0000002;

/** Bits of Linux's `open` on x64. */
const O = {
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
const AT = { FDCWD: -100, NOFOLLOW: 0x100, REMOVEDIR: 0x200, EMPTY_PATH: 0x1000 } as const;
const SEEK = { SET: 0, CUR: 1, END: 2 } as const;
const F_SETFL = 4;
const POLL = { IN: 1, OUT: 4, HUP: 16, NVAL: 32 } as const;
const UTIME_OMIT = 0x3ffffffen;

/** Access rights (<winnt.h>). */
const ACCESS = {
  LIST_OR_READ: 0x1,
  WRITE_DATA: 0x2,
  APPEND_DATA: 0x4,
  TRAVERSE: 0x20,
  READ_ATTRIBUTES: 0x80,
  WRITE_ATTRIBUTES: 0x100,
  DELETE: 0x10000,
  SYNCHRONIZE: 0x100000,
} as const;
const DISPOSITION = { OPEN: 1, CREATE: 2, OPEN_IF: 3 } as const;
const OPTION = {
  DIRECTORY: 0x1,
  WRITE_THROUGH: 0x2,
  SYNCHRONOUS: 0x20,
  NOT_DIRECTORY: 0x40,
  BACKUP: 0x4000,
  REPARSE_POINT: 0x200000,
} as const;
const SHARE_ALL = 7;
const ATTRIBUTE = { NORMAL: 0x80, DIRECTORY: 0x10, REPARSE_POINT: 0x400 } as const;
const OBJ_CASE_INSENSITIVE = 0x40;
/** Classes of information. */
const INFO = {
  BASIC: 4,
  STANDARD: 5,
  INTERNAL: 6,
  RENAME: 10,
  LINK: 11,
  DISPOSITION: 13,
  END_OF_FILE: 20,
  PIPE: 23,
  ATTRIBUTE_TAG: 35,
  ID_BOTH_DIRECTORY: 37,
  DISPOSITION_EX: 64,
  RENAME_EX: 65,
} as const;
const FS_VOLUME = 1;
const FSCTL_GET_REPARSE_POINT = 0x900a8;
const TAG = { MOUNT_POINT: 0xa0000003, SYMLINK: 0xa000000c } as const;
/** FILE_DISPOSITION_DELETE, POSIX_SEMANTICS and IGNORE_READONLY_ATTRIBUTE; FILE_RENAME_REPLACE and POSIX_SEMANTICS. */
const DELETE_AT_ONCE = 0x1 | 0x2 | 0x10;
const REPLACE_AT_ONCE = 0x1 | 0x2;
/** The offset of a write that appends. */
const TO_END = -1n;

const FILE_TYPE = { DISK: 1, CHARACTER: 2, PIPE: 3 } as const;
const MODE = { FIFO: 0x1000, CHARACTER: 0x2000, DIRECTORY: 0x41ff, FILE: 0x81b6, LINK: 0xa1ff } as const;
/** Completion modes of FILE_PIPE_INFORMATION. */
const PIPE_MODE = { WAIT: 0, NOWAIT: 1 } as const;
const ERROR_BROKEN_PIPE = 109;
const ERROR_NO_DATA = 232;
const ERROR_HANDLE_EOF = 38;
const STANDARD_HANDLES = [-10, -11, -12];
const THIS_PROCESS = -1n;
const THIS_THREAD = -2n;

/** Offsets of the structures in the scratch memory. */
const AT_IO_STATUS = 0;
const AT_STRING = 16;
const AT_OBJECT = 32;
const AT_WORDS = 80;
const AT_NAME = 256;
const NAME_BYTES = 65536;
const AT_INFO = AT_NAME + NAME_BYTES;
const INFO_BYTES = 65536;
const OBJECT_BYTES = 48;
const STATX_BYTES = 256;
const MAX_PATH_BYTES = 8192;
/** The longest name of an entry, in UTF-16 units. */
const MAX_NAME_UNITS = 255;

/** 100 ns units from 1601 to 1970. */
const EPOCH = 116_444_736_000_000_000n;
const TICKS_PER_SECOND = 10_000_000n;
/** The interval at which a wait polls a pipe or a console, in 100 ns units. */
const LOOK_TICKS = 20_000n;
/** Processor times advance with the scheduler's clock. */
const PROCESSOR_TIME_RESOLUTION = 15_625_000n;

/** The machine that the calls use; a call returns the function's result and leaves its error in `error`. */
interface WindowsMachine {
  readonly call: (name: WindowsFunction, ...args: (number | bigint)[]) => bigint;
  /** GetLastError after the last call. */
  readonly error: () => number;
  readonly view: (address: number, bytes: number) => DataView;
  /** Memory for structures. */
  readonly scratch: number;
}

/** The machine that a host runs on. */
function windowsMachine(host: Host): WindowsMachine {
  const block = host.reserve(host.pageSize, PROT.READ | PROT.WRITE);
  const words = new BigInt64Array(host.view(block, WINDOWS_BLOCK.SIZE));
  const addresses = host.functionAddresses(FUNCTIONS);
  words[WINDOWS_BLOCK.GET_LAST_ERROR >> 3] = BigInt(addresses.GetLastError);
  const { call } = host.boundCalls(WINDOWS_CALL, { call: 0 }, block);
  return {
    call: (name, ...args) => {
      words[WINDOWS_BLOCK.FUNCTION >> 3] = BigInt(addresses[name]);
      args.forEach((value, k) => words[(WINDOWS_BLOCK.ARGUMENTS >> 3) + k] = BigInt(value));
      call();
      return words[WINDOWS_BLOCK.RESULT >> 3];
    },
    error: () => Number(words[WINDOWS_BLOCK.ERROR >> 3] & 0xffffffffn),
    view: (address, bytes) => new DataView(host.view(address, bytes)),
    scratch: host.reserve(AT_INFO + INFO_BYTES, PROT.READ | PROT.WRITE),
  };
}

/** An open file, directory or stream. */
interface Opened {
  readonly handle: bigint;
  /** A descriptor of the process itself: its position belongs to the handle. */
  readonly isStandard: boolean;
  readonly isDirectory: boolean;
  position: bigint;
  appends: boolean;
  /** The next getdents64 starts at the first entry. */
  restarts: boolean;
  /** A pipe that has just refused a write: the next poll reports it as not writable. */
  isFull: boolean;
}

type Arguments = readonly (number | bigint)[];

/** NTSTATUS of a result. */
function statusOf(result: bigint): number {
  return Number(BigInt.asUintN(32, result));
}

function errorOf(status: number): number {
  return STATUS_ERRORS.get(status) ?? E.IO;
}

/** True for an NTSTATUS of success; warnings and errors have the upper bits set. */
function isGood(status: number): boolean {
  return status < 0x80000000;
}

/** Whether the system or the file system lacks a class of information. */
function isUnknownClass(status: number): boolean {
  return status === STATUS_INVALID_INFO_CLASS || status === STATUS_INVALID_PARAMETER ||
    status === STATUS_NOT_SUPPORTED || status === STATUS_NOT_IMPLEMENTED;
}

/** The access, sharing and options with which an entry is opened. */
interface Opening {
  readonly access: number;
  readonly disposition?: number;
  readonly options?: number;
  /** Follows a reparse point; only for paths of the host. */
  readonly follow?: boolean;
}

/** The descriptors of this realm. */
const OPENED = new Map<number, Opened>();
/** Numbers of closed descriptors. */
const FREE: number[] = [];
/** The first number of a descriptor that is not the process's own. */
const FIRST_DESCRIPTOR = 1000;

/** Whether a number can be a descriptor of the JavaScript runtime: neither a standard stream nor one made here. */
function isForeign(fd: number): boolean {
  return fd >= STANDARD_HANDLES.length && fd < FIRST_DESCRIPTOR;
}

/** A stream of the process, which the process closes itself. */
function streamOf(handle: bigint): Opened {
  return {
    handle,
    isStandard: true,
    isDirectory: false,
    position: 0n,
    appends: false,
    restarts: false,
    isFull: false,
  };
}

/** The number for a new descriptor. */
function nextDescriptor(): number {
  return FREE.pop() ?? FIRST_DESCRIPTOR + OPENED.size;
}

/** A descriptor of this realm for a stream that the program opened by itself, and closes itself. */
export function streamDescriptor(handle: bigint): number {
  const fd = nextDescriptor();
  OPENED.set(fd, streamOf(handle));
  return fd;
}

/** Makes Linux's calls on Windows. */
class WindowsCalls {
  readonly #machine: WindowsMachine;
  readonly #scratch: DataView;
  readonly #rows: Readonly<Partial<Record<LinuxCall, (args: Arguments) => number>>>;

  constructor(machine: WindowsMachine) {
    this.#machine = machine;
    this.#scratch = machine.view(machine.scratch, AT_INFO + INFO_BYTES);
    this.#rows = {
      read: ([fd, at, bytes]) => this.#transfer("Read", fd, [[Number(at), Number(bytes)]]),
      write: ([fd, at, bytes]) => this.#transfer("Write", fd, [[Number(at), Number(bytes)]]),
      close: ([fd]) => this.#close(Number(fd)),
      lseek: ([fd, offset, whence]) => this.#seek(fd, BigInt(offset), Number(whence)),
      pread64: ([fd, at, bytes, offset]) => this.#transfer("Read", fd, [[Number(at), Number(bytes)]], BigInt(offset)),
      pwrite64: ([fd, at, bytes, offset]) => this.#transfer("Write", fd, [[Number(at), Number(bytes)]], BigInt(offset)),
      readv: ([fd, at, count]) => this.#transfer("Read", fd, this.#vectors(at, count)),
      writev: ([fd, at, count]) => this.#transfer("Write", fd, this.#vectors(at, count)),
      preadv2: ([fd, at, count]) => this.#transferNow("Read", fd, this.#vectors(at, count)),
      pwritev2: ([fd, at, count]) => this.#transferNow("Write", fd, this.#vectors(at, count)),
      preadv: ([fd, at, count, offset]) => this.#transfer("Read", fd, this.#vectors(at, count), BigInt(offset)),
      pwritev: ([fd, at, count, offset]) => this.#transfer("Write", fd, this.#vectors(at, count), BigInt(offset)),
      sched_yield: () => {
        machine.call("SwitchToThread");
        return 0;
      },
      shutdown: ([fd]) => this.#noSocket(fd),
      sendto: ([fd]) => this.#noSocket(fd),
      recvfrom: ([fd]) => this.#noSocket(fd),
      accept4: ([fd]) => this.#noSocket(fd),
      fcntl: ([fd, command, flags]) => this.#setFlags(fd, Number(command), Number(flags)),
      fsync: ([fd]) => this.#flush(fd),
      fdatasync: ([fd]) => this.#flush(fd),
      ftruncate: ([fd, size]) => this.#withOpened(fd, ({ handle }) => this.#setEnd(handle, BigInt(size))),
      fadvise64: ([fd]) => this.#withOpened(fd, () => 0), // advice without a counterpart
      fallocate: ([fd, , offset, length]) => this.#allocate(fd, BigInt(offset), BigInt(length)),
      getdents64: ([fd, at, bytes]) => this.#readDirectory(fd, Number(at), Number(bytes)),
      clock_gettime: ([clock, at]) => this.#time(Number(clock), Number(at)),
      clock_getres: ([clock, at]) => this.#resolution(Number(clock), Number(at)),
      openat: ([fd, path, flags]) => this.#open(Number(fd), this.#text(path), Number(flags)),
      mkdirat: ([fd, path]) => this.#makeDirectory(Number(fd), this.#text(path)),
      unlinkat: ([fd, path, flags]) => this.#remove(Number(fd), this.#text(path), Number(flags)),
      renameat2: ([from, path, to, target, flags]) =>
        Number(flags) !== 0
          ? E.INVAL
          : this.#move(INFO.RENAME_EX, Number(from), this.#text(path), Number(to), this.#text(target)),
      linkat: ([from, path, to, target]) =>
        this.#move(INFO.LINK, Number(from), this.#text(path), Number(to), this.#text(target)),
      symlinkat: () => E.PERM,
      readlinkat: ([fd, path, at, bytes]) => this.#readLink(Number(fd), this.#text(path), Number(at), Number(bytes)),
      ppoll: ([at, count, time]) => this.#poll(Number(at), Number(count), Number(time)),
      utimensat: ([fd, path, times]) => this.#setTimes(Number(fd), path, Number(times)),
      getrandom: ([at, bytes]) => {
        machine.call("ProcessPrng", at, bytes);
        return Number(bytes);
      },
      statx: ([fd, path, flags, , at]) => this.#status(Number(fd), this.#text(path), Number(flags), Number(at)),
    };
  }

  /** Makes a call: its result, or −errno. A call without a counterpart is ENOSYS. */
  readonly call: LinuxCalls = (name, ...args) =>
    this.#callOnRuntimeFile(name, args) ?? this.#rows[name]?.(args) ?? E.NOSYS;

  /** Makes a call on a descriptor of the runtime; undefined for other descriptors and calls. */
  #callOnRuntimeFile(name: LinuxCall, args: Arguments): number | undefined {
    const fd = Number(args[0]);
    return isForeign(fd) ? callOnRuntimeFile(name, fd, args, this.#machine.view) : undefined;
  }

  /** The text of a C string. */
  #text(address: number | bigint): string {
    const at = Number(address);
    if (at === 0) return "";
    const bytes = new Uint8Array(this.#machine.view(at, MAX_PATH_BYTES).buffer, 0);
    return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
  }

  /** The open file of a descriptor; the process's own on first use. */
  #opened(fd: number): Opened | undefined {
    const known = OPENED.get(fd);
    const standard = STANDARD_HANDLES[fd];
    if (known !== undefined || standard === undefined) return known;
    const handle = this.#machine.call("GetStdHandle", standard);
    if (handle === 0n || handle === -1n) return undefined;
    const opened = streamOf(handle);
    OPENED.set(fd, opened);
    return opened;
  }

  #withOpened(fd: number | bigint, use: (opened: Opened) => number): number {
    const opened = this.#opened(Number(fd));
    return opened === undefined ? E.BADF : use(opened);
  }

  #noSocket(fd: number | bigint): number {
    return this.#withOpened(fd, () => E.NOTSOCK);
  }

  #add(handle: bigint, isDirectory: boolean, appends: boolean): number {
    const fd = nextDescriptor();
    OPENED.set(fd, { ...streamOf(handle), isStandard: false, isDirectory, appends, restarts: true });
    return fd;
  }

  #close(fd: number): number {
    return this.#withOpened(fd, ({ handle, isStandard }) => {
      if (isStandard) return 0;
      OPENED.delete(fd);
      FREE.push(fd);
      this.#machine.call("NtClose", handle);
      return 0;
    });
  }

  // Names.

  /** Writes OBJECT_ATTRIBUTES of `name` in the directory of handle `root`; returns its address. */
  #attributes(root: bigint, name: string): number {
    const { scratch } = this.#machine;
    const view = this.#scratch;
    for (let k = 0; k < name.length; k++) view.setUint16(AT_NAME + 2 * k, name.charCodeAt(k), true);
    view.setUint16(AT_STRING, 2 * name.length, true);
    view.setUint16(AT_STRING + 2, 2 * name.length, true);
    view.setBigUint64(AT_STRING + 8, BigInt(scratch + AT_NAME), true);
    view.setBigUint64(AT_OBJECT, BigInt(OBJECT_BYTES), true);
    view.setBigUint64(AT_OBJECT + 8, root, true);
    view.setBigUint64(AT_OBJECT + 16, BigInt(scratch + AT_STRING), true);
    view.setBigUint64(AT_OBJECT + 24, BigInt(OBJ_CASE_INSENSITIVE), true);
    view.setBigUint64(AT_OBJECT + 32, 0n, true);
    view.setBigUint64(AT_OBJECT + 40, 0n, true);
    return scratch + AT_OBJECT;
  }

  /** The path of NT for a path of the host, through the current directory. */
  #hostPath(given: string): string {
    const { call, scratch } = this.#machine;
    const path = /^[A-Za-z]:$/.test(given) ? `${given}\\` : given; // else the current directory of that drive
    if (path.length * 2 >= NAME_BYTES) return "";
    for (let k = 0; k <= path.length; k++) {
      this.#scratch.setUint16(AT_NAME + 2 * k, k < path.length ? path.charCodeAt(k) : 0, true);
    }
    const units = INFO_BYTES / 2;
    const length = Number(call("GetFullPathNameW", scratch + AT_NAME, units, scratch + AT_INFO, 0) & 0xffffffffn);
    const full = this.#wideText(AT_INFO, length < units ? length : 0);
    if (/^\\\\[?.]\\/.test(full)) return `\\??\\${full.slice(4)}`;
    return full.startsWith("\\\\") ? `\\??\\UNC\\${full.slice(2)}` : `\\??\\${full}`;
  }

  #wideText(at: number, units: number): string {
    return new TextDecoder("utf-16le").decode(new Uint8Array(this.#scratch.buffer, at, 2 * units));
  }

  /** The path of an open directory with `..` steps behind it, as the host names it. */
  #pathAbove(handle: bigint, steps: string): string {
    const { call, scratch } = this.#machine;
    const length = Number(
      call("GetFinalPathNameByHandleW", handle, scratch + AT_INFO, INFO_BYTES / 2, 0) & 0xffffffffn,
    );
    const base = this.#wideText(AT_INFO, length).replace(/^\\\\\?\\(?:UNC\\)?/, "");
    return `${base}\\${steps.replaceAll("/", "\\")}`;
  }

  /**
   * Opens `name` in the directory `fd`, or a path of the host: a handle, or −errno. A trailing slash needs a directory.
   */
  #openName(fd: number, name: string, opening: Opening): bigint | number {
    const { access, disposition = DISPOSITION.OPEN, options = 0, follow = false } = opening;
    let root = 0n;
    let target: string;
    let plain = name;
    if (fd === AT.FDCWD) target = this.#hostPath(name);
    else {
      const directory = this.#opened(fd);
      if (directory === undefined) return E.BADF;
      plain = name.replace(/\/+$/, "");
      if (/^(?:\.\.\/)*\.$/.test(plain) && plain !== ".") {
        target = this.#hostPath(this.#pathAbove(directory.handle, plain));
      } else {
        if (plain !== "." && !isWindowsName(plain)) return E.INVAL;
        if (plain.length > MAX_NAME_UNITS) return E.NAMETOOLONG;
        root = directory.handle;
        target = plain === "." ? "" : plain;
      }
    }
    if (target.length > NAME_BYTES / 2 - 1) return E.NAMETOOLONG;
    const needsDirectory = plain !== name ? OPTION.DIRECTORY : 0;
    const flags = OPTION.SYNCHRONOUS | OPTION.BACKUP | (follow ? 0 : OPTION.REPARSE_POINT) | options | needsDirectory;
    const handle = this.#create(root, target, access, disposition, flags);
    if (typeof handle === "number" || root === 0n || !plain.includes("~")) return handle;
    return this.#isItsName(handle, plain) ? handle : this.#refuse(handle, E.NOENT);
  }

  /** NtCreateFile: the handle, or −errno. */
  #create(root: bigint, target: string, access: number, disposition: number, options: number): bigint | number {
    const { call, scratch } = this.#machine;
    const attributes = this.#attributes(root, target);
    const wanted = access | ACCESS.SYNCHRONIZE | ACCESS.READ_ATTRIBUTES;
    const [handleAt, statusAt] = [scratch + AT_WORDS, scratch + AT_IO_STATUS];
    const status = statusOf(
      // deno-fmt-ignore
      call("NtCreateFile", handleAt, wanted, attributes, statusAt, 0, ATTRIBUTE.NORMAL, SHARE_ALL, disposition, options, 0, 0),
    );
    return isGood(status) ? this.#scratch.getBigUint64(AT_WORDS, true) : errorOf(status);
  }

  #refuse(handle: bigint, error: number): number {
    this.#machine.call("NtClose", handle);
    return error;
  }

  /** Whether this is the entry's own name, not the short one that the file system made for it. */
  #isItsName(handle: bigint, name: string): boolean {
    const { call, scratch } = this.#machine;
    const length = Number(
      call("GetFinalPathNameByHandleW", handle, scratch + AT_INFO, INFO_BYTES / 2, 0) & 0xffffffffn,
    );
    const own = this.#wideText(AT_INFO, length);
    return own.slice(own.lastIndexOf("\\") + 1).toLowerCase() === name.toLowerCase();
  }

  /** Whether the directory has an entry with another name whose short name this is. */
  #isShortName(directory: bigint, name: string): boolean {
    if (!name.includes("~")) return false;
    const options = OPTION.SYNCHRONOUS | OPTION.BACKUP | OPTION.REPARSE_POINT;
    const handle = this.#create(directory, name, 0, DISPOSITION.OPEN, options);
    if (typeof handle === "number") return false;
    try {
      return !this.#isItsName(handle, name);
    } finally {
      this.#machine.call("NtClose", handle);
    }
  }

  /** Opens a name, uses the handle and closes it. */
  #with(fd: number, name: string, opening: Opening, use: (handle: bigint) => number): number {
    const handle = this.#openName(fd, name, opening);
    if (typeof handle === "number") return handle;
    try {
      return use(handle);
    } finally {
      this.#machine.call("NtClose", handle);
    }
  }

  #open(fd: number, path: string, flags: number): number {
    const writes = (flags & (O.WRONLY | O.RDWR)) !== 0;
    const reads = (flags & O.WRONLY) === 0;
    const isDirectory = (flags & O.DIRECTORY) !== 0;
    const base = (reads ? ACCESS.LIST_OR_READ | ACCESS.TRAVERSE : 0) |
      (writes ? ACCESS.WRITE_DATA | ACCESS.APPEND_DATA : 0);
    const disposition = (flags & O.CREAT) === 0
      ? DISPOSITION.OPEN
      : (flags & O.EXCL) !== 0
      ? DISPOSITION.CREATE
      : DISPOSITION.OPEN_IF;
    const options = (isDirectory ? OPTION.DIRECTORY : writes || (flags & O.CREAT) !== 0 ? OPTION.NOT_DIRECTORY : 0) |
      ((flags & O.DSYNC) !== 0 ? OPTION.WRITE_THROUGH : 0);
    if (isDirectory && writes) return this.#with(fd, path, { access: 0, options: OPTION.DIRECTORY }, () => E.ISDIR);
    const opening = { disposition, options, follow: fd === AT.FDCWD };
    // The right to set times comes with the descriptor, unless the file's owner refuses it.
    let handle = this.#openName(fd, path, { ...opening, access: base | ACCESS.WRITE_ATTRIBUTES });
    if (handle === E.ACCES || handle === E.ROFS) handle = this.#openName(fd, path, { ...opening, access: base });
    return typeof handle === "number" ? handle : this.#finishOpen(handle, flags);
  }

  /** Refuses links, truncates where that is wanted, and gives the handle a number. */
  #finishOpen(handle: bigint, flags: number): number {
    const facts = this.#attributeTag(handle);
    if (facts.isLink) return this.#refuse(handle, E.LOOP);
    // A device, such as `nul`, opens as a directory, too.
    if ((flags & O.DIRECTORY) !== 0 && !facts.isDirectory) return this.#refuse(handle, E.NOTDIR);
    if ((flags & O.TRUNC) !== 0 && !facts.isDirectory) {
      const error = this.#setEnd(handle, 0n);
      if (error < 0) return this.#refuse(handle, error);
    }
    return this.#add(handle, facts.isDirectory, (flags & O.APPEND) !== 0);
  }

  #attributeTag(handle: bigint): { isDirectory: boolean; isLink: boolean } {
    const status = this.#query(handle, INFO.ATTRIBUTE_TAG, 8);
    const attributes = isGood(status) ? this.#scratch.getUint32(AT_INFO, true) : 0;
    const tag = this.#scratch.getUint32(AT_INFO + 4, true);
    const isLink = (attributes & ATTRIBUTE.REPARSE_POINT) !== 0 && (tag === TAG.SYMLINK || tag === TAG.MOUNT_POINT);
    return { isDirectory: (attributes & ATTRIBUTE.DIRECTORY) !== 0, isLink };
  }

  /** NtQueryInformationFile into the scratch memory: NTSTATUS. */
  #query(handle: bigint, info: number, bytes: number): number {
    const { call, scratch } = this.#machine;
    return statusOf(call("NtQueryInformationFile", handle, scratch + AT_IO_STATUS, scratch + AT_INFO, bytes, info));
  }

  /** NtSetInformationFile from the scratch memory: NTSTATUS. */
  #set(handle: bigint, info: number, bytes: number): number {
    const { call, scratch } = this.#machine;
    return statusOf(call("NtSetInformationFile", handle, scratch + AT_IO_STATUS, scratch + AT_INFO, bytes, info));
  }

  #setEnd(handle: bigint, size: bigint): number {
    if (size < 0n) return E.INVAL;
    this.#scratch.setBigInt64(AT_INFO, size, true);
    const status = this.#set(handle, INFO.END_OF_FILE, 8);
    return this.#failure(status);
  }

  #makeDirectory(fd: number, path: string): number {
    const options = OPTION.DIRECTORY;
    return this.#with(fd, path, { access: 0, disposition: DISPOSITION.CREATE, options }, () => 0);
  }

  #remove(fd: number, path: string, flags: number): number {
    if (path === ".") return (flags & AT.REMOVEDIR) !== 0 ? E.INVAL : E.ISDIR;
    const options = (flags & AT.REMOVEDIR) !== 0 ? OPTION.DIRECTORY : OPTION.NOT_DIRECTORY;
    if (path.endsWith("/") && options === OPTION.NOT_DIRECTORY) {
      return this.#with(fd, path, { access: 0 }, () => E.ISDIR);
    }
    return this.#with(fd, path, { access: ACCESS.DELETE, options }, (handle) => {
      this.#scratch.setUint32(AT_INFO, DELETE_AT_ONCE, true);
      let status = this.#set(handle, INFO.DISPOSITION_EX, 4);
      if (isUnknownClass(status)) {
        this.#scratch.setUint32(AT_INFO, 1, true);
        status = this.#set(handle, INFO.DISPOSITION, 1);
      }
      return isGood(status) ? 0 : errorOf(status);
    });
  }

  /** Renames or links an entry. */
  #move(info: typeof INFO.RENAME_EX | typeof INFO.LINK, fd: number, path: string, to: number, target: string): number {
    const directory = this.#opened(to);
    if (directory === undefined) return E.BADF;
    const name = target.replace(/\/+$/, "");
    if (!isWindowsName(name)) return name === "." ? E.BUSY : E.INVAL;
    if (name.length > MAX_NAME_UNITS) return E.NAMETOOLONG;
    if (info === INFO.LINK) {
      if (target !== name) {
        const found = this.#with(to, name, { access: 0 }, () => 1);
        return found > 0 ? E.EXIST : E.NOENT;
      }
      return this.#with(fd, path, { access: ACCESS.WRITE_ATTRIBUTES }, (handle) => {
        if (this.#attributeTag(handle).isDirectory) return E.PERM;
        return this.#failure(this.#setName(handle, INFO.LINK, 0, directory.handle, name));
      });
    }
    if (path === ".") return E.BUSY;
    return this.#with(fd, path, { access: ACCESS.DELETE }, (handle) => {
      const source = this.#attributeTag(handle);
      if (!source.isDirectory && target !== name) return E.NOTDIR;
      // The system replaces an entry by its short name, too.
      if (this.#isShortName(directory.handle, name)) return E.INVAL;
      const kinds = this.#with(to, name, { access: 0 }, (old) => this.#attributeTag(old).isDirectory ? 1 : 2);
      if (kinds === 1 && !source.isDirectory) return E.ISDIR;
      if (kinds === 2 && source.isDirectory) return E.NOTDIR;
      const moved = this.#rename(handle, directory.handle, name);
      if (kinds !== 1 || (moved !== E.ACCES && moved !== E.EXIST)) return moved;
      // A file system without POSIX renames replaces no directory, not even an empty one.
      if (this.#isSame(handle, to, name)) return 0;
      const removed = this.#remove(to, name, AT.REMOVEDIR);
      return removed < 0 ? removed : this.#rename(handle, directory.handle, name);
    });
  }

  /** Gives an entry another name, in place of an entry that has it. */
  #rename(handle: bigint, directory: bigint, name: string): number {
    const status = this.#setName(handle, INFO.RENAME_EX, REPLACE_AT_ONCE, directory, name);
    return this.#failure(isUnknownClass(status) ? this.#setName(handle, INFO.RENAME, 1, directory, name) : status);
  }

  /** Whether this is the entry `name` of a directory. */
  #isSame(handle: bigint, fd: number, name: string): boolean {
    const identity = (of: bigint) =>
      isGood(this.#query(of, INFO.INTERNAL, 8)) ? this.#scratch.getBigUint64(AT_INFO, true) : 0n;
    const own = identity(handle);
    return this.#with(fd, name, { access: 0 }, (other) => identity(other) === own ? 1 : 0) === 1;
  }

  #failure(status: number): number {
    return isGood(status) ? 0 : errorOf(status);
  }

  /** Sets FILE_RENAME_INFORMATION or FILE_LINK_INFORMATION: NTSTATUS. */
  #setName(handle: bigint, info: number, flags: number, directory: bigint, name: string): number {
    const view = this.#scratch;
    view.setBigUint64(AT_INFO, BigInt(flags), true);
    view.setBigUint64(AT_INFO + 8, directory, true);
    view.setUint32(AT_INFO + 16, 2 * name.length, true);
    for (let k = 0; k < name.length; k++) view.setUint16(AT_INFO + 20 + 2 * k, name.charCodeAt(k), true);
    return this.#set(handle, info, 24 + 2 * name.length);
  }

  /**
   * The target of a symbolic link, with slashes. A junction, and a link with an absolute target, yield a path that
   * begins with a slash, which WASI refuses as one outside every directory.
   */
  #readLink(fd: number, path: string, at: number, bytes: number): number {
    return this.#with(fd, path, { access: 0 }, (handle) => {
      if (!this.#attributeTag(handle).isLink) return E.INVAL;
      const { call, scratch, view } = this.#machine;
      const status = statusOf(
        // deno-fmt-ignore
        call("NtFsControlFile", handle, 0, 0, 0, scratch + AT_IO_STATUS, FSCTL_GET_REPARSE_POINT, 0, 0, scratch + AT_INFO, INFO_BYTES),
      );
      if (!isGood(status)) return errorOf(status);
      const encoded = new TextEncoder().encode(this.#linkTarget());
      const length = Math.min(encoded.length, bytes);
      new Uint8Array(view(at, bytes).buffer).set(encoded.subarray(0, length));
      return length;
    });
  }

  /** The target in the REPARSE_DATA_BUFFER of the scratch memory. */
  #linkTarget(): string {
    const view = this.#scratch;
    const isSymlink = view.getUint32(AT_INFO, true) === TAG.SYMLINK;
    const [offset, length] = [view.getUint16(AT_INFO + 8, true), view.getUint16(AT_INFO + 10, true)];
    const isRelative = isSymlink && (view.getUint32(AT_INFO + 16, true) & 1) !== 0;
    const target = this.#wideText(AT_INFO + (isSymlink ? 20 : 16) + offset, length / 2).replaceAll("\\", "/");
    return isRelative && !/^[A-Za-z]:/.test(target) ? target : `/${target}`;
  }

  // Reading and writing.

  #vectors(at: number | bigint, count: number | bigint): [number, number][] {
    const view = this.#machine.view(Number(at), Math.max(16 * Number(count), 1));
    return Array.from({ length: Number(count) }, (_, k) => [
      Number(view.getBigUint64(16 * k, true)),
      Number(view.getBigUint64(16 * k + 8, true)),
    ]);
  }

  /** Reads or writes vectors in turn; the bytes moved, or −errno when there were none. */
  #transfer(
    way: "Read" | "Write",
    fd: number | bigint,
    vectors: readonly (readonly [address: number, bytes: number])[],
    offset?: bigint,
  ): number {
    return this.#withOpened(fd, (opened) => {
      if (opened.isDirectory) return E.ISDIR;
      if (offset !== undefined && opened.isStandard && !this.#isFile(opened.handle)) return E.SPIPE;
      let done = 0;
      for (const [address, bytes] of vectors) {
        if (bytes === 0) continue;
        const moved = opened.isStandard && offset === undefined
          ? this.#moveStream(way, opened, address, bytes)
          : this.#moveFile(way, opened, address, bytes, offset === undefined ? undefined : offset + BigInt(done));
        if (moved < 0) return done > 0 ? done : moved;
        done += moved;
        if (moved < bytes) break;
      }
      return done;
    });
  }

  #moveStream(way: "Read" | "Write", { handle }: Opened, address: number, bytes: number): number {
    const { call, scratch, error } = this.#machine;
    const good = call(`${way}File`, handle, address, Math.min(bytes, 0x7fffffff), scratch + AT_WORDS, 0) & 0xffffffffn;
    if (good !== 0n) return this.#scratch.getUint32(AT_WORDS, true);
    const code = error();
    if (code === ERROR_BROKEN_PIPE || code === ERROR_NO_DATA) return way === "Read" ? 0 : E.PIPE;
    return code === ERROR_HANDLE_EOF ? 0 : code === 5 || code === 6 ? E.BADF : E.IO;
  }

  /** Moves the first vector through a pipe without waiting: the bytes moved, EAGAIN, or EOPNOTSUPP for no pipe. */
  #transferNow(way: "Read" | "Write", fd: number | bigint, [vector]: readonly (readonly [number, number])[]): number {
    return this.#withOpened(fd, (opened) => {
      const { handle } = opened;
      if (vector === undefined || !this.#setPipeMode(handle, PIPE_MODE.NOWAIT)) return E.OPNOTSUPP;
      try {
        if (way === "Write") return this.#writeNow(opened, ...vector);
        const got = this.#moveStream(way, opened, ...vector);
        return got === 0 && this.#machine.error() === ERROR_NO_DATA ? E.AGAIN : got;
      } finally {
        this.#setPipeMode(handle, PIPE_MODE.WAIT);
      }
    });
  }

  /** Writes as much as a pipe takes. It may refuse more than it has room for as a whole. */
  #writeNow(opened: Opened, address: number, bytes: number): number {
    for (let size = bytes; size > 0; size >>= 1) {
      const done = this.#moveStream("Write", opened, address, size);
      if (done !== 0) return done;
    }
    opened.isFull = true;
    return E.AGAIN;
  }

  /** Sets whether reads and writes of a pipe wait; false where that cannot be chosen. */
  #setPipeMode(handle: bigint, mode: number): boolean {
    if (!isGood(this.#query(handle, INFO.PIPE, 8))) return false;
    this.#scratch.setUint32(AT_INFO + 4, mode, true); // behind the mode of reading, which stays
    return isGood(this.#set(handle, INFO.PIPE, 8));
  }

  #moveFile(way: "Read" | "Write", opened: Opened, address: number, bytes: number, offset?: bigint): number {
    const { call, scratch } = this.#machine;
    const appends = way === "Write" && opened.appends;
    this.#scratch.setBigInt64(AT_WORDS, appends ? TO_END : offset ?? opened.position, true);
    const size = Math.min(bytes, 0x7fffffff);
    const [statusAt, offsetAt] = [scratch + AT_IO_STATUS, scratch + AT_WORDS];
    const status = statusOf(call(`Nt${way}File`, opened.handle, 0, 0, 0, statusAt, address, size, offsetAt, 0));
    if (status === STATUS_END_OF_FILE) return 0;
    if (!isGood(status)) return status === 0xc0000022 ? E.BADF : errorOf(status);
    const moved = Number(this.#scratch.getBigUint64(AT_IO_STATUS + 8, true));
    if (offset === undefined) opened.position = appends ? this.#size(opened.handle) : opened.position + BigInt(moved);
    return moved;
  }

  #size(handle: bigint): bigint {
    return isGood(this.#query(handle, INFO.STANDARD, 24)) ? this.#scratch.getBigInt64(AT_INFO + 8, true) : 0n;
  }

  #seek(fd: number | bigint, offset: bigint, whence: number): number {
    return this.#withOpened(fd, (opened) => {
      if (opened.isDirectory) {
        opened.restarts ||= offset === 0n && whence === SEEK.SET;
        return 0;
      }
      if (opened.isStandard) return this.#seekStream(opened.handle, offset, whence);
      const base = whence === SEEK.SET ? 0n : whence === SEEK.CUR ? opened.position : this.#size(opened.handle);
      if (base + offset < 0n) return E.INVAL;
      opened.position = base + offset;
      return Number(opened.position);
    });
  }

  #isFile(handle: bigint): boolean {
    return Number(this.#machine.call("GetFileType", handle) & 0xffffffffn) === FILE_TYPE.DISK;
  }

  #seekStream(handle: bigint, offset: bigint, whence: number): number {
    const { call, scratch } = this.#machine;
    if (!this.#isFile(handle)) return E.SPIPE;
    if ((call("SetFilePointerEx", handle, offset, scratch + AT_WORDS, whence) & 0xffffffffn) === 0n) return E.INVAL;
    return Number(this.#scratch.getBigInt64(AT_WORDS, true));
  }

  #setFlags(fd: number | bigint, command: number, flags: number): number {
    return this.#withOpened(fd, (opened) => {
      if (command !== F_SETFL) return E.INVAL;
      opened.appends = (flags & O.APPEND) !== 0;
      return 0;
    });
  }

  #flush(fd: number | bigint): number {
    return this.#withOpened(fd, ({ handle }) => {
      const status = statusOf(this.#machine.call("NtFlushBuffersFile", handle, this.#machine.scratch + AT_IO_STATUS));
      return isGood(status) || status === 0xc0000022 ? 0 : errorOf(status); // a reader has nothing to flush
    });
  }

  #allocate(fd: number | bigint, offset: bigint, length: bigint): number {
    if (offset < 0n || length <= 0n) return E.INVAL;
    return this.#withOpened(fd, ({ handle, isDirectory }) => {
      if (isDirectory) return E.ISDIR;
      return offset + length <= this.#size(handle) ? 0 : this.#setEnd(handle, offset + length);
    });
  }

  // Directories and status.

  /** Writes entries as Linux's, as many as fit; 0 at the end. */
  #readDirectory(fd: number | bigint, at: number, bytes: number): number {
    return this.#withOpened(fd, (opened) => {
      if (!opened.isDirectory) return E.NOTDIR;
      const { call, scratch, view } = this.#machine;
      // An entry of Linux, in UTF-8, is at most one and a half times as long.
      const room = Math.min(Math.floor(bytes / 2), INFO_BYTES);
      const restart = opened.restarts ? 1 : 0;
      const status = statusOf(
        // deno-fmt-ignore
        call("NtQueryDirectoryFile", opened.handle, 0, 0, 0, scratch + AT_IO_STATUS, scratch + AT_INFO, room, INFO.ID_BOTH_DIRECTORY, 0, 0, restart),
      );
      if (status === STATUS_NO_MORE_FILES || status === STATUS_NO_SUCH_FILE) return 0;
      if (!isGood(status)) return errorOf(status);
      opened.restarts = false;
      return this.#writeEntries(view(at, bytes));
    });
  }

  /** Translates FILE_ID_BOTH_DIR_INFORMATION to linux_dirent64; the bytes written. */
  #writeEntries(to: DataView): number {
    const from = this.#scratch;
    let used = 0;
    for (let entry = AT_INFO;;) {
      const name = new TextEncoder().encode(this.#wideText(entry + 104, from.getUint32(entry + 60, true) / 2));
      const attributes = from.getUint32(entry + 56, true);
      const size = Math.ceil((20 + name.length) / 8) * 8;
      to.setBigUint64(used, from.getBigUint64(entry + 96, true), true);
      to.setBigUint64(used + 8, 0n, true);
      to.setUint16(used + 16, size, true);
      to.setUint8(
        used + 18,
        (attributes & ATTRIBUTE.REPARSE_POINT) !== 0 ? 10 : (attributes & ATTRIBUTE.DIRECTORY) !== 0 ? 4 : 8,
      );
      for (let k = 0; k < size - 19; k++) to.setUint8(used + 19 + k, name[k] ?? 0);
      used += size;
      const next = from.getUint32(entry, true);
      if (next === 0) return used;
      entry += next;
    }
  }

  #status(fd: number, path: string, flags: number, at: number): number {
    if ((flags & AT.EMPTY_PATH) !== 0 && path === "") {
      return this.#withOpened(fd, (opened) => this.#writeStatus(opened.handle, at));
    }
    const follow = fd === AT.FDCWD && (flags & AT.NOFOLLOW) === 0;
    return this.#with(fd, path, { access: 0, follow }, (handle) => this.#writeStatus(handle, at));
  }

  #writeStatus(handle: bigint, at: number): number {
    const { call, scratch, view } = this.#machine;
    const to = view(at, STATX_BYTES);
    new Uint8Array(to.buffer).fill(0);
    const type = Number(call("GetFileType", handle) & 0xffffffffn);
    if (type !== FILE_TYPE.DISK) {
      to.setUint16(28, type === FILE_TYPE.PIPE ? MODE.FIFO : MODE.CHARACTER, true);
      return type === 0 ? E.BADF : 0;
    }
    const { isDirectory, isLink } = this.#attributeTag(handle);
    to.setUint16(28, isLink ? MODE.LINK : isDirectory ? MODE.DIRECTORY : MODE.FILE, true);
    let status = this.#query(handle, INFO.STANDARD, 24);
    if (!isGood(status)) return errorOf(status);
    to.setBigInt64(40, this.#scratch.getBigInt64(AT_INFO + 8, true), true);
    to.setUint32(16, Math.max(this.#scratch.getUint32(AT_INFO + 16, true), 1), true);
    status = this.#query(handle, INFO.INTERNAL, 8);
    if (!isGood(status)) return errorOf(status);
    to.setBigUint64(32, this.#scratch.getBigUint64(AT_INFO, true), true);
    status = this.#query(handle, INFO.BASIC, 40);
    if (!isGood(status)) return errorOf(status);
    for (const [from, time] of [[8, 64], [16, 112], [24, 96]] as const) {
      const ticks = this.#scratch.getBigInt64(AT_INFO + from, true) - EPOCH;
      this.#writeTime(to, time, ticks < 0n ? 0n : ticks);
    }
    const [statusAt, infoAt] = [scratch + AT_IO_STATUS, scratch + AT_INFO];
    if (isGood(statusOf(call("NtQueryVolumeInformationFile", handle, statusAt, infoAt, INFO_BYTES, FS_VOLUME)))) {
      to.setUint32(140, this.#scratch.getUint32(AT_INFO + 8, true), true);
    }
    return 0;
  }

  /** Writes 100 ns units as a timespec. */
  #writeTime(to: DataView, at: number, ticks: bigint): void {
    to.setBigInt64(at, ticks / TICKS_PER_SECOND, true);
    to.setUint32(at + 8, Number(ticks % TICKS_PER_SECOND) * 100, true);
  }

  #setTimes(fd: number, path: number | bigint, times: number): number {
    const view = this.#machine.view(times, 32);
    const [accessed, modified] = [0, 16].map((at) => {
      const nanoseconds = view.getBigInt64(at + 8, true);
      if (nanoseconds === UTIME_OMIT) return 0n;
      return view.getBigInt64(at, true) * TICKS_PER_SECOND + nanoseconds / 100n + EPOCH;
    });
    const set = (handle: bigint): number => {
      new Uint8Array(this.#scratch.buffer, AT_INFO, 40).fill(0);
      this.#scratch.setBigInt64(AT_INFO + 8, accessed!, true);
      this.#scratch.setBigInt64(AT_INFO + 16, modified!, true);
      const status = this.#set(handle, INFO.BASIC, 40);
      return isGood(status) ? 0 : errorOf(status);
    };
    if (Number(path) === 0) return this.#withOpened(fd, ({ handle }) => set(handle));
    return this.#with(fd, this.#text(path), { access: ACCESS.WRITE_ATTRIBUTES }, set);
  }

  // Clocks and waits.

  /** The time of a clock in 100 ns units; undefined for an unknown clock. */
  #ticks(clock: number): bigint | undefined {
    const { call, scratch } = this.#machine;
    const at = (k: number) => scratch + AT_WORDS + 8 * k;
    const word = (k: number) => this.#scratch.getBigInt64(AT_WORDS + 8 * k, true);
    if (clock === 0) {
      call("GetSystemTimePreciseAsFileTime", at(0));
      return word(0) - EPOCH;
    }
    if (clock === 1) {
      call("QueryUnbiasedInterruptTimePrecise", at(0));
      return word(0);
    }
    if (clock === 2) call("GetProcessTimes", THIS_PROCESS, at(0), at(1), at(2), at(3));
    else if (clock === 3) call("GetThreadTimes", THIS_THREAD, at(0), at(1), at(2), at(3));
    else return undefined;
    return word(2) + word(3);
  }

  #time(clock: number, at: number): number {
    const ticks = this.#ticks(clock);
    if (ticks === undefined) return E.INVAL;
    const to = this.#machine.view(at, 16);
    to.setBigInt64(0, ticks / TICKS_PER_SECOND, true);
    to.setBigInt64(8, ticks % TICKS_PER_SECOND * 100n, true);
    return 0;
  }

  #resolution(clock: number, at: number): number {
    if (clock < 0 || clock > 3) return E.INVAL;
    const to = this.#machine.view(at, 16);
    to.setBigInt64(0, 0n, true);
    to.setBigInt64(8, clock < 2 ? 100n : PROCESSOR_TIME_RESOLUTION, true);
    return 0;
  }

  #poll(at: number, count: number, timeAt: number): number {
    const records = this.#machine.view(at, Math.max(8 * count, 1));
    const time = timeAt === 0 ? undefined : this.#machine.view(timeAt, 16);
    const wanted = time === undefined
      ? undefined
      : time.getBigInt64(0, true) * TICKS_PER_SECOND + (time.getBigInt64(8, true) + 99n) / 100n;
    const started = this.#ticks(1)!;
    for (;;) {
      let ready = 0;
      for (let k = 0; k < count; k++) if (this.#look(records, 8 * k)) ready++;
      if (ready > 0) return ready;
      const left = wanted === undefined ? undefined : wanted - (this.#ticks(1)! - started);
      if (left !== undefined && left <= 0n) return 0;
      this.#sleep(count === 0 ? left ?? LOOK_TICKS : left === undefined || left > LOOK_TICKS ? LOOK_TICKS : left);
    }
  }

  #sleep(ticks: bigint): void {
    this.#scratch.setBigInt64(AT_WORDS, -ticks, true); // negative: from now on
    this.#machine.call("NtDelayExecution", 0, this.#machine.scratch + AT_WORDS);
  }

  /** Fills the result of one pollfd record; returns whether it has any event. */
  #look(records: DataView, at: number): boolean {
    const fd = records.getInt32(at, true);
    const opened = this.#opened(fd);
    const events = records.getUint16(at + 4, true);
    const found = opened === undefined
      ? isForeign(fd) && isRuntimeFile(fd) ? events & (POLL.IN | POLL.OUT) : POLL.NVAL
      : this.#writable(opened, events) | ((events & POLL.IN) !== 0 ? this.#readable(opened.handle) : 0);
    records.setUint16(at + 6, found, true);
    return found !== 0;
  }

  #writable(opened: Opened, events: number): number {
    if ((events & POLL.OUT) === 0) return 0;
    const wasFull = opened.isFull;
    opened.isFull = false;
    return wasFull ? 0 : POLL.OUT;
  }

  #readable(handle: bigint): number {
    const { call, scratch, error } = this.#machine;
    const type = Number(call("GetFileType", handle) & 0xffffffffn);
    const words = scratch + AT_WORDS;
    if (type === FILE_TYPE.PIPE) {
      if ((call("PeekNamedPipe", handle, 0, 0, 0, words, 0) & 0xffffffffn) !== 0n) {
        return this.#scratch.getUint32(AT_WORDS, true) > 0 ? POLL.IN : 0;
      }
      return error() === ERROR_BROKEN_PIPE ? POLL.IN | POLL.HUP : POLL.IN;
    }
    if (type !== FILE_TYPE.CHARACTER || (call("GetConsoleMode", handle, words) & 0xffffffffn) === 0n) return POLL.IN;
    call("GetNumberOfConsoleInputEvents", handle, words);
    return this.#scratch.getUint32(AT_WORDS, true) > 0 ? POLL.IN : 0;
  }
}

/** The calls of each host, which looks its functions up once. */
const CALLS = new WeakMap<Host, LinuxCalls>();

/** The calls of a host on Windows. */
export function windowsCalls(host: Host): LinuxCalls {
  const known = CALLS.get(host) ?? new WindowsCalls(windowsMachine(host)).call;
  CALLS.set(host, known);
  return known;
}
