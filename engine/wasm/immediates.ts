/**
 * The immediates of one instruction, decoded. One object is reused for every instruction of a walk, so a caller must
 * copy the values that it keeps. The row's immediate kinds determine which fields are meaningful.
 */
import type { HeapType, ValType } from "./types.ts";

/** One clause of try_table: kind 0 catch, 1 catch_ref, 2 catch_all, 3 catch_all_ref. */
export interface CatchClause {
  kind: number;
  /** Tag index; −1 for the catch_all kinds. */
  tag: number;
  label: number;
}

/** One handler of resume: `(on tag label)`, or `(on tag switch)`. */
export interface HandlerClause {
  tag: number;
  /** The label; −1 for `switch`. */
  label: number;
}

/** Whether a clause of this kind passes the exception to its label, after the payload: catch_ref and catch_all_ref. */
export function passesException(kind: number): boolean {
  return (kind & 1) !== 0;
}

/**
 * Memory orderings of atomic instructions: absent, which is sequentially consistent, too, or in the numbers of the
 * binary format. That of atomic.fence is never absent.
 */
export const ORDERING = { ABSENT: -1, SEQUENTIAL: 0, ACQUIRE_RELEASE: 1 } as const;

/** Flag of a memory argument with an ordering. */
export const HAS_ORDERING = 0x10;

/** The byte of an acquire-release ordering of reading and of writing. */
export const RMW_ACQUIRE_RELEASE = 0x11;

export class Immediates {
  /** First index: label, local, global, func, table, memory, type, tag, elem, data, field owner, lane count … */
  index = 0;
  /** Second index: table of call_indirect, source of *.copy, field of struct.*, memory of *.init, … */
  index2 = 0;
  /** Bits of constants: low and high half. f32 in lo; i32 in lo. */
  lo = 0;
  hi = 0;
  /** 16 bytes: v128.const and the lanes of i8x16.shuffle. */
  readonly bytes: Uint8Array = new Uint8Array(16);
  /** memarg: log2 of the alignment, memory index, offset as unsigned halves. */
  align = 0;
  memory = 0;
  offsetLo = 0;
  offsetHi = 0;
  /** Atomic accesses and atomic.fence: an {@linkcode ORDERING}. */
  ordering: number = ORDERING.ABSENT;
  lane = 0;
  /** br_table: labelCount targets, then the default at labels[labelCount]. Grows as needed. */
  labels: Int32Array = new Int32Array(16);
  labelCount = 0;
  /** Block type: < −1 value type shorthand is in blockValue; ≥ 0 a type index; −1 empty. */
  blockTypeIndex = -1;
  /** Result type of a block type of the shorthand form, else 0. */
  blockValue: ValType = 0;
  /** select t*, in order. */
  valTypes: ValType[] = [];
  /** ref.null, ref.test, ref.cast; first heap type of br_on_cast (source). */
  heap: HeapType = 0;
  nullable = false;
  /**
   * Second heap type of br_on_cast (target); for ref.test and ref.cast, the operand's static type, which the
   * reader of valid bodies sets (translate/valid_body.ts).
   */
  heap2: HeapType = 0;
  nullable2 = false;
  catches: CatchClause[] = [];
  handlers: HandlerClause[] = [];
}
