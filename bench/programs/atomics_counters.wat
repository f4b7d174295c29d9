;; Uncontended atomic operations: counters of all widths, flags whose old value is used and flags whose old value is
;; dropped, and a count kept by compare-and-exchange.
(module
  (memory 1 1 shared)
  (func (export "run") (param $n i32) (result i32) (local $i i32) (local $at i32) (local $seen i32) (local $sum i32)
    (memory.fill (i32.const 0) (i32.const 0) (i32.const 4096))
    (loop $again
      (local.set $at (i32.shl (i32.and (local.get $i) (i32.const 63)) (i32.const 3)))
      (drop (i32.atomic.rmw.add (local.get $at) (local.get $i)))
      (drop (i32.atomic.rmw8.or_u offset=1024 (local.get $at) (i32.const 5)))
      (local.set $sum (i32.add (local.get $sum) (i32.atomic.rmw16.xor_u offset=2048 (local.get $at) (local.get $i))))
      (drop (i64.atomic.rmw.sub offset=512 (local.get $at) (i64.extend_i32_u (local.get $i))))
      (i32.atomic.store offset=3072 (local.get $at) (local.get $sum))
      (loop $try
        (local.set $seen (i32.atomic.load (i32.const 4000)))
        (br_if $try (i32.ne (local.get $seen)
          (i32.atomic.rmw.cmpxchg (i32.const 4000) (local.get $seen) (i32.add (i32.rotl (local.get $seen) (i32.const 1)) (local.get $i))))))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.mul (local.get $n) (i32.const 1000)))))
    (i32.add (i32.add (local.get $sum) (i32.load (i32.const 4000)))
      (i32.add (i32.load (i32.const 72)) (i32.wrap_i64 (i64.load (i32.const 584)))))))
