/**
 * Scans an outermost loop ahead of its translation: the locals that it and each loop inside it assign, and whether a
 * branch leads back to it. A loop header needs parameters for exactly those locals. In: a reader at the first
 * instruction of the loop. Out: one record per loop in the order in which they open, unreachable code included,
 * appended to the columns here.
 *
 * The scan precedes validation and trusts nothing: it ignores local indices out of range and labels beyond the
 * outermost loop, and ends at a malformed instruction, which validation reports later.
 *
 * A loop without a back edge gets no parameters, and its list is empty. The list is therefore as long as the parameters
 * of all headers, and a function with too many is refused before they are created.
 *
 * Records form a stack: a nested activation (an inlined body) appends its own and removes them at its end.
 */
import { doubled } from "../base/columns.ts";
import { isBelow } from "../base/numbers.ts";
import { idOf, OPCODES } from "../wasm/opcodes.ts";
import type { BodyReader } from "../wasm/body_reader.ts";
import { MAX_INSTRUCTIONS } from "./frames.ts";

/** Implementation limit on the locals of all loops together: each becomes an IR instruction. */
const MAX_LIST = MAX_INSTRUCTIONS;

const OTHER = 0;
const OPEN = 1;
const LOOP = 2;
const CLOSE = 3;
const ASSIGN = 4;
const BRANCH = 5;
const SWITCH = 6;
const CATCHES = 7;
const HANDLERS = 8;

/** Action of the scan by row. */
const ACTION: Uint8Array = new Uint8Array(OPCODES.length);
for (const row of OPCODES) {
  const { id, immediates } = row;
  if (immediates.includes("label") || immediates.includes("casttypes")) ACTION[id] = BRANCH;
  if (immediates.includes("labels")) ACTION[id] = SWITCH;
  if (immediates.includes("blocktype")) ACTION[id] = OPEN;
  if (immediates.includes("catches")) ACTION[id] = CATCHES;
  if (immediates.includes("handlers")) ACTION[id] = HANDLERS;
}
ACTION[idOf("loop")] = LOOP;
ACTION[idOf("end")] = CLOSE;
ACTION[idOf("delegate")] = CLOSE;
ACTION[idOf("local.set")] = ASSIGN;
ACTION[idOf("local.tee")] = ASSIGN;

export class LoopScan {
  /** The locals that loop n assigns are list[first[n] … last[n]). */
  list: Int32Array = new Int32Array(256);
  first: Int32Array = new Int32Array(64);
  last: Int32Array = new Int32Array(64);
  /** 1 if a branch leads to loop n. */
  targeted: Uint8Array = new Uint8Array(64);
  loopCount = 0;
  listCount = 0;
  /** The list is too long: the function cannot be compiled. */
  overflow = false;
  /** Length of the list when loop n was opened. */
  #mark: Int32Array = new Int32Array(64);

  /** By local: number + 1 of the innermost open loop that has recorded it, 0 for none. */
  #owner: Int32Array = new Int32Array(64);
  /** Open loops: record number, and start of its locals in the work list. */
  #openLoop: Int32Array = new Int32Array(64);
  #openWork: Int32Array = new Int32Array(64);
  /** Locals of open loops, and their previous owner. */
  #work: Int32Array = new Int32Array(256);
  #before: Int32Array = new Int32Array(256);
  #workCount = 0;
  /** Open frames: number of the loop, −1 for other frames. */
  #frames: Int32Array = new Int32Array(64);

  /** Removes all records but the first `loops`. */
  truncate(loops: number): void {
    if (loops < this.loopCount) this.listCount = this.#mark[loops];
    this.loopCount = loops;
  }

  /**
   * Scans the loop at whose first instruction `reader` is, up to its end. `localCount` is the function's number of
   * locals.
   */
  scan(reader: BodyReader, localCount: number): void {
    if (this.#owner.length < localCount) this.#owner = new Int32Array(localCount + 64);
    const { imm } = reader;
    let loops = 0;
    let depth = 0;
    this.#workCount = 0;
    this.overflow = false;
    this.#openFrame(0, this.#openLoopRecord(loops++));
    depth = 1;
    while (depth > 0) {
      const id = reader.next();
      if (id < 0) return;
      switch (ACTION[id]) {
        case OTHER:
          break;
        case ASSIGN:
          if (isBelow(imm.index, localCount)) this.#assign(imm.index, loops);
          break;
        case OPEN:
          this.#openFrame(depth++, -1);
          break;
        case LOOP:
          this.#openFrame(depth++, this.#openLoopRecord(loops++));
          break;
        case CLOSE:
          depth--;
          if (this.#frames[depth] >= 0) this.#closeLoop(--loops);
          break;
        case BRANCH:
          this.#target(depth, imm.index);
          break;
        case SWITCH:
          for (let n = 0; n <= imm.labelCount; n++) this.#target(depth, imm.labels[n]);
          break;
        case CATCHES:
          for (const clause of imm.catches) this.#target(depth, clause.label);
          this.#openFrame(depth++, -1);
          break;
        case HANDLERS:
          for (const { label } of imm.handlers) if (label >= 0) this.#target(depth, label);
          break;
      }
    }
  }

  #openFrame(depth: number, loop: number): void {
    if (depth >= this.#frames.length) this.#frames = doubled(this.#frames, depth + 1);
    this.#frames[depth] = loop;
  }

  /** Opens a record; `open` is the number of loops that are open already. */
  #openLoopRecord(open: number): number {
    const loop = this.loopCount++;
    if (loop >= this.first.length) {
      this.first = doubled(this.first, loop + 1);
      this.last = doubled(this.last, loop + 1);
      this.#mark = doubled(this.#mark, loop + 1);
      this.targeted = doubled(this.targeted, loop + 1);
    }
    this.first[loop] = this.last[loop] = this.listCount;
    this.#mark[loop] = this.listCount;
    this.targeted[loop] = 0;
    if (open >= this.#openLoop.length) {
      this.#openLoop = doubled(this.#openLoop, open + 1);
      this.#openWork = doubled(this.#openWork, open + 1);
    }
    this.#openLoop[open] = loop;
    this.#openWork[open] = this.#workCount;
    return loop;
  }

  #assign(local: number, open: number): void {
    const mark = this.#openLoop[open - 1] + 1;
    const owner = this.#owner[local];
    if (owner === mark) return;
    if (this.#workCount >= this.#work.length) {
      this.#work = doubled(this.#work, this.#workCount + 1);
      this.#before = doubled(this.#before, this.#workCount + 1);
    }
    this.#work[this.#workCount] = local;
    this.#before[this.#workCount++] = owner;
    this.#owner[local] = mark;
  }

  /**
   * Completes the record of the innermost open loop, number `open` of the open ones, and adds its locals to the
   * enclosing loop.
   */
  #closeLoop(open: number): void {
    const loop = this.#openLoop[open];
    const start = this.#openWork[open];
    const count = this.targeted[loop] === 1 ? this.#workCount - start : 0;
    if (this.listCount + count > MAX_LIST) this.overflow = true;
    const listed = !this.overflow && count > 0;
    if (listed && this.listCount + count > this.list.length) this.list = doubled(this.list, this.listCount + count);
    this.first[loop] = this.listCount;
    const parent = open > 0 ? this.#openLoop[open - 1] + 1 : 0;
    let kept = start;
    for (let n = start; n < this.#workCount; n++) {
      const local = this.#work[n];
      const before = this.#before[n];
      if (listed) this.list[this.listCount++] = local;
      if (parent === 0 || before === parent) {
        this.#owner[local] = before;
      } else {
        this.#owner[local] = parent;
        this.#work[kept] = local;
        this.#before[kept++] = before;
      }
    }
    this.#workCount = parent === 0 ? start : kept;
    this.last[loop] = this.listCount;
  }

  #target(depth: number, label: number): void {
    if (!isBelow(label, depth)) return;
    const loop = this.#frames[depth - 1 - label];
    if (loop >= 0) this.targeted[loop] = 1;
  }
}
