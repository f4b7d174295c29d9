/**
 * The optimizer: an IrFunction as translated in, the same function improved out, ready for instruction selection. The
 * list of passes is `runPasses`; each comment gives the reason for a pass's place in it.
 */
import type { IrFunction } from "../ir/function.ts";
import type { OptimizationSet } from "../settings/optimizations.ts";
import type { Statistics } from "../base/statistics.ts";
import { compactBlocks, tidyBlocks } from "./blocks.ts";
import { ControlFlow } from "./cfg.ts";
import { coalesceFuel } from "./coalesce_fuel.ts";
import { removeDeadCode } from "./dead_code.ts";
import { Gvn } from "./gvn.ts";
import { placeBlocks } from "./block_placement.ts";
import { hoistInvariants } from "./licm.ts";
import { versionLoops } from "./loop_versioning.ts";
import { MemoryState } from "./memory_state.ts";
import { removeCanonicalizations } from "./nan_bits.ts";
import { countPasses, PassCounts, type PassOptions, passOptions } from "./pass_options.ts";
import { promoteGlobals } from "./promote.ts";
import { reassociate } from "./reassociation.ts";
import { threadJumps } from "./jump_threading.ts";

/** State that the passes reuse from function to function. Only one function at a time may be optimized in it. */
export class OptimizerWorkspace {
  readonly flow: ControlFlow = new ControlFlow();
  readonly gvn: Gvn = new Gvn();
  readonly memory: MemoryState = new MemoryState();
  /** The counts of the last function. */
  counts: PassCounts = new PassCounts();
}

/** A callback that sees the function after each pass: verification and dumps. */
export type AfterPass = (pass: string, f: IrFunction) => void;

/** Runs all passes over `f` in `workspace`. `statistics` counts, by key, how often an optimization applied. */
export function optimize(
  f: IrFunction,
  optimizations: OptimizationSet,
  statistics: Statistics,
  afterPass?: AfterPass,
  workspace: OptimizerWorkspace = new OptimizerWorkspace(),
): void {
  runPasses(f, passOptions(optimizations), workspace, afterPass);
  countPasses(workspace.counts, statistics);
}

/** Runs the passes that `options` enables over `f`, and counts in `workspace` how often they applied. */
export function runPasses(
  f: IrFunction,
  options: PassOptions,
  workspace: OptimizerWorkspace,
  afterPass: AfterPass | undefined,
): void {
  const { flow, gvn, memory } = workspace;
  const counts = new PassCounts();
  workspace.counts = counts;
  // Before GVN, which then knows the decided condition on each path.
  if (threadJumps(f, flow.scratch) > 0) afterPass?.("jump-threading", f);
  flow.compute(f);
  // GVN first: it finds the constants that make code dead, and the equal arguments that make parameters dead.
  if (gvn.run(f, flow, options.gvn)) {
    compactBlocks(f, flow.scratch);
    flow.computeLoops(f);
  }
  counts.simplified = gvn.simplified;
  counts.forwarded = gvn.forwarded;
  counts.covered = gvn.covered;
  counts.coveredByMany = gvn.coveredByMany;
  afterPass?.("gvn", f);
  // Dead code before the blocks are simplified: blocks become empty, and merge points lose the parameters that keep
  // empty blocks from being bypassed.
  removeDeadCode(f, flow);
  afterPass?.("dead-code", f);
  tidyBlocks(f, flow);
  afterPass?.("blocks", f);
  if (flow.loopCount > 0) {
    // Loops after that, which leaves the block in front of each loop for moved code. Promotion before motion: the
    // parameters it adds occupy registers of the loop.
    memory.prepare(f, flow);
    if (promoteGlobals(f, flow, memory) > 0) {
      afterPass?.("promote", f);
      removeDeadCode(f, flow);
      afterPass?.("dead-params", f);
    }
    counts.hoistedConstants = hoistInvariants(f, flow, memory, options.hoistConstants);
    afterPass?.("licm", f);
    // After motion, which has hoisted the invariant checks.
    if (options.versionLoops) counts.removedChecks = versionLoops(f, flow);
    if (counts.removedChecks > 0) afterPass?.("loop-versioning", f);
  }
  if (options.chainTrees || options.orderTrees) {
    const { chained, swapped } = reassociate(f, flow.scratch, options.chainTrees, options.orderTrees);
    counts.chained = chained;
    counts.swapped = swapped;
    if (chained + swapped > 0) afterPass?.("reassociation", f);
  }
  // After the last pass that moves values: they may give a value another use.
  if (f.canonicalizes && options.reduceNans) {
    counts.removedNans = removeCanonicalizations(f, flow);
    if (counts.removedNans > 0) {
      removeDeadCode(f, flow);
      afterPass?.("nan-bits", f);
    }
  }
  if (f.charged && coalesceFuel(f) > 0) afterPass?.("coalesce-fuel", f);
  // Block placement last: it orders the blocks that remain.
  placeBlocks(f, flow);
  afterPass?.("block-placement", f);
}
