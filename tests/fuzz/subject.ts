/**
 * The compared engines behind one interface. In: module bytes and imports. Out: live instances whose exports are used
 * the same way, and errors mapped to kinds of traps.
 *
 * V8's message for a failed float conversion does not distinguish the specification's two messages; {@linkcode sameEnd}
 * accounts for it.
 */
import {
  Engine,
  type EngineOptions,
  host,
  type Instance as WaftInstance,
  type Memory,
  type Tag,
  WasmException,
} from "../../engine/api/engine.ts";
import { ExhaustionError, LinkError, TrapError } from "../../engine/base/errors.ts";
import { heapOf, type TypeName } from "./value_types.ts";

export type WasmFunction = (...args: unknown[]) => unknown;
export interface LiveGlobal {
  value: unknown;
}
export interface LiveTable {
  readonly length: number;
  get(index: number): unknown;
  set(index: number, value: unknown): void;
}
export interface LiveMemory {
  readonly buffer: ArrayBuffer;
}
export type Exports = Readonly<Record<string, unknown>>;
export type ImportObject = Record<string, Record<string, unknown>>;

interface Frame {
  /** Offset in the module. */
  readonly offset: number;
  /** Function index, if the engine provides it. (V8 inside Deno does not: all are 0.) */
  readonly func?: number;
}

export interface Subject {
  readonly name: string;
  instantiate(bytes: Uint8Array<ArrayBuffer>, imports: ImportObject): Exports;
  memory(min: number, max: number | undefined): LiveMemory;
  /** The old size in pages, or −1. */
  growMemory(memory: LiveMemory, pages: number): number;
  table(type: TypeName, min: number, max: number | undefined): LiveTable;
  global(type: TypeName, mutable: boolean, value: unknown): LiveGlobal;
  tag(parameters: readonly TypeName[]): unknown;
  /** Creates an exception for a host function to throw. */
  exception(tag: unknown, payload: readonly unknown[]): unknown;
  /** The payload of an exception if it has `tag`, with "?" for values that JavaScript cannot represent. */
  payload(error: unknown, tag: unknown, params: readonly TypeName[]): unknown[] | undefined;
  /** The kind of trap of an error; undefined if the error is not a trap. */
  trapKind(error: unknown): string | undefined;
  /** The wasm frames of a trap, innermost first, up to the first other frame. */
  frames(error: unknown): Frame[];
}

const element = (type: TypeName) => type === "externref" ? "externref" : "anyfunc";

// Deno's type declarations lack initial elements and globals of reference types.
const NewTable = WebAssembly.Table as unknown as new (type: object, value: unknown) => LiveTable;
const NewGlobal = WebAssembly.Global as unknown as new (type: object, value: unknown) => LiveGlobal;

const NewTag = (WebAssembly as unknown as { Tag: new (type: object) => object }).Tag;
interface Thrown {
  is(tag: unknown): boolean;
  getArg(tag: unknown, index: number): unknown;
}
const V8Exception = (WebAssembly as unknown as { Exception: new (tag: unknown, payload: readonly unknown[]) => Thrown })
  .Exception;

/** Whether JavaScript can represent values of a type. */
function isVisible(type: TypeName): boolean {
  return type !== "v128" && heapOf(type) !== "exn";
}

const V8_TRAPS: readonly (readonly [RegExp, string])[] = [
  [/^unreachable/, "unreachable"],
  [/^(divide|remainder) by zero/, "integer divide by zero"],
  [/^divide result unrepresentable/, "integer overflow"],
  [/^float unrepresentable/, "float unrepresentable"],
  [/^memory access out of bounds/, "out of bounds memory access"],
  [/data segment \d+ is out of bounds/, "out of bounds memory access"],
  [/^(table index is|table access) out of bounds/, "out of bounds table access"],
  [/table initializer|element segment|table index/, "out of bounds table access"],
  [/^operation does not support unaligned accesses/, "unaligned atomic"],
  [/^array element access out of bounds/, "out of bounds array access"],
  [/^illegal cast/, "cast failure"],
  [/^data segment out of bounds/, "out of bounds memory access"],
  [/^(WebAssembly\.Instance\(\): )?requested new array is too large/, "allocation size too large"],
  [/^null function$/, "uninitialized element"],
  [/^dereferencing a null pointer/, "null reference"],
  [/^rethrowing null value/, "null exception reference"],
  [/^function signature mismatch/, "indirect call type mismatch"],
];

export const V8: Subject = {
  name: "V8",
  instantiate: (bytes, imports) =>
    new WebAssembly.Instance(new WebAssembly.Module(bytes), imports as WebAssembly.Imports).exports,
  memory: (initial, maximum) =>
    new WebAssembly.Memory(maximum === undefined ? { initial } : { initial, maximum }) as LiveMemory,
  growMemory(memory, pages) {
    try {
      return (memory as WebAssembly.Memory).grow(pages);
    } catch (error) {
      if (error instanceof RangeError) return -1;
      if (!(error instanceof TypeError)) throw error;
    }
    try { // a 64-bit memory takes a bigint
      return Number((memory as WebAssembly.Memory).grow(BigInt(pages) as unknown as number));
    } catch (error) {
      if (error instanceof RangeError) return -1;
      throw error;
    }
  },
  table: (type, initial, maximum) =>
    new NewTable({ element: element(type), ...(maximum === undefined ? { initial } : { initial, maximum }) }, null),
  global: (type, mutable, value) => new NewGlobal({ value: type === "funcref" ? "anyfunc" : type, mutable }, value),
  tag: (parameters) => new NewTag({ parameters: parameters.map((p) => p === "funcref" ? "anyfunc" : p) }),
  exception: (tag, payload) => new V8Exception(tag, payload),
  payload(error, tag, params) {
    const thrown = error as Thrown;
    if (!thrown.is(tag)) return undefined;
    return params.map((type, i) => isVisible(type) ? thrown.getArg(tag, i) : "?");
  },
  trapKind(error) {
    if (error instanceof V8Exception) return "uncaught exception";
    if (error instanceof WebAssembly.RuntimeError) {
      return V8_TRAPS.find(([pattern]) => pattern.test(error.message))?.[1] ?? error.message;
    }
    if (error instanceof RangeError && /call stack/.test(error.message)) return "call stack exhausted";
    if (error instanceof WebAssembly.LinkError) return "link error";
    return error instanceof TypeError ? "TypeError" : undefined;
  },
  frames(error) {
    const frames: Frame[] = [];
    if (!(error instanceof WebAssembly.RuntimeError)) return frames;
    for (const line of String((error as Error).stack).split("\n").slice(1)) {
      const match = /wasm-function\[\d+\]:0x([0-9a-f]+)/.exec(line);
      if (match === null || frames.length === MAX_FRAMES) break;
      frames.push({ offset: parseInt(match[1], 16) });
    }
    return frames;
  },
};

/** Number of compared frames; V8 keeps ten. */
const MAX_FRAMES = 8;

const WAFT_KINDS: Readonly<Record<string, string>> = {
  "undefined element": "out of bounds table access",
  "null function reference": "null reference",
  "null structure reference": "null reference",
  "null array reference": "null reference",
  "null i31 reference": "null reference",
};

/** waft with the given options. */
export function waft(name: string, options: EngineOptions): Subject {
  const engine = new Engine(options);
  return {
    name,
    instantiate: (bytes, imports) => (engine.compile(bytes).instantiate({}, imports) satisfies WaftInstance).exports,
    memory: (min, max) => host.memory(min, max, options.bounds),
    growMemory: (memory, pages) => growBy64K(memory as Memory, pages),
    table: (type, min, max) => host.table(type === "externref" ? "externref" : "funcref", min, max),
    global: (type, mutable, value) => host.global(type, mutable, value),
    tag: (parameters) => host.tag(...parameters),
    exception: (tag, payload) => new WasmException(tag as Tag, payload),
    payload(error, tag, params) {
      const thrown = error as WasmException;
      if (thrown.tag !== tag) return undefined;
      const { payload } = thrown;
      return params.map((type, i) => isVisible(type) ? payload[i] : "?");
    },
    trapKind(error) {
      if (error instanceof WasmException) return "uncaught exception";
      if (error instanceof ExhaustionError) return "call stack exhausted";
      if (error instanceof TrapError) return WAFT_KINDS[error.message] ?? error.message;
      if (error instanceof LinkError) return "link error";
      return error instanceof TypeError ? "TypeError" : undefined;
    },
    frames: (error) =>
      error instanceof TrapError
        ? error.frames.slice(0, MAX_FRAMES).map(({ offset, funcIndex }) => ({ offset, func: funcIndex }))
        : [],
  };
}

/** Grows a memory by units of 64 KiB, whatever its pages are; returns the old size in these units, or −1. */
function growBy64K(memory: Memory, units: number): number {
  const pages = 65536 / (memory.type.pageSize ?? 65536);
  const old = memory.grow(units * pages);
  return old < 0 ? old : old / pages;
}

/** Whether two trace entries are equivalent, V8's first. */
export function sameEnd(v8: string, other: string): boolean {
  if (v8 === other) return true;
  if (/^global .* (=|was) refused$/.test(v8)) return true; // of a type without JavaScript values
  // array.copy from null to an array that is too short: the specification checks both references before lengths, V8
  // does not.
  const arrays = "trap out of bounds array access";
  if (v8.includes(arrays) && v8.replace(arrays, "trap null reference") === other) return true;
  // array.init_elem with both too short: the specification checks the array first, V8 the segment.
  const segments = "trap out of bounds table access";
  if (v8.includes(segments) && v8.replace(segments, arrays) === other) return true;
  // An atomic access with a constant offset beyond any memory, unaligned as well: V8 checks the offset first.
  const memory = "trap out of bounds memory access";
  if (v8.includes(memory) && v8.replace(memory, "trap unaligned atomic") === other) return true;
  if (!v8.includes("trap float unrepresentable")) return false;
  return v8 === other.replace(/trap (integer overflow|invalid conversion to integer)/, "trap float unrepresentable");
}
