/**
 * The optimizer gives the same IR in three forms: TypeScript, WebAssembly on the host's engine, and machine code of the
 * optimizing tier. Every file of the compiler's rooms is in the subset that compiles, or in the list of those that are
 * not yet.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { programBytes, PROGRAMS } from "../../bench/programs.ts";
import { fromBase64 } from "../../engine/base/base64.ts";
import { KERNEL } from "../../engine/baseline/generated/kernel_x64.ts";
import { evalHi, evalLo, evaluate } from "../../engine/ir/eval.ts";
import { IrFunction } from "../../engine/ir/function.ts";
import { OP, OP_ROWS } from "../../engine/ir/ops.ts";
import { TY } from "../../engine/ir/types.ts";
import { OPTIMIZATION_ROWS, type OptimizationSet, optimizationSet } from "../../engine/settings/optimizations.ts";
import { ProgramMaker } from "../../engine/optimize/testing/random_functions.ts";
import { buildCompiler, portableSubset } from "../../scripts/generate/portable/build_compiler.ts";
import { HOST_ONLY, PORTABLE, UNUSED } from "../../scripts/generate/portable/portable_files.ts";
import { GENERATED_FEATURES, generateModules } from "../fuzz/generate_module.ts";
import { translatedFunctions } from "../support/translated_functions.ts";
import { OptimizerForms } from "./optimizer_forms.ts";

const ENGINE = fileURLToPath(new URL("../../engine/", import.meta.url));
const ROOMS = ["ir", "translate", "optimize", "codegen", "regalloc", "backend_x64", "backend_arm64"];
/** Options of the translation, by turns. */
const TRANSLATIONS = [
  {},
  { explicitBounds: true },
  { deterministic: true },
  { fuel: true, interruptible: true, explicitBounds: true },
];
/** Every pass whose result may differ from its input. */
const PASSES = [
  ...["jump-threading", "gvn", "dead-code", "blocks", "promote", "dead-params", "licm", "loop-versioning"],
  ...["reassociation", "nan-bits", "coalesce-fuel", "block-placement"],
];
const SEEDS = Number(Deno.env.get("WAFT_SEEDS") ?? 60);

const subset = await portableSubset();

/** A set of optimizations with every key on, or off. */
function everyOptimization(on: boolean): OptimizationSet {
  return optimizationSet(Object.fromEntries(OPTIMIZATION_ROWS.map(({ name }) => [name, on])));
}

const SETS = [optimizationSet(), everyOptimization(true), everyOptimization(false)];

let forms: OptimizerForms | undefined;
async function optimizerForms(): Promise<OptimizerForms> {
  return forms ??= new OptimizerForms(await buildCompiler(subset));
}

/** Compares the forms on the functions of a module. */
function compareModule(forms: OptimizerForms, name: string, bytes: Uint8Array<ArrayBuffer>, turn: number): void {
  for (const [n, optimizations] of SETS.entries()) {
    let at = 0;
    for (const f of translatedFunctions(bytes, { ...TRANSLATIONS[turn % TRANSLATIONS.length], optimizations })) {
      try {
        forms.compare(f, optimizations);
      } catch (error) {
        throw new Error(`${name}, function ${at}, set ${n}, translation ${turn % TRANSLATIONS.length}`, {
          cause: error,
        });
      }
      at++;
    }
  }
  forms.reset();
}

Deno.test("every file of the compiler's rooms is in the subset, or not run by the compiler", () => {
  const missing: string[] = [], twice: string[] = [];
  for (const room of ROOMS) {
    for (const name of readdirSync(ENGINE + room)) {
      const file = `${room}/${name}`;
      if (!name.endsWith(".ts") || name.endsWith("_test.ts")) continue;
      const count = [PORTABLE, UNUSED].filter((list) => list.includes(file)).length;
      if (count === 0) missing.push(file);
      if (count > 1) twice.push(file);
    }
  }
  assert.deepEqual({ missing, twice }, { missing: [], twice: [] });
  const gone = [...PORTABLE, ...UNUSED, ...Object.keys(HOST_ONLY)].filter((path) => !existsSync(ENGINE + path));
  assert.deepEqual(gone, []);
});

Deno.test("every file in the subset fits it", () => {
  assert.deepEqual(subset.problems.map(({ file, line, what }) => `${file}:${line}: ${what}`), []);
});

Deno.test("the optimizer gives the same IR in three forms: programs and random functions", async () => {
  const forms = await optimizerForms();
  for (const [turn, program] of PROGRAMS.entries()) compareModule(forms, program.name, programBytes(program), turn);
  for (const name of ["files", "lisp", "pack", "threads", "words"]) {
    const bytes = readFileSync(new URL(`../../examples/wasi/${name}.wasm`, import.meta.url));
    compareModule(forms, name, new Uint8Array(bytes), name.length);
  }
  compareModule(forms, "kernel", new Uint8Array(fromBase64(KERNEL)), 0);
  compareModule(forms, "optimizer", await buildCompiler(subset), 1);
  assert.ok(forms.functions > 2000, `${forms.functions} functions`);
  for (let seed = 1; seed <= SEEDS; seed++) {
    for (const bytes of generateModules(seed, GENERATED_FEATURES)) compareModule(forms, `seed ${seed}`, bytes, seed);
    for (const optimizations of SETS) {
      forms.compare(new ProgramMaker(seed, 12 + (seed % 60), seed % 2 === 0).make(), optimizations);
    }
  }
  assert.deepEqual(PASSES.filter((pass) => !forms.passes.has(pass)), []);
});

/** A function that divides its parameter by constants, all four ways. */
function dividing(ty: number, divisors: readonly (readonly [lo: number, hi: number])[]): IrFunction {
  const f = new IrFunction();
  f.reset(16);
  const k = f.addBlock(0, 0);
  const sched = [f.append(OP.PARAM, ty, 0, 0, 0, 0)];
  const results: number[] = [];
  for (const [lo, hi] of divisors) {
    const divisor = f.append(OP.CONST, ty, 0, 0, ty === TY.I32 ? 0 : hi, lo);
    sched.push(divisor);
    for (const op of [OP.DIV_S, OP.DIV_U, OP.REM_S, OP.REM_U]) {
      results.push(f.append(op, ty, sched[0], divisor, 0, 3));
      sched.push(results[results.length - 1]);
    }
  }
  const first = f.allocPool(results.length);
  f.pool.set(results, first);
  sched.push(f.append(OP.RETURN, TY.NONE, first, results.length, 0, 0));
  f.ensure(sched.length);
  f.sched.set(sched);
  f.schedCount = sched.length;
  f.blockEnd[k] = sched.length;
  f.blockParams[k] = 1;
  return f;
}

Deno.test("the optimizer gives the same IR in three forms: divisions by constants", async () => {
  const forms = await optimizerForms();
  const words = [0, 1, -1, 0x7fffffff, -0x80000000, 0x7ffffffe, -0x7fffffff];
  for (let n = 2; n < 400; n++) words.push(n, -n, Math.imul(n, 0x9e3779b1));
  for (let bit = 2; bit < 31; bit++) words.push(1 << bit, (1 << bit) - 1, (1 << bit) + 1, -(1 << bit));
  for (const optimizations of SETS) {
    for (let n = 0; n < words.length; n += 8) {
      const some = words.slice(n, n + 8);
      forms.compare(dividing(TY.I32, some.map((lo) => [lo, 0])), optimizations);
      forms.compare(
        dividing(TY.I64, some.flatMap((word) => [[word, word >> 31], [0, word], [word, 5]])),
        optimizations,
      );
    }
  }
});

/** Operands that are extreme in some type, as halves. */
const HALVES: readonly (readonly [lo: number, hi: number])[] = [
  ...[[0, 0], [1, 0], [-1, -1], [-1, 0], [0, 1], [0x7fffffff, 0], [-0x80000000, -1], [0, -0x80000000]] as const,
  ...[[-1, 0x7fffffff], [31, 0], [63, 0], [64, 0], [0x12345678, -0x6543210f], [0x9abcdef, 0x7ff]] as const,
  // floats: 1.5, −2.5, 0.5, −0, 2^31, 2^63, infinity, NaNs, the least and a large number
  ...[[0x3fc00000, 0x3ff80000], [-0x3fe00000, -0x3ffc0000], [0x3f000000, 0x3fe00000]] as const,
  ...[[-0x80000000, -0x80000000], [0x4f000000, 0x41e00000], [0x5f000000, 0x43e00000]] as const,
  ...[[0x7f800000, 0x7ff00000], [0x7fc00001, 0x7ff80001], [0x7f800001, 0x7ff00001], [0x7f7fffff, 0x7fefffff]] as const,
];

Deno.test("constants fold to the same bits in three forms", async () => {
  const forms = await optimizerForms();
  let folded = 0;
  for (let op = OP.ADD; op <= OP.BITCAST; op++) {
    for (const [ty, from] of [[TY.I32, TY.I32], [TY.I64, TY.I64], [TY.F32, TY.F32], [TY.F64, TY.F64]]) {
      for (const other of [from, TY.I32, TY.I64, TY.F32, TY.F64]) {
        for (const [aLo, aHi] of HALVES) {
          for (const [bLo, bHi] of HALVES) {
            const outcome = evaluate(op, ty, other, aLo, aHi, bLo, bHi, 3);
            const lo = evalLo, hi = evalHi;
            folded += Number(outcome === 0);
            for (const form of forms.exports) {
              const found = form.fold(op, ty, other, aLo, aHi, bLo, bHi, 3);
              if (found === outcome && (outcome !== 0 || (form.foldedLow() === lo && form.foldedHigh() === hi))) {
                continue;
              }
              assert.fail(
                `${OP_ROWS[op].name} ${ty} ${other} ${aLo}:${aHi} ${bLo}:${bHi}: ${found} ${form.foldedLow()}:` +
                  `${form.foldedHigh()} for ${outcome} ${lo}:${hi}`,
              );
            }
          }
        }
      }
    }
  }
  assert.ok(folded > 100_000, `${folded} folded`);
});
