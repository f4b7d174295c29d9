/**
 * What choosing instructions asks of a backend besides its rules: its calling convention, and the few instructions that the shared rules
 * (select_control.ts) need.
 */
import type { FunctionSelection } from "./lowering_context.ts";

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

export interface Lowering {
  readonly convention: CallConvention;
  /** Begins an instruction that makes the address context + imm of CONTEXT `id`; returns its index. */
  beginContextAddress(s: FunctionSelection, id: number): number;
  /** Loads the 64-bit field of the context at `offset` into a new vreg. */
  loadContext(s: FunctionSelection, offset: number): number;
  /** Loads vreg `to` of type `ty` from [base + disp]. */
  loadFrom(s: FunctionSelection, to: number, base: number, disp: number, ty: number): void;
  /** Stores vreg `value` of type `ty` to [base + disp]. */
  storeTo(s: FunctionSelection, value: number, base: number, disp: number, ty: number): void;
  /** Adds what the backend's SWITCH needs behind the index. */
  switchOperands(s: FunctionSelection): void;
  /** The compare that ends a block: branches on value `condition`. */
  branchCompare(s: FunctionSelection, condition: number): void;
  /** Traps with the code in `codeBits` (in place in aux) if value `condition` is not zero. */
  trapCompare(s: FunctionSelection, condition: number, codeBits: number): void;
}
