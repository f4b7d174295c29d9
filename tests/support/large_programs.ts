/** Programs whose code is compiled at its place, because their bodies exceed 64 KiB. */

/** A module with `count` functions with loops, which poll; each calls one before it. */
export function manyLoops(count: number): string {
  const functions = Array.from({ length: count }, (_, k) =>
    `(func (export "f${k}") (param i32) (result i32) (local i32)
      (loop $l (local.set 1 (i32.add (local.get 1) (i32.const ${k * 1000 + 77})))
        (i32.store (i32.const ${k * 4}) (local.get 1))
        (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
      ${k === 0 ? "" : `(drop (call ${k >> 1} (i32.const 1)))`} (i32.load (i32.const ${k * 4})))`);
  return `(module (memory 2) ${functions.join("\n")})`;
}

/**
 * A module whose code is far larger than its bodies: each label of its br_table drops an operand, which takes a dozen
 * bytes of code for one byte.
 */
export const LARGE_CODE = `(module (func (export "f") (param i32) (result i32)
  (block $out (result i32)
    (i32.const 1) (i32.const 2) (i32.add (i32.const 40) (local.get 0)) (local.get 0)
    (br_table ${"$out ".repeat(90_000)}))))`;
