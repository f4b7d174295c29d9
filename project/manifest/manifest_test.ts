/**
 * The manifest, case by case: accepted manifests, and for rejected ones the code and the pointer of every finding.
 *
 * Rows are built from one valid manifest by setting a value at a path. For every bound and pattern of the specification
 * there are at least three values that hold to it (among them the extreme ones) and three beyond it. Each case is
 * judged by ajv and by the quick path, which must agree.
 */
import assert from "node:assert/strict";
import { checkManifest, MANIFEST_JSON_SCHEMA } from "./manifest.ts";
import {
  FORGE_HANDLE_PATTERN,
  PARALLEL_PATTERN,
  PLATFORM_PATTERN,
  PLUGIN_ID_PATTERN,
  RANGE_PATTERN,
  SLUG_PATTERN,
  VERSION_PATTERN,
} from "../base/grammar.ts";
import { FEATURES, OPTIMIZATIONS } from "./setting_names.ts";
import { formatDiagnostic } from "../base/diagnostic.ts";
import type { Schema } from "../base/schema_walk.ts";

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const AUTHOR = { name: "Ada" };
const SUBPACKAGE = { module: "github.com/acme/kv/admin", name: "Admin", description: "Administration" };
const PACKAGE = {
  module: "github.com/acme/kv",
  name: "KV",
  description: "Key-value store",
  license: "Apache-2.0",
  repository: "https://github.com/acme/kv",
  authors: [AUTHOR],
};

/** A valid manifest with `value` at `path`; undefined removes the present value. */
function withValue(path: readonly (string | number)[], value: Json | undefined): string {
  const root: { [key: string]: Json } = { package: structuredClone(PACKAGE) };
  if (path[0] !== "package") delete root.package;
  if (path.length === 0) return JSON.stringify(value);
  let at = root as { [key: string]: Json };
  path.slice(0, -1).forEach((step, i) => {
    const next = path[i + 1];
    if (step === "subpackages" && at[step] === undefined) at[step] = [structuredClone(SUBPACKAGE)];
    at[step] ??= typeof next === "number" ? [] : {};
    at = at[step] as { [key: string]: Json };
  });
  const last = path.at(-1)!;
  if (value === undefined) delete at[last];
  else Object.defineProperty(at, last, { value, enumerable: true, writable: true, configurable: true });
  return JSON.stringify(root, null, 2);
}

async function verdict(text: string | Uint8Array): Promise<string[]> {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  const slow = await checkManifest(bytes, "waft.json", { alwaysAjv: true });
  const quick = await checkManifest(bytes, "waft.json");
  assert.deepEqual(quick.diagnostics, slow.diagnostics, "the quick path and ajv disagree");
  assert.equal(slow.read === undefined, slow.diagnostics.length > 0);
  for (const d of slow.diagnostics) {
    assert.ok(d.message.length < 700, `the message is too long: ${d.message.length}`);
    if (d.code !== "manifest.too-large") assert.ok(d.line! >= 1 && d.column! >= 1, formatDiagnostic(d));
  }
  return slow.diagnostics.map((d) => `${d.code} ${d.pointer ?? ""}`.trim());
}

let count = 0;
function accept(name: string, text: string): void {
  count++;
  Deno.test(`manifest ok: ${name}`, async () => assert.deepEqual(await verdict(text), []));
}
function reject(name: string, text: string | Uint8Array, ...expected: string[]): void {
  count++;
  Deno.test(`manifest bad: ${name}`, async () => assert.deepEqual(await verdict(text), expected));
}
const short = (text: string): string => text.length > 40 ? `${text.slice(0, 30)}…(${text.length})` : text;
const pointer = (path: readonly (string | number)[]): string =>
  path.map((p) => "/" + String(p).replaceAll("~", "~0").replaceAll("/", "~1")).join("");

/** Values that a place accepts and values that it rejects with one code at that place. */
function values(path: (string | number)[], good: readonly Json[], bad: readonly (readonly [Json, string])[]): void {
  for (const value of good) accept(`${path.join(".")} = ${short(JSON.stringify(value))}`, withValue(path, value));
  for (const [value, code] of bad) {
    reject(`${path.join(".")} = ${short(JSON.stringify(value))}`, withValue(path, value), `${code} ${pointer(path)}`);
  }
}
const all = (list: readonly Json[], code = "manifest.value"): (readonly [Json, string])[] => list.map((v) => [v, code]);
const letters = (n: number): string => "x".repeat(n);

// PLUGIN_ID_PATTERN, at any position. 300 characters is the longest.
const longId = "a.b/" + letters(296);
const GOOD_IDS = [
  "a.b/c",
  "github.com/acme/kv",
  "sub-domain.Example.org/a/b.c/d_e/f~g",
  longId,
  "0.0/0",
  "x1.y2.z3/a-b",
];
const BAD_IDS = [
  "acme/kv",
  "github.com",
  "github.com/",
  ".com/a",
  "a.b/",
  "a.b//c",
  "-a.b/c",
  "a-.b/c",
  "a.b/-c",
  "a.b/c-",
  "a.b/c/",
  "a.b/c d",
  "a.b/ç",
  longId + "x",
  longId + "xx",
  longId + letters(400),
  "https://github.com/acme/kv",
  "a..b/c",
  "a.b/.c",
  "",
];
for (const id of GOOD_IDS) accept(`plugin id ${short(id)}`, withValue(["plugins", id], "^1.0.0"));
for (const id of BAD_IDS) {
  reject(`plugin id ${short(id)}`, withValue(["plugins", id], "^1.0.0"), onceAt(["plugins", id]));
}
values(["package", "module"], GOOD_IDS, BAD_IDS.filter((id) => id.length <= 300).map((id) => [id, "manifest.value"]));
values(["package", "subpackages", 0, "module"], GOOD_IDS.slice(0, 3), all(BAD_IDS.slice(0, 3)));
function onceAt(path: string[]): string {
  return `manifest.value ${pointer(path)}`;
}

// RANGE_PATTERN and its length; then texts that match RANGE_PATTERN but are not ranges.
const GOOD_RANGES = [
  "*",
  "1.2.3",
  "v1.2.3",
  "^1.2.0",
  "~1.2",
  "1.x",
  ">=1.0.0 <2.0.0",
  "1.0.0 - 2.0.0",
  "^1.0.0 || ^2.0.0",
  ">=1.0.0-rc.1",
  "X",
  "1.2.3" + " ".repeat(195),
  "1",
  ">=1 <=3 || 7",
];
values(["plugins", "a.b/c"], GOOD_RANGES, [
  ...all([
    "",
    "^1.0.0,^2.0.0",
    "1.2.3@",
    "1.2.3\n",
    "1.2.3\t",
    "≥1",
    "^1.0.0;",
    "'1'",
    "1.2.3" + " ".repeat(196),
    letters(201),
    letters(500),
  ]),
  ...all([1, null, true, [], {}], "manifest.type"),
  ...all(
    ["(1.2.3)", "1_2", "foo", "01.2.3", "1.2.3-.", "99999999999999999999.0.0", "^^^", "1.2.3 || bar", "latest"],
    "range.syntax",
  ),
]);
values(["package", "engines", "waft"], ["^0.3.0", "*", ">=1"], [...all(["", "a,b", letters(201)]), [
  "nonsense",
  "range.syntax",
]]);
values(["package", "subpackages", 0, "engines", "waft"], ["^0.3.0"], [["", "manifest.value"], ["_", "range.syntax"]]);

// VERSION_PATTERN.
values(["package", "version"], ["1.2.3", "v1.2.3", "0.0.0", "1.2.3-rc.1", "1.2.3+build.7", "1.2.3-a+b"], [
  ...all(["1.2", "1.2.3.4", "V1.2.3", "1.2.3-", "1.2.3+", "", "^1.2.3", "1.2.x", " 1.2.3"]),
  ...all(["01.2.3", "1.2.3-.", "1.2.3-01", "99999999999999999999.0.0", "1.2.3-" + letters(260)], "version.syntax"),
  [1, "manifest.type"],
]);

// SLUG_PATTERN and its length.
const GOOD_SLUGS = ["a", "0", "a.b_c-d", letters(63), letters(64), "9.-_"];
const BAD_SLUGS = ["", "A", "-a", ".a", "_a", "a b", "a/b", "ä", letters(65), letters(66), letters(300)];
values(["package", "category"], GOOD_SLUGS, all(BAD_SLUGS));
values(["package", "tags", 0], GOOD_SLUGS.slice(0, 3), all(BAD_SLUGS.slice(0, 3)));
for (const slug of GOOD_SLUGS) accept(`engine ${short(slug)}`, withValue(["package", "engines", slug], "*"));
for (const slug of BAD_SLUGS) {
  reject(
    `engine ${short(slug)}`,
    withValue(["package", "engines", slug], "*"),
    `manifest.value ${pointer(["package", "engines", slug])}`,
  );
}

// PLATFORM_PATTERN.
values(
  ["package", "platforms", 0],
  ["linux/amd64", "darwin/arm64", "a/b", "0/9"],
  all([
    "linux",
    "linux/",
    "/amd64",
    "Linux/amd64",
    "linux/amd64/v2",
    "linux-amd64",
    "",
  ]),
);
values(["package", "platforms"], [[], ["linux/amd64", "linux/arm64"]], [[["a/b", "a/b"], "manifest.value"], [
  "a/b",
  "manifest.type",
]]);

values(
  ["package", "subpackages", 0, "platforms", 0],
  ["linux/amd64", "darwin/arm64", "a/0"],
  all(["linux", "Linux/amd64", "linux/amd64/v2"]),
);

// FORGE_HANDLE_PATTERN: 1 to 39 characters.
values(["package", "authors", 0], [
  { name: "A", forge: "a" },
  { name: "A", forge: letters(38) },
  { name: "A", forge: letters(39) },
  { name: "A", forge: "a-b-9" },
], [["Ada", "manifest.type"], [null, "manifest.type"]]);
for (const forge of ["", "-a", "a-", "a_b", "a.b", letters(40), letters(41), letters(400), "@ada"]) {
  reject(
    `forge ${short(forge)}`,
    withValue(["package", "authors", 0], { name: "A", forge }),
    "manifest.value /package/authors/0/forge",
  );
}

// PARALLEL_PATTERN.
values(["settings", "runtime", "parallel"], ["auto", "0", "1", "16", "00", "123456789"], [
  ...all(["", "AUTO", "-1", "1.5", "auto ", "4x", "+1"]),
  ...all([4, true, null], "manifest.type"),
]);
values(["settings", "runtime", "deferredBoundsChecking"], [true, false], all(["true", 1, null], "manifest.type"));

// Lengths.
for (
  const [path, low, high] of [
    [["package", "name"], 1, 100],
    [["package", "description"], 1, 500],
    [["package", "license"], 1, 100],
    [["package", "subpackages", 0, "name"], 1, 100],
    [["package", "subpackages", 0, "description"], 1, 500],
  ] as const
) {
  values([...path], [letters(low), letters(low + 1), letters(high - 1), letters(high), "😀".repeat(high)], [
    ...all(["", letters(high + 1), letters(high + 2), letters(high * 3), "😀".repeat(high + 1)]),
    [7, "manifest.type"],
  ]);
}
for (const n of [1, 2, 119, 120]) {
  accept(`author name of ${n}`, withValue(["package", "authors", 0], { name: letters(n) }));
}
for (const n of [0, 121, 122, 500]) {
  reject(
    `author name of ${n}`,
    withValue(["package", "authors", 0], { name: letters(n) }),
    "manifest.value /package/authors/0/name",
  );
}

// Counts and uniqueness.
const tags = (n: number): string[] => Array.from({ length: n }, (_, i) => `t${i}`);
for (const path of [["package", "tags"], ["package", "subpackages", 0, "tags"]]) {
  values(path, [[], tags(1), tags(31), tags(32)], [
    ...all([tags(33), tags(34), tags(100), ["a", "a"], ["a", "b", "a"]]),
    ["a", "manifest.type"],
  ]);
}
values(["package", "authors"], [[AUTHOR], [AUTHOR, { name: "Bob" }], [{ name: "A" }, { name: "A", forge: "a" }]], [
  ...all([[], [AUTHOR, AUTHOR], [{ name: "A", forge: "a" }, { forge: "a", name: "A" }]]),
  [{}, "manifest.type"],
]);
values(["package", "subpackages"], [[], [SUBPACKAGE], [SUBPACKAGE, { ...SUBPACKAGE, name: "Other" }]], [
  [[SUBPACKAGE, SUBPACKAGE], "manifest.value"],
  [{}, "manifest.type"],
]);

// Enumerations, constants, formats.
values(["package", "stability"], ["experimental", "stable", "deprecated"], [...all(["nightly", "Stable", ""]), [
  1,
  "manifest.type",
]]);
values(
  ["package", "subpackages", 0, "stability"],
  ["experimental", "stable", "deprecated"],
  all(["beta", "STABLE", " "]),
);
values(["package", "homepage"], ["https://a.example", "http://a.example/x?y#z", "mailto:a@b.c"], [
  ...all(["a.example", "not a uri", "", "//a"]),
  [1, "manifest.type"],
]);
values(["package", "repository"], ["https://github.com/acme/kv", "https://x", "https://a.example:8443/p"], [
  ...all(["http://github.com/acme/kv", "ftp://x/y", "HTTPS://x/y", "ssh://git@x/y"]),
  [1, "manifest.type"],
]);
reject(
  "repository is neither URI nor https",
  withValue(["package", "repository"], "git@github.com:a b"),
  "manifest.value /package/repository",
);
for (const email of ["a@b.example", "a.b+c@d.example", "x@y.z"]) {
  accept(`email ${email}`, withValue(["package", "authors", 0], { name: "A", email }));
}
for (const email of ["a", "@b.c", "a@", "a b@c.d", ""]) {
  reject(
    `email ${email}`,
    withValue(["package", "authors", 0], { name: "A", email }),
    "manifest.value /package/authors/0/email",
  );
}
for (const url of ["https://ada.example", "http://a.example/~ada?x#y", "mailto:ada@a.example"]) {
  accept(`author url ${url}`, withValue(["package", "authors", 0], { name: "A", url }));
}
for (const url of ["nowhere", "", "a b"]) {
  reject(
    `author url ${url}`,
    withValue(["package", "authors", 0], { name: "A", url }),
    "manifest.value /package/authors/0/url",
  );
}
values(["$schema"], ["https://waft.sh/schemas/v1/schema.json"], [
  ...all(["https://waft.sh/schemas/v2/schema.json", "", "./schema.json"]),
  [1, "manifest.type"],
  ["https://waft.sh/schemas/v0/schema.json", "manifest.schema-version"],
]);

// Settings: every name, and none besides.
for (const [group, keys] of [["features", FEATURES], ["optimizations", OPTIMIZATIONS]] as const) {
  for (const { name } of keys) accept(`${group}.${name}`, withValue(["settings", group, name], false));
  values(["settings", group, keys[0].name], [true], all(["on", 1, null], "manifest.type"));
  for (const name of ["sidm", "inlin", "__proto__", "constructor", "toString", ""]) {
    reject(
      `${group}.${name}`,
      withValue(["settings", group, name], true),
      `manifest.unknown-key ${pointer(["settings", group, name])}`,
    );
  }
  values(["settings", group], [{}], all([[], null, "x"], "manifest.type"));
}
accept(
  "both names of extended constants agree",
  withValue(["settings", "features"], {
    "extended-const-expressions": false,
    "extended-constant-expressions": false,
  }),
);
reject(
  "both names of extended constants disagree",
  withValue(["settings", "features"], {
    "extended-const-expressions": true,
    "extended-constant-expressions": false,
  }),
  "manifest.value /settings/features/extended-constant-expressions",
);

// Required properties, unknown properties, whole shapes.
for (const name of ["module", "name", "description", "license", "repository", "authors"]) {
  reject(`package without ${name}`, withValue(["package", name], undefined), "manifest.missing /package");
}
for (const name of ["module", "name", "description"]) {
  reject(
    `subpackage without ${name}`,
    withValue(["package", "subpackages", 0, name], undefined),
    "manifest.missing /package/subpackages/0",
  );
}
reject(
  "author without name",
  withValue(["package", "authors", 0], { forge: "a" }),
  "manifest.missing /package/authors/0",
);
for (
  const path of [
    ["x"],
    ["package", "x"],
    ["package", "authors", 0, "x"],
    ["package", "subpackages", 0, "x"],
    ["settings", "x"],
    ["settings", "runtime", "x"],
    ["plugin"],
    ["__proto__"],
    ["package", "__proto__"],
    ["package", "authors", 0, "valueOf"],
  ]
) {
  reject(`unknown ${path.join(".")}`, withValue(path, 1), `manifest.unknown-key ${pointer(path)}`);
}
accept("nothing at all", "{}");
accept(
  "everything",
  JSON.stringify({
    $schema: "https://waft.sh/schemas/v1/schema.json",
    plugins: { "a.b/c": "*" },
    settings: {
      features: { simd: true },
      optimizations: { inline: false },
      runtime: { parallel: "auto", deferredBoundsChecking: true },
    },
    package: {
      ...PACKAGE,
      version: "1.0.0",
      stability: "stable",
      homepage: "https://x.example",
      category: "db",
      tags: ["a"],
      engines: { waft: "*" },
      platforms: ["linux/amd64"],
      subpackages: [{ ...SUBPACKAGE, tags: ["a"], engines: { waft: "*" }, platforms: [] }],
    },
  }),
);
for (const [name, text] of [["an array", "[]"], ["a string", '"x"'], ["null", "null"], ["a number", "1"]] as const) {
  reject(`the whole is ${name}`, text, "manifest.type");
}
for (const field of ["plugins", "settings", "package"]) {
  values([field], [], all([[], null, "x", 1], "manifest.type"));
}

// Reading.
for (
  const [name, text] of [
    ["empty file", ""],
    ["comment", "{} // x"],
    ["block comment", "/* x */ {}"],
    ["trailing comma", '{"plugins":{},}'],
    ["two values", "{} {}"],
    ["single quotes", "{'plugins':{}}"],
    ["bare key", "{plugins:{}}"],
    ["NaN", '{"x":NaN}'],
    ["leading zero", '{"x":01}'],
    ["bad escape", '{"x":"\\q"}'],
    ["raw newline in a string", '{"x":"a\nb"}'],
    ["unclosed", '{"plugins":{'],
    ["hex", '{"x":0x1}'],
    ["too deep", "[".repeat(70) + "]".repeat(70)],
    ["very deep", "[".repeat(400_000)],
    ["not exact", '{"x":9007199254740993}'],
    ["too big", '{"x":1e400}'],
    ["vertical tab", "{\v}"],
    ["no-break space", "{\u00a0}"],
  ] as const
) reject(`syntax: ${name}`, text, "manifest.syntax");
reject("encoding: byte order mark", "\ufeff{}", "manifest.encoding");
reject("encoding: invalid byte", Uint8Array.of(0x7b, 0xff, 0x7d), "manifest.encoding");
reject("encoding: half a surrogate pair", '{"x":"\\ud800"}', "manifest.encoding");
reject("encoding: NUL", '{"x":"a\\u0000"}', "manifest.encoding");
reject("encoding: half a surrogate pair in a key", '{"\\udc00":1}', "manifest.encoding");
reject("syntax: endless key", `{"${letters(1001)}":1}`, "manifest.syntax");
for (const n of [198, 199, 200]) {
  accept(`range of ${n} characters`, withValue(["plugins", "a.b/c"], "1.2.3" + " ".repeat(n - 5)));
  accept(`plugin id of ${n + 100} characters`, withValue(["plugins", "a.b/" + letters(n + 96)], "*"));
}
for (const n of [201, 202, 250]) {
  reject(
    `range of ${n} characters`,
    withValue(["plugins", "a.b/c"], "1.2.3" + " ".repeat(n - 5)),
    "manifest.value /plugins/a.b~1c",
  );
  reject(
    `module of ${n + 100} characters`,
    withValue(["package", "module"], "a.b/" + letters(n + 96)),
    "manifest.value /package/module",
  );
}
reject("too large", " ".repeat((1 << 20) + 1), "manifest.too-large");
reject(
  "conflict markers",
  '{\n<<<<<<< HEAD\n"plugins":{}\n=======\n"plugins":{}\n>>>>>>> x\n}',
  "manifest.conflict-markers",
);
reject("duplicate key", '{"plugins":{},"plugins":{}}', "manifest.duplicate-key /plugins");
reject(
  "duplicate key through an escape",
  '{"plugins":{"a.b/c":"1.0.0","a.b\\/c":"1.0.0"}}',
  "manifest.duplicate-key /plugins/a.b~1c",
);
reject("duplicate __proto__", '{"__proto__":1,"__proto__":2}', "manifest.duplicate-key /__proto__");
reject(
  "all findings at once",
  '{"x":1,"plugins":{"kv":"^1"},"settings":{"runtime":{"parallel":4}}}',
  "manifest.unknown-key /x",
  "manifest.value /plugins/kv",
  "manifest.type /settings/runtime/parallel",
);

Deno.test("manifest: there are at least 200 cases", () => assert.ok(count >= 200, String(count)));

Deno.test("manifest: findings name the place, the rule and the way out", async () => {
  const text = '{\n  "plugins": {\n    "acme/kv": "^1.0.0",\n    "a.b/c": "^1,^2"\n  },\n  "setings": {}\n}\n';
  const { diagnostics } = await checkManifest(new TextEncoder().encode(text));
  assert.deepEqual(diagnostics.map(formatDiagnostic), [
    'waft.json:3:5: manifest.value: the key "acme/kv" is not a fully qualified plugin id such as github.com/acme/kv\n' +
    '  help: plugin ids are fully qualified since schema v1; did you mean "github.com/acme/kv"?',
    'waft.json:4:14: manifest.value: plugins["a.b/c"] "^1,^2" contains characters that are not allowed in version ranges\n' +
    "  help: use a space for AND, `||` for OR",
    'waft.json:6:3: manifest.unknown-key: "setings" is not allowed in the top level\n  help: did you mean "settings"?',
  ]);
});

Deno.test("manifest: a v0 file is named as such", async () => {
  const text = '{ "$schema": "https://waft.sh/schemas/v0/schema.json", "plugins": { "acme/kv": "^0.0.0" } }';
  const { diagnostics } = await checkManifest(new TextEncoder().encode(text));
  assert.equal(diagnostics.length, 1);
  assert.equal(diagnostics[0].code, "manifest.schema-version");
  assert.match(diagnostics[0].help!, /init --upgrade/);
});

Deno.test("manifest: every property of the schema has a description for editors", () => {
  const { definitions = {}, properties = {} } = MANIFEST_JSON_SCHEMA;
  const bare: string[] = [];
  const visit = (properties: Readonly<Record<string, Schema>>, path: string) => {
    for (const [name, schema] of Object.entries(properties)) {
      const target = definitions[(schema.$ref ?? "").replace("#/definitions/", "")] ?? schema;
      const { length } = schema.description ?? target.description ?? "";
      if (length < 10) bare.push(`${path}/${name}`);
      visit(schema.properties ?? {}, `${path}/${name}`);
    }
  };
  visit(properties, "");
  for (const [name, schema] of Object.entries(definitions)) visit(schema.properties ?? {}, name);
  assert.deepEqual(bare, []);
});

Deno.test("manifest: the schema's patterns and names are those of the tables", () => {
  const text = JSON.stringify(MANIFEST_JSON_SCHEMA);
  for (
    const pattern of [
      PLUGIN_ID_PATTERN,
      RANGE_PATTERN,
      VERSION_PATTERN,
      SLUG_PATTERN,
      PLATFORM_PATTERN,
      FORGE_HANDLE_PATTERN,
      PARALLEL_PATTERN,
    ]
  ) {
    assert.ok(text.includes(JSON.stringify(pattern.source.replaceAll("\\/", "/"))), pattern.source);
  }
  const settings = MANIFEST_JSON_SCHEMA.definitions!.settings!.properties!;
  assert.deepEqual(Object.keys(settings.features!.properties!), FEATURES.map((f) => f.name));
  assert.deepEqual(Object.keys(settings.optimizations!.properties!), OPTIMIZATIONS.map((f) => f.name));
  assert.equal(FEATURES.length + OPTIMIZATIONS.length, 63);
});
