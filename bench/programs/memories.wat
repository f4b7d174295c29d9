;; Several memories: text in one, a table of counts in another, packed results in a third; then everything is copied
;; between them.
(module
  (memory $text 2) (memory $counts 1) (memory $packed 2)
  (func $fill (local $i i32) (local $x i32)
    (local.set $x (i32.const 123456789))
    (loop $again
      (local.set $x (i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 13))))
      (local.set $x (i32.xor (local.get $x) (i32.shr_u (local.get $x) (i32.const 17))))
      (local.set $x (i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 5))))
      (i32.store8 $text (local.get $i) (i32.and (local.get $x) (i32.shr_u (local.get $x) (i32.const 7))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 65536)))))
  (func $pass (param $sum i32) (result i32) (local $i i32) (local $c i32) (local $at i32) (local $out i32) (local $run i32)
    ;; The frequency of each byte.
    (memory.fill $counts (i32.const 0) (i32.const 0) (i32.const 1024))
    (loop $count
      (local.set $at (i32.shl (i32.load8_u $text (local.get $i)) (i32.const 2)))
      (i32.store $counts (local.get $at) (i32.add (i32.load $counts (local.get $at)) (i32.const 1)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $count (i32.lt_u (local.get $i) (i32.const 65536))))
    ;; Each byte weighted by its count, stored in another memory.
    (local.set $i (i32.const 0))
    (loop $pack
      (local.set $c (i32.load8_u $text (local.get $i)))
      (i32.store16 $packed (i32.shl (local.get $i) (i32.const 1))
        (i32.add (i32.load $counts (i32.shl (local.get $c) (i32.const 2))) (local.get $c)))
      (local.set $sum (i32.add (i32.rotl (local.get $sum) (i32.const 3))
        (i32.load16_u $packed (i32.shl (local.get $i) (i32.const 1)))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $pack (i32.lt_u (local.get $i) (i32.const 65536))))
    (memory.copy $text $packed (i32.const 4096) (i32.const 8192) (i32.const 32768))
    (local.get $sum))
  (func (export "run") (param $n i32) (result i32) (local $sum i32)
    (call $fill)
    (loop $again
      (local.set $sum (call $pass (local.get $sum)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))
