/**
 * The text syntax of each opcode row's immediates, as one number per row, derived from the row's immediate kinds. Text
 * and binary differ in order (`call_indirect` begins with its table) and in the optional parts (memory and table
 * indices), so a shape describes a whole list of kinds.
 */
import { Bug } from "../base/errors.ts";
import type { ImmediateKind } from "../wasm/opcode_row.ts";
import { opcodeColumn } from "../wasm/opcodes.ts";

/** Lists of immediate kinds; the index of a list is its shape. */
const SHAPE_LISTS = [
  "-",
  "local",
  "global",
  "func",
  "type",
  "tag",
  "elem",
  "data",
  "label",
  "labels",
  "table",
  "memory",
  "memarg",
  "memarg,lane",
  "atomicarg",
  "rmwarg",
  "lane",
  "lanes",
  "i32",
  "i64",
  "f32",
  "f64",
  "v128",
  "valtypes",
  "heaptype",
  "reftype0",
  "reftype1",
  "casttypes",
  "ordering",
  "type,table",
  "type,type",
  "type,tag",
  "type,handlers",
  "type,tag,handlers",
  "type,field",
  "type,count",
  "type,data",
  "type,elem",
  "data,memory",
  "memory,memory",
  "elem,table",
  "table,table",
  "blocktype",
  "blocktype,catches",
] as const;

type ShapeList = (typeof SHAPE_LISTS)[number];

/** The number of each shape. */
export const SHAPE = Object.fromEntries(SHAPE_LISTS.map((list, index) => [list, index])) as Record<ShapeList, number>;

/** Shape by row id. A row with a list that is missing above fails at load. */
export const SHAPE_BY_ID: Uint8Array = opcodeColumn(Uint8Array, (row) => shapeOf(row.immediates));

function shapeOf(kinds: readonly ImmediateKind[]): number {
  const list = kinds.length === 0 ? "-" : kinds.join(",");
  const shape = SHAPE_LISTS.indexOf(list as ShapeList);
  if (shape < 0) throw new Bug(`No text form for immediates "${list}"`);
  return shape;
}
