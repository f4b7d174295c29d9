/**
 * On-stack replacement: the code at which a baseline function continues when it is resumed at a poll. In: the frame of
 * the function at the stack pointer. Out: a call of the optimized rest of the function, and the return to the caller.
 * The frame stays on the stack meanwhile, so stack walks see an ordinary call. The return address is in the uppermost
 * word of the frame, as baseline functions always save it.
 */
import { MEMORY } from "../abi/context_layout.ts";
import { alignImage, FILLER, FUNCTION_ALIGNMENT } from "../codegen/align_image.ts";
import { type MachineCode, RELOC } from "../codegen/machine_code.ts";
import type { CodegenContext } from "../codegen/target.ts";
import { TY } from "../ir/types.ts";
import { FAULT_FRAME, paramLocations } from "./abi.ts";
import { KIND } from "./emission.ts";
import { X } from "./instructions.ts";
import { CONTEXT_REGISTER, LINK, MEMORY_LENGTH, SP, ZERO } from "./registers.ts";
import { StubCode } from "./stub_code.ts";

/** Appends the code: see LoopEntryTarget. `frameBytes` is that of a faulting site (abi.ts). */
export function emitLoopEntry(context: CodegenContext, code: MachineCode, index: number, frameBytes: number): number {
  alignImage(code, FUNCTION_ALIGNMENT, FILLER.arm64);
  const s = new StubCode(context, code);
  const start = code.length;
  // As after every poll: the memory may be longer now.
  if (context.explicitBounds) {
    s.at(X.LDR_X_U, MEMORY_LENGTH, CONTEXT_REGISTER, context.layout.memoriesOffset + MEMORY.LENGTH);
  }
  const distance = frameBytes - FAULT_FRAME;
  const [parameter] = paramLocations(Uint8Array.of(TY.I64));
  s.add(parameter, SP, 0);
  s.fixup(KIND.RELOCATION, RELOC.FUNCTION, index, 0, 0);
  s.rrr(X.BL, 0, 0, 0);
  s.fixup(KIND.CALL_SITE, distance, 0, 0, 0);
  s.add(SP, SP, distance - 8);
  s.pair(X.LDP_POST, ZERO, LINK, SP, 2);
  s.ret();
  s.finish();
  return start;
}
