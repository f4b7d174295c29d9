/**
 * Appends the entry of a loop (LoopEntryTarget) to an image. In: its stored code, which a backend has completed but for
 * the target of the call. Out: the code with the relocation and the call site that stack walks need.
 */
import { alignImage, FUNCTION_ALIGNMENT } from "./align_image.ts";
import { appendBytes } from "./append_bytes.ts";
import { type MachineCode, RELOC } from "./machine_code.ts";

/** Bytes of the field for the target, at the end of the call. */
const TARGET_BYTES = 4;

/**
 * `call` ends with the call of function `index`; `rest` releases the frame and returns. `distance` is that from the
 * stack pointer to the return address of the frame. Returns the offset of the code.
 */
export function appendLoopEntry(
  code: MachineCode,
  filler: number,
  call: Uint8Array,
  rest: readonly Uint8Array[],
  index: number,
  distance: number,
): number {
  alignImage(code, FUNCTION_ALIGNMENT, filler);
  const start = code.length;
  appendBytes(code, call);
  code.addReloc(code.length - TARGET_BYTES, RELOC.FUNCTION, index);
  code.addCallSite(code.length, distance, 0, 0);
  for (const part of rest) appendBytes(code, part);
  return start;
}
