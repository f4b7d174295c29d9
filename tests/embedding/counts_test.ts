/**
 * Exact counts through the API: each table with names and lines, instances beside each other, traps, imports that are
 * no functions, source maps, limits of memory, and refusals.
 */
import assert from "node:assert/strict";
import { NewEngine } from "@waft/engine";
import { CountedModule, type RunCounts } from "@waft/engine/counts";

const PROGRAM = `(module
  (import "env" "tick" (func $tick (param i32) (result i32)))
  (import "env" "memory" (memory 1 4))
  (type $a (array (mut i32)))
  (func $leaf (param i32) (result i32)
    (call $tick (local.get 0)))
  (func (export "run") (param i32)
    (loop $l
      (drop (call $leaf (local.get 0)))
      (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (drop (array.new $a (i32.const 7) (i32.const 5)))
    (drop (memory.grow (i32.const 2)))
    (drop (memory.grow (i32.const 2))))
  (func (export "trap") (drop (call $leaf (i32.const 1))) unreachable))`;

function imports(counted: CountedModule, tick: (n: number) => number = (n) => n) {
  return { env: { tick, memory: counted.memoryForImport("env", "memory") } };
}

/** Counts without times, of which only the sign is known. */
function exact({ functions, loops, allocations, growth, hostCalls }: RunCounts) {
  return {
    functions: functions.map(({ name, calls, line }) => [name, calls, line]),
    loops: loops.map(({ name, iterations, line }) => [name, iterations, line]),
    allocations: allocations.map(({ instruction, objects, elements }) => [instruction, objects, elements]),
    growth: growth.map(({ memory, calls, pages }) => [memory, calls, pages]),
    hostCalls: hostCalls.map(({ module, name, calls }) => [module, name, calls]),
  };
}

Deno.test("every table has what occurred, with names and lines of the text", () => {
  const counted = new CountedModule(PROGRAM);
  const { instance, counts } = counted.instantiate({}, imports(counted));
  instance.call({}, "run", 100);
  assert.deepEqual(exact(counts()), {
    functions: [["leaf", 100, 5], ["run", 1, 7]],
    loops: [["run", 100, 8]],
    allocations: [["array.new", 1, 5]],
    growth: [[0, 1, 2], [0, 1, 0]],
    hostCalls: [["env", "tick", 100]],
  });
  assert.ok(counts().hostCalls[0].ms >= 0);
});

Deno.test("a binary module, instances beside each other, a trap, and an error of the host", () => {
  const bytes = new Uint8Array(NewEngine().parse(PROGRAM).bytes);
  for (const tier of ["baseline", "optimizing"] as const) {
    const counted = new CountedModule(bytes, { engine: { tier } });
    const one = counted.instantiate({}, imports(counted));
    const other = counted.instantiate(
      {},
      imports(counted, (n) => {
        if (n === 3) throw new RangeError("three");
        return n;
      }),
    );
    one.instance.call({}, "run", 7);
    assert.throws(() => one.instance.call({}, "trap"), /unreachable/);
    assert.throws(() => other.instance.call({}, "run", 10), /three/);
    const [first, second] = [exact(one.counts()), exact(other.counts())];
    assert.deepEqual(first.hostCalls, [["env", "tick", 8]], tier);
    assert.deepEqual(second.hostCalls, [["env", "tick", 8]]);
    assert.deepEqual(second.loops, [["run", 8, undefined]]);
    assert.deepEqual(second.growth, []);
    one.instance.close();
    other.instance.close();
  }
});

Deno.test("the limit of memory is that of the module itself", () => {
  const counted = new CountedModule(
    `(module (memory 1) (func (export "grow") (result i32) (memory.grow (i32.const 1))))`,
    { engine: { limits: { maxMemoryPages: 2 } } },
  );
  const { instance, counts } = counted.instantiate();
  assert.deepEqual([1, 2, 3].map(() => instance.call({}, "grow")), [1, -1, -1]);
  assert.deepEqual(exact(counts()).growth, [[0, 3, 1]]);
});

Deno.test("the module is judged as it is, and fuel is refused", () => {
  assert.throws(() => new CountedModule("(module (func call 1))"), /unknown function/);
  assert.throws(() => new CountedModule("(module)", { engine: { fuel: true } }), TypeError);
  assert.throws(() => new CountedModule("(module)", { names: 1 } as object), TypeError);
  const off = { engine: { features: { "multi-memory": false } } } as const;
  new CountedModule("(module (memory 1))", off).instantiate();
  assert.throws(() => new CountedModule("(module (memory 1) (memory 1))", off));
});
