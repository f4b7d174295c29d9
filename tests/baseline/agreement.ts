/**
 * The baseline tier validates bodies and detects their features itself. In: generated modules with randomly changed
 * bytes in their bodies. Out: whether its verdicts equal those of the validator, an independent implementation of the
 * rules, and whether all tiers refuse a module with the validator's error.
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
import { featureSet } from "../../engine/settings/features.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";
import { moduleInterface } from "../../engine/translate/module_interface.ts";
import { validateAllBodies, validateDefined, validateModule } from "../../engine/validate/module.ts";
import type { ValidModule } from "../../engine/validate/valid_module.ts";
import type { Module } from "../../engine/wasm/module.ts";
import { COMPILED_FEATURES } from "../fuzz/compare.ts";
import { generateModules } from "../fuzz/generate_module.ts";
import { Random } from "../fuzz/random.ts";

const MUTATIONS_PER_MODULE = 60;
const FEATURES = featureSet();
const optimizations = optimizationSet();

function annotated(module: Module): ValidModule {
  return validateModule(module, FEATURES, { bodies: false });
}

const OPTIONS = {
  ...codeSettings(),
  stackFence: true,
  cpu: new Set<string>(["popcnt"]),
  features: FEATURES,
  constants: 0,
};

/** Whether the baseline tier accepts all bodies when it only validates them. */
function quicklyAccepts(valid: ValidModule): boolean {
  const { layout } = moduleInterface(valid);
  try {
    withKernel("x64", (kernel, second) => validateBodies(kernel, valid, layout, OPTIONS, second));
    return true;
  } catch (error) {
    if (!(error instanceof WaftError)) throw error;
    return false;
  }
}

/** Whether the baseline tier accepts all bodies, except those that it leaves to the other compiler. */
function baselineAccepts(valid: ValidModule): boolean {
  const { layout, signatures } = moduleInterface(valid);
  const code = new MachineCode(valid.funcs.length, signatures.length);
  try {
    for (const { index } of withKernel("x64", (kernel) => compileBodies(kernel, valid, layout, OPTIONS, code)) ?? []) {
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
function compilerError(module: Module, tier: "baseline" | "optimizing"): WaftError | undefined {
  return errorOf(() =>
    compileModule(module, { ...OPTIONS, target: X64, settings: codeSettings(), optimizations, tier })
  );
}

/** The module with one to three bytes of one body changed. */
function mutated(module: Module, random: Random): Module {
  const funcs = module.funcs.slice();
  const k = random.below(funcs.length);
  const { body } = funcs[k];
  const bytes = body.bytes.slice();
  for (let n = 1 + random.below(3); n > 0; n--) {
    const at = random.below(bytes.length);
    bytes[at] = random.chance(50) ? random.below(256) : bytes[random.below(bytes.length)];
  }
  funcs[k] = { ...funcs[k], body: { ...body, bytes } };
  return { ...module, funcs };
}

function describe(module: Module): string {
  return module.funcs.map(({ body }) => [...body.bytes].map((b) => b.toString(16).padStart(2, "0")).join(" ")).join(
    "\n",
  );
}

/** Numbers of modules that were compared, and of those that are invalid. */
interface Compared {
  readonly total: number;
  readonly invalid: number;
}

/** Compares the verdicts on one module; returns whether it is valid. Throws an AssertionError if they differ. */
function compareVerdicts(changed: Module, place: string): boolean {
  const theirs = annotated(changed);
  const error = validatorError(theirs);
  const expected = error === undefined;
  if (error !== undefined) {
    for (const tier of ["baseline", "optimizing"] as const) {
      const found = compilerError(changed, tier);
      const where = `${place}, ${tier}`;
      assert.deepEqual([found?.name, found?.message, found?.place], [error.name, error.message, error.place], where);
    }
  }
  for (const accepts of [baselineAccepts, quicklyAccepts]) {
    const ours = annotated(changed);
    const where = `${place}, ${accepts.name}`;
    let actual: boolean;
    try {
      actual = accepts(ours);
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
  for (const binary of generateModules(seed, COMPILED_FEATURES)) {
    const module = decodeModule(binary);
    if (module.funcs.length === 0) continue;
    for (let n = 0; n < MUTATIONS_PER_MODULE; n++) {
      const isValid = compareVerdicts(n === 0 ? module : mutated(module, random), `seed ${seed}, mutation ${n}`);
      total++;
      if (!isValid) invalid++;
    }
  }
  return { total, invalid };
}
