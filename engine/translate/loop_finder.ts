/**
 * Finds a loop header in a body, for code that is entered there (loop_entry.ts). In: the visitor's calls for the whole
 * body. Out: the frames around the loop, and the operands that are on the stack when the loop begins.
 *
 * The code in front of the loop is translated, into a function that is discarded: this shows which operands are
 * constants. Baseline code does not store constants; every other operand is in its home.
 */
import { OP } from "../ir/ops.ts";
import { TY, TY_BYTES } from "../ir/types.ts";
import { type CodeVisitor, FRAME } from "../validate/visitor.ts";
import type { Immediates } from "../wasm/immediates.ts";
import type { HeapType, ValType } from "../wasm/types.ts";
import { tyOf } from "../wasm/ir_types.ts";
import { IS_CAST } from "./frame_actions.ts";
import type { InstructionTranslator } from "./instructions.ts";

/** The numbers of parameters and results of a frame. */
interface FrameType {
  readonly params: number;
  readonly results: number;
}

/** A frame around the loop. */
export interface EnclosingFrame extends FrameType {
  readonly kind: number;
  /** Absolute offset of its opcode. */
  readonly at: number;
}

/** A local or an operand of a baseline frame. */
export interface FrameValue {
  readonly ty: number;
  /** Offset of its home in the frame. */
  readonly home: number;
  /** The bits of an operand that is a constant, which may have no value in its home. */
  readonly constant?: { readonly lo: number; readonly hi: number; readonly vector: Uint8Array | undefined };
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
  readonly castTypes: ReadonlyMap<number, { readonly heap: HeapType; readonly nullable: boolean }>;
}

/** Bytes of a home; the layout is that of baseline/kernel/operands.ts. */
function homeBytes(ty: number): number {
  return Math.max(8, TY_BYTES[ty]);
}

export class LoopFinder implements CodeVisitor {
  readonly #t: InstructionTranslator;
  readonly #at: number;
  readonly #open: (EnclosingFrame & { isCatch: boolean })[] = [];
  readonly #castTypes = new Map<number, { heap: HeapType; nullable: boolean }>();
  readonly #frameTypes = new Map<number, FrameType>();
  #locals: readonly ValType[] = [];
  #found = false;
  #state: { readonly operands: FrameValue[][]; readonly enclosing: readonly EnclosingFrame[] } | undefined;
  /** Kinds of the open frames, of the whole body; number of open legacy tries, and its maximum. */
  readonly #kinds: number[] = [];
  #tries = 0;
  #maxTries = 0;

  constructor(t: InstructionTranslator, at: number) {
    this.#t = t;
    this.#at = at;
  }

  /**
   * The state at the loop, once the body has been visited; undefined if no reachable loop begins there, or if it is in
   * a legacy catch, whose exception the frame does not hold.
   */
  get state(): LoopState | undefined {
    if (this.#state === undefined) return undefined;
    let home = 0;
    const withHome = <Value extends FrameValue>(value: Value) => {
      const located = { ...value, home };
      home += homeBytes(value.ty);
      return located;
    };
    const locals = this.#locals.map((type) => withHome({ ty: tyOf(type), home: 0 }));
    home += this.#maxTries * 8; // baseline code keeps the exceptions of legacy catches here
    const operands = this.#state.operands.map((list) => list.map(withHome));
    return {
      locals,
      enclosing: this.#state.enclosing,
      operands,
      frameTypes: this.#frameTypes,
      castTypes: this.#castTypes,
    };
  }

  begin(funcIndex: number, params: number, results: number, locals: readonly ValType[]): void {
    this.#locals = locals;
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
      this.#takeState(params);
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
    if (this.#kinds.pop() === FRAME.TRY) this.#tries--;
    if (this.#found) return;
    this.#open.pop();
    this.#t.end(at, delegate);
  }

  finish(): void {}

  /** Records the state at the loop. Its `params` topmost operands are its parameters, which iterations change. */
  #takeState(params: number): void {
    const { reachable, frames, sp } = this.#t;
    if (!reachable || this.#open.some(({ isCatch }) => isCatch)) return;
    const operands: FrameValue[][] = [];
    for (let n = 0; n < frames.count; n++) {
      const end = n + 1 < frames.count ? frames.height[n + 1] : sp;
      const list: FrameValue[] = [];
      for (let k = frames.height[n]; k < end; k++) list.push(this.#operand(k, k < sp - params));
      operands.push(list);
    }
    this.#state = { operands, enclosing: this.#open.slice() };
  }

  /** Operand `k` of the stack, which may be a constant if `isFixed`; its home is determined later. */
  #operand(k: number, isFixed: boolean): FrameValue {
    const { f, stack } = this.#t;
    const value = stack[k];
    const ty = f.ty[value];
    if (!isFixed || f.op[value] !== OP.CONST) return { ty, home: 0 };
    const vector = ty === TY.V128 ? f.vectors.slice(f.imm[value] * 16, f.imm[value] * 16 + 16) : undefined;
    return { ty, home: 0, constant: { lo: f.imm[value], hi: f.c[value], vector } };
  }
}
