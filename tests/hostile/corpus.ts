/**
 * Binary modules to mutate: a few built-in ones that cover all sections and kinds of immediates, and those of the
 * specification suite if it is present. Out: modules without duplicates, in a stable order.
 */
import { readFileSync } from "node:fs";
import { WaftError } from "../../engine/base/errors.ts";
import { textToBinary } from "../../engine/text/parse_module.ts";
import { parseScript, type ScriptModule } from "../../engine/text/script.ts";
import { suiteScripts } from "../support/testsuite.ts";

const SOURCES = [
  `(module $m
    (type $f (func (param i32 i64) (result f32)))
    (import "env" "f" (func $imported (type $f)))
    (import "env" "g" (global $g (mut i64)))
    (import "env" "t" (table $t 1 2 externref))
    (table $u 3 funcref) (memory $a 1 2) (memory $b i64 1) (tag $e (param i32))
    (global $h (mut f64) (f64.const nan:0x123))
    (global (ref null func) (ref.null func))
    (export "run" (func $run)) (export "mem" (memory $a)) (start $main)
    (elem (table $u) (i32.const 0) func $run $main) (elem declare func $run)
    (elem externref (ref.null extern))
    (data $d (memory $a) (i32.const 8) "hello\\00") (data "passive")
    (func $main)
    (func $run (type $f) (local $x v128) (local $y i32)
      (block $b (result i32)
        (loop $l (br_if $l (local.get 0)))
        (br_table $b 0 (i32.const 1) (local.get 0)))
      (if (result i32) (then (i32.load8_s $a offset=70000 (i32.const 3))) (else (i32.const -5)))
      (local.set $y)
      (memory.init $a 1 (i32.const 0) (i32.const 0) (i32.const 1))
      (local.set $x (i8x16.shuffle 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 31 (local.get $x) (v128.const i64x2 1 2)))
      (drop (i64.atomic.rmw.add $b offset=0x100000000 (i64.const 8) (i64.const 1)))
      (call_indirect $u (type $f) (local.get 0) (local.get 1) (i32.const 2))
      (drop (select (result f64) (f64.const 0) (f64.const 1) (local.get 0)))
      (f32.neg)))`,
  `(module
    (rec (type $s (sub (struct (field (mut i32)) (field i8)))) (type $t (sub $s (struct (field (mut i32)) (field i8)))))
    (type $v (array (mut i16))) (type $e (func (param i32)))
    (tag $x (type $e)) (elem $el (ref null $s) (ref.null $s)) (data $d "0123456789")
    (table 1 (ref $s) (struct.new_default $s))
    (func (param $r (ref null any)) (result i32)
      (block $out (result (ref $t))
        (drop (br_on_cast $out anyref (ref $t) (local.get $r)))
        (drop (array.new_fixed $v 2 (i32.const 1) (i32.const 2)))
        (drop (array.new_data $v $d (i32.const 0) (i32.const 2)))
        (block $h (result i32)
          (try_table (catch $x $h) (throw $x (i32.const 4)))
          (unreachable))
        (return))
      (struct.get_u $s 1)))`,
];

function encoded(module: ScriptModule): Uint8Array | undefined {
  try {
    return module.encode();
  } catch (error) {
    if (error instanceof WaftError) return undefined;
    throw error;
  }
}

function keyOf(bytes: Uint8Array): string {
  let key = "";
  for (const byte of bytes) key += String.fromCharCode(byte);
  return key;
}

/** The built-in modules. */
export function ownModules(): Uint8Array[] {
  return SOURCES.map((source) => textToBinary(source));
}

/** The specification suite's modules of at most `maxBytes`, valid and invalid. */
export function suiteModules(maxBytes: number): Uint8Array[] {
  const modules = new Map<string, Uint8Array>();
  for (const path of suiteScripts()) {
    for (const command of parseScript(readFileSync(path, "utf8"))) {
      if (!("module" in command) || typeof command.module !== "object") continue;
      const bytes = encoded(command.module);
      if (bytes !== undefined && bytes.length <= maxBytes) modules.set(keyOf(bytes), bytes);
    }
  }
  return [...modules.values()];
}
