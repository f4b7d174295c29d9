/**
 * Verifies a release against its registry's signature and log.
 *
 * In: a release as an index lists it, its registry. Out: nothing, or a ProjectError (exit 5). The record must
 * name exactly this package, version, archive, definition, publisher and time of publication, its signature must be
 * that of a known key of the registry, and the registry's log must have it.
 */
import { closedMap, record as closed, SHARED_DEFINITIONS } from "../../definitions/definition.ts";
import { fail } from "../../base/diagnostic.ts";
import { parsed } from "../../packages/registry_answer.ts";
import { registryKey } from "../../packages/registry_keys.ts";
import { isSigned, recordBytes, type ReleaseRecord } from "../../packages/release_record.ts";
import type { Schema } from "../../base/schema_walk.ts";
import type { Release } from "../../packages/source.ts";
import type { RegistrySource } from "../../packages/source_registry.ts";
import type { OpsContext } from "../../packages/context.ts";
import { requireIncluded } from "../../packages/transparency_log.ts";

const digest: Schema = { $ref: "#/definitions/digest" };

/** The shape of a signed record; unknown properties beside record and signature are allowed. */
export const SIGNED_RECORD: Schema = {
  type: "object",
  required: ["record", "signature"],
  properties: {
    record: closed({
      schemaVersion: { type: "integer", const: 1 },
      package: { $ref: "#/definitions/pluginID" },
      version: { $ref: "#/definitions/version" },
      artifact: closed({ digest, size: { $ref: "#/definitions/size" } }),
      definitions: closedMap("pluginID", "digest"),
      publisher: { type: "string", minLength: 1, maxLength: 300 },
      publishedAt: { type: "string", maxLength: 40 },
    }),
    signature: closed({
      keyId: { type: "string", maxLength: 16, pattern: "^[0-9a-f]{16}$" },
      algorithm: { type: "string", enum: ["Ed25519"] },
      value: { type: "string", maxLength: 88 },
    }),
  },
  definitions: SHARED_DEFINITIONS,
};

/**
 * Checks a release against its signed record, and a record that this machine has not verified before against the log;
 * `again` does so with those that it has, too.
 */
export async function verifyRelease(
  context: OpsContext,
  source: RegistrySource,
  release: Release,
  again = false,
): Promise<void> {
  let signed: SignedRecord;
  try {
    signed = await verifyOnce(context, source, release, false);
  } catch (error) {
    // The cached record may be damaged, or predate a new setup of the registry: then ask the registry again.
    if (context.offline) throw error;
    signed = await verifyOnce(context, source, release, true);
  }
  if (!context.offline && (again || !signed.isKept)) await requireIncluded(context, source, signed.record);
  if (!signed.isKept) await source.keepRecord(release.package, release.version, signed.bytes);
}

/** A record with a good signature. */
interface SignedRecord {
  readonly record: ReleaseRecord;
  readonly bytes: Uint8Array;
  /** Whether this machine has verified it before. */
  readonly isKept: boolean;
}

async function verifyOnce(
  context: OpsContext,
  source: RegistrySource,
  release: Release,
  fresh: boolean,
): Promise<SignedRecord> {
  const name = `${release.package} ${release.version}`;
  const answer = await source.record(release.package, release.version, fresh);
  if (answer === undefined) throw fail("signature.missing", `${source.name} has no signed record of ${name}`);
  const { record, signature } = parsed(
    answer.bytes,
    `the record of ${name} from ${source.name}`,
    SIGNED_RECORD,
  ) as unknown as {
    readonly record: ReleaseRecord;
    readonly signature: { readonly keyId: string; readonly value: string };
  };
  const key = await registryKey(context, source, signature.keyId);
  if (!isSigned(recordBytes(record), signature.value, key)) {
    throw fail("signature.wrong", `the signature of ${name} is not that of ${source.name}'s key ${signature.keyId}`, {
      help: "the release was changed after publication, or this is not the registry that signed it",
    });
  }
  const differs = differenceOf(record, release);
  if (differs !== undefined) {
    throw fail("signature.disagrees", `${source.name} offers ${name} with a different ${differs} than it signed`);
  }
  return { record, ...answer };
}

function differenceOf(record: ReleaseRecord, release: Release): string | undefined {
  if (record.package !== release.package) return "package";
  if (record.version !== release.version) return "version";
  const { digest, size } = release.artifact;
  if (record.artifact.digest !== digest || record.artifact.size !== size) return "archive";
  if (!Object.hasOwn(record.definitions, release.id)) return "set of plugins";
  if (record.definitions[release.id] !== release.definitionDigest) return "definition";
  if (release.publisher !== undefined && record.publisher !== release.publisher) return "publisher";
  if (release.publishedAt !== undefined && record.publishedAt !== release.publishedAt) return "time of publication";
  return undefined;
}
