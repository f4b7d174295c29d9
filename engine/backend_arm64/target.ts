/**
 * The arm64 backend as one record: what codegen/target.ts asks of an architecture.
 */
import { BlockEnds } from "../codegen/block_ends.ts";
import { type MachineCode, RELOC } from "../codegen/machine_code.ts";
import type { FunctionBackend, Target } from "../codegen/target.ts";
import { disassemble } from "./disassemble.ts";
import { Emission } from "./emission.ts";
import { emitFunction, FILLER } from "./emit.ts";
import { emitImageStubs } from "./image_stubs.ts";
import { buildCacheMaintenance, buildProcessStubs } from "./process_stubs.ts";
import { registerFile } from "./registers.ts";
import { newLowering, selectFunction } from "./select.ts";
import { buildFastEntry, emitEntryThunk, emitHostThunk } from "./thunks.ts";

/** A branch with 26 bits of words reaches so many bytes. */
const REACH = 1 << 27;

/** Writes the displacements of calls and jumps between functions and stubs of the image. */
function relocate(code: MachineCode): void {
  const { bytes, relocAt, relocKind, relocTarget } = code;
  for (let k = 0; k < relocAt.length; k++) {
    const at = relocAt[k];
    if (relocKind[k] === RELOC.POLL_PAGE) {
      code.pollAt.push(at);
      continue;
    }
    const table = relocKind[k] === RELOC.FUNCTION ? code.functionStart : code.stubStart;
    const start = table[relocTarget[k]];
    if (start === undefined || start < 0) {
      throw new Error(
        `Code refers to ${relocKind[k] === RELOC.FUNCTION ? "function" : "stub"} ${
          relocTarget[k]
        }, which was not emitted`,
      );
    }
    const distance = start - at;
    if (distance >= REACH || distance < -REACH) {
      throw new RangeError("The module's code is too large for the branches of arm64");
    }
    const field = (distance >> 2) & 0x3ffffff;
    bytes[at] = field;
    bytes[at + 1] = field >> 8;
    bytes[at + 2] = field >> 16;
    bytes[at + 3] = (bytes[at + 3] & 0xfc) | (field >> 24);
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

/** 64-bit Arm (Linux and macOS), from Armv8.0 on. */
export const ARM64: Target = {
  name: "arm64",
  filler: FILLER,
  registers: registerFile,
  functionBackend,
  emitStubs: emitImageStubs,
  emitEntryThunk,
  emitHostThunk,
  relocate,
  processStubs: buildProcessStubs,
  cacheMaintenance: buildCacheMaintenance,
  fastEntry: buildFastEntry,
  disassemble,
};
