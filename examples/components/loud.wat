;; The core module of the world `loud`, which imports the interface that it exports. The result of the imported function
;; is allocated in this module's memory, and its address and length are at 16. Only ASCII letters change.
(module
  (import "example:greetings/greetings@1.0.0" "greet" (func $greet (param i32 i32 i32)))
  (memory (export "memory") 1)
  (global $free (mut i32) (i32.const 1024))

  ;; As in greet.wat.
  (func (export "cabi_realloc") (param i32 i32 i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (global.get $free))
    (global.set $free (i32.add (local.get $at) (local.get $size)))
    (loop $grow
      (if (i32.gt_u (global.get $free) (i32.shl (memory.size) (i32.const 16))) (then
        (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable))
        (br $grow))))
    (local.get $at))

  (func (export "example:greetings/greetings@1.0.0#greet") (param $name i32) (param $length i32) (result i32)
    (local $at i32) (local $end i32) (local $byte i32)
    (call $greet (local.get $name) (local.get $length) (i32.const 16))
    (local.set $at (i32.load (i32.const 16)))
    (local.set $end (i32.add (local.get $at) (i32.load (i32.const 20))))
    (block $done (loop $next
      (br_if $done (i32.eq (local.get $at) (local.get $end)))
      (local.set $byte (i32.load8_u (local.get $at)))
      (if (i32.lt_u (i32.sub (local.get $byte) (i32.const 97)) (i32.const 26)) (then
        (i32.store8 (local.get $at) (i32.sub (local.get $byte) (i32.const 32)))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br $next)))
    (i32.const 16))
  (func (export "cabi_post_example:greetings/greetings@1.0.0#greet") (param i32)
    (global.set $free (i32.const 1024))))
