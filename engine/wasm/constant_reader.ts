/**
 * Reads constant expressions (specification, 3.3.10) without the table of all opcodes, whose construction takes longer
 * than a small module needs to run. In: bytes, which need not be valid. Out: opcodes as numbers (after a prefix:
 * `prefix << 8 | code`) and their immediates.
 *
 * Invariant: every instruction that validation accepts in a constant expression is covered, with the errors of
 * CodeReader (code_reader.ts); any other is a MalformedError, unless a subclass reads it.
 */
import { ByteReader, UNEXPECTED_END } from "../base/bytes.ts";
import { BytesView, type Expr } from "./module.ts";
import { readHeapType } from "./type_reader.ts";
import type { HeapType } from "./types.ts";

/** The instructions of constant expressions. */
export const CONSTANT = {
  END: 0x0b,
  GLOBAL_GET: 0x23,
  I32_CONST: 0x41,
  I64_CONST: 0x42,
  F32_CONST: 0x43,
  F64_CONST: 0x44,
  I32_ADD: 0x6a,
  I32_SUB: 0x6b,
  I32_MUL: 0x6c,
  I64_ADD: 0x7c,
  I64_SUB: 0x7d,
  I64_MUL: 0x7e,
  REF_NULL: 0xd0,
  REF_FUNC: 0xd2,
  STRUCT_NEW: 0xfb00,
  STRUCT_NEW_DEFAULT: 0xfb01,
  ARRAY_NEW: 0xfb06,
  ARRAY_NEW_DEFAULT: 0xfb07,
  ARRAY_NEW_FIXED: 0xfb08,
  ANY_CONVERT_EXTERN: 0xfb1a,
  EXTERN_CONVERT_ANY: 0xfb1b,
  REF_I31: 0xfb1c,
  STRUCT_NEW_DESC: 0xfb20,
  STRUCT_NEW_DEFAULT_DESC: 0xfb21,
  V128_CONST: 0xfd0c,
} as const;

/** Size in bytes of the opcode and the longest integer of `shortConstantEnd`. */
const SHORT_BYTES = 5;

/**
 * The end of `i32.const N end` at `start`, or of the same with another opcode, if N takes at most four bytes; 0 for
 * anything else. Nearly all offsets of segments are such constants, and modules have thousands of them.
 */
export function shortConstantEnd(
  bytes: Uint8Array,
  start: number,
  end: number,
  opcode: number = CONSTANT.I32_CONST,
): number {
  if (bytes[start] !== opcode) return 0;
  const most = Math.min(start + SHORT_BYTES, end - 1);
  for (let at = start + 1; at < most; at++) {
    if (bytes[at] < 0x80) return bytes[at + 1] === CONSTANT.END ? at + 2 : 0;
  }
  return 0;
}

/** The value of the constant at `start` that `shortConstantEnd` has found. */
export function shortConstant(bytes: Uint8Array, start: number): number {
  let value = 0;
  for (let at = start + 1, shift = 0;; at++, shift += 7) {
    const byte = bytes[at];
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return (value << (25 - shift)) >> (25 - shift);
  }
}

/** The N of an expression `ref.func N end`, the usual element of a segment; −1 for another expression. */
export function soleFunction(expr: Expr): number {
  if (!(expr instanceof BytesView)) return -1;
  const { source, start, end } = expr;
  if (shortConstantEnd(source, start, end, CONSTANT.REF_FUNC) !== end) return -1;
  let index = 0;
  for (let at = start + 1, shift = 0; at < end - 1; at++, shift += 7) index |= (source[at] & 0x7f) << shift;
  return index;
}

const FIRST_PREFIX = 0xfb;
const LAST_PREFIX = 0xfe;

/**
 * A cursor over constant expressions, or over a module that contains some. Constants are in `lo` and `hi` after
 * {@linkcode next}.
 */
export class ConstantReader extends ByteReader {
  /** Absolute offset of the last instruction returned by `next`. */
  at = 0;
  /** Index of a global, function or type. */
  index = 0;
  /** Length of array.new_fixed. */
  index2 = 0;
  /** The type of ref.null. */
  heap: HeapType = 0;
  /** The 16 bytes of v128.const: a view. */
  vector: Uint8Array = new Uint8Array(0);

  /** Reads the next instruction with its immediates; returns its opcode. */
  next(): number {
    this.at = this.offset;
    if (this.left === 0) this.fail(`END opcode expected: ${UNEXPECTED_END}`);
    const byte = this.u8();
    const opcode = byte < FIRST_PREFIX || byte > LAST_PREFIX ? byte : (byte << 8) | this.u32();
    switch (opcode) {
      case CONSTANT.I32_CONST:
        this.lo = this.s32();
        this.hi = 0;
        break;
      case CONSTANT.I64_CONST:
        this.s64();
        break;
      case CONSTANT.F32_CONST:
        this.bits32();
        this.hi = 0;
        break;
      case CONSTANT.F64_CONST:
        this.bits64();
        break;
      case CONSTANT.V128_CONST:
        if (this.left < 16) this.fail(UNEXPECTED_END, this.end);
        this.vector = this.take(16);
        break;
      case CONSTANT.REF_NULL:
        this.heap = readHeapType(this);
        break;
      case CONSTANT.GLOBAL_GET:
      case CONSTANT.REF_FUNC:
      case CONSTANT.STRUCT_NEW:
      case CONSTANT.STRUCT_NEW_DEFAULT:
      case CONSTANT.STRUCT_NEW_DESC:
      case CONSTANT.STRUCT_NEW_DEFAULT_DESC:
      case CONSTANT.ARRAY_NEW:
      case CONSTANT.ARRAY_NEW_DEFAULT:
        this.index = this.u32();
        break;
      case CONSTANT.ARRAY_NEW_FIXED:
        this.index = this.u32();
        this.index2 = this.u32();
        break;
      case CONSTANT.END:
      case CONSTANT.I32_ADD:
      case CONSTANT.I32_SUB:
      case CONSTANT.I32_MUL:
      case CONSTANT.I64_ADD:
      case CONSTANT.I64_SUB:
      case CONSTANT.I64_MUL:
      case CONSTANT.REF_I31:
      case CONSTANT.ANY_CONVERT_EXTERN:
      case CONSTANT.EXTERN_CONVERT_ANY:
        break;
      default:
        this.other(opcode);
    }
    return opcode;
  }

  /** Reads the immediates of the instruction at `at`, which is not constant. */
  protected other(opcode: number): void {
    this.fail(`instruction 0x${opcode.toString(16)} is not constant`, this.at - this.base);
  }
}
