/**
 * Releases for tests of the store and the server: definitions turned into archives, signed with a throw-away key.
 */
import { writeArchive } from "../../project/packages/archive.ts";
import { openPackage } from "../../project/definitions/catalog.ts";
import type { Definition } from "../../project/definitions/definition.ts";
import { type Digest, digestBytes, jcs } from "../../project/base/integrity.ts";
import type { ReleaseRecord } from "../../project/packages/release_record.ts";
import { makeSigningKey, signRecord } from "../../registry/signing.ts";
import type { NewRelease } from "../../registry/store/releases.ts";
import { packageFiles } from "../project/fake_registry.ts";

const KEY = makeSigningKey();

/** A release of the given definitions as the store takes it. */
export async function sampleRelease(
  definitions: readonly Definition[],
  more: Partial<NewRelease> & { readonly account: string },
): Promise<NewRelease> {
  const files = packageFiles(definitions);
  const archive = writeArchive(files);
  const { id, version } = definitions[0];
  const opened = await openPackage(files, version);
  const artifact = digestBytes(archive);
  const publishedAt = more.publishedAt ?? Date.UTC(2026, 7, 1);
  const record: ReleaseRecord = {
    schemaVersion: 1,
    package: id,
    version,
    artifact: { digest: artifact, size: archive.length },
    definitions: Object.fromEntries(Object.values(opened.plugins).map((p) => [p.definition.id, p.digest as Digest])),
    publisher: "github.com/acme",
    publishedAt: new Date(publishedAt).toISOString(),
  };
  return {
    package: id,
    version,
    publisher: "github.com/acme",
    verified: false,
    held: false,
    publishedAt,
    metadata: opened.metadata,
    readme: "# Read me\n",
    readmeHtml: "<h3>Read me</h3>\n",
    notes: "",
    files: [...files].map(([path, bytes]) => ({ path, size: bytes.length })),
    plugins: Object.values(opened.plugins).map(({ definition, digest, entry }) => ({ definition, digest, entry })),
    archive,
    artifact,
    record: jcs(record),
    signature: signRecord(record, KEY),
    signingKey: KEY.id,
    ...more,
  };
}
