/**
 * The optimizations that concern the register allocator, named by the freedom that each one gives. Each changes only
 * preferences, so every combination gives a correct allocation. In: the keys of a compilation and the rows of its
 * target. Out: the allocator's view of them, in which it counts applications; and these counts by key.
 */
import type { DeniedRegisters } from "../codegen/target.ts";
import type { OptimizationSet } from "../settings/optimizations.ts";
import type { Statistics } from "../base/statistics.ts";

/** The registers that may be allocated; masks and orders as in RegisterFile (codegen/target.ts). */
export interface AllocatableRegisters {
  readonly general: number;
  readonly vector: number;
  readonly generalOrder: readonly number[];
  readonly vectorOrder: readonly number[];
}

/** Functions that a row of denied registers concerns. */
export const FUNCTIONS = { ALL: 0, LEAF: 1, CALLING: 2 } as const;

/** A row of denied registers (DeniedRegisters) under the keys of the compilation. */
export interface Denial {
  /** One of {@linkcode FUNCTIONS}. */
  readonly functions: number;
  /** Whether the state of the key denies the registers. */
  readonly isDenied: boolean;
  /** Whether the key denies registers when it is on, and allows them when it is off. */
  readonly deniesWhenOn: boolean;
  /** Whether it concerns only values that live around a loop. */
  readonly isForLongValues: boolean;
  readonly general: number;
  readonly vector: number;
  /** How often the key applied. */
  applied: number;
}

/** Counts how often each option of AllocatorOptions changed an allocation. */
export class AllocationCounts {
  lateStores = 0;
  lazyReloads = 0;
  merged = 0;
  vectorPins = 0;
  loopRegions = 0;
  teeSinks = 0;
  unarySinks = 0;
  vectorSinks = 0;
  sharedSlots = 0;
  compactSlots = 0;
  entryArguments = 0;
  longFloats = 0;
}

export interface AllocatorOptions {
  /**
   * call-next-use: store a value where it leaves its register, if that place runs less often than the definition.
   */
  readonly lateStores: boolean;
  /** stack-reg: a value that a call destroyed is reloaded at its next use; off = right after the call. */
  readonly lazyReloads: boolean;
  /** reg-merge: parameters of blocks other than loop headers may be in registers at the block's start. */
  readonly mergeInRegisters: boolean;
  /** v128-pins: block parameters that are vectors may be in registers at the block's start, loop headers included. */
  readonly vectorPins: boolean;
  /** loop-region-pins: a value in its slot gets a register for a whole loop. */
  readonly loopRegions: boolean;
  /**
   * tee-sink, unary-sink, v128-sink: a value with other uses, a result of one operand, a vector prefer their target's
   * register.
   */
  readonly teeHints: boolean;
  readonly unaryHints: boolean;
  readonly vectorHints: boolean;
  /** tee-spill-elide: a value prefers the slot of the one it is passed to. */
  readonly sharedSlots: boolean;
  /** compact-i32-frame: values of 4 bytes have slots of 4 bytes. */
  readonly compactSlots: boolean;
  /**
   * entry-arg-pins: parameters of functions without calls may stay in their argument registers beyond the first block.
   */
  readonly entryArguments: boolean;
  /** ext-fp-pins: values of vector registers that live around a loop may have any of these, not only the first few. */
  readonly allFloats: boolean;
  readonly denied: readonly Denial[];
  readonly counts: AllocationCounts;
}

/** The allocator's view of the optimizations of a compilation; `rows` are those of its target. */
export function allocatorOptions(options: OptimizationSet, rows: readonly DeniedRegisters[] = []): AllocatorOptions {
  return {
    lateStores: options["call-next-use"],
    lazyReloads: options["stack-reg"],
    mergeInRegisters: options["reg-merge"],
    vectorPins: options["v128-pins"],
    loopRegions: options["loop-region-pins"],
    teeHints: options["tee-sink"],
    unaryHints: options["unary-sink"],
    vectorHints: options["v128-sink"],
    sharedSlots: options["tee-spill-elide"],
    compactSlots: options["compact-i32-frame"],
    entryArguments: options["entry-arg-pins"],
    allFloats: options["ext-fp-pins"],
    denied: rows.map(({ key, when, functions, values, general, vector }) => ({
      functions: functions === "all" ? FUNCTIONS.ALL : functions === "leaf" ? FUNCTIONS.LEAF : FUNCTIONS.CALLING,
      isDenied: options[key] === (when === "on"),
      deniesWhenOn: when === "on",
      isForLongValues: values === "long",
      general,
      vector,
      applied: 0,
    })),
    counts: new AllocationCounts(),
  };
}

/** Adds the applications that `options` counted to `statistics`; `rows` as for allocatorOptions. */
export function countApplications(
  { counts, denied }: AllocatorOptions,
  rows: readonly DeniedRegisters[] = [],
  statistics: Statistics,
): void {
  statistics.count("call-next-use", counts.lateStores);
  statistics.count("stack-reg", counts.lazyReloads);
  statistics.count("reg-merge", counts.merged);
  statistics.count("v128-pins", counts.vectorPins);
  statistics.count("loop-region-pins", counts.loopRegions);
  statistics.count("tee-sink", counts.teeSinks);
  statistics.count("unary-sink", counts.unarySinks);
  statistics.count("v128-sink", counts.vectorSinks);
  statistics.count("tee-spill-elide", counts.sharedSlots);
  statistics.count("compact-i32-frame", counts.compactSlots);
  statistics.count("entry-arg-pins", counts.entryArguments);
  statistics.count("ext-fp-pins", counts.longFloats);
  for (const [n, { key }] of rows.entries()) statistics.count(key, denied[n].applied);
}
