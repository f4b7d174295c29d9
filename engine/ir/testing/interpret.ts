/**
 * Runs an IrFunction step by step, for tests: the oracle for translation and for every pass, independent of any
 * backend. In: a function, arguments as bit patterns, and a World that has memory, context and callees. Out: results as
 * bit patterns, or a TrapSignal. Operations are those of ir/eval.ts; this file adds control, memory and calls.
 *
 * Slow and simple on purpose. 32-bit values are the low 32 bits of a bigint; vectors are not supported.
 */
import { Bug } from "../../base/errors.ts";
import { TRAP } from "../../base/traps.ts";
import { EVAL_DONE, EVAL_NAN, evalHi, evalLo, evaluate } from "../eval.ts";
import type { IrFunction } from "../function.ts";
import { atomicWidth, boundsBytes, boundsMemory, REGION, regionKind } from "../regions.ts";
import { CALL_NULL_CODE, CHARGE_OWES, FLAG, OP, OP_FLAGS, OP_ROWS } from "../ops.ts";
import { isAccess, isAtomic } from "../print.ts";
import { TY } from "../types.ts";

/** Execution trapped with a code of traps.ts. */
export class TrapSignal extends Error {
  readonly code: number;
  /** Byte offset of the instruction that trapped. */
  readonly pos: number;

  constructor(code: number, pos = 0) {
    super(`trap ${code}`);
    this.code = code;
    this.pos = pos;
  }
}

/** An exception that the world threw: the identity of its tag and the bytes of its payload. */
export class ThrownSignal extends Error {
  readonly tag: bigint;
  readonly payload: Uint8Array;

  constructor(tag: bigint, payload: Uint8Array) {
    super(`exception of tag ${tag}`);
    this.tag = tag;
    this.payload = payload;
  }
}

/** Execution took more steps than the world allows. */
export class StepLimitSignal extends Error {}

/** Bytes in the simulated address space. */
export interface Place {
  view: DataView;
  offset: number;
}

/** A tail call that the world makes in place of the function that requested it. */
export interface TailRequest {
  /** CALL, CALL_RECORD or CALL_IMPORT, and its column c (not for records, which are the first argument). */
  op: number;
  target: number;
  args: readonly bigint[];
}

/** The environment of the function. Values are bit patterns, unsigned. */
export interface World {
  /** Simulated address of the context, and its bytes. */
  readonly contextAddress: number;
  readonly context: DataView;
  /** Steps left; running below 0 ends the run. */
  steps: number;
  /** Fuel left; unlimited if absent. */
  fuel?: bigint;
  /** Linear memory 0 as it is now. */
  memory0(): DataView;
  /** Byte length of memory `index`. */
  memoryLength(index: number): number;
  /** `width` bytes at an address, or undefined when they are not mapped. */
  resolve(address: number, width: number): Place | undefined;
  call(definedIndex: number, args: readonly bigint[]): readonly bigint[];
  callRecord(address: number, args: readonly bigint[]): readonly bigint[];
  callImport(index: number, args: readonly bigint[]): readonly bigint[];
  callBuiltin(index: number, args: readonly bigint[]): readonly bigint[];
  /**
   * The request of a tail call, set by a function that returns no results, if the world makes tail calls; otherwise
   * they nest.
   */
  tail?: TailRequest | null;
  /** Called when a block of a function is entered, for profiles. */
  entered?(f: IrFunction, block: number): void;
  /** An exception has reached the function: puts it where landing pads look for it. Absent where nothing throws. */
  landed?(exception: ThrownSignal): void;
}

/** Runs `f`; throws {@linkcode TrapSignal} when it traps. */
export function interpret(f: IrFunction, args: readonly bigint[], world: World): readonly bigint[] {
  return new Interpretation(f, world).run(args);
}

class Interpretation {
  readonly #f: IrFunction;
  readonly #world: World;
  readonly #lo: Int32Array;
  readonly #hi: Int32Array;
  /** Results of the last call, for RESULT. */
  #results: readonly bigint[] = [];
  /** Whether an exception left the last call. */
  #unwound = false;
  /** Index of the current instruction in `sched`. */
  #scheduled = 0;

  constructor(f: IrFunction, world: World) {
    this.#f = f;
    this.#world = world;
    this.#lo = new Int32Array(f.count);
    this.#hi = new Int32Array(f.count);
  }

  #set(i: number, value: bigint): void {
    this.#lo[i] = Number(BigInt.asIntN(32, value));
    const wide = this.#f.ty[i] !== TY.I32 && this.#f.ty[i] !== TY.F32;
    this.#hi[i] = wide ? Number(BigInt.asIntN(32, value >> 32n)) : 0;
  }

  #get(i: number): bigint {
    return (BigInt(this.#hi[i] >>> 0) << 32n) | BigInt(this.#lo[i] >>> 0);
  }

  #list(first: number, count: number): bigint[] {
    const values: bigint[] = [];
    for (let n = 0; n < count; n++) values.push(this.#get(this.#f.pool[first + n]));
    return values;
  }

  run(args: readonly bigint[]): readonly bigint[] {
    const f = this.#f;
    for (let n = 0; n < f.blockParams[0]; n++) this.#set(f.sched[f.blockStart[0] + n], args[n]);
    for (let block = 0;;) {
      let next = -1;
      this.#world.entered?.(f, block);
      for (let s = f.blockStart[block] + f.blockParams[block]; s < f.blockEnd[block]; s++) {
        const i = f.sched[s];
        if (--this.#world.steps < 0) throw new StepLimitSignal();
        if ((OP_FLAGS[f.op[i]] & FLAG.ENDS) === 0) {
          this.#scheduled = s;
          this.#step(i);
          continue;
        }
        if (f.op[i] === OP.RETURN) return this.#list(f.a[i], f.b[i]);
        if (f.op[i] === OP.TRAP) throw new TrapSignal(f.imm[i], f.pos[i]);
        if (f.op[i] >= OP.TAIL_CALL) return this.#tailCall(i, f.op[i] - OP.TAIL_CALL + OP.CALL);
        next = this.#follow(this.#edge(i));
      }
      if (next < 0) throw new Bug(`b${block} does not end`);
      block = next;
    }
  }

  #tailCall(i: number, op: number): readonly bigint[] {
    const f = this.#f;
    if (this.#world.tail === undefined) return this.#call(i, op);
    const args = this.#list(f.a[i], f.b[i]);
    if (op === OP.CALL_RECORD && args[0] === 0n) throw new TrapSignal(f.c[i] & CALL_NULL_CODE, f.pos[i]);
    this.#world.tail = { op, target: f.c[i], args };
    return [];
  }

  #edge(i: number): number {
    const f = this.#f;
    if (f.op[i] === OP.JUMP) return f.a[i];
    const value = this.#lo[f.a[i]];
    if (f.op[i] === OP.BRANCH) return value !== 0 ? f.b[i] : f.c[i];
    return f.b[i] + Math.min(value >>> 0, f.c[i] - 1);
  }

  /** Passes an edge's arguments in parallel; returns the target block. */
  #follow(e: number): number {
    const f = this.#f;
    const to = f.edgeTo[e];
    const values = this.#list(f.edgeArgs[e], f.blockParams[to]);
    values.forEach((value, n) => this.#set(f.sched[f.blockStart[to] + n], value));
    return to;
  }

  #step(i: number): void {
    const f = this.#f;
    const op = f.op[i];
    const lo = this.#lo;
    const hi = this.#hi;
    if (isAccess(op)) return this.#access(i, op);
    if (isAtomic(op)) return this.#atomic(i, op);
    switch (op) {
      case OP.CONST:
        lo[i] = f.imm[i];
        hi[i] = f.ty[i] === TY.I32 || f.ty[i] === TY.F32 ? 0 : f.c[i];
        return;
      case OP.SELECT: {
        const from = lo[f.c[i]] !== 0 ? f.a[i] : f.b[i];
        lo[i] = lo[from];
        hi[i] = hi[from];
        return;
      }
      case OP.CONTEXT:
        return this.#set(i, BigInt(this.#world.contextAddress + (f.imm[i] >>> 0)));
      case OP.TRAP_IF:
        if (lo[f.a[i]] !== 0) throw new TrapSignal(f.imm[i], f.pos[i]);
        return;
      case OP.CHECK_INDEX: {
        if (this.#addressOf(f.a[i]) + f.c[i] >= this.#addressOf(f.b[i])) throw new TrapSignal(f.imm[i], f.pos[i]);
        lo[i] = lo[f.a[i]];
        hi[i] = hi[f.a[i]];
        return;
      }
      case OP.BOUNDS: {
        const end = this.#addressOf(f.a[i]) + (f.imm[i] >>> 0) + boundsBytes(f.c[i]);
        if (end > this.#world.memoryLength(boundsMemory(f.c[i]))) {
          throw new TrapSignal(TRAP.MEMORY_OUT_OF_BOUNDS, f.pos[i]);
        }
        return;
      }
      case OP.CALL:
      case OP.CALL_RECORD:
      case OP.CALL_IMPORT:
      case OP.CALL_BUILTIN:
        return this.#watch(i, op);
      case OP.RESULT:
        if (!this.#unwound) this.#set(i, this.#results[f.imm[i]]);
        return;
      case OP.UNWOUND:
        return this.#set(i, this.#unwound ? 1n : 0n);
      case OP.CHARGE: {
        const { fuel } = this.#world;
        if (fuel === undefined) return;
        const owed = BigInt(f.b[i]);
        const left = fuel - owed - this.#get(f.a[i]);
        if (left < 0n) {
          this.#world.fuel = fuel - owed;
          throw new TrapSignal(TRAP.OUT_OF_FUEL, f.pos[i]);
        }
        if (f.imm[i] !== CHARGE_OWES) this.#world.fuel = left;
        return;
      }
      case OP.POLL:
      case OP.FENCE:
      case OP.PAUSE:
        return;
    }
    const a = f.a[i];
    const b = f.b[i];
    const outcome = evaluate(op, f.ty[i], f.ty[a], lo[a], hi[a], lo[b], hi[b], f.imm[i]);
    if (outcome > 0) throw new TrapSignal(outcome, f.pos[i]);
    if (outcome !== EVAL_DONE && outcome !== EVAL_NAN) throw new Bug(`cannot run ${OP_ROWS[op].name}`);
    lo[i] = evalLo;
    hi[i] = evalHi;
  }

  /** Calls; an exception ends the call if UNWOUND follows it. */
  #watch(i: number, op: number): void {
    const f = this.#f;
    this.#unwound = false;
    try {
      this.#results = this.#call(i, op);
    } catch (error) {
      if (!(error instanceof ThrownSignal)) throw error;
      let s = this.#scheduled + 1;
      while (f.op[f.sched[s]] === OP.RESULT) s++;
      if (f.op[f.sched[s]] !== OP.UNWOUND) throw error;
      this.#world.landed!(error);
      this.#unwound = true;
      return;
    }
    if (f.ty[i] !== TY.NONE) this.#set(i, this.#results[0]);
  }

  #call(i: number, op: number): readonly bigint[] {
    const f = this.#f;
    const world = this.#world;
    const args = this.#list(f.a[i], f.b[i]);
    switch (op) {
      case OP.CALL:
        return world.call(f.c[i], args);
      case OP.CALL_IMPORT:
        return world.callImport(f.c[i], args);
      case OP.CALL_BUILTIN:
        return world.callBuiltin(f.c[i], args);
      default: {
        const record = Number(args[0]);
        if (record === 0) throw new TrapSignal(f.c[i], f.pos[i]);
        return world.callRecord(record, args.slice(1));
      }
    }
  }

  /** An i32 (zero-extended) or i64 as an address. */
  #addressOf(v: number): number {
    return (this.#hi[v] >>> 0) * 4294967296 + (this.#lo[v] >>> 0);
  }

  #place(i: number, width: number, addressValue: number = this.#f.a[i]): Place {
    const f = this.#f;
    const world = this.#world;
    const offset = f.imm[i] >>> 0;
    const kind = regionKind(f.c[i]);
    if (kind === REGION.CONTEXT) return { view: world.context, offset };
    const address = this.#addressOf(addressValue) + offset;
    if (kind === REGION.POINTER || kind === REGION.STRUCT) {
      const place = world.resolve(address, width);
      if (place !== undefined) return place;
      const code = kind === REGION.STRUCT ? TRAP.NULL_STRUCTURE : f.op[i] < OP.STORE ? f.b[i] : 0;
      if (code !== 0) throw new TrapSignal(code, f.pos[i]);
      throw new Bug(`wild access of ${width} bytes at ${address}`);
    }
    const view = world.memory0();
    if (address + width > view.byteLength) throw new TrapSignal(TRAP.MEMORY_OUT_OF_BOUNDS, f.pos[i]);
    return { view, offset: address };
  }

  #access(i: number, op: number): void {
    const f = this.#f;
    const stored = op >= OP.STORE ? f.b[i] : 0;
    const ty = stored !== 0 ? f.ty[stored] : f.ty[i];
    const full = ty === TY.I32 || ty === TY.F32 ? 4 : 8;
    switch (op) {
      case OP.LOAD:
      case OP.STORE:
        return this.#transfer(i, stored, full, false);
      case OP.LOAD8_S:
      case OP.LOAD8_U:
      case OP.STORE8:
        return this.#transfer(i, stored, 1, op === OP.LOAD8_S);
      case OP.LOAD16_S:
      case OP.LOAD16_U:
      case OP.STORE16:
        return this.#transfer(i, stored, 2, op === OP.LOAD16_S);
      default:
        return this.#transfer(i, stored, 4, op === OP.LOAD32_S);
    }
  }

  /** There is one thread, so atomic accesses are plain accesses. */
  #atomic(i: number, op: number): void {
    const f = this.#f;
    const list = op === OP.ATOMIC_CMPXCHG;
    const first = f.a[i];
    const width = 1 << atomicWidth(f.c[i]);
    const { view, offset } = this.#place(i, width, list ? f.pool[first] : first);
    let old = 0n;
    for (let n = width - 1; n >= 0; n--) old = (old << 8n) | BigInt(view.getUint8(offset + n));
    const b = list ? this.#get(f.pool[first + 2]) : op === OP.ATOMIC_LOAD ? old : this.#get(f.b[i]);
    let value = b;
    if (op === OP.ATOMIC_ADD) value = old + b;
    else if (op === OP.ATOMIC_SUB) value = old - b;
    else if (op === OP.ATOMIC_AND) value = old & b;
    else if (op === OP.ATOMIC_OR) value = old | b;
    else if (op === OP.ATOMIC_XOR) value = old ^ b;
    else if (list && BigInt.asUintN(width * 8, this.#get(f.pool[first + 1])) !== old) value = old;
    for (let n = 0; n < width; n++) view.setUint8(offset + n, Number((value >> BigInt(8 * n)) & 0xffn));
    if (op !== OP.ATOMIC_STORE) this.#set(i, old);
  }

  #transfer(i: number, stored: number, width: number, signed: boolean): void {
    const { view, offset } = this.#place(i, width);
    if (stored !== 0) {
      const value = this.#get(stored);
      for (let n = 0; n < width; n++) view.setUint8(offset + n, Number((value >> BigInt(8 * n)) & 0xffn));
      return;
    }
    let value = 0n;
    for (let n = width - 1; n >= 0; n--) value = (value << 8n) | BigInt(view.getUint8(offset + n));
    if (signed) value = BigInt.asUintN(64, BigInt.asIntN(8 * width, value));
    this.#set(i, value);
  }
}
