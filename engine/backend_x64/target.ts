/** The x64 backend without code generation: the Target of codegen/target.ts, with stored stubs. */
import { fromBase64 } from "../base/base64.ts";
import { FILLER } from "../codegen/align_image.ts";
import { appendLoopEntry } from "../codegen/loop_entry.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import { relocateImage } from "../codegen/relocate.ts";
import { StubStore } from "../codegen/stored_stubs.ts";
import type { ThunkEncoding } from "../codegen/stored_thunks.ts";
import type { CodegenContext, LazyGate, Target } from "../codegen/target.ts";
import { putWord } from "../codegen/words.ts";
import { TY_BANK } from "../ir/types.ts";
import { OVERFLOW_ENTRY, paramLocations, resultLocations } from "./abi.ts";
import { ENTRY_JUMP, GATE, LAZY_ENTRY, LOOP_ENTRY } from "./generated_entries.ts";
import { STUBS } from "./generated_stubs.ts";
import { POLL_BYTES, POLL_RESUME } from "./poll_frame.ts";
import { R8, RDI, registerFile } from "./registers.ts";

/** Writes the displacements of calls and jumps between functions and stubs of the image. */
function relocate(code: MachineCode): void {
  relocateImage(code, (bytes, at, target) => putWord(bytes, at, target - (at + 4)));
}

const JUMP = fromBase64(ENTRY_JUMP.x64.code);

/** JMP rel32, which reaches any distance. */
function writeEntryJump(bytes: Uint8Array, at: number, distance: number): boolean {
  const { target } = ENTRY_JUMP.x64.labels;
  bytes.set(JUMP, at);
  putWord(bytes, at + target - 4, distance - target);
  return true;
}

const LAZY = fromBase64(LAZY_ENTRY.x64.code);

/** MOV r11d, index; JMP [rip + displacement]. */
function writeLazyEntry(bytes: Uint8Array, at: number, index: number, slot: number): void {
  const { labels } = LAZY_ENTRY.x64;
  bytes.set(LAZY, at);
  putWord(bytes, at + labels.index - 4, index);
  putWord(bytes, at + labels.slot - 4, slot - (at + labels.slot));
}

/** Leaves the function's index on the stack and the address of the block in r11. */
const LAZY_GATE: LazyGate = {
  bytes: 32,
  slow: GATE.x64.labels.slow,
  write(bytes, at, block, stub) {
    const { code, labels } = GATE.x64;
    bytes.set(fromBase64(code), at);
    putWord(bytes, at + labels.block - 4, block - (at + labels.block));
    putWord(bytes, at + labels.stub - 4, stub - (at + labels.stub));
  },
};

/** The largest immediate of the short forms of ADD and CMP. */
const MAX_SHORT = 127;

/** See LoopEntryTarget. */
function emitLoopEntry(context: CodegenContext, code: MachineCode, index: number, frameBytes: number): number {
  const { code: text, labels: { call, short, long, ret } } = LOOP_ENTRY.x64;
  const parts = fromBase64(text);
  parts[long - 1] = frameBytes;
  putWord(parts, ret - 4, frameBytes);
  const sum = frameBytes <= MAX_SHORT ? parts.subarray(short, long) : parts.subarray(long, ret);
  const rest = [...(frameBytes === 0 ? [] : [sum]), parts.subarray(ret)];
  const start = context.explicitBounds ? 0 : call;
  return appendLoopEntry(code, FILLER.x64, parts.subarray(start, short), rest, index, frameBytes);
}

/**
 * Moves end with the byte ModRM and a displacement of four bytes; those of general registers begin with REX, for r8.
 */
const DISPLACEMENT_BYTES = 4;
const REX = 0x40, REX_R = 4;
/** In TY_BANK: general registers. */
const GENERAL = 1;
/** Bytes of the short jump at the end of a loop. */
const JUMP_BYTES = 2;

const THUNKS: ThunkEncoding = {
  params: paramLocations,
  results: resultLocations,
  frame: 0,
  threadRegister: RDI,
  move(part, type, register, offset) {
    const bytes = part.slice();
    const displacement = bytes.length - DISPLACEMENT_BYTES;
    bytes[displacement - 1] |= (register & 7) << 3;
    putWord(bytes, displacement, offset);
    if (TY_BANK[type] !== GENERAL || register >= R8) return bytes;
    bytes[0] &= ~REX_R;
    return bytes[0] === REX ? bytes.subarray(1) : bytes;
  },
  copy({ range, loops: [long, short] }, first, end) {
    const begin = range.slice();
    putWord(begin, begin.length - 4, first * OVERFLOW_ENTRY);
    const last = end * OVERFLOW_ENTRY;
    const loop = (last <= MAX_SHORT ? short : long).slice();
    if (last <= MAX_SHORT) loop[loop.length - JUMP_BYTES - 1] = last;
    else putWord(loop, loop.length - JUMP_BYTES - 4, last);
    return [begin, loop];
  },
};

const store = new StubStore(STUBS, FILLER.x64, THUNKS);

/** x86-64 with the System V calling convention, also on Windows (host/code/windows_code.ts). SSE4.1 is required. */
export const X64: Target = {
  name: "x64",
  filler: FILLER.x64,
  elideKey: "frame-elide",
  registers: registerFile,
  emitStubs: store.emitStubs,
  emitEntryThunk: store.emitEntryThunk,
  emitHostThunk: store.emitHostThunk,
  relocate,
  writeEntryJump,
  writeLazyEntry,
  lazyEntryBytes: LAZY.length,
  lazyGate: LAZY_GATE,
  loopEntry: { pollResume: POLL_RESUME, pollBytes: POLL_BYTES, emit: emitLoopEntry },
  processStubs: store.processStubs,
};
