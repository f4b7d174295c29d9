/**
 * Parallel moves: turns a set of simultaneous moves into a sequence of edits with the same effect. A move waits until
 * its destination has no readers left; the remaining moves are cycles. A cycle of registers is broken by exchanges, a
 * cycle through stack slots by a spare slot. Rematerialized values read nothing and come last.
 *
 * Invariant: destinations are distinct (the same move may be given twice); locations are those of Allocation, and slots
 * of different sizes never overlap.
 */
import { grown } from "../base/columns.ts";
import { Bug } from "../base/errors.ts";
import { TY } from "../ir/types.ts";
import type { Allocation } from "../codegen/allocation.ts";

/** Above this many moves, copies of one slot are not searched for. */
const SEARCH_LIMIT = 24;

/** Appends an edit. `remat`: 0 a move, −1 an exchange, i + 1 the rematerialization of instruction i. */
function appendEdit(out: Allocation, at: number, from: number, remat: number, to: number, ty: number): void {
  const k = out.editCount++;
  if (k >= out.editAt.length) growEdits(out);
  out.editAt[k] = at;
  out.editFrom[k] = from;
  out.editRemat[k] = remat;
  out.editTo[k] = to;
  out.editTy[k] = ty;
}

function growEdits(out: Allocation): void {
  const size = out.editAt.length * 2;
  out.editAt = grown(out.editAt, size);
  out.editFrom = grown(out.editFrom, size);
  out.editRemat = grown(out.editRemat, size);
  out.editTo = grown(out.editTo, size);
  out.editTy = grown(out.editTy, size);
}

/** Index of a location in the tables below: registers 0-63, then slots. */
function key(location: number): number {
  return location >= 0 ? location : 63 - location;
}

function isGeneral(ty: number): boolean {
  return ty === TY.I32 || ty === TY.I64 || ty === TY.REF;
}

export class ParallelMoves {
  count = 0;
  #from: Int32Array = new Int32Array(64);
  #to: Int32Array = new Int32Array(64);
  #remat: Int32Array = new Int32Array(64);
  #ty: Uint8Array = new Uint8Array(64);
  #ready: Int32Array = new Int32Array(64);
  /** Per location key: how many pending moves read it, and the pending move that writes it, plus one. */
  #readers: Int32Array = new Int32Array(256);
  #writer: Int32Array = new Int32Array(256);
  /** Spare slots of this function for cycles through memory: location, or 0 if not allocated yet. */
  #spare8 = 0;
  #spare16 = 0;

  /** Forgets the spare slots: call once per function. */
  beginFunction(): void {
    this.#spare8 = 0;
    this.#spare16 = 0;
    this.count = 0;
  }

  /** Adds a move; with `remat` ≠ 0 the rematerialization of instruction remat − 1 (`from` is then ignored). */
  add(from: number, remat: number, to: number, ty: number): void {
    if (remat === 0 && from === to) return;
    const k = this.count++;
    if (k >= this.#from.length) this.#grow();
    this.#from[k] = from;
    this.#to[k] = to;
    this.#remat[k] = remat;
    this.#ty[k] = ty;
  }

  #grow(): void {
    const size = this.#from.length * 2;
    this.#from = grown(this.#from, size);
    this.#to = grown(this.#to, size);
    this.#remat = grown(this.#remat, size);
    this.#ready = grown(this.#ready, size);
    this.#ty = grown(this.#ty, size);
  }

  /** Appends the moves added since the last call to `out`, in a valid order, and empties the set. */
  resolve(out: Allocation, at: number): void {
    const n = this.count;
    if (n === 0) return;
    if (n === 1) {
      this.count = 0;
      appendEdit(out, at, this.#from[0], this.#remat[0], this.#to[0], this.#ty[0]);
      return;
    }
    this.#enter(n);
    const left = this.#performReady(out, at, n);
    if (left > 0) this.#breakCycles(out, at, n);
    const from = this.#from, to = this.#to, remat = this.#remat, ty = this.#ty;
    for (let k = 0; k < n; k++) {
      if (remat[k] > 0 && to[k] !== from[k]) appendEdit(out, at, 0, remat[k], to[k], ty[k]);
      this.#writer[key(to[k])] = 0;
    }
    this.count = 0;
  }

  /** Fills the tables. From here on `to === from` marks a move as done or, if it was given twice, as dropped. */
  #enter(n: number): void {
    const from = this.#from, to = this.#to, remat = this.#remat;
    let most = 0;
    for (let k = 0; k < n; k++) {
      if (remat[k] === 0) most = Math.max(most, key(from[k]));
      most = Math.max(most, key(to[k]));
    }
    if (most >= this.#readers.length) {
      this.#readers = grown(this.#readers, most * 2);
      this.#writer = grown(this.#writer, most * 2);
    }
    const readers = this.#readers, writer = this.#writer;
    for (let k = 0; k < n; k++) {
      const d = key(to[k]), other = writer[d] - 1;
      if (other >= 0) {
        if (remat[other] !== remat[k] || (remat[k] === 0 && from[other] !== from[k])) {
          throw new Bug(`parallel moves: two values for location ${to[k]}`);
        }
        from[k] = to[k];
        continue;
      }
      writer[d] = k + 1;
      if (remat[k] === 0) readers[key(from[k])]++;
      else from[k] = ~to[k];
    }
  }

  /**
   * Performs every move whose destination has no readers, until there are none. Returns the number of moves left, all
   * in cycles.
   */
  #performReady(out: Allocation, at: number, n: number): number {
    const from = this.#from, to = this.#to, remat = this.#remat, ty = this.#ty, ready = this.#ready;
    const readers = this.#readers, writer = this.#writer;
    let first = 0, last = 0, left = 0;
    for (let k = 0; k < n; k++) {
      if (remat[k] !== 0 || from[k] === to[k]) continue;
      left++;
      if (readers[key(to[k])] === 0) ready[last++] = k;
    }
    while (first < last) {
      const k = ready[first++], source = from[k], target = to[k];
      appendEdit(out, at, source, 0, target, ty[k]);
      from[k] = target;
      left--;
      const s = key(source);
      readers[s]--;
      // Other copies of a slot read the register that now holds it.
      if (source < 0 && target >= 0 && readers[s] > 0 && n <= SEARCH_LIMIT) {
        for (let j = 0; j < n; j++) {
          if (remat[j] === 0 && from[j] === source && to[j] !== source) {
            from[j] = target;
            readers[s]--;
            readers[key(target)]++;
          }
        }
      }
      if (readers[s] === 0) {
        const w = writer[s] - 1;
        if (w >= 0 && remat[w] === 0 && from[w] !== to[w]) ready[last++] = w;
      }
    }
    return left;
  }

  #breakCycles(out: Allocation, at: number, n: number): void {
    const from = this.#from, to = this.#to, remat = this.#remat;
    for (let k = 0; k < n; k++) {
      if (remat[k] !== 0 || from[k] === to[k]) continue;
      let slot = -1;
      for (let j = k;;) {
        if (slot < 0 && to[j] < 0) slot = j;
        j = this.#writer[key(from[j])] - 1;
        if (j === k) break;
      }
      if (slot < 0) this.#exchange(out, at, k);
      else this.#passThroughSpare(out, at, slot);
    }
  }

  /** A cycle of registers: exchanges backwards from the destination of move `k`. */
  #exchange(out: Allocation, at: number, k: number): void {
    const from = this.#from, to = this.#to, writer = this.#writer;
    let widest = isGeneral(this.#ty[k]) ? TY.I64 : TY.F64 as number;
    for (let j = writer[key(from[k])] - 1; j !== k; j = writer[key(from[j])] - 1) {
      if (this.#ty[j] === TY.V128) widest = TY.V128;
    }
    if (this.#ty[k] === TY.V128) widest = TY.V128;
    // to[k] receives its value from from[k]; the old value of to[k] is then in from[k], where the next exchange finds
    // it.
    for (let j = k;;) {
      const source = from[j], next = writer[key(source)] - 1;
      this.#readers[key(source)] = 0;
      from[j] = to[j];
      if (next === k) break;
      appendEdit(out, at, source, -1, to[j], widest);
      j = next;
    }
  }

  /**
   * A cycle with a slot: saves the value that move `k` overwrites, performs the cycle backwards, ends with the saved
   * value.
   */
  #passThroughSpare(out: Allocation, at: number, k: number): void {
    const from = this.#from, to = this.#to, ty = this.#ty, writer = this.#writer;
    // The move that reads to[k] is the last of the cycle.
    let reader = k;
    for (let j = k;;) {
      const next = writer[key(from[j])] - 1;
      if (next === k) {
        reader = j;
        break;
      }
      j = next;
    }
    const spare = this.#spareSlot(out, ty[reader]);
    appendEdit(out, at, to[k], 0, spare, ty[reader]);
    for (let j = k;;) {
      const next = writer[key(from[j])] - 1;
      this.#readers[key(from[j])] = 0;
      appendEdit(out, at, j === reader ? spare : from[j], 0, to[j], ty[j]);
      from[j] = to[j];
      if (j === reader) break;
      j = next;
    }
  }

  #spareSlot(out: Allocation, ty: number): number {
    if (ty === TY.V128) {
      if (this.#spare16 === 0) {
        if ((out.slotOffset(out.slotCount) & 8) !== 0) out.slotCount++;
        this.#spare16 = -1 - out.slotCount;
        out.slotCount += 2;
      }
      return this.#spare16;
    }
    if (this.#spare8 === 0) this.#spare8 = -1 - out.slotCount++;
    return this.#spare8;
  }
}
