/**
 * The baseline tier validates bodies and detects their features itself. In: generated modules, random programs over
 * objects with descriptors and over continuations, and mutants of all of them with randomly changed bytes in their
 * bodies. Out: whether its verdicts equal those of the validator, an independent implementation of the rules, and
 * whether all tiers refuse a module with the validator's error.
 */
import assert from "node:assert/strict";
import { compileBodies } from "../../engine/baseline/compile_bodies.ts";
import { withKernel } from "../../engine/baseline/kernel_forms.ts";
import { validateBodies } from "../../engine/baseline/validate_bodies.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import { MachineCode } from "../../engine/codegen/machine_code.ts";
import { X64 } from "../../engine/backend_x64/target.ts";
import { Bug, WaftError } from "../../engine/base/errors.ts";
import { compileModule } from "../../engine/compile/compile.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { type FeatureSet, featureSet } from "../../engine/settings/features.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { moduleInterface } from "../../engine/translate/module_interface.ts";
import { validateAllBodies, validateDefined, validateModule } from "../../engine/validate/module.ts";
import type { ValidModule } from "../../engine/validate/valid_module.ts";
import type { Module } from "../../engine/wasm/module.ts";
import { COMPILED_FEATURES } from "../fuzz/compare.ts";
import { generateModules } from "../fuzz/generate_module.ts";
import { Random } from "../fuzz/random.ts";
import { continuationModule } from "./continuation_modules.ts";
import { descriptorProgram } from "../support/descriptor_programs.ts";

const MUTATIONS_PER_MODULE = 60;
/** Fewer, because no stored stubs fit them, so that each compilation takes several times as long. */
const MUTATIONS_WITH_DESCRIPTORS = 15;
/** Modules about stack switching per seed, and how many mutants of each are compared. */
const CONTINUATION_MODULES = 10;
const CONTINUATION_MUTATIONS = 3;
/** `i32.eqz` and `f64.reinterpret_i64`. */
const [FIRST_NUMERIC, LAST_NUMERIC] = [0x45, 0xbf];
const STANDARD = featureSet();
const DESCRIPTORS = featureSet({ "custom-descriptors": true });
const CONTINUATIONS = featureSet({ "stack-switching": true });
const optimizations = optimizationSet();

function annotated(module: Module, features: FeatureSet): ValidModule {
  return validateModule(module, features, { bodies: false });
}

const OPTIONS = {
  ...codeSettings(),
  stackFence: true,
  cpu: new Set<string>(["popcnt"]),
  constants: 0,
};

/** Whether the baseline tier accepts all bodies when it only validates them. */
function quicklyAccepts(valid: ValidModule, features: FeatureSet): boolean {
  const { layout } = moduleInterface(valid);
  try {
    withKernel("x64", (kernel, second) => validateBodies(kernel, valid, layout, { ...OPTIONS, features }, second));
    return true;
  } catch (error) {
    if (!(error instanceof WaftError)) throw error;
    return false;
  }
}

/** Whether the baseline tier accepts all bodies, except those that it leaves to the other compiler. */
function baselineAccepts(valid: ValidModule, features: FeatureSet): boolean {
  const { layout, signatures } = moduleInterface(valid);
  const code = new MachineCode(valid.funcs.length, signatures.length);
  const options = { ...OPTIONS, features };
  try {
    for (const { index } of withKernel("x64", (kernel) => compileBodies(kernel, valid, layout, options, code)) ?? []) {
      validateDefined(valid, index);
    }
    return true;
  } catch (error) {
    if (!(error instanceof WaftError)) throw error;
    return false;
  }
}

/** The error of the validator; undefined if it accepts all bodies. */
function validatorError(valid: ValidModule): WaftError | undefined {
  return errorOf(() => validateAllBodies(valid));
}

/** The error of `action`; undefined if there is none. Other errors than those for modules propagate. */
function errorOf(action: () => void): WaftError | undefined {
  try {
    action();
    return undefined;
  } catch (error) {
    if (!(error instanceof WaftError)) throw error;
    return error;
  }
}

/** The error with which a tier refuses the module. */
function compilerError(
  module: Module,
  features: FeatureSet,
  tier: "baseline" | "optimizing",
): WaftError | undefined {
  return errorOf(() =>
    compileModule(module, { ...OPTIONS, features, target: X64, settings: codeSettings(), optimizations, tier })
  );
}

/** The bytes with one more for the integer at `at`, if one of a single byte is there. */
function withLongerInteger(bytes: Uint8Array, at: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from([...bytes.subarray(0, at), bytes[at] | 0x80, 0, ...bytes.subarray(at + 1)]);
}

/** Replaces a byte that may be a numeric instruction by another such instruction. */
function retype(bytes: Uint8Array, random: Random): void {
  for (let tries = 0; tries < 20; tries++) {
    const at = random.below(bytes.length);
    if (bytes[at] < FIRST_NUMERIC || bytes[at] > LAST_NUMERIC) continue;
    bytes[at] = FIRST_NUMERIC + random.below(LAST_NUMERIC - FIRST_NUMERIC + 1);
    return;
  }
}

/** The module with one to three bytes of one body changed; in some, an integer takes more bytes than it needs. */
function mutated(module: Module, random: Random): Module {
  const funcs = module.funcs.slice();
  const k = random.below(funcs.length);
  const { body } = funcs[k];
  let bytes = body.bytes.slice();
  if (random.chance(25)) {
    for (let n = random.below(4); n >= 0; n--) bytes = withLongerInteger(bytes, random.below(bytes.length));
    // What follows has a type error, which is one unless an integer was cut.
    if (random.chance(70)) retype(bytes, random);
  } else {
    for (let n = 1 + random.below(3); n > 0; n--) {
      const at = random.below(bytes.length);
      bytes[at] = random.chance(50) ? random.below(256) : bytes[random.below(bytes.length)];
    }
  }
  funcs[k] = { ...funcs[k], body: { ...body, bytes } };
  return { ...module, funcs };
}

function describe(module: Module): string {
  return module.funcs.map(({ body }) => [...body.bytes].map((b) => b.toString(16).padStart(2, "0")).join(" ")).join(
    "\n",
  );
}

/** Every instruction of descriptors, in reachable and unreachable code, and casts and functions of exact types. */
const DESCRIPTOR_BODIES = parseModule(`(module
  (rec
    (type $p (sub (struct (field $v (mut i32)))))
    (type $a (sub $p (descriptor $ad) (struct (field $v (mut i32)) (field $w i8))))
    (type $ad (sub (describes $a) (descriptor $am) (struct (field $t i32))))
    (type $am (sub (describes $ad) (struct)))
    (type $b (sub final $a (descriptor $bd) (struct (field $v (mut i32)) (field $w i8) (field $x anyref))))
    (type $bd (sub final $ad (describes $b) (descriptor $bm) (struct (field $t i32))))
    (type $bm (sub final $am (describes $bd) (struct))))
  (type $n (sub (array (mut i32))))
  (type $f (sub (func (param i32) (result i32))))
  (type $g (sub $f (func (param i32) (result i32))))
  (import "m" "open" (func $open (type $f)))
  (import "m" "closed" (func $closed (exact (type $f))))
  (global $ad (ref (exact $ad)) (struct.new_desc $ad (i32.const 1) (struct.new $am)))
  (elem declare func $open $closed $own)
  (func $own (type $g) (local.get 0))
  (func (result (ref $f) (ref (exact $f)) (ref (exact $g)))
    (ref.func $open) (ref.func $closed) (ref.func $own))
  (func (param (ref null (exact $am))) (result (ref (exact $ad)))
    (struct.new_desc $ad (i32.const 2) (local.get 0)))
  (func (param (ref null (exact $ad))) (result (ref (exact $a)))
    (struct.new_default_desc $a (local.get 0)))
  (func (param (ref null $a) (ref null (exact $a))) (result (ref $ad) (ref (exact $ad)))
    (ref.get_desc $a (local.get 0)) (ref.get_desc $a (local.get 1)))
  (func (param (ref null (exact $b))) (result (ref $ad) (ref (exact $bd)))
    (ref.get_desc $a (local.get 0)) (ref.get_desc $b (local.get 0)))
  (func (param anyref (ref null $ad)) (result (ref $a))
    (ref.cast_desc_eq (ref $a) (local.get 0) (local.get 1)))
  (func (param anyref) (result (ref null (exact $a)))
    (ref.cast_desc_eq (ref null (exact $a)) (local.get 0) (global.get $ad)))
  (func (param i64 (ref null $p) (ref null (exact $bd))) (result i64 (ref null (exact $b)))
    (local.get 0) (local.get 1)
    (br_on_cast_desc_eq 0 (ref null $p) (ref (exact $b)) (local.get 2))
    (drop) (ref.null (exact $b)))
  (func (param i64 (ref $p) (ref $ad)) (result i64 (ref null $p))
    (local.get 0) (local.get 1)
    (br_on_cast_desc_eq_fail 0 (ref $p) (ref null $a) (local.get 2))
    (drop) (local.get 1))
  (func (param (ref $b)) (result eqref)
    (br_on_cast 0 (ref $b) (ref (exact $a)) (local.get 0))
    (br_on_cast_fail 0 (ref $b) (ref null $n)))
  (func (result (ref (exact $n)) (ref null (exact $n)))
    (array.new $n (i32.const 1) (i32.const 2))
    (array.new_fixed $n 2 (i32.const 1) (i32.const 2))
    (array.new_default $n (i32.const 1))
    (drop))
  (func (param anyref) (result i32)
    (i32.add (ref.test (ref (exact $p)) (local.get 0)) (ref.test (ref null (exact $b)) (local.get 0))))
  (func (result (ref (exact $b))) (unreachable) (struct.new_desc $b))
  (func (result (ref (exact $b))) (unreachable) (struct.new_default_desc $b))
  (func (result (ref (exact $ad))) (unreachable) (ref.get_desc $a))
  (func (result (ref (exact $a))) (unreachable) (ref.cast_desc_eq (ref (exact $a))))
  (func (result i32 (ref $a)) (unreachable)
    (br_on_cast_desc_eq 0 (ref null any) (ref $a)) (drop) (unreachable))
  (func (result i32 (ref null $a)) (unreachable)
    (br_on_cast_desc_eq_fail 0 (ref null $a) (ref null (exact $b)))))`).bytes;

/** Numbers of modules that were compared, and of those that are invalid. */
interface Compared {
  readonly total: number;
  readonly invalid: number;
}

/** Compares the verdicts on one module; returns whether it is valid. Throws an AssertionError if they differ. */
function compareVerdicts(changed: Module, features: FeatureSet, place: string): boolean {
  const theirs = annotated(changed, features);
  const error = validatorError(theirs);
  const expected = error === undefined;
  if (error !== undefined) {
    for (const tier of ["baseline", "optimizing"] as const) {
      const found = compilerError(changed, features, tier);
      const where = `${place}, ${tier}`;
      assert.deepEqual([found?.name, found?.message, found?.place], [error.name, error.message, error.place], where);
    }
  }
  for (const accepts of [baselineAccepts, quicklyAccepts]) {
    const ours = annotated(changed, features);
    const where = `${place}, ${accepts.name}`;
    let actual: boolean;
    try {
      actual = accepts(ours, features);
    } catch (error) {
      assert(error instanceof Bug);
      assert.fail(`${where}: ${error.message}\n${describe(changed)}`);
    }
    assert.equal(actual, expected, `${where}\n${describe(changed)}`);
    if (expected) assert.deepEqual(ours.usedFeatures, theirs.usedFeatures, where);
  }
  return expected;
}

/** Compares the verdicts on the modules of `seed` and their mutants. Throws an AssertionError if they differ. */
export function compareSeed(seed: number): Compared {
  let total = 0;
  let invalid = 0;
  const random = new Random(seed * 77 + 5);
  const compareMutants = (binary: Uint8Array, features: FeatureSet, mutations: number) => {
    const module = decodeModule(binary);
    if (module.funcs.length === 0) return;
    for (let n = 0; n < mutations; n++) {
      const changed = n === 0 ? module : mutated(module, random);
      total++;
      if (!compareVerdicts(changed, features, `seed ${seed}, mutation ${n}`)) invalid++;
    }
  };
  // With descriptors, the same instructions make exact types.
  const features = [STANDARD, CONTINUATIONS, STANDARD, DESCRIPTORS][seed % 4];
  for (const binary of generateModules(seed, COMPILED_FEATURES)) compareMutants(binary, features, MUTATIONS_PER_MODULE);
  for (const binary of [parseModule(descriptorProgram(seed)).bytes, DESCRIPTOR_BODIES]) {
    compareMutants(binary, DESCRIPTORS, MUTATIONS_WITH_DESCRIPTORS);
  }
  for (let k = 0; k < CONTINUATION_MODULES; k++) {
    const { bytes } = parseModule(continuationModule(seed * CONTINUATION_MODULES + k));
    compareMutants(bytes, CONTINUATIONS, CONTINUATION_MUTATIONS);
  }
  return { total, invalid };
}
