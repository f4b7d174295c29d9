/**
 * Throwing without leaving machine code: fast paths in front of the parking forms of the builtins throw, throw_ref,
 * rethrow and caught. In: the builtin's argument in rax, the return address of the call on the stack. Out: the landing
 * pad that handles the exception runs, with its frame on the stack; or nothing has changed, and the runtime does all of
 * it (runtime/exceptions/unwind.ts).
 *
 * Unwinding follows return addresses through a hash table of call sites, which the runtime builds from the images in
 * which it has unwound a few times itself. A return address that is not in the table ends the fast path: thunks'
 * callers, frames whose caller is another instance, images that never throw. No register need be restored, since a
 * landing pad relies on none but those of context, memory and fuel, which all frames of one instance share.
 */
import type { BuiltinName } from "../abi/builtins.ts";
import {
  CONTEXT,
  EXCEPTION_RECORD,
  TAG_BITS,
  TAG_SIZE,
  THREAD,
  UNWIND_ENTRY,
  UNWIND_HASH,
} from "../abi/context_layout.ts";
import { OVERFLOW_ENTRY } from "./abi.ts";
import { X } from "./instructions.ts";
import { CC } from "./machine_ops.ts";
import { CONTEXT_REGISTER, R10, R11, R12, R8, R9, RAX, RBP, RCX, RDI, RDX, RSI, RSP } from "./registers.ts";
import type { StubCode } from "./stub_code.ts";

/** Registers shared by the parts below: r11 = thread, rcx = identity of the tag, rbp = exnref of the exception or 0. */
const TAG = RCX;
const WORD = RBP;

/** Emits the fast path of builtin `name`, which falls through to the code after it if it does not apply. */
export function emitQuickUnwinding(s: StubCode, name: BuiltinName): void {
  const slow = s.newLabel();
  switch (name) {
    case "throw":
      s.rm(X.MOV64_L, R11, CONTEXT_REGISTER, CONTEXT.THREAD);
      s.rr(X.MOV32_L, RDX, RAX);
      s.ri(X.SHL64_I, RDX, Math.log2(TAG_SIZE));
      s.rx(X.MOV64_L, TAG, CONTEXT_REGISTER, RDX, s.context.layout.tagsOffset);
      s.ri(X.TEST8_I, TAG, TAG_BITS.NATIVE);
      s.branch(CC.E, slow);
      s.rr(X.XOR32_R, WORD, WORD);
      emitUnwind(s, slow);
      break;
    case "rethrow":
      beginCaught(s, slow);
      s.rm(X.MOV64_L, TAG, R11, THREAD.CAUGHT_TAG);
      s.rm(X.MOV64_L, WORD, R11, THREAD.CAUGHT_WORD);
      emitUnwind(s, slow);
      break;
    case "throw_ref":
      beginCaught(s, slow);
      s.rm(X.MOV64_L, WORD, R11, THREAD.CAUGHT_WORD);
      s.rr(X.TEST64_M, WORD, WORD);
      s.branch(CC.E, slow);
      s.rr(X.CMP64_R, RAX, WORD);
      s.branch(CC.NE, slow);
      s.rm(X.MOV64_L, RDX, R11, THREAD.CAUGHT_RECORD);
      s.rm(X.MOV64_L, TAG, RDX, EXCEPTION_RECORD.TAG);
      for (let k = 0; k < EXCEPTION_RECORD.VALUES; k++) {
        s.rm(s.vexRow(X.MOVUPS_L), 0, RDX, EXCEPTION_RECORD.PAYLOAD + k * OVERFLOW_ENTRY);
        s.rm(s.vexRow(X.MOVUPS_S), 0, R11, THREAD.OVERFLOW + k * OVERFLOW_ENTRY);
      }
      emitUnwind(s, slow);
      break;
    case "caught":
      emitCaught(s, slow);
      break;
  }
  s.bind(slow);
}

/** Continues if machine code recorded the exception caught last. */
function beginCaught(s: StubCode, slow: number): void {
  s.rm(X.MOV64_L, R11, CONTEXT_REGISTER, CONTEXT.THREAD);
  s.rm(X.CMP32_I, 0, R11, THREAD.CAUGHT_NATIVELY, 0);
  s.branch(CC.E, slow);
}

/** Finds the landing pad and jumps there. Keeps rax until then. */
function emitUnwind(s: StubCode, slow: number): void {
  const frame = s.newLabel();
  const probe = s.newLabel();
  const next = s.newLabel();
  const land = s.newLabel();
  s.rm(X.MOV64_L, R8, R11, THREAD.UNWIND);
  s.rr(X.TEST64_M, R8, R8);
  s.branch(CC.E, slow);
  s.rm(X.MOV32_L, R9, R11, THREAD.UNWIND_MASK);
  s.rr(X.MOV64_L, RSI, RSP);
  s.bind(frame);
  s.rm(X.MOV64_L, RDX, RSI, 0);
  s.rr(X.MOV32_L, RDI, RDX);
  s.constant(R12, BigInt(UNWIND_HASH.FACTOR));
  s.rr(X.IMUL32_R, RDI, R12);
  s.ri(X.SHR32_I, RDI, UNWIND_HASH.SHIFT);
  s.bind(probe);
  s.rr(X.AND32_R, RDI, R9);
  s.rr(X.MOV32_L, R10, RDI);
  s.ri(X.SHL64_I, R10, UNWIND_ENTRY.SHIFT);
  s.rr(X.ADD64_R, R10, R8);
  s.rm(X.MOV64_L, R12, R10, UNWIND_ENTRY.RETURN);
  s.rr(X.CMP64_R, R12, RDX);
  s.branch(CC.NE, next);
  s.rm(X.MOVSXD, RDI, R10, UNWIND_ENTRY.LANDING);
  s.rr(X.TEST64_M, RDI, RDI);
  s.branch(CC.NE, land);
  s.rm(X.MOVSXD, R12, R10, UNWIND_ENTRY.FRAME);
  s.rr(X.TEST64_M, R12, R12);
  s.branch(CC.S, slow);
  s.rx(X.LEA64, RSI, RSI, R12, 8);
  s.jump(frame);
  s.bind(next);
  s.rr(X.TEST64_M, R12, R12);
  s.branch(CC.E, slow);
  s.ri(X.ADD32_I, RDI, 1);
  s.jump(probe);
  s.bind(land);
  s.rm(X.MOV64_S, TAG, R11, THREAD.CAUGHT_TAG);
  s.rm(X.MOV64_S, WORD, R11, THREAD.CAUGHT_WORD);
  s.rm(X.MOV32_SI, 0, R11, THREAD.CAUGHT_NATIVELY, 1);
  s.rm(X.LEA64, RSP, RSI, 8);
  s.rr(X.ADD64_R, RDX, RDI);
  s.rr(X.JMP_M, 0, RDX);
}

/**
 * Returns the exnref of the caught exception: its existing one, or that of the next record, which gets tag and payload.
 */
function emitCaught(s: StubCode, slow: number): void {
  const known = s.newLabel();
  beginCaught(s, slow);
  s.rm(X.MOV64_L, RAX, R11, THREAD.CAUGHT_WORD);
  s.rr(X.TEST64_M, RAX, RAX);
  s.branch(CC.NE, known);
  s.rm(X.MOV64_L, TAG, R11, THREAD.CAUGHT_TAG);
  s.ri(X.TEST8_I, TAG, TAG_BITS.RECORDED);
  s.branch(CC.E, slow);
  s.rm(X.MOV64_L, RDX, R11, THREAD.NEXT_RECORD);
  s.rm(X.CMP64_R, RDX, R11, THREAD.LAST_RECORD);
  s.branch(CC.E, slow);
  s.rm(X.MOV64_L, RAX, RDX, EXCEPTION_RECORD.WORD);
  s.rm(X.MOV64_S, TAG, RDX, EXCEPTION_RECORD.TAG);
  for (let k = 0; k < EXCEPTION_RECORD.VALUES; k++) {
    s.rm(s.vexRow(X.MOVUPS_L), 0, R11, THREAD.OVERFLOW + k * OVERFLOW_ENTRY);
    s.rm(s.vexRow(X.MOVUPS_S), 0, RDX, EXCEPTION_RECORD.PAYLOAD + k * OVERFLOW_ENTRY);
  }
  s.rm(X.MOV64_S, RAX, R11, THREAD.CAUGHT_WORD);
  s.rm(X.MOV64_S, RDX, R11, THREAD.CAUGHT_RECORD);
  s.rm(X.LEA64, RDX, RDX, EXCEPTION_RECORD.SIZE);
  s.rm(X.MOV64_S, RDX, R11, THREAD.NEXT_RECORD);
  s.bind(known);
  // The call was a jump with a pushed address.
  s.pop(R11);
  s.rr(X.JMP_M, 0, R11);
}
