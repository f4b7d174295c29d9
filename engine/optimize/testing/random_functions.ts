/**
 * Random functions for tests of passes, from a seed: structured control (conditionals, loops that end, switches, early
 * exits), all pure operations, accesses of memory and context, calls and traps. In: a seed. Out: a valid IrFunction.
 *
 * Every block takes all variables as parameters, which is correct and maximally redundant; values are also used across
 * blocks where they dominate.
 */
import { IrFunction } from "../../ir/function.ts";
import { boundsWord, REGION, region } from "../../ir/regions.ts";
import { BLOCK_LOOP } from "../../ir/function.ts";
import { CLASS_MEMORY0 } from "../../ir/regions.ts";
import { OP, OP_ROWS } from "../../ir/ops.ts";
import { TY } from "../../ir/types.ts";
import { TRAP } from "../../base/traps.ts";
import { contextClass } from "./model_machine.ts";

/** A small deterministic generator (mulberry32). */
export function randomNumbers(seed: number): (below: number) => number {
  let state = seed | 0;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

const VARIABLES = [TY.I32, TY.I32, TY.I32, TY.I64, TY.I64, TY.F64, TY.F32];
const INTERESTING = [
  0,
  1,
  -1,
  2,
  3,
  4,
  5,
  7,
  8,
  10,
  16,
  31,
  32,
  63,
  64,
  100,
  127,
  128,
  255,
  256,
  641,
  1000,
  65535,
  65536,
  0x7fffffff,
  -0x80000000,
  -2,
  -7,
  -128,
  0x3f800000,
  0x40000000,
  0x7f800000,
  0x7fc00001,
  0x3ff00000,
  0x40080000,
];
const BINARY = [
  "ADD",
  "SUB",
  "MUL",
  "AND",
  "OR",
  "XOR",
  "SHL",
  "SHR_S",
  "SHR_U",
  "ROTL",
  "ROTR",
  "ADD",
  "AND",
  "SUB",
] as const;
const UNARY = ["CLZ", "CTZ", "POPCNT", "EXTEND8_S", "EXTEND16_S"] as const;
const DIVISION = ["DIV_S", "DIV_U", "REM_S", "REM_U"] as const;
const COMPARE = ["EQ", "NE", "LT_S", "LT_U", "GT_S", "GT_U", "LE_S", "LE_U", "GE_S", "GE_U"] as const;
const FLOAT_BINARY = ["FADD", "FSUB", "FMUL", "FDIV", "FMIN", "FMAX", "FCOPYSIGN"] as const;
const FLOAT_UNARY = ["FABS", "FNEG", "FSQRT", "FCEIL", "FFLOOR", "FTRUNC", "FNEAREST"] as const;
const FLOAT_COMPARE = ["FEQ", "FNE", "FLT", "FGT", "FLE", "FGE"] as const;
const TRUNCATE = ["TRUNC_S", "TRUNC_U", "TRUNC_SAT_S", "TRUNC_SAT_U"] as const;

export class ProgramMaker {
  readonly f: IrFunction = new IrFunction();
  readonly #random: (below: number) => number;
  readonly #explicit: boolean;
  /** Values in scope by type: those of dominating blocks. */
  readonly #scope: number[][] = [[], [], [], [], []];
  #vars: number[] = [];
  #block = 0;
  #depth = 0;
  #budget: number;
  /** Open labels: block numbers are not known yet, so edges are patched when the label is placed. */
  readonly #labels: { edges: number[] }[] = [];

  constructor(seed: number, size: number, explicit: boolean) {
    this.#random = randomNumbers(seed);
    this.#explicit = explicit;
    this.#budget = size;
  }

  /** Builds the function. */
  make(): IrFunction {
    const f = this.f;
    f.reset(4096);
    f.signature = { params: Uint8Array.from(VARIABLES), results: Uint8Array.from(VARIABLES) };
    f.signatures = [{ params: Uint8Array.from([TY.I32, TY.I64]), results: Uint8Array.from([TY.I64]) }];
    this.#open(0);
    this.#statements(0);
    this.#emit(OP.RETURN, TY.NONE, this.#list(this.#vars), VARIABLES.length);
    this.#close();
    return f;
  }

  #list(values: readonly number[]): number {
    const first = this.f.allocPool(values.length);
    values.forEach((v, n) => this.f.pool[first + n] = v);
    return first;
  }

  /** Begins a block whose parameters are all variables. */
  #open(flags: number): number {
    const f = this.f;
    const k = f.addBlock(flags, this.#depth);
    this.#block = k;
    f.blockStart[k] = f.schedCount;
    f.blockParams[k] = VARIABLES.length;
    this.#vars = VARIABLES.map((ty, n) => {
      const i = f.append(OP.PARAM, ty, 0, 0, 0, n);
      f.sched[f.schedCount++] = i;
      return i;
    });
    return k;
  }

  #close(): void {
    this.f.blockEnd[this.#block] = this.f.schedCount;
  }

  #edge(to: number): number {
    return this.f.addEdge(this.#block, to, this.#list(this.#vars));
  }

  #emit(op: number, ty: number, a: number, b = 0, c = 0, imm = 0): number {
    const f = this.f;
    const i = f.append(op, ty, a, b, c, imm);
    f.sched[f.schedCount++] = i;
    return i;
  }

  #value(ty: number): number {
    const scope = this.#scope[ty];
    const pick = this.#random(10);
    if (pick < 3) return this.#constant(ty);
    if (pick < 7 && scope.length > 0) return scope[scope.length - 1 - this.#random(Math.min(scope.length, 6))];
    const candidates = this.#vars.filter((_, n) => VARIABLES[n] === ty);
    return candidates[this.#random(candidates.length)];
  }

  #latest(ty: number): number {
    const scope = this.#scope[ty];
    return scope.length > 0 && this.#random(5) ? scope[scope.length - 1] : this.#value(ty);
  }

  #constant(ty: number): number {
    const word = () => INTERESTING[this.#random(INTERESTING.length)];
    const lo = word();
    const hi = ty === TY.I64 ? (this.#random(2) ? lo >> 31 : word()) : ty === TY.F64 ? word() : 0;
    return this.#emit(OP.CONST, ty, 0, 0, hi, ty === TY.F64 && this.#random(4) ? 0 : lo);
  }

  #keep(ty: number, value: number): void {
    this.#scope[ty].push(value);
    if (this.#random(5) === 0) return;
    const slots = VARIABLES.map((t, n) => t === ty ? n : -1).filter((n) => n >= 0);
    this.#vars[slots[this.#random(slots.length)]] = value;
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#random(from.length)];
  }

  #statements(depth: number): void {
    const count = depth === 0 ? this.#budget : 2 + this.#random(6);
    for (let n = 0; n < count && this.#budget > 0; n++) {
      this.#budget--;
      const pick = this.#random(depth > 4 ? 16 : 22);
      if (pick < 9) this.#compute();
      else if (pick < 15) this.#access();
      else if (pick < 16) this.#effect();
      else if (pick < 18) this.#conditional(depth);
      else if (pick < 20) this.#loop(depth);
      else if (pick < 21) this.#switch(depth);
      else this.#exit();
    }
  }

  #compute(): void {
    const ty = this.#pick([TY.I32, TY.I32, TY.I64, TY.I64, TY.F64, TY.F32]);
    const isInt = ty === TY.I32 || ty === TY.I64;
    if (!isInt) {
      const pick = this.#random(8);
      if (pick < 4) this.#keep(ty, this.#emit(OP[this.#pick(FLOAT_BINARY)], ty, this.#value(ty), this.#value(ty)));
      else if (pick < 6) this.#keep(ty, this.#emit(OP[this.#pick(FLOAT_UNARY)], ty, this.#latest(ty)));
      else if (pick < 7) {
        const from = this.#pick([TY.I32, TY.I64]);
        this.#keep(ty, this.#emit(this.#random(2) ? OP.CONVERT_S : OP.CONVERT_U, ty, this.#value(from)));
      } else if (ty === TY.F64) this.#keep(ty, this.#emit(OP.BITCAST, ty, this.#value(TY.I64)));
      else this.#keep(ty, this.#emit(OP.BITCAST, ty, this.#value(TY.I32)));
      return;
    }
    switch (this.#random(12)) {
      case 0:
        return this.#keep(ty, this.#emit(OP[this.#pick(UNARY)], ty, this.#latest(ty)));
      case 1: {
        const other = this.#random(2) ? this.#constant(ty) : this.#value(ty);
        return this.#keep(ty, this.#emit(OP[this.#pick(DIVISION)], ty, this.#value(ty), other, 0, 3));
      }
      case 2: {
        const from = this.#pick([TY.I32, TY.I64]);
        const a = this.#latest(from);
        const b = this.#random(2) ? this.#constant(from) : this.#value(from);
        return this.#keep(TY.I32, this.#emit(OP[this.#pick(COMPARE)], TY.I32, a, b));
      }
      case 3: {
        const from = this.#pick([TY.F32, TY.F64]);
        const a = this.#value(from);
        return this.#keep(TY.I32, this.#emit(OP[this.#pick(FLOAT_COMPARE)], TY.I32, a, this.#value(from)));
      }
      case 4:
        if (ty === TY.I32) return this.#keep(ty, this.#emit(OP.WRAP, ty, this.#latest(TY.I64)));
        return this.#keep(ty, this.#emit(this.#pick([OP.EXTEND_S, OP.EXTEND_U]), ty, this.#latest(TY.I32)));
      case 5: {
        const a = this.#value(ty), b = this.#value(ty);
        return this.#keep(ty, this.#emit(OP.SELECT, ty, a, b, this.#value(TY.I32)));
      }
      case 6:
        return this.#keep(
          ty,
          this.#emit(
            OP[this.#random(6) ? this.#pick(["TRUNC_SAT_S", "TRUNC_SAT_U"] as const) : this.#pick(TRUNCATE)],
            ty,
            this.#value(this.#pick([TY.F32, TY.F64])),
          ),
        );
      case 7:
        if (ty === TY.I64) return this.#keep(ty, this.#emit(OP.EXTEND32_S, ty, this.#latest(ty)));
        return this.#keep(ty, this.#emit(OP.BITCAST, ty, this.#value(TY.F32)));
      default: {
        // Chains with constants are the patterns of most rewrite rules.
        const a = this.#latest(ty);
        const b = this.#random(2) ? this.#constant(ty) : this.#value(ty);
        const op = OP[this.#pick(BINARY)];
        return this.#keep(ty, this.#random(8) ? this.#emit(op, ty, a, b) : this.#emit(op, ty, b, a));
      }
    }
  }

  #address(): number {
    if (this.#random(120) === 0) return this.#value(TY.I32);
    if (this.#scopeAddress !== 0 && this.#random(2)) return this.#scopeAddress;
    const mask = this.#emit(OP.CONST, TY.I32, 0, 0, 0, this.#pick([0xff, 0x3f8, 0xf0]));
    let v = this.#emit(OP.AND, TY.I32, this.#value(TY.I32), mask);
    if (this.#random(2)) {
      const added = this.#random(40) === 0
        ? this.#constant(TY.I32)
        : this.#emit(OP.CONST, TY.I32, 0, 0, 0, this.#random(64));
      v = this.#emit(OP.ADD, TY.I32, v, added);
    }
    this.#scope[TY.I32].push(v);
    return v;
  }

  /** An address to use again: the latest mask among the last values in scope; 0 for none. */
  get #scopeAddress(): number {
    const scope = this.#scope[TY.I32];
    for (let n = scope.length - 1; n >= 0 && n > scope.length - 8; n--) {
      if (this.f.op[scope[n]] === OP.AND) return scope[n];
    }
    return 0;
  }

  /** A load or store of a global: most globals keep one type, and a few are used often. */
  #accessContext(): void {
    const store = this.#random(2) === 0;
    const slot = this.#random(4) ? this.#random(3) : this.#random(store ? 12 : 16);
    const ty = this.#random(8) ? [TY.I32, TY.I64, TY.F64][slot % 3] : this.#pick([TY.I32, TY.I64, TY.F32]);
    const word = region(REGION.CONTEXT, contextClass(slot * 16));
    if (store) this.#emit(OP.STORE, TY.NONE, 0, this.#value(ty), word, slot * 16);
    else this.#keep(ty, this.#emit(OP.LOAD, ty, 0, 0, word, slot * 16));
  }

  #access(): void {
    const inContext = this.#random(3) === 0;
    const store = this.#random(2) === 0;
    const ty = this.#pick([TY.I32, TY.I32, TY.I64, TY.F64, TY.F32]);
    const isInt = ty === TY.I32 || ty === TY.I64;
    const value = store ? this.#value(ty) : 0;
    let op: number = store ? OP.STORE : OP.LOAD;
    if (inContext) return this.#accessContext();
    if (isInt && this.#random(3) === 0) {
      op = store ? this.#pick([OP.STORE8, OP.STORE16, ...(ty === TY.I64 ? [OP.STORE32] : [])]) : this.#pick([
        OP.LOAD8_S,
        OP.LOAD8_U,
        OP.LOAD16_S,
        OP.LOAD16_U,
        ...(ty === TY.I64 ? [OP.LOAD32_S, OP.LOAD32_U] : []),
      ]);
    }
    const address = this.#address();
    const offset = this.#pick([0, 0, 0, 4, 8, 12, 2]);
    if (this.#explicit) {
      const name = OP_ROWS[op].name;
      const bytes = name.includes("8")
        ? 1
        : name.includes("16")
        ? 2
        : name.includes("32")
        ? 4
        : ty === TY.I32 || ty === TY.F32
        ? 4
        : 8;
      this.#emit(OP.BOUNDS, TY.NONE, address, 0, boundsWord(0, bytes), offset);
    }
    const word = region(REGION.MEMORY0, CLASS_MEMORY0);
    if (store) this.#emit(op, TY.NONE, address, value, word, offset);
    else this.#keep(ty, this.#emit(op, ty, address, 0, word, offset));
  }

  #effect(): void {
    if (this.#random(3) === 0) {
      const a = this.#value(TY.I32);
      if (this.#random(3) === 0) {
        const limit = this.#value(TY.I32);
        this.#keep(TY.I32, this.#emit(OP.CHECK_INDEX, TY.I32, a, limit, 0, TRAP.TABLE_OUT_OF_BOUNDS));
        return;
      }
      const cond = this.#emit(OP.EQ, TY.I32, a, this.#constant(TY.I32));
      this.#emit(OP.TRAP_IF, TY.NONE, cond, 0, 0, TRAP.UNDEFINED_ELEMENT);
      return;
    }
    const args = [this.#value(TY.I32), this.#value(TY.I64)];
    this.#keep(TY.I64, this.#emit(OP.CALL, TY.I64, this.#list(args), 2, this.#random(3), 0));
  }

  /** Runs `body` in a scope: values that it defines are not visible afterwards. */
  #scoped(body: () => void): void {
    const sizes = this.#scope.map((values) => values.length);
    body();
    this.#scope.forEach((values, ty) => values.length = sizes[ty]);
  }

  #condition(): number {
    if (this.#random(3)) return this.#emit(OP[this.#pick(COMPARE)], TY.I32, this.#value(TY.I32), this.#value(TY.I32));
    return this.#value(TY.I32);
  }

  /** Places the label: all its edges lead to a new block. */
  #place(label: { edges: number[] }): void {
    const k = this.#open(0);
    for (const e of label.edges) this.f.edgeTo[e] = k;
  }

  #jump(label: { edges: number[] }): void {
    const e = this.#edge(0);
    label.edges.push(e);
    this.#emit(OP.JUMP, TY.NONE, e);
    this.#close();
  }

  #conditional(depth: number): void {
    const cond = this.#condition();
    const taken = this.#edge(0), other = this.#edge(0);
    this.#emit(OP.BRANCH, TY.NONE, cond, taken, other, this.#random(3));
    this.#close();
    const label = { edges: [] as number[] };
    this.#labels.push(label);
    this.#scoped(() => {
      this.f.edgeTo[taken] = this.#open(0);
      this.#statements(depth + 1);
      this.#jump(label);
    });
    if (this.#random(2)) {
      this.#scoped(() => {
        this.f.edgeTo[other] = this.#open(0);
        this.#statements(depth + 1);
        this.#jump(label);
      });
    } else label.edges.push(other);
    this.#labels.pop();
    this.#place(label);
  }

  /**
   * A loop of at most three iterations. Variable 2 counts down; the test at the end uses the header's parameter, so
   * statements of the body that assign the variable do not prolong the loop.
   */
  #loop(depth: number): void {
    const start = this.#emit(OP.CONST, TY.I32, 0, 0, 0, this.#random(4));
    const exit = { edges: [] as number[] };
    this.#vars[2] = start;
    const entry = this.#edge(0);
    this.#emit(OP.JUMP, TY.NONE, entry);
    this.#close();
    this.#labels.push(exit);
    this.#scoped(() => {
      this.#depth++;
      const head = this.#open(BLOCK_LOOP);
      this.f.edgeTo[entry] = head;
      const counter = this.#vars[2];
      if (this.#random(2)) {
        // A test on top: leaves when the counter is 0.
        const stay = this.#edge(0), leave = this.#edge(0);
        exit.edges.push(leave);
        this.#emit(OP.BRANCH, TY.NONE, counter, stay, leave);
        this.#close();
        this.f.edgeTo[stay] = this.#open(0);
      }
      this.#statements(depth + 1);
      const one = this.#emit(OP.CONST, TY.I32, 0, 0, 0, -1);
      const less = this.#emit(OP.ADD, TY.I32, counter, one);
      const zero = this.#emit(OP.CONST, TY.I32, 0, 0, 0, 0);
      const more = this.#emit(OP.GT_S, TY.I32, less, zero);
      this.#vars[2] = less;
      const back = this.#edge(head), leave = this.#edge(0);
      exit.edges.push(leave);
      this.#emit(OP.BRANCH, TY.NONE, more, back, leave);
      this.#close();
      this.#depth--;
    });
    this.#labels.pop();
    this.#place(exit);
  }

  #switch(depth: number): void {
    const value = this.#value(TY.I32);
    const cases = 1 + this.#random(4);
    const first = this.#edge(0);
    for (let n = 1; n < cases; n++) this.#edge(0);
    this.#emit(OP.SWITCH, TY.NONE, value, first, cases);
    this.#close();
    const label = { edges: [] as number[] };
    this.#labels.push(label);
    for (let n = 0; n < cases; n++) {
      if (n > 0 && this.#random(3) === 0) {
        label.edges.push(first + n);
        continue;
      }
      this.#scoped(() => {
        this.f.edgeTo[first + n] = this.#open(0);
        this.#statements(depth + 2);
        this.#jump(label);
      });
    }
    this.#labels.pop();
    this.#place(label);
  }

  /** Leaves at random: to an open label, by a return, or by a trap. */
  #exit(): void {
    const cond = this.#condition();
    const go = this.#edge(0), stay = this.#edge(0);
    this.#emit(OP.BRANCH, TY.NONE, cond, go, stay);
    this.#close();
    if (this.#labels.length > 0 && this.#random(2)) {
      const label = this.#labels[this.#random(this.#labels.length)];
      label.edges.push(go);
    } else {
      this.#scoped(() => {
        this.f.edgeTo[go] = this.#open(0);
        if (this.#random(2)) this.#emit(OP.TRAP, TY.NONE, 0, 0, 0, TRAP.UNREACHABLE);
        else this.#emit(OP.RETURN, TY.NONE, this.#list(this.#vars), VARIABLES.length);
        this.#close();
      });
    }
    this.f.edgeTo[stay] = this.#open(0);
  }
}
