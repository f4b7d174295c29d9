/**
 * Builds VCode by hand for tests: blocks with parameters, instructions by operand words, edges with arguments. Not a
 * part of the compiler.
 */
import { TOY } from "./random_vcode.ts";
import { CONSTRAINT, operandWord, ROLE, VCode } from "../vcode.ts";

/** Operand words by role and constraint. */
export const word = {
  def: (x: number) => operandWord(x, ROLE.DEF, CONSTRAINT.REG),
  defIn: (x: number, r: number) => operandWord(x, ROLE.DEF, CONSTRAINT.FIXED, r),
  reuse: (x: number, operand: number) => operandWord(x, ROLE.DEF, CONSTRAINT.REUSE, operand),
  use: (x: number) => operandWord(x, ROLE.USE, CONSTRAINT.REG),
  any: (x: number) => operandWord(x, ROLE.USE, CONSTRAINT.ANY),
  useIn: (x: number, r: number) => operandWord(x, ROLE.USE, CONSTRAINT.FIXED, r),
  temp: (x: number) => operandWord(x, ROLE.TEMP, CONSTRAINT.REG),
};

export class ToyBuilder {
  readonly v: VCode = new VCode();

  vreg(ty: number): number {
    return this.v.newVreg(ty);
  }

  vregs(ty: number, n: number): number[] {
    return Array.from({ length: n }, () => this.v.newVreg(ty));
  }

  /** Begins the next block. */
  block(depth = 0, params: readonly number[] = []): void {
    const v = this.v, k = v.blockCount++;
    v.ensureGraph(v.blockCount, v.edgeCount + 1);
    v.blockFirst[k] = v.count;
    v.blockDepth[k] = depth;
    v.blockFlags[k] = 0;
    v.layout[k] = k;
    v.paramCount[k] = params.length;
    v.paramStart[k] = v.allocPool(params.length);
    for (let j = 0; j < params.length; j++) v.pool[v.paramStart[k] + j] = params[j];
    v.succStart[k] = v.succTotal;
    v.succCount[k] = 0;
  }

  /** Adds an instruction; returns its index. */
  add(op: number, words: readonly number[], clobbers = 0): number {
    const v = this.v, i = v.beginInstruction(op, 0, 0, 0);
    for (const w of words) v.operand(w);
    v.clobbers[i] = clobbers;
    v.endInstruction();
    return i;
  }

  /** A repeatable constant. */
  constant(ty: number): number {
    const x = this.vreg(ty);
    this.v.vregRemat[x] = this.add(TOY.CONST, [word.def(x)]) + 1;
    return x;
  }

  /** A call that destroys all registers. */
  call(words: readonly number[]): void {
    this.v.hasCalls = true;
    this.add(TOY.CALL, words, this.v.addClobbers(-1, -1));
  }

  /** An edge from the current block. */
  edge(to: number, args: readonly number[] = []): void {
    const v = this.v, e = v.edgeCount++;
    v.ensureGraph(v.blockCount, v.edgeCount + 1);
    v.edgeFrom[e] = v.blockCount - 1;
    v.edgeTo[e] = to;
    v.argStart[e] = v.allocPool(args.length);
    for (let j = 0; j < args.length; j++) v.pool[v.argStart[e] + j] = args[j];
    v.succ[v.succTotal++] = e;
    v.succCount[v.blockCount - 1]++;
  }

  jump(to: number, args: readonly number[] = []): void {
    this.add(TOY.JUMP, []);
    this.edge(to, args);
  }

  /** Ends the current block with a test of x. */
  branch(
    x: number,
    then: number,
    otherwise: number,
    thenArgs: readonly number[] = [],
    otherArgs: readonly number[] = [],
  ): void {
    this.add(TOY.BRANCH, [word.use(x)]);
    this.edge(then, thenArgs);
    this.edge(otherwise, otherArgs);
  }

  done(): VCode {
    this.v.blockFirst[this.v.blockCount] = this.v.count;
    return this.v;
  }
}
