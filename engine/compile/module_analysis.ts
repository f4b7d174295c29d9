/** The analysis of modules for optimized code, which compile.ts loads with the first such module. */
export { moduleEnv } from "../translate/module_env.ts";
