/**
 * Emission for x64: VCode and its Allocation → bytes, sites and relocations of one function, appended to the image.
 *
 *     stack check · frame · blocks in layout order, each with its edits and instructions · cold pieces · constants · jump tables
 *
 * The frame is taken by one instruction (block_ends.ts: where) and nothing else moves rsp but pushes of calls, so that every site's
 * frame size is known.
 */
import type { Allocation } from "../codegen/allocation.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { CodegenContext } from "../codegen/target.ts";
import type { VCode } from "../codegen/vcode.ts";
import { CONTEXT } from "../context_layout.ts";
import { BLOCK_LOOP } from "../ir/function.ts";
import { TRAP } from "../traps.ts";
import { STACK_SLACK } from "./abi.ts";
import { COLD, Emission, KIND } from "./emission.ts";
import { emitMemory, emitRegister, NO_REGISTER } from "./encoding.ts";
import { INSTRUCTION_ROWS, X } from "./instructions.ts";
import { AUX_LANDING, CC, CONSUMER, P, PSEUDO_BASE } from "./machine_ops.ts";
import { CONTEXT_REGISTER, RSP, SCRATCH } from "./registers.ts";
import * as atomics from "./emit_atomic.ts";
import * as calls from "./emit_calls.ts";
import { consumerOf, emitCompare } from "./emit_compare.ts";
import { BlockEnds } from "./block_ends.ts";
import { emitBranch, emitData, emitJump, emitSwitch } from "./emit_control.ts";
import * as floats from "./emit_float.ts";
import * as integers from "./emit_integer.ts";
import { emitEdits, emitRematerialized, emitRow, emitSum, ri, rm } from "./emit_row.ts";
import { finish, labelOffset } from "./finish.ts";

const emission = new Emission();
const ends = new BlockEnds();

/** Room for the longest expansion of one VCode instruction. */
const RESERVED = 512;
const PAGE = 4096;
/** Functions start at multiples of this; so do the heads of innermost loops. */
const FUNCTION_ALIGNMENT = 16;
const LOOP_ALIGNMENT = 16;

/** Emits defined function `index`. */
export function emitFunction(
  v: VCode,
  allocation: Allocation,
  context: CodegenContext,
  code: MachineCode,
  index: number,
): void {
  const e = emission;
  while (code.length % FUNCTION_ALIGNMENT !== 0) {
    code.reserve(1);
    code.bytes[code.length++] = 0xcc;
  }
  code.functionStart[index] = code.length;
  e.begin(v, allocation, context, code);
  const { frame } = e;
  ends.compute(e);
  if (ends.frameless[0] === 0) emitPrologue(e);
  const { layout } = v;
  for (let p = 0; p < v.blockCount; p++) {
    const k = layout[p];
    if (ends.target[k] !== k) continue;
    let next = p + 1;
    while (next < v.blockCount && ends.target[layout[next]] !== layout[next]) next++;
    ends.next = next < v.blockCount ? layout[next] : -1;
    e.frame = ends.frameless[k] !== 0 ? 0 : frame;
    emitBlock(e, k);
  }
  emitCold(e);
  const end = e.newLabel();
  e.bind(end);
  emitData(e);
  finish(e);
  code.functionEnd[index] = labelOffset(end);
  code.functionFrame[index] = frame;
  code.writtenGeneral[index] = allocation.writtenGeneral;
  code.writtenVector[index] = allocation.writtenVector;
  code.writtenKnown[index] = 1;
}

function emitPrologue(e: Emission): void {
  const { asm, frame, context, v } = e;
  // Small leaves live on the slack below the limit.
  if (v.hasCalls || frame > STACK_SLACK / 2) {
    if (context.stackFence) {
      if (frame <= STACK_SLACK / 2) rm(e, X.CMP64_R, RSP, CONTEXT_REGISTER, CONTEXT.STACK_LIMIT);
      else {
        emitMemory(asm, X.LEA64, SCRATCH, 0, RSP, NO_REGISTER, 0, -frame, 0, 0);
        rm(e, X.CMP64_R, SCRATCH, CONTEXT_REGISTER, CONTEXT.STACK_LIMIT);
      }
      e.branch(CC.BE, e.cold(COLD.STACK, -1, 0, 0));
    } else {
      // Touch every page on the way down, so that none beyond the guard is reached first.
      for (let at = PAGE; at <= frame; at += PAGE) {
        asm.reserve(RESERVED);
        emitMemory(asm, X.TEST32_M, 0, 0, RSP, NO_REGISTER, 0, -at, 0, 0);
      }
    }
  }
  if (frame !== 0) {
    if (frame === 128) ri(e, X.ADD64_I, RSP, -128);
    else ri(e, X.SUB64_I, RSP, frame);
  }
}

function emitBlock(e: Emission, k: number): void {
  const { v, allocation, asm } = e;
  const { editAt, edgeFirst, skip } = allocation;
  ends.emitted[k] = 1;
  if ((v.blockFlags[k] & BLOCK_LOOP) !== 0 && isInnermost(v, k)) e.mark(KIND.ALIGN, LOOP_ALIGNMENT, 1, 0, 0);
  e.bind(k);
  if (ends.prologue[k] !== 0) {
    emitPrologue(e);
    for (const spill of ends.deferred) emitEdits(e, spill, spill + 1);
  }
  const head = ends.headEdge[k];
  if (head !== 0) emitEdits(e, edgeFirst[head - 1], edgeFirst[head]);
  const first = v.blockFirst[k];
  const end = v.blockFirst[k + 1];
  const editEnd = e.editEnd;
  let edit = ends.firstEdit[k];
  for (let i = first; i < end; i++) {
    const start = edit;
    while (edit < editEnd && editAt[edit] === 2 * i) edit++;
    if (edit > start) emitUndeferred(e, k, start, edit);
    asm.reserve(RESERVED);
    if (skip[i] === 0) emitInstruction(e, i, k);
    const after = edit;
    while (edit < editEnd && editAt[edit] === 2 * i + 1) edit++;
    if (edit > after) emitUndeferred(e, k, after, edit);
  }
}

/** Emits edits but those that wait for the prologue. */
function emitUndeferred(e: Emission, k: number, first: number, end: number): void {
  if (k !== 0 || ends.deferred.length === 0) {
    emitEdits(e, first, end);
    return;
  }
  for (let m = first; m < end; m++) if (!ends.deferred.includes(m)) emitEdits(e, m, m + 1);
}

/** Does the loop that begins at block `k` contain no other? */
function isInnermost(v: VCode, k: number): boolean {
  const depth = v.blockDepth[k];
  for (let j = k + 1; j < v.blockCount && v.blockDepth[j] >= depth; j++) {
    if ((v.blockFlags[j] & BLOCK_LOOP) !== 0) return v.blockDepth[j] <= depth;
  }
  return true;
}

function emitInstruction(e: Emission, i: number, k: number): void {
  const { v } = e;
  const op = v.op[i];
  if (op < PSEUDO_BASE) {
    const consumer = consumerOf(e, i);
    if (consumer === CONSUMER.NONE) {
      if (op === X.LEA32 || op === X.LEA64) emitSum(e, i, op, v.firstOperand[i]);
      else emitRow(e, i, op, v.firstOperand[i]);
    } else if (consumer === CONSUMER.BRANCH) {
      const s = v.succStart[k];
      emitBranch(e, ends, i, v.succ[s], v.succ[s + 1]);
    } else {
      emitCompare(e, i);
    }
    return;
  }
  switch (op) {
    case P.ENTRY:
    case P.ZERO_EXTEND:
      break;
    case P.CONST_I32:
    case P.CONST_I64:
    case P.CONST_F32:
    case P.CONST_F64:
    case P.CONST_V128:
      emitRematerialized(e, i, e.location[v.firstOperand[i]]);
      break;
    case P.RETURN:
      calls.dropFrame(e);
      emitRegister(e.asm, X.RET, 0, 0, 0, 0, 0);
      break;
    case P.DIV_S:
    case P.DIV_U:
    case P.REM_S:
    case P.REM_U:
      integers.emitDivision(e, i, op);
      break;
    case P.MULHI_U:
    case P.MULHI_S:
      emitRegister(e.asm, op === P.MULHI_U ? X.MUL64 : X.IMULH64, 0, e.register(v.firstOperand[i] + 2), 0, 0, 0);
      break;
    case P.CLZ_BSR:
    case P.CTZ_BSF:
      integers.emitScan(e, i, op);
      break;
    case P.POPCNT_SWAR:
      integers.emitPopulation(e, i);
      break;
    case P.BOUNDS:
      integers.emitBounds(e, i);
      break;
    case P.CMPXCHG:
      emitRow(e, i, X.CMPXCHG8_M + v.imm[i], v.firstOperand[i] + 2);
      break;
    case P.ATOMIC_LOOP:
      atomics.emitAtomicLoop(e, i);
      break;
    case P.ATOMIC_FENCE:
      atomics.emitFence(e);
      break;
    case P.FMIN:
    case P.FMAX:
      floats.emitExtremum(e, i, op);
      break;
    case P.FCOPYSIGN:
      floats.emitCopysign(e, i);
      break;
    case P.TRUNC_S32:
    case P.TRUNC_U32:
    case P.TRUNC_S64:
    case P.TRUNC_U64:
      floats.emitTruncation(e, i, op);
      break;
    case P.CONVERT_U64:
      floats.emitConversion(e, i);
      break;
    case P.JUMP:
      emitJump(e, ends, v.succ[v.succStart[k]]);
      break;
    case P.SWITCH:
      emitSwitch(e, ends, i, v.succStart[k], v.imm[i]);
      break;
    case P.TRAP:
      calls.callTrap(e, i, v.imm[i], e.frame);
      break;
    case P.POLL:
      calls.emitPoll(e, i);
      break;
    case P.CALL:
    case P.CALL_RECORD:
    case P.CALL_IMPORT:
    case P.CALL_NATIVE:
    case P.CALL_PARKING:
      if ((v.aux[i] & AUX_LANDING) !== 0) e.landing = e.cold(COLD.LANDING, i, v.succ[v.succStart[k]], 0) + 1;
      calls.emitCall(e, i, op);
      e.landing = 0;
      break;
    case P.UNWIND:
      emitJump(e, ends, v.succ[v.succStart[k] + 1]);
      break;
    case P.TAIL_CALL:
    case P.TAIL_CALL_RECORD:
    case P.TAIL_CALL_IMPORT:
      calls.emitTailCall(e, i, op);
      break;
    default:
      throw new Error(`Operation ${op} has no emission`);
  }
}

/** Where exceptions of a call arrive: no register but those of context and memory holds anything. */
function emitLanding(e: Emission, edge: number): void {
  const { edgeFirst, editFrom, editTo, editRemat } = e.allocation;
  // Registers that the moves themselves have written, general ones in the first word.
  let general = 0;
  let vector = 0;
  for (let m = edgeFirst[edge]; m < edgeFirst[edge + 1]; m++) {
    const from = editFrom[m];
    const to = editTo[m];
    if (editRemat[m] <= 0 && from >= 0 && (((from < 32 ? general : vector) >>> (from & 31)) & 1) === 0) {
      throw new Error(`A landing wants register ${from}, which no call preserves`);
    }
    if (to >= 32) vector |= 1 << (to & 31);
    else if (to >= 0) general |= 1 << to;
  }
  emitEdits(e, edgeFirst[edge], edgeFirst[edge + 1]);
  e.jump(ends.target[e.v.edgeTo[edge]]);
}

/** Cold pieces, in the order they were asked for; they may ask for more. */
function emitCold(e: Emission): void {
  const { coldKind, coldLabel, coldBack, coldAt, coldX } = e;
  ends.next = -1;
  for (let c = 0; c < coldKind.length; c++) {
    e.asm.reserve(RESERVED);
    e.bind(coldLabel[c]);
    e.frame = e.coldFrame[c];
    const i = coldAt[c];
    const back = coldBack[c];
    switch (coldKind[c]) {
      case COLD.TRAP:
        calls.callTrap(e, i, coldX[c], e.frame);
        break;
      case COLD.STACK:
        calls.callTrap(e, i, TRAP.STACK_EXHAUSTED, 0);
        break;
      case COLD.EDGE: {
        const { edgeFirst } = e.allocation;
        emitEdits(e, edgeFirst[coldX[c]], edgeFirst[coldX[c] + 1]);
        e.jump(back);
        break;
      }
      case COLD.CROSS_CALL:
        calls.emitCrossCall(e, i, coldX[c], back);
        break;
      case COLD.LANDING:
        emitLanding(e, coldX[c]);
        break;
      case COLD.CROSS_TAIL_CALL:
        calls.emitCrossTailCall(e);
        break;
      case COLD.BOUNDS:
        integers.emitColdBounds(e, i, back);
        break;
      case COLD.EXTREMUM:
        floats.emitColdExtremum(e, i, coldX[c], back);
        break;
      case COLD.TRUNCATION:
        floats.emitColdTruncation(e, i, coldX[c], back);
        break;
      case COLD.CONVERSION:
        floats.emitColdConversion(e, i, back);
        break;
    }
  }
}

if (INSTRUCTION_ROWS.length >= PSEUDO_BASE) throw new Error("Too many instruction rows");
