/**
 * Decoded instructions of one function, as the rules read them: a few kinds with the same effect on general registers,
 * memory and control, for all architectures. In: marks of places where control may go; entries by a decoder. Out:
 * columns with one entry per instruction.
 *
 * Register columns hold locations of facts.ts. Those of x64 are the register numbers; those of arm64 are in
 * arm64_decoder.ts.
 */
import { grown } from "../base/columns.ts";

/** Groups of instructions with the same effect on general registers, memory and control. */
export const KIND = {
  NONE: 0,
  NOP: 1,
  MOVE: 2,
  /** The register becomes the immediate. */
  CONSTANT: 3,
  ZERO_EXTEND: 4,
  SIGN_EXTEND: 5,
  LEA: 6,
  /** Arithmetic with the operation in `sub` (ALU). */
  ALU: 7,
  COMPARE: 8,
  TEST: 9,
  /** `sub`: SHIFT. */
  SHIFT: 10,
  NOT: 11,
  NEGATE: 12,
  MULTIPLY: 13,
  /** The register becomes r/m × immediate. */
  MULTIPLY_CONSTANT: 14,
  /** Products and quotients of rdx:rax. */
  WIDE_ARITHMETIC: 15,
  SIGN_OF_RAX: 16,
  /** Scans and population counts. */
  COUNT_BITS: 17,
  SET_BIT: 18,
  EXCHANGE: 19,
  EXCHANGE_ADD: 20,
  COMPARE_EXCHANGE: 21,
  SET_CONDITION: 22,
  CONDITIONAL_MOVE: 23,
  BRANCH: 24,
  JUMP: 25,
  CALL: 26,
  JUMP_INDIRECT: 27,
  CALL_INDIRECT: 28,
  RETURN: 29,
  PUSH: 30,
  PUSH_MEMORY: 31,
  POP: 32,
  UNDEFINED: 33,
  /** Vector instructions: reads r/m, a vector register or memory, and writes a vector register or only flags. */
  VECTOR: 34,
  /** The same, and r/m is a general register or memory. */
  VECTOR_FROM_GENERAL: 35,
  /** Writes the general register ModRM.reg. */
  GENERAL_FROM_VECTOR: 36,
  /** Writes r/m, a vector register or memory. */
  VECTOR_STORE: 37,
  /** Writes r/m, a general register or memory. */
  VECTOR_TO_GENERAL: 38,
  /** Shifts of BMI2: the register becomes r/m, shifted. */
  SHIFT_TO: 39,
  /** Stores rax to rcx consecutive places from rdi on. */
  FILL: 40,
  /** Bytes that are not an instruction. */
  DATA: 41,
  /** 16 bits of the register, from bit 16 × `scale` on, become those of the immediate. */
  KEEP: 42,
  /** The register becomes bits of `rn`, moved: from bit `immediate` to bit `displacement`. `sub`: BIT_FIELD. */
  BIT_FIELD: 43,
  /** The register becomes a number about which nothing is known. */
  COMPUTE: 44,
  /** A compare that is made only if a condition holds. */
  CHAIN: 45,
  /** Accesses of registers `reg` and `rn` at consecutive places. `sub`: 1 for a load. */
  PAIR: 46,
  /** Stores `rn` if nothing else was stored since an exclusive load; the register becomes 0 or 1. */
  STORE_EXCLUSIVE: 47,
  /** Changes the flags only. */
  COMPARE_FLOATS: 48,
  /** A vector register becomes the value of a general register, `rn`, on x64 r/m, or of memory there. */
  VECTOR_MOVE: 49,
} as const;

/** Operations of KIND.ALU, by their number in the encoding of x64. AND_NOT: of the inverted operand. */
export const ALU = { ADD: 0, OR: 1, ADD_CARRY: 2, SUBTRACT_BORROW: 3, AND: 4, SUB: 5, XOR: 6, AND_NOT: 8 } as const;
/** Operations of KIND.BIT_FIELD. */
export const BIT_FIELD = { SIGNED: 0, INSERT: 1, UNSIGNED: 2 } as const;
/** Operations of KIND.SHIFT, by their number in the encoding. */
export const SHIFT = { ROL: 0, ROR: 1, SHL: 4, SHR: 5, SAR: 7 } as const;

/** A memory operand relative to the next instruction, as a base register. */
export const BASE_RIP = -2;
/** An absent register. */
export const NO_REGISTER = -1;

/** Order of the operands: bit 0: ModRM.rm is the destination. */
export const OPERANDS = { NONE: 0, RM: 1, R_M: 2, M_R: 3, OPCODE: 4 } as const;

/** How certain it is that an offset is the target of a branch, ascending. */
export const LEADS = {
  UNKNOWN: 0,
  /** A branch leads there whose bytes may be constants. */
  PERHAPS: 1,
  /** The tables of the image or a branch of reached code lead there. */
  SURE: 2,
} as const;

/** Instructions of one function as columns, reused from function to function. */
export class Instructions {
  count = 0;
  /** Offset of each instruction; one more entry has the end of the last. */
  at: Int32Array = new Int32Array(1024);
  kind: Uint8Array = new Uint8Array(1024);
  sub: Uint8Array = new Uint8Array(1024);
  /** Condition code of conditional instructions. */
  condition: Uint8Array = new Uint8Array(1024);
  operands: Uint8Array = new Uint8Array(1024);
  /** Bytes of the operation and of a memory operand; 0: no memory is accessed. */
  size: Uint8Array = new Uint8Array(1024);
  /** The operation has 64 bits: REX.W or VEX.W, or the width bit of arm64. */
  wide: Uint8Array = new Uint8Array(1024);
  locked: Uint8Array = new Uint8Array(1024);
  /** A REX prefix is present: byte registers 4-7 are spl … dil and not ah … bh. */
  rex: Uint8Array = new Uint8Array(1024);
  /** The destination, or the value that is stored. */
  reg: Int8Array = new Int8Array(1024);
  /** The first operand of instructions with three, NO_REGISTER on x64. */
  rn: Int8Array = new Int8Array(1024);
  /** ModRM.rm as a register, or the second operand; NO_REGISTER: memory or none. */
  rm: Int8Array = new Int8Array(1024);
  base: Int8Array = new Int8Array(1024);
  index: Int8Array = new Int8Array(1024);
  scale: Uint8Array = new Uint8Array(1024);
  displacement: Int32Array = new Int32Array(1024);
  /** 1: has an immediate. */
  hasImmediate: Uint8Array = new Uint8Array(1024);
  immediate: Int32Array = new Int32Array(1024);
  immediateHigh: Int32Array = new Int32Array(1024);
  /** Columns of arm64. The shift or extension of `rm`, by `scale`. */
  extend: Uint8Array = new Uint8Array(1024);
  setsFlags: Uint8Array = new Uint8Array(1024);
  /** Mask of the general registers that the instruction writes. */
  writes: Int32Array = new Int32Array(1024);

  /** By byte of the function: the certainty that control may go there (LEADS). */
  #targets: Uint8Array = new Uint8Array(1024);
  #start = 0;
  #end = 0;

  /** Begins a function at [start, end) of the image. */
  begin(start: number, end: number): void {
    this.#start = start;
    this.#end = end;
    if (end - start > this.#targets.length) this.#targets = new Uint8Array((end - start) * 2);
  }

  /** Control may go to `offset`, with this certainty. */
  mark(offset: number, certainty: number = LEADS.SURE): void {
    const at = offset - this.#start;
    if (at >= 0 && offset < this.#end && this.#targets[at] < certainty) this.#targets[at] = certainty;
  }

  /** How certain it is that `offset` is the target of a branch. */
  certaintyAt(offset: number): number {
    return this.#targets[offset - this.#start];
  }

  /** The first offset in [from, end) with more than this certainty, or `end`. */
  nextTarget(from: number, end: number, certainty: number): number {
    const start = this.#start;
    while (from < end && this.#targets[from - start] <= certainty) from++;
    return from;
  }

  /** Whether instruction `n` moves a register or a constant to the frame, at its displacement from `stackPointer`. */
  isSpill(n: number, stackPointer: number): boolean {
    const isMove = this.kind[n] === KIND.MOVE && this.operands[n] !== OPERANDS.R_M;
    return isMove && this.base[n] === stackPointer && this.index[n] < 0;
  }

  /** Forgets all marks. */
  clear(): void {
    this.#targets.fill(0, 0, this.#end - this.#start);
  }

  /** Makes room for one more instruction and its end. */
  reserve(): void {
    if (this.count + 2 < this.at.length) return;
    const size = this.at.length * 2;
    this.at = grown(this.at, size);
    this.kind = grown(this.kind, size);
    this.sub = grown(this.sub, size);
    this.condition = grown(this.condition, size);
    this.operands = grown(this.operands, size);
    this.size = grown(this.size, size);
    this.wide = grown(this.wide, size);
    this.locked = grown(this.locked, size);
    this.rex = grown(this.rex, size);
    this.reg = grown(this.reg, size);
    this.rn = grown(this.rn, size);
    this.rm = grown(this.rm, size);
    this.extend = grown(this.extend, size);
    this.setsFlags = grown(this.setsFlags, size);
    this.writes = grown(this.writes, size);
    this.base = grown(this.base, size);
    this.index = grown(this.index, size);
    this.scale = grown(this.scale, size);
    this.displacement = grown(this.displacement, size);
    this.hasImmediate = grown(this.hasImmediate, size);
    this.immediate = grown(this.immediate, size);
    this.immediateHigh = grown(this.immediateHigh, size);
  }
}
