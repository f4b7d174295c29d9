;; A trap whose stub call ends a function was attributed to the next function, and inlined frames were counted from one.
(module
  (func $fail (param i32) (if (local.get 0) (then (unreachable))))
  (func (export "inlined") (param i32) (call $fail (local.get 0)) (call $fail (i32.eqz (local.get 0))))
  (func (export "last") (unreachable))
  (func (export "other") (result i32) (i32.const 1)))
(assert_trap (invoke "inlined" (i32.const 0)) "unreachable")
(assert_trap (invoke "inlined" (i32.const 1)) "unreachable")
(assert_trap (invoke "last") "unreachable")
(assert_return (invoke "other") (i32.const 1))
