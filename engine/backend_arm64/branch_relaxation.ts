/**
 * From an Emission to final code: chooses short or long branches, drops jumps to the next instruction, inserts alignment, and
 * copies the words into the image, recording sites and relocations at their final offsets.
 *
 * Conditional branches start short and grow to two words (the opposite branch over an unconditional one) while their target is too
 * far; growing never shortens another distance, so the choice ends.
 */
import { type Emission, KIND } from "./emission.ts";
import { X } from "./instructions.ts";
import { ROW_BITS } from "./instructions.ts";

/** Bytes of an unconditional branch that stand for a mark. */
const WORD = 4;
/** An unconditional branch, a call, and their reach: 26 bits of words. */
const FAR = 1 << 27;

let sizes = new Int32Array(1024);
let labels = new Int32Array(1024);

/** Positions of labels with the current branch sizes; alignments at their largest. Fixups add `sizes` bytes after themselves. */
function placeLabels(e: Emission): void {
  const { fixupCount, fixupAt, fixupKind, fixupX } = e;
  let added = 0;
  for (let i = 0; i < fixupCount; i++) {
    const kind = fixupKind[i];
    if (kind === KIND.LABEL) labels[fixupX[i]] = fixupAt[i] + added;
    else if (kind <= KIND.ALIGN) added += sizes[i];
  }
}

/** Grows the branches that do not reach; returns whether anything changed. */
function grow(e: Emission): boolean {
  const { fixupCount, fixupAt, fixupKind, fixupX, fixupY } = e;
  let added = 0;
  let changed = false;
  for (let i = 0; i < fixupCount; i++) {
    const kind = fixupKind[i];
    if (kind === KIND.LABEL || kind > KIND.ALIGN) continue;
    if (kind === KIND.BRANCH && sizes[i] === 0) {
      const distance = labels[fixupX[i]] - (fixupAt[i] + added);
      // Alignments may still shrink or grow distances by less than a word per mark; one bit of reserve covers them.
      if (Math.abs(distance) >= 1 << fixupY[i]) {
        sizes[i] = WORD;
        changed = true;
      }
    }
    added += sizes[i];
  }
  return changed;
}

/** Drops jumps to where they stand. */
function dropJumps(e: Emission): void {
  const { fixupCount, fixupAt, fixupKind, fixupX } = e;
  for (let i = 0; i < fixupCount; i++) {
    if (fixupKind[i] !== KIND.JUMP) continue;
    // Only labels may stand between the jump and its target.
    for (let j = i + 1; j < fixupCount && fixupAt[j] === fixupAt[i]; j++) {
      if (fixupKind[j] !== KIND.LABEL) break;
      if (fixupX[j] === fixupX[i]) {
        sizes[i] = 0;
        break;
      }
    }
  }
}

/** Image offset of a label of the Emission finished last. */
export function labelOffset(label: number): number {
  return labels[label];
}

function getWord(out: Uint8Array, at: number): number {
  return out[at] | (out[at + 1] << 8) | (out[at + 2] << 16) | (out[at + 3] << 24);
}

function putWord(out: Uint8Array, at: number, value: number): void {
  out[at] = value;
  out[at + 1] = value >> 8;
  out[at + 2] = value >> 16;
  out[at + 3] = value >> 24;
}

/** The word of `b` over `distance` bytes. */
function jumpWord(distance: number): number {
  if (distance >= FAR || distance < -FAR) throw new RangeError("A function is too large for a branch of arm64");
  return ROW_BITS[X.B] | ((distance >> 2) & 0x3ffffff);
}

function padding(offset: number, boundary: number): number {
  return -offset & (boundary - 1);
}

/** Appends the finished function to the image. */
export function finish(e: Emission): void {
  const { asm, code, fixupCount, fixupAt, fixupKind, fixupX, fixupY, fixupZ, fixupW } = e;
  if (sizes.length < fixupCount) sizes = new Int32Array(fixupCount * 2);
  if (labels.length < e.labelCount) labels = new Int32Array(e.labelCount * 2);
  let extra = 0;
  for (let i = 0; i < fixupCount; i++) {
    const kind = fixupKind[i];
    sizes[i] = kind === KIND.JUMP ? WORD : kind === KIND.ALIGN ? fixupX[i] - WORD : 0;
    extra += kind === KIND.BRANCH ? WORD : sizes[i];
  }
  dropJumps(e);
  placeLabels(e);
  // A distance below the smallest reach needs no look at each branch.
  if (asm.at + extra >= 1 << 14) { while (grow(e)) placeLabels(e); }

  code.reserve(asm.at + extra + 16);
  const out = code.bytes;
  const base = code.length;
  const source = asm.buffer;

  // Final positions of labels, with exact alignments.
  let at = base;
  let copied = 0;
  for (let i = 0; i < fixupCount; i++) {
    const kind = fixupKind[i];
    if (kind > KIND.ALIGN) continue;
    at += fixupAt[i] - copied;
    copied = fixupAt[i];
    if (kind === KIND.LABEL) labels[fixupX[i]] = at;
    else at += kind === KIND.ALIGN ? padding(at, fixupX[i]) : sizes[i];
  }

  at = base;
  copied = 0;
  for (let i = 0; i < fixupCount; i++) {
    const to = fixupAt[i];
    while (copied < to) out[at++] = source[copied++];
    const x = fixupX[i];
    const y = fixupY[i];
    switch (fixupKind[i]) {
      case KIND.JUMP:
        if (sizes[i] !== 0) {
          putWord(out, at, jumpWord(labels[x] - at));
          at += WORD;
        }
        break;
      case KIND.BRANCH: {
        const word = getWord(source, to);
        const mask = (1 << y) - 1;
        if (sizes[i] === 0) {
          putWord(source, to, word | ((((labels[x] - at) >> 2) & mask) << fixupZ[i]));
        } else {
          // The opposite branch jumps over the long one, which takes the place of the word in the source.
          putWord(out, at, (word ^ (1 << fixupW[i])) | (2 << fixupZ[i]));
          at += WORD;
          putWord(source, to, jumpWord(labels[x] - at));
        }
        break;
      }
      case KIND.ALIGN:
        for (let n = padding(at, x); n > 0; n -= WORD) {
          putWord(out, at, y === 1 ? ROW_BITS[X.NOP] : 0);
          at += WORD;
        }
        break;
      case KIND.LITERAL:
        putWord(source, to, getWord(source, to) | ((((labels[x] - at) >> 2) & 0x7ffff) << 5));
        break;
      case KIND.ADDRESS: {
        const distance = labels[x] - at;
        putWord(source, to, getWord(source, to) | ((distance & 3) << 29) | (((distance >> 2) & 0x7ffff) << 5));
        break;
      }
      case KIND.DIFFERENCE:
        putWord(source, to, labels[x] - labels[y]);
        break;
      case KIND.CALL_SITE:
        code.addCallSite(at, x, y, fixupZ[i], fixupW[i] < 2 ? -1 : labels[(fixupW[i] >> 1) - 1], fixupW[i] & 1);
        break;
      case KIND.TRAP_SITE:
        code.addTrapSite(at, fixupW[i], x, y, fixupZ[i]);
        break;
      case KIND.RELOCATION:
        code.addReloc(at, x, y);
        break;
    }
  }
  while (copied < asm.at) out[at++] = source[copied++];
  code.length = at;
}
