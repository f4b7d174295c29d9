/**
 * The manifest `waft.json`: strict reading that reports all violations at once, each with its position and a remedy.
 *
 * In: the file's bytes. Out: a Manifest that satisfies schema.json (the specification's "Manifest", "Settings",
 * "Package"), or all findings. ajv checks against schema.json. Its load time would be noticeable in every `waft run`,
 * so a manifest without `package` that waft's own walker accepts skips it (a test shows that the walker accepts nothing
 * that ajv refuses). Beyond the schema, ranges and versions must be valid, and the two names of one switch must not
 * contradict.
 */
import type { ErrorObject, ValidateFunction } from "ajv";
import schemaJson from "./schema.json" with { type: "json" };
import { type Diagnostic, ProjectError, quote, readablePointer, stepInto } from "../base/diagnostic.ts";
import {
  explainPluginId,
  FORGE_HANDLE_PATTERN,
  PARALLEL_PATTERN,
  PLATFORM_PATTERN,
  PLUGIN_ID_PATTERN,
  RANGE_PATTERN,
  SLUG_PATTERN,
  VERSION_PATTERN,
} from "../base/grammar.ts";
import { isObject, type JsonDocument, type JsonObject, type JsonValue, readJson } from "../base/json_read.ts";
import {
  areUnique,
  describePattern,
  messageOf,
  type Schema,
  unknownKey,
  type Violation,
  walkSchema,
} from "../base/schema_walk.ts";
import { MANIFEST_FILE, MANIFEST_SCHEMA } from "../base/constants.ts";
import { explainRange, explainVersion } from "../base/version.ts";

/** The maturity of a package. */
export type Stability = "experimental" | "stable" | "deprecated";

/** An author of a package. */
export interface Author {
  name: string;
  email?: string;
  url?: string;
  forge?: string;
}

/** A linked definition besides the package's own. */
export interface Subpackage {
  module: string;
  name: string;
  description: string;
  stability?: Stability;
  tags?: string[];
  engines?: { [name: string]: string };
  platforms?: string[];
}

/** Public package metadata used by `waft plugin publish`. */
export interface PackageMetadata {
  module: string;
  version?: string;
  name: string;
  description: string;
  stability?: Stability;
  license: string;
  repository: string;
  homepage?: string;
  category?: string;
  tags?: string[];
  authors: Author[];
  engines?: { [name: string]: string };
  platforms?: string[];
  subpackages?: Subpackage[];
}

/** Sparse project-local runtime defaults. */
export interface Settings {
  features?: { [name: string]: boolean };
  optimizations?: { [name: string]: boolean };
  runtime?: { parallel?: string; deferredBoundsChecking?: boolean };
}

/** A valid manifest. */
export interface Manifest {
  $schema?: string;
  plugins?: { [id: string]: string };
  settings?: Settings;
  package?: PackageMetadata;
}

/** A manifest with the document it came from, for places in later findings. */
export interface ReadManifest {
  readonly manifest: Manifest;
  readonly document: JsonDocument;
}

/** The canonical v1 manifest schema. */
export const MANIFEST_JSON_SCHEMA: Schema = schemaJson as unknown as Schema;

/** Largest manifest that is read. */
export const MAX_MANIFEST_BYTES = 1 << 20;

const source = (pattern: RegExp): string => pattern.source.replaceAll("\\/", "/");
describePattern(source(PLUGIN_ID_PATTERN), "is not a fully qualified plugin id such as github.com/acme/kv");
describePattern(source(RANGE_PATTERN), "contains characters that are not allowed in version ranges");
describePattern(source(VERSION_PATTERN), "is not a version such as 1.2.3");
describePattern(source(SLUG_PATTERN), "is not a slug: lower-case letters, digits, and . _ - after the first");
describePattern(source(PLATFORM_PATTERN), "is not a platform such as linux/amd64");
describePattern(source(FORGE_HANDLE_PATTERN), "is not a forge handle: 1 to 39 letters, digits and inner hyphens");
describePattern(source(PARALLEL_PATTERN), 'is neither "auto" nor a non-negative integer in decimal digits');
describePattern("^https://", "must start with https://");

/** Reads a manifest or throws a ProjectError with every finding. */
export async function readManifest(bytes: Uint8Array, file: string = MANIFEST_FILE): Promise<ReadManifest> {
  const result = await checkManifest(bytes, file);
  if (result.read === undefined) throw new ProjectError(result.diagnostics);
  return result.read;
}

/** Reads a manifest and returns the findings; `read` is present exactly when there are none. */
export async function checkManifest(
  bytes: Uint8Array,
  file: string = MANIFEST_FILE,
  options: { readonly alwaysAjv?: boolean } = {},
): Promise<{ read?: ReadManifest; diagnostics: readonly Diagnostic[] }> {
  const reading = readJson(bytes, { file, codes: "manifest", maxBytes: MAX_MANIFEST_BYTES });
  if (!reading.ok) return { diagnostics: reading.diagnostics };
  const { document } = reading;
  const { value } = document;
  if (document.duplicates.length > 0) return { diagnostics: document.duplicates };

  const old = oldSchema(document);
  if (old !== undefined) return { diagnostics: [old] };

  const quick = options.alwaysAjv !== true && isObject(value) && !Object.hasOwn(value, "package") &&
    walkSchema(value, MANIFEST_JSON_SCHEMA, { limit: 1 }).length === 0;
  const violations = quick ? [] : await ajvViolations(value);
  const diagnostics = violations.map((v) => toDiagnostic(v, document, "manifest"));
  diagnostics.push(...meaningFindings(value, document, new Set(violations.map((v) => v.pointer))));
  diagnostics.sort((a, b) => a.line! - b.line! || a.column! - b.column!);
  if (diagnostics.length > 0) return { diagnostics };
  return { read: { manifest: value as unknown as Manifest, document }, diagnostics };
}

/** A violation with its place and its code: `<codes>.unknown-key`, `.type`, `.missing`, `.value`. */
export function toDiagnostic(v: Violation, document: JsonDocument, codes: string): Diagnostic {
  const place = document.place(v.pointer, v.part);
  const kind = KIND_OF_RULE[v.rule] ?? "value";
  return {
    code: `${codes}.${kind}`,
    severity: "error",
    message: v.message,
    file: document.file,
    ...place,
    pointer: v.pointer,
    ...(v.help === undefined ? {} : { help: v.help }),
  };
}

const KIND_OF_RULE: { readonly [rule: string]: string } = {
  additionalProperties: "unknown-key",
  type: "type",
  required: "missing",
};

/** The finding for a manifest of schema v0, which is never guessed at. */
function oldSchema(document: JsonDocument): Diagnostic | undefined {
  const { value } = document;
  if (!isObject(value)) return undefined;
  const schema = value.$schema;
  const isV0 = typeof schema === "string" && /\/v0\/[^/]*$/.test(schema);
  if (!isV0) return undefined;
  return {
    code: "manifest.schema-version",
    severity: "error",
    message: `${quote(schema, 80)} is manifest schema v0; this waft reads v1`,
    file: document.file,
    ...document.place("/$schema"),
    pointer: "/$schema",
    help: "run `waft init --upgrade` to rewrite it (it asks for the host of each short plugin key)",
  };
}

let compiled: ValidateFunction | undefined;

/** Every violation that ajv finds, in our words. */
async function ajvViolations(value: JsonValue): Promise<Violation[]> {
  compiled ??= await compileSchema();
  if (compiled(value) === true) return [];
  // One finding per position: a wrong type or length says more than the pattern that fails with it.
  const found = new Map<string, Violation>();
  for (const error of (compiled.errors ?? []).slice(0, MAX_FINDINGS)) {
    const violation = fromAjv(error, value);
    if (violation === undefined) continue;
    const many = violation.rule === "required";
    const key = `${violation.pointer} ${violation.part}${many ? ` ${violation.message}` : ""}`;
    const known = found.get(key);
    if (known === undefined || TELLING.indexOf(violation.rule) > TELLING.indexOf(known.rule)) found.set(key, violation);
  }
  return [...found.values()];
}

/** Maximum findings of a reading; a file with more is not a manifest. */
const MAX_FINDINGS = 200;

/** Rules from the least to the most specific; unlisted ones come first. */
const TELLING = ["pattern", "format", "enum", "const", "maxLength", "minLength", "type"];

async function compileSchema(): Promise<ValidateFunction> {
  const loaded = await import("ajv");
  // In a bundle a CommonJS package has its default export only.
  const Ajv = loaded.Ajv ?? (loaded.default as unknown as typeof loaded).Ajv;
  const addFormats = (await import("ajv-formats")).default as unknown as (ajv: object, formats: string[]) => void;
  const ajv = new Ajv({ allErrors: true, strict: true, verbose: true });
  // ajv's own uniqueItems calls valueOf of the items, which a hostile manifest can set to a non-function.
  ajv.removeKeyword("uniqueItems");
  ajv.addKeyword({
    keyword: "uniqueItems",
    type: "array",
    schemaType: "boolean",
    validate: (on: boolean, items: JsonValue[]) => !on || areUnique(items),
  });
  addFormats(ajv, ["uri", "email"]);
  return ajv.compile(MANIFEST_JSON_SCHEMA);
}

function fromAjv(error: ErrorObject, root: JsonValue): Violation | undefined {
  const pointer = error.instancePath;
  const params = error.params as { readonly [name: string]: JsonValue };
  if (error.keyword === "propertyNames") return undefined; // The rule inside is reported with the same key.
  if (error.keyword === "additionalProperties") {
    const known = Object.keys((error.parentSchema as Schema).properties ?? {});
    const violation = unknownKey(pointer, String(params.additionalProperty), known);
    const name = String(params.additionalProperty);
    const help = Object.hasOwn(HELP_OF_UNKNOWN, name) ? HELP_OF_UNKNOWN[name] : undefined;
    return help === undefined ? violation : { ...violation, help };
  }
  if (error.propertyName !== undefined) {
    const name = error.propertyName;
    const help = isPluginPointer(pointer) ? explainPluginId(name)?.help : undefined;
    const expected = (error.schema ?? null) as JsonValue;
    return {
      pointer: stepInto(pointer, name),
      part: "key",
      rule: error.keyword,
      message: messageOf(error.keyword, stepInto(pointer, name), { expected, value: name, part: "key" }),
      ...(help === undefined ? {} : { help }),
    };
  }
  const value = lookUp(root, pointer);
  const expected: JsonValue = error.keyword === "required"
    ? params.missingProperty!
    : error.keyword === "type"
    ? params.type!
    : (error.schema ?? null) as JsonValue;
  const help = helpFor(error.keyword, pointer, value);
  return {
    pointer,
    part: "value",
    rule: error.keyword,
    message: messageOf(error.keyword, pointer, { expected, ...(value === undefined ? {} : { value }) }),
    ...(help === undefined ? {} : { help }),
  };
}

/** Keys that people bring from elsewhere. */
const HELP_OF_UNKNOWN: { readonly [key: string]: string | undefined } = {
  dependencies: 'direct requirements are listed under "plugins"',
  devDependencies: 'direct requirements are listed under "plugins"',
  grants: "grants are stored in waft-lock.json only; see `waft plugin grant`",
  permissions: "grants are stored in waft-lock.json only; see `waft plugin grant`",
  lock: "exact versions are stored in waft-lock.json only",
  name: 'package metadata goes under "package"',
  version: 'package metadata goes under "package"',
};

function helpFor(rule: string, pointer: string, value: JsonValue | undefined): string | undefined {
  if (pointer === "/$schema") return `leave it out, or write ${JSON.stringify(MANIFEST_SCHEMA)}`;
  if (rule === "pattern" && typeof value === "string") {
    if (pointer.endsWith("/module")) return explainPluginId(value)?.help;
    if (pointer.startsWith("/plugins/") || /\/engines\//.test(pointer)) {
      return value.includes(",") ? "use a space for AND, `||` for OR" : undefined;
    }
    if (pointer.endsWith("/repository") && /^(git@|http:|ssh:|git:)/.test(value)) {
      return "give the https:// address of the repository";
    }
  }
  if (rule === "type" && pointer === "/settings/runtime/parallel" && typeof value === "number") {
    return `write it as text: "${value}"`;
  }
  if (rule === "type" && /^\/settings\/(features|optimizations)\//.test(pointer)) return "write true or false";
  if (rule === "type" && /\/authors\/[0-9]+$/.test(pointer) && typeof value === "string") {
    return `write an object: { "name": ${JSON.stringify(value.slice(0, 60))} }`;
  }
  return undefined;
}

function isPluginPointer(pointer: string): boolean {
  return pointer === "/plugins";
}

/** The value that a pointer names. */
export function lookUp(root: JsonValue, pointer: string): JsonValue | undefined {
  let value: JsonValue | undefined = root;
  for (const raw of pointer.split("/").slice(1)) {
    const step = raw.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(value)) value = value[Number(step)];
    else if (isObject(value)) value = value[step];
    else return undefined;
  }
  return value;
}

/** Checks beyond the schema: ranges and versions are valid, aliases agree. */
function meaningFindings(root: JsonValue, document: JsonDocument, already: ReadonlySet<string>): Diagnostic[] {
  if (!isObject(root)) return [];
  const found: Diagnostic[] = [];
  const add = (code: string, pointer: string, message: string, help?: string): void => {
    if (already.has(pointer)) return;
    found.push({
      code,
      severity: "error",
      message,
      file: document.file,
      ...document.place(pointer),
      pointer,
      ...(help === undefined ? {} : { help }),
    });
  };
  const ranges = (map: JsonValue | undefined, pointer: string): void => {
    if (!isObject(map)) return;
    for (const [key, range] of Object.entries(map)) {
      const at = stepInto(pointer, key);
      if (typeof range !== "string" || already.has(at)) continue;
      const wrong = explainRange(range);
      if (wrong !== undefined) {
        add(
          "range.syntax",
          at,
          `${readablePointer(at)} ${quote(range, 60)} is not a version range: ${wrong.reason}`,
          wrong.help,
        );
      }
    }
  };
  ranges(root.plugins, "/plugins");
  const pack = root.package;
  if (isObject(pack)) {
    ranges(pack.engines, "/package/engines");
    if (Array.isArray(pack.subpackages)) {
      pack.subpackages.forEach((s, i) => isObject(s) && ranges(s.engines, `/package/subpackages/${i}/engines`));
    }
    if (typeof pack.version === "string" && !already.has("/package/version")) {
      const wrong = explainVersion(pack.version);
      if (wrong !== undefined) {
        add(
          "version.syntax",
          "/package/version",
          `package.version ${quote(pack.version, 60)} is not a semantic version: ${wrong}`,
        );
      }
    }
  }
  const features = isObject(root.settings) ? root.settings.features : undefined;
  if (isObject(features)) contradiction(features, add);
  return found;
}

function contradiction(
  features: JsonObject,
  add: (code: string, pointer: string, message: string, help?: string) => void,
): void {
  const short = features["extended-const-expressions"];
  const long = features["extended-constant-expressions"];
  if (typeof short === "boolean" && typeof long === "boolean" && short !== long) {
    add(
      "manifest.value",
      "/settings/features/extended-constant-expressions",
      "extended-const-expressions and extended-constant-expressions are one switch under two names and must agree",
      "keep one of the two",
    );
  }
}
