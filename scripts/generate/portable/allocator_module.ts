/**
 * The register allocator as WebAssembly, from the host. In: an instance of the module (allocator_entry.ts), the
 * registers of a target, and VCode. Out: its allocation, compared with one that the host made.
 */
import type { Allocation } from "../../../engine/codegen/allocation.ts";
import type { RegisterFile } from "../../../engine/codegen/target.ts";
import type { VCode } from "../../../engine/codegen/vcode.ts";
import type { OptimizationSet } from "../../../engine/settings/optimizations.ts";
import {
  type CompilerExports,
  COUNTS,
  FIRST_DENIAL,
  MAX_DENIALS,
} from "../../../engine/portable/compiler_interface.ts";
import { writeRegisters } from "../../../engine/portable/module_writer.ts";
import { allocatorOptions, countApplications } from "../../../engine/regalloc/allocator_options.ts";
import type { Statistics } from "../../../engine/base/statistics.ts";
import { type Column, columnAt, firstDifference } from "./memory_columns.ts";

/** The exports of the module. */
export interface AllocatorExports extends CompilerExports {
  /** Makes room for a function; returns the address of its record. */
  reserveVCode(...counts: number[]): number;
  /** Allocates with the freedoms that `bits` gives. */
  allocate(bits: number): void;
}

/** The columns of VCode that the allocator reads, in the order of the record. */
function inputColumns(v: VCode): [Column, number][] {
  return [
    [v.clobbers, v.count],
    [v.firstOperand, v.count + 1],
    [v.operands, v.operandCount],
    [v.vregTy, v.vregCount],
    [v.vregRemat, v.vregCount],
    [v.vregHint, v.vregCount],
    [v.blockFirst, v.blockCount + 1],
    [v.blockDepth, v.blockCount],
    [v.blockFlags, v.blockCount],
    [v.paramStart, v.blockCount],
    [v.paramCount, v.blockCount],
    [v.succStart, v.blockCount],
    [v.succCount, v.blockCount],
    [v.succ, v.succTotal],
    [v.edgeFrom, v.edgeCount],
    [v.edgeTo, v.edgeCount],
    [v.argStart, v.edgeCount],
    [v.pool, v.poolCount],
    [v.clobberGeneral, v.clobberCount],
    [v.clobberVector, v.clobberCount],
  ];
}
/** Words of the record: its columns of VCode, the counts of the allocation, its columns; all of them. */
const INPUTS = 9, RESULTS = 29, OUTPUTS = 36, WORDS = 45;
const COUNT_NAMES = [
  ...["slotCount", "halfFirst", "halfCount", "refSlotCount", "writtenGeneral", "writtenVector", "editCount"] as const,
];
/** Word of the counts at which those of the allocation begin. */
const FIRST_COUNT = COUNTS.translation.length + COUNTS.passes.length;

/** The allocator in an instance's memory. */
export class AllocatorModule {
  readonly #exports: AllocatorExports;
  #registers: RegisterFile | undefined;
  #optimizations: OptimizationSet | undefined;
  #record = 0;
  #bits = 0;

  constructor(exports: AllocatorExports) {
    this.#exports = exports;
  }

  /** Sets the registers of a target and the optimizations of a compilation. */
  begin(registers: RegisterFile, optimizations: OptimizationSet): void {
    this.#registers = registers;
    this.#optimizations = optimizations;
    this.#bits = writeRegisters(this.#exports, registers, optimizations);
  }

  /** Adds the counts of the last allocation to `statistics`. */
  report(statistics: Statistics): void {
    const options = allocatorOptions(this.#optimizations!, this.#registers!.denied);
    const length = COUNTS.allocation.length;
    const at = this.#exports.counts() + FIRST_COUNT * 4;
    const words = new Int32Array(this.#exports.memory.buffer, at, length);
    for (const [n, name] of COUNTS.allocation.entries()) options.counts[name] = words[n];
    const denied = new Int32Array(this.#exports.memory.buffer, this.#exports.counts() + FIRST_DENIAL * 4, MAX_DENIALS);
    for (const [n, row] of options.denied.entries()) row.applied = denied[n];
    countApplications(options, this.#registers!.denied, statistics);
  }

  /** Writes `v`. */
  load(v: VCode): void {
    const { count, operandCount, vregCount, blockCount, edgeCount, succTotal, poolCount, clobberCount } = v;
    const counts = [count, operandCount, vregCount, blockCount, edgeCount, succTotal, poolCount, clobberCount];
    this.#record = this.#exports.reserveVCode(...counts);
    const head = this.#head();
    head.set(counts);
    head[counts.length] = Number(v.hasCalls);
    for (const [n, [column, length]] of inputColumns(v).entries()) {
      this.#column(INPUTS + n, column, length).set(column.subarray(0, length));
    }
  }

  /** The freedoms of the compilation, as the entry reads them. */
  get bits(): number {
    return this.#bits;
  }

  /** Allocates the function that was loaded. */
  run(): void {
    this.#exports.allocate(this.#bits);
  }

  /** The first difference between the allocation in memory and `expected`, of `v`; undefined if they are equal. */
  difference(v: VCode, expected: Allocation): string | undefined {
    const head = this.#head();
    for (const [n, name] of COUNT_NAMES.entries()) {
      if (head[RESULTS + n] !== expected[name]) return `${name}: ${head[RESULTS + n]} for ${expected[name]}`;
    }
    const edits = expected.editCount;
    const columns: [string, Column, number][] = [
      ["location", expected.location, v.operandCount],
      ["skip", expected.skip, v.count],
      ["editAt", expected.editAt, edits],
      ["editFrom", expected.editFrom, edits],
      ["editRemat", expected.editRemat, edits],
      ["editTo", expected.editTo, edits],
      ["editTy", expected.editTy, edits],
      ["edgeFirst", expected.edgeFirst, v.edgeCount + 1],
    ];
    for (const [n, [name, column, length]] of columns.entries()) {
      const found = this.#column(OUTPUTS + n, column, length);
      const difference = firstDifference(name, found, column.subarray(0, length));
      if (difference !== undefined) return difference;
    }
    return undefined;
  }

  #head(): Int32Array {
    return new Int32Array(this.#exports.memory.buffer, this.#record, WORDS);
  }

  #column(word: number, like: Column, length: number): Column {
    return columnAt(this.#exports.memory.buffer, this.#head()[word], like, length);
  }
}
