/**
 * Values in a plugin's memory: the encoding of arguments and results of `waft:caller@1 call` and `waft:instance@1
 * call`.
 *
 * In: cells of 8 bytes, little endian: an i32 or f32 in the low half, an i64 or f64 whole. Out: JavaScript values
 * for the engine, and back. Other types cannot be passed: status "invalid".
 */
import { F32, F64, I32, I64 } from "@waft/engine/internal/wasm/types";
import { STATUS } from "../definitions/authorities.ts";
import { type PluginMemory, StatusError } from "./node.ts";

/** Bytes of a cell. */
const CELL = 8;
/** Maximum number of values that a call passes in either direction. */
const MAX_CELLS = 1000;

/** Reads arguments of the given types. */
export function readCells(memory: PluginMemory, at: number, count: number, types: readonly number[]): unknown[] {
  if (count >>> 0 !== types.length || types.length > MAX_CELLS) throw new StatusError(STATUS.invalid);
  const bytes = memory.bytes(at, types.length * CELL);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return types.map((type, i) => {
    if (type === I32) return view.getInt32(i * CELL, true);
    if (type === I64) return view.getBigInt64(i * CELL, true);
    if (type === F32) return view.getFloat32(i * CELL, true);
    if (type === F64) return view.getFloat64(i * CELL, true);
    throw new StatusError(STATUS.invalid);
  });
}

/** Checks that results of the given types can be written, before the call is made. */
export function checkRoom(memory: PluginMemory, at: number, room: number, types: readonly number[]): void {
  if (types.some((t) => t !== I32 && t !== I64 && t !== F32 && t !== F64) || types.length > MAX_CELLS) {
    throw new StatusError(STATUS.invalid);
  }
  if (room >>> 0 < types.length) throw new StatusError(STATUS.bounds);
  memory.bytes(at, types.length * CELL);
}

/** Writes the results of a call. */
export function writeCells(memory: PluginMemory, at: number, types: readonly number[], result: unknown): void {
  const values = types.length === 1 ? [result] : types.length === 0 ? [] : result as unknown[];
  const bytes = memory.bytes(at, types.length * CELL);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  bytes.fill(0);
  types.forEach((type, i) => {
    if (type === I32) view.setInt32(i * CELL, values[i] as number, true);
    else if (type === I64) view.setBigInt64(i * CELL, values[i] as bigint, true);
    else if (type === F32) view.setFloat32(i * CELL, values[i] as number, true);
    else view.setFloat64(i * CELL, values[i] as number, true);
  });
}
