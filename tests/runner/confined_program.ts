/** Confines itself, and prints the results of system calls as JSON: what code that escaped from a guest could do. */
import { openSync, readSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { confine } from "../../engine/host/confinement.ts";
import { currentHost } from "../../engine/host/current.ts";
import { PROT } from "../../engine/host/host.ts";
import { exitProcess, writeText } from "../../engine/host/process.ts";
import { numberedCalls } from "../../engine/host/calls/linux_calls.ts";

const host = currentHost();
const call = numberedCalls(host);
const page = host.reserve(host.pageSize, PROT.READ | PROT.WRITE);
const bytes = new Uint8Array(host.view(page, host.pageSize));
const path = (text: string): number => {
  bytes.fill(0, 0, 256);
  bytes.set(new TextEncoder().encode(text));
  return page;
};
const column = host.arch === "x64" ? 0 : 1;
const number = (x64: number, arm64: number) => [x64, arm64][column];
const parent = process.ppid;
const kept = openSync(fileURLToPath(import.meta.url), "r");
const cache = openSync(process.argv[2], "r+");
const measures = confine(host);
const AT_FDCWD = -100;
const SIGNAL = 9;

const attempts: Record<string, number> = {
  openat: call(number(257, 56), AT_FDCWD, path("/etc/passwd"), 0, 0),
  openat2: call(437, AT_FDCWD, path("/etc/passwd"), page + 512, 24),
  unlinkat: call(number(263, 35), AT_FDCWD, path("/tmp/none"), 0),
  execve: call(number(59, 221), path("/bin/sh"), 0, 0),
  fork: call(number(56, 220), 17, 0, 0, 0, 0),
  clone3: call(435, page + 512, 64),
  socket: call(number(41, 198), 2, 1, 0),
  unixSocket: call(number(41, 198), 1, 1, 0),
  datagramPair: call(number(53, 199), 1, 2, 0, page),
  sendTo: call(number(44, 206), 1, page, 1, 0, page, 16),
  kill: call(number(62, 129), parent, SIGNAL),
  killAll: call(number(62, 129), -1, SIGNAL),
  tgkill: call(number(234, 131), parent, parent, SIGNAL),
  queueSignal: call(number(129, 138), parent, SIGNAL, page),
  ptrace: call(number(101, 117), 16, parent, 0, 0),
  readProcess: call(number(310, 270), parent, page, 1, page, 1, 0),
  writeProcess: call(number(311, 271), parent, page, 1, page, 1, 0),
  limits: call(number(302, 261), 0, 7, page + 512, 0),
  deathSignal: call(number(157, 167), 1, 0, 0, 0, 0),
  dumpable: call(number(157, 167), 4, 1, 0, 0, 0),
  ioUring: call(425, 1, page),
  bpf: call(number(321, 280), 0, page, 8),
  seccomp: call(number(317, 277), 1, 0, page),
  mount: call(number(165, 40), page, page, page, 0, 0),
  unshare: call(number(272, 97), 0x10000000),
  sysctlByKeys: call(number(250, 219), 0, 0),
  otherNumbers: column === 0 ? call(0x4000_0000 + 257, AT_FDCWD, path("/etc/passwd"), 0, 0) : -1,
};
const allowed: Record<string, number> = {
  kept: readSync(kept, new Uint8Array(10)),
  cache: readSync(cache, new Uint8Array(10)),
  getpid: call(number(39, 172)),
  mmap: call(number(9, 222), 0, 4096, 3, 0x22, -1, 0),
  yield: call(number(24, 124)),
};
writeText(1, JSON.stringify({ measures, attempts, allowed, pid: process.pid }));
await exitProcess(0);
