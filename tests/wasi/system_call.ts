/**
 * System calls that only tests need. Files are opened on every system; pipes, sockets and FIFOs are made on Linux.
 */
import { currentHost } from "../../engine/host/current.ts";
import { fileCalls } from "../../engine/host/file_calls.ts";
import { type NumberedCalls, numberedCalls } from "../../engine/host/linux_calls.ts";
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

/** A pipe: [read end, write end]. */
export function makePipe(): [number, number] {
  systemCall("pipe2", scratch.out.address, 0);
  return [scratch.out.u32[0]!, scratch.out.u32[1]!];
}

/** Two connected stream sockets. */
export function makeSocketPair(): [number, number] {
  systemCall("socketpair", 1, 1, 0, scratch.out.address);
  return [scratch.out.u32[0]!, scratch.out.u32[1]!];
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
  checked("close", files("close", fd));
}

/** Opens a FIFO for reading and writing, which does not wait for another end. */
export function openForBoth(path: string): number {
  return open(path, 2);
}
