/**
 * The translation of a body's instructions, as a visitor of the body (body_visitor.ts): tracks the SSA value of
 * every operand and local, and appends instructions through a Builder (ir/builder.ts). In: the visitor's calls, of
 * valid instructions in order. Out: an IrFunction.
 *
 *     visitor's calls ──► InstructionTranslator ──► Builder ──► IrFunction
 *                            │ control.ts: frames and branches; block_parameters.ts: joins and their parameters
 *                            │ memory.ts, calls.ts, tables.ts, …: instructions of more than one operation
 *                            └ inline.ts: a callee's body translated into the caller, as a nested activation
 *
 * Establishes: the invariants of ir/function.ts. Unreachable code is visited and emits nothing.
 *
 * This file dispatches: the most frequent instructions have a case here, the others one in their topic's file.
 */
import type { IrFunction } from "../ir/function.ts";
import { OP, type OpName } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { FRAME } from "./body_visitor.ts";
import { IF_ROW } from "./fuel_prices.ts";
import { TRAP } from "../base/traps.ts";
import type { Immediates } from "../wasm/immediates.ts";
import type { OpcodeRow } from "../wasm/opcode_row.ts";
import { OPCODES } from "../wasm/opcodes.ts";
import { TY_OF_LETTER } from "../wasm/ir_types.ts";
import { translateArray } from "./arrays.ts";
import { translateAtomic } from "./atomics.ts";
import { translateCall, translateCallIndirect, translateCallRef } from "./calls.ts";
import { translateCast } from "./casts.ts";
import { translateContinuation } from "./continuations.ts";
import { translateDescriptor } from "./descriptors.ts";
import {
  beginActivation,
  branch,
  branchIf,
  branchTable,
  endFrame,
  enterBlock,
  enterElse,
  enterIf,
  enterLoop,
  returnResults,
  trapHere,
} from "./control.ts";
import { enterCatch, enterTry, translateRethrow, translateThrow, translateThrowRef } from "./exceptions.ts";
import { canonicalize } from "./deterministic.ts";
import { addPrice, closeRegion, meterInstruction, priceOf } from "./fuel.ts";
import { translateLoad, translateMemory, translateStore } from "./memory.ts";
import { notCompiled } from "./failures.ts";
import { type ModuleFacts, NAN_CODE, paramCount } from "./module_facts.ts";
import { translateObject } from "./objects.ts";
import { translateReference } from "./references.ts";
import { translateTable } from "./tables.ts";
import { translateGlobalGet, translateGlobalSet } from "./globals.ts";
import { firstOperand, imitateResult, imitationRule, MAKES_NAN } from "./imitated_nans.ts";
import { BODY } from "../wasm/body_flags.ts";
import { Translation } from "./translation.ts";
import { translateVector } from "./vector.ts";
import { translateWide } from "./wide.ts";

/** The translation of a row: a case of `#common` or `#rare` below; 0 for rows without one. */
const BINARY = 1;
const UNARY = 2;
const DIVIDE = 3;
const LOCAL_GET = 4;
const LOCAL_SET = 5;
const LOCAL_TEE = 6;
const CONST32 = 7;
const CONST64 = 8;
const LOAD = 9;
const STORE = 10;
const EQZ = 11;
const DROP = 12;
const SELECT = 13;
const GLOBAL_GET = 14;
const GLOBAL_SET = 15;
const BR = 16;
const BR_IF = 17;
const BR_TABLE = 18;
const RETURN = 19;
const UNREACHABLE = 20;
const NOP = 21;
const CALL = 22;
const CALL_INDIRECT = 23;
const CALL_REF = 24;
const RETURN_CALL = 25;
const RETURN_CALL_INDIRECT = 26;
const RETURN_CALL_REF = 27;

/** The topics whose files translate a row themselves. */
const ARRAY = 28;
const ATOMIC = 29;
const CAST = 30;
const MEMORY = 31;
const OBJECT = 32;
const REFERENCE = 33;
const TABLE = 34;
const VECTOR = 35;
const WIDE = 36;
const THROW = 37;
const THROW_REF = 38;
const RETHROW = 39;
const CONTINUATION = 40;
const DESCRIPTOR = 41;

const NAMED_CASES: Readonly<Record<string, number>> = {
  "local.get": LOCAL_GET,
  "local.set": LOCAL_SET,
  "local.tee": LOCAL_TEE,
  "i32.const": CONST32,
  "f32.const": CONST32,
  "i64.const": CONST64,
  "f64.const": CONST64,
  "i32.eqz": EQZ,
  "i64.eqz": EQZ,
  "drop": DROP,
  "select": SELECT,
  "select(t)": SELECT,
  "global.get": GLOBAL_GET,
  "global.set": GLOBAL_SET,
  "br": BR,
  "br_if": BR_IF,
  "br_table": BR_TABLE,
  "return": RETURN,
  "unreachable": UNREACHABLE,
  "nop": NOP,
  "call": CALL,
  "call_indirect": CALL_INDIRECT,
  "call_ref": CALL_REF,
  "return_call": RETURN_CALL,
  "return_call_indirect": RETURN_CALL_INDIRECT,
  "return_call_ref": RETURN_CALL_REF,
  "throw": THROW,
  "throw_ref": THROW_REF,
  "rethrow": RETHROW,
};

const TOPICS: readonly (readonly [topic: number, names: RegExp])[] = [
  [ARRAY, /^array\./],
  [DESCRIPTOR, /_desc(_|$)/],
  [CAST, /^(ref\.(test|cast)|br_on_cast)/],
  [OBJECT, /^(struct\.|ref\.(i31|eq)$|i31\.|any\.convert|extern\.convert)/],
  [REFERENCE, /^(ref\.(null|is_null|func|as_non_null)$|br_on_n)/],
  [TABLE, /^(table\.|elem\.drop$)/],
  [MEMORY, /^(memory\.(size|grow|copy|fill|init)$|data\.drop$)/],
  [CONTINUATION, /^(cont\.|suspend$|resume|switch$)/],
  [WIDE, /^i64\.((add|sub)128|mul_wide_[su])$/],
];

/** The topic of a row without a case of its own; 0 for none. */
function topicOf({ prefix, mnemonic }: OpcodeRow): number {
  if (prefix === 0xfd) return VECTOR;
  if (prefix === 0xfe) return ATOMIC;
  return TOPICS.find(([, names]) => names.test(mnemonic))?.[0] ?? 0;
}

/** By row id: the case, the IR operation and its result type. */
const CASE: Uint8Array = new Uint8Array(OPCODES.length);
const IR_OP: Uint16Array = new Uint16Array(OPCODES.length);
const IR_TY: Uint8Array = new Uint8Array(OPCODES.length);

for (const row of OPCODES) {
  const { id, mnemonic, params, results } = row;
  IR_TY[id] = TY_OF_LETTER[results ?? ""] ?? TY.NONE;
  const named = NAMED_CASES[mnemonic];
  const access = /^[if](32|64)\.(load|store)(\d*)(_[su])?$/.exec(mnemonic);
  const division = /^i(32|64)\.(div|rem)_([su])$/.exec(mnemonic);
  if (named !== undefined) {
    CASE[id] = named;
  } else if (access !== null) {
    CASE[id] = access[2] === "load" ? LOAD : STORE;
    IR_OP[id] = OP[`${access[2]}${access[3]}${access[4] ?? ""}`.toUpperCase() as OpName];
  } else if (division !== null) {
    CASE[id] = DIVIDE;
    IR_OP[id] = OP[`${division[2]}_${division[3]}`.toUpperCase() as OpName];
  } else if (row.ir !== undefined && params !== undefined && row.prefix !== 0xfd) {
    CASE[id] = params.length === 2 ? BINARY : UNARY;
    IR_OP[id] = OP[row.ir as OpName];
  } else CASE[id] = topicOf(row);
}

/** Translates bodies that their visitor's methods get, one at a time. */
export abstract class InstructionTranslator extends Translation {
  begin(funcIndex: number, params: number, results: number, locals: readonly number[]): void {
    beginActivation(this, funcIndex, params, results, locals);
  }

  instruction(id: number, imm: Immediates, at: number): void {
    if (this.positioned) {
      this.b.pos = at;
      if (this.metered) meterInstruction(this, id);
    }
    if (!this.reachable) return;
    if (this.deterministic && MAKES_NAN[id] !== 0) this.#float(id, imm, at);
    else this.#common(id, imm, at);
  }

  /** An instruction that may make a NaN, in deterministic code. */
  #float(id: number, imm: Immediates, at: number): void {
    const rule = imitationRule(this.nans, id);
    const x = firstOperand(this, id), y = this.stack[this.sp - 1];
    this.#common(id, imm, at);
    if (rule !== 0) imitateResult(this, rule, id, x, y);
    if (this.nans === NAN_CODE.canonical) canonicalize(this, id);
  }

  /** The most frequent instructions. */
  #common(id: number, imm: Immediates, at: number): void {
    const b = this.b;
    const stack = this.stack;
    switch (CASE[id]) {
      case LOCAL_GET:
        stack[this.sp++] = this.frames.locals[this.localBase + imm.index];
        return;
      case LOCAL_SET:
        this.frames.setLocal(this.localBase + imm.index, stack[--this.sp]);
        return;
      case LOCAL_TEE:
        this.frames.setLocal(this.localBase + imm.index, stack[this.sp - 1]);
        return;
      case CONST32:
        stack[this.sp++] = b.constant(IR_TY[id], imm.lo, 0);
        return;
      case BINARY: {
        const sp = this.sp - 1;
        stack[sp - 1] = b.binary(IR_OP[id], IR_TY[id], stack[sp - 1], stack[sp]);
        this.sp = sp;
        return;
      }
      case LOAD:
        b.pos = at;
        translateLoad(this, IR_OP[id], IR_TY[id], imm);
        return;
      case STORE:
        b.pos = at;
        translateStore(this, IR_OP[id], imm);
        return;
      case UNARY:
        b.pos = at;
        stack[this.sp - 1] = b.unary(IR_OP[id], IR_TY[id], stack[this.sp - 1]);
        return;
      case EQZ:
        stack[this.sp - 1] = b.eqz(stack[this.sp - 1]);
        return;
      case DIVIDE: {
        b.pos = at;
        const sp = this.sp - 1;
        stack[sp - 1] = b.divide(IR_OP[id], IR_TY[id], stack[sp - 1], stack[sp]);
        this.sp = sp;
        return;
      }
      case CONST64:
        stack[this.sp++] = b.constant(IR_TY[id], imm.lo, imm.hi);
        return;
      case DROP:
        this.sp--;
        return;
      case SELECT: {
        const sp = this.sp - 3;
        this.sp = sp + 1;
        stack[sp] = b.select(this.f.ty[stack[sp]], stack[sp], stack[sp + 1], stack[sp + 2]);
        return;
      }
      case NOP:
        return;
    }
    b.pos = at;
    this.#rare(id, imm, at);
  }

  /** The rarer instructions: control transfers, calls, globals, and those with a handler. */
  #rare(id: number, imm: Immediates, at: number): void {
    switch (CASE[id]) {
      case BR:
        branch(this, imm.index);
        return;
      case BR_IF:
        branchIf(this, imm.index);
        return;
      case BR_TABLE:
        branchTable(this, imm);
        return;
      case RETURN:
        returnResults(this);
        return;
      case UNREACHABLE:
        trapHere(this, TRAP.UNREACHABLE);
        return;
      case GLOBAL_GET:
        translateGlobalGet(this, imm.index);
        return;
      case GLOBAL_SET:
        translateGlobalSet(this, imm.index);
        return;
      case CALL:
        translateCall(this, imm.index, false);
        return;
      case CALL_INDIRECT:
        translateCallIndirect(this, imm.index, imm.index2, false);
        return;
      case CALL_REF:
        translateCallRef(this, imm.index, false);
        return;
      case RETURN_CALL:
        translateCall(this, imm.index, true);
        return;
      case RETURN_CALL_INDIRECT:
        translateCallIndirect(this, imm.index, imm.index2, true);
        return;
      case RETURN_CALL_REF:
        translateCallRef(this, imm.index, true);
        return;
      case ARRAY:
        translateArray(this, id, imm);
        return;
      case ATOMIC:
        translateAtomic(this, id, imm);
        return;
      case CAST:
        translateCast(this, id, imm);
        return;
      case MEMORY:
        translateMemory(this, id, imm);
        return;
      case OBJECT:
        translateObject(this, id, imm);
        return;
      case REFERENCE:
        translateReference(this, id, imm);
        return;
      case TABLE:
        translateTable(this, id, imm);
        return;
      case VECTOR:
        translateVector(this, id, imm);
        return;
      case WIDE:
        translateWide(this, id);
        return;
      case CONTINUATION:
        translateContinuation(this, id, imm);
        return;
      case DESCRIPTOR:
        translateDescriptor(this, id, imm);
        return;
      case THROW:
        translateThrow(this, imm.index);
        return;
      case THROW_REF:
        translateThrowRef(this);
        return;
      case RETHROW:
        translateRethrow(this, imm.index);
        return;
      default:
        throw notCompiled(id, at);
    }
  }

  enter(kind: number, params: number, results: number, imm: Immediates, at: number): void {
    this.b.pos = at;
    if (this.metered) {
      if (kind === FRAME.IF) addPrice(this, priceOf(this, IF_ROW));
      if (kind === FRAME.IF || kind === FRAME.LOOP) closeRegion(this);
    }
    if (kind === FRAME.LOOP) enterLoop(this, params, results, at);
    else if (!this.reachable) this.deadFrames++;
    else if (kind === FRAME.BLOCK) enterBlock(this, params, results);
    else if (kind === FRAME.IF) enterIf(this, params, results);
    else enterTry(this, params, results, kind === FRAME.TRY_TABLE ? imm.catches : undefined);
  }

  otherwise(_at: number): void {
    closeRegion(this);
    if (this.deadFrames === 0) enterElse(this);
  }

  handler(tag: number, at: number): void {
    closeRegion(this);
    if (this.deadFrames > 0) return;
    this.b.pos = at;
    enterCatch(this, tag);
  }

  end(at: number, delegate: number): void {
    closeRegion(this);
    if (this.deadFrames > 0) {
      this.deadFrames--;
      return;
    }
    this.b.pos = at;
    endFrame(this, delegate);
  }

  /** Resets `f` and the translator for defined function `definedIndex` of `env`. */
  prepare(env: ModuleFacts, definedIndex: number, f: IrFunction): void {
    const funcIndex = env.importedFuncCount + definedIndex;
    f.funcIndex = funcIndex;
    f.reset(env.summaries.bytes[definedIndex] + paramCount(env, funcIndex));
    f.keepsNans = env.nans === NAN_CODE.own;
    f.signatures = env.signatures;
    f.signature = env.signatures[env.funcSignature[funcIndex]];
    f.inlineSites.push({ parent: 0, callPos: 0, funcIndex });
    this.reset(env, f);
  }

  /** Completes the function once the whole body has been visited. */
  complete(definedIndex: number): void {
    if (this.keptCalls > 0 || (this.env.summaries.flags[definedIndex] & BODY.CALL) === 0) return;
    // With inline-callfree, a function whose calls are gone becomes a leaf; else it is still treated as calling.
    if (!this.env.choices.callFree) {
      this.f.treatedAsCalling = true;
      return;
    }
    this.counts.callFree++;
    if (this.entryPoll !== 0) this.f.unschedule(this.entryPoll);
  }
}
