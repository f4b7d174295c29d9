/**
 * Serializes a lockfile. Invariant: equal lockfiles give identical bytes.
 *
 * In: a Lockfile. Out: UTF-8 text with the format's own keys in a fixed order, maps in UTF-16 code-unit order,
 * set-like arrays sorted, 2 spaces, LF, one final newline. JSON.stringify puts keys that look like integers first, so
 * the printer is written here. Sealing happens here too: a written lockfile always carries correct digests, reviews and
 * seals.
 */
import { type Definition, definitionDigest, normalizeDefinition } from "../definitions/definition.ts";
import type { JsonObject, JsonValue } from "../base/json_read.ts";
import type { LockedGuest, LockedPackage, LockedPlugin, Lockfile } from "./lock_schema.ts";
import { reviewDigest, sealPackage, sealPlugin, sortGrants } from "./review.ts";
import { LOCK_SCHEMA } from "../base/constants.ts";

/** A lockfile before its digests, reviews and seals are computed. */
export interface LockDraft {
  requirements: { [id: string]: string };
  packages: { [id: string]: Omit<LockedPackage, "seal"> };
  plugins: { [id: string]: Omit<LockedPlugin, "seal" | "review" | "definitionDigest"> };
  guest: LockedGuest;
}

/** Key orders of the format's own objects; any other object is a map and is sorted. */
const ORDERS = {
  top: ["$schema", "lockVersion", "requirements", "packages", "plugins", "guest"],
  package: ["version", "source", "artifact", "publisher", "seal"],
  source: ["kind", "registry", "path", "reference", "manifest", "signedBy"],
  artifact: ["digest", "size"],
  plugin: [
    "package",
    "definition",
    "definitionDigest",
    "entry",
    "grants",
    "denied",
    "review",
    "bindings",
    "config",
    "seal",
  ],
  entry: ["path", "digest", "size"],
  definition: [
    "id",
    "version",
    "kind",
    "name",
    "description",
    "stability",
    "compatibility",
    "provenance",
    "requires",
    "world",
    "authorities",
    "provides",
    "consumes",
    "configSchema",
    "limits",
  ],
  compatibility: ["engines", "platforms"],
  provenance: ["repository", "license"],
  authority: ["name", "mode", "reason", "scope"],
  contract: ["id", "major", "interface", "mode", "namespaces", "functions"],
  world: ["imports", "exports"],
  function: ["name", "params", "results"],
} as const;

/** Computes digests, reviews and seals. */
export function sealLockfile(draft: LockDraft): Lockfile {
  const packages = map<LockedPackage>();
  const plugins = map<LockedPlugin>();
  for (const id of Object.keys(draft.packages)) {
    const entry = draft.packages[id];
    packages[id] = { ...entry, seal: sealPackage(id, entry) };
  }
  for (const id of Object.keys(draft.plugins)) {
    const plugin = draft.plugins[id];
    const definition = normalizeDefinition(plugin.definition);
    const publisher = draft.packages[plugin.package]?.publisher;
    const whole = {
      ...plugin,
      definition,
      definitionDigest: definitionDigest(definition),
      grants: sortGrants(plugin.grants),
      denied: [...plugin.denied].sort(),
      review: reviewDigest(id, plugin, publisher, draft.plugins),
    };
    plugins[id] = { ...whole, seal: sealPlugin(id, whole) };
  }
  return {
    $schema: LOCK_SCHEMA,
    lockVersion: 1,
    requirements: draft.requirements,
    packages,
    plugins,
    guest: draft.guest,
  };
}

/** The bytes of a lockfile. */
export function writeLockfile(lock: Lockfile): Uint8Array {
  const packages = mapValues(
    lock.packages,
    (p) =>
      ordered(
        { ...p, source: ordered({ ...p.source }, ORDERS.source), artifact: ordered(p.artifact, ORDERS.artifact) },
        ORDERS.package,
      ),
  );
  const plugins = mapValues(lock.plugins, (p) => {
    const whole = {
      ...p,
      definition: definitionForm(p.definition),
      entry: ordered(p.entry, ORDERS.entry),
      grants: sortGrants(p.grants),
      denied: [...p.denied].sort(),
      bindings: mapValues(p.bindings, (providers) => [...providers].sort()),
    };
    return ordered(whole, ORDERS.plugin);
  });
  const { bindings, wasi } = lock.guest;
  const guest = { bindings, ...(wasi === undefined ? {} : { wasi: [...wasi].sort() }) };
  const top = ordered({ ...lock, packages, plugins, guest }, ORDERS.top);
  return new TextEncoder().encode(`${print(top, "\n")}\n`);
}

function definitionForm(definition: Definition): Ordered {
  const d = normalizeDefinition(definition);
  const functions = (list: readonly object[]): Ordered[] => list.map((f) => ordered(f, ORDERS.function));
  return ordered({
    ...d,
    compatibility: ordered(d.compatibility, ORDERS.compatibility),
    provenance: ordered(d.provenance, ORDERS.provenance),
    ...(d.world === undefined ? {} : { world: ordered(d.world, ORDERS.world) }),
    authorities: d.authorities.map((a) => ordered(a, ORDERS.authority)),
    provides: d.provides.map((p) => ordered({ ...p, functions: functions(p.functions) }, ORDERS.contract)),
    consumes: d.consumes.map((c) => ordered({ ...c, functions: functions(c.functions) }, ORDERS.contract)),
  }, ORDERS.definition);
}

/** The text of a definition in a lockfile or catalog. */
export function printDefinition(definition: Definition): string {
  return print(definitionForm(definition), "\n");
}

/** An object whose keys are printed in the given order. */
class Ordered {
  readonly pairs: readonly (readonly [string, unknown])[];
  constructor(pairs: readonly (readonly [string, unknown])[]) {
    this.pairs = pairs;
  }
}

function ordered(value: object, keys: readonly string[]): Ordered {
  const own = value as { readonly [key: string]: unknown };
  return new Ordered(keys.filter((key) => own[key] !== undefined).map((key) => [key, own[key]]));
}

function print(value: unknown, newline: string): string {
  const inner = `${newline}  `;
  if (Array.isArray(value)) {
    return value.length === 0
      ? "[]"
      : `[${inner}${value.map((item) => print(item, inner)).join(`,${inner}`)}${newline}]`;
  }
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const pairs = value instanceof Ordered
    ? value.pairs
    : Object.keys(value).sort().map((key) => [key, (value as JsonObject)[key]] as const);
  if (pairs.length === 0) return "{}";
  return `{${inner}${
    pairs.map(([key, v]) => `${JSON.stringify(key)}: ${print(v, inner)}`).join(`,${inner}`)
  }${newline}}`;
}

/** Prints any JSON value in the lockfile's style, all keys sorted. */
export function printJson(value: JsonValue): string {
  return print(value, "\n");
}

function map<T>(): { [key: string]: T } {
  return Object.create(null) as { [key: string]: T };
}

function mapValues<T, U>(source: { readonly [key: string]: T }, change: (value: T) => U): { [key: string]: U } {
  const result = map<U>();
  for (const key of Object.keys(source)) result[key] = change(source[key]);
  return result;
}
