/**
 * The guest program of gc_soak.ts, also used by tests: `start(slots)`, then `step(count)`, which replaces `count` of
 * the lists and returns the number of bytes allocated. It traps if an object that it drops has been damaged.
 */
export const GC_SOAK_PROGRAM = `(module
  (type $bytes (array (mut i8)))
  (rec
    (type $nodes (array (mut (ref null $node))))
    (type $node (struct
      (field $stamp i64) (field $next (mut (ref null $node))) (field $data (ref $bytes)) (field $home (ref $nodes)))))
  (global $all (mut (ref null $nodes)) (ref.null $nodes))
  (global $seed (mut i64) (i64.const 88172645463325252))

  (func $random (result i32) (local $x i64)
    (local.set $x (i64.xor (global.get $seed) (i64.shl (global.get $seed) (i64.const 13))))
    (local.set $x (i64.xor (local.get $x) (i64.shr_u (local.get $x) (i64.const 7))))
    (local.set $x (i64.xor (local.get $x) (i64.shl (local.get $x) (i64.const 17))))
    (global.set $seed (local.get $x))
    (i32.wrap_i64 (local.get $x)))

  ;; Traps if the node has been damaged.
  (func $check (param $node (ref $node)) (local $data (ref null $bytes)) (local $stamp i32)
    (local.set $data (struct.get $node $data (local.get $node)))
    (local.set $stamp (i32.wrap_i64 (struct.get $node $stamp (local.get $node))))
    (if (i32.or
          (i32.ne (array.get_u $bytes (local.get $data) (i32.const 0)) (i32.and (local.get $stamp) (i32.const 255)))
          (i32.ne
            (array.get_u $bytes (local.get $data) (i32.sub (array.len (local.get $data)) (i32.const 1)))
            (i32.and (local.get $stamp) (i32.const 255))))
      (then (unreachable)))
    (if (i32.eqz (ref.eq (struct.get $node $home (local.get $node)) (global.get $all))) (then (unreachable))))

  (func (export "start") (param $slots i32) (global.set $all (array.new_default $nodes (local.get $slots))))

  ;; Replaces nodes $count times; returns the number of bytes allocated.
  (func (export "step") (param $count i32) (result i64)
    (local $all (ref $nodes)) (local $slot i32) (local $old (ref null $node)) (local $size i32)
    (local $data (ref null $bytes))
    (local $stamp i64) (local $total i64)
    (local.set $all (ref.as_non_null (global.get $all)))
    (loop $again
      (local.set $slot (i32.rem_u (call $random) (array.len (local.get $all))))
      (local.set $old (array.get $nodes (local.get $all) (local.get $slot)))
      (if (ref.is_null (local.get $old)) (then) (else
        (call $check (ref.as_non_null (local.get $old)))
        (if (i32.and (call $random) (i32.const 3))
          (then (local.set $old (ref.null $node)))
          (else (struct.set $node $next (local.get $old) (ref.null $node))))))
      (local.set $size (i32.and (call $random) (i32.const 511)))
      (if (i32.eqz (i32.and (call $random) (i32.const 16383)))
        (then (local.set $size (i32.and (call $random) (i32.const 131071)))))
      (local.set $data (array.new_default $bytes (i32.add (local.get $size) (i32.const 1))))
      (local.set $stamp (i64.extend_i32_u (call $random)))
      (array.set $bytes (local.get $data) (i32.const 0) (i32.wrap_i64 (local.get $stamp)))
      (array.set $bytes (local.get $data) (local.get $size) (i32.wrap_i64 (local.get $stamp)))
      (array.set $nodes (local.get $all) (local.get $slot)
        (struct.new $node (local.get $stamp) (local.get $old) (ref.as_non_null (local.get $data)) (local.get $all)))
      (local.set $total (i64.add (local.get $total) (i64.extend_i32_u (i32.add (local.get $size) (i32.const 49)))))
      (br_if $again (local.tee $count (i32.sub (local.get $count) (i32.const 1)))))
    (local.get $total)))`;
