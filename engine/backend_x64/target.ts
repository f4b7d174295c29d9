/**
 * The x64 backend without its optimizing part: the Target of codegen/target.ts. optimizing_target.ts adds that part.
 */
import type { MachineCode } from "../codegen/machine_code.ts";
import { relocateImage } from "../codegen/relocate.ts";
import { putWord } from "../codegen/branch_relaxation.ts";
import { StubStore } from "../codegen/stored_stubs.ts";
import type { LazyGate, Target } from "../codegen/target.ts";
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

/** Size in bytes of the entry of a function that is compiled when it is called. */
const LAZY_ENTRY_BYTES = 16;

/** MOV r11d, index; JMP [rip + displacement]. */
function writeLazyEntry(bytes: Uint8Array, at: number, index: number, slot: number): void {
  const END = at + 12;
  bytes[at] = 0x41;
  bytes[at + 1] = 0xbb;
  putWord(bytes, at + 2, index);
  bytes[at + 6] = 0xff;
  bytes[at + 7] = 0x25;
  putWord(bytes, at + 8, slot - END);
  bytes.fill(FILLER, END, at + LAZY_ENTRY_BYTES);
}

/** Leaves the function's index on the stack and the address of the block in r11. */
const LAZY_GATE: LazyGate = {
  bytes: 32,
  slow: 12,
  write(bytes, at, block, stub) {
    // PUSH r11; LEA r11, [rip + displacement]; JMP [r11]
    bytes.set([0x41, 0x53, 0x4c, 0x8d, 0x1d], at);
    putWord(bytes, at + 5, block - (at + 9));
    bytes.set([0x41, 0xff, 0x23], at + 9);
    // slow: POP r11; JMP rel32
    bytes.set([0x41, 0x5b, 0xe9], at + 12);
    putWord(bytes, at + 15, stub - (at + 19));
    bytes.fill(FILLER, at + 19, at + 32);
  },
};

const STORE = new StubStore(STUBS, FILLER);

/** x86-64 with the System V calling convention, also on Windows (host/code/windows_code.ts). SSE4.1 is required. */
export const X64: Target = {
  name: "x64",
  filler: FILLER,
  elideKey: "frame-elide",
  registers: registerFile,
  emitStubs: STORE.emitter(emitImageStubs),
  emitEntryThunk: STORE.thunk("entry", emitEntryThunk),
  emitHostThunk: STORE.thunk("host", emitHostThunk),
  hasEntryThunk: STORE.hasEntryThunk,
  relocate,
  writeEntryJump,
  writeLazyEntry,
  lazyEntryBytes: LAZY_ENTRY_BYTES,
  lazyGate: LAZY_GATE,
  loopEntry: { pollResume: POLL_RESUME, pollBytes: POLL_BYTES, emit: emitLoopEntry },
  processStubs: STORE.process(buildProcessStubs),
  fastEntry: buildFastEntry,
};
