/**
 * Emission of calls. Direct calls are relative. A record's code runs in line when the record belongs to the caller's
 * context; otherwise out-of-line code switches the context registers around the call. Host functions and parking
 * builtins are entered by a jump with a return address instead of a call, so that the processor's return stack stays
 * balanced when they leave for the host.
 */
import { CALL_OWN } from "../ir/ops.ts";
import { type FunctionEmission, OUT_OF_LINE } from "./emission.ts";
import { RELOC, STUB } from "./machine_code.ts";
import { AUX_LANDING, PSEUDO } from "./pseudo_ops.ts";

/** Instructions of calls. */
export interface CallForms<E extends FunctionEmission> {
  /** Calls, or jumps to, `target` through a relocation of `kind`. */
  call(e: E, kind: number, target: number): void;
  jump(e: E, kind: number, target: number): void;
  /** Makes label `after` the return address of the jump that follows. */
  returnTo(e: E, after: number): void;
  /** Puts the address of the record that the context embeds for import `index` into the record register. */
  importRecord(e: E, index: number): void;
  /** Branches to `label` unless the record belongs to the context. */
  branchForeign(e: E, label: number): void;
  /** Calls, or jumps to, the code of the record that was just compared. */
  callRecord(e: E): void;
  jumpRecord(e: E): void;
  /**
   * Calls the code of a record known to belong to this instance; if absent, such a record is compared like any other.
   */
  callOwn?(e: E): void;
  /** The next instruction traps with `code` if the record is null. */
  mayFault(e: E, i: number, code: number): void;
}

function jumpCall<E extends FunctionEmission>(forms: CallForms<E>, e: E, i: number, jump: () => void): void {
  const after = e.newLabel();
  forms.returnTo(e, after);
  jump();
  e.bind(after);
  e.callSite(i, e.frame);
}

function callRecord<E extends FunctionEmission>(forms: CallForms<E>, e: E, i: number): void {
  const { v } = e;
  const nullCode = v.aux[i] & (AUX_LANDING - 1);
  if (nullCode !== 0) forms.mayFault(e, i, nullCode);
  if (forms.callOwn !== undefined && (v.imm[i] & CALL_OWN) !== 0) {
    forms.callOwn(e);
    e.callSite(i, e.frame);
    return;
  }
  const back = e.newLabel();
  forms.branchForeign(e, e.outOfLine(OUT_OF_LINE.CROSS_CALL, i, e.landing, back));
  forms.callRecord(e);
  e.callSite(i, e.frame);
  e.bind(back);
}

/** Emits call `i`, pseudo operation `op`. */
export function emitCallForms<E extends FunctionEmission>(forms: CallForms<E>, e: E, i: number, op: number): void {
  const target = e.v.imm[i];
  switch (op) {
    case PSEUDO.CALL:
      forms.call(e, RELOC.FUNCTION, target);
      e.callSite(i, e.frame);
      break;
    case PSEUDO.CALL_NATIVE:
      forms.call(e, RELOC.STUB, STUB.BUILTIN + target);
      e.callSite(i, e.frame);
      break;
    case PSEUDO.CALL_PARKING:
      jumpCall(forms, e, i, () => forms.jump(e, RELOC.STUB, STUB.BUILTIN + target));
      break;
    case PSEUDO.CALL_RECORD:
      callRecord(forms, e, i);
      break;
    case PSEUDO.CALL_IMPORT: {
      const back = e.newLabel();
      forms.importRecord(e, target);
      // A record of the caller's context is a host function of this instance. A host function that another instance
      // imported is called in that instance's context, whose table of host functions numbers it.
      forms.branchForeign(e, e.outOfLine(OUT_OF_LINE.CROSS_CALL, i, e.landing, back));
      jumpCall(forms, e, i, () => forms.jumpRecord(e));
      e.bind(back);
      break;
    }
  }
}
