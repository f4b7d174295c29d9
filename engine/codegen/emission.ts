/**
 * The code of one function during emission: the backend's bytes or words without (some of) its branches, plus fixups,
 * in ascending order of position, that describe the rest: labels, branches, alignment, sites, relocations.
 * branch_relaxation.ts turns both into final code with every branch in its shortest form.
 *
 * Labels: block k has label k; further ones come from `newLabel`. Out-of-line code (trap calls, slow paths) is queued
 * and emitted after the last block.
 */
import { grown } from "../base/columns.ts";
import type { Allocation } from "./allocation.ts";
import type { CodeBuffer } from "./code_buffer.ts";
import type { CodegenOptions } from "./codegen_options.ts";
import type { MachineCode } from "./machine_code.ts";
import type { VCode } from "./vcode.ts";

/**
 * Kinds of fixups that all backends have, with the meaning of x, y, z, w. Those up to ALIGN determine positions of
 * code.
 */
export const FIXUP = {
  /** x = label. */
  LABEL: 0,
  /** An unconditional branch at this position. x = label. */
  JUMP: 1,
  /** x = label; the rest is the backend's. */
  BRANCH: 2,
  /** x = boundary (a power of two), y = 1 to fill with no-operations, 0 with zeros. */
  ALIGN: 3,
  /** The 32-bit word at the fixup is label x minus label y. */
  DIFFERENCE: 4,
  /**
   * x = frame, y = position, z = inline site, w = 1 if a saved context is above the return address, + 2 × (label of the
   * landing pad + 1).
   */
  CALL_SITE: 5,
  /** x = frame, y = position, z = inline site, w = code. */
  TRAP_SITE: 6,
  /** x = relocation kind, y = target. */
  RELOCATION: 7,
  /** First of the backend's own. */
  OWN: 8,
} as const;

/** Kinds of out-of-line code. */
export const OUT_OF_LINE = {
  /** x = trap code; position of instruction `at`. */
  TRAP: 0,
  /** x = edge: its moves, then a jump to its target. */
  EDGE: 1,
  /** A call into another instance for instruction `at`; x = `landing` of the call, continues at label `back`. */
  CROSS_CALL: 2,
  CROSS_TAIL_CALL: 3,
  /** The prologue's stack check failed. */
  STACK: 4,
  /** x = edge: the landing pad of call `at`; the edge's moves, then a jump to its target. */
  LANDING: 5,
  /** Charge `at` finds too little fuel. */
  FUEL: 6,
  /** The end of access `at` is beyond the context's copy of a shared memory's length; continues at label `back`. */
  BOUNDS: 7,
  /** Allocation `at` finds no free slot; continues at label `back`. */
  ALLOCATION: 8,
  /** First of the backend's own. */
  OWN: 9,
} as const;

/** State of emission that does not depend on the instruction set; backends extend it. */
export abstract class FunctionEmission {
  /** The backend's assembler. */
  readonly out: CodeBuffer;
  v!: VCode;
  allocation!: Allocation;
  options!: CodegenOptions;
  code!: MachineCode;
  /** Location per operand. */
  location: Int32Array = new Int32Array(0);
  /** Number of the allocation's edits that belong to instructions; those of edges follow. */
  editEnd = 0;
  /** Bytes of the frame at the current position, as the backend's abi.ts counts them; 0: there is none. */
  frame = 0;
  /**
   * Whether parts of the function may run without its frame (block_ends.ts). Controlled by the backend's key.
   */
  elides = true;
  /** Label of the landing pad of the call being emitted, plus one; 0 for none. */
  landing = 0;

  fixupCount = 0;
  fixupAt: Int32Array = new Int32Array(1024);
  fixupKind: Int32Array = new Int32Array(1024);
  fixupX: Int32Array = new Int32Array(1024);
  fixupY: Int32Array = new Int32Array(1024);
  fixupZ: Int32Array = new Int32Array(1024);
  fixupW: Int32Array = new Int32Array(1024);

  labelCount = 0;

  /**
   * Wasm positions, for tools; absent by default. Four numbers each: place in the buffer, number of fixups before it,
   * position, inline site. No fixups, because those prevent the use of flags across them.
   */
  marks: number[] | undefined;

  // Branch relaxation (branch_relaxation.ts): bytes that the fixup adds, position per label, and the fixups up to
  // ALIGN.
  fixupSize: Int32Array = new Int32Array(0);
  labelAt: Int32Array = new Int32Array(0);
  flow: Int32Array = new Int32Array(0);
  flowCount = 0;

  fragmentKind: number[] = [];
  fragmentLabel: number[] = [];
  fragmentBack: number[] = [];
  fragmentAt: number[] = [];
  fragmentX: number[] = [];
  fragmentFrame: number[] = [];

  /** Pool constants: label, size (4, 8, 16) and words; of 16 bytes, the index of the vector constant in poolLow. */
  poolLabel: number[] = [];
  poolSize: number[] = [];
  poolLow: number[] = [];
  poolHigh: number[] = [];

  constructor(out: CodeBuffer) {
    this.out = out;
  }

  /** Forgets the last function. `elides`: the state of the backend's key. */
  beginFunction(
    v: VCode,
    allocation: Allocation,
    options: CodegenOptions,
    code: MachineCode,
    elides: boolean,
  ): void {
    this.v = v;
    this.allocation = allocation;
    this.options = options;
    this.code = code;
    this.location = allocation.location;
    this.editEnd = v.edgeCount > 0 ? allocation.edgeFirst[0] : allocation.editCount;
    this.out.at = 0;
    this.elides = elides;
    this.landing = 0;
    this.fixupCount = 0;
    this.labelCount = v.blockCount;
    this.fragmentKind.length = 0;
    this.fragmentLabel.length = 0;
    this.fragmentBack.length = 0;
    this.fragmentAt.length = 0;
    this.fragmentX.length = 0;
    this.fragmentFrame.length = 0;
    this.poolLabel.length = 0;
    this.poolSize.length = 0;
    this.poolLow.length = 0;
    this.poolHigh.length = 0;
  }

  /** Begins the emission of VCode. */
  abstract begin(v: VCode, allocation: Allocation, options: CodegenOptions, code: MachineCode): void;

  /**
   * The position of a call just emitted is a return offset; `frame` is the frame's size there, `cross` 1 in code that
   * switches contexts.
   */
  abstract callSite(at: number, frame: number, cross: number): void;

  /** Records a fixup at the current position. */
  fixup(kind: number, x: number, y: number, z: number, w: number): void {
    this.fixupFrom(this.out.at, kind, x, y, z, w);
  }

  /** Records a fixup at `at`, which must not be before an earlier one. */
  fixupFrom(at: number, kind: number, x: number, y: number, z: number, w: number): void {
    const i = this.fixupCount++;
    if (i >= this.fixupAt.length) {
      this.fixupAt = grown(this.fixupAt, 2 * i);
      this.fixupKind = grown(this.fixupKind, 2 * i);
      this.fixupX = grown(this.fixupX, 2 * i);
      this.fixupY = grown(this.fixupY, 2 * i);
      this.fixupZ = grown(this.fixupZ, 2 * i);
      this.fixupW = grown(this.fixupW, 2 * i);
    }
    this.fixupAt[i] = at;
    this.fixupKind[i] = kind;
    this.fixupX[i] = x;
    this.fixupY[i] = y;
    this.fixupZ[i] = z;
    this.fixupW[i] = w;
  }

  /** Makes room for the columns of branch relaxation. */
  ensureRelaxation(): void {
    if (this.fixupSize.length < this.fixupCount) {
      this.fixupSize = new Int32Array(this.fixupCount * 2);
      this.flow = new Int32Array(this.fixupCount * 2);
    }
    if (this.labelAt.length < this.labelCount) this.labelAt = new Int32Array(this.labelCount * 2);
  }

  newLabel(): number {
    return this.labelCount++;
  }

  bind(label: number): void {
    this.fixup(FIXUP.LABEL, label, 0, 0, 0);
  }

  /** Notes the wasm position of VCode instruction `at`, whose code follows; −1 for code without one. */
  mark(at: number): void {
    const { marks } = this;
    if (marks === undefined) return;
    const pos = at < 0 ? 0 : this.v.pos[at];
    const site = at < 0 ? 0 : this.v.site[at];
    const last = marks.length;
    if (last > 0 && marks[last - 2] === pos && marks[last - 1] === site) return;
    marks.push(this.out.at);
    marks.push(this.fixupCount);
    marks.push(pos);
    marks.push(site);
  }

  jump(label: number): void {
    this.fixup(FIXUP.JUMP, label, 0, 0, 0);
  }

  /** Queues an out-of-line fragment for instruction `at`; returns its label. */
  outOfLine(kind: number, at: number, x: number, back: number): number {
    const label = this.newLabel();
    this.fragmentKind.push(kind);
    this.fragmentLabel.push(label);
    this.fragmentBack.push(back);
    this.fragmentAt.push(at);
    this.fragmentX.push(x);
    this.fragmentFrame.push(this.frame);
    return label;
  }

  /** An out-of-line call of the trap stub of `code` on behalf of instruction `at`. */
  trap(at: number, code: number): number {
    return this.outOfLine(OUT_OF_LINE.TRAP, at, code, 0);
  }

  /** Label of a pool constant of `size` bytes. Only the latest 64 constants are searched for an equal one. */
  pool(low: number, high: number, size: number): number {
    const { poolLow, poolHigh, poolSize, poolLabel } = this;
    for (let i = Math.max(0, poolLow.length - 64); i < poolLow.length; i++) {
      if (poolLow[i] === low && poolHigh[i] === high && poolSize[i] === size) return poolLabel[i];
    }
    const label = this.newLabel();
    poolLabel.push(label);
    poolSize.push(size);
    poolLow.push(low);
    poolHigh.push(high);
    return label;
  }

  /** Emits pool constants after the function's code, largest alignment first. */
  placePool(): void {
    const { out, poolLabel, poolSize, poolLow, poolHigh } = this;
    const { vectors } = this.v;
    for (let size = 16; size >= 4; size >>= 1) {
      let aligned = false;
      for (let k = 0; k < poolLabel.length; k++) {
        if (poolSize[k] !== size) continue;
        out.reserve(32);
        if (!aligned) this.fixup(FIXUP.ALIGN, size, 0, 0, 0);
        aligned = true;
        this.bind(poolLabel[k]);
        if (size === 16) { for (let w = 0; w < 4; w++) out.word(vectors[poolLow[k] * 4 + w]); }
        else out.word(poolLow[k]);
        if (size === 8) out.word(poolHigh[k]);
      }
    }
  }

  /**
   * The position of a call just emitted is a return offset; `distance` bytes from the stack pointer to the return
   * address.
   */
  recordCallSite(at: number, distance: number, cross: number): void {
    const unwinding = cross | (this.landing << 1);
    this.fixup(FIXUP.CALL_SITE, distance, at < 0 ? 0 : this.v.pos[at], at < 0 ? 0 : this.v.site[at], unwinding);
  }

  /** The position is a trap site of instruction `at`, `distance` as above. */
  recordTrapSite(at: number, code: number, distance: number): void {
    this.fixup(FIXUP.TRAP_SITE, distance, at < 0 ? 0 : this.v.pos[at], at < 0 ? 0 : this.v.site[at], code);
  }
}
