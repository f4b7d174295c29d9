/** Relocation of an image: resolves references between its functions and stubs once all offsets are known. */
import { type MachineCode, RELOC } from "./machine_code.ts";

/**
 * Calls `patch` with each place that refers to offset `target` of the image. References to the poll page go to
 * code.pollAt.
 */
export function relocateImage(code: MachineCode, patch: (bytes: Uint8Array, at: number, target: number) => void): void {
  const { bytes, relocAt, relocKind, relocTarget } = code;
  for (let k = 0; k < relocAt.length; k++) {
    const kind = relocKind[k];
    const target = relocTarget[k];
    if (kind === RELOC.POLL_PAGE) code.pollAt.push(relocAt[k]);
    else if (kind === RELOC.IMAGE) patch(bytes, relocAt[k], target);
    else {
      const start = (kind === RELOC.FUNCTION ? code.functionStart : code.stubStart)[target];
      if (start === undefined || start < 0) {
        throw new Error(
          `Code refers to ${kind === RELOC.FUNCTION ? "function" : "stub"} ${target}, which was not emitted`,
        );
      }
      patch(bytes, relocAt[k], start);
    }
  }
}
