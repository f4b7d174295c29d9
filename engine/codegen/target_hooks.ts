/**
 * What choosing instructions asks of a backend besides its rules: its calling convention, and the few instructions that the shared rules
 * (select_control.ts) need.
 */
import type { LoweringContext } from "./lowering_context.ts";

/** Registers of calls. */
export interface CallConvention {
  /** Physical register per parameter or result of a list of types, −1 for the overflow buffer. */
  params(types: Uint8Array): Int8Array;
  results(types: Uint8Array): Int8Array;
  /** Bytes of an entry of the overflow buffer. */
  readonly overflowEntry: number;
  /** Register of a record at a call through it. */
  readonly record: number;
  /** What any call may destroy, and what native builtins do; masks as RegisterFile's. */
  readonly clobbers: { readonly general: number; readonly vector: number };
  readonly nativeClobbers: { readonly general: number; readonly vector: number };
}

export interface TargetHooks {
  readonly convention: CallConvention;
  /** Begins an instruction that makes the address context + imm of CONTEXT `id`; returns its index. */
  beginContextAddress(s: LoweringContext, id: number): number;
  /** Loads the 64-bit field of the context at `offset` into a new vreg. */
  loadContext(s: LoweringContext, offset: number): number;
  /** Loads vreg `to` of type `ty` from [base + disp]. */
  loadFrom(s: LoweringContext, to: number, base: number, disp: number, ty: number): void;
  /** Stores vreg `value` of type `ty` to [base + disp]. */
  storeTo(s: LoweringContext, value: number, base: number, disp: number, ty: number): void;
  /** Adds what the backend's SWITCH needs behind the index. */
  switchOperands(s: LoweringContext): void;
  /** The compare that ends a block: branches on value `condition`. */
  branchCompare(s: LoweringContext, condition: number): void;
  /** Traps with the code in `codeBits` (in place in aux) if value `condition` is not zero. */
  trapCompare(s: LoweringContext, condition: number, codeBits: number): void;
}
