/**
 * Branch relaxation and final placement. In: a FunctionEmission, whose buffer lacks some or all of its branches, and
 * its fixups. Out: the function's bytes at the end of the image, with every branch in the form that reaches its target,
 * padding inserted, and sites and relocations recorded at their final offsets.
 *
 * The backend's BranchForms says how long branches are, which of them must change form, and how fixups are written.
 * Sizes are chosen with alignments at their largest, so a chosen form stays valid when the final padding turns out
 * smaller.
 */
import { FIXUP, type FunctionEmission } from "./emission.ts";
import { putWord } from "./words.ts";

/** Branches of an instruction set. */
export abstract class BranchForms<E extends FunctionEmission> {
  /** Bytes that a jump and a conditional branch add to the buffer's code before `choose` runs. */
  readonly jump: number;
  readonly branch: number;
  /** Most bytes that a conditional branch may add. */
  readonly longestBranch: number;
  /** Granularity of padding in bytes. */
  readonly unit: number;

  constructor(jump: number, branch: number, longestBranch: number, unit: number) {
    this.jump = jump;
    this.branch = branch;
    this.longestBranch = longestBranch;
    this.unit = unit;
  }

  /** Chooses e.fixupSize per branch; `bytes` bounds the function's length. */
  abstract choose(e: E, bytes: number): void;
  /**
   * Writes fixup `i`, which is at offset `at` of `out`, there or into the buffer's code that follows it; returns the
   * offset after it. Called for JUMP, BRANCH, ALIGN and the backend's own kinds.
   */
  abstract write(e: E, i: number, out: Uint8Array, at: number): number;
}

/** Image offset of a label of the function that was finished last. */
export function labelOffset(e: FunctionEmission, label: number): number {
  return e.labelAt[label];
}

/** Number of bytes to add at `offset` so that it is a multiple of `boundary`. */
export function padding(offset: number, boundary: number): number {
  return -offset & (boundary - 1);
}

/** Computes positions of labels from the current branch sizes, with alignments at their largest. */
export function placeLabels(e: FunctionEmission): void {
  const { fixupAt, fixupKind, fixupX, fixupSize, flow, labelAt } = e;
  let added = 0;
  for (let j = 0; j < e.flowCount; j++) {
    const i = flow[j];
    if (fixupKind[i] === FIXUP.LABEL) labelAt[fixupX[i]] = fixupAt[i] + added;
    else added += fixupSize[i];
  }
}

/**
 * Lists the fixups that determine positions of code, with their sizes before relaxation; returns an upper bound of the
 * bytes they add.
 */
function prepareFlow<E extends FunctionEmission>(forms: BranchForms<E>, e: E): number {
  e.ensureRelaxation();
  const { fixupCount, fixupKind, fixupX, fixupSize, flow } = e;
  let maxBytes = 0;
  e.flowCount = 0;
  for (let i = 0; i < fixupCount; i++) {
    const kind = fixupKind[i];
    if (kind > FIXUP.ALIGN) continue;
    flow[e.flowCount++] = i;
    if (kind === FIXUP.LABEL) continue;
    fixupSize[i] = kind === FIXUP.JUMP ? forms.jump : kind === FIXUP.BRANCH ? forms.branch : fixupX[i] - forms.unit;
    maxBytes += kind === FIXUP.BRANCH ? forms.longestBranch : fixupSize[i];
  }
  return maxBytes;
}

/** Computes image offsets of labels, with exact alignments. */
function fixLabels(e: FunctionEmission, base: number): void {
  const { fixupAt, fixupKind, fixupX, fixupSize, flow, labelAt } = e;
  let at = base;
  let copied = 0;
  for (let j = 0; j < e.flowCount; j++) {
    const i = flow[j];
    const kind = fixupKind[i];
    at += fixupAt[i] - copied;
    copied = fixupAt[i];
    if (kind === FIXUP.LABEL) labelAt[fixupX[i]] = at;
    else at += kind === FIXUP.ALIGN ? padding(at, fixupX[i]) : fixupSize[i];
  }
}

/**
 * The rows of `MachineCode.positions` for the marks of the function that was finished last and begins at `base`. Of
 * several marks at one offset the last counts.
 */
export function markRows(e: FunctionEmission, marks: readonly number[], base: number): Int32Array {
  const { fixupAt, fixupKind, fixupX, fixupSize, flow } = e;
  const rows: number[] = [];
  let added = 0;
  let j = 0;
  for (let k = 0; k < marks.length; k += 4) {
    for (; j < e.flowCount && flow[j] < marks[k + 1]; j++) {
      const i = flow[j];
      if (fixupKind[i] === FIXUP.LABEL) continue;
      added += fixupKind[i] === FIXUP.ALIGN ? padding(base + fixupAt[i] + added, fixupX[i]) : fixupSize[i];
    }
    const at = base + marks[k] + added;
    if (rows.length > 0 && rows[rows.length - 3] === at) rows.length -= 3;
    rows.push(at);
    rows.push(marks[k + 2]);
    rows.push(marks[k + 3]);
  }
  const list = new Int32Array(rows.length);
  for (let k = 0; k < rows.length; k++) list[k] = rows[k];
  return list;
}

/** Records the site or relocation of fixup `i` at offset `at` of the image. */
function record(e: FunctionEmission, i: number, at: number): void {
  const { code, labelAt } = e;
  const x = e.fixupX[i], y = e.fixupY[i], z = e.fixupZ[i], w = e.fixupW[i];
  switch (e.fixupKind[i]) {
    case FIXUP.DIFFERENCE:
      putWord(e.out.buffer, e.fixupAt[i], labelAt[x] - labelAt[y]);
      break;
    case FIXUP.CALL_SITE:
      code.addCallSite(at, x, y, z, w < 2 ? -1 : labelAt[(w >> 1) - 1], w & 1);
      break;
    case FIXUP.TRAP_SITE:
      code.addTrapSite(at, w, x, y, z);
      break;
    case FIXUP.RELOCATION:
      code.addReloc(at, x, y);
      break;
  }
}

/** Appends the function in `e` to its image. */
export function finishFunction<E extends FunctionEmission>(forms: BranchForms<E>, e: E): void {
  const { out: source, code, fixupCount, fixupAt, fixupKind } = e;
  const maxBytes = prepareFlow(forms, e);
  forms.choose(e, source.at + maxBytes);
  code.reserve(source.at + maxBytes + 16);
  const out = code.bytes;
  const { buffer } = source;
  fixLabels(e, code.length);
  let at = code.length;
  let copied = 0;
  for (let i = 0; i < fixupCount; i++) {
    const to = fixupAt[i];
    while (copied < to) out[at++] = buffer[copied++];
    const kind = fixupKind[i];
    if (kind === FIXUP.LABEL) continue;
    if (kind <= FIXUP.ALIGN || kind >= FIXUP.OWN) at = forms.write(e, i, out, at);
    else record(e, i, at);
  }
  while (copied < source.at) out[at++] = buffer[copied++];
  code.length = at;
}
