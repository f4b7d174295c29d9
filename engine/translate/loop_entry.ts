/**
 * On-stack replacement: the rest of a function from a loop header on, translated as a separate function. In: a body,
 * and the offset of a loop in it. Out: an IrFunction whose only parameter is the address of a baseline frame of the
 * body at that header, and whose results are those of the body.
 *
 *     entry    loads the locals and operands from their homes in the frame
 *     block B  becomes the block from the loop on:            block … loop … end … end
 *     if, try  the same; the other arm of an if is left out
 *     loop O   is finished as a block, and then repeated:     block block … loop … end … br 1 end loop O … end end
 *
 * A branch to an enclosing loop O thus leads to a whole copy of O, so the control flow remains reducible and the
 * optimizer treats every loop as it would in the body itself. The visitor's calls are produced by reading the body
 * again, with the labels of branches changed.
 *
 * Relies on: the body is valid; the frame is one of baseline code (baseline/kernel/operands.ts), and the loop is the
 * one it is at. Establishes: the invariants of ir/function.ts. Charges of fuel are those of the body, because regions
 * begin at loop headers.
 */
import type { IrFunction } from "../ir/function.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { BodyReader } from "../wasm/body_reader.ts";
import { FRAME } from "./body_visitor.ts";
import { branch } from "./control.ts";
import { loopsTooLarge } from "./failures.ts";
import { ACTION, ACTION_OF, KIND_OF } from "./frame_actions.ts";
import { FRAME_KIND } from "./frames.ts";
import { beginFuel, closeRegion } from "./fuel.ts";
import type { InstructionTranslator } from "./instructions.ts";
import { type EnclosingFrame, type FrameValue, LoopFinder, type LoopState } from "./loop_finder.ts";
import { type ModuleFacts, resultCount } from "./module_facts.ts";

/**
 * Limit on the instructions that are read, since enclosing loops are read twice: the larger of a constant and a
 * multiple of the body's bytes.
 */
const MIN_LIMIT = 50_000;
const LIMIT_PER_BYTE = 3;

/**
 * Translates defined function `definedIndex` from the loop at offset `at` on into `f`. Returns false if the loop cannot
 * be entered: there is none, it is unreachable, or it is in a legacy catch. Throws UnsupportedError if the result is
 * too large.
 */
export function translateLoopEntry(
  t: InstructionTranslator,
  env: ModuleFacts,
  definedIndex: number,
  at: number,
  f: IrFunction,
): boolean {
  t.prepare(env, definedIndex, f);
  const finder = new LoopFinder(t, at);
  t.visitBody(definedIndex, finder);
  const state = finder.takeState();
  if (state === undefined) return false;
  t.prepare(env, definedIndex, f);
  const params = new Uint8Array(1);
  params[0] = TY.I64;
  f.signature = { params, results: f.signature.results };
  new LoopReplay(t, definedIndex, at, state).run();
  t.complete(definedIndex);
  return true;
}

/** Produces the visitor's calls for the rest of a body. */
class LoopReplay {
  readonly #t: InstructionTranslator;
  readonly #reader = new BodyReader();
  readonly #definedIndex: number;
  readonly #at: number;
  readonly #state: LoopState;
  /** By open frame of the body, outermost first: the number of the translator's frame that is its label. */
  readonly #labels: number[] = [];
  /** Number of the translator's open frames. */
  #depth = 0;
  /** Number of instructions that may still be read. */
  #left: number;
  /** The address of the baseline frame. */
  #frame = 0;

  constructor(t: InstructionTranslator, definedIndex: number, at: number, state: LoopState) {
    this.#t = t;
    this.#definedIndex = definedIndex;
    this.#at = at;
    this.#state = state;
    t.openBody(definedIndex);
    const { bytes, base } = t.reader;
    this.#reader.reset(bytes, 0, bytes.length, base);
    this.#left = Math.max(MIN_LIMIT, bytes.length * LIMIT_PER_BYTE);
  }

  run(): void {
    const { enclosing, operands } = this.#state;
    this.#begin();
    this.#push(operands[0]);
    for (let n = 0; n < enclosing.length; n++) {
      this.#openEnclosing(enclosing[n]);
      this.#push(operands[n + 1]);
    }
    this.#loop(this.#at);
    for (let n = enclosing.length - 1; n >= 0; n--) this.#closeEnclosing(enclosing[n]);
    this.#rest();
    this.#t.end(this.#reader.at, -1);
  }

  /** Begins the function: its parameter, the locals, the body's frame. */
  #begin(): void {
    const t = this.#t;
    const { env, frames, b } = t;
    const { locals, operands } = this.#state;
    const funcIndex = env.importedFuncCount + this.#definedIndex;
    t.chain.push(funcIndex);
    t.funcIndex = funcIndex;
    t.localEnd = locals.length;
    frames.reserveLocals(locals.length);
    let count = 0;
    for (const list of operands) count += list.length;
    t.reserve(env.summaries.bytes[this.#definedIndex] + 16 + count);
    b.openBlock(0, false);
    this.#frame = b.param(TY.I64);
    for (let k = 0; k < locals.length; k++) frames.locals[k] = this.#load(locals[k]);
    frames.loggedAt.fill(0, 0, locals.length);
    const results = resultCount(env, funcIndex);
    t.bodyFrame = frames.open(FRAME_KIND.BODY, 0, results, results);
    frames.floor = -1;
    t.reachable = true;
    if (t.metered) beginFuel(t);
    this.#labels.push(this.#depth++);
  }

  /** A value of the baseline frame. The loads precede every operation that may move the stack. */
  #load(value: FrameValue): number {
    const { ty, home, isConstant, lo, hi, third, fourth } = value;
    const { b, env } = this.#t;
    if (!isConstant) return b.emit(OP.LOAD, ty, this.#frame, 0, env.payloadRegion, home);
    return ty === TY.V128 ? this.#t.vectorConstant(lo, hi, third, fourth) : b.constant(ty, lo, hi);
  }

  #push(values: readonly FrameValue[]): void {
    for (const value of values) this.#t.push(this.#load(value));
  }

  /** Opens the frames for an enclosing frame, whose parameters the code in front of the loop has used. */
  #openEnclosing(frame: EnclosingFrame): void {
    const { kind, at, params, results } = frame;
    const { imm } = this.#read(at);
    const t = this.#t;
    if (kind === FRAME.TRY_TABLE || kind === FRAME.TRY) {
      if (kind === FRAME.TRY_TABLE) this.#relabelClauses();
      t.enter(kind, 0, results, imm, at);
    } else {
      t.enter(FRAME.BLOCK, 0, results, imm, at);
      if (kind === FRAME.LOOP) {
        this.#depth++;
        t.enter(FRAME.BLOCK, 0, params, imm, at);
      }
    }
    this.#labels.push(this.#depth++);
  }

  /** Translates the rest of an enclosing frame, and closes it. */
  #closeEnclosing(frame: EnclosingFrame): void {
    const { kind, at } = frame;
    const t = this.#t;
    const delegate = this.#rest();
    const end = this.#reader.at;
    this.#labels.pop();
    this.#depth--;
    if (kind === FRAME.LOOP) {
      const { pos } = this.#reader;
      closeRegion(t);
      t.b.pos = end;
      if (t.reachable) branch(t, 1);
      t.end(end, -1);
      this.#loop(at);
      this.#reader.pos = pos;
      this.#depth--;
    }
    t.end(end, delegate < 0 ? -1 : this.#label(delegate));
  }

  /** Reads the instruction at absolute offset `at`. */
  #read(at: number): BodyReader {
    const reader = this.#reader;
    reader.pos = at - reader.base;
    reader.next();
    return reader;
  }

  /** Translates the whole loop at offset `at`. */
  #loop(at: number): void {
    this.#read(at);
    this.#enter(FRAME.LOOP, at);
    this.#rest();
    this.#leave(this.#reader.at, -1);
  }

  #enter(kind: number, at: number): void {
    const { params, results } = this.#state.frameTypes.get(at)!;
    if (kind === FRAME.TRY_TABLE) this.#relabelClauses();
    this.#t.enter(kind, params, results, this.#reader.imm, at);
    this.#labels.push(this.#depth++);
  }

  #leave(at: number, delegate: number): void {
    this.#labels.pop();
    this.#depth--;
    this.#t.end(at, delegate < 0 ? -1 : this.#label(delegate));
  }

  /**
   * Translates up to the end of the frame in which the reader is, of an if up to its else. Returns the label of the
   * `delegate` that ends it, −1 for none.
   */
  #rest(): number {
    const reader = this.#reader;
    const { imm } = reader;
    let inside = 0;
    while (inside >= 0) {
      const id = reader.next();
      const { at } = reader;
      if (--this.#left < 0) throw loopsTooLarge(at);
      switch (ACTION_OF[id]) {
        case ACTION.ENTER:
          this.#enter(KIND_OF[id], at);
          inside++;
          break;
        case ACTION.ELSE:
          if (inside === 0) return this.#skip();
          this.#t.otherwise(at);
          break;
        case ACTION.CATCH:
          this.#t.handler(imm.index, at);
          break;
        case ACTION.CATCH_ALL:
          this.#t.handler(-1, at);
          break;
        case ACTION.END:
        case ACTION.DELEGATE: {
          const delegate = ACTION_OF[id] === ACTION.DELEGATE ? imm.index : -1;
          if (inside-- === 0) return delegate;
          this.#leave(at, delegate);
          break;
        }
        default:
          this.#instruction(id, at);
      }
    }
    return -1;
  }

  #instruction(id: number, at: number): void {
    const { imm } = this.#reader;
    if (ACTION_OF[id] === ACTION.LABEL) imm.index = this.#label(imm.index);
    else if (ACTION_OF[id] === ACTION.LABELS) {
      for (let k = 0; k <= imm.labelCount; k++) imm.labels[k] = this.#label(imm.labels[k]);
    }
    const { castTypes } = this.#state;
    if (castTypes.has(at)) {
      const cast = castTypes.get(at)!;
      imm.heap2 = cast.heap;
      imm.nullable2 = cast.nullable;
    }
    this.#t.instruction(id, imm, at);
  }

  /** Skips the else arm of the innermost frame. */
  #skip(): number {
    let inside = 0;
    while (inside >= 0) {
      const action = ACTION_OF[this.#reader.next()];
      if (action === ACTION.ENTER) inside++;
      else if (action === ACTION.END || action === ACTION.DELEGATE) inside--;
    }
    return -1;
  }

  /** The translator's label for a label of the body. */
  #label(label: number): number {
    return this.#depth - 1 - this.#labels[this.#labels.length - 1 - label];
  }

  /** Replaces the labels of the clauses that have been read by the translator's. */
  #relabelClauses(): void {
    for (const clause of this.#reader.imm.catches) clause.label = this.#label(clause.label);
  }
}
