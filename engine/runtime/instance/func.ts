/**
 * Exported functions: the JavaScript functions that represent wasm functions ("exported function" of the JavaScript
 * API), and the runtime's record of each.
 */
import type { FuncType } from "../../wasm/types.ts";

/** The wasm function of an exported function. */
export interface FuncInfo {
  /** The Instance whose VM context the function uses (instance.ts: instanceOf). */
  owner: object;
  /** The function index in that instance. */
  funcIndex: number;
  /** The address of the function record. */
  record: number;
  /** The function type, closed. */
  type: FuncType;
  /** The canonical id of the type. */
  typeId: number;
}

const INFOS = new WeakMap<object, FuncInfo>();

/** The types of host functions that can be imported with one type only. */
const HOST_TYPES = new WeakMap<object, FuncType>();

/** Lets only imports of `type` be linked with a host function; others have any type. */
export function declareHostType(fn: object, type: FuncType): void {
  HOST_TYPES.set(fn, type);
}

/** The type of a host function that has one. */
export function hostTypeOf(fn: object): FuncType | undefined {
  return HOST_TYPES.get(fn);
}

/** The wasm function that `value` represents; undefined if `value` is not an exported function. */
export function funcInfo(value: unknown): FuncInfo | undefined {
  return typeof value === "function" ? INFOS.get(value) : undefined;
}

/** The prototype of exported functions, unless it is Function.prototype. */
let prototype: object | undefined;

/** Sets the prototype of the exported functions that are made from now on. */
export function givePrototype(given: object): void {
  prototype = given;
}

/** Registers `fn` as the exported function of `info`. */
export function registerFunc(fn: (...args: unknown[]) => unknown, info: FuncInfo): void {
  Object.defineProperty(fn, "name", { value: String(info.funcIndex), configurable: true });
  Object.defineProperty(fn, "length", { value: info.type.params.length, configurable: true });
  if (prototype !== undefined) Object.setPrototypeOf(fn, prototype);
  INFOS.set(fn, info);
}
