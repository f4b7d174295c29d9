/**
 * Fuel across instances: metered code keeps it in a register, other code does not know it. For every caller and callee,
 * every kind of call and every way to leave it, the consumption is the cost of the metered instances' own instructions.
 */
import assert from "node:assert/strict";
import { THREAD } from "../../engine/abi/context_layout.ts";
import { type Engine, NewEngine, TrapError } from "../../engine/mod.ts";

/** Writes every register: sixteen simultaneously live values that depend on `$x` and on memory. */
const BUSY = `(memory 1) (func $busy (param $x i32) (result i32)
  ${Array.from({ length: 16 }, (_, k) => `(local $v${k} i32)`).join(" ")}
  ${
  Array.from({ length: 16 }, (_, k) =>
    `(local.set $v${k} (i32.load offset=${4 * k} (i32.and (local.get $x) (i32.const 0xff))))`).join("\n  ")
}
  (loop $again
    ${
  Array.from({ length: 16 }, (_, k) =>
    `(local.set $v${k} (i32.add (local.get $v${k}) (i32.xor (local.get $v${(k + 1) % 16}) (local.get $x))))`).join("\n")
}
    (br_if $again (local.tee $x (i32.shr_u (local.get $x) (i32.const 1)))))
  ${Array.from({ length: 15 }, () => "(i32.xor").join(" ")} (local.get $v0)
  ${Array.from({ length: 15 }, (_, k) => `(local.get $v${k + 1}))`).join(" ")})`;

const TYPE = "(type $f (func (param i32) (result i32)))";

/** The innermost module: called by all others, calls only the host. */
const INNER = `(module ${TYPE}
  (import "h" "host" (func $host (type $f)))
  (tag $e (export "e") (param i32))
  (table (export "t") 4 funcref) (elem (i32.const 0) $busy $park)
  ${BUSY} (export "busy" (func $busy))
  (func $park (export "park") (type $f) (i32.add (call $host (call $busy (local.get 0))) (call $busy (i32.const 5))))
  (func (export "throw") (type $f) (throw $e (call $busy (local.get 0))))
  (func (export "trap") (type $f) (drop (call $busy (local.get 0))) unreachable)
  (func (export "fault") (type $f) (drop (call $busy (local.get 0))) (i32.load (i32.const -1)))
  (func (export "grow") (type $f) (i32.add (call $busy (local.get 0)) (memory.grow (i32.const 0)))))`;

const MIDDLE = `(module ${TYPE}
  ${
  ["busy", "park", "throw", "trap", "fault", "grow"].map((name) => `(import "i" "${name}" (func $${name}_i (type $f)))`)
    .join(" ")
}
  (import "i" "e" (tag $e (param i32)))
  ${BUSY}
  (func (export "call") (type $f) (i32.add (call $busy_i (local.get 0)) (call $busy (local.get 0))))
  (func (export "tail") (type $f) (return_call $busy_i (call $busy (local.get 0))))
  (func (export "park") (type $f) (i32.add (call $park_i (local.get 0)) (call $busy (local.get 0))))
  (func (export "tailPark") (type $f) (return_call $park_i (call $busy (local.get 0))))
  (func (export "grow") (type $f) (return_call $grow_i (local.get 0)))
  (func (export "throw") (type $f) (i32.add (call $throw_i (local.get 0)) (call $busy (local.get 0))))
  (func (export "tailThrow") (type $f) (return_call $throw_i (local.get 0)))
  (func (export "caught") (type $f)
    (i32.add
      (block $h (result i32) (try_table (result i32) (catch $e $h) (call $throw_i (local.get 0))))
      (call $busy (local.get 0))))
  (func (export "trap") (type $f) (call $trap_i (call $busy (local.get 0))))
  (func (export "fault") (type $f) (return_call $fault_i (call $busy (local.get 0)))))`;

const NAMES = ["call", "tail", "park", "tailPark", "grow", "throw", "tailThrow", "caught"];
const TRAPS = ["trap", "fault"];

const OUTER = `(module ${TYPE}
  (import "i" "t" (table $t 4 funcref)) (import "i" "e" (tag $e (param i32)))
  ${[...NAMES, ...TRAPS].map((name) => `(import "m" "${name}" (func $${name}_m (type $f)))`).join(" ")}
  ${BUSY}
  ${
  [...NAMES, ...TRAPS].map((name) =>
    `(func (export "${name}") (type $f)
      (i32.add
        (block $h (result i32) (try_table (result i32) (catch $e $h) (call $${name}_m (local.get 0))))
        (call $busy (local.get 0))))
     (func $${name}_tail (type $f) (return_call $${name}_m (call $busy (local.get 0))))
     (func (export "${name} by tail") (type $f)
      (i32.add
        (block $h (result i32) (try_table (result i32) (catch $e $h) (call $${name}_tail (local.get 0))))
        (call $busy (local.get 0))))`
  ).join("\n")
}
  (func (export "indirect") (type $f)
    (i32.add (call_indirect $t (type $f) (local.get 0) (i32.const 0))
      (i32.add (call_indirect $t (type $f) (local.get 0) (i32.const 1)) (call $busy (local.get 0)))))
  (func (export "tail indirect") (type $f)
    (return_call_indirect $t (type $f) (call $busy (local.get 0)) (i32.const 1)))
  (func (export "by reference") (param i32 (ref $f)) (result i32)
    (i32.add (call_ref $f (local.get 0) (local.get 1)) (call $busy (local.get 0)))))`;

type Call = (...args: unknown[]) => number;

interface Chain {
  calls: Record<string, Call>;
  /** The innermost instance's functions, to pass as references. */
  inner: Record<string, Call>;
}

/** Links the three modules, each of them metered or not. */
function link(engines: readonly Engine[], host: (x: number) => number): Chain {
  const [outer, middle, inner] = engines as [Engine, Engine, Engine];
  const i = inner.compile(INNER).instantiate({}, { h: { host } });
  const m = middle.compile(MIDDLE).instantiate({}, { i: i.exports });
  const o = outer.compile(OUTER).instantiate({}, { i: i.exports, m: m.exports });
  return { calls: o.exports as Record<string, Call>, inner: i.exports as Record<string, Call> };
}

const probe = NewEngine().compile("(module)").instantiate();
const { i64 } = probe.internal.store.thread.state;
const CELL = THREAD.FUEL >> 3;

function used(action: () => void): bigint {
  const before = i64[CELL];
  action();
  return before - i64[CELL];
}

/** The consumption and the result of each call, in order. */
function trace(chain: Chain): { answers: string[]; fuel: bigint[] } {
  const answers: string[] = [];
  const fuel: bigint[] = [];
  const run = (call: Call, ...args: unknown[]) => {
    let answer = "";
    fuel.push(used(() => {
      try {
        answer = String(call(...args));
      } catch (error) {
        if (!(error instanceof TrapError)) throw error;
        answer = error.message;
      }
    }));
    answers.push(answer);
  };
  for (const [name, call] of Object.entries(chain.calls)) {
    if (name === "by reference") { for (const f of ["busy", "park", "grow"]) run(call, 77, chain.inner[f]); }
    else run(call, 1234);
  }
  return { answers, fuel };
}

for (const bounds of ["guard", "explicit"] as const) {
  Deno.test(`${bounds}: consumption is the sum of the metered instances' costs, for every mix of instances`, () => {
    const engines = [NewEngine({ bounds }), NewEngine({ bounds, fuel: true })] as const;
    const host = (x: number) => x ^ 5;
    const runs = Array.from(
      { length: 8 },
      (_, mask) => trace(link([0, 1, 2].map((k) => engines[((mask >> k) & 1) as 0 | 1]), host)),
    );
    const parts = [1, 2, 4].map((mask) => runs[mask].fuel);
    assert.ok(runs[0].fuel.every((fuel) => fuel === 0n), "code without fuel uses none");
    assert.ok(parts.every((fuel) => fuel.some((units) => units > 100n)), "every instance has a cost");
    runs.forEach(({ answers, fuel }, mask) => {
      assert.deepEqual(answers, runs[0].answers, `answers of ${mask}`);
      const expected = fuel.map((_, k) => parts.reduce((sum, part, n) => sum + ((mask >> n) & 1 ? part[k] : 0n), 0n));
      assert.deepEqual(fuel, expected, `fuel of ${mask}`);
    });
  });

  Deno.test(`${bounds}: fuel runs out at the same place on every call path, and the remainder is exact`, () => {
    const engine = NewEngine({ bounds, fuel: true });
    const chain = link([engine, engine, engine], (x) => x ^ 5);
    for (const [name, call] of Object.entries(chain.calls)) {
      if (name === "by reference" || name.startsWith("trap") || name.startsWith("fault")) continue;
      const whole = used(() => call(1234));
      for (const given of [whole, whole - 1n, whole / 2n, whole / 3n, 1n, 0n]) {
        const before = i64[CELL];
        i64[CELL] = given;
        let message = "";
        try {
          call(1234);
        } catch (error) {
          message = (error as Error).message;
        }
        const left = i64[CELL];
        i64[CELL] = before;
        assert.equal(message, given >= whole ? "" : "out of fuel", `${name} with ${given} of ${whole}`);
        assert.ok(left >= 0n && left <= given, `${name}: ${left} of ${given}`);
      }
    }
  });
}

Deno.test("a host function sees the remaining fuel, may change it, and may call in again", () => {
  const engine = NewEngine({ fuel: true });
  const seen: bigint[] = [];
  let again: Call | undefined;
  const chain = link([engine, engine, engine], (x) => {
    seen.push(i64[CELL]);
    if (again !== undefined) {
      const call = again;
      again = undefined;
      call(3);
    }
    i64[CELL] = 1000n;
    return x;
  });
  again = chain.calls["indirect"];
  const before = i64[CELL];
  const inner = used(() => chain.inner["busy"](5));
  i64[CELL] = 500_000n;
  chain.inner["park"](1234);
  // After the host function returns, the callee calls only $busy.
  assert.equal(i64[CELL], 1000n - inner);
  assert.equal(seen.length, 2);
  assert.ok(seen[1] < seen[0] && seen[1] > 490_000n, `${seen}`);
  i64[CELL] = before;
});

Deno.test("an unresolved fuel price is not merged with the program's constants", () => {
  const zeros: unknown[] = [];
  const engine = NewEngine({ fuel: true });
  const { exports } = engine.compile(`(module (import "h" "see" (func $see (param i64)))
    (func $inlined (call $see (i64.const 0)))
    (func (export "a") (call $inlined))
    (func (export "b") (param i64) (result i64) (call $see (i64.const 0)) (i64.mul (local.get 0) (i64.const 0)))
    (func (export "c") (call $see (i64.const 0)) (call $inlined)))`).instantiate({}, {
    h: { see: (value: bigint) => void zeros.push(value) },
  });
  const calls = exports as Record<string, Call>;
  for (const name of ["a", "b", "c"]) calls[name](5n);
  assert.deepEqual(zeros, [0n, 0n, 0n, 0n]);
});
