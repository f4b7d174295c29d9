/**
 * The host for macOS on arm64, on a double that knows macOS's rules (host_double.ts): memory, images, code, signals.
 */
import { deepEqual, equal, throws } from "node:assert/strict";
import { cCalls } from "../../engine/host/calls/c_calls.ts";
import { cpuFeatures } from "../../engine/host/cpu.ts";
import { PARTS } from "../../engine/host/systems/darwin_parts.ts";
import { DARWIN_WATCH, WATCHDOG_FUNCTIONS } from "../../engine/host/code/darwin_watchdog.ts";
import { type Host, PROT } from "../../engine/host/host.ts";
import { posixHost } from "../../engine/host/systems/posix_host.ts";
import { SYSTEMS } from "../../engine/host/systems/systems.ts";
import { lazyRoutine } from "../../engine/tiers/native_kernel.ts";
import { DarwinDouble } from "./host_double.ts";

const PAGE = 0x4000;

function machine() {
  const double = new DarwinDouble();
  const host = posixHost(double);
  return { double, host, take: () => double.calls.splice(0) };
}

Deno.test("macOS: memory is reserved, protected, cleared and released without Linux's flags and advice", () => {
  const { double, host, take } = machine();
  equal(host.pageSize, PAGE);
  const at = host.reserve(16 * PAGE, PROT.NONE);
  host.protect(at, 4 * PAGE, PROT.READ | PROT.WRITE);
  equal(double.pages.get(at + 3 * PAGE), 3);
  equal(double.pages.get(at + 4 * PAGE), 0);
  deepEqual(take(), ["mmap 0 0x1002", "mprotect 3"]);
  let mapped = 0;
  host.discard(at, 4 * PAGE, () => mapped++);
  equal(mapped, 1);
  deepEqual(take(), ["mmap 3 0x1012"]);
  host.replace(at, PAGE, PROT.NONE);
  host.preferLargePages(at, 16 * PAGE);
  host.release(at, 16 * PAGE);
  deepEqual(take(), ["mmap 0 0x1012", "munmap"]);
});

Deno.test("macOS: an image is a file whose name is gone before anything is written", () => {
  const { double, host, take } = machine();
  const image = host.createImage(new Uint8Array(2 * PAGE).fill(7));
  equal(double.files.get(image)![0][0], 7);
  const at = host.reserve(2 * PAGE, PROT.NONE);
  host.mapImage(at, 2 * PAGE, image);
  host.closeImage(image);
  deepEqual(take(), [
    "mkstemp",
    "unlink",
    `write ${2 * PAGE}`,
    "mmap 0 0x1002",
    "mmap 3 0x12 file",
    `close ${image}`,
  ]);
  throws(() => host.mapImage(at, PAGE, image, 0, PROT.READ | PROT.EXEC), /only signed code/);
  deepEqual(host.openImage("/tmp/x"), { image: 51, bytes: 12345 });
  deepEqual(take(), [`open /tmp/x ${0x1000000 | 4}`]); // O_CLOEXEC | O_NONBLOCK
});

Deno.test("macOS: code is written, made executable, its caches maintained, and entered by bsearch", () => {
  const { host, take } = machine();
  const { one } = host.boundCalls(new Uint8Array(8), { one: 0 }, 0x1000);
  take();
  one();
  deepEqual(take(), ["bsearch bound"]);
  const { two } = host.nativeLibrary(new Uint8Array(8), {
    two: { offset: 0, params: ["i64", "f64"], result: "i32" },
  });
  const placed = take();
  deepEqual(placed.slice(0, 2), ["mmap 3 0x1002", "mprotect 5"]);
  equal(placed[2].startsWith("sys_icache_invalidate "), true);
  two(1n, 2);
  deepEqual(take(), ["bsearch block"]);
  host.runOnce(new Uint8Array(8), 0x5000);
  equal(take().at(-1), "bsearch block");
  host.invalidateInstructions!(0x100000000, 0x100000040);
  deepEqual(take(), ["sys_icache_invalidate 64"]);
});

Deno.test("macOS: handlers, signal stacks, threads and functions of the C library", () => {
  const { host, take } = machine();
  equal(host.installSignalHandler(host.system.SIGBUS, 0x1234), 0);
  equal(host.signalHandler(11), 0);
  host.ensureSignalStack();
  host.startThread(0x1000, 0x2000);
  deepEqual(take(), [
    "sigaction 10 set",
    "sigaction 11 query",
    "sigaltstack query",
    "mmap 3 0x1002",
    "sigaltstack set",
    "pthread_create",
    "pthread_detach",
  ]);
  host.runWithFaults(0x1000, 0x2000)();
  deepEqual(take(), ["pthread_sigmask 3", "pthread_create", "pthread_sigmask 3", "pthread_join"]);
  deepEqual(host.functionAddresses(["__error"]), { __error: 0x180000000 });
  equal(host.openReferences(), undefined); // a library must be a signed file
  deepEqual(take(), ["dlsym __error"]);
  throws(() => host.functionAddresses(["missing_function"]), /this macOS lacks the function missing_function/);
});

Deno.test("macOS: addresses of buffers come from memcpy, features from the record; a refused handler is an error", () => {
  const { double, host } = machine();
  equal(host.addressOf(new Uint8Array(8)), 0x200000000);
  deepEqual([...cpuFeatures(host)], ["lse"]);
  double.refused.add("sigaction");
  throws(() => host.installSignalHandler(10, 0x1234), /Cannot install a handler for signal 10/);
});

Deno.test("macOS: the watchdog gets a semaphore and the addresses of its functions", () => {
  const { double, host } = machine();
  const words = new Map<number, number>();
  const prepare = () => PARTS.watchdog.prepare!(host, (offset, value) => void words.set(offset, value));
  double.answers.push(0x5e3an);
  prepare();
  equal(words.get(DARWIN_WATCH.SEMAPHORE), 0x5e3a);
  WATCHDOG_FUNCTIONS.forEach((_, k) => equal(words.get(DARWIN_WATCH.FUNCTIONS + 8 * k), 0x180000000));
  double.answers.push(0n);
  throws(prepare, /Cannot watch deadlines: the system gives no semaphore/);
});

Deno.test("macOS: calls for files reach the C library through machine code, with Linux's error numbers", () => {
  const { double } = machine();
  const call = PARTS.fileCalls(PARTS.host(double));
  double.answers.push(7n, -35n, 0n);
  equal(call("openat", 3, 0x1000, 0, 0o600), 7); // the mode is the variadic argument
  equal(call("fsync", 7), -11); // EAGAIN of macOS and of Linux
  equal(call("statx", 7, 0x1000, 0, 0, 0x5000), 0);
  throws(() => cCalls({ system: SYSTEMS.windows } as Host), /Functions of Windows have no errno/);
});

Deno.test("macOS: code is entered without code from strings, where the runtime forbids that", () => {
  const { host, take } = machine();
  const compile = globalThis.Function;
  globalThis.Function = function forbidden(): never {
    throw new EvalError("Code generation from strings disallowed for this context");
  } as unknown as FunctionConstructor;
  try {
    const { one } = host.boundCalls(new Uint8Array(8), { one: 0 }, 0x1000);
    take();
    equal(one(), 0);
    deepEqual(take(), ["bsearch bound"]);
  } finally {
    globalThis.Function = compile;
  }
});

Deno.test("macOS: the secret of the process is the C library's random variable", () => {
  const { double, host, take } = machine();
  new Uint8Array(double.view(0x180000000, 8)).set([1, 2, 3, 4, 5, 6, 7, 8]);
  deepEqual([...host.processSecret()], [1, 2, 3, 4, 5, 6, 7, 8]);
  deepEqual(take(), ["dlsym __stack_chk_guard"]);
});

Deno.test("macOS: no routine of the kernel makes system calls by number", () => {
  const { linux, darwin, windows } = SYSTEMS;
  for (const system of [darwin, windows]) equal(lazyRoutine({ arch: "x64", system }), undefined);
  equal(lazyRoutine({ arch: "x64", system: linux }) === undefined, false);
});
