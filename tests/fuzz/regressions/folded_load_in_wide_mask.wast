;; A 64-bit mask with zero upper half was selected in its immediate form although its operand was a folded load.
(module
  (global $g (mut i64) (i64.const 0x123456789abcdef0))
  (memory 1)
  (data (i32.const 8) "\11\22\33\44\55\66\77\88")
  (func (export "global") (result i64)
    (i64.and (i64.const 0xe98f1234) (global.get $g)))
  (func (export "memory") (param i32) (result i64)
    (i64.and (i64.load (local.get 0)) (i64.const 0xffffff00))))
(assert_return (invoke "global") (i64.const 0x888c1230))
(assert_return (invoke "memory" (i32.const 8)) (i64.const 0x44332200))
