/**
 * The files of the compiler's rooms that are written in the subset that compiles to WebAssembly (rewrite.ts), and those
 * that are not yet. A file moves from PENDING to PORTABLE and never back.
 */

/** Files below engine/ in the subset, callees first. */
export const PORTABLE: readonly string[] = [
  "ir/ops.ts",
  "ir/types.ts",
  "ir/canonical_nan.ts",
  "ir/function.ts",
  "ir/eval.ts",
  "optimize/scratch.ts",
  "optimize/cfg.ts",
  "optimize/uses.ts",
  "optimize/blocks.ts",
  "optimize/dead_code.ts",
  "optimize/block_placement.ts",
  "optimize/coalesce_fuel.ts",
  "optimize/jump_threading.ts",
  "optimize/memory_state.ts",
  "optimize/licm.ts",
  "optimize/promote.ts",
  "optimize/value_range.ts",
  "optimize/dominating_conditions.ts",
  "optimize/rewriting.ts",
  "optimize/divide.ts",
  "optimize/simplify.ts",
  "optimize/gvn.ts",
  "optimize/reassociation.ts",
  "optimize/nan_bits.ts",
  "optimize/induction_variables.ts",
  "optimize/versioning_conditions.ts",
  "optimize/loop_versioning.ts",
  "optimize/passes.ts",
  "codegen/vcode.ts",
  "codegen/allocation.ts",
  "regalloc/allocator_options.ts",
  "regalloc/block_facts.ts",
  "regalloc/liveness.ts",
  "regalloc/occupancy.ts",
  "regalloc/option_restrictions.ts",
  "regalloc/split_position.ts",
  "regalloc/linear_scan.ts",
  "regalloc/spill_slots.ts",
  "regalloc/parallel_moves.ts",
  "regalloc/resolve.ts",
  "regalloc/allocate.ts",
  "regalloc/hoist_constants.ts",
];

/**
 * Files below engine/ that the compiler runs and that are not in the subset yet. A folder stands for all of its files
 * that are in no other list.
 */
export const PENDING: readonly string[] = [
  "ir/builder.ts",
  "translate/",
  "codegen/",
  "backend_x64/",
  "backend_arm64/",
];

/** Files of these rooms of which the compiler runs nothing: rows of tables, and tools. */
export const UNUSED: readonly string[] = [
  "ir/vector_ops.ts",
  "ir/parse.ts",
  "ir/print.ts",
  "ir/verify.ts",
  "regalloc/check_allocation.ts",
];

/** Declarations of files in the subset that only TypeScript uses, by file. */
export const HOST_ONLY: Readonly<Record<string, readonly string[]>> = {
  "ir/ops.ts": ["OpName", "OpRow", "NameOf"],
  "ir/types.ts": ["Ty"],
  "ir/canonical_nan.ts": ["canonicalLanes"],
  "optimize/passes.ts": ["optimize", "passOptions"],
  "regalloc/allocator_options.ts": ["allocatorOptions", "countApplications"],
  "regalloc/allocate.ts": ["allocateRegisters"],
};
