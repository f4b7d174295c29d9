/**
 * Emission of calls. Direct calls are relative. A record's code runs in line when the record belongs to the caller's
 * context; otherwise out-of-line code switches the context registers around the call. Host functions and parking
 * builtins are entered by a jump with a return address instead of a call, so that the processor's return stack stays
 * balanced when they leave for the host.
 */
import { CALL_OWN } from "../ir/ops.ts";
import { type FunctionEmission, OUT_OF_LINE } from "./emission.ts";
import type { Emitter } from "./emitter.ts";
import { RELOC, STUB } from "./machine_code.ts";
import { AUX_LANDING, PSEUDO } from "./pseudo_ops.ts";

function callRecord<E extends FunctionEmission>(emitter: Emitter<E>, e: E, i: number): void {
  const { v } = e;
  const nullCode = v.aux[i] & (AUX_LANDING - 1);
  if (nullCode !== 0) emitter.mayFault(e, i, nullCode);
  if ((v.imm[i] & CALL_OWN) !== 0 && emitter.callOwn(e)) {
    e.callSite(i, e.frame, 0);
    return;
  }
  const back = e.newLabel();
  emitter.branchForeign(e, e.outOfLine(OUT_OF_LINE.CROSS_CALL, i, e.landing, back));
  emitter.callRecord(e);
  e.callSite(i, e.frame, 0);
  e.bind(back);
}

/** Emits call `i`, pseudo operation `op`. */
export function emitCall<E extends FunctionEmission>(emitter: Emitter<E>, e: E, i: number, op: number): void {
  const target = e.v.imm[i];
  switch (op) {
    case PSEUDO.CALL:
      emitter.callTarget(e, RELOC.FUNCTION, target);
      e.callSite(i, e.frame, 0);
      break;
    case PSEUDO.CALL_NATIVE:
      emitter.callTarget(e, RELOC.STUB, STUB.BUILTIN + target);
      e.callSite(i, e.frame, 0);
      break;
    case PSEUDO.CALL_PARKING: {
      const after = e.newLabel();
      emitter.returnTo(e, after);
      emitter.jumpTarget(e, RELOC.STUB, STUB.BUILTIN + target);
      e.bind(after);
      e.callSite(i, e.frame, 0);
      break;
    }
    case PSEUDO.CALL_RECORD:
      callRecord(emitter, e, i);
      break;
    case PSEUDO.CALL_IMPORT: {
      const back = e.newLabel();
      emitter.importRecord(e, target);
      // A record of the caller's context is a host function of this instance. A host function that another instance
      // imported is called in that instance's context, whose table of host functions numbers it.
      emitter.branchForeign(e, e.outOfLine(OUT_OF_LINE.CROSS_CALL, i, e.landing, back));
      const after = e.newLabel();
      emitter.returnTo(e, after);
      emitter.jumpRecord(e);
      e.bind(after);
      e.callSite(i, e.frame, 0);
      e.bind(back);
      break;
    }
  }
}
