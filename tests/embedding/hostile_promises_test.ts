/**
 * Promises, suspensions, contexts and thrown values of a hostile host, at each place where a call reads them: the guest
 * or its caller gets an exception, and nothing of the call is left behind.
 */
import assert from "node:assert/strict";
import { host, type Instance, NewEngine, startCall, Suspension, TrapError, WasmException } from "@waft/engine";
import { Recorder, replay } from "@waft/engine/recording";

const TEXT = `(module (import "m" "s" (func $s (result i32)))
  (func $deep (param i32) (result i32)
    (if (result i32) (local.get 0) (then (call $deep (i32.sub (local.get 0) (i32.const 1)))) (else (call $s))))
  (func $rec (export "rec") (param i32) (result i32)
    (if (result i32) (local.get 0)
      (then (i32.add (i32.const 1) (call $rec (i32.sub (local.get 0) (i32.const 1))))) (else (i32.const 0))))
  (func (export "pass") (result i32) (call $deep (i32.const 50)))
  (func (export "catch") (result i32)
    (block $h (try_table (catch_all $h) (return (call $deep (i32.const 50)))) (unreachable)) (i32.const -9)))`;
const module = NewEngine().compile(TEXT);
const controlled = NewEngine({ interruptible: true, fuel: true }).compile(TEXT);

function make(s: () => unknown, of = module): Instance {
  return of.instantiate({}, { m: { s } });
}

function threadOf(instance: Instance) {
  return instance.internal.store.thread;
}

/** Checks that the thread is as before all calls. */
function assertClean(instance: Instance): void {
  const thread = threadOf(instance);
  assert.equal(thread.depth, 0);
  assert.equal(thread.stack.suspended.size, 0);
  assert.equal(thread.suspendableDepth, -1);
  assert.equal(thread.limits.deadline, Infinity);
  assert.equal(instance.call({}, "rec", 1000), 1000);
}

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function thrower(name: string): () => never {
  return () => {
    throw new SyntaxError(name);
  };
}

/** Promises that throw when the engine waits for them, with the name of the error. */
const AWKWARD: readonly (readonly [name: string, make: () => unknown, error: string])[] = [
  ["constructor", () => Object.defineProperty(Promise.resolve(3), "constructor", { get: thrower("x") }), "SyntaxError"],
  ["getter of then", () => Object.defineProperty({}, "then", { get: thrower("x") }), "SyntaxError"],
  ["then", () => ({ then: thrower("x") }), "SyntaxError"],
  ["revoked proxy", revoked, "TypeError"],
  ["second read of then", () => {
    let reads = 0;
    return Object.defineProperty({}, "then", { get: () => reads++ === 0 ? () => {} : thrower("x")() });
  }, "SyntaxError"],
];

for (const [name, value, error] of AWKWARD) {
  Deno.test(`a promise that cannot be awaited is an exception in the guest: ${name}`, async () => {
    const instance = make(value);
    for (let round = 0; round < 600; round++) {
      await assert.rejects(instance.callAsync({}, "pass"), { name: error });
      assert.equal(await instance.callAsync({}, "catch"), -9);
    }
    assertClean(instance);
    const later = make(() => Promise.resolve(1));
    assert.equal(await later.callAsync({}, "pass"), 1);
  });
}

Deno.test("promises are awaited without their methods, also in a recording", async () => {
  class Species extends Promise<number> {
    static override get [Symbol.species](): never {
      throw new SyntaxError("species");
    }
    override then(): never {
      throw new SyntaxError("then");
    }
  }
  Object.defineProperty(Species.prototype, "constructor", { value: Promise });
  const s = () => new Species((resolve) => resolve(4));
  assert.equal(await make(s).callAsync({}, "pass"), 4);
  const recorder = new Recorder(TEXT);
  const recorded = NewEngine({ deterministic: true }).compile(TEXT).instantiate({ record: recorder }, { m: { s } });
  assert.equal(await recorded.callAsync({}, "pass"), 4);
  assert.deepEqual(replay(recorder.finish().log).results, [4]);
});

Deno.test("a promise that a recorded call cannot await is an exception in its replay, too", async () => {
  for (const [, value] of AWKWARD) {
    const recorder = new Recorder(TEXT);
    const recorded = NewEngine({ deterministic: true }).compile(TEXT)
      .instantiate({ record: recorder }, { m: { s: value } });
    assert.equal(await recorded.callAsync({}, "catch"), -9);
    assert.deepEqual(replay(recorder.finish().log).results, [-9]);
  }
});

Deno.test("a suspension that is returned to two calls is an exception in the second", async () => {
  const suspension = new Suspension();
  const instance = make(() => suspension);
  const first = instance.callAsync({}, "pass");
  await assert.rejects(instance.callAsync({}, "pass"), /^Error: A suspension belongs to one call$/);
  suspension.resume(5);
  assert.equal(await first, 5);
  await assert.rejects(instance.callAsync({}, "pass"), /belongs to one call/);
  assertClean(instance);
});

Deno.test("a suspension that is settled early does not suspend; in a synchronous call it is refused", async () => {
  for (const [settle, expected] of [["resume", 7], ["fail", -9]] as const) {
    const made: Suspension[] = [];
    const instance = make(() => {
      const suspension = new Suspension();
      suspension[settle](7);
      made.push(suspension);
      return suspension;
    });
    assert.equal(await instance.callAsync({}, "catch"), expected);
    assert.throws(() => made[0].resume(1), /only once/);
    assert.throws(() => instance.call({}, "pass"), /"m" "s" returned a promise: .*callAsync/);
    const again = make(() => made[0]);
    await assert.rejects(again.callAsync({}, "pass"), /belongs to one call/);
    assertClean(instance);
  }
});

/** Values that a host function throws; each must arrive as it is. */
const THROWN: readonly (readonly [name: string, make: (touched: string[]) => unknown])[] = [
  ["a revoked proxy", revoked],
  [
    "a proxy of an exception",
    (touched) => noting(touched, new WasmException(host.tag("i32"), [1])),
  ],
  ["a proxy of a trap", (touched) => noting(touched, new TrapError("unreachable"))],
  ["an object that inherits from a trap", () => Object.create(new TrapError("unreachable"))],
  ["an object that inherits from an exception", () => Object.create(new WasmException(host.tag(), []))],
  ["undefined", () => undefined],
];

function noting(touched: string[], target: object): object {
  return new Proxy(target, new Proxy({}, { get: (_, name) => void touched.push(String(name)) }));
}

for (const [name, value] of THROWN) {
  Deno.test(`${name} passes through the guest unread, and leaves nothing behind`, () => {
    const touched: string[] = [];
    const thrown = value(touched);
    const throws = () => {
      throw thrown;
    };
    const outcome = (call: () => unknown): unknown => {
      try {
        return call();
      } catch (error) {
        return error === thrown ? "passed" : error;
      }
    };
    for (const instance of [make(throws), make(throws, controlled)]) {
      const limits = instance.internal.module.settings.fuel ? { fuel: 100_000, deadline: 600_000 } : {};
      for (let round = 0; round < 1000; round++) {
        assert.equal(outcome(() => instance.call({ ...limits }, "pass")), "passed");
      }
      assert.equal(outcome(() => instance.call({}, "catch")), -9);
      // A promise would read a value with which it is resolved, so the calls report to functions.
      const ends: unknown[] = [];
      const start = (name: string) =>
        startCall(
          instance.exports[name] as () => void,
          { ...limits },
          [],
          (result) => ends.push(result),
          (reason) => ends.push(reason === thrown),
        );
      start("pass");
      start("catch");
      assert.deepEqual(ends, [true, -9]);
      assertClean(instance);
    }
    assert.deepEqual(touched, []);
  });
}

Deno.test("a context that throws when it is written ends the call, and its limits end with it", async () => {
  for (const suspends of [false, true]) {
    const instance = make(() => suspends ? Promise.resolve(1) : 1, controlled);
    let writes = 0;
    const context = {
      deadline: 600_000,
      get fuel(): number {
        return 100_000;
      },
      set fuel(_: number) {
        if (writes++ > 0) throw new SyntaxError("fuel");
      },
    };
    await assert.rejects(instance.callAsync(context, "pass"), { name: "SyntaxError" });
    if (!suspends) {
      writes = 0;
      assert.throws(() => instance.call(context, "pass"), { name: "SyntaxError" });
    }
    assertClean(instance);
  }
});

Deno.test("a host function that aborts its own call ends it there, once", async () => {
  for (const result of [() => 1, () => Promise.resolve(1)]) {
    const abort = new AbortController();
    let goesOn = false;
    const instance = controlled.instantiate({}, {
      m: {
        s: () => {
          if (abort.signal.aborted) goesOn = true;
          abort.abort(new SyntaxError("stop"));
          return result();
        },
      },
    });
    const ends: unknown[] = [];
    startCall(
      instance.exports["pass"] as () => void,
      { signal: abort.signal },
      [],
      (value) => ends.push(value),
      (reason) => ends.push((reason as Error).message),
    );
    await new Promise((resolve) => setTimeout(resolve));
    assert.deepEqual(ends, ["stop"]);
    assert.equal(goesOn, false);
    assertClean(instance);
  }
});

Deno.test("a signal whose methods throw does not keep a call from its end", async () => {
  const instance = make(() => Promise.resolve(3), controlled);
  const signal = {
    throwIfAborted: () => {},
    addEventListener: () => {},
    removeEventListener: thrower("remove"),
    get reason(): never {
      throw new SyntaxError("reason");
    },
  } as unknown as AbortSignal;
  assert.equal(await instance.callAsync({ signal }, "pass"), 3);
  const refusing = { throwIfAborted: () => {}, addEventListener: thrower("add") } as unknown as AbortSignal;
  for (let round = 0; round < 2; round++) {
    await assert.rejects(instance.callAsync({ signal: refusing }, "pass"), { message: "add" });
  }
  assertClean(instance);
});
