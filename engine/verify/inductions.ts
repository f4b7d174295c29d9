/**
 * Induction variables of one loop: locations to which every iteration (turn) adds the same constant. In: the facts at
 * the loop's head, on the edges into the loop and on the back edges. Out: bounds of all of them, from the bounds of
 * one, the counter.
 *
 *     turns ≤ (largest counter − smallest counter at entry) / increment of the counter
 *     value at the head = value at entry + turns × increment
 *
 * The counter is joined like any other location, so its largest value holds at every turn. Then the bounds of the
 * others hold by induction over the turns: the sum of each turn is exact, because names only survive sums that do not
 * wrap.
 */
import type { Facts } from "./facts.ts";
import { isNamedLimit } from "./limits.ts";

const NUMBER = 0;

/** The inductions of a loop that an earlier interpretation found. */
export interface Hint {
  /** The location of the counter, and its largest value at the head. */
  readonly counter: number;
  readonly high: number;
  /** By location: the amount that each turn adds; NaN: other changes. */
  readonly increments: Float64Array;
}

/** Largest upper bound of a usable counter; a larger bound is only that of its type. */
const MAX_TURNS = 0x7ffffffe;

export class Inductions {
  readonly #facts: Facts;
  readonly #count: number;
  readonly #hint: Hint | undefined;
  /** Bounds and room on the edges into the loop, by location. */
  readonly #low: Float64Array;
  readonly #high: Float64Array;
  readonly #room: Float64Array;
  readonly #increments: Float64Array;
  /** By location: 1 if its bounds come from the counter. */
  readonly #follows: Uint8Array;
  /** The largest values on all edges to the head, by location. */
  readonly #most: Float64Array;
  #turned = false;
  /** Locations that have stopped following since the last join: nothing is known of them, for edges were not joined. */
  readonly #lost: number[] = [];

  /** `facts`: those at the head. */
  constructor(facts: Facts, count: number, hint: Hint | undefined) {
    this.#facts = facts;
    this.#count = count;
    this.#hint = hint;
    this.#low = facts.low.slice(0, count);
    this.#high = facts.high.slice(0, count);
    this.#room = facts.room.slice(0, count);
    this.#most = this.#high.slice();
    this.#increments = new Float64Array(count).fill(NaN);
    this.#follows = new Uint8Array(count);
    if (hint === undefined || !(facts.low[hint.counter] <= hint.high)) return;
    for (let l = 0; l < Math.min(count, hint.increments.length); l++) {
      const isNumber = facts.kind[l] === NUMBER && l !== hint.counter;
      const increment = hint.increments[l];
      this.#follows[l] = isNumber && increment !== 0 && !Number.isNaN(increment) ? 1 : 0;
    }
    const { counter } = hint;
    facts.step[counter] = this.#stepOf(counter, hint.increments[counter]);
    facts.high[counter] = Math.max(facts.high[counter], hint.high);
  }

  isFollower(l: number): boolean {
    return this.#follows[l] === 1;
  }

  /** Calls `action` with each location that has stopped following since the last call. */
  eachLost(action: (l: number) => void): void {
    while (this.#lost.length > 0) action(this.#lost.pop()!);
  }

  /** Joins another edge into the loop. */
  enter(facts: Facts, count: number): void {
    for (let l = 0; l < this.#count; l++) {
      if (l >= count || facts.kind[l] !== NUMBER) {
        if (l === this.#hint?.counter) this.#loseAll();
        this.#lose(l);
        continue;
      }
      this.#low[l] = Math.min(this.#low[l], facts.low[l]);
      this.#high[l] = Math.max(this.#high[l], facts.high[l]);
      this.#most[l] = Math.max(this.#most[l], facts.high[l]);
      const isSame = facts.of[l] === this.#facts.of[l];
      this.#room[l] = isSame ? Math.min(this.#room[l], facts.room[l]) : -Infinity;
    }
  }

  /** Joins a back edge: every location that follows must have changed as before. */
  turn(facts: Facts, count: number): void {
    const { name, delta, kind } = this.#facts;
    for (let l = 0; l < this.#count; l++) {
      const isSum = l < count && kind[l] === NUMBER && facts.kind[l] === NUMBER && name[l] !== 0 &&
        name[l] === facts.name[l];
      const increment = isSum ? facts.delta[l] - delta[l] : NaN;
      if (l < count) this.#most[l] = Math.max(this.#most[l], facts.high[l]);
      if (!this.#turned) this.#increments[l] = increment;
      else if (this.#increments[l] !== increment) this.#increments[l] = NaN;
      if (this.#follows[l] === 1 && increment !== this.#hint?.increments[l]) this.#lose(l);
    }
    this.#turned = true;
    const hint = this.#hint;
    if (hint !== undefined && this.#increments[hint.counter] !== hint.increments[hint.counter]) this.#loseAll();
  }

  #loseAll(): void {
    for (let l = 0; l < this.#count; l++) this.#lose(l);
  }

  /** The bounds of location `l` no longer come from the counter, and the edges joined so far left them out. */
  #lose(l: number): void {
    if (this.#follows[l] === 0) return;
    this.#follows[l] = 0;
    this.#lost.push(l);
  }

  /** Bounds the locations that follow; returns whether a bound became weaker. */
  apply(): boolean {
    const hint = this.#hint;
    if (hint === undefined) return false;
    const turns = this.#turns(hint);
    let changed = false;
    for (let l = 0; l < this.#count; l++) if (this.#follows[l] === 1 && this.#bound(l, hint, turns)) changed = true;
    return changed;
  }

  #turns({ counter, increments }: Hint): number {
    return Math.floor((this.#facts.high[counter] - this.#low[counter]) / increments[counter]);
  }

  #bound(l: number, { increments }: Hint, turns: number): boolean {
    const { traits, low, high, of, room, step } = this.#facts;
    const distance = turns * increments[l];
    const ownLow = this.#low[l] + Math.min(distance, 0), ownHigh = this.#high[l] + Math.max(distance, 0);
    const ownRoom = this.#room[l] - Math.max(distance, 0);
    const ownStep = this.#stepOf(l, increments[l]);
    const changed = ownLow < low[l] || ownHigh > high[l] || ownRoom < room[l] || ownStep !== step[l];
    traits[l] = 0;
    // The room of an index of elements does not count bytes.
    if (isNamedLimit(of[l])) of[l] = -1;
    low[l] = ownLow;
    high[l] = ownHigh;
    room[l] = ownRoom;
    step[l] = ownStep;
    return changed;
  }

  /** The distance between values of a location that begins with a constant; 1 for others. */
  #stepOf(l: number, increment: number): number {
    return this.#low[l] === this.#high[l] ? Math.abs(increment) : 1;
  }

  /**
   * The counter that allows the fewest turns, for another interpretation, which joins it like any other location;
   * undefined if there is none.
   */
  hint(): Hint | undefined {
    let counter = -1, fewest = Infinity;
    for (let l = 0; l < this.#count; l++) {
      const most = this.#most[l], turns = (most - this.#low[l]) / this.#increments[l];
      if (!(this.#increments[l] > 0) || most > MAX_TURNS || !(turns < fewest)) continue;
      counter = l;
      fewest = turns;
    }
    if (counter < 0) return undefined;
    return { counter, high: this.#most[counter], increments: this.#increments.slice() };
  }
}
