;; The Mandelbrot set on several threads (bench/parallel.ts): each thread repeatedly takes the next row and adds its
;; points to a total.
(module
  (import "env" "memory" (memory 1 1 shared))
  (func $row (param $y i32) (param $size i32) (result i32)
    (local $x i32) (local $count i32) (local $steps i32) (local $zr f64) (local $zi f64) (local $cr f64) (local $ci f64) (local $rr f64) (local $ii f64)
    (local.set $ci (f64.sub (f64.div (f64.mul (f64.const 2) (f64.convert_i32_u (local.get $y))) (f64.convert_i32_u (local.get $size))) (f64.const 1)))
    (loop $point
      (local.set $cr (f64.sub (f64.div (f64.mul (f64.const 2) (f64.convert_i32_u (local.get $x))) (f64.convert_i32_u (local.get $size))) (f64.const 1.5)))
      (local.set $zr (f64.const 0))
      (local.set $zi (f64.const 0))
      (local.set $steps (i32.const 0))
      (block $out
        (loop $step
          (local.set $rr (f64.mul (local.get $zr) (local.get $zr)))
          (local.set $ii (f64.mul (local.get $zi) (local.get $zi)))
          (br_if $out (f64.gt (f64.add (local.get $rr) (local.get $ii)) (f64.const 4)))
          (local.set $zi (f64.add (f64.mul (f64.mul (f64.const 2) (local.get $zr)) (local.get $zi)) (local.get $ci)))
          (local.set $zr (f64.add (f64.sub (local.get $rr) (local.get $ii)) (local.get $cr)))
          (br_if $step (i32.lt_u (local.tee $steps (i32.add (local.get $steps) (i32.const 1))) (i32.const 50))))
        (local.set $count (i32.add (local.get $count) (i32.const 1))))
      (br_if $point (i32.lt_u (local.tee $x (i32.add (local.get $x) (i32.const 1))) (local.get $size))))
    (local.get $count))
  (func (export "run") (param $size i32) (local $y i32)
    (loop $next
      (local.set $y (i32.atomic.rmw.add (i32.const 0) (i32.const 1)))
      (if (i32.lt_u (local.get $y) (local.get $size))
        (then
          (drop (i32.atomic.rmw.add (i32.const 64) (call $row (local.get $y) (local.get $size))))
          (br $next))))))
