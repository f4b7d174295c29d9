;; Function references: a pipeline of functions in a typed table, called by call_ref; null entries are skipped by
;; br_on_null. Each function returns the number of the next one.
(module
  (type $stage (func (param i32 i32) (result i32)))
  (table $stages 8 (ref null $stage))
  (elem (table $stages) (i32.const 0) (ref null $stage)
    (ref.func $add) (ref.func $mix) (ref.null $stage) (ref.func $turn) (ref.func $mul) (ref.func $mix) (ref.null $stage) (ref.func $sub))
  (func $add (type $stage) (i32.add (local.get 0) (local.get 1)))
  (func $sub (type $stage) (i32.sub (i32.mul (local.get 0) (i32.const 5)) (local.get 1)))
  (func $mul (type $stage) (i32.mul (i32.or (local.get 0) (i32.const 1)) (i32.const 16777619)))
  (func $mix (type $stage) (i32.xor (local.get 0) (i32.shr_u (local.get 0) (i32.const 15))))
  (func $turn (type $stage) (i32.rotl (local.get 0) (local.get 1)))
  ;; Applies a function argument, as higher-order code does.
  (func $twice (param $f (ref $stage)) (param $x i32) (param $y i32) (result i32)
    (call_ref $stage (call_ref $stage (local.get $x) (local.get $y) (local.get $f)) (local.get $y) (local.get $f)))
  (func (export "run") (param $n i32) (result i32) (local $x i32) (local $i i32)
    (local.set $x (i32.const 1))
    (loop $again
      (block $skip
        (local.set $x (call_ref $stage (local.get $x) (local.get $i)
          (br_on_null $skip (table.get $stages (i32.and (i32.add (local.get $x) (local.get $i)) (i32.const 7)))
          )))
        (if (i32.eqz (i32.and (local.get $i) (i32.const 3)))
          (then (local.set $x (call $twice (ref.func $turn) (local.get $x) (local.get $i))))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.mul (local.get $n) (i32.const 1000)))))
    (local.get $x))
  (elem declare func $turn))
