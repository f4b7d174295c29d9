;; Globals and locals: a linear congruential generator and counters kept in mutable globals of every number type.
(module
  (global $state (mut i64) (i64.const 88172645463325252))
  (global $evens (mut i32) (i32.const 0))
  (global $mean (mut f64) (f64.const 0))
  (global $low (mut f32) (f32.const 1))
  (func $next (result i32)
    (global.set $state (i64.add (i64.mul (global.get $state) (i64.const 6364136223846793005)) (i64.const 1442695040888963407)))
    (i32.wrap_i64 (i64.shr_u (global.get $state) (i64.const 33))))
  (func (export "run") (param $n i32) (result i64)
    (local $word i32)
    (global.set $state (i64.const 88172645463325252))
    (global.set $evens (i32.const 0))
    (global.set $mean (f64.const 0))
    (global.set $low (f32.const 1))
    (block $done
      (br_if $done (i32.le_s (local.get $n) (i32.const 0)))
      (loop $again
        (local.set $word (call $next))
        (if (i32.eqz (i32.and (local.get $word) (i32.const 1)))
          (then (global.set $evens (i32.add (global.get $evens) (i32.const 1)))))
        (global.set $mean
          (f64.add (global.get $mean)
            (f64.mul (f64.sub (f64.convert_i32_u (local.get $word)) (global.get $mean)) (f64.const 0.0009765625))))
        (global.set $low
          (f32.min (global.get $low) (f32.div (f32.convert_i32_u (local.get $word)) (f32.const 4294967296))))
        (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
    (i64.xor
      (i64.add (global.get $state) (i64.extend_i32_u (global.get $evens)))
      (i64.add (i64.reinterpret_f64 (global.get $mean)) (i64.extend_i32_u (i32.reinterpret_f32 (global.get $low)))))))
