/**
 * One plain instruction: its immediates are parsed by the shape of its row and written in binary form (specification,
 * 6.5). parse_code.ts handles block instructions and folding; it uses this file for block types.
 *
 * Invariant: CodeReader reads the output back, and LEB128 integers have their shortest form.
 */
import { ByteWriter } from "../base/bytes.ts";
import { writeHeapType, writeValType } from "../binary/types.ts";
import { idOf, NATURAL_ALIGN, opcodeColumn } from "../wasm/opcodes.ts";
import { heapOf, isNullable, type ValType } from "../wasm/types.ts";
import { SHAPE, SHAPE_BY_ID } from "./instruction_shapes.ts";
import { K } from "./keywords.ts";
import type { ModuleContext } from "./module_context.ts";
import { INTEGER } from "./number_text.ts";
import {
  CONSTANT,
  parseFloatConstant,
  parseIntegerConstant,
  parseLaneIndex,
  parseShuffleLanes,
  parseVectorConstant,
} from "./parse_constants.ts";
import { parseFuncType, parseHeapType, parseRefType, parseTypeGroups, parseTypeUse } from "./parse_types.ts";
import { LabelScope, Scope } from "./scopes.ts";
import type { TokenCursor } from "./token_cursor.ts";
import { ID, KEYWORD, NAT } from "./tokens.ts";

const PREFIX: Uint8Array = opcodeColumn(Uint8Array, (row) => row.prefix);
const CODE: Uint16Array = opcodeColumn(Uint16Array, (row) => row.code);

const SELECT_TYPED = idOf("select(t)");
const REF_TEST_NULL = idOf("ref.test(null)");
const REF_CAST_NULL = idOf("ref.cast(null)");

/** Flag of a memory argument with a memory index. */
const HAS_MEMORY = 0x40;

export class InstructionWriter {
  readonly context: ModuleContext;
  readonly locals: Scope = new Scope("local");
  readonly labels: LabelScope = new LabelScope();
  readonly #cursor: TokenCursor;
  readonly #bytes = new Uint8Array(16);
  /** Clauses and labels, which are counted before they are written. */
  readonly #vector = new ByteWriter(64);

  constructor(context: ModuleContext) {
    this.context = context;
    this.#cursor = context.cursor;
  }

  opcode(out: ByteWriter, id: number): void {
    const prefix = PREFIX[id];
    if (prefix === 0) {
      out.u8(CODE[id]);
    } else {
      out.u8(prefix);
      out.u32(CODE[id]);
    }
  }

  /** Parses the immediates of row `id`, after the keyword, and writes the whole instruction. */
  plain(out: ByteWriter, id: number): void {
    const context = this.context;
    const cursor = this.#cursor;
    const shape = SHAPE_BY_ID[id];
    switch (shape) {
      case SHAPE.valtypes:
      case SHAPE["-"]:
        return id === K.select ? this.#select(out) : this.opcode(out, id);
      case SHAPE.reftype0: {
        const type = parseRefType(context);
        const nullable = id === K["ref.test"] ? REF_TEST_NULL : REF_CAST_NULL;
        this.opcode(out, isNullable(type) ? nullable : id);
        return writeHeapType(out, heapOf(type));
      }
    }
    this.opcode(out, id);
    switch (shape) {
      case SHAPE.local:
        return out.u32(context.index(this.locals));
      case SHAPE.global:
        return out.u32(context.index(context.globals));
      case SHAPE.func:
        return out.u32(context.index(context.funcs));
      case SHAPE.type:
        return out.u32(context.index(context.types));
      case SHAPE.tag:
        return out.u32(context.index(context.tags));
      case SHAPE.elem:
        return out.u32(context.index(context.elems));
      case SHAPE.data:
        return out.u32(this.#data());
      case SHAPE.label:
        return out.u32(this.label());
      case SHAPE.labels:
        return this.#labels(out);
      case SHAPE.table:
        return out.u32(this.#optional(context.tables));
      case SHAPE.memory:
        return out.u32(this.#optional(context.memories));
      case SHAPE.memarg:
        return this.#memarg(out, id, context.hasIndex());
      case SHAPE["memarg,lane"]:
        this.#memarg(out, id, this.#memoryBeforeLane());
        return out.u8(parseLaneIndex(cursor));
      case SHAPE.lane:
        return out.u8(parseLaneIndex(cursor));
      case SHAPE.lanes:
        parseShuffleLanes(cursor, this.#bytes);
        return out.raw(this.#bytes);
      case SHAPE.i32:
        parseIntegerConstant(cursor, 32);
        return out.s32(CONSTANT.lo);
      case SHAPE.i64:
        parseIntegerConstant(cursor, 64);
        return out.s64(CONSTANT.lo, CONSTANT.hi);
      case SHAPE.f32:
        parseFloatConstant(cursor, 32);
        return out.bits32(CONSTANT.lo);
      case SHAPE.f64:
        parseFloatConstant(cursor, 64);
        return out.bits64(CONSTANT.lo, CONSTANT.hi);
      case SHAPE.v128:
        parseVectorConstant(cursor, this.#bytes);
        return out.raw(this.#bytes);
      case SHAPE.heaptype:
        return writeHeapType(out, parseHeapType(context));
      case SHAPE.casttypes:
        return this.#castTypes(out);
      case SHAPE.ordering:
        return out.u8(0);
      default:
        this.#pair(out, shape);
    }
  }

  /** Instructions with two indices. */
  #pair(out: ByteWriter, shape: number): void {
    const context = this.context;
    switch (shape) {
      case SHAPE["type,table"]: {
        // The table is first in text, the type in binary.
        const table = this.#optional(context.tables);
        out.u32(parseTypeUse(context, "forbidden"));
        return out.u32(table);
      }
      case SHAPE["type,type"]:
        out.u32(context.index(context.types));
        return out.u32(context.index(context.types));
      case SHAPE["type,field"]: {
        const type = context.index(context.types);
        out.u32(type);
        return out.u32(context.fieldIndex(type));
      }
      case SHAPE["type,count"]:
        out.u32(context.index(context.types));
        return out.u32(this.#cursor.u32());
      case SHAPE["type,data"]:
        out.u32(context.index(context.types));
        return out.u32(this.#data());
      case SHAPE["type,elem"]:
        out.u32(context.index(context.types));
        return out.u32(context.index(context.elems));
      case SHAPE["memory,memory"]:
        return this.#bothOrNeither(out, context.memories);
      case SHAPE["table,table"]:
        return this.#bothOrNeither(out, context.tables);
      case SHAPE["data,memory"]: {
        const memory = this.#isPairOfIndices() ? context.index(context.memories) : 0;
        out.u32(this.#data());
        return out.u32(memory);
      }
      case SHAPE["elem,table"]: {
        const table = this.#isPairOfIndices() ? context.index(context.tables) : 0;
        out.u32(context.index(context.elems));
        return out.u32(table);
      }
      default:
        // A structural keyword (`end`, `catch`, …) in place of an instruction.
        this.#cursor.unexpected(this.#cursor.at - 1);
    }
  }

  /** Parses a label; returns the number of labels between it and this place. */
  label(): number {
    const cursor = this.#cursor;
    if (cursor.kind !== ID) return cursor.u32();
    const depth = this.labels.find(cursor.values[cursor.at]);
    if (depth < 0) cursor.fail(`unknown label ${cursor.tokens.textOf(cursor.at)}`);
    cursor.at++;
    return depth;
  }

  /** Parses a block type and writes it. */
  blockType(out: ByteWriter): void {
    const context = this.context;
    if (this.#cursor.isOpen(K.type)) return out.s33(parseTypeUse(context, "forbidden"));
    const { params, results } = parseFuncType(context, "forbidden");
    if (params.length > 0 || results.length > 1) out.s33(context.funcTypeIndex(params, results));
    else if (results.length === 1) writeValType(out, results[0]);
    else out.u8(0x40);
  }

  /**
   * Parses the catch clauses of try_table and writes them; their labels are relative to the frame outside the
   * instruction.
   */
  catches(out: ByteWriter): void {
    const cursor = this.#cursor;
    const clauses = this.#vector;
    clauses.length = 0;
    let count = 0;
    for (;; count++) {
      const keyword = cursor.openKeyword();
      const kind = keyword === -1 ? -1 : CATCH_KINDS.indexOf(keyword);
      if (kind < 0) break;
      cursor.at += 2;
      clauses.u8(kind);
      if (kind < 2) clauses.u32(this.context.index(this.context.tags));
      clauses.u32(this.label());
      cursor.expectClose();
    }
    out.u32(count);
    out.raw(clauses.bytes.subarray(0, clauses.length));
  }

  #select(out: ByteWriter): void {
    if (!this.#cursor.isOpen(K.result)) return this.opcode(out, K.select);
    const types: ValType[] = [];
    parseTypeGroups(this.context, K.result, types, "forbidden");
    this.opcode(out, SELECT_TYPED);
    out.u32(types.length);
    for (const type of types) writeValType(out, type);
  }

  #labels(out: ByteWriter): void {
    const labels = this.#vector;
    labels.length = 0;
    let count = 0;
    do {
      labels.u32(this.label());
      count++;
    } while (this.context.hasIndex());
    // The last label is the default, which the count excludes.
    out.u32(count - 1);
    out.raw(labels.bytes.subarray(0, labels.length));
  }

  #castTypes(out: ByteWriter): void {
    out.u8(0);
    const flags = out.length - 1;
    out.u32(this.label());
    const source = parseRefType(this.context);
    const target = parseRefType(this.context);
    out.bytes[flags] = (isNullable(source) ? 1 : 0) | (isNullable(target) ? 2 : 0);
    writeHeapType(out, heapOf(source));
    writeHeapType(out, heapOf(target));
  }

  #data(): number {
    this.context.usesData = true;
    return this.context.index(this.context.datas);
  }

  #optional(scope: Scope): number {
    return this.context.hasIndex() ? this.context.index(scope) : 0;
  }

  #bothOrNeither(out: ByteWriter, scope: Scope): void {
    const explicit = this.context.hasIndex();
    out.u32(explicit ? this.context.index(scope) : 0);
    out.u32(explicit ? this.context.index(scope) : 0);
  }

  /** Whether two indices follow, so that the first is the memory or table, not the segment. */
  #isPairOfIndices(): boolean {
    const next = this.#cursor.kinds[this.#cursor.at + 1];
    return this.context.hasIndex() && (next === NAT || next === ID);
  }

  /** Of a number before `offset=`, `align=` or another number, the first is the memory, not the lane. */
  #memoryBeforeLane(): boolean {
    const cursor = this.#cursor;
    if (cursor.kind === ID) return true;
    const next = cursor.kinds[cursor.at + 1];
    return cursor.kind === NAT && (next === NAT || (next === KEYWORD && cursor.values[cursor.at + 1] === -1));
  }

  #memarg(out: ByteWriter, id: number, hasMemory: boolean): void {
    const cursor = this.#cursor;
    const memory = hasMemory ? this.context.index(this.context.memories) : 0;
    let offsetLo = 0;
    let offsetHi = 0;
    if (cursor.takeAssignment("offset=")) {
      offsetLo = INTEGER.lo;
      offsetHi = INTEGER.hi;
    }
    const align = cursor.takeAssignment("align=") ? this.#alignment() : NATURAL_ALIGN[id];
    out.u32(align | (memory === 0 ? 0 : HAS_MEMORY));
    if (memory !== 0) out.u32(memory);
    out.u64(offsetLo, offsetHi);
  }

  /** Log2 of the last integer. */
  #alignment(): number {
    const { lo, hi } = INTEGER;
    const word = hi === 0 ? lo : hi;
    if (word === 0 || (word & (word - 1)) !== 0 || (hi !== 0 && lo !== 0)) {
      this.#cursor.fail("alignment must be a power of two", this.#cursor.at - 1);
    }
    return 31 - Math.clz32(word) + (hi === 0 ? 0 : 32);
  }
}

/** Keywords of catch clauses by their binary kind. */
const CATCH_KINDS: readonly number[] = [K.catch, K.catch_ref, K.catch_all, K.catch_all_ref];
