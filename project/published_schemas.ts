/**
 * The schemas that the site serves, by file name below `{schema_base}/v1/`.
 *
 * Out: JSON Schema (draft 7) documents built from the same objects that the readers check with, so the published and
 * the enforced schemas cannot drift apart.
 */
import { CATALOG_JSON_SCHEMA } from "./definitions/catalog.ts";
import { LOCKFILE_SCHEMA } from "./lockfile/lock_schema.ts";
import { MANIFEST_JSON_SCHEMA } from "./manifest/manifest.ts";
import { CATALOG_SCHEMA, LOCK_SCHEMA } from "./base/constants.ts";

const DRAFT = "http://json-schema.org/draft-07/schema#";

/** File name to schema. */
export function publishedSchemas(): { readonly [file: string]: object } {
  return {
    "schema.json": MANIFEST_JSON_SCHEMA,
    "lock.schema.json": { $schema: DRAFT, $id: LOCK_SCHEMA, title: "project lockfile", ...LOCKFILE_SCHEMA },
    "catalog.schema.json": { $schema: DRAFT, $id: CATALOG_SCHEMA, title: "register catalog", ...CATALOG_JSON_SCHEMA },
  };
}
