/**
 * Random VCode for tests of register allocators: structured control flow (if, loop, forward exits, switch) over a set
 * of mutable variables brought into SSA form with block parameters, and instructions that use every constraint and role
 * there is. The same seed and options give the same function. Not a part of the compiler.
 */
import { TY } from "../../ir/types.ts";
import type { RegisterFile } from "../target.ts";
import { CONSTRAINT, operandWord, ROLE, VCode } from "../vcode.ts";

/** Operations of the toy target; interpret_vcode.ts defines them. */
export const TOY = { ENTRY: 0, CONST: 1, OP: 2, CALL: 3, EFFECT: 4, JUMP: 5, BRANCH: 6, SWITCH: 7, RETURN: 8 } as const;

/** A register file with the first `general` and `vector` registers of the two banks. */
export function toyRegisters(general: number, vector: number): RegisterFile {
  const names: string[] = [];
  for (let r = 0; r < 64; r++) names.push(r < 32 ? `g${r}` : `x${r - 32}`);
  return {
    general: general >= 32 ? -1 : (1 << general) - 1,
    vector: vector >= 32 ? -1 : (1 << vector) - 1,
    generalOrder: Array.from({ length: general }, (_, r) => general - 1 - r),
    vectorOrder: Array.from({ length: vector }, (_, r) => 32 + r),
    names,
    halfSlots: true,
  };
}

/** A small deterministic generator of random numbers (xorshift). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = Math.imul(seed + 1, 0x9e3779b1) | 1;
    for (let j = 0; j < 4; j++) this.next();
  }

  next(): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x;
    return x >>> 0;
  }

  below(n: number): number {
    return this.next() % n;
  }

  chance(percent: number): boolean {
    return this.below(100) < percent;
  }
}

export interface ToyShape {
  /** Allocatable registers per bank. */
  general: number;
  vector: number;
  variables: number;
  /** Approximate number of statements. */
  statements: number;
  /** Percentage of statements that are calls. */
  calls: number;
}

interface Label {
  edges: { edge: number; environment: number[] }[];
}

const TYPES = [TY.I32, TY.I64, TY.I32, TY.F64, TY.F32, TY.V128, TY.REF];

function isVectorType(ty: number): boolean {
  return ty === TY.F32 || ty === TY.F64 || ty === TY.V128;
}

/** Builds a random function. */
export function randomVCode(seed: number, shape: ToyShape): VCode {
  return new Generator(seed, shape).generate();
}

class Generator {
  readonly #random: Random;
  readonly #shape: ToyShape;
  readonly #v = new VCode();
  readonly #types: number[] = [];
  /** Current value per variable, and whether the innermost loop lets it change. */
  #environment: number[] = [];
  #assignable: boolean[] = [];
  /** Other values in scope. */
  #values: number[] = [];
  #budget: number;
  #depth = 0;
  #reachable = true;
  readonly #labels: Label[] = [];

  constructor(seed: number, shape: ToyShape) {
    this.#random = new Random(seed);
    this.#shape = shape;
    this.#budget = shape.statements;
  }

  generate(): VCode {
    const v = this.#v, random = this.#random;
    for (let x = 0; x < this.#shape.variables; x++) this.#types.push(TYPES[random.below(TYPES.length)]);
    this.#startBlock([]);
    v.beginInstruction(TOY.ENTRY, 0, 0, 0);
    let general = 0, vector = 0;
    const later: number[] = [];
    for (let x = 0; x < this.#types.length; x++) {
      const value = v.newVreg(this.#types[x]), isVector = isVectorType(this.#types[x]);
      this.#environment.push(value);
      this.#assignable.push(true);
      const r = isVector ? 32 + vector++ : general++;
      const limit = isVector ? this.#shape.vector : this.#shape.general;
      if (r < 64 && (r & 31) < limit && (r >= 32) === isVector) {
        v.operand(operandWord(value, ROLE.DEF, CONSTRAINT.FIXED, r));
        v.vregHint[value] = r + 1;
      } else later.push(value);
    }
    v.endInstruction();
    for (const value of later) this.#define(TOY.OP, value, false);
    this.#sequence(this.#budget);
    if (this.#reachable) this.#return();
    v.blockFirst[v.blockCount] = v.count;
    for (let k = 0; k < v.blockCount; k++) v.layout[k] = k;
    return v;
  }

  #startBlock(paramTypes: number[]): number[] {
    const v = this.#v, k = v.blockCount;
    v.ensureGraph(k + 1, v.edgeCount);
    v.blockFirst[k] = v.count;
    v.blockDepth[k] = this.#depth;
    v.blockFlags[k] = this.#random.chance(5) ? 2 : 0;
    v.paramCount[k] = paramTypes.length;
    v.paramStart[k] = v.allocPool(paramTypes.length);
    v.succCount[k] = 0;
    v.succStart[k] = v.succTotal;
    const params = paramTypes.map((ty) => v.newVreg(ty));
    for (let j = 0; j < params.length; j++) v.pool[v.paramStart[k] + j] = params[j];
    v.blockCount++;
    v.blockFirst[k + 1] = v.count;
    this.#reachable = true;
    return params;
  }

  /** An edge out of the current block; its target and arguments come later. */
  #edge(): number {
    const v = this.#v, e = v.edgeCount++;
    v.ensureGraph(v.blockCount, v.edgeCount);
    v.edgeFrom[e] = v.blockCount - 1;
    v.argStart[e] = 0;
    v.succ[v.succTotal++] = e;
    v.succCount[v.blockCount - 1]++;
    return e;
  }

  #jumpTo(label: Label): void {
    label.edges.push({ edge: this.#edge(), environment: [...this.#environment] });
  }

  #instruction(op: number, words: number[], clobbers = 0): number {
    const v = this.#v, i = v.beginInstruction(op, this.#random.below(1000), 0, 0);
    for (const word of words) v.operand(word);
    v.clobbers[i] = clobbers;
    v.endInstruction();
    return i;
  }

  #define(op: number, value: number, repeatable: boolean): void {
    const i = this.#instruction(op, [operandWord(value, ROLE.DEF, CONSTRAINT.REG)]);
    if (repeatable) this.#v.vregRemat[value] = i + 1;
  }

  /** Starts the block of a label: variables that differ between its edges become parameters. */
  #place(label: Label): void {
    if (label.edges.length === 0) {
      this.#reachable = false;
      return;
    }
    const v = this.#v, first = label.edges[0].environment, merged: number[] = [];
    for (let x = 0; x < first.length; x++) {
      if (label.edges.some((e) => e.environment[x] !== first[x])) merged.push(x);
    }
    const params = this.#startBlock(merged.map((x) => this.#types[x]));
    this.#environment = [...first];
    for (const { edge, environment } of label.edges) {
      v.edgeTo[edge] = v.blockCount - 1;
      v.argStart[edge] = v.allocPool(merged.length);
      for (let j = 0; j < merged.length; j++) v.pool[v.argStart[edge] + j] = environment[merged[j]];
    }
    for (let j = 0; j < merged.length; j++) this.#environment[merged[j]] = params[j];
  }

  /** A value in scope of the bank, or a new constant. */
  #value(vector: boolean, ty = 0): number {
    const v = this.#v, random = this.#random;
    for (let tries = 0; tries < 4; tries++) {
      const local = this.#values.length > 0 && random.chance(40);
      const value = local
        ? this.#values[this.#values.length - 1 - random.below(Math.min(12, this.#values.length))]
        : this.#environment[random.below(this.#environment.length)];
      const own = v.vregTy[value];
      if (isVectorType(own) === vector && (ty === 0 || own === ty)) return value;
    }
    const value = v.newVreg(ty !== 0 ? ty : vector ? TY.F64 : TY.I32);
    this.#define(TOY.CONST, value, random.chance(80));
    this.#values.push(value);
    return value;
  }

  /** Assigns a new value to a mutable variable, or leaves it unused. */
  #result(value: number): void {
    const random = this.#random;
    for (let tries = 0; tries < 3; tries++) {
      const x = random.below(this.#types.length);
      if (this.#assignable[x] && this.#types[x] === this.#v.vregTy[value]) {
        this.#environment[x] = value;
        return;
      }
    }
    this.#values.push(value);
  }

  #sequence(statements: number): void {
    for (let s = 0; s < statements && this.#reachable && this.#budget > 0; s++) this.#statement();
  }

  #statement(): void {
    const random = this.#random, nested = this.#depth < 6;
    this.#budget--;
    const pick = random.below(100);
    if (pick < this.#shape.calls) this.#call();
    else if (nested && pick > 95) this.#loop();
    else if (nested && pick > 88) this.#conditional();
    else if (nested && pick > 84) this.#block();
    else if (nested && pick > 82) this.#switch();
    else if (pick > 80 && this.#labels.length > 0) this.#exit();
    else this.#operation();
  }

  #operation(): void {
    const random = this.#random, vector = random.chance(35), v = this.#v;
    const bank = vector ? 32 : 0, size = vector ? this.#shape.vector : this.#shape.general;
    const a = this.#value(vector), b = this.#value(vector), ty = v.vregTy[a];
    const loose = (value: number, role: number = ROLE.USE) =>
      operandWord(value, role, random.chance(40) ? CONSTRAINT.ANY : CONSTRAINT.REG);
    const result = v.newVreg(ty);
    const words: number[] = [];
    let clobbers = 0;
    switch (random.below(9)) {
      case 0: // def = a op b
        words.push(operandWord(result, ROLE.DEF, CONSTRAINT.REG), operandWord(a, ROLE.USE, CONSTRAINT.REG), loose(b));
        break;
      case 1:
      case 2: // a op= b
        words.push(operandWord(a, ROLE.USE, CONSTRAINT.REG), loose(b));
        words.push(operandWord(result, ROLE.DEF, CONSTRAINT.REUSE, 0));
        break;
      case 3: // a op= fixed register 1
        words.push(operandWord(result, ROLE.DEF, CONSTRAINT.REUSE, 1));
        words.push(operandWord(a, ROLE.USE, CONSTRAINT.REG), operandWord(b, ROLE.USE, CONSTRAINT.FIXED, bank + 1));
        break;
      case 4: // like a division: register 0 in and out, another destroyed
        words.push(operandWord(result, ROLE.DEF, CONSTRAINT.FIXED, bank));
        words.push(operandWord(a, ROLE.USE, CONSTRAINT.FIXED, bank), loose(b, size > 2 ? ROLE.LATE_USE : ROLE.USE));
        if (random.chance(50)) words.push(operandWord(v.newVreg(ty), ROLE.TEMP, CONSTRAINT.FIXED, bank + 1));
        else clobbers = v.addClobbers(vector ? 0 : 2, vector ? 2 : 0);
        break;
      case 5: // with a temporary
        words.push(operandWord(result, ROLE.DEF, CONSTRAINT.REG), operandWord(a, ROLE.USE, CONSTRAINT.REG));
        words.push(operandWord(v.newVreg(ty), ROLE.TEMP, CONSTRAINT.REG));
        break;
      case 6: // two results, one of them tied
        if (size < 4) {
          words.push(operandWord(result, ROLE.DEF, CONSTRAINT.ANY), operandWord(a, ROLE.USE, CONSTRAINT.REG));
          break;
        }
        words.push(operandWord(a, ROLE.USE, CONSTRAINT.REG), operandWord(b, ROLE.LATE_USE, CONSTRAINT.REG));
        words.push(operandWord(result, ROLE.DEF, CONSTRAINT.REUSE, 0));
        words.push(operandWord(this.#second(ty), ROLE.DEF, CONSTRAINT.REG));
        break;
      case 7: { // a constant
        this.#define(TOY.CONST, result, random.chance(80));
        this.#result(result);
        return;
      }
      default: // an effect
        words.push(loose(a), loose(b));
        if (random.chance(30)) words.push(loose(this.#value(!vector)));
        this.#instruction(TOY.EFFECT, words);
        return;
    }
    this.#instruction(TOY.OP, words, clobbers);
    this.#result(result);
  }

  #second(ty: number): number {
    const value = this.#v.newVreg(ty);
    this.#values.push(value);
    return value;
  }

  #call(): void {
    const random = this.#random, v = this.#v, words: number[] = [];
    const generalArgs = random.below(Math.min(6, this.#shape.general) + 1);
    const vectorArgs = random.below(Math.min(4, this.#shape.vector) + 1);
    for (let r = 0; r < generalArgs; r++) words.push(operandWord(this.#value(false), ROLE.USE, CONSTRAINT.FIXED, r));
    for (let r = 0; r < vectorArgs; r++) words.push(operandWord(this.#value(true), ROLE.USE, CONSTRAINT.FIXED, 32 + r));
    if (generalArgs < this.#shape.general && random.chance(30)) {
      words.push(operandWord(this.#value(false), ROLE.USE, random.chance(50) ? CONSTRAINT.REG : CONSTRAINT.ANY));
    }
    const results: number[] = [];
    if (random.chance(70)) results.push(v.newVreg(TY.I32));
    if (random.chance(30)) results.push(v.newVreg(TY.F64));
    for (const value of results) {
      words.unshift(operandWord(value, ROLE.DEF, CONSTRAINT.FIXED, v.vregTy[value] === TY.F64 ? 32 : 0));
    }
    const everything = random.chance(70);
    const general = everything ? -1 : random.next(), vector = everything ? -1 : random.next();
    // The registers of results may be left out of the mask.
    const named = random.chance(50);
    const intResult = results.some((x) => v.vregTy[x] === TY.I32),
      floatResult = results.some((x) => v.vregTy[x] === TY.F64);
    const clobbers = v.addClobbers(
      named && intResult ? general & ~1 : general,
      named && floatResult ? vector & ~1 : vector,
    );
    this.#instruction(TOY.CALL, words, clobbers);
    v.hasCalls = true;
    for (const value of results) this.#result(value);
  }

  #condition(): number {
    return operandWord(this.#value(false, TY.I32), ROLE.USE, this.#random.chance(30) ? CONSTRAINT.ANY : CONSTRAINT.REG);
  }

  #scoped(body: () => unknown): void {
    const values = this.#values.length;
    body();
    this.#values.length = values;
  }

  #jump(label: Label): void {
    if (!this.#reachable) return;
    this.#instruction(TOY.JUMP, []);
    this.#jumpTo(label);
    this.#reachable = false;
  }

  #conditional(): void {
    const join: Label = { edges: [] }, other: Label = { edges: [] }, then: Label = { edges: [] };
    const alternative = this.#random.chance(60);
    this.#instruction(TOY.BRANCH, [this.#condition()]);
    this.#jumpTo(then);
    this.#jumpTo(alternative ? other : join);
    this.#place(then);
    this.#scoped(() => this.#sequence(1 + this.#random.below(6)));
    this.#jump(join);
    if (alternative) {
      this.#place(other);
      this.#scoped(() => this.#sequence(1 + this.#random.below(6)));
      this.#jump(join);
    }
    this.#place(join);
  }

  #block(): void {
    const end: Label = { edges: [] };
    this.#labels.push(end);
    this.#scoped(() => this.#sequence(2 + this.#random.below(8)));
    this.#labels.pop();
    this.#jump(end);
    this.#place(end);
  }

  /** Leaves one of the blocks around, perhaps under a condition. */
  #exit(): void {
    const label = this.#labels[this.#random.below(this.#labels.length)];
    if (this.#random.chance(20)) {
      this.#jump(label);
      return;
    }
    const next: Label = { edges: [] };
    this.#instruction(TOY.BRANCH, [this.#condition()]);
    this.#jumpTo(label);
    this.#jumpTo(next);
    this.#place(next);
  }

  #switch(): void {
    const random = this.#random, cases: Label[] = [];
    for (let j = 2 + random.below(5); j > 0; j--) cases.push({ edges: [] });
    const end: Label = { edges: [] }, v = this.#v;
    this.#instruction(TOY.SWITCH, [this.#condition(), operandWord(v.newVreg(TY.I64), ROLE.TEMP, CONSTRAINT.REG)]);
    for (const label of cases) this.#jumpTo(label);
    for (const label of cases) {
      // Sometimes the case before falls through into this one.
      if (this.#reachable && random.chance(30)) this.#jump(label);
      else if (this.#reachable && label !== cases[0]) this.#jump(end);
      this.#place(label);
      this.#scoped(() => this.#sequence(1 + random.below(4)));
    }
    this.#jump(end);
    this.#place(end);
  }

  #loop(): void {
    const random = this.#random, v = this.#v, outer = this.#assignable, end: Label = { edges: [] };
    const carried: number[] = [];
    for (let x = 0; x < this.#types.length; x++) if (outer[x] && random.chance(50)) carried.push(x);
    const bind = (edge: number, to: number) => {
      v.edgeTo[edge] = to;
      v.argStart[edge] = v.allocPool(carried.length);
      for (let j = 0; j < carried.length; j++) v.pool[v.argStart[edge] + j] = this.#environment[carried[j]];
    };
    this.#instruction(TOY.JUMP, []);
    const entry = this.#edge(), header = v.blockCount;
    bind(entry, header);
    this.#depth++;
    const params = this.#startBlock(carried.map((x) => this.#types[x]));
    v.blockFlags[header] |= 1;
    for (let j = 0; j < carried.length; j++) this.#environment[carried[j]] = params[j];
    this.#assignable = outer.map((_, x) => carried.includes(x));
    this.#labels.push(end);
    this.#scoped(() => this.#sequence(2 + random.below(10)));
    this.#labels.pop();
    if (this.#reachable) {
      if (random.chance(85)) {
        this.#scoped(() => this.#instruction(TOY.BRANCH, [this.#condition()]));
        bind(this.#edge(), header);
        this.#jumpTo(end);
        this.#reachable = false;
      } else {
        this.#instruction(TOY.JUMP, []);
        bind(this.#edge(), header);
        this.#reachable = false;
      }
    }
    this.#assignable = outer;
    this.#depth--;
    this.#place(end);
  }

  #return(): void {
    const words: number[] = [];
    let general = 0, vector = 0;
    for (const value of this.#environment) {
      const isVector = isVectorType(this.#v.vregTy[value]);
      if (isVector ? vector >= Math.min(4, this.#shape.vector) : general >= Math.min(4, this.#shape.general)) continue;
      words.push(operandWord(value, ROLE.USE, CONSTRAINT.FIXED, isVector ? 32 + vector++ : general++));
    }
    this.#instruction(TOY.RETURN, words);
  }
}
