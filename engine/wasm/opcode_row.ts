/**
 * The notation of the opcode table. A row is one string, read left to right:
 *
 *     code  mnemonic  immediates  signature  feature  [ir operation]
 *     "6a   i32.add   -           ii_i       mvp      ADD"
 *
 * - `code` is the opcode in hexadecimal, with its prefix: `6a`, `fc:08`, `fd:100`, `fb:00`, `fe:10`.
 * - `immediates` is a comma list of {@linkcode ImmediateKind}, `-` for none.
 * - `signature` is operands `_` results in the letters of SIGNATURE_LETTERS, or `special` if validation needs more than
 *   a signature (validate/special.ts and translate/ then have a handler under the row's mnemonic).
 * - `feature` is the name of a feature, or `mvp`.
 * - the optional last column is the operation of ir/ops.ts that a simple row becomes, with operands in order; rows
 *   without one have a handler in translate/ under their mnemonic.
 *
 * Everything per opcode (decoding, encoding, text, feature gates, simple validation and translation) derives from the
 * rows.
 */
import type { FeatureName } from "../settings/features.ts";

/** Kinds of immediates, in the order of the binary format. */
export const IMMEDIATE_KINDS = [
  "blocktype", // s33 or value type
  "label", // u32
  "labels", // vec(u32), then the default u32
  "local",
  "global",
  "func",
  "table",
  "memory",
  "type",
  "tag",
  "elem",
  "data",
  "field", // u32
  "i32", // s32
  "i64", // s64
  "f32", // 4 bytes
  "f64", // 8 bytes
  "v128", // 16 bytes
  "memarg", // align and flags u32, optional memory index, offset u64
  "atomicarg", // the same with an optional ordering byte before the offset (loads and stores)
  "rmwarg", // the same with the orderings of reading and writing in one byte
  "lane", // 1 byte
  "lanes", // 16 bytes (i8x16.shuffle)
  "valtypes", // vec(valtype) (select t*)
  "heaptype", // s33 (ref.null)
  "reftype0", // heap type of ref.test/ref.cast whose nullability is in the opcode (non-null form)
  "reftype1", // the same, nullable form
  "casttypes", // flags byte, label, two heap types (br_on_cast, br_on_cast_fail)
  "catches", // vec(catch) (try_table)
  "handlers", // vec(handler) (resume)
  "count", // u32 (array.new_fixed)
  "ordering", // 1 byte (atomic.fence)
] as const;
export type ImmediateKind = (typeof IMMEDIATE_KINDS)[number];

/**
 * Letters of signatures: i i32, I i64, f f32, F f64, v v128; `a` is the address type of the row's memory or table
 * (i32, or i64 for memory64/table64). `ii_i` is [i32 i32] -> [i32]; `_` is [] -> [].
 */
export const SIGNATURE_LETTERS = "iIfFva";

/** A parsed row, with derived properties, so that hot loops read fields of one hidden class. */
export interface OpcodeRow {
  /** Dense index in the table, stable within a build: the key of per-opcode columns. */
  readonly id: number;
  /** 0 for one-byte opcodes, else 0xfb, 0xfc, 0xfd or 0xfe. */
  readonly prefix: number;
  /** The opcode byte, or the u32 after the prefix. */
  readonly code: number;
  readonly mnemonic: string;
  readonly immediates: readonly ImmediateKind[];
  /** Operand letters and result letters; undefined for special rows. */
  readonly params?: string;
  readonly results?: string;
  readonly feature: FeatureName | "mvp";
  /** Name of an IR operation of ir/ops.ts, or undefined. */
  readonly ir?: string;
  /** For rows with a memory argument: log2 of the access width in bytes (its natural alignment); else −1. */
  readonly naturalAlign: number;
}
