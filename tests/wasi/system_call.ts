/**
 * System calls that only tests need, to make pipes, sockets and FIFOs for a guest. Linux on x64.
 */
import { currentHost } from "../../engine/host/current.ts";
import { Scratch } from "../../engine/wasi/scratch.ts";

// deno-fmt-ignore
const STUB = Uint8Array.of(
  0x48, 0x89, 0xf8, // mov rax, rdi
  0x48, 0x89, 0xf7, // mov rdi, rsi
  0x48, 0x89, 0xd6, // mov rsi, rdx
  0x48, 0x89, 0xca, // mov rdx, rcx
  0x4d, 0x89, 0xc2, // mov r10, r8
  0x0f, 0x05, // syscall
  0xc3, // ret
);

const NUMBERS = {
  read: 0,
  write: 1,
  open: 2,
  close: 3,
  socket: 41,
  connect: 42,
  bind: 49,
  listen: 50,
  socketpair: 53,
  mknod: 133,
  pipe2: 293,
};

const host = currentHost();
const { call } = host.nativeLibrary(STUB, {
  call: { offset: 0, params: ["i64", "i64", "i64", "i64", "i64"], result: "i64" },
});
const scratch = new Scratch(host);

/** Makes a system call; throws when it fails. */
export function systemCall(name: keyof typeof NUMBERS, a = 0, b = 0, c = 0, d = 0): number {
  const result = Number(call(BigInt(NUMBERS[name]), BigInt(a), BigInt(b), BigInt(c), BigInt(d)));
  if (result < 0) throw new Error(`${name} failed: ${result}`);
  return result;
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
  systemCall("mknod", scratch.path(path), 0o010666);
}

/** Opens a file for reading, or made anew for writing. */
export function openFile(path: string, writes: boolean): number {
  return systemCall("open", scratch.path(path), writes ? 0o1101 : 0, 0o600);
}

/** Writes a short text to a descriptor of the process. */
export function writeText(fd: number, text: string): void {
  const bytes = new TextEncoder().encode(text);
  scratch.out.u8.set(bytes);
  systemCall("write", fd, scratch.out.address, bytes.length);
}

/** Reads what is there, at most 4096 bytes. */
export function readText(fd: number): string {
  const length = systemCall("read", fd, scratch.out.address, 4096);
  return new TextDecoder().decode(scratch.out.u8.slice(0, length));
}

export function closeDescriptor(fd: number): void {
  systemCall("close", fd);
}
