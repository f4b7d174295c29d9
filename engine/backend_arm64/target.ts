/** The arm64 backend without code generation: the Target of codegen/target.ts, with stored stubs. */
import { fromBase64 } from "../base/base64.ts";
import { FILLER } from "../codegen/align_image.ts";
import { appendLoopEntry } from "../codegen/loop_entry.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import { relocateImage } from "../codegen/relocate.ts";
import { StubStore } from "../codegen/stored_stubs.ts";
import type { ThunkEncoding } from "../codegen/stored_thunks.ts";
import type { CodegenContext, Target } from "../codegen/target.ts";
import { putWord } from "../codegen/words.ts";
import { TY_BYTES } from "../ir/types.ts";
import { FAULT_FRAME, OVERFLOW_ENTRY, paramLocations, resultLocations } from "./abi.ts";
import { ENTRY_JUMP, LAZY_ENTRY, LOOP_ENTRY } from "./generated_entries.ts";
import { STUBS } from "./generated_stubs.ts";
import { POLL_BYTES, POLL_RESUME } from "./poll_frame.ts";
import { registerFile } from "./registers.ts";

/** Reach in bytes of a branch with a displacement of 26 bits of words, in either direction. */
const REACH = 1 << 27;

/** The immediates of branches, of moves and of ADRP, and the unit of the latter. */
const BRANCH_FIELD = (1 << 26) - 1;
const HALF_WORD = (1 << 16) - 1;
const ADDRESS_FIELD = (1 << 19) - 1;
const PAGE = 1 << 12;

/** The words of a stored program. Every host is little-endian. */
function wordsOf({ code }: { readonly code: string }): Int32Array {
  return new Int32Array(fromBase64(code).buffer);
}

/** Writes the displacements of calls and jumps between functions and stubs of the image. */
function relocate(code: MachineCode): void {
  relocateImage(code, (bytes, at, target) => {
    const distance = target - at;
    if (distance >= REACH || distance < -REACH) {
      throw new RangeError("The module's code is too large for the branches of arm64");
    }
    putWord(bytes, at, ((bytes[at + 3] >> 2) << 26) | ((distance >> 2) & BRANCH_FIELD));
  });
}

const [JUMP] = wordsOf(ENTRY_JUMP.arm64);

/** B imm26: 128 MiB in either direction. */
function writeEntryJump(bytes: Uint8Array, at: number, distance: number): boolean {
  if (Math.abs(distance) >= REACH) return false;
  putWord(bytes, at, JUMP | ((distance >> 2) & BRANCH_FIELD));
  return true;
}

const LAZY = wordsOf(LAZY_ENTRY.arm64);

/** MOVZ w16 and MOVK w16 with the index; ADRP x17 and LDR x17 with the address in the slot; BR x17. */
function writeLazyEntry(bytes: Uint8Array, at: number, index: number, slot: number): void {
  const pages = (slot >> 12) - ((at + 8) >> 12);
  putWord(bytes, at, LAZY[0] | ((index & HALF_WORD) << 5));
  putWord(bytes, at + 4, LAZY[1] | ((index >>> 16) << 5));
  putWord(bytes, at + 8, LAZY[2] | ((pages & 3) << 29) | (((pages >> 2) & ADDRESS_FIELD) << 5));
  putWord(bytes, at + 12, LAZY[3] | (((slot & (PAGE - 1)) >> 3) << 10));
  putWord(bytes, at + 16, LAZY[4]);
}

/** The immediate of ADD, and of loads and stores. */
const SUM_BITS = 12;
const SUM_FIELD = 10;
/** Frames that two ADDs cannot release; those of the baseline tier are smaller. */
const MAX_RELEASED = 1 << (2 * SUM_BITS);

/** See LoopEntryTarget; `frameBytes` is that of a faulting site (abi.ts). */
function emitLoopEntry(context: CodegenContext, code: MachineCode, index: number, frameBytes: number): number {
  const { labels: { call, high, low, ret } } = LOOP_ENTRY.arm64;
  const distance = frameBytes - FAULT_FRAME;
  // The last instruction but one takes the return address with the word below it.
  const released = distance - 8;
  if (released < 0 || released >= MAX_RELEASED) {
    throw new RangeError(`A frame of ${frameBytes} bytes has no loop entry`);
  }
  const highPart = released >> SUM_BITS, lowPart = released & ((1 << SUM_BITS) - 1);
  const words = wordsOf(LOOP_ENTRY.arm64);
  words[high >> 2] |= highPart << SUM_FIELD;
  words[low >> 2] |= lowPart << SUM_FIELD;
  const parts = new Uint8Array(words.buffer);
  const rest = [
    ...(highPart === 0 ? [] : [parts.subarray(high, low)]),
    ...(highPart !== 0 && lowPart === 0 ? [] : [parts.subarray(low, ret)]),
    parts.subarray(ret),
  ];
  const start = context.explicitBounds ? 0 : call;
  return appendLoopEntry(code, FILLER.arm64, parts.subarray(start, high), rest, index, distance);
}

/** The words of `range` that load its ends, and their field. */
const FIRST_WORD = 2, END_WORD = 3;
const MOVE_FIELD = 5;

/** A copy of a part of a thunk, in words. */
function copied(part: Uint8Array): Int32Array {
  return new Int32Array(part.slice().buffer);
}

const THUNKS: ThunkEncoding = {
  params: paramLocations,
  results: resultLocations,
  frame: 8,
  move(part, type, register, offset) {
    const words = copied(part);
    words[0] |= (register & 31) | ((offset / TY_BYTES[type]) << SUM_FIELD);
    return new Uint8Array(words.buffer);
  },
  copy({ range, loops }, first, end) {
    const words = copied(range);
    words[FIRST_WORD] |= (first * OVERFLOW_ENTRY) << MOVE_FIELD;
    words[END_WORD] |= (end * OVERFLOW_ENTRY) << MOVE_FIELD;
    return [new Uint8Array(words.buffer), ...loops];
  },
};

const store = new StubStore(STUBS, FILLER.arm64, THUNKS);

/** 64-bit Arm (Linux and macOS), from Armv8.0 on. */
export const ARM64: Target = {
  name: "arm64",
  filler: FILLER.arm64,
  elideKey: "frame-elide-reghomed",
  registers: registerFile,
  emitStubs: store.emitStubs,
  emitEntryThunk: store.emitEntryThunk,
  emitHostThunk: store.emitHostThunk,
  relocate,
  writeEntryJump,
  writeLazyEntry,
  lazyEntryBytes: LAZY.byteLength,
  loopEntry: { pollResume: POLL_RESUME, pollBytes: POLL_BYTES, emit: emitLoopEntry },
  processStubs: store.processStubs,
  cacheMaintenance: store.cacheMaintenance,
};
