/**
 * The `optimizations` keys that the register allocator obeys, resolved once per function. A key that is absent is on. Each
 * changes only what is preferred, so that every combination gives a right allocation; `statistics` counts how often a key that is
 * on applied.
 */
import type { OptimizationSet } from "../codegen/target.ts";

export interface AllocatorOptions {
  /** call-next-use: store a value where it leaves its register, if that runs less than storing it where it is defined. */
  readonly lateStores: boolean;
  /** stack-reg: a value that a call destroyed comes back where it is used next; off = right after the call. */
  readonly lazyReloads: boolean;
  /** reg-merge: parameters of blocks other than loop headers may be in registers at the block's start. */
  readonly mergeInRegisters: boolean;
  /** v128-pins: so may vectors. */
  readonly vectorPins: boolean;
  /** loop-region-pins: a value in its slot gets a register for a whole loop. */
  readonly loopRegions: boolean;
  /** tee-sink, unary-sink, v128-sink: a value with other uses, a result of one operand, a vector prefer their target's register. */
  readonly teeHints: boolean;
  readonly unaryHints: boolean;
  readonly vectorHints: boolean;
  /** tee-spill-elide: a value prefers the slot of the one it is passed to. */
  readonly sharedSlots: boolean;
  /** compact-i32-frame: values of 4 bytes have slots of 4 bytes. */
  readonly compactSlots: boolean;
  /** entry-arg-pins: parameters of functions without calls may stay in their argument registers beyond the first block. */
  readonly entryArguments: boolean;
  /** ext-fp-pins: values of vector registers that live around a loop may have any of these, not only the first few. */
  readonly allFloats: boolean;
  /** All keys, for those that deny registers (target.ts: DeniedRegisters). */
  readonly options: OptimizationSet;
  readonly statistics: Record<string, number> | undefined;
}

/** Reads the options from the selection of a compilation. */
export function allocatorOptions(options: OptimizationSet, statistics?: Record<string, number>): AllocatorOptions {
  const on = (key: string) => options[key] !== false;
  return {
    lateStores: on("call-next-use"),
    lazyReloads: on("stack-reg"),
    mergeInRegisters: on("reg-merge"),
    vectorPins: on("v128-pins"),
    loopRegions: on("loop-region-pins"),
    teeHints: on("tee-sink"),
    unaryHints: on("unary-sink"),
    vectorHints: on("v128-sink"),
    sharedSlots: on("tee-spill-elide"),
    compactSlots: on("compact-i32-frame"),
    entryArguments: on("entry-arg-pins"),
    allFloats: on("ext-fp-pins"),
    options,
    statistics,
  };
}

/** Counts one application of `key`. */
export function count(options: AllocatorOptions, key: string): void {
  const statistics = options.statistics;
  if (statistics !== undefined) statistics[key] = (statistics[key] ?? 0) + 1;
}
