/**
 * Masks against misprediction of bounds checks: every kind of access has one in both tiers and on both architectures,
 * the verifier requires it, and the results do not change.
 */
import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { OPTIMIZING_ARM64 as ARM64 } from "../../engine/backend_arm64/optimizing_target.ts";
import { OPTIMIZING_X64 as X64 } from "../../engine/backend_x64/optimizing_target.ts";
import { compileModule, prepareBodyCompiler, stubContext } from "../../engine/compile/compile.ts";
import type { CompileOptions } from "../../engine/compile/compile_options.ts";
import { NewEngine } from "../../engine/api/engine.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { CPU_FEATURES } from "../../engine/host/cpu.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";
import { REASON } from "../../engine/verify/analysis.ts";
import { verifyCompiled } from "../../engine/compile/verify_module.ts";

await prepareBodyCompiler("x64");
await prepareBodyCompiler("arm64");

/** Field, parameters and body of a function with one access behind a check of a table. */
const TABLE_ACCESSES = [
  ["(table $t 4 8 funcref)", "i32", "(drop (table.get $t (local.get 0)))"],
  ["(table $t 4 8 funcref)", "i32", "(table.set $t (local.get 0) (ref.null func))"],
  ["(table $t 4 8 funcref)", "i32", "(call_indirect $t (type $f) (local.get 0))"],
  ["(table $t 4 8 funcref)", "i32", "(return_call_indirect $t (type $f) (local.get 0))"],
  ["(table $t 4 4 funcref)", "i32", "(call_indirect $t (type $f) (local.get 0))"],
  ["(table $t i64 4 8 funcref)", "i64", "(drop (table.get $t (local.get 0)))"],
  ["(table $t i64 4 8 funcref)", "i64", "(call_indirect $t (type $f) (local.get 0))"],
  ["(table $t 4 8 funcref)", "i32", "(loop $l (call_indirect $t (type $f) (local.get 0)) (br $l))"],
] as const;

/** The same for memories. */
const MEMORY_ACCESSES = [
  ["(memory $m 1 9)", "i32", "(drop (i32.load8_u $m (local.get 0)))"],
  ["(memory $m 1 9)", "i32", "(drop (i64.load $m offset=24 (local.get 0)))"],
  ["(memory $m 1 9)", "i32", "(drop (f64.load $m offset=0x20000 (local.get 0)))"],
  ["(memory $m 1 9)", "i32", "(drop (v128.load $m offset=0xfffffff0 (local.get 0)))"],
  ["(memory $m 0 9)", "i32", "(drop (i32.load16_s $m (local.get 0)))"],
  ["(memory $m 1 9)", "i32", "(i32.store $m (local.get 0) (i32.const 7))"],
  ["(memory $m 1 9)", "i32", "(i64.store $m (i32.const 0x20000) (i64.const 7))"],
  ["(memory $m 1 9)", "i32", "(drop (v128.load8_lane $m 3 (local.get 0) (v128.const i64x2 0 0)))"],
  ["(memory $m i64 1 9)", "i64", "(drop (i64.load $m offset=24 (local.get 0)))"],
  ["(memory $m i64 1 9)", "i64", "(drop (i64.load8_u $m offset=0x123456789 (local.get 0)))"],
  ["(memory $m i64 1 9)", "i64", "(drop (i64.load $m offset=8 (i64.const 0x20000)))"],
  ["(memory 1) (memory $m 1 9)", "i32", "(i32.store8 $m offset=3 (local.get 0) (i32.const 7))"],
  ["(memory $m 1 9 shared)", "i32", "(drop (i32.load $m (local.get 0)))"],
  ["(memory $m 1 9 shared)", "i32", "(drop (i32.atomic.rmw.add $m (local.get 0) (i32.const 7)))"],
  ["(memory $m 1 9 shared)", "i32", "(i64.atomic.store $m offset=16 (local.get 0) (i64.const 7))"],
] as const;
/** Memory accesses of which only the optimizing compiler makes loads and stores; `baseline` calls a routine. */
const SMALL_COPIES = [
  ["(memory $m 1 9)", "i32", "(memory.copy $m $m (local.get 0) (i32.const 9) (i32.const 23))"],
  ["(memory $m 1 9)", "i32", "(memory.fill $m (local.get 0) (i32.const 9) (i32.const 31))"],
] as const;

function sourceOf([field, param, body]: readonly string[]): string {
  return `(module (type $f (func)) ${field} (func (export "f") (param ${param}) ${body}))`;
}

const CPU = { x64: new Set(["avx", "bmi1", "bmi2", "lzcnt", "popcnt", "sse41", "sse42"]), arm64: CPU_FEATURES.arm64 };

/** Options of both tiers on both architectures; memories are checked. */
function* configurations(masked: boolean): Generator<CompileOptions> {
  for (const target of [X64, ARM64]) {
    for (const tier of ["optimizing", "baseline"] as const) {
      yield {
        target,
        tier,
        features: featureSet(),
        optimizations: optimizationSet({ "mask-tables": masked, "mask-memories": masked }),
        settings: codeSettings({ explicitBounds: true }),
        cpu: new Set(CPU[target.name]),
      };
    }
  }
}

/** The reason why the code of a module is not proven if both masks are required, or undefined. */
function reasonOf(source: string, options: CompileOptions): string | undefined {
  const code = compileModule(NewEngine().parse(source), options);
  const required = { ...options, optimizations: optimizationSet({ "mask-tables": true, "mask-memories": true }) };
  return verifyCompiled(code, required, stubContext(code.valid, options))[0]?.reason;
}

Deno.test("accesses behind checks have masks in both tiers on both architectures", () => {
  for (const access of [...TABLE_ACCESSES, ...MEMORY_ACCESSES, ...SMALL_COPIES]) {
    for (const options of configurations(true)) {
      equal(reasonOf(sourceOf(access), options), undefined, `${access} ${options.target.name} ${options.tier}`);
    }
  }
});

Deno.test("the verifier requires the masks", () => {
  for (const options of configurations(false)) {
    const copies = options.tier === "optimizing" ? SMALL_COPIES : [];
    for (const access of TABLE_ACCESSES) equal(reasonOf(sourceOf(access), options), REASON.TABLE, `${access}`);
    for (const access of [...MEMORY_ACCESSES, ...copies]) {
      equal(reasonOf(sourceOf(access), options), REASON.MEMORY, `${access} ${options.target.name} ${options.tier}`);
    }
  }
});

/** A switch with so many cases that it jumps by a table, and with a default. */
function switchSource(cases: number): string {
  return `(module (func (export "f") (param i32) (result i32)
  ${"(block ".repeat(cases + 1)}
    (br_table ${Array.from({ length: cases + 1 }, (_, k) => k).join(" ")} (local.get 0))
  ${Array.from({ length: cases + 1 }, (_, k) => `) (return (i32.const ${k * 3}))`).join(" ")}))`;
}

/** [cases, the instruction that masks the index in optimized code of x64]: some tables get entries for the default. */
const SWITCHES = [[8, /\band\b/], [11, /\band\b/], [200, /\band\b/], [150, /\bsbb\b|\bcsdb\b/]] as const;

Deno.test("indices of jump tables are masked", () => {
  for (const [cases, mask] of SWITCHES) {
    const source = switchSource(cases);
    for (const masked of [true, false]) {
      for (const options of configurations(masked)) {
        const { bytes, tables } = compileModule(NewEngine().parse(source), options);
        const { disassemble } = options.target.name === "x64" ? X64 : ARM64;
        const text = disassemble(bytes, tables.functionStart[0], tables.functionEnd[0]);
        const isOptimized = options.tier === "optimizing" && options.target.name === "x64";
        const expected = isOptimized ? mask : /\bsbb\b|\bcsdb\b/;
        equal(expected.test(text), masked, `${cases} ${options.target.name} ${options.tier}`);
        if (masked) equal(reasonOf(source, options), undefined, `${cases} ${options.target.name} ${options.tier}`);
      }
    }
    for (const tier of ["optimizing", "baseline"] as const) {
      const run = NewEngine({ tier }).compile(source).instantiate().exports["f"] as (index: number) => number;
      const given = [0, 1, cases - 1, cases, cases + 1, 2 * cases, 255, 256, 1 << 31, -1];
      deepEqual(given.map(run), given.map((index) => 3 * Math.min(index >>> 0, cases)));
    }
  }
});

Deno.test("accesses with guard pages and 32-bit indices have no checks to mask", () => {
  const source = sourceOf(MEMORY_ACCESSES[1]);
  for (const options of configurations(true)) {
    const bytesOf = (masked: boolean) => {
      const optimizations = optimizationSet({ "mask-tables": masked, "mask-memories": masked });
      return compileModule(NewEngine().parse(source), { ...options, optimizations, settings: codeSettings() }).bytes;
    };
    deepEqual(bytesOf(true), bytesOf(false));
  }
});

Deno.test("masked accesses give the results of unmasked ones, at the ends of tables and memories", () => {
  const source = `(module (memory (export "m") 1 2) (table $t 3 5 funcref) (elem (i32.const 0) $a $b $c)
    (func $a (result i32) (i32.const 10)) (func $b (result i32) (i32.const 11)) (func $c (result i32) (i32.const 12))
    (func (export "call") (param i32) (result i32) (call_indirect $t (result i32) (local.get 0)))
    (func (export "isNull") (param i32) (result i32) (ref.is_null (table.get $t (local.get 0))))
    (func (export "set") (param i32) (table.set $t (local.get 0) (ref.null func)))
    (func (export "grow") (result i32) (drop (table.grow $t (ref.null func) (i32.const 1))) (memory.grow (i32.const 1)))
    (func (export "load") (param i32) (result i32) (i32.load offset=8 (local.get 0)))
    (func (export "far") (param i32) (result i32) (i32.load8_u offset=0x18000 (local.get 0)))
    (func (export "store") (param i32) (i64.store offset=8 (local.get 0) (i64.const -1)))
    (func (export "copy") (param i32) (memory.copy (local.get 0) (i32.const 8) (i32.const 7))))`;
  for (const tier of ["optimizing", "baseline"] as const) {
    const optimizations = { "mask-tables": true, "mask-memories": true };
    const instance = NewEngine({ tier, bounds: "explicit", optimizations }).compile(source).instantiate();
    const call = (name: string, ...args: number[]) =>
      (instance.exports[name] as (...args: number[]) => number)(...args);
    deepEqual([0, 1, 2].map((k) => call("call", k)), [10, 11, 12]);
    for (const index of [3, 4, -1, 0x7fffffff]) {
      throws(() => call("call", index), /undefined element/);
      throws(() => call("isNull", index), /out of bounds table access/);
      throws(() => call("set", index), /out of bounds table access/);
    }
    throws(() => call("far", 0), /out of bounds memory access/);
    call("store", 0xffff - 15);
    equal(call("load", 0xffff - 11), -1);
    for (const address of [0xffff - 10, 0x10000, -8, -1]) throws(() => call("load", address), /out of bounds memory/);
    for (const address of [0xffff - 14, -16, -1]) throws(() => call("store", address), /out of bounds memory/);
    call("copy", 0x10000 - 7);
    throws(() => call("copy", 0x10000 - 6), /out of bounds memory/);
    equal(call("grow"), 1);
    equal(call("isNull", 3), 1);
    equal(call("far", 0x7fff), 0);
    throws(() => call("far", 0x8000), /out of bounds memory/);
    ok(call("load", 0x10000) === 0);
    call("set", 1);
    equal(call("isNull", 1), 1);
    throws(() => call("call", 1), /uninitialized element/);
  }
});
