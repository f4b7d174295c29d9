/**
 * A small interpreter of the JSON Schema subset that waft's schemas use, and that plugins may use in `configSchema`.
 *
 * In: a value from json_read and a schema. Out: every violation with its pointer and rule, in document order. It
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
  /** A note for readers and editors; it accepts everything. */
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

/** Options of a walk: the formats it knows, the maximum number of violations, the pointer of the value. */
interface WalkOptions {
  readonly formats?: Formats;
  readonly limit?: number;
  readonly pointer?: string;
}

/** Every violation of `schema` by `value`; at most `limit` of them. */
export function walkSchema(value: JsonValue, schema: Schema, options: WalkOptions = {}): Violation[] {
  const walk = new Walk(schema, options);
  walk.check(value, schema, { pointer: options.pointer ?? "", part: "value" });
  return walk.found;
}

/** The place of a value, or of a key. */
type Place = Pick<Violation, "pointer" | "part">;

class Walk {
  readonly found: Violation[] = [];
  readonly #schema: Schema;
  readonly #formats: Formats;
  readonly #limit: number;

  constructor(schema: Schema, { formats = {}, limit = 1000 }: WalkOptions) {
    this.#schema = schema;
    this.#formats = formats;
    this.#limit = limit;
  }

  #add(violation: Violation): void {
    if (this.found.length < this.#limit) this.found.push(violation);
  }

  /** Adds a violation of `rule` by `value`, with the message of the rule. */
  #violate(rule: string, expected: JsonValue, value: JsonValue, { pointer, part }: Place, help?: string): void {
    const message = messageOf(rule, pointer, { expected, value, part });
    this.#add({ pointer, part, rule, message, ...(help === undefined ? {} : { help }) });
  }

  check(value: JsonValue, given: Schema, place: Place): void {
    const rules = this.#resolveRef(given);
    if (rules.type !== undefined && !hasType(value, rules.type)) return this.#violate("type", rules.type, value, place);
    if (rules.const !== undefined && jcs(value) !== jcs(rules.const)) this.#violate("const", rules.const, value, place);
    if (rules.enum !== undefined) this.#checkEnum(value, rules.enum, place);
    if (typeof value === "string") this.#checkString(value, rules, place);
    else if (typeof value === "number") this.#checkRange(value, value, rules, "minimum", "maximum", place);
    else if (Array.isArray(value)) this.#checkArray(value, rules, place);
    else if (isObject(value)) this.#checkObject(value, rules, place.pointer);
  }

  #checkEnum(value: JsonValue, values: readonly JsonValue[], place: Place): void {
    if (values.some((e) => jcs(e) === jcs(value))) return;
    const names = values.filter((e) => typeof e === "string");
    const near = typeof value === "string" ? nearestName(value, names) : undefined;
    this.#violate("enum", [...values], value, place, near === undefined ? undefined : `did you mean "${near}"?`);
  }

  /** Compares `size`, a property of `value`, with two bounds. */
  #checkRange(
    size: number,
    value: JsonValue,
    rules: Schema,
    least: "minimum" | "minItems",
    most: "maximum" | "maxItems",
    place: Place,
  ): void {
    const { [least]: min, [most]: max } = rules;
    if (min !== undefined && size < min) this.#violate(least, min, value, place);
    if (max !== undefined && size > max) this.#violate(most, max, value, place);
  }

  #checkArray(value: readonly JsonValue[], rules: Schema, place: Place): void {
    this.#checkRange(value.length, [...value], rules, "minItems", "maxItems", place);
    if (rules.uniqueItems === true && !areUnique(value)) this.#violate("uniqueItems", null, [...value], place);
    const { items } = rules;
    if (items === undefined) return;
    value.forEach((item, i) => this.check(item, items, { pointer: stepInto(place.pointer, i), part: "value" }));
  }

  #checkString(value: string, rules: Schema, place: Place): void {
    const { minLength, maxLength, pattern, format } = rules;
    const length = [...value].length;
    if (minLength !== undefined && length < minLength) this.#violate("minLength", minLength, value, place);
    // The bound is tested first so that no pattern runs on a string longer than it may be.
    if (maxLength !== undefined && length > maxLength) return this.#violate("maxLength", maxLength, value, place);
    if (pattern !== undefined && !regexp(pattern).test(value)) this.#violate("pattern", pattern, value, place);
    if (format !== undefined && this.#formats[format]?.test(value) !== true) {
      this.#violate("format", format, value, place);
    }
  }

  #checkObject(value: JsonObject, rules: Schema, pointer: string): void {
    const { properties: known = {}, propertyNames, additionalProperties } = rules;
    for (const name of rules.required ?? []) {
      if (Object.hasOwn(value, name)) continue;
      const message = messageOf("required", pointer, { expected: name });
      this.#add({ pointer, part: "value", rule: "required", message });
    }
    for (const name of Object.keys(value)) {
      const at = stepInto(pointer, name);
      if (propertyNames !== undefined) this.check(name, propertyNames, { pointer: at, part: "key" });
      const rule = Object.hasOwn(known, name) ? known[name] : additionalProperties;
      if (rule === false) this.#add(unknownKey(pointer, name, Object.keys(known)));
      else if (typeof rule === "object") this.check(value[name], rule, { pointer: at, part: "value" });
    }
  }

  #resolveRef(given: Schema): Schema {
    if (given.$ref === undefined) return given;
    const name = given.$ref.slice("#/definitions/".length);
    const found = this.#schema.definitions?.[name];
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
