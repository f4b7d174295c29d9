/**
 * WASI's functions about the process: arguments, environment, clocks, random, exit.
 */
import assert from "node:assert/strict";
import { Wasi, WasiExit } from "../../engine/wasi/mod.ts";
import { ERRNO } from "../../engine/wasi/abi.ts";
import { HANG_MS } from "../support/hang.ts";
import { BUFFER, RawGuest, WASI_NAMES } from "./raw_guest.ts";

function withGuest(body: (guest: RawGuest) => void, options = {}): void {
  const guest = new RawGuest(options);
  try {
    body(guest);
  } finally {
    guest.close();
  }
}

/** The strings of args_get or environ_get. */
function strings(guest: RawGuest, what: "args" | "environ"): string[] {
  assert.equal(guest.call(`${what}_sizes_get`, 0, 4), 0);
  const [count, bytes] = [guest.u32(0), guest.u32(4)];
  assert.equal(guest.call(`${what}_get`, 256, BUFFER), 0);
  const list = Array.from({ length: count }, (_, i) => {
    const at = guest.u32(256 + i * 4);
    const end = guest.bytes(at, bytes).indexOf(0);
    return guest.text(at, end);
  });
  assert.equal(bytes, list.reduce((sum, text) => sum + new TextEncoder().encode(text).length + 1, 0));
  return list;
}

Deno.test("all 46 functions of preview 1 can be imported", () => {
  assert.equal(WASI_NAMES.length, 46);
  withGuest((guest) => assert.deepEqual(Object.keys(guest.wasi.imports).sort(), [...WASI_NAMES].sort()));
});

Deno.test("args and environ give the strings in order", () => {
  const args = ["prog", "", "-x", "ünï"];
  withGuest((guest) => {
    assert.deepEqual(strings(guest, "args"), args);
    assert.deepEqual(strings(guest, "environ"), ["A=b", "EMPTY=", "Ü=ß=1"]);
    assert.equal(guest.call("args_get", 4 * 65536 - 4, BUFFER), ERRNO.fault);
    assert.equal(guest.call("environ_sizes_get", -1, 0), ERRNO.fault);
  }, { args, env: [["A", "b"], ["EMPTY", ""], ["Ü", "ß=1"]] });
  withGuest((guest) => assert.deepEqual(strings(guest, "args"), []));
  assert.throws(() => new RawGuest({ args: ["a\0b"] }), /NUL/);
});

Deno.test("clocks are close to the host's and do not go back", () => {
  withGuest((guest) => {
    const read = (id: number) => {
      assert.equal(guest.call("clock_time_get", id, 1n, 0), 0);
      return guest.u64(0);
    };
    assert.ok(Math.abs(Number(read(0) / 1_000_000n) - Date.now()) < HANG_MS);
    for (const id of [1, 2, 3]) {
      const first = read(id);
      assert.ok(read(id) >= first);
    }
    for (const id of [0, 1, 2, 3]) {
      assert.equal(guest.call("clock_res_get", id, 0), 0);
      assert.ok(guest.u64(0) > 0n && guest.u64(0) <= 1_000_000_000n);
    }
    for (const id of [4, -1]) {
      assert.equal(guest.call("clock_time_get", id, 0n, 0), ERRNO.inval);
      assert.equal(guest.call("clock_res_get", id, 0), ERRNO.inval);
    }
    assert.equal(guest.call("clock_time_get", 0, 0n, 4 * 65536 - 7), ERRNO.fault);
  });
});

Deno.test("random_get fills exactly the range given", () => {
  withGuest((guest) => {
    assert.equal(guest.call("random_get", BUFFER, 1000), 0);
    const first = guest.bytes(BUFFER, 1000).slice();
    assert.ok(new Set(first).size > 100);
    assert.equal(guest.bytes(BUFFER + 1000, 1)[0], 0);
    assert.equal(guest.call("random_get", BUFFER, 1000), 0);
    assert.notDeepEqual(guest.bytes(BUFFER, 1000), first);
    assert.equal(guest.call("random_get", BUFFER, 0), 0);
    assert.equal(guest.call("random_get", 4 * 65536 - 10, 11), ERRNO.fault);
    assert.equal(guest.call("random_get", -1, 2), ERRNO.fault);
  });
});

Deno.test("proc_exit throws WasiExit with the status through the guest", () => {
  withGuest((guest) => {
    for (const status of [0, 7, 255, -1]) {
      assert.throws(
        () => guest.call("proc_exit", status),
        (error: unknown) => error instanceof WasiExit && error.status === status >>> 0,
      );
    }
    assert.equal(guest.call("sched_yield"), 0);
    assert.equal(guest.call("proc_raise", 6), ERRNO.nosys);
  });
});

Deno.test("after close every descriptor is gone, and close may be repeated", () => {
  withGuest((guest) => {
    guest.wasi.close();
    guest.wasi.close();
    for (const fd of [0, 1, 2, 3]) assert.equal(guest.call("fd_close", fd), ERRNO.badf);
  }, { preopens: [{ host: ".", guest: "." }] });
});

Deno.test("functions that run before the memory is known fail with EFAULT", () => {
  const { args_get } = new Wasi({ args: ["x"] }).imports as unknown as { args_get(a: number, b: number): number };
  assert.equal(args_get(0, 0), ERRNO.fault);
});
