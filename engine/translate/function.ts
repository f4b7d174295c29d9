/**
 * Function body → IrFunction, from a module in this thread. In: the environment of a module whose bodies are valid.
 * Out: IrFunctions, and the counts of optimizations in the statistics of the environment.
 */
import type { IrFunction } from "../ir/function.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { castTypes } from "./cast_types.ts";
import type { ModuleEnv } from "./module_env.ts";
import { countTranslation } from "./module_facts.ts";
import { BodyTranslator, type CastTypes } from "./valid_body.ts";

/** Translates function bodies, one at a time. */
export class FunctionTranslator extends BodyTranslator {
  #valid!: ValidModule;
  /** The environment whose casts are known. */
  #known: ModuleEnv | undefined;

  /**
   * Translates defined function `definedIndex` of `env` into `f`, which is reset. A translator whose translation has
   * thrown must not be used again.
   */
  translate(env: ModuleEnv, definedIndex: number, f: IrFunction): void {
    this.translateBody(env, this.#open(env), definedIndex, f);
    this.#report(env);
  }

  /** The same for the function from the loop at offset `at` on; see {@linkcode translateLoopEntry}. */
  translateLoop(env: ModuleEnv, definedIndex: number, at: number, f: IrFunction): boolean {
    const isEntered = this.translateBodyLoop(env, this.#open(env), definedIndex, at, f);
    if (isEntered) this.#report(env);
    else this.counts.reset();
    return isEntered;
  }

  /** Sets the module; returns the types of its casts. */
  #open(env: ModuleEnv): CastTypes {
    if (this.#known !== env) this.casts = castTypes(env);
    this.#known = env;
    this.#valid = env.valid;
    return this.casts;
  }

  /** Adds the optimizations that were applied since the last report to the statistics of `env`. */
  #report({ statistics }: ModuleEnv): void {
    countTranslation(this.counts, statistics);
    this.counts.reset();
  }

  bodyBytes(definedIndex: number): Uint8Array {
    return this.#valid.funcs[definedIndex].body.bytes;
  }
}
