/**
 * Values and errors in recordings, self-describing. In: values at the boundary between JavaScript and compiled code.
 * Out: bytes, and in a replay the values again.
 *
 * Numbers, strings and bigints are recorded by value, functions of the instance by index. Any other value (a host's
 * object as externref, a structure of the guest) is recorded by identity: a number in the order in which such values
 * first cross the boundary. The guest cannot look into a value of the host, so in a replay an empty one takes its
 * place. It has the same JavaScript type, which errors of the boundary name. Invariant: recording and replay number the
 * same crossings in the same order.
 */
import type { ByteReader, ByteWriter } from "../base/bytes.ts";
import { ExhaustionError, isUncatchable, markUncatchable, TrapError } from "../base/errors.ts";
import { isWasmException, type Tag, WasmException } from "../runtime/exceptions/exception.ts";
import { makeTag } from "../runtime/instance/externals.ts";
import { funcInfo } from "../runtime/instance/func.ts";
import type { Instance } from "../runtime/instance/instance.ts";
import { topHeap } from "../wasm/subtype.ts";
import { F32, F64, HEAP, heapOf, I32, I64, isRef, type ValType } from "../wasm/types.ts";
import { WasiExit } from "../wasi/wasi_exit.ts";
import { listText, shortText, valueText } from "./value_text.ts";

/** The forms of values. */
const FORM = {
  NULL: 0,
  UNDEFINED: 1,
  FALSE: 2,
  TRUE: 3,
  I32: 4,
  I64: 5,
  F32: 6,
  F64: 7,
  /** A number of the host as a reference. */
  NUMBER: 8,
  STRING: 9,
  BIGINT: 10,
  /** A function of the instance, by index. */
  FUNCTION: 11,
  /** A value that has crossed before, by number. */
  KNOWN: 12,
  /** An object that crosses for the first time. */
  NEW: 13,
  /** A function that crosses for the first time, but for those of the instance. */
  NEW_FUNCTION: 14,
  /** A symbol that crosses for the first time. */
  NEW_SYMBOL: 15,
} as const;

/** The forms of errors. */
const ERROR = {
  /** Any value, with its name and message if it is an Error. */
  VALUE: 0,
  EXCEPTION: 1,
  TRAP: 2,
  EXHAUSTION: 3,
  EXIT: 4,
} as const;

const BITS = new DataView(new ArrayBuffer(8));

/** The index of a tag that the instance does not have. */
const FOREIGN_TAG = 0xffffffff;

/** Replaces a value of the host in a replay. */
class HostValue {}

/** Replaces an Error of the host in a replay. */
class RecordedError extends Error {
  /** An Error with the name and message of the recorded one. */
  constructor(name: string, message: string) {
    super(message);
    this.name = name;
  }
}

/** A value for messages and listings. */
interface DescribedValue {
  readonly type: string;
  readonly value: string;
}

/**
 * Converts a number or bigint to `type` as the boundary does; returns references unchanged. Throws TypeError if `value`
 * has no conversion.
 */
export function convertValue(type: ValType, value: unknown): unknown {
  if (type === I32) return (value as number) | 0;
  if (type === I64) return BigInt.asIntN(64, value as bigint);
  if (type === F32) return canonical(Math.fround(+(value as number)));
  if (type === F64) return canonical(+(value as number));
  return value;
}

/** Replaces every NaN by the canonical one. */
function canonical(value: number): number {
  return Number.isNaN(value) ? NaN : value;
}

/** Converts the result of a host function to `types`, in the form in which the boundary takes it. */
export function convertResult(types: readonly ValType[], result: unknown): unknown {
  if (types.length === 0) return undefined;
  if (types.length === 1) return convertValue(types[0], result);
  const list = [...result as Iterable<unknown>];
  if (list.length !== types.length) {
    throw new TypeError(`Host function returned ${list.length} values instead of ${types.length}`);
  }
  return list.map((value, k) => convertValue(types[k], value));
}

/** The results of a function in a list. */
export function resultList(types: readonly ValType[], result: unknown): readonly unknown[] {
  return types.length === 0 ? [] : types.length === 1 ? [result] : result as unknown[];
}

/** Name and message of an error; undefined for another value, and for one that throws when it is read. */
function errorWords(value: unknown): readonly [name: string, message: string] | undefined {
  try {
    return value instanceof Error ? [shortText(String(value.name)), shortText(String(value.message))] : undefined;
  } catch {
    return undefined;
  }
}

/** Writes and reads the values of one recording. */
export class Values {
  readonly #numbers = new Map<unknown, number>();
  readonly #known: unknown[] = [];
  readonly #instance: () => Instance;

  constructor(instance: () => Instance) {
    this.#instance = instance;
  }

  /** True for a value that is recorded by identity and has not crossed yet. */
  isNew(value: unknown): boolean {
    return typeof value === "object" && value !== null && !this.#numbers.has(value);
  }

  /** Numbers a value that the host has taken from the instance. */
  take(value: unknown): void {
    this.#introduce(value);
  }

  /** Writes `values` of `types`. */
  writeAll(out: ByteWriter, types: readonly ValType[], values: readonly unknown[]): void {
    out.u32(types.length);
    types.forEach((type, k) => this.write(out, type, values[k]));
  }

  /** Writes a value of `type`. */
  write(out: ByteWriter, type: ValType, value: unknown): void {
    if (isRef(type)) this.#writeReference(out, value);
    else writeNumber(out, type, value);
  }

  /**
   * Throws TypeError for a value of the host that no recording can hold: a function or an object of another instance.
   */
  check(type: ValType, value: unknown): void {
    if (!isRef(type)) return;
    const instance = this.#instance();
    const info = funcInfo(value);
    const isForeign = info === undefined
      ? this.isNew(value) && instance.store.heap.references.addressOf(value) !== undefined
      : info.owner !== instance && topHeap(heapOf(type)) === HEAP.func;
    if (isForeign) throw new TypeError("A recorded instance cannot take a function or an object of another instance");
  }

  /** Throws TypeError for a wasm exception whose payload no recording can hold, as `check`. */
  checkError(error: unknown): void {
    if (!isWasmException(error)) return;
    const { payload, tag: { type: { params } } } = error;
    params.forEach((type, k) => this.check(type, payload[k]));
  }

  /** Reads the values that `writeAll` has written. */
  readAll(reader: ByteReader): unknown[] {
    return Array.from({ length: reader.count() }, () => this.read(reader));
  }

  /** Reads a value; for a host's object returns the object that takes its place. */
  read(reader: ByteReader): unknown {
    const at = reader.pos;
    const form = reader.u8();
    switch (form) {
      case FORM.FUNCTION: {
        const index = reader.u32();
        const instance = this.#instance();
        if (!instance.module.hasEntryThunk(index)) reader.fail(`unknown function ${index}`, at);
        return instance.exportedFunc(index);
      }
      case FORM.KNOWN: {
        const number = reader.u32();
        if (number >= this.#known.length) reader.fail(`unknown value ${number}`, at);
        return this.#known[number];
      }
      case FORM.NEW:
        return this.#introduce(new HostValue());
      case FORM.NEW_FUNCTION:
        return this.#introduce(() => {});
      case FORM.NEW_SYMBOL:
        return this.#introduce(Symbol());
      default:
        return readPrimitive(reader, form, at);
    }
  }

  /** Writes an error. */
  writeError(out: ByteWriter, error: unknown): void {
    if (isWasmException(error)) this.#writeException(out, error);
    else if (TrapError.is(error)) {
      out.u8(ExhaustionError.is(error) ? ERROR.EXHAUSTION : ERROR.TRAP);
      out.name(error.message);
    } else if (isUncatchable(error) && error instanceof WasiExit) {
      out.u8(ERROR.EXIT);
      out.u32(error.status);
    } else {
      out.u8(ERROR.VALUE);
      const words = errorWords(error);
      out.u8((words === undefined ? 0 : 1) + (isUncatchable(error) ? 2 : 0));
      for (const text of words ?? []) out.name(text);
      this.#writeReference(out, error);
    }
  }

  #writeException(out: ByteWriter, { tag, payload }: WasmException): void {
    out.u8(ERROR.EXCEPTION);
    const index = this.#instance().tags.indexOf(tag);
    out.u32(index < 0 ? FOREIGN_TAG : index);
    if (index < 0) return;
    const { params } = tag.type;
    out.u32(params.length);
    params.forEach((type, k) => {
      // The payload has a vector as its bytes: an object, which is recorded by identity.
      const value = payload[k];
      if (isRef(type) || value instanceof Uint8Array) this.#writeReference(out, value);
      else writeNumber(out, type, value);
    });
  }

  /** Reads an error: a value that a host function of the replay throws. */
  readError(reader: ByteReader): unknown {
    const at = reader.pos;
    switch (reader.u8()) {
      case ERROR.TRAP:
        return new TrapError(reader.name());
      case ERROR.EXHAUSTION:
        return new ExhaustionError(reader.name());
      case ERROR.EXIT:
        return new WasiExit(reader.u32());
      case ERROR.EXCEPTION:
        return this.#readException(reader, at);
      case ERROR.VALUE:
        return this.#readThrown(reader);
      default:
        return reader.fail("unknown form of an error", at);
    }
  }

  #readException(reader: ByteReader, at: number): unknown {
    const index = reader.u32();
    if (index === FOREIGN_TAG) return new WasmException(makeTag(this.#instance().store, []), []);
    const tag: Tag | undefined = this.#instance().tags[index];
    if (tag === undefined) reader.fail(`unknown tag ${index}`, at);
    return new WasmException(tag, this.readAll(reader));
  }

  #readThrown(reader: ByteReader): unknown {
    const flags = reader.u8();
    const error = (flags & 1) === 0 ? undefined : new RecordedError(reader.name(), reader.name());
    if (error !== undefined && (flags & 2) !== 0) markUncatchable(error);
    if (error === undefined) return this.read(reader);
    if (reader.u8() === FORM.NEW) return this.#introduce(error);
    const number = reader.u32();
    return number < this.#known.length ? this.#known[number] : reader.fail(`unknown value ${number}`);
  }

  #writeReference(out: ByteWriter, value: unknown): void {
    if (writePrimitive(out, value)) return;
    const info = funcInfo(value);
    if (info !== undefined && info.owner === this.#instance()) {
      out.u8(FORM.FUNCTION);
      out.u32(info.funcIndex);
      return;
    }
    const number = this.#numbers.get(value);
    if (number === undefined) {
      this.#introduce(value);
      out.u8(typeof value === "function" ? FORM.NEW_FUNCTION : typeof value === "symbol" ? FORM.NEW_SYMBOL : FORM.NEW);
    } else {
      out.u8(FORM.KNOWN);
      out.u32(number);
    }
  }

  #introduce<T>(value: T): T {
    this.#numbers.set(value, this.#known.length);
    this.#known.push(value);
    return value;
  }
}

/** Writes a value of a number type, already converted. */
function writeNumber(out: ByteWriter, type: ValType, value: unknown): void {
  if (type === I32) {
    out.u8(FORM.I32);
    out.s32(value as number);
  } else if (type === I64) {
    out.u8(FORM.I64);
    BITS.setBigInt64(0, value as bigint, true);
    out.s64(BITS.getInt32(0, true), BITS.getInt32(4, true));
  } else if (type === F32) {
    out.u8(FORM.F32);
    BITS.setFloat32(0, canonical(value as number), true); // JavaScript cannot see the bits of a NaN
    out.bits32(BITS.getInt32(0, true));
  } else if (type === F64) {
    out.u8(FORM.F64);
    writeDouble(out, value as number);
  } else throw new TypeError("A v128 cannot be converted to or from a JavaScript value");
}

function writeDouble(out: ByteWriter, value: number): void {
  BITS.setFloat64(0, canonical(value), true);
  out.bits64(BITS.getInt32(0, true), BITS.getInt32(4, true));
}

/** Writes `value` if it is recorded by value. */
function writePrimitive(out: ByteWriter, value: unknown): boolean {
  if (value === null) out.u8(FORM.NULL);
  else if (value === undefined) out.u8(FORM.UNDEFINED);
  else if (typeof value === "boolean") out.u8(value ? FORM.TRUE : FORM.FALSE);
  else if (typeof value === "number") {
    out.u8(FORM.NUMBER);
    writeDouble(out, value);
  } else if (typeof value === "bigint") {
    out.u8(FORM.BIGINT);
    out.name(value.toString(16));
  } else if (typeof value === "string") {
    out.u8(FORM.STRING);
    out.u32(value.length);
    for (let k = 0; k < value.length; k++) out.u32(value.charCodeAt(k)); // strings need not be well-formed
  } else return false;
  return true;
}

function readPrimitive(reader: ByteReader, form: number, at: number): unknown {
  switch (form) {
    case FORM.NULL:
      return null;
    case FORM.UNDEFINED:
      return undefined;
    case FORM.FALSE:
    case FORM.TRUE:
      return form === FORM.TRUE;
    case FORM.I32:
      return reader.s32();
    case FORM.I64:
      reader.s64();
      return (BigInt(reader.hi) << 32n) | BigInt(reader.lo >>> 0);
    case FORM.F32:
      return view(reader.take(4)).getFloat32(0, true);
    case FORM.F64:
    case FORM.NUMBER:
      return view(reader.take(8)).getFloat64(0, true);
    case FORM.BIGINT:
      return parseBigInt(reader, at);
    case FORM.STRING:
      return Array.from({ length: reader.count() }, () => String.fromCharCode(reader.u32())).join("");
    default:
      return reader.fail("unknown form of a value", at);
  }
}

function view(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** Reads a bigint in base 16. */
function parseBigInt(reader: ByteReader, at: number): bigint {
  const [, sign, digits] = /^(-?)([0-9a-f]+)$/.exec(reader.name()) ?? reader.fail("malformed bigint", at);
  const value = BigInt(`0x${digits}`);
  return sign === "" ? value : -value;
}

/** Reads a value for a listing. */
export function describeValue(reader: ByteReader): DescribedValue {
  const at = reader.pos;
  const form = reader.u8();
  switch (form) {
    case FORM.FUNCTION:
      return { type: "funcref", value: `function ${reader.u32()}` };
    case FORM.KNOWN:
      return { type: "ref", value: `object ${reader.u32()}` };
    case FORM.NEW:
      return { type: "ref", value: "new object" };
    case FORM.NEW_FUNCTION:
      return { type: "ref", value: "new function" };
    case FORM.NEW_SYMBOL:
      return { type: "ref", value: "new symbol" };
    default: {
      const value = readPrimitive(reader, form, at);
      return { type: NUMBER_NAMES.get(form) ?? typeof value, value: valueText(value) };
    }
  }
}

const NUMBER_NAMES: ReadonlyMap<number, string> = new Map([
  [FORM.I32, "i32"],
  [FORM.I64, "i64"],
  [FORM.F32, "f32"],
  [FORM.F64, "f64"],
]);

/** Reads an error for a listing. */
export function describeError(reader: ByteReader): string {
  const at = reader.pos;
  switch (reader.u8()) {
    case ERROR.TRAP:
    case ERROR.EXHAUSTION:
      return `trap: ${shortText(reader.name())}`;
    case ERROR.EXIT:
      return `exit status ${reader.u32()}`;
    case ERROR.EXCEPTION: {
      const tag = reader.u32();
      if (tag === FOREIGN_TAG) return "wasm exception of an unknown tag";
      const values = Array.from({ length: reader.count() }, () => describeValue(reader).value);
      return `wasm exception of tag ${tag}: ${listText(values, (value) => value)}`;
    }
    case ERROR.VALUE: {
      const isError = (reader.u8() & 1) !== 0;
      const text = isError ? `${shortText(reader.name())}: ${shortText(reader.name())}` : "";
      const { value } = describeValue(reader);
      return isError ? text : `thrown value ${value}`;
    }
    default:
      return reader.fail("unknown form of an error", at);
  }
}
