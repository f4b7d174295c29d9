/**
 * Plugin definitions: their shape, their rules, their canonical form and digest.
 *
 * In: the `definition` objects of catalogs, registries and lockfiles. Out: violations with pointers, or a
 * Definition whose digest is the SHA-256 of its RFC 8785 form after set-like arrays are sorted. Definitions are
 * immutable: the same id and version always have the same digest.
 */
import { AUTHORITIES, findAuthority, HOST_NAMESPACES, scopeSchema } from "./authorities.ts";
import { checkConfigSchema } from "./config_schema.ts";
import { quote, readablePointer, stepInto } from "../base/diagnostic.ts";
import {
  MAX_PLUGIN_ID,
  MAX_RANGE,
  MAX_SLUG,
  MAX_VERSION,
  nearestName,
  PLATFORM_PATTERN,
  PLUGIN_ID_PATTERN,
  RANGE_PATTERN,
  SLUG_PATTERN,
} from "../base/grammar.ts";
import { type Digest, digestJson } from "../base/integrity.ts";
import { isObject, type JsonObject, type JsonValue } from "../base/json_read.ts";
import { isReservedInterface } from "./wit_interfaces.ts";
import type { Stability } from "../manifest/manifest.ts";
import { describePattern, type Schema, type Violation, walkSchema } from "../base/schema_walk.ts";
import { explainRange, isCanonicalVersion } from "../base/version.ts";

/** A core function of a contract. */
export interface ContractFunction {
  name: string;
  params: string[];
  results: string[];
}

/** An authority that a plugin requests. */
export interface AuthorityRequest {
  name: string;
  mode: "required" | "optional";
  reason: string;
  scope?: JsonObject;
}

/** A contract that a plugin provides. */
export interface ProvidedContract {
  id: string;
  major: number;
  /** The interface of WIT that a component exports for it. */
  interface?: string;
  namespaces?: string[];
  functions: ContractFunction[];
}

/** A contract that a plugin consumes. */
export interface ConsumedContract {
  id: string;
  major: number;
  /** The interface of WIT by which a component imports it. */
  interface?: string;
  mode: "required" | "optional" | "many";
  functions: ContractFunction[];
}

/** The names of the imports and exports of a component. */
export interface DefinedWorld {
  imports: string[];
  exports: string[];
}

/** An immutable plugin definition. */
export interface Definition {
  id: string;
  version: string;
  kind: "wasm";
  name: string;
  description: string;
  stability?: Stability;
  compatibility: { engines: { [name: string]: string }; platforms: string[] };
  provenance: { repository: string; license: string };
  requires: { [id: string]: string };
  /** The world of a component; absent for a module. */
  world?: DefinedWorld;
  authorities: AuthorityRequest[];
  provides: ProvidedContract[];
  consumes: ConsumedContract[];
  configSchema: JsonObject;
  limits: { maxMemoryPages?: number };
}

const source = (pattern: RegExp): string => pattern.source.replaceAll("\\/", "/");
const VALUE_TYPES = "^(?:i32|i64|f32|f64|v128|funcref|externref)$";
describePattern(VALUE_TYPES, "is not a value type (i32, i64, f32, f64, v128, funcref, externref)");
const PRINTABLE = "^[!-~]+$";
describePattern(PRINTABLE, "may hold only printable ASCII characters without spaces");

/** Schema definitions that lockfiles and catalogs share. */
export const SHARED_DEFINITIONS: { readonly [name: string]: Schema } = {
  pluginID: { type: "string", maxLength: MAX_PLUGIN_ID, pattern: source(PLUGIN_ID_PATTERN) },
  versionRange: { type: "string", minLength: 1, maxLength: MAX_RANGE, pattern: source(RANGE_PATTERN) },
  version: { type: "string", minLength: 5, maxLength: MAX_VERSION },
  slug: { type: "string", maxLength: MAX_SLUG, pattern: source(SLUG_PATTERN) },
  digest: { type: "string", pattern: "^sha256:[0-9a-f]{64}$" },
  size: { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
  namespace: { type: "string", maxLength: 320, pattern: PRINTABLE },
  requires: closedMap("pluginID", "versionRange"),
  function: record({
    name: { type: "string", minLength: 1, maxLength: 200, pattern: PRINTABLE },
    params: { type: "array", maxItems: 64, items: { type: "string", pattern: VALUE_TYPES } },
    results: { type: "array", maxItems: 64, items: { type: "string", pattern: VALUE_TYPES } },
  }),
  functions: { type: "array", minItems: 1, maxItems: 512, items: { $ref: "#/definitions/function" } },
  authority: record({
    name: { type: "string", minLength: 1, maxLength: 64 },
    mode: { type: "string", enum: ["required", "optional"] },
    reason: { type: "string", minLength: 1, maxLength: 300 },
    scope: { type: "object" },
  }, ["scope"]),
  externs: { type: "array", maxItems: 256, uniqueItems: true, items: { $ref: "#/definitions/namespace" } },
  provided: record({
    id: { $ref: "#/definitions/pluginID" },
    major: { type: "integer", minimum: 0, maximum: 1_000_000 },
    interface: { $ref: "#/definitions/namespace" },
    namespaces: { type: "array", maxItems: 16, uniqueItems: true, items: { $ref: "#/definitions/namespace" } },
    functions: { $ref: "#/definitions/functions" },
  }, ["interface", "namespaces"]),
  consumed: record({
    id: { $ref: "#/definitions/pluginID" },
    major: { type: "integer", minimum: 0, maximum: 1_000_000 },
    interface: { $ref: "#/definitions/namespace" },
    mode: { type: "string", enum: ["required", "optional", "many"] },
    functions: { $ref: "#/definitions/functions" },
  }, ["interface"]),
  definition: record({
    id: { $ref: "#/definitions/pluginID" },
    version: { $ref: "#/definitions/version" },
    kind: { type: "string", enum: ["wasm", "host"] },
    name: { type: "string", minLength: 1, maxLength: 100 },
    description: { type: "string", minLength: 1, maxLength: 500 },
    stability: { type: "string", enum: ["experimental", "stable", "deprecated"] },
    compatibility: record({
      engines: closedMap("slug", "versionRange"),
      platforms: {
        type: "array",
        uniqueItems: true,
        maxItems: 64,
        items: { type: "string", maxLength: 64, pattern: source(PLATFORM_PATTERN) },
      },
    }),
    provenance: record({
      repository: { type: "string", maxLength: 2000, pattern: "^https://" },
      license: { type: "string", minLength: 1, maxLength: 100 },
    }),
    requires: { $ref: "#/definitions/requires" },
    world: record({ imports: { $ref: "#/definitions/externs" }, exports: { $ref: "#/definitions/externs" } }),
    authorities: { type: "array", maxItems: AUTHORITIES.length, items: { $ref: "#/definitions/authority" } },
    provides: { type: "array", maxItems: 64, items: { $ref: "#/definitions/provided" } },
    consumes: { type: "array", maxItems: 64, items: { $ref: "#/definitions/consumed" } },
    configSchema: { type: "object" },
    limits: record({ maxMemoryPages: { type: "integer", minimum: 1, maximum: 65536 } }, ["maxMemoryPages"]),
  }, ["stability", "world"]),
};

/** A closed object schema; every property is required except for the `optional` ones. */
export function record(properties: { readonly [name: string]: Schema }, optional: readonly string[] = []): Schema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: "object", additionalProperties: false, properties, required };
}

/** An object used as a map, with schemas for keys and values. */
export function closedMap(keys: string, values: string): Schema {
  return {
    type: "object",
    propertyNames: { $ref: `#/definitions/${keys}` },
    additionalProperties: { $ref: `#/definitions/${values}` },
  };
}

/**
 * Violations of a definition. With `shape` false only the rules beyond the schema are checked, for callers that have
 * walked a larger schema already. Rule `authority` marks an authority unknown to this version of waft.
 */
export function checkDefinition(value: JsonValue, pointer: string, shape = true): Violation[] {
  const found: Violation[] = [];
  if (shape) {
    const schema: Schema = { ...SHARED_DEFINITIONS.definition, definitions: SHARED_DEFINITIONS };
    found.push(...walkSchema(value, schema, { pointer }));
    if (found.length > 0) return found;
  }
  const d = value as unknown as Definition;
  const add = (at: string, rule: string, message: string, help?: string): void => {
    found.push({ pointer: pointer + at, part: "value", rule, message, ...(help === undefined ? {} : { help }) });
  };
  const name = (at: string): string => readablePointer(pointer + at);
  if ((d.kind as string) === "host") {
    add("/kind", "enum", `${name("/kind")} "host" is reserved: this waft runs WebAssembly plugins only`);
  }
  if (!isCanonicalVersion(d.version)) {
    add(
      "/version",
      "pattern",
      `${name("/version")} ${quote(d.version, 60)} is not a canonical semantic version`,
      "write it without v and leading zeros",
    );
  }
  for (const [map, at] of [[d.requires, "/requires"], [d.compatibility.engines, "/compatibility/engines"]] as const) {
    for (const [key, range] of Object.entries(map)) {
      const wrong = explainRange(range);
      if (wrong !== undefined) {
        add(
          stepInto(at, key),
          "pattern",
          `${name(stepInto(at, key))} ${quote(range, 60)} is not a version range: ${wrong.reason}`,
          wrong.help,
        );
      }
    }
  }
  if (Object.hasOwn(d.requires, d.id)) add(stepInto("/requires", d.id), "const", `${quote(d.id)} requires itself`);
  checkAuthorities(d, pointer, found);
  checkContracts(d, add, name);
  found.push(...checkConfigSchema(d.configSchema, `${pointer}/configSchema`));
  return found;
}

function checkAuthorities(d: Definition, pointer: string, found: Violation[]): void {
  const seen = new Set<string>();
  d.authorities.forEach((request, i) => {
    const at = `${pointer}/authorities/${i}`;
    const known = findAuthority(request.name);
    if (known === undefined) {
      const near = nearestName(request.name, AUTHORITIES.map((a) => a.name));
      found.push({
        pointer: `${at}/name`,
        part: "value",
        rule: "authority",
        message: `${quote(request.name)} is not an authority known to this version of waft`,
        ...(near === undefined ? {} : { help: `did you mean "${near}"?` }),
      });
      return;
    }
    if (seen.has(known.name)) {
      found.push({
        pointer: `${at}/name`,
        part: "value",
        rule: "uniqueItems",
        message: `${quote(known.name)} is requested twice`,
      });
    }
    seen.add(known.name);
    if (known.name === "host.code") {
      found.push({
        pointer: `${at}/name`,
        part: "value",
        rule: "enum",
        message: '"host.code" belongs to the reserved kind "host"',
      });
    }
    if (request.scope === undefined && known.scope !== "none" && known.scope !== "clock") {
      found.push({
        pointer: at,
        part: "value",
        rule: "required",
        message: `${readablePointer(at)} needs "scope": ${known.name} is never granted without a scope`,
      });
    } else if (request.scope !== undefined) {
      found.push(...walkSchema(request.scope, scopeSchema(known.scope, "request"), { pointer: `${at}/scope` }));
    }
  });
}

/** The namespaces that a request of `import.define` lists; checkAuthorities reports a scope of another form. */
function definedNamespaces(request: Definition["authorities"][number] | undefined): string[] {
  const list: unknown = request?.scope?.namespaces;
  return Array.isArray(list) ? list.filter((item) => typeof item === "string") : [];
}

type Add = (at: string, rule: string, message: string, help?: string) => void;

function checkContracts(d: Definition, add: Add, name: (at: string) => string): void {
  const defined = new Set(definedNamespaces(d.authorities.find((a) => a.name === "import.define")));
  const offered = new Set<string>();
  for (const side of ["provides", "consumes"] as const) {
    const seen = new Set<string>();
    d[side].forEach((contract, i) => {
      const at = `/${side}/${i}`;
      const namespace = contractNamespace(contract);
      if (seen.has(namespace)) add(at, "uniqueItems", `${name(at)} repeats ${namespace}`);
      seen.add(namespace);
      const functions = new Set<string>();
      contract.functions.forEach((f, j) => {
        if (functions.has(f.name)) {
          add(`${at}/functions/${j}/name`, "uniqueItems", `${name(at)} has two functions ${quote(f.name)}`);
        }
        functions.add(f.name);
      });
      checkInterface(d, side, contract, at, add, name);
      if (side === "provides") {
        (contract as ProvidedContract).namespaces?.forEach((n, j) => {
          const where = `${at}/namespaces/${j}`;
          if (HOST_NAMESPACES.has(n) || n.startsWith("waft:") || n.startsWith("wasi")) {
            add(where, "enum", `${quote(n)} is reserved for the host`);
          }
          if (!defined.has(n)) add(where, "required", `${quote(n)} needs import.define with that namespace`);
          if (offered.has(n)) add(where, "uniqueItems", `${quote(n)} is offered twice`);
          offered.add(n);
        });
      }
    });
  }
  d.authorities.forEach((a, i) => {
    if (a.name !== "import.define") return;
    for (const n of definedNamespaces(a)) {
      if (!offered.has(n)) {
        add(`/authorities/${i}/scope`, "enum", `import.define asks for ${quote(n)}, which no provided contract lists`);
      }
    }
  });
}

/** Each contract of a component names an interface of its world; a contract of a module names none. */
function checkInterface(
  { world }: Definition,
  side: "provides" | "consumes",
  contract: ProvidedContract | ConsumedContract,
  at: string,
  add: Add,
  name: (at: string) => string,
): void {
  const where = `${at}/interface`;
  const own = contract.interface;
  if (world === undefined) {
    if (own !== undefined) add(where, "enum", `${name(where)} is for components, which have "world"`);
    return;
  }
  if (own === undefined) {
    return add(at, "required", `${name(at)} needs "interface": a component has contracts as interfaces of WIT`);
  }
  const [list, word] = side === "provides" ? [world.exports, "exports"] : [world.imports, "imports"];
  if (!list.includes(own)) add(where, "enum", `${quote(own)} is not among the ${word} of the world`);
  if (isReservedInterface(own)) add(where, "enum", `${quote(own)} is reserved for the host`);
  if (side === "consumes" && (contract as ConsumedContract).mode === "many") {
    add(`${at}/mode`, "enum", `${name(`${at}/mode`)} "many" is for modules: a component imports an interface once`);
  }
}

/** The import namespace of a contract: `<id>@<major>`. */
export function contractNamespace(contract: { readonly id: string; readonly major: number }): string {
  return `${contract.id}@${contract.major}`;
}

/** The interfaces of a component's contracts, by the namespaces of the contracts. */
export function contractInterfaces(contracts: readonly (ProvidedContract | ConsumedContract)[]): Map<string, string> {
  return new Map(
    contracts.flatMap((contract) =>
      contract.interface === undefined ? [] : [[contractNamespace(contract), contract.interface]]
    ),
  );
}

/** A copy with set-like arrays sorted; the form that is digested and written. */
export function normalizeDefinition(d: Definition): Definition {
  const functions = (list: ContractFunction[]): ContractFunction[] => sortBy(list, (f) => f.name);
  return {
    ...d,
    ...(d.world === undefined
      ? {}
      : { world: { imports: [...d.world.imports].sort(), exports: [...d.world.exports].sort() } }),
    compatibility: { engines: { ...d.compatibility.engines }, platforms: [...d.compatibility.platforms].sort() },
    authorities: sortBy(d.authorities, (a) => a.name).map((a) =>
      a.scope === undefined ? { ...a } : { ...a, scope: sortScope(a.scope) }
    ),
    provides: sortBy(d.provides, contractNamespace).map((p) => ({
      ...p,
      ...(p.namespaces === undefined ? {} : { namespaces: [...p.namespaces].sort() }),
      functions: functions(p.functions),
    })),
    consumes: sortBy(d.consumes, contractNamespace).map((c) => ({ ...c, functions: functions(c.functions) })),
  };
}

/** A copy of a scope with its lists sorted. */
export function sortScope(scope: JsonObject): JsonObject {
  const sorted: JsonObject = Object.create(null);
  for (const key of Object.keys(scope)) {
    const value = scope[key];
    sorted[key] = Array.isArray(value) ? [...value].sort() : value;
  }
  return sorted;
}

/** The digest of a definition. */
export function definitionDigest(d: Definition): Digest {
  return digestJson(normalizeDefinition(d));
}

/** The scope of a request; empty for authorities without one. */
export function scopeOf(request: AuthorityRequest): JsonObject {
  return isObject(request.scope) ? request.scope : Object.create(null) as JsonObject;
}

function sortBy<T>(list: readonly T[], key: (item: T) => string): T[] {
  return [...list].sort((a, b) => key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0);
}
