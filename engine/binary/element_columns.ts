/**
 * The element segments of a decoded module, as columns. In: the parts of each segment, in the order of the section.
 * Out: a sequence of ElementSegments, each made when it is asked for. A module may have ten million segments, and fifty
 * million elements; a segment takes 29 bytes here and an element four, all outside of the JavaScript heap.
 *
 * Invariant: `source` holds the bytes of all expressions and does not change.
 */
import { doubled } from "../base/columns.ts";
import { BytesView, type ElementSegment, type Expr, type Sequence } from "../wasm/module.ts";

/** The kind of a segment, and of its elements. */
const PASSIVE = 0;
const DECLARATIVE = 1;
const ACTIVE = 2;
const KIND = 3;
const EXPRESSIONS = 4;

const PASSIVE_MODE: ElementSegment["mode"] = { kind: "passive" };
const DECLARATIVE_MODE: ElementSegment["mode"] = { kind: "declarative" };
const NO_FUNCS: ElementSegment["init"] = { kind: "funcs", indices: [] };
const NO_EXPRS: ElementSegment["init"] = { kind: "exprs", exprs: [] };

/** Consecutive expressions of `source`, by the index after each. */
class ExprColumn implements Sequence<Expr> {
  readonly #source: Uint8Array;
  readonly #base: number;
  readonly #start: number;
  readonly #ends: Uint32Array;

  constructor(source: Uint8Array, base: number, start: number, ends: Uint32Array) {
    this.#source = source;
    this.#base = base;
    this.#start = start;
    this.#ends = ends;
  }

  get length(): number {
    return this.#ends.length;
  }

  at(index: number): Expr | undefined {
    if (index < 0 || index >= this.#ends.length) return undefined;
    const start = index === 0 ? this.#start : this.#ends[index - 1];
    return new BytesView(this.#source, start, this.#ends[index], this.#base);
  }

  *[Symbol.iterator](): Iterator<Expr> {
    for (let i = 0; i < this.length; i++) yield this.at(i)!;
  }
}

export class ElementColumns implements Sequence<ElementSegment> {
  length = 0;
  readonly #source: Uint8Array;
  readonly #base: number;
  #kinds = new Uint8Array(4);
  #types = new Int32Array(4);
  #offsets = new Uint32Array(4);
  #tables = new Uint32Array(4);
  /** The extent of an active segment's offset expression. */
  #starts = new Uint32Array(4);
  #startEnds = new Uint32Array(4);
  /** Index of the first expression's first byte. */
  #exprStarts = new Uint32Array(4);
  /** The end of the segment's elements in `#elements`. */
  #ends = new Uint32Array(4);
  /** Function indices, or the index after each expression. */
  #elements = new Uint32Array(4);
  #count = 0;

  /** Offsets are indices of `source` plus `base`. */
  constructor(source: Uint8Array, base: number) {
    this.#source = source;
    this.#base = base;
  }

  /** The number of elements of all segments. */
  get elementCount(): number {
    return this.#count;
  }

  /** Adds a segment, to which `addElement` then adds elements. `offset` is absolute, `exprStart` an index. */
  begin(segment: Omit<ElementSegment, "init">, byExpressions: boolean, exprStart: number): void {
    const { mode, type, offset } = segment;
    const at = this.length++;
    if (at === this.#kinds.length) this.#grow(at + 1);
    this.#types[at] = type;
    this.#offsets[at] = offset;
    this.#exprStarts[at] = exprStart;
    this.#ends[at] = this.#count;
    let kind = mode.kind === "passive" ? PASSIVE : DECLARATIVE;
    if (mode.kind === "active") {
      kind = ACTIVE;
      this.#tables[at] = mode.table;
      this.#starts[at] = mode.start.offset - this.#base;
      this.#startEnds[at] = this.#starts[at] + mode.start.bytes.length;
    }
    this.#kinds[at] = kind | (byExpressions ? EXPRESSIONS : 0);
  }

  /** Makes room for `count` more elements. */
  reserve(count: number): void {
    const need = this.#count + count;
    if (need > this.#elements.length) this.#elements = doubled(this.#elements, need);
  }

  /** Adds an element to the last segment: a function index, or the index after its expression. */
  addElement(value: number): void {
    if (this.#count === this.#elements.length) this.#elements = doubled(this.#elements, this.#count + 1);
    this.#elements[this.#count++] = value;
    this.#ends[this.length - 1] = this.#count;
  }

  at(index: number): ElementSegment | undefined {
    if (index < 0 || index >= this.length) return undefined;
    return { type: this.#types[index], init: this.#init(index), mode: this.#mode(index), offset: this.#offsets[index] };
  }

  #mode(index: number): ElementSegment["mode"] {
    const kind = this.#kinds[index] & KIND;
    if (kind !== ACTIVE) return kind === PASSIVE ? PASSIVE_MODE : DECLARATIVE_MODE;
    const start = new BytesView(this.#source, this.#starts[index], this.#startEnds[index], this.#base);
    return { kind: "active", table: this.#tables[index], start };
  }

  #init(index: number): ElementSegment["init"] {
    const first = index === 0 ? 0 : this.#ends[index - 1];
    const end = this.#ends[index];
    const byExpressions = (this.#kinds[index] & EXPRESSIONS) !== 0;
    if (first === end) return byExpressions ? NO_EXPRS : NO_FUNCS;
    const elements = this.#elements.subarray(first, end);
    if (!byExpressions) return { kind: "funcs", indices: elements };
    return { kind: "exprs", exprs: new ExprColumn(this.#source, this.#base, this.#exprStarts[index], elements) };
  }

  *[Symbol.iterator](): Iterator<ElementSegment> {
    for (let i = 0; i < this.length; i++) yield this.at(i)!;
  }

  #grow(need: number): void {
    this.#kinds = doubled(this.#kinds, need);
    this.#types = doubled(this.#types, need);
    this.#offsets = doubled(this.#offsets, need);
    this.#tables = doubled(this.#tables, need);
    this.#starts = doubled(this.#starts, need);
    this.#startEnds = doubled(this.#startEnds, need);
    this.#exprStarts = doubled(this.#exprStarts, need);
    this.#ends = doubled(this.#ends, need);
  }
}
