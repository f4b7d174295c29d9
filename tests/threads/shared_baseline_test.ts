/**
 * Modules that are shared while they have baseline code: no realm waits for the optimizing compiler, one of them has
 * the module optimized, and all move up to that code.
 */
import assert from "node:assert/strict";
import { type CompilationReport, type EngineOptions, host, type Memory, Module, NewEngine } from "../../engine/mod.ts";
import { JOB, WORD } from "../../engine/background/optimize_job.ts";
import { Member } from "./team.ts";

const PROGRAM = `(module (import "env" "memory" (memory 1 4 shared)) (import "env" "pause" (func $pause))
  (global $calls (mut i32) (i32.const 0))
  (func $fib (param i32) (result i32) (if (result i32) (i32.lt_u (local.get 0) (i32.const 2))
    (then (local.get 0))
    (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1)))
      (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
  (func (export "fib") (param i32) (result i32) (call $pause) (call $fib (local.get 0)))
  (func (export "count") (result i32)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (i32.atomic.rmw.add (i32.const 0) (i32.const 1)))
  (func (export "spin") (result i32) (local $n i32)
    (loop $l
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if $l (i32.eqz (i32.atomic.load (i32.const 8)))))
    (local.get $n))
  (func $load (export "load") (param i32) (result i32) (i32.load (local.get 0))))`;

type Token = ReturnType<Module["share"]>;

interface Sharing {
  readonly module: Module;
  readonly memory: Memory;
  readonly token: Token;
  readonly members: readonly Member[];
  readonly reports: readonly CompilationReport[];
}

/** Whether a token holds baseline code. */
function isBaseline({ description }: Token): boolean {
  return "baseline" in JSON.parse(description);
}

/** Runs `action` with `size` Workers that have an instance of one shared module. */
async function withMembers(size: number, options: EngineOptions, action: (sharing: Sharing) => Promise<void>) {
  const reports: CompilationReport[] = [];
  const module = NewEngine({ ...options, explain: (report) => reports.push(report) }).compile(PROGRAM);
  const token = module.share();
  const memory = host.sharedMemory(1, 4, "guard");
  const members = Array.from({ length: size }, () => new Member());
  try {
    const request = { kind: "instantiate", module: token, memory: memory.share() } as const;
    await Promise.all(members.map((member) => member.ask(request)));
    await action({ module, memory, token, members, reports });
  } finally {
    for (const member of members) member.terminate();
    module.unshare();
  }
}

Deno.test("sharing a module does not wait for its optimized code", async () => {
  await withMembers(2, { tier: "auto" }, async ({ token, members, reports }) => {
    assert.ok(isBaseline(token));
    assert.equal(await members[0].call("fib", 15), 610);
    assert.equal(await members[1].call("fib", 16), 987);
    await assert.rejects(members[1].call("load", 1 << 18), /out of bounds memory access/);
    assert.deepEqual(reports.map(({ tier }) => tier), ["baseline"]);
  });
});

for (const tierUpCalls of [0, 1, 2, 3]) {
  Deno.test(`modules move up in each Worker after ${tierUpCalls} calls, with equal results`, async () => {
    await withMembers(2, { tier: "auto", tierUpCalls }, async ({ members }) => {
      const sizes = await Promise.all(members.map((member) => member.ask({ kind: "code size" })));
      for (let n = 0; n < 8; n++) {
        for (const [k, member] of members.entries()) {
          assert.equal(await member.call("count"), 2 * n + k);
          assert.equal(await member.call("fib", 10 + n), [55, 89, 144, 233, 377, 610, 987, 1597][n]);
        }
      }
      const after = await Promise.all(members.map((member) => member.ask({ kind: "code size" })));
      assert.ok(after.every((size, k) => size !== sizes[k]), `${sizes} bytes of baseline code, then ${after}`);
      await assert.rejects(members[0].call("load", -4), /out of bounds memory access/);
    });
  });
}

Deno.test("one thread optimizes a shared module, and every realm places the code", async () => {
  await withMembers(3, { tier: "auto" }, async ({ module, token, members }) => {
    const memory = host.sharedMemory(1, 4, "guard");
    const own = module.instantiate({}, { env: { memory, pause: () => {} } });
    const { codeSize } = module;
    const work = async (run: () => unknown, size: () => unknown) => {
      while (await size() === codeSize) assert.equal(await run(), 610);
    };
    await Promise.all([
      work(() => own.call({}, "fib", 15), () => module.codeSize),
      ...members.map((member) => work(() => member.call("fib", 15), () => member.ask({ kind: "code size" }))),
    ]);
    const words = new Int32Array(token.buffers.at(-1)!);
    assert.deepEqual([words[WORD.CLAIMED], words[WORD.STATE]], [1, JOB.COMPILED]);
    for (const member of members) {
      assert.equal(await member.ask({ kind: "code size" }), module.codeSize);
      assert.equal(await member.call("fib", 16), 987);
    }
    assert.ok(!isBaseline(module.share()), "the code is final");
  });
});

/** Lets one Worker spin for `ms` once the module is optimized. Returns how often it continued in optimized code. */
async function loopsEntered(ms: number): Promise<number> {
  let entered = 0;
  await withMembers(2, { tier: "auto" }, async ({ members, memory, token }) => {
    const [first, second] = members;
    const spinning = second.call("spin");
    const words = new Int32Array(token.buffers.at(-1)!);
    while (words[WORD.STATE] !== JOB.COMPILED) assert.equal(await first.call("fib", 15), 610);
    await new Promise((resolve) => setTimeout(resolve, ms));
    Atomics.store(new Int32Array(memory.buffer), 2, 1);
    assert.ok(await spinning !== 0);
    assert.equal(await second.call("fib", 16), 987);
    entered = await second.ask({ kind: "loops entered" }) as number;
  });
  return entered;
}

Deno.test("a Worker whose call is one loop continues there in optimized code", async () => {
  // A busy machine takes long to start the thread that compiles the loop.
  for (let ms = 1000; await loopsEntered(ms) === 0; ms *= 2) assert.ok(ms < 60_000, "no frame continued");
});

Deno.test("code that must be proven is shared as it is", () => {
  const module = NewEngine({ tier: "baseline", verify: "code" }).compile(PROGRAM);
  const token = module.share();
  assert.ok(!isBaseline(token) && !isSource(token));
  module.unshare();
});

/** Without a shared memory, and with functions, calls, traps and loops of its own in each realm. */
const PLAIN = PROGRAM.replace(`(import "env" "memory" (memory 1 4 shared))`, `(memory 1 4)`)
  .replace(
    `(import "env" "pause" (func $pause))`,
    `(func $pause) (table 1 funcref) (elem (i32.const 0) $fib)
    (type $unary (func (param i32) (result i32)))
    (func (export "indirect") (param i32) (result i32)
      (call_indirect (type $unary) (local.get 0) (i32.const 0)))
    (func (export "boxed") (param i32) (result i32)
      (struct.get $box 0 (struct.new $box (local.get 0)))) (type $box (struct (field i32)))`,
  );

/** Runs `action` with Workers that have an instance of PLAIN. */
async function withPlain(
  options: EngineOptions,
  action: (module: Module, token: Token, members: readonly Member[]) => Promise<void>,
): Promise<void> {
  const module = NewEngine(options).compile(PLAIN);
  const members = [new Member(), new Member()];
  try {
    const token = module.share();
    await Promise.all(members.map((member) => member.ask({ kind: "instantiate", module: token })));
    await action(module, token, members);
  } finally {
    for (const member of members) member.terminate();
    module.unshare();
  }
}

/** Whether a token holds no code. */
function isSource({ description }: Token): boolean {
  return "source" in JSON.parse(description);
}

Deno.test("a module without a shared memory is shared without its code, at once", async () => {
  const reports: CompilationReport[] = [];
  await withPlain({ tier: "auto", explain: (report) => reports.push(report) }, async (module, token, members) => {
    assert.ok(isSource(token));
    assert.equal(module.share(), token);
    for (const member of members) {
      assert.equal(await member.call("fib", 15), 610);
      assert.equal(await member.call("indirect", 16), 987);
      assert.equal(await member.call("boxed", 17), 17);
      assert.equal(await member.call("count"), 0, "each has a memory of its own");
      await assert.rejects(member.call("load", 1 << 18), /out of bounds memory access/);
    }
    assert.deepEqual(reports.map(({ tier }) => tier), ["baseline"]);
    const same = Module.fromShared(structuredClone(token));
    assert.equal(same.codeSize, module.codeSize, "this realm has the code already");
    assert.equal(same.instantiate().call({}, "fib", 15), 610);
  });
});

for (const tierUpCalls of [0, 2]) {
  Deno.test(`modules that are compiled by each Worker move up after ${tierUpCalls} calls`, async () => {
    await withPlain({ tier: "auto", tierUpCalls }, async (module, _, members) => {
      for (let n = 0; n < 6; n++) {
        for (const member of members) {
          assert.equal(await member.call("indirect", 10 + n), [55, 89, 144, 233, 377, 610][n]);
          assert.equal(await member.call("count"), n);
        }
      }
      await assert.rejects(members[1].call("load", -4), /out of bounds memory access/);
      const own = module.instantiate();
      for (let n = 0; n < 4; n++) assert.equal(own.call({}, "fib", 15), 610);
      for (const member of members) assert.equal(await member.ask({ kind: "code size" }), module.codeSize);
    });
  });
}

Deno.test("one thread optimizes a module that each realm has compiled, and every realm places the code", async () => {
  const reports: CompilationReport[] = [];
  await withPlain({ tier: "auto", explain: (report) => reports.push(report) }, async (module, token, members) => {
    const own = module.instantiate();
    // Not its size: that of optimized code can be the same.
    while (!reports.some(({ tier }) => tier === "optimizing")) assert.equal(own.call({}, "fib", 15), 610);
    const words = new Int32Array(token.buffers.at(-1)!);
    assert.deepEqual([words[WORD.CLAIMED], words[WORD.STATE]], [1, JOB.COMPILED]);
    for (const member of members) {
      // The code of a Worker also grows when it compiles a body.
      while (await member.ask({ kind: "code size" }) !== module.codeSize) {
        assert.equal(await member.call("fib", 15), 610);
      }
      assert.equal(await member.call("indirect", 16), 987);
    }
    const final = module.share();
    assert.ok(!isBaseline(final) && !isSource(final), "the code is final");
  });
});

Deno.test("a token without code is refused once the module is no longer shared", async () => {
  await withPlain({ tier: "auto" }, async (module, token, members) => {
    const late = new Member();
    module.unshare();
    assert.deepEqual(await late.ask({ kind: "adopt", values: [token] }), ["Error"]);
    assert.equal(await members[0].call("fib", 15), 610);
    late.terminate();
  });
});

Deno.test("a token of baseline code is refused once the module is no longer shared", async () => {
  const module = NewEngine({ tier: "auto" }).compile(PROGRAM);
  const token = module.share();
  const member = new Member();
  try {
    module.unshare();
    assert.deepEqual(await member.ask({ kind: "adopt", values: [token] }), ["Error"]);
    assert.deepEqual(await member.ask({ kind: "adopt", values: [module.share()] }), [""]);
  } finally {
    member.terminate();
    module.unshare();
  }
});
