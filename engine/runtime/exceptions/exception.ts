/**
 * Tags and exceptions (specification, 4.2.11 and 4.2.13) as JavaScript objects. The identity of a tag is a number that
 * compiled code compares. An exception stores its payload as bits, references included. A reference to the exception,
 * from compiled code or from the WasmException that represents it in JavaScript, keeps the payload's references alive
 * (visitReferences). An exception that only compiled code refers to is therefore collected like any other object,
 * cycles included.
 *
 * A value that JavaScript throws through compiled code becomes an exception with a dedicated tag (JS_TAG). Only
 * catch_all clauses and modules that import that tag catch it, and rethrowing it propagates the original value.
 *
 * The state at module level belongs to the realm: tag identities must differ between all instances of a realm, because
 * any of them can throw through any other.
 */
import { EXCEPTION_RECORD, TAG_BITS, THREAD } from "../../abi/context_layout.ts";
import { inWords } from "../../base/arguments.ts";
import { nameErrors } from "../../base/error_names.ts";
import { defineGuestStack } from "../../base/guest_stack.ts";
import type { TrapFrame } from "../../base/errors.ts";
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
import { type ReferenceBoundary, referenceMismatch } from "../boundary/values.ts";
import { formatAs } from "../../host/inspect.ts";

/** The parts of the store that exceptions use. */
export interface ExceptionBoundary extends ReferenceBoundary {
  readonly thread: { readonly handles: HandleTable; readonly exceptions: HandleTable; readonly state: NativeRegion };
  /** The exception of an exnref; undefined for null. */
  exceptionOf(word: number): Exception | undefined;
  /** Payloads of exceptions of compiled code that are represented in JavaScript: their references are roots. */
  readonly shownPayloads: Set<ShownPayload>;
}

/**
 * The references of an exception that JavaScript may hold. Refers neither to the exception nor, strongly, to its tag,
 * from which the program's objects are reachable: the payload is in a finalizer's hands until the exception is
 * collected.
 */
export interface ShownPayload {
  readonly words: readonly number[];
  readonly tag: WeakRef<Tag>;
  /** The WasmException: once it is collected, the references are roots no more. */
  readonly shown: WeakRef<object>;
}

/** The serial number of the next tag. */
let nextTag = 1;

/** A tag: identifies a kind of exception and gives the types of its payload. */
export class Tag {
  /**
   * The type, closed (wasm/subtype.ts).
   *
   * @internal
   */
  readonly type: FuncType;
  /**
   * The canonical id of the type; −1 for the tag of JavaScript exceptions.
   *
   * @internal
   */
  readonly typeId: number;
  /**
   * The number that compiled code compares, including TAG_BITS.
   *
   * @internal
   */
  readonly identity: number;
  /** @internal */
  readonly boundary: ExceptionBoundary | undefined;
  /** @internal */
  readonly hasReferences: boolean;

  /**
   * Tags are created by instances and by `host.tag`.
   *
   * @internal
   */
  constructor(type: FuncType, typeId: number, boundary: ExceptionBoundary | undefined) {
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
   * The tag with an identity. If that tag has been collected, no code can compare with it, and a placeholder is
   * returned.
   *
   * @internal
   */
  static of(identity: number): Tag {
    return TAGS.get(identity)?.deref() ?? FORGOTTEN_TAG;
  }

  /**
   * Keeps `other` alive as long as this tag: the payload of an exception with this tag may contain its functions.
   *
   * @internal
   */
  keepAlive(other: Sharer): void {
    this.#retained.add(other);
  }

  /** @internal */
  keepsAlive(other: Sharer): boolean {
    return this.#retained.has(other);
  }
  readonly #retained: Set<Sharer> = new Set();
  /** @internal */
  targets: Set<Sharer> | undefined;
  /** @internal */
  values: Set<object> | undefined;

  /**
   * The instances and others that share the references of its payloads.
   *
   * @internal
   */
  sharers(): Iterable<unknown> {
    return [...this.#retained, ...this.targets ?? []];
  }

  /** The payload types in the notation of the text format. */
  get parameters(): string[] {
    return this.type.params.map(valTypeName);
  }
}

formatAs(Tag.prototype, ({ parameters }) => `Tag { ${["param", ...parameters].join(" ")} }`);

/** The live tags of this realm that have a boundary, by identity. */
const TAGS = new Map<number, WeakRef<Tag>>();
const GONE_TAGS = new FinalizationRegistry<number>((identity) => TAGS.delete(identity));

/** u32 words per value of a payload. */
const WORDS = 4;
const OVERFLOW = THREAD.OVERFLOW;
const BITS = new DataView(new ArrayBuffer(8));

/**
 * The internal form of an exception, kept small because compiled code catches most exceptions. The Error that
 * represents it in JavaScript is created only when the exception reaches JavaScript.
 */
export class Exception {
  tag: Tag;
  /** Four words per value; references are valid while the exception is referenced or represented in JavaScript. */
  cells: number[];
  /** The value that JavaScript threw, or the WasmException that it constructed. */
  #outside: unknown;
  /** The JavaScript representation of an exception of compiled code. */
  #shown: WeakRef<WasmException> | undefined;

  constructor(tag: Tag, cells: number[], outside?: unknown) {
    this.tag = tag;
    this.cells = cells;
    this.#outside = outside;
  }

  /** The exception for a value that JavaScript threw. */
  static of(thrown: unknown): Exception {
    if (!isWasmException(thrown)) return new Exception(JS_TAG, [], thrown);
    const inside = WasmException.inside(thrown);
    inside.#outside = thrown; // the program may have added properties
    return inside;
  }

  /** The exception of `tag` whose payload code of `thrower` has written to the overflow buffer. */
  static thrown(tag: Tag, boundary: ExceptionBoundary, thrower?: Sharer): Exception {
    const { params } = tag.type;
    const { u32 } = boundary.thread.state;
    if (tag === JS_TAG) {
      const word = boundary.thread.state.word(OVERFLOW);
      return new Exception(JS_TAG, [], boundary.fromWord(word, EXTERNREF, thrower));
    }
    // An array of numbers: creating a typed array takes a microsecond.
    const cells: number[] = [];
    for (let n = 0; n < params.length * WORDS; n++) cells.push(u32[(OVERFLOW >> 2) + n]);
    return new Exception(tag, cells);
  }

  /** An exception whose tag and payload machine code may write to a record later. */
  static pending(): Exception {
    return new Exception(FORGOTTEN_TAG, []);
  }

  /** Sets tag and payload from the record at `offset` of `region`. */
  fill({ u32 }: NativeRegion, offset: number): void {
    const tag = (offset + EXCEPTION_RECORD.TAG) >> 2;
    this.tag = Tag.of(u32[tag] + u32[tag + 1] * 0x1_0000_0000);
    const first = (offset + EXCEPTION_RECORD.PAYLOAD) >> 2;
    this.cells = Array.from(u32.subarray(first, first + this.tag.type.params.length * WORDS));
  }

  /** The value that JavaScript receives if no compiled code catches the exception. */
  get outgoing(): unknown {
    if (this.tag === JS_TAG) return this.#outside;
    let shown = this.#outside ?? this.#shown?.deref();
    if (shown === undefined) {
      shown = new WasmException(this);
      this.#shown = new WeakRef(shown as WasmException);
      if (this.tag.hasReferences) this.#root(shown as WasmException, this.tag.boundary!.shownPayloads);
    }
    return shown;
  }

  /** Makes the references of the payload roots until `shown` is collected. */
  #root(shown: WasmException, roots: Set<ShownPayload>): void {
    const words: number[] = [];
    this.visitReferences((word) => words.push(word));
    const payload = { words, tag: new WeakRef(this.tag), shown: new WeakRef(shown) };
    roots.add(payload);
    SHOWN.register(shown, { payload, roots });
  }

  /** Visits the references in the payload. */
  visitReferences(visit: (word: number) => void): void {
    if (!this.tag.hasReferences) return;
    const { cells, tag: { type: { params } } } = this;
    for (let k = 0; k < params.length; k++) {
      if (isRef(params[k])) visit(cells[k * WORDS] + cells[k * WORDS + 1] * 0x1_0000_0000);
    }
  }

  /** Writes tag and payload to the thread state, where a landing pad of `receiver` reads them. */
  deliver(boundary: ExceptionBoundary, receiver: Sharer | undefined): void {
    const { state } = boundary.thread;
    const { cells, tag } = this;
    if (tag.hasReferences) this.#renewReferences(boundary);
    state.setWord(THREAD.CAUGHT_TAG, tag.identity);
    state.u32[THREAD.CAUGHT_NATIVELY >> 2] = 0;
    if (tag === JS_TAG) state.setWord(OVERFLOW, boundary.toWord(this.#outside, EXTERNREF, receiver));
    const { u32 } = state;
    for (let n = 0; n < cells.length; n++) u32[(OVERFLOW >> 2) + n] = cells[n];
  }

  /**
   * For an exception that JavaScript constructed: writes its references to the cells, because compiled code may have
   * released the previous handles.
   */
  #renewReferences(boundary: ExceptionBoundary): void {
    const outside = this.#outside as WasmException | undefined;
    const values = outside === undefined ? undefined : WasmException.references(outside);
    if (values === undefined) return;
    const { cells, tag: { type: { params } } } = this;
    for (let k = 0; k < params.length; k++) {
      const type = params[k];
      if (!isRef(type)) continue;
      const value = values[k];
      const word = isWasmException(value) && isException(type)
        ? boundary.thread.exceptions.handleOf(WasmException.inside(value))
        : value === null
        ? 0
        : boundary.toWord(value, type, this.tag);
      cells[k * WORDS] = word >>> 0;
      cells[k * WORDS + 1] = word / 0x1_0000_0000 >>> 0;
    }
  }
}

const JS_TYPE: FuncType = { kind: "func", params: [EXTERNREF], results: [] };

/**
 * The tag of values that JavaScript throws. For a module that imports it, the payload is the value itself (JavaScript
 * API, "JSTag").
 */
export const JS_TAG: Tag = new Tag(JS_TYPE, canonicalFuncTypeId(JS_TYPE), undefined);

/** The placeholder for collected tags. */
const FORGOTTEN_TAG: Tag = new Tag({ kind: "func", params: [], results: [] }, -1, undefined);

/** The guest frames of WasmExceptions that left compiled code. */
const FRAMES = new WeakMap<object, readonly TrapFrame[]>();

/** A payload value in the first line of a stack. */
function valueInWords(value: unknown): string {
  return value instanceof Uint8Array ? `v128 [${value.join(" ")}]` : inWords(value);
}

/** The tag and the values of an exception in words. */
function describeException(exception: WasmException): string {
  const types = exception.tag.type.params.map(valTypeName).join(" ");
  const values = exception.payload.map(valueInWords).join(", ");
  return types === "" ? "wasm exception of an empty tag" : `wasm exception of tag (${types}): ${values}`;
}

/**
 * Gives an exception that leaves compiled code, because nothing there catches it, its frames and a stack that shows tag
 * and values.
 */
export function leaveGuest(outgoing: unknown, frames: () => readonly TrapFrame[]): void {
  if (!isWasmException(outgoing) || FRAMES.has(outgoing)) return;
  const found = frames();
  FRAMES.set(outgoing, found);
  defineGuestStack(outgoing, () => `WasmException: ${describeException(outgoing)}`, () => found);
}

/**
 * A WebAssembly exception in JavaScript: thrown by an exported function if no compiled code catches it, or constructed
 * in order to be thrown by a host function.
 */
export class WasmException extends Error {
  static {
    nameErrors(this.prototype, "WasmException");
  }
  /** The exception that it represents: a private brand, since the interface `WebAssembly` replaces the prototype. */
  readonly #inside: Exception;
  /** The references of the payload by value index, if JavaScript constructed the exception. */
  readonly #references: readonly unknown[] | undefined;

  /**
   * Whether `value` is such an exception. Runs no code of the program: a thrown value may be a Proxy.
   *
   * @internal
   */
  static is(value: unknown): value is WasmException {
    return typeof value === "object" && value !== null && #inside in value;
  }

  /**
   * The exception that `outer` represents.
   *
   * @internal
   */
  static inside(outer: WasmException): Exception {
    return outer.#inside;
  }

  /**
   * The references in the payload of `outer`, if JavaScript constructed it.
   *
   * @internal
   */
  static references(outer: WasmException): readonly unknown[] | undefined {
    return outer.#references;
  }

  /**
   * Creates an exception of `tag` with the given values, which are converted like arguments. Throws TypeError if their
   * number or a type does not match the tag.
   */
  constructor(tag: Tag, payload: Iterable<unknown>);
  /**
   * Represents an exception of compiled code.
   *
   * @internal
   */
  constructor(inside: Exception);
  constructor(of: Tag | Exception, payload: Iterable<unknown> = []) {
    super("wasm exception");
    if (of instanceof Exception) {
      this.#inside = of;
      return;
    }
    const { params } = of.type;
    const values = Array.from(payload);
    if (values.length !== params.length) {
      throw new TypeError(`The tag has ${params.length} parameters, not ${values.length}`);
    }
    const cells = new Array<number>(params.length * WORDS).fill(0);
    this.#references = params.map((type, k) => writeCell(cells, k * WORDS, type, values[k], of.boundary));
    this.#inside = new Exception(of, cells, this);
  }

  /**
   * The guest's frames when it left compiled code, innermost first; none for an exception that the host constructed.
   */
  get frames(): readonly TrapFrame[] {
    return FRAMES.get(this) ?? [];
  }

  /** The tag of the exception. */
  get tag(): Tag {
    return this.#inside.tag;
  }

  /** The payload: numbers, bigints and references; a v128 as its 16 bytes, an exnref as a WasmException. */
  get payload(): unknown[] {
    const { tag, cells } = this.#inside;
    return tag.type.params.map((type, k) => {
      if (!isRef(type)) return readCell(cells, k * WORDS, type);
      if (this.#references !== undefined) return this.#references[k];
      const word = cells[k * WORDS] + cells[k * WORDS + 1] * 0x1_0000_0000;
      if (!isException(type)) return tag.boundary!.fromWord(word, type, tag);
      return tag.boundary!.exceptionOf(word)?.outgoing ?? null;
    });
  }
}

/** Whether `value` is a WasmException with any prototype (webassembly/exception.ts replaces it). */
export function isWasmException(value: unknown): value is WasmException {
  return WasmException.is(value);
}

const SHOWN = new FinalizationRegistry<{ payload: ShownPayload; roots: Set<ShownPayload> }>(({ payload, roots }) => {
  roots.delete(payload);
});

/** Whether `type` is exnref or a subtype. */
export function isException(type: ValType): boolean {
  if (!isRef(type)) return false;
  const heap = heapOf(type);
  return heap === HEAP.exn || heap === HEAP.noexn;
}

/**
 * Converts `value` and writes it to a cell. For a reference type, writes nothing and returns the value to retain.
 * Throws TypeError if the value does not have the type.
 */
function writeCell(
  cells: number[],
  at: number,
  type: ValType,
  value: unknown,
  boundary: ExceptionBoundary | undefined,
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
  BITS.setUint32(0, cells[at], true);
  BITS.setUint32(4, cells[at + 1], true);
  if (type === I32) return BITS.getInt32(0, true);
  if (type === I64) return BITS.getBigInt64(0, true);
  if (type === F32) return BITS.getFloat32(0, true);
  if (type === F64) return BITS.getFloat64(0, true);
  return new Uint8Array(Uint32Array.from(cells.slice(at, at + WORDS)).buffer);
}
