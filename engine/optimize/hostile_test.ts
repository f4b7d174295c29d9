/** Functions shaped to make passes slow: the cost of all passes together grows linearly, or nearly so. */
import { Statistics } from "../base/statistics.ts";
import { ok } from "node:assert/strict";
import { GROWTH, growthBetween } from "../../tests/support/linear_growth.ts";
import { BLOCK_LOOP, IrFunction } from "../ir/function.ts";
import { boundsWord, REGION, region } from "../ir/regions.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { TRAP } from "../base/traps.ts";
import { optimize } from "./passes.ts";
import { ALL } from "./testing/golden_text.ts";

/** Appends blocks and instructions in order; edges name their target by number, so it need not exist yet. */
class Maker {
  readonly f: IrFunction = new IrFunction();
  #block = 0;
  param = 0;

  constructor(size: number) {
    this.f.reset(size);
    this.f.signature = { params: Uint8Array.of(TY.I32), results: new Uint8Array(0) };
  }

  open(flags = 0, depth = 0): number {
    const { f } = this;
    this.#block = f.addBlock(flags, depth);
    f.blockStart[this.#block] = f.schedCount;
    if (this.#block === 0) {
      this.param = this.emit(OP.PARAM, TY.I32, 0);
      f.blockParams[0] = 1;
    }
    return this.#block;
  }

  emit(op: number, ty: number, a: number, b = 0, c = 0, imm = 0): number {
    const { f } = this;
    const i = f.append(op, ty, a, b, c, imm);
    if (f.schedCount >= f.sched.length) f.ensure(f.schedCount + 1);
    f.sched[f.schedCount++] = i;
    return i;
  }

  edge(to: number): number {
    return this.f.addEdge(this.#block, to, 0);
  }

  close(): void {
    this.f.blockEnd[this.#block] = this.f.schedCount;
  }

  jump(to: number): void {
    this.emit(OP.JUMP, TY.NONE, this.edge(to));
    this.close();
  }

  branch(cond: number, to: number, other: number): void {
    this.emit(OP.BRANCH, TY.NONE, cond, this.edge(to), this.edge(other));
    this.close();
  }

  ret(): void {
    this.emit(OP.RETURN, TY.NONE, 0, 0);
    this.close();
  }
}

function costOf(f: IrFunction): number {
  const start = performance.now();
  optimize(f, ALL, new Statistics());
  return performance.now() - start;
}

/** Tests the growth up to `n` blocks, loops or instructions; `make` returns the function of that size. */
function linear(name: string, n: number, make: (n: number) => IrFunction): void {
  Deno.test(name, () => {
    const growth = growthBetween(() => costOf(make(Math.ceil(n / GROWTH))), () => costOf(make(n)));
    ok(growth.linear, JSON.stringify(growth));
  });
}

const CELL = region(REGION.CONTEXT, 9);

linear("early exits to one block", 100_000, (n) => {
  const m = new Maker(4 * n);
  for (let k = 0; k < n; k++) {
    m.open();
    const count = m.emit(OP.CONST, TY.I32, 0, 0, 0, k);
    const sum = m.emit(OP.ADD, TY.I32, m.param, count);
    m.branch(sum, n, k + 1);
  }
  m.open();
  m.ret();
  return m.f;
});

linear("a switch whose cases have equal code", 60_000, (n) => {
  const m = new Maker(7 * n);
  m.open();
  const first = m.f.edgeCount;
  for (let k = 0; k < n; k++) m.edge(k + 1);
  m.emit(OP.SWITCH, TY.NONE, m.param, first, n);
  m.close();
  for (let k = 0; k < n; k++) {
    m.open();
    const ten = m.emit(OP.CONST, TY.I32, 0, 0, 0, 10);
    const product = m.emit(OP.MUL, TY.I32, m.param, ten);
    m.emit(OP.STORE, TY.NONE, 0, product, CELL, 64);
    m.jump(n + 1);
  }
  m.open();
  m.ret();
  return m.f;
});

linear("nested loops, with a switch to all of them", 20_000, (n) => {
  const m = new Maker(10 * n);
  m.open();
  m.jump(1);
  for (let k = 1; k <= n; k++) {
    m.open(BLOCK_LOOP, k);
    const old = m.emit(OP.LOAD, TY.I32, 0, 0, CELL, 64);
    m.emit(OP.STORE, TY.NONE, 0, m.emit(OP.XOR, TY.I32, old, m.param), CELL, 64);
    m.jump(k + 1);
  }
  m.open(0, n);
  const first = m.f.edgeCount;
  for (let k = 1; k <= n; k++) m.edge(k);
  m.edge(n + 2);
  m.emit(OP.SWITCH, TY.NONE, m.param, first, n + 1);
  m.close();
  m.open();
  m.ret();
  return m.f;
});

linear("nested loops that each end", 20_000, (n) => {
  const m = new Maker(10 * n);
  m.open();
  m.jump(1);
  for (let k = 1; k <= n; k++) {
    m.open(BLOCK_LOOP, k);
    m.emit(OP.STORE, TY.NONE, 0, m.emit(OP.MUL, TY.I32, m.param, m.param), region(REGION.CONTEXT, 3 + k), 64 + 16 * k);
    m.jump(k + 1);
  }
  for (let k = n; k >= 1; k--) {
    m.open(0, k);
    m.branch(m.param, k, n + 1 + (n - k) + 1);
  }
  m.open();
  m.ret();
  return m.f;
});

linear("a straight line of loads and checks of one address", 150_000, (n) => {
  const m = new Maker(8 * n);
  m.open();
  let v = m.param;
  for (let k = 0; k < n; k++) {
    const c = m.emit(OP.CONST, TY.I32, 0, 0, 0, k * 7919);
    m.emit(OP.BOUNDS, TY.NONE, m.param, 0, boundsWord(0, 4), n - k);
    const load = m.emit(OP.LOAD, TY.I32, m.param, 0, 0, k);
    v = m.emit(OP.XOR, TY.I32, v, load);
    m.emit(OP.STORE, TY.NONE, v, c, 0, 4);
    m.emit(OP.TRAP_IF, TY.NONE, v, 0, 0, TRAP.UNREACHABLE);
  }
  m.ret();
  return m.f;
});

linear("empty blocks in a row, and diamonds", 100_000, (n) => {
  const m = new Maker(10 * n);
  for (let k = 0; k < n; k++) {
    m.open();
    m.jump(k + 1);
  }
  for (let k = 0; k < n; k++) {
    const at = m.open();
    m.branch(m.param, at + 1, at + 2);
    m.open();
    m.emit(OP.STORE, TY.NONE, 0, m.param, CELL, 64);
    m.jump(at + 2);
  }
  m.open();
  m.ret();
  return m.f;
});
