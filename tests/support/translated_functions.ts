/**
 * The IR of modules, as the optimizer gets it. In: a binary module and options of the translation. Out: its functions,
 * one after another.
 */
import { decodeModule } from "../../engine/binary/decode.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { IrFunction } from "../../engine/ir/function.ts";
import { FunctionTranslator } from "../../engine/translate/function.ts";
import { type EnvOptions, type ModuleEnv, moduleEnv } from "../../engine/translate/module_env.ts";
import type { Module } from "../../engine/wasm/module.ts";
import { validateModule } from "../../engine/validate/module.ts";

interface TranslatedModule {
  readonly env: ModuleEnv;
  readonly functions: Iterable<IrFunction>;
}

/** The environment of a module and its functions, each translated when it is taken. */
export function translatedModule(bytes: Uint8Array<ArrayBuffer>, options: EnvOptions): TranslatedModule {
  return translatedDecoded(decodeModule(bytes), options);
}

/** The same for a module that was decoded, or parsed from text. */
export function translatedDecoded(module: Module, options: EnvOptions): TranslatedModule {
  const valid = validateModule(module, featureSet());
  const env = moduleEnv(valid, options);
  return { env, functions: translateAll(env, valid.funcs.length) };
}

function* translateAll(env: ModuleEnv, count: number): Generator<IrFunction> {
  const translator = new FunctionTranslator();
  for (let i = 0; i < count; i++) {
    const f = new IrFunction();
    translator.translate(env, i, f);
    yield f;
  }
}

/** Translates the functions of a module. */
export function translatedFunctions(bytes: Uint8Array<ArrayBuffer>, options: EnvOptions): Iterable<IrFunction> {
  return translatedModule(bytes, options).functions;
}
