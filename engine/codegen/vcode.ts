/**
 * Machine instructions over virtual registers, as columns: the output of selection and the input of the register
 * allocator. Target-neutral: it describes operands and their constraints, not the operations.
 *
 *     instruction i:  op[i] (row of the target)  imm disp aux (the target's own)  pos site (for traps and stack traces)
 *                     operands[firstOperand[i] … firstOperand[i + 1])   packed operand words
 *                     clobbers[i]: index into the clobber table (registers destroyed besides the defs), 0 none
 *     block k:        instructions [blockFirst[k], blockFirst[k + 1]); same block numbers as the IrFunction, same order
 *                     (structural reverse postorder); parameters are vregs pool[paramStart[k] … + paramCount[k])
 *     edge e:         same edge numbers as the IrFunction; passes vregs pool[argStart[e] … + paramCount[to])
 *
 * Only a block's last instruction leaves the block. The block's edges are in successor order (succStart, succCount).
 * The last instruction reads its operands before any move of an edge.
 *
 * Operand words: bits 0-20 vreg · 21-22 role · 23-25 constraint · 26-31 fixed register or reused operand index.
 * Physical registers: 0-31 general, 32-63 vector.
 */

import { grown } from "../base/columns.ts";
import { UnsupportedError } from "../base/errors.ts";

/** Roles of an operand. */
export const ROLE = {
  /** Read at the start of the instruction: its register may be reused for a def. */
  USE: 0,
  /** Written at the end. */
  DEF: 1,
  /** A scratch register for the duration of the instruction: differs from all uses and defs. */
  TEMP: 2,
  /** Read late: must not share a register with any def (but may with other uses of the same vreg). */
  LATE_USE: 3,
} as const;

/** Constraints of an operand. */
export const CONSTRAINT = {
  /** Register or stack slot, as the allocator likes: for operands that the target can also encode as memory. */
  ANY: 0,
  /** Any register of the vreg's bank. */
  REG: 1,
  /** The physical register in bits 26-31. */
  FIXED: 2,
  /**
   * DEF only: the same register as the operand (a USE with constraint REG) whose index within the instruction is in
   * bits 26-31.
   */
  REUSE: 3,
} as const;

const VREG_BITS = 21;
export const VREG_MASK: number = (1 << VREG_BITS) - 1;
/** The maximum number of virtual registers of one function, an implementation limit. */
export const MAX_VREGS: number = VREG_MASK;

/** Packs an operand word. `fixed` is a physical register (FIXED) or an operand index (REUSE). */
export function operandWord(vreg: number, role: number, constraint: number, fixed = 0): number {
  return vreg | (role << 21) | (constraint << 23) | (fixed << 26);
}

/** vreg, role, constraint and fixed part of an operand word. */
export function operandVreg(word: number): number {
  return word & VREG_MASK;
}
export function operandRole(word: number): number {
  return (word >>> 21) & 3;
}
export function operandConstraint(word: number): number {
  return (word >>> 23) & 7;
}
export function operandFixed(word: number): number {
  return word >>> 26;
}

/** VCode of one function; reused for every function, like IrFunction. */
export class VCode {
  op: Uint16Array = new Uint16Array(1024);
  imm: Int32Array = new Int32Array(1024);
  disp: Int32Array = new Int32Array(1024);
  aux: Int32Array = new Int32Array(1024);
  pos: Int32Array = new Int32Array(1024);
  site: Int32Array = new Int32Array(1024);
  clobbers: Uint16Array = new Uint16Array(1024);
  firstOperand: Int32Array = new Int32Array(1025);
  count = 0;

  operands: Int32Array = new Int32Array(4096);
  operandCount = 0;

  /** Type (ir/types.ts: TY) per vreg; vreg 0 is unused. */
  vregTy: Uint8Array = new Uint8Array(1024);
  /**
   * The instruction that defines the vreg, plus one, if it can be rematerialized in place of a reload (no uses, no
   * effects, one def, no clobbers: constants, addresses in the context); 0 = none.
   */
  vregRemat: Int32Array = new Int32Array(1024);
  /** Preferred physical register plus one, 0 = none (for example a parameter's incoming register). */
  vregHint: Uint8Array = new Uint8Array(1024);
  vregCount = 1;

  blockFirst: Int32Array = new Int32Array(65);
  blockDepth: Int32Array = new Int32Array(64);
  blockFlags: Int32Array = new Int32Array(64);
  paramStart: Int32Array = new Int32Array(64);
  paramCount: Int32Array = new Int32Array(64);
  /** Edges leaving block k: succ[succStart[k] … + succCount[k]). */
  succStart: Int32Array = new Int32Array(64);
  succCount: Int32Array = new Int32Array(64);
  succ: Int32Array = new Int32Array(128);
  succTotal = 0;
  blockCount = 0;
  /** Emission order of the blocks. */
  layout: Int32Array = new Int32Array(64);

  edgeFrom: Int32Array = new Int32Array(128);
  edgeTo: Int32Array = new Int32Array(128);
  argStart: Int32Array = new Int32Array(128);
  edgeCount = 0;

  pool: Int32Array = new Int32Array(256);
  poolCount = 0;

  /** Vector constants that instructions refer to by index: four words each, all different. */
  vectors: Int32Array = new Int32Array(64);
  vectorCount = 0;

  /** Clobber table: bit masks of general and vector registers; entry 0 is empty. */
  clobberGeneral: Int32Array = new Int32Array(64);
  clobberVector: Int32Array = new Int32Array(64);
  clobberCount = 1;

  /** Whether the function calls, so that it needs a frame and its return address is live. */
  hasCalls = false;

  /** Empties all columns, keeping their capacity. */
  reset(): void {
    this.count = 0;
    this.operandCount = 0;
    this.firstOperand[0] = 0;
    this.vregCount = 1;
    this.blockCount = 0;
    this.blockFirst[0] = 0;
    this.succTotal = 0;
    this.edgeCount = 0;
    this.poolCount = 0;
    this.vectorCount = 0;
    this.clobberCount = 1;
    this.hasCalls = false;
  }

  /** A new virtual register of type `ty`. */
  newVreg(ty: number): number {
    const v = this.vregCount++;
    if (v >= this.vregTy.length) {
      // Capacities are powers of two, so the first number that operand words cannot hold needs a new capacity.
      if (v > MAX_VREGS) {
        throw new UnsupportedError("function size", "a function is too large to compile: it needs too many registers");
      }
      const size = v * 2;
      this.vregTy = grown(this.vregTy, size);
      this.vregHint = grown(this.vregHint, size);
      this.vregRemat = grown(this.vregRemat, size);
    }
    this.vregTy[v] = ty;
    this.vregRemat[v] = 0;
    this.vregHint[v] = 0;
    return v;
  }

  /** Begins an instruction; its operands follow by `operand`, and `endInstruction` closes it. Returns its index. */
  beginInstruction(op: number, imm: number, disp: number, aux: number): number {
    const i = this.count;
    if (i + 1 >= this.op.length) this.#growInstructions();
    this.op[i] = op;
    this.imm[i] = imm;
    this.disp[i] = disp;
    this.aux[i] = aux;
    this.pos[i] = 0;
    this.site[i] = 0;
    this.clobbers[i] = 0;
    return i;
  }

  /** Adds an operand word to the instruction begun last. */
  operand(word: number): void {
    if (this.operandCount >= this.operands.length) this.operands = grown(this.operands, this.operandCount * 2);
    this.operands[this.operandCount++] = word;
  }

  endInstruction(): void {
    this.firstOperand[++this.count] = this.operandCount;
  }

  /** Adds a clobber set and returns its index for `clobbers`. */
  addClobbers(general: number, vector: number): number {
    for (let k = 1; k < this.clobberCount; k++) {
      if (this.clobberGeneral[k] === general && this.clobberVector[k] === vector) return k;
    }
    const k = this.clobberCount++;
    if (k > 0xffff) {
      throw new UnsupportedError(
        "function size",
        "a function has more than 65,535 distinct sets of clobbered registers",
      );
    }
    if (k >= this.clobberGeneral.length) {
      this.clobberGeneral = grown(this.clobberGeneral, k * 2);
      this.clobberVector = grown(this.clobberVector, k * 2);
    }
    this.clobberGeneral[k] = general;
    this.clobberVector[k] = vector;
    return k;
  }

  /** Index of the vector constant of these words. Only the latest are searched for an equal one. */
  addVector(w0: number, w1: number, w2: number, w3: number): number {
    const known = this.vectors;
    const n = this.vectorCount;
    for (let k = 4 * Math.max(0, n - 64); k < 4 * n; k += 4) {
      if (known[k] === w0 && known[k + 1] === w1 && known[k + 2] === w2 && known[k + 3] === w3) return k >> 2;
    }
    if (4 * n + 4 > known.length) this.vectors = grown(known, known.length * 2);
    this.vectors[4 * n] = w0;
    this.vectors[4 * n + 1] = w1;
    this.vectors[4 * n + 2] = w2;
    this.vectors[4 * n + 3] = w3;
    return this.vectorCount++;
  }

  /** Makes room for `blocks` blocks and `edges` edges, before the selector fills their columns by index. */
  ensureGraph(blocks: number, edges: number): void {
    if (blocks >= this.blockDepth.length) {
      const size = blocks * 2;
      this.blockFirst = grown(this.blockFirst, size + 1);
      this.blockDepth = grown(this.blockDepth, size);
      this.blockFlags = grown(this.blockFlags, size);
      this.paramStart = grown(this.paramStart, size);
      this.paramCount = grown(this.paramCount, size);
      this.succStart = grown(this.succStart, size);
      this.succCount = grown(this.succCount, size);
      this.layout = grown(this.layout, size);
    }
    if (edges >= this.edgeFrom.length) {
      const size = edges * 2;
      this.edgeFrom = grown(this.edgeFrom, size);
      this.edgeTo = grown(this.edgeTo, size);
      this.argStart = grown(this.argStart, size);
      this.succ = grown(this.succ, size);
    }
  }

  /** Reserves `n` pool entries and returns the first. */
  allocPool(n: number): number {
    const first = this.poolCount;
    this.poolCount = first + n;
    if (this.poolCount > this.pool.length) this.pool = grown(this.pool, this.poolCount * 2);
    return first;
  }

  #growInstructions(): void {
    const size = this.op.length * 2;
    this.op = grown(this.op, size);
    this.clobbers = grown(this.clobbers, size);
    this.imm = grown(this.imm, size);
    this.disp = grown(this.disp, size);
    this.aux = grown(this.aux, size);
    this.pos = grown(this.pos, size);
    this.site = grown(this.site, size);
    this.firstOperand = grown(this.firstOperand, size + 1);
  }
}
