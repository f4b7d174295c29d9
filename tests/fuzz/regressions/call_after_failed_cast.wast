;; A function known while the caller is compiled, cast to a type that it does not have, and called: the call is never reached, but it
;; was made of the function's own signature, and arguments of another.
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
