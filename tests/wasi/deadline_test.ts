/**
 * Deadlines and fuel bound WASI: every wait of a guest ends in the trap, and the bytes it moves cost fuel. No wait
 * below ends by itself, so a wait that ignores the deadline hangs the test.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Context, NewEngine } from "../../engine/mod.ts";
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
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";

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
