/**
 * The published site's address, the schema addresses, and the two file names of a project.
 *
 * Everything else derives its addresses from here, so another deployment changes one constant (or a flag or an
 * environment variable on top of it). Specification: "Names", "Manifest", "Versioning".
 */

/** Base address of the published site and of the default plugin registry. */
export const BASE_URL = "https://waft.sh";

/** Address under which the schemas are served. */
export const SCHEMA_BASE = "https://waft.sh/schemas";

/** The only value that `$schema` of a manifest may have. */
export const MANIFEST_SCHEMA = `${SCHEMA_BASE}/v1/schema.json`;

/** The only value that `$schema` of a lockfile may have. */
export const LOCK_SCHEMA = `${SCHEMA_BASE}/v1/lock.schema.json`;

/** The only value that `$schema` of a register catalog may have. */
export const CATALOG_SCHEMA = `${SCHEMA_BASE}/v1/catalog.schema.json`;

/** The manifest's file name. */
export const MANIFEST_FILE = "waft.json";

/** The lockfile's file name. */
export const LOCK_FILE = "waft-lock.json";

/** The path of a package's register catalog, relative to its root. */
export const CATALOG_FILE = "register/catalog.json";

/** The scheme of references to artifacts in OCI registries. */
export const OCI_SCHEME = "oci://";
