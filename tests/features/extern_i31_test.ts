/**
 * An i31 known at compile time is an ordinary externref once it is converted. Regression: casts of it were folded to
 * the wrong result.
 */
import assert from "node:assert/strict";
import { NewEngine } from "../../engine/mod.ts";

const MODULE = `(module
  (func (export "test") (result i32) (ref.test (ref extern) (extern.convert_any (ref.i31 (i32.const 5)))))
  (func (export "cast") (result externref) (ref.cast (ref extern) (extern.convert_any (ref.i31 (i32.const 5)))))
  (func (export "null") (result i32) (ref.test (ref extern) (ref.null extern)))
  (func (export "none") (result i32) (ref.test (ref noextern) (extern.convert_any (ref.i31 (i32.const 5)))))
  (func (export "back") (result i32)
    (ref.test (ref i31) (any.convert_extern (extern.convert_any (ref.i31 (i32.const 5))))))
  (func (export "struct") (result i32)
    (ref.test (ref struct) (any.convert_extern (extern.convert_any (ref.i31 (i32.const 5)))))))`;

for (const bounds of ["guard", "explicit"] as const) {
  Deno.test(`${bounds}: constant i31 references as externref`, () => {
    const instance = NewEngine({ bounds }).compile(MODULE).instantiate();
    const results = ["test", "cast", "null", "none", "back", "struct"].map((name) => instance.call({}, name));
    assert.deepEqual(results, [1, 5, 0, 0, 1, 0]);
  });
}

Deno.test("host values that cross repeatedly in one call are released unless the stack or a slot holds them", () => {
  for (const heap of ["", "(drop (struct.new $s (i32.const 1)))"]) {
    const module = `(module (type $s (struct (field i32)))
      (import "m" "next" (func $next (param externref) (result externref)))
      (import "m" "both" (func $both (param externref externref) (result externref externref)))
      (global $g (mut externref) (ref.null extern))
      (func (export "run") (param $n i32) (param $own externref) (result externref externref externref)
        (local $i i32) (local $r externref)
        ${heap}
        (global.set $g (call $next (ref.null extern)))
        (loop $l
          (call $both (local.get $r) (local.get $own)) (local.set $own) (local.set $r)
          (local.set $r (call $next (local.get $r)))
          (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
        (local.get $r) (local.get $own) (global.get $g)))`;
    let count = 0, most = 0;
    const instance = NewEngine().compile(module).instantiate({}, {
      m: {
        next: (value: unknown) => {
          assert.ok(value === null || value === `value ${count - 1}`, `got ${value} as number ${count}`);
          most = Math.max(most, instance.internal.store.thread.handles.size);
          return `value ${count++}`;
        },
        both: (a: unknown, b: unknown) => [a, b],
      },
    });
    const own = { own: true };
    const results = instance.call({}, "run", 40_000, own);
    assert.deepEqual(results, ["value 40000", own, "value 0"]);
    assert.ok(most < 10_000, `${most} handles at once`);
  }
});
