;; The core module of the world `greeter`. A string is an address and a length in bytes; those of the result are at 16.
;; `cabi_post_…` runs after a call and releases everything that the call has allocated.
(module
  (memory (export "memory") 1)
  (global $free (mut i32) (i32.const 1024))
  (data (i32.const 32) "Hello, ")

  ;; Allocates at the end of the used memory. Blocks are not resized, and strings need no alignment: the parameters for
  ;; an old block, its size, and the alignment have no names.
  (func $allocate (export "cabi_realloc") (param i32 i32 i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (global.get $free))
    (global.set $free (i32.add (local.get $at) (local.get $size)))
    (loop $grow
      (if (i32.gt_u (global.get $free) (i32.shl (memory.size) (i32.const 16))) (then
        (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable))
        (br $grow))))
    (local.get $at))

  (func (export "example:greetings/greetings@1.0.0#greet") (param $name i32) (param $length i32) (result i32)
    (local $to i32)
    (local.set $to
      (call $allocate (i32.const 0) (i32.const 0) (i32.const 1) (i32.add (local.get $length) (i32.const 7))))
    (memory.copy (local.get $to) (i32.const 32) (i32.const 7))
    (memory.copy (i32.add (local.get $to) (i32.const 7)) (local.get $name) (local.get $length))
    (i32.store (i32.const 16) (local.get $to))
    (i32.store (i32.const 20) (i32.add (local.get $length) (i32.const 7)))
    (i32.const 16))
  (func (export "cabi_post_example:greetings/greetings@1.0.0#greet") (param i32)
    (global.set $free (i32.const 1024))))
