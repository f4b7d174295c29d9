;; A command of WASI 0.3 that forwards standard input to standard output. It passes the stream of the input on to the
;; output: no byte goes through the component's memory, and the host reads as fast as it can write. Each direction ends
;; with a future of a `result`; `run` waits for both and fails if one is an error.
(component
  (type $bytes (stream u8))
  (import "wasi:cli/types@0.3.0" (instance $types
    (type $code (enum "io" "illegal-byte-sequence" "pipe"))
    (export "error-code" (type (eq $code)))))
  (alias export $types "error-code" (type $error-code))
  (type $end (future (result (error $error-code))))
  (import "wasi:cli/stdin@0.3.0" (instance $stdin
    (alias outer 1 $bytes (type $bytes))
    (alias outer 1 $end (type $end))
    (export "read-via-stream" (func (result (tuple $bytes $end))))))
  (import "wasi:cli/stdout@0.3.0" (instance $stdout
    (alias outer 1 $bytes (type $bytes))
    (alias outer 1 $end (type $end))
    (export "write-via-stream" (func (param "data" $bytes) (result $end)))))

  (core module $memory (memory (export "memory") 1))
  (core instance $memory (instantiate $memory))
  (core func $read-input (canon lower (func $stdin "read-via-stream") (memory (core memory $memory "memory"))))
  (core func $write-output (canon lower (func $stdout "write-via-stream")))
  (core func $read-end (canon future.read $end (memory (core memory $memory "memory"))))
  (core func $drop-end (canon future.drop-readable $end))
  (core func $return (canon task.return (result (result))))

  (core module $main
    (import "host" "memory" (memory 1))
    (import "host" "read-input" (func $read-input (param i32)))
    (import "host" "write-output" (func $write-output (param i32) (result i32)))
    (import "host" "read-end" (func $read-end (param i32 i32) (result i32)))
    (import "host" "drop-end" (func $drop-end (param i32)))
    (import "host" "return" (func $return (param i32)))

    ;; Waits for the future of one direction, a handle: returns 0 for ok, 1 for an error. `read-end` returns 0 when it
    ;; has written the result to memory.
    (func $failed (param $end i32) (result i32)
      (if (call $read-end (local.get $end) (i32.const 32)) (then unreachable))
      (call $drop-end (local.get $end))
      (i32.load8_u (i32.const 32)))

    (func (export "run")
      (local $output i32)
      ;; The tuple: the stream at 16, the future at 20.
      (call $read-input (i32.const 16))
      (local.set $output (call $write-output (i32.load (i32.const 16))))
      (call $return (i32.or (call $failed (local.get $output)) (call $failed (i32.load (i32.const 20)))))))
  (core instance $main (instantiate $main (with "host" (instance
    (export "memory" (memory $memory "memory"))
    (export "read-input" (func $read-input)) (export "write-output" (func $write-output))
    (export "read-end" (func $read-end)) (export "drop-end" (func $drop-end)) (export "return" (func $return))))))
  (func $run async (result (result)) (canon lift (core func $main "run") async))
  (instance $run (export "run" (func $run)))
  (export "wasi:cli/run@0.3.0" (instance $run)))
