/**
 * Tags and exceptions (specification, 4.2.11 and 4.2.13) as JavaScript objects. A tag's identity is a number that compiled code compares;
 * an exception keeps its payload as bits, so that every value survives, and references as JavaScript values, so that they live.
 *
 * What JavaScript throws through compiled code becomes an exception whose tag is no module's (FOREIGN): only catch_all
 * sees it, and who throws it on throws the original.
 */
import { THREAD } from "../context_layout.ts";
import {
  F32,
  F64,
  type FuncType,
  HEAP,
  heapOf,
  I32,
  I64,
  isRef,
  V128,
  type ValType,
  valTypeName,
} from "../wasm/types.ts";
import type { HandleTable } from "./handles.ts";
import type { NativeRegion } from "./native_region.ts";
import { type ReferenceBorder, referenceMismatch } from "./values.ts";

/** What exceptions need of the store. */
export interface ExceptionBorder extends ReferenceBorder {
  readonly thread: { readonly handles: HandleTable; readonly exceptions: HandleTable; readonly state: NativeRegion };
}

let nextTag = 1;

/** A tag: what tells exceptions of one kind from others, and the types of their payload. */
export class Tag {
  /** Its type, closed (wasm/subtype.ts), and the canonical id of that; −1 for the tag of foreign exceptions. */
  readonly type: FuncType;
  readonly typeId: number;
  /** What compiled code compares. */
  readonly identity: number = nextTag++;
  readonly border: ExceptionBorder | undefined;
  readonly hasReferences: boolean;

  constructor(type: FuncType, typeId: number, border: ExceptionBorder | undefined) {
    this.type = type;
    this.hasReferences = type.params.some(isRef);
    this.typeId = typeId;
    this.border = border;
  }

  /** Types of the payload in the text format's words. */
  get parameters(): string[] {
    return this.type.params.map(valTypeName);
  }
}

/** u32 words per value of a payload. */
const WORDS = 4;
const OVERFLOW = THREAD.OVERFLOW;
const BITS = new DataView(new ArrayBuffer(8));
const NO_REFERENCES: readonly unknown[] = [];
const NO_CELLS: readonly number[] = [];

/**
 * An exception inside: an object as light as it can be, since most are caught by compiled code. What JavaScript sees of it, an Error,
 * is made when one gets there.
 */
export class Exception {
  readonly tag: Tag;
  /** Four words per value; those of references are not used. */
  readonly cells: readonly number[];
  /** By number of the value: references, as JavaScript values. */
  readonly references: readonly unknown[];
  /** What JavaScript threw, or sees. */
  #outside: unknown;

  constructor(tag: Tag, cells: readonly number[], references: readonly unknown[], outside?: unknown) {
    this.tag = tag;
    this.cells = cells;
    this.references = references;
    this.#outside = outside;
  }

  /** Of what JavaScript threw. */
  static of(thrown: unknown): Exception {
    if (thrown instanceof WasmException) return thrown[INSIDE];
    return new Exception(FOREIGN, NO_CELLS, NO_REFERENCES, thrown);
  }

  /** The exception of `tag` whose payload compiled code has left in the overflow buffer. */
  static thrown(tag: Tag, border: ExceptionBorder): Exception {
    const { params } = tag.type;
    const { state, exceptions } = border.thread;
    const { u32 } = state;
    // An array of numbers: a typed array costs a microsecond to make.
    const cells: number[] = [];
    for (let n = 0; n < params.length * WORDS; n++) cells.push(u32[(OVERFLOW >> 2) + n]!);
    if (!tag.hasReferences) return new Exception(tag, cells, NO_REFERENCES);
    const references = params.map((type, k) => {
      if (!isRef(type)) return undefined;
      const word = state.word(OVERFLOW + k * 16);
      return isException(type) ? exceptions.valueOf(word) : border.fromWord(word, type);
    });
    return new Exception(tag, cells, references);
  }

  /** What JavaScript gets to see when nobody has caught it. */
  get outgoing(): unknown {
    if (this.tag === FOREIGN) return this.#outside;
    return this.#outside ??= new WasmException(this);
  }

  /** Leaves tag and payload where a landing reads them. */
  deliver(border: ExceptionBorder): void {
    const { state, exceptions } = border.thread;
    const { identity, hasReferences, type: { params } } = this.tag;
    state.setWord(THREAD.CAUGHT_TAG, identity);
    const { u32 } = state;
    for (let n = 0; n < this.cells.length; n++) u32[(OVERFLOW >> 2) + n] = this.cells[n]!;
    if (!hasReferences) return;
    for (let k = 0; k < params.length; k++) {
      const type = params[k]!;
      if (!isRef(type)) continue;
      const value = this.references[k];
      const word = value === null ? 0 : isException(type) ? exceptions.handleOf(value) : border.toWord(value, type);
      state.setWord(OVERFLOW + k * 16, word);
    }
  }
}

/** The tag of what JavaScript throws. */
const FOREIGN = new Tag({ params: [], results: [] } as unknown as FuncType, -1, undefined);

/** Key of the exception that a WasmException shows. */
export const INSIDE: unique symbol = Symbol("waft.inside");

/** An exception that WebAssembly code threw and nobody in it caught, or one for it to catch. */
export class WasmException extends Error {
  override name = "WasmException";
  readonly [INSIDE]: Exception;

  /** An exception of `tag` with the given values, which are converted as arguments are. Throws TypeError when they do not fit. */
  constructor(tag: Tag, payload: Iterable<unknown>);
  /** Shows an exception of compiled code. */
  constructor(inside: Exception);
  constructor(of: Tag | Exception, payload: Iterable<unknown> = []) {
    super("wasm exception");
    if (of instanceof Exception) {
      this[INSIDE] = of;
      return;
    }
    const { params } = of.type;
    const values = Array.from(payload);
    if (values.length !== params.length) {
      throw new TypeError(`The tag has ${params.length} parameters, not ${values.length}`);
    }
    const cells = new Array<number>(params.length * WORDS).fill(0);
    const references = params.map((type, k) => writeCell(cells, k * WORDS, type, values[k], of.border));
    this[INSIDE] = new Exception(of, cells, references, this);
  }

  get tag(): Tag {
    return this[INSIDE].tag;
  }

  /** The values: numbers, bigints, references; a v128 as its 16 bytes, an exnref as a WasmException. */
  get payload(): unknown[] {
    const { tag, references, cells } = this[INSIDE];
    return tag.type.params.map((type, k) => {
      const value = references[k];
      if (!isRef(type)) return readCell(cells, k * WORDS, type);
      return value instanceof Exception ? value.outgoing : value;
    });
  }
}

/** Is `type` exnref or one below it? */
export function isException(type: ValType): boolean {
  if (!isRef(type)) return false;
  const heap = heapOf(type);
  return heap === HEAP.exn || heap === HEAP.noexn;
}

/** Writes a number to a cell; returns the value to keep when it is a reference. */
function writeCell(
  cells: number[],
  at: number,
  type: ValType,
  value: unknown,
  border: ExceptionBorder | undefined,
): unknown {
  switch (type) {
    case I32:
      cells[at] = (value as number) >>> 0;
      return undefined;
    case I64:
      BITS.setBigInt64(0, BigInt.asIntN(64, value as bigint), true);
      break;
    case F32:
      BITS.setFloat32(0, +(value as number), true);
      cells[at] = BITS.getUint32(0, true);
      return undefined;
    case F64:
      BITS.setFloat64(0, +(value as number), true);
      break;
    case V128:
      throw new TypeError("A v128 cannot be converted from a JavaScript value");
    default: {
      if (!isException(type)) border!.toWord(value, type);
      else if (value instanceof WasmException) return value[INSIDE];
      else if (value !== null) throw referenceMismatch(value, type);
      return value;
    }
  }
  cells[at] = BITS.getUint32(0, true);
  cells[at + 1] = BITS.getUint32(4, true);
  return undefined;
}

function readCell(cells: readonly number[], at: number, type: ValType): unknown {
  BITS.setUint32(0, cells[at]!, true);
  BITS.setUint32(4, cells[at + 1]!, true);
  if (type === I32) return BITS.getInt32(0, true);
  if (type === I64) return BITS.getBigInt64(0, true);
  if (type === F32) return BITS.getFloat32(0, true);
  if (type === F64) return BITS.getFloat64(0, true);
  return new Uint8Array(Uint32Array.from(cells.slice(at, at + WORDS)).buffer);
}
