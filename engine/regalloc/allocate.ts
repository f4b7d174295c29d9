/**
 * The optimizing register allocator: VCode → Allocation, in four steps.
 *
 *     VCode ── block_facts.ts ──→ positions, loops, frequencies
 *           ── liveness.ts ─────→ live intervals, uses, fixed ranges
 *           ── linear_scan.ts ──→ a register or a slot per interval     (split_position.ts chooses split positions)
 *           ── spill_slots.ts ──→ a stack slot per value in memory
 *           ── resolve.ts ──────→ locations of operands, edits          (parallel_moves.ts orders parallel moves)
 *
 * Relies on VCode's contract, and on the following: each register has one definition, which dominates its uses; block 0
 * has no parameters and no incoming edges; registers that a block's last instruction defines are moved on its edges
 * only; no instruction needs more registers at once than there are. check_allocation.ts verifies the results
 * independently.
 */
import type { Allocation } from "../codegen/allocation.ts";
import {
  type AllocatableRegisters,
  type AllocatorOptions,
  allocatorOptions,
  countApplications,
} from "./allocator_options.ts";
import { BlockFacts } from "./block_facts.ts";
import { LinearScan } from "./linear_scan.ts";
import { Liveness } from "./liveness.ts";
import { Resolver } from "./resolve.ts";
import { SpillSlots } from "./spill_slots.ts";
import type { RegisterFile } from "../codegen/target.ts";
import type { OptimizationSet } from "../settings/optimizations.ts";
import type { Statistics } from "../base/statistics.ts";
import type { VCode } from "../codegen/vcode.ts";

/** State that the steps reuse from function to function. Only one function at a time may be allocated in it. */
export class AllocatorWorkspace {
  readonly facts: BlockFacts = new BlockFacts();
  readonly live: Liveness = new Liveness();
  readonly scan: LinearScan = new LinearScan(this.live, this.facts);
  readonly slots: SpillSlots = new SpillSlots();
  readonly resolver: Resolver = new Resolver(this.live, this.facts);
}

/**
 * Allocates registers and stack slots for `v` and writes the result to `out`. `statistics` counts applications of the
 * optimization keys (allocator_options.ts).
 */
export function allocateRegisters(
  v: VCode,
  registers: RegisterFile,
  optimizations: OptimizationSet,
  out: Allocation,
  statistics: Statistics,
  workspace: AllocatorWorkspace = new AllocatorWorkspace(),
): void {
  const options = allocatorOptions(optimizations, registers.denied);
  runSteps(v, registers, registers.halfSlots === true, options, out, workspace);
  countApplications(options, registers.denied, statistics);
}

/** The steps; `halves`: whether slots may have 4 bytes. Applications are counted in `options`. */
export function runSteps(
  v: VCode,
  registers: AllocatableRegisters,
  halves: boolean,
  options: AllocatorOptions,
  out: Allocation,
  workspace: AllocatorWorkspace,
): void {
  const { facts, live, scan, slots, resolver } = workspace;
  out.reset();
  facts.compute(v);
  live.compute(v, facts, registers);
  scan.run(v, registers, options);
  slots.assign(v, live, scan.slotted, scan.slottedCount, halves, options, out);
  resolver.run(v, slots.location, options, out);
}
