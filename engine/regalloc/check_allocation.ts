/**
 * Checks an Allocation against its VCode, independently of the allocator (after regalloc2's checker): for every
 * location it tracks which virtual registers' values it is known to hold, through instructions, edits and edges, to a
 * fixpoint; then every operand must find its value, and every constraint must hold.
 *
 * Returns a list of problems, empty if the allocation is correct. Slow compared with the allocator: for tests, fuzzing
 * and a debugging option of the compiler.
 */
import { TY, TY_BANK, TY_BYTES } from "../ir/types.ts";
import type { Allocation } from "../codegen/allocation.ts";
import type { RegisterFile } from "../codegen/target.ts";
import {
  CONSTRAINT,
  operandConstraint,
  operandFixed,
  operandRole,
  operandVreg,
  ROLE,
  type VCode,
} from "../codegen/vcode.ts";

/** The maximum number of problems that are reported. */
const ENOUGH = 8;

/** Virtual registers per location; an absent location holds no known value. */
type State = Map<number, Set<number>>;

/** Lists the faults of `allocation`. */
export function checkAllocation(v: VCode, registers: RegisterFile, allocation: Allocation): string[] {
  return new Checker(v, registers, allocation).check();
}

class Checker {
  readonly #v: VCode;
  readonly #registers: RegisterFile;
  readonly #a: Allocation;
  readonly #problems: string[] = [];
  /** Report only in the last round, when the states at block starts are final. */
  #reporting = false;
  #where = "";
  /** First instruction edit per instruction, and the end. */
  #editFirst: Int32Array;
  #writtenGeneral = 0;
  #writtenVector = 0;

  constructor(v: VCode, registers: RegisterFile, allocation: Allocation) {
    this.#v = v;
    this.#registers = registers;
    this.#a = allocation;
    this.#editFirst = new Int32Array(v.count * 2 + 1);
  }

  check(): string[] {
    const v = this.#v;
    this.#reporting = true;
    this.#indexEdits();
    if (this.#problems.length > 0) return this.#problems;
    this.#reporting = false;
    const atStart: (State | undefined)[] = new Array(v.blockCount);
    atStart[0] = new Map();
    const pending = [0];
    while (pending.length > 0) {
      const k = pending.pop()!;
      const start = atStart[k];
      if (start === undefined) throw new Error(`block ${k} has no state`);
      this.#block(k, copyOf(start), (to, state) => {
        const old = atStart[to];
        if (old === undefined) {
          atStart[to] = state;
          pending.push(to);
        } else if (meet(old, state)) pending.push(to);
      });
    }
    this.#reporting = true;
    atStart.forEach((start, k) => start !== undefined && this.#block(k, copyOf(start), () => {}));
    if (
      (this.#writtenGeneral & ~this.#a.writtenGeneral) !== 0 || (this.#writtenVector & ~this.#a.writtenVector) !== 0
    ) {
      this.#where = "function";
      this.#problem("the masks of written registers are incomplete");
    }
    return this.#problems;
  }

  #problem(text: string): void {
    if (this.#reporting && this.#problems.length < ENOUGH) this.#problems.push(`${this.#where}: ${text}`);
  }

  #indexEdits(): void {
    const v = this.#v, a = this.#a, total = v.edgeCount > 0 ? a.edgeFirst[0] : a.editCount;
    let e = 0;
    for (let at = 0; at < v.count * 2; at++) {
      this.#editFirst[at] = e;
      while (e < total && a.editAt[e] === at) e++;
    }
    this.#editFirst[v.count * 2] = e;
    this.#where = "edits";
    if (e !== total) this.#problem(`out of order at edit ${e}`);
    for (let k = 0; k < v.edgeCount; k++) {
      if (a.edgeFirst[k] > a.edgeFirst[k + 1]) this.#problem(`edge ${k} has a negative number of edits`);
    }
    if (v.edgeCount > 0 && a.edgeFirst[v.edgeCount] !== a.editCount) this.#problem("some belong to no edge");
  }

  /** Runs block k from `state` and passes the state at its end to each successor. */
  #block(k: number, state: State, arrive: (to: number, state: State) => void): void {
    const v = this.#v, end = k + 1 < v.blockCount ? v.blockFirst[k + 1] : v.count;
    for (let i = v.blockFirst[k]; i < end; i++) {
      this.#where = `before instruction ${i}`;
      this.#edits(this.#editFirst[2 * i], this.#editFirst[2 * i + 1], state);
      this.#where = `instruction ${i}`;
      this.#instruction(i, state);
      this.#where = `after instruction ${i}`;
      if (i === end - 1 && this.#editFirst[2 * i + 1] !== this.#editFirst[2 * i + 2]) {
        this.#problem("edits after a block's end");
      }
      this.#edits(this.#editFirst[2 * i + 1], this.#editFirst[2 * i + 2], state);
    }
    for (let s = 0; s < v.succCount[k]; s++) {
      const e = v.succ[v.succStart[k] + s], after = copyOf(state);
      this.#where = `edge ${e}`;
      if (v.edgeFrom[e] !== k) this.#problem(`is not block ${k}'s`);
      this.#edits(this.#a.edgeFirst[e], this.#a.edgeFirst[e + 1], after);
      this.#passArguments(e, after);
      arrive(v.edgeTo[e], after);
    }
  }

  /** Renames arguments to parameters: where an argument is, there is now (also) its parameter. */
  #passArguments(e: number, state: State): void {
    const v = this.#v, to = v.edgeTo[e], n = v.paramCount[to];
    if (n === 0) return;
    const params = new Map<number, number[]>(), gone = new Set<number>();
    for (let j = 0; j < n; j++) {
      const a = v.pool[v.argStart[e] + j], p = v.pool[v.paramStart[to] + j];
      gone.add(p);
      const list = params.get(a);
      if (list === undefined) params.set(a, [p]);
      else list.push(p);
    }
    for (const [location, values] of state) {
      const next = new Set<number>();
      for (const x of values) {
        if (!gone.has(x)) next.add(x);
        for (const p of params.get(x) ?? []) next.add(p);
      }
      state.set(location, next);
    }
  }

  #edits(first: number, end: number, state: State): void {
    const a = this.#a, v = this.#v;
    for (let k = first; k < end; k++) {
      const to = a.editTo[k], from = a.editFrom[k], ty = a.editTy[k], remat = a.editRemat[k];
      this.#mayWrite(to, ty);
      if (remat > 0) {
        let result = 0;
        for (let o = v.firstOperand[remat - 1]; o < v.firstOperand[remat]; o++) result = operandVreg(v.operands[o]);
        if (v.vregRemat[result] !== remat) this.#problem(`cannot rematerialize instruction ${remat - 1}`);
        this.#write(state, to, new Set([result]), ty);
      } else if (remat === -1) {
        this.#mayWrite(from, ty);
        if (from < 0 || to < 0) this.#problem("exchanges a stack slot");
        const here = this.#read(state, from, ty), there = this.#read(state, to, ty);
        this.#write(state, to, here, ty);
        this.#write(state, from, there, ty);
      } else {
        if (from >= 0 && (from >= 32) !== (TY_BANK[ty] === 2)) {
          this.#problem(`moves from register ${from} with type ${ty}`);
        }
        if (from < 0 && TY_BYTES[ty] > 4 && a.isHalf(-1 - from)) this.#problem(`moves type ${ty} out of 4 bytes`);
        this.#write(state, to, this.#read(state, from, ty), ty);
      }
    }
  }

  /** Whether an edit may write this location with this type. */
  #mayWrite(location: number, ty: number): void {
    if (location >= 0) {
      const bank = location >= 32 ? this.#registers.vector : this.#registers.general;
      const fixed = ((bank >>> (location & 31)) & 1) !== 0 || this.#isFixedSomewhere(location);
      if (location > 63 || (location >= 32) !== (TY_BANK[ty] === 2) || !fixed) {
        this.#problem(`an edit of type ${ty} writes register ${location}`);
      }
      return;
    }
    const slot = -1 - location, cells = TY_BYTES[ty] === 16 ? 2 : 1;
    if (slot + cells > this.#a.slotCount) this.#problem(`slot ${slot} of ${this.#a.slotCount}`);
    if (cells === 2 && (this.#a.slotOffset(slot) & 15) !== 0) this.#problem(`slot ${slot} is not aligned`);
    if (TY_BYTES[ty] > 4 && this.#a.isHalf(slot)) this.#problem(`type ${ty} in slot ${slot}, of 4 bytes`);
    // A reference may be in another slot: parallel moves break cycles with a spare one.
    if (ty !== TY.REF && slot < this.#a.refSlotCount) {
      this.#problem(`type ${ty} in slot ${slot}, of references`);
    }
  }

  /** Whether an instruction names the register, which need not be allocatable then. */
  #isFixedSomewhere(location: number): boolean {
    const v = this.#v;
    for (let o = 0; o < v.operandCount; o++) {
      const word = v.operands[o];
      if (operandConstraint(word) === CONSTRAINT.FIXED && operandFixed(word) === location) return true;
    }
    return false;
  }

  /** The values that a move of type `ty` reads from a location: those that are no wider. */
  #read(state: State, location: number, ty: number): Set<number> {
    const result = new Set<number>();
    for (const x of state.get(location) ?? []) {
      const own = this.#v.vregTy[x];
      if (TY_BYTES[own] <= TY_BYTES[ty] && TY_BANK[own] === TY_BANK[ty]) result.add(x);
    }
    return result;
  }

  #write(state: State, location: number, values: Set<number>, ty: number): void {
    this.#destroy(state, location);
    if (location < 0) {
      // Location numbers of cells descend: a 16-byte value covers this slot and the next.
      if (TY_BYTES[ty] === 16) state.delete(location - 1);
    } else this.#noteWritten(location);
    state.set(location, values);
  }

  #noteWritten(location: number): void {
    if (location >= 32) this.#writtenVector |= 1 << (location - 32);
    else if (location >= 0) this.#writtenGeneral |= 1 << location;
  }

  /** Forgets a location, and a wide value that overlaps it. */
  #destroy(state: State, location: number): void {
    state.delete(location);
    if (location >= 0) return;
    const below = state.get(location + 1);
    if (location + 1 < 0 && below !== undefined) {
      for (const x of below) {
        if (TY_BYTES[this.#v.vregTy[x]] === 16) below.delete(x);
      }
    }
  }

  #instruction(i: number, state: State): void {
    const v = this.#v, a = this.#a, first = v.firstOperand[i], end = v.firstOperand[i + 1];
    if (a.skip[i] !== 0) {
      const result = operandVreg(v.operands[first]);
      if (v.vregRemat[result] !== i + 1) this.#problem("is skipped, but not rematerializable");
      for (const values of state.values()) values.delete(result);
      return;
    }
    const clobbers = v.clobbers[i], general = v.clobberGeneral[clobbers], vector = v.clobberVector[clobbers];
    for (let o = first; o < end; o++) this.#operand(i, o, state);
    for (let o = first; o < end; o++) {
      const role = operandRole(v.operands[o]), at = a.location[o];
      if (role === ROLE.TEMP) this.#apart(i, o, (other) => other !== o);
      if (role === ROLE.LATE_USE) this.#apart(i, o, (other) => operandRole(v.operands[other]) === ROLE.DEF);
      if (role === ROLE.DEF) this.#apart(i, o, (other) => other !== o && operandRole(v.operands[other]) === ROLE.DEF);
      const fixed = operandConstraint(v.operands[o]) === CONSTRAINT.FIXED;
      if (role !== ROLE.USE && at >= 0 && !fixed && (((at >= 32 ? vector : general) >>> (at & 31)) & 1) !== 0) {
        this.#problem(`operand ${o - first} is in register ${at}, which the instruction clobbers`);
      }
    }
    for (let r = 0; r < 32; r++) {
      if (((general >>> r) & 1) !== 0) state.delete(r);
      if (((vector >>> r) & 1) !== 0) state.delete(32 + r);
    }
    this.#writtenGeneral |= general;
    this.#writtenVector |= vector;
    for (let o = first; o < end; o++) {
      if (operandRole(v.operands[o]) !== ROLE.TEMP) continue;
      state.delete(a.location[o]);
      this.#noteWritten(a.location[o]);
    }
    for (let o = first; o < end; o++) {
      if (operandRole(v.operands[o]) !== ROLE.DEF) continue;
      const x = operandVreg(v.operands[o]);
      for (const values of state.values()) values.delete(x);
      this.#write(state, a.location[o], new Set([x]), v.vregTy[x]);
    }
  }

  /** One operand by itself: its value is there, and its constraint holds. */
  #operand(i: number, o: number, state: State): void {
    const v = this.#v, a = this.#a, word = v.operands[o], x = operandVreg(word), at = a.location[o];
    const role = operandRole(word),
      constraint = operandConstraint(word),
      name = `operand ${o - v.firstOperand[i]} (v${x})`;
    const vector = TY_BANK[v.vregTy[x]] === 2;
    if (constraint === CONSTRAINT.FIXED) {
      if (at !== operandFixed(word)) this.#problem(`${name} is in ${at}, not in register ${operandFixed(word)}`);
    } else if (at >= 0) {
      const bank = vector ? this.#registers.vector : this.#registers.general;
      if (at > 63 || (at >= 32) !== vector || ((bank >>> (at & 31)) & 1) === 0) {
        this.#problem(`${name} is in register ${at}`);
      }
    } else if (constraint !== CONSTRAINT.ANY) {
      this.#problem(`${name} is in a stack slot`);
    } else {
      this.#mayWrite(at, v.vregTy[x]);
    }
    if (constraint === CONSTRAINT.REUSE && a.location[v.firstOperand[i] + operandFixed(word)] !== at) {
      this.#problem(`${name} is not where the operand is that it reuses`);
    }
    if ((role === ROLE.USE || role === ROLE.LATE_USE) && state.get(at)?.has(x) !== true) {
      this.#problem(`${name} is not in ${at}, which holds {${[...(state.get(at) ?? [])]}}`);
    }
  }

  /** Operand o shares its location with none of the others that `which` selects. */
  #apart(i: number, o: number, which: (other: number) => boolean): void {
    const v = this.#v, a = this.#a, first = v.firstOperand[i];
    for (let other = first; other < v.firstOperand[i + 1]; other++) {
      if (which(other) && a.location[other] === a.location[o]) {
        this.#problem(`operands ${o - first} and ${other - first} share location ${a.location[o]}`);
      }
    }
  }
}

function copyOf(state: State): State {
  const copy: State = new Map();
  for (const [location, values] of state) if (values.size > 0) copy.set(location, new Set(values));
  return copy;
}

/** Intersects `state` with `other`; returns whether that changed it. */
function meet(state: State, other: State): boolean {
  let changed = false;
  for (const [location, values] of state) {
    const theirs = other.get(location);
    for (const x of values) {
      if (theirs?.has(x) === true) continue;
      values.delete(x);
      changed = true;
    }
    if (values.size === 0) state.delete(location);
  }
  return changed;
}
