/**
 * Abstract interpretation of one function. In: the bytes of the function. Out: nothing if it is proven, otherwise the
 * first reason and its offset.
 *
 * Code is cut at the targets of branches. Facts at a target are those that hold on all paths to it; a target is
 * interpreted again when it loses facts, lowest offset first. Targets of jump tables become known during
 * interpretation; if one is found in the middle of a block, the function is interpreted again with the new cut.
 *
 * Bounds that a loop may change are given up at once; a function that is not proven so is interpreted again with fewer
 * heads of loops, with finer steps, then with its null references, then with the inductions of its loops. Each
 * interpretation is a proof.
 */
import { RECORD } from "../abi/context_layout.ts";
import { Analysis, FLAGS, OF_LOOPS, REASON } from "./analysis.ts";
import { type CodeMap, STUB_KIND, stubKind } from "./code_map.ts";
import { Facts, KNOWN_LENGTHS, lengthPlace, MAX32 } from "./facts.ts";
import { NAMES_PER_LOCATION, SavedFacts } from "./joins.ts";
import { memoryLimit, tableLimit } from "./limits.ts";
import { VALUE } from "./value_kinds.ts";
import type { CodeType, MachineModule } from "./machine_module.ts";
import { assume, isCertain } from "./conditions.ts";
import * as control from "./control.ts";
import type { Hint } from "./inductions.ts";
import { type Instructions, KIND } from "./instructions.ts";
import type { Machine } from "./machine.ts";
import { LoopHeads } from "./loop_heads.ts";
import { LoopWrites } from "./written.ts";
import type { Signature } from "../ir/types.ts";

/** A place that is not proven. */
export interface Finding {
  /** Defined function. */
  readonly index: number;
  /** Offset in the image. */
  readonly at: number;
  readonly reason: string;
}

/** Largest number of interpretations of blocks in one function, per block. */
const MAX_VISITS = 64;
/** Largest number of interpretations of a function, each with a new cut. */
const MAX_CUTS = 16;
/**
 * The bound to which a growing number is widened first while inductions are found: a few additions leave it a number
 * that compares of 32 bits with sign read like those without.
 */
const EXPLORED_BOUND = 2 ** 30;
/** Largest name of a value. */
const MAX_NAME = 2 ** 31 - 1;
/** Reasons that null references in the frame may remove. */
const OF_REFERENCES: readonly string[] = [REASON.ADDRESS, REASON.OBJECT, REASON.REFERENCE, REASON.CALL_TARGET];
/** Longest jump table, in entries. */
const MAX_TABLE = 1 << 16;
/** The target of branches to the call of a trap, which needs no facts. */
const TRAP = -2;

export class FunctionVerifier {
  readonly #machine: Machine;
  readonly #a: Analysis;
  readonly #map: CodeMap;
  readonly #masks: Int32Array;
  readonly #saved = new SavedFacts();
  #scratch = new Facts();
  readonly #writes = new LoopWrites();
  readonly #heads = new LoopHeads();
  #own: Signature & Partial<CodeType> = { params: new Uint8Array(0), results: new Uint8Array(0) };
  /** By instruction: 1 + number of the block that it begins, 0: none. */
  #blockAt: Int32Array = new Int32Array(1024);
  /** By instruction: 1: it begins a block; 2: it is the head of a loop, to which a backward branch leads. */
  #cut: Uint8Array = new Uint8Array(1024);
  /** By instruction, for heads of loops: the last one that branches there. */
  #lastTurn: Int32Array = new Int32Array(1024);
  /** By instruction: the one to which it branches, TRAP, or −1 for none of the function. */
  #targetOf: Int32Array = new Int32Array(1024);
  /** By branch: 1 if it skips a jump: it branches to the target of the jump, on the opposite condition. */
  #skips: Uint8Array = new Uint8Array(1024);
  #blockCount = 0;
  /** By block: first instruction, depth, fence. */
  #first: Int32Array = new Int32Array(64);
  #depth: Int32Array = new Int32Array(64);
  #fence: Int32Array = new Int32Array(64);
  #pending: Uint8Array = new Uint8Array(64);
  /** By instruction: 1 if control may come there. */
  #reached: Uint8Array = new Uint8Array(1024);
  #cursor = 0;
  #nextName = 0;
  #newCuts = false;
  #hints: Map<number, Hint> | undefined;
  #start = 0;
  #end = 0;

  /** `masks`: the registers that each function writes (written.ts). */
  constructor(machine: Machine, module: MachineModule, map: CodeMap, masks: Int32Array) {
    this.#machine = machine;
    this.#a = new Analysis(machine, module);
    this.#map = map;
    this.#masks = masks;
    const { layout } = module.code;
    this.#saved.recordType = (at) =>
      at < layout.typeIdsOffset ? module.functionTypeId[(at - layout.importsOffset) / RECORD.SIZE] : undefined;
  }

  /** No longer takes tables to be constant that the verified code writes; returns whether there are any. */
  dropWrittenTables(): boolean {
    const { constantTables, writtenTables } = this.#a;
    let any = false;
    for (let t = 0; t < constantTables.length; t++) {
      if (constantTables[t] === 0 || writtenTables[t] === 0) continue;
      constantTables[t] = 0;
      any = true;
    }
    return any;
  }

  /** Whether control may come to the instruction at `offset` of the function that was verified last. */
  isReached(offset: number): boolean {
    const n = this.#instructionAt(offset);
    return n >= 0 && this.#reached[n] === 1;
  }

  /** Verifies defined function `index`. */
  verify(index: number): Finding | undefined {
    const a = this.#a;
    const { module } = a;
    const { functionStart, functionEnd } = module.tables;
    const start = this.#start = functionStart[index], end = this.#end = functionEnd[index];
    a.code.begin(start, end);
    this.#map.eachReturn(start, end, (offset) => a.code.mark(offset));
    this.#machine.decode(module.bytes, start, end, a.code);
    this.#own = module.functionSignature[index + module.importedFunctions];
    a.begin();
    this.#scratch.shrink();
    this.#writes.begin();
    this.#findCuts();
    this.#hints = undefined;
    this.#saved.isCoarse = true;
    this.#interpretAll();
    if (a.reason !== "" && this.#findHeads()) this.#interpretAgain();
    this.#saved.isCoarse = false;
    if (a.reason !== "") this.#interpretAgain();
    if (a.hasZeros && OF_REFERENCES.includes(a.reason)) this.#keepZeros();
    if (OF_LOOPS.includes(a.reason)) this.#followLoops();
    this.#checkPolls();
    return a.reason === "" ? undefined : { index, at: a.reasonAt, reason: a.reason };
  }

  /** Fails unless the words that placing the image changes are those of polls, or of code that is never reached. */
  #checkPolls(): void {
    const a = this.#a;
    const { at, count } = a.code;
    for (let poll = this.#map.nextPoll(this.#start - 3), n = 0; poll < this.#end; poll = this.#map.nextPoll(poll + 1)) {
      while (n < count && at[n + 1] <= poll) n++;
      for (let k = n; k < count && at[k] < poll + 4; k++) {
        if (this.#reached[k] === 0 || (at[k + 1] === poll + 4 && this.#machine.isPoll(a.code, k))) continue;
        a.n = k;
        return a.fail(REASON.POLL);
      }
    }
  }

  #interpretAgain(): void {
    this.#a.reason = "";
    this.#interpretAll();
  }

  /** Interprets the function again, and tracks the words of its frame that its prologue sets to null references. */
  #keepZeros(): void {
    this.#a.keepsZeros = true;
    this.#interpretAgain();
  }

  /**
   * Interprets the function again with the inductions of its loops. They are found first, in a coarse interpretation
   * that goes on where an access is not proven: they are hints, of which the next one proves those that it uses.
   */
  #followLoops(): void {
    const a = this.#a;
    const saved = this.#saved, { reason, reasonAt } = a;
    saved.thresholds = thresholdsOf(a.code, 0, a.code.count, OF_FUNCTION);
    saved.followsLoops = a.facts.hasSteps = true;
    a.isExploring = saved.isCoarse = true;
    saved.firstBound = EXPLORED_BOUND;
    a.reason = "";
    this.#interpretAll();
    a.isExploring = saved.isCoarse = false;
    saved.firstBound = MAX32;
    if (a.reason === "") {
      this.#hints = new Map();
      for (const [k, inductions] of saved.inductions) {
        const hint = inductions.hint();
        if (hint !== undefined) this.#hints.set(k, hint);
      }
      this.#interpretAll();
    }
    saved.followsLoops = a.facts.hasSteps = false;
    saved.thresholds = [];
    this.#hints = undefined;
    if (a.reason === "") return;
    a.reason = reason;
    a.reasonAt = reasonAt;
  }

  /** Interprets the function until no more places are found where it is to be cut. */
  #interpretAll(): void {
    const a = this.#a;
    this.#saved.hints = this.#hints;
    for (let round = 0; round < MAX_CUTS && a.reason === ""; round++) {
      this.#newCuts = false;
      this.#interpret();
      if (!this.#newCuts) break;
    }
    if (a.reason === "" && this.#newCuts) a.fail(REASON.WORK);
  }

  /** The instruction at `offset` of the image, or −1. */
  #instructionAt(offset: number): number {
    if (offset < this.#start || offset >= this.#end) return -1;
    const { at, count } = this.#a.code;
    let low = 0, high = count - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      if (at[middle] === offset) return middle;
      if (at[middle] < offset) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  /**
   * Cuts the code at the targets of branches and at landing pads. Behind jumps and tables, too: where a branch leads
   * there it is that of a jump table, which becomes known during interpretation only.
   */
  #findCuts(): void {
    const { code } = this.#a;
    if (code.count > this.#cut.length) {
      this.#cut = new Uint8Array(code.count * 2);
      this.#lastTurn = new Int32Array(code.count * 2);
      this.#reached = new Uint8Array(code.count * 2);
      this.#blockAt = new Int32Array(code.count * 2);
      this.#targetOf = new Int32Array(code.count * 2);
      this.#skips = new Uint8Array(code.count * 2);
    }
    this.#cut.fill(0, 0, code.count);
    this.#reached.fill(0, 0, code.count);
    this.#cut[0] = 1;
    for (let n = 0; n < code.count; n++) {
      const kind = code.kind[n];
      if (kind === KIND.BRANCH || kind === KIND.JUMP) this.#cutTarget(n, kind);
      const isEnd = kind === KIND.JUMP_INDIRECT || kind === KIND.DATA;
      if (isEnd || (kind === KIND.JUMP && this.#targetOf[n] >= 0)) this.#cutBehind(n);
      if (kind >= KIND.JUMP && kind <= KIND.CALL_INDIRECT) this.#cutLanding(n);
    }
  }

  /**
   * Of the blocks to which backward branches lead, keeps those as heads of loops that each cycle needs. Returns whether
   * there are others. Where jump tables lead is not known for certain: a function with one keeps all.
   */
  #findHeads(): boolean {
    const { code } = this.#a;
    let hasHead = false;
    for (let n = 0; n < code.count; n++) {
      if (this.#cut[n] === 2) hasHead = true;
      if (code.kind[n] === KIND.JUMP_INDIRECT && this.#machine.jumpsInside(code, n)) return false;
    }
    if (!hasHead) return false;
    this.#numberBlocks();
    this.#heads.begin(this.#blockCount);
    for (let k = 0; k < this.#blockCount; k++) this.#eachEdge(k, (to) => this.#heads.add(k, to));
    const heads = this.#heads.find();
    let hasOther = false;
    for (let k = 0; k < this.#blockCount; k++) {
      const n = this.#first[k];
      if (this.#cut[n] !== 2 || heads[k] === 1) continue;
      this.#cut[n] = 1;
      hasOther = true;
    }
    return hasOther;
  }

  /** Calls `action` with the blocks to which control may go from block `k`, and perhaps others; without jump tables. */
  #eachEdge(k: number, action: (to: number) => void): void {
    const { code } = this.#a;
    const to = (n: number) => {
      if (n >= 0) action(this.#blockAt[n] - 1);
    };
    for (let n = this.#first[k]; n < code.count; n++) {
      if (n > this.#first[k] && this.#blockAt[n] !== 0) return to(n);
      const kind = code.kind[n];
      if (kind === KIND.RETURN || kind === KIND.UNDEFINED || this.#callsTrap(n)) return;
      if (kind === KIND.BRANCH || kind === KIND.JUMP) to(this.#targetOf[n]);
      if (kind === KIND.JUMP && this.#targetOf[n] >= 0) return;
      if (kind >= KIND.JUMP && kind <= KIND.CALL_INDIRECT) to(this.#instructionAt(this.#landingOf(n)));
      if (kind === KIND.BRANCH) n += this.#skips[n];
    }
  }

  #cutBehind(n: number): void {
    const { count, kind } = this.#a.code;
    const isSkipped = n > 0 && kind[n - 1] === KIND.BRANCH && this.#skips[n - 1] === 1;
    if (!isSkipped && n + 1 < count && this.#cut[n + 1] === 0) this.#cut[n + 1] = 1;
  }

  #cutTarget(n: number, kind: number): void {
    const { code } = this.#a;
    let to = this.#instructionAt(code.at[n + 1] + code.immediate[n]);
    this.#skips[n] = kind === KIND.BRANCH && to === n + 2 && this.#jumpsInside(n + 1) ? 1 : 0;
    if (this.#skips[n] === 1) to = this.#instructionAt(code.at[n + 2] + code.immediate[n + 1]);
    const isTrap = kind === KIND.BRANCH && to >= 0 && this.#callsTrap(to);
    this.#targetOf[n] = isTrap ? TRAP : to;
    if (to >= 0 && !isTrap) this.#cutInstruction(to, n);
  }

  /** Whether instruction `n` is a jump to another place of the function than its start, which may be a tail call. */
  #jumpsInside(n: number): boolean {
    const { code } = this.#a;
    return code.kind[n] === KIND.JUMP && this.#instructionAt(code.at[n + 1] + code.immediate[n]) > 0;
  }

  #cutLanding(n: number): void {
    const landing = this.#landingOf(n);
    const to = landing < 0 ? -1 : this.#instructionAt(landing);
    if (to >= 0) this.#cutInstruction(to, n);
  }

  /** Offset of the landing pad of the call at instruction `n`, or −1. */
  #landingOf(n: number): number {
    const { code, module } = this.#a;
    const row = this.#map.callSite(code.at[n + 1]);
    return row < 0 ? -1 : module.tables.callLanding[row];
  }

  #cutInstruction(n: number, from: number): void {
    const how = n <= from ? 2 : 1;
    if (how === 2) this.#lastTurn[n] = this.#cut[n] === 2 ? Math.max(this.#lastTurn[n], from) : from;
    if (this.#cut[n] >= how) return;
    this.#cut[n] = how;
    this.#newCuts = true;
  }

  #numberBlocks(): void {
    const { count } = this.#a.code;
    let blocks = 0;
    for (let n = 0; n < count; n++) this.#blockAt[n] = this.#cut[n] !== 0 ? ++blocks : 0;
    if (blocks > this.#first.length) {
      this.#first = new Int32Array(blocks * 2);
      this.#depth = new Int32Array(blocks * 2);
      this.#fence = new Int32Array(blocks * 2);
      this.#pending = new Uint8Array(blocks * 2);
    }
    for (let n = 0; n < count; n++) if (this.#cut[n] !== 0) this.#first[this.#blockAt[n] - 1] = n;
    this.#blockCount = blocks;
    this.#pending.fill(0, 0, blocks);
    this.#saved.reset(blocks);
  }

  #interpret(): void {
    const a = this.#a;
    this.#numberBlocks();
    this.#nextName = a.code.count * 4 + 8;
    a.n = 0;
    control.enterFunction(a, this.#own);
    this.#enterLengths();
    this.#endPath(0);
    let left = (this.#blockCount + 1) * MAX_VISITS;
    for (this.#cursor = 0; this.#cursor < this.#blockCount && a.reason === "";) {
      const k = this.#cursor++;
      if (this.#pending[k] === 0) continue;
      this.#pending[k] = 0;
      if (left-- <= 0) return a.fail(REASON.WORK);
      this.#runBlock(k);
    }
  }

  /** Lower bounds of the lengths of memories and tables. */
  #enterLengths(): void {
    const { facts, module } = this.#a;
    for (let k = 0; k < KNOWN_LENGTHS; k++) {
      facts.number(lengthPlace(memoryLimit(k)), module.memoryBytes[k] ?? 0, Infinity, 0);
      facts.number(lengthPlace(tableLimit(k)), module.tableLength[k] ?? 0, Infinity, 0);
    }
  }

  #runBlock(k: number): void {
    const a = this.#a;
    this.#saved.load(k, a.facts);
    a.depth = this.#depth[k];
    a.fence = this.#fence[k];
    a.flags = FLAGS.NONE;
    a.ownRecord = 0;
    a.eighthName = 0;
    a.faults = false;
    a.ranges.clear();
    const { count } = a.code;
    for (a.n = this.#first[k]; a.n < count; a.n++) {
      if (this.#blockAt[a.n] !== 0 && this.#blockAt[a.n] - 1 !== k) return this.#endPath(a.n);
      this.#reached[a.n] = 1;
      if (!this.#step() || a.faults || a.reason !== "") return;
    }
    a.n = count - 1;
    a.fail(REASON.FALLS);
  }

  /** The path ends at instruction `n`, at the head of a block. */
  #endPath(n: number): void {
    const a = this.#a;
    a.facts = this.#reach(n, a.facts);
  }

  /**
   * The current facts hold on a path to instruction `n`, at the head of a block, which may keep the object. Returns
   * Facts to use in its place, whose contents are unspecified.
   */
  #reach(n: number, facts: Facts): Facts {
    const a = this.#a, saved = this.#saved;
    const k = this.#blockAt[n] - 1;
    if (saved.has(k)) {
      if (this.#depth[k] !== a.depth) a.fail(REASON.STACK_POINTER);
      else if (this.#joinBlock(k, n)) this.#await(k);
      return facts;
    }
    saved.save(k, facts, this.#nextName, this.#cut[n] === 2);
    if (a.isExploring && this.#cut[n] === 2) {
      saved.loopThresholds.set(k, thresholdsOf(a.code, n, this.#lastTurn[n] + 1, OF_LOOP));
    }
    if (saved.isCoarse && this.#cut[n] === 2) this.#widenLoop(k, n);
    this.#nextName += NAMES_PER_LOCATION * facts.count;
    if (this.#nextName > MAX_NAME) a.fail(REASON.WORK);
    this.#depth[k] = a.depth;
    this.#fence[k] = a.fence;
    this.#await(k);
    const other = saved.take(facts.capacity);
    other.hasSteps = facts.hasSteps;
    return other;
  }

  /** Joins the current facts to those of block `k`, at instruction `n`; returns whether any was lost. */
  #joinBlock(k: number, n: number): boolean {
    const a = this.#a;
    const changed = this.#saved.join(k, a.facts, n < a.n && this.#cut[n] === 2);
    if (a.fence >= this.#fence[k]) return changed;
    this.#fence[k] = a.fence;
    return true;
  }

  /** Block `k` is to be interpreted. */
  #await(k: number): void {
    this.#pending[k] = 1;
    if (k < this.#cursor) this.#cursor = k;
  }

  /**
   * Gives up the bounds of numbers that the loop from instruction `n` on writes, before it is interpreted: most would
   * be lost at its end, and the loop interpreted again.
   */
  #widenLoop(k: number, n: number): void {
    const a = this.#a;
    const { code, machine } = a;
    const last = this.#lastTurn[n];
    this.#writes.read(machine, code, this.#map, this.#masks);
    const mask = this.#writes.registers(n, last);
    const { locations } = machine;
    for (let r = 0; r < locations.length; r++) if ((mask >>> r & 1) !== 0) this.#saved.widen(k, locations[r]);
    this.#writes.eachSpill(n, last, (at) => {
      const slot = a.slot(a.depth - code.displacement[at], code.size[at]);
      if (slot !== 0) this.#saved.widen(k, slot);
    });
    this.#saved.renameWidened(k);
  }

  /** The current facts, which the path no longer needs, hold on a path to `offset`. */
  #endAt(offset: number): void {
    this.#endTarget(this.#instructionAt(offset));
  }

  /** The same for a path to instruction `n`, or to none of the function if `n` is negative. */
  #endTarget(n: number): void {
    if (n < 0) return this.#a.fail(REASON.TARGET);
    if (this.#blockAt[n] === 0) this.#newCuts = true;
    else this.#endPath(n);
  }

  /** Facts that hold at the current instruction, on a path to instruction `n` that takes a copy of them. */
  #forkTarget(n: number): void {
    const facts = this.#useCopy();
    this.#endTarget(n);
    this.#useAgain(facts);
  }

  /** Interprets the current instruction; returns whether control goes on to the next one. */
  #step(): boolean {
    const a = this.#a;
    const kind = a.code.kind[a.n];
    if (kind >= KIND.BRANCH && kind <= KIND.UNDEFINED) return this.#stepControl(kind);
    this.#machine.step(a, this.#map);
    return true;
  }

  #stepControl(kind: number): boolean {
    const a = this.#a;
    switch (kind) {
      case KIND.BRANCH:
        return this.#branch();
      case KIND.JUMP:
        return this.#jump();
      case KIND.CALL:
        return this.#call(control.call(a, this.#map, this.#masks, this.#target()));
      case KIND.CALL_INDIRECT:
        return this.#call(control.callRecord(a, this.#map));
      case KIND.JUMP_INDIRECT:
        if (this.#machine.jumpsInside(a.code, a.n)) return this.#jumpTable(a.code.rm[a.n]);
        return this.#call(control.jumpRecord(a, this.#map, this.#own));
      case KIND.RETURN:
        control.leave(a, this.#own);
        return false;
      case KIND.PUSH:
      case KIND.POP:
        this.#machine.moveStack(a);
        return a.reason === "";
      case KIND.UNDEFINED:
        return false;
    }
    a.fail(REASON.INSTRUCTION);
    return false;
  }

  #target(): number {
    const { code, n } = this.#a;
    return code.at[n + 1] + code.immediate[n];
  }

  #branch(): boolean {
    const a = this.#a;
    const skips = this.#skips[a.n];
    const goesOn = this.#branchOn(this.#machine.branchCondition(a) ^ skips);
    // The branch compared by itself, without setting the flags.
    if (a.code.sub[a.n] !== 0) a.flags = FLAGS.NONE;
    if (skips === 1) this.#reached[++a.n] = 1;
    return goesOn;
  }

  #branchOn(condition: number): boolean {
    const a = this.#a;
    const target = this.#targetOf[a.n], isTrap = target === TRAP;
    if (isTrap) control.checkTrap(a);
    if (isCertain(a, condition) || this.#machine.isTaken(a, condition)) {
      if (!isTrap) this.#endTarget(target);
      return false;
    }
    if (isTrap) return a.flags === FLAGS.NONE || assume(a, condition ^ 1);
    if (a.flags === FLAGS.NONE) {
      this.#forkTarget(target);
      return true;
    }
    const { depth, fence } = a;
    const facts = this.#useCopy();
    a.ranges.isOpen = false;
    const isPossible = assume(a, condition);
    a.ranges.isOpen = true;
    if (isPossible) this.#endTarget(target);
    this.#useAgain(facts);
    a.depth = depth;
    a.fence = fence;
    a.ownRecord = 0;
    return assume(a, condition ^ 1);
  }

  /** Whether instruction `n` is the call of a trap stub. */
  #callsTrap(n: number): boolean {
    const { code } = this.#a;
    if (code.kind[n] !== KIND.CALL) return false;
    const stub = this.#map.stubAt(code.at[n + 1] + code.immediate[n]);
    return stub >= 0 && stubKind(stub) === STUB_KIND.TRAP && this.#map.isTrapSite(code.at[n + 1]);
  }

  #jump(): boolean {
    const target = this.#target();
    if (target >= this.#start && target < this.#end && !(target === this.#start && this.#a.depth === 0)) {
      this.#endTarget(this.#targetOf[this.#a.n]);
      return false;
    }
    return this.#call(control.jumpAway(this.#a, this.#map, target, this.#own));
  }

  /** Passes the facts after a call on to its landing pad; returns whether control continues behind the call. */
  #call(flow: number): boolean {
    if (flow === control.FLOW.ENDS) return false;
    const a = this.#a;
    const landing = this.#landingOf(a.n);
    if (landing < 0) return true;
    const isOther = !a.facts.isStart(this.#machine.context, VALUE.CONTEXT, 0);
    const { depth } = a;
    const facts = this.#useCopy();
    control.land(a, isOther);
    this.#endAt(landing);
    this.#useAgain(facts);
    a.depth = depth;
    return true;
  }

  /** The analysis goes on with a copy of the facts. Returns the facts for #useAgain. */
  #useCopy(): Facts {
    const a = this.#a, { facts } = a;
    const copy = this.#scratch;
    copy.hasSteps = facts.hasSteps;
    copy.copyAll(facts);
    a.facts = copy;
    return facts;
  }

  /** The analysis goes on with these facts in place of their copy. */
  #useAgain(facts: Facts): void {
    const a = this.#a;
    this.#scratch = a.facts;
    a.facts = facts;
  }

  /** A jump through a jump table: control may go to the code that any entry in the proven range names. */
  #jumpTable(register: number): boolean {
    const a = this.#a;
    const { facts, module: { bytes } } = a;
    const table = facts.imageOffset[register], low = facts.firstEntry[register], high = facts.lastEntry[register];
    if (facts.kind[register] === VALUE.JUMP_PLACE) return this.#jumpToJump(table, low, high);
    if (facts.kind[register] !== VALUE.JUMP_TARGET || !(high - low < MAX_TABLE)) return this.#fail(REASON.SWITCH);
    const first = table + low * 4, end = table + high * 4 + 4;
    if (low < 0 || first < 0 || end > bytes.length) return this.#fail(REASON.SWITCH);
    if (this.#map.nextPoll(first - 3) < end) return this.#fail(REASON.POLL);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let k = low; k <= high; k++) {
      const target = table + view.getInt32(table + k * 4, true);
      this.#enterTable(target);
    }
    return false;
  }

  /** A jump into a table of jumps: control may go to any in the proven range. */
  #jumpToJump(table: number, low: number, high: number): boolean {
    if (!(low >= 0 && high < MAX_TABLE)) return this.#fail(REASON.SWITCH);
    const { jumpBytes } = this.#machine;
    for (let k = low; k <= high; k++) {
      this.#enterTable(table + k * jumpBytes);
    }
    return false;
  }

  /** A jump table of the current instruction leads to `offset`. */
  #enterTable(offset: number): void {
    const { n } = this.#a;
    const to = this.#instructionAt(offset);
    if (to >= 0) this.#cutInstruction(to, n);
    this.#forkTarget(to);
  }

  #fail(reason: string): boolean {
    this.#a.fail(reason);
    return false;
  }
}

/** Kinds of instructions whose constants are likely bounds: of all loops of a function, of one that contains them. */
const OF_FUNCTION: readonly number[] = [KIND.COMPARE, KIND.CONSTANT], OF_LOOP: readonly number[] = [KIND.COMPARE];

/** Bounds of numbers that instructions `first` … `end` − 1 suggest: the constants of these kinds, and one less. */
function thresholdsOf(
  { hasImmediate, immediate, kind }: Instructions,
  first: number,
  end: number,
  kinds: readonly number[],
): number[] {
  const bounds = new Set<number>();
  for (let n = first; n < end; n++) {
    if (!kinds.includes(kind[n]) || hasImmediate[n] === 0 || immediate[n] <= 0) continue;
    bounds.add(immediate[n] - 1).add(immediate[n]);
  }
  return [...bounds].sort((x, y) => x - y);
}
