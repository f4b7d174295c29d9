/**
 * Calls through tables with known contents (key immutable-poly-fastpath): the check of the callee's instance is omitted
 * where all functions belong to the module itself, and only there.
 */
import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { type EngineOptions, NewEngine } from "../../engine/mod.ts";

const OWN = `(module
  (import "host" "seven" (func $seven (result i32)))
  (type $f (func (param i32) (result i32)))
  (global $base (mut i32) (i32.const 0))
  (memory 1)
  (table 5 5 funcref)
  (elem (i32.const 0) $add $twice $count $read)
  (func $add (type $f) (i32.add (local.get 0) (global.get $base)))
  (func $twice (type $f) (i32.mul (local.get 0) (i32.const 2)))
  (func $count (type $f) (if (result i32) (local.get 0)
    (then (i32.add (call_indirect (type $f) (i32.sub (local.get 0) (i32.const 1)) (i32.const 2)) (i32.const 1)))
    (else (call $seven))))
  (func $read (type $f) (i32.load (local.get 0)))
  (func (export "set") (param i32) (global.set $base (local.get 0)) (i32.store (i32.const 16) (local.get 0)))
  (func (export "call") (param i32 i32) (result i32)
    (i32.add (call_indirect (type $f) (local.get 1) (local.get 0)) (global.get $base)))
  (func (export "tail") (param i32 i32) (result i32)
    (return_call_indirect (type $f) (local.get 1) (local.get 0))))`;

/** A table with a function of another module, whose instance is unknown. */
const MIXED = `(module
  (type $f (func (param i32 i32) (result i32)))
  (import "other" "call" (func $other (type $f)))
  (table 2 2 funcref)
  (elem (i32.const 0) $other $sum)
  (func $sum (type $f) (i32.add (local.get 0) (local.get 1)))
  (func (export "call") (param i32 i32 i32) (result i32)
    (call_indirect (type $f) (local.get 1) (local.get 2) (local.get 0))))`;

const KEY = "immutable-poly-fastpath";

for (const on of [true, false]) {
  Deno.test(`calls through a known table run in their own instance, ${KEY} ${on ? "on" : "off"}`, () => {
    const options: EngineOptions = { verify: true, optimizations: { [KEY]: on } };
    const engine = NewEngine({ tier: "optimizing", ...options });
    const own = engine.compile(OWN);
    equal((own.statistics[KEY] ?? 0) > 0, on);
    const host = { host: { seven: () => 7 } };
    const [a, b] = [own.instantiate({}, host), own.instantiate({}, host)];
    a.call({}, "set", 100);
    b.call({}, "set", 1000);
    for (const [instance, base] of [[a, 100], [b, 1000]] as const) {
      for (const [name, more] of [["call", base], ["tail", 0]] as const) {
        const results = [[0, 5], [1, 5], [2, 5], [3, 16]].map(([at, x]) =>
          Number(instance.call({}, name, at, x)) - more
        );
        deepEqual(results, [5 + base, 10, 12, base]);
        throws(() => instance.call({}, name, 4, 0), /uninitialized element/);
        throws(() => instance.call({}, name, 5, 0), /undefined element/);
      }
    }
    const mixed = engine.compile(MIXED);
    equal(mixed.statistics[KEY] ?? 0, 0);
    const c = mixed.instantiate({}, { other: { call: b.exports["call"] } });
    equal(c.call({}, "call", 0, 0, 5), 2005);
    equal(c.call({}, "call", 1, 3, 5), 8);
    ok(Number(a.call({}, "call", 0, 1)) === 201);
  });
}
