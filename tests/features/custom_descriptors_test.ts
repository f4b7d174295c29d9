/**
 * Custom descriptors beyond the proposal's own tests (`deno task spec custom-descriptors`): layouts with descriptors in
 * every tier and bounds mode, proofs of the machine code of both processors, collections, and random programs beside a
 * model (tests/support/descriptor_programs.ts), of which `deno task fuzz:descriptors` runs more.
 */
import assert from "node:assert/strict";
import { OPTIMIZING_ARM64 } from "../../engine/backend_arm64/optimizing_target.ts";
import { OPTIMIZING_X64 } from "../../engine/backend_x64/optimizing_target.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import { compileModule, stubContext } from "../../engine/compile/compile.ts";
import type { CompileOptions } from "../../engine/compile/compile_options.ts";
import { verifyCompiled } from "../../engine/compile/verify_module.ts";
import { Engine, NewEngine, OPTIMIZATION_ROWS } from "../../engine/mod.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { printModule } from "../../engine/text/print.ts";
import { DescriptorComparison } from "../support/descriptor_programs.ts";

const COUNT = 60;
const ON = { features: { "custom-descriptors": true } } as const;
const NONE = Object.fromEntries(OPTIMIZATION_ROWS.map(({ name }) => [name, false]));

const SETTINGS = [
  { bounds: "guard", verify: "code" },
  { bounds: "explicit", verify: "code" },
  { tier: "baseline", verify: "code" },
  { tier: "baseline", bounds: "explicit", verify: "code" },
  { tier: "baseline", fuel: true },
  { tier: "baseline", deterministic: true, fuel: true },
  { tier: "auto", bounds: "explicit" },
  { tier: "auto", tierUpCalls: 1, lazyFrom: 0 },
  { optimizations: NONE },
  { fuel: true },
  { deterministic: true, fuel: true },
] as const;
const TIERS = ["baseline", "optimizing"] as const;

/** Types with descriptors below a type without: the descriptor is between fields, once beyond the first page. */
const LAYOUTS = `(module
  (rec
    (type $plain (sub (struct (field $x (mut i8)) (field $y i32))))
    (type $top (sub $plain (descriptor $top.desc) (struct (field $x (mut i8)) (field $y i32) (field $z i16))))
    (type $low (sub $top (descriptor $low.desc)
      (struct (field $x (mut i8)) (field $y i32) (field $z i16) (field $v v128) (field $r (ref null $plain)))))
    (type $top.desc (sub (describes $top) (struct (field $name i32))))
    (type $low.desc (sub $top.desc (describes $low) (struct (field $name i32) (field $more i64)))))
  (type $wide (sub (struct ${"(field i64) ".repeat(600)})))
  (rec
    (type $far (sub $wide (descriptor $far.desc) (struct ${"(field i64) ".repeat(600)} (field $last i32))))
    (type $far.desc (describes $far) (struct (field $name i32))))
  (global $top.desc (ref (exact $top.desc)) (struct.new $top.desc (i32.const 7)))
  (global $low.desc (ref (exact $low.desc)) (struct.new $low.desc (i32.const 8) (i64.const 9)))
  (global $constant (ref $top) (struct.new_desc $top (i32.const 1) (i32.const 2) (i32.const 3) (global.get $top.desc)))
  (global $zero (ref $low) (struct.new_default_desc $low (global.get $low.desc)))
  (func $top (result (ref $top))
    (struct.new_desc $top (i32.const 4) (i32.const 5) (i32.const 6) (global.get $top.desc)))
  (func $low (result (ref $top))
    (struct.new_desc $low (i32.const -4) (i32.const -5) (i32.const -6) (v128.const i64x2 1 2)
      (call $top) (global.get $low.desc)))
  (func $sum (param $o (ref $top)) (result i32)
    (i32.add (i32.mul (i32.const 10) (struct.get_s $top $x (local.get $o)))
      (i32.add (i32.mul (i32.const 100) (struct.get $top $y (local.get $o)))
        (i32.add (i32.mul (i32.const 1000) (struct.get_s $top $z (local.get $o)))
          (struct.get $top.desc $name (ref.get_desc $top (local.get $o)))))))
  (func (export "top") (result i32) (call $sum (call $top)))
  (func (export "low") (result i32) (call $sum (call $low)))
  (func (export "constant") (result i32) (call $sum (global.get $constant)))
  (func (export "zero") (result i32) (call $sum (global.get $zero)))
  (func (export "cast") (result i64)
    (i64.add
      (struct.get $low.desc $more (ref.get_desc $low
        (ref.cast_desc_eq (ref (exact $low)) (call $low) (global.get $low.desc))))
      (i64x2.extract_lane 1 (struct.get $low $v (ref.cast (ref (exact $low)) (call $low))))))
  (func (export "wrong") (drop (ref.cast_desc_eq (ref $low) (call $top) (global.get $low.desc))))
  (func (export "null") (drop (struct.new_default_desc $top (ref.null none))))
  (func $far (param i32) (result (ref null $far))
    (if (result (ref null $far)) (local.get 0)
      (then (struct.new_default_desc $far (struct.new $far.desc (local.get 0))))
      (else (ref.null none))))
  (func (export "far") (param i32) (result i32)
    (struct.get $far.desc $name (ref.get_desc $far (call $far (local.get 0)))))
  (func (export "tests") (param i32) (result i32) (local $o (ref null $plain))
    (local.set $o (if (result (ref null $plain)) (local.get 0) (then (call $low)) (else (call $top))))
    (i32.add (ref.test (ref (exact $low)) (local.get $o))
      (i32.add (i32.mul (i32.const 2) (ref.test (ref (exact $top)) (local.get $o)))
        (i32.add (i32.mul (i32.const 4) (ref.test (ref $top) (local.get $o)))
          (i32.mul (i32.const 8) (ref.test (ref null (exact $plain)) (local.get $o))))))))`;

for (const settings of SETTINGS) {
  Deno.test(`descriptors are read where they were written: ${JSON.stringify(settings).slice(0, 60)}`, () => {
    const instance = new Engine({ verify: true, ...settings, ...ON }).compile(LAYOUTS).instantiate();
    const limits = "fuel" in settings ? { fuel: 1_000_000 } : {};
    const call = (name: string, ...args: number[]) => instance.call(limits, name, ...args);
    assert.equal(call("top"), 40 + 500 + 6000 + 7);
    assert.equal(call("low"), -40 - 500 - 6000 + 8);
    assert.equal(call("constant"), 10 + 200 + 3000 + 7);
    assert.equal(call("zero"), 8);
    assert.equal(call("cast"), 11n);
    assert.equal(call("far", 5), 5);
    assert.deepEqual([call("tests", 0), call("tests", 1)], [6, 5]);
    const trap = (code: string) => ({ name: "TrapError", code });
    assert.throws(() => call("far", 0), trap("null-reference"));
    assert.throws(() => call("wrong"), trap("descriptor-cast"));
    assert.throws(() => call("null"), trap("null-descriptor"));
  });
}

/** Types in a chain so long that the last ones are not in the display of a type. */
const DEPTHS = 10;
/** The type of the casts, beyond the display. */
const CAST_DEPTH = 8;
const DEEP = `(module
  (rec ${
  Array.from({ length: DEPTHS }, (_, k) => `
    (type $t${k} (sub ${k > 0 ? `$t${k - 1}` : ""} (descriptor $d${k}) (struct)))
    (type $d${k} (sub ${k > 0 ? `$d${k - 1}` : ""} (describes $t${k}) (struct)))`).join("")
})
  ${Array.from({ length: DEPTHS }, (_, k) => `(global $d${k} (ref (exact $d${k})) (struct.new $d${k}))`).join("\n")}
  (table $objects anyref (elem
    ${Array.from({ length: DEPTHS }, (_, k) => `(struct.new_default_desc $t${k} (global.get $d${k}))`).join("\n")}
    (ref.null none) (ref.i31 (i32.const 5))))
  (table $descriptors (ref null $d0) (elem
    ${Array.from({ length: DEPTHS }, (_, k) => `(global.get $d${k})`).join(" ")} (ref.null none)))
  (func $descriptor (param i32) (result (ref null $d8))
    (ref.cast (ref null $d8) (table.get $descriptors (local.get 0))))
  ;; More operands than registers below those that the branch carries to another height.
  ${
  ["br_on_cast_desc_eq", "br_on_cast_desc_eq_fail"].map((word) => `
  (func (export "${word}") (param $k i32) (param $j i32) (result i64)
    (block $taken (result i64 i64 anyref)
      ${Array.from({ length: 20 }, (_, k) => `(i64.extend_i32_u (i32.add (local.get $k) (i32.const ${k})))`).join(" ")}
      (i64.const 1000) (i64.extend_i32_u (local.get $j))
      (table.get $objects (local.get $k)) (call $descriptor (local.get $j))
      (${word} $taken anyref (ref null $t8))
      (drop)
      ${"(i64.add) ".repeat(21)}
      (return))
    (drop)
    (i64.add))`).join("")
}
  (func (export "cast") (param $k i32) (param $j i32) (result i32)
    (ref.is_null (ref.cast_desc_eq (ref null $t8) (table.get $objects (local.get $k)) (call $descriptor (local.get $j)))))
  (func (export "exact") (param $k i32) (result i32)
    (ref.test (ref (exact $t8)) (table.get $objects (local.get $k)))))`;

for (const settings of SETTINGS) {
  Deno.test(`casts beyond the display compare descriptors: ${JSON.stringify(settings).slice(0, 60)}`, () => {
    const instance = new Engine({ verify: true, ...settings, ...ON }).compile(DEEP).instantiate();
    const limits = "fuel" in settings ? { fuel: 1_000_000 } : {};
    const call = (name: string, ...args: number[]) => instance.call(limits, name, ...args);
    const cast = { name: "TrapError", code: "descriptor-cast" };
    for (let k = 0; k < DEPTHS + 2; k++) {
      const isNull = k === DEPTHS;
      assert.equal(call("exact", k), Number(k === CAST_DEPTH), `${k}`);
      for (let j = CAST_DEPTH; j < DEPTHS; j++) {
        const passes = k === j || isNull;
        const sum = BigInt(k * 20 + 190 + 1000 + j);
        const carried = BigInt(1000 + j);
        assert.equal(call("br_on_cast_desc_eq", k, j), passes ? carried : sum, `${k} ${j}`);
        assert.equal(call("br_on_cast_desc_eq_fail", k, j), passes ? sum : carried, `${k} ${j}`);
        if (passes) assert.equal(call("cast", k, j), Number(isNull), `${k} ${j}`);
        else assert.throws(() => call("cast", k, j), cast, `${k} ${j}`);
      }
      for (const name of ["br_on_cast_desc_eq", "br_on_cast_desc_eq_fail", "cast"]) {
        assert.throws(() => call(name, k, DEPTHS), { name: "TrapError", code: "null-descriptor" });
      }
    }
  });
}

Deno.test("code with descriptors is proven on both processors and in both tiers", () => {
  for (const text of [LAYOUTS, DEEP]) {
    const module = NewEngine(ON).parse(text);
    for (const target of [OPTIMIZING_X64, OPTIMIZING_ARM64]) {
      for (const tier of TIERS) {
        for (const explicitBounds of [false, true]) {
          const options: CompileOptions = {
            target,
            tier,
            features: featureSet(ON.features),
            optimizations: optimizationSet(),
            settings: codeSettings({ explicitBounds }),
            cpu: new Set<string>(),
          };
          const code = compileModule(module, options);
          assert.deepEqual(verifyCompiled(code, options, stubContext(code.valid, options)), []);
          if (tier === "baseline") assert.deepEqual(code.statistics, {}, "the baseline tier compiles all functions");
        }
      }
    }
  }
});

Deno.test("a null descriptor of a constant expression is a trap of the instantiation", () => {
  const text = `(module
    (rec (type $a (descriptor $d) (struct)) (type $d (describes $a) (struct)))
    (global (ref $a) (struct.new_desc $a (ref.null none))))`;
  assert.throws(() => NewEngine(ON).compile(text).instantiate(), { name: "TrapError", code: "null-descriptor" });
});

Deno.test("clauses, exact types and exact imports survive a round trip through both formats", () => {
  const text = `(module
    (rec
      (type $a (sub (descriptor $d) (struct (field (ref null (exact $d))))))
      (type $d (sub (describes $a) (descriptor $m) (struct)))
      (type $m (describes $d) (struct)))
    (type $f (func (param (ref (exact $a))) (result (ref null (exact $d)))))
    (import "m" "f" (func $f (exact (type $f))))
    (import "m" "g" (func $g (type $f)))
    (func (type $f)
      (drop (ref.test (ref null (exact $a)) (local.get 0)))
      (br_on_cast_desc_eq 0 (ref null any) (ref null (exact $d)) (ref.get_desc $a (local.get 0)) (ref.null (exact $m)))
      (drop)
      (call $f (local.get 0))))`;
  const { bytes } = parseModule(text);
  const printed = printModule(decodeModule(bytes));
  assert.deepEqual(parseModule(printed).bytes, bytes);
  for (const part of ["(descriptor $d) (struct", "(describes $a) (descriptor $m)", "(exact (type $f)", "(exact $m)"]) {
    assert.ok(printed.includes(part), printed);
  }
  NewEngine(ON).validate(bytes);
});

Deno.test("types, instructions and imports name the feature where it is off", () => {
  const engines = [NewEngine(), NewEngine({ tier: "baseline" })];
  const texts = [
    `(module (rec (type $a (descriptor $d) (struct)) (type $d (describes $a) (struct))))`,
    `(module (type $f (func)) (import "m" "f" (func (exact (type $f)))))`,
    `(module (type $s (struct)) (func (param (ref (exact $s)))))`,
    `(module (type $s (struct)) (global (ref null (exact $s)) (ref.null none)))`,
    `(module (type $s (struct)) (func (local (ref null (exact $s)))))`,
    `(module (type $s (struct)) (func (drop (ref.null (exact $s)))))`,
    `(module (type $s (struct)) (func (param anyref) (drop (ref.test (ref (exact $s)) (local.get 0)))))`,
    `(module (type $s (struct)) (func (drop (ref.get_desc $s (ref.null none)))))`,
  ];
  for (const text of texts) {
    for (const engine of engines) {
      const refusal = { name: "UnsupportedError", message: /needs the feature custom-descriptors/ };
      assert.throws(() => engine.compile(text), refusal, text);
      assert.throws(() => engine.validate(text), refusal, text);
    }
  }
  // A cast to an unrelated type remains an error of the module.
  const unrelated = `(module (type $s (struct)) (type $t (struct (field i32)))
    (func (param (ref $s)) (result (ref $t)) (br_on_cast 0 (ref $s) (ref $t) (local.get 0)) (unreachable)))`;
  for (const engine of engines) assert.throws(() => engine.validate(unrelated), { name: "InvalidError" });
  NewEngine(ON).validate(unrelated);
});

Deno.test("code of modules without descriptors is the same with the feature", () => {
  const text = `(module (type $s (sub (struct (field i32)))) (type $t (sub $s (struct (field i32) (field f64))))
    (func (export "f") (param (ref null $s)) (result f64)
      (block $no (result (ref null $s))
        (return (struct.get $t 1 (br_on_cast_fail $no (ref null $s) (ref $t) (local.get 0)))))
      (drop) (f64.const 0)))`;
  for (const tier of TIERS) {
    const code = [{}, ON.features].map((features) => {
      const options: CompileOptions = {
        target: OPTIMIZING_X64,
        tier,
        features: featureSet(features),
        optimizations: optimizationSet(),
        settings: codeSettings(),
        cpu: new Set<string>(),
      };
      const { bytes, tables } = compileModule(NewEngine(ON).parse(text), options);
      return bytes.subarray(tables.functionStart[0], tables.functionEnd[0]);
    });
    assert.deepEqual(code[0].length, code[1].length, tier);
  }
});

Deno.test(`${COUNT} random programs with descriptors behave as a model`, () => {
  const comparison = new DescriptorComparison();
  for (let seed = 1; seed <= COUNT; seed++) comparison.compare(seed);
  const { ends } = comparison;
  for (const kind of ["value", "descriptor-cast", "null-descriptor"]) assert.ok((ends.get(kind) ?? 0) > 0, kind);
  assert.ok(ends.get("value")! > COUNT, JSON.stringify([...ends]));
});

for (
  const [seed, code] of [
    [462, "takes the type of an object from its id after the last reference to it"],
    [158, "keeps the outcome of a test for null past compares with memory"],
    [13820, "takes the outcome of a test for null for that of a value which is null or an integer"],
    [670, "tests an integer for its tag, in a branch that is never taken"],
    [531, "follows a reference that is null or an integer, after the test that it is no integer"],
    [16372, "joins outcomes of a test for null that cannot be 0 with those of a later test"],
    [17561, "joins a reference that is null in the first iteration with an integer in the next ones"],
  ] as const
) {
  Deno.test(`code is proven that ${code}`, () => {
    new DescriptorComparison().compare(seed);
  });
}
