/**
 * WebAssembly.Tag, WebAssembly.Exception and JSTag (JavaScript API, "Tags" and "Exceptions"). An exception is the
 * engine's WasmException with another prototype, so that the same object passes through compiled code and back; a tag
 * is a separate object.
 */
import {
  isException,
  isWasmException,
  JS_TAG,
  Tag as RuntimeTag,
  WasmException,
} from "../runtime/exceptions/exception.ts";
import { realmStore } from "../api/engine.ts";
import { canonicalFuncTypeId } from "../wasm/subtype.ts";
import { type FuncType, V128 } from "../wasm/types.ts";
import { defineInterface, requireObject, sequence, Slot, toU32 } from "./interface.ts";
import { valueType } from "./value_types.ts";

/** Internal slots of tags. */
export const TAGS: Slot<Tag, RuntimeTag> = new Slot("Tag");

/** Identifies a kind of exception. */
export class Tag {
  constructor(descriptor: unknown) {
    const where = "WebAssembly.Tag()";
    const { parameters } = requireObject(descriptor, `${where}: the first argument`);
    const params = sequence(parameters, `${where}: the property 'parameters'`)
      .map((name) => valueType(name, `${where}: a parameter`));
    const type: FuncType = { kind: "func", params, results: [] };
    TAGS.put(this, new RuntimeTag(type, canonicalFuncTypeId(type), realmStore()));
  }
}

/** Accessors of the engine's exceptions, for objects whose prototype is another. */
const PAYLOAD = Object.getOwnPropertyDescriptor(WasmException.prototype, "payload")!.get!;
const OWN_TAG = Object.getOwnPropertyDescriptor(WasmException.prototype, "tag")!.get!;

function tagOf(value: unknown, where: string): RuntimeTag {
  if (!isWasmException(value)) throw new TypeError(`${where}: the receiver must be a WebAssembly.Exception`);
  return OWN_TAG.call(value) as RuntimeTag;
}

/** An exception with a tag and values. */
export class Exception {
  constructor(tag: unknown, payload: unknown, ...options: unknown[]) {
    const where = "WebAssembly.Exception()";
    const runtimeTag = TAGS.require(tag, `${where}: the first argument`);
    if (runtimeTag === JS_TAG) throw new TypeError(`${where}: the first argument must not be WebAssembly.JSTag`);
    const values = sequence(payload, `${where}: the second argument`);
    const traceStack = options[0] === undefined || options[0] === null
      ? false
      : Boolean(requireObject(options[0], `${where}: the third argument`).traceStack);
    const { params } = runtimeTag.type;
    if (values.length !== params.length) {
      throw new TypeError(`${where}: the tag has ${params.length} parameters, not ${values.length}`);
    }
    if (params.some((type) => type === V128 || isException(type))) {
      throw new TypeError(`${where}: v128 and exnref have no JavaScript values`);
    }
    params.forEach((_, k) => void values[k]);
    const error = new WasmException(runtimeTag, values);
    return dress(error, new.target.prototype, traceStack) as Exception;
  }

  /** Whether it is an exception of `tag`. */
  is(tag: unknown): boolean {
    const own = tagOf(this, "WebAssembly.Exception.is()");
    return TAGS.require(tag, "WebAssembly.Exception.is(): the first argument") === own;
  }

  /** The value number `index` of an exception of `tag`. */
  getArg(tag: unknown, index: unknown): unknown {
    const where = "WebAssembly.Exception.getArg()";
    const own = tagOf(this, where);
    const wanted = TAGS.require(tag, `${where}: the first argument`);
    const at = toU32(index, `${where}: the index`);
    if (wanted !== own) throw new TypeError(`${where}: the exception has another tag`);
    const { params } = own.type;
    if (at >= params.length) {
      throw new RangeError(`${where}: index ${at} is out of bounds: the exception has ${params.length} values`);
    }
    if (params[at] === V128 || isException(params[at])) {
      throw new TypeError(`${where}: v128 and exnref have no JavaScript values`);
    }
    return (PAYLOAD.call(this) as unknown[])[at];
  }

  /** The stack at its construction, if that was requested. */
  get stack(): string | undefined {
    tagOf(this, "WebAssembly.Exception.stack");
    return STACKS.get(this);
  }
}

const STACKS = new WeakMap<object, string>();

function dress(error: WasmException, prototype: object, traceStack: boolean): object {
  const stack = traceStack ? error.stack ?? "" : "";
  // V8 and JavaScriptCore add properties of their own to errors.
  for (const key of Object.getOwnPropertyNames(error)) Reflect.deleteProperty(error, key);
  if (traceStack) {
    STACKS.set(error, stack);
    Object.defineProperty(error, "stack", { value: stack, writable: true, enumerable: false, configurable: true });
  }
  return Object.setPrototypeOf(error, prototype) as object;
}

/** An exception that a guest threw, as WebAssembly.Exception. */
export function dressException(error: WasmException): object {
  const isBare = Object.getPrototypeOf(error) === WasmException.prototype;
  return isBare ? dress(error, Exception.prototype, false) : error;
}

defineInterface("Tag", Tag);
defineInterface("Exception", Exception);

/** The tag of exceptions thrown by JavaScript. */
export const JSTag: Tag = TAGS.outerOf(JS_TAG, Tag.prototype);
