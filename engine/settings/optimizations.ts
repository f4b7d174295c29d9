/**
 * The keys of the manifest's `settings.optimizations`, one row each: target, default and effect. Compilation reads an
 * {@linkcode OptimizationSet}; nothing else decides whether an optimization runs.
 *
 * `state`: "on" or "off" is the default of a key that this build implements; "later" marks a key that it does not
 * implement yet (setting it is accepted and reported); "shape" marks a key whose effect is inherent in the design of
 * this compiler and cannot be disabled (an attempt is reported).
 */
export interface OptimizationRow {
  /** The key in `settings.optimizations`. */
  readonly name: string;
  /** The target that the key affects. */
  readonly target: "both" | "x64" | "arm64";
  /** The default, or the reason why the key cannot be switched. */
  readonly state: "on" | "off" | "later" | "shape";
  /** A short description of the effect. */
  readonly meaning: string;
  /**
   * The key is set by engine options and `--opt` only: every new key, because the names that the manifest accepts are
   * fixed (project/manifest/schema.json; project/settings_test.ts compares them).
   */
  readonly engineOnly?: true;
}

/** All optimization keys, by name. */
export const OPTIMIZATION_ROWS = [
  { name: "affine-lea", target: "x64", state: "on", meaning: "Fold a + ((b ± c) << k) and 3a + c into one LEA" },
  {
    name: "assoc-tree",
    target: "both",
    state: "off",
    meaning: "Evaluate trees of one associative operation with one accumulator",
  },
  {
    name: "bmi2-rorx",
    target: "x64",
    state: "on",
    meaning: "Use RORX for rotations by a constant when the processor has BMI2",
  },
  {
    name: "bounds-facts",
    target: "both",
    state: "on",
    meaning: "Leave out bounds checks that earlier checks prove (explicit mode)",
  },
  {
    name: "branch-fold",
    target: "both",
    state: "on",
    meaning: "Invert and drop branches at emission so that each test has one",
  },
  {
    name: "call-next-use",
    target: "both",
    state: "on",
    meaning: "Save a value before a call only when it is read after it",
  },
  {
    name: "commute-self-update",
    target: "x64",
    state: "on",
    meaning: "Commute an operation so that its result takes the dying operand's register",
  },
  { name: "compact-i32-frame", target: "x64", state: "on", meaning: "Give i32 and f32 spills slots of 4 bytes" },
  {
    name: "deep-fp-pins",
    target: "arm64",
    state: "on",
    meaning: "Let long-lived floats use V4–V7 in functions with calls",
  },
  {
    name: "entry-arg-pins",
    target: "both",
    state: "on",
    meaning: "Keep parameters of call-free functions in their argument registers",
  },
  {
    name: "ext-fp-pins",
    target: "both",
    state: "on",
    meaning: "Let long-lived floats use the whole vector register file",
  },
  {
    name: "frame-elide",
    target: "x64",
    state: "on",
    meaning: "No stack adjustment in functions that need no frame",
  },
  {
    name: "frame-elide-reghomed",
    target: "arm64",
    state: "on",
    meaning: "No frame, and no saved return address, where nothing needs them on arm64",
  },
  {
    name: "immutable-poly-fastpath",
    target: "arm64",
    state: "on",
    meaning: "Call through never-written tables without the instance test",
  },
  {
    name: "immutable-table",
    target: "both",
    state: "on",
    meaning: "Turn indirect calls through never-written private tables into direct ones",
  },
  {
    name: "immutable-table-type",
    target: "both",
    state: "on",
    meaning: "Leave out the type check when all elements of a table have one type",
  },
  { name: "inline", target: "both", state: "on", meaning: "Inline small functions while their caller is translated" },
  {
    name: "inline-callfree",
    target: "both",
    state: "on",
    meaning: "Treat a caller whose calls were all inlined as one without calls",
  },
  { name: "inline-loop-callees", target: "both", state: "off", meaning: "Inline functions that contain loops, too" },
  {
    name: "leaf-scratch-pins",
    target: "arm64",
    state: "on",
    meaning: "Let call-free functions allocate X12–X14",
  },
  { name: "legacy-fp-pins", target: "arm64", state: "off", meaning: "Restrict long-lived floats to four registers" },
  {
    name: "legacy-gp-pins",
    target: "arm64",
    state: "off",
    meaning: "Leave X8, X24 and X25 out for long-lived values of call-free functions",
  },
  {
    name: "loop-precheck",
    target: "both",
    state: "on",
    meaning: "Test the largest extent of a loop's accesses before it (explicit mode)",
  },
  {
    name: "loop-region-pins",
    target: "both",
    state: "on",
    meaning: "Split intervals at loops so that a spilled value has a register inside",
  },
  { name: "multi-bounds-cert", target: "x64", state: "on", meaning: "Remember all bounds proofs, not only the latest" },
  {
    name: "nan-bits",
    target: "both",
    state: "on",
    meaning: "Make NaNs canonical only where their bits are read (deterministic code)",
    engineOnly: true,
  },
  {
    name: "olddest-rhs-sink",
    target: "arm64",
    state: "on",
    meaning: "Let a result take the register of its second operand",
  },
  { name: "reg-abi", target: "both", state: "shape", meaning: "Pass arguments and results in registers" },
  { name: "reg-merge", target: "both", state: "on", meaning: "Give block results a register on all edges" },
  {
    name: "simplify",
    target: "both",
    state: "on",
    meaning: "Fold constants and rewrite instructions whose operands allow a cheaper form",
    engineOnly: true,
  },
  {
    name: "small-frame",
    target: "arm64",
    state: "on",
    meaning: "One instruction to move the stack pointer of small frames",
  },
  {
    name: "st-flags",
    target: "both",
    state: "on",
    meaning: "Fuse a comparison with a branch across neutral instructions",
  },
  {
    name: "mask-memories",
    target: "both",
    state: "off",
    engineOnly: true,
    meaning: "Mask addresses behind bounds checks of memories, so that a mispredicted check reveals nothing",
  },
  {
    name: "mask-tables",
    target: "both",
    state: "on",
    engineOnly: true,
    meaning:
      "Mask indices behind bounds checks of tables and of br_table, so that a mispredicted check reveals nothing",
  },
  {
    name: "stack-fence",
    target: "both",
    state: "on",
    meaning: "Compare the stack pointer at function entry; off = guard page only",
  },
  { name: "stack-reg", target: "both", state: "on", meaning: "Save and restore values lazily around calls" },
  { name: "store-forward", target: "both", state: "on", meaning: "Use the stored value for a load of the same place" },
  {
    name: "store-load-fwd",
    target: "arm64",
    state: "on",
    meaning: "Drop a reload right after the store of the same slot",
  },
  { name: "store8-flags", target: "x64", state: "on", meaning: "Store a comparison's result with SETcc to memory" },
  { name: "tee-sink", target: "both", state: "on", meaning: "Compute a value directly in its local's register" },
  { name: "tee-spill-elide", target: "both", state: "on", meaning: "One spill slot for a local and its copies" },
  {
    name: "three-op-sink",
    target: "arm64",
    state: "on",
    meaning: "Write results of integer operations to any register, not only the first operand's",
  },
  {
    name: "tree-order",
    target: "both",
    state: "off",
    meaning: "Evaluate the operand that needs more registers first",
  },
  {
    name: "unary-sink",
    target: "both",
    state: "on",
    meaning: "Compute conversions directly in their local's register",
  },
  {
    name: "uxtw-add",
    target: "arm64",
    state: "on",
    meaning: "Fold extensions of 32-bit operands into 64-bit additions and subtractions",
  },
  { name: "v128-const-cache", target: "both", state: "on", meaning: "Keep repeated vector constants in registers" },
  { name: "v128-pins", target: "both", state: "on", meaning: "Keep vector locals in registers" },
  {
    name: "v128-sink",
    target: "both",
    state: "on",
    meaning: "Compute vector values directly in their local's register",
  },
  {
    name: "vex-float-mem",
    target: "x64",
    state: "on",
    meaning: "Use a float's memory operand directly when the processor has AVX",
  },
  { name: "x8-pin", target: "arm64", state: "on", meaning: "Let call-free functions allocate X8" },
] as const satisfies readonly OptimizationRow[];

/** The name of an optimization key. */
export type OptimizationName = (typeof OPTIMIZATION_ROWS)[number]["name"];

/** The enabled optimizations: a boolean per key. */
export type OptimizationSet = Readonly<Record<OptimizationName, boolean>>;

/** Returns the default optimization set, changed by `overrides`. */
export function optimizationSet(overrides: Partial<Record<OptimizationName, boolean>> = {}): OptimizationSet {
  const set = {} as Record<OptimizationName, boolean>;
  for (const row of OPTIMIZATION_ROWS) {
    set[row.name] = overrides[row.name] ?? (row as OptimizationRow).state !== "off";
  }
  return set;
}

/** `set` without the optimizations that leave out bounds checks or move them, whose code is the hardest to prove. */
export function carefulSet(set: OptimizationSet): OptimizationSet {
  return { ...set, "bounds-facts": false, "loop-precheck": false, "multi-bounds-cert": false };
}
