/**
 * Deadlines and fuel bound WASI: every wait of a guest ends in the trap, and the bytes it moves cost fuel. No wait
 * below ends by itself, so a wait that ignores the deadline hangs the test.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Context, host, NewEngine } from "../../engine/mod.ts";
import { ERRNO, RIGHT } from "../../engine/wasi/abi.ts";
import { Wasi, type WasiOptions } from "../../engine/wasi/mod.ts";
import { runThreads } from "../../engine/wasi/threads.ts";
import { BUFFER, RawGuest, type WasiName } from "./raw_guest.ts";
import { withSandbox } from "./sandbox.ts";
import {
  closeDescriptor,
  makeFifo,
  makeListener,
  makePipe,
  makeSocketPair,
  openForBoth,
  writeText,
} from "./system_call.ts";
import { LACKS_LINKS, LACKS_POSIX_FILES } from "../support/posix_files.ts";

const IN = 65536;
const OUT = 2 * 65536;
const DEADLINE: Context = { deadline: 30 };

/** Passes descriptors to a test and closes them. */
function withDescriptors(make: () => number[], body: (...fds: number[]) => void): void {
  const fds = make();
  try {
    body(...fds);
  } finally {
    for (const fd of fds) closeDescriptor(fd);
  }
}

function interrupted(guest: RawGuest, name: WasiName, ...args: (number | bigint)[]): void {
  const { deadline } = DEADLINE;
  const started = performance.now();
  assert.throws(() => guest.callIn({ deadline }, name, ...args), { name: "TrapError", message: "interrupted" }, name);
  assert.ok(performance.now() - started >= 29, `${name} is interrupted at the deadline, not before`);
  assert.equal(guest.call("sched_yield"), 0, "the instance stays usable");
}

/** Subscribes to clock 1 and to reading descriptor 0. */
function subscribe(guest: RawGuest, timeout: bigint): void {
  guest.bytes(IN, 96).fill(0);
  guest.view.setUint32(IN + 16, 1, true);
  guest.view.setBigUint64(IN + 24, timeout, true);
  guest.view.setUint8(IN + 48 + 8, 1);
}

Deno.test("poll_oneoff ends at the deadline, however long its clocks are", () => {
  withDescriptors(makePipe, (read, write) => {
    const guest = new RawGuest({ stdio: [read, write, write] }, true);
    for (const timeout of [2n ** 64n - 1n, 2n ** 63n, 8_000_000_000n]) {
      subscribe(guest, timeout);
      interrupted(guest, "poll_oneoff", IN, OUT, 1, 0);
      interrupted(guest, "poll_oneoff", IN, OUT, 2, 0);
      interrupted(guest, "poll_oneoff", IN + 48, OUT, 1, 0);
    }
    writeText(write, "x");
    assert.equal(guest.callIn({ deadline: 60_000 }, "poll_oneoff", IN, OUT, 2, 0), 0);
    assert.equal(guest.u32(), 1, "ready descriptors come before the deadline");
    subscribe(guest, 1_000_000n);
    assert.equal(guest.callIn({ deadline: 60_000 }, "poll_oneoff", IN, OUT, 1, 0), 0);
    guest.close();
  });
});

Deno.test("reads and writes of streams end at the deadline", () => {
  withDescriptors(() => [...makePipe(), ...makePipe()], (read, write, full, other) => {
    const guest = new RawGuest({ stdio: [read, other, other] }, true);
    interrupted(guest, "fd_read", 0, guest.vector(BUFFER, 100), 1, 0);
    writeText(write, "there");
    const context = { deadline: 60_000 };
    assert.equal(guest.callIn(context, "fd_read", 0, guest.vector(BUFFER, 100), 1, 0), 0);
    assert.equal(guest.text(BUFFER, guest.u32()), "there");
    // A pipe takes 64 KiB; more of them than that cannot be written.
    interrupted(guest, "fd_write", 1, guest.vector(0, 200_000), 1, 0);
    assert.ok(full > 0);
    guest.close();
  });
});

Deno.test("a large write under a deadline is whole when it is read", () => {
  withDescriptors(makePipe, (read, write) => {
    const guest = new RawGuest({ stdio: [read, write, write] }, true);
    guest.bytes(BUFFER, 60_000).fill(7);
    const context = { deadline: 60_000 };
    assert.equal(guest.callIn(context, "fd_write", 1, guest.vector(BUFFER, 60_000), 1, 0), 0);
    assert.equal(guest.u32(), 60_000);
    assert.equal(guest.callIn(context, "fd_read", 0, guest.vector(BUFFER, 60_000), 1, 0), 0);
    assert.equal(guest.u32(), 60_000);
    guest.close();
  });
});

Deno.test({ name: "sockets end at the deadline", ignore: LACKS_POSIX_FILES }, () => {
  withDescriptors(makeSocketPair, (mine, theirs) => {
    const guest = new RawGuest({ stdio: [theirs, theirs, theirs] }, true);
    interrupted(guest, "sock_recv", 0, guest.vector(BUFFER, 100), 1, 0, 0, 4);
    interrupted(guest, "fd_read", 0, guest.vector(BUFFER, 100), 1, 0);
    writeText(mine, "part");
    interrupted(guest, "sock_recv", 0, guest.vector(BUFFER, 100), 1, 2, 0, 4); // all of 100 bytes
    for (const name of ["sock_send", "fd_write"] as const) {
      const rest = name === "sock_send" ? [0, 0] : [0];
      const send = () => guest.callIn({ deadline: 60 }, name, 0, guest.vector(0, 262_144), 1, ...rest);
      assert.throws(
        () => {
          for (let k = 0; k < 1000; k++) send();
        },
        { message: "interrupted" },
        name,
      );
    }
    guest.close();
  });
  withSandbox(({ outside }) => {
    const listener = makeListener(join(outside, "socket"));
    const guest = new RawGuest({ stdio: [listener, 1, 2] }, true);
    interrupted(guest, "sock_accept", 0, 0, 0);
    guest.close();
    closeDescriptor(listener);
  });
});

Deno.test({ name: "a FIFO that the guest opens ends at the deadline", ignore: LACKS_POSIX_FILES }, () => {
  withSandbox(({ outside, root }) => {
    makeFifo(join(root, "fifo"));
    const held = openForBoth(join(root, "fifo"));
    const guest = new RawGuest({ preopens: [{ host: outside, guest: "/" }] }, true);
    const { errno, fd } = guest.open(3, "open/fifo", { rights: 2n });
    assert.equal(errno, 0);
    interrupted(guest, "fd_read", fd, guest.vector(BUFFER, 100), 1, 0);
    guest.close();
    closeDescriptor(held);
  });
});

Deno.test("an asynchronous call is interrupted in a wait, too", async () => {
  const [read, write] = makePipe();
  const guest = new RawGuest({ stdio: [read, write, write] }, true);
  try {
    const call = guest.instance.callAsync({ deadline: 30 }, "fd_read", 0, guest.vector(BUFFER, 1), 1, 0);
    await assert.rejects(call, { message: "interrupted" });
  } finally {
    guest.close();
    for (const fd of [read, write]) closeDescriptor(fd);
  }
});

Deno.test("bytes that WASI moves cost fuel, one unit for 64", () => {
  withDescriptors(makePipe, (read, write) => {
    const guest = new RawGuest({ stdio: [read, write, write] }, true);
    const cost = (name: WasiName, ...args: number[]) => {
      const context = { fuel: 1_000_000 };
      assert.equal(guest.callIn(context, name, ...args), 0);
      return 1_000_000 - context.fuel;
    };
    assert.equal(cost("random_get", 0, 64_000) - cost("random_get", 0, 0), 1000);
    assert.equal(cost("fd_write", 1, guest.vector(0, 6400), 1, 0) - cost("fd_write", 1, guest.vector(0, 0), 1, 0), 100);
    const context = { fuel: 500 };
    assert.throws(() => guest.callIn(context, "random_get", 0, 64_000), { message: "out of fuel" });
    guest.close();
  });
});

/** The fuel that a call uses. */
function fuelOf(guest: RawGuest, name: WasiName, ...args: (number | bigint)[]): number {
  const context = { fuel: 100_000_000 };
  guest.callIn(context, name, ...args);
  return 100_000_000 - context.fuel;
}

/** A guest with limits and a directory, which `prepare` fills; the directory is its descriptor 3. */
function withDirectory(
  prepare: (root: string) => void,
  test: (guest: RawGuest, root: string) => void,
  options: (root: string) => WasiOptions = () => ({}),
): void {
  const root = mkdtempSync(join(tmpdir(), "waft-wasi-limits-"));
  try {
    prepare(root);
    const guest = new RawGuest({ preopens: [{ host: root, guest: "/" }], ...options(root) }, true);
    test(guest, root);
    guest.close();
  } finally {
    rmSync(root, { recursive: true });
  }
}

Deno.test("each component of a path and of its links costs fuel, and ends at the deadline", () => {
  const steps = 600;
  withDirectory((root) => {
    mkdirSync(join(root, "a"));
    writeFileSync(join(root, "end"), "");
    if (LACKS_LINKS) return;
    for (let k = 0; k < 39; k++) symlinkSync(`${"a/../".repeat(steps)}${k === 38 ? "end" : k + 1}`, join(root, `${k}`));
  }, (guest) => {
    const status = (path: string) => ["path_filestat_get", 3, 1, ...guest.string(path), BUFFER] as const;
    const plain = fuelOf(guest, ...status("end"));
    assert.ok(fuelOf(guest, ...status("a/../".repeat(steps) + "end")) - plain >= 2 * steps * 16);
    if (LACKS_LINKS) return;
    assert.ok(fuelOf(guest, ...status("0")) - plain >= 39 * 2 * steps * 16);
    assert.throws(() => guest.callIn({ deadline: 1 }, ...status("0")), { message: "interrupted" });
    assert.throws(() => guest.callIn({ fuel: 10_000 }, ...status("0")), { message: "out of fuel" });
  });
});

Deno.test("each ancestor that is compared with protected directories costs fuel", () => {
  withDirectory((root) => mkdirSync(join(root, "d/".repeat(100)), { recursive: true }), (guest) => {
    const made = (depth: number) =>
      fuelOf(guest, "path_create_directory", 3, ...guest.string(`${"d/".repeat(depth)}new`)) - depth * 16;
    assert.ok(made(100) - made(1) >= 99 * 16);
  }, (root) => ({ protect: { directories: [join(root, "kept")] } }));
});

Deno.test("paths that are longer than those of any system are not decoded", () => {
  const original = TextDecoder.prototype.decode;
  withDirectory(() => {}, (guest) => {
    let longest = 0;
    TextDecoder.prototype.decode = function (this: TextDecoder, ...args) {
      longest = Math.max(longest, args[0]?.byteLength ?? 0);
      return original.apply(this, args);
    };
    try {
      guest.bytes(BUFFER, 100_000).fill(97);
      assert.equal(guest.call("path_filestat_get", 3, 0, BUFFER, 100_000, 0), ERRNO.nametoolong);
      assert.equal(guest.call("path_symlink", BUFFER, 100_000, 3, BUFFER, 1), ERRNO.nametoolong);
      assert.equal(guest.call("path_filestat_get", 3, 0, BUFFER, 0x7fff_ffff, 0), ERRNO.fault);
    } finally {
      TextDecoder.prototype.decode = original;
    }
    assert.ok(longest < 10_000, `${longest} bytes`);
  });
});

Deno.test("allocating a file is charged, in pieces, and takes back what a limit ends", () => {
  withDirectory((root) => writeFileSync(join(root, "file"), "text"), (guest, root) => {
    const rights = BigInt(RIGHT.fd_allocate | RIGHT.fd_filestat_set_size | RIGHT.fd_write);
    assert.equal(guest.call("path_open", 3, 0, ...guest.string("file"), 0, rights, rights, 0, 0), 0);
    const fd = guest.u32();
    const size = () => readFileSync(join(root, "file")).length;
    assert.equal(guest.callIn({ fuel: 10_000 }, "fd_allocate", fd, 0n, 100_000n), 0);
    assert.equal(size(), 100_000);
    assert.ok(fuelOf(guest, "fd_allocate", fd, 0n, 2n ** 27n) >= 2 ** 21);
    assert.equal(guest.call("fd_filestat_set_size", fd, 4n), 0);
    const context = { fuel: 1_500_000 }; // one piece of 64 MiB costs 1,048,576
    assert.throws(() => guest.callIn(context, "fd_allocate", fd, 0n, 2n ** 27n), { message: "out of fuel" });
    assert.ok(context.fuel < 500_000);
    assert.equal(size(), 4);
    assert.equal(guest.callIn({ fuel: 1000 }, "fd_allocate", fd, 2n ** 62n, 2n ** 62n), ERRNO.fbig);
    assert.equal(guest.callIn({ fuel: 1000 }, "fd_allocate", fd, 0n, 0n), ERRNO.inval);
  });
});

Deno.test("arguments and variables cost fuel for their bytes", () => {
  const args = Array.from({ length: 100 }, () => "a".repeat(639));
  const guest = new RawGuest({ args, env: [["NAME", "a".repeat(64_000)]] }, true);
  assert.ok(fuelOf(guest, "args_get", BUFFER, 2 * BUFFER) >= 1000 + 100);
  assert.ok(fuelOf(guest, "environ_get", BUFFER, 2 * BUFFER) >= 1000);
  guest.close();
});

Deno.test("records that WASI reads cost fuel, also where no byte reaches the guest", () => {
  const root = mkdtempSync(join(tmpdir(), "waft-wasi-fuel-"));
  for (let i = 0; i < 400; i++) writeFileSync(join(root, `file-${i}`), "");
  const guest = new RawGuest({ preopens: [{ host: root, guest: "/" }] }, true);
  try {
    const cost = (name: WasiName, ...args: (number | bigint)[]) => {
      const context = { fuel: 1_000_000 };
      assert.equal(guest.callIn(context, name, ...args), 0);
      return 1_000_000 - context.fuel;
    };
    // A record of the system has at least 24 bytes, a vector 16, a subscription 48.
    assert.ok(cost("fd_readdir", 3, 0, 0, 0n, 65528) >= 400 * 24 / 64);
    assert.ok(cost("fd_write", 1, 0, 1000, 65528) - cost("fd_write", 1, 0, 0, 65528) >= 1000 * 16 / 64);
    const ready = cost("poll_oneoff", 0, 100_000, 1000, 65528) - cost("poll_oneoff", 0, 100_000, 1, 65528);
    assert.ok(ready >= 999 * 48 / 64 - 1);
  } finally {
    guest.close();
    rmSync(root, { recursive: true });
  }
});

const MIB = 1 << 20;
const MOVED = 8 * MIB;
/** No zeros, and a length that no power of two is a multiple of. */
const PATTERN = Buffer.alloc(MOVED, Uint8Array.from({ length: 251 }, (_, k) => k + 1));

/** Moves 8 MiB between a file and a memory, under limits whose time is up after some checks. */
function transfer(
  name: "fd_read" | "fd_pread" | "fd_write" | "fd_pwrite",
  { checks = Infinity, vectors = 1, isBounded = true }: {
    readonly checks?: number;
    readonly vectors?: number;
    readonly isBounded?: boolean;
  },
): { readonly error?: string; readonly moved: number; readonly calls: number } {
  const root = mkdtempSync(join(tmpdir(), "waft-wasi-pieces-"));
  const file = join(root, "file");
  const writes = name.endsWith("write");
  writeFileSync(file, writes ? "" : PATTERN);
  let left = checks, charged = 0, calls = 0;
  const wasi = new Wasi({ preopens: [{ host: root, guest: "/" }] }, {
    deadline: () => Infinity,
    isOver: () => left-- <= 0,
    isBounded: () => isBounded,
    interrupted: () => new Error("interrupted"),
    charge: (bytes) => {
      charged += bytes;
      calls++;
    },
  });
  const memory = host.memory(9 * 16);
  wasi.attachMemory(memory);
  const bytes = new Uint8Array(memory.buffer);
  const call = (wanted: string, ...args: (number | bigint)[]) =>
    (wasi.imports[wanted] as (...a: unknown[]) => number)(...args);
  try {
    bytes.set(new TextEncoder().encode("file"));
    const rights = writes ? RIGHT.fd_write | RIGHT.fd_seek : RIGHT.fd_read | RIGHT.fd_seek;
    assert.equal(call("path_open", 3, 0, 0, 4, 0, BigInt(rights), 0n, 0, 8), 0);
    const [fd] = new Uint32Array(memory.buffer, 8, 1);
    const words = new Uint32Array(memory.buffer, 1024, vectors * 2);
    for (let k = 0; k < vectors; k++) words.set([MIB + k * MOVED / vectors, MOVED / vectors], k * 2);
    if (writes) bytes.set(PATTERN, MIB);
    charged = calls = 0;
    let error: string | undefined;
    try {
      assert.equal(call(name, fd!, 1024, vectors, ...(/_p/.test(name) ? [0n] : []), 16), 0);
      assert.equal(new Uint32Array(memory.buffer, 16, 1)[0], MOVED);
    } catch (failure) {
      error = (failure as Error).message;
    }
    const moved = charged - vectors * 16;
    const arrived = writes ? readFileSync(file) : Buffer.from(memory.buffer, MIB, MOVED);
    if (writes) assert.equal(arrived.length, moved);
    else assert.equal(arrived.indexOf(0) >>> 0, moved === MOVED ? 0xffff_ffff : moved);
    assert.equal(Buffer.compare(arrived.subarray(0, moved), PATTERN.subarray(0, moved)), 0);
    return { ...(error === undefined ? {} : { error }), moved, calls };
  } finally {
    wasi.close();
    memory.close();
    rmSync(root, { recursive: true });
  }
}

for (const name of ["fd_read", "fd_pread", "fd_write", "fd_pwrite"] as const) {
  Deno.test(`${name}: limits are checked between the pieces of a large transfer`, () => {
    for (const vectors of [1, 4, 128]) {
      const whole = transfer(name, { vectors });
      assert.deepEqual([whole.error, whole.moved], [undefined, MOVED]);
      assert.ok(whole.calls >= MOVED / MIB, "each piece is charged before the next one moves");
      const ended = transfer(name, { checks: 3, vectors });
      assert.equal(ended.error, "interrupted");
      assert.ok(ended.moved <= 3 * MIB, `${ended.moved} bytes`);
      const free = transfer(name, { vectors, isBounded: false });
      assert.deepEqual([free.error, free.moved, free.calls], [undefined, MOVED, 2], "one system call without limits");
    }
  });
}

/** A multithreaded program whose first thread runs `start`; its standard input never receives data. */
function program(start: string) {
  return NewEngine({ interruptible: true }).compile(`(module
    (import "env" "memory" (memory 1 4 shared))
    (import "wasi" "thread-spawn" (func (param i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
    (func (export "wasi_thread_start") (param i32 i32))
    (func (export "_start") ${start}))`);
}

Deno.test("threads that wait for descriptors end at the deadline", async () => {
  const [read, write] = makePipe();
  try {
    const waits = [
      "(drop (call $read (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 80)))",
      // One subscription: reading descriptor 0.
      `(i32.store8 (i32.const 136) (i32.const 1))
       (drop (call $poll (i32.const 128) (i32.const 256) (i32.const 1) (i32.const 80)))`,
    ];
    for (const wait of waits) {
      const run = runThreads(program(wait), { stdio: [read, write, write] }, { deadline: 1500 });
      await assert.rejects(run, { message: "interrupted" });
    }
  } finally {
    for (const fd of [read, write]) closeDescriptor(fd);
  }
});
