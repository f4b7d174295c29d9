/**
 * Reads an expression (a function body or a constant expression) instruction by instruction. In: bytes. Out: row ids
 * and decoded Immediates. A row determines how its immediates are read: each row has a plan, up to six 5-bit steps
 * packed into one number (specification, 5.4).
 *
 * Relies on nothing about the bytes. Establishes: a returned id has well-formed immediates; every error is a
 * MalformedError with its absolute offset. The caller tracks nesting (the validator counts frames).
 */
import { ByteReader, UNEXPECTED_END } from "../base/bytes.ts";
import { Immediates } from "./immediates.ts";
import type { ImmediateKind } from "./opcode_row.ts";
import { ID_BY_BYTE, idOfCode, opcodeColumn } from "./opcodes.ts";
import { readHeapType, readLocals, readValType } from "./type_reader.ts";
import type { ValType } from "./types.ts";

/** Steps of a plan. */
export const INDEX = 1;
export const INDEX2 = 2;
export const MEMARG = 3;
export const CONST32 = 4;
export const BLOCK_TYPE = 5;
export const LABELS = 6;
export const CONST64 = 7;
export const BITS32 = 8;
export const BITS64 = 9;
export const BYTES16 = 10;
export const LANE = 11;
export const VAL_TYPES = 12;
export const HEAP_TYPE = 13;
export const REF_TYPE = 14;
export const REF_NULL_TYPE = 15;
export const CAST_TYPES = 16;
export const CATCHES = 17;
export const ORDERING = 18;
const NEEDS_DATA_COUNT = 19;

/** Special plans: an illegal byte, and a prefix. */
const ILLEGAL = -1;
const PREFIX = -2;

const STEPS = {
  blocktype: BLOCK_TYPE,
  labels: LABELS,
  i32: CONST32,
  i64: CONST64,
  f32: BITS32,
  f64: BITS64,
  v128: BYTES16,
  memarg: MEMARG,
  lane: LANE,
  lanes: BYTES16,
  valtypes: VAL_TYPES,
  heaptype: HEAP_TYPE,
  reftype0: REF_TYPE,
  reftype1: REF_NULL_TYPE,
  casttypes: CAST_TYPES,
  catches: CATCHES,
  ordering: ORDERING,
  // All other kinds are indices: the first goes into `index`, the second into `index2`.
  label: INDEX,
  local: INDEX,
  global: INDEX,
  func: INDEX,
  table: INDEX,
  memory: INDEX,
  type: INDEX,
  tag: INDEX,
  elem: INDEX,
  data: INDEX,
  field: INDEX,
  count: INDEX,
} as const satisfies Record<ImmediateKind, number>;

/** The plan of a list of immediates: up to six steps of five bits. */
export function planOf(immediates: readonly ImmediateKind[]): number {
  let plan = 0;
  let shift = 0;
  let indices = 0;
  for (const kind of immediates) {
    if (kind === "data") {
      plan |= NEEDS_DATA_COUNT << shift;
      shift += 5;
    }
    plan |= (STEPS[kind] === INDEX && indices++ > 0 ? INDEX2 : STEPS[kind]) << shift;
    shift += 5;
  }
  return plan;
}

/** The plans by row id. */
export const PLAN_BY_ID: Int32Array = opcodeColumn(Int32Array, (row) => planOf(row.immediates));
const PLAN_BY_BYTE: Int32Array = Int32Array.from({ length: 256 }, (_, byte) => {
  if (byte >= 0xfb && byte <= 0xfe) return PREFIX;
  const id = ID_BY_BYTE[byte];
  return id < 0 ? ILLEGAL : PLAN_BY_ID[id];
});

/** A cursor over an expression. After {@linkcode next} the immediates are in `imm`, which the next call overwrites. */
export class CodeReader extends ByteReader {
  readonly imm: Immediates = new Immediates();
  /** Absolute offset of the last instruction returned by {@linkcode next}. */
  at = 0;
  /** Set for a module without a data count section: an instruction with a data segment is then malformed. */
  dataCountMissing = false;

  /** Reads `bytes[start … end − 1]`; `baseOffset` is the absolute offset of `bytes[0]`. */
  constructor(bytes: Uint8Array, start = 0, end: number = bytes.length, baseOffset = 0) {
    super(bytes, start, end, baseOffset);
  }

  /** Repositions the reader over other bytes, so that readers can be pooled. */
  reset(bytes: Uint8Array, start: number, end: number, baseOffset: number): void {
    this.bytes = bytes;
    this.pos = start;
    this.end = end;
    this.base = baseOffset;
  }

  /** Whether all bytes are read. */
  get done(): boolean {
    return this.pos >= this.end;
  }

  /** Reads the next instruction and returns its row id; fails at the end of the bytes, where an `end` is missing. */
  next(): number {
    const bytes = this.bytes;
    const end = this.end;
    let pos = this.pos;
    this.at = this.base + pos;
    if (pos >= end) this.fail(`END opcode expected: ${UNEXPECTED_END}`);
    const opcode = bytes[pos++];
    this.pos = pos;
    const plan = PLAN_BY_BYTE[opcode];
    if (plan === 0) return ID_BY_BYTE[opcode];
    // The shortest encodings of the most frequent immediates are read here; everything else takes the plan.
    if (pos < end) {
      const byte = bytes[pos];
      if (plan === INDEX) {
        if (byte < 0x80) {
          this.imm.index = byte;
          this.pos = pos + 1;
        } else this.imm.index = this.u32();
        return ID_BY_BYTE[opcode];
      }
      if (plan === CONST32) {
        if (byte < 0x80) {
          this.imm.lo = (byte << 25) >> 25;
          this.pos = pos + 1;
        } else this.imm.lo = this.s32();
        return ID_BY_BYTE[opcode];
      }
      if (plan === MEMARG && byte < 0x40 && pos + 2 < end) {
        const low = bytes[pos + 1];
        const high = bytes[pos + 2];
        if (low < 0x80 || high < 0x80) {
          const imm = this.imm;
          imm.align = byte;
          imm.memory = 0;
          imm.offsetHi = 0;
          if (low < 0x80) {
            imm.offsetLo = low;
            this.pos = pos + 2;
          } else {
            imm.offsetLo = (low & 0x7f) | (high << 7);
            this.pos = pos + 3;
          }
          return ID_BY_BYTE[opcode];
        }
      }
      if (plan === BLOCK_TYPE && byte === 0x40) {
        this.imm.blockTypeIndex = -1;
        this.imm.blockValue = 0;
        this.pos = pos + 1;
        return ID_BY_BYTE[opcode];
      }
    }
    return this.#nextByPlan(opcode, plan);
  }

  #nextByPlan(opcode: number, plan: number): number {
    let id = ID_BY_BYTE[opcode];
    let steps = plan;
    if (plan < 0) {
      const pos = this.pos - 1;
      if (plan === ILLEGAL) this.fail(`illegal opcode ${opcode.toString(16).padStart(2, "0")}`, pos);
      const code = this.u32();
      id = idOfCode(opcode, code);
      if (id < 0) this.fail(`illegal opcode ${opcode.toString(16)} ${code.toString(16).padStart(2, "0")}`, pos);
      steps = PLAN_BY_ID[id];
    }
    for (; steps !== 0; steps >>= 5) this.#step(steps & 31);
    return id;
  }

  #step(step: number): void {
    const imm = this.imm;
    switch (step) {
      case INDEX:
        imm.index = this.u32();
        break;
      case INDEX2:
        imm.index2 = this.u32();
        break;
      case MEMARG:
        this.#memarg();
        break;
      case CONST32:
        imm.lo = this.s32();
        break;
      case BLOCK_TYPE:
        this.#blockType();
        break;
      case LABELS:
        this.#labels();
        break;
      case CONST64:
        this.s64();
        imm.lo = this.lo;
        imm.hi = this.hi;
        break;
      case BITS32:
        this.bits32();
        imm.lo = this.lo;
        break;
      case BITS64:
        this.bits64();
        imm.lo = this.lo;
        imm.hi = this.hi;
        break;
      case BYTES16:
        if (this.end - this.pos < 16) this.fail(UNEXPECTED_END, this.end);
        for (let i = 0; i < 16; i++) imm.bytes[i] = this.bytes[this.pos + i];
        this.pos += 16;
        break;
      case LANE:
        imm.lane = this.u8();
        break;
      case VAL_TYPES: {
        const count = this.count();
        imm.valTypes.length = 0;
        for (let i = 0; i < count; i++) imm.valTypes.push(readValType(this));
        break;
      }
      case HEAP_TYPE:
        imm.heap = readHeapType(this);
        imm.nullable = true;
        break;
      case REF_TYPE:
        imm.heap = readHeapType(this);
        imm.nullable = false;
        break;
      case REF_NULL_TYPE:
        imm.heap = readHeapType(this);
        imm.nullable = true;
        break;
      case CAST_TYPES: {
        const flags = this.u8();
        if (flags > 3) this.fail("malformed br_on_cast flags", this.pos - 1);
        imm.index = this.u32();
        imm.nullable = (flags & 1) !== 0;
        imm.nullable2 = (flags & 2) !== 0;
        imm.heap = readHeapType(this);
        imm.heap2 = readHeapType(this);
        break;
      }
      case CATCHES:
        this.#catches();
        break;
      case ORDERING:
        if (this.u8() !== 0) this.fail("zero byte expected", this.pos - 1);
        break;
      case NEEDS_DATA_COUNT:
        if (this.dataCountMissing) this.fail("data count section required", this.at - this.base);
        break;
    }
  }

  #memarg(): void {
    const imm = this.imm;
    const pos = this.pos;
    const flags = this.u32();
    if (flags >= 0x80) this.fail("malformed memop flags", pos);
    imm.align = flags & 0x3f;
    imm.memory = (flags & 0x40) !== 0 ? this.u32() : 0;
    this.u64();
    imm.offsetLo = this.lo >>> 0;
    imm.offsetHi = this.hi >>> 0;
  }

  #blockType(): void {
    const imm = this.imm;
    const byte = this.pos < this.end ? this.bytes[this.pos] : this.u8();
    if (byte === 0x40) {
      this.pos++;
      imm.blockTypeIndex = -1;
      imm.blockValue = 0;
    } else if ((byte & 0xc0) === 0x40) {
      imm.blockTypeIndex = -2;
      imm.blockValue = readValType(this);
    } else {
      const pos = this.pos;
      const index = this.s33();
      if (index < 0) this.fail("malformed block type", pos);
      imm.blockTypeIndex = index;
      imm.blockValue = 0;
    }
  }

  #labels(): void {
    const imm = this.imm;
    const count = this.count();
    if (count >= imm.labels.length) imm.labels = new Int32Array(Math.max(count + 1, imm.labels.length * 2));
    const labels = imm.labels;
    for (let i = 0; i <= count; i++) {
      const label = this.u32();
      // No label above 2^31 exists; it stays positive, so that it fails the range check as a large number.
      labels[i] = label > 0x7fffffff ? 0x7fffffff : label;
    }
    imm.labelCount = count;
  }

  #catches(): void {
    const imm = this.imm;
    const count = this.count();
    imm.catches.length = 0;
    for (let i = 0; i < count; i++) {
      const kind = this.u8();
      if (kind > 3) this.fail("malformed catch clause", this.pos - 1);
      const tag = kind < 2 ? this.u32() : -1;
      imm.catches.push({ kind, tag, label: this.u32() });
    }
  }

  /** Reads the local declarations at the start of a function body, as {@linkcode readLocals} does. */
  locals(locals?: ValType[]): number {
    return readLocals(this, locals);
  }
}
