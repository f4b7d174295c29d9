/** Memories and modules shared by several Workers: tokens, lifetime, and termination of a Worker. */
import { deepEqual, equal, ok, rejects, throws } from "node:assert/strict";
import {
  host,
  Memory,
  Module,
  NewEngine,
  type SharedMemoryToken,
  type SharedModuleToken,
  type TrapError,
} from "../../engine/mod.ts";
import { collectGarbage } from "../support/collect_garbage.ts";
import { Member, withTeam } from "./team.ts";

/** A deadline that no call reaches, in milliseconds. */
const NEVER = 600_000;

const PROGRAM = `(module $program (import "env" "memory" (memory 1 16 shared)) (import "env" "pause" (func $pause))
  (global $calls (mut i32) (i32.const 0))
  (func (export "calls") (result i32)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1))) (global.get $calls))
  (func (export "host") (call $pause))
  (func $deep (export "load") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "store") (param i32 i32) (i32.store (local.get 0) (local.get 1)))
  (func (export "wait") (param i32 i64) (result i32)
    (memory.atomic.wait32 (local.get 0) (i32.const 0) (local.get 1)))
  (func (export "spin") (loop $l
    (drop (i32.atomic.rmw.add (i32.const 64) (i32.const 1)))
    (br_if $l (i32.eqz (i32.atomic.load (i32.const 68))))))
  (func (export "for_ever") (loop $l (br $l))))`;

Deno.test("a shared memory's buffer is a SharedArrayBuffer that grows with it", () => {
  const memory = host.sharedMemory(1, 3);
  const bytes = new Uint8Array(memory.buffer);
  ok((memory.buffer as unknown) instanceof SharedArrayBuffer);
  equal(memory.grow(1), 1);
  equal(bytes.length, 0x20000);
  equal(memory.buffer.byteLength, 0x20000);
  equal(memory.grow(2), -1);
  equal(memory.grow(0), 2);
  equal(memory.pages, 2);
});

Deno.test("a memory and its token's copy share length and content; code of both sees growth", () => {
  for (const bounds of ["guard", "explicit"] as const) {
    const engine = NewEngine({ bounds });
    const module = engine.compile(`(module (import "m" "m" (memory 0 4 shared))
      (func (export "size") (result i32) (memory.size))
      (func (export "load") (param i32) (result i32) (i32.load8_u (local.get 0))))`);
    const memory = host.sharedMemory(0, 4, bounds);
    const other = Memory.fromShared(memory.share());
    const [a, b] = [memory, other].map((m) => module.instantiate({}, { m: { m } }));
    throws(() => a.call({}, "load", 0), /out of bounds memory access/);
    equal(other.grow(2), 0);
    new Uint8Array(other.buffer)[0x1ffff] = 9;
    for (const instance of [a, b]) {
      equal(instance.call({}, "size"), 2);
      equal(instance.call({}, "load", 0x1ffff), 9);
      throws(() => instance.call({}, "load", 0x20000), /out of bounds memory access/);
    }
  }
});

Deno.test("an instance that defines a shared memory is neither reset nor saved", () => {
  const instance = NewEngine().compile(`(module (memory 1 1 shared))`).instantiate();
  throws(() => instance.reset(), /cannot be reset/);
  throws(() => instance.snapshot(), /cannot be saved/);
  const importing = NewEngine().compile(
    `(module (import "m" "m" (memory 1 1 shared)) (global (mut i32) (i32.const 3)))`,
  );
  importing.instantiate({}, { m: { m: host.sharedMemory(1, 1) } }).reset();
});

Deno.test("invalid tokens and unshareable memories are refused", () => {
  throws(() => host.memory(1).share(), /Only a shared memory/);
  throws(() => host.sharedMemory(1, undefined as unknown as number), /requires a maximum/);
  for (const token of [{}, null, { waft: "memory" }, { waft: "module", count: 1 }]) {
    throws(() => Memory.fromShared(token as unknown as SharedMemoryToken), TypeError);
    throws(() => Module.fromShared(token as unknown as SharedModuleToken), TypeError);
  }
  const token = NewEngine().compile("(module)").share();
  throws(() => Module.fromShared({ ...token, version: 0 }), /another version/);
});

Deno.test("in the realm that made it, a module's token yields the same module", () => {
  const module = NewEngine().compile(`(module (func (export "f") (result i32) (i32.const 5)))`);
  const again = Module.fromShared(module.share());
  equal(again.instantiate().call({}, "f"), 5);
  equal(again.codeSize, module.codeSize);
  module.unshare();
});

for (const bounds of ["guard", "explicit"] as const) {
  Deno.test(`${bounds}: one module in two Workers has separate instances, named traps and host functions`, async () => {
    await withTeam(2, PROGRAM, { bounds }, async (team) => {
      const [a, b] = team.members;
      equal(await a.call("calls"), 1);
      equal(await a.call("calls"), 2);
      equal(await b.call("calls"), 1);
      await a.call("host");
      await a.call("store", 128, 77);
      equal(await b.call("load", 128), 77);
      await rejects(b.call("load", 0x10000), /out of bounds memory access/);
      // The realm that compiled it can run it, too.
      const own = team.module.instantiate({}, { env: { memory: team.memory, pause: () => {} } });
      equal(own.call({}, "load", 128), 77);
      throws(() => own.call({}, "load", -4), (error) => {
        deepEqual((error as TrapError).frames.map(({ funcName }) => funcName), ["deep"]);
        return true;
      });
    });
  });
}

Deno.test("a wait ends at the call's deadline, in every realm, and the instance stays usable", async () => {
  await withTeam(1, PROGRAM, { interruptible: true }, async (team) => {
    const [member] = team.members;
    const own = team.module.instantiate({}, { env: { memory: team.memory, pause: () => {} } });
    throws(() => own.call({ deadline: 20 }, "wait", 256, -1n), /interrupted/);
    throws(() => own.call({ deadline: 20 }, "for_ever"), /interrupted/);
    equal(own.call({ deadline: NEVER }, "wait", 256, 1_000_000n), 2);
    for (const [name, ...args] of [["wait", 256, -1n], ["for_ever"]] as [string, ...(number | bigint)[]][]) {
      await rejects(member.ask({ kind: "call", name, args, deadline: 20 }), /interrupted/);
    }
    // Deadlines of other realms do not apply.
    const busy = member.call("wait", 256, 60_000_000n);
    throws(() => own.call({ deadline: 20 }, "for_ever"), /interrupted/);
    equal(await busy, 2);
    equal(await member.call("calls"), 1);
  });
});

Deno.test("a wait of 20 ms takes at least that long; one for another value returns at once", () => {
  const memory = host.sharedMemory(1, 16);
  const instance = NewEngine().compile(PROGRAM).instantiate({}, { env: { memory, pause: () => {} } });
  const start = performance.now();
  equal(instance.call({}, "wait", 0, 20_000_000n), 2);
  ok(performance.now() - start >= 19);
  new Int32Array(memory.buffer)[0] = 1;
  equal(instance.call({}, "wait", 0, -1n), 1);
});

Deno.test("terminating a Worker that waits or runs does not affect others", async () => {
  await withTeam(3, PROGRAM, {}, async (team) => {
    const [waiting, working, left] = team.members;
    // Their realms have opened the system's libraries: koffi ends a process in which a Worker is terminated meanwhile.
    for (const member of [waiting, working]) await member.call("store", 1024, 4);
    let settled = 0;
    for (const call of [waiting.call("wait", 512, -1n), working.call("spin")]) {
      call.finally(() => settled++).catch(() => {});
    }
    while (new Int32Array(team.memory.buffer)[16] === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    waiting.terminate();
    working.terminate();
    await left.call("store", 1024, 5);
    equal(new Int32Array(team.memory.buffer)[256], 5);
    equal(await left.call("load", 1024), 5);
    equal(team.memory.grow(1), 1);
    await left.call("store", 0x10000, 6);
    equal(settled, 0, "calls of terminated Workers do not settle");
    // Bun starts no Worker while a terminated one runs machine code.
    new Int32Array(team.memory.buffer)[17] = 1;
  });
});

Deno.test("a memory outlives the Worker that created it", async () => {
  const member = new Member();
  const token = await member.ask({ kind: "make", pages: 2, maximum: 4 }) as SharedMemoryToken;
  member.terminate();
  const memory = Memory.fromShared(token);
  ok(new Uint8Array(memory.buffer).every((byte) => byte === 7));
  equal(memory.grow(2), 2);
});

Deno.test("Workers that start concurrently each handle their own faults", async () => {
  const text =
    `(module (import "env" "memory" (memory 1)) (func (export "load") (param i32) (drop (i32.load (local.get 0)))))`;
  const module = NewEngine().compile(text);
  const members = Array.from({ length: 4 }, () => new Member());
  await Promise.all(members.map(async (member) => {
    await member.ask({ kind: "instantiate", module: module.share() });
    for (let n = 0; n < 50; n++) await rejects(member.call("load", 0x10000 + n), /out of bounds memory access/);
  }));
  for (const member of members) member.terminate();
});

Deno.test("a module that its creator has released lives on in a Worker, and ends with it", async () => {
  const member = new Member();
  // In a separate frame: a conservative collector (Bun's) finds stale references in this one.
  const handOver = async () => {
    const engine = NewEngine({ tier: "optimizing" }); // each realm has its own code of the baseline tier
    const module = engine.compile(`(module (func (export "f") (result i32) (i32.const 41)))`);
    const token = module.share();
    await member.ask({ kind: "instantiate", module: token });
    equal(new Int32Array(token.buffers[0])[0], 2);
    module.unshare();
    return { ...token };
  };
  const token = await handOver();
  const users = new Int32Array(token.buffers[0]);
  for (let n = 0; n < 200 && Atomics.load(users, 0) !== 1; n++) {
    collectGarbage();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  equal(Atomics.load(users, 0), 1);
  // New code must not reuse the module's addresses.
  for (let n = 0; n < 20; n++) NewEngine().compile(`(module (func (export "f") (result i32) (i32.const ${n})))`);
  equal(await member.call("f"), 41);
  member.terminate();
  // A token without remaining users is refused.
  users[0] = 0;
  throws(() => Module.fromShared(token), /has been released/);
});
