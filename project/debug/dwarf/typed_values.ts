/**
 * Values of source types. In: a type's entry, and the place of a value. Out: a variable with its text, its parts, and a
 * way to change it. Base types, enumerations, pointers, structures, unions, arrays, bit fields and Rust's enums,
 * slices, `Vec` and `String` are read; strings behind pointers to characters are shown.
 *
 * Parts are made on request, so a type that contains a pointer to itself causes no endless recursion.
 */
import { F32, F64, I32, I64 } from "@waft/engine/internal/wasm/types";
import type { Variable } from "../variable.ts";
import { type Value, valueText, writeNumber } from "../values.ts";
import { AT, ATE, TAG } from "./constants.ts";
import { type Entry, type Unit, unitAt } from "./entries.ts";

/** The memory of a program, which may grow while it runs. */
export type MemoryOf = () => Uint8Array;

/** A value's type and bytes, or bits for one that is in no memory. */
interface Place {
  readonly unit: Unit;
  readonly type: Entry | undefined;
  readonly address?: number;
  readonly bits?: bigint;
  readonly set?: (text: string) => void;
  /** The first bit of a bit field, and its width. */
  readonly field?: { readonly shift: number; readonly width: number };
}

/** Elements one behind the other in memory. */
interface Sequence {
  readonly unit: Unit;
  readonly element: Entry | undefined;
  readonly data: number;
  readonly length: number;
}

/** The most elements of an array, and characters of a text and of a name, that are shown. */
const MAX_ELEMENTS = 1000;
const MAX_CHARACTERS = 200;
const MAX_NAME = 1000;
/** The most members, enumerators and variants of a type, and dimensions of an array, that are read. */
const MAX_CHILDREN = 10_000;
const MAX_DIMENSIONS = 16;
/** The most bytes of a number. */
const MAX_BYTES = 16;
/** The most members that are searched for the pointer of a Rust `Vec`; it is below some four structures. */
const MAX_SEARCHED = 32;
/** The most typedefs and qualifiers around a type. */
const MAX_NAMES = 64;
const QUALIFIERS: ReadonlySet<number> = new Set([
  TAG.TYPEDEF,
  TAG.CONST_TYPE,
  TAG.VOLATILE_TYPE,
  TAG.RESTRICT_TYPE,
  TAG.ATOMIC_TYPE,
]);
const POINTERS: ReadonlySet<number> = new Set([TAG.POINTER_TYPE, TAG.REFERENCE_TYPE, TAG.RVALUE_REFERENCE_TYPE]);
const AGGREGATES: ReadonlySet<number> = new Set([TAG.STRUCTURE_TYPE, TAG.CLASS_TYPE, TAG.UNION_TYPE]);
const PREFIXES: ReadonlyMap<number, string> = new Map([
  [TAG.CONST_TYPE, "const "],
  [TAG.VOLATILE_TYPE, "volatile "],
]);

/** The name of an entry, cut if it is very long. */
export function nameOf(entry: Entry | undefined): string | undefined {
  const name = entry?.attributes.get(AT.NAME);
  if (typeof name !== "string") return undefined;
  return name.length > MAX_NAME ? `${name.slice(0, MAX_NAME)}…` : name;
}

function numberOf(entry: Entry | undefined, attribute: number): number | undefined {
  const value = entry?.attributes.get(attribute);
  return typeof value === "number" || typeof value === "bigint" ? Number(value) : undefined;
}

/** The size of a number in bytes; `fallback` if it is missing or impossible. */
function numberSize(type: Entry, fallback: number): number {
  const size = numberOf(type, AT.BYTE_SIZE) ?? fallback;
  return size >= 1 && size <= MAX_BYTES ? size : fallback;
}

/** The offset of a member in bytes. */
function placeOf(member: Entry): number {
  return numberOf(member, AT.DATA_MEMBER_LOCATION) ?? 0;
}

/** The children of a type with this tag. */
function childrenOf(type: Entry, tag: number): Entry[] {
  return type.children.slice(0, MAX_CHILDREN).filter((child) => child.tag === tag);
}

/** Reads values of one program. */
export class TypedValues {
  readonly #units: readonly Unit[];
  readonly #memory: MemoryOf;

  constructor(units: readonly Unit[], memory: MemoryOf) {
    this.#units = units;
    this.#memory = memory;
  }

  /** The entry that an attribute refers to. */
  referred(unit: Unit, entry: Entry | undefined, attribute: number): Entry | undefined {
    const offset = numberOf(entry, attribute);
    if (offset === undefined) return undefined;
    return (unit.has(offset) ? unit : unitAt(this.#units, offset))?.entryAt(offset);
  }

  /** A variable. */
  variable(name: string, place: Place): Variable {
    const type = this.typeName(place.unit, place.type);
    const core = this.#core(place.unit, place.type);
    const { address } = place;
    const common = { name, type, ...(address === undefined ? {} : { address }) };
    if (address !== undefined && !this.#has(address)) {
      return { ...common, text: "(outside of the memory)" };
    }
    if (core === undefined) return { ...common, text: "void" };
    if (core.tag === TAG.ENUMERATION_TYPE) return { ...common, ...this.#enumeration(place, core) };
    if (POINTERS.has(core.tag)) return { ...common, ...this.#pointer(place, core) };
    if (core.tag === TAG.BASE_TYPE) return { ...common, ...this.#base(place, core) };
    if (address === undefined) return { ...common, text: "(in pieces)" };
    if (core.tag === TAG.ARRAY_TYPE) return { ...common, ...this.#array(place.unit, core, address) };
    if (AGGREGATES.has(core.tag)) return { ...common, ...this.#aggregate(place.unit, core, address) };
    return { ...common, text: "(a type that the debugger does not know)" };
  }

  /** True for the address of a byte in the memory. Addresses of damaged types are negative, or no numbers. */
  #has(address: number): boolean {
    return address >= 0 && address < this.#memory().length;
  }

  /** The type without typedefs and qualifiers. */
  #core(unit: Unit, type: Entry | undefined): Entry | undefined {
    let core = type;
    for (let k = 0; core !== undefined && QUALIFIERS.has(core.tag); k++) {
      core = k < MAX_NAMES ? this.referred(unit, core, AT.TYPE) : undefined;
    }
    return core;
  }

  /** A type in a notation close to that of C. */
  typeName(unit: Unit, type: Entry | undefined, depth = 0): string {
    if (type === undefined || depth > MAX_NAMES) return "void";
    const name = nameOf(type);
    if (name !== undefined) return name;
    const target = () => this.typeName(unit, this.referred(unit, type, AT.TYPE), depth + 1);
    if (type.tag === TAG.POINTER_TYPE) return `${target()} *`;
    if (POINTERS.has(type.tag)) return `${target()} &`;
    if (type.tag === TAG.ARRAY_TYPE) return `${target()}${lengthsOf(type).map((length) => `[${length}]`).join("")}`;
    if (QUALIFIERS.has(type.tag)) return `${PREFIXES.get(type.tag) ?? ""}${target()}`;
    return type.tag === TAG.UNION_TYPE ? "union" : type.tag === TAG.ENUMERATION_TYPE ? "enum" : "struct";
  }

  #bits({ address, bits, field }: Place, size: number): bigint {
    let all = bits ?? 0n;
    if (address !== undefined) {
      const bytes = this.#memory().subarray(address, address + size);
      all = bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
    }
    return field === undefined ? all : BigInt.asUintN(field.width, all >> BigInt(field.shift));
  }

  #base(place: Place, type: Entry): Pick<Variable, "text" | "value" | "set"> {
    const size = numberSize(type, 4);
    const encoding = numberOf(type, AT.ENCODING);
    const value = baseValue(this.#bits(place, size), place.field?.width ?? size * 8, encoding);
    const text = encoding === ATE.BOOLEAN ? String(value !== 0n) : characterText(value, encoding);
    return { text, value, ...this.#setter(place, size, encoding === ATE.FLOAT) };
  }

  #setter({ address, set, field }: Place, size: number, isFloat: boolean): Pick<Variable, "set"> {
    if (set !== undefined) return { set };
    const type = isFloat ? (size === 4 ? F32 : F64) : size === 8 ? I64 : I32;
    if (address === undefined || field !== undefined || (isFloat && size > 8)) return {};
    return {
      set: (text) => {
        const scratch = new DataView(new ArrayBuffer(8));
        writeNumber(scratch, 0, type, text);
        const bytes = new Uint8Array(scratch.buffer, 0, Math.min(size, 8));
        if (!isFloat && size < 4) requireFit(scratch.getInt32(0, true), size, text);
        this.#memory().set(bytes, address);
      },
    };
  }

  #enumeration(place: Place, type: Entry): Pick<Variable, "text" | "value" | "set"> {
    const size = numberSize(type, 4);
    const bits = this.#bits(place, size);
    const value = BigInt.asIntN(size * 8, bits);
    const found = type.children.slice(0, MAX_CHILDREN).find((each) => {
      const constant = numberOf(each, AT.CONST_VALUE);
      return constant !== undefined && (BigInt(constant) === value || BigInt(constant) === bits);
    });
    return { text: nameOf(found) ?? String(value), value, ...this.#setter(place, size, false) };
  }

  #pointer(place: Place, type: Entry): Pick<Variable, Exclude<keyof Variable, "name" | "type" | "address">> {
    const { unit } = place;
    const size = numberSize(type, unit.addressBytes);
    const value = this.#bits(place, size);
    const target = this.referred(unit, type, AT.TYPE);
    const common = { value, ...this.#setter(place, size, false) };
    const address = Number(value);
    const hex = `0x${value.toString(16)}`;
    if (target === undefined || address === 0 || !this.#has(address)) return { ...common, text: hex };
    const core = this.#core(unit, target);
    const shown = isCharacter(core) ? JSON.stringify(this.#textAt(address)) : this.#rustText(unit, core, address);
    const text = shown === undefined ? hex : `${hex} ${shown}`;
    const element = (index: number) =>
      this.variable(`[${index}]`, { unit, type: target, address: address + index * this.#sizeOf(unit, target) });
    const pointee = () => ({ ...element(0), name: "*" });
    const isReference = nameOf(type)?.startsWith("&") === true;
    if (isReference && core !== undefined && AGGREGATES.has(core.tag)) {
      // A reference of Rust is shown as its referent.
      return { ...common, element, target: pointee, ...this.#aggregate(unit, core, address) };
    }
    return { ...common, text, element, target: pointee, parts: () => [pointee()] };
  }

  /** The text at an address, up to a zero. */
  #textAt(address: number): string {
    const bytes = this.#memory().subarray(address, address + MAX_CHARACTERS);
    const end = bytes.indexOf(0);
    return new TextDecoder().decode(bytes.slice(0, end < 0 ? bytes.length : end)) + (end < 0 ? "…" : "");
  }

  #array(unit: Unit, type: Entry, address: number): Pick<Variable, "text" | "parts"> {
    return this.#elements(unit, this.referred(unit, type, AT.TYPE), lengthsOf(type), address);
  }

  #elements(
    unit: Unit,
    element: Entry | undefined,
    [length = 0, ...inner]: readonly number[],
    address: number,
  ): Pick<Variable, "text" | "parts"> {
    const size = inner.reduce((product, each) => product * each, this.#sizeOf(unit, element));
    const isText = inner.length === 0 && isCharacter(this.#core(unit, element));
    const count = Math.min(length, MAX_ELEMENTS);
    const parts = () =>
      Array.from({ length: count }, (_, k): Variable => {
        const at = address + k * size;
        if (inner.length === 0) return this.variable(`[${k}]`, { unit, type: element, address: at });
        return {
          name: `[${k}]`,
          type: `${this.typeName(unit, element)}${inner.map((each) => `[${each}]`).join("")}`,
          address: at,
          ...this.#elements(unit, element, inner, at),
        };
      });
    return { text: isText ? JSON.stringify(this.#textAt(address).slice(0, length)) : `[${length}]`, parts };
  }

  /** The size of a type in bytes. `depth` ends arrays of themselves. */
  #sizeOf(unit: Unit, type: Entry | undefined, depth = 0): number {
    const core = this.#core(unit, type);
    const size = numberOf(core, AT.BYTE_SIZE);
    if (size !== undefined || core === undefined) return size ?? 1;
    if (POINTERS.has(core.tag)) return unit.addressBytes;
    if (core.tag !== TAG.ARRAY_TYPE || depth > MAX_NAMES) return 1;
    return lengthsOf(core).reduce(
      (product, each) => product * each,
      this.#sizeOf(unit, this.referred(unit, core, AT.TYPE), depth + 1),
    );
  }

  #aggregate(unit: Unit, type: Entry, address: number): Pick<Variable, "text" | "parts" | "element"> {
    const text = this.#rustText(unit, type, address);
    if (text !== undefined) return { text };
    const sequence = this.#sequence(unit, type, address);
    if (sequence !== undefined) return this.#listed(sequence);
    const variant = childrenOf(type, TAG.VARIANT_PART).flatMap((part) => this.#variant(unit, part, address));
    if (variant.length === 1) return this.#variantValue(unit, variant[0], address);
    return { text: "{…}", parts: () => this.#members(unit, type, address) };
  }

  /** The elements of a sequence. */
  #listed({ unit, element, data, length }: Sequence): Pick<Variable, "text" | "parts" | "element"> {
    const size = this.#sizeOf(unit, element);
    return {
      ...this.#elements(unit, element, [length], data),
      text: `[${length}]`,
      element: (index) => {
        if (index < 0 || index >= length) throw new RangeError(`index ${index} of ${length} elements`);
        return this.variable(`[${index}]`, { unit, type: element, address: data + index * size });
      },
    };
  }

  /** A variant of a Rust enum, as Rust writes it: its name, with its fields in parentheses or braces. */
  #variantValue(unit: Unit, member: Entry, address: number): Pick<Variable, "text" | "parts"> {
    const name = nameOf(member) ?? "(unnamed)";
    const type = this.#core(unit, this.referred(unit, member, AT.TYPE));
    const at = address + placeOf(member);
    if (type === undefined || !AGGREGATES.has(type.tag)) return { text: name };
    const fields = childrenOf(type, TAG.MEMBER);
    if (fields.length === 0) return { text: name };
    const isTuple = fields.every((field) => /^__[0-9]+$/.test(nameOf(field) ?? ""));
    return { text: isTuple ? `${name}(…)` : `${name} {…}`, parts: () => this.#members(unit, type, at) };
  }

  /** The text of a Rust `str` or `String`; undefined for other types. */
  #rustText(unit: Unit, type: Entry | undefined, address: number): string | undefined {
    if (type === undefined || !AGGREGATES.has(type.tag)) return undefined;
    const name = nameOf(type) ?? "";
    const vector = name === "String" ? childrenOf(type, TAG.MEMBER).find((each) => nameOf(each) === "vec") : undefined;
    const bytes = vector === undefined
      ? /^&(?:mut )?str$/.test(name) ? this.#sequence(unit, type, address) : undefined
      : this.#sequence(unit, this.#core(unit, this.referred(unit, vector, AT.TYPE)), address + placeOf(vector));
    if (bytes === undefined) return undefined;
    const shown = this.#memory().slice(bytes.data, bytes.data + Math.min(bytes.length, MAX_CHARACTERS));
    return JSON.stringify(new TextDecoder().decode(shown)) + (bytes.length > MAX_CHARACTERS ? "…" : "");
  }

  /** The elements of a Rust slice, `str` or `Vec` at an address; undefined for other types and impossible values. */
  #sequence(unit: Unit, type: Entry | undefined, address: number): Sequence | undefined {
    const name = nameOf(type);
    if (type === undefined || name === undefined) return undefined;
    const members = childrenOf(type, TAG.MEMBER);
    const isVector = name.startsWith("Vec<");
    if (!isVector && !/^&(?:mut )?(?:str$|\[)/.test(name)) return undefined;
    const [data, length] = (isVector ? ["buf", "len"] : ["data_ptr", "length"]).map((wanted) =>
      members.find((each) => nameOf(each) === wanted)
    );
    const pointer = data === undefined ? undefined : this.#pointerIn(unit, data, address);
    const count = length === undefined ? undefined : this.#numberIn(unit, length, address);
    if (pointer === undefined || count === undefined || count < 0 || !this.#has(pointer.target)) return undefined;
    const parameter = childrenOf(type, TAG.TEMPLATE_TYPE_PARAMETER).find((each) => nameOf(each) === "T");
    const element = parameter === undefined
      ? this.referred(unit, pointer.type, AT.TYPE)
      : this.referred(unit, parameter, AT.TYPE);
    return { unit, element, data: pointer.target, length: count };
  }

  /** The first pointer in a member or its members, within `limit` members. */
  #pointerIn(
    unit: Unit,
    member: Entry,
    address: number,
    limit = { left: MAX_SEARCHED },
  ): { readonly type: Entry; readonly target: number } | undefined {
    if (limit.left-- <= 0) return undefined;
    const type = this.#core(unit, this.referred(unit, member, AT.TYPE));
    const at = address + placeOf(member);
    if (type === undefined) return undefined;
    if (POINTERS.has(type.tag)) {
      return { type, target: Number(this.#bits({ unit, type, address: at }, unit.addressBytes)) };
    }
    if (!AGGREGATES.has(type.tag)) return undefined;
    for (const inner of childrenOf(type, TAG.MEMBER)) {
      const found = this.#pointerIn(unit, inner, at, limit);
      if (found !== undefined || limit.left <= 0) return found;
    }
    return undefined;
  }

  /** The value of a member that is a pointer or a number; undefined for one that has members itself. */
  #numberIn(unit: Unit, member: Entry, address: number): number | undefined {
    const core = this.#core(unit, this.referred(unit, member, AT.TYPE));
    if (core === undefined || AGGREGATES.has(core.tag)) return undefined;
    const { value } = this.#member(unit, member, 0, address);
    return value === undefined ? undefined : Number(value);
  }

  #members(unit: Unit, type: Entry, address: number): Variable[] {
    const members = childrenOf(type, TAG.MEMBER);
    const variants = childrenOf(type, TAG.VARIANT_PART).flatMap((part) => this.#variant(unit, part, address));
    return [...members, ...variants].map((member, k) => this.#member(unit, member, k, address));
  }

  #member(unit: Unit, member: Entry, index: number, address: number): Variable {
    const type = this.referred(unit, member, AT.TYPE);
    const bits = numberOf(member, AT.BIT_SIZE);
    const width = bits === undefined || bits < 1 || bits > 64 ? undefined : bits;
    const name = nameOf(member) ?? `(unnamed ${index})`;
    const at = address + placeOf(member);
    if (width === undefined) return this.variable(name, { unit, type, address: at });
    const bit = firstBit(member, width, this.#sizeOf(unit, type));
    return this.variable(name, { unit, type, address: at + (bit >> 3), field: { shift: bit & 7, width } });
  }

  /** The member of the variant that is in use (Rust's enums). */
  #variant(unit: Unit, part: Entry, address: number): Entry[] {
    const discriminant = this.referred(unit, part, AT.DISCR);
    const value = discriminant === undefined ? undefined : this.#member(unit, discriminant, 0, address).value;
    const variants = childrenOf(part, TAG.VARIANT);
    const number = (variant: Entry) => numberOf(variant, AT.DISCR_VALUE);
    const chosen = variants.find((each) => typeof value === "bigint" && number(each) === Number(value)) ??
      variants.find((each) => number(each) === undefined);
    return chosen === undefined ? [] : childrenOf(chosen, TAG.MEMBER);
  }
}

/** The lengths of an array's dimensions, outermost first. */
function lengthsOf(type: Entry): number[] {
  return type.children.slice(0, MAX_DIMENSIONS).filter(({ tag }) => tag === TAG.SUBRANGE_TYPE).map((range) => {
    const count = numberOf(range, AT.COUNT);
    return Math.max(0, count ?? (numberOf(range, AT.UPPER_BOUND) ?? -1) + 1);
  });
}

/** The first bit of a bit field. Up to DWARF 3 bits were counted from the most significant one of their storage. */
function firstBit(member: Entry, width: number, typeBytes: number): number {
  const fromTop = numberOf(member, AT.BIT_OFFSET);
  if (fromTop === undefined) return numberOf(member, AT.DATA_BIT_OFFSET) ?? 0;
  return Math.max(0, (numberOf(member, AT.BYTE_SIZE) ?? typeBytes) * 8 - fromTop - width);
}

function isCharacter(type: Entry | undefined): boolean {
  if (type?.tag !== TAG.BASE_TYPE || numberOf(type, AT.BYTE_SIZE) !== 1) return false;
  const encoding = numberOf(type, AT.ENCODING);
  return encoding === ATE.SIGNED_CHAR || encoding === ATE.UNSIGNED_CHAR;
}

function baseValue(bits: bigint, width: number, encoding: number | undefined): Value {
  if (encoding === ATE.FLOAT) {
    const view = new DataView(new ArrayBuffer(8));
    view.setBigUint64(0, BigInt.asUintN(64, bits), true);
    return width === 32 ? view.getFloat32(0, true) : view.getFloat64(0, true);
  }
  const isSigned = encoding === ATE.SIGNED || encoding === ATE.SIGNED_CHAR;
  return isSigned ? BigInt.asIntN(width, bits) : BigInt.asUintN(width, bits);
}

/** A number; a character with its sign, as in C. */
function characterText(value: Value, encoding: number | undefined): string {
  const isText = encoding === ATE.SIGNED_CHAR || encoding === ATE.UNSIGNED_CHAR || encoding === ATE.UTF;
  const code = Number(value);
  if (!isText || !(code >= 0x20 && code < 0x110000) || code === 0x7f) return valueText(value);
  return `${value} '${String.fromCodePoint(code)}'`;
}

/** Refuses a number that does not fit into the bytes of a small type. */
function requireFit(value: number, size: number, text: string): void {
  const limit = 2 ** (8 * size);
  if (value < -limit / 2 || value >= limit) throw new RangeError(`${text} does not fit into ${size} bytes`);
}
