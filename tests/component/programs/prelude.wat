;; The part that all programs share: imports here, those of the program at the mark, and definitions after them. A
;; program exports `wasi:cli/run@0.2.12#run`. Addresses below 256 belong to this part, and allocations begin at 65536.
(module
  (import "wasi:cli/stdout@0.2.12" "get-stdout" (func $get-stdout (result i32)))
  (import "wasi:io/streams@0.2.12" "[method]output-stream.blocking-write-and-flush"
    (func $write (param i32 i32 i32 i32)))
  (import "wasi:io/poll@0.2.12" "[method]pollable.block" (func $block (param i32)))
  (import "wasi:io/poll@0.2.12" "[resource-drop]pollable" (func $drop-pollable (param i32)))
  ;; imports
  (memory (export "memory") 4)
  (data (i32.const 16) "0123456789abcdef")
  (global $free (mut i32) (i32.const 65536))
  (global $out (mut i32) (i32.const 0))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    (global.set $free (i32.add (local.get $at) (local.get 3)))
    (local.get $at))
  (func $stdout (result i32)
    (if (i32.eqz (global.get $out)) (then (global.set $out (call $get-stdout))))
    (global.get $out))
  (func $print (param $at i32) (param $bytes i32)
    (call $write (call $stdout) (local.get $at) (local.get $bytes) (i32.const 0)))
  (func $end-line
    (i32.store8 (i32.const 40) (i32.const 10))
    (call $print (i32.const 40) (i32.const 1)))
  ;; Prints bytes in hexadecimal and a space.
  (func $hex (param $at i32) (param $bytes i32)
    (local $k i32) (local $byte i32)
    (block $done (loop $next
      (br_if $done (i32.eq (local.get $k) (local.get $bytes)))
      (local.set $byte (i32.load8_u (i32.add (local.get $at) (local.get $k))))
      (i32.store8 (i32.const 41) (i32.load8_u (i32.add (i32.const 16) (i32.shr_u (local.get $byte) (i32.const 4)))))
      (i32.store8 (i32.const 42) (i32.load8_u (i32.add (i32.const 16) (i32.and (local.get $byte) (i32.const 15)))))
      (call $print (i32.const 41) (i32.const 2))
      (local.set $k (i32.add (local.get $k) (i32.const 1)))
      (br $next)))
    (i32.store8 (i32.const 41) (i32.const 32))
    (call $print (i32.const 41) (i32.const 1)))
  ;; Prints bytes in hexadecimal as a line.
  (func $show (param $at i32) (param $bytes i32)
    (call $hex (local.get $at) (local.get $bytes))
    (call $end-line))
  (func $number (param $value i32)
    (i32.store (i32.const 48) (local.get $value))
    (call $show (i32.const 48) (i32.const 4)))
  ;; Prints the bytes of a string or list at `pair` as a line.
  (func $text (param $pair i32)
    (call $print (i32.load (local.get $pair)) (i32.load offset=4 (local.get $pair)))
    (call $end-line))
  ;; Prints the `result` at 256: its case, then `bytes` of the value, or one byte of the error, at `offset`.
  (func $result (param $offset i32) (param $bytes i32)
    (call $hex (i32.const 256) (i32.const 1))
    (call $show (i32.add (i32.const 256) (local.get $offset))
      (select (i32.const 1) (local.get $bytes) (i32.load8_u (i32.const 256)))))
  ;; Prints the `result` without a value at 256.
  (func $done (call $result (i32.const 1) (i32.const 0)))
  (func $await (param $pollable i32)
    (call $block (local.get $pollable))
    (call $drop-pollable (local.get $pollable)))
