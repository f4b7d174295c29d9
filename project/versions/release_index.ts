/**
 * The release index: the releases, the targets of the channels, and the files of each release.
 *
 * In: the untrusted bytes of `releases/index.json` and of its signature file. Out: a verified ReleaseIndex, or a
 * ProjectError. Order of the checks: first the signatures over the exact bytes (a threshold of the trusted keys), then
 * the strict parse, then freshness: `sequence` never falls and `expires` has not passed, so an old index cannot be
 * replayed. Files are named relative to the index's own site, so an index cannot redirect to another site.
 */
import { record } from "../definitions/definition.ts";
import { type Diagnostic, fail, ProjectError, quote } from "../base/diagnostic.ts";
import { type JsonValue, readJson } from "../base/json_read.ts";
import { toDiagnostic } from "../manifest/manifest.ts";
import { isSigned, keyIdOf } from "../packages/release_record.ts";
import { type Schema, walkSchema } from "../base/schema_walk.ts";
import { isCanonicalVersion } from "../base/version.ts";

/** Path of the index below a release site's address. */
export const INDEX_PATH = "releases/index.json";
/** Path of its signatures. */
export const SIGNATURE_PATH = "releases/index.json.sig";
/** Largest index that is read. */
export const MAX_RELEASE_INDEX = 4 << 20;
/** Largest signature file that is read. */
export const MAX_SIGNATURES = 1 << 14;
/** Largest artifact. */
const MAX_ARTIFACT = 512 << 20;

/** A file of a release. */
export interface ReleaseArtifact {
  /** `linux/amd64`, or `any`. */
  readonly platform: string;
  readonly libc?: "gnu" | "musl";
  readonly kind: "bundle" | "standalone" | "source" | "npm" | "jsr";
  /** Relative to the site's address: `releases/<version>/<file>`. */
  readonly url: string;
  readonly size: number;
  /** 64 hex digits. */
  readonly sha256: string;
}

/** A release in the index. */
export interface ReleaseEntry {
  readonly publishedAt: string;
  readonly commit: string;
  /** The oldest Deno that runs it from source. */
  readonly minDeno: string;
  /** The reason for its withdrawal. */
  readonly yanked?: string;
  readonly artifacts: readonly ReleaseArtifact[];
}

/** Names of channels in the index; `latest` is the newest official release. */
type ChannelName = "canary" | "nightly" | "latest";

/** The index. */
export interface ReleaseIndex {
  readonly schemaVersion: 1;
  readonly sequence: number;
  readonly expires: string;
  readonly channels: { readonly [name in ChannelName]?: string };
  readonly releases: { readonly [version: string]: ReleaseEntry };
}

/** Keys that sign an index, and how many of them must have. */
export interface ReleaseKeys {
  readonly threshold: number;
  /** Raw 32 bytes, base64. */
  readonly keys: readonly string[];
}

const VERSION: Schema = { type: "string", minLength: 5, maxLength: 100 };
const TIME: Schema = {
  type: "string",
  maxLength: 20,
  pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$",
};

const ARTIFACT = record({
  platform: { type: "string", maxLength: 40, pattern: "^(?:any|[a-z0-9]+/[a-z0-9]+)$" },
  libc: { type: "string", enum: ["gnu", "musl"] },
  kind: { type: "string", enum: ["bundle", "standalone", "source", "npm", "jsr"] },
  url: {
    type: "string",
    maxLength: 300,
    pattern: "^releases/[0-9A-Za-z][0-9A-Za-z.+_-]*/[0-9A-Za-z][0-9A-Za-z.+_-]*$",
  },
  size: { type: "integer", minimum: 1, maximum: MAX_ARTIFACT },
  sha256: { type: "string", maxLength: 64, pattern: "^[0-9a-f]{64}$" },
}, ["libc"]);

const SCHEMA: Schema = record({
  schemaVersion: { const: 1 },
  sequence: { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
  expires: TIME,
  channels: record({ canary: VERSION, nightly: VERSION, latest: VERSION }, ["canary", "nightly", "latest"]),
  releases: {
    type: "object",
    propertyNames: VERSION,
    additionalProperties: record({
      publishedAt: TIME,
      commit: { type: "string", maxLength: 64, pattern: "^[0-9a-f]{40}(?:[0-9a-f]{24})?$" },
      minDeno: VERSION,
      yanked: { type: "string", minLength: 1, maxLength: 500 },
      artifacts: { type: "array", minItems: 1, maxItems: 64, items: ARTIFACT },
    }, ["yanked"]),
  },
});

const SIGNATURES: Schema = record({
  signatures: {
    type: "array",
    maxItems: 16,
    items: record({
      keyId: { type: "string", maxLength: 16, pattern: "^[0-9a-f]{16}$" },
      value: { type: "string", maxLength: 88, pattern: "^[A-Za-z0-9+/]{86}==$" },
    }),
  },
});

/** The schema of a key file. */
const KEYS: Schema = record({
  threshold: { type: "integer", minimum: 1, maximum: 16 },
  keys: {
    type: "array",
    minItems: 1,
    maxItems: 16,
    uniqueItems: true,
    items: { type: "string", maxLength: 44, pattern: "^[A-Za-z0-9+/]{43}=$" },
  },
});

function strict(bytes: Uint8Array, file: string, codes: string, schema: Schema, maxBytes: number): JsonValue {
  const reading = readJson(bytes, { file, codes, maxBytes });
  if (!reading.ok) throw new ProjectError(reading.diagnostics);
  const found: Diagnostic[] = [
    ...reading.document.duplicates,
    ...walkSchema(reading.document.value, schema).map((v) => toDiagnostic(v, reading.document, codes)),
  ];
  if (found.length > 0) throw new ProjectError(found.slice(0, 10));
  return reading.document.value;
}

/** Reads a key file. */
export function parseReleaseKeys(bytes: Uint8Array, file: string): ReleaseKeys {
  const keys = strict(bytes, file, "signature", KEYS, 1 << 14) as unknown as ReleaseKeys;
  if (keys.threshold > keys.keys.length) {
    throw fail("signature.keys", `${keys.threshold} signatures are required, but there are ${keys.keys.length} keys`, {
      file,
    });
  }
  return keys;
}

/** Throws unless enough of the keys signed these bytes. Several signatures of one key count once. */
export function requireSigned(bytes: Uint8Array, signatures: Uint8Array, keys: ReleaseKeys, file: string): void {
  const { signatures: list } = strict(
    signatures,
    `${file}.sig`,
    "signature",
    SIGNATURES,
    MAX_SIGNATURES,
  ) as unknown as {
    readonly signatures: readonly { readonly keyId: string; readonly value: string }[];
  };
  const known = new Map(keys.keys.map((key) => [keyIdOf(key), key]));
  const good = new Set<string>();
  for (const { keyId, value } of list) {
    const key = known.get(keyId);
    if (key !== undefined && isSigned(bytes, value, key)) good.add(keyId);
  }
  if (good.size >= keys.threshold) return;
  const named = list.filter(({ keyId }) => known.has(keyId)).length;
  throw fail(
    "signature.index",
    named === 0
      ? `the release index is signed by none of the ${keys.keys.length} keys that this waft trusts`
      : `the release index has ${good.size} valid signatures of trusted keys; ${keys.threshold} are needed`,
    { file, help: "nothing was installed; if this persists, do not trust the site or the network" },
  );
}

/** Parses an index whose signatures have been verified. */
export function parseReleaseIndex(bytes: Uint8Array, file: string): ReleaseIndex {
  const index = strict(bytes, file, "release.invalid", SCHEMA, MAX_RELEASE_INDEX) as unknown as ReleaseIndex;
  const wrong = (message: string): ProjectError => fail("release.invalid", message, { file });
  for (const [version, entry] of Object.entries(index.releases)) {
    if (!isCanonicalVersion(version)) throw wrong(`${quote(version)} is not a version`);
    for (const { url } of entry.artifacts) {
      if (!url.startsWith(`releases/${version}/`)) throw wrong(`${quote(url)} is not a file of ${version}`);
    }
  }
  for (const [channel, version] of Object.entries(index.channels)) {
    if (index.releases[version] === undefined) {
      throw wrong(`channel ${channel} points at ${quote(version)}, which does not exist`);
    }
  }
  return index;
}

/** Throws for an expired index, or one older than an index seen before. */
export function requireFresh(index: ReleaseIndex, now: number, seen: number | undefined, file: string): void {
  if (seen !== undefined && index.sequence < seen) {
    throw fail("release.rollback", `the release index has sequence ${index.sequence}; ${seen} was seen before`, {
      file,
      help: "nothing was installed; the site, a mirror or the network shows an older state",
    });
  }
  const expires = Date.parse(index.expires);
  if (!(expires > now)) {
    throw fail("release.expired", `the release index expired at ${index.expires}`, {
      file,
      help: "nothing was installed; check this machine's clock, else the site is out of date",
    });
  }
}

/** The version that a target means: a channel, or an exact version. */
export function versionOfTarget(index: ReleaseIndex, target: string): string {
  const version = namedBy(index, target);
  const { yanked } = index.releases[version];
  if (yanked !== undefined) throw fail("release.unknown", `${version} was withdrawn: ${quote(yanked, 300)}`);
  return version;
}

function namedBy(index: ReleaseIndex, target: string): string {
  const channel = target === "official" || target === "stable" ? "latest" : target;
  if (channel === "canary" || channel === "nightly" || channel === "latest") {
    const version = index.channels[channel];
    if (version === undefined) throw fail("release.unknown", `there is no ${target} release yet`);
    return version;
  }
  if (Object.hasOwn(index.releases, target)) return target;
  const some = Object.keys(index.releases).slice(-5).join(", ");
  throw fail("release.unknown", `there is no release ${quote(target)}`, {
    help: some === "" ? "there are no releases yet" : `releases: ${some}; or canary, nightly, latest`,
  });
}

/** The artifact for a machine. */
export function artifactFor(index: ReleaseIndex, version: string, platform: string, libc?: string): ReleaseArtifact {
  const { artifacts } = index.releases[version];
  const found = artifacts.find((a) =>
    a.kind === "bundle" && a.platform === platform && (a.libc === undefined || libc === undefined || a.libc === libc)
  );
  if (found !== undefined) return found;
  const platforms = artifacts.filter((a) => a.kind === "bundle").map((a) => a.platform).join(", ") || "none";
  throw fail(
    "release.unknown",
    `${version} has no bundle for ${platform}${libc === "musl" ? " with musl" : ""} (it has ${platforms})`,
    {
      help: "install it from source: it needs Deno on the PATH (sh install.sh --from-source)",
    },
  );
}
