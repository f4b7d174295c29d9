/**
 * A model machine for tests of passes: runs an IrFunction over a small memory and context by ir/eval.ts. In: a
 * function, its arguments as bit patterns. Out: everything observable of the run, as one string: result or trap, calls
 * with their arguments, memory and context at the end. Two functions are equivalent if these strings are equal.
 *
 * Calls return a hash of their arguments, and change memory, globals and sizes. A NaN of arithmetic counts as one
 * value, whatever its bits. In explicit mode an access out of bounds that no BOUNDS caught is an error of the test, not
 * a trap.
 */
import { CONTEXT, MEMORY } from "../../abi/context_layout.ts";
import { EVAL_NAN, EVAL_UNKNOWN, evalHi, evalLo, evaluate } from "../../ir/eval.ts";
import type { IrFunction } from "../../ir/function.ts";
import { boundsBytes, CLASS_SIZES, REGION, region, regionKind } from "../../ir/regions.ts";
import { FLAG, OP, OP_FLAGS, OP_ROWS } from "../../ir/ops.ts";
import { TY } from "../../ir/types.ts";
import { TRAP } from "../../base/traps.ts";
import { accessBytes, isLoad, isStore } from "../memory_state.ts";

/** Bytes of linear memory 0 and of the context. */
export const MEMORY_BYTES = 4096;
const CONTEXT_BYTES = 256;
/** Context offsets from here on are of class CLASS_SIZES: calls change them, stores do not. */
const SIZES_OFFSET = 192;

/** Offset of the length of memory 0 in the context; other offsets belong to other classes. */
const LENGTH_OFFSET = CONTEXT.SIZE + MEMORY.LENGTH;
const LENGTH_REGION = region(REGION.CONTEXT, CLASS_SIZES);

class Trapped {
  constructor(readonly code: number) {}
}

class Machine {
  readonly lo: Int32Array;
  readonly hi: Int32Array;
  readonly memory: Uint8Array = new Uint8Array(MEMORY_BYTES);
  readonly context: Uint8Array = new Uint8Array(CONTEXT_BYTES);
  readonly log: string[] = [];
  /** Instructions executed. */
  steps = 0;

  constructor(readonly f: IrFunction, readonly explicit: boolean) {
    this.lo = new Int32Array(f.count);
    this.hi = new Int32Array(f.count);
    for (let n = 0; n < MEMORY_BYTES; n++) this.memory[n] = n * 7 + (n >> 5);
    for (let n = 0; n < CONTEXT_BYTES; n++) this.context[n] = n * 13 + 5;
  }

  #hash(lo: number, hi: number, seed: number): number {
    let h = Math.imul(lo ^ Math.imul(hi, 0x85ebca6b) ^ seed, 0x9e3779b1);
    h ^= h >>> 15;
    return Math.imul(h, 0x2c1b3c6d) ^ (h >>> 13);
  }

  run(args: readonly [number, number][]): string {
    const { f, lo, hi } = this;
    for (let n = 0; n < f.blockParams[0]; n++) {
      const i = f.sched[f.blockStart[0] + n];
      lo[i] = args[n][0];
      hi[i] = args[n][1];
    }
    let end: string;
    try {
      let k = 0;
      for (;;) {
        let last = 0;
        for (let s = f.blockStart[k] + f.blockParams[k]; s < f.blockEnd[k]; s++) {
          last = f.sched[s];
          if (++this.steps > 200000) throw new Error("the test function does not end");
          if ((OP_FLAGS[f.op[last]] & FLAG.ENDS) === 0) this.#step(last);
        }
        const e = this.#leave(last);
        if (e < 0) break;
        k = f.edgeTo[e];
        this.#pass(e, k);
      }
      end = `returned ${this.log.pop()}`;
    } catch (error) {
      if (!(error instanceof Trapped)) throw error;
      end = `trap ${error.code}`;
    }
    return `${end}; calls ${this.log.join(" ")}; memory ${digest(this.memory)}; context ${digest(this.context)}`;
  }

  #pass(e: number, k: number): void {
    const { f, lo, hi } = this;
    const values: number[] = [];
    for (let n = 0; n < f.blockParams[k]; n++) {
      const v = f.pool[f.edgeArgs[e] + n];
      values.push(lo[v], hi[v]);
    }
    for (let n = 0; n < f.blockParams[k]; n++) {
      const i = f.sched[f.blockStart[k] + n];
      lo[i] = values[2 * n];
      hi[i] = values[2 * n + 1];
    }
  }

  /** The edge taken, or −1 after a return. */
  #leave(i: number): number {
    const { f, lo, hi } = this;
    switch (f.op[i]) {
      case OP.JUMP:
        return f.a[i];
      case OP.BRANCH:
        return lo[f.a[i]] !== 0 ? f.b[i] : f.c[i];
      case OP.SWITCH:
        return f.b[i] + Math.min(lo[f.a[i]] >>> 0, f.c[i] - 1);
      case OP.TRAP:
        throw new Trapped(f.imm[i]);
      default: {
        const parts: string[] = [];
        for (let n = 0; n < f.b[i]; n++) {
          const v = f.pool[f.a[i] + n];
          parts.push(`${lo[v]}:${f.ty[v] === TY.I32 || f.ty[v] === TY.F32 ? 0 : hi[v]}`);
        }
        this.log.push(parts.join(","));
        return -1;
      }
    }
  }

  #step(i: number): void {
    const { f, lo, hi } = this;
    const op = f.op[i];
    const a = f.a[i], b = f.b[i], c = f.c[i];
    if (op === OP.CONST) {
      lo[i] = f.imm[i];
      hi[i] = c;
    } else if (op === OP.SELECT) {
      const v = lo[c] !== 0 ? a : b;
      lo[i] = lo[v];
      hi[i] = hi[v];
    } else if (isLoad(op) || isStore(op)) this.#access(i, op);
    else if (op === OP.BOUNDS) {
      const address = (lo[a] >>> 0) + (f.ty[a] === TY.I64 ? (hi[a] >>> 0) * 4294967296 : 0);
      if (address + (f.imm[i] >>> 0) + boundsBytes(c) > MEMORY_BYTES) throw new Trapped(TRAP.MEMORY_OUT_OF_BOUNDS);
    } else if (op === OP.TRAP_IF) {
      if (lo[a] !== 0) throw new Trapped(f.imm[i]);
    } else if (op === OP.CHECK_INDEX) {
      if (lo[a] >>> 0 >= lo[b] >>> 0) throw new Trapped(f.imm[i]);
      lo[i] = lo[a];
      hi[i] = hi[a];
    } else if (op === OP.CALL) this.#call(i);
    else {
      const outcome = evaluate(op, f.ty[i], f.ty[a], lo[a], hi[a], lo[b], hi[b], f.imm[i]);
      if (outcome > 0) throw new Trapped(outcome);
      if (outcome === EVAL_UNKNOWN) throw new Error(`cannot run ${OP_ROWS[op].name} of v${i}`);
      const nan = outcome === EVAL_NAN;
      lo[i] = nan ? (f.ty[i] === TY.F32 ? 0x7fc00000 : 0) : evalLo;
      hi[i] = nan ? 0x7ff80000 : evalHi;
    }
  }

  #access(i: number, op: number): void {
    const { f, lo, hi } = this;
    const kind = regionKind(f.c[i]);
    const bytes = accessBytes(f, i);
    if (isLoad(op) && f.c[i] === LENGTH_REGION && f.imm[i] === LENGTH_OFFSET) {
      lo[i] = MEMORY_BYTES;
      hi[i] = 0;
      return;
    }
    const space = kind === REGION.CONTEXT ? this.context : this.memory;
    const base = f.a[i] === 0 ? 0 : lo[f.a[i]] >>> 0;
    const at = base + (f.imm[i] >>> 0);
    if (at + bytes > space.length) {
      if (this.explicit || kind === REGION.CONTEXT) throw new Error(`v${i} accesses ${at} unchecked`);
      throw new Trapped(TRAP.MEMORY_OUT_OF_BOUNDS);
    }
    if (isStore(op)) {
      const v = f.b[i];
      for (let n = 0; n < bytes; n++) space[at + n] = n < 4 ? lo[v] >>> (8 * n) : hi[v] >>> (8 * (n - 4));
      return;
    }
    let low = 0, high = 0;
    for (let n = 0; n < bytes; n++) {
      if (n < 4) low |= space[at + n] << (8 * n);
      else high |= space[at + n] << (8 * (n - 4));
    }
    if (op === OP.LOAD8_S) low = (low << 24) >> 24;
    if (op === OP.LOAD16_S) low = (low << 16) >> 16;
    if (op === OP.LOAD8_S || op === OP.LOAD16_S || op === OP.LOAD32_S) high = low >> 31;
    lo[i] = low;
    hi[i] = f.ty[i] === TY.I64 || f.ty[i] === TY.F64 ? high : 0;
  }

  #call(i: number): void {
    const { f, lo, hi } = this;
    let h = f.c[i] + this.log.length;
    const parts: string[] = [];
    for (let n = 0; n < f.b[i]; n++) {
      const v = f.pool[f.a[i] + n];
      const high = f.ty[v] === TY.I32 || f.ty[v] === TY.F32 ? 0 : hi[v];
      h = this.#hash(lo[v], high, h);
      parts.push(`${lo[v]}:${high}`);
    }
    this.log.push(`${f.c[i]}(${parts.join(",")})@${digest(this.memory)}/${digest(this.context)}`);
    lo[i] = h;
    hi[i] = this.#hash(h, 1, 3);
    this.memory[(h >>> 3) % 64] = h;
    this.memory[(h >>> 9) % MEMORY_BYTES] = h >> 8;
    this.context[(h >>> 5) % CONTEXT_BYTES] = h >> 16;
  }
}

function digest(bytes: Uint8Array): string {
  let h = 0;
  for (const byte of bytes) h = Math.imul(h ^ byte, 0x01000193) + 1 | 0;
  return (h >>> 0).toString(16);
}

/** Runs `f`; returns the observable effects and the number of instructions executed. */
export function observe(
  f: IrFunction,
  args: readonly [number, number][],
  explicit: boolean,
): { seen: string; steps: number } {
  const machine = new Machine(f, explicit);
  const seen = machine.run(args);
  return { seen, steps: machine.steps };
}

/** The alias class of the context at `offset`: each 16 bytes form a class, as the slots of globals do. */
export function contextClass(offset: number): number {
  return offset >= SIZES_OFFSET ? CLASS_SIZES : 8 + (offset >> 4);
}
