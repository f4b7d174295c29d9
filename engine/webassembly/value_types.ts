/**
 * The names of value types in the JavaScript API ("ToValueType"), one row each: those of the specification, and the
 * abstract heap types that V8 accepts too.
 */
import { descriptorForm } from "./interface.ts";
import { EXTERNREF, F32, F64, FUNCREF, HEAP, I32, I64, isRef, refType, V128, type ValType } from "../wasm/types.ts";

const TYPES: Readonly<Record<string, ValType>> = {
  i32: I32,
  i64: I64,
  f32: F32,
  f64: F64,
  v128: V128,
  anyfunc: FUNCREF,
  externref: EXTERNREF,
  anyref: refType(true, HEAP.any),
  eqref: refType(true, HEAP.eq),
  i31ref: refType(true, HEAP.i31),
  structref: refType(true, HEAP.struct),
  arrayref: refType(true, HEAP.array),
};

/** The value type called `name`. Throws TypeError when there is none. */
export function valueType(name: unknown, where: string): ValType {
  const text = String(name);
  // Types that type reflection shows can be given back.
  const known = descriptorForm.reflects && text === "funcref" ? "anyfunc" : text;
  const type = Object.hasOwn(TYPES, known) ? TYPES[known] : undefined;
  if (type === undefined) {
    throw new TypeError(`${where} must be one of ${Object.keys(TYPES).join(", ")}, not "${text}"`);
  }
  return type;
}

/** The reference type called `name`. Throws TypeError when there is none. */
export function referenceType(name: unknown, where: string): ValType {
  const type = valueType(name, where);
  if (!isRef(type)) throw new TypeError(`${where} must be a reference type, not "${String(name)}"`);
  return type;
}
