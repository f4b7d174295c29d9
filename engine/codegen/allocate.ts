/**
 * The optimizing register allocator: VCode → Allocation, in four steps.
 *
 *     VCode ── block_facts.ts ──→ positions, loops, frequencies
 *           ── liveness.ts ─────→ pieces of live ranges, uses, fixed ranges
 *           ── linear_scan.ts ──→ a register or a slot per piece     (split_position.ts says where to cut)
 *           ── spill_slots.ts ──→ a stack slot per value in memory
 *           ── resolve.ts ──────→ locations of operands, edits       (moves.ts orders parallel moves)
 *
 * What it relies on is VCode's contract, and besides: single definitions that dominate their uses; block 0 has no parameters
 * and no incoming edges; a block's last instruction may define registers, but those are then moved on its edges only; an
 * instruction never asks for more registers at once than there are. check_allocation.ts verifies its results independently.
 */
import type { Allocation } from "./allocation.ts";
import { BlockFacts } from "./block_facts.ts";
import { LinearScan } from "./linear_scan.ts";
import { Liveness } from "./liveness.ts";
import { Resolver } from "./resolve.ts";
import { SpillSlots } from "./spill_slots.ts";
import type { OptimizationSet, RegisterFile } from "./target.ts";
import type { VCode } from "./vcode.ts";

/** What the steps work in; reused from function to function. */
const facts = new BlockFacts();
const live = new Liveness();
const scan = new LinearScan(live, facts);
const slots = new SpillSlots();
const resolver = new Resolver(live, facts);

/** Allocates registers and stack slots for `v` and writes the result to `out`. */
export function allocateRegisters(v: VCode, registers: RegisterFile, _options: OptimizationSet, out: Allocation): void {
  out.reset();
  facts.compute(v);
  live.compute(v, facts, registers);
  scan.run(v, registers);
  slots.assign(v, live, scan.slotted, scan.slottedCount, out);
  resolver.run(v, slots.location, out);
}
