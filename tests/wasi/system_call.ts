/**
 * System calls that only tests need. Files are opened and pipes are made on every system; sockets and FIFOs on Linux.
 */
import { currentHost } from "../../engine/host/current.ts";
import { fileCalls } from "../../engine/host/calls/file_calls.ts";
import { PROT } from "../../engine/host/host.ts";
import { type NumberedCalls, numberedCalls } from "../../engine/host/calls/linux_calls.ts";
import { streamDescriptor } from "../../engine/host/calls/windows_descriptors.ts";
import { fromBase64 } from "../../engine/base/base64.ts";
import { WINDOWS_CALL } from "../../engine/host/code/generated_windows_code.ts";
import { WINDOWS_BLOCK } from "../../engine/host/code/windows_code.ts";
import { Scratch } from "../../engine/wasi/scratch.ts";

/** [x64, arm64] numbers by name. */
const NUMBERS = {
  socket: [41, 198],
  connect: [42, 203],
  bind: [49, 200],
  listen: [50, 201],
  socketpair: [53, 199],
  mknodat: [259, 33],
  pipe2: [293, 59],
} as const;
/** Paths are relative to the current directory. */
const AT_FDCWD = -100;

const host = currentHost();
const files = fileCalls(host);
const scratch = new Scratch(host);
let call: NumberedCalls | undefined;

/** Makes a system call; throws when it fails. */
function systemCall(name: keyof typeof NUMBERS, ...args: number[]): number {
  call ??= numberedCalls(host);
  const result = call(NUMBERS[name][host.arch === "x64" ? 0 : 1], ...args);
  return checked(name, result);
}

function checked(name: string, result: number): number {
  if (result < 0) throw new Error(`${name} failed: ${result}`);
  return result;
}

function open(path: string, flags: number): number {
  return checked("openat", files("openat", AT_FDCWD, scratch.path(path), flags, 0o600));
}

/** The functions of kernel32 that tests call. */
const WINDOWS_FUNCTIONS = ["CreatePipe", "CloseHandle", "GetLastError"] as const;
type WindowsFunction = (typeof WINDOWS_FUNCTIONS)[number];
let windowsCall: ((name: WindowsFunction, ...args: (number | bigint)[]) => bigint) | undefined;

function makeWindowsCall(): NonNullable<typeof windowsCall> {
  const block = host.reserve(host.pageSize, PROT.READ | PROT.WRITE);
  const words = new BigInt64Array(host.view(block, WINDOWS_BLOCK.SIZE));
  const addresses = host.functionAddresses(WINDOWS_FUNCTIONS);
  words[WINDOWS_BLOCK.GET_LAST_ERROR >> 3] = BigInt(addresses.GetLastError);
  const { call } = host.boundCalls(fromBase64(WINDOWS_CALL.x64.code), { call: 0 }, block);
  return (name, ...args) => {
    words[WINDOWS_BLOCK.FUNCTION >> 3] = BigInt(addresses[name]);
    args.forEach((value, k) => words[(WINDOWS_BLOCK.ARGUMENTS >> 3) + k] = BigInt(value));
    call();
    return words[WINDOWS_BLOCK.RESULT >> 3] & 0xffffffffn;
  };
}

/** The handles of pipes on Windows, by descriptor. */
const handles = new Map<number, bigint>();
/** The size of a pipe on Linux. */
const PIPE_BYTES = 65536;

function makeWindowsPipe(): [number, number] {
  windowsCall ??= makeWindowsCall();
  const { address } = scratch.out;
  if (windowsCall("CreatePipe", address, address + 8, 0, PIPE_BYTES) === 0n) throw new Error("CreatePipe failed");
  const ends = [scratch.out.word(0), scratch.out.word(8)].map((word) => {
    const handle = BigInt(word);
    const fd = streamDescriptor(handle);
    handles.set(fd, handle);
    return fd;
  });
  return ends as [number, number];
}

/** A pipe: [read end, write end]. */
export function makePipe(): [number, number] {
  if (host.os === "windows") return makeWindowsPipe();
  systemCall("pipe2", scratch.out.address, 0);
  return [scratch.out.u32[0], scratch.out.u32[1]];
}

/** Two connected stream sockets. */
export function makeSocketPair(): [number, number] {
  systemCall("socketpair", 1, 1, 0, scratch.out.address);
  return [scratch.out.u32[0], scratch.out.u32[1]];
}

function socketAddress(path: string): [address: number, size: number] {
  const bytes = new TextEncoder().encode(path);
  scratch.out.u8.fill(0, 0, 110);
  scratch.out.u8[0] = 1; // AF_UNIX
  scratch.out.u8.set(bytes, 2);
  return [scratch.out.address, 3 + bytes.length];
}

/** A stream socket that listens at `path`. */
export function makeListener(path: string): number {
  const fd = systemCall("socket", 1, 1);
  systemCall("bind", fd, ...socketAddress(path));
  systemCall("listen", fd, 4);
  return fd;
}

/** A stream socket connected to `path`. */
export function connectTo(path: string): number {
  const fd = systemCall("socket", 1, 1);
  systemCall("connect", fd, ...socketAddress(path));
  return fd;
}

/** Makes a FIFO. */
export function makeFifo(path: string): void {
  systemCall("mknodat", AT_FDCWD, scratch.path(path), 0o010666);
}

/** Opens a file for reading, or creates it for writing. */
export function openFile(path: string, writes: boolean): number {
  return open(path, writes ? 0o1101 : 0);
}

/** Writes a short text to a descriptor of the process. */
export function writeText(fd: number, text: string): void {
  const bytes = new TextEncoder().encode(text);
  scratch.out.u8.set(bytes);
  checked("write", files("write", fd, scratch.out.address, bytes.length));
}

/** Reads the available bytes, at most 4096. */
export function readText(fd: number): string {
  const length = checked("read", files("read", fd, scratch.out.address, 4096));
  return new TextDecoder().decode(scratch.out.u8.slice(0, length));
}

export function closeDescriptor(fd: number): void {
  const handle = handles.get(fd);
  if (handle !== undefined) {
    handles.delete(fd);
    windowsCall?.("CloseHandle", handle);
  }
  checked("close", files("close", fd));
}

/** Opens a FIFO for reading and writing, which does not wait for another end. */
export function openForBoth(path: string): number {
  return open(path, 2);
}
