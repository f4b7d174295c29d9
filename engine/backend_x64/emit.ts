/**
 * Emission for x64: VCode and its Allocation → bytes, sites and relocations of one function, in the order of
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
import { CONTEXT } from "../abi/context_layout.ts";
import { STACK_SLACK } from "./abi.ts";
import { type Emission, OUT_OF_LINE } from "./emission.ts";
import { emitMemory, emitRegister } from "./encoding.ts";
import { X } from "./instructions.ts";
import { auxConsumer, CC, CONSUMER, P } from "./machine_ops.ts";
import { CONTEXT_REGISTER, RSP, SCRATCH } from "./registers.ts";
import * as atomics from "./emit_atomic.ts";
import * as calls from "./emit_calls.ts";
import { branchIf, emitCompare, emitFlags, emitStoredCondition, flagsAreSet } from "./emit_compare.ts";
import { emitData, emitSwitch } from "./emit_control.ts";
import * as floats from "./emit_float.ts";
import * as integers from "./emit_integer.ts";
import { emitEdits, emitRematerialized, emitRow, emitSum, ri, rm } from "./emit_row.ts";
import { emitAllocation, emitSlowAllocation } from "./emit_allocation.ts";
import { finish } from "./branch_relaxation.ts";

/** Room for the longest expansion of one VCode instruction. */
const RESERVED = 512;
const PAGE = 4096;
/** The bytes below the limit that a small leaf function may use. */
const HALF_SLACK = STACK_SLACK >> 1;

export class X64Emitter extends Emitter<Emission> {
  constructor() {
    super(FILLER.x64, RESERVED, true);
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

  override flagsAreSet(e: Emission, i: number): boolean {
    return flagsAreSet(e, i, e.v.firstOperand[i]);
  }

  override branchOn(e: Emission, _i: number, cc: number, label: number): void {
    branchIf(e, cc, label);
  }

  override movesEarly(e: Emission, _i: number, back: number, other: number): boolean {
    return mayMoveEarly(e, back, other);
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
    calls.relative(e, X.CALL32, kind, target);
  }

  override jumpTarget(e: Emission, kind: number, target: number): void {
    calls.relative(e, X.JMP32, kind, target);
  }

  override returnTo(e: Emission, after: number): void {
    calls.returnTo(e, after);
  }

  override importRecord(e: Emission, index: number): void {
    calls.loadImportRecord(e, index);
  }

  override branchForeign(e: Emission, label: number): void {
    calls.branchForeign(e, label);
  }

  override callRecord(e: Emission): void {
    calls.throughRecord(e, X.CALL_M);
  }

  override jumpRecord(e: Emission): void {
    calls.throughRecord(e, X.JMP_M);
  }

  override callOwn(_e: Emission): boolean {
    return false;
  }

  override mayFault(e: Emission, i: number, code: number): void {
    e.trapSite(i, code, e.frame);
  }
}

/** Emits defined function `index`. */
export function emitFunction(
  emitter: X64Emitter,
  e: Emission,
  ends: BlockEnds,
  v: VCode,
  allocation: Allocation,
  options: CodegenOptions,
  code: MachineCode,
  index: number,
): void {
  e.begin(v, allocation, options, code);
  emitFunctionBody(emitter, e, ends, index, e.frame);
}

function emitPrologue(e: Emission): void {
  const { asm, frame, options, v } = e;
  // Small leaf functions use the slack below the limit.
  if (v.hasCalls || frame > HALF_SLACK) {
    if (options.stackFence) {
      if (frame <= HALF_SLACK) rm(e, X.CMP64_R, RSP, CONTEXT_REGISTER, CONTEXT.STACK_LIMIT);
      else {
        emitMemory(asm, X.LEA64, SCRATCH, asm.based(RSP, -frame));
        rm(e, X.CMP64_R, SCRATCH, CONTEXT_REGISTER, CONTEXT.STACK_LIMIT);
      }
      e.branch(CC.BE, e.outOfLine(OUT_OF_LINE.STACK, -1, 0, 0));
    } else {
      // Touch every page from the top, so that the guard page is always the first inaccessible one.
      for (let at = PAGE; at <= frame; at += PAGE) {
        asm.reserve(RESERVED);
        emitMemory(asm, X.TEST32_M, 0, asm.based(RSP, -at));
      }
    }
  }
  if (frame !== 0) {
    if (frame === 128) ri(e, X.ADD64_I, RSP, -128);
    else ri(e, X.SUB64_I, RSP, frame);
  }
}

function emitRowOrCompare(e: Emission, i: number): void {
  const { v } = e;
  const op = v.op[i];
  const consumer = auxConsumer(v.aux[i]);
  if (consumer === CONSUMER.NONE) {
    if (op === X.LEA32 || op === X.LEA64) emitSum(e, i, op, v.firstOperand[i]);
    else emitRow(e, i, op, v.firstOperand[i]);
  } else {
    emitCompare(e, i);
  }
}

function emitReturn(e: Emission): void {
  calls.dropFrame(e);
  emitRegister(e.asm, X.RET, 0, 0, 0, 0, 0);
}

/** Pseudo operation `op` of this architecture. */
function emitInstruction(e: Emission, i: number, op: number): void {
  const { v } = e;
  switch (op) {
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
    case P.STORE_CONDITION:
      emitStoredCondition(e, i);
      break;
    case P.CMPXCHG:
      emitRow(e, i, X.CMPXCHG8_M + v.imm[i], v.firstOperand[i] + 2);
      break;
    case P.ATOMIC_FENCE:
      atomics.emitFence(e);
      break;
    case P.FMIN:
    case P.FMAX:
      floats.emitExtremum(e, i, op);
      break;
    case P.CANONICAL_NAN:
      floats.emitCanonicalNaN(e, i);
      break;
    case P.CONVERT_U64:
      floats.emitConversion(e, i);
      break;
    default:
      throw new Error(`Operation ${op} has no emission`);
  }
}

/** Fragment `c` of out-of-line code, of this architecture's own kinds. */
function emitOutOfLine(e: Emission, c: number): void {
  const i = e.fragmentAt[c];
  const back = e.fragmentBack[c];
  switch (e.fragmentKind[c]) {
    case OUT_OF_LINE.EXTREMUM:
      floats.emitSlowExtremum(e, i, e.fragmentX[c], back);
      break;
    case OUT_OF_LINE.TRUNCATION:
      floats.emitSlowTruncation(e, i, e.fragmentX[c], back);
      break;
    case OUT_OF_LINE.CANONICAL_NAN:
      floats.emitNaN(e, i, back);
      break;
    case OUT_OF_LINE.CONVERSION:
      floats.emitSlowConversion(e, i, back);
      break;
  }
}
