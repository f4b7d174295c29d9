/**
 * Prices of instructions that the embedder sets: the same totals in every tier, by groups and by names; code with other
 * prices is never reused.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type EngineOptions, NewEngine, TrapError } from "@waft/engine";
import { Recorder } from "@waft/engine/recording";

type Prices = Readonly<Record<string, number>>;

const TEXT = `(module (memory 1 4) (table 4 funcref) (elem (i32.const 0) $twice $twice)
  (type $unary (func (param i32) (result i32))) (type $box (struct (field i32)))
  (global $g (mut i32) (i32.const 1))
  (func $twice (type $unary) (i32.mul (local.get 0) (i32.const 2)))
  (func (export "mixed") (param i32) (result i32) (local $sum i32) (local $f f64)
    (nop)
    (loop $next
      (if (i32.and (local.get 0) (i32.const 1))
        (then (drop (call $twice (local.get 0))) (nop) (nop))
        (else (local.set $sum (call_indirect (type $unary) (local.get 0) (i32.const 1)))))
      (block $two (block $one (block $zero
        (br_table $zero $one $two (i32.rem_u (local.get 0) (i32.const 3))))
          (local.set $f (f64.sqrt (f64.convert_i32_s (local.get 0)))) (br $two))
        (global.set $g (select (i32.const 7) (global.get $g) (local.get 0))))
      (i32.store (i32.const 8) (i32.div_u (i32.const 1000) (local.get 0)))
      (local.set $sum (i32.add (local.get $sum) (i32.load (i32.const 8))))
      (local.set $sum (i32.add (local.get $sum) (struct.get $box 0 (struct.new $box (local.get 0)))))
      (memory.fill (i32.const 64) (i32.const 1) (i32.const 640))
      (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (i32.add (local.get $sum) (i32.trunc_f64_s (local.get $f))))
  (func (export "three") (result i32) (i32.mul (i32.const 6) (i32.const 7)))
  (func (export "grow") (result i32) (memory.grow (i32.const 0)))
  (func (export "spin") (loop (br 0))))`;

const BYTES = new Uint8Array(NewEngine().parse(TEXT).bytes);

/** The fuel that a call of `name` uses. */
function fuelOf(options: EngineOptions, name: string, ...args: number[]): number {
  const context = { fuel: 10 ** 9 };
  NewEngine({ ...options, fuel: true }).compile(BYTES).instantiate().call(context, name, ...args);
  return 10 ** 9 - context.fuel;
}

/** Settings by which each compiler makes the code, at once or when a function is called. */
const COMPILERS = [
  { tier: "optimizing" },
  { tier: "optimizing", optimizations: { "inline": false } },
  { tier: "baseline" },
  { tier: "auto", lazyFrom: 0 },
] as const;

Deno.test("prices by name and by group, in every tier", () => {
  const rows: readonly (readonly [Prices | undefined, number])[] = [
    [undefined, 3],
    [{ "i32.mul": 10 }, 12],
    [{ "i32.const": 0 }, 1],
    [{ all: 2 }, 6],
    [{ all: 254 }, 762],
    [{ all: 2, "i32.mul": 100 }, 104],
    [{ calls: 9, floats: 9, vectors: 9 }, 3],
  ];
  for (const compiler of COMPILERS) {
    for (const [fuelPrices, expected] of rows) {
      assert.equal(fuelOf({ ...compiler, ...(fuelPrices && { fuelPrices }) }, "three"), expected);
    }
    assert.equal(fuelOf({ ...compiler, fuelPrices: { growth: 200 } }, "grow"), 201);
    assert.equal(fuelOf({ ...compiler, fuelPrices: { "memory.grow": 1 } }, "grow"), 2);
  }
});

Deno.test("random prices give the same totals in every tier", () => {
  const names = ["nop", "drop", "if", "br_table", "br_if", "br", "select", "call", "call_indirect", "i32.load"].concat(
    ["struct.new", "struct.get", "memory.fill", "f64.sqrt", "global.set", "local.tee", "i32.rem_u", "loads", "all"],
  );
  let seed = 1;
  const random = (below: number) => (seed = seed * 48271 % 0x7fffffff) % below;
  const totals = new Set<number>();
  for (let round = 0; round < 12; round++) {
    const fuelPrices = Object.fromEntries(
      names.filter(() => random(3) === 0).map((name) => [name, random(255)]),
    );
    const [first, ...others] = COMPILERS.map((compiler) => fuelOf({ ...compiler, fuelPrices }, "mixed", 50));
    assert.deepEqual(others, others.map(() => first), JSON.stringify(fuelPrices));
    totals.add(first);
  }
  assert.ok(totals.size > 8, "the prices count");
});

Deno.test("instructions without a price use up no fuel, others stop a loop", () => {
  const engine = NewEngine({ fuel: true, interruptible: true, fuelPrices: { br: 0 } });
  const free = engine.compile(TEXT).instantiate();
  assert.throws(() => free.call({ fuel: 100, deadline: 20 }, "spin"), /interrupted/);
  const spin = NewEngine({ fuel: true, fuelPrices: { branches: 50 } }).compile(TEXT).instantiate();
  assert.throws(() => spin.call({ fuel: 100_000 }, "spin"), TrapError);
});

Deno.test("code with other prices is not reused, artifacts keep theirs", () => {
  const directory = mkdtempSync(join(tmpdir(), "waft-prices-"));
  try {
    const options = { tier: "optimizing", cache: { directory } } as const;
    const dear: Prices = { "i32.mul": 10, "i32.const": 4 };
    for (let round = 0; round < 2; round++) {
      assert.equal(fuelOf(options, "three"), 3);
      assert.equal(fuelOf({ ...options, fuelPrices: dear }, "three"), 18);
      assert.equal(fuelOf({ ...options, fuelPrices: { "i32.const": 4, "i32.mul": 10 } }, "three"), 18);
      assert.equal(fuelOf({ ...options, fuelPrices: { "i32.mul": 10 } }, "three"), 12);
    }
    assert.ok(readdirSync(directory).length >= 3);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  const engine = NewEngine({ fuel: true, fuelPrices: { "i32.mul": 10 }, tier: "optimizing" });
  const artifact = engine.compile(TEXT).serialize();
  const context = { fuel: 100 };
  engine.load(artifact).instantiate().call(context, "three");
  assert.equal(context.fuel, 88);
  assert.throws(() => NewEngine({ fuel: true, tier: "optimizing" }).load(artifact), /fuelPrices/);
});

Deno.test("prices that cannot be are refused", () => {
  const refused = (fuelPrices: unknown, message: RegExp) =>
    assert.throws(() => NewEngine({ fuel: true, fuelPrices: fuelPrices as Prices }), message);
  refused({ "i32.mull": 1 }, /Unknown group or instruction of fuelPrices "i32.mull"; did you mean "i32.mul"\?/);
  refused({ call: 1, "end": 1 }, /Unknown group or instruction of fuelPrices "end"/);
  refused({ "call=1,nop": 1 }, /Unknown group or instruction/);
  refused({ call: 255 }, /The price of call must be a whole number from 0 to 254, not 255/);
  refused({ call: -1 }, RegExp("from 0 to 254"));
  refused({ call: 1.5 }, RegExp("from 0 to 254"));
  refused([], /must be an object/);
  assert.throws(() => NewEngine({ fuelPrices: { call: 2 } }), /The option fuelPrices requires the option fuel/);
  const recorded = NewEngine({ deterministic: true, fuel: true, fuelPrices: { call: 2 } }).compile(TEXT);
  assert.throws(() => recorded.instantiate({ record: new Recorder(TEXT) }), /omit fuelPrices/);
});
