/** Exploring a module: its code is the engine's, and lines of all stages belong to the right instructions. */
import assert from "node:assert/strict";
import { OPTIMIZING_ARM64 } from "../backend_arm64/optimizing_target.ts";
import { OPTIMIZING_X64 } from "../backend_x64/optimizing_target.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import { compileModule, prepareBodyCompiler } from "../compile/compile.ts";
import type { CompileOptions } from "../compile/compile_options.ts";
import { NewEngine } from "../api/engine.ts";
import { codeSettings } from "../settings/code_settings.ts";
import { ALL_FEATURE_ROWS, featureSet } from "../settings/features.ts";
import { CPU_FEATURES } from "../host/cpu.ts";
import { optimizationSet } from "../settings/optimizations.ts";
import { generateModules } from "../../tests/fuzz/generate_module.ts";
import type { Module } from "../wasm/module.ts";
import { type ExploredStage, exploreModule } from "./explore_module.ts";

const ALL_FEATURES = featureSet(Object.fromEntries(ALL_FEATURE_ROWS.map(({ name }) => [name, true])));

await prepareBodyCompiler("x64");
await prepareBodyCompiler("arm64");

const PROGRAM = `(module
  (import "env" "log" (func $log (param i32)))
  (memory 1)
  (global $g (mut i64) (i64.const 0))
  (table 4 funcref)
  (func $leaf (param i32) (result i32) (i32.mul (local.get 0) (i32.const 3)))
  (func $unused (nop))
  (func $big (export "run") (param $n i32) (result i32) (local $s i32)
    (loop $l
      (local.set $s (i32.add (local.get $s) (call $leaf (i32.load offset=8 (local.get $n)))))
      (call $log (i32.div_u (local.get $s) (local.get $n)))
      (global.set $g (i64.add (global.get $g) (i64.extend_i32_u (local.get $s))))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (if (f64.gt (f64.convert_i32_s (local.get $s)) (f64.const 7)) (then (return (call $big (i32.const 3)))))
    (block $a (block $b (block $c (br_table $a $b $c (local.get $s)))))
    (local.get $s)))`;

function parse(text: string): Module {
  return NewEngine().parse(text);
}

async function explore(text: string) {
  return await exploreModule(parse(text), { features: featureSet() });
}

function stage(stages: readonly ExploredStage[], name: string): ExploredStage {
  const found = stages.find((each) => each.name === name);
  assert.ok(found, name);
  return found;
}

Deno.test("without a host, stages are those of the optimizing tier, with every optional instruction", async () => {
  const text = `(module (func (export "f") (param i64) (result i64) (i64.popcnt (local.get 0))))`;
  const explorer = await exploreModule(parse(text), { features: featureSet(), withoutHost: true });
  const stages = explorer.explore(0);
  const code = stages.filter(({ group }) => group === "code").map(({ name }) => name);
  assert.deepEqual(code, ["x64 optimizing", "arm64 optimizing"]);
  assert.match(stage(stages, "x64 optimizing").lines.map((line) => line.text).join("\n"), /\bpopcnt\b/);
});

Deno.test("observed compilations give the same code", () => {
  const random = [1, 2, 3, 4, 5, 6].flatMap((seed) => generateModules(seed));
  const modules = [parse(PROGRAM), ...random.map((bytes) => NewEngine({ features: ALL_FEATURES }).parse(bytes))];
  for (const target of [OPTIMIZING_X64, OPTIMIZING_ARM64]) {
    for (const tier of ["optimizing", "baseline"] as const) {
      for (const interruptible of [false, true]) {
        const options: CompileOptions = {
          target,
          tier,
          features: ALL_FEATURES,
          optimizations: optimizationSet(),
          settings: codeSettings({ interruptible, explicitBounds: interruptible }),
          cpu: new Set(CPU_FEATURES[target.name]),
        };
        for (const module of modules) {
          const observe = (code: MachineCode) => {
            code.positions = new Map(module.funcs.map((_, k) => [k, new Int32Array(0)]));
          };
          const observed = compileModule(module, { ...options, observe });
          assert.deepEqual(observed.bytes, compileModule(module, options).bytes, `${target.name} ${tier}`);
        }
      }
    }
  }
});

Deno.test("functions are ordered by calls from the exports", async () => {
  const explorer = await explore(PROGRAM);
  assert.deepEqual([...explorer.callOrder()], [2, 0, 1]);
  assert.deepEqual(explorer.functions.map(({ index, name }) => [index, name]), [[1, "leaf"], [2, "unused"], [
    3,
    "big",
  ]]);
});

Deno.test("lines of all stages have the positions of their instructions", async () => {
  const stages = (await explore(PROGRAM)).explore(2);
  const text = stage(stages, "text").lines;
  const posOf = (instruction: string) => {
    const line = text.find((each) => each.text.trim() === instruction);
    assert.ok(line !== undefined && line.pos > 0, instruction);
    return line.pos;
  };
  const rows: [stage: string, line: RegExp, instruction: string][] = [
    ["translated", /= LOAD memory0/, "i32.load offset=8"],
    ["translated", /= DIV_U /, "i32.div_u"],
    ["translated", /= MUL /, "call $leaf"],
    ["dead-code", /= DIV_U /, "i32.div_u"],
    ["x64 optimizing", / div /, "i32.div_u"],
    ["x64 optimizing", / cvtsi2sd |vcvtsi2sd /, "f64.convert_i32_s"],
    ["arm64 optimizing", / udiv /, "i32.div_u"],
    ["arm64 optimizing", / scvtf /, "f64.convert_i32_s"],
    ["x64 baseline", / \$leaf$/, "call $leaf"],
    ["arm64 baseline", / \$leaf$/, "call $leaf"],
  ];
  for (const [name, line, instruction] of rows) {
    const { lines } = stage(stages, name);
    const found = lines.filter((each) => line.test(each.text));
    assert.ok(found.length > 0, `${name}: ${line}\n${lines.map((each) => each.text).join("\n")}`);
    assert.ok(
      found.some(({ pos }) => pos === posOf(instruction)),
      `${name}: ${line} at ${found.map(({ pos }) => pos)}`,
    );
  }
  const product = stage(stages, "translated").lines.find((each) => / = MUL /.test(each.text));
  assert.equal(product?.inlined?.name, "$leaf");
});

Deno.test("optimized code has a position on every line but the prologue, its stack check, and labels", async () => {
  for (const name of ["x64 optimizing", "arm64 optimizing"]) {
    const { lines } = stage((await explore(PROGRAM)).explore(2), name);
    const bare = lines.filter(({ text, pos }) => pos === 0 && !/^L\d+:$/.test(text));
    assert.ok(bare.length < lines.length / 5, `${name}: ${bare.length} of ${lines.length}`);
    const offsets = lines.filter(({ text }) => !/^L\d+:$/.test(text)).map(({ text }) => parseInt(text, 16));
    assert.deepEqual(offsets, [...offsets].sort((a, b) => a - b));
  }
});
