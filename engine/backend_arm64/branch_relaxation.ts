/**
 * Branches of arm64, for codegen/branch_relaxation.ts. Conditional branches start as the one word in the buffer and
 * grow to two (the opposite branch over an unconditional one) while their target is too far; growing never shortens
 * another distance, so the choice ends. Jumps to the next instruction disappear.
 */
import { BranchForms, finishFunction, padding, placeLabels } from "../codegen/branch_relaxation.ts";
import { putWord } from "../codegen/words.ts";
import { type Emission, KIND } from "./emission.ts";
import { ROW_BITS, X } from "./instructions.ts";

/** Bytes of an instruction. */
const WORD = 4;
/** Reach of an unconditional branch or a call in bytes: 26 bits of words. */
const FAR = 1 << 27;
/** Smallest reach of a conditional branch (TBZ). */
const NEAR = 1 << 14;

/** Grows the branches that do not reach; returns whether any changed. */
function grow(e: Emission): boolean {
  const { fixupAt, fixupKind, fixupX, fixupY, fixupSize, flow, labelAt } = e;
  let added = 0;
  let changed = false;
  for (let j = 0; j < e.flowCount; j++) {
    const i = flow[j];
    const kind = fixupKind[i];
    if (kind === KIND.LABEL) continue;
    if (kind === KIND.BRANCH && fixupSize[i] === 0) {
      const distance = labelAt[fixupX[i]] - (fixupAt[i] + added);
      // Padding may still change distances by less than a word per alignment; one bit of reserve covers that.
      if (Math.abs(distance) >= 1 << fixupY[i]) {
        fixupSize[i] = WORD;
        changed = true;
      }
    }
    added += fixupSize[i];
  }
  return changed;
}

/** Drops jumps to the next instruction. */
function dropJumps(e: Emission): void {
  const { fixupCount, fixupAt, fixupKind, fixupX, fixupSize } = e;
  for (let i = 0; i < fixupCount; i++) {
    if (fixupKind[i] !== KIND.JUMP) continue;
    // Only labels may be between the jump and its target.
    for (let j = i + 1; j < fixupCount && fixupAt[j] === fixupAt[i]; j++) {
      if (fixupKind[j] !== KIND.LABEL) break;
      if (fixupX[j] === fixupX[i]) {
        fixupSize[i] = 0;
        break;
      }
    }
  }
}

function getWord(out: Uint8Array, at: number): number {
  return out[at] | (out[at + 1] << 8) | (out[at + 2] << 16) | (out[at + 3] << 24);
}

/** The word of `b` over `distance` bytes. */
function jumpWord(distance: number): number {
  if (distance >= FAR || distance < -FAR) throw new RangeError("A function is too large for a branch of arm64");
  return ROW_BITS[X.B] | ((distance >> 2) & 0x3ffffff);
}

function writeBranch(e: Emission, i: number, out: Uint8Array, at: number): number {
  const source = e.asm.buffer;
  const from = e.fixupAt[i];
  const word = getWord(source, from);
  const field = e.fixupZ[i];
  const target = e.labelAt[e.fixupX[i]];
  if (e.fixupSize[i] === 0) {
    const mask = (1 << e.fixupY[i]) - 1;
    putWord(source, from, word | ((((target - at) >> 2) & mask) << field));
    return at;
  }
  // The opposite branch skips the long one, which replaces the word in the source.
  putWord(out, at, (word ^ (1 << e.fixupW[i])) | (2 << field));
  putWord(source, from, jumpWord(target - (at + WORD)));
  return at + WORD;
}

function fillPadding(out: Uint8Array, at: number, count: number, code: boolean): number {
  for (const end = at + count; at < end; at += WORD) putWord(out, at, code ? ROW_BITS[X.NOP] : 0);
  return at;
}

/** Sets `bits` in the word at fixup `i`. */
function patch(e: Emission, i: number, bits: number): void {
  const source = e.asm.buffer;
  putWord(source, e.fixupAt[i], getWord(source, e.fixupAt[i]) | bits);
}

class Arm64BranchForms extends BranchForms<Emission> {
  constructor() {
    super(WORD, 0, WORD, WORD);
  }

  override choose(e: Emission, bytes: number): void {
    dropJumps(e);
    placeLabels(e);
    if (bytes >= NEAR) { while (grow(e)) placeLabels(e); }
  }

  override write(e: Emission, i: number, out: Uint8Array, at: number): number {
    const x = e.fixupX[i];
    switch (e.fixupKind[i]) {
      case KIND.JUMP:
        if (e.fixupSize[i] !== 0) putWord(out, at, jumpWord(e.labelAt[x] - at));
        return at + e.fixupSize[i];
      case KIND.BRANCH:
        return writeBranch(e, i, out, at);
      case KIND.ALIGN:
        return fillPadding(out, at, padding(at, x), e.fixupY[i] === 1);
      case KIND.LITERAL:
        patch(e, i, (((e.labelAt[x] - at) >> 2) & 0x7ffff) << 5);
        return at;
      default: { // KIND.ADDRESS
        const distance = e.labelAt[x] - at;
        patch(e, i, ((distance & 3) << 29) | (((distance >> 2) & 0x7ffff) << 5));
        return at;
      }
    }
  }
}

/** Appends the finished function to the image. */
export function finish(e: Emission): void {
  finishFunction(new Arm64BranchForms(), e);
}
