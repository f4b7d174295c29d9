/**
 * The static types of the operands of casts, which only validation computes. In: the environment of a module with valid
 * bodies. Out: the types, by offset. Only bodies with casts are read.
 */
import { BODY_RULES } from "../validate/late_rules.ts";
import { BODY } from "../wasm/body_flags.ts";
import type { ModuleEnv } from "./module_env.ts";
import type { CastTypes } from "./valid_body.ts";

/** The types of the operands of all tests and casts of the module. */
export function castTypes({ valid, summaries }: Pick<ModuleEnv, "valid" | "summaries">): CastTypes {
  const found = { at: [], heap: [], isNullable: [] };
  for (let k = 0; k < valid.funcs.length; k++) {
    if ((summaries.flags[k] & BODY.CAST) === 0) continue;
    BODY_RULES.get().validateBody(valid, valid.importedFuncCount + k, found);
  }
  return {
    at: Int32Array.from(found.at),
    heap: Int32Array.from(found.heap),
    isNullable: Uint8Array.from(found.isNullable),
  };
}
