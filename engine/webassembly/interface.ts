/**
 * Web IDL semantics shared by the interfaces and operations of the JavaScript API: property attributes, internal slots,
 * and argument conversions. In: arbitrary values from a program. Out: a value of the required type, or the TypeError
 * that Web IDL prescribes, prefixed with `where`.
 *
 * Invariant: conversions run in the order of the arguments, before any side effect.
 */

/** An internal slot: maps the objects of an interface to engine values, with one object for each value. */
export class Slot<Outer extends object, Inner extends object> {
  readonly #inner = new WeakMap<object, Inner>();
  readonly #outer = new WeakMap<Inner, Outer>();
  /** The name of the interface. */
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  put(outer: Outer, inner: Inner): void {
    this.#inner.set(outer, inner);
    this.#outer.set(inner, outer);
  }

  /** The engine value of `value`; undefined if `value` is not an object of the interface. */
  of(value: unknown): Inner | undefined {
    return typeof value === "object" && value !== null ? this.#inner.get(value) : undefined;
  }

  /** The engine value of a receiver or argument. Throws TypeError if `value` is not an object of the interface. */
  require(value: unknown, where: string): Inner {
    const inner = this.of(value);
    if (inner === undefined) throw new TypeError(`${where} must be a WebAssembly.${this.name}`);
    return inner;
  }

  /** The object for `inner`, made with `prototype` when there is none yet. */
  outerOf(inner: Inner, prototype: Outer): Outer {
    let outer = this.#outer.get(inner);
    if (outer === undefined) {
      outer = Object.create(prototype) as Outer;
      this.put(outer, inner);
    }
    return outer;
  }
}

/**
 * Sets the property attributes that Web IDL prescribes for an interface: members are enumerable, and the prototype has
 * a name.
 */
export function defineInterface(name: string, constructor: { readonly prototype: object }): void {
  const { prototype } = constructor;
  for (const key of Object.getOwnPropertyNames(prototype)) {
    if (key !== "constructor") Object.defineProperty(prototype, key, { enumerable: true });
  }
  for (const key of Object.getOwnPropertyNames(constructor)) {
    if (key !== "length" && key !== "name" && key !== "prototype") {
      Object.defineProperty(constructor, key, { enumerable: true });
    }
  }
  Object.defineProperty(prototype, Symbol.toStringTag, { value: `WebAssembly.${name}`, configurable: true });
}

/** A dictionary argument. */
export function requireObject(value: unknown, where: string): Record<string, unknown> {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) {
    throw new TypeError(`${where} must be an object`);
  }
  return value as Record<string, unknown>;
}

/** The iterable `value` as an array. */
export function sequence(value: unknown, where: string): unknown[] {
  if ((typeof value !== "object" && typeof value !== "function") || value === null || !(Symbol.iterator in value)) {
    throw new TypeError(`${where} must be iterable`);
  }
  return [...value as Iterable<unknown>];
}

/** `[EnforceRange] unsigned long`. */
export function toU32(value: unknown, where: string): number {
  const number = Math.trunc(Number(typeof value === "bigint" ? refuseBigInt(where) : value));
  if (!(number >= 0 && number <= 0xffff_ffff)) {
    throw new TypeError(`${where} must be a whole number between 0 and 2^32 - 1`);
  }
  return number + 0;
}

function refuseBigInt(where: string): never {
  throw new TypeError(`${where} must be a number, not a bigint`);
}

/** A size or an index of a memory or table with 64-bit addresses: a bigint. */
function toU64(value: unknown, where: string): bigint {
  if (typeof value === "number") throw new TypeError(`${where} must be a bigint, not a number`);
  const bits = BigInt(value as bigint); // undefined and symbols are TypeErrors
  if (bits < 0n || bits > 0xffff_ffff_ffff_ffffn) throw new TypeError(`${where} must be between 0 and 2^64 - 1`);
  return bits;
}

/** An address as a number; rounding above 2^53 is harmless, because such addresses exceed all limits. */
export function toAddress(value: unknown, wide: boolean, where: string): number {
  return wide ? Number(toU64(value, where)) : toU32(value, where);
}

/** A number as an address. */
export function fromAddress(value: number, wide: boolean): number | bigint {
  return wide ? BigInt(value) : value;
}

/** The form of descriptors: with type reflection `minimum` may stand for `initial`. */
export const descriptorForm = { reflects: false };

/** Sizes of memories and tables. */
interface SizeDescriptor {
  wide: boolean;
  min: bigint;
  max: bigint | undefined;
}

/** Reads `address`, `initial` and `maximum` of a descriptor; neither may be more than `most`. */
export function readSizes(
  descriptor: Record<string, unknown>,
  most: (wide: boolean) => bigint,
  where: string,
): SizeDescriptor {
  const { address } = descriptor;
  const name = address === undefined ? "i32" : String(address); // converted once: a program sees each conversion
  if (name !== "i32" && name !== "i64") {
    throw new TypeError(`${where}: the property 'address' must be "i32" or "i64"`);
  }
  const wide = name === "i64";
  const size = (name: string): bigint | undefined => {
    const value = descriptor[name];
    if (value === undefined) return undefined;
    const text = `${where}: the property '${name}'`;
    return wide ? toU64(value, text) : BigInt(toU32(value, text));
  };
  let min = size("initial");
  const max = size("maximum");
  if (descriptorForm.reflects) {
    const minimum = size("minimum");
    if (min !== undefined && minimum !== undefined) {
      throw new TypeError(`${where}: the properties 'initial' and 'minimum' exclude each other`);
    }
    min ??= minimum;
  }
  if (min === undefined) throw new TypeError(`${where}: the property 'initial' is required`);
  if (min > most(wide)) throw new RangeError(`${where}: the property 'initial' must be at most ${most(wide)}`);
  if (max !== undefined && max < min) {
    throw new RangeError(`${where}: the property 'maximum' must be at least ${min}, the initial size`);
  }
  return { wide, min, max };
}

/** A getter that works on real buffers only, of this realm or another. */
const LENGTH = Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, "byteLength")!.get!;

/** The value of a getter of the host; undefined if it refuses the receiver. */
function got(getter: () => unknown, receiver: unknown): unknown {
  try {
    return Reflect.apply(getter, receiver, []);
  } catch {
    return undefined;
  }
}

/** True for an ArrayBuffer. Prototypes and names of objects do not count. */
function isBuffer(source: unknown): source is ArrayBuffer {
  return typeof source === "object" && source !== null && got(LENGTH, source) !== undefined;
}

/**
 * A copy of the bytes of an ArrayBuffer or a view, none if it is detached (Web IDL, "get a copy of the bytes held by
 * the buffer source"). A SharedArrayBuffer itself is refused, as in V8; views of one are not.
 */
export function bytesOf(source: unknown, where: string): Uint8Array<ArrayBuffer> {
  if (ArrayBuffer.isView(source)) {
    try {
      return new Uint8Array(source.buffer, source.byteOffset, source.byteLength).slice();
    } catch (error) {
      if (error instanceof RangeError) throw error; // out of memory
      return new Uint8Array(0);
    }
  }
  if (isBuffer(source)) return source.byteLength === 0 ? new Uint8Array(0) : new Uint8Array(source).slice();
  throw new TypeError(`${where}: the first argument must be an ArrayBuffer or a typed array object`);
}
