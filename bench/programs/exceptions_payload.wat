;; try_table: exceptions with a payload of two values, caught by tag one or two frames above; throw_ref propagates
;; others.
(module
  (tag $small (param i32 i64)) (tag $large (param i64))
  (func $check (param $x i32) (result i32)
    (if (i32.eqz (i32.rem_u (local.get $x) (i32.const 3)))
      (then (throw $small (local.get $x) (i64.extend_i32_u (local.get $x)))))
    (if (i32.eqz (i32.rem_u (local.get $x) (i32.const 7)))
      (then (throw $large (i64.const 99))))
    (i32.add (local.get $x) (i32.const 1)))
  (func $middle (param $x i32) (result i32) (local $value i64)
    (block $done (result i32)
      (block $caught (result i32 i64)
        (br $done (try_table (result i32) (catch $small $caught) (call $check (local.get $x)))))
      (local.set $value)
      (i32.add (i32.wrap_i64 (local.get $value)))))
  (func (export "run") (param $n i32) (result i32) (local $sum i32) (local $i i32)
    (loop $again
      (block $next
        (block $other (result i64)
          (local.set $sum (i32.add (local.get $sum)
            (try_table (result i32) (catch $large $other) (call $middle (local.get $i)))))
          (br $next))
        (local.set $sum (i32.xor (i32.wrap_i64) (i32.rotl (local.get $sum) (i32.const 1)))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (local.get $n))))
    (local.get $sum)))
