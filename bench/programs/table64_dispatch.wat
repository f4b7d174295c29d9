;; A table with 64-bit indices: a machine whose instructions are functions in the table; it also rewrites, copies and
;; fills entries.
(module
  (type $op (func (param i64 i64) (result i64)))
  (table $ops i64 4096 4096 funcref)
  (elem (table $ops) (i64.const 0) func $add $xor $turn $mul $less $add $swap $turn)
  (elem declare func $add $xor $turn $mul $less $swap)
  (func $add (type $op) (i64.add (local.get 0) (local.get 1)))
  (func $xor (type $op) (i64.xor (local.get 0) (i64.shr_u (local.get 1) (i64.const 7))))
  (func $turn (type $op) (i64.rotl (local.get 0) (local.get 1)))
  (func $mul (type $op) (i64.mul (i64.or (local.get 0) (i64.const 1)) (i64.const 6364136223846793005)))
  (func $less (type $op) (i64.sub (local.get 0) (i64.extend_i32_u (i64.lt_u (local.get 0) (local.get 1)))))
  (func $swap (type $op) (i64.or (i64.shl (local.get 0) (i64.const 32)) (i64.shr_u (local.get 0) (i64.const 32))))
  (func (export "run") (param $n i32) (result i32) (local $x i64) (local $i i64) (local $end i64) (local $at i64)
    (local.set $x (i64.const 88172645463325252))
    (local.set $end (i64.mul (i64.extend_i32_u (local.get $n)) (i64.const 1000)))
    ;; The first eight entries, repeatedly.
    (local.set $i (i64.const 8))
    (loop $fill
      (table.copy $ops $ops (local.get $i) (i64.const 0) (i64.const 8))
      (br_if $fill (i64.lt_u (local.tee $i (i64.add (local.get $i) (i64.const 8))) (table.size $ops))))
    (local.set $i (i64.const 0))
    (loop $again
      (local.set $at (i64.and (i64.add (local.get $x) (local.get $i)) (i64.const 4095)))
      (local.set $x (call_indirect $ops (type $op) (local.get $x) (local.get $i) (local.get $at)))
      (local.set $x (call_indirect $ops (type $op) (local.get $x) (local.get $at)
        (i64.rem_u (i64.add (local.get $at) (i64.const 1)) (table.size $ops))))
      ;; Every other used entry moves by one.
      (if (i64.eqz (i64.and (local.get $i) (i64.const 1)))
        (then (table.set $ops (i64.and (i64.add (local.get $at) (i64.const 1)) (i64.const 4095))
          (table.get $ops (local.get $at)))))
      (if (i64.eqz (i64.and (local.get $i) (i64.const 1023)))
        (then (table.copy $ops $ops (local.get $at) (i64.const 0) (i64.const 0))
          (table.fill $ops (i64.and (local.get $x) (i64.const 2047)) (ref.func $mul) (i64.const 16))))
      (br_if $again (i64.lt_u (local.tee $i (i64.add (local.get $i) (i64.const 1))) (local.get $end))))
    (i32.wrap_i64 (i64.xor (local.get $x) (i64.shr_u (local.get $x) (i64.const 32))))))
