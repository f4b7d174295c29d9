/**
 * Budgets of tenants: bytes, processor time and fuel over many instances and calls, and functions that refuse growth.
 */
import assert from "node:assert/strict";
import { Budget, collectGarbage, NewEngine, TrapError } from "../../engine/mod.ts";

const PAGE = 65536;

const MODULE = `(module
  (memory (export "memory") 1)
  (table (export "table") 4 funcref)
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "extend") (param i32) (result i32) (table.grow (ref.null func) (local.get 0)))
  (func (export "work") (param i32)
    (loop $next (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "spin") (loop (br 0))))`;

const engine = NewEngine({ interruptible: true, fuel: true });
const module = engine.compile(MODULE);

/** The bytes of an instance at first. */
const FIRST = PAGE + 4 * 8;

Deno.test("a budget pays for the memories and tables of all its instances", () => {
  const budget = new Budget({ maxBytes: 5 * PAGE });
  const [a, b] = [module.instantiate({ budget }), module.instantiate({ budget })];
  assert.equal(budget.usedBytes, 2 * FIRST);
  assert.equal(a.call({}, "grow", 2), 1);
  assert.equal(b.call({}, "grow", 1), -1, "64 bytes of tables do not fit beside five pages");
  assert.equal(b.call({}, "extend", 100), 4);
  assert.equal(b.call({}, "extend", PAGE), -1);
  assert.equal(budget.usedBytes, 2 * FIRST + 2 * PAGE + 800);
  assert.throws(() => module.instantiate({ budget }), /the budget refuses 65536 bytes/);
  a.reset();
  assert.equal(budget.usedBytes, 2 * FIRST + 800);
  b.close();
  assert.equal(budget.usedBytes, FIRST);
  assert.equal(a.call({}, "grow", 3), 1);
  a.close();
  assert.equal(budget.usedBytes, 0);
});

Deno.test("a function of the budget may refuse growth", () => {
  const seen: string[] = [];
  const budget = new Budget({
    mayGrow: ({ kind, from, to }) => {
      seen.push(`${kind} ${from} ${to}`);
      return to <= 3 * PAGE;
    },
  });
  const instance = module.instantiate({ budget });
  assert.deepEqual([instance.call({}, "grow", 2), instance.call({}, "grow", 1)], [1, -1]);
  assert.equal((instance.exports["memory"] as { grow(delta: number): number }).grow(1), -1, "JavaScript grows it, too");
  assert.deepEqual(seen.slice(0, 4), [
    `memory 0 ${PAGE}`,
    "table 0 32",
    `memory ${PAGE} ${3 * PAGE}`,
    `memory ${3 * PAGE} ${4 * PAGE}`,
  ]);
  const failure = new Error("the program's own");
  const throwing = new Budget({
    mayGrow: ({ from }) => {
      if (from > 0) throw failure;
      return true;
    },
  });
  const other = module.instantiate({ budget: throwing });
  assert.throws(() => other.call({}, "grow", 1), failure);
  assert.equal(other.call({}, "grow", 0), 1, "it stays usable");
  const closing = new Budget({
    mayGrow: ({ from }) => {
      if (from > 0) third.close();
      return true;
    },
  });
  const third = module.instantiate({ budget: closing });
  assert.equal((third.exports["memory"] as { grow(delta: number): number }).grow(1), -1);
  assert.equal(closing.usedBytes, 0);
});

Deno.test("a hundred tenants over their budgets fail alone", () => {
  const tenants = Array.from({ length: 100 }, (_, k) => {
    const budget = new Budget({ maxBytes: 4 * PAGE, fuel: 20_000, processorTime: 20 });
    return { budget, instances: [0, 1].map(() => module.instantiate({ budget })), isGreedy: k % 2 === 0 };
  });
  for (const { budget, instances: [a, b], isGreedy } of tenants) {
    assert.equal(a.call({ budget }, "grow", isGreedy ? 100 : 1), isGreedy ? -1 : 1);
    a.call({ budget }, "work", 100);
    if (!isGreedy) continue;
    assert.throws(
      () => b.call({ budget }, "spin"),
      (error) => error instanceof TrapError && /^(?:out-of-fuel|interrupted)$/.test(error.code),
    );
    assert.throws(() => a.call({ budget }, "work", 100_000), TrapError, "what one call has used is gone for all");
  }
  for (const { budget, instances: [, b], isGreedy } of tenants) {
    if (isGreedy) continue;
    b.call({ budget }, "work", 100);
    assert.ok(Number(budget.fuel) > 0 && Number(budget.fuel) < 20_000 - 200);
    assert.equal(b.call({ budget }, "grow", 1), -1, "three pages and two tables are in use");
  }
});

/** Keeps lists of nodes of 32 bytes, and makes garbage. */
const LISTS = `(module
  (type $node (struct (field i64) (field i64) (field (ref null $node))))
  (type $bytes (array (mut i8)))
  (global $list (mut (ref null $node)) (ref.null $node))
  (func $one (result (ref $node)) (struct.new $node (i64.const 1) (i64.const 2) (global.get $list)))
  (func (export "keep") (param i32)
    (loop $next
      (global.set $list (call $one))
      (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "waste") (param i32)
    (loop $next
      (drop (call $one))
      (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "array") (param i32) (result i32) (array.len (array.new_default $bytes (local.get 0))))
  (func (export "list") (result anyref) (global.get $list))
  (func (export "drop") (global.set $list (ref.null $node))))`;

for (const tier of ["baseline", "optimizing"] as const) {
  Deno.test(`a hundred tenants with objects beyond their limits fail alone (${tier})`, () => {
    const lists = NewEngine({ tier }).compile(LISTS);
    const limits = { maxHeapBytes: 4 * PAGE };
    const shared = new Budget({ maxBytes: 8 * PAGE });
    const tenants = Array.from({ length: 100 }, (_, k) => {
      const context = k < 50
        ? { limits }
        : k < 75
        ? { budget: new Budget({ maxBytes: 4 * PAGE }) }
        : { budget: shared };
      return { instance: lists.instantiate(context), isGreedy: k % 2 === 0 };
    });
    const others = lists.instantiate();
    for (const [k, { instance, isGreedy }] of tenants.entries()) {
      instance.call({}, "waste", 30_000);
      if (k >= 75) continue;
      if (!isGreedy) instance.call({}, "keep", 3_000);
      else assert.throws(() => instance.call({}, "keep", 30_000), /out of memory: objects need more than/);
      others.call({}, "keep", 100);
    }
    for (const { instance, isGreedy } of tenants.slice(0, 75)) {
      if (!isGreedy) {
        instance.call({}, "waste", 30_000);
        assert.throws(() => instance.call({}, "array", 4 * PAGE), TrapError);
        continue;
      }
      assert.throws(() => instance.call({}, "keep", 3_000), TrapError, "it is still at its limit");
      instance.call({}, "drop");
      instance.call({}, "keep", 3_000);
      assert.equal(instance.call({}, "array", PAGE - 8), PAGE - 8);
    }
    // The last 25 share eight blocks.
    collectGarbage();
    let outcomes = "";
    for (const { instance } of tenants.slice(75)) {
      try {
        instance.call({}, "keep", 1_000);
        outcomes += "+";
      } catch (error) {
        assert.match(String(error), /more than the budget grants/);
        outcomes += "-";
      }
    }
    assert.equal(outcomes, `${"+".repeat(8)}${"-".repeat(17)}`);
    assert.equal(shared.usedBytes, 8 * PAGE);
    tenants.slice(75).forEach(({ instance }) => instance.call({}, "drop"));
    tenants[99].instance.call({}, "keep", 10_000);
  });
}

Deno.test("objects count for the instance that has made them, whoever refers to them", () => {
  const lists = NewEngine().compile(LISTS);
  const maker = lists.instantiate({ limits: { maxHeapBytes: 2 * PAGE } });
  maker.call({}, "keep", 1_500);
  const list = maker.call({}, "list");
  maker.call({}, "drop");
  assert.throws(() => maker.call({}, "keep", 3_000), TrapError, "JavaScript refers to the list");
  assert.ok(list);
  const none = lists.instantiate({ limits: { maxHeapBytes: 0 } });
  assert.throws(() => none.call({}, "keep", 1), /the limit of 0 bytes/);
});

Deno.test("a function of the budget refuses objects, and may do what it wants meanwhile", () => {
  const lists = NewEngine().compile(LISTS);
  const seen: string[] = [];
  let meanwhile = () => {};
  const budget = new Budget({
    mayGrow: ({ kind, from, to }) => {
      seen.push(`${kind} ${from} ${to}`);
      meanwhile();
      return to <= 3 * PAGE;
    },
  });
  const instance = lists.instantiate({ budget });
  instance.call({}, "keep", 3_000);
  assert.deepEqual(seen, [`heap 0 ${PAGE}`, `heap ${PAGE} ${2 * PAGE}`]);
  assert.equal(budget.usedBytes, 2 * PAGE);
  assert.throws(() => instance.call({}, "keep", 10_000), /more than the budget grants/);
  instance.call({}, "drop");
  collectGarbage();
  assert.equal(budget.usedBytes, 0);
  meanwhile = () => {
    meanwhile = () => {};
    collectGarbage();
    instance.call({}, "keep", 100);
    lists.instantiate({ budget }).call({}, "keep", 1);
  };
  instance.call({}, "keep", 1_000);
  meanwhile = collectGarbage;
  instance.call({}, "keep", 4_000);
  collectGarbage();
  assert.equal(budget.usedBytes, 4 * PAGE);
  const failure = new Error("the program's own");
  meanwhile = () => {
    throw failure;
  };
  assert.throws(() => instance.call({}, "keep", 4_000), failure);
  assert.equal(budget.usedBytes, 4 * PAGE);
});

Deno.test("the objects of closed instances cost their budget nothing", () => {
  const lists = NewEngine().compile(LISTS);
  const budget = new Budget({ maxBytes: 4 * PAGE });
  for (let k = 0; k < 300; k++) {
    const instance = lists.instantiate({ budget });
    instance.call({}, "keep", 4_000);
    instance.close();
    assert.equal(budget.usedBytes, 0);
  }
});

Deno.test("processor time of a budget is used up by all calls together, also asynchronous ones", async () => {
  const budget = new Budget({ processorTime: 30 });
  const timed = NewEngine({ interruptible: true }).compile(MODULE);
  const [a, b] = [timed.instantiate({ budget }), timed.instantiate({ budget })];
  assert.throws(() => a.call({ budget }, "spin"), /interrupted/);
  assert.equal(budget.processorTime, 0);
  assert.throws(() => b.call({ budget }, "spin"), /interrupted/);
  await assert.rejects(b.callAsync({ budget }, "spin"), /interrupted/);
  b.call({}, "work", 10);
});

Deno.test("budgets that cannot be are refused", async () => {
  assert.throws(() => new Budget({ maxByte: 1 } as never), /did you mean "maxBytes"/);
  assert.throws(() => new Budget({ maxBytes: -1 }), RangeError);
  assert.throws(() => new Budget({ mayGrow: true } as never), TypeError);
  assert.throws(() => module.instantiate({ budget: {} as never }), /must be a Budget/);
  const plain = NewEngine().compile(MODULE).instantiate();
  assert.throws(
    () => plain.call({ budget: new Budget({ fuel: 10 }) }, "work", 1),
    /fuel requires code that enforces it/,
  );
  const instance = module.instantiate();
  await assert.rejects(instance.callAsync({ budget: new Budget({ fuel: 10 }) }, "work", 1), /synchronous calls only/);
});
