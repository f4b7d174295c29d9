/**
 * The segments of one instance: which are dropped, and the references of element segments, once evaluated. In: the
 * instance that owns them. Out: bytes and references of ranges, and copies of them to memories and tables; throws the
 * trap of a range that is out of bounds. Invariant: an expression of a segment is evaluated only once, because it may
 * create an object.
 */
import { IndexSet } from "../../base/index_set.ts";
import type { TrapError } from "../../base/errors.ts";
import { TRAP } from "../../base/traps.ts";
import { soleFunction } from "../../wasm/constant_reader.ts";
import type { ElementSegment } from "../../wasm/module.ts";
import type { CompiledModule } from "../code/compiled_module.ts";
import { type ConstEnv, evaluateConst, prepareConst } from "../code/const_expr.ts";
import type { Memory } from "../memory/memory.ts";
import type { Table } from "./table.ts";

/** The parts of an instance that its segments need. */
interface SegmentOwner extends ConstEnv {
  readonly module: CompiledModule;
  readonly memories: readonly Memory[];
  readonly tables: readonly Table[];
  /** The address of the record of function `index`. */
  recordAddress(index: number): number;
  /** The error of trap `code`, in code or during instantiation. */
  trap(code: number): TrapError;
}

/** A copy of the state of an instance's segments. */
export interface SegmentsState {
  readonly droppedElems: readonly number[];
  readonly droppedDatas: readonly number[];
  /** By index of an element segment: its references, if they had been evaluated. */
  readonly elemWords: ReadonlyMap<number, readonly number[]>;
}

const EMPTY = new Uint8Array(0);
const NO_WORDS: readonly number[] = [];

/** The segments of an instance. */
export class Segments {
  readonly droppedElems: IndexSet = new IndexSet();
  readonly droppedDatas: IndexSet = new IndexSet();
  /** By index of an element segment that is neither active nor dropped: its references, once evaluated. */
  readonly elemWords: Map<number, readonly number[]> = new Map();
  readonly #owner: SegmentOwner;

  constructor(owner: SegmentOwner) {
    this.#owner = owner;
  }

  /** No segment is dropped or evaluated any more. */
  reset(): void {
    this.elemWords.clear();
    this.droppedElems.clear();
    this.droppedDatas.clear();
  }

  /** A copy of the state. */
  capture(): SegmentsState {
    return {
      droppedElems: [...this.droppedElems],
      droppedDatas: [...this.droppedDatas],
      elemWords: new Map(this.elemWords),
    };
  }

  /** Makes a copy the state; without `elemWords`, no segment is evaluated. */
  restore({ droppedElems, droppedDatas, elemWords }: Omit<SegmentsState, "elemWords"> & Partial<SegmentsState>): void {
    this.droppedElems.clear();
    this.droppedDatas.clear();
    for (const segment of droppedElems) this.droppedElems.add(segment);
    for (const segment of droppedDatas) this.droppedDatas.add(segment);
    // The Map usually has the same entries, and one that is cleared keeps its former table alive (D144).
    for (const segment of this.elemWords.keys()) if (elemWords?.has(segment) !== true) this.elemWords.delete(segment);
    elemWords?.forEach((words, segment) => {
      if (this.elemWords.get(segment) !== words) this.elemWords.set(segment, words);
    });
  }

  /** A range of a data segment; traps if it is out of bounds. */
  dataBytes(segment: number, from: number, count: number): Uint8Array {
    const bytes = this.#bytesOf(segment);
    if (from + count > bytes.length) throw this.#owner.trap(TRAP.MEMORY_OUT_OF_BOUNDS);
    return bytes.subarray(from, from + count);
  }

  #bytesOf(segment: number): Uint8Array {
    return this.droppedDatas.has(segment) ? EMPTY : this.#owner.module.datas[segment].bytes;
  }

  /** A range of the references of an element segment; traps if it is out of bounds. */
  elemRange(segment: number, from: number, count: number): number[] {
    const words = this.#wordsOf(segment);
    if (from + count > words.length) throw this.#owner.trap(TRAP.TABLE_OUT_OF_BOUNDS);
    return words.slice(from, from + count);
  }

  #wordsOf(segment: number): readonly number[] {
    if (this.droppedElems.has(segment)) return NO_WORDS;
    let words = this.elemWords.get(segment);
    if (words === undefined) {
      words = this.evaluateElem(this.#owner.module.valid.elems.at(segment)!);
      this.elemWords.set(segment, words);
    }
    return words;
  }

  /** Evaluates the references of an element segment that is not dropped, before they are needed. */
  prepareElem(segment: number): void {
    this.#wordsOf(segment);
  }

  /** Evaluates the references of an element segment to words; expressions may create new objects. */
  evaluateElem({ init }: ElementSegment): number[] {
    const owner = this.#owner;
    const words: number[] = [];
    if (init.kind === "funcs") {
      for (let i = 0; i < init.indices.length; i++) words.push(owner.recordAddress(init.indices.at(i)!));
      return words;
    }
    for (let i = 0; i < init.exprs.length; i++) {
      const expr = init.exprs.at(i)!;
      const func = soleFunction(expr);
      words.push(func >= 0 ? owner.recordAddress(func) : Number(evaluateConst(prepareConst(expr), owner)));
    }
    return words;
  }

  /** memory.init: copies `count` bytes of data segment `segment`; traps if either range is out of bounds. */
  initMemory(memoryIndex: number, segment: number, to: number, from: number, count: number): void {
    const bytes = this.#bytesOf(segment);
    const memory = this.#owner.memories[memoryIndex];
    if (from + count > bytes.length || to + count > memory.byteLength) {
      throw this.#owner.trap(TRAP.MEMORY_OUT_OF_BOUNDS);
    }
    if (count > 0) memory.bytes.set(bytes.subarray(from, from + count), to);
  }

  /** table.init; traps if either range is out of bounds. */
  initTable(tableIndex: number, segment: number, to: number, from: number, count: number): void {
    const words = this.#wordsOf(segment);
    const table = this.#owner.tables[tableIndex];
    if (from + count > words.length || to + count > table.length) throw this.#owner.trap(TRAP.TABLE_OUT_OF_BOUNDS);
    for (let i = 0; i < count; i++) table.set(to + i, words[from + i]);
  }

  dropData(segment: number): void {
    this.droppedDatas.add(segment);
  }

  dropElem(segment: number): void {
    this.droppedElems.add(segment);
    this.elemWords.delete(segment);
  }
}
