;; A function known at compile time, cast to another function type and called. The call is unreachable, but it was
;; compiled with the function's own signature and arguments of the other one.
(module
  (type $taken (func (param i32) (result i32)))
  (type $own (func (param f64 i32) (result f32 i32)))
  (elem declare func $f)
  (func $f (type $own) (f32.const 1) (i32.const 2))
  (func $reference (result funcref) (ref.func $f))
  (func (export "inlined") (result i32)
    (call_ref $taken (i32.const 5) (ref.cast (ref null $taken) (call $reference))))
  (func (export "tail") (result i32)
    (return_call_ref $taken (i32.const 5) (ref.cast (ref null $taken) (call $reference)))))
(assert_trap (invoke "inlined") "cast failure")
(assert_trap (invoke "tail") "cast failure")
