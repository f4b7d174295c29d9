/**
 * Control-flow facts about a function's blocks for emission: final targets of jumps, numbers of predecessors, and the
 * blocks that begin with the prologue.
 *
 * The prologue (stack check and frame) is in front of the first block or, if the function can return before it needs a
 * frame, at the heads of the blocks where the frameless part ends (shrink wrapping). The frameless part is a tree: all
 * its blocks but the first have one predecessor, and so has every block that it leads to.
 */
import type { Allocation } from "./allocation.ts";
import { CodeAlignment } from "./code_alignment.ts";
import type { FunctionEmission } from "./emission.ts";
import { PSEUDO } from "./pseudo_ops.ts";
import { operandRole, ROLE, type VCode } from "./vcode.ts";

/** The maximum length to which a chain of blocks that only jump is followed. */
const MAX_CHAIN_OF_JUMPS = 16;
/** Limit of the spills that wait for the prologue: each is looked up in every block without a frame. */
const MAX_DEFERRED = 16;
/** The maximum number of copies of the prologue. */
const MAX_PROLOGUES = 3;

export class BlockEnds {
  /** Final target of a jump to the block: another block if this one only jumps. */
  target: Int32Array = new Int32Array(64);
  #final: Int32Array = new Int32Array(64);
  /** The block's first edit, or the first one after it. */
  firstEdit: Int32Array = new Int32Array(64);
  /** Number of edges into the block. */
  predecessors: Int32Array = new Int32Array(64);
  /** Edge, plus one, whose moves are at the block's head; 0 none. */
  headEdge: Int32Array = new Int32Array(64);
  emitted: Uint8Array = new Uint8Array(64);
  readonly alignment: CodeAlignment = new CodeAlignment();
  /** 1: the block runs without a frame. */
  frameless: Uint8Array = new Uint8Array(64);
  /** 1: the block begins with the prologue. */
  prologue: Uint8Array = new Uint8Array(64);
  /**
   * Edits of block 0 that are made after the prologue instead: spills of registers that keep their values until then.
   */
  deferred: number[] = [];
  /** Position of the block in the layout. */
  #position: Int32Array = new Int32Array(64);
  /** The block that is emitted next, or −1. */
  next = -1;

  compute(e: FunctionEmission): void {
    const { v } = e;
    const n = v.blockCount;
    if (this.target.length < n) {
      this.target = new Int32Array(n * 2);
      this.#final = new Int32Array(n * 2);
      this.firstEdit = new Int32Array(n * 2);
      this.predecessors = new Int32Array(n * 2);
      this.headEdge = new Int32Array(n * 2);
      this.emitted = new Uint8Array(n * 2);
      this.frameless = new Uint8Array(n * 2);
      this.prologue = new Uint8Array(n * 2);
      this.#position = new Int32Array(n * 2);
    } else {
      this.predecessors.fill(0, 0, n);
      this.headEdge.fill(0, 0, n);
      this.emitted.fill(0, 0, n);
      this.frameless.fill(0, 0, n);
      this.prologue.fill(0, 0, n);
    }
    const { succ, succStart, succCount, edgeTo } = v;
    for (let k = 0; k < n; k++) {
      for (let j = 0; j < succCount[k]; j++) this.predecessors[edgeTo[succ[succStart[k] + j]]]++;
    }
    this.#findEdits(e);
    this.#followJumps(e);
    this.#positionPrologue(e);
  }

  #findEdits(e: FunctionEmission): void {
    const { blockCount, blockFirst } = e.v;
    const { editAt } = e.allocation;
    const { firstEdit } = this;
    const end = e.editEnd;
    for (let k = 0, edit = 0; k < blockCount; k++) {
      const position = 2 * blockFirst[k];
      while (edit < end && editAt[edit] < position) edit++;
      firstEdit[k] = edit;
    }
  }

  /** Finds the blocks that only jump. */
  #followJumps(e: FunctionEmission): void {
    const { v, allocation } = e;
    const { blockCount, blockFirst, op, succ, succStart, edgeTo } = v;
    const { skip, edgeFirst } = allocation;
    const fold = e.options.foldsBranches;
    for (let k = 0; k < blockCount; k++) {
      this.target[k] = k;
      const last = blockFirst[k + 1] - 1;
      if (!fold || k === 0 || op[last] !== PSEUDO.JUMP) continue;
      const edge = succ[succStart[k]];
      if (edgeFirst[edge] !== edgeFirst[edge + 1] || this.#hasEdits(e, k)) continue;
      let i = blockFirst[k];
      while (i < last && skip[i] !== 0) i++;
      if (i === last) this.target[k] = edgeTo[edge];
    }
    // Follow chains of such blocks; circular and very long chains are left unchanged.
    for (let k = 0; k < blockCount; k++) {
      let to = this.target[k];
      for (let step = 0; step < MAX_CHAIN_OF_JUMPS && this.target[to] !== to; step++) to = this.target[to];
      this.#final[k] = this.target[to] === to ? to : k;
    }
    this.target.set(this.#final.subarray(0, blockCount));
  }

  #hasEdits(e: FunctionEmission, k: number): boolean {
    const first = this.firstEdit[k];
    return first < e.editEnd && e.allocation.editAt[first] < 2 * e.v.blockFirst[k + 1];
  }

  /** Decides which blocks run without a frame. */
  #positionPrologue(e: FunctionEmission): void {
    const { v } = e;
    this.deferred.length = 0;
    if ((!v.hasCalls && e.frame === 0) || !e.elides) return;
    const { succ, succStart, succCount, edgeTo, blockFirst, op } = v;
    for (let p = 0; p < v.blockCount; p++) this.#position[v.layout[p]] = p;
    // Block order visits a predecessor first: the frameless part contains no loop.
    let prologues = 0;
    let returns = false;
    this.frameless[0] = 1;
    for (let k = 0; k < v.blockCount && prologues <= MAX_PROLOGUES; k++) {
      if (this.frameless[k] === 0) continue;
      if (!this.#canLackFrame(e, k)) {
        this.frameless[k] = 0;
        this.prologue[k] = 1;
        prologues++;
        continue;
      }
      const last = op[blockFirst[k + 1] - 1];
      if (last === PSEUDO.RETURN || last === PSEUDO.TAIL_CALL) returns = true;
      for (let j = 0; j < succCount[k]; j++) this.frameless[edgeTo[succ[succStart[k] + j]]] = 1;
    }
    if (returns && prologues <= MAX_PROLOGUES && this.frameless[0] !== 0 && this.#spillsKeep(e)) {
      e.options.counts.elidedFrames++;
      // A block that begins with the prologue is emitted even if it only jumps.
      for (let k = 0; k < v.blockCount; k++) if (this.prologue[k] !== 0) this.target[k] = k;
      return;
    }
    this.deferred.length = 0;
    this.frameless.fill(0, 0, v.blockCount);
    this.prologue.fill(0, 0, v.blockCount);
  }

  /** Whether every deferred spill's register keeps its value in all frameless blocks. */
  #spillsKeep(e: FunctionEmission): boolean {
    if (this.deferred.length > MAX_DEFERRED) return false;
    for (const edit of this.deferred) {
      const register = e.allocation.editFrom[edit];
      for (let k = 0; k < e.v.blockCount; k++) {
        const first = k === 0 ? edit + 1 : this.firstEdit[k];
        if (this.frameless[k] !== 0 && writes(e, k, register, k === 0 ? edit : -1, first)) return false;
      }
    }
    return true;
  }

  /** Whether block `k` uses no slot and no call, and its successors have no other predecessor and are emitted later. */
  #canLackFrame(e: FunctionEmission, k: number): boolean {
    const { v, allocation } = e;
    const { location, editFrom, editTo, editRemat, editAt, edgeFirst } = allocation;
    const { op, blockFirst, firstOperand } = v;
    for (let j = 0; j < v.succCount[k]; j++) {
      const edge = v.succ[v.succStart[k] + j];
      const to = v.edgeTo[edge];
      if (this.predecessors[to] !== 1 || this.#position[to] <= this.#position[k]) return false;
      // Moves of the edge end up at the successor's head, which may turn out to lack a frame.
      for (let m = edgeFirst[edge]; m < edgeFirst[edge + 1]; m++) {
        if (editTo[m] < 0 || (editRemat[m] === 0 && editFrom[m] < 0)) return false;
      }
    }
    const end = blockFirst[k + 1];
    for (let m = this.firstEdit[k]; m < e.editEnd && editAt[m] < 2 * end; m++) {
      if (k === 0 && editTo[m] < 0 && editRemat[m] === 0 && editFrom[m] >= 0) {
        this.deferred.push(m);
        continue;
      }
      if (editTo[m] < 0 || (editRemat[m] === 0 && editFrom[m] < 0)) return false;
    }
    for (let i = blockFirst[k]; i < end; i++) {
      if (op[i] > PSEUDO.POLL && op[i] < PSEUDO.TAIL_CALL) return false;
      for (let o = firstOperand[i]; o < firstOperand[i + 1]; o++) if (location[o] < 0) return false;
    }
    return true;
  }
}

/**
 * Whether block `k` writes `register`, in code or in moves of its edges. Only edits after `after` count, unless it is
 * −1. `firstEdit` is the first edit that counts.
 */
function writes(e: FunctionEmission, k: number, register: number, after: number, firstEdit: number): boolean {
  const { v, allocation } = e;
  const { location, editAt, edgeFirst } = allocation;
  const first = v.blockFirst[k];
  const end = v.blockFirst[k + 1];
  const from = after < 0 ? 2 * first : editAt[after];
  for (let m = firstEdit; m < e.editEnd && editAt[m] < 2 * end; m++) {
    if (touches(allocation, m, register)) return true;
  }
  for (let i = (from + 1) >> 1; i < end; i++) {
    if (clobbers(v, i, register)) return true;
    for (let o = v.firstOperand[i]; o < v.firstOperand[i + 1]; o++) {
      const role = operandRole(v.operands[o]);
      if (location[o] === register && (role === ROLE.DEF || role === ROLE.TEMP)) return true;
    }
  }
  for (let j = 0; j < v.succCount[k]; j++) {
    const edge = v.succ[v.succStart[k] + j];
    for (let m = edgeFirst[edge]; m < edgeFirst[edge + 1]; m++) if (touches(allocation, m, register)) return true;
  }
  return false;
}

/** Whether edit `m` writes `register`. */
function touches(allocation: Allocation, m: number, register: number): boolean {
  const { editTo, editFrom, editRemat } = allocation;
  return editTo[m] === register || (editRemat[m] < 0 && editFrom[m] === register);
}

function clobbers(v: VCode, i: number, register: number): boolean {
  const set = v.clobbers[i];
  const mask = register < 32 ? v.clobberGeneral[set] : v.clobberVector[set];
  return set !== 0 && ((mask >>> (register & 31)) & 1) !== 0;
}
