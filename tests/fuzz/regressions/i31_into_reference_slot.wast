;; A join of references whose arguments are made of integers: what goes into the slot of a reference is one.
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
