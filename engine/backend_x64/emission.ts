/**
 * Code of one function while it is being emitted: bytes without its branches, plus marks, in ascending order of position, that say
 * what stands between and at the bytes: labels, branches, alignment, sites, relocations. finish.ts turns both into final code with
 * every branch in its shortest form.
 *
 * Labels: block k has label k; further ones come from `newLabel`. Cold pieces (trap calls, slow paths) are queued and emitted
 * after the last block.
 */
import type { Allocation } from "../codegen/allocation.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { CodegenContext } from "../codegen/target.ts";
import type { VCode } from "../codegen/vcode.ts";
import { Assembler } from "./encoding.ts";

/** Kinds of marks, with what x, y, z, w mean. */
export const KIND = {
  /** x = label. */
  LABEL: 0,
  /** x = label. */
  JUMP: 1,
  /** x = label, y = condition. */
  BRANCH: 2,
  /** x = boundary (a power of two), y = 1 to fill with no-operations, 0 with zeros. */
  ALIGN: 3,
  /** The 32-bit word at the mark is label x minus the end of its instruction, which is y bytes after the word's start. */
  RELATIVE: 4,
  /** The same for offset x of the image. */
  IMAGE: 5,
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
  /** Slow path of a float operation `at`. */
  EXTREMUM: 5,
  TRUNCATION: 6,
  CONVERSION: 7,
  /** The prologue's stack check failed. */
  STACK: 8,
  /** x = edge: where exceptions of call `at` land; its moves, then a jump to its target. */
  LANDING: 9,
  /** The end of access `at` lies behind the length that the context knows of a shared memory; continues at label `back`. */
  BOUNDS: 10,
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
  avx = false;
  /** Location per operand. */
  location: Int32Array = new Int32Array(0);
  /**
   * Flags that the code emitted last left behind: those of register `flagsRegister` (its width `flagsWide`) compared with 0, good at
   * byte position `flagsAt` while no mark has been added; `flagsExact` if overflow and carry are 0 as a test would leave them.
   */
  reuseFlags = true;
  flagsAt = -1;
  flagsMarks = 0;
  flagsRegister = 0;
  flagsWide = 0;
  flagsExact = false;

  /** Number of the allocation's edits that belong to instructions; those of edges follow. */
  editEnd = 0;
  /** Bytes of the frame where code is being emitted: from rsp to the return address. */
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

  /** Pool constants: label, size (4, 8, 16) and words; of 16 bytes, the index of the vector constant in poolLow. */
  poolLabel: number[] = [];
  poolSize: number[] = [];
  poolLow: number[] = [];
  poolHigh: number[] = [];
  /** Jump tables: label and first edge position in `tableTargets`. */
  tableLabel: number[] = [];
  tableFirst: number[] = [];
  tableTargets: number[] = [];

  begin(v: VCode, allocation: Allocation, context: CodegenContext, code: MachineCode): void {
    this.v = v;
    this.allocation = allocation;
    this.context = context;
    this.code = code;
    this.avx = context.cpu.has("avx");
    this.reuseFlags = context.optimizations["st-flags"] !== false;
    this.location = allocation.location;
    this.editEnd = v.edgeCount > 0 ? allocation.edgeFirst[0] : allocation.editCount;
    this.frame = allocation.slotCount * 8;
    this.asm.at = 0;
    this.landing = 0;
    this.flagsAt = -1;
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
    this.tableLabel.length = 0;
    this.tableFirst.length = 0;
    this.tableTargets.length = 0;
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

  /** Notes that the instruction just emitted set the flags by its result in general register `register`. */
  flagsOf(register: number, wide: number, exact: boolean): void {
    this.flagsAt = this.asm.at;
    this.flagsMarks = this.markCount;
    this.flagsRegister = register;
    this.flagsWide = wide;
    this.flagsExact = exact;
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

  /** Jumps to `label` if hardware condition `cc` holds. */
  branch(cc: number, label: number): void {
    this.mark(KIND.BRANCH, label, cc, 0, 0);
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

  /** The position of a call just emitted is a return offset. */
  callSite(at: number, frame: number, cross = 0): void {
    const unwinding = cross | (this.landing << 1);
    this.mark(KIND.CALL_SITE, frame, at < 0 ? 0 : this.v.pos[at], at < 0 ? 0 : this.v.site[at], unwinding);
  }

  /** The instruction about to be emitted may fault with `code`. */
  trapSite(at: number, code: number, frame: number): void {
    this.mark(KIND.TRAP_SITE, frame, at < 0 ? 0 : this.v.pos[at], at < 0 ? 0 : this.v.site[at], code);
  }

  /** Register number 0-15 of operand `o`. */
  register(o: number): number {
    return this.location[o] & 15;
  }
}
