/**
 * Direct Linux system calls: a few machine instructions move the arguments into the kernel's registers. The error
 * number is the result (−errno), and no libc code runs in between. Numbers are per architecture (<asm/unistd_64.h>,
 * <asm-generic/unistd.h>).
 */
import { fromBase64 } from "../../base/base64.ts";
import { SYSTEM_CALL } from "../code/generated_code.ts";
import type { Host } from "../host.ts";

/** [x64, arm64] numbers by name. */
const NUMBERS = {
  read: [0, 63],
  write: [1, 64],
  close: [3, 57],
  lseek: [8, 62],
  mmap: [9, 222],
  mprotect: [10, 226],
  munmap: [11, 215],
  pread64: [17, 67],
  pwrite64: [18, 68],
  readv: [19, 65],
  writev: [20, 66],
  preadv: [295, 69],
  pwritev: [296, 70],
  preadv2: [327, 286],
  pwritev2: [328, 287],
  sched_yield: [24, 124],
  madvise: [28, 233],
  shutdown: [48, 210],
  sendto: [44, 206],
  recvfrom: [45, 207],
  accept4: [288, 242],
  socket: [41, 198],
  bind: [49, 200],
  listen: [50, 201],
  getsockname: [51, 204],
  setsockopt: [54, 208],
  fcntl: [72, 25],
  fsync: [74, 82],
  fdatasync: [75, 83],
  ftruncate: [77, 46],
  sigaltstack: [131, 132],
  fadvise64: [221, 223],
  fallocate: [285, 47],
  getdents64: [217, 61],
  clock_gettime: [228, 113],
  clock_getres: [229, 114],
  exit_group: [231, 94],
  gettid: [186, 178],
  timer_create: [222, 107],
  timer_settime: [223, 110],
  timer_delete: [226, 111],
  openat: [257, 56],
  mkdirat: [258, 34],
  unlinkat: [263, 35],
  renameat2: [316, 276],
  linkat: [265, 37],
  symlinkat: [266, 36],
  readlinkat: [267, 78],
  ppoll: [271, 73],
  utimensat: [280, 88],
  dup3: [292, 24],
  getrandom: [318, 278],
  memfd_create: [319, 279],
  statx: [332, 291],
} as const;

/** The name of a system call. */
export type LinuxCall = keyof typeof NUMBERS;

/** The number of a system call. */
export function callNumber(name: LinuxCall, arch: Host["arch"]): number {
  return NUMBERS[name][arch === "x64" ? 0 : 1];
}

/** Makes the system call of a number: returns the result, or −errno. Arguments are integers and addresses. */
export type NumberedCalls = (number: number, ...args: (number | bigint)[]) => number;

/** The calls of each host: the machine code for them is loaded once. */
const CALLS = new WeakMap<Host, NumberedCalls>();

/** The system calls of `host`, by number; numbers depend on the architecture. Throws on systems other than Linux. */
export function numberedCalls(host: Host): NumberedCalls {
  const known = CALLS.get(host);
  if (known !== undefined) return known;
  const calls = loadCalls(host);
  CALLS.set(host, calls);
  return calls;
}

function loadCalls(host: Host): NumberedCalls {
  if (host.os !== "linux") throw new Error(`System calls need Linux, not ${host.os}`);
  const params = Array.from({ length: 7 }, () => "i64" as const);
  const { systemCall } = host.nativeLibrary(fromBase64(SYSTEM_CALL[host.arch].code), {
    systemCall: { offset: 0, params, result: "i64" },
  });
  return (number, a = 0, b = 0, c = 0, d = 0, e = 0, f = 0) =>
    Number(systemCall(BigInt(number), BigInt(a), BigInt(b), BigInt(c), BigInt(d), BigInt(e), BigInt(f)) as bigint);
}

/** Makes the system calls above: returns the result, or −errno. */
export type LinuxCalls = (name: LinuxCall, ...args: (number | bigint)[]) => number;

/** The system calls of `host` by name. Throws when the system is not Linux. */
export function linuxCalls(host: Host): LinuxCalls {
  const call = numberedCalls(host);
  const { arch } = host;
  return (name, a = 0, b = 0, c = 0, d = 0, e = 0, f = 0) => call(callNumber(name, arch), a, b, c, d, e, f);
}
