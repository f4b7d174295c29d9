/**
 * The memory that a plugin shares with its host (Extism's kernel), as a module, so that plugins read their input
 * without leaving compiled code. In: lengths and addresses from plugins, which may be wrong. Out: blocks of bytes.
 * Invariant: an access outside of the kernel's memory traps; addresses of blocks are multiples of 8 and never 0.
 *
 * A block is preceded by its length and, where it is free, by the address of the next free one: 16 bytes. Blocks are
 * taken from the first of the free ones that is long enough, among the first 32, or from the end.
 */

const TO_I32 = (address: string) => `(call $place (local.get ${address}))`;

/** The text of the kernel. */
export const KERNEL = `(module $extism_kernel
  (memory (export "memory") 1)
  (global $end (mut i32) (i32.const 16))
  (global $free (mut i32) (i32.const 0))
  (global $input (mut i64) (i64.const 0))
  (global $input_length (mut i64) (i64.const 0))
  (global $output (mut i64) (i64.const 0))
  (global $output_length (mut i64) (i64.const 0))
  (global $error (mut i64) (i64.const 0))

  (func $place (param $at i64) (result i32)
    (if (i64.ge_u (i64.sub (local.get $at) (i64.const 16)) (i64.const 0xfffffff0)) (then unreachable))
    (i32.wrap_i64 (local.get $at)))

  (func $take_free (param $length i64) (result i32)
    (local $block i32) (local $before i32) (local $tries i32)
    (local.set $block (global.get $free))
    (loop $next
      (if (i32.or (i32.eqz (local.get $block)) (i32.gt_u (local.get $tries) (i32.const 32)))
        (then (return (i32.const 0))))
      (if (i64.ge_u (i64.load (i32.sub (local.get $block) (i32.const 16))) (local.get $length))
        (then
          (if (i32.eqz (local.get $before))
            (then (global.set $free (i32.load (i32.sub (local.get $block) (i32.const 8)))))
            (else (i32.store (i32.sub (local.get $before) (i32.const 8))
              (i32.load (i32.sub (local.get $block) (i32.const 8))))))
          (i64.store (i32.sub (local.get $block) (i32.const 16)) (local.get $length))
          (i64.store (i32.sub (local.get $block) (i32.const 8)) (i64.const -1))
          (return (local.get $block))))
      (local.set $before (local.get $block))
      (local.set $block (i32.load (i32.sub (local.get $block) (i32.const 8))))
      (local.set $tries (i32.add (local.get $tries) (i32.const 1)))
      (br $next))
    unreachable)

  (func (export "alloc") (param $length i64) (result i64)
    (local $block i32) (local $end i64) (local $missing i64)
    (if (i64.eqz (local.get $length)) (then (return (i64.const 0))))
    (local.set $block (call $take_free (local.get $length)))
    (if (local.get $block) (then (return (i64.extend_i32_u (local.get $block)))))
    (if (i64.gt_u (local.get $length) (i64.const 0xffff0000)) (then (return (i64.const 0))))
    (local.set $end (i64.add (i64.add (i64.extend_i32_u (global.get $end)) (i64.const 16))
      (i64.and (i64.add (local.get $length) (i64.const 7)) (i64.const -8))))
    (if (i64.gt_u (local.get $end) (i64.const 0xfffffff0)) (then (return (i64.const 0))))
    (local.set $missing (i64.sub (local.get $end) (i64.shl (i64.extend_i32_u (memory.size)) (i64.const 16))))
    (if (i64.gt_s (local.get $missing) (i64.const 0))
      (then (if (i32.eq (i32.const -1) (memory.grow
          (i32.wrap_i64 (i64.shr_u (i64.add (local.get $missing) (i64.const 0xffff)) (i64.const 16)))))
        (then (return (i64.const 0))))))
    (local.set $block (i32.add (global.get $end) (i32.const 16)))
    (i64.store (i32.sub (local.get $block) (i32.const 16)) (local.get $length))
    (i64.store (i32.sub (local.get $block) (i32.const 8)) (i64.const -1))
    (global.set $end (i32.wrap_i64 (local.get $end)))
    (i64.extend_i32_u (local.get $block)))

  (func (export "free") (param $at i64)
    (local $block i32)
    (if (i64.eqz (call $length (local.get $at))) (then (return)))
    (local.set $block ${TO_I32("$at")})
    (i64.store (i32.sub (local.get $block) (i32.const 8)) (i64.extend_i32_u (global.get $free)))
    (global.set $free (local.get $block)))

  (func $length (export "length") (param $at i64) (result i64)
    (if (i32.or (i64.lt_u (local.get $at) (i64.const 32))
        (i64.gt_u (local.get $at) (i64.extend_i32_u (global.get $end))))
      (then (return (i64.const 0))))
    (if (i64.ne (i64.load (i32.sub (i32.wrap_i64 (local.get $at)) (i32.const 8))) (i64.const -1))
      (then (return (i64.const 0))))
    (i64.load (i32.sub (i32.wrap_i64 (local.get $at)) (i32.const 16))))
  (export "length_unsafe" (func $length))

  (func (export "load_u8") (param $at i64) (result i32) (i32.load8_u ${TO_I32("$at")}))
  (func (export "load_u64") (param $at i64) (result i64) (i64.load ${TO_I32("$at")}))
  (func (export "store_u8") (param $at i64) (param $value i32) (i32.store8 ${TO_I32("$at")} (local.get $value)))
  (func (export "store_u64") (param $at i64) (param $value i64) (i64.store ${TO_I32("$at")} (local.get $value)))

  (func (export "input_set") (param $at i64) (param $length i64)
    (global.set $input (local.get $at)) (global.set $input_length (local.get $length)))
  (func (export "input_offset") (result i64) (global.get $input))
  (func (export "input_length") (result i64) (global.get $input_length))
  (func $input_place (param $at i64) (param $bytes i64) (result i32)
    (if (i32.or (i64.gt_u (local.get $at) (global.get $input_length))
        (i64.gt_u (i64.add (local.get $at) (local.get $bytes)) (global.get $input_length)))
      (then (return (i32.const -1))))
    (i32.wrap_i64 (i64.add (global.get $input) (local.get $at))))
  (func (export "input_load_u8") (param $at i64) (result i32)
    (local $place i32)
    (if (i32.eq (i32.const -1) (local.tee $place (call $input_place (local.get $at) (i64.const 1))))
      (then (return (i32.const 0))))
    (i32.load8_u (local.get $place)))
  (func (export "input_load_u64") (param $at i64) (result i64)
    (local $place i32)
    (if (i32.eq (i32.const -1) (local.tee $place (call $input_place (local.get $at) (i64.const 8))))
      (then (return (i64.const 0))))
    (i64.load (local.get $place)))

  (func (export "output_set") (param $at i64) (param $length i64)
    (global.set $output (local.get $at)) (global.set $output_length (local.get $length)))
  (func (export "output_offset") (result i64) (global.get $output))
  (func (export "output_length") (result i64) (global.get $output_length))
  (func (export "error_set") (param $at i64) (global.set $error (local.get $at)))
  (func (export "error_get") (result i64) (global.get $error))

  (func (export "reset")
    (memory.fill (i32.const 0) (i32.const 0) (global.get $end))
    (global.set $end (i32.const 16)) (global.set $free (i32.const 0))
    (global.set $input (i64.const 0)) (global.set $input_length (i64.const 0))
    (global.set $output (i64.const 0)) (global.set $output_length (i64.const 0))
    (global.set $error (i64.const 0)))
  (func (export "memory_bytes") (result i64) (i64.shl (i64.extend_i32_u (memory.size)) (i64.const 16))))`;
