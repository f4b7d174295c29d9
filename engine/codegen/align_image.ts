/**
 * Alignment of code in images. A separate file, so that stubs and thunks do not load the emission of functions.
 */
import type { MachineCode } from "./machine_code.ts";

/** Stubs, thunks and functions start at multiples of this; some functions at multiples of more. */
export const FUNCTION_ALIGNMENT = 16;

/** The byte between functions, by architecture: a breakpoint; UDF. */
export const FILLER = { x64: 0xcc, arm64: 0 } as const;

/** Fills the image up to a multiple of `boundary`. */
export function alignImage(code: MachineCode, boundary: number, filler: number): void {
  while (code.length % boundary !== 0) {
    code.reserve(1);
    code.bytes[code.length++] = filler;
  }
}
