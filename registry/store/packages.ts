/**
 * Reading packages: lists with filters and pages, one package, its releases, the solver's index.
 *
 * In: checked queries. Out: plain data for routes and pages. Pages of a list follow each other by the sort values of
 * the last row (keyset), so packages that are published between two pages neither repeat nor hide others.
 */
import type { Definition } from "../../project/definitions/definition.ts";
import type { PackageMetadata } from "../../project/manifest/manifest.ts";
import { compareVersions } from "../../project/base/version.ts";
import { containing, first, maybeText, numberOf, type Queries, type Row, type SqlValue, textOf } from "./database.ts";
import { DEPRECATION_COLUMN, deprecationJoins } from "./deprecations.ts";
import { keysetOf, type Order, orderText, sortValues } from "./keyset.ts";
import type { ReleaseRecord } from "../../project/packages/release_record.ts";
import type { ReleaseFile } from "./releases.ts";

/** The orders of a list. */
export const SORTS = ["relevance", "installs", "recent", "name"] as const;
/** A sort order. */
export type Sort = (typeof SORTS)[number];
/** Filters by facet; each is a query parameter of that name. */
export const FACETS = [
  "category",
  "tag",
  "stability",
  "engine",
  "platform",
  "kind",
  "authority",
  "contract",
] as const;
/** A facet. */
export type Facet = (typeof FACETS)[number];

/** A query for packages. */
export interface ListQuery {
  readonly q: string;
  readonly facets: { readonly [facet in Facet]?: string };
  readonly sort: Sort;
  readonly limit: number;
  /** Sort values of the last row of the page before. */
  readonly after?: readonly (string | number)[];
}

/** A package as lists show it. */
export interface PackageSummary {
  readonly name: string;
  readonly displayName: string;
  readonly version: string;
  readonly description: string;
  readonly stability: string | null;
  readonly category: string | null;
  readonly tags: readonly string[];
  readonly license: string;
  readonly repository: string;
  readonly kinds: readonly string[];
  readonly authorities: readonly string[];
  readonly installs: { readonly total: number; readonly week: number };
  readonly publishedAt: string;
  readonly deprecated: boolean;
}

/** One page. */
interface PackagePage {
  readonly packages: readonly PackageSummary[];
  readonly total: number;
  /** Sort values of the last row when more follow. */
  readonly next?: readonly (string | number)[];
}

/** The reason for which a release was yanked. */
export interface YankState {
  readonly reason: string;
  readonly severity: "broken" | "security" | "other";
  readonly at: string;
}

/** A release of a package. */
export interface ReleaseState {
  readonly package: string;
  readonly version: string;
  readonly publishedAt: string;
  readonly publisher: string;
  readonly verified: boolean;
  readonly artifact: { readonly digest: string; readonly size: number };
  readonly metadata: PackageMetadata;
  readonly readme: string;
  /** The README as safe HTML; undefined until the check process has rendered it. */
  readonly readmeHtml?: string;
  /** The release notes as text; "" for none. */
  readonly notes: string;
  readonly files: readonly ReleaseFile[];
  readonly record: ReleaseRecord;
  readonly signature: { readonly keyId: string; readonly algorithm: "Ed25519"; readonly value: string };
  readonly yanked?: YankState;
  /** The message of its deprecation, or of its package's. */
  readonly deprecated?: string;
  readonly plugins: readonly PluginState[];
}

/** One plugin of a release. */
interface PluginState {
  readonly id: string;
  readonly digest: string;
  readonly definition: Definition;
  readonly entry: { readonly path: string; readonly digest: string; readonly size: number };
}

const SCORE = `CASE WHEN id = ? OR title_lower = ? THEN 4 WHEN id LIKE ? ESCAPE '\\' THEN 3
  WHEN title_lower LIKE ? ESCAPE '\\' THEN 2 ELSE 1 END`;

/** The order of each sort; the id always comes last. */
const ORDERS: { readonly [sort in Sort]: Order } = {
  relevance: ["-score", "-week_rank", "id"],
  installs: ["-installs_total", "id"],
  recent: ["-published_at", "id"],
  name: ["id"],
};

/** Lists packages. */
export async function listPackages(queries: Queries, query: ListQuery): Promise<PackagePage> {
  const words = query.q.toLowerCase().split(/\s+/).filter((w) => w !== "");
  const where = ["held = 0", "latest IS NOT NULL"];
  const filters: SqlValue[] = [];
  for (const word of words) {
    where.push("search LIKE ? ESCAPE '\\'");
    filters.push(containing(word));
  }
  for (const facet of FACETS) {
    const value = query.facets[facet];
    if (value === undefined) continue;
    const any = facet === "platform" ? " OR f.value = '*'" : "";
    where.push(
      `EXISTS (SELECT 1 FROM facets f WHERE f.package = p.id AND f.facet = '${facet}' AND (f.value = ?${any}))`,
    );
    filters.push(value);
  }
  const counted = await first(queries, `SELECT count(*) AS n FROM packages p WHERE ${where.join(" AND ")}`, ...filters);
  const total = numberOf(counted!, "n");

  const whole = query.q.trim().toLowerCase();
  const scored = words.length > 0;
  const score = scored ? SCORE : "1";
  const scores: SqlValue[] = scored
    ? [whole, whole, `%/${containing(whole).slice(1, -1)}`, containing(whole).slice(1)]
    : [];
  const order = ORDERS[query.sort];
  const { text: keyset, values: keys } = keysetOf(order, query.after);
  const rows = await queries.all(
    `SELECT * FROM (SELECT p.*, ${score} AS score FROM packages p WHERE ${where.join(" AND ")}) AS found
     ${keyset} ORDER BY ${orderText(order)} LIMIT ?`,
    ...scores,
    ...filters,
    ...keys,
    query.limit + 1,
  );
  const shown = rows.slice(0, query.limit);
  const last = shown.at(-1);
  return {
    packages: shown.map(summaryOf),
    total,
    ...(rows.length > query.limit && last !== undefined ? { next: sortValues(order, last) } : {}),
  };
}

/** The types of the sort values in a cursor of that order. */
export function keyTypes(sort: Sort): ("number" | "string")[] {
  return ORDERS[sort].map((c) => c === "id" ? "string" : "number");
}

/** A row of `packages` as lists show it. */
function summaryOf(row: Row): PackageSummary {
  const stability = maybeText(row, "stability") ?? null;
  return {
    name: textOf(row, "id"),
    displayName: textOf(row, "title"),
    version: maybeText(row, "latest") ?? "",
    description: textOf(row, "summary"),
    stability,
    category: maybeText(row, "category") ?? null,
    tags: JSON.parse(textOf(row, "tags")) as string[],
    license: textOf(row, "license"),
    repository: textOf(row, "repository"),
    kinds: JSON.parse(textOf(row, "kinds")) as string[],
    authorities: JSON.parse(textOf(row, "authorities")) as string[],
    installs: { total: numberOf(row, "installs_total"), week: numberOf(row, "installs_week") },
    publishedAt: isoTime(numberOf(row, "published_at")),
    deprecated: stability === "deprecated",
  };
}

/** A package. */
export async function findPackage(
  queries: Queries,
  id: string,
): Promise<{ summary: PackageSummary; held: boolean } | undefined> {
  const row = await first(queries, "SELECT * FROM packages WHERE id = ?", id);
  return row && { summary: summaryOf(row), held: numberOf(row, "held") === 1 };
}

/** Values of a facet among the listed packages, with counts, the most frequent first. */
export async function facetCounts(
  queries: Queries,
  facet: Facet,
  limit: number,
): Promise<{ value: string; count: number }[]> {
  const rows = await queries.all(
    `SELECT f.value, count(*) AS n FROM facets f JOIN packages p ON p.id = f.package
     WHERE f.facet = ? AND p.held = 0 AND p.latest IS NOT NULL GROUP BY f.value ORDER BY n DESC, f.value LIMIT ?`,
    facet,
    limit,
  );
  return rows.map((row) => ({ value: textOf(row, "value"), count: numberOf(row, "n") }));
}

/** A line of a package's version list. */
export interface VersionLine {
  readonly version: string;
  readonly publishedAt: string;
  readonly publisher: string;
  readonly verified: boolean;
  /** True when another account published the version before. */
  readonly publisherChanged: boolean;
  readonly artifact: { readonly digest: string; readonly size: number };
  readonly yanked?: YankState;
}

/** The versions of a package, newest first. */
export async function listVersions(queries: Queries, id: string): Promise<VersionLine[]> {
  const rows = await queries.all(
    `SELECT r.version, r.published_at, r.publisher, r.verified, r.artifact, r.size, r.account, y.reason, y.severity,
       y.yanked_at
     FROM releases r LEFT JOIN yanks y ON y.package = r.package AND y.version = r.version WHERE r.package = ?
     ORDER BY r.published_at`,
    id,
  );
  return rows.map((row, i) => ({
    version: textOf(row, "version"),
    publishedAt: isoTime(numberOf(row, "published_at")),
    publisher: textOf(row, "publisher"),
    verified: numberOf(row, "verified") === 1,
    publisherChanged: i > 0 && textOf(row, "account") !== textOf(rows[i - 1], "account"),
    artifact: { digest: textOf(row, "artifact"), size: numberOf(row, "size") },
    ...yankOf(row),
  })).sort((a, b) => compareVersions(b.version, a.version));
}

/** The yank of a row that has the columns `reason`, `severity` and `yanked_at`. */
export function yankOf(row: Row): { yanked?: YankState } {
  const reason = maybeText(row, "reason");
  if (reason === undefined) return {};
  const severity = textOf(row, "severity") as YankState["severity"];
  return { yanked: { reason, severity, at: isoTime(numberOf(row, "yanked_at")) } };
}

/** One release with everything. */
export async function findRelease(queries: Queries, id: string, version: string): Promise<ReleaseState | undefined> {
  const row = await first(
    queries,
    `SELECT r.*, y.reason, y.severity, y.yanked_at, ${DEPRECATION_COLUMN} FROM releases r
     LEFT JOIN yanks y ON y.package = r.package AND y.version = r.version
     ${deprecationJoins("r")} WHERE r.package = ? AND r.version = ?`,
    id,
    version,
  );
  if (row === undefined) return undefined;
  const readmeHtml = maybeText(row, "readme_html");
  const deprecated = maybeText(row, "deprecation");
  const plugins = await queries.all(
    "SELECT id, digest, definition, entry FROM definitions WHERE package = ? AND version = ? ORDER BY id",
    id,
    version,
  );
  return {
    package: id,
    version,
    publishedAt: isoTime(numberOf(row, "published_at")),
    publisher: textOf(row, "publisher"),
    verified: numberOf(row, "verified") === 1,
    artifact: { digest: textOf(row, "artifact"), size: numberOf(row, "size") },
    metadata: JSON.parse(textOf(row, "metadata")) as PackageMetadata,
    readme: textOf(row, "readme"),
    ...(readmeHtml === undefined ? {} : { readmeHtml }),
    notes: maybeText(row, "notes") ?? "",
    files: JSON.parse(textOf(row, "files")) as ReleaseFile[],
    record: JSON.parse(textOf(row, "record")) as ReleaseRecord,
    signature: { keyId: textOf(row, "signing_key"), algorithm: "Ed25519", value: textOf(row, "signature") },
    ...yankOf(row),
    ...(deprecated === undefined ? {} : { deprecated }),
    plugins: plugins.map((p) => ({
      id: textOf(p, "id"),
      digest: textOf(p, "digest"),
      definition: JSON.parse(textOf(p, "definition")) as Definition,
      entry: JSON.parse(textOf(p, "entry")) as PluginState["entry"],
    })),
  };
}

/** One release of one plugin, for the solver. */
interface IndexRelease {
  readonly version: string;
  readonly definitionDigest: string;
  readonly requires: { readonly [id: string]: string };
  readonly compatibility: Definition["compatibility"];
  readonly artifact: { readonly digest: string; readonly size: number };
  readonly publisher: string;
  readonly publishedAt: string;
  readonly verified: boolean;
  readonly firstPublish: boolean;
  readonly stability?: string;
  readonly yanked?: { readonly reason: string; readonly severity: string };
  /** What its authors tell the users of the release, or of its package. */
  readonly deprecated?: string;
}

/** The parts of a definition that the index needs; kept apart so that an index never parses whole definitions. */
export type SolverFacts = Pick<Definition, "requires" | "compatibility" | "stability">;

/** The releases of a plugin as the resolver needs them. */
export interface PluginIndex {
  readonly schemaVersion: 1;
  readonly id: string;
  readonly package: string;
  readonly releases: readonly IndexRelease[];
}

/** All releases of a plugin. */
export async function pluginIndex(queries: Queries, id: string): Promise<PluginIndex | undefined> {
  const rows = await queries.all(
    `SELECT d.version, d.package, d.digest, COALESCE(d.facts, d.definition) AS facts, r.artifact, r.size, r.publisher, r.verified, r.published_at,
       y.reason, y.severity, y.yanked_at, p.owner, ${DEPRECATION_COLUMN}
     FROM definitions d
     JOIN releases r ON r.package = d.package AND r.version = d.version
     JOIN packages p ON p.id = d.package
     LEFT JOIN yanks y ON y.package = d.package AND y.version = d.version
     ${deprecationJoins("d")}
     WHERE d.id = ?`,
    id,
  );
  if (rows.length === 0) return undefined;
  // Asked once: an account may own as many packages as a plugin has releases.
  const owned = await queries.all("SELECT id FROM packages WHERE owner = ? LIMIT 2", textOf(rows[0], "owner"));
  const releases = rows.map((row): IndexRelease => {
    const { requires, compatibility, stability } = JSON.parse(textOf(row, "facts")) as SolverFacts;
    const { yanked } = yankOf(row);
    const deprecated = maybeText(row, "deprecation");
    return {
      version: textOf(row, "version"),
      definitionDigest: textOf(row, "digest"),
      requires,
      compatibility,
      artifact: { digest: textOf(row, "artifact"), size: numberOf(row, "size") },
      publisher: textOf(row, "publisher"),
      publishedAt: isoTime(numberOf(row, "published_at")),
      verified: numberOf(row, "verified") === 1,
      firstPublish: owned.length === 1,
      ...(stability === undefined ? {} : { stability }),
      ...(yanked === undefined ? {} : { yanked: { reason: yanked.reason, severity: yanked.severity } }),
      ...(deprecated === undefined ? {} : { deprecated }),
    };
  }).sort((a, b) => compareVersions(b.version, a.version));
  return { schemaVersion: 1, id, package: textOf(rows[0], "package"), releases };
}

/** Whether the package of a plugin is held, and a text that differs whenever the index of the plugin does. */
export async function indexState(
  queries: Queries,
  id: string,
): Promise<{ readonly held: boolean; readonly state: string } | undefined> {
  const row = await first(
    queries,
    `SELECT p.id, p.held,
       (SELECT count(*) FROM (SELECT id FROM packages o WHERE o.owner = p.owner LIMIT 2) AS owned) AS owned
     FROM plugins q JOIN packages p ON p.id = q.package WHERE q.id = ?`,
    id,
  );
  if (row === undefined) return undefined;
  const versions = await versionsState(queries, textOf(row, "id"));
  return { held: numberOf(row, "held") === 1, state: `${numberOf(row, "owned")} ${versions}` };
}

/**
 * A text that differs whenever the list of a package's versions does: releases are added, yanks and deprecations come
 * and go.
 */
export async function versionsState(queries: Queries, id: string): Promise<string> {
  const row = (await first(
    queries,
    `SELECT (SELECT count(*) FROM releases WHERE package = ?) AS releases, count(*) AS yanks,
       COALESCE(max(yanked_at), 0) AS latest, COALESCE(CAST(sum(yanked_at % 1000003) AS BIGINT), 0) AS times,
       (SELECT count(*) FROM deprecations WHERE package = ?) AS deprecations,
       (SELECT COALESCE(CAST(sum(deprecated_at % 1000003) AS BIGINT), 0) FROM deprecations WHERE package = ?)
         AS deprecated
     FROM yanks WHERE package = ?`,
    id,
    id,
    id,
    id,
  ))!;
  return ["releases", "yanks", "latest", "times", "deprecations", "deprecated"].map((name) => numberOf(row, name)).join(
    " ",
  );
}

/** The package of a plugin id. */
export async function packageOfPlugin(queries: Queries, id: string): Promise<string | undefined> {
  const row = await first(queries, "SELECT package FROM plugins WHERE id = ?", id);
  return row && textOf(row, "package");
}

/** Plugins that provide a contract in a release that is not yanked, with the newest such version. */
export async function listProviders(
  queries: Queries,
  namespace: string,
): Promise<{ id: string; package: string; version: string }[]> {
  const rows = await queries.all(
    `SELECT c.id, c.version, d.package FROM contracts c JOIN definitions d ON d.id = c.id AND d.version = c.version
     JOIN packages p ON p.id = d.package
     WHERE c.namespace = ? AND p.held = 0
       AND NOT EXISTS (SELECT 1 FROM yanks y WHERE y.package = d.package AND y.version = d.version)
     ORDER BY c.id LIMIT 5000`,
    namespace,
  );
  const best = new Map<string, { id: string; package: string; version: string }>();
  for (const row of rows) {
    const found = { id: textOf(row, "id"), package: textOf(row, "package"), version: textOf(row, "version") };
    const known = best.get(found.id);
    if (known === undefined || compareVersions(found.version, known.version) > 0) best.set(found.id, found);
  }
  return [...best.values()].slice(0, 200);
}

/** Every listed package's id with the time of its newest release, for the site map. */
export async function listIds(queries: Queries): Promise<{ id: string; publishedAt: string }[]> {
  const rows = await queries.all(
    "SELECT id, published_at FROM packages WHERE held = 0 AND latest IS NOT NULL ORDER BY id LIMIT 50000",
  );
  return rows.map((row) => ({ id: textOf(row, "id"), publishedAt: isoTime(numberOf(row, "published_at")) }));
}

/** Milliseconds as RFC 3339 in UTC. */
export function isoTime(at: number): string {
  return new Date(at).toISOString();
}
