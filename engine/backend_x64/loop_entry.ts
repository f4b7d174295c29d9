/**
 * On-stack replacement: the code at which a baseline function continues when it is resumed at a poll. In: the frame of
 * the function at the stack pointer. Out: a call of the optimized rest of the function, and the return to the caller.
 * The frame stays on the stack meanwhile, so stack walks see an ordinary call.
 */
import { MEMORY } from "../abi/context_layout.ts";
import { alignImage, FILLER, FUNCTION_ALIGNMENT } from "../codegen/align_image.ts";
import { type MachineCode, RELOC } from "../codegen/machine_code.ts";
import type { CodegenContext } from "../codegen/target.ts";
import { TY } from "../ir/types.ts";
import { paramLocations } from "./abi.ts";
import { KIND } from "./emission.ts";
import { X } from "./instructions.ts";
import { CONTEXT_REGISTER, MEMORY_LENGTH, RSP } from "./registers.ts";
import { StubCode } from "./stub_code.ts";

/** Appends the code: see LoopEntryTarget. */
export function emitLoopEntry(context: CodegenContext, code: MachineCode, index: number, frameBytes: number): number {
  alignImage(code, FUNCTION_ALIGNMENT, FILLER.x64);
  const s = new StubCode(context, code);
  const start = code.length;
  // As after every poll: the memory may be longer now.
  if (context.explicitBounds) {
    s.rm(X.MOV64_L, MEMORY_LENGTH, CONTEXT_REGISTER, context.layout.memoriesOffset + MEMORY.LENGTH);
  }
  const [parameter] = paramLocations(Uint8Array.of(TY.I64));
  s.rr(X.MOV64_L, parameter, RSP);
  s.op(X.CALL32);
  s.fixupFrom(s.asm.at - 4, KIND.RELOCATION, RELOC.FUNCTION, index, 0, 0);
  s.fixup(KIND.CALL_SITE, frameBytes, 0, 0, 0);
  if (frameBytes !== 0) s.ri(X.ADD64_I, RSP, frameBytes);
  s.op(X.RET);
  s.finish();
  return start;
}
