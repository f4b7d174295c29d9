/**
 * The abstract domain of the verifier: facts about the values of locations (registers, stack slots, and a few
 * pseudo-locations) at one point of a function. Facts are columns of small numbers; nothing is allocated per
 * instruction.
 *
 *     kind, id      the kind of the value (value_kinds.ts): a number, or an address in a known object, and which one
 *     low, high     bounds of the number, or of the distance from the start of the object; high is Infinity if unknown
 *     name, delta   the value (or the distance) equals that of the named value plus delta, as integers without
 *                   wrapping. Locations with one name change together when a branch refines one of them. 0: no name
 *     step          a number is `low` plus a multiple of `step`: 1 if nothing is known, without meaning for a constant
 *     room, of      value + room is at most the length `of` (LIMIT); of < 0: nothing is known
 *
 * A name denotes one value: the result of an instruction, or that of a location at a join. A join that closes a loop
 * renames all locations, so a name never denotes values of two iterations. Lengths of memories and tables never
 * decrease, so room and lower bounds of lengths keep holding.
 *
 * Invariant: a fact that is recorded holds in every execution that reaches the point. Facts are only lost where paths
 * meet.
 */
import { HEAP } from "../wasm/types.ts";
import { Columns } from "./columns.ts";
import { isArrayLimit, limitShift, tableOfLimit } from "./limits.ts";
import { BOUNDED_KINDS, HAVE_LIMITS, SHORT_KINDS, VALUE } from "./value_kinds.ts";

/** Locations that every state has, after the registers. */
export const PLACE = {
  /** Operands of the last compare. */
  LEFT: 16,
  RIGHT: 17,
  /** The result of the load, or the address, that is being evaluated. */
  RESULT: 18,
  ADDRESS: 19,
  /** Lower bounds of the lengths of the first memories and tables, in `low` (lengthPlace). */
  LENGTHS: 20,
  /** 1 if the overflow buffer has the payload of the exception that was caught. */
  PAYLOAD: 28,
  /** The first location that only some architectures have (Machine.firstSlot). */
  MORE: 29,
} as const;
/** Number of memories, and of tables, whose lengths have lower bounds. */
export const KNOWN_LENGTHS: number = (PLACE.PAYLOAD - PLACE.LENGTHS) / 2;

/** The location of the lower bound of length `limit`, 0: none. */
export function lengthPlace(limit: number): number {
  if (limit < KNOWN_LENGTHS) return PLACE.LENGTHS + limit;
  const table = tableOfLimit(limit);
  return table >= 0 && table < KNOWN_LENGTHS ? PLACE.LENGTHS + KNOWN_LENGTHS + table : 0;
}

/** The largest value in 32 bits. */
export const MAX32 = 0xffffffff;
/** Arithmetic above this is not exact in a double. */
export const EXACT = 2 ** 53;

/** Facts about all locations at one point. */
export class Facts extends Columns {
  /** Steps are kept; otherwise all are 1. */
  hasSteps = false;

  constructor(capacity?: number) {
    super(PLACE.MORE, capacity);
  }

  /** Location `l` has a value of `kind`, named `name` (0: no name), without step and limit. */
  set(l: number, kind: number, id: number, low: number, high: number, name: number): void {
    this.kind[l] = kind;
    this.id[l] = id;
    this.low[l] = low;
    this.high[l] = high;
    this.name[l] = name;
    this.delta[l] = 0;
    this.step[l] = 1;
    this.room[l] = 0;
    this.of[l] = -1;
  }

  /** Location `l` has a number about which only its bounds are known. */
  number(l: number, low: number, high: number, name: number): void {
    this.set(l, VALUE.NUMBER, 0, low, high, name);
  }

  /** Nothing is known about location `l`. */
  forget(l: number): void {
    this.set(l, VALUE.NUMBER, 0, 0, Infinity, 0);
  }

  /** Location `to` has the value of location `from`. */
  copy(to: number, from: number): void {
    this.copyFrom(to, this, from);
  }

  isNumber(l: number): boolean {
    return this.kind[l] === VALUE.NUMBER;
  }

  /** The outcome of a test at location `l` is used as a number: the meaning of the test is forgotten. */
  takeNumber(l: number): void {
    if (this.kind[l] !== VALUE.TYPE_TEST) return;
    const delta = this.delta[l];
    this.number(l, 0, 1, this.name[l]);
    this.delta[l] = delta;
  }

  /** Whether the value is known exactly. */
  isConstant(l: number): boolean {
    return this.kind[l] === VALUE.NUMBER && this.low[l] === this.high[l];
  }

  /** Whether the value is below 2^32. */
  isShort(l: number): boolean {
    const kind = this.kind[l];
    if (kind === VALUE.NUMBER || kind === VALUE.LENGTH) return this.high[l] <= MAX32;
    if (kind === VALUE.REFERENCE) return this.heap[l] === HEAP.i31;
    return SHORT_KINDS[kind] !== 0;
  }

  /** Whether the location holds the start of object (kind, id). */
  isStart(l: number, kind: number, id: number): boolean {
    return this.kind[l] === kind && this.id[l] === id && this.low[l] === 0 && this.high[l] === 0;
  }

  /** Adds the constant `amount` to the value or distance of location `l`, which does not wrap. */
  shift(l: number, amount: number): void {
    this.low[l] += amount;
    this.high[l] += amount;
    if (this.kind[l] === VALUE.ELEMENT) return;
    if (this.kind[l] === VALUE.NUMBER) this.traits[l] = 0;
    this.delta[l] += amount;
    this.moveRoom(l, amount);
  }

  /** The value of location `l` has grown by `amount`; the room of a shifted index counts elements, and is lost. */
  moveRoom(l: number, amount: number): void {
    const of = this.of[l];
    if (isArrayLimit(of) && limitShift(of) !== 0 && amount !== 0) this.of[l] = -1;
    this.room[l] -= amount;
  }

  /** The value of location `x`, and of all with its name, is at most `bound`. */
  boundAbove(x: number, bound: number): void {
    const name = this.name[x], delta = this.delta[x];
    if (bound < this.high[x]) this.#lowerTo(x, bound);
    if (name === 0) return;
    for (let l = 0; l < this.count; l++) {
      if (this.name[l] !== name || BOUNDED_KINDS[this.kind[l]] === 0) continue;
      const own = bound + this.delta[l] - delta;
      if (own < this.high[l]) this.#lowerTo(l, own);
    }
  }

  /** The number at location `l` is at most `bound`. */
  #lowerTo(l: number, bound: number): void {
    const { low, step } = this;
    this.high[l] = step[l] === 1 || bound < low[l] ? bound : low[l] + Math.floor((bound - low[l]) / step[l]) * step[l];
  }

  /** The number at location `l` is at least `bound`. */
  #raiseTo(l: number, bound: number): void {
    const { low, step } = this;
    low[l] = step[l] === 1 ? bound : low[l] + Math.ceil((bound - low[l]) / step[l]) * step[l];
  }

  /** The step of the number at location `l`; 0 for a constant. */
  stepOf(l: number): number {
    return this.hasSteps && this.low[l] === this.high[l] ? 0 : this.step[l];
  }

  /** Sets the step of the number at location `l`; 0 for a constant. */
  setStep(l: number, step: number): void {
    this.step[l] = this.hasSteps && step !== 0 ? step : 1;
  }

  /** The value of location `x`, and of all with its name, is at least `bound`. */
  boundBelow(x: number, bound: number): void {
    const name = this.name[x], delta = this.delta[x];
    if (bound > this.low[x]) this.#raiseTo(x, bound);
    if (name === 0) return;
    for (let l = 0; l < this.count; l++) {
      if (this.name[l] !== name || this.kind[l] !== VALUE.NUMBER) continue;
      const own = bound + this.delta[l] - delta;
      if (own > this.low[l]) this.#raiseTo(l, own);
    }
  }

  /** The value of location `x` plus `room` is at most length `limit`; so for all with its name. */
  boundByLength(x: number, room: number, limit: number): void {
    const name = this.name[x], delta = this.delta[x];
    for (let l = 0; l < this.count; l++) {
      if (l !== x && (name === 0 || this.name[l] !== name)) continue;
      if (this.kind[l] === VALUE.ELEMENT && limit === this.of[l]) {
        this.room[l] = Math.max(this.room[l], room + delta - this.delta[l]);
        continue;
      }
      if (HAVE_LIMITS[this.kind[l]] === 0) continue;
      const own = room + delta - this.delta[l];
      if (this.of[l] === limit && this.room[l] >= own) continue;
      this.room[l] = own;
      this.of[l] = limit;
    }
  }
}
