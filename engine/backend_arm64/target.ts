/**
 * The arm64 backend without its optimizing part: the Target of codegen/target.ts. optimizing_target.ts adds that part.
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
import { buildCacheMaintenance, buildProcessStubs } from "./process_stubs.ts";
import { registerFile } from "./registers.ts";
import { buildFastEntry, emitEntryThunk, emitHostThunk } from "./thunks.ts";

/** Reach in bytes of a branch with a displacement of 26 bits of words, in either direction. */
const REACH = 1 << 27;

/** Writes the displacements of calls and jumps between functions and stubs of the image. */
function relocate(code: MachineCode): void {
  relocateImage(code, (bytes, at, target) => {
    const distance = target - at;
    if (distance >= REACH || distance < -REACH) {
      throw new RangeError("The module's code is too large for the branches of arm64");
    }
    const field = (distance >> 2) & 0x3ffffff;
    putWord(bytes, at, ((bytes[at + 3] & 0xfc) << 24) | field);
  });
}

/** B imm26: 128 MiB in either direction. */
function writeEntryJump(bytes: Uint8Array, at: number, distance: number): boolean {
  if (Math.abs(distance) >= REACH) return false;
  putWord(bytes, at, 0x14000000 | ((distance >> 2) & 0x3ffffff));
  return true;
}

/** Size in bytes of the entry of a function that is compiled when it is called. */
const LAZY_ENTRY_BYTES = 20;

/** MOVZ w16 and MOVK w16 with the index; ADRP x17 and LDR x17 with the address in the slot; BR x17. */
function writeLazyEntry(bytes: Uint8Array, at: number, index: number, slot: number): void {
  const X16 = 16;
  const X17 = 17;
  const pages = (slot >> 12) - ((at + 8) >> 12);
  putWord(bytes, at, 0x52800000 | ((index & 0xffff) << 5) | X16);
  putWord(bytes, at + 4, 0x72a00000 | ((index >>> 16) << 5) | X16);
  putWord(bytes, at + 8, 0x90000000 | ((pages & 3) << 29) | (((pages >> 2) & 0x7ffff) << 5) | X17);
  putWord(bytes, at + 12, 0xf9400000 | (((slot & 0xfff) >> 3) << 10) | (X17 << 5) | X17);
  putWord(bytes, at + 16, 0xd61f0000 | (X17 << 5));
}

const STORE = new StubStore(STUBS, FILLER);

/** 64-bit Arm (Linux and macOS), from Armv8.0 on. */
export const ARM64: Target = {
  name: "arm64",
  filler: FILLER,
  elideKey: "frame-elide-reghomed",
  registers: registerFile,
  emitStubs: STORE.emitter(emitImageStubs),
  emitEntryThunk: STORE.thunk("entry", emitEntryThunk),
  emitHostThunk: STORE.thunk("host", emitHostThunk),
  hasEntryThunk: STORE.hasEntryThunk,
  relocate,
  writeEntryJump,
  writeLazyEntry,
  lazyEntryBytes: LAZY_ENTRY_BYTES,
  loopEntry: { pollResume: POLL_RESUME, pollBytes: POLL_BYTES, emit: emitLoopEntry },
  processStubs: STORE.process(buildProcessStubs),
  cacheMaintenance: buildCacheMaintenance,
  fastEntry: buildFastEntry,
};
