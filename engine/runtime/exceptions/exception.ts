/**
 * Tags and exceptions (specification, 4.2.11 and 4.2.13) as JavaScript objects. A tag's identity is a number that compiled code compares;
 * an exception keeps its payload as bits, references included: what refers to it, in compiled code or as the WasmException that shows
 * it to JavaScript, keeps alive what those refer to (visitReferences). So an exception that only compiled code refers to is garbage
 * as soon as those references are, cycles included.
 *
 * What JavaScript throws through compiled code becomes an exception with a tag of its own (JS_TAG): only catch_all and modules that
 * import that tag see it, and who throws it on throws the original.
 */
import { EXCEPTION_RECORD, TAG_BITS, THREAD } from "../../abi/context_layout.ts";
import {
  EXTERNREF,
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
} from "../../wasm/types.ts";
import { canonicalFuncTypeId } from "../../wasm/subtype.ts";
import type { Sharer } from "../../gc/references.ts";
import type { HandleTable } from "../boundary/handles.ts";
import type { NativeRegion } from "../memory/native_region.ts";
import { type ReferenceBorder, referenceMismatch } from "../boundary/values.ts";

/** What exceptions need of the store. */
export interface ExceptionBorder extends ReferenceBorder {
  readonly thread: { readonly handles: HandleTable; readonly exceptions: HandleTable; readonly state: NativeRegion };
  /** The exception of an exnref, undefined for null. */
  exceptionOf(word: number): Exception | undefined;
  /** Exceptions of compiled code that JavaScript sees: their references are roots. */
  readonly shownExceptions: Set<Exception>;
}

let nextTag = 1;

/** A tag: what tells exceptions of one kind from others, and the types of their payload. */
export class Tag {
  /**
   * Its type, closed (wasm/subtype.ts).
   *
   * @internal
   */
  readonly type: FuncType;
  /**
   * The canonical id of its type; −1 for the tag of foreign exceptions.
   *
   * @internal
   */
  readonly typeId: number;
  /**
   * What compiled code compares, with TAG_BITS.
   *
   * @internal
   */
  readonly identity: number;
  /** @internal */
  readonly boundary: ExceptionBorder | undefined;
  /** @internal */
  readonly hasReferences: boolean;

  /**
   * Tags are made by modules, and by `host.tag`.
   *
   * @internal
   */
  constructor(type: FuncType, typeId: number, boundary: ExceptionBorder | undefined) {
    this.type = type;
    this.hasReferences = boundary !== undefined && type.params.some(isRef);
    this.typeId = typeId;
    this.boundary = boundary;
    const recorded = !type.params.some(isRef) && type.params.length <= EXCEPTION_RECORD.VALUES;
    const bits = boundary === undefined ? 0 : recorded ? TAG_BITS.NATIVE | TAG_BITS.RECORDED : TAG_BITS.NATIVE;
    this.identity = nextTag++ * (1 << TAG_BITS.SHIFT) + bits;
    if (bits === 0) return;
    TAGS.set(this.identity, new WeakRef(this));
    GONE_TAGS.register(this, this.identity);
  }

  /**
   * The tag with an identity. When it is gone, nobody can compare with it, and any other will do.
   *
   * @internal
   */
  static of(identity: number): Tag {
    return TAGS.get(identity)?.deref() ?? FORGOTTEN_TAG;
  }

  /**
   * Keeps `other` alive: it can get at references that others throw with this tag.
   *
   * @internal
   */
  keepAlive(other: Sharer): void {
    this.#kept.add(other);
  }
  readonly #kept: Set<Sharer> = new Set();

  /** Types of the payload in the text format's words. */
  get parameters(): string[] {
    return this.type.params.map(valTypeName);
  }
}

const TAGS = new Map<number, WeakRef<Tag>>();
const GONE_TAGS = new FinalizationRegistry<number>((identity) => TAGS.delete(identity));

/** u32 words per value of a payload. */
const WORDS = 4;
const OVERFLOW = THREAD.OVERFLOW;
const BITS = new DataView(new ArrayBuffer(8));

/**
 * An exception inside: an object as light as it can be, since most are caught by compiled code. What JavaScript sees of it, an Error,
 * is made when one gets there.
 */
export class Exception {
  tag: Tag;
  /** Four words per value; references are good while something refers to the exception, or it is shown. */
  cells: number[];
  /** What JavaScript threw, or made to throw. */
  #outside: unknown;
  /** What JavaScript sees of an exception of compiled code. */
  #shown: WeakRef<WasmException> | undefined;

  constructor(tag: Tag, cells: number[], outside?: unknown) {
    this.tag = tag;
    this.cells = cells;
    this.#outside = outside;
  }

  /** Of what JavaScript threw. */
  static of(thrown: unknown): Exception {
    if (!isWasmException(thrown)) return new Exception(JS_TAG, [], thrown);
    const inside = thrown[INSIDE];
    inside.#outside = thrown; // whoever threw it may have given it properties
    return inside;
  }

  /** The exception of `tag` whose payload compiled code has left in the overflow buffer. */
  static thrown(tag: Tag, boundary: ExceptionBorder): Exception {
    const { params } = tag.type;
    const { u32 } = boundary.thread.state;
    if (tag === JS_TAG) {
      return new Exception(JS_TAG, [], boundary.fromWord(boundary.thread.state.word(OVERFLOW), EXTERNREF));
    }
    // An array of numbers: a typed array costs a microsecond to make.
    const cells: number[] = [];
    for (let n = 0; n < params.length * WORDS; n++) cells.push(u32[(OVERFLOW >> 2) + n]!);
    return new Exception(tag, cells);
  }

  /** One whose tag and payload machine code will note in a record, if it ever uses it. */
  static pending(): Exception {
    return new Exception(FORGOTTEN_TAG, []);
  }

  /** Takes over what the record at `offset` of `region` says. */
  fill({ u32 }: NativeRegion, offset: number): void {
    const tag = (offset + EXCEPTION_RECORD.TAG) >> 2;
    this.tag = Tag.of(u32[tag]! + u32[tag + 1]! * 0x1_0000_0000);
    const first = (offset + EXCEPTION_RECORD.PAYLOAD) >> 2;
    this.cells = Array.from(u32.subarray(first, first + this.tag.type.params.length * WORDS));
  }

  /** What JavaScript gets to see when nobody has caught it. */
  get outgoing(): unknown {
    if (this.tag === JS_TAG) return this.#outside;
    let shown = this.#outside ?? this.#shown?.deref();
    if (shown === undefined) {
      shown = new WasmException(this);
      this.#shown = new WeakRef(shown as WasmException);
      if (this.tag.hasReferences) this.tag.boundary!.shownExceptions.add(this);
      if (this.tag.hasReferences) SHOWN.register(shown as WasmException, this);
    }
    return shown;
  }

  /** The WasmException that showed it is gone. */
  forget(): void {
    if (this.#shown?.deref() === undefined) this.tag.boundary!.shownExceptions.delete(this); // else there is another by now
  }

  /** Visits the references in the payload. */
  visitReferences(visit: (word: number) => void): void {
    if (!this.tag.hasReferences) return;
    const { cells, tag: { type: { params } } } = this;
    for (let k = 0; k < params.length; k++) {
      if (isRef(params[k]!)) visit(cells[k * WORDS]! + cells[k * WORDS + 1]! * 0x1_0000_0000);
    }
  }

  /** Leaves tag and payload where a landing reads them. */
  deliver(boundary: ExceptionBorder): void {
    const { state } = boundary.thread;
    const { cells, tag } = this;
    if (tag.hasReferences) this.#renewReferences(boundary);
    state.setWord(THREAD.CAUGHT_TAG, tag.identity);
    state.u32[THREAD.CAUGHT_NATIVELY >> 2] = 0;
    if (tag === JS_TAG) state.setWord(OVERFLOW, boundary.toWord(this.#outside, EXTERNREF));
    const { u32 } = state;
    for (let n = 0; n < cells.length; n++) u32[(OVERFLOW >> 2) + n] = cells[n]!;
  }

  /** Of an exception that JavaScript made: writes the references to the cells. Compiled code may have let go of them since the last time. */
  #renewReferences(boundary: ExceptionBorder): void {
    const values = (this.#outside as WasmException | undefined)?.[REFERENCES];
    if (values === undefined) return;
    const { cells, tag: { type: { params } } } = this;
    for (let k = 0; k < params.length; k++) {
      const type = params[k]!;
      if (!isRef(type)) continue;
      const value = values[k];
      const word = isWasmException(value) && isException(type)
        ? boundary.thread.exceptions.handleOf(value[INSIDE])
        : value === null
        ? 0
        : boundary.toWord(value, type, this.tag);
      cells[k * WORDS] = word >>> 0;
      cells[k * WORDS + 1] = word / 0x1_0000_0000 >>> 0;
    }
  }
}

const JS_TYPE: FuncType = { kind: "func", params: [EXTERNREF], results: [] };

/** The tag of what JavaScript throws: the value itself is the payload of a module that imports it (JavaScript API, "JSTag"). */
export const JS_TAG: Tag = new Tag(JS_TYPE, canonicalFuncTypeId(JS_TYPE), undefined);

/** Stands for tags that are gone. */
const FORGOTTEN_TAG: Tag = new Tag({ kind: "func", params: [], results: [] }, -1, undefined);

/** Key of the exception that a WasmException shows. */
export const INSIDE: unique symbol = Symbol("waft.inside");
/** Key of the references of one that JavaScript made, by number of the value. */
const REFERENCES: unique symbol = Symbol("waft.references");

/** An exception that WebAssembly code threw and nobody in it caught, or one for it to catch. */
export class WasmException extends Error {
  static {
    this.prototype.name = "WasmException";
  }
  /** @internal */
  readonly [INSIDE]: Exception;
  /** @internal */
  readonly [REFERENCES]: readonly unknown[] | undefined;

  /** An exception of `tag` with the given values, which are converted as arguments are. Throws TypeError when they do not fit. */
  constructor(tag: Tag, payload: Iterable<unknown>);
  /**
   * Shows an exception of compiled code.
   *
   * @internal
   */
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
    this[REFERENCES] = params.map((type, k) => writeCell(cells, k * WORDS, type, values[k], of.boundary));
    this[INSIDE] = new Exception(of, cells, this);
  }

  /** What it was thrown with. */
  get tag(): Tag {
    return this[INSIDE].tag;
  }

  /** The values: numbers, bigints, references; a v128 as its 16 bytes, an exnref as a WasmException. */
  get payload(): unknown[] {
    const { tag, cells } = this[INSIDE];
    return tag.type.params.map((type, k) => {
      if (!isRef(type)) return readCell(cells, k * WORDS, type);
      if (this[REFERENCES] !== undefined) return this[REFERENCES][k];
      const word = cells[k * WORDS]! + cells[k * WORDS + 1]! * 0x1_0000_0000;
      if (!isException(type)) return tag.boundary!.fromWord(word, type, tag);
      return tag.boundary!.exceptionOf(word)?.outgoing ?? null;
    });
  }
}

/** Is `value` one, whatever its prototype (webassembly/exception.ts gives it another)? */
export function isWasmException(value: unknown): value is WasmException {
  return typeof value === "object" && value !== null && INSIDE in value;
}

const SHOWN = new FinalizationRegistry<Exception>((exception) => exception.forget());

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
  boundary: ExceptionBorder | undefined,
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
      if (!isException(type)) boundary!.toWord(value, type);
      else if (value !== null && !isWasmException(value)) throw referenceMismatch(value, type);
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
