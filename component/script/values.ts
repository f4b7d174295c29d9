/**
 * Values in scripts of components: arguments of actions, and the expected results. In: tokens, or the JSON form that
 * `wasm-tools json-from-wast` writes (test support). Out: trees that convert to the JavaScript form of a value and
 * compare with it. Invariant: a float compares by its bits, except that all NaNs are equal, as in the Canonical ABI.
 */
import { type FloatBits, parseFloatLiteral } from "@waft/engine/internal/base/float";
import { LEFT, RIGHT, STRING } from "@waft/engine/internal/text/tokens";
import { camelCase } from "../abi/names.ts";
import type { ComponentCursor } from "../text/component_cursor.ts";

/** A value of a script. */
export type ScriptValue =
  /** Numbers, booleans, strings, characters and cases of enums. 64-bit integers are bigints. */
  | { readonly kind: "plain"; readonly value: boolean | number | bigint | string }
  /** Lists and tuples. */
  | { readonly kind: "list"; readonly items: readonly ScriptValue[] }
  | { readonly kind: "record"; readonly fields: readonly (readonly [name: string, value: ScriptValue])[] }
  | { readonly kind: "flags"; readonly names: readonly string[] }
  | { readonly kind: "option"; readonly value?: ScriptValue }
  | { readonly kind: "variant" | "result"; readonly tag: string; readonly value?: ScriptValue };

/** Limit on the nesting of values. */
const NESTING_LIMIT = 100;

/** Ranges of the integer types: signedness and bits. */
const INTEGERS: Readonly<Record<string, readonly [signed: boolean, bits: number]>> = {
  u8: [false, 8],
  s8: [true, 8],
  u16: [false, 16],
  s16: [true, 16],
  u32: [false, 32],
  s32: [true, 32],
  u64: [false, 64],
  s64: [true, 64],
};

/** The JavaScript form of a value, as arguments and results of exported functions have it. */
export function javaScriptValue(value: ScriptValue | undefined): unknown {
  if (value === undefined) return undefined;
  switch (value.kind) {
    case "plain":
      return value.value;
    case "list":
      return value.items.map(javaScriptValue);
    case "record":
      return Object.fromEntries(value.fields.map(([name, field]) => [camelCase(name), javaScriptValue(field)]));
    case "flags":
      return Object.fromEntries(value.names.map((name) => [camelCase(name), true]));
    case "option":
      return javaScriptValue(value.value);
    default:
      return value.value === undefined ? { tag: value.tag } : { tag: value.tag, val: javaScriptValue(value.value) };
  }
}

/** Whether the JavaScript value `actual` is `expected`; without `expected`, there must be no result. */
export function matchesValue(actual: unknown, expected: ScriptValue | undefined): boolean {
  if (expected === undefined) return actual === undefined;
  switch (expected.kind) {
    case "plain":
      return Object.is(actual, expected.value);
    case "list": {
      const items = itemsOf(actual);
      return items?.length === expected.items.length &&
        expected.items.every((item, index) => matchesValue(items[index], item));
    }
    case "record":
      return isObject(actual) && Object.keys(actual).length === expected.fields.length &&
        expected.fields.every(([name, field]) => matchesValue(actual[camelCase(name)], field));
    case "flags": {
      const names = new Set(expected.names.map(camelCase));
      return isObject(actual) && [...names].every((name) => actual[name] === true) &&
        Object.keys(actual).every((name) => names.has(name) || actual[name] !== true);
    }
    case "option":
      return matchesValue(actual, expected.value);
    default:
      return isObject(actual) && actual.tag === expected.tag && matchesValue(actual.val, expected.value);
  }
}

/** The elements of an array or of a typed array. */
function itemsOf(value: unknown): readonly unknown[] | undefined {
  if (ArrayBuffer.isView(value)) return Array.from(value as unknown as ArrayLike<unknown>);
  return Array.isArray(value) ? value : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** A JavaScript value in one line, for messages. */
export function valueText(value: unknown): string {
  const text = JSON.stringify(value, (_, part: unknown) => {
    if (typeof part === "bigint") return `${part}n`;
    if (typeof part === "number" && !Number.isFinite(part)) return String(part);
    return ArrayBuffer.isView(part) ? itemsOf(part) : part;
  });
  return text ?? "nothing";
}

/** Parses values in parentheses up to the closing parenthesis, without consuming it. */
export function parseValues(cursor: ComponentCursor, nesting = 0): ScriptValue[] {
  const values: ScriptValue[] = [];
  while (cursor.kind !== RIGHT) values.push(parseEnclosed(cursor, nesting));
  return values;
}

function parseEnclosed(cursor: ComponentCursor, nesting: number): ScriptValue {
  if (cursor.kind !== LEFT) return cursor.unexpectedToken();
  cursor.at++;
  const value = parseValue(cursor, nesting);
  cursor.expectClose();
  return value;
}

/** Parses a value without its parentheses. */
function parseValue(cursor: ComponentCursor, nesting: number): ScriptValue {
  if (nesting > NESTING_LIMIT) cursor.fail("value is nested too deep");
  const start = cursor.at;
  const word = cursor.word();
  const payload = (): { value?: ScriptValue } =>
    cursor.kind === RIGHT ? {} : { value: parseEnclosed(cursor, nesting + 1) };
  switch (word) {
    case "bool.const":
      return { kind: "plain", value: boolConstant(cursor) };
    case "f32.const":
    case "f64.const":
      return { kind: "plain", value: floatConstant(cursor, word === "f32.const" ? 32 : 64) };
    case "char.const":
    case "str.const":
    case "enum.const":
      return { kind: "plain", value: cursor.name() };
    case "list.const":
    case "tuple.const":
      return { kind: "list", items: parseValues(cursor, nesting + 1) };
    case "record.const":
      return { kind: "record", fields: parseFields(cursor, nesting + 1) };
    case "flags.const":
      return { kind: "flags", names: parseNames(cursor) };
    case "option.none":
      return { kind: "option" };
    case "option.some":
      return { kind: "option", ...payload() };
    case "result.ok":
    case "result.err":
      return { kind: "result", tag: word.slice("result.".length), ...payload() };
    case "variant.const":
      return { kind: "variant", tag: cursor.name(), ...payload() };
  }
  const [type, suffix] = word.split(".");
  if (suffix !== "const" || !Object.hasOwn(INTEGERS, type)) return cursor.unexpectedToken(start);
  return { kind: "plain", value: integerConstant(cursor, type) };
}

function boolConstant(cursor: ComponentCursor): boolean {
  if (cursor.takeWord("true")) return true;
  if (!cursor.takeWord("false")) cursor.unexpectedToken();
  return false;
}

function integerConstant(cursor: ComponentCursor, type: string): number | bigint {
  const [signed, bits] = INTEGERS[type];
  const text = cursor.tokens.wholeText(cursor.at);
  const match = /^([+-]?)(0x[0-9a-f]+|[0-9]+)$/i.exec(text.replaceAll("_", ""));
  if (match === null) return cursor.unexpectedToken();
  const magnitude = BigInt(match[2]);
  const value = match[1] === "-" ? -magnitude : magnitude;
  const limit = 1n << BigInt(bits);
  // As in core scripts, a signed type takes its unsigned form, too.
  if (value >= limit || value < (signed ? -limit / 2n : 0n)) cursor.fail(`${type} constant out of range`);
  cursor.at++;
  const wrapped = signed ? BigInt.asIntN(bits, value) : value;
  return bits === 64 ? wrapped : Number(wrapped);
}

const FLOAT = new DataView(new ArrayBuffer(8));

function floatConstant(cursor: ComponentCursor, width: 32 | 64): number {
  const bits: FloatBits = { lo: 0, hi: 0 };
  const text = cursor.tokens.wholeText(cursor.at).replace(/^nan:(canonical|arithmetic)$/, "nan");
  if (parseFloatLiteral(text, width, bits) !== "ok") cursor.unexpectedToken();
  cursor.at++;
  FLOAT.setUint32(0, bits.lo, true);
  FLOAT.setUint32(4, bits.hi, true);
  return width === 32 ? FLOAT.getFloat32(0, true) : FLOAT.getFloat64(0, true);
}

function parseFields(cursor: ComponentCursor, nesting: number): [string, ScriptValue][] {
  const fields: [string, ScriptValue][] = [];
  while (cursor.takeOpening("field")) {
    const name = cursor.name();
    fields.push([name, parseValue(cursor, nesting)]);
    cursor.expectClose();
  }
  return fields;
}

function parseNames(cursor: ComponentCursor): string[] {
  const names: string[] = [];
  while (cursor.kind === STRING) names.push(cursor.name());
  return names;
}
