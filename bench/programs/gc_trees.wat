;; Garbage-collected objects: complete binary trees are built, counted and dropped beside one long-lived tree.
(module
  (type $node (struct (field $left (ref null $node)) (field $right (ref null $node))))
  (func $make (param $depth i32) (result (ref $node))
    (if (result (ref $node)) (i32.eqz (local.get $depth))
      (then (struct.new_default $node))
      (else
        (struct.new $node
          (call $make (i32.sub (local.get $depth) (i32.const 1)))
          (call $make (i32.sub (local.get $depth) (i32.const 1)))))))
  (func $count (param $node (ref null $node)) (result i32)
    (if (result i32) (ref.is_null (local.get $node))
      (then (i32.const 0))
      (else
        (i32.add (i32.const 1)
          (i32.add
            (call $count (struct.get $node $left (local.get $node)))
            (call $count (struct.get $node $right (local.get $node))))))))
  (func (export "run") (param $depth i32) (result i64)
    (local $long (ref $node)) (local $d i32) (local $n i32) (local $sum i64)
    (local.set $long (call $make (local.get $depth)))
    (local.set $d (i32.const 4))
    (loop $deeper
      (local.set $n (i32.shl (i32.const 1) (i32.sub (i32.add (local.get $depth) (i32.const 4)) (local.get $d))))
      (loop $again
        (local.set $sum (i64.add (local.get $sum) (i64.extend_i32_u (call $count (call $make (local.get $d))))))
        (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (local.set $d (i32.add (local.get $d) (i32.const 4)))
      (br_if $deeper (i32.le_u (local.get $d) (local.get $depth))))
    (i64.add (local.get $sum) (i64.extend_i32_u (call $count (local.get $long))))))
