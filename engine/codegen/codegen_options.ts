/**
 * The properties of a compilation as selection and emission read them, one field each, and the applications of
 * optimizations that they count. In: a CodegenContext (target.ts). Out: its options, which a function backend keeps for
 * all functions of a module; and the counts by key.
 */
import type { Signature } from "../ir/types.ts";
import type { OptimizationName } from "../settings/optimizations.ts";
import type { CodegenContext } from "./target.ts";

/** How often optimizations applied to the current function. */
export class CodegenCounts {
  affineLea = 0;
  commutedUpdates = 0;
  immediateRotations = 0;
  floatMemory = 0;
  reusedFlags = 0;
  storedConditions = 0;
  threeOperands = 0;
  overRight = 0;
  foldedExtensions = 0;
  forwardedLoads = 0;
  smallFrames = 0;
  elidedFrames = 0;

  reset(): void {
    this.affineLea = 0;
    this.commutedUpdates = 0;
    this.immediateRotations = 0;
    this.floatMemory = 0;
    this.reusedFlags = 0;
    this.storedConditions = 0;
    this.threeOperands = 0;
    this.overRight = 0;
    this.foldedExtensions = 0;
    this.forwardedLoads = 0;
    this.smallFrames = 0;
    this.elidedFrames = 0;
  }
}

/** Options of selection and emission. */
export class CodegenOptions {
  // As in CodegenContext and its layout. `sharedMemories`: 1 per shared memory.
  explicitBounds = false;
  fuel = false;
  stackFence = false;
  memoriesOffset = 0;
  importsOffset = 0;
  sharedLengthsOffset = 0;
  importedFuncs = 0;
  sharedMemories: Uint8Array = new Uint8Array(0);
  signatures: readonly Signature[] = [];

  // Features of processors: x64, then arm64.
  avx = false;
  avx2 = false;
  bmi1 = false;
  bmi2 = false;
  lzcnt = false;
  popcnt = false;
  lse = false;

  // Optimization keys: of both targets.
  /** branch-fold */
  foldsBranches = false;
  /** mask-tables */
  masksTables = false;
  /** stack-reg */
  lazyReloads = false;
  /** v128-const-cache */
  keepsVectors = false;

  // Of x64.
  /** frame-elide */
  elidesFrames = false;
  /** affine-lea */
  affineLea = false;
  /** bmi2-rorx */
  immediateRotations = false;
  /** commute-self-update */
  commutesUpdates = false;
  /** st-flags */
  reusesFlags = false;
  /** store8-flags */
  storesConditions = false;
  /** vex-float-mem */
  floatMemory = false;

  // Of arm64.
  /** frame-elide-reghomed */
  elidesHomedFrames = false;
  /** three-op-sink */
  threeOperands = false;
  /** olddest-rhs-sink */
  overRight = false;
  /** uxtw-add */
  foldsExtensions = false;
  /** store-load-fwd */
  forwardsLoads = false;
  /** small-frame */
  smallFrames = false;

  readonly counts: CodegenCounts = new CodegenCounts();

  /** Whether memory `memory` is shared: checks of its bounds read its length again before they trap. */
  isShared(memory: number): boolean {
    return memory < this.sharedMemories.length && this.sharedMemories[memory] !== 0;
  }
}

/** The options of `context`. */
export function codegenOptions(context: CodegenContext): CodegenOptions {
  const { layout, cpu, optimizations } = context;
  const options = new CodegenOptions();
  options.explicitBounds = context.explicitBounds;
  options.fuel = context.fuel === true;
  options.stackFence = context.stackFence;
  options.memoriesOffset = layout.memoriesOffset;
  options.importsOffset = layout.importsOffset;
  options.sharedLengthsOffset = layout.sharedLengthsOffset;
  options.importedFuncs = layout.importedFuncs;
  options.sharedMemories = Uint8Array.from(context.sharedMemories ?? [], Number);
  options.signatures = context.signatures;
  options.avx = cpu.has("avx");
  options.avx2 = options.avx && cpu.has("avx2");
  options.bmi1 = cpu.has("bmi1");
  options.bmi2 = cpu.has("bmi2");
  options.lzcnt = cpu.has("lzcnt");
  options.popcnt = cpu.has("popcnt");
  options.lse = cpu.has("lse");
  options.foldsBranches = optimizations["branch-fold"];
  options.masksTables = optimizations["mask-tables"];
  options.lazyReloads = optimizations["stack-reg"];
  options.keepsVectors = optimizations["v128-const-cache"];
  options.elidesFrames = optimizations["frame-elide"];
  options.affineLea = optimizations["affine-lea"];
  options.immediateRotations = options.bmi2 && optimizations["bmi2-rorx"];
  options.commutesUpdates = optimizations["commute-self-update"];
  options.reusesFlags = optimizations["st-flags"];
  options.storesConditions = optimizations["store8-flags"];
  // Only the three-operand forms gain from a memory operand.
  options.floatMemory = !options.avx || optimizations["vex-float-mem"];
  options.elidesHomedFrames = optimizations["frame-elide-reghomed"];
  options.threeOperands = optimizations["three-op-sink"];
  options.overRight = optimizations["olddest-rhs-sink"];
  options.foldsExtensions = optimizations["uxtw-add"];
  options.forwardsLoads = optimizations["store-load-fwd"];
  options.smallFrames = optimizations["small-frame"];
  return options;
}

/** Adds the counts of the current function to the context's statistics; `elideKey` is the target's key of frames. */
export function countCodegen({ counts }: CodegenOptions, elideKey: OptimizationName, context: CodegenContext): void {
  const { statistics } = context;
  statistics.count("affine-lea", counts.affineLea);
  statistics.count("commute-self-update", counts.commutedUpdates);
  statistics.count("bmi2-rorx", counts.immediateRotations);
  statistics.count("vex-float-mem", counts.floatMemory);
  statistics.count("st-flags", counts.reusedFlags);
  statistics.count("store8-flags", counts.storedConditions);
  statistics.count("three-op-sink", counts.threeOperands);
  statistics.count("olddest-rhs-sink", counts.overRight);
  statistics.count("uxtw-add", counts.foldedExtensions);
  statistics.count("store-load-fwd", counts.forwardedLoads);
  statistics.count("small-frame", counts.smallFrames);
  statistics.count(elideKey, counts.elidedFrames);
}
