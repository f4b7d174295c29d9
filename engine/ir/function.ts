/**
 * One function in SSA form with block parameters, as typed-array columns (struct of arrays). One IrFunction is reused
 * for every function that is compiled: `reset` clears it by range; columns only ever grow, between functions.
 *
 *     instruction i:  op[i] ty[i]  a[i] b[i] c[i] imm[i]  pos[i]      value id = instruction id; id 0 is UNDEF
 *     order:          sched[blockStart[k] … blockEnd[k])  are the ids of block k's instructions, in order; the first
 *                     blockParams[k] entries are PARAM instructions, the last one ends the block
 *     edge e:         edgeFrom[e] → edgeTo[e], passes pool[edgeArgs[e] … + blockParams[edgeTo[e]])
 *     lists:          pool[first … first + n)
 *
 * Invariants (checked by ir/verify.ts): definitions dominate uses; blocks are numbered in a reverse postorder in which
 * every loop is contiguous (the structural order of WebAssembly), so that "backward edge" is `edgeTo ≤ edgeFrom`; block
 * 0 is the entry, has no predecessors, and its PARAMs are the function's parameters; every block but the entry has a
 * predecessor. Instructions are never moved in the columns: passes rewrite `sched`.
 *
 * Exceptions. A call whose exceptions the function handles is followed by the end of its block: the call, its RESULTs,
 * `UNWOUND`, and a BRANCH on that value alone, whose first edge leads to the landing pad and whose second continues.
 * UNWOUND has no code: the runtime continues at the landing pad when an exception leaves the call, and after the call
 * otherwise. Operands of the landing pad and the arguments of its edge must be computed before the call; the call's
 * results do not exist there. At such a call every live value is in a stack slot, because the unwinder restores no
 * register: selection expresses this with clobbers of the call and of the BRANCH (PSEUDO.UNWIND), and emission
 * makes the edge's moves at the landing pad, whose address is in the call site's row of the image's table. A landing
 * pad is a block like any other: the caught exception is in memory (THREAD.CAUGHT_TAG, the overflow buffer) until the
 * next call.
 */
import { grown } from "../base/columns.ts";
import type { ValueColumns } from "./canonical_nan.ts";
import { OP } from "./ops.ts";
import type { Signature } from "./types.ts";

/** Block flags. */
export const BLOCK_LOOP = 1;
/** Ends in a trap, or hinted unlikely: laid out at the end. */
export const BLOCK_COLD = 2;

/** An inlined call: see {@linkcode IrFunction.inlineSites}. */
interface InlineSite {
  readonly parent: number;
  readonly callPos: number;
  readonly funcIndex: number;
}

export class IrFunction implements ValueColumns {
  // Instructions.
  op: Uint16Array = new Uint16Array(0);
  ty: Uint8Array = new Uint8Array(0);
  a: Int32Array = new Int32Array(0);
  b: Int32Array = new Int32Array(0);
  c: Int32Array = new Int32Array(0);
  imm: Int32Array = new Int32Array(0);
  /** Byte offset of the wasm instruction in its module, for traps and stack traces. */
  pos: Int32Array = new Int32Array(0);
  /** Index into inlineSites of the inlined call that the instruction comes from; 0 = the function itself. */
  site: Int32Array = new Int32Array(0);
  /** Number of instructions, UNDEF (0) included. */
  count = 1;
  /** Order of instructions. */
  sched: Int32Array = new Int32Array(0);
  schedCount = 0;

  // Blocks.
  blockStart: Int32Array = new Int32Array(64);
  blockEnd: Int32Array = new Int32Array(64);
  blockParams: Int32Array = new Int32Array(64);
  blockFlags: Int32Array = new Int32Array(64);
  /** Loop depth, 0 outside loops. */
  blockDepth: Int32Array = new Int32Array(64);
  blockCount = 0;

  // Edges.
  edgeFrom: Int32Array = new Int32Array(128);
  edgeTo: Int32Array = new Int32Array(128);
  edgeArgs: Int32Array = new Int32Array(128);
  edgeCount = 0;

  /** Lists of value ids: call arguments, returned values, edge arguments. */
  pool: Int32Array = new Int32Array(256);
  poolCount = 0;

  /** v128 constants, 16 bytes each (CONST of type v128 holds the index). */
  vectors: Uint8Array = new Uint8Array(0);
  vectorCount = 0;

  /** This function's own signature and index (imports counted). */
  signature: Signature = { params: new Uint8Array(0), results: new Uint8Array(0) };
  funcIndex = 0;
  /** Signatures that calls refer to by id; shared by all functions of a module. */
  signatures: readonly Signature[] = [];
  /**
   * Inlined calls by site: site 0 is the function itself, site s ≥ 1 was inlined at byte offset callPos into site
   * parent and runs funcIndex.
   */
  inlineSites: InlineSite[] = [];

  /** Whether the function has CHARGE instructions. */
  charged = false;
  /** Whether the function has canonicalizations of NaNs (canonical_nan.ts). */
  canonicalizes = false;
  /** Whether NaNs are those of the processor: operands of float arithmetic keep their order (ops.ts: commutes). */
  keepsNans = false;
  /** Whether the function is treated as calling, although it does not call. */
  treatedAsCalling = false;

  /** Block layout for emission, a permutation of the blocks; the identity unless block placement changed it. */
  layout: Int32Array = new Int32Array(64);

  /** Empties the function and makes room for `instructions` of them, an estimate: `append` grows the columns. */
  reset(instructions: number): void {
    this.ensure(instructions + 16);
    this.count = 1;
    this.op[0] = OP.UNDEF;
    this.ty[0] = 0;
    this.schedCount = 0;
    this.blockCount = 0;
    this.edgeCount = 0;
    this.poolCount = 0;
    this.vectorCount = 0;
    this.inlineSites.length = 0;
    this.charged = false;
    this.canonicalizes = false;
    this.keepsNans = false;
    this.treatedAsCalling = false;
  }

  /** Makes room for `capacity` instructions in all. Callers must reload hoisted columns after it. */
  ensure(capacity: number): void {
    if (capacity <= this.op.length) return;
    const size = Math.max(capacity, this.op.length * 2, 1024);
    this.op = grown(this.op, size);
    this.ty = grown(this.ty, size);
    this.a = grown(this.a, size);
    this.b = grown(this.b, size);
    this.c = grown(this.c, size);
    this.imm = grown(this.imm, size);
    this.pos = grown(this.pos, size);
    this.site = grown(this.site, size);
    this.sched = grown(this.sched, size);
  }

  /** Appends an instruction to the columns (not to the order) and returns its value id. */
  append(op: number, ty: number, a: number, b: number, c: number, imm: number): number {
    const id = this.count++;
    if (id >= this.op.length) this.ensure(id + 1);
    this.op[id] = op;
    this.ty[id] = ty;
    this.a[id] = a;
    this.b[id] = b;
    this.c[id] = c;
    this.imm[id] = imm;
    this.pos[id] = 0;
    this.site[id] = 0;
    return id;
  }

  /** Takes instruction `i`, which no other uses and which ends no block, out of the order. */
  unschedule(i: number): void {
    const { sched, schedCount, blockStart, blockEnd } = this;
    const at = sched.indexOf(i);
    sched.copyWithin(at, at + 1, schedCount);
    this.schedCount = schedCount - 1;
    for (let k = 0; k < this.blockCount; k++) {
      if (blockStart[k] > at) blockStart[k] = blockStart[k] - 1;
      if (blockEnd[k] > at) blockEnd[k] = blockEnd[k] - 1;
    }
  }

  /** Adds an edge whose arguments start at pool index `args`; returns its id. */
  addEdge(from: number, to: number, args: number): number {
    const e = this.edgeCount++;
    if (e >= this.edgeFrom.length) {
      this.edgeFrom = grown(this.edgeFrom, e * 2);
      this.edgeTo = grown(this.edgeTo, e * 2);
      this.edgeArgs = grown(this.edgeArgs, e * 2);
    }
    this.edgeFrom[e] = from;
    this.edgeTo[e] = to;
    this.edgeArgs[e] = args;
    return e;
  }

  /** Adds an empty block; returns its number. */
  addBlock(flags: number, depth: number): number {
    const k = this.blockCount++;
    if (k >= this.blockStart.length) {
      const size = k * 2;
      this.blockStart = grown(this.blockStart, size);
      this.blockEnd = grown(this.blockEnd, size);
      this.blockParams = grown(this.blockParams, size);
      this.blockFlags = grown(this.blockFlags, size);
      this.blockDepth = grown(this.blockDepth, size);
      this.layout = grown(this.layout, size);
    }
    this.blockStart[k] = 0;
    this.blockEnd[k] = 0;
    this.blockParams[k] = 0;
    this.blockFlags[k] = flags;
    this.blockDepth[k] = depth;
    this.layout[k] = k;
    return k;
  }

  /** Makes room for `n` more pool entries and returns where they start; the caller fills them. */
  allocPool(n: number): number {
    const first = this.poolCount;
    this.poolCount = first + n;
    if (this.poolCount > this.pool.length) this.pool = grown(this.pool, this.poolCount * 2);
    return first;
  }
}
