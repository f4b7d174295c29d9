/**
 * Reads an expression (a function body or a constant expression) instruction by instruction. In: bytes. Out: row ids
 * and decoded Immediates, by the rows' plans (read_plans.ts). Translation reads valid bodies with it, in all of its
 * forms; code_reader.ts adds errors for readers of bytes that may be malformed.
 *
 * Relies on nothing about the bytes, and reads none outside of them. Establishes: a returned id has well-formed
 * immediates; `fault` is the first malformed part, after which the reader must be reset. The caller tracks nesting (the
 * validator counts frames).
 */
import { isBelow, wideIndex } from "../base/numbers.ts";
import { exactHeap } from "./exact_heap.ts";
import { HAS_ORDERING, Immediates, ORDERING, RMW_ACQUIRE_RELEASE } from "./immediates.ts";
import { MAX_LOCALS } from "./limits.ts";
import { BY_CODE, CODE_LIMIT, ID_BY_BYTE } from "./opcodes.ts";
import { ILLEGAL, PLAN_BY_BYTE, PLAN_BY_ID, PREFIX, STEP } from "./read_plans.ts";
import { EXACT_BYTE, FIRST_HEAP_BYTE, LAST_HEAP_BYTE, MAX_TYPE_INDEX, REF_BYTE, REF_NULL_BYTE } from "./type_reader.ts";
import { F32, HEAP_BIAS, I32, NULLABLE, REF, V128 } from "./types.ts";

/** What is wrong with the bytes. */
export const FAULT = {
  NONE: 0,
  /** The bytes end before an instruction, or within one. */
  NO_END: 1,
  ENDS: 2,
  /** An integer is too large for its type, or takes too many bytes. */
  TOO_LARGE: 3,
  TOO_LONG: 4,
  ILLEGAL_OPCODE: 5,
  /** The second part of an opcode of two parts, which is the fault's value. */
  ILLEGAL_CODE: 6,
  /** A list of so many items, which the fault's value says, in fewer bytes. */
  COUNT: 7,
  MEMORY_FLAGS: 8,
  /** The fault's value is the byte, and in bits 8 to 15 the one of an acquire-release ordering. */
  ORDERING: 9,
  CAST_FLAGS: 10,
  BLOCK_TYPE: 11,
  CATCH_KIND: 12,
  HANDLER_KIND: 13,
  VALUE_TYPE: 14,
  HEAP_TYPE: 15,
  /** A type index that no type can have: the fault's value. */
  UNKNOWN_TYPE: 16,
  NO_DATA_COUNT: 17,
  /** The fault's value is the number of locals. */
  TOO_MANY_LOCALS: 18,
} as const;

/** The first byte that begins an opcode of two parts, less 1: BY_CODE has a page for the opcodes of one byte. */
const PAGE_BASE = 0xfa;
/** The block type without parameters and results. */
const EMPTY_BYTE = 0x40;

export class BodyReader {
  bytes: Uint8Array = new Uint8Array(0);
  /** Index of the next byte, and after the last readable one. */
  pos = 0;
  end = 0;
  /** Absolute offset of `bytes[0]`, and of the last instruction. */
  base = 0;
  at = 0;
  readonly imm: Immediates = new Immediates();
  /** Halves of the last integer, both signed. */
  lo = 0;
  hi = 0;
  /** Set for a module without a data count section: an instruction with a data segment is then malformed. */
  dataCountMissing = false;
  /** The first fault since `reset`, one of FAULT, its place as an index of `bytes`, and its value. */
  fault: number = FAULT.NONE;
  faultPos = 0;
  faultValue = 0;

  /** Positions the reader at `bytes[start … end − 1]`; the absolute offset of `bytes[0]` is `base`. */
  reset(bytes: Uint8Array, start: number, end: number, base: number): void {
    this.bytes = bytes;
    this.pos = start;
    this.end = end;
    this.base = base;
    this.fault = FAULT.NONE;
  }

  /** Reads the next instruction; returns its row id, −1 at a fault. */
  next(): number {
    const { bytes, end } = this;
    let pos = this.pos;
    this.at = this.base + pos;
    if (pos >= end) return this.stop(FAULT.NO_END, pos, 0);
    const opcode: number = bytes[pos++];
    this.pos = pos;
    const plan: number = PLAN_BY_BYTE[opcode];
    if (plan === 0) return ID_BY_BYTE[opcode];
    // The shortest encodings of the most frequent immediates are read here; everything else takes the plan.
    if (pos < end) {
      const byte: number = bytes[pos];
      const { imm } = this;
      if (plan === STEP.INDEX && byte < 0x80) {
        imm.index = byte;
        this.pos = pos + 1;
        return ID_BY_BYTE[opcode];
      }
      if (plan === STEP.CONST32 && byte < 0x80) {
        imm.lo = (byte << 25) >> 25;
        this.pos = pos + 1;
        return ID_BY_BYTE[opcode];
      }
      if (plan === STEP.MEMARG && byte < 0x40 && pos + 2 < end) {
        const low: number = bytes[pos + 1];
        const high: number = bytes[pos + 2];
        if (low < 0x80 || high < 0x80) {
          imm.align = byte;
          imm.memory = 0;
          imm.offsetHi = 0;
          imm.offsetLo = low < 0x80 ? low : (low & 0x7f) | (high << 7);
          this.pos = low < 0x80 ? pos + 2 : pos + 3;
          return ID_BY_BYTE[opcode];
        }
      }
      if (plan === STEP.BLOCK_TYPE && byte === EMPTY_BYTE) {
        imm.blockTypeIndex = -1;
        imm.blockValue = 0;
        this.pos = pos + 1;
        return ID_BY_BYTE[opcode];
      }
    }
    return this.#nextByPlan(opcode, plan);
  }

  #nextByPlan(opcode: number, plan: number): number {
    let id: number = ID_BY_BYTE[opcode];
    let steps = plan;
    const at = this.pos - 1;
    if (plan === ILLEGAL) return this.stop(FAULT.ILLEGAL_OPCODE, at, opcode);
    if (plan === PREFIX) {
      const code = this.unsigned();
      if (this.fault !== FAULT.NONE) return -1;
      id = isBelow(code, CODE_LIMIT) ? BY_CODE[(opcode - PAGE_BASE) * CODE_LIMIT + code] - 1 : -1;
      if (id < 0) return this.stop(FAULT.ILLEGAL_CODE, at, code);
      steps = PLAN_BY_ID[id];
    }
    for (; steps !== 0; steps >>= 5) {
      this.#step(steps & 31);
      if (this.fault !== FAULT.NONE) return -1;
    }
    return id;
  }

  /**
   * Reads the declarations of locals at the start of a body and appends their types to `types`, unless that is absent;
   * returns their number. Runs whose sum exceeds the engine's limit are a fault before anything is appended for them.
   */
  readLocals(types: number[] | undefined): number {
    let total = 0;
    for (let runs = this.#count(); runs > 0; runs--) {
      const pos = this.pos;
      const count = this.unsigned();
      total += count;
      if (total > MAX_LOCALS) this.stop(FAULT.TOO_MANY_LOCALS, pos, total);
      const type = this.#valType();
      if (this.fault !== FAULT.NONE) return total;
      if (types !== undefined) { for (let k = 0; k < count; k++) types.push(type); }
    }
    return total;
  }

  /** Notes a fault at `bytes[pos]`, unless there is one already. Returns −1. */
  stop(fault: number, pos: number, value: number): number {
    if (this.fault === FAULT.NONE) {
      this.fault = fault;
      this.faultPos = pos;
      this.faultValue = value;
    }
    return -1;
  }

  #step(step: number): void {
    const { imm } = this;
    switch (step) {
      case STEP.INDEX:
        imm.index = this.unsigned();
        break;
      case STEP.INDEX2:
        imm.index2 = this.unsigned();
        break;
      case STEP.MEMARG:
        imm.align = this.#memory() & 0x3f;
        this.#offset();
        break;
      case STEP.CONST32:
        imm.lo = this.#signed();
        break;
      case STEP.BLOCK_TYPE:
        this.#blockType();
        break;
      case STEP.LABELS:
        this.#labels();
        break;
      case STEP.CONST64:
        this.#integer(63, 0x7f, true);
        imm.lo = this.lo;
        imm.hi = this.hi;
        break;
      case STEP.BITS32:
        imm.lo = this.#word();
        break;
      case STEP.BITS64:
        if (this.end - this.pos < 8) this.stop(FAULT.ENDS, this.end, 0);
        imm.lo = this.#word();
        imm.hi = this.#word();
        break;
      case STEP.BYTES16:
        if (this.end - this.pos < 16) this.stop(FAULT.ENDS, this.end, 0);
        for (let k = 0; k < 16; k++) imm.bytes[k] = this.#byte();
        break;
      case STEP.LANE:
        imm.lane = this.#byte();
        break;
      case STEP.VAL_TYPES: {
        const count = this.#count();
        imm.valTypes.length = 0;
        for (let k = 0; k < count && this.fault === FAULT.NONE; k++) imm.valTypes.push(this.#valType());
        break;
      }
      case STEP.HEAP_TYPE:
      case STEP.REF_NULL_TYPE:
        imm.heap = this.#heapType();
        imm.nullable = true;
        break;
      case STEP.REF_TYPE:
        imm.heap = this.#heapType();
        imm.nullable = false;
        break;
      case STEP.CAST_TYPES: {
        const flags = this.#byte();
        if (flags > 3) this.stop(FAULT.CAST_FLAGS, this.pos - 1, 0);
        imm.index = this.unsigned();
        imm.nullable = (flags & 1) !== 0;
        imm.nullable2 = (flags & 2) !== 0;
        imm.heap = this.#heapType();
        imm.heap2 = this.#heapType();
        break;
      }
      case STEP.CATCHES:
        this.#catches();
        break;
      case STEP.HANDLERS:
        this.#handlers();
        break;
      case STEP.ORDERING:
        imm.ordering = this.#ordering(ORDERING.ACQUIRE_RELEASE);
        break;
      case STEP.ATOMIC_ARGUMENT:
        this.#atomicArgument(ORDERING.ACQUIRE_RELEASE);
        break;
      case STEP.RMW_ARGUMENT:
        this.#atomicArgument(RMW_ACQUIRE_RELEASE);
        break;
      case STEP.NEEDS_DATA_COUNT:
        if (this.dataCountMissing) this.stop(FAULT.NO_DATA_COUNT, this.at - this.base, 0);
        break;
    }
  }

  /** The flags of a memory argument and its memory. Returns the flags. */
  #memory(): number {
    const pos = this.pos;
    const flags = this.unsigned();
    if (!isBelow(flags, 0x80)) this.stop(FAULT.MEMORY_FLAGS, pos, 0);
    this.imm.memory = (flags & 0x40) !== 0 ? this.unsigned() : 0;
    return flags;
  }

  #offset(): void {
    const { imm } = this;
    this.#integer(63, 0x7e, false);
    imm.offsetLo = wideIndex(this.lo);
    imm.offsetHi = wideIndex(this.hi);
  }

  /** A memory argument in which `acquireRelease` is the byte of that ordering. */
  #atomicArgument(acquireRelease: number): void {
    const { imm } = this;
    const flags = this.#memory();
    imm.align = flags & 0x3f & ~HAS_ORDERING;
    imm.ordering = (flags & HAS_ORDERING) !== 0 ? this.#ordering(acquireRelease) : ORDERING.ABSENT;
    this.#offset();
  }

  #ordering(acquireRelease: number): number {
    const byte = this.#byte();
    if (byte === 0) return ORDERING.SEQUENTIAL;
    if (byte !== acquireRelease) this.stop(FAULT.ORDERING, this.pos - 1, byte | (acquireRelease << 8));
    return ORDERING.ACQUIRE_RELEASE;
  }

  #blockType(): void {
    const { imm, pos } = this;
    const byte: number = pos < this.end ? this.bytes[pos] : EMPTY_BYTE;
    imm.blockTypeIndex = byte === EMPTY_BYTE ? -1 : -2;
    imm.blockValue = 0;
    if (byte === EMPTY_BYTE) this.#byte();
    else if ((byte & 0xc0) === 0x40) imm.blockValue = this.#valType();
    else {
      this.#integer(28, 0x70, true);
      if (this.hi < 0) this.stop(FAULT.BLOCK_TYPE, pos, 0);
      imm.blockTypeIndex = wideIndex(this.lo);
    }
  }

  #labels(): void {
    const { imm } = this;
    const count = this.#count();
    if (count >= imm.labels.length) imm.labels = new Int32Array(Math.max(count + 1, imm.labels.length * 2));
    const { labels } = imm;
    for (let k = 0; k <= count && this.fault === FAULT.NONE; k++) {
      this.unsigned();
      // No label above 2^31 exists; it stays positive, so that it fails the range check as a large number.
      labels[k] = this.lo < 0 ? 0x7fffffff : this.lo;
    }
    imm.labelCount = count;
  }

  #catches(): void {
    const { imm } = this;
    const count = this.#count();
    imm.catches.length = 0;
    for (let k = 0; k < count && this.fault === FAULT.NONE; k++) {
      const kind = this.#byte();
      if (kind > 3) this.stop(FAULT.CATCH_KIND, this.pos - 1, 0);
      const tag = kind < 2 ? this.unsigned() : -1;
      imm.catches.push({ kind, tag, label: this.unsigned() });
    }
  }

  #handlers(): void {
    const { imm } = this;
    const count = this.#count();
    imm.handlers.length = 0;
    for (let k = 0; k < count && this.fault === FAULT.NONE; k++) {
      const kind = this.#byte();
      if (kind > 1) this.stop(FAULT.HANDLER_KIND, this.pos - 1, 0);
      const tag = this.unsigned();
      imm.handlers.push({ tag, label: kind === 0 ? this.unsigned() : -1 });
    }
  }

  /** A value type, in the encoding of types.ts. */
  #valType(): number {
    const byte = this.#byte();
    if (byte >= V128 && byte <= I32) return byte;
    if (byte >= FIRST_HEAP_BYTE && byte <= LAST_HEAP_BYTE) return REF | NULLABLE | (byte - 0x80 + HEAP_BIAS);
    if (byte === REF_BYTE) return REF | (this.#heapType() + HEAP_BIAS);
    if (byte === REF_NULL_BYTE) return REF | NULLABLE | (this.#heapType() + HEAP_BIAS);
    this.stop(FAULT.VALUE_TYPE, this.pos - 1, 0);
    return F32;
  }

  /**
   * A heap type: an abstract one as a single byte, a type index as a signed integer that is not negative, or an exact
   * one, whose index is unsigned.
   */
  #heapType(): number {
    const { pos } = this;
    const byte: number = pos < this.end ? this.bytes[pos] : EMPTY_BYTE;
    if ((byte & 0xc0) !== 0x40) {
      this.#integer(28, 0x70, true);
      if (this.hi < 0) this.stop(FAULT.HEAP_TYPE, pos, 0);
      return this.#typeIndex(pos);
    }
    this.#byte();
    if (byte === EXACT_BYTE) {
      this.unsigned();
      return exactHeap(this.#typeIndex(pos));
    }
    if (byte < FIRST_HEAP_BYTE || byte > LAST_HEAP_BYTE) this.stop(FAULT.HEAP_TYPE, pos, 0);
    return byte - 0x80;
  }

  /** The type index in `lo`, read at `pos`, if it fits a packed reference type. */
  #typeIndex(pos: number): number {
    if (isBelow(MAX_TYPE_INDEX, this.lo)) this.stop(FAULT.UNKNOWN_TYPE, pos, wideIndex(this.lo));
    return this.lo;
  }

  /** The length of a list whose items take at least a byte each: a longer one is a fault, before anything is stored. */
  #count(): number {
    const { pos } = this;
    const count = this.unsigned();
    if (!isBelow(this.end - this.pos, count)) return count;
    this.stop(FAULT.COUNT, pos, count);
    return 0;
  }

  #byte(): number {
    const { pos } = this;
    if (pos >= this.end) {
      this.stop(FAULT.ENDS, pos, 0);
      return 0;
    }
    this.pos = pos + 1;
    return this.bytes[pos];
  }

  /** Four bytes, little endian. */
  #word(): number {
    if (this.end - this.pos < 4) this.stop(FAULT.ENDS, this.end, 0);
    const low = this.#byte() | (this.#byte() << 8);
    return low | (this.#byte() << 16) | (this.#byte() << 24);
  }

  /** An unsigned LEB128 integer of 32 bits, also into `lo`. */
  unsigned(): number {
    const { pos } = this;
    const byte: number = pos < this.end ? this.bytes[pos] : 0x80;
    if (byte < 0x80) {
      this.pos = pos + 1;
      this.lo = byte;
      return byte;
    }
    this.#integer(28, 0x70, false);
    return wideIndex(this.lo);
  }

  /** A signed LEB128 integer of 32 bits. */
  #signed(): number {
    this.#integer(28, 0x78, true);
    return this.lo;
  }

  /**
   * A LEB128 integer, into `lo` and `hi`: at most up to shift `last`, where the bits of `unused` are zero, or the sign
   * if it is signed. A malformed integer that crosses the end is a fault of its own, as the specification suite
   * expects, because a wrong size of a section is often a consequence.
   */
  #integer(last: number, unused: number, isSigned: boolean): void {
    const { bytes } = this;
    let pos = this.pos, lo = 0, hi = 0;
    for (let shift = 0; shift <= last; shift += 7) {
      if (pos >= bytes.length) {
        this.#fail(FAULT.ENDS, pos);
        return;
      }
      const byte: number = bytes[pos++];
      const bits = byte & 0x7f;
      const rest = bits & unused;
      if (shift === last && rest !== 0 && (!isSigned || rest !== unused)) {
        this.#fail(FAULT.TOO_LARGE, pos - 1);
        return;
      }
      if (shift < 28) lo |= bits << shift;
      else if (shift === 28) {
        lo |= bits << 28;
        hi = bits >> 4;
      } else hi |= bits << (shift - 32);
      if (byte >= 0x80) continue;
      const used = shift + 7;
      if (isSigned && (byte & 0x40) !== 0) {
        if (used < 32) {
          lo |= -1 << used;
          hi = -1;
        } else if (used < 64) hi |= -1 << (used - 32);
      }
      if (pos > this.end) this.#fail(FAULT.ENDS, this.end);
      else {
        this.pos = pos;
        this.lo = lo;
        this.hi = hi;
      }
      return;
    }
    this.#fail(FAULT.TOO_LONG, pos - 1);
  }

  /** Notes the fault of an integer, whose value is 0. */
  #fail(fault: number, pos: number): void {
    this.stop(fault, pos, 0);
    this.lo = 0;
    this.hi = 0;
  }
}
