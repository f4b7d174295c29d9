/**
 * Emission of a function: VCode and its Allocation → bytes, sites and relocations, appended to the image. The order is
 * the same for all backends; their Emitter emits the parts.
 *
 *     stack check · frame · blocks in layout order, each with its edits and instructions · out-of-line code
 *     constants and tables
 *
 * The frame is allocated at one place per path (block_ends.ts) and only calls into other instances move the stack
 * pointer otherwise, so that every site's frame size is known.
 */
import { TRAP } from "../base/traps.ts";
import { alignImage } from "./align_image.ts";
import type { BlockEnds } from "./block_ends.ts";
import { labelOffset, markRows } from "./branch_relaxation.ts";
import { emitCall } from "./emit_calls.ts";
import { emitBranch, emitJump } from "./emit_edges.ts";
import { FIXUP, type FunctionEmission, OUT_OF_LINE } from "./emission.ts";
import type { Emitter } from "./emitter.ts";
import { AUX_LANDING, auxConsumer, CONSUMER, PSEUDO, PSEUDO_BASE } from "./pseudo_ops.ts";

/**
 * Emits defined function `index`, which `e` has begun. `distance` is the number of bytes between the stack pointer and
 * the return address.
 */
export function emitFunctionBody<E extends FunctionEmission>(
  emitter: Emitter<E>,
  e: E,
  ends: BlockEnds,
  index: number,
  distance: number,
): void {
  const { v, code, frame } = e;
  ends.compute(e);
  ends.alignment.compute(v, ends.predecessors, ends.target, emitter.alignsWidely);
  code.alignment = ends.alignment.ofFunction;
  alignImage(code, code.alignment, emitter.filler);
  code.functionStart[index] = code.length;
  const { positions } = code;
  e.marks = undefined;
  if (positions !== undefined && positions.has(index)) e.marks = [];
  e.mark(-1);
  if (ends.frameless[0] === 0) emitter.prologue(e);
  const { layout } = v;
  for (let p = 0; p < v.blockCount; p++) {
    const k = layout[p];
    if (ends.target[k] !== k) continue;
    let next = p + 1;
    while (next < v.blockCount && ends.target[layout[next]] !== layout[next]) next++;
    ends.next = next < v.blockCount ? layout[next] : -1;
    e.frame = ends.frameless[k] !== 0 ? 0 : frame;
    emitBlock(emitter, e, ends, k);
  }
  const cold = e.newLabel();
  e.bind(cold);
  emitFragments(emitter, e, ends);
  const end = e.newLabel();
  e.bind(end);
  emitter.data(e);
  emitter.finish(e);
  code.functionEnd[index] = labelOffset(e, end);
  code.functionFrame[index] = distance;
  const { blockStarts } = code;
  if (blockStarts !== undefined) {
    const starts = new Int32Array(v.blockCount + 1);
    for (let k = 0; k < v.blockCount; k++) starts[k] = ends.emitted[k] !== 0 ? labelOffset(e, k) : -1;
    starts[v.blockCount] = labelOffset(e, cold);
    blockStarts[index] = starts;
  }
  const { marks } = e;
  if (marks !== undefined && positions !== undefined) {
    positions.set(index, markRows(e, marks, code.functionStart[index]));
  }
  const { writtenGeneral, writtenVector } = e.allocation;
  code.writtenGeneral[index] = writtenGeneral;
  code.writtenVector[index] = writtenVector;
  code.writtenKnown[index] = 1;
}

function emitBlock<E extends FunctionEmission>(emitter: Emitter<E>, e: E, ends: BlockEnds, k: number): void {
  const { v, allocation, out } = e;
  const { editAt, edgeFirst, skip } = allocation;
  const { reserved } = emitter;
  ends.emitted[k] = 1;
  const alignment = ends.alignment.ofBlock[k];
  if (alignment > 1) e.fixup(FIXUP.ALIGN, alignment, 1, 0, 0);
  e.bind(k);
  if (ends.prologue[k] !== 0) {
    emitter.prologue(e);
    for (const spill of ends.deferred) emitter.edits(e, spill, spill + 1);
  }
  const head = ends.headEdge[k];
  if (head !== 0) emitter.edits(e, edgeFirst[head - 1], edgeFirst[head]);
  const first = v.blockFirst[k];
  const end = v.blockFirst[k + 1];
  const editEnd = e.editEnd;
  let edit = ends.firstEdit[k];
  for (let i = first; i < end; i++) {
    const start = edit;
    while (edit < editEnd && editAt[edit] === 2 * i) edit++;
    if (edit > start) emitUndeferred(emitter, e, ends, k, start, edit);
    out.reserve(reserved);
    e.mark(i);
    if (skip[i] === 0) emitInstruction(emitter, e, ends, i, k);
    const after = edit;
    while (edit < editEnd && editAt[edit] === 2 * i + 1) edit++;
    if (edit > after) emitUndeferred(emitter, e, ends, k, after, edit);
  }
}

/** Emits edits [first, end) of block `k`, except those that wait for the prologue. */
function emitUndeferred<E extends FunctionEmission>(
  emitter: Emitter<E>,
  e: E,
  ends: BlockEnds,
  k: number,
  first: number,
  end: number,
): void {
  if (k !== 0 || ends.deferred.length === 0) {
    emitter.edits(e, first, end);
    return;
  }
  for (let m = first; m < end; m++) if (!ends.deferred.includes(m)) emitter.edits(e, m, m + 1);
}

function emitInstruction<E extends FunctionEmission>(
  emitter: Emitter<E>,
  e: E,
  ends: BlockEnds,
  i: number,
  k: number,
): void {
  const { v } = e;
  const op = v.op[i];
  if (op < PSEUDO_BASE) {
    if (auxConsumer(v.aux[i]) === CONSUMER.BRANCH) {
      const s = v.succStart[k];
      emitBranch(emitter, e, ends, i, v.succ[s], v.succ[s + 1]);
    } else emitter.row(e, i);
    return;
  }
  switch (op) {
    case PSEUDO.ENTRY:
    case PSEUDO.ZERO_EXTEND:
      return;
    case PSEUDO.JUMP:
      return emitJump(emitter, e, ends, v.succ[v.succStart[k]]);
    case PSEUDO.UNWIND:
      return emitJump(emitter, e, ends, v.succ[v.succStart[k] + 1]);
    case PSEUDO.SWITCH:
      return emitter.switchOn(e, ends, i, v.succStart[k], v.imm[i]);
    case PSEUDO.TRAP:
      return emitter.callTrap(e, i, v.imm[i], e.frame);
    case PSEUDO.CALL:
    case PSEUDO.CALL_RECORD:
    case PSEUDO.CALL_IMPORT:
    case PSEUDO.CALL_NATIVE:
    case PSEUDO.CALL_PARKING:
      if ((v.aux[i] & AUX_LANDING) !== 0) {
        e.landing = e.outOfLine(OUT_OF_LINE.LANDING, i, v.succ[v.succStart[k]], 0) + 1;
      }
      emitCall(emitter, e, i, op);
      e.landing = 0;
      return;
  }
  emitOperation(emitter, e, i, op);
}

/** Pseudo operation `op` that names no block. */
function emitOperation<E extends FunctionEmission>(emitter: Emitter<E>, e: E, i: number, op: number): void {
  switch (op) {
    case PSEUDO.CONST_I32:
    case PSEUDO.CONST_I64:
    case PSEUDO.CONST_F32:
    case PSEUDO.CONST_F64:
    case PSEUDO.CONST_V128:
      return emitter.rematerialize(e, i, e.location[e.v.firstOperand[i]]);
    case PSEUDO.RETURN:
      return emitter.leave(e);
    case PSEUDO.TAIL_CALL:
    case PSEUDO.TAIL_CALL_RECORD:
    case PSEUDO.TAIL_CALL_IMPORT:
      return emitter.tailCall(e, i, op);
    case PSEUDO.BOUNDS:
      return emitter.bounds(e, i);
    case PSEUDO.CHECK_INDEX:
      return emitter.checkIndex(e, i);
    case PSEUDO.CHARGE:
      return emitter.charge(e, i);
    case PSEUDO.POLL:
      return emitter.poll(e, i);
    case PSEUDO.GC_ALLOC:
      return emitter.allocation(e, i);
    case PSEUDO.DIV_S:
    case PSEUDO.DIV_U:
    case PSEUDO.REM_S:
    case PSEUDO.REM_U:
      return emitter.division(e, i, op);
    case PSEUDO.FCOPYSIGN:
      return emitter.copysign(e, i);
    case PSEUDO.TRUNC_S32:
    case PSEUDO.TRUNC_U32:
    case PSEUDO.TRUNC_S64:
    case PSEUDO.TRUNC_U64:
      return emitter.truncation(e, i, op);
    case PSEUDO.ATOMIC_LOOP:
      return emitter.atomicLoop(e, i);
  }
  emitter.instruction(e, i, op);
}

/** Emits the landing pad of `edge`, at whose start only the registers of context and memory hold values. */
function emitLanding<E extends FunctionEmission>(emitter: Emitter<E>, e: E, ends: BlockEnds, edge: number): void {
  const { edgeFirst, editFrom, editTo, editRemat } = e.allocation;
  // Registers that the moves themselves have written, general ones in the first word.
  let general = 0;
  let vector = 0;
  for (let m = edgeFirst[edge]; m < edgeFirst[edge + 1]; m++) {
    const from = editFrom[m];
    const to = editTo[m];
    if (editRemat[m] <= 0 && from >= 0 && (((from < 32 ? general : vector) >>> (from & 31)) & 1) === 0) {
      throw new Error(`A landing pad reads register ${from}, which no call preserves`);
    }
    if (to >= 32) vector |= 1 << (to & 31);
    else if (to >= 0) general |= 1 << to;
  }
  emitter.edits(e, edgeFirst[edge], edgeFirst[edge + 1]);
  e.jump(ends.target[e.v.edgeTo[edge]]);
}

/** Emits out-of-line code in the order in which it was queued; that may queue more. */
function emitFragments<E extends FunctionEmission>(emitter: Emitter<E>, e: E, ends: BlockEnds): void {
  const { fragmentKind, fragmentLabel, fragmentBack, fragmentAt, fragmentX } = e;
  ends.next = -1;
  for (let c = 0; c < fragmentKind.length; c++) {
    e.out.reserve(emitter.reserved);
    e.bind(fragmentLabel[c]);
    e.frame = e.fragmentFrame[c];
    const i = fragmentAt[c];
    e.mark(i);
    switch (fragmentKind[c]) {
      case OUT_OF_LINE.TRAP:
        emitter.callTrap(e, i, fragmentX[c], e.frame);
        break;
      case OUT_OF_LINE.STACK:
        emitter.callTrap(e, i, TRAP.STACK_EXHAUSTED, 0);
        break;
      case OUT_OF_LINE.EDGE: {
        const { edgeFirst } = e.allocation;
        emitter.edits(e, edgeFirst[fragmentX[c]], edgeFirst[fragmentX[c] + 1]);
        e.jump(fragmentBack[c]);
        break;
      }
      case OUT_OF_LINE.LANDING:
        emitLanding(emitter, e, ends, fragmentX[c]);
        break;
      case OUT_OF_LINE.CROSS_CALL:
        emitter.crossCall(e, i, fragmentX[c], fragmentBack[c]);
        break;
      case OUT_OF_LINE.CROSS_TAIL_CALL:
        emitter.crossTailCall(e);
        break;
      case OUT_OF_LINE.FUEL:
        emitter.outOfFuel(e, i);
        break;
      case OUT_OF_LINE.BOUNDS:
        emitter.slowBounds(e, i, fragmentBack[c]);
        break;
      case OUT_OF_LINE.ALLOCATION:
        emitter.slowAllocation(e, i, fragmentBack[c]);
        break;
      default:
        emitter.outOfLine(e, c);
    }
  }
}
