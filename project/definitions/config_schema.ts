/**
 * `configSchema`: the small, closed subset of JSON Schema in which a plugin declares its configuration.
 *
 * Input: a schema from a definition, or a configuration from a lockfile. Output: the violations of either, with
 * pointers. `pattern` is excluded: an author's regular expression would run on users' machines. A schema has at most 64
 * KiB and 8 levels, and every object is closed, so a typo in a configuration is always found.
 */
import { quote, readablePointer, stepInto } from "../base/diagnostic.ts";
import { emptyObject, isObject, type JsonObject, type JsonValue } from "../base/json_read.ts";
import { type Formats, type Schema, type Violation, walkSchema } from "../base/schema_walk.ts";
import { jcs } from "../base/integrity.ts";

/** Largest schema, as canonical text. */
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

/** The violations of a `configSchema`, with pointers below `pointer`. */
export function checkConfigSchema(schema: JsonValue, pointer: string): Violation[] {
  const found: Violation[] = [];
  const add = (at: string, rule: string, message: string, part: "key" | "value" = "value"): void => {
    if (found.length < 100) found.push({ pointer: at, part, rule, message });
  };
  if (new TextEncoder().encode(jcs(schema)).length > MAX_CONFIG_SCHEMA_BYTES) {
    add(pointer, "maxLength", `${readablePointer(pointer)} is larger than ${MAX_CONFIG_SCHEMA_BYTES >> 10} KiB`);
    return found;
  }
  if (!isObject(schema)) {
    add(pointer, "type", `${readablePointer(pointer)} must be an object`);
    return found;
  }
  if (schema.type !== "object") add(pointer, "const", `${readablePointer(pointer)} must have "type": "object"`);
  walk(schema, pointer, 1);
  return found;

  function walk(schema: JsonValue, at: string, depth: number): void {
    if (!isObject(schema)) return add(at, "type", `${readablePointer(at)} must be an object`);
    if (depth > MAX_CONFIG_DEPTH) {
      return add(at, "maxLength", `${readablePointer(at)} is nested deeper than ${MAX_CONFIG_DEPTH}`);
    }
    for (const name of Object.keys(schema)) {
      if (KEYWORDS.includes(name)) continue;
      const why = name === "pattern" ? " (an author's regular expression would run on users' machines)" : "";
      add(
        stepInto(at, name),
        "additionalProperties",
        `the keyword ${quote(name)} is not allowed in configSchema${why}`,
        "key",
      );
    }
    const { type } = schema;
    if (type !== undefined && !TYPES.includes(type as string)) {
      add(`${at}/type`, "enum", `${readablePointer(at)}.type must be one of ${TYPES.join(", ")}`);
    }
    if (type === undefined && schema.enum === undefined && schema.const === undefined) {
      add(at, "required", `${readablePointer(at)} needs "type", "enum" or "const"`);
    }
    const wants = (name: string, ok: (v: JsonValue) => boolean, what: string): void => {
      const value = schema[name];
      if (value !== undefined && !ok(value)) {
        add(`${at}/${name}`, "type", `${readablePointer(at)}.${name} must be ${what}`);
      }
    };
    const count = (v: JsonValue): boolean => typeof v === "number" && Number.isSafeInteger(v) && v >= 0;
    wants("minimum", (v) => typeof v === "number", "a number");
    wants("maximum", (v) => typeof v === "number", "a number");
    wants("minLength", count, "a non-negative integer");
    wants("maxLength", count, "a non-negative integer");
    wants("maxItems", count, "a non-negative integer");
    wants("description", (v) => typeof v === "string" && v.length <= 1000, "a string of at most 1000 characters");
    wants("enum", (v) => Array.isArray(v) && v.length > 0 && v.length <= 256, "an array of 1 to 256 values");
    wants("required", (v) => Array.isArray(v) && v.every((i) => typeof i === "string"), "an array of strings");
    wants("format", (v) => FORMAT_NAMES.includes(v as string), `one of ${FORMAT_NAMES.join(", ")}`);
    if (type === "object" || schema.properties !== undefined) {
      if (schema.additionalProperties !== false) {
        add(at, "required", `${readablePointer(at)} needs "additionalProperties": false`);
      }
      wants("properties", isObject, "an object");
      if (isObject(schema.properties)) {
        for (const name of Object.keys(schema.properties)) {
          walk(schema.properties[name]!, stepInto(`${at}/properties`, name), depth + 1);
        }
      }
      for (const name of Array.isArray(schema.required) ? schema.required : []) {
        if (!isObject(schema.properties) || !Object.hasOwn(schema.properties, String(name))) {
          add(
            `${at}/required`,
            "enum",
            `${readablePointer(at)}.required names ${quote(String(name))}, which is not a property`,
          );
        }
      }
    } else wants("additionalProperties", (v) => v === false, "false");
    if (schema.items !== undefined) walk(schema.items, `${at}/items`, depth + 1);
    if (schema.default !== undefined && found.length === 0) {
      for (
        const v of walkSchema(schema.default, schema as Schema, { formats: CONFIG_FORMATS, pointer: `${at}/default` })
      ) {
        add(v.pointer, v.rule, `the default violates the schema: ${v.message}`);
      }
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
  for (const name of Object.keys(config)) full[name] = config[name]!;
  for (const name of Object.keys(schema.properties)) {
    const rules = schema.properties[name];
    if (!isObject(rules)) continue;
    if (full[name] === undefined && rules.default !== undefined) full[name] = rules.default;
    if (full[name] !== undefined) full[name] = withDefaults(full[name], rules);
  }
  return full;
}
