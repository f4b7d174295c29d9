/**
 * Asynchronous calls: host functions that return promises, concurrent calls, slices, aborts, deadlines and fuel; the
 * calls allowed in the meantime; and release of resources by finished calls.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { host, type Instance, NewEngine, promising, TrapError } from "@waft/engine";
import { programBytes, PROGRAMS } from "../../bench/programs.ts";

const engine = NewEngine();
const sliced = NewEngine({ interruptible: true });

/** A promise with its settling functions. */
function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void; reject: (reason: unknown) => void } {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((a, b) => [resolve, reject] = [a, b]);
  return { promise, resolve, reject };
}

function threadOf(instance: Instance) {
  return instance.internal.store.thread;
}

/** Longer than a busy machine takes for a few calls. */
const LONG_SLICE = 2000;

/** A deadline that no call reaches. */
const NEVER = 600_000;

/** Runs `body` with slices of `ms`. */
async function withSlices(instance: Instance, ms: number, body: () => Promise<void>): Promise<void> {
  const thread = threadOf(instance);
  const before = thread.sliceMs;
  thread.sliceMs = ms;
  try {
    await body();
  } finally {
    thread.sliceMs = before;
  }
}

for (const bounds of ["guard", "explicit"] as const) {
  Deno.test(`${bounds}: values of every type come out of promises`, async () => {
    const given = { object: 1 };
    const module = NewEngine({ bounds }).compile(`(module
      (import "h" "i" (func $i (param i32) (result i32)))
      (import "h" "l" (func $l (param i64) (result i64)))
      (import "h" "f" (func $f (param f32) (result f32)))
      (import "h" "d" (func $d (param f64) (result f64)))
      (import "h" "r" (func $r (result externref)))
      (import "h" "two" (func $two (result i32 i64)))
      (import "h" "many" (func $many (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
      (import "h" "none" (func $none))
      (func (export "all") (result i32 i64 f32 f64 externref i32 i64 i32)
        (call $none)
        (call $i (i32.const 20)) (call $l (i64.const -5)) (call $f (f32.const 1.5)) (call $d (f64.const 2.5)) (call $r) (call $two)
        (call $many (i32.const 1) (i32.const 2) (i32.const 3) (i32.const 4) (i32.const 5) (i32.const 6) (i32.const 7)
          (i32.const 8) (i32.const 9))))`);
    let calls = 0;
    const instance = module.instantiate({}, {
      h: {
        i: async (x: number) => (await null, x + 1),
        l: async (x: bigint) => (await null, x * 2n),
        f: (x: number) => Promise.resolve(x * 2),
        d: (x: number) => ({ then: (done: (value: number) => void) => done(x * 2) }), // any thenable
        r: () => Promise.resolve(given),
        two: () => Promise.resolve([7, 8n]),
        many: (...all: number[]) => Promise.resolve(all.reduce((a, b) => a * 10 + b)),
        none: async () => void (await null, calls++),
      },
    });
    const results = await instance.callAsync({}, "all");
    assert.deepEqual(results, [21, -10n, 3, 5, given, 7, 8n, 123456789]);
    assert.equal(calls, 1);
  });
}

Deno.test("a call without promises, a trap, wrong arguments and wrong names settle the promise", async () => {
  const instance = engine.compile(`(module (memory (export "m") 1)
    (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
    (func (export "trap") unreachable) (func (export "wide") (param i64)))`).instantiate();
  assert.equal(await instance.callAsync({}, "add", 2, 3), 5);
  await assert.rejects(instance.callAsync({}, "trap"), TrapError);
  await assert.rejects(instance.callAsync({}, "wide", 1), TypeError);
  await assert.rejects(instance.callAsync({}, "nothing"), /Unknown export/);
  await assert.rejects(instance.callAsync({}, "m"), /not a function/);
  instance.close();
  await assert.rejects(instance.callAsync({}, "add", 1, 2), /closed/);
});

Deno.test("a rejection is an exception: the guest catches it, or the caller gets the very value", async () => {
  const other = engine.compile(`(module (import "h" "f" (func $f (result i32)))
    (func (export "through") (result i32) (i32.add (call $f) (i32.const 1))))`);
  const reason = new Error("no");
  const f = (ok: boolean) => async () => {
    await null;
    if (!ok) throw reason;
    return 5;
  };
  let ok = false;
  const inner = other.instantiate({}, { h: { f: () => f(ok)() } });
  const instance = engine.compile(`(module (import "a" "through" (func $f (result i32)))
    (func (export "caught") (result i32)
      (block (try_table (catch_all 0) (return (call $f)))) (i32.const -1))
    (func (export "legacy") (result i32) (try (result i32) (do (call $f)) (catch_all (i32.const -2))))
    (func (export "not") (result i32) (i32.add (call $f) (i32.const 10))))`).instantiate({}, { a: inner.exports });
  assert.equal(await instance.callAsync({}, "caught"), -1);
  assert.equal(await instance.callAsync({}, "legacy"), -2);
  await assert.rejects(instance.callAsync({}, "not"), (error) => error === reason);
  ok = true;
  assert.equal(await instance.callAsync({}, "not"), 16);
  assert.equal(threadOf(instance).stack.suspended.size, 0);
});

Deno.test("many calls of one instance are in flight and end in any order", async () => {
  const waiting: { resolve: (value: number) => void }[] = [];
  const instance = engine.compile(`(module (import "h" "wait" (func $wait (param i32) (result i32)))
    (func $deep (export "deep") (param $n i32) (param $id i32) (result i32)
      (if (result i32) (local.get $n)
        (then (i32.add (call $deep (i32.sub (local.get $n) (i32.const 1)) (local.get $id)) (i32.const 1)))
        (else (call $wait (local.get $id))))))`).instantiate({}, {
    h: {
      wait: (id: number) => new Promise((resolve) => waiting.push({ resolve: () => resolve(id * 1000) })),
    },
  });
  const calls = Array.from({ length: 2000 }, (_, id) => instance.callAsync({}, "deep", id % 50, id));
  const { suspended } = threadOf(instance).stack;
  assert.equal(suspended.size, 2000);
  for (let k = waiting.length; k > 0;) {
    const at = (k * 7919) % waiting.length;
    waiting.splice(at, 1)[0].resolve(0);
    k = waiting.length;
  }
  const results = await Promise.all(calls);
  results.forEach((value, id) => assert.equal(value, id * 1000 + id % 50));
  assert.equal(suspended.size, 0);
});

Deno.test("a synchronous call that meets a promise: an externref, or an error that names the import", async () => {
  const promise = Promise.resolve(1);
  const text = `(module (import "env" "number" (func $n (result i32))) (import "env" "nothing" (func $v))
    (import "env" "ref" (func $r (result externref)))
    (func (export "number") (result i32) (call $n)) (func (export "nothing") (call $v))
    (func (export "ref") (result externref) (call $r))
    (func (export "caught") (result i32) (try (result i32) (do (call $n)) (catch_all (i32.const 3)))))`;
  const env = { number: () => promise, nothing: () => Promise.reject(new Error("unheard")), ref: () => promise };
  const instance = engine.compile(text).instantiate({}, { env });
  assert.throws(() => instance.call({}, "number"), /"env" "number" returned a promise: .*callAsync/);
  assert.throws(() => instance.call({}, "nothing"), TypeError);
  assert.equal(instance.call({}, "ref"), promise);
  assert.equal(await instance.callAsync({}, "ref"), 1);
  assert.equal(instance.call({}, "caught"), 3);
  const plain = engine.compile(text).instantiate({ promises: "values" }, { env: { ...env, nothing: () => promise } });
  assert.equal(plain.call({}, "number"), 0, "a promise is NaN, as in the JavaScript API");
  plain.call({}, "nothing");
  assert.equal(await plain.callAsync({}, "number"), 0);
});

Deno.test("a suspended instance may be called again, in every way", async () => {
  const gate = deferred<number>();
  const instance: Instance = engine.compile(`(module (import "h" "wait" (func $wait (result i32)))
    (import "h" "again" (func $again (param i32) (result i32)))
    (global $n (mut i32) (i32.const 0))
    (func (export "wait") (result i32) (i32.add (call $wait) (global.get $n)))
    (func (export "bump") (result i32) (global.set $n (i32.add (global.get $n) (i32.const 1))) (global.get $n))
    (func (export "again") (param i32) (result i32) (call $again (local.get 0))))`).instantiate({}, {
    h: {
      wait: () => gate.promise,
      again: (how: number) => {
        if (how === 0) return instance.call({}, "bump");
        if (how === 1) return instance.callAsync({}, "again", 0);
        return instance.call({}, "wait");
      },
    },
  });
  const first = instance.callAsync({}, "wait");
  assert.equal(instance.call({}, "bump"), 1);
  assert.equal(await instance.callAsync({}, "again", 1), 2);
  assert.equal(await instance.callAsync({}, "again", 0), 3);
  await assert.rejects(
    instance.callAsync({}, "again", 2),
    /returned a promise/,
    "a synchronous call in between cannot wait",
  );
  gate.resolve(100);
  assert.equal(await first, 103);
});

Deno.test("a host function that never resolves is aborted, or meets its deadline, and nothing is left", async () => {
  const instance = sliced.compile(`(module (import "h" "never" (func $never (result i32)))
    (func $f (export "f") (param i32) (result i32)
      (if (result i32) (local.get 0) (then (call $f (i32.sub (local.get 0) (i32.const 1)))) (else (call $never))))
    (func (export "answer") (result i32) (i32.const 42)))`).instantiate({}, {
    h: { never: () => new Promise(() => {}) },
  });
  const { suspended } = threadOf(instance).stack;
  await withSlices(instance, LONG_SLICE, async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const calls = Array.from({ length: 20 }, (_, n) => instance.callAsync({ signal: controller.signal }, "f", n));
    assert.equal(suspended.size, 20);
    setTimeout(() => controller.abort(reason), 5);
    for (const call of calls) await assert.rejects(call, (error) => error === reason);
    assert.equal(suspended.size, 0);
    await assert.rejects(instance.callAsync({ signal: controller.signal }, "f", 0), (error) => error === reason);
    const start = performance.now();
    // Long enough for all four calls on a busy machine.
    await assert.rejects(instance.callAsync({ deadline: 250 }, "f", 3), (error) => {
      assert.ok(error instanceof TrapError && error.message === "interrupted");
      assert.deepEqual(error.frames.map(({ funcName }) => funcName), ["f", "f", "f", "f"]);
      return true;
    });
    assert.ok(performance.now() - start >= 249);
    assert.equal(suspended.size, 0);
    assert.equal(instance.call({}, "answer"), 42);
    await assert.rejects(instance.callAsync({ deadline: -1 }, "answer"), /interrupted/);
  });
});

Deno.test("a signal that many calls have gets one listener, and none when they have ended", async () => {
  const instance = sliced.compile(`(module (import "h" "wait" (func $wait (param i32) (result i32)))
    (func (export "f") (param i32) (result i32) (call $wait (local.get 0))))`).instantiate({}, {
    h: { wait: (n: number) => new Promise((resolve) => n % 2 === 0 ? setTimeout(resolve, 5, n) : undefined) },
  });
  const controller = new AbortController();
  const { signal } = controller;
  let listeners = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
    listeners++;
    addEventListener.apply(signal, args);
  };
  signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
    listeners--;
    removeEventListener.apply(signal, args);
  };
  for (const ends of ["by themselves", "aborted"]) {
    const calls = Array.from(
      { length: 30 },
      (_, n) => instance.callAsync({ signal }, "f", ends === "aborted" ? n : 2 * n),
    );
    assert.equal(listeners, 1, ends);
    if (ends === "aborted") {
      await Promise.all(calls.filter((_, n) => n % 2 === 0));
      controller.abort();
    }
    const outcomes = await Promise.allSettled(calls);
    assert.equal(outcomes.filter(({ status }) => status === "rejected").length, ends === "aborted" ? 15 : 0, ends);
    assert.equal(listeners, 0, ends);
  }
});

Deno.test("running guests are aborted and interrupted between slices while the event loop turns", async () => {
  const instance = sliced.compile(
    `(module (func (export "spin") (loop (br 0))) (func (export "answer") (result i32) (i32.const 42)))`,
  )
    .instantiate();
  // The end of the first slice loads the scheduler of the next one.
  await assert.rejects(instance.callAsync({ deadline: 20 }, "spin"), /interrupted/);
  const controller = new AbortController();
  let turns = 0;
  // However busy the machine is: the event loop's turns abort it.
  const timer = setInterval(() => {
    if (++turns === 5) controller.abort();
  }, 2);
  await assert.rejects(instance.callAsync({ signal: controller.signal }, "spin"), { name: "AbortError" });
  assert.ok(turns >= 5, `${turns} turns`);
  await assert.rejects(instance.callAsync({ deadline: 25 }, "spin"), (error) => {
    assert.ok(error instanceof TrapError && error.frames[0]?.funcName === "spin");
    return /interrupted/.test(error.message);
  });
  clearInterval(timer);
  assert.equal(threadOf(instance).stack.suspended.size, 0);
  assert.equal(threadOf(instance).attention.preempted, 0);
  assert.equal(instance.call({}, "answer"), 42);
});

Deno.test("signals and deadlines are refused where the code does not keep them", async () => {
  const instance = engine.compile(`(module (func (export "f")))`).instantiate();
  await assert.rejects(instance.callAsync({ signal: new AbortController().signal }, "f"), /interruptible/);
  await assert.rejects(instance.callAsync({ deadline: 5 }, "f"), /interruptible/);
  await assert.rejects(instance.callAsync({ fuel: 5 }, "f"), /fuel: true/);
});

Deno.test("calls that share state with a call between slices wait or are refused; others run", async () => {
  const shared = host.table("funcref", 1);
  const a = sliced.compile(`(module (import "h" "t" (table 1 funcref)) (memory (export "m") 1 10)
    (func (export "work") (result i32)
      (loop (br_if 0 (i32.eqz (i32.load (i32.const 0))))) (i32.const 1))
    (func (export "answer") (result i32) (i32.const 42)))`).instantiate({}, { h: { t: shared } });
  const b = engine.compile(`(module (import "a" "answer" (func $a (result i32)))
    (func (export "f") (result i32) (call $a)))`).instantiate({}, { a: a.exports });
  const c = engine.compile(`(module (import "h" "t" (table 1 funcref)) (func (export "f") (result i32) (i32.const 1)))`)
    .instantiate({}, { h: { t: shared } });
  const free = engine.compile(`(module (func (export "f") (result i32) (i32.const 7)))`).instantiate();
  await withSlices(a, 1, async () => {
    const order: string[] = [];
    const work = a.callAsync({}, "work").then(() => order.push("work"));
    const later = a.callAsync({}, "answer").then(() => order.push("answer"));
    const alsoLater = b.callAsync({}, "f").then(() => order.push("b"));
    for (const [instance, name] of [[a, "answer"], [b, "f"], [c, "f"]] as const) {
      assert.throws(() => instance.call({}, name), /preempted/);
    }
    assert.throws(() => c.call({}, "f"), /preempted/);
    assert.throws(
      () => engine.compile(`(module (import "a" "answer" (func (result i32))))`).instantiate({}, { a: a.exports }),
      /preempted/,
    );
    assert.equal(free.call({}, "f"), 7);
    assert.equal(await free.callAsync({}, "f"), 7);
    new Uint8Array((a.exports["m"] as unknown as { buffer: ArrayBuffer }).buffer)[0] = 1;
    await Promise.all([work, later, alsoLater]);
    assert.deepEqual(order, ["work", "answer", "b"]);
  });
  assert.equal(a.call({}, "answer"), 42);
});

for (const bounds of ["guard", "explicit"] as const) {
  Deno.test(`${bounds}: memory that grows while a call is between slices is there when the call goes on`, async () => {
    const instance = NewEngine({ interruptible: true, bounds }).compile(`(module
      (memory (export "m") 1 4)
      (func (export "run") (result i32) (local $at i32)
        (loop $wait
          (local.set $at (i32.or (i32.const 64) (i32.and (i32.add (local.get $at) (i32.const 4)) (i32.const 1020))))
          (i32.store (local.get $at) (i32.const 1))
          (br_if $wait (i32.eqz (i32.load (i32.const 0)))))
        (i32.store (i32.const 140000) (i32.const 42))
        (i32.load (i32.add (local.get $at) (i32.sub (i32.const 140000) (local.get $at))))))`).instantiate();
    const memory = instance.exports["m"] as unknown as { grow(pages: number): number; buffer: ArrayBuffer };
    assert.equal(memory.grow(1), 1); // an unguarded memory has room to grow in place
    await withSlices(instance, 1, async () => {
      const result = instance.callAsync({ deadline: NEVER }, "run");
      while (threadOf(instance).attention.preempted === 0) await new Promise((done) => setTimeout(done, 1));
      assert.equal(memory.grow(1), 2);
      new Int32Array(memory.buffer)[0] = 1;
      assert.equal(await result, 42);
    });
  });
}

/**
 * The maximum number of calls of a program until one is interrupted; short programs may end within their first slice.
 */
const MAX_CALLS = 20;

Deno.test("programs compute the same in slices as in one go", async () => {
  const names = ["ackermann", "fft", "simd_matrix", "sha256", "json", "simd_chacha20", "binary_trees", "float_format"];
  const thread = threadOf(sliced.compile("(module)").instantiate());
  const before = thread.preemptions;
  for (const bounds of ["guard", "explicit"] as const) {
    const interruptible = NewEngine({ interruptible: true, bounds });
    for (const program of PROGRAMS.filter(({ name }) => names.includes(name))) {
      const module = interruptible.compile(programBytes(program));
      const n = Math.max(1, Math.ceil(program.n / 8));
      const expected = module.instantiate().call({}, "run", n);
      const instance = module.instantiate();
      await withSlices(instance, 0.05, async () => {
        const seen = thread.preemptions;
        for (let calls = 0; thread.preemptions === seen && calls < MAX_CALLS; calls++) {
          assert.ok(Object.is(await instance.callAsync({}, "run", n), expected), `${bounds} ${program.name}`);
          instance.reset();
        }
      });
    }
  }
  // A slice is a span of time: how many a program takes depends on the machine, but on average each is interrupted.
  // Timers of Windows advance in steps of up to 16 ms.
  const runs = process.platform === "win32" ? 1 : 2 * names.length;
  assert.ok(thread.preemptions - before >= runs, `${thread.preemptions - before} preemptions, at least ${runs}`);
});

Deno.test("fuel follows a call through promises and slices, to the same total", async () => {
  const metered = NewEngine({ interruptible: true, fuel: true });
  const text = `(module (import "h" "f" (func $f (param i32) (result i32)))
    (func (export "run") (param i32) (result i32) (local i32)
      (loop (local.set 1 (i32.add (local.get 1) (call $f (local.get 0))))
        (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
      (local.get 1)))`;
  const direct = metered.compile(text).instantiate({}, { h: { f: (x: number) => x } });
  const waiting = metered.compile(text).instantiate({}, { h: { f: async (x: number) => (await null, x) } });
  const [a, b] = [{ fuel: 100_000n }, { fuel: 100_000n }];
  assert.equal(direct.call(a, "run", 100), 5050);
  assert.equal(await waiting.callAsync(b, "run", 100), 5050);
  assert.equal(a.fuel, b.fuel);
  const used = 100_000n - a.fuel;
  const [c, d] = [{ fuel: used / 2n }, { fuel: Number(used / 2n) }];
  assert.throws(() => direct.call(c, "run", 100), /out of fuel/);
  await assert.rejects(waiting.callAsync(d, "run", 100), /out of fuel/);
  assert.equal(Number(c.fuel), d.fuel);
  const both = await Promise.all([1, 2].map(async () => {
    const context = { fuel: 100_000n };
    await waiting.callAsync(context, "run", 100);
    return context.fuel;
  }));
  assert.deepEqual(both, [a.fuel, a.fuel]);
});

Deno.test("references in suspended frames live, and let go afterwards", async () => {
  const gate = deferred<void>();
  const instance = engine.compile(
    `(module (import "h" "wait" (func $wait)) (import "h" "check" (func $check (param externref)))
    (func (export "hold") (param externref) (result externref) (call $wait) (call $check (local.get 0)) (local.get 0))
    (func (export "drop") (param externref)))`,
  ).instantiate({}, {
    h: { wait: () => gate.promise, check: (value: unknown) => assert.equal(value, mine) },
  });
  const mine = { mine: true };
  const call = instance.callAsync({}, "hold", mine);
  for (let i = 0; i < 20_000; i++) instance.call({}, "drop", { i });
  gate.resolve();
  assert.equal(await call, mine);
  assert.ok(threadOf(instance).handles.size < 6000);
});

Deno.test("an instance that is closed while calls wait: they reject when they would go on", async () => {
  const gate = deferred<number>();
  const instance = engine.compile(`(module (import "h" "wait" (func $wait (result i32))) (memory (export "m") 1)
    (func (export "f") (result i32) (drop (call $wait)) (i32.load (i32.const 0))))`)
    .instantiate({}, { h: { wait: () => gate.promise } });
  const call = instance.callAsync({}, "f");
  instance.close();
  gate.resolve(1);
  await assert.rejects(call, /closed/);
  assert.equal(threadOf(instance).stack.suspended.size, 0);
});

Deno.test("an asynchronous call from inside a synchronous one", async () => {
  const gate = deferred<number>();
  const inside: Promise<unknown>[] = [];
  const instance: Instance = sliced.compile(
    `(module (import "h" "start" (func $start)) (import "h" "wait" (func $wait (result i32)))
    (func (export "outer") (result i32) (call $start) (call $start) (i32.const 5))
    (func (export "inner") (result i32) (i32.add (call $wait) (i32.const 1))))`,
  ).instantiate({}, {
    h: { start: () => void inside.push(instance.callAsync({}, "inner")), wait: () => gate.promise },
  });
  assert.equal(instance.call({ deadline: NEVER }, "outer"), 5);
  gate.resolve(10);
  assert.deepEqual(await Promise.all(inside), [11, 11]);
});

Deno.test("a start function that waits, and functions that are made asynchronous", async () => {
  const module = sliced.compile(
    `(module (import "h" "wait" (func $wait (result i32))) (global $g (export "g") (mut i32) (i32.const 0))
    (func $start (global.set $g (call $wait))) (start $start)
    (func (export "f") (param i32) (result i32) (i32.add (call $wait) (local.get 0))))`,
  );
  const imports = { h: { wait: () => new Promise((resolve) => setTimeout(() => resolve(5), 1)) } };
  assert.throws(() => module.instantiate({}, imports), /returned a promise/);
  const instance = await module.instantiateAsync({ deadline: NEVER, resettable: true }, imports);
  const global = instance.exports["g"] as { value: number };
  assert.equal(global.value, 5);
  global.value = 9;
  instance.reset();
  assert.equal(global.value, 5);
  const f = promising(instance.exports["f"] as () => unknown, { deadline: NEVER });
  assert.deepEqual(await Promise.all([f(1), f(2)]), [6, 7]);
  assert.throws(() => promising(() => 1), TypeError);
  const never = { h: { wait: () => new Promise(() => {}) } };
  await assert.rejects(module.instantiateAsync({ deadline: 5 }, never), /interrupted/);
  const openBefore = instance.internal.store.instances.open;
  await assert.rejects(module.instantiateAsync({ signal: AbortSignal.timeout(5) }, never), { name: "TimeoutError" });
  // Instances of earlier tests may be collected meanwhile.
  assert.ok(instance.internal.store.instances.open <= openBefore);
});
