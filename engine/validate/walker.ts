/**
 * The state of one walk through an expression: operand stack and control stack as growable typed arrays, and the steps
 * that the rules are composed of (specification, appendix "Validation Algorithm"). code.ts drives it over a function
 * body, constant_rules.ts over a constant expression, and the special rules (special.ts) are functions over it.
 *
 * Invariants: `stack[0 … top)` are the operand types, those of the innermost frame from `base` on; there are `depth` ≥
 * 1 frames, the innermost last; the stack has room for as many pushes as the expression has bytes left (an instruction
 * that pushes more makes room itself), so that rules that push one type need no check. Walks nest (inlining), so
 * walkers come from a pool; no two walks share one.
 */
import { doubled } from "../base/columns.ts";
import { InvalidError, MalformedError } from "../base/errors.ts";
import { CodeReader } from "../wasm/code_reader.ts";
import type { Immediates } from "../wasm/immediates.ts";
import type { RawBytes } from "../wasm/module.ts";
import { idOf, keywordOf } from "../wasm/opcodes.ts";
import { HEAP_BOTTOM, matchesIn, REF_BOTTOM } from "../wasm/subtype.ts";
import { BOTTOM, heapOf, type HeapType, isRef, type ValType, valTypeName } from "../wasm/types.ts";
import { featureOfType } from "./gate.ts";
import type { ValidModule } from "./valid_module.ts";

/** Kinds of frames on the control stack. */
export const KIND = {
  BODY: 0,
  BLOCK: 1,
  LOOP: 2,
  IF: 3,
  ELSE: 4,
  TRY_TABLE: 5,
  TRY: 6,
  CATCH: 7,
  CATCH_ALL: 8,
} as const;

/** The empty list of types: the parameters of most blocks. */
export const NO_TYPES: readonly ValType[] = [];

const NOP = idOf("nop");
/** Room on the operand stack beyond the pushes of the remaining bytes. */
const OPERAND_SLACK = 16;

/** A walker that grew beyond this many operands or frames does not return to the pool. */
const POOLED_CAPACITY = 1 << 16;

/** The static types of the operands of ref.test and ref.cast, in the order of the instructions. */
export interface CastOperands {
  /** Absolute offsets of the instructions. */
  readonly at: number[];
  readonly heap: HeapType[];
  /** 1 for a type that includes null. */
  readonly isNullable: number[];
}

export class Walker {
  valid!: ValidModule;
  /** Canonical type ids of the module. */
  ids!: Int32Array;
  readonly reader: CodeReader = new CodeReader(new Uint8Array(0));
  readonly imm: Immediates = this.reader.imm;
  /** The current instruction: id of its row, absolute offset. */
  id = 0;
  at = 0;
  /** Function index of the body; −1 in a constant expression. */
  funcIndex = -1;
  /** Globals from this index on are not visible: they are declared after the current constant expression. */
  visibleGlobals = 0;

  stack: Int32Array = new Int32Array(256);
  top = 0;
  base = 0;

  depth = 0;
  kinds: Uint8Array = new Uint8Array(64);
  bases: Int32Array = new Int32Array(64);
  /** By frame: 1 after unreachable, br, …: operands below its base then have any type that is asked for. */
  dead: Uint8Array = new Uint8Array(64);
  /** Length of `inits` when the frame was entered. */
  initMarks: Int32Array = new Int32Array(64);
  /** Stamp of the last br_table that has checked the frame's label. */
  stamps: Int32Array = new Int32Array(64);
  params: (readonly ValType[])[] = [];
  results: (readonly ValType[])[] = [];
  stamp = 0;

  /** Types of all locals, parameters first. A new array for every body, because visitors keep it. */
  locals: ValType[] = [];
  /** Whether the body has locals without a default value; `isSet` is maintained only then. */
  tracksInit = false;
  /** By local: 1 if it is set. */
  isSet: Uint8Array = new Uint8Array(0);
  /** Locals in the order in which they were set: undone at the end of the frame. */
  inits: Int32Array = new Int32Array(16);
  initCount = 0;

  /** Records the types of the operands of casts, if they are asked for. */
  casts: CastOperands | null = null;

  /** Positions the walker at an expression, or at a function body, which begins with local declarations. */
  begin(valid: ValidModule, code: RawBytes, funcIndex: number): void {
    this.valid = valid;
    this.ids = valid.canonicalIds;
    const reader = this.reader;
    reader.reset(code.bytes, 0, code.bytes.length, code.offset);
    // Without any segment the error is the unknown index, which says more; otherwise the missing data count section.
    reader.dataCountMissing = valid.dataCount === undefined && valid.datas.length > 0;
    this.at = code.offset;
    this.id = NOP;
    this.funcIndex = funcIndex;
    this.visibleGlobals = valid.globalTypes.length;
    this.top =
      this.base =
      this.depth =
      this.initCount =
        0;
    this.tracksInit = false;
    this.casts = null;
  }

  /** Opens the outermost frame; the reader is at the first instruction. */
  beginExpression(results: readonly ValType[]): void {
    this.reserve(0);
    this.enter(KIND.BODY, NO_TYPES, results);
  }

  // Errors.

  /** Throws InvalidError for the current instruction. */
  fail(message: string): never {
    throw new InvalidError(`${message} (${this.place()})`, { offset: this.at });
  }

  /** Throws for an instruction that is not allowed at this place. */
  misplaced(): never {
    throw new MalformedError(`END opcode expected: misplaced ${this.place()}`, { offset: this.at });
  }

  /** Describes the current instruction for messages. */
  place(): string {
    const keyword = keywordOf(this.id);
    return this.funcIndex < 0 ? `${keyword} in a constant expression` : `${keyword} in function ${this.funcIndex}`;
  }

  /** Throws: `expected` are required, and the stack, which had height `height`, holds other types. */
  mismatch(expected: readonly ValType[], height: number, who = "instruction"): never {
    const first = Math.max(this.base, height - expected.length);
    const found = Array.from(this.stack.subarray(who === "block" ? this.base : first, height), typeName);
    if (found.length < expected.length && this.isDead()) found.unshift("...");
    this.fail(
      `type mismatch: ${who} requires [${expected.map(typeName).join(" ")}] but stack has [${found.join(" ")}]`,
    );
  }

  // Operands.

  /** Makes room for `count` operands and one more per byte left, with some slack. */
  reserve(count: number): void {
    const need = this.top + count + (this.reader.end - this.reader.pos) + OPERAND_SLACK;
    if (need > this.stack.length) this.stack = doubled(this.stack, need);
  }

  isDead(): boolean {
    return this.dead[this.depth - 1] === 1;
  }

  matches(type: ValType, expected: ValType): boolean {
    return matchesIn(this.ids, type, expected);
  }

  /** Pushes one type; the invariant guarantees room. */
  push(type: ValType): void {
    this.stack[this.top++] = type;
  }

  pushAll(types: readonly ValType[]): void {
    const count = types.length;
    if (count > 1) this.reserve(count);
    const stack = this.stack;
    let top = this.top;
    for (let i = 0; i < count; i++) stack[top++] = types[i];
    this.top = top;
  }

  /** Pops the top operand; BOTTOM on the empty stack of unreachable code. */
  popAny(): ValType {
    if (this.top > this.base) return this.stack[--this.top];
    if (!this.isDead()) this.fail("type mismatch: instruction requires an operand but stack has []");
    return BOTTOM;
  }

  /** Pops an operand of type `expected`; returns false if the top operand does not match. */
  tryPop(expected: ValType): boolean {
    if (this.top > this.base) {
      const type = this.stack[this.top - 1];
      if (type !== expected && !this.matches(type, expected)) return false;
      this.top--;
      return true;
    }
    return this.isDead();
  }

  pop(expected: ValType): void {
    if (!this.tryPop(expected)) this.mismatch([expected], this.top);
  }

  /** Pops `types`, the last one first. */
  popAll(types: readonly ValType[]): void {
    const height = this.top;
    for (let i = types.length - 1; i >= 0; i--) {
      if (!this.tryPop(types[i])) this.mismatch(types, height);
      // Unreachable code provides the missing operands.
      if (this.top === this.base && this.isDead()) return;
    }
  }

  /** Pops two or three operands that a message shows together. */
  pop2(second: ValType, top: ValType): void {
    const height = this.top;
    if (!this.tryPop(top) || !this.tryPop(second)) this.mismatch([second, top], height);
  }

  pop3(third: ValType, second: ValType, top: ValType): void {
    const height = this.top;
    if (!this.tryPop(top) || !this.tryPop(second) || !this.tryPop(third)) this.mismatch([third, second, top], height);
  }

  /** Pops a reference; REF_BOTTOM on the empty stack of unreachable code. */
  popRef(): ValType {
    const type = this.popAny();
    if (type === BOTTOM) return REF_BOTTOM;
    if (!isRef(type)) {
      this.fail(`type mismatch: instruction requires a reference type but stack has [${typeName(type)}]`);
    }
    return type;
  }

  // Frames.

  /** Opens a frame and pushes its parameters, which were popped before. */
  enter(kind: number, params: readonly ValType[], results: readonly ValType[]): void {
    const depth = this.depth;
    if (depth === this.kinds.length) this.growFrames();
    this.kinds[depth] = kind;
    this.bases[depth] = this.base = this.top;
    this.dead[depth] = 0;
    this.initMarks[depth] = this.initCount;
    this.stamps[depth] = 0;
    this.params[depth] = params;
    this.results[depth] = results;
    this.depth = depth + 1;
    if (params.length > 0) this.pushAll(params);
  }

  growFrames(): void {
    const capacity = this.kinds.length * 2;
    this.kinds = doubled(this.kinds, capacity);
    this.dead = doubled(this.dead, capacity);
    this.bases = doubled(this.bases, capacity);
    this.initMarks = doubled(this.initMarks, capacity);
    this.stamps = doubled(this.stamps, capacity);
  }

  /** Checks that the innermost frame ends with exactly its results, and leaves its operands popped. */
  finishFrame(): void {
    const results = this.results[this.depth - 1];
    const height = this.top;
    this.popAll(results);
    if (this.top !== this.base) this.mismatch(results, height, "block");
  }

  /** Begins the next part (else, catch) of the innermost frame with `types` on its stack. */
  restartFrame(kind: number, types: readonly ValType[]): void {
    const frame = this.depth - 1;
    this.kinds[frame] = kind;
    this.dead[frame] = 0;
    this.top = this.base;
    this.undoInits(this.initMarks[frame]);
    this.pushAll(types);
  }

  /** Closes the innermost frame, which `finishFrame` checked, and pushes its results. */
  leave(): void {
    const frame = --this.depth;
    this.undoInits(this.initMarks[frame]);
    const results = this.results[frame];
    if (frame > 0) this.base = this.bases[frame - 1];
    this.pushAll(results);
  }

  /** Marks the rest of the innermost frame as unreachable. */
  markDead(): void {
    this.dead[this.depth - 1] = 1;
    this.top = this.base;
  }

  /** Index in the frame columns of label `label`. */
  frameOf(label: number): number {
    if (label >= this.depth) this.fail(`unknown label ${label}`);
    return this.depth - 1 - label;
  }

  /** Types carried by a branch to frame `frame`. */
  labelTypes(frame: number): readonly ValType[] {
    return this.kinds[frame] === KIND.LOOP ? this.params[frame] : this.results[frame];
  }

  // Locals.

  /** Marks local `index` as set up to the end of the frame. */
  markSet(index: number): void {
    if (this.isSet[index] !== 0) return;
    this.isSet[index] = 1;
    if (this.initCount === this.inits.length) this.inits = doubled(this.inits, this.initCount * 2);
    this.inits[this.initCount++] = index;
  }

  undoInits(mark: number): void {
    while (this.initCount > mark) this.isSet[this.inits[--this.initCount]] = 0;
  }

  // Types in immediates.

  /** Records the feature of an instruction's type, and checks that its type index exists. */
  useType(type: ValType): void {
    const feature = featureOfType(type);
    const gate = this.valid.gate;
    if (this.at < gate.firstUse[feature]) gate.use(feature, this.at, valTypeName(type));
    if (isRef(type)) this.checkTypeIndex(heapOf(type));
  }

  /** Checks that type `index` exists, if it is an index. */
  checkTypeIndex(index: number): void {
    if (index >= this.valid.types.length) this.fail(`unknown type ${index}`);
  }
}

/** A type's name, including the types that occur only in unreachable code. */
export function typeName(type: ValType): string {
  return isRef(type) && heapOf(type) === HEAP_BOTTOM ? "(ref bot)" : valTypeName(type);
}

const pool: Walker[] = [];

/** A walker that no other walk uses; {@linkcode releaseWalker} returns it to the pool. */
export function acquireWalker(): Walker {
  return pool.pop() ?? new Walker();
}

export function releaseWalker(walker: Walker): void {
  if (walker.stack.length > POOLED_CAPACITY || walker.kinds.length > POOLED_CAPACITY) return;
  walker.params.length = walker.results.length = 0;
  walker.locals = [];
  pool.push(walker);
}
