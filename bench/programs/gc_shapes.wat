;; Garbage-collected objects: expression graphs of five node types with a common supertype, evaluated and rewritten with
;; casts and type tests.
(module
  (rec
    (type $expr (sub (struct (field $seen (mut i32)))))
    (type $number (sub final $expr (struct (field $seen (mut i32)) (field $value i32))))
    (type $binary (sub $expr (struct (field $seen (mut i32)) (field $a (mut (ref $expr))) (field $b (mut (ref $expr))))))
    (type $add (sub final $binary
      (struct (field $seen (mut i32)) (field $a (mut (ref $expr))) (field $b (mut (ref $expr))))))
    (type $mul (sub final $binary
      (struct (field $seen (mut i32)) (field $a (mut (ref $expr))) (field $b (mut (ref $expr))) (field $mark (mut i32))))))
  (global $random (mut i32) (i32.const 0))
  (func $next (result i32)
    (global.set $random (i32.add (i32.mul (global.get $random) (i32.const 1664525)) (i32.const 1013904223)))
    (i32.shr_u (global.get $random) (i32.const 16)))
  (func $make (param $depth i32) (result (ref $expr))
    (local $kind i32)
    (if (i32.eqz (local.get $depth))
      (then (return (struct.new $number (i32.const 0) (i32.and (call $next) (i32.const 15))))))
    (local.set $kind (i32.and (call $next) (i32.const 1)))
    (local.set $depth (i32.sub (local.get $depth) (i32.const 1)))
    (if (result (ref $expr)) (local.get $kind)
      (then (struct.new $add (i32.const 0) (call $make (local.get $depth)) (call $make (local.get $depth))))
      (else
        (struct.new $mul (i32.const 0) (call $make (local.get $depth)) (call $make (local.get $depth)) (i32.const 0)))))
  (func $value (param $e (ref $expr)) (result i32)
    (local $m (ref $mul)) (local $p (ref $add))
    (struct.set $expr $seen (local.get $e) (i32.add (struct.get $expr $seen (local.get $e)) (i32.const 1)))
    (if (ref.test (ref $number) (local.get $e))
      (then (return (struct.get $number $value (ref.cast (ref $number) (local.get $e))))))
    (block $isAdd (result (ref $add))
      (local.set $m (ref.cast (ref $mul) (br_on_cast $isAdd (ref $expr) (ref $add) (local.get $e))))
      (return
        (i32.mul
          (call $value (struct.get $mul $a (local.get $m)))
          (i32.or (call $value (struct.get $mul $b (local.get $m))) (i32.const 1)))))
    (local.set $p)
    (i32.add (call $value (struct.get $add $a (local.get $p))) (call $value (struct.get $add $b (local.get $p)))))
  ;; Swaps the operands of every node of the subgraph; sums become new nodes.
  (func $turn (param $e (ref $expr))
    (local $n (ref $binary)) (local $a (ref $expr)) (local $b (ref $expr))
    (block $leaf (result (ref $expr))
      (local.set $n (br_on_cast_fail $leaf (ref $expr) (ref $binary) (local.get $e)))
      (local.set $a (struct.get $binary $a (local.get $n)))
      (local.set $b (struct.get $binary $b (local.get $n)))
      (call $turn (local.get $a))
      (call $turn (local.get $b))
      (if (ref.test (ref $add) (local.get $b))
        (then
          (local.set $b
            (struct.new $add (i32.const 0)
              (struct.get $add $b (ref.cast (ref $add) (local.get $b)))
              (struct.get $add $a (ref.cast (ref $add) (local.get $b)))))))
      (struct.set $binary $a (local.get $n) (local.get $b))
      (struct.set $binary $b (local.get $n) (local.get $a))
      (return))
    (drop))
  (func (export "run") (param $n i32) (result i64)
    (local $root (ref $expr)) (local $sum i64)
    (global.set $random (i32.const 7))
    (local.set $root (call $make (i32.const 13)))
    (loop $again
      (local.set $sum
        (i64.add (i64.mul (local.get $sum) (i64.const 31)) (i64.extend_i32_u (call $value (local.get $root)))))
      (call $turn (local.get $root))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))
