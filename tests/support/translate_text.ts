/**
 * Translates module text to the text of its functions' IR, for golden tests. Every function is verified.
 */
import { noneBut } from "../../engine/testing/optimizations.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { IrFunction } from "../../engine/ir/function.ts";
import { printFunction, type PrintOptions } from "../../engine/ir/print.ts";
import { verifyFunction } from "../../engine/ir/verify.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { FunctionTranslator } from "../../engine/translate/function.ts";
import { type EnvOptions, moduleEnv } from "../../engine/translate/module_env.ts";
import { validateModule } from "../../engine/validate/module.ts";

/** The IR text of defined function `index` of a module in text form; `(module …)` may be omitted. */
export function translateText(
  text: string,
  index = 0,
  options: Partial<EnvOptions> & PrintOptions = {},
): string {
  const valid = validateModule(parseModule(text), featureSet());
  const f = new IrFunction();
  new FunctionTranslator().translate(moduleEnv(valid, { optimizations: noneBut({}), ...options }), index, f);
  verifyFunction(f, "translation");
  return printFunction(f, options);
}
