/**
 * poll_oneoff: clocks, pipes, files, several at once, and nonsense.
 */
import assert from "node:assert/strict";
import { closeSync, openSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ERRNO } from "../../engine/wasi/abi.ts";
import { HANG_MS } from "../support/hang.ts";
import { argumentsFor, type RawGuest, WASI_NAMES } from "./raw_guest.ts";
import { ROOT, withSandbox } from "./sandbox.ts";
import { closeDescriptor, makePipe, writeText } from "./system_call.ts";

const IN = 65536;
const OUT = 2 * 65536;

interface Clock {
  userdata: bigint;
  clock: number;
  timeout: bigint;
  absolute?: boolean;
}

interface Stream {
  userdata: bigint;
  fd: number;
  write?: boolean;
}

interface Event {
  userdata: bigint;
  errno: number;
  type: number;
  hangup: boolean;
}

/** Calls poll_oneoff; returns its events and duration. */
function poll(guest: RawGuest, ...list: (Clock | Stream)[]): { errno: number; events: Event[]; ms: number } {
  const { view } = guest;
  guest.bytes(IN, list.length * 48).fill(0);
  list.forEach((wanted, i) => {
    const at = IN + i * 48;
    view.setBigUint64(at, wanted.userdata, true);
    if ("clock" in wanted) {
      view.setUint32(at + 16, wanted.clock, true);
      view.setBigUint64(at + 24, wanted.timeout, true);
      view.setUint16(at + 40, wanted.absolute ? 1 : 0, true);
    } else {
      view.setUint8(at + 8, wanted.write ? 2 : 1);
      view.setUint32(at + 16, wanted.fd, true);
    }
  });
  const started = performance.now();
  const errno = guest.call("poll_oneoff", IN, OUT, list.length, 0);
  const ms = performance.now() - started;
  const events = Array.from({ length: errno === 0 ? guest.u32(0) : 0 }, (_, i) => {
    const at = OUT + i * 32;
    return {
      userdata: view.getBigUint64(at, true),
      errno: view.getUint16(at + 8, true),
      type: view.getUint8(at + 10),
      hangup: (view.getUint16(at + 24, true) & 1) !== 0,
    };
  });
  return { errno, events, ms };
}

const MS = 1_000_000n;

Deno.test("clocks: the earliest wakes, relative and absolute, not too early", () => {
  withSandbox(({ guest }) => {
    const short = poll(guest, { userdata: 1n, clock: 1, timeout: 600_000n * MS }, {
      userdata: 2n,
      clock: 1,
      timeout: 30n * MS,
    });
    assert.deepEqual(short.events, [{ userdata: 2n, errno: 0, type: 0, hangup: false }]);
    assert.ok(short.ms >= 29 && short.ms < HANG_MS, `${short.ms}`);
    for (const clock of [0, 1]) {
      assert.equal(guest.call("clock_time_get", clock, 0n, 0), 0);
      const deadline = guest.u64(0) + 20n * MS;
      const soon = poll(guest, { userdata: 3n, clock, timeout: deadline, absolute: true });
      assert.equal(soon.events.length, 1);
      assert.ok(soon.ms < HANG_MS, `${soon.ms}`);
      // By the same clock: making the call takes time, too.
      assert.equal(guest.call("clock_time_get", clock, 0n, 0), 0);
      assert.ok(guest.u64(0) >= deadline - MS, `${deadline - guest.u64(0)} ns too early`);
      assert.ok(poll(guest, { userdata: 4n, clock, timeout: 1n, absolute: true }).ms < HANG_MS);
    }
    assert.equal(poll(guest, { userdata: 5n, clock: 9, timeout: 1n }).events[0]?.errno, ERRNO.inval);
    assert.equal(poll(guest, { userdata: 5n, clock: 2, timeout: 1n }).events[0]?.errno, ERRNO.notsup);
  });
});

Deno.test("a guest without standard streams does not learn their readiness, and no file takes their numbers", () => {
  withSandbox(({ guest }) => {
    const streams = [0, 1, 2].flatMap((fd) => [false, true].map((write) => ({ userdata: BigInt(fd), fd, write })));
    const { errno, events } = poll(guest, ...streams);
    assert.equal(errno, 0);
    assert.deepEqual(events.map((event) => event.errno), streams.map(() => ERRNO.badf));
    const functions = WASI_NAMES.filter((name) => /^(?:fd|sock)_/.test(name));
    for (const name of functions) {
      for (const fd of [0, 1, 2]) {
        assert.equal(guest.call(name, ...argumentsFor(name, fd)), ERRNO.badf, `${name} ${fd}`);
      }
    }
    const { fd } = guest.open(ROOT, "a.txt");
    assert.equal(fd, ROOT + 1);
    for (const to of [0, 1, 2]) assert.equal(guest.call("fd_renumber", fd, to), ERRNO.badf);
    assert.equal(guest.call("fd_close", fd), 0);
    guest.wasi.close();
    assert.equal(guest.open(0, "a.txt").errno, ERRNO.badf);
  }, { stdio: "none" });
});

Deno.test("pipes: nothing, then data, then the end", () => {
  const [read, write] = makePipe();
  const [full, other] = makePipe();
  let open = true;
  try {
    withSandbox(({ guest }) => {
      const timer: Clock = { userdata: 9n, clock: 1, timeout: 10n * MS };
      const stdin: Stream = { userdata: 7n, fd: 0 };
      assert.deepEqual(poll(guest, stdin, timer).events.map((e) => e.userdata), [9n]);
      writeText(write, "x");
      const ready = poll(guest, timer, stdin);
      assert.deepEqual(ready.events, [{ userdata: 7n, errno: 0, type: 1, hangup: false }]);
      assert.equal(guest.read(0).text, "x");
      assert.deepEqual(poll(guest, { userdata: 8n, fd: 1, write: true }).events.map((e) => [e.userdata, e.type]), [[
        8n,
        2,
      ]]);
      closeDescriptor(write);
      open = false;
      assert.deepEqual(poll(guest, stdin).events, [{ userdata: 7n, errno: 0, type: 1, hangup: true }]);
    }, { stdio: [read, other, other] });
  } finally {
    for (const fd of open ? [read, write, full, other] : [read, full, other]) closeDescriptor(fd);
  }
});

Deno.test("files are always ready; bad descriptors are events with an error", () => {
  withSandbox(({ guest }) => {
    const { fd } = guest.open(ROOT, "a.txt");
    const { events, ms } = poll(
      guest,
      { userdata: 1n, fd },
      { userdata: 2n, fd: 99 },
      { userdata: 3n, clock: 1, timeout: 600_000n * MS },
    );
    assert.deepEqual(events.map((e) => [e.userdata, e.errno]), [[1n, 0], [2n, ERRNO.badf]]);
    assert.ok(ms < HANG_MS);
  });
});

Deno.test("files that the program opened as standard streams are always ready", () => {
  const file = openSync(fileURLToPath(import.meta.url), "r");
  try {
    withSandbox(({ guest }) => {
      const { events } = poll(
        guest,
        { userdata: 1n, fd: 0 },
        { userdata: 2n, fd: 1, write: true },
        { userdata: 3n, clock: 1, timeout: 60_000n * MS },
      );
      assert.deepEqual(events.map((e) => [e.userdata, e.errno, e.type]), [[1n, 0, 1], [2n, 0, 2]]);
    }, { stdio: [file, file, 2] });
  } finally {
    closeSync(file);
  }
});

Deno.test("nonsense is refused", () => {
  withSandbox(({ guest }) => {
    assert.equal(guest.call("poll_oneoff", IN, OUT, 0, 0), ERRNO.inval);
    assert.equal(guest.call("poll_oneoff", IN, OUT, -1, 0), ERRNO.inval);
    assert.equal(guest.call("poll_oneoff", 4 * 65536 - 47, OUT, 1, 0), ERRNO.fault);
    assert.equal(guest.call("poll_oneoff", IN, 4 * 65536 - 31, 1, 0), ERRNO.fault);
    guest.bytes(IN, 48).fill(0);
    guest.view.setUint8(IN + 8, 3);
    assert.equal(guest.call("poll_oneoff", IN, OUT, 1, 0), ERRNO.inval);
  });
});
