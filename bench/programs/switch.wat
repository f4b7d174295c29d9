;; Branches: a br_table with many targets in a hot loop, like a lexer's state machine; blocks with several results.
(module
  (func (export "run") (param $n i32) (result i32)
    (local $state i32) (local $sum i32) (local $word i32)
    (local.set $word (i32.const 305419896))
    (block $done
      (loop $again
        (br_if $done (i32.eqz (local.get $n)))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (local.set $word (i32.xor (local.get $word) (i32.shl (local.get $word) (i32.const 13))))
        (local.set $word (i32.xor (local.get $word) (i32.shr_u (local.get $word) (i32.const 17))))
        (local.set $word (i32.xor (local.get $word) (i32.shl (local.get $word) (i32.const 5))))
        (local.set $state
          (block $next (result i32)
            (block $s7 (block $s6 (block $s5 (block $s4 (block $s3 (block $s2 (block $s1 (block $s0
              (br_table $s0 $s1 $s2 $s3 $s4 $s5 $s6 $s7
                (i32.and (i32.add (local.get $state) (local.get $word)) (i32.const 7))))
              ;; s0
              (local.set $sum (i32.add (local.get $sum) (local.get $word)))
              (br $next (i32.const 3)))
              ;; s1
              (local.set $sum (i32.xor (local.get $sum) (i32.const 0x55555555)))
              (br $next (i32.and (local.get $word) (i32.const 3))))
              ;; s2
              (local.set $sum (i32.rotl (local.get $sum) (i32.const 7)))
              (br $next (i32.const 5)))
              ;; s3
              (local.set $sum (i32.sub (local.get $sum) (local.get $n)))
              (br $next (i32.const 1)))
              ;; s4
              (local.set $sum (i32.mul (local.get $sum) (i32.const 31)))
              (br $next (i32.const 0)))
              ;; s5
              (local.set $sum (i32.add (local.get $sum) (i32.shr_u (local.get $word) (i32.const 20))))
              (br $next (i32.add (local.get $state) (i32.const 1))))
              ;; s6
              (local.set $sum (i32.or (local.get $sum) (i32.const 1)))
              (br $next (i32.const 2)))
            ;; s7
            (i32.const 6)))
        (br $again)))
    (local.get $sum)))
