/**
 * From an Emission to final code: chooses short or long branches, drops jumps to the next instruction, inserts alignment, and
 * copies the bytes into the image, recording sites and relocations at their final offsets.
 *
 * Branches start long and shrink while their distance, counted with alignments at their largest, fits a byte; shrinking never
 * lengthens another distance, so any number of passes leaves a valid choice.
 */
import { RELOC } from "../codegen/machine_code.ts";
import { type Emission, KIND } from "./emission.ts";

const MAX_PASSES = 4;
const LONG_JUMP = 5;
const LONG_BRANCH = 6;

let sizes = new Int32Array(1024);
let labels = new Int32Array(1024);
/** The fixups that say where code goes: labels, branches and alignments. The passes below look at no others. */
let flow = new Int32Array(1024);
let flowCount = 0;

/** Positions of labels with the current branch sizes; alignments at their largest. */
function placeLabels(e: Emission): void {
  const { fixupAt, fixupKind, fixupX } = e;
  let added = 0;
  for (let j = 0; j < flowCount; j++) {
    const i = flow[j];
    if (fixupKind[i] === KIND.LABEL) labels[fixupX[i]] = fixupAt[i] + added;
    else added += sizes[i];
  }
}

/** Shrinks what fits now; returns whether anything changed. */
function shrink(e: Emission): boolean {
  const { fixupAt, fixupKind, fixupX } = e;
  let added = 0;
  let changed = false;
  for (let j = 0; j < flowCount; j++) {
    const i = flow[j];
    const kind = fixupKind[i];
    if (kind === KIND.LABEL) continue;
    const size = sizes[i];
    if (kind !== KIND.ALIGN && size !== 0) {
      const end = fixupAt[i] + added + size;
      const distance = labels[fixupX[i]] - end;
      if (distance === 0 && kind === KIND.JUMP) {
        sizes[i] = 0;
        changed = true;
      } else if (size > 2 && distance >= -127 && distance <= 127) {
        // A backward distance grows by nothing when this branch shrinks: its end moves towards the target.
        sizes[i] = 2;
        changed = true;
      }
    }
    added += size;
  }
  return changed;
}

// No-operations of 1 to 9 bytes, as the manual recommends them.
const NOPS: readonly Uint8Array[] = [
  [],
  [0x90],
  [0x66, 0x90],
  [0x0f, 0x1f, 0x00],
  [0x0f, 0x1f, 0x40, 0x00],
  [0x0f, 0x1f, 0x44, 0x00, 0x00],
  [0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
  [0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
  [0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
  [0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
].map((bytes) => Uint8Array.from(bytes));

/** Bytes to add at `offset` so that it is a multiple of `boundary`. */
function padding(offset: number, boundary: number): number {
  return -offset & (boundary - 1);
}

function fillPadding(out: Uint8Array, at: number, count: number, code: boolean): number {
  while (count > 0) {
    const n = code ? Math.min(count, 9) : 1;
    if (code) out.set(NOPS[n], at);
    else out[at] = 0;
    at += n;
    count -= n;
  }
  return at;
}

/** Image offset of a label of the Emission finished last. */
export function labelOffset(label: number): number {
  return labels[label];
}

/** Writes a 32-bit word. */
function word(out: Uint8Array, at: number, value: number): void {
  out[at] = value;
  out[at + 1] = value >> 8;
  out[at + 2] = value >> 16;
  out[at + 3] = value >> 24;
}

/** Appends the finished function to the image. */
export function finish(e: Emission): void {
  const { asm, code, fixupCount, fixupAt, fixupKind, fixupX, fixupY, fixupZ, fixupW } = e;
  if (sizes.length < fixupCount) {
    sizes = new Int32Array(fixupCount * 2);
    flow = new Int32Array(fixupCount * 2);
  }
  if (labels.length < e.labelCount) labels = new Int32Array(e.labelCount * 2);
  let extra = 0;
  flowCount = 0;
  for (let i = 0; i < fixupCount; i++) {
    const kind = fixupKind[i];
    if (kind > KIND.ALIGN) continue;
    flow[flowCount++] = i;
    if (kind === KIND.LABEL) continue;
    const size = kind === KIND.JUMP ? LONG_JUMP : kind === KIND.BRANCH ? LONG_BRANCH : fixupX[i] - 1;
    sizes[i] = size;
    extra += size;
  }
  placeLabels(e);
  for (let pass = 0; pass < MAX_PASSES && shrink(e); pass++) placeLabels(e);

  code.reserve(asm.at + extra + 16);
  const out = code.bytes;
  const base = code.length;
  const source = asm.buffer;

  // Final positions of labels, with exact alignments.
  let at = base;
  let copied = 0;
  for (let j = 0; j < flowCount; j++) {
    const i = flow[j];
    const kind = fixupKind[i];
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
        if (sizes[i] === 2) {
          out[at] = 0xeb;
          out[at + 1] = labels[x] - (at + 2);
          at += 2;
        } else if (sizes[i] !== 0) {
          out[at] = 0xe9;
          word(out, at + 1, labels[x] - (at + LONG_JUMP));
          at += LONG_JUMP;
        }
        break;
      case KIND.BRANCH:
        if (sizes[i] === 2) {
          out[at] = 0x70 | y;
          out[at + 1] = labels[x] - (at + 2);
          at += 2;
        } else {
          out[at] = 0x0f;
          out[at + 1] = 0x80 | y;
          word(out, at + 2, labels[x] - (at + LONG_BRANCH));
          at += LONG_BRANCH;
        }
        break;
      case KIND.ALIGN:
        at = fillPadding(out, at, padding(at, x), y === 1);
        break;
      case KIND.RELATIVE:
        word(source, to, labels[x] - (at + y));
        break;
      case KIND.IMAGE:
        code.addReloc(at, RELOC.IMAGE, x - y + 4);
        break;
      case KIND.DIFFERENCE:
        word(source, to, labels[x] - labels[y]);
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
