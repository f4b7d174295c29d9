/**
 * Images are equal whether the compiled form of the compiler makes their bodies or the TypeScript form: bytes, tables,
 * inlined calls and counts; so are the errors. The stored module is that of the sources.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { programBytes, PROGRAMS } from "../../bench/programs.ts";
import { ARM64 } from "../../engine/backend_arm64/target.ts";
import { X64 } from "../../engine/backend_x64/target.ts";
import { UnsupportedError, WaftError } from "../../engine/base/errors.ts";
import { fromBase64 } from "../../engine/base/base64.ts";
import { KERNEL } from "../../engine/baseline/generated/kernel_x64.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import {
  compileBatch,
  type CompiledCode,
  compileLoopEntry,
  compileModule,
  type CompileOptions,
  prepareBodyCompiler,
} from "../../engine/compile/compile.ts";
import type { CodeSource } from "../../engine/compile/compile_options.ts";
import { PortableCompiler } from "../../engine/portable/portable_compiler.ts";
import { compiledForm } from "../../engine/portable/late_form.ts";
import { compilerBytes } from "../../engine/portable/portable_form.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { OPTIMIZATION_ROWS, type OptimizationSet, optimizationSet } from "../../engine/settings/optimizations.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { summarize } from "../../engine/translate/summaries.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { CodeReader } from "../../engine/wasm/code_reader.ts";
import type { Module } from "../../engine/wasm/module.ts";
import { idOf } from "../../engine/wasm/opcodes.ts";
import { FOLDER, generatedFiles } from "../../scripts/generate/portable/build_compiler.ts";
import { compilerExports } from "../../scripts/generate/portable/compiler_forms.ts";
import { outOfDate } from "../../scripts/generate/generated_files.ts";
import { GENERATED_FEATURES, generateModules } from "../fuzz/generate_module.ts";
import { suiteModules } from "../hostile/corpus.ts";
import { HAS_TESTSUITE } from "../support/testsuite.ts";

const SEEDS = Number(Deno.env.get("WAFT_SEEDS") ?? 40);

function everyOptimization(on: boolean): OptimizationSet {
  return optimizationSet(Object.fromEntries(OPTIMIZATION_ROWS.map(({ name }) => [name, on])));
}

const SETS = [optimizationSet(), everyOptimization(true), everyOptimization(false)];
const TARGETS = [
  { target: X64, cpu: new Set(["avx", "avx2", "bmi1", "bmi2", "lzcnt", "popcnt"]) },
  { target: ARM64, cpu: new Set(["lse"]) },
  { target: X64, cpu: new Set<string>() },
] as const;
const SETTINGS = [
  codeSettings(),
  codeSettings({ explicitBounds: true, interruptible: true }),
  codeSettings({ fuel: true }),
  codeSettings({ deterministic: true }),
  codeSettings({ deterministic: true, nans: "x64", stack: "native" }),
  codeSettings({ deterministic: true, fuel: true, nans: "arm64" }),
  codeSettings(),
];
await prepareBodyCompiler("x64");
await prepareBodyCompiler("arm64");

const compiler = compiledForm();
assert.ok(compiler !== undefined, "the host has WebAssembly");

const left = () => assert.fail("the compiled form left a function to the other one");
/** The compiled form, which must compile every function. */
const ALONE: CodeSource = {
  begin: (work) => compiler.begin(work, left),
  beginLoop: (work) => compiler.beginLoop(work, left),
};

let functions = 0, loops = 0;

/** The options of a turn. */
function optionsOf(turn: number): CompileOptions {
  return {
    ...TARGETS[turn % TARGETS.length],
    features: featureSet(),
    optimizations: SETS[(turn >> 1) % SETS.length],
    settings: SETTINGS[turn % SETTINGS.length],
    form: "typescript",
  };
}

function assertSame(found: CompiledCode, expected: CompiledCode, label: string): void {
  assert.deepEqual(found.tables, expected.tables, `${label}: tables`);
  assert.ok(Buffer.compare(found.bytes, expected.bytes) === 0, `${label}: bytes`);
  assert.deepEqual([...found.inlineSites], [...expected.inlineSites], `${label}: inlined calls`);
  assert.deepEqual(found.statistics, expected.statistics, `${label}: counts`);
  assert.deepEqual(found.layout, expected.layout, `${label}: layout`);
}

/** Compares the module's image, and that of a batch of its functions. */
function compareModule(name: string, module: Module, turn: number, form: CodeSource = ALONE): void {
  const options = optionsOf(turn), label = `${name}, turn ${turn}`;
  assertSame(compileModule(module, { ...options, form, hasValidBodies: true }), compileModule(module, options), label);
  functions += module.funcs.length;
  if (module.funcs.length === 0 || options.settings.deterministic) return;
  const wanted = [module.funcs.length >> 1], most = 4000;
  const found = compileBatch(module, { ...options, form, hasValidBodies: true }, wanted, most);
  const expected = compileBatch(module, options, wanted, most);
  assertSame(found, expected, `batch of ${label}`);
  assert.deepEqual(found.jumps, expected.jumps, `batch of ${label}`);
}

/** Compares the code that is entered at the loops of a module, at most `most` of them. */
function compareLoops(name: string, module: Module, turn: number, most: number): void {
  const options = optionsOf(turn);
  if (options.settings.deterministic) return;
  for (const { index, at } of loopsOf(module).slice(0, most)) {
    const place = { index, at, frameBytes: 256 }, label = `${name}, turn ${turn}, loop at ${at}`;
    const found = compileLoopEntry(module, { ...options, form: ALONE, hasValidBodies: true }, place);
    const expected = compileLoopEntry(module, options, place);
    assert.equal(found === undefined, expected === undefined, label);
    if (found === undefined || expected === undefined) continue;
    assertSame(found, expected, label);
    assert.deepEqual([found.entry, found.jumps], [expected.entry, expected.jumps], label);
    loops++;
  }
}

/** The loops of all bodies. */
function loopsOf({ funcs }: Module): { readonly index: number; readonly at: number }[] {
  const LOOP = idOf("loop");
  return funcs.flatMap(({ body }, index) => {
    const reader = new CodeReader(body.bytes, 0, body.bytes.length, body.offset), found = [];
    reader.locals();
    while (!reader.done) {
      if (reader.next() === LOOP) found.push({ index, at: reader.at });
    }
    return found;
  });
}

Deno.test("the stored compiler is that of the sources", async () => {
  assert.deepEqual(outOfDate(FOLDER, await generatedFiles()), [], "run `deno task build:compiler`");
});

Deno.test("images are equal in both forms: programs", () => {
  for (const [turn, program] of PROGRAMS.entries()) {
    compareModule(program.name, decodeModule(programBytes(program)), turn);
  }
  for (const [turn, name] of ["files", "lisp", "pack", "threads", "words"].entries()) {
    const file = readFileSync(new URL(`../../examples/wasi/${name}.wasm`, import.meta.url));
    compareModule(name, decodeModule(new Uint8Array(file)), turn);
  }
  compareModule("kernel", decodeModule(fromBase64(KERNEL)), 0);
  compareModule("compiler", decodeModule(compilerBytes()), 1);
  assert.ok(functions > 1500, `${functions} functions`);
});

Deno.test("code that is entered at loops is equal in both forms", () => {
  for (const [turn, program] of PROGRAMS.entries()) {
    compareLoops(program.name, decodeModule(programBytes(program)), turn, 8);
  }
  for (const [turn, name] of ["files", "lisp", "pack", "threads", "words"].entries()) {
    const file = readFileSync(new URL(`../../examples/wasi/${name}.wasm`, import.meta.url));
    compareLoops(name, decodeModule(new Uint8Array(file)), turn, 30);
  }
  compareLoops("kernel", decodeModule(fromBase64(KERNEL)), 0, 40);
  const before = loops;
  for (let seed = 1; seed <= SEEDS; seed++) {
    for (const bytes of generateModules(seed, GENERATED_FEATURES)) {
      compareLoops(`seed ${seed}`, decodeModule(bytes), seed, 6);
    }
  }
  assert.ok(before > 200 && loops - before > 20, `${before} loops of programs, ${loops - before} of random modules`);
});

Deno.test("images are equal in both forms: random modules", () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    for (const bytes of generateModules(seed, GENERATED_FEATURES)) {
      compareModule(`seed ${seed}`, decodeModule(bytes), seed);
    }
  }
});

Deno.test({
  name: "images are equal in both forms: the specification's suite",
  ignore: !HAS_TESTSUITE,
  fn: () => {
    let turn = 0, compared = 0;
    for (const bytes of suiteModules(2000)) {
      const module = validModule(bytes);
      if (module === undefined) continue;
      compareModule(`suite ${turn}`, module, turn++);
      compared += module.funcs.length;
    }
    assert.ok(compared > 1000, `${compared} functions`);
  },
});

/** The module, if it is valid. */
function validModule(bytes: Uint8Array): Module | undefined {
  try {
    const module = decodeModule(bytes);
    validateModule(module, featureSet());
    return module;
  } catch (error) {
    if (error instanceof WaftError) return undefined;
    throw error;
  }
}

Deno.test("the static types of casts are known, and bodies without casts are not validated for them", () => {
  const text = `(type $a (sub (struct (field i32)))) (type $b (sub $a (struct (field i32) (field i64))))
    (func (param anyref) (result i32) (ref.test (ref $b) (local.get 0)))
    (func (param (ref null $a)) (result i32) (struct.get $b 0 (ref.cast (ref $b) (local.get 0))))
    (func (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))`;
  const module = parseModule(text);
  const CAST = 64;
  const { flags } = summarize(validateModule(module, featureSet()));
  assert.deepEqual(Array.from(flags, (bits) => bits & CAST), [CAST, CAST, 0]);
  for (let turn = 0; turn < 6; turn++) compareModule("casts", module, turn);
});

/** A function whose compilation takes much memory. */
function product(count: number): string {
  return `(func (param i32) (result i32) local.get 0 ${"local.get 0 i32.mul ".repeat(count)})`;
}

Deno.test("functions beyond the memory of the compiled form are compiled by the other one, and those after them by it", () => {
  const exports = compilerExports("WebAssembly", compilerBytes(), () => {});
  exports.limitMemory(6 << 20);
  const small = new PortableCompiler(exports);
  let others = 0;
  const form: CodeSource = {
    begin: (work, otherwise) =>
      small.begin(work, (code, index) => {
        others++;
        return otherwise(code, index);
      }),
    beginLoop: left,
  };
  const callers = Array.from(
    { length: 8 },
    (_, k) => `(func (param i32) (result i32) (call ${k} (call 4 (local.get 0))))`,
  );
  const bodies = [product(10), product(60_000), product(300), product(50_000), product(4)];
  compareModule("products", parseModule([...bodies, ...callers].join("\n")), 0, form);
  assert.equal(others, 2);
});

Deno.test("images are equal when the memory is dropped after each function", () => {
  const exports = compilerExports("WebAssembly", compilerBytes(), () => {});
  let resets = 0;
  const counted = { ...exports, reset: () => (resets++, exports.reset()) };
  for (const [turn, name] of ["lisp", "words"].entries()) {
    const file = readFileSync(new URL(`../../examples/wasi/${name}.wasm`, import.meta.url));
    const before = functions;
    resets = 0;
    compareModule(name, decodeModule(new Uint8Array(file)), turn, new PortableCompiler(counted, 0));
    assert.ok(resets >= functions - before, `${resets} resets`);
  }
});

Deno.test("a function that no form can compile is the same error, and the compiler is usable afterwards", () => {
  const count = 1500;
  const sets = Array.from({ length: count }, (_, k) => `local.get 0\nlocal.set ${k + 1}\n`).join("");
  const text = `(func (param i32) (local ${"i32 ".repeat(count)})
    ${"loop\n".repeat(count)} ${sets} ${"local.get 0\nbr_if 0\nend\n".repeat(count)})`;
  const module = parseModule(text);
  const errorOf = (form: CompileOptions["form"]): string => {
    try {
      compileModule(module, { ...optionsOf(0), form, hasValidBodies: true });
    } catch (error) {
      assert.ok(error instanceof UnsupportedError);
      return `${error.message} ${JSON.stringify(error.place)}`;
    }
    return assert.fail("compiled");
  };
  assert.equal(errorOf(ALONE), errorOf("typescript"));
  compareModule("kernel", decodeModule(fromBase64(KERNEL)), 0);
});
