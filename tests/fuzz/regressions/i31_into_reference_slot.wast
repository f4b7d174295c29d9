;; A block parameter of reference type whose arguments are computed as integers: its spill slot must hold a reference.
(module
  (func (export "join") (param i32) (result i32)
    (i32.add
      (i32.const 1)
      (i31.get_u
        (if (result (ref i31)) (local.get 0)
          (then (ref.i31 (i32.const 1)))
          (else (ref.i31 (local.get 0))))))))
(assert_return (invoke "join" (i32.const 5)) (i32.const 2))
(assert_return (invoke "join" (i32.const 0)) (i32.const 1))
