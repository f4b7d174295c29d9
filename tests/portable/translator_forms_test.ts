/**
 * Translation gives the same IR in three forms: TypeScript, where validation reports the instructions, and WebAssembly
 * and machine code, which read valid bodies from the description of their module.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { programBytes, PROGRAMS } from "../../bench/programs.ts";
import { UnsupportedError } from "../../engine/base/errors.ts";
import { fromBase64 } from "../../engine/base/base64.ts";
import { Statistics } from "../../engine/base/statistics.ts";
import { KERNEL } from "../../engine/baseline/generated/kernel_x64.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import { IrFunction } from "../../engine/ir/function.ts";
import { passOptions } from "../../engine/optimize/pass_options.ts";
import { optimize } from "../../engine/optimize/passes.ts";
import { passBits } from "../../engine/portable/compiler_interface.ts";
import { scanBodies } from "../../engine/portable/scan_bodies.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { OPTIMIZATION_ROWS, type OptimizationSet, optimizationSet } from "../../engine/settings/optimizations.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { BodyScan } from "../../engine/translate/body_scan.ts";
import { describeModule } from "../../engine/translate/describe_module.ts";
import { DescriptionReader, readBodies, readModuleFacts } from "../../engine/translate/module_description.ts";
import { FunctionTranslator } from "../../engine/translate/function.ts";
import { type EnvOptions, type ModuleEnv, moduleEnv } from "../../engine/translate/module_env.ts";
import { summarize } from "../../engine/translate/summaries.ts";
import { ValidBodyTranslator } from "../../engine/translate/valid_body.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { buildCompiler, portableSubset } from "../../scripts/generate/portable/build_compiler.ts";
import { compilerExports } from "../../scripts/generate/portable/compiler_forms.ts";
import { OptimizerModule, snapshotOf } from "../../scripts/generate/portable/optimizer_module.ts";
import { TranslatorModule } from "../../scripts/generate/portable/translator_module.ts";
import { GENERATED_FEATURES, generateModules } from "../fuzz/generate_module.ts";
import { translatedModule } from "../support/translated_functions.ts";

const SEEDS = Number(Deno.env.get("WAFT_SEEDS") ?? 60);
/** Options of the translation, by turns. */
const TRANSLATIONS: readonly Omit<EnvOptions, "optimizations">[] = [
  {},
  { explicitBounds: true },
  { deterministic: true },
  { fuel: true, interruptible: true, explicitBounds: true },
  { deterministic: true, nanCode: "x64" },
  { deterministic: true, nanCode: "arm64", stack: "logged" },
  { deterministic: true, nanCode: "own", fuel: true },
];

function everyOptimization(on: boolean): OptimizationSet {
  return optimizationSet(Object.fromEntries(OPTIMIZATION_ROWS.map(({ name }) => [name, on])));
}

const SETS = [optimizationSet(), everyOptimization(true), everyOptimization(false)];

const bytes = await buildCompiler(await portableSubset());
const forms = (["WebAssembly", "machine code"] as const).map((name) => {
  const exports = compilerExports(name, bytes, () => {});
  return { name, exports, translator: new TranslatorModule(exports), optimizer: new OptimizerModule(exports) };
});
let functions = 0;

/** Compares the forms on the functions of a module, with every set and the translation of a turn. */
function compareModule(name: string, module: Uint8Array<ArrayBuffer>, turn: number): void {
  for (const [set, optimizations] of SETS.entries()) {
    const options = { ...TRANSLATIONS[(turn + set) % TRANSLATIONS.length], optimizations };
    const { env, functions: expected } = translatedModule(module, options);
    for (const { translator } of forms) translator.open(env);
    const counts = forms.map(() => new Statistics());
    let at = 0;
    for (const f of expected) {
      const snapshot = snapshotOf(f);
      for (const [n, { name: form, translator, optimizer }] of forms.entries()) {
        optimizer.adopt(translator.translate(at));
        translator.report(counts[n]);
        const difference = optimizer.difference(snapshot) ?? translator.siteDifference(f);
        assert.equal(difference, undefined, `${name}, function ${at}, turn ${turn}, set ${set}, ${form}`);
      }
      functions++;
      at++;
    }
    for (const [n, { exports }] of forms.entries()) {
      assert.deepEqual(counts[n].snapshot(), env.statistics.snapshot(), name);
      exports.reset();
    }
  }
}

function example(name: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(readFileSync(new URL(`../../examples/wasi/${name}.wasm`, import.meta.url)));
}

function environment(module: Uint8Array<ArrayBuffer>, options: Partial<EnvOptions> = {}): ModuleEnv {
  return moduleEnv(validateModule(decodeModule(module), featureSet()), {
    optimizations: optimizationSet(),
    ...options,
  });
}

Deno.test("translation gives the same IR in three forms: programs", () => {
  const before = functions;
  for (const [turn, program] of PROGRAMS.entries()) compareModule(program.name, programBytes(program), turn);
  for (const [turn, name] of ["files", "lisp", "pack", "threads", "words"].entries()) {
    compareModule(name, example(name), turn);
  }
  compareModule("kernel", new Uint8Array(fromBase64(KERNEL)), 0);
  compareModule("compiler", bytes, 3);
  assert.ok(functions - before > 3000, `${functions - before} functions`);
});

Deno.test("translation gives the same IR in three forms: random modules", () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    for (const module of generateModules(seed, GENERATED_FEATURES)) compareModule(`seed ${seed}`, module, seed);
  }
});

Deno.test("scanning bodies gives the same summaries in three forms", () => {
  const modules = [
    ...PROGRAMS.map(programBytes),
    ...["files", "lisp", "pack", "threads", "words"].map(example),
    ...[1, 2, 3, 4, 5].flatMap((seed) => [...generateModules(seed, GENERATED_FEATURES)]),
    bytes,
  ];
  let calls = 0, written = 0;
  for (const module of modules) {
    const valid = validateModule(decodeModule(module), featureSet(), { bodies: false });
    const expected = summarize(valid);
    for (const { name, exports } of forms) {
      assert.deepEqual(scanBodies(exports, valid), expected, name);
      exports.reset();
    }
    calls += expected.callees.length;
    written += expected.tableWritten.filter((flag) => flag === 1).length;
  }
  assert.ok(calls > 1000 && written > 0, `${calls} calls, ${written} tables`);
});

Deno.test("the scan of a malformed body ends", () => {
  const scan = new BodyScan(3, 1);
  const count = [0xff, 0xff, 0xff, 0xff, 0x0f];
  // Locals without types; a call whose index is cut off; a prefix without a code.
  for (const [k, body] of [[...count, ...count], [0, 0x10, 0x80], [0, 0x01, 0xfc]].entries()) {
    scan.scan(k, Uint8Array.from(body), 0);
  }
  assert.deepEqual([...scan.locals], [0, 0, 0]);
  assert.deepEqual([...scan.calleeStart], [0, 0, 0, 0]);
});

Deno.test("the optimizer takes a function over from translation, in the memory of both", () => {
  const [optimizations] = SETS;
  const { env, functions: bodies } = translatedModule(example("lisp"), { optimizations });
  const bits = passBits(passOptions(optimizations));
  for (const { translator } of forms) translator.open(env);
  let at = 0;
  for (const f of bodies) {
    optimize(f, optimizations, new Statistics());
    for (const { name, translator, optimizer } of forms) {
      optimizer.adopt(translator.translate(at));
      optimizer.run(bits);
      assert.equal(optimizer.difference(snapshotOf(f)), undefined, `function ${at}, ${name}`);
    }
    at++;
  }
  for (const { exports } of forms) exports.reset();
});

Deno.test("the description of a module has all that translation reads", () => {
  for (const turn of [1, 2, 3]) {
    for (const module of generateModules(turn, GENERATED_FEATURES)) {
      const env = environment(module, TRANSLATIONS[turn]);
      const { words, bodies } = describeModule(env);
      const reader = new DescriptionReader(words);
      const facts = readModuleFacts(reader), places = readBodies(reader, bodies);
      for (const [key, value] of Object.entries(facts)) {
        const expected = env[key as keyof ModuleEnv];
        if (key !== "summaries") assert.deepEqual(value, expected, key);
      }
      const translator = new ValidBodyTranslator(), f = new IrFunction();
      const { functions: expected } = translatedModule(module, { ...TRANSLATIONS[turn], optimizations: SETS[0] });
      let at = 0;
      for (const g of expected) {
        translator.translate(facts, places, at++, f);
        assert.deepEqual(snapshotOf(f), snapshotOf(g));
        assert.deepEqual(f.inlineSites, g.inlineSites);
      }
    }
  }
});

Deno.test("a function that is too large ends in the same error in all forms, and the next one is translated", () => {
  const count = 1500;
  const sets = Array.from({ length: count }, (_, k) => `local.get 0\nlocal.set ${k + 1}\n`).join("");
  const text = `(func (param i32) (local ${"i32 ".repeat(count)})
      ${"loop\n".repeat(count)} ${sets} ${"local.get 0\nbr_if 0\nend\n".repeat(count)})
    (func (param i32) (result i32) (i32.mul (local.get 0) (i32.const 5)))`;
  const env = moduleEnv(validateModule(parseModule(text), featureSet()), { optimizations: SETS[0] });
  const isTooLarge = (error: unknown) => {
    assert.ok(error instanceof UnsupportedError, String(error));
    assert.match(error.message, /function 0 is too large/);
    assert.equal(error.place.offset, env.bodyOffset[0] + places);
    return true;
  };
  // The offset of the outermost loop: after the declaration of the locals.
  const places = 4;
  const f = new IrFunction();
  assert.throws(() => new FunctionTranslator().translate(env, 0, f), isTooLarge);
  new FunctionTranslator().translate(env, 1, f);
  for (const { translator, optimizer, exports } of forms) {
    translator.open(env);
    assert.throws(() => translator.translate(0), isTooLarge);
    optimizer.adopt(translator.translate(1));
    assert.equal(optimizer.difference(snapshotOf(f)), undefined);
    exports.reset();
  }
});

Deno.test("memory of the compiled forms has a limit, beyond which a function ends in an error", () => {
  const limit = 4 << 20;
  const product = (count: number) =>
    `(func (param i32) (result i32) local.get 0 ${"local.get 0 i32.mul ".repeat(count)})`;
  const text = product(10) + product(60_000);
  const env = moduleEnv(validateModule(parseModule(text), featureSet()), { optimizations: SETS[0] });
  const isFull = (error: unknown) => {
    assert.ok(error instanceof UnsupportedError, String(error));
    assert.match(error.message, /the compiler's memory is too small for function 1/);
    return true;
  };
  const f = new IrFunction();
  for (const name of ["WebAssembly", "machine code"] as const) {
    const exports = compilerExports(name, bytes, () => {});
    const translator = new TranslatorModule(exports), optimizer = new OptimizerModule(exports);
    const compare = (at: number) => {
      new FunctionTranslator().translate(env, at, f);
      optimizer.adopt(translator.translate(at));
      assert.equal(optimizer.difference(snapshotOf(f)), undefined, name);
    };
    exports.limitMemory(limit);
    translator.open(env);
    compare(0);
    assert.throws(() => translator.translate(1), isFull, name);
    assert.ok(exports.memory.buffer.byteLength <= limit, `${exports.memory.buffer.byteLength} bytes`);
    compare(0);
    exports.limitMemory(1 << 30);
    compare(1);
  }
});
