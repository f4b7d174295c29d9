/**
 * The IR of modules, as the optimizer gets it. In: a binary module and options of the translation. Out: its functions,
 * one after another.
 */
import { decodeModule } from "../../engine/binary/decode.ts";
import { featureSet } from "../../engine/features.ts";
import { IrFunction } from "../../engine/ir/function.ts";
import { FunctionTranslator } from "../../engine/translate/function.ts";
import { type EnvOptions, moduleEnv } from "../../engine/translate/module_env.ts";
import { validateModule } from "../../engine/validate/module.ts";

/** Translates the functions of a module, each into the same IrFunction. */
export function* translatedFunctions(bytes: Uint8Array<ArrayBuffer>, options: EnvOptions): Generator<IrFunction> {
  const valid = validateModule(decodeModule(bytes), featureSet());
  const env = moduleEnv(valid, options);
  const translator = new FunctionTranslator();
  for (let i = 0; i < valid.funcs.length; i++) {
    const f = new IrFunction();
    translator.translate(env, i, f);
    yield f;
  }
}
