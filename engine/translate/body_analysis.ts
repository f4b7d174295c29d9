/**
 * Analyses that read the bodies of a module in TypeScript, with the table of opcodes: late_body_analysis.ts loads them
 * with the first module that needs one.
 */
export { countedFunctions, stackRuleOf } from "./counted_functions.ts";
export { summarize } from "./summaries.ts";
