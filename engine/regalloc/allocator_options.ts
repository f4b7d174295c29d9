/**
 * The optimizations that concern the register allocator, named by the freedom that each one gives. Each changes only
 * preferences, so every combination gives a correct allocation; `statistics` counts the applications of each key.
 */
import type { OptimizationSet } from "../optimizations.ts";
import type { Statistics } from "../statistics.ts";

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
  /** All keys, for those that deny registers (target.ts: DeniedRegisters). */
  readonly options: OptimizationSet;
  readonly statistics: Statistics;
}

/** The allocator's view of the optimizations of a compilation. */
export function allocatorOptions(options: OptimizationSet, statistics: Statistics): AllocatorOptions {
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
    options,
    statistics,
  };
}
