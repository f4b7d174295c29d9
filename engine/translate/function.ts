/**
 * Function body → IrFunction, in the same pass that validates it: validateBody walks the body and calls the visitor,
 * which is the translation (instructions.ts).
 *
 * Relies on: validation reports only valid instructions, in order. Inlined bodies are validated again as they are
 * walked, so no unvalidated code is emitted.
 */
import type { IrFunction } from "../ir/function.ts";
import { validateBody } from "../validate/code.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import type { BodyVisitor } from "./body_visitor.ts";
import { InstructionTranslator } from "./instructions.ts";
import { translateLoopEntry } from "./loop_entry.ts";
import type { ModuleEnv } from "./module_env.ts";
import { countTranslation } from "./module_facts.ts";

/** Translates function bodies, one at a time. */
export class FunctionTranslator extends InstructionTranslator {
  #valid!: ValidModule;

  /**
   * Validates and translates defined function `definedIndex` of `env` into `f`, which is reset. A translator whose
   * translation has thrown must not be used again.
   */
  translate(env: ModuleEnv, definedIndex: number, f: IrFunction): void {
    this.#valid = env.valid;
    this.prepare(env, definedIndex, f);
    this.visitBody(definedIndex, this);
    this.complete(definedIndex);
    this.#report(env);
  }

  /** The same for the function from the loop at offset `at` on; see {@linkcode translateLoopEntry}. */
  translateLoop(env: ModuleEnv, definedIndex: number, at: number, f: IrFunction): boolean {
    this.#valid = env.valid;
    const isEntered = translateLoopEntry(this, env, definedIndex, at, f);
    if (isEntered) this.#report(env);
    else this.counts.reset();
    return isEntered;
  }

  /** Adds the optimizations that were applied since the last report to the statistics of `env`. */
  #report({ statistics }: ModuleEnv): void {
    countTranslation(this.counts, statistics);
    this.counts.reset();
  }

  visitBody(definedIndex: number, visitor: BodyVisitor): void {
    validateBody(this.#valid, this.#valid.importedFuncCount + definedIndex, visitor);
  }

  openBody(definedIndex: number): void {
    const { bytes, offset } = this.#valid.funcs[definedIndex].body;
    this.reader.reset(bytes, 0, offset);
  }
}
