;; wasi:sockets/ip-name-lookup: addresses in text form, the name of this machine, and names that are invalid.
  (import "wasi:sockets/instance-network@0.2.12" "instance-network" (func $network (result i32)))
  (import "wasi:sockets/ip-name-lookup@0.2.12" "resolve-addresses" (func $resolve (param i32 i32 i32 i32)))
  (import "wasi:sockets/ip-name-lookup@0.2.12" "[method]resolve-address-stream.resolve-next-address"
    (func $next (param i32 i32)))
  (import "wasi:sockets/ip-name-lookup@0.2.12" "[method]resolve-address-stream.subscribe"
    (func $subscribe (param i32) (result i32)))
;; definitions
  (data (i32.const 1024) "127.0.0.1localhosta b")
  ;; Prints the first address of a name.
  (func $look (param $at i32) (param $bytes i32)
    (local $stream i32)
    (call $resolve (call $network) (local.get $at) (local.get $bytes) (i32.const 256))
    (call $result (i32.const 4) (i32.const 0))
    (if (i32.load8_u (i32.const 256)) (then (return)))
    (local.set $stream (i32.load (i32.const 260)))
    (call $await (call $subscribe (local.get $stream)))
    (call $next (local.get $stream) (i32.const 256))
    (call $result (i32.const 2) (i32.const 1))
    ;; The family only: names may have addresses of both.
    (call $number (i32.le_u (i32.load8_u (i32.const 260)) (i32.const 1))))
  (func (export "wasi:cli/run@0.2.12#run") (result i32)
    (call $look (i32.const 1024) (i32.const 9))
    (call $show (i32.const 262) (i32.const 4))
    (call $look (i32.const 1033) (i32.const 9))
    (call $look (i32.const 1042) (i32.const 3))
    (call $look (i32.const 1042) (i32.const 0))
    (i32.const 0)))
