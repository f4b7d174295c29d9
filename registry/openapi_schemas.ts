/**
 * JSON Schemas of the API's requests and answers; openapi.ts refers to them by name. The schemas of answers are closed
 * objects, so a test fails for a field that is not described.
 */
import { SCOPES } from "./store/accounts.ts";

/** A JSON Schema. */
export interface ApiSchema {
  readonly [keyword: string]: unknown;
}

/** A reference to a schema of the document. */
export function ref(name: keyof typeof API_SCHEMAS | string): ApiSchema {
  return { $ref: `#/components/schemas/${name}` };
}

/** A closed object; names in `optional` may be absent. */
function object(
  properties: { readonly [name: string]: ApiSchema },
  optional: readonly string[] = [],
): ApiSchema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: "object", properties, required, additionalProperties: false };
}

const text: ApiSchema = { type: "string" };
const count: ApiSchema = { type: "integer", minimum: 0 };
const flag: ApiSchema = { type: "boolean" };
const list = (items: ApiSchema): ApiSchema => ({ type: "array", items });
const orNull = (schema: ApiSchema): ApiSchema => ({ anyOf: [schema, { type: "null" }] });

const SUMMARY: { readonly [name: string]: ApiSchema } = {
  name: ref("PluginId"),
  displayName: text,
  version: text,
  description: text,
  stability: { enum: ["experimental", "stable", "deprecated", null] },
  category: orNull(text),
  tags: list(text),
  license: text,
  repository: text,
  kinds: list({ enum: ["wasm", "host"] }),
  authorities: list(text),
  installs: ref("InstallCounts"),
  publishedAt: ref("Time"),
  deprecated: flag,
};

/** All schemas by name. */
export const API_SCHEMAS: { readonly [name: string]: ApiSchema } = {
  PluginId: {
    type: "string",
    maxLength: 300,
    pattern: "^(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\\.)+[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?" +
      "(?:/[A-Za-z0-9](?:[A-Za-z0-9._~-]*[A-Za-z0-9])?)+$",
  },
  Digest: { type: "string", pattern: "^sha256:[0-9a-f]{64}$" },
  Hash: { type: "string", pattern: "^[0-9a-f]{64}$" },
  Time: { type: "string", pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$" },
  InstallCounts: object({ total: count, week: count }),
  Artifact: object({ digest: ref("Digest"), size: { type: "integer", minimum: 1 } }),
  Yank: object({ reason: text, severity: { enum: ["broken", "security", "other"] }, at: ref("Time") }),
  Summary: object(SUMMARY),
  Definition: {
    type: "object",
    required: ["id", "version", "kind", "authorities"],
    properties: { id: ref("PluginId") },
  },
  PackagePage: object({ packages: list(ref("Summary")), total: count, nextCursor: orNull(text) }),
  Package: object({
    ...SUMMARY,
    homepage: orNull(text),
    authors: list({ type: "object", required: ["name"] }),
    publisher: text,
    verified: flag,
    yanked: orNull(ref("Yank")),
    deprecated: orNull(text),
    versions: count,
    plugins: list(object({ id: ref("PluginId"), definitionDigest: ref("Digest"), definition: ref("Definition") })),
    readme: object({ markdown: text, html: text }),
    notes: orNull(text),
  }),
  Versions: object({
    name: ref("PluginId"),
    versions: list(object({
      version: text,
      publishedAt: ref("Time"),
      publisher: text,
      verified: flag,
      publisherChanged: flag,
      artifact: ref("Artifact"),
      yanked: orNull(ref("Yank")),
    })),
  }),
  Record: object({
    schemaVersion: { const: 1 },
    package: ref("PluginId"),
    version: text,
    artifact: ref("Artifact"),
    definitions: { type: "object", additionalProperties: ref("Digest") },
    publisher: text,
    publishedAt: ref("Time"),
  }),
  Signature: object({ keyId: text, algorithm: { const: "Ed25519" }, value: text }),
  Release: object({
    record: ref("Record"),
    signature: ref("Signature"),
    metadata: { type: "object", required: ["module", "name"] },
    notes: orNull(text),
    files: list(object({ path: text, size: count, digest: ref("Digest") }, ["digest"])),
    plugins: list(object({
      id: ref("PluginId"),
      definitionDigest: ref("Digest"),
      definition: ref("Definition"),
      entry: object({ path: text, digest: ref("Digest"), size: { type: "integer", minimum: 1 } }),
    })),
  }),
  Checkpoint: object({ checkpoint: text, keyId: text }),
  LogEntries: object({
    entries: list(object({ number: count, record: ref("Record"), signature: ref("Signature") })),
  }),
  ConsistencyProof: object({ from: count, to: count, proof: list(ref("Hash")) }),
  InclusionProof: object({ number: count, size: count, proof: list(ref("Hash")) }),
  Published: object({ record: ref("Record"), signature: ref("Signature"), created: flag }),
  Yanked: object({ name: ref("PluginId"), version: text, yanked: orNull(ref("Yank")) }),
  Deprecated: object({ name: ref("PluginId"), version: orNull(text), deprecated: orNull(text) }),
  DeprecationRequest: object({
    message: { type: "string", minLength: 1, maxLength: 300 },
    version: { type: "string", minLength: 1, maxLength: 256 },
  }, ["version"]),
  YankRequest: object({
    reason: { type: "string", minLength: 1, maxLength: 300 },
    severity: { enum: ["broken", "security", "other"] },
  }),
  InstallRequest: object({ version: text }, ["version"]),
  InstallAnswer: object({ installs: ref("InstallCounts") }),
  InstallSeries: object({
    name: ref("PluginId"),
    installs: ref("InstallCounts"),
    days: list(object({ date: { type: "string", pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$" }, count })),
  }),
  PluginIndex: object({
    schemaVersion: { const: 1 },
    id: ref("PluginId"),
    package: ref("PluginId"),
    releases: list(object({
      version: text,
      definitionDigest: ref("Digest"),
      requires: { type: "object", additionalProperties: text },
      compatibility: object({ engines: { type: "object", additionalProperties: text }, platforms: list(text) }),
      artifact: ref("Artifact"),
      publisher: text,
      publishedAt: ref("Time"),
      verified: flag,
      firstPublish: flag,
      stability: { enum: ["experimental", "stable", "deprecated"] },
      yanked: object({ reason: text, severity: { enum: ["broken", "security", "other"] } }),
      deprecated: text,
    }, ["stability", "yanked", "deprecated"])),
  }),
  IndexesRequest: object({
    ids: { type: "array", items: ref("PluginId"), minItems: 1, maxItems: 64, uniqueItems: true },
  }),
  Indexes: object({ schemaVersion: { const: 1 }, indexes: list(orNull(ref("PluginIndex"))) }),
  Providers: object({
    contract: text,
    providers: list(object({ id: ref("PluginId"), package: ref("PluginId"), version: text })),
  }),
  ChangePage: object({
    changes: list(object({
      change: { enum: ["published", "yanked", "deprecated", "transferred"] },
      name: ref("PluginId"),
      displayName: text,
      version: orNull(text),
      at: ref("Time"),
      publisher: text,
      verified: flag,
      yanked: orNull(ref("Yank")),
      deprecated: orNull(text),
      notes: orNull(text),
    })),
    nextCursor: orNull(text),
  }),
  Keys: object({
    keys: list(object({
      id: text,
      algorithm: { const: "Ed25519" },
      publicKey: text,
      createdAt: ref("Time"),
      retiredAt: orNull(ref("Time")),
      endorsement: orNull(object({ keyId: text, value: text })),
    })),
  }),
  Token: object({
    id: text,
    label: text,
    scopes: list({ enum: SCOPES }),
    prefix: text,
    createdAt: ref("Time"),
    expiresAt: ref("Time"),
    revokedAt: orNull(ref("Time")),
    parent: orNull(text),
  }),
  Account: object({
    name: text,
    prefixes: list(object({ prefix: text, proof: { enum: ["admin", "dns"] } })),
    token: ref("Token"),
  }),
  Tokens: object({ tokens: list(ref("Token")) }),
  TokenRequest: object({
    label: { type: "string", minLength: 1, maxLength: 100 },
    scopes: { type: "array", items: { enum: SCOPES }, minItems: 1 },
    prefix: text,
    account: text,
  }, ["prefix", "account"]),
  NewToken: object({ token: ref("Token"), secret: { type: "string", pattern: "^waft_[0-9A-Za-z]{43}$" } }),
  TransferRequest: object({ account: { type: "string", minLength: 1, maxLength: 39 } }),
  TransferOffer: object({ name: ref("PluginId"), from: text, to: text, offeredAt: ref("Time") }),
  TransferOffers: object({ offers: list(ref("TransferOffer")) }),
  Transferred: object({ name: ref("PluginId"), owner: text }),
  Oidc: object({ audience: text, issuers: list(text) }),
  IdentityRequest: object({ token: { type: "string", minLength: 1, maxLength: 16384 }, package: ref("PluginId") }),
  Claims: {
    type: "object",
    minProperties: 1,
    maxProperties: 10,
    additionalProperties: { type: "string", minLength: 1, maxLength: 300 },
  },
  PublisherRequest: object({ prefix: text, issuer: text, claims: ref("Claims") }),
  Publisher: object({ id: text, prefix: text, issuer: text, claims: ref("Claims"), createdAt: ref("Time") }),
  Publishers: object({ publishers: list(ref("Publisher")) }),
  PrefixRequest: object({ prefix: text, account: text }, ["account"]),
  Prefix: object({ prefix: text, proof: { enum: ["admin", "dns"] } }),
  AccountRequest: object({ name: { type: "string", pattern: "^[a-z0-9](?:[a-z0-9-]{0,37}[a-z0-9])?$" } }),
  AccountName: object({ name: text }),
  Hold: object({ name: ref("PluginId"), held: flag }),
  Problem: object({
    type: text,
    title: text,
    status: { type: "integer", minimum: 400, maximum: 599 },
    detail: text,
    code: text,
    errors: list(object({ pointer: text, detail: text, code: text }, ["code"])),
    requestId: text,
  }),
};
