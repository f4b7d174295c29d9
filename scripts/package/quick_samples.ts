/**
 * Modules that `waft run` starts from the cache, with their expected output: startup.ts measures their start-up time,
 * and quick_profile.ts finds the functions to compile eagerly when the command is built. They do the usual work of a
 * program's start. Each additional row means more code that every run reads.
 */

/** A module and a run of it. */
export interface QuickSample {
  readonly name: string;
  /** The module as text. */
  readonly text: string;
  /** Arguments before and after the module's file. */
  readonly options: readonly string[];
  readonly args: readonly string[];
  readonly output: string;
}

const WASI = "wasi_snapshot_preview1";

export const QUICK_SAMPLES: readonly QuickSample[] = [
  { name: "nothing", text: `(module (func (export "_start")))`, options: ["--bare"], args: [], output: "" },
  {
    name: "hello",
    text: `(module (import "${WASI}" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
      (memory (export "memory") 1) (data (i32.const 8) "\\10\\00\\00\\00\\06\\00\\00\\00hello\\n")
      (func (export "_start") (drop (call $write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 0)))))`,
    options: ["--bare"],
    args: [],
    output: "hello\n",
  },
  {
    name: "average",
    text: `(module (global $calls (mut i32) (i32.const 0)) (table 2 funcref) (elem (i32.const 0) func $add $sub)
      (type $op (func (param f64 f64) (result f64)))
      (func $add (type $op) (f64.add (local.get 0) (local.get 1)))
      (func $sub (type $op) (f64.sub (local.get 0) (local.get 1)))
      (func (export "average") (param i32 f64 i64) (result f64)
        (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
        (f64.div
          (call_indirect (type $op) (local.get 1) (f64.convert_i64_s (local.get 2)) (local.get 0)) (f64.const 2))))`,
    options: ["--bare", "--invoke", "average"],
    args: ["0", "1.5", "3"],
    output: "2.25\n",
  },
  {
    // A libc's work before and after main: arguments, environment, preopened directories, exit.
    name: "program",
    text: `(module
      (import "${WASI}" "args_sizes_get" (func $argsSizes (param i32 i32) (result i32)))
      (import "${WASI}" "args_get" (func $args (param i32 i32) (result i32)))
      (import "${WASI}" "environ_sizes_get" (func $environSizes (param i32 i32) (result i32)))
      (import "${WASI}" "environ_get" (func $environ (param i32 i32) (result i32)))
      (import "${WASI}" "fd_prestat_get" (func $prestat (param i32 i32) (result i32)))
      (import "${WASI}" "fd_fdstat_get" (func $fdstat (param i32 i32) (result i32)))
      (import "${WASI}" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
      (import "${WASI}" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
      (import "${WASI}" "proc_exit" (func $exit (param i32)))
      (memory (export "memory") 2) (data (i32.const 8) "\\10\\00\\00\\00\\06\\00\\00\\00ready\\n")
      (func (export "_start")
        (drop (call $argsSizes (i32.const 100) (i32.const 104)))
        (drop (call $args (i32.const 200) (i32.const 1000)))
        (drop (call $environSizes (i32.const 100) (i32.const 104)))
        (drop (call $environ (i32.const 200) (i32.const 1000)))
        (drop (call $prestat (i32.const 3) (i32.const 100)))
        (drop (call $fdstat (i32.const 1) (i32.const 100)))
        (drop (call $clock (i32.const 1) (i64.const 1) (i32.const 104)))
        (drop (memory.grow (i32.const 1)))
        (drop (call $write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 0)))
        (call $exit (i32.const 0))))`,
    options: ["--bare", "--env", "LANG=C"],
    args: ["one", "two"],
    output: "ready\n",
  },
];
