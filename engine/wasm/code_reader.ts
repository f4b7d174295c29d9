/**
 * Reads an expression that may be malformed. In: bytes. Out: row ids and decoded Immediates, as body_reader.ts; every
 * fault is a MalformedError, or an InvalidError, with its absolute offset. This file has the words of faults.
 */
import { UNEXPECTED_END } from "../base/bytes.ts";
import { InvalidError, MalformedError } from "../base/errors.ts";
import { BodyReader, FAULT } from "./body_reader.ts";
import { MAX_LOCALS } from "./limits.ts";
import type { ValType } from "./types.ts";

/** A cursor over an expression. After {@linkcode next} the immediates are in `imm`, which the next call overwrites. */
export class CodeReader extends BodyReader {
  /** Reads `bytes[start … end − 1]`; `baseOffset` is the absolute offset of `bytes[0]`. */
  constructor(bytes: Uint8Array, start = 0, end: number = bytes.length, baseOffset = 0) {
    super();
    this.reset(bytes, start, end, baseOffset);
  }

  /** Whether all bytes are read. */
  get done(): boolean {
    return this.pos >= this.end;
  }

  /** Absolute offset of the next byte. */
  get offset(): number {
    return this.base + this.pos;
  }

  /** Bytes left. */
  get left(): number {
    return this.end - this.pos;
  }

  /** Throws; `pos` defaults to the current position. */
  fail(message: string, pos: number = this.pos): never {
    throw new MalformedError(message, { offset: this.base + pos });
  }

  /** Reads the next instruction and returns its row id; fails at the end of the bytes, where an `end` is missing. */
  override next(): number {
    const id = super.next();
    if (id < 0) this.#fail();
    return id;
  }

  /** Reads the local declarations at the start of a function body; appends their types to `locals`, if given. */
  locals(locals?: ValType[]): number {
    const total = this.readLocals(locals);
    if (this.fault !== FAULT.NONE) this.#fail();
    return total;
  }

  /** Throws the error for the fault. */
  #fail(): never {
    const { faultPos: pos, faultValue: value } = this;
    if (this.fault === FAULT.UNKNOWN_TYPE) throw new InvalidError(`unknown type ${value}`, { offset: this.base + pos });
    this.fail(this.#words(value), pos);
  }

  #words(value: number): string {
    switch (this.fault) {
      case FAULT.NO_END:
        return `END opcode expected: ${UNEXPECTED_END}`;
      case FAULT.TOO_LARGE:
        return "integer too large";
      case FAULT.TOO_LONG:
        return "integer representation too long";
      case FAULT.ILLEGAL_OPCODE:
        return `illegal opcode ${hex(value)}`;
      case FAULT.ILLEGAL_CODE:
        return `illegal opcode ${hex(this.bytes[this.faultPos])} ${hex(value)}`;
      case FAULT.COUNT:
        return `${UNEXPECTED_END}: length out of bounds: count ${value} with ${this.left} bytes left`;
      case FAULT.MEMORY_FLAGS:
        return "malformed memop flags";
      case FAULT.ORDERING:
        return `malformed memory ordering ${value & 0xff}, must be 0 or ${value >> 8}`;
      case FAULT.CAST_FLAGS:
        return "malformed br_on_cast flags";
      case FAULT.BLOCK_TYPE:
        return "malformed block type";
      case FAULT.CATCH_KIND:
        return "malformed catch clause";
      case FAULT.HANDLER_KIND:
        return "malformed on clause";
      case FAULT.VALUE_TYPE:
        return "malformed value type";
      case FAULT.HEAP_TYPE:
        return "malformed heap type";
      case FAULT.NO_DATA_COUNT:
        return "data count section required";
      case FAULT.TOO_MANY_LOCALS:
        return `too many locals: ${value}, at most ${MAX_LOCALS} are possible`;
      default:
        return UNEXPECTED_END;
    }
  }
}

/** A part of an opcode, in hexadecimal digits. */
function hex(value: number): string {
  return value.toString(16).padStart(2, "0");
}
