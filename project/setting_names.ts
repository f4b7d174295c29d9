/**
 * Every key that `settings` may have: features, optimizations, runtime.
 *
 * One row per key: name, default, meaning. The names are the specification's ("Settings"), and schema.json lists the same
 * ones (a test compares). Which of them a build implements is the engine's to say; this table knows only what they mean.
 */

/** A key of `settings.features` or `settings.optimizations`. */
export interface SettingKey {
  readonly name: string;
  readonly default: boolean;
  readonly meaning: string;
  /** Another name of the same switch; contradicting values are an error. */
  readonly alias?: string;
}

function key(name: string, on: boolean, meaning: string, alias?: string): SettingKey {
  return { name, default: on, meaning, ...(alias === undefined ? {} : { alias }) };
}

/** WebAssembly features: off rejects a module that needs one. */
export const FEATURES: readonly SettingKey[] = [
  key("bulk-memory-operations", true, "memory.copy, memory.fill, memory.init, table.copy, passive segments"),
  key("exception-handling", true, "try_table, throw, throw_ref, and the legacy try, catch and rethrow"),
  key("extended-const-expressions", true, "add, sub and mul in constant expressions", "extended-constant-expressions"),
  key(
    "extended-constant-expressions",
    true,
    "the same switch as extended-const-expressions",
    "extended-const-expressions",
  ),
  key("gc", true, "structs, arrays, i31 and casts"),
  key("memory64", true, "memories with 64-bit addresses"),
  key("multi-memory", true, "more than one memory in a module"),
  key("multi-value", true, "several results of functions and blocks, parameters of blocks"),
  key("mutable-global", true, "import and export of mutable globals"),
  key("nontrapping-float-to-int-conversion", true, "the saturating trunc_sat conversions"),
  key("reference-types", true, "funcref and externref as values, several tables, table instructions"),
  key("sign-extension-ops", true, "extend8_s, extend16_s and extend32_s"),
  key("simd", true, "v128 and its instructions, relaxed ones too"),
  key("table64", true, "tables with 64-bit indices"),
  key("tail-call", true, "return_call, return_call_indirect, return_call_ref"),
  key("threads", true, "shared memories and atomic instructions"),
  key("typed-function-references", true, "call_ref and references to functions of a known type"),
];

/** Optimizations of the compiler: off compiles without one, which must never change a result. */
export const OPTIMIZATIONS: readonly SettingKey[] = [
  key("affine-lea", true, "x*scale + y + constant in one address computation"),
  key("assoc-tree", true, "balance chains of associative operations into trees"),
  key("bmi2-rorx", true, "rotate by a constant without touching flags (BMI2)"),
  key("bounds-facts", true, "drop a bounds check that an earlier one implies"),
  key("branch-fold", true, "fold branches on constants and on comparisons already decided"),
  key("call-next-use", true, "choose what to spill around a call by the next use"),
  key("commute-self-update", true, "swap operands so that x = x op y updates a register in place"),
  key("compact-i32-frame", true, "4-byte frame slots for i32 values"),
  key("deep-fp-pins", true, "keep float locals in registers through nested loops"),
  key("entry-arg-pins", true, "keep arguments in the registers they came in"),
  key("ext-fp-pins", true, "use the extended float register set for pinned locals"),
  key("frame-elide", true, "no frame for functions that need none"),
  key("frame-elide-reghomed", true, "no frame when every local lives in a register"),
  key("immutable-poly-fastpath", true, "indirect calls through a table that never changes, several targets"),
  key("immutable-table", true, "treat a table that nothing writes as constant"),
  key("immutable-table-type", true, "drop the type check of indirect calls through a constant table of one type"),
  key("inline", true, "inline small functions"),
  key("inline-callfree", true, "inline functions without calls more eagerly"),
  key("inline-loop-callees", true, "inline functions called in loops more eagerly"),
  key("leaf-scratch-pins", true, "use caller-saved registers for locals of leaf functions"),
  key("legacy-fp-pins", true, "the older choice of pinned float locals where the newer finds none"),
  key("legacy-gp-pins", true, "the older choice of pinned integer locals where the newer finds none"),
  key("loop-precheck", true, "check a loop's whole address range once before it"),
  key("loop-region-pins", true, "choose pinned locals per loop"),
  key("multi-bounds-cert", true, "one bounds check for several neighbouring accesses"),
  key("olddest-rhs-sink", true, "compute a right operand late, into the old destination"),
  key("reg-abi", true, "pass arguments and results in registers between compiled functions"),
  key("reg-merge", true, "give values that meet at a join the same register"),
  key("small-frame", true, "short frame set-up for frames below a page"),
  key("st-flags", true, "reuse the flags of an operation whose result is stored"),
  key("stack-fence", true, "one stack check for a chain of small calls"),
  key("stack-reg", true, "operand stack entries in registers"),
  key("store-forward", true, "use a stored value instead of loading it again"),
  key("store-load-fwd", true, "forward stores to loads of the same address across blocks"),
  key("store8-flags", true, "store a comparison's result straight from the flags"),
  key("tee-sink", true, "move local.tee to where its value is used"),
  key("tee-spill-elide", true, "no spill for a tee whose local is never read from memory"),
  key("three-op-sink", true, "three-operand forms for values that stay alive"),
  key("tree-order", true, "evaluate the side of an expression that needs more registers first"),
  key("unary-sink", true, "move unary operations to their use"),
  key("uxtw-add", true, "zero-extend inside an addition or an address (arm64)"),
  key("v128-const-cache", true, "keep vector constants in registers"),
  key("v128-pins", true, "keep vector locals in registers"),
  key("v128-sink", true, "move vector operations to their use"),
  key("vex-float-mem", true, "VEX float operations with a memory operand"),
  key("x8-pin", true, "use x8 for a pinned local (arm64)"),
];

/** Keys of `settings.runtime`, with their default as text. */
export const RUNTIME_KEYS: readonly { readonly name: string; readonly default: string; readonly meaning: string }[] = [
  { name: "parallel", default: "auto", meaning: "compiler threads: auto, or a number (0 and 1 mean none besides)" },
  { name: "deferredBoundsChecking", default: "true", meaning: "guard pages instead of explicit checks where possible" },
];
