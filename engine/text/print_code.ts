/**
 * Instructions as text. In: a binary expression. Out: flat text, one instruction per line or all in one line
 * (specification, 6.5). The shape of its row determines how an immediate is printed.
 *
 * Relies on nothing about the bytes; malformed ones cause CodeReader's MalformedError.
 */
import { printF32, printF64 } from "../base/float.ts";
import { CodeReader } from "../wasm/code_reader.ts";
import { type Immediates, ORDERING } from "../wasm/immediates.ts";
import type { Expr, RawBytes } from "../wasm/module.ts";
import { keywordOf, NATURAL_ALIGN } from "../wasm/opcodes.ts";
import type { ValType } from "../wasm/types.ts";
import { SHAPE, SHAPE_BY_ID } from "./instruction_shapes.ts";
import { K } from "./keywords.ts";
import { IndexNames } from "./print_names.ts";
import type { TypePrinter } from "./print_types.ts";

/** Identifiers of the index spaces of instructions. */
interface CodeNames {
  funcs: IndexNames;
  tables: IndexNames;
  memories: IndexNames;
  globals: IndexNames;
  tags: IndexNames;
  elems: IndexNames;
  datas: IndexNames;
}

/** Limit of indentation: without it, deep nesting would square the size of the text. */
const INDENT_LIMIT = 32;
const INDENTS = Array.from({ length: INDENT_LIMIT + 1 }, (_, depth) => "  ".repeat(depth));

const CATCH_WORDS = ["catch", "catch_ref", "catch_all", "catch_all_ref"];
const NO_NAMES = new IndexNames(undefined);

/** The indentation at a nesting depth, which is negative where a malformed body closes more blocks than it opens. */
export function indent(depth: number): string {
  return INDENTS[Math.max(0, Math.min(depth, INDENT_LIMIT))];
}

export class CodePrinter {
  readonly #types: TypePrinter;
  readonly #names: CodeNames;
  readonly #reader: CodeReader = new CodeReader(new Uint8Array(0));
  #locals: IndexNames = NO_NAMES;
  #labels: IndexNames = NO_NAMES;
  /** Identifiers of the enclosing blocks, outermost first; "" for one without. */
  #blocks: string[] = [];
  #blockCount = 0;

  constructor(types: TypePrinter, names: CodeNames) {
    this.#types = types;
    this.#names = names;
  }

  /** The types of a body's local declarations; the cursor is then at the first instruction, for {@linkcode body}. */
  localTypes(body: RawBytes): ValType[] {
    const types: ValType[] = [];
    this.#reader.reset(body.bytes, 0, body.bytes.length, body.offset);
    this.#reader.locals(types);
    return types;
  }

  /**
   * Appends the instructions of the body whose local types were just read, without the last `end`, to `lines`. `hints`
   * are branch hints by offset in the body. `offsets`, if given, gets the module's byte offset of each line appended.
   */
  body(
    lines: string[],
    locals: IndexNames,
    labels: IndexNames,
    hints: ReadonlyMap<number, number> | undefined,
    offsets?: number[],
  ): void {
    this.#locals = locals;
    this.#labels = labels;
    this.#begin();
    const reader = this.#reader;
    for (let depth = 0;;) {
      const id = reader.next();
      if (id === K.end && this.#blocks.length === 0) break;
      const hint = hints?.get(reader.at - reader.base);
      if (hint !== undefined) {
        lines.push(`${indent(depth + 2)}(@metadata.code.branch_hint "\\0${hint}")`);
        offsets?.push(reader.at);
      }
      offsets?.push(reader.at);
      if (closesBlock(id)) depth--;
      lines.push(indent(depth + 2) + this.#instruction(id));
      if (opensBlock(id)) depth++;
    }
    if (!reader.done) reader.fail("unexpected content after the function body");
  }

  /** Offset of the instruction that was read last, or of the one that is malformed. */
  get at(): number {
    return this.#reader.at;
  }

  /** A constant expression: one instruction in parentheses, or several inside `(word …)`. */
  expression(expr: Expr, word: string): string {
    const parts = this.#parts(expr);
    return parts.length === 1 ? `(${parts[0]})` : `(${[word, ...parts].join(" ")})`;
  }

  /** A constant expression as the last part of a field. */
  bareExpression(expr: Expr): string {
    const parts = this.#parts(expr);
    return parts.length === 1 ? `(${parts[0]})` : parts.join(" ");
  }

  #parts(expr: Expr): string[] {
    this.#locals = NO_NAMES;
    this.#labels = NO_NAMES;
    this.#begin();
    const reader = this.#reader;
    reader.reset(expr.bytes, 0, expr.bytes.length, expr.offset);
    const parts: string[] = [];
    for (;;) {
      const id = reader.next();
      if (id === K.end && this.#blocks.length === 0) return parts;
      // A line comment would hide the rest of the line.
      parts.push(this.#instruction(id).replace(/ ;; label = @\d+$/, ""));
    }
  }

  #begin(): void {
    this.#blocks.length = 0;
    this.#blockCount = 0;
  }

  #instruction(id: number): string {
    const word = keywordOf(id);
    switch (id) {
      case K.block:
      case K.loop:
      case K.if:
      case K.try:
      case K.try_table:
        return this.#block(word, id);
      case K.end:
        this.#blocks.pop();
        return word;
      case K.delegate:
        this.#blocks.pop();
    }
    return word + this.#immediates(id);
  }

  #block(word: string, id: number): string {
    const type = this.#blockType();
    // Labels of catch clauses are relative to the frame outside the instruction.
    const catches = id === K.try_table ? this.#catches() : "";
    const ordinal = this.#blockCount++;
    const named = this.#labels.has(ordinal);
    this.#blocks.push(named ? this.#labels.ref(ordinal) : "");
    const comment = named ? "" : ` ;; label = @${this.#blocks.length}`;
    return `${word}${this.#labels.optionalBinder(ordinal)}${type}${catches}${comment}`;
  }

  #blockType(): string {
    const imm = this.#reader.imm;
    if (imm.blockTypeIndex >= 0) return this.#types.typeUse(imm.blockTypeIndex);
    return imm.blockTypeIndex === -1 ? "" : ` (result ${this.#types.valType(imm.blockValue)})`;
  }

  #catches(): string {
    let text = "";
    for (const { kind, tag, label } of this.#reader.imm.catches) {
      text += ` (${CATCH_WORDS[kind]}${kind < 2 ? ` ${this.#names.tags.ref(tag)}` : ""}${this.#label(label)})`;
    }
    return text;
  }

  /** ` $label`, or the depth of the block. */
  #label(depth: number): string {
    const at = this.#blocks.length - 1 - depth;
    const name = this.#blocks[at];
    if (name !== undefined && name !== "") return ` ${name}`;
    return at >= -1 ? ` ${depth} (;@${at + 1};)` : ` ${depth}`;
  }

  #immediates(id: number): string {
    const imm = this.#reader.imm;
    const names = this.#names;
    switch (SHAPE_BY_ID[id]) {
      case SHAPE["-"]:
        return "";
      case SHAPE.ordering:
        return imm.ordering === ORDERING.SEQUENTIAL ? "" : " acqrel";
      case SHAPE.local:
        return ` ${this.#locals.ref(imm.index)}`;
      case SHAPE.global:
        return ` ${names.globals.ref(imm.index)}`;
      case SHAPE.func:
        return ` ${names.funcs.ref(imm.index)}`;
      case SHAPE.type:
        return ` ${this.#types.types.ref(imm.index)}`;
      case SHAPE.tag:
        return ` ${names.tags.ref(imm.index)}`;
      case SHAPE.elem:
        return ` ${names.elems.ref(imm.index)}`;
      case SHAPE.data:
        return ` ${names.datas.ref(imm.index)}`;
      case SHAPE.label:
        return this.#label(imm.index);
      case SHAPE.labels:
        return Array.from(imm.labels.subarray(0, imm.labelCount + 1), (label) => this.#label(label)).join("");
      case SHAPE.table:
        return optionalIndex(names.tables, imm.index);
      case SHAPE.memory:
        return optionalIndex(names.memories, imm.index);
      case SHAPE.memarg:
      case SHAPE.atomicarg:
      case SHAPE.rmwarg:
        return this.#memarg(id);
      case SHAPE["memarg,lane"]:
        return `${this.#memarg(id)} ${imm.lane}`;
      case SHAPE.lane:
        return ` ${imm.lane}`;
      case SHAPE.lanes:
        return ` ${imm.bytes.join(" ")}`;
      case SHAPE.i32:
        return ` ${imm.lo}`;
      case SHAPE.i64:
        return ` ${(BigInt(imm.hi | 0) << 32n) | BigInt(imm.lo >>> 0)}`;
      case SHAPE.f32:
        return ` ${printF32(imm.lo)}`;
      case SHAPE.f64:
        return ` ${printF64(imm.lo, imm.hi)}`;
      case SHAPE.v128:
        return ` i32x4${vectorLanes(imm.bytes)}`;
      case SHAPE.valtypes:
        return this.#types.group("result", imm.valTypes) || " (result)";
      case SHAPE.heaptype:
        return ` ${this.#types.heapType(imm.heap)}`;
      case SHAPE.reftype0:
      case SHAPE.reftype1:
        return ` ${this.#types.refType(imm.nullable, imm.heap)}`;
      case SHAPE.casttypes: {
        const source = this.#types.refType(imm.nullable, imm.heap);
        return `${this.#label(imm.index)} ${source} ${this.#types.refType(imm.nullable2, imm.heap2)}`;
      }
    }
    return this.#pair(id, imm);
  }

  /** Instructions with two indices, in the order of the text format. */
  #pair(id: number, { index, index2 }: Immediates): string {
    const names = this.#names;
    const types = this.#types.types;
    switch (SHAPE_BY_ID[id]) {
      case SHAPE["type,table"]:
        return `${optionalIndex(names.tables, index2)}${this.#types.typeUse(index)}`;
      case SHAPE["type,type"]:
        return ` ${types.ref(index)} ${types.ref(index2)}`;
      case SHAPE["type,tag"]:
        return ` ${types.ref(index)} ${names.tags.ref(index2)}`;
      case SHAPE["type,handlers"]:
        return ` ${types.ref(index)}${this.#handlers()}`;
      case SHAPE["type,tag,handlers"]:
        return ` ${types.ref(index)} ${names.tags.ref(index2)}${this.#handlers()}`;
      case SHAPE["type,field"]:
        return ` ${types.ref(index)} ${this.#types.fields(index).ref(index2)}`;
      case SHAPE["type,count"]:
        return ` ${types.ref(index)} ${index2}`;
      case SHAPE["type,data"]:
        return ` ${types.ref(index)} ${names.datas.ref(index2)}`;
      case SHAPE["type,elem"]:
        return ` ${types.ref(index)} ${names.elems.ref(index2)}`;
      case SHAPE["memory,memory"]:
        return index + index2 === 0 ? "" : ` ${names.memories.ref(index)} ${names.memories.ref(index2)}`;
      case SHAPE["table,table"]:
        return index + index2 === 0 ? "" : ` ${names.tables.ref(index)} ${names.tables.ref(index2)}`;
      case SHAPE["data,memory"]:
        return `${optionalIndex(names.memories, index2)} ${names.datas.ref(index)}`;
      default: // elem, table
        return `${optionalIndex(names.tables, index2)} ${names.elems.ref(index)}`;
    }
  }

  #handlers(): string {
    const { tags } = this.#names;
    return this.#reader.imm.handlers.map(({ tag, label }) =>
      ` (on ${tags.ref(tag)}${label < 0 ? " switch" : this.#label(label)})`
    ).join("");
  }

  #memarg(id: number): string {
    const imm = this.#reader.imm;
    let text = optionalIndex(this.#names.memories, imm.memory);
    if (SHAPE_BY_ID[id] === SHAPE.atomicarg || SHAPE_BY_ID[id] === SHAPE.rmwarg) {
      if (imm.ordering !== ORDERING.ABSENT) text += imm.ordering === ORDERING.SEQUENTIAL ? " seqcst" : " acqrel";
    }
    if (imm.offsetLo !== 0 || imm.offsetHi !== 0) {
      text += ` offset=${imm.offsetHi === 0 ? imm.offsetLo : (BigInt(imm.offsetHi) << 32n) | BigInt(imm.offsetLo)}`;
    }
    if (imm.align !== NATURAL_ALIGN[id]) text += ` align=${1n << BigInt(imm.align)}`;
    return text;
  }
}

function optionalIndex(names: IndexNames, index: number): string {
  return index === 0 ? "" : ` ${names.ref(index)}`;
}

function vectorLanes(bytes: Uint8Array): string {
  let text = "";
  for (let lane = 0; lane < 16; lane += 4) {
    text += " 0x";
    for (let i = 3; i >= 0; i--) text += bytes[lane + i].toString(16).padStart(2, "0");
  }
  return text;
}

function opensBlock(id: number): boolean {
  return id === K.block || id === K.loop || id === K.if || id === K.else || id === K.try || id === K.try_table ||
    id === K.catch || id === K.catch_all;
}

function closesBlock(id: number): boolean {
  return id === K.end || id === K.else || id === K.catch || id === K.catch_all || id === K.delegate;
}
