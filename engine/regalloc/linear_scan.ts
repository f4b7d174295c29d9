/**
 * Linear scan over the live intervals (liveness.ts), in order of position: assigns each interval a physical register or
 * its value's stack slot, splitting intervals where a register ends (Wimmer and Mössenböck, "Optimized Interval
 * Splitting in a Linear Scan Register Allocator", 2005; Traub and others, "Quality and Speed in Linear-scan Register
 * Allocation", 1998).
 *
 * Each interval is allocated on its own: after a lifetime hole a value merely prefers its previous register. So there
 * is no list of inactive intervals to search, "active" is one interval per register, and the queue is a list per
 * position: time is linear except for the number of registers.
 *
 * Establishes: intervals of different values never share a register at a position; fixed ranges are respected; every
 * use that needs a register, and every definition, is in an interval that has one. Moves follow from the intervals
 * (resolve.ts).
 */
import { grown } from "../base/columns.ts";
import { Bug } from "../base/errors.ts";
import type { f64 } from "../base/numbers.ts";
import type { AllocatableRegisters, AllocatorOptions } from "./allocator_options.ts";
import type { BlockFacts } from "./block_facts.ts";
import { OptionRestrictions } from "./option_restrictions.ts";
import { DEF_KIND, IN_SLOT, isVector, type Liveness, USE_HINT_SHIFT, USE_KIND, USE_LATE } from "./liveness.ts";
import { Occupancy } from "./occupancy.ts";
import {
  belongsInRegister,
  evictionCost,
  hoistedPosition,
  parameterBelongsInSlot,
  reloadPosition,
  spillPosition,
  useEnd,
} from "./split_position.ts";
import type { VCode } from "../codegen/vcode.ts";

const FAR = 0x7fffffff;
/** The length to which a chain of affinities is followed. */
const HOPS = 5;
/** Number of uses ahead that are searched for a fixed register. */
const HINT_USES = 4;
/** Number of uses ahead that are searched for the last one before a register ends. */
const USES_AHEAD = 64;
/** Number of a block's edges whose arguments vote for the parameter's register. */
const VOTERS = 16;
/** The number of intervals of a value that are searched for its location at the end of a preceding block. */
const SEARCH_LIMIT = 32;
/** Cost of rematerialization relative to that of a reload. */
const REMAT_DISCOUNT = 0.5;

export class LinearScan {
  readonly #live: Liveness;
  readonly #facts: BlockFacts;
  #v!: VCode;
  #registers!: AllocatableRegisters;
  #options!: AllocatorOptions;

  /** Per virtual register: whether it is in its slot at any position; and the list of those that are. */
  needsSlot: Uint8Array = new Uint8Array(0);
  slotted: Int32Array = new Int32Array(64);
  slottedCount = 0;
  /** Per virtual register: the physical one it had last, or that its affinity's sources have; −1 none. */
  #last: Int8Array = new Int8Array(0);
  #wanted: Int8Array = new Int8Array(0);
  /** Per virtual register: the physical one it had at the last loop header; −1 none. */
  #home: Int8Array = new Int8Array(0);
  /** Per virtual register: the last use before the current position (the uses from there on are Liveness.useHead). */
  #past: Int32Array = new Int32Array(0);

  /** Per position: first interval that starts there. */
  #queue: Int32Array = new Int32Array(0);
  readonly #occupancy = new Occupancy();
  /** Weights of registers in #elect; zero between calls. */
  readonly #votes: Float64Array = new Float64Array(64);
  #bestVotes: f64 = 0;
  /** Index into clobberAll of the next position that destroys all registers. */
  #clobber = -1;

  readonly #keys = new OptionRestrictions();
  /** Intervals from this number on result from splits. */
  #firstCut = 0;

  // The interval being allocated.
  #interval = 0;
  #vreg = 0;
  #at = 0;
  /**
   * The end of the interval, or the position at which it has to move to its slot (`lost`) because everything is
   * destroyed afterwards.
   */
  #limit = 0;
  #lost = false;
  /** The position that destroys all registers, if `lost`. */
  #clobberAt = 0;
  /** The uses before `clobberAt` are too many to search. */
  #many = false;
  /** Mask of the registers of its bank that optimization keys deny to it. */
  #avoid = 0;
  /** It must have a register up to here (0: it need not have one). */
  #needed = 0;

  constructor(live: Liveness, facts: BlockFacts) {
    this.#live = live;
    this.#facts = facts;
  }

  /** Gives every interval a location. */
  run(v: VCode, registers: AllocatableRegisters, options: AllocatorOptions): void {
    this.#v = v;
    this.#registers = registers;
    this.#options = options;
    this.#prepare();
    const queue = this.#queue, live = this.#live, start = this.#facts.start, loop = this.#facts.loop;
    const blocks = this.#facts.blockCount;
    for (let block = 0; block < blocks; block++) {
      const first = start[block], end = start[block + 1];
      if (loop[block] === block) this.#enterLoop(block, first);
      if (queue[first] !== 0) this.#enterBlock(first);
      for (let p = first; p < end; p++) {
        let interval = queue[p];
        while (interval !== 0) {
          queue[p] = live.intervalLink[interval];
          this.#allocate(interval, p, false);
          interval = queue[p];
        }
      }
    }
  }

  /**
   * At a block's start, intervals that get a preferred register come first, so that the others do not take it from
   * them.
   */
  #enterBlock(p: number): void {
    const live = this.#live;
    let interval = this.#queue[p], later = 0;
    this.#queue[p] = 0;
    while (interval !== 0) {
      const next = live.intervalLink[interval];
      if (!this.#allocate(interval, p, true)) {
        live.intervalLink[interval] = later;
        later = interval;
      }
      interval = next;
    }
    while (later !== 0) {
      const next = live.intervalLink[later];
      this.#allocate(later, p, false);
      later = next;
    }
  }

  /** At a loop's header: decides which values go around the loop in their registers. */
  #enterLoop(header: number, p: number): void {
    const live = this.#live, destroyed = live.destroyed[header] !== 0;
    this.#at = p;
    for (let r = 0; r < 64; r++) {
      if (this.#occupancy.until[r] <= p) continue;
      const x = live.intervalVreg[this.#occupancy.interval[r]];
      this.#home[x] = r;
      if (!destroyed) continue;
      this.#advance(x, p);
      if (!belongsInRegister(live, this.#facts, header, live.useHead[x])) this.#evict(r);
    }
  }

  #prepare(): void {
    const live = this.#live, vregs = this.#v.vregCount, positions = this.#facts.numbers * 2;
    if (vregs > this.needsSlot.length) {
      this.needsSlot = new Uint8Array(vregs * 2);
      this.#last = new Int8Array(vregs * 2);
      this.#home = new Int8Array(vregs * 2);
      this.#wanted = new Int8Array(vregs * 2);
      this.#past = new Int32Array(vregs * 2);
    }
    this.needsSlot.fill(0, 0, vregs);
    this.slottedCount = 0;
    this.#last.fill(-1, 0, vregs);
    this.#home.fill(-1, 0, vregs);
    this.#wanted.fill(-1, 0, vregs);
    this.#past.fill(0, 0, vregs);
    if (positions > this.#queue.length) this.#queue = new Int32Array(positions * 2);
    const queue = this.#queue,
      intervalNext = live.intervalNext,
      intervalFrom = live.intervalFrom,
      link = live.intervalLink;
    queue.fill(0, 0, positions);
    for (let x = vregs - 1; x > 0; x--) {
      for (let p = live.intervalHead[x]; p !== 0; p = intervalNext[p]) {
        const at = intervalFrom[p];
        link[p] = queue[at];
        queue[at] = p;
      }
    }
    this.#firstCut = live.intervalCount;
    this.#occupancy.begin(live);
    this.#clobber = live.clobberAllCount - 1;
    this.#avoid = 0;
    this.#keys.begin(this.#v, live, this.#facts, this.#registers, this.#options);
  }

  /**
   * Allocates an interval that starts at p. With `wishes`, only if a preferred register is free; otherwise it always
   * succeeds.
   */
  #allocate(interval: number, p: number, wishes: boolean): boolean {
    const live = this.#live, x = live.intervalVreg[interval], to = live.intervalTo[interval];
    const defined = live.defPos[x] === p, kind = defined ? live.defKind[x] : DEF_KIND.NONE;
    this.#interval = interval;
    this.#vreg = x;
    this.#at = p;
    this.#advance(x, p);
    const clobber = this.#nextClobber(p);
    this.#limit = to;
    this.#lost = false;
    if (kind === DEF_KIND.FIXED) {
      this.#placeFixedDef(live.defFixed[x], clobber);
      return true;
    }
    this.#needed = this.#neededUntil(kind);
    if (this.#keys.restrict) this.#avoid = this.#keys.denied(x, p, to);
    if (kind === DEF_KIND.PARAM && (!this.#keys.mayMerge(x, p) || this.#belongsInSlot(x, p, to))) {
      this.#spill(interval, p);
      return true;
    }
    let came = -1;
    if (
      this.#needed === 0 && !defined && interval < this.#firstCut &&
      this.#facts.start[this.#facts.blockOf[p >> 1]] === p
    ) {
      came = this.#locationBefore(interval, p);
      if (came === IN_SLOT) {
        this.#spill(interval, p);
        return true;
      }
    }
    if (clobber < to) {
      this.#limitTo(clobber);
      if (this.#limit <= p && this.#needed === 0) {
        this.#spill(interval, p);
        return true;
      }
    }
    if (this.#limit < this.#needed) {
      throw new Bug(
        `register allocation: instruction ${this.#instruction(p)} destroys every register that v${x} could have`,
      );
    }
    const wish = this.#wish(came, kind);
    if (wish >= 0) {
      this.#assign(wish, this.#limit);
      return true;
    }
    if (wishes) return false;
    this.#choose();
    return true;
  }

  /** Whether x, a parameter of the block at p that lives until `to`, costs less in its slot at the block's start. */
  #belongsInSlot(x: number, p: number, to: number): boolean {
    const live = this.#live, facts = this.#facts, block = facts.blockOf[p >> 1];
    if (facts.loop[block] !== block || live.destroyed[block] === 0 || this.#nextClobber(p) >= to) return false;
    return parameterBelongsInSlot(live, facts, this.#v, block, x, live.useHead[x]);
  }

  /** The current interval loses its register at `clobber` at the latest: decides when, by its last use before. */
  #limitTo(clobber: number): void {
    const end = this.#lastUseEnd(clobber), p = this.#at, needed = this.#needed;
    this.#lost = true;
    this.#clobberAt = clobber;
    // With too many uses to search, it keeps the register to the end; the queue handles the rest.
    this.#many = end === FAR;
    if (end === FAR) this.#limit = clobber;
    else if (end <= p && needed === 0) this.#limit = spillPosition(this.#facts, p, clobber);
    else this.#limit = spillPosition(this.#facts, Math.max(end, needed), clobber);
  }

  /** The next position from p on at which every register is destroyed. */
  #nextClobber(p: number): number {
    const clobberAll = this.#live.clobberAll;
    let c = this.#clobber;
    while (c >= 0 && clobberAll[c] < p) c--;
    this.#clobber = c;
    return c >= 0 ? clobberAll[c] : FAR;
  }

  /** Moves the use cursor of x to its first use at or after p. */
  #advance(x: number, p: number): void {
    const live = this.#live, usePos = live.usePos;
    let u = live.useHead[x];
    if (u === 0 || usePos[u] >= p) return;
    let past = u;
    do {
      past = u;
      u = live.useNext[u];
    } while (u !== 0 && usePos[u] < p);
    live.useHead[x] = u;
    this.#past[x] = past;
  }

  /** The end of the range in which the current interval requires a register; 0 if it requires none. */
  #neededUntil(kind: number): number {
    const live = this.#live, p = this.#at;
    if (kind === DEF_KIND.REG || kind === DEF_KIND.TIED || kind === DEF_KIND.TEMP) return (p | 1) + 1;
    let needed = 0;
    for (let u = live.useHead[this.#vreg]; u !== 0 && live.usePos[u] === p; u = live.useNext[u]) {
      const info = live.useInfo[u];
      if ((info & 3) === USE_KIND.REG) needed = Math.max(needed, p + ((info & USE_LATE) !== 0 ? 2 : 1));
    }
    return needed;
  }

  /**
   * A preferred register of the current interval that is free up to its limit, −1 for none. `came` is the location of
   * the value at the end of the preceding block.
   */
  #wish(came: number, kind: number): number {
    const live = this.#live, x = this.#vreg, last = this.#last, wanted = this.#wanted;
    if (came >= 0 && this.#isFree(came)) return came;
    let r = this.#home[x];
    if (r >= 0 && r !== came && this.#isFree(r)) return r;
    r = last[x];
    if (r >= 0 && r !== came && this.#isFree(r)) return r;
    let hops = 0, hint = -1;
    for (let a = live.affinity[x]; a !== 0 && hops < HOPS; a = live.affinity[a], hops++) {
      r = last[a] >= 0 ? last[a] : wanted[a];
      if (r >= 0) {
        if (this.#isFree(r) && this.#keys.maySink(x, kind, this.#at)) return r;
        break;
      }
      if (hint < 0) hint = live.fixedUse[a] - 1;
    }
    if (kind === DEF_KIND.PARAM) {
      r = this.#elect(x);
      if (r >= 0) return r;
    }
    r = wanted[x];
    if (r >= 0 && this.#isFree(r)) return r;
    // The register of the operand, unless the operand lives on: then a move is needed in any case.
    const source = kind === DEF_KIND.TIED ? live.tiedTo[x] : 0;
    if (source !== 0 && live.affinity[source] === x) {
      r = last[source];
      if (r >= 0 && this.#isFree(r)) return r;
    }
    let n = 0;
    for (
      let u = live.useHead[x];
      u !== 0 && n < HINT_USES && live.usePos[u] <= this.#limit;
      u = live.useNext[u], n++
    ) {
      r = (live.useInfo[u] >> USE_HINT_SHIFT) - 1;
      if (r >= 0 && this.#isFree(r)) return r;
    }
    if (hint >= 0 && this.#isFree(hint)) return hint;
    r = this.#v.vregHint[x] - 1;
    return r >= 0 && this.#isFree(r) ? r : -1;
  }

  /** The free register in which most of the arguments for block parameter x arrive on forward edges; −1 none. */
  #elect(x: number): number {
    const live = this.#live, facts = this.#facts, v = this.#v, votes = this.#votes, p = this.#at;
    const block = facts.blockOf[p >> 1], first = facts.predFirst[block];
    const end = Math.min(facts.predFirst[block + 1], first + VOTERS);
    for (let j = first; j < end; j++) {
      const e = facts.pred[j], from = v.edgeFrom[e];
      if (from >= block) continue;
      const r = this.#last[v.pool[v.argStart[e] + live.tiedTo[x]]];
      if (r >= 0) votes[r] += Math.min(facts.frequency[from], facts.frequency[block]);
    }
    let best = -1;
    for (let j = first; j < end; j++) {
      const e = facts.pred[j];
      if (v.edgeFrom[e] >= block) continue;
      const r = this.#last[v.pool[v.argStart[e] + live.tiedTo[x]]];
      if (r < 0 || votes[r] === 0) continue;
      if ((best < 0 || votes[r] > this.#bestVotes) && this.#isFree(r)) {
        best = r;
        this.#bestVotes = votes[r];
      }
      votes[r] = 0;
    }
    return best;
  }

  /** Whether register r is allocatable to the current interval, and free up to its limit. */
  #isFree(r: number): boolean {
    if (this.#occupancy.until[r] > this.#at) return false;
    const vector = isVector(this.#v.vregTy[this.#vreg]);
    const allowed = (vector ? this.#registers.vector : this.#registers.general) & ~this.#avoid;
    if ((r >= 32) !== vector || ((allowed >>> (r & 31)) & 1) === 0) return false;
    return this.#occupancy.freeUntil(r, this.#at, this.#limit, this.#vreg) >= this.#limit;
  }

  /**
   * Finds a register without preferences: a free one, else one that is free for a while, else another interval's, else
   * none.
   */
  #choose(): void {
    const p = this.#at, limit = this.#limit, x = this.#vreg, until = this.#occupancy.until;
    const order = isVector(this.#v.vregTy[x]) ? this.#registers.vectorOrder : this.#registers.generalOrder;
    let kept = -1, best = -1, bestFree = p;
    for (let j = 0; j < order.length; j++) {
      const r = order[j];
      if (until[r] > p || ((this.#avoid >>> (r & 31)) & 1) !== 0) continue;
      const free = this.#occupancy.freeUntil(r, this.#at, limit, x);
      if (free >= limit) {
        if (this.#occupancy.kept[r] <= p) {
          this.#assign(r, limit);
          return;
        }
        if (kept < 0) kept = r;
      } else if (free > bestFree) {
        best = r;
        bestFree = free;
      }
    }
    if (kept >= 0) {
      this.#assign(kept, limit);
      return;
    }
    if (best >= 0 && this.#isWorthwhile(bestFree)) {
      this.#assign(best, bestFree);
      return;
    }
    if (this.#evictCheapest(order)) return;
    if (this.#needed === 0) {
      this.#spill(this.#interval, p);
      return;
    }
    if (best >= 0 && bestFree >= this.#needed) {
      this.#assign(best, bestFree);
      return;
    }
    if (this.#avoid !== 0) {
      this.#avoid = 0;
      this.#choose();
      return;
    }
    if (this.#displace(order)) return;
    throw new Bug(`register allocation: no register for v${x} at instruction ${this.#instruction(p)}`);
  }

  #instruction(p: number): number {
    return (p >> 1) - this.#facts.blockOf[p >> 1] - 1;
  }

  /** Whether a register that is free only up to `free` covers the current interval's needs, or else its next use. */
  #isWorthwhile(free: number): boolean {
    if (this.#needed !== 0) return free >= this.#needed;
    const u = this.#live.useHead[this.#vreg];
    return (free & ~1) > this.#at && u !== 0 && this.#live.usePos[u] < (free & ~1);
  }

  /** Takes the register of the interval that costs least, if that is less than going without. */
  #evictCheapest(order: readonly number[]): boolean {
    const p = this.#at, x = this.#vreg, live = this.#live;
    let best = -1, bestFree = 0;
    let bestCost: f64 = this.#needed !== 0 ? Infinity : this.#cost(x, live.intervalTo[this.#interval]) * 0.9;
    for (let j = 0; j < order.length; j++) {
      const r = order[j], q = this.#occupancy.interval[r];
      if (this.#occupancy.until[r] <= p || ((this.#avoid >>> (r & 31)) & 1) !== 0 || !this.#isEvictable(q, p)) {
        continue;
      }
      const free = this.#occupancy.freeUntil(r, this.#at, this.#limit, x);
      if (free < this.#needed || !(this.#needed !== 0 || this.#isWorthwhile(free))) continue;
      const cost = this.#cost(live.intervalVreg[q], live.intervalTo[q]);
      if (cost < bestCost || (cost === bestCost && free > bestFree)) {
        best = r;
        bestFree = free;
        bestCost = cost;
      }
    }
    if (best < 0) return false;
    this.#evict(best);
    this.#assign(best, bestFree);
    return true;
  }

  /** Whether interval q can leave its register before or at p. It cannot if the instruction at p needs it there. */
  #isEvictable(q: number, p: number): boolean {
    const live = this.#live, x = live.intervalVreg[q], even = p & ~1;
    if (live.intervalFrom[q] === live.defPos[x] && live.intervalFrom[q] >= even && live.defKind[x] < DEF_KIND.PARAM) {
      return false;
    }
    if (live.defKind[x] === DEF_KIND.TEMP) return false;
    this.#advance(x, even);
    // The cursor may have passed the use at `even` already.
    const past = this.#past[x];
    if (past !== 0 && live.usePos[past] === even) {
      const info = live.useInfo[past];
      if ((info & USE_LATE) !== 0 && (info & 3) !== USE_KIND.EDGE) return false;
    }
    for (let u = live.useHead[x]; u !== 0 && live.usePos[u] === even; u = live.useNext[u]) {
      const info = live.useInfo[u];
      if ((info & 3) === USE_KIND.EDGE) continue;
      if (p !== even ? (info & USE_LATE) !== 0 : (info & 3) === USE_KIND.REG) return false;
    }
    return true;
  }

  #cost(x: number, to: number): f64 {
    this.#advance(x, this.#at);
    const live = this.#live, remat = this.#v.vregRemat[x] !== 0;
    const storeBlock = remat || this.needsSlot[x] !== 0 ? -1 : this.#facts.blockOf[live.defPos[x] >> 1];
    const cost = evictionCost(live, this.#facts, this.#at, to, live.useHead[x], this.#past[x], storeBlock);
    return remat ? cost * REMAT_DISCOUNT : cost;
  }

  /**
   * Spills the interval in register r: from the current position, or from before the loops that have not used it yet.
   */
  #evict(r: number): void {
    const live = this.#live, q = this.#occupancy.interval[r], x = live.intervalVreg[q], p = this.#at;
    this.#advance(x, p);
    const from = live.intervalFrom[q], past = this.#past[x];
    let low = from;
    if (from === live.defPos[x] && live.defKind[x] !== DEF_KIND.PARAM && live.defKind[x] !== DEF_KIND.ANY) {
      low = (from | 1) + 1;
    }
    if (past !== 0) low = Math.max(low, useEnd(live, past));
    const cut = low >= p ? p : hoistedPosition(this.#facts, low, p);
    this.#occupancy.until[r] = p;
    if (cut <= from) this.#spill(q, p);
    else this.#spill(this.#split(q, cut), p);
  }

  /**
   * Last resort for an interval that needs a register until its instruction ends: takes one from an interval that needs
   * it only while operands are read, and which then gets another (one that the instruction destroys, for example).
   */
  #displace(order: readonly number[]): boolean {
    const live = this.#live, p = this.#at;
    if ((p & 1) !== 0 || this.#needed < p + 2) return false;
    for (let j = 0; j < order.length; j++) {
      const r = order[j], q = this.#occupancy.interval[r], x = live.intervalVreg[q];
      if (this.#occupancy.until[r] <= p || live.defPos[x] === p || live.defKind[x] === DEF_KIND.TEMP) continue;
      const free = this.#occupancy.freeUntil(r, this.#at, this.#limit, this.#vreg);
      if (free < this.#needed) continue;
      let late = false;
      for (let u = live.useHead[x]; u !== 0 && live.usePos[u] === p; u = live.useNext[u]) {
        if ((live.useInfo[u] & USE_LATE) !== 0) late = true;
      }
      if (late) continue;
      this.#occupancy.until[r] = p;
      this.#enqueue(live.intervalFrom[q] === p ? q : this.#split(q, p));
      this.#assign(r, free);
      return true;
    }
    return false;
  }

  /** Assigns register r, in which an instruction defines the current interval, for as long as r is free. */
  #placeFixedDef(r: number, clobber: number): void {
    const p = this.#at, live = this.#live;
    // The defining instruction's own clobbers do not hit its results.
    if (clobber === p) clobber = this.#clobber > 0 ? live.clobberAll[this.#clobber - 1] : FAR;
    this.#needed = p + 1;
    if (clobber < this.#limit) this.#limitTo(clobber);
    if (this.#keys.restrict) this.#avoid = this.#keys.denied(this.#vreg, p, live.intervalTo[this.#interval]);
    const allowed = ((r < 32 ? this.#registers.general : this.#registers.vector) & ~this.#avoid) >>> (r & 31);
    // A register that may not be allocated holds the value only at this position.
    const free = (allowed & 1) === 0 ? p + 1 : this.#occupancy.freeUntil(r, this.#at, this.#limit, this.#vreg);
    this.#assign(r, Math.max(free, p + 1));
  }

  /** Gives register r, free up to `free`, to the current interval, and the rest of the interval back to the queue. */
  #assign(r: number, free: number): void {
    const live = this.#live, interval = this.#interval, to = live.intervalTo[interval], x = this.#vreg, p = this.#at;
    let rest = 0, spilled = false;
    if (this.#lost && free === this.#limit) {
      rest = this.#split(interval, free);
      spilled = !this.#many;
      if (!this.#options.lazyReloads) rest = this.#returnAfterCall(rest);
      else if (spilled) this.#options.counts.lazyReloads++;
      if (rest === 0) spilled = false;
    } else if (free < to) {
      let cut = free & ~1;
      if (cut <= p || cut < this.#needed) cut = free;
      else {
        const end = this.#lastUseEnd(free);
        if (end < FAR) cut = hoistedPosition(this.#facts, (Math.max(p + 1, this.#needed, end) + 1) & ~1, cut);
      }
      spilled = (cut & 1) !== 0;
      rest = this.#split(interval, cut);
    }
    live.intervalLoc[interval] = r;
    this.#occupancy.interval[r] = interval;
    this.#occupancy.until[r] = live.intervalTo[interval];
    this.#last[x] = r;
    this.#keys.countRegister(r, p, live.intervalTo[interval]);
    const a = live.affinity[x];
    if (a !== 0) this.#wanted[a] = r;
    if (live.defPos[x] === p && live.defKind[x] === DEF_KIND.PARAM) this.#keepInLoop(r, p);
    if (rest !== 0) {
      if (spilled) this.#spill(rest, p);
      else this.#enqueue(rest);
    }
  }

  /** A parameter of a loop header has register r: others should leave it to the value on the loop's back edge. */
  #keepInLoop(r: number, p: number): void {
    const facts = this.#facts, block = facts.blockOf[p >> 1];
    if (facts.loop[block] === block) this.#occupancy.kept[r] = facts.start[facts.loopEnd[block]];
  }

  /** End of the current interval's last use before `limit`; FAR if there are many. */
  #lastUseEnd(limit: number): number {
    const live = this.#live;
    let end = 0, n = 0;
    for (let u = live.useHead[this.#vreg]; u !== 0 && live.usePos[u] < limit; u = live.useNext[u]) {
      if (++n > USES_AHEAD) return FAR;
      end = useEnd(live, u);
    }
    return Math.min(end, limit);
  }

  /** Puts an interval that starts at or before p into its slot, up to where it should be in a register again. */
  #spill(interval: number, p: number): void {
    const live = this.#live, x = live.intervalVreg[interval], to = live.intervalTo[interval];
    const at = Math.max(p, live.intervalFrom[interval]);
    let cursor = live.useHead[x];
    while (cursor !== 0 && live.usePos[cursor] < at) cursor = live.useNext[cursor];
    const loop = this.#facts.loop[this.#facts.blockOf[at >> 1]];
    const around = loop >= 0 && to >= this.#facts.start[this.#facts.loopEnd[loop]] &&
      live.intervalFrom[interval] > this.#facts.start[loop] &&
      this.#locationAt(x, this.#facts.start[loop], interval) >= 0;
    const back = reloadPosition(live, this.#facts, this.#v, at, to, cursor, around, this.#options.loopRegions);
    if (back < to) this.#keys.countRegion(back);
    if (back < to) this.#enqueue(this.#split(interval, back));
    live.intervalLoc[interval] = IN_SLOT;
    if (this.needsSlot[x] === 0) this.#needSlot(x);
  }

  /**
   * With stack-reg off: an interval that lost its register to a call is reloaded right after it. Returns the interval
   * still to be allocated.
   */
  #returnAfterCall(rest: number): number {
    const live = this.#live, back = this.#clobberAt + 1;
    if (back >= live.intervalTo[rest] || live.intervalFrom[rest] >= back) return rest;
    this.#enqueue(this.#split(rest, back));
    live.intervalLoc[rest] = IN_SLOT;
    if (this.needsSlot[live.intervalVreg[rest]] === 0) this.#needSlot(live.intervalVreg[rest]);
    return 0;
  }

  #needSlot(x: number): void {
    this.needsSlot[x] = 1;
    const n = this.slottedCount++;
    if (n >= this.slotted.length) this.slotted = grown(this.slotted, n * 2);
    this.slotted[n] = x;
  }

  /** Cuts an interval in two and returns the second, which starts at `at`. */
  #split(interval: number, at: number): number {
    const live = this.#live, rest = live.addInterval(live.intervalVreg[interval], at, live.intervalTo[interval]);
    live.intervalNext[rest] = live.intervalNext[interval];
    live.intervalNext[interval] = rest;
    live.intervalTo[interval] = at;
    return rest;
  }

  #enqueue(interval: number): void {
    const live = this.#live, at = live.intervalFrom[interval];
    live.intervalLink[interval] = this.#queue[at];
    this.#queue[at] = interval;
  }

  /**
   * The location of the value of `interval`, which starts at the start p of a block, at the end of its most frequent
   * predecessor.
   */
  #locationBefore(interval: number, p: number): number {
    const live = this.#live, facts = this.#facts, block = facts.blockOf[p >> 1], v = this.#v;
    let from = -1;
    const end = Math.min(facts.predFirst[block + 1], facts.predFirst[block] + 8);
    for (let j = facts.predFirst[block]; j < end; j++) {
      const b = v.edgeFrom[facts.pred[j]];
      if (b < block && (from < 0 || facts.frequency[b] > facts.frequency[from])) from = b;
    }
    if (from < 0) return -2;
    return this.#locationAt(live.intervalVreg[interval], facts.start[from + 1] - 1, interval);
  }

  /** Location of x at `pos`, as far as its intervals before `interval` determine it; −2 for unknown. */
  #locationAt(x: number, pos: number, interval: number): number {
    const live = this.#live;
    let n = 0, location = -2;
    for (
      let q = live.intervalHead[x];
      q !== interval && q !== 0 && live.intervalFrom[q] <= pos;
      q = live.intervalNext[q]
    ) {
      location = live.intervalLoc[q];
      if (live.intervalTo[q] > pos || ++n > SEARCH_LIMIT) break;
    }
    return location;
  }
}
