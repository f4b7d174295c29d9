/**
 * The analysis of modules for optimized and for deterministic code, which compile.ts loads with the first such module.
 */
export { countedFunctions, stackRuleOf } from "../translate/counted_functions.ts";
export { moduleEnv } from "../translate/module_env.ts";
