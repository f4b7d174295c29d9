/**
 * `close` of a memory while code that uses it runs: every access afterwards is out of bounds or reads zeros of its own
 * memory, in every bounds mode and tier, for own and imported memories; nothing crashes and nothing is a Bug.
 */
import assert from "node:assert/strict";
import { type Engine, host, type Instance, type Memory, NewEngine } from "@waft/engine";

/** Accesses after the memory was closed. */
const OPERATIONS: Readonly<Record<string, string>> = {
  load: "(drop (i32.load (i32.const 100)))",
  store: "(i32.store (i32.const 100) (i32.const 1))",
  last: "(drop (i32.load (i32.const 131068)))",
  vector: "(drop (v128.load (i32.const 64)))",
  fill: "(memory.fill (i32.const 0) (i32.const 1) (i32.const 70000))",
  empty: "(memory.fill (i32.const 0) (i32.const 0) (i32.const 0))",
  copy: "(memory.copy (i32.const 0) (i32.const 9) (i32.const 70000))",
  init: "(memory.init $d (i32.const 0) (i32.const 0) (i32.const 4))",
  grow: "(drop (memory.grow (i32.const 1)))",
  size: "(drop (memory.size))",
  loop: `(local.set $i (i32.const 1000))
    (loop (i32.store (local.get $i) (local.get $i)) (br_if 0 (local.tee $i (i32.sub (local.get $i) (i32.const 4)))))`,
};

/** Ways to close it in the middle of a call. */
const CLOSINGS: Readonly<Record<string, (memory: Memory, instance: Instance) => void>> = {
  close: (memory) => memory.close(),
  twice: (memory) => (memory.close(), memory.close()),
  "close and grow": (memory) => (memory.close(), memory.grow(1)),
  "grow and close": (memory) => (memory.grow(1), memory.close()),
  "close the instance": (_, instance) => instance.close(),
};

function textFor(isImported: boolean): string {
  const functions = Object.entries(OPERATIONS).map(([name, code]) =>
    `(func (export "${name}") (local $i i32) (i32.store (i32.const 8) (i32.const 7)) (call $close) ${code})`
  );
  return `(module (import "env" "close" (func $close))
    ${isImported ? '(import "env" "memory" (memory 2 8))' : '(memory (export "memory") 2 8)'}
    (data $d "abcd") ${functions.join("\n")})`;
}

/** Errors that embedders may see: traps, and refusals of the API. */
const EXPECTED = ["TrapError", "RangeError", "Error"];

function attack(engine: Engine, bounds: "guard" | "explicit", isImported: boolean): number {
  const module = engine.compile(textFor(isImported));
  let count = 0;
  for (const operation of Object.keys(OPERATIONS)) {
    for (const [closing, close] of Object.entries(CLOSINGS)) {
      const own = isImported ? host.memory(2, 8, bounds) : undefined;
      const instance: Instance = module.instantiate({}, {
        env: { close: () => close(memory, instance), ...(own === undefined ? {} : { memory: own }) },
      });
      const memory: Memory = own ?? instance.exports["memory"] as Memory;
      const kept = new Uint8Array(memory.buffer);
      try {
        instance.call({}, operation);
      } catch (error) {
        assert.ok(EXPECTED.includes((error as Error).name), `${operation}, ${closing}: ${error}`);
      }
      assert.ok(
        kept.length === 0 || [0, 1, 7, 8].includes(kept[8]),
        `${operation}, ${closing}: a view shows other bytes`,
      );
      instance.close();
      count++;
    }
  }
  return count;
}

for (const bounds of ["guard", "explicit"] as const) {
  for (const tier of ["optimizing", "baseline"] as const) {
    Deno.test(`${bounds}, ${tier}: closing a memory under running code`, () => {
      const engine = NewEngine({ bounds, tier });
      const count = attack(engine, bounds, false) + attack(engine, bounds, true);
      assert.equal(count, 2 * Object.keys(OPERATIONS).length * Object.keys(CLOSINGS).length);
    });
  }
}
