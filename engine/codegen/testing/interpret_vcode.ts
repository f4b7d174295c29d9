/**
 * Runs toy VCode (random_vcode.ts) on hash values, once over virtual registers and once over the locations and edits of
 * an allocation. Both runs take the same branches and must leave the same trace of effects and results: an oracle that
 * shares no code with check_allocation.ts. Not a part of the compiler.
 */
import type { Allocation } from "../allocation.ts";
import { TOY } from "./random_vcode.ts";
import { operandRole, operandVreg, ROLE, type VCode } from "../vcode.ts";

function mix(hash: number, value: number): number {
  let h = Math.imul(hash ^ value, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return (h ^ (h >>> 16)) | 0;
}

/**
 * The trace of a run of at most `steps` instructions, constants not counted: one number for all that could be observed.
 */
export function interpretVCode(v: VCode, steps: number, allocation?: Allocation): number {
  return new Run(v, allocation).run(steps);
}

class Run {
  readonly #v: VCode;
  readonly #a: Allocation | undefined;
  /** Values per virtual register, or per location. */
  readonly #cells = new Map<number, number>();
  #trace = 17;
  #noise = 1;

  constructor(v: VCode, allocation: Allocation | undefined) {
    this.#v = v;
    this.#a = allocation;
  }

  run(steps: number): number {
    const v = this.#v, a = this.#a;
    let k = 0, edit = 0;
    for (;;) {
      const end = k + 1 < v.blockCount ? v.blockFirst[k + 1] : v.count;
      let next = -1;
      if (a !== undefined) edit = this.#firstEdit(2 * v.blockFirst[k]);
      for (let i = v.blockFirst[k]; i < end; i++) {
        if (v.op[i] !== TOY.CONST && --steps < 0) return this.#trace;
        if (a !== undefined) edit = this.#edits(edit, 2 * i);
        if (a === undefined || a.skip[i] === 0) next = this.#instruction(i);
        if (a !== undefined) edit = this.#edits(edit, 2 * i + 1);
      }
      if (next < 0 || v.succCount[k] === 0) return this.#trace;
      const e = v.succ[v.succStart[k] + (next >>> 0) % v.succCount[k]];
      if (a === undefined) this.#passArguments(e);
      else for (let j = a.edgeFirst[e]; j < a.edgeFirst[e + 1]; j++) this.#edit(j);
      k = v.edgeTo[e];
    }
  }

  #firstEdit(at: number): number {
    const a = this.#a!, end = this.#v.edgeCount > 0 ? a.edgeFirst[0] : a.editCount;
    let low = 0, high = end;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (a.editAt[middle] < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #edits(edit: number, at: number): number {
    const a = this.#a!, end = this.#v.edgeCount > 0 ? a.edgeFirst[0] : a.editCount;
    for (; edit < end && a.editAt[edit] === at; edit++) this.#edit(edit);
    return edit;
  }

  #edit(e: number): void {
    const a = this.#a!, cells = this.#cells, from = a.editFrom[e], to = a.editTo[e];
    if (a.editRemat[e] > 0) {
      cells.set(to, this.#constant(a.editRemat[e] - 1));
    } else if (a.editRemat[e] === -1) {
      const old = cells.get(to) ?? 0;
      cells.set(to, cells.get(from) ?? 0);
      cells.set(from, old);
    } else cells.set(to, cells.get(from) ?? 0);
  }

  #constant(i: number): number {
    return mix(this.#v.imm[i], 99);
  }

  #passArguments(e: number): void {
    const v = this.#v, to = v.edgeTo[e], values: number[] = [];
    for (let j = 0; j < v.paramCount[to]; j++) values.push(this.#cells.get(v.pool[v.argStart[e] + j]) ?? 0);
    for (let j = 0; j < values.length; j++) this.#cells.set(v.pool[v.paramStart[to] + j], values[j]);
  }

  /** Executes instruction i; the return value chooses the edge if it ends a block. */
  #instruction(i: number): number {
    const v = this.#v, a = this.#a, first = v.firstOperand[i], end = v.firstOperand[i + 1];
    const cell = (o: number) => (a === undefined ? operandVreg(v.operands[o]) : a.location[o]);
    let hash = mix(v.op[i], v.imm[i]);
    for (let o = first; o < end; o++) {
      const role = operandRole(v.operands[o]);
      if (role === ROLE.USE || role === ROLE.LATE_USE) hash = mix(hash, this.#cells.get(cell(o)) ?? 0);
    }
    if (a !== undefined) this.#destroy(i, first, end);
    if (v.op[i] === TOY.CONST) hash = this.#constant(i);
    for (let o = first; o < end; o++) {
      if (operandRole(v.operands[o]) === ROLE.DEF) {
        this.#cells.set(cell(o), v.op[i] === TOY.CONST ? hash : mix(hash, o - first));
      }
    }
    if (v.op[i] >= TOY.CALL) this.#trace = mix(this.#trace, hash);
    return hash & 0x7fffffff;
  }

  /** Puts noise into clobbered registers and temporaries. */
  #destroy(i: number, first: number, end: number): void {
    const v = this.#v, a = this.#a!, set = v.clobbers[i];
    for (let r = 0; r < 64 && set !== 0; r++) {
      const mask = r < 32 ? v.clobberGeneral[set] : v.clobberVector[set];
      if (((mask >>> (r & 31)) & 1) !== 0) this.#cells.set(r, this.#noise++);
    }
    for (let o = first; o < end; o++) {
      if (operandRole(v.operands[o]) === ROLE.TEMP) this.#cells.set(a.location[o], this.#noise++);
    }
  }
}
