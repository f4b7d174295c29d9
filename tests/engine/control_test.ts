/**
 * Deadlines, fuel and limits: every kind of runaway stops, exactly where specified, and the instance answers the next
 * call.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import process from "node:process";
import {
  type Context,
  type Engine,
  ExhaustionError,
  host,
  NewEngine,
  OPTIMIZATION_ROWS,
  TrapError,
} from "@waft/engine";
import type { EngineOptions, OptimizationName } from "@waft/engine";

const EMULATED = process.env["WAFT_EMULATED"] !== undefined;
/** Milliseconds given to runaway guests. */
const DEADLINE = EMULATED ? 250 : 15;
/** A deadline that no guest reaches. */
const NEVER = 600_000;

function interrupted(error: unknown): boolean {
  return error instanceof TrapError && error.message === "interrupted";
}

function outOfFuel(error: unknown): boolean {
  return error instanceof TrapError && error.message === "out of fuel";
}

const RUNAWAYS = `(module
  (import "h" "call" (func $host (param i32)))
  (tag $e)
  (table funcref (elem $again))
  (global $g (export "g") (mut i32) (i32.const 0))
  (memory (export "m") 1)
  (type $v (func))
  (func (export "loop") (loop (br 0)))
  (func (export "count")
    (loop
      (global.set $g (i32.add (global.get $g) (i32.const 1)))
      (i32.store (i32.const 8) (i32.add (i32.load (i32.const 8)) (i32.const 1)))
      (br 0)))
  (func $tree (param i32)
    (if (local.get 0) (then
      (call $tree (i32.sub (local.get 0) (i32.const 1)))
      (call $tree (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "tree") (call $tree (i32.const 200)))
  (func $tail (export "tail") (return_call $tail))
  (func $again (export "again") (return_call_indirect (type $v) (i32.const 0)))
  (func (export "caught")
    (loop
      (try (do (loop (br 0))) (catch_all))
      (block (try_table (catch_all 0) (loop (br 0))))
      (br 0)))
  (func (export "thrower") (loop (block (try_table (catch_all 0) (throw $e))) (br 0)))
  (func (export "host") (loop (call $host (i32.const 1)) (br 0)))
  (func (export "nested") (call $host (i32.const 2)))
  (func (export "answer") (result i32) (i32.const 42)))`;

for (const bounds of ["guard", "explicit"] as const) {
  Deno.test(`${bounds}: a deadline stops every kind of runaway, and the instance stays usable`, () => {
    const engine = NewEngine({
      bounds,
      interruptible: true,
      verify: true,
    });
    const instance = engine.compile(RUNAWAYS).instantiate({}, {
      h: { call: (how: number) => how === 2 && instance.call({}, "loop") },
    });
    for (const name of ["loop", "count", "tree", "tail", "again", "caught", "thrower", "host", "nested"]) {
      const start = performance.now();
      assert.throws(() => instance.call({ deadline: DEADLINE }, name), interrupted, name);
      assert.ok(performance.now() - start >= DEADLINE - 1, `${name} was stopped before its deadline`);
      assert.equal(instance.call({}, "answer"), 42);
      assert.equal(instance.call({ deadline: NEVER }, "answer"), 42);
    }
    const { g, m } = instance.exports as unknown as { g: { value: number }; m: { buffer: ArrayBuffer } };
    const word = () => new Int32Array(m.buffer)[2];
    // A busy machine may reach the deadline before the first iteration.
    for (let n = 0; n < 100 && word() === 0; n++) {
      assert.throws(() => instance.call({ deadline: DEADLINE }, "count"), interrupted);
    }
    const stored = word();
    assert.ok(g.value === stored || g.value === stored + 1, `globals and memory are exact: ${g.value} and ${stored}`);
    assert.ok(stored > 0, "the guest ran until its deadline");
  });
}

Deno.test("a deadline covers the start function", () => {
  const module = NewEngine({ interruptible: true }).compile("(module (func $f (loop (br 0))) (start $f))");
  assert.throws(() => module.instantiate({ deadline: DEADLINE }), interrupted);
});

Deno.test("nested deadlines: the earliest one counts, and an inner one ends with its call", () => {
  const engine = NewEngine({ interruptible: true });
  let inner: Context = {};
  let seen: unknown;
  const instance = engine.compile(RUNAWAYS).instantiate({}, {
    h: {
      call: () => {
        try {
          instance.call(inner, "loop");
        } catch (error) {
          seen = error;
        }
      },
    },
  });
  inner = { deadline: 5 };
  instance.call({ deadline: NEVER }, "nested");
  assert.ok(interrupted(seen), "the inner call was interrupted, the outer was not");
  inner = { deadline: NEVER };
  assert.throws(() => instance.call({ deadline: DEADLINE }, "host"), interrupted);
  assert.equal(instance.call({}, "answer"), 42);
});

Deno.test("a deadline is a delay or a point in time; one in the past interrupts at once", () => {
  const instance = NewEngine({ interruptible: true }).compile(RUNAWAYS).instantiate({}, { h: { call: () => {} } });
  for (const deadline of [0, -5, new Date(Date.now() - 1000), new Date(Date.now() + DEADLINE)]) {
    assert.throws(() => instance.call({ deadline }, "loop"), interrupted);
  }
  assert.throws(() => instance.call({ deadline: NaN }, "loop"), RangeError);
  assert.throws(() => instance.call({ deadline: new Date(NaN) }, "loop"), RangeError);
  assert.throws(() => instance.call({ deadline: "soon" as unknown as number }, "loop"), TypeError);
  assert.equal(instance.call({ deadline: Infinity }, "answer"), 42);
});

Deno.test("limits that the code was not compiled for are refused", () => {
  const plain = NewEngine().compile(`(module (table (export "t") 1 funcref) (func (export "f") (loop (br 0))))`);
  const exporter = plain.instantiate();
  assert.throws(() => exporter.call({ deadline: 5 }, "f"), /interruptible: true/);
  assert.throws(() => plain.instantiate({ deadline: 5 }), /interruptible: true/);
  assert.throws(() => exporter.call({ fuel: 5 }, "f"), /fuel: true/);
  const controlled = NewEngine({ interruptible: true, fuel: true });
  const byFunction = controlled.compile(`(module (import "m" "f" (func $f)) (func (export "g") (call $f)))`);
  const byTable = controlled.compile(
    `(module (import "m" "t" (table 1 funcref)) (func (export "g") (call_indirect (i32.const 0))))`,
  );
  for (const module of [byFunction, byTable]) {
    const importer = module.instantiate({}, { m: exporter.exports });
    assert.throws(() => importer.call({ deadline: 5 }, "g"), TypeError);
    assert.throws(() => importer.call({ fuel: 5 }, "g"), TypeError);
  }
});

/** Optimizations: the defaults, all supported ones off, all on. */
function settings(): NonNullable<EngineOptions["optimizations"]>[] {
  const keys = OPTIMIZATION_ROWS.filter(({ state }) => state === "on" || state === "off").map(({ name }) => name);
  const all = (on: boolean) =>
    Object.fromEntries(keys.map((name) => [name, on])) as Partial<Record<OptimizationName, boolean>>;
  return [{}, all(false), all(true)];
}

function fuelEngines(): Engine[] {
  return settings().flatMap((optimizations) =>
    (["guard", "explicit"] as const).map((bounds) =>
      NewEngine({ fuel: true, interruptible: true, bounds, optimizations })
    )
  );
}

type Run = (n: number) => unknown;

Deno.test("fuel consumption is the same under every setting", () => {
  const engines = fuelEngines();
  for (const name of ["ackermann", "quicksort", "json", "switch", "globals", "virtual_calls"]) {
    const bytes = readFileSync(new URL(`../../bench/wasm/${name}.wasm`, import.meta.url));
    const used = engines.map((engine) => {
      const context = { fuel: 10n ** 15n };
      engine.compile(bytes).instantiate().call(context, "run", 3);
      return 10n ** 15n - context.fuel;
    });
    assert.ok(used[0] > 20n, `${name} used ${used[0]}`);
    assert.deepEqual(new Set(used).size, 1, `${name}: ${used}`);
  }
});

const STEPS = `(module
  (memory 1)
  (func (export "hash") (result i64) (local $at i32) (local $hash i64)
    (loop $next
      (local.set $hash (i64.add (i64.mul (local.get $hash) (i64.const 0x100000001b3)) (i64.load8_u (local.get $at))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $at) (i32.const 4096))))
    (local.get $hash))
  (global $g (mut i32) (i32.const 0))
  (func $mark (param i32) (i32.store8 (local.get 0) (i32.const 1)) (global.set $g (local.get 0)))
  (func $pick (param i32) (result i32)
    (if (result i32) (i32.eqz (local.get 0))
      (then (return (i32.const 5)))
      (else (i32.div_u (i32.const 9) (local.get 0)))))
  (func (export "run") (param i32) (result i32) (local $i i32)
    (memory.fill (i32.const 1000) (i32.const 7) (i32.const 300))
    (memory.copy (i32.const 2000) (i32.const 1000) (i32.const 20))
    (block $out
      (loop $l
        (call $mark (local.get $i))
        (br_if $out (i32.ge_u (local.get $i) (local.get 0)))
        (if (i32.and (local.get $i) (i32.const 1))
          (then (call $mark (i32.add (local.get $i) (i32.const 100))))
          (else (call $mark (i32.add (call $pick (i32.const 0)) (i32.add (local.get $i) (i32.const 200))))))
        (block (br_table 0 1 0 (i32.const 0)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $l)))
    (drop (memory.grow (i32.const 1)))
    (i32.add (call $pick (local.get $i)) (global.get $g))))`;

Deno.test("fuel is exact at exhaustion: the remainder and the effects are the same under every setting", () => {
  const modules = fuelEngines().map((engine) => engine.compile(STEPS));
  const enough = { fuel: 100_000 };
  modules[0].instantiate().call(enough, "run", 6);
  const total = 100_000 - enough.fuel;
  let ended = 0;
  for (let fuel = 0; fuel <= total; fuel++) {
    const outcomes = modules.map((module) => {
      const instance = module.instantiate();
      const context = { fuel };
      let result: unknown;
      try {
        result = instance.call(context, "run", 6);
        ended++;
      } catch (error) {
        assert.ok(outOfFuel(error), String(error));
        result = "out of fuel";
      }
      const memory = instance.call({}, "hash");
      instance.close(); // hundreds of memories are more address space than some machines have
      return { result, left: context.fuel, memory };
    });
    for (const outcome of outcomes) assert.deepEqual(outcome, outcomes[0]);
  }
  assert.equal(ended, modules.length, "only the full amount suffices");
});

Deno.test("fuel: bulk instructions cost by size, contexts are refilled, nested calls charge both contexts", () => {
  const engine = NewEngine({ fuel: true });
  const inner: { fuel: number }[] = []; // the context of the nested call, if any
  const instance = engine.compile(`(module
    (import "h" "f" (func $f))
    (memory 4)
    (func (export "fill") (param i32) (memory.fill (i32.const 0) (i32.const 1) (local.get 0)))
    (func (export "nested") (call $f))
    (func $e (export "endless") (try (do (loop (br 0))) (catch_all)) (call $e)))`)
    .instantiate({}, { h: { f: () => instance.call(inner[0] ?? {}, "fill", 64 * 1000) } });
  const used = (name: string, ...args: number[]) => {
    const context = { fuel: 1_000_000 };
    instance.call(context, name, ...args);
    return 1_000_000 - context.fuel;
  };
  const base = used("fill", 0);
  assert.equal(used("fill", 64), base + 1);
  assert.equal(used("fill", 64 * 1000), base + 1000);
  const nested = used("nested");
  inner.push({ fuel: 5000 });
  assert.equal(used("nested"), nested);
  assert.equal(inner[0].fuel, 5000 - base - 1000);
  const context: Context = { fuel: 500n };
  for (let k = 0; k < 3; k++) {
    assert.throws(() => instance.call(context, "endless"), outOfFuel);
    assert.ok((context.fuel as bigint) >= 0n && (context.fuel as bigint) < 10n);
    context.fuel = 500n;
  }
  instance.call({}, "fill", 64); // unlimited without fuel
  for (const fuel of [-1, 1.5, NaN, -1n, 2n ** 63n]) {
    assert.throws(() => instance.call({ fuel }, "fill", 0), RangeError);
  }
});

Deno.test("fuel covers the start function and imported instances of other modules", () => {
  const engine = NewEngine({ fuel: true });
  const endless = engine.compile("(module (func $f (loop (br 0))) (start $f))");
  const context = { fuel: 1000 };
  assert.throws(() => endless.instantiate(context), outOfFuel);
  assert.equal(context.fuel, 0);
  const library = engine.compile(`(module (func (export "f") (loop (br 0))))`).instantiate();
  const user = engine.compile(`(module (import "l" "f" (func $f)) (func (export "g") (call $f)))`)
    .instantiate({}, { l: library.exports });
  assert.throws(() => user.call({ fuel: 1000 }, "g"), outOfFuel);
});

Deno.test("limits: memory, tables, stack and instances", () => {
  const text = `(module (memory (export "m") 1) (table (export "t") 1 funcref)
    (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
    (func (export "tgrow") (param i32) (result i32) (table.grow (ref.null func) (local.get 0)))
    (func $deep (export "deep") (param i32) (result i32)
      (if (result i32) (local.get 0)
        (then (i32.add (i32.const 1) (call $deep (i32.sub (local.get 0) (i32.const 1))))) (else (i32.const 0)))))`;
  const module = NewEngine({ limits: { maxMemoryPages: 10, maxTableElements: 20 } }).compile(text);
  const instance = module.instantiate();
  assert.equal(instance.call({}, "grow", 10), -1);
  assert.equal(instance.call({}, "grow", 9), 1);
  assert.equal(instance.call({}, "tgrow", 20), -1);
  assert.equal(instance.call({}, "tgrow", 19), 1);
  assert.equal(module.instantiate({ limits: { maxMemoryPages: 3 } }).call({}, "grow", 3), -1);
  assert.throws(() => module.instantiate({ limits: { maxMemoryPages: 0 } }), RangeError);
  assert.throws(() => module.instantiate({ limits: { maxTableElements: -1 } }), RangeError);
  assert.throws(() => module.instantiate({ limits: { maxPages: 1 } as Context["limits"] }), TypeError);
  assert.equal(NewEngine().compile(text).instantiate().call({}, "grow", 16_384), -1, "the default limit");

  const fenced = NewEngine({ optimizations: { "stack-fence": true } }).compile(text);
  const shallow = fenced.instantiate({ limits: { maxStackBytes: 20_000 } });
  assert.throws(() => shallow.call({}, "deep", 20_000), ExhaustionError);
  assert.equal(shallow.call({}, "deep", 50), 50);
  assert.equal(fenced.instantiate().call({}, "deep", 20_000), 20_000);
  const unfenced = NewEngine({ optimizations: { "stack-fence": false } }).compile(text);
  assert.throws(() => unfenced.instantiate({ limits: { maxStackBytes: 20_000 } }), /stack-fence/);

  const open = NewEngine().compile("(module)");
  const few = NewEngine({ limits: { maxInstances: 1 } }).compile("(module)");
  open.instantiate();
  open.instantiate();
  assert.throws(() => few.instantiate(), /Too many instances/);
  assert.ok(host.memory(1).byteLength > 0);
});

Deno.test("closed instances do not count towards maxInstances", () => {
  const module = NewEngine({ limits: { maxInstances: 10_000 } }).compile("(module)");
  for (let k = 0; k < 12_000; k++) {
    const instance = module.instantiate();
    instance.close();
    instance.close();
  }
});
