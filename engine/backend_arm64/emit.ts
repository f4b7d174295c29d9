/**
 * Emission for arm64: VCode and its Allocation → bytes, sites and relocations of one function, in the order of
 * codegen/emit_function.ts. This file has the prologue, the dispatch of instructions, and the out-of-line code of this
 * architecture.
 */
import { FILLER } from "../codegen/align_image.ts";
import type { Allocation } from "../codegen/allocation.ts";
import type { BlockEnds } from "../codegen/block_ends.ts";
import { mayMoveEarly } from "../codegen/hoisted_edge_moves.ts";
import { emitFunctionBody } from "../codegen/emit_function.ts";
import { Emitter } from "../codegen/emitter.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { CodegenOptions } from "../codegen/codegen_options.ts";
import type { VCode } from "../codegen/vcode.ts";
import { unsigned } from "../base/numbers.ts";
import { CONTEXT, RECORD } from "../abi/context_layout.ts";
import { STACK_SLACK } from "./abi.ts";
import { type Emission, OUT_OF_LINE } from "./emission.ts";
import { X } from "./instructions.ts";
import { auxConsumer, CC, CONSUMER, P } from "./machine_ops.ts";
import { CONTEXT_REGISTER, LINK, MEMORY_BASE, SCRATCH, SCRATCH2, SP, ZERO } from "./registers.ts";
import { emitAllocation, emitSlowAllocation } from "./emit_allocation.ts";
import * as atomics from "./emit_atomic.ts";
import * as calls from "./emit_calls.ts";
import { branchesItself, branchOn, emitCompare, emitFlags } from "./emit_compare.ts";
import { emitData, emitSwitch } from "./emit_control.ts";
import * as floats from "./emit_float.ts";
import * as integers from "./emit_integer.ts";
import { emitAt, emitEdits, emitRematerialized, emitRow } from "./emit_row.ts";
import { finish } from "./branch_relaxation.ts";

/** Room for the longest expansion of one VCode instruction. */
const RESERVED = 512;
const PAGE = 4096;
/** The bytes below the limit that a small leaf function may use. */
const HALF_SLACK = STACK_SLACK >> 1;

export class Arm64Emitter extends Emitter<Emission> {
  constructor() {
    super(FILLER.arm64, RESERVED, false);
  }

  override prologue(e: Emission): void {
    emitPrologue(e);
  }

  override row(e: Emission, i: number): void {
    emitRowOrCompare(e, i);
  }

  override instruction(e: Emission, i: number, op: number): void {
    emitInstruction(e, i, op);
  }

  override rematerialize(e: Emission, i: number, location: number): void {
    emitRematerialized(e, i, location);
  }

  override leave(e: Emission): void {
    emitReturn(e);
  }

  override division(e: Emission, i: number, op: number): void {
    integers.emitDivision(e, i, op);
  }

  override copysign(e: Emission, i: number): void {
    floats.emitCopysign(e, i);
  }

  override truncation(e: Emission, i: number, op: number): void {
    floats.emitTruncation(e, i, op);
  }

  override bounds(e: Emission, i: number): void {
    integers.emitBounds(e, i);
  }

  override checkIndex(e: Emission, i: number): void {
    integers.emitCheckIndex(e, i);
  }

  override atomicLoop(e: Emission, i: number): void {
    atomics.emitAtomicLoop(e, i);
  }

  override allocation(e: Emission, i: number): void {
    emitAllocation(e, i);
  }

  override charge(e: Emission, i: number): void {
    calls.emitCharge(e, i);
  }

  override poll(e: Emission, i: number): void {
    calls.emitPoll(e, i);
  }

  override switchOn(e: Emission, ends: BlockEnds, i: number, first: number, n: number): void {
    emitSwitch(e, ends, i, first, n);
  }

  override tailCall(e: Emission, i: number, op: number): void {
    calls.emitTailCall(e, i, op);
  }

  override crossCall(e: Emission, i: number, landing: number, back: number): void {
    calls.emitCrossCall(e, i, landing, back);
  }

  override crossTailCall(e: Emission): void {
    calls.emitCrossTailCall(e);
  }

  override outOfFuel(e: Emission, i: number): void {
    calls.emitOutOfFuel(e, i);
  }

  override slowBounds(e: Emission, i: number, back: number): void {
    integers.emitSlowBounds(e, i, back);
  }

  override slowAllocation(e: Emission, i: number, back: number): void {
    emitSlowAllocation(e, i, back);
  }

  override edits(e: Emission, first: number, end: number): void {
    emitEdits(e, first, end);
  }

  override flags(e: Emission, i: number): number {
    return emitFlags(e, i, e.v.firstOperand[i]);
  }

  override flagsAreSet(_e: Emission, _i: number): boolean {
    return false;
  }

  override branchOn(e: Emission, i: number, cc: number, label: number): void {
    branchOn(e, i, cc, label);
  }

  override movesEarly(e: Emission, i: number, back: number, other: number): boolean {
    return movesEarly(e, i, back, other);
  }

  override callTrap(e: Emission, at: number, code: number, frame: number): void {
    calls.callTrap(e, at, code, frame);
  }

  override outOfLine(e: Emission, c: number): void {
    emitOutOfLine(e, c);
  }

  override data(e: Emission): void {
    emitData(e);
  }

  override finish(e: Emission): void {
    finish(e);
  }

  override callTarget(e: Emission, kind: number, target: number): void {
    calls.relative(e, X.BL, kind, target);
  }

  override jumpTarget(e: Emission, kind: number, target: number): void {
    calls.relative(e, X.B, kind, target);
  }

  override returnTo(e: Emission, after: number): void {
    e.address(LINK, after);
  }

  override importRecord(e: Emission, index: number): void {
    calls.loadImportRecord(e, index);
  }

  override branchForeign(e: Emission, label: number): void {
    calls.branchForeign(e, label);
  }

  override callRecord(e: Emission): void {
    e.asm.rrr(X.BLR, 0, SCRATCH2, 0);
  }

  override jumpRecord(e: Emission): void {
    e.asm.rrr(X.BR, 0, SCRATCH2, 0);
  }

  override callOwn(e: Emission): boolean {
    calls.loadRecordField(e, SCRATCH2, RECORD.CODE);
    e.asm.rrr(X.BLR, 0, SCRATCH2, 0);
    return true;
  }

  override mayFault(e: Emission, i: number, code: number): void {
    e.faultSite(i, code);
  }
}

/** Moves and constants leave the flags alone; a branch on a register must still find its value there. */
function movesEarly(e: Emission, i: number, back: number, other: number): boolean {
  if (branchesItself(e.v.op[i])) {
    const { edgeFirst, editTo, editFrom, editRemat } = e.allocation;
    const tested = e.location[e.v.firstOperand[i]];
    for (let m = edgeFirst[back]; m < edgeFirst[back + 1]; m++) {
      if (editTo[m] === tested || (editRemat[m] < 0 && editFrom[m] === tested)) return false;
    }
  }
  return mayMoveEarly(e, back, other);
}

/** Emits defined function `index`. */
export function emitFunction(
  emitter: Arm64Emitter,
  e: Emission,
  ends: BlockEnds,
  v: VCode,
  allocation: Allocation,
  options: CodegenOptions,
  code: MachineCode,
  index: number,
): void {
  e.begin(v, allocation, options, code);
  if (e.frame === 0) options.counts.elidedFrames++; // not in `begin`, which stubs call, too
  emitFunctionBody(emitter, e, ends, index, Math.max(0, e.frame - 8));
}

function emitPrologue(e: Emission): void {
  const { asm, frame, options, v } = e;
  // Small leaf functions use the slack below the limit.
  if (v.hasCalls || frame > HALF_SLACK) {
    if (options.stackFence) {
      let low = SP;
      if (frame > HALF_SLACK) {
        asm.addConstant(SCRATCH2, SP, -frame, SCRATCH);
        low = SCRATCH2;
      }
      emitAt(e, X.LDR_X_U, SCRATCH, CONTEXT_REGISTER, CONTEXT.STACK_LIMIT);
      asm.rrri(X.SUBS_E64, ZERO, low === SP ? SP : low, SCRATCH, 0, 3);
      e.branch(CC.LS, e.outOfLine(OUT_OF_LINE.STACK, -1, 0, 0));
    } else {
      // Touch every page from the top, so that the guard page is always the first inaccessible one.
      for (let at = PAGE; at <= frame; at += PAGE) {
        asm.reserve(RESERVED);
        asm.addConstant(SCRATCH, SP, -at, SCRATCH2);
        asm.rri(X.LDR_X_U, ZERO, SCRATCH, 0, 0);
      }
    }
  }
  if (frame !== 0) calls.takeFrame(e, frame);
}

function emitRowOrCompare(e: Emission, i: number): void {
  const { v } = e;
  const op = v.op[i];
  const consumer = auxConsumer(v.aux[i]);
  if (consumer === CONSUMER.NONE) {
    emitRow(e, i, op, v.firstOperand[i]);
  } else {
    emitCompare(e, i);
  }
}

function emitReturn(e: Emission): void {
  calls.dropFrame(e);
  e.asm.rrr(X.RET, 0, LINK, 0);
}

/** Pseudo operation `op` of this architecture. */
function emitInstruction(e: Emission, i: number, op: number): void {
  const { v } = e;
  switch (op) {
    case P.CONTEXT_ADDRESS:
      emitRematerialized(e, i, e.location[v.firstOperand[i]]);
      break;
    case P.MEMORY_ADDRESS: {
      const o = v.firstOperand[i];
      e.asm.rrri(X.ADD_E64, e.register(o), MEMORY_BASE, e.register(o + 1), 0, (v.aux[i] & 1) !== 0 ? 3 : 2);
      break;
    }
    case P.ADD_CONSTANT: {
      const o = v.firstOperand[i];
      e.asm.addConstant(e.register(o), e.register(o + 1), unsigned(v.disp[i]), SCRATCH);
      break;
    }
    case P.MUL:
    case P.NOT:
    case P.NEGATE:
    case P.ROTL:
    case P.CTZ:
    case P.POPCNT:
      integers.emitSimple(e, i, op);
      break;
    case P.ATOMIC_SWAP:
      atomics.emitAtomicSwap(e, i);
      break;
    default:
      throw new Error(`Operation ${op} has no emission`);
  }
}

/** Fragment `c` of out-of-line code: a cross landing, the only kind of this architecture's own. */
function emitOutOfLine(e: Emission, c: number): void {
  // The unwinder left sp where a return address of 8 bytes would have been dropped.
  e.asm.rri(X.ADD_I64, SP, SP, 8, 0);
  e.jump(e.fragmentX[c]);
}
