/** Block placement by branch hints: an unlikely block is placed at the end of the function. */
import assert from "node:assert/strict";
import { IrFunction } from "../../engine/ir/function.ts";
import { printFunction } from "../../engine/ir/print.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";
import { optimize } from "../../engine/optimize/passes.ts";
import { Statistics } from "../../engine/base/statistics.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import { textToBinary } from "../../engine/text/parse_module.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { FunctionTranslator } from "../../engine/translate/function.ts";
import { moduleEnv } from "../../engine/translate/module_env.ts";

/** The IR of the last function, optimized. */
function compiled(text: string): string {
  const valid = validateModule(decodeModule(textToBinary(text)), featureSet());
  const f = new IrFunction();
  const env = moduleEnv(valid, { optimizations: optimizationSet() });
  new FunctionTranslator().translate(env, valid.funcs.length - 1, f);
  optimize(f, optimizationSet(), new Statistics());
  return printFunction(f);
}

/** A function with a loop whose `if` is hinted by `hint`, with condition `condition` on the local $x. */
function looping(hint: string, condition: string): string {
  return `(module (memory 1) (func $other) (func (param $x i32)
    (loop $l
      ${hint} (if ${condition} (then (i32.store (i32.const 4) (local.get $x))))
      (local.set $x (i32.sub (local.get $x) (i32.const 1)))
      (br_if $l (local.get $x)))))`;
}

const HINTS = { likely: '(@metadata.code.branch_hint "\\01")', unlikely: '(@metadata.code.branch_hint "\\00")' };

Deno.test("an unlikely arm is placed after the loop, others in it", () => {
  const condition = "(i32.and (local.get $x) (i32.const 255))";
  assert.match(compiled(looping(HINTS.unlikely, condition)), /BRANCH v\d+ b2\(\) b\d+\([^]*unlikely[^]*^b2\(\) cold/m);
  assert.doesNotMatch(compiled(looping(HINTS.likely, condition)), /cold/);
  assert.doesNotMatch(compiled(looping("", condition)), /likely|cold/);
});
