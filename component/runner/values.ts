/**
 * Values of components in messages. In: values in jco's form, and their types. Out: bytes, and the same values again.
 * Invariant: reading never goes beyond the payload, and what a program reads has the type that the component declares,
 * whatever the bytes are: a process that code has escaped into cannot pass values of other types, nor handles that the
 * program did not give to this instance.
 *
 * A value is a form and its parts. Numbers, strings and the like are leaves; a value that does not have the form of its
 * type is written as a leaf, too, and the conversion to the component reports it.
 */
import { ProtocolError } from "@waft/engine/internal/runner/protocol";
import type { PayloadReader, PayloadWriter } from "@waft/engine/internal/runner/values";
import { LIST_ARRAYS } from "../abi/list_arrays.ts";
import { camelCase } from "../abi/names.ts";
import type { ChannelType, HandleType, ListType, ResourceType, ValType } from "../model/types.ts";

const FORM = { LEAF: 0, ARRAY: 1, ITEMS: 2, FIELDS: 3, CASE: 4, RESOURCE: 5, CHANNEL: 6 } as const;

/** The sides of a connection, by which resources and channels are named. */
export const SIDE = { PROGRAM: 0, RUNNER: 1 } as const;

/** The name of a resource: the side that has its object, and the number that this side gave it. */
export interface Handle {
  readonly side: number;
  readonly id: number;
}

/** The handles of one instance, on one side. */
export interface HandleTable {
  /** The name of an object. Throws TypeError for an object of another type. */
  nameOf(type: HandleType<ResourceType>, value: unknown): Handle;
  /** The object with a name. Throws ProtocolError for one that the other side must not use. */
  objectOf(type: HandleType<ResourceType>, handle: Handle): object;
  /** The number of a stream or future that is passed on. Throws TypeError for other values. */
  send(type: ChannelType<ValType>, value: unknown): number;
  /** The stream or future with a number of the other side. */
  receive(type: ChannelType<ValType>, id: number): unknown;
}

const isInteger = (least: number, most: number) => (value: unknown) =>
  typeof value === "number" && Number.isInteger(value) && value >= least && value <= most;
const isBig = (least: bigint, most: bigint) => (value: unknown) =>
  typeof value === "bigint" && value >= least && value <= most;
const isNumber = (value: unknown) => typeof value === "number";

/** Whether a value is one of a primitive type. */
const IS_LEAF: Readonly<Record<string, (value: unknown) => boolean>> = {
  bool: (value) => typeof value === "boolean",
  s8: isInteger(-0x80, 0x7f),
  u8: isInteger(0, 0xff),
  s16: isInteger(-0x8000, 0x7fff),
  u16: isInteger(0, 0xffff),
  s32: isInteger(-0x8000_0000, 0x7fff_ffff),
  u32: isInteger(0, 0xffff_ffff),
  s64: isBig(-(2n ** 63n), 2n ** 63n - 1n),
  u64: isBig(0n, 2n ** 64n - 1n),
  f32: isNumber,
  f64: isNumber,
  char: (value) => typeof value === "string" && [...value].length === 1,
  string: (value) => typeof value === "string",
};

/** Writes and reads values of one instance. */
export class ValueCodec {
  readonly #handles: HandleTable;
  readonly #isStrict: boolean;

  /** `isStrict`: values of other types are errors of the other side, which is not trusted. */
  constructor(handles: HandleTable, isStrict: boolean) {
    this.#handles = handles;
    this.#isStrict = isStrict;
  }

  /** Writes a value. Throws TypeError for one that cannot leave its process. */
  write(writer: PayloadWriter, type: ValType, value: unknown): void {
    if (!this.#writeParts(writer, type, value)) writer.u8(FORM.LEAF).value(value, "A value of the component");
  }

  /** Writes a value in the form of its type; false if it does not have that form. */
  #writeParts(writer: PayloadWriter, type: ValType, value: unknown): boolean {
    switch (type.kind) {
      case "list":
        return this.#writeArray(writer, type.element, value) || this.#writeItems(writer, value, () => type.element);
      case "tuple":
        return this.#writeItems(writer, value, (k) => type.types[k], type.types.length);
      case "map":
        if (!(value instanceof Map)) return false;
        return this.#writeItems(writer, [...value].flat(), (k) => k % 2 === 0 ? type.key : type.value);
      case "record":
        return this.#writeFields(writer, type.fields, value);
      case "flags":
        return this.#writeFields(writer, type.names.map(asFlag), value);
      case "variant":
        return this.#writeCase(writer, value, (tag) => type.cases.find(({ name }) => name === tag)?.type);
      case "result":
        return this.#writeCase(writer, value, (tag) => tag === "ok" ? type.ok : type.err);
      case "option":
        if (type.type.kind === "option") {
          return this.#writeCase(writer, value, (tag) => tag === "some" ? type.type : undefined);
        }
        return value !== undefined && value !== null && this.#writeParts(writer, type.type, value);
      case "own":
      case "borrow": {
        const { side, id } = this.#handles.nameOf(type, value);
        writer.u8(FORM.RESOURCE).u8(side).u32(id);
        return true;
      }
      case "stream":
      case "future":
        writer.u8(FORM.CHANNEL).u32(this.#handles.send(type, value));
        return true;
      case "error-context":
        throw new TypeError("An error context of a component cannot leave its process");
      default:
        return false;
    }
  }

  #writeArray(writer: PayloadWriter, element: ValType, value: unknown): boolean {
    const type = LIST_ARRAYS[element.kind];
    if (type === undefined || !(value instanceof type)) return false;
    const { buffer, byteOffset, byteLength } = value;
    writer.u8(FORM.ARRAY).bytes(new Uint8Array(buffer, byteOffset, byteLength));
    return true;
  }

  #writeItems(writer: PayloadWriter, value: unknown, typeAt: (index: number) => ValType, least = 0): boolean {
    if (!isItems(value) || value.length < least) return false;
    const count = least === 0 ? value.length : least;
    writer.u8(FORM.ITEMS).u32(count);
    for (let k = 0; k < count; k++) this.write(writer, typeAt(k), value[k]);
    return true;
  }

  #writeFields(writer: PayloadWriter, fields: readonly Field[], value: unknown): boolean {
    if (!isObject(value)) return false;
    writer.u8(FORM.FIELDS);
    for (const { name, type } of fields) this.write(writer, type, value[camelCase(name)]);
    return true;
  }

  #writeCase(writer: PayloadWriter, value: unknown, typeOf: (tag: string) => ValType | undefined): boolean {
    if (!isObject(value) || typeof value["tag"] !== "string") return false;
    const { tag, val } = value as { readonly tag: string; readonly val?: unknown };
    const type = typeOf(tag);
    writer.u8(FORM.CASE).text(tag).u8(type === undefined ? 0 : 1);
    if (type !== undefined) this.write(writer, type, val);
    return true;
  }

  /** Reads a value. Throws ProtocolError. */
  read(reader: PayloadReader, type: ValType): unknown {
    const form = reader.u8();
    if (form === FORM.LEAF) return this.#readLeaf(reader, type);
    const of = type.kind === "option" && type.type.kind !== "option" ? type.type : type;
    switch (form) {
      case FORM.ARRAY:
        return this.#readArray(reader, of);
      case FORM.ITEMS:
        return this.#readItems(reader, of);
      case FORM.FIELDS:
        return this.#readFields(reader, of);
      case FORM.CASE:
        return this.#readCase(reader, of);
      case FORM.RESOURCE:
        if (of.kind !== "own" && of.kind !== "borrow") throw otherType(of);
        return this.#handles.objectOf(of, { side: reader.u8(), id: reader.u32() });
      case FORM.CHANNEL:
        if (of.kind !== "stream" && of.kind !== "future") throw otherType(of);
        return this.#handles.receive(of, reader.u32());
      default:
        throw new ProtocolError(`a value of the unknown form ${form}`);
    }
  }

  #readLeaf(reader: PayloadReader, type: ValType): unknown {
    const value = reader.value();
    if (this.#isStrict && !isLeaf(type, value)) throw otherType(type);
    return value;
  }

  #readArray(reader: PayloadReader, type: ValType): unknown {
    const Type = type.kind === "list" ? LIST_ARRAYS[type.element.kind] : undefined;
    if (Type === undefined) throw otherType(type);
    const bytes = reader.bytes();
    const has = bytes.length / Type.BYTES_PER_ELEMENT;
    if (!Number.isInteger(has) || !hasLength(type, has)) throw otherType(type);
    return new Type(bytes.buffer);
  }

  #readItems(reader: PayloadReader, type: ValType): unknown {
    const count = reader.u32();
    // An item has at least one byte, so a count beyond them reserves nothing.
    if (count > reader.left || !hasLength(type, count)) throw otherType(type);
    const items: unknown[] = [];
    for (let k = 0; k < count; k++) items.push(this.read(reader, itemType(type, k)));
    if (type.kind !== "map") return items;
    return new Map(Array.from({ length: count / 2 }, (_, k) => [items[2 * k], items[2 * k + 1]]));
  }

  #readFields(reader: PayloadReader, type: ValType): unknown {
    const fields = type.kind === "record" ? type.fields : type.kind === "flags" ? type.names.map(asFlag) : undefined;
    if (fields === undefined) throw otherType(type);
    return Object.fromEntries(fields.map(({ name, type }) => [camelCase(name), this.read(reader, type)]));
  }

  #readCase(reader: PayloadReader, type: ValType): unknown {
    const tag = reader.text();
    const cases = casesOf(type);
    const known = cases?.find(({ name }) => name === tag);
    const hasValue = reader.u8() !== 0;
    if (cases === undefined || known === undefined && this.#isStrict) throw otherType(type);
    if (hasValue !== (known?.type !== undefined)) throw otherType(type);
    if (known?.type !== undefined) return { tag, val: this.read(reader, known.type) };
    return type.kind === "result" ? { tag, val: undefined } : { tag };
  }
}

interface Field {
  readonly name: string;
  readonly type: ValType;
}

const asFlag = (name: string): Field => ({ name, type: { kind: "bool" } });

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function isItems(value: unknown): value is ArrayLike<unknown> {
  return isObject(value) && typeof value["length"] === "number" && Number.isSafeInteger(value["length"]);
}

/** The cases of a type whose values are objects with a tag. */
function casesOf(type: ValType): readonly { readonly name: string; readonly type?: ValType | undefined }[] | undefined {
  switch (type.kind) {
    case "variant":
      return type.cases;
    case "result":
      return [{ name: "ok", type: type.ok }, { name: "err", type: type.err }];
    case "option":
      return [{ name: "some", type: type.type }, { name: "none" }];
    default:
      return undefined;
  }
}

/** Whether values of a type can have a number of items. */
function hasLength(type: ValType, count: number): boolean {
  switch (type.kind) {
    case "list":
      return type.length === undefined || type.length === count;
    case "tuple":
      return type.types.length === count;
    case "map":
      return count % 2 === 0;
    default:
      return false;
  }
}

function itemType(type: ValType, index: number): ValType {
  if (type.kind === "tuple") return type.types[index];
  if (type.kind === "map") return index % 2 === 0 ? type.key : type.value;
  return (type as ListType<ValType>).element;
}

function isLeaf(type: ValType, value: unknown): boolean {
  if (type.kind === "enum") return typeof value === "string" && type.names.includes(value);
  if (type.kind === "option" && type.type.kind !== "option") return value === undefined || isLeaf(type.type, value);
  return IS_LEAF[type.kind]?.(value) ?? false;
}

function otherType({ kind }: ValType): ProtocolError {
  return new ProtocolError(`a value that is not of its type, ${kind}`);
}
