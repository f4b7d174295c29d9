/**
 * The shape of `waft-lock.json` v1 as a JSON Schema, and its types.
 *
 * The site publishes this schema; lockfile.ts walks it and then checks the rules that a schema cannot express. Every
 * key is required, so a lockfile has a single spelling; the exceptions are `publisher`, which only a registry's package
 * has, `signedBy`, which only a signed one has, and `wasi`, which only a narrowed project has. `seal` is the SHA-256 of
 * an entry's canonical form. Seals detect every hand edit without a whole-file hash, which would conflict in merges.
 */
import { closedMap, type Definition, record, SHARED_DEFINITIONS } from "../definitions/definition.ts";
import type { Digest } from "../base/integrity.ts";
import type { JsonObject } from "../base/json_read.ts";
import type { Schema } from "../base/schema_walk.ts";
import { LOCK_SCHEMA } from "../base/constants.ts";
import { WASI_GROUP_NAMES } from "../definitions/wasi_groups.ts";

/** The source of a package. */
export type LockedSource =
  | { kind: "registry"; registry: string }
  | { kind: "path"; path: string }
  | {
    kind: "oci";
    /** The reference as it was given. */
    reference: string;
    /** The digest of the manifest that it named. */
    manifest: Digest;
    /** The public key (SubjectPublicKeyInfo in base64) by which each manifest must be signed. */
    signedBy?: string;
  };

/**
 * Where the releases of a source come from. A source of another release has the same origin, unless something changed
 * that a user decided on: the registry, the name, the key that signs.
 */
export function originOf(source: LockedSource): object {
  if (source.kind !== "oci") return source;
  const { manifest: _, reference, ...others } = source;
  return { ...others, reference: withoutTag(reference) };
}

/** A reference to an OCI registry without its tag and digest. */
export function withoutTag(reference: string): string {
  // Names contain neither of the signs that begin a tag and a digest; hosts may have a port.
  return reference.replace(/^(oci:\/\/[^/]*\/[^:@]*).*$/, "$1");
}

/** A package at its exact version. */
export interface LockedPackage {
  version: string;
  source: LockedSource;
  artifact: { digest: Digest; size: number };
  publisher?: string;
  seal: Digest;
}

/** A plugin with everything that decides its authority. */
export interface LockedPlugin {
  package: string;
  definition: Definition;
  definitionDigest: Digest;
  entry: { path: string; digest: Digest; size: number };
  grants: { [name: string]: JsonObject };
  denied: string[];
  review: Digest;
  bindings: { [namespace: string]: string[] };
  config: JsonObject;
  seal: Digest;
}

/** A lockfile. */
export interface Lockfile {
  $schema: string;
  lockVersion: 1;
  requirements: { [id: string]: string };
  packages: { [id: string]: LockedPackage };
  plugins: { [id: string]: LockedPlugin };
  guest: LockedGuest;
}

/** The bindings and WASI groups of the project's guests. */
export interface LockedGuest {
  bindings: { [namespace: string]: string };
  /** Groups of WASI that guests may use (wasi_groups.ts); absent: all. */
  wasi?: string[];
}

/** The lockfile's schema. `lockVersion` is checked by lockfile.ts alone, since it has its own code. */
export const LOCKFILE_SCHEMA: Schema = {
  ...record({
    $schema: { type: "string", const: LOCK_SCHEMA },
    lockVersion: { type: "integer" },
    requirements: { $ref: "#/definitions/requires" },
    packages: closedMap("pluginID", "package"),
    plugins: closedMap("pluginID", "plugin"),
    guest: record({
      bindings: closedMap("namespace", "pluginID"),
      wasi: {
        type: "array",
        maxItems: WASI_GROUP_NAMES.length,
        uniqueItems: true,
        items: { type: "string", enum: WASI_GROUP_NAMES },
      },
    }, ["wasi"]),
  }),
  definitions: {
    ...SHARED_DEFINITIONS,
    package: record({
      version: { $ref: "#/definitions/version" },
      source: record({
        kind: { type: "string", enum: ["registry", "path", "oci"] },
        registry: { type: "string", minLength: 8, maxLength: 500, pattern: "^https?://[!-~]+$" },
        path: { type: "string", minLength: 1, maxLength: 1000, pattern: "^\\.(?:/[^/\\p{Cc}\\\\]+)*$" },
        reference: {
          type: "string",
          minLength: 9,
          maxLength: 700,
          pattern: "^oci://[A-Za-z0-9.:\\[\\]-]+/[a-z0-9._/-]+(?::[A-Za-z0-9_.-]+)?(?:@sha256:[0-9a-f]{64})?$",
        },
        manifest: { $ref: "#/definitions/digest" },
        signedBy: { type: "string", minLength: 16, maxLength: 4096, pattern: "^[A-Za-z0-9+/]+={0,2}$" },
      }, ["registry", "path", "reference", "manifest", "signedBy"]),
      artifact: record({ digest: { $ref: "#/definitions/digest" }, size: { $ref: "#/definitions/size" } }),
      publisher: { type: "string", minLength: 1, maxLength: 300, pattern: "^[!-~]+$" },
      seal: { $ref: "#/definitions/digest" },
    }, ["publisher"]),
    plugin: record({
      package: { $ref: "#/definitions/pluginID" },
      definition: { $ref: "#/definitions/definition" },
      definitionDigest: { $ref: "#/definitions/digest" },
      entry: record({
        path: { type: "string", minLength: 1, maxLength: 200, pattern: "^[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*$" },
        digest: { $ref: "#/definitions/digest" },
        size: { $ref: "#/definitions/size" },
      }),
      grants: { type: "object", additionalProperties: { type: "object" } },
      denied: {
        type: "array",
        maxItems: 64,
        uniqueItems: true,
        items: { type: "string", minLength: 1, maxLength: 64 },
      },
      review: { $ref: "#/definitions/digest" },
      bindings: {
        type: "object",
        propertyNames: { $ref: "#/definitions/namespace" },
        additionalProperties: {
          type: "array",
          maxItems: 128,
          uniqueItems: true,
          items: { $ref: "#/definitions/pluginID" },
        },
      },
      config: { type: "object" },
      seal: { $ref: "#/definitions/digest" },
    }),
  },
};
