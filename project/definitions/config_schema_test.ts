/**
 * `configSchema`: the subset and nothing beside it; configurations against it, alike with ajv; defaults.
 */
import assert from "node:assert/strict";
import { Ajv } from "ajv";
import { checkConfig, checkConfigSchema, withDefaults } from "./config_schema.ts";
import type { JsonObject, JsonValue } from "../base/json_read.ts";

const object = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  type: "object",
  additionalProperties: false,
  properties,
  ...more,
});

const BAD: readonly (readonly [string, JsonValue])[] = [
  ["pattern", object({ a: { type: "string", pattern: "(a+)+$" } })],
  ["$ref", object({ a: { $ref: "#" } })],
  ["anyOf", object({ a: { anyOf: [{ type: "string" }] } })],
  ["open object", { type: "object", properties: {} }],
  ["open inner object", object({ a: { type: "object", properties: {} } })],
  [
    "additionalProperties as a schema",
    object({ a: { type: "object", properties: {}, additionalProperties: { type: "string" } } }),
  ],
  ["not an object", "string"],
  ["top level is not an object", { type: "string" }],
  ["unknown type", object({ a: { type: "date" } })],
  ["no type", object({ a: {} })],
  ["unknown format", object({ a: { type: "string", format: "regex" } })],
  ["negative length", object({ a: { type: "string", minLength: -1 } })],
  ["required of nothing", object({}, { required: ["a"] })],
  ["default against the schema", object({ a: { type: "integer", default: "x" } })],
  ["empty enum", object({ a: { enum: [] } })],
  ["too deep", [...Array(8)].reduce<JsonValue>((inner) => object({ a: inner }), { type: "string" })],
  [
    "too large",
    object({
      a: { type: "string", description: "x".repeat(1000) },
      ...Object.fromEntries([...Array(200)].map((_, i) => [`k${i}`, { type: "string", description: "y".repeat(400) }])),
    }),
  ],
];
for (const [name, schema] of BAD) {
  Deno.test(`config schema refused: ${name}`, () => assert.ok(checkConfigSchema(schema, "/c").length > 0));
}

const SCHEMA = object({
  name: { type: "string", minLength: 1, maxLength: 5 },
  level: { enum: ["low", "high", 3] },
  count: { type: "integer", minimum: 1, maximum: 9 },
  list: { type: "array", maxItems: 2, items: { type: "boolean" } },
  inner: object({ ratio: { type: "number" }, fixed: { const: [1, 2] } }, { required: ["ratio"] }),
  nothing: { type: "null" },
}, { required: ["name"] });
const CONFIGS: readonly JsonValue[] = [
  { name: "a" },
  { name: "abcde", level: "low", count: 1, list: [true, false], inner: { ratio: 0.5, fixed: [1, 2] }, nothing: null },
  {},
  { name: "" },
  { name: "abcdef" },
  { name: 1 },
  { name: "😀😀😀😀😀" },
  { name: "a", level: "mid" },
  { name: "a", level: 3 },
  { name: "a", count: 0 },
  { name: "a", count: 10 },
  { name: "a", count: 1.5 },
  { name: "a", list: [true, true, true] },
  { name: "a", list: [1] },
  { name: "a", inner: {} },
  { name: "a", inner: { ratio: 1, x: 1 } },
  { name: "a", inner: { ratio: 1, fixed: [2, 1] } },
  { name: "a", nothing: 0 },
  { name: "a", other: 1 },
  [],
  "x",
  null,
  { name: "a", constructor: 1 },
  JSON.parse('{"name":"a","__proto__":1}'),
];
Deno.test("config: verdicts are those of ajv", () => {
  assert.deepEqual(checkConfigSchema(SCHEMA, ""), []);
  const validate = new Ajv({ allErrors: true }).compile(SCHEMA);
  for (const config of CONFIGS) {
    assert.equal(checkConfig(config, SCHEMA, "").length === 0, validate(config), JSON.stringify(config));
  }
});

Deno.test("config: formats", () => {
  const rows: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ["uri", ["https://a.example/x", "mailto:a@b.c"], ["a.example", "/x", "https://a b"]],
    ["hostname", ["a.example", "localhost"], ["-a", "a..b", "a_b", "", "x".repeat(300)]],
    ["path", ["/a/b", "./x"], ["", "a\u0000b"]],
    ["duration", ["250ms", "1.5s", "1d"], ["1", "ms", "-1s"]],
    ["bytes", ["16MiB", "100", "5KB"], ["16 MiB", "MiB", "-1"]],
  ];
  for (const [format, good, bad] of rows) {
    const schema = object({ a: { type: "string", format } });
    for (const a of good) assert.deepEqual(checkConfig({ a }, schema, ""), [], `${format} ${a}`);
    for (const a of bad) assert.equal(checkConfig({ a }, schema, "").length, 1, `${format} ${a}`);
  }
});

Deno.test("config: defaults are filled in, also inside", () => {
  const schema = object({
    a: { type: "integer", default: 7 },
    b: object({ c: { type: "string", default: "x" } }, { default: {} }),
  });
  assert.deepEqual(JSON.parse(JSON.stringify(withDefaults({}, schema))), { a: 7, b: { c: "x" } });
  assert.deepEqual(JSON.parse(JSON.stringify(withDefaults({ a: 1, b: { c: "y" } }, schema))), { a: 1, b: { c: "y" } });
});
