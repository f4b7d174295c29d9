;; Structured logging and counters: one line of JSON per event on stderr, and in app.log of the directory /logs if file
;; access is granted. Counters are summed and written as one line when the program ends.
;;
;; Memory: constants from 0, results of imports at 1024, the line at 2048 (4096 bytes), 64 counters of 80 bytes at 8192
;; (name, its length at 64, value at 72), and from 16384 on what imports and arguments allocate during a call.
(module
  (import "waft:plugin/self@1.0.0" "config" (func $config (param i32)))
  (import "waft:plugin/self@1.0.0" "granted" (func $granted (param i32 i32) (result i32)))
  (import "wasi:cli/stderr@0.2.0" "get-stderr" (func $get_stderr (result i32)))
  (import "wasi:clocks/wall-clock@0.2.0" "now" (func $now (param i32)))
  (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush"
    (func $write (param i32 i32 i32 i32)))
  (import "wasi:filesystem/preopens@0.2.0" "get-directories" (func $get_directories (param i32)))
  (import "wasi:filesystem/types@0.2.0" "[method]descriptor.open-at" (func $open_at (param i32 i32 i32 i32 i32 i32 i32)))
  (import "wasi:filesystem/types@0.2.0" "[method]descriptor.append-via-stream" (func $append (param i32 i32)))

  (memory (export "memory") 1)
  (data (i32.const 0) "errorwarn infodebugtrace")
  (data (i32.const 32) "\05\04\04\05\05") ;; the lengths of the level's names
  (data (i32.const 64) "clock.wall")
  (data (i32.const 80) "fs.write")
  (data (i32.const 96) "app.log")
  (data (i32.const 112) "\"ms\":")
  (data (i32.const 128) "\"level\":")
  (data (i32.const 144) ",\"message\":")
  (data (i32.const 160) ",\"counters\":{")
  (data (i32.const 176) "\\u00")

  (global $free (mut i32) (i32.const 16384))
  (global $length (mut i32) (i32.const 0))
  (global $most_verbose (mut i32) (i32.const 2))
  (global $dated (mut i32) (i32.const 0))
  (global $stderr (mut i32) (i32.const 0))
  (global $file (mut i32) (i32.const -1))
  (global $counters (mut i32) (i32.const 0))

  ;; Allocates until the end of the call; $done frees everything at once.
  (func (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32) (local $missing i32)
    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    (global.set $free (i32.add (local.get $at) (local.get $size)))
    (local.set $missing
      (i32.sub
        (i32.shr_u (i32.add (global.get $free) (i32.const 65535)) (i32.const 16))
        (memory.size)))
    (if (i32.gt_s (local.get $missing) (i32.const 0))
      (then (if (i32.eq (memory.grow (local.get $missing)) (i32.const -1)) (then (unreachable)))))
    (memory.copy (local.get $at) (local.get $old) (local.get $old_size))
    (local.get $at))

  (func $done (global.set $free (i32.const 16384)))

  ;; Writes the line so far; output that fails is dropped.
  (func $flush
    (if (i32.eqz (global.get $length)) (then (return)))
    (call $write (global.get $stderr) (i32.const 2048) (global.get $length) (i32.const 1024))
    (if (i32.ne (global.get $file) (i32.const -1))
      (then (call $write (global.get $file) (i32.const 2048) (global.get $length) (i32.const 1024))))
    (global.set $length (i32.const 0)))

  (func $byte (param $c i32)
    (i32.store8 (i32.add (i32.const 2048) (global.get $length)) (local.get $c))
    (global.set $length (i32.add (global.get $length) (i32.const 1)))
    (if (i32.eq (global.get $length) (i32.const 4096)) (then (call $flush))))

  (func $put (param $at i32) (param $count i32)
    (loop $next
      (if (local.get $count) (then
        (call $byte (i32.load8_u (local.get $at)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $next)))))

  (func $digits (param $n i64)
    (if (i64.ge_u (local.get $n) (i64.const 10)) (then (call $digits (i64.div_u (local.get $n) (i64.const 10)))))
    (call $byte (i32.add (i32.const 48) (i32.wrap_i64 (i64.rem_u (local.get $n) (i64.const 10))))))

  (func $number (param $n i64)
    (if (i64.lt_s (local.get $n) (i64.const 0)) (then
      (call $byte (i32.const 45))
      (local.set $n (i64.sub (i64.const 0) (local.get $n)))))
    (call $digits (local.get $n)))

  (func $hex (param $digit i32)
    (call $byte
      (i32.add
        (local.get $digit)
        (select (i32.const 48) (i32.const 87) (i32.lt_u (local.get $digit) (i32.const 10))))))

  (func $escaped (param $c i32)
    (if (i32.or (i32.lt_u (local.get $c) (i32.const 32)) (i32.eq (local.get $c) (i32.const 127))) (then
      (call $put (i32.const 176) (i32.const 4))
      (call $hex (i32.shr_u (local.get $c) (i32.const 4)))
      (call $hex (i32.and (local.get $c) (i32.const 15)))
      (return)))
    (if (i32.or (i32.eq (local.get $c) (i32.const 34)) (i32.eq (local.get $c) (i32.const 92)))
      (then (call $byte (i32.const 92))))
    (call $byte (local.get $c)))

  ;; A JSON string.
  (func $string (param $at i32) (param $count i32)
    (call $byte (i32.const 34))
    (loop $next
      (if (local.get $count) (then
        (call $escaped (i32.load8_u (local.get $at)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $next))))
    (call $byte (i32.const 34)))

  ;; `{"ms":…,"level":"…"`
  (func $begin (param $level i32)
    (call $byte (i32.const 123))
    (if (global.get $dated) (then
      (call $now (i32.const 1024))
      (call $put (i32.const 112) (i32.const 5))
      (call $number
        (i64.add
          (i64.mul (i64.load (i32.const 1024)) (i64.const 1000))
          (i64.extend_i32_u (i32.div_u (i32.load (i32.const 1032)) (i32.const 1000000)))))
      (call $byte (i32.const 44))))
    (call $put (i32.const 128) (i32.const 8))
    (call $string
      (i32.mul (local.get $level) (i32.const 5))
      (i32.load8_u (i32.add (i32.const 32) (local.get $level)))))

  (func $finish
    (call $byte (i32.const 125))
    (call $byte (i32.const 10))
    (call $flush))

  ;; The address of the counter; -1 if there is no room for another.
  (func $counter (param $name i32) (param $size i32) (result i32)
    (local $at i32) (local $i i32)
    (local.set $at (i32.const 8192))
    (block $new
      (loop $next
        (br_if $new (i32.eq (local.get $at) (i32.add (i32.const 8192) (i32.mul (global.get $counters) (i32.const 80)))))
        (local.set $i (i32.const 0))
        (block $other
          (br_if $other (i32.ne (i32.load offset=64 (local.get $at)) (local.get $size)))
          (loop $same
            (if (i32.eq (local.get $i) (local.get $size)) (then (return (local.get $at))))
            (br_if $other
              (i32.ne
                (i32.load8_u (i32.add (local.get $at) (local.get $i)))
                (i32.load8_u (i32.add (local.get $name) (local.get $i)))))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br $same)))
        (local.set $at (i32.add (local.get $at) (i32.const 80)))
        (br $next)))
    (if (i32.eq (global.get $counters) (i32.const 64)) (then (return (i32.const -1))))
    (global.set $counters (i32.add (global.get $counters) (i32.const 1)))
    (memory.copy (local.get $at) (local.get $name) (local.get $size))
    (i32.store offset=64 (local.get $at) (local.get $size))
    (local.get $at))

  (func $open_log
    (local $directories i32)
    (call $get_directories (i32.const 1024))
    (if (i32.eqz (i32.load (i32.const 1028))) (then (return)))
    (local.set $directories (i32.load (i32.const 1024)))
    ;; Creates the file if need be, for writing.
    (call $open_at
      (i32.load (local.get $directories))
      (i32.const 0) (i32.const 96) (i32.const 7) (i32.const 1) (i32.const 2) (i32.const 1024))
    (if (i32.load8_u (i32.const 1024)) (then (return)))
    (call $append (i32.load (i32.const 1028)) (i32.const 1024))
    (if (i32.eqz (i32.load8_u (i32.const 1024))) (then (global.set $file (i32.load (i32.const 1028))))))

  (func (export "waft:plugin/lifecycle@1.0.0#init")
    ;; The configuration is `{"mostVerbose":N}`.
    (call $config (i32.const 1024))
    (global.set $most_verbose (i32.sub (i32.load8_u offset=15 (i32.load (i32.const 1024))) (i32.const 48)))
    (global.set $dated (call $granted (i32.const 64) (i32.const 10)))
    (global.set $stderr (call $get_stderr))
    (if (call $granted (i32.const 80) (i32.const 8)) (then (call $open_log)))
    (call $done))

  (func (export "waft-example:log/log@0.1.0#event") (param $level i32) (param $at i32) (param $count i32)
    (if (i32.le_u (local.get $level) (global.get $most_verbose)) (then
      (call $begin (local.get $level))
      (call $put (i32.const 144) (i32.const 11))
      (call $string (local.get $at) (local.get $count))
      (call $finish)))
    (call $done))

  (func (export "waft-example:log/log@0.1.0#count") (param $name i32) (param $size i32) (param $delta i64) (result i32)
    (local $at i32)
    (call $done)
    (if (i32.gt_u (i32.sub (local.get $size) (i32.const 1)) (i32.const 63)) (then (return (i32.const 1))))
    (local.set $at (call $counter (local.get $name) (local.get $size)))
    (if (i32.eq (local.get $at) (i32.const -1)) (then (return (i32.const 1))))
    (i64.store offset=72 (local.get $at) (i64.add (i64.load offset=72 (local.get $at)) (local.get $delta)))
    (i32.const 0))

  (func (export "waft:plugin/lifecycle@1.0.0#stop")
    (local $i i32) (local $at i32)
    (if (i32.eqz (global.get $counters)) (then (return)))
    (call $begin (i32.const 2))
    (call $put (i32.const 160) (i32.const 13))
    (loop $next
      (if (local.get $i) (then (call $byte (i32.const 44))))
      (local.set $at (i32.add (i32.const 8192) (i32.mul (local.get $i) (i32.const 80))))
      (call $string (local.get $at) (i32.load offset=64 (local.get $at)))
      (call $byte (i32.const 58))
      (call $number (i64.load offset=72 (local.get $at)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (global.get $counters))))
    (call $byte (i32.const 125))
    (call $finish)))
