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
import { validateBody } from "../validate/code.ts";
import { FRAME } from "../validate/visitor.ts";
import { wordAt } from "./vector_constants.ts";
import { BodyReader } from "./body_reader.ts";
import { branch } from "./control.ts";
import { loopsTooLarge } from "./failures.ts";
import { ACTION, ACTION_OF, KIND_OF } from "./frame_actions.ts";
import { FRAME_KIND } from "./frames.ts";
import { beginFuel, closeRegion } from "./fuel.ts";
import type { FunctionTranslator } from "./function.ts";
import { type EnclosingFrame, type FrameValue, LoopFinder, type LoopState } from "./loop_finder.ts";
import type { ModuleEnv } from "./module_env.ts";
import { resultCount } from "./module_facts.ts";

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
  t: FunctionTranslator,
  env: ModuleEnv,
  definedIndex: number,
  at: number,
  f: IrFunction,
): boolean {
  const funcIndex = env.importedFuncCount + definedIndex;
  t.begins(env);
  t.prepare(env, definedIndex, f);
  const finder = new LoopFinder(t, at);
  validateBody(env.valid, funcIndex, finder);
  const { state } = finder;
  if (state === undefined) return false;
  t.prepare(env, definedIndex, f);
  f.signature = { params: Uint8Array.of(TY.I64), results: f.signature.results };
  new LoopReplay(t, definedIndex, at, state).run();
  t.complete(definedIndex);
  t.report(env);
  return true;
}

/** Produces the visitor's calls for the rest of a body. */
class LoopReplay {
  readonly #t: FunctionTranslator;
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

  constructor(t: FunctionTranslator, definedIndex: number, at: number, state: LoopState) {
    this.#t = t;
    this.#definedIndex = definedIndex;
    this.#at = at;
    this.#state = state;
    t.openBody(definedIndex);
    const { bytes, base } = t.reader;
    this.#reader.reset(bytes, 0, base);
    this.#left = Math.max(MIN_LIMIT, bytes.length * LIMIT_PER_BYTE);
  }

  run(): void {
    const { enclosing, operands } = this.#state;
    this.#begin();
    this.#push(operands[0]);
    enclosing.forEach((frame, n) => {
      this.#openEnclosing(frame);
      this.#push(operands[n + 1]);
    });
    this.#loop(this.#at);
    for (const frame of enclosing.toReversed()) this.#closeEnclosing(frame);
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
    t.reserve(env.summaries.bytes[this.#definedIndex] + 16 + operands.flat().length);
    b.openBlock(0, false);
    this.#frame = b.param(TY.I64);
    locals.forEach((local, k) => frames.locals[k] = this.#load(local));
    frames.loggedAt.fill(0, 0, locals.length);
    const results = resultCount(env, funcIndex);
    t.bodyFrame = frames.open(FRAME_KIND.BODY, 0, results, results);
    frames.floor = -1;
    t.reachable = true;
    if (t.metered) beginFuel(t);
    this.#labels.push(this.#depth++);
  }

  /** A value of the baseline frame. The loads precede every operation that may move the stack. */
  #load({ ty, home, constant }: FrameValue): number {
    const { b, env } = this.#t;
    if (constant === undefined) return b.emit(OP.LOAD, ty, this.#frame, 0, env.payloadRegion, home);
    const { lo, hi, vector } = constant;
    return vector === undefined
      ? b.constant(ty, lo, hi)
      : this.#t.vectorConstant(wordAt(vector, 0), wordAt(vector, 4), wordAt(vector, 8), wordAt(vector, 12));
  }

  #push(values: readonly FrameValue[]): void {
    for (const value of values) this.#t.push(this.#load(value));
  }

  /** Opens the frames for an enclosing frame, whose parameters the code in front of the loop has used. */
  #openEnclosing({ kind, at, params, results }: EnclosingFrame): void {
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
  #closeEnclosing({ kind, at }: EnclosingFrame): void {
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
    for (let inside = 0;;) {
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
  }

  #instruction(id: number, at: number): void {
    const { imm } = this.#reader;
    if (ACTION_OF[id] === ACTION.LABEL) imm.index = this.#label(imm.index);
    else if (ACTION_OF[id] === ACTION.LABELS) {
      for (let k = 0; k <= imm.labelCount; k++) imm.labels[k] = this.#label(imm.labels[k]);
    }
    const cast = this.#state.castTypes.get(at);
    if (cast !== undefined) {
      imm.heap2 = cast.heap;
      imm.nullable2 = cast.nullable;
    }
    this.#t.instruction(id, imm, at);
  }

  /** Skips the else arm of the innermost frame. */
  #skip(): number {
    for (let inside = 0;;) {
      const action = ACTION_OF[this.#reader.next()];
      if (action === ACTION.ENTER) inside++;
      else if ((action === ACTION.END || action === ACTION.DELEGATE) && inside-- === 0) return -1;
    }
  }

  /** The translator's label for a label of the body. */
  #label(label: number): number {
    return this.#depth - 1 - this.#labels[this.#labels.length - 1 - label];
  }

  /** Replaces the labels of the clauses that have been read by the translator's. */
  #relabelClauses(): void {
    const { imm } = this.#reader;
    imm.catches = imm.catches.map((clause) => ({ ...clause, label: this.#label(clause.label) }));
  }
}
