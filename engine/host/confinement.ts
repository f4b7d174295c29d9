/**
 * Confines this process for good, so that code which escapes from a guest's sandbox reaches nothing of the machine. In:
 * the host, and a memory limit. Out: the names of the measures in force. Invariant: no thread of the process can regain
 * a right that it has dropped; files and libraries that are needed later must be opened before.
 *
 * On Linux, a filter of system calls (seccomp) permits what computing, threads and open descriptors need: no paths, no
 * sockets, no new programs, no signals to other processes. It binds all threads. Other systems have no measure that a
 * process without rights could take by calls alone; `confine` returns none there.
 *
 * Sources: Linux <linux/seccomp.h>, <linux/bpf_common.h>, <linux/audit.h>, <linux/prctl.h>, <asm-generic/resource.h>.
 */
import { type Host, PROT } from "./host.ts";
import { numberedCalls } from "./calls/linux_calls.ts";

/** A measure of confinement. */
export type Measure = "system-calls" | "memory" | "descriptors" | "no-core-dump" | "ends-with-parent";

/** [x64, arm64] numbers of calls that are permitted whatever their arguments are; −1 where the processor has none. */
const PERMITTED: Readonly<Record<string, readonly [number, number]>> = {
  read: [0, 63],
  write: [1, 64],
  futex: [202, 98],
  ppoll: [271, 73],
  mmap: [9, 222],
  mprotect: [10, 226],
  munmap: [11, 215],
  madvise: [28, 233],
  close: [3, 57],
  fstat: [5, 80],
  poll: [7, -1],
  lseek: [8, 62],
  brk: [12, 214],
  rt_sigaction: [13, 134],
  rt_sigprocmask: [14, 135],
  rt_sigreturn: [15, 139],
  pread64: [17, 67],
  pwrite64: [18, 68],
  readv: [19, 65],
  writev: [20, 66],
  preadv2: [327, 286],
  pwritev2: [328, 287],
  select: [23, -1],
  pselect6: [270, 72],
  sched_yield: [24, 124],
  mremap: [25, 216],
  msync: [26, 227],
  mincore: [27, 232],
  dup: [32, 23],
  dup3: [292, 24],
  nanosleep: [35, 101],
  clock_nanosleep: [230, 115],
  getpid: [39, 172],
  gettid: [186, 178],
  getppid: [110, 173],
  getuid: [102, 174],
  geteuid: [107, 175],
  getgid: [104, 176],
  getegid: [108, 177],
  exit: [60, 93],
  exit_group: [231, 94],
  uname: [63, 160],
  fcntl: [72, 25],
  ftruncate: [77, 46],
  fallocate: [285, 47],
  gettimeofday: [96, 169],
  getrusage: [98, 165],
  sysinfo: [99, 179],
  times: [100, 153],
  time: [201, -1],
  sched_getaffinity: [204, 123],
  sched_getparam: [143, 121],
  sched_getscheduler: [145, 120],
  getcpu: [309, 168],
  sigaltstack: [131, 132],
  arch_prctl: [158, -1],
  set_tid_address: [218, 96],
  restart_syscall: [219, 128],
  timer_create: [222, 107],
  timer_settime: [223, 110],
  timer_gettime: [224, 108],
  timer_delete: [226, 111],
  clock_gettime: [228, 113],
  clock_getres: [229, 114],
  epoll_wait: [232, -1],
  epoll_pwait: [281, 22],
  epoll_pwait2: [441, 441],
  epoll_ctl: [233, 21],
  epoll_create1: [291, 20],
  eventfd2: [290, 19],
  pipe2: [293, 59],
  timerfd_create: [283, 85],
  timerfd_settime: [286, 86],
  set_robust_list: [273, 99],
  get_robust_list: [274, 100],
  getrandom: [318, 278],
  memfd_create: [319, 279],
  membarrier: [324, 283],
  rseq: [334, 293],
  pkey_mprotect: [329, 288],
  pkey_alloc: [330, 289],
  pkey_free: [331, 290],
  futex_waitv: [449, 449],
  recvfrom: [45, 207],
  fsync: [74, 82],
  fdatasync: [75, 83],
};

/** Calls with paths: runtimes look for optional files, which do not exist for this process. */
const ABSENT: Readonly<Record<string, readonly [number, number]>> = {
  open: [2, -1],
  stat: [4, -1],
  lstat: [6, -1],
  access: [21, -1],
  readlink: [89, -1],
  openat: [257, 56],
  newfstatat: [262, 79],
  readlinkat: [267, 78],
  faccessat: [269, 48],
  statx: [332, 291],
  openat2: [437, 437],
  faccessat2: [439, 439],
};

/** Calls of which some arguments are permitted, and those by which the process is confined. */
const OTHER = {
  clone: [56, 220],
  clone3: [435, 435],
  prctl: [157, 167],
  prlimit64: [302, 261],
  tgkill: [234, 131],
  socketpair: [53, 199],
  sendto: [44, 206],
  seccomp: [317, 277],
} as const;

/** AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64. */
const ARCHITECTURE = { x64: 0xc000003e, arm64: 0xc00000b7 } as const;

/** Instructions of classic BPF: loads of a word, comparisons with a constant, and returns. */
const BPF = { LOAD: 0x20, EQUAL: 0x15, ANY_BIT: 0x45, RETURN: 0x06 } as const;
/** Offsets in struct seccomp_data. */
const DATA = { NUMBER: 0, ARCHITECTURE: 4, ARGUMENTS: 16 } as const;
const ALLOW = 0x7fff0000;
const KILL = 0x80000000;
const refuse = (errno: number): number => 0x00050000 | errno;
const EPERM = 1;
const ENOENT = 2;
const ENOSYS = 38;

const CLONE_THREAD = 0x10000;
const AF_UNIX = 1;
/** The bits of a socket's type that SOCK_STREAM, and its flags, do not have. */
const NO_STREAM = 0xe;
const PR = { SET_PDEATHSIG: 1, SET_DUMPABLE: 4, SET_NAME: 15, GET_NAME: 16, SET_NO_NEW_PRIVS: 38, SET_VMA: 0x53564d41 };
const RLIMIT = { DATA: 2, CORE: 4, NOFILE: 7 } as const;
const SECCOMP_SET_MODE_FILTER = 1;
const SECCOMP_FILTER_FLAG_TSYNC = 1;
const SIGKILL = 9;
const AT_FDCWD = -100;
const F_GETFL = 3;
const O_ACCMODE = 3;
const O_CLOEXEC = 0x80000;
/** The first descriptor that is not a standard stream. */
const FIRST_OWN = 3;
/** The field of /proc/self/statm with the pages of data. */
const DATA_FIELD = 5;
/** Open descriptors at most: runtimes use some thirty. */
const MAX_DESCRIPTORS = 256;

/** The size of struct sock_fprog. */
const PROGRAM_OFFSET = 16;

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, operand: number];

/** The filter of system calls for the process `self`. */
function filterRows(arch: Host["arch"], self: number): Instruction[] {
  const column = arch === "x64" ? 0 : 1;
  const rows: Instruction[] = [
    [BPF.LOAD, 0, 0, DATA.ARCHITECTURE],
    [BPF.EQUAL, 1, 0, ARCHITECTURE[arch]],
    [BPF.RETURN, 0, 0, KILL],
    [BPF.LOAD, 0, 0, DATA.NUMBER],
  ];
  const ifCall = (numbers: readonly [number, number], body: readonly Instruction[]) => {
    if (numbers[column] >= 0) rows.push([BPF.EQUAL, 0, body.length, numbers[column]], ...body);
  };
  const answer = (value: number): Instruction => [BPF.RETURN, 0, 0, value];
  const argument = (index: number, half = 0): Instruction => [BPF.LOAD, 0, 0, DATA.ARGUMENTS + 8 * index + 4 * half];
  for (const numbers of Object.values(PERMITTED)) ifCall(numbers, [answer(ALLOW)]);
  for (const numbers of Object.values(ABSENT)) ifCall(numbers, [answer(refuse(ENOENT))]);
  ifCall(OTHER.clone, [argument(0), [BPF.ANY_BIT, 0, 1, CLONE_THREAD], answer(ALLOW), answer(refuse(EPERM))]);
  ifCall(OTHER.clone3, [answer(refuse(ENOSYS))]); // its flags are in memory; libraries fall back to clone
  ifCall(OTHER.tgkill, [argument(0), [BPF.EQUAL, 0, 1, self], answer(ALLOW), answer(refuse(EPERM))]);
  ifCall(OTHER.prctl, [
    argument(0),
    [BPF.EQUAL, 2, 0, PR.SET_NAME],
    [BPF.EQUAL, 1, 0, PR.GET_NAME],
    [BPF.EQUAL, 0, 1, PR.SET_VMA],
    answer(ALLOW),
    answer(refuse(EPERM)),
  ]);
  ifCall(OTHER.prlimit64, [
    argument(2), // the new limit
    [BPF.EQUAL, 0, 3, 0],
    argument(2, 1),
    [BPF.EQUAL, 0, 1, 0],
    answer(ALLOW),
    answer(refuse(EPERM)),
  ]);
  // Runtimes wake themselves through pairs of streams. Other sockets could reach services by the paths of theirs.
  ifCall(OTHER.socketpair, [
    argument(0),
    [BPF.EQUAL, 0, 2, AF_UNIX],
    argument(1),
    [BPF.ANY_BIT, 0, 1, NO_STREAM],
    answer(refuse(EPERM)),
    answer(ALLOW),
  ]);
  ifCall(OTHER.sendto, [
    argument(4), // the address
    [BPF.EQUAL, 0, 3, 0],
    argument(4, 1),
    [BPF.EQUAL, 0, 1, 0],
    answer(ALLOW),
    answer(refuse(EPERM)),
  ]);
  rows.push(answer(refuse(EPERM)));
  return rows;
}

/**
 * Confines this process and returns the measures in force: all that the system grants. The process is killed when the
 * thread that started it ends. With `maxBytes`, its data segment may grow by at most that many bytes from now on.
 */
export function confine(host: Host, maxBytes?: number): Measure[] {
  if (host.os !== "linux") return [];
  const column = host.arch === "x64" ? 0 : 1;
  const call = numberedCalls(host);
  const page = host.reserve(host.pageSize * 2, PROT.READ | PROT.WRITE);
  const view = new DataView(host.view(page, host.pageSize * 2));
  const prctl = (...args: number[]) => call(OTHER.prctl[column], ...args) === 0;
  const setLimit = (resource: number, limit: number): boolean => {
    view.setBigUint64(0, BigInt(limit), true);
    view.setBigUint64(8, BigInt(limit), true);
    return call(OTHER.prlimit64[column], 0, resource, page, 0) === 0;
  };
  /** The memory that the process may write now: runtimes reserve different amounts. */
  const dataBytes = (): number => {
    new Uint8Array(view.buffer).set(new TextEncoder().encode("/proc/self/statm\0"));
    const file = call(ABSENT["openat"][column], AT_FDCWD, page, 0, 0);
    const length = file < 0 ? 0 : call(PERMITTED["read"][column], file, page, host.pageSize);
    if (file >= 0) call(PERMITTED["close"][column], file);
    const text = new TextDecoder().decode(new Uint8Array(view.buffer, 0, Math.max(0, length)));
    return Number(text.split(" ")[DATA_FIELD] ?? 0) * host.pageSize;
  };
  /**
   * Puts /dev/null in the place of files that are open for writing, such as caches of the runtime. Files in memory
   * stay.
   */
  const dropFiles = (): void => {
    const bytes = new Uint8Array(view.buffer);
    const path = (text: string) => bytes.set(new TextEncoder().encode(`${text}\0`));
    path("/dev/null");
    const nothing = call(ABSENT["openat"][column], AT_FDCWD, page, 0, 0);
    for (let fd = FIRST_OWN; fd < MAX_DESCRIPTORS && nothing >= 0; fd++) {
      const flags = call(PERMITTED["fcntl"][column], fd, F_GETFL);
      if (fd === nothing || flags < 0 || (flags & O_ACCMODE) === 0) continue;
      path(`/proc/self/fd/${fd}`);
      const length = call(ABSENT["readlinkat"][column], AT_FDCWD, page, page + host.pageSize, host.pageSize);
      const name = new TextDecoder().decode(bytes.subarray(host.pageSize, host.pageSize + Math.max(0, length)));
      if (/^\/(?!memfd:|dev\/)/.test(name)) call(PERMITTED["dup3"][column], nothing, fd, O_CLOEXEC);
    }
  };
  const filterCalls = (): boolean => {
    if (!prctl(PR.SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return false;
    writeFilter(view, page, filterRows(host.arch, call(PERMITTED["getpid"][column])));
    return call(OTHER.seccomp[column], SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, page) === 0;
  };
  // The filter is the last: it permits none of the others.
  const measures: readonly (readonly [Measure, () => boolean])[] = [
    ["ends-with-parent", () => prctl(PR.SET_PDEATHSIG, SIGKILL, 0, 0, 0)],
    ["no-core-dump", () => prctl(PR.SET_DUMPABLE, 0, 0, 0, 0) && setLimit(RLIMIT.CORE, 0)],
    ["descriptors", () => {
      dropFiles();
      return setLimit(RLIMIT.NOFILE, MAX_DESCRIPTORS);
    }],
    ["memory", () => maxBytes !== undefined && setLimit(RLIMIT.DATA, dataBytes() + maxBytes)],
    ["system-calls", filterCalls],
  ];
  return measures.filter(([, take]) => take()).map(([name]) => name);
}

/** Writes a struct sock_fprog to `view`, which is at `address`, and its instructions behind it. */
function writeFilter(view: DataView, address: number, rows: readonly Instruction[]): void {
  view.setUint16(0, rows.length, true);
  view.setBigUint64(8, BigInt(address + PROGRAM_OFFSET), true);
  rows.forEach(([code, ifTrue, ifFalse, operand], k) => {
    const at = PROGRAM_OFFSET + 8 * k;
    view.setUint16(at, code, true);
    view.setUint8(at + 2, ifTrue);
    view.setUint8(at + 3, ifFalse);
    view.setUint32(at + 4, operand, true);
  });
}
