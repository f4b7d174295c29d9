/**
 * The builtin "wasm:js-prototypes" "configureAll" (custom descriptors, "Declarative Prototype Initialization"): a
 * module gives its prototypes methods, getters, setters, parents and constructors. In: arrays of the module, as objects
 * of JavaScript: prototypes, functions, and bytes that say which function goes where. Out: changed prototypes, and
 * constructors on an object of the program.
 *
 * Loaded with the first module that imports the builtin.
 *
 * Invariant: the arrays are copied before the first change, which can run code of the program. Malformed data
 * traps with its offset; prototypes that were configured before it keep their new properties.
 */
import { InvalidError } from "../base/errors.ts";
import { OBJECT } from "../abi/gc_layout.ts";
import type { Store } from "../runtime/instance/store.ts";
import { canonicalTypeIds } from "../wasm/subtype.ts";
import type { Import, Module } from "../wasm/module.ts";
import { type CompositeType, EXTERNREF, FUNCREF, I8, refType, type SubType, type ValType } from "../wasm/types.ts";

/** The types of the builtin: arrays of prototypes, of functions and of bytes, each in a group of its own. */
const TYPES: readonly SubType[] = [
  ...[EXTERNREF, FUNCREF, I8].map((storage) => plain({ kind: "array", field: { storage, mutable: true } })),
  plain({ kind: "func", params: [0, 1, 2].map((index) => refType(true, index)).concat(EXTERNREF), results: [] }),
];

function plain(composite: CompositeType): SubType {
  return { final: true, supertypes: [], composite };
}

/** The canonical ids of these types. */
function typeIds(): Int32Array {
  return canonicalTypeIds({ types: [...TYPES], recGroups: TYPES.map((_, start) => ({ start, count: 1 })) });
}

const PROTOTYPES = 0, FUNCTIONS = 1, DATA = 2, BUILTIN = 3;

/** Throws InvalidError unless an import from the namespace is the builtin. */
export function checkPrototypesImport(module: Module, { module: namespace, name, desc, offset }: Import): void {
  if (name !== "configureAll") throw new InvalidError(`Unknown builtin "${namespace}" "${name}"`, { offset });
  if (desc.kind !== "func" || canonicalTypeIds(module)[desc.typeIndex] !== typeIds()[BUILTIN]) {
    throw new InvalidError(`The builtin "${namespace}" "${name}" has another type`, { offset });
  }
}

type Func = (...args: unknown[]) => unknown;

/** The realm's store, once a module imports the builtin. */
let store: Store;

function trap(message: string): never {
  throw store.traps.withMessage(message);
}

/** Address and length of an array of the builtin's type `type`; traps for null, and for other objects. */
function arrayOf(array: unknown, type: number): { readonly address: number; readonly length: number } {
  const address = store.heap.references.addressOf(array);
  if (address === undefined) return trap("null array reference");
  const header = new DataView(store.thread.host.view(address, OBJECT.FIELDS));
  if (header.getUint32(OBJECT.TYPE_ID, true) !== typeIds()[type]) return trap("cast failure");
  return { address: address + OBJECT.FIELDS, length: header.getUint32(OBJECT.LENGTH, true) };
}

/** The elements of an array of references of value type `element`. */
function elementsOf(array: unknown, type: number, element: ValType): unknown[] {
  const { address, length } = arrayOf(array, type);
  const words = new BigUint64Array(store.thread.host.view(address, length * 8)).slice();
  return Array.from(words, (word) => store.fromWord(Number(word), element));
}

function bytesOf(array: unknown): Uint8Array {
  const { address, length } = arrayOf(array, DATA);
  return new Uint8Array(store.thread.host.view(address, length)).slice();
}

/** The data: numbers in LEB128, names in UTF-8. */
class Configuration {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Traps at the current place, or at `at`. */
  fail(message: string, at = this.#at): never {
    return trap(`invalid configuration of prototypes at byte ${at}: ${message}`);
  }

  byte(): number {
    if (this.#at >= this.#bytes.length) this.fail("unexpected end");
    return this.#bytes[this.#at++];
  }

  /** A number of at most 32 bits, signed if `isSigned`. */
  #number(isSigned: boolean): number {
    const start = this.#at;
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte >= 0x80) continue;
      const signed = isSigned && (byte & 0x40) !== 0 ? value - 2 ** (shift + 7) : value;
      if (signed > 0xffff_ffff || isSigned && (signed | 0) !== signed) break;
      return signed;
    }
    this.fail("integer too large", start);
  }

  count(): number {
    return this.#number(false);
  }

  /** The index of a parent; −1 for none. */
  parent(prototype: number): number {
    const start = this.#at;
    const index = this.#number(true);
    if (index < -1 || index >= prototype) this.fail(`prototype ${prototype} cannot have the parent ${index}`, start);
    return index;
  }

  name(): string {
    const length = this.count();
    const start = this.#at;
    if (length > this.#bytes.length - start) this.fail("unexpected end", start);
    this.#at = start + length;
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.#bytes.subarray(start, this.#at));
    } catch {
      this.fail("malformed UTF-8", start);
    }
  }

  end(): void {
    if (this.#at < this.#bytes.length) this.fail("bytes are left over");
  }
}

/** Takes the elements of an array in order. */
class Queue<T> {
  readonly #items: readonly T[];
  #next = 0;

  constructor(items: readonly T[]) {
    this.#items = items;
  }

  take(config: Configuration, what: string): T {
    if (this.#next >= this.#items.length) config.fail(`there are only ${this.#items.length} ${what}`);
    return this.#items[this.#next++];
  }

  end(config: Configuration, what: string): void {
    if (this.#next < this.#items.length) config.fail(`${this.#items.length - this.#next} ${what} are left over`);
  }
}

function nextFunction(config: Configuration, functions: Queue<unknown>): Func {
  const func = functions.take(config, "functions");
  return func === null ? trap("null function reference") : func as Func;
}

function named(func: Func, name: string): Func {
  return Object.defineProperty(func, "name", { value: name, configurable: true });
}

/** A function that passes its receiver as the first argument. */
function withReceiver(func: Func, name: string): Func {
  const { method } = {
    method(this: unknown, ...args: unknown[]): unknown {
      return func(this, ...args);
    },
  };
  return named(method, name);
}

const METHOD = 0, GETTER = 1, SETTER = 2;

/** Installs functions on `target`, wrapped if they take the receiver. */
function installMethods(
  config: Configuration,
  functions: Queue<unknown>,
  target: object,
  takesReceiver: boolean,
): void {
  for (let left = config.count(); left > 0; left--) {
    const kind = config.byte();
    if (kind > SETTER) config.fail(`unknown kind ${kind} of a method`);
    const name = config.name();
    const own = nextFunction(config, functions);
    const title = kind === METHOD ? name : `${kind === GETTER ? "get" : "set"} ${name}`;
    const func = takesReceiver ? withReceiver(own, title) : own;
    Object.defineProperty(
      target,
      name,
      kind === METHOD
        ? { value: func, writable: true, enumerable: false, configurable: true }
        : { [kind === GETTER ? "get" : "set"]: func, enumerable: false, configurable: true },
    );
  }
}

/** A constructor of objects with `prototype`, which `make` makes with `new` and without. */
function makeConstructor(make: Func, name: string, prototype: unknown): Func {
  const made = function (...args: unknown[]): unknown {
    return make(...args);
  };
  Object.defineProperty(made, "prototype", { value: prototype, writable: false });
  return named(made, name);
}

/** The builtin in the realm of `realm`. */
export function builtinOf(realm: Store): typeof configureAll {
  store = realm;
  return configureAll;
}

function configureAll(prototypes: unknown, functions: unknown, data: unknown, constructors: unknown): void {
  const objects = elementsOf(prototypes, PROTOTYPES, EXTERNREF);
  const pending = new Queue(objects);
  const funcs = new Queue(elementsOf(functions, FUNCTIONS, FUNCREF));
  const config = new Configuration(bytesOf(data));
  const count = config.count();
  for (let k = 0; k < count; k++) {
    const prototype = pending.take(config, "prototypes") as object;
    const constructorCount = config.count();
    if (constructorCount > 1) config.fail(`prototype ${k} has ${constructorCount} constructors`);
    if (constructorCount === 1) {
      const name = config.name();
      const made = makeConstructor(nextFunction(config, funcs), name, prototype);
      Object.defineProperty(prototype, "constructor", {
        value: made,
        writable: true,
        enumerable: false,
        configurable: true,
      });
      Object.defineProperty(constructors as object, name, {
        value: made,
        writable: true,
        enumerable: true,
        configurable: true,
      });
      installMethods(config, funcs, made, false);
    }
    installMethods(config, funcs, prototype, true);
    const parent = config.parent(k);
    if (parent >= 0) setParent(prototype, objects[parent]);
  }
  config.end();
  pending.end(config, "prototypes");
  funcs.end(config, "functions");
}

function setParent(prototype: unknown, parent: unknown): void {
  if (typeof prototype !== "object" && typeof prototype !== "function" || prototype === null) {
    throw new TypeError("configureAll(): a prototype with a parent must be an object");
  }
  Object.setPrototypeOf(prototype, parent as object | null);
}
