/**
 * Function body → IrFunction, in the same pass that validates it: validateBody walks the body and calls the visitor here,
 * which keeps the SSA value of every operand and local and appends instructions through a Builder (ir/builder.ts).
 *
 *     bytes ── validateBody ──► FunctionTranslator ──► Builder ──► IrFunction
 *                                   │ control.ts frames, branches, joins (block_parameters.ts: what a join's parameters are)
 *                                   │ memory.ts, calls.ts, special.ts: instructions that are more than one operation
 *                                   └ inline.ts: a callee's body walked into the caller, as a nested activation
 *
 * Relies on: validation calls only for valid instructions, and in order. Establishes: the invariants of ir/function.ts.
 * Code that cannot be reached is walked and emits nothing.
 *
 * This file has the state and the instructions that are most of all code; everything else is reached through HANDLERS.
 */
import { UnsupportedError } from "../errors.ts";
import { Builder } from "../ir/builder.ts";
import { IrFunction } from "../ir/function.ts";
import { OP, type OpName } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { FUEL_PRICE_OF_IF } from "./fuel_prices.ts";
import { TRAP } from "../traps.ts";
import { validateBody } from "../validate/code.ts";
import { type CodeVisitor, FRAME } from "../validate/visitor.ts";
import { CodeReader } from "../wasm/code_reader.ts";
import type { CatchClause, Immediates } from "../wasm/immediates.ts";
import { OPCODES } from "../wasm/opcodes.ts";
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
  enterIf,
  enterLoop,
  otherwiseFrame,
  returnResults,
  trapHere,
} from "./control.ts";
import { enterCatch, enterTry, EXCEPTION_HANDLERS } from "./exceptions.ts";
import { Frames } from "./frames.ts";
import { canonicalize, MAKES_NAN } from "./deterministic.ts";
import { addPrice, closeRegion, meterInstruction } from "./fuel.ts";
import { LoopScan } from "./loop_scan.ts";
import { MEMORY_HANDLERS, translateLoad, translateStore } from "./memory.ts";
import type { ModuleEnv } from "./module_env.ts";
import { OBJECT_HANDLERS } from "./objects.ts";
import { SPECIAL_HANDLERS, translateGlobalGet, translateGlobalSet } from "./special.ts";
import { BODY } from "./summaries.ts";
import { VECTOR_HANDLERS, vectorConstant, ZERO_VECTOR } from "./vector.ts";

/** Translates one instruction that has no case of its own below. Operands are on `t.stack`. */
export type Handler = (t: FunctionTranslator, imm: Immediates, at: number) => void;

/** How a row is translated: the cases of {@linkcode FunctionTranslator.instruction}; 0 is a handler's. */
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

const TY_OF_LETTER: Readonly<Record<string, number>> = { i: TY.I32, I: TY.I64, f: TY.F32, F: TY.F64, v: TY.V128 };

/** By row id: the case, the IR operation and its result type, the handler. */
const CASE: Uint8Array = new Uint8Array(OPCODES.length);
const IR_OP: Uint16Array = new Uint16Array(OPCODES.length);
const IR_TY: Uint8Array = new Uint8Array(OPCODES.length);
const HANDLERS: (Handler | undefined)[] = [];

for (const row of OPCODES) {
  const { id, mnemonic, params, results } = row;
  IR_TY[id] = TY_OF_LETTER[results ?? ""] ?? TY.NONE;
  HANDLERS.push(
    MEMORY_HANDLERS[mnemonic] ?? SPECIAL_HANDLERS[mnemonic] ?? EXCEPTION_HANDLERS[mnemonic] ??
      VECTOR_HANDLERS[mnemonic] ?? ATOMIC_HANDLERS[mnemonic] ?? OBJECT_HANDLERS[mnemonic] ?? ARRAY_HANDLERS[mnemonic] ??
      CAST_HANDLERS[mnemonic],
  );
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

function grown32(old: Int32Array, need: number): Int32Array {
  const next = new Int32Array(Math.max(need, old.length * 2));
  next.set(old);
  return next;
}

export class FunctionTranslator implements CodeVisitor {
  env!: ModuleEnv;
  f!: IrFunction;
  readonly b: Builder = new Builder(new IrFunction());
  readonly frames: Frames = new Frames();
  readonly loops: LoopScan = new LoopScan();
  readonly reader: CodeReader = new CodeReader(new Uint8Array(0));

  /** Value ids of operands; `room` is what pushes may use in all without a check. */
  stack: Int32Array = new Int32Array(1024);
  sp = 0;
  room = 0;

  /** Is the instruction in hand reachable? If not, frames that open are only counted. */
  reachable = false;
  deadFrames = 0;

  // The activation: the body that is being walked, the outermost one or an inlined one.
  /** Function index of the body. */
  funcIndex = 0;
  /** Frame number of the body itself. */
  bodyFrame = 0;
  /** Slot of its first local, and one beyond its last. */
  localBase = 0;
  localEnd = 0;
  /** Loops that are open in it; the next record of `loops`. */
  openLoops = 0;
  nextLoop = 0;
  /** Bytes of inlined bodies that this function may still take in. */
  inlineBudget = -1;
  inlineDepth = 0;
  /** Function indices of the activations, outermost first. */
  readonly chain: number[] = [];
  /** Catch clauses of the open try_tables, innermost last. */
  readonly clauses: (readonly CatchClause[])[] = [];
  // Fuel (fuel.ts).
  metered = false;
  /** The constant with the price of the open region, 0 when none is open; what it has come to so far. */
  charge = 0;
  price = 0;
  // Determinism (deterministic.ts): the thread's address, the stack that the open activation got and leaves.
  deterministic = false;
  depthThread = 0;
  depthGot = 0;
  depthLeft = 0;
  /** Calls that stayed calls, and the poll at the entry that is there for them (0: none). */
  keptCalls = 0;
  entryPoll = 0;
  /** The zero of each type, from the entry block; 0 when there is none. */
  readonly zeros: Int32Array = new Int32Array(TY.REF + 1);

  /** Points the translator at a function. */
  reset(env: ModuleEnv, f: IrFunction): void {
    this.env = env;
    this.f = f;
    this.b.reset(f);
    this.frames.reset();
    this.loops.truncate(0);
    this.sp = 0;
    this.room = 0;
    this.reachable = false;
    this.deadFrames = 0;
    this.localBase = 0;
    this.localEnd = 0;
    this.openLoops = 0;
    this.nextLoop = 0;
    this.inlineDepth = 0;
    this.inlineBudget = -1;
    this.chain.length = 0;
    this.clauses.length = 0;
    this.keptCalls = 0;
    this.entryPoll = 0;
    this.metered = env.fuel;
    this.deterministic = env.deterministic;
    this.zeros.fill(0);
  }

  /** Makes room for `count` more operands than the bytes of the bodies account for. */
  reserve(count: number): void {
    this.room += count;
    if (this.room > this.stack.length) this.stack = grown32(this.stack, this.room);
  }

  push(value: number): void {
    this.stack[this.sp++] = value;
  }

  pop(): number {
    return this.stack[--this.sp];
  }

  /** The zero of type `ty`, in the entry block if it is there. */
  zero(ty: number): number {
    const zero = this.zeros[ty];
    if (zero !== 0) return zero;
    return ty === TY.V128 ? vectorConstant(this, ZERO_VECTOR) : this.b.constant(ty, 0, 0);
  }

  begin(
    funcIndex: number,
    params: readonly ValType[],
    results: readonly ValType[],
    locals: readonly ValType[],
  ): void {
    beginActivation(this, funcIndex, params, results, locals);
  }

  instruction(id: number, imm: Immediates, at: number): void {
    if (this.metered) {
      this.b.pos = at;
      meterInstruction(this, id);
    }
    if (!this.reachable) return;
    if (this.deterministic && MAKES_NAN[id] !== 0) {
      this.#one(id, imm, at);
      canonicalize(this, id);
    } else this.#one(id, imm, at);
  }

  #one(id: number, imm: Immediates, at: number): void {
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
    this.#control(id, imm, at);
  }

  /** The cases that are rarer or that leave the function anyway. */
  #control(id: number, imm: Immediates, at: number): void {
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
    if (this.deadFrames === 0) otherwiseFrame(this);
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
}

/** An instruction that validation accepts and no handler translates: its feature is not compiled by this build. */
export function notCompiled(feature: string, what: string, offset: number): UnsupportedError {
  const name = feature === "mvp" ? what : feature;
  return new UnsupportedError(name, `${what} is not compiled by this build (feature ${name})`, { offset });
}

/** One translator serves all functions; another is made when a translation is begun inside one. */
let idle: FunctionTranslator | undefined = new FunctionTranslator();

/** No call is left of a function that has calls: with inline-callfree it is one without, else it is still treated like one with. */
function becomeCallFree(t: FunctionTranslator): void {
  const { env, f } = t;
  if (!env.optimizations["inline-callfree"]) {
    f.treatedAsCalling = true;
    return;
  }
  env.statistics.count("inline-callfree");
  if (t.entryPoll !== 0) f.unschedule(t.entryPoll);
}

/** Validates and translates defined function `definedIndex` into `f`, which is reset. */
export function translateFunction(env: ModuleEnv, definedIndex: number, f: IrFunction): void {
  const t = idle ?? new FunctionTranslator();
  idle = undefined;
  const { valid } = env;
  const funcIndex = valid.importedFuncCount + definedIndex;
  f.reset(env.summaries.bytes[definedIndex] + valid.funcTypes[funcIndex].params.length);
  f.funcIndex = funcIndex;
  f.signatures = env.signatures;
  f.signature = env.signatures[env.funcSignature[funcIndex]];
  f.inlineSites.push({ parent: 0, callPos: 0, funcIndex });
  t.reset(env, f);
  validateBody(valid, funcIndex, t);
  if (t.keptCalls === 0 && (env.summaries.flags[definedIndex] & BODY.CALL) !== 0) becomeCallFree(t);
  // A translator that an error has interrupted is not used again.
  idle = t;
}
