/**
 * The NaNs of deterministic code. WebAssembly leaves the bits of most NaNs to the implementation; deterministic code
 * has the positive canonical NaN, or the NaNs of one kind of processor, as the option `nans` says. In: the option. Out:
 * the code that a processor needs for it.
 */

/** The NaNs of deterministic code: the canonical one, or those of a processor. */
export type NanRule = "canonical" | "x64" | "arm64";

/** All rules; recordings have their indices. */
export const NAN_RULES: readonly NanRule[] = ["canonical", "x64", "arm64"];

/**
 * The code for the bits of NaNs: `any` leaves them to the optimizer; `canonical` makes them canonical; `own` leaves
 * them to the processor, so that no operands of an operation may be exchanged; `x64` and `arm64` imitate that
 * processor.
 */
export type NanCode = "any" | "own" | NanRule;

/** The code by which `processor` follows the options of a compilation. */
export function nanCodeOf(
  { deterministic, nans }: { readonly deterministic: boolean; readonly nans: NanRule },
  processor: "x64" | "arm64",
): NanCode {
  if (!deterministic) return "any";
  return nans === processor ? "own" : nans;
}

/** Whether `code` imitates another processor. */
export function imitates(code: NanCode): code is "x64" | "arm64" {
  return code === "x64" || code === "arm64";
}
