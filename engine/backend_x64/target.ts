/**
 * The x64 backend as one record: what codegen/target.ts asks of an architecture.
 */
import { BlockEnds } from "../codegen/block_ends.ts";
import { type MachineCode, RELOC } from "../codegen/machine_code.ts";
import type { FunctionBackend, Target } from "../codegen/target.ts";
import { disassemble } from "./disassemble.ts";
import { Emission } from "./emission.ts";
import { emitFunction, FILLER } from "./emit.ts";
import { emitImageStubs } from "./image_stubs.ts";
import { buildProcessStubs } from "./process_stubs.ts";
import { registerFile } from "./registers.ts";
import { newLowering, selectFunction } from "./select.ts";
import { buildFastEntry, emitEntryThunk, emitHostThunk } from "./thunks.ts";

/** Writes the displacements of calls and jumps between functions and stubs of the image. */
function relocate(code: MachineCode): void {
  const { bytes, relocAt, relocKind, relocTarget } = code;
  for (let k = 0; k < relocAt.length; k++) {
    if (relocKind[k] === RELOC.POLL_PAGE) {
      code.pollAt.push(relocAt[k]);
      continue;
    }
    const table = relocKind[k] === RELOC.FUNCTION ? code.functionStart : code.stubStart;
    const start = relocKind[k] === RELOC.IMAGE ? relocTarget[k] : table[relocTarget[k]];
    if (start === undefined || start < 0) {
      throw new Error(
        `Code refers to ${relocKind[k] === RELOC.FUNCTION ? "function" : "stub"} ${
          relocTarget[k]
        }, which was not emitted`,
      );
    }
    const at = relocAt[k];
    const value = start - (at + 4);
    bytes[at] = value;
    bytes[at + 1] = value >> 8;
    bytes[at + 2] = value >> 16;
    bytes[at + 3] = value >> 24;
  }
}

function functionBackend(): FunctionBackend {
  const lowering = newLowering();
  const emission = new Emission();
  const ends = new BlockEnds();
  return {
    select: (f, v, context, code) => selectFunction(lowering, f, v, context, code),
    emit: (v, allocation, context, code, index) => emitFunction(emission, ends, v, allocation, context, code, index),
  };
}

/** x86-64 with the System V calling convention (Linux and macOS). SSE4.1 is required. */
export const X64: Target = {
  name: "x64",
  filler: FILLER,
  registers: registerFile,
  functionBackend,
  emitStubs: emitImageStubs,
  emitEntryThunk,
  emitHostThunk,
  relocate,
  processStubs: buildProcessStubs,
  fastEntry: buildFastEntry,
  disassemble,
};
