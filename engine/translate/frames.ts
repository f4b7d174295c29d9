/**
 * Control frames, locals and snapshots: SSA construction specialized for structured control.
 *
 * Locals are in slots; `locals[slot]` is the current SSA value. A frame that is the target of forward branches keeps a
 * journal of the slots that changed since its entry (the trail): a branch records only those, and an `else` or a join
 * restores the entry's values by undoing. Time and memory are proportional to changes, not to locals × branches.
 *
 *     trail entry n:  slot trailSlot[n] had value trailOld[n]; its previous entry is trailPrev[n] − 1 (0: none)
 *     loggedAt[s]:    1 + index of the newest trail entry of slot s, 0 for none
 *     floor:          trail length at the entry of the innermost frame that keeps a journal; −1 if there is none.
 *                     A change is logged if loggedAt[s] ≤ floor, that is, once per slot and frame
 *     snapshot:       snaps[start …): the label's operands, then pairs of slot and value that differ from the frame's
 *                     entry
 *
 * Frame columns are indexed by frame number, outermost 0.
 */
import { doubled } from "../base/columns.ts";

/**
 * Kinds of frames. TRY: a legacy try before its first catch, CATCH after it; BODY: the function itself; INLINED: the
 * body of an inlined callee.
 */
export const FRAME_KIND = {
  BLOCK: 0,
  LOOP: 1,
  IF: 2,
  ELSE: 3,
  TRY_TABLE: 4,
  TRY: 5,
  CATCH: 6,
  BODY: 7,
  INLINED: 8,
} as const;

/** Implementation limit: words in the snapshots or the IR lists of one function. */
export const MAX_POOL: number = 1 << 25;
/** Implementation limit: IR instructions of one function, the limit of virtual registers in code generation. */
export const MAX_INSTRUCTIONS: number = 1 << 21;

export class Frames {
  count = 0;
  kind: Uint8Array = new Uint8Array(64);
  /** Number of operands below the frame's own. */
  height: Int32Array = new Int32Array(64);
  /** Operands that a branch to the label carries; results of the frame. */
  arity: Int32Array = new Int32Array(64);
  results: Int32Array = new Int32Array(64);
  /** Trail length at entry; the floor of the enclosing frame. */
  trailStart: Int32Array = new Int32Array(64);
  outerFloor: Int32Array = new Int32Array(64);
  /** Pending edges: the newest (linked by nextEdge), −1 for none; their number. */
  firstEdge: Int32Array = new Int32Array(64);
  edgeCount: Int32Array = new Int32Array(64);
  /** Loops: the header, −1 without a back edge; record number in LoopScan. If: edge to the else arm, −1 for none. */
  header: Int32Array = new Int32Array(64);
  loop: Int32Array = new Int32Array(64);
  elseEdge: Int32Array = new Int32Array(64);
  /** Innermost try around the frame, −1 for none. */
  outerTry: Int32Array = new Int32Array(64);
  /**
   * Tries: pending edges of exceptions, as firstEdge and edgeCount; locals from `localLimit` on are not those of the
   * try's function.
   */
  firstThrown: Int32Array = new Int32Array(64);
  thrownCount: Int32Array = new Int32Array(64);
  localLimit: Int32Array = new Int32Array(64);
  /** try_tables: index of their clauses in the translator's list. */
  clauses: Int32Array = new Int32Array(64);
  /**
   * Legacy catches: trail length and value of the tag at the landing pad; the exception as a reference, 0 if it is not
   * rethrown.
   */
  landingTrail: Int32Array = new Int32Array(64);
  landingTag: Int32Array = new Int32Array(64);
  caught: Int32Array = new Int32Array(64);
  /** If: index of its saved parameters. */
  saved: Int32Array = new Int32Array(64);
  /** Number of the last br_table with a snapshot for the frame, and that snapshot. */
  stamp: Int32Array = new Int32Array(64);
  stampSnap: Int32Array = new Int32Array(64);
  stampPairs: Int32Array = new Int32Array(64);

  locals: Int32Array = new Int32Array(64);
  loggedAt: Int32Array = new Int32Array(64);
  /** Innermost open try whose handlers apply here, −1 for none. */
  tryFrame = -1;
  floor = -1;
  trailSlot: Int32Array = new Int32Array(256);
  trailOld: Int32Array = new Int32Array(256);
  trailPrev: Int32Array = new Int32Array(256);
  trailCount = 0;

  snaps: Int32Array = new Int32Array(1024);
  snapCount = 0;
  /** By edge: snapshot, its number of pairs, next pending edge of the same frame. */
  edgeSnap: Int32Array = new Int32Array(128);
  edgePairs: Int32Array = new Int32Array(128);
  nextEdge: Int32Array = new Int32Array(128);

  /** Parameters of open ifs. */
  savedParams: Int32Array = new Int32Array(64);
  savedCount = 0;

  reset(): void {
    this.count = 0;
    this.tryFrame = -1;
    this.floor = -1;
    this.trailCount = 0;
    this.snapCount = 0;
    this.savedCount = 0;
  }

  /** Opens a frame; returns its number. */
  open(kind: number, height: number, arity: number, results: number): number {
    const n = this.count++;
    if (n >= this.kind.length) this.#grow(n + 1);
    this.kind[n] = kind;
    this.height[n] = height;
    this.arity[n] = arity;
    this.results[n] = results;
    this.trailStart[n] = this.trailCount;
    this.outerFloor[n] = this.floor;
    this.firstEdge[n] = -1;
    this.edgeCount[n] = 0;
    this.header[n] = -1;
    this.loop[n] = -1;
    this.elseEdge[n] = -1;
    this.outerTry[n] = this.tryFrame;
    this.firstThrown[n] = -1;
    this.thrownCount[n] = 0;
    this.caught[n] = 0;
    this.saved[n] = 0;
    this.stamp[n] = 0;
    return n;
  }

  #grow(need: number): void {
    this.kind = doubled(this.kind, need);
    this.height = doubled(this.height, need);
    this.arity = doubled(this.arity, need);
    this.results = doubled(this.results, need);
    this.trailStart = doubled(this.trailStart, need);
    this.outerFloor = doubled(this.outerFloor, need);
    this.firstEdge = doubled(this.firstEdge, need);
    this.edgeCount = doubled(this.edgeCount, need);
    this.header = doubled(this.header, need);
    this.loop = doubled(this.loop, need);
    this.elseEdge = doubled(this.elseEdge, need);
    this.outerTry = doubled(this.outerTry, need);
    this.firstThrown = doubled(this.firstThrown, need);
    this.thrownCount = doubled(this.thrownCount, need);
    this.localLimit = doubled(this.localLimit, need);
    this.clauses = doubled(this.clauses, need);
    this.landingTrail = doubled(this.landingTrail, need);
    this.landingTag = doubled(this.landingTag, need);
    this.caught = doubled(this.caught, need);
    this.saved = doubled(this.saved, need);
    this.stamp = doubled(this.stamp, need);
    this.stampSnap = doubled(this.stampSnap, need);
    this.stampPairs = doubled(this.stampPairs, need);
  }

  /** Makes slots up to `end`. */
  reserveLocals(end: number): void {
    if (end <= this.locals.length) return;
    this.locals = doubled(this.locals, end);
    this.loggedAt = doubled(this.loggedAt, end);
  }

  /** Assigns a local. */
  setLocal(slot: number, value: number): void {
    const logged = this.loggedAt[slot];
    if (logged <= this.floor) {
      const n = this.trailCount;
      if (n >= this.trailSlot.length) {
        this.trailSlot = doubled(this.trailSlot, n + 1);
        this.trailOld = doubled(this.trailOld, n + 1);
        this.trailPrev = doubled(this.trailPrev, n + 1);
      }
      this.trailSlot[n] = slot;
      this.trailOld[n] = this.locals[slot];
      this.trailPrev[n] = logged;
      this.loggedAt[slot] = this.trailCount = n + 1;
    }
    this.locals[slot] = value;
  }

  /** Restores the values that locals had when the trail had length `start`. */
  undo(start: number): void {
    for (let n = this.trailCount - 1; n >= start; n--) {
      const slot = this.trailSlot[n];
      this.locals[slot] = this.trailOld[n];
      this.loggedAt[slot] = this.trailPrev[n];
    }
    this.trailCount = start;
  }

  /**
   * Keeps the changes since `start`, and leaves in the trail only the entries that a frame with floor `floor` needs.
   */
  compact(start: number, floor: number): void {
    let kept = start;
    for (let n = start; n < this.trailCount; n++) {
      const slot = this.trailSlot[n];
      const prev = this.trailPrev[n];
      if (prev <= floor) {
        this.trailSlot[kept] = slot;
        this.trailOld[kept] = this.trailOld[n];
        this.trailPrev[kept++] = prev;
        this.loggedAt[slot] = kept;
      } else if (prev <= start) {
        // An older entry of the slot from `start` on has already been compacted.
        this.loggedAt[slot] = prev;
      }
    }
    this.trailCount = kept;
  }

  /** Adds edge `e`, with a snapshot, to the pending edges of frame `n`. */
  addPending(n: number, e: number, snap: number, pairs: number): void {
    this.#record(e, snap, pairs, this.firstEdge[n]);
    this.firstEdge[n] = e;
    this.edgeCount[n]++;
  }

  /** Adds edge `e`, with a snapshot of locals only, to the edges of exceptions that reach try `n`. */
  addThrown(n: number, e: number, snap: number, pairs: number): void {
    this.#record(e, snap, pairs, this.firstThrown[n]);
    this.firstThrown[n] = e;
    this.thrownCount[n]++;
  }

  /** Exchanges the pending edges of frame `n` with those of its exceptions. */
  swapPending(n: number): void {
    const first = this.firstEdge[n];
    const count = this.edgeCount[n];
    this.firstEdge[n] = this.firstThrown[n];
    this.edgeCount[n] = this.thrownCount[n];
    this.firstThrown[n] = first;
    this.thrownCount[n] = count;
  }

  #record(e: number, snap: number, pairs: number, next: number): void {
    if (e >= this.nextEdge.length) {
      this.edgeSnap = doubled(this.edgeSnap, e + 1);
      this.edgePairs = doubled(this.edgePairs, e + 1);
      this.nextEdge = doubled(this.nextEdge, e + 1);
    }
    this.edgeSnap[e] = snap;
    this.edgePairs[e] = pairs;
    this.nextEdge[e] = next;
  }

  /** Makes room for `words` of snapshot. */
  reserveSnap(words: number): void {
    const need = this.snapCount + words;
    if (need > this.snaps.length) this.snaps = doubled(this.snaps, need);
  }

  /** Records the slots below `limit` that have changed since `start`; returns the number of pairs. */
  snapChanges(start: number, limit = 0x7fffffff): number {
    this.reserveSnap((this.trailCount - start) * 2);
    const { snaps, trailSlot, trailPrev, trailOld, locals } = this;
    let at = this.snapCount;
    const first = at;
    for (let n = start; n < this.trailCount; n++) {
      const slot = trailSlot[n];
      if (trailPrev[n] > start || locals[slot] === trailOld[n] || slot >= limit) continue;
      snaps[at++] = slot;
      snaps[at++] = locals[slot];
    }
    this.snapCount = at;
    return (at - first) >> 1;
  }

  /** Saves `count` values for an else arm. */
  saveParams(stack: Int32Array, from: number, count: number): number {
    const start = this.savedCount;
    this.savedCount = start + count;
    if (this.savedCount > this.savedParams.length) this.savedParams = doubled(this.savedParams, this.savedCount);
    for (let k = 0; k < count; k++) this.savedParams[start + k] = stack[from + k];
    return start;
  }
}
