/**
 * Functions of ntdll and kernel32, and memory for their structures. In: names of functions with their arguments,
 * handles of files. Out: results, as NTSTATUS or as −errno of Linux, and structures in the memory `scratch`.
 *
 * Invariant: a structure is valid until the next call.
 *
 * Sources: "NtQueryInformationFile", "NtSetInformationFile" of Microsoft's documentation; [MS-FSCC]; [MS-ERREF].
 */
import { fromBase64 } from "../../base/base64.ts";
import { WINDOWS_CALL } from "../code/generated_windows_code.ts";
import { WINDOWS_BLOCK } from "../code/windows_code.ts";
import { type Host, PROT } from "../host.ts";
import { E } from "./linux_errors.ts";

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

export const STATUS_ACCESS_DENIED = 0xc0000022;
/** [NTSTATUS, −errno]; every other failure is EIO. */
const STATUS_ERRORS: ReadonlyMap<number, number> = new Map([
  [0xc0000008, E.BADF], // STATUS_INVALID_HANDLE
  [0xc000000d, E.INVAL], // STATUS_INVALID_PARAMETER
  [0xc000000f, E.NOENT], // STATUS_NO_SUCH_FILE
  [0xc0000010, E.OPNOTSUPP], // STATUS_INVALID_DEVICE_REQUEST
  [STATUS_ACCESS_DENIED, E.ACCES],
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
export const STATUS_END_OF_FILE = 0xc0000011;
export const STATUS_NO_MORE_FILES = 0x80000006;
export const STATUS_NO_SUCH_FILE = 0xc000000f;

/** Classes of information. */
export const INFO = {
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
/** Tags of reparse points that are links. */
export const TAG = { MOUNT_POINT: 0xa0000003, SYMLINK: 0xa000000c } as const;
/** Results of GetFileType. */
export const FILE_TYPE = { DISK: 1, CHARACTER: 2, PIPE: 3 } as const;
/** Attributes of files. */
export const ATTRIBUTE = { NORMAL: 0x80, DIRECTORY: 0x10, REPARSE_POINT: 0x400 } as const;
export const ERROR_BROKEN_PIPE = 109;

/** Offsets of the structures in the scratch memory. */
export const AT_IO_STATUS = 0;
export const AT_STRING = 16;
export const AT_OBJECT = 32;
export const AT_WORDS = 80;
export const AT_NAME = 256;
export const NAME_BYTES = 65536;
export const AT_INFO = AT_NAME + NAME_BYTES;
export const INFO_BYTES = 65536;
const MAX_PATH_BYTES = 8192;

/** 100 ns units from 1601 to 1970. */
export const EPOCH = 116_444_736_000_000_000n;
export const TICKS_PER_SECOND = 10_000_000n;

/** NTSTATUS of a result. */
export function statusOf(result: bigint): number {
  return Number(BigInt.asUintN(32, result));
}

export function errorOf(status: number): number {
  return STATUS_ERRORS.get(status) ?? E.IO;
}

/** True for an NTSTATUS of success; warnings and errors have the upper bits set. */
export function isGood(status: number): boolean {
  return status < 0x80000000;
}

/** 0 for an NTSTATUS of success, else −errno. */
export function failureOf(status: number): number {
  return isGood(status) ? 0 : errorOf(status);
}

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
  const { call } = host.boundCalls(fromBase64(WINDOWS_CALL.x64.code), { call: 0 }, block);
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

export class WindowsSystem {
  /** Calls a function. */
  readonly call: WindowsMachine["call"];
  /** GetLastError after the last call. */
  readonly error: () => number;
  /** The memory of the process at an address. */
  readonly view: (address: number, bytes: number) => DataView;
  /** The address of the memory for structures. */
  readonly scratch: number;
  /** The memory for structures. */
  readonly structures: DataView;

  constructor(host: Host) {
    const { call, error, view, scratch } = windowsMachine(host);
    this.call = call;
    this.error = error;
    this.view = view;
    this.scratch = scratch;
    this.structures = view(scratch, AT_INFO + INFO_BYTES);
  }

  /** The text of a C string. */
  text(address: number | bigint): string {
    const at = Number(address);
    if (at === 0) return "";
    const bytes = new Uint8Array(this.view(at, MAX_PATH_BYTES).buffer, 0);
    return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
  }

  wideText(at: number, units: number): string {
    return new TextDecoder("utf-16le").decode(new Uint8Array(this.structures.buffer, at, 2 * units));
  }

  /** NtQueryInformationFile into the scratch memory: NTSTATUS. */
  query(handle: bigint, info: number, bytes: number): number {
    const { call, scratch } = this;
    return statusOf(call("NtQueryInformationFile", handle, scratch + AT_IO_STATUS, scratch + AT_INFO, bytes, info));
  }

  /** NtSetInformationFile from the scratch memory: NTSTATUS. */
  set(handle: bigint, info: number, bytes: number): number {
    const { call, scratch } = this;
    return statusOf(call("NtSetInformationFile", handle, scratch + AT_IO_STATUS, scratch + AT_INFO, bytes, info));
  }

  setEnd(handle: bigint, size: bigint): number {
    if (size < 0n) return E.INVAL;
    this.structures.setBigInt64(AT_INFO, size, true);
    const status = this.set(handle, INFO.END_OF_FILE, 8);
    return failureOf(status);
  }

  size(handle: bigint): bigint {
    return isGood(this.query(handle, INFO.STANDARD, 24)) ? this.structures.getBigInt64(AT_INFO + 8, true) : 0n;
  }

  attributeTag(handle: bigint): { isDirectory: boolean; isLink: boolean } {
    const status = this.query(handle, INFO.ATTRIBUTE_TAG, 8);
    const attributes = isGood(status) ? this.structures.getUint32(AT_INFO, true) : 0;
    const tag = this.structures.getUint32(AT_INFO + 4, true);
    const isLink = (attributes & ATTRIBUTE.REPARSE_POINT) !== 0 && (tag === TAG.SYMLINK || tag === TAG.MOUNT_POINT);
    return { isDirectory: (attributes & ATTRIBUTE.DIRECTORY) !== 0, isLink };
  }
}
