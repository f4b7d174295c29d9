/**
 * Exact counts of runs: calls of functions, iterations of loops, allocated objects, growth of memories, calls of the
 * host.
 *
 * @module
 */
export { type CountedInstance, CountedModule, type CountOptions } from "./counted_module.ts";
export type { CountedPlace, HostCalls, RunCounts } from "./run_counts.ts";
