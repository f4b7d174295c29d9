/**
 * Feature switches over whole modules, from text: each module below uses exactly the listed features; with all features
 * on it validates and reports them; with any one of them off it is rejected by that feature's name, at the offset of
 * its first use.
 */
import assert from "node:assert/strict";
import { UnsupportedError } from "../../engine/base/errors.ts";
import { ALL_FEATURE_ROWS, type FeatureName, type FeatureSet, featureSet } from "../../engine/settings/features.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { validateModule } from "../../engine/validate/module.ts";

const BULK = "bulk-memory-operations";
const EH = "exception-handling";
const EXTENDED = "extended-const-expressions";
const REFS = "reference-types";
const TYPED = "typed-function-references";

/** Module fields and the features that they need. */
const MODULES: readonly [string, readonly FeatureName[]][] = [
  [`(func (param i32) (result i32) (local f64) (i32.add (local.get 0) (i32.const 1)))`, []],
  [
    `(table 1 funcref) (elem (i32.const 0) 0) (func (call_indirect (i32.const 0))) (memory 1) (data (i32.const 0) "a")`,
    [],
  ],
  [`(global i32 (i32.const 1)) (global (mut i64) (i64.const 1)) (export "g" (global 0))`, []],
  [`(memory 1) (func (memory.fill (i32.const 0) (i32.const 0) (i32.const 0)))`, [BULK]],
  [`(memory 1) (data "a")`, [BULK]],
  [`(table 1 funcref) (elem func)`, [BULK]],
  [`(table 1 funcref) (func (table.copy (i32.const 0) (i32.const 0) (i32.const 0)))`, [BULK]],
  [`(tag)`, [EH]],
  [`(tag (param i32)) (func (throw 0 (i32.const 1)))`, [EH]],
  [`(func (try (do) (catch_all)))`, [EH]],
  [`(func (block (try_table (catch_all 0))))`, [EH]],
  [`(func (param exnref))`, [EH]],
  [`(import "m" "t" (tag))`, [EH]],
  [`(global i32 (i32.add (i32.const 1) (i32.const 2)))`, [EXTENDED]],
  [`(memory 1) (data (offset (i32.mul (i32.const 1) (i32.const 2))) "a")`, [EXTENDED]],
  [`(type (struct (field i32)))`, ["gc"]],
  [`(type (array i8))`, ["gc"]],
  [`(type (sub (func)))`, ["gc"]],
  [`(rec (type (func)) (type (func)))`, ["gc"]],
  [`(func (param anyref))`, ["gc"]],
  [`(func (drop (ref.i31 (i32.const 1))))`, ["gc"]],
  [`(func (local i31ref))`, ["gc"]],
  [`(global i32 (i32.const 1)) (global i32 (global.get 0))`, ["gc"]],
  [`(func (drop (ref.null any)))`, ["gc", REFS]],
  [`(memory i64 1)`, ["memory64"]],
  [`(import "m" "m" (memory i64 1))`, ["memory64"]],
  [`(memory 1) (memory 1)`, ["multi-memory"]],
  [`(import "m" "m" (memory 1)) (memory 1)`, ["multi-memory"]],
  [`(func (result i32 i32) (i32.const 1) (i32.const 2))`, ["multi-value"]],
  [`(func (i32.const 1) (block (param i32) (drop)))`, ["multi-value"]],
  [`(import "m" "g" (global (mut i32)))`, ["mutable-global"]],
  [`(global (export "g") (mut i32) (i32.const 1))`, ["mutable-global"]],
  [`(func (drop (i32.trunc_sat_f32_s (f32.const 1))))`, ["nontrapping-float-to-int-conversion"]],
  [`(func (param externref))`, [REFS]],
  [`(func (result funcref) (ref.null func))`, [REFS]],
  [`(table 1 funcref) (table 1 funcref)`, [REFS]],
  [`(table 1 externref)`, [REFS]],
  [`(func (drop (select (result i32) (i32.const 1) (i32.const 2) (i32.const 3))))`, [REFS]],
  [`(table 1 funcref) (func (drop (table.size)))`, [REFS]],
  [`(func $f) (elem declare func $f)`, [REFS]],
  [`(func (drop (i32.extend8_s (i32.const 1))))`, ["sign-extension-ops"]],
  [`(func (param v128))`, ["simd"]],
  [`(func (local v128))`, ["simd"]],
  [`(func (drop (i8x16.splat (i32.const 1))))`, ["simd"]],
  [`(func (drop (i32x4.relaxed_trunc_f32x4_s (v128.const i32x4 0 0 0 0))))`, ["simd"]],
  [`(table i64 1 funcref)`, ["table64"]],
  [`(import "m" "t" (table i64 1 funcref))`, ["table64"]],
  [`(func (return_call 0))`, ["tail-call"]],
  [`(memory 1 1 shared)`, ["threads"]],
  [`(memory 1) (func (drop (i32.atomic.load (i32.const 0))))`, ["threads"]],
  [`(func (atomic.fence))`, ["threads"]],
  [`(type $f (func)) (func (param (ref null $f)))`, [TYPED]],
  [`(func (param (ref func)))`, [TYPED]],
  [`(func (param (ref extern)))`, [TYPED]],
  [`(type $f (func)) (func (param (ref $f)) (call_ref $f (local.get 0)))`, [TYPED]],
  [`(type $f (func)) (func (param (ref $f)) (return_call_ref $f (local.get 0)))`, ["tail-call", TYPED]],
  [`(func $f) (table 1 funcref (ref.func $f))`, [REFS, TYPED]],
  [`(type $v (array v128)) (func (param (ref $v)))`, ["gc", "simd", TYPED]],
  [`(func (i64.mul_wide_u (i64.const 1) (i64.const 2)) (drop) (drop))`, ["wide-arithmetic"]],
  [`(import "m" (item "a" (func)) (item "b" (func)))`, ["compact-import-section"]],
  [`(memory 1 (pagesize 1))`, ["custom-page-sizes"]],
  [`(import "m" "m" (memory 1 2 (pagesize 1)))`, ["custom-page-sizes"]],
  [`(type $f (func)) (type (cont $f))`, ["stack-switching"]],
  [`(func (pause))`, ["acquire-release-atomics"]],
  [`(memory 1) (func (drop (i32.atomic.load acqrel (i32.const 0))))`, ["acquire-release-atomics", "threads"]],
  [`(func (atomic.fence acqrel))`, ["acquire-release-atomics", "threads"]],
  [`(type $f (func)) (import "m" "f" (func (exact (type $f))))`, ["custom-descriptors"]],
  [`(rec (type $a (descriptor $b) (struct)) (type $b (describes $a) (struct)))`, ["custom-descriptors", "gc"]],
];

/** Features of the interface of JavaScript, which no module needs. */
const OF_JAVASCRIPT: readonly FeatureName[] = ["js-types"];

/** All features, but for those of `off`. */
function allBut(off: readonly FeatureName[]): FeatureSet {
  return featureSet(Object.fromEntries(ALL_FEATURE_ROWS.map(({ name }) => [name, !off.includes(name)])));
}

for (const [fields, needs] of MODULES) {
  Deno.test(`${fields} needs ${needs.join(", ") || "nothing"}`, () => {
    const module = parseModule(`(module ${fields})`);
    const used = validateModule(module, allBut([])).usedFeatures;
    assert.deepEqual([...used.keys()].sort(), [...needs].sort());
    for (const name of needs) {
      const offset = used.get(name)!;
      assert.ok(offset >= 8 && offset < module.bytes.length, `${offset}`);
      assert.throws(() => validateModule(module, allBut([name])), (error) => {
        assert.ok(error instanceof UnsupportedError, String(error));
        assert.equal(error.feature, name);
        assert.equal(error.place.offset, offset);
        assert.ok(error.message.endsWith(`needs the feature ${name}, which is switched off`), error.message);
        return true;
      });
    }
    validateModule(module, allBut(ALL_FEATURE_ROWS.map((row) => row.name).filter((name) => !needs.includes(name))));
  });
}

Deno.test("every feature has a module that needs it alone", () => {
  for (const { name } of ALL_FEATURE_ROWS) {
    if (OF_JAVASCRIPT.includes(name)) continue;
    assert.ok(MODULES.some(([, needs]) => needs.length === 1 && needs[0] === name), name);
  }
});

/** The bytes at the first use of a feature. */
const FIRST_BYTES: readonly [string, FeatureName, number[]][] = [
  [`(type (func)) (type (func (result i32 i32))) (type (struct))`, "multi-value", [0x60, 0, 2]],
  [`(type (func)) (type (func (result i32 i32))) (type (struct))`, "gc", [0x5f, 0]],
  [`(rec (type (func)) (type (struct))) (type (func)) (type (func (param v128)))`, "simd", [0x60, 1, 0x7b]],
  [`(import "m" "a" (func)) (import "m" "b" (global (mut i32)))`, "mutable-global", [1, 0x6d, 1, 0x62, 3]],
  [`(memory 1 2) (memory 3 3 shared)`, "threads", [3, 3, 3]],
  [`(memory 1 2) (memory i64 3)`, "memory64", [4, 3]],
  [`(table 1 funcref) (table 2 3 externref) (table i64 4 funcref)`, "table64", [0x70, 4, 4]],
  [`(func $f) (table 1 funcref (ref.func $f)) (table 2 3 externref) (table i64 4 funcref)`, "table64", [0x70, 4, 4]],
  [`(global i32 (i32.const 1)) (global v128 (v128.const i32x4 0 0 0 0))`, "simd", [0x7b, 0]],
  [`(func) (memory 1) (func (nop) (drop (i32.atomic.load (i32.const 0))))`, "threads", [0xfe, 0x10]],
  [`(tag) (tag)`, EH, [0, 0, 0, 0]],
  [`(memory 1) (data "x")`, BULK, [1]],
];

for (const [fields, name, bytes] of FIRST_BYTES) {
  Deno.test(`${fields}: usedFeatures reports the first use of ${name}`, () => {
    const module = parseModule(`(module ${fields})`);
    const offset = validateModule(module, featureSet()).usedFeatures.get(name)!;
    assert.deepEqual([...module.bytes.subarray(offset, offset + bytes.length)], bytes);
  });
}
