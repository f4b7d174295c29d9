/**
 * Function body → IrFunction, in the same pass that validates it: validateBody walks the body and calls the visitor
 * here, which tracks the SSA value of every operand and local and appends instructions through a Builder
 * (ir/builder.ts).
 *
 *     bytes ── validateBody ──► FunctionTranslator ──► Builder ──► IrFunction
 *                                   │ control.ts: frames and branches; block_parameters.ts: joins and their parameters
 *                                   │ memory.ts, calls.ts, tables.ts, …: instructions of more than one operation
 *                                   └ inline.ts: a callee's body translated into the caller, as a nested activation
 *
 * Relies on: validation reports only valid instructions, in order. Establishes: the invariants of ir/function.ts.
 * Unreachable code is walked and emits nothing.
 *
 * This file dispatches: the most frequent instructions have a case here, the others a handler of their topic's file.
 */
import type { IrFunction } from "../ir/function.ts";
import { OP, type OpName } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { FUEL_PRICE_OF_IF } from "./fuel_prices.ts";
import { TRAP } from "../base/traps.ts";
import { validateBody } from "../validate/code.ts";
import { FRAME } from "../validate/visitor.ts";
import type { Immediates } from "../wasm/immediates.ts";
import { OPCODES } from "../wasm/opcodes.ts";
import { TY_OF_LETTER } from "../wasm/ir_types.ts";
import type { ValType } from "../wasm/types.ts";
import { ARRAY_HANDLERS } from "./arrays.ts";
import { ATOMIC_HANDLERS } from "./atomics.ts";
import { translateCall, translateCallIndirect, translateCallRef } from "./calls.ts";
import { CAST_HANDLERS } from "./casts.ts";
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
import { enterCatch, enterTry, EXCEPTION_HANDLERS } from "./exceptions.ts";
import { canonicalize } from "./deterministic.ts";
import { addPrice, closeRegion, meterInstruction } from "./fuel.ts";
import { MEMORY_HANDLERS, translateLoad, translateStore } from "./memory.ts";
import type { ModuleEnv } from "./module_env.ts";
import { OBJECT_HANDLERS } from "./objects.ts";
import { REFERENCE_HANDLERS } from "./references.ts";
import { TABLE_HANDLERS } from "./tables.ts";
import { translateGlobalGet, translateGlobalSet } from "./globals.ts";
import { MAKES_NAN, translateFloat } from "./imitated_nans.ts";
import { BODY } from "../wasm/body_flags.ts";
import { type Handler, notCompiled, Translation } from "./translation.ts";
import { VECTOR_HANDLERS } from "./vector.ts";
import { WIDE_HANDLERS } from "./wide.ts";

/** The translation of a row: a case of `#common` or `#rare` below; 0 for rows with a handler. */
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
};

/** The handlers of all topics, by mnemonic. */
const HANDLER_BY_MNEMONIC: Readonly<Record<string, Handler>> = {
  ...ARRAY_HANDLERS,
  ...ATOMIC_HANDLERS,
  ...CAST_HANDLERS,
  ...EXCEPTION_HANDLERS,
  ...MEMORY_HANDLERS,
  ...OBJECT_HANDLERS,
  ...REFERENCE_HANDLERS,
  ...TABLE_HANDLERS,
  ...VECTOR_HANDLERS,
  ...WIDE_HANDLERS,
};

/** By row id: the case, the IR operation and its result type, the handler. */
const CASE: Uint8Array = new Uint8Array(OPCODES.length);
const IR_OP: Uint16Array = new Uint16Array(OPCODES.length);
const IR_TY: Uint8Array = new Uint8Array(OPCODES.length);
const HANDLERS: (Handler | undefined)[] = [];

for (const row of OPCODES) {
  const { id, mnemonic, params, results } = row;
  IR_TY[id] = TY_OF_LETTER[results ?? ""] ?? TY.NONE;
  HANDLERS.push(HANDLER_BY_MNEMONIC[mnemonic]);
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
  }
}

/** Translates function bodies, one at a time. */
export class FunctionTranslator extends Translation {
  begin(
    funcIndex: number,
    params: readonly ValType[],
    results: readonly ValType[],
    locals: readonly ValType[],
  ): void {
    beginActivation(this, funcIndex, params, results, locals);
  }

  instruction(id: number, imm: Immediates, at: number): void {
    if (this.positioned) {
      this.b.pos = at;
      if (this.metered) meterInstruction(this, id);
    }
    if (!this.reachable) return;
    if (this.deterministic && MAKES_NAN[id] !== 0) {
      translateFloat(this, id, () => this.#common(id, imm, at));
      if (this.nanCode === "canonical") canonicalize(this, id);
    } else this.#common(id, imm, at);
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
        const sp = (this.sp -= 2) - 1;
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
    }
    const handler = HANDLERS[id];
    if (handler === undefined) throw notCompiled(OPCODES[id].feature, OPCODES[id].mnemonic, at);
    handler(this, imm, at);
  }

  enter(kind: number, params: readonly ValType[], results: readonly ValType[], imm: Immediates, at: number): void {
    this.b.pos = at;
    if (this.metered) {
      if (kind === FRAME.IF) addPrice(this, FUEL_PRICE_OF_IF);
      if (kind === FRAME.IF || kind === FRAME.LOOP) closeRegion(this);
    }
    if (kind === FRAME.LOOP) enterLoop(this, params.length, results.length, at);
    else if (!this.reachable) this.deadFrames++;
    else if (kind === FRAME.BLOCK) enterBlock(this, params.length, results.length);
    else if (kind === FRAME.IF) enterIf(this, params.length, results.length);
    else enterTry(this, params.length, results.length, kind === FRAME.TRY_TABLE ? imm.catches : null);
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

  finish(): void {}

  /**
   * Validates and translates defined function `definedIndex` of `env` into `f`, which is reset. A translator whose
   * translation has thrown must not be used again.
   */
  translate(env: ModuleEnv, definedIndex: number, f: IrFunction): void {
    const funcIndex = this.prepare(env, definedIndex, f);
    validateBody(env.valid, funcIndex, this);
    this.complete(definedIndex);
  }

  /** Resets `f` and the translator for defined function `definedIndex`; returns its function index. */
  prepare(env: ModuleEnv, definedIndex: number, f: IrFunction): number {
    const { valid } = env;
    const funcIndex = valid.importedFuncCount + definedIndex;
    f.reset(env.summaries.bytes[definedIndex] + valid.funcTypes[funcIndex].params.length);
    f.funcIndex = funcIndex;
    f.keepsNans = env.nanCode === "own";
    f.signatures = env.signatures;
    f.signature = env.signatures[env.funcSignature[funcIndex]];
    f.inlineSites.push({ parent: 0, callPos: 0, funcIndex });
    this.reset(env, f);
    return funcIndex;
  }

  /** Completes the function once the whole body has been visited. */
  complete(definedIndex: number): void {
    const { env } = this;
    if (this.keptCalls === 0 && (env.summaries.flags[definedIndex] & BODY.CALL) !== 0) becomeCallFree(this);
  }
}

/**
 * No call remains in a function that had calls: with inline-callfree it becomes a leaf, otherwise it is still treated
 * as calling.
 */
function becomeCallFree(t: Translation): void {
  const { env, f } = t;
  if (!env.optimizations["inline-callfree"]) {
    f.treatedAsCalling = true;
    return;
  }
  env.statistics.count("inline-callfree");
  if (t.entryPoll !== 0) f.unschedule(t.entryPoll);
}
