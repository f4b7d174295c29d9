/**
 * The optimization keys of vectors: each applies to a suitable loop, is counted, and changes the code but not the
 * results.
 */
import { equal, notDeepEqual, ok } from "node:assert/strict";
import { X64 } from "../../engine/backend_x64/target.ts";
import { compileModule } from "../../engine/compile/compile.ts";
import { NewEngine } from "../../engine/api/engine.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { type OptimizationName, optimizationSet } from "../../engine/settings/optimizations.ts";
import { parseModule } from "../../engine/text/parse_module.ts";

/** Sums vectors over a loop with two loop-invariant constants. */
const TEXT = `(module (memory 1) (func (export "f") (param $n i32) (result i32) (local $v v128) (local $w v128)
  (loop $l
    (local.set $v (i32x4.add (local.get $v) (v128.and (i32x4.splat (local.get $n)) (v128.const i32x4 7 3 5 9))))
    (local.set $w (v128.xor (i32x4.mul (local.get $v) (v128.const i32x4 3 5 7 11))
      (v128.or (local.get $w) (v128.const i32x4 7 3 5 9))))
    (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
  (i32.xor (i32x4.extract_lane 1 (local.get $v)) (i32x4.extract_lane 2 (local.get $w)))))`;

function compile(key: OptimizationName, on: boolean) {
  return compileModule(parseModule(TEXT), {
    target: X64,
    features: featureSet(),
    optimizations: optimizationSet({ [key]: on }),
    settings: codeSettings(),
    cpu: new Set(["avx", "avx2"]), // sinking requires the three-operand form
    verify: true,
  });
}

for (const key of ["v128-const-cache", "v128-pins", "v128-sink"] as const) {
  Deno.test(`${key} applies, counts and changes the code`, () => {
    const on = compile(key, true), off = compile(key, false);
    ok((on.statistics[key] ?? 0) > 0, "the key was never counted");
    equal(off.statistics[key] ?? 0, 0);
    notDeepEqual(on.bytes, off.bytes);
    const run = (value: boolean) =>
      (NewEngine({ tier: "optimizing", optimizations: { [key]: value } }).compile(TEXT).instantiate().exports["f"] as (
        n: number,
      ) => number)(100);
    equal(run(true), run(false));
  });
}
