/**
 * Instruction sequences, flat and folded in any mixture. In: tokens. Out: a binary expression (specification, 6.5).
 *
 * Nesting is in columns, not on the call stack, so its depth is bounded by memory alone. The bytes of a folded
 * instruction wait in `#pending` until its operands are written; each frame records where its own begin.
 */
import { grown } from "../base/columns.ts";
import { ByteWriter } from "../base/bytes.ts";
import { idOf } from "../wasm/opcodes.ts";
import { InstructionWriter } from "./instruction_writer.ts";
import { K, STRUCTURAL } from "./keywords.ts";
import type { BranchHint, ModuleContext } from "./module_context.ts";
import { NO_SYMBOL } from "./symbols.ts";
import type { TextPlaces } from "./text_places.ts";
import type { TokenCursor } from "./token_cursor.ts";
import { ANNOTATION, BRANCH_HINT_ANNOTATION, ID, KEYWORD, LEFT, RIGHT, STRING } from "./tokens.ts";

// States: the construct around the current instructions. Below FIRST_SEQUENCE only folded instructions (or none) may
// follow.
/** `(op …`: operands. */
const OPERANDS = 0;
/** `(if …`: the condition's operands, up to `(then`. */
const CONDITION = 1;
/** `(if … (then …)`: `(else` or the end. */
const AFTER_THEN = 2;
/** `(try …`: `(do`. */
const BEFORE_DO = 3;
/** `(try (do …)`: `(catch`, `(catch_all`, `(delegate` or the end. */
const AFTER_DO = 4;
/** `(try (do …) (catch …)`: `(catch`, `(catch_all` or the end. */
const AFTER_CATCH = 5;
/** Only the parenthesis that closes the block may follow; `end` is written for it. */
const AFTER_LAST = 6;
/** The same after `(delegate …)`, which ends the block itself. */
const AFTER_DELEGATE = 7;
const FIRST_SEQUENCE = 8;
/** `(block …`, `(loop …`, `(try_table …`. */
const FOLDED_BLOCK = 8;
const FOLDED_THEN = 9;
const FOLDED_ELSE = 10;
const FOLDED_DO = 11;
const FOLDED_CATCH = 12;
const FOLDED_CATCH_ALL = 13;
/** From here on `end` closes the frame. */
const FIRST_FLAT = 14;
const FLAT_BLOCK = 14;
const FLAT_IF = 15;
const FLAT_ELSE = 16;
const FLAT_TRY = 17;
const FLAT_CATCH = 18;
const FLAT_CATCH_ALL = 19;

const BR_IF = idOf("br_if");
const NO_HINT = -1;

export class CodeParser {
  readonly writer: InstructionWriter;
  readonly #context: ModuleContext;
  readonly #cursor: TokenCursor;
  readonly #out: ByteWriter = new ByteWriter(1024);
  readonly #pending: ByteWriter = new ByteWriter(256);

  // The stack of frames, by column.
  #depth = 0;
  #states: Uint8Array = new Uint8Array(64);
  /** Start of the frame's bytes in #pending. */
  #marks: Int32Array = new Int32Array(64);
  /** The label of an `if` whose condition is being parsed. */
  #symbols: Int32Array = new Int32Array(64);
  #hints: Int8Array = new Int8Array(64);
  /** The keyword's token. */
  #tokens: Int32Array = new Int32Array(64);

  /** The hint for the next instruction. */
  #hint = NO_HINT;
  #hintToken = 0;
  #funcHints: BranchHint[] | undefined;
  /** Records places in the text while a function is parsed. */
  #places: TextPlaces | undefined;
  /** Number of blocks so far, which identifies labels in the name section. */
  #labelCount = 0;
  #labelNames: Map<number, string> | undefined;

  constructor(context: ModuleContext) {
    this.#context = context;
    this.#cursor = context.cursor;
    this.writer = new InstructionWriter(context);
  }

  /**
   * Parses a function's instructions up to the parenthesis that ends it; `locals` is the encoded local declarations.
   */
  functionBody(funcIndex: number, locals: ByteWriter): Uint8Array {
    const context = this.#context;
    this.#reset();
    this.#out.raw(locals.bytes.subarray(0, locals.length));
    this.#labelNames = new Map();
    this.#funcHints = [];
    this.#places = context.places;
    this.#instructions(false);
    this.#place(this.#cursor.at);
    if (this.#funcHints.length > 0) context.hints.set(funcIndex, this.#funcHints);
    if (this.#labelNames.size > 0) context.names.labels.set(funcIndex, this.#labelNames);
    this.#funcHints = undefined;
    this.#labelNames = undefined;
    this.#places = undefined;
    return this.#finish();
  }

  /** Parses an expression up to the closing parenthesis around it. */
  expression(): Uint8Array {
    this.#reset();
    this.#instructions(false);
    return this.#finish();
  }

  /** Parses an expression of one folded instruction. */
  foldedExpression(): Uint8Array {
    if (this.#cursor.kind !== LEFT) this.#cursor.unexpected();
    this.#reset();
    this.#instructions(true);
    return this.#finish();
  }

  #reset(): void {
    this.#out.length = 0;
    this.#pending.length = 0;
    this.#depth = 0;
    this.#labelCount = 0;
    this.#hint = NO_HINT;
    this.writer.labels.clear();
  }

  #finish(): Uint8Array {
    this.writer.opcode(this.#out, K.end);
    return this.#out.finish();
  }

  /** One iteration per instruction or parenthesis. With `single`, ends when the first folded instruction is closed. */
  #instructions(single: boolean): void {
    const cursor = this.#cursor;
    for (;;) {
      switch (cursor.kind) {
        case LEFT:
          this.#open();
          break;
        case RIGHT:
          if (this.#depth === 0) return this.#checkHintTaken();
          this.#close();
          if (single && this.#depth === 0) return;
          break;
        case KEYWORD:
          this.#flat();
          break;
        case ANNOTATION:
          this.#branchHint();
          break;
        default:
          cursor.unexpected();
      }
    }
  }

  // --- flat instructions ---

  #flat(): void {
    const cursor = this.#cursor;
    if (this.#depth > 0 && this.#states[this.#depth - 1] < FIRST_SEQUENCE) cursor.unexpected();
    const id = cursor.values[cursor.at];
    if (id < 0 || id >= STRUCTURAL) cursor.unexpected();
    this.#place(cursor.at++);
    switch (id) {
      case K.block:
      case K.loop:
      case K.try_table:
        this.#checkHintTarget(id);
        return this.#flatBlock(id, FLAT_BLOCK);
      case K.if:
        this.#recordHint(this.#takeHint(id));
        return this.#flatBlock(id, FLAT_IF);
      case K.try:
        this.#checkHintTarget(id);
        return this.#flatBlock(id, FLAT_TRY);
      case K.else:
        this.#expectState(FLAT_IF, FLAT_IF);
        this.#checkLabel();
        return this.#separator(id, FLAT_ELSE);
      case K.catch:
        this.#expectState(FLAT_TRY, FLAT_CATCH);
        this.#separator(id, FLAT_CATCH);
        return this.#out.u32(this.#context.index(this.#context.tags));
      case K.catch_all:
        this.#expectState(FLAT_TRY, FLAT_CATCH);
        return this.#separator(id, FLAT_CATCH_ALL);
      case K.delegate:
        this.#expectState(FLAT_TRY, FLAT_TRY);
        this.#depth--;
        this.writer.labels.pop();
        return this.writer.plain(this.#out, id);
      case K.end:
        this.#expectState(FIRST_FLAT, FLAT_CATCH_ALL);
        this.#checkHintTaken();
        this.#checkLabel();
        this.#depth--;
        this.writer.labels.pop();
        return this.writer.opcode(this.#out, id);
      default:
        this.#recordHint(this.#takeHint(id));
        this.writer.plain(this.#out, id);
    }
  }

  /** Requires the innermost frame to be in one of these states. The keyword was consumed already. */
  #expectState(first: number, last: number): void {
    const state = this.#depth > 0 ? this.#states[this.#depth - 1] : -1;
    if (state < first || state > last) this.#cursor.unexpected(this.#cursor.at - 1);
  }

  #flatBlock(id: number, state: number): void {
    const symbol = this.#label();
    this.#blockHeader(this.#out, id);
    this.#push(state);
    this.writer.labels.push(symbol);
  }

  #separator(id: number, state: number): void {
    this.#checkHintTaken();
    this.#states[this.#depth - 1] = state;
    this.writer.opcode(this.#out, id);
  }

  /** Parses the label that `end` or `else` may repeat. */
  #checkLabel(): void {
    const cursor = this.#cursor;
    if (cursor.kind !== ID) return;
    if (cursor.values[cursor.at] !== this.writer.labels.top) {
      cursor.fail(`mismatching label ${cursor.tokens.textOf(cursor.at)}`);
    }
    cursor.at++;
  }

  /** Parses a block's own label. */
  #label(): number {
    const cursor = this.#cursor;
    const symbol = cursor.takeId();
    const index = this.#labelCount++;
    const name = cursor.takeNameAnnotation() ?? this.#context.textOf(symbol);
    if (name !== undefined) this.#labelNames?.set(index, name);
    return symbol;
  }

  #blockHeader(out: ByteWriter, id: number): void {
    this.writer.opcode(out, id);
    this.writer.blockType(out);
    if (id === K.try_table) this.writer.catches(out);
  }

  // --- folded instructions ---

  /** Parses `(` and the keyword, and the instruction up to its first operand. */
  #open(): void {
    const cursor = this.#cursor;
    if (cursor.kinds[cursor.at + 1] !== KEYWORD) cursor.unexpected(cursor.at + 1);
    const id = cursor.values[cursor.at + 1];
    const state = this.#depth > 0 ? this.#states[this.#depth - 1] : FOLDED_BLOCK;
    cursor.at += 2;
    if (state < FIRST_SEQUENCE && state !== OPERANDS && this.#openPart(state, id)) return;
    if (id < 0 || id >= STRUCTURAL) cursor.unexpected(cursor.at - 1);
    switch (id) {
      case K.block:
      case K.loop:
      case K.try_table: {
        this.#checkHintTarget(id);
        this.#place(cursor.at - 1);
        const symbol = this.#label();
        this.#blockHeader(this.#out, id);
        this.#push(FOLDED_BLOCK);
        return this.writer.labels.push(symbol);
      }
      case K.if: {
        const hint = this.#takeHint(id);
        const token = cursor.at - 1;
        const symbol = this.#label();
        this.#push(CONDITION, token);
        this.#blockHeader(this.#pending, id);
        this.#symbols[this.#depth - 1] = symbol;
        this.#hints[this.#depth - 1] = hint;
        return;
      }
      case K.try: {
        this.#checkHintTarget(id);
        this.#place(cursor.at - 1);
        const symbol = this.#label();
        this.#blockHeader(this.#out, id);
        this.#push(BEFORE_DO);
        return this.writer.labels.push(symbol);
      }
      case K.else:
      case K.end:
      case K.catch:
      case K.catch_all:
      case K.delegate:
        return cursor.unexpected(cursor.at - 1);
      default: {
        const hint = this.#takeHint(id);
        this.#push(OPERANDS, cursor.at - 1);
        this.#hints[this.#depth - 1] = hint;
        this.writer.plain(this.#pending, id);
      }
    }
  }

  /** Opens a part of a folded `if` or `try`; false if the keyword is an operand of the condition instead. */
  #openPart(state: number, id: number): boolean {
    const at = this.#depth - 1;
    const out = this.#out;
    const isCatch = (id === K.catch || id === K.catch_all) && (state === AFTER_DO || state === AFTER_CATCH);
    if (state === CONDITION && id === K.then) {
      this.#checkHintTaken();
      this.#recordHint(this.#hints[at]);
      this.#flush(at);
      this.#states[at] = FOLDED_THEN;
      this.writer.labels.push(this.#symbols[at]);
    } else if (state === CONDITION) {
      return false;
    } else if (state === AFTER_THEN && id === K.else) {
      this.#place(this.#cursor.at - 1);
      this.writer.opcode(out, id);
      this.#states[at] = FOLDED_ELSE;
    } else if (state === BEFORE_DO && id === K.do) {
      this.#states[at] = FOLDED_DO;
    } else if (isCatch) {
      this.#place(this.#cursor.at - 1);
      this.writer.opcode(out, id);
      if (id === K.catch) out.u32(this.#context.index(this.#context.tags));
      this.#states[at] = id === K.catch ? FOLDED_CATCH : FOLDED_CATCH_ALL;
    } else if (state === AFTER_DO && id === K.delegate) {
      this.#place(this.#cursor.at - 1);
      this.writer.labels.pop();
      this.writer.plain(out, id);
      this.#states[at] = AFTER_DELEGATE;
      this.#cursor.expectClose();
    } else {
      this.#cursor.unexpected(this.#cursor.at - 1);
    }
    return true;
  }

  #close(): void {
    const cursor = this.#cursor;
    const at = this.#depth - 1;
    this.#checkHintTaken();
    switch (this.#states[at]) {
      case OPERANDS:
        this.#recordHint(this.#hints[at]);
        this.#flush(at);
        this.#depth--;
        break;
      case FOLDED_THEN:
        this.#states[at] = AFTER_THEN;
        break;
      case FOLDED_DO:
        this.#states[at] = AFTER_DO;
        break;
      case FOLDED_CATCH:
        this.#states[at] = AFTER_CATCH;
        break;
      case FOLDED_ELSE:
      case FOLDED_CATCH_ALL:
        this.#states[at] = AFTER_LAST;
        break;
      case AFTER_DELEGATE:
        this.#depth--;
        break;
      case AFTER_THEN:
      case AFTER_DO:
      case AFTER_CATCH:
      case AFTER_LAST:
      case FOLDED_BLOCK:
        this.#place(cursor.at);
        this.writer.opcode(this.#out, K.end);
        this.writer.labels.pop();
        this.#depth--;
        break;
      default:
        // A flat block without its `end`, a condition without `(then`, a `try` without `(do`.
        cursor.unexpected();
    }
    cursor.at++;
  }

  /** Moves the pending bytes of frame `at` to the output. */
  #flush(at: number): void {
    this.#place(this.#tokens[at]);
    const pending = this.#pending;
    const mark = this.#marks[at];
    this.#out.raw(pending.bytes.subarray(mark, pending.length));
    pending.length = mark;
  }

  #push(state: number, token = 0): void {
    const at = this.#depth++;
    if (at === this.#states.length) {
      const states = new Uint8Array(at * 2);
      states.set(this.#states);
      this.#states = states;
      const hints = new Int8Array(at * 2);
      hints.set(this.#hints);
      this.#hints = hints;
      this.#marks = grown(this.#marks, at * 2);
      this.#symbols = grown(this.#symbols, at * 2);
      this.#tokens = grown(this.#tokens, at * 2);
    }
    this.#states[at] = state;
    this.#marks[at] = this.#pending.length;
    this.#symbols[at] = NO_SYMBOL;
    this.#tokens[at] = token;
    this.#hints[at] = NO_HINT;
  }

  /** Records that the next instruction comes from `token`. */
  #place(token: number): void {
    this.#places?.instruction(this.#out.length, token);
  }

  // --- branch hints (specification, appendix A.6) ---

  /** Parses `(@metadata.code.branch_hint "\00" or "\01")`. */
  #branchHint(): void {
    const cursor = this.#cursor;
    if (cursor.values[cursor.at] !== BRANCH_HINT_ANNOTATION) cursor.unexpected();
    if (this.#funcHints === undefined) cursor.fail(`${HINT}: not in a function`);
    if (this.#hint !== NO_HINT) cursor.fail(`${HINT}: duplicate annotation`);
    this.#hintToken = cursor.at++;
    if (cursor.kind !== STRING) cursor.fail(`${HINT}: unexpected token`);
    const value = cursor.string();
    if (value.length !== 1 || value[0] > 1) cursor.fail(`${HINT}: invalid value`, cursor.at - 1);
    if (!cursor.takeClose()) cursor.fail(`${HINT}: unexpected token`);
    this.#hint = value[0];
  }

  /** The hint before instruction `id`, which must allow one. */
  #takeHint(id: number): number {
    const hint = this.#hint;
    if (hint !== NO_HINT && id !== K.if && id !== BR_IF) this.#checkHintTaken();
    this.#hint = NO_HINT;
    return hint;
  }

  #checkHintTarget(id: number): void {
    this.#takeHint(id);
  }

  /** Rejects a hint that no instruction follows. */
  #checkHintTaken(): void {
    if (this.#hint !== NO_HINT) this.#cursor.invalid(`${HINT}: invalid target`, this.#hintToken);
  }

  /** Records a hint for the instruction whose opcode is written next. */
  #recordHint(hint: number): void {
    if (hint !== NO_HINT) this.#funcHints!.push({ offset: this.#out.length, likely: hint });
  }
}

const HINT = "@metadata.code.branch_hint annotation";
