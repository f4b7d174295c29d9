/**
 * Misbehaving hosts: they keep views forever, trap, throw, close and reset during calls, and run engines in several
 * threads. Each case works or is an error; none is a crash.
 */
import assert from "node:assert/strict";
import { ExhaustionError, host, type Instance, NewEngine, TrapError, WasmException } from "@waft/engine";
import { THREAD } from "../../engine/abi/context_layout.ts";
import { realmStore } from "../../engine/runtime/realm_store.ts";
import { TestWorker } from "../support/test_worker.ts";

type View = { buffer: ArrayBuffer; grow(pages: number): number };

const SUM = (view: Uint8Array) => view.reduce((sum, byte) => sum + byte, 0);

for (const bounds of ["guard", "explicit"] as const) {
  const engine = NewEngine({ bounds, interruptible: true });
  const run = (name: string, test: () => void | Promise<void>) => Deno.test(`${bounds}: ${name}`, test);

  run("views that are kept after the memory grew, moved, was reset and closed", async () => {
    const module = engine.compile(`(module (memory (export "m") 1 100)
      (func (export "set") (param i32 i32) (i32.store8 (local.get 0) (local.get 1)))
      (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0))))`);
    const views: Uint8Array[] = [];
    for (let round = 0; round < 10; round++) {
      const instance = module.instantiate();
      const memory = instance.exports["m"] as View;
      for (let k = 0; k < 5; k++) {
        views.push(new Uint8Array(memory.buffer));
        instance.call({}, "set", 65535, 1 + k);
        if (k % 2 === 0) instance.call({}, "grow", 7 * k);
        else memory.grow(3);
      }
      if (round % 2 === 0) instance.reset();
      views.push(new Uint8Array(memory.buffer));
      instance.close();
      views.push(new Uint8Array(memory.buffer));
    }
    await new Promise((resolve) => setTimeout(resolve));
    for (const view of views) {
      SUM(view);
      view.fill(255);
    }
    const fresh = module.instantiate();
    assert.equal(SUM(new Uint8Array((fresh.exports["m"] as View).buffer)), 0, "no other memory was written to");
  });

  run("a view that moves to another thread", () => {
    const instance = engine.compile(
      `(module (memory (export "m") 1) (func (export "get") (result i32) (i32.load8_u (i32.const 3))))`,
    )
      .instantiate();
    const memory = instance.exports["m"] as View;
    new Uint8Array(memory.buffer)[3] = 9;
    const copy = structuredClone(memory.buffer);
    assert.equal(new Uint8Array(copy)[3], 9);
    let moved: ArrayBuffer | undefined;
    try {
      moved = structuredClone(memory.buffer, { transfer: [memory.buffer] });
    } catch {
      // Some runtimes refuse.
    }
    instance.close();
    if (moved !== undefined && moved.byteLength > 3) new Uint8Array(moved)[3] = 1;
  });

  run("host functions that trap, throw and use up the stack deep in re-entry", () => {
    let depth = 0;
    const thrown = new Error("from the host");
    const instance: Instance = engine.compile(`(module (import "h" "f" (func $f (param i32) (result i32)))
      (global (export "g") (mut i32) (i32.const 0))
      (func (export "f") (param i32) (result i32) (global.set 0 (i32.add (global.get 0) (i32.const 1)))
        (i32.add (call $f (local.get 0)) (i32.const 1)))
      (func (export "caught") (param i32) (result i32)
        (block (try_table (catch_all 0) (return (call $f (local.get 0))))) (i32.const -1))
      (func (export "unreachable") unreachable)
      (func $deep (export "deep") (call $deep))
      (func (export "answer") (result i32) (i32.const 42)))`).instantiate({}, {
      h: {
        f: (how: number): number => {
          if (++depth < 50) return instance.call({}, "f", how) as number;
          depth = 0;
          if (how === 0) throw thrown;
          if (how === 1) instance.call({}, "unreachable");
          if (how === 2) instance.call({}, "deep");
          if (how === 3) return instance.call({}, "caught", 0) as number;
          return how;
        },
      },
    });
    assert.throws(() => instance.call({}, "f", 0), (error) => error === thrown);
    assert.throws(() => instance.call({}, "f", 1), TrapError);
    assert.throws(() => instance.call({}, "f", 2), ExhaustionError);
    assert.equal(instance.call({}, "caught", 0), -1);
    assert.throws(() => instance.call({}, "caught", 1), TrapError, "traps are not caught");
    assert.equal(instance.call({}, "f", 3), 49);
    assert.equal(instance.call({}, "f", 1000), 1050);
    assert.equal(instance.call({}, "answer"), 42);
  });

  run("a host function that closes or resets its own instance", () => {
    const deeds: ((instance: Instance) => void)[] = [
      (instance) => instance.close(),
      (instance) => assert.throws(() => instance.reset(), /not idle/),
      (instance) => {
        instance.close();
        throw new Error("and throws");
      },
      (instance) => void (instance.exports["m"] as View).grow(2),
    ];
    for (const deed of deeds) {
      const instance: Instance = engine.compile(`(module (import "h" "f" (func $f)) (memory (export "m") 1 10)
        (func (export "run") (result i32) (i32.store (i32.const 60000) (i32.const 5)) (call $f) (i32.load (i32.const 60000))))`)
        .instantiate({}, { h: { f: () => deed(instance) } });
      const view = new Uint8Array((instance.exports["m"] as View).buffer);
      if (deed === deeds[2]) assert.throws(() => instance.call({}, "run"), /and throws/);
      else assert.equal(instance.call({}, "run"), 5, "running code continues");
      SUM(view);
    }
  });

  run("a host function that closes the instance of a caller further out", () => {
    const outer: Instance = engine.compile(`(module (import "h" "f" (func $f)) (memory 1)
      (func (export "run") (result i32) (i32.store (i32.const 8) (i32.const 3)) (call $f) (i32.load (i32.const 8))))`)
      .instantiate({}, { h: { f: () => void inner.call({}, "run") } });
    const inner: Instance = engine.compile(`(module (import "h" "f" (func $f)) (func (export "run") (call $f)))`)
      .instantiate({}, { h: { f: () => outer.close() } });
    assert.equal(outer.call({}, "run"), 3);
    assert.throws(() => outer.call({}, "run"), /closed/);
  });

  run("functions of closed instances go nowhere", () => {
    const closed = engine.compile(`(module (memory 1) (func (export "f") (result i32) (i32.load (i32.const 0))))`)
      .instantiate();
    const f = closed.exports["f"];
    closed.close();
    const text =
      `(module (table (export "t") 1 funcref) (func (export "call") (result i32) (call_indirect (result i32) (i32.const 0))))`;
    const other = engine.compile(text).instantiate();
    const table = other.exports["t"] as { set(index: number, value: unknown): void };
    assert.throws(() => table.set(0, f), /closed instance/);
    assert.throws(
      () => engine.compile(`(module (import "a" "f" (func (result i32))))`).instantiate({}, { a: { f } }),
      /closed instance/,
    );
    const lent = engine.compile(`(module (memory 1) (func (export "f") (result i32) (i32.load (i32.const 0))))`)
      .instantiate();
    table.set(0, lent.exports["f"]);
    lent.close();
    assert.equal(other.call({}, "call"), 0, "exports taken earlier still work");
  });

  run("iterators, getters and conversions of the host that call in again", () => {
    const instance: Instance = engine.compile(
      `(module (import "h" "two" (func $two (result i32 i32))) (tag $t (export "t") (param i32))
      (func (export "two") (result i32 i32) (call $two)) (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
      (func (export "throw") (param i32) (throw $t (local.get 0))))`,
    ).instantiate({}, {
      h: {
        two: function* () {
          yield instance.call({}, "add", 1, 2);
          yield { valueOf: () => instance.call({}, "add", 3, 4) };
        } as unknown as () => number[],
      },
    });
    assert.deepEqual(instance.call({}, "two"), [3, 7]);
    const nasty = { valueOf: () => instance.call({}, "add", 20, 22) };
    assert.equal(instance.call({}, "add", nasty, nasty), 84);
    assert.throws(() => instance.call({}, "throw", nasty), WasmException);
    assert.throws(() =>
      instance.call({}, "add", {
        valueOf: () => {
          throw new RangeError("no value");
        },
      }), RangeError);
  });
}

Deno.test("an exception whose payload cannot be passed any more leaves no frames, and code gets the reason", async () => {
  const engine = NewEngine();
  const lender = engine.compile(`(module (func (export "f") (result i32) (i32.const 3)))`).instantiate();
  const tag = host.tag("funcref");
  const thrown = new WasmException(tag, [lender.exports["f"]]);
  lender.close();
  const instance = engine.compile(`(module (import "h" "t" (tag $t (param funcref))) (import "h" "f" (func $f))
    (func (export "typed") (result funcref)
      (block $h (result funcref) (try_table (catch $t $h) (call $f)) unreachable))
    (func (export "all") (result i32) (block $h (try_table (catch_all $h) (call $f)) unreachable) (i32.const 1)))`)
    .instantiate({}, {
      h: {
        t: tag,
        f: () => {
          throw thrown;
        },
      },
    });
  const { state } = realmStore().thread;
  const before = state.word(THREAD.GUEST_SP);
  const refused = { name: "TypeError", message: /a function of a closed instance/ };
  for (let round = 0; round < 3; round++) {
    assert.throws(() => instance.call({}, "typed"), refused);
    await assert.rejects(instance.callAsync({}, "typed"), refused);
    assert.equal(instance.call({}, "all"), 1);
    assert.equal(await instance.callAsync({}, "all"), 1);
    assert.equal(state.word(THREAD.GUEST_SP), before);
  }
});

Deno.test("an import that changes another one while the engine looks at it is found out", () => {
  const engine = NewEngine({ tier: "optimizing" });
  const owner = engine.compile(`(module (table (export "t") 2 10 externref)
    (func (export "grow") (drop (table.grow 0 (ref.null extern) (i32.const 8)))))`).instantiate();
  owner.call({}, "grow");
  const f = new Proxy(() => {}, { has: () => (owner.reset(), false) });
  const user = engine.compile(`(module (import "h" "f" (func)) (import "h" "t" (table 10 10 externref)))`);
  assert.throws(() => user.instantiate({ promises: "values" }, { h: { f, t: owner.exports["t"] } }), {
    name: "LinkError",
    message: /must be a table of 10 10 externref, got one of 2 10 externref/,
  });
});

Deno.test("two engines in two workers trap, overflow, are interrupted and wait at the same time as this one", async () => {
  const workers = [1, 2].map(() => {
    const worker = new TestWorker(new URL("./engine_worker.ts", import.meta.url));
    return { worker, answer: worker.ask("everything") };
  });
  const instance = NewEngine({ interruptible: true }).compile(`(module (func (export "spin") (loop (br 0))) (memory 1)
    (func (export "load") (param i32) (result i32) (i32.load (local.get 0))))`).instantiate();
  for (let round = 0; round < 20; round++) {
    assert.throws(() => instance.call({}, "load", -4), /out of bounds/);
    assert.throws(() => instance.call({ deadline: 2 }, "spin"), /interrupted/);
  }
  const expected = Array.from(
    { length: 20 },
    () => ["out of bounds memory access", "call stack exhausted", "interrupted", 500500, 500500],
  ).flat();
  for (const { worker, answer } of workers) {
    const { answers, copy } = await answer as { answers: unknown[]; copy: Uint8Array };
    assert.deepEqual(answers, expected);
    assert.equal(copy[0], 7);
    worker.terminate();
  }
  assert.throws(() => instance.call({}, "load", -4), /out of bounds/);
});
