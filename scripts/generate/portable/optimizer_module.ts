/**
 * The optimizer as WebAssembly, from the host. In: an instance of the module (optimizer_entry.ts) and functions as
 * columns. Out: the same functions after the passes, read from the instance's memory.
 */
import type { IrFunction } from "../../../engine/ir/function.ts";
import type { CompilerExports } from "../../../engine/portable/compiler_interface.ts";
import { type Column, columnAt, firstDifference } from "./memory_columns.ts";

/** The exports of the module. */
export interface OptimizerExports extends CompilerExports {
  /** Whether the import `env.afterPass` is called after each pass, with the address of its name. */
  observe(on: number): void;
  /** Makes room for a function; returns the address of its record. */
  reserve(count: number, sched: number, blocks: number, edges: number, pool: number, vectors: number): number;
  /** Runs the passes that `bits` enable over the function. */
  run(bits: number): void;
  /** `evaluate` of ir/eval.ts, and the halves of its result. */
  fold(
    ...operands: [op: number, ty: number, from: number, aLo: number, aHi: number, bLo: number, bHi: number, imm: number]
  ): number;
  foldedLow(): number;
  foldedHigh(): number;
}

/** The columns of a function, in the order of the record, and the count that is the length of each. */
const COLUMNS = [
  ["op", "count"],
  ["ty", "count"],
  ["a", "count"],
  ["b", "count"],
  ["c", "count"],
  ["imm", "count"],
  ["pos", "count"],
  ["site", "count"],
  ["sched", "schedCount"],
  ["blockStart", "blockCount"],
  ["blockEnd", "blockCount"],
  ["blockParams", "blockCount"],
  ["blockFlags", "blockCount"],
  ["blockDepth", "blockCount"],
  ["layout", "blockCount"],
  ["edgeFrom", "edgeCount"],
  ["edgeTo", "edgeCount"],
  ["edgeArgs", "edgeCount"],
  ["pool", "poolCount"],
] as const;
const COUNTS = ["count", "schedCount", "blockCount", "edgeCount", "poolCount", "vectorCount"] as const;
const FLAGS = ["charged", "canonicalizes", "keepsNans", "treatedAsCalling"] as const;
/** Word of the record with the flags, and the first with an address of a column. */
const FLAGS_WORD = COUNTS.length, FIRST_COLUMN = FLAGS_WORD + 1;
const VECTOR_BYTES = 16;

/** A function's counts and columns at one point. */
export type Snapshot = ReadonlyMap<string, number | Column>;

/** The columns of `f` as they are now. */
export function snapshotOf(f: IrFunction): Snapshot {
  const found = new Map<string, number | Column>();
  for (const name of COUNTS) found.set(name, f[name]);
  for (const name of FLAGS) found.set(name, Number(f[name]));
  for (const [name, length] of COLUMNS) found.set(name, f[name].slice(0, f[length]));
  found.set("vectors", f.vectors.slice(0, f.vectorCount * VECTOR_BYTES));
  return found;
}

/** A function in an instance's memory. */
export class OptimizerModule {
  readonly #exports: OptimizerExports;
  #record = 0;

  constructor(exports: OptimizerExports) {
    this.#exports = exports;
  }

  /** Whether `env.afterPass` is called. */
  observe(on: boolean): void {
    this.#exports.observe(Number(on));
  }

  /** Drops the workspace. */
  reset(): void {
    this.#exports.reset();
  }

  /** Writes `f`. */
  load(f: IrFunction): void {
    this.#record = this.#exports.reserve(
      f.count,
      f.schedCount,
      f.blockCount,
      f.edgeCount,
      f.poolCount,
      f.vectorCount,
    );
    const head = this.#head();
    for (const [n, name] of COUNTS.entries()) head[n] = f[name];
    head[FLAGS_WORD] = FLAGS.reduce((bits, name, n) => f[name] ? bits | (1 << n) : bits, 0);
    for (const [n, [name, length]] of COLUMNS.entries()) {
      this.#column(n, f[name], f[length]).set(f[name].subarray(0, f[length]));
    }
    const bytes = f.vectorCount * VECTOR_BYTES;
    this.#column(COLUMNS.length, f.vectors, bytes).set(f.vectors.subarray(0, bytes));
  }

  /** Takes the function that the instance has translated, with the record at address `record`. */
  adopt(record: number): void {
    this.#record = record;
  }

  /** Runs the passes; see {@linkcode passBits}. */
  run(bits: number): void {
    this.#exports.run(bits);
  }

  /** The first difference between the function in memory and `expected`; undefined if they are equal. */
  difference(expected: Snapshot): string | undefined {
    const head = this.#head();
    for (const [n, name] of COUNTS.entries()) {
      if (head[n] !== expected.get(name)) return `${name}: ${head[n]} for ${expected.get(name)}`;
    }
    for (const [n, name] of FLAGS.entries()) {
      if (((head[FLAGS_WORD] >> n) & 1) !== expected.get(name)) return name;
    }
    for (const [n, name] of [...COLUMNS.map(([name]) => name), "vectors"].entries()) {
      const column = expected.get(name) as Column;
      const difference = firstDifference(name, this.#column(n, column, column.length), column);
      if (difference !== undefined) return difference;
    }
    return undefined;
  }

  /** The text at `address`, as the import `env.afterPass` gets it. */
  textAt(address: number): string {
    const { buffer } = this.#exports.memory;
    const bytes = new Int32Array(buffer, address - 4, 1)[0];
    return String.fromCharCode(...new Uint16Array(buffer, address, bytes >> 1));
  }

  #head(): Int32Array {
    return new Int32Array(this.#exports.memory.buffer, this.#record, FIRST_COLUMN + COLUMNS.length + 1);
  }

  /** Column `n` in memory, of the type of `like`. */
  #column(n: number, like: Column, length: number): Column {
    return columnAt(this.#exports.memory.buffer, this.#head()[FIRST_COLUMN + n], like, length);
  }
}
