/**
 * One plain instruction: its immediates are parsed by the shape of its row and written in binary form (specification,
 * 6.5). parse_code.ts handles block instructions and folding; it uses this file for block types.
 *
 * Invariant: CodeReader reads the output back, and LEB128 integers have their shortest form.
 */
import { ByteWriter } from "../base/bytes.ts";
import { writeHeapType, writeValType } from "../binary/types.ts";
import { HAS_ORDERING, ORDERING, RMW_ACQUIRE_RELEASE } from "../wasm/immediates.ts";
import { idOf, NATURAL_ALIGN, opcodeColumn } from "../wasm/opcodes.ts";
import { exactHeapOf, isNullable, type ValType } from "../wasm/types.ts";
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
const REF_CAST_DESC_EQ_NULL = idOf("ref.cast_desc_eq(null)");

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
        this.opcode(out, isNullable(type) ? nullableForm(id) : id);
        return writeHeapType(out, exactHeapOf(type));
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
      case SHAPE.atomicarg:
        return this.#memarg(out, id, context.hasIndex(), ORDERING.ACQUIRE_RELEASE);
      case SHAPE.rmwarg:
        return this.#memarg(out, id, context.hasIndex(), RMW_ACQUIRE_RELEASE);
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
        return out.u8(Math.max(this.#ordering(), ORDERING.SEQUENTIAL));
      default:
        this.#pair(out, shape);
    }
  }

  /** Instructions with several indices. */
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
      case SHAPE["type,tag"]:
        out.u32(context.index(context.types));
        return out.u32(context.index(context.tags));
      case SHAPE["type,handlers"]:
        out.u32(context.index(context.types));
        return this.#handlers(out);
      case SHAPE["type,tag,handlers"]:
        out.u32(context.index(context.types));
        out.u32(context.index(context.tags));
        return this.#handlers(out);
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

  /** Parses the handlers of resume and writes them. */
  #handlers(out: ByteWriter): void {
    const cursor = this.#cursor;
    const clauses = this.#vector;
    clauses.length = 0;
    let count = 0;
    for (; cursor.takeOpen(K.on); count++) {
      const kindAt = clauses.length;
      clauses.u8(0);
      clauses.u32(this.context.index(this.context.tags));
      if (cursor.takeKeyword(K.switch)) clauses.bytes[kindAt] = 1;
      else clauses.u32(this.label());
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
    writeHeapType(out, exactHeapOf(source));
    writeHeapType(out, exactHeapOf(target));
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

  /** `acquireRelease` is the byte of that ordering, or 0 for an instruction without orderings. */
  #memarg(out: ByteWriter, id: number, hasMemory: boolean, acquireRelease = 0): void {
    const cursor = this.#cursor;
    const memory = hasMemory ? this.context.index(this.context.memories) : 0;
    let ordering: number = acquireRelease === 0 ? ORDERING.ABSENT : this.#ordering();
    let offsetLo = 0;
    let offsetHi = 0;
    if (cursor.takeAssignment("offset=")) {
      offsetLo = INTEGER.lo;
      offsetHi = INTEGER.hi;
    }
    const align = cursor.takeAssignment("align=") ? this.#alignment() : NATURAL_ALIGN[id];
    // Tools write the ordering before the offset, the reference interpreter reads it here.
    if (acquireRelease !== 0 && ordering === ORDERING.ABSENT) ordering = this.#ordering();
    out.u32(align | (memory === 0 ? 0 : HAS_MEMORY) | (ordering === ORDERING.ABSENT ? 0 : HAS_ORDERING));
    if (memory !== 0) out.u32(memory);
    if (ordering !== ORDERING.ABSENT) out.u8(ordering === ORDERING.SEQUENTIAL ? 0 : acquireRelease);
    out.u64(offsetLo, offsetHi);
  }

  /** Parses an optional memory ordering. */
  #ordering(): number {
    if (this.#cursor.takeKeyword(K.acqrel)) return ORDERING.ACQUIRE_RELEASE;
    return this.#cursor.takeKeyword(K.seqcst) ? ORDERING.SEQUENTIAL : ORDERING.ABSENT;
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

/** The row of a type test or cast to a type with null, given that of the same to a type without. */
function nullableForm(id: number): number {
  if (id === K["ref.test"]) return REF_TEST_NULL;
  return id === K["ref.cast"] ? REF_CAST_NULL : REF_CAST_DESC_EQ_NULL;
}

/** Keywords of catch clauses by their binary kind. */
const CATCH_KINDS: readonly number[] = [K.catch, K.catch_ref, K.catch_all, K.catch_all_ref];
