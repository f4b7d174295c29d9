;; Two loads with different traps: the first one must trap first, although the compiler prefers to fold the field read
;; into its use.
(module
  (type $s (struct (field (mut i64))))
  (memory 1)
  (func $field (param (ref null $s) i32) (result i32)
    (i64.ge_s (struct.get $s 0 (local.get 0)) (i64.load16_s (local.get 1))))
  (func $load (param (ref null $s) i32) (result i32)
    (i64.ge_s (i64.load (local.get 1)) (struct.get $s 0 (local.get 0))))
  (func (export "field first") (param i32) (result i32) (call $field (ref.null $s) (local.get 0)))
  (func (export "load first") (param i32) (result i32) (call $load (ref.null $s) (local.get 0)))
  (func (export "neither") (param i32) (result i32) (call $field (struct.new $s (i64.const 5)) (local.get 0))))
(assert_trap (invoke "field first" (i32.const 65536)) "null structure reference")
(assert_trap (invoke "load first" (i32.const 65536)) "out of bounds memory access")
(assert_return (invoke "neither" (i32.const 0)) (i32.const 1))
