/**
 * `configSchema`: the small, closed subset of JSON Schema in which a plugin declares its configuration.
 *
 * In: a schema from a definition, or a configuration from a lockfile. Out: the violations of either, with
 * pointers. `pattern` is excluded: an author's regular expression would run on users' machines. A schema has at most 64
 * KiB and 8 levels, and every object is closed, so a typo in a configuration is always found.
 */
import { quote, readablePointer, stepInto } from "../base/diagnostic.ts";
import { emptyObject, isObject, type JsonObject, type JsonValue } from "../base/json_read.ts";
import { type Formats, type Schema, type Violation, walkSchema } from "../base/schema_walk.ts";
import { jcs } from "../base/integrity.ts";

/** Largest schema, in bytes of its canonical form (RFC 8785). */
const MAX_CONFIG_SCHEMA_BYTES = 64 << 10;
/** Deepest nesting of schemas. */
const MAX_CONFIG_DEPTH = 8;

const TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"];
const FORMAT_NAMES = ["uri", "hostname", "path", "duration", "bytes"];
const KEYWORDS = [
  "type",
  "properties",
  "required",
  "enum",
  "const",
  "minimum",
  "maximum",
  "minLength",
  "maxLength",
  "items",
  "maxItems",
  "default",
  "description",
  "additionalProperties",
  "format",
];

/** The formats of configuration strings. */
const CONFIG_FORMATS: Formats = {
  uri: { test: isUri, asks: "an absolute URI" },
  hostname: {
    test: (t) =>
      t.length <= 253 && t.split(".").every((l) => /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/.test(l)),
    asks: "a host name",
  },
  // deno-lint-ignore no-control-regex -- the pattern searches for control characters
  path: { test: (t) => t.length > 0 && t.length <= 4096 && !/[\u0000-\u001f\u007f]/.test(t), asks: "a path" },
  duration: {
    test: (t) => /^[0-9]{1,15}(?:\.[0-9]{1,9})?(?:ns|us|ms|s|m|h|d)$/.test(t),
    asks: "a duration such as 250ms",
  },
  bytes: { test: (t) => /^[0-9]{1,15}(?:B|KB|MB|GB|KiB|MiB|GiB)?$/.test(t), asks: "a size such as 16MiB" },
};

function isUri(text: string): boolean {
  return text.length <= 4096 && /^[A-Za-z][A-Za-z0-9+.-]*:[!-~]+$/.test(text) && URL.canParse(text);
}

/** A keyword whose value must fulfil a condition, and the condition in words. */
interface KeywordRule {
  readonly name: string;
  readonly accepts: (value: JsonValue) => boolean;
  readonly words: string;
}

const isCount = (v: JsonValue): boolean => typeof v === "number" && Number.isSafeInteger(v) && v >= 0;
const isNumber = (v: JsonValue): boolean => typeof v === "number";
const isText = (v: JsonValue): boolean => typeof v === "string" && v.length <= 1000;
const isChoice = (v: JsonValue): boolean => Array.isArray(v) && v.length > 0 && v.length <= 256;
const isNames = (v: JsonValue): boolean => Array.isArray(v) && v.every((name) => typeof name === "string");

const KEYWORD_RULES: readonly KeywordRule[] = [
  { name: "minimum", accepts: isNumber, words: "a number" },
  { name: "maximum", accepts: isNumber, words: "a number" },
  { name: "minLength", accepts: isCount, words: "a non-negative integer" },
  { name: "maxLength", accepts: isCount, words: "a non-negative integer" },
  { name: "maxItems", accepts: isCount, words: "a non-negative integer" },
  { name: "description", accepts: isText, words: "a string of at most 1000 characters" },
  { name: "enum", accepts: isChoice, words: "an array of 1 to 256 values" },
  { name: "required", accepts: isNames, words: "an array of strings" },
  { name: "format", accepts: (v) => FORMAT_NAMES.includes(v as string), words: `one of ${FORMAT_NAMES.join(", ")}` },
];
const PROPERTIES: KeywordRule = { name: "properties", accepts: isObject, words: "an object" };
const CLOSED: KeywordRule = { name: "additionalProperties", accepts: (v) => v === false, words: "false" };

/** The violations of a `configSchema`, with pointers below `pointer`. */
export function checkConfigSchema(schema: JsonValue, pointer: string): Violation[] {
  const check = new SchemaCheck();
  check.checkRoot(schema, pointer);
  return check.found;
}

class SchemaCheck {
  readonly found: Violation[] = [];

  #add(pointer: string, rule: string, message: string, part: "key" | "value" = "value"): void {
    if (this.found.length < 100) this.found.push({ pointer, part, rule, message });
  }

  checkRoot(schema: JsonValue, at: string): void {
    if (new TextEncoder().encode(jcs(schema)).length > MAX_CONFIG_SCHEMA_BYTES) {
      return this.#add(at, "maxLength", `${readablePointer(at)} is larger than ${MAX_CONFIG_SCHEMA_BYTES >> 10} KiB`);
    }
    if (isObject(schema) && schema.type !== "object") {
      this.#add(at, "const", `${readablePointer(at)} must have "type": "object"`);
    }
    this.#check(schema, at, 1);
  }

  #check(schema: JsonValue, at: string, depth: number): void {
    if (!isObject(schema)) return this.#add(at, "type", `${readablePointer(at)} must be an object`);
    if (depth > MAX_CONFIG_DEPTH) {
      return this.#add(at, "maxLength", `${readablePointer(at)} is nested deeper than ${MAX_CONFIG_DEPTH}`);
    }
    this.#checkKeywords(schema, at);
    this.#checkType(schema, at);
    for (const rule of KEYWORD_RULES) this.#require(rule, schema, at);
    if (schema.type === "object" || schema.properties !== undefined) this.#checkProperties(schema, at, depth);
    else this.#require(CLOSED, schema, at);
    if (schema.items !== undefined) this.#check(schema.items, `${at}/items`, depth + 1);
    this.#checkDefault(schema, at);
  }

  #require({ name, accepts, words }: KeywordRule, schema: JsonObject, at: string): void {
    const value = schema[name];
    if (value === undefined || accepts(value)) return;
    this.#add(`${at}/${name}`, "type", `${readablePointer(at)}.${name} must be ${words}`);
  }

  #checkKeywords(schema: JsonObject, at: string): void {
    for (const name of Object.keys(schema)) {
      if (KEYWORDS.includes(name)) continue;
      const why = name === "pattern" ? " (an author's regular expression would run on users' machines)" : "";
      const message = `the keyword ${quote(name)} is not allowed in configSchema${why}`;
      this.#add(stepInto(at, name), "additionalProperties", message, "key");
    }
  }

  #checkType({ type, enum: choice, const: constant }: JsonObject, at: string): void {
    if (type !== undefined && !TYPES.includes(type as string)) {
      this.#add(`${at}/type`, "enum", `${readablePointer(at)}.type must be one of ${TYPES.join(", ")}`);
    }
    if (type === undefined && choice === undefined && constant === undefined) {
      this.#add(at, "required", `${readablePointer(at)} needs "type", "enum" or "const"`);
    }
  }

  #checkProperties(schema: JsonObject, at: string, depth: number): void {
    if (schema.additionalProperties !== false) {
      this.#add(at, "required", `${readablePointer(at)} needs "additionalProperties": false`);
    }
    this.#require(PROPERTIES, schema, at);
    const properties = isObject(schema.properties) ? schema.properties : {};
    for (const name of Object.keys(properties)) {
      this.#check(properties[name], stepInto(`${at}/properties`, name), depth + 1);
    }
    for (const name of Array.isArray(schema.required) ? schema.required : []) {
      if (Object.hasOwn(properties, String(name))) continue;
      const message = `${readablePointer(at)}.required names ${quote(String(name))}, which is not a property`;
      this.#add(`${at}/required`, "enum", message);
    }
  }

  /** A default must conform to its schema, which is checked only while no other fault is found. */
  #checkDefault(schema: JsonObject, at: string): void {
    if (schema.default === undefined || this.found.length > 0) return;
    const options = { formats: CONFIG_FORMATS, pointer: `${at}/default` };
    for (const { pointer, rule, message } of walkSchema(schema.default, schema as Schema, options)) {
      this.#add(pointer, rule, `the default violates the schema: ${message}`);
    }
  }
}

/** The violations of a configuration; the schema has passed checkConfigSchema. */
export function checkConfig(config: JsonValue, schema: JsonObject, pointer: string): Violation[] {
  return walkSchema(config, schema as Schema, { formats: CONFIG_FORMATS, pointer, limit: 100 });
}

/** The configuration with the schema's defaults filled in, as the plugin receives it. */
export function withDefaults(config: JsonValue, schema: JsonObject): JsonValue {
  if (!isObject(config) || !isObject(schema.properties)) return config;
  const full = emptyObject();
  for (const name of Object.keys(config)) full[name] = config[name];
  for (const name of Object.keys(schema.properties)) {
    const rules = schema.properties[name];
    if (!isObject(rules)) continue;
    if (full[name] === undefined && rules.default !== undefined) full[name] = rules.default;
    if (full[name] !== undefined) full[name] = withDefaults(full[name], rules);
  }
  return full;
}
