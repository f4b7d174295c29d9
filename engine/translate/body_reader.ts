/**
 * Reads the instructions of a body that validation accepts, or will reject later. In: bytes. Out: row ids and decoded
 * Immediates. Unlike wasm/code_reader.ts it reports no error: reading ends at the end of the bytes, and at the first
 * instruction that no row describes or whose list is longer than the bytes; other malformed immediates have some value.
 * No read leaves the bytes.
 */
import {
  BITS32,
  BITS64,
  BLOCK_TYPE,
  BYTES16,
  CAST_TYPES,
  CATCHES,
  CONST32,
  CONST64,
  HEAP_TYPE,
  INDEX,
  INDEX2,
  LABELS,
  LANE,
  MEMARG,
  ORDERING,
  PLAN_BY_ID,
  REF_NULL_TYPE,
  REF_TYPE,
  VAL_TYPES,
} from "../wasm/code_reader.ts";
import { Immediates } from "../wasm/immediates.ts";
import { BY_CODE, CODE_LIMIT, ID_BY_BYTE } from "../wasm/opcodes.ts";

/** The first and the last byte that begin an opcode of two parts, and what page 0 lacks to the first. */
const FIRST_PREFIX = 0xfb, LAST_PREFIX = 0xfe, PAGE_BASE = 0xfa;
const REF_BYTE = 0x64;
const REF_NULL_BYTE = 0x63;
const EMPTY_BYTE = 0x40;

export class BodyReader {
  bytes: Uint8Array = new Uint8Array(0);
  /** Index of the next byte. */
  pos = 0;
  /** Absolute offset of `bytes[0]`, and of the last instruction. */
  base = 0;
  at = 0;
  readonly imm: Immediates = new Immediates();

  /** Positions the reader at byte `pos` of `bytes`, whose first has the absolute offset `base`. */
  reset(bytes: Uint8Array, pos: number, base: number): void {
    this.bytes = bytes;
    this.pos = pos;
    this.base = base;
  }

  /** Reads the next instruction; returns its row id, −1 at the end. */
  next(): number {
    const { bytes, pos, imm } = this;
    const end = bytes.length;
    this.at = this.base + pos;
    if (pos >= end) return -1;
    const opcode = bytes[pos];
    this.pos = pos + 1;
    let id: number = ID_BY_BYTE[opcode];
    if (opcode >= FIRST_PREFIX && opcode <= LAST_PREFIX) {
      const code = this.#unsigned();
      if (code < 0 || code >= CODE_LIMIT) return -1;
      id = BY_CODE[(opcode - PAGE_BASE) * CODE_LIMIT + code] - 1;
    }
    if (id < 0) return -1;
    const plan = PLAN_BY_ID[id];
    if (plan === 0) return id;
    const at = this.pos;
    // The shortest encodings of the most frequent immediates are read here.
    if (at + 1 < end && bytes[at] < 0x80) {
      const byte: number = bytes[at];
      if (plan === INDEX) {
        imm.index = byte;
        this.pos = at + 1;
        return id;
      }
      if (plan === CONST32) {
        imm.lo = (byte << 25) >> 25;
        this.pos = at + 1;
        return id;
      }
      if (plan === MEMARG && byte < 0x40 && bytes[at + 1] < 0x80) {
        imm.align = byte;
        imm.memory = 0;
        imm.offsetLo = bytes[at + 1];
        imm.offsetHi = 0;
        this.pos = at + 2;
        return id;
      }
    }
    for (let steps = plan; steps !== 0; steps >>= 5) if (!this.#step(steps & 31)) return -1;
    return id;
  }

  /**
   * Skips the declarations of locals at the start of a body and appends their types, as letters of the binary format.
   */
  locals(types: number[]): void {
    const runs = this.#unsigned();
    for (let n = 0; n < runs; n++) {
      const count = this.#unsigned();
      const type = this.#valType();
      for (let k = 0; k < count; k++) types.push(type);
    }
  }

  /** Reads an immediate; false if it is malformed. */
  #step(step: number): boolean {
    const { imm } = this;
    switch (step) {
      case INDEX:
        imm.index = this.#unsigned();
        break;
      case INDEX2:
        imm.index2 = this.#unsigned();
        break;
      case MEMARG:
        this.#memarg();
        break;
      case CONST32:
        imm.lo = this.#signed();
        break;
      case BLOCK_TYPE:
        this.#blockType();
        break;
      case CONST64:
        this.#long(true);
        break;
      case BITS32:
        imm.lo = this.#word();
        break;
      case BITS64:
        imm.lo = this.#word();
        imm.hi = this.#word();
        break;
      case BYTES16:
        for (let k = 0; k < 16; k++) imm.bytes[k] = this.#byte();
        break;
      case LANE:
        imm.lane = this.#byte();
        break;
      case HEAP_TYPE:
      case REF_NULL_TYPE:
        imm.heap = this.#signed();
        imm.nullable = true;
        break;
      case REF_TYPE:
        imm.heap = this.#signed();
        imm.nullable = false;
        break;
      case CAST_TYPES: {
        const flags = this.#byte();
        imm.index = this.#unsigned();
        imm.nullable = (flags & 1) !== 0;
        imm.nullable2 = (flags & 2) !== 0;
        imm.heap = this.#signed();
        imm.heap2 = this.#signed();
        break;
      }
      case ORDERING:
        this.#byte();
        break;
      case VAL_TYPES:
        return this.#skipTypes();
      case LABELS:
        return this.#labels();
      case CATCHES:
        return this.#catches();
    }
    return true;
  }

  #memarg(): void {
    const { imm } = this;
    const flags = this.#unsigned();
    imm.align = flags & 0x3f;
    imm.memory = (flags & 0x40) !== 0 ? this.#unsigned() : 0;
    const lo = imm.lo, hi = imm.hi;
    this.#long(false);
    imm.offsetLo = imm.lo;
    imm.offsetHi = imm.hi;
    imm.lo = lo;
    imm.hi = hi;
  }

  #blockType(): void {
    const { imm } = this;
    const byte = this.pos < this.bytes.length ? this.bytes[this.pos] : EMPTY_BYTE;
    imm.blockTypeIndex = byte === EMPTY_BYTE ? -1 : -2;
    imm.blockValue = 0;
    if ((byte & 0xc0) !== 0x40) imm.blockTypeIndex = this.#signed();
    else if (byte === EMPTY_BYTE) this.pos++;
    else imm.blockValue = this.#valType();
  }

  #labels(): boolean {
    const { imm } = this;
    const count = this.#count();
    if (count < 0) return false;
    if (count >= imm.labels.length) imm.labels = new Int32Array(Math.max(count + 1, imm.labels.length * 2));
    for (let k = 0; k <= count; k++) imm.labels[k] = this.#unsigned();
    imm.labelCount = count;
    return true;
  }

  #catches(): boolean {
    const { imm } = this;
    const count = this.#count();
    if (count < 0) return false;
    imm.catches.length = 0;
    for (let k = 0; k < count; k++) {
      const kind = this.#byte();
      const tag = kind < 2 ? this.#unsigned() : -1;
      imm.catches.push({ kind, tag, label: this.#unsigned() });
    }
    return true;
  }

  /** Skips a list of types. */
  #skipTypes(): boolean {
    const count = this.#count();
    for (let k = 0; k < count; k++) this.#valType();
    return count >= 0;
  }

  /** A value type: its first byte. */
  #valType(): number {
    const byte = this.#byte();
    if (byte === REF_BYTE || byte === REF_NULL_BYTE) this.#signed();
    return byte;
  }

  /** The length of a list; −1 if it is longer than the bytes left. */
  #count(): number {
    const count = this.#unsigned();
    return count >= 0 && count <= this.bytes.length - this.pos ? count : -1;
  }

  #byte(): number {
    const { bytes, pos } = this;
    this.pos = pos + 1;
    return pos < bytes.length ? bytes[pos] : 0;
  }

  /** Four bytes, little endian. */
  #word(): number {
    const low = this.#byte() | (this.#byte() << 8);
    return low | (this.#byte() << 16) | (this.#byte() << 24);
  }

  /** The low 32 bits of an unsigned LEB128 integer. */
  #unsigned(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.#byte();
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return value;
  }

  /** The low 32 bits of a signed LEB128 integer. */
  #signed(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.#byte();
      value |= (byte & 0x7f) << shift;
      if (byte >= 0x80) continue;
      return shift < 25 && (byte & 0x40) !== 0 ? value | (-1 << (shift + 7)) : value;
    }
    return value;
  }

  /** A LEB128 integer of 64 bits, into `imm.lo` and `imm.hi`. */
  #long(isSigned: boolean): void {
    const { imm } = this;
    let lo = 0, hi = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#byte();
      const bits = byte & 0x7f;
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
      break;
    }
    imm.lo = lo;
    imm.hi = hi;
  }
}
