/**
 * Deprecations: what authors tell the users of a release, or of a package with all of its releases. In: messages. Out:
 * rows that indexes and pages join. Invariant: a deprecation changes no resolution; each change is one transaction with
 * its entry in the audit log.
 */
import { audit } from "./accounts.ts";
import type { Writes } from "./database.ts";

/** The subject of a deprecation, and who changes it. */
interface DeprecationOf {
  readonly package: string;
  /** Undefined: the package. */
  readonly version: string | undefined;
  readonly account: string;
  readonly at: number;
}

/** The joins that give `message` of a release `alias`: that of the release, or else of its package. */
export function deprecationJoins(alias: string): string {
  return `LEFT JOIN deprecations dr ON dr.package = ${alias}.package AND dr.version = ${alias}.version
     LEFT JOIN deprecations dp ON dp.package = ${alias}.package AND dp.version = ''`;
}

/** The column of these joins. */
export const DEPRECATION_COLUMN = "COALESCE(dr.message, dp.message) AS deprecation";

/** Deprecates a release or a package, or changes the message. */
export function deprecate(database: Writes, of: DeprecationOf & { readonly message: string }): Promise<void> {
  return database.write(async (queries) => {
    await queries.run(
      `INSERT INTO deprecations (package, version, message, account, deprecated_at) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (package, version) DO UPDATE SET message = excluded.message, account = excluded.account,
         deprecated_at = excluded.deprecated_at`,
      of.package,
      of.version ?? "",
      of.message,
      of.account,
      of.at,
    );
    await audit(queries, {
      at: of.at,
      account: of.account,
      action: "deprecate",
      subject: subject(of),
      detail: of.message,
    });
  });
}

/** Takes a deprecation back; nothing happens if there is none. */
export function undeprecate(database: Writes, of: DeprecationOf): Promise<void> {
  return database.write(async (queries) => {
    const removed = await queries.run(
      "DELETE FROM deprecations WHERE package = ? AND version = ?",
      of.package,
      of.version ?? "",
    );
    if (removed === 0) return;
    await audit(queries, { at: of.at, account: of.account, action: "undeprecate", subject: subject(of) });
  });
}

function subject({ package: id, version }: DeprecationOf): string {
  return version === undefined ? id : `${id} ${version}`;
}
