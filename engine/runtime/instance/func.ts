/**
 * Functions at the boundary: the JavaScript function that stands for a wasm function ("exported function" of the JavaScript
 * API), and what the runtime remembers of it.
 */
import type { FuncType } from "../../wasm/types.ts";

/** What stands behind an exported function. */
export interface FuncInfo {
  /** The Instance in whose VM context the function runs (instance.ts: instanceOf). */
  owner: object;
  /** Its index there. */
  funcIndex: number;
  /** Address of its function record. */
  record: number;
  /** Its type, closed. */
  type: FuncType;
  /** Canonical id of its type. */
  typeId: number;
}

const INFOS = new WeakMap<object, FuncInfo>();

/** What stands behind `value` when it is an exported function of ours. */
export function funcInfo(value: unknown): FuncInfo | undefined {
  return typeof value === "function" ? INFOS.get(value) : undefined;
}

/** Declares `fn` to be the exported function of `info`. */
export function registerFunc(fn: (...args: unknown[]) => unknown, info: FuncInfo): void {
  Object.defineProperty(fn, "name", { value: String(info.funcIndex), configurable: true });
  Object.defineProperty(fn, "length", { value: info.type.params.length, configurable: true });
  INFOS.set(fn, info);
}
