/**
 * The calls of linux_calls.ts on Windows. WASI and the plugins' files speak Linux's calls, with Linux's numbers for
 * flags and errors and Linux's structures; the files windows_*.ts translate them to functions of ntdll and kernel32.
 * In: names of calls with their arguments. Out: the result, or −errno as Linux numbers it.
 *
 * Differences that remain: symbolic links are read and never made; sockets are missing.
 *
 * Source: Linux <asm-generic/errno.h>.
 */
import type { Host } from "../host.ts";
import { callOnRuntimeFile } from "../runtime_files.ts";
import type { LinuxCall, LinuxCalls } from "./linux_calls.ts";
import { E } from "./linux_errors.ts";
import { Clocks } from "./windows_clocks.ts";
import { Descriptors, isForeign } from "./windows_descriptors.ts";
import { Entries } from "./windows_entries.ts";
import { Polls } from "./windows_polls.ts";
import { FileStatus } from "./windows_status.ts";
import { INFO, WindowsSystem } from "./windows_system.ts";
import { Transfers } from "./windows_transfers.ts";

type Arguments = readonly (number | bigint)[];
type Rows = Readonly<Partial<Record<LinuxCall, (args: Arguments) => number>>>;

/** How each call is made; a call without a row has no counterpart. */
function callRows(system: WindowsSystem): Rows {
  const descriptors = new Descriptors(system);
  const entries = new Entries(system, descriptors);
  const transfers = new Transfers(system, descriptors);
  const status = new FileStatus(system, descriptors, entries);
  const clocks = new Clocks(system);
  const polls = new Polls(system, descriptors, clocks);
  const noSocket = (fd: number | bigint) => descriptors.with(fd, () => E.NOTSOCK);
  const vectors = (at: number | bigint, count: number | bigint) => vectorsAt(system, Number(at), Number(count));
  return {
    read: ([fd, at, bytes]) => transfers.transfer("Read", fd, [[Number(at), Number(bytes)]]),
    write: ([fd, at, bytes]) => transfers.transfer("Write", fd, [[Number(at), Number(bytes)]]),
    close: ([fd]) => descriptors.close(Number(fd)),
    lseek: ([fd, offset, whence]) => transfers.seek(fd, BigInt(offset), Number(whence)),
    pread64: ([fd, at, bytes, offset]) => transfers.transfer("Read", fd, [[Number(at), Number(bytes)]], BigInt(offset)),
    pwrite64: ([fd, at, bytes, offset]) =>
      transfers.transfer("Write", fd, [[Number(at), Number(bytes)]], BigInt(offset)),
    readv: ([fd, at, count]) => transfers.transfer("Read", fd, vectors(at, count)),
    writev: ([fd, at, count]) => transfers.transfer("Write", fd, vectors(at, count)),
    preadv2: ([fd, at, count]) => transfers.transferNow("Read", fd, vectors(at, count)),
    pwritev2: ([fd, at, count]) => transfers.transferNow("Write", fd, vectors(at, count)),
    preadv: ([fd, at, count, offset]) => transfers.transfer("Read", fd, vectors(at, count), BigInt(offset)),
    pwritev: ([fd, at, count, offset]) => transfers.transfer("Write", fd, vectors(at, count), BigInt(offset)),
    sched_yield: () => {
      system.call("SwitchToThread");
      return 0;
    },
    shutdown: ([fd]) => noSocket(fd),
    sendto: ([fd]) => noSocket(fd),
    recvfrom: ([fd]) => noSocket(fd),
    accept4: ([fd]) => noSocket(fd),
    fcntl: ([fd, command, flags]) => transfers.setFlags(fd, Number(command), Number(flags)),
    fsync: ([fd]) => transfers.flush(fd),
    fdatasync: ([fd]) => transfers.flush(fd),
    ftruncate: ([fd, size]) => descriptors.with(fd, ({ handle }) => system.setEnd(handle, BigInt(size))),
    fadvise64: ([fd]) => descriptors.with(fd, () => 0), // advice without a counterpart
    fallocate: ([fd, , offset, length]) => transfers.allocate(fd, BigInt(offset), BigInt(length)),
    getdents64: ([fd, at, bytes]) => status.readDirectory(fd, Number(at), Number(bytes)),
    clock_gettime: ([clock, at]) => clocks.time(Number(clock), Number(at)),
    clock_getres: ([clock, at]) => clocks.resolution(Number(clock), Number(at)),
    openat: ([fd, path, flags]) => entries.open(Number(fd), system.text(path), Number(flags)),
    mkdirat: ([fd, path]) => entries.makeDirectory(Number(fd), system.text(path)),
    unlinkat: ([fd, path, flags]) => entries.remove(Number(fd), system.text(path), Number(flags)),
    renameat2: ([from, path, to, target, flags]) =>
      Number(flags) !== 0
        ? E.INVAL
        : entries.move(INFO.RENAME_EX, Number(from), system.text(path), Number(to), system.text(target)),
    linkat: ([from, path, to, target]) =>
      entries.move(INFO.LINK, Number(from), system.text(path), Number(to), system.text(target)),
    symlinkat: () => E.PERM,
    readlinkat: ([fd, path, at, bytes]) => entries.readLink(Number(fd), system.text(path), Number(at), Number(bytes)),
    ppoll: ([at, count, time]) => polls.poll(Number(at), Number(count), Number(time)),
    utimensat: ([fd, path, times]) => status.setTimes(Number(fd), path, Number(times)),
    getrandom: ([at, bytes]) => {
      system.call("ProcessPrng", at, bytes);
      return Number(bytes);
    },
    statx: ([fd, path, flags, , at]) => status.status(Number(fd), system.text(path), Number(flags), Number(at)),
  };
}

/** The iovec records at an address. */
function vectorsAt(system: WindowsSystem, at: number, count: number): [address: number, bytes: number][] {
  const view = system.view(at, Math.max(16 * count, 1));
  return Array.from({ length: count }, (_, k) => [
    Number(view.getBigUint64(16 * k, true)),
    Number(view.getBigUint64(16 * k + 8, true)),
  ]);
}

/** Makes calls: their result, or −errno. A call without a counterpart is ENOSYS. */
function windowsCallsOf(host: Host): LinuxCalls {
  const system = new WindowsSystem(host);
  const rows = callRows(system);
  return (name, ...args) => {
    const fd = Number(args[0]);
    const onRuntimeFile = isForeign(fd) ? callOnRuntimeFile(name, fd, args, system.view) : undefined;
    return onRuntimeFile ?? rows[name]?.(args) ?? E.NOSYS;
  };
}

/** The calls of each host, which looks its functions up once. */
const CALLS = new WeakMap<Host, LinuxCalls>();

/** The calls of a host on Windows. */
export function windowsCalls(host: Host): LinuxCalls {
  const known = CALLS.get(host) ?? windowsCallsOf(host);
  CALLS.set(host, known);
  return known;
}
