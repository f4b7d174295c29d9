/**
 * The state of a translation, which all handlers of instructions share: the builder, the operand stack, the frames, the
 * constants. In: the function passed to `reset`. Out: fields that the handlers (control.ts, memory.ts, …) read and
 * write.
 *
 * Invariant: this file imports no handler, so they form no import cycle with the dispatch over them (function.ts).
 */
import { doubled } from "../base/columns.ts";
import { Builder } from "../ir/builder.ts";
import { IrFunction } from "../ir/function.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import type { CatchClause } from "../wasm/immediates.ts";
import { BodyReader } from "../wasm/body_reader.ts";
import { BodyVisitor } from "./body_visitor.ts";
import { CastState } from "./cast_state.ts";
import { Frames } from "./frames.ts";
import { LoopScan } from "./loop_scan.ts";
import { MergeColumns } from "./merge_columns.ts";
import { type ModuleFacts, NAN_CODE, TranslationCounts } from "./module_facts.ts";
import { VectorConstants } from "./vector_constants.ts";
import { MODE } from "../settings/code_mode.ts";

/**
 * The state of the translation of one function at a time. instructions.ts implements the visitor's methods and
 * dispatches to the topics' files.
 */
export abstract class Translation extends BodyVisitor {
  env!: ModuleFacts;
  f!: IrFunction;
  readonly b: Builder = new Builder(new IrFunction());
  readonly frames: Frames = new Frames();
  readonly loops: LoopScan = new LoopScan();
  readonly reader: BodyReader = new BodyReader();
  readonly vectors: VectorConstants = new VectorConstants();
  readonly merge: MergeColumns = new MergeColumns();
  readonly cast: CastState = new CastState();
  readonly counts: TranslationCounts = new TranslationCounts();

  /** Value ids of operands; pushes need no check up to `room` operands. */
  stack: Int32Array = new Int32Array(1024);
  sp = 0;
  room = 0;

  /** Whether the current instruction is reachable. In unreachable code, opened frames are only counted. */
  reachable = false;
  deadFrames = 0;

  // The activation: the function's own body, or the inlined body under translation.
  /** Function index of the body. */
  funcIndex = 0;
  /** Frame number of the body itself. */
  bodyFrame = 0;
  /** Slots of its first local, and one past its last. */
  localBase = 0;
  localEnd = 0;
  /** Open loops of the activation; the next record of `loops`. */
  openLoops = 0;
  nextLoop = 0;
  /** Bytes of bodies that this function may still inline. */
  inlineBudget = -1;
  inlineDepth = 0;
  /** Function indices of the activations, outermost first. */
  readonly chain: number[] = [];
  /** Catch clauses of the open try_tables, innermost last. */
  readonly clauses: (readonly CatchClause[])[] = [];
  /** The static offset of the access that `checkedAddress` prepared last (memory.ts). */
  staticOffset = 0;
  // Fuel (fuel.ts).
  metered = false;
  /** Every instruction sets the builder's position. */
  positioned = false;
  /** The constant with the price of the open region, 0 if none is open; the price so far. */
  charge = 0;
  price = 0;
  // Determinism (deterministic.ts): the thread's address, the stack that the open activation received and leaves to
  // callees.
  deterministic = false;
  /** The code for the bits of NaNs: one of NAN_CODE. */
  nans: number = NAN_CODE.any;
  depthThread = 0;
  depthReceived = 0;
  depthLeft = 0;
  /** Number of the last br_table, whose labels share a snapshot (block_parameters.ts). */
  tableStamp = 0;
  /** Calls that were not inlined, and the poll at the entry that exists for them (0: none). */
  keptCalls = 0;
  entryPoll = 0;
  /** The zero of each type, from the entry block; 0 if there is none. */
  readonly zeros: Int32Array = new Int32Array(TY.REF + 1);

  /** Prepares for the translation of a function of `env` into `f`. */
  reset(env: ModuleFacts, f: IrFunction): void {
    this.env = env;
    this.f = f;
    this.b.reset(f);
    this.frames.reset();
    this.loops.truncate(0);
    this.sp = 0;
    this.room = 0;
    this.reachable = false;
    this.deadFrames = 0;
    this.localBase = 0;
    this.localEnd = 0;
    this.openLoops = 0;
    this.nextLoop = 0;
    this.inlineDepth = 0;
    this.inlineBudget = -1;
    this.chain.length = 0;
    this.clauses.length = 0;
    this.keptCalls = 0;
    this.entryPoll = 0;
    this.metered = (env.mode & MODE.FUEL) !== 0;
    this.positioned = (env.mode & (MODE.FUEL | MODE.ALL_POSITIONS)) !== 0;
    this.b.marksPure = (env.mode & MODE.ALL_POSITIONS) !== 0;
    this.deterministic = (env.mode & MODE.DETERMINISTIC) !== 0;
    this.nans = env.nans;
    this.zeros.fill(0);
  }

  /** Makes room for `count` more operands than the sizes of the bodies allow for. */
  reserve(count: number): void {
    this.room += count;
    if (this.room > this.stack.length) this.stack = doubled(this.stack, this.room);
  }

  push(value: number): void {
    this.stack[this.sp++] = value;
  }

  pop(): number {
    return this.stack[--this.sp];
  }

  /** `value`, an i32 or i64, as i64, zero-extended. */
  wide(value: number): number {
    return this.f.ty[value] === TY.I64 ? value : this.b.unary(OP.EXTEND_U, TY.I64, value);
  }

  /** The zero of type `ty`, from the entry block if it exists. */
  zero(ty: number): number {
    const zero = this.zeros[ty];
    if (zero !== 0) return zero;
    return ty === TY.V128 ? this.vectorConstant(0, 0, 0, 0) : this.b.constant(ty, 0, 0);
  }

  /** The v128 constant of four words, the lowest first. */
  vectorConstant(w0: number, w1: number, w2: number, w3: number): number {
    return this.b.pure(OP.CONST, TY.V128, 0, 0, 0, this.vectors.indexOf(this.f, w0, w1, w2, w3));
  }

  /** Reports the instructions of defined function `definedIndex` to `visitor`, from `begin` to the last `end`. */
  abstract visitBody(definedIndex: number, visitor: BodyVisitor): void;

  /** Positions `reader` at the start of the body of defined function `definedIndex`. */
  abstract openBody(definedIndex: number): void;
}
