/**
 * Sources of packages: the interface of registries and directories, and the shape of their answers about a release.
 *
 * In: plugin ids. Out: releases for the resolver, and the bytes of an archive whose digest the caller checks. No
 * source is trusted: the shape of its answers is checked here, and its bytes against digests by packages/fetch.ts.
 */
import { closedMap, record, SHARED_DEFINITIONS } from "../definitions/definition.ts";
import type { Digest } from "../base/integrity.ts";
import type { LockedSource } from "../lockfile/lock_schema.ts";
import type { Schema } from "../base/schema_walk.ts";

/** The reason for which a release was withdrawn. */
export interface Yank {
  readonly reason: string;
  readonly severity: "broken" | "security" | "other";
}

/** A release of a plugin. */
export interface Release {
  readonly id: string;
  readonly version: string;
  readonly package: string;
  readonly definitionDigest: Digest;
  readonly requires: { readonly [id: string]: string };
  readonly compatibility: {
    readonly engines: { readonly [name: string]: string };
    readonly platforms: readonly string[];
  };
  readonly artifact: { readonly digest: Digest; readonly size: number };
  readonly publisher?: string;
  readonly publishedAt?: string;
  readonly stability?: string;
  readonly yanked?: Yank;
  /** What the authors tell the users of the release, or of its package. */
  readonly deprecated?: string;
  /** True when the publisher has no other package in the registry. */
  readonly firstPublish?: boolean;
}

/** A registry or a directory. */
export interface Source {
  /** Its name in messages. */
  readonly name: string;
  readonly locked: LockedSource;
  /** The releases of an id; undefined when the source has no such id. */
  releases(id: string): Promise<readonly Release[] | undefined>;
  /** The bytes of a release's archive; their digest is not checked yet. */
  archive(release: Release): Promise<Uint8Array>;
}

/** The releases that a plugin may have, and the bytes of its index. Registries accept and clients read no more. */
export const MAX_RELEASES: number = 10_000;
export const MAX_INDEX_BYTES: number = 16 << 20;

/** Shape of `GET /api/plugins/{id}/index`; unknown keys are allowed, so that registries can grow. */
export const INDEX_SCHEMA: Schema = {
  type: "object",
  required: ["schemaVersion", "id", "package", "releases"],
  properties: {
    schemaVersion: { type: "integer", const: 1 },
    id: { $ref: "#/definitions/pluginID" },
    package: { $ref: "#/definitions/pluginID" },
    releases: {
      type: "array",
      maxItems: MAX_RELEASES,
      items: {
        type: "object",
        required: ["version", "definitionDigest", "requires", "compatibility", "artifact", "publisher", "publishedAt"],
        properties: {
          version: { $ref: "#/definitions/version" },
          definitionDigest: { $ref: "#/definitions/digest" },
          requires: { $ref: "#/definitions/requires" },
          compatibility: record({
            engines: closedMap("slug", "versionRange"),
            platforms: { type: "array", maxItems: 64, items: { type: "string", maxLength: 64 } },
          }),
          artifact: record({ digest: { $ref: "#/definitions/digest" }, size: { $ref: "#/definitions/size" } }),
          publisher: { type: "string", minLength: 1, maxLength: 300, pattern: "^[!-~]+$" },
          publishedAt: { type: "string", maxLength: 40, pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]+Z)?$" },
          stability: { type: "string", enum: ["experimental", "stable", "deprecated"] },
          firstPublish: { type: "boolean" },
          deprecated: { type: "string", minLength: 1, maxLength: 300 },
          yanked: {
            type: "object",
            required: ["reason", "severity"],
            properties: {
              reason: { type: "string", minLength: 1, maxLength: 300 },
              severity: { type: "string", enum: ["broken", "security", "other"] },
            },
          },
        },
      },
    },
  },
  definitions: SHARED_DEFINITIONS,
};

/** Shape of `GET /api/packages`. */
export const FOUND_SCHEMA: Schema = {
  type: "object",
  required: ["packages", "total"],
  properties: {
    packages: {
      type: "array",
      maxItems: 50,
      items: {
        type: "object",
        required: ["name", "version", "description"],
        properties: {
          name: { $ref: "#/definitions/pluginID" },
          version: { $ref: "#/definitions/version" },
          description: { type: "string", maxLength: 500 },
        },
      },
    },
    total: { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
  },
  definitions: SHARED_DEFINITIONS,
};

/** Shape of `GET /api/contracts/{id}@{major}/providers`. */
export const PROVIDERS_SCHEMA: Schema = {
  type: "object",
  required: ["providers"],
  properties: {
    providers: {
      type: "array",
      maxItems: 1000,
      items: { type: "object", required: ["id"], properties: { id: { $ref: "#/definitions/pluginID" } } },
    },
  },
  definitions: SHARED_DEFINITIONS,
};
