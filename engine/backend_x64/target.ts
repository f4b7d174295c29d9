/**
 * The x64 backend without its optimizing part: the Target of codegen/target.ts. optimizing_target.ts adds that part.
 */
import type { MachineCode } from "../codegen/machine_code.ts";
import { relocateImage } from "../codegen/relocate.ts";
import { putWord } from "../codegen/branch_relaxation.ts";
import { StubStore } from "../codegen/stored_stubs.ts";
import type { Target } from "../codegen/target.ts";
import { FILLER } from "./emission.ts";
import { STUBS } from "./generated_stubs.ts";
import { emitImageStubs } from "./image_stubs.ts";
import { emitLoopEntry } from "./loop_entry.ts";
import { POLL_BYTES, POLL_RESUME } from "./poll_frame.ts";
import { buildProcessStubs } from "./process_stubs.ts";
import { registerFile } from "./registers.ts";
import { buildFastEntry, emitEntryThunk, emitHostThunk } from "./thunks.ts";

/** Writes the displacements of calls and jumps between functions and stubs of the image. */
function relocate(code: MachineCode): void {
  relocateImage(code, (bytes, at, target) => putWord(bytes, at, target - (at + 4)));
}

/** JMP rel32, which reaches any distance. */
function writeEntryJump(bytes: Uint8Array, at: number, distance: number): boolean {
  const LENGTH = 5;
  bytes[at] = 0xe9;
  putWord(bytes, at + 1, distance - LENGTH);
  return true;
}

const STORE = new StubStore(STUBS, FILLER);

/** x86-64 with the System V calling convention, also on Windows (host/windows_code.ts). SSE4.1 is required. */
export const X64: Target = {
  name: "x64",
  filler: FILLER,
  registers: registerFile,
  emitStubs: STORE.emitter(emitImageStubs),
  emitEntryThunk: STORE.thunk("entry", emitEntryThunk),
  emitHostThunk: STORE.thunk("host", emitHostThunk),
  hasEntryThunk: STORE.hasEntryThunk,
  relocate,
  writeEntryJump,
  loopEntry: { pollResume: POLL_RESUME, pollBytes: POLL_BYTES, emit: emitLoopEntry },
  processStubs: STORE.process(buildProcessStubs),
  fastEntry: buildFastEntry,
};
