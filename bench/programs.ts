/**
 * The benchmark programs: bench/wasm/NAME.wasm, each exporting run(n), built from bench/programs/ by bench/build.sh.
 * One row per program: its kind, and an n that takes V8's optimized code about 5 to 25 ms.
 */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** One program. */
export interface Program {
  name: string;
  /** The aspect that it exercises most. */
  kind: string;
  /** Argument of `run`. */
  n: number;
}

// deno-fmt-ignore
const ROWS: readonly (readonly [name: string, kind: string, n: number])[] = [
  ["ackermann",     "calls",          240],
  ["fibonacci",     "calls",          35],
  ["queens",        "recursion",      12],
  ["binary_trees",  "allocation",     16],
  ["virtual_calls", "indirect calls", 26000],
  ["threaded_vm",   "indirect calls", 370000],
  ["stack_vm",      "interpreter",    45000],
  ["brainfuck",     "interpreter",    120],
  ["switch",        "branches",       1500000],
  ["collatz",       "branches, i64",  150000],
  ["globals",       "globals",        2500000],
  ["bits",          "i64",            1500000],
  ["big_integer",   "i64",            5000],
  ["chacha20",      "i32",            170000],
  ["sha256",        "hashing",        48000],
  ["crc32",         "hashing",        100],
  ["hash_table",    "hashing",        1700000],
  ["quicksort",     "sorting",        120000],
  ["fannkuch",      "memory",         9],
  ["sieve",         "memory",         60],
  ["life",          "memory",         38],
  ["bulk_memory",   "memory",         250000],
  ["edit_distance", "memory",         3000],
  ["linked_list",   "pointers",       60000],
  ["heap_paths",    "pointers",       27],
  ["lz",            "compression",    20],
  ["string_search", "strings",        10],
  ["json",          "parsing",        310],
  ["tokens",        "parsing",        900],
  ["regex",         "parsing",        40],
  ["float_format",  "f64, text",      120000],
  ["mandelbrot",    "f64",            400],
  ["nbody",         "f64",            260000],
  ["matrix",        "f64",            250],
  ["spectral_norm", "f64",            800],
  ["fft",           "f64",            150],
  ["ray_trace",     "f32",            500],
  ["strings",       "AssemblyScript", 55],
  ["simd_matrix",     "vectors, f32", 60],
  ["simd_mandelbrot", "vectors, f64", 700],
  ["simd_chacha20",   "vectors, i32", 150000],
  ["simd_image",      "vectors, i16", 200],
  ["simd_text",       "vectors, i8",  400],
  ["simd_base64",     "vectors, i8",  600],
  ["simd_utf8",       "vectors, i8",  1300],
  ["simd_filter",     "vectors, i16", 500],
  ["exceptions_rare",    "exceptions",  8000],
  ["exceptions_often",   "exceptions",  20000],
  ["exceptions_payload", "exceptions",  100000],
  ["tail_vm",            "tail calls",  4000],
  ["tail_machine",       "tail calls",  1000],
  ["memory64_sort",      "memory64",    20000],
  ["memory64_stencil",   "memory64",    300],
  ["memory64_hash",      "memory64",    300000],
  ["table64_dispatch",   "memory64, tables", 600],
  ["memories",           "multi-memory", 100],
  ["refs_dispatch",      "function references", 800],
  ["gc_trees",  "objects",  13],
  ["gc_shapes", "objects, casts", 40],
  ["gc_sort",   "objects, arrays", 30000],
  ["atomics_counters", "threads", 150],
  ["atomics_ring",     "threads", 300],
];

/** Groups of kinds with a mean of their own; kinds outside all groups are core WebAssembly. */
const GROUPS: readonly (readonly [kind: string, group: string])[] = [
  ["vectors", "simd"],
  ["exceptions", "exception-handling"],
  ["objects", "gc"],
  ["real objects", "gc in Java, Kotlin, Scala"],
  ["tail calls", "tail-call"],
  ["memory64", "memory64"],
  ["multi-memory", "multi-memory"],
  ["function references", "typed-function-references"],
];

/** The feature that programs of `kind` exercise, or "core". */
export function groupOf(kind: string): string {
  return GROUPS.find(([prefix]) => kind.startsWith(prefix))?.[1] ?? "core";
}

/** All programs, in the order of the table. */
export const PROGRAMS: readonly Program[] = ROWS.map(([name, kind, n]) => ({ name, kind, n }));

/** The module of `program`. */
export function programBytes(program: Program): Uint8Array<ArrayBuffer> {
  return new Uint8Array(readFileSync(programPath(program)));
}

/** The path of a program's module. */
export function programPath({ name }: Program): string {
  return fileURLToPath(new URL(`wasm/${name}.wasm`, import.meta.url));
}
