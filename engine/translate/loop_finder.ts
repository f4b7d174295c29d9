/**
 * Finds a loop header in a body, for code that is entered there (loop_entry.ts). In: the visitor's calls for the whole
 * body. Out: the frames around the loop, and the operands that are on the stack when the loop begins.
 *
 * The code in front of the loop is translated, into a function that is discarded: this shows which operands are
 * constants. Baseline code does not store constants; every other operand is in its home.
 */
import { OP } from "../ir/ops.ts";
import { TY, TY_BYTES } from "../ir/types.ts";
import type { Immediates } from "../wasm/immediates.ts";
import { tyOf } from "../wasm/ir_types.ts";
import { BodyVisitor, FRAME } from "./body_visitor.ts";
import { IS_CAST } from "./frame_actions.ts";
import type { InstructionTranslator } from "./instructions.ts";
import { wordAt } from "./vector_constants.ts";

/** The numbers of parameters and results of a frame. */
interface FrameType {
  readonly params: number;
  readonly results: number;
}

/** The static type of the operand of a cast. */
interface CastType {
  readonly heap: number;
  readonly nullable: boolean;
}

/** A frame around the loop. */
export interface EnclosingFrame {
  readonly kind: number;
  /** Absolute offset of its opcode. */
  readonly at: number;
  readonly params: number;
  readonly results: number;
  /** Whether the body is in a catch of it, a legacy try. */
  isCatch: boolean;
}

/** A local or an operand of a baseline frame. */
export interface FrameValue {
  readonly ty: number;
  /** Offset of its home in the frame. */
  home: number;
  /** Whether it is a constant, which may have no value in its home; its words, the lowest first. */
  readonly isConstant: boolean;
  readonly lo: number;
  readonly hi: number;
  readonly third: number;
  readonly fourth: number;
}

/** The state of a body at the header of a loop. */
export interface LoopState {
  readonly locals: readonly FrameValue[];
  /** The frames around the loop, the body's own not included, outermost first. */
  readonly enclosing: readonly EnclosingFrame[];
  /** The operands of the body and of each enclosing frame; those of the innermost include the loop's parameters. */
  readonly operands: readonly (readonly FrameValue[])[];
  /** The types of all frames of the body, by offset of the opcode. */
  readonly frameTypes: ReadonlyMap<number, FrameType>;
  /** The static types that validation found for the operands of casts, by offset of the instruction. */
  readonly castTypes: ReadonlyMap<number, CastType>;
}

/** Bytes of a home; the layout is that of baseline/kernel/operands.ts. */
function homeBytes(ty: number): number {
  return Math.max(8, TY_BYTES[ty]);
}

/** A value that is in its home. */
function stored(ty: number, home: number): FrameValue {
  return { ty, home, isConstant: false, lo: 0, hi: 0, third: 0, fourth: 0 };
}

export class LoopFinder extends BodyVisitor {
  readonly #t: InstructionTranslator;
  readonly #at: number;
  readonly #open: EnclosingFrame[] = [];
  readonly #castTypes = new Map<number, CastType>();
  readonly #frameTypes = new Map<number, FrameType>();
  /** Types of the locals of the IR. */
  readonly #locals: number[] = [];
  #found = false;
  /** Whether the loop can be entered; if so, its operands and the frames around it. */
  #isEntered = false;
  readonly #operands: FrameValue[][] = [];
  #enclosing: readonly EnclosingFrame[] = [];
  /** Kinds of the open frames, of the whole body; number of open legacy tries, and its maximum. */
  readonly #kinds: number[] = [];
  #tries = 0;
  #maxTries = 0;

  constructor(t: InstructionTranslator, at: number) {
    super();
    this.#t = t;
    this.#at = at;
  }

  /**
   * The state at the loop, once the body has been visited; undefined if no reachable loop begins there, or if it is in
   * a legacy catch, whose exception the frame does not hold.
   */
  takeState(): LoopState | undefined {
    if (!this.#isEntered) return undefined;
    const locals: FrameValue[] = [];
    let home = 0;
    for (const ty of this.#locals) {
      locals.push(stored(ty, home));
      home += homeBytes(ty);
    }
    home += this.#maxTries * 8; // baseline code keeps the exceptions of legacy catches here
    for (const list of this.#operands) {
      for (const value of list) {
        value.home = home;
        home += homeBytes(value.ty);
      }
    }
    return {
      locals,
      enclosing: this.#enclosing,
      operands: this.#operands,
      frameTypes: this.#frameTypes,
      castTypes: this.#castTypes,
    };
  }

  begin(funcIndex: number, params: number, results: number, locals: readonly number[]): void {
    const { signature } = this.#t.f;
    for (let k = 0; k < locals.length; k++) {
      this.#locals.push(k < params ? signature.params[k] : tyOf(locals[k]));
    }
    this.#t.begin(funcIndex, params, results, locals);
  }

  instruction(id: number, imm: Immediates, at: number): void {
    if (IS_CAST[id] !== 0) this.#castTypes.set(at, { heap: imm.heap2, nullable: imm.nullable2 });
    if (!this.#found) this.#t.instruction(id, imm, at);
  }

  enter(kind: number, params: number, results: number, imm: Immediates, at: number): void {
    this.#kinds.push(kind);
    this.#frameTypes.set(at, { params, results });
    if (kind === FRAME.TRY) this.#maxTries = Math.max(this.#maxTries, ++this.#tries);
    if (this.#found) return;
    if (at === this.#at && kind === FRAME.LOOP) {
      this.#found = true;
      this.#noteState(params);
      return;
    }
    this.#open.push({ kind, at, params, results, isCatch: false });
    this.#t.enter(kind, params, results, imm, at);
  }

  otherwise(at: number): void {
    if (!this.#found) this.#t.otherwise(at);
  }

  handler(tag: number, at: number): void {
    if (this.#found) return;
    this.#open[this.#open.length - 1].isCatch = true;
    this.#t.handler(tag, at);
  }

  end(at: number, delegate: number): void {
    // The body's own frame was not entered.
    if (this.#kinds.length > 0 && this.#kinds.pop() === FRAME.TRY) this.#tries--;
    if (this.#found) return;
    if (this.#open.length > 0) this.#open.pop();
    this.#t.end(at, delegate);
  }

  /** Notes the state at the loop. Its `params` topmost operands are its parameters, which iterations change. */
  #noteState(params: number): void {
    const { reachable, frames, sp } = this.#t;
    if (!reachable) return;
    for (const { isCatch } of this.#open) if (isCatch) return;
    for (let n = 0; n < frames.count; n++) {
      const end = n + 1 < frames.count ? frames.height[n + 1] : sp;
      const list: FrameValue[] = [];
      for (let k = frames.height[n]; k < end; k++) list.push(this.#operand(k, k < sp - params));
      this.#operands.push(list);
    }
    this.#enclosing = this.#open.slice();
    this.#isEntered = true;
  }

  /** Operand `k` of the stack, which may be a constant if `isFixed`; its home is determined later. */
  #operand(k: number, isFixed: boolean): FrameValue {
    const { f, stack } = this.#t;
    const value = stack[k];
    const ty = f.ty[value];
    if (!isFixed || f.op[value] !== OP.CONST) return stored(ty, 0);
    if (ty !== TY.V128) return { ty, home: 0, isConstant: true, lo: f.imm[value], hi: f.c[value], third: 0, fourth: 0 };
    const { vectors } = f;
    const at = f.imm[value] * 16;
    return {
      ty,
      home: 0,
      isConstant: true,
      lo: wordAt(vectors, at),
      hi: wordAt(vectors, at + 4),
      third: wordAt(vectors, at + 8),
      fourth: wordAt(vectors, at + 12),
    };
  }
}
