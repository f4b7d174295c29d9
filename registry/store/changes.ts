/**
 * Changes of the registry: releases and yanks of all packages, newest first.
 *
 * In: checked queries. Out: plain data for the route, the page and the feed. Packages that a moderator holds are left
 * out, and so is a yank that was taken back.
 */
import { numberOf, type Queries, type Row, textOf } from "./database.ts";
import { keysetOf, type Order, orderText, sortValues } from "./keyset.ts";
import { isoTime, yankOf, type YankState } from "./packages.ts";

/** A release that was published or yanked. */
export interface Change {
  readonly change: "published" | "yanked";
  readonly name: string;
  readonly displayName: string;
  readonly version: string;
  /** The time of the change. */
  readonly at: string;
  readonly publisher: string;
  readonly verified: boolean;
  /** The yank of the release; a release that was published and then yanked has it in both of its changes. */
  readonly yanked: YankState | null;
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

const COLUMNS = `r.package, r.version, r.publisher, r.verified, p.title, y.reason, y.severity, y.yanked_at`;
const PUBLISHED = `SELECT ${COLUMNS}, r.published_at AS at, 'published' AS change FROM releases r
  JOIN packages p ON p.id = r.package
  LEFT JOIN yanks y ON y.package = r.package AND y.version = r.version WHERE p.held = 0`;
const YANKED = `SELECT ${COLUMNS}, y.yanked_at AS at, 'yanked' AS change FROM yanks y
  JOIN releases r ON r.package = y.package AND r.version = y.version
  JOIN packages p ON p.id = r.package WHERE p.held = 0`;

/** Lists changes. */
export async function listChanges(
  queries: Queries,
  query: { readonly limit: number; readonly after?: readonly (string | number)[] },
): Promise<ChangePage> {
  const { text, values } = keysetOf(ORDER, query.after);
  const most = query.limit + 1;
  // Each part ends at the limit by itself, so that it reads no more of its index than the page needs.
  const part = (rows: string, name: string): string =>
    `SELECT * FROM (SELECT * FROM (${rows}) AS ${name}_rows ${text} ORDER BY ${orderText(ORDER)} LIMIT ?) AS ${name}`;
  const rows = await queries.all(
    `SELECT * FROM (${part(PUBLISHED, "published")} UNION ALL ${part(YANKED, "yanked")}) AS found
     ORDER BY ${orderText(ORDER)} LIMIT ?`,
    ...values,
    most,
    ...values,
    most,
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
    version: textOf(row, "version"),
    at: isoTime(numberOf(row, "at")),
    publisher: textOf(row, "publisher"),
    verified: numberOf(row, "verified") === 1,
    yanked: yankOf(row).yanked ?? null,
  };
}
