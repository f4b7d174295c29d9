/**
 * A small interpreter of the JSON Schema subset that waft's schemas use, and that plugins may use in `configSchema`.
 *
 * Input: a value from json_read and a schema. Output: every violation with its pointer and rule, in document order. It
 * replaces ajv where ajv's load and compile time would be noticeable (every `waft run` reads a lockfile), and for
 * hostile schemas, which ajv must not see. Tests compare its verdicts with ajv's. Never throws on any value; cost is
 * linear in the value.
 */
import { isObject, type JsonObject, type JsonValue } from "./json_read.ts";
import { quote, readablePointer, stepInto } from "./diagnostic.ts";
import { nearestName } from "./grammar.ts";
import { jcs } from "./integrity.ts";

/** The subset of JSON Schema (draft 7) understood here. */
export interface Schema {
  readonly $ref?: string;
  /** For readers and editors; it accepts everything. */
  readonly description?: string;
  readonly type?: string;
  readonly const?: JsonValue;
  readonly enum?: readonly JsonValue[];
  readonly properties?: { readonly [name: string]: Schema };
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly propertyNames?: Schema;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly default?: JsonValue;
  readonly definitions?: { readonly [name: string]: Schema };
}

/** A violation of a schema. */
export interface Violation {
  readonly pointer: string;
  /** Whether the key or the value is to blame; decides the column. */
  readonly part: "key" | "value";
  /** The keyword of the schema that is violated. */
  readonly rule: string;
  readonly message: string;
  readonly help?: string;
  /** The offending key, for `additionalProperties`. */
  readonly key?: string;
}

/**
 * Formats: name to test and description of the accepted text. A format that is not listed is a violation, never
 * ignored.
 */
export type Formats = { readonly [name: string]: { readonly test: (text: string) => boolean; readonly asks: string } };

/** Descriptions of patterns in words, by source. */
const PATTERN_WORDS = new Map<string, string>();

/** Gives a pattern a description used in messages. */
export function describePattern(source: string, words: string): void {
  PATTERN_WORDS.set(source, words);
}

const REGEXPS = new Map<string, RegExp>();

function regexp(source: string): RegExp {
  let found = REGEXPS.get(source);
  if (found === undefined) REGEXPS.set(source, found = new RegExp(source, "u"));
  return found;
}

/** Every violation of `schema` by `value`; at most `limit` of them. */
export function walkSchema(
  value: JsonValue,
  schema: Schema,
  options: { readonly formats?: Formats; readonly limit?: number; readonly pointer?: string } = {},
): Violation[] {
  const found: Violation[] = [];
  const limit = options.limit ?? 1000;
  const add = (v: Violation): void => {
    if (found.length < limit) found.push(v);
  };
  check(value, schema, options.pointer ?? "", "value");
  return found;

  function check(value: JsonValue, given: Schema, pointer: string, part: "key" | "value"): void {
    const rules = resolveRef(given);
    if (rules.type !== undefined && !hasType(value, rules.type)) {
      add({ pointer, part, rule: "type", message: messageOf("type", pointer, { expected: rules.type, value }) });
      return;
    }
    if (rules.const !== undefined && jcs(value) !== jcs(rules.const)) {
      add({ pointer, part, rule: "const", message: messageOf("const", pointer, { expected: rules.const, value }) });
    }
    if (rules.enum !== undefined && !rules.enum.some((e) => jcs(e) === jcs(value))) {
      const near = typeof value === "string"
        ? nearestName(value, rules.enum.filter((e) => typeof e === "string"))
        : undefined;
      add({
        pointer,
        part,
        rule: "enum",
        message: messageOf("enum", pointer, { expected: [...rules.enum], value }),
        ...(near === undefined ? {} : { help: `did you mean "${near}"?` }),
      });
    }
    if (typeof value === "string") checkString(value, rules, pointer, part);
    else if (typeof value === "number") {
      if (rules.minimum !== undefined && value < rules.minimum) bound("minimum", rules.minimum);
      if (rules.maximum !== undefined && value > rules.maximum) bound("maximum", rules.maximum);
    } else if (Array.isArray(value)) {
      if (rules.minItems !== undefined && value.length < rules.minItems) bound("minItems", rules.minItems);
      if (rules.maxItems !== undefined && value.length > rules.maxItems) bound("maxItems", rules.maxItems);
      if (rules.uniqueItems === true && !areUnique(value)) bound("uniqueItems", null);
      const items = rules.items;
      if (items !== undefined) value.forEach((item, i) => check(item, items, stepInto(pointer, i), "value"));
    } else if (isObject(value)) checkObject(value, rules, pointer);

    function bound(rule: string, expected: JsonValue): void {
      add({ pointer, part, rule, message: messageOf(rule, pointer, { expected, value }) });
    }
  }

  function checkString(value: string, rules: Schema, pointer: string, part: "key" | "value"): void {
    const length = [...value].length;
    const say = (rule: string, expected: JsonValue): void =>
      add({ pointer, part, rule, message: messageOf(rule, pointer, { expected, value, part }) });
    if (rules.minLength !== undefined && length < rules.minLength) say("minLength", rules.minLength);
    // The bound is tested first so that no pattern runs on a string longer than it may be.
    if (rules.maxLength !== undefined && length > rules.maxLength) return say("maxLength", rules.maxLength);
    if (rules.pattern !== undefined && !regexp(rules.pattern).test(value)) say("pattern", rules.pattern);
    if (rules.format !== undefined) {
      const format = options.formats?.[rules.format];
      if (format === undefined || !format.test(value)) say("format", rules.format);
    }
  }

  function checkObject(value: JsonObject, rules: Schema, pointer: string): void {
    const known = rules.properties ?? {};
    for (const name of rules.required ?? []) {
      if (!Object.hasOwn(value, name)) {
        add({ pointer, part: "value", rule: "required", message: messageOf("required", pointer, { expected: name }) });
      }
    }
    for (const name of Object.keys(value)) {
      const at = stepInto(pointer, name);
      if (rules.propertyNames !== undefined) check(name, rules.propertyNames, at, "key");
      if (Object.hasOwn(known, name)) check(value[name]!, known[name]!, at, "value");
      else if (rules.additionalProperties === false) {
        add(unknownKey(pointer, name, Object.keys(known)));
      } else if (typeof rules.additionalProperties === "object") {
        check(value[name]!, rules.additionalProperties, at, "value");
      }
    }
  }

  function resolveRef(given: Schema): Schema {
    if (given.$ref === undefined) return given;
    const name = given.$ref.slice("#/definitions/".length);
    const found = schema.definitions?.[name];
    if (found === undefined) throw new Error(`schema has no definition ${name}`);
    return found;
  }
}

/** The violation for a key that its object does not allow. */
export function unknownKey(pointer: string, name: string, known: readonly string[]): Violation {
  const near = nearestName(name, known);
  return {
    pointer: stepInto(pointer, name),
    part: "key",
    rule: "additionalProperties",
    key: name,
    message: `${quote(name)} is not allowed in ${readablePointer(pointer)}`,
    ...(near === undefined
      ? known.length > 0 && known.length <= 14 ? { help: `allowed here: ${known.join(", ")}` } : {}
      : { help: `did you mean "${near}"?` }),
  };
}

/** The sentence for a violated rule; shared with the ajv path of the manifest. */
export function messageOf(
  rule: string,
  pointer: string,
  facts: { readonly expected: JsonValue; readonly value?: JsonValue; readonly part?: "key" | "value" },
): string {
  const { expected, value } = facts;
  const what = facts.part === "key" ? `the key ${quote(String(value))}` : readablePointer(pointer);
  const shown = value === undefined ? "" : typeof value === "string" ? quote(value, 60) : kindOf(value);
  switch (rule) {
    case "type":
      return `${what} must be ${article(String(expected))}, not ${kindOf(value ?? null)}`;
    case "required":
      return `${what} needs ${quote(String(expected))}`;
    case "const":
      return `${what} must be ${JSON.stringify(expected)}`;
    case "enum": {
      const list = (expected as JsonValue[]).map((e) => JSON.stringify(e));
      return `${what} must be ${list.length > 12 ? "one of the listed values" : list.join(" or ")}, not ${shown}`;
    }
    case "minLength":
    case "maxLength":
      return `${what} must have ${rule === "minLength" ? "at least" : "at most"} ${expected} character${
        expected === 1 ? "" : "s"
      }, not ${[...String(value ?? "")].length}`;
    case "minItems":
    case "maxItems":
      return `${what} must have ${rule === "minItems" ? "at least" : "at most"} ${expected} item${
        expected === 1 ? "" : "s"
      }, not ${Array.isArray(value) ? value.length : "another number"}`;
    case "uniqueItems":
      return `${what} must not contain duplicates`;
    case "minimum":
    case "maximum":
      return `${what} must be ${rule === "minimum" ? "at least" : "at most"} ${expected}, not ${value}`;
    case "pattern":
      return `${what}${facts.part === "key" || shown === "" ? "" : ` ${shown}`} ${
        PATTERN_WORDS.get(String(expected)) ?? `does not match ${expected}`
      }`;
    case "format":
      return `${what}${shown === "" ? "" : ` ${shown}`} is not in the format "${expected}"`;
    default:
      return `${what} violates ${rule}`;
  }
}

function hasType(value: JsonValue, type: string): boolean {
  if (type === "integer") return Number.isInteger(value);
  if (type === "number") return typeof value === "number";
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isObject(value);
  if (type === "null") return value === null;
  const kind: string = typeof value;
  return kind === type;
}

/** True when no two items are equal as JSON values. */
export function areUnique(items: readonly JsonValue[]): boolean {
  return new Set(items.map((item) => jcs(item))).size === items.length;
}

function kindOf(value: JsonValue): string {
  if (value === null) return "null";
  return article(Array.isArray(value) ? "array" : typeof value);
}

function article(type: string): string {
  if (type === "null") return type;
  return (/^[aeio]/.test(type) ? "an " : "a ") + type;
}
