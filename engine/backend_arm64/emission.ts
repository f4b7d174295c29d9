/**
 * Code of one function while it is being emitted: words with its branches' targets open, plus marks, in ascending order of position,
 * that say what stands between and at the words: labels, branches, alignment, sites, relocations. finish.ts turns both into final
 * code; a branch whose target is too far becomes the opposite branch over an unconditional one.
 *
 * Labels: block k has label k; further ones come from `newLabel`. Cold pieces (trap calls, slow paths) are queued and emitted
 * after the last block.
 */
import type { Allocation } from "../codegen/allocation.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { CodegenContext } from "../codegen/target.ts";
import type { VCode } from "../codegen/vcode.ts";
import { FAULT_FRAME } from "./abi.ts";
import { Assembler } from "./encoding.ts";
import { X } from "./instructions.ts";

/** Kinds of marks, with what x, y, z, w mean. */
export const KIND = {
  /** x = label. */
  LABEL: 0,
  /** An unconditional branch stands here. x = label. */
  JUMP: 1,
  /** x = label; the word at the mark is the branch, whose displacement field has y bits at bit z. Its opposite differs in bit w. */
  BRANCH: 2,
  /** x = boundary (a power of two), y = 1 to fill with no-operations, 0 with zeros. */
  ALIGN: 3,
  /** The literal load at the mark reads label x. */
  LITERAL: 4,
  /** The ADR at the mark gives the address of label x. */
  ADDRESS: 5,
  /** The 32-bit word at the mark is label x minus label y. */
  DIFFERENCE: 6,
  /** x = frame, y = position, z = inline site, w = 1 if a saved context lies above the return address, + 2 × (label of the landing + 1). */
  CALL_SITE: 7,
  /** x = frame, y = position, z = inline site, w = code. */
  TRAP_SITE: 8,
  /** x = relocation kind, y = target. */
  RELOCATION: 9,
} as const;

/** Kinds of cold pieces. */
export const COLD = {
  /** x = trap code; position of instruction `at`. */
  TRAP: 0,
  /** x = edge: its moves, then a jump to its target. */
  EDGE: 1,
  /** A call into another instance for instruction `at`; continues at label `back`. */
  CROSS_CALL: 2,
  CROSS_TAIL_CALL: 3,
  /** The prologue's stack check failed. */
  STACK: 4,
  /** x = edge: where exceptions of call `at` land; its moves, then a jump to its target. */
  LANDING: 5,
  /** x = label of a landing: where exceptions of a call into another instance land, 8 bytes below the frame. */
  CROSS_LANDING: 6,
} as const;

function grown(old: Int32Array): Int32Array {
  const next = new Int32Array(old.length * 2);
  next.set(old);
  return next;
}

export class Emission {
  readonly asm: Assembler = new Assembler(1 << 16);
  v!: VCode;
  allocation!: Allocation;
  context!: CodegenContext;
  code!: MachineCode;
  /** Location per operand. */
  location: Int32Array = new Int32Array(0);
  /** Number of the allocation's edits that belong to instructions; those of edges follow. */
  editEnd = 0;
  /** Bytes of the frame where code is being emitted, its return address included; 0: there is none, x30 has the return address. */
  frame = 0;

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

  /** Label of the distance to the poll page, −1 until it is wanted. */
  poll = -1;

  /** Pool constants: label, size (4, 8, 16) and words; of 16 bytes, the index of the vector constant in poolLow. */
  poolLabel: number[] = [];
  poolSize: number[] = [];
  poolLow: number[] = [];
  poolHigh: number[] = [];

  begin(v: VCode, allocation: Allocation, context: CodegenContext, code: MachineCode): void {
    this.v = v;
    this.allocation = allocation;
    this.context = context;
    this.code = code;
    this.location = allocation.location;
    this.editEnd = v.edgeCount > 0 ? allocation.edgeFirst[0] : allocation.editCount;
    const bytes = allocation.slotCount * 8;
    this.frame = v.hasCalls || bytes > 0 ? (bytes + 8 + 15) & ~15 : 0;
    this.asm.at = 0;
    this.landing = 0;
    this.markCount = 0;
    this.labelCount = v.blockCount;
    this.coldKind.length = 0;
    this.coldLabel.length = 0;
    this.coldBack.length = 0;
    this.coldAt.length = 0;
    this.coldX.length = 0;
    this.coldFrame.length = 0;
    this.poll = -1;
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
    this.mark(KIND.LABEL, label, 0, 0, 0);
  }

  jump(label: number): void {
    this.mark(KIND.JUMP, label, 0, 0, 0);
  }

  /** Jumps to `label` if condition `cc` holds. */
  branch(cc: number, label: number): void {
    this.mark(KIND.BRANCH, label, 19, 5, 0);
    this.asm.rrrc(X.BCOND, 0, 0, 0, cc);
  }

  /** Jumps to `label` by row CBZ… or CBNZ… of register `register`. */
  branchZero(row: number, register: number, label: number): void {
    this.mark(KIND.BRANCH, label, 19, 5, 24);
    this.asm.rrr(row, register, 0, 0);
  }

  /** Jumps to `label` by row TBZ or TBNZ on bit `bit` of register `register`. */
  branchBit(row: number, register: number, bit: number, label: number): void {
    this.mark(KIND.BRANCH, label, 14, 5, 24);
    this.asm.rri(row, register, 0, 0, bit & 31);
    if (bit > 31) this.asm.buffer[this.asm.at - 1] |= 0x80;
  }

  /** adr register, label */
  address(register: number, label: number): void {
    this.mark(KIND.ADDRESS, label, 0, 0, 0);
    this.asm.rrr(X.ADR, register, 0, 0);
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
    return this.cold(COLD.TRAP, at, code, 0);
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

  /** Label of the word that holds the distance to the poll page. */
  pollWord(): number {
    if (this.poll < 0) this.poll = this.newLabel();
    return this.poll;
  }

  /** The position of a call just emitted is a return offset; `frame` includes the return address. */
  callSite(at: number, frame: number, cross = 0): void {
    const unwinding = cross | (this.landing << 1);
    this.mark(KIND.CALL_SITE, frame - 8, at < 0 ? 0 : this.v.pos[at], at < 0 ? 0 : this.v.site[at], unwinding);
  }

  /** The instruction about to be emitted may fault with `code`. */
  faultSite(at: number, code: number): void {
    this.trapSite(at, code, this.frame + FAULT_FRAME);
  }

  /** The position is a trap site; `frame` includes the return address. */
  trapSite(at: number, code: number, frame: number): void {
    this.mark(KIND.TRAP_SITE, frame - 8, at < 0 ? 0 : this.v.pos[at], at < 0 ? 0 : this.v.site[at], code);
  }

  /** Register number 0-31 of operand `o`. */
  register(o: number): number {
    return this.location[o] & 31;
  }
}
