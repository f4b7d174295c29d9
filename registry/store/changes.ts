/**
 * Changes of the registry: releases, yanks, deprecations and transfers of all packages, newest first.
 *
 * In: checked queries. Out: plain data for the route, the page and the feed. Packages that a moderator holds are left
 * out, and so are yanks and deprecations that were taken back.
 */
import { maybeText, numberOf, type Queries, type Row, textOf } from "./database.ts";
import { keysetOf, type Order, orderText, sortValues } from "./keyset.ts";
import { isoTime, yankOf, type YankState } from "./packages.ts";

/** A change of a release, or of a package. */
export interface Change {
  readonly change: "published" | "yanked" | "deprecated" | "transferred";
  readonly name: string;
  readonly displayName: string;
  /** Null: the whole package. */
  readonly version: string | null;
  /** The time of the change. */
  readonly at: string;
  readonly publisher: string;
  readonly verified: boolean;
  /** The yank of the release; a release that was published and then yanked has it in both of its changes. */
  readonly yanked: YankState | null;
  /** The message of a deprecation. */
  readonly deprecated: string | null;
  /** The beginning of the notes of a release that was published. */
  readonly notes: string | null;
}

/** One page of changes. */
export interface ChangePage {
  readonly changes: readonly Change[];
  /** Sort values of the last row when more follow. */
  readonly next?: readonly (string | number)[];
}

const ORDER: Order = ["-at", "package", "version", "change"];
/** The types of the sort values in a cursor. */
export const CHANGE_KEYS: readonly ("number" | "string")[] = ["number", "string", "string", "string"];

/** Characters of the notes of one release, so that a page of changes stays small. */
const NOTES_CHARACTERS = 2000;

const COLUMNS = `r.package, r.version, r.publisher, r.verified, p.title, y.reason, y.severity, y.yanked_at,
  CAST(NULL AS TEXT) AS message, substr(r.notes, 1, ${NOTES_CHARACTERS}) AS notes`;
/** Changes of a package as a whole have the publisher of its newest release, if it has one that is not yanked. */
const PACKAGE_COLUMNS = `COALESCE(r.publisher, '') AS publisher, COALESCE(r.verified, 0) AS verified, p.title,
  CAST(NULL AS TEXT) AS reason, CAST(NULL AS TEXT) AS severity, CAST(NULL AS BIGINT) AS yanked_at`;
const PUBLISHED = `SELECT ${COLUMNS}, r.published_at AS at, 'published' AS change FROM releases r
  JOIN packages p ON p.id = r.package
  LEFT JOIN yanks y ON y.package = r.package AND y.version = r.version WHERE p.held = 0`;
const YANKED = `SELECT ${COLUMNS}, y.yanked_at AS at, 'yanked' AS change FROM yanks y
  JOIN releases r ON r.package = y.package AND r.version = y.version
  JOIN packages p ON p.id = r.package WHERE p.held = 0`;
const DEPRECATED = `SELECT d.package, d.version, ${PACKAGE_COLUMNS}, d.message, CAST(NULL AS TEXT) AS notes,
    d.deprecated_at AS at, 'deprecated' AS change FROM deprecations d JOIN packages p ON p.id = d.package
  LEFT JOIN releases r ON r.package = d.package AND r.version = CASE d.version WHEN '' THEN p.latest ELSE d.version END
  WHERE p.held = 0`;
const TRANSFERRED = `SELECT t.package, '' AS version, ${PACKAGE_COLUMNS}, CAST(NULL AS TEXT) AS message,
    CAST(NULL AS TEXT) AS notes, t.transferred_at AS at, 'transferred' AS change FROM transfers t JOIN packages p ON p.id = t.package
  LEFT JOIN releases r ON r.package = t.package AND r.version = p.latest WHERE p.held = 0`;
const PARTS = { published: PUBLISHED, yanked: YANKED, deprecated: DEPRECATED, transferred: TRANSFERRED };

/** Lists changes. */
export async function listChanges(
  queries: Queries,
  query: { readonly limit: number; readonly after?: readonly (string | number)[] },
): Promise<ChangePage> {
  const { text, values } = keysetOf(ORDER, query.after);
  const most = query.limit + 1;
  // Each part ends at the limit by itself, so that it reads no more of its index than the page needs.
  const part = ([name, rows]: readonly [string, string]): string =>
    `SELECT * FROM (SELECT * FROM (${rows}) AS ${name}_rows ${text} ORDER BY ${orderText(ORDER)} LIMIT ?) AS ${name}`;
  const rows = await queries.all(
    `SELECT * FROM (${Object.entries(PARTS).map(part).join(" UNION ALL ")}) AS found
     ORDER BY ${orderText(ORDER)} LIMIT ?`,
    ...Object.keys(PARTS).flatMap(() => [...values, most]),
    most,
  );
  const shown = rows.slice(0, query.limit);
  const last = shown.at(-1);
  return {
    changes: shown.map(changeOf),
    ...(rows.length > query.limit && last !== undefined ? { next: sortValues(ORDER, last) } : {}),
  };
}

function changeOf(row: Row): Change {
  return {
    change: textOf(row, "change") as Change["change"],
    name: textOf(row, "package"),
    displayName: textOf(row, "title"),
    version: textOf(row, "version") || null,
    at: isoTime(numberOf(row, "at")),
    publisher: textOf(row, "publisher"),
    verified: numberOf(row, "verified") === 1,
    yanked: yankOf(row).yanked ?? null,
    deprecated: maybeText(row, "message") ?? null,
    notes: textOf(row, "change") === "published" ? maybeText(row, "notes") || null : null,
  };
}
