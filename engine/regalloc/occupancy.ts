/**
 * Availability of physical registers at the current position of the linear scan: the interval in each register, and the
 * ranges in which instructions claim registers for themselves (Liveness: fixed ranges). Positions only grow from call
 * to call, so that finding a register's next fixed range takes constant time on average.
 */
import type { Liveness } from "./liveness.ts";

const FAR = 0x7fffffff;

export class Occupancy {
  /** Per physical register: the interval that has it (or had it last), and until when. */
  readonly interval: Int32Array = new Int32Array(64);
  readonly until: Int32Array = new Int32Array(64);
  /** Position until which a loop reserves the register for the value on its back edge. */
  readonly kept: Int32Array = new Int32Array(64);
  /** The first fixed range that has not ended: its number in Liveness, start and end. */
  readonly #fixed: Int32Array = new Int32Array(64);
  readonly #fixedFrom: Int32Array = new Int32Array(64);
  readonly #fixedTo: Int32Array = new Int32Array(64);
  #live!: Liveness;

  begin(live: Liveness): void {
    this.#live = live;
    this.interval.fill(0);
    this.until.fill(0);
    this.kept.fill(0);
    const fixedHead = live.fixedHead, fixedFrom = live.fixedFrom, fixedTo = live.fixedTo;
    for (let r = 0; r < 64; r++) {
      const f = fixedHead[r];
      this.#fixed[r] = f;
      this.#fixedFrom[r] = f !== 0 ? fixedFrom[f] : FAR;
      this.#fixedTo[r] = f !== 0 ? fixedTo[f] : FAR;
    }
  }

  /** First position in [at, limit) at which a fixed range denies register r to virtual register x; else `limit`. */
  freeUntil(r: number, at: number, limit: number, x: number): number {
    if (this.#fixedTo[r] <= at) this.#advance(r, at);
    return this.#fixedFrom[r] >= limit ? limit : this.#conflict(r, at, limit, x);
  }

  #advance(r: number, at: number): void {
    const live = this.#live;
    let f = this.#fixed[r];
    while (f !== 0 && live.fixedTo[f] <= at) f = live.fixedNext[f];
    this.#fixed[r] = f;
    this.#fixedFrom[r] = f !== 0 ? live.fixedFrom[f] : FAR;
    this.#fixedTo[r] = f !== 0 ? live.fixedTo[f] : FAR;
  }

  #conflict(r: number, at: number, limit: number, x: number): number {
    const live = this.#live;
    for (let f = this.#fixed[r]; f !== 0 && live.fixedFrom[f] < limit; f = live.fixedNext[f]) {
      if (live.fixedTag[f] !== x) return Math.max(live.fixedFrom[f], at);
    }
    return limit;
  }
}
