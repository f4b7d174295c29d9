/**
 * Code of one function while it is being emitted: the backend's bytes or words without (some of) its branches, plus marks, in ascending
 * order of position, that say what stands between and at them: labels, branches, alignment, sites, relocations. The backend's
 * branch_relaxation.ts turns both into final code with every branch in its shortest form.
 *
 * Labels: block k has label k; further ones come from `newLabel`. Cold pieces (trap calls, slow paths) are queued and emitted
 * after the last block.
 */
import type { Allocation } from "./allocation.ts";
import type { MachineCode } from "./machine_code.ts";
import type { CodegenContext } from "./target.ts";
import type { VCode } from "./vcode.ts";

/** Kinds of marks that all backends have, with what x, y, z, w mean. Those up to ALIGN decide where code goes. */
export const MARK = {
  /** x = label. */
  LABEL: 0,
  /** An unconditional branch stands here. x = label. */
  JUMP: 1,
  /** x = label; the rest is the backend's. */
  BRANCH: 2,
  /** x = boundary (a power of two), y = 1 to fill with no-operations, 0 with zeros. */
  ALIGN: 3,
  /** The 32-bit word at the mark is label x minus label y. */
  DIFFERENCE: 4,
  /** x = frame, y = position, z = inline site, w = 1 if a saved context lies above the return address, + 2 × (label of the landing + 1). */
  CALL_SITE: 5,
  /** x = frame, y = position, z = inline site, w = code. */
  TRAP_SITE: 6,
  /** x = relocation kind, y = target. */
  RELOCATION: 7,
  /** First of the backend's own. */
  OWN: 8,
} as const;

/** Kinds of cold pieces. */
export const COLD_PIECE = {
  /** x = trap code; position of instruction `at`. */
  TRAP: 0,
  /** x = edge: its moves, then a jump to its target. */
  EDGE: 1,
  /** A call into another instance for instruction `at`; x = `landing` of the call, continues at label `back`. */
  CROSS_CALL: 2,
  CROSS_TAIL_CALL: 3,
  /** The prologue's stack check failed. */
  STACK: 4,
  /** x = edge: where exceptions of call `at` land; its moves, then a jump to its target. */
  LANDING: 5,
  /** First of the backend's own. */
  OWN: 6,
} as const;

/** What emission needs of a buffer of code. */
export interface CodeBuffer {
  /** Number of bytes written. */
  at: number;
  /** Makes room for `more` bytes. */
  reserve(more: number): void;
}

function grown(old: Int32Array): Int32Array {
  const next = new Int32Array(old.length * 2);
  next.set(old);
  return next;
}

/** State of emission that does not depend on the instruction set; backends extend it. */
export abstract class FunctionEmission {
  abstract readonly asm: CodeBuffer;
  v!: VCode;
  allocation!: Allocation;
  context!: CodegenContext;
  code!: MachineCode;
  /** Location per operand. */
  location: Int32Array = new Int32Array(0);
  /** Number of the allocation's edits that belong to instructions; those of edges follow. */
  editEnd = 0;
  /** Bytes of the frame where code is being emitted, as the backend's abi.ts counts them; 0: there is none. */
  frame = 0;
  /** May parts of the function run without its frame (block_ends.ts)? The backend's key says so, and is counted. */
  elides = true;
  readonly elideKey: string = "frame-elide";
  /** Label of the landing of the call being emitted, plus one; 0 for none. */
  landing = 0;

  markCount = 0;
  markAt: Int32Array = new Int32Array(1024);
  markKind: Int32Array = new Int32Array(1024);
  markX: Int32Array = new Int32Array(1024);
  markY: Int32Array = new Int32Array(1024);
  markZ: Int32Array = new Int32Array(1024);
  markW: Int32Array = new Int32Array(1024);

  labelCount = 0;

  coldKind: number[] = [];
  coldLabel: number[] = [];
  coldBack: number[] = [];
  coldAt: number[] = [];
  coldX: number[] = [];
  coldFrame: number[] = [];

  /** Pool constants: label, size (4, 8, 16) and words; of 16 bytes, the index of the vector constant in poolLow. */
  poolLabel: number[] = [];
  poolSize: number[] = [];
  poolLow: number[] = [];
  poolHigh: number[] = [];

  /** Forgets the last function. */
  beginFunction(v: VCode, allocation: Allocation, context: CodegenContext, code: MachineCode): void {
    this.v = v;
    this.allocation = allocation;
    this.context = context;
    this.code = code;
    this.location = allocation.location;
    this.editEnd = v.edgeCount > 0 ? allocation.edgeFirst[0] : allocation.editCount;
    this.asm.at = 0;
    this.elides = context.optimizations[this.elideKey] !== false;
    this.landing = 0;
    this.markCount = 0;
    this.labelCount = v.blockCount;
    this.coldKind.length = 0;
    this.coldLabel.length = 0;
    this.coldBack.length = 0;
    this.coldAt.length = 0;
    this.coldX.length = 0;
    this.coldFrame.length = 0;
    this.poolLabel.length = 0;
    this.poolSize.length = 0;
    this.poolLow.length = 0;
    this.poolHigh.length = 0;
  }

  /** Counts an application of optimization `key`. */
  hit(key: string): void {
    const { hits } = this.context;
    if (hits !== undefined) hits[key] = (hits[key] ?? 0) + 1;
  }

  /** Records a mark at the current position. */
  mark(kind: number, x: number, y: number, z: number, w: number): void {
    this.markFrom(this.asm.at, kind, x, y, z, w);
  }

  /** Records a mark at `at`, which must not lie before an earlier one. */
  markFrom(at: number, kind: number, x: number, y: number, z: number, w: number): void {
    const i = this.markCount++;
    if (i >= this.markAt.length) {
      this.markAt = grown(this.markAt);
      this.markKind = grown(this.markKind);
      this.markX = grown(this.markX);
      this.markY = grown(this.markY);
      this.markZ = grown(this.markZ);
      this.markW = grown(this.markW);
    }
    this.markAt[i] = at;
    this.markKind[i] = kind;
    this.markX[i] = x;
    this.markY[i] = y;
    this.markZ[i] = z;
    this.markW[i] = w;
  }

  newLabel(): number {
    return this.labelCount++;
  }

  bind(label: number): void {
    this.mark(MARK.LABEL, label, 0, 0, 0);
  }

  jump(label: number): void {
    this.mark(MARK.JUMP, label, 0, 0, 0);
  }

  /** Queues a cold piece for instruction `at`; returns its label. */
  cold(kind: number, at: number, x: number, back: number): number {
    const label = this.newLabel();
    this.coldKind.push(kind);
    this.coldLabel.push(label);
    this.coldBack.push(back);
    this.coldAt.push(at);
    this.coldX.push(x);
    this.coldFrame.push(this.frame);
    return label;
  }

  /** A cold call of the trap stub of `code` on behalf of instruction `at`. */
  trap(at: number, code: number): number {
    return this.cold(COLD_PIECE.TRAP, at, code, 0);
  }

  /** Label of a pool constant of `size` bytes. */
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

  /** Pool constants behind the function's code, largest alignment first; `word` appends 32 bits. */
  placePool(word: (value: number) => void): void {
    const { asm, poolLabel, poolSize, poolLow, poolHigh } = this;
    const { vectors } = this.v;
    for (const size of [16, 8, 4]) {
      let aligned = false;
      for (let k = 0; k < poolLabel.length; k++) {
        if (poolSize[k] !== size) continue;
        asm.reserve(32);
        if (!aligned) this.mark(MARK.ALIGN, size, 0, 0, 0);
        aligned = true;
        this.bind(poolLabel[k]);
        if (size === 16) { for (let w = 0; w < 4; w++) word(vectors[poolLow[k] * 4 + w]); }
        else word(poolLow[k]);
        if (size === 8) word(poolHigh[k]);
      }
    }
  }

  /** The position of a call just emitted is a return offset; `distance` bytes from the stack pointer to the return address. */
  markCall(at: number, distance: number, cross: number): void {
    const unwinding = cross | (this.landing << 1);
    this.mark(MARK.CALL_SITE, distance, at < 0 ? 0 : this.v.pos[at], at < 0 ? 0 : this.v.site[at], unwinding);
  }

  /** The position is a trap site of instruction `at`, `distance` as above. */
  markTrap(at: number, code: number, distance: number): void {
    this.mark(MARK.TRAP_SITE, distance, at < 0 ? 0 : this.v.pos[at], at < 0 ? 0 : this.v.site[at], code);
  }
}
