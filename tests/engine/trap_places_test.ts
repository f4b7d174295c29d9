/**
 * The place of a trap is that of the instruction that trapped, whichever compiler has made the code: where the
 * optimizing compiler makes one instruction of an access and of a check that follows it, and where it enters a loop in
 * the middle of a run.
 */
import assert from "node:assert/strict";
import { type EngineOptions, NewEngine, TrapError } from "../../engine/mod.ts";

const CONFIGURATIONS: readonly EngineOptions[] = [
  { tier: "baseline" },
  { tier: "baseline", bounds: "explicit" },
  { tier: "optimizing" },
  { tier: "optimizing", bounds: "explicit" },
  { tier: "auto", tierUpIterations: 0 },
];

/** The message and the line of a trap; a function is called with its argument. */
const ROWS: readonly (readonly [text: string, argument: number, trap: string])[] = [
  [
    `(type $s (struct (field (ref null $s))))
(func (export "f") (param i32)
  (drop (ref.as_non_null
    (struct.get $s 0
      (struct.new $s (ref.null $s))))))`,
    0,
    "null reference at 3",
  ],
  [
    `(table $t 2 funcref) (memory 1)
(func (export "f") (param i32)
  (drop (ref.as_non_null
    (table.get $t
      (i32.load (local.get 0))))))`,
    0,
    "null reference at 3",
  ],
  [
    `(table $t 2 funcref) (memory 1)
(func (export "f") (param i32)
  (drop (ref.as_non_null
    (table.get $t
      (i32.load (local.get 0))))))`,
    -4,
    "out of bounds memory access at 5",
  ],
  [
    `(memory 1)
(func (export "f") (param i32)
  (drop (i32.div_u (i32.const 1)
    (i32.load (local.get 0)))))`,
    8,
    "integer divide by zero at 3",
  ],
  [
    `(type $s (struct (field i32)))
(func (export "f") (param i32) (local $r (ref null $s)) (local $f f64)
  (loop $again
    (drop (ref.as_non_null (local.get $r)))
    (local.set $f (f64.sub (local.get $f) (f64.const 1)))
    (br_if $again (f64.lt (local.get $f) (f64.const 100)))))`,
    0,
    "null reference at 4",
  ],
];

Deno.test("the place of a trap does not depend on the compiler", () => {
  for (const [text, argument, expected] of ROWS) {
    for (const options of CONFIGURATIONS) {
      const instance = NewEngine(options).compile(`(module ${text})`).instantiate();
      assert.throws(
        () => instance.call({}, "f", argument),
        (error) => error instanceof TrapError && `${error.message} at ${error.frames[0]?.line}` === expected,
        `${JSON.stringify(options)}: ${text}`,
      );
      instance.close();
    }
  }
});
