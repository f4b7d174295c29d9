;; A queue whose two ends are the same thread: plain items, atomic positions, and work on every item. Most accesses are
;; plain accesses to a shared memory.
(module
  (memory 2 2 shared)
  (global $in i32 (i32.const 0))
  (global $out i32 (i32.const 64))
  (func $push (param $value i64) (result i32) (local $p i32)
    (local.set $p (i32.atomic.load (global.get $in)))
    (if (i32.ge_u (i32.sub (local.get $p) (i32.atomic.load (global.get $out))) (i32.const 256)) (then (return (i32.const 0))))
    (i64.store offset=1024 (i32.shl (i32.and (local.get $p) (i32.const 255)) (i32.const 3)) (local.get $value))
    (i32.atomic.store (global.get $in) (i32.add (local.get $p) (i32.const 1)))
    (i32.const 1))
  (func $pop (result i64) (local $p i32) (local $value i64)
    (local.set $p (i32.atomic.load (global.get $out)))
    (if (i32.eq (local.get $p) (i32.atomic.load (global.get $in))) (then (return (i64.const 0))))
    (local.set $value (i64.load offset=1024 (i32.shl (i32.and (local.get $p) (i32.const 255)) (i32.const 3))))
    (i32.atomic.store (global.get $out) (i32.add (local.get $p) (i32.const 1)))
    (local.get $value))
  ;; adds $value to a histogram of 4096 words behind the queue
  (func $work (param $value i64) (local $k i32) (local $at i32)
    (loop $l
      (local.set $at (i32.shl (i32.and (i32.wrap_i64 (local.get $value)) (i32.const 4095)) (i32.const 2)))
      (i32.store offset=8192 (local.get $at) (i32.add (i32.load offset=8192 (local.get $at)) (i32.const 1)))
      (local.set $value (i64.shr_u (local.get $value) (i64.const 9)))
      (br_if $l (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 7)))))
  (func (export "run") (param $n i32) (result i32) (local $x i64) (local $i i32) (local $hash i32) (local $v i64)
    (memory.fill (i32.const 0) (i32.const 0) (i32.const 65536))
    (local.set $x (i64.const 88172645463325252))
    (local.set $n (i32.mul (local.get $n) (i32.const 1000)))
    (loop $again
      (loop $fill
        (local.set $x (i64.xor (local.get $x) (i64.shl (local.get $x) (i64.const 13))))
        (local.set $x (i64.xor (local.get $x) (i64.shr_u (local.get $x) (i64.const 7))))
        (local.set $x (i64.xor (local.get $x) (i64.shl (local.get $x) (i64.const 17))))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br_if $fill (i32.and (call $push (local.get $x)) (i32.gt_s (local.get $n) (i32.const 0)))))
      (loop $empty
        (local.set $v (call $pop))
        (if (i64.ne (local.get $v) (i64.const 0)) (then (call $work (local.get $v)) (br $empty))))
      (br_if $again (i32.gt_s (local.get $n) (i32.const 0))))
    (loop $sum
      (local.set $hash (i32.add (i32.mul (local.get $hash) (i32.const 31)) (i32.load offset=8192 (local.get $i))))
      (br_if $sum (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 4))) (i32.const 16384))))
    (local.get $hash)))
