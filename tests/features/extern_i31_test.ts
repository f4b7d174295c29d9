/** An i31 that the compiler knows is an externref like any other once it is converted to one (casts of it were decided wrongly once). */
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
