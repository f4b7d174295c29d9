/**
 * Restrictions that optimization keys put on the linear scan (allocator_options.ts, DeniedRegisters), and the counts of
 * their applications. Restrictions never affect correctness: an interval that needs a register gets one regardless.
 */
import { TY } from "../ir/types.ts";
import { type AllocatableRegisters, type AllocatorOptions, type Denial, FUNCTIONS } from "./allocator_options.ts";
import type { BlockFacts } from "./block_facts.ts";
import { DEF_KIND, isVector, type Liveness, USE_KIND } from "./liveness.ts";
import { CONSTRAINT, operandConstraint, operandFixed, operandRole, ROLE, type VCode } from "../codegen/vcode.ts";

/** The number of registers that long-lived floats may have with ext-fp-pins off. */
const BASE_FLOATS = 4;

export class OptionRestrictions {
  /** Whether any register is denied to any value. */
  restrict = false;
  #v!: VCode;
  #live!: Liveness;
  #facts!: BlockFacts;
  #options!: AllocatorOptions;
  /** Masks of the incoming arguments' registers (empty if there are calls), and of those that ext-fp-pins adds. */
  #entryGeneral = 0;
  #entryVector = 0;
  #extendedFloats = 0;
  /** Masks of the registers denied to all values of the function, and to those that live around a loop. */
  #deniedGeneral = 0;
  #deniedVector = 0;
  #longGeneral = 0;
  #longVector = 0;
  /** Rows whose keys are on and therefore allow their registers in the function. */
  #granted: Denial[] = [];

  begin(
    v: VCode,
    live: Liveness,
    facts: BlockFacts,
    registers: AllocatableRegisters,
    options: AllocatorOptions,
  ): void {
    this.#v = v;
    this.#live = live;
    this.#facts = facts;
    this.#options = options;
    this.restrict = !options.allFloats;
    this.#extendedFloats = 0;
    const order = registers.vectorOrder;
    for (let j = BASE_FLOATS; j < order.length; j++) this.#extendedFloats |= 1 << (order[j] & 31);
    this.#entryGeneral = 0;
    this.#entryVector = 0;
    this.#findDenied();
    if (v.hasCalls || live.clobberAllCount > 0) return;
    if (options.entryArguments) options.counts.entryArguments++;
    else this.#findEntryArguments();
  }

  #findDenied(): void {
    this.#deniedGeneral = 0;
    this.#deniedVector = 0;
    this.#longGeneral = 0;
    this.#longVector = 0;
    this.#granted.length = 0;
    const calling = this.#v.hasCalls;
    for (const row of this.#options.denied) {
      if (row.functions !== FUNCTIONS.ALL && (row.functions === FUNCTIONS.CALLING) !== calling) continue;
      if (!row.isDenied) {
        if (!row.deniesWhenOn) this.#granted.push(row);
        continue;
      }
      this.restrict = true;
      if (row.deniesWhenOn) row.applied++;
      if (!row.isForLongValues) {
        this.#deniedGeneral |= row.general;
        this.#deniedVector |= row.vector;
      } else {
        this.#longGeneral |= row.general;
        this.#longVector |= row.vector;
      }
    }
  }

  #findEntryArguments(): void {
    const v = this.#v;
    this.restrict = true;
    for (let o = 0; o < v.firstOperand[1]; o++) {
      const word = v.operands[o], r = operandFixed(word);
      if (operandRole(word) !== ROLE.DEF || operandConstraint(word) !== CONSTRAINT.FIXED) continue;
      if (r >= 32) this.#entryVector |= 1 << (r - 32);
      else this.#entryGeneral |= 1 << r;
    }
  }

  /** Mask, within its bank, of the registers denied to an interval [p, to) of x. */
  denied(x: number, p: number, to: number): number {
    const facts = this.#facts, vector = isVector(this.#v.vregTy[x]);
    let mask = vector ? this.#deniedVector : this.#deniedGeneral;
    const long = vector ? this.#longVector : this.#longGeneral;
    if (long !== 0 && this.#goesAround(p, to)) mask |= long;
    if (facts.blockOf[this.#live.defPos[x] >> 1] === 0 && to > facts.start[1]) {
      mask |= vector ? this.#entryVector : this.#entryGeneral;
    }
    if (vector && !this.#options.allFloats && this.#goesAround(p, to)) mask |= this.#extendedFloats;
    return mask;
  }

  /** Whether [p, to) goes around a loop. */
  #goesAround(p: number, to: number): boolean {
    const facts = this.#facts, loop = facts.loop[facts.blockOf[(to - 1) >> 1]];
    return loop >= 0 && p <= facts.start[loop] && to >= facts.start[facts.loopEnd[loop]];
  }

  /** Whether block parameter x, of the block at p, may be in a register there. */
  mayMerge(x: number, p: number): boolean {
    const options = this.#options, facts = this.#facts, block = facts.blockOf[p >> 1];
    if (this.#v.vregTy[x] === TY.V128) {
      if (options.vectorPins) options.counts.vectorPins++;
      return options.vectorPins;
    }
    if (facts.loop[block] === block) return true;
    if (options.mergeInRegisters) options.counts.merged++;
    return options.mergeInRegisters;
  }

  /** Whether x, defined at p, may prefer the register of the block parameter that it is passed to. */
  maySink(x: number, kind: number, p: number): boolean {
    const options = this.#options, live = this.#live, u = live.useHead[x];
    if (kind === DEF_KIND.NONE || kind === DEF_KIND.PARAM || live.defKind[live.affinity[x]] !== DEF_KIND.PARAM) {
      return true;
    }
    if (this.#v.vregTy[x] === TY.V128) {
      if (options.vectorHints) options.counts.vectorSinks++;
      return options.vectorHints;
    }
    if (this.#readsOneOperand(p)) {
      if (options.unaryHints) options.counts.unarySinks++;
      return options.unaryHints;
    }
    if (u === 0 || (live.useInfo[u] & 3) === USE_KIND.EDGE) return true;
    if (options.teeHints) options.counts.teeSinks++;
    return options.teeHints;
  }

  #readsOneOperand(p: number): boolean {
    const v = this.#v, i = (p >> 1) - this.#facts.blockOf[p >> 1] - 1;
    let uses = 0;
    for (let o = v.firstOperand[i]; o < v.firstOperand[i + 1]; o++) {
      if (operandRole(v.operands[o]) === ROLE.USE || operandRole(v.operands[o]) === ROLE.LATE_USE) uses++;
    }
    return uses === 1;
  }

  /** Counts the assignment of register r to an interval [p, to) for the keys that allowed it. */
  countRegister(r: number, p: number, to: number): void {
    for (const row of this.#granted) {
      if ((((r < 32 ? row.general : row.vector) >>> (r & 31)) & 1) === 0) continue;
      if (!row.isForLongValues || this.#goesAround(p, to)) row.applied++;
    }
    if (r < 32 || ((this.#extendedFloats >>> (r - 32)) & 1) === 0 || !this.#options.allFloats) return;
    if (this.#goesAround(p, to)) this.#options.counts.longFloats++;
  }

  /** Counts the reload of a value at position `back` for loop-region-pins if that is the start of a loop's header. */
  countRegion(back: number): void {
    const facts = this.#facts, block = facts.blockOf[back >> 1];
    if (facts.start[block] === back && facts.loop[block] === block) this.#options.counts.loopRegions++;
  }
}
