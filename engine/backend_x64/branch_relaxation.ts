/**
 * Branches of x64, for codegen/branch_relaxation.ts. They start long and shrink while their distance, counted with
 * alignments at their largest, fits a byte; a jump to the next instruction disappears. Shrinking never lengthens
 * another distance, so any number of passes leaves a valid choice.
 */
import { BranchForms, finishFunction, padding, placeLabels } from "../codegen/branch_relaxation.ts";
import { putWord } from "../codegen/words.ts";
import { RELOC } from "../codegen/machine_code.ts";
import { type Emission, KIND } from "./emission.ts";

const MAX_PASSES = 4;
const LONG_JUMP = 5;
const LONG_BRANCH = 6;
const SHORT = 2;

/** Shrinks the branches that fit now; returns whether any changed. */
function shrink(e: Emission): boolean {
  const { fixupAt, fixupKind, fixupX, fixupSize, flow, labelAt } = e;
  let added = 0;
  let changed = false;
  for (let j = 0; j < e.flowCount; j++) {
    const i = flow[j];
    const kind = fixupKind[i];
    if (kind === KIND.LABEL) continue;
    const size = fixupSize[i];
    if (kind !== KIND.ALIGN && size !== 0) {
      const end = fixupAt[i] + added + size;
      const distance = labelAt[fixupX[i]] - end;
      if (distance === 0 && kind === KIND.JUMP) {
        fixupSize[i] = 0;
        changed = true;
      } else if (size > SHORT && distance >= -127 && distance <= 127) {
        // A backward distance does not grow when this branch shrinks: its end moves towards the target.
        fixupSize[i] = SHORT;
        changed = true;
      }
    }
    added += size;
  }
  return changed;
}

// No-operations of 1 to 9 bytes, as the manual recommends them: that of n bytes is at n × (n − 1) / 2.
const NOPS = Uint8Array.from([
  ...[0x90],
  ...[0x66, 0x90],
  ...[0x0f, 0x1f, 0x00],
  ...[0x0f, 0x1f, 0x40, 0x00],
  ...[0x0f, 0x1f, 0x44, 0x00, 0x00],
  ...[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
  ...[0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
  ...[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
  ...[0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
]);

function fillPadding(out: Uint8Array, at: number, count: number, code: boolean): number {
  while (count > 0) {
    const n = code ? Math.min(count, 9) : 1;
    const first = (n * (n - 1)) >> 1;
    for (let k = 0; k < n; k++) out[at + k] = code ? NOPS[first + k] : 0;
    at += n;
    count -= n;
  }
  return at;
}

function writeJump(out: Uint8Array, at: number, size: number, target: number): number {
  if (size === SHORT) {
    out[at] = 0xeb;
    out[at + 1] = target - (at + SHORT);
  } else if (size !== 0) {
    out[at] = 0xe9;
    putWord(out, at + 1, target - (at + LONG_JUMP));
  }
  return at + size;
}

function writeBranch(out: Uint8Array, at: number, size: number, condition: number, target: number): number {
  if (size === SHORT) {
    out[at] = 0x70 | condition;
    out[at + 1] = target - (at + SHORT);
  } else {
    out[at] = 0x0f;
    out[at + 1] = 0x80 | condition;
    putWord(out, at + 2, target - (at + LONG_BRANCH));
  }
  return at + size;
}

class X64BranchForms extends BranchForms<Emission> {
  constructor() {
    super(LONG_JUMP, LONG_BRANCH, LONG_BRANCH, 1);
  }

  override choose(e: Emission, _bytes: number): void {
    placeLabels(e);
    for (let pass = 0; pass < MAX_PASSES && shrink(e); pass++) placeLabels(e);
  }

  override write(e: Emission, i: number, out: Uint8Array, at: number): number {
    const x = e.fixupX[i], y = e.fixupY[i];
    switch (e.fixupKind[i]) {
      case KIND.JUMP:
        return writeJump(out, at, e.fixupSize[i], e.labelAt[x]);
      case KIND.BRANCH:
        return writeBranch(out, at, e.fixupSize[i], y, e.labelAt[x]);
      case KIND.ALIGN:
        return fillPadding(out, at, padding(at, x), y === 1);
      case KIND.RELATIVE:
        putWord(e.asm.buffer, e.fixupAt[i], e.labelAt[x] - (at + y));
        return at;
      default: // KIND.IMAGE
        e.code.addReloc(at, RELOC.IMAGE, x - y + 4);
        return at;
    }
  }
}

/** Appends the finished function to the image. */
export function finish(e: Emission): void {
  finishFunction(new X64BranchForms(), e);
}
