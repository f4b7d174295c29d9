;; Garbage-collected objects: arrays of records are filled, merge-sorted through a second array of references, and
;; checked.
(module
  (type $record (struct (field $key i32) (field $next (mut (ref null $record)))))
  (type $records (array (mut (ref null $record))))
  (type $words (array (mut i32)))
  (func $sort (param $from (ref $records)) (param $to (ref $records)) (param $n i32)
    (local $width i32) (local $low i32) (local $middle i32) (local $high i32) (local $i i32) (local $j i32) (local $k i32)
    (local $swap (ref $records)) (local $x (ref null $record)) (local $y (ref null $record))
    (local.set $width (i32.const 1))
    (block $sorted
      (loop $pass
        (br_if $sorted (i32.ge_u (local.get $width) (local.get $n)))
        (local.set $low (i32.const 0))
        (loop $run
          (local.set $middle (i32.add (local.get $low) (local.get $width)))
          (if (i32.gt_u (local.get $middle) (local.get $n)) (then (local.set $middle (local.get $n))))
          (local.set $high (i32.add (local.get $middle) (local.get $width)))
          (if (i32.gt_u (local.get $high) (local.get $n)) (then (local.set $high (local.get $n))))
          (local.set $i (local.get $low))
          (local.set $j (local.get $middle))
          (local.set $k (local.get $low))
          (block $merged
            (loop $merge
              (br_if $merged (i32.ge_u (local.get $k) (local.get $high)))
              (block $right
                (block $left
                  (br_if $right (i32.ge_u (local.get $i) (local.get $middle)))
                  (local.set $x (array.get $records (local.get $from) (local.get $i)))
                  (br_if $left (i32.ge_u (local.get $j) (local.get $high)))
                  (local.set $y (array.get $records (local.get $from) (local.get $j)))
                  (br_if $right
                    (i32.gt_s (struct.get $record $key (local.get $x)) (struct.get $record $key (local.get $y)))))
                (array.set $records (local.get $to) (local.get $k) (local.get $x))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (local.set $k (i32.add (local.get $k) (i32.const 1)))
                (br $merge))
              (array.set $records (local.get $to) (local.get $k) (array.get $records (local.get $from) (local.get $j)))
              (local.set $j (i32.add (local.get $j) (i32.const 1)))
              (local.set $k (i32.add (local.get $k) (i32.const 1)))
              (br $merge)))
          (local.set $low (local.get $high))
          (br_if $run (i32.lt_u (local.get $low) (local.get $n))))
        (local.set $swap (local.get $from))
        (local.set $from (local.get $to))
        (local.set $to (local.get $swap))
        (local.set $width (i32.shl (local.get $width) (i32.const 1)))
        (br $pass)))
    (array.copy $records $records (local.get $to) (i32.const 0) (local.get $from) (i32.const 0) (local.get $n)))
  (func (export "run") (param $n i32) (result i64)
    (local $a (ref $records)) (local $keys (ref $words)) (local $i i32) (local $state i32) (local $sum i64)
    (local.set $a (array.new_default $records (local.get $n)))
    (local.set $keys (array.new $words (i32.const 1) (local.get $n)))
    (local.set $state (i32.const 12345))
    (loop $fill
      (local.set $state (i32.add (i32.mul (local.get $state) (i32.const 1103515245)) (i32.const 12345)))
      (array.set $words (local.get $keys) (local.get $i) (i32.shr_u (local.get $state) (i32.const 8)))
      (array.set $records (local.get $a) (local.get $i)
        (struct.new $record (array.get $words (local.get $keys) (local.get $i)) (ref.null $record)))
      (br_if $fill (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (call $sort (local.get $a) (array.new_default $records (local.get $n)) (local.get $n))
    (local.set $i (i32.const 0))
    (loop $sums
      (local.set $sum
        (i64.add (i64.mul (local.get $sum) (i64.const 3))
          (i64.extend_i32_u (struct.get $record $key (array.get $records (local.get $a) (local.get $i))))))
      (br_if $sums (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
